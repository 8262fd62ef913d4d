"""The log of a space: `SyncStore` in SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from bethink.core.json_values import Json
from bethink.errors import NotFound
from bethink.ports import Device, OpBatch, SyncConflict, SyncResult
from bethink.store.sql.connection import HIGHEST, Connections, Database, select
from bethink.store.sql.oplog import capture as log
from bethink.store.sql.oplog.apply import Applying
from bethink.store.sql.oplog.capture import ADD_OP, SET_UPTO, Draft, LogWriter
from bethink.store.sql.oplog.fold import WITHDRAWN
from bethink.store.sql.oplog.shape import is_op
from bethink.store.sql.oplog.state import add_link
from bethink.store.sql.sql_functions import from_ms, to_json_ids, to_ms

_READ = """
    SELECT series, number, mark, clock, at, kind, item, seen, data FROM op
    WHERE series = ? AND number > ? AND number <= ? AND kind <> 'erased'
    ORDER BY number, mark LIMIT ?
"""
_MARKS = "SELECT number, mark FROM op WHERE series = ? AND number BETWEEN ? AND ?"
_ERASED = "SELECT id FROM tombstone WHERE id IN (SELECT value FROM json_each(?))"
_DROP_OLDER_USE = """
    DELETE FROM op WHERE item = ? AND kind = 'use' AND series = ? AND number < ?
"""
_RENAME = "UPDATE op SET series = ? WHERE series = ? AND number >= ?"
_DIGEST_ROWS = """
    SELECT i.id, i.rev, i.content_hash, i.live_to, i.ended_by, i.status, i.classification
    FROM item AS i ORDER BY i.id, i.rev
"""
_DIGEST_LINKS = """
    SELECT src_kind, src, type, dst_kind, dst, stated_by, weight, confidence, context, source,
        created_at FROM link
"""
_ADD_DEVICE = "INSERT OR REPLACE INTO device (id, name, key, accepted) VALUES (?, ?, ?, ?)"


class SqlSync:
    """The log of operations of a space, and the memories that are made of it."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections.base
        self.ceiling = connections.ceiling

    def settings(self) -> Json:
        with self._connections.read_transaction() as db:
            return log.read_sync(db)

    def keep(self, **values: object) -> None:
        with self._connections.write_transaction() as db:
            log.write_sync(db, log.read_sync(db) | values)

    def devices(self) -> list[Device]:
        with self._connections.read_transaction() as db:
            rows = select(db, "SELECT id, name, key, accepted FROM device ORDER BY name, id")
        return [Device(name, title, key, bool(accepted)) for name, title, key, accepted in rows]

    def add_device(self, device: Device) -> None:
        with self._connections.write_transaction() as db:
            row = (device.id, device.name, device.key, int(device.accepted))
            db.execute(_ADD_DEVICE, row)

    def capture(self, now: datetime) -> None:
        with self._connections.read_transaction() as db:
            if log.is_up_to_date(db):
                return
        with self._connections.write_transaction() as db:
            rewritten = log.capture(db, to_ms(now))
            if rewritten:
                Applying(db).apply(rewritten, actor="sync", now=to_ms(now))

    def vector(self, ceiling: int = HIGHEST) -> dict[str, int]:
        with self._connections.read_transaction() as db:
            found = log.vector(db)
        return {
            name: upto
            for name, upto in found.items()
            if level_of(name) <= min(ceiling, self.ceiling)
        }

    def read(self, after: Mapping[str, int], *, ceiling: int, limit: int) -> OpBatch:
        with self._connections.read_transaction() as db:
            ranges: dict[str, tuple[int, int]] = {}
            ops: list[str] = []
            for series, upto in log.vector(db).items():
                start = after.get(series, 0)
                if (
                    level_of(series) > min(ceiling, self.ceiling)
                    or start >= upto
                    or len(ops) >= limit
                ):
                    continue
                rows = select(db, _READ, (series, start, upto, limit - len(ops)))
                is_whole = len(ops) + len(rows) < limit
                ranges[series] = (start + 1, upto if is_whole else rows[-1][1])
                ops += [_line(row) for row in rows]
            return OpBatch(ranges, ops)

    def apply(self, batch: OpBatch, *, actor: str, now: datetime) -> SyncResult:
        at = to_ms(now)
        with self._connections.write_transaction() as db:
            touched = log.capture(db, at)  # first: what was done here has not seen what comes
            parsed = [_parse(line) for line in batch.ops]
            rows = _new_rows(db, [row for row in parsed if is_op(row)])
            db.executemany(ADD_OP, [(*row[:8], log.encode(row[8])) for row in rows])
            for row in rows:
                if row[5] == "use":
                    db.execute(_DROP_OLDER_USE, (row[6], row[0], row[1]))
            applying = Applying(db)
            items = dict.fromkeys([*touched, *(row[6] for row in rows)])
            applying.apply(list(items), actor=actor, now=at)
            gaps = _advance(db, batch.ranges)
        if applying.erased:
            self._connections.scrub()
        wrong = [str(row)[:80] for row in parsed if not is_op(row)]
        return SyncResult(applying.changed, applying.erased, [*applying.waiting, *wrong], gaps)

    def forks(self, batch: OpBatch) -> int:
        """Return the first number that another copy of this device has also given; 0 if none."""
        with self._connections.read_transaction() as db:
            device = log.read_sync(db).get("device", "")
            known = log.vector(db)
            found = []
            own = (line for line in batch.ops if line.startswith(f'["{device}.'))
            for series, number, mark, *_ in filter(is_op, map(_parse, own)):
                here = {row[1] for row in select(db, _MARKS, (series, number, number))}
                if number > known.get(series, 0) or (here and mark not in here):
                    found.append(number)
            return min(found, default=0)

    def renew(self, first: int, **identity: object) -> None:
        with self._connections.write_transaction() as db:
            sync = log.read_sync(db)
            for series, upto in log.vector(db).items():
                device, _, level = series.partition(".")
                if device == sync["device"] and upto >= first:
                    renamed = f"{identity['device']}.{level}"
                    db.execute(_RENAME, (renamed, series, first))
                    db.execute(SET_UPTO, (renamed, upto))
                    db.execute(SET_UPTO, (series, first - 1))
            log.write_sync(db, sync | identity)

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

    def settle(self, item: str, *, now: datetime) -> None:
        at = to_ms(now)
        with self._connections.write_transaction() as db:
            log.capture(db, at)
            ops = log.read_ops(db, [item]).get(item, [])
            if not ops:
                raise NotFound(f"there is no memory {item!r}")
            writer = LogWriter(db, log.read_sync(db)["device"])
            last = max(ops, key=lambda op: op.clock)
            writer.add(Draft(item, "settle", at, last.level, {}), max(at, last.clock + 1))
            writer.finish()
            Applying(db).apply([item], actor="sync", now=at)

    def erased(self) -> int:
        with self._connections.read_transaction() as db:
            return int(db.execute("SELECT count(*) FROM tombstone").get)

    def digest(self, ceiling: int = HIGHEST) -> str:
        with self._connections.read_transaction() as db:
            return f"{_digest(db, min(ceiling, self.ceiling)):032x}"


def level_of(series: str) -> int:
    """Return the classification of a series."""
    return int(series.partition(".")[2])


def _line(row: Sequence[Any]) -> str:
    head = json.dumps(list(row[:8]), ensure_ascii=False)
    return f"{head[:-1]},{log.decode(row[8])}]"


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


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
    gone = {row[0] for row in select(db, _ERASED, (to_json_ids(sorted({row[6] for row in rows})),))}
    return [
        row
        for row in rows
        if (row[0], row[1], row[2]) not in known and (row[5] == "erase" or row[6] not in gone)
    ]


def _advance(db: Database, ranges: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Note up to where the log has each series; return those that lack something in between."""
    known = log.vector(db)
    gaps = {}
    for series, (first, last) in ranges.items():
        upto = known.get(series, 0)
        if first > upto + 1:
            gaps[series] = upto + 1
        elif last > upto:
            db.execute(SET_UPTO, (series, last))
    return gaps


def _digest(db: Database, ceiling: int) -> int:
    """Return the sum of the hashes of all that is the same on all machines."""
    total = 0
    levels: dict[str, int] = {}
    rows = select(db, _DIGEST_ROWS)
    for item, *_, ended_by, _, level in rows:
        # Of what was above the ceiling once, others know another history.
        seen = HIGHEST if ended_by == WITHDRAWN else level
        levels[item] = max(seen, levels.get(item, 0)) if ceiling < HIGHEST else 0
    for row in rows:
        if levels[row[0]] <= ceiling:
            total += _hash(row[:6])
    links: dict[tuple[str, ...], list[Any]] = {}
    for row in select(db, _DIGEST_LINKS):
        add_link(links, row)
    for key, values in links.items():
        owners = [key[1], key[5], key[4]]
        if all(levels.get(owner, 0) <= ceiling for owner in owners):
            total += _hash((*key, *values))
    for row in select(db, "SELECT id, recalls FROM usage WHERE recalls > 0"):
        if levels.get(row[0], 0) <= ceiling:
            total += _hash(row)
    if ceiling >= HIGHEST:
        total += sum(_hash(row) for row in select(db, "SELECT id FROM tombstone"))
    return total % 2**128


def _hash(values: Iterable[object]) -> int:
    told = hashlib.blake2b(repr(tuple(values)).encode(), digest_size=16)
    return int.from_bytes(told.digest(), "big")
