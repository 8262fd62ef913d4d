"""Claude Code's transcripts: a session's file, a project's folder, or ``~/.claude/projects``.

Turns are the same as those that the plugin captures while a session goes, and are known by
the same keys: whichever comes second stores nothing. Sub-agents' transcripts are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from recollect.errors import Refused
from recollect.sources.claude_code_drafts import voiced
from recollect.sources.claude_code_transcript import Turn, read_turns
from recollect.sources.folder import names_under, told
from recollect.sources.pieces import pieces_of
from recollect.sources.source import Entry, Gauge, Tie
from recollect.sources.values import line_of

_PART = re.compile(r"[/\\]")


class ClaudeCode:
    """One transcript, or all below a folder."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge

    def entries(self) -> Iterator[Entry]:
        """The turns of every session, in its order."""
        if not self._path.is_dir():
            yield from _of_file(self._path, told(self._path.name))
            return
        names = [name for name in names_under(self._path, (".jsonl",)) if not _is_aside(name)]
        self._gauge.total, self._gauge.unit = len(names), "files"
        for name in names:
            yield from _of_file(self._path / name, told(name))
            self._gauge.done += 1

    def ties(self) -> Iterator[Tie]:
        """None: a turn follows the one before, which its place says."""
        return iter(())


def _is_aside(name: str) -> bool:
    """Whether it is what a sub-agent did: a file named so, or in a folder named so."""
    *folders, file = name.split("/")
    return file.startswith("agent-") or "subagents" in folders


def _of_file(path: Path, name: str) -> Iterator[Entry]:
    try:
        for turn, draft in voiced(_sessions(path)):
            if draft is None:
                continue
            where = f"{name} turn {turn.number}"
            # Whose word it is says who imports it, not the file.
            plain = draft._replace(source="user", source_class="user", topic=_project(turn.cwd))
            for part, text in enumerate(pieces_of(draft.text)):
                key = f"{draft.key}/{part}" if part else draft.key
                yield Entry(where, plain._replace(text=text, key=key))
    except OSError as error:
        yield Entry(name, Refused(f"it cannot be read: {(error.strerror or str(error)).lower()}"))


def _sessions(path: Path) -> Iterator[Turn]:
    """Its turns; what does not say its session is of the one that the file is named after."""
    for turn in read_turns(path):
        yield turn if turn.session else turn._replace(session=told(path.stem)[:200])


def _project(cwd: str) -> str | None:
    """The project's name: the last part of the folder that the session worked in."""
    parts = [part for part in _PART.split(cwd) if part]
    return line_of(parts[-1]) or None if parts else None
