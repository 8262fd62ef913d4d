"""Maintenance: run and undo jobs, extraction, reindexing, export and health checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, overload

from bethink.api.session import NO_FILTERS, SessionMethods
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import implements, import_object
from bethink.errors import BadSetting, ModelError, NotFound, Refused, StoreBusy, StoreError
from bethink.model import Item
from bethink.ports import CheckResult, Embedder, Progress, embed_ahead
from bethink.retrieval.context import IndexingRetriever
from bethink.retrieval.query_builder import MAX_LIST_LENGTH, int_in_range

if TYPE_CHECKING:
    from bethink.api.export_origin import ExportClaims
    from bethink.importers.intake import Tally
    from bethink.maintain.job import Job, JobContext
    from bethink.maintain.journal import RunRecord
    from bethink.maintain.runner import Plan, Report, SkippedProposal, UndoResult
    from bethink.maintain.succession import RevokeResult

Announce: TypeAlias = Callable[["ExportClaims"], None]

_INSIGHT_LEVELS = 3


class MaintenanceMethods(SessionMethods):
    """Runs and undoes maintenance jobs in an open space."""

    def extract(self, *ids: str) -> list[Item]:
        """Let the configured language model extract entities, facts and relations from memories.

        Adds what the rules did not find; memories that were read before are not read again.
        Raises ModelError where the model does not answer; nothing is lost then, and
        ``maintain`` tries again.
        """
        from bethink.maintain.extract import extract_memories  # start-up time: recall does without

        if self.llm is None:
            raise BadSetting(
                "reading memories needs a language model", remedy="bethink config set llm ..."
            )
        names = [self.session.stored_item(item_id).id for item_id in ids]
        extract_memories(tuple(names), self.session.job_context())
        return list(self.store.items.get(names).values())

    def maintain(
        self,
        *jobs: str | Job,
        preview: bool = False,
        share: float | None = None,
        clock_is_right: bool = False,
        token: str | None = None,
        where: Mapping[str, object] = NO_FILTERS,
        min_age_days: float | None = None,
        similarity: float | None = None,
        progress: Progress | None = None,
    ) -> Report:
        """Run maintenance jobs, the usual ones unless some are named.

        At most ``share`` of the memories leave recall, by default 2 % or five; ``undo_run``
        restores them. With ``preview`` nothing is changed; ``carry_out`` executes exactly the
        report's plan, and so does a call with its ``token``. ``where`` are filters; see
        docs/maintain.md for the rest. ``reasons()`` of the report say what was left undone.

        Where the clock is more than a day ahead of the last write, jobs that judge by age are
        skipped, unless ``clock_is_right``.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("We deploy on Mondays")
        ...     memory.maintain(preview=True).plan.steps
        ()
        """
        from bethink.maintain.runner import Report, make_plan  # start-up time: recall does without

        chosen = self._resolve_jobs(jobs)
        context = self.session.job_context(share, where, min_age_days, similarity)
        skipped = () if clock_is_right else self._skip_age_jobs(chosen, context)
        plan = make_plan(
            [job for job in chosen if job.name not in {skip.job for skip in skipped}], context
        )
        plan = plan._replace(left=(*skipped, *plan.left))
        if preview:
            return Report(None, plan, left=plan.left)
        if token is not None and token != plan.token:
            raise Refused("the plan is out of date", remedy="preview it again")
        report = self.carry_out(plan, share=share, where=where, progress=progress)
        self._log_own("ran", report.run)
        return report

    def _log_own(self, kind: str, run: str | None) -> None:
        """Note who asked for a run: an undo of the last change is one of the run then."""
        if run is not None:
            session = self.session
            actor, now = session.settings.actor, session.clock()
            session.store.admin.log(kind, item=f"{run}:asked", actor=actor, detail=run, now=now)

    def carry_out(
        self,
        plan: Plan,
        *,
        share: float | None = None,
        where: Mapping[str, object] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Execute a plan, as far as the memories are still as it found them."""
        from bethink.maintain.runner import execute_plan  # start-up time: recall does without

        return execute_plan(plan, self.session.job_context(share, where), progress=progress)

    def build_insights(self, *, min_memories: int | None = None) -> list[Report]:
        """Build the insights that are due, level by level up to the root.

        ``min_memories`` of one subject make an insight, instead of ten (four in a small space).
        """
        from bethink.maintain.insights import Insights  # start-up time: recall does without

        if min_memories is not None and min_memories < 2:
            raise Refused("an insight is made of two memories or more")
        least = min_memories
        job = Insights(least, least, small_loose=least, small_leaf=least) if least else Insights()
        reports: list[Report] = []
        for _ in range(_INSIGHT_LEVELS):
            report = self.maintain(job)
            if report.run is None:
                break
            reports.append(report)
        return reports

    def maintain_due(self, *, most_steps: int = 20) -> Report | None:
        """Run a small part of the maintenance that is due, for long-lived processes.

        One job that has not run for ``maintain_every`` minutes, by default a day, a few of its
        proposals. None where nothing is due.
        Never acts on a clock that may have jumped: any write at the new time confirms it.
        """
        from bethink.maintain import DEFAULT_JOBS  # start-up time: recall does without
        from bethink.maintain.journal import recent_runs

        now, generation = self.now, self.store.admin.generation()
        every = timedelta(minutes=self.settings.maintain_every)
        recent_jobs = {
            name
            for record in recent_runs(self.store, limit=50)
            if timedelta(0) <= now - record.at < every
            for name in record.jobs
        }
        for name in DEFAULT_JOBS:
            if name in recent_jobs or self.session.jobs_checked.get(name) == (
                now.date(),
                generation,
            ):
                continue
            plan = self.maintain(name, preview=True).plan
            if plan.steps:
                return self.carry_out(plan._replace(steps=plan.steps[:most_steps]))
            self.session.jobs_checked[name] = (now.date(), generation)
        return None

    def undo_run(self, run: str, *, preview: bool = False) -> UndoResult:
        """Undo a maintenance run: restore what it ended, remove what it made."""
        from bethink.maintain.runner import undo_run  # start-up time: recall does without

        undone = undo_run(run, self.session.job_context(), preview=preview)
        if not preview:
            self._log_own("run_undone", undone.run)
        return undone

    def revoke(self, source: str, *, erase: bool = False, preview: bool = False) -> RevokeResult:
        """Take everything from a source, and everything derived from it, out of recall.

        It is quarantined, and ``undo_run`` restores it; ``erase`` deletes every byte of it.
        """
        from bethink.maintain.succession import revoke  # start-up time: recall does without

        result = revoke(
            source,
            self.session.job_context(),
            actor=self.settings.actor,
            erasing=erase,
            preview=preview,
        )
        if not preview:
            self.session.drop_caches()
        return result

    def maintenance(self, *, limit: int = 20) -> list[RunRecord]:
        """Return the last maintenance runs, newest first."""
        from bethink.maintain.journal import recent_runs  # start-up time: recall does without

        return recent_runs(self.store, int_in_range("limit", limit, 1, MAX_LIST_LENGTH))

    def _resolve_jobs(self, requested: Sequence[str | Job]) -> list[Job]:
        from bethink.maintain import DEFAULT_JOBS, JOBS  # start-up time: recall does without

        jobs: list[Job] = []
        for job in requested or DEFAULT_JOBS:
            if not isinstance(job, str):
                jobs.append(job)
            elif job in JOBS:
                jobs.append(JOBS[job]())
            else:
                raise NotFound(f"there is no job {job!r}", remedy=f"one of {', '.join(JOBS)}")
        return jobs

    def _skip_age_jobs(self, jobs: Sequence[Job], work: JobContext) -> tuple[SkippedProposal, ...]:
        from bethink.maintain.journal import days_ahead  # start-up time: recall does without
        from bethink.maintain.runner import SkippedProposal

        by_age = [job for job in jobs if getattr(job, "by_age", False)]
        ahead = days_ahead(self.store, work.now) if by_age else None
        if ahead is None:
            return ()
        reason = f"the clock is {ahead:,.0f} days ahead of the last write; it may have jumped"
        reason += " (if it has not: bethink maintain --clock-is-right)"
        return tuple(SkippedProposal(job.name, "", reason) for job in by_age)


BATCH = 500


class ReindexCounts(NamedTuple):
    """What a reindex created: vectors, and what retrievers added to indexes of their own."""

    vectors: int = 0
    entities: int = 0
    index_entries: int = 0


class UpkeepMethods(SessionMethods):
    """Export, import, reindexing and health checks of an open space."""

    def export(self) -> Iterator[Json]:
        """Export everything, losslessly, as JSON-ready records."""
        try:
            self.store.admin.log(
                "exported", item=None, actor=self.settings.actor, detail="all", now=self.now
            )
        except StoreBusy:
            raise
        except StoreError:
            pass  # the journal cannot be written (a full disk); the export is still useful
        from bethink.api.export_origin import sign_records  # start-up time

        return sign_records(self.store.admin.dump(), self.settings)

    @overload
    def import_(
        self, source: Iterable[Mapping[str, object]], *, restore: bool = False,
        announce: Announce | None = None, progress: Progress | None = None,
    ) -> int: ...  # fmt: skip
    @overload
    def import_(
        self, source: str | Path, *, kind: str = "auto", preview: bool = False,
        given: Mapping[str, object] = NO_FILTERS, restore: bool = False,
        announce: Announce | None = None, progress: Progress | None = None,
    ) -> Tally: ...  # fmt: skip
    def import_(
        self,
        source: str | Path | Iterable[Mapping[str, object]],
        *,
        kind: str = "auto",
        preview: bool = False,
        given: Mapping[str, object] = NO_FILTERS,
        restore: bool = False,
        announce: Announce | None = None,
        progress: Progress | None = None,
    ) -> int | Tally:
        """Import the records of an export, all or nothing, or what is at a path.

        Returns how many memories the records brought; known ones are left as they are. An
        export that this installation has signed is taken as it is. Any other comes with the
        trust of an import, not pinned and without secrets; ``restore`` takes it as it is,
        for a back-up of your own. ``announce`` gets what it claims before anything is stored.

        A path is a file or folder of any format in docs/import.md; returned are the counts of
        what became of its entries. The format is detected, or it is ``kind``. With ``preview``
        nothing is written. ``given`` has draft fields for entries that do not set them.
        """
        if isinstance(source, str | Path):
            # By name: importers stand above the memory that they fill.
            run = import_object("bethink.importers.importer:Import")
            options = {"preview": preview, "given": given, "restore": restore}
            tally: Tally = run(self, str(source), kind, announce=announce, **options).run(progress)
            return tally
        if kind != "auto" or preview or given:
            raise Refused("kind, preview and given are for the path of a file, not for records")
        from bethink.api.export_origin import open_export  # start-up time

        with open_export(source, self.settings) as (found, claims, ids):
            if announce is not None:
                announce(claims)
            trusted = restore or claims.is_own
            numbers = self.settings.personal_numbers
            is_limited = self.session.room is not nullcontext
            known = self.store.items.get(list(ids)) if is_limited else ids
            with self.session.room(len(ids) - len(known)):
                count = self.store.admin.load(
                    found,
                    actor=self.settings.actor,
                    now=self.now,
                    trusted=trusted,
                    personal_numbers=numbers,
                )
        # Without a working model items are found by words only, until a reindex.
        with suppress(ModelError):
            self.reindex(progress=progress)
        return count

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Create missing vectors, and indexes of the profile; return the number of vectors."""
        return self.make_missing(progress=progress).vectors

    def make_missing(self, *, progress: Progress | None = None) -> ReindexCounts:
        """Do what `reindex` does and return the counts by kind."""
        indexed = sum(
            channel.update_index(self.store, only_new=False)
            for channel in self.profile(None).channels
            if implements(channel, IndexingRetriever)
        )
        if self.embedder is None:
            return ReindexCounts(index_entries=indexed)
        self.store.vectors.remove_damaged()
        done = self._embed_missing(self.embedder, progress)
        return ReindexCounts(done, self._embed_entities(self.embedder), indexed)

    def _embed_missing(self, chosen: Embedder, progress: Progress | None) -> int:
        """Embed the memories without a vector; those of the next batch meanwhile."""
        # Start-up time.
        from bethink.ingest.record_builder import texts_to_embed
        from bethink.maintain.entities import embed_stored
        from bethink.models.embed.processes import embedding_ahead

        done, total = 0, self._count_missing(progress)
        with embedding_ahead(chosen) as embedder:
            while items := self.store.vectors.unembedded(chosen.model, 2 * BATCH):
                if len(items) > BATCH:
                    embed_ahead(embedder, texts_to_embed(items)[0])
                embed_stored(items[:BATCH], self.store, embedder)
                done += len(items[:BATCH])
                if progress is not None:
                    progress(done, max(done, total))
        return done

    def _count_missing(self, progress: Progress | None) -> int:
        """Count the memories without a vector of the embedder, where progress is reported."""
        if progress is None or self.embedder is None:
            return 0
        counts = self.store.admin.stats()
        return int(counts["memories"] - counts["models"].get(self.embedder.model, 0))

    def _embed_entities(self, embedder: Embedder) -> int:
        from bethink.ingest.links import entity_text  # start-up time: recall does without

        done = 0
        while entities := self.store.vectors.unembedded_entities(embedder.model, BATCH):
            done += len(entities)
            vectors = embedder.embed([entity_text(entity) for entity in entities])
            self.store.vectors.set_entity_embeddings(
                embedder.model,
                {entity.id: vector for entity, vector in zip(entities, vectors, strict=True)},
            )
        return done

    def doctor(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> list[CheckResult]:
        """Check the store's integrity; repair derived data on request."""
        return self.store.admin.check(repair=repair, progress=progress)

    def stats(self) -> Json:
        """Return counts, sizes and the embedder in use."""
        return {**self.store.admin.stats(), "embedder": self._embedder_name()}

    def _embedder_name(self) -> str:
        if self.embedder is None:
            return "none"
        try:
            return self.embedder.model
        except ModelError:  # a server that does not answer cannot name its model
            return f"{self.settings.embedder} (does not answer)"
