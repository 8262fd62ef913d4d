"""Trace of a recall: duration, result and failure of every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from time import perf_counter
from typing import TypeVar

from bethink.core.dataclass import replace
from bethink.core.ids import make_id
from bethink.core.registry import implements
from bethink.errors import BethinkError, StoreDamaged, StoreError
from bethink.model import Assessment, Degraded, Pool, Run, Step
from bethink.retrieval.context import AnswerExtras, Context, JudgingStage, OptionalStage, Stage

T = TypeVar("T")


class Trace:
    """Runs the steps of one pipeline and records each.

    Values are frozen, so recording a step only stores references.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._started_at = datetime.now(UTC)
        self.steps: list[Step] = []
        self.degraded: list[Degraded] = []
        self.damage: StoreDamaged | None = None

    def finish(self) -> Run:
        """The record of the whole run, ended now."""
        return Run(make_id(self._started_at), self._started_at, datetime.now(UTC))

    def run(self, name: str, step: Callable[[], Pool], came_in: Pool = ()) -> Pool:
        """Run a step that must not fail; its pool is passed to the next one."""
        start = perf_counter()
        pool = step()
        self._record_step(name, start, pool, came_in)
        return pool

    def attempt(self, name: str, step: Callable[[], Pool], fallback: Pool = ()) -> Pool:
        """Run a step that may fail; the pipeline then continues with ``fallback``."""
        return self._attempt(name, lambda: (step(), None), (fallback, None))[0]

    def _attempt(
        self, name: str, step: Callable[[], tuple[Pool, T]], fallback: tuple[Pool, T]
    ) -> tuple[Pool, T]:
        """Run a step that returns a pool and something else.

        A failure of the store itself is fatal, since then no step could succeed. Damage is
        not: it may be in one index, and others find the memory (`damage` is the first).
        """
        start = perf_counter()
        try:
            made = step()
        except BethinkError as error:
            if isinstance(error, StoreDamaged):
                self.damage = self.damage or error
            elif isinstance(error, StoreError):
                raise
            reason = error.message if not error.remedy else f"{error.message} ({error.remedy})"
            self.degraded.append(Degraded(name, reason))
            self._ctx.pop_step_notes()
            pool, seconds = fallback[0], perf_counter() - start
            self.steps.append(Step(name, seconds, pool, len(pool), "degraded", reason))
            return fallback
        self._record_step(name, start, made[0], fallback[0])
        return made

    def run_slot(self, slot: str, stages: Iterable[Stage], pool: Pool) -> Pool:
        """Run the stages of a slot in order."""
        for stage in stages:
            pool = self.run_stage(f"{slot}.{stage.name}", stage, pool)
        return pool

    def run_stage(self, name: str, stage: Stage, pool: Pool) -> Pool:
        """Run a stage on a pool; an optional stage that cannot run leaves the pool unchanged."""
        if implements(stage, OptionalStage) and (reason := stage.skip(pool, self._ctx)):
            self.record_skip(name, reason, pool)
            return pool
        return self.attempt(name, lambda: stage(pool, self._ctx), pool)

    def run_judge(
        self, name: str, stage: JudgingStage, pool: Pool, verdict: Assessment | None
    ) -> tuple[Pool, Assessment | None]:
        """Run a stage that judges; ``verdict`` stands where it fails. Later stages see it."""
        made = self._attempt(name, lambda: stage.judge(pool, self._ctx), (pool, verdict))
        self._ctx = replace(self._ctx, judged=made[1])
        return made

    def run_assembler(
        self, name: str, step: Callable[[], AnswerExtras], hits: Pool
    ) -> AnswerExtras:
        """Run an assembler; what it fails to add is left out."""
        return self._attempt(name, lambda: (hits, step()), (hits, AnswerExtras()))[1]

    def record_skip(self, name: str, reason: str, pool: Pool = ()) -> None:
        """Record a skipped step and the reason; ``pool`` passes unchanged."""
        self.steps.append(Step(name, 0.0, pool, len(pool), "skipped", reason))

    def _record_step(self, name: str, start: float, pool: Pool, came_in: Pool) -> None:
        seconds = perf_counter() - start
        self.steps.append(Step(name, seconds, pool, len(came_in), "ok", self._ctx.pop_step_notes()))
