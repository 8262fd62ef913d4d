"""Build the record to store: item, kind, search words, entities and links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from bethink.core.arrays import np
from bethink.core.characters import estimate_tokens
from bethink.core.dataclass import dataclass, field
from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.passages import split_passages
from bethink.core.sentences import caption
from bethink.core.speakers import Captioned, own_caption, searched_text
from bethink.core.words import fold
from bethink.errors import ModelError
from bethink.ingest.admission import (
    DERIVED_SOURCE,
    TRUSTED_SOURCES,
    PreparedDraft,
    WriteContext,
    trust_of,
)
from bethink.ingest.deduplication import ComparedDraft
from bethink.ingest.entity_extraction import (
    MAX_ENTITIES,
    SENTENCE_ENDS,
    canonical_key,
    code_spellings,
    extract_mentions,
)
from bethink.ingest.links import link_items
from bethink.lang.dates import TimeSpan, date_words, find_times
from bethink.lang.words import is_ordinary, load_words
from bethink.model import Collision, Draft, Entity, Item, Level, Link
from bethink.model.anchor import anchor_name, is_found
from bethink.model.fields import GIVEN_FIELDS, field_names
from bethink.ports import Embedder, Embedding, Mention, Record, is_remote, unrelated_similarity

_SEARCHED_CHARACTERS = 1_000  # characters: the first sentences decide the kind


def _kind_phrases(section: str) -> list[tuple[str, str]]:
    """Each phrase of a section of ``kinds.toml`` and its kind, in order."""
    return [
        (kind, f" {' '.join(phrase.split())} ")
        for kind, phrases in load_words("kinds")[section].items()
        for phrase in phrases.split("/")
    ]


_OPENING_PHRASES = _kind_phrases("openings")
_OPENINGS = tuple(phrase for _, phrase in _OPENING_PHRASES)
# By the first word of each phrase, so that only possible phrases are searched.
_RULES_BY_FIRST_WORD: dict[str, list[tuple[int, str, str]]] = {}
for _place, (_kind, _phrase) in enumerate(_kind_phrases("contained")):
    _RULES_BY_FIRST_WORD.setdefault(_phrase.split()[0], []).append((_place, _kind, _phrase))


def classify_kind(folded: str, level: Level) -> str:
    """Classify a folded text by its words; ``note`` where no rule matches."""
    if level != "item":
        return "episode" if level == "raw" else "insight"
    if folded.endswith("?"):
        return "question"
    padded = f" {folded[:_SEARCHED_CHARACTERS].replace('’', chr(39))} "
    if padded.startswith(_OPENINGS):
        return next(kind for kind, phrase in _OPENING_PHRASES if padded.startswith(phrase))
    matches = [
        (rank, kind)
        for word in _RULES_BY_FIRST_WORD.keys() & padded.split()
        for rank, kind, phrase in _RULES_BY_FIRST_WORD[word]
        if phrase in padded
    ]
    return min(matches)[1] if matches else "note"


_PLAIN_KINDS = frozenset(("note", "fact", "tool"))
_STEPS = lazy_pattern(r"(?:^|\s)1[.)]\s+\S.*?\s2[.)]\s+\S", re.DOTALL)

# Fields that a rule completes; of the others a draft's value becomes the item's.
_RULED_FIELDS = frozenset(
    ("id", "kind", "tier", "tags", "entities", "caption", "trust", "pinned",
     "occurred_at", "occurred_end")
)  # fmt: skip
_NUMBER_FIELDS = field_names(GIVEN_FIELDS, "number")
_COPIED_FIELDS = tuple(
    name for name in field_names(GIVEN_FIELDS) if name not in {*_RULED_FIELDS, *_NUMBER_FIELDS}
)
PIN_IMPORTANCE = 0.9
CORE_EMOTION = 4.0  # an emotion this strong, either way, makes a core memory
_MAX_DATES = 4
_MAX_NAME_WORDS = 4
_NOT_YET = (4, None)  # above any classification
_EXACT_GRANULARITIES = ("minute", "hour", "part", "day")


@dataclass(frozen=True, slots=True)
class BatchContext:
    """Context shared by a batch: parents' trust, those of them that wait, entities.

    Those of ``stored`` the store has, by the id of the memory that may mention them. ``named``
    are those of the memories of the batch so far, by their names, each with its lowest
    classification. ``candidates`` are the words of each memory that can be names.
    """

    parent_trust: dict[str, int] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    stored: dict[str, list[Entity]] = field(default_factory=dict)
    named: dict[str, dict[str, tuple[int, Entity]]] = field(default_factory=dict)
    candidates: dict[str, list[str]] = field(default_factory=dict)

    def known_to(self, prepared: PreparedDraft) -> list[Entity]:
        """Return the entities that a memory may mention, as if it were remembered alone."""
        draft, found = prepared.draft, self.stored.get(prepared.id, [])
        if not self.named:
            return found
        longest: dict[str, tuple[int, Entity]] = {}
        for name in self.named.keys() & _runs_of_words(self.candidates.get(prepared.id, ())):
            for key, (level, entity) in self.named[name].items():
                if level <= draft.classification and len(name) > longest.get(key, (0,))[0]:
                    longest[key] = len(name), entity
        known = {entity.id for entity in found}
        new = sorted((-n, key) for key, (n, _) in longest.items() if key not in known)
        return [*found, *(longest[key][1] for _, key in new)]

    def find_known(self, new: Sequence[PreparedDraft], ctx: WriteContext) -> None:
        """Find the stored entities that memories may mention, all at once."""
        names = [_possible_names(one.draft) for one in new]
        known = find_known_entities([one.draft for one in new], ctx, names)
        ids = [one.id for one in new]
        self.candidates.update(zip(ids, names, strict=True))
        self.stored.update(zip(ids, known, strict=True))

    def add_named(self, mentions: Iterable[Mention], level: int) -> None:
        """Make the entities of a memory known to the next ones of the batch."""
        for entity, _, _ in mentions:
            for name in (entity.id.partition(":")[2], *entity.aliases):
                known = self.named.setdefault(name, {})
                if level < known.get(entity.id, _NOT_YET)[0]:
                    known[entity.id] = level, entity


def _runs_of_words(names: Iterable[str]) -> Iterator[str]:
    """Yield every run of up to four words as a key of an entity may be."""
    words = fold(" ".join(names)).split()
    for at, run in enumerate(words):
        yield run
        for word in words[at + 1 : at + _MAX_NAME_WORDS]:
            run = f"{run} {word}"  # noqa: PLW2901 - it grows
            yield run


def build_record(
    compared: ComparedDraft,
    embedding: Embedding | None,
    collisions: Sequence[Collision],
    batch: BatchContext,
    ctx: WriteContext,
) -> Record:
    """Build the record of one new memory."""
    prepared = compared.prepared
    draft = prepared.draft
    mentions = extract_mentions(draft, batch.known_to(prepared), ctx.find_names)
    batch.add_named(mentions, draft.classification)
    times = find_times(draft.text, draft.occurred_at or ctx.now)
    item = make_item(prepared, mentions, times, batch, ctx)
    item = item._replace(tokens=count_tokens(draft.text, embedding, ctx))
    batch.parent_trust[item.id] = item.trust  # a later draft may name it as its parent
    return Record(
        item,
        prepared.fingerprint,
        about=search_context(item, mentions, times),
        sketch=compared.sketch,
        embedding=embedding,
        model=ctx.embedder.model if embedding and ctx.embedder else "",
        mentions=mentions,
        links=_build_links(prepared, collisions, ctx.now),
        key=draft.key,
        skip_duplicate=not (prepared.turn or compared.is_restatement),
    )


def find_known_entities(
    drafts: Sequence[Draft], ctx: WriteContext, names: Sequence[Sequence[str]] | None = None
) -> list[list[Entity]]:
    """Find for each draft the stored entities that its text, or these words of it, may mention."""
    candidates = [_possible_names(draft) for draft in drafts] if names is None else names
    known: list[list[Entity]] = [[] for _ in drafts]
    # Names of secret memories must not show in what a public one is said to mention.
    for level in sorted({draft.classification for draft in drafts}):
        places = [n for n, one in enumerate(drafts) if one.classification == level]
        places = [place for place in places if candidates[place]]
        texts = tuple(" ".join(candidates[place]) for place in places)
        found = ctx.store.graph.find_entities(texts, MAX_ENTITIES, max_classification=level)
        for place, entities in zip(places, found, strict=True):
            known[place] = entities
    return known


def _possible_names(draft: Draft) -> list[str]:
    """Return the words of a draft that can be names, and the keys of given entities.

    Ordinary words are left out, except with a capital inside of a sentence or before another
    capital ("New York"), so most texts need no look-up at all.
    """
    candidates = [key for text in draft.entities if (key := canonical_key(text))]
    words = draft.text.split()
    for i, raw in enumerate(words):
        if raw.islower() and is_ordinary(raw):
            continue  # as below, for most words
        word = raw.rstrip(".,;:!?")
        if is_ordinary(word):
            inside = i > 0 and not words[i - 1].endswith(SENTENCE_ENDS)
            before_capital = i + 1 < len(words) and words[i + 1][0].isupper()
            if not (word[:1].isupper() and (inside or before_capital)):
                continue
        candidates += (word, *code_spellings(word))
    return candidates


def make_item(
    prepared: PreparedDraft,
    mentions: Sequence[Mention],
    times: Sequence[TimeSpan],
    batch: BatchContext,
    ctx: WriteContext,
) -> Item:
    """Build the item of a draft; fields that were not given are filled in by rules."""
    draft = prepared.draft
    happened, ended = occurrence_times(draft, times)
    uncaptioned = draft.caption is None and draft.level == "raw"
    made: Json = {name: getattr(draft, name) for name in _COPIED_FIELDS}
    made |= {name: float(getattr(draft, name)) for name in _NUMBER_FIELDS}
    return Item(
        **made, id=prepared.id, stored_at=ctx.now, writer=ctx.actor, flags=prepared.flags,
        kind=draft.kind or _kind_of(prepared, times),
        tier=draft.tier or ("core" if abs(draft.emotion) >= CORE_EMOTION else "general"),
        tags=tuple(dict.fromkeys(draft.tags)),
        entities=tuple(mention.entity.id for mention in mentions),
        caption=caption(draft.text, draft.speaker) if uncaptioned else draft.caption,
        trust=_effective_trust(prepared, batch),
        pinned=is_pinned(draft), protected=is_protected(draft),
        occurred_at=happened, occurred_end=ended,
    )  # fmt: skip


def _kind_of(prepared: PreparedDraft, times: Sequence[TimeSpan]) -> str:
    """Classify a draft by its words, then by its form: numbered steps, a day at its start."""
    draft = prepared.draft
    kind = classify_kind(prepared.folded, draft.level)
    if kind in _PLAIN_KINDS and _STEPS.search(draft.text[:_SEARCHED_CHARACTERS]):
        return "playbook"
    if kind == "note" and times and times[0].granularity == "day":
        return "event" if len(draft.text[: times[0].at].split()) <= 1 else kind
    return kind


def parent_ids(draft: Draft) -> tuple[str, ...]:
    """Return the ids of the memories a draft was made from, each once."""
    parent = (draft.parent,) if draft.parent else ()
    return tuple(dict.fromkeys((*parent, *draft.derives_from)))


def trust_by_id(ids: Iterable[str], ctx: WriteContext) -> dict[str, int]:
    """Return the trust of the memories with these ids; unknown ids are left out."""
    sorted_ids = sorted(set(ids))
    found = ctx.store.items.get(sorted_ids) if sorted_ids else {}
    return {item.id: item.trust for item in found.values()}


def is_pinned(draft: Draft) -> bool:
    """Check whether a memory is pinned: explicitly, or by high importance.

    Importance pins only for trusted sources; agents may pin explicitly.
    """
    if draft.source_class in TRUSTED_SOURCES and draft.importance >= PIN_IMPORTANCE:
        return True
    return draft.pinned and draft.source_class in (*TRUSTED_SOURCES, "agent")


def is_protected(draft: Draft) -> bool:
    """Check for a caveat, or a derived learning that replaces its source memories."""
    return draft.layer == "caveat" or (
        draft.layer == "learning" and draft.source_class == DERIVED_SOURCE
    )


def _effective_trust(prepared: PreparedDraft, batch: BatchContext) -> int:
    """Return the lowest of: the source's trust, every parent's, and 1 for an injection."""
    draft = prepared.draft
    trust = trust_of(draft)
    if "injection" in prepared.flags and draft.source_class not in TRUSTED_SOURCES:
        trust = min(trust, 1)
    return min([trust, *(batch.parent_trust.get(parent, trust) for parent in parent_ids(draft))])


def occurrence_times(
    draft: Draft, times: Sequence[TimeSpan]
) -> tuple[datetime | None, datetime | None]:
    """Return when it occurred: as given, or from a date that opens the text."""
    if draft.occurred_at is not None or not times:
        return draft.occurred_at, draft.occurred_end
    opening = times[0]
    is_heading = not draft.text[: opening.at].strip("[(*# ")
    if opening.relative or opening.granularity not in _EXACT_GRANULARITIES or not is_heading:
        return None, draft.occurred_end
    return opening.start, draft.occurred_end or opening.end


def texts_to_embed(memories: Sequence[Captioned]) -> tuple[list[str], list[list[int]]]:
    """Return the texts that are embedded for memories, and the lengths of the long ones' parts.

    What stands before a text (its speaker, a caption) stands before each of its passages.
    """
    texts: list[str] = []
    weights: list[list[int]] = []
    for memory in memories:
        whole, spans = searched_text(memory), split_passages(memory.text)
        before = whole[: len(whole) - len(memory.text)]
        texts += [before + memory.text[start:end] for start, end in spans] or [whole]
        weights.append([end - start for start, end in spans])
    return texts, weights


def embed_memories(memories: Sequence[Captioned], embedder: Embedder) -> list[Embedding]:
    """Embed memories, long ones by passage, all in one call.

    The vector of a long memory is the mean of its passages', by their length.
    """
    texts, weights = texts_to_embed(memories)
    made = iter(embedder.embed(texts))
    return [
        _join_passages(tuple(islice(made, len(lengths))), lengths) if lengths else next(made)
        for lengths in weights
    ]


def embed_or_defer(
    new: Sequence[PreparedDraft], ctx: WriteContext
) -> tuple[Sequence[Embedding | None], tuple[str, ...]]:
    """Embed drafts; if the model is down, return no vectors and "embedding" as pending."""
    # A vector given for a text is not that of the text with something redacted.
    ready = ctx.vectors or {}
    given = [None if one.redacted else ready.get(one.id) for one in new]
    drafts = [one.draft for one, known in zip(new, given, strict=True) if known is None]
    if ctx.embedder is None or not drafts:
        return given, ()
    try:
        made = iter(embed_memories(drafts, ctx.embedder))
    except ModelError:
        return given, ("embedding",)  # a reindex adds it
    if is_remote(ctx.embedder):
        unrelated_similarity(ctx.embedder)  # asked once, before a transaction needs it
    return [known or next(made) for known in given], ()


def _join_passages(passages: tuple[Embedding, ...], lengths: Sequence[int]) -> Embedding:
    """Make the embedding of a whole memory from its passages."""
    total = np.asarray(lengths, dtype=np.float32) @ np.stack([one.vector for one in passages])
    length = float(np.sqrt(total @ total))
    return Embedding(total / np.float32(length) if length else total, passages=passages)


def count_tokens(text: str, embedding: Embedding | None, ctx: WriteContext) -> int:
    """Count a text's tokens: by the embedder, or estimated from its length."""
    counted = 0 if embedding is None else embedding.token_count
    if embedding is not None and not counted and ctx.embedder is not None:
        counted = int(ctx.embedder.count_tokens(text))  # a true would not match its hash
    return estimate_tokens(text, counted)


def search_context(item: Item, mentions: Sequence[Mention], times: Sequence[TimeSpan]) -> str:
    """Return extra words to index a text under: caption, speaker, topic, tags, entities, dates.

    And the code it is tied to.
    """
    text = item.text.casefold()
    labels = [own_caption(item), item.speaker or "", item.topic or "", *item.tags]
    tied = (anchor_name(anchor) for anchor in item.anchors if not is_found(anchor))
    names = (*(mention.entity.name for mention in mentions), *tied)
    entity_names = [name for name in names if name.casefold() not in text]
    own_date = [date_words(item.occurred_at)] if item.occurred_at else []
    mentioned_dates = [date_words(span.start, span.granularity) for span in times[:_MAX_DATES]]
    return " ".join(
        filter(None, dict.fromkeys((*labels, *entity_names, *own_date, *mentioned_dates)))
    )


def _build_links(
    prepared: PreparedDraft, collisions: Sequence[Collision], now: datetime
) -> tuple[Link, ...]:
    similar = (
        link_items((prepared.id, one.id), "similar_to", now, weight=one.similarity or 0.0)
        for one in collisions
    )
    parents = parent_ids(prepared.draft)
    derived = (link_items((prepared.id, parent), "derives_from", now) for parent in parents)
    return (*similar, *derived)
