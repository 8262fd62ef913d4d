"""What was erased stays away: by its key, whatever way it comes, and nothing tells what it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bethink import Memory
from bethink.agents.capture import capture
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.model import Draft
from bethink.ports.values import erased_mark, is_erased
from bethink.store.sqlite import SqliteStore
from importing import import_from
from records import NOW, at, record

SECRET = "The harbour crane is painted yellow"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    settings = Settings(embedder="none", data_dir=tmp_path / "data")
    return Memory.open("s", path=tmp_path / "space.db", settings=settings)


def test_an_erased_key_is_never_used_again(memory: Memory, tmp_path: Path) -> None:
    """The same turn of a forked session, or a late one, is refused; a new key is free."""
    stored = memory.remember(SECRET, key="turn-4711")
    memory.forget(stored.id, erase=True)

    with pytest.raises(Refused, match="was erased") as refused:
        memory.remember(SECRET, key="turn-4711")
    assert refused.value.remedy == "use a new key to store it again"
    answers = memory.remember_each([Draft(SECRET, key="turn-4711"), Draft("Tea at five", key="t2")])
    assert isinstance(answers[0], Refused)
    assert [item.text for item in memory.browse()] == ["Tea at five"]
    assert memory.remember(SECRET, key="turn-4712").status == "stored"
    memory.close()
    assert b"turn-4711" not in (tmp_path / "space.db").read_bytes()


def test_the_store_refuses_it_inside_the_transaction(tmp_path: Path) -> None:
    """Also where it was erased after the pipeline had looked."""
    store = SqliteStore.open(tmp_path / "space.db", space="test")
    store.items.put([record("a", SECRET, key="k")], actor="x", now=NOW)
    store.items.erase(["a"], actor="x", now=NOW)

    with pytest.raises(Refused, match="was erased"):
        store.items.put([record("b", "x"), record("c", SECRET, key="k")], actor="x", now=NOW)
    assert store.admin.count() == 0
    found = store.items.find_keys(("k",)).get("k")
    assert found is not None
    assert found[0] == "a"
    assert is_erased(found[1])
    assert found[1] == erased_mark("k", record("a", SECRET).fingerprint)
    store.close()


def test_an_import_does_not_bring_it_back(memory: Memory, tmp_path: Path) -> None:
    """A paragraph of a note is known by its place and its words."""
    folder = tmp_path / "notes"
    folder.mkdir()
    note = folder / "harbour.md"
    note.write_text(f"# Harbour\n\nThe first is about tea.\n\n## Crane\n\n{SECRET}.\n")
    import_from(memory, str(folder), "markdown")
    gone = [item.id for item in memory.browse() if "yellow" in item.text]
    memory.forget(*gone, erase=True)
    again = import_from(memory, str(folder), "markdown")

    assert gone
    assert (again.stored, again.n_refused) == (0, 0)
    note.write_text(note.read_text() + "\n## Bread\n\nA section about bread is new.\n")
    assert import_from(memory, str(folder), "markdown").stored == 1
    assert all("yellow" not in item.text for item in memory.browse())
    memory.close()


def test_a_transcript_does_not_bring_it_back(memory: Memory, tmp_path: Path) -> None:
    """Captured, forked, or imported: a turn has one key."""
    turns = [SECRET, "The second prompt is about bread and butter"]
    lines = [
        {
            "type": "user",
            "uuid": f"00000000-0000-4000-8000-00000000000{n}",
            "sessionId": "one",
            "timestamp": "2026-03-01T10:00:00Z",
            "message": {"role": "user", "content": text},
        }
        for n, text in enumerate(turns)
    ]
    transcript = tmp_path / "one.jsonl"
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert capture(memory, transcript, session="one", host="claude-code").stored == 2
    gone = [item.id for item in memory.browse() if "yellow" in item.text]
    memory.forget(*gone, erase=True)
    fork = tmp_path / "two.jsonl"
    fork.write_text(transcript.read_text().replace('"one"', '"two"'))

    assert capture(memory, fork, session="two", host="claude-code").stored == 0
    assert import_from(memory, str(fork), "claude-code").stored == 0
    assert all("yellow" not in item.text for item in memory.browse())
    memory.close()


def test_another_space_does_not_bring_it_back(tmp_path: Path) -> None:
    """An export that has it under another id: by its key it is the same."""
    here = SqliteStore.open(tmp_path / "here.db", space="test")
    here.items.put([record("a", SECRET, key="k")], actor="x", now=NOW)
    here.items.erase(["a"], actor="x", now=NOW)
    there = SqliteStore.open(tmp_path / "there.db", space="test")
    there.items.put([record("z", SECRET, key="k"), record("y", "bread")], actor="x", now=NOW)

    assert here.admin.load(list(there.admin.dump()), actor="x", now=at(days=1)) == 1
    assert set(here.items.get(["z", "y"])) == {"y"}
    assert all(one.ok or one.name == "erasures" for one in here.admin.check())
    here.close()
    there.close()


def test_a_copy_knows_what_was_erased(tmp_path: Path) -> None:
    """The keys of erased memories go with an export, as hashes."""
    here = SqliteStore.open(tmp_path / "here.db", space="test")
    here.items.put([record("a", SECRET, key="turn-4711")], actor="x", now=NOW)
    here.items.erase(["a"], actor="x", now=NOW)
    lines = list(here.admin.dump())
    there = SqliteStore.open(tmp_path / "there.db", space="test")
    there.admin.load(lines, actor="x", now=at(days=1))

    assert "turn-4711" not in str(lines)
    with pytest.raises(Refused, match="was erased"):
        there.items.put([record("b", SECRET, key="turn-4711")], actor="x", now=NOW)
    here.close()
    there.close()
