"""The second story: where the first answer is not enough, ask further and walk wider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, is_dataclass, replace
from time import perf_counter
from typing import TypeVar

from recollect import engine
from recollect.context import Context, Stage
from recollect.deepening import rules
from recollect.deepening.enough import Verdict, covering, is_strong, judge, quoted
from recollect.deepening.expansion import Expansion, channels_for
from recollect.deepening.protect import Protect
from recollect.deepening.settings import Deep
from recollect.errors import ModelError
from recollect.model import Degraded, Pool, Recall, Step
from recollect.ports import Budget, LanguageModel
from recollect.profile import Profile
from recollect.questions import asks_for_several

FIRST, SUFFICIENCY, EXPANSION = "deep.first", "deep.sufficiency", "deep.expansion"

T = TypeVar("T")


def recall(
    first: Profile, wider: Profile, ctx: Context, model: LanguageModel | None = None
) -> Recall:
    """Find what the query calls to mind, looking again where the first look is not enough.

    A model is asked between the walks, while nothing is locked; without one, or where
    it fails, rules decide.
    """
    if not ctx.query.text.strip():
        return engine.recall(wider, ctx)
    story = _Story(ctx, wider.name, wider.deep or Deep(), model)

    # 1. The first walk, as any recall.
    with ctx.store.snapshot():
        answer = engine.walk(first, ctx)

    # 2. Is that enough? If so, or if there is nothing to go on from, that is the answer.
    verdict = story.judge(answer)
    if verdict.enough or not _relevant(answer):
        return engine.mark_used(first, story.early(answer, verdict), ctx)

    # 3. What else could be asked, each of the channels that can answer it.
    story.first_walk(answer)
    asked = story.expand(answer, verdict)
    asking_on = story.widened(wider, asked, answer)

    # 4. The wider walk: the same steps, with what was asked further beside the question
    #    itself; assists, rerank and captions are the profile's slots.
    with ctx.store.snapshot():
        wide = engine.walk(asking_on, ctx)

    # 5. The answer, with what speaks for it.
    return engine.mark_used(wider, story.told(wide), ctx)


def deepen(profile: Profile, load: Callable[[str], Profile]) -> tuple[Profile, Profile]:
    """The profiles of the first and of the wider walk, by what a profile says of itself:
    that it is deep, or which one is; one that says nothing goes on twice as far."""
    if profile.deep is not None:
        if profile.deep.first:
            return load(profile.deep.first), profile
        return replace(profile, expand=(), rerank=(), diversify=(), deep=None), profile
    if profile.deeper:
        return profile, load(profile.deeper)
    return profile, _widened(profile)


def _widened(profile: Profile) -> Profile:
    """The same with twice as much to choose from."""
    return replace(
        profile,
        name=f"{profile.name}, deeper",
        channels=tuple(_doubled(channel, "depth") for channel in profile.channels),
        fuse=_doubled(profile.fuse, "pool"),
        expand=tuple(_doubled(stage, "count") for stage in profile.expand),
        deep=Deep(),
    )


def _doubled(part: T, setting: str) -> T:
    value = getattr(part, setting, None)
    if not isinstance(value, int) or not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{setting: 2 * value})


def _relevant(answer: Recall) -> Pool:
    """All that passed the gate of a walk, whichever page of it was asked for."""
    before: Pool = ()
    for step in answer.steps:
        if step.name == "budget":
            break
        before = step.pool
    return before


@dataclass(slots=True)
class _Story:
    """What the second story decides, and how it came to that."""

    ctx: Context
    profile: str
    deep: Deep
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
        """Is it enough? By the model where there is one, else by rules."""
        start, looked = perf_counter(), _relevant(answer)[: self.deep.look]
        if not looked:
            verdict = Verdict(False, f"there is nothing to go on from, since {answer.reason}")
        else:
            verdict = self._by_model(
                SUFFICIENCY, lambda model: self._asked(model, answer, looked)
            ) or judge(looked, self.ctx, self.deep)
        said = "enough" if verdict.enough else "not enough"
        self._note(SUFFICIENCY, start, f"{said}: {verdict.why}", looked)
        return verdict

    def expand(self, answer: Recall, verdict: Verdict) -> tuple[Expansion, ...]:
        """What to ask further; nothing where the words alone point to one memory."""
        start, known = perf_counter(), _relevant(answer)
        if is_strong(answer.steps, self.deep):
            self._note(EXPANSION, start, "not needed: the words point to one memory", known)
            return ()
        asked = self._by_model(EXPANSION, lambda model: self._thought_of(model, known, verdict))
        if asked is None:
            asked = rules.expand(known, self.ctx, self.deep)
        told = "; ".join(one.shown() for one in asked) or "nothing else to ask"
        self._note(EXPANSION, start, told, known)
        return asked

    def widened(self, wider: Profile, asked: tuple[Expansion, ...], answer: Recall) -> Profile:
        """The wider walk's profile with what was asked further beside the question itself,
        and with what the first walk was surest of kept in front."""
        further = channels_for(asked, wider.channels, self.deep)
        several = asks_for_several(self.ctx.query.text)
        count = self.deep.protect_several if several else self.deep.protect
        first = _relevant(answer)[:count]
        kept: tuple[Stage, ...] = (Protect(first),) if first else ()
        return replace(
            wider,
            channels=(*wider.channels, *further),
            diversify=(*wider.diversify, *kept),
        )

    def early(self, answer: Recall, verdict: Verdict) -> Recall:
        """The first answer as the answer."""
        evidences = quoted(_relevant(answer), verdict.evidences)
        return self._finished(answer, (*answer.steps, *self.steps), evidences)

    def told(self, wide: Recall) -> Recall:
        """The wider answer, after the steps that led to it."""
        ids = tuple(cand.item.id for cand in covering(wide.hits, self.ctx))
        return self._finished(wide, (*self.steps, *wide.steps), quoted(wide.hits, ids))

    def first_walk(self, answer: Recall) -> None:
        """The first walk as one step: its own would hide those of the second."""
        found = [
            f"{step.name.removeprefix('channel.')} {len(step.pool)}"
            for step in answer.steps
            if step.name.startswith("channel.") and step.status == "ok"
        ]
        seconds = sum(step.seconds for step in answer.steps)
        note = f"{', '.join(found)}; {answer.reason}"
        self.steps.insert(0, Step(FIRST, seconds, _relevant(answer), 0, "ok", note))

    def _finished(
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

    def _asked(self, model: LanguageModel, answer: Recall, looked: Pool) -> Verdict:
        from recollect.deepening.minded import judge_by  # start-up time: most have no model

        captions = answer.captions[: self.deep.captions]
        return judge_by(model, looked, captions, self.ctx, budget=self.budget)

    def _thought_of(
        self, model: LanguageModel, known: Pool, verdict: Verdict
    ) -> tuple[Expansion, ...]:
        from recollect.deepening.minded import expand_by  # start-up time: most have no model

        return expand_by(model, known, verdict, self.ctx, deep=self.deep, budget=self.budget)

    def _by_model(self, name: str, ask: Callable[[LanguageModel], T]) -> T | None:
        """What the model says; None, and the reason noted, where it says nothing usable."""
        if self.model is None:
            return None
        try:
            return ask(self.model)
        except ModelError as error:
            self.degraded.append(Degraded(name, f"{error.message}; decided by rules"))
            return None

    def _note(self, name: str, start: float, note: str, pool: Pool) -> None:
        failed = any(part.part == name for part in self.degraded)
        seconds = perf_counter() - start
        step = Step(name, seconds, pool, len(pool), "degraded" if failed else "ok", note)
        self.steps.append(step)
