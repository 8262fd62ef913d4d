"""Times as the file stores them (milliseconds since 1970, UTC), state hashes, SQL functions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from bethink.errors import Refused
from bethink.retrieval.heat import BAND_THRESHOLDS, BANDS_NEEDING_USE, FRESHNESS, STALENESS
from bethink.store.sql.dialect import part

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # what a datetime can show
_MILLISECOND = timedelta(milliseconds=1)


def to_ms(moment: datetime) -> int:
    """Return the millisecond a moment falls into; reject one without a time zone."""
    if moment.tzinfo is None:
        raise Refused(
            f"the time {moment.isoformat()} has no time zone", remedy="add one, for example +00:00"
        )
    return (moment - EPOCH) // _MILLISECOND


def ceil_ms(moment: datetime) -> int:
    """Return the first whole millisecond at or after a moment, for `>=` and `<`."""
    return -((EPOCH - moment) // _MILLISECOND) if moment.tzinfo is not None else to_ms(moment)


def to_json_ids(ids: Iterable[str]) -> str:
    """Encode ids, each once, for ``json_each``."""
    return json.dumps(list(dict.fromkeys(ids)), ensure_ascii=False)


def to_ms_or_none(moment: datetime | None) -> int | None:
    return None if moment is None else to_ms(moment)


def from_ms(ms: int) -> datetime:
    # Through timedelta, not a float of seconds: exact up to the year 9999.
    return EPOCH + timedelta(milliseconds=ms)


def from_ms_or_none(ms: int | None) -> datetime | None:
    return None if ms is None else EPOCH + timedelta(milliseconds=ms)


def state_hash(*values: object) -> int:
    """Return the hash of a revision's state, 64 bits, as SQLite keeps numbers.

    That is what may change after it was written, bound to its content and place: content hash,
    row, end, status and reason of the end. Each counts as its bytes, also text that is not UTF-8.
    """
    parts = (
        b""
        if value is None
        else b"=" + (value if isinstance(value, bytes) else str(value).encode())
        for value in values
    )
    digest = hashlib.blake2b(b"\n".join(parts), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


# Of a memory's usage `u`, up to the moment `m` (its millisecond `at` and its `day`).
# The stamps are of the last twenty uses; earlier uses are counted by day.
_RECALLS_OF_DAYS = "SELECT sum(d.recalls) FROM usage_day AS d WHERE d.id = u.id AND d.day <= m.day"
_STAMPS = part(
    "json_each(u.stamps) AS s",
    postgres="unnest(translate(u.stamps, '[]', '{}')::bigint[]) WITH ORDINALITY AS s (value, key)",
)
_LATER_USES = f"(SELECT count(*) FROM {_STAMPS} WHERE s.value > m.at)"
_LATER_USES_THAT_DAY = f"""
    CASE WHEN u.last_at > m.at THEN (SELECT count(*) FROM {_STAMPS}
        WHERE s.value > m.at AND s.value < (m.day + 1) * {DAY_MS}) ELSE 0 END
"""
USED_IN_ALL = f"""
    CASE WHEN u.last_at <= m.at THEN u.recalls
    WHEN u.recalls <= 20 OR {_LATER_USES} < 20 THEN coalesce(max(0, u.recalls - {_LATER_USES}), 0)
    ELSE coalesce(({_RECALLS_OF_DAYS}), 0) END
"""
USED_LAST = f"""
    CASE WHEN u.last_at <= m.at THEN u.last_at ELSE coalesce(
        (SELECT max(s.value) FROM {_STAMPS} WHERE s.value <= m.at),
        CASE WHEN {USED_IN_ALL} > 0 THEN
            (SELECT max(d.day) * {DAY_MS} FROM usage_day AS d WHERE d.id = u.id AND d.day <= m.day)
        END) END
"""
USED_IN_30 = (
    f"max(0, coalesce(({_RECALLS_OF_DAYS} AND d.day > m.day - 30), 0) - {_LATER_USES_THAT_DAY})"
)
USED_IN_90 = (
    f"max(0, coalesce(({_RECALLS_OF_DAYS} AND d.day > m.day - 90), 0) - {_LATER_USES_THAT_DAY})"
)

# The heat of a memory as `retrieval.heat` defines it.
_BANDS = " ".join(f"WHEN measured.heat >= {low} THEN '{band}'" for low, band in BAND_THRESHOLDS)
_FRESH = " ".join(
    f"WHEN used.since <= {int(days * DAY_MS)} THEN {bonus}" for days, bonus in FRESHNESS
)
_HEAT_BAND = f"""
    (SELECT CASE {_BANDS} ELSE 'frozen' END FROM (
        SELECT min(100.0, max(0.0, min(3.0 * used.in_30, 30.0) + min(1.0 * used.in_90, 20.0)
            + CASE {_FRESH} ELSE {STALENESS} END + min(0.5 * used.in_all, 15.0)
            + 15.0 * min(1.0, max(0.0, i.importance)))) AS heat
        FROM (SELECT coalesce({USED_IN_30}, 0) AS in_30, coalesce({USED_IN_90}, 0) AS in_90,
            coalesce({USED_IN_ALL}, 0) AS in_all,
            m.at - coalesce({USED_LAST}, i.stored_at) AS since
            FROM (SELECT ? AS at, ? AS day) AS m LEFT JOIN usage AS u ON u.id = i.id)
        AS used) AS measured)
"""
_IN_BANDS = f"{_HEAT_BAND} IN (SELECT value FROM json_each(?))"
_IN_BANDS_IF_USED = f"""
    CASE WHEN EXISTS (SELECT 1 FROM usage AS x WHERE x.id = i.id) THEN {_IN_BANDS} ELSE false END
"""


def heat_band_condition(bands: Iterable[str]) -> str:
    """Return SQL that tests ``item AS i`` for heat bands; binds at, day and the bands.

    Most memories were never used: where only use makes a band, they are skipped.
    """
    return _IN_BANDS_IF_USED if BANDS_NEEDING_USE.issuperset(bands) else _IN_BANDS


# Remaining strength of a memory: the ticks since `decay_at`, or since it was stored, are
# subtracted. Without any tick, which is the usual case, none is looked up.
DECAY = """
    CASE WHEN EXISTS (SELECT 1 FROM tick) THEN max(0.0, round(coalesce(u.decay, 1.0)
        - (SELECT total FROM tick ORDER BY number DESC LIMIT 1)
        + coalesce((SELECT t.total FROM tick AS t WHERE t.at < coalesce(u.decay_at, i.stored_at)
            ORDER BY t.at DESC LIMIT 1), 0.0), 9))
    ELSE coalesce(u.decay, 1.0) END
"""
# The same at the moment `m`, from what the memory had regained by then, which is known for
# the last twenty times. With more since then, it counts as never regained before.
_LAST_TICK = "SELECT t.total FROM tick AS t WHERE t.at BOUND ORDER BY t.at DESC LIMIT 1"
_REGAINED_AT = "coalesce((was.state ->> 2)::bigint, i.stored_at)"
_DECAY_STATE_AS_OF = """
    (SELECT r.value FROM json_each(u.regained) AS r WHERE r.value ->> 0 <= m.at
    ORDER BY r.key DESC LIMIT 1)
"""
DECAY_AS_OF = part(
    f"""
    (SELECT max(0.0, round(coalesce(was.state ->> 1, 1.0) - max(0.0,
        coalesce(({_LAST_TICK.replace("BOUND", "<= m.at")}), 0.0)
        - coalesce(({_LAST_TICK.replace("BOUND", "< coalesce(was.state ->> 2, i.stored_at)")}),
            0.0)), 9))
    FROM m CROSS JOIN (SELECT {_DECAY_STATE_AS_OF} AS state FROM m) AS was)
    """,
    postgres=f"""
    (SELECT max(0.0, round(coalesce((was.state ->> 1)::float8, 1.0) - max(0.0,
        coalesce(({_LAST_TICK.replace("BOUND", "<= m.at")}), 0.0)
        - coalesce(({_LAST_TICK.replace("BOUND", f"< {_REGAINED_AT}")}),
            0.0)), 9))
    FROM m CROSS JOIN (SELECT (
        SELECT r.value FROM jsonb_array_elements(u.regained::jsonb) WITH ORDINALITY
            AS r (value, key)
        WHERE (r.value ->> 0)::bigint <= m.at ORDER BY r.key DESC LIMIT 1) AS state FROM m) AS was)
    """,
)
