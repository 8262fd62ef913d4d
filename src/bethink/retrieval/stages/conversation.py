"""Score turns by their conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bethink.core.arrays import np
from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.model import Evidence, Item, Pool, sort_by_score, values_by, with_column
from bethink.retrieval.context import Context
from bethink.retrieval.stages.late_interaction import (
    FeatureTable,
    none_negative,
    question_tokens,
    similarity_features,
    turn_order,
)

# Similarity below this is chance: most words of a language are slightly similar.
CHANCE_SIMILARITY = 0.4

# Where a turn has no turn before it, and where that is no candidate.
_NO_TURN, _NO_CANDIDATE = -2, -1


class Turns(NamedTuple):
    """The candidates of a pool by their place in it.

    ``before`` and ``after`` are the places of the neighbouring turns, ``heard`` and
    ``answered`` the same where those may be by another speaker. ``own`` is what each scores
    by itself, ``best`` the best of its conversation, ``supplied`` the share of the question
    that the turn before has and this one lacks.
    """

    items: Sequence[Item]
    before: Sequence[int]
    after: Sequence[int]
    heard: Sequence[int]
    answered: Sequence[int]
    own: Sequence[float]
    best: Sequence[float]
    supplied: Sequence[float]


class ContributionColumn(NamedTuple):
    """What the conversation adds to each candidate, a column for each reason."""

    name: str
    turns: Turns
    added: tuple[list[float], ...]

    def scores(self, pool: Pool) -> list[float]:
        """The candidates' scores with everything added, in order."""
        scores = [cand.score for cand in pool]
        for column in self.added:
            scores = [score + value for score, value in zip(scores, column, strict=True)]
        return scores

    def gives(self, by: str) -> bool:
        """Whether this is its name."""
        return by == self.name

    def reasons(self, row: int) -> tuple[Evidence, ...]:
        """What speaks for one candidate."""
        items = self.turns.items
        return tuple(
            Evidence(self.name, "add", column[row], why, None if place < 0 else items[place].id)
            for column, (why, place) in zip(self.added, self._origins(row), strict=True)
            if column[row]
        )

    def _origins(self, row: int) -> tuple[tuple[str, int], ...]:
        """Why each column adds to a row, and from which place; of no meaning where it does not."""
        items, before, after = self.turns[:3]
        heard, answered = self.turns.heard[row], self.turns.answered[row]
        if before[row] == _NO_TURN:
            first = "first turn of its conversation"
        else:
            first = "answers" if _is_question(items[heard]) else "said after"
        alone = items[row].session is None
        return (
            (first, heard),
            ("completed by", heard),
            ("said near", before[heard]),
            ("said before", answered),
            ("said near", after[answered]),
            ("not part of a conversation" if alone else "best score in its conversation", -1),
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
        column = ContributionColumn(self.name, turns, self._added(turns))
        return sort_by_score(with_column(pool, column.scores(pool), column))

    def _added(self, turns: Turns) -> tuple[list[float], ...]:
        """Return what each candidate gains; none from a turn is below 0."""
        items, before, after, heard, answered, own, best, supplied = turns
        gained = (
            [self._share_of(items[place]) * own[place] if place >= 0 else 0.0 for place in heard],
            [self.supplied * share for share in supplied],
            self._from_two_steps(heard, before, own),
            [self.after * own[place] if place >= 0 else 0.0 for place in answered],
            self._from_two_steps(answered, after, own),
            [self.session * score for score in best],
        )
        first, *others, last = map(none_negative, gained)
        for row, item in enumerate(items):
            if item.session is None:
                last[row] = self.alone
            elif before[row] == _NO_TURN:
                first[row] = max(0.0, self.opening)
        return (first, *others, last)

    def _share_of(self, previous: Item) -> float:
        return self.before + self.reply if _is_question(previous) else self.before

    def _from_two_steps(
        self, places: Sequence[int], beyond: Sequence[int], own: Sequence[float]
    ) -> list[float]:
        """Return what comes from the turns beyond those at some places."""
        two = [beyond[place] if place >= 0 else _NO_CANDIDATE for place in places]
        return [self.further * own[place] if place >= 0 else 0.0 for place in two]


def _is_question(item: Item) -> bool:
    return item.text.rstrip().endswith("?")


def _turns_of(pool: Pool, ctx: Context) -> Turns:
    table = similarity_features(pool, ctx)
    items = [cand.item for cand in pool]
    order = turn_order([item.id for item in items if item.session is not None], ctx)
    places = {item.id: place for place, item in enumerate(items)}
    known = table.rows.get
    rows = [known(item.id, 0) for item in items]
    before = _places_of(order.before, items, places)
    after = _places_of(order.after, items, places)
    heard = _places_of_others(before, items)
    own = _own_scores(pool, rows, table)
    return Turns(
        items,
        before,
        after,
        heard,
        _places_of_others(after, items),
        own,
        _best_scores(items, own),
        _supplied_shares(heard, rows, table, ctx),
    )


def _best_scores(items: Sequence[Item], own: Sequence[float]) -> list[float]:
    """Return of each turn the best score in its conversation; 0 outside of any."""
    best: dict[str | None, float] = {}
    for item, score in zip(items, own, strict=True):
        if score > best.get(item.session, 0.0):
            best[item.session] = score
    best[None] = 0.0
    return [best.get(item.session, 0.0) for item in items]


def _places_of(
    neighbours: Mapping[str, str], items: Sequence[Item], places: Mapping[str, int]
) -> list[int]:
    """Return the place of each turn's neighbour; below 0 where there is none."""
    return [
        places.get(neighbours[item.id], _NO_CANDIDATE) if item.id in neighbours else _NO_TURN
        for item in items
    ]


def _places_of_others(places: Sequence[int], items: Sequence[Item]) -> list[int]:
    """Keep of each turn's neighbour the place, where another speaker may have said it."""
    speakers = [item.speaker for item in items]
    return [
        place
        if place >= 0
        and item.session is not None
        and (item.speaker is None or item.speaker != speakers[place])
        else _NO_CANDIDATE
        for item, place in zip(items, places, strict=True)
    ]


def _own_scores(pool: Pool, rows: Sequence[int], table: FeatureTable) -> list[float]:
    """Score each by itself, 0 to 1: shared words, vector similarity, late interaction."""
    shared = _shares_of_best(values_by(pool, "channel.lexical"))
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
    heard: Sequence[int], rows: Sequence[int], table: FeatureTable, ctx: Context
) -> list[float]:
    """Return the share of question tokens that the turn before has and the turn lacks."""
    supplied = [0.0] * len(rows)
    lost = table.lost
    turns = [
        turn
        for turn, before in enumerate(heard)
        if before >= 0 and rows[turn] not in lost and rows[before] not in lost
    ]
    if table.matches is None or not turns:
        return supplied
    mine = table.matches[[rows[turn] for turn in turns]]
    theirs = table.matches[[rows[heard[turn]] for turn in turns]]
    gained = (theirs > mine) & (theirs > CHANCE_SIMILARITY)
    most = np.minimum(1.0, theirs) - np.maximum(mine, CHANCE_SIMILARITY)
    weights = np.array(question_tokens(ctx).weights)
    shares = np.where(gained, weights * most / (1 - CHANCE_SIMILARITY), 0.0)
    total = np.zeros(len(turns))
    for column in shares.T:  # token after token: the order of a sum is part of its result
        total += column
    for turn, share in zip(turns, total.tolist(), strict=True):
        supplied[turn] = share
    return supplied
