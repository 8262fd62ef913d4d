"""A conversation kept exactly, piece by piece: turns of a session that recall can find.

What is longer than one memory may be goes into several that follow each other, and comes
back as one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from recollect.errors import Refused
from recollect.ids import make_id
from recollect.ingest.admit import FIELD_CHARACTERS, TEXT_BYTES
from recollect.ingest.redact import redact
from recollect.integrations.document import keep_beside, kept_beside, readable
from recollect.memory import Memory
from recollect.model import Draft, Item
from recollect.text import unkeepable

_PART_BYTES = TEXT_BYTES - 4096
MOST_BYTES = 128 * _PART_BYTES
_MOST_CUTS = 16
_ABOUT = "transcript"
_PAGE = 10_000
_HASHED = "sha256:"


class Turn(NamedTuple):
    """One piece of a conversation: its words to find it by, and exactly what it is."""

    text: str
    body: str
    speaker: str
    source_class: str


class _Kept(NamedTuple):
    """A piece as it is stored: the memories that hold it, in order."""

    items: tuple[Item, ...]

    @property
    def body(self) -> str:
        return "".join(kept_beside(item, item.metadata[_ABOUT]) or "" for item in self.items)

    @property
    def is_whole(self) -> bool:
        """Whether every part of it is still there."""
        return all(item.metadata[_ABOUT]["parts"] == len(self.items) for item in self.items)


class Transcript:
    """One conversation. Safe to share between threads; several writers may add to it.

    ``is_body`` tells what can be a piece: others may write to the same session, and what
    they write is passed over.
    """

    def __init__(
        self, memory: Memory, session: str, source: str, is_body: Callable[[str], bool]
    ) -> None:
        self.memory = memory
        self._is_body = is_body
        self.session = session_name(session)
        self.source = source

    def add(self, turns: Sequence[Turn]) -> None:
        """Adds pieces of up to ``MOST_BYTES`` at the end, all in one transaction unless they
        are hundreds."""
        self.memory.remember_many([draft for turn in turns for draft in self._drafts(turn)])

    def bodies(self, limit: int | None = None) -> list[str]:
        """What was added and not taken back, oldest first; with a limit the last so many."""
        kept = self._kept()
        if limit is not None:
            kept = kept[-limit:] if limit > 0 else []
        return [one.body for one in kept]

    def pop(self) -> str | None:
        """Takes the last piece away and gives it; each goes to one caller only."""
        while kept := self._kept():
            last = kept[-1]
            if len(self._end(last.items)) == len(last.items):
                return last.body
        return None

    def clear(self) -> None:
        """Takes every piece away."""
        self._end(list(self._items()))

    def _end(self, items: Sequence[Item]) -> list[str]:
        return self.memory.withdraw({item.id: item.rev for item in items})

    def _kept(self) -> list[_Kept]:
        """The pieces in order, those left out of which a part was forgotten."""
        items = sorted(self._items(), key=lambda item: (item.seq or 0, item.id))
        pieces: dict[str, list[Item]] = {}
        for item in items:
            pieces.setdefault(str(item.metadata[_ABOUT].get("piece", item.id)), []).append(item)
        kept = [_Kept(tuple(parts)) for parts in pieces.values()]
        return [one for one in kept if one.is_whole and self._is_body(one.body)]

    def _items(self) -> Iterator[Item]:
        after: str | None = None
        while True:
            page = self.memory.browse(
                limit=_PAGE,
                after=after,
                sessions=(self.session,),
                sources=(self.source,),
                include_superseded=True,
            )
            yield from (item for item in page if _is_part(item))
            if len(page) < _PAGE:
                return
            after = page[-1].id

    def _drafts(self, turn: Turn) -> list[Draft]:
        bodies = in_parts(turn.body)
        named = f"{turn.speaker}, said without words"
        texts = in_parts(readable(turn.text, named))
        parts = max(len(bodies), len(texts))
        piece = {"piece": make_id(self.memory.now)} if parts > 1 else {}
        drafts = []
        for part in range(parts):
            about: dict[str, Any] = {"parts": parts, **piece}
            original = keep_beside(bodies[part] if part < len(bodies) else "", about)
            drafts.append(
                Draft(
                    readable(texts[part] if part < len(texts) else "", named),
                    level="raw",
                    original=original,
                    speaker=turn.speaker,
                    session=self.session,
                    source=self.source,
                    source_class=turn.source_class,
                    classification=min(1, self.memory.settings.max_classification),
                    metadata={_ABOUT: about},
                    force=True,
                )
            )
        return drafts


def _is_part(item: Item) -> bool:
    about = item.metadata.get(_ABOUT)
    return isinstance(about, Mapping) and isinstance(about.get("parts"), int)


def session_name(session: str) -> str:
    """The session as a memory knows it: itself, or a digest where a memory would keep it
    differently, so that two conversations never become one."""
    if not isinstance(session, str) or not session:
        raise Refused("a session needs an id, which is a text")
    plain = (
        len(session) <= FIELD_CHARACTERS
        and session == session.strip()
        and not session.startswith(_HASHED)
        and unkeepable(session) is None
    )
    if plain:
        return session
    return _HASHED + hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()


def in_parts(text: str) -> list[str]:
    """A text in parts that fit a memory each; together they are the text."""
    for attempt in range(_MOST_CUTS):
        parts = list(_parts(text, _PART_BYTES - attempt * 257))
        # A cut may leave something that looks like a secret, where the whole does not.
        if len(parts) == 1 or not any(redact(part).kinds for part in parts):
            return parts
    raise Refused("it cannot be cut into parts without one that looks like a secret")


def _parts(text: str, size: int) -> Iterator[str]:
    raw = text.encode()
    start = 0
    while len(raw) - start > size:
        end = start + size
        while raw[end] & 0xC0 == 0x80:  # not inside a character
            end -= 1
        yield raw[start:end].decode()
        start = end
    yield raw[start:].decode()
