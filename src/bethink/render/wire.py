"""JSON for every surface: one shape for the CLI, the server and the inspector.

Documented in ``docs/wire.md``. Values are strict JSON; times are ISO 8601 in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bethink.core.characters import escape_hidden, strip_hidden
from bethink.core.json_values import Json, finite_or_none, iso
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.errors import BethinkError, Refused
from bethink.model import (
    Candidate,
    Entity,
    Evidence,
    FileHistory,
    Filters,
    Item,
    Pool,
    Recall,
    Remembered,
    Step,
)
from bethink.model.fields import ITEM_FIELDS
from bethink.retrieval.explain import WhyNot, match_reasons, named_fields
from bethink.retrieval.heat import pace_of

if TYPE_CHECKING:
    from bethink.api.file_reader import SmartRead
    from bethink.api.files import CodeMemory
    from bethink.model import Thread, Waiting
    from bethink.model.anchor import CodeState
    from bethink.retrieval.provenance import InsightNode, Provenance


MAX_STEPS = 32
MAX_CANDIDATES = 8
PREVIEW_CHARS = 160


def trace_json(answer: Recall, *, candidates: int | None = MAX_CANDIDATES) -> Json:
    """The trace of a recall as JSON: at most 32 steps with so many candidates each.

    None shows all steps and candidates. ``truncated`` says whether anything was left out.
    """
    shown = answer.steps if candidates is None else answer.steps[:MAX_STEPS]
    longest = max((len(step.pool) for step in shown), default=0)
    run = answer.run
    return {
        "id": run.id if run else None,
        "started_at": iso(run.started_at) if run else None,
        "completed_at": iso(run.completed_at) if run else None,
        "milliseconds": round(sum(step.seconds for step in answer.steps) * 1000, 3),
        **fields_json(answer, "strategy profile"),
        "cached": bool(run and run.cached),
        "truncated": len(shown) < len(answer.steps)
        or (candidates is not None and longest > candidates),
        "steps": [step_json(step, candidates=candidates) for step in shown],
        "merge": _merge_json(answer),
        "final": {
            "status": answer.status,
            "insights": len(answer.insights),
            "items": len(answer.items),
            "raw": len(answer.raw),
            "captions": len(answer.captions),
            "evidences": len(answer.evidences),
            "degraded": len(answer.degraded),
        },
    }


def step_json(step: Step, *, candidates: int | None = MAX_CANDIDATES) -> Json:
    """One step with the best candidates of its pool, including ranks and scores."""
    return {
        "step": step.name,
        "status": step.status,
        "milliseconds": round(step.seconds * 1000, 3),
        "came_in": step.came_in,
        "left": len(step.pool),
        "note": step.note,
        "candidates": _candidates_json(step.pool[:candidates]),
    }


def retriever_ranks(cand: Candidate) -> Json:
    """Rank and score in every retriever that found the memory."""
    return {
        reason.by.removeprefix("channel."): {
            "rank": reason.rank,
            "score": finite_or_none(reason.value),
        }
        for reason in cand.evidence
        if reason.by.startswith("channel.")
    }


def _candidates_json(pool: Pool) -> list[Json]:
    return [
        {
            "rank": rank,
            **fields_json(cand.item, "id level"),
            "score": finite_or_none(cand.score),
            "text": shorten(
                " ".join(strip_hidden(cand.item.text[: 4 * PREVIEW_CHARS]).split()), PREVIEW_CHARS
            ),
            "channels": retriever_ranks(cand),
        }
        for rank, cand in enumerate(pool, start=1)
    ]


def _merge_json(answer: Recall) -> Json:
    """How many candidates the retrievers returned, and how many remained after fusion."""
    searches = [s for s in answer.steps if s.name.startswith("channel.") and s.status == "ok"]
    fused = next((step for step in answer.steps if step.name == "fuse"), None)
    found = {cand.item.id for step in searches for cand in step.pool}
    came_in = sum(len(step.pool) for step in searches)
    return {
        "channels": sum(bool(step.pool) for step in searches),
        "came_in": came_in,
        "duplicates": came_in - len(found),
        "left": len(fused.pool) if fused else 0,
    }


_NO_ITEMS: Mapping[str, Item] = MappingProxyType({})
_WRITE: dict[str, Callable[[Any], object]] = {"time": iso, "words": list, "object": dict}
_ITEM_KEYS = tuple((field.name, _WRITE.get(field.kind)) for field in ITEM_FIELDS if field.in_json)


def dumps(value: object, *, indent: int | None = None) -> str:
    """Strict JSON text: never NaN, an unpaired surrogate or a raw hidden character."""
    return escape_hidden(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent))


def item_json(item: Item) -> Json:
    """A memory with all its fields."""
    out: Json = {}
    for name, write in _ITEM_KEYS:
        value = getattr(item, name)
        out[name] = value if write is None else write(value)
    return out


def evidence_json(reason: Evidence) -> Json:
    rest = fields_json(reason, "via rank")
    told = {name: value for name, value in rest.items() if value is not None}
    return fields_json(reason, "by op value why") | told


def passage_json(hit: Candidate) -> Json | None:
    """Which characters of a long memory's text are shown, and how many tokens of how many."""
    shown = hit.passage
    return None if shown is None else {**shown._asdict(), "of_tokens": hit.item.tokens}


def hit_json(cand: Candidate, answer: Recall) -> Json:
    """A hit: the memory, its score, match reasons, named numbers, evidence and channel ranks.

    ``text`` is what is shown: of a long memory the passage. ``relevance`` is that to the
    question; that of the memory itself is ``boosted``.
    """
    return {
        **item_json(cand.item),
        "text": cand.text,
        "passage": passage_json(cand),
        "relevance": cand.relevance,
        "boosted": cand.item.relevance,
        "score": finite_or_none(cand.score),
        "match_reasons": list(match_reasons(cand, answer)),
        "see_newer": cand.see_newer,
        "code": cand.code_note or None,
        "conflict": cand.conflict,
        **_value_json(named_fields(cand, answer)),
        "evidence": [evidence_json(reason) for reason in cand.evidence],
        "channels": retriever_ranks(cand),
    }


def recall_json(
    answer: Recall, *, trace: bool = False, candidates: int | None = MAX_CANDIDATES
) -> Json:
    """The whole answer; ``candidates`` limits the candidates per step of a trace."""
    query = answer.query
    out: Json = {
        "query": {
            **fields_json(query, "text now as_of k"),
            "most": dict(query.most),
            **fields_json(query, "max_tokens offset whole min_confidence min_relevance"),
            "filters": filters_json(query.filters),
        },
        **fields_json(answer, "profile strategy status reason confidence"),
        "confidence_reasons": [reason._asdict() for reason in answer.assessed],
        "insights": [hit_json(hit, answer) for hit in answer.insights],
        "items": [hit_json(hit, answer) for hit in answer.items],
        "raw": [hit_json(hit, answer) for hit in answer.raw],
        **fields_json(answer, "captions timelines relations evidences"),
        "order": [hit.item.id for hit in answer.hits],
        **fields_json(answer, "warnings degraded"),
        "nearest_miss": hit_json(answer.nearest_miss, answer) if answer.nearest_miss else None,
        "page": answer.page._asdict(),
    }
    if trace:
        out["trace"] = trace_json(answer, candidates=candidates)
    return out


def filters_json(filters: Filters) -> Json:
    """The filters that differ from the default."""
    default = Filters()
    fields = {name: getattr(filters, name) for name in Filters.__dataclass_fields__}
    return {
        name: _value_json(value)
        for name, value in fields.items()
        if value != getattr(default, name)
    }


def outcome_json(outcome: Remembered | Refused) -> Json:
    """Return the outcome of one of many drafts, which may be a refusal."""
    if not isinstance(outcome, Refused):
        return record_json(outcome)
    error = {"kind": outcome.rule, "message": outcome.message, "remedy": outcome.remedy}
    return {"status": "refused", "error": error}


def waiting_json(waiting: Waiting) -> Json:
    """Return a memory of the inbox: why it waits, and the fields that were given."""
    return {
        **fields_json(waiting, "id text state reason worth"),
        "since": iso(waiting.item.stored_at),
        "flags": list(waiting.item.flags),
        **fields_json(waiting.draft, "source source_class kind topic level speaker"),
    }


def entity_json(entity: Entity) -> Json:
    return {
        **fields_json(entity, "id kind name aliases mentions momentum"),
        "pace": pace_of(entity.momentum),
        "layers": dict(entity.layers),
        **fields_json(entity, "pinned last_seen_at"),
    }


def why_not_json(result: WhyNot) -> Json:
    return {
        **fields_json(result.item, "id text"),
        **fields_json(result, "returned stage reason score needed remedy"),
        "channels": [fields_json(look, "channel score needed why") for look in result.looks],
    }


def file_history_json(history: FileHistory, memories: Iterable[CodeMemory], preview: int) -> Json:
    """The history of a file, with the memories about it and the state of their code."""
    about = [
        {**_brief_json(one.item), "text": one.item.text[:preview], "code": one.code}
        for one in memories
    ]
    known = record_json(history._replace(items=()))
    del known["items"]
    return {**known, "memories": about}


def stale_json(found: Iterable[CodeMemory]) -> Json:
    """Memories whose code changed or is gone, each with the change."""

    def state_json(state: CodeState, since: datetime) -> Json:
        told = {"at": state.anchor.name, "of": state.anchor.lines, "why": state.describe(since)}
        return {**told, **state._asdict(), "anchor": state.anchor.text}

    return {
        "memories": [
            {**_brief_json(item), "code": [state_json(one, item.stored_at) for one in states]}
            for item, states in found
        ]
    }


def _brief_json(item: Item) -> Json:
    return {"id": item.id, "text": item.text, "when": iso(item.when)}


def smart_read_json(answer: SmartRead) -> Json:
    """A file as it was read: whole, or only the changes."""
    chunks = [
        {name: value for name, value in chunk._asdict().items() if value is not None}
        for chunk in answer.chunks
    ]
    return record_json(answer) | {"chunks": chunks}


def provenance_json(found: Provenance) -> Json:
    """The provenance of a memory: every link on the path, nearest first."""
    return {
        **fields_json(found.item, "id text"),
        "edges": [
            {
                "depth": edge.depth,
                "from": edge.link.src._asdict(),
                "type": edge.link.type,
                "to": edge.link.dst._asdict(),
                **fields_json(edge.link, "weight confidence"),
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
            **fields_json(member, "item role weight"),
            **({"text": items[member.item].text} if member.item in items else {}),
        }
        for member in thread.members
    ]
    names = "id headline kind anchor lifecycle state created_at updated_at"
    return {**fields_json(thread, names), "members": members, **fields_json(thread, "events")}


def insight_json(branch: InsightNode) -> Json:
    """An insight with its points, their sources, and the insights below it."""
    item = branch.insight
    return {
        **fields_json(item, "id kind"),
        "title": item.caption,
        "text": item.text,
        "stale": branch.stale,
        **fields_json(item, "trust confidence"),
        "made_by": item.metadata.get("made_by"),
        "points": [
            {
                "text": point.text,
                "sources": [fields_json(node, "id text") for node in point.sources],
            }
            for point in branch.points
        ],
        "below": [insight_json(node) for node in branch.below],
    }


def error_kind(error: BethinkError) -> str:
    """Return an error's kind as programs read it."""
    if isinstance(error, Refused):
        return error.rule
    name = type(error).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


def error_json(message: str, remedy: str, kind: str) -> Json:
    return {"error": {"kind": kind, "message": message, "remedy": remedy}}


def record_json(record: NamedTuple) -> Json:
    """A named tuple with all its fields; lists and times as JSON has them."""
    return mapping_json(record._asdict())


def fields_json(value: object, names: str) -> Json:
    """Some fields of a value, by their names; lists, times and numbers as JSON has them."""
    return {name: _value_json(getattr(value, name)) for name in names.split()}


def _value_json(value: object) -> Any:
    if isinstance(value, Mapping):
        return {name: _value_json(part) for name, part in value.items()}
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, float):
        return finite_or_none(value)
    if hasattr(value, "_asdict"):
        return _value_json(value._asdict())
    return [_value_json(part) for part in value] if isinstance(value, tuple) else value


def mapping_json(table: Mapping[str, object]) -> Json:
    """A mapping with its values as JSON has them."""
    return {name: _value_json(value) for name, value in table.items()}
