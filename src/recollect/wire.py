"""JSON for every surface: one shape for the CLI, the server and the inspector.

Documented in ``docs/wire.md``. Values are strict JSON; times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from recollect.explain import WhyNot
from recollect.model import (
    Candidate,
    Collision,
    Degraded,
    Entity,
    Evidence,
    FileHistory,
    Filters,
    Item,
    Page,
    Pool,
    Recall,
    Remembered,
    Step,
)

if TYPE_CHECKING:
    from recollect.files.smart import SmartRead

Json = dict[str, Any]

_TIMES = (
    "stored_at", "occurred_at", "occurred_end", "valid_from", "valid_to",
    "live_from", "live_to", "last_recalled_at",
)  # fmt: skip
_PLAIN = (
    "id", "rev", "text", "level", "kind", "layer", "topic", "tier", "caption", "original",
    "language", "speaker", "session", "seq", "parent", "subject", "attribute", "source",
    "source_class", "writer", "trust", "integrity", "credibility", "classification", "emotion",
    "importance", "confidence", "relevance", "decay", "pinned", "protected", "ended_by", "status",
    "tokens", "recalls",
)  # fmt: skip


def dumps(value: Any, *, indent: int | None = None) -> str:
    """Strict JSON text: never NaN, never an unpaired surrogate."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def iso(moment: datetime | None) -> str | None:
    """A moment as ISO 8601 in UTC with milliseconds, or nothing."""
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def item_json(item: Item) -> Json:
    """A memory with everything known about it."""
    out: Json = {name: getattr(item, name) for name in _PLAIN}
    out.update({name: iso(getattr(item, name)) for name in _TIMES})
    out["tags"] = list(item.tags)
    out["entities"] = list(item.entities)
    out["flags"] = list(item.flags)
    out["metadata"] = dict(item.metadata)
    return out


def evidence_json(reason: Evidence) -> Json:
    out: Json = {
        "by": reason.by,
        "op": reason.op,
        "value": _number(reason.value),
        "why": reason.why,
    }
    if reason.via is not None:
        out["via"] = reason.via
    if reason.rank is not None:
        out["rank"] = reason.rank
    return out


def hit_json(cand: Candidate) -> Json:
    """A memory with its score, the reasons, and how each channel saw it."""
    return {
        **item_json(cand.item),
        "score": _number(cand.score),
        "evidence": [evidence_json(reason) for reason in cand.evidence],
        "channels": legs(cand),
    }


def legs(cand: Candidate) -> Json:
    """Rank and score in every channel that found the memory."""
    return {
        reason.by.removeprefix("channel."): {"rank": reason.rank, "score": _number(reason.value)}
        for reason in cand.evidence
        if reason.by.startswith("channel.")
    }


def recall_json(answer: Recall, *, trace: bool = False) -> Json:
    """The whole answer."""
    query = answer.query
    out: Json = {
        "query": {
            "text": query.text,
            "now": iso(query.now),
            "as_of": iso(query.as_of),
            "k": query.k,
            "max_tokens": query.max_tokens,
            "offset": query.offset,
            "filters": filters_json(query.filters),
        },
        "profile": answer.profile,
        "status": answer.status,
        "reason": answer.reason,
        "insights": [hit_json(hit) for hit in answer.insights],
        "items": [hit_json(hit) for hit in answer.items],
        "raw": [hit_json(hit) for hit in answer.raw],
        "order": [hit.item.id for hit in answer.hits],
        "warnings": list(answer.warnings),
        "degraded": [degraded_json(part) for part in answer.degraded],
        "nearest_miss": hit_json(answer.nearest_miss) if answer.nearest_miss else None,
        "page": page_json(answer.page),
    }
    if trace:
        out["trace"] = [step_json(step) for step in answer.steps]
    return out


def filters_json(filters: Filters) -> Json:
    """Only what restricts."""
    default = Filters()
    out: Json = {}
    for name in Filters.__dataclass_fields__:
        value = getattr(filters, name)
        if value != getattr(default, name):
            is_time = isinstance(value, datetime)
            out[name] = (
                iso(value) if is_time else list(value) if isinstance(value, tuple) else value
            )
    return out


def page_json(page: Page) -> Json:
    return page._asdict()


def degraded_json(part: Degraded) -> Json:
    return {"part": part.part, "reason": part.reason}


def step_json(step: Step) -> Json:
    """A step of the walk with every candidate it left, ranks and scores included."""
    return {
        "step": step.name,
        "status": step.status,
        "milliseconds": round(step.seconds * 1000, 3),
        "came_in": step.came_in,
        "left": len(step.pool),
        "note": step.note,
        "candidates": _candidates(step.pool),
    }


def _candidates(pool: Pool) -> list[Json]:
    return [
        {"rank": rank, "id": cand.item.id, "score": _number(cand.score), "channels": legs(cand)}
        for rank, cand in enumerate(pool, start=1)
    ]


def remembered_json(result: Remembered) -> Json:
    return {
        "id": result.id,
        "status": result.status,
        "collisions": [collision_json(collision) for collision in result.collisions],
        "redacted": list(result.redacted),
        "entities": list(result.entities),
        "flags": list(result.flags),
        "pending": list(result.pending),
    }


def collision_json(collision: Collision) -> Json:
    return collision._asdict()


def entity_json(entity: Entity) -> Json:
    return {
        "id": entity.id,
        "kind": entity.kind,
        "name": entity.name,
        "aliases": list(entity.aliases),
        "mentions": entity.mentions,
        "momentum": entity.momentum,
        "last_seen_at": iso(entity.last_seen_at),
    }


def why_not_json(result: WhyNot) -> Json:
    return {
        "id": result.item.id,
        "text": result.item.text,
        "returned": result.returned,
        "stage": result.stage,
        "reason": result.reason,
        "score": _number(result.score),
        "needed": _number(result.needed),
        "remedy": result.remedy,
        "channels": [
            {
                "channel": look.channel,
                "score": _number(look.score),
                "needed": _number(look.needed),
                "why": look.why,
            }
            for look in result.looks
        ],
    }


def file_history_json(history: FileHistory, linked: Sequence[Item], preview: int) -> Json:
    """What happened to a file, with the memories its edits were told in."""
    return {
        "paths": list(history.paths),
        "edits": history.edits,
        "first_at": iso(history.first_at),
        "last_at": iso(history.last_at),
        "sessions": list(history.sessions),
        "days": [one._asdict() for one in history.days],
        "intents": [one._asdict() | {"last_at": iso(one.last_at)} for one in history.intents],
        "memories": [
            {"id": item.id, "text": item.text[:preview], "when": iso(item.when)} for item in linked
        ],
    }


def smart_read_json(answer: SmartRead) -> Json:
    """A file as it was read: whole, or what changed."""
    chunks = [
        {name: value for name, value in chunk._asdict().items() if value is not None}
        for chunk in answer.chunks
    ]
    return answer._asdict() | {
        "chunks": chunks,
        "removed": list(answer.removed),
        "notes": list(answer.notes),
    }


def error_json(message: str, remedy: str, kind: str) -> Json:
    return {"error": {"kind": kind, "message": message, "remedy": remedy}}


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def mapping_json(table: Mapping[str, Any]) -> Json:
    """A plain table with its times made readable."""
    return {
        name: iso(value) if isinstance(value, datetime) else value for name, value in table.items()
    }
