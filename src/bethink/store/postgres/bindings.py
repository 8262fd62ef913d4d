"""What is sent to the server: statements parsed once, values it takes, rows in batches."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

from bethink.core.arrays import NDArray
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText
from bethink.store.postgres import translate, words
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables
from bethink.store.postgres.translate import Group, Shape, Source, Statement
from bethink.store.sql.dialect import PARTS

if TYPE_CHECKING:
    from array import array

    from numpy import int64

    IntArray = array[int] | NDArray[int64]

_COMPUTED_INSERT = re.compile(
    rf"\s*INSERT INTO {SCHEMA}\.(\w+) \({SPACE_ID}, ([^)]*)\)\s+"
    r"SELECT (\$\d+)(?:::bigint)?, (.*?)\s*((?:ON CONFLICT |RETURNING ).*)?",
    re.DOTALL,
)
_DELETE = re.compile(r"DELETE FROM (\w+) WHERE (\w+) = \?")
_CHANGED = re.compile(rf"(?:DELETE FROM|UPDATE)\s+{SCHEMA}\.(\w+)")
_INSERTED = re.compile(rf"INSERT INTO\s+{SCHEMA}\.(\w+)")


class Parsed(NamedTuple):
    """A statement's tree, and its marks of lists and word queries."""

    tree: Group
    special: Mapping[int, str]


@lru_cache(maxsize=2048)
def parsed(sql: str) -> Parsed:
    text = sql
    for old, new in PARTS.items():
        text = text.replace(old, new)
    tree = translate.parse(text)
    return Parsed(tree, translate.special_marks(tree))


@lru_cache(maxsize=512)
def written(sql: str) -> Statement:
    """Return a statement of ours: ``?1`` is a value, ``:space`` the space."""
    sources: list[Source] = []

    def sign(match: re.Match[str]) -> str:
        source = Source("value", int(match[1])) if match[1] else Source("space")
        if source not in sources:
            sources.append(source)
        number = f"${sources.index(source) + 1}"
        return number if match[1] else f"{number}::bigint"

    text = re.sub(r"\?(\d+)|:space\b", sign, sql)
    return Statement(text, tuple(sources))


class Lists(NamedTuple):
    """A list bound to ``carray(?)``."""

    values: tuple[str, ...] | IntArray


class Insert(NamedTuple):
    """An insert of many rows: its columns, their values, and what a row that exists becomes.

    The value of a column is the place of a row's value, or a constant.
    """

    table: str
    columns: tuple[str, ...]
    conflict: str = ""
    constants: Mapping[str, str] = MappingProxyType({})

    @property
    def given(self) -> tuple[str, ...]:
        """The columns whose values the rows bring, in their order."""
        return tuple(name for name in self.columns if name not in self.constants)


@lru_cache(maxsize=256)
def batch_insert(sql: str) -> Insert | None:
    """Return an insert of plain values that can be done for many rows at once."""
    tree = parsed(sql).tree
    place = translate.find_word(tree, "INTO") + 1
    columns, given = translate.group_at(tree, place + 1), translate.group_at(tree, place + 3)
    if not translate.at(tree, 0).is_word("INSERT") or columns is None or given is None:
        return None
    names = tuple(translate.at(part, 0).text for part in translate.split_at_commas(columns))
    values = [
        translate.at(part, 0) if len(part) == 1 else None
        for part in translate.split_at_commas(given)
    ]
    found = dict(zip(names, values, strict=True))
    marks = [value.text for value in found.values() if value and value.kind == "mark"]
    constants = {
        name: value.text
        for name, value in found.items()
        if value is not None and value.kind in {"number", "text"}
    }
    in_order = marks == [str(number) for number in range(1, len(marks) + 1)]
    table, rest = translate.at(tree, place).text, Group(tree[place + 4 :])
    if not in_order or len(marks) + len(constants) < len(names) or table == "file_edit":
        return None
    conflict: str | None = None if rest else ""
    if translate.at(tree, 1).is_word("OR"):
        conflict = translate.on_conflict(
            table, names, replace=translate.at(tree, 2).is_word("REPLACE")
        )
    elif translate.at(rest, 0).is_word("ON"):
        conflict = translate.conflict_of(table, rest)
    return None if conflict is None else Insert(table, names, conflict, constants)


@lru_cache(maxsize=1024)
def for_one_shard(sql: str) -> str:
    """Return a statement that a coordinator can send to the one shard it is for.

    An insert of computed rows names the space by a parameter, from which it does not conclude:
    here the id comes from the row of the space.
    """
    match = _COMPUTED_INSERT.fullmatch(sql)
    if match is None:
        return sql
    table, names, space, rows, rest = match.groups()
    columns = names.split(", ")
    kinds = tables()[table].columns
    chosen = ", ".join(f"given.{name}::{kinds[name]}" for name in columns)
    # Under row-level security Citus 14 writes RETURNING with the table's name only if it is given.
    return (
        f"INSERT INTO {SCHEMA}.{table} AS {table} ({SPACE_ID}, {names})"
        f" SELECT own.{SPACE_ID}, {chosen}"
        f" FROM {SCHEMA}.space AS own CROSS JOIN (SELECT {rows}) AS given ({names})"
        f" WHERE own.{SPACE_ID} = {space}::bigint {rest or ''}"
    ).rstrip()


@lru_cache(maxsize=256)
def batch_delete(sql: str) -> str:
    """Return a delete by one column, for many values at once; "" for any other statement."""
    match = _DELETE.fullmatch(sql.strip())
    if match is None or match[1] not in tables():
        return ""
    kind = tables()[match[1]].columns[match[2]]
    return (
        f"DELETE FROM {SCHEMA}.{match[1]}"
        f" WHERE {SPACE_ID} = :space AND {match[2]} = ANY (?1::{kind}[])"
    )


def word_table(sql: str) -> str:
    """Return the word index that a statement writes; "" for any other."""
    words_ = sql.split("(", 1)[0].split()
    is_insert = len(words_) == 3 and words_[:2] == ["INSERT", "INTO"]
    return words_[2] if is_insert and words_[2] in translate.WORD_TABLES else ""


def as_list(value: object) -> tuple[list[int | str], Shape]:
    """Return a list bound to carray or json_each, and the type of its values."""
    given = value.values if isinstance(value, Lists) else value
    if isinstance(given, str):
        given = json.loads(given)
    found: Sequence[object] = (
        list(given) if isinstance(given, list | tuple) else cast("IntArray", given).tolist()
    )
    if found and isinstance(found[0], list):
        return [json.dumps(one, ensure_ascii=False) for one in found], Shape("jsonb[]")
    kinds = set(map(type, found))
    if kinds and all(issubclass(kind, int) for kind in kinds):
        return list(cast("Sequence[int]", found)), Shape("bigint[]")
    return [str(storable(str(one), writes=False)) for one in found], Shape("text[]")


def type_of_empty(sql: str) -> str:
    """Return the type of an empty list: that of the column it is compared with."""
    of_rows = (
        "i.rid IN (SELECT value",
        ".rid = w.value",
        ".rid = wanted.value",
        "rid IN (SELECT value",
        "key = w.value",
    )
    return "bigint[]" if any(part in sql for part in of_rows) else "text[]"


def as_query(value: str, table: str) -> tuple[words.WordQuery, Shape]:
    query = words.parse_query(value, table)
    return query, Shape(parts=len(query.groups))


def array_literal(values: Sequence[object]) -> str:
    """Return a list as the text of an array, several times faster than the driver.

    Its type stands in the statement.
    """
    kinds = set(map(type, values))
    if kinds == {int}:
        return f"{{{','.join(map(str, values))}}}"
    texts = cast("Sequence[str]", values)
    if kinds == {str} and '"' not in (whole := "".join(texts)) and "\\" not in whole:
        quoted = '","'.join(texts)
        return f'{{"{quoted}"}}'
    return f"{{{','.join(map(_array_item, values))}}}"


def _array_item(value: object) -> str:
    if isinstance(value, str):
        if '"' in value or "\\" in value:
            value = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{value}"'
    if isinstance(value, bytes):
        return f'"\\\\x{value.hex()}"'
    return "NULL" if value is None else str(value)


def storable(value: object, *, writes: bool) -> object:
    """Return a value that the server takes: its texts have no NUL."""
    if isinstance(value, str) and "\0" in value:
        if writes:
            raise BadText("a text with a NUL cannot be stored")
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return value


@lru_cache(maxsize=1024)
def tables_changed(sql: str) -> frozenset[str]:
    """Return the tables in which a statement may leave rows behind: old ones, or deleted ones."""
    found = _CHANGED.findall(sql)
    if "DO UPDATE" in sql:
        found += _INSERTED.findall(sql)
    return frozenset((*found, "chunk_slot") if "chunk" in found else found)


@lru_cache(maxsize=1024)
def tables_written(sql: str) -> frozenset[str]:
    """Return the tables that a statement writes."""
    return tables_changed(sql).union(_INSERTED.findall(sql))


def answers(sql: str) -> bool:
    """Whether a statement has rows to give."""
    return reads(sql) or sql.lstrip().startswith("WITH") or "RETURNING" in sql


def reads(sql: str) -> bool:
    start = sql.lstrip()
    return start.startswith("SELECT") or (start.startswith("WITH") and "UPDATE " not in start)
