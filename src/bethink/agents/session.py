"""State of an agent session: its project, what it was given, how far it was captured."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bethink.config.paths import make_private_folder
from bethink.config.settings import Settings, load_settings
from bethink.config.spaces import data_dir
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple

if TYPE_CHECKING:
    from bethink.memory import Memory


PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


def session_settings(env: Mapping[str, str], cwd: str, *, host: str) -> Settings | None:
    """Load the settings of a session's project.

    The project is the one the host names, else the working directory. None where that is
    no folder: another project's memory would be worse than none. The actor is the host,
    unless it is configured.
    """
    named = env.get(PROJECT_VARIABLE) or cwd
    if not named or "\0" in named or not Path(named).is_dir():
        return None
    settings = load_settings(Path(named), env)
    return settings if settings.explicit("actor") else settings.changed(actor=host)


def resolve_in_project(path: str, cwd: str, root: Path | None) -> Path | None:
    """Resolve a path; None unless it is in the project after following links."""
    if root is None or "\0" in path or "\0" in cwd:
        return None
    absolute = Path(cwd) / path
    if not absolute.is_absolute():
        return None
    # Not Path.resolve: before Python 3.13 it raises where links lead in a circle.
    real = Path(os.path.realpath(absolute))
    return real if real.is_relative_to(os.path.realpath(root)) else None


MAX_SESSION_FILES = 200  # files; the least recently changed are removed first
MAX_GIVEN_IDS = 500
_StatePart = Literal["given", "captured", "calls", "shown"]
_RECENT_CALLS = 12


class CaptureMark(NamedTuple):
    """How far a transcript was captured.

    The byte offset of its last prompt, after which there may be new turns, and the ids of
    the captured turns from there on.
    """

    start: int = 0
    turns: tuple[str, ...] = ()


class CallMarks(NamedTuple):
    """The calls of tools in a session, as far as hooks saw them.

    ``notes`` counts the unasked ones, ``recent`` are the files edited by the last calls, "" for
    a call that edits none.
    """

    notes: int = 0
    recent: tuple[str, ...] = ()


class SessionState:
    """The stored state of one session; a session without a name has none."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        import hashlib  # start-up time: most prompts end before

        self.key = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]
        self._has_name = bool(name)

    @property
    def given(self) -> tuple[str, ...]:
        """The ids of memories that were already given to this session."""
        ids = self._read("given")
        return tuple(id_ for id_ in ids if isinstance(id_, str)) if isinstance(ids, list) else ()

    def add_given(self, ids: Iterable[str]) -> None:
        """Record memories as given."""
        self._write("given", [*dict.fromkeys((*self.given, *ids))][-MAX_GIVEN_IDS:])

    def clear_given(self) -> None:
        """Clear the given ids: the agent's context was cleared or compacted."""
        if self.given:
            self._write("given", [])

    @property
    def captured(self) -> CaptureMark:
        """How far the transcript was captured."""
        match self._read("captured"):
            case [int(start), [*turns]] if start >= 0 and all(isinstance(t, str) for t in turns):
                return CaptureMark(start, tuple(turns))
            case _:
                return CaptureMark()

    def set_captured(self, mark: CaptureMark) -> None:
        """Record how far the transcript was captured."""
        if mark != self.captured:
            self._write("captured", mark)

    def count_call(self, edited: str) -> CallMarks:
        """Count a call of a tool, and the file that it edited; return all up to it."""
        match self._read("calls"):
            case [int(notes), [*recent]]:
                marks = CallMarks(notes, (*map(str, recent),))
            case _:
                marks = CallMarks()
        marks = marks._replace(recent=(*marks.recent, edited)[-_RECENT_CALLS:])
        self._write("calls", marks)
        return marks

    def count_note(self, marks: CallMarks) -> None:
        """Record that a note was given with this call."""
        self._write("calls", marks._replace(notes=marks.notes + 1))

    @property
    def arm(self) -> Literal["on", "off"]:
        """The half of an experiment that the session belongs to."""
        return "off" if int(self.key[0], 16) % 2 else "on"

    def add_shown(
        self, rows: Iterable[tuple[str, str, int, str]], transcript: str, arm: str
    ) -> None:
        """Record which memories a hook showed (id, event, tokens, time), or would have shown."""
        state = self._read("shown")
        before = state["shown"] if isinstance(state, dict) and "shown" in state else []
        shown = [*before, *rows][-MAX_GIVEN_IDS:]
        self._write("shown", {"transcript": transcript, "arm": arm, "shown": shown})

    def _path(self, part: _StatePart) -> Path:
        return self._folder / f"{self.key}.{part}.json"

    def _read(self, part: _StatePart) -> Any:
        try:
            return json.loads(self._path(part).read_bytes()) if self._has_name else None
        except (OSError, ValueError, RecursionError):
            return None  # missing or damaged: treat everything as new

    def _write(self, part: _StatePart, value: object) -> None:
        if not self._has_name:
            return
        make_private_folder(self._folder)
        path = self._path(part)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(value, file)
        draft.replace(path)
        self._remove_oldest()

    def _remove_oldest(self) -> None:
        entries = os.scandir(self._folder)
        files = [entry for entry in entries if entry.is_file(follow_symlinks=False)]
        if len(files) <= 2 * MAX_SESSION_FILES:
            return
        files.sort(key=lambda file: file.stat().st_mtime)
        for old in files[: len(files) - MAX_SESSION_FILES]:
            Path(old.path).unlink(missing_ok=True)


def session_state(memory: Memory, name: str) -> SessionState:
    """Return the state of one of a memory's sessions."""
    return SessionState(sessions_folder(memory.settings, memory.store.space), name)


def sessions_folder(settings: Settings, space: str) -> Path:
    """Folder of the session states of a space."""
    return data_dir(settings) / space / "sessions"


_QUOTE_MARKER = lazy_pattern(r"^<<[a-z]+ ([0-9a-f]{16})>>$", re.MULTILINE)


def quoted_ids(context: str) -> tuple[str, ...]:
    """Extract the ids of the quoted memories: the first word of every head.

    No quoted text can pass for a head, since none contains the marker code.
    """
    opening = _QUOTE_MARKER.search(context)
    if opening is None:
        return ()
    heads = re.findall(rf"^\[{opening[1]} \d+\] (\S+) \|", context, re.MULTILINE)
    return tuple(heads)
