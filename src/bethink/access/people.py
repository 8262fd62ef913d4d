"""People of a server: who they are, and the role that each has in each space.

The directory is one private file in the folder of the tokens. A person has a random id, which the
journal and the memories name; the name stands only here. What some people of a space keep
from the others is on shelves, stores of their own (`bethink.people`); the directory says who
may open which.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock

from bethink.access.policy import Right
from bethink.access.private_file import PrivateFile
from bethink.config.paths import config_folder
from bethink.core.json_values import Json, iso
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Forbidden, NotFound, Refused
from bethink.store.sqlite.lock import FileLock, hold_lock

FILE = "people.json"
OWNER_ROLE = "owner"
ROLES = {
    "reader": Right.READ,
    "writer": Right.WRITE,
    "maintainer": Right.ADMIN,
    OWNER_ROLE: Right.ADMIN,
}
LIMITS = ("memories", "requests")  # requests: a minute
_MAX_LIMIT = 10**9
_COUNTING: dict[Path, tuple[RLock, list[str]]] = {}  # with who holds it, for calls within calls
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9._-]{0,63}")
_TAKEN_NAMES = frozenset({"space", "private"})  # audiences


class Person(NamedTuple):
    """One person: a random id for the journal, a name for people; by space role, shelves, limits.

    ``own`` is the shelf that only the person sees, ``shared`` those that others see as well.
    """

    id: str
    name: str
    created: str
    roles: Mapping[str, str]
    own: Mapping[str, str]
    shared: Mapping[str, tuple[str, ...]]
    limits: Mapping[str, Mapping[str, int]]


class Directory:
    """The people in one file; changes made to the file are picked up at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or config_folder()) / FILE
        self._file = PrivateFile(self.path, "people", _parse_person, Person._asdict)

    def people(self) -> tuple[Person, ...]:
        """Return all people, in order of coming."""
        return self._file.read()

    def find(self, name: str) -> Person:
        """Return the person of a name; raise NotFound."""
        return _only(self.people(), "name", name, f"there is no person called {name!r:.80}")

    def get(self, person: str) -> Person:
        """Return the person of an id; raise NotFound for one who has left."""
        return _only(self.people(), "id", person, "this person has left")

    def name_of(self, person: str) -> str:
        """Return the name of a person's id; the id of one who has left."""
        return next((one.name for one in self.people() if one.id == person), person)

    def roles(self, space: str) -> dict[str, str]:
        """Return the role of each member (id) of a space."""
        return {one.id: one.roles[space] for one in self.people() if space in one.roles}

    def right(self, space: str, person: str) -> Right | None:
        """Return what a person (id) may do in a space; None for one who is no member."""
        return ROLES.get(self.roles(space).get(person, ""))

    def shelves(self, space: str, person: str) -> dict[str, tuple[str, ...]]:
        """Return the shelves that a person (id) may see, with the people (ids) of each."""
        found = _shared(self.people(), space)
        seen = {key: tuple(ids) for key, ids in found.items() if person in ids}
        own = next((one.own.get(space) for one in self.people() if one.id == person), None)
        return seen | ({own: (person,)} if own and person in self.roles(space) else {})

    def own_shelf(self, space: str, person: str) -> str:
        """Return the shelf of what a person (id) alone sees; it is made if there is none."""
        known = self.get(person).own.get(space)
        if known is None:
            with self._changing(person) as one:
                known = one[0].own.get(space, f"own-{secrets.token_hex(12)}")
                one[0] = one[0]._replace(own={**one[0].own, space: known})
        return known

    def add(self, name: str, space: str, role: str) -> Person:
        """Add a person to a space; a new name creates the person."""
        if not _NAME.fullmatch(name) or name in _TAKEN_NAMES:
            raise Refused(
                f"{name!r:.80} cannot be the name of a person",
                remedy="use 1 to 64 lower-case letters, digits, '.', '_' and '-'",
            )
        _check_role(role)
        with self._file.transaction() as kept:
            if all(one.name != name for one in kept):
                made = iso(datetime.now(UTC)) or ""
                kept.append(Person(f"p{secrets.token_hex(8)}", name, made, {}, {}, {}, {}))
            place = next(number for number, one in enumerate(kept) if one.name == name)
            if space in kept[place].roles:
                raise Refused(
                    f"{name} is a member of {space} already",
                    remedy=f"bethink people role {name} {role}",
                )
            kept[place] = kept[place]._replace(roles={**kept[place].roles, space: role})
        return self.find(name)

    def set_role(self, name: str, space: str, role: str) -> str:
        """Change the role of a member of a space; return the one before."""
        _check_role(role)
        with self._changing(self.find(name).id, space) as one:
            before = one[0].roles[space]
            one[0] = one[0]._replace(roles={**one[0].roles, space: role})
        return before

    def limit(self, space: str, person: str, what: str) -> int:
        """Return how many memories, or requests a minute, a person (id) may have; 0: any."""
        known = (one.limits.get(space, {}) for one in self.people() if one.id == person)
        return next(known, {}).get(what, 0)

    @contextmanager
    def counting(self, person: str) -> Iterator[None]:
        """Hold what a person adds: of two calls, of any process, not both take the last place."""
        path = self.path.with_name(f"people-{person}.lock")
        threads, held = _COUNTING.setdefault(path, (RLock(), []))
        with threads, nullcontext() if held else hold_lock(FileLock(path), str(path)):
            held.append(person)
            try:
                yield
            finally:
                held.pop()

    def set_limits(self, name: str, space: str, limits: Mapping[str, int]) -> dict[str, int]:
        """Change limits of a member of a space, 0 for none; return all that there are."""
        if limits.keys() - LIMITS or not all(0 <= one <= _MAX_LIMIT for one in limits.values()):
            raise Refused(f"a limit of {' or '.join(LIMITS)} is a number from 0 to {_MAX_LIMIT:,}")
        person = self.find(name)
        if not limits and space in person.roles:  # only a look
            return dict(person.limits.get(space, {}))
        with self._changing(person.id, space) as one:
            both = {**one[0].limits.get(space, {}), **limits}
            left = {what: number for what, number in both.items() if number}
            one[0] = one[0]._replace(limits={**one[0].limits, space: left})
        return left

    def remove(self, name: str, space: str, *, erase: bool = False) -> tuple[str, ...]:
        """Remove a member from a space; return the shelves without any reader left.

        A person who is left in no space is forgotten. Without ``erase`` one who stays in
        another finds their own shelf again when they come back.
        """
        person = self.find(name)
        with self._changing(person.id, space) as one:
            own = one[0].own.get(space)
            roles, shared = dict(one[0].roles), dict(one[0].shared)
            del roles[space]
            before = shared.pop(space, ())
            kept = {key: value for key, value in one[0].own.items() if key != space or not erase}
            one[0] = one[0]._replace(roles=roles, shared=shared, own=kept)
        gone = [key for key in before if key not in _shared(self.people(), space)]
        return (*gone, *([own] if own and (erase or not roles) else []))

    def require_removable(self, name: str, space: str) -> None:
        """Raise Refused where the removal would leave a space without an owner."""
        person = self.find(name)
        left = [one.roles[space] for one in self.people() if space in one.roles and one != person]
        if person.roles.get(space) == OWNER_ROLE:
            _require_owner(space, left)

    def drop_space(self, space: str) -> None:
        """Forget who was a member of a space that is removed."""
        with self._file.transaction() as kept:
            kept[:] = [left for one in kept if (left := _without(one, space)).roles]

    def shelf_for(self, space: str, people: Iterable[str]) -> str:
        """Return the shelf of some members (ids) of a space; it is made if there is none."""
        ids = sorted(set(people))
        roles = self.roles(space)
        if any(one not in roles for one in ids):
            raise Forbidden("only members of the space can be shared with", scope="")
        if len(ids) == 1:
            return self.own_shelf(space, ids[0])
        if found := _shelf_of(self.people(), space, ids):
            return found
        with self._file.transaction() as kept:
            if found := _shelf_of(kept, space, ids):  # another call was faster
                return found
            # Not made of the people: a set of whom one has left is another one.
            key = f"some-{secrets.token_hex(12)}"
            for place, one in enumerate(kept):
                if one.id in ids:
                    shared = {**one.shared, space: (*one.shared.get(space, ()), key)}
                    kept[place] = one._replace(shared=shared)
        return key

    @contextmanager
    def _changing(self, person: str, space: str = "") -> Iterator[list[Person]]:
        """Yield one person to replace; of a space, a member, and it keeps an owner."""
        with self._file.transaction() as kept:
            place = next(number for number, one in enumerate(kept) if one.id == person)
            if space and space not in kept[place].roles:
                raise NotFound(
                    f"{kept[place].name} is no member of {space}", remedy="bethink people list"
                )
            one, was = [kept[place]], kept[place].roles.get(space)
            yield one
            kept[place : place + 1] = one if one[0].roles else []
            roles = [known.roles[space] for known in kept if space in known.roles]
            if was == OWNER_ROLE:
                _require_owner(space, roles)


def _shared(people: Iterable[Person], space: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for one in people:
        for key in one.shared.get(space, ()) if space in one.roles else ():
            found.setdefault(key, []).append(one.id)
    return found


def _shelf_of(people: Iterable[Person], space: str, ids: Sequence[str]) -> str | None:
    """Return the shelf of exactly these people."""
    shelves = _shared(people, space)
    return next((key for key, known in shelves.items() if sorted(known) == ids), None)


def _parse_person(record: Json) -> Person:
    roles = {str(space): str(role) for space, role in record["roles"].items()}
    own = {str(space): str(key) for space, key in record["own"].items()}
    shared = {str(space): tuple(map(str, keys)) for space, keys in record["shared"].items()}
    limits = {
        str(space): {str(what): int(number) for what, number in each.items()}
        for space, each in record.get("limits", {}).items()
    }
    id_, name, created = (str(record[field]) for field in ("id", "name", "created"))
    return Person(id_, name, created, roles, own, shared, limits)


def _only(people: Iterable[Person], field: str, value: str, missing: str) -> Person:
    for one in people:
        if getattr(one, field) == value:
            return one
    raise NotFound(missing, remedy="bethink people list")


def _require_owner(space: str, roles: Sequence[str]) -> None:
    if roles and OWNER_ROLE not in roles:
        raise Refused(
            f"{space} would be without an owner", remedy="bethink people role NAME owner first"
        )


def _without(person: Person, space: str) -> Person:
    """Return a person who is no member of a space, and has nothing there."""
    fields = ("roles", "own", "shared", "limits")
    kept: Json = {name: dict(getattr(person, name)) for name in fields}
    for each in kept.values():
        each.pop(space, None)
    return person._replace(**kept)


def _check_role(role: str) -> None:
    if role not in ROLES:
        raise Refused(f"there is no role {role!r:.40}", remedy=f"one of {', '.join(ROLES)}")
