"""Lifecycle of stored items: end, restore, set status, record use, settle fact slots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

import apsw

from bethink.model import Status
from bethink.ports import Embedding, PutResult, Record
from bethink.store.sqlite.db import history as journal
from bethink.store.sqlite.db import history as standing
from bethink.store.sqlite.db.connection import Row, select
from bethink.store.sqlite.db.rows import (
    CONTENT,
    INSERT_ITEM,
    NewRow,
)
from bethink.store.sqlite.put import END_REVISION, next_rid
from bethink.store.sqlite.search import staged as signatures
from bethink.store.sqlite.search import word_index as words
from bethink.store.sqlite.search.vectors import VectorIndex

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


def adjust_mention_counts(db: apsw.Connection, ids: Iterable[str], step: int) -> None:
    """Adjust the mention counts of the entities of items that are added or ended."""
    db.executemany(_ADJUST_MENTIONS, [(step, item) for item in ids])


def to_json_ids(ids: Sequence[str]) -> str:
    """Encode ids, each once, for ``json_each``."""
    return json.dumps(list(dict.fromkeys(ids)), ensure_ascii=False)


RULES_ACTOR = "rules"  # who judged, for the journal: nobody said that the older one is out of date


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
