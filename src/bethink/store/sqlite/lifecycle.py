"""Lifecycle of stored items: end, restore, set status, record use, settle fact slots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import apsw

from bethink.model import Item, Status
from bethink.ports import Embedding, PutResult, Record, Scope, UsageDecay
from bethink.store.sqlite.db import history as journal
from bethink.store.sqlite.db import history as standing
from bethink.store.sqlite.db.connection import Connections, Row, select
from bethink.store.sqlite.db.rows import (
    CONTENT,
    INSERT_ITEM,
    SELECT_ITEM,
    NewRow,
    read_items,
    to_item,
)
from bethink.store.sqlite.db.sql_functions import DAY_MS
from bethink.store.sqlite.put import END_REVISION, next_rid
from bethink.store.sqlite.search import staged as signatures
from bethink.store.sqlite.search import word_index as words
from bethink.store.sqlite.search.scope import compile_scope
from bethink.store.sqlite.search.vectors import VectorIndex
from bethink.store.sqlite.usage import apply_decay

_SELECT_LIVE = """
    SELECT i.id, i.rid, i.live_from FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value AND i.live_to IS NULL
"""
_SELECT_LIVE_REVISIONS = """
    SELECT i.id, i.rev FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value AND i.live_to IS NULL
"""
_SELECT_ENDED = f"""
    SELECT {", ".join(f"i.{name}" for name in CONTENT)}, i.rid, i.live_to, i.status, i.length
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i
        ON i.id = wanted.value AND i.rev = (SELECT max(rev) FROM item WHERE id = wanted.value)
    WHERE i.live_to IS NOT NULL
"""
_COPY_SKETCH = "INSERT INTO sketch (band, rid) SELECT band, ? FROM sketch WHERE rid = ?"
_SELECT_VECTOR = """
    SELECT m.name, v.data, v.tokens FROM vector AS v JOIN model AS m ON m.mid = v.mid
    WHERE v.rid = ?
"""
_SET_STATUS = """
    UPDATE item SET status = ?1
    WHERE rid = (SELECT rid FROM item WHERE id = ?2 ORDER BY rev DESC LIMIT 1) AND status <> ?1
"""
_ADJUST_MENTIONS = """
    UPDATE entity SET mentions = max(0, mentions + ?) WHERE id IN (
        SELECT dst FROM link WHERE src = ? AND type = 'mentions'
        AND src_kind = 'item' AND dst_kind = 'entity')
"""
_EXISTING_ITEMS = (
    "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM item WHERE id = value)"
)
_COUNT_USE = """
    INSERT INTO usage (id, recalls, last_at, stamps) VALUES (?1, 1, ?2, json_array(?2))
    ON CONFLICT (id) DO UPDATE SET
        recalls = recalls + 1,
        last_at = max(coalesce(last_at, ?2), ?2),
        stamps = json_insert(
            CASE WHEN json_array_length(stamps) >= 20 THEN json_remove(stamps, '$[0]')
            ELSE stamps END, '$[#]', ?2)
"""
_COUNT_USE_ON_DAY = """
    INSERT INTO usage_day (id, day, recalls) VALUES (?, ?, 1)
    ON CONFLICT (id, day) DO UPDATE SET recalls = recalls + 1
"""


# What a rule gives as its reason. Anything else is somebody's words, perhaps the memory's
# own: they stand in the row, which an erase removes, and never in the journal.
_RULE_NAME = re.compile(r"[a-z][a-z0-9_:-]{0,63}")


def end_items(
    db: apsw.Connection, ids: Sequence[str], *, how: str, actor: str, now: int
) -> list[str]:
    """End the live revisions; return the ids that had one."""
    live = select(db, _SELECT_LIVE, (to_json_ids(ids),))
    db.executemany(END_REVISION, [(max(now, begin), how, rid) for _, rid, begin in live])
    ended = [row[0] for row in live]
    adjust_mention_counts(db, ended, -1)
    told = how if _RULE_NAME.fullmatch(how) else "for a reason that was given"
    journal.write(db, (journal.Line("ended", item, told) for item in ended), actor=actor, at=now)
    return ended


def filter_unchanged(
    db: apsw.Connection, ids: Sequence[str], revisions: Mapping[str, int]
) -> list[str]:
    """Return those whose live revision is still the given one."""
    rows = select(db, _SELECT_LIVE_REVISIONS, (to_json_ids(ids),))
    return [item for item, rev in rows if revisions.get(item) == rev]


def restore_items(
    db: apsw.Connection, vectors: VectorIndex, ids: Sequence[str], *, actor: str, now: int
) -> list[str]:
    """Add a new live revision, a copy of the last, to each ended item; return their ids."""
    ended = select(db, _SELECT_ENDED, (to_json_ids(ids),))
    rid = next_rid(db)
    for row in ended:
        _copy_last_revision(db, vectors, row, rid, now)
        rid += 1
    done = [row[0] for row in ended]
    adjust_mention_counts(db, done, 1)
    journal.write(db, (journal.Line("restored", item) for item in done), actor=actor, at=now)
    return done


def _copy_last_revision(
    db: apsw.Connection, vectors: VectorIndex, row: Row, rid: int, now: int
) -> None:
    last = dict(zip(CONTENT, row, strict=False))
    old_rid, ended_at, status, length = row[len(CONTENT) :]
    last |= {"rev": last["rev"] + 1, "live_from": max(now, ended_at)}
    new = NewRow(rid, tuple(last.values()), None, None, status, length)
    db.execute(INSERT_ITEM, new.values())
    words.index_rows(db, [words.IndexRow(rid, last["text"], last["about"], last["original"])])
    db.execute(_COPY_SKETCH, (rid, old_rid))
    signatures.copy_signature(db, rid, old_rid)
    for model, vector, tokens in select(db, _SELECT_VECTOR, (old_rid,)):
        vectors.add(db, model, [(rid, _to_embedding(vector, tokens))])


def _to_embedding(vector: bytes, tokens: bytes) -> Embedding:
    import numpy as np  # start-up time: only a restore turns stored vectors back

    return Embedding(np.frombuffer(vector, dtype=np.float16).astype(np.float32), tokens)


def set_status(
    db: apsw.Connection, ids: Sequence[str], status: Status, *, actor: str, now: int
) -> None:
    """Set the status of the last revision of items; those that have it are left alone."""
    changed = []
    for item in dict.fromkeys(ids):
        db.execute(_SET_STATUS, (status, item))
        if db.changes():
            changed.append(journal.Line("status", item, status))
            standing.record_status_changes(db, [standing.StatusChange(item, now, status)])
    journal.write(db, changed, actor=actor, at=now)


def record_use(
    db: apsw.Connection, ids: Sequence[str], now: int, fading: UsageDecay | None = None
) -> None:
    """Count a recall of each item: in total, on this day, and the last twenty times."""
    known = [row[0] for row in select(db, _EXISTING_ITEMS, (to_json_ids(ids),))]
    db.executemany(_COUNT_USE, [(item, now) for item in known])
    db.executemany(_COUNT_USE_ON_DAY, [(item, now // DAY_MS) for item in known])
    if fading is not None:
        apply_decay(db, known, now, fading)


def unembedded_items(
    db: apsw.Connection, vectors: VectorIndex, model: str, limit: int
) -> list[Item]:
    """Return live items without a vector of this model, in the order they were stored."""
    rids = vectors.unembedded(db, model, limit)
    items = read_items(db, rids)
    return [items[rid] for rid in rids]


def set_item_embeddings(
    db: apsw.Connection, vectors: VectorIndex, model: str, embeddings: Mapping[str, Embedding]
) -> None:
    """Store vectors of live items; drop other models once none is left unembedded."""
    live = select(db, _SELECT_LIVE, (to_json_ids(list(embeddings)),))
    rows = [(rid, embeddings[item]) for item, rid, _ in live]
    vectors.remove(db, [rid for rid, _ in rows])
    vectors.add(db, model, rows)
    if not vectors.unembedded(db, model, 1):
        vectors.drop_other_models(db, model)


def adjust_mention_counts(db: apsw.Connection, ids: Iterable[str], step: int) -> None:
    """Adjust the mention counts of the entities of items that are added or ended."""
    db.executemany(_ADJUST_MENTIONS, [(step, item) for item in ids])


def to_json_ids(ids: Sequence[str]) -> str:
    """Encode ids, each once, for ``json_each``."""
    return json.dumps(list(dict.fromkeys(ids)), ensure_ascii=False)


RULES_ACTOR = "rules"  # who judged, for the journal: nobody said that the older one is out of date
_MAX_PER_SLOT = 64  # of one slot: the newest
_SELECT_OTHER_NAMES = """
    SELECT DISTINCT a.alias, b.alias FROM json_each(?) AS wanted
    CROSS JOIN alias AS a ON a.alias = wanted.value
    CROSS JOIN alias AS b ON b.entity = a.entity
    ORDER BY a.alias, b.alias
"""
_SELECT_SLOT_ITEMS = f"""
    SELECT {SELECT_ITEM}
    FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.subject = wanted.value ->> 0 AND i.attribute = wanted.value ->> 1
    LEFT JOIN usage AS u ON u.id = i.id
    WHERE i.live_to IS NULL AND PREDICATE
    ORDER BY i.stored_at DESC, i.id LIMIT ?
"""


class FactSlotsMixin:
    """Mixin of `SqliteStore`: facts by subject and attribute."""

    _connections: Connections

    def other_names(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        asked = json.dumps(list(dict.fromkeys(names)), ensure_ascii=False)
        found: dict[str, list[str]] = {}
        with self._connections.read_transaction() as db:
            for name, other in select(db, _SELECT_OTHER_NAMES, (asked,)):
                found.setdefault(name, []).append(other)
        return {name: tuple(others) for name, others in found.items()}

    def slots(self, wanted: Sequence[tuple[str, str]], scope: Scope) -> list[Item]:
        if not wanted:
            return []
        predicate = compile_scope(scope)
        sql = _SELECT_SLOT_ITEMS.replace("PREDICATE", predicate.sql)
        asked = json.dumps([list(pair) for pair in dict.fromkeys(wanted)], ensure_ascii=False)
        with self._connections.read_transaction() as db:
            rows = select(db, sql, (asked, *predicate.values, _MAX_PER_SLOT * len(wanted)))
        return [to_item(row) for row in rows]


def apply_supersessions(
    db: apsw.Connection, records: Sequence[Record], kept: Sequence[PutResult], now: int
) -> None:
    """Supersede what the stored records replace, in the caller's transaction.

    An item that has changed since it was read is left alone, and so is everything that a
    record which was not stored would have superseded.
    """
    revisions: dict[str, int] = {}
    born: list[str] = []
    for record, outcome in zip(records, kept, strict=True):
        if outcome.outcome == "stored":
            revisions.update(record.supersedes)
            if record.item.rev == 1 and record.item.status == "superseded":
                born.append(record.item.id)
    if revisions:
        still = filter_unchanged(db, list(revisions), revisions)
        set_status(db, still, "superseded", actor=RULES_ACTOR, now=now)
    if born:
        # Stored so already; the line lets the standing be undone like any other.
        lines = [journal.Line("status", item, "superseded") for item in born]
        journal.write(db, lines, actor=RULES_ACTOR, at=now)
