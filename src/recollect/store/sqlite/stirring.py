"""What goes on around entities: their momentum, and a list of them, the liveliest first."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import apsw

from recollect.heat import QUIET_AFTER, Happenings, is_stale, momentum
from recollect.model import Entity
from recollect.ports import Activity, Listing, Momentum
from recollect.store.sqlite.clock import DAY_MS, from_ms, from_ms_or_none, to_ms
from recollect.store.sqlite.connection import select
from recollect.store.sqlite.graph import ENTITY, alias_form, to_entity
from recollect.store.sqlite.past import LAST_SEEN, MOMENT, is_past
from recollect.store.sqlite.terms import as_table
from recollect.store.sqlite.usage import activity

DAY_S = 86_400.0
YEAR_DAYS = 365.25
# With so many entities stirring, what was worked out before has to do for the others.
MOST_WORKED_OUT = 5_000
# A week without news is always worth the same: no need to look.
_QUIET = momentum(Happenings(), 1.0)

_STANDING = "e.id, e.mentions, e.momentum, e.momentum_at, e.last_seen_at"
_OF = f"""
    SELECT {_STANDING} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= ?
"""
_OF_THEN = f"{MOMENT} {_OF.replace('e.last_seen_at', LAST_SEEN)}"
# How many live memories above a classification mention each entity: seldom many.
_HIDDEN = """
    WITH hidden (entity, times) AS MATERIALIZED (
        SELECT l.dst, count(*) FROM item AS i
        CROSS JOIN link AS l ON l.src = i.id AND l.type = 'mentions'
            AND l.src_kind = 'item' AND l.dst_kind = 'entity'
        WHERE i.live_to IS NULL AND i.classification > ? GROUP BY l.dst
    )
"""
_LISTED = (
    "e.id, e.mentions - coalesce(h.times, 0) AS seen, e.momentum, e.momentum_at, e.last_seen_at"
)
_FROM = "entity AS e LEFT JOIN hidden AS h ON h.entity = e.id"
# Not one that no memory which may be seen speaks of, and a secret one does or did.
_VISIBLE = """
    (seen > 0 OR NOT EXISTS (
        SELECT 1 FROM link AS l CROSS JOIN item AS i ON i.id = l.src AND i.classification > ?
        WHERE l.dst = e.id AND l.type = 'mentions' AND l.src_kind = 'item'
    ))
"""
_BY_ID = f"SELECT {ENTITY} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
_LAYERS = """
    SELECT l.dst, i.layer, count(*), sum(i.pinned) FROM carray(?) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL AND i.classification <= ?
    GROUP BY l.dst, i.layer ORDER BY l.dst, i.layer
"""
_SET = "UPDATE entity SET momentum = ?, momentum_at = ? WHERE id = ?"


class Standing(NamedTuple):
    """What an entity's row knows of how things go."""

    id: str
    mentions: int
    momentum: float
    momentum_at: int | None
    last_seen_at: int | None


class Counts(NamedTuple):
    """How many memories of an entity lie in each layer, and how many are pinned."""

    layers: tuple[tuple[str, int], ...] = ()
    pinned: int = 0


def momenta(db: apsw.Connection, ids: Sequence[str], now: datetime) -> dict[str, Momentum]:
    """The momentum of each entity: as it was worked out within the hour, else anew."""
    if not ids:
        return {}
    at, asked = to_ms(now), as_table(tuple(dict.fromkeys(ids)))
    rows = (
        select(db, _OF_THEN, (at, asked, at)) if is_past(db, at) else select(db, _OF, (asked, at))
    )
    return _momenta(db, [Standing(*row) for row in rows], now)


def set_momenta(db: apsw.Connection, values: Mapping[str, float], now: datetime) -> None:
    """Keeps what was worked out."""
    at = to_ms(now)
    db.executemany(_SET, [(value, at, entity) for entity, value in sorted(values.items())])


def listed(db: apsw.Connection, wanted: Listing, now: datetime) -> list[Entity]:
    """Entities by what goes on, how much is known and how lately, with their counts."""
    found = [*_stirring(db, wanted, now), *_quiet(db, wanted, now)]
    going_on = _momenta(db, found, now)
    ranked = sorted(found, key=lambda one: (-_worth(one, going_on[one.id].value, now), one.id))
    page = {one.id: one for one in ranked[wanted.offset : wanted.offset + wanted.limit]}
    if not page:
        return []
    rows = select(db, _BY_ID, (as_table(tuple(page)),))
    entities = {row[0]: to_entity(row) for row in rows}
    counts = _counts(db, tuple(page), wanted.max_classification)
    return [
        entities[key]._replace(
            mentions=one.mentions, momentum=going_on[key].value, **counts[key]._asdict()
        )
        for key, one in page.items()
    ]


def _stirring(db: apsw.Connection, wanted: Listing, now: datetime) -> list[Standing]:
    """Those that came up in the last week, the latest first."""
    where, values = _wanted(wanted)
    sql = f"""
        {_HIDDEN} SELECT {_LISTED} FROM {_FROM} WHERE {where} AND e.last_seen_at >= ?
        ORDER BY e.last_seen_at DESC, e.id
    """
    return [Standing(*row) for row in select(db, sql, (*values, to_ms(now - QUIET_AFTER)))]


def _quiet(db: apsw.Connection, wanted: Listing, now: datetime) -> list[Standing]:
    """Of the others, whose momentum is all the same, as many as could be on the page."""
    where, values = _wanted(wanted)
    sql = f"""
        {_HIDDEN} SELECT {_LISTED} FROM {_FROM}
        WHERE {where} AND coalesce(e.last_seen_at, 0) < ?
        ORDER BY 0.5 * seen + 2.0 * coalesce(e.last_seen_at, 0) / ? DESC, e.id LIMIT ?
    """
    rest = (to_ms(now - QUIET_AFTER), YEAR_DAYS * DAY_MS, wanted.offset + wanted.limit)
    return [Standing(*row) for row in select(db, sql, (*values, *rest))]


def _wanted(wanted: Listing) -> tuple[str, list[int | str]]:
    """The condition on entities, and its values, the hidden ones' first."""
    ceiling = wanted.max_classification
    where = ["seen >= ?", _VISIBLE]
    values: list[int | str] = [ceiling, wanted.min_memories, ceiling]
    start = alias_form(wanted.prefix)
    if wanted.kinds:
        where.append("e.kind IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(wanted.kinds))
    if start:
        where.append("e.id IN (SELECT entity FROM alias WHERE alias >= ? AND alias < ?)")
        # The last character there is: all that begins so comes before it.
        values += [start, f"{start}\U0010ffff"]
    return " AND ".join(where), values


def _momenta(
    db: apsw.Connection, entities: Iterable[Standing], now: datetime
) -> dict[str, Momentum]:
    found: dict[str, Momentum] = {}
    stirring: list[Standing] = []
    for one in entities:
        seen = from_ms_or_none(one.last_seen_at)
        if seen is None or now - seen > QUIET_AFTER:
            found[one.id] = Momentum(_QUIET, worked_out=one.momentum != _QUIET)
        elif not is_stale(from_ms_or_none(one.momentum_at), seen, now):
            found[one.id] = Momentum(one.momentum)
        else:
            stirring.append(one)
    lately = activity(db, [one.id for one in stirring[:MOST_WORKED_OUT]], now)
    for one in stirring:
        known = lately.get(one.id)
        found[one.id] = (
            Momentum(_worked_out(known, now), worked_out=True) if known else Momentum(one.momentum)
        )
    return found


def _worked_out(seen: Activity, now: datetime) -> float:
    observed = (now - (seen.first_at or now)).total_seconds() / DAY_S
    happened = Happenings(seen.in_1_day, seen.in_7_days, seen.in_all)
    return momentum(happened, observed, seen.mean_importance)


def _worth(one: Standing, momentum_now: float, now: datetime) -> float:
    """What its place in a list goes by: 10 × momentum, half a point a memory, less two
    points for every year since it last came up."""
    years = (now - from_ms(one.last_seen_at or 0)).total_seconds() / DAY_S / YEAR_DAYS
    return 10.0 * momentum_now + 0.5 * one.mentions - 2.0 * years


def _counts(db: apsw.Connection, ids: Sequence[str], ceiling: int) -> dict[str, Counts]:
    counts = dict.fromkeys(ids, Counts())
    for entity, layer, count, pins in select(db, _LAYERS, (as_table(tuple(ids)), ceiling)):
        layers, pinned = counts[entity]
        in_layer = () if layer is None else ((layer, count),)
        counts[entity] = Counts((*layers, *in_layer), pinned + pins)
    return counts
