"""Write pipeline: from drafts to stored memories, top to bottom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from bethink.core.dataclass import replace
from bethink.errors import NotFound, Refused, TooLarge
from bethink.ingest.admission import (
    DERIVED_SOURCE,
    MAX_BATCH_DRAFTS,
    PreparedDraft,
    WriteContext,
    prepare,
)
from bethink.ingest.deduplication import (
    KEPT_FIRST,
    ComparedDraft,
    deduplicate,
    find_near_duplicates,
    find_repeated_keys,
)
from bethink.ingest.inbox import Held, find_held, sealed_record
from bethink.ingest.links import (
    add_links,
    embed_new_entities,
    entities_ahead,
    entities_without_vector,
)
from bethink.ingest.record_builder import BatchContext, build_record, embed_or_defer, parent_ids
from bethink.ingest.updates import link_updates
from bethink.model import Collision, Draft, Remembered
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Embedding, Record

TRANSACTION_SIZE = 500
_HELD_STATUS: dict[str, Literal["waiting", "left_out"]] = {WAITING: "waiting", REFUSED: "left_out"}


def remember(drafts: Sequence[Draft], ctx: WriteContext) -> list[Remembered]:
    """Store drafts and report the outcome of each, in order.

    A draft that breaks a rule raises Refused before any of them is stored.
    """
    if len(drafts) > MAX_BATCH_DRAFTS:
        raise TooLarge("the batch", limit=MAX_BATCH_DRAFTS, actual=len(drafts), unit="drafts")
    _refuse_derived(drafts, ctx)

    # 1. Check limits, characters, secrets and pasted output; only this can refuse a draft.
    return _remember_prepared([prepare(draft, ctx) for draft in drafts], ctx)


def _remember_prepared(prepared: Sequence[PreparedDraft], ctx: WriteContext) -> list[Remembered]:
    # 2. Resolve repeated keys, of stored drafts and of earlier ones in the batch.
    known, repeats = find_repeated_keys(prepared, ctx)
    new_drafts = [
        piece
        for number, piece in enumerate(prepared)
        if number not in known and number not in repeats
    ]

    # 3. Find exact duplicates.
    with ctx.store.snapshot(at_once=False):
        fresh, answers = deduplicate(new_drafts, ctx)

    # 4. Embed, extract, link and store, some hundred per transaction.
    batch = _batch_of(new_drafts, ctx)
    with ctx.room(len(fresh)):
        for start in range(0, len(fresh), TRANSACTION_SIZE):
            answers |= _store_batch(fresh[start : start + TRANSACTION_SIZE], batch, ctx)
    results = [
        known.get(number) or answers[prepared[repeats.get(number, number)].id]
        for number in range(len(prepared))
    ]
    return [
        Remembered(result.id, "repeated", redacted=prepared[number].redacted)
        if number in repeats
        else result
        for number, result in enumerate(results)
    ]


def _store_batch(
    fresh: Sequence[ComparedDraft],
    batch: BatchContext,
    ctx: WriteContext,
    revisions: Mapping[str, int] | None = None,
) -> dict[str, Remembered]:
    """Store new memories in one transaction, as these revisions; return the outcomes by id."""
    embeddings, pending = embed_or_defer([compared.prepared for compared in fresh], ctx)
    held = find_held(fresh, embeddings, batch, ctx)
    waiting = [one.prepared for one in fresh if one.prepared.id in held]
    answers = store_held(waiting, held, ctx) if waiting else {}
    left = [n for n, one in enumerate(fresh) if one.prepared.id not in held]
    fresh, embeddings = [fresh[n] for n in left], [embeddings[n] for n in left]
    if not fresh:
        return answers
    records, merged = _build_records(fresh, embeddings, batch, ctx)
    if revisions:
        numbered = [(one, one.item._replace(rev=revisions[one.item.id])) for one in records]
        records = [replace(one, item=item) for one, item in numbered]
    outcomes = ctx.store.items.put(records, actor=ctx.actor, now=ctx.now)
    for compared, record, collisions, outcome in zip(fresh, records, merged, outcomes, strict=True):
        prepared = compared.prepared
        if outcome.outcome != "stored":
            # Another process stored it first: return that memory.
            collision = Collision(outcome.id, "exact", 1.0, KEPT_FIRST, prepared.draft.text)
            found = (collision,) if outcome.outcome == "duplicate" else ()
            answers[prepared.id] = Remembered(outcome.id, outcome.outcome, found, prepared.redacted)
            continue
        names = tuple(mention.entity.name for mention in record.mentions)
        answers[prepared.id] = Remembered(
            outcome.id, "stored", collisions, prepared.redacted, names, prepared.flags, pending
        )
    return answers


def _build_records(
    fresh: Sequence[ComparedDraft],
    embeddings: Sequence[Embedding | None],
    batch: BatchContext,
    ctx: WriteContext,
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """Extract, compare and link new memories; return their records, and what each resembles."""
    with ctx.store.snapshot(at_once=False):
        new = [compared.prepared for compared in fresh]
        batch.find_known(new, ctx)
        near = [
            find_near_duplicates(compared, embedding, ctx)
            for compared, embedding in zip(fresh, embeddings, strict=True)
        ]
        records = [
            build_record(compared, embedding, collisions, batch, ctx)
            for compared, embedding, collisions in zip(fresh, embeddings, near, strict=True)
        ]
        entities_ahead(records, ctx)
        records, merged = add_links(records, near, ctx)
        records, merged = link_updates(records, merged, ctx)
        lacking = entities_without_vector(records, ctx)
    return embed_new_entities(records, lacking, ctx), merged


def store_held(
    new: Sequence[PreparedDraft], held: Mapping[str, Held], ctx: WriteContext
) -> dict[str, Remembered]:
    """Store what waits; what waited before, was refused or accepted is not stored again."""
    records = [sealed_record(prepared, held[prepared.id], ctx) for prepared in new]
    used = ctx.store.items.find_keys(tuple({str(one.key) for one in records}))
    known = {one.item.id: used[str(one.key)][0] for one in records if one.key in used}
    first = {one.key: one for one in reversed(records) if one.item.id not in known}
    new_ones = [one for one in records if first.get(one.key) is one]
    ctx.store.items.put(new_ones, actor=ctx.actor, now=ctx.now)
    answers = {}
    for prepared, record in zip(new, records, strict=True):
        own = known.get(prepared.id) or first[record.key].item.id
        answers[prepared.id] = Remembered(
            own,
            "repeated" if own != prepared.id else _HELD_STATUS[held[prepared.id].state],
            redacted=prepared.redacted,
            flags=prepared.flags,
        )
    return answers


def accept(
    waiting: Mapping[str, Draft], revisions: Mapping[str, int], ctx: WriteContext
) -> dict[str, Remembered]:
    """Store drafts that waited, by id, as the next revisions of what the inbox has of them.

    One that is a duplicate of another memory is not stored: it leaves the inbox.
    """
    drafts = {item: draft._replace(id=None, key=None) for item, draft in waiting.items()}
    prepared = [replace(prepare(drafts[item], ctx), id=item) for item in sorted(drafts)]
    batch = _batch_of(prepared, ctx)
    open_parents = {one for draft in drafts.values() for one in parent_ids(draft)} & batch.waiting
    if open_parents - waiting.keys():
        message = f"it is derived from {min(open_parents)}, which waits too"
        raise Refused(message, remedy="accept that one, too")
    batch.waiting.clear()
    with ctx.store.snapshot(at_once=False):
        fresh, answers = deduplicate(prepared, ctx)
    if answers:
        ctx.store.admin.refile(sorted(answers), how=REFUSED, actor=ctx.actor, now=ctx.now)
    for start in range(0, len(fresh), TRANSACTION_SIZE):
        part = fresh[start : start + TRANSACTION_SIZE]
        answers |= _store_batch(part, batch, ctx, revisions)
    return answers


def _batch_of(prepared: Sequence[PreparedDraft], ctx: WriteContext) -> BatchContext:
    """Look up the drafts' parents: their trust, and which wait; raise NotFound for an unknown."""
    parents = {parent_id for draft in prepared for parent_id in parent_ids(draft.draft)}
    read = ctx.read or {}
    lacking = sorted(parents - read.keys())
    found = {**read, **(ctx.store.items.get(lacking) if lacking else {})}
    known = [found[parent] for parent in sorted(parents & found.keys())]
    trust = {item.id: item.trust for item in known}
    earlier: set[str] = set()
    for draft in prepared:
        for parent in draft.draft.derives_from:
            if parent not in trust and parent not in earlier:
                raise NotFound(f"there is no memory {parent!r} to derive from")
        earlier.add(draft.id)
    return BatchContext(trust, {item.id for item in known if item.ended_by == WAITING})


def _refuse_derived(drafts: Sequence[Draft], ctx: WriteContext) -> None:
    if not ctx.deriving and any(draft.source_class == DERIVED_SOURCE for draft in drafts):
        raise Refused(
            f"the source class {DERIVED_SOURCE!r} is reserved for maintenance",
            remedy="set derives_from to its sources, and the real source class",
        )


def remember_each(drafts: Sequence[Draft], ctx: WriteContext) -> list[Remembered | Refused]:
    """Store each draft on its own terms; return an outcome or a refusal per draft."""
    answers: list[Remembered | Refused | None] = [None] * len(drafts)
    good: dict[int, PreparedDraft] = {}
    for number, draft in enumerate(drafts):
        try:
            _refuse_derived([draft], ctx)
            good[number] = prepare(draft, ctx)
        except Refused as refused:
            answers[number] = refused
    if good:
        _store_or_bisect(good, list(good), answers, ctx)
    return [answer for answer in answers if answer is not None]


def _store_or_bisect(
    prepared: Mapping[int, PreparedDraft],
    numbers: list[int],
    answers: list[Remembered | Refused | None],
    ctx: WriteContext,
) -> None:
    """Store in one batch; on a refusal, bisect to isolate the conflicting draft."""
    try:
        found = _remember_prepared([prepared[number] for number in numbers], ctx)
    except (Refused, NotFound) as error:
        if len(numbers) == 1:
            refused = Refused(error.message, remedy=error.remedy)
            answers[numbers[0]] = error if isinstance(error, Refused) else refused
            return
        middle = len(numbers) // 2
        _store_or_bisect(prepared, numbers[:middle], answers, ctx)
        _store_or_bisect(prepared, numbers[middle:], answers, ctx)
    else:
        for number, answer in zip(numbers, found, strict=True):
            answers[number] = answer
