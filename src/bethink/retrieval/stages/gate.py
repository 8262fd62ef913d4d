"""Judge whether anything is stored on the subject, and drop what is not relevant."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from itertools import accumulate

from bethink.core.dataclass import dataclass, replace
from bethink.core.named_tuple import NamedTuple
from bethink.core.speakers import ROLES
from bethink.lang.dates import DAY_S
from bethink.model import (
    PERHAPS_NEWER,
    Assessment,
    Candidate,
    ConfidenceReason,
    Item,
    Pool,
    sort_by_score,
)
from bethink.ports import unrelated_similarity
from bethink.retrieval.context import Context
from bethink.retrieval.query_analysis import (
    asks_about_future,
    asks_only_for_time,
    coverage,
    expected_similarity,
    is_of_named_time,
    max_bm25_score,
    mentions_named_period,
    time_terms,
)
from bethink.retrieval.stages.diversify import logit
from bethink.retrieval.stages.late_interaction import on_reference_scale, similarity_features


@dataclass(frozen=True, slots=True)
class Threshold:
    """Drop candidates below ``min_score``, or below ``min_share`` of the best.

    Where the answer counts as found, also those below ``min_relevance``. Penalties may leave
    nothing above 0; without a ``min_score`` the best is kept then. Of a question for a time
    alone every memory of that time is an answer, and a caller may set the relevance that is
    needed: then only ``min_score`` applies. What may be newer than one that is kept is kept too.
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
        if is_found and not is_open:
            kept = drop_below(self.min_relevance, kept, ctx)
        ids = {cand.item.id for cand in kept}
        newer = [c for c in pool if c.item.id not in ids and is_perhaps_newer(c, ids)]
        return sort_by_score((*kept, *newer)) if newer else kept


def is_perhaps_newer(cand: Candidate, ids: AbstractSet[str]) -> bool:
    """Whether it may restate one of these: without it the answer would be an outdated value."""
    if cand.reason("newer_first") is None:  # of most this is enough
        return False
    return any(one.why == PERHAPS_NEWER and one.via in ids for one in cand.evidence)


def drop_below(relevance: float, pool: Pool, ctx: Context) -> Pool:
    """Drop candidates that are less relevant; one whose relevance is not known is kept."""
    kept = tuple(c for c in pool if c.relevance is None or c.relevance >= relevance)
    if len(kept) < len(pool):
        ctx.add_step_note(f"{len(pool) - len(kept)} below relevance {relevance:.2f}")
    return kept


@dataclass(frozen=True, slots=True)
class Helped:
    """Weigh by the votes of sessions, within 1 ± ``bound``; it admits and drops nothing.

    The share of the votes for a memory, with two of each side added; a vote counts half after
    ``half_life_days``. Memories that were ordered by an update keep that order.
    """

    bound: float = 0.05
    half_life_days: float = 60.0
    name: str = "helped"

    def skip(self, pool: Pool, ctx: Context) -> str:
        """Why nothing is weighed."""
        if ctx.query.as_of is not None:
            return "asked of the past"
        return "" if any(cand.item.id in ctx.votes for cand in pool) else "no votes"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        updates = [(cand.item.id, one.via) for cand in pool for one in cand.evidence
                   if one.by == "newer_first"]  # fmt: skip
        ordered = {end for ends in updates for end in ends}
        now = ctx.query.moment.timestamp()

        def weigh(cand: Candidate) -> Candidate:
            votes = ctx.votes.get(cand.item.id, {}).values()
            if not votes or cand.item.id in ordered or cand.score <= 0:
                return cand
            half = [max(0.0, now - at) / DAY_S / self.half_life_days for _, at in votes]
            faded = [vote[0] * 0.5**age for vote, age in zip(votes, half, strict=True)]
            share = (2 + sum(max(vote, 0.0) for vote in faded)) / (4 + sum(map(abs, faded)))
            used = sum(value > 0 for value, _ in votes)
            why = f"used in {used} of {len(votes)} sessions that were given it"
            return cand.with_evidence(self.name, "times", 1 + self.bound * (2 * share - 1), why)

        return sort_by_score(weigh(cand) for cand in pool)


# Of the best trusted score, what a memory that nobody vouches for has at most.
_UNTRUSTED_SHARE = 0.8


# Where no stage has judged, how probable it must be that trusted ones are on the subject.
_PROBABLE = 0.5


def limit_untrusted(pool: Pool, ctx: Context, *, is_judged: bool) -> Pool:
    """Rank memories of trust 0 below trusted ones on the subject: an echo is no answer.

    They keep at most a share of the best trusted score. ``is_judged`` says that a stage
    decides what counts as found; elsewhere every answer does, and the confidence is asked.
    """
    best = max((cand.score for cand in pool if cand.item.trust >= _MIN_TRUST), default=None)
    if best is None or ctx.vouched is None or ctx.vouched.outcome != "found":
        return pool
    if not is_judged and ctx.vouched.confidence < _PROBABLE:
        return pool
    ceiling = best - (1.0 - _UNTRUSTED_SHARE) * abs(best)
    why = "untrusted: not above what is on the subject"
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

    ``cosine`` is the best similarity among the first, ``words`` the best BM25 score of shared
    words (in tens), ``coverage`` the largest share of the question's words in one memory,
    ``lead`` how far the first is ahead of those after it. ``memories`` is the logarithm of
    how many the filters admit: among many the nearest is nearer by chance. ``turn`` is 1 where the
    first is a turn among people, and half in a chat with an assistant: what people say to one
    another is nearer to any question than notes are.
    """

    cosine: float = 0.0
    words: float = 0.0
    coverage: float = 0.0
    lead: float = 0.0
    memories: float = 0.0
    turn: float = 0.0


_EXPLANATIONS = {
    "cosine": "similarity {:.2f}",
    "words": "log-odds of shared words {:.2f}, tens",
    "coverage": "{:.0%} of the question's words in one memory",
    "lead": "the first leads by {:.2f}",
    "memories": "the nearest of {:.0f}: by chance one is near",
    "turn": "turns of a conversation resemble any question",
}
_CONSTANT = "before anything is known of the question"
# The first so many are looked at, however many were requested.
_FIRST = 10
# Scores of missing ones, where there are fewer: nothing that would be a lead.
_NO_RIVAL_LEAD = 0.3
_MIN_TRUST = 1


@dataclass(frozen=True, slots=True)
class Confidence:
    """Estimate the probability that something stored is on the subject of the question.

    Whether it answers the question, it does not say. A logistic model over `Features`; the
    weights come from a fit over several kinds of data and sizes of stores
    (docs/decisions/0048-what-confidence-means.md). Below ``unsure`` nothing is returned, from
    ``found`` on the answer counts as found. Without vectors ``words_only`` (intercept,
    coverage) takes the place of the model. A hit's relevance is the confidence, less with
    its distance from the first (``fall``). Where memories of trust 0 are stored, the
    confidence is the one without them.
    """

    found: float = 0.4
    unsure: float = 0.045
    intercept: float = -6.912
    cosine: float = 16.203
    words: float = 0.0
    coverage: float = 0.0
    lead: float = 5.426
    memories: float = -0.23
    turn: float = -1.847
    words_only: tuple[float, float] = (-3.2, 9.3)
    fall: float = 6.0
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
        return (() if sure < floor else self.rate(pool, estimate, judged)), judged

    def rate(self, pool: Pool, estimate: Assessment, judged: Assessment) -> Pool:
        """The candidates with their relevance, to which memories of trust 0 add nothing.

        ``judged`` is the assessment without these, ``estimate`` the one with them. What they
        say may be related and is no more; none is more relevant than a trusted one above it.
        """
        sure = max(judged.confidence, min(estimate.confidence, self.found - _BELOW_FOUND))
        rated = self.with_relevance(pool, sure)
        if estimate is judged:
            return rated
        trusted = tuple(cand for cand in pool if cand.item.trust >= _MIN_TRUST)
        own = self.with_relevance(trusted, judged.confidence)
        most = {cand.item.id: cand.relevance or 0.0 for cand in own}
        limited = (min(cand.relevance or 0.0, most.get(cand.item.id, 1.0)) for cand in rated)
        return tuple(map(Candidate.with_relevance, rated, accumulate(limited, min)))

    def assess(self, pool: Pool, ctx: Context) -> Assessment:
        """Estimate the confidence, with what speaks for and against it."""
        if not pool:
            return Assessment(0.0, "nothing_matched", ())
        if asks_only_for_time(ctx) and any(_answers_time(cand, ctx) for cand in pool[:_FIRST]):
            odds = logit(_TIME_CONFIDENCE)
            reason = ConfidenceReason("time", 1.0, odds, "of the time that the question names")
            return Assessment(_TIME_CONFIDENCE, "found", (reason,))
        confidence, reasons = self._estimate(pool, ctx)
        return Assessment(confidence, "found" if confidence >= self.found else "unsure", reasons)

    def with_relevance(self, pool: Pool, confidence: float) -> Pool:
        """The candidates with their relevance: the confidence, less with the distance."""
        if not pool:
            return pool
        odds, best = logit(confidence), pool[0].score
        fall = self.fall / best if best > 0 else 0.0
        return tuple(c.with_relevance(_logistic(odds - fall * (best - c.score))) for c in pool)

    def _estimate(self, pool: Pool, ctx: Context) -> tuple[float, tuple[ConfidenceReason, ...]]:
        features = features_of(pool, ctx)
        weights = Features(*(getattr(self, name) for name in Features._fields))
        intercept = self.intercept
        if not features.cosine:
            intercept, covered = self.words_only
            weights = Features(coverage=covered)
        if weights.coverage:
            best = max(coverage(cand, ctx) for cand in pool[:_FIRST])
            features = features._replace(coverage=best)
        guessed = _expected_of_missing(pool[:_FIRST], ctx)
        constant = ConfidenceReason("constant", 1.0, intercept, _CONSTANT)
        reasons = tuple(
            ConfidenceReason(name, value, weight * value, _explain(name, value, guessed))
            for name, weight, value in zip(Features._fields, weights, features, strict=True)
            if weight and value
        )
        reasons = (constant, *reasons)
        return _logistic(math.fsum(one.contribution for one in reasons)), reasons


def _explain(name: str, value: float, guessed: float) -> str:
    """Say what a feature tells, and whether it is only what words let expect."""
    shown = math.exp(value) if name == "memories" else value
    told = _EXPLANATIONS[name].format(shown)
    is_guess = name == "cosine" and value == guessed
    return f"{told}, as its words let expect" if is_guess else told


# Fitted without the lead: scores of other profiles have other scales.
_DESCRIBING = Confidence(
    unsure=0.0, intercept=-5.333, cosine=17.661, words=1.353, lead=0.0, memories=-0.559, turn=-2.388
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
    # Without a question there is nothing to be relevant to.
    return _DESCRIBING.rate(pool, estimate, judged) if ctx.query.text.strip() else pool, judged


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
    unrelated = unrelated_similarity(ctx.embedder)
    rows = [row for cand in first if (row := table.row(cand.item.id))]
    near = [on_reference_scale(table.plain[row], unrelated) for row in rows]
    shared = max(
        (reason.value for c in first if (reason := c.reason("channel.lexical"))), default=0.0
    )
    return Features(
        cosine=max(0.0, _expected_of_missing(first, ctx), *near),
        words=shared * max_bm25_score(ctx) / 10.0,
        lead=_lead(pool),
        memories=math.log(max(len(pool), ctx.store.search.count(ctx.scope))),
        turn=_share_of_talk(pool[0].item),
    )


def _share_of_talk(item: Item) -> float:
    """1 for what a named speaker said in a session, half for anything else in one, else 0."""
    speaker = (item.speaker or "").casefold()
    return 0.0 if item.session is None else 1.0 if speaker and speaker not in ROLES else 0.5


def _expected_of_missing(first: Pool, ctx: Context) -> float:
    """Of what has no vector in a space that has some, the best similarity to be expected."""
    table = similarity_features(first, ctx)
    missing = () if table.is_empty else [cand for cand in first if not table.row(cand.item.id)]
    return max((expected_similarity(cand, ctx).whole for cand in missing), default=0.0)


def _lead(pool: Pool) -> float:
    """How far the first is ahead of the mean of the ten after it."""
    rivals = [cand.score for cand in pool[1 : _FIRST + 1]]
    missing = _FIRST - len(rivals)
    behind = math.fsum(pool[0].score - score for score in rivals)
    return (behind + missing * _NO_RIVAL_LEAD) / _FIRST


def _logistic(odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-max(-60.0, min(60.0, odds))))


def _answers_time(cand: Candidate, ctx: Context) -> bool:
    """Whether it is of the time, or its text names it, whenever it was stored."""
    if is_of_named_time(cand, ctx) or mentions_named_period(cand.item, ctx):
        return True
    terms = time_terms(ctx)
    return bool(terms) and terms <= set(ctx.store.search.terms(cand.item.text))
