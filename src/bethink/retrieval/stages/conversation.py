"""Score turns by their conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bethink.core.lazy import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.model import Evidence, Item, Pool, sort_by_score, with_column
from bethink.retrieval.context import Context
from bethink.retrieval.stages.late_interaction import (
    FeatureTable,
    question_tokens,
    similarity_features,
    turn_order,
)

# Similarity below this is chance: most words of a language are slightly similar.
CHANCE_SIMILARITY = 0.4

# Of one turn: how much, why, and through which turn.
Contribution = tuple[float, str, str | None]


# Where a turn has no turn before it, and where that is no candidate.
_NO_TURN, _NO_CANDIDATE = -2, -1


class Turns(NamedTuple):
    """The candidates of a pool by their place in it.

    ``before`` and ``after`` are the places of the neighbouring turns, ``own`` is what each
    scores by itself, ``supplied`` the share of the question that the turn before has and this
    one lacks, ``best`` the best score of a conversation.
    """

    items: Sequence[Item]
    before: Sequence[int]
    after: Sequence[int]
    own: Sequence[float]
    supplied: Mapping[int, float]
    best: Mapping[str, float]

    def from_other(self, row: int, place: int) -> bool:
        """Whether that place has a turn which may be by another speaker."""
        speaker = self.items[row].speaker
        return place >= 0 and (speaker is None or speaker != self.items[place].speaker)


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
            found = self._contributions(row, turns)
            score = cand.score
            for value, _, _ in found:
                score += value
            added.append(found)
            scores.append(score)
        return sort_by_score(with_column(pool, scores, ContributionColumn(self.name, added)))

    def _contributions(self, row: int, turns: Turns) -> list[Contribution]:
        session = turns.items[row].session
        if session is None:
            return [(self.alone, "not part of a conversation", None)] if self.alone else []
        found = self._from_before(row, turns) + self._from_after(row, turns)
        found.append((self.session * turns.best[session], "best score in its conversation", None))
        return [one for one in found if one[0] > 0]

    def _from_before(self, row: int, turns: Turns) -> list[Contribution]:
        place = turns.before[row]
        if place == _NO_TURN:
            return [(self.opening, "first turn of its conversation", None)]
        if not turns.from_other(row, place):
            return []
        previous = turns.items[place]
        is_question = previous.text.rstrip().endswith("?")
        share = (self.before + self.reply if is_question else self.before) * turns.own[place]
        return [
            (share, "answers" if is_question else "said after", previous.id),
            (self.supplied * turns.supplied.get(row, 0.0), "completed by", previous.id),
            *self._from_two_steps(turns.before[place], turns),
        ]

    def _from_after(self, row: int, turns: Turns) -> list[Contribution]:
        place = turns.after[row]
        if not turns.from_other(row, place):
            return []
        return [
            (self.after * turns.own[place], "said before", turns.items[place].id),
            *self._from_two_steps(turns.after[place], turns),
        ]

    def _from_two_steps(self, place: int, turns: Turns) -> tuple[Contribution, ...]:
        if place < 0:
            return ()
        return ((self.further * turns.own[place], "said near", turns.items[place].id),)


def _turns_of(pool: Pool, ctx: Context) -> Turns:
    table = similarity_features(pool, ctx)
    items = [cand.item for cand in pool]
    order = turn_order((item.id for item in items if item.session is not None), ctx)
    places = {item.id: place for place, item in enumerate(items)}
    rows = [table.row(item.id) for item in items]
    own = _own_scores(pool, rows, table)
    best: dict[str, float] = {}
    for item, score in zip(items, own, strict=True):
        if item.session is not None and score >= best.get(item.session, 0.0):
            best[item.session] = score
    turns = Turns(
        items,
        _places_of(order.before, items, places),
        _places_of(order.after, items, places),
        own,
        {},
        best,
    )
    return turns._replace(supplied=_supplied_shares(turns, rows, table, ctx))


def _places_of(
    neighbours: Mapping[str, str], items: Sequence[Item], places: Mapping[str, int]
) -> list[int]:
    """Return the place of each turn's neighbour; below 0 where there is none."""
    return [
        places.get(neighbours[item.id], _NO_CANDIDATE) if item.id in neighbours else _NO_TURN
        for item in items
    ]


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
    turns: Turns, rows: Sequence[int], table: FeatureTable, ctx: Context
) -> dict[int, float]:
    """Return the share of question tokens that the previous turn has and the turn lacks."""
    if table.matches is None:
        return {}
    lost = table.lost
    pairs = [
        (turn, before)
        for turn, before in enumerate(turns.before)
        if turns.from_other(turn, before) and rows[turn] not in lost and rows[before] not in lost
    ]
    if not pairs:
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
