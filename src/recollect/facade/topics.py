"""Threads: storing and looking at topics that go on for long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from recollect.errors import NotFound, Refused
from recollect.facade.opened import Opened
from recollect.ids import make_id
from recollect.model import Filters, Member, Thread
from recollect.ports import Scope

if TYPE_CHECKING:
    from recollect.insights import Branch

MOST_SECRET = 3
_PAGE = 200


class Topics(Opened):
    """The threads of a memory."""

    def put_thread(self, headline: str, members: Iterable[str | Member], **about: Any) -> Thread:
        """Stores a thread whole, in place of the one with its id. ``about`` are the
        fields of ``Thread``.

        >>> with Memory.open(":memory:") as memory:
        ...     key = memory.remember("The deploy key is rotated every quarter")
        ...     thread = memory.put_thread("Deploy keys", [key.id], kind="work")
        ...     memory.thread(thread.id).headline
        'Deploy keys'
        """
        from recollect.ingest.thread import admit_thread  # start-up time: recall does without

        now = self._clock()
        unknown = about.keys() - set(Thread._fields)
        if unknown:
            raise Refused(f"a thread has no field {min(unknown)!r}")
        named = tuple(Member(one) if isinstance(one, str) else one for one in members)
        fields = {"id": make_id(now), **about, "members": named}
        thread = admit_thread(Thread(headline=headline, **fields))
        self.store.put_thread(thread, actor=self.settings.actor, now=now)
        return self.store.thread(thread.id) or thread

    def thread(self, thread_id: str) -> Thread:
        """One thread with its members and events, as far as they may be seen."""
        found = self.store.thread(thread_id)
        seen = self._readable([found]) if found is not None else []
        if not seen:
            raise NotFound(f"there is no thread {thread_id!r}")
        return seen[0]

    def insights(self) -> list[Branch]:
        """The insight tree: every top with all that stands below it."""
        from recollect.insights import tree_of  # start-up time: recall does without

        filters = Filters(levels=("insight",), max_classification=self.settings.max_classification)
        return tree_of(self.store, Scope(filters, self._clock()))

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        """What goes on, the last changed first: threads that have a member that may be
        seen, with those members."""
        if self.settings.max_classification >= MOST_SECRET:
            return self.store.threads(limit=limit, offset=offset)
        found: list[Thread] = []
        start = 0
        while len(found) < offset + limit:
            page = self.store.threads(limit=_PAGE, offset=start)
            found += self._readable(page)
            if len(page) < _PAGE:
                break
            start += _PAGE
        return found[offset : offset + limit]

    def _readable(self, threads: Sequence[Thread]) -> list[Thread]:
        from recollect.facade.readable_threads import readable  # start-up time

        ids = {member.item for thread in threads for member in thread.members}
        items = self.store.get(sorted(ids))
        ceiling = self.settings.max_classification
        narrowed = (readable(thread, items, ceiling) for thread in threads)
        return [thread for thread in narrowed if thread is not None]
