"""A space as one person sees it: what all see, what is shared with some, and one's own.

Each audience has its own store, a shelf, in addition to the space's. A person reads the stores
that are theirs to read as one (`bethink.store.joined`), and what is written goes through the
write pipeline of one of them: nothing can be placed, found, counted, superseded or numbered
by a memory that some of its readers do not see. Jobs work on what all see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from bethink.access.people import Directory, Person
from bethink.access.policy import Right
from bethink.api.links import is_entity
from bethink.api.write import Forgotten, NewMemory
from bethink.core import plural
from bethink.core.dataclass import replace
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Conflict, Forbidden, NotFound, Refused, SomeRefused
from bethink.memory import Memory
from bethink.model import Draft, Item, Link, Member, Remembered, Thread
from bethink.model.fields import GIVEN_FIELDS
from bethink.store.joined import JoinedStore

if TYPE_CHECKING:
    from bethink.api.maintenance import ReindexCounts
    from bethink.api.options import MemoryChanges, MemoryFields
    from bethink.config.settings import Settings
    from bethink.ingest.revision import Undo
    from bethink.ports import Embedder, EraseReceipt, Progress, Store

SPACE, PRIVATE = "space", "private"
_AT_ONCE = 100  # memories of one erase
_NOT_MOVED = frozenset({"id", "seq", "parent", "entities"})


class Seat(NamedTuple):
    """Who sees a space: the person, what they may do at most, and where people are listed."""

    person: Person
    right: Right
    directory: Directory


def seen_by(memory: Memory, name: str, directory: Directory, right: Right) -> PersonMemory:
    """Return a space as a member of it sees it; ``right`` is at most that of the member's role."""
    found = PersonMemory(memory, Seat(directory.find(name), right, directory))
    found.require(Right.READ)
    return found


class PersonMemory(Memory):
    """One person's memory of a space; see the module."""

    def __init__(self, memory: Memory, seat: Seat) -> None:
        """Build from a memory that holds what all of a space see; `seen_by` is the usual way."""
        self._seat = seat
        home = memory.below(memory.settings.max_classification)
        actor = f"{memory.settings.actor.removesuffix(f':{seat.person.id}')}:{seat.person.id}"
        self._home = home.using(settings=replace(home.settings, actor=actor))
        self._home.session.room = self._room
        self.session = copy(self._home.session)
        self.session.store = cast("Store", JoinedStore(self._seen, self._open_own))
        self.session.cache, self.session.jobs_checked = None, {}

    @property
    def person(self) -> Person:
        """Who sees it."""
        return self._seat.person

    def _seen(self) -> list[tuple[str, Store]]:
        """Return the stores that the person may read now, each with who sees it."""
        self.require(Right.READ)
        found, directory = [("", self._home.store)], self._seat.directory
        for key, people in self._shelves():
            names = sorted(map(directory.name_of, people))
            found.append((PRIVATE if len(names) == 1 else ", ".join(names), self._open(key)))
        return found

    def _shelves(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return the shelves that there are for the person, with the people (ids) of each."""
        space, me = self._home.store.space, self._seat.person.id
        every = sorted(self._seat.directory.shelves(space, me).items())
        return [one for one in every if self._home.session.shelf(one[0], create=False) is not None]

    def _open(self, key: str) -> Store:
        shelf = self._home.session.shelf(key, create=True)
        assert shelf is not None
        return shelf.below(self._home.settings.max_classification)

    def _open_own(self) -> Store:
        space = self._home.store.space
        return self._open(self._seat.directory.own_shelf(space, self._seat.person.id))

    def _at(self, key: str) -> Memory:
        """Return the memory of one shelf; of the space without a key."""
        return self._of_store(self._open(key)) if key else self._home

    def _of_store(self, store: Store) -> Memory:
        memory = copy(self._home)
        memory.session = session = copy(self._home.session)
        session.store, session.notes_dir = store, None
        session.cache, session.jobs_checked = None, {}
        return memory

    def _all(self) -> Iterator[Memory]:
        """Yield the memories that the person sees, the space's first."""
        yield self._home
        for key, _ in self._shelves():
            yield self._at(key)

    def _key(self, audience: object) -> str:
        """Return the shelf of an audience: "space", "private", or names with commas."""
        self.require(Right.WRITE)
        if audience in {None, "", SPACE}:
            return ""
        if not isinstance(audience, str):
            raise Refused("audience must be space, private or names with commas between")
        names = [] if audience == PRIVATE else [name.strip() for name in audience.split(",")]
        directory, me = self._seat.directory, self._seat.person.id
        # A stranger and a member of another space are refused alike.
        known = {one.name: one.id for one in directory.people()}
        ids = [me, *(known.get(name, "") for name in names if name)]
        return directory.shelf_for(self._home.store.space, ids)

    def _holder(self, item_id: str) -> tuple[Memory, str]:
        """Return the memory that has an item to change, and the whole id of it."""
        self.require(Right.WRITE)
        known = self.session.removable_item(item_id).id
        ended: Memory | None = None
        # The narrowest first: an import may have given the space a memory of the same id.
        for one in reversed(list(self._all())):
            found = one.store.items.get([known]).get(known)
            if found is not None and found.live_to is None:
                return one, known
            if found is not None or one.store.items.damaged([known]):
                ended = ended or one
        if ended is None:
            raise NotFound(f"there is no memory {item_id!r}")
        return ended, known

    def _by_holder(self, ids: Iterable[str]) -> list[tuple[Memory, list[str]]]:
        groups: dict[int, tuple[Memory, list[str]]] = {}
        for item_id in ids:
            holder, known = self._holder(item_id)
            groups.setdefault(id(holder.store), (holder, []))[1].append(known)
        return list(groups.values()) or [(self._home, [])]

    def _only_holder(self, ids: Iterable[str], what: str) -> Memory:
        groups = self._by_holder(ids)
        if len(groups) > 1:
            raise Refused(f"memories of different audiences cannot be {what}")
        return groups[0][0]

    def require(self, right: Right) -> None:
        """Raise Forbidden unless the person may do so now: a role counts as it is."""
        if self._right() < right:
            raise Forbidden(f"it needs the right to {right.scope_name}", scope=right.scope_name)

    def _right(self) -> Right:
        space, (person, right, directory) = self._home.store.space, self._seat
        allowed = directory.right(space, person.id)
        if allowed is None:
            raise Forbidden(f"{person.name} is no member of {space}", scope="")
        return min(right, allowed)

    def _is_own(self, holder: Memory, item_id: str) -> bool:
        """Whether a memory is the person's own: the person wrote its first revision."""
        revisions = holder.store.items.history(item_id)
        return bool(revisions) and revisions[0].writer.endswith(f":{self._seat.person.id}")

    @contextmanager
    def _room(self, more: int) -> Iterator[None]:
        """Hold what a person may add while so many are added; raise Refused above the limit."""
        space, (person, _, directory) = self._home.store.space, self._seat
        limit = directory.limit(space, person.id, "memories") if more else 0
        with directory.counting(person.id) if limit else nullcontext():
            known = self._count_stored() if limit else 0
            if limit and known + more > limit:
                raise Refused(
                    f"{plural(more, 'more memory')} would pass the limit of {person.name}"
                    f" in {space}: {known:,} of {limit:,} are stored",
                    remedy="erase some (forgotten ones count), or ask who keeps the server",
                )
            yield

    def _count_stored(self) -> int:
        """Count what the person keeps, also what is too classified to be seen by them."""
        session, person = self._home.session, self._seat.person.id
        shelves = (session.shelf(key, create=False) for key, _ in self._shelves())
        return sum(len(one.admin.stored_by(person)) for one in (session.whole, *shelves) if one)

    # What is written.

    def remember(
        self,
        text: str,
        *,
        review: bool = False,
        audience: str | None = None,
        **fields: Unpack[MemoryFields],
    ) -> Remembered:
        """Store one memory for an audience: the space, "private", or names with commas."""
        return self._at(self._key(audience)).remember(text, review=review, **fields)

    def remember_many(
        self,
        drafts: Iterable[NewMemory],
        *,
        progress: Progress | None = None,
        relate: bool = False,
        review: bool = False,
    ) -> list[Remembered]:
        """Store many memories; ``audience`` among the fields of one says who sees it."""
        self.require(Right.WRITE)
        given = [self._with_place(one) for one in drafts]
        places = {key for key, _ in given}
        if len(places) < 2:
            only = self._at(places.pop() if places else "")
            ready = [one for _, one in given]
            return only.remember_many(ready, progress=progress, relate=relate, review=review)
        answers = self._store_at(given, review=review)
        if len(good := [one for one in answers if isinstance(one, Remembered)]) < len(answers):
            raise SomeRefused(answers)
        return good

    def remember_each(
        self, drafts: Iterable[NewMemory], *, review: bool = False
    ) -> list[Remembered | Refused]:
        """Store many memories independently; a refusal takes the place of its result."""
        self.require(Right.WRITE)
        return self._store_at([self._with_place(one) for one in drafts], review=review)

    def _with_place(self, given: NewMemory) -> tuple[str, NewMemory]:
        if isinstance(given, Draft | str):
            return "", given
        fields = dict(given)
        return self._key(fields.pop("audience", None)), fields

    def _store_at(
        self, given: list[tuple[str, NewMemory]], *, review: bool
    ) -> list[Remembered | Refused]:
        found: dict[int, Remembered | Refused] = {}
        for place in sorted({key for key, _ in given}):
            numbers = [number for number, (key, _) in enumerate(given) if key == place]
            ready = [given[number][1] for number in numbers]
            stored = self._at(place).remember_each(ready, review=review)
            found.update(zip(numbers, stored, strict=True))
        return [found[number] for number in range(len(given))]

    def update(
        self,
        item_id: str,
        *,
        revision: int | None = None,
        audience: str | None = None,
        **changes: Unpack[MemoryChanges],
    ) -> Item:
        """Store a new revision of a memory; with ``audience`` it moves to those who see it then."""
        holder, known = self._holder(item_id)
        if audience is None:
            return holder.update(known, revision=revision, **changes)
        key = self._key(audience)
        if not self._is_own(holder, known):
            raise Forbidden("only who wrote a memory first may change who sees it", scope="")
        if self._at(key).store is not holder.store:
            item = holder.stored(known)
            if revision not in {None, item.rev}:
                again = "read it again and repeat the change"
                raise Conflict(f"{known} is no longer in revision {revision}", remedy=again)
            return self._move(item, holder, key, {**changes})
        if changes.keys() - {"force"}:
            return holder.update(known, revision=revision, **changes)
        return holder.stored(known)

    def _is_left_by_some(self, holder: Memory, key: str) -> bool:
        """Whether some who see what a memory holds do not see a shelf."""
        seen = {id(self._open(one)): people for one, people in self._shelves()}
        readers = seen.get(id(holder.store))
        return bool(key) and (readers is None or not {*readers} <= {*seen[id(self._open(key))]})

    def _move(self, item: Item, holder: Memory, key: str, changes: Json) -> Item:
        """Store a memory, as it shall be, on another shelf, where it begins as a new one.

        For fewer readers the old one is erased, else it is forgotten.
        """
        target, narrows = self._at(key), self._is_left_by_some(holder, key)
        if narrows:
            target.session.room = nullcontext  # of a session of its own: one comes and one goes
        moved = target.stored(target.remember_many([{**_to_fields(item), **changes}])[0].id)
        if narrows:
            holder.forget(item.id, erase=True)
        else:
            holder.withdraw({item.id: item.rev}, reason="moved")
        return moved

    def boost(self, item_id: str, by: float = 1.0) -> Item:
        """Raise a memory's relevance, within ten of neutral."""
        holder, known = self._holder(item_id)
        return holder.boost(known, by)

    def forget(
        self, *ids: str, erase: bool = False, preview: bool = False, reason: str = "forgotten"
    ) -> Forgotten:
        """Take memories out of recall; ``erase`` deletes every byte of one's own."""
        groups = self._by_holder(ids)
        for holder, known in groups if erase else ():
            maintains = holder is self._home and self._right() >= Right.ADMIN
            if not maintains and not all(self._is_own(holder, one) for one in known):
                raise Forbidden("only who wrote a memory first may erase it", scope="")
        done = [
            holder.forget(*known, erase=erase, preview=preview, reason=reason)
            for holder, known in groups
        ]
        return done[0] if len(done) == 1 else _join_forgotten(done)

    def withdraw(self, revisions: Mapping[str, int], *, reason: str = "removed") -> list[str]:
        """Take memories out of recall that are still in these revisions (by id)."""
        visible = self.store.items.get(list(revisions))
        done = []
        for holder, ids in self._by_holder(one for one in revisions if one in visible):
            done += holder.withdraw({one: revisions[one] for one in ids}, reason=reason)
        return done

    def restore(self, *ids: str) -> list[str]:
        """Restore forgotten memories by id, and return the ids of those that had been."""
        return [one for holder, known in self._by_holder(ids) for one in holder.restore(*known)]

    def accept(self, *ids: str, **changes: Any) -> list[Remembered]:
        """Let memories of the inbox into recall, with ``changes`` to their fields."""
        groups = self._by_holder(ids)
        return [one for holder, known in groups for one in holder.accept(*known, **changes)]

    def refuse(self, *ids: str) -> list[str]:
        """Take memories out of the inbox."""
        return [one for holder, known in self._by_holder(ids) for one in holder.refuse(*known)]

    def merge(self, *ids: str, into: str | None = None, text: str | None = None) -> Item:
        """Make one memory of several of the inbox, all of one audience."""
        every = ids if into is None else (*ids, into)
        return self._only_holder(every, "merged").merge(*ids, into=into, text=text)

    def propose(self, draft: Draft, *, reason: str, waits: bool = True) -> Remembered:
        """Put a draft into the inbox of the space."""
        self.require(Right.WRITE)
        return self._home.propose(draft, reason=reason, waits=waits)

    def undo(self, item_id: str | None = None, *, preview: bool = False) -> Undo:
        """Undo the last change of a memory or, without one, the last by this person."""
        self.require(Right.WRITE)
        if item_id is not None:
            holder, known = self._holder(item_id)
            return holder.undo(known, preview=preview)
        last: Json = {"item": None, "actor": self.settings.actor, "limit": 1}
        changed = [(one, line) for one in self._all() for line in one.store.admin.changes(**last)]
        newest = max(changed, key=lambda pair: pair[1].at, default=(self._home, None))[0]
        return newest.undo(preview=preview)

    def link(self, src: str, relation: str, dst: str, **given: Any) -> Link:
        """Link two memories of one audience, or two entities."""
        return self._of_both(src, dst).link(src, relation, dst, **given)

    def unlink(self, src: str, relation: str, dst: str) -> Link:
        """Remove a link."""
        return self._of_both(src, dst).unlink(src, relation, dst)

    def _of_both(self, src: str, dst: str) -> Memory:
        items = [one for one in (src, dst) if not is_entity(one, self.store)]
        return self._only_holder(items, "linked")

    def put_thread(self, headline: str, members: Iterable[str | Member], **fields: Any) -> Thread:
        """Store a thread of memories of one audience, replacing the one with its id."""
        given = list(members)
        ids = [one if isinstance(one, str) else one.item for one in given]
        return self._only_holder(ids, "in one thread").put_thread(headline, given, **fields)

    # What is of the whole, or of the space.

    def using(
        self,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        judging: bool = True,
    ) -> Self:
        """Return the same with other settings or another embedder."""
        home = self._home.using(settings=settings, embedder=embedder, judging=judging)
        return type(self)(home, self._seat)

    def below(self, ceiling: int) -> Self:
        """Return the same without anything above a classification."""
        return type(self)(self._home.below(ceiling), self._seat)

    def seen_by(self, name: str, directory: Directory | None = None) -> Self:
        """Refuse: what one person sees is not shown to another."""
        raise Forbidden("one person cannot look with another's eyes", scope="")

    def make_missing(self, *, progress: Progress | None = None) -> ReindexCounts:
        """Create missing vectors and indexes of everything that the person sees."""
        done = [one.make_missing(progress=progress) for one in self._all()]
        return type(done[0])(*(sum(counts) for counts in zip(*done, strict=True)))

    def export_own(self) -> Iterator[Json]:
        """Export what is the person's own: what only the person sees, and what the person wrote.

        The first is as `Memory.export` gives it, with all revisions; what is shared comes as
        it is now.
        """
        own = self._of_store(self._open_own())
        with Memory.open(":memory:", settings=self.settings, embedder="none") as copied:
            copied.import_(own.store.admin.dump(), restore=True)
            shared = [
                item
                for holder, ids in self.own_memories()
                if holder.store is not own.store
                for item in holder.store.items.get(ids).values()
            ]
            copied.remember_each(_to_fields(item) for item in shared if item.live_to is None)
            yield from copied.export()

    def erase_own(self, *, also_space: bool = False, preview: bool = False) -> dict[str, int]:
        """Erase what the person wrote for fewer than all, or for all as well; return how many.

        What only the person sees is counted; its store can be removed.
        """
        counts: dict[str, int] = {}
        private = self._open_own()
        for holder, ids in self.own_memories():
            if holder is self._home and not also_space:
                continue
            place = "of the space" if holder is self._home else "shared with some"
            place = "of their own" if holder.store is private else place
            counts[place] = counts.get(place, 0) + len(ids)
            for start in range(0, 0 if preview else len(ids), _AT_ONCE):
                left = holder.store.items.get(ids[start : start + _AT_ONCE])
                holder.forget(*left, erase=True)  # what was derived went before
        return counts

    def own_memories(self) -> list[tuple[Memory, list[str]]]:
        """Return the ids of all memories that the person wrote first, with where each is."""
        person = self._seat.person.id
        return [(one, ids) for one in self._all() if (ids := one.store.admin.stored_by(person))]

    def close(self) -> None:
        """Nothing: the space is closed by those who opened it."""


def _to_fields(item: Item) -> Json:
    """Return the fields of a memory with which it can be stored elsewhere."""
    names = (field.name for field in GIVEN_FIELDS if field.name not in _NOT_MOVED)
    return {name: getattr(item, name) for name in names}


def _join_forgotten(done: list[Forgotten]) -> Forgotten:
    """Return what was forgotten in several stores as one."""
    joined: Json = {
        name: tuple(one for each in done for one in getattr(each, name))
        for name in ("items", "kept", "derived", "quarantined", "restored", "notes")
    }
    receipts = [one.receipt for one in done if one.receipt is not None]
    receipt: EraseReceipt | None = receipts[0] if receipts else None
    if receipt is not None:
        ids = tuple(item for one in receipts for item in one.ids)
        kept = tuple(dict.fromkeys(place for one in receipts for place in one.out_of_reach))
        counts = {"memories": len(ids)}
        receipt = receipt._replace(ids=ids, removed=counts, out_of_reach=kept)
    return replace(done[0], receipt=receipt, **joined)


# What is of the space as a whole is done there: jobs see nothing that not all see.
_OF_THE_SPACE = {
    Right.READ: ("maintenance", "conflicts", "sync_status"),
    Right.WRITE: ("settle", "note_edits", "merge_entities", "split_entities", "extract", "maintain",
                  "carry_out", "build_insights", "maintain_due"),
    Right.ADMIN: ("undo_run", "revoke", "export", "import_", "doctor", "forget_file"),
    # A log of another machine says itself who wrote what.
    Right.LOCAL: ("sync_with", "answer_sync", "retire_machine"),
}  # fmt: skip


def _in_the_space(name: str, right: Right) -> Callable[..., Any]:
    def call(self: PersonMemory, *given: Any, **named: Any) -> Any:
        self.require(right)
        if named.get("restore"):
            raise Forbidden("what others wrote is restored on the server's machine", scope="")
        return getattr(self._home, name)(*given, **named)

    call.__doc__ = f"Do what `Memory.{name}` does, with what all of the space see."
    call.__name__ = name
    return call


for _right, _names in _OF_THE_SPACE.items():
    for _name in _names:
        setattr(PersonMemory, _name, _in_the_space(_name, _right))
