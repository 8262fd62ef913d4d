"""Wakes memories through the entities that a question means or names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.ports import NearEntity
from recollect.scope import rejects
from recollect.stages.spread import stronger

_DERIVED = ("derives_from",)
_MARKS = ".,;:!?\"'`()[]{}<>«»“”‘’…"
MENTIONS_TELL = 50  # more mentions than these do not make an entity more telling


@dataclass(frozen=True, slots=True)
class EntityMeaning:
    """Memories of entities whose meaning ("tool: redis") is near the question's.

    The ``limit`` nearest from ``min_cosine`` on lift up to ``each`` memories to cosine ×
    ``strength`` × the memory's confidence. A memory that is stronger already stays so.
    """

    limit: int = 10
    min_cosine: float = 0.3
    strength: float = 0.8
    each: int = 50
    levels: tuple[str, ...] = ()
    name: str = "entity_meaning"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if ctx.embedder is None:
            raise ModelError("no embedder is configured", remedy="recollect config embedder")
        vector = ctx.embedding().vector
        known = ctx.store.near_entities(
            vector, ctx.embedder.model, self.limit, as_of=ctx.query.as_of
        )
        near = {one.entity.id: one for one in known if one.score >= self.min_cosine}
        if not near:
            return pool
        ctx.remark("near: " + ", ".join(f"{key} {one.score:.2f}" for key, one in near.items()))
        found = ctx.store.mentioning(list(near), self.each, ctx.scope_of(self.levels))
        lifted = (
            self._lifted(item, near[entity]) for entity, items in found.items() for item in items
        )
        return combined(pool, lifted)

    def _lifted(self, item: Item, near: NearEntity) -> Candidate:
        score = near.score * self.strength * item.confidence
        why = f"near {near.entity.name} ({near.score:.2f}), by"
        return Candidate(item, score, (Evidence(self.name, "set", score, why, near.entity.id),))


class _Named(NamedTuple):
    """The entities that a question names, and the memories that mention each."""

    words: int
    entities: Mapping[str, NearEntity]
    mentioning: Mapping[str, list[Item]]


@dataclass(frozen=True, slots=True)
class EntityName:
    """Memories of entities whose id or name holds words of the question.

    ``by_words`` × the share of the question's words that the best of them holds +
    ``by_overlap`` × the share of the memory's sources that mention one + ``by_mentions``
    × ln(1 + mentions) / ln 51, all × confidence × what forgetting has left; nothing
    below ``floor``. A memory that derives from no other is its own source.
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
        words = _words(ctx.query.text)
        # "the" is a part of many names, and names nobody.
        common = {word.shown.lower() for word in ctx.words() if word.common}
        known = ctx.store.entities_with(
            [word for word in words if word not in common], self.limit, as_of=ctx.query.as_of
        )
        if not known:
            return pool
        ctx.remark("named: " + ", ".join(one.entity.id for one in known))
        entities = {one.entity.id: one for one in known}
        found = ctx.store.mentioning(list(entities), self.each, ctx.scope)
        named = _Named(len(words), entities, found)
        woken = best_first(self._woken(named, ctx))
        return combined(pool, woken[: ctx.query.k + ctx.query.offset + len(ctx.query.seen)])

    def _woken(self, named: _Named, ctx: Context) -> Iterable[Candidate]:
        speaking = {item.id: item for items in named.mentioning.values() for item in items}
        sources = _sources(speaking, ctx)
        items = {**_derived(sources.keys() - speaking.keys(), ctx), **speaking}
        through: dict[str, list[str]] = {}
        for entity, mentioned in named.mentioning.items():
            for item in mentioned:
                through.setdefault(item.id, []).append(entity)
        for key, item in items.items():
            if self.levels and item.level not in self.levels:
                continue
            own = sources.get(key) or (key,)
            met = [through[source] for source in own if source in through]
            if met:
                best = _best([named.entities[one] for group in met for one in group])
                score = self._score(item, best, named.words, len(met) / len(own))
                if score >= self.floor:
                    why = f"names {best.entity.name}, {best.score:.0f} of {named.words} words, by"
                    reason = Evidence(self.name, "set", score, why, best.entity.id)
                    yield Candidate(item, score, (reason,))

    def _score(self, item: Item, best: NearEntity, words: int, overlap: float) -> float:
        known = min(1.0, math.log1p(best.entity.mentions) / math.log1p(MENTIONS_TELL))
        share = best.score / words
        near = self.by_words * share + self.by_overlap * overlap + self.by_mentions * known
        return near * item.confidence * item.decay


def _words(text: str) -> list[str]:
    """The question's words of three letters or more, without the marks around them."""
    bare = (word.strip(_MARKS) for word in text.lower().split())
    return [word for word in bare if len(word) >= 3]


def _best(near: list[NearEntity]) -> NearEntity:
    return max(near, key=lambda one: (one.score, one.entity.mentions, one.entity.id))


def _sources(speaking: Mapping[str, Item], ctx: Context) -> dict[str, tuple[str, ...]]:
    """What every memory derives from that speaks of an entity, or derives from one that does."""
    links = ctx.links_of(list(speaking), _DERIVED)
    derived = {link.src.id for link in links if link.src.kind == "item"}
    sources: dict[str, list[str]] = {}
    for link in ctx.links_of(sorted(derived), _DERIVED, incoming=False):
        if link.src.kind == link.dst.kind == "item":
            sources.setdefault(link.src.id, []).append(link.dst.id)
    return {key: tuple(dict.fromkeys(ends)) for key, ends in sources.items()}


def _derived(ids: Iterable[str], ctx: Context) -> dict[str, Item]:
    """Memories that were made of those that speak of an entity, as far as they are in scope."""
    items = ctx.get(ids)
    return {key: item for key, item in items.items() if rejects(item, ctx.scope) is None}


def combined(pool: Pool, woken: Iterable[Candidate]) -> Pool:
    """The pool with what was woken; of two ways to a memory the stronger counts, and the
    other is told of."""
    active = {cand.item.id: cand for cand in pool}
    for cand in woken:
        known = active.get(cand.item.id)
        better = stronger(known, cand)
        if known is not None and better is known:
            told = tuple(reason.as_seen() for reason in cand.evidence)
            better = Candidate(known.item, known.score, (*known.evidence, *told))
        active[cand.item.id] = better
    return best_first(active.values())
