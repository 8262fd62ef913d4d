"""A space that is open: the composition root, where a store, a model and a profile meet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from recollect.errors import BadSetting, NotFound
from recollect.facade.beside import find_beside
from recollect.model import Item
from recollect.models import open_embedder
from recollect.models.rerankers import open_reranker
from recollect.ports import Clock, Embedder, LanguageModel, Notes, Reranker, Store
from recollect.profile import Profile, load_profile, profile_names
from recollect.settings import Settings, load_settings
from recollect.spaces import data_dir, resolve_space
from recollect.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from recollect.cache import Cache


def utc_now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(UTC)


def _new_cache() -> Cache:
    from recollect.cache import Cache  # start-up time: most keep none

    return Cache()


def _open_llm(name: str) -> LanguageModel | None:
    from recollect.models.llm import open_llm  # start-up time: most use none

    return open_llm(name)


def reranker_of(
    wanted: str | Reranker | None, llm: LanguageModel | None, store: Store
) -> Reranker | None:
    """The reranker of that name; the one called llm is this space's own."""
    if wanted != "llm":
        return open_reranker(wanted)
    if llm is None:
        raise BadSetting(
            "the reranker llm needs a language model", remedy="recollect config set llm ..."
        )
    from recollect.models.llm.rerank import LlmReranker  # start-up time: most use none

    return LlmReranker(llm, store.space)


class Opened:
    """What every part of the facade stands on."""

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
        """Put together from parts; ``Memory.open`` is the usual way."""
        self.store = store
        self.embedder = embedder
        self.reranker = reranker
        self.llm = llm
        self.settings = settings or Settings()
        self._clock = clock
        self._folders = tuple(profile_folders)
        self._notes_dir = notes_dir
        self._notes: Notes | None = None
        self._cache = _new_cache() if self.settings.cache else None
        self._looked_at: dict[str, tuple[date, int]] = {}

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
    ) -> Self:
        """The memory of a space, made if it is not there yet.

        Without a name it is the project's own, found from the working directory.
        ``":memory:"`` lives only as long as the object; ``path`` names a file.
        """
        settings = settings or load_settings()
        notes_dir = settings.notes_dir
        if space == ":memory:":
            store = SqliteStore.open(None, space="memory")
        elif path is not None:
            store = SqliteStore.open(Path(path), space=space or Path(path).stem)
        else:
            ref = resolve_space(space, settings)
            store = SqliteStore.open(ref.path, space=ref.name)
            notes_dir = notes_dir or data_dir(settings) / ref.name / "notes"
        chosen = embedder if embedder is not None else settings.embedder
        model = open_embedder(chosen) if isinstance(chosen, str) else chosen
        language = settings.llm if llm is None else llm
        mind = _open_llm(language) if isinstance(language, str) else language
        return cls(
            store,
            embedder=model,
            reranker=reranker_of(settings.reranker if reranker is None else reranker, mind, store),
            llm=mind,
            settings=settings,
            clock=clock,
            profile_folders=settings.profile_folders(),
            notes_dir=notes_dir,
        )

    @property
    def now(self) -> datetime:
        """The moment, by this memory's own clock."""
        return self._clock()

    def close(self) -> None:
        """Lets go of the store. What was acknowledged is already safe."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def profile(self, wanted: str | Profile | None = None) -> Profile:
        """A profile by name; the configured one where none is named."""
        if isinstance(wanted, Profile):
            return wanted
        name = wanted or self.settings.profile
        return load_profile(name, self._folders, self.settings.changes(name))

    def profiles(self) -> dict[str, Path | None]:
        """Profiles that can be named, and the file of each that is the user's own."""
        return profile_names(self._folders)

    @property
    def notes(self) -> Notes | None:
        """The notes kept beside the memories, if there is a folder of them."""
        if self._notes is None and self._notes_dir is not None and self._notes_dir.is_dir():
            from recollect.ingest.notes import NotesFolder  # start-up time: most have none

            # A project may come from strangers: its notes are theirs, not the owner's word.
            theirs = self.settings.origin("notes_dir").kind == "project file"
            trust = self.settings.notes_trust
            self._notes = NotesFolder(
                self._notes_dir,
                trust=min(trust, 1) if theirs else trust,
                within=self.settings.project if theirs else None,
                space=self.store.space,
            )
        return self._notes

    def get(self, item_id: str) -> Item:
        """One memory by its id, or by a part of the id that only it has; a note or an edge
        that a recall returned, by its whole id."""
        return find_beside(item_id, self.store, self.notes) or self.stored(item_id)

    def stored(self, item_id: str) -> Item:
        """One memory of the store: what can be changed and forgotten."""
        items = self.store.get([item_id])
        if item_id in items:
            return items[item_id]
        near = self.store.resolve(item_id) if len(item_id) >= 4 else []
        if len(near) == 1:
            return self.store.get(near)[near[0]]
        if near:
            raise NotFound(f"{item_id!r} could be any of {', '.join(near)}")
        raise NotFound(
            f"there is no memory {item_id!r}", remedy="recollect list shows what is there"
        )
