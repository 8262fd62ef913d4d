"""Changes a memory: the next revision of the same id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from recollect.dates import find_times
from recollect.errors import ModelError, Refused
from recollect.ingest.build import (
    PIN_FROM,
    Surroundings,
    about,
    entities_met,
    lineage,
    make_item,
    times_of,
    tokens_of,
    trust_by_id,
)
from recollect.ingest.entity_vectors import with_entity_vectors
from recollect.ingest.extract import mentions_of
from recollect.ingest.prepare import prepare
from recollect.ingest.release import cut_loose
from recollect.ingest.settle import FACT, fact_in, settled
from recollect.ingest.sketch import sketch
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Draft, Item
from recollect.ports import Embedding, Record
from recollect.text import fold, spoken

MOST_RELEVANCE = 10.0
_FIXED = frozenset(
    {"id", "key", "level", "session", "seq", "parent", "derives_from", "source_class"}
)
_FIELDS = frozenset(Draft._fields)
_COPIED = _FIELDS & set(Item._fields)


def revise(item: Item, changes: Mapping[str, Any], ctx: WriteContext) -> Item:
    """The item as it stands after the changes; the old revision stays in the history.

    The same rules hold as for a new memory. A caveat stays protected; a pin is undone
    by ``pinned=False`` or, where importance made it, by lowering the importance.
    """
    for name in changes:
        if name not in _FIELDS or name in _FIXED:
            allowed = ", ".join(sorted(_FIELDS - _FIXED))
            raise Refused(f"{name!r} cannot be changed", remedy=f"one of {allowed}")
    draft = Draft(
        **{name: getattr(item, name) for name in _COPIED}, derives_from=_made_from(item, ctx)
    )
    if "text" in changes and changes["text"] != item.text:
        # What the old words spoke of is read anew from the new ones.
        draft = draft._replace(
            entities=_given(item, draft, str(changes["text"]), ctx),
            caption=None if item.level == "raw" else item.caption,
            metadata={key: value for key, value in item.metadata.items() if key != FACT},
        )._replace(**_without_read_times(item))
    if "pinned" not in changes:
        by_importance = item.pinned and item.importance >= PIN_FROM
        draft = draft._replace(pinned=item.pinned and not by_importance)
    piece = prepare(draft._replace(**_as_tuples(changes), id=item.id), ctx)
    return _store_revision(item, piece, pinned=changes.get("pinned"), ctx=ctx)


def judge(item: Item, step: float, ctx: WriteContext) -> Item:
    """The item found more relevant by ``step``, or less; within ten of neutral."""
    relevance = max(-MOST_RELEVANCE, min(MOST_RELEVANCE, item.relevance + step))
    if relevance == item.relevance:
        return item
    return revise(item._replace(relevance=relevance), {}, ctx)


def changeable() -> frozenset[str]:
    """The fields of a memory that a revision may change."""
    return _COPIED - _FIXED


def _given(item: Item, draft: Draft, text: str, ctx: WriteContext) -> tuple[str, ...]:
    """The entities that somebody named: neither the rules nor, if the new text has them no
    more, a model can have read them in the old one."""
    unread = draft._replace(entities=())
    read = {one.entity.id for one in mentions_of(unread, {}, entities_met(unread, ctx))}
    return tuple(
        entity
        for entity in item.entities
        if entity not in read and (not _names(entity, item.text) or _names(entity, text))
    )


def _names(entity: str, text: str) -> bool:
    key = re.escape(entity.partition(":")[2])
    return re.search(rf"(?<!\w){key}(?!\w)", fold(text)) is not None


def _without_read_times(item: Item) -> dict[str, Any]:
    """The times of an item as somebody gave them: none where its text opens with them."""
    told = Draft(item.text)
    start, end = times_of(told, find_times(item.text, item.stored_at))
    if start is None or start != item.occurred_at:
        return {}
    return {
        "occurred_at": None,
        "occurred_end": None if end == item.occurred_end else item.occurred_end,
    }


def _as_tuples(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()
    }


def _store_revision(item: Item, piece: Prepared, *, pinned: bool | None, ctx: WriteContext) -> Item:
    draft = piece.draft
    mentions = mentions_of(draft, {}, entities_met(draft, ctx))
    times = find_times(draft.text, draft.occurred_at or ctx.now)
    around = Surroundings(parents=trust_by_id(lineage(draft), ctx))
    made = make_item(piece, mentions, times, around, ctx)
    subject, attribute = _slot(item, draft, made.kind)
    revised = made._replace(
        rev=item.rev + 1,
        stored_at=item.stored_at,
        kind=draft.kind or item.kind,
        protected=item.protected or made.protected,
        pinned=made.pinned if pinned is None else bool(pinned) and made.pinned,
        relevance=item.relevance,
        subject=subject,
        attribute=attribute,
        status=item.status,
    )
    embedding = _embedding(spoken(draft), ctx)
    revised = revised._replace(tokens=tokens_of(draft.text, embedding, ctx))
    record = Record(
        revised,
        piece.fingerprint,
        about=about(revised, mentions, times),
        sketch=() if draft.session is not None else sketch(piece.folded),
        embedding=embedding,
        model=ctx.embedder.model if embedding and ctx.embedder else "",
        mentions=mentions,
        skip_duplicate=False,
    )
    if draft.text != item.text:
        record = _settled_anew(item, record, draft, ctx)
    ctx.store.put(with_entity_vectors([record], ctx), actor=ctx.actor, now=ctx.now)
    return ctx.store.get([item.id])[item.id]


def _settled_anew(item: Item, record: Record, draft: Draft, ctx: WriteContext) -> Record:
    """The revision with what it supersedes; what only the old words replaced comes back."""
    revised = record.item
    fact = fact_in(draft, revised.kind)
    if (item.subject, item.attribute) != (revised.subject, revised.attribute):
        cut_loose(item, ctx)
        revised = revised._replace(status=ctx.store.get([item.id])[item.id].status)
    if fact is None or revised.status != "active":
        return replace(record, item=revised)
    # Said now, whenever the memory itself was first stored.
    said = replace(record, item=revised._replace(stored_at=ctx.now))
    ((judged,), _) = settled([said], [()], {item.id: fact}, ctx)
    return replace(judged, item=judged.item._replace(stored_at=item.stored_at))


def _slot(item: Item, draft: Draft, kind: str) -> tuple[str | None, str | None]:
    """What its fact is about: read anew where the words are new."""
    if draft.text == item.text:
        return item.subject, item.attribute
    fact = fact_in(draft, kind)
    return (None, None) if fact is None else (fact.subject, fact.attribute)


def _made_from(item: Item, ctx: WriteContext) -> tuple[str, ...]:
    """What it derives from: no revision is trusted more than that."""
    links = ctx.store.links_of([item.id], ("derives_from",), incoming=False)
    return tuple(link.dst.id for link in links if link.dst.kind == "item")


def _embedding(text: str, ctx: WriteContext) -> Embedding | None:
    if ctx.embedder is None:
        return None
    try:
        return ctx.embedder.embed([text])[0]
    except ModelError:
        return None  # stored without a vector; a reindex makes it
