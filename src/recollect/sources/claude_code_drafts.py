"""Turns of a Claude Code transcript as drafts: the same ones whoever reads it, and when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.model import Draft
from recollect.sources.claude_code_transcript import Turn
from recollect.sources.said.echoes import Given

HOST = "claude-code"
_LONGEST_ID = 100


class Voiced(NamedTuple):
    """A turn and the draft to store of it; None where nothing in it was said anew."""

    turn: Turn
    draft: Draft | None


def voiced(turns: Iterable[Turn], *, source: str = HOST) -> Iterator[Voiced]:
    """Each turn with what to keep of it: not what only repeats what Recollect had given."""
    given = Given()
    for turn in turns:
        given.add(turn.given)
        own = given.own_words(turn.text, turn.who)
        yield Voiced(turn, turn_draft(turn._replace(text=own), source=source) if own else None)


def turn_draft(turn: Turn, *, source: str = HOST) -> Draft:
    """A turn as a draft. Its key is the turn's own id: stored again it is known, and the
    store numbers the turns of a session in the order they come."""
    return Draft(
        turn.text,
        level="raw",
        speaker=turn.who,
        session=turn.session or None,
        source=source,
        source_class="user" if turn.who == "user" else "agent",
        occurred_at=turn.at,
        key=f"{HOST}:{_short(turn.uuid)}",
    )


def _short(uuid: str) -> str:
    if len(uuid) <= _LONGEST_ID:
        return uuid
    return hashlib.sha256(uuid.encode()).hexdigest()
