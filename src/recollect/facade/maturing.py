"""Memory that matures: maintenance, planned, carried out and undone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFound, Refused
from recollect.facade.working import NO_FILTERS, SHARE, Working
from recollect.ports import Progress

if TYPE_CHECKING:
    from recollect.maintain.job import Job, Work
    from recollect.maintain.journal import Begun
    from recollect.maintain.remove import Revoked
    from recollect.maintain.run import Left, Plan, Report
    from recollect.maintain.undo import Undone

DUE_AFTER = timedelta(days=1)
_LEVELS_OF_INSIGHT = 3


class Maturing(Working):
    """The maturing side of a memory."""

    def maintain(
        self,
        *jobs: str | Job,
        preview: bool = False,
        share: float = SHARE,
        clock_is_right: bool = False,
        token: str | None = None,
        where: Mapping[str, Any] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Runs jobs of maintenance, the usual ones unless some are named.

        At most ``share`` of the memories leave recall; all of them can be brought back by
        ``undo_run``. With ``preview`` nothing happens, and the report's plan says what
        would; ``carry_out`` does exactly that, and so does a call with the plan's ``token``
        or, where things have changed since, none. ``where`` are filters: what it is about.

        Where the clock is more than a day ahead of the last write, jobs that judge by age
        wait, unless ``clock_is_right``.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("We deploy on Mondays")
        ...     memory.maintain(preview=True).plan.steps
        ()
        """
        from recollect.maintain.run import Report, draw_up  # start-up time: recall does without

        chosen = self._jobs(jobs)
        work = self._work(share, where)
        late = () if clock_is_right else self._too_late(chosen, work)
        plan = draw_up([job for job in chosen if job.name not in {one.job for one in late}], work)
        plan = plan._replace(left=(*late, *plan.left))
        if preview:
            return Report(None, plan, left=plan.left)
        if token is not None and token != plan.token:
            raise Refused("things have changed since that plan was shown", remedy="look again")
        return self.carry_out(plan, share=share, where=where, progress=progress)

    def carry_out(
        self,
        plan: Plan,
        *,
        share: float = SHARE,
        where: Mapping[str, Any] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Does what a plan says, as far as things are still as it found them."""
        from recollect.maintain.run import carry_out  # start-up time: recall does without

        return carry_out(plan, self._work(share, where), progress=progress)

    def build_insights(self) -> list[Report]:
        """Makes the insights that are due, level after level up to the root."""
        reports: list[Report] = []
        for _ in range(_LEVELS_OF_INSIGHT):
            report = self.maintain("insights")
            if report.run is None:
                break
            reports.append(report)
        return reports

    def maintain_due(self, *, most_steps: int = 20) -> Report | None:
        """A small part of what is due, for processes that live long: one job that has not
        run for a day, a few of its proposals. None where nothing is due.

        Never on the word of a clock that may have jumped: a write at the new time, by
        anybody, says that it is right.
        """
        from recollect.maintain import USUAL  # start-up time: recall does without
        from recollect.maintain.journal import runs

        now, generation = self._clock(), self.store.generation()
        busy = {
            name
            for begun in runs(self.store, limit=50)
            if timedelta(0) <= now - begun.at < DUE_AFTER
            for name in begun.jobs
        }
        for name in USUAL:
            if name in busy or self._looked_at.get(name) == (now.date(), generation):
                continue
            plan = self.maintain(name, preview=True).plan
            if plan.steps:
                return self.carry_out(plan._replace(steps=plan.steps[:most_steps]))
            self._looked_at[name] = (now.date(), generation)
        return None

    def undo_run(self, run: str, *, preview: bool = False) -> Undone:
        """Brings back what a maintenance run let go of and takes back what it made."""
        from recollect.maintain.undo import undo_run  # start-up time: recall does without

        return undo_run(run, self._work(), preview=preview)

    def revoke(self, source: str, *, erase: bool = False, preview: bool = False) -> Revoked:
        """Takes all that came from a source out of recall, and all that was made from it.

        It is quarantined, and ``undo_run`` brings it back; ``erase`` leaves no byte of it.
        """
        from recollect.maintain.remove import revoke  # start-up time: recall does without

        done = revoke(
            source,
            self._work(),
            actor=self.settings.actor,
            erasing=erase,
            preview=preview,
        )
        if not preview:
            self._let_go()
        return done

    def maintenance(self, *, limit: int = 20) -> list[Begun]:
        """The last runs of maintenance, newest first."""
        from recollect.maintain.journal import runs  # start-up time: recall does without

        return runs(self.store, limit)

    def _jobs(self, named: Sequence[str | Job]) -> list[Job]:
        from recollect.maintain import JOBS, USUAL  # start-up time: recall does without

        jobs: list[Job] = []
        for one in named or USUAL:
            if not isinstance(one, str):
                jobs.append(one)
            elif one in JOBS:
                jobs.append(JOBS[one]())
            else:
                raise NotFound(f"there is no job {one!r}", remedy=f"one of {', '.join(JOBS)}")
        return jobs

    def _too_late(self, jobs: Sequence[Job], work: Work) -> tuple[Left, ...]:
        from recollect.maintain.clock import days_ahead  # start-up time: recall does without
        from recollect.maintain.run import Left

        by_age = [job for job in jobs if job.by_age]
        ahead = days_ahead(self.store, work.now) if by_age else None
        if ahead is None:
            return ()
        told = f"the clock is {ahead:,.0f} days ahead of the last write; it may have jumped"
        told += " (--clock-is-right: it has not)"
        return tuple(Left(job.name, "", told) for job in by_age)
