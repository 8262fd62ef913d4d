"""Abstention: is nothing said where nothing is known, and is anything lost by that?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from recollect.eval.asking import Asked
from recollect.eval.looking import CERTAIN
from recollect.eval.resampling import auc, silence_at
from recollect.eval.runner import Outcome

CUT = 10
BEARABLE_LOSS = 0.02
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
        "own_scores": _scores(true_hits),
        "own_sureness": _sureness(true_hits),
    }


def _kind(name: str, asked: Sequence[Asked], true_hits: Sequence[Asked]) -> dict[str, Any]:
    silent = sum(one.is_silent for one in asked)
    own, strange = _scores(true_hits), _scores(asked)
    sure_own, sure_strange = _sureness(true_hits), _sureness(asked)
    return {
        "kind": name,
        "n": len(asked),
        "silent": silent,
        "silent_share": silent / len(asked),
        "auc_score": auc(own, strange),
        "auc_gate": auc(sure_own, sure_strange),
        "silent_at_loss": silence_at(sure_own or own, sure_strange or strange, BEARABLE_LOSS),
        "scores": strange,
        "sureness": sure_strange,
    }


def _scores(asked: Sequence[Asked]) -> list[float]:
    """Best scores before the gate; a walk that found nothing at all is as unsure as can be."""
    return [-CERTAIN if one.best is None else one.best for one in asked]


def _sureness(asked: Sequence[Asked]) -> list[float]:
    return [one.sureness for one in asked if one.sureness is not None]


def _relevant(one: Asked, units: Sequence[str]) -> bool:
    return any(unit in one.relevant for unit in units[:CUT])
