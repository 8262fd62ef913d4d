"""Id generation: 16 characters that sort by time and never repeat."""

from __future__ import annotations

import os
import threading
from datetime import datetime

from bethink.core.lazy import lazy_pattern

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's: no i, l, o, u
_RANDOM_BITS = 37
_MAX_MILLISECONDS = (1 << 43) - (
    1 << 20
)  # milliseconds since 1970: the year 2248, with room for increments
_INCREMENT_BITS = 20
_VALID = lazy_pattern(r"[A-Za-z0-9_.:-]{1,64}")


class IdGenerator:
    """Generates the ids of one process, each greater than the one before.

    Time in milliseconds, then random bits. Within a millisecond, or when the clock goes
    back, the previous id is incremented by a random step, so that two processes that
    generate ids in the same millisecond do not collide.
    """

    def __init__(self) -> None:
        self._last = 0
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __call__(self, now: datetime) -> str:
        """Generate the next id; ``now`` determines its sort order."""
        milliseconds = min(max(int(now.timestamp() * 1000), 0), _MAX_MILLISECONDS)
        with self._lock:
            if os.getpid() != self._process:
                # A forked child must not continue its parent's sequence.
                self._process, self._last = os.getpid(), 0
            if milliseconds > self._last >> _RANDOM_BITS:
                self._last = milliseconds << _RANDOM_BITS | _random(_RANDOM_BITS)
            else:
                self._last += 1 + _random(_INCREMENT_BITS)
            number = self._last
        return _encode(number)


def _random(bits: int) -> int:
    # Like `secrets`, which would import five more modules at every start.
    return int.from_bytes(os.urandom(8)) >> (64 - bits)


def _encode(number: int) -> str:
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(75, -1, -5))


make_id = IdGenerator()

_OWN = lazy_pattern(f"[{_ALPHABET}]{{16}}")
_SHORT_LENGTH = 8


def short_id(item_id: str) -> str:
    """The end of an id that we made: ids of one time differ there, and it finds the memory."""
    return item_id[-_SHORT_LENGTH:] if _OWN.fullmatch(item_id) else item_id


def is_valid_id(text: str) -> bool:
    """Whether an id from outside can be accepted."""
    return _VALID.fullmatch(text) is not None
