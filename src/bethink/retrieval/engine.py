"""The read pipeline: from a query to an answer, top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from threading import Semaphore

from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.characters import has_substance
from bethink.core.dataclass import replace
from bethink.core.registry import implements
from bethink.errors import ModelError, StoreDamaged, StoreError
from bethink.model import AnswerStatus, Assessment, Candidate, Degraded, Item, Pool, Recall
from bethink.ports import Reranker, is_remote, unrelated_similarity
from bethink.ports.models import RemoteCalls
from bethink.retrieval.context import (
    Context,
    PrefetchingRetriever,
    Retriever,
    SkippableRetriever,
    Stage,
)
from bethink.retrieval.profile import SLOTS, Profile
from bethink.retrieval.query_analysis import asks_only_for_time, periods
from bethink.retrieval.retrievers import MATCH_KINDS
from bethink.retrieval.retrievers.ranking import store_damage
from bethink.retrieval.stages.assemble import page_of, relations_of, warnings_for
from bethink.retrieval.stages.gate import Confidence, judge
from bethink.retrieval.stages.late_interaction import damaged_vectors, with_passage
from bethink.retrieval.stages.rerank import Rerank
from bethink.retrieval.trace import Trace


def recall(profile: Profile, ctx: Context) -> Recall:
    """Recall memories for the query, all read from one snapshot of the store.

    With ``track`` the returned memories are marked as used: the only write of a recall.
    """
    if not ctx.query.text.strip():
        profile, ctx = profile.for_browsing(), replace(ctx, reranker=None, embedder=None)
    answer = run_in_snapshot(profile, ctx)
    # 11. Note what was returned as used.
    return mark_used(profile, answer, ctx)


def run_in_snapshot(profile: Profile, ctx: Context) -> Recall:
    """Run the pipeline on one snapshot of the store; products of vectors on one thread.

    Remote models are asked while it is not open: the question is embedded before, and where
    a step needs more, that is asked and the pipeline run again, on a new snapshot.
    """
    if not (is_remote(ctx.embedder) or is_remote(ctx.reranker)):
        return _run_once(profile, ctx)
    started, calls = datetime.now(UTC), RemoteCalls()
    seen = replace(
        ctx, embedder=calls.embedder(ctx.embedder), reranker=calls.reranker(ctx.reranker)
    )
    if any(implements(channel, PrefetchingRetriever) for channel in profile.channels):
        calls.run(partial(_embed_ahead, seen))
    # Of an earlier snapshot only the embedding is kept.
    answer = calls.run(lambda: _run_once(profile, seen.for_store(seen.store)))
    run = answer.run and answer.run._replace(started_at=started)
    return replace(answer, run=run)


def _embed_ahead(ctx: Context) -> None:
    """Embed the question, if the model can; a step that needs it tells why it cannot."""
    with suppress(ModelError):
        if ctx.embedder is not None:
            ctx.embedding()
            unrelated_similarity(ctx.embedder)
            _ = ctx.embedder.model


def _run_once(profile: Profile, ctx: Context) -> Recall:
    """Run the pipeline on one snapshot.

    A query for trusted memories only is asked of a view in which no others are stored.
    """
    products = nullcontext() if ctx.embedder is None else ONE_BLAS_THREAD
    with _in_turn(ctx), products, ctx.store.snapshot():
        if ctx.query.filters.min_trust == 0:
            return run_pipeline(profile, ctx)
        trusted = ctx.for_store(ctx.store.trusted())
        with trusted.store.snapshot():
            return run_pipeline(profile, trusted)


_MAX_AT_ONCE, _MAX_WAIT_S = 2, 1.0
_TURNS = Semaphore(_MAX_AT_ONCE)


@contextmanager
def _in_turn(ctx: Context) -> Iterator[None]:
    """Let few threads at a time run a pipeline that only computes.

    With eight of them at work each waits for Python's lock over a thousand times, and a
    recall takes twice the CPU time. A step may wait for another recall: after a while it
    begins all the same.
    """
    waits = is_remote(ctx.store) or ctx.reranker is not None
    if waits or getattr(ctx.embedder, "slow", False) or not _TURNS.acquire(timeout=_MAX_WAIT_S):
        yield
        return
    try:
        yield
    finally:
        _TURNS.release()


def mark_used(profile: Profile, answer: Recall, ctx: Context) -> Recall:
    """Record the hits as used if the query tracks use, and return the answer.

    A store that cannot be written (busy, disk full) degrades the answer and does not fail it.
    """
    if not ctx.query.track:
        return answer
    try:
        profile.track(answer.hits, ctx)
    except StoreError as error:
        missed = Degraded("track", error.message)
        return replace(answer, degraded=(*answer.degraded, missed))
    return answer


def run_pipeline(profile: Profile, ctx: Context) -> Recall:
    """Run the steps of the pipeline in order.

    The order is fixed here; what each step does is defined by the profile. An empty slot
    does nothing.
    """
    ctx = judge_trusted(profile, ctx)
    trace = Trace(ctx)
    offered = _rank(profile, ctx, trace)

    # 8. Gate: judge how sure the answer is, and drop what is not relevant: maybe everything.
    judged, pool = _gate(profile, offered, ctx, trace)

    # 9. Budget: keep what fits the caller's limits, and is what was stored.
    hits, pool, offered = _fit_budget(profile, pool, offered, ctx, trace)
    trace.degraded += [Degraded("store", reason) for reason in sorted(store_damage(ctx))]
    if count := len(damaged_vectors(ctx)):
        reason = f"the vectors of {count} memories or passages are damaged (bethink reindex)"
        trace.degraded.append(Degraded("vectors", reason))

    # 10. Assemble the answer: relations, captions, timelines, warnings.
    relations, ctx = relations_of(hits, ctx), replace(ctx, offered=offered)
    additions = [
        trace.run_assembler(f"assemble.{add.name}", partial(add, hits, ctx), hits)
        for add in profile.assemble
    ]
    status, reason = _answer_status(hits, pool, offered, judged, ctx)
    return Recall(
        query=ctx.query,
        profile=profile.name,
        status=status,
        reason=reason,
        hits=hits,
        page=page_of(pool, hits, ctx.query),
        warnings=(*warnings_for(hits, relations), *(w for add in additions for w in add.warnings)),
        degraded=tuple(trace.degraded),
        nearest_miss=_nearest_miss(offered, judged, ctx) if offered and not pool else None,
        steps=tuple(trace.steps),
        run=trace.finish(),
        captions=tuple(caption for add in additions for caption in add.captions),
        relations=relations,
        timelines=tuple(timeline for add in additions for timeline in add.timelines),
        ways=_match_kinds(profile),
        confidence=judged.confidence,
        assessed=judged.reasons,
    )


def judge_trusted(profile: Profile, ctx: Context) -> Context:
    """The context with how sure the answer would be without memories of trust 0.

    The same steps, in a view of the space in which they are not stored: so nothing about
    them counts, neither their rank nor what they change in the frequency of a word.
    """
    if ctx.vouched is not None:
        return ctx
    trusted = ctx.store.trusted()
    if trusted is ctx.store:
        return ctx
    reranker = None if ctx.reranker is None else _Remembering(ctx.reranker)
    seen = replace(ctx.for_store(trusted), reranker=reranker)
    trace = Trace(seen)
    try:
        with trusted.snapshot():
            judged, pool = _gate(profile, _rank(profile, seen, trace), seen, trace)
    except StoreDamaged:
        return ctx  # the answer itself tells what is damaged
    if not pool:
        judged = judged._replace(outcome="nothing_matched")
    return replace(seen.for_store(ctx.store), vouched=judged)


class _Remembering:
    """A reranker that reads no text twice."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker
        self._known: dict[str, float] = {}

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        scores = self._reranker(query, new) if new else ()
        if len(scores) != len(new):
            return scores  # too few or too many: the stage says so
        self._known.update(zip(new, scores, strict=True))
        return [self._known[text] for text in texts]


def _rank(profile: Profile, ctx: Context, trace: Trace) -> Pool:
    """Steps 1 to 7: what is offered to the gate, best first."""
    # 1. Analyse the question: its content terms and how rare each is in this space.
    trace.run("plan", partial(_plan, profile, ctx))

    # 2. Run every retriever; each returns its own ranking.
    found: dict[Retriever, Pool] = {}
    for retriever in profile.channels:
        name = f"channel.{retriever.name}"
        if reason := _skip_reason(retriever, found, ctx):
            trace.record_skip(name, reason)
        else:
            found[retriever] = trace.attempt(name, partial(ctx.pool_of, retriever))

    # 3. Fuse the rankings into one pool.
    pool = trace.run("fuse", partial(profile.fuse, found, ctx))

    # 4. Expand: add linked memories and neighbouring turns of the best candidates.
    # 5. Adjust: weigh in age, importance, answer type and the caller's boost.
    # 6. Rerank: score the best candidates against the question.
    # 7. Diversify: prefer new information over repetition.
    for slot in ("expand", "adjust", "rerank", "diversify"):
        for stage in _stages_of_slot(profile, slot, ctx):
            pool = trace.run_stage(f"{slot}.{stage.name}", stage, pool)

    return pool


def _gate(profile: Profile, offered: Pool, ctx: Context, trace: Trace) -> tuple[Assessment, Pool]:
    """Step 8: how sure the answer is, and what is relevant enough."""
    pool = offered
    for stage in profile.gate:
        pool = trace.run_stage(f"gate.{stage.name}", stage, pool)
    return judge(pool, ctx)


def _nearest_miss(offered: Pool, judged: Assessment, ctx: Context) -> Candidate:
    """The best of what was not relevant enough, with its relevance."""
    return Confidence().with_relevance((with_passage(offered[0], ctx),), judged.confidence)[0]


def _fit_budget(
    profile: Profile, pool: Pool, offered: Pool, ctx: Context, trace: Trace
) -> tuple[Pool, Pool, Pool]:
    """Return what fits the limits; what is damaged is left out of it and of both pools.

    Raises StoreDamaged where nothing is found and a part of the store could not be searched.
    """
    hits = trace.run("budget", partial(profile.budget, pool, ctx), pool)
    while shown := hits or offered[:1]:
        ids = [one.item.id for one in shown if _is_stored(one.item)]
        # Reading checks what it returns; a search may have read an id that rot has made.
        damaged = set(ids) - ctx.store.items.get(ids, as_of=ctx.query.as_of).keys()
        if not damaged:
            return hits, pool, offered
        trace.degraded += [
            Degraded("store", f"the memory {item} is damaged and left out (bethink doctor)")
            for item in sorted(damaged)
        ]
        offered, pool = _without(damaged, offered), _without(damaged, pool)
        hits = profile.budget(pool, ctx)
    if trace.damage is not None:
        raise trace.damage
    return hits, pool, offered


def _is_stored(item: Item) -> bool:
    """Whether an item comes from the store: notes and edges have no hash; rot has no text."""
    return bool(item.content_hash) or not item.text


def _without(ids: set[str], pool: Pool) -> Pool:
    return tuple(one for one in pool if one.item.id not in ids)


def _match_kinds(profile: Profile) -> tuple[tuple[str, str], ...]:
    """What each retriever of the profile matches by: words, meaning, names, time."""
    return tuple(
        (retriever.name, MATCH_KINDS.get(type(retriever).__name__, ""))
        for retriever in profile.channels
    )


def _skip_reason(retriever: Retriever, found: dict[Retriever, Pool], ctx: Context) -> str:
    """The reason to skip a retriever; empty where it should run."""
    if not _has_searchable_text(ctx):
        return "there is nothing to look for"
    return retriever.skip(found, ctx) if implements(retriever, SkippableRetriever) else ""


def _has_searchable_text(ctx: Context) -> bool:
    """Whether the query has content: empty text is allowed, punctuation alone is not."""
    text = ctx.query.text
    return not text.strip() or has_substance(text)


def _stages_of_slot(profile: Profile, slot: str, ctx: Context) -> tuple[Stage, ...]:
    """The stages of a slot. A configured reranker is added to a profile without a place for it."""
    stages = profile.slot(slot)
    if slot != "rerank" or ctx.reranker is None:
        return stages
    has_place = any(isinstance(stage, Rerank) for name in SLOTS for stage in profile.slot(name))
    return stages if has_place else (*stages, Rerank())


def _plan(profile: Profile, ctx: Context) -> Pool:
    for retriever in profile.channels:
        if implements(retriever, PrefetchingRetriever):
            retriever.prefetch(ctx)
    frequencies = ctx.statistics().frequencies
    content = [word for word in ctx.words() if not word.common]
    rare_first = sorted(content, key=lambda word: (-ctx.idf(word), word.shown))
    counts = [(word.shown, min(frequencies.get(t, 0) for t in word.terms)) for word in rare_first]
    if counts:
        frequent = ", ".join(f"{word}: {count}" for word, count in counts[:8])
        ctx.add_step_note(f"memories with {frequent}")
    return ()


def _answer_status(
    hits: Pool, passed: Pool, offered: Pool, judged: Assessment, ctx: Context
) -> tuple[AnswerStatus, str]:
    """The answer's status and reason: found, unsure, or one of two ways of finding nothing."""
    if passed:
        vouched = not hits or any(cand.item.trust for cand in hits)
        outcome: AnswerStatus = "found" if judged.outcome == "found" and vouched else "unsure"
        known = "relevant" if outcome == "found" else "perhaps related"
        if hits:
            return outcome, f"{len(passed)} {known} of {len(offered)} considered"
        before = f"all {len(passed)} {known} memories lie before offset {ctx.query.offset}"
        return outcome, before
    if not ctx.store.admin.count():
        return "nothing_stored", "nothing is stored in this space yet"
    if not offered:
        return "nothing_matched", _no_match_reason(ctx)
    return "nothing_matched", _not_relevant_reason(offered[0])


def _no_match_reason(ctx: Context) -> str:
    if not ctx.query.text.strip():
        return "the filters leave no memory"
    if not _has_searchable_text(ctx):
        return "the question has no letter, digit or symbol in it"
    if asks_only_for_time(ctx):
        return f"no stored memory is of {' or '.join(one.said for one in periods(ctx))}"
    return "no stored memory has anything to do with this question"


def _not_relevant_reason(best: Candidate) -> str:
    return f"nothing relevant enough; the nearest miss is {best.item.id}"
