"""A place in the journal of a view, from which changes are followed."""

from __future__ import annotations

import hashlib

from bethink.core.json_values import Json, iso
from bethink.core.lazy import lazy_pattern
from bethink.ports import Store
from bethink.ports.values import Event

PAGE = 200
_CURSOR = lazy_pattern(r"([0-9]{1,15})-([0-9a-f]{16})")


class JournalReader:
    """A place in the journal of a view.

    The numbers of a view shift where a memory leaves it or enters it, so a cursor also has a
    code of its line: if the line with that number is another one, events were missed.
    """

    def __init__(self, cursor: str = "") -> None:
        found = _CURSOR.fullmatch(cursor)
        self._seq, self._code = (int(found[1]), found[2]) if found else (0, "")

    @property
    def cursor(self) -> str:
        """The place as text; it tells nothing of what the view hides."""
        return f"{self._seq}-{self._code}"

    def go_to_end(self, store: Store) -> None:
        """Go behind the newest line."""
        self.advance(next(iter(store.admin.changes(item=None, actor=None, limit=1)), None))

    def read(self, store: Store) -> list[Event] | None:
        """Return the lines that follow, a page of them; None if the place is lost."""
        found = store.admin.events(after=max(self._seq - 1, 0), limit=PAGE)
        here = found.pop(0) if self._seq and found else None
        return found if _code(here) == self._code else None

    def advance(self, event: Event | None) -> None:
        """Go behind a line that was read; None is the beginning."""
        self._seq, self._code = event.seq if event else 0, _code(event)


def event_json(event: Event) -> Json:
    """Return the public fields of a change."""
    return {"seq": event.seq, "at": iso(event.at), "kind": event.kind, "item": event.item}


def _code(event: Event | None) -> str:
    told = f"{event_json(event)}" if event else ""
    return hashlib.sha256(told.encode()).hexdigest()[:16]
