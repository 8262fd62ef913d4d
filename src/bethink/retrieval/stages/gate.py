"""Drop irrelevant candidates, or all of them when the memory has no answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from bethink.core.text import own_caption
from bethink.errors import ModelError
from bethink.lang.words import CALENDAR_NAMES
from bethink.model import Candidate, Pool
from bethink.ports import CalibratedEmbedder
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import (
    asks_about_future,
    asks_only_for_time,
    content_terms,
    is_advice_request,
    is_english,
    mentions_named_period,
    occurred_in_named_period,
    time_terms,
    unknown_weight,
)
from bethink.retrieval.stages.late_interaction import question_tokens, similarity_features

# Fewer common English words: not English, where capitals may not mark a name.
_MIN_ENGLISH_WORDS = 2
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n])[^\w.!?:;\n]*([^\W_]+)")
# Without vectors, an answer needs a smaller share of unknown names than this.
_MAX_UNKNOWN_NAMES = 0.5
# Similarity of unrelated texts under the embedder the defaults were measured with.
_DEFAULT_BASELINE = 0.014
# Evidence of the retriever that matches words.
_LEXICAL_EVIDENCE = "channel.lexical"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Drop candidates below ``min_score``, or below ``min_share`` of the best."""

    min_score: float = 0.0
    min_share: float = 0.0
    name: str = "threshold"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        floor = max(self.min_score, self.min_share * pool[0].score)
        kept = tuple(cand for cand in pool if cand.score >= floor)
        if len(kept) < len(pool):
            ctx.add_step_note(f"{len(pool) - len(kept)} scored below {floor:.4f}")
        return kept


class UnknownNames(NamedTuple):
    """Names that no memory holds, and their share of the question's names."""

    shown: tuple[str, ...] = ()
    share: float = 0.0


class AnswerConfidence(NamedTuple):
    """Confidence that an answer exists, by component."""

    similarity: float
    shared_words: float
    lead: float
    doubt: float

    @property
    def total(self) -> float:
        return self.similarity + self.shared_words + self.lead - self.doubt

    def __str__(self) -> str:
        """Format the total and its components."""
        words = f"shared words {self.shared_words:.2f}"
        parts = f"similarity {self.similarity:.2f}, {words}, lead {self.lead:.2f}"
        return f"{self.total:.2f} ({parts}, minus {self.doubt:.2f} for unknown words)"


@dataclass(frozen=True, slots=True)
class Abstain:
    """Return nothing when the memory has no answer, and everything when it has one.

    It has one when one of the ``top`` holds every content term of the question. A question
    that names a time and nothing else is answered by memories of that time; a time still to
    come may have been mentioned before. Otherwise the confidence must reach
    ``min_confidence``: the best similarity of the whole (plain vectors) and of a
    ``sentence``, the best share of the question's words in one memory (``shared``), and how
    far the best leads the ``crowd`` (``lead``), less a doubt. Each word that no memory holds
    adds its idf to the doubt (``strange_word``, at most ``most_strange`` in all): in a young
    memory that is little. So does the share of its names that are unknown here
    (``strange_names``). Where there are fewer than ``top``, the missing ones count with the
    usual distance (``usual_lead``). Where none of the ``top`` has a vector, word coverage
    decides.
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
        if asks_only_for_time(ctx):
            ctx.add_step_note("the question names a time and nothing else")
            matching = tuple(
                cand
                for cand in pool
                if _is_of_named_time(cand, ctx) or _mentions_named_time(cand, ctx)
            )
            return pool if asks_about_future(ctx) and self._has_answer(pool, ctx) else matching
        return pool if self._has_answer(pool, ctx) else ()

    def _has_answer(self, pool: Pool, ctx: Context) -> bool:
        if self._is_confident(pool, ctx):
            return True
        if any(coverage(cand, ctx) == 1.0 for cand in pool[: self.top]):
            ctx.add_step_note("but one memory contains every content term of the question")
            return True
        return False

    def _is_confident(self, pool: Pool, ctx: Context) -> bool:
        best = pool[: self.top]
        unknown = unknown_names(ctx)
        if unknown.shown:
            ctx.add_step_note(f"no memory mentions {', '.join(unknown.shown)}")
        close = similarity_features(best, ctx)
        if all(close[cand.item.id].vector is None for cand in best):
            covered = max(coverage(cand, ctx) for cand in best)
            ctx.add_step_note(
                f"{covered:.0%} of the question's terms matched; {self.min_coverage:.0%} needed"
            )
            return covered >= self.min_coverage and unknown.share < _MAX_UNKNOWN_NAMES
        confidence = self._confidence(pool, unknown, ctx)
        ctx.add_step_note(f"confidence {confidence}; {self.min_confidence:.2f} needed")
        return confidence.total >= self.min_confidence

    def _confidence(self, pool: Pool, unknown: UnknownNames, ctx: Context) -> AnswerConfidence:
        crowd = pool[: self.crowd]
        words = (cand.reason(_LEXICAL_EVIDENCE) for cand in crowd)
        shared = max((reason.value for reason in words if reason is not None), default=0.0)
        return AnswerConfidence(
            similarity=self._similarity(pool[: self.top], ctx),
            shared_words=self.shared * shared,
            lead=self.lead * self._mean_lead(crowd),
            doubt=self._doubt(unknown, ctx),
        )

    def _similarity(self, best: Pool, ctx: Context) -> float:
        close = [similarity_features(best, ctx)[cand.item.id] for cand in best]
        plain = ctx.embedding().vector
        whole = max(
            (float(features.vector @ plain) for features in close if features.vector is not None),
            default=0.0,
        )
        # Without sentence vectors the whole memory counts as one sentence.
        by_sentence = question_tokens(ctx).matrix is not None
        sentence = max(features.sentence for features in close) if by_sentence else whole
        return _normalised_similarity(whole, sentence, self.sentence, ctx)

    def _mean_lead(self, crowd: Pool) -> float:
        behind = fsum(crowd[0].score - cand.score for cand in crowd)
        missing = max(0, self.top - len(crowd))
        return (behind + self.usual_lead * missing) / (len(crowd) + missing)

    def _doubt(self, unknown_named: UnknownNames, ctx: Context) -> float:
        # "Last Tuesday" is understood, whether or not a memory contains it.
        unknown = 0.0 if is_advice_request(ctx.query.text) else unknown_weight(ctx, time_terms(ctx))
        words = min(self.strange_word * unknown, self.most_strange)
        return words + self.strange_names * unknown_named.share


def _is_of_named_time(cand: Candidate, ctx: Context) -> bool:
    """Whether the temporal retriever found it, or would have."""
    found = any(reason.by == "channel.temporal" for reason in cand.evidence)
    return found or occurred_in_named_period(cand.item, ctx)


def _mentions_named_time(cand: Candidate, ctx: Context) -> bool:
    """Whether its text names the time, whenever it was stored."""
    terms = time_terms(ctx)
    if terms and terms <= set(ctx.store.search.terms(cand.item.text)):
        return True
    return mentions_named_period(cand.item, ctx)


def _normalised_similarity(whole: float, sentence: float, weight: float, ctx: Context) -> float:
    """Combine both similarities on the default embedder's scale.

    Measured as the distance from unrelated to identical texts.
    """
    stretch = (1.0 - _DEFAULT_BASELINE) / (1.0 - _similarity_baseline(ctx))
    return 1.0 + weight - stretch * (1.0 - whole + weight * (1.0 - sentence))


def _similarity_baseline(ctx: Context) -> float:
    """Similarity of unrelated texts by this embedder; the default where it is unknown."""
    embedder = ctx.embedder
    try:
        return embedder.unrelated if isinstance(embedder, CalibratedEmbedder) else _DEFAULT_BASELINE
    except ModelError as error:
        ctx.add_step_note(f"default embedder's baseline used: {error.message}")
        return _DEFAULT_BASELINE


def coverage(cand: Candidate, ctx: Context) -> float:
    """Share of the question's content terms that a memory holds, weighted by idf.

    A memory of the time that the question names need not mention that time.
    """
    terms = content_terms(ctx)
    if _is_of_named_time(cand, ctx):
        times = time_terms(ctx)
        terms = tuple(term for term in terms if not times.issuperset(term.word.terms))
    total = sum(term.weight for term in terms)
    spoken = f"{cand.item.speaker or ''} {own_caption(cand.item)} {cand.item.text}"
    present = set(ctx.store.search.terms(spoken))
    matched = [term for term in terms if present.issuperset(term.word.terms)]
    if len(matched) == len(terms):
        return 1.0 if terms else 0.0
    return sum(term.weight for term in matched) / total if total else 0.0


def unknown_names(ctx: Context) -> UnknownNames:
    """Return the question's names that no memory holds.

    A name is a capitalised word of an English question that does not begin a sentence and
    is no month or weekday. A request for advice names things still to come: an unknown name
    there is no sign that nothing is known.
    """
    english = sum(word.common for word in ctx.words()) if is_english(ctx.query.text) else 0
    if english < _MIN_ENGLISH_WORDS or is_advice_request(ctx.query.text):
        return UnknownNames()
    beginning = set(_SENTENCE_START.findall(ctx.query.text))
    known = ctx.statistics().frequencies
    names = [
        word
        for word in ctx.words()
        if not word.common
        and word.shown[:1].isupper()
        and word.shown.isalnum()
        and word.shown.casefold() not in CALENDAR_NAMES
        and word.shown not in beginning
    ]
    unknown = tuple(word.shown for word in names if not all(map(known.get, word.terms)))
    return UnknownNames(unknown, len(unknown) / len(names)) if unknown else UnknownNames()
