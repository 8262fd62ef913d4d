"""The write walk: from drafts to memories, top to bottom."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import ModelError, NotFound, Refused, TooLarge
from recollect.ingest.admit import BATCH_DRAFTS, DERIVED
from recollect.ingest.build import Surroundings, build, lineage, trust_by_id
from recollect.ingest.duplicates import (
    KEPT_FIRST,
    Compared,
    deduplicated,
    near_collisions,
    repeated,
)
from recollect.ingest.entity_vectors import with_entity_vectors
from recollect.ingest.prepare import prepare
from recollect.ingest.relate import related
from recollect.ingest.settle import settled
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Collision, Draft, Remembered
from recollect.ports import Embedding
from recollect.text import spoken

__all__ = ["WriteContext", "remember"]

TRANSACTION = 500


def remember(drafts: Sequence[Draft], ctx: WriteContext) -> list[Remembered]:
    """Stores drafts and says of each, in order, what became of it.

    A draft that breaks a rule raises Refused before any of them is stored.
    """
    if len(drafts) > BATCH_DRAFTS:
        raise TooLarge("the batch", limit=BATCH_DRAFTS, actual=len(drafts), unit="drafts")
    _refuse_derived(drafts, ctx)

    # 1. Limits, characters, secrets, pasted output: all that can refuse a draft.
    prepared = [prepare(draft, ctx) for draft in drafts]

    # 2. A key used before answers for its draft, whether stored or earlier in the batch.
    known, again = repeated(prepared, ctx)
    waiting = [piece for at, piece in enumerate(prepared) if at not in known and at not in again]

    # 3. What is there already is not stored twice.
    with ctx.store.snapshot():
        fresh, answers = deduplicated(waiting, ctx)

    # 4. Embed, extract, relate and store, some hundred to a transaction.
    around = Surroundings(_parents_trust(waiting, ctx))
    for start in range(0, len(fresh), TRANSACTION):
        answers |= _stored(fresh[start : start + TRANSACTION], around, ctx)
    told = [known.get(at) or answers[prepared[again.get(at, at)].id] for at in range(len(prepared))]
    return [
        Remembered(one.id, "repeated", redacted=prepared[at].redacted) if at in again else one
        for at, one in enumerate(told)
    ]


def _stored(
    fresh: Sequence[Compared], around: Surroundings, ctx: WriteContext
) -> dict[str, Remembered]:
    """Stores new memories in one transaction; answers by id."""
    embeddings, pending = _embedded([spoken(compared.piece.draft) for compared in fresh], ctx)
    with ctx.store.snapshot():
        near = [
            near_collisions(compared, embedding, ctx)
            for compared, embedding in zip(fresh, embeddings, strict=True)
        ]
        records = [
            build(compared, embedding, collisions, around, ctx)
            for compared, embedding, collisions in zip(fresh, embeddings, near, strict=True)
        ]
        records, met = settled(records, near, around.facts, ctx)
        records, met = related(records, met, ctx)
    records = with_entity_vectors(records, ctx)
    kept = ctx.store.put(records, actor=ctx.actor, now=ctx.now)
    answers: dict[str, Remembered] = {}
    for compared, record, collisions, outcome in zip(fresh, records, met, kept, strict=True):
        piece = compared.piece
        if outcome.outcome != "stored":
            # Another process was quicker: what it stored is the answer.
            same = Collision(outcome.id, "exact", 1.0, KEPT_FIRST, piece.draft.text)
            found = (same,) if outcome.outcome == "duplicate" else ()
            answers[piece.id] = Remembered(outcome.id, outcome.outcome, found, piece.redacted)
            continue
        names = tuple(mention.entity.name for mention in record.mentions)
        answers[piece.id] = Remembered(
            outcome.id, "stored", collisions, piece.redacted, names, piece.flags, pending
        )
    return answers


def _embedded(
    texts: Sequence[str], ctx: WriteContext
) -> tuple[Sequence[Embedding | None], tuple[str, ...]]:
    """Embeddings, and what is still to be done: a model that is down refuses nothing."""
    if ctx.embedder is None:
        return [None] * len(texts), ()
    try:
        return ctx.embedder.embed(texts), ()
    except ModelError:
        return [None] * len(texts), ("embedding",)


def _parents_trust(prepared: Sequence[Prepared], ctx: WriteContext) -> dict[str, int]:
    """How far what drafts were made from is trusted; a stranger among that is refused."""
    trust = trust_by_id((one for piece in prepared for one in lineage(piece.draft)), ctx)
    earlier: set[str] = set()
    for piece in prepared:
        for parent in piece.draft.derives_from:
            if parent not in trust and parent not in earlier:
                raise NotFound(f"there is no memory {parent!r} to derive from")
        earlier.add(piece.id)
    return trust


def _refuse_derived(drafts: Sequence[Draft], ctx: WriteContext) -> None:
    if not ctx.deriving and any(draft.source_class == DERIVED for draft in drafts):
        raise Refused(
            f"the source class {DERIVED!r} is for what maintenance makes",
            remedy="name what it was made from by derives_from, and its real source class",
        )
