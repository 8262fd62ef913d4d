"""Reads a folder of Markdown notes, by the day, the week and the quarter, paragraph by
paragraph.

``daily/daily_2026-11-14.md``, ``weekly/weekly_2026-W46.md`` (or the day it begins on) and
``quarterly/quarterly_2026-Q4.md`` (or any of its days). Whatever else lies there is not
looked at, nor are notes that maintenance wrote for another space. A note is data: nothing
leads out of the folder, secrets are taken out, and what tries to give orders is flagged.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from stat import S_ISREG

from recollect.errors import BadText, Refused, TooLarge
from recollect.ingest.injection import is_injection
from recollect.ingest.note_stamp import mark_of, read_stamp
from recollect.ingest.redact import redact
from recollect.model import Item
from recollect.ports import NoteFile
from recollect.text import unkeepable, unseen_flags

PREFIX = "note:"
FILE_BYTES = 256 * 1024
MOST_FILES = 20_000  # of a folder; more are no diary
FOLDERS = ("daily", "weekly", "quarterly")
_NAME = re.compile(r"(daily|weekly|quarterly)_(\d{4})-(?:(\d{2})-(\d{2})|W(\d{2})|Q([1-4]))")
_ID = re.compile(rf"{PREFIX}([a-z]+_[\dA-Z-]+)#(\d{{1,6}})")
_BLANK = re.compile(r"\n[^\S\n]*\n")
_COMMENT = re.compile(r"<!--(?:(?!-->).)*-->", re.DOTALL)
_DATED = re.compile(r"^[^\S\n]*(?:[-*+][^\S\n]+)?(\d{4}-\d{2}-\d{2})\b", re.MULTILINE | re.ASCII)
_HEADING = re.compile(r"#{1,6}[^\S\n]\S.*")
# Neither followed nor waited for: a link may lead out of the folder, a pipe never ends.
_CAUTIOUSLY = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class NotesFolder:
    """The notes under a folder, read when they are asked for and kept while unchanged."""

    def __init__(
        self, root: Path, *, trust: int = 1, within: Path | None = None, space: str | None = None
    ) -> None:
        """``within`` is a folder that the root must lie in, links followed; ``space`` the one
        that asks."""
        self._root = root
        self._space = space
        self._trust = trust
        self._within = within
        self._kept: dict[str, tuple[tuple[int, int], tuple[Item, ...]]] = {}
        self._lock = threading.Lock()

    def files(self, since: datetime | None, until: datetime | None) -> Sequence[NoteFile]:
        """Files about any part of [since, until), newest first."""
        found = [
            file
            for file in self._all()
            if (since is None or file.end > since) and (until is None or file.start < until)
        ]
        return sorted(found, key=lambda file: (file.start, file.name), reverse=True)

    def _all(self) -> Iterator[NoteFile]:
        if self._leads_out():
            return
        for folder in FOLDERS:
            place = self._root / folder
            if place.is_symlink() or not place.is_dir():
                continue
            with os.scandir(place) as entries:
                for _, entry in zip(range(MOST_FILES), entries, strict=False):
                    file = _file_of(folder, entry)
                    if file is not None:
                        yield file

    def _leads_out(self) -> bool:
        if self._within is None:
            return False
        inside = Path(os.path.realpath(self._within))
        return not Path(os.path.realpath(self._root)).is_relative_to(inside)

    def read(self, file: NoteFile) -> Sequence[Item]:
        """The paragraphs of a file as items, in its order."""
        path = self._root / file.name.partition("_")[0] / f"{file.name}.md"
        text, state = _read(path)
        with self._lock:
            known = self._kept.get(file.name)
        if known is not None and known[0] == state:
            return known[1]
        items = () if self._is_anothers(text) else tuple(self._items(file, redact(text).text))
        with self._lock:
            self._kept[file.name] = (state, items)
        return items

    def _is_anothers(self, text: str) -> bool:
        stamp = read_stamp(text)
        return stamp is not None and self._space is not None and stamp.space != mark_of(self._space)

    def _items(self, file: NoteFile, text: str) -> Iterator[Item]:
        for number, paragraph in enumerate(paragraphs(text), start=1):
            flags = unseen_flags(paragraph)
            start, end = _own_days(paragraph, file)
            yield Item(
                id=f"{PREFIX}{file.name}#{number}",
                text=paragraph,
                stored_at=file.start,
                source=f"notes/{file.name}.md",
                source_class="import",
                writer="notes",
                level="raw",
                kind="note",
                trust=self._trust,
                occurred_at=start,
                occurred_end=end,
                tokens=-(-len(paragraph.encode()) // 4),
                flags=(*flags, "injection") if is_injection(paragraph) else flags,
            )

    def find(self, item_id: str) -> Item | None:
        """The paragraph with this id, if it is still there."""
        named = _ID.fullmatch(item_id)
        if named is None:
            return None
        file = next((file for file in self._all() if file.name == named[1]), None)
        if file is None:
            return None
        try:
            items = self.read(file)
        except Refused:
            return None  # no longer a note
        return next((item for item in items if item.id == item_id), None)


def _own_days(paragraph: str, file: NoteFile) -> tuple[datetime, datetime]:
    """The days that its lines begin with, as far as they are the file's; else its time."""
    days = []
    for told in _DATED.findall(paragraph):
        try:
            day = datetime.fromisoformat(told).replace(tzinfo=UTC)
        except ValueError:
            continue  # the 31st of June
        if file.start <= day < file.end:
            days.append(day)
    return (min(days), max(days) + timedelta(days=1)) if days else (file.start, file.end)


def paragraphs(text: str) -> list[str]:
    """What blank lines part; a heading by itself belongs to what follows it, and a comment
    is none."""
    parts: list[str] = []
    heading = ""
    for block in _BLANK.split(text.replace("\r\n", "\n")):
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


def _file_of(folder: str, entry: os.DirEntry[str]) -> NoteFile | None:
    name, ending = entry.name[:-3], entry.name[-3:]
    span = period_of(name) if ending == ".md" and name.startswith(f"{folder}_") else None
    if span is None or not entry.is_file(follow_symlinks=False):
        return None
    changed = datetime.fromtimestamp(entry.stat(follow_symlinks=False).st_mtime, UTC)
    return NoteFile(name, *span, changed)


def period_of(name: str) -> tuple[datetime, datetime] | None:
    """The time a note is about, by its name; None where the name is none of a note's."""
    parts = _NAME.fullmatch(name)
    try:
        return _period(*parts.groups()) if parts else None
    except ValueError:
        return None  # the 31st of June


def _period(  # noqa: PLR0917 - the parts of a name, in its order
    kind: str, year: str, month: str, day: str, week: str, quarter: str
) -> tuple[datetime, datetime] | None:
    if quarter or week:
        if kind != ("quarterly" if quarter else "weekly"):
            return None
        if quarter:
            return _quarter(int(year), int(quarter))
        return _days(date.fromisocalendar(int(year), int(week), 1), 7)
    first = date(int(year), int(month), int(day))
    if kind == "quarterly":
        return _quarter(first.year, (first.month + 2) // 3)
    return _days(first, 1 if kind == "daily" else 7)


def _days(first: date, count: int) -> tuple[datetime, datetime]:
    start = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return start, start + timedelta(days=count)


def _quarter(year: int, number: int) -> tuple[datetime, datetime]:
    start = datetime(year, 3 * number - 2, 1, tzinfo=UTC)
    after = date(year + number // 4, (3 * number) % 12 + 1, 1)
    return start, datetime(after.year, after.month, 1, tzinfo=UTC)


def _read(path: Path) -> tuple[str, tuple[int, int]]:
    """The text of a plain file, and what tells a later version of it apart."""
    try:
        handle = os.open(path, _CAUTIOUSLY)
    except OSError as error:
        raise Refused(f"the note {path.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        seen = os.fstat(file.fileno())
        if not S_ISREG(seen.st_mode):
            raise Refused(f"the note {path.name} is no plain file")
        content = file.read(FILE_BYTES + 1)
    if len(content) > FILE_BYTES:
        raise TooLarge(f"the note {path.name}", limit=FILE_BYTES, actual=seen.st_size)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadText(f"the note {path.name} is not UTF-8") from error
    if unkeepable(text):
        raise BadText(f"the note {path.name} holds characters that are none")
    return text, (seen.st_mtime_ns, seen.st_size)
