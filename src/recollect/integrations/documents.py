"""Documents: what is kept under an address, exactly, as memories that recall can find.

A document is one memory of the level "raw", which no maintenance ends. Its address is the
memory's idempotency key and its session, so equal words under two addresses are two
documents. A change is the next revision, a removal forgets the memory; export, erase and
history reach documents because they are nothing else.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.errors import Conflict, Refused
from recollect.memory import Memory
from recollect.model import Draft, Item
from recollect.text import has_substance, unkeepable

KIND = "document"
UNINDEXED = "unindexed"
_KINDS = (KIND, UNINDEXED)
_ABOUT = "document"
_PAGE = 10_000
_BESIDE_BYTES = 16 * 1024
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")
_MOST_TRIES = 200  # of writers to one document some always come through


@dataclass(frozen=True, slots=True)
class Entry:
    """What to keep under an address: words to find it by and, where these are not all of
    it, the exact ``body``. ``about`` is what the integration itself wants to know again."""

    address: str
    text: str
    body: str | None = None
    kind: str = KIND
    source: str = "agent"
    source_class: str = "agent"
    tags: tuple[str, ...] = ()
    topic: str | None = None
    ttl_minutes: float | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it stands."""

    item: Item

    @property
    def body(self) -> str:
        """What was kept, exactly."""
        kept = kept_beside(self.item, self._kept)
        return self.item.text if kept is None else kept

    @property
    def is_text(self) -> bool:
        """Whether the words to find it by are all of it."""
        return kept_beside(self.item, self._kept) is None

    @property
    def about(self) -> Mapping[str, Any]:
        """What the integration noted."""
        kept: Mapping[str, Any] = self._kept["about"]
        return kept

    @property
    def created_at(self) -> datetime:
        """When there came to be something under the address."""
        return datetime.fromisoformat(self._kept["created_at"])

    @property
    def updated_at(self) -> datetime:
        """When it was last written."""
        return datetime.fromisoformat(self._kept["updated_at"])

    @property
    def ttl_minutes(self) -> float | None:
        """How long it stays after it was last written or used."""
        return self._kept.get("ttl_minutes")

    @property
    def expires_at(self) -> datetime | None:
        """When it goes unless it is used before."""
        if self.ttl_minutes is None:
            return None
        used = self.item.last_recalled_at
        last = self.updated_at if used is None else max(self.updated_at, used)
        return last + timedelta(minutes=self.ttl_minutes)

    @property
    def _kept(self) -> Mapping[str, Any]:
        kept: Mapping[str, Any] = self.item.metadata[_ABOUT]
        return kept


class Documents:
    """The documents of one collection in a memory. Safe to share between threads, and to
    have several of on one space."""

    def __init__(self, memory: Memory, collection: str) -> None:
        self.memory = memory
        self.collection = collection
        self._writing = threading.Lock()

    def find(self, address: str) -> Document | None:
        """What stands under an address; None where nothing does."""
        item = self._item(address)
        return Document(item) if item is not None and self._stands(item) else None

    def each(self, **where: Any) -> list[Document]:
        """All that stand, those left out that other filters of memories leave out."""
        return self.among(self._browse(where))

    def among(self, items: Iterable[Item]) -> list[Document]:
        """Those of some memories that are documents of this collection and stand."""
        return [Document(item) for item in items if self._is_ours(item) and self._stands(item)]

    def put(self, entry: Entry, *, only: Document | None = None) -> Document:
        """Keeps an entry in place of what stands under its address. With ``only`` where
        that is still what stands there; else raises Conflict."""
        with self._writing:
            for _ in range(_MOST_TRIES):
                try:
                    return self._put(entry, only)
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
                except Conflict:
                    continue
            raise self._crowded(entry.address)

    def put_many(self, entries: Sequence[Entry]) -> None:
        """Keeps entries of different addresses: those that are new in one transaction."""
        with self._writing:
            new = [entry for entry in entries if self._item(entry.address) is None]
            try:
                self.memory.remember_many([self._draft(entry, self.memory.now) for entry in new])
                done = {entry.address for entry in new}
            except Conflict:
                done = set()  # somebody else was quicker with one: each for itself
        for entry in entries:
            if entry.address not in done:
                self.put(entry)

    def remove(self, address: str, *, only: Document | None = None) -> bool:
        """Forgets what stands under an address; whether anything did."""
        with self._writing:
            for _ in range(_MOST_TRIES):
                found = self.find(address)
                if found is None:
                    return False
                if only is not None and found.item.rev != only.item.rev:
                    raise Conflict("the document was changed meanwhile")
                try:
                    self._remove(found.item)
                except Conflict:
                    continue
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
        return sum(len(self._end(item)) for item in over)

    def key_of(self, address: str) -> str:
        """The idempotency key and session of an address."""
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

    def _item(self, address: str) -> Item | None:
        known = self.memory.store.find_key(self.key_of(address))
        return None if known is None else self.memory.store.get([known[0]]).get(known[0])

    def _is_ours(self, item: Item) -> bool:
        return (item.session or "").startswith(f"{self.collection}:") and _ABOUT in item.metadata

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
        item = self._item(entry.address)
        if only is not None and (item is None or item.rev != only.item.rev):
            raise Conflict("the document was changed meanwhile")
        now = self.memory.now
        if item is None:
            if only is None:
                return self._stored(entry, now)
            raise Conflict("the document is gone")
        self._refuse_revoked(item)
        stood = self._stands(item)
        if stood and fresh:
            raise Conflict("there is a document already")
        if item.live_to is not None:
            # What was removed through here is expired as well, so it is not seen meanwhile.
            self.memory.restore(item.id)
            item = self.memory.store.get([item.id])[item.id]
        draft = self._draft(entry, Document(item).created_at if stood else now, now)
        names = ("text", "original", "kind", "source", "tags", "topic", "metadata", "force")
        changes = {name: getattr(draft, name) for name in names}
        revised = self.memory.update(
            item.id, revision=item.rev, valid_from=None, valid_to=None, **changes
        )
        return Document(revised)

    def _stored(self, entry: Entry, now: datetime) -> Document:
        done = self.memory.remember_many([self._draft(entry, now)])[0]
        return Document(self.memory.store.get([done.id])[done.id])

    def _draft(self, entry: Entry, created_at: datetime, now: datetime | None = None) -> Draft:
        # Below the ceiling of this memory: who keeps a document must see it again.
        classification = min(1, self.memory.settings.max_classification)
        kept: dict[str, Any] = {
            "created_at": _iso(created_at),
            "updated_at": _iso(now or created_at),
            "about": dict(entry.about),
        }
        if entry.ttl_minutes is not None:
            kept["ttl_minutes"] = entry.ttl_minutes
        original = keep_beside(entry.body, kept)
        key = self.key_of(entry.address)
        return Draft(
            entry.text,
            level="raw",
            kind=entry.kind,
            original=original,
            source=entry.source,
            source_class=entry.source_class,
            tags=entry.tags,
            topic=entry.topic,
            classification=classification,
            session=key,
            seq=0,
            metadata={_ABOUT: kept},
            key=key,
            force=True,
        )

    def _remove(self, item: Item) -> None:
        # Expired first, in one step; should it come to life again, by a crash before the
        # next or by a new document under its address, its old words stay out of sight.
        moment = self.memory.now
        if item.valid_from is not None and item.valid_from > moment:
            moment = item.valid_from
        expired = self.memory.update(item.id, revision=item.rev, valid_to=moment, force=True)
        self._end(expired)

    def _end(self, item: Item) -> list[str]:
        settings = self.memory.settings
        return self.memory.store.end(
            [item.id],
            how="removed",
            actor=settings.actor,
            now=self.memory.now,
            only={item.id: item.rev},
        )

    def _refuse_revoked(self, item: Item) -> None:
        if item.status == "quarantined":
            raise Refused(
                f"{item.id}, which stands under this address, was revoked",
                remedy=f"recollect forget --erase {item.id}, or undo the revocation",
            )

    def _crowded(self, address: str) -> Conflict:
        return Conflict(
            f"{self.key_of(address)} is being written by too many at once",
            remedy="try again",
        )


def keep_beside(body: str | None, about: dict[str, Any]) -> str | None:
    """Puts what is to be kept exactly into a memory's metadata, where no search looks, or,
    where it is too long for that, gives it back to be kept as the memory's original."""
    if body is None or len(json.dumps(body, ensure_ascii=False).encode()) > _BESIDE_BYTES:
        return body
    about["body"] = body
    return None


def kept_beside(item: Item, about: Mapping[str, Any]) -> str | None:
    """What was kept so; None where nothing was."""
    body: str | None = about.get("body", item.original)
    return body


def readable(text: str, otherwise: str) -> str:
    """A text to find something by, without what no store can keep; another where it says
    nothing."""
    if unkeepable(text) is not None:
        text = _UNKEEPABLE.sub("\ufffd", text)
    return text if has_substance(text) else otherwise


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
