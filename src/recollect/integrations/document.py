"""A document as a memory: what is kept of it, and how it is read back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from recollect.model import Draft, Item
from recollect.text import has_substance, unkeepable

KIND = "document"
UNINDEXED = "unindexed"
ABOUT = "document"
_BESIDE_BYTES = 16 * 1024
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Entry:
    """What to keep under an address: words to find it by and, where these are not all of
    it, the exact ``body``. ``about`` is what the integration itself wants to know again."""

    address: str
    text: str
    body: str | None = None
    kind: str = KIND
    source: str = "agent"
    source_class: str = "agent"
    tags: tuple[str, ...] = ()
    topic: str | None = None
    ttl_minutes: float | None = None
    about: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it stands."""

    item: Item

    @property
    def body(self) -> str:
        """What was kept, exactly."""
        kept = kept_beside(self.item, self._kept)
        return self.item.text if kept is None else kept

    @property
    def is_text(self) -> bool:
        """Whether the words to find it by are all of it."""
        return kept_beside(self.item, self._kept) is None

    @property
    def about(self) -> Mapping[str, Any]:
        """What the integration noted."""
        kept: Mapping[str, Any] = self._kept["about"]
        return kept

    @property
    def created_at(self) -> datetime:
        """When there came to be something under the address."""
        return datetime.fromisoformat(self._kept["created_at"])

    @property
    def updated_at(self) -> datetime:
        """When it was last written."""
        return datetime.fromisoformat(self._kept["updated_at"])

    @property
    def ttl_minutes(self) -> float | None:
        """How long it stays after it was last written or used."""
        return self._kept.get("ttl_minutes")

    @property
    def expires_at(self) -> datetime | None:
        """When it goes unless it is used before."""
        if self.ttl_minutes is None:
            return None
        used = self.item.last_recalled_at
        last = self.updated_at if used is None else max(self.updated_at, used)
        return last + timedelta(minutes=self.ttl_minutes)

    @property
    def _kept(self) -> Mapping[str, Any]:
        kept: Mapping[str, Any] = self.item.metadata[ABOUT]
        return kept


def draft_of(
    entry: Entry, session: str, classification: int, created_at: datetime, updated_at: datetime
) -> Draft:
    """The memory that an entry becomes."""
    kept: dict[str, Any] = {
        "created_at": _iso(created_at),
        "updated_at": _iso(updated_at),
        "about": dict(entry.about),
    }
    if entry.ttl_minutes is not None:
        kept["ttl_minutes"] = entry.ttl_minutes
    original = keep_beside(entry.body, kept)
    return Draft(
        entry.text,
        level="raw",
        kind=entry.kind,
        original=original,
        source=entry.source,
        source_class=entry.source_class,
        tags=entry.tags,
        topic=entry.topic,
        classification=classification,
        session=session,
        seq=0,
        metadata={ABOUT: kept},
        force=True,
    )


def is_well_formed(kept: object) -> bool:
    """Whether this was noted of a document, and not by somebody who wrote what looks so."""
    if not isinstance(kept, Mapping):
        return False
    times = (kept.get("created_at"), kept.get("updated_at"))
    try:
        aware = all(datetime.fromisoformat(time).tzinfo is not None for time in times)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    ttl = kept.get("ttl_minutes")
    return (
        aware
        and isinstance(kept.get("about"), Mapping)
        and isinstance(kept.get("body"), str | None)
        and isinstance(ttl, int | float | None)
    )


def keep_beside(body: str | None, about: dict[str, Any]) -> str | None:
    """Puts what is to be kept exactly into a memory's metadata, where no search looks, or,
    where it is too long for that, gives it back to be kept as the memory's original."""
    if body is None or len(json.dumps(body, ensure_ascii=False).encode()) > _BESIDE_BYTES:
        return body
    about["body"] = body
    return None


def kept_beside(item: Item, about: Mapping[str, Any]) -> str | None:
    """What was kept so; None where nothing was."""
    body: str | None = about.get("body", item.original)
    return body


def readable(text: str, otherwise: str) -> str:
    """A text to find something by, without what no store can keep; another where it says
    nothing."""
    if unkeepable(text) is not None:
        text = _UNKEEPABLE.sub("\ufffd", text)
    return text if has_substance(text) else otherwise


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat()
