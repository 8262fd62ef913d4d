"""The last line of a note that maintenance wrote: of which space, and of which memories."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

_STAMP = re.compile(r"\n<!-- recollect ([0-9a-f]{64}) in ([^\s<>]+) of ([^<>]*) -->\n?\Z")


class Stamped(NamedTuple):
    """A written note: what stands above the stamp, and what the stamp says of it."""

    body: str
    digest: str
    space: str
    sources: frozenset[str]


def mark_of(space: str) -> str:
    """A space's name as one word that a comment can hold."""
    return quote(space, safe="").replace("-", "%2D")


def digest_of(body: str) -> str:
    """What tells whether a body is still the one that was written."""
    return hashlib.sha256(body.encode()).hexdigest()


def with_stamp(body: str, digest: str, space: str, ids: Iterable[str]) -> str:
    """A body with the line that says where it comes from; ``space`` is a mark."""
    return f"{body}\n<!-- recollect {digest} in {space} of {' '.join(sorted(ids))} -->\n"


def read_stamp(text: str) -> Stamped | None:
    """What a note's last line says; None where nobody wrote one."""
    found = _STAMP.search(text)
    if found is None:
        return None
    return Stamped(text[: found.start()], found[1], found[2], frozenset(found[3].split()))
