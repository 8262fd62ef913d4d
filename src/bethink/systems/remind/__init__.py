"""Stages of the remind profile: blended fusion, entity signals, spreading activation."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bethink.core.dataclass import dataclass
from bethink.model import Candidate, Evidence, Item, Link, Pool, replay, sort_by_score
from bethink.ports import Scope, ScoredEntity
from bethink.retrieval.context import Context, Retriever, no_embedder
from bethink.retrieval.scope import rejection_reason

_NON_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Blend:
    """(1 − w) × the best cosine + w × the share of the question's words that occur.

    A word counts from two letters on, also inside another word. On the ``faded`` levels
    the sum is × confidence × remaining decay, and candidates not above ``threshold`` are
    dropped. A retriever's weight scales its score; with weight 0 it only adds candidates.
    """

    keyword_weight: float = 0.3
    threshold: float = 0.1
    faded: tuple[str, ...] = ("item", "insight")
    name: str = "blend"

    def __call__(self, found: Mapping[Retriever, Pool], ctx: Context) -> Pool:
        words = question_words(ctx.query.text)
        items: dict[str, Item] = {}
        seen: dict[str, list[Evidence]] = {}
        nearest: dict[str, float] = {}
        for channel, pool in found.items():
            for cand in pool:
                own = cand.evidence[-1]
                items.setdefault(cand.item.id, cand.item)
                seen.setdefault(cand.item.id, []).append(own.as_report())
                value = channel.weight * own.value
                nearest[cand.item.id] = max(nearest.get(cand.item.id, value), value)
        blended = [
            self._blend_candidate(item, seen[key], nearest[key], words)
            for key, item in items.items()
        ]
        kept = [
            cand for cand in blended if not self._fades(cand.item) or cand.score > self.threshold
        ]
        if len(kept) < len(blended):
            dropped = len(blended) - len(kept)
            ctx.add_step_note(f"{dropped} at or below the threshold {self.threshold:g}")
        return sort_by_score(kept)

    def _blend_candidate(
        self, item: Item, seen: list[Evidence], near: float, words: tuple[str, ...]
    ) -> Candidate:
        weight = self.keyword_weight
        share, matched = word_overlap(words, item)
        reasons = [
            Evidence("fuse.meaning", "add", (1.0 - weight) * near, f"similarity {near:.2f}"),
            Evidence("fuse.words", "add", weight * share, f"{matched} of {len(words)} words"),
        ]
        if self._fades(item):
            if item.confidence != 1.0:
                reasons.append(
                    Evidence(
                        "fuse.confidence", "times", item.confidence, "confidence of the memory"
                    )
                )
            if item.decay != 1.0:
                reasons.append(Evidence("fuse.decay", "times", item.decay, "decay of the memory"))
        return Candidate(item, replay(reasons), (*seen, *reasons))

    def _fades(self, item: Item) -> bool:
        return item.level in self.faded


def question_words(text: str) -> tuple[str, ...]:
    """Return the question's words of two letters or more, once each, in lower case."""
    return tuple(dict.fromkeys(word for word in _NON_WORD.split(text.lower()) if len(word) >= 2))


def word_overlap(words: tuple[str, ...], item: Item) -> tuple[float, int]:
    """Return the share of the words in an item's title and text, and their number."""
    text = f"{item.caption or ''} {item.text}".lower()
    matched = sum(word in text for word in words)
    return (matched / len(words) if words else 0.0), matched


RELATION_WEIGHTS = (
    ("implies", 0.9),
    ("generalizes", 0.85),
    ("specializes", 0.85),
    ("part_of", 0.8),
    ("context_of", 0.7),
    ("causes", 0.7),
    ("correlates", 0.6),
    ("contradicts", 0.3),
    ("supersedes", 0.1),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Spreading activation (Collins & Loftus, Psychological Review 1975).

    Each outgoing link activates a neighbour with the source's score × link weight ×
    relation weight × decay^hop × its own confidence and remaining decay. Several paths to
    one memory do not add up: the strongest counts. Sources and neighbours below
    ``threshold`` do not take part, nor do levels that are not named (all do where none
    are), nor ``not_along`` links of rules, which say nothing about the content. Where the
    question names a topic, a memory of another one is only activated if ``other_topics``
    is above 0, and by that factor weaker.
    """

    hops: int = 2
    decay: float = 0.5
    threshold: float = 0.1
    relations: tuple[tuple[str, float], ...] = RELATION_WEIGHTS
    other_relations: float = 0.5
    other_topics: float = 0.0
    levels: tuple[str, ...] = ()
    not_along: tuple[str, ...] = ("follows", "derives_from", "similar_to")
    name: str = "spread"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        active = {cand.item.id: cand for cand in pool}
        activated = 0
        for hop in range(1, self.hops + 1):
            strong = (cand for cand in active.values() if cand.score >= self.threshold)
            sources = [cand for cand in strong if self._has_level(cand.item)]
            # What this hop activates spreads only in the next one.
            for cand in self._activate_neighbours(sources, self.decay**hop, ctx):
                known = active.get(cand.item.id)
                activated += known is None
                active[cand.item.id] = keep_stronger(known, cand)
        if activated:
            ctx.add_step_note(f"{activated} activated")
        return sort_by_score(active.values())

    def _has_level(self, item: Item) -> bool:
        return not self.levels or item.level in self.levels

    def _activate_neighbours(
        self, sources: list[Candidate], factor: float, ctx: Context
    ) -> list[Candidate]:
        if not sources:
            return []
        scores = {cand.item.id: cand.score for cand in sources}
        links = [
            link
            for link in ctx.links_of(list(scores), incoming=False)
            if link.src.kind == link.dst.kind == "item"
            and link.src.id != link.dst.id
            and link.type not in self.not_along
        ]
        items = ctx.get(link.dst.id for link in links)
        scope = self._spread_scope(ctx)
        reached = {
            key: item
            for key, item in items.items()
            if self._has_level(item) and rejection_reason(item, scope) is None
        }
        activated = [
            self._activated_candidate(link, scores[link.src.id], factor, reached[link.dst.id], ctx)
            for link in links
            if link.dst.id in reached
        ]
        return [cand for cand in activated if cand.score >= self.threshold]

    def _spread_scope(self, ctx: Context) -> Scope:
        """Return the query's scope; without its topics where other topics are only penalised."""
        scope = ctx.scope
        if self.other_topics <= 0:
            return scope
        return scope._replace(filters=replace(scope.filters, topics=()))

    def _activated_candidate(
        self, link: Link, score: float, factor: float, item: Item, ctx: Context
    ) -> Candidate:
        factors = [
            score,
            link.weight,
            dict(self.relations).get(link.type, self.other_relations),
            factor,
            item.confidence,
            item.decay,
        ]
        topics = ctx.query.filters.topics
        if topics and item.topic is not None and item.topic not in topics:
            factors.append(self.other_topics)
        energy = 1.0
        for value in factors:
            energy *= value
        product = " × ".join(f"{value:.4g}" for value in factors)
        reason = Evidence(self.name, "set", energy, f"{link.type}, {product}, from", link.src.id)
        return Candidate(item, energy, (reason,))


def keep_stronger(known: Candidate | None, activated: Candidate) -> Candidate:
    """Return the stronger of two candidates of one memory, with the evidence of both."""
    if known is None:
        return activated
    if activated.score <= known.score:
        return known
    return Candidate(known.item, activated.score, (*known.evidence, *activated.evidence))


_DERIVED_LINKS = ("derives_from",)
_PUNCTUATION = ".,;:!?\"'`()[]{}<>«»“”‘’…"
MENTIONS_CAP = 50  # more mentions do not raise an entity's score


@dataclass(frozen=True, slots=True)
class EntityMeaning:
    """Memories of entities whose meaning ("tool: redis") is near the question's.

    The ``limit`` nearest from ``min_cosine`` on raise up to ``each`` memories to cosine ×
    ``strength`` × the memory's confidence. A memory that scores higher already is
    unchanged.
    """

    limit: int = 10
    min_cosine: float = 0.3
    strength: float = 0.8
    each: int = 50
    levels: tuple[str, ...] = ()
    name: str = "entity_meaning"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise no_embedder()
        vector = ctx.embedding().vector
        known = ctx.store.graph.near_entities(
            vector, ctx.embedder.model, self.limit, as_of=ctx.query.as_of
        )
        near = {one.entity.id: one for one in known if one.score >= self.min_cosine}
        if not near:
            return pool
        ctx.add_step_note(
            "entities near: " + ", ".join(f"{key} {one.score:.2f}" for key, one in near.items())
        )
        found = ctx.store.search.mentioning(
            list(near), self.each, ctx.scope_for_levels(self.levels)
        )
        lifted = (
            self._entity_candidate(item, near[entity])
            for entity, items in found.items()
            for item in items
        )
        return merge_stronger(pool, lifted)

    def _entity_candidate(self, item: Item, near: ScoredEntity) -> Candidate:
        score = near.score * self.strength * item.confidence
        why = f"near {near.entity.name} ({near.score:.2f}), entity"
        return Candidate(item, score, (Evidence(self.name, "set", score, why, near.entity.id),))


@dataclass(frozen=True, slots=True)
class EntityName:
    """Memories of entities whose id or name holds words of the question.

    ``by_words`` × the share of the question's words that the best of them holds +
    ``by_overlap`` × the share of the memory's sources that mention one + ``by_mentions``
    × ln(1 + mentions) / ln 51, all × confidence × remaining decay; nothing below
    ``floor``. A memory that derives from no other is its own source.
    """

    limit: int = 5
    each: int = 100
    by_words: float = 0.30
    by_overlap: float = 0.15
    by_mentions: float = 0.15
    floor: float = 0.05
    levels: tuple[str, ...] = ()
    name: str = "entity_name"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        words = _query_words(ctx.query.text)
        # "the" is part of many names and identifies none.
        common = {word.shown.lower() for word in ctx.words() if word.common}
        known = ctx.store.graph.entities_with(
            [word for word in words if word not in common], self.limit, as_of=ctx.query.as_of
        )
        if not known:
            return pool
        ctx.add_step_note("entities named: " + ", ".join(one.entity.id for one in known))
        entities = {one.entity.id: one for one in known}
        found = ctx.store.search.mentioning(list(entities), self.each, ctx.scope)
        named = sort_by_score(self._name_candidates(len(words), entities, found, ctx))
        most = ctx.query.k + ctx.query.offset + len(ctx.query.seen)
        return merge_stronger(pool, named[:most])

    def _name_candidates(
        self,
        words: int,
        entities: Mapping[str, ScoredEntity],
        found: Mapping[str, list[Item]],
        ctx: Context,
    ) -> Iterable[Candidate]:
        """Yield the memories that mention the entities, and those derived from them."""
        mentioning = {item.id: item for items in found.values() for item in items}
        sources = _sources_by_item(mentioning, ctx)
        items = {**_visible_derived(sources.keys() - mentioning.keys(), ctx), **mentioning}
        entities_by_item: dict[str, list[str]] = {}
        for entity, mentioned in found.items():
            for item in mentioned:
                entities_by_item.setdefault(item.id, []).append(entity)
        for key, item in items.items():
            if self.levels and item.level not in self.levels:
                continue
            own = sources.get(key) or (key,)
            matched = [entities_by_item[source] for source in own if source in entities_by_item]
            if matched:
                best = max(
                    (entities[one] for group in matched for one in group),
                    key=lambda one: (one.score, one.entity.mentions, one.entity.id),
                )
                score = self._score(item, best, words, len(matched) / len(own))
                if score >= self.floor:
                    why = f"names {best.entity.name}, {best.score:.0f} of {words} words, entity"
                    reason = Evidence(self.name, "set", score, why, best.entity.id)
                    yield Candidate(item, score, (reason,))

    def _score(self, item: Item, best: ScoredEntity, words: int, overlap: float) -> float:
        known = min(1.0, math.log1p(best.entity.mentions) / math.log1p(MENTIONS_CAP))
        share = best.score / words
        near = self.by_words * share + self.by_overlap * overlap + self.by_mentions * known
        return near * item.confidence * item.decay


def _query_words(text: str) -> list[str]:
    """Return the question's words of three letters or more, without punctuation."""
    bare = (word.strip(_PUNCTUATION) for word in text.lower().split())
    return [word for word in bare if len(word) >= 3]


def _sources_by_item(mentioning: Mapping[str, Item], ctx: Context) -> dict[str, tuple[str, ...]]:
    """Map each derived memory to its sources, where it or a source mentions an entity."""
    links = ctx.links_of(list(mentioning), _DERIVED_LINKS)
    derived = {link.src.id for link in links if link.src.kind == "item"}
    sources: dict[str, list[str]] = {}
    for link in ctx.links_of(sorted(derived), _DERIVED_LINKS, incoming=False):
        if link.src.kind == link.dst.kind == "item":
            sources.setdefault(link.src.id, []).append(link.dst.id)
    return {key: tuple(dict.fromkeys(ends)) for key, ends in sources.items()}


def _visible_derived(ids: Iterable[str], ctx: Context) -> dict[str, Item]:
    """Return visible memories derived from ones that mention an entity."""
    items = ctx.get(ids)
    return {key: item for key, item in items.items() if rejection_reason(item, ctx.scope) is None}


def merge_stronger(pool: Pool, activated: Iterable[Candidate]) -> Pool:
    """Merge candidates, keeping the stronger score of each memory and the evidence of both."""
    active = {cand.item.id: cand for cand in pool}
    for cand in activated:
        known = active.get(cand.item.id)
        better = keep_stronger(known, cand)
        if known is not None and better is known:
            reports = tuple(reason.as_report() for reason in cand.evidence)
            better = Candidate(known.item, known.score, (*known.evidence, *reports))
        active[cand.item.id] = better
    return sort_by_score(active.values())
