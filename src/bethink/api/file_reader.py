"""Read files, returning only the chunks that changed.

Content is compared, not modification times: two edits within one second, or an editor that
keeps the time, cannot hide a change. Code is split by its definitions, Markdown by headings,
everything else by windows of a hundred lines.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import PurePath
from typing import Literal

from bethink.code.files import FileContent
from bethink.code.symbols import find_symbols
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.model import ChunkDigest, FileSnapshot

WINDOW_LINES = 100  # lines
LONG_CLASS_LINES = 100  # lines; longer ones are cut by their methods

_MARKDOWN_SUFFIXES = frozenset((".md", ".markdown", ".mdx"))
_HEADING = lazy_pattern(r"(#{2,3}) +(.+?) *#* *")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})")
# What stands above a definition and belongs to it: comments and decorators.
_ABOVE = ("# ", "//", "/*", "*", "@", "#[")


class Chunk(NamedTuple):
    """A chunk of a file: its name, its lines (counted from 1) and their text."""

    id: str
    first_line: int
    last_line: int
    text: str

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _ChunkStart(NamedTuple):
    """The line a chunk begins at (counted from 0), and its name."""

    line: int
    name: str


def split_chunks(path: str, text: str) -> tuple[Chunk, ...]:
    """Split a file into named chunks, in order; together they are the whole text."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return ()
    suffix = PurePath(path).suffix.lower()
    is_markdown = suffix in _MARKDOWN_SUFFIXES
    starts = _markdown_starts(lines) if is_markdown else _symbol_starts(path, text, lines)
    if not starts:
        starts = [_ChunkStart(at, f"lines:{at + 1}") for at in range(0, len(lines), WINDOW_LINES)]
    return tuple(_chunks_from(starts, lines))


def _chunks_from(starts: Sequence[_ChunkStart], lines: Sequence[str]) -> Iterable[Chunk]:
    """Yield chunks from each start to the next; lines before the first are the preamble."""
    if starts[0].line > 0:
        starts = [_ChunkStart(0, "preamble"), *starts]
    seen: Counter[str] = Counter()
    for number, start in enumerate(starts):
        end = starts[number + 1].line if number + 1 < len(starts) else len(lines)
        seen[start.name] += 1
        name = start.name if seen[start.name] == 1 else f"{start.name}#{seen[start.name]}"
        yield Chunk(name, start.line + 1, end, "".join(lines[start.line : end]))


def _symbol_starts(path: str, text: str, lines: Sequence[str]) -> list[_ChunkStart]:
    """Find the definitions of a file that are in no other; long ones by what is in them."""
    # Symbols are counted by line feeds alone, not at form feeds and the like.
    if len(lines) != text.count("\n") + (not text.endswith("\n")):
        return []
    starts: list[_ChunkStart] = []
    outer = inner = 0  # where the last definition, and the last in it, end
    cut = False
    for symbol in find_symbols(path, text):
        if symbol.start >= outer:
            outer, cut = symbol.end, symbol.end - symbol.start > LONG_CLASS_LINES
        elif not cut or symbol.start < inner:
            continue
        else:
            inner = symbol.end
        line = symbol.start
        while line > (starts[-1].line + 1 if starts else 0):
            if not lines[line - 1].lstrip().startswith(_ABOVE):
                break
            line -= 1
        starts.append(_ChunkStart(line, symbol.name))
    return starts


def _markdown_starts(lines: Sequence[str]) -> list[_ChunkStart]:
    """Find second and third level headings outside code fences."""
    starts = []
    fence = ""
    for number, line in enumerate(lines):
        fence_match = _FENCE.match(line)
        if fence_match and (not fence or fence_match[1].startswith(fence)):
            fence = "" if fence else fence_match[1]
        elif not fence and (heading := _HEADING.fullmatch(line.rstrip())):
            starts.append(_ChunkStart(number, f"h{len(heading[1])}:{heading[2][:120]}"))
    return starts


ReadStatus = Literal["first_read", "forced_full", "unchanged", "unchanged_content", "modified"]


class ReadChunk(NamedTuple):
    """A chunk of the file; the text of an unchanged one is left out."""

    id: str
    state: Literal["added", "modified", "unchanged"]
    first_line: int
    last_line: int
    hash: str
    text: str | None = None


class SmartRead(NamedTuple):
    """A file's content, or its changes since the last read."""

    path: str
    status: ReadStatus
    chunks: tuple[ReadChunk, ...]
    removed: tuple[str, ...] = ()
    text: str | None = None
    tokens: int = 0
    whole_tokens: int = 0
    reads: int = 1
    notes: tuple[str, ...] = ()


def decode_text(file: FileContent) -> tuple[str, tuple[str, ...]]:
    """Decode the file's text, with a note where it was not all UTF-8."""
    if b"\0" in file.content:
        raise Refused(f"{file.path} is not a text file")
    try:
        return file.content.decode(), ()
    except UnicodeDecodeError:
        note = "not all of it is UTF-8; invalid bytes are shown as �"
        return file.content.decode(errors="replace"), (note,)


def snapshot_of(
    file: FileContent, chunks: tuple[Chunk, ...], now: datetime, reads: int
) -> FileSnapshot:
    """Build the stored snapshot of a file: hashes and names, no text."""
    digests = tuple(
        ChunkDigest(chunk.id, chunk.hash, chunk.first_line, chunk.last_line) for chunk in chunks
    )
    digest = hashlib.sha256(file.content).hexdigest()
    return FileSnapshot(str(file.path), digest, file.mtime_ns, file.size, digests, now, reads)


def read_smart(
    file: FileContent,
    before: FileSnapshot | None,
    now: datetime,
    *,
    force: bool = False,
    count: Callable[[str], int],
) -> tuple[SmartRead, FileSnapshot]:
    """Compare a file with its last snapshot; return the answer and the new snapshot."""
    text, notes = decode_text(file)
    chunks = split_chunks(str(file.path), text)
    after = snapshot_of(file, chunks, now, 1 if before is None else before.reads + 1)
    status = _status(before, after, force)
    full = status in ("first_read", "forced_full")
    known = {} if before is None else {mark.id: mark.hash for mark in before.chunks}
    read_chunks = tuple(_compare_chunk(chunk, known, full=full) for chunk in chunks)
    removed = tuple(name for name in known if name not in {chunk.id for chunk in chunks})
    returned = text if full else "".join(chunk.text or "" for chunk in read_chunks)
    answer = SmartRead(
        path=str(file.path),
        status=status,
        chunks=read_chunks,
        removed=removed,
        text=text if full else None,
        tokens=count(returned) if returned else 0,
        whole_tokens=count(text) if text else 0,
        reads=after.reads,
        notes=notes,
    )
    return answer, after


def _status(before: FileSnapshot | None, after: FileSnapshot, force: bool) -> ReadStatus:
    if force:
        return "forced_full"
    if before is None:
        return "first_read"
    if before.sha256 != after.sha256:
        return "modified"
    return "unchanged" if before.mtime_ns == after.mtime_ns else "unchanged_content"


def _compare_chunk(chunk: Chunk, known: dict[str, str], *, full: bool) -> ReadChunk:
    """Describe a chunk; its text is left out if unchanged or if the whole text is returned."""
    digest = chunk.hash
    same = known.get(chunk.id) == digest
    state: Literal["added", "modified", "unchanged"] = (
        "unchanged" if same else "modified" if chunk.id in known else "added"
    )
    text = None if same or full else chunk.text
    return ReadChunk(chunk.id, state, chunk.first_line, chunk.last_line, digest, text)
