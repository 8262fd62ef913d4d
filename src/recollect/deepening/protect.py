"""Keeps in front what the first walk was surest of."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Pool, best_first

_STEP = 0.001


# Compared as an object: what was found cannot be hashed.
@dataclass(frozen=True, slots=True, eq=False)
class Protect:
    """Lifts what an earlier walk found first above all others, in its order: what is found
    by asking on comes beside the first answer, not in its place. One that the wider walk
    did not meet joins with the score and the reasons it had."""

    first: Pool = ()
    name: str = "protect"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        place = {cand.item.id: at for at, cand in enumerate(self.first)}
        met = {cand.item.id for cand in pool}
        above = max((cand.score for cand in pool if cand.item.id not in place), default=0.0)
        unit = _STEP * (abs(above) or 1.0)

        def lift(cand: Candidate) -> Candidate:
            at = place.get(cand.item.id)
            if at is None:
                return cand
            wanted = above + unit * (len(place) - at)
            why = f"place {at + 1} of the first walk"
            return cand.because(self.name, "add", wanted - cand.score, why)

        missed = (cand for cand in self.first if cand.item.id not in met)
        return best_first(lift(cand) for cand in (*pool, *missed))
