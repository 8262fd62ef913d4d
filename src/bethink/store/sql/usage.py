"""Usage of memories, their decay by ticks, and the momentum of entities.

A tick takes the same amount from every memory, so no row is updated when one is
written: how far a memory has decayed is the sum of the ticks since its last recall
(``DECAY``).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.model import Entity
from bethink.ports import EntityListing, PriorUse, Usage, UsageDecay
from bethink.retrieval.heat import QUIET_AFTER, ActivityCounts, momentum
from bethink.store.sql import history
from bethink.store.sql.connection import Database, as_table, read_ahead, select
from bethink.store.sql.links import count_layers, normalise_alias, read_entities
from bethink.store.sql.sql_functions import (
    DAY_MS,
    DECAY,
    USED_IN_30,
    USED_IN_90,
    USED_IN_ALL,
    USED_LAST,
    from_ms,
    from_ms_or_none,
    to_json_ids,
    to_ms,
)

_WITH_USE = f"{history.LAST_REVISIONS} LEFT JOIN usage AS u ON u.id = i.id"
_SELECT_DECAY = f"SELECT i.id, {DECAY}, u.regained {_WITH_USE}"
_SELECT_DECAY_SINCE = f"""
    SELECT i.id, coalesce(u.decay, 1.0), coalesce(u.decay_at, i.stored_at), u.regained {_WITH_USE}
"""
SET_USE = """
    INSERT INTO usage (id, recalls, last_at, stamps) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET recalls = excluded.recalls, last_at = excluded.last_at,
        stamps = excluded.stamps
"""
_SET_DECAY = """
    INSERT INTO usage (id, decay, decay_at, regained) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET decay = excluded.decay, decay_at = excluded.decay_at,
        regained = excluded.regained
"""
_MAX_KEPT = 20  # times of use, and of regained strength
_LAST_TICK = "SELECT number, at, total FROM tick ORDER BY number DESC LIMIT 1"
_INSERT_TICK = "INSERT INTO tick (number, at, amount, total) VALUES (?, ?, ?, ?)"
_COUNT_RECALL = """
    INSERT INTO meta (name, value) VALUES ('recalls', '1')
    ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT)
    RETURNING value
"""


def append_json(stored: str | None, entry: object) -> str:
    """Return a list, as JSON, with one more entry; of many the last are kept."""
    return json.dumps([*json.loads(stored or "[]"), entry][-_MAX_KEPT:], separators=(",", ":"))


def apply_decay(db: Database, ids: Sequence[str], now: int, fading: UsageDecay) -> None:
    """Count one recall: returned memories regain strength; every interval, a tick follows."""
    read_ahead(db, (_LAST_TICK, ()), (_SELECT_DECAY, (to_json_ids(ids),)))
    count = int(db.execute(_COUNT_RECALL).get) if fading.interval >= 1 else 0
    number, last, total = next(iter(select(db, _LAST_TICK)), (0, now - 1, 0.0))
    _restore_strength(db, ids, now, max(now + int(fading.grace_s * 1000), last + 1), fading)
    if fading.interval >= 1 and count % fading.interval == 0:
        # Never before the last one, even if the clock went back.
        at = max(now, last + 1)
        db.execute(_INSERT_TICK, (number + 1, at, fading.rate, total + fading.rate))


_INSERT_PRIOR_USE = """
    INSERT OR IGNORE INTO usage (id, recalls, last_at, stamps, decay, decay_at, regained)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_PRIOR_DAY = "INSERT OR IGNORE INTO usage_day (id, day, recalls) VALUES (?, ?, ?)"


def insert_prior_use(db: Database, uses: Mapping[str, PriorUse], now: int) -> None:
    """Insert the usage of memories that have none; the recalls without a time are the first."""
    for item, use in uses.items():
        times = sorted(min(to_ms(at), now) for at in (use.stamps or (use.last_at,)) if at)
        recalls, last = max(use.recalls, len(times)), max(times, default=None)
        strength = (use.decay, now, json.dumps([[now, use.decay, now]]))
        db.execute(_INSERT_PRIOR_USE, (item, recalls, last, json.dumps(times[-20:]), *strength))
        if db.changes() and times:
            days = Counter(at // DAY_MS for at in times)
            days[times[0] // DAY_MS] += recalls - len(times)
            db.executemany(_INSERT_PRIOR_DAY, [(item, day, n) for day, n in days.items()])


def apply_ticks(
    db: Database, ticks: Sequence[tuple[int, float]], ids: Sequence[str], now: int
) -> None:
    """Store the strength that ticks of another space (moment, amount) leave imported memories.

    Only ticks from now on apply to them.
    """
    if not ids or not (ticks or select(db, _LAST_TICK)):
        return
    rows = []
    for item, strength, since, past in select(db, _SELECT_DECAY_SINCE, (to_json_ids(ids),)):
        left = max(0.0, round(strength - sum(amount for at, amount in ticks if at >= since), 9))
        rows.append((item, left, now, append_json(past, [now, left, now])))
    db.executemany(_SET_DECAY, rows)


def _restore_strength(
    db: Database, ids: Sequence[str], now: int, safe_until: int, fading: UsageDecay
) -> None:
    if not ids:
        return
    rows = []
    for item, left, past in select(db, _SELECT_DECAY, (to_json_ids(ids),)):
        strength = max(0.0, min(1.0, left + fading.gains.get(item, 0.0)))
        regained = append_json(past, [now, strength, safe_until])
        rows.append((item, strength, safe_until, regained))
    db.executemany(_SET_DECAY, rows)


MAX_IMPORTANCE_SAMPLE = 50

_SELECT_USAGE = f"""
    SELECT u.id, {USED_IN_ALL}, {USED_LAST}, u.stamps, {USED_IN_30}, {USED_IN_90}
    FROM (SELECT ? AS at, ? AS day) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN usage AS u ON u.id = w.value
"""
# All mentions count, also of memories that have ended; the importance is the mean of live
# ones. Of very many only the newest are read.
_MENTION_LINK = f"l.dst = w.value AND {history.IS_MENTION} AND l.created_at <= m.at"
# The same for a past moment, from the mentions of the revisions of then.
_SELECT_ACTIVITY_AS_OF = f"""
    {history.AS_OF_CTE} SELECT e.id, e.created_at, l.created_at, i.importance,
        i.live_to IS NULL OR i.live_to > m.at
    FROM m CROSS JOIN carray(?) AS w
    CROSS JOIN entity AS e ON e.id = w.value AND e.created_at <= m.at
    CROSS JOIN link AS l ON l.dst = e.id AND {history.MENTION_LINK}
    CROSS JOIN item AS i ON i.id = l.src AND i.rev = (
        SELECT max(r.rev) FROM item AS r WHERE r.id = l.src AND r.live_from <= m.at)
    WHERE {history.MENTIONED_AT_REVISION} ORDER BY e.id, l.created_at DESC
"""
# Of very many mentions no more are counted here.
MAX_COUNTED = 200
_WEEK = f"l.created_at > m.at - {7 * DAY_MS}"
_SELECT_ACTIVITY = f"""
    SELECT e.id, e.created_at, e.mentions,
        (SELECT count(*) FROM link AS l
            WHERE l.dst = w.value AND l.type = 'mentions' AND l.created_at > m.at),
        (SELECT count(*) FROM (SELECT 1 FROM link AS l WHERE {_MENTION_LINK}
            AND l.created_at > m.at - {DAY_MS} LIMIT {MAX_COUNTED}) AS c),
        (SELECT count(*) FROM link AS l WHERE {_MENTION_LINK} AND {_WEEK}),
        (SELECT avg(importance) FROM (SELECT i.importance FROM link AS l
            CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL
            WHERE {_MENTION_LINK} AND {_WEEK}
            ORDER BY l.created_at DESC LIMIT {MAX_IMPORTANCE_SAMPLE}))
    FROM (SELECT ? AS at) AS m
    CROSS JOIN carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= m.at
"""


def read_usage(db: Database, ids: Sequence[str], now: datetime) -> dict[str, Usage]:
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


class Activity(NamedTuple):
    """What was stored about an entity: counts, when it came up, how important the week was."""

    counts: ActivityCounts
    first_at: datetime
    mean_importance: float


def read_activity(db: Database, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
    """Return how many memories were stored about each entity, and when.

    The cost is that of the last week; what came before is already counted.
    """
    if not entities:
        return {}
    at, requested = to_ms(now), as_table(tuple(dict.fromkeys(entities)))
    if history.is_past(db, at):
        rows = select(db, _SELECT_ACTIVITY_AS_OF, (at, requested))
        return {
            entity: _activity_as_of([_PastMention(*row) for row in seen], at)
            for entity, seen in groupby(rows, itemgetter(0))
        }
    found, rows = {}, select(db, _SELECT_ACTIVITY, (at, requested))
    for entity, first, mentions, later, day, week, mean in rows:
        counts = ActivityCounts(day, week, max(mentions - later, week))
        found[entity] = Activity(counts, from_ms(first), 0.5 if mean is None else mean)
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
    counts = ActivityCounts(day, len(week), max(live, len(week)))
    return Activity(counts, from_ms(seen[0].first_at), mean)


# Of the entities of the last week, the most mentioned are compared by their momenta.
MAX_COMPARED = 5_000
# The momentum after a week without mentions is constant.
_DORMANT_MOMENTUM = momentum(ActivityCounts(), 1.0)
_YEAR_MS = 365.25 * DAY_MS

_LAST_SEEN_BY_ID = """
    SELECT e.id, e.last_seen_at FROM carray(?) AS w CROSS JOIN entity AS e ON e.id = w.value
    WHERE e.created_at <= ?
"""
_LAST_SEEN_THEN = _LAST_SEEN_BY_ID.replace("e.last_seen_at", history.LAST_SEEN)
_LAST_SEEN_AS_OF = f"{history.AS_OF_CTE} {_LAST_SEEN_THEN}"
# How many live memories above a classification mention each entity: seldom many. ABOVE is a
# number that the index of classifications, which has those above 1, can be used for.
_HIDDEN_CTE = f"""
    WITH hidden (entity, times) AS MATERIALIZED (
        SELECT l.dst, count(*) FROM item AS i
        CROSS JOIN link AS l ON l.src = i.id AND {history.IS_MENTION}
        WHERE i.live_to IS NULL AND i.classification > ABOVE AND i.classification > ? GROUP BY l.dst
    )
"""
_SEEN = "(e.mentions - coalesce(h.times, 0))"
# Hide an entity that only memories of higher classification mention.
_IS_VISIBLE = f"""
    ({_SEEN} > 0 OR NOT EXISTS (
        SELECT 1 FROM link AS l CROSS JOIN item AS i ON i.id = l.src AND i.classification > ?
        WHERE l.dst = e.id AND l.type = 'mentions' AND l.src_kind = 'item'
    ))
"""


class _Listed(NamedTuple):
    """An entity of a list: how many memories that the reader may see mention it, and the last."""

    id: str
    mentions: int
    last_seen_at: int | None


def read_momenta(db: Database, ids: Sequence[str], now: datetime) -> dict[str, float]:
    """Return the momentum of each entity that there was at a moment."""
    if not ids:
        return {}
    at, requested = to_ms(now), as_table(tuple(dict.fromkeys(ids)))
    read_ahead(db, (_LAST_SEEN_BY_ID, (requested, at)))
    rows = (
        select(db, _LAST_SEEN_AS_OF, (at, requested, at))
        if history.is_past(db, at)
        else select(db, _LAST_SEEN_BY_ID, (requested, at))
    )
    return _compute_momenta(db, dict(rows), now)


def _compute_momenta(
    db: Database, last_seen: Mapping[str, int | None], now: datetime
) -> dict[str, float]:
    quiet = to_ms(now - QUIET_AFTER)
    lately = [key for key, at in last_seen.items() if at is not None and at >= quiet]
    found = dict.fromkeys(last_seen, _DORMANT_MOMENTUM)
    for key, (counts, first, importance) in read_activity(db, lately, now).items():
        found[key] = momentum(counts, (now - first).total_seconds() / DAY_S, importance)
    return found


def rank_entities(db: Database, listing: EntityListing, now: datetime) -> list[Entity]:
    """Return entities by momentum, number of memories and recency, with their counts."""
    wanted = listing.offset + listing.limit
    found = _list_entities(db, listing, now, wanted, recent=False)
    found += _list_entities(db, listing, now, max(wanted, MAX_COMPARED), recent=True)
    momenta = _compute_momenta(db, {one.id: one.last_seen_at for one in found}, now)

    def place(one: _Listed) -> tuple[float, str]:
        years = (to_ms(now) - (one.last_seen_at or 0)) / _YEAR_MS
        return -(10.0 * momenta[one.id] + 0.5 * one.mentions - 2.0 * years), one.id

    page = {one.id: one for one in sorted(found, key=place)[listing.offset : wanted]}
    if not page:
        return []
    entities = read_entities(db, page)
    counts = count_layers(db, tuple(page), listing.max_classification)
    return [
        entities[key]._replace(
            mentions=one.mentions, momentum=momenta[key], **counts[key]._asdict()
        )
        for key, one in page.items()
    ]


def _list_entities(
    db: Database, listing: EntityListing, now: datetime, count: int, *, recent: bool
) -> list[_Listed]:
    """Return the first entities of the last week, or of the others, whose momenta are equal."""
    ceiling = listing.max_classification
    where = [f"{_SEEN} >= ?", _IS_VISIBLE]
    values: list[int | str] = [ceiling, listing.min_memories, ceiling]  # first of the hidden CTE
    if listing.kinds:
        where.append("e.kind IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(listing.kinds))
    if start := normalise_alias(listing.prefix):
        where.append("e.id IN (SELECT entity FROM alias WHERE alias >= ? AND alias < ?)")
        # The last Unicode character: every name with this prefix sorts before it.
        values += [start, f"{start}\U0010ffff"]
    where.append("e.last_seen_at >= ?" if recent else "coalesce(e.last_seen_at, 0) < ?")
    age = f"{4.0 / _YEAR_MS!r} * coalesce(e.last_seen_at, 0)"  # as in the order of the list
    sql = f"""
        {_HIDDEN_CTE.replace("ABOVE", str(min(int(ceiling), 1)))}
        SELECT e.id, {_SEEN}, e.last_seen_at
        FROM entity AS e LEFT JOIN hidden AS h ON h.entity = e.id WHERE {" AND ".join(where)}
        ORDER BY {_SEEN}{"" if recent else f" + {age}"} DESC, e.id LIMIT ?
    """
    return [_Listed(*row) for row in select(db, sql, (*values, to_ms(now - QUIET_AFTER), count))]
