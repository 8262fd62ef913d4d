"""Which sessions of the protocol each caller has open, so that nobody takes all the room.

Many clients never say that they are done. Who opens more than a share loses the session
that was not used for longest; a client that comes back to it is told so, and begins anew.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

MOST_OF_ONE = 64


class Sessions:
    """The sessions of every caller, those used last at the end. Used from one thread."""

    def __init__(self, most: int = MOST_OF_ONE) -> None:
        self._most = most
        # Of each session how many requests are under way.
        self._of: dict[str, OrderedDict[str, int]] = {}

    def began(self, caller: str, session: str) -> None:
        """Notes a session that was opened."""
        self._of.setdefault(caller, OrderedDict())[session] = 0

    def ended(self, caller: str, session: str) -> None:
        """Forgets a session."""
        own = self._of.get(caller, OrderedDict())
        own.pop(session, None)
        if not own:
            self._of.pop(caller, None)

    @contextmanager
    def in_use(self, caller: str, session: str | None) -> Iterator[None]:
        """While a request of a session is answered; one that is none of the caller's, or
        none at all, is not kept."""
        own = self._of.get(caller, OrderedDict())
        if session is None or session not in own:
            yield
            return
        own[session] += 1
        try:
            yield
        finally:
            if session in own:
                own[session] -= 1
                own.move_to_end(session)

    def surplus(self, caller: str) -> str | None:
        """The session that a caller loses; None where there is room, or all are in use."""
        own = self._of.get(caller, OrderedDict())
        if len(own) <= self._most:
            return None
        return next((session for session, under_way in own.items() if not under_way), None)
