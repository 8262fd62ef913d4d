"""Makes the record that is stored: the item, its words, entities and links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import ceil

from recollect.dates import TimeSpan, date_words, find_times
from recollect.ingest.admit import DERIVED, SELF_SPEAKING, trust_of
from recollect.ingest.classify import kind_of
from recollect.ingest.duplicates import Compared
from recollect.ingest.entity_words import GIVEN_NAMES, OPENERS
from recollect.ingest.extract import MOST_ENTITIES, mentions_of, spellings
from recollect.ingest.facts import Fact
from recollect.ingest.settle import fact_in
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Collision, Draft, Entity, Item, Link, Node
from recollect.ports import Embedding, Mention, Record
from recollect.text import caption

PIN_FROM = 0.9
CORE_FROM = 4.0  # what was felt so strongly, either way, belongs to the core
_MOST_DATES = 4
_EXACT = ("minute", "hour", "part", "day")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a batch knows beyond the single draft: the parents' trust, the entities met so
    far by their keys, and the facts that its drafts state, by their ids."""

    parents: dict[str, int] = field(default_factory=dict)
    known: dict[str, Entity] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)


def build(
    compared: Compared,
    embedding: Embedding | None,
    collisions: Sequence[Collision],
    around: Surroundings,
    ctx: WriteContext,
) -> Record:
    """The record of one new memory."""
    piece = compared.piece
    draft = piece.draft
    mentions = mentions_of(draft, around.known, entities_met(draft, ctx))
    times = find_times(draft.text, draft.occurred_at or ctx.now)
    item = make_item(piece, mentions, times, around, ctx)
    fact = fact_in(draft, item.kind)
    slot = (None, None) if fact is None else (fact.subject, fact.attribute)
    if fact is not None:
        around.facts[item.id] = fact
    tokens = tokens_of(draft.text, embedding, ctx)
    item = item._replace(tokens=tokens, subject=slot[0], attribute=slot[1])
    if draft.id is not None:
        around.parents[item.id] = item.trust  # a later draft may name it as its parent
    return Record(
        item,
        piece.fingerprint,
        about=about(item, mentions, times),
        sketch=compared.sketch,
        embedding=embedding,
        model=ctx.embedder.model if embedding and ctx.embedder else "",
        mentions=mentions,
        links=_links(piece, collisions, ctx.now),
        key=draft.key,
        skip_duplicate=not (piece.turn or compared.said_before),
    )


def entities_met(draft: Draft, ctx: WriteContext) -> list[Entity]:
    """Entities of the store that the text may name.

    Asked for are words that can be names: plain words in small letters are not, given
    names apart, nor are words that open sentences. Most texts need not ask at all.
    """
    telling = []
    for raw in draft.text.split():
        word = raw.rstrip(".,;:!?")
        lower = word.lower()
        if (lower != word or not word.isalpha() or word in GIVEN_NAMES) and lower not in OPENERS:
            telling.append(word)
            telling += spellings(word)
    return ctx.store.find_entities(" ".join(telling), MOST_ENTITIES) if telling else []


def make_item(
    piece: Prepared,
    mentions: Sequence[Mention],
    times: Sequence[TimeSpan],
    around: Surroundings,
    ctx: WriteContext,
) -> Item:
    """The item a draft becomes; what nobody said is filled in by rules."""
    draft = piece.draft
    happened, ended = times_of(draft, times)
    return Item(
        id=piece.id,
        text=draft.text,
        stored_at=ctx.now,
        source=draft.source,
        source_class=draft.source_class,
        writer=ctx.actor,
        level=draft.level,
        kind=draft.kind or kind_of(piece.folded, draft.level),
        layer=draft.layer,
        topic=draft.topic,
        tier=draft.tier or ("core" if abs(draft.emotion) >= CORE_FROM else "general"),
        tags=tuple(dict.fromkeys(draft.tags)),
        entities=tuple(mention.entity.id for mention in mentions),
        caption=_caption(draft),
        original=draft.original,
        language=draft.language,
        speaker=draft.speaker,
        session=draft.session,
        seq=draft.seq,
        parent=draft.parent,
        trust=_trust(piece, around),
        integrity=draft.integrity,
        credibility=draft.credibility,
        classification=draft.classification,
        emotion=float(draft.emotion),
        importance=float(draft.importance),
        confidence=float(draft.confidence),
        pinned=is_pinned(draft),
        protected=is_protected(draft),
        occurred_at=happened,
        occurred_end=ended,
        valid_from=draft.valid_from,
        valid_to=draft.valid_to,
        flags=piece.flags,
        metadata=draft.metadata,
    )


def lineage(draft: Draft) -> tuple[str, ...]:
    """The memories a draft says it was made from, each once."""
    parent = (draft.parent,) if draft.parent else ()
    return tuple(dict.fromkeys((*parent, *draft.derives_from)))


def trust_by_id(ids: Iterable[str], ctx: WriteContext) -> dict[str, int]:
    """How far the memories of these ids are trusted; strangers are left out."""
    wanted = sorted(set(ids))
    found = ctx.store.get(wanted) if wanted else {}
    return {item.id: item.trust for item in found.values()}


def is_pinned(draft: Draft) -> bool:
    """Whether a memory is pinned: who speaks for itself may, also by its importance."""
    if draft.source_class in SELF_SPEAKING and draft.importance >= PIN_FROM:
        return True
    return draft.pinned and draft.source_class in (*SELF_SPEAKING, "agent")


def is_protected(draft: Draft) -> bool:
    """A caveat, and a learning that stands in for the memories it was made from."""
    return draft.layer == "caveat" or (draft.layer == "learning" and draft.source_class == DERIVED)


def _trust(piece: Prepared, around: Surroundings) -> int:
    """No more than the source allows, any parent has, or a suspicious text deserves."""
    draft = piece.draft
    trust = trust_of(draft)
    if "injection" in piece.flags and draft.source_class not in SELF_SPEAKING:
        trust = min(trust, 1)
    return min([trust, *(around.parents.get(parent, trust) for parent in lineage(draft))])


def times_of(draft: Draft, times: Sequence[TimeSpan]) -> tuple[datetime | None, datetime | None]:
    """When it happened: as given or, where the text opens with a date, then."""
    if draft.occurred_at is not None or not times:
        return draft.occurred_at, draft.occurred_end
    opening = times[0]
    is_heading = not draft.text[: opening.at].strip("[(*# ")
    if opening.relative or opening.granularity not in _EXACT or not is_heading:
        return None, draft.occurred_end
    return opening.start, draft.occurred_end or opening.end


def _caption(draft: Draft) -> str | None:
    if draft.caption is not None or draft.level != "raw":
        return draft.caption
    return caption(draft.text, draft.speaker)


def tokens_of(text: str, embedding: Embedding | None, ctx: WriteContext) -> int:
    """What the text costs in tokens: as the embedder counted, or by its length."""
    if embedding is not None and embedding.token_count:
        return embedding.token_count
    if embedding is not None and ctx.embedder is not None:
        return ctx.embedder.count_tokens(text)
    return ceil(len(text.encode()) / 4)


def about(item: Item, mentions: Sequence[Mention], times: Sequence[TimeSpan]) -> str:
    """Words around a text that it should be found by as well."""
    text = item.text.casefold()
    said = [item.speaker or "", item.topic or "", *item.tags]
    names = (mention.entity.name for mention in mentions)
    named = [name for name in names if name.casefold() not in text]
    own = [date_words(item.occurred_at)] if item.occurred_at else []
    told = [date_words(span.start, span.granularity) for span in times[:_MOST_DATES]]
    return " ".join(filter(None, dict.fromkeys((*said, *named, *own, *told))))


def _links(piece: Prepared, collisions: Sequence[Collision], now: datetime) -> tuple[Link, ...]:
    me = Node("item", piece.id)
    links = [
        Link(me, Node("item", near.id), "similar_to", weight=near.similarity, created_at=now)
        for near in collisions
    ]
    links += [
        Link(me, Node("item", parent), "derives_from", created_at=now)
        for parent in lineage(piece.draft)
    ]
    return tuple(links)
