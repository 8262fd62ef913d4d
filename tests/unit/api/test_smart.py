"""Reading again only what changed."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.model import FileEdit
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

SOURCE = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n"


@pytest.fixture
def memory() -> Memory:
    return Memory.open(":memory:", embedder="none", clock=FixedClock(NOW))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.py"
    path.write_text(SOURCE)
    return path


def test_first_whole_then_only_what_changed(memory: Memory, file: Path) -> None:
    """Pieces that stayed the same come without their text."""
    first = memory.read_smart(file, roots=[file.parent])
    again = memory.read_smart(file, roots=[file.parent])
    file.write_text(SOURCE.replace("return 2", "return 3") + "\n\ndef new():\n    pass\n")
    changed = memory.read_smart(file, roots=[file.parent])

    assert (first.status, first.text, first.tokens) == ("first_read", SOURCE, first.whole_tokens)
    assert (again.status, again.text, again.tokens) == ("unchanged", None, 0)
    assert changed.status == "modified"
    assert {chunk.id: chunk.state for chunk in changed.chunks} == {
        "preamble": "unchanged",
        "one": "unchanged",
        "two": "modified",
        "new": "added",
    }
    assert [chunk.id for chunk in changed.chunks if chunk.text] == ["two", "new"]
    assert 0 < changed.tokens < changed.whole_tokens


def test_an_edit_within_the_same_instant_is_seen(memory: Memory, file: Path) -> None:
    """The time of a file is not believed: what it holds is compared."""
    state = file.stat()
    memory.read_smart(file, roots=[file.parent])
    file.write_text(SOURCE.replace("return 2", "return 3"))
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))

    assert memory.read_smart(file, roots=[file.parent]).status == "modified"


def test_touched_but_not_changed(memory: Memory, file: Path) -> None:
    """A new time with the old content is said to be that."""
    memory.read_smart(file, roots=[file.parent])
    os.utime(file, (1, 1))

    assert memory.read_smart(file, roots=[file.parent]).status == "unchanged_content"


def test_removed_pieces_are_named_and_force_gives_all(memory: Memory, file: Path) -> None:
    """What went away has no text to show, only its name."""
    memory.read_smart(file, roots=[file.parent])
    file.write_text(SOURCE.split("def two", maxsplit=1)[0])

    assert memory.read_smart(file, roots=[file.parent]).removed == ("two",)
    forced = memory.read_smart(file, roots=[file.parent], force=True)
    assert (forced.status, forced.text) == ("forced_full", file.read_text())


def test_bytes_that_are_no_text(memory: Memory, tmp_path: Path) -> None:
    """A binary file is refused; a few odd bytes are shown as such."""
    binary, odd = tmp_path / "a.bin", tmp_path / "a.txt"
    binary.write_bytes(b"\0\1\2")
    odd.write_bytes(b"caf\xe9\n")

    with pytest.raises(Refused, match="not a text file"):
        memory.read_smart(binary, roots=[tmp_path])
    assert memory.read_smart(odd, roots=[tmp_path]).notes


def test_outside_the_project_nothing_is_read(memory: Memory, file: Path) -> None:
    """Without a setting only the project's own folder may be read."""
    with pytest.raises(Refused, match="outside"):
        memory.read_smart("/etc/passwd")


EDITS = [
    FileEdit(
        "/p/src/app.py", "edit", NOW - timedelta(days=2), "make the start-up of it faster", "s1"
    ),
    FileEdit(
        "/p/src/app.py", "edit", NOW - timedelta(days=1), "make the start-up of it faster", "s2"
    ),
    FileEdit("/p/src/app.py", "write", NOW - timedelta(days=1), "fix it", "s2", turn="t1"),
    FileEdit("/p/src/app_test.py", "read", NOW, "", "s2"),
    FileEdit("/p/100%_done.md", "edit", NOW, "note that everything has been done", "s3"),
]


def test_the_history_of_a_file(memory: Memory) -> None:
    """Counts by day, reasons newest first, sessions; told again it changes nothing."""
    assert memory.note_edits(EDITS) == 5
    assert memory.note_edits(EDITS) == 0

    history = memory.recall_file("app.py")

    assert history.edits == 3
    assert history.paths == ("/p/src/app.py",)
    assert history.sessions == ("s2", "s1")
    assert [(one.operation, one.times) for one in history.days] == [
        ("edit", 1),
        ("write", 1),
        ("edit", 1),
    ]
    assert [(one.text, one.times) for one in history.intents] == [
        ("make the start-up of it faster", 2)
    ]


def test_a_stated_reason_is_shown_however_short(memory: Memory) -> None:
    """Only prompts of captured turns must be long enough to tell something."""
    memory.note_edits(
        [FileEdit("/p/a.py", "edit", NOW, "add ttl"), FileEdit("/p/a.py", "read", NOW)]
    )
    memory.note_edits([FileEdit("/p/a.py", "write", NOW, "go on", "s1", turn="t1")])

    assert [one.text for one in memory.recall_file("a.py").intents] == ["add ttl"]


def test_a_part_of_a_path_is_no_pattern(memory: Memory) -> None:
    """% and _ mean themselves."""
    memory.note_edits(EDITS)

    assert memory.recall_file("%_").edits == 1
    assert memory.recall_file("a_p").edits == 0
    with pytest.raises(Refused, match="name a file"):
        memory.recall_file(" ")


def test_reasons_hold_no_secrets(memory: Memory) -> None:
    """What was said while editing is redacted like any memory."""
    key = "ghp_" + "a1B2c3D4e5" * 4
    memory.note_edits(
        [{"path": "x", "operation": "edit", "intent": f"use the token {key[:40]} here"}]
    )

    (intent,) = memory.recall_file("x").intents
    assert key[:40] not in intent.text


@each_row(
    ("edit", "told"),
    [
        ({"operation": "edit"}, "needs 'path'"),
        ({"path": "x"}, "needs 'operation'"),
        ({"path": "x", "operation": "burn"}, "no operation 'burn'"),
        ({"path": "", "operation": "edit"}, "needs the path"),
        ({"path": "x", "operation": "edit", "why": "?"}, "no field 'why'"),
        ({"path": "x", "operation": "edit", "at": "never"}, "at:"),
        ({"path": "x", "operation": "edit", "intent": "a\0b"}, "intent must be text"),
        ({"path": "x" * 5000, "operation": "edit"}, "path must be text"),
    ],
)
def test_a_bad_edit_is_refused_with_all_others(memory: Memory, edit: dict, told: str) -> None:
    """Nothing is noted, and the sentence names what is wrong."""
    with pytest.raises(Refused, match=told):
        memory.note_edits([*EDITS, edit])
    assert memory.recall_file("app").edits == 0


def test_erasing_a_memory_takes_its_edits_along(memory: Memory) -> None:
    """What an edit was told in may stand in its reason."""
    told = memory.remember("We moved the start-up work into a thread")
    memory.note_edits([EDITS[0]._replace(item=told.id)])

    memory.forget(told.id, erase=True)

    assert memory.recall_file("app").edits == 0


def test_edits_are_exported_and_come_back(memory: Memory) -> None:
    """An export is lossless."""
    told = memory.remember("We moved the start-up work into a thread")
    memory.note_edits([EDITS[0]._replace(item=told.id), EDITS[3]])
    records = list(memory.export())

    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as other:
        other.import_(records)
        assert other.recall_file("app") == memory.recall_file("app")
