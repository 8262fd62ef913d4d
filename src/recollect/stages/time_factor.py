"""Weighs in how well the time of a memory suits the question."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Pool, best_first
from recollect.timely import Curve, time_factor


@dataclass(frozen=True, slots=True)
class TimeFactor:
    """× how well the time suits: by age, or by distance from a time the question names.

    What one of the channels ``already`` named found has been judged by its time there,
    and is not judged twice.
    """

    per_day: float = 0.0019
    floor: float = 0.7
    outside_per_day: float = 0.023
    outside_floor: float = 0.3
    already: tuple[str, ...] = ()
    apart: tuple[str, ...] = ("insight",)
    name: str = "time_factor"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        curve = Curve(self.per_day, self.floor, self.outside_per_day, self.outside_floor)
        judged = {f"channel.{name}" for name in self.already}

        def weigh(cand: Candidate) -> Candidate:
            if cand.item.level in self.apart or any(r.by in judged for r in cand.evidence):
                return cand
            factor, why = time_factor(cand.item, ctx, curve)
            return cand if factor == 1.0 else cand.because(self.name, "times", factor, why)

        return best_first(weigh(cand) for cand in pool)
