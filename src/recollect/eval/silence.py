"""Abstention: is nothing said where nothing is known, and is anything lost by that?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.eval.asking import Asked
from recollect.eval.resampling import auc, silence_at
from recollect.eval.runner import Outcome

CUT = 10
BEARABLE_LOSS = 0.02
# Below every real score: a walk that found nothing at all was as unsure as can be.
_NOTHING = -1.0e9

OWN = "own without an answer"


def abstention(outcome: Outcome) -> dict[str, Any]:
    """The gate's account: what it silenced rightly, and what it lost.

    A true hit is an answerable question with a relevant unit among the first ten
    that stood before the gate; it is lost when none of them is in the answer.
    """
    answerable = [one for one in outcome.own if one.relevant]
    true_hits = [one for one in answerable if _relevant(one, one.offered)]
    lost = [one for one in true_hits if not _relevant(one, one.ranked)]
    kinds = {OWN: [one for one in outcome.own if not one.relevant], **outcome.foreign}
    return {
        "true_hits": len(true_hits),
        "lost": len(lost),
        "lost_share": len(lost) / len(true_hits) if true_hits else None,
        "kinds": [_kind(name, asked, true_hits) for name, asked in kinds.items() if asked],
        "own_scores": [_best(one) for one in true_hits],
    }


def _kind(name: str, asked: Sequence[Asked], true_hits: Sequence[Asked]) -> dict[str, Any]:
    own = [_best(one) for one in true_hits]
    strange = [_best(one) for one in asked]
    silent = sum(one.is_silent for one in asked)
    return {
        "kind": name,
        "n": len(asked),
        "silent": silent,
        "silent_share": silent / len(asked),
        "auc": auc(own, strange),
        "silent_at_loss": silence_at(own, strange, BEARABLE_LOSS),
        "scores": strange,
    }


def _best(one: Asked) -> float:
    return one.best if one.best is not None else _NOTHING


def _relevant(one: Asked, units: Sequence[str]) -> bool:
    return any(unit in one.relevant for unit in units[:CUT])
