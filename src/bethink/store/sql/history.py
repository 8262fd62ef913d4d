"""Entities and statuses as of a moment in the past, as SQL, and the status history.

The moment is ``m.at``. The revision of that time knows the entities it mentioned; a
link only knows the live revision.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import product

import apsw

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.ports import Event
from bethink.ports.values import erased_mark
from bethink.store.sql.ceiling import is_below_ceiling
from bethink.store.sql.connection import Bindings, Database, select
from bethink.store.sql.dialect import part
from bethink.store.sql.journal_key import Secret, journal_keys
from bethink.store.sql.sql_functions import from_ms, state_hash, to_json_ids, to_ms

AS_OF_CTE = "WITH m (at) AS (SELECT ?)"
IS_MENTION = "l.type = 'mentions' AND l.src_kind = 'item' AND l.dst_kind = 'entity'"
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
# The last revision of each memory of a list, `item AS i`.
LAST_REVISIONS = """
    FROM json_each(?) AS wanted CROSS JOIN item AS i
        ON i.id = wanted.value AND i.rev = (SELECT max(rev) FROM item WHERE id = wanted.value)
"""
_LAST_CHANGE = "SELECT at FROM event ORDER BY seq DESC LIMIT 1"
_ENTITIES_CREATED_AFTER = "SELECT id FROM entity WHERE created_at > ?"


def columns_as_of(columns: str) -> str:
    """Replace an entity's mentions column by the count as of then, called ``held``."""
    return columns.replace("e.mentions", f"{MENTION_COUNT} AS held")


def is_past(db: Database, at: int) -> bool:
    """Whether anything was stored or forgotten after a moment."""
    return any(changed > at for (changed,) in select(db, _LAST_CHANGE))


def entities_created_after(db: Database, as_of_ms: int | None) -> set[str]:
    """Return entities first mentioned after a moment; without one there are none."""
    return (
        set()
        if as_of_ms is None
        else {row[0] for row in select(db, _ENTITIES_CREATED_AFTER, (as_of_ms,))}
    )


# The status of `item AS i` at MOMENT. What is in quarantine now was so at every moment: it is
# no safer to show it as it was before.
STATUS_AT = """
    CASE coalesce((SELECT n.status FROM status_change AS n WHERE n.id = i.id
        ORDER BY n.at DESC LIMIT 1), 'active')
    WHEN 'quarantined' THEN 'quarantined'
    ELSE coalesce((SELECT s.status FROM status_change AS s WHERE s.id = i.id AND s.at <= MOMENT
        ORDER BY s.at DESC LIMIT 1), 'active') END
"""
END_OF_TIME = 2**62  # later than any moment
# The ids of what had a status at a moment; of several changes the latest tells.
IDS_WITH_STATUS_AT = part(
    "SELECT id FROM (SELECT id, status, max(at) FROM status_change WHERE at <= ? GROUP BY id)"
    " WHERE status = ?",
    postgres="SELECT id FROM (SELECT DISTINCT ON (id) id, status FROM status_change WHERE at <= ?"
    " ORDER BY id, at DESC) AS latest WHERE status = ?",
)
_LAST_CHANGE_OF = "SELECT at, status FROM status_change WHERE id = ? ORDER BY at DESC LIMIT 1"
_ADD_CHANGE = "INSERT OR REPLACE INTO status_change (id, at, status) VALUES (?, ?, ?)"
# The history should end with what holds. Where it does not, the last revision has stood
# so since it began, or since the last change that is known.
_BY_SOUND_ITEM = part(
    "AND typeof(i.live_from) = 'integer' GROUP BY i.id",
    postgres="GROUP BY i.id, i.status, i.live_from",
)
_MISSING_CHANGES = f"""
    SELECT i.id, max(i.live_from, coalesce(max(s.at), i.live_from)), i.status
    FROM item AS i LEFT JOIN status_change AS s ON s.id = i.id
    WHERE i.rev = (SELECT max(rev) FROM item WHERE id = i.id) AND WANTED
        AND i.status IN ('active', 'superseded', 'quarantined')
    {_BY_SOUND_ITEM}
    HAVING i.status <> coalesce((SELECT l.status FROM status_change AS l WHERE l.id = i.id
        ORDER BY l.at DESC LIMIT 1), 'active')
    ORDER BY i.id
"""
_ORPHANED_CHANGES = """
    SELECT DISTINCT id FROM status_change
    WHERE NOT EXISTS (SELECT 1 FROM item WHERE item.id = status_change.id) ORDER BY id
"""


def record_status_changes(db: Database, changes: Iterable[tuple[str, int, str]]) -> None:
    """Add those changes (id, moment, status) that change anything."""
    for item, at, status in changes:
        last, before = next(iter(select(db, _LAST_CHANGE_OF, (item,))), (at, "active"))
        if before != status:
            # Never before the last one, even if the clock went back.
            db.execute(_ADD_CHANGE, (item, max(at, last), status))


def complete_status_history(db: Database, ids: Sequence[str]) -> None:
    """Add the changes that the rows of these items show and their history lacks."""
    condition = "i.id IN (SELECT value FROM json_each(?))"
    rows = select(db, _MISSING_CHANGES.replace("WANTED", condition), (json.dumps(list(ids)),))
    db.executemany(_ADD_CHANGE, rows)


def verify_status_history(db: Database) -> str:
    """Describe problems of the status history; "" when there are none."""
    outdated = select(db, _MISSING_CHANGES.replace("WANTED", "TRUE"))
    orphaned = select(db, _ORPHANED_CHANGES)
    found = ((outdated, "differ from the last change"), (orphaned, "belong to no memory"))
    return "; ".join(
        f"{len(rows):,} {what}, the first is {rows[0][0]}" for rows, what in found if rows
    )


def repair_status_history(db: Database) -> None:
    """Make every history end with the present status, and drop those without an item."""
    db.executemany(_ADD_CHANGE, select(db, _MISSING_CHANGES.replace("WANTED", "TRUE")))
    db.executemany("DELETE FROM status_change WHERE id = ?", select(db, _ORPHANED_CHANGES))


_STATES = """
    SELECT rid, id, live_from, CAST(content_hash AS BLOB), CAST(live_to AS BLOB),
        CAST(status AS BLOB), CAST(ended_by AS BLOB), state_hash, rev
    FROM item
"""
_STATES_OF = f"{_STATES} WHERE rid IN (SELECT value FROM json_each(?))"
_SET_STATE = """
    UPDATE item SET live_to = ?, status = ?, ended_by = ?, state_hash = ? WHERE rid = ?
"""
_ENDINGS = "SELECT at, CAST(detail AS BLOB) FROM event WHERE item = ? AND kind = 'ended'"
_NEXT_BEGINNING = "SELECT min(live_from) FROM item WHERE id = ? AND rev > ?"
_LAST_EVENT = """
    SELECT kind FROM event
    WHERE item = ? AND kind IN ('stored', 'revised', 'restored', 'imported', 'ended')
    ORDER BY seq DESC LIMIT 1
"""
_STATUS_THEN = """
    SELECT CAST(status AS BLOB) FROM status_change WHERE id = ? AND at <= ? ORDER BY at DESC LIMIT 1
"""
_STATUS_BYTES = (b"active", b"superseded", b"quarantined")


class StoredState(NamedTuple):
    """What may change of a revision, with its hash; values as the bytes in the file."""

    rid: int
    id: str
    live_from: int
    content_hash: bytes
    live_to: bytes | None
    status: bytes | None
    ended_by: bytes | None
    stored_hash: int | None
    rev: int

    def hash(self) -> int:
        """Return the hash that its state should have."""
        return state_hash(self.content_hash, self.rid, self.live_to, self.status, self.ended_by)


def change_states(db: Database, changes: Mapping[int, Json]) -> None:
    """Change columns of revisions, by row: all the same ones, of those that their hash covers.

    A row whose state is not what was stored keeps its hash: no write makes it sound.
    """
    if not changes:
        return
    rows = []
    for found in select(db, _STATES_OF, (json.dumps(list(changes)),)):
        state = StoredState(*found)
        new, hashed = changes[state.rid], state.stored_hash
        if state.hash() == hashed:
            hashed = state._replace(**new).hash()
        rows.append((*new.values(), hashed, state.rid))
    columns = ", ".join(f"{name} = ?" for name in (*next(iter(changes.values())), "state_hash"))
    db.executemany(f"UPDATE item SET {columns} WHERE rid = ?", rows)


def wrong_states(db: Database) -> list[StoredState]:
    """Return all revisions whose end or status is not what was stored."""
    states = (StoredState(*row) for row in db.execute(_STATES))
    return [state for state in states if state.hash() != state.stored_hash]


def restore_states(db: Database) -> None:
    """Give revisions the state that the journal tells, where their hash confirms it.

    The journal alone decides about a row as it is, that is, where the hash itself is damaged.
    """
    for row in wrong_states(db):
        told = list(_told_states(db, row))
        as_is = row if row in told else None
        right = next((one for one in told if one.hash() == row.stored_hash), as_is)
        if right is not None:
            live_to = None if right.live_to is None else int(right.live_to)
            texts = (one and one.decode() for one in (right.status, right.ended_by))
            # Where rot has moved its columns, SQLite takes no change of the row.
            with suppress(apsw.ConstraintError):
                db.execute(_SET_STATE, (live_to, *texts, right.hash(), row.rid))


def _told_states(db: Database, row: StoredState) -> Iterator[StoredState]:
    """Yield the states that a revision may have by the journal and the history of statuses."""
    following = db.execute(_NEXT_BEGINNING, (row.id, row.rev)).get
    is_over = following is not None or db.execute(_LAST_EVENT, (row.id,)).get == "ended"
    endings: list[tuple[int | None, bytes | None]] = [] if is_over else [(None, None)]
    # The last revision has the last status, also one that came after its end.
    moments = [END_OF_TIME]
    if isinstance(following, int):
        endings.append((following, b"revised"))
        moments = [following - 1, following]  # the next one's status is of the moment it began
    for at, reason in select(db, _ENDINGS, (row.id,)):
        if isinstance(at, int) and isinstance(row.live_from, int):
            endings.append((max(at, row.live_from), reason))
    for (at, reason), moment in product(endings, moments):
        status = next((one for (one,) in select(db, _STATUS_THEN, (row.id, moment))), b"active")
        if status in _STATUS_BYTES:
            live_to = None if at is None else b"%d" % at
            yield row._replace(live_to=live_to, ended_by=reason, status=status)


_INSERT = "INSERT INTO event (seq, at, kind, item, actor, detail, chain) VALUES (?,?,?,?,?,?,?)"
SELECT_HEAD = "SELECT value FROM meta WHERE name = 'journal'"
_SET_HEAD = "UPDATE meta SET value = ? WHERE name = 'journal'"
_SELECT_PAGE = (
    "SELECT seq, at, kind, item, actor, detail FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
)
_SELECT_VISIBLE_PAGE = (
    "SELECT at, kind, item, actor, detail FROM event ORDER BY seq LIMIT ? OFFSET ?"
)
_SELECT_NEWEST = """
    SELECT seq, at, kind, item, actor, detail FROM {event}
    WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR actor = ?2)
    ORDER BY seq DESC LIMIT ?3
"""
_NUMBERED = """
    (SELECT row_number() OVER (ORDER BY seq) AS seq, at, kind, item, actor, detail FROM event)
"""
_SELECT_ANY_ITEM = "SELECT 1 FROM item LIMIT 1"
SELECT_KEYS = "SELECT value FROM meta WHERE name = 'journal_keys'"
_SET_KEYS = "INSERT OR REPLACE INTO meta (name, value) VALUES ('journal_keys', ?)"
LAST_LINE = "SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1"
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


BROKEN = "broken"  # in an export, the code of a line after a break of the chain


class JournalChain:
    """How the lines of a journal are chained: each with a code over all before it and itself.

    From a line on the code needs the space's secret (`JournalKey`); lines before are from
    versions without one. Lines that another secret made cannot be checked.
    """

    def __init__(self, db: Database, *, create_at: int = 0) -> None:
        """Read the key of a connection's space; make it, if needed, at the given line."""
        key = journal_keys.get(db)
        self._secret = Secret()
        if key is not None:
            self._secret = key.ensure(create_at) if create_at else key.read()
        self.used = parse_keys(next((row[0] for row in select(db, SELECT_KEYS)), ""))
        if create_at and self._secret.id and self._secret.id not in dict(self.used):
            self.used.append((self._secret.id, self._secret.since))
            db.execute(_SET_KEYS, (",".join(f"{name}:{since}" for name, since in self.used),))

    def code(self, previous: str, line: Sequence[object]) -> str:
        """Return the code of a line after one with a code."""
        seq = line[0]
        assert isinstance(seq, int)
        if not self._secret.made(seq):
            return chain_hash(previous, line)
        return self._secret.mac(f"{previous}\n{_ENCODER.encode(line)}".encode())

    def seal(self, head: JournalHead) -> str:
        """Return the seal of a journal that ends with this line; empty without a secret."""
        if not self._secret.made(head.seq):
            return ""
        return self._secret.mac(f"end\n{head.seq}\n{head.code}".encode())

    def cut_after(self, head: JournalHead) -> int | None:
        """Return the line after which others were cut off; None where none were.

        The secret itself says whether there must be a seal. A cut that a write found is kept.
        """
        if not self._secret.seals or not self._secret.made(head.seq):
            return None
        if head.seal == self.seal(head):
            return None
        found = head.seal.removeprefix(_CUT)
        return int(found) if head.seal.startswith(_CUT) and found.isdecimal() else head.seq

    def lacks_all(self, seq: int) -> bool:
        """Whether a journal that ends here has no line of its secret, as before its first."""
        return self._secret.seals and not self._secret.made(seq)

    def can_check(self, seq: int) -> bool:
        """Whether a line was made without a secret, or with the one that is here.

        The secret itself says what it made, whatever the database says.
        """
        made_with = [name for name, since in self.used if since <= seq]
        return self._secret.made(seq) or not made_with or made_with[-1] == self._secret.id


def parse_keys(stored: object) -> list[tuple[str, int]]:
    """Return which secrets, by name, chained the journal, and from which line on."""
    # Rot may have made it no text.
    pairs = (part.partition(":") for part in str(stored or "").split(",") if part)
    return [(name, int(since)) for name, _, since in pairs if since.isdecimal()]


def write_journal(db: Database, lines: Iterable[JournalLine], *, actor: str, at: int) -> None:
    """Append lines, in the caller's transaction."""
    append_lines(db, ((at, line.kind, line.item, actor, line.detail) for line in lines))


def write_line(
    db: Database, kind: str, detail: str, *, actor: str, now: datetime, item: str | None = None
) -> None:
    """Append one line, in the caller's transaction."""
    write_journal(db, [JournalLine(kind, item, detail)], actor=actor, at=to_ms(now))


def append_lines(db: Database, lines: Iterable[tuple[int, str, str | None, str, str]]) -> None:
    """Append lines as the file stores them, without number and code, in their order."""
    head = journal_head(db)
    chain: JournalChain | None = None
    cut: int | None = None
    chained = []
    seq, code = head.seq, head.code
    for line in lines:
        seq += 1
        if chain is None:
            chain = JournalChain(db, create_at=seq)
            cut = chain.cut_after(head)
        code = chain.code(code, (seq, *line))
        chained.append(ChainedLine(seq, *line, code))
    if chain is not None:
        db.executemany(_INSERT, chained)
        new = JournalHead(seq, code)
        seal = chain.seal(new) if cut is None else f"{_CUT}{cut}"
        db.execute(_SET_HEAD, (f"{seq}:{code}:{seal}" if seal else f"{seq}:{code}",))


class JournalHead(NamedTuple):
    """The last line of a journal: its number, its code, and the seal that says that it is last."""

    seq: int
    code: str
    seal: str = ""


_CUT = "cut"  # instead of a seal, before the line after which others were missing


def journal_head(db: Database) -> JournalHead:
    """Return the last line that the journal should have."""
    seq, _, rest = db.execute(SELECT_HEAD).get.partition(":")
    code, _, seal = rest.partition(":")
    return JournalHead(int(seq), code, seal)


def chain_hash(previous: str, line: Sequence[object]) -> str:
    """Return the code that chains a line to all lines before it, without a secret."""
    return hashlib.sha256(f"{previous}\n{_ENCODER.encode(line)}".encode()).hexdigest()


def read_journal(db: Database, after: int, limit: int) -> list[Event]:
    """Return lines after a number, oldest first.

    Below a ceiling the visible lines are numbered from 1: a gap would tell of hidden ones.
    """
    if not is_below_ceiling(db):
        return _read_events(db, _SELECT_PAGE, (after, limit))
    rows = select(db, _SELECT_VISIBLE_PAGE, (limit, after))
    return [Event(seq, from_ms(at), *rest) for seq, (at, *rest) in enumerate(rows, after + 1)]


def read_newest_events(
    db: Database, item: str | None, actor: str | None, limit: int
) -> list[Event]:
    """Return the last lines, newest first: of one memory, by one actor."""
    sql = _SELECT_NEWEST.format(event=_NUMBERED if is_below_ceiling(db) else "event")
    return _read_events(db, sql, (item, actor, limit))


def _read_events(db: Database, sql: str, values: Bindings) -> list[Event]:
    return [Event(seq, from_ms(at), *rest) for seq, at, *rest in db.execute(sql, values)]


def read_chained(db: Database) -> Iterator[ChainedLine]:
    """Yield every line with its chain hash, oldest first."""
    return (ChainedLine(*row) for row in db.execute(_SELECT_ALL))


def find_chain_break(db: Database) -> str:
    """Describe the first break of the journal's chain; "" when there is none."""
    chain = JournalChain(db)
    seq, code = 0, ""
    for line in read_chained(db):
        if line.seq != seq + 1:
            return f"line {seq + 1} is missing"
        seq = line.seq
        if chain.can_check(seq) and chain.code(code, line[:-1]) != line.chain:
            return f"line {seq} was changed, or one before it"
        code = line.chain
    expected = journal_head(db)
    if (seq, code) != expected[:2]:
        return f"it ends at line {seq}, but should end at {expected.seq}"
    cut = chain.cut_after(expected)
    if cut is None and chain.lacks_all(seq) and select(db, _SELECT_ANY_ITEM):
        cut = seq
    return "" if cut is None else f"lines were cut off after line {cut}"


END_RESTORED = "journal restored"  # a line of a repair: which was the last before is not known
_LAST_RESTORED = "SELECT max(seq) FROM event WHERE kind = ?"


def unchecked_lines(db: Database) -> str:
    """Say which lines cannot be checked, or may be missing; "" if there are none.

    Either their secret is not here, or the counter with the number of the last one was lost.
    """
    chain = JournalChain(db)
    last = journal_head(db).seq
    ends = [min(last, since - 1) for _, since in chain.used[1:]] + ([last] if chain.used else [])
    unknown = [seq for seq in ends if not chain.can_check(seq)]
    problems = []
    if unknown:
        problems.append(
            f"lines up to {max(unknown)} cannot be checked: they were chained with a secret that"
            " is not next to the space"
        )
    restored = db.execute(_LAST_RESTORED, (END_RESTORED,)).get
    if restored is not None:
        problems.append(
            f"lines may be missing before line {restored}, where a repair restored its end"
        )
    return "; ".join(problems)


def exported_lines(db: Database) -> Iterator[ChainedLine]:
    """Yield every line, chained anew without a secret, which does not leave its place.

    From a break of the chain on there are no codes: no export makes it whole.
    """
    chain = JournalChain(db)
    code = plain = ""
    is_whole = True
    for number, line in enumerate(read_chained(db), start=1):
        if line.seq != number or (
            chain.can_check(number) and chain.code(code, line[:-1]) != line.chain
        ):
            is_whole = False
        code, plain = line.chain, chain_hash(plain, line[:-1])
        yield line._replace(chain=plain if is_whole else BROKEN)


_SELECT_ERASED_KEYS = """
    SELECT e.key_hash, e.id, e.content_hash FROM json_each(?) AS w
    CROSS JOIN erased_key AS e ON e.key_hash = w.value
    WHERE e.classification <= ? ORDER BY e.at, e.id DESC
"""
_KEYS_OF = """
    SELECT key, id, fingerprint FROM idempotency WHERE id IN (SELECT value FROM json_each(?))
"""
_ADD_ERASED_KEY = """
    INSERT OR REPLACE INTO erased_key (key_hash, id, content_hash, classification, at)
    VALUES (?, ?, ?, ?, ?)
"""


def find_erased_keys(db: Database, keys: Iterable[str], ceiling: int) -> dict[str, tuple[str, str]]:
    """Return for each key that an erased item had that item, and the mark of its content."""
    hashed = {_hash_key(key): key for key in keys}
    rows = select(db, _SELECT_ERASED_KEYS, (json.dumps(list(hashed)), ceiling))
    return {hashed[key]: (item, mark) for key, item, mark in rows}


def bury_keys(db: Database, levels: Mapping[str, int], now: int) -> None:
    """Remember the keys of items that are about to be erased, by id with their classification."""
    keys = select(db, _KEYS_OF, (json.dumps(list(levels)),))
    db.executemany(
        _ADD_ERASED_KEY,
        (
            (_hash_key(key), item, erased_mark(key, fingerprint), levels[item], now)
            for key, item, fingerprint in keys
        ),
    )


_SELECT_ERASED = "SELECT id FROM tombstone WHERE id IN (SELECT value FROM json_each(?))"


def erased_query(ids: Iterable[str]) -> tuple[str, tuple[str]]:
    """Return the query for those of the memories that were erased."""
    return _SELECT_ERASED, (to_json_ids(ids),)


def erased_of(db: Database, ids: Iterable[str]) -> set[str]:
    """Return those of the memories that were erased."""
    sql, (wanted,) = erased_query(ids)
    return {row[0] for row in select(db, sql, (wanted,))} if wanted != "[]" else set()


def _hash_key(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


_SELECT_QUESTIONS = "SELECT value FROM meta WHERE name = 'questions'"
_SET_QUESTIONS = "INSERT OR REPLACE INTO meta (name, value) VALUES ('questions', ?)"


def change_questions(db: Database, change: Callable[[list[Json]], list[Json]]) -> None:
    """Change the saved questions, if that changes any."""
    found = read_questions(db)
    if (kept := change(found)) != found:
        db.execute(_SET_QUESTIONS, (json.dumps(kept, ensure_ascii=False),))


def read_questions(db: Database) -> list[Json]:
    """Return the saved questions, as they are stored."""
    return next((json.loads(row[0]) for row in select(db, _SELECT_QUESTIONS)), [])
