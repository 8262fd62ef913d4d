"""The inbox: whether a draft waits for a review, and how it is stored until then.

What waits is a revision that ended when it began and has no text, word, vector, entity or
link: its draft is in the metadata. So no search, count or job can see it, while it is synced,
exported and erased as any memory. Accepting it stores its draft as the next revision.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from bethink.core.json_values import Json, iso
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold, jaccard
from bethink.errors import ModelError
from bethink.ingest import deduplication as dedup
from bethink.ingest.admission import PreparedDraft, WriteContext, lists_to_tuples, to_plain_json
from bethink.ingest.admission import trust_of as source_trust
from bethink.ingest.record_builder import BatchContext, parent_ids
from bethink.ingest.worth import form_of, is_ours, judge
from bethink.model import Draft, Filters, Item, Waiting
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Embedding, Record, Scope

SEALED = "bethink.waiting"  # metadata key: the draft of a memory that waits, and why
_LEFT_OUT = frozenset(("id", "key"))
_DEFAULTS = Draft("")


# What a text must seem worth: a captured one, and one stored on purpose (decision 64).
CAPTURED_WORTH, STATED_WORTH = 0.5, 0.05


class Held(NamedTuple):
    """Why a draft is held back, its worth, and whether it waits or is left out."""

    reason: str
    worth: float | None = None
    state: str = WAITING


def find_held(
    fresh: Sequence[dedup.ComparedDraft],
    embeddings: Sequence[Embedding | None],
    batch: BatchContext,
    ctx: WriteContext,
) -> dict[str, Held]:
    """Return which new drafts are held back, by id: for their source, or their parents."""
    held: dict[str, Held] = {}
    for compared, embedding in zip(fresh, embeddings, strict=True):
        prepared = compared.prepared
        draft = prepared.draft
        waiting = [one for one in parent_ids(draft) if one in batch.waiting or one in held]
        rule = (ctx.review or {}).get(draft.source_class, "accept")
        if waiting:
            held[prepared.id] = Held(f"derived from {waiting[0]}, which waits")
        elif rule != "accept" and (found := _review(prepared, embedding, rule, ctx)):
            held[prepared.id] = found
    return held


def _review(
    prepared: PreparedDraft, embedding: Embedding | None, rule: str, ctx: WriteContext
) -> Held | None:
    """Judge a draft of a source under review; None where it is accepted."""
    draft, model = prepared.draft, ctx.embedder.model if ctx.embedder else ""
    captured = draft.level == "raw" and bool(draft.session) and draft.source_class != "import"
    nearest, likeness = _nearest(prepared, embedding, ctx) if captured else (None, 0.0)
    if nearest is not None and _likeness(nearest.text, draft.text) >= dedup.NEAR_THRESHOLD:
        return Held(f"repeats {nearest.id}", 0.0, REFUSED)
    worth = judge(form_of(draft.text, prepared.flags, likeness), embedding, model)
    least = CAPTURED_WORTH if captured else STATED_WORTH
    low = embedding is not None and is_ours(model) and worth.share < least
    share = round(worth.share, 3)
    if captured and low:
        return Held(worth.reason, share, REFUSED)
    if rule == "wait":
        return Held(f"from a source under review ({draft.source_class})", share)
    suspicious = low or "injection" in prepared.flags
    return Held(worth.reason or "instructions to a model", share) if suspicious else None


def _nearest(
    prepared: PreparedDraft, embedding: Embedding | None, ctx: WriteContext
) -> tuple[Item | None, float]:
    """Return the stored memory that is most like a draft, and the cosine of the two."""
    if embedding is None or ctx.embedder is None:
        return None, 0.0
    scope = Scope(Filters(max_classification=prepared.draft.classification), ctx.now)
    with suppress(ModelError):  # there are vectors of another model only
        found = ctx.store.search.vector(embedding.vector, ctx.embedder.model, 1, scope).matches
        return (found[0].item, found[0].score) if found else (None, 0.0)
    return None, 0.0


def _likeness(*texts: str) -> float:
    return jaccard(*(dedup.shingles_of(fold(text)) for text in texts))


def sealed_record(prepared: PreparedDraft, held: Held, ctx: WriteContext) -> Record:
    """Return the record of a draft that waits."""
    draft = prepared.draft
    given: Json = {
        name: iso(value) if isinstance(value, datetime) else to_plain_json(value)
        for name, value in draft._asdict().items()
        if name not in _LEFT_OUT and value != getattr(_DEFAULTS, name)
    }
    sealed = {"draft": given, "reason": held.reason, "worth": held.worth}
    # Of trust 0 it would make every recall look for untrusted memories.
    item = Item(
        prepared.id, "", ctx.now, draft.source, draft.source_class, ctx.actor, level=draft.level,
        kind=draft.kind or "note", trust=max(1, source_trust(draft)), flags=prepared.flags,
        classification=draft.classification, metadata={**draft.metadata, SEALED: sealed},
        live_to=ctx.now, ended_by=held.state,
    )  # fmt: skip
    # What repeats a text of another classification is seen by others.
    level = "" if draft.classification == _DEFAULTS.classification else f"{draft.classification}:"
    key = draft.key or f"{WAITING}:{level}{prepared.fingerprint}"
    return Record(item, prepared.fingerprint, key=key, skip_duplicate=False)


def is_sealed(item: Item) -> bool:
    """Whether a memory has only its draft, which waits or was refused."""
    return not item.text and SEALED in item.metadata


def unseal(item: Item) -> Waiting:
    """Return a memory that waits, or was refused, as the inbox shows it."""
    state = REFUSED if item.ended_by == REFUSED else WAITING
    if not is_sealed(item):  # it was accepted, and that was undone
        named = {name: getattr(item, name) for name in Draft._fields if hasattr(item, name)}
        return Waiting(
            item.id, item.text, "accepted, then undone", None, state, item, Draft(**named)
        )
    # Who it is from and who may see it is what the memory says: an import has no word in that.
    own = {name: getattr(item, name) for name in ("source", "source_class", "classification")}
    try:
        sealed = item.metadata[SEALED]
        draft = Draft(**{**lists_to_tuples(sealed["draft"]), **own})
        "".join((draft.text, *parent_ids(draft)))  # raises where they are no texts
        return Waiting(item.id, draft.text, sealed["reason"], sealed["worth"], state, item, draft)
    except (TypeError, LookupError, AttributeError):
        return Waiting(item.id, "", "it cannot be read", None, state, item, Draft("", **own))
