"""What a prompt may quote: texts of one space, read from that space's own store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from recollect.ports import Store


class Passage(NamedTuple):
    """A text to be quoted, and the space it is from. A model never sees its ``id``."""

    space: str
    id: str
    text: str
    when: datetime | None = None


def passages_of(
    store: Store, ids: Sequence[str], *, as_of: datetime | None = None
) -> tuple[Passage, ...]:
    """The memories of these ids as the store has them, in this order, each once.

    Read afresh, so that whatever a caller holds in its hands, only what is in this space
    can get into a prompt. Those that are gone are left out.
    """
    items = store.get(ids, as_of=as_of)
    return tuple(
        Passage(
            store.space,
            item.id,
            f"{item.speaker}: {item.text}" if item.speaker else item.text,
            item.when,
        )
        for item in (items[key] for key in dict.fromkeys(ids) if key in items)
    )


def cited(passages: Sequence[Passage], numbers: Iterable[int]) -> tuple[str, ...]:
    """The ids behind the numbers of an answer, in its order, each once."""
    return tuple(dict.fromkeys(passages[number - 1].id for number in numbers))
