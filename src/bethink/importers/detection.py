"""Detect which source a file or folder is, by its content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from bethink.errors import Refused
from bethink.importers import streams
from bethink.importers.abmind import BACKUP_MAGIC, find_abmind
from bethink.importers.chat_exports import ZIP_MAGIC, conversation_files, open_members
from bethink.importers.entry import Fields, ReadProgress
from bethink.importers.foreign_db import MAGIC, open_foreign
from bethink.importers.logseq import is_logseq
from bethink.importers.markdown import MARKDOWN_ENDINGS, parse_note
from bethink.importers.mem0 import LIST_KEYS
from bethink.importers.remind import find_remind_folder, is_remind_export
from bethink.importers.siftcoder import find_siftcoder

_MAX_LINES_READ = 30
_MAX_FILES_READ = 40
_OBSERVATION = re.compile(r"^[ \t]*- \[[^\[\]()\n]{2,60}\] \S", re.MULTILINE)
_RELATION = re.compile(r"^[ \t]*- [\w'\"-]{1,60} \[\[", re.MULTILINE)
# Tables that identify a program; the first entry with all its tables present counts.
_TABLES_BY_KIND = {
    "claude-mem": (("observations", "sdk_sessions"), ("session_summaries", "sdk_sessions")),
    "remind": (("concepts", "episodes"),),
    "linksee": (("memories", "entities", "file_snapshots"),),
    "abmind": (("extracted_memories", "messages"),),
    "siftcoder": (("events", "summaries"),),
    "memind": (("memory_item", "memory_raw_data"),),
    "mem0": (("history",), ("points",)),
}
_JSON_NAME = re.compile(r"\.json(?:\.gz)?$", re.IGNORECASE)
_TRANSCRIPT_KEYS = frozenset(
    {"sessionId", "parentUuid", "leafUuid", "isSidechain", "toolUseResult"}
)


# What identifies the JSON of a program; the first that recognises it counts.
_VALUES_BY_KIND: dict[str, Callable[[Fields], bool]] = {
    "chatgpt": lambda whole: isinstance(whole.get("mapping"), dict),
    "claude": lambda whole: whole.has_list("chat_messages"),
    "remind": is_remind_export,
    "mcp-memory": lambda whole: whole.has_list("entities") and "relations" in whole,
}


def detect_source(path: Path) -> tuple[str, Path]:
    """Detect the kind of source and the path to read: of a folder, perhaps a file in it.

    Raises Refused for a folder in which nothing is recognised.
    """
    if path.is_dir():
        return _detect_folder(path)
    return _detect_file(path), path


def _detect_file(path: Path) -> str:
    beginning = _read_beginning(path)
    if beginning.startswith(MAGIC):
        return _detect_database(path)
    if beginning.startswith(BACKUP_MAGIC):
        return "abmind"
    if beginning.startswith(ZIP_MAGIC):
        return _detect_conversations(path)
    if path.name.lower().endswith(MARKDOWN_ENDINGS):
        return "basic-memory" if _is_basic_memory([path]) else "markdown"
    kind = _detect_json(path, beginning) or streams.guess_text_format(beginning, path.name)
    if kind in ("lines", "text") and _JSON_NAME.search(path.name) and beginning.strip():
        raise streams.unknown_json(path.name)
    return kind


def _read_beginning(path: Path) -> bytes:
    with streams.open_decompressed(path) as file:
        return file.read(streams.BEGINNING_BYTES)


def _detect_json(path: Path, beginning: bytes) -> str:
    """Detect the source of JSON or JSON Lines; empty where it is unknown."""
    start = beginning.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start in (b"[", b'"'):
        first = _first_element(path)
        return _detect_value(first)
    if start != b"{":
        return ""
    for number, found in islice(streams.json_lines(path, ReadProgress()), _MAX_LINES_READ):
        kind = _detect_line(Fields(found)) or _detect_value(found)
        if kind:
            return kind
        if isinstance(found, Refused) and number == 1:
            return _detect_value(_first_element(path))
    return ""


def _first_element(path: Path) -> object:
    with streams.open_decompressed(path) as file:
        return next(streams.json_elements(file), (0, None))[1]


def _detect_line(line: Fields) -> str:
    if line.get("type") in ("entity", "relation") and ("entityType" in line or "to" in line):
        return "mcp-memory"
    return "claude-code" if _TRANSCRIPT_KEYS & line.given.keys() else ""


def _detect_value(value: object) -> str:
    whole = Fields(value)
    for kind, recognises in _VALUES_BY_KIND.items():
        if recognises(whole):
            return kind
    first = next((one for name in LIST_KEYS for one in whole.each(name)), whole)
    is_memory = isinstance(first.get("memory"), str) and ("id" in first or "hash" in first)
    return "mem0" if is_memory else ""


def _detect_database(path: Path) -> str:
    with open_foreign(path) as db:
        tables = db.tables().keys()
    for kind, known in _TABLES_BY_KIND.items():
        if any(tables >= set(names) for names in known):
            return kind
    raise Refused(
        f"{path.name} is not a database of a known program",
        remedy=f"known formats: {', '.join(_TABLES_BY_KIND)}; choose one with --from;"
        " spaces of earlier versions: bethink upgrade --from FOLDER",
    )


def _detect_conversations(path: Path) -> str:
    for stream in open_members(path, ReadProgress()):
        kind = _detect_value(next(streams.json_elements(stream), (0, None))[1])
        if kind:
            return kind
    raise Refused(f"{path.name} contains no conversations of a known format")


def _detect_folder(path: Path) -> tuple[str, Path]:
    if any(path.glob("spaces/*.db")):
        raise Refused(f"{path.name} holds spaces", remedy=f"bethink upgrade --from {path}")
    for kind, recognises in _FOLDERS_BY_KIND.items():
        if recognises(path):
            return kind, path
    if conversation_files(path):
        return _detect_conversations(path), path
    named = streams.file_names_under(path, MARKDOWN_ENDINGS)
    notes = [path / name for name in islice(named, _MAX_FILES_READ)]
    if notes and _is_basic_memory(notes):
        return "basic-memory", path
    named = streams.file_names_under(path, (".jsonl",))
    logs = (path / name for name in islice(named, _MAX_FILES_READ))
    if any(_try_detect(log) == "claude-code" for log in logs):
        return "claude-code", path
    if notes:
        return "markdown", path
    for file in _files_in(path):
        kind = _try_detect(file)
        if kind:
            return kind, file
    raise Refused(
        f"{path.name or path} is a directory without any known format",
        remedy="name a file in it, or choose its format with --from",
    )


# Programs that keep a folder of files; the first that recognises it counts.
_FOLDERS_BY_KIND: dict[str, Callable[[Path], bool]] = {
    "logseq": is_logseq,
    "remind": lambda path: find_remind_folder(path) is not None,
    "abmind": lambda path: _try_detect(find_abmind(path)) == "abmind",
    "siftcoder": lambda path: any(
        _try_detect(file) == "siftcoder" for file in find_siftcoder(path)[:_MAX_FILES_READ]
    ),
}


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield some files of a folder itself, or of a hidden one that a program keeps there."""
    for place in (folder, folder / ".remind", folder / ".linksee-memory"):
        if place.is_dir():
            with os.scandir(place) as found:
                names = sorted(
                    entry.name for entry in found if entry.is_file(follow_symlinks=False)
                )
            yield from (place / name for name in names[:_MAX_FILES_READ])


def _try_detect(file: Path | None) -> str:
    """Detect one of many files; empty where there is none, or it is unknown or unreadable."""
    if file is None:
        return ""
    try:
        beginning = _read_beginning(file)
        is_database = beginning.startswith(MAGIC)
        return _detect_database(file) if is_database else _detect_json(file, beginning)
    except (OSError, Refused):
        return ""


def _is_basic_memory(notes: list[Path]) -> bool:
    """Whether any of these notes has a permalink, observations or relations."""
    for path in notes:
        text = streams.read_text_file(path)
        if isinstance(text, Refused):
            continue
        note = parse_note(text)
        if "permalink" in note.head and ("title" in note.head or "type" in note.head):
            return True
        if _OBSERVATION.search(note.body) and _RELATION.search(note.body):
            return True
    return False
