"""Conversations as entries: a raw memory for every turn, in its place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from recollect.model import Draft
from recollect.sources.archive import opened
from recollect.sources.json_elements import elements
from recollect.sources.pieces import pieces_of
from recollect.sources.said.courtesies import tells_nothing
from recollect.sources.source import Entry, Gauge, Tie, digest
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


class Conversations(ABC):
    """An export whose ``conversations.json`` is a list, a conversation an element."""

    def __init__(self, path: Path, gauge: Gauge) -> None:
        self._path = path
        self._gauge = gauge

    def entries(self) -> Iterator[Entry]:
        """The turns of every conversation, in the order of the file."""
        for member in opened(self._path, self._gauge):
            for number, found in elements(member.stream):
                yield from self._turns(found, f"conversation {number}")

    def ties(self) -> Iterator[Tie]:
        """None: a turn follows the one before, which its place says."""
        return iter(())

    @abstractmethod
    def _turns(self, found: Any, where: str) -> Iterator[Entry]:
        """The turns of one conversation, or why it is refused."""


def turns_of(talk: Talk, messages: Iterable[Said]) -> Iterator[Entry]:
    """An entry for every message that says something; a long one in several. A "thanks" and
    its "you're welcome" say nothing, and keep their places."""
    number, before = 0, ""
    for place, message in enumerate(messages, start=1):
        own = message.id or str(place)
        is_empty, before = tells_nothing(message.text, message.who, before), message.text
        for part, text in enumerate(pieces_of(message.text)):
            number += 1
            if is_empty:
                continue
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
