"""What a reader of a source gives: entries, and how they belong together."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from recollect.errors import Refused
from recollect.model import Draft


class Entry(NamedTuple):
    """One thing that a source holds, or why it cannot be taken.

    ``where`` tells people where it stands. ``id`` is the source's own name for it, the same
    whenever it is read, whatever it says by then. Where a source names nothing, ``group``
    is what the entry is one of (the observations of one entity): entries of a group stand
    together, and what became of each is found out by comparing. With neither, an entry is
    known by its words alone. ``origin`` is what people would look it up by in the source.
    """

    where: str
    found: Draft | Refused
    id: str = ""
    group: str = ""
    origin: str = ""


class End(NamedTuple):
    """One end of a tie: an entry by its id, or an entity by ``kind:name``."""

    kind: Literal["item", "entity"]
    name: str


class Tie(NamedTuple):
    """How two things of a source belong together; ``said_in`` is the entry that says so."""

    src: End
    type: str
    dst: End
    where: str
    weight: float = 0.5
    context: str | None = None
    said_in: str = ""


@dataclass(slots=True)
class Gauge:
    """How far a reader has come: of how much, where that is known."""

    done: int = 0
    total: int = 0
    unit: str = "bytes"


class Source(Protocol):
    """A place that holds memories of another kind."""

    def __init__(self, path: Path, gauge: Gauge) -> None: ...

    def entries(self) -> Iterator[Entry]:
        """What it holds, in an order that does not change from one reading to the next.
        Raises Refused where nothing more can be read."""
        ...

    def ties(self) -> Iterator[Tie]:
        """How that belongs together; asked for when all entries have been taken in."""
        ...


def digest(*parts: str) -> str:
    """Thirty-two characters that stand for these texts, in this order."""
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).hexdigest()


def place_id(path: Path) -> str:
    """What a file or folder is known by where its content names nothing that is unique."""
    return digest(str(path.resolve()))
