"""Makes an entry ready to be compared and stored: admitted, without secrets, with a version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from recollect.errors import Refused
from recollect.ingest.admit import plain
from recollect.ingest.prepare import prepare
from recollect.ingest.writing import Prepared, WriteContext
from recollect.model import Draft
from recollect.sources.said.wrappers import keepable
from recollect.sources.source import Entry, digest

IMPORTED = "imported"  # the key of metadata that says what an entry was called and said
_PLAIN = Draft("")
_SAYING = (
    *("text", "original", "kind", "layer", "topic", "tags", "entities", "caption", "speaker"),
    *("occurred_at", "occurred_end", "valid_from", "valid_to", "importance", "confidence"),
)


class Refusal(NamedTuple):
    """Where something stands that was not taken in, and why it was not."""

    where: str
    error: Refused


class Ready(NamedTuple):
    """An entry that may be stored. ``key`` is what it is known by, if it has a name of its
    own; ``version`` stands for all that the source says in it."""

    where: str
    piece: Prepared
    key: str
    version: str
    origin: str = ""

    @property
    def draft(self) -> Draft:
        return self.piece.draft

    def keyed(self, key: str) -> Ready:
        return self._replace(key=key)

    def marked(self) -> Draft:
        """The draft with its key, and with what it will be compared by when it comes again."""
        if not self.key:
            return self.draft
        words = words_mark(self.draft.text)
        mark = {"key": self.key, "version": self.version, "words": words}
        mark |= {"id": self.origin} if self.origin else {}
        return self.draft._replace(key=self.key, metadata={**self.draft.metadata, IMPORTED: mark})


def made_ready(
    entry: Entry, kind: str, given: Mapping[str, Any], ctx: WriteContext
) -> Ready | Refusal:
    """The entry ready to be stored, or why it may not be."""
    if isinstance(entry.found, Refused):
        return Refusal(entry.where, entry.found)
    try:
        piece = prepare(_with(entry.found, given), ctx)
    except Refused as refused:
        return Refusal(entry.where, refused)
    key = key_of(kind, entry.id) if entry.id else ""
    return Ready(entry.where, piece, key, _version(piece.draft), keepable(entry.origin)[:200])


def words_mark(text: str) -> str:
    """What stands for the words of an entry, so that a change of them here is noticed."""
    return digest(text)[:16]


def key_of(kind: str, own: str) -> str:
    """The key that an entry of this source has in the store."""
    return f"{kind}:{digest(own)}"


def _with(draft: Draft, given: Mapping[str, Any]) -> Draft:
    """The draft with what was said for all that do not say it themselves."""
    changes = {
        name: value
        for name, value in given.items()
        if getattr(draft, name) == getattr(_PLAIN, name)
    }
    return draft._replace(**changes) if changes else draft


def _version(draft: Draft) -> str:
    said = [getattr(draft, name) for name in _SAYING]
    told = json.dumps([said, plain(draft.metadata)], default=str, sort_keys=True)
    return digest(told)[:16]
