"""Says what a file or a folder holds, by what is in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.errors import Refused
from recollect.sources.archive import ZIP, conversation_files, opened
from recollect.sources.folder import names_under, read_text
from recollect.sources.foreign_db import MAGIC, open_foreign
from recollect.sources.front_matter import note_of
from recollect.sources.json_elements import elements
from recollect.sources.json_lines import json_lines
from recollect.sources.markdown import ENDINGS
from recollect.sources.mem0 import LISTS
from recollect.sources.source import Gauge
from recollect.sources.stream import BEGINNING, guess_format, unpacked
from recollect.sources.values import list_of, mapping_of

_LINES_READ = 30
_FILES_READ = 40
_OBSERVED = re.compile(r"^[ \t]*- \[[^\[\]()\n]{2,60}\] \S", re.MULTILINE)
_RELATED = re.compile(r"^[ \t]*- [\w'\"-]{1,60} \[\[", re.MULTILINE)
# Tables that only one program has; the first whose tables are all there is meant.
_TABLES = {
    "claude-mem": (("observations", "sdk_sessions"), ("session_summaries", "sdk_sessions")),
    "remind": (("concepts", "episodes"),),
    "mem0": (("history",), ("points",)),
}
_WHOLE_JSON = re.compile(r"\.json(?:\.gz)?$", re.IGNORECASE)
_TRANSCRIPT = frozenset({"sessionId", "parentUuid", "leafUuid", "isSidechain", "toolUseResult"})


def recognise(path: Path) -> tuple[str, Path]:
    """The kind of source, and the path to read: of a folder, perhaps a file in it.
    Raises Refused where it is a folder of nothing that is known."""
    if path.is_dir():
        return _folder(path)
    return _file(path), path


def _file(path: Path) -> str:
    beginning = _beginning(path)
    if beginning.startswith(MAGIC):
        return _database(path)
    if beginning.startswith(ZIP):
        return _conversations(path)
    if path.name.lower().endswith(ENDINGS):
        return "basic-memory" if _is_basic_memory([path]) else "markdown"
    kind = _json(path, beginning) or guess_format(beginning)
    if kind in ("lines", "text") and _WHOLE_JSON.search(path.name) and beginning.strip():
        raise Refused(
            f"{path.name} is JSON of no program that is known, or broken",
            remedy="--from says which program's it is; --from lines takes it as plain text",
        )
    return kind


def _beginning(path: Path) -> bytes:
    with unpacked(path) as file:
        return file.read(BEGINNING)


def _json(path: Path, beginning: bytes) -> str:
    """What a file of JSON, or of lines of it, holds; empty where that is none we know."""
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start == b"[":
        with unpacked(path) as file:
            return _of_value(next(elements(file), (0, None))[1])
    if start != b"{":
        return ""
    for line in islice(json_lines(path, Gauge()), _LINES_READ):
        kind = _of_line(mapping_of(line.found)) or _of_value(line.found)
        if kind:
            return kind
        if isinstance(line.found, Refused) and line.number == 1:
            with unpacked(path) as file:
                return _of_value(next(elements(file), (0, None))[1])
    return ""


def _of_line(line: dict[str, Any]) -> str:
    if line.get("type") in ("entity", "relation") and ("entityType" in line or "to" in line):
        return "mcp-memory"
    return "claude-code" if _TRANSCRIPT & line.keys() else ""


def _of_value(value: Any) -> str:
    whole = mapping_of(value)
    if isinstance(whole.get("mapping"), dict):
        return "chatgpt"
    if isinstance(whole.get("chat_messages"), list):
        return "claude"
    if isinstance(whole.get("entities"), list) and "relations" in whole:
        return "mcp-memory"
    memories = [list_of(whole.get(name)) for name in LISTS if name in whole]
    first = mapping_of(next((one for listed in memories for one in listed), value))
    is_memory = isinstance(first.get("memory"), str) and ("id" in first or "hash" in first)
    return "mem0" if is_memory else ""


def _database(path: Path) -> str:
    with open_foreign(path) as db:
        tables = db.tables().keys()
    for kind, known in _TABLES.items():
        if any(tables >= set(names) for names in known):
            return kind
    raise Refused(
        f"{path.name} is a database of no program that is known",
        remedy="known are claude-mem, Remind and mem0; --from says which it is",
    )


def _conversations(path: Path) -> str:
    for member in opened(path, Gauge()):
        kind = _of_value(next(elements(member.stream), (0, None))[1])
        if kind:
            return kind
    raise Refused(f"{path.name} holds no conversations that are known")


def _folder(path: Path) -> tuple[str, Path]:
    if conversation_files(path):
        return _conversations(path), path
    notes = [path / name for name in islice(names_under(path, ENDINGS), _FILES_READ)]
    if notes and _is_basic_memory(notes):
        return "basic-memory", path
    logs = (path / name for name in islice(names_under(path, (".jsonl",)), _FILES_READ))
    if any(_known_in(log) == "claude-code" for log in logs):
        return "claude-code", path
    if notes:
        return "markdown", path
    for file in _files(path):
        kind = _known_in(file)
        if kind:
            return kind, file
    raise Refused(
        f"{path.name or path} is a directory of nothing that is known",
        remedy="name a file in it, or say what it is by --from",
    )


def _files(folder: Path) -> Iterator[Path]:
    """Some files that lie in a folder itself, or in a hidden one that a program keeps there."""
    for place in (folder, folder / ".remind"):
        if place.is_dir():
            with os.scandir(place) as found:
                names = sorted(one.name for one in found if one.is_file(follow_symlinks=False))
            yield from (place / name for name in names[:_FILES_READ])


def _known_in(file: Path) -> str:
    """What one of many files holds; empty where that is nothing we know, or may not know."""
    try:
        beginning = _beginning(file)
        is_database = beginning.startswith(MAGIC)
        return _database(file) if is_database else _json(file, beginning)
    except (OSError, Refused):
        return ""


def _is_basic_memory(notes: list[Path]) -> bool:
    """Whether any of these notes has an address, observations or relations of its kind."""
    for path in notes:
        text = read_text(path)
        if isinstance(text, Refused):
            continue
        note = note_of(text)
        if "permalink" in note.head and ("title" in note.head or "type" in note.head):
            return True
        if _OBSERVED.search(note.body) and _RELATED.search(note.body):
            return True
    return False
