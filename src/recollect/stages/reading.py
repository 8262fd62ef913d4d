"""Brings in what stands beside the best, and reads every candidate closely."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.context import Context
from recollect.model import Candidate, Evidence, Pool, best_first
from recollect.scope import rejects
from recollect.stages.closeness import Close, peaks_of, read_closely, share
from recollect.stages.turns import turns_around


@dataclass(frozen=True, slots=True)
class Beside:
    """Brings in the turns around the best ``seeds`` of a conversation.

    The answer often stands next to the words of the question. Those brought in have
    no score yet; later stages judge them.
    """

    seeds: int = 30
    steps: int = 2
    name: str = "beside"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        edge = {cand.item.id for cand in pool[: self.seeds] if cand.item.session is not None}
        known = {cand.item.id for cand in pool}
        reached = set(edge)
        for _ in range(self.steps):
            turns = turns_around(edge, ctx)
            edge = {near for turn in edge for near in turns.beside(turn)} - reached
            reached |= edge
        fetched = ctx.get(reached - known)
        brought = [item for item in fetched.values() if rejects(item, ctx.scope) is None]
        return best_first([*pool, *(Candidate(item) for item in brought)])


@dataclass(frozen=True, slots=True)
class Reading:
    """Adds what a close look tells: likeness of the whole, of the words one by one
    (late interaction; Khattab & Zaharia, SIGIR 2020) and of the best sentence.

    Each counts as a share of the best in the pool. The whole is only added where the
    dense channel has not counted it already.
    """

    whole: float = 0.13
    words: float = 0.13
    sentence: float = 0.1
    name: str = "reading"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        close = read_closely(pool, ctx)
        peaks = peaks_of(close[cand.item.id] for cand in pool)
        return best_first(self._judge(cand, close[cand.item.id], peaks) for cand in pool)

    def _judge(self, cand: Candidate, close: Close, peaks: Close) -> Candidate:
        counted = any(reason.by == "fuse.dense" for reason in cand.evidence)
        score = cand.score
        reasons = list(cand.evidence)
        for part, weight, value, peak in (
            ("whole", 0.0 if counted else self.whole, close.cosine, peaks.cosine),
            ("words", self.words, close.interaction, peaks.interaction),
            ("sentence", self.sentence, close.sentence, peaks.sentence),
        ):
            added = weight * share(value, peak)
            if added:
                score += added
                reasons.append(Evidence(f"{self.name}.{part}", "add", added, f"{value:.2f} alike"))
        return Candidate(cand.item, score, tuple(reasons))


@dataclass(frozen=True, slots=True)
class Top:
    """Goes on with the best ``count`` only: what follows is for those in reach."""

    count: int = 60
    name: str = "top"

    def __call__(self, pool: Pool, ctx: Context) -> Pool:
        return pool[: ctx.reach(self.count)]
