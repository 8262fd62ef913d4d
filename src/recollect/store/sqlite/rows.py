"""A row of the item table and the Item it stands for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, NamedTuple

import apsw

from recollect.errors import Refused
from recollect.model import NO_METADATA, Item
from recollect.ports import Record
from recollect.store.sqlite.clock import DAY_MS, from_ms, to_ms, to_ms_or_none
from recollect.store.sqlite.connection import Row, generation, select
from recollect.store.sqlite.standing import STATUS_AT
from recollect.store.sqlite.warmth import USED_IN_ALL, USED_LAST

# What a revision says: these columns never change, and the content hash covers them.
CONTENT = (
    *("id", "rev", "level", "kind", "layer", "topic", "tier", "text", "about", "original"),
    *("caption", "language", "speaker", "session", "seq", "parent", "subject", "attribute"),
    *("source", "source_class", "writer", "trust", "integrity", "credibility"),
    *("classification", "emotion", "importance", "confidence", "relevance", "pinned"),
    *("protected", "occurred_at", "occurred_end", "stored_at", "valid_from", "valid_to"),
    *("live_from", "tokens", "tags", "entities", "flags", "metadata", "fingerprint"),
)
# Where the columns that are indexed, and the entities, stand among them.
WORDS = slice(CONTENT.index("text"), CONTENT.index("original") + 1)
ENTITIES = CONTENT.index("entities")
# What may change about a revision, and what is computed from it.
AROUND = ("rid", "live_to", "ended_by", "status", "length", "content_hash")

INSERT = (
    f"INSERT INTO item ({', '.join((*CONTENT, *AROUND))})"
    f" VALUES ({', '.join('?' * (len(CONTENT) + len(AROUND)))})"
)
SELECT_CONTENT = ", ".join(CONTENT)

# How much of a memory is left: the ticks from `decay_at` on, or since it was stored, come
# off. Where nothing ever ticked, which is nearly everywhere, no tick is looked for.
FADED = """
    CASE WHEN EXISTS (SELECT 1 FROM tick) THEN max(0.0, round(coalesce(u.decay, 1.0)
        - (SELECT total FROM tick ORDER BY number DESC LIMIT 1)
        + coalesce((SELECT t.total FROM tick AS t WHERE t.at < coalesce(u.decay_at, i.stored_at)
            ORDER BY t.at DESC LIMIT 1), 0.0), 9))
    ELSE coalesce(u.decay, 1.0) END
"""
# The same at the moment `m`, from what the memory had regained by then: known of the last
# twenty times. Where it has regained more often since, it counts as if it never had before.
_LAST_TICK = "SELECT t.total FROM tick AS t WHERE t.at BOUND ORDER BY t.at DESC LIMIT 1"
_REGAINED = """
    (SELECT r.value FROM json_each(u.regained) AS r WHERE r.value ->> 0 <= m.at
    ORDER BY r.key DESC LIMIT 1)
"""
_FADED_THEN = f"""
    (SELECT max(0.0, round(coalesce(was.told ->> 1, 1.0) - max(0.0,
        coalesce(({_LAST_TICK.replace("BOUND", "<= m.at")}), 0.0)
        - coalesce(({_LAST_TICK.replace("BOUND", "< coalesce(was.told ->> 2, i.stored_at)")}),
            0.0)), 9))
    FROM m CROSS JOIN (SELECT {_REGAINED} AS told FROM m) AS was)
"""
# In the order of Item's fields, so that a row is nearly an Item already.
SELECT_ITEM = f"""
    i.rid, i.id, i.text, i.stored_at, i.source, i.source_class, i.writer, i.rev, i.level,
    i.kind, i.layer, i.topic, i.tier, i.tags, i.entities, i.caption, i.original, i.language,
    i.speaker, i.session, i.seq, i.parent, i.subject, i.attribute, i.trust, i.integrity,
    i.credibility, i.classification, i.emotion, i.importance, i.confidence, i.relevance,
    {FADED}, i.pinned, i.protected, i.occurred_at, i.occurred_end,
    i.valid_from, i.valid_to, i.live_from, i.live_to, i.ended_by, i.status, i.tokens,
    i.content_hash, i.flags, coalesce(u.recalls, 0), u.last_at, i.metadata
"""
_SELECT_THEN = (
    SELECT_ITEM.replace(FADED, _FADED_THEN)
    .replace("i.status", f"(SELECT {STATUS_AT.replace('MOMENT', 'm.at')} FROM m)")
    .replace("coalesce(u.recalls, 0)", f"(SELECT {USED_IN_ALL} FROM m)")
    .replace("u.last_at, i.metadata", f"(SELECT {USED_LAST} FROM m), i.metadata")
)
_FIELDS = Item._fields
_TIMES = tuple(
    _FIELDS.index(name)
    for name in (
        *("stored_at", "occurred_at", "occurred_end", "valid_from", "valid_to"),
        *("live_from", "live_to", "last_recalled_at"),
    )
)
_LISTS = tuple(_FIELDS.index(name) for name in ("tags", "entities", "flags"))
_FLAGS = tuple(_FIELDS.index(name) for name in ("pinned", "protected"))
_BY_RIDS = (
    " FROM json_each(?) AS wanted CROSS JOIN item AS i ON i.rid = wanted.value"
    " LEFT JOIN usage AS u ON u.id = i.id"
)
_KEPT_ITEMS = 4096
ReadItems = Callable[[apsw.Connection, Sequence[int]], dict[int, Item]]
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Selection(NamedTuple):
    """How a statement that reads items begins, and the values it begins with."""

    sql: str
    values: tuple[int, ...] = ()


def selection(then: int | None) -> Selection:
    """For items as they stand or, with a moment, as they stood: their status, their use
    and what forgetting had left of them."""
    if then is None:
        return Selection(f"SELECT {SELECT_ITEM}")
    return Selection(
        f"WITH m (at, day) AS (SELECT ?, ?) SELECT {_SELECT_THEN}", (then, then // DAY_MS)
    )


class NewRow(NamedTuple):
    """A revision ready to be inserted."""

    rid: int
    content: Row
    live_to: int | None
    ended_by: str | None
    status: str
    length: int

    def values(self) -> Row:
        """In the order of INSERT."""
        ending = (self.live_to, self.ended_by, self.status, self.length)
        return (*self.content, self.rid, *ending, content_hash(self.content))


def content_hash(content: Sequence[Any]) -> str:
    """SHA-256 over the content columns, in their order, as one JSON array."""
    return hashlib.sha256(to_json(content).encode()).hexdigest()


def to_content(record: Record, live_from: int) -> Row:
    """The content columns of a record, as they will stand in the file."""
    item = record.item
    return (
        *(item.id, item.rev, item.level, item.kind, item.layer, item.topic, item.tier),
        *(item.text, record.about, item.original, item.caption, item.language, item.speaker),
        *(item.session, item.seq, item.parent, item.subject, item.attribute),
        *(item.source, item.source_class, item.writer),
        *(item.trust, item.integrity, item.credibility, item.classification),
        *(_real(item.emotion), _real(item.importance)),
        *(_real(item.confidence), _real(item.relevance)),
        *(int(item.pinned), int(item.protected)),
        *(to_ms_or_none(item.occurred_at), to_ms_or_none(item.occurred_end)),
        to_ms(item.stored_at),
        *(to_ms_or_none(item.valid_from), to_ms_or_none(item.valid_to)),
        *(live_from, item.tokens),
        *(to_json(item.tags), to_json(entity_ids(record)), to_json(item.flags)),
        *(metadata_json(item.metadata), record.fingerprint),
    )


def _real(value: float) -> float:
    # SQLite keeps no negative zero, and the hash is over what it keeps.
    return float(value) + 0.0


def entity_ids(record: Record) -> tuple[str, ...]:
    """The entities a record speaks of: those the item names and those mentioned."""
    mentioned = (mention.entity.id for mention in record.mentions)
    return tuple(dict.fromkeys((*record.item.entities, *mentioned)))


def to_json(values: Sequence[Any]) -> str:
    """Values as the file keeps them, each written in only one way."""
    return _ENCODER.encode(values) if values else "[]"


def metadata_json(metadata: Mapping[str, Any]) -> str:
    if not metadata:
        return "{}"
    try:
        return json.dumps(
            dict(metadata), ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
    except (TypeError, ValueError) as error:
        raise Refused(f"the metadata cannot be written as JSON: {error}") from error


def to_item(row: Row) -> Item:
    """The item of a row as SELECT_ITEM gives it."""
    values: list[Any] = list(row[1:])
    for place in _TIMES:
        if values[place] is not None:
            values[place] = _moment(values[place])
    for place in _LISTS:
        if values[place] != "[]":
            values[place] = _texts(values[place])
        else:
            values[place] = ()
    for place in _FLAGS:
        values[place] = values[place] == 1
    written = values[-1]
    values[-1] = NO_METADATA if written == "{}" else MappingProxyType(json.loads(written))
    return Item(*values)


# Items of one batch share times, and many share tags and entities.
_moment = lru_cache(maxsize=8192)(from_ms)


@lru_cache(maxsize=4096)
def _texts(written: str) -> tuple[str, ...]:
    return tuple(json.loads(written))


def read_items(
    db: apsw.Connection, rids: Iterable[int], then: int | None = None
) -> dict[int, Item]:
    """Items by row id, as they stand or stood. Unknown ids are left out."""
    start, values = selection(then)
    wanted = json.dumps(list(rids))
    return {row[0]: to_item(row) for row in select(db, start + _BY_RIDS, (*values, wanted))}


class Hydrate:
    """Items by row id, kept until the next write: several searches of one recall
    find much the same rows.

    Not for use inside a transaction that writes, whose rows nobody may see yet.
    """

    def __init__(self) -> None:
        self._kept: tuple[tuple[int, int | None], dict[int, Item]] = ((-1, None), {})

    def at(self, moment: datetime | None) -> ReadItems:
        """Reads items as they stood at the moment; as they stand without one."""
        return partial(self._read, then=to_ms_or_none(moment))

    def _read(
        self, db: apsw.Connection, rids: Sequence[int], *, then: int | None
    ) -> dict[int, Item]:
        kept = self._of((generation(db), then))
        missing = [rid for rid in rids if rid not in kept]
        if missing:
            kept.update(read_items(db, missing, then))
        return {rid: kept[rid] for rid in rids if rid in kept}

    def _of(self, wanted: tuple[int, int | None]) -> dict[int, Item]:
        state, kept = self._kept
        if state != wanted or len(kept) > _KEPT_ITEMS:
            # A new dict, not a cleared one: a thread that still looks at an older
            # state of the store goes on filling the dict of that state.
            kept = {}
            self._kept = (wanted, kept)
        return kept
