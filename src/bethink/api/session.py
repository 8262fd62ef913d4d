"""Open a space: store, models, settings, recall cache and lookup by id.

The composition root of the library.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from bethink.config.paths import home_folder
from bethink.config.settings import Settings
from bethink.config.spaces import resolve_space
from bethink.core.arguments import check_methods
from bethink.core.dataclass import replace
from bethink.core.ids import make_id
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting, NotFound, Refused, StoreDamaged
from bethink.model import Item, Link, Recall
from bethink.models.rerank import open_reranker
from bethink.ports import Clock, Embedder, LanguageModel, NoteStore, Reranker, Store
from bethink.retrieval.context import Context
from bethink.retrieval.profile import Profile, configured_profile, profile_names
from bethink.retrieval.query_builder import int_in_range, make_filters
from bethink.store import (
    DEFAULT_STORE,
    find_store,
    open_on_server,
    shelf_folder,
    shelf_name,
    space_exists,
)
from bethink.store.url import is_server

if TYPE_CHECKING:
    from bethink.ingest.admission import WriteContext
    from bethink.maintain.job import JobContext
    from bethink.ports import FoundName, PairVerdict


NOTE_ID_PREFIX = "note:"
_ABMIND_NOTES = (".abmind", "memory", "consolidation")
DAMAGED_TEXT = "(damaged)"  # in the place of a text that is not what was stored
DEFAULT_SHARE = 0.02  # share of the memories that one maintenance run may retire
MIN_LEAVING = 5  # so many may always leave, up to half of them, unless a share is given
NO_FILTERS: Mapping[str, object] = MappingProxyType({})


def _judge_pairs(pairs: Sequence[tuple[str, str]]) -> Sequence[PairVerdict]:
    from bethink.models.update_model import update_model  # start-up time: NumPy

    return update_model.judge(pairs)


def _find_names(text: str) -> Sequence[FoundName]:
    from bethink.models.name_model import name_model  # start-up time: NumPy

    return name_model.find(text)


def _find_secrets(text: str) -> Sequence[tuple[int, int]]:
    from bethink.models.secret_model import secret_model  # start-up time: NumPy

    return secret_model.find(text)


def _leaving_limit(live: int, share: float | None) -> int:
    """Return how many of ``live`` memories may leave recall in one run."""
    if share is not None:
        return int(live * share + 1e-9)
    return max(int(live * DEFAULT_SHARE + 1e-9), min(MIN_LEAVING, live // 2))


def find_note_or_edge(item_id: str, store: Store, notes: NoteStore | None) -> Item | None:
    """Find the note or edge with this id; None if it is neither, or no longer exists."""
    if item_id.startswith(NOTE_ID_PREFIX):
        return notes.find(item_id) if notes is not None else None
    from bethink.systems.abmind.retrievers import EDGE_ID_PREFIX  # start-up time: rarely needed

    if item_id.startswith(EDGE_ID_PREFIX):
        return _find_path_item(item_id.removeprefix(EDGE_ID_PREFIX), store)
    return None


def _find_path_item(path_text: str, store: Store) -> Item | None:
    path: list[Link] = []
    for step in path_text.split(";"):
        src, _, rest = step.partition("|")
        kind, _, dst = rest.rpartition("|")
        link = next(
            (
                link
                for link in store.graph.links_of([src], [kind], incoming=False)
                if link.dst.id == dst and link.src.kind == link.dst.kind == "entity"
            ),
            None,
        )
        if link is None:
            return None
        path.append(link)
    from bethink.systems.abmind.retrievers import path_item  # start-up time, see above

    return path_item(tuple(path), {}) if path else None


MAX_ENTRIES = 1000
TTL = timedelta(minutes=5)


class CacheKey(NamedTuple):
    """Everything an answer depends on.

    Any write changes the generation, so an answer from before it is never found again.
    """

    space: str
    generation: int
    query: str
    profile: Profile
    embedder: str


class _CacheEntry(NamedTuple):
    answer: Recall
    since: datetime


class RecallCache:
    """LRU cache of recent recall answers of one process, with a time to live.

    Safe to share between threads.
    """

    def __init__(self, max_entries: int = MAX_ENTRIES, ttl: timedelta = TTL) -> None:
        self._max_entries = max_entries
        self._ttl = ttl
        self._entries: OrderedDict[CacheKey, _CacheEntry] = OrderedDict()
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Drop all entries."""
        with self._guard:
            self._entries.clear()

    def find(self, key: CacheKey, now: datetime) -> Recall | None:
        """Return the cached answer for a key, marked as cached, unless it is too old."""
        with self._guard:
            self._drop_older_generations(key)
            entry = self._entries.get(key)
            if entry is None:
                return None
            if self._is_stale(entry, now):
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
        run = entry.answer.run
        return replace(entry.answer, run=run and run._replace(cached=True))

    def store(self, key: CacheKey, answer: Recall, now: datetime) -> None:
        """Cache an answer, unless it is degraded or depends on code, which may change any time."""
        if answer.degraded or any(hit.item.anchors for hit in answer.hits):
            return
        with self._guard:
            self._drop_older_generations(key)
            self._entries[key] = _CacheEntry(answer, now)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def _drop_older_generations(self, key: CacheKey) -> None:
        """Drop answers from before a write.

        They can never be found again, and what they hold may have been erased since.
        """
        if self._entries and next(iter(self._entries)).generation != key.generation:
            self._entries.clear()

    def _is_stale(self, entry: _CacheEntry, now: datetime) -> bool:
        """Whether it is too old, the clock was set back, or a hit has expired since."""
        if not timedelta(0) <= now - entry.since < self._ttl:
            return True
        ends = [hit.item.valid_to for hit in entry.answer.hits]
        return any(end is not None and end <= now for end in ends)


def cache_key(profile: Profile, ctx: Context, *, now_given: bool) -> CacheKey | None:
    """Build the cache key of a query; None where the answer depends on uncacheable inputs.

    A moment given by the caller must match exactly. Otherwise only the day must match:
    within it an answer may be as old as the time to live.
    """
    query = ctx.query
    # Notes and votes are files that may change at any time.
    if query.track or ctx.boost or ctx.reranker or ctx.notes or ctx.votes:
        return None
    if not now_given:
        day = query.now.replace(hour=0, minute=0, second=0, microsecond=0)
        query = replace(query, now=day)
    return CacheKey(
        ctx.store.space,
        ctx.store.admin.generation(),
        f"{'at' if now_given else 'on'} {query!r}",
        profile,
        ctx.embedder.model if ctx.embedder else "",
    )


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def open_llm(name: str) -> LanguageModel | None:
    """Open the language model of that name, if it is one."""
    from bethink.models.llm import open_llm  # start-up time: most use none

    return open_llm(name)


def open_store(
    store: str, space: str | None, path: Path | str | None, settings: Settings, *, create: bool
) -> Store:
    """Open the store of a space: in memory, in a file, on a server."""
    if is_server(store):
        if path is not None:
            raise BadSetting(
                f"{path} is a file, but the store is a server", remedy="name a space instead"
            )
        if space == ":memory:":
            return find_store(DEFAULT_STORE).open(None, space="memory")
        return open_on_server(store, resolve_space(space, settings).name, create=create)
    store_class = find_store(store)
    if space == ":memory:":
        return store_class.open(None, space="memory")
    if path is not None:
        return store_class.open(Path(path), space=space or Path(path).stem)
    ref = resolve_space(space, settings)
    exists = create or ref.path.exists()
    return store_class.open(ref.path if exists else None, space=ref.name)


def open_shelf(store: str, space: str, path: Path, key: str, *, create: bool) -> Store | None:
    """Open a shelf of a space; None where it does not exist and is not to be created."""
    name, file = shelf_name(space, key), shelf_folder(path) / f"{key}.db"
    if not create and not space_exists(store, name, file):
        return None
    if is_server(store):
        return open_on_server(store, name)
    return find_store(store).open(file, space=space)


def _shelf_in_memory(key: str, *, create: bool) -> Store | None:
    return find_store(DEFAULT_STORE).open(None, space=key) if create else None


def resolve_reranker(
    reranker: str | Reranker | None, llm: LanguageModel | None, store: Store
) -> Reranker | None:
    """Open the reranker of that name; ``llm`` uses this space's language model."""
    if reranker != "llm":
        return open_reranker(reranker)
    if llm is None:
        raise BadSetting(
            "the reranker llm needs a language model", remedy="bethink config set llm ..."
        )
    from bethink.models.rerank.llm import LlmReranker  # start-up time: most use none

    return LlmReranker(llm, store.space)


class Session:
    """An open space: its store, models, settings and clock. `Memory` and its services share it."""

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
        self.store = store
        self.embedder = embedder
        self.reranker = reranker
        self.llm = llm
        self.settings = settings or Settings()
        self.clock = clock
        self._folders = tuple(profile_folders)
        self.notes_dir = notes_dir
        self.judging = True
        self._notes: NoteStore | None = None
        self.cache = RecallCache() if self.settings.cache else None
        self.jobs_checked: dict[str, tuple[date, int]] = {}  # when each found nothing to do
        # The caches of those who may see up to a classification; `using` shares them.
        self._bounded: dict[int, tuple[RecallCache | None, dict[str, tuple[date, int]]]] = {}
        # Further stores of the space that only some people see, by key (`bethink.people`).
        self.shelves: dict[str, Store] = {}
        self.open_shelf: Callable[..., Store | None] = _shelf_in_memory
        self._shelf_guard = threading.Lock()
        self.whole = store  # also where a caller sees less of it
        self.room: Callable[[int], AbstractContextManager[object]] = nullcontext

    def shelf(self, key: str, *, create: bool) -> Store | None:
        """Return the store of what only some people see of the space, if there is one."""
        with self._shelf_guard:
            if key not in self.shelves:
                opened = self.open_shelf(key, create=create)
                if opened is None:
                    return None
                self.shelves[key] = opened
            return self.shelves[key]

    def bounded(self, ceiling: int) -> Self:
        """Return the session of those who may see up to a classification; see `Memory.below`."""
        int_in_range("ceiling", ceiling, 0, 3)
        other = copy(self)
        other.store = self.store.below(ceiling)
        if other.store is not self.store:
            other.cache, other.jobs_checked = self._bounded.setdefault(
                ceiling, (RecallCache() if self.settings.cache else None, {})
            )
        lowest = min(ceiling, self.settings.max_classification)
        other.settings = replace(self.settings, max_classification=lowest)
        return other

    def close(self) -> None:
        """Close the store. Acknowledged writes are already durable."""
        for shelf in self.shelves.values():
            shelf.close()
        self.store.close()

    def profile(self, requested: str | Profile | None = None) -> Profile:
        """Load a profile by name; the configured one where none is named."""
        if isinstance(requested, Profile):
            return requested
        name = requested or self.settings.profile
        return configured_profile(name, self.settings, self._folders)

    def tracks_use(self, profile: Profile, track: bool | None = None) -> bool:
        """Whether a recall records use: as the caller, else the setting, else the profile says."""
        set_value = self.settings.explicit("track") if track is None else track
        return profile.track.by_default if set_value is None else bool(set_value)

    def profiles(self) -> dict[str, Path | None]:
        """List the available profiles, and the file of each that is the user's own."""
        return profile_names(self._folders)

    @property
    def notes(self) -> NoteStore | None:
        """The folder of notes next to the memories or, without one, abmind's; None without."""
        folder = self.notes_dir
        if folder is not None and not folder.is_dir() and self.settings.notes_dir is None:
            folder = home_folder(os.environ).joinpath(*_ABMIND_NOTES)
        if self._notes is None and folder is not None and folder.is_dir():
            from bethink.ingest.notes import NotesFolder  # start-up time: most have none

            # A project may come from a stranger: its notes have not the owner's trust.
            from_project = self.settings.origin("notes_dir").kind == "project file"
            trust = self.settings.notes_trust
            self._notes = NotesFolder(
                folder,
                trust=min(trust, 1) if from_project else trust,
                within=self.settings.project if from_project else None,
                space=self.store.space,
            )
        return self._notes

    def get(self, item_id: str) -> Item:
        """Get a memory by its id or a unique part of the id.

        Also gets a note or an edge that a recall returned, by its whole id.
        """
        return find_note_or_edge(item_id, self.store, self.notes) or self.stored_item(item_id)

    def stored_item(self, item_id: str) -> Item:
        """Get a memory from the store, one that can be changed and forgotten."""
        items = self.store.items.get([item_id])
        if item_id in items:
            return items[item_id]
        known = self._resolve(item_id)
        items = self.store.items.get([known])
        if known not in items:
            raise StoreDamaged(
                f"the memory {known} is damaged: it is not what was stored",
                remedy=f"restore it from a backup, or: bethink forget {known} --erase",
            )
        return items[known]

    def removable_item(self, item_id: str) -> Item:
        """Get a memory that can be forgotten; a damaged one comes without its content."""
        try:
            return self.stored_item(item_id)
        except StoreDamaged:
            known = self._resolve(item_id)
            if not self.store.items.damaged([known]):
                raise
            return Item(known, DAMAGED_TEXT, datetime.fromtimestamp(0, UTC), "")

    def _resolve(self, item_id: str) -> str:
        """Return the id of the one memory that has this id, or this part in its id."""
        if self.store.items.damaged([item_id]):
            return item_id
        matches = self.store.items.resolve(item_id) if len(item_id) >= 4 else []
        if not matches:
            remedy = "bethink list shows the memories"
            raise NotFound(f"there is no memory {item_id!r}", remedy=remedy)
        if len(matches) > 1:
            raise NotFound(f"{item_id!r} could be any of {', '.join(matches)}")
        return matches[0]

    def job_context(
        self,
        share: float | None = None,
        where: Mapping[str, object] = NO_FILTERS,
        min_age_days: float | None = None,
        similarity: float | None = None,
    ) -> JobContext:
        """Build the context of a maintenance run."""
        from bethink.maintain.job import JobContext  # start-up time: recall does without

        if share is not None and not 0 < share <= 1:
            raise Refused(f"share is {share!r}, but must be above 0 and at most 1")
        if min_age_days is not None and not 0 <= min_age_days < float("inf"):
            raise Refused(f"min_age_days is {min_age_days!r}, but must be a number of days")
        if similarity is not None and not 0.5 <= similarity <= 1:
            raise Refused(f"similarity is {similarity!r}, but must be from 0.5 to 1")
        now = self.clock()
        return JobContext(
            self.store, self.embedder, now,
            limit=_leaving_limit(self.store.admin.count(), share),
            model=self.llm, judge=_judge_pairs, find_names=_find_names,
            notes_dir=self._notes_target(), notes_trust=self.settings.notes_trust,
            filters=make_filters({"max_classification": 3, **where}, now),
            shown=self.settings.max_classification, min_age_days=min_age_days,
            similarity=similarity or self.settings.least_similarity,
        )  # fmt: skip

    def write_context(self, *, relating: bool = False, review: bool = False) -> WriteContext:
        """Build the context of a write, at the current time."""
        from bethink.ingest.admission import WriteContext  # start-up time: recall does without

        actor, now = self.settings.actor, self.clock()
        return WriteContext(
            self.store, self.embedder, now, actor, make_id, relating=relating, room=self.room,
            judge=_judge_pairs if self.judging else None,
            find_names=_find_names, find_secrets=_find_secrets,
            personal_numbers=self.settings.personal_numbers,
            review=self.settings.review if review else None,
        )  # fmt: skip

    def _notes_target(self) -> Path | None:
        """Return where notes are written; a project file cannot point outside the project."""
        folder, project = self.notes_dir, self.settings.project
        if folder is None or self.settings.origin("notes_dir").kind != "project file":
            return folder
        inside = project is not None and Path(os.path.realpath(folder)).is_relative_to(
            os.path.realpath(project)
        )
        return folder if inside else None

    def drop_caches(self) -> None:
        """Drop cached data of memories that may no longer exist."""
        self._notes = None
        for cache in (self.cache, *(cache for cache, _ in self._bounded.values())):
            if cache is not None:
                cache.clear()


class SessionMethods:
    """What all methods of `Memory` share: the open space."""

    session: Session

    def __init_subclass__(cls) -> None:
        check_methods(cls)

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
        return self.session.clock()

    @property
    def notes(self) -> NoteStore | None:
        """The folder of notes next to the memories, if there is one."""
        return self.session.notes

    def profile(self, wanted: str | Profile | None = None) -> Profile:
        """Load a profile by name; the configured one where none is named."""
        return self.session.profile(wanted)

    def profiles(self) -> dict[str, Path | None]:
        """List the available profiles, and the file of each that is the user's own."""
        return self.session.profiles()


check_methods(SessionMethods)
