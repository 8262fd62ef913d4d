"""How good a ranking is: pure functions of what came back and what should have.

``ranked`` holds units, best first, each once; ``relevant`` maps the units that answer
to their gains. A name like ``recall@10`` stands for a function and its cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from recollect.errors import Refused

Ranked = Sequence[str]
Gains = Mapping[str, float]
Metric = Callable[[Ranked, Gains], float]

QUALITY = (
    "recall@5", "recall@10", "hit@5", "hit@10", "all@5", "all@10", "ndcg@10", "mrr",
    "precision@5", "precision@10",
)  # fmt: skip


def recall(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """The share of the relevant that is among the first ``cut``."""
    return _found(ranked, relevant, cut) / len(relevant)


def hit(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """1 where any relevant one is among the first ``cut``."""
    return float(_found(ranked, relevant, cut) > 0)


def every(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """1 where every relevant one is among the first ``cut``."""
    return float(_found(ranked, relevant, cut) == len(relevant))


def precision(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """The share of the first ``cut`` that is relevant.

    Of those that came back: an answer of two right ones is not wrong for being short.
    """
    returned = min(cut, len(ranked))
    return _found(ranked, relevant, cut) / returned if returned else 0.0


def ndcg(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """Normalised discounted cumulative gain, gains taken as they are."""
    gained = sum(
        relevant.get(unit, 0.0) / math.log2(place + 1)
        for place, unit in enumerate(ranked[:cut], start=1)
    )
    best = sum(
        gain / math.log2(place + 1)
        for place, gain in enumerate(sorted(relevant.values(), reverse=True)[:cut], start=1)
    )
    return gained / best


def mrr(ranked: Ranked, relevant: Gains, cut: int) -> float:
    """One over the place of the first relevant one; ``cut`` 0 looks at all that came."""
    for place, unit in enumerate(ranked[:cut] if cut else ranked, start=1):
        if unit in relevant:
            return 1.0 / place
    return 0.0


_FUNCTIONS: dict[str, Callable[[Ranked, Gains, int], float]] = {
    "recall": recall,
    "hit": hit,
    "all": every,
    "precision": precision,
    "ndcg": ndcg,
    "mrr": mrr,
}


@cache
def metric(name: str) -> Metric:
    """The metric of a name: ``recall@10``, ``all@5``, ``mrr``."""
    kind, _, digits = name.partition("@")
    function = _FUNCTIONS.get(kind)
    if function is None or (digits and not digits.isdecimal()) or (not digits and kind != "mrr"):
        allowed = ", ".join(f"{known}@10" for known in _FUNCTIONS)
        raise Refused(f"there is no metric {name!r}", remedy=f"for example {allowed}")
    cut = int(digits or 0)
    return lambda ranked, relevant: function(ranked, relevant, cut)


def _found(ranked: Ranked, relevant: Gains, cut: int) -> int:
    return sum(1 for unit in ranked[:cut] if unit in relevant)
