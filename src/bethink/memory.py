"""The facade: one class to store, recall, explain, correct and forget memories."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from bethink.api.browse import BrowseMethods, ThreadMethods
from bethink.api.files import FileMethods
from bethink.api.inbox import InboxMethods
from bethink.api.links import LinkMethods
from bethink.api.maintenance import MaintenanceMethods, UpkeepMethods
from bethink.api.questions import QuestionMethods
from bethink.api.recall import RecallMethods
from bethink.api.session import Session, utc_now
from bethink.api.sync import SyncMethods
from bethink.api.write import WriteMethods
from bethink.config.settings import Settings
from bethink.core.registry import import_object
from bethink.ports import Clock, Embedder, LanguageModel, Reranker, Store

if TYPE_CHECKING:
    from bethink.access.people import Directory

__all__ = ["Memory", "utc_now"]


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
        other = self.session.using(settings=settings, embedder=embedder, judging=judging)
        return self._of(other)

    def below(self, ceiling: int) -> Self:
        """Return the same space without anything above a classification, as servers give it."""
        return self._of(self.session.below(ceiling))

    def seen_by(self, name: str, directory: Directory | None = None) -> Memory:
        """Return the space as one of its people sees it (docs/team.md).

        The directory says who there is; without one it is the server's own.
        """
        from bethink.access.people import Directory  # start-up time: most are alone
        from bethink.access.policy import Right
        from bethink.config.paths import config_folder

        people = directory or Directory(config_folder(os.environ))
        # By name: people stand above the memory that they see.
        seen_by = import_object("bethink.people:seen_by")
        seen: Memory = seen_by(self, name, people, Right.ADMIN)
        return seen

    def close(self) -> None:
        """Close the store. Acknowledged writes are already durable."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
