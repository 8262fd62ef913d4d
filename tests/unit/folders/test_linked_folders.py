"""Vaults of Obsidian, Logseq and basic-memory that stay linked and are never written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.errors import Refused
from bethink.folders.reading import Report
from bethink.folders.sync import Options, link_folder
from folder_room import Room, open_room


@pytest.fixture
def room() -> Iterator[Room]:
    with open_room() as opened:
        yield opened


def link(room: Room, *, yes: bool = False) -> Report:
    return link_folder(room.memory, room.folder, Options(quiet_s=0, confirm=lambda _asked: yes))


def test_a_vault_stays_linked(room: Room) -> None:
    """New, changed and moved sections, and those that go and come back."""
    room.path(".obsidian/app.json").write_text("{}")
    note = room.path("Tea.md")
    note.write_text("# Tea\n\nGreen tea at four.\n\n## Pots\n\nThe pot is blue.\n")
    first = link(room)
    note.write_text("# Tea\n\nGreen tea at five.\n")
    second = link(room)
    changed = room.texts()
    room.path("drinks/Tea.md").write_text(
        "# Tea\n\nGreen tea at five.\n\n## Pots\n\nThe pot is blue.\n"
    )
    note.unlink()
    link(room)

    assert (first.linked, first.imported) == ("markdown", 2)
    assert (second.changed, len(second.forgotten)) == (1, 1)
    assert changed == {"Tea\nGreen tea at five."}
    assert room.texts() == {"Tea\nGreen tea at five.", "Tea > Pots\nThe pot is blue."}
    assert set(room.files()) == {".obsidian/app.json", "drinks/Tea.md"}


def test_a_correction_here_is_not_withdrawn(room: Room) -> None:
    """What was corrected in the space stays when the note goes."""
    room.path("Tea.md").write_text("Green tea at four.\n")
    room.path("Pot.md").write_text("The pot is blue.\n")
    link(room)
    own = next(item for item in room.memory.browse() if "Green" in item.text)
    room.memory.update(own.id, text="Green tea at six")
    (room.folder / "Tea.md").unlink()

    report = link(room)

    assert not report.forgotten
    assert "Green tea at six" in room.texts()


def test_a_note_that_cannot_be_read_withdraws_nothing(room: Room) -> None:
    """Its memories would seem to be gone."""
    room.path("Tea.md").write_text("Green tea at four.\n")
    room.path("Pot.md").write_text("The pot is blue.\n")
    link(room)
    (room.folder / "Tea.md").write_bytes(b"Green t\xe4a\n")

    report = link(room)

    assert len(report.refused) == 1
    assert len(room.texts()) == 2


def test_a_vault_that_is_nearly_empty_is_asked_about(room: Room) -> None:
    """As with files of our own."""
    for number in range(40):
        room.path(f"{number}.md").write_text(f"Note number {number} of the vault.\n")
    link(room)
    for number in range(1, 40):
        (room.folder / f"{number}.md").unlink()

    with pytest.raises(Refused, match="39 memories would be forgotten"):
        link(room)
    assert len(link(room, yes=True).forgotten) == 39


def test_a_graph_of_logseq_is_read_by_blocks(room: Room) -> None:
    """With the blocks below them; properties, logbooks and back-ups are no text."""
    room.path("logseq/config.edn").write_text("{}")
    room.path("logseq/bak/Tea.md").write_text("- old\n")
    room.path("pages/Tea___Pots.md").write_text(
        "type:: drink\n\n- The pot of [[Ana]] is blue #pots\n  id:: 6512\n\t- It was a gift\n"
        "- Green tea\n  :LOGBOOK:\n  CLOCK: [2026]\n  :END:\n"
    )
    room.path("journals/2026_05_07.md").write_text("- Met Ana\n")

    first = link(room)
    room.edit("pages/Tea___Pots.md", "blue", "red")
    second = link(room)
    by_text = {item.text: item for item in room.memory.browse()}

    assert (first.linked, first.imported, second.changed) == ("logseq", 3, 1)
    assert set(by_text) == {
        "Tea/Pots: The pot of [[Ana]] is red #pots\n\n\t- It was a gift".replace("\n\n", "\n"),
        "Tea/Pots: Green tea",
        "Met Ana",
    }
    assert f"{by_text['Met Ana'].occurred_at:%Y-%m-%d}" == "2026-05-07"


def test_a_folder_is_either_linked_or_written(room: Room, tmp_path: Path) -> None:
    """Not both."""
    room.path("Tea.md").write_text("Green tea at four.\n")
    link(room)

    with pytest.raises(Refused, match="only read"):
        room.sync()
