"""Rot in what a revision's content hash does not cover: it is named, undone or quarantined."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from old_schema import bring_back

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import StoreDamaged
from bethink.model import Draft
from bethink.store.sqlite import SqliteStore
from records import NOW, at, record
from rows import each_row

KEPT = "The harbour crane is painted yellow"
GONE = "The harbour gate was painted green"
LATER = "The harbour office is painted blue"
EARLIER = "The harbour office is painted white"


def open_memory(path: Path) -> Memory:
    return Memory.open("space", path=path, embedder="hash", settings=Settings())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A space with a memory that is live, one that was forgotten and one that was revised."""
    path = tmp_path / "space.db"
    with open_memory(path) as memory:
        _, gone, office = memory.remember_many([Draft(one) for one in (KEPT, GONE, EARLIER)])
        memory.forget(gone.id)
        memory.update(office.id, text=LATER)
    return path


def rot(path: Path, change: str, text: str) -> None:
    """Change the columns of a revision without our rules, as rot does."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA ignore_check_constraints = 1")
    db.execute("PRAGMA writable_schema = 1")
    sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'item'").get
    loose = sql.replace(" NOT NULL", "").replace(") STRICT", ")")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'item'", (loose,))
    db.close()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA ignore_check_constraints = 1")
    db.execute(f"UPDATE item SET {change} WHERE text = ?", (text,))
    assert db.changes() == 1
    db.execute("PRAGMA writable_schema = 1")
    db.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'item'", (sql,))
    db.close()


STATES = {
    "hidden": ("live_to = 0", KEPT),
    "hidden with a reason": ("live_to = 1700000000000, ended_by = 'forgotten'", KEPT),
    "revived": ("live_to = NULL, ended_by = NULL", GONE),
    "ended at another time": ("live_to = live_to + 4096", GONE),
    "ended for another reason": ("ended_by = 'forgottfn'", GONE),
    "out of recall": ("status = 'superseded'", KEPT),
    "a status that is none": ("status = 'actiwe'", KEPT),
    "a status that is no text": ("status = 7", KEPT),
    "an earlier revision ended later": ("live_to = live_to + 1", EARLIER),
    "no status": ("status = NULL", KEPT),
    "the hash itself": ("state_hash = state_hash + 1", KEPT),
    "no hash": ("state_hash = NULL", GONE),
}


def look(memory: Memory) -> dict[str, str]:
    """What doctor finds wrong, by the name of the check."""
    return {one.name: one.detail for one in memory.doctor() if not one.ok}


@each_row("name", STATES)
def test_the_doctor_sees_any_change_of_a_revisions_state(path: Path, name: str) -> None:
    """Hidden, revived or ended otherwise: the state has a hash of its own."""
    rot(path, *STATES[name])
    with open_memory(path) as memory:
        assert "state" in look(memory)


@each_row("name", STATES)
def test_a_repair_restores_the_state_that_the_hash_confirms(path: Path, name: str) -> None:
    """The journal knows how a memory stood; what the hash confirms is what was stored."""
    with open_memory(path) as memory:
        before = {one["text"]: one for one in memory.export() if one["type"] == "item"}
    rot(path, *STATES[name])
    with open_memory(path) as memory:
        memory.doctor(repair=True)
        assert look(memory) == {}
        assert {one["text"]: one for one in memory.export() if one["type"] == "item"} == before
        assert {one.text for one in memory.browse()} == {KEPT, LATER}


@each_row("name", STATES)
def test_nothing_shows_what_rot_has_made_of_it(path: Path, name: str) -> None:
    """A revived memory is no answer; what is asked for by its id is said to be damaged."""
    rot(path, *STATES[name])
    text = STATES[name][1]
    with open_memory(path) as memory:
        shown = [hit.item.text for hit in memory.recall("harbour painted", k=9).hits]
        shown += [item.text for item in memory.browse()]
        lines = [one["text"] for one in memory.export() if one["type"] == "item"]
        assert text not in shown
        assert text not in lines


def test_a_state_that_nothing_confirms_is_quarantined(path: Path) -> None:
    """It is out of recall, named for good and never declared sound."""
    rot(path, "live_to = 12345, ended_by = 'a reason nobody gave', state_hash = 1", KEPT)
    with open_memory(path) as memory:
        found = {one.name: one for one in memory.doctor(repair=True)}["state"]
        assert not found.ok
        assert "quarantined" in found.detail
        item = found.detail.split(": ")[1].split(" ")[0]
        with pytest.raises(StoreDamaged, match=item):
            memory.get(item)
        assert set(look(memory)) == {"state"}
        assert memory.forget(item, erase=True).receipt is not None
        assert look(memory) == {}


def test_a_write_never_makes_a_damaged_state_sound(path: Path) -> None:
    """A change of a row whose hash does not match leaves it without a match."""
    rot(path, "status = 'superseded'", KEPT)
    store = SqliteStore.open(path, space="test")
    item = next(one["columns"]["id"] for one in store.admin.dump() if one["type"] == "damaged")
    store.items.end([item], how="forgotten", actor="x", now=at(days=1))
    store.items.set_status([item], "quarantined", actor="x", now=at(days=1))
    found = {one.name for one in store.admin.check() if not one.ok}
    store.close()

    assert "state" in found


@each_row("change", ["status = 'active'", "live_to = live_to + 1", "ended_by = 'x'"])
@each_row("text", ["left out once", "forgotten, then left out"])
def test_a_repair_knows_a_status_that_ended_with_its_revision_or_came_after_its_end(
    tmp_path: Path, text: str, change: str
) -> None:
    """The next revision has a status of its own, and what is forgotten may be revoked."""
    path = tmp_path / "space.db"
    store = SqliteStore.open(path, space="test")
    texts = {"a": "left out once", "b": "forgotten, then left out"}
    store.items.put([record(*one) for one in texts.items()], actor="x", now=NOW)
    store.items.end(["b"], how="forgotten", actor="x", now=at(hours=1))
    store.items.set_status(["a", "b"], "quarantined", actor="x", now=at(hours=2))
    store.items.put([record("a", "said again", rev=2)], actor="x", now=at(hours=3))
    before = [one for one in store.admin.dump() if one["type"] == "item"]
    store.close()
    rot(path, change, text)
    store = SqliteStore.open(path, space="test")
    store.admin.check(repair=True)
    after = [one for one in store.admin.dump() if one["type"] == "item"]
    found = [one for one in store.admin.check() if not one.ok]
    store.close()

    assert (after, found) == (before, [])


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A space of schema 5, before revisions had a hash of their state."""
    path = tmp_path / "old.db"
    store = SqliteStore.open(path, space="test")
    store.items.put([record("a"), record("b"), record("c")], actor="x", now=NOW)
    store.items.put([record("b", "b, revised", rev=2)], actor="x", now=NOW)
    store.items.end(["c"], how="forgotten", actor="x", now=NOW)
    store.close()
    bring_back(path, 5)
    return path


def test_an_upgrade_gives_every_revision_its_hash(old: Path) -> None:
    """Memories of earlier versions are whole afterwards, and rot in them shows."""
    store = SqliteStore.open(old, space="test")
    assert {one.name for one in store.admin.check() if not one.ok} == set()
    assert set(store.items.get(["a", "b", "c"])) == {"a", "b", "c"}
    store.close()
    db = apsw.Connection(str(old))
    db.execute("UPDATE item SET live_to = 0 WHERE id = 'a'")
    db.close()
    store = SqliteStore.open(old, space="test")
    assert "state" in {one.name for one in store.admin.check() if not one.ok}
    store.close()


COVERED = {
    "a revision that is none": "rev = NULL",
    "another id": "id = 'zzzz'",
    "another class": "classification = 0",
}


@pytest.mark.parametrize("name", COVERED)
def test_what_cannot_be_looked_up_again_is_not_shown(path: Path, name: str) -> None:
    """A hit whose id or revision rot has changed is found by its row alone, and left out."""
    rot(path, COVERED[name], KEPT)
    with open_memory(path) as memory:
        answer = memory.recall("harbour crane painted yellow", k=9)
        assert KEPT not in [hit.item.text for hit in answer.hits]
        assert "" not in [hit.item.text for hit in answer.hits]
        assert any("damaged" in one.reason for one in answer.degraded)
        assert "content" in look(memory)


@pytest.mark.parametrize("change", ["tokens = x'00'", "data = zeroblob(length(data))", "crc = 7"])
def test_damaged_vectors_are_seen_and_made_anew(path: Path, change: str) -> None:
    """A recall answers without them and says so; a reindex makes them from the text."""
    with Memory.open("space", path=path, settings=Settings()) as memory:
        memory.reindex()
    db = apsw.Connection(str(path))
    db.execute(f"UPDATE vector SET {change} WHERE rid = (SELECT min(rid) FROM item)")
    db.close()
    with Memory.open("space", path=path, settings=Settings()) as memory:
        assert "vectors" in look(memory)
        answer = memory.recall("harbour crane painted yellow")
        assert KEPT in [hit.item.text for hit in answer.hits]
        if change.startswith("tokens"):
            assert "vectors" in {one.part for one in answer.degraded}
        memory.reindex()
        assert look(memory) == {}
        again = memory.recall("harbour crane painted yellow")
        assert [hit.item.text for hit in again.hits[:1]] == [KEPT]
        assert again.degraded == ()
