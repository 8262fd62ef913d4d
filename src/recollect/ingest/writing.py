"""What the write walk is given, and a draft that has passed its rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from recollect.model import Draft
from recollect.ports import Embedder, Store


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The live parts the write walk may ask, the clock reading and who writes.

    ``deriving`` lets drafts be of the class "derived": maintenance at work. ``relating``
    also looks for what is of nearly the same meaning, which takes longer.
    """

    store: Store
    embedder: Embedder | None
    now: datetime
    actor: str
    make_id: Callable[[datetime], str]
    deriving: bool = False
    relating: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A draft that may be stored: admitted, without secrets, folded for comparing.

    ``turn`` says that it is part of a conversation whose order nobody gave; such a
    turn is new by definition, however often its words were said before.
    """

    draft: Draft
    id: str
    folded: str
    fingerprint: str
    redacted: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    turn: bool = False
