"""Revisions of items: put, end and restore them, set their status."""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bethink.core.json_values import Json
from bethink.core.lazy import lazy_pattern
from bethink.errors import Conflict, Refused, StoreDamaged
from bethink.model import Item, Link, Status
from bethink.model.item import REFUSED, WAITING
from bethink.ports import Embedding, PutResult, Record, journal_detail
from bethink.store.analysis import extra_index_words
from bethink.store.sql import history
from bethink.store.sql.ceiling import SPEAKS_OF_ENTITY
from bethink.store.sql.connection import HIGHEST, Database, Row, as_table, read_ahead, select
from bethink.store.sql.entities import (
    EXISTING_IDS,
    all_exist,
    bump_entities_version,
    classify_names,
    mention_embeddings,
    no_longer_through,
    set_entity_embeddings,
    set_times,
)
from bethink.store.sql.graph import add_links
from bethink.store.sql.links import (
    COUNT_MENTIONS,
    MENTIONED_BY,
    NAMES_OF_ENTITIES,
    MentionWriter,
    assign_turn_numbers,
    link_turns,
    update_mentions,
)
from bethink.store.sql.rows import (
    CONTENT,
    INSERT_ITEM,
    WORDS_SLICE,
    NewRow,
    entity_ids,
    matches_hash,
    to_content,
)
from bethink.store.sql.search import vector_index, word_index
from bethink.store.sql.search.terms import FIND_MODEL, SLOTS_OF_ROWS
from bethink.store.sql.sql_functions import from_ms, state_hash, to_json_ids

_SELECT_LATEST = f"""
    SELECT i.id, i.rid, i.rev, i.live_from, i.live_to, i.fingerprint, i.level, i.entities,
        i.ended_by {history.LAST_REVISIONS}
"""
_SELECT_SAME_CONTENT = """
    SELECT i.fingerprint, i.level, i.id, i.classification, i.trust FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.fingerprint = wanted.value AND i.live_to IS NULL
    WHERE i.status = 'active' AND (i.valid_to IS NULL OR i.valid_to > ?)
    ORDER BY i.rid
"""
_SELECT_KEYS = """
    SELECT k.key, k.id, k.fingerprint FROM idempotency AS k
    WHERE k.key IN (SELECT value FROM json_each(?)) AND ? >= coalesce((
        SELECT i.classification FROM item AS i WHERE i.id = k.id ORDER BY i.rev DESC LIMIT 1), 0)
    ORDER BY k.key, k.at, k.id
"""
_NEXT_RID = "SELECT coalesce(max(rid), 0) + 1 FROM item"
_ADD_SKETCH = "INSERT OR IGNORE INTO sketch (band, rid) VALUES (?, ?)"
_ADD_KEY = "INSERT INTO idempotency (key, id, fingerprint, at) VALUES (?, ?, ?, ?)"
# An entity that only earlier revisions mention stays linked to them.
_MENTION_OF = "src = ?1 AND type = 'mentions' AND dst = ?2"
_ADD_NAMED_MENTION = """
    INSERT OR IGNORE INTO link (src_kind, src, type, dst_kind, dst, source, created_at)
    SELECT 'item', ?, 'mentions', 'entity', id, 'caller', ? FROM entity WHERE id = ?
"""
_DROP_PAST_MENTION = """
    DELETE FROM link WHERE src = ? AND type = 'mentioned' AND dst = ?
    AND src_kind = 'item' AND dst_kind = 'entity'
"""
_NAMED_BY_RAISED = """
    SELECT l.dst FROM item AS i JOIN link AS l ON l.src = i.id
    WHERE i.id = ? AND i.rev = ? AND i.classification < ?
    AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""


@dataclass(slots=True)
class _Revision:
    """The latest revision of an item, stored already or about to be."""

    rid: int
    rev: int
    live_from: int
    live_to: int | None
    content: tuple[str, str]  # fingerprint and level
    entities: tuple[str, ...]
    ended_by: str | None = None
    record: Record | None = None


def put_records(
    db: Database, records: Sequence[Record], *, actor: str, now: int, ceiling: int = HIGHEST
) -> list[PutResult]:
    """Store the new ones among the records; all of them or, on an error, none.

    What is above the ceiling has no effect on the outcome.
    """
    _read_ahead(db, records, now)
    records = assign_turn_numbers(db, [_with_index_forms(record) for record in records])
    plan = _PutPlan(db, records, now, ceiling)
    results = [plan.decide(record) for record in records]
    plan.execute(db, actor)
    for how in sorted({record.item.ended_by or "" for record in records} - {""}):
        waiting = [record.item.id for record in records if record.item.ended_by == how]
        end_items(db, waiting, how=how, actor=actor, now=now)
    return results


def _read_ahead(db: Database, records: Sequence[Record], now: int) -> None:
    """Ask at once for what storing new memories reads."""
    ids = tuple(record.item.id for record in records)
    entities = {mention.entity.id: None for record in records for mention in record.mentions}
    prints = to_json_ids(record.fingerprint for record in records)
    models = {record.model for record in records if record.embedding is not None}
    read_ahead(
        db,
        (_NEXT_RID, ()),
        (_SELECT_LATEST, (to_json_ids(ids),)),
        history.erased_query(ids),
        (_SELECT_SAME_CONTENT, (prints, now)),
        (word_index.PACKED_END, ()),
        (history.SELECT_HEAD, ()),
        (history.SELECT_KEYS, ()),
        *((FIND_MODEL, (model,)) for model in sorted(models)),
    )
    if entities:
        named = as_table(tuple(entities))
        read_ahead(db, *((sql, (named,)) for sql in (EXISTING_IDS, NAMES_OF_ENTITIES)))
        read_ahead(db, (MENTIONED_BY, (as_table(ids),)))


def _with_index_forms(record: Record) -> Record:
    """Add the further word forms by which the index finds the record."""
    forms = extra_index_words(f"{record.item.text} {record.about}")
    return replace(record, about=f"{record.about} {forms}".strip()) if forms else record


def next_rid(db: Database) -> int:
    """Return the row id for the next revision."""
    return int(db.execute(_NEXT_RID).get)


class _PutPlan:
    """The outcome of a batch. Records see those before them in the same batch."""

    def __init__(self, db: Database, records: Sequence[Record], now: int, ceiling: int) -> None:
        self._now = now
        self._rid = next_rid(db)
        self._new: list[_Revision] = []
        self._closed: dict[int, Json] = {}
        self._dropped: list[tuple[str, str]] = []
        self._new_keys: list[tuple[str, str, str, int]] = []
        if records:
            rids = array("q", range(self._rid, self._rid + len(records)))
            read_ahead(db, (SLOTS_OF_ROWS, (as_table(rids),)))
        ids = to_json_ids(record.item.id for record in records)
        self._latest = {
            row[0]: _Revision(
                row[1], row[2], row[3], row[4], (row[5], row[6]), tuple(json.loads(row[7])), row[8]
            )
            for row in select(db, _SELECT_LATEST, (ids,))
        }
        self._erased = history.erased_of(db, (record.item.id for record in records))
        # By content the items that hold it already: id, classification and trust.
        self._contents: defaultdict[tuple[str, str], list[tuple[str, int, int]]] = defaultdict(list)
        prints = to_json_ids(record.fingerprint for record in records)
        for fingerprint, level, *holder in select(db, _SELECT_SAME_CONTENT, (prints, now)):
            if holder[1] <= ceiling:
                self._contents[fingerprint, level].append((holder[0], holder[1], holder[2]))
        keys = [record.key for record in records if record.key is not None]
        used = select(db, _SELECT_KEYS, (to_json_ids(keys), ceiling)) if keys else []
        self._keys = {key: (item, fingerprint) for key, item, fingerprint in used}
        self._erased_keys = set(history.find_erased_keys(db, keys, ceiling) if keys else ())

    def decide(self, record: Record) -> PutResult:
        """Decide what becomes of a record."""
        used = self._keys.get(record.key) if record.key is not None else None
        if used is not None:
            if used[1] != record.fingerprint:
                raise Conflict(
                    f"the key {record.key!r} was used before for other content ({used[0]})",
                    remedy="use a new key for a new memory",
                )
            return PutResult(used[0], "repeated")
        if record.key is not None and record.key in self._erased_keys:
            raise Refused(
                f"what was stored with the key {record.key!r:.80} was erased",
                remedy="use a new key to store it again",
            )
        item, content = record.item, (record.fingerprint, record.item.level)
        # What all readers of the item see, and trust as much, stands for it.
        same = (
            (known, level)
            for known, level, trust in self._contents[content]
            if level <= item.classification and trust >= item.trust
        )
        known, level = next(same, ("", 0))
        if known and record.skip_duplicate and item.rev == 1:
            if level == item.classification:
                # Otherwise those who see only the other one would learn of this key.
                self._record_key(record, known)
            return PutResult(known, "duplicate")
        self._add(record, content)
        self._record_key(record, record.item.id)
        return PutResult(record.item.id, "stored")

    def _add(self, record: Record, content: tuple[str, str]) -> None:
        item = record.item
        before = self._latest.get(item.id)
        self._require_next_revision(item, before)
        # Never before the revision it replaces, even if the clock went back.
        begin = max([self._now, *((before.live_from, before.live_to or 0) if before else ())])
        entities = entity_ids(record)
        if before is not None:
            if before.live_to is None:
                self._end_revision(item.id, before, begin)
            removed = set(before.entities) - set(entities)
            self._dropped += [(item.id, entity) for entity in before.entities if entity in removed]
        new = _Revision(self._rid, item.rev, begin, None, content, entities, record=record)
        self._rid += 1
        self._new.append(new)
        self._latest[item.id] = new
        if item.ended_by is None:
            self._contents[content].append((item.id, item.classification, item.trust))

    def _require_next_revision(self, item: Item, before: _Revision | None) -> None:
        if item.id in self._erased:
            raise Refused(f"{item.id} was erased; an erased id is never used again")
        live = 0
        if before is not None and (before.live_to is None or before.ended_by in (WAITING, REFUSED)):
            live = before.rev
        if before is not None and live == 0:
            raise Conflict(f"{item.id} was forgotten", remedy=f"bethink restore {item.id}")
        if item.rev != live + 1:
            found = f"its revision is {live}" if live else "it does not exist"
            raise Conflict(
                f"{item.id} cannot become revision {item.rev}: {found}",
                remedy="read it again and repeat the change",
            )

    def _end_revision(self, item_id: str, before: _Revision, moment: int) -> None:
        before.live_to = moment
        if before.record is None:
            self._closed[before.rid] = {"live_to": moment, "ended_by": "revised"}
        holders = self._contents[before.content]
        holders[:] = [existing for existing in holders if existing[0] != item_id]

    def _record_key(self, record: Record, item_id: str) -> None:
        if record.key is not None:
            self._keys[record.key] = (item_id, record.fingerprint)
            self._new_keys.append((record.key, item_id, record.fingerprint, self._now))

    def execute(self, db: Database, actor: str) -> None:
        """Write everything that was decided."""
        # First, since an item has only one live revision.
        history.change_states(db, self._closed)
        insert_rows(db, [(self._row(new), _record(new).sketch) for new in self._new])
        # A new active item needs no change: active is the default.
        items = ((new, _record(new).item) for new in self._new)
        changes = (
            (item.id, new.live_from, item.status)
            for new, item in items
            if item.status != "active" or new.rev > 1
        )
        history.record_status_changes(db, changes)
        self._add_vectors(db)
        self._write_links(db)
        db.executemany(_ADD_KEY, self._new_keys)
        history.write_journal(db, map(_journal_line, self._new), actor=actor, at=self._now)

    def _row(self, new: _Revision) -> NewRow:
        record = _record(new)
        ended_by = None if new.live_to is None else "revised"
        content = to_content(record, new.live_from)
        return NewRow(new.rid, content, new.live_to, ended_by, record.item.status)

    def _add_vectors(self, db: Database) -> None:
        by_model: dict[str, list[tuple[int, Embedding]]] = {}
        for new in self._new:
            record = _record(new)
            if record.embedding is not None:
                if not record.model:
                    raise Refused(f"the vector of {record.item.id} has no model name")
                by_model.setdefault(record.model, []).append((new.rid, record.embedding))
        if by_model:
            for model, rows in by_model.items():
                vector_index.append_vectors(db, model, rows)

    def _write_links(self, db: Database) -> None:
        now = from_ms(self._now)
        mentions = [mention for new in self._new for mention in _record(new).mentions]
        is_new = not all_exist(db, (mention.entity.id for mention in mentions))
        merged: set[str] = set()  # what was said of them may have been by a merged name alone
        for item, named in self._dropped:
            through = no_longer_through(db, item, named)
            merged.update(through)
            for entity in (named, *through):
                marked = update_mentions(db, _MENTION_OF, (item, entity), "mentioned")
                db.execute(COUNT_MENTIONS, (-marked, entity))
        writer, links = MentionWriter(db, now), list[Link]()
        for new in self._new:
            record = _record(new)
            writer.add(record.item.id, record.item.classification, record.mentions)
            links += record.links
            if new.rev == 1 and not _has_other_mentions(record):
                continue
            # What follows reads or changes mentions.
            writer.finish()
            self._link_named_entities(db, new)
            if new.rev > 1:
                mentions_again = ((record.item.id, entity) for entity in new.entities)
                db.executemany(_DROP_PAST_MENTION, mentions_again)
            add_links(db, links, now)
            links.clear()
        writer.finish()
        add_links(db, links, now)
        self._see_named_entities(db)
        self._classify_names(db)
        set_times(db, merged)
        if is_new or writer.has_renamed:
            bump_entities_version(db)
        self._embed_entities(db)

    def _classify_names(self, db: Database) -> None:
        """Hide the names that only a memory tells which has become more classified."""
        changed = [_record(new).item for new in self._new if new.rev > 1]
        known = [(item.id, item.rev - 1, item.classification) for item in changed]
        for entity in sorted(
            {row[0] for one in known for row in select(db, _NAMED_BY_RAISED, one)}
        ):
            classify_names(db, entity)

    def _embed_entities(self, db: Database) -> None:
        by_model: dict[str, dict[str, Embedding]] = {}
        for new in self._new:
            record = _record(new)
            embeddings = mention_embeddings(record.mentions)
            if embeddings and record.model:
                by_model.setdefault(record.model, {}).update(embeddings)
        for model, vectors in by_model.items():
            set_entity_embeddings(db, model, vectors, all_exist=True)
        turns = [_record(new).item for new in self._new]
        link_turns(db, turns, self._now, self._new[0].rid if self._new else 0)

    def _see_named_entities(self, db: Database) -> None:
        """Note when entities were seen that came by id only, or with a clock that went back.

        A revision may also name one that was merged into another since.
        """
        seen = [
            (new.live_from, _record(new).item.id)
            for new in self._new
            if new.entities
            and (
                new.rev > 1
                or new.live_from > self._now
                or len(new.entities) > len(_record(new).mentions)
            )
        ]
        db.executemany(_SEE_AGAIN, seen)
        for new in self._new:
            if new.live_from > self._now:  # an entity that was known is not as old as this clock
                set_times(db, new.entities, self._now, new.live_from)

    def _link_named_entities(self, db: Database, new: _Revision) -> None:
        """Link entities that the item names by id only."""
        record = _record(new)
        linked = {mention.entity.id for mention in record.mentions}
        for entity in record.item.entities:
            if entity in linked:
                continue
            db.execute(_ADD_NAMED_MENTION, (record.item.id, self._now, entity))
            db.execute(COUNT_MENTIONS, (db.changes(), entity))


def insert_rows(db: Database, rows: Sequence[tuple[NewRow, Sequence[int]]]) -> None:
    """Insert revisions with the bands of their sketches, and index their words."""
    texts = [word_index.IndexRow(row.rid, *row.content[WORDS_SLICE]) for row, _ in rows]
    split = [word_index.split_row(db, text) for text in texts]
    new = zip((row for row, _ in rows), split, strict=True)
    db.executemany(INSERT_ITEM, (row._replace(length=words.length).values() for row, words in new))
    db.executemany(_ADD_SKETCH, ((band, row.rid) for row, bands in rows for band in bands))
    word_index.index_rows(db, texts, split)


def _record(new: _Revision) -> Record:
    assert new.record is not None
    return new.record


def _has_other_mentions(record: Record) -> bool:
    """Whether a record names entities by id only, or brings links to entities."""
    mentioned = {mention.entity.id for mention in record.mentions}
    return not mentioned.issuperset(record.item.entities) or any(
        link.src.kind == "item" and link.dst.kind == "entity" for link in record.links
    )


def _journal_line(new: _Revision) -> history.JournalLine:
    record = _record(new)
    kind = "stored" if new.rev == 1 else "revised"
    return history.JournalLine(kind, record.item.id, journal_detail(record))


_SELECT_LIVE = """
    SELECT i.id, i.rid, i.live_from, i.rev FROM json_each(?) AS wanted
    CROSS JOIN item AS i ON i.id = wanted.value AND i.live_to IS NULL
"""
_SELECT_ENDED = f"""
    SELECT {", ".join(f"i.{name}" for name in CONTENT)},
        i.rid, i.live_to, i.status, i.ended_by, i.content_hash, i.state_hash
    {history.LAST_REVISIONS} WHERE i.live_to IS NOT NULL
"""
_COPY_SKETCH = "INSERT INTO sketch (band, rid) SELECT band, ? FROM sketch WHERE rid = ?"
_SELECT_LAST_STATUS = f"SELECT i.id, i.rid, i.status {history.LAST_REVISIONS}"
_SEE_AGAIN = f"""
    UPDATE entity SET created_at = min(created_at, ?1),
        last_seen_at = max(coalesce(last_seen_at, ?1), ?1)
    WHERE id IN (SELECT l.dst FROM link AS l JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
        WHERE l.src = ?2 AND {SPEAKS_OF_ENTITY})
"""
_ADJUST_MENTIONS = """
    UPDATE entity SET mentions = max(0, mentions + ?) WHERE id IN (
        SELECT dst FROM link WHERE src = ? AND type = 'mentions'
        AND src_kind = 'item' AND dst_kind = 'entity')
"""

# The reason given by a rule. Any other reason may quote the memory: it is kept in the row,
# which an erase removes, and never in the journal.
_RULE_NAME = lazy_pattern(r"[a-z][a-z0-9_:-]{0,63}")


def end_items(db: Database, ids: Sequence[str], *, how: str, actor: str, now: int) -> list[str]:
    """End the live revisions; return the ids that had one."""
    live = select(db, _SELECT_LIVE, (to_json_ids(ids),))
    ends = {rid: {"live_to": max(now, begin), "ended_by": how} for _, rid, begin, _ in live}
    history.change_states(db, ends)
    ended = [row[0] for row in live]
    adjust_mention_counts(db, ended, -1)
    reason = how if _RULE_NAME.fullmatch(how) else "for a reason that was given"
    history.write_journal(
        db, (history.JournalLine("ended", item, reason) for item in ended), actor=actor, at=now
    )
    return ended


def filter_unchanged(db: Database, ids: Sequence[str], revisions: Mapping[str, int]) -> list[str]:
    """Return those whose live revision is still the given one."""
    rows = select(db, _SELECT_LIVE, (to_json_ids(ids),))
    return [item for item, _, _, rev in rows if revisions.get(item) == rev]


def restore_items(db: Database, ids: Sequence[str], *, actor: str, now: int) -> list[str]:
    """Add a new live revision, a copy of the last, to each ended item; return their ids."""
    ended = select(db, _SELECT_ENDED, (to_json_ids(ids),))
    rid = next_rid(db)
    for row in ended:
        _copy_last_revision(db, row, rid, now)
        rid += 1
    restored = [row[0] for row in ended]
    adjust_mention_counts(db, restored, 1)
    ends = [row[len(CONTENT) + 1] for row in ended]
    seen = zip(restored, ends, strict=True)
    db.executemany(_SEE_AGAIN, [(max(now, ended_at), item) for item, ended_at in seen])
    history.write_journal(
        db, (history.JournalLine("restored", item) for item in restored), actor=actor, at=now
    )
    return restored


def _copy_last_revision(db: Database, row: Row, rid: int, now: int) -> None:
    last = dict(zip(CONTENT, row, strict=False))
    old_rid, ended_at, status, reason, stored_hash, stored_state = row[len(CONTENT) :]
    state = state_hash(stored_hash, old_rid, ended_at, status, reason)
    if state != stored_state or not matches_hash(row[: len(CONTENT)], stored_hash):
        raise StoreDamaged(
            f"the memory {row[0]} is damaged and cannot be restored",
            remedy="bethink doctor --repair quarantines it; restore it from a backup",
        )
    last |= {"rev": last["rev"] + 1, "live_from": max(now, ended_at)}
    insert_rows(db, [(NewRow(rid, tuple(last.values()), None, None, status), ())])
    db.execute(_COPY_SKETCH, (rid, old_rid))
    vector_index.copy_vectors(db, rid, old_rid)


def set_status(db: Database, ids: Sequence[str], status: Status, *, actor: str, now: int) -> None:
    """Set the status of the last revision of items; those that have it are left alone."""
    rows = select(db, _SELECT_LAST_STATUS, (to_json_ids(ids),))
    changed = {rid: item for item, rid, before in rows if before != status}
    history.change_states(db, {rid: {"status": status} for rid in changed})
    history.record_status_changes(db, [(item, now, status) for item in changed.values()])
    lines = (history.JournalLine("status", item, status) for item in changed.values())
    history.write_journal(db, lines, actor=actor, at=now)


def adjust_mention_counts(db: Database, ids: Iterable[str], step: int) -> None:
    """Adjust the mention counts of the entities of items that are added or ended."""
    db.executemany(_ADJUST_MENTIONS, [(step, item) for item in ids])
