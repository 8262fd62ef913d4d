"""Reads a Claude Code transcript: what the user said, and what the agent answered in the end.

A transcript is JSON Lines, one entry a line, written on while the session goes. Read line
by line and never whole; what is broken, half written, too long or of an unknown type is
passed over. Left out is what nobody said: tool results, thinking, the words between two
tools, side chains, what the host put in and summaries of what came before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from recollect.model import Operation
from recollect.sources.said.fences import fenced_texts
from recollect.sources.said.wrappers import keepable, spoken

LONGEST_LINE = 16 * 1024 * 1024
_GIVEN_KEPT = 256 * 1024  # characters of what Recollect gave, kept beside one turn
_UNSAID = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly",
           "isApiErrorMessage")  # fmt: skip
_EDITING: dict[str, tuple[str, Operation]] = {
    "Edit": ("file_path", "edit"),
    "MultiEdit": ("file_path", "edit"),
    "Write": ("file_path", "write"),
    "NotebookEdit": ("notebook_path", "edit"),
}
_Entry = dict[str, Any]


class Touch(NamedTuple):
    """A file that a tool was called to change."""

    path: str
    operation: Operation
    at: datetime | None
    id: str


class Turn(NamedTuple):
    """One turn: a user's prompt, or some of the agent's final words, with the files it
    changed on the way there (``text`` is empty where it changed files and said nothing).

    ``number`` counts from 1 in the transcript. ``given`` are texts that Recollect itself
    put before the agent since the turn before. ``start`` is the byte in the file at which
    the turn stands, from where it can be read again.
    """

    who: Literal["user", "assistant"]
    text: str
    at: datetime | None
    uuid: str
    session: str
    number: int
    cwd: str = ""
    edits: tuple[Touch, ...] = ()
    given: tuple[str, ...] = ()
    start: int = 0


def read_turns(path: Path, *, start: int = 0, number: int = 1) -> Iterator[Turn]:
    """The turns of a transcript, oldest first; ``start`` and ``number`` begin at a
    turn where those are known. Raises OSError where the file cannot be read.

    At the end of the file the agent's words so far count as its last.
    """
    with path.open("rb") as file:
        reading = _Reading(number)
        for entry, begin in _entries(file, start):
            if begin >= start:
                yield from reading.heard(entry, begin)
            else:
                reading.keep_given(entry)
        yield from reading.finished()


def edits_in(name: str, told: object, at: datetime | None, call: str) -> tuple[Touch, ...]:
    """The file a tool of this name changes when it is called so; none for other tools."""
    place = _EDITING.get(name)
    if place is None or not isinstance(told, dict):
        return ()
    path = told.get(place[0])
    named = keepable(path) if isinstance(path, str) else ""
    return (Touch(named, place[1], at, call),) if named else ()


def _entries(file: BinaryIO, start: int) -> Iterator[tuple[_Entry, int]]:
    """Entries that are JSON objects, each with where it begins.

    Before ``start`` only those in which Recollect may have given something.
    """
    begin = 0
    while line := file.readline(LONGEST_LINE):
        end = begin + len(line)
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            end += _rest(file)
        elif b"<<end " in line or (begin >= start and _may_be_said(line)):
            entry = _entry(line)
            if entry is not None:
                yield entry, begin
        begin = end


def _may_be_said(line: bytes) -> bool:
    # Much of a transcript is none of these: not looking closer is what makes reading fast.
    return b'"user"' in line or b'"assistant"' in line or b'"queued_command"' in line


def _rest(file: BinaryIO) -> int:
    """Reads past what is left of a line that is too long; gives how much that was."""
    passed = 0
    while part := file.readline(LONGEST_LINE):
        passed += len(part)
        if part.endswith(b"\n"):
            break
    return passed


def _entry(line: bytes) -> _Entry | None:
    try:
        entry = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


class _Said(NamedTuple):
    """Words of the agent that may be its last, and the entry they stand in."""

    text: str
    entry: _Entry
    start: int


@dataclass(slots=True)
class _Reading:
    """What has been read and not been told yet: the agent's turn, while it goes on."""

    number: int
    words: list[_Said] = field(default_factory=list)
    edits: list[Touch] = field(default_factory=list)
    editing: _Said | None = None
    given: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def heard(self, entry: _Entry, start: int) -> Iterator[Turn]:
        """Turns that are complete now that this entry was read."""
        self.keep_given(entry)
        self._drop_failed(entry)
        entry = _sent(entry)
        uuid = entry.get("uuid")
        if not isinstance(uuid, str) or not uuid or uuid in self.seen:
            return
        if entry.get("type") == "assistant" and not _unsaid(entry):
            self.seen.add(uuid)
            self._go_on(entry, start)
        elif entry.get("type") == "user" and (text := _prompt(entry)):
            self.seen.add(uuid)
            yield from self.finished()
            yield self._turn("user", _Said(text, entry, start))

    def finished(self) -> Iterator[Turn]:
        """The agent's turns, now that nothing can be added to them."""
        if not self.words and self.edits and self.editing is not None:
            self.words = [self.editing]
        for said in self.words:
            yield self._turn("assistant", said, tuple(self.edits))
            self.edits = []
        self.words, self.edits, self.editing = [], [], None

    def keep_given(self, entry: _Entry) -> None:
        """Notes what Recollect gave the agent, wherever in an entry it stands."""
        # An agent that quotes a fence has not been given anything by that.
        if entry.get("type") == "assistant":
            return
        for text in _strings(entry):
            for body in fenced_texts(text) if "<<end " in text else ():
                if len(body) <= _GIVEN_KEPT and body not in self.given:
                    self.given.append(body)
        # What was given last is the likeliest to be repeated.
        while sum(map(len, self.given)) > _GIVEN_KEPT:
            del self.given[0]

    def _go_on(self, entry: _Entry, start: int) -> None:
        said: list[str] = []
        for block in _blocks(entry):
            kind = block.get("type")
            if kind == "tool_use":
                # What was said before a tool was called was not the last word.
                self.words, said = [], []
                self._keep_edits(block, entry, start)
            elif kind == "text" and isinstance(block.get("text"), str):
                said.append(spoken(block["text"]))
        if text := "\n\n".join(filter(None, said)):
            self.words.append(_Said(text, entry, start))

    def _keep_edits(self, block: _Entry, entry: _Entry, start: int) -> None:
        call = keepable(str(block.get("id") or ""))
        found = edits_in(str(block.get("name")), block.get("input"), _moment(entry), call)
        if found:
            self.edits += found
            self.editing = _Said("", entry, start)

    def _drop_failed(self, entry: _Entry) -> None:
        """An edit that was refused or went wrong did not happen."""
        if not self.edits or entry.get("type") != "user":
            return
        failed = [block.get("tool_use_id") for block in _blocks(entry) if block.get("is_error")]
        self.edits = [edit for edit in self.edits if edit.id not in failed]

    def _turn(
        self, who: Literal["user", "assistant"], said: _Said, edits: tuple[Touch, ...] = ()
    ) -> Turn:
        turn = Turn(
            who=who,
            text=said.text,
            at=_moment(said.entry),
            uuid=keepable(said.entry["uuid"]),
            session=_word(said.entry, "sessionId"),
            number=self.number,
            cwd=_word(said.entry, "cwd"),
            edits=edits,
            given=tuple(self.given),
            start=said.start,
        )
        self.number, self.given = self.number + 1, []
        return turn


def _unsaid(entry: _Entry) -> bool:
    return any(entry.get(name) for name in _UNSAID)


def _prompt(entry: _Entry) -> str:
    """What the user said in an entry; empty where it was not the user who spoke."""
    origin = entry.get("origin")
    human = origin.get("kind") in (None, "human") if isinstance(origin, dict) else True
    if _unsaid(entry) or not human or entry.get("promptSource") == "system":
        return ""
    if entry.get("toolUseResult") is not None or entry.get("sourceToolUseID"):
        return ""
    blocks = _blocks(entry)
    if any(block.get("type") == "tool_result" for block in blocks):
        return ""
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n\n".join(said for text in texts if (said := spoken(text)))


def _sent(entry: _Entry) -> _Entry:
    """A prompt that was typed while the agent worked is kept as an attachment: here it is
    an entry like any other prompt."""
    told = entry.get("attachment")
    if entry.get("type") != "attachment" or not isinstance(told, dict):
        return entry
    if told.get("type") != "queued_command" or told.get("commandMode") not in (None, "prompt"):
        return entry
    inner = {key: told.get(key) for key in ("origin", "isMeta")}
    said = {"role": "user", "content": told.get("prompt")}
    return {**entry, **inner, "type": "user", "message": said}


def _blocks(entry: _Entry) -> list[_Entry]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [one for one in content if isinstance(one, dict)] if isinstance(content, list) else []


def _strings(value: object) -> Iterator[str]:
    """Every string inside a JSON value."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _word(entry: _Entry, name: str) -> str:
    value = entry.get(name)
    return keepable(value)[:1000] if isinstance(value, str) else ""


def _moment(entry: _Entry) -> datetime | None:
    """When an entry was written; None where it does not say so in words one can read."""
    told = entry.get("timestamp")
    if not isinstance(told, str):
        return None
    try:
        at = datetime.fromisoformat(told)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
