"""The facade: one class to store, recall, explain, correct and forget memories."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bethink.api.browse import BrowseMethods, ThreadMethods
from bethink.api.files import FileMethods
from bethink.api.links import LinkMethods
from bethink.api.maintenance import MaintenanceMethods, UpkeepMethods
from bethink.api.questions import QuestionMethods
from bethink.api.recall import RecallMethods
from bethink.api.session import Session, open_llm, open_shelf, open_store, resolve_reranker, utc_now
from bethink.api.sync import SyncMethods
from bethink.api.write import InboxMethods, WriteMethods
from bethink.config.settings import Settings, load_settings
from bethink.config.spaces import data_dir, resolve_space
from bethink.core.registry import import_object
from bethink.models import open_embedder
from bethink.ports import Clock, Embedder, LanguageModel, Reranker, Store
from bethink.store import DEFAULT_STORE
from bethink.store.url import is_server

if TYPE_CHECKING:
    from bethink.access.people import Directory
    from bethink.people import PersonMemory


class Memory(
    WriteMethods, RecallMethods, BrowseMethods, ThreadMethods, LinkMethods, FileMethods,
    MaintenanceMethods, UpkeepMethods, SyncMethods, QuestionMethods, InboxMethods,
):  # fmt: skip
    """One space's memory: remember, recall, explain, correct, forget.

    Sync, typed and safe to share between threads. `AsyncMemory` is the same for async code.

    >>> with Memory.open(":memory:") as memory:
    ...     _ = memory.remember("The deploy key lives in vault B")
    ...     answer = memory.recall("where is the deploy key?")
    ...     print(answer.hits[0].item.text)
    The deploy key lives in vault B
    """

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

        Without a name it is the project's own, found from the working directory;
        ``":memory:"`` goes with the object. ``path`` is a file, ``store`` "sqlite", the name of
        an installed store or ``postgresql://...``; ``create=False`` creates nothing.
        """
        settings = settings or load_settings()
        if store is None and path is not None and is_server(settings.store):
            store = DEFAULT_STORE  # an argument comes before a setting
        kind, notes_dir = store or settings.store, settings.notes_dir
        opened = open_store(kind, space, path, settings, create=create)
        if path is None and space != ":memory:":
            notes_dir = notes_dir or data_dir(settings) / opened.space / "notes"
        chosen = embedder if embedder is not None else settings.embedder
        model = open_embedder(chosen) if isinstance(chosen, str) else chosen
        given = settings.llm if llm is None else llm
        language_model = open_llm(given) if isinstance(given, str) else given
        named = settings.reranker if reranker is None else reranker
        session = Session(
            opened, embedder=model, reranker=resolve_reranker(named, language_model, opened),
            llm=language_model, settings=settings, clock=clock,
            profile_folders=settings.profile_folders(), notes_dir=notes_dir,
        )  # fmt: skip
        if space != ":memory:":
            place = path or resolve_space(opened.space, settings).path
            session.open_shelf = partial(open_shelf, kind, opened.space, Path(place))
        return cls._of(session)

    @classmethod
    def _of(cls, session: Session) -> Self:
        memory = cls.__new__(cls)
        memory.session = session
        return memory

    def using(
        self,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        judging: bool = True,
    ) -> Self:
        """Return a memory of the same open space with other settings or another embedder.

        Without ``judging`` the job ``updates`` finds later what new memories update.
        """
        session = copy(self.session)
        session.judging = judging
        session.settings = settings or self.settings
        session.embedder = embedder or self.embedder
        return self._of(session)

    def below(self, ceiling: int) -> Self:
        """Return the same space without anything above a classification, as servers give it.

        Nothing above it can be seen, changed or inferred through it, whatever filters are given.
        """
        return self._of(self.session.bounded(ceiling))

    def seen_by(self, name: str, directory: Directory | None = None) -> PersonMemory:
        """Return the space as one of its people sees it (docs/team.md).

        The directory says who there is; without one it is the server's own.
        """
        from bethink.access.people import Directory  # start-up time: most are alone
        from bethink.access.policy import Right

        people = directory or Directory()
        # By name: people stand above the memory that they see.
        seen_by = import_object("bethink.people:seen_by")
        seen: PersonMemory = seen_by(self, name, people, Right.ADMIN)
        return seen

    def close(self) -> None:
        """Close the store. Acknowledged writes are already durable."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
