"""Score turns by their conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bethink.core.lazy import dataclass
from bethink.model import Candidate, Evidence, Item, Pool, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.stages.late_interaction import (
    SimilarityFeatures,
    TurnOrder,
    max_features,
    question_tokens,
    share_of_best,
    similarity_features,
    turn_order,
)

# Similarity below this is chance: most words of a language are slightly similar.
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
    ``opening``; a memory outside any conversation gets ``alone``.
    """

    before: float = 0.0
    reply: float = 0.17
    after: float = 0.05
    further: float = 0.045
    session: float = 0.28
    supplied: float = 0.34
    opening: float = 0.1
    alone: float = 0.0
    name: str = "conversation"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        context = _conversation_context(pool, ctx)
        return sort_by_score(self._score_turn(cand, context) for cand in pool)

    def _score_turn(self, cand: Candidate, context: ConversationContext) -> Candidate:
        item = cand.item
        if item.session is None:
            why = "not part of a conversation"
            return cand.with_evidence(self.name, "add", self.alone, why) if self.alone else cand
        score = cand.score
        reasons = list(cand.evidence)
        for value, why, via in (
            *self._from_before(item, context),
            *self._from_after(item, context),
            (self.session * context.best[item.session], "best score in its conversation", None),
        ):
            if value > 0:
                score += value
                reasons.append(Evidence(self.name, "add", value, why, via))
        return Candidate(item, score, tuple(reasons))

    def _from_before(self, item: Item, context: ConversationContext) -> list[Contribution]:
        previous = context.turns.before.get(item.id)
        if previous is None:
            return [(self.opening, "first turn of its conversation", None)]
        if not _is_other_speaker(item, context.items.get(previous)):
            return []
        is_question = context.items[previous].text.rstrip().endswith("?")
        share = (self.before + self.reply if is_question else self.before) * context.own[previous]
        supplied = self.supplied * _supplied_share(item.id, previous, context)
        return [
            (share, "answers" if is_question else "said after", previous),
            (supplied, "completed by", previous),
            self._from_two_steps(context.turns.before.get(previous), context),
        ]

    def _from_after(self, item: Item, context: ConversationContext) -> list[Contribution]:
        following = context.turns.after.get(item.id)
        if following is None or not _is_other_speaker(item, context.items.get(following)):
            return []
        share = self.after * context.own[following]
        return [
            (share, "said before", following),
            self._from_two_steps(context.turns.after.get(following), context),
        ]

    def _from_two_steps(self, turn: str | None, context: ConversationContext) -> Contribution:
        return self.further * context.own.get(turn or "", 0.0), "said near", turn


def _conversation_context(pool: Pool, ctx: Context) -> ConversationContext:
    close = similarity_features(pool, ctx)
    own = _own_scores(pool, close)
    turn_ids = [cand.item.id for cand in pool if cand.item.session is not None]
    best: dict[str, float] = {}
    for cand in pool:
        if (session := cand.item.session) is not None:
            best[session] = max(best.get(session, 0.0), own[cand.item.id])
    items = {cand.item.id: cand.item for cand in pool}
    weights = question_tokens(ctx).weights
    return ConversationContext(items, own, close, turn_order(turn_ids, ctx), best, weights)


def _own_scores(pool: Pool, close: Mapping[str, SimilarityFeatures]) -> dict[str, float]:
    """Score each by itself, 0 to 1: shared words, vector similarity, late interaction."""
    peaks = max_features(close[cand.item.id] for cand in pool)
    shared = {
        cand.item.id: reason.value
        for cand in pool
        if (reason := cand.reason("channel.lexical")) is not None
    }
    max_shared = max(shared.values(), default=0.0)
    return {
        key: (
            share_of_best(shared.get(key, 0.0), max_shared)
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
