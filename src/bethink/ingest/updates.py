"""Link a new memory to the older ones that it updates, as the model of two memories judges.

The nearest memories in meaning are read together with the new one, each pair once, at most
some per memory. Nothing leaves recall: a link holds the probability, and answers put the
newer memory first (`NewerFirst`).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from bethink.core.arrays import np
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import ends_in_question, sentences, without_questions
from bethink.errors import ModelError
from bethink.ingest.admission import DERIVED_SOURCE, WriteContext
from bethink.model import (
    UPDATE_LINKS,
    Collision,
    Filters,
    Item,
    Link,
    Node,
    may_replace,
    oldest_first,
)
from bethink.ports import Embedding, Match, Record, Scope, unrelated_similarity

if TYPE_CHECKING:
    from bethink.ports import PairVerdict

# From this probability on a newer memory comes first in answers (a link ``updates``), and
# from that on the older one is marked as outdated (``supersedes``): decision 49.
MIN_UPDATE, MIN_SUPERSESSION = 0.1, 0.91
# From which the writer hears of it, and how to forget the older one: decision 49.
_MIN_TOLD, _MIN_RESOLVED = 0.3, 0.5
JUDGED = "judged from both texts"
MAY_UPDATE = "kept both; the newer one comes first in answers"
OUTDATED = "kept both; answers put the newer one first and mark the older"
CONTRADICTS = "kept both, linked as contradicting: the newer one is less trusted"
# How near two memories are: their cosine, from unrelated (0) to equal (1), and this many times
# the share of words that their sentences have in common.
_SHARED_WORDS = 1.5
# Read besides those wanted, and at most: those of other speakers or kinds are passed over.
_SPARE, _MAX_READ = 4, 128


class _Limits(NamedTuple):
    """How many neighbours are read with a memory, and how near they are."""

    most: int
    nearness: float


_ALONE, _IN_BATCH = _Limits(4, 0.3), _Limits(3, 0.5)
# Of a longer text the model reads only the beginning.
MAX_TOKENS = 80
_MIN_CONFIDENCE = 0.5
# Kinds and layers that update only their like.
_INTENTIONS = frozenset({"goal", "caveat", "task"})


class _Pair(NamedTuple):
    """Two memories of one voice, one of them new."""

    newer: Item
    older: Item


def link_updates(
    records: Sequence[Record], collisions: Sequence[tuple[Collision, ...]], ctx: WriteContext
) -> tuple[list[Record], list[tuple[Collision, ...]]]:
    """Add to new records the links to what they update; return each record's collisions.

    Where the model fails, or a record has no vector, maintenance judges it later.
    """
    pairs = list(_pairs_in_batch(records, ctx))
    try:
        verdicts = _judge(pairs, ctx)
    except ModelError:
        return list(records), list(collisions)
    is_able = ctx.judge is not None and ctx.embedder is not None
    new = {record.item.id for record in records}
    links: dict[str, list[Link]] = {}
    found: dict[str, list[Collision]] = {}
    for pair, verdict in zip(pairs, verdicts, strict=True):
        link = update_link(pair.newer, pair.older, verdict, ctx)
        if link is None:
            continue
        holder = pair.newer if pair.newer.id in new else pair.older
        links.setdefault(holder.id, []).append(link)
        if link.type != "updates" or link.confidence >= _MIN_TOLD:
            found.setdefault(holder.id, []).append(_collision(link, pair, holder))
    linked = [
        replace(
            record,
            links=(*record.links, *links.get(record.item.id, ())),
            judged=ctx.deriving or (is_able and record.embedding is not None),
        )
        for record in records
    ]
    merged = [
        _merge(found.get(record.item.id, ()), known)
        for record, known in zip(records, collisions, strict=True)
    ]
    return linked, merged


def judge_stored(
    items: Sequence[Item], vectors: Mapping[str, Embedding], ctx: WriteContext
) -> list[Link]:
    """Return the links that stored memories lack, each compared with its neighbours.

    What one is derived from it does not update. A link that was removed since the newer
    memory was last changed stays removed.
    """
    types = (*UPDATE_LINKS, "contradicts", "derives_from")
    joined = ctx.store.graph.links_of([item.id for item in items], types)
    known: defaultdict[str, set[str]] = defaultdict(set)
    for link in joined:
        known[link.src.id].add(link.dst.id)
        known[link.dst.id].add(link.src.id)
    pairing = _Pairing(ctx)
    pairs = {
        (pair.newer.id, pair.older.id): pair
        for item in items
        for pair in pairing.of(item, vectors[item.id], _IN_BATCH, known[item.id])
    }
    unlinked = ctx.store.graph.unlinked([newer for newer, _ in pairs])
    return _links([pair for ends, pair in pairs.items() if ends not in unlinked], ctx)


def judge_hits(pairs: Sequence[tuple[Item, Item]], ctx: WriteContext) -> list[Link]:
    """Return the links between hits of one answer, newer and older; nothing is stored.

    A write compares a memory with its nearest alone, and an import with none.
    """
    comparable = [_Pair(newer, older) for newer, older in pairs if _are_comparable(newer, older)]
    try:
        return _links(comparable, ctx)
    except ModelError:
        return []


def _links(pairs: Sequence[_Pair], ctx: WriteContext) -> list[Link]:
    judged = zip(pairs, _judge(pairs, ctx), strict=True)
    links = (update_link(pair.newer, pair.older, verdict, ctx) for pair, verdict in judged)
    return [link for link in links if link is not None]


def _judge(pairs: Sequence[_Pair], ctx: WriteContext) -> Sequence[PairVerdict]:
    """Judge pairs by their whole texts: what is told on the way to a question needs it."""
    return ctx.judge([(old.text, new.text) for new, old in pairs]) if pairs and ctx.judge else []


def update_link(newer: Item, older: Item, verdict: PairVerdict, ctx: WriteContext) -> Link | None:
    """Return the link that a verdict makes between two memories, if any."""
    # A statement that leads to a question is seldom a new value: it marks nothing as outdated.
    asks = ends_in_question(newer.text) or ends_in_question(older.text)
    certain = verdict.updates >= MIN_SUPERSESSION and not asks
    if verdict.updates < MIN_UPDATE:
        return None
    if may_replace(newer, older):
        kind = "supersedes" if certain else "updates"
    elif certain and newer.trust < older.trust:
        kind = "contradicts"
    else:
        return None
    ends = Node("item", newer.id), Node("item", older.id)
    confidence = round(verdict.updates, 3)
    return Link(*ends, kind, confidence=confidence, context=JUDGED, created_at=ctx.now)


def _pairs_in_batch(records: Sequence[Record], ctx: WriteContext) -> Iterator[_Pair]:
    """Yield the pairs of new memories with each other and with stored ones.

    What few may see changes nothing for a memory that more may see, also in the same batch.
    """
    if ctx.embedder is None or ctx.judge is None or ctx.deriving:
        return
    pairing = _Pairing(ctx)
    levels = Counter(record.item.classification for record in records)
    for record, unstored in zip(records, _neighbours_in_batch(records), strict=True):
        if record.embedding is not None:
            own = record.item.classification
            seen = sum(count for level, count in levels.items() if level <= own)
            limits = _ALONE if seen == 1 else _IN_BATCH
            sources = {link.dst.id for link in record.links if link.type == "derives_from"}
            yield from pairing.of(record.item, record.embedding, limits, sources, unstored)


class _Pairing:
    """Finds what to judge a memory with; each text is split into sentences and words once."""

    def __init__(self, ctx: WriteContext) -> None:
        self._ctx = ctx
        self._known: dict[str, list[frozenset[str]]] = {}

    def of(
        self,
        item: Item,
        embedding: Embedding,
        limits: _Limits,
        apart: AbstractSet[str],
        unstored: Iterable[Match] = (),
    ) -> list[_Pair]:
        """Return a memory with the nearest that it may update, or that may update it.

        Not with those ``apart``; ``unstored`` are those that are not stored yet.
        """
        if not _is_judgeable(item):
            return []
        unrelated = unrelated_similarity(self._ctx.embedder)
        found: list[tuple[float, _Pair]] = []
        stored = _stored_beside(item, embedding, limits.most, apart, self._ctx)
        for match in (*stored, *(one for one in unstored if one.item.id not in apart)):
            older, newer = oldest_first((item, match.item))
            cosine = (match.score - unrelated) / (1.0 - unrelated)
            shared = self._most_shared(older.text, newer.text)
            found.append((cosine + _SHARED_WORDS * shared, _Pair(newer, older)))
        found.sort(key=itemgetter(0), reverse=True)
        return [pair for near, pair in found[: limits.most] if near >= limits.nearness]

    def _most_shared(self, older: str, newer: str) -> float:
        """Return the share of words that the two sentences most alike have in common."""
        return max(
            len(words & others) / math.sqrt(max(1, len(words) * len(others)))
            for words in self._split(older)
            for others in self._split(newer)
        )

    def _split(self, text: str) -> list[frozenset[str]]:
        if text not in self._known:
            terms = self._ctx.store.search.terms
            said = sentences(without_questions(text))
            self._known[text] = [frozenset(terms(part)) for part in said]
        return self._known[text]


def _is_judgeable(item: Item) -> bool:
    """Whether it is short enough and states something: a mere question updates nothing."""
    short = item.tokens <= MAX_TOKENS and item.level != "insight"
    return short and bool(without_questions(item.text))


def neighbours(
    item: Item, embedding: Embedding, most: int, ctx: WriteContext, **narrower: Any
) -> list[Match]:
    """Find the stored memories of the nearest meaning that the writer may know of.

    ``narrower`` are further filters.
    """
    if ctx.embedder is None:
        return []
    level, highest = (item.level,), item.classification
    scope = Scope(Filters(levels=level, max_classification=highest, **narrower), ctx.now)
    try:
        found = ctx.store.search.vector(embedding.vector, ctx.embedder.model, most + 1, scope)
    except ModelError:
        return []  # all vectors are of another model: a reindex is needed
    return [match for match in found.matches if match.item.id != item.id][:most]


def _stored_beside(
    item: Item, embedding: Embedding, most: int, apart: AbstractSet[str], ctx: WriteContext
) -> list[Match]:
    """Find the nearest stored memories that are comparable with one; others take no place.

    Nor do untrusted ones: storing many of them must not decide what is judged.
    """
    users = () if item.user is None else (item.user,)
    trust, depth = min(1, item.trust), most + _SPARE
    while True:
        near = neighbours(item, embedding, depth, ctx, users=users, min_trust=trust)
        found = [
            match
            for match in near
            if match.item.id not in apart and _are_comparable(item, match.item)
        ]
        if len(found) >= most or len(near) < depth or depth >= _MAX_READ:
            return found
        depth *= 4


def _neighbours_in_batch(records: Sequence[Record]) -> Iterator[list[Match]]:
    """Yield for each record the nearest comparable ones before it in the batch.

    None for those too long to be judged, nor are they among the others' neighbours.
    """
    judged = [record.embedding is not None and _is_judgeable(record.item) for record in records]
    with_vector = [record for record, is_wanted in zip(records, judged, strict=True) if is_wanted]
    if len(with_vector) < 2:
        yield from ([] for _ in records)
        return
    vectors = np.stack([record.embedding.vector for record in with_vector if record.embedding])
    likeness = vectors @ vectors.T
    at = 0
    for record, is_wanted in zip(records, judged, strict=True):
        if not is_wanted:
            yield []
            continue
        own = record.item
        matches = (
            Match(with_vector[other].item, float(likeness[at, other]))
            for other in np.argsort(-likeness[at, :at], kind="stable").tolist()
        )
        near = (match for match in matches if _is_known_to(own, match.item))
        yield list(islice(near, _IN_BATCH.most + _SPARE))
        at += 1


def _is_known_to(item: Item, other: Item) -> bool:
    """Whether another memory of the batch would be found if it were stored."""
    visible = other.level == item.level and other.classification <= item.classification
    return visible and other.trust >= min(1, item.trust) and _are_comparable(item, other)


def _are_comparable(one: Item, other: Item) -> bool:
    """Whether the newer one could update the older, or contradict it for lack of trust.

    What holds for a while only, is doubtful, or was made from the other updates nothing.
    """
    older, newer = oldest_first((one, other))
    kinds = {newer.kind, older.kind, newer.layer, older.layer}
    alike = (newer.kind, newer.layer) == (older.kind, older.layer)
    if (
        newer.text == older.text
        or newer.classification > older.classification
        or not (_is_judgeable(newer) and _is_judgeable(older))
        or newer.valid_from
        or newer.valid_to
        or newer.confidence < _MIN_CONFIDENCE
        or newer.source_class == DERIVED_SOURCE
        or (None not in (newer.topic, older.topic) and newer.topic != older.topic)
        or (not alike and not _INTENTIONS.isdisjoint(kinds))
    ):
        return False
    trusted = newer._replace(trust=max(newer.trust, older.trust))
    return may_replace(trusted, older)


def _collision(link: Link, pair: _Pair, mine: Item) -> Collision:
    """Describe the other memory for the writer of ``mine``."""
    other = pair.older if mine is pair.newer else pair.newer
    # Never reveal the text of a memory of higher classification to the writer.
    text = other.text if other.classification <= mine.classification else ""
    sure, resolve = link.confidence, f"bethink forget {pair.older.id}"
    if link.type == "contradicts":
        resolve = f"bethink forget {pair.newer.id}"
        return Collision(other.id, "contradicts", None, CONTRADICTS, text, resolve, sure)
    if link.type == "updates":
        resolve = resolve if sure >= _MIN_RESOLVED else ""
        return Collision(other.id, "related", None, MAY_UPDATE, text, resolve, sure)
    if other is pair.older:
        return Collision(other.id, "supersedes", None, OUTDATED, text, resolve, sure)
    return Collision(other.id, "superseded", None, OUTDATED, text, resolve, sure)


def _merge(judged: Sequence[Collision], near: Sequence[Collision]) -> tuple[Collision, ...]:
    """Merge collisions, each other memory once: a judgement outranks similarity."""
    known = {collision.id for collision in judged}
    return (*judged, *(collision for collision in near if collision.id not in known))
