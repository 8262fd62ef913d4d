"""Deep recall: where the first answer is not sufficient, expand and search wider.

What is sufficient is judged by rules or by a language model. The model's output is validated
and only decides whether and with which words to search on. None of its text gets into an
answer, and it cannot name a file, space or address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from time import perf_counter
from typing import TypeVar

from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import implements
from bethink.core.sentences import shorten
from bethink.errors import ModelError
from bethink.model import (
    Assessment,
    Candidate,
    Caption,
    Degraded,
    Pool,
    Recall,
    Step,
    sort_by_score,
)
from bethink.ports import Budget, LanguageModel, Prompt, Unusable, Word, is_remote
from bethink.prompts import Passage, cited_ids, fill_prompt, load_passages
from bethink.retrieval import engine, query_analysis
from bethink.retrieval.context import Context, JudgingStage, PerEach, Stage
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.deep.expansion import Expansion, expand_by_rules, expansion_retrievers
from bethink.retrieval.profile import Profile
from bethink.retrieval.stages.adjust import speakers_of
from bethink.retrieval.stages.late_interaction import shown_text

_SCORE_STEP = 0.001


# Compared by identity: candidates cannot be hashed.
@dataclass(frozen=True, slots=True, eq=False)
class ProtectFirstHits:
    """Keeps the first hits of an earlier pass above all others, in their order.

    What the wider pass adds comes after them. A first hit is lifted only where another would
    pass it: their scores are on one scale, by which relevance falls. One that the wider pass
    did not find is added with the score and evidence it had.
    """

    first: Pool = ()
    name: str = "protect"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        known = {cand.item.id: cand for cand in self.first} | {cand.item.id: cand for cand in pool}
        ranks = {cand.item.id: rank for rank, cand in enumerate(self.first, 1)}
        others = [cand for cand in pool if cand.item.id not in ranks]
        best = max((cand.score for cand in others), default=0.0)
        unit = _SCORE_STEP * (abs(best) or 1.0)
        lifted = []
        for item, rank in reversed(ranks.items()):
            cand, why = known[item], f"rank {rank} of the first pass"
            missing = max(0.0, best + unit - cand.score)
            lifted.append(cand.with_evidence(self.name, "add", missing, why))
            best = lifted[-1].score
        return sort_by_score((*others, *lifted))


FIRST, SUFFICIENCY, EXPANSION = "deep.first", "deep.sufficiency", "deep.expansion"

T = TypeVar("T")


def recall(
    first: Profile, wider: Profile, ctx: Context, model: LanguageModel | None = None
) -> Recall:
    """Recall in two passes: a wider one follows where the first is not sufficient.

    A model is consulted between the passes, while no snapshot is held; without one, or
    where it fails, rules decide.
    """
    if not ctx.query.text.strip():
        return engine.recall(wider, ctx)
    engine.update_indexes(first, ctx.store)
    engine.update_indexes(wider, ctx.store)
    untracked = replace(ctx, query=replace(ctx.query, track=False))
    profile, answer = _judge_by_trusted(first, wider, untracked, model)
    return engine.note_use(profile, replace(answer, query=ctx.query), ctx)


def _ask(
    first: Profile, wider: Profile, ctx: Context, model: LanguageModel | None
) -> tuple[Profile, Recall]:
    """The answer of one view of the space, and the profile of the pass that gave it."""
    run = _DeepRecall(ctx, wider.name, wider.deep or DeepSettings(), model)
    if model or is_remote(ctx.embedder) or is_remote(ctx.reranker):
        return _run_passes(first, wider, run)
    # Nobody else is asked: both passes read one snapshot, and none searches the same twice.
    ctx.keep_pools()
    with ctx.store.snapshot():
        return _run_passes(first, wider, run)


def _run_passes(first: Profile, wider: Profile, run: _DeepRecall) -> tuple[Profile, Recall]:
    ctx = run.ctx

    # 1. First pass: an ordinary recall.
    answer = engine.recall(first, ctx)

    # 2. Return it if it is sufficient, or if it has no hits to expand from.
    verdict = run.judge(answer)
    if verdict.enough or not _gated_pool(answer):
        return first, run.finish_with_first(answer, verdict)

    # 3. Expand the question; each expansion runs on the retrievers that support it.
    run.record_first_pass(answer)
    expansions = run.expand(answer, verdict)
    expanded = run.widen(wider, expansions, answer)

    # 4. Second pass: the wider profile with the expansions as further retrievers.
    if any(implements(stage, JudgingStage) for stage in first.gate):
        ctx = replace(ctx, judged=_assessment(answer))
    wide = engine.recall(expanded, ctx)

    # 5. Return the answer with its evidence; it is no less sure than the first.
    surer = max(wide, answer, key=lambda one: one.confidence)
    wide = replace(wide, status=surer.status, confidence=surer.confidence, assessed=surer.assessed)
    return wider, run.finish_with_wider(wide)


def _judge_by_trusted(
    first: Profile, wider: Profile, ctx: Context, model: LanguageModel | None
) -> tuple[Profile, Recall]:
    """Ask without memories of trust 0, which says how sure the answer is, and then with them.

    The model is not asked the same twice.
    """
    trusted = ctx.store.trusted()
    if trusted is ctx.store:
        return _ask(first, wider, ctx, model)
    model = None if model is None else _Remembering(model)
    view = ctx.for_store(trusted)
    profile, answer = _ask(first, wider, view, model)
    if ctx.query.filters.min_trust > 0:
        return profile, answer
    return _ask(first, wider, replace(ctx, vouched=_assessment(answer)), model)


def _assessment(answer: Recall) -> Assessment:
    """How sure an answer is, as a verdict."""
    outcome = answer.status if answer.status in ("found", "unsure") else "nothing_matched"
    return Assessment(answer.confidence, outcome, answer.assessed)


class _Remembering:
    """A language model that is not asked the same twice."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._known: dict[tuple[str, str], Json] = {}

    @property
    def name(self) -> str:
        """Provider and model."""
        return self._model.name

    def complete(self, prompt: Prompt, *, budget: Budget) -> Json:
        """Return the answer to the prompt."""
        asked = prompt.system, prompt.user
        if asked not in self._known:
            self._known[asked] = self._model.complete(prompt, budget=budget)
        return self._known[asked]


def deep_profiles(profile: Profile, load: Callable[[str], Profile]) -> tuple[Profile, Profile]:
    """The profiles of the first and of the wider pass.

    A profile may be deep itself (``deep``) or name a deeper one (``deeper``); otherwise the
    wider pass is the same profile with doubled depth.
    """
    if profile.deep is not None:
        if profile.deep.first:
            return load(profile.deep.first), profile
        return replace(profile, expand=(), rerank=(), diversify=(), deep=None), profile
    if profile.deeper:
        return profile, load(profile.deeper)
    return profile, _with_doubled_depth(profile)


def _with_doubled_depth(profile: Profile) -> Profile:
    """The same profile with doubled depths."""
    return replace(
        profile,
        name=f"{profile.name}, deeper",
        channels=tuple(_with_doubled_field(channel, "depth") for channel in profile.channels),
        fuse=_with_doubled_field(profile.fuse, "pool"),
        expand=tuple(_with_doubled_field(stage, "count") for stage in profile.expand),
        deep=DeepSettings(),
    )


def _with_doubled_field(part: T, setting: str) -> T:
    value = getattr(part, setting, None)
    if not isinstance(value, int) or not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{setting: 2 * value})


def _gated_pool(answer: Recall) -> Pool:
    """All candidates that passed the gate, whichever page was requested."""
    last: Pool = ()
    for step in answer.steps:
        if step.name == "budget":
            break
        last = step.pool
    return last


@dataclass(slots=True)
class _DeepRecall:
    """The state of one deep recall: its decisions, steps and degraded parts."""

    ctx: Context
    profile: str
    deep: DeepSettings
    model: LanguageModel | None
    steps: list[Step] = field(default_factory=list)
    degraded: list[Degraded] = field(default_factory=list)
    budget: Budget = field(init=False)

    def __post_init__(self) -> None:
        deep = self.deep
        self.budget = Budget(
            calls=4, tokens_in=deep.tokens_in, tokens_out=deep.tokens_out, seconds=deep.seconds
        )

    def judge(self, answer: Recall) -> Verdict:
        """Judge whether the answer is sufficient: by the model if there is one, else by rules."""
        start, examined = perf_counter(), _gated_pool(answer)[: self.deep.look]
        if not examined:
            verdict = Verdict(False, f"no hits to expand from: {answer.reason}")
        else:
            captions = answer.captions[: self.deep.captions]
            judged = self._try_model(
                SUFFICIENCY,
                lambda model: judge_by_model(
                    model, examined, captions, self.ctx, budget=self.budget
                ),
            )
            verdict = judged or judge_by_rules(examined, self.ctx, self.deep)
        outcome = "enough" if verdict.enough else "not enough"
        self._record_step(SUFFICIENCY, start, f"{outcome}: {verdict.why}", examined)
        return verdict

    def expand(self, answer: Recall, verdict: Verdict) -> tuple[Expansion, ...]:
        """Query expansions; none where the lexical scores clearly point to one memory."""
        start, known = perf_counter(), _gated_pool(answer)
        if has_dominant_hit(answer.steps, self.deep):
            self._record_step(
                EXPANSION,
                start,
                "not needed: one memory matches the words far better than all others",
                known,
            )
            return ()
        expansions = self._try_model(
            EXPANSION, lambda model: expand_by_model(model, known, verdict, self)
        )
        if expansions is None:
            expansions = expand_by_rules(known, self.ctx, self.deep)
        note = "; ".join(expansion.describe() for expansion in expansions) or "no further searches"
        self._record_step(EXPANSION, start, note, known)
        return expansions

    def widen(self, wider: Profile, expansions: tuple[Expansion, ...], answer: Recall) -> Profile:
        """The wider profile with a retriever per expansion and the best first hits protected."""
        extra = expansion_retrievers(expansions, wider.channels, self.deep)
        several = query_analysis.expects_several_answers(self.ctx.query.text)
        count = self.deep.protect_several if several else self.deep.protect
        first = _gated_pool(answer)[:count]
        protected: tuple[Stage, ...] = (ProtectFirstHits(first),) if first else ()
        return replace(
            wider, channels=(*wider.channels, *extra), diversify=(*wider.diversify, *protected)
        )

    def finish_with_first(self, answer: Recall, verdict: Verdict) -> Recall:
        """The first answer as the final answer."""
        evidences = quote_hits(_gated_pool(answer), verdict.evidences)
        return self._finish(answer, (*answer.steps, *self.steps), evidences)

    def finish_with_wider(self, wide: Recall) -> Recall:
        """The wider answer, preceded by the steps that led to it."""
        ids = tuple(cand.item.id for cand in covering_hits(wide.hits, self.ctx))
        return self._finish(wide, (*self.steps, *wide.steps), quote_hits(wide.hits, ids))

    def record_first_pass(self, answer: Recall) -> None:
        """Record the first pass as a single step, so that it does not hide those of the second."""
        found = [
            f"{step.name.removeprefix('channel.')} {len(step.pool)}"
            for step in answer.steps
            if step.name.startswith("channel.") and step.status == "ok"
        ]
        seconds = sum(step.seconds for step in answer.steps)
        note = f"{', '.join(found)}; {answer.reason}"
        self.steps.insert(0, Step(FIRST, seconds, _gated_pool(answer), 0, "ok", note))

    def _finish(
        self, answer: Recall, steps: tuple[Step, ...], evidences: tuple[str, ...]
    ) -> Recall:
        degraded = tuple(dict.fromkeys((*self.degraded, *answer.degraded)))
        return replace(
            answer,
            profile=self.profile,
            strategy="deep",
            steps=steps,
            evidences=evidences,
            degraded=degraded,
        )

    def _try_model(self, name: str, call: Callable[[LanguageModel], T]) -> T | None:
        """The model's decision; None, with the reason recorded as degraded, where it failed."""
        if self.model is None:
            return None
        try:
            return call(self.model)
        except ModelError as error:
            self.degraded.append(Degraded(name, f"{error.message}; decided by rules"))
            return None

    def _record_step(self, name: str, start: float, note: str, pool: Pool) -> None:
        failed = any(part.part == name for part in self.degraded)
        seconds = perf_counter() - start
        step = Step(name, seconds, pool, len(pool), "degraded" if failed else "ok", note)
        self.steps.append(step)


_MAX_EVIDENCES = 5
_MAX_GAPS = 3
_QUOTE_CHARS = 200


class Verdict(NamedTuple):
    """Whether the hits are sufficient, why, the gaps, and the ids of supporting memories."""

    enough: bool
    why: str
    gaps: tuple[str, ...] = ()
    evidences: tuple[str, ...] = ()


def judge_by_rules(hits: Pool, ctx: Context, deep: DeepSettings) -> Verdict:
    """Judge sufficiency conservatively, by rules.

    Sufficient only where one memory holds all that the question names and provides the
    expected answer type, and nothing indicates that several memories are needed.
    """
    examined = hits[: deep.look]
    covered = _held_words(examined, ctx)
    missing = _missing_words(covered, ctx)
    evidences = tuple(cand.item.id for cand in covering_hits(examined, ctx))
    if missing:
        return Verdict(False, f"no hit contains {', '.join(missing)}", missing, evidences)
    text = ctx.query.text
    if query_analysis.expects_several_answers(text):
        return Verdict(False, "the question asks for several things", (), evidences)
    if query_analysis.is_multi_hop(text):
        return Verdict(False, "the question needs more than one hop", (), evidences)
    return _judge_best_hit(examined, covered, ctx, deep)._replace(evidences=evidences)


def _judge_best_hit(
    examined: Pool, covered: Mapping[str, set[Word]], ctx: Context, deep: DeepSettings
) -> Verdict:
    if not examined:
        return Verdict(False, "nothing was found")
    best = examined[0]
    share = _covered_share(covered[best.item.id], ctx)
    if share < deep.covered:
        return Verdict(False, f"the best hit covers {share:.0%} of the question")
    kinds = query_analysis.expected_answer_types(ctx.query.text)
    if kinds and query_analysis.answer_type_of(best.item.text, kinds) is None:
        return Verdict(False, f"the best hit does not state {' or '.join(kinds)}")
    if any(
        not period.start <= best.item.when < period.end for period in query_analysis.periods(ctx)
    ):
        return Verdict(False, "the best hit is from another time")
    return Verdict(True, "the best hit covers the whole question")


def has_dominant_hit(steps: tuple[Step, ...], deep: DeepSettings) -> bool:
    """Whether lexical scores clearly point to one memory, so that expansion could only mislead."""
    for step in steps:
        name = step.name.removeprefix("channel.")
        if step.name == name or name not in deep.lex or not step.pool:
            continue
        second = step.pool[1].score if len(step.pool) > 1 else 0.0
        if step.pool[0].score >= deep.strong and step.pool[0].score - second >= deep.lead:
            return True
    return False


def covering_hits(hits: Pool, ctx: Context, max_hits: int = _MAX_EVIDENCES) -> Pool:
    """The hits that together hold the question's words, each adding some; the best included."""
    covered = _held_words(hits, ctx)
    seen: set[Word] = set()
    chosen: list[Candidate] = []
    for cand in hits:
        if len(chosen) < max_hits and (not chosen or covered[cand.item.id] - seen):
            chosen.append(cand)
            seen |= covered[cand.item.id]
    return tuple(chosen)


def quote_hits(hits: Pool, ids: tuple[str, ...]) -> tuple[str, ...]:
    """Quotes of the hits with these ids, in their own words."""
    known = {cand.item.id: cand for cand in hits}
    return tuple(
        f"{key}: {shorten(' '.join(known[key].text.split()), _QUOTE_CHARS)}"
        for key in ids
        if key in known
    )


# The index terms of the texts that were judged: most are judged twice.
_terms_of = PerEach[Candidate, str, frozenset[str]](
    lambda hits, ctx: {
        cand.item.id: frozenset(ctx.store.search.terms(cand.item.text)) for cand in hits
    },
    lambda cand: cand.item.id,
)


def _held_words(hits: Pool, ctx: Context) -> dict[str, set[Word]]:
    """Which of the question's content terms each hit holds; its speaker counts as held."""
    words = [content_term.word for content_term in query_analysis.content_terms(ctx)]
    names, terms = speakers_of(hits), _terms_of(hits, ctx)
    return {
        cand.item.id: {
            word
            for word in words
            if terms[cand.item.id].issuperset(word.terms)
            or (names.get(word.shown.casefold()) or 0) == cand.item.speaker
        }
        for cand in hits
    }


def _missing_words(held: Mapping[str, set[Word]], ctx: Context) -> tuple[str, ...]:
    known: set[Word] = set().union(*held.values())
    missing = [term for term in query_analysis.content_terms(ctx) if term.word not in known]
    missing.sort(key=lambda term: (-term.weight, term.word.shown))
    return tuple(term.word.shown for term in missing[:_MAX_GAPS])


def _covered_share(held: set[Word], ctx: Context) -> float:
    terms = query_analysis.content_terms(ctx)
    total = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if term.word in held) / total if total else 0.0


_EMPTY_PLACEHOLDER = "(nothing)"


def judge_by_model(
    model: LanguageModel, hits: Pool, captions: tuple[Caption, ...], ctx: Context, *, budget: Budget
) -> Verdict:
    """The model's verdict; "sufficient" without a supporting memory is rejected."""
    store, query = ctx.store, ctx.query
    passages = (
        *_load_shown(hits, ctx),
        *(Passage(store.space, "", caption.text) for caption in captions),
    )
    prompt = fill_prompt(
        "sufficiency",
        store.space,
        question=query.text,
        memories=passages,
        today=query.moment.date(),
    )
    reply = model.complete(prompt, budget=budget)
    evidences = tuple(key for key in cited_ids(passages, reply["evidences"]) if key)
    gaps = tuple(reply["gaps"])
    if reply["sufficient"] and gaps:
        return Verdict(False, f"{model.name} answered both sufficient and gaps", gaps, evidences)
    if reply["sufficient"] and not evidences:
        return Verdict(False, f"{model.name} answered sufficient without evidence")
    return Verdict(reply["sufficient"], f"judged by {model.name}", gaps, evidences)


def _load_shown(hits: Pool, ctx: Context) -> tuple[Passage, ...]:
    """The hits for a prompt: of a long memory the passage that is shown."""
    items = {cand.item.id: cand.item for cand in hits}
    loaded = load_passages(ctx.store, list(items), as_of=ctx.query.as_of)
    return tuple(
        passage._replace(text=passage.text.replace(item.text, shown_text(item, ctx)))
        for passage in loaded
        for item in (items[passage.id],)
    )


def expand_by_model(
    model: LanguageModel, known: Pool, verdict: Verdict, run: _DeepRecall
) -> tuple[Expansion, ...]:
    """The model's query expansions; raises Unusable where none says anything new."""
    store, query, deep = run.ctx.store, run.ctx.query, run.deep
    ids = verdict.evidences or tuple(cand.item.id for cand in known)
    passages = load_passages(store, ids[: deep.feedback], as_of=query.as_of)
    prompt = fill_prompt(
        "expand",
        store.space,
        question=query.text,
        known="\n".join(passage.text for passage in passages) or _EMPTY_PLACEHOLDER,
        gaps="\n".join(verdict.gaps) or _EMPTY_PLACEHOLDER,
        today=query.moment.date(),
    )
    proposed = model.complete(prompt, budget=run.budget)["queries"]
    same = query.text.casefold()
    usable = [
        Expansion(entry["type"], " ".join(entry["text"].split()), f"by {model.name}")
        for entry in proposed
        if has_substance(entry["text"]) and entry["text"].strip().casefold() != same
    ]
    if proposed and not usable:
        raise Unusable(f"{model.name} returned no new search")
    return tuple(dict.fromkeys(usable))[: deep.most]
