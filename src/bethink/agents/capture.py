"""Capture what was said in a session and which files it changed, each thing once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.agents.session import CaptureMark, SessionState, resolve_in_project, session_state
from bethink.agents.skills import note_trials
from bethink.code.anchors import WRITE_LIMIT_S, find_anchors
from bethink.code.git import Repository, find_repository
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.errors import Refused
from bethink.importers.claude_code import Turn, drafts_of_turns, read_turns
from bethink.ingest.redaction import redact
from bethink.model import Draft, FileEdit

if TYPE_CHECKING:
    from bethink.memory import Memory


_MAX_INTENT_CHARS = 300
_BATCH = 100


class CaptureResult(NamedTuple):
    """Counts of a capture.

    Turns that were stored, were already known, were refused by the rules, or had no
    content of their own (``echoes``); new edits; and turns that wait in the
    inbox or seem not worth keeping.
    """

    stored: int = 0
    known: int = 0
    refused: int = 0
    echoes: int = 0
    edits: int = 0
    waiting: int = 0
    left_out: int = 0


def capture(memory: Memory, transcript_path: Path, *, session: str, host: str) -> CaptureResult:
    """Store the new turns of a transcript; raise OSError where it cannot be read."""
    state = session_state(memory, session)
    before = frozenset(state.captured.turns)
    turns = new_turns(state, transcript_path, session)
    drafts, silent, known = [], 0, 0
    repo = find_repository(memory.settings.project, WRITE_LIMIT_S)
    for turn_draft in drafts_of_turns(turns, source=host):
        silent += turn_draft.draft is None and bool(turn_draft.turn.text)
        # Do not store it again: it may have been erased meanwhile.
        known += turn_draft.draft is not None and turn_draft.turn.uuid in before
        if turn_draft.draft is not None and turn_draft.turn.uuid not in before:
            drafts.append(_tie_to_code(turn_draft.draft, turn_draft.turn, repo))
    kept = _store_turns(memory, drafts)
    edits = record_edits(
        memory, edits_of(_drop_known_edits(turns, before), memory.settings.project)
    )
    note_trials(memory, transcript_path, session=session, start=state.captured.start)
    if memory.settings.feedback:
        from bethink.agents.helped import helped  # start-up time

        helped(memory, session)
    if turns:
        # From the last prompt on, not from the end: its turn may still grow, and its edits
        # are recorded with its words as their intent.
        prompts = [turn.start for turn in turns if turn.who == "user"]
        start = max(prompts, default=turns[0].start)
        state.set_captured(CaptureMark(start, tuple(t.uuid for t in turns if t.start >= start)))
    return kept._replace(known=kept.known + known, echoes=silent, edits=edits)


def _tie_to_code(draft: Draft, turn: Turn, repo: Repository | None) -> Draft:
    """Tie a turn to the code that it names, among the files it edited too."""
    if repo is None:
        return draft
    edited = (resolve_in_project(edit.path, turn.cwd, repo.root) for edit in turn.edits)
    paths = [path.relative_to(repo.root).as_posix() for path in edited if path is not None]
    return draft._replace(anchors=find_anchors(draft.text, repo, paths))


def capture_edits(
    memory: Memory, transcript_path: Path, *, session: str, subagent_turn: Turn | None = None
) -> int:
    """Record the files that a session changed since its last capture; return the count.

    Only new edits count. ``subagent_turn`` is the work of a subagent, whose turns are in
    another file. Raises OSError where the transcript cannot be read.
    """
    state = session_state(memory, session)
    turns = new_turns(state, transcript_path, session)
    turns = _drop_known_edits(turns, frozenset(state.captured.turns))
    turns += [subagent_turn] if subagent_turn is not None else []
    return record_edits(memory, edits_of(turns, memory.settings.project))


def count_new_turns(state: SessionState, transcript_path: Path, session: str) -> int:
    """Count the turns since the last capture."""
    known = frozenset(state.captured.turns)
    found = new_turns(state, transcript_path, session)
    return sum(turn.uuid not in known for turn in found)


def new_turns(state: SessionState, path: Path, session: str) -> list[Turn]:
    """The turns from the last captured prompt on; all if the file was truncated."""
    start = state.captured.start
    turns = list(read_turns(path, start=start if path.stat().st_size > start else 0))
    return [turn if turn.session else turn._replace(session=session) for turn in turns]


def _drop_known_edits(turns: Iterable[Turn], known: frozenset[str]) -> list[Turn]:
    """Drop the edits of known turns: their file may have been forgotten meanwhile."""
    return [turn._replace(edits=()) if turn.uuid in known else turn for turn in turns]


def edits_of(turns: Iterable[Turn], root: Path | None) -> Iterator[FileEdit]:
    """Yield the edits of the project's files, each with the prompt that led to it."""
    prompt = ""
    for turn in turns:
        prompt = turn.text if turn.who == "user" else prompt
        intent = _intent_from_prompt(prompt) if turn.edits else ""
        for edit in turn.edits:
            path = resolve_in_project(edit.path, turn.cwd, root)
            if path is not None and edit.at is not None:
                yield FileEdit(
                    path=str(path),
                    operation=edit.operation,
                    at=edit.at,
                    intent=intent,
                    session=turn.session or None,
                    turn=edit.id or None,
                )


def _intent_from_prompt(prompt: str) -> str:
    """Put a prompt on one line and cut it; secrets are redacted before the cut."""
    return shorten(" ".join(redact(prompt).text.split()), _MAX_INTENT_CHARS)


def record_edits(memory: Memory, edits: Iterable[FileEdit]) -> int:
    """Record edits, skipping those that are refused; return how many were new."""
    ready = list(edits)
    try:
        return memory.note_edits(ready) if ready else 0
    except Refused:
        # A path or name that no store can keep: record the others without it.
        middle = len(ready) // 2
        halves = (ready[:middle], ready[middle:]) if middle else ()
        return sum(record_edits(memory, half) for half in halves)


def _store_turns(memory: Memory, drafts: list[Draft]) -> CaptureResult:
    counts = {"stored": 0, "known": 0, "refused": 0, "waiting": 0, "left_out": 0}
    for start in range(0, len(drafts), _BATCH):
        for answer in memory.remember_each(drafts[start : start + _BATCH], review=True):
            if isinstance(answer, Refused):
                counts["refused"] += 1
            else:
                counts[answer.status if answer.status in counts else "known"] += 1
    return CaptureResult(**counts)
