"""Taking an export in: every record checked, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

import apsw

from recollect.errors import Refused
from recollect.store.sqlite import fields, journal, signatures, standing, words
from recollect.store.sqlite.dump import FORMAT
from recollect.store.sqlite.entity_index import changed
from recollect.store.sqlite.fading import Faded
from recollect.store.sqlite.fields import Field
from recollect.store.sqlite.rows import CONTENT, ENTITIES, INSERT, WORDS, NewRow, content_hash
from recollect.store.sqlite.write import ADD_SKETCH, next_rid

_ITEM_LAYOUT = (*fields.ITEM, *fields.ITEM_STATE, fields.SKETCH._replace(needed=False))
_LAYOUTS: dict[str, Sequence[Field]] = {
    "item": _ITEM_LAYOUT,
    "entity": fields.ENTITY,
    "alias": fields.ALIAS,
    "link": fields.LINK,
    "status_change": fields.STATUS_CHANGE,
    "thread": fields.THREAD,
    "thread_member": fields.THREAD_MEMBER,
    "thread_event": fields.THREAD_EVENT,
    "tick": fields.TICK,
    "counter": fields.COUNTER,
    "usage": fields.USAGE,
    "usage_day": fields.USAGE_DAY,
    "file_edit": fields.FILE_EDIT,
    "key": fields.KEY,
    "tombstone": fields.TOMBSTONE,
    "event": fields.EVENT,
}
_TABLES = {"key": "idempotency", "counter": "meta"}
_BATCH = 500
_KNOWN = """
    SELECT EXISTS (SELECT 1 FROM item WHERE id = ?1)
        OR EXISTS (SELECT 1 FROM tombstone WHERE id = ?1)
"""
_STORED = "SELECT EXISTS (SELECT 1 FROM item WHERE id = ?)"
_HAS_ENTITY = "SELECT EXISTS (SELECT 1 FROM entity WHERE id = ?)"
_HAS_THREAD = "SELECT EXISTS (SELECT 1 FROM thread WHERE id = ?)"
_RECOUNT = """
    UPDATE entity SET mentions = (
        SELECT count(*) FROM link AS l
        JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
        WHERE l.dst = entity.id AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity')
    WHERE id IN (SELECT value FROM json_each(?))
"""

Row = tuple[Any, ...]


def load(db: apsw.Connection, records: Iterable[Mapping[str, Any]], *, actor: str, now: int) -> int:
    """How many memories came in. Those known here, or erased here, stay as they are."""
    loading = _Loading(db)
    for number, record in enumerate(records, 1):
        loading.take(number, record)
    return loading.finish(actor, now)


def _refuse(number: int, what: str, remedy: str = "") -> NoReturn:
    raise Refused(f"line {number}: {what}; nothing was imported", remedy=remedy)


def _insert(kind: str) -> str:
    layout = _LAYOUTS[kind]
    columns = ", ".join(field.column or field.name for field in layout)
    marks = ", ".join("?" * len(layout))
    return f"INSERT OR IGNORE INTO {_TABLES.get(kind, kind)} ({columns}) VALUES ({marks})"


_INSERTS = {kind: _insert(kind) for kind in _LAYOUTS if kind != "item"}


def _read(number: int, kind: str, record: Mapping[str, Any]) -> Row:
    """The record's values in the order of its fields."""
    layout = _LAYOUTS[kind]
    values = []
    for field in layout:
        if field.name in record:
            try:
                values.append(field.kind.read(record[field.name]))
            except (TypeError, ValueError):
                _refuse(number, f"{kind}.{field.name} must be {field.kind.words}")
        elif field.needed:
            _refuse(number, f"{kind}.{field.name} is missing")
        else:
            values.append(None)
    unknown = record.keys() - {field.name for field in layout} - {"type"}
    if unknown:
        _refuse(number, f"{kind}.{min(unknown)} is not a field of version {FORMAT}")
    return tuple(values)


class _Loading:
    """One load under way: what it has taken in, and what waits to be needed."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._rid = next_rid(db)
        self._came: dict[str, None] = {}
        self._left: set[str] = set()
        self._last: tuple[str, int, int | None] = ("", 0, 0)
        self._rows: list[tuple[NewRow, list[int]]] = []
        self._entities: dict[str, Row] = {}
        self._aliases: dict[str, list[Row]] = {}
        self._touched: set[str] = set()
        self._threads: dict[str, Row] = {}
        self._begun: set[str] = set()
        self._fading = Faded()
        # A journal cannot be merged into another without breaking its chain.
        self._takes_events = journal.head(db)[0] == 0
        self._chain = ""
        self._events = 0

    def take(self, number: int, record: Mapping[str, Any]) -> None:
        """Checks one record and stores it, if it is new here."""
        if not isinstance(record, Mapping):
            _refuse(number, "this is not an object")
        kind = record.get("type")
        if number == 1:
            _require_header(number, record)
            return
        if not isinstance(kind, str) or kind not in _LAYOUTS:
            _refuse(number, f"type must be one of {', '.join(_LAYOUTS)}, not {kind!r}")
        row = _read(number, kind, record)
        if kind != "item":
            self._flush()
        take = getattr(self, f"_take_{kind}")
        take(number, row)

    def _take_item(self, number: int, row: Row) -> None:
        content = row[: len(CONTENT)]
        live_to, ended_by, status, given_hash, sketch = row[len(CONTENT) :]
        self._require_order(number, content[0], content[1], live_to)
        if given_hash is not None and given_hash != content_hash(content):
            _refuse(
                number,
                "item.content_hash does not fit the content: the line was changed",
                remedy="put the line right, or remove content_hash to take it as it is",
            )
        if content[0] in self._left:
            return
        length = words.measure(self._db, words.IndexRow(self._rid, *content[WORDS]))
        new = NewRow(self._rid, content, live_to, ended_by, status, length)
        self._rid += 1
        self._rows.append((new, sketch or []))
        self._touched.update(json.loads(content[ENTITIES]))
        if len(self._rows) >= _BATCH:
            self._flush()

    def _require_order(self, number: int, item: str, rev: int, live_to: int | None) -> None:
        last, last_rev, last_live_to = self._last
        if item == last:
            if rev <= last_rev:
                _refuse(number, f"item.rev must be above {last_rev}, the revision before it")
            if last_live_to is None:
                _refuse(number, "item.rev: a revision follows one that has not ended")
        elif item in self._came or item in self._left:
            _refuse(number, f"item.id: the revisions of {item} must stand together")
        elif self._db.execute(_KNOWN, (item,)).get:
            self._left.add(item)
        else:
            self._came[item] = None
        self._last = (item, rev, live_to)

    def _flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        self._db.executemany(INSERT, (new.values() for new, _ in rows))
        self._db.executemany(
            ADD_SKETCH, ((band, new.rid) for new, sketch in rows for band in sketch)
        )
        texts = [words.IndexRow(new.rid, *new.content[WORDS]) for new, _ in rows]
        split = [words.split(self._db, row) for row in texts]
        words.index(self._db, texts, split)
        signatures.add(
            self._db,
            [
                (row.rid, signatures.telling_terms(row.text, own.text, self._db))
                for row, own in zip(texts, split, strict=True)
            ],
        )
        for entity in sorted(self._touched & self._entities.keys()):
            self._need_entity(entity)

    def _take_entity(self, number: int, row: Row) -> None:
        self._entities[row[0]] = row

    def _take_alias(self, number: int, row: Row) -> None:
        self._aliases.setdefault(row[1], []).append(row)

    def _need_entity(self, entity: str) -> bool:
        """Stores an entity of the export once something refers to it: the name of one
        that only erased memories spoke of must not come back."""
        self._touched.add(entity)
        row = self._entities.pop(entity, None)
        if row is None:
            return bool(self._db.execute(_HAS_ENTITY, (entity,)).get)
        self._db.execute(_INSERTS["entity"], row)
        self._db.executemany(_INSERTS["alias"], self._aliases.pop(entity, []))
        return True

    def _take_link(self, number: int, row: Row) -> None:
        ends = [(row[0], row[1]), (row[3], row[4])]
        items = [name for kind, name in ends if kind == "item"]
        if items and not any(item in self._came for item in items):
            return
        if all(self._is_there(item) for item in items) and all(
            self._need_entity(name) for kind, name in ends if kind == "entity"
        ):
            self._db.execute(_INSERTS["link"], row)

    def _is_there(self, item: str) -> bool:
        return item in self._came or bool(self._db.execute(_STORED, (item,)).get)

    def _take_status_change(self, number: int, row: Row) -> None:
        if row[0] in self._came:
            self._db.execute(_INSERTS["status_change"], row)

    def _take_thread(self, number: int, row: Row) -> None:
        if not self._db.execute(_HAS_THREAD, (row[0],)).get:
            self._threads[row[0]] = row

    def _take_thread_member(self, number: int, row: Row) -> None:
        """The first member that is there brings its thread along: a headline whose
        memories were all erased must not come back."""
        if not self._is_there(row[1]):
            return
        if row[0] in self._threads:
            self._db.execute(_INSERTS["thread"], self._threads.pop(row[0]))
            self._begun.add(row[0])
        if row[0] in self._begun:
            self._db.execute(_INSERTS["thread_member"], row)

    def _take_thread_event(self, number: int, row: Row) -> None:
        if row[0] in self._begun and (row[3] is None or self._is_there(row[3])):
            self._db.execute(_INSERTS["thread_event"], row)

    def _take_tick(self, number: int, row: Row) -> None:
        self._fading.take(row)
        if self._takes_events:
            self._db.execute(_INSERTS["tick"], row)

    def _take_counter(self, number: int, row: Row) -> None:
        if self._takes_events:
            self._db.execute(_INSERTS["counter"], row)

    def _take_usage(self, number: int, row: Row) -> None:
        if row[0] in self._came:
            self._db.execute(_INSERTS["usage"], row)

    def _take_usage_day(self, number: int, row: Row) -> None:
        if row[0] in self._came:
            self._db.execute(_INSERTS["usage_day"], row)

    def _take_file_edit(self, number: int, row: Row) -> None:
        """An edit told in a memory comes with it: what it says may be that memory's."""
        if row[-1] is None or row[-1] in self._came:
            self._db.execute(_INSERTS["file_edit"], row)

    def _take_key(self, number: int, row: Row) -> None:
        if row[1] in self._came:
            self._db.execute(_INSERTS["key"], row)

    def _take_tombstone(self, number: int, row: Row) -> None:
        if not self._is_there(row[0]):
            self._db.execute(_INSERTS["tombstone"], row)

    def _take_event(self, number: int, row: Row) -> None:
        line = journal.ChainedLine(*row)
        self._events += 1
        if line.seq != self._events:
            _refuse(number, f"event.seq must be {self._events}: lines are missing")
        expected = journal.link(self._chain, line[:-1])
        if line.chain != expected:
            _refuse(number, "event.chain does not fit: the journal was changed")
        self._chain = expected
        if self._takes_events:
            journal.append(self._db, [line])

    def finish(self, actor: str, now: int) -> int:
        """Stores what still waits, corrects counts and writes the journal."""
        self._flush()
        standing.complete(self._db, list(self._came))
        self._db.execute(_RECOUNT, (json.dumps(sorted(self._touched), ensure_ascii=False),))
        if self._touched:
            changed(self._db)
        if not self._takes_events:
            # The ticks of another space are not ours: what came keeps what was left of it.
            self._fading.settle(self._db, list(self._came), now)
        lines = (journal.Line("imported", item) for item in self._came)
        journal.write(self._db, lines, actor=actor, at=now)
        return len(self._came)


def _require_header(number: int, record: Mapping[str, Any]) -> None:
    if record.get("type") != "recollect":
        _refuse(number, 'an export begins with {"type": "recollect", ...}')
    version = record.get("version")
    if version != FORMAT:
        _refuse(
            number,
            f"this version reads exports of version {FORMAT}, not {version!r}",
            remedy="pip install -U recollect",
        )
