"""The second story: where the first answer is not enough, ask further and walk wider."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import perf_counter

from recollect import engine
from recollect.context import Context
from recollect.deepening import rules
from recollect.deepening.enough import Verdict, covering, is_strong, judge, quoted
from recollect.deepening.expansion import Expansion, channels_for
from recollect.deepening.settings import Deep
from recollect.model import Degraded, Pool, Recall, Step
from recollect.ports import Budget, LanguageModel
from recollect.profile import Profile

FIRST, SUFFICIENCY, EXPANSION = "deep.first", "deep.sufficiency", "deep.expansion"


def recall(
    first: Profile, wider: Profile, ctx: Context, model: LanguageModel | None = None
) -> Recall:
    """Find what the query calls to mind, looking again where the first look is not enough.

    A model is asked between the walks, while nothing is locked; without one, or where
    it fails, rules decide.
    """
    if not ctx.query.text.strip():
        return engine.recall(wider, ctx)
    story = _Story(ctx, wider.deep or Deep(), model)

    # 1. The first walk, as any recall.
    with ctx.store.snapshot():
        answer = engine.walk(first, ctx)

    # 2. Is that enough? If so, or if there is nothing to go on from, that is the answer.
    verdict = story.judge(answer)
    if verdict.enough or not answer.hits:
        return engine.mark_used(wider, story.early(answer, verdict), ctx)

    # 3. What else could be asked, each of the channels that can answer it.
    asked = story.expand(answer, verdict)
    further = channels_for(asked, wider.channels, story.deep)

    # 4. The wider walk: the same steps, with what was asked further beside the question
    #    itself; assists, rerank and captions are the profile's slots.
    with ctx.store.snapshot():
        wide = engine.walk(replace(wider, channels=(*wider.channels, *further)), ctx)

    # 5. The answer, with what speaks for it.
    return engine.mark_used(wider, story.told(wide), ctx)


@dataclass(slots=True)
class _Story:
    """What the second story decides and how it came to that."""

    ctx: Context
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
        if not answer.hits:
            verdict = Verdict(False, f"nothing to go on from: {answer.reason}")
            return self._note(SUFFICIENCY, perf_counter(), verdict, (), verdict.why)
        start = perf_counter()
        verdict = judge(answer.hits, self.ctx, self.deep)
        said = "enough" if verdict.enough else "not enough"
        return self._note(SUFFICIENCY, start, verdict, answer.hits, f"{said}: {verdict.why}")
