"""The secret with which a space's journal is chained."""

from __future__ import annotations

import hashlib
import os
from weakref import WeakKeyDictionary

from bethink.core.named_tuple import NamedTuple
from bethink.store.sql.connection import Database

SECRET_BYTES = 32


class Secret(NamedTuple):
    """A secret, and the line of the journal from which on it is used; empty where there is none.

    With ``seals`` every end of the journal since then has a seal, so that one without was cut.
    """

    value: bytes = b""
    since: int = 1
    seals: bool = False

    @classmethod
    def random(cls, since: int = 1) -> Secret:
        """Return a new secret."""
        return cls(os.urandom(SECRET_BYTES), since, seals=True)

    @property
    def id(self) -> str:
        """A name of the secret that does not tell it; empty where there is none."""
        return hashlib.sha256(b"id" + self.value).hexdigest()[:16] if self.value else ""

    def made(self, line: int) -> bool:
        """Whether a line of the journal was chained with it."""
        return bool(self.value) and line >= self.since

    def mac(self, text: bytes) -> str:
        """Return the code of a line that only this secret gives."""
        import hmac  # start-up time: a recall writes no journal

        return hmac.digest(self.value, text, "sha256").hex()


class JournalKey:
    """The secret of a space's journal; this one is as old as the store that is open."""

    def __init__(self, secret: Secret | None = None) -> None:
        self._secret = secret or Secret()

    def read(self) -> Secret:
        """Return the secret as it is now; an empty one where there is none."""
        return self._secret

    def ensure(self, line: int) -> Secret:
        """Return the secret; make it, where that is possible, for the lines from this one on."""
        del line
        return self.read()


# The journal's key of each connection's space; without one lines are chained without a secret.
journal_keys = WeakKeyDictionary[Database, JournalKey]()
