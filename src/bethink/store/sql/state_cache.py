"""What a store has read and may use again, as long as its state is the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import apsw

from bethink.store.sql.connection import Database, generation

Value = TypeVar("Value")


def is_writing(db: Database) -> bool:
    """Whether the transaction writes: what it has not committed may be rolled back."""
    return db.txn_state("main") == apsw.SQLITE_TXN_WRITE


class CachePart(Generic[Value]):
    """One kind of cached values: how many keys it may have, and when a value is too large."""

    def __init__(
        self, *, limit: int = 1, is_full: Callable[[Value], bool] = lambda _: False
    ) -> None:
        self.limit = limit
        self.is_full = is_full


class StateCache:
    """The cache of one store; a view below a ceiling is a store of its own, with its own.

    A value is found by its part, its key, and the state of the store in which it was made.
    That is the generation, which every write changes, or for a part that changes less often a
    version of its own. Of each part only the values of one state are kept, and no more than its
    limit. In a transaction that writes nothing is kept or given: a generation or version that
    was rolled back is used again by the next write. Nor is anything kept in a store whose
    generation is lost (0).

    Threads may read different states at once. Each gets values of its own state, at the cost
    of making some of them twice.
    """

    def __init__(self) -> None:
        self._parts: dict[CachePart[Any], tuple[Hashable, dict[Hashable, Any]]] = {}

    def get(
        self,
        db: Database,
        part: CachePart[Value],
        make: Callable[[], Value],
        *,
        key: Hashable = None,
        state: Hashable = None,
    ) -> Value:
        """Return the value of a key in the present state, or in that given; make it if needed."""
        if is_writing(db):
            return make()
        if state is None:
            state = generation(db)
        if not state:
            return make()
        known_state, known = self._parts.get(part, (None, {}))
        if known_state != state or (key not in known and len(known) >= part.limit):
            # New, not cleared: a thread that still reads an older state goes on with the old one.
            known = {}
            self._parts[part] = (state, known)
        if key not in known or part.is_full(known[key]):
            known[key] = make()
        value: Value = known[key]
        return value

    def knows(self, db: Database, part: CachePart[Value], key: Hashable, state: Hashable) -> bool:
        """Whether `get` would give a value without making it."""
        known_state, known = self._parts.get(part, (None, {}))
        return known_state == state and key in known and not is_writing(db)

    def latest(self, db: Database, part: CachePart[Value]) -> Value | None:
        """Return the value made last, of whatever state, to make the next one from; or None."""
        _, known = self._parts.get(part, (None, {}))
        return None if is_writing(db) else next(reversed(known.values()), None)
