"""How warm memories are, as SQL: what a band filter asks of every row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from recollect.heat import BANDS_OF_USE, Uses, band_of, heat
from recollect.store.sqlite.clock import DAY_MS

# Of a memory's usage `u`, up to the moment `m` (its millisecond `at` and its `day`).
# The stamps are of the last twenty uses: of what was used more often since, the days know.
_OF_DAYS = "SELECT sum(d.recalls) FROM usage_day AS d WHERE d.id = u.id AND d.day <= m.day"
_LATER = "(SELECT count(*) FROM json_each(u.stamps) AS s WHERE s.value > m.at)"
_LATER_THAT_DAY = f"""
    CASE WHEN u.last_at > m.at THEN (SELECT count(*) FROM json_each(u.stamps) AS s
        WHERE s.value > m.at AND s.value < (m.day + 1) * {DAY_MS}) ELSE 0 END
"""
USED_IN_ALL = f"""
    CASE WHEN u.last_at <= m.at THEN u.recalls
    WHEN u.recalls <= 20 OR {_LATER} < 20 THEN coalesce(max(0, u.recalls - {_LATER}), 0)
    ELSE coalesce(({_OF_DAYS}), 0) END
"""
USED_LAST = f"""
    CASE WHEN u.last_at <= m.at THEN u.last_at ELSE coalesce(
        (SELECT max(s.value) FROM json_each(u.stamps) AS s WHERE s.value <= m.at),
        CASE WHEN {USED_IN_ALL} > 0 THEN
            (SELECT max(d.day) * {DAY_MS} FROM usage_day AS d WHERE d.id = u.id AND d.day <= m.day)
        END) END
"""
USED_IN_30 = f"max(0, coalesce(({_OF_DAYS} AND d.day > m.day - 30), 0) - {_LATER_THAT_DAY})"
USED_IN_90 = f"max(0, coalesce(({_OF_DAYS} AND d.day > m.day - 90), 0) - {_LATER_THAT_DAY})"

_BAND = f"""
    (SELECT heat_band(
        coalesce({USED_IN_30}, 0), coalesce({USED_IN_90}, 0), coalesce({USED_IN_ALL}, 0),
        m.at - coalesce({USED_LAST}, i.stored_at), i.importance)
    FROM (SELECT ? AS at, ? AS day) AS m LEFT JOIN usage AS u ON u.id = i.id)
"""
_IN_BANDS = f"{_BAND} IN (SELECT value FROM json_each(?))"
_IN_BANDS_OF_USE = f"""
    CASE WHEN EXISTS (SELECT 1 FROM usage AS x WHERE x.id = i.id) THEN {_IN_BANDS} ELSE 0 END
"""


def in_bands(bands: Iterable[str]) -> str:
    """True of a row of ``item AS i`` in one of the bands; takes at, day and the bands.

    Most memories were never used: where only use makes a band, they need no closer look.
    """
    return _IN_BANDS_OF_USE if BANDS_OF_USE.issuperset(bands) else _IN_BANDS


def heat_band(*values: Any) -> str:
    """The SQL function: a memory's band from its uses in 30 days, in 90 and ever, the
    milliseconds since the last, and its importance."""
    *uses, since_ms, importance = values
    return band_of(heat(Uses(*uses), since_ms / DAY_MS, importance))
