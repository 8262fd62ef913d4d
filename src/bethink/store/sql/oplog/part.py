"""The log of a space: `SyncStore` in SQL, and the tables made what the log says."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import permutations
from typing import Any

from bethink.core.json_values import Json
from bethink.errors import NotFound, Refused
from bethink.ports import Device, OpBatch, SyncConflict, SyncResult
from bethink.store.sql import history
from bethink.store.sql.connection import HIGHEST, Connections, Database, Row, select
from bethink.store.sql.entities import (
    bump_entities_version,
    merge_entities,
    split_entities,
    update_entities,
)
from bethink.store.sql.erase import HELD, erase_items, remove_derived
from bethink.store.sql.history import erased_of, journal_head
from bethink.store.sql.links import ADD_ALIAS, normalise_alias
from bethink.store.sql.oplog import capture as log
from bethink.store.sql.oplog import fold as folding
from bethink.store.sql.oplog.fold import Folded, FoldedRow, LinkKey
from bethink.store.sql.revisions import insert_rows, next_rid
from bethink.store.sql.rows import CONTENT, NewRow, content_hash
from bethink.store.sql.search import word_index
from bethink.store.sql.sql_functions import from_ms, to_json_ids, to_ms
from bethink.store.sql.usage import SET_USE

_DROP_STATUSES = "DELETE FROM status_change WHERE id = ?"
_ADD_STATUS = "INSERT OR REPLACE INTO status_change (id, at, status) VALUES (?, ?, ?)"
_ADD_ENTITY = """
    INSERT INTO entity (id, kind, name, created_at, last_seen_at) VALUES (?1, ?2, ?3, ?4, ?4)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name
    WHERE entity.name = ?5 AND excluded.name <> ?5
"""
_ADD_LINK = """
    INSERT OR REPLACE INTO link (src_kind, src, type, dst_kind, dst, stated_by,
        weight, confidence, context, source, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_DROP_LINK = """
    DELETE FROM link WHERE src_kind = ? AND src = ? AND type = ? AND dst_kind = ? AND dst = ?
    AND stated_by = ?
"""
_ADD_KEY = "INSERT OR IGNORE INTO idempotency (key, id, fingerprint, at) VALUES (?, ?, ?, ?)"
_SET_DAY = "INSERT OR REPLACE INTO usage_day (id, day, recalls) VALUES (?, ?, ?)"
_SET_CONFLICT = "INSERT OR REPLACE INTO conflict (item, data) VALUES (?, ?)"
IN_FILE = "files"  # where the other version of a conflict is that no machine has made
_DROP_CONFLICT = f"""DELETE FROM conflict WHERE item = ? AND data NOT LIKE '%"{IN_FILE}"%'"""
_BURY = "INSERT OR IGNORE INTO tombstone (id, at, actor) VALUES (?, ?, ?)"
_MENTIONED = "SELECT id FROM entity WHERE mentions > 0 AND id IN (SELECT value FROM json_each(?))"
_COUNT_ON = """
    UPDATE entity SET mentions = mentions + ?1, created_at = min(created_at, ?2),
        last_seen_at = max(coalesce(last_seen_at, ?3), ?3) WHERE id = ?4
"""
_IN_ORDER = (
    _ADD_ENTITY, ADD_ALIAS, _DROP_STATUSES, _ADD_STATUS, _DROP_LINK, _ADD_LINK, _ADD_KEY,
    _DROP_CONFLICT, _SET_CONFLICT,
)  # fmt: skip
_BATCH = 500


class Applying:
    """The memories of one transaction that are made what the log says."""

    def __init__(self, db: Database, said: log.Said) -> None:
        """Begin; ``said`` are operations of the log that are at hand."""
        self._db, self._said = db, said
        self._rid = next_rid(db)
        self._merges = select(db, log.SELECT_MERGES)
        self._new: list[tuple[NewRow, list[int]]] = []
        self._entities: set[str] = set()  # whose counts and times are made anew
        # Or go on: mentions, first and last time.
        self._spoken_of: dict[str, tuple[int, int, int]] = {}
        self._told: set[tuple[object, ...]] = set()
        self._rows: dict[str, list[Sequence[Any]]] = {sql: [] for sql in _IN_ORDER}
        self.changed: list[str] = []
        self.erased: list[str] = []
        self.waiting: list[str] = []

    def apply(self, ids: Sequence[str], *, actor: str, now: int) -> None:
        """Apply what the log says of these memories, and of merges of entities."""
        found = [item for item in ids if item and item[0] not in ("=", folding.EDGE, HELD)]
        for start in range(0, len(found), _BATCH):
            self._apply_batch(found[start : start + _BATCH])
        self._count_on()
        if self.erased:
            erase_items(self._db, self.erased, actor=actor, now=now)
            # A tombstone also of what never was here: it does not come.
            self._db.executemany(_BURY, [(item, now, actor) for item in self.erased])
        if self._entities or any(item[:1] in ("=", folding.EDGE) for item in ids):
            waiting = [*self._relate_again(), *self._merge_again(now)]
            known = log.read_sync(self._db)
            if known.get("waiting", []) != waiting:
                log.write_sync(self._db, known | {"waiting": waiting})
        into = {gone: kept for gone, kept, _ in select(self._db, log.SELECT_MERGES)}
        for entity in [*self._entities]:  # what is merged counts where it was merged into
            while (entity := into.get(entity, "")) and entity not in self._entities:
                self._entities.add(entity)
        update_entities(self._db, self._entities)
        lines = [history.JournalLine("synced", item) for item in self.changed]
        history.write_journal(self._db, lines, actor=actor, at=now)

    def _count_on(self) -> None:
        """Count the mentions by new memories; entities without any are counted anew."""
        named = to_json_ids(sorted(self._spoken_of.keys() - self._entities))
        known = {row[0] for row in select(self._db, _MENTIONED, (named,))}
        self._entities |= self._spoken_of.keys() - known
        self._db.executemany(_COUNT_ON, [(*self._spoken_of[one], one) for one in sorted(known)])
        if known:
            bump_entities_version(self._db)

    def _apply_batch(self, ids: Sequence[str]) -> None:
        states, ops = log.read_states(self._db, ids), log.read_ops(self._db, ids, self._said)
        lost = log.erased_parents(self._db, ops)
        gone = history.erased_of(self._db, ids)
        folded: dict[str, Folded] = {}
        for item in ids:
            if item in gone:
                continue
            made = folding.fold(ops.get(item, ()), lost)
            if made.erased:
                self.erased.append(item)
            elif made.rows:
                folded[item] = made
            elif item in ops:
                self.waiting.append(item)
        self._split_merged(folded, states)
        for item, made in folded.items():
            self._write_rows(item, made.rows, states[item])
        if self._new:
            insert_rows(self._db, self._new)
            self._new = []
        ends = {key[4] for made in folded.values() for key in made.links if key[3] == "item"}
        erased_ends = history.erased_of(self._db, sorted(ends))  # nothing leads to them again
        for item, made in folded.items():
            self._write_rest(item, made, states[item], erased_ends)
            self.changed.append(item)
        for sql, found in self._rows.items():
            self._db.executemany(sql, found)
            found.clear()

    def _write_rows(self, item: str, rows: Sequence[FoldedRow], state: log.State) -> None:
        """Change as few rows as possible; those from the first that differs are made anew."""
        same = 0
        for one, other in zip(rows, state.rows, strict=False):
            if one.fields != other.fields or one.live_from != other.live_from:
                break
            same += 1
        self._remove(list(zip(state.rids[same:], state.rows[same:], strict=True)))
        changes = {
            rid: {"live_to": row.live_to, "ended_by": row.ended_by, "status": row.status}
            for rid, row, before in zip(state.rids[:same], rows, state.rows, strict=False)
            if row[2:] != before[2:]
        }
        history.change_states(self._db, changes)
        for rev, row in enumerate(rows[same:], same + 1):
            values = row.fields | {"id": item, "rev": rev, "live_from": row.live_from}
            content = tuple(values[name] for name in CONTENT)
            new = NewRow(self._rid, content, row.live_to, row.ended_by, row.status)
            self._new.append((new, row.fields["sketch"]))
            self._rid += 1
        if state.rows and (rows[same:] or state.rows[same:] or rows[-1][2:] != state.rows[-1][2:]):
            named = (json.loads(row.fields["entities"]) for row in (*rows, *state.rows))
            self._entities.update(entity for found in named for entity in found)

    def _remove(self, rows: Sequence[tuple[int, FoldedRow]]) -> None:
        if not rows:
            return
        rids = [rid for rid, _ in rows]
        texts = [
            (row.fields["text"], row.fields["about"], row.fields["original"]) for _, row in rows
        ]
        indexed = [word_index.IndexRow(rid, *text) for rid, text in zip(rids, texts, strict=True)]
        word_index.unindex_rows(self._db, indexed)
        remove_derived(self._db, rids, Counter())
        self._db.executemany("DELETE FROM item WHERE rid = ?", [(rid,) for rid in rids])

    def _write_rest(self, item: str, made: Folded, state: log.State, erased_ends: set[str]) -> None:
        rows = self._rows
        if list(made.statuses) != state.statuses:
            rows[_DROP_STATUSES].append((item,))
            rows[_ADD_STATUS] += [(item, *one) for one in made.statuses]
        links = {key: list(one) for key, one in made.links.items() if key[4] not in erased_ends}
        gone = [key for key in state.links if key not in links]
        new = {key: one for key, one in links.items() if state.links.get(key) != one}
        self._add_entities(new, made)
        rows[_DROP_LINK] += gone
        rows[_ADD_LINK] += [(*key, *values) for key, values in new.items()]
        counted = {key for key in new if not state.rows and self._speak(item, key, made.rows)}
        self._entities |= log.entities_of({*new, *gone} - counted)
        rows[_ADD_KEY] += [
            (key, item, *one) for key, one in made.keys.items() if key not in state.keys
        ]
        if made.uses:
            self._write_use(item, folding.sum_uses(made.uses.values()), state)
        rows[_DROP_CONFLICT].append((item,))
        if made.conflicts:
            rows[_SET_CONFLICT].append((item, log.dumps([list(one) for one in made.conflicts])))

    def _speak(self, item: str, link: LinkKey, rows: Sequence[FoldedRow]) -> bool:
        """Note a mention by a new memory; return whether it is one."""
        quoted = json.dumps(link[4], ensure_ascii=False)
        times = [row.live_from for row in rows if quoted in row.fields["entities"]]
        if (
            (*link[:2], link[3]) != ("item", item, "entity")
            or "mention" not in link[2]
            or not times
        ):
            return False
        count, first, last = self._spoken_of.get(link[4], (0, times[0], times[0]))
        count += link[2] == "mentions" and rows[-1].live_to is None
        self._spoken_of[link[4]] = (count, min(first, *times), max(last, *times))
        return True

    def _add_entities(self, links: dict[tuple[str, ...], list[Any]], made: Folded) -> None:
        level = int(made.rows[-1].fields["classification"])
        for entity in sorted(log.entities_of(links)):
            kind, name, aliases = made.entities.get(entity, (entity.partition(":")[0], "", ()))
            at, plain = made.rows[0].live_from, entity.partition(":")[2]
            name = name or plain
            told = (entity, kind, name, level, *aliases)
            if told in self._told:
                continue
            self._told.add(told)
            self._rows[_ADD_ENTITY].append((entity, kind, name, at, plain))
            known = {normalise_alias(one) for one in (name, *aliases)} - {""}
            self._rows[ADD_ALIAS] += [(one, entity, level) for one in sorted(known)]

    def _write_use(self, item: str, use: Json, state: log.State) -> None:
        if use["recalls"] != state.use.get("recalls", 0):
            last = use["stamps"][-1] if use["stamps"] else None
            self._db.execute(SET_USE, (item, use["recalls"], last, json.dumps(use["stamps"])))
            days = [(item, int(day), count) for day, count in use["days"].items()]
            self._db.executemany(_SET_DAY, days)

    def _split_merged(self, folded: dict[str, Folded], states: dict[str, log.State]) -> None:
        """Undo merges of entities whose links change; they are made again at the end."""
        merges = self._merges
        if not merges:
            return
        changed: set[str] = set()
        for item, made in folded.items():
            links = states[item].links
            keys = {key for key, one in made.links.items() if links.get(key) != list(one)}
            changed |= log.entities_of(keys | (links.keys() - made.links.keys()))
        if changed & {end for gone, kept, _ in merges for end in (gone, kept)}:
            self._split(merges)
            self._merges = []
            self._entities |= {end for gone, kept, _ in merges for end in (gone, kept)}

    def _split(self, merges: Iterable[Row]) -> None:
        """Undo merges, each before the one that its entity was merged by."""
        left = {gone: kept for gone, kept, _ in merges}
        # What is damaged may lead back: such merges stay.
        while free := sorted(gone for gone, kept in left.items() if kept not in left):
            for gone in free:
                split_entities(self._db, left.pop(gone), gone)

    def _relate_again(self) -> list[str]:
        """Make the relations between entities that no memory states what the log says.

        Return those that wait for entities.
        """
        logged, here = folding.resolve_edges(log.read_edge_ops(self._db)), log.read_edges(self._db)
        wanted = dict(logged.values())
        changed = {key: one for key, one in wanted.items() if here.get(key) != one}
        ends = to_json_ids(sorted(log.entities_of(changed)))
        known = {row[0] for row in select(self._db, log.EXISTING, (ends,))} if changed else set()
        new = [(*key, *one) for key, one in changed.items() if log.entities_of([key]) <= known]
        gone = sorted(here.keys() - wanted.keys())
        if new or gone:
            self._split(select(self._db, log.SELECT_MERGES))  # they copy what they relate
            self._db.executemany(_DROP_LINK, gone)
            self._db.executemany(_ADD_LINK, new)
        late = {key for key in changed if not log.entities_of([key]) <= known}
        return [mark for mark, (key, _) in logged.items() if key in late]

    def _merge_again(self, now: int) -> list[str]:
        """Make the merges of entities what the log says; return those that wait for entities."""
        said = log.read_merges(self._db).values()
        wanted = folding.resolve_merges(op for ops in said for op in ops)
        merges = select(self._db, log.SELECT_MERGES)
        if {(gone, kept) for gone, kept, _ in merges} == wanted.keys():
            return []
        self._split(merges)
        ends = to_json_ids(sorted({end for ends in wanted for end in ends}))
        known = {row[0] for row in select(self._db, log.EXISTING, (ends,))}
        ats = {(gone, kept): at for gone, kept, at in merges}
        for gone, kept in wanted:
            if {gone, kept} <= known:
                try:
                    merge_entities(self._db, kept, gone, ats.get((gone, kept), now))
                except (NotFound, Refused):  # of an entity that was split in between
                    continue
        made = {(gone, kept) for gone, kept, _ in select(self._db, log.SELECT_MERGES)}
        return [f"={gone}" for ends, (gone, _) in wanted.items() if ends not in made]


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
    WHERE src_kind = 'entity' AND source LIKE '{folding.MERGED}:%'
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
        return {name: upto for name, upto in found.items() if folding.level_of(name) <= most}

    def read(self, after: Mapping[str, int], *, ceiling: int, limit: int, told: int = 0) -> OpBatch:
        ranges: dict[str, tuple[int, int]] = {}
        ops: list[str] = []
        with self._connections.read_transaction() as db:
            # The highest first: they say what those below had seen.
            for series, upto in sorted(
                log.vector(db).items(), key=lambda one: -folding.level_of(one[0])
            ):
                level = folding.level_of(series)
                is_late = level > min(ceiling, self.ceiling)
                if level > min(max(ceiling, told), self.ceiling) or len(ops) >= limit:
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
            db.executemany(log.ADD_OP, [(*row[:8], log.encode(row[9])) for row in rows])
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
            db.executemany(log.SET_UPTO, ahead)
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
            writer = log.LogWriter(db, log.read_sync(db)["device"])
            clock = max(at, *(op.clock + 1 for op in ops))
            for level in sorted({op.level for op in ops}):  # to all who know of it
                writer.add(log.Draft(item, "settle", at, level, {}), clock)
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
        row, is_understood = folding.parse_op(line)
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
        for lower in range(folding.level_of(series)) if (kind, item) == ("seen", "") else ():
            below = f"{series[:-1]}{lower}"
            asked = (below, seen.get(below, 0), f"%.{folding.level_of(series)}")
            found += [row[0] for row in select(db, _ALSO_ABOVE, asked)]
    return found


def _release(db: Database) -> list[str]:
    """Return memories with operations that an earlier version did not understand."""
    found = [row for row in select(db, _HELD) if folding.parse_op(_line(row))[1]]
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
        db.execute(log.ADD_OP, (moved, number, "", 0, 0, "seen", "", 0, data))
        db.execute(_SET_SEEN_BY, (number, moved, number))
    before = {name: n for name, n in kept.items() if name <= series}
    for at, said in log.read_seen(db, moved, log.ALL).items():
        told = {f"{device}{name[-2:]}" if name in kept else name: n for name, n in said.items()}
        db.execute(_SET_SEEN, (log.encode(log.dumps(told | before)), moved, at))
    db.executemany(log.SET_UPTO, [(moved, upto if upto > last else number), (series, last)])


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
        seen = HIGHEST if ended_by == folding.WITHDRAWN else level
        levels[item] = max(seen, levels.get(item, 0)) if ceiling < HIGHEST else 0
    for row in rows:
        if levels[row[0]] <= ceiling:
            total += _hash((*row[:2], alone.get((row[0], row[1]), row[2]), *row[3:6]))
    links: dict[tuple[str, ...], list[Any]] = {}
    for row in select(db, _DIGEST_LINKS):
        log.add_link(links, row)
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
