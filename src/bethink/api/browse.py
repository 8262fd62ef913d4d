"""Browse what is stored: memories, entities, provenance, threads and the insight tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from bethink.api.session import SessionMethods
from bethink.core.characters import strip_hidden
from bethink.core.ids import make_id
from bethink.core.sentences import caption
from bethink.errors import NotFound, Refused
from bethink.model import Entity, Filters, Item, Member, Thread
from bethink.ports import EntityListing, Event, Scope, Store
from bethink.retrieval.query_builder import MAX_LIST_LENGTH, MAX_OFFSET, int_in_range, make_filters

if TYPE_CHECKING:
    from bethink.api.options import FilterOptions, ThreadFields
    from bethink.retrieval.provenance import InsightNode, Provenance


MAX_PLACE = 2**53  # of a list: as many as JSON can count


def merge_timeline(middle: Item, neighbours: Sequence[Item]) -> list[Item]:
    """Sort a memory among its neighbours, in the order of `Browser.timeline`."""
    items = [middle, *(item for item in neighbours if item.id != middle.id)]
    if middle.session is not None and middle.seq is not None:
        return sorted(items, key=lambda item: (item.seq or 0, item.id))
    return sorted(items, key=lambda item: (item.stored_at, item.id))


class BrowseMethods(SessionMethods):
    """Lists what an open space holds."""

    def get(self, item_id: str) -> Item:
        """Get a memory by its id or a unique part of the id.

        Also gets a note or an edge that a recall returned, by its whole id.
        """
        return self.session.get(item_id)

    def stored(self, item_id: str) -> Item:
        """Get a memory from the store, one that can be changed and forgotten."""
        return self.session.stored_item(item_id)

    def browse(
        self,
        *,
        limit: int = 50,
        after: str | None = None,
        offset: int = 0,
        **where: Unpack[FilterOptions],
    ) -> list[Item]:
        """List stored memories, newest first, a page ``after`` one or at an ``offset``."""
        max_items = int_in_range("limit", limit, 1, MAX_LIST_LENGTH)
        skipped = int_in_range("offset", offset, 0, MAX_PLACE)
        scope = self._scope(where)
        return self.store.items.browse(scope, limit=max_items, after=after, offset=skipped)

    def _scope(self, where: Mapping[str, object]) -> Scope:
        now = self.now
        ceiling = {"max_classification": self.settings.max_classification}
        return Scope(make_filters({**ceiling, **where}, now), now)

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
        kinds = (kind,) if isinstance(kind, str) else tuple(kind)
        listing = EntityListing(
            prefix,
            kinds,
            int_in_range("min_memories", min_memories, 0, MAX_LIST_LENGTH),
            int_in_range("limit", limit, 1, MAX_LIST_LENGTH),
            int_in_range("offset", offset, 0, MAX_OFFSET),
            self.settings.max_classification,
        )
        return self.store.graph.list_entities(listing, self.now)

    def timeline(self, around: str, *, window: int = 5) -> list[Item]:
        """Return what was stored or said just before and after a memory, oldest first."""
        item = self.stored(around)
        ceiling = self.settings.max_classification
        filters = Filters(include_superseded=True, max_classification=ceiling)
        scope = Scope(filters, self.now)
        return self.store.items.around(
            item.id, window=int_in_range("window", window, 1, 1000), scope=scope
        )

    def why(self, item_id: str, *, depth: int = 4, types: Sequence[str] = ()) -> Provenance:
        """Return a memory's provenance: what it derives from, was caused by, replaces ..."""
        from bethink.retrieval.provenance import (  # start-up time
            MAX_DEPTH,
            PROVENANCE_LINK_TYPES,
            provenance,
        )

        if not 1 <= depth <= MAX_DEPTH:
            raise Refused(f"depth is {depth}, but must be from 1 to {MAX_DEPTH}")
        # Relations between entities may have any name.
        unknown = sorted({*types} - {*PROVENANCE_LINK_TYPES, "mentions", "follows"})
        if unknown and "mentions" not in types:
            known = ", ".join((*PROVENANCE_LINK_TYPES, "mentions", "follows"))
            raise Refused(f"there is no type of link {unknown[0]!r}", remedy=f"one of {known}")
        item = self.get(item_id)
        scope = Scope(Filters(max_classification=self.settings.max_classification), self.now)
        return provenance(
            item, self.store, scope, depth=depth, types=types or PROVENANCE_LINK_TYPES
        )

    def history(self, item_id: str) -> list[Item]:
        """Return all revisions of a memory, oldest first."""
        return self.store.items.history(self.stored(item_id).id)

    def events(self, *, after: int = 0, limit: int = 100) -> list[Event]:
        """Return the journal: who changed which memory, and how."""
        int_in_range("after", after, 0, 2**63 - 1)
        return self.store.admin.events(
            after=after, limit=int_in_range("limit", limit, 1, MAX_LIST_LENGTH)
        )


def redact_thread(thread: Thread, items: Mapping[str, Item], ceiling: int) -> Thread | None:
    """Remove members and events above the ceiling; None where no member is left.

    ``items`` are its members. Its headline and anchor stay only where a remaining member
    supports them, so that hidden memories leave no trace.
    """
    visible = {
        entry.item: items[entry.item]
        for entry in thread.members
        if entry.item in items and items[entry.item].classification <= ceiling
    }
    if len(visible) == len(thread.members):
        return thread
    if not visible:
        return None
    rest = thread._replace(
        members=tuple(entry for entry in thread.members if entry.item in visible),
        events=tuple(
            entry for entry in thread.events if entry.item is None or entry.item in visible
        ),
    )
    supports_anchor = any(_supports_anchor(item, thread.anchor) for item in visible.values())
    anchored = rest if supports_anchor else rest._replace(anchor=None)
    captions = [caption(strip_hidden(item.text), limit=80) for item in visible.values()]
    if supports_anchor:
        captions += [f"{_anchor_name(thread)}: {entry}" for entry in captions]
    if thread.headline in captions:
        return anchored
    if supports_anchor and _is_generated(thread):
        return anchored._replace(headline=_anchor_name(thread))
    since = min(item.when for item in visible.values())
    return anchored._replace(headline=f"memories since {since:%Y-%m-%d}")


def _anchor_name(thread: Thread) -> str:
    """Return the name of the thread's anchor, as its headline spells it."""
    key = (thread.anchor or "").partition(":")[2]
    prefix = thread.headline[: len(key)]
    return prefix if prefix.casefold() == key.casefold() else key


def _supports_anchor(item: Item, anchor: str | None) -> bool:
    if anchor is None:
        return False
    return anchor in item.entities or anchor == f"topic:{item.topic}"


def _is_generated(thread: Thread) -> bool:
    """Whether maintenance made the headline, which then begins with the anchor's name."""
    from bethink.maintain.journal import GENERATED_PREFIX  # start-up time: few are mixed

    return thread.id.startswith(GENERATED_PREFIX)


MAX_CLASSIFICATION = 3
_PAGE = 200


class ThreadMethods(SessionMethods):
    """Threads and the insight tree of an open space."""

    def put_thread(
        self, headline: str, members: Iterable[str | Member], **fields: Unpack[ThreadFields]
    ) -> Thread:
        """Store a thread, replacing the one with its id.

        >>> with Memory.open(":memory:") as memory:
        ...     key = memory.remember("The deploy key is rotated every quarter")
        ...     thread = memory.put_thread("Deploy keys", [key.id], kind="work")
        ...     memory.thread(thread.id).headline
        'Deploy keys'
        """
        from bethink.ingest.admission import admit_thread  # start-up time: recall does without

        now = self.now
        unknown = fields.keys() - set(Thread._fields)
        if unknown:
            raise Refused(f"a thread has no field {min(unknown)!r}")
        all_members = tuple(
            Member(member) if isinstance(member, str) else member for member in members
        )
        named: ThreadFields = {"id": make_id(now), **fields}
        thread = admit_thread(Thread(headline=headline, members=all_members, **named))
        self.store.activity.put_thread(thread, actor=self.settings.actor, now=now)
        return self.store.activity.thread(thread.id) or thread

    def thread(self, thread_id: str) -> Thread:
        """Get a thread with its visible members and events."""
        found = self._visible_store().activity.thread(thread_id)
        visible = self._redact_threads([found]) if found is not None else []
        if not visible:
            raise NotFound(f"there is no thread {thread_id!r}")
        return visible[0]

    def insights(self) -> list[InsightNode]:
        """Return the insight tree: every root with all insights below it."""
        from bethink.retrieval.provenance import insight_tree  # start-up time: recall does without

        filters = Filters(levels=("insight",), max_classification=self.settings.max_classification)
        return insight_tree(self.store, Scope(filters, self.now))

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """List threads with a visible member, last changed first, with those members."""
        int_in_range("limit", limit, 1, MAX_LIST_LENGTH)
        int_in_range("offset", offset, 0, MAX_OFFSET)
        if self.settings.max_classification >= MAX_CLASSIFICATION:
            return self.store.activity.threads(limit=limit, offset=offset)
        store = self._visible_store()
        found: list[Thread] = []
        start = 0
        while len(found) < offset + limit:
            page = store.activity.threads(limit=_PAGE, offset=start)
            found += self._redact_threads(page)
            if len(page) < _PAGE:
                break
            start += _PAGE
        return found[offset : offset + limit]

    def _visible_store(self) -> Store:
        """Return the store without what is above the session's ceiling."""
        return self.store.below(self.settings.max_classification)

    def _redact_threads(self, threads: Sequence[Thread]) -> list[Thread]:
        ids = {member.item for thread in threads for member in thread.members}
        items = self.store.items.get(sorted(ids))
        ceiling = self.settings.max_classification
        redacted = (redact_thread(thread, items, ceiling) for thread in threads)
        return [thread for thread in redacted if thread is not None]
