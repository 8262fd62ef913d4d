"""Memories as their tables hold them, in the form in which operations are made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.store.sql.connection import Database, select
from bethink.store.sql.oplog.fold import MERGED, OWN_FIELDS, FoldedRow, LinkKey
from bethink.store.sql.sql_functions import to_json_ids

# What follows from a text: who changes the text changes all of it.
TEXT_FIELDS = frozenset({
    "text", "about", "original", "caption", "language", "subject", "attribute", "entities",
    "tokens", "fingerprint", "sketch",
})  # fmt: skip

_SELECT_ROWS = f"""
    SELECT i.id, i.live_from, i.live_to, i.ended_by, i.status, i.rid,
        (SELECT json_group_array(band ORDER BY band) FROM sketch WHERE rid = i.rid),
        {", ".join(f"i.{name}" for name in OWN_FIELDS)}
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
        fields = dict(zip(OWN_FIELDS, values, strict=True))
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
    if values[3].startswith(f"{MERGED}:") or key[2] == MERGED:
        return  # a merge made it
    if key[2] == "mentioned" and values[2] == MERGED:
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
