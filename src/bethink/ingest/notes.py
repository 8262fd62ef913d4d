"""Read a folder of Markdown notes by day, week and quarter, paragraph by paragraph.

``daily/daily_2026-11-14.md``, ``weekly/weekly_2026-W46.md`` (or its first day) and
``quarterly/quarterly_2026-Q4.md`` (or any of its days). Other files are ignored, and so are
notes that maintenance wrote for another space. A note is data: links out of the folder are
not followed, secrets are redacted, and prompt injections are flagged.
"""

from __future__ import annotations

import hashlib
import os
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from stat import S_ISREG
from urllib.parse import quote

from bethink.core.characters import estimate_tokens, find_unstorable
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.content_checks import content_flags
from bethink.ingest.redaction import redact
from bethink.model import Item
from bethink.ports import NoteFile

_STAMP_PATTERN = lazy_pattern(r"\n<!-- bethink ([0-9a-f]{64}) in ([^\s<>]+) of ([^<>]*) -->\n?\Z")


class StampedNote(NamedTuple):
    """A generated note: its body and the contents of its stamp line."""

    body: str
    digest: str
    space: str
    sources: frozenset[str]


def encode_space(space: str) -> str:
    """Encode a space's name as one word that a comment can hold."""
    return quote(space, safe="").replace("-", "%2D")


def body_digest(body: str) -> str:
    """Return a digest that detects later changes of a body."""
    return hashlib.sha256(body.encode()).hexdigest()


def append_stamp(body: str, digest: str, space: str, ids: Iterable[str]) -> str:
    """Append the provenance line to a body; ``space`` is already encoded."""
    return f"{body}\n<!-- bethink {digest} in {space} of {' '.join(sorted(ids))} -->\n"


def read_stamp(text: str) -> StampedNote | None:
    """Parse the stamp in a note's last line; None where there is none."""
    found = _STAMP_PATTERN.search(text)
    if found is None:
        return None
    return StampedNote(text[: found.start()], found[1], found[2], frozenset(found[3].split()))


_CITATION = lazy_pattern(r"\(([^\s()]+)\)$", re.MULTILINE)
_PLACEHOLDER = "\ue000"  # for private use: no text of ours
_CITATION_PLACE = lazy_pattern(rf"{_PLACEHOLDER}(\d+){_PLACEHOLDER}")


def _redact_note(text: str) -> str:
    """Redact secrets, but not the ids of the memories that a generated note names as its sources.

    After "the deploy key" such an id looks like one.
    """
    stamp = read_stamp(text)
    if stamp is None or _PLACEHOLDER in text:
        return redact(text).text
    cited: list[str] = []

    def put_away(citation: re.Match[str]) -> str:
        if citation[1] not in stamp.sources:
            return citation[0]
        cited.append(citation[0])
        return f"{_PLACEHOLDER}{len(cited) - 1}{_PLACEHOLDER}"

    redacted = redact(_CITATION.sub(put_away, text)).text
    return _CITATION_PLACE.sub(lambda place: cited[int(place[1])], redacted)


NOTE_ID_PREFIX = "note:"
MAX_NOTE_BYTES = 256 * 1024
MAX_NOTE_FILES = 20_000  # per folder
NOTE_FOLDERS = ("daily", "weekly", "quarterly")
_NOTE_NAME = lazy_pattern(r"(daily|weekly|quarterly)_(\d{4})-(?:(\d{2})-(\d{2})|W(\d{2})|Q([1-4]))")
_NOTE_ID = lazy_pattern(rf"{NOTE_ID_PREFIX}([a-z]+_[\dA-Z-]+)#(\d{{1,6}})")
_BLANK_LINE = lazy_pattern(r"\n[^\S\n]*\n")
_COMMENT = lazy_pattern(r"<!--(?:(?!-->).)*-->", re.DOTALL)
_DATED_LINE = lazy_pattern(
    r"^[^\S\n]*(?:[-*+][^\S\n]+)?(\d{4}-\d{2}-\d{2})\b", re.MULTILINE | re.ASCII
)
_HEADING = lazy_pattern(r"#{1,6}[^\S\n]\S.*")
# Follow no link, which may lead out of the folder, and wait for no pipe.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class NotesFolder:
    """The notes under a folder, read on demand and cached while unchanged."""

    def __init__(
        self, root: Path, *, trust: int = 1, within: Path | None = None, space: str | None = None
    ) -> None:
        """Set the folder; ``within`` must contain it, ``space`` is the reading space."""
        self._root = root
        self._space = space
        self._trust = trust
        self._within = within
        self._cache: dict[str, tuple[tuple[int, int], tuple[Item, ...]]] = {}
        self._lock = threading.Lock()

    def files(self, since: datetime | None, until: datetime | None) -> Sequence[NoteFile]:
        """Return the files about any part of [since, until), newest first."""
        found = [
            file
            for file in self._scan()
            if (since is None or file.end > since) and (until is None or file.start < until)
        ]
        return sorted(found, key=lambda file: (file.start, file.name), reverse=True)

    def _scan(self) -> Iterator[NoteFile]:
        if self._is_outside():
            return
        for folder in NOTE_FOLDERS:
            path = self._root / folder
            if path.is_symlink() or not path.is_dir():
                continue
            with os.scandir(path) as entries:
                for _, entry in zip(range(MAX_NOTE_FILES), entries, strict=False):
                    file = _note_file(folder, entry)
                    if file is not None:
                        yield file

    def _is_outside(self) -> bool:
        if self._within is None:
            return False
        allowed = Path(os.path.realpath(self._within))
        return not Path(os.path.realpath(self._root)).is_relative_to(allowed)

    def read(self, file: NoteFile) -> Sequence[Item]:
        """Return the paragraphs of a file as items, in order."""
        path = self._root / file.name.partition("_")[0] / f"{file.name}.md"
        text, state = _read_note(path)
        with self._lock:
            known = self._cache.get(file.name)
        if known is not None and known[0] == state:
            return known[1]
        items = () if self._is_foreign(text) else tuple(self._make_items(file, _redact_note(text)))
        with self._lock:
            self._cache[file.name] = (state, items)
        return items

    def _is_foreign(self, text: str) -> bool:
        stamp = read_stamp(text)
        return (
            stamp is not None
            and self._space is not None
            and stamp.space != encode_space(self._space)
        )

    def _make_items(self, file: NoteFile, text: str) -> Iterator[Item]:
        for number, paragraph in enumerate(split_paragraphs(text), start=1):
            start, end = _paragraph_period(paragraph, file)
            yield Item(
                id=f"{NOTE_ID_PREFIX}{file.name}#{number}", text=paragraph, stored_at=file.start,
                source=f"notes/{file.name}.md", source_class="import", writer="notes", level="raw",
                kind="note", trust=self._trust, occurred_at=start, occurred_end=end,
                tokens=estimate_tokens(paragraph), flags=content_flags(paragraph),
            )  # fmt: skip

    def find(self, item_id: str) -> Item | None:
        """Return the paragraph with this id, if it still exists."""
        match = _NOTE_ID.fullmatch(item_id)
        if match is None:
            return None
        file = next((file for file in self._scan() if file.name == match[1]), None)
        if file is None:
            return None
        try:
            items = self.read(file)
        except Refused:
            return None  # no longer readable as a note
        return next((item for item in items if item.id == item_id), None)


def _paragraph_period(paragraph: str, file: NoteFile) -> tuple[datetime, datetime]:
    """Return the days that its lines begin with, within the file's period; else that."""
    days = []
    for date_text in _DATED_LINE.findall(paragraph):
        try:
            day = datetime.fromisoformat(date_text).replace(tzinfo=UTC)
        except ValueError:
            continue  # the 31st of June
        if file.start <= day < file.end:
            days.append(day)
    return (min(days), max(days) + timedelta(days=1)) if days else (file.start, file.end)


def split_paragraphs(text: str) -> list[str]:
    """Split at blank lines; a heading joins what follows, comments are dropped."""
    parts: list[str] = []
    heading = ""
    for block in _BLANK_LINE.split(text.replace("\r\n", "\n")):
        stripped = block.strip()
        if not stripped or _COMMENT.fullmatch(stripped):
            continue
        joined = f"{heading}\n{stripped}" if heading else stripped
        if all(_HEADING.fullmatch(line) for line in stripped.splitlines()):
            heading = joined
        else:
            parts.append(joined)
            heading = ""
    return [*parts, heading] if heading else parts


def _note_file(folder: str, entry: os.DirEntry[str]) -> NoteFile | None:
    name, ending = entry.name[:-3], entry.name[-3:]
    span = period_of(name) if ending == ".md" and name.startswith(f"{folder}_") else None
    if span is None or not entry.is_file(follow_symlinks=False):
        return None
    changed = datetime.fromtimestamp(entry.stat(follow_symlinks=False).st_mtime, UTC)
    return NoteFile(name, *span, changed)


def period_of(name: str) -> tuple[datetime, datetime] | None:
    """Return the period that a note's name denotes; None if it is not a note's name."""
    parts = _NOTE_NAME.fullmatch(name)
    try:
        return _parse_period(*parts.groups()) if parts else None
    except ValueError:
        return None  # the 31st of June


def _parse_period(  # noqa: PLR0917 - the parts of a name, in its order
    kind: str, year: str, month: str, day: str, week: str, quarter: str
) -> tuple[datetime, datetime] | None:
    if quarter or week:
        if kind != ("quarterly" if quarter else "weekly"):
            return None
        if quarter:
            return _quarter_span(int(year), int(quarter))
        return _day_span(date.fromisocalendar(int(year), int(week), 1), 7)
    first = date(int(year), int(month), int(day))
    if kind == "quarterly":
        return _quarter_span(first.year, (first.month + 2) // 3)
    return _day_span(first, 1 if kind == "daily" else 7)


def _day_span(first: date, count: int) -> tuple[datetime, datetime]:
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return start, start + timedelta(days=count)


def _quarter_span(year: int, number: int) -> tuple[datetime, datetime]:
    start = datetime(year, 3 * number - 2, 1, tzinfo=UTC)
    after = date(year + number // 4, (3 * number) % 12 + 1, 1)
    return start, datetime(after.year, after.month, 1, tzinfo=UTC)


def _read_note(path: Path) -> tuple[str, tuple[int, int]]:
    """Read a regular file; return its text and a version key (mtime, size)."""
    try:
        handle = os.open(path, _OPEN_FLAGS)
    except OSError as error:
        raise Refused(f"the note {path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(file.fileno())
        if not S_ISREG(status.st_mode):
            raise Refused(f"the note {path.name} is not a regular file")
        content = file.read(MAX_NOTE_BYTES + 1)
    if len(content) > MAX_NOTE_BYTES:
        raise TooLarge(f"the note {path.name}", limit=MAX_NOTE_BYTES, actual=status.st_size)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadText(f"the note {path.name} is not UTF-8") from error
    if find_unstorable(text):
        raise BadText(f"the note {path.name} contains characters that cannot be stored")
    return text, (status.st_mtime_ns, status.st_size)
