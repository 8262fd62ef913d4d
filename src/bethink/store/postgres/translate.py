"""Statements of the shared store modules as PostgreSQL wants them, each for one space.

The modules of ``store.sqlite`` say in SQL what a store does. Here each of their statements is
translated once: a table becomes its rows of one space, an insert names the space, and the few
functions that have other names get them. Every statement so carries the space's id itself:
row-level security is the second fence, not the first, and a distributed server can tell from
the statement which shard it is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreError
from bethink.store.postgres.schema import SCHEMA, SPACE_ID, tables

Kind = Literal["word", "text", "number", "mark", "sign"]

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+|--[^\n]*)
    |(?P<text>'(?:[^']|'')*'|"(?:[^"]|"")*")
    |(?P<mark>\?\d*)
    |(?P<word>[A-Za-z_$][A-Za-z_0-9$]*)
    |(?P<number>0x[0-9a-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    |(?P<sign>::|<>|<=|>=|\|\||->>|->|\#>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """A word, literal, mark of a bound value, or sign."""

    kind: Kind
    text: str

    def is_word(self, *names: str) -> bool:
        """Whether it is one of these words, in upper case."""
        return self.kind == "word" and self.text.upper() in names


class Group(tuple["Token | Group", ...]):
    """What stands between parentheses."""

    __slots__ = ()


Node = Token | Group
NO_TOKEN = Token("sign", "")


def parse(sql: str) -> Group:
    """Return the tree of a statement. Marks are numbered: ``?`` is one more than the last."""
    stack: list[list[Node]] = [[]]
    last_mark = 0
    for token in _tokens(sql):
        if token.text == "(":
            stack.append([])
        elif token.text == ")":
            group = Group(stack.pop())
            if not stack:
                raise StoreError(f"a parenthesis is closed too often: {sql}")
            stack[-1].append(group)
        elif token.kind == "mark":
            number = int(token.text[1:]) if len(token.text) > 1 else last_mark + 1
            last_mark = max(last_mark, number)
            stack[-1].append(Token("mark", str(number)))
        else:
            stack[-1].append(token)
    if len(stack) != 1:
        raise StoreError(f"a parenthesis is not closed: {sql}")
    return Group(stack[0])


def _tokens(sql: str) -> Iterator[Token]:
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind in ("word", "text", "number", "mark", "sign"):
            yield Token(kind, match[0])  # type: ignore[arg-type]  # one of the kinds


def at(nodes: Sequence[Node], place: int) -> Token:
    """Return the token at a place; an empty one beyond the end, and for a group."""
    if 0 <= place < len(nodes):
        node = nodes[place]
        if isinstance(node, Token):
            return node
    return NO_TOKEN


def group_at(nodes: Sequence[Node], place: int) -> Group | None:
    """Return the group at a place, if there is one."""
    node = nodes[place] if 0 <= place < len(nodes) else None
    return node if isinstance(node, Group) else None


def split_at_commas(nodes: Iterable[Node]) -> list[Group]:
    """Return the parts between commas; none where there is nothing."""
    parts: list[list[Node]] = [[]]
    for node in nodes:
        if isinstance(node, Token) and node.text == ",":
            parts.append([])
        else:
            parts[-1].append(node)
    return [Group(part) for part in parts] if parts != [[]] else []


def find_word(nodes: Sequence[Node], *names: str, start: int = 0) -> int:
    """Return the place of the first of these words at this level; the length without one."""
    for place in range(start, len(nodes)):
        if at(nodes, place).is_word(*names):
            return place
    return len(nodes)


# The indexes of trigrams: tables of their own kind in SQLite.
WORD_TABLES = frozenset({"grams", "vocabulary"})
_CLAUSES = ("WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "SELECT")
_AFTER_TABLE = (
    *_CLAUSES, "ON", "JOIN", "CROSS", "LEFT", "INNER", "INDEXED", "SET", "RETURNING", "USING",
)  # fmt: skip
_TYPES = {"INTEGER": "bigint", "REAL": "double precision", "BLOB": "bytea"}
_NUMBERED = {"file_edit": ("number",), "model": ("mid",)}  # columns that SQLite counts itself
_PLAIN_COLUMN = re.compile(r"([a-z]\w* \. )?[a-z]\w*")


class Source(NamedTuple):
    """Where the value of a parameter comes from.

    ``kind`` is "value", "array" (of a list), "grams" (of the part of a word query), "space", or
    the name of what a view hides.
    """

    kind: str
    mark: int = 0
    part: int = 0


class Statement(NamedTuple):
    """A statement for the server, and where its parameters come from."""

    sql: str
    sources: tuple[Source, ...]


class Shape(NamedTuple):
    """What a list or a word query, bound to a mark, makes of a statement."""

    type: str = "text[]"
    parts: int = 1


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """The tables as a reader below a ceiling sees them, by name, and what is hidden.

    Known by its identity, since statements are translated once for each.
    """

    tables: Mapping[str, Group]
    hidden: Mapping[str, str]


NO_VIEW = View({}, {})


def special_marks(tree: Group) -> dict[int, str]:
    """Return the marks that stand for lists ("list") and word queries (the table's name)."""
    found: dict[int, str] = {}
    for place, node in enumerate(tree):
        if isinstance(node, Group):
            before = at(tree, place - 1)
            sole = at(node, 0) if len(node) == 1 else None
            if sole is not None and sole.kind == "mark" and before.is_word("CARRAY", "JSON_EACH"):
                found[int(sole.text)] = "list"
            found.update(special_marks(node))
        elif node.is_word("MATCH"):
            found[int(at(tree, place + 1).text)] = at(tree, place - 1).text
    return found


def translate(tree: Group, shapes: Mapping[int, Shape], view: View = NO_VIEW) -> Statement:
    """Translate a statement whose lists and word queries have these shapes."""
    renderer = _Renderer(shapes, view)
    sql = renderer.statement(tree)
    return Statement(sql, tuple(renderer.sources))


def conflict_of(name: str, nodes: Group) -> str | None:
    """Return what an insert does with a row that exists; None where that needs a parameter."""
    renderer = _Renderer({}, NO_VIEW)
    text = renderer._conflict(name, nodes)
    return None if renderer.sources else text.rstrip()


class _Renderer:
    """The text of one statement and its parameters."""

    def __init__(self, shapes: Mapping[int, Shape], view: View) -> None:
        self._shapes = shapes
        self._view = view
        self.sources: list[Source] = []
        self._aliases = 0
        self._numbered = ""  # the ordered rows that are numbered, by their alias

    def parameter(self, source: Source) -> str:
        """Return the sign of a parameter; the same value has the same one."""
        if source not in self.sources:
            self.sources.append(source)
        return f"${self.sources.index(source) + 1}"

    @property
    def space(self) -> str:
        return f"{self.parameter(Source('space'))}::bigint"

    # Statements

    def statement(self, tree: Group) -> str:
        first = at(tree, 0)
        if first.is_word("INSERT"):
            return self._insert(tree)
        if first.is_word("UPDATE"):
            return self._change(tree, "SET", find_word(tree, "SET") - 1)
        if first.is_word("DELETE"):
            return self._change(tree, "", 2)
        return self._ordered(tree)

    def _ordered(self, tree: Group) -> str:
        """Return a query whose rows come in the order in which SQLite gives them.

        That is the order of the list or of the ordered rows that it starts from, where it
        names no other.
        """
        start = find_word(tree, "FROM")
        words = ("ORDER", "GROUP", "UNION", "EXCEPT", "DISTINCT")
        is_total = any(
            at(tree, place).is_word("COUNT", "MAX", "MIN", "SUM", "TOTAL", "AVG")
            and (group := group_at(tree, place + 1)) is not None
            and len(split_at_commas(group)) == 1  # of several values the largest is no total
            for place in range(start)
        )
        if not at(tree, 0).is_word("SELECT", "WITH") or find_word(tree, *words) < len(tree):
            return self.query(tree)
        alias = "" if is_total else _leading_rows(tree, start)
        if not alias:
            return self.query(tree)
        self._numbered = alias
        limit = find_word(tree, "LIMIT")
        rest = self.query(Group(tree[limit:]))
        return f"{self.query(Group(tree[:limit]))} ORDER BY {alias}.key {rest}".rstrip()

    def _insert(self, tree: Group) -> str:
        place = find_word(tree, "INTO") + 1
        name, columns = at(tree, place).text, group_at(tree, place + 1)
        if columns is None:
            raise StoreError(f"an insert into {name} does not name its columns")
        conflict = find_word(tree, "ON", start=place + 2)
        end = min(conflict, find_word(tree, "RETURNING", start=place + 2))
        names = [at(part, 0).text for part in split_at_commas(columns)]
        number = [column for column in _NUMBERED.get(name, ()) if column not in names]
        written = [
            f"INSERT INTO {SCHEMA}.{name} ({', '.join((SPACE_ID, *number, *names))})",
            self._inserted(Group(tree[place + 2 : end]), name, number),
        ]
        if at(tree, 1).is_word("OR"):
            written.append(on_conflict(name, names, replace=at(tree, 2).is_word("REPLACE")))
        elif conflict < len(tree):
            written.append(self._conflict(name, Group(tree[conflict:])))
        else:
            written.append(self.query(Group(tree[end:])))
        return " ".join(written)

    def _inserted(self, nodes: Group, name: str, number: Sequence[str]) -> str:
        """Return the rows to insert, with the space and the next number of the table."""
        first = ", ".join((self.space, *(self._next(name, column) for column in number)))
        if at(nodes, 0).is_word("VALUES"):
            rows = [self.query(node) for node in nodes if isinstance(node, Group)]
            if number:  # computed: a distributed server takes no query among the values
                return f"SELECT {first}, {rows[0]}"
            return f"VALUES {', '.join(f'({first}, {row})' for row in rows)}"
        return f"SELECT {first}, {self.query(Group(nodes[1:]))}"

    def _next(self, name: str, column: str) -> str:
        return (
            f"(SELECT coalesce(max({column}), 0) + 1 FROM {SCHEMA}.{name}"
            f" WHERE {SPACE_ID} = {self.space})"
        )

    def _conflict(self, name: str, nodes: Group) -> str:
        """Return what an insert does with a row that exists.

        A column alone would be that of the row or that of the insert: it is the row's.
        """
        target = group_at(nodes, 2)
        keys = [at(part, 0).text for part in split_at_commas(target)] if target else []
        do = find_word(nodes, "DO")
        if at(nodes, do + 1).is_word("NOTHING"):
            return "ON CONFLICT DO NOTHING"
        columns, assigned = set(tables()[name].columns), find_word(nodes, "SET") + 1
        ends = find_word(nodes, "WHERE", "RETURNING", start=assigned)
        parts = [
            f"{at(part, 0).text} = {self.query(_qualified(Group(part[2:]), name, columns))}"
            for part in split_at_commas(nodes[assigned:ends])
        ]
        rest = self.query(_qualified(Group(nodes[ends:]), name, columns))
        key = ", ".join((SPACE_ID, *(keys or conflict_key(name))))
        return f"ON CONFLICT ({key}) DO UPDATE SET {', '.join(parts)} {rest}"

    def _change(self, tree: Group, keyword: str, place: int) -> str:
        """Return an update or a delete, of rows of the space."""
        name = at(tree, place).text
        where = find_word(tree, "WHERE")
        end = find_word(tree, "RETURNING", start=min(where, place + 1))
        head = f"{SCHEMA}.{name} {self.query(Group(tree[place + 1 : min(where, end)]))}"
        own = f"{SCHEMA}.{name}.{SPACE_ID} = {self.space}"
        condition = self.query(Group(tree[where + 1 : end])) if where < end else ""
        condition = f" AND ({condition})" if condition else ""
        start = "UPDATE" if keyword else "DELETE FROM"
        return f"{start} {head} WHERE {own}{condition} {self.query(Group(tree[end:]))}".rstrip()

    # Queries

    def query(self, nodes: Group) -> str:
        """Return a query, or any part of a statement."""
        written: list[str] = []
        place, expects_table, in_from = 0, False, False
        while place < len(nodes):
            node = nodes[place]
            if isinstance(node, Token):
                if node.is_word("FROM"):
                    in_from = expects_table = True
                elif node.is_word(*_CLAUSES):
                    in_from = expects_table = False
                elif in_from and (node.is_word("JOIN") or node.text == ","):
                    expects_table = True
                elif node.is_word("ON"):
                    expects_table = False
            is_table = expects_table and not (
                isinstance(node, Token) and (node.is_word("FROM", "JOIN") or node.text == ",")
            )
            if is_table and not at(nodes, place).is_word("CROSS", "LEFT", "INNER"):
                text, place = self._relation(nodes, place)
                expects_table = False
            else:
                text, place = self._piece(nodes, place)
            written.append(text)
        return " ".join(filter(None, written))

    def _relation(self, nodes: Group, place: int) -> tuple[str, int]:
        """Return what stands in the place of a table, and the place after it."""
        name, place = _table_name(nodes, place)
        arguments = group_at(nodes, place)
        if not name and arguments is not None:
            written, place = f"({self.query(arguments)})", place + 1
            alias, place = self._alias(nodes, place, "")
            if alias == self._numbered:
                written = f"(SELECT *, row_number() OVER () AS key FROM {written} AS ordered)"
            return f"{written} AS {alias}", place
        if arguments is not None and name.lower() in {"carray", "json_each"}:
            alias, place = self._alias(nodes, place + 1, "")
            return self._list(arguments, alias), place
        bare = name.removeprefix("main.").removeprefix("temp.")
        alias, place = self._alias(nodes, place, bare)
        if bare in WORD_TABLES:
            return f"{self._words(bare, _matched_mark(nodes, place, bare))} AS {alias}", place
        return f"{self._rows(name)} AS {alias}" if self._is_table(name) else (
            bare if alias == bare else f"{bare} AS {alias}"
        ), place

    def _is_table(self, name: str) -> bool:
        return name.startswith("temp.") or name.removeprefix("main.") in tables()

    def _rows(self, name: str) -> str:
        """Return the rows of a table that the reader sees."""
        if name.startswith("temp."):
            return self._hidden(name.removeprefix("temp."))
        if name in self._view.tables:
            return f"({self.query(self._view.tables[name])})"
        table = name.removeprefix("main.")
        return f"(SELECT * FROM {SCHEMA}.{table} WHERE {SPACE_ID} = {self.space})"

    def _hidden(self, name: str) -> str:
        """Return what a view hides, from the parameters that list it."""
        if name not in self._view.hidden:
            raise StoreError(f"nothing is known of {name}")
        columns = self._view.hidden[name].split(", ")
        arrays = (
            f"{self.parameter(Source(name, part=number))}::{column.split(' ')[1]}[]"
            for number, column in enumerate(columns)
        )
        names = ", ".join(column.split(" ")[0] for column in columns)
        return f"(SELECT * FROM unnest({', '.join(arrays)}) AS hidden ({names}))"

    def _alias(self, nodes: Group, place: int, name: str) -> tuple[str, int]:
        """Return the name of a relation and the place after it; without a name a new one."""
        if at(nodes, place).is_word("AS"):
            name, place = at(nodes, place + 1).text, place + 2
        elif at(nodes, place).kind == "word" and not at(nodes, place).is_word(*_AFTER_TABLE):
            name, place = at(nodes, place).text, place + 1
        if at(nodes, place).is_word("INDEXED"):
            place += 3
        if not name:
            self._aliases += 1
            name = f"q{self._aliases}"
        return name, place

    def _list(self, arguments: Group, alias: str) -> str:
        """Return a list as rows with ``value`` and ``key``."""
        named = f"WITH ORDINALITY AS {alias} (value, key)"
        if at(arguments, 0).kind == "mark" and len(arguments) == 1:
            mark = int(at(arguments, 0).text)
            shape = self._shapes[mark]
            return f"unnest({self.parameter(Source('array', mark))}::{shape.type}) {named}"
        written = self.query(arguments)
        return f"jsonb_array_elements_text(({written})::jsonb) {named}"

    # Pieces of expressions

    def _piece(self, nodes: Group, place: int) -> tuple[str, int]:
        """Return the text of a node, with its arguments, and the place after it."""
        node = nodes[place]
        if isinstance(node, Group):
            return f"({self.query(node)})", place + 1
        if node.kind == "mark":
            return self._mark(nodes, place), place + 1
        return (node.text, place + 1) if node.kind != "word" else self._word(nodes, place)

    def _word(self, nodes: Group, place: int) -> tuple[str, int]:
        """Return the text of a word, or of the function or operator it begins."""
        node, arguments = at(nodes, place), group_at(nodes, place + 1)
        name = node.text.lower()
        found = _TYPES.get(node.text, node.text), place + 1
        if arguments is not None and name in _FUNCTIONS and at(nodes, place - 1).text != ".":
            found = self._function(name, arguments), place + 2
        elif node.is_word("CROSS") and _joins_on(nodes, place + 2):
            found = "", place + 1
        elif name in WORD_TABLES and at(nodes, place + 1).is_word("MATCH"):
            found = "true", place + 3
        elif name in {"main", "temp"} and at(nodes, place + 1).text == ".":
            found = "", place + 2
        return found

    def _mark(self, nodes: Group, place: int) -> str:
        sign = self.parameter(Source("value", int(at(nodes, place).text)))
        if at(nodes, place + 1).is_word("IS"):
            return f"{sign}::text"  # the server cannot tell the type of what may be missing
        # A limit of -1 is none.
        return f"nullif({sign}::bigint, -1)" if at(nodes, place - 1).is_word("LIMIT") else sign

    def _function(self, name: str, arguments: Group) -> str:
        if name == "cast":
            is_bytes = at(arguments, len(arguments) - 1).is_word("BLOB")
            value = f"({self.query(Group(arguments[:-2]))})::text"
            return f"convert_to({value}, 'UTF8')" if is_bytes else f"cast({self.query(arguments)})"
        parts = [self.query(part) for part in split_at_commas(arguments)]
        return _FUNCTIONS[name](parts, self.query(arguments))

    # Word indexes

    def _words(self, table: str, mark: int) -> str:
        """Return the rows of a word index that match the query bound to a mark."""
        parts = range(self._shapes[mark].parts)
        signs = [f"{self.parameter(Source('grams', mark, part))}::text[]" for part in parts]
        if table == "grams":
            where = " OR ".join(f"folded LIKE ALL ({sign})" for sign in signs)
            return (
                f"(SELECT rid AS rowid FROM {SCHEMA}.gram"
                f" WHERE {SPACE_ID} = {self.space} AND ({where}))"
            )
        found = (
            f"SELECT tid AS rowid FROM {SCHEMA}.term_gram WHERE {SPACE_ID} = {self.space}"
            f" AND gram = ANY ({sign}) GROUP BY tid HAVING count(*) = cardinality({sign})"
            for sign in signs
        )
        return f"({' UNION '.join(found)})"


def _matched_mark(nodes: Group, place: int, table: str) -> int:
    """Return the mark of the query that a word index is searched for, in the same SELECT."""
    for here in range(place, find_word(nodes, "UNION", "EXCEPT", "INTERSECT", start=place)):
        if at(nodes, here).text == table and at(nodes, here + 1).is_word("MATCH"):
            return int(at(nodes, here + 2).text)
    raise StoreError(f"{table} can only be searched")


def _leading_rows(tree: Group, start: int) -> str:
    """Return the alias of the list, or of the ordered rows, that a query starts from."""
    for place in range(start, len(tree)):
        group = group_at(tree, place)
        is_list = at(tree, place - 1).is_word("CARRAY", "JSON_EACH")
        is_first = place == start + 1
        if (
            group is not None
            and at(tree, place + 1).is_word("AS")
            and (is_list or (is_first and find_word(group, "ORDER") < len(group)))
        ):
            return at(tree, place + 2).text
        if at(tree, place).is_word("WHERE"):
            break
    return ""


def _table_name(nodes: Group, place: int) -> tuple[str, int]:
    """Return the name of a table with its database, and the place after it."""
    if at(nodes, place).kind != "word":
        return "", place
    if at(nodes, place + 1).text == ".":
        return f"{at(nodes, place).text}.{at(nodes, place + 2).text}", place + 3
    return at(nodes, place).text, place + 1


def _joins_on(nodes: Group, place: int) -> bool:
    """Whether a join has a condition, so that it is no CROSS JOIN elsewhere."""
    words = ("ON", "JOIN", "CROSS", "LEFT", *_CLAUSES)
    found = find_word(nodes, *words, start=place)
    return at(nodes, found).is_word("ON")


def _qualified(nodes: Group, table: str, columns: set[str]) -> Group:
    """Return nodes in which columns that stand alone belong to a table."""
    found: list[Node] = []
    for place, node in enumerate(nodes):
        if isinstance(node, Group):
            found.append(_qualified(node, table, columns))
            continue
        before = at(nodes, place - 1)
        alone = "." not in {before.text, at(nodes, place + 1).text}
        alone = alone and not before.is_word("FROM", "JOIN", "AS")
        if alone and node.text in columns and group_at(nodes, place + 1) is None:
            found += (Token("word", table), Token("sign", "."))
        found.append(node)
    return Group(found)


def conflict_key(name: str) -> tuple[str, ...]:
    """Return the columns by which a row of a table is known."""
    return ("edit_hash",) if name == "file_edit" else tables()[name].key


def on_conflict(name: str, columns: Iterable[str], *, replace: bool) -> str:
    """Return what an insert does with a row that exists: replace it, or leave it."""
    if not replace:
        return "ON CONFLICT DO NOTHING"
    key = conflict_key(name)
    parts = ", ".join(f"{column} = excluded.{column}" for column in columns if column not in key)
    return f"ON CONFLICT ({', '.join((SPACE_ID, *key))}) DO UPDATE SET {parts}"


def _coalesce(parts: list[str], whole: str) -> str:
    """Return the first value that is not missing; of two columns in a form that is looked up.

    Behind row-level security an index serves only functions that are leakproof: CASE is.
    """
    if len(parts) == 2 and all(_PLAIN_COLUMN.fullmatch(part) for part in parts):
        return f"(CASE WHEN {parts[0]} IS NULL THEN {parts[1]} ELSE {parts[0]} END)"
    return f"coalesce({whole})"


_FUNCTIONS: dict[str, Callable[[list[str], str], str]] = {
    "cast": lambda _, whole: f"cast({whole})",
    "coalesce": _coalesce,
    "instr": lambda _, whole: f"strpos({whole})",
    "iif": lambda parts, _: f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END",
    "max": lambda parts, whole: f"{'greatest' if len(parts) > 1 else 'max'}({whole})",
    "min": lambda parts, whole: f"{'least' if len(parts) > 1 else 'min'}({whole})",
    "json_quote": lambda _, whole: f"to_json(({whole})::text)::text",
    "json_group_array": lambda _, whole: f"coalesce(json_agg({whole})::text, '[]')",
    "total": lambda _, whole: f"coalesce(sum({whole}), 0)::float8",
    "round": lambda parts, _: f"round(({parts[0]})::numeric, {parts[1]})::float8",
    "substr": lambda parts, whole: (
        f"right({parts[0]}, {parts[1].removeprefix('-')})"
        if parts[1].startswith("-")
        else f"substr({whole})"
    ),
}
