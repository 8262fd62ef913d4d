"""What one recall's trace tells: who found the relevant ones and where each step put them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from recollect.model import Pool, Recall

CHANNEL = "channel."
GATE = "gate."
CERTAIN = 1.0e9
_SURE = re.compile(r"confidence (-?\d+\.?\d*)")
# Steps that have no pool of their own to judge.
_SILENT = ("plan",)


@dataclass(frozen=True, slots=True)
class StepLook:
    """One step of one recall: how it went, and the places it left the relevant units at."""

    name: str
    status: str
    seconds: float
    left: int
    places: Mapping[str, int]

    @property
    def is_channel(self) -> bool:
        return self.name.startswith(CHANNEL)


def units_of(pool: Pool, units: Mapping[str, str]) -> tuple[str, ...]:
    """The units of a pool in order of first appearance.

    A piece of a split memory counts for the whole; what belongs to no unit
    (an insight, say) still takes its place, under its own id.
    """
    seen: dict[str, None] = {}
    for cand in pool:
        item = cand.item
        unit = units.get(item.id) or units.get(item.parent or "") or item.id
        seen.setdefault(unit)
    return tuple(seen)


def look(answer: Recall, relevant: Mapping[str, float], units: Mapping[str, str]) -> list[StepLook]:
    """Every step of the walk, judged by the units that should have come back."""
    looks = []
    for step in answer.steps:
        if step.name in _SILENT:
            continue
        places = {
            unit: place
            for place, unit in enumerate(units_of(step.pool, units), start=1)
            if unit in relevant
        }
        looks.append(StepLook(step.name, step.status, step.seconds, len(step.pool), places))
    return looks


def sureness(answer: Recall) -> float | None:
    """How sure the gate was of the answer: what it says in the trace.

    A decision that it took without weighing counts as entirely sure, either way;
    None where the walk has no gate.
    """
    gates = [step for step in answer.steps if step.name.startswith(GATE)]
    if not gates:
        return None
    weighed = [float(found.group(1)) for step in gates if (found := _SURE.search(step.note))]
    if weighed:
        return min(weighed)
    return CERTAIN if gates[-1].pool else -CERTAIN


def offered(answer: Recall) -> Pool:
    """What stood before the gate: the answer as it would be without one."""
    before: Pool = ()
    for step in answer.steps:
        if step.name.startswith(GATE):
            return before
        before = step.pool
    # No gate: what the walk had before the budget cut it.
    steps = [step for step in answer.steps if step.name != "budget"]
    return steps[-1].pool if steps else answer.hits
