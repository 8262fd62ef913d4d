"""Entries and links that a source yields, lenient value conversion, text splitting."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, Protocol

from bethink.core.json_values import parse_strict_json
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.errors import Refused
from bethink.importers.turn_text import storable_text
from bethink.ingest.admission import MAX_TEXT_BYTES
from bethink.ingest.entity_extraction import ENTITY_KINDS
from bethink.model import Draft, FileEdit, Thread
from bethink.ports import PriorUse

MAX_TAGS = 32  # tags or entities of one entry
_MAX_ENCODINGS = 3
_JSON_STARTS = ("[", "{", '"')
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
_EPOCH = re.compile(r"\d{9,16}")  # a count from 1970 as a column without a type has it


def text_of(value: object) -> str:
    """Return a stripped text; empty where the value is no text."""
    return value.strip() if isinstance(value, str) else ""


def line_of(value: object, limit: int = _MAX_NAME_LENGTH) -> str:
    """Return a text on one line, cut to the length of names.

    Characters that no store can hold are removed: a memory is not refused because of its
    title.
    """
    return shorten(_BLANKS.sub(" ", storable_text(text_of(value))).strip(), limit)


def list_of(value: object) -> list[object]:
    """Return a list, also one written as JSON; empty where the value is none."""
    value = decoded_json(value)
    return value if isinstance(value, list) else []


def decoded_json(value: object) -> object:
    """Return the value of a text that is a JSON list or object, however often encoded."""
    for _ in range(_MAX_ENCODINGS):
        if not isinstance(value, str) or not value.strip().startswith(_JSON_STARTS):
            break
        try:
            value = parse_strict_json(value)
        except Refused:
            break
    return value


def tags_of(value: object) -> tuple[str, ...]:
    """Return tags, each once: from a list of texts, or from one text with commas."""
    parts = value.split(",") if isinstance(value, str) else list_of(value)
    tags = (line_of(part, _MAX_TAG_LENGTH).lstrip("#") for part in parts)
    return tuple(dict.fromkeys(tag for tag in tags if tag))[:MAX_TAGS]


def clamped_number(value: object, least: float, most: float, otherwise: float) -> float:
    """Return a number, also one written as text, clamped to a range, or the default."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return otherwise
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        return otherwise
    return max(least, min(most, float(value)))


def time_of(value: object) -> datetime | None:
    """Convert ISO text or a count from 1970, in seconds or smaller units, to a time."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, str):
        text = value.strip()
        if not _EPOCH.fullmatch(text):
            return _parse_iso_time(text)
        value = int(text)
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


def metadata_of(given: Mapping[str, object]) -> dict[str, object]:
    """Return short values as metadata, no more than a few."""
    kept: dict[str, object] = {}
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


class Fields:
    """The fields of a JSON object, if it is one; of several names the first with a value counts."""

    __slots__ = ("given",)

    def __init__(self, value: object) -> None:
        value = decoded_json(value)
        self.given: dict[str, object] = value if isinstance(value, dict) else {}

    def __contains__(self, name: str) -> bool:
        return name in self.given

    def get(self, name: str) -> object:
        """Return the value of a field; None where there is none.

        Raise Refused for one that cannot be read.
        """
        found = self.given.get(name)
        if isinstance(found, Refused):
            raise found
        return found

    def text(self, *names: str) -> str:
        """Return a stripped text; empty where there is none."""
        return next((text for name in names if (text := text_of(self.get(name)))), "")

    def line(self, *names: str, limit: int = _MAX_NAME_LENGTH) -> str:
        """Return a text on one line, cut to the length of names."""
        return next((line for name in names if (line := line_of(self.get(name), limit))), "")

    def number(self, name: str, least: float, most: float, otherwise: float) -> float:
        """Return a number clamped to a range, or the default."""
        return clamped_number(self.get(name), least, most, otherwise)

    def time(self, *names: str) -> datetime | None:
        """Return a time; None where there is none."""
        return next((at for name in names if (at := time_of(self.get(name)))), None)

    def array(self, *names: str) -> list[object]:
        """Return a list; empty where there is none."""
        return next((found for name in names if (found := list_of(self.get(name)))), [])

    def fields(self, name: str) -> Fields:
        """Return the fields of an object inside."""
        return Fields(self.get(name))

    def each(self, *names: str) -> list[Fields]:
        """Return the objects of a list."""
        return [Fields(one) for one in self.array(*names)]

    def has_list(self, name: str) -> bool:
        """Whether a field is a list, perhaps an empty one."""
        return isinstance(self.get(name), list)

    def only(self, *names: str) -> dict[str, object]:
        """Return some of the fields, for metadata."""
        return {name: self.get(name) for name in names}


class Entry(NamedTuple):
    """One entry of a source, or why it cannot be imported.

    ``where`` is its location for people. ``id`` is the source's own name for it, the same
    whenever it is read, whatever its content is by then. Where a source has no names,
    ``group`` is the set it belongs to (the observations of one entity): entries of a group
    are adjacent, and are matched by comparing. With neither, an entry is identified by its
    text alone. ``origin`` is the name under which people find it in the source. The draft's
    ``parent`` is the id of an earlier entry that it was made from.
    """

    where: str
    found: Draft | Refused
    id: str = ""
    group: str = ""
    origin: str = ""
    use: PriorUse | None = None


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


def item_link(  # noqa: PLR0917 - the fields of a link
    src: str, kind: str, dst: str, where: str, weight: float = 0.5, context: str = ""
) -> SourceLink:
    """Return the link between two entries, by their ids."""
    ends = LinkEnd("item", src), LinkEnd("item", dst)
    return SourceLink(ends[0], kind, ends[1], where, weight, context or None)


class Relation(NamedTuple):
    """A relation between two entities: it becomes a fact, and a link between them."""

    where: str
    id: str
    src: str
    kind: str
    dst: str

    def entry(self) -> Entry:
        """Return the fact that states it."""
        src, dst = (name.partition(":")[2] for name in (self.src, self.dst))
        text = f"{src} {self.kind.replace('_', ' ')} {dst}"
        return Entry(self.where, Draft(text, kind="fact", entities=(self.src, self.dst)), self.id)

    def link(self, weight: float = 0.5) -> Iterator[SourceLink]:
        """Yield the link, unless it is one of an entity with itself."""
        if self.src != self.dst:
            src, dst = LinkEnd("entity", self.src), LinkEnd("entity", self.dst)
            yield SourceLink(src, self.kind, dst, self.where, weight, said_in=self.id)


@dataclass(slots=True)
class ReadProgress:
    """A reader's progress: how much is done, of how much where that is known; entries so far."""

    done: int = 0
    total: int = 0
    unit: str = "bytes"
    entries: int = 0

    @property
    def expected(self) -> int:
        """About how many entries there are, by the share that was read; 0: not known."""
        return round(self.entries * self.total / self.done) if self.done and self.total else 0


class Importer(Protocol):
    """The protocol of a reader of another tool's data."""

    def __init__(self, path: Path, gauge: ReadProgress) -> None: ...

    def entries(self) -> Iterator[Entry]:
        """Yield its entries, always in one order; raises Refused where nothing more can be read."""
        ...

    def links(self) -> Iterator[SourceLink]:
        """Yield the links between entries; called when all entries have been imported."""
        ...


class Reader:
    """A source at a path; most have no links, file edits or threads.

    These name entries by their ids. An importer that is no `Reader` need not have the last two.
    """

    def __init__(self, path: Path, gauge: ReadProgress) -> None:
        self._path, self._gauge = path, gauge

    def links(self) -> Iterator[SourceLink]:
        """Yield nothing."""
        return iter(())

    def edits(self) -> Iterator[FileEdit]:
        """Yield nothing."""
        return iter(())

    def threads(self) -> Iterator[Thread]:
        """Yield nothing."""
        return iter(())


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
