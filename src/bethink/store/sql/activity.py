"""What happens around items: their use, threads of work, file edits and file snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from bethink.core.once import current_request
from bethink.errors import NotFound
from bethink.model import (
    ChunkDigest,
    DayCount,
    FileEdit,
    FileHistory,
    FileSnapshot,
    Intent,
    Member,
    Thread,
    ThreadEvent,
)
from bethink.ports import ForgottenFiles, PriorUse, Usage, UsageDecay
from bethink.store.sql import erase, history
from bethink.store.sql.connection import Connections, Database, Row, as_table, select
from bethink.store.sql.dialect import part
from bethink.store.sql.sql_functions import DAY_MS, from_ms, from_ms_or_none, to_json_ids, to_ms
from bethink.store.sql.usage import (
    SET_USE,
    append_json,
    apply_decay,
    insert_prior_use,
    read_momenta,
    read_usage,
)

_EXISTING_ITEMS = (
    "SELECT value FROM json_each(?) WHERE EXISTS (SELECT 1 FROM item WHERE id = value)"
)
_USE_OF_ANY = """
    SELECT w.value, u.recalls, u.last_at, u.stamps FROM json_each(?) AS w
    LEFT JOIN usage AS u ON u.id = w.value
"""
_USE_OF_KNOWN = f"{_USE_OF_ANY} WHERE EXISTS (SELECT 1 FROM item WHERE id = w.value)"
_COUNT_USE_ON_DAY = """
    INSERT INTO usage_day (id, day, recalls) VALUES (?, ?, 1)
    ON CONFLICT (id, day) DO UPDATE SET recalls = recalls + 1
"""


def _used_again(
    at: int, item: str, recalls: int | None, last_at: int | None, stamps: str | None
) -> Row:
    """Return the use of an item with one more; of its times the last are kept."""
    last = at if last_at is None else max(last_at, at)
    return item, (recalls or 0) + 1, last, append_json(stamps, at)


_REQUESTS = "counted_requests"
_SELECT_REQUESTS = "SELECT value FROM meta WHERE name = ?"
_SET_REQUESTS = """
    INSERT INTO meta (name, value) VALUES (?, ?)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""
_MAX_REQUESTS = 50  # far more than are running at a time


def _is_counted(db: Database) -> bool:
    """Whether the use of the current request was counted; the transaction keeps its id."""
    request = current_request()
    if not request:
        return False
    known: list[str] = next(
        (row[0].split() for row in select(db, _SELECT_REQUESTS, (_REQUESTS,))), []
    )
    if request not in known:
        kept = " ".join([*known[1 - _MAX_REQUESTS :], request])
        db.execute(_SET_REQUESTS, (_REQUESTS, kept))
    return request in known


_COLUMNS = "t.id, t.headline, t.kind, t.anchor, t.lifecycle, t.state, t.created_at, t.updated_at"
_PUT_THREAD = """
    INSERT INTO thread (id, headline, kind, anchor, lifecycle, state, created_at, updated_at,
        classification)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_PUT_MEMBER = """
    INSERT INTO thread_member (thread, item, role, weight, added_at, classification)
    VALUES (?, ?, ?, ?, ?, ?)
"""
_PUT_EVENT = """
    INSERT INTO thread_event (thread, seq, kind, item, at, meaningful, classification)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_DROP_THREAD = (
    "DELETE FROM thread_member WHERE thread = ? AND classification BETWEEN ? AND ?",
    "DELETE FROM thread_event WHERE thread = ? AND classification BETWEEN ? AND ?",
    "DELETE FROM thread WHERE id = ? AND classification BETWEEN ? AND ?",
)
_SELECT_CREATED = """
    SELECT created_at FROM thread WHERE id = ? AND classification <= ?
    ORDER BY classification DESC LIMIT 1
"""
_SELECT_ADDED = """
    SELECT item, added_at FROM thread_member WHERE thread = ? AND classification <= ?
    ORDER BY classification
"""
_CLASSES = f"SELECT i.classification {history.LAST_REVISIONS}"
_SELECT_UNKNOWN = """
    SELECT w.value FROM carray(?) AS w
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE id = w.value)
"""
_SELECT_MEMBERS = """
    SELECT m.thread, m.item, m.role, m.weight, m.added_at
    FROM carray(?) AS w CROSS JOIN thread_member AS m ON m.thread = w.value
    WHERE m.classification = (SELECT max(t.classification) FROM thread AS t WHERE t.id = m.thread)
    ORDER BY m.thread, m.item
"""
_SELECT_EVENTS = """
    SELECT e.thread, e.seq, e.kind, e.at, e.item, e.meaningful
    FROM carray(?) AS w CROSS JOIN thread_event AS e ON e.thread = w.value
    WHERE e.classification = (SELECT max(t.classification) FROM thread AS t WHERE t.id = e.thread)
    ORDER BY e.thread, e.seq
"""
# Of a thread kept for several classifications, the highest that the reader may see.
_IS_HIGHEST = """
    t.classification = (SELECT max(h.classification) FROM thread AS h WHERE h.id = t.id)
"""
_THREADS_BY_ID = f"""
    SELECT {_COLUMNS} FROM carray(?) AS w CROSS JOIN thread AS t ON t.id = w.value
    WHERE {_IS_HIGHEST}
"""
_THREADS_OF_ITEMS = f"""
    SELECT DISTINCT {_COLUMNS} FROM carray(?) AS w
    CROSS JOIN thread_member AS m ON m.item = w.value
    CROSS JOIN thread AS t ON t.id = m.thread AND t.classification = m.classification
    WHERE {_IS_HIGHEST}
    ORDER BY t.id
"""
_THREADS_PAGE = f"""
    SELECT {_COLUMNS} FROM thread AS t WHERE {_IS_HIGHEST}
    ORDER BY t.updated_at DESC, t.id LIMIT ? OFFSET ?
"""


def put_thread(db: Database, thread: Thread, *, actor: str, now: int, ceiling: int) -> None:
    """Store a whole thread; one of the same id is replaced, but for its creation time.

    It is kept for the highest classification of its memories: those who may see less keep the
    one they see, and one above the writer's ceiling stays. Raises NotFound where a member or
    an event points at an unknown memory.
    """
    ids = _require_known(db, thread)
    level = max((row[0] for row in select(db, _CLASSES, (to_json_ids(ids),))), default=0)
    added: dict[str, int] = dict(select(db, _SELECT_ADDED, (thread.id, ceiling)))
    stored_at = db.execute(_SELECT_CREATED, (thread.id, ceiling)).get
    created_at = now if thread.created_at is None else to_ms(thread.created_at)
    created_at = created_at if stored_at is None else int(stored_at)
    updated_at = now if thread.updated_at is None else to_ms(thread.updated_at)
    head = (thread.id, thread.headline, thread.kind, thread.anchor)
    for sql in _DROP_THREAD:
        db.execute(sql, (thread.id, level, max(level, ceiling)))
    db.execute(_PUT_THREAD, (*head, thread.lifecycle, thread.state, created_at, updated_at, level))
    db.executemany(
        _PUT_MEMBER,
        (
            (
                *(thread.id, one.item, one.role, one.weight),
                to_ms(one.added_at) if one.added_at else added.get(one.item, now),
                level,
            )
            for one in thread.members
        ),
    )
    db.executemany(
        _PUT_EVENT,
        (
            (thread.id, one.seq, one.kind, one.item, to_ms(one.at), int(one.meaningful), level)
            for one in thread.events
        ),
    )
    history.write_journal(db, [history.JournalLine("thread", None, thread.id)], actor=actor, at=now)


def _require_known(db: Database, thread: Thread) -> tuple[str, ...]:
    """Return the memories of a thread."""
    event_items = {event.item for event in thread.events if event.item is not None}
    ids = sorted(event_items | {member.item for member in thread.members})
    unknown = [row[0] for row in select(db, _SELECT_UNKNOWN, (as_table(tuple(ids)),))]
    if unknown:
        raise NotFound(f"there is no memory {', '.join(unknown)}; the thread was not stored")
    return tuple(ids)


def _load_threads(db: Database, rows: Iterable[Row]) -> list[Thread]:
    heads = list(rows)
    if not heads:
        return []
    ids = (as_table(tuple(row[0] for row in heads)),)
    members: dict[str, list[Member]] = {}
    for thread_id, item, role, weight, added in select(db, _SELECT_MEMBERS, ids):
        members.setdefault(thread_id, []).append(Member(item, role, weight, from_ms(added)))
    events: dict[str, list[ThreadEvent]] = {}
    for thread_id, seq, kind, at, item, meaningful in select(db, _SELECT_EVENTS, ids):
        event = ThreadEvent(seq, kind, from_ms(at), item, bool(meaningful))
        events.setdefault(thread_id, []).append(event)
    return [
        Thread(
            id=key,
            headline=headline,
            kind=kind,
            anchor=anchor,
            lifecycle=lifecycle,
            state=state,
            members=tuple(members.get(key, ())),
            events=tuple(events.get(key, ())),
            created_at=from_ms(made),
            updated_at=from_ms(changed),
        )
        for key, headline, kind, anchor, lifecycle, state, made, changed in heads
    ]


# Prompts of captured turns are often not informative ("fix it"); stated reasons are shown.
MIN_INTENT_LENGTH = 20
_MAX_LISTED = 50

_SAME_EDIT = part(
    "path = ?1 AND operation = ?2 AND at = ?3 AND intent = ?4 AND session = ?5 AND turn = ?6",
    postgres="edit_hash"
    " = md5(md5(?1) || md5(?2) || (?3::bigint)::text || md5(?4) || md5(?5) || md5(?6))",
)
# An edit that only a memory above the ceiling told of becomes one that was told apart.
_TELL_APART = f"""
    UPDATE file_edit SET item = ?7 WHERE {_SAME_EDIT}
    AND ?8 < coalesce((SELECT i.classification FROM item AS i
        WHERE i.id = file_edit.item ORDER BY i.rev DESC LIMIT 1), 0)
"""
_INSERT_EDIT = """
    INSERT INTO file_edit (path, operation, at, intent, session, turn, item)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING
"""
_DAY = part(
    "date(at / 1000, 'unixepoch')",
    postgres="to_char(to_timestamp(at / 1000) AT TIME ZONE 'UTC', 'YYYY-MM-DD')",
)
# instr(), since % and _ in a path must not be wildcards.
_PATH_CONTAINS = "instr(path, ?1) > 0"
# An edit has the classification of the memory it belongs to.
_VISIBLE_OF_PATH = f"""
    {_PATH_CONTAINS} AND ?2 >= coalesce((SELECT i.classification FROM item AS i
        WHERE i.id = file_edit.item ORDER BY i.rev DESC LIMIT 1), 0)
"""
_SELECT_TOTAL = f"SELECT count(*), min(at), max(at) FROM file_edit WHERE {_VISIBLE_OF_PATH}"
_SELECT_PATHS = f"""
    SELECT path FROM file_edit WHERE {_VISIBLE_OF_PATH}
    GROUP BY path ORDER BY count(*) DESC, path
"""
_SELECT_SESSIONS = f"""
    SELECT session FROM file_edit WHERE {_VISIBLE_OF_PATH} AND session <> ''
    GROUP BY session ORDER BY max(at) DESC, session
"""
_SELECT_DAYS = f"""
    SELECT {_DAY} AS day, operation, count(*)
    FROM file_edit WHERE {_VISIBLE_OF_PATH} GROUP BY day, operation ORDER BY day DESC, operation
"""
_SELECT_INTENTS = f"""
    SELECT intent, count(*), max(at) AS last FROM file_edit
    WHERE {_VISIBLE_OF_PATH} AND intent <> '' AND (length(intent) > ?3 OR turn = '')
    GROUP BY intent ORDER BY last DESC, intent LIMIT ?4
"""
_SELECT_ITEMS = f"""
    SELECT item FROM file_edit WHERE {_VISIBLE_OF_PATH} AND item IS NOT NULL
    GROUP BY item ORDER BY max(at) DESC, item LIMIT ?3
"""
_EDIT_EXISTS = f"SELECT EXISTS (SELECT 1 FROM file_edit WHERE {_SAME_EDIT})"
_COUNT_EDITS = f"SELECT count(*) FROM file_edit WHERE {_PATH_CONTAINS}"
_SNAPSHOT_PATHS = f"SELECT path FROM file_snapshot WHERE {_PATH_CONTAINS} ORDER BY path"
_DELETE_EDITS = f"DELETE FROM file_edit WHERE {_PATH_CONTAINS}"
_DELETE_SNAPSHOTS = f"DELETE FROM file_snapshot WHERE {_PATH_CONTAINS}"
_SELECT_SNAPSHOT = """
    SELECT path, sha256, mtime_ns, size, chunks, read_at, reads FROM file_snapshot WHERE path = ?
"""
_REPLACE_SNAPSHOT = """
    INSERT OR REPLACE INTO file_snapshot (path, sha256, mtime_ns, size, chunks, read_at, reads)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


def add_edits(db: Database, edits: Sequence[FileEdit], ceiling: int) -> int:
    """Add file edits; return how many were new to those who see up to the ceiling."""
    return sum(insert_edit(db, (*_edit_key(edit), edit.item), ceiling) for edit in edits)


def insert_edit(db: Database, row: Row, ceiling: int) -> int:
    """Insert an edit; return whether it is new to those who see up to the ceiling."""
    db.execute(_TELL_APART, (*row, ceiling))
    new = db.changes()
    db.execute(_INSERT_EDIT, row)
    return new + db.changes()


def _edit_key(edit: FileEdit) -> Row:
    told = (edit.intent, edit.session or "", edit.turn or "")
    return (edit.path, edit.operation, to_ms(edit.at), *told)


def _of_known_items(db: Database, edits: Sequence[FileEdit]) -> list[FileEdit]:
    """Return the edits without those of a memory that is not there: they would outlive it."""
    named = sorted({edit.item for edit in edits if edit.item is not None})
    if not named:
        return list(edits)
    known = {row[0] for row in select(db, _EXISTING_ITEMS, (to_json_ids(named),))}
    return [edit for edit in edits if edit.item is None or edit.item in known]


def _first_column(db: Database, sql: str, query: tuple[str, int]) -> tuple[str, ...]:
    return tuple(row[0] for row in select(db, f"{sql} LIMIT {_MAX_LISTED}", query))


class SqlActivity:
    """Use, threads and file edits of a space: `ActivityStore` in SQLite."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    def note_use(
        self,
        ids: Sequence[str],
        now: datetime,
        *,
        fading: UsageDecay | None = None,
        of_others: bool = False,
    ) -> None:
        with self._connections.write_transaction() as db:
            if not _is_counted(db):
                at, used = to_ms(now), _USE_OF_ANY if of_others else _USE_OF_KNOWN
                uses = select(db, used, (to_json_ids(ids),))
                known = [item for item, *_ in uses]
                db.executemany(SET_USE, [_used_again(at, *use) for use in uses])
                db.executemany(_COUNT_USE_ON_DAY, [(item, at // DAY_MS) for item in known])
                if fading is not None:
                    apply_decay(db, known, at, fading)

    def take_over_use(self, uses: Mapping[str, PriorUse], now: datetime) -> None:
        with self._connections.write_transaction() as db:
            known = [row[0] for row in select(db, _EXISTING_ITEMS, (to_json_ids(uses),))]
            insert_prior_use(db, {item: uses[item] for item in known}, to_ms(now))

    def usage(self, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
        with self._connections.read_transaction() as db:
            return read_usage(db, ids, now)

    def momenta(self, entities: Sequence[str], now: datetime) -> dict[str, float]:
        with self._connections.read_transaction() as db:
            return read_momenta(db, entities, now)

    def put_thread(self, thread: Thread, *, actor: str, now: datetime) -> None:
        with self._connections.read_transaction() as db:
            _require_known(db, thread)  # below a ceiling, of what is visible
        with self._connections.write_transaction() as db:
            ceiling = self._connections.ceiling
            put_thread(db, thread, actor=actor, now=to_ms(now), ceiling=ceiling)

    def drop_thread(self, thread_id: str, *, actor: str, now: datetime) -> None:
        with self._connections.write_transaction() as db:
            ceiling = self._connections.ceiling
            for sql in _DROP_THREAD:
                db.execute(sql, (thread_id, 0, ceiling))
            if db.changes():
                history.write_line(db, "thread dropped", thread_id, actor=actor, now=now)

    def thread(self, thread_id: str) -> Thread | None:
        with self._connections.read_transaction() as db:
            found = _load_threads(db, select(db, _THREADS_BY_ID, (as_table((thread_id,)),)))
            return found[0] if found else None

    def threads(self, *, limit: int = 100, offset: int = 0) -> list[Thread]:
        with self._connections.read_transaction() as db:
            return _load_threads(db, select(db, _THREADS_PAGE, (max(limit, 0), max(offset, 0))))

    def threads_of(self, ids: Sequence[str]) -> list[Thread]:
        with self._connections.read_transaction() as db:
            if not ids:
                return []
            return _load_threads(
                db, select(db, _THREADS_OF_ITEMS, (as_table(tuple(dict.fromkeys(ids))),))
            )

    def note_edits(
        self, edits: Sequence[FileEdit], *, actor: str, now: datetime, preview: bool = False
    ) -> int:
        if preview:
            with self._connections.read_transaction() as db:
                keys = set(map(_edit_key, edits))
                return sum(not db.execute(_EDIT_EXISTS, key).get for key in keys)
        with self._connections.read_transaction() as db:
            told = _of_known_items(db, edits)  # below a ceiling, of what is visible
        with self._connections.write_transaction() as db:
            new = add_edits(db, _of_known_items(db, told), self._connections.ceiling)
            history.write_line(
                db, "file edits noted", f"{new} of {len(edits)} new", actor=actor, now=now
            )
            return new

    def file_history(
        self, part: str, *, intents: int = 10, items: int = 20, max_classification: int = 3
    ) -> FileHistory:
        with self._connections.read_transaction() as db:
            query = (part, max_classification)
            count, first, last = select(db, _SELECT_TOTAL, query)[0]
            if not count:
                return FileHistory()
            return FileHistory(
                paths=_first_column(db, _SELECT_PATHS, query),
                edits=count,
                first_at=from_ms(first),
                last_at=from_ms_or_none(last),
                sessions=_first_column(db, _SELECT_SESSIONS, query),
                days=tuple(DayCount(*row) for row in select(db, _SELECT_DAYS, query)),
                intents=tuple(
                    Intent(text, number, from_ms(at))
                    for text, number, at in select(
                        db, _SELECT_INTENTS, (*query, MIN_INTENT_LENGTH, intents)
                    )
                ),
                items=tuple(row[0] for row in select(db, _SELECT_ITEMS, (*query, items))),
            )

    def file_snapshot(self, path: str) -> FileSnapshot | None:
        with self._connections.read_transaction() as db:
            rows = select(db, _SELECT_SNAPSHOT, (path,))
        for name, digest, mtime, size, chunks, read_at, reads in rows:
            digests = tuple(ChunkDigest(*mark) for mark in json.loads(chunks))
            return FileSnapshot(name, digest, mtime, size, digests, from_ms(read_at), reads)
        return None

    def keep_file_snapshot(self, snapshot: FileSnapshot) -> None:
        with self._connections.write_transaction() as db:
            chunks = json.dumps(snapshot.chunks, ensure_ascii=False, separators=(",", ":"))
            state = (snapshot.path, snapshot.sha256, snapshot.mtime_ns, snapshot.size, chunks)
            db.execute(_REPLACE_SNAPSHOT, (*state, to_ms(snapshot.read_at), snapshot.reads))

    def forget_files(
        self, part: str, *, actor: str, now: datetime, preview: bool = False
    ) -> ForgottenFiles:
        if preview:
            with self._connections.read_transaction() as db:
                paths = [row[0] for row in select(db, _SNAPSHOT_PATHS, (part,))]
                edits = select(db, _COUNT_EDITS, (part,))[0][0]
                return ForgottenFiles(edits, len(paths), tuple(paths))
        with self._connections.write_transaction() as db:
            db.execute(_DELETE_EDITS, (part,))
            edits = db.changes()
            db.execute(_DELETE_SNAPSHOTS, (part,))
            deleted = ForgottenFiles(edits, db.changes())
            if not deleted.edits and not deleted.snapshots:
                return deleted
            db.execute(erase.SET_PENDING)
            # The journal outlives an erase, and a path is content.
            counts = f"{deleted.edits} edits, {deleted.snapshots} snapshots"
            history.write_line(db, "files forgotten", counts, actor=actor, now=now)
        return deleted._replace(out_of_reach=self._connections.base.scrub())
