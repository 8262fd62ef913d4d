"""Why a memory came, in fixed words and fields that programs can rely on.

All of it is read from the evidence and the item, whichever profile answered.
"""

from __future__ import annotations

from typing import Any

from recollect.heat import band_of
from recollect.model import Candidate, Evidence, Recall, replay
from recollect.text import fold

ACTIVE_FROM = 5.0
IMPORTANT_FROM = 0.8
_COMPOSITE = "composite."
_BY_NAME = "entity_name"


def match_reasons(cand: Candidate, answer: Recall) -> tuple[str, ...]:
    """How it was found, then what speaks for it besides."""
    return (*_found_by(cand, answer), *standing(cand))


def _found_by(cand: Candidate, answer: Recall) -> tuple[str, ...]:
    query, ways = answer.query, dict(answer.ways)
    found = {ways.get(reason.by.removeprefix("channel.")) for reason in _channels(cand)}
    by_words = "words" in found
    # Whoever holds the question word for word holds it as a piece of text, too.
    asked = fold(query.text)
    in_pieces = "pieces" in found or (by_words and asked != "" and asked in fold(cand.item.text))
    by_name = "names" in found or bool(query.filters.entities) or bool(cand.reason(_BY_NAME))
    reasons = []
    if by_words:
        reasons.append("content_match_dual" if in_pieces else "content_match_fts")
    if in_pieces and not by_name:
        reasons.append("content_substring")
    if by_name:
        reasons.append("entity_name_match")
    if "meaning" in found:
        reasons.append("meaning_match")
    if "time" in found:
        reasons.append("time_match")
    return tuple(reasons)


def standing(cand: Candidate) -> tuple[str, ...]:
    """What speaks for a memory besides the question: heat, momentum, importance, a caveat."""
    item = cand.item
    reasons = []
    heat, momentum = _fact(cand, "heat"), _fact(cand, "momentum")
    band = band_of(heat.value) if heat else ""
    if band in ("hot", "warm"):
        reasons.append(f"heat:{band}")
    if momentum is not None and momentum.value >= ACTIVE_FROM:
        reasons.append("entity_active")
    if item.pinned:
        reasons.append("pinned")
    elif item.importance >= IMPORTANT_FROM:
        reasons.append("high_importance")
    if item.protected and item.layer == "caveat":
        reasons.append("caveat_protected")
    return tuple(reasons)


def named_fields(cand: Candidate, answer: Recall) -> dict[str, Any]:
    """The numbers behind a place, by name; None for what no part of the profile looked at."""
    words = _place(cand, "words", answer)
    meaning = _place(cand, "meaning", answer)
    decay = cand.reason("decay")
    heat, momentum = _fact(cand, "heat"), _fact(cand, "momentum")
    return {
        "bm25_rank": words.rank if words else None,
        "vector_rank": meaning.rank if meaning else None,
        "cosine": meaning.value if meaning else None,
        "recency": decay.value if decay else None,
        "heat": heat.value if heat else None,
        "band": band_of(heat.value) if heat else None,
        "momentum": momentum.value if momentum else None,
        "breakdown": _breakdown(cand),
    }


def _breakdown(cand: Candidate) -> dict[str, float] | None:
    """What each part of a composite brought: relevance what was left of the score so far,
    the others what they added."""
    parts: dict[str, float] = {}
    for place, reason in enumerate(cand.evidence, 1):
        if reason.by.startswith(_COMPOSITE):
            part = reason.by.removeprefix(_COMPOSITE)
            scaled = reason.op == "times"
            parts[part] = replay(cand.evidence[:place]) if scaled else reason.value
    return parts or None


def _channels(cand: Candidate) -> list[Evidence]:
    return [reason for reason in cand.evidence if reason.by.startswith("channel.")]


def _place(cand: Candidate, way: str, answer: Recall) -> Evidence | None:
    """The best place that channels which go this way gave."""
    ways = dict(answer.ways)
    alike = [r for r in _channels(cand) if ways.get(r.by.removeprefix("channel.")) == way]
    return min(alike, key=lambda reason: reason.rank or 0, default=None)


def _fact(cand: Candidate, by: str) -> Evidence | None:
    return next((r for r in cand.evidence if r.by == by and r.op == "seen"), None)
