"""Erasing: a memory, its revisions and all that was derived, down to the bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from recollect.ports import Receipt
from recollect.store.sqlite import journal, signatures, words
from recollect.store.sqlite.connection import Connections, select
from recollect.store.sqlite.entity_index import changed
from recollect.store.sqlite.lifecycle import count_mentions, id_list
from recollect.store.sqlite.lock import TIMEOUT_S, holding
from recollect.store.sqlite.merging import forget_names
from recollect.store.sqlite.migrate import copies
from recollect.store.sqlite.rows import SELECT_CONTENT, content_hash
from recollect.store.sqlite.translate import translated
from recollect.store.sqlite.vectors import VectorIndex
from recollect.text import word_set

_ROWS = """
    SELECT i.rid, i.text, i.about, i.original, i.entities, i.live_to IS NULL, i.id
    FROM json_each(?) AS wanted CROSS JOIN item AS i ON i.id = wanted.value
"""
_DROP_LINKS = """
    DELETE FROM link
    WHERE (src_kind = 'item' AND src = ?1) OR (dst_kind = 'item' AND dst = ?1)
"""
# What entities have to do with each other, where this memory said so.
_DROP_EDGES = """
    DELETE FROM link
    WHERE src_kind = 'entity' AND dst_kind = 'entity' AND (context = ?1 OR source = ?1)
"""
# What hangs on an id, removed in this order; counted under these names.
_BY_ID = (
    ("links", _DROP_LINKS),
    ("links", _DROP_EDGES),
    ("status changes", "DELETE FROM status_change WHERE id = ?"),
    ("usage", "DELETE FROM usage WHERE id = ?"),
    ("usage days", "DELETE FROM usage_day WHERE id = ?"),
    ("thread memberships", "DELETE FROM thread_member WHERE item = ?"),
    ("thread events", "DELETE FROM thread_event WHERE item = ?"),
    ("file edits", "DELETE FROM file_edit WHERE item = ?"),
    ("idempotency keys", "DELETE FROM idempotency WHERE id = ?"),
    ("revisions", "DELETE FROM item WHERE id = ?"),
)
_CHILDREN = "SELECT DISTINCT id FROM item WHERE parent IN (SELECT value FROM json_each(?))"
_ORPHANS = f"SELECT rid, {SELECT_CONTENT} FROM item WHERE parent = ?"
_UNPARENT = "UPDATE item SET parent = NULL, content_hash = ? WHERE rid = ?"
_DERIVED = """
    SELECT DISTINCT src FROM link WHERE dst_kind = 'item' AND src_kind = 'item'
    AND type = 'derives_from' AND dst IN (SELECT value FROM json_each(?))
"""
_THREADS = """
    SELECT DISTINCT thread FROM thread_member WHERE item IN (SELECT value FROM json_each(?))
"""
_MENTIONS = """
    SELECT dst FROM link WHERE src_kind = 'item' AND dst_kind = 'entity'
    AND src IN (SELECT value FROM json_each(?))
"""
_VECTORS = "SELECT count(*) FROM vector WHERE rid IN (SELECT value FROM json_each(?))"
_THREAD_LEFT = "SELECT EXISTS (SELECT 1 FROM thread_member WHERE thread = ?)"
_THREAD_WORDS = "SELECT headline, anchor FROM thread WHERE id = ?"
_UNTITLE = "UPDATE thread SET headline = ? WHERE id = ?"
UNTITLED = "(its headline was erased)"
_MENTIONED = """
    SELECT EXISTS (SELECT 1 FROM link WHERE dst = ? AND dst_kind = 'entity' AND src_kind = 'item')
"""
_DROP_ENTITY_LINKS = """
    DELETE FROM link
    WHERE (src_kind = 'entity' AND src = ?1) OR (dst_kind = 'entity' AND dst = ?1)
"""
# An edge between entities names the memory it came from.
_DROP_TOLD_EDGES = """
    DELETE FROM link
    WHERE src = ?1 AND src_kind = 'entity' AND dst_kind = 'entity'
    AND EXISTS (SELECT 1 FROM json_each(?2) AS gone WHERE gone.value IN (link.context, link.source))
"""
_FORGET_ENTITY = (
    ("aliases", "DELETE FROM alias WHERE entity = ?"),
    ("entity vectors", "DELETE FROM entity_vector WHERE entity = ?"),
    ("links", _DROP_ENTITY_LINKS),
    ("entities", "DELETE FROM entity WHERE id = ?"),
)
_TOMBSTONE = "INSERT OR IGNORE INTO tombstone (id, at, actor) VALUES (?, ?, ?)"
# Set with the erase itself and cleared when the bytes are gone, so that a crash in
# between is made good later: 'file' while it must be rebuilt, then 'log'.
_PENDING = "SELECT value FROM meta WHERE name = 'unscrubbed'"
_SET_PENDING = "INSERT OR REPLACE INTO meta (name, value) VALUES ('unscrubbed', 'file')"
_REBUILT = "UPDATE meta SET value = 'log' WHERE name = 'unscrubbed'"
_CLEAN = "DELETE FROM meta WHERE name = 'unscrubbed'"
_ATTEMPTS = 5
_ATTEMPT_MS = 400


def erase(
    db: apsw.Connection, vectors: VectorIndex, ids: Sequence[str], *, actor: str, now: int
) -> Receipt:
    """Removes items and what only they brought along, in the caller's transaction.

    The bytes may still stand in free space and in the log until `scrub` was there.
    """
    rows = select(db, _ROWS, (id_list(ids),))
    found = list(dict.fromkeys(row[6] for row in rows))
    if not found:
        return Receipt((), {}, ())
    wanted = id_list(found)
    left_over = _left_over(db, wanted, set(found))
    threads = [row[0] for row in select(db, _THREADS, (wanted,))]
    rids = [row[0] for row in rows]
    entities = {entity for row in rows for entity in json.loads(row[4])}
    entities |= {row[0] for row in select(db, _MENTIONS, (wanted,))}
    removed: Counter[str] = Counter()
    removed["parent pointers"] = _cut_loose(db, found)
    words.unindex(db, [words.IndexRow(*row[:4]) for row in rows])
    removed["vectors"] = db.execute(_VECTORS, (json.dumps(rids),)).get
    vectors.remove(db, rids)
    removed["signatures"] = signatures.remove(db, rids)
    for rid in rids:
        removed["sketches"] += _delete(db, "DELETE FROM sketch WHERE rid = ?", rid)
    count_mentions(db, [row[6] for row in rows if row[5]], -1)
    for item in found:
        for name, sql in _BY_ID:
            removed[name] += _delete(db, sql, item)
        db.execute(_TOMBSTONE, (item, now, actor))
    removed["links"] += _drop_told_edges(db, entities, wanted)
    _forget_entities(db, sorted(entities), removed)
    said = " ".join(f"{row[1]} {row[2]}" for row in rows)
    left_over += _close_threads(db, threads, _Erased(said, entities), removed)
    db.execute(_SET_PENDING)
    journal.write(db, (journal.Line("erased", item) for item in found), actor=actor, at=now)
    counts = {name: count for name, count in sorted(removed.items()) if count}
    return Receipt(tuple(found), counts, tuple(left_over))


def _delete(db: apsw.Connection, sql: str, value: int | str) -> int:
    db.execute(sql, (value,))
    return db.changes()


def _cut_loose(db: apsw.Connection, erased: Sequence[str]) -> int:
    """Takes the parent away from what stays. A pointer is part of the content, so the
    rows get a new hash."""
    place = SELECT_CONTENT.split(", ").index("parent")
    count = 0
    for parent in erased:
        for rid, *content in select(db, _ORPHANS, (parent,)):
            content[place] = None
            db.execute(_UNPARENT, (content_hash(content), rid))
            count += 1
    return count


def _left_over(db: apsw.Connection, wanted: str, erased: set[str]) -> list[str]:
    """Memories made from the erased ones; they may repeat what those said."""
    rows = [*select(db, _CHILDREN, (wanted,)), *select(db, _DERIVED, (wanted,))]
    children = sorted({row[0] for row in rows} - erased)
    return [f"memory {child} was made from it and stays" for child in children]


def _drop_told_edges(db: apsw.Connection, entities: set[str], erased: str) -> int:
    """Removes what the memories told of how their entities belong together."""
    count = 0
    for entity in sorted(entities):
        db.execute(_DROP_TOLD_EDGES, (entity, erased))
        count += db.changes()
    return count


def _forget_entities(db: apsw.Connection, entities: Sequence[str], removed: Counter[str]) -> None:
    """Removes those that no other memory, live or past, speaks of."""
    for entity in entities:
        if not db.execute(_MENTIONED, (entity,)).get:
            forget_names(db, entity)
            for name, sql in _FORGET_ENTITY:
                removed[name] += _delete(db, sql, entity)
    if removed["entities"]:
        changed(db)


class _Erased(NamedTuple):
    """What the erased memories said, and whom and what they spoke of."""

    words: str
    entities: set[str]


def _close_threads(
    db: apsw.Connection, threads: Sequence[str], erased: _Erased, removed: Counter[str]
) -> list[str]:
    """Removes threads that are empty now; of others the words that may be the memory's."""
    staying = []
    said = word_set(erased.words)
    for thread in threads:
        if db.execute(_THREAD_LEFT, (thread,)).get:
            headline, anchor = db.execute(_THREAD_WORDS, (thread,)).get
            if any(len(word) > 3 and word in said for word in word_set(headline)):
                db.execute(_UNTITLE, (UNTITLED, thread))
                removed["thread headlines"] += 1
            else:
                staying.append(f"thread {thread} keeps its headline")
            if anchor and any(entity in anchor for entity in erased.entities):
                db.execute("UPDATE thread SET anchor = NULL WHERE id = ?", (thread,))
                removed["thread anchors"] += 1
            continue
        removed["thread events"] += _delete(db, "DELETE FROM thread_event WHERE thread = ?", thread)
        removed["threads"] += _delete(db, "DELETE FROM thread WHERE id = ?", thread)
    return staying


def begin_scrub(db: apsw.Connection) -> None:
    """Notes that something was removed whose bytes are still to go."""
    db.execute(_SET_PENDING)


def is_pending(db: apsw.Connection) -> bool:
    """Whether an erase has yet to clean the file: a crash or a reader came between."""
    return bool(select(db, _PENDING))


def scrub(
    connections: Connections, *, patience_s: float = TIMEOUT_S, attempts: int = _ATTEMPTS
) -> tuple[str, ...]:
    """Rebuilds the file from what is left, then empties the log; says what stays.

    ``secure_delete`` alone is not enough: when SQLite balances a tree it leaves old
    copies of rows that moved in the free part of the page they came from, and a later
    delete does not know of them.
    """
    if connections.path is None:
        with connections.writing() as db:
            db.execute(_CLEAN)
        return ()
    with translated(connections.name):
        left = _rebuild(connections, patience_s) or _empty_log(connections, patience_s, attempts)
    return (*left, *(f"the copy {copy.name}" for copy in copies(connections.path)))


def _rebuild(connections: Connections, patience_s: float) -> tuple[str, ...]:
    db = connections.mine()
    with holding(connections.lock, connections.name, patience_s):
        if select(db, _PENDING) != [("file",)]:
            return ()
        try:
            # Beside the file, not in memory, where a large space may not fit.
            db.execute("PRAGMA temp_store = FILE")
            db.execute("VACUUM")
        except apsw.FullError:
            return (f"free space in {connections.name}: no room on the disk to rebuild it",)
        finally:
            db.execute("PRAGMA temp_store = MEMORY")
        db.execute(_REBUILT)
    return ()


def _empty_log(connections: Connections, patience_s: float, attempts: int) -> tuple[str, ...]:
    db = connections.mine()
    for _ in range(attempts):
        # Let go of in between, so that others can write while a reader is in the way.
        with holding(connections.lock, connections.name, patience_s):
            if _truncate(db):
                db.execute(_CLEAN)
                return ()
    return (f"the log {connections.name}-wal: it is being read; the next opening clears it",)


def _truncate(db: apsw.Connection) -> bool:
    db.set_busy_timeout(_ATTEMPT_MS)
    try:
        db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    finally:
        db.set_busy_timeout(int(TIMEOUT_S * 1000))
    return True
