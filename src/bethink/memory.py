"""The facade: one class to store, recall, explain, correct and forget memories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bethink.api import service
from bethink.api.session import NO_FILTERS, Session, utc_now
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.model import (
    Draft,
    Entity,
    FileEdit,
    FileHistory,
    Filters,
    Item,
    Link,
    Member,
    Recall,
    Remembered,
    Thread,
)  # fmt: skip
from bethink.ports import (
    CheckResult,
    Clock,
    Embedder,
    Event,
    ForgottenFiles,
    LanguageModel,
    NoteStore,
    Progress,
    Reranker,
    Store,
)  # fmt: skip
from bethink.retrieval.context import Boost
from bethink.retrieval.explain import WhyNot
from bethink.retrieval.profile import Profile

if TYPE_CHECKING:
    from bethink.api.browse import Browser, Threads
    from bethink.api.file_reader import SmartRead
    from bethink.api.files import Files
    from bethink.api.links import Linker
    from bethink.api.maintenance import Maintenance, ReindexCounts, Upkeep
    from bethink.api.recall import Recaller
    from bethink.api.write import Forgotten, Writer
    from bethink.ingest.revision import Undo
    from bethink.maintain.job import Job
    from bethink.maintain.journal import RunRecord
    from bethink.maintain.runner import Plan, Report, UndoResult
    from bethink.maintain.succession import RevokeResult
    from bethink.retrieval.provenance import InsightNode, Provenance

__all__ = ["Memory", "utc_now"]


class Memory:
    """One space's memory: remember, recall, explain, correct, forget.

    Sync, typed and safe to share between threads. In async code call it through
    ``asyncio.to_thread``.

    >>> with Memory.open(":memory:") as memory:
    ...     _ = memory.remember("The deploy key lives in vault B")
    ...     answer = memory.recall("where is the deploy key?")
    ...     print(answer.hits[0].item.text)
    The deploy key lives in vault B
    """

    _writer: Writer = service("write:Writer")
    _recaller: Recaller = service("recall:Recaller")
    _browser: Browser = service("browse:Browser")
    _threads: Threads = service("browse:Threads")
    _linker: Linker = service("links:Linker")
    _files: Files = service("files:Files")
    _maintenance: Maintenance = service("maintenance:Maintenance")
    _upkeep: Upkeep = service("maintenance:Upkeep")

    def __init__(
        self,
        store: Store,
        *,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        llm: LanguageModel | None = None,
        settings: Settings | None = None,
        clock: Clock = utc_now,
        profile_folders: Sequence[Path] = (),
        notes_dir: Path | None = None,
    ) -> None:
        """Build from parts; ``Memory.open`` is the usual way."""
        self.session = Session(
            store, embedder=embedder, reranker=reranker, llm=llm, settings=settings, clock=clock,
            profile_folders=profile_folders, notes_dir=notes_dir,
        )  # fmt: skip

    @classmethod
    def open(
        cls,
        space: str | None = None,
        *,
        path: Path | str | None = None,
        embedder: str | Embedder | None = None,
        reranker: str | Reranker | None = None,
        llm: str | LanguageModel | None = None,
        settings: Settings | None = None,
        clock: Clock = utc_now,
        store: str | None = None,
        create: bool = True,
    ) -> Self:
        """Open the memory of a space, creating it if it does not exist.

        Without a name it is the project's own; ``":memory:"`` goes with the object. ``path`` is
        a file, ``store`` "sqlite" or ``postgresql://...``; ``create=False`` creates nothing.
        """
        session = Session.open(
            space, path=path, embedder=embedder, reranker=reranker, llm=llm, settings=settings,
            clock=clock, store=store, create=create,
        )  # fmt: skip
        return cls._of(session)

    @classmethod
    def _of(cls, session: Session) -> Self:
        memory = cls.__new__(cls)
        memory.session = session
        return memory

    def using(self, *, settings: Settings | None = None, embedder: Embedder | None = None) -> Self:
        """Return a memory of the same open space with other settings or another embedder."""
        return self._of(self.session.using(settings=settings, embedder=embedder))

    def below(self, ceiling: int) -> Self:
        """Return the same space without anything above a classification, as servers give it."""
        return self._of(self.session.below(ceiling))

    def close(self) -> None:
        """Close the store. Acknowledged writes are already durable."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def store(self) -> Store:
        """The store of the space."""
        return self.session.store

    @property
    def embedder(self) -> Embedder | None:
        """The embedding model in use, if there is one."""
        return self.session.embedder

    @property
    def reranker(self) -> Reranker | None:
        """The reranker in use, if there is one."""
        return self.session.reranker

    @property
    def llm(self) -> LanguageModel | None:
        """The language model in use, if there is one."""
        return self.session.llm

    @property
    def settings(self) -> Settings:
        """The settings of the space."""
        return self.session.settings

    @property
    def now(self) -> datetime:
        """The current time, by this memory's own clock."""
        return self.session.now

    def profile(self, wanted: str | Profile | None = None) -> Profile:
        """Load a profile by name; the configured one where none is named."""
        return self.session.profile(wanted)

    def profiles(self) -> dict[str, Path | None]:
        """List the available profiles, and the file of each that is the user's own."""
        return self.session.profiles()

    @property
    def notes(self) -> NoteStore | None:
        """The folder of notes next to the memories, if there is one."""
        return self.session.notes

    def get(self, item_id: str) -> Item:
        """Get a memory by its id or a unique part of the id.

        Also gets a note or an edge that a recall returned, by its whole id.
        """
        return self._browser.get(item_id)

    def stored(self, item_id: str) -> Item:
        """Get a memory from the store, one that can be changed and forgotten."""
        return self._browser.stored(item_id)

    def remember(self, text: str, **about: Any) -> Remembered:
        """Store one memory. ``about`` are the fields of ``Draft``.

        >>> with Memory.open(":memory:") as memory:
        ...     first = memory.remember("We chose PostgreSQL", kind="decision", topic="db")
        ...     again = memory.remember("We chose PostgreSQL.")
        ...     print(first.status, again.status, again.id == first.id)
        stored duplicate True
        """
        return self._writer.remember(text, **about)

    def remember_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any] | str],
        *,
        progress: Progress | None = None,
        relate: bool = False,
    ) -> list[Remembered]:
        """Store many memories, 500 to a transaction.

        One that is refused keeps none of the others: they are stored, and then SomeRefused
        says which were not and has all ``results``. With ``relate`` each is also linked with
        memories of nearly the same meaning, which is slower; else ``maintain`` does that.
        """
        return self._writer.remember_many(drafts, progress=progress, relate=relate)

    def remember_each(self, drafts: Iterable[Draft]) -> list[Remembered | Refused]:
        """Store many memories independently; a refusal takes the place of its result."""
        return self._writer.remember_each(drafts)

    def update(self, item_id: str, *, revision: int | None = None, **changes: Any) -> Item:
        """Store a new revision of a memory; the id stays, the old text stays in history.

        With ``revision``, only while that is the current one; raises Conflict otherwise.
        """
        return self._writer.update(item_id, revision=revision, **changes)

    def boost(self, item_id: str, by: float = 1.0) -> Item:
        """Raise a memory's relevance, within ten of neutral.

        A negative number lowers it.
        """
        return self._writer.boost(item_id, by)

    def demote(self, item_id: str, by: float = 1.0) -> Item:
        """Lower a memory's relevance."""
        return self._writer.demote(item_id, by)

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Take memories out of recall; ``erase`` deletes every byte of them.

        Pinned and protected memories, and ones already forgotten, are only removed by an erase.
        ``kept`` names the ones that stay.
        """
        return self._writer.forget(*ids, erase=erase, preview=preview, reason=reason)

    def withdraw(self, revisions: Mapping[str, int], *, reason: str = "removed") -> list[str]:
        """Take memories out of recall that are still in these revisions (by id).

        Pinned ones too: for programs that own the memories they store here. Returns the ids
        that were removed; ``restore`` brings them back.
        """
        return self._writer.withdraw(revisions, reason=reason)

    def undo(self, item_id: str | None = None, *, preview: bool = False) -> Undo:
        """Undo the last change of a memory or, without one, the last by this actor.

        An update is replaced by the revision before it, a forgotten memory is restored, a
        stored one is forgotten. Nothing is lost: an undo can itself be undone.
        """
        return self._writer.undo(item_id, preview=preview)

    def restore(self, *ids: str) -> list[str]:
        """Restore forgotten memories by id, and return the ids of those that had been."""
        return self._writer.restore(*ids)

    def recall(
        self,
        text: str = "",
        *,
        profile: str | Profile | None = None,
        filters: Filters | None = None,
        boost: Boost | None = None,
        reranker: str | Reranker | None = None,
        now: datetime | None = None,
        k: int | None = None,
        max_tokens: int | None = None,
        offset: int = 0,
        cursor: str | None = None,
        as_of: datetime | str | None = None,
        track: bool | None = None,
        most: Mapping[str, int] | None = None,
        episode_k: int | None = None,
        context: Mapping[str, Any] | None = None,
        whole: bool = False,
        min_confidence: float | None = None,
        deep: bool = False,
        **where: Any,
    ) -> Recall:
        """Return the memories that match the question, best first, each with its evidence.

        ``where`` are filters (``kind="decision"``, ``since="2026-01-01"``); ``most`` limits
        single levels separately from ``k`` (``{"raw": 5}``, also ``episode_k=5``). Without
        ``text``, returns the newest memories that pass the filters. ``reranker`` is a function
        or a name, "none" included; by default the configured one.
        ``context`` is the situation (``{"hour": 9, "weekday": "monday", "topic": "auth"}``).
        With ``deep`` an insufficient answer is expanded (docs/deep.md). A hit shows the best
        passage of a long memory, with ``whole`` all of it. An answer that is less sure than
        ``min_confidence`` is empty; by default the profile decides.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Tests run with make test")
        ...     memory.recall("how do I bake bread?").status
        'nothing_matched'
        """
        return self._recaller.recall(
            text, profile=profile, filters=filters, boost=boost, reranker=reranker, now=now, k=k,
            max_tokens=max_tokens, offset=offset, cursor=cursor, as_of=as_of, track=track,
            most=most, episode_k=episode_k, context=context, whole=whole,
            min_confidence=min_confidence, deep=deep, **where
        )  # fmt: skip

    def explain(self, text: str, item_id: str, **options: Any) -> str:
        """Explain the arithmetic of one memory's score, or why it was not returned."""
        return self._recaller.explain(text, item_id, **options)

    def why_not(
        self, item_id: str, text: str, *, profile: str | Profile | None = None, **options: Any
    ) -> WhyNot:
        """Return at which step a memory was dropped from the answer, and by how much."""
        return self._recaller.why_not(item_id, text, profile=profile, **options)

    def compare(
        self, text: str, profiles: Sequence[str | Profile], **options: Any
    ) -> dict[str, Recall]:
        """Answer the same question with several profiles; no use is recorded."""
        return self._recaller.compare(text, profiles, **options)

    def browse(
        self, *, limit: int = 50, after: str | None = None, offset: int = 0, **where: Any
    ) -> list[Item]:
        """List stored memories, newest first, a page ``after`` one or at an ``offset``."""
        return self._browser.browse(limit=limit, after=after, offset=offset, **where)

    def entities(
        self,
        *,
        prefix: str = "",
        kind: str | Sequence[str] = (),
        min_memories: int = 1,
        limit: int = 30,
        offset: int = 0,
    ) -> list[Entity]:
        """List the entities that memories mention, highest momentum first.

        Each with its current momentum and its memories counted by layer, and pinned.
        """
        return self._browser.entities(
            prefix=prefix, kind=kind, min_memories=min_memories, limit=limit, offset=offset
        )

    def timeline(self, around: str, *, window: int = 5) -> list[Item]:
        """Return what was stored or said just before and after a memory, oldest first."""
        return self._browser.timeline(around, window=window)

    def why(self, item_id: str, *, depth: int = 4, types: Sequence[str] = ()) -> Provenance:
        """Return a memory's provenance: what it derives from, was caused by, replaces ..."""
        return self._browser.why(item_id, depth=depth, types=types)

    def history(self, item_id: str) -> list[Item]:
        """Return all revisions of a memory, oldest first."""
        return self._browser.history(item_id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """Return the journal: who changed which memory, and how."""
        return self._browser.events(after=after, limit=limit)

    def put_thread(self, headline: str, members: Iterable[str | Member], **about: Any) -> Thread:
        """Store a thread, replacing the one with its id. ``about`` are fields of ``Thread``.

        >>> with Memory.open(":memory:") as memory:
        ...     key = memory.remember("The deploy key is rotated every quarter")
        ...     thread = memory.put_thread("Deploy keys", [key.id], kind="work")
        ...     memory.thread(thread.id).headline
        'Deploy keys'
        """
        return self._threads.put_thread(headline, members, **about)

    def thread(self, thread_id: str) -> Thread:
        """Get a thread with its visible members and events."""
        return self._threads.thread(thread_id)

    def insights(self) -> list[InsightNode]:
        """Return the insight tree: every root with all insights below it."""
        return self._threads.insights()

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """List threads with a visible member, last changed first, with those members."""
        return self._threads.threads(limit=limit, offset=offset)

    def merge_entities(self, kept: str, gone: str) -> Entity:
        """Merge one entity into another: its names, its memories, its edges.

        Each is given by its id (``person:ana``) or by a name that only it has. Later mentions
        of the merged entity count for the kept one; `split_entities` undoes the merge.

        >>> with Memory.open(":memory:") as memory:
        ...     _ = memory.remember("Ana Torres prefers tea")
        ...     _ = memory.remember("Call @atorres on Monday")
        ...     merged = memory.merge_entities("Ana Torres", "atorres")
        ...     print(merged.aliases, merged.mentions)
        ('atorres',) 2
        """
        return self._linker.merge_entities(kept, gone)

    def split_entities(self, kept: str, gone: str) -> Entity:
        """Undo a merge and return the entity that is separate again."""
        return self._linker.split_entities(kept, gone)

    def link(
        self,
        src: str,
        relation: str,
        dst: str,
        *,
        weight: float = 0.5,
        context: str | None = None,
    ) -> Link:
        """Link a memory to another: ``implies``, ``contradicts``, ``supersedes`` ...

        A superseded memory leaves recall, as it does by the rules; `unlink` and `undo` restore
        it. Two entities (``person:alice``) may be linked by any word; the ``context`` is then
        best the id of the memory that says so. Linking again overwrites the weight and the
        context; `unlink` removes the link.

        >>> with Memory.open(":memory:") as memory:
        ...     old = memory.remember("Mara writes the release notes").id
        ...     new = memory.remember("The release notes write themselves").id
        ...     memory.link(new, "supersedes", old).weight
        0.5
        """
        return self._linker.link(src, relation, dst, weight=weight, context=context)

    def unlink(self, src: str, relation: str, dst: str) -> Link:
        """Remove a link; a memory that nothing else supersedes is recalled again."""
        return self._linker.unlink(src, relation, dst)

    def links(self, item_id: str) -> list[Link]:
        """Return the links between a memory and other memories.

        Of an entity (``person:alice``), its links with other entities.
        """
        return self._linker.links(item_id)

    def note_edits(self, edits: Iterable[FileEdit | Mapping[str, Any]]) -> int:
        """Record edits to files and return how many were new; repeated ones are recognised.

        Secrets are redacted from the stated reason.
        """
        return self._files.note_edits(edits)

    def recall_file(self, part: str, *, intents: int = 10) -> FileHistory:
        """Return the history of files whose path contains this text, with the stated reasons."""
        return self._files.recall_file(part, intents=intents)

    def forget_file(self, part: str, *, preview: bool = False) -> ForgottenFiles:
        """Erase the edits and snapshots of files whose path contains this text.

        Edits recorded with memories are erased too; the memories stay. With ``preview``
        nothing is changed.
        """
        return self._files.forget_file(part, preview=preview)

    def read_smart(
        self, path: str | Path, *, force: bool = False, roots: Iterable[Path] = ()
    ) -> SmartRead:
        """Read a file, or only what changed in it since it was last read through here.

        Only inside the allowed folders: those given, else the setting's, else the project's
        own.
        """
        return self._files.read_smart(path, force=force, roots=roots)

    def allowed_roots(self) -> tuple[Path, ...]:
        """Return the folders whose files may be read."""
        return self._files.allowed_roots()

    def extract(self, *ids: str) -> list[Item]:
        """Let the configured language model extract entities, facts and relations from memories.

        Adds what the rules did not find; memories that were read before are not read again.
        Raises ModelError where the model does not answer; nothing is lost then, and
        ``maintain`` tries again.
        """
        return self._maintenance.extract(*ids)

    def maintain(
        self,
        *jobs: str | Job,
        preview: bool = False,
        share: float | None = None,
        clock_is_right: bool = False,
        token: str | None = None,
        where: Mapping[str, Any] = NO_FILTERS,
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
        return self._maintenance.maintain(
            *jobs, preview=preview, share=share, clock_is_right=clock_is_right, token=token,
            where=where, min_age_days=min_age_days, similarity=similarity, progress=progress
        )  # fmt: skip

    def carry_out(
        self,
        plan: Plan,
        *,
        share: float | None = None,
        where: Mapping[str, Any] = NO_FILTERS,
        progress: Progress | None = None,
    ) -> Report:
        """Execute a plan, as far as the memories are still as it found them."""
        return self._maintenance.carry_out(plan, share=share, where=where, progress=progress)

    def build_insights(self) -> list[Report]:
        """Build the insights that are due, level by level up to the root."""
        return self._maintenance.build_insights()

    def maintain_due(self, *, most_steps: int = 20) -> Report | None:
        """Run a small part of the maintenance that is due, for long-lived processes.

        One job that has not run for a day, a few of its proposals. None where nothing is due.
        Never acts on a clock that may have jumped: any write at the new time confirms it.
        """
        return self._maintenance.maintain_due(most_steps=most_steps)

    def undo_run(self, run: str, *, preview: bool = False) -> UndoResult:
        """Undo a maintenance run: restore what it ended, remove what it made."""
        return self._maintenance.undo_run(run, preview=preview)

    def revoke(self, source: str, *, erase: bool = False, preview: bool = False) -> RevokeResult:
        """Take everything from a source, and everything derived from it, out of recall.

        It is quarantined, and ``undo_run`` restores it; ``erase`` deletes every byte of it.
        """
        return self._maintenance.revoke(source, erase=erase, preview=preview)

    def maintenance(self, *, limit: int = 20) -> list[RunRecord]:
        """Return the last maintenance runs, newest first."""
        return self._maintenance.maintenance(limit=limit)

    def export(self) -> Iterator[dict[str, Any]]:
        """Export everything, losslessly, as JSON-ready records."""
        return self._upkeep.export()

    def import_(
        self, records: Iterable[Mapping[str, Any]], *, progress: Progress | None = None
    ) -> int:
        """Import an export, all or nothing; known memories are left as they are."""
        return self._upkeep.import_(records, progress=progress)

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Create missing signatures and vectors; return the number of memory vectors."""
        return self._upkeep.reindex(progress=progress)

    def make_missing(self, *, progress: Progress | None = None) -> ReindexCounts:
        """Do what `reindex` does and return the counts by kind."""
        return self._upkeep.make_missing(progress=progress)

    def doctor(
        self, *, repair: bool = False, progress: Progress | None = None
    ) -> list[CheckResult]:
        """Check the store's integrity; repair derived data on request."""
        return self._upkeep.doctor(repair=repair, progress=progress)

    def stats(self) -> dict[str, Any]:
        """Return counts, sizes and the embedder in use."""
        return self._upkeep.stats()
