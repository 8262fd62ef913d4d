"""What became of all that an import has read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from recollect.ingest.classify import kind_of
from recollect.sources.readiness import Ready, Refusal
from recollect.text import caption

SHOWN = 5
_MOST_REFUSALS = 10_000


class Glimpse(NamedTuple):
    """One of the memories that came, or would come: its kind, where it stands, how it begins."""

    kind: str
    where: str
    text: str


@dataclass(slots=True)
class Tally:
    """Counts of an import, or of its preview.

    ``stored`` are new memories, ``updated`` new revisions of such as came before,
    ``repeated`` came before and say the same, ``duplicates`` say what somebody else had
    said, ``links`` are new. ``kinds`` counts what is new. Of the refusals the first ten
    thousand are kept, ``n_refused`` counts all.
    """

    kind: str = ""
    source: str = ""
    preview: bool = False
    stored: int = 0
    updated: int = 0
    duplicates: int = 0
    repeated: int = 0
    redacted: int = 0
    links: int = 0
    n_refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    first: list[Glimpse] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def known(self) -> int:
        """What the space knew before."""
        return self.duplicates + self.repeated

    @property
    def read(self) -> int:
        """All that was looked at."""
        return self.stored + self.updated + self.known + self.n_refused

    def refuse(self, refusal: Refusal) -> None:
        self.n_refused += 1
        if len(self.refused) < _MOST_REFUSALS:
            self.refused.append(refusal)

    def count(self, ready: Ready, status: str) -> None:
        """Notes what became of an entry: stored, updated, duplicate or repeated."""
        self.redacted += bool(ready.piece.redacted)
        if status == "duplicate":
            self.duplicates += 1
        elif status == "repeated":
            self.repeated += 1
        elif status == "updated":
            self.updated += 1
        else:
            self._stored(ready)

    def _stored(self, ready: Ready) -> None:
        draft = ready.draft
        kind = draft.kind or kind_of(ready.piece.folded, draft.level)
        self.stored += 1
        self.kinds[kind] += 1
        if len(self.first) < SHOWN:
            self.first.append(Glimpse(kind, ready.where, draft.caption or caption(draft.text)))
