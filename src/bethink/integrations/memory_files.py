"""A virtual folder of text files in a memory: every file a document, every edit a revision.

The answers and errors use the wording of the specification of Claude's memory tool, which
models know and act on. Paths below /memories are normalised, and whatever would leave that
folder in a file system is refused, however it is encoded: a path may be used elsewhere too.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable
from urllib.parse import unquote

from bethink.core.characters import find_unstorable, has_substance
from bethink.errors import Conflict, Refused
from bethink.ingest.redaction import redact
from bethink.integrations.documents import Document, DocumentCollection, Entry
from bethink.integrations.exact_json import check_size, to_exact_json
from bethink.memory import Memory

ROOT = "/memories"
_MAX_PATH_CHARS = 900
_MAX_DECODES = 8
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\\]")


def normalize_path(path: object) -> str:
    """Normalise a path: no doubled or trailing slash, no ``.``, NFC.

    Raises Refused, in the wording of the memory tool, if it leads out of /memories.
    """
    if not isinstance(path, str):
        raise Refused(f"A path must be a string, not {path!r:.40}")
    if not path.startswith(ROOT) or path[len(ROOT) :][:1] not in ("", "/"):
        raise Refused(f"Path must start with /memories, got: {path}")
    if len(path) > _MAX_PATH_CHARS:
        raise Refused(f"Path is longer than {_MAX_PATH_CHARS} characters")
    if find_unstorable(path) or _FORBIDDEN.search(path) or redact(path).kinds:
        raise Refused(f"Path {path!r} contains characters that are not allowed in a path")
    if any(_has_parent_segment(form) for form in _decoded_forms(path)):
        raise Refused(f"Path {path} would escape /memories directory")
    parts = [
        part for part in unicodedata.normalize("NFC", path).split("/") if part not in ("", ".")
    ]
    return "/" + "/".join(parts)


def _decoded_forms(path: str) -> list[str]:
    """Return the forms others might read a path as: percent-decoded and NFKC-normalised."""
    forms = [path]
    for _ in range(_MAX_DECODES):
        decoded = unquote(forms[-1])
        if decoded == forms[-1]:
            return [form for each in forms for form in (each, unicodedata.normalize("NFKC", each))]
        forms.append(decoded)
    raise Refused(f"Path {path} is percent-encoded too many times")


def _has_parent_segment(path: str) -> bool:
    return any(part.strip() == ".." or "\x00" in part for part in re.split(r"[/\\]", path))


MAX_LINES = 999_999
_WIDTH = len(str(MAX_LINES))
_SOURCE = "memory-tool"
_MAX_ATTEMPTS = 50
_MAX_PASSES = 4


class MemoryFiles:
    """The files below ``/memories`` in one space.

    Thread-safe, and several instances may use one space: an edit never overwrites a concurrent
    one.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._documents = DocumentCollection(memory, _SOURCE, _address_of)

    def view(self, path: str, view_range: list[int] | None = None) -> str:
        """Show a file with line numbers, or the contents of a folder, two levels deep."""
        at = normalize_path(path)
        found = self._documents.find(_address(at))
        if found is not None:
            return _format_file(path, file_content(found), view_range)
        files = self._files_below(at)
        if not files and at != ROOT:
            raise Refused(f"The path {path} does not exist. Please provide a valid path.")
        return _format_folder(at, files)

    def create(self, path: str, text: str) -> str:
        """Create a file; refuse if it exists already."""
        at = normalize_path(path)
        above = at
        while (above := above.rpartition("/")[0]) != ROOT and above:
            if self._documents.find(_address(above)) is not None:
                raise Refused(f"The path {above} is a file, not a directory")
        if at == ROOT or self._files_below(at):
            raise Refused(f"File {path} already exists")
        entry, note = _entry(at, text)
        try:
            self._documents.add(entry)
        except Conflict as error:
            raise Refused(f"File {path} already exists") from error
        return f"File created successfully at: {path}{note}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs once."""

        def change(content: str) -> tuple[str, int]:
            at = _unique_offset(path, content, old)
            return content[:at] + new + content[at + len(old) :], content.count("\n", 0, at)

        content, line, note = self._edit(path, change)
        lines = content.split("\n")
        shown = range(max(0, line - 2), min(len(lines), line + 3))
        snippet = "\n".join(_format_line(at + 1, lines[at]) for at in shown)
        message = "The memory file has been edited. "
        message += "Here is the snippet showing the change (with line numbers):"
        return f"{message}\n{snippet}{note}"

    def insert(self, path: str, line: object, text: str) -> str:
        """Insert a text after a line; 0 inserts before the first."""

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
        """Forget a file, or a folder with everything in it."""
        at = normalize_path(path)
        if at == ROOT:
            raise Refused("Cannot delete the /memories directory itself")
        found = self._files_at(at)
        gone = [self._documents.remove(_address(each)) for each in found]
        if not any(gone):
            raise Refused(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Move a file or a folder to an unused path.

        If it is interrupted, files exist in both places rather than in neither.
        """
        source, goal = normalize_path(old), normalize_path(new)
        if source == ROOT:
            raise Refused("Cannot rename the /memories directory itself")
        found = self._files_at(source)
        if goal == ROOT or self._files_at(goal):
            raise Refused(f"The destination {new} already exists")
        if not found:
            raise Refused(f"The path {old} does not exist")
        if goal.startswith(f"{source}/"):
            raise Refused(f"The destination {new} is inside {old}")
        moved = [
            _entry(goal + at.removeprefix(source), file_content(document), moved_from=document)[0]
            for at, document in found.items()
        ]
        self._documents.put_many(moved)
        for at, document in found.items():
            self._documents.remove(_address(at), expected=document)
        return f"Successfully renamed {old} to {new}"

    def clear(self) -> str:
        """Forget every file."""
        for at in self._files_below(ROOT):
            self._documents.remove(_address(at))
        return "All memory cleared"

    def _edit(self, path: str, change: Callable[[str], tuple[str, int]]) -> tuple[str, int, str]:
        """Apply an edit; return the new content, the changed line and a note for the writer."""
        at = normalize_path(path)
        for _ in range(_MAX_ATTEMPTS):
            found = self._documents.find(_address(at))
            if found is None and (at == ROOT or self._files_below(at)):
                raise Refused(f"The path {path} is not a file.")
            if found is None:
                raise Refused(f"The path {path} does not exist. Please provide a valid path.")
            content, line = change(file_content(found))
            entry, note = _entry(at, content)
            try:
                done = self._documents.put(entry, expected=found)
            except Conflict:
                continue  # changed by another writer: retry on the new content
            return file_content(done), line, note
        raise Refused(f"The file {path} has too many concurrent editors; try again")

    def _files_at(self, at: str) -> dict[str, Document]:
        found = self._documents.find(_address(at))
        return {at: found} if found is not None else self._files_below(at)

    def _files_below(self, folder: str) -> dict[str, Document]:
        every = self._documents.list_live(sources=(_SOURCE,))
        files = {document.about["path"]: document for document in every}
        return {at: files[at] for at in sorted(files) if at.startswith(f"{folder}/")}


def file_content(document: Document) -> str:
    """Return the exact content of a file."""
    if document.is_text:
        return document.body
    content: str = json.loads(document.body)
    return content


def _address_of(document: Document) -> str | None:
    path = document.about.get("path")
    try:
        is_text = isinstance(path, str) and isinstance(file_content(document), str)
        return _address(path) if is_text and normalize_path(path) == path else None
    except (ValueError, Refused):
        return None


def _address(path: str) -> str:
    return hashlib.sha256(path.encode()).hexdigest()[:40]


def _entry(path: str, text: object, *, moved_from: Document | None = None) -> tuple[Entry, str]:
    """Convert a file to a document; return it with a note for the writer."""
    if not isinstance(text, str):
        raise Refused(f"The content of a file must be a string, not {text!r:.40}")
    content, kinds = _redact_text(text)
    check_size(content, f"The file {path}")
    about = {"path": path}
    if moved_from is not None:
        about["moved_from"] = moved_from.item.id
    # A file may be empty, or not valid as the text of a memory: then it is stored in metadata.
    odd = not has_substance(content) or find_unstorable(content) is not None
    name = path.removeprefix(f"{ROOT}/")
    entry = Entry(
        _address(path),
        f"The file {name} has no indexable text" if odd else content,
        to_exact_json(content).text if odd else None,
        source=_SOURCE,
        topic=name,
        about=about,
    )
    note = f"\nNote: secrets are not stored; placeholders replace them ({', '.join(kinds)})."
    return entry, note if kinds else ""


def _redact_text(text: str) -> tuple[str, tuple[str, ...]]:
    if find_unstorable(text) is not None:
        kept = to_exact_json(text, "The file")
        return kept.value, kept.redacted
    kinds: dict[str, None] = {}
    for _ in range(_MAX_PASSES):
        cleaned = redact(text)
        if not cleaned.kinds:
            return text, tuple(kinds)
        kinds.update(dict.fromkeys(cleaned.kinds))
        text = cleaned.text
    raise Refused("The text contains a secret that cannot be removed")


def _unique_offset(path: str, content: str, old: object) -> int:
    if not isinstance(old, str) or not old:
        raise Refused("`old_str` must be a non-empty string")
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


def _format_file(path: str, content: str, view_range: list[int] | None) -> str:
    lines = content.split("\n")
    if len(lines) > MAX_LINES:
        raise Refused(f"File {path} exceeds maximum line limit of 999,999 lines.")
    first, last = 1, len(lines)
    if view_range is not None:
        if len(view_range) != 2 or not all(isinstance(each, int) for each in view_range):
            raise Refused(
                f"Invalid `view_range` parameter: {view_range}. It must be two line numbers."
            )
        first = max(1, view_range[0])
        last = len(lines) if view_range[1] == -1 else view_range[1]
    shown = [
        _format_line(first + place, line) for place, line in enumerate(lines[first - 1 : last])
    ]
    return f"Here's the content of {path} with line numbers:\n" + "\n".join(shown)


def _format_line(number: int, line: str) -> str:
    return f"{number:>{_WIDTH}}\t{line}"


def _format_folder(folder: str, files: dict[str, Document]) -> str:
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    total = 0
    for at, document in files.items():
        parts = tuple(at.removeprefix(f"{folder}/").split("/"))
        size = len(file_content(document).encode(errors="surrogatepass"))
        total += size
        for depth in range(1, min(len(parts), 2) + 1):
            if parts[depth - 1].startswith("."):
                break
            sizes[parts[:depth]] = sizes.get(parts[:depth], 0) + size
            if depth < len(parts):
                folders.add(parts[:depth])
    title = "Here're the files and directories up to 2 levels deep in "
    lines = [f"{title}{folder}, excluding hidden items:", f"{_format_size(total)}\t{folder}"]
    for parts in sorted(sizes):
        end = "/" if parts in folders else ""
        lines.append(f"{_format_size(sizes[parts])}\t{folder}/{'/'.join(parts)}{end}")
    return "\n".join(lines)


def _format_size(size: int) -> str:
    unit = 0
    number = float(size)
    while number >= 1024 and unit < 3:
        number /= 1024
        unit += 1
    shown = f"{number:.0f}" if number == int(number) else f"{number:.1f}"
    return f"{shown}{'BKMG'[unit]}"
