"""A database with the schema and nothing around it, for tests of the indexes alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw

from bethink.model import Item
from bethink.store.analysis import extra_index_words
from bethink.store.sql.connection import Database
from bethink.store.sql.search import word_index as words
from bethink.store.sql.search.scope import Predicate
from bethink.store.sqlite.schema import migrate, migrations

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
_FIXED: dict[str, Any] = dict.fromkeys(("source", "source_class", "writer"), "test")
_FIXED |= {"level": "item", "kind": "note", "content_hash": ""}
_FIXED |= {"trust": 2, "integrity": 2, "credibility": 6, "classification": 1}
EVERYTHING = Predicate("i.live_to IS NULL", (), plain=True)


def within(sql: str, *values: Any) -> Predicate:
    """A predicate that is not plain: somebody set a filter."""
    return Predicate(f"i.live_to IS NULL AND {sql}", values, plain=False)


def empty_database(path: Path | None = None) -> apsw.Connection:
    db = apsw.Connection(str(path or ":memory:"))
    migrate(db, None, migrations())
    return db


def index_rows(db: apsw.Connection) -> list[words.IndexRow]:
    rows = db.execute("SELECT rid, text, about, original FROM item ORDER BY rid")
    return [words.IndexRow(*row) for row in rows]


def add(db: apsw.Connection, texts: Iterable[str], **columns: Any) -> list[words.IndexRow]:
    """Stores and indexes texts, each in a row of its own; ids are m1, m2, ..."""
    first = (db.execute("SELECT max(rid) FROM item").get or 0) + 1
    rows = []
    for rid, text in enumerate(texts, start=first):
        row = words.IndexRow(rid, text, extra_index_words(text), columns.get("original"))
        at = int((START + timedelta(minutes=rid)).timestamp() * 1000)
        values = dict(
            _FIXED,
            rid=rid,
            id=f"m{rid}",
            text=text,
            about=row.about,
            stored_at=at,
            live_from=at,
            length=words.split_row(db, row).length,
            fingerprint=f"f{rid}",
        )
        values |= columns
        names = ", ".join(values)
        marks = ", ".join("?" * len(values))
        db.execute(f"INSERT INTO item ({names}) VALUES ({marks})", tuple(values.values()))
        rows.append(row)
    words.index_rows(db, rows)
    return rows


class _Hydrate:
    """Reads the items of rows, each when it is asked for."""

    def __call__(self, db: Database, rids: Sequence[int]) -> dict[int, Item]:
        found = {}
        for rid in rids:
            row = db.execute("SELECT id, text FROM item WHERE rid = ?", (rid,)).fetchall()
            if row:
                found[rid] = Item(*row[0], stored_at=START, source="test")
        return found

    def ahead(self, db: Database, rids: Sequence[int]) -> None:
        """Nothing is read ahead from a file."""


hydrate = _Hydrate()
