"""Looking at what is stored, without a question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.asking import MAX_LISTED, MAX_OFFSET, make_filters, within
from recollect.errors import Refused
from recollect.facade.opened import Opened
from recollect.model import Entity, Filters, Item
from recollect.ports import Event, Listing, Scope

if TYPE_CHECKING:
    from recollect.provenance import Provenance


def in_its_place(middle: Item, neighbours: Sequence[Item]) -> list[Item]:
    """A memory among its neighbours, in the order `Browsing.timeline` found them by."""
    everyone = [middle, *(item for item in neighbours if item.id != middle.id)]
    if middle.session is not None and middle.seq is not None:
        return sorted(everyone, key=lambda item: (item.seq or 0, item.id))
    return sorted(everyone, key=lambda item: (item.stored_at, item.id))


class Browsing(Opened):
    """The looking side of a memory."""

    def browse(self, *, limit: int = 50, after: str | None = None, **where: Any) -> list[Item]:
        """What is stored, newest first, a page at a time."""
        now = self._clock()
        ceiling = {"max_classification": self.settings.max_classification}
        filters = make_filters({**ceiling, **where}, now)
        most = within("limit", limit, 1, MAX_LISTED)
        return self.store.browse(Scope(filters, now), limit=most, after=after)

    def entities(
        self,
        *,
        prefix: str = "",
        kind: str | Sequence[str] = (),
        min_memories: int = 1,
        limit: int = 30,
        offset: int = 0,
    ) -> list[Entity]:
        """Whom and what the memories speak of, where most is going on first.

        Each with its momentum now and its memories counted: by layer, and pinned.
        """
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        wanted = Listing(
            prefix,
            kinds,
            within("min_memories", min_memories, 0, MAX_LISTED),
            within("limit", limit, 1, MAX_LISTED),
            within("offset", offset, 0, MAX_OFFSET),
            self.settings.max_classification,
        )
        return self.store.list_entities(wanted, self._clock())

    def timeline(self, around: str, *, window: int = 5) -> list[Item]:
        """What was stored or said just before and after a memory, oldest first."""
        item = self.stored(around)
        ceiling = self.settings.max_classification
        filters = Filters(include_superseded=True, max_classification=ceiling)
        scope = Scope(filters, self._clock())
        return self.store.around(item.id, window=within("window", window, 1, 1000), scope=scope)

    def why(self, item_id: str, *, depth: int = 4, types: Sequence[str] = ()) -> Provenance:
        """Where a memory comes from: what it derives from, was caused by, replaces ..."""
        from recollect.provenance import MOST_DEPTH, ORIGINS, provenance  # start-up time

        if not 1 <= depth <= MOST_DEPTH:
            raise Refused(f"depth is {depth}, but must be from 1 to {MOST_DEPTH}")
        # Beyond whom it mentions, entities may be linked by any word.
        unknown = sorted({*types} - {*ORIGINS, "mentions", "follows"})
        if unknown and "mentions" not in types:
            known = ", ".join((*ORIGINS, "mentions", "follows"))
            raise Refused(f"there is no type of link {unknown[0]!r}", remedy=f"one of {known}")
        item = self.get(item_id)
        filters = Filters(max_classification=self.settings.max_classification)
        scope = Scope(filters, self._clock())
        return provenance(item, self.store, scope, depth=depth, types=types or ORIGINS)

    def history(self, item_id: str) -> list[Item]:
        """All revisions of a memory, oldest first."""
        return self.store.history(self.stored(item_id).id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """The journal: who did what to which memory."""
        within("after", after, 0, 2**63 - 1)
        return self.store.events(after=after, limit=within("limit", limit, 1, MAX_LISTED))
