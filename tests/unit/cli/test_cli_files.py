"""The commands that remember files."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_what_was_done_to_a_file_and_why(call: Caller) -> None:
    """Noted one by one, shown with its days, its reasons and the memory that tells of it."""
    item = call.remember("Start-up work now happens in a thread")
    why = ("--intent", "make the start-up twice as fast", "--session", "s1")
    call("note-edit", "src/app.py", *why, "--item", item, "--at", "2026-05-01")

    found = call("recall-file", "app.py")
    told = call("recall-file", "app.py", "--json").told

    assert found.code == 0
    assert "make the start-up twice as fast" in found.out
    assert item in found.out
    assert told["edits"] == 1
    assert told["days"] == [{"day": "2026-05-01", "operation": "edit", "times": 1}]
    assert told["memories"][0]["id"] == item


def test_nothing_known_of_a_file(call: Caller) -> None:
    """Says so, and the exit code does."""
    found = call("recall-file", "nowhere.py")

    assert found.code == 1
    assert "nothing is known" in found.err


def test_a_file_is_read_whole_then_by_its_changes(call: Caller, tmp_path: Path) -> None:
    """The file goes to standard output, what is said about it to the other."""
    file = tmp_path / "a.py"
    file.write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    root = ("--root", str(tmp_path))

    first = call("read-smart", str(file), *root)
    same = call("read-smart", str(file), *root)
    file.write_text(file.read_text().replace("return 2", "return 3"))
    changed = call("read-smart", str(file), *root)

    assert first.out == "def one():\n    return 1\n\n\ndef two():\n    return 2\n"
    assert "first read" in first.err
    assert same.out == ""
    assert "unchanged" in same.err
    assert "return 3" in changed.out
    assert "return 1" not in changed.out
    file.write_text("")
    assert call("read-smart", str(file), *root, "--json").told["removed"] == [
        "one",
        "two",
    ]


def test_outside_its_folders_nothing_is_read(call: Caller, tmp_path: Path) -> None:
    """A sentence and exit code 2, no content."""
    refused = call("read-smart", "/etc/hostname", "--root", str(tmp_path))

    assert refused.code == 2
    assert refused.out == ""
    assert "outside the folders that may be read" in refused.err
    assert "allowed_roots" in refused.err


def test_a_file_is_forgotten_after_it_was_shown(call: Caller) -> None:
    """Without --yes nothing goes; with it all of it does, and a second time says so."""
    call("note-edit", "src/ledger.py", "--intent", "round every amount to cents")

    shown = call("forget-file", "ledger")
    kept = call("recall-file", "ledger").code
    done = call("forget-file", "ledger", "--yes", "--json")
    again = call("forget-file", "ledger", "--yes")

    assert "would erase src/ledger.py" in shown.out
    assert "nothing was changed" in shown.err
    assert kept == 0
    assert done.told["edits"] == 1
    assert done.told["preview"] is False
    assert call("recall-file", "ledger").code == 1
    assert again.code == 1
