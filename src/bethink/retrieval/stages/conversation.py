"""Score turns by their conversation, and find the neighbours of the best candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bethink.model import Candidate, Evidence, Item, Pool, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.scope import rejection_reason
from bethink.retrieval.stages.late_interaction import (
    SimilarityFeatures,
    TurnOrder,
    max_features,
    question_tokens,
    share_of_best,
    similarity_features,
    turn_order,
)
from bethink.retrieval.time_decay import TimeDecay, time_factor

# Which link types belong to a family, its weight, and how many a seed may bring in.
LinkFamily = tuple[tuple[str, ...], float, int]


class LinkFamilies(NamedTuple):
    """The kinds of relations between two memories."""

    semantic: LinkFamily
    temporal: LinkFamily
    causal: LinkFamily
    sibling: LinkFamily


class NeighbourLimits(NamedTuple):
    """How far to expand from the first candidates, and which links count."""

    families: LinkFamilies
    seeds: int
    min_strength: float
    min_confidence: float
    hub: int
    damping: float
    curve: TimeDecay
    apart: tuple[str, ...]


class SeedLink(NamedTuple):
    """A link of a seed: the item, its family, strength and reason."""

    seed: str
    item: str
    family: str
    strength: float
    why: str
    entity: str = ""


class Neighbour(NamedTuple):
    """A neighbour with its score, and the reason and seed of its strongest link."""

    item: Item
    score: float
    why: str
    via: str


class NeighbourSearch(NamedTuple):
    """Neighbours, best first, and counts of the search."""

    ranked: tuple[Neighbour, ...] = ()
    by_links: int = 0
    by_entities: int = 0
    overlap: int = 0
    hubs: tuple[str, ...] = ()


@dataclass(slots=True)
class _NeighbourLinks:
    """The links between one memory and the seeds, accumulated."""

    semantic: dict[str, float] = field(default_factory=dict)
    other: float = 0.0
    best: float = 0.0
    why: str = ""
    via: str = ""

    def add(self, tie: SeedLink, worth: float) -> None:
        if tie.family == "semantic":
            self.semantic[tie.seed] = max(worth, self.semantic.get(tie.seed, 0.0))
        else:
            self.other = max(self.other, worth)
        if worth > self.best:
            self.best, self.why, self.via = worth, tie.why, tie.seed

    def score(self, damping: float) -> float:
        summed = sum(
            worth / (1.0 + damping * at)
            for at, worth in enumerate(sorted(self.semantic.values(), reverse=True))
        )
        return max(math.tanh(summed), self.other)


def find_neighbours(direct: Pool, limits: NeighbourLimits, ctx: Context) -> NeighbourSearch:
    """Find the visible neighbours of the first candidates."""
    seeds = direct[: limits.seeds]
    ids = [cand.item.id for cand in seeds]
    shared = ctx.store.siblings(
        ids, most=limits.hub, min_confidence=limits.min_confidence, as_of=ctx.query.as_of
    )
    ties = [*_seed_links(ids, limits, ctx)]
    ties += [
        SeedLink(
            *(one.of, one.item, "sibling", one.confidence),
            *(f"also speaks of {one.entity}, as does", one.entity),
        )
        for one in shared.siblings
    ]
    items = _visible_items({tie.item for tie in ties}, limits, ctx)
    usable = [tie for tie in ties if tie.item in items]
    if ctx.query.as_of is not None:
        # An earlier revision may not have spoken of what the live one speaks of.
        spoken = {key: item.entities for key, item in items.items()}
        spoken |= {cand.item.id: cand.item.entities for cand in seeds}
        usable = [
            tie
            for tie in usable
            if not tie.entity or (tie.entity in spoken[tie.item] and tie.entity in spoken[tie.seed])
        ]
    known = {cand.item.id for cand in direct}
    gathered, brought = _collect_links(seeds, usable, known, limits)
    by_entities = sum(used for (_, family), used in brought.items() if family == "sibling")
    return NeighbourSearch(
        _rank_neighbours(gathered, items, limits, ctx),
        sum(brought.values()) - by_entities,
        by_entities,
        len(gathered.keys() & known),
        shared.hubs,
    )


def _seed_links(ids: Sequence[str], limits: NeighbourLimits, ctx: Context) -> Iterator[SeedLink]:
    """Yield both directions of every strong enough link, strongest first."""
    family_of = {
        kind: name
        for name, (kinds, _, _) in zip(LinkFamilies._fields, limits.families, strict=True)
        for kind in kinds
    }
    if not family_of:
        return
    wanted = set(ids)
    links = ctx.links_of(ids, tuple(family_of))
    for link in sorted(links, key=lambda link: (-link.weight, link.src.id, link.dst.id, link.type)):
        if link.weight < limits.min_strength or link.src.kind != "item" or link.dst.kind != "item":
            continue
        for seed, other in ((link.src.id, link.dst.id), (link.dst.id, link.src.id)):
            if seed in wanted and seed != other:
                why = f"linked by {link.type} to"
                yield SeedLink(seed, other, family_of[link.type], link.weight, why)


def _visible_items(ids: set[str], limits: NeighbourLimits, ctx: Context) -> dict[str, Item]:
    items = ctx.get(ids)
    return {
        key: item
        for key, item in items.items()
        if item.level not in limits.apart and rejection_reason(item, ctx.scope) is None
    }


def _collect_links(
    seeds: Sequence[Candidate], ties: Sequence[SeedLink], known: set[str], limits: NeighbourLimits
) -> tuple[dict[str, _NeighbourLinks], dict[tuple[str, str], int]]:
    """Collect the links of every neighbour, and how many each seed added by family.

    Candidates that were found already do not use up a seed's share.
    """
    gathered: dict[str, _NeighbourLinks] = {}
    brought: dict[tuple[str, str], int] = {}
    of_seed: dict[str, list[SeedLink]] = {}
    for tie in ties:
        of_seed.setdefault(tie.seed, []).append(tie)
    for seed in seeds:
        for tie in of_seed.get(seed.item.id, ()):
            _, weight, most = getattr(limits.families, tie.family)
            if tie.item not in known:
                used = brought.get((tie.seed, tie.family), 0)
                if used >= most:
                    continue
                brought[tie.seed, tie.family] = used + 1
            gathered.setdefault(tie.item, _NeighbourLinks()).add(
                tie, seed.score * weight * tie.strength
            )
    return gathered, brought


def _rank_neighbours(
    gathered: dict[str, _NeighbourLinks],
    items: dict[str, Item],
    limits: NeighbourLimits,
    ctx: Context,
) -> tuple[Neighbour, ...]:
    ranked = []
    for key, tied in gathered.items():
        factor, _ = time_factor(items[key], ctx, limits.curve)
        ranked.append(
            Neighbour(items[key], tied.score(limits.damping) * factor, tied.why, tied.via)
        )
    return tuple(sorted(ranked, key=lambda near: (-near.score, near.item.id)))


# Likeness below this is chance: most words of a language are a little like each other.
CHANCE_SIMILARITY = 0.4

Contribution = tuple[float, str, str | None]


class ConversationContext(NamedTuple):
    """What the candidates of one recall share about their conversations."""

    items: Mapping[str, Item]
    own: Mapping[str, float]
    close: Mapping[str, SimilarityFeatures]
    turns: TurnOrder
    best: Mapping[str, float]
    token_weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Add shares of the scores that neighbouring turns have by themselves.

    An answer rarely repeats the words of its question, so a turn gains from the previous
    turn by another speaker, most if that one is a question (``reply``); from the next one
    (``after``), from those two steps away (``further``), and from the best turn of its
    conversation (``session``); and by what the previous turn supplies of the question that
    it lacks (``supplied``). A turn that opens a conversation has no previous turn and gets
    ``opening``; a memory outside any conversation counts as one of its own.
    """

    before: float = 0.05
    reply: float = 0.25
    after: float = 0.075
    further: float = 0.1
    session: float = 0.35
    supplied: float = 0.2
    opening: float = 0.125
    name: str = "conversation"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        talk = _conversation_context(pool, ctx)
        return sort_by_score(self._score_turn(cand, talk) for cand in pool)

    def _score_turn(self, cand: Candidate, context: ConversationContext) -> Candidate:
        item = cand.item
        if item.session is None:
            worth = context.own[item.id]
            why = f"in no conversation, worth {worth:.2f} by itself"
            return cand.with_evidence(self.name, "add", self.opening + self.session * worth, why)
        score = cand.score
        reasons = list(cand.evidence)
        for value, why, via in (
            *self._from_before(item, context),
            *self._from_after(item, context),
            (self.session * context.best[item.session], "the best of its conversation", None),
        ):
            if value > 0:
                score += value
                reasons.append(Evidence(self.name, "add", value, why, via))
        return Candidate(item, score, tuple(reasons))

    def _from_before(self, item: Item, context: ConversationContext) -> list[Contribution]:
        near = context.turns.before.get(item.id)
        if near is None:
            return [(self.opening, "stands at the beginning", None)]
        if not _is_other_speaker(item, context.items.get(near)):
            return []
        asks = context.items[near].text.rstrip().endswith("?")
        lent = (self.before + self.reply if asks else self.before) * context.own[near]
        supplied = self.supplied * _supplied_share(item.id, near, context)
        return [
            (lent, "answers" if asks else "said after", near),
            (supplied, "completed by", near),
            self._from_two_steps(context.turns.before.get(near), context),
        ]

    def _from_after(self, item: Item, context: ConversationContext) -> list[Contribution]:
        near = context.turns.after.get(item.id)
        if near is None or not _is_other_speaker(item, context.items.get(near)):
            return []
        lent = self.after * context.own[near]
        return [
            (lent, "said before", near),
            self._from_two_steps(context.turns.after.get(near), context),
        ]

    def _from_two_steps(self, turn: str | None, context: ConversationContext) -> Contribution:
        return self.further * context.own.get(turn or "", 0.0), "said near", turn


def _conversation_context(pool: Pool, ctx: Context) -> ConversationContext:
    close = similarity_features(pool, ctx)
    own = _own_scores(pool, close)
    spoken = [cand.item.id for cand in pool if cand.item.session is not None]
    best: dict[str, float] = {}
    for cand in pool:
        if (session := cand.item.session) is not None:
            best[session] = max(best.get(session, 0.0), own[cand.item.id])
    items = {cand.item.id: cand.item for cand in pool}
    weights = question_tokens(ctx).weights
    return ConversationContext(items, own, close, turn_order(spoken, ctx), best, weights)


def _own_scores(pool: Pool, close: Mapping[str, SimilarityFeatures]) -> dict[str, float]:
    """Score each by itself, 0 to 1: shared words, vector similarity, late interaction."""
    peaks = max_features(close[cand.item.id] for cand in pool)
    shared = {
        cand.item.id: reason.value
        for cand in pool
        if (reason := cand.reason("channel.lexical")) is not None
    }
    most = max(shared.values(), default=0.0)
    return {
        key: (
            share_of_best(shared.get(key, 0.0), most)
            + share_of_best(close[key].cosine, peaks.cosine)
            + share_of_best(close[key].interaction, peaks.interaction)
        )
        / 3
        for key in (cand.item.id for cand in pool)
    }


def _supplied_share(turn: str, before: str, context: ConversationContext) -> float:
    """Return the share of question tokens the previous turn has and this one lacks."""
    mine, theirs = context.close[turn].matches, context.close[before].matches
    gained = 0.0
    for weight, own, other in zip(context.token_weights, mine, theirs, strict=False):
        if other > own and other > CHANCE_SIMILARITY:
            gained += (
                weight * (min(1.0, other) - max(own, CHANCE_SIMILARITY)) / (1 - CHANCE_SIMILARITY)
            )
    return gained


def _is_other_speaker(item: Item, other: Item | None) -> bool:
    return other is not None and (item.speaker is None or item.speaker != other.speaker)
