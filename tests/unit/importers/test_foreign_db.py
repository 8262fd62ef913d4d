"""Databases of other programs are read, and left exactly as they were."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import foreign
from bethink.errors import BadText, BethinkError, Refused, TooLarge
from bethink.importers.claude_mem import ClaudeMem
from bethink.importers.entry import ReadProgress
from bethink.importers.foreign_db import MAX_CELL_BYTES, open_foreign
from bethink.importers.remind import Remind


def state(folder: Path) -> dict[str, str]:
    """Every file of a folder, and what is in it."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
    }


@pytest.mark.parametrize("wal", [False, True], ids=["journal", "wal"])
def test_nothing_is_written(tmp_path: Path, wal: bool) -> None:
    """Neither to the database nor beside it, in either mode of writing."""
    path = foreign.claude_mem(tmp_path, wal=wal)
    before = state(tmp_path)

    entries = list(ClaudeMem(path, ReadProgress()).entries())

    assert len(entries) == 4
    assert state(tmp_path) == before


def test_a_database_in_use_is_read_as_it_stands(tmp_path: Path) -> None:
    """What its program has written and not yet moved into the file is read too."""
    path = foreign.claude_mem(tmp_path, wal=True)
    db = sqlite3.connect(path)
    db.execute("UPDATE user_prompts SET prompt_text = 'changed a moment ago'")
    db.commit()
    assert path.with_name("claude-mem.db-wal").stat().st_size
    before = hashlib.sha256(path.read_bytes()).hexdigest()

    texts = [one.found.text for one in ClaudeMem(path, ReadProgress()).entries()]  # type: ignore[union-attr]

    assert "changed a moment ago" in texts
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    db.close()


def test_a_log_that_was_left_behind_is_read(tmp_path: Path) -> None:
    """By a program that was cut off: what it says counts, and nothing new lies beside it."""
    path = foreign.claude_mem(tmp_path, wal=True)
    db = sqlite3.connect(path)
    db.execute("UPDATE user_prompts SET prompt_text = 'said before the end'")
    db.commit()
    left = tmp_path / "left"
    left.mkdir()
    for name in ("claude-mem.db", "claude-mem.db-wal"):
        shutil.copy(tmp_path / name, left / name)
    db.close()
    before = state(left)

    texts = [one.found.text for one in ClaudeMem(left / path.name, ReadProgress()).entries()]  # type: ignore[union-attr]

    assert "said before the end" in texts
    assert state(left) == before


WRITER = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1], timeout=10) as db:
    db.execute("INSERT INTO t VALUES ('written meanwhile')")
"""


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_its_program_can_write_while_it_is_read(tmp_path: Path, mode: str) -> None:
    """Between two rows nothing is locked, however long one takes to be taken in."""
    path = tmp_path / "busy.db"
    program = sqlite3.connect(path)
    program.execute(f"PRAGMA journal_mode = {mode}")
    with program:
        program.execute("CREATE TABLE t (a)")
        program.executemany("INSERT INTO t VALUES (?)", [("x" * 2000,)] * 200)

    with open_foreign(path) as db:
        rows = db.rows("t", ("a",), ("a",))
        first = next(rows)
        subprocess.run([sys.executable, "-c", WRITER, str(path)], check=True, timeout=50)
        others = list(rows)
    program.close()

    assert (first.where, len(others)) == ("row 1 of t", 199)


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE t (a PRIMARY KEY, b) WITHOUT ROWID",
        "CREATE TABLE t (a PRIMARY KEY, b, rowid)",
        "CREATE TABLE t (a PRIMARY KEY, b, rowid, oid, _rowid_)",
    ],
)
def test_rows_without_an_id_are_read_too(tmp_path: Path, table: str) -> None:
    """In their order, whatever the columns are called."""
    path = tmp_path / "ids.db"
    with foreign.database(path) as db:
        db.execute(table)
        db.executemany("INSERT INTO t (a, b) VALUES (?, ?)", [("2", "two"), ("1", "one")])

    with open_foreign(path) as db:
        assert [row.text("b") for row in db.rows("t", ("b",), ("a",))] == ["one", "two"]


def test_another_schema_is_told(tmp_path: Path) -> None:
    """By the table or the column that is missing, and the versions that are known."""
    path = tmp_path / "other.db"
    with foreign.database(path) as db:
        db.execute("CREATE TABLE episodes (id TEXT, data TEXT)")
        db.execute("CREATE VIEW concepts AS SELECT * FROM episodes")
    column = tmp_path / "column.db"
    with foreign.database(column) as db:
        db.execute("CREATE TABLE episodes (id TEXT, data TEXT)")
        db.execute("CREATE TABLE concepts (id TEXT)")

    for place, message in ((path, "no table concepts"), (column, "concepts has no column data")):
        with pytest.raises(Refused, match=message) as refused:
            list(Remind(place, ReadProgress()).entries())
        assert "Remind 0.5 to 0.14" in refused.value.remedy


@pytest.mark.parametrize(
    "content", [b"", b"no database at all", b"SQLite format 3\x00" + b"\x00" * 90]
)
def test_what_is_no_database_is_told(tmp_path: Path, content: bytes) -> None:
    """In a sentence."""
    path = tmp_path / "remind.db"
    path.write_bytes(content)

    with pytest.raises(BethinkError):
        list(Remind(path, ReadProgress()).entries())


def test_a_damaged_database_gives_what_can_be_read(tmp_path: Path) -> None:
    """And then a sentence, never a traceback."""
    path = foreign.claude_mem(tmp_path)
    content = bytearray(path.read_bytes())
    for place in range(4096, len(content), 512):
        content[place : place + 64] = b"\xff" * 64
    path.write_bytes(content)

    with pytest.raises(BethinkError):
        list(ClaudeMem(path, ReadProgress()).entries())


def test_cells_are_taken_for_what_they_are(tmp_path: Path) -> None:
    """A huge one is not loaded, one that is no text is refused, a number is a number."""
    path = tmp_path / "cells.db"
    with foreign.database(path) as db:
        db.execute("CREATE TABLE t (a, b)")
        db.execute("INSERT INTO t VALUES (zeroblob(?), 'beside')", (MAX_CELL_BYTES + 1,))
        db.execute("INSERT INTO t VALUES (CAST(x'ff61' AS TEXT), 2.5)")
        db.execute("INSERT INTO t VALUES (NULL, 'words')")

    with open_foreign(path) as db:
        huge, bad, empty = db.rows("t", ("a", "b", "none"), ())

    assert isinstance(huge.refused, TooLarge)
    assert huge.first("a") == ""
    with pytest.raises(BadText, match="a is not UTF-8 at byte 1"):
        bad.text("a")
    assert bad.number("b") == 2.5
    assert (empty.text("a"), empty.number("b")) == ("", None)


def test_of_all_columns_one_that_is_too_large_refuses_no_row(tmp_path: Path) -> None:
    """A vector beside a memory is not read, but only who asks for it hears why."""
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE memory (id, words, vector)")
        row = (7, "the barn is red", b"\xff" * (MAX_CELL_BYTES + 1))
        db.execute("INSERT INTO memory VALUES (?, ?, ?)", row)
    with open_foreign(path) as found:
        (all_of_it,) = found.rows("memory", (), ("id",))
        (named,) = found.rows("memory", ("id", "vector"), ("id",))

    assert all_of_it.refused is None
    assert (all_of_it.text("id"), all_of_it.first("words")) == ("7", "the barn is red")
    assert (all_of_it.first("vector"), all_of_it.number("vector")) == ("", None)
    with pytest.raises(TooLarge):
        all_of_it.text("vector")
    assert isinstance(named.refused, TooLarge)
