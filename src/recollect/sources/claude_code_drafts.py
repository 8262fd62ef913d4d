"""Turns of a Claude Code transcript as drafts: the same ones whoever reads it, and when."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from recollect.model import Draft
from recollect.sources.claude_code_transcript import Turn
from recollect.sources.said.courtesies import tells_nothing
from recollect.sources.said.echoes import Given
from recollect.sources.said.weighty import weighty

HOST = "claude-code"
_LONGEST_ID = 100


class Voiced(NamedTuple):
    """A turn and the draft to store of it; None where nothing in it was said anew."""

    turn: Turn
    draft: Draft | None


def voiced(turns: Iterable[Turn], *, source: str = HOST) -> Iterator[Voiced]:
    """Each turn with what to keep of it: not what only repeats what Recollect had given, nor
    a "yes" or "thanks" that tells nothing by itself."""
    given, before = Given(), ""
    for turn in turns:
        given.add(turn.given)
        own = given.own_words(turn.text, turn.who)
        tells = not tells_nothing(own, turn.who, before)
        before = turn.text or before
        yield Voiced(turn, turn_draft(turn._replace(text=own), source=source) if tells else None)


def turn_draft(turn: Turn, *, source: str = HOST) -> Draft:
    """A turn as a draft. Its key is the turn's own id: stored again it is known, and the
    store numbers the turns of a session in the order they come. It is an episode, unless
    rules see a goal, a decision, a caveat or the like in it."""
    found = weighty(turn.text, turn.who)
    return Draft(
        turn.text,
        level="raw",
        kind=found.kind if found is not None else None,
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
