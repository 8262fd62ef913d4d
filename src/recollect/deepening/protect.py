"""Keeps in front what the first walk was surest of."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Pool, best_first

_STEP = 0.001


@dataclass(frozen=True, slots=True)
class Protect:
    """Lifts these (ids, best first) above all others, in their order, as far as they are
    still there: what is found by asking on comes beside the first answer, not in its place.
    """

    first: tuple[str, ...] = ()
    name: str = "protect"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        place = {key: at for at, key in enumerate(self.first)}
        above = max((cand.score for cand in pool if cand.item.id not in place), default=0.0)
        unit = _STEP * (abs(above) or 1.0)

        def lift(cand: Candidate) -> Candidate:
            at = place.get(cand.item.id)
            if at is None:
                return cand
            wanted = above + unit * (len(place) - at)
            why = f"place {at + 1} of the first walk"
            return cand.because(self.name, "add", wanted - cand.score, why)

        return best_first(map(lift, pool))
