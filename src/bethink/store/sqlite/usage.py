"""Usage of memories, their decay by ticks, and the momentum of entities.

A tick takes the same amount from every memory, so no row is updated when one is
written: how far a memory has decayed is the sum of the ticks since its last recall
(``DECAY``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.model import Entity
from bethink.ports import Activity, EntityListing, Momentum, Usage, UsageDecay
from bethink.retrieval.heat import QUIET_AFTER, ActivityCounts, is_stale, momentum
from bethink.store.sqlite.db.connection import Row, select
from bethink.store.sqlite.db.history import (
    AS_OF_CTE,
    LAST_SEEN,
    MENTION_LINK,
    MENTIONED_AT_REVISION,
    is_past,
)
from bethink.store.sqlite.db.sql_functions import (
    DAY_MS,
    DECAY,
    USED_IN_30,
    USED_IN_90,
    USED_IN_ALL,
    USED_LAST,
    from_ms,
    from_ms_or_none,
    to_ms,
)
from bethink.store.sqlite.links import ENTITY_COLUMNS, normalise_alias, to_entity
from bethink.store.sqlite.search.lexical import as_table

_SELECT_DECAY = f"""
    SELECT i.id, {DECAY} FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value
        AND i.rev = (SELECT max(rev) FROM item WHERE id = w.value)
    LEFT JOIN usage AS u ON u.id = i.id
"""
_SELECT_DECAY_SINCE = """
    SELECT i.id, coalesce(u.decay, 1.0), coalesce(u.decay_at, i.stored_at)
    FROM carray(?) AS w
    CROSS JOIN item AS i ON i.id = w.value
        AND i.rev = (SELECT max(rev) FROM item WHERE id = w.value)
    LEFT JOIN usage AS u ON u.id = i.id
"""
_SET_DECAY = """
    INSERT INTO usage (id, decay, decay_at, regained)
        VALUES (?1, ?2, ?3, json_array(json_array(?4, ?2, ?3)))
    ON CONFLICT (id) DO UPDATE SET decay = ?2, decay_at = ?3, regained = json_insert(
        CASE WHEN json_array_length(regained) >= 20 THEN json_remove(regained, '$[0]')
        ELSE coalesce(regained, '[]') END, '$[#]', json_array(?4, ?2, ?3))
"""
_LAST_TICK = "SELECT number, at, total FROM tick ORDER BY number DESC LIMIT 1"
_INSERT_TICK = "INSERT INTO tick (number, at, amount, total) VALUES (?, ?, ?, ?)"
_COUNT_RECALL = """
    INSERT INTO meta (name, value) VALUES ('recalls', '1')
    ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value
"""


def apply_decay(db: apsw.Connection, ids: Sequence[str], now: int, fading: UsageDecay) -> None:
    """Count one recall: returned memories regain strength; every interval, a tick follows."""
    number, last, total = next(iter(select(db, _LAST_TICK)), (0, now - 1, 0.0))
    _restore_strength(db, ids, now, max(now + int(fading.grace_s * 1000), last + 1), fading)
    if fading.interval < 1:
        return
    count = int(db.execute(_COUNT_RECALL).get)
    if count % fading.interval == 0:
        # Never before the last one, even if the clock went back.
        at = max(now, last + 1)
        db.execute(_INSERT_TICK, (number + 1, at, fading.rate, total + fading.rate))


class ImportedTicks:
    """The ticks of another space, and the decay they leave on memories imported from it."""

    def __init__(self) -> None:
        self._ticks: list[tuple[int, float]] = []

    def add(self, tick: Sequence[Any]) -> None:
        """Add one tick: its number, moment, amount and total."""
        self._ticks.append((tick[1], tick[2]))

    def apply(self, db: apsw.Connection, ids: Sequence[str], now: int) -> None:
        """Store the remaining strength of each memory; only ticks from now on apply to it."""
        if not ids or not (self._ticks or select(db, _LAST_TICK)):
            return
        rows = select(db, _SELECT_DECAY_SINCE, (as_table(tuple(ids)),))
        db.executemany(
            _SET_DECAY,
            [(item, self._remaining(left, since), now, now) for item, left, since in rows],
        )

    def _remaining(self, at_first: float, since: int) -> float:
        lost = sum(amount for at, amount in self._ticks if at >= since)
        return max(0.0, round(at_first - lost, 9))


def _restore_strength(
    db: apsw.Connection, ids: Sequence[str], now: int, safe_until: int, fading: UsageDecay
) -> None:
    if not ids:
        return
    rows = select(db, _SELECT_DECAY, (as_table(tuple(dict.fromkeys(ids))),))
    db.executemany(
        _SET_DECAY,
        [
            (item, max(0.0, min(1.0, left + fading.gains.get(item, 0.0))), safe_until, now)
            for item, left in rows
        ],
    )


MAX_IMPORTANCE_SAMPLE = 200

_SELECT_USAGE = f"""
    SELECT u.id, {USED_IN_ALL}, {USED_LAST}, u.stamps, {USED_IN_30}, {USED_IN_90}
    FROM (SELECT ? AS at, ? AS day) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN usage AS u ON u.id = w.value
"""
# All mentions count, also of memories that have ended; the importance is the mean of live
# ones. Of very many only the newest are read.
_MENTION_LINK = """
    l.dst = w.value AND l.type = 'mentions' AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    AND l.created_at <= m.at
"""
# The same for a past moment, from the mentions of the revisions of then.
_SELECT_ACTIVITY_AS_OF = f"""
    {AS_OF_CTE} SELECT e.id, e.created_at, l.created_at, i.importance,
        i.live_to IS NULL OR i.live_to > m.at
    FROM m CROSS JOIN carray(?) AS w
    CROSS JOIN entity AS e ON e.id = w.value AND e.created_at <= m.at
    CROSS JOIN link AS l ON l.dst = e.id AND {MENTION_LINK}
    CROSS JOIN item AS i ON i.id = l.src AND i.rev = (
        SELECT max(r.rev) FROM item AS r WHERE r.id = l.src AND r.live_from <= m.at)
    WHERE {MENTIONED_AT_REVISION} ORDER BY e.id, l.created_at DESC
"""
_SELECT_ACTIVITY = f"""
    SELECT e.id, e.created_at,
        (SELECT count(*) FROM link AS l WHERE {_MENTION_LINK} AND l.created_at > m.at - {DAY_MS}),
        (SELECT count(*) FROM link AS l WHERE {_MENTION_LINK}
            AND l.created_at > m.at - {7 * DAY_MS} AND l.created_at <= m.at - {DAY_MS}),
        e.mentions - (SELECT count(*) FROM link AS l
            WHERE l.dst = w.value AND l.type = 'mentions' AND l.created_at > m.at),
        (SELECT avg(importance) FROM (SELECT i.importance FROM link AS l
            CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
            WHERE {_MENTION_LINK} AND l.created_at > m.at - {7 * DAY_MS}
            ORDER BY l.created_at DESC LIMIT {MAX_IMPORTANCE_SAMPLE}))
    FROM (SELECT ? AS at) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= m.at
"""


def read_usage(db: apsw.Connection, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
    """Return the usage of items; those never used are left out."""
    if not ids:
        return {}
    at = to_ms(now)
    rows = select(db, _SELECT_USAGE, (at, at // DAY_MS, as_table(tuple(dict.fromkeys(ids)))))
    return {
        item: Usage(
            recalls,
            from_ms_or_none(last),
            tuple(from_ms(stamp) for stamp in json.loads(stamps) if stamp <= at),
            month,
            quarter,
        )
        for item, recalls, last, stamps, month, quarter in rows
        if recalls
    }


def read_activity(
    db: apsw.Connection, entities: Sequence[str], now: datetime
) -> dict[str, Activity]:
    """Return how many memories were stored about each entity, and when.

    The cost is that of the last week; what came before is already counted.
    """
    if not entities:
        return {}
    at, requested = to_ms(now), as_table(tuple(dict.fromkeys(entities)))
    if is_past(db, at):
        rows = select(db, _SELECT_ACTIVITY_AS_OF, (at, requested))
        return {
            entity: _activity_as_of([_PastMention(*row) for row in seen], at)
            for entity, seen in groupby(rows, itemgetter(0))
        }
    found = {}
    for entity, first, day, rest, count, mean in select(db, _SELECT_ACTIVITY, (at, requested)):
        importance = 0.5 if mean is None else mean
        week = day + rest
        found[entity] = Activity(day, week, max(count, week), from_ms(first), importance)
    return found


class _PastMention(NamedTuple):
    """A memory that mentioned an entity as of a moment in the past; the latest come first."""

    entity: str
    first_at: int
    at: int
    importance: float
    was_there: int


def _activity_as_of(seen: Sequence[_PastMention], at: int) -> Activity:
    week = [mention for mention in seen if at - 7 * DAY_MS < mention.at <= at]
    day = sum(mention.at > at - DAY_MS for mention in week)
    importances = [mention.importance for mention in week if mention.was_there][
        :MAX_IMPORTANCE_SAMPLE
    ]
    mean = math.fsum(importances) / len(importances) if importances else 0.5
    live = sum(mention.was_there for mention in seen)
    return Activity(day, len(week), max(live, len(week)), from_ms(seen[0].first_at), mean)


YEAR_DAYS = 365.25
# For more active entities than this, the stored momentum is used.
MAX_COMPUTED = 5_000
# The momentum after a week without mentions is constant.
_DORMANT_MOMENTUM = momentum(ActivityCounts(), 1.0)

_MORE_RANKED = 10  # entities beyond the page, at first
MAX_MOMENTUM = 10.0
_ROUNDING = 1e-6
_ALL = 2**62  # more than there are

_STATE_COLUMNS = "e.id, e.mentions, e.momentum, e.momentum_at, e.last_seen_at"
_STATE_BY_ID = f"""
    SELECT {_STATE_COLUMNS} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= ?
"""
_STATE_BY_ID_AS_OF = f"{AS_OF_CTE} {_STATE_BY_ID.replace('e.last_seen_at', LAST_SEEN)}"
# How many live memories above a classification mention each entity: seldom many. ABOVE is a
# number that the index of classifications, which has those above 1, can be used for.
_HIDDEN_CTE = """
    WITH hidden (entity, times) AS MATERIALIZED (
        SELECT l.dst, count(*) FROM item AS i
        CROSS JOIN link AS l ON l.src = i.id AND l.type = 'mentions'
            AND l.src_kind = 'item' AND l.dst_kind = 'entity'
        WHERE i.live_to IS NULL AND i.classification > ABOVE AND i.classification > ? GROUP BY l.dst
    )
"""
_LISTING_COLUMNS = (
    "e.id, e.mentions - coalesce(h.times, 0) AS seen, e.momentum, e.momentum_at, e.last_seen_at"
)
_LISTING_FROM = "entity AS e LEFT JOIN hidden AS h ON h.entity = e.id"
# Hide an entity that only memories of higher classification mention.
_IS_VISIBLE = """
    (seen > 0 OR NOT EXISTS (
        SELECT 1 FROM link AS l CROSS JOIN item AS i ON i.id = l.src AND i.classification > ?
        WHERE l.dst = e.id AND l.type = 'mentions' AND l.src_kind = 'item'
    ))
"""
_ENTITIES_BY_ID = (
    f"SELECT {ENTITY_COLUMNS} FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value"
)
# Only memories with a layer and pinned ones are counted; there is an index of these alone.
_IS_LAYERED = (
    "i.live_to IS NULL AND (i.layer IS NOT NULL OR i.pinned = 1)"
    " AND CASE WHEN i.layer IS NULL THEN i.pinned ELSE 1 END = 1"
)
_COUNT_LAYERS = f"""
    SELECT l.dst, i.layer, count(*), sum(i.pinned) FROM carray(?) AS w
    CROSS JOIN link AS l ON l.dst = w.value AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    CROSS JOIN item AS i ON i.id = l.src AND {_IS_LAYERED} AND i.classification <= ?
    GROUP BY l.dst, i.layer ORDER BY l.dst, i.layer
"""
# Where these are few, their links are fewer than those of the entities.
_COUNT_LAYERS_OF_FEW = f"""
    SELECT l.dst, i.layer, count(*), sum(i.pinned) FROM item AS i
    CROSS JOIN link AS l ON l.src = i.id AND l.type = 'mentions'
        AND l.src_kind = 'item' AND l.dst_kind = 'entity'
    WHERE {_IS_LAYERED} AND l.dst IN (SELECT value FROM json_each(?)) AND i.classification <= ?
    GROUP BY l.dst, i.layer ORDER BY l.dst, i.layer
"""
_FEW_LAYERED = 2_000
_COUNT_LAYERED = f"SELECT count(*) FROM (SELECT 1 FROM item AS i WHERE {_IS_LAYERED} LIMIT ?) AS c"
_SET_MOMENTUM = "UPDATE entity SET momentum = ?, momentum_at = ? WHERE id = ?"


class EntityState(NamedTuple):
    """The momentum columns of an entity's row."""

    id: str
    mentions: int
    momentum: float
    momentum_at: int | None
    last_seen_at: int | None


class EntityCounts(NamedTuple):
    """How many memories of an entity are in each layer, and how many are pinned."""

    layers: tuple[tuple[str, int], ...] = ()
    pinned: int = 0


def read_momenta(db: apsw.Connection, ids: Sequence[str], now: datetime) -> dict[str, Momentum]:
    """Return the momentum of each entity: the stored one if recent, else computed."""
    if not ids:
        return {}
    at, requested = to_ms(now), as_table(tuple(dict.fromkeys(ids)))
    rows = (
        select(db, _STATE_BY_ID_AS_OF, (at, requested, at))
        if is_past(db, at)
        else select(db, _STATE_BY_ID, (requested, at))
    )
    return _compute_momenta(db, [EntityState(*row) for row in rows], now)


def write_momenta(db: apsw.Connection, values: Mapping[str, float], now: datetime) -> None:
    """Store computed momenta."""
    at = to_ms(now)
    db.executemany(_SET_MOMENTUM, [(value, at, entity) for entity, value in sorted(values.items())])


def rank_entities(db: apsw.Connection, listing: EntityListing, now: datetime) -> list[Entity]:
    """Return entities by momentum, number of memories and recency, with their counts."""
    momenta: dict[str, Momentum] = {}
    found = _best_entities(db, listing, now, momenta, recent=True)
    scores = sorted(_rank_score(state, momenta[state.id].value, now) for state in found)
    wanted = listing.offset + listing.limit
    # What was quiet for a week needs so many mentions to come before these.
    lowest = scores[-wanted] if 0 < wanted <= len(scores) else 0.0
    least = int(max(0.0, 2.0 * (lowest - 10.0 * _DORMANT_MOMENTUM - _ROUNDING)))
    found += _best_entities(db, listing, now, momenta, recent=False, least=least)
    ranked = sorted(
        found, key=lambda state: (-_rank_score(state, momenta[state.id].value, now), state.id)
    )
    page = {state.id: state for state in ranked[listing.offset : listing.offset + listing.limit]}
    if not page:
        return []
    rows = select(db, _ENTITIES_BY_ID, (as_table(tuple(page)),))
    entities = {row[0]: to_entity(row) for row in rows}
    counts = _count_layers(db, tuple(page), listing.max_classification)
    return [
        entities[key]._replace(
            mentions=state.mentions, momentum=momenta[key].value, **counts[key]._asdict()
        )
        for key, state in page.items()
    ]


def _best_entities(
    db: apsw.Connection,
    listing: EntityListing,
    now: datetime,
    momenta: dict[str, Momentum],
    *,
    recent: bool,
    least: int = 0,
) -> list[EntityState]:
    """Return as many entities as could be on the page: those of the last week, or the others.

    Those with fewer mentions than ``least`` are left out; the momenta of the others are added.
    The most mentioned come first, until no momentum could bring a further one onto the page.
    """
    wanted = listing.offset + listing.limit
    count = wanted + _MORE_RANKED
    highest = MAX_MOMENTUM if recent else _DORMANT_MOMENTUM
    while True:
        rows = _most_mentioned(db, listing, now, (least, count), recent=recent)
        found = [EntityState(*row[1:]) for row in rows]
        unknown = [state for state in found if state.id not in momenta]
        momenta |= _compute_momenta(db, unknown, now)
        scores = sorted(_rank_score(state, momenta[state.id].value, now) for state in found)
        if len(found) < count or not wanted or count == _ALL:
            return found
        if scores[-wanted] > 10.0 * highest + 0.5 * rows[-1][0] + _ROUNDING:
            return found
        count = 4 * count if count < MAX_COMPUTED else _ALL


def _most_mentioned(
    db: apsw.Connection,
    listing: EntityListing,
    now: datetime,
    bounds: tuple[int, int],
    *,
    recent: bool,
) -> list[Row]:
    """Return the mentions and the state of entities, the most mentioned first.

    Of those with at least so many mentions at most so many.
    """
    where, values = _listing_condition(listing)
    seen = "e.last_seen_at >= ?" if recent else "coalesce(e.last_seen_at, 0) < ?"
    sql = f"""
        {_hidden_cte(listing)} SELECT e.mentions, {_LISTING_COLUMNS} FROM {_LISTING_FROM}
        WHERE {where} AND {seen} AND e.mentions >= ? ORDER BY e.mentions DESC LIMIT ?
    """
    return select(db, sql, (*values, to_ms(now - QUIET_AFTER), *bounds))


def _hidden_cte(listing: EntityListing) -> str:
    return _HIDDEN_CTE.replace("ABOVE", str(min(int(listing.max_classification), 1)))


def _listing_condition(listing: EntityListing) -> tuple[str, list[int | str]]:
    """Return the condition on entities and its values, those of the hidden CTE first."""
    ceiling = listing.max_classification
    where = ["seen >= ?", _IS_VISIBLE]
    values: list[int | str] = [ceiling, listing.min_memories, ceiling]
    start = normalise_alias(listing.prefix)
    if listing.kinds:
        where.append("e.kind IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(listing.kinds))
    if start:
        where.append("e.id IN (SELECT entity FROM alias WHERE alias >= ? AND alias < ?)")
        # The last Unicode character: every name with this prefix sorts before it.
        values += [start, f"{start}\U0010ffff"]
    return " AND ".join(where), values


def _compute_momenta(
    db: apsw.Connection, entities: Iterable[EntityState], now: datetime
) -> dict[str, Momentum]:
    found: dict[str, Momentum] = {}
    outdated: list[EntityState] = []
    for state in entities:
        seen = from_ms_or_none(state.last_seen_at)
        if seen is None or now - seen > QUIET_AFTER:
            found[state.id] = Momentum(
                _DORMANT_MOMENTUM, recomputed=state.momentum != _DORMANT_MOMENTUM
            )
        elif not is_stale(from_ms_or_none(state.momentum_at), seen, now):
            found[state.id] = Momentum(state.momentum)
        else:
            outdated.append(state)
    activity = read_activity(db, [state.id for state in outdated[:MAX_COMPUTED]], now)
    for state in outdated:
        known = activity.get(state.id)
        found[state.id] = (
            Momentum(_momentum_of(known, now), recomputed=True)
            if known
            else Momentum(state.momentum)
        )
    return found


def _momentum_of(seen: Activity, now: datetime) -> float:
    observed = (now - (seen.first_at or now)).total_seconds() / DAY_S
    counts = ActivityCounts(seen.in_1_day, seen.in_7_days, seen.in_all)
    return momentum(counts, observed, seen.mean_importance)


def _rank_score(state: EntityState, momentum_now: float, now: datetime) -> float:
    """Return the list rank: 10 × momentum, 0.5 a memory, minus 2 for every year unseen."""
    years = (now - from_ms(state.last_seen_at or 0)).total_seconds() / DAY_S / YEAR_DAYS
    return 10.0 * momentum_now + 0.5 * state.mentions - 2.0 * years


def _count_layers(db: apsw.Connection, ids: Sequence[str], ceiling: int) -> dict[str, EntityCounts]:
    counts = dict.fromkeys(ids, EntityCounts())
    few = int(db.execute(_COUNT_LAYERED, (_FEW_LAYERED + 1,)).get) <= _FEW_LAYERED
    rows = (
        select(db, _COUNT_LAYERS_OF_FEW, (json.dumps(list(ids)), ceiling))
        if few
        else select(db, _COUNT_LAYERS, (as_table(tuple(ids)), ceiling))
    )
    for entity, layer, count, pins in rows:
        layers, pinned = counts[entity]
        in_layer = () if layer is None else ((layer, count),)
        counts[entity] = EntityCounts((*layers, *in_layer), pinned + pins)
    return counts
