"""The inbox: whether a draft waits for a review, and how it is stored until then.

What waits is a revision that ended when it began and has no text, word, vector, entity or
link: its draft is in the metadata. So no search, count or job can see it, while it is synced,
exported and erased as any memory. Accepting it stores its draft as the next revision.

What it seems worth is a logistic model over its form and its meaning, fitted by
``training/fit_worth.py``: with the terms of our encoder's vector where it made one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import cache
from pathlib import Path

from bethink.core.json_values import Json, iso
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold, jaccard
from bethink.errors import ModelError
from bethink.ingest import deduplication as dedup
from bethink.ingest.admission import PreparedDraft, WriteContext, lists_to_tuples, to_plain_json
from bethink.ingest.admission import trust_of as source_trust
from bethink.ingest.record_builder import BatchContext, classify_kind, parent_ids
from bethink.model import Draft, Filters, Item, Waiting
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Embedding, Record, Scope

WEIGHTS = Path(__file__).parent / "worth.json"
_MEANING = "meaning"
_PLAIN_KINDS = ("note", "question", "episode", "insight")
_MAX_COUNTED = 4  # names of particular things
_MAX_WORDS = 8  # longer is not better
# What each term says against keeping a text.
SAYS = {
    "length": "short", "brevity": "a few words", "plain": "few plain words",
    "identifiers": "names nothing in particular", "numbers": "numbers instead of words",
    "symbols": "like the output of a program", "end": "no end of a sentence",
    "question": "a question", "longest": "like a path or a value", "capital": "like a fragment",
    "kind": "no decision, rule or fact", "instructions": "instructions to a model",
    "repeats": "nearly known already", _MEANING: "says what is being done, not what holds",
}  # fmt: skip
FEATURES = tuple(name for name in SAYS if name != _MEANING)


class Worth(NamedTuple):
    """What a text seems worth, 0 to 1, and why."""

    share: float
    reason: str


def form_of(text: str, flags: tuple[str, ...] = (), nearest: float = 0.0) -> list[float]:
    """Return the features of a text's form; ``nearest`` is the cosine of what is most like it."""
    words = text.split()
    bare = [word.strip(".,;:!?()\"'«»¿¡`") for word in words]
    plain = [word for word in bare if word.isalpha()]
    named = [w for w in bare if not w.isalpha() and any(map(str.isalpha, w))]
    named += [word for word in plain[1:] if not word.islower()]
    shown = [char for char in text if not char.isspace()] or [" "]
    odd = sum(not (char.isalnum() or char in ".,;:'’\"-?!()") for char in shown)
    kind = classify_kind(fold(text), "item")
    last = text.rstrip()[-1:]
    return [
        math.log1p(min(_MAX_WORDS, len(words))),
        1.0 / max(1, len(words)),
        len(plain) / max(1, len(words)),
        min(_MAX_COUNTED, len(named)) / _MAX_COUNTED,
        sum(any(map(str.isdigit, word)) for word in words) / max(1, len(words)),
        odd / len(shown),
        float(last in {".", "!", "。"}),
        float(last == "?"),
        math.log1p(max(map(len, words), default=0)),
        float(text[:1].isupper()),
        float(kind not in _PLAIN_KINDS),
        float("injection" in flags),
        max(0.0, nearest - 0.5),
    ]


@cache
def _weights() -> Json:
    read: Json = json.loads(WEIGHTS.read_text("utf-8"))
    return read


def is_ours(model: str) -> bool:
    """Whether the vectors of a model are those that the weights were fitted to."""
    return bool(model == _weights()["model"])


def judge(form: list[float], embedding: Embedding | None = None, model: str = "") -> Worth:
    """Judge a text by its form and, where our encoder made a vector of it, its meaning."""
    known = _weights()
    head = known["with_meaning" if embedding is not None and is_ours(model) else "form"]
    columns = zip(FEATURES, head["weights"], head["means"], form, strict=True)
    terms = {name: weight * (value - mean) for name, weight, mean, value in columns}
    if head is known["with_meaning"] and embedding is not None:
        found = sum(w * float(v) for w, v in zip(known["vector"], embedding.vector, strict=True))
        terms[_MEANING] = found * known["scale"] - head["meaning_mean"]
    total = head["bias"] + sum(terms.values())
    told = [SAYS[name] for name in sorted(terms, key=terms.__getitem__)[:2] if terms[name] < 0]
    return Worth(1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, total)))), ", ".join(told))


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
