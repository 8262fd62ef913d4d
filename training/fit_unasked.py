"""Fit what unasked notes weigh: features of failures and edits, over written sessions.

    python training/fit_unasked.py FOLDER [FOLDER ...]

Each FOLDER is a set of sessions by another author (as bench/unasked.py reads them). The weights
are fitted on all sets but one and tested on that one, then on all sets: those are the ones of
`bethink/agents/unasked.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "bench"))

from bethink import Memory
from bethink.agents.session import session_state
from bethink.agents.unasked import REPEATED, Call, failure_candidates, tied_candidates
from unasked import opened, payload

KINDS = {
    "failure": ("cosine", "rarity of the output", "rarity of the command", "run"),
    "edit": ("cosine", "rarity", "symbol"),
}
_STRENGTH = 2.0  # of the penalty on weights
_WORTH_OF_WRONG = 3.0  # notes that are right and make up for a wrong one


class Event(NamedTuple):
    """Candidates of one event: features, whether each may be shown, should be, and names."""

    session: str
    features: np.ndarray
    may: np.ndarray
    should: np.ndarray
    names: list[str]


def events(folder: Path) -> Iterator[tuple[str, Event]]:
    """Yield the events at which a failure or an edit has candidates."""
    for file in sorted(folder.glob("*.json")):
        with opened(file) as (memory, project, ids):
            for event in json.loads(file.read_text(encoding="utf-8"))["events"]:
                call = Call(memory, payload(event, file.stem, project))
                marks = session_state(memory, file.stem).count_call(call.edited)
                for kind, found in candidates(memory, call, event["event"], marks.recent):
                    should = {ids[one] for one in event["should"]}
                    may = should | {ids[one] for one in event["may"]}
                    names = [one for one, _ in found]
                    yield (
                        kind,
                        Event(
                            file.stem,
                            np.array([one for _, one in found], dtype=float),
                            np.array([one in may for one in names]),
                            np.array([one in should for one in names]),
                            names,
                        ),
                    )


def candidates(
    memory: Memory, call: Call, event: str, recent: Sequence[str]
) -> Iterator[tuple[str, list[tuple[str, tuple[float, ...]]]]]:
    """Yield the kind of note that an event may have, and what may be shown, with features."""
    if call.path and (event == "PreToolUse" or recent.count(call.path) == REPEATED):
        tied = tied_candidates(memory, call.path, call.edit())
        found = [(item.id, features) for item, features in tied]
        kind = "edit"
    elif not call.path and event != "PreToolUse" and (output := call.failure()):
        hits = failure_candidates(memory, call.command, output, "")
        kind, found = "failure", [(hit.item.id, features) for hit, features in hits]
    else:
        return
    if found:
        yield kind, found


def fit(data: list[Event]) -> np.ndarray:
    """Weights and bias of a logistic regression, each feature scaled for the penalty."""
    rows = np.concatenate([one.features for one in data])
    right = np.concatenate([one.may for one in data]).astype(float)
    middle, width = rows.mean(0), rows.std(0) + 1e-6
    scaled = np.c_[(rows - middle) / width, np.ones(len(rows))]
    penalty = np.diag([_STRENGTH] * rows.shape[1] + [0.0])
    weights = np.zeros(scaled.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-scaled @ weights))
        slope = scaled.T @ (chance - right) + penalty @ weights
        curve = (scaled * (chance * (1 - chance))[:, None]).T @ scaled + penalty
        weights -= np.linalg.solve(curve, slope)
    own = weights[:-1] / width
    return np.append(own, weights[-1] - own @ middle)


def shown(data: list[Event], weights: np.ndarray) -> dict[str, int]:
    """Count what these weights would show, right, wanted and met."""
    counts = dict.fromkeys(("shown", "right", "wanted", "met"), 0)
    given: set[tuple[str, str]] = set()
    for one in data:
        scores = one.features @ weights[:-1] + weights[-1]
        best = int(scores.argmax())
        is_shown = scores[best] > 0 and (one.session, one.names[best]) not in given
        given |= {(one.session, one.names[best])} if is_shown else set()
        counts["shown"] += is_shown
        counts["right"] += is_shown and one.may[best]
        counts["wanted"] += one.should.any()
        counts["met"] += is_shown and one.should[best]
    return counts


def choose(data: list[Event]) -> np.ndarray:
    """Weights with the threshold at which right notes most outweigh wrong ones."""
    weights = fit(data)

    def worth(shift: float) -> float:
        counts = shown(data, np.append(weights[:-1], weights[-1] - shift))
        return (
            counts["right"] + counts["met"] - _WORTH_OF_WRONG * (counts["shown"] - counts["right"])
        )

    shifts = np.arange(-3, 3.01, 0.1)
    worths = np.array([worth(shift) for shift in shifts])
    best = shifts[worths == worths.max()]
    return np.append(weights[:-1], weights[-1] - best[len(best) // 2])


def tell(name: str, counts: dict[str, int]) -> str:
    precision = counts["right"] / max(counts["shown"], 1)
    recall = counts["met"] / max(counts["wanted"], 1)
    return (
        f"{name}: {precision:.2f} of {counts['shown']}, recall {recall:.2f} of {counts['wanted']}"
    )


def main() -> None:
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    given.add_argument("folders", type=Path, nargs="+")
    data: dict[str, dict[str, list[Event]]] = {kind: {} for kind in KINDS}
    for folder in given.parse_args().folders:
        for kind, event in events(folder):
            data[kind].setdefault(folder.name, []).append(event)
    for kind, sets in data.items():
        print(kind, KINDS[kind])
        for name, own in sets.items():
            rest = [event for other, some in sets.items() if other != name for event in some]
            print("  left out", tell(name, shown(own, choose(rest))))
        everything = [event for some in sets.values() for event in some]
        weights = choose(everything)
        print("  all", tell("", shown(everything, weights)), np.round(weights, 2).tolist())


if __name__ == "__main__":
    main()
