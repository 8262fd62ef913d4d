"""Documents: exact values stored under an address, as memories that recall can find.

A document is one memory of the level "raw", which no maintenance ends. Its address is the
memory's session, so equal texts under two addresses are two documents. A change is the next
revision; a removal forgets the memory, and a later write there makes a new one. Export,
erase, history and restore cover documents because they are ordinary memories.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from bethink.core.characters import find_unstorable, has_substance
from bethink.errors import Conflict, NotFound, Refused
from bethink.memory import Memory
from bethink.model import Draft, Item

DOCUMENT_KIND = "document"
UNINDEXED_KIND = "unindexed"
METADATA_KEY = "document"
Json = Mapping[str, Any]
_MAX_INLINE_BYTES = 16 * 1024
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """A value to store under an address.

    ``text`` is what search indexes and, where that is not all of it, ``body`` the exact value.
    ``about`` is metadata of the integration itself.
    """

    address: str
    text: str
    body: str | None = None
    kind: str = DOCUMENT_KIND
    source: str = "agent"
    source_class: str = "agent"
    tags: tuple[str, ...] = ()
    topic: str | None = None
    ttl_minutes: float | None = None
    about: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A stored document."""

    item: Item

    @property
    def body(self) -> str:
        """The exact stored value."""
        return self.item.text if self._body is None else self._body

    @property
    def is_text(self) -> bool:
        """Whether the indexed text is the whole value."""
        return self._body is None

    @property
    def about(self) -> Json:
        """The integration's metadata."""
        kept: Json = self._record["about"]
        return kept

    @property
    def created_at(self) -> datetime:
        """When the address was first written."""
        return datetime.fromisoformat(self._record["created_at"])

    @property
    def updated_at(self) -> datetime:
        """When the document was last written."""
        return datetime.fromisoformat(self._record["updated_at"])

    @property
    def ttl_minutes(self) -> float | None:
        """The time to live after the last write or use."""
        return self._record.get("ttl_minutes")

    @property
    def expires_at(self) -> datetime | None:
        """When the document expires unless it is used before."""
        if self.ttl_minutes is None:
            return None
        used = self.item.last_recalled_at
        last = self.updated_at if used is None else max(self.updated_at, used)
        return last + timedelta(minutes=self.ttl_minutes)

    @property
    def _record(self) -> Json:
        kept: Json = self.item.metadata[METADATA_KEY]
        return kept

    @property
    def _body(self) -> str | None:
        return attached_body(self.item, self._record)


def entry_to_draft(
    entry: Entry, session: str, classification: int, created_at: datetime, updated_at: datetime
) -> Draft:
    """Convert an entry to the draft of its memory."""
    times = {"created_at": created_at, "updated_at": updated_at}
    kept: dict[str, object] = {
        **{name: moment.astimezone(UTC).isoformat() for name, moment in times.items()},
        "about": dict(entry.about),
        **({} if entry.ttl_minutes is None else {"ttl_minutes": entry.ttl_minutes}),
    }
    original = attach_body(entry.body, kept)
    return Draft(
        entry.text, level="raw", kind=entry.kind, original=original, source=entry.source,
        source_class=entry.source_class, tags=entry.tags, topic=entry.topic,
        classification=classification, session=session, seq=0, metadata={METADATA_KEY: kept},
        force=True,
    )  # fmt: skip


def is_well_formed(record: object) -> bool:
    """Check whether metadata was written for a document, not by a lookalike memory."""
    if not isinstance(record, Mapping):
        return False
    times = (record.get("created_at"), record.get("updated_at"))
    try:
        aware = all(datetime.fromisoformat(time).tzinfo is not None for time in times)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    ttl = record.get("ttl_minutes")
    return (
        aware
        and isinstance(record.get("about"), Mapping)
        and isinstance(record.get("body"), str | None)
        and isinstance(ttl, int | float | None)
    )


def attach_body(body: str | None, metadata: dict[str, object]) -> str | None:
    """Put an exact body into a memory's metadata, which no search reads.

    A body that is too long for that is returned, to be stored as the memory's original.
    """
    if body is None or len(json.dumps(body, ensure_ascii=False).encode()) > _MAX_INLINE_BYTES:
        return body
    metadata["body"] = body
    return None


def attached_body(item: Item, metadata: Json) -> str | None:
    """Return the attached body; None if there is none."""
    body: str | None = metadata.get("body", item.original)
    return body


def indexable_text(text: str, fallback: str) -> str:
    """Return a text without characters that cannot be stored, or the fallback if it is empty."""
    if find_unstorable(text) is not None:
        text = _UNKEEPABLE.sub("\ufffd", text)
    return text if has_substance(text) else fallback


_KINDS = (DOCUMENT_KIND, UNINDEXED_KIND)
_PAGE = 10_000
_MAX_ATTEMPTS = 200  # attempts; one of several concurrent writers always succeeds


def browse_all(memory: Memory, **where: Any) -> Iterator[Item]:
    """Yield all memories that pass these filters."""
    after: str | None = None
    while True:
        page = memory.browse(limit=_PAGE, after=after, **where)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


class DocumentCollection:
    """The documents of one collection in a memory.

    Thread-safe, and several instances may use one space. ``address_of`` returns the address of a
    document from its metadata and body, or None if it cannot be one of this collection: others
    may write memories that look like a document, and those are ignored.
    """

    def __init__(
        self, memory: Memory, collection: str, address_of: Callable[[Document], str | None]
    ) -> None:
        self.memory, self.collection, self._address_of = memory, collection, address_of
        self._lock = threading.Lock()
        self._ceiling = memory.settings.max_classification

    def find(self, address: str) -> Document | None:
        """Return the live document at an address, or None."""
        standing = [item for item in self._items_at(address) if self._is_live(item)]
        return Document(standing[0]) if standing else None

    def list_live(self, **where: Any) -> list[Document]:
        """Return all live documents that pass further filters of memories."""
        return self.from_items(self._browse(where))

    def from_items(self, items: Iterable[Item]) -> list[Document]:
        """Return the live documents of this collection among some memories.

        Of several at one address it is the last written, at the position of the first.
        """
        found: dict[str | None, Document] = {}
        for item in items:
            if self._is_member(item) and self._is_live(item):
                document = Document(item)
                known = found.setdefault(item.session, document)
                if _precedence(known.item) < _precedence(item):
                    found[item.session] = document
        return list(found.values())

    def put(self, entry: Entry, *, expected: Document | None = None) -> Document:
        """Store an entry in place of the document at its address.

        With ``expected`` only if that is still the current document; else it raises Conflict.
        """
        with self._lock:
            for _ in range(_MAX_ATTEMPTS):
                try:
                    return self._put(entry, expected)
                except NotFound:
                    continue  # erased meanwhile: its address is free
                except Conflict:
                    if expected is not None:
                        raise
            raise self._contention_error(entry.address)

    def add(self, entry: Entry) -> Document:
        """Store an entry at an unused address; raise Conflict if there is a document."""
        with self._lock:
            for _ in range(_MAX_ATTEMPTS):
                if self.find(entry.address) is not None:
                    raise Conflict("the document already exists")
                try:
                    return self._put(entry, None, fresh=True)
                except (Conflict, NotFound):
                    continue
            raise self._contention_error(entry.address)

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Store entries of different addresses, the new ones in one transaction."""
        with self._lock:
            new = [entry for entry in entries if not self._items_at(entry.address)]
            done = self._store_new(new)
        for entry in entries:
            if entry.address not in done:
                self.put(entry)

    def remove(self, address: str, *, expected: Document | None = None) -> bool:
        """Forget the document at an address; return whether there was one."""
        with self._lock:
            for _ in range(_MAX_ATTEMPTS):
                under = self._items_at(address)
                found = next((item for item in under if self._is_live(item)), None)
                if found is None:
                    return False
                if expected is not None and _revision(found) != _revision(expected.item):
                    raise Conflict("the document was changed meanwhile")
                if found.id in self.memory.withdraw(dict(map(_revision, under))):
                    return True
            raise self._contention_error(address)

    def touch(self, documents: Iterable[Document]) -> None:
        """Record a use of documents, which restarts their time to live."""
        ids = [document.item.id for document in documents if document.ttl_minutes is not None]
        if ids:
            self.memory.store.activity.note_use(ids, self.memory.now)

    def sweep(self, **where: Any) -> int:
        """Forget expired documents; return how many there were."""
        found = list(self._browse(where))
        over = [item for item in found if self._is_member(item) and self._is_expired(item)]
        return len(self.memory.withdraw(dict(map(_revision, over))))

    def session_key(self, address: str) -> str:
        """Return the session of an address, also the key of its first memory."""
        return f"{self.collection}:{address}"

    def _browse(self, where: Json) -> Iterator[Item]:
        return browse_all(self.memory, **{"kinds": _KINDS, "include_superseded": True, **where})

    def _items_at(self, address: str) -> list[Item]:
        """Return the live memories at an address up to the ceiling, except revoked ones.

        There are several if an older one was restored: the last written comes first. Who sees
        more than the writer of one keeps what is above it: that comes before all others.
        """
        found = self._browse({"sessions": (self.session_key(address),), "include_expired": True})
        return sorted(filter(self._is_member, found), key=_precedence, reverse=True)

    def _is_member(self, item: Item) -> bool:
        if not (item.session or "").startswith(f"{self.collection}:"):
            return False
        if not is_well_formed(item.metadata.get(METADATA_KEY)):
            return False
        address = self._address_of(Document(item))
        return address is not None and item.session == self.session_key(address)

    def _is_live(self, item: Item) -> bool:
        return (
            item.live_to is None
            and item.status != "quarantined"
            and item.classification <= self._ceiling
            and (item.valid_to is None or item.valid_to > self.memory.now)
            and not self._is_expired(item)
        )

    def _is_expired(self, item: Item) -> bool:
        expires = Document(item).expires_at
        return expires is not None and expires <= self.memory.now

    def _put(self, entry: Entry, expected: Document | None, *, fresh: bool = False) -> Document:
        found = self._items_at(entry.address)
        item = found[0] if found else None
        if expected is not None and (item is None or _revision(item) != _revision(expected.item)):
            raise Conflict("the document was changed meanwhile")
        if item is None:
            stored = self._store_new([entry])
            if not stored:
                raise Conflict("another writer was faster")
            return Document(self.memory.stored(stored[entry.address]))
        is_live, now = self._is_live(item), self.memory.now
        if is_live and fresh:
            raise Conflict("the document already exists")
        draft = self._draft(entry, Document(item).created_at if is_live else now, now)
        names = ("text", "original", "kind", "source", "tags", "topic", "metadata", "force")
        changes = {name: getattr(draft, name) for name in names}
        revised = self.memory.update(
            item.id, revision=item.rev, valid_from=None, valid_to=None, **changes
        )
        older = [one for one in found[1:] if one.classification == item.classification]
        self.memory.withdraw(dict(map(_revision, older)))
        return Document(revised)

    def _store_new(self, entries: Sequence[Entry]) -> dict[str, str]:
        """Store entries at unused addresses; return the ids of those stored, by address."""
        now = self.memory.now
        try:
            drafts = [
                self._draft(entry, now)._replace(key=self._unused_key(entry.address))
                for entry in entries
            ]
            done = self.memory.remember_many(drafts)
        except Conflict:
            return {}  # another writer was faster
        pairs = zip(entries, done, strict=True)
        return {entry.address: outcome.id for entry, outcome in pairs if outcome.status == "stored"}

    def _unused_key(self, address: str) -> str:
        """Return an unused idempotency key for an address.

        Two concurrent writers get the same key, and the store accepts only one of them. Each former
        memory at the address has used one key.
        """
        key = first = self.session_key(address)
        while (known := self.memory.store.items.find_keys((key,)).get(key)) is not None:
            item = self.memory.store.items.get([known[0]]).get(known[0])
            seen = item is not None and item.classification <= self._ceiling
            if item is not None and seen and item.live_to is None and self._is_member(item):
                if item.status == "quarantined":
                    raise Refused(
                        f"the document at this address, {item.id}, was revoked",
                        remedy=f"run bethink forget --erase {item.id}, or undo the revocation",
                    )
                raise Conflict("the document already exists")
            key = f"{first}~{known[0]}"
        return key

    def _draft(self, entry: Entry, created_at: datetime, now: datetime | None = None) -> Draft:
        # Within the ceiling of this memory, so that a stored document stays visible.
        ceiling = min(1, self._ceiling)
        session = self.session_key(entry.address)
        return entry_to_draft(entry, session, ceiling, created_at, now or created_at)

    def _contention_error(self, address: str) -> Conflict:
        problem = f"{self.session_key(address)} has too many concurrent writers"
        return Conflict(problem, remedy="try again")


def _revision(item: Item) -> tuple[str, int]:
    return item.id, item.rev


def _precedence(item: Item) -> tuple[int, datetime, str]:
    return item.classification, Document(item).updated_at, item.id
