"""Keeps what was said in a session and which files it changed, each thing once.

The transcript is read from where the last capture ended. A turn is known by its own id, an
edit by what it is, so that a capture after every turn, one at the end of the session and
an import of the same transcript come to the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from recollect.agents.project import is_inside
from recollect.agents.session import Mark, Session, session_of
from recollect.errors import Refused
from recollect.ingest.redact import redact
from recollect.model import Draft, FileEdit
from recollect.sources.claude_code_drafts import voiced
from recollect.sources.claude_code_transcript import Turn, read_turns
from recollect.text import shorten

if TYPE_CHECKING:
    from recollect.memory import Memory

_LONGEST_INTENT = 300
_BATCH = 100


class Captured(NamedTuple):
    """What became of a transcript's turns: how many were stored, were known already, were
    refused by the rules, or said nothing of their own; and how many edits were new."""

    stored: int = 0
    known: int = 0
    refused: int = 0
    echoes: int = 0
    edits: int = 0


def capture(memory: Memory, transcript_path: Path, *, session: str, host: str) -> Captured:
    """Stores what is new in a transcript. Raises OSError where it cannot be read."""
    state = session_of(memory, session)
    before = frozenset(state.captured.turns)
    turns = new_turns(state, transcript_path, session)
    drafts, silent, known = [], 0, 0
    for said in voiced(turns, source=host):
        silent += said.draft is None and bool(said.turn.text)
        # Not offered to the store once more, which may have erased it meanwhile.
        known += said.draft is not None and said.turn.uuid in before
        drafts += [said.draft] if said.draft is not None and said.turn.uuid not in before else []
    kept = _remembered(memory, drafts)
    edits = noted(memory, edits_of(_with_new_edits(turns, before), memory.settings.project))
    if turns:
        # From the last prompt on, not from the end: what follows it may still grow, and the
        # edits in it are told with its words.
        prompts = [turn.start for turn in turns if turn.who == "user"]
        start = max(prompts, default=turns[0].start)
        state.capture_up_to(Mark(start, tuple(t.uuid for t in turns if t.start >= start)))
    return kept._replace(known=kept.known + known, echoes=silent, edits=edits)


def capture_edits(
    memory: Memory, transcript_path: Path, *, session: str, elsewhere: Turn | None = None
) -> int:
    """Notes the files that a session has changed since it was captured; gives how many of
    these changes were new. ``elsewhere`` is what a subagent did, whose turns stand in another
    file. Raises OSError where the transcript cannot be read."""
    state = session_of(memory, session)
    turns = new_turns(state, transcript_path, session)
    turns = _with_new_edits(turns, frozenset(state.captured.turns))
    turns += [elsewhere] if elsewhere is not None else []
    return noted(memory, edits_of(turns, memory.settings.project))


def news(state: Session, transcript_path: Path, session: str) -> int:
    """How many turns there are since the last capture, as far as the transcript tells."""
    known = frozenset(state.captured.turns)
    found = new_turns(state, transcript_path, session)
    return sum(turn.uuid not in known for turn in found)


def new_turns(state: Session, path: Path, session: str) -> list[Turn]:
    """The turns from the last captured prompt on; all where the file was begun anew."""
    start = state.captured.start
    turns = list(read_turns(path, start=start if path.stat().st_size > start else 0))
    return [turn if turn.session else turn._replace(session=session) for turn in turns]


def _with_new_edits(turns: Iterable[Turn], known: frozenset[str]) -> list[Turn]:
    """Turns without the edits of those that are known: a file may be forgotten meanwhile."""
    return [turn._replace(edits=()) if turn.uuid in known else turn for turn in turns]


def edits_of(turns: Iterable[Turn], root: Path | None) -> Iterator[FileEdit]:
    """The changes to the project's files, each with the prompt that led to it."""
    wanted = ""
    for turn in turns:
        wanted = turn.text if turn.who == "user" else wanted
        intent = _intent(wanted) if turn.edits else ""
        for touch in turn.edits:
            path = is_inside(touch.path, turn.cwd, root)
            if path is not None and touch.at is not None:
                yield FileEdit(
                    path=str(path),
                    operation=touch.operation,
                    at=touch.at,
                    intent=intent,
                    session=turn.session or None,
                    turn=touch.id or None,
                )


def _intent(prompt: str) -> str:
    """A prompt on one line, cut to a length; secrets go before that can tear them apart."""
    return shorten(" ".join(redact(prompt).text.split()), _LONGEST_INTENT)


def noted(memory: Memory, edits: Iterable[FileEdit]) -> int:
    """Notes edits, all but those that cannot be kept; gives how many were new."""
    ready = list(edits)
    try:
        return memory.note_edits(ready) if ready else 0
    except Refused:
        # A path or a name that no store can keep: the others are noted without it.
        middle = len(ready) // 2
        halves = (ready[:middle], ready[middle:]) if middle else ()
        return sum(noted(memory, half) for half in halves)


def _remembered(memory: Memory, drafts: list[Draft]) -> Captured:
    counted = {"stored": 0, "known": 0, "refused": 0}
    for start in range(0, len(drafts), _BATCH):
        for answer in memory.remember_each(drafts[start : start + _BATCH]):
            if isinstance(answer, Refused):
                counted["refused"] += 1
            else:
                counted["stored" if answer.status == "stored" else "known"] += 1
    return Captured(**counted)
