"""Revise a memory, undo its last change, and undo supersession.

An undo is itself a recorded change. Removing a memory reactivates what it superseded. Every
superseded memory has a superseding one: removing the middle of a chain first joins its
ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest

from bethink.core.json_values import Json, iso
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.errors import ModelError, Refused
from bethink.ingest import record_builder
from bethink.ingest.admission import PreparedDraft, WriteContext, lists_to_tuples, prepare
from bethink.ingest.deduplication import minhash_sketch
from bethink.ingest.entity_extraction import extract_mentions
from bethink.ingest.inbox import is_sealed
from bethink.ingest.links import embed_new_entities, entities_without_vector
from bethink.ingest.updates import JUDGED, link_updates
from bethink.lang.dates import find_times
from bethink.model import NO_UPDATE, UPDATE_LINKS, Draft, Item, Link, Node
from bethink.model.item import MAX_RELEVANCE, REFUSED, WAITING
from bethink.ports import Event, Record, Store

MODEL_FACT_KEY = "fact"  # metadata key of a fact extracted by a model
SUPERSEDED_SINCE = "since "  # prefix of the context of a link whose target left recall
CALLER_SOURCE = "caller"  # the source of a link made by a caller
DEFAULT_LINK_WEIGHT = 0.5  # of a link made by a caller
_SUPERSEDES_TYPE = ("supersedes",)
_MAX_CHAIN_LENGTH = 64


def find_reactivatable(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """Return the memories that only these keep out of recall."""
    leaving = {item.id for item in ctx.store.items.get(ids).values() if _is_active(item)}
    return [
        item.id
        for item in _superseded_by(leaving, ctx)
        if item.status == "superseded"
        and not is_superseded_by_active(item.id, {*ids, *leaving}, ctx)
    ]


def reactivate_superseded(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """Reactivate what only these memories supersede; return the reactivated ids.

    Call it before they end, so that one of the two is active at any time.
    """
    reactivated = find_reactivatable(ids, ctx)
    if reactivated:
        ctx.store.items.set_status(reactivated, "active", actor=ctx.actor, now=ctx.now)
    return reactivated


def restore_memories(ids: Sequence[str], ctx: WriteContext, *, actor: str = "") -> list[str]:
    """Restore ended memories, found by their meaning as before; return the ids of those.

    An import embeds live memories only, so that one that had ended comes back without a vector.
    """
    restored = ctx.store.items.restore(ids, actor=actor or ctx.actor, now=ctx.now)
    if ctx.embedder is None or not restored:
        return restored
    model = ctx.embedder.model
    known = ctx.store.vectors.embeddings(restored, model)
    lacking = [one for one in ctx.store.items.get(restored).values() if one.id not in known]
    if lacking:
        with suppress(ModelError):  # found by words only, until a reindex
            made = record_builder.embed_memories(lacking, ctx.embedder)
            by_id = {item.id: one for item, one in zip(lacking, made, strict=True)}
            revisions = {item.id: item.rev for item in lacking}
            ctx.store.vectors.set_embeddings(model, by_id, only=revisions)
    return restored


def supersede_again(ids: Sequence[str], ctx: WriteContext) -> list[str]:
    """Supersede again what these memories supersede, once they are restored."""
    active = {item.id for item in ctx.store.items.get(ids).values() if _is_active(item)}
    superseded = [item.id for item in _superseded_by(active, ctx) if item.status == "active"]
    if superseded:
        ctx.store.items.set_status(superseded, "superseded", actor=ctx.actor, now=ctx.now)
    return superseded


def reactivate_if_free(item_id: str, ctx: WriteContext) -> bool:
    """Reactivate a memory that nothing supersedes any more; return whether it was."""
    item = ctx.store.items.get([item_id])[item_id]
    if item.status != "superseded" or is_superseded_by_active(item_id, set(), ctx):
        return False
    ctx.store.items.set_status([item_id], "active", actor=ctx.actor, now=ctx.now)
    return True


def bridge_supersession(ids: Sequence[str], ctx: WriteContext) -> None:
    """Link what supersedes these to what they superseded, before their links go."""
    leaving = set(ids)
    superseding = ctx.store.graph.links_of(sorted(leaving), _SUPERSEDES_TYPE) if leaving else []
    bridged = []
    for upper in superseding:
        if upper.dst.id not in leaving or upper.src.id in leaving or not removes_from_recall(upper):
            continue
        since = str(upper.context or "")
        context = (
            since if since.startswith(SUPERSEDED_SINCE) else f"{SUPERSEDED_SINCE}{iso(ctx.now)}"
        )
        bridged += [
            Link(upper.src, Node("item", lower), "supersedes", context=context, created_at=ctx.now)
            for lower in _remaining_superseded(upper.dst.id, leaving, ctx)
            if lower != upper.src.id
        ]
    if bridged:
        ctx.store.graph.add_links(bridged, now=ctx.now)


def detach_supersession(item: Item, ctx: WriteContext) -> None:
    """Remove the links that were made from a memory's words, which it no longer says."""
    bridge_supersession([item.id], ctx)
    links = ctx.store.graph.links_of([item.id], (*UPDATE_LINKS, "contradicts"))
    by_words = [
        link
        for link in links
        if link.context == JUDGED or (link.context or "").startswith(SUPERSEDED_SINCE)
    ]
    if not by_words:
        return
    # Not by the caller: an undo of the memory at the other end passes over it.
    ctx.store.graph.remove_links(by_words, actor="updates", now=ctx.now)
    for item_id in sorted({link.dst.id for link in by_words}):
        reactivate_if_free(item_id, ctx)


def removes_from_recall(link: Link) -> bool:
    """Check whether the link's target left recall because of it.

    By the rules, by maintenance or by the caller, but not in part.
    """
    by_rule = link.context is None or link.context.startswith(SUPERSEDED_SINCE)
    return by_rule or link.source == CALLER_SOURCE


def _superseded_ids(ids: Iterable[str], ctx: WriteContext) -> set[str]:
    """Return what these took out of recall themselves; one superseded in part never left it."""
    wanted = set(ids)
    if not wanted:
        return set()
    links = ctx.store.graph.links_of(sorted(wanted), _SUPERSEDES_TYPE, incoming=False)
    return {link.dst.id for link in links if link.src.id in wanted and removes_from_recall(link)}


def _remaining_superseded(start: str, leaving: set[str], ctx: WriteContext) -> list[str]:
    """Return what remains of all that a memory superseded, also through removed ones."""
    seen, frontier, found = {start}, {start}, []
    while frontier:
        fresh = _superseded_ids(frontier, ctx) - seen
        seen |= fresh
        found += sorted(fresh - leaving)
        frontier = fresh & leaving
    return found


def _is_active(item: Item) -> bool:
    return item.live_to is None and item.status == "active"


def _superseded_by(ids: set[str], ctx: WriteContext) -> list[Item]:
    """Return what these supersede, also through memories that have ended by now."""
    found: dict[str, Item] = {}
    frontier = set(ids)
    for _ in range(_MAX_CHAIN_LENGTH):
        next_ids = _superseded_ids(frontier, ctx)
        items = ctx.store.items.get(sorted(next_ids - found.keys() - ids)) if next_ids else {}
        found |= items
        frontier = {item.id for item in items.values() if item.live_to is not None}
        if not frontier:
            break
    return [item for item in found.values() if item.live_to is None]


def is_superseded_by_active(item_id: str, leaving: set[str], ctx: WriteContext) -> bool:
    """Check whether an active memory supersedes it, directly or through others."""
    seen, frontier = {item_id}, {item_id}
    while frontier:
        links = ctx.store.graph.links_of(sorted(frontier), _SUPERSEDES_TYPE)
        superseding = {
            link.src.id for link in links if link.dst.id in frontier and removes_from_recall(link)
        }
        frontier = superseding - leaving - seen
        seen |= frontier
        if any(_is_active(item) for item in ctx.store.items.get(sorted(frontier)).values()):
            return True
    return False


_IMMUTABLE_FIELDS = frozenset(
    {"id", "key", "level", "session", "seq", "parent", "derives_from", "source_class"}
)
_DRAFT_FIELDS = frozenset(Draft._fields)
_COPIED_FIELDS = _DRAFT_FIELDS & set(Item._fields)


def revise(
    item: Item, changes: Mapping[str, object], ctx: WriteContext, *, unless_same: bool = False
) -> Item:
    """Store the next revision of an item with these changes; the old one is kept.

    The same rules hold as for a new memory. A caveat stays protected; a pin is undone by
    ``pinned=False`` or, where importance made it, by lowering the importance. With
    ``unless_same`` nothing is stored where it has these values already.
    """
    for name in changes:
        if name not in _DRAFT_FIELDS or name in _IMMUTABLE_FIELDS:
            allowed = ", ".join(sorted(_DRAFT_FIELDS - _IMMUTABLE_FIELDS))
            raise Refused(f"{name!r} cannot be changed", remedy=f"one of {allowed}")
    # No revision is trusted more than what it derives from.
    parents = ctx.store.graph.links_of([item.id], ("derives_from",), incoming=False)
    draft = Draft(
        **{name: getattr(item, name) for name in _COPIED_FIELDS},
        derives_from=tuple(link.dst.id for link in parents if link.dst.kind == "item"),
    )
    if "text" in changes and changes["text"] != item.text:
        # Fields extracted from the old text are extracted again from the new one.
        draft = draft._replace(
            entities=_explicit_entities(item, draft, str(changes["text"]), ctx),
            caption=None if item.level == "raw" else item.caption,
            metadata={key: value for key, value in item.metadata.items() if key != MODEL_FACT_KEY},
        )._replace(**_clear_parsed_times(item))
    if "pinned" not in changes:
        by_importance = item.pinned and item.importance >= record_builder.PIN_IMPORTANCE
        draft = draft._replace(pinned=item.pinned and not by_importance)
    prepared = prepare(draft._replace(**lists_to_tuples(changes), id=item.id), ctx)
    named = changes.keys() & _COPIED_FIELDS
    if unless_same and all(getattr(prepared.draft, one) == getattr(item, one) for one in named):
        return item
    pinned = prepared.draft.pinned if "pinned" in changes else None
    return _store_revision(item, prepared, pinned=pinned, ctx=ctx)


def adjust_relevance(item: Item, step: float, ctx: WriteContext) -> Item:
    """Raise or lower an item's relevance by ``step``, within ten of neutral."""
    relevance = max(-MAX_RELEVANCE, min(MAX_RELEVANCE, item.relevance + step))
    if relevance == item.relevance:
        return item
    return revise(item._replace(relevance=relevance), {}, ctx)


def changeable_fields() -> frozenset[str]:
    """Return the fields of a memory that a revision may change."""
    return _COPIED_FIELDS - _IMMUTABLE_FIELDS


def _explicit_entities(item: Item, draft: Draft, text: str, ctx: WriteContext) -> tuple[str, ...]:
    """Return the entities that were given explicitly, not extracted from the old text.

    Entities that a model read in the old text are dropped if the new text lacks them.
    """
    bare = draft._replace(entities=())
    (known,) = record_builder.find_known_entities([bare], ctx)
    extracted = {mention.entity.id for mention in extract_mentions(bare, known, ctx.find_names)}
    return tuple(
        entity
        for entity in item.entities
        if entity not in extracted
        and (not _mentions_entity(entity, item.text) or _mentions_entity(entity, text))
    )


def _mentions_entity(entity: str, text: str) -> bool:
    key = re.escape(entity.partition(":")[2])
    return re.search(rf"(?<!\w){key}(?!\w)", fold(text)) is not None


def _clear_parsed_times(item: Item) -> Json:
    """Clear occurrence times that were parsed from the old text's opening date."""
    draft = Draft(item.text)
    start, end = record_builder.occurrence_times(draft, find_times(item.text, item.stored_at))
    if start is None or start != item.occurred_at:
        return {}
    return {
        "occurred_at": None,
        "occurred_end": None if end == item.occurred_end else item.occurred_end,
    }


def _store_revision(
    item: Item, prepared: PreparedDraft, *, pinned: bool | None, ctx: WriteContext
) -> Item:
    draft = prepared.draft
    mentions = extract_mentions(
        draft, record_builder.find_known_entities([draft], ctx)[0], ctx.find_names
    )
    times = find_times(draft.text, draft.occurred_at or ctx.now)
    batch = record_builder.BatchContext(
        parent_trust=record_builder.trust_by_id(record_builder.parent_ids(draft), ctx)
    )
    rebuilt = record_builder.make_item(prepared, mentions, times, batch, ctx)
    unchanged = draft.text == item.text
    revised = rebuilt._replace(
        rev=item.rev + 1,
        stored_at=item.stored_at,
        kind=draft.kind or item.kind,
        protected=item.protected or rebuilt.protected,
        pinned=rebuilt.pinned if pinned is None else pinned and rebuilt.pinned,
        relevance=item.relevance,
        subject=item.subject if unchanged else None,
        attribute=item.attribute if unchanged else None,
        status=item.status,
    )
    ((embedding,), _) = record_builder.embed_or_defer([prepared], ctx)
    revised = revised._replace(tokens=record_builder.count_tokens(draft.text, embedding, ctx))
    record = Record(
        revised,
        prepared.fingerprint,
        about=record_builder.search_context(revised, mentions, times),
        sketch=() if draft.session is not None else minhash_sketch(prepared.folded),
        embedding=embedding,
        model=ctx.embedder.model if embedding and ctx.embedder else "",
        mentions=mentions,
        skip_duplicate=False,
    )
    record = replace(record, judged=True) if unchanged else _rejudge(item, record, ctx)
    missing = entities_without_vector([record], ctx)
    ctx.store.items.put(embed_new_entities([record], missing, ctx), actor=ctx.actor, now=ctx.now)
    return ctx.store.items.get([item.id])[item.id]


def _rejudge(item: Item, record: Record, ctx: WriteContext) -> Record:
    """Judge what the new words update; restore what only the old words superseded."""
    detach_supersession(item, ctx)
    status = ctx.store.items.get([item.id])[item.id].status
    # Judged as stated now, whenever the memory was first stored.
    restated = replace(record, item=record.item._replace(status=status, stored_at=ctx.now))
    ((judged,), _) = link_updates([restated], [()], ctx)
    return replace(judged, item=judged.item._replace(stored_at=item.stored_at))


MAX_CHANGES_READ = 50


class Undo(NamedTuple):
    """An undo, planned or done: the memory, the change and a description."""

    item: str
    change: Event
    doing: str


def last_run(actor: str, store: Store) -> str | None:
    """Return the run that is the last change by this actor; None where that is another one."""
    changes = store.admin.changes(item=None, actor=actor, limit=MAX_CHANGES_READ)
    undone = {change.detail for change in changes if change.kind == _RUN_UNDONE}
    for change in changes:
        if change.kind == _RAN and change.detail not in undone:
            return change.detail
        if change.kind in _UNDO_DESCRIPTIONS and change.kind not in _LINK_CHANGES:
            return None
    return None


def last_change(item: str | None, actor: str, ctx: WriteContext) -> Undo:
    """Find the last undoable change of a memory or, without one, of this actor."""
    by_actor = None if item is not None else actor
    changes = ctx.store.admin.changes(item=item, actor=by_actor, limit=MAX_CHANGES_READ)
    undone_runs = {change.detail for change in changes if change.kind == _RUN_UNDONE}
    for change, before in zip_longest(changes, changes[1:]):
        if change.kind == "erased":
            raise Refused(
                f"{change.item} was erased; that cannot be undone",
                remedy="undo an earlier change of another memory by its id: bethink undo ID",
            )
        if change.kind == _RAN and change.detail not in undone_runs:
            raise Refused(
                f"the last change by {actor} is a run over many memories",
                remedy=f"undo it as a whole: bethink undo {change.detail}",
            )
        doing = _UNDO_DESCRIPTIONS.get(change.kind)
        if doing is None or change.item is None or _is_effect_of_link(change, before):
            continue
        if item is None and _was_undone_by_run(change.item, undone_runs, ctx):
            continue
        if change.kind not in _LINK_CHANGES or _is_own_link(change, actor, ctx):
            if change.kind in ("ended", "revised"):
                how = _inbox_state_before(change.item, ctx)
                doing = {WAITING: "return it to the inbox", REFUSED: "refuse it"}.get(how, doing)
            return Undo(change.item, change, doing)
    which = f"of {item}" if item is not None else f"by {actor!r}"
    raise Refused(f"there is no change {which} to undo", remedy="bethink events shows all changes")


# Lines of the journal about a run that was requested or undone.
_RAN, _RUN_UNDONE = "ran", "run_undone"
_UNDO_DESCRIPTIONS = {
    "stored": "forget it",
    "imported": "forget it",
    "restored": "forget it again",
    "ended": "restore it",
    "revised": "restore the previous revision",
    "status": "restore the previous status",
    "linked": "remove the link",
    "unlinked": "add the link again",
}
_LINK_CHANGES = ("linked", "unlinked")


def _is_effect_of_link(change: Event, before: Event | None) -> bool:
    """Check whether the link right before changed the status: then the link is undone."""
    if before is None or change.kind != "status":
        return False
    by_link = {"superseded": "linked", "active": "unlinked"}.get(change.detail)
    return (before.kind, before.detail) == (by_link, f"supersedes {change.item}")


def _was_undone_by_run(item: str, runs: set[str], ctx: WriteContext) -> bool:
    """Check whether undoing one of these runs took the memory back."""
    found = ctx.store.items.get([item]).get(item) if runs else None
    return found is not None and (found.ended_by or "").endswith(tuple(runs))


def _is_own_link(change: Event, actor: str, ctx: WriteContext) -> bool:
    """Check whether this actor made or removed the link, by itself and not by a rule."""
    if change.actor != actor:
        return False
    link = _journalled_link(change)
    if link.type == NO_UPDATE:
        said = ctx.store.graph.unlinked([link.src.id])
        return change.kind == "unlinked" and (link.src.id, link.dst.id) in said
    known = ctx.store.graph.links_of([link.src.id], (link.type,), incoming=False)
    existing = next((one for one in known if one.dst == link.dst), None)
    if change.kind == "linked":
        return existing is not None and existing.source == CALLER_SOURCE
    ends = ctx.store.items.get([link.src.id, link.dst.id])
    return existing is None and len([one for one in ends.values() if one.live_to is None]) == 2


def _journalled_link(change: Event) -> Link:
    """Return the link of a journal entry, with the usual weight."""
    relation, _, other = change.detail.partition(" ")
    ends = Node("item", change.item or ""), Node("item", other)
    return Link(*ends, relation, DEFAULT_LINK_WEIGHT, source=CALLER_SOURCE)


def _undo_link(change: Event, ctx: WriteContext) -> None:
    """Remove the link, or add it again; the memory it supersedes returns, or leaves."""
    link = _journalled_link(change)
    if change.kind == "linked":
        ctx.store.graph.remove_links([link], actor=ctx.actor, now=ctx.now)
        if link.type in _SUPERSEDES_TYPE:
            reactivate_if_free(link.dst.id, ctx)
        return
    if link.type == NO_UPDATE:
        log, said = ctx.store.admin.log, change.detail
        log("linked", item=change.item, actor=ctx.actor, detail=said, now=ctx.now)
        return
    ctx.store.graph.add_links([link], actor=ctx.actor, now=ctx.now)
    if link.type in _SUPERSEDES_TYPE:
        supersede_again([link.src.id], ctx)


def apply_undo(undo: Undo, ctx: WriteContext) -> Item:
    """Apply the undo and return the resulting memory."""
    item, kind = undo.item, undo.change.kind
    if kind in ("ended", "revised") and (how := _inbox_state_before(item, ctx)):
        if kind == "ended":
            ctx.store.admin.refile([item], how=how, actor=ctx.actor, now=ctx.now)
        else:
            reactivate_superseded([item], ctx)
            ctx.store.items.end([item], how=how, actor=ctx.actor, now=ctx.now)
    elif kind in ("stored", "imported", "restored"):
        reactivate_superseded([item], ctx)
        ctx.store.items.end([item], how="undone", actor=ctx.actor, now=ctx.now)
    elif kind == "ended":
        restore_memories([item], ctx)
        supersede_again([item], ctx)
    elif kind == "status":
        _restore_status(undo, ctx)
    elif kind in _LINK_CHANGES:
        _undo_link(undo.change, ctx)
    else:
        _restore_previous_revision(item, ctx)
    return ctx.store.items.get([item])[item]


def _inbox_state_before(item: str, ctx: WriteContext) -> str:
    """Return what a memory becomes when the last decision about it in the inbox is undone."""
    revisions = ctx.store.items.history(item)
    last = revisions[-1]
    if last.live_to is None:
        return WAITING if len(revisions) > 1 and is_sealed(revisions[-2]) else ""
    if last.ended_by == WAITING:
        return REFUSED if is_sealed(last) else ""
    return WAITING if last.ended_by == REFUSED or is_sealed(last) else ""


def _restore_status(undo: Undo, ctx: WriteContext) -> None:
    """Restore the status before the last change; the initial status is active."""
    changes = ctx.store.admin.changes(item=undo.item, actor=None, limit=MAX_CHANGES_READ)
    earlier = [change for change in changes if change.kind == "status"][1:]
    before = earlier[0].detail if earlier else "active"
    ctx.store.items.set_status([undo.item], before, actor=ctx.actor, now=ctx.now)  # type: ignore[arg-type]


def _restore_previous_revision(item: str, ctx: WriteContext) -> None:
    revisions = ctx.store.items.history(item)
    if len(revisions) < 2:
        raise Refused(f"{item} has no earlier revision")
    now, before = revisions[-1], revisions[-2]
    changes = {
        name: getattr(before, name)
        for name in changeable_fields()
        if getattr(before, name) != getattr(now, name)
    }
    revise(now, changes, ctx)
