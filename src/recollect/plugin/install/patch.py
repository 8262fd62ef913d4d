"""The difference between two states of a file, small enough to be kept and undone exactly."""

from __future__ import annotations

import hashlib
from typing import NamedTuple


class Patch(NamedTuple):
    """At ``offset``, in bytes, ``removed`` gave way to ``inserted``."""

    offset: int
    removed: bytes
    inserted: bytes

    def undone(self, after: bytes) -> bytes:
        """The bytes before, given those after."""
        end = self.offset + len(self.inserted)
        return after[: self.offset] + self.removed + after[end:]


def patch_of(before: bytes, after: bytes) -> Patch:
    """What turns the one into the other."""
    start = _alike(before, after)
    # The ends must not reach back into what the beginnings have taken.
    most = min(len(before), len(after)) - start
    same = _alike(before[::-1][:most], after[::-1][:most])
    return Patch(start, before[start : len(before) - same], after[start : len(after) - same])


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def mark_of(content: bytes) -> str:
    """What a state of a file is known by."""
    return hashlib.sha256(content).hexdigest()
