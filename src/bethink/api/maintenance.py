"""Maintenance: run and undo jobs, extraction, reindexing, export and health checks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.api.session import MemoryBase
from bethink.core.ids import make_id
from bethink.core.text import with_speaker
from bethink.errors import BadSetting, ModelError, NotFound, Refused, StoreBusy, StoreError
from bethink.model import Item
from bethink.ports import CheckResult, Embedder, Progress
from bethink.retrieval.query_builder import make_filters

if TYPE_CHECKING:
    from bethink.ingest.admission import WriteContext
    from bethink.maintain.job import Job, JobContext
    from bethink.maintain.journal import RunRecord
    from bethink.maintain.runner import Plan, Report, SkippedProposal, UndoResult
    from bethink.maintain.succession import RevokeResult


DEFAULT_SHARE = 0.02
NO_FILTERS: Mapping[str, Any] = MappingProxyType({})


class WorkContextMixin(MemoryBase):
    """Builds the contexts for writing and maintenance from an open space."""

    def _job_context(
        self, share: float = DEFAULT_SHARE, where: Mapping[str, Any] = NO_FILTERS
    ) -> JobContext:
        from bethink.maintain.job import JobContext  # start-up time: recall does without

        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share <= 1:
            raise Refused(f"share is {share!r}, but must be above 0 and at most 1")
        now = self._clock()
        return JobContext(
            self.store,
            self.embedder,
            now,
            limit=int(self.store.admin.count() * share + 1e-9),
            model=self.llm,
            notes_dir=self._notes_target(),
            notes_trust=self.settings.notes_trust,
            filters=make_filters({"max_classification": 3, **where}, now),
            shown=self.settings.max_classification,
        )

    def _write_context(self, *, relating: bool = False) -> WriteContext:
        from bethink.ingest.admission import WriteContext  # start-up time: recall does without

        actor, now = self.settings.actor, self._clock()
        return WriteContext(self.store, self.embedder, now, actor, make_id, relating=relating)

    def _notes_target(self) -> Path | None:
        """Return where notes are written; a project file cannot point outside the project."""
        folder, project = self._notes_dir, self.settings.project
        if folder is None or self.settings.origin("notes_dir").kind != "project file":
            return folder
        inside = project is not None and Path(os.path.realpath(folder)).is_relative_to(
            os.path.realpath(project)
        )
        return folder if inside else None

    def _drop_caches(self) -> None:
        """Drop cached data of memories that may no longer exist."""
        self._notes = None
        if self._cache is not None:
            self._cache.clear()


class ExtractMixin(WorkContextMixin):
    """Extraction from stored memories by a language model."""

    def extract(self, *ids: str) -> list[Item]:
        """Let the configured language model extract entities, facts and relations from memories.

        Adds what the rules did not find; memories that were read before are not read again.
        Raises ModelError where the model does not answer; nothing is lost then, and
        ``maintain`` tries again.
        """
        from bethink.maintain.entities import ExtractByModel  # start-up time: recall does without

        if self.llm is None:
            raise BadSetting(
                "reading memories needs a language model", remedy="bethink config set llm ..."
            )
        names = [self.stored(item_id).id for item_id in ids]
        ExtractByModel(tuple(names))(self._job_context())
        return list(self.store.items.get(names).values())


DUE_AFTER = timedelta(days=1)
_INSIGHT_LEVELS = 3


class MaintenanceMixin(WorkContextMixin):
    """The maintenance methods of a memory."""

    def maintain(
        self,
        *jobs: str | Job,
        preview: bool = False,
        share: float = DEFAULT_SHARE,
        clock_is_right: bool = False,
        token: str | None = None,
        where: Mapping[str, Any] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Run maintenance jobs, the usual ones unless some are named.

        At most ``share`` of the memories leave recall; ``undo_run`` restores all of them. With
        ``preview`` nothing is changed, and the report's plan says what would be; ``carry_out``
        executes exactly that, and so does a call with the plan's ``token``, which is refused
        where things have changed since. ``where`` are filters for the memories to maintain.

        Where the clock is more than a day ahead of the last write, jobs that judge by age are
        skipped, unless ``clock_is_right``.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("We deploy on Mondays")
        ...     memory.maintain(preview=True).plan.steps
        ()
        """
        from bethink.maintain.runner import Report, make_plan  # start-up time: recall does without

        chosen = self._resolve_jobs(jobs)
        work = self._job_context(share, where)
        late = () if clock_is_right else self._skip_age_jobs(chosen, work)
        plan = make_plan([job for job in chosen if job.name not in {one.job for one in late}], work)
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
        share: float = DEFAULT_SHARE,
        where: Mapping[str, Any] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Execute a plan, as far as the memories are still as it found them."""
        from bethink.maintain.runner import execute_plan  # start-up time: recall does without

        return execute_plan(plan, self._job_context(share, where), progress=progress)

    def build_insights(self) -> list[Report]:
        """Build the insights that are due, level by level up to the root."""
        reports: list[Report] = []
        for _ in range(_INSIGHT_LEVELS):
            report = self.maintain("insights")
            if report.run is None:
                break
            reports.append(report)
        return reports

    def maintain_due(self, *, most_steps: int = 20) -> Report | None:
        """Run a small part of the maintenance that is due, for long-lived processes.

        One job that has not run for a day, a few of its proposals. None where nothing is due.
        Never acts on a clock that may have jumped: any write at the new time confirms it.
        """
        from bethink.maintain import DEFAULT_JOBS  # start-up time: recall does without
        from bethink.maintain.journal import recent_runs

        now, generation = self._clock(), self.store.admin.generation()
        busy = {
            name
            for begun in recent_runs(self.store, limit=50)
            if timedelta(0) <= now - begun.at < DUE_AFTER
            for name in begun.jobs
        }
        for name in DEFAULT_JOBS:
            if name in busy or self._looked_at.get(name) == (now.date(), generation):
                continue
            plan = self.maintain(name, preview=True).plan
            if plan.steps:
                return self.carry_out(plan._replace(steps=plan.steps[:most_steps]))
            self._looked_at[name] = (now.date(), generation)
        return None

    def undo_run(self, run: str, *, preview: bool = False) -> UndoResult:
        """Undo a maintenance run: restore what it ended, remove what it made."""
        from bethink.maintain.runner import undo_run  # start-up time: recall does without

        return undo_run(run, self._job_context(), preview=preview)

    def revoke(self, source: str, *, erase: bool = False, preview: bool = False) -> RevokeResult:
        """Take everything from a source, and everything derived from it, out of recall.

        It is quarantined, and ``undo_run`` restores it; ``erase`` deletes every byte of it.
        """
        from bethink.maintain.succession import revoke  # start-up time: recall does without

        done = revoke(
            source,
            self._job_context(),
            actor=self.settings.actor,
            erasing=erase,
            preview=preview,
        )
        if not preview:
            self._drop_caches()
        return done

    def maintenance(self, *, limit: int = 20) -> list[RunRecord]:
        """Return the last maintenance runs, newest first."""
        from bethink.maintain.journal import recent_runs  # start-up time: recall does without

        return recent_runs(self.store, limit)

    def _resolve_jobs(self, named: Sequence[str | Job]) -> list[Job]:
        from bethink.maintain import DEFAULT_JOBS, JOBS  # start-up time: recall does without

        jobs: list[Job] = []
        for one in named or DEFAULT_JOBS:
            if not isinstance(one, str):
                jobs.append(one)
            elif one in JOBS:
                jobs.append(JOBS[one]())
            else:
                raise NotFound(f"there is no job {one!r}", remedy=f"one of {', '.join(JOBS)}")
        return jobs

    def _skip_age_jobs(self, jobs: Sequence[Job], work: JobContext) -> tuple[SkippedProposal, ...]:
        from bethink.maintain.journal import days_ahead  # start-up time: recall does without
        from bethink.maintain.runner import SkippedProposal

        by_age = [job for job in jobs if job.by_age]
        ahead = days_ahead(self.store, work.now) if by_age else None
        if ahead is None:
            return ()
        told = f"the clock is {ahead:,.0f} days ahead of the last write; it may have jumped"
        told += " (--clock-is-right: it has not)"
        return tuple(SkippedProposal(job.name, "", told) for job in by_age)


BATCH = 500


class ReindexCounts(NamedTuple):
    """What a reindex created: memory vectors, entity vectors, signatures."""

    vectors: int = 0
    entities: int = 0
    signatures: int = 0


class UpkeepMixin(MemoryBase):
    """Export, import, reindexing and health checks."""

    def export(self) -> Iterator[dict[str, Any]]:
        """Export everything, losslessly, as JSON-ready records."""
        try:
            self.store.admin.log(
                "exported", item=None, actor=self.settings.actor, detail="all", now=self._clock()
            )
        except StoreBusy:
            raise
        except StoreError:
            pass  # the journal cannot be written (a full disk): all the more is taken along
        return self.store.admin.dump()

    def import_(self, records: Iterable[Mapping[str, Any]]) -> int:
        """Import an export, all or nothing; known memories are left as they are."""
        count = self.store.admin.load(records, actor=self.settings.actor, now=self._clock())
        # Without a working model it is found by its words, by meaning after a reindex.
        with suppress(ModelError):
            self.reindex()
        return count

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Create missing signatures and vectors, and return the number of memory vectors.

        Can be interrupted and resumed.
        """
        return self.make_missing(progress=progress).vectors

    def make_missing(self, *, progress: Progress | None = None) -> ReindexCounts:
        """Do what `reindex` does and return the counts by kind."""
        signed = 0
        while count := self.store.vectors.make_signatures(BATCH):
            signed += count
        if self.embedder is None:
            return ReindexCounts(signatures=signed)
        done = 0
        while waiting := self.store.vectors.unembedded(self.embedder.model, BATCH):
            made = self.embedder.embed([with_speaker(item) for item in waiting])
            self.store.vectors.set_embeddings(
                self.embedder.model,
                {item.id: vector for item, vector in zip(waiting, made, strict=True)},
            )
            done += len(waiting)
            if progress is not None:
                progress(done, 0)
        return ReindexCounts(done, self._embed_entities(self.embedder), signed)

    def _embed_entities(self, embedder: Embedder) -> int:
        from bethink.ingest.links import entity_text  # start-up time: recall does without

        done = 0
        while waiting := self.store.vectors.unembedded_entities(embedder.model, BATCH):
            done += len(waiting)
            made = embedder.embed([entity_text(entity) for entity in waiting])
            self.store.vectors.set_entity_embeddings(
                embedder.model,
                {entity.id: vector for entity, vector in zip(waiting, made, strict=True)},
            )
        return done

    def doctor(self, *, repair: bool = False) -> list[CheckResult]:
        """Check the store's integrity; repair derived data on request."""
        return self.store.admin.check(repair=repair)

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and the embedder in use."""
        embedder = self.embedder.model if self.embedder else "none"
        return {**self.store.admin.stats(), "embedder": embedder}
