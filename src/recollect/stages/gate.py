"""Drops what is not relevant enough; perhaps that is everything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from recollect.asked import (
    asks_advice,
    asks_only_when,
    is_english,
    looks_ahead,
    of_named_time,
    telling_words,
    tells_of_named_time,
    time_terms,
    unknown_weight,
)
from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Candidate, Pool
from recollect.ports import Scaled
from recollect.stages.closeness import question_tokens, read_closely

_CALENDAR = frozenset(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday",
     "saturday", "sunday", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep", "sept", "oct",
     "nov", "dec", "mon", "tue", "wed", "thu", "fri", "sat", "sun")
)  # fmt: skip
# So many common English words make a question English: elsewhere capitals say other
# things than that a word is a name.
_ENGLISH_FROM = 2
_BEGINNING = re.compile(r"(?:^|[.!?:;\n])[^\w.!?:;\n]*([^\W_]+)")
# So many of its names must be known where nothing but words speaks for an answer.
_MOST_NAMES = 0.5
# Where the scale begins of the embedder that the numbers below were measured with.
_UNRELATED = 0.014
# By whom a memory was found for the words it shares with the question.
_WORDS = "channel.lexical"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Drops what scores below ``min_score``, or below ``min_share`` of the best."""

    min_score: float = 0.0
    min_share: float = 0.0
    name: str = "threshold"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        floor = max(self.min_score, self.min_share * pool[0].score)
        kept = tuple(cand for cand in pool if cand.score >= floor)
        if len(kept) < len(pool):
            ctx.remark(f"{len(pool) - len(kept)} below {floor:.4f}")
        return kept


class Strangers(NamedTuple):
    """Names that no memory holds, and their share of the question's names."""

    shown: tuple[str, ...] = ()
    share: float = 0.0


class Confidence(NamedTuple):
    """How sure it is that there is an answer, by parts."""

    alike: float
    shared: float
    ahead: float
    doubt: float

    @property
    def sum(self) -> float:
        return self.alike + self.shared + self.ahead - self.doubt

    def __str__(self) -> str:
        """The sum, and what it comes from in plain words."""
        parts = (
            f"{self.alike:.2f} alike, {self.shared:.2f} for shared words, {self.ahead:.2f} ahead"
        )
        return f"{self.sum:.2f} ({parts} of the rest, less {self.doubt:.2f} for strange words)"


@dataclass(frozen=True, slots=True)
class Abstain:
    """Says nothing when the memory does not know, and lets everything through when it does.

    It knows when one of the ``top`` holds every telling word of the question. Where that
    names a time and nothing else, it knows what happened then; of what is to come it may
    have heard before. Else it must be sure
    enough: the best likeness of the whole (plain vectors) and of a ``sentence``, the share
    of the question's words that one memory has in common with it (``shared``), and how far
    the best stands out from the ``crowd`` (``lead``), less a doubt. Each word that no memory
    holds adds its rarity to the doubt (``strange_word``, all of them at most
    ``most_strange``): in a young memory that is little. So does the share of its names that
    are strange to this space (``strange_names``). Where fewer than ``top`` are there to
    stand out from, those missing lie as far behind as they usually do (``usual_lead``).
    Where none of the ``top`` has a vector, the share of the words they hold decides.
    """

    min_confidence: float = 1.2
    sentence: float = 0.75
    shared: float = 1.25
    lead: float = 1.5
    usual_lead: float = 0.55
    strange_word: float = 0.015
    most_strange: float = 0.35
    strange_names: float = 1.0
    min_coverage: float = 0.5
    top: int = 10
    crowd: int = 40
    name: str = "abstain"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        if asks_only_when(ctx):
            ctx.remark("the question names a time and nothing else")
            then = tuple(
                cand for cand in pool if _of_that_time(cand, ctx) or _says_that_time(cand, ctx)
            )
            return pool if looks_ahead(ctx) and self._knows(pool, ctx) else then
        return pool if self._knows(pool, ctx) else ()

    def _knows(self, pool: Pool, ctx: Context) -> bool:
        if self._is_sure(pool, ctx):
            return True
        if any(coverage(cand, ctx) == 1.0 for cand in pool[: self.top]):
            ctx.remark("but a memory holds every telling word of the question")
            return True
        return False

    def _is_sure(self, pool: Pool, ctx: Context) -> bool:
        best = pool[: self.top]
        strangers = strange_names(ctx)
        if strangers.shown:
            ctx.remark(f"never heard of {', '.join(strangers.shown)}")
        close = read_closely(best, ctx)
        if all(close[cand.item.id].vector is None for cand in best):
            covered = max(coverage(cand, ctx) for cand in best)
            ctx.remark(f"{covered:.0%} of the question's words; {self.min_coverage:.0%} needed")
            return covered >= self.min_coverage and strangers.share < _MOST_NAMES
        confidence = self._confidence(pool, strangers, ctx)
        ctx.remark(f"confidence {confidence}; {self.min_confidence:.2f} needed")
        return confidence.sum >= self.min_confidence

    def _confidence(self, pool: Pool, strangers: Strangers, ctx: Context) -> Confidence:
        crowd = pool[: self.crowd]
        words = (cand.reason(_WORDS) for cand in crowd)
        shared = max((reason.value for reason in words if reason is not None), default=0.0)
        return Confidence(
            alike=self._alike(pool[: self.top], ctx),
            shared=self.shared * shared,
            ahead=self.lead * self._lead(crowd),
            doubt=self._doubt(strangers, ctx),
        )

    def _alike(self, best: Pool, ctx: Context) -> float:
        close = [read_closely(best, ctx)[cand.item.id] for cand in best]
        plain = ctx.embedding().vector
        whole = max(
            (float(one.vector @ plain) for one in close if one.vector is not None), default=0.0
        )
        # An embedder that knows no sentences takes a memory for one.
        by_sentence = question_tokens(ctx).matrix is not None
        sentence = max(one.sentence for one in close) if by_sentence else whole
        return _comparable(whole, sentence, self.sentence, ctx)

    def _lead(self, crowd: Pool) -> float:
        behind = fsum(crowd[0].score - cand.score for cand in crowd)
        missing = max(0, self.top - len(crowd))
        return (behind + self.usual_lead * missing) / (len(crowd) + missing)

    def _doubt(self, strangers: Strangers, ctx: Context) -> float:
        # "Last Tuesday" is understood, whether or not a memory says so.
        unknown = 0.0 if asks_advice(ctx.query.text) else unknown_weight(ctx, time_terms(ctx))
        words = min(self.strange_word * unknown, self.most_strange)
        return words + self.strange_names * strangers.share


def _of_that_time(cand: Candidate, ctx: Context) -> bool:
    """Whether a channel found it for its time, or would have."""
    found = any(reason.by == "channel.temporal" for reason in cand.evidence)
    return found or of_named_time(cand.item, ctx)


def _says_that_time(cand: Candidate, ctx: Context) -> bool:
    """Whether it names the time itself, whenever it was told."""
    if time_terms(ctx) <= set(ctx.store.terms(cand.item.text)):
        return True
    return tells_of_named_time(cand.item, ctx)


def _comparable(whole: float, sentence: float, weight: float, ctx: Context) -> float:
    """Both likenesses together, as the default embedder would give them: as far on the
    way from texts that have nothing to do with each other to texts that are the same."""
    stretch = (1.0 - _UNRELATED) / (1.0 - _unrelated(ctx))
    return 1.0 + weight - stretch * (1.0 - whole + weight * (1.0 - sentence))


def _unrelated(ctx: Context) -> float:
    """Where the embedder's scale begins; as the default one's where it cannot say."""
    embedder = ctx.embedder
    try:
        return embedder.unrelated if isinstance(embedder, Scaled) else _UNRELATED
    except ModelError as error:
        ctx.remark(f"judged as by the default embedder: {error.message}")
        return _UNRELATED


def coverage(cand: Candidate, ctx: Context) -> float:
    """The share of the question's telling words that a memory holds, rare ones counting
    more. One of the time the question names need not say that time."""
    asked = telling_words(ctx)
    if _of_that_time(cand, ctx):
        times = time_terms(ctx)
        asked = tuple(one for one in asked if not times.issuperset(one.word.terms))
    total = sum(telling.weight for telling in asked)
    spoken = f"{cand.item.speaker} {cand.item.text}" if cand.item.speaker else cand.item.text
    there = set(ctx.store.terms(spoken))
    held = [telling for telling in asked if there.issuperset(telling.word.terms)]
    if len(held) == len(asked):
        return 1.0 if asked else 0.0
    return sum(telling.weight for telling in held) / total if total else 0.0


def strange_names(ctx: Context) -> Strangers:
    """The question's names that no memory holds.

    A name is a capitalised word of an English question that does not begin a sentence
    and is no month or weekday. Who asks for advice names what is still to come: a strange
    name there is no sign that nothing is known.
    """
    english = sum(word.common for word in ctx.words()) if is_english(ctx.query.text) else 0
    if english < _ENGLISH_FROM or asks_advice(ctx.query.text):
        return Strangers()
    beginning = set(_BEGINNING.findall(ctx.query.text))
    known = ctx.statistics().frequencies
    names = [
        word
        for word in ctx.words()
        if not word.common
        and word.shown[:1].isupper()
        and word.shown.isalnum()
        and word.shown.casefold() not in _CALENDAR
        and word.shown not in beginning
    ]
    strange = tuple(word.shown for word in names if not all(map(known.get, word.terms)))
    return Strangers(strange, len(strange) / len(names)) if strange else Strangers()
