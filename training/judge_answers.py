"""How well answers are told from near misses: what the models say of the check sets.

    python training/judge_answers.py CHECK SAID

CHECK is what ``check_answers.py`` wrote, SAID what ``train_answers.py --check`` says of it. Right
are questions whose first memory is an answer; of those and of near misses the first memory is
judged, or the better of the first two. A threshold is where so many of all right ones are lost;
by it these shares of each set are marked as unanswered.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np

NEAR_MISS = "absent-near"
LOSSES = (0.005, 0.01, 0.02)
# Sets without near misses (scenes, chats) have no say in the thresholds.
MIN_NEAR = 10


def area(right: np.ndarray, wrong: np.ndarray) -> float:
    """How often a right one is above a wrong one; of equal ones a half."""
    order = np.sort(wrong)
    below = np.searchsorted(order, right, "left") + np.searchsorted(order, right, "right")
    return float(below.mean() / 2 / len(wrong)) if len(right) and len(wrong) else float("nan")


def judge(check: Mapping[str, np.ndarray], said: Mapping[str, np.ndarray]) -> list[str]:
    """A line for each model and set."""
    questions, first = np.unique(check["pairs"][:, 0], return_index=True)
    second = np.minimum(first + 1, len(check["pairs"]) - 1)
    second = np.where(check["pairs"][second, 0] == questions, second, first)
    known, sets = check["known"][first], check["sets"][first]
    right, answered, near = known["f3"], known["f2"], known["f1"] == NEAR_MISS
    noted = np.isin(sets, [one for one in np.unique(sets) if near[sets == one].sum() >= MIN_NEAR])
    lines = []
    for name in said:
        for way, score in (
            ("first", said[name][first].astype(np.float64)),
            ("of two", np.maximum(said[name][first], said[name][second]).astype(np.float64)),
        ):
            found = np.quantile(score[right & noted], LOSSES)
            for one in ("all", *dict.fromkeys(sets.tolist())):
                mine = noted if one == "all" else sets == one
                if not (mine & right).any():
                    continue
                own = np.quantile(score[mine & right], LOSSES)
                parts = [f"{name:9} {way:6} {one:11}", f"right {(mine & right).sum():4}"]
                if near[mine].any():
                    wrong = score[mine & near]
                    parts.append(f"near {len(wrong):4} AUC {area(score[mine & right], wrong):.3f}")
                    shares = (f"{(wrong < limit).mean():.2f}" for limit in own)
                    parts.append(f"near marked at its own .5, 1, 2 % lost: {', '.join(shares)};")
                for kind, rows in (
                    ("near", mine & near),
                    ("right", mine & right),
                    ("answered", mine & answered),
                ):
                    if rows.any():
                        shares = (f"{(score[rows] < limit).mean():.3f}" for limit in found)
                        parts.append(f"{kind} {', '.join(shares)}")
                lines.append("  ".join(parts))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("check", type=Path)
    parser.add_argument("said", type=Path)
    given = parser.parse_args()
    with np.load(given.check) as check, np.load(given.said) as said:
        print("\n".join(judge(dict(check), dict(said))))


if __name__ == "__main__":
    main()
