"""Read the tables of another program: rows become memories, links and edges, as declared.

A reader says which tables hold memories, how a row becomes one, and by which columns a row
is identified. Row numbers alone do not identify: two databases both begin at 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.importers import entry
from bethink.importers.foreign_db import ForeignDb, ForeignRecords, ForeignRow, open_foreign
from bethink.model import Draft, FileEdit
from bethink.ports import PriorUse

Tables = ForeignDb | ForeignRecords


class Table(NamedTuple):
    """A table of memories: how a row becomes a draft, and which columns identify it.

    ``draft`` returns None for a row that is no memory, such as a deleted one.
    """

    draft: Callable[[entry.Fields], Draft | None]
    key: tuple[str, ...] = ("id", "created_at")
    use: Callable[[entry.Fields], PriorUse | None] = lambda _: None


class LinkTable(NamedTuple):
    """A table of links between rows of memory tables.

    ``src`` and ``dst`` are columns with the first key of a row of the tables ``ends``; ``dst``
    may be a JSON list of them. ``type`` is a column whose values ``types`` translates; of a
    table without such a column it is the type itself.
    """

    name: str
    src: str
    dst: str
    ends: tuple[str, str]
    type: str
    types: Mapping[str, str] = {}
    weight: str = ""
    context: str = ""


class EdgeTable(NamedTuple):
    """A table of relations between entities; ``time`` is when a relation was stated."""

    name: str
    src: str
    relation: str
    dst: str
    weight: str = ""
    time: str = "created_at"


class TableReader(entry.Reader):
    """The databases of one program, mostly one; subclasses declare their tables."""

    kind: ClassVar[str]
    supported: ClassVar[str]
    required: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]]
    link_tables: ClassVar[tuple[LinkTable, ...]] = ()
    edge_table: ClassVar[EdgeTable | None] = None
    # The table of file edits, the column of their times, and the table whose rows tell of them.
    edit_table: ClassVar[tuple[str, str, str]] = ("", "", "")

    def tables(self, db: Tables) -> Mapping[str, Table]:
        """Return the tables of memories; those that others are made from come first."""
        raise NotImplementedError

    def entity_name(self, value: str) -> str:
        """Return the entity that a column of the edge table names, as ``kind:name``."""
        raise NotImplementedError

    def databases(self) -> list[Path]:
        """Return the files to read."""
        return [self._path]

    def entries(self) -> Iterator[entry.Entry]:
        """Yield a memory for every row, then a fact for every relation of entities."""
        self._gauge.unit = "rows"
        for db in self.open_each():
            tables = self.tables(db)
            self._gauge.total += db.count(*tables)
            for name, table in tables.items():
                for row in db.rows(name, (), table.key):
                    self._gauge.done += 1
                    yield from self._row_entries(name, table, row)
            for relation, weight, at in self._relations(db):
                fact = relation.entry()
                assert isinstance(fact.found, Draft)
                found = fact.found._replace(confidence=weight, occurred_at=at)
                yield fact._replace(found=found)

    def links(self) -> Iterator[entry.SourceLink]:
        """Yield the links of memories, and the edges of entities."""
        for db in self.open_each():
            ids = self.ids_by_table(db, {end for table in self.link_tables for end in table.ends})
            for table in self.link_tables:
                yield from _table_links(db, table, ids)
            for relation, weight, _ in self._relations(db):
                yield from relation.link(weight)

    def edits(self) -> Iterator[FileEdit]:
        """Yield what was done to files."""
        name, time, of = self.edit_table
        for db in self.open_each() if name else ():
            ids = self.ids_by_table(db, (of,))[of]
            for row in db.rows(name, (), (time,)):
                fields, edit = self.row_fields(row), None
                with suppress(Refused):  # what cannot be read is left out
                    edit = self.file_edit(fields, ids) if isinstance(fields, entry.Fields) else None
                if edit is not None:
                    yield edit

    def file_edit(self, row: entry.Fields, ids: Mapping[str, str]) -> FileEdit | None:
        """Return the edit that a row describes, if any; ``ids`` are the entries of ``of``."""
        raise NotImplementedError

    def ids_by_table(self, db: Tables, names: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the entries' ids of the rows of some tables, by the first column of the key."""
        tables = self.tables(db)
        return {name: dict(self._row_ids(db, name, tables[name])) for name in names}

    def _row_ids(self, db: Tables, name: str, table: Table) -> Iterator[tuple[str, str]]:
        for row in db.rows(name, table.key, table.key):
            yield row.first(table.key[0]), self.row_id(name, [row.first(one) for one in table.key])

    def row_id(self, table: str, key: list[str]) -> str:
        """Return the id of the entry that a row becomes."""
        return entry.digest(self.kind, table, *key)

    def origin(self, table: str, key: str) -> str:
        """Return the name under which people find a row."""
        return f"{table} {key}"

    def row_fields(self, row: ForeignRow) -> entry.Fields | Refused:
        """Return the cells of a row as fields, or why they cannot be read.

        A cell that is not read refuses the row when it is asked for: others are not needed.
        """
        return entry.Fields({name: row.text_or_refusal(name) for name in row.cells})

    @contextmanager
    def open(self, path: Path) -> Iterator[Tables]:
        """Open a database, and refuse one without the tables that are needed."""
        with open_foreign(path) as db:
            db.require(self.supported, **dict(self.required))
            yield db

    def open_each(self) -> Iterator[Tables]:
        """Open the databases one after another."""
        for path in self.databases():
            with self.open(path) as db:
                yield db

    def _row_entries(self, name: str, table: Table, row: ForeignRow) -> Iterator[entry.Entry]:
        """Yield the memory of a row, several where its text is too long for one, or why not."""
        fields = self.row_fields(row) if row.refused is None else row.refused
        use = None
        try:
            for one in table.key:
                row.text(one)  # what identifies the row must be readable
            draft = table.draft(fields) if isinstance(fields, entry.Fields) else fields
            if isinstance(fields, entry.Fields) and draft is not None:
                use = table.use(fields)
        except Refused as refused:
            draft = refused
        if isinstance(draft, Refused):
            yield entry.Entry(row.where, draft)
        elif draft is not None and not draft.text:
            yield entry.Entry(row.where, Refused("the row has no content"))
        elif draft is not None:
            own = self.row_id(name, [row.first(one) for one in table.key])
            origin = self.origin(name, row.first(table.key[0]))
            for number, text in enumerate(entry.split_text(draft.text)):
                part = entry.digest(own, str(number)) if number else own
                yield entry.Entry(
                    row.where, draft._replace(text=text), part, origin=origin, use=use
                )

    def _relations(self, db: Tables) -> Iterator[tuple[entry.Relation, float, datetime | None]]:
        """Yield the relations of entities, with the weight and the time of each."""
        table = self.edge_table
        if table is None:
            return
        columns = (table.src, table.relation, table.dst, table.weight, table.time)
        for row in db.rows(table.name, columns, columns[:3]):
            try:
                src, dst = (self.entity_name(row.text(name)) for name in (table.src, table.dst))
                kind = entry.line_of(row.text(table.relation))
            except Refused:
                continue  # skip a relation whose ends cannot be read
            if src and dst and kind and src != dst:
                own = self.row_id("edges", [src, kind, dst])
                relation = entry.Relation(row.where, own, src, kind, dst)
                yield relation, _weight(row, table.weight), entry.time_of(row.first(table.time))


def _weight(row: ForeignRow, column: str) -> float:
    return entry.clamped_number(row.number(column), 0.01, 1, 0.5) if column else 1.0


def _table_links(
    db: Tables, table: LinkTable, ids: Mapping[str, Mapping[str, str]]
) -> Iterator[entry.SourceLink]:
    columns = (table.src, table.dst, table.type, table.weight, table.context)
    src_ids, dst_ids = (ids[end] for end in table.ends)
    for row in db.rows(table.name, columns, (table.src, table.dst, table.type)):
        src, targets = src_ids.get(row.first(table.src)), row.first(table.dst)
        written = row.first(table.type) if table.type in row.cells else table.type
        kind = table.types.get(written, written)
        context = entry.line_of(row.first(table.context), 500) if table.context else ""
        for target in map(str, entry.list_of(targets) or [targets]):
            dst = dst_ids.get(target)
            if src is not None and dst is not None:
                yield entry.item_link(
                    src, kind, dst, row.where, _weight(row, table.weight), context
                )
