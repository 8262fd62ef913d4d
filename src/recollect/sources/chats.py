"""Conversations as entries: a raw memory for every turn, in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.model import Draft
from recollect.sources.pieces import pieces_of
from recollect.sources.source import Entry, digest
from recollect.sources.values import details, line_of


class Said(NamedTuple):
    """One message of a conversation, by its own id."""

    id: str
    who: Literal["user", "assistant"]
    text: str
    at: datetime | None


class Talk(NamedTuple):
    """A conversation by its own id; ``where`` tells people which it is."""

    source: str
    id: str
    title: str
    where: str


def turns_of(talk: Talk, messages: Iterable[Said]) -> Iterator[Entry]:
    """An entry for every message that says something; a long one in several."""
    number = 0
    for place, message in enumerate(messages, start=1):
        own = message.id or str(place)
        for part, text in enumerate(pieces_of(message.text)):
            number += 1
            draft = Draft(
                text,
                level="raw",
                topic=line_of(talk.title) or None,
                speaker=message.who,
                session=f"{talk.source}:{talk.id}"[:200],
                seq=number,
                occurred_at=message.at,
                metadata=details({"title": talk.title}),
            )
            yield Entry(
                f"{talk.where}, message {place}",
                draft,
                id=digest(talk.source, talk.id, own, str(part) if part else ""),
                origin=message.id,
            )
