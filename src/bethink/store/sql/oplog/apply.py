"""Make the tables what the log says: rows, statuses, links, keys and uses of memories."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from bethink.core.json_values import Json
from bethink.errors import NotFound, Refused
from bethink.store.sql import history
from bethink.store.sql.connection import Database, Row, select
from bethink.store.sql.entities import (
    bump_entities_version,
    merge_entities,
    split_entities,
    update_entities,
)
from bethink.store.sql.erase import HELD, erase_items, remove_derived
from bethink.store.sql.links import ADD_ALIAS, normalise_alias
from bethink.store.sql.oplog.capture import (
    EXISTING,
    SELECT_MERGES,
    Said,
    dumps,
    erased_parents,
    read_edge_ops,
    read_merges,
    read_ops,
    read_sync,
    write_sync,
)
from bethink.store.sql.oplog.fold import (
    Folded,
    FoldedRow,
    LinkKey,
    fold,
    resolve_edges,
    resolve_merges,
    sum_uses,
)
from bethink.store.sql.oplog.shape import EDGE
from bethink.store.sql.oplog.state import State, entities_of, read_edges, read_states
from bethink.store.sql.revisions import insert_rows, next_rid
from bethink.store.sql.rows import CONTENT, NewRow
from bethink.store.sql.search import word_index
from bethink.store.sql.sql_functions import to_json_ids
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

    def __init__(self, db: Database, said: Said) -> None:
        """Begin; ``said`` are operations of the log that are at hand."""
        self._db, self._said = db, said
        self._rid = next_rid(db)
        self._merges = select(db, SELECT_MERGES)
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
        found = [item for item in ids if item and item[0] not in ("=", EDGE, HELD)]
        for start in range(0, len(found), _BATCH):
            self._apply_batch(found[start : start + _BATCH])
        self._count_on()
        if self.erased:
            erase_items(self._db, self.erased, actor=actor, now=now)
            # A tombstone also of what never was here: it does not come.
            self._db.executemany(_BURY, [(item, now, actor) for item in self.erased])
        if self._entities or any(item[:1] in ("=", EDGE) for item in ids):
            waiting = [*self._relate_again(), *self._merge_again(now)]
            known = read_sync(self._db)
            if known.get("waiting", []) != waiting:
                write_sync(self._db, known | {"waiting": waiting})
        into = {gone: kept for gone, kept, _ in select(self._db, SELECT_MERGES)}
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
        states, ops = read_states(self._db, ids), read_ops(self._db, ids, self._said)
        lost = erased_parents(self._db, ops)
        gone = history.erased_of(self._db, ids)
        folded: dict[str, Folded] = {}
        for item in ids:
            if item in gone:
                continue
            made = fold(ops.get(item, ()), lost)
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

    def _write_rows(self, item: str, rows: Sequence[FoldedRow], state: State) -> None:
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

    def _write_rest(self, item: str, made: Folded, state: State, erased_ends: set[str]) -> None:
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
        self._entities |= entities_of({*new, *gone} - counted)
        rows[_ADD_KEY] += [
            (key, item, *one) for key, one in made.keys.items() if key not in state.keys
        ]
        if made.uses:
            self._write_use(item, sum_uses(made.uses.values()), state)
        rows[_DROP_CONFLICT].append((item,))
        if made.conflicts:
            rows[_SET_CONFLICT].append((item, dumps([list(one) for one in made.conflicts])))

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
        for entity in sorted(entities_of(links)):
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

    def _write_use(self, item: str, use: Json, state: State) -> None:
        if use["recalls"] != state.use.get("recalls", 0):
            last = use["stamps"][-1] if use["stamps"] else None
            self._db.execute(SET_USE, (item, use["recalls"], last, json.dumps(use["stamps"])))
            days = [(item, int(day), count) for day, count in use["days"].items()]
            self._db.executemany(_SET_DAY, days)

    def _split_merged(self, folded: dict[str, Folded], states: dict[str, State]) -> None:
        """Undo merges of entities whose links change; they are made again at the end."""
        merges = self._merges
        if not merges:
            return
        changed: set[str] = set()
        for item, made in folded.items():
            links = states[item].links
            keys = {key for key, one in made.links.items() if links.get(key) != list(one)}
            changed |= entities_of(keys | (links.keys() - made.links.keys()))
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
        logged, here = resolve_edges(read_edge_ops(self._db)), read_edges(self._db)
        wanted = dict(logged.values())
        changed = {key: one for key, one in wanted.items() if here.get(key) != one}
        ends = to_json_ids(sorted(entities_of(changed)))
        known = {row[0] for row in select(self._db, EXISTING, (ends,))} if changed else set()
        new = [(*key, *one) for key, one in changed.items() if entities_of([key]) <= known]
        gone = sorted(here.keys() - wanted.keys())
        if new or gone:
            self._split(select(self._db, SELECT_MERGES))  # they copy what they relate
            self._db.executemany(_DROP_LINK, gone)
            self._db.executemany(_ADD_LINK, new)
        late = {key for key in changed if not entities_of([key]) <= known}
        return [mark for mark, (key, _) in logged.items() if key in late]

    def _merge_again(self, now: int) -> list[str]:
        """Make the merges of entities what the log says; return those that wait for entities."""
        wanted = resolve_merges(op for ops in read_merges(self._db).values() for op in ops)
        merges = select(self._db, SELECT_MERGES)
        if {(gone, kept) for gone, kept, _ in merges} == wanted.keys():
            return []
        self._split(merges)
        ends = to_json_ids(sorted({end for ends in wanted for end in ends}))
        known = {row[0] for row in select(self._db, EXISTING, (ends,))}
        ats = {(gone, kept): at for gone, kept, at in merges}
        for gone, kept in wanted:
            if {gone, kept} <= known:
                try:
                    merge_entities(self._db, kept, gone, ats.get((gone, kept), now))
                except (NotFound, Refused):  # of an entity that was split in between
                    continue
        made = {(gone, kept) for gone, kept, _ in select(self._db, SELECT_MERGES)}
        return [f"={gone}" for ends, (gone, _) in wanted.items() if ends not in made]
