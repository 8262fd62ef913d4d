"""A scope as SQL: the one condition that every search puts on the rows it may see."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from recollect.model import LEVELS, Filters
from recollect.ports import Scope
from recollect.store.sqlite.clock import DAY_MS, ceil_ms, to_ms, to_ms_or_none
from recollect.store.sqlite.standing import EVER, STANDING_AT
from recollect.store.sqlite.warmth import in_bands
from recollect.text import fold

SqlValue = int | float | str

_DEFAULT = Filters()

# Filters that name the allowed values of one column.
_COLUMNS = (
    ("ids", "id"),
    ("levels", "level"),
    ("kinds", "kind"),
    ("layers", "layer"),
    ("topics", "topic"),
    ("tiers", "tier"),
    ("sources", "source"),
    ("sessions", "session"),
    ("speakers", "speaker"),
)
_WHEN = "coalesce(i.occurred_at, i.stored_at)"
_TAGS = (
    "NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted"
    " WHERE wanted.value NOT IN (SELECT value FROM json_each(i.tags)))"
)
_NAMED = (
    "SELECT e.id FROM entity AS e JOIN json_each(?) AS n"
    " ON n.value = e.id OR n.value = substr(e.id, instr(e.id, ':') + 1)"
    " UNION SELECT a.entity FROM alias AS a JOIN json_each(?) AS n ON n.value = a.alias"
)
# The links are those of the live revision; earlier ones know their entities themselves.
_MENTIONS_NOW = (
    "i.id IN (SELECT l.src FROM link AS l WHERE l.type = 'mentions'"
    f" AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.dst IN ({_NAMED}))"
)
_MENTIONED_THEN = f"EXISTS (SELECT 1 FROM json_each(i.entities) AS m WHERE m.value IN ({_NAMED}))"


class Condition(NamedTuple):
    """A condition over ``item AS i`` with its bound values, in the order of its marks."""

    sql: str
    values: tuple[SqlValue, ...] = ()


class Predicate(NamedTuple):
    """The condition that a scope is.

    ``plain`` says that nobody restricted anything: only the conditions apply that
    hold for every ordinary question, so nearly all live rows pass. ``among`` is a further
    condition, true of all that pass, by which an index finds them where they are few.
    ``then`` is the moment in the past it is about, if it is.
    """

    sql: str
    values: tuple[SqlValue, ...]
    plain: bool
    among: Condition | None = None
    then: int | None = None


class _Conditions:
    """Collects conditions and their values side by side."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: list[SqlValue] = []

    def add(self, sql: str, *values: SqlValue) -> None:
        self.parts.append(sql)
        self.values.extend(values)


def compile_scope(scope: Scope) -> Predicate:
    """The scope's meaning for one row. Its text depends only on which filters are
    set, so that prepared statements are found again."""
    filters = scope.filters
    where = _Conditions()
    _add_life(where, scope)
    _add_validity(where, scope)
    where.add("i.classification <= ?", filters.max_classification)
    if filters.min_trust > _DEFAULT.min_trust:
        where.add("i.trust >= ?", filters.min_trust)
    _add_times(where, filters)
    for name, column in _COLUMNS:
        allowed: tuple[str, ...] = getattr(filters, name)
        if allowed:
            one_of = f"i.{column} IN (SELECT value FROM json_each(?))"
            if name == "topics" and filters.include_untopiced:
                one_of = f"(i.topic IS NULL OR {one_of})"
            where.add(one_of, _json(allowed))
    if filters.tags:
        where.add(_TAGS, _json(filters.tags))
    if filters.entities:
        named = _json({*filters.entities, *map(fold, filters.entities)})
        where.add(_MENTIONS_NOW if scope.as_of is None else _MENTIONED_THEN, named, named)
    if filters.bands:
        moment = to_ms(scope.moment)
        where.add(in_bands(filters.bands), moment, moment // DAY_MS, _json(filters.bands))
    plain = scope.as_of is None and filters == _DEFAULT
    among = _among(filters) if scope.as_of is None else None
    return Predicate(
        " AND ".join(where.parts), tuple(where.values), plain, among, to_ms_or_none(scope.as_of)
    )


def _among(filters: Filters) -> Condition | None:
    """The times or the levels, as their index has them. Few memories may be of a time or
    a level, or nearly all, which SQLite cannot know: who asks for this counts first."""
    times = _Conditions()
    _add_times(times, filters)
    if times.parts:
        return Condition(" AND ".join(times.parts), tuple(times.values))
    levels = set(filters.levels)
    if not levels or not levels < set(LEVELS):
        return None
    names = ", ".join(f"'{level}'" for level in sorted(levels))
    return Condition(f"i.level || '' IN ({names}) AND i.live_to IS NULL")


def _add_life(where: _Conditions, scope: Scope) -> None:
    if scope.as_of is not None:
        _add_past_life(where, to_ms(scope.as_of), scope.filters)
        return
    where.add("i.live_to IS NULL")
    if scope.filters.include_superseded:
        where.add("i.status IN ('active', 'superseded')")
    else:
        where.add("(i.status = 'active' OR (i.status = 'superseded' AND i.pinned))")


def _add_past_life(where: _Conditions, then: int, filters: Filters) -> None:
    """What was live, and stood as it must. Few memories were ever anything but active: these
    are found once, and no row is asked for its own history."""
    where.add("i.live_from <= ? AND (i.live_to IS NULL OR i.live_to > ?)", then, then)
    where.add(f"i.id NOT IN ({STANDING_AT})", then, "quarantined")
    where.add(f"i.id NOT IN ({STANDING_AT})", EVER, "quarantined")
    if not filters.include_superseded:
        where.add(f"(i.pinned OR i.id NOT IN ({STANDING_AT}))", then, "superseded")


def _add_times(where: _Conditions, filters: Filters) -> None:
    if filters.since is not None:
        where.add(f"{_WHEN} >= ?", ceil_ms(filters.since))
    if filters.until is not None:
        where.add(f"{_WHEN} < ?", ceil_ms(filters.until))
    if filters.stored_by is not None:
        where.add("i.stored_at <= ?", to_ms(filters.stored_by))


def _add_validity(where: _Conditions, scope: Scope) -> None:
    if scope.filters.include_expired:
        return
    moment = to_ms(scope.moment)
    where.add("(i.valid_to IS NULL OR i.valid_to > ?)", moment)
    where.add("(i.valid_from IS NULL OR i.valid_from <= ?)", moment)


def _json(values: Iterable[str]) -> str:
    return json.dumps(sorted(values), ensure_ascii=False)
