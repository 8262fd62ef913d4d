"""A space and its files: edits on both sides, conflicts, and everything that goes wrong."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.core import atomic_write
from bethink.errors import NotFound, Refused, StoreBusy
from bethink.folders.base import load_base, lock_folder
from bethink.folders.sync import export_folder, sync_folder
from bethink.sync.peer import exchange
from folder_room import Room, open_room

TOPIC = "topics/deployment.md"


@pytest.fixture
def room() -> Iterator[Room]:
    with open_room() as opened:
        yield opened


def deploy(room: Room, text: str = "Deploy on Tuesdays", **fields: object) -> str:
    """A short memory of one topic, written to its file."""
    given = {"kind": "decision", "topic": "Deployment", **fields}
    made = room.memory.remember(text, **given).id  # type: ignore[arg-type]
    room.sync()
    return made


def texts_of(room: Room, item_id: str) -> list[str]:
    return [revision.text for revision in room.memory.history(item_id)]


def test_an_edit_is_an_update_and_its_history_stays(room: Room) -> None:
    """Text, kind, tags, times and a pin are edited in the line."""
    own = deploy(room, tags=("release",))
    room.edit(TOPIC, "[decision] Deploy on Tuesdays #release", "[rule] Deploy on Fridays #ops")
    room.edit(TOPIC, " ^", " [when:: 2026-05-07] [pinned:: yes] ^")

    report = room.sync()
    item = room.memory.get(own)

    assert [line.id for line in report.updated] == [own]
    assert texts_of(room, own) == ["Deploy on Tuesdays", "Deploy on Fridays"]
    assert (item.kind, item.tags, item.pinned) == ("rule", ("ops",), True)
    assert f"{item.occurred_at:%Y-%m-%d}" == "2026-05-07"
    assert not room.sync().written


def test_new_text_is_remembered_and_gets_its_id(room: Room) -> None:
    """A line, a line of a past day, and a whole file."""
    deploy(room)
    with (room.folder / TOPIC).open("a", encoding="utf-8") as file:
        file.write("- The key is in [[Vault B]]\n  since May. #keys\n")
    room.path("days/2024-02-03.md").write_text("# My day\n\n* Met Ana for tea\n", "utf-8")
    room.path("notes/My plan.md").write_text("First paragraph.\n\nSecond one.\n", "utf-8")

    report = room.sync()
    by_text = {item.text: item for item in room.memory.browse()}

    assert len(report.remembered) == 3
    assert by_text["The key is in [[Vault B]]\nsince May."].topic == "Deployment"
    assert by_text["The key is in [[Vault B]]\nsince May."].tags == ("keys",)
    assert f"{by_text['Met Ana for tea'].occurred_at:%Y-%m-%d}" == "2024-02-03"
    plan = by_text["First paragraph.\n\nSecond one."]
    assert f"id: {plan.id}\n" in (room.folder / "notes/My plan.md").read_text("utf-8")
    day = (room.folder / "days/2024-02-03.md").read_text("utf-8")
    assert day.startswith("# My day\n\n* [")
    assert day.endswith(f"^{by_text['Met Ana for tea'].id}\n")
    assert not room.sync().written


def test_removed_text_is_forgotten_and_undone(room: Room) -> None:
    """Also a pinned one; an undo writes the line again."""
    own = deploy(room, pinned=True)
    other = deploy(room, "Roll back within ten minutes")
    path = room.folder / TOPIC
    path.write_text("".join(x for x in path.read_text().splitlines(True) if own not in x))

    report = room.sync()
    gone = room.memory.stored(own).live_to
    room.memory.undo(own)
    back = room.sync()

    assert [line.id for line in report.forgotten] == [own]
    assert gone is not None
    assert back.written == [TOPIC]
    assert own in path.read_text()
    assert room.memory.get(other).rev == 1


def test_a_moved_line_keeps_its_id_and_gets_the_topic(room: Room) -> None:
    """Into the file of another topic, which the space then has."""
    own = deploy(room)
    line = (room.folder / TOPIC).read_text().splitlines(keepends=True)[-1]
    (room.folder / TOPIC).unlink()
    room.path("topics/release.md").write_text("---\nbethink: topic\ntopic: Release\n---\n" + line)

    report = room.sync()

    assert room.memory.get(own).topic == "Release"
    assert not report.forgotten
    assert set(room.files()) == {"topics/release.md"}


def test_a_topic_changed_in_the_space_moves_the_line(room: Room) -> None:
    """The emptied file goes, unless somebody else wrote in it."""
    own, other = deploy(room), deploy(room, "Ask Ana", topic="People")
    room.edit("topics/people.md", "- ", "My own prose.\n- ")

    room.memory.update(own, topic="Release")
    room.memory.update(other, topic="Release")
    room.sync()

    assert set(room.files()) == {"topics/release.md", "topics/people.md"}
    assert (room.folder / "topics/people.md").read_text().endswith("---\nMy own prose.\n")


@pytest.mark.parametrize("later", ["file", "space"])
def test_both_changed_keeps_both_and_shows_the_other(room: Room, later: str) -> None:
    """The later one is current, the other a revision; removing the callout settles it."""
    own = deploy(room)
    room.memory.update(own, text="Deploy on Mondays")
    room.edit(TOPIC, "Tuesdays", "Fridays")
    moment = 4_000_000_000 if later == "file" else 1_000_000_000
    os.utime(room.folder / TOPIC, (moment, moment))
    current, other = "Fridays", "Mondays"
    if later == "space":
        current, other = other, current

    report = room.sync()
    shown = (room.folder / TOPIC).read_text()
    quiet = room.sync()
    path = room.folder / TOPIC
    path.write_text("".join(x for x in shown.splitlines(True) if "[!conflict]" not in x))
    settled = room.sync()

    assert [line.text for line in report.updated] == [f"Deploy on {current}"]
    assert [line.text for line in report.conflicts] == [f"Deploy on {other}"]
    assert room.memory.get(own).text == f"Deploy on {current}"
    assert {"Deploy on Mondays", "Deploy on Fridays"} <= set(texts_of(room, own))
    assert f"Deploy on {current}" in shown.split("[!conflict]")[0]
    assert f": Deploy on {other}\n" in shown.split("[!conflict]")[1]
    assert not (quiet.written)
    assert not (quiet.updated)
    assert not (quiet.conflicts)
    assert not (settled.written)
    assert not (settled.updated)
    assert load_base(room.memory, room.folder).rows[own].conflict == 0


@pytest.mark.parametrize("keep", ["current", "other"])
def test_a_conflict_in_a_file_is_listed_and_settled_as_one_of_sync(room: Room, keep: str) -> None:
    """`conflicts` shows it, and `settle` takes the callout out of the file."""
    own = deploy(room)
    room.memory.update(own, text="Deploy on Mondays")
    room.edit(TOPIC, "Tuesdays", "Fridays")
    room.sync()

    (found,) = room.memory.conflicts()
    kept = room.memory.settle(own, keep).text  # type: ignore[arg-type]
    room.sync()

    assert {found.item.text, found.others[0].text} == {"Deploy on Mondays", "Deploy on Fridays"}
    assert kept == (found.item if keep == "current" else found.others[0]).text
    assert room.memory.conflicts() == []
    shown = (room.folder / TOPIC).read_text()
    assert kept in shown
    assert "[!conflict]" not in shown
    assert not room.sync().written


@pytest.mark.parametrize("way", ["file", "settle"])
def test_a_conflict_of_two_machines_stands_in_the_file(room: Room, way: str) -> None:
    """Removing the callout settles it for all; settled elsewhere, the callout goes."""
    own = deploy(room)
    with open_room() as other:
        exchange(room.memory._syncing(), other.memory.answer_sync, ceiling=2)
        room.memory.update(own, text="Deploy on Mondays")
        other.memory.update(own, text="Deploy on Fridays")
        exchange(room.memory._syncing(), other.memory.answer_sync, ceiling=2)

    room.sync()
    shown = (room.folder / TOPIC).read_text()
    if way == "file":
        lines = (one for one in shown.splitlines(keepends=True) if "[!conflict]" not in one)
        (room.folder / TOPIC).write_text("".join(lines))
    else:
        room.memory.settle(own)
    room.sync()

    assert f"Deploy on {'Fridays' if 'Mondays ^' in shown else 'Mondays'}\n" in shown
    assert room.memory.conflicts() == []
    assert "[!conflict]" not in (room.folder / TOPIC).read_text()
    assert not room.sync().written


def test_a_conflict_of_a_note_stands_below_its_text(room: Room) -> None:
    """And a quotation that looks like one is text."""
    long = "A long text.\n\n> [!conflict] is a callout of Obsidian"
    own = room.memory.remember(long, kind="note").id
    room.sync()
    (name,) = room.files()
    quiet = room.sync()
    room.memory.update(own, text=long.replace("long", "longer"))
    room.edit(name, "A long", "A very long")

    room.sync()
    shown = (room.folder / name).read_text()
    again = room.sync()
    callout = shown.rindex("> [!conflict]")
    (room.folder / name).write_text(shown[:callout])
    settled = room.sync()

    assert not (quiet.updated)
    assert not (quiet.written)
    assert not (again.updated)
    assert not (again.written)
    assert not (settled.updated)
    assert not (settled.written)
    assert shown.count("[!conflict]") == 3
    assert "long" in room.memory.get(own).text


def test_changes_of_different_fields_are_no_conflict(room: Room) -> None:
    """Both are kept in one memory."""
    own = deploy(room)
    room.memory.update(own, tags=("ops",))
    room.edit(TOPIC, "Tuesdays", "Fridays")

    report = room.sync()
    item = room.memory.get(own)

    assert (item.text, item.tags) == ("Deploy on Fridays", ("ops",))
    assert not report.conflicts


def test_removed_here_and_changed_there_stays(room: Room) -> None:
    """What somebody just corrected is not forgotten by an older removal."""
    own = deploy(room)
    deploy(room, "Roll back within ten minutes")
    room.memory.update(own, text="Deploy on Mondays")
    path = room.folder / TOPIC
    path.write_text("".join(x for x in path.read_text().splitlines(True) if own not in x))

    report = room.sync()

    assert len(report.conflicts) == 1
    assert not report.forgotten
    assert "Deploy on Mondays" in path.read_text()


def test_forgotten_there_and_changed_here_is_restored(room: Room) -> None:
    """With what the file says; unchanged, its line is removed."""
    own, other = deploy(room), deploy(room, "Ask Ana")
    room.memory.forget(own, other)
    room.edit(TOPIC, "Tuesdays", "Fridays")

    room.sync()

    assert room.texts() == {"Deploy on Fridays"}
    assert other not in (room.folder / TOPIC).read_text()


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: (
            text.replace(b"- ", b"<<<<<<< HEAD\n- ").replace(b"\n- ", b"\n=======\n- ")
            + b">>>>>>> branch\n"
        ),
        lambda text: text.replace(b"Tuesdays", b"Tues\xe4days"),
        lambda text: text.replace(b"Deployment\n---", b"Deployment\n"),
        lambda text: text.replace(b"bethink: topic\n", b"bethink: what\n"),
        lambda text: text.replace(b"topic: Deployment", b"topic: [Deployment, Other"),
        lambda _text: b"",
        # No list item any more, though all of it is there: an id is left.
        lambda text: text.replace(b"\n- ", b"\n1. "),
        lambda text: text.replace(b"\n- ", b"\n> - "),
        lambda text: text.replace(b"\n- ", b"\n```\n- "),
        lambda text: text.replace(b"\n", b"\r"),
    ],
    ids=["merge", "bytes", "head", "key", "list", "empty", "number", "quote", "code", "returns"],
)
def test_a_file_that_cannot_be_read_is_left_alone(room: Room, damage) -> None:  # type: ignore[no-untyped-def]
    """Nothing of it is forgotten or written, and repaired it goes on."""
    own = deploy(room)
    path = room.folder / TOPIC
    good = path.read_bytes()
    path.write_bytes(damage(good))
    room.memory.update(own, text="Deploy on Mondays")

    report = room.sync()
    left = path.read_bytes()
    path.write_bytes(good)
    room.sync()

    assert [line.where for line in report.held] == [TOPIC]
    assert left == damage(good)
    assert b"Deploy on Mondays" in path.read_bytes()
    assert set(room.files()) == {TOPIC}


def test_a_file_or_folder_that_became_a_link_is_left_alone(room: Room, tmp_path: Path) -> None:
    """What somebody moved elsewhere is not removed."""
    deploy(room)
    room.memory.remember("Tea is at four", kind="fact")
    room.sync()
    (room.folder / "topics").rename(tmp_path / "topics")
    (room.folder / "topics").symlink_to(tmp_path / "topics")

    report = room.sync()

    assert [line.where for line in report.held] == [TOPIC]
    assert room.texts() == {"Deploy on Tuesdays", "Tea is at four"}


def test_an_outline_and_what_other_programs_add_change_no_text(room: Room) -> None:
    """A line below another, Logseq's ids of blocks, a front matter that is gone."""
    own = deploy(room)
    below = deploy(room, "Ask Ana before that\nand Ben")
    path, mark = room.folder / TOPIC, "  id:: 64a1b2c3-1111-2222-3333-444455556666\n"
    head, _, text = path.read_text().rpartition("---\n")
    first, *rest = text.splitlines(keepends=True)
    path.write_text(first + mark + "".join(f"\t{line}" for line in rest))

    quiet = room.sync()
    room.memory.update(own, text="Deploy on Fridays")
    room.memory.update(below, text="Ask Eva before that\nand Ben")
    room.sync()

    assert (quiet.updated, quiet.forgotten, quiet.written, quiet.held) == ([], [], [], [])
    assert {item.topic for item in room.memory.browse()} == {"Deployment"}
    changed = text.replace("Tuesdays", "Fridays").replace("Ana", "Eva").splitlines(keepends=True)
    assert path.read_text() == changed[0] + mark + "".join(f"\t{line}" for line in changed[1:])
    assert head
    assert not room.sync().written


def test_line_ends_and_the_mark_of_utf_8_are_kept(room: Room) -> None:
    """A file from Windows, and one without a last line end."""
    own = deploy(room)
    path = room.folder / TOPIC
    windows = b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n")[:-2]
    path.write_bytes(windows)

    quiet = room.sync()
    room.memory.update(own, text="Deploy on\nMondays")
    room.sync()
    deploy(room, "Ask Ana")

    assert not (quiet.updated)
    assert not (quiet.written)
    content = path.read_bytes()
    assert content.startswith(b"\xef\xbb\xbf---\r\n")
    assert b"Deploy on\r\n  Mondays ^" in content
    assert content.count(b"\n") == content.count(b"\r\n")


def test_names_are_compared_as_file_systems_do(room: Room) -> None:
    """Without case and Unicode forms: no file is written over one that is spelt otherwise."""
    room.path("topics/DEPLOYMENT.md").write_text("---\nbethink: topic\ntopic: Other\n---\n")
    deploy(room)
    composed = room.path("topics/Café.md")
    composed.write_text("- Tea at four\n", "utf-8")
    room.sync()
    composed.rename(room.folder / unicodedata.normalize("NFD", "topics/Café.md"))

    report = room.sync()

    assert "topics/deployment-2.md" in room.files()
    assert not (report.forgotten)
    assert not (report.remembered)


def test_links_are_not_followed(room: Room, tmp_path: Path) -> None:
    """Neither a file nor a folder that leads elsewhere."""
    deploy(room)
    (tmp_path / "outside.md").write_text("- A secret of somebody else\n")
    (room.folder / "topics/linked.md").symlink_to(tmp_path / "outside.md")
    (room.folder / "notes").symlink_to(tmp_path)

    report = room.sync()

    assert not report.remembered
    assert room.texts() == {"Deploy on Tuesdays"}


def test_of_two_lines_with_one_id_the_unchanged_one_keeps_it(room: Room) -> None:
    """Copied twice, the original edited, one id removed: nothing is lost."""
    own = deploy(room)
    path = room.folder / TOPIC
    head, _, line = path.read_text().rpartition("\n- ")
    copy = f"- {line}"
    edited = copy.replace("Tuesdays", "Tuesdays and Fridays, but never in December")
    path.write_text(f"{head}\n{edited}{copy}{copy.rpartition(' ^')[0]}\n")

    report = room.sync()

    assert room.memory.get(own).text == "Deploy on Tuesdays"
    assert room.texts() == {
        "Deploy on Tuesdays",
        "Deploy on Tuesdays and Fridays, but never in December",
    }
    assert len(report.remembered) == 1
    assert len(report.duplicates) == 1
    assert not room.sync().written


def test_a_line_that_lost_its_id_is_the_missing_memory(room: Room) -> None:
    """The same text, or clearly the same with a correction."""
    own, other = deploy(room), deploy(room, "The deploy key is in vault B since May")
    path = room.folder / TOPIC
    bare = "\n".join(line.partition(" ^")[0] for line in path.read_text().split("\n"))
    path.write_text(bare.replace("since May", "since June"))

    report = room.sync()

    assert not (report.remembered)
    assert not (report.forgotten)
    assert texts_of(room, other)[-1] == "The deploy key is in vault B since June"
    assert room.memory.get(own).rev == 1
    assert f"^{own}\n" in path.read_text()


def test_joined_lines_are_one_memory_that_supersedes_the_others(room: Room) -> None:
    """The first goes on; nobody forgets the second."""
    own, other = deploy(room), deploy(room, "Ask Ana before that")
    path = room.folder / TOPIC
    path.write_text(path.read_text().replace(f"^{own}\n- ", f"^{own} - "))

    room.sync()

    assert room.texts() == {"Deploy on Tuesdays Ask Ana before that"}
    assert room.memory.get(own).rev == 2
    assert room.memory.stored(other).status == "superseded"
    assert not room.sync().written


def fill(room: Room, count: int = 60) -> None:
    room.memory.remember_many(
        {"text": f"Fact number {n} about tea", "kind": "fact", "topic": "Tea"} for n in range(count)
    )
    room.sync()


def test_much_that_vanishes_is_asked_about(room: Room) -> None:
    """An old branch or a half copied folder: nothing happens until somebody says so."""
    fill(room)
    path = room.folder / "topics/tea.md"
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:20]))
    short = path.read_bytes()

    with pytest.raises(Refused, match="44 memories would be forgotten"):
        room.sync()
    left = (len(room.texts()), path.read_bytes())
    report = room.sync(yes=True)
    path.write_text(whole)
    back = room.sync()

    assert left == (60, short)
    assert len(report.forgotten) == 44
    assert len(back.restored) == 44
    assert len(room.texts()) == 60


def test_old_texts_that_come_back_are_asked_about(room: Room) -> None:
    """An old branch has old lines, too."""
    fill(room)
    path = room.folder / "topics/tea.md"
    old = path.read_text()
    for item in room.memory.browse(limit=60):
        room.memory.update(item.id, text=item.text.replace("tea", "coffee"))
    room.sync()
    path.write_text(old)

    with pytest.raises(Refused, match="60 memories would get an earlier text"):
        room.sync()
    report = room.sync(yes=True)

    assert len(report.updated) == 60


def test_a_missing_or_empty_folder_forgets_nothing(room: Room) -> None:
    """A drive that is not mounted looks like that."""
    own = deploy(room)
    away = room.folder.with_name("away")
    room.folder.rename(away)

    with pytest.raises(NotFound, match="nothing was forgotten"):
        room.sync()
    room.folder.mkdir()
    with pytest.raises(Refused, match="1 memory would be forgotten"):
        room.sync()

    assert room.memory.get(own).live_to is None


def test_a_line_of_a_forgotten_memory_restores_it_by_its_own_id(room: Room) -> None:
    """Also one that a block id cannot hold as it is."""
    deploy(room, id="dep")
    copy = (room.folder / TOPIC).read_bytes()
    room.memory.forget("dep")
    room.sync()
    room.path(TOPIC).write_bytes(copy)

    report = room.sync()

    assert [line.id for line in report.restored] == ["dep"]
    assert not report.remembered
    assert [item.id for item in room.memory.browse()] == ["dep"]


@pytest.mark.parametrize("named", [None, "dep", "api_key.1"])
def test_an_erased_memory_never_returns(room: Room, named: str | None) -> None:
    """Its line goes; one that was edited meanwhile is left alone and not stored."""
    own, other = deploy(room, id=named), deploy(room, "Ask Ana")
    line = next(x for x in (room.folder / TOPIC).read_text().split("\n") if "Tuesdays" in x)
    receipt = room.memory.forget(own, erase=True).receipt
    assert receipt is not None
    assert any(str(room.folder) in place for place in receipt.out_of_reach)
    room.sync()
    path = room.folder / TOPIC
    gone = "Tuesdays" not in path.read_text()
    path.write_text(path.read_text() + line + "\n")

    report = room.sync()

    assert gone
    assert [(line.id, "erased" in line.text) for line in report.refused] == [(own, True)]
    assert room.texts() == {"Ask Ana"}
    assert room.memory.get(other).rev == 1
    base = next((room.memory.settings.data_dir / "room/files").glob("*.json"))  # type: ignore[operator]
    assert "Tuesdays" not in base.read_text()


def test_files_show_nothing_above_the_ceiling(room: Room) -> None:
    """By default internal memories; one that is raised leaves its file."""
    own = deploy(room)
    deploy(room, "The salary of Ana", classification=2)
    shown = (room.folder / TOPIC).read_text()
    room.memory.update(own, classification=3)
    room.sync()

    assert "salary" not in shown
    assert TOPIC not in room.files()
    assert "salary" in str(room.sync(ceiling=2) and room.files()[TOPIC])


def test_new_text_is_redacted_in_the_file_too(room: Room) -> None:
    """A secret is neither stored nor left lying in the folder."""
    deploy(room)
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    with (room.folder / TOPIC).open("a") as file:
        file.write(f"- The token is {secret}\n")

    room.sync()

    assert secret not in (room.folder / TOPIC).read_text()
    assert not any(secret in text for text in room.texts())


def test_a_refused_text_stays_and_is_reported_each_time(room: Room) -> None:
    """Nothing is cut, nothing is lost."""
    deploy(room)
    path = room.path("notes/huge.md")
    path.write_text("word " * 20_000)

    first, second = room.sync(), room.sync()

    assert [line.where for line in first.refused] == ["notes/huge.md:1"]
    assert [line.where for line in second.refused] == ["notes/huge.md:1"]
    assert path.read_text() == "word " * 20_000


def test_a_file_saved_while_it_is_written_is_not_lost(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An editor renames its file into place between our last look and our own rename."""
    own = deploy(room)
    room.memory.update(own, text="Deploy on Mondays")
    path, exchange, saved = room.folder / TOPIC, atomic_write._exchange, []

    def save_first(first: Path, second: Path) -> bool:
        if not saved:
            saved.append(path.read_bytes() + b"- Saved at the last moment\n")
            draft = path.with_name("draft")
            draft.write_bytes(saved[0])
            draft.replace(path)
        return exchange(first, second)

    monkeypatch.setattr(atomic_write, "_exchange", save_first)
    room.sync()

    assert room.texts() == {"Deploy on Mondays", "Saved at the last moment"}
    assert "Saved at the last moment" in path.read_text()
    assert "Deploy on Mondays" in path.read_text()


def test_a_text_whose_id_was_never_written_is_not_stored_twice(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash after the text was remembered, before its line was written."""
    deploy(room)
    path = room.folder / TOPIC
    path.write_text(path.read_text() + "- Ask Ana\n")
    with monkeypatch.context() as patch:
        patch.setattr("bethink.folders.sync.replace_unchanged", _crash)
        with pytest.raises(KeyboardInterrupt):
            room.sync()

    room.sync()

    assert sorted(room.texts()) == ["Ask Ana", "Deploy on Tuesdays"]
    assert path.read_text().count("Ask Ana ^") == 1
    assert room.memory.store.admin.count() == 2


def _crash(*_: object) -> bool:
    raise KeyboardInterrupt


def test_files_come_into_another_space_with_their_ids(room: Room) -> None:
    """A clone of the folder on another machine."""
    own, other = deploy(room), deploy(room, "Ask Ana")
    room.memory.link(own, "related_to", other)
    room.sync()
    with open_room() as second:
        for name, content in room.files().items():
            second.path(name).write_bytes(content)

        second.sync()

        assert second.files() == room.files()
        assert second.memory.get(own).text == "Deploy on Tuesdays"
        assert [link.dst.id for link in second.memory.links(own)] == [other]


def test_links_are_made_and_removed_in_the_file(room: Room) -> None:
    """By a wikilink to a block or to a note."""
    own, other = deploy(room), deploy(room, "Ask Ana")
    note = room.memory.remember("A long story.\n\nIn paragraphs.", kind="note").id
    room.sync()
    name = next(name for name in room.files() if name.startswith("notes/"))
    room.edit(TOPIC, f" ^{own}", f" [causes:: [[x#^{other}]]] [implies:: [[{name[6:-3]}]]] ^{own}")

    room.sync()
    linked = {(link.type, link.dst.id) for link in room.memory.links(own)}
    shown = (room.folder / TOPIC).read_text()
    room.edit(TOPIC, f" [causes:: [[topics/deployment#^{other}]]]", "")
    room.sync()

    assert linked == {("causes", other), ("implies", note)}
    assert f"[implies:: [[{name[:-3]}]]]" in shown
    assert {link.type for link in room.memory.links(own)} == {"implies"}
    assert not room.sync().written


def test_keys_of_other_programs_stay_in_the_front_matter(room: Room) -> None:
    """Also where one writes a front matter of its own before ours."""
    own = room.memory.remember("A long story.\n\nIn paragraphs.", kind="note").id
    room.sync()
    (name,) = room.files()
    room.edit(name, "kind: note\n", "permalink: a/b\ntags:\n  - tea\nkind: note\n")
    before = "---\ntitle: Story\npermalink: story\n---\n\n"
    (room.folder / name).write_text(before + (room.folder / name).read_text())

    room.sync()
    room.memory.update(own, kind="event")
    room.sync()
    text = (room.folder / name).read_text()

    assert room.memory.get(own).tags == ("tea",)
    assert text.startswith(before)
    assert "permalink: a/b\ntags:\n  - tea\nkind: event\n" in text


def test_an_insight_cannot_be_edited(room: Room) -> None:
    """Its line is written again, and the report names the text."""
    own = deploy(room, "Deploys fail on Mondays", level="insight")
    room.edit(TOPIC, "Mondays", "Sundays")

    report = room.sync()

    assert [line.text for line in report.undone] == ["Deploys fail on Sundays"]
    assert "Deploys fail on Mondays" in (room.folder / TOPIC).read_text()
    assert room.memory.get(own).rev == 1


def test_a_dry_run_changes_nothing(room: Room) -> None:
    """It tells what would happen on either side."""
    own, gone = deploy(room), deploy(room, "Ask Ana")
    room.memory.remember("I like tea")
    room.edit(TOPIC, "Tuesdays", "Fridays")
    path = room.folder / TOPIC
    kept = [line for line in path.read_text().splitlines(True) if gone not in line]
    path.write_text("".join(kept) + "- A new line\n")
    files, generation = room.files(), room.memory.store.admin.generation()

    report = room.sync(dry_run=True)

    assert [line.id for line in report.updated] == [own]
    assert [line.id for line in report.forgotten] == [gone]
    assert [line.text for line in report.remembered] == ["A new line"]
    assert any(name.startswith("days/") for name in report.written)
    assert (room.files(), room.memory.store.admin.generation()) == (files, generation)


def test_one_process_at_a_time_works_on_a_folder(room: Room) -> None:
    """The second is told, and changes nothing."""
    with lock_folder(room.memory, room.folder.resolve()), pytest.raises(StoreBusy):
        sync_folder(room.memory, room.folder)


def test_an_export_is_the_same_files(room: Room, tmp_path: Path) -> None:
    """Into a new folder only."""
    deploy(room)
    room.memory.remember("A long story.\n\nIn paragraphs.")
    room.sync()

    export_folder(room.memory, tmp_path / "export")
    found = (path for path in (tmp_path / "export").rglob("*") if path.is_file())

    names = {path.relative_to(tmp_path / "export").as_posix(): path.read_bytes() for path in found}
    assert names == room.files()
    with pytest.raises(Refused, match="not empty"):
        export_folder(room.memory, tmp_path / "export")


def test_files_of_others_are_neither_read_nor_written(room: Room) -> None:
    """A vault may hold the folder, with notes, back-ups and drafts of its own."""
    deploy(room)
    foreign = {
        "Inbox.md": b"- not ours\n", "topics/.draft.md.swp": b"x", "topics/deployment.md~": b"- old\n",
        "topics/.#deployment.md": b"x", "image.png": b"\x00", "topics/4913": b"",
    }  # fmt: skip
    for name, content in foreign.items():
        room.path(name).write_bytes(content)

    report = room.sync()

    assert not (report.remembered)
    assert not (report.held)
    assert {name: room.files()[name] for name in foreign} == foreign
