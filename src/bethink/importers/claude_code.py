"""Claude Code transcripts: a session's file, a project's folder, or ``~/.claude/projects``.

A transcript is JSON Lines, appended to during the session. It is read line by line and
never whole; lines that are broken, half written, too long or of an unknown type are
skipped. A turn is a user prompt or the agent's final answer. Tool results, thinking,
text between two tool calls, side chains, host insertions and summaries are left out.

Turns are the same as those that the plugin captures during a session, and have the same
keys: importing after capturing stores nothing. Sub-agents' transcripts are left out.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Literal

from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.importers import turn_text
from bethink.importers.entry import Entry, Reader, line_of, split_text, time_of
from bethink.importers.streams import displayable_name, file_names_under, skip_line
from bethink.model import Draft, Operation

MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_GIVEN_CHARS = 256 * 1024  # characters of Bethink's own output kept with one turn
_HIDDEN_FLAGS = ("isMeta", "isSidechain", "isCompactSummary", "isVisibleInTranscriptOnly",
           "isApiErrorMessage")  # fmt: skip
_EDIT_TOOLS: dict[str, tuple[str, Operation]] = {
    "Edit": ("file_path", "edit"),
    "MultiEdit": ("file_path", "edit"),
    "Write": ("file_path", "write"),
    "NotebookEdit": ("notebook_path", "edit"),
}
_MESSAGE_MARKS = (b'"user"', b'"assistant"', b'"queued_command"')
_Entry = Json
_NAMED_ERROR = lazy_pattern(
    r"^(?:E\s{2,}|npm ERR!|(?:fatal|panic): )|(?i:\berror(?:\[\w+\])?: )"
    r"|[A-Z]\w*(?:Error|Exception)\b"
)


class ToolEdit(NamedTuple):
    """A file that a tool call changes."""

    path: str
    operation: Operation
    at: datetime | None
    id: str


class Turn(NamedTuple):
    """A user's prompt, or some of the agent's final text, with the files it changed.

    ``text`` is empty where the agent changed files and said nothing. ``number`` counts from
    1 in the transcript. ``given`` are texts that the memory itself put before the agent
    since the previous turn. ``start`` is the byte offset of the turn in the file, from
    where it can be read again.
    """

    who: Literal["user", "assistant"]
    text: str
    at: datetime | None
    uuid: str
    session: str
    number: int
    cwd: str = ""
    edits: tuple[ToolEdit, ...] = ()
    given: tuple[str, ...] = ()
    start: int = 0


def read_turns(path: Path, *, start: int = 0, number: int = 1) -> Iterator[Turn]:
    """Yield the turns of a transcript, oldest first.

    ``start`` and ``number`` resume at a known turn. Raises OSError where the file cannot be
    read. At the end of the file the agent's text so far counts as final.
    """
    with path.open("rb") as file:
        reading = _TurnCollector(number)
        for entry, begin in _read_entries(file, start):
            if begin >= start:
                yield from reading.feed(entry, begin)
            else:
                reading.collect_given(entry)
        yield from reading.flush()


class Command(NamedTuple):
    """A command of the agent, and whether the user said something since the one before it."""

    text: str
    failed: bool
    error: str = ""
    after_prompt: bool = False


def read_commands(path: Path, *, start: int = 0) -> Iterator[Command]:
    """Yield the shell commands of a transcript whose results it holds, in their order."""
    asked: dict[str, str] = {}
    prompted = False
    with path.open("rb") as file:
        for entry, begin in _read_entries(file, start):
            if begin < start or _is_hidden(entry):
                continue
            prompted |= entry.get("type") == "user" and bool(_user_prompt(entry))
            for block in _blocks(entry):
                given = block.get("input")
                if block.get("name") == "Bash" and isinstance(given, dict):
                    asked[str(block.get("id"))] = turn_text.storable_text(
                        str(given.get("command") or "")
                    )
                command = asked.pop(str(block.get("tool_use_id")), "")
                if command:
                    failed = bool(block.get("is_error"))
                    yield Command(command, failed, _error_line(block) if failed else "", prompted)
                    prompted = False


def _error_line(block: _Entry) -> str:
    """The last line that names an error, as counts of errors often follow it, or the last one."""
    lines = [one.strip() for text in _all_strings(block.get("content")) for one in text.split("\n")]
    named = [one for one in lines if _NAMED_ERROR.search(one)] or list(filter(None, lines)) or [""]
    return turn_text.storable_text(named[-1])[:300]


def tool_edits(
    name: str, tool_input: object, at: datetime | None, call: str
) -> tuple[ToolEdit, ...]:
    """Return the file that this tool call changes; none for other tools."""
    place = _EDIT_TOOLS.get(name)
    if place is None or not isinstance(tool_input, dict):
        return ()
    path = tool_input.get(place[0])
    named = turn_text.storable_text(path) if isinstance(path, str) else ""
    return (ToolEdit(named, place[1], at, call),) if named else ()


def _read_entries(file: BinaryIO, start: int) -> Iterator[tuple[_Entry, int]]:
    """Yield the entries that are JSON objects, each with its byte offset.

    Before ``start`` only those that may hold text given by the memory.
    """
    begin = 0
    while line := file.readline(MAX_LINE_BYTES):
        end = begin + len(line)
        if len(line) == MAX_LINE_BYTES and not line.endswith(b"\n"):
            end += skip_line(file, MAX_LINE_BYTES)
        # Most lines are none of these; skipping them early keeps reading fast.
        elif b"<<end " in line or (begin >= start and any(mark in line for mark in _MESSAGE_MARKS)):
            entry = _parse_entry(line)
            if entry is not None:
                yield entry, begin
        begin = end


def _parse_entry(line: bytes) -> _Entry | None:
    try:
        entry = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


class _AgentText(NamedTuple):
    """Text of the agent that may be its last, and the entry that holds it."""

    text: str
    entry: _Entry
    start: int


@dataclass(slots=True)
class _TurnCollector:
    """The agent's turn while it goes on: what was read and not yielded yet."""

    number: int
    words: list[_AgentText] = field(default_factory=list)
    edits: list[ToolEdit] = field(default_factory=list)
    editing: _AgentText | None = None
    given: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def feed(self, entry: _Entry, start: int) -> Iterator[Turn]:
        """Yield the turns that this entry completes."""
        self.collect_given(entry)
        self._drop_failed_edits(entry)
        entry = _unwrap_queued_prompt(entry)
        uuid = entry.get("uuid")
        if not isinstance(uuid, str) or not uuid or uuid in self.seen:
            return
        if entry.get("type") == "assistant" and not _is_hidden(entry):
            self.seen.add(uuid)
            self._add_agent_entry(entry, start)
        elif entry.get("type") == "user" and (text := _user_prompt(entry)):
            self.seen.add(uuid)
            yield from self.flush()
            yield self._make_turn("user", _AgentText(text, entry, start))

    def flush(self) -> Iterator[Turn]:
        """Yield the agent's turns, now that nothing can be added to them."""
        if not self.words and self.edits and self.editing is not None:
            self.words = [self.editing]
        for said in self.words:
            yield self._make_turn("assistant", said, tuple(self.edits))
            self.edits = []
        self.words, self.edits, self.editing = [], [], None

    def collect_given(self, entry: _Entry) -> None:
        """Collect the texts that the memory gave the agent, anywhere in an entry."""
        # A fence quoted by an agent is not output of Bethink.
        if entry.get("type") == "assistant":
            return
        for text in _all_strings(entry):
            for body in turn_text.fenced_texts(text) if "<<end " in text else ():
                if len(body) <= _MAX_GIVEN_CHARS and body not in self.given:
                    self.given.append(body)
        # The latest output is the most likely to be repeated.
        while sum(map(len, self.given)) > _MAX_GIVEN_CHARS:
            del self.given[0]

    def _add_agent_entry(self, entry: _Entry, start: int) -> None:
        said: list[str] = []
        for block in _blocks(entry):
            kind = block.get("type")
            if kind == "tool_use":
                # Text before a tool call is not the final answer.
                self.words, said = [], []
                self._collect_edits(block, entry, start)
            elif kind == "text" and isinstance(block.get("text"), str):
                said.append(turn_text.strip_host_text(block["text"]))
        if text := "\n\n".join(filter(None, said)):
            self.words.append(_AgentText(text, entry, start))

    def _collect_edits(self, block: _Entry, entry: _Entry, start: int) -> None:
        call = turn_text.storable_text(str(block.get("id") or ""))
        found = tool_edits(str(block.get("name")), block.get("input"), _timestamp(entry), call)
        if found:
            self.edits += found
            self.editing = _AgentText("", entry, start)

    def _drop_failed_edits(self, entry: _Entry) -> None:
        """Drop edits that were refused or failed."""
        if not self.edits or entry.get("type") != "user":
            return
        failed = [block.get("tool_use_id") for block in _blocks(entry) if block.get("is_error")]
        self.edits = [edit for edit in self.edits if edit.id not in failed]

    def _make_turn(
        self, who: Literal["user", "assistant"], said: _AgentText, edits: tuple[ToolEdit, ...] = ()
    ) -> Turn:
        turn = Turn(
            who=who,
            text=said.text,
            at=_timestamp(said.entry),
            uuid=turn_text.storable_text(said.entry["uuid"]),
            session=_string_field(said.entry, "sessionId"),
            number=self.number,
            cwd=_string_field(said.entry, "cwd"),
            edits=edits,
            given=tuple(self.given),
            start=said.start,
        )
        self.number, self.given = self.number + 1, []
        return turn


def _is_hidden(entry: _Entry) -> bool:
    return any(entry.get(name) for name in _HIDDEN_FLAGS)


def _user_prompt(entry: _Entry) -> str:
    """Return the user's text in an entry; empty where the user did not write it."""
    origin = entry.get("origin")
    human = origin.get("kind") in (None, "human") if isinstance(origin, dict) else True
    if _is_hidden(entry) or not human or entry.get("promptSource") == "system":
        return ""
    if entry.get("toolUseResult") is not None or entry.get("sourceToolUseID"):
        return ""
    blocks = _blocks(entry)
    if any(block.get("type") == "tool_result" for block in blocks):
        return ""
    texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
    return "\n\n".join(said for text in texts if (said := turn_text.strip_host_text(text)))


def _unwrap_queued_prompt(entry: _Entry) -> _Entry:
    """Convert a prompt typed while the agent worked (an attachment) to a user entry."""
    attachment = entry.get("attachment")
    if entry.get("type") != "attachment" or not isinstance(attachment, dict):
        return entry
    is_prompt = attachment.get("commandMode") in (None, "prompt")
    if attachment.get("type") != "queued_command" or not is_prompt:
        return entry
    inner = {key: attachment.get(key) for key in ("origin", "isMeta")}
    message = {"role": "user", "content": attachment.get("prompt")}
    return {**entry, **inner, "type": "user", "message": message}


def _blocks(entry: _Entry) -> list[_Entry]:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )


def _all_strings(value: object) -> Iterator[str]:
    """Yield every string inside a JSON value."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)


def _string_field(entry: _Entry, name: str) -> str:
    value = entry.get(name)
    return turn_text.storable_text(value)[:1000] if isinstance(value, str) else ""


def _timestamp(entry: _Entry) -> datetime | None:
    """Return when an entry was written; None where it has no readable timestamp."""
    text = entry.get("timestamp")
    return time_of(text) if isinstance(text, str) else None


HOST = "claude-code"
_MAX_ID_LENGTH = 100


class TurnDraft(NamedTuple):
    """A turn and the draft to store of it; None where it adds nothing new."""

    turn: Turn
    draft: Draft | None


def drafts_of_turns(turns: Iterable[Turn], *, source: str = HOST) -> Iterator[TurnDraft]:
    """Yield each turn with its draft.

    Without echoes of what was injected into the session, and without a "yes" or "thanks"
    that says nothing by itself.
    """
    given, before = turn_text.EchoFilter(), ""
    for turn in turns:
        given.add(turn.given)
        own = given.remove_echoes(turn.text, turn.who)
        tells = not turn_text.is_uninformative(own, turn.who, before)
        before = turn.text or before
        yield TurnDraft(turn, turn_draft(turn._replace(text=own), source=source) if tells else None)


def turn_draft(turn: Turn, *, source: str = HOST) -> Draft:
    """Convert a turn to a draft keyed by the turn's own id.

    Stored again it is recognised, and the store numbers the turns of a session in the order
    they come. Its kind is an episode, unless rules find a goal, a decision, a caveat or the
    like in it.
    """
    found, own = turn_text.find_statement(turn.text, turn.who), turn.uuid
    if len(own) > _MAX_ID_LENGTH:
        own = hashlib.sha256(own.encode()).hexdigest()
    return Draft(
        turn.text,
        level="raw",
        kind=found.kind if found is not None else None,
        speaker=turn.who,
        session=turn.session or None,
        source=source,
        source_class="user" if turn.who == "user" else "agent",
        occurred_at=turn.at,
        key=f"{HOST}:{own}",
    )


_PATH_SEPARATOR = re.compile(r"[/\\]")


class ClaudeCode(Reader):
    """One transcript, or all below a folder."""

    def entries(self) -> Iterator[Entry]:
        """Yield the turns of every session, in its order."""
        files = [(self._path.name, self._path)]
        if self._path.is_dir():
            names = file_names_under(self._path, (".jsonl",))
            files = [(name, self._path / name) for name in names if not _is_subagent(name)]
        self._gauge.total, self._gauge.unit = len(files), "files"
        for name, file in files:
            yield from _file_entries(file, displayable_name(name))
            self._gauge.done += 1


def _is_subagent(name: str) -> bool:
    """Whether a file is a sub-agent's transcript, by its name or folder."""
    *folders, file = name.split("/")
    return file.startswith("agent-") or "subagents" in folders


def _file_entries(path: Path, name: str) -> Iterator[Entry]:
    try:
        for turn, draft in drafts_of_turns(_turns_with_session(path)):
            if draft is None:
                continue
            where = f"{name} turn {turn.number}"
            # The importing user determines the source class, not the file.
            plain = draft._replace(
                source="user", source_class="user", topic=_project_name(turn.cwd)
            )
            for part, text in enumerate(split_text(draft.text)):
                key = f"{draft.key}/{part}" if part else draft.key
                yield Entry(where, plain._replace(text=text, key=key))
    except OSError as error:
        yield Entry(name, Refused(f"it cannot be read: {(error.strerror or str(error)).lower()}"))


def _turns_with_session(path: Path) -> Iterator[Turn]:
    """Yield the turns; one without a session gets the file's name as its session."""
    for turn in read_turns(path):
        yield turn if turn.session else turn._replace(session=displayable_name(path.stem)[:200])


def _project_name(cwd: str) -> str | None:
    """Return the project's name: the last part of the session's working folder."""
    parts = [part for part in _PATH_SEPARATOR.split(cwd) if part]
    return line_of(parts[-1]) or None if parts else None
