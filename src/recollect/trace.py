"""Steps remembered: how long each took, what it left, what it could not do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter

from recollect.context import Addition, Context, Dispensable, Stage
from recollect.errors import RecollectError, StoreError
from recollect.ids import make_id
from recollect.model import Degraded, Pool, Run, Step
from recollect.parts import offers


class Trace:
    """Runs the steps of one walk and keeps a record of each.

    Values are frozen, so remembering a step is remembering references.
    """

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._started_at = datetime.now(UTC)
        self.steps: list[Step] = []
        self.degraded: list[Degraded] = []

    def stamp(self) -> Run:
        """The walk as a whole, ended now."""
        return Run(make_id(self._started_at), self._started_at, datetime.now(UTC))

    def run(self, name: str, step: Callable[[], Pool], came_in: Pool = ()) -> Pool:
        """Take a step that must not fail; its pool is what the next one gets."""
        start = perf_counter()
        pool = step()
        self._keep(name, start, pool, came_in)
        return pool

    def attempt(self, name: str, step: Callable[[], Pool], otherwise: Pool = ()) -> Pool:
        """Take a step that may fail: then the walk goes on with ``otherwise``.

        Only the store itself failing is fatal, for then no step could answer.
        """
        start = perf_counter()
        try:
            pool = step()
        except StoreError:
            raise
        except RecollectError as error:
            reason = error.message if not error.remedy else f"{error.message} ({error.remedy})"
            self.degraded.append(Degraded(name, reason))
            self._ctx.take_remarks()
            self.steps.append(
                Step(name, perf_counter() - start, otherwise, len(otherwise), "degraded", reason)
            )
            return otherwise
        self._keep(name, start, pool, otherwise)
        return pool

    def pass_through(self, name: str, stage: Stage, pool: Pool) -> Pool:
        """Let a stage re-judge a pool; one with nothing to do it with lets it pass."""
        if offers(stage, Dispensable) and (reason := stage.skip(pool, self._ctx)):
            self.skip(name, reason, pool)
            return pool
        return self.attempt(name, lambda: stage(pool, self._ctx), pool)

    def gather(self, name: str, step: Callable[[], Addition], hits: Pool) -> Addition:
        """Let an assembler add to the answer; what it cannot add is left out."""
        added = Addition()

        def keep() -> Pool:
            nonlocal added
            added = step()
            return hits

        self.attempt(name, keep, hits)
        return added

    def skip(self, name: str, reason: str, pool: Pool = ()) -> None:
        """Note a step that was left out, and why; ``pool`` passes it by."""
        self.steps.append(Step(name, 0.0, pool, len(pool), "skipped", reason))

    def _keep(self, name: str, start: float, pool: Pool, came_in: Pool) -> None:
        seconds = perf_counter() - start
        self.steps.append(Step(name, seconds, pool, len(came_in), "ok", self._ctx.take_remarks()))
