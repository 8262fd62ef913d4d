"""Notes by the day, the week and the quarter: written once, never over somebody's own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.ingest.notes import NotesFolder, split_paragraphs
from bethink.maintain.notes import note_names
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock

DAY = datetime(2026, 2, 17, 15, 30, tzinfo=UTC)
NOTE = "daily/daily_2026-02-17.md"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(DAY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "notes"


@pytest.fixture
def memory(folder: Path, clock: FixedClock) -> Iterator[Memory]:
    store = SqliteStore.open(None, space="test")
    with Memory(store, clock=clock, notes_dir=folder, settings=Settings()) as opened:
        yield opened


def written(memory: Memory, clock: FixedClock) -> list[str]:
    """Notes of a memory a year on, when every period is over."""
    clock.forward(days=365)
    memory.maintain("notes")
    clock.forward(days=-365)
    assert memory.session.notes_dir is not None
    root = memory.session.notes_dir
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.md"))


def test_a_memory_is_told_of_by_its_day_week_and_quarter(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """Three files, with its text and its id, readable by nobody else."""
    one = memory.remember("We chose the blue pump", kind="decision", topic="pumps").id

    names = written(memory, clock)

    assert names == [NOTE, "quarterly/quarterly_2026-Q1.md", "weekly/weekly_2026-W08.md"]
    text = (folder / NOTE).read_text()
    assert f"- 15:30 decision: We chose the blue pump ({one})" in text
    assert "## pumps" in text
    assert (folder / NOTE).stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_recall_reads_them(memory: Memory, clock: FixedClock, folder: Path) -> None:
    """As paragraphs of their time; the line of ours at the end is none."""
    memory.remember("We chose the blue pump")
    written(memory, clock)

    notes = NotesFolder(folder)
    told = [item.text for file in notes.files(None, None) for item in notes.read(file)]

    assert len(told) == 3
    assert all("blue pump" in text and "<!--" not in text for text in told)


def test_a_second_run_writes_nothing(memory: Memory, clock: FixedClock, folder: Path) -> None:
    """Only what is out of date is written, and a period under way is not."""
    memory.remember("We chose the blue pump")
    memory.maintain("notes")
    assert not folder.exists()
    written(memory, clock)
    before = (folder / NOTE).stat().st_mtime_ns

    clock.forward(days=365)
    assert memory.maintain("notes").plan.steps == ()
    assert (folder / NOTE).stat().st_mtime_ns == before


def test_what_is_forgotten_or_erased_is_gone_at_once(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """The note is made anew without it; a note about nothing is removed."""
    one = memory.remember("We chose the blue pump").id
    two = memory.remember("The zebra canary sings").id
    written(memory, clock)

    first = memory.forget(one)
    kept = (folder / NOTE).read_text()
    second = memory.forget(two, erase=True)

    assert len(first.notes) == len(second.notes) == 3
    assert "pump" not in kept
    assert "zebra" in kept
    assert list(folder.rglob("*.md")) == []


def test_a_memory_that_was_of_another_day_is_found_there(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """Its earlier revisions say where to look."""
    one = memory.remember("The zebra canary sings").id
    written(memory, clock)
    memory.update(one, occurred_at="2025-06-01", text="Nothing to see")

    memory.forget(one, erase=True)

    assert not any("zebra" in path.read_text() for path in folder.rglob("*.md"))


def test_somebodys_own_note_is_left_alone(memory: Memory, clock: FixedClock, folder: Path) -> None:
    """A file that was there before, and one of ours that somebody has edited."""
    memory.remember("We chose the blue pump")
    (folder / "daily").mkdir(parents=True)
    (folder / NOTE).write_text("my own words\n")
    written(memory, clock)
    week = folder / "weekly/weekly_2026-W08.md"
    week.write_text(week.read_text().replace("blue", "bright blue"))
    memory.remember("Another thing of that week")

    written(memory, clock)

    assert (folder / NOTE).read_text() == "my own words\n"
    assert "bright blue" in week.read_text()
    assert "Another thing" not in week.read_text()


def test_an_erase_reaches_an_edited_note(memory: Memory, clock: FixedClock, folder: Path) -> None:
    """The lines of the erased memory go, what somebody wrote between them stays."""
    one = memory.remember("The zebra canary sings").id
    memory.remember("We chose the blue pump")
    written(memory, clock)
    note = folder / NOTE
    note.write_text(note.read_text().replace("\n- ", "\nmine\n- ", 1))

    memory.forget(one, erase=True)

    assert "zebra" not in note.read_text()
    assert one not in note.read_text()
    assert "mine" in note.read_text()
    assert "blue pump" in note.read_text()


def test_a_file_holds_nothing_confidential_and_nothing_that_gains_by_it(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """A note is trusted as notes are: what is trusted less does not get in."""
    memory.remember("The safe opens with a song", classification=2)
    memory.remember("A page says that pumps are bad", source_class="web")

    assert written(memory, clock) == []


def test_an_erase_reaches_what_an_interrupted_writing_left(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """The half-written file beside the note goes too."""
    one = memory.remember("The zebra canary sings").id
    written(memory, clock)
    half = folder / "daily/.daily_2026-02-17.md.new"
    half.write_text("# 2026-02-17\n\n- 15:30 event: The zebra can")

    memory.forget(one, erase=True)

    assert not half.exists()


def test_a_note_tells_what_is_there_when_it_is_written(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """Not what was there when the run was planned: an erase may have come between."""
    one = memory.remember("The zebra canary sings").id
    memory.remember("We chose the blue pump")
    clock.forward(days=365)
    plan = memory.maintain("notes", preview=True).plan
    memory.forget(one, erase=True)

    memory.carry_out(plan)

    assert "blue pump" in (folder / NOTE).read_text()
    assert not any("zebra" in path.read_text() for path in folder.rglob("*.md"))


def test_conversations_are_told_by_how_they_opened(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """One line each, with the number of turns."""
    memory.remember_many(
        [
            {"text": f"I looked at pump number {number}", "session": "s1", "level": "raw",
             "speaker": "Ana"}
            for number in range(5)
        ]
    )  # fmt: skip
    written(memory, clock)

    assert "conversation of 5 turns: Ana: I looked at pump number 0" in (folder / NOTE).read_text()


@pytest.mark.parametrize(
    ("day", "names"),
    [
        ("2026-01-01", ("daily_2026-01-01", "weekly_2026-W01", "quarterly_2026-Q1")),
        ("2027-01-01", ("daily_2027-01-01", "weekly_2026-W53", "quarterly_2027-Q1")),
        ("2026-12-31", ("daily_2026-12-31", "weekly_2026-W53", "quarterly_2026-Q4")),
    ],
)
def test_a_moment_belongs_to_three_notes(day: str, names: tuple[str, ...]) -> None:
    """Weeks are those of ISO 8601, also around the new year."""
    assert note_names(datetime.fromisoformat(f"{day}T12:00+00:00")) == names


def test_a_comment_is_no_paragraph() -> None:
    """Nor does it swallow what stands between two of them."""
    assert split_paragraphs("# A\n\n<!-- x -->\n\nsaid\n\n<!-- y\nz -->\n") == ["# A\nsaid"]


def test_a_note_does_not_bring_back_what_left_recall(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """A line whose memory was superseded or ended since is not found; others of the file are."""

    def told() -> set[str]:
        answer = memory.recall("deploy key", profile="abmind")
        found = {hit.item.text for hit in answer.hits if hit.item.id.startswith("note:")}
        return {word for word in ("vault B", "Mara", "ladder") if word in str(found)}

    vault = memory.remember("The deploy key lives in vault B")
    mara = memory.remember("Mara asked about the deploy key", valid_to="2027-04-01")
    ladder = memory.remember("The deploy key hangs behind the ladder, says Ben")
    written(memory, clock)
    text = (folder / NOTE).read_text()
    assert told() == {"vault B", "Mara", "ladder"}

    clock.forward(days=1)
    newer = memory.remember("The deploy key lives in vault C")
    memory.link(newer.id, "supersedes", vault.id)
    assert told() == {"Mara", "ladder"}
    memory.store.items.set_status([ladder.id], "quarantined", actor="test", now=clock())
    assert told() == {"Mara"}
    clock.forward(days=600)
    assert memory.get(mara.id).status == "active"
    assert told() == set()
    assert (folder / NOTE).read_text() == text


def test_two_spaces_with_one_folder_do_not_cross(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """The other one neither reads nor changes nor removes a note, and is told so."""
    memory.remember("We chose the blue pump")
    written(memory, clock)
    before = {path: path.read_text() for path in folder.rglob("*.md")}
    store = SqliteStore.open(None, space="other")
    with Memory(store, clock=clock, notes_dir=folder, settings=Settings()) as other:
        other.remember("They chose the red pump")
        clock.forward(days=365)
        report = other.maintain("notes")
        found = other.recall("Which pump was chosen?", profile="abmind")

    assert before == {path: path.read_text() for path in folder.rglob("*.md")}
    assert "3 notes of another space" in report.plan.remarks[0].why
    assert "blue" not in repr(found.hits)
    assert "red" in repr(found.hits)
    assert memory.notes is not None
    assert memory.notes.find("note:daily_2026-02-17#1") is not None


def test_a_note_beyond_the_date_asked_for_is_left_out(
    memory: Memory, clock: FixedClock, folder: Path
) -> None:
    """A quarter's note is cut by its lines' own days, whichever end of the time is asked for."""
    memory.remember("We chose the blue pump")
    clock.forward(days=30)
    memory.remember("We then chose the red pump")
    memory.remember("Shall we paint the pump?", level="raw", session="s1", speaker="Ana")
    clock.forward(days=365)
    memory.maintain("notes")
    for path in (*folder.glob("daily/*"), *folder.glob("weekly/*")):
        path.unlink()

    def notes_of(**when: str) -> str:
        found = memory.recall("Which pump?", profile="abmind", **when)
        return " ".join(hit.item.text for hit in found.hits if hit.item.id.startswith("note:"))

    assert "blue" in notes_of(since="2026-02-01", until="2026-04-01")
    until = notes_of(until="2026-03-01")
    assert "blue" in until
    assert "red" not in until
    assert "paint" not in until
    since = notes_of(since="2026-03-01", until="2026-04-01")
    assert "red" in since
    assert "paint" in since
    assert "blue" not in since
