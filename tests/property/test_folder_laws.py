"""Laws of memories as files: reading undoes writing, and nothing but an edit is written."""

from __future__ import annotations

import difflib
from datetime import UTC, datetime

from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from bethink.errors import Refused
from bethink.folders.codec import (
    Editable,
    fits_item,
    format_conflict,
    format_item,
    format_note,
    new_document,
    parse_document,
    whole_note,
)
from folder_room import Room, open_room
from thorough import examples

REF = "01j8x4k2m9p0q7rt"
TIMES = st.none() | st.datetimes(
    min_value=datetime(1900, 1, 1),  # noqa: DTZ001 - given a zone below
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
).map(lambda moment: moment.replace(tzinfo=UTC))
PIECES = st.sampled_from(
    [
        "a",
        "Tea",
        "- b",
        "#tag",
        "[when:: 2026-05-07]",
        "^abcdef",
        "[fact]",
        "[x]",
        "\n",
        "\n\n",
        "  ",
        "\r\n",
        "> [!conflict] x: y",
        "---",
        "```",
        "[[Vault B]]",
        "\n> q",
        "é",
        "é",
    ]
)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60) | st.lists(
    PIECES, min_size=1, max_size=9
).map(" ".join)
NAMES = (
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
    .map(lambda text: " ".join(text.split()))
    .filter(bool)
)
LINKS = st.tuples(
    st.sampled_from(["causes", "derives_from"]),
    st.sampled_from(["topics/a#^abcdef", "notes/b"]),
)
SHOWN = st.builds(
    Editable,
    TEXTS,
    kind=st.sampled_from(["note", "fact"]) | NAMES,
    topic=st.none() | NAMES,
    tags=st.lists(st.sampled_from(["release", "a/b"]) | NAMES, max_size=3, unique=True).map(tuple),
    occurred_at=TIMES,
    occurred_end=TIMES,
    valid_from=TIMES,
    valid_to=TIMES,
    pinned=st.booleans(),
    links=st.lists(LINKS, max_size=2, unique=True).map(sorted).map(tuple),
)


@given(SHOWN, st.booleans())
@settings(max_examples=examples(100, 300))
def test_a_note_is_read_as_it_was_written(shown: Editable, has_conflict: bool) -> None:
    """Any text, with any front matter, to the byte; writing it again changes nothing."""
    conflict = format_conflict("other\nline", "desktop") if has_conflict else ""

    written = format_note(new_document("note"), shown, REF, conflict)
    read = parse_document(written.to_bytes(), "notes/x.md")

    assert read is not None
    assert (read.blocks[0].shown if has_conflict else whole_note(read)) == shown
    assert read.blocks[0].ref == REF
    assert format_note(read, shown, REF, conflict).to_bytes() == written.to_bytes()


@given(SHOWN)
@example(Editable("0\n>[!conflict]", kind="note"))
@settings(max_examples=examples(100, 300))
def test_a_list_item_is_read_as_it_was_written(shown: Editable) -> None:
    """Whatever fits a list item comes back from a file of its topic."""
    assume(fits_item(shown))
    head = new_document(f"topic:{shown.topic}" if shown.topic else "day:2026-05-07")
    lines = tuple(f"{line}\n" for line in format_item(shown, REF))

    read = parse_document(head._replace(lines=head.lines + lines).to_bytes(), "x.md")

    assert read is not None
    assert [(block.shown, block.ref) for block in read.blocks] == [(shown, REF)]


MEMORIES = st.lists(
    st.fixed_dictionaries(
        {"text": TEXTS | st.just("long " * 90)},
        optional={
            "kind": st.sampled_from(["fact", "decision"]),
            "topic": st.sampled_from(["C", "C++", "Ünïcode", "2026-05-07", "a/b", "notes"]),
            "tags": st.lists(st.sampled_from(["release", "x y"]), max_size=2, unique=True),
            "occurred_at": TIMES,
            "pinned": st.booleans(),
        },
    ),
    max_size=6,
)


def remembered(room: Room, memories: list[dict[str, object]]) -> None:
    for fields in memories:
        try:
            room.memory.remember(**fields)  # type: ignore[arg-type]
        except Refused:
            continue


@given(MEMORIES)
@settings(max_examples=examples(20, 40), suppress_health_check=list(HealthCheck))
def test_reading_what_was_written_changes_nothing(memories: list[dict[str, object]]) -> None:
    """Neither the space nor a byte; and a lost base is found again from the files alone."""
    with open_room() as room:
        remembered(room, memories)
        room.sync()
        files, generation = room.files(), room.memory.store.admin.generation()

        again = room.sync()
        (room.memory.settings.data_dir / "room" / "files").rename(room.folder.parent / "lost")  # type: ignore[operator]
        afresh = room.sync()

        for report in (again, afresh):
            assert not (report.written)
            assert not (report.updated)
            assert not (report.remembered)
            assert not (report.held)
            assert not (report.forgotten)
            assert not (report.conflicts)
            assert not (report.refused)
        assert room.files() == files
        assert room.memory.store.admin.generation() == generation


FOREIGN = st.lists(
    st.sampled_from(
        [
            "Prose stays.\n",
            "# Title\n",
            "\n",
            "```\n- code\n```\n",
            "| a | b |\n",
            "text\r\n",
            "> quote\n",
            "1. one\n",
            "<!-- x -->\n",
            "  \n",
            "%% c %%\n",
            "key:: value\n",
        ]
    ),
    max_size=5,
).map("".join)


@given(MEMORIES.filter(bool), FOREIGN, FOREIGN, st.booleans())
@settings(max_examples=examples(20, 40), suppress_health_check=list(HealthCheck))
def test_bytes_of_others_are_kept_and_an_edit_is_one_line(
    memories: list[dict[str, object]], above: str, below: str, bom: bool
) -> None:
    """Around a memory anything may stand; its update changes its own lines only."""
    with open_room() as room:
        remembered(room, memories)
        own = room.memory.remember("Own memory", kind="fact", topic="Own").id
        room.sync()
        path = room.folder / "topics" / "own.md"
        head, line = path.read_bytes().split(b"- ", 1)
        mark = b"\xef\xbb\xbf" if bom else b""
        path.write_bytes(mark + head + above.encode() + b"- " + line + below.encode())
        before = path.read_bytes()
        others = {name: content for name, content in room.files().items() if "own" not in name}

        quiet = room.sync()
        room.memory.update(own, text="Own memory, corrected")
        room.sync()

        assert not quiet.written
        changed = list(
            difflib.diff_bytes(difflib.unified_diff, _lines(before), _lines(path.read_bytes()), n=0)
        )
        assert sum(line[:1] == b"+" for line in changed[2:]) == 1
        assert sum(line[:1] == b"-" for line in changed[2:]) == 1
        assert {name: room.files()[name] for name in others} == others


def _lines(content: bytes) -> list[bytes]:
    return content.split(b"\n")


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "edit",
                "edit",
                "append",
                "remove",
                "copy",
                "bare",
                "move",
                "join",
                "truncate",
                "update",
                "forget",
                "topic",
                "remember",
                "old",
                "sync",
                "sync",
            ]
        ),
        st.integers(0, 99),
    ),
    max_size=14,
)


@given(STEPS)
@settings(max_examples=examples(30, 60), suppress_health_check=list(HealthCheck))
def test_no_text_is_lost_whatever_both_sides_do(steps: list[tuple[str, int]]) -> None:
    """What a file said when it was read, some revision says; the next pass has nothing to do."""
    with open_room() as room:
        for number, topic in enumerate(["Tea", "Pots", "Tea"]):
            room.memory.remember(f"First fact {number} of it", kind="fact", topic=topic)
        room.sync()
        before = room.files()
        for count, (step, seed) in enumerate(steps):
            if step == "sync":
                _check_pass(room)
            elif step == "old":
                for name, content in before.items():
                    room.path(name).write_bytes(content)
            elif step in ("update", "forget", "topic", "remember"):
                _change_space(room, step, seed, count)
            else:
                _change_file(room, step, seed, count)
        _check_pass(room)


def _check_pass(room: Room) -> None:
    said = {
        block.shown.text
        for name, content in room.files().items()
        if (read := parse_document(content, name)) is not None
        for block in read.blocks
        if block.shown.text and "^" not in block.shown.text
    }
    room.sync(yes=True)
    files, generation = room.files(), room.memory.store.admin.generation()
    report = room.sync(yes=True)

    assert not report.written
    assert (room.files(), room.memory.store.admin.generation()) == (files, generation)
    assert said <= {record["text"] for record in room.memory.export() if "text" in record}
    shown = b"".join(files.values()).decode()
    assert all(item.id in shown for item in room.memory.browse())


def _change_space(room: Room, step: str, seed: int, count: int) -> None:
    items = sorted(room.memory.browse(), key=lambda item: item.id)
    if step == "remember" or not items:
        room.memory.remember(f"Told by agent {count}", kind="fact", topic=["Tea", None][seed % 2])
        return
    own = items[seed % len(items)]
    if step == "forget":
        room.memory.forget(own.id)
    elif step == "topic":
        room.memory.update(own.id, topic=["Tea", "Pots", "New"][seed % 3])
    else:
        room.memory.update(own.id, text=f"Corrected by agent {count}")


def _change_file(room: Room, step: str, seed: int, count: int) -> None:
    paths = sorted(path for path in room.folder.rglob("*.md") if path.is_file())
    if not paths:
        return
    path = paths[seed % len(paths)]
    lines = path.read_text().splitlines(keepends=True)
    items = [n for n, line in enumerate(lines) if line.startswith("- ")]
    at = items[seed % len(items)] if items else None
    if step == "append" or at is None:
        lines.append(f"- Written by hand {count}\n")
    elif step == "edit":
        head, _, tail = lines[at].partition(" ^")
        lines[at] = (
            f"- Edited by hand {count} of {head[-5:].strip()} ^{tail}" if tail else lines[at]
        )
    elif step == "remove":
        del lines[at]
    elif step == "copy":
        lines.append(lines[at])
    elif step == "bare":
        lines[at] = lines[at].partition(" ^")[0].rstrip() + "\n"
    elif step == "join":
        lines[at] = lines[at].rstrip("\n") + " "
    elif step == "truncate":
        lines = lines[: at + 1]
    else:
        other = paths[(seed + 1) % len(paths)]
        moved = lines.pop(at)
        path.write_text("".join(lines))
        other.write_text(other.read_text() + moved)
        return
    path.write_text("".join(lines))
