"""Takes the entries of a source into a memory, or says what would become of them.

A preview reads the space and writes nothing to it: what would be stored goes into a
memory that is thrown away, so that what repeats itself inside the source is seen too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from recollect.errors import Conflict, NotFound, Refused
from recollect.facade.opened import utc_now
from recollect.ids import make_id
from recollect.ingest.duplicates import deduplicated
from recollect.ingest.writing import WriteContext
from recollect.memory import Memory
from recollect.model import Draft, Item, Remembered
from recollect.ports import Store
from recollect.sources.known import MOST_IN_GROUP, changes_to, judged, placed, version_in
from recollect.sources.readiness import Ready, Refusal, key_of, made_ready
from recollect.sources.source import Entry, digest
from recollect.sources.tally import Tally

BATCH = 500


class Intake:
    """One import under way."""

    def __init__(
        self,
        memory: Memory,
        kind: str,
        tally: Tally,
        *,
        scratch: Memory | None = None,
        most_in_group: int = MOST_IN_GROUP,
    ) -> None:
        """``scratch`` is the memory of a preview, to be thrown away by who made it. What a
        group has more than ``most_in_group`` is known by its words."""
        self._memory = memory
        self._scratch = scratch
        self._kind = kind
        self._tally = tally
        self._most_in_group = most_in_group
        self._ctx = WriteContext(memory.store, None, utc_now(), memory.settings.actor, make_id)
        self._seen: set[int] = set()
        self._groups: set[int] = set()
        self._updated: dict[str, str] = {}
        self._reworded: set[str] = set()  # in a preview: what would say something else
        self._met_as: dict[str, str] = {}  # in a preview: what the space has said before

    @property
    def stores(self) -> tuple[Store, ...]:
        """Where what was taken in can be looked up."""
        if self._scratch is None:
            return (self._memory.store,)
        return (self._memory.store, self._scratch.store)

    @property
    def previews(self) -> bool:
        return self._scratch is not None

    def find(self, own: str) -> str | None:
        """The memory that an entry has become, or would; None where there is none."""
        key = key_of(self._kind, own)
        found = (store.find_key(key) for store in self.stores)
        item = self._met_as.get(key) or next((one[0] for one in found if one), None)
        items = (store.get([item]).get(item) for store in self.stores) if item else ()
        return item if any(one is not None and one.live_to is None for one in items) else None

    def take(self, entries: Iterable[Entry], given: Mapping[str, Any]) -> Iterator[int]:
        """Takes entries in, some hundred at a time, and says after each time how many more
        were read. What was taken in stays, whatever happens after."""
        ready = self._ready(entries, given)
        while batch := list(islice(ready, BATCH)):
            self._take(batch)
            yield len(batch)

    def _ready(
        self, entries: Iterable[Entry], given: Mapping[str, Any]
    ) -> Iterator[Ready | Refusal]:
        """Entries ready to be stored, those of a group with the keys they are known by."""
        for group, members in groupby(entries, key=lambda entry: entry.group):
            if not group:
                yield from (made_ready(one, self._kind, given, self._ctx) for one in members)
                continue
            name = self._named(group)
            made = [
                made_ready(one, self._kind, given, self._ctx)
                for one in islice(members, self._most_in_group)
            ]
            kept = [one for one in made if isinstance(one, Ready)]
            yield from (one for one in made if isinstance(one, Refusal))
            yield from placed(name, self._kind, kept, self._memory.store)
            for one in members:
                own = one._replace(id=digest(name, repr(one.found)))
                yield made_ready(own, self._kind, given, self._ctx)

    def _named(self, group: str) -> str:
        """The group's name; one that comes again is another."""
        number = 1
        while (mark := hash((group, number))) in self._groups:
            number += 1
        self._groups.add(mark)
        return group if number == 1 else f"{group}*{number}"

    def _take(self, batch: Sequence[Ready | Refusal]) -> None:
        new: list[Ready] = []
        for one in batch:
            if isinstance(one, Refusal):
                self._tally.refuse(one)
            elif one.key and hash(one.key) in self._seen:
                self._again(one, new)
            else:
                self._seen.add(hash(one.key))
                verdict = judged(one, self._memory.store)
                if verdict.what == "new":
                    new.append(verdict.ready)
                elif verdict.what == "known" or verdict.item is None:
                    self._count(one, "repeated", verdict.item.id if verdict.item else "")
                else:
                    self._update(verdict.item, one)
        self._store(new)

    def _again(self, ready: Ready, pending: Sequence[Ready]) -> None:
        """What comes twice in one source must say the same: else each reading of it would
        change it back and forth."""
        versions = [one.version for one in pending if one.key == ready.key]
        versions += [self._updated[ready.key]] if ready.key in self._updated else []
        for store in () if versions else self.stores:
            found = store.find_key(ready.key)
            item = store.get([found[0]]).get(found[0]) if found else None
            if item is not None and (version := version_in(item.metadata, ready.key)):
                versions.append(version)
        if versions and ready.version not in versions:
            conflict = Conflict("it stands there twice, and says something else each time")
            self._tally.refuse(Refusal(ready.where, conflict))
        else:
            self._count(ready, "repeated", "")

    def _update(self, item: Item, ready: Ready) -> None:
        """Changes what was judged, in the revision in which it was judged."""
        if self._scratch is None:
            try:
                self._memory.update(item.id, revision=item.rev, **changes_to(item, ready))
            except Conflict:
                # Changed this moment, by another import or by its owner: looked at anew.
                self._seen.discard(hash(ready.key))
                self._take([ready])
                return
            except Refused as refused:
                self._tally.refuse(Refusal(ready.where, refused))
                return
        else:
            # What comes later may repeat what it says by then, and not what it said.
            self._reworded.add(item.id)
            _remembered(self._scratch, [self._apart(ready.draft._replace(key=None))])
        self._updated[ready.key] = ready.version
        self._count(ready, "updated", item.id)

    def _store(self, new: Sequence[Ready]) -> None:
        if self._scratch is None:
            answers = _remembered(self._memory, [one.marked() for one in new])
        else:
            answers = self._would_store(new, self._scratch)
        for ready, answer in zip(new, answers, strict=True):
            if isinstance(answer, Refused):
                self._tally.refuse(Refusal(ready.where, answer))
            else:
                if self._scratch is not None and answer.status == "duplicate":
                    self._met_as[ready.key] = answer.id
                self._count(ready, answer.status, answer.id)

    def _would_store(self, new: Sequence[Ready], scratch: Memory) -> list[Remembered | Refused]:
        """What storing would answer: by what the space holds, then by what came before."""
        answers = [self._met(ready) for ready in new]
        left = [place for place, answer in enumerate(answers) if answer is None]
        told = _remembered(scratch, [self._apart(new[place].marked()) for place in left])
        for place, answer in zip(left, told, strict=True):
            answers[place] = answer
        return [answer for answer in answers if answer is not None]

    def _met(self, ready: Ready) -> Remembered | Refused | None:
        """The answer of the space itself to what it already holds, or may not hold."""
        key = ready.draft.key
        used = self._memory.store.find_key(key) if key else None
        if used is not None and used[1] != ready.piece.fingerprint:
            return Conflict(f"the key {key!r:.80} was used before for other content")
        if used is not None:
            return Remembered(used[0], "repeated")
        # Without its key, which would have the store decide, and a preview stores nothing.
        piece = replace(ready.piece, draft=ready.draft._replace(key=None))
        try:
            _, known = deduplicated([piece], self._ctx)
        except Refused as refused:
            return refused
        answer = known.get(piece.id)
        return None if answer is None or answer.id in self._reworded else answer

    def _apart(self, draft: Draft) -> Draft:
        """The draft without what it derives from in the space, which a preview has not."""
        if not draft.derives_from:
            return draft
        there = self._memory.store.get(draft.derives_from)
        return draft._replace(derives_from=tuple(i for i in draft.derives_from if i not in there))

    def _count(self, ready: Ready, status: str, item_id: str) -> None:
        self._tally.count(ready, status)
        if self._scratch is None and item_id:
            self._tally.ids.append(item_id)


def _remembered(memory: Memory, drafts: Sequence[Draft]) -> list[Remembered | Refused]:
    """What became of each draft; one that derives from a stranger stops no other."""
    try:
        return memory.remember_each(drafts)
    except NotFound as missing:
        if len(drafts) == 1:
            return [Refused(missing.message, remedy=missing.remedy)]
    return [answer for draft in drafts for answer in _remembered(memory, [draft])]
