"""Erase items, their revisions and all derived data, down to the bytes in the file."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from bethink.core.json_values import Json
from bethink.core.words import word_set
from bethink.ports import EraseReceipt
from bethink.store.sql import history
from bethink.store.sql.connection import Database, Row, select
from bethink.store.sql.entities import (
    bump_entities_version,
    classify_names,
    forget_times,
    remove_merged_names,
)
from bethink.store.sql.oplog.capture import empty_edges
from bethink.store.sql.revisions import adjust_mention_counts
from bethink.store.sql.rows import CONTENT, SELECT_CONTENT, content_hash, matches_hash
from bethink.store.sql.search import vector_index, word_index
from bethink.store.sql.sql_functions import to_json_ids

_SELECT_ROWS = f"""
    SELECT i.rid, i.text, i.about, i.original, i.entities, i.live_to IS NULL, i.id,
        i.content_hash, {", ".join(f"i.{name}" for name in CONTENT)}
    FROM json_each(?) AS wanted CROSS JOIN item AS i ON i.id = wanted.value
"""
_LIVE_FROM = CONTENT.index("live_from")
_DROP_LINKS = """
    DELETE FROM link
    WHERE (src_kind = 'item' AND src = ?1) OR (dst_kind = 'item' AND dst = ?1)
"""
# What this memory states of entities; others may state it, too.
_DROP_STATEMENTS = "DELETE FROM link WHERE stated_by = ? AND stated_by <> ''"
HELD = "~"  # before the id of a memory: operations on it that are not understood
# Who was told of the memory is to be told of the erase: the log keeps that much until then.
_EMPTY_OPERATIONS = """
    UPDATE op SET kind = 'erased', data = CAST('' AS BLOB)
    WHERE item IN (?1, '~' || ?1) AND kind <> 'erase'
"""
# Rows deleted with an id, in this order, counted under these names.
_DELETE_BY_ID = (
    ("links", _DROP_LINKS),
    ("links", _DROP_STATEMENTS),
    ("status changes", "DELETE FROM status_change WHERE id = ?"),
    ("usage", "DELETE FROM usage WHERE id = ?"),
    ("usage days", "DELETE FROM usage_day WHERE id = ?"),
    ("thread memberships", "DELETE FROM thread_member WHERE item = ?"),
    ("thread events", "DELETE FROM thread_event WHERE item = ?"),
    ("file edits", "DELETE FROM file_edit WHERE item = ?"),
    ("idempotency keys", "DELETE FROM idempotency WHERE id = ?"),
    ("conflicts", "DELETE FROM conflict WHERE item = ?"),
    ("operations", _EMPTY_OPERATIONS),
    ("revisions", "DELETE FROM item WHERE id = ?"),
)
_SELECT_LEVELS = """
    SELECT id, max(classification) FROM item
    WHERE id IN (SELECT value FROM json_each(?)) GROUP BY id
"""
_CHILDREN = "SELECT DISTINCT id FROM item WHERE parent IN (SELECT value FROM json_each(?))"
_SELECT_ORPHANS = f"SELECT rid, content_hash, {SELECT_CONTENT} FROM item WHERE parent = ?"
_UNPARENT = "UPDATE item SET parent = NULL WHERE rid = ?"
_SELECT_DERIVED = """
    SELECT DISTINCT src FROM link WHERE dst_kind = 'item' AND src_kind = 'item'
    AND type = 'derives_from' AND dst IN (SELECT value FROM json_each(?))
"""
_SELECT_THREADS = """
    SELECT DISTINCT thread, classification FROM thread_member
    WHERE item IN (SELECT value FROM json_each(?))
"""
_SELECT_MENTIONS = """
    SELECT dst FROM link WHERE src_kind = 'item' AND dst_kind = 'entity'
    AND src IN (SELECT value FROM json_each(?))
"""
_COUNT_VECTORS = "SELECT count(*) FROM vector WHERE rid IN (SELECT value FROM json_each(?))"
_THREAD_HAS_MEMBERS = """
    SELECT EXISTS (SELECT 1 FROM thread_member WHERE thread = ? AND classification = ?)
"""
_SELECT_THREAD = "SELECT headline, anchor FROM thread WHERE id = ? AND classification = ?"
_CLEAR_HEADLINE = "UPDATE thread SET headline = ? WHERE id = ? AND classification = ?"
_CLEAR_ANCHOR = "UPDATE thread SET anchor = NULL WHERE id = ? AND classification = ?"
_DROP_EVENTS = "DELETE FROM thread_event WHERE thread = ? AND classification = ?"
_DROP_THREAD = "DELETE FROM thread WHERE id = ? AND classification = ?"
ERASED_HEADLINE = "(its headline was erased)"
_IS_MENTIONED = """
    SELECT EXISTS (SELECT 1 FROM link WHERE dst = ? AND dst_kind = 'entity' AND src_kind = 'item')
"""
_DROP_ALIAS = "DELETE FROM alias WHERE alias = ? AND entity = ?"
_DROP_ENTITY_LINKS = """
    DELETE FROM link
    WHERE (src_kind = 'entity' AND src = ?1) OR (dst_kind = 'entity' AND dst = ?1)
"""
_DELETE_ENTITY = (
    ("aliases", "DELETE FROM alias WHERE entity = ?"),
    ("entity vectors", "DELETE FROM entity_vector WHERE entity = ?"),
    ("links", _DROP_ENTITY_LINKS),
    ("operations", "DELETE FROM op WHERE item = '=' || ?"),
    ("entities", "DELETE FROM entity WHERE id = ?"),
)
_INSERT_TOMBSTONE = "INSERT OR IGNORE INTO tombstone (id, at, actor) VALUES (?, ?, ?)"
# Set with the erase and cleared when the bytes are gone, so that a crash in between is
# repaired later: 'file' while it must be rebuilt, then 'log'.
SET_PENDING = "INSERT OR REPLACE INTO meta (name, value) VALUES ('unscrubbed', 'file')"


def erase_items(db: Database, ids: Sequence[str], *, actor: str, now: int) -> EraseReceipt:
    """Remove items and what only they brought along, in the caller's transaction.

    The bytes may remain in free space and in the log until they are scrubbed.
    """
    rows = select(db, _SELECT_ROWS, (to_json_ids(ids),))
    found = list(dict.fromkeys(row[6] for row in rows))
    if not found:
        return EraseReceipt((), {}, ())
    encoded_ids = to_json_ids(found)
    levels: dict[str, int] = dict(select(db, _SELECT_LEVELS, (encoded_ids,)))
    history.bury_keys(db, levels, now)
    remaining = _derived_memories(db, encoded_ids, set(found))
    threads = list(select(db, _SELECT_THREADS, (encoded_ids,)))
    intact = [row for row in rows if matches_hash(row[8:], row[7])]
    entities = {entity for row in intact for entity in json.loads(row[4])}
    entities |= {row[0] for row in select(db, _SELECT_MENTIONS, (encoded_ids,))}
    removed: Counter[str] = Counter()
    removed["parent pointers"] = _clear_parents(db, found)
    word_index.unindex_rows(db, [word_index.IndexRow(*row[:4]) for row in intact])
    remove_derived(db, [row[0] for row in rows], removed)
    adjust_mention_counts(db, [row[6] for row in rows if row[5]], -1)
    for item in found:
        for name, sql in _DELETE_BY_ID:
            removed[name] += _delete(db, sql, item)
        db.execute(_INSERT_TOMBSTONE, (item, now, actor))
    kept = _delete_unmentioned_entities(db, sorted(entities), removed)
    times = [row[8 + _LIVE_FROM] for row in intact] if len(intact) == len(rows) else []
    forget_times(db, kept, times)
    words = word_set(" ".join(f"{row[1]} {row[2]}" for row in rows))
    remaining += _clean_threads(db, threads, words, entities, removed)
    history.change_questions(db, lambda questions: _without_answers(questions, set(found)))
    db.execute(SET_PENDING)
    told = {item: f"classification {level}" for item, level in levels.items() if level > 1}
    lines = (history.JournalLine("erased", item, told.get(item, "")) for item in found)
    history.write_journal(db, lines, actor=actor, at=now)
    if len(intact) < len(rows):
        # The index has the words that were stored, and finds them by the text alone.
        word_index.rebuild_word_index(db)
    counts = {name: count for name, count in sorted(removed.items()) if count}
    return EraseReceipt(tuple(found), counts, tuple(remaining))


def remove_derived(db: Database, rids: Sequence[int], removed: Counter[str]) -> None:
    """Remove what was computed from revisions: vectors and sketches."""
    removed["vectors"] = db.execute(_COUNT_VECTORS, (json.dumps(rids),)).get
    vector_index.remove_vectors(db, rids)
    for rid in rids:
        removed["sketches"] += _delete(db, "DELETE FROM sketch WHERE rid = ?", rid)


def _delete(db: Database, sql: str, *values: int | str) -> int:
    db.execute(sql, values)
    return db.changes()


def _clear_parents(db: Database, erased: Sequence[str]) -> int:
    """Clear the parent of remaining items; the pointer is content, so their hash changes."""
    index = SELECT_CONTENT.split(", ").index("parent")
    count = 0
    for parent in erased:
        for rid, stored_hash, *content in select(db, _SELECT_ORPHANS, (parent,)):
            is_intact = matches_hash(content, stored_hash)
            content[index] = None
            # A damaged row never gets a hash that fits it.
            hashed = content_hash(content) if is_intact else stored_hash
            db.execute(_UNPARENT, (rid,))
            history.change_states(db, {rid: {"content_hash": hashed}})
            count += 1
    return count


def _derived_memories(db: Database, encoded_ids: str, erased: set[str]) -> list[str]:
    """List memories made from the erased ones; they may repeat their content."""
    rows = [*select(db, _CHILDREN, (encoded_ids,)), *select(db, _SELECT_DERIVED, (encoded_ids,))]
    children = sorted({row[0] for row in rows} - erased)
    return [f"memory {child} was derived from it and is kept" for child in children]


def _delete_unmentioned_entities(
    db: Database, entities: Sequence[str], removed: Counter[str]
) -> list[str]:
    """Remove entities that no other memory, live or past, mentions; return the others."""
    kept = []
    for entity in entities:
        if not db.execute(_IS_MENTIONED, (entity,)).get:
            remove_merged_names(db, entity)
            for name, sql in _DELETE_ENTITY:
                removed[name] += _delete(db, sql, entity)
        else:
            kept.append(entity)
    empty_edges(db, set(entities) - set(kept))
    for entity in kept:  # after those that gave it their names
        # Names and keys that no remaining memory tells go. Its own name and those of entities
        # merged into it stay, as classified as what tells them.
        unstated = classify_names(db, entity)
        db.executemany(_DROP_ALIAS, [(alias, entity) for alias in sorted(unstated)])
        removed["aliases"] += len(unstated)
    if removed["entities"] or removed["aliases"]:
        bump_entities_version(db)
    return kept


def _clean_threads(
    db: Database,
    threads: Sequence[Row],
    words: frozenset[str],
    entities: set[str],
    removed: Counter[str],
) -> list[str]:
    """Remove threads that are empty now; clear erased words from others' headlines."""
    remaining = []
    for thread, level in threads:
        if db.execute(_THREAD_HAS_MEMBERS, (thread, level)).get:
            headline, anchor = db.execute(_SELECT_THREAD, (thread, level)).get
            if any(len(word) > 3 and word in words for word in word_set(headline)):
                db.execute(_CLEAR_HEADLINE, (ERASED_HEADLINE, thread, level))
                removed["thread headlines"] += 1
            else:
                remaining.append(f"thread {thread} keeps its headline")
            if anchor and any(entity in anchor for entity in entities):
                db.execute(_CLEAR_ANCHOR, (thread, level))
                removed["thread anchors"] += 1
            continue
        removed["thread events"] += _delete(db, _DROP_EVENTS, thread, level)
        removed["threads"] += _delete(db, _DROP_THREAD, thread, level)
    return remaining


def _without_answers(questions: list[Json], erased: set[str]) -> list[Json]:
    """Return saved questions that name none of the erased as right or wrong answers."""
    return [
        one | {n: one[n] and [i for i in one[n] if i not in erased] for n in ("relevant", "wrong")}
        for one in questions
    ]
