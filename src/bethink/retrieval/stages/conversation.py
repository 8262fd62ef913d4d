"""Score turns by their conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bethink.core.lazy import dataclass
from bethink.model import Evidence, Item, Pool, sort_by_score, with_column
from bethink.retrieval.context import Context
from bethink.retrieval.stages.late_interaction import (
    FeatureTable,
    TurnOrder,
    question_tokens,
    similarity_features,
    turn_order,
)

# Similarity below this is chance: most words of a language are slightly similar.
CHANCE_SIMILARITY = 0.4

# Of one turn: how much, why, and through which turn.
Contribution = tuple[float, str, str | None]


class Turns(NamedTuple):
    """The candidates of a pool by their place in it, and what they share.

    ``place`` is the place of an id; ``own`` is what each scores by itself; ``supplied`` is
    the share of the question that the turn before has and this one lacks.
    """

    pool: Pool
    place: Mapping[str, int]
    order: TurnOrder
    own: Sequence[float]
    supplied: Mapping[int, float]
    best: Mapping[str, float]


class ContributionColumn(NamedTuple):
    """What the conversation adds to each candidate."""

    name: str
    added: list[list[Contribution]]

    def gives(self, by: str) -> bool:
        """Whether this is its name."""
        return by == self.name

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        """What speaks for one candidate."""
        return tuple(
            Evidence(self.name, "add", value, why, via) for value, why, via in self.added[row]
        )


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
        turns = _turns_of(pool, ctx)
        added, scores = [], []
        for row, cand in enumerate(pool):
            found = self._contributions(row, cand.item, turns)
            score = cand.score
            for value, _, _ in found:
                score += value
            added.append(found)
            scores.append(score)
        return sort_by_score(with_column(pool, scores, ContributionColumn(self.name, added)))

    def _contributions(self, row: int, item: Item, turns: Turns) -> list[Contribution]:
        if item.session is None:
            return [(self.alone, "not part of a conversation", None)] if self.alone else []
        found = (
            *self._from_before(row, item, turns),
            *self._from_after(item, turns),
            (self.session * turns.best[item.session], "best score in its conversation", None),
        )
        return [one for one in found if one[0] > 0]

    def _from_before(self, row: int, item: Item, turns: Turns) -> list[Contribution]:
        previous = turns.order.before.get(item.id)
        if previous is None:
            return [(self.opening, "first turn of its conversation", None)]
        place = turns.place.get(previous)
        if place is None or not _is_other_speaker(item, other := turns.pool[place].item):
            return []
        is_question = other.text.rstrip().endswith("?")
        share = (self.before + self.reply if is_question else self.before) * turns.own[place]
        return [
            (share, "answers" if is_question else "said after", previous),
            (self.supplied * turns.supplied.get(row, 0.0), "completed by", previous),
            self._from_two_steps(turns.order.before.get(previous), turns),
        ]

    def _from_after(self, item: Item, turns: Turns) -> list[Contribution]:
        following = turns.order.after.get(item.id)
        place = None if following is None else turns.place.get(following)
        if place is None or not _is_other_speaker(item, turns.pool[place].item):
            return []
        return [
            (self.after * turns.own[place], "said before", following),
            self._from_two_steps(turns.order.after.get(following or ""), turns),
        ]

    def _from_two_steps(self, turn: str | None, turns: Turns) -> Contribution:
        place = None if turn is None else turns.place.get(turn)
        return 0.0 if place is None else self.further * turns.own[place], "said near", turn


def _turns_of(pool: Pool, ctx: Context) -> Turns:
    table = similarity_features(pool, ctx)
    items = [cand.item for cand in pool]
    order = turn_order((item.id for item in items if item.session is not None), ctx)
    place = {item.id: number for number, item in enumerate(items)}
    rows = [table.row(item.id) for item in items]
    own = _own_scores(pool, rows, table)
    best: dict[str, float] = {}
    for item, score in zip(items, own, strict=True):
        if item.session is not None:
            best[item.session] = max(best.get(item.session, 0.0), score)
    pairs = [
        (number, other)
        for number, item in enumerate(items)
        if item.session is not None
        and (other := place.get(order.before.get(item.id, ""))) is not None
        and rows[number] not in table.lost
        and rows[other] not in table.lost
        and _is_other_speaker(item, items[other])
    ]
    return Turns(pool, place, order, own, _supplied_shares(pairs, rows, table, ctx), best)


def _own_scores(pool: Pool, rows: Sequence[int], table: FeatureTable) -> list[float]:
    """Score each by itself, 0 to 1: shared words, vector similarity, late interaction."""
    reasons = (cand.reason("channel.lexical") for cand in pool)
    shared = _shares_of_best([0.0 if reason is None else reason.value for reason in reasons])
    cosines = _shares_of_best([table.cosine[row] for row in rows])
    tokens = _shares_of_best([table.interaction[row] for row in rows])
    return [
        (one + other + another) / 3
        for one, other, another in zip(shared, cosines, tokens, strict=True)
    ]


def _shares_of_best(values: Sequence[float]) -> list[float]:
    """Each value as a share of the best; 0 if not positive."""
    peak = max(values, default=0.0)
    if peak <= 0:
        return [0.0] * len(values)
    return [value / peak if value > 0 else 0.0 for value in values]


def _supplied_shares(
    pairs: Sequence[tuple[int, int]], rows: Sequence[int], table: FeatureTable, ctx: Context
) -> dict[int, float]:
    """Return the share of question tokens that the previous turn has and the turn lacks."""
    if table.matches is None or not pairs:
        return {}
    import numpy as np  # start-up time: only with tokens to compare

    mine = table.matches[[rows[turn] for turn, _ in pairs]]
    theirs = table.matches[[rows[before] for _, before in pairs]]
    gained = (theirs > mine) & (theirs > CHANCE_SIMILARITY)
    most = np.minimum(1.0, theirs) - np.maximum(mine, CHANCE_SIMILARITY)
    weights = np.array(question_tokens(ctx).weights)
    shares = np.where(gained, weights * most / (1 - CHANCE_SIMILARITY), 0.0)
    total = np.zeros(len(pairs))
    for column in shares.T:  # token after token: the order of a sum is part of its result
        total += column
    return dict(zip((turn for turn, _ in pairs), total.tolist(), strict=True))


def _is_other_speaker(item: Item, other: Item) -> bool:
    return item.speaker is None or item.speaker != other.speaker
