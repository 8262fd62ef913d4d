"""Documents: what is kept under an address, exactly, as memories that recall can find.

A document is one memory of the level "raw", which no maintenance ends. Its address is the
memory's session, so equal words under two addresses are two documents. A change is the next
revision; a removal forgets the memory, and what is written there later is another one.
Export, erase, history and restore reach documents because they are nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.errors import Conflict, NotFound, Refused
from recollect.integrations.document import (
    ABOUT,
    KIND,
    UNINDEXED,
    Document,
    Entry,
    draft_of,
    is_well_formed,
)
from recollect.memory import Memory
from recollect.model import Draft, Item

_KINDS = (KIND, UNINDEXED)
_PAGE = 10_000
_MOST_TRIES = 200  # of writers to one document some always come through


class Documents:
    """The documents of one collection in a memory. Safe to share between threads, and to
    have several of on one space.

    ``address_of`` tells where a document belongs, by what was noted and by its body, or None
    where it cannot be one of these: others may write memories that look like a document, and
    what they write is passed over.
    """

    def __init__(
        self, memory: Memory, collection: str, address_of: Callable[[Document], str | None]
    ) -> None:
        self.memory = memory
        self.collection = collection
        self._address_of = address_of
        self._writing = threading.Lock()

    def find(self, address: str) -> Document | None:
        """What stands under an address; None where nothing does."""
        standing = [item for item in self._under(address) if self._stands(item)]
        return Document(standing[0]) if standing else None

    def each(self, **where: Any) -> list[Document]:
        """All that stand, those left out that other filters of memories leave out."""
        return self.among(self._browse(where))

    def among(self, items: Iterable[Item]) -> list[Document]:
        """Those of some memories that are documents of this collection and stand; of several
        under one address the last written, in the place of the first."""
        found: dict[str | None, Document] = {}
        for item in items:
            if self._is_ours(item) and self._stands(item):
                one = Document(item)
                known = found.setdefault(item.session, one)
                if known.updated_at < one.updated_at:
                    found[item.session] = one
        return list(found.values())

    def put(self, entry: Entry, *, only: Document | None = None) -> Document:
        """Keeps an entry in place of what stands under its address. With ``only`` where
        that is still what stands there; else raises Conflict."""
        with self._writing:
            for _ in range(_MOST_TRIES):
                try:
                    return self._put(entry, only)
                except NotFound:
                    continue  # erased this moment: its address is free
                except Conflict:
                    if only is not None:
                        raise
            raise self._crowded(entry.address)

    def add(self, entry: Entry) -> Document:
        """Keeps an entry where nothing stands under its address; else raises Conflict."""
        with self._writing:
            for _ in range(_MOST_TRIES):
                if self.find(entry.address) is not None:
                    raise Conflict("there is a document already")
                try:
                    return self._put(entry, None, fresh=True)
                except (Conflict, NotFound):
                    continue
            raise self._crowded(entry.address)

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Keeps entries of different addresses: those that are new in one transaction."""
        with self._writing:
            new = [entry for entry in entries if not self._under(entry.address)]
            done = self._store_new(new)
        for entry in entries:
            if entry.address not in done:
                self.put(entry)

    def remove(self, address: str, *, only: Document | None = None) -> bool:
        """Forgets what stands under an address; whether anything did."""
        with self._writing:
            for _ in range(_MOST_TRIES):
                under = self._under(address)
                found = next((item for item in under if self._stands(item)), None)
                if found is None:
                    return False
                if only is not None and _revision(found) != _revision(only.item):
                    raise Conflict("the document was changed meanwhile")
                if found.id in self.memory.withdraw(dict(map(_revision, under))):
                    return True
            raise self._crowded(address)

    def touch(self, documents: Iterable[Document]) -> None:
        """Notes that documents with a time to live were used: it begins anew."""
        ids = [one.item.id for one in documents if one.ttl_minutes is not None]
        if ids:
            self.memory.store.note_use(ids, self.memory.now)

    def sweep(self, **where: Any) -> int:
        """Forgets what has outlived its time; how many that were."""
        found = list(self._browse(where))
        over = [item for item in found if self._is_ours(item) and self._is_over(item)]
        return len(self.memory.withdraw(dict(map(_revision, over))))

    def key_of(self, address: str) -> str:
        """The session of an address, and the key of the first memory under it."""
        return f"{self.collection}:{address}"

    def _browse(self, where: Mapping[str, Any]) -> Iterator[Item]:
        where = {"kinds": _KINDS, "include_superseded": True, **where}
        after: str | None = None
        while True:
            page = self.memory.browse(limit=_PAGE, after=after, **where)
            yield from page
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _under(self, address: str) -> list[Item]:
        """The live memory under an address, hidden or not, but for what was revoked. There
        are several where somebody has restored an older one: the last written comes first."""
        found = self.memory.browse(
            limit=_PAGE,
            sessions=(self.key_of(address),),
            kinds=_KINDS,
            include_superseded=True,
            include_expired=True,
            max_classification=3,
        )
        ours = [item for item in found if self._is_ours(item)]
        return sorted(ours, key=lambda item: (Document(item).updated_at, item.id), reverse=True)

    def _is_ours(self, item: Item) -> bool:
        if not (item.session or "").startswith(f"{self.collection}:"):
            return False
        if not is_well_formed(item.metadata.get(ABOUT)):
            return False
        address = self._address_of(Document(item))
        return address is not None and item.session == self.key_of(address)

    def _stands(self, item: Item) -> bool:
        return (
            item.live_to is None
            and item.status != "quarantined"
            and item.classification <= self.memory.settings.max_classification
            and (item.valid_to is None or item.valid_to > self.memory.now)
            and not self._is_over(item)
        )

    def _is_over(self, item: Item) -> bool:
        expires = Document(item).expires_at
        return expires is not None and expires <= self.memory.now

    def _put(self, entry: Entry, only: Document | None, *, fresh: bool = False) -> Document:
        found = self._under(entry.address)
        item = found[0] if found else None
        if only is not None and (item is None or _revision(item) != _revision(only.item)):
            raise Conflict("the document was changed meanwhile")
        if item is None:
            stored = self._store_new([entry])
            if not stored:
                raise Conflict("somebody else was quicker")
            return Document(self.memory.stored(stored[entry.address]))
        stood, now = self._stands(item), self.memory.now
        if stood and fresh:
            raise Conflict("there is a document already")
        draft = self._draft(entry, Document(item).created_at if stood else now, now)
        names = ("text", "original", "kind", "source", "tags", "topic", "metadata", "force")
        changes = {name: getattr(draft, name) for name in names}
        revised = self.memory.update(
            item.id, revision=item.rev, valid_from=None, valid_to=None, **changes
        )
        self.memory.withdraw(dict(map(_revision, found[1:])))
        return Document(revised)

    def _store_new(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Stores entries where nothing is; gives the ids of those that were, by address."""
        now = self.memory.now
        try:
            drafts = [
                self._draft(entry, now)._replace(key=self._free_key(entry.address))
                for entry in entries
            ]
            done = self.memory.remember_many(drafts)
        except Conflict:
            return {}  # somebody else was quicker with one
        pairs = zip(entries, done, strict=True)
        return {entry.address: one.id for entry, one in pairs if one.status == "stored"}

    def _free_key(self, address: str) -> str:
        """A key that nobody has used; who looks for one at the same time finds the same,
        and the store lets one of the two have it. Each memory that was under the address
        before has used one."""
        key = first = self.key_of(address)
        while (known := self.memory.store.find_key(key)) is not None:
            item = self.memory.store.get([known[0]]).get(known[0])
            if item is not None and item.live_to is None and self._is_ours(item):
                if item.status == "quarantined":
                    raise _revoked(item)
                raise Conflict("there is a document already")
            key = f"{first}~{known[0]}"
        return key

    def _draft(self, entry: Entry, created_at: datetime, now: datetime | None = None) -> Draft:
        # Below the ceiling of this memory: who keeps a document must see it again.
        ceiling = min(1, self.memory.settings.max_classification)
        session = self.key_of(entry.address)
        return draft_of(entry, session, ceiling, created_at, now or created_at)

    def _crowded(self, address: str) -> Conflict:
        return Conflict(
            f"{self.key_of(address)} is being written by too many at once",
            remedy="try again",
        )


def _revoked(item: Item) -> Refused:
    return Refused(
        f"{item.id}, which stands under this address, was revoked",
        remedy=f"recollect forget --erase {item.id}, or undo the revocation",
    )


def _revision(item: Item) -> tuple[str, int]:
    return item.id, item.rev
