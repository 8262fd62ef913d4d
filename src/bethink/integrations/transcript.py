"""A conversation stored exactly, turn by turn, in a session that recall can search.

A turn that is too long for one memory is split over several consecutive ones and joined
again when it is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from bethink.core.characters import find_unstorable
from bethink.core.ids import make_id
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.ingest.admission import MAX_FIELD_CHARACTERS, MAX_TEXT_BYTES
from bethink.ingest.redaction import redact
from bethink.integrations.documents import attach_body, attached_body, browse_all, indexable_text
from bethink.memory import Memory
from bethink.model import Draft, Item

_PART_BYTES = MAX_TEXT_BYTES - 4096
MAX_TURN_BYTES = 128 * _PART_BYTES
_MAX_SPLIT_ATTEMPTS = 16
_METADATA_KEY = "transcript"
_HASH_PREFIX = "sha256:"


class Turn(NamedTuple):
    """One turn of a conversation: the text to index and the exact body."""

    text: str
    body: str
    speaker: str
    source_class: str


class _StoredTurn(NamedTuple):
    """A stored turn: the memories that hold it, in order."""

    items: tuple[Item, ...]

    @property
    def body(self) -> str:
        return "".join(
            attached_body(item, item.metadata[_METADATA_KEY]) or "" for item in self.items
        )

    @property
    def is_whole(self) -> bool:
        """Whether every part of the turn still exists."""
        return all(item.metadata[_METADATA_KEY]["parts"] == len(self.items) for item in self.items)


class Transcript:
    """One conversation. Thread-safe; several writers may add to it.

    ``is_body`` checks whether a text can be a turn's body: others may write to the same session,
    and what they write is ignored.
    """

    def __init__(
        self, memory: Memory, session: str, source: str, is_body: Callable[[str], bool]
    ) -> None:
        self.memory, self.source, self._is_body = memory, source, is_body
        self.session = session_name(session)

    def add(self, turns: Sequence[Turn]) -> None:
        """Append turns of up to ``MAX_TURN_BYTES``; in one transaction unless there are many."""
        self.memory.remember_many([draft for turn in turns for draft in self._drafts(turn)])

    def bodies(self, limit: int | None = None) -> list[str]:
        """Return the bodies of all turns, oldest first; with a limit the last ones."""
        kept = self._stored_turns()
        if limit is not None:
            kept = kept[-limit:] if limit > 0 else []
        return [entry.body for entry in kept]

    def pop(self) -> str | None:
        """Remove and return the last turn; each goes to one caller only."""
        while kept := self._stored_turns():
            last = kept[-1]
            if len(self._withdraw(last.items)) == len(last.items):
                return last.body
        return None

    def clear(self) -> None:
        """Remove every turn."""
        self._withdraw(list(self._items()))

    def _withdraw(self, items: Sequence[Item]) -> list[str]:
        return self.memory.withdraw({item.id: item.rev for item in items})

    def _stored_turns(self) -> list[_StoredTurn]:
        """Return the turns in order, without those of which a part was forgotten."""
        items = sorted(self._items(), key=lambda item: (item.seq or 0, item.id))
        pieces: dict[str, list[Item]] = {}
        for item in items:
            piece = str(item.metadata[_METADATA_KEY].get("piece", item.id))
            pieces.setdefault(piece, []).append(item)
        kept = [_StoredTurn(tuple(parts)) for parts in pieces.values()]
        return [entry for entry in kept if entry.is_whole and self._is_body(entry.body)]

    def _items(self) -> Iterator[Item]:
        where = {"sessions": (self.session,), "sources": (self.source,)}
        return filter(_is_part, browse_all(self.memory, include_superseded=True, **where))

    def _drafts(self, turn: Turn) -> list[Draft]:
        bodies = split_text(turn.body)
        named = f"{turn.speaker}, without text"
        texts = split_text(indexable_text(turn.text, named))
        parts = max(len(bodies), len(texts))
        piece = {"piece": make_id(self.memory.now)} if parts > 1 else {}
        drafts = []
        for part in range(parts):
            about: dict[str, object] = {"parts": parts, **piece}
            original = attach_body(bodies[part] if part < len(bodies) else "", about)
            drafts.append(
                Draft(
                    indexable_text(texts[part] if part < len(texts) else "", named),
                    level="raw",
                    original=original,
                    speaker=turn.speaker,
                    session=self.session,
                    source=self.source,
                    source_class=turn.source_class,
                    classification=min(1, self.memory.settings.max_classification),
                    metadata={_METADATA_KEY: about},
                    force=True,
                )
            )
        return drafts


def _is_part(item: Item) -> bool:
    about = item.metadata.get(_METADATA_KEY)
    return isinstance(about, Mapping) and isinstance(about.get("parts"), int)


def session_name(session: str) -> str:
    """Return the session under which a conversation is stored.

    It is the id itself, or a digest where a memory would store it differently, so that two
    conversations never become one.
    """
    if not isinstance(session, str) or not session:
        raise Refused("a session id must be a non-empty string")
    plain = (
        len(session) <= MAX_FIELD_CHARACTERS
        and session == session.strip()
        and not session.startswith(_HASH_PREFIX)
        and find_unstorable(session) is None
    )
    if plain:
        return session
    return _HASH_PREFIX + hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()


def split_text(text: str) -> list[str]:
    """Split a text into parts that fit into one memory each."""
    for attempt in range(_MAX_SPLIT_ATTEMPTS):
        parts = list(_split_bytes(text, _PART_BYTES - attempt * 257))
        # A cut can create something that looks like a secret.
        if len(parts) == 1 or not any(redact(part).kinds for part in parts):
            return parts
    raise Refused("it cannot be split without a part that looks like a secret")


def _split_bytes(text: str, size: int) -> Iterator[str]:
    raw = text.encode()
    start = 0
    while len(raw) - start > size:
        end = start + size
        while raw[end] & 0xC0 == 0x80:  # not inside a character
            end -= 1
        yield raw[start:end].decode()
        start = end
    yield raw[start:].decode()
