"""Entities and statuses as of a moment in the past, as SQL, and the status history.

The moment is ``m.at``. The revision of that time knows the entities it mentioned; a
link only knows the live revision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import apsw

from bethink.ports import Event
from bethink.store.sqlite.db.connection import select
from bethink.store.sqlite.db.sql_functions import from_ms

AS_OF_CTE = "WITH m (at) AS (SELECT ?)"
MENTION_LINK = """
    l.type IN ('mentions', 'mentioned') AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
MENTIONED_AT_REVISION = """
    CASE WHEN i.live_to IS NULL THEN l.type = 'mentions'
    ELSE instr(i.entities, json_quote(l.dst)) > 0 END
"""
# How many memories that were there mentioned `entity AS e`.
MENTION_COUNT = f"""
    (SELECT count(DISTINCT i.id) FROM m CROSS JOIN link AS l ON l.dst = e.id AND {MENTION_LINK}
    CROSS JOIN item AS i ON i.id = l.src
        AND i.live_from <= m.at AND (i.live_to IS NULL OR i.live_to > m.at)
    WHERE {MENTIONED_AT_REVISION})
"""
LAST_SEEN = f"""
    (SELECT max(i.live_from) FROM m CROSS JOIN link AS l ON l.dst = e.id AND {MENTION_LINK}
    CROSS JOIN item AS i ON i.id = l.src AND i.live_from <= m.at
    WHERE {MENTIONED_AT_REVISION})
"""
_LAST_CHANGE = "SELECT at FROM event ORDER BY seq DESC LIMIT 1"
_ENTITIES_CREATED_AFTER = "SELECT id FROM entity WHERE created_at > ?"


def columns_as_of(columns: str) -> str:
    """Replace an entity's mentions column by the count as of then, called ``held``."""
    return columns.replace("e.mentions", f"{MENTION_COUNT} AS held")


def is_past(db: apsw.Connection, at: int) -> bool:
    """Whether anything was stored or forgotten after a moment."""
    return any(changed > at for (changed,) in select(db, _LAST_CHANGE))


def entities_created_after(db: apsw.Connection, as_of_ms: int | None) -> set[str]:
    """Return entities first mentioned after a moment; without one there are none."""
    return (
        set()
        if as_of_ms is None
        else {row[0] for row in select(db, _ENTITIES_CREATED_AFTER, (as_of_ms,))}
    )


# Of `item AS i` at the moment that is bound or, in other statements, put in its place. What
# is in quarantine now is so for every moment: its poison is no better for being older.
STATUS_AT = """
    CASE coalesce((SELECT n.status FROM status_change AS n WHERE n.id = i.id
        ORDER BY n.at DESC LIMIT 1), 'active')
    WHEN 'quarantined' THEN 'quarantined'
    ELSE coalesce((SELECT s.status FROM status_change AS s WHERE s.id = i.id AND s.at <= MOMENT
        ORDER BY s.at DESC LIMIT 1), 'active') END
"""
END_OF_TIME = 2**62  # later than any moment
# The ids of what had a status at a moment; of several changes the latest tells.
IDS_WITH_STATUS_AT = """
    SELECT id FROM (SELECT id, status, max(at) FROM status_change WHERE at <= ? GROUP BY id)
    WHERE status = ?
"""
_LAST_CHANGE_OF = "SELECT at, status FROM status_change WHERE id = ? ORDER BY at DESC LIMIT 1"
_ADD_CHANGE = "INSERT OR REPLACE INTO status_change (id, at, status) VALUES (?, ?, ?)"
# The history should end with what holds. Where it does not, the last revision has stood
# so since it began, or since the last change that is known.
_MISSING_CHANGES = """
    SELECT i.id, max(i.live_from, coalesce(max(s.at), i.live_from)), i.status
    FROM item AS i LEFT JOIN status_change AS s ON s.id = i.id
    WHERE i.rev = (SELECT max(rev) FROM item WHERE id = i.id) AND WANTED
    GROUP BY i.id
    HAVING i.status <> coalesce((SELECT l.status FROM status_change AS l WHERE l.id = i.id
        ORDER BY l.at DESC LIMIT 1), 'active')
    ORDER BY i.id
"""
_ORPHANED_CHANGES = """
    SELECT DISTINCT id FROM status_change
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = status_change.id) ORDER BY id
"""


class StatusChange(NamedTuple):
    """An item's status from a moment on."""

    id: str
    at: int
    status: str


def record_status_changes(db: apsw.Connection, changes: Iterable[StatusChange]) -> None:
    """Add those changes that change anything, in the caller's transaction."""
    for change in changes:
        last, status = next(iter(select(db, _LAST_CHANGE_OF, (change.id,))), (change.at, "active"))
        if status != change.status:
            # Never before the last one, even if the clock went back.
            db.execute(_ADD_CHANGE, change._replace(at=max(change.at, last)))


def complete_status_history(db: apsw.Connection, ids: Sequence[str]) -> None:
    """Add the changes that the rows of these items show and their history lacks."""
    condition = "i.id IN (SELECT value FROM json_each(?))"
    rows = select(db, _MISSING_CHANGES.replace("WANTED", condition), (json.dumps(list(ids)),))
    db.executemany(_ADD_CHANGE, rows)


def verify_status_history(db: apsw.Connection) -> str:
    """Describe problems of the status history; "" when there are none."""
    outdated = [row[0] for row in select(db, _MISSING_CHANGES.replace("WANTED", "1"))]
    orphaned = [row[0] for row in select(db, _ORPHANED_CHANGES)]
    problems = []
    if outdated:
        problems.append(
            f"{len(outdated):,} differ from the last change, the first is {outdated[0]}"
        )
    if orphaned:
        problems.append(f"{len(orphaned):,} belong to no memory, the first is {orphaned[0]}")
    return "; ".join(problems)


def repair_status_history(db: apsw.Connection) -> None:
    """Make every history end with the present status, and drop those without an item."""
    db.executemany(_ADD_CHANGE, select(db, _MISSING_CHANGES.replace("WANTED", "1")))
    db.executemany("DELETE FROM status_change WHERE id = ?", select(db, _ORPHANED_CHANGES))


_INSERT = "INSERT INTO event (seq, at, kind, item, actor, detail, chain) VALUES (?,?,?,?,?,?,?)"
_SELECT_HEAD = "SELECT value FROM meta WHERE name = 'journal'"
_SET_HEAD = "UPDATE meta SET value = ? WHERE name = 'journal'"
_SELECT_PAGE = (
    "SELECT seq, at, kind, item, actor, detail FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
)
_SELECT_NEWEST = """
    SELECT seq, at, kind, item, actor, detail FROM event
    WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR actor = ?2)
    ORDER BY seq DESC LIMIT ?3
"""
_SELECT_ALL = "SELECT seq, at, kind, item, actor, detail, chain FROM event ORDER BY seq"


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class JournalLine(NamedTuple):
    """An event of one memory, described without any of its content."""

    kind: str
    item: str | None
    detail: str = ""


class ChainedLine(NamedTuple):
    """A line as the file stores it."""

    seq: int
    at: int
    kind: str
    item: str | None
    actor: str
    detail: str
    chain: str


def write_journal(
    db: apsw.Connection, lines: Iterable[JournalLine], *, actor: str, at: int
) -> None:
    """Append lines, in the caller's transaction."""
    seq, chain = journal_head(db)
    chained = []
    for line in lines:
        seq += 1
        chain = chain_hash(chain, (seq, at, line.kind, line.item, actor, line.detail))
        chained.append(ChainedLine(seq, at, line.kind, line.item, actor, line.detail, chain))
    append_chained(db, chained)


def append_chained(db: apsw.Connection, lines: Sequence[ChainedLine]) -> None:
    """Append lines that are chained already, in their order."""
    if lines:
        db.executemany(_INSERT, lines)
        db.execute(_SET_HEAD, (f"{lines[-1].seq}:{lines[-1].chain}",))


def journal_head(db: apsw.Connection) -> tuple[int, str]:
    """Return the number and the chain hash of the last line."""
    seq, _, chain = db.execute(_SELECT_HEAD).get.partition(":")
    return int(seq), chain


def chain_hash(previous: str, line: tuple[object, ...]) -> str:
    """Return the hash that chains a line to all lines before it."""
    return hashlib.sha256(f"{previous}\n{_ENCODER.encode(line)}".encode()).hexdigest()


def read_journal(db: apsw.Connection, after: int, limit: int) -> list[Event]:
    """Return lines after a number, oldest first."""
    return [
        Event(seq, from_ms(at), kind, item, actor, detail)
        for seq, at, kind, item, actor, detail in db.execute(_SELECT_PAGE, (after, limit))
    ]


def read_newest_events(
    db: apsw.Connection, item: str | None, actor: str | None, limit: int
) -> list[Event]:
    """Return the last lines, newest first: of one memory, by one actor."""
    return [
        Event(seq, from_ms(at), kind, item_id, actor_name, detail)
        for seq, at, kind, item_id, actor_name, detail in db.execute(
            _SELECT_NEWEST, (item, actor, limit)
        )
    ]


def read_chained(db: apsw.Connection) -> Iterator[ChainedLine]:
    """Yield every line with its chain hash, oldest first."""
    return (ChainedLine(*row) for row in db.execute(_SELECT_ALL))


def find_chain_break(lines: Iterable[ChainedLine], expected: tuple[int, str] | None) -> str:
    """Describe the first break of the chain; "" when there is none.

    ``expected`` is the head it should end with, where that is known.
    """
    seq, chain = 0, ""
    for line in lines:
        if line.seq != seq + 1:
            return f"line {seq + 1} is missing"
        seq, chain = line.seq, chain_hash(chain, line[:-1])
        if chain != line.chain:
            return f"line {line.seq} was changed, or one before it"
    if expected is not None and (seq, chain) != expected:
        return f"it ends at line {seq}, but should end at {expected[0]}"
    return ""
