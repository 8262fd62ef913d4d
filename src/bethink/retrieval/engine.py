"""The read pipeline: from a query to an answer, top to bottom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from functools import partial

from bethink.core.blas import ONE_BLAS_THREAD
from bethink.core.characters import has_substance
from bethink.core.dataclass import replace
from bethink.core.registry import implements
from bethink.errors import ModelError, StoreDamaged, StoreError
from bethink.model import (
    UPDATE_LINKS,
    AnswerStatus,
    Assessment,
    Candidate,
    Degraded,
    Item,
    Pool,
    Recall,
)
from bethink.model.answer import MIN_RELEVANCE, count_below_relevance
from bethink.ports import Reranker, Store, is_remote, unrelated_similarity
from bethink.ports.models import RemoteCalls
from bethink.retrieval.context import (
    Context,
    ForetellingRetriever,
    IndexingRetriever,
    JudgingStage,
    PrefetchingRetriever,
    Retriever,
    SkippableRetriever,
    Stage,
)
from bethink.retrieval.profile import SLOTS, Profile
from bethink.retrieval.query_analysis import asks_only_for_time, periods, time_only_filters
from bethink.retrieval.stages.assemble import REPORTED_LINKS, page_of, relations_of, warnings_for
from bethink.retrieval.stages.gate import Confidence, describe, drop_below, limit_untrusted
from bethink.retrieval.stages.late_interaction import with_passage
from bethink.retrieval.stages.rerank import Rerank
from bethink.retrieval.trace import Trace

_AHEAD = 64  # of the best candidates; few answers have others


def recall(profile: Profile, ctx: Context) -> Recall:
    """Recall memories for the query, all read from one snapshot of the store.

    With ``track`` the returned memories are marked as used: the only write of a recall.
    Remote models are asked while no snapshot is open: the question is embedded before, and
    where a step needs more, that is asked and the recall run again, on a new snapshot.
    """
    update_indexes(profile, ctx.store)
    if not ctx.query.text.strip():
        profile, ctx = profile.for_browsing(), replace(ctx, reranker=None, embedder=None)
    if not (is_remote(ctx.embedder) or is_remote(ctx.reranker)):
        return run_pipeline(profile, ctx)
    started, calls = datetime.now(UTC), RemoteCalls()
    seen = replace(
        ctx, embedder=calls.embedder(ctx.embedder), reranker=calls.reranker(ctx.reranker)
    )
    if any(implements(channel, PrefetchingRetriever) for channel in profile.channels):
        calls.run(partial(_embed_ahead, seen))
    # Of an earlier snapshot only the embedding is kept.
    answer = calls.run(lambda: run_pipeline(profile, seen.for_store(seen.store)))
    run = answer.run and answer.run._replace(started_at=started)
    return replace(answer, run=run)


def update_indexes(profile: Profile, store: Store) -> None:
    """Bring the indexes up to date that retrievers of the profile have for themselves.

    Where the store cannot be written, they search what is in their index.
    """
    for channel in profile.channels:
        if implements(channel, IndexingRetriever):
            with suppress(StoreError):
                channel.update_index(store)


def _embed_ahead(ctx: Context) -> None:
    """Embed the question, if the model can; a step that needs it tells why it cannot."""
    with suppress(ModelError):
        if ctx.embedder is not None:
            ctx.embedding()
            unrelated_similarity(ctx.embedder)
            _ = ctx.embedder.model


def run_pipeline(profile: Profile, ctx: Context) -> Recall:
    """Run the steps of a recall in order.

    The order is fixed here; what each step does is defined by the profile. An empty slot
    does nothing.
    """
    with _reading(ctx) as view:
        trace = Trace(view)

        # 1. Plan: analyse the question: its content terms and how rare each is in this space.
        trace.run("plan", partial(_plan, profile, view))

        # 2. Retrieve: every retriever returns its own ranking; first among what is trusted.
        found = _retrieve(profile, view, trace)
        if _matches_untrusted(found, view, ctx):
            found, seen, trace = _retrieve_all(profile, found, view, ctx)
        else:
            seen = view

        # 3. Fuse the rankings into one pool.
        pool = trace.run("fuse", partial(profile.fuse, found, seen))
        _read_ahead(pool, seen)

        # 4. Expand: add linked memories and neighbouring turns of the best candidates.
        pool = trace.run_slot("expand", profile.expand, pool)

        # 5. Adjust: weigh in age, importance, answer type and the caller's boost.
        pool = trace.run_slot("adjust", profile.adjust, pool)

        # 6. Rerank: score the best candidates against the question.
        pool = trace.run_slot("rerank", _rerank_stages(profile, seen), pool)

        _read_ahead(pool, seen)

        # 7. Diversify: prefer new information over repetition.
        offered = trace.run_slot("diversify", profile.diversify, pool)

        # 8. Gate: judge whether anything is on the subject, and drop what is not: maybe everything.
        pool, verdict = _gate(profile, offered, seen, trace)

        # 9. Budget: keep what fits the caller's limits, and is what was stored.
        hits, pool, offered = _fit_budget(profile, pool, offered, seen, trace)

        # 10. Assemble the answer: relations, captions, timelines, warnings.
        answer = _assemble(profile, (hits, pool, offered), verdict, seen, trace)

    # 11. Note what was returned as used.
    return note_use(profile, answer, seen if seen.store is ctx.store else ctx)


@contextmanager
def _reading(ctx: Context) -> Iterator[Context]:
    """Hold one snapshot, and give the context of what is trusted; vectors on one thread.

    Memories of trust 0 are hidden from it: so nothing about them makes an answer surer,
    neither their rank nor what they change in the frequency of a word.
    """
    products = nullcontext() if ctx.embedder is None else ONE_BLAS_THREAD
    with products, ctx.store.snapshot(at_once=False), ExitStack() as views:
        ctx.store.search.read_ahead(text=ctx.query.text)
        trusted = ctx.store if ctx.vouched is not None else ctx.store.trusted()
        if trusted is not ctx.store:
            with suppress(StoreDamaged):  # the answer itself tells what is damaged
                views.enter_context(trusted.snapshot())
                ctx = ctx.for_store(trusted)
        yield ctx


def _read_ahead(pool: Pool, ctx: Context) -> None:
    """Tell a store on a server which memories the next steps are about."""
    if is_remote(ctx.store) and ctx.query.as_of is None:
        ids = [cand.item.id for cand in pool[:_AHEAD] if _is_stored(cand.item)]
        ctx.store.read_ahead(ids, ((UPDATE_LINKS, False), (REPORTED_LINKS, True)))
        if ctx.embedder is not None:
            ctx.store.vectors.read_ahead(ids, ctx.embedder.model)


def note_use(profile: Profile, answer: Recall, ctx: Context) -> Recall:
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


def _retrieve(profile: Profile, ctx: Context, trace: Trace) -> dict[Retriever, Pool]:
    found: dict[Retriever, Pool] = {}
    for retriever in profile.channels:
        name = f"channel.{retriever.name}"
        if reason := _skip_reason(retriever, found, ctx):
            trace.record_skip(name, reason)
        else:
            found[retriever] = trace.attempt(name, partial(ctx.pool_of, retriever))
    return found


def _retrieve_all(
    profile: Profile, trusted: Mapping[Retriever, Pool], view: Context, whole: Context
) -> tuple[dict[Retriever, Pool], Context, Trace]:
    """Plan and retrieve anew, with memories of trust 0.

    How sure the answer is, is judged before: by steps 3 to 8 for the trusted alone.
    """
    if view.reranker is not None:
        view = replace(view, reranker=_Remembering(view.reranker))
    verdict = _judge(profile, trusted, view)
    seen = replace(view.for_store(whole.store), vouched=verdict)
    trace = Trace(seen)
    trace.run("plan", partial(_plan, profile, seen))
    return _retrieve(profile, seen, trace), seen, trace


def _judge(profile: Profile, found: Mapping[Retriever, Pool], ctx: Context) -> Assessment:
    """How sure an answer from these candidates would be."""
    trace = Trace(ctx)
    pool = profile.fuse(found, ctx)
    pool = trace.run_slot("expand", profile.expand, pool)
    pool = trace.run_slot("adjust", profile.adjust, pool)
    pool = trace.run_slot("rerank", _rerank_stages(profile, ctx), pool)
    pool = trace.run_slot("diversify", profile.diversify, pool)
    pool, verdict = _gate(profile, pool, ctx, trace)
    return verdict if pool else verdict._replace(outcome="nothing_matched")


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


def _matches_untrusted(found: Mapping[Retriever, Pool], view: Context, whole: Context) -> bool:
    """Whether memories of trust 0 are among the candidates of a question.

    ``found`` is what retrievers found in the view that hides them.
    """
    if view.store is whole.store or view.query.filters.min_trust > 0:
        return False
    hidden = view.for_hidden(whole.store)
    return not any(found.values()) or any(
        _ranks_untrusted(retriever, pool, hidden) for retriever, pool in found.items()
    )


def _ranks_untrusted(retriever: Retriever, pool: Pool, hidden: Context) -> bool:
    """Whether a memory of trust 0 would be in the pool of a retriever."""
    try:
        best = max((one.score for one in retriever(hidden) if one.item.trust < 1), default=None)
    except (ModelError, StoreDamaged):
        return False  # the trace tells of it
    depth = getattr(retriever, "depth", None)
    limit = depth and hidden.candidate_limit(depth * getattr(retriever, "oversample", 1))
    is_full = limit is not None and len(pool) >= limit
    return best is not None and (not is_full or best >= pool[-1].score)


def _rerank_stages(profile: Profile, ctx: Context) -> tuple[Stage, ...]:
    """The stages that rerank; a configured reranker is added where the profile has no place."""
    stages = profile.rerank
    if ctx.reranker is None:
        return stages
    has_place = any(isinstance(stage, Rerank) for name in SLOTS for stage in profile.slot(name))
    return stages if has_place else (*stages, Rerank())


def _gate(profile: Profile, offered: Pool, ctx: Context, trace: Trace) -> tuple[Pool, Assessment]:
    """What is relevant enough, and how sure the answer is: the last judging stage says.

    Where none judges, the verdict of an earlier pass stands. Last comes the caller's limit.
    """
    pool: Pool = offered
    verdict: Assessment | None = ctx.judged
    if ctx.vouched is not None:
        judges = [stage for stage in profile.gate if implements(stage, JudgingStage)]
        limit = partial(limit_untrusted, pool, ctx, is_judged=bool(verdict or judges))
        pool = trace.run("gate.trust", limit, pool)
    if verdict is not None:
        pool = Confidence().with_relevance(pool, verdict.confidence)
    for stage in profile.gate:
        if stage.name == "helped" and not ctx.votes:
            continue  # mostly since the setting is off: not worth a line of the trace
        name = f"gate.{stage.name}"
        if implements(stage, JudgingStage):
            pool, verdict = trace.run_judge(name, stage, pool, verdict)
        else:
            pool = trace.run_stage(name, stage, pool)
    if verdict is None:
        pool, verdict = describe(pool, ctx)
    if (least := ctx.query.min_relevance) and ctx.query.text.strip():
        pool = trace.run(MIN_RELEVANCE, partial(drop_below, least, pool, ctx), pool)
    return pool, verdict


def _assemble(
    profile: Profile,
    pools: tuple[Pool, Pool, Pool],
    verdict: Assessment,
    ctx: Context,
    trace: Trace,
) -> Recall:
    """The answer, from what is returned, what passed the gate, and what was offered to it."""
    hits, passed, offered = pools
    trace.degraded += ctx.damage()
    relations, ctx = relations_of(hits, ctx), replace(ctx, offered=offered)
    additions = [
        trace.run_assembler(f"assemble.{add.name}", partial(add, hits, ctx), hits)
        for add in profile.assemble
    ]
    status, reason = _answer_status(hits, passed, offered, verdict, ctx)
    if not passed and (count := count_below_relevance(trace.steps)):
        reason = f"below min_relevance {ctx.query.min_relevance:g} are all {count} that were found"
    return Recall(
        query=ctx.query, profile=profile.name, status=status, reason=reason, hits=hits,
        page=page_of(passed, hits, ctx.query),
        warnings=(*warnings_for(hits, relations), *(w for add in additions for w in add.warnings)),
        degraded=tuple(trace.degraded),
        nearest_miss=_nearest_miss(offered, verdict, ctx) if offered and not passed else None,
        steps=tuple(trace.steps), run=trace.finish(),
        captions=tuple(caption for add in additions for caption in add.captions),
        relations=relations,
        timelines=tuple(timeline for add in additions for timeline in add.timelines),
        ways=_match_kinds(profile), confidence=verdict.confidence, assessed=verdict.reasons,
    )  # fmt: skip


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
    return tuple((one.name, getattr(one, "matches", "")) for one in profile.channels)


def _skip_reason(retriever: Retriever, found: dict[Retriever, Pool], ctx: Context) -> str:
    """The reason to skip a retriever; empty where it should run."""
    if not _has_searchable_text(ctx):
        return "there is nothing to look for"
    return retriever.skip(found, ctx) if implements(retriever, SkippableRetriever) else ""


def _has_searchable_text(ctx: Context) -> bool:
    """Whether the query has content: empty text is allowed, punctuation alone is not."""
    text = ctx.query.text
    return not text.strip() or has_substance(text)


def _plan(profile: Profile, ctx: Context) -> Pool:
    for retriever in profile.channels:
        if implements(retriever, PrefetchingRetriever):
            retriever.prefetch(ctx)
        if implements(retriever, ForetellingRetriever) and is_remote(ctx.store):
            with suppress(ModelError, StoreError):  # the retriever itself tells of it
                retriever.read_ahead(ctx)
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
        known = "on this subject" if outcome == "found" else "that may be related"
        if not ctx.query.text.strip():
            known = "within the filters"
        if hits:
            return outcome, f"{len(passed)} {known}, of {len(offered)} considered"
        levels = {cand.item.level for cand in passed}
        if levels <= {level for level, most in ctx.query.most if not most}:
            unwanted = " and ".join(sorted(levels))
            return outcome, f"all {len(passed)} {known} are of level {unwanted}; none was asked for"
        return outcome, f"all {len(passed)} {known} lie before offset {ctx.query.offset}"
    if not ctx.store.admin.count():
        return "nothing_stored", "nothing is stored in this space yet"
    return "nothing_matched", _no_match_reason(offered, judged, ctx)


def _no_match_reason(offered: Pool, judged: Assessment, ctx: Context) -> str:
    if offered and not time_only_filters(ctx):
        least, why = ctx.query.min_confidence, "nothing is stored on this subject"
        if least is not None and judged.confidence < least:
            why = f"the confidence {judged.confidence:.2f} is below min_confidence {least:g}"
        return f"{why}; the nearest is {offered[0].item.id}"
    if not ctx.query.text.strip():
        return "the filters leave no memory"
    if not _has_searchable_text(ctx):
        return "the question has no letter, digit or symbol in it"
    if asks_only_for_time(ctx):
        return f"no stored memory is of {' or '.join(one.said for one in periods(ctx))}"
    return "nothing is stored on this subject"
