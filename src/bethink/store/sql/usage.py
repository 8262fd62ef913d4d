"""Usage of memories, their decay by ticks, and the momentum of entities.

A tick takes the same amount from every memory, so no row is updated when one is
written: how far a memory has decayed is the sum of the ticks since its last recall
(``DECAY``).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter

from bethink.core.named_tuple import NamedTuple
from bethink.lang.dates import DAY_S
from bethink.model import Entity
from bethink.ports import Activity, EntityListing, Momentum, PriorUse, Usage, UsageDecay
from bethink.retrieval.heat import QUIET_AFTER, ActivityCounts, is_stale, momentum
from bethink.store.sql.connection import Database, Row, as_table, read_ahead, select
from bethink.store.sql.history import (
    AS_OF_CTE,
    IS_MENTION,
    LAST_REVISIONS,
    LAST_SEEN,
    MENTION_LINK,
    MENTIONED_AT_REVISION,
    is_past,
)
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

_WITH_USE = f"{LAST_REVISIONS} LEFT JOIN usage AS u ON u.id = i.id"
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
    number, last, total = next(iter(select(db, _LAST_TICK)), (0, now - 1, 0.0))
    _restore_strength(db, ids, now, max(now + int(fading.grace_s * 1000), last + 1), fading)
    if fading.interval < 1:
        return
    count = int(db.execute(_COUNT_RECALL).get)
    if count % fading.interval == 0:
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
_MENTION_LINK = f"l.dst = w.value AND {IS_MENTION} AND l.created_at <= m.at"
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


def read_activity(db: Database, entities: Sequence[str], now: datetime) -> dict[str, Activity]:
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
    for entity, first, mentions, later, day, week, mean in select(
        db, _SELECT_ACTIVITY, (at, requested)
    ):
        in_all, importance = max(mentions - later, week), 0.5 if mean is None else mean
        found[entity] = Activity(day, week, in_all, from_ms(first), importance)
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
_HIDDEN_CTE = f"""
    WITH hidden (entity, times) AS MATERIALIZED (
        SELECT l.dst, count(*) FROM item AS i
        CROSS JOIN link AS l ON l.src = i.id AND {IS_MENTION}
        WHERE i.live_to IS NULL AND i.classification > ABOVE AND i.classification > ? GROUP BY l.dst
    )
"""
_SEEN = "(e.mentions - coalesce(h.times, 0))"
_LISTING_COLUMNS = f"e.id, {_SEEN} AS seen, e.momentum, e.momentum_at, e.last_seen_at"
_LISTING_FROM = "entity AS e LEFT JOIN hidden AS h ON h.entity = e.id"
# Hide an entity that only memories of higher classification mention.
_IS_VISIBLE = f"""
    ({_SEEN} > 0 OR NOT EXISTS (
        SELECT 1 FROM link AS l CROSS JOIN item AS i ON i.id = l.src AND i.classification > ?
        WHERE l.dst = e.id AND l.type = 'mentions' AND l.src_kind = 'item'
    ))
"""
SET_MOMENTUM = "UPDATE entity SET momentum = ?, momentum_at = ? WHERE id = ?"


class EntityState(NamedTuple):
    """The momentum columns of an entity's row."""

    id: str
    mentions: int
    momentum: float
    momentum_at: int | None
    last_seen_at: int | None


def read_momenta(db: Database, ids: Sequence[str], now: datetime) -> dict[str, Momentum]:
    """Return the momentum of each entity: the stored one if recent, else computed."""
    if not ids:
        return {}
    at, requested = to_ms(now), as_table(tuple(dict.fromkeys(ids)))
    read_ahead(db, (_STATE_BY_ID, (requested, at)))
    rows = (
        select(db, _STATE_BY_ID_AS_OF, (at, requested, at))
        if is_past(db, at)
        else select(db, _STATE_BY_ID, (requested, at))
    )
    return _compute_momenta(db, [EntityState(*row) for row in rows], now)


def rank_entities(db: Database, listing: EntityListing, now: datetime) -> list[Entity]:
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
    entities = read_entities(db, page)
    counts = count_layers(db, tuple(page), listing.max_classification)
    return [
        entities[key]._replace(
            mentions=state.mentions, momentum=momenta[key].value, **counts[key]._asdict()
        )
        for key, state in page.items()
    ]


def _best_entities(
    db: Database,
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
        _add_momenta(db, found, wanted, now, momenta)
        scores = sorted(_rank_score(state, momenta[state.id].value, now) for state in found)
        if len(found) < count or not wanted or count == _ALL:
            return found
        if scores[-wanted] > 10.0 * highest + 0.5 * rows[-1][0] + _ROUNDING:
            return found
        count = 4 * count if count < MAX_COMPUTED else _ALL


def _add_momenta(
    db: Database,
    states: Sequence[EntityState],
    wanted: int,
    now: datetime,
    momenta: dict[str, Momentum],
) -> None:
    """Add the momenta of entities: of those that cannot be on the page a lower bound."""
    unknown = [state for state in states if state.id not in momenta]
    quick = {state.id: _quick_momentum(state, now) for state in unknown}
    momenta |= {key: known or Momentum(0.0) for key, known in quick.items()}
    slow = [state for state in unknown if quick[state.id] is None]
    scores = sorted(_rank_score(state, momenta[state.id].value, now) for state in states)
    if 0 < wanted <= len(scores):
        least = scores[-wanted] - 10.0 * MAX_MOMENTUM - _ROUNDING
        slow = [one for one in slow if _rank_score(one, 0.0, now) >= least]
    momenta |= _compute_momenta(db, slow, now)


def _most_mentioned(
    db: Database, listing: EntityListing, now: datetime, bounds: tuple[int, int], *, recent: bool
) -> list[Row]:
    """Return the mentions and the state of entities, the most mentioned first.

    ``bounds`` are the least number of mentions, and the most entities.
    """
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
    hidden = _HIDDEN_CTE.replace("ABOVE", str(min(int(ceiling), 1)))
    sql = f"""
        {hidden} SELECT e.mentions, {_LISTING_COLUMNS} FROM {_LISTING_FROM}
        WHERE {" AND ".join(where)} AND e.mentions >= ? ORDER BY e.mentions DESC LIMIT ?
    """
    return select(db, sql, (*values, to_ms(now - QUIET_AFTER), *bounds))


def _compute_momenta(
    db: Database, entities: Iterable[EntityState], now: datetime
) -> dict[str, Momentum]:
    found: dict[str, Momentum] = {}
    outdated: list[EntityState] = []
    for state in entities:
        known = _quick_momentum(state, now)
        if known is not None:
            found[state.id] = known
        else:
            outdated.append(state)
    activity = read_activity(db, [state.id for state in outdated[:MAX_COMPUTED]], now)
    for state in outdated:
        found[state.id] = Momentum(state.momentum)
        if active := activity.get(state.id):
            observed = (now - (active.first_at or now)).total_seconds() / DAY_S
            counts = ActivityCounts(active.in_1_day, active.in_7_days, active.in_all)
            value = momentum(counts, observed, active.mean_importance)
            found[state.id] = Momentum(value, recomputed=True)
    return found


def _quick_momentum(state: EntityState, now: datetime) -> Momentum | None:
    """Return the momentum of a quiet entity or a recent one of any; None where it is outdated."""
    seen = from_ms_or_none(state.last_seen_at)
    if seen is None or now - seen > QUIET_AFTER:
        return Momentum(_DORMANT_MOMENTUM, recomputed=state.momentum != _DORMANT_MOMENTUM)
    if is_stale(from_ms_or_none(state.momentum_at), seen, now):
        return None
    return Momentum(state.momentum)


def _rank_score(state: EntityState, momentum_now: float, now: datetime) -> float:
    """Return the list rank: 10 × momentum, 0.5 a memory, minus 2 for every year unseen."""
    years = (now - from_ms(state.last_seen_at or 0)).total_seconds() / DAY_S / YEAR_DAYS
    return 10.0 * momentum_now + 0.5 * state.mentions - 2.0 * years
