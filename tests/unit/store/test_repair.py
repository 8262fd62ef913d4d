"""A repair loses nothing that can still be read."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import BethinkError, StoreError
from bethink.model import Draft
from bethink.store.sqlite import checkpoint, repair
from bethink.store.sqlite.files import is_private
from rows import each_row
from verdicts import updates_nothing

PAGE = 4096


def open_memory(path: Path) -> Memory:
    return Memory.open("space", path=path, embedder="hash", settings=Settings())


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a file with sixty memories, which is filled once."""
    folder = tmp_path_factory.mktemp("original")
    texts = [f"memory {n} about a harbour and word{n} " + "tea " * 40 for n in range(60)]
    with open_memory(folder / "space.db") as memory, updates_nothing():
        memory.remember_many([Draft(text) for text in texts])
    return folder


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    """A copy of its own for each test."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "space.db"


def pages_of(path: Path, table: str) -> list[int]:
    """Return the leaves of a table, in the order of its rows."""
    db = apsw.Connection(str(path))
    sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path"
    found = [row[0] for row in db.execute(sql, (table,))]
    db.close()
    return found


def change_ids(path: Path, ids: list[str]) -> None:
    """Change eight bytes of ids in the table; its indexes have them right."""
    content = bytearray(path.read_bytes())
    for page in pages_of(path, "item"):
        at = slice((page - 1) * PAGE, page * PAGE)
        for item in ids:
            content[at] = content[at].replace(item.encode(), b"\xff\xfezzzzzz" + item[8:].encode())
    path.write_bytes(content)


def test_what_an_index_has_right_is_restored(path: Path) -> None:
    """A list reads ids from an index; a repair keeps all that it showed."""
    with open_memory(path) as memory:
        listed = {item.id: item.text for item in memory.browse(limit=100)}
    change_ids(path, list(listed)[3:40:6])
    with open_memory(path) as memory:
        assert {item.id: item.text for item in memory.browse(limit=100)} == listed
        assert any(not one.ok for one in memory.doctor())
        memory.doctor(repair=True)
        assert {item.id: item.text for item in memory.browse(limit=100)} == listed
        assert set(memory.store.items.get(list(listed))) == set(listed)
        assert all(one.ok for one in memory.doctor())


def test_what_one_index_has_right_is_restored_though_another_is_broken(path: Path) -> None:
    """Indexes are made anew from the table only when all of it is restored that can be."""
    with open_memory(path) as memory:
        listed = {item.id: item.text for item in memory.browse(limit=100)}
    change_ids(path, list(listed)[:2])
    content = bytearray(path.read_bytes())
    at = (pages_of(path, "item_sort")[0] - 1) * PAGE
    cell = at + int.from_bytes(content[at + 8 : at + 10])
    content[cell + 2 : cell + 6] = b"\xff\xff\xff\x7f"  # types of its columns
    path.write_bytes(content)
    with open_memory(path) as memory:
        memory.doctor(repair=True)
        assert {item.id: item.text for item in memory.browse(limit=100)} == listed


def test_a_number_that_no_list_can_hold_is_damage(path: Path) -> None:
    """The number of a word is too large for the posting lists: named, no error of ours."""
    db = apsw.Connection(str(path))
    db.execute("UPDATE term SET tid = 1 << 40 WHERE t = 'tea'")
    db.close()
    with open_memory(path) as memory:
        assert any(not one.ok for one in memory.doctor())
        memory.doctor(repair=True)
        memory.recall("tea harbour")


def test_a_file_with_damaged_indexes_is_copied_before_a_repair(path: Path) -> None:
    """The report names the copy, which is private; the last two are kept, an erase tells."""
    for turn in range(3):
        with open_memory(path) as memory:
            items = memory.browse(limit=100)
        change_ids(path, [items[turn].id])
        before = path.read_bytes()
        with open_memory(path) as memory:
            report = {one.name: one for one in memory.doctor(repair=True)}
            copy = Path(report["copy"].detail.split(": ", 1)[1])
            assert copy.read_bytes()[PAGE:] == before[PAGE:]  # the first page counts writes
            assert is_private(copy)
            receipt = memory.forget(items[-1 - turn].id, erase=True).receipt
            assert receipt is not None
            assert any(copy.name in one for one in receipt.out_of_reach)
    assert len(list(path.parent.glob("*.damaged.bak"))) == 2


def test_no_copy_means_no_repair(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be made, the file stays as it is, and the report says why."""
    with open_memory(path) as memory:
        listed = [item.text for item in memory.browse(limit=100)]
        change = memory.browse(limit=100)[0].id
    change_ids(path, [change])
    before = path.read_bytes()

    def refuse(_: Path) -> bool:
        raise StoreError("no space left")

    monkeypatch.setattr(repair, "make_private_file", refuse)
    with open_memory(path) as memory:
        found = [one.detail for one in memory.doctor(repair=True) if not one.ok]
        assert [item.text for item in memory.browse(limit=100)] == listed
    assert any("not repaired: no space left" in one for one in found)
    assert path.read_bytes()[PAGE:] == before[PAGE:]


def test_a_repair_of_a_whole_file_makes_no_copy(path: Path) -> None:
    """Nothing in it can be lost."""
    with open_memory(path) as memory:
        assert "copy" not in {one.name for one in memory.doctor(repair=True)}
    assert list(path.parent.glob("*.bak")) == []


@each_row("other", ["vector", "grams_data", "entity", "event"])
def test_a_file_with_broken_pages_is_not_changed(path: Path, other: str) -> None:
    """A page in two trees would be overwritten; everything stays as readable as it was."""
    first, second = pages_of(path, "item")[1], pages_of(path, other)[0]
    content = bytearray(path.read_bytes())
    one, two = (slice((page - 1) * PAGE, page * PAGE) for page in (first, second))
    content[one], content[two] = content[two], content[one]
    path.write_bytes(content)
    with open_memory(path) as memory:
        before = [item.text for item in memory.browse(limit=100)]
        report = memory.doctor(repair=True)
        assert [item.text for item in memory.browse(limit=100)] == before
    assert before
    assert any("not repaired: pages of the file are broken" in one.detail for one in report)
    assert path.read_bytes()[PAGE:] == content[PAGE:]


def test_clearing_a_page_never_touches_its_cells(path: Path) -> None:
    """Also where rot says that more of the page is free."""
    page = bytearray(path.read_bytes()[(pages_of(path, "item")[0] - 1) * PAGE :][:PAGE])
    cells = int.from_bytes(page[3:5])
    page[(begin := 8 + 2 * cells if page[0] in (10, 13) else 12 + 2 * cells)] = 7
    assert checkpoint._unclear_part(bytes(page), 0)[0] == begin
    page[5:7] = (PAGE).to_bytes(2)
    assert checkpoint._unclear_part(bytes(page), 0) == (0, 0)


@each_row("name", ["journal_keys", "journal", "generation", "swept", "recalls"])
@each_row("value", ["NULL", "x'ff00'", "''", "5", "'a:b:c,,:'"])
def test_no_value_of_the_counters_stops_an_export(path: Path, name: str, value: str) -> None:
    """Whatever rot has made of them, past every rule, all memories are exported."""
    db = apsw.Connection(str(path))
    (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'meta'").fetchone()
    loose = sql.replace("NOT NULL", "").replace("STRICT,", "").replace("STRICT", "")
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'meta'", (loose,))
    db.execute("PRAGMA writable_schema = RESET")
    db.execute(f"INSERT OR REPLACE INTO meta (name, value) VALUES ('{name}', {value})")
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'meta'", (sql,))
    db.close()
    with suppress(BethinkError), open_memory(path) as memory:
        texts = [one["text"] for one in memory.store.admin.dump() if one["type"] == "item"]
        assert len(texts) == 60
        memory.doctor(repair=True)
