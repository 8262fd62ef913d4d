"""Write into the log what was done to memories since the last time.

Nothing is written when a memory is stored: the journal tells which memories changed, and what
an operation has to say is the difference between their rows, in the form of operations, and
what the log makes of them.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold as fold_case
from bethink.store.sql import history
from bethink.store.sql.connection import HIGHEST, Database, select
from bethink.store.sql.links import normalise_alias, read_entities
from bethink.store.sql.oplog import fold as folding
from bethink.store.sql.oplog.fold import Folded, FoldedRow, LinkKey, Op
from bethink.store.sql.sql_functions import to_json_ids

# What follows from a text: who changes the text changes all of it.
TEXT_FIELDS = frozenset({
    "text", "about", "original", "caption", "language", "subject", "attribute", "entities",
    "tokens", "fingerprint", "sketch",
})  # fmt: skip

_SELECT_ROWS = f"""
    SELECT i.id, i.live_from, i.live_to, i.ended_by, i.status, i.rid,
        (SELECT json_group_array(band ORDER BY band) FROM sketch WHERE rid = i.rid),
        {", ".join(f"i.{name}" for name in folding.OWN_FIELDS)}
    FROM json_each(?) AS wanted CROSS JOIN item AS i ON i.id = wanted.value ORDER BY i.id, i.rev
"""
_OF = "FROM json_each(?) AS wanted CROSS JOIN {} AS o ON o.id = wanted.value"
_SELECT_STATUSES = f"SELECT o.id, o.at, o.status {_OF.format('status_change')} ORDER BY o.id, o.at"
_LINK = "l.src_kind, l.src, l.type, l.dst_kind, l.dst, l.stated_by"
_VALUES = "l.weight, l.confidence, l.context, l.source, l.created_at"
# A link belongs to the memory it starts from, or that states it, or that it leads to.
_SELECT_LINKS = tuple(
    f"SELECT wanted.value, {_LINK}, {_VALUES} FROM json_each(?) AS wanted CROSS JOIN link AS l"
    f" ON l.{end} = wanted.value WHERE {condition}"
    for end, condition in (
        ("src", "l.src_kind = 'item'"),
        ("stated_by", "l.stated_by <> '' AND l.src_kind <> 'item'"),
        ("dst", "l.dst_kind = 'item' AND l.src_kind <> 'item' AND l.stated_by = ''"),
    )
)
_SELECT_KEYS = f"SELECT o.id, o.key, o.fingerprint, o.at {_OF.format('idempotency')} ORDER BY o.key"
_SELECT_USES = f"SELECT o.id, o.recalls, o.stamps {_OF.format('usage')}"
_SELECT_DAYS = f"SELECT o.id, o.day, o.recalls {_OF.format('usage_day')}"
_EDGES = f"""
    SELECT {_LINK}, {_VALUES} FROM link AS l
    WHERE l.src_kind = 'entity' AND l.dst_kind = 'entity' AND l.stated_by = '' ORDER BY l.src
"""


class State(NamedTuple):
    """What the tables hold of one memory."""

    rows: list[FoldedRow]
    rids: list[int]
    statuses: list[tuple[int, str]]
    links: dict[LinkKey, list[Any]]
    keys: dict[str, list[Any]]
    use: Json


def read_states(db: Database, ids: Sequence[str]) -> dict[str, State]:
    """Return the state of each memory; unknown ones have no rows."""
    wanted = (to_json_ids(ids),)
    found = {item: State([], [], [], {}, {}, {}) for item in ids}
    for item, begin, end, ended_by, status, rid, sketch, *values in select(
        db, _SELECT_ROWS, wanted
    ):
        fields = dict(zip(folding.OWN_FIELDS, values, strict=True))
        fields["sketch"] = [] if sketch == "[]" else json.loads(sketch)
        found[item].rows.append(FoldedRow(fields, begin, end, ended_by, status))
        found[item].rids.append(rid)
    for item, at, status in select(db, _SELECT_STATUSES, wanted):
        found[item].statuses.append((at, status))
    for sql in _SELECT_LINKS:
        for item, *row in select(db, sql, wanted):
            add_link(found[item].links, row)
    for item, key, *rest in select(db, _SELECT_KEYS, wanted):
        found[item].keys[key] = rest
    for item, recalls, stamps in select(db, _SELECT_USES, wanted):
        found[item].use.update(recalls=recalls, stamps=json.loads(stamps), days={})
    for item, day, recalls in select(db, _SELECT_DAYS, wanted):
        if found[item].use:
            found[item].use["days"][str(day)] = recalls
    return found


def add_link(links: dict[LinkKey, list[Any]], row: Sequence[Any]) -> None:
    """Add a link as it would be without merges of entities, which are operations of their own."""
    key, values = list(row[:6]), list(row[6:])
    if values[3].startswith(f"{folding.MERGED}:") or key[2] == folding.MERGED:
        return  # a merge made it
    if key[2] == "mentioned" and values[2] == folding.MERGED:
        key[2], values[2] = "mentions", None
    links[tuple(key)] = values


def read_edges(db: Database) -> dict[LinkKey, list[Any]]:
    """Return the relations between entities that no memory states."""
    links: dict[LinkKey, list[Any]] = {}
    for row in select(db, _EDGES):
        add_link(links, row)
    return links


def entities_of(links: Iterable[LinkKey]) -> set[str]:
    """Return the entities at the ends of links."""
    ends = ((key[at], key[at + 1]) for key in links for at in (0, 3))
    return {name for kind, name in ends if kind == "entity"}


BATCH = 500
_LOGS = 2  # raised when more is logged: what an earlier version left out is made up for
ALL = 2**53  # more than there are
Said = Mapping[tuple[str, int, str], Json]  # by series, number and mark: what operations say
# What most operations say alike; part of the format of the log, it never changes.
_COMMON = (
    b'{"add":[["item","mentions","entity","",[1.0,0.9,null,"rule",17]],"follows","related_to",'
    b'"entities":{"person:":["organisation","project","place","topic",[]]},"keys":[["'
    b'{"set":{"about":"","attribute":"","classification":1,"confidence":1.0,"credibility":6,'
    b'"emotion":0.0,"entities":"[\\"person:\\"]","fingerprint":"","flags":"[]","importance":0.5,'
    b'"integrity":2,"kind":"fact","kind":"note","language":"en","level":"item","occurred_at":17,'
    b'"pinned":0,"protected":0,"relevance":0.0,"session":"","seq":1,"sketch":[-1,2],"source":"user",'
    b'"source_class":"user","speaker":"","stored_at":17,"subject":"","tags":"[]","text":"The ",'
    b'"tier":"general","tokens":12,"topic":"","trust":2,"writer":"user"}}'
)
SELECT_SYNC = "SELECT value FROM meta WHERE name = 'sync'"
_SET_SYNC = "INSERT OR REPLACE INTO meta (name, value) VALUES ('sync', ?)"
_ALL_ITEMS = "SELECT DISTINCT id FROM item ORDER BY id"
_CHANGED_ITEMS = """
    SELECT DISTINCT item FROM event WHERE seq > ? AND item IS NOT NULL AND kind <> 'synced'
    UNION SELECT item FROM unlogged
    UNION SELECT id FROM usage WHERE last_at >= ?
    ORDER BY 1
"""
_USES = "SELECT coalesce(max(last_at), 0), coalesce(sum(recalls), 0) FROM usage"
_UNLOGGED = "SELECT count(*) FROM unlogged"
_ERASED = "SELECT item, at, detail FROM event WHERE seq > ? AND kind = 'erased' ORDER BY seq"
_BURIED = "SELECT id, at, ? FROM tombstone ORDER BY id"
_LEVELS = "SELECT DISTINCT series FROM op WHERE item = ?"
SELECT_MERGES = """
    SELECT src, dst, created_at FROM link
    WHERE type = 'same_as' AND src_kind = 'entity' AND dst_kind = 'entity' ORDER BY src, dst
"""
_LEAST_LEVEL = """
    SELECT coalesce(min(i.classification), 1) FROM link AS l JOIN item AS i ON i.id = l.src
    WHERE l.dst = ? AND l.src_kind = 'item' AND l.dst_kind = 'entity'
"""
EXISTING = "SELECT id FROM entity WHERE id IN (SELECT value FROM json_each(?))"
_OPS_OF_ITEMS = """
    SELECT o.series, o.number, o.mark, o.clock, o.at, o.kind, o.item, o.seen, o.data
    FROM json_each(?) AS wanted CROSS JOIN op AS o ON o.item = wanted.value
    WHERE o.kind <> 'erased' ORDER BY o.item, o.series, o.number
"""
_OPS_OF_MERGES = _OPS_OF_ITEMS.replace(
    "json_each(?) AS wanted CROSS JOIN op AS o ON o.item = wanted.value", "op AS o"
).replace("WHERE", "WHERE o.item >= '=' AND o.item < '>' AND")
_OPS_OF_EDGES = _OPS_OF_MERGES.replace("'>'", "'?'").replace("'='", "'>'")
_STUBS_OF_EDGES = """
    SELECT item, series, clock FROM op WHERE item >= '>' AND item < '?' AND kind = 'erased'
"""
_EMPTY_EDGE = "UPDATE op SET kind = 'erased', data = CAST('' AS BLOB) WHERE item = ?"
_SEEN = """
    SELECT number, data FROM op WHERE series = ? AND number <= ? AND kind = 'seen' AND item = ''
    ORDER BY number DESC LIMIT ?
"""
ADD_OP = """
    INSERT OR IGNORE INTO op (series, number, mark, clock, at, kind, item, seen, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_UPTO = "INSERT OR REPLACE INTO series (name, upto) VALUES (?, ?)"
_DROP_OLD_USE = "DELETE FROM op WHERE item = ? AND kind = 'use' AND series = ?"
_DROP_STUBS = "DELETE FROM op WHERE item = ? AND kind = 'erased'"
_CLASSES = f"SELECT i.id, i.classification {history.LAST_REVISIONS}"


class Draft(NamedTuple):
    """An operation without its place in a series."""

    item: str
    kind: str
    at: int
    level: int
    data: Json


def read_sync(db: Database) -> Json:
    """Return what this space knows of itself as a device; empty before the first sync."""
    found = select(db, SELECT_SYNC)
    return json.loads(found[0][0]) if found else {}


def write_sync(db: Database, values: Json) -> None:
    """Keep what this space knows of itself as a device."""
    db.execute(_SET_SYNC, (json.dumps(values),))


def encode(data: str) -> bytes:
    """Return the data of an operation, which is JSON, as the log keeps it."""
    made = zlib.compressobj(6, zdict=_COMMON)
    return made.compress(data.encode()) + made.flush()


def decode(stored: bytes) -> str:
    """Return the data of an operation as JSON."""
    return zlib.decompressobj(zdict=_COMMON).decompress(stored).decode()


def dumps(data: object) -> str:
    """Return JSON in canonical form."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def vector(db: Database) -> dict[str, int]:
    """Return up to which number the log has each series."""
    return dict(select(db, "SELECT name, upto FROM series ORDER BY name"))


def read_ops(db: Database, ids: Sequence[str], said: Said) -> dict[str, list[Op]]:
    """Return the operations on memories, by id; of some it may be known what they say."""
    return _to_ops(db, select(db, _OPS_OF_ITEMS, (to_json_ids(ids),)), said)


def read_merges(db: Database) -> dict[str, list[Op]]:
    """Return the merges and splits of entities, by the entity that is gone."""
    return _to_ops(db, select(db, _OPS_OF_MERGES), {})


def read_edge_ops(db: Database) -> dict[str, list[Op]]:
    """Return the operations on relations between entities, by the mark of each."""
    return _to_ops(db, select(db, _OPS_OF_EDGES), {})


def empty_edges(db: Database, gone: Collection[str]) -> None:
    """Leave no name of erased entities in the log of their relations; what is left says so."""
    for item, ops in read_edge_ops(db).items() if gone else ():
        if any(op.data and not entities_of([tuple(op.data["add"])]).isdisjoint(gone) for op in ops):
            db.execute(_EMPTY_EDGE, (item,))


def _to_ops(db: Database, rows: Sequence[Sequence[Any]], said: Said) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = {}
    levels: dict[str, set[int]] = {}
    told: dict[tuple[str, int], dict[int, folding.Vector]] = {}
    for series, *_, item, _, _ in rows:
        levels.setdefault(item, set()).add(folding.level_of(series))
    for series, number, mark, clock, at, kind, item, seen, data in rows:
        if (series, seen) not in told:
            told[series, seen] = read_seen(db, series, seen, 1)
        vector = told[series, seen].get(seen, {})
        # What was seen above it, the higher series tell: with the number it had reached then.
        for level in (one for one in levels[item] if one > folding.level_of(series)):
            higher = (f"{series[:-1]}{level}", ALL)
            if higher not in told:
                told[higher] = read_seen(db, *higher)
            known = (one for one in told[higher].values() if one.get(series, 0) < number)
            vector = {**next(known, {}), **vector}
        known_data = said.get((series, number, mark))
        if known_data is None:
            known_data = json.loads(decode(data)) if data else {}
        op = Op(series, number, mark, clock, at, kind, item, vector, known_data)
        found.setdefault(item, []).append(op)
    return found


def read_seen(db: Database, series: str, upto: int, limit: int = ALL) -> dict[int, folding.Vector]:
    """Return what a device says it had seen of others, the last first, by number."""
    rows = select(db, _SEEN, (series, upto, limit))
    return {number: json.loads(decode(data)) for number, data in rows}


def is_up_to_date(db: Database) -> bool:
    """Whether nothing was done since the log was written."""
    known = read_sync(db)
    told = (known.get("logs"), known.get("seq"), known.get("used"), 0)
    return told == (_LOGS, history.journal_head(db).seq, _uses(db), db.execute(_UNLOGGED).get)


def _uses(db: Database) -> list[int]:
    """Return when a memory was last used, and how many uses there were."""
    return list(select(db, _USES)[0])


def capture(db: Database, now: int) -> list[str]:
    """Log what changed since the last time; return what differs from the log.

    Those are rows that were changed in place, which only a repair does, and what waits for its
    entities, which may be known by now.
    """
    if is_up_to_date(db):
        return []
    known = read_sync(db)
    head = history.journal_head(db).seq
    is_first = "seq" not in known or known["seq"] > head
    writer = LogWriter(db, known["device"])
    _capture_erased(db, writer, -1 if is_first else known["seq"])
    since = known.get("used", (0, 0))[0]
    rows = _ALL_ITEMS if is_first else _CHANGED_ITEMS
    ids = [row[0] for row in select(db, rows, () if is_first else (known["seq"], since))]
    rewritten = []
    for start in range(0, len(ids), BATCH):
        batch = ids[start : start + BATCH]
        rewritten += _capture_items(db, writer, batch, known["device"], is_first=is_first)
    waiting: list[str] = known.get("waiting", [])
    _capture_merges(db, writer, now, waiting)
    _capture_edges(db, writer, now, waiting)
    writer.finish()
    db.execute("DELETE FROM unlogged")
    note_captured(db, head)
    return rewritten + waiting


def note_captured(db: Database, seq: int) -> None:
    """Note that the log has what was done up to a line of the journal."""
    write_sync(db, read_sync(db) | {"seq": seq, "used": _uses(db), "logs": _LOGS})


def _capture_erased(db: Database, writer: LogWriter, since: int) -> None:
    """Log erases, for all who were told of the memory: ids and nothing else."""
    rows = select(db, _ERASED, (since,))
    # Of what an import says to be erased the classification is not known.
    rows += select(db, _BURIED, (f"classification {HIGHEST}",)) if since < 0 else []
    erased = {item: (at, detail) for item, at, detail in reversed(rows)}
    for item, (at, detail) in erased.items():
        told = detail.removeprefix("classification ")
        levels = {folding.level_of(series) for (series,) in select(db, _LEVELS, (item,))}
        db.execute(_DROP_STUBS, (item,))
        if not select(db, "SELECT 1 FROM op WHERE item = ? AND kind = 'erase'", (item,)):
            for level in sorted(levels | {int(told) if told.isdecimal() else 1}):
                writer.add(Draft(item, "erase", at, level, {}), at)


def _capture_items(
    db: Database, writer: LogWriter, ids: Sequence[str], device: str, *, is_first: bool
) -> list[str]:
    states, ops = read_states(db, ids), read_ops(db, ids, {})
    named = {key[4] for state in states.values() for key in state.links if key[3] == "item"}
    parents = {row.fields["parent"] for state in states.values() for row in state.rows}
    named |= parents - {None}
    levels: dict[str, int] = dict(select(db, _CLASSES, (to_json_ids(sorted(named)),)))
    lost = erased_parents(db, ops)
    changed = []
    rewritten = []
    for item, state in states.items():
        if not state.rows:
            continue
        folded = folding.fold(ops.get(item, ()), lost)
        drafts, is_rewritten = _changes(item, state, folded)
        _hide_parents(drafts, levels)
        drafts += _state_changes(item, state, folded, device, is_first=is_first, levels=levels)
        changed.append((folded.clock, drafts))
        if is_rewritten:
            rewritten.append(item)
    _name_entities(db, [draft for _, drafts in changed for draft in drafts], states)
    for last, drafts in changed:
        clock = last
        for draft in drafts:
            clock = max(draft.at, clock + 1)
            writer.add(draft, clock)
    return rewritten


def erased_parents(db: Database, ops: Mapping[str, Iterable[Op]]) -> set[str]:
    """Return the parents that memories name and that were erased here."""
    every = (op for found in ops.values() for op in found if op.kind in ("rev", "parent"))
    named = {op.data.get("set", op.data).get("parent") for op in every} - {None}
    return history.erased_of(db, sorted(named))


def _changes(item: str, state: State, folded: Folded) -> tuple[list[Draft], bool]:
    """Return the operations that lead from what the log makes of a memory to its rows."""
    count = len(folded.rows)
    same = count <= len(state.rows) and all(
        one.fields == other.fields and one.live_from == other.live_from
        for one, other in zip(folded.rows, state.rows, strict=False)
    )
    if not same:
        last = state.rows[-1]
        if count and folded.rows[-1].fields == last.fields:
            return _ends(item, last, folded, count), True
        draft = Draft(item, "rev", last.live_from, _level(last), {"set": last.fields})
        return [draft, *_ends(item, last, folded, count)], True
    drafts: list[Draft] = []
    status = folded.rows[-1].status if count else "active"
    before = state.rows[count - 2] if count > 1 else None
    for place in range(max(count - 1, 0), len(state.rows)):
        row = state.rows[place]
        if place >= count:
            drafts += _revision(item, row, before)
        following = state.rows[place + 1 :]
        until = following[0].live_from if following else None
        for at, one in state.statuses:
            is_known = (at, one) in folded.statuses
            if at >= row.live_from and (until is None or at < until) and not is_known:
                drafts.append(Draft(item, "status", at, _level(row), {"status": one}))
                status = one
        if status != row.status:
            at = max([row.live_from, *(one.at for one in drafts)])
            drafts.append(Draft(item, "status", at, _level(row), {"status": row.status}))
            status = row.status
        is_over = place < count and folded.rows[place].live_to is not None
        if row.live_to is not None and row.ended_by != "revised" and not is_over:
            drafts.append(Draft(item, "end", row.live_to, _level(row), {"how": row.ended_by}))
        before = row
    return drafts, False


def _ends(item: str, last: FoldedRow, folded: Folded, count: int) -> list[Draft]:
    """Return the status and the end of a row that was changed in place."""
    drafts = []
    if last.status != (folded.rows[-1].status if count else "active"):
        data = {"status": last.status}
        drafts.append(Draft(item, "status", last.live_from, _level(last), data))
    is_live = not count or folded.rows[-1].live_to is None
    if last.live_to is not None and is_live:
        data = {"how": last.ended_by or "forgotten"}
        drafts.append(Draft(item, "end", last.live_to, _level(last), data))
    return drafts


def _hide_parents(drafts: list[Draft], levels: Mapping[str, int]) -> None:
    """Tell the parent of a memory only to those who may know of it."""
    for place, draft in enumerate(drafts):
        parent = draft.data.get("set", {}).get("parent") or ""
        if levels.get(parent, 0) > draft.level:
            said = draft.data | {"set": draft.data["set"] | {"parent": None}}
            drafts[place] = draft._replace(data=said)
            hidden = {"parent": parent}
            drafts.append(Draft(draft.item, "parent", draft.at, levels[parent], hidden))


def _level(row: FoldedRow) -> int:
    return int(row.fields["classification"])


def _revision(item: str, row: FoldedRow, before: FoldedRow | None) -> list[Draft]:
    """Return a revision by what it changes, and what those learn who may no longer see it."""
    level = _level(row)
    if before is None:
        said = {
            name: value
            for name, value in row.fields.items()
            if name not in folding.DEFAULTS or value != folding.DEFAULTS[name]
        }
        return [Draft(item, "rev", row.live_from, level, {"set": said})]
    changed = {name for name, value in row.fields.items() if value != before.fields[name]}
    if changed & {"text", "fingerprint"}:
        changed |= TEXT_FIELDS
    if level < _level(before):  # all of it, for those who did not see what it was before
        whole = {"set": row.fields, "changed": sorted(changed)}
        return [Draft(item, "rev", row.live_from, level, whole)]
    data: Json = {"set": {name: row.fields[name] for name in sorted(changed)}}
    if "tags" in changed:
        old, new = json.loads(before.fields["tags"]), json.loads(row.fields["tags"])
        added = [one for one in new if one not in old]
        kept = [one for one in old if one in new]
        if kept + added == new:
            del data["set"]["tags"]
            data["delta"] = {"tags": [added, [one for one in old if one not in new]]}
    drafts = [Draft(item, "rev", row.live_from, level, data)]
    if level > _level(before):
        drafts.append(Draft(item, "withdraw", row.live_from, _level(before), {}))
    return drafts


def _state_changes(
    item: str,
    state: State,
    folded: Folded,
    device: str,
    *,
    is_first: bool,
    levels: Mapping[str, int],
) -> list[Draft]:
    """Return the operations on what is not in the rows: links, keys, uses."""
    level, at = _level(state.rows[-1]), state.rows[-1].live_from
    drafts = []
    said: dict[int, Json] = {}  # of each classification: what its readers are told
    for key, values in state.links.items():
        if list(folded.links.get(key, ())) != values:
            target = max(level, levels.get(key[4], 0)) if key[3] == "item" else level
            said.setdefault(target, {"add": []})["add"].append([*key, values])
    for key in folded.links.keys() - state.links.keys():
        for target in folded.link_levels[key]:
            said.setdefault(target, {"add": []}).setdefault("drop", []).append(list(key))
    for target, data in sorted(said.items()):
        for name in data:
            data[name].sort(key=lambda link: link[:6])
        moment = max([at, *(link[6][4] for link in data["add"])])
        drafts.append(Draft(item, "link", moment, target, data))
    keys = [[key, *rest] for key, rest in state.keys.items() if key not in folded.keys]
    if keys:
        drafts.append(Draft(item, "key", at, level, {"keys": keys}))
    use = Draft(item, "use", at, level, {})
    return drafts + _use(use, state, folded, device, is_first=is_first)


def _use(draft: Draft, state: State, folded: Folded, device: str, *, is_first: bool) -> list[Draft]:
    """Return how often this device has recalled a memory, where that has changed."""
    if not state.use:
        return []
    if is_first:
        return [draft._replace(data=state.use | {"base": True})] if not folded.uses else []
    others = folding.sum_uses(use for name, use in folded.uses.items() if name != device)
    days = {
        day: count - others["days"].get(day, 0)
        for day, count in state.use["days"].items()
        if count > others["days"].get(day, 0)
    }
    recalls = state.use["recalls"] - others["recalls"]
    own = {"recalls": recalls, "days": days, "stamps": state.use["stamps"]}
    known = folded.uses.get(device, {"recalls": 0})
    return [draft._replace(data=own)] if recalls > known["recalls"] else []


def _name_entities(db: Database, drafts: Iterable[Draft], states: Mapping[str, State]) -> None:
    """Add to the operations that link entities the names that the memory itself tells.

    A name that another memory tells comes with that one, and is erased with it.
    """
    linking = [(draft, draft.data["add"]) for draft in drafts if draft.kind == "link"]
    ends = [(draft, entities_of(tuple(key) for key in added)) for draft, added in linking]
    for level in {draft.level for draft, _ in ends}:
        found = [one for one in ends if one[0].level == level]
        known = read_entities(db, {end for _, named in found for end in named}, ceiling=level)
        for draft, named in found:
            text = fold_case("\n".join(row.fields["text"] for row in states[draft.item].rows))
            for end in sorted(named & known.keys()):
                kind, (name, *aliases) = known[end].kind, (known[end].name, *known[end].aliases)
                is_own = known[end].mentions == 1
                told = [one for one in aliases if is_own or one in text]
                name = name if is_own or normalise_alias(name) in text else ""
                draft.data.setdefault("entities", {})[end] = [kind, name, told]


def _capture_merges(db: Database, writer: LogWriter, now: int, waiting: Collection[str]) -> None:
    """Log merges and splits of entities, under the name of the one that is gone."""
    by_entity = read_merges(db)
    logged = folding.resolve_merges(op for ops in by_entity.values() for op in ops)
    effective = {(gone, kept): at for gone, kept, at in select(db, SELECT_MERGES)}
    changes = [("merge", *ends, at) for ends, at in effective.items() if ends not in logged]
    here = to_json_ids(sorted({end for ends in logged for end in ends}))
    known = {row[0] for row in select(db, EXISTING, (here,))} if logged else set()
    changes += [
        ("split", *logged[ends], now)
        for ends, (gone, _) in logged.items()
        if ends not in effective and known.issuperset(ends) and f"={gone}" not in waiting
    ]
    for kind, gone, kept, at in changes:
        level = max(int(db.execute(_LEAST_LEVEL, (end,)).get) for end in (gone, kept))
        clock = max([at, *(op.clock + 1 for op in by_entity.get(f"={gone}", ()))])
        writer.add(Draft(f"={gone}", kind, at, level, {"kept": kept}), clock)


def _capture_edges(db: Database, writer: LogWriter, now: int, waiting: Collection[str]) -> None:
    """Log the relations between entities that no memory states, and those that are gone."""
    ops = read_edge_ops(db)
    here = {_edge_mark(key): (key, values) for key, values in read_edges(db).items()}
    logged = folding.resolve_edges(ops)
    clocks = {item: max(op.clock for op in found) for item, found in ops.items()}
    ends = to_json_ids(sorted(entities_of(key for key, _ in logged.values())))
    known = {row[0] for row in select(db, EXISTING, (ends,))} if logged else set()
    gone = {
        item: {op.level for op in ops[item]}
        for item, (key, _) in logged.items()
        if item not in here and item not in waiting and known.issuperset(entities_of([key]))
    }
    for item, series, clock in select(db, _STUBS_OF_EDGES):
        gone.setdefault(item, set()).add(folding.level_of(series))
        clocks[item] = max(clock, clocks.get(item, 0))
        db.execute(_DROP_STUBS, (item,))
    drafts = [Draft(one, "edge", now, level, {}) for one in gone for level in sorted(gone[one])]
    for item, (key, values) in here.items():
        if item in gone or logged.get(item) != (key, values):
            level = max(int(db.execute(_LEAST_LEVEL, (end,)).get) for end in (key[1], key[4]))
            drafts.append(Draft(item, "edge", values[4], level, {"add": [*key, values]}))
    for draft in drafts:
        clocks[draft.item] = max(draft.at, clocks.get(draft.item, 0) + 1)
        writer.add(draft, clocks[draft.item])


def _edge_mark(key: LinkKey) -> str:
    return folding.EDGE + hashlib.blake2b(dumps(key).encode(), digest_size=16).hexdigest()


class LogWriter:
    """Appends operations to the series of this device."""

    def __init__(self, db: Database, device: str) -> None:
        self._db, self._device = db, device
        self._vector = vector(db)
        self._seen: dict[int, int] = {}
        self._rows: list[Sequence[Any]] = []
        self._last: dict[str, int] = {}

    def add(self, draft: Draft, clock: int) -> None:
        """Append an operation."""
        series = f"{self._device}.{draft.level}"
        if draft.kind == "use":
            self._db.execute(_DROP_OLD_USE, (draft.item, series))
        for level in range(draft.level, HIGHEST + 1):
            if level not in self._seen:
                self._tell_seen(level, is_due=level == draft.level)
        self._append(series, clock, draft, self._seen[draft.level])
        if len(self._rows) >= BATCH:
            self._write()

    def _tell_seen(self, level: int, *, is_due: bool) -> None:
        """Append what this device has seen of others, unless the last one says the same.

        The series above tell it, too: what is below them does not say what was seen there.
        """
        series = f"{self._device}.{level}"
        upto = {**self._vector, **self._last}
        seen = {
            name: upto[name] for name in upto if folding.level_of(name) <= level and name != series
        }
        known = read_seen(self._db, series, ALL, 1)
        number = next(iter(known), 0)
        told, others = (
            {
                name: one[name]
                for name in one
                if name.partition(".")[0] != self._device
                and (is_due or folding.level_of(name) == level)
            }
            for one in (known.get(number, {}), seen)
        )
        if others != told:
            number = self._append(series, 0, Draft("", "seen", 0, level, seen), 0)
        if is_due or others != told:
            self._seen[level] = number

    def _append(self, series: str, clock: int, draft: Draft, seen: int) -> int:
        number = self._last.get(series, self._vector.get(series, 0)) + 1
        self._last[series] = number
        mark = hashlib.blake2b(dumps([*draft[:3], draft.data]).encode(), digest_size=8).hexdigest()
        row = (series, number, mark, clock, draft.at, draft.kind, draft.item, seen)
        self._rows.append((*row, encode(dumps(draft.data))))
        return number

    def _write(self) -> None:
        self._db.executemany(ADD_OP, self._rows)
        self._rows = []

    def finish(self) -> None:
        """Write what is left, and up to where the log now goes."""
        self._write()
        self._db.executemany(SET_UPTO, list(self._last.items()))
