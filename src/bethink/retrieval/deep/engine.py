"""Deep recall: where the first answer is not sufficient, expand and search wider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from time import perf_counter
from typing import TypeVar

from bethink.errors import ModelError
from bethink.model import Candidate, Degraded, Pool, Recall, Step, sort_by_score
from bethink.ports import Budget, LanguageModel
from bethink.retrieval import engine
from bethink.retrieval.context import Context, Stage
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.deep import expansion as rules
from bethink.retrieval.deep.expansion import Expansion, expansion_retrievers
from bethink.retrieval.deep.sufficiency import (
    Verdict,
    covering_hits,
    has_dominant_hit,
    judge_by_rules,
    quote_hits,
)
from bethink.retrieval.profile import Profile
from bethink.retrieval.query_analysis import expects_several_answers

_SCORE_STEP = 0.001


# Compared as an object: what was found cannot be hashed.
@dataclass(frozen=True, slots=True, eq=False)
class ProtectFirstHits:
    """Keeps the first hits of an earlier pass above all others, in their order.

    What the wider pass adds comes after them. A first hit that the wider pass did not find
    is added with the score and evidence it had.
    """

    first: Pool = ()
    name: str = "protect"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        place = {cand.item.id: at for at, cand in enumerate(self.first)}
        met = {cand.item.id for cand in pool}
        above = max((cand.score for cand in pool if cand.item.id not in place), default=0.0)
        unit = _SCORE_STEP * (abs(above) or 1.0)

        def lift(cand: Candidate) -> Candidate:
            at = place.get(cand.item.id)
            if at is None:
                return cand
            wanted = above + unit * (len(place) - at)
            why = f"place {at + 1} of the first walk"
            return cand.with_evidence(self.name, "add", wanted - cand.score, why)

        missed = (cand for cand in self.first if cand.item.id not in met)
        return sort_by_score(lift(cand) for cand in (*pool, *missed))


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
    story = _DeepRecall(ctx, wider.name, wider.deep or DeepSettings(), model)

    # 1. The first walk, as any recall.
    with ctx.store.snapshot():
        answer = engine.run_pipeline(first, ctx)

    # 2. Is that enough? If so, or if there is nothing to go on from, that is the answer.
    verdict = story.judge(answer)
    if verdict.enough or not _gated_pool(answer):
        return engine.mark_used(first, story.finish_with_first(answer, verdict), ctx)

    # 3. What else could be asked, each of the channels that can answer it.
    story.record_first_pass(answer)
    asked = story.expand(answer, verdict)
    asking_on = story.widen(wider, asked, answer)

    # 4. The wider walk: the same steps, with what was asked further beside the question
    #    itself; assists, rerank and captions are the profile's slots.
    with ctx.store.snapshot():
        wide = engine.run_pipeline(asking_on, ctx)

    # 5. The answer, with what speaks for it.
    return engine.mark_used(wider, story.told(wide), ctx)


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
    before: Pool = ()
    for step in answer.steps:
        if step.name == "budget":
            break
        before = step.pool
    return before


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
        start, looked = perf_counter(), _gated_pool(answer)[: self.deep.look]
        if not looked:
            verdict = Verdict(False, f"there is nothing to go on from, since {answer.reason}")
        else:
            verdict = self._try_model(
                SUFFICIENCY, lambda model: self._judge_by_model(model, answer, looked)
            ) or judge_by_rules(looked, self.ctx, self.deep)
        said = "enough" if verdict.enough else "not enough"
        self._record_step(SUFFICIENCY, start, f"{said}: {verdict.why}", looked)
        return verdict

    def expand(self, answer: Recall, verdict: Verdict) -> tuple[Expansion, ...]:
        """Query expansions; none where the lexical scores clearly point to one memory."""
        start, known = perf_counter(), _gated_pool(answer)
        if has_dominant_hit(answer.steps, self.deep):
            self._record_step(EXPANSION, start, "not needed: the words point to one memory", known)
            return ()
        asked = self._try_model(
            EXPANSION, lambda model: self._expand_by_model(model, known, verdict)
        )
        if asked is None:
            asked = rules.expand_by_rules(known, self.ctx, self.deep)
        told = "; ".join(one.shown() for one in asked) or "nothing else to ask"
        self._record_step(EXPANSION, start, told, known)
        return asked

    def widen(self, wider: Profile, asked: tuple[Expansion, ...], answer: Recall) -> Profile:
        """The wider profile with a retriever per expansion and the best first hits protected."""
        further = expansion_retrievers(asked, wider.channels, self.deep)
        several = expects_several_answers(self.ctx.query.text)
        count = self.deep.protect_several if several else self.deep.protect
        first = _gated_pool(answer)[:count]
        kept: tuple[Stage, ...] = (ProtectFirstHits(first),) if first else ()
        return replace(
            wider,
            channels=(*wider.channels, *further),
            diversify=(*wider.diversify, *kept),
        )

    def finish_with_first(self, answer: Recall, verdict: Verdict) -> Recall:
        """The first answer as the final answer."""
        evidences = quote_hits(_gated_pool(answer), verdict.evidences)
        return self._finish(answer, (*answer.steps, *self.steps), evidences)

    def told(self, wide: Recall) -> Recall:
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

    def _judge_by_model(self, model: LanguageModel, answer: Recall, looked: Pool) -> Verdict:
        from bethink.retrieval.deep.sufficiency import (
            judge_by_model,  # start-up time: most have no model
        )

        captions = answer.captions[: self.deep.captions]
        return judge_by_model(model, looked, captions, self.ctx, budget=self.budget)

    def _expand_by_model(
        self, model: LanguageModel, known: Pool, verdict: Verdict
    ) -> tuple[Expansion, ...]:
        from bethink.retrieval.deep.sufficiency import (
            expand_by_model,  # start-up time: most have no model
        )

        return expand_by_model(model, known, verdict, self.ctx, deep=self.deep, budget=self.budget)

    def _try_model(self, name: str, ask: Callable[[LanguageModel], T]) -> T | None:
        """The model's decision; None, with the reason recorded as degraded, where it failed."""
        if self.model is None:
            return None
        try:
            return ask(self.model)
        except ModelError as error:
            self.degraded.append(Degraded(name, f"{error.message}; decided by rules"))
            return None

    def _record_step(self, name: str, start: float, note: str, pool: Pool) -> None:
        failed = any(part.part == name for part in self.degraded)
        seconds = perf_counter() - start
        step = Step(name, seconds, pool, len(pool), "degraded" if failed else "ok", note)
        self.steps.append(step)
