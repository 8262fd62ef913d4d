"""Entries and links that a source yields, lenient value conversion, text splitting."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.errors import Refused
from bethink.importers.turn_text import storable_text
from bethink.ingest.admission import MAX_TEXT_BYTES
from bethink.ingest.entity_extraction import ENTITY_KINDS
from bethink.model import Draft

MAX_TAGS = 32  # tags or entities of one entry
_MAX_TAG_LENGTH = 100
_MAX_NAME_LENGTH = 150
_MAX_METADATA_LENGTH = 500
_MAX_METADATA_KEYS = 24
_LATEST_SECONDS = 100_000_000_000  # seconds: the year 5138
_EARLIEST_SECONDS = -62_000_000_000
_ENTITY_KIND_ALIASES = {
    "people": "person", "human": "person", "user": "person", "team member": "person",
    "technology": "tool", "software": "tool", "library": "tool", "framework": "tool",
    "database": "tool", "service": "tool", "repository": "project", "repo": "project",
    "codebase": "project", "product": "project", "path": "file", "document": "file",
    "component": "module", "package": "module", "method": "function", "type": "class",
    "issue": "ticket", "bug": "ticket", "server": "host", "idea": "concept",
    "organization": "company", "organisation": "company", "org": "company", "vendor": "company",
}  # fmt: skip
_BLANKS = re.compile(r"\s+")


def text_of(value: object) -> str:
    """Return a stripped text; empty where the value is no text."""
    return value.strip() if isinstance(value, str) else ""


def line_of(value: object, limit: int = _MAX_NAME_LENGTH) -> str:
    """Return a text on one line, cut to the length of names.

    Characters that no store can hold are removed: a memory is not refused because of its
    title.
    """
    return shorten(_BLANKS.sub(" ", storable_text(text_of(value))).strip(), limit)


def mapping_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def tags_of(value: object) -> tuple[str, ...]:
    """Return tags, each once: from a list of texts, or from one text with commas."""
    parts = value.split(",") if isinstance(value, str) else list_of(value)
    tags = (line_of(part, _MAX_TAG_LENGTH).lstrip("#") for part in parts)
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]


def clamped_number(value: object, least: float, most: float, otherwise: float) -> float:
    """Return a number clamped to a range, or the default."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return otherwise
    return max(least, min(most, float(value)))


def time_of(value: object) -> datetime | None:
    """Convert ISO text or a count from 1970, in seconds or smaller units, to a time."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        return _parse_iso_time(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    for unit in (1, 1_000, 1_000_000):
        if _EARLIEST_SECONDS < value / unit < _LATEST_SECONDS:
            return datetime.fromtimestamp(value / unit, UTC)
    return None


def _parse_iso_time(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def entity_name_of(kind: object, name: object) -> str:
    """Return an entity as drafts name it, ``kind:name``; empty where it has no name."""
    own_kind, own_name = line_of(kind).lower().replace("_", " "), line_of(name)
    if own_kind not in ENTITY_KINDS:
        own_kind = _ENTITY_KIND_ALIASES.get(own_kind, "other")
    return f"{own_kind}:{own_name}" if own_name else ""


def metadata_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return short values as metadata, no more than a few."""
    kept: dict[str, Any] = {}
    for key, value in given.items():
        name = storable_text(str(key))[:100]
        if isinstance(value, str) and (text := text_of(value)):
            kept[name] = shorten(storable_text(text), _MAX_METADATA_LENGTH)
        elif isinstance(value, int | float) and math.isfinite(value) and abs(value) < 2**53:
            kept[name] = value
        elif isinstance(value, list | tuple) and (words := tags_of(list(value))):
            kept[name] = list(words)
        if len(kept) == _MAX_METADATA_KEYS:
            break
    return kept


class Entry(NamedTuple):
    """One entry of a source, or why it cannot be imported.

    ``where`` is its location for people. ``id`` is the source's own name for it, the same
    whenever it is read, whatever its content is by then. Where a source has no names,
    ``group`` is the set it belongs to (the observations of one entity): entries of a group
    are adjacent, and are matched by comparing. With neither, an entry is identified by its
    text alone. ``origin`` is the name under which people find it in the source.
    """

    where: str
    found: Draft | Refused
    id: str = ""
    group: str = ""
    origin: str = ""


class LinkEnd(NamedTuple):
    """One end of a link: an entry by its id, or an entity by ``kind:name``."""

    kind: Literal["item", "entity"]
    name: str


class SourceLink(NamedTuple):
    """A link between two things of a source; ``said_in`` is the entry that states it."""

    src: LinkEnd
    type: str
    dst: LinkEnd
    where: str
    weight: float = 0.5
    context: str | None = None
    said_in: str = ""


@dataclass(slots=True)
class ReadProgress:
    """A reader's progress: how much is done, of how much where that is known."""

    done: int = 0
    total: int = 0
    unit: str = "bytes"


class Importer(Protocol):
    """The protocol of a reader of another tool's data."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None: ...

    def entries(self) -> Iterator[Entry]:
        """Yield its entries, in an order that is the same at every reading.

        Raises Refused where nothing more can be read.
        """
        ...

    def links(self) -> Iterator[SourceLink]:
        """Yield the links between entries; called when all entries have been imported."""
        ...


def digest(*parts: str) -> str:
    """Return a 32-character digest of these texts, in this order."""
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(joined, digest_size=16).hexdigest()


def location_id(path: Path) -> str:
    """Return an id of a file or folder whose content has no unique names."""
    return digest(str(path.resolve()))


_CUT_POINTS = ("\n\n", "\n", ". ", " ")


def split_text(text: str, limit: int = MAX_TEXT_BYTES) -> list[str]:
    """Split a text into pieces of at most ``limit`` bytes, in order; nearly always one.

    It is cut between paragraphs, else lines, else words.
    """
    pieces = []
    rest = text.strip()
    while not _fits(rest, limit):
        cut = _cut_position(rest, limit)
        pieces.append(rest[:cut].rstrip())
        rest = rest[cut:].lstrip()
    return [*pieces, rest] if rest else pieces


def _fits(text: str, limit: int) -> bool:
    # Encoding costs a copy, so only texts that may be too long are counted.
    return len(text) * 4 <= limit or len(text.encode("utf-8", "surrogatepass")) <= limit


def _cut_position(text: str, limit: int) -> int:
    """Return where to cut: as late as fits, at the best end in the later half; else anywhere."""
    # As many characters as fit; a partial one at the end is dropped.
    head = text[:limit].encode("utf-8", "surrogatepass")[:limit]
    most = len(head.decode("utf-8", "ignore"))
    for end in _CUT_POINTS:
        found = text.rfind(end, most // 2, most)
        if found > 0:
            return found + len(end)
    return most
