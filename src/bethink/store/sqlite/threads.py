"""Threads: long-running topics, their members and their events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import apsw

from bethink.errors import NotFound
from bethink.model import Member, Thread, ThreadEvent
from bethink.store.sqlite.db import history as journal
from bethink.store.sqlite.db.connection import select
from bethink.store.sqlite.db.sql_functions import from_ms, to_ms
from bethink.store.sqlite.search.lexical import as_table

_COLUMNS = "t.id, t.headline, t.kind, t.anchor, t.lifecycle, t.state, t.created_at, t.updated_at"
_PUT_THREAD = """
    INSERT INTO thread (id, headline, kind, anchor, lifecycle, state, created_at, updated_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET headline = excluded.headline, kind = excluded.kind,
        anchor = excluded.anchor, lifecycle = excluded.lifecycle, state = excluded.state,
        updated_at = excluded.updated_at
"""
_PUT_MEMBER = "INSERT INTO thread_member (thread, item, role, weight, added_at) VALUES (?,?,?,?,?)"
_PUT_EVENT = """
    INSERT INTO thread_event (thread, seq, kind, item, at, meaningful) VALUES (?, ?, ?, ?, ?, ?)
"""
_DROP_THREAD = (
    "DELETE FROM thread_member WHERE thread = ?",
    "DELETE FROM thread_event WHERE thread = ?",
    "DELETE FROM thread WHERE id = ?",
)
_SELECT_ADDED = "SELECT item, added_at FROM thread_member WHERE thread = ?"
_SELECT_UNKNOWN = """
    SELECT w.value FROM carray(?) AS w
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE id = w.value)
"""
_SELECT_MEMBERS = """
    SELECT m.thread, m.item, m.role, m.weight, m.added_at
    FROM carray(?) AS w CROSS JOIN thread_member AS m ON m.thread = w.value
    ORDER BY m.thread, m.item
"""
_SELECT_EVENTS = """
    SELECT e.thread, e.seq, e.kind, e.at, e.item, e.meaningful
    FROM carray(?) AS w CROSS JOIN thread_event AS e ON e.thread = w.value
    ORDER BY e.thread, e.seq
"""
_THREADS_BY_ID = f"SELECT {_COLUMNS} FROM carray(?) AS w CROSS JOIN thread AS t ON t.id = w.value"
_THREADS_OF_ITEMS = f"""
    SELECT DISTINCT {_COLUMNS} FROM carray(?) AS w
    CROSS JOIN thread_member AS m ON m.item = w.value
    CROSS JOIN thread AS t ON t.id = m.thread
    ORDER BY t.id
"""
_THREADS_PAGE = (
    f"SELECT {_COLUMNS} FROM thread AS t ORDER BY t.updated_at DESC, t.id LIMIT ? OFFSET ?"
)


def put_thread(db: apsw.Connection, thread: Thread, *, actor: str, now: int) -> None:
    """Store a whole thread; one of the same id is replaced, but for its creation time.

    Raises NotFound where a member or an event points at an unknown memory.
    """
    told = {event.item for event in thread.events if event.item is not None}
    asked = sorted(told | {member.item for member in thread.members})
    unknown = [row[0] for row in select(db, _SELECT_UNKNOWN, (as_table(tuple(asked)),))]
    if unknown:
        raise NotFound(f"there is no memory {', '.join(unknown)}; the thread was not stored")
    added: dict[str, int] = dict(select(db, _SELECT_ADDED, (thread.id,)))
    made = now if thread.created_at is None else to_ms(thread.created_at)
    changed = now if thread.updated_at is None else to_ms(thread.updated_at)
    head = (thread.id, thread.headline, thread.kind, thread.anchor)
    db.execute(_PUT_THREAD, (*head, thread.lifecycle, thread.state, made, changed))
    db.execute("DELETE FROM thread_member WHERE thread = ?", (thread.id,))
    db.execute("DELETE FROM thread_event WHERE thread = ?", (thread.id,))
    db.executemany(
        _PUT_MEMBER,
        (
            (thread.id, one.item, one.role, one.weight, _added_at(one, added.get(one.item, now)))
            for one in thread.members
        ),
    )
    db.executemany(
        _PUT_EVENT,
        (
            (thread.id, one.seq, one.kind, one.item, to_ms(one.at), int(one.meaningful))
            for one in thread.events
        ),
    )
    journal.write(db, [journal.Line("thread", None, thread.id)], actor=actor, at=now)


def drop_thread(db: apsw.Connection, thread_id: str, *, actor: str, now: int) -> None:
    """Delete a thread with its events; its memories stay."""
    for sql in _DROP_THREAD:
        db.execute(sql, (thread_id,))
    if db.changes():
        journal.write(db, [journal.Line("thread dropped", None, thread_id)], actor=actor, at=now)


def _added_at(member: Member, otherwise: int) -> int:
    return otherwise if member.added_at is None else to_ms(member.added_at)


def read_thread(db: apsw.Connection, thread_id: str) -> Thread | None:
    """Return one thread with its members and events."""
    found = _load_threads(db, select(db, _THREADS_BY_ID, (as_table((thread_id,)),)))
    return found[0] if found else None


def list_threads(db: apsw.Connection, limit: int, offset: int) -> list[Thread]:
    """Return a page of threads, the last changed first."""
    return _load_threads(db, select(db, _THREADS_PAGE, (max(limit, 0), max(offset, 0))))


def threads_of(db: apsw.Connection, items: Sequence[str]) -> list[Thread]:
    """Return every thread that one of these memories belongs to, by id."""
    if not items:
        return []
    return _load_threads(
        db, select(db, _THREADS_OF_ITEMS, (as_table(tuple(dict.fromkeys(items))),))
    )


def _load_threads(db: apsw.Connection, rows: Iterable[Sequence[Any]]) -> list[Thread]:
    heads = list(rows)
    if not heads:
        return []
    asked = (as_table(tuple(row[0] for row in heads)),)
    members: dict[str, list[Member]] = {}
    for of, item, role, weight, added in select(db, _SELECT_MEMBERS, asked):
        members.setdefault(of, []).append(Member(item, role, weight, from_ms(added)))
    events: dict[str, list[ThreadEvent]] = {}
    for of, seq, kind, at, item, meaningful in select(db, _SELECT_EVENTS, asked):
        event = ThreadEvent(seq, kind, from_ms(at), item, bool(meaningful))
        events.setdefault(of, []).append(event)
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
