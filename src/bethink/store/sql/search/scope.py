"""Compile a scope to SQL: the condition that every search puts on visible rows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import apsw

from bethink.core.arrays import NDArray, np
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.model import LEVELS, Filters
from bethink.model.item import SHARED_CLASSIFICATION
from bethink.ports import Scope
from bethink.store.sql.connection import Database, generation, is_on_server, read_ahead, select
from bethink.store.sql.dialect import part
from bethink.store.sql.history import END_OF_TIME, IDS_WITH_STATUS_AT
from bethink.store.sql.sql_functions import (
    DAY_MS,
    ceil_ms,
    heat_band_condition,
    to_ms,
    to_ms_or_none,
)
from bethink.store.sql.state_cache import CachePart, StateCache

if TYPE_CHECKING:
    IntArray = NDArray[np.int64]

SqlValue = int | float | str

_DEFAULT_FILTERS = Filters()

# Columns of which a filter, called as several of them, names the allowed values.
_INDEXED_COLUMNS = ("id", "topic", "source", "session", "speaker")
_FILTERED_COLUMNS = ("level", "kind", "layer", "tier", *_INDEXED_COLUMNS)
MAX_INDEXED_ROWS = 100_000  # more are looked at one by one, the likeliest first
_OF_USER = part(
    "CASE WHEN json_valid(i.metadata) AND json_type(i.metadata, '$.user_id') = 'text'"
    " THEN json_extract(i.metadata, '$.user_id') IN (SELECT value FROM json_each(?)) ELSE 0 END",
    postgres="(json_typeof(i.metadata::json -> 'user_id') = 'string'"
    " AND i.metadata::json ->> 'user_id' IN (SELECT value FROM json_each(?))) IS TRUE",
)
_OF_USER_OR_SHARED = f"(i.classification <= {SHARED_CLASSIFICATION} OR {_OF_USER})"
_UNTRUSTED = "i.trust < 1"  # as the index of untrusted memories has it
_LEVEL_IN = part("i.level || '' IN", postgres="i.level IN")  # by no index of SQLite's
_EVENT_TIME = "coalesce(i.occurred_at, i.stored_at)"
_HAS_ALL_TAGS = (
    "NOT EXISTS (SELECT 1 FROM json_each(?) AS wanted"
    " WHERE wanted.value NOT IN (SELECT value FROM json_each(i.tags)))"
)
# One that does not hold the first as it is written needs no reading; few hold any.
_MAY_HAVE_TAGS = "i.tags <> '[]' AND instr(i.tags, ?) > 0"
# Of an anchor only what stands before @@ is searched: its path::symbol.
_ANCHORED = (
    "(i.anchors IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(i.anchors) AS a"
    " CROSS JOIN json_each(?) AS part"
    " WHERE instr(substr(a.value, 1, instr(a.value || '@@', '@@') - 1), part.value) > 0))"
)
# By id, by key and by alias: each look-up has an index.
# On a server a function of a column is looked up in no index behind row-level security.
_HAS_KEY = part("substr(e.id, instr(e.id, ':') + 1) = n.value", postgres="e.key = n.value")
_NAMED_ENTITIES = (
    "SELECT e.id FROM json_each(?) AS n CROSS JOIN entity AS e ON e.id = n.value"
    " UNION SELECT e.id FROM json_each(?) AS n"
    f" CROSS JOIN entity AS e ON {_HAS_KEY}"
    " UNION SELECT a.entity FROM json_each(?) AS n CROSS JOIN alias AS a ON a.alias = n.value"
)
# The links are those of the live revision; earlier ones know their entities themselves.
_MENTIONS_NOW = (
    "i.id IN (SELECT l.src FROM link AS l WHERE l.type = 'mentions'"
    f" AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.dst IN ({_NAMED_ENTITIES}))"
)
# On a server each of few rows is looked up: a join would begin with all that mention the entity.
_HAS_MENTION = part(
    "EXISTS (SELECT 1 FROM link AS l WHERE l.src = i.id AND l.type = 'mentions'",
    postgres="(SELECT count(*) > 0 FROM link AS l WHERE l.src = i.id AND l.type = 'mentions'",
)
_MENTIONS_BY_ROW = (
    f"{_HAS_MENTION}"
    f" AND l.src_kind = 'item' AND l.dst_kind = 'entity' AND l.dst IN ({_NAMED_ENTITIES}))"
)
_ROWS_MENTIONING = (
    "SELECT i.rid FROM link AS l CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL"
    " WHERE l.type = 'mentions' AND l.src_kind = 'item' AND l.dst_kind = 'entity'"
    f" AND l.dst IN ({_NAMED_ENTITIES})"
)
_LINKS_TO = _ROWS_MENTIONING.replace("i.rid", "l.src").replace(
    " CROSS JOIN item AS i ON i.id = l.src AND i.live_to IS NULL", ""
)
_MENTIONS_AS_OF = (
    f"EXISTS (SELECT 1 FROM json_each(i.entities) AS m WHERE m.value IN ({_NAMED_ENTITIES}))"
)


class Condition(NamedTuple):
    """A condition over ``item AS i`` with its bound values, in the order of its marks."""

    sql: str
    values: tuple[SqlValue, ...] = ()


class Predicate(NamedTuple):
    """The SQL condition of a scope.

    ``plain`` says that the filters are the default ones, so nearly all live rows pass. Each of
    ``indexed`` selects by an index row ids that hold all that pass; ``rows`` are those of one of
    them, where they are few. ``as_of_ms`` is the moment in the past in milliseconds, if any.
    ``lasting`` is the condition without what a memory's time of validity decides.
    """

    sql: str
    values: tuple[SqlValue, ...]
    plain: bool
    indexed: tuple[Condition, ...] = ()
    as_of_ms: int | None = None
    rows: IntArray | None = None
    lasting: Condition | None = None

    @property
    def sql_of_known_rows(self) -> str:
        """The same condition for rows that are known and few: it looks at each one's links."""
        return self.sql.replace(_MENTIONS_NOW, _MENTIONS_BY_ROW)

    @property
    def sql_row_by_row(self) -> str:
        """The same condition so that no index can answer a part of it."""
        sql = self.sql_of_known_rows.replace("i.level ", "coalesce(i.level, '') ")
        for column in ("source", "session", "tags"):
            sql = sql.replace(f"i.{column} ", f"i.{column} || '' ")
        return sql.replace(f"{_EVENT_TIME} ", f"{_EVENT_TIME} + 0 ")


class _Conditions(list[Condition]):
    """Conditions that all hold."""

    def add(self, sql: str, *values: SqlValue) -> None:
        self.append(Condition(sql, values))

    def joined(self) -> Condition:
        """Return the conditions so far as one."""
        values = tuple(value for one in self for value in one.values)
        return Condition(" AND ".join(one.sql for one in self), values)


def compile_scope(scope: Scope) -> Predicate:
    """Compile a scope to a condition on one row.

    Its text depends only on which filters are set, so that prepared statements are reused.
    """
    filters = scope.filters
    where = _Conditions()
    _add_liveness(where, scope)
    where.add("i.classification <= ?", filters.max_classification)
    if filters.min_trust > _DEFAULT_FILTERS.min_trust:
        where.add("i.trust >= ?", filters.min_trust)
    if scope.untrusted:
        where.add(_UNTRUSTED)
    _add_times(where, filters)
    for column in _FILTERED_COLUMNS:
        allowed: tuple[str, ...] = getattr(filters, f"{column}s")
        if allowed:
            allow = _allow(column, allowed)
            if column == "topic" and filters.include_untopiced:
                allow = allow._replace(sql=f"(i.topic IS NULL OR {allow.sql})")
            where.append(allow)
    if filters.users:
        condition = _OF_USER_OR_SHARED if filters.include_shared else _OF_USER
        where.add(condition, _json(filters.users))
    where += _list_conditions(filters)
    if filters.entities:
        mentions = _MENTIONS_NOW if scope.as_of is None else _MENTIONS_AS_OF
        where.add(mentions, *_entity_names(filters))
    if filters.bands:
        moment = to_ms(scope.moment)
        where.add(
            heat_band_condition(filters.bands), moment, moment // DAY_MS, _json(filters.bands)
        )
    lasting = where.joined()
    _add_validity(where, scope)
    plain = scope.as_of is None and filters == _DEFAULT_FILTERS and not scope.untrusted
    return Predicate(
        *where.joined(),
        plain,
        _indexed(filters, untrusted=scope.untrusted) if scope.as_of is None else (),
        to_ms_or_none(scope.as_of),
        lasting=lasting,
    )


def _list_conditions(filters: Filters) -> list[Condition]:
    """Return the conditions that a memory has all of the tags, and one of the anchors."""
    found = []
    if filters.tags:
        first = json.dumps(min(filters.tags), ensure_ascii=False)
        values = (first, _json(filters.tags))
        found.append(Condition(f"({_MAY_HAVE_TAGS} AND {_HAS_ALL_TAGS})", values))
    if filters.at:
        found.append(Condition(_ANCHORED, (_json(filters.at),)))
    return found


def _allow(column: str, allowed: tuple[str, ...]) -> Condition:
    """Return the condition that a column has one of these values."""
    if len(allowed) == 1 and "\0" not in allowed[0]:
        return Condition(f"i.{column} = ?", allowed)
    return Condition(f"i.{column} IN (SELECT value FROM json_each(?))", (_json(allowed),))


def _indexed(filters: Filters, *, untrusted: bool) -> tuple[Condition, ...]:
    """Return the filters that an index answers, each as a selection of row ids."""
    found = [Condition(_UNTRUSTED)] if untrusted else []
    if filters.entities:
        found.append(Condition(_ROWS_MENTIONING, _entity_names(filters)))
    for column in _INDEXED_COLUMNS:
        allowed: tuple[str, ...] = getattr(filters, f"{column}s")
        if allowed and not (column == "topic" and filters.include_untopiced):
            found.append(_allow(column, allowed))
    found += _list_conditions(filters)
    times = _Conditions()
    _add_times(times, filters)
    if filters.since is not None or filters.until is not None:
        found.append(times.joined())
    levels = set(filters.levels)
    if levels and levels < set(LEVELS):
        names = ", ".join(f"'{level}'" for level in sorted(levels))
        found.append(Condition(f"{_LEVEL_IN} ({names}) AND i.live_to IS NULL"))
    start = "SELECT i.rid FROM item AS i WHERE "
    return tuple(
        one if one.sql is _ROWS_MENTIONING else one._replace(sql=start + one.sql) for one in found
    )


def _entity_names(filters: Filters) -> tuple[str, ...]:
    return (_json({*filters.entities, *map(fold, filters.entities)}),) * 3


_JOURNAL_HEAD = "SELECT value FROM meta WHERE name = 'journal'"
_FEW: CachePart[IntArray | None] = CachePart(limit=16)


def few_ahead(db: Database, cache: StateCache, predicate: Predicate) -> None:
    """Tell that the rows will be looked for: counted and, if they were few before, read."""
    if not predicate.indexed or not is_on_server(db):
        return
    state = str(db.execute(_JOURNAL_HEAD).get)
    for condition in predicate.indexed:
        if not cache.knows(db, _FEW, _few_key(db, condition), state):
            read_ahead(db, (_count_of(condition), condition.values))
            if cache.latest(db, _FEW) is not None:
                read_ahead(db, (condition.sql, condition.values))


def find_few(db: Database, cache: StateCache, predicate: Predicate) -> Predicate:
    """Return the predicate with its rows, if an index says that they are few.

    They are cached until memories change: the journal tells of every memory that is stored or
    ends, but not of every link.
    """
    if not predicate.indexed:
        return predicate
    few_ahead(db, cache, predicate)
    state = str(db.execute(_JOURNAL_HEAD).get)
    found = []
    for condition in predicate.indexed:
        key = _few_key(db, condition)
        select_rows = partial(_select_few, db, condition)
        rows = cache.get(db, _FEW, select_rows, key=key, state=state)
        if rows is not None:
            found.append(rows)
    return predicate._replace(rows=min(found, key=len)) if found else predicate


def _few_key(db: Database, condition: Condition) -> tuple[Condition, int]:
    return condition, generation(db) if condition.sql is _ROWS_MENTIONING else 0


def _count_of(condition: Condition) -> str:
    return f"SELECT count(*) FROM ({condition.sql} LIMIT {MAX_INDEXED_ROWS + 1})"


def _select_few(db: Database, condition: Condition) -> IntArray | None:
    """Return the rows of a condition in order; None if they are many."""
    if db.execute(_count_of(condition), condition.values).get > MAX_INDEXED_ROWS:
        return None
    # Not np.unique, which loads numpy.ma.
    return np.array(sorted({rid for (rid,) in select(db, condition.sql, condition.values)}), "i8")


FEW_ROWS = 2_000


def narrow_to_few(db: Database, predicate: Predicate) -> Predicate | None:
    """Return the condition with the row ids of a filter that few pass; None where many pass all."""
    for condition in predicate.indexed:
        sql = _LINKS_TO if condition.sql is _ROWS_MENTIONING else condition.sql
        limited = f"SELECT count(*) FROM ({sql} LIMIT {FEW_ROWS + 1}) AS c"
        try:
            count = int(db.execute(limited, condition.values).get)
        except apsw.CorruptError:
            continue  # another way to the rows may be whole
        if count > FEW_ROWS:
            continue
        if condition.sql is _ROWS_MENTIONING:
            return predicate  # which names these already
        sql = f"{predicate.sql} AND i.rid IN ({condition.sql})"
        return predicate._replace(sql=sql, values=(*predicate.values, *condition.values))
    return None


_ROWS_WALKED = 10_000
_ROWS_WALKED_EACH = 20  # for each item of the page
_ROW_AT = """
    SELECT i.stored_at, i.id FROM item AS i WHERE i.rid IS NOT NULL REST
    ORDER BY i.stored_at DESC, i.id DESC LIMIT 1 OFFSET ?
"""


def newest_window(
    db: Database, rest: str, position: tuple[SqlValue, ...], wanted: int
) -> Condition | None:
    """Return the condition for the newest rows from a position on: a page of many is among them.

    Without values where these are all rows; None where the table is damaged.
    """
    far = max(_ROWS_WALKED, _ROWS_WALKED_EACH * wanted)
    try:
        last = select(db, _ROW_AT.replace("REST", rest), (*position, far))
    except apsw.CorruptError:
        return None
    return Condition("AND (i.stored_at, i.id) >= (?, ?)", last[0]) if last else Condition("")


def _add_liveness(where: _Conditions, scope: Scope) -> None:
    if scope.as_of is not None:
        _add_past_liveness(where, to_ms(scope.as_of), scope.filters)
        return
    where.add("i.live_to IS NULL")
    if scope.filters.include_superseded:
        where.add("i.status IN ('active', 'superseded')")
    else:
        where.add("(i.status = 'active' OR (i.status = 'superseded' AND i.pinned = 1))")


def _add_past_liveness(where: _Conditions, as_of_ms: int, filters: Filters) -> None:
    """Add what was live and had the required status.

    Few memories were ever anything but active: these are found once, instead of reading
    each row's history.
    """
    where.add("i.live_from <= ? AND (i.live_to IS NULL OR i.live_to > ?)", as_of_ms, as_of_ms)
    where.add(f"i.id NOT IN ({IDS_WITH_STATUS_AT})", as_of_ms, "quarantined")
    where.add(f"i.id NOT IN ({IDS_WITH_STATUS_AT})", END_OF_TIME, "quarantined")
    if not filters.include_superseded:
        where.add(f"(i.pinned = 1 OR i.id NOT IN ({IDS_WITH_STATUS_AT}))", as_of_ms, "superseded")


def _add_times(where: _Conditions, filters: Filters) -> None:
    if filters.since is not None:
        where.add(f"{_EVENT_TIME} >= ?", ceil_ms(filters.since))
    if filters.until is not None:
        where.add(f"{_EVENT_TIME} < ?", ceil_ms(filters.until))
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
