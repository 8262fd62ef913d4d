"""Rot in the definition of a table: it is named; indexes and triggers are made right."""

from __future__ import annotations

import random
import re
import shutil
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import StoreDamaged
from rows import each_row

PAGE = 4096
TEXTS = ("The harbour crane is painted yellow", "The ferry to Odense leaves at noon")


def open_memory(path: Path) -> Memory:
    return Memory.open("space", path=path, embedder="hash", settings=Settings())


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "space.db"
    with open_memory(path) as memory:
        memory.remember_many([{"text": text} for text in TEXTS])
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    for file in sound.parent.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path / sound.name


def definitions(path: Path) -> dict[str, str]:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA writable_schema = ON")
        return dict(db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"))


def write_definition(path: Path, name: str, sql: str) -> None:
    with closing(apsw.Connection(str(path))) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (sql, name))


def use_every_index(path: Path) -> None:
    with open_memory(path) as memory:
        memory.recall("harbour crane")
        memory.remember("A note that uses every index")


def assert_all_is_there(path: Path) -> None:
    with open_memory(path) as memory:
        assert {item.text for item in memory.browse(limit=10)} >= set(TEXTS)
        assert memory.recall("harbour crane").hits[0].item.text == TEXTS[0]
        memory.remember("The new pier opens in spring")
        assert [one for one in memory.doctor() if not one.ok and not one.warning] == []


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("item", "text TEXT", "texX TEXT"),
        ("item", "TABLE item", "TABLE itXm"),
        ("item", "CREATE TABLE", "CREATE TAXLE"),
        ("item", "INTEGER", "INTEGXR"),
        ("item", "occurred_at", "occurred_aX"),
        ("item_source", "INDEX", "INXEX"),
        ("meta", "value", "valXe"),
        ("grams", "fts5", "ftX5"),
    ],
)
def test_a_rotten_definition_is_told_and_the_file_stays_as_it_is(
    path: Path, name: str, right: str, wrong: str
) -> None:
    """The error says that the space is damaged, and that a backup helps."""
    write_definition(path, name, definitions(path)[name].replace(right, wrong))
    content = path.read_bytes()

    with pytest.raises(StoreDamaged) as told:
        use_every_index(path)

    assert "backup" in told.value.remedy
    assert path.read_bytes()[PAGE:] == content[PAGE:]


@each_row("seed", range(25))
def test_rot_anywhere_in_the_definitions(path: Path, seed: int) -> None:
    """Any letter of any definition: no bug, no wrong answer, and the memories stay."""
    dice = random.Random(f"definitions {seed}")
    before = definitions(path)
    name = dice.choice(sorted(before))
    at, letter = dice.randrange(len(before[name])), chr(dice.randrange(33, 127))
    write_definition(path, name, before[name][:at] + letter + before[name][at + 1 :])
    with suppress(StoreDamaged):  # no other error
        use_every_index(path)

    write_definition(path, name, before[name])
    assert_all_is_there(path)


@pytest.mark.parametrize(("offset", "rot"), [(5, b"\xff"), (0, b"\xff"), (-5, b"\xff" * 5)])
def test_rows_of_the_schema_that_cannot_be_read_are_told(
    path: Path, offset: int, rot: bytes
) -> None:
    """A name or a type that is no text, or no row at all: no bug, and opening tells it."""
    content = bytearray(path.read_bytes())
    for found in re.finditer(b"indexitem_sourceitem", bytes(content)):
        at = found.start() + offset
        content[at : at + len(rot)] = rot
    path.write_bytes(content)

    with pytest.raises(StoreDamaged):
        use_every_index(path)


def test_a_schema_that_cannot_be_read_is_told_with_a_remedy(path: Path) -> None:
    """What is defined otherwise is not ours to guess: the file stays as it is."""
    write_definition(path, "item", "CREATE TABLE item (")
    content = path.read_bytes()

    with pytest.raises(StoreDamaged) as told:
        open_memory(path)

    assert "backup" in told.value.remedy
    assert path.read_bytes() == content


def checked(path: Path, *, repair: bool = False) -> dict[str, str]:
    """What is wrong by the name of the check, or was repaired."""
    with open_memory(path) as memory:
        found = memory.doctor(repair=repair)
        return {one.name: one.detail for one in found if not one.ok or one.repaired}


@each_row(
    ("change", "told"),
    [
        ("DROP INDEX link_dst", "index link_dst is missing"),
        (
            "DROP INDEX link_dst; CREATE INDEX link_dst ON link (src, dst)",
            "index link_dst is defined otherwise",
        ),
        ("CREATE UNIQUE INDEX mine ON item (kind, id)", "index mine is not one of ours"),
        (
            "CREATE TRIGGER mine AFTER INSERT ON item BEGIN DELETE FROM link; END",
            "trigger mine is not one of ours",
        ),
        ('CREATE VIEW "my view" AS SELECT 1', "view my view is not one of ours"),
    ],
)
def test_a_changed_schema_is_named_and_made_right(path: Path, change: str, told: str) -> None:
    """Also where it can be read and used: it would be slow, or change what is stored."""
    before = definitions(path)
    with closing(apsw.Connection(str(path))) as db:
        db.execute(change)

    assert checked(path) == {"schema": told}
    assert checked(path, repair=True) == {"schema": f"{told}; rebuilt"}
    assert definitions(path) == before
    assert_all_is_there(path)


def test_another_definition_of_a_table_is_named(path: Path) -> None:
    """It is not changed: nobody knows what its rows are."""
    before = definitions(path)["tick"]
    write_definition(path, "tick", before.replace("total REAL", "total REAL DEFAULT 0"))

    for repair in (False, True):
        told = checked(path, repair=repair)["schema"]
        assert told.startswith("table tick is defined otherwise")


def test_spaces_and_quotes_are_no_difference(path: Path) -> None:
    """Releases of SQLite write them otherwise, and people make tables of their own."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute("CREATE TABLE mine (a); INSERT INTO mine VALUES (1)")
        db.execute(
            'DROP INDEX link_dst; CREATE INDEX "link_dst" ON "link"( dst,type,\n created_at )'
        )

    assert checked(path) == {}


@each_row("name", ["entities", "generation", "journal", "packed"])
def test_a_lost_counter_is_restored(path: Path, name: str) -> None:
    """Nothing is written without it, where programs would not notice; a repair brings it back."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DELETE FROM meta WHERE name = ?", (name,))
    told = f"rows of 'meta' are missing: '{name}'"
    if name != "entities":
        with pytest.raises(StoreDamaged, match=told), open_memory(path) as memory:
            memory.remember("The lock of the gate is new")

    assert checked(path)["counters"] == told
    assert checked(path, repair=True)["counters"] == f"{told}; restored"
    assert checked(path) == {}
    with open_memory(path) as memory:
        memory.remember("The lock of the gate is new")
        assert memory.recall("harbour crane").hits[0].item.text == TEXTS[0]
        (journal,) = [one for one in memory.doctor() if one.name == "journal"]
    # Whether lines were cut off at its end the lost row alone could tell.
    told = "lines may be missing before line 3, where a repair restored its end"
    assert journal.detail == (told if name == "journal" else "the chain is unbroken")
    assert journal.warning == (name == "journal")
    assert checked(path) == {}


def test_a_cut_that_was_seen_stays_one(path: Path) -> None:
    """Neither a further write nor a repair of another counter blesses it."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute("DELETE FROM event WHERE seq = (SELECT max(seq) FROM event)")
        seq, code = db.execute("SELECT seq, chain FROM event ORDER BY seq DESC LIMIT 1").get
        db.execute("UPDATE meta SET value = ? WHERE name = 'journal'", (f"{seq}:{code}",))
        db.execute("DELETE FROM meta WHERE name = 'entities'")
    checked(path, repair=True)
    with open_memory(path) as memory:
        memory.remember("The lock of the gate is new")

    assert checked(path)["journal"] == "lines were cut off after line 1"
