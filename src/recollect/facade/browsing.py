"""Looking at what is stored, without a question."""

from __future__ import annotations

from typing import Any

from recollect.asking import make_filters
from recollect.facade.opened import Opened
from recollect.model import Entity, Filters, Item
from recollect.ports import Event, Scope


class Browsing(Opened):
    """The looking side of a memory."""

    def browse(self, *, limit: int = 50, after: str | None = None, **where: Any) -> list[Item]:
        """What is stored, newest first, a page at a time."""
        now = self._clock()
        ceiling = {"max_classification": self.settings.max_classification}
        filters = make_filters({**ceiling, **where}, now)
        return self.store.browse(Scope(filters, now), limit=limit, after=after)

    def entities(self, *, prefix: str = "", limit: int = 100, offset: int = 0) -> list[Entity]:
        """Whom and what the memories speak of, most mentioned first."""
        return self.store.entities(prefix=prefix, limit=limit, offset=offset)

    def timeline(self, around: str, *, window: int = 5) -> list[Item]:
        """What was stored or said just before and after a memory, oldest first."""
        item = self.get(around)
        ceiling = self.settings.max_classification
        filters = Filters(include_superseded=True, max_classification=ceiling)
        scope = Scope(filters, self._clock())
        return self.store.around(item.id, window=window, scope=scope)

    def history(self, item_id: str) -> list[Item]:
        """All revisions of a memory, oldest first."""
        return self.store.history(self.get(item_id).id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """The journal: who did what to which memory."""
        return self.store.events(after=after, limit=limit)
