"""Removing a space takes its own notes along, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller

from bethink.ingest.notes import append_stamp, body_digest


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_a_removed_space_leaves_no_notes(call: Caller) -> None:
    """They are shown first, then gone with their folders, and the answer says so."""
    call("remember", "The pump is blue", "--space", "old", "--occurred-at", "2026-02-17")
    call("maintain", "--job", "notes", "--space", "old")
    folder = call.folder / "data" / "old"
    written = sorted(folder.rglob("*.md"))

    shown = call("spaces", "remove", "old")
    left = sorted(folder.rglob("*.md"))
    done = call("spaces", "remove", "old", "--yes")

    assert len(written) == 3
    assert all(note.name in shown.out.replace("\n", "") for note in written)
    assert left == written
    assert "3 notes" in done.out
    assert not folder.exists()


def test_only_notes_go_and_no_link_is_followed(call: Caller) -> None:
    """Other files stay, and so does what a link leads to."""
    call("remember", "The pump is blue", "--space", "old")
    notes = call.folder / "data" / "old" / "notes"
    elsewhere = call.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "weekly_2026-W08.md").write_text("theirs")
    (notes / "daily").mkdir(parents=True)
    (notes / "weekly").symlink_to(elsewhere)
    (notes / "daily" / "daily_2026-02-18.md").symlink_to(elsewhere / "weekly_2026-W08.md")
    (notes / "daily" / "daily_2026-02-16.md").write_text("a note by hand")
    stamp = append_stamp("an edited note", body_digest("a note"), "old", [])
    (notes / "daily" / "daily_2026-02-17.md").write_text(stamp)
    (notes / "daily" / ".daily_2026-02-17.md.new").write_text("half a note")
    (notes / "daily" / "shopping.md").write_text("theirs")

    done = call("spaces", "remove", "old", "--yes", "--json").told

    assert [Path(note).name for note in done["notes"]] == [
        ".daily_2026-02-17.md.new",
        "daily_2026-02-17.md",
    ]
    assert (elsewhere / "weekly_2026-W08.md").read_text() == "theirs"
    assert sorted(file.name for file in (notes / "daily").iterdir()) == [
        "daily_2026-02-16.md",
        "daily_2026-02-18.md",
        "shopping.md",
    ]
    assert (notes / "weekly").is_symlink()
