"""What writing and maintenance are given: the open space as their workplace."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from recollect.asking import make_filters
from recollect.errors import Refused
from recollect.facade.opened import Opened
from recollect.ids import make_id

if TYPE_CHECKING:
    from recollect.ingest.writing import WriteContext
    from recollect.maintain.job import Work

SHARE = 0.02
NO_FILTERS: Mapping[str, Any] = MappingProxyType({})


class Working(Opened):
    """A memory as writing and maintenance see it."""

    def _work(self, share: float = SHARE, where: Mapping[str, Any] = NO_FILTERS) -> Work:
        from recollect.maintain.job import Work  # start-up time: recall does without

        number = isinstance(share, int | float) and not isinstance(share, bool)
        if not number or not 0 < share <= 1:
            raise Refused(f"share is {share!r}, but must be above 0 and at most 1")
        now = self._clock()
        return Work(
            self.store,
            self.embedder,
            now,
            limit=int(self.store.count() * share + 1e-9),
            model=self.llm,
            notes_dir=self._notes_place(),
            notes_trust=self.settings.notes_trust,
            filters=make_filters({"max_classification": 3, **where}, now),
            shown=self.settings.max_classification,
        )

    def _writing(self, *, relating: bool = False) -> WriteContext:
        from recollect.ingest.writing import WriteContext  # start-up time: recall does without

        actor, now = self.settings.actor, self._clock()
        return WriteContext(self.store, self.embedder, now, actor, make_id, relating=relating)

    def _notes_place(self) -> Path | None:
        """Where notes are written; a project's file cannot send them out of the project."""
        folder, project = self._notes_dir, self.settings.project
        if folder is None or self.settings.origin("notes_dir").kind != "project file":
            return folder
        inside = project is not None and Path(os.path.realpath(folder)).is_relative_to(
            os.path.realpath(project)
        )
        return folder if inside else None

    def _let_go(self) -> None:
        """Drops what this process keeps of memories that may be gone now."""
        self._notes = None
        if self._cache is not None:
            self._cache.clear()
