"""Drops what is not relevant enough; perhaps that is everything."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

from recollect.asked import (
    asks_advice,
    asks_only_when,
    telling_words,
    time_terms,
    unknown_share,
)
from recollect.context import Context
from recollect.model import Candidate, Pool
from recollect.ports import Scaled
from recollect.stages.closeness import question_tokens, read_closely

_CALENDAR = frozenset(
    ("january", "february", "march", "april", "may", "june", "july", "august", "september",
     "october", "november", "december", "monday", "tuesday", "wednesday", "thursday", "friday",
     "saturday", "sunday")
)  # fmt: skip
# So many common English words make a question English: elsewhere capitals say other
# things than that a word is a name.
_ENGLISH_FROM = 2
# Where the scale begins of the embedder that the numbers below were measured with.
_UNRELATED = 0.014


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


@dataclass(frozen=True, slots=True)
class Abstain:
    """Says nothing when the memory does not know, and lets everything through when it does.

    It knows when one of the ``top`` holds every telling word of the question. Where that
    names a time and nothing else, it knows what happened then. It does not know when most
    names of the question are strange to this space. In between it must be sure enough:
    the best likeness of the whole (plain vectors), of a sentence, and how far the best
    stands out from the rest, less the share of strange words. Where fewer than ``top``
    are there to stand out from, as in a young memory, those missing lie as far behind as
    they usually do (``usual_lead``). Where none of the ``top`` has a vector, the share of
    the words they hold decides.
    """

    min_confidence: float = 0.64
    sentence: float = 0.75
    lead: float = 1.25
    usual_lead: float = 0.35
    strange: float = 0.2
    min_coverage: float = 0.5
    top: int = 10
    name: str = "abstain"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        best = pool[: self.top]
        if not best:
            return pool
        if asks_only_when(ctx):
            ctx.remark("the question names a time and nothing else")
            return tuple(cand for cand in pool if _of_that_time(cand) or _says_that_time(cand, ctx))
        if self._is_sure(best, ctx):
            return pool
        if any(coverage(cand, ctx) == 1.0 for cand in best):
            ctx.remark("but a memory holds every telling word of the question")
            return pool
        return ()

    def _is_sure(self, best: Pool, ctx: Context) -> bool:
        strangers = strange_names(ctx)
        if strangers:
            ctx.remark(f"never heard of {', '.join(strangers)}")
            return False
        close = read_closely(best, ctx)
        if all(close[cand.item.id].vector is None for cand in best):
            covered = max(coverage(cand, ctx) for cand in best)
            ctx.remark(f"{covered:.0%} of the question's words; {self.min_coverage:.0%} needed")
            return covered >= self.min_coverage
        confidence = self._confidence(best, ctx)
        ctx.remark(f"confidence {confidence:.2f}; {self.min_confidence:.2f} needed")
        return confidence >= self.min_confidence

    def _confidence(self, best: Pool, ctx: Context) -> float:
        close = [read_closely(best, ctx)[cand.item.id] for cand in best]
        plain = ctx.embedding().vector
        whole = max(
            (float(one.vector @ plain) for one in close if one.vector is not None), default=0.0
        )
        behind = fsum(best[0].score - cand.score for cand in best)
        lead = (behind + self.usual_lead * (self.top - len(best))) / self.top
        # An embedder that knows no sentences takes a memory for one.
        by_sentence = question_tokens(ctx).matrix is not None
        sentence = max(one.sentence for one in close) if by_sentence else whole
        doubt = unknown_share(ctx)
        if doubt and asks_advice(ctx.query.text):
            doubt = 0.0
        alike = _comparable(whole, sentence, self.sentence, ctx.embedder)
        return alike + self.lead * lead - self.strange * doubt


def _of_that_time(cand: Candidate) -> bool:
    """Whether a channel found it for its time."""
    return any(reason.by == "channel.temporal" for reason in cand.evidence)


def _says_that_time(cand: Candidate, ctx: Context) -> bool:
    """Whether it names the time itself, whenever it was told."""
    return time_terms(ctx) <= set(ctx.store.terms(cand.item.text))


def _comparable(whole: float, sentence: float, weight: float, embedder: object) -> float:
    """Both likenesses together, as the default embedder would give them: as far on the
    way from texts that have nothing to do with each other to texts that are the same."""
    if not isinstance(embedder, Scaled):
        return whole + weight * sentence
    stretch = (1.0 - _UNRELATED) / (1.0 - embedder.unrelated)
    return 1.0 + weight - stretch * (1.0 - whole + weight * (1.0 - sentence))


def coverage(cand: Candidate, ctx: Context) -> float:
    """The share of the question's telling words that a memory holds, rare ones counting
    more. One of the time the question names need not say that time."""
    asked = telling_words(ctx)
    if _of_that_time(cand):
        times = time_terms(ctx)
        asked = tuple(one for one in asked if not times.issuperset(one.word.terms))
    total = sum(telling.weight for telling in asked)
    spoken = f"{cand.item.speaker} {cand.item.text}" if cand.item.speaker else cand.item.text
    there = set(ctx.store.terms(spoken))
    held = [telling for telling in asked if there.issuperset(telling.word.terms)]
    if len(held) == len(asked):
        return 1.0 if asked else 0.0
    return sum(telling.weight for telling in held) / total if total else 0.0


def strange_names(ctx: Context) -> tuple[str, ...]:
    """The question's names that no memory holds, if they are at least half of its names.

    A name is a capitalised word of an English question, not the first one, that is no
    month or weekday. Who asks for advice names what is still to come: a strange name
    there is no sign that nothing is known.
    """
    if sum(word.common for word in ctx.words()) < _ENGLISH_FROM:
        return ()
    first = ctx.query.text.split()[:1]
    known = ctx.statistics().frequencies
    names = [
        word
        for word in ctx.words()
        if not word.common
        and word.shown[:1].isupper()
        and word.shown.isalnum()
        and word.shown.casefold() not in _CALENDAR
        and [word.shown] != first
    ]
    strange = [word.shown for word in names if not all(map(known.get, word.terms))]
    if not strange or 2 * len(strange) < len(names) or asks_advice(ctx.query.text):
        return ()
    return tuple(strange)
