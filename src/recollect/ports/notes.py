"""What the engine asks of a folder of notes that is kept beside the memories."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from recollect.model import Item


class NoteFile(NamedTuple):
    """One file of notes: its name without the ending, the time it is about (the end is
    not part of it), and when it was last changed."""

    name: str
    start: datetime
    end: datetime
    modified: datetime


class Notes(Protocol):
    """Notes by the day, the week, the quarter. Safe to use from several threads."""

    def files(self, since: datetime | None, until: datetime | None) -> Sequence[NoteFile]:
        """Files about any part of [since, until), newest first."""
        ...

    def read(self, file: NoteFile) -> Sequence[Item]:
        """The paragraphs of a file as items, in its order, secrets taken out. Raises
        Refused for a file that cannot be read as text."""
        ...

    def find(self, item_id: str) -> Item | None:
        """The paragraph with this id, if it is still there."""
        ...
