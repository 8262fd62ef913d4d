"""Judge how sure an answer is, and drop what is not relevant."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bethink.core.dataclass import dataclass, replace
from bethink.core.named_tuple import NamedTuple
from bethink.model import Assessment, Candidate, ConfidenceReason, Pool, sort_by_score
from bethink.ports import unrelated_similarity
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import (
    ExpectedSimilarity,
    asks_about_future,
    asks_only_for_time,
    content_terms,
    coverage,
    expected_similarity,
    is_of_named_time,
    max_bm25_score,
    mentions_named_period,
    time_terms,
    unknown_weight,
)
from bethink.retrieval.stages.late_interaction import on_reference_scale, similarity_features


@dataclass(frozen=True, slots=True)
class Threshold:
    """Drop candidates below ``min_score``, or below ``min_share`` of the best.

    Where the answer counts as found, also those below ``min_relevance``. Penalties may leave
    nothing above 0; without a ``min_score`` the best is kept then. Of a question for a time
    alone every memory of that time is an answer, and a caller may set the relevance that is
    needed: then only ``min_score`` applies.
    """

    min_score: float = 0.0
    min_share: float = 0.0
    min_relevance: float = 0.0
    name: str = "threshold"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        if not pool:
            return pool
        best = pool[0].score
        is_open = ctx.query.min_relevance is not None or asks_only_for_time(ctx)
        share = 0.0 if is_open else self.min_share
        floor = max(self.min_score, share * best) if best > 0 else self.min_score or best
        kept = tuple(cand for cand in pool if cand.score >= floor)
        if len(kept) < len(pool):
            ctx.add_step_note(f"{len(pool) - len(kept)} scored below {floor:.4f}")
        is_found = ctx.judged is not None and ctx.judged.outcome == "found"
        return drop_below(self.min_relevance, kept, ctx) if is_found and not is_open else kept


def drop_below(relevance: float, pool: Pool, ctx: Context) -> Pool:
    """Drop candidates that are less relevant; one whose relevance is not known is kept."""
    kept = tuple(c for c in pool if c.relevance is None or c.relevance >= relevance)
    if len(kept) < len(pool):
        ctx.add_step_note(f"{len(pool) - len(kept)} below relevance {relevance:.2f}")
    return kept


# Of the best trusted score, what a memory that nobody vouches for has at most.
_UNTRUSTED_SHARE = 0.8


def limit_untrusted(pool: Pool, ctx: Context) -> Pool:
    """Rank memories of trust 0 below the trusted ones that answer: an echo is no answer.

    They keep at most a share of the best trusted score, where a trusted memory matches at all.
    """
    best = max((cand.score for cand in pool if cand.item.trust >= _MIN_TRUST), default=None)
    if best is None or ctx.vouched is None or ctx.vouched.outcome == "nothing_matched":
        return pool
    ceiling = best - (1.0 - _UNTRUSTED_SHARE) * abs(best)
    why = "untrusted: not above what answers"
    return sort_by_score(
        cand.with_evidence("trust", "add", ceiling - cand.score, why)
        if cand.item.trust < _MIN_TRUST and cand.score > ceiling
        else cand
        for cand in pool
    )


@dataclass(frozen=True, slots=True)
class NamedTime:
    """Keep only memories of the time that a question names, if it names nothing else.

    Everything that happened then answers it. A time still to come may have been spoken of
    before, so such a question keeps all.
    """

    name: str = "named_time"

    def skip(self, pool: Pool, ctx: Context) -> str:
        if not asks_only_for_time(ctx):
            return "the question does not name a time alone"
        return "the time is still to come" if asks_about_future(ctx) else ""

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        ctx.add_step_note("the question names a time and nothing else")
        return tuple(cand for cand in pool if _answers_time(cand, ctx))


class Features(NamedTuple):
    """What the confidence in an answer is estimated from. None depends on k.

    ``tokens``, ``cosine`` and ``sentence`` are the best similarities among the first, by
    late interaction, of the whole and of a sentence; ``words`` is the best BM25 score of
    shared words (in tens), ``coverage`` the largest share of the question's words in one
    memory; ``lead`` is how far the first is ahead of those after it, ``unknown`` the share
    of the question's words that nothing stored resembles, ``weak`` how far the best falls
    short of the similarity that related texts have (in tenths).
    """

    tokens: float = 0.0
    cosine: float = 0.0
    sentence: float = 0.0
    words: float = 0.0
    coverage: float = 0.0
    lead: float = 0.0
    unknown: float = 0.0
    weak: float = 0.0


_EXPLANATIONS = {
    "tokens": "word by word similarity {:.2f}",
    "cosine": "similarity {:.2f}",
    "sentence": "similarity of a sentence {:.2f}",
    "words": "log-odds of shared words {:.2f}, tens",
    "coverage": "{:.0%} of the question's words in one memory",
    "lead": "the first leads by {:.2f}",
    "unknown": "{:.0%} of the question's words are unknown here",
    "weak": "even the best is little related, by {:.2f}",
}
# The first so many are looked at, however many were requested.
_FIRST = 10
# Scores of missing ones, where there are fewer: nothing that would be a lead.
_NO_RIVAL_LEAD = 0.3
_MIN_TRUST = 1
# Answers that were right have at least this similarity, of a sentence and word by word.
_RELATED_SIMILARITY, _SENTENCE_SHARE = 0.386, 0.56


@dataclass(frozen=True, slots=True)
class Confidence:
    """Estimate the probability that the answer holds what was asked for.

    A logistic model over `Features`, each with a weight of its own sign; the weights come
    from a fit over several kinds of data (docs/decisions/0009-default-profile.md). Below
    ``unsure`` nothing is returned, from ``found`` on the answer counts as found. Without
    vectors ``words_only`` (intercept, coverage, words) takes the place of the model. A
    hit's relevance follows from the confidence and its distance from the first (``fall``,
    ``level``); that of a turn (``fall_of_turns``) is the probability that its conversation
    holds the answer. Where memories of trust 0 are stored, the confidence is the one without
    them.
    """

    found: float = 0.7
    unsure: float = 0.042
    intercept: float = -3.426
    tokens: float = 2.758
    cosine: float = 1.123
    sentence: float = 0.0
    words: float = 0.196
    coverage: float = 0.0
    lead: float = 4.395
    unknown: float = -0.4
    weak: float = -1.455
    words_only: tuple[float, ...] = (-4.0, 6.0, 0.5)
    level: float = -1.136
    fall: float = 13.99
    fall_of_turns: float = 6.0
    name: str = "confidence"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return self.judge(pool, ctx)[0]

    def judge(self, pool: Pool, ctx: Context) -> tuple[Pool, Assessment]:
        """The candidates with their relevance, if they are worth telling, and how sure that is."""
        estimate = self.assess(pool, ctx)
        judged = _by_trusted(estimate, pool, ctx)
        floor, sure = ctx.query.min_confidence, judged.confidence
        if floor is None:
            # What nobody vouches for is shown as what it is: no ground to be surer.
            floor, sure = self.unsure, max(sure, estimate.confidence)
        ctx.add_step_note(f"confidence {judged.confidence:.2f}; {floor:.2f} needed")
        if sure < floor:
            return (), judged
        if judged.outcome != "found":
            sure = min(sure, self.found - _BELOW_FOUND)
        return self.with_relevance(pool, sure), judged

    def assess(self, pool: Pool, ctx: Context) -> Assessment:
        """Estimate the confidence, with what speaks for and against it."""
        if not pool:
            return Assessment(0.0, "nothing_matched", ())
        if asks_only_for_time(ctx) and any(_answers_time(cand, ctx) for cand in pool[:_FIRST]):
            reason = ConfidenceReason("time", 1.0, 0.0, "of the time that the question names")
            return Assessment(_TIME_CONFIDENCE, "found", (reason,))
        confidence, reasons = self._estimate(pool, ctx)
        return Assessment(confidence, "found" if confidence >= self.found else "unsure", reasons)

    def with_relevance(self, pool: Pool, confidence: float) -> Pool:
        """The candidates with their relevance: the confidence, less with the distance."""
        if not pool:
            return pool
        odds, best = _logit(confidence), pool[0].score

        def relevance(cand: Candidate) -> float:
            distance = _distance(cand.score, best)
            if cand.item.session is not None:
                return _logistic(odds - self.fall_of_turns * distance)
            return _logistic(odds + self.level - self.fall * distance)

        return tuple(cand.with_relevance(relevance(cand)) for cand in pool)

    def _estimate(self, pool: Pool, ctx: Context) -> tuple[float, tuple[ConfidenceReason, ...]]:
        features = features_of(pool, ctx)
        weights = Features(*(getattr(self, name) for name in Features._fields))
        intercept = self.intercept
        if not features.cosine and not features.tokens:
            intercept, covered, words = self.words_only
            weights = Features(coverage=covered, words=words)
        if weights.coverage:
            best = max(coverage(cand, ctx) for cand in pool[:_FIRST])
            features = features._replace(coverage=best)
        guessed = _expected_of_missing(pool[:_FIRST], ctx) or ()
        reasons = tuple(
            ConfidenceReason(name, value, weight * value, _explain(name, value, guessed))
            for name, weight, value in zip(Features._fields, weights, features, strict=True)
            if weight and value
        )
        odds = intercept + math.fsum(reason.contribution for reason in reasons)
        return _logistic(odds), reasons


def _explain(name: str, value: float, guessed: Sequence[float]) -> str:
    """Say what a feature tells, and whether it is only what words let expect."""
    told = _EXPLANATIONS[name].format(value)
    is_guess = name in ("tokens", "cosine", "sentence") and value in guessed
    return f"{told}, as its words let expect" if is_guess else told


# Fitted without the lead: scores of other profiles have other scales.
_DESCRIBING = Confidence(
    found=0.5,
    unsure=0.0,
    intercept=-2.677,
    tokens=4.03,
    cosine=0.078,
    words=0.473,
    lead=0.0,
    weak=-2.102,
)
_TIME_CONFIDENCE = 0.9
_BELOW_FOUND = 0.001


def describe(pool: Pool, ctx: Context) -> tuple[Pool, Assessment]:
    """Judge how sure an answer is that no stage of the gate has judged; all of it is kept."""
    # A description is not worth waiting for an embedding that no step needed.
    known = ctx if ctx.has_embedding else replace(ctx, embedder=None)
    estimate = _DESCRIBING.assess(pool, known)
    estimate = estimate._replace(outcome="found" if pool else "nothing_matched")
    judged = _by_trusted(estimate, pool, ctx)
    sure = max(judged.confidence, estimate.confidence)
    return _DESCRIBING.with_relevance(pool, sure), judged


def _by_trusted(estimate: Assessment, pool: Pool, ctx: Context) -> Assessment:
    """The assessment that stands: the one made without memories of trust 0, if there are any."""
    vouched = ctx.vouched
    if vouched is None:
        return estimate
    if pool and all(cand.item.trust < _MIN_TRUST for cand in pool):
        doubt = ConfidenceReason("trust", 0.0, 0.0, "only untrusted memories")
        return Assessment(vouched.confidence, "unsure", (*vouched.reasons, doubt))
    return vouched._replace(outcome="found" if vouched.outcome == "found" else "unsure")


def features_of(pool: Pool, ctx: Context) -> Features:
    """The features of an answer whose candidates are these, best first, without coverage.

    That takes the terms of every text: who weighs it computes it.
    """
    first = pool[:_FIRST]
    table = similarity_features(first, ctx)
    rows = [row for cand in first if (row := table.row(cand.item.id))]
    unrelated = unrelated_similarity(ctx.embedder)

    def best(column: Sequence[float]) -> float:
        scaled = (on_reference_scale(column[row], unrelated) for row in rows)
        return max(0.0, max(scaled, default=0.0))

    cosine = best(table.plain)
    by_token = table.matches is not None and not table.lost.issuperset(rows)
    tokens = best(table.interaction) if by_token else cosine
    sentence = best(table.sentence) if by_token else cosine
    if guessed := _expected_of_missing(first, ctx):
        cosine, sentence = max(cosine, guessed.whole), max(sentence, guessed.whole)
        tokens = max(tokens, guessed.tokens if by_token else guessed.whole)
    related = _SENTENCE_SHARE * sentence + (1.0 - _SENTENCE_SHARE) * tokens
    shared = max((reason.value for c in first if (reason := c.reason(_LEXICAL))), default=0.0)
    return Features(
        tokens=tokens,
        cosine=cosine,
        sentence=sentence,
        words=shared * max_bm25_score(ctx) / 10.0,
        lead=_lead(pool),
        unknown=_unknown_share(first, ctx),
        weak=10.0 * max(0.0, _RELATED_SIMILARITY - related),
    )


def _expected_of_missing(first: Pool, ctx: Context) -> ExpectedSimilarity | None:
    """Of what has no vector in a space that has some, the best similarity to be expected."""
    table = similarity_features(first, ctx)
    missing = [cand for cand in first if not table.row(cand.item.id)] if table.vectors else ()
    return max((expected_similarity(cand, ctx) for cand in missing), default=None)


def _lead(pool: Pool) -> float:
    """How far the first is ahead of the mean of the ten after it."""
    rivals = [cand.score for cand in pool[1 : _FIRST + 1]]
    missing = _FIRST - len(rivals)
    behind = math.fsum(pool[0].score - score for score in rivals)
    return (behind + missing * _NO_RIVAL_LEAD) / _FIRST


def _unknown_share(first: Pool, ctx: Context) -> float:
    """Share of the question's weight that no memory holds, less what similar spellings cover."""
    total = math.fsum(term.weight for term in content_terms(ctx))
    if not total:
        return 0.0
    share = unknown_weight(ctx, time_terms(ctx)) / total
    near = max((reason.value for c in first if (reason := c.reason(_PIECES))), default=0.0)
    return share * (1.0 - min(1.0, near))


_LEXICAL, _PIECES = "channel.lexical", "channel.substring"


def _distance(score: float, best: float) -> float:
    """How far a score is below the best one, as a share of it."""
    return (best - score) / best if best > 0 else 0.0


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, odds))))


def _logit(probability: float) -> float:
    bounded = min(1.0 - 1e-9, max(1e-9, probability))
    return math.log(bounded / (1.0 - bounded))


def _answers_time(cand: Candidate, ctx: Context) -> bool:
    return is_of_named_time(cand, ctx) or _mentions_named_time(cand, ctx)


def _mentions_named_time(cand: Candidate, ctx: Context) -> bool:
    """Whether its text names the time, whenever it was stored."""
    terms = time_terms(ctx)
    if terms and terms <= set(ctx.store.search.terms(cand.item.text)):
        return True
    return mentions_named_period(cand.item, ctx)
