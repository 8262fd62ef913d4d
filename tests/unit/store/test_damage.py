"""Rot in one memory: it is named and left out, everything else stays readable."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import StoreDamaged
from bethink.model import Draft
from bethink.ports import TextSearch
from bethink.store.sql.search.searches import UNREADABLE
from bethink.store.sqlite import SqliteStore
from records import NOW, mention, record, scope
from rows import each_row
from verdicts import updates_nothing

HARBOUR = "The harbour crane is painted yellow"
INVOICE = "Pay the invoice to account 1234 at Northbank"
BILLING = "Alice runs the billing service"
MANY = [f"memory {n} about a harbour and word{n} " + "tea " * 40 for n in range(60)]


def open_memory(path: Path) -> Memory:
    return Memory.open("space", path=path, embedder="hash", settings=Settings())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "space.db"
    with open_memory(path) as memory:
        memory.remember_many([Draft(text) for text in (BILLING, HARBOUR, INVOICE)])
    return path


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a file with sixty memories, which is filled once."""
    folder = tmp_path_factory.mktemp("original")
    with open_memory(folder / "many.db") as memory, updates_nothing():
        memory.remember_many([Draft(text) for text in MANY])
    return folder


@pytest.fixture
def many(original: Path, tmp_path: Path) -> Path:
    """A copy of its own for each test."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "many.db"


def rot(path: Path, found: bytes, change: bytes) -> None:
    """Change bytes in the file, wherever they stand."""
    content = path.read_bytes()
    assert found in content
    path.write_bytes(content.replace(found, change))


@pytest.fixture(params=["not UTF-8", "another digit"])
def rotten(path: Path, request: pytest.FixtureRequest) -> Path:
    if request.param == "not UTF-8":
        rot(path, b"harbour crane", b"\xb2arbour crane")
    else:
        rot(path, b"harbour crane", b"harbour drain")
    return path


@pytest.fixture
def memory(rotten: Path) -> Iterator[Memory]:
    with open_memory(rotten) as memory:
        yield memory


def damaged_id(memory: Memory, check: str = "content") -> str:
    detail = next(one.detail for one in memory.doctor() if one.name == check)
    return detail.split(": ")[1].split(" ")[0]


def test_a_recall_leaves_it_out_and_says_so(memory: Memory) -> None:
    """Its text is nobody's truth; the others are found as before."""
    answer = memory.recall("harbour crane painted yellow")

    assert all("yellow" not in hit.item.text for hit in answer.hits)
    assert [one.part for one in answer.degraded] == ["store"]
    assert "is damaged and left out" in answer.degraded[0].reason
    assert damaged_id(memory) in answer.degraded[0].reason
    assert [hit.item.text for hit in memory.recall("billing service").hits] == [BILLING]
    assert not memory.recall("billing service").degraded


def test_what_is_listed_is_what_was_stored(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    """Pages are filled with the next memories; the log names what is missing."""
    memory.browse()
    assert f"{damaged_id(memory)!r} (revision 1) is damaged and left out" in caplog.text
    assert {item.text for item in memory.browse()} == {BILLING, INVOICE}
    first = memory.browse(limit=1)
    second = memory.browse(limit=1, after=first[0].id)
    assert {one.text for one in (*first, *second)} == {BILLING, INVOICE}
    assert memory.browse(limit=1, after=second[0].id) == []
    assert memory.stats()["memories"] == 3


def test_asking_for_it_names_the_damage(memory: Memory) -> None:
    """Getting, changing, boosting and restoring it are refused, with a remedy."""
    item = damaged_id(memory)
    for call in (memory.get, memory.history, memory.boost, memory.restore):
        with pytest.raises(StoreDamaged, match=item):
            call(item)
    with pytest.raises(StoreDamaged, match=item):
        memory.update(item, text="as if nothing had happened")


def test_the_doctor_names_it_and_a_repair_quarantines_it(memory: Memory) -> None:
    """It is never declared sound: its hash and its bytes stay as they are."""
    item = damaged_id(memory)
    findings = {one.name: one for one in memory.doctor(repair=True)}

    assert not findings["content"].ok
    assert item in findings["content"].detail
    assert "quarantined" in findings["content"].detail
    again = {one.name: one for one in memory.doctor()}
    assert {name for name, one in again.items() if not one.ok} == {"content"}
    assert "quarantined" in again["content"].detail
    assert [event.kind for event in memory.events() if event.item == item] == ["stored", "status"]
    answer = memory.recall("harbour crane painted yellow")
    assert all("yellow" not in hit.item.text for hit in answer.hits)
    with pytest.raises(StoreDamaged):
        memory.get(item)


def test_an_id_that_the_indexes_have_right_is_restored(path: Path) -> None:
    """A list reads the id from an index; nothing that it showed is lost by a repair."""
    with open_memory(path) as memory:
        listed = {item.id: item.text for item in memory.browse()}
    item = next(one for one, text in listed.items() if text == HARBOUR).encode()
    db = apsw.Connection(str(path))
    pages = [n for (n,) in db.execute("SELECT pageno FROM dbstat WHERE name = 'item'")]
    db.close()
    content = bytearray(path.read_bytes())
    for page in pages:
        at = slice((page - 1) * 4096, page * 4096)
        content[at] = content[at].replace(item, bytes([item[0] ^ 1]) + item[1:])
    path.write_bytes(content)
    with open_memory(path) as memory:
        assert any(not one.ok for one in memory.doctor())
        memory.doctor(repair=True)
        assert {item.id: item.text for item in memory.browse()} == listed
        assert all(one.ok for one in memory.doctor())


def test_an_export_has_it_as_bytes_and_an_import_leaves_it_out(
    memory: Memory, tmp_path: Path
) -> None:
    """The other memories come through whole."""
    records = list(memory.export())
    damaged = [one for one in records if one["type"] == "damaged"]

    assert [one["of"] for one in damaged] == ["item"]
    assert damaged[0]["columns"]["id"] == damaged_id(memory)
    with open_memory(tmp_path / "other.db") as other:
        assert other.store.admin.load(records, actor="x", now=NOW) == 2
        assert {item.text for item in other.browse()} == {BILLING, INVOICE}
        assert all(one.ok for one in other.doctor())


def test_a_rotten_line_of_the_journal_does_not_stop_an_import(path: Path) -> None:
    """It is exported as damaged; the memories come through, and the lines before it."""
    with closing(apsw.Connection(str(path))) as db:
        db.execute("UPDATE event SET item = char(0) || substr(item, 2) WHERE seq = 3")
    with open_memory(path) as memory:
        records = list(memory.export())

    assert [one["of"] for one in records if one["type"] == "damaged"] == ["event"]
    with open_memory(path.with_name("other.db")) as other:
        assert other.store.admin.load(records, actor="x", now=NOW) == 3
        assert [one for one in other.doctor() if not one.ok] == []
        kinds = [event.kind for event in other.events()]
    assert kinds == ["stored", "stored", "journal", *["imported"] * 3]


def test_it_can_be_erased_with_the_words_it_had(memory: Memory, rotten: Path) -> None:
    """The index knows the words of the text that was stored; none of them stays."""
    receipt = memory.forget(damaged_id(memory), erase=True).receipt

    assert receipt is not None
    assert all(one.ok for one in memory.doctor())
    memory.close()
    content = rotten.read_bytes()
    assert b"harbour" not in content
    assert b"yellow" not in content


def test_text_of_other_tables_is_read_too(path: Path) -> None:
    """The name of an entity, the headline of a thread: shown with a mark, exported as bytes."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("a", "met Ana", mentions=(mention("Anastasia"),))], actor="x", now=NOW)
    store.close()
    rot(path, b"Anastasia", b"Ana\xfftasia")
    store = SqliteStore.open(path, space="test")
    names = [entity.name for entity in store.graph.entities()]
    damaged = [one for one in store.admin.dump() if one["type"] == "damaged"]
    store.close()

    assert "Ana\ufffdtasia" in names
    assert [one["of"] for one in damaged] == ["entity"]
    assert damaged[0]["columns"]["name"] == {"base64": "QW5h/3Rhc2lh"}


def test_a_damaged_index_costs_one_way_of_finding(path: Path) -> None:
    """What others find is returned; with nothing found the damage is the answer."""
    db = apsw.Connection(str(path))
    db.execute("UPDATE posting_new SET data = x'00'; UPDATE posting_block SET data = x'00'")
    db.close()
    with open_memory(path) as memory:
        answer = memory.recall("billing service", profile="siftcoder")
        with pytest.raises(StoreDamaged):
            memory.recall("billing service", profile="siftcoder", topic="none")

    assert answer.hits
    assert any("damaged" in one.reason for one in answer.degraded)


def test_a_broken_page_costs_only_what_is_on_it(tmp_path: Path) -> None:
    """An export goes on with the rows that other pages hold, and names what is missing."""
    path = tmp_path / "many.db"
    store = SqliteStore.open(path, space="test")
    texts = {f"i{n:03}": f"memory {n} " + f"word{n} " * 60 for n in range(60)}
    store.items.put([record(one, text) for one, text in texts.items()], actor="x", now=NOW)
    store.close()
    content = bytearray(path.read_bytes())
    at = content.index(b"word30 word30")
    page = at // 4096 * 4096
    content[page : page + 100] = b"\xa5" * 100
    path.write_bytes(content)
    store = SqliteStore.open(path, space="test")
    lines = list(store.admin.dump())
    store.close()
    kept = {line["id"]: line["text"] for line in lines if line["type"] == "item"}

    assert 30 < len(kept) < 60
    assert kept.items() <= texts.items()
    missing = [line for line in lines if line["type"] == "damaged"]
    assert len(missing) >= 60 - len(kept)
    other = SqliteStore.open(tmp_path / "other.db", space="test")
    assert other.admin.load(lines, actor="x", now=NOW) == len(kept)
    other.close()


def test_a_time_that_is_none_is_damage(path: Path) -> None:
    """The end of a memory is not content, but no memory is shown without being read whole."""
    db = apsw.Connection(str(path))
    db.execute("UPDATE item SET live_to = 1 << 62 WHERE text LIKE '%crane%'")
    db.close()
    with open_memory(path) as memory:
        item = damaged_id(memory, "state")
        with pytest.raises(StoreDamaged, match=item):
            memory.get(item)
        assert [one["of"] for one in memory.export() if one["type"] == "damaged"] == ["item"]


@each_row("table", ["item", "vector", "chunk", "grams_data", "term", "item_stored"])
def test_after_a_zeroed_page_what_is_readable_is_found(many: Path, table: str) -> None:
    """Recall, list and export go on without it; doctor says how to save the rest."""
    zero_page(many, table)
    with open_memory(many) as memory:
        hits = memory.recall("harbour tea", k=5).hits
        listed = [item.text for item in memory.browse(limit=100)]
        lines = list(memory.export())
        findings = [one for one in memory.doctor() if not one.ok]
        memory.doctor(repair=True)
        again = {hit.item.text for hit in memory.recall("harbour tea", k=5).hits}

    assert len(hits) == 5
    assert {hit.item.text for hit in hits} | again <= set(MANY)
    kept = {line["text"] for line in lines if line["type"] == "item"}
    assert set(listed) == kept
    assert kept <= set(MANY)
    assert len(kept) > 40 if table == "item" else len(kept) == 60
    assert any("bethink export" in one.detail for one in findings)
    with open_memory(many.with_name("new.db")) as other:
        assert other.store.admin.load(lines, actor="x", now=NOW) == len(kept)
        assert all(one.ok for one in other.doctor())


def test_a_file_that_is_cut_off_is_told_and_what_is_there_can_be_saved(many: Path) -> None:
    """It is left as it is; lengthened with zeros, a copy gives all that can be read."""
    size = many.stat().st_size
    with many.open("r+b") as file:
        file.truncate(size * 9 // 10)
    with pytest.raises(StoreDamaged, match="is cut off") as refused:
        open_memory(many)
    assert f"truncate -s {size}" in refused.value.remedy
    with many.open("r+b") as file:
        file.truncate(size)
    with open_memory(many) as memory:
        kept = {line["text"] for line in memory.export() if line["type"] == "item"}
        assert {item.text for item in memory.browse(limit=100)} == kept

    assert kept
    assert kept <= set(MANY)


def test_without_any_counter_all_memories_can_be_saved(path: Path) -> None:
    """Where the page of all counters is gone, memories are listed and exported."""
    zero_page(path, "meta")
    with open_memory(path) as memory:
        assert {item.text for item in memory.browse(limit=9)} == {HARBOUR, INVOICE, BILLING}
        lines = list(memory.export())
        told = [one.detail for one in memory.doctor() if not one.ok]
        with pytest.raises(StoreDamaged):
            memory.remember("one more")

    assert {one["text"] for one in lines if one["type"] == "item"} == {HARBOUR, INVOICE, BILLING}
    assert any(one["type"] == "damaged" for one in lines)
    assert any("bethink export" in one for one in told)
    with open_memory(path.with_name("new.db")) as other:
        assert other.store.admin.load(lines, actor="x", now=NOW) == 3
        assert all(one.ok for one in other.doctor())


@pytest.mark.parametrize("name", ["journal", "generation", "entities"])
def test_a_counter_that_is_missing_is_damage(path: Path, name: str) -> None:
    """No call ends in an error of ours; the memories can be read and exported."""
    db = apsw.Connection(str(path))
    db.execute("DELETE FROM meta WHERE name = ?", (name,))
    db.close()
    with open_memory(path) as memory:
        assert any("meta" in one.detail for one in memory.doctor() if not one.ok)
        memory.doctor(repair=True)
        lines = list(memory.export())
        with suppress(StoreDamaged):
            memory.remember("one more")
    assert {one["text"] for one in lines if one["type"] == "item"} == {HARBOUR, INVOICE, BILLING}


def zero_page(path: Path, table: str) -> None:
    """Overwrite the last leaf of a table or an index."""
    db = apsw.Connection(str(path))
    last_leaf = "SELECT max(pageno) FROM dbstat WHERE name = ? AND pagetype = 'leaf'"
    page = db.execute(last_leaf, (table,)).get
    size = db.execute("PRAGMA page_size").get
    db.close()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : page * size] = bytes(size)
    path.write_bytes(content)


def test_every_answer_says_that_memories_cannot_be_read_until_they_can(many: Path) -> None:
    """Also the second one, whose rows are cached; and none of a space that is whole."""
    words = TextSearch("harbour tea", 60)
    with open_memory(many) as memory:
        assert memory.store.search.text(words, scope()).damage == ""
    zero_page(many, "item")
    store = SqliteStore.open(many, space="test")
    told = [store.search.text(words, scope()).damage for _ in range(3)]
    store.close()
    assert told == [UNREADABLE] * 3
