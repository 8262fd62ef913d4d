"""What a search for better numbers found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from recollect.eval.sheets import Sheet, number, signed
from recollect.eval.tune import Tuned


def tuned_json(result: Tuned, title: str, file: str) -> dict[str, Any]:
    """The outcome as one document."""
    return {
        "file": file,
        "measured_on": title,
        "trials": result.trials,
        "noise": result.is_noise,
        "verdict": verdict(result),
        "train": asdict(result.train),
        "held_out": asdict(result.held_out),
        "changes": [
            {"setting": name, "before": before, "after": after}
            for name, before, after in result.changes
        ],
    }


def tuned_sheets(result: Tuned, metrics: str) -> Iterator[Sheet]:
    """The settings that changed, and what that did to both halves of the questions."""
    yield Sheet(
        f"Settings changed in {result.trials} trials",
        ("setting", ">before", ">after"),
        tuple((name, f"{before:g}", f"{after:g}") for name, before, after in result.changes),
    )
    yield Sheet(
        f"Mean of {metrics}",
        ("questions", ">n", ">before", ">after", ">change", "95 %", ">p"),
        tuple(
            (
                name,
                f"{gain.n:,}",
                number(gain.before),
                number(gain.after),
                signed(gain.value),
                f"{signed(gain.low)} to {signed(gain.high)}",
                number(gain.p),
            )
            for name, gain in (("training", result.train), ("held out", result.held_out))
        ),
    )


def verdict(result: Tuned) -> str:
    """Whether the new profile is worth keeping, in one sentence."""
    gain = result.held_out
    if not result.changes:
        return "No better numbers were found; the profile is the one it was."
    if result.is_noise:
        return (
            f"On the {gain.n:,} held-out questions the change of {gain.value:+.3f} cannot be told "
            "from noise: keep the old profile, or give more questions."
        )
    return f"On the {gain.n:,} held-out questions it gains {gain.value:+.3f} (p {gain.p:.3f})."
