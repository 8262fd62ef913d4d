"""Orders that a stage decides on, made true by the scores: best first is a law."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from recollect.model import Candidate, Pool


def parted(pool: Pool, apart: Sequence[str]) -> tuple[Pool, Pool]:
    """The candidates a stage works on, and those of levels it leaves alone."""
    mine = tuple(cand for cand in pool if cand.item.level not in apart)
    return mine, tuple(cand for cand in pool if cand.item.level in apart)


def falling(wanted: Iterable[Candidate], by: str, why: str) -> list[Candidate]:
    """The candidates in the order given: who scores more than the one before is held
    just below it, and keeps the reason why."""
    held: list[Candidate] = []
    for cand in wanted:
        if not held or _comes_after(cand, held[-1]):
            held.append(cand)
        else:
            below = math.nextafter(held[-1].score, -math.inf)
            held.append(cand.because(by, "set", below, why))
    return held


def _comes_after(cand: Candidate, before: Candidate) -> bool:
    return (-before.score, before.item.id) < (-cand.score, cand.item.id)
