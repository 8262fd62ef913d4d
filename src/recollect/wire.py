"""JSON for every surface: one shape for the CLI, the server and the inspector.

Documented in ``docs/wire.md``. Values are strict JSON; times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recollect.explain import WhyNot
from recollect.heat import pace_of
from recollect.jsonable import Json, iso
from recollect.jsonable import number as _number
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
    Recall,
    Remembered,
)
from recollect.reasons import match_reasons, named_fields
from recollect.traced import MOST_CANDIDATES, legs, trace_json

if TYPE_CHECKING:
    from recollect.files.smart import SmartRead
    from recollect.insights import Branch
    from recollect.model import Thread
    from recollect.provenance import Provenance

_NO_ITEMS: Mapping[str, Item] = MappingProxyType({})
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


def hit_json(cand: Candidate, answer: Recall) -> Json:
    """A memory with its score, the reasons in fixed words, in numbers and as arithmetic,
    and how each channel saw it."""
    return {
        **item_json(cand.item),
        "score": _number(cand.score),
        "match_reasons": list(match_reasons(cand, answer)),
        **_finite(named_fields(cand, answer)),
        "evidence": [evidence_json(reason) for reason in cand.evidence],
        "channels": legs(cand),
    }


def recall_json(
    answer: Recall, *, trace: bool = False, candidates: int | None = MOST_CANDIDATES
) -> Json:
    """The whole answer; ``candidates`` says how many of each step a trace shows."""
    query = answer.query
    out: Json = {
        "query": {
            "text": query.text,
            "now": iso(query.now),
            "as_of": iso(query.as_of),
            "k": query.k,
            "most": dict(query.most),
            "max_tokens": query.max_tokens,
            "offset": query.offset,
            "filters": filters_json(query.filters),
        },
        "profile": answer.profile,
        "strategy": answer.strategy,
        "status": answer.status,
        "reason": answer.reason,
        "insights": [hit_json(hit, answer) for hit in answer.insights],
        "items": [hit_json(hit, answer) for hit in answer.items],
        "raw": [hit_json(hit, answer) for hit in answer.raw],
        "captions": [caption._asdict() for caption in answer.captions],
        "timelines": [line._asdict() for line in answer.timelines],
        "relations": [told._asdict() for told in answer.relations],
        "evidences": list(answer.evidences),
        "order": [hit.item.id for hit in answer.hits],
        "warnings": list(answer.warnings),
        "degraded": [degraded_json(part) for part in answer.degraded],
        "nearest_miss": hit_json(answer.nearest_miss, answer) if answer.nearest_miss else None,
        "page": page_json(answer.page),
    }
    if trace:
        out["trace"] = trace_json(answer, candidates=candidates)
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
        "pace": pace_of(entity.momentum),
        "layers": dict(entity.layers),
        "pinned": entity.pinned,
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


def provenance_json(found: Provenance) -> Json:
    """Where a memory comes from: every link on the way, nearest first."""
    return {
        "id": found.item.id,
        "text": found.item.text,
        "edges": [
            {
                "depth": edge.depth,
                "from": edge.link.src._asdict(),
                "type": edge.link.type,
                "to": edge.link.dst._asdict(),
                "weight": edge.link.weight,
                "confidence": edge.link.confidence,
                "text": edge.item.text if edge.item else None,
                "again": edge.again,
            }
            for edge in found.edges
        ],
        "cut": found.cut,
    }


def thread_json(thread: Thread, items: Mapping[str, Item] = _NO_ITEMS) -> Json:
    """A thread with its members and events; with the members' texts where they are given."""
    members = [
        {
            "item": member.item,
            "role": member.role,
            "weight": member.weight,
            **({"text": items[member.item].text} if member.item in items else {}),
        }
        for member in thread.members
    ]
    events = [event._asdict() | {"at": iso(event.at)} for event in thread.events]
    return {
        "id": thread.id,
        "headline": thread.headline,
        "kind": thread.kind,
        "anchor": thread.anchor,
        "lifecycle": thread.lifecycle,
        "state": thread.state,
        "created_at": iso(thread.created_at),
        "updated_at": iso(thread.updated_at),
        "members": members,
        "events": events,
    }


def insight_json(branch: Branch) -> Json:
    """An insight with its points, what bears them out, and the insights below it."""
    item = branch.insight
    return {
        "id": item.id,
        "kind": item.kind,
        "title": item.caption,
        "text": item.text,
        "stale": branch.stale,
        "trust": item.trust,
        "confidence": item.confidence,
        "made_by": item.metadata.get("made_by"),
        "points": [
            {
                "text": point.text,
                "sources": [{"id": one.id, "text": one.text} for one in point.sources],
            }
            for point in branch.points
        ],
        "below": [insight_json(one) for one in branch.below],
    }


def error_json(message: str, remedy: str, kind: str) -> Json:
    return {"error": {"kind": kind, "message": message, "remedy": remedy}}


def _finite(fields: Mapping[str, Any]) -> Json:
    """The fields with every number that JSON cannot say made null."""
    told: Json = {}
    for name, value in fields.items():
        if isinstance(value, Mapping):
            told[name] = _finite(value)
        else:
            told[name] = _number(value) if isinstance(value, float) else value
    return told


def mapping_json(table: Mapping[str, Any]) -> Json:
    """A plain table with its times made readable."""
    return {
        name: iso(value) if isinstance(value, datetime) else value for name, value in table.items()
    }
