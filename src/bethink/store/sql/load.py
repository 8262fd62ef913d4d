"""Import an export of a space: each record is checked, and all are stored or none.

Without proof of origin a record may claim less, and some are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import NoReturn

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.errors import Refused, how_to_update
from bethink.ingest.admission import TRUST_CEILING, fingerprint_of
from bethink.ingest.content_checks import content_flags
from bethink.ingest.redaction import redact, redact_json
from bethink.model import Draft
from bethink.store.sql import erase, export, history
from bethink.store.sql.activity import insert_edit
from bethink.store.sql.ceiling import SPEAKS_OF_ENTITY
from bethink.store.sql.connection import HIGHEST, Database, Row
from bethink.store.sql.entities import update_entities
from bethink.store.sql.links import ADD_ALIAS, RENAME
from bethink.store.sql.revisions import insert_rows, next_rid
from bethink.store.sql.rows import CONTENT, ENTITIES_INDEX, NewRow, content_hash
from bethink.store.sql.sql_functions import to_json_ids
from bethink.store.sql.usage import apply_ticks

UNTRUSTED_KINDS = frozenset({"entity", "alias", "item", "link", "status_change"})
"""What it may bring. A journal, keys, uses or threads would speak for this installation."""

_CLASS = "import"
_FINGERPRINTED = ("level", "speaker", "session", "seq", "metadata")


class Stranger(NamedTuple):
    """An import that proves no origin: who brings it in, and the setting of personal numbers."""

    actor: str
    personal_numbers: str


def cap_record(record: Mapping[str, object], strange: Stranger) -> Json:
    """Return a record without secrets; a memory with the trust of an import, not pinned."""
    personal = strange.personal_numbers == "all" or (
        strange.personal_numbers == "captured" and record.get("level") == "raw"
    )
    clean: Json = redact_json(record, personal=personal)
    clean |= {name: redact(str(record[name]), named=True).text for name in _names_in(record)}
    if record["type"] != "item":
        return clean
    text, source = clean["text"], clean["source"].removeprefix(f"{_CLASS}:")
    clean |= {
        "source": f"{_CLASS}:{source}",
        "source_class": _CLASS,
        "writer": strange.actor,
        "trust": min(clean["trust"], TRUST_CEILING[_CLASS]),
        "pinned": False,
        "protected": clean.get("layer") == "caveat",
        "flags": list(dict.fromkeys((*clean["flags"], *content_flags(text)))),
    }
    clean.pop("content_hash", None)
    if text != record["text"]:
        draft = Draft(text, **{name: clean[name] for name in _FINGERPRINTED if name in clean})
        clean["fingerprint"] = fingerprint_of(draft, fold(text))
        clean.pop("sketch", None)  # of the words with the secret
    return clean


def _names_in(record: Mapping[str, object]) -> list[str]:
    """Return the fields that name a memory or a session: two of them must not become one."""
    if record["type"] == "entity":
        return []  # made of the entity's name, and redacted as that is
    ends = [end for end in ("src", "dst") if record.get(f"{end}_kind") == "item"]
    names = ("id", "session", "parent", "ended_by", *ends)
    return [name for name in names if isinstance(record.get(name), str)]


_LAYOUTS: dict[str, export.Layout] = {
    "item": {**export.ITEM, **export.ITEM_STATE, **export.SKETCH},
    **{
        kind: layout
        for kind, (_, layout) in (export.TABLES_BEFORE_ITEMS | export.TABLES_AFTER_ITEMS).items()
    },
    "event": export.EVENT,
}
_HASH_INDEX = list(_LAYOUTS["item"]).index("content_hash")
_TABLE_NAMES = {"key": "idempotency", "counter": "meta"}
_OF_IMPORTED = ("status_change", "usage", "usage_day")  # come with the memory they name first
_OF_ERASED = {"tombstone": 0, "erased_key": 1}  # where they name the memory, which must be gone
_BATCH = 500
_CUT = "the journal of the export is broken after line {}; what follows was not imported"
_ITEM_KNOWN_OR_ERASED = """
    SELECT EXISTS (SELECT 1 FROM item WHERE id = ?1)
        OR EXISTS (SELECT 1 FROM tombstone WHERE id = ?1)
"""
_ERASED = "SELECT EXISTS (SELECT 1 FROM tombstone WHERE id = ?)"
_ITEM_EXISTS = "SELECT EXISTS (SELECT 1 FROM item WHERE id = ?)"
# Whether an entity is known below a ceiling: something there speaks of it, or nothing anywhere.
_ENTITY_KNOWN = f"""
    SELECT EXISTS (SELECT 1 FROM entity WHERE id = ?1) AND (
        NOT EXISTS (SELECT 1 FROM link AS l WHERE l.dst = ?1 AND l.src_kind = 'item'
            AND l.dst_kind = 'entity' AND l.type IN ('mentions', 'mentioned'))
        OR EXISTS (SELECT 1 FROM link AS l JOIN item AS i ON i.id = l.src
            WHERE l.dst = ?1 AND {SPEAKS_OF_ENTITY} AND i.classification <= ?2 AND ?2 >= (
                SELECT r.classification FROM item AS r WHERE r.id = l.src
                ORDER BY r.rev DESC LIMIT 1)))
"""
_THREAD_CLASSES = "SELECT classification FROM thread WHERE id = ?"
_UNKNOWN = -1
# Threads of older exports tell no classification: it is that of their memories.
_CLASS_OF_MEMBERS = f"SELECT max(i.classification) {history.LAST_REVISIONS}"
_CLASSIFY_NAMES = """
    UPDATE alias SET classification = coalesce((SELECT min(i.classification) FROM link AS l
        JOIN item AS i ON i.id = l.src
        WHERE l.dst = alias.entity AND l.src_kind = 'item' AND l.dst_kind = 'entity'), 0)
    WHERE classification = ?
"""


def load_records(
    db: Database,
    records: Iterable[Mapping[str, object]],
    *,
    actor: str,
    now: int,
    ceiling: int = HIGHEST,
    strange: Stranger | None = None,
) -> int:
    """Import records; return how many memories came in. Known or erased ones are skipped.

    Below a ceiling nothing of the import depends on what is above it. What is ``strange`` comes
    as any other import: see `untrusted`.
    """
    loader = _Loader(db, ceiling, strange)
    for number, record in _until_end(records):
        loader.add(number, record)
    return loader.finish(actor, now)


def _refuse(number: int, what: str, remedy: str = "") -> NoReturn:
    raise Refused(f"line {number}: {what}; nothing was imported", remedy=remedy)


def _insert_statement(kind: str) -> str:
    layout = _LAYOUTS[kind]
    columns = ", ".join(map(export.column_of, layout))
    marks = ", ".join("?" * len(layout))
    return f"INSERT OR IGNORE INTO {_TABLE_NAMES.get(kind, kind)} ({columns}) VALUES ({marks})"


_INSERTS = {kind: _insert_statement(kind) for kind in _LAYOUTS if kind != "item"}
_INSERT_LINK = (
    _INSERTS["link"].replace("created_at)", "created_at, stated_by)").removesuffix(")") + ", ?)"
)


def _parse_record(number: int, kind: str, record: Mapping[str, object]) -> Row:
    """Return the record's values in the order of its fields."""
    layout = _LAYOUTS[kind]
    values = []
    for name, field in layout.items():
        if name in record:
            try:
                values.append(field.read(record[name]))
            except (TypeError, ValueError):
                _refuse(number, f"{kind}.{name} must be {field.description}")
        elif field.needed:
            _refuse(number, f"{kind}.{name} is missing")
        else:
            values.append(None)
    unknown = record.keys() - layout.keys() - {"type"}
    if unknown:
        _refuse(number, f"{kind}.{min(unknown)} is not a field of version {export.EXPORT_FORMAT}")
    return tuple(values)


def _until_end(
    records: Iterable[Mapping[str, object]],
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the records of an export with their numbers; raise Refused where it is not whole.

    Its last record says how many there are. Exports of earlier versions have no such record,
    and no ``end`` in the first one.
    """
    number, is_promised, is_over = 0, False, False
    for number, record in enumerate(records, 1):
        if is_over:
            _refuse(number, "the export has ended before this line")
        told = record if isinstance(record, Mapping) else {}
        is_promised |= number == 1 and told.get("end") is True
        is_over = number > 1 and told.get("type") == export.END
        if not is_over:
            yield number, record
        elif told.get("records") != number - 2:
            claimed = told.get("records")
            _refuse(number, f"the export has {number - 2} records, and says {claimed!r}")
    if is_promised and not is_over:
        _refuse(
            number,
            "the export is cut off after this line",
            remedy="export again; docs/import.md says how to import what is there",
        )


class _Loader:
    """The state of one import: what was stored, and what waits to be referenced."""

    def __init__(self, db: Database, ceiling: int, strange: Stranger | None) -> None:
        """Set up an import; ``strange`` is one that proves no origin."""
        self._db, self._ceiling, self._strange = db, ceiling, strange
        self._rid = next_rid(db)
        self._imported: dict[str, None] = {}
        self._skipped: set[str] = set()
        self._last: tuple[str, int, int | None] = ("", 0, 0)
        self._rows: list[tuple[NewRow, list[int]]] = []
        self._entities: dict[str, Row] = {}
        self._aliases: dict[str, list[Row]] = {}
        self._touched: set[str] = set()
        self._named: set[str] = set()  # entities that were stored as the export names them
        # By id and classification: each with its members and events.
        self._threads: dict[tuple[str, int | None], dict[str, list[Row]]] = {}
        self._ticks: list[tuple[int, float]] = []
        # A journal cannot be merged into another without breaking its chain. Below a ceiling
        # it never comes along, or its absence would tell of something above.
        is_free = strange is None and ceiling >= HIGHEST
        self._takes_events = is_free and history.journal_head(db)[0] == 0
        self._chain = ""
        self._is_broken = False
        self._events: list[tuple[int, str, str | None, str, str]] = []
        self._erased_here: list[str] = []  # what another space had under an erased key

    def add(self, number: int, record: Mapping[str, object]) -> None:
        """Check one record and store it, if it is new here."""
        if not isinstance(record, Mapping):
            _refuse(number, "this is not an object")
        kind = record.get("type")
        if number == 1:
            _require_header(number, record)
            return
        if kind == export.DAMAGED:
            # Of a journal only the lines before a damaged one are taken over.
            self._is_broken |= record.get("of") == "event"
            return
        if not isinstance(kind, str) or kind not in _LAYOUTS:
            _refuse(number, f"type must be one of {', '.join(_LAYOUTS)}, not {kind!r}")
        row = self._checked_row(number, kind, record)
        if row is not None:
            self._store(number, kind, row)

    def _store(self, number: int, kind: str, row: Row) -> None:
        if kind != "item":
            self._flush()
        if kind in _OF_IMPORTED:
            if row[0] in self._imported:
                self._db.execute(_INSERTS[kind], row)
        elif kind in _OF_ERASED:
            if not self._item_exists(row[_OF_ERASED[kind]]):
                self._db.execute(_INSERTS[kind], row)
        else:
            load = getattr(self, f"_load_{kind}")
            load(number, row)

    def _checked_row(self, number: int, kind: str, record: Mapping[str, object]) -> Row | None:
        """Return the values of a record as they may be stored; None where they may not."""
        row = _parse_record(number, kind, record)
        if kind == "item" and row[_HASH_INDEX] not in (None, content_hash(row[: len(CONTENT)])):
            _refuse(
                number,
                "item.content_hash does not match the content: the line was changed",
                remedy="export again, or import another copy of the export",
            )
        if self._strange is None:
            return row
        if kind not in UNTRUSTED_KINDS:
            return None
        return _parse_record(number, kind, cap_record(record, self._strange))

    def _load_item(self, number: int, row: Row) -> None:
        content = row[: len(CONTENT)]
        live_to, ended_by, status, _, sketch = row[len(CONTENT) :]
        self._require_order(number, content[0], content[1], live_to)
        if content[0] in self._skipped:
            return
        new = NewRow(self._rid, content, live_to, ended_by, status)
        self._rid += 1
        self._rows.append((new, sketch or []))
        self._touched.update(json.loads(content[ENTITIES_INDEX]))
        if len(self._rows) >= _BATCH:
            self._flush()

    def _require_order(self, number: int, item: str, rev: int, live_to: int | None) -> None:
        last, last_rev, last_live_to = self._last
        if item == last:
            if rev <= last_rev:
                _refuse(number, f"item.rev must be above {last_rev}, the revision before it")
            if last_live_to is None:
                _refuse(number, "item.rev: a revision follows one that has not ended")
        elif item in self._imported or item in self._skipped:
            _refuse(number, f"item.id: the revisions of {item} must be adjacent")
        elif self._db.execute(_ITEM_KNOWN_OR_ERASED, (item,)).get:
            self._skipped.add(item)
        else:
            self._imported[item] = None
        self._last = (item, rev, live_to)

    def _flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows = self._rows, []
        insert_rows(self._db, rows)
        for entity in sorted(self._touched & self._entities.keys()):
            self._require_entity(entity)

    def _load_entity(self, number: int, row: Row) -> None:
        self._entities[row[0]] = row

    def _load_alias(self, number: int, row: Row) -> None:
        self._aliases.setdefault(row[1], []).append(row)

    def _require_entity(self, entity: str) -> bool:
        """Store an entity of the export once something refers to it.

        The name of an entity that only erased memories mentioned must not come back.
        """
        self._touched.add(entity)
        if entity in self._named:
            return True
        row = self._entities.pop(entity, None)
        is_known = bool(self._db.execute(_ENTITY_KNOWN, (entity, self._ceiling)).get)
        if row is None or (self._strange and is_known):
            return is_known  # what is known here is called as it is here
        self._named.add(entity)
        named = self._aliases.pop(entity, [])
        self._db.execute(_INSERTS["entity"], row)
        # Exports of earlier versions do not have the classification of a name.
        unknown = [(*alias[:2], _UNKNOWN) for alias in named if alias[2] is None]
        self._db.executemany(_INSERTS["alias"], unknown)
        levels = [alias for alias in named if alias[2] is not None]
        self._db.executemany(ADD_ALIAS, levels)
        if levels:  # spelt as the least classified memories spell it
            self._db.execute(RENAME, (entity, row[2], min(level for *_, level in levels)))
        return True

    def _load_link(self, number: int, row: Row) -> None:
        ends = [(row[0], row[1]), (row[3], row[4])]
        items = [name for kind, name in ends if kind == "item"]
        if items and not any(item in self._imported for item in items):
            return
        stated_by = "" if items else self._stating(row)
        if stated_by is None or not all(self._item_exists(item) for item in items):
            return
        # Without proof it must not speak of, or in the name of, a memory of this space.
        if self._strange is not None and not self._imported.keys() >= ({*items} or {stated_by}):
            return
        if all(self._require_entity(name) for kind, name in ends if kind == "entity"):
            self._db.execute(_INSERT_LINK, (*row, stated_by))

    def _stating(self, row: Row) -> str | None:
        """Return the memory that states a link between entities; None if it was erased here."""
        named = dict(zip(_LAYOUTS["link"], row, strict=True))
        stating = [name for name in (named["context"], named["source"]) if name]
        if any(self._db.execute(_ERASED, (name,)).get for name in stating):
            return None
        return next((name for name in stating if self._item_exists(name)), "")

    def _item_exists(self, item: str) -> bool:
        return item in self._imported or bool(self._db.execute(_ITEM_EXISTS, (item,)).get)

    def _load_thread(self, number: int, row: Row) -> None:
        """Keep a thread until its members have come; one that is known here stays as it is."""
        known = self._thread_classes(row[0])
        if row[-1] not in known and not any(level <= self._ceiling for level in known):
            parts = {"thread": [row], "thread_member": [], "thread_event": []}
            self._threads[row[0], row[-1]] = parts

    def _load_thread_member(self, number: int, row: Row) -> None:
        if (row[0], row[-1]) in self._threads and self._item_exists(row[1]):
            self._threads[row[0], row[-1]]["thread_member"].append(row)

    def _load_thread_event(self, number: int, row: Row) -> None:
        is_of_known = row[3] is None or self._item_exists(row[3])
        if (row[0], row[-1]) in self._threads and is_of_known:
            self._threads[row[0], row[-1]]["thread_event"].append(row)

    def _thread_classes(self, name: str) -> set[int]:
        return {level for (level,) in self._db.execute(_THREAD_CLASSES, (name,))}

    def _store_threads(self) -> bool:
        """Store threads that have a member; return whether there are any.

        A headline whose memories were all erased must not come back.
        """
        has_stored = False
        for (name, told), parts in self._threads.items():
            members = to_json_ids(row[1] for row in parts["thread_member"])
            level = self._db.execute(_CLASS_OF_MEMBERS, (members,)).get if told is None else told
            if parts["thread_member"] and level not in self._thread_classes(name):
                has_stored = True
                for kind, rows in parts.items():
                    classified = [(*row[:-1], level) for row in rows]
                    self._db.executemany(_INSERTS[kind], classified)
        return has_stored

    def _load_tick(self, number: int, row: Row) -> None:
        self._ticks.append((row[1], row[2]))
        if self._takes_events:
            self._db.execute(_INSERTS["tick"], row)

    def _load_counter(self, number: int, row: Row) -> None:
        if self._takes_events:
            self._db.execute(_INSERTS["counter"], row)

    def _load_file_edit(self, number: int, row: Row) -> None:
        """Store an edit; one that belongs to a memory only comes with it."""
        if row[-1] is None or row[-1] in self._imported:
            insert_edit(self._db, row, self._ceiling)

    def _load_key(self, number: int, row: Row) -> None:
        if row[1] not in self._imported:
            return
        self._db.execute(_INSERTS["key"], row)
        if history.find_erased_keys(self._db, (row[0],), self._ceiling):
            self._erased_here.append(row[1])

    def _load_event(self, number: int, row: Row) -> None:
        line = history.ChainedLine(*row)
        if self._is_broken or line.chain == history.BROKEN:
            # The export says so itself: what it tells from there on is not taken over.
            self._is_broken = True
            return
        if line.seq != len(self._events) + 1:
            _refuse(number, f"event.seq must be {len(self._events) + 1}: lines are missing")
        expected = history.chain_hash(self._chain, line[:-1])
        if line.chain != expected:
            _refuse(number, "event.chain does not match: the journal was changed")
        self._chain = expected
        self._events.append(line[1:-1])

    def finish(self, actor: str, now: int) -> int:
        """Store what still waits, correct counts and write the journal."""
        self._flush()
        if self._takes_events:
            history.append_lines(self._db, self._events)
        history.complete_status_history(self._db, list(self._imported))
        update_entities(self._db, self._touched)
        self._db.execute(_CLASSIFY_NAMES, (_UNKNOWN,))
        has_threads = self._store_threads()
        if not self._takes_events:
            # The ticks of another space are not imported: items keep their remaining strength.
            apply_ticks(self._db, self._ticks, list(self._imported), now)
        lines = [history.JournalLine("imported", item) for item in self._imported]
        if has_threads and not self._takes_events:
            lines.append(history.JournalLine("threads imported", None))
        if self._is_broken and self._strange is None:
            lines.insert(0, history.JournalLine("journal", None, _CUT.format(len(self._events))))
        history.write_journal(self._db, lines, actor=actor, at=now)
        # What came under another id with a key whose memory was erased here.
        again = erase.erase_items(self._db, self._erased_here, actor=actor, now=now)
        return len(self._imported) - len(again.ids)


def _require_header(number: int, record: Mapping[str, object]) -> None:
    if record.get("type") not in export.EXPORT_TYPES:
        _refuse(number, 'an export begins with {"type": "bethink", ...}')
    version = record.get("version")
    if version != export.EXPORT_FORMAT:
        _refuse(
            number,
            f"this version reads exports of version {export.EXPORT_FORMAT}, not {version!r}",
            remedy=how_to_update(),
        )
