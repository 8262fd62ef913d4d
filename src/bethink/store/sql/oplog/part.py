"""The log of a space: `SyncStore` in SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import permutations
from typing import Any

from bethink.core.json_values import Json
from bethink.errors import NotFound
from bethink.ports import Device, OpBatch, SyncConflict, SyncResult
from bethink.store.sql.connection import HIGHEST, Connections, Database, select
from bethink.store.sql.erase import HELD
from bethink.store.sql.history import erased_of, journal_head
from bethink.store.sql.oplog import capture as log
from bethink.store.sql.oplog.apply import IN_FILE, Applying
from bethink.store.sql.oplog.capture import ADD_OP, SET_UPTO, Draft, LogWriter
from bethink.store.sql.oplog.fold import WITHDRAWN, level_of
from bethink.store.sql.oplog.shape import MERGED, parse_op
from bethink.store.sql.oplog.state import add_link
from bethink.store.sql.rows import CONTENT, content_hash
from bethink.store.sql.sql_functions import from_ms, to_json_ids, to_ms

_COLUMNS = "SELECT series, number, mark, clock, at, kind, item, seen, data FROM op"
_READ = f"""
    {_COLUMNS} WHERE series = ? AND number > ? AND number <= ? AND kind <> 'erased'
    ORDER BY number, mark LIMIT ?
"""
_READ_ERASES = _READ.replace("<> 'erased'", "= 'erase'")
_MARKS = "SELECT number, mark FROM op WHERE series = ? AND number BETWEEN ? AND ?"
_DROP_OLDER_USE = """
    DELETE FROM op WHERE item = ? AND kind = 'use' AND series = ? AND number < ?
"""
_SAMPLE = """
    SELECT number, mark FROM op WHERE series = ? AND number <= ? AND kind <> 'erased'
    ORDER BY number DESC, mark LIMIT 1
"""
_RENAME = "UPDATE op SET series = ? WHERE series = ? AND number >= ?"
_SET_SEEN = "UPDATE op SET data = ? WHERE series = ? AND number = ? AND kind = 'seen'"
_SET_SEEN_BY = "UPDATE op SET seen = ? WHERE series = ? AND seen = 0 AND number > ?"
# Memories with operations after a number of a series, and others of a higher classification.
_ALSO_ABOVE = """
    SELECT DISTINCT o.item FROM op AS o WHERE o.series = ? AND o.number > ? AND o.item <> ''
    AND EXISTS (SELECT 1 FROM op AS h WHERE h.item = o.item AND h.series LIKE ?)
"""
# Operations on memories that had others before them, which are in another series.
_AFTER = """
    SELECT o.number FROM op AS o JOIN op AS b ON b.item = o.item AND b.clock < o.clock
    WHERE o.series = ? AND o.item <> '' AND b.series = ? AND b.number > ?
    ORDER BY o.number LIMIT 1
"""
# Operations that are not understood, under HELD and the id of their memory.
_HELD = f"{_COLUMNS} WHERE item >= '{HELD}' AND item < '{chr(ord(HELD) + 1)}' AND kind <> 'erased'"
_RELEASE = "UPDATE op SET item = ? WHERE series = ? AND number = ? AND mark = ?"
_DIGEST_ROWS = """
    SELECT i.id, i.rev, i.content_hash, i.live_to, i.ended_by, i.status, i.classification
    FROM item AS i ORDER BY i.id, i.rev
"""
_DIGEST_CHILDREN = f"SELECT id, rev, {', '.join(CONTENT)} FROM item WHERE parent IS NOT NULL"
_DIGEST_LINKS = """
    SELECT src_kind, src, type, dst_kind, dst, stated_by, weight, confidence, context, source,
        created_at FROM link
"""
_DIGEST_COPIES = f"""
    SELECT src, type, dst, stated_by FROM link
    WHERE src_kind = 'entity' AND source LIKE '{MERGED}:%'
"""
_ADD_DEVICE = "INSERT OR REPLACE INTO device (id, name, key, accepted) VALUES (?, ?, ?, ?)"
_PARENT = CONTENT.index("parent")
LATE = "!"  # before a series of which a batch has the erases alone


class SqlSync:
    """The log of operations of a space, and the memories that are made of it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections.base
        self.ceiling = connections.ceiling

    def settings(self) -> Json:
        with self._connections.read_transaction() as db:
            known = log.read_sync(db)
            erased = int(db.execute("SELECT count(*) FROM tombstone").get) if known else 0
        return known | {"erased": erased} if known else known

    def keep(self, **values: object) -> None:
        with self._connections.write_transaction() as db:
            log.write_sync(db, log.read_sync(db) | values)

    def devices(self) -> list[Device]:
        with self._connections.read_transaction() as db:
            rows = select(db, "SELECT id, name, key, accepted FROM device ORDER BY name, id")
        return [Device(name, title, key, bool(accepted)) for name, title, key, accepted in rows]

    def add_device(self, device: Device) -> None:
        with self._connections.write_transaction() as db:
            db.execute(_ADD_DEVICE, (*device[:3], int(device.accepted)))

    def capture(self, now: datetime) -> None:
        with self._connections.read_transaction() as db:
            if log.is_up_to_date(db):
                return
        with self._connections.write_transaction() as db:
            rewritten = log.capture(db, to_ms(now))
            if rewritten:
                Applying(db, {}).apply(rewritten, actor="sync", now=to_ms(now))

    def vector(self, ceiling: int = HIGHEST) -> dict[str, int]:
        with self._connections.read_transaction() as db:
            found = log.vector(db)
        most = min(ceiling, self.ceiling)
        return {name: upto for name, upto in found.items() if level_of(name) <= most}

    def read(self, after: Mapping[str, int], *, ceiling: int, limit: int, told: int = 0) -> OpBatch:
        ranges: dict[str, tuple[int, int]] = {}
        ops: list[str] = []
        with self._connections.read_transaction() as db:
            # The highest first: they say what those below had seen.
            for series, upto in sorted(log.vector(db).items(), key=lambda one: -level_of(one[0])):
                is_late = level_of(series) > min(ceiling, self.ceiling)
                if level_of(series) > min(max(ceiling, told), self.ceiling) or len(ops) >= limit:
                    continue
                name = f"{LATE}{series}" if is_late else series
                start = max(after.get(series, 0), after.get(name, 0))
                read = _READ_ERASES if is_late else _READ
                rows = select(db, read, (series, start, upto, limit - len(ops)))
                if start < upto and (rows or not is_late):
                    is_whole = not is_late and len(ops) + len(rows) < limit
                    first = 1 if is_late else start + 1
                    ranges[name] = (first, upto if is_whole else rows[-1][1])
                    ops += [_line(row) for row in rows]
        return OpBatch(ranges, ops)

    def apply(self, batch: OpBatch, *, actor: str, now: datetime) -> SyncResult:
        at = to_ms(now)
        with self._connections.write_transaction() as db:
            touched = log.capture(db, at)  # first: what was done here has not seen what comes
            known = log.vector(db)
            gaps = {
                series: known.get(series, 0) + 1
                for series, (first, _) in batch.ranges.items()
                if first > known.get(series, 0) + 1 and not series.startswith(LATE)
            }
            held = {row[:3] for row in select(db, _HELD)}
            rows = _new_rows(db, _parse(batch, gaps))
            db.executemany(ADD_OP, [(*row[:8], log.encode(row[9])) for row in rows])
            for row in rows:
                if row[5] == "use":
                    db.execute(_DROP_OLDER_USE, (row[6], row[0], row[1]))
            touched += [*_release(db), *_seen_late(db, rows), *(row[6] for row in rows)]
            applying = Applying(db, {(row[0], row[1], row[2]): row[8] for row in rows})
            applying.apply(list(dict.fromkeys(touched)), actor=actor, now=at)
            if not applying.erased:  # all that was done here is in the log
                log.note_captured(db, journal_head(db).seq)
            whole = {one: span[1] for one, span in batch.ranges.items() if one not in gaps}
            ahead = [it for it in whole.items() if it[1] > known.get(it[0], 0) and it[0][0] != LATE]
            db.executemany(SET_UPTO, ahead)
            new = [_held_name(row) for row in select(db, _HELD) if row[:3] not in held]
        if applying.erased:
            self._connections.scrub()
        return SyncResult(applying.changed, applying.erased, [*applying.waiting, *new], gaps)

    def held(self) -> list[str]:
        with self._connections.read_transaction() as db:
            return [_held_name(row) for row in select(db, _HELD)]

    def samples(self, ceiling: int = HIGHEST) -> dict[str, list[tuple[int, str]]]:
        found: dict[str, list[tuple[int, str]]] = {}
        with self._connections.read_transaction() as db:
            for series, upto in self.vector(ceiling).items():
                number, step, found[series] = upto, 1, []
                while number > 0 and (row := select(db, _SAMPLE, (series, number))):
                    found[series].append((row[0][0], row[0][1]))
                    number, step = row[0][0] - step, step * 2
        return found

    def forks(self, samples: Mapping[str, Iterable[tuple[int, str]]]) -> dict[str, int]:
        found: dict[str, int] = {}
        with self._connections.read_transaction() as db:
            device, known = log.read_sync(db).get("device", ""), log.vector(db)
            for series, marks in samples.items():
                is_own, same = series.partition(".")[0] == device, 0
                for number, mark in sorted(marks):
                    here = {row[1] for row in select(db, _MARKS, (series, number, number))}
                    if mark in here and series not in found:
                        same = number
                    elif here or (is_own and number > known.get(series, 0)):
                        found.setdefault(series, same + 1)
        return found

    def renew(self, forks: Mapping[str, int], **identity: object) -> None:
        with self._connections.write_transaction() as db:
            sync = log.read_sync(db)
            old = sync["device"]
            upto = {name: n for name, n in log.vector(db).items() if name.startswith(f"{old}.")}
            kept = {name: min(forks.get(name, n + 1) - 1, n) for name, n in upto.items()}
            _keep_before(db, kept)
            for series, number in upto.items():
                _move(db, series, str(identity["device"]), number, kept)
            log.write_sync(db, sync | {"former": [*sync.get("former", ()), old]} | identity)

    def conflicts(self, ids: Sequence[str] | None = None) -> dict[str, list[SyncConflict]]:
        where = "" if ids is None else " WHERE item IN (SELECT value FROM json_each(?))"
        values = () if ids is None else (to_json_ids(ids),)
        with self._connections.read_transaction() as db:
            rows = select(db, f"SELECT item, data FROM conflict{where} ORDER BY item", values)
            names: dict[str, str] = dict(select(db, "SELECT id, name FROM device")) if rows else {}
        return {
            item: [
                SyncConflict(kind, names.get(device, device), from_ms(at), rev)
                for kind, device, at, rev in json.loads(data)
            ]
            for item, data in rows
        }

    def set_conflict(self, item: str, rev: int | None, *, now: datetime) -> None:
        at = to_ms(now)
        with self._connections.write_transaction() as db:
            db.execute("DELETE FROM conflict WHERE item = ?", (item,))
            if rev is not None:
                row = (item, log.dumps([["edited", IN_FILE, at, rev]]))
                db.execute("INSERT INTO conflict (item, data) VALUES (?, ?)", row)
                return
            if not log.read_sync(db):
                return  # it is known on this machine only
            log.capture(db, at)
            ops = log.read_ops(db, [item], {}).get(item, [])
            if not ops:
                raise NotFound(f"there is no memory {item!r}")
            writer = LogWriter(db, log.read_sync(db)["device"])
            clock = max(at, *(op.clock + 1 for op in ops))
            for level in sorted({op.level for op in ops}):  # to all who know of it
                writer.add(Draft(item, "settle", at, level, {}), clock)
            writer.finish()
            Applying(db, {}).apply([item], actor="sync", now=at)

    def digest(self, ceiling: int = HIGHEST) -> str:
        with self._connections.read_transaction() as db:
            return f"{_digest(db, min(ceiling, self.ceiling)):032x}"


def _line(row: Sequence[Any]) -> str:
    return f"{_head([*row[:6], row[6].removeprefix(HELD), row[7]])}{log.decode(row[8])}]"


def _head(row: Sequence[Any]) -> str:
    """Return what a line says before the data of its operation."""
    return f"{json.dumps(row[:8], ensure_ascii=False)[:-1]},"


def _held_name(row: Sequence[Any]) -> str:
    return f"{row[5]} {row[6].removeprefix(HELD)} ({row[0]})"


def _parse(batch: OpBatch, gaps: Mapping[str, int]) -> list[list[Any]]:
    """Return the operations that can be kept, each with the text of its data.

    What is none is held as a line. What is in no range, or behind a gap, comes again with
    what is before it; an erase holds at once.
    """
    found = []
    for line in batch.ops:
        row, is_understood = parse_op(line)
        if row is None:
            said = {"line": ascii(line[:1000])}
            mark = hashlib.blake2b(said["line"].encode(), digest_size=8).hexdigest()
            row = ["", 0, mark, 0, 0, f"no operation: {line[:40]!a}", "", 0, said]
        first, last = batch.ranges.get(row[0], (0, 0))
        if (first <= row[1] <= last and row[0] not in gaps) or row[5] == "erase":
            head = _head(row)
            as_told = line.startswith(head) and line.endswith("}]")
            data = line[len(head) : -1] if as_told else log.dumps(row[8])
            row[6] = row[6] if is_understood else f"{HELD}{row[6]}"
            found.append([*row, data])
    return found


def _seen_late(db: Database, rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return memories of which it is only now told what a device had seen of them above."""
    found: list[str] = []
    for series, *_, kind, item, _, seen, _ in rows:
        for lower in range(level_of(series)) if (kind, item) == ("seen", "") else ():
            below = f"{series[:-1]}{lower}"
            asked = (below, seen.get(below, 0), f"%.{level_of(series)}")
            found += [row[0] for row in select(db, _ALSO_ABOVE, asked)]
    return found


def _release(db: Database) -> list[str]:
    """Return memories with operations that an earlier version did not understand."""
    found = [row for row in select(db, _HELD) if parse_op(_line(row))[1]]
    db.executemany(_RELEASE, [(row[6].removeprefix(HELD), *row[:3]) for row in found])
    return [row[6].removeprefix(HELD) for row in found]


def _keep_before(db: Database, kept: dict[str, int]) -> None:
    """Keep of each series what came before all that is moved of the others: it knew of that."""
    known: dict[str, int] = {}
    while known != kept:
        known = dict(kept)
        for series, other in permutations(sorted(kept, reverse=True), 2):
            told = log.read_seen(db, series, log.ALL).items() if other < series else ()
            ends = [said.get(other, 0) for at, said in told if at > kept[series]]
            ends += [row[0] - 1 for row in select(db, _AFTER, (other, series, kept[series]))]
            kept[other] = min(kept[other], *ends) if ends else kept[other]


def _move(db: Database, series: str, device: str, upto: int, kept: Mapping[str, int]) -> None:
    """Give another device the operations of a series after those that are kept."""
    moved, last = f"{device}{series[-2:]}", kept[series]
    base = log.read_seen(db, series, last, 1)
    db.execute(_RENAME, (moved, series, last + 1))
    number = next(iter(base), last)
    if number:  # what was seen before is said again, with the operations of before
        data = log.encode(log.dumps({**base.get(number, {})}))
        db.execute(ADD_OP, (moved, number, "", 0, 0, "seen", "", 0, data))
        db.execute(_SET_SEEN_BY, (number, moved, number))
    before = {name: n for name, n in kept.items() if name <= series}
    for at, said in log.read_seen(db, moved, log.ALL).items():
        told = {f"{device}{name[-2:]}" if name in kept else name: n for name, n in said.items()}
        db.execute(_SET_SEEN, (log.encode(log.dumps(told | before)), moved, at))
    db.executemany(SET_UPTO, [(moved, upto if upto > last else number), (series, last)])


def _new_rows(db: Database, rows: Sequence[list[Any]]) -> list[list[Any]]:
    """Return the operations that the log lacks, without those on memories that were erased."""
    spans: dict[str, list[int]] = {}
    for series, number, *_ in rows:
        spans.setdefault(series, []).append(number)
    known = {
        (series, *row)
        for series, numbers in spans.items()
        for row in select(db, _MARKS, (series, min(numbers), max(numbers)))
    }
    gone = erased_of(db, sorted({row[6].removeprefix(HELD) for row in rows}))
    new = (row for row in rows if tuple(row[:3]) not in known)
    return [row for row in new if row[5] == "erase" or row[6].removeprefix(HELD) not in gone]


def _digest(db: Database, ceiling: int) -> int:
    """Return the sum of the hashes of all that is the same on all machines."""
    total = 0
    levels: dict[str, int] = {}
    rows = select(db, _DIGEST_ROWS)
    # A parent may be above the ceiling, and is not told then.
    children = select(db, _DIGEST_CHILDREN) if ceiling < HIGHEST else []
    alone = {
        tuple(row[:2]): content_hash([*row[2:][:_PARENT], None, *row[2:][_PARENT + 1 :]])
        for row in children
    }
    for item, *_, ended_by, _, level in rows:
        # Of what was above the ceiling once, others know another history.
        seen = HIGHEST if ended_by == WITHDRAWN else level
        levels[item] = max(seen, levels.get(item, 0)) if ceiling < HIGHEST else 0
    for row in rows:
        if levels[row[0]] <= ceiling:
            total += _hash((*row[:2], alone.get((row[0], row[1]), row[2]), *row[3:6]))
    links: dict[tuple[str, ...], list[Any]] = {}
    for row in select(db, _DIGEST_LINKS):
        add_link(links, row)
    for key, values in links.items():
        owners = [key[1], key[5], key[4]]
        # A relation is as classified as what mentions its ends, which may differ.
        is_alone = not key[5] and key[0] == key[3] == "entity" and ceiling < HIGHEST
        if not is_alone and all(levels.get(owner, 0) <= ceiling for owner in owners):
            total += _hash((*key, *values))
    for row in select(db, "SELECT id, recalls FROM usage WHERE recalls > 0"):
        if levels.get(row[0], 0) <= ceiling:
            total += _hash(row)
    if ceiling >= HIGHEST:
        others = [*select(db, "SELECT id FROM tombstone"), *select(db, _DIGEST_COPIES)]
        total += sum(map(_hash, others))
    return total % 2**128


def _hash(values: Iterable[object]) -> int:
    told = hashlib.blake2b(repr(tuple(values)).encode(), digest_size=16)
    return int.from_bytes(told.digest(), "big")
