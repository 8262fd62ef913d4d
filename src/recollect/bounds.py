"""Between what the numbers of a profile may lie, by where they stand and what they are called."""

from __future__ import annotations

import math
from typing import NamedTuple


class Bounds(NamedTuple):
    """The least and the most a number may be; ``open`` where the least itself is too little."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def hold(self, value: float) -> bool:
        """Whether a number lies between them."""
        return self.low <= value <= self.high and not (self.open and value == self.low)

    def __str__(self) -> str:
        """What a number must be, in words."""
        if self.high < math.inf:
            return f"from {self.low:g} to {self.high:g}"
        return f"above {self.low:g}" if self.open else f"{self.low:g} or more"


_ANY = Bounds()
_ABOVE_ZERO = Bounds(0, open=True)
_FROM_ZERO = Bounds(0)
_SHARE = Bounds(0, 1)
_BY_BOUNDS = (
    (
        _ABOVE_ZERO,
        """depth half_life_days tokens before_days after_days top crowd count postings_budget k1
        limit max_tokens oversample each wordless days""",
    ),
    (
        _FROM_ZERO,
        """k pool seeds steps hops floor tau_days most enough about_weight threshold decay_interval
        grace_s""",
    ),
    (
        _SHARE,
        """b hub_share min_share unknown_share keyword_weight keep relevance min_coverage
        decay_rate regain min_likeness""",
    ),
)
_NAMED = {name: limits for limits, names in _BY_BOUNDS for name in names.split()}
_PLACED = {"budget.k": Bounds(1, 200), "channels.weight": _FROM_ZERO}


def bounds(slot: str, name: str) -> Bounds:
    """Of a setting in a slot: beyond them no question could be answered, or none rightly."""
    return _PLACED.get(f"{slot}.{name}") or _NAMED.get(name, _ANY)
