"""A folder of text files that is a memory: every file a document, every change a revision.

What the commands answer and how they refuse is in the words that the memory tool of Claude
is specified with: a model knows them and acts on them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from recollect.errors import Conflict, Refused
from recollect.ingest.redact import redact
from recollect.integrations.document import Document, Entry
from recollect.integrations.documents import Documents
from recollect.integrations.exact import check_size, exactly
from recollect.integrations.paths import ROOT, normal
from recollect.memory import Memory
from recollect.text import has_substance, unkeepable

MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
_SOURCE = "memory-tool"
_MOST_TRIES = 50
_MOST_PASSES = 4


class MemoryFiles:
    """The files under ``/memories`` of one space. Safe to share between threads, and to
    have several of on one space: an edit never overwrites another that came in between."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._documents = Documents(memory, _SOURCE, _address_of)

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """A file with line numbers, or what is in a folder, two levels deep."""
        at = normal(path)
        found = self._documents.find(_address(at))
        if found is not None:
            return _shown(path, content_of(found), view_range)
        files = self._beneath(at)
        if not files and at != ROOT:
            raise Refused(f"The path {path} does not exist. Please provide a valid path.")
        return _listing(at, files)

    def create(self, path: str, text: str) -> str:
        """Makes a file; one that is there already stays as it is."""
        at = normal(path)
        above = at
        while (above := above.rpartition("/")[0]) != ROOT and above:
            if self._documents.find(_address(above)) is not None:
                raise Refused(f"The path {above} is a file, not a directory")
        if at == ROOT or self._beneath(at):
            raise Refused(f"File {path} already exists")
        entry, note = _entry(at, text)
        try:
            self._documents.add(entry)
        except Conflict as error:
            raise Refused(f"File {path} already exists") from error
        return f"File created successfully at: {path}{note}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replaces a text that occurs once."""

        def change(content: str) -> tuple[str, int]:
            at = _only_place(path, content, old)
            return content[:at] + new + content[at + len(old) :], content.count("\n", 0, at)

        content, line, note = self._edit(path, change)
        lines = content.split("\n")
        shown = range(max(0, line - 2), min(len(lines), line + 3))
        snippet = "\n".join(_numbered(at + 1, lines[at]) for at in shown)
        told = "The memory file has been edited. "
        told += "Here is the snippet showing the change (with line numbers):"
        return f"{told}\n{snippet}{note}"

    def insert(self, path: str, line: object, text: str) -> str:
        """Puts a text after a line; 0 is before the first."""

        def change(content: str) -> tuple[str, int]:
            lines = content.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not isinstance(line, int) or isinstance(line, bool) or not 0 <= line <= len(lines):
                raise Refused(
                    f"Invalid `insert_line` parameter: {line}. "
                    f"It should be within the range [0, {len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            joined = "\n".join(lines)
            return (joined if joined.endswith("\n") else joined + "\n"), line

        _, _, note = self._edit(path, change)
        return f"The file {path} has been edited.{note}"

    def delete(self, path: str) -> str:
        """Forgets a file, or a folder with all that is in it."""
        at = normal(path)
        if at == ROOT:
            raise Refused("Cannot delete the /memories directory itself")
        found = self._at_or_beneath(at)
        gone = [self._documents.remove(_address(each)) for each in found]
        if not any(gone):
            raise Refused(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Moves a file or a folder to where nothing is. Should it be cut off in the middle,
        there are files in both places rather than in none."""
        source, goal = normal(old), normal(new)
        if source == ROOT:
            raise Refused("Cannot rename the /memories directory itself")
        found = self._at_or_beneath(source)
        if goal == ROOT or self._at_or_beneath(goal):
            raise Refused(f"The destination {new} already exists")
        if not found:
            raise Refused(f"The path {old} does not exist")
        if goal.startswith(f"{source}/"):
            raise Refused(f"The destination {new} is inside {old}")
        moved = [
            _entry(goal + at.removeprefix(source), content_of(one), moved_from=one)[0]
            for at, one in found.items()
        ]
        self._documents.put_many(moved)
        for at, one in found.items():
            self._documents.remove(_address(at), only=one)
        return f"Successfully renamed {old} to {new}"

    def clear(self) -> str:
        """Forgets every file."""
        for at in self._beneath(ROOT):
            self._documents.remove(_address(at))
        return "All memory cleared"

    def _edit(self, path: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int, str]:
        """The content after a change, the line it is in, and what should be known of it."""
        at = normal(path)
        for _ in range(_MOST_TRIES):
            found = self._documents.find(_address(at))
            if found is None and (at == ROOT or self._beneath(at)):
                raise Refused(f"The path {path} is not a file.")
            if found is None:
                raise Refused(f"The path {path} does not exist. Please provide a valid path.")
            content, line = change(content_of(found))
            entry, note = _entry(at, content)
            try:
                done = self._documents.put(entry, only=found)
            except Conflict:
                continue  # somebody else changed it: the change is made to what it is now
            return content_of(done), line, note
        raise Refused(f"The file {path} is being edited by too many at once; try again")

    def _at_or_beneath(self, at: str) -> dict[str, Document]:
        found = self._documents.find(_address(at))
        return {at: found} if found is not None else self._beneath(at)

    def _beneath(self, folder: str) -> dict[str, Document]:
        every = self._documents.each(sources=(_SOURCE,))
        files = {one.about["path"]: one for one in every}
        return {at: files[at] for at in sorted(files) if at.startswith(f"{folder}/")}


def content_of(document: Document) -> str:
    """What is in a file, exactly."""
    if document.is_text:
        return document.body
    content: str = json.loads(document.body)
    return content


def _address_of(document: Document) -> str | None:
    path = document.about.get("path")
    try:
        is_text = isinstance(path, str) and isinstance(content_of(document), str)
        return _address(path) if is_text and normal(path) == path else None
    except (ValueError, Refused):
        return None


def _address(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:40]


def _entry(path: str, text: Any, *, moved_from: Document | None = None) -> tuple[Entry, str]:
    """A file as a document, and what its writer should know of it."""
    if not isinstance(text, str):
        raise Refused(f"The content of a file is a text, not {text!r:.40}")
    content, kinds = _without_secrets(text)
    check_size(content, f"The file {path}")
    about = {"path": path}
    if moved_from is not None:
        about["moved_from"] = moved_from.item.id
    # A file may be empty, or hold what no text of a memory may: then it is kept beside.
    odd = not has_substance(content) or unkeepable(content) is not None
    name = path.removeprefix(f"{ROOT}/")
    entry = Entry(
        _address(path),
        f"The file {name} has no words" if odd else content,
        exactly(content).text if odd else None,
        source=_SOURCE,
        topic=name,
        about=about,
    )
    return entry, _note(kinds)


def _note(kinds: tuple[str, ...]) -> str:
    if not kinds:
        return ""
    return f"\nNote: secrets are not stored; marks stand in their place ({', '.join(kinds)})."


def _without_secrets(text: str) -> tuple[str, tuple[str, ...]]:
    if unkeepable(text) is not None:
        kept = exactly(text, "The file")
        return kept.value, kept.redacted
    kinds: dict[str, None] = {}
    for _ in range(_MOST_PASSES):
        cleaned = redact(text)
        if not cleaned.kinds:
            return text, tuple(kinds)
        kinds.update(dict.fromkeys(cleaned.kinds))
        text = cleaned.text
    raise Refused("The text holds a secret that cannot be taken out of it")


def _only_place(path: str, content: str, old: Any) -> int:
    if not isinstance(old, str) or not old:
        raise Refused("`old_str` must be a text that is not empty")
    places = []
    at = content.find(old)
    while at >= 0:
        places.append(at)
        at = content.find(old, at + 1)
    if not places:
        raise Refused(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}."
        )
    if content.count(old) > 1:
        lines = ", ".join(str(content.count("\n", 0, place) + 1) for place in places)
        raise Refused(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` "
            f"in lines: {lines}. Please ensure it is unique"
        )
    return places[0]


def _shown(path: str, content: str, view_range: list[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > MOST_LINES:
        raise Refused(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2 or not all(isinstance(each, int) for each in view_range):
            raise Refused(f"Invalid `view_range` parameter: {view_range}. It takes two lines.")
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
    shown = [_numbered(first + place, line) for place, line in enumerate(lines[first - 1 : last])]
    return f"Here's the content of {path} with line numbers:\n" + "\n".join(shown)


def _numbered(number: int, line: str) -> str:
    return f"{number:>{_WIDTH}}\t{line}"


def _listing(folder: str, files: dict[str, Document]) -> str:
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for at, one in files.items():
        parts = tuple(at.removeprefix(f"{folder}/").split("/"))
        size = len(content_of(one).encode(errors="surrogatepass"))
        total += size
        for depth in range(1, min(len(parts), 2) + 1):
            if parts[depth - 1].startswith("."):
                break
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + size
            if depth < len(parts):
                folders.add(parts[:depth])
    told = "Here're the files and directories up to 2 levels deep in "
    lines = [f"{told}{folder}, excluding hidden items:", f"{_size(total)}\t{folder}"]
    for parts in sorted(sizes):
        end = "/" if parts in folders else ""
        lines.append(f"{_size(sizes[parts])}\t{folder}/{'/'.join(parts)}{end}")
    return "\n".join(lines)


def _size(size: int) -> str:
    unit = 0
    number = float(size)
    while number >= 1024 and unit < 3:
        number /= 1024
        unit += 1
    shown = f"{number:.0f}" if number == int(number) else f"{number:.1f}"
    return f"{shown}{'BKMG'[unit]}"
