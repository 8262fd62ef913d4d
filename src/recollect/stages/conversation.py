"""Lets a turn borrow from what was said beside it and from its whole conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from recollect.context import Context
from recollect.model import Candidate, Evidence, Item, Pool, best_first
from recollect.stages.closeness import Close, peaks_of, question_tokens, read_closely, share
from recollect.stages.turns import Turns, turns_around

# Likeness below this is chance: most words of a language are a little like each other.
CHANCE = 0.4

Part = tuple[float, str, str | None]


class Talk(NamedTuple):
    """What the candidates of one recall know of each other."""

    items: Mapping[str, Item]
    own: Mapping[str, float]
    close: Mapping[str, Close]
    turns: Turns
    best: Mapping[str, float]
    token_weights: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Adds shares of what the turns around are worth by themselves.

    An answer rarely repeats the words of its question, so a turn gains from the one
    before it by somebody else, most of all if that one asks something (``reply``);
    from the one after it (``after``), from those two steps away (``further``), and
    from the best turn of its conversation (``session``); and by what the turn before
    supplies of the question that it lacks (``supplied``). A turn that opens a
    conversation has nobody to borrow from and gets ``opening``; a memory outside any
    conversation is one by itself.
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
        talk = _listen(pool, ctx)
        return best_first(self._lend(cand, talk) for cand in pool)

    def _lend(self, cand: Candidate, talk: Talk) -> Candidate:
        item = cand.item
        if item.session is None:
            worth = talk.own[item.id]
            why = f"in no conversation, worth {worth:.2f} by itself"
            return cand.because(self.name, "add", self.opening + self.session * worth, why)
        score = cand.score
        reasons = list(cand.evidence)
        for value, why, via in (
            *self._before(item, talk),
            *self._after(item, talk),
            (self.session * talk.best[item.session], "the best of its conversation", None),
        ):
            if value > 0:
                score += value
                reasons.append(Evidence(self.name, "add", value, why, via))
        return Candidate(item, score, tuple(reasons))

    def _before(self, item: Item, talk: Talk) -> list[Part]:
        near = talk.turns.before.get(item.id)
        if near is None:
            return [(self.opening, "stands at the beginning", None)]
        if not _another_speaks(item, talk.items.get(near)):
            return []
        asks = talk.items[near].text.rstrip().endswith("?")
        lent = (self.before + self.reply if asks else self.before) * talk.own[near]
        supplied = self.supplied * _supplied(item.id, near, talk)
        return [
            (lent, "answers" if asks else "said after", near),
            (supplied, "completed by", near),
            self._further(talk.turns.before.get(near), talk),
        ]

    def _after(self, item: Item, talk: Talk) -> list[Part]:
        near = talk.turns.after.get(item.id)
        if near is None or not _another_speaks(item, talk.items.get(near)):
            return []
        lent = self.after * talk.own[near]
        return [(lent, "said before", near), self._further(talk.turns.after.get(near), talk)]

    def _further(self, turn: str | None, talk: Talk) -> Part:
        return self.further * talk.own.get(turn or "", 0.0), "said near", turn


def _listen(pool: Pool, ctx: Context) -> Talk:
    close = read_closely(pool, ctx)
    own = _own_worth(pool, close)
    spoken = [cand.item.id for cand in pool if cand.item.session is not None]
    best: dict[str, float] = {}
    for cand in pool:
        if (session := cand.item.session) is not None:
            best[session] = max(best.get(session, 0.0), own[cand.item.id])
    items = {cand.item.id: cand.item for cand in pool}
    weights = question_tokens(ctx).weights
    return Talk(items, own, close, turns_around(spoken, ctx), best, weights)


def _own_worth(pool: Pool, close: Mapping[str, Close]) -> dict[str, float]:
    """What each is worth by itself, 0 to 1: shared words, meaning, late interaction."""
    peaks = peaks_of(close[cand.item.id] for cand in pool)
    shared = {
        cand.item.id: reason.value
        for cand in pool
        if (reason := cand.reason("channel.lexical")) is not None
    }
    most = max(shared.values(), default=0.0)
    return {
        key: (
            share(shared.get(key, 0.0), most)
            + share(close[key].cosine, peaks.cosine)
            + share(close[key].interaction, peaks.interaction)
        )
        / 3
        for key in (cand.item.id for cand in pool)
    }


def _supplied(turn: str, before: str, talk: Talk) -> float:
    """The share of the question's tokens that the turn before has and this one lacks."""
    mine, theirs = talk.close[turn].matches, talk.close[before].matches
    gained = 0.0
    for weight, own, other in zip(talk.token_weights, mine, theirs, strict=False):
        if other > own and other > CHANCE:
            gained += weight * (min(1.0, other) - max(own, CHANCE)) / (1 - CHANCE)
    return gained


def _another_speaks(item: Item, other: Item | None) -> bool:
    return other is not None and (item.speaker is None or item.speaker != other.speaker)
