"""Sources that are broken, or meant to break something: refused by name, or taken."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreign
from bethink import Memory
from bethink.importers.entry import Entry
from bethink.importers.foreign_db import MAX_CELL_BYTES
from bethink.importers.intake import Intake, Tally
from bethink.importers.streams import MAX_JSON_LINE_BYTES
from bethink.model import Draft
from importing import import_from
from rows import each_row


@pytest.fixture
def space() -> Iterator[Memory]:
    """A memory without vectors."""
    with Memory.open(":memory:", embedder="none") as opened:
        yield opened


def both(memory: Memory, path: Path, kind: str = "auto") -> Tally:
    """What became of an import, whose preview must have said the same."""
    preview = import_from(memory, path, kind, preview=True)
    done = import_from(memory, path, kind)
    told = [
        (one.stored, one.updated, one.known, one.links, one.n_refused) for one in (preview, done)
    ]
    assert told[0] == told[1]
    return done


SPOILING = ["CAST(x'ff61' AS TEXT)", f"zeroblob({MAX_CELL_BYTES + 1})", "x'00'", "'a' || char(0)"]


@each_row("cell", SPOILING, ids=["utf8", "huge", "blob", "nul"])
def test_a_bad_cell_spoils_no_other_row(tmp_path: Path, space: Memory, cell: str) -> None:
    """In every database, in the words themselves and beside them."""
    remind, seen, history = (
        make(tmp_path) for make in (foreign.remind, foreign.claude_mem, foreign.mem0_history)
    )
    with foreign.database(remind) as db:
        db.execute(f"INSERT INTO concepts (id, data) VALUES ('bad', {cell})")
        db.execute(
            f'INSERT INTO episodes (id, data) VALUES ({cell}, \'{{"content": "An odd id"}}\')'
        )
        db.execute(f"INSERT INTO topics VALUES ('bad', {cell}, NULL)")
        db.execute(f"INSERT INTO relations VALUES ('c1', {cell}, 'implies', 1, NULL)")
        db.execute(f"INSERT INTO entity_relations (source_id, target_id, relation_type) VALUES "
                   f"('person:a', {cell}, 'knows')")  # fmt: skip
        db.execute("CREATE TABLE facts (id TEXT, statement TEXT, valid_to TEXT)")
        db.execute(f"INSERT INTO facts VALUES ('f', {cell}, 'never')")
    with foreign.database(seen) as db:
        db.execute(f"INSERT INTO observations (id, project, type, narrative) VALUES "
                   f"(3, 'p', 'x', {cell})")  # fmt: skip
        db.execute(f"INSERT INTO sdk_sessions VALUES (2, 'ses-2', 'mem-2', {cell}, 0)")
        db.execute("INSERT INTO user_prompts (id, content_session_id, prompt_text) VALUES "
                   "(2, 'ses-2', 'a prompt of it')")  # fmt: skip
    with foreign.database(history) as db:
        db.execute(f"INSERT INTO history (id, memory_id, new_memory, event) VALUES "
                   f"('h9', 'm9', {cell}, 'ADD')")  # fmt: skip

    first, second, third = (both(space, path) for path in (remind, seen, history))

    assert first.stored >= 5
    assert first.n_refused >= 2
    assert (second.stored, second.n_refused) == (5, 1)
    assert (third.stored, third.n_refused) == (1, 1)


@each_row("cell", SPOILING, ids=["utf8", "huge", "blob", "nul"])
def test_a_bad_cell_that_nothing_reads_spoils_nothing(
    tmp_path: Path, space: Memory, cell: str
) -> None:
    """Other programs keep much beside a memory."""
    seen = foreign.claude_mem(tmp_path)
    with foreign.database(seen) as db:
        db.execute("ALTER TABLE observations ADD COLUMN raw_cache")
        db.execute(f"UPDATE observations SET raw_cache = {cell}")

    assert both(space, seen).n_refused == 0


def test_words_and_ids_may_be_stored_as_bytes(tmp_path: Path, space: Memory) -> None:
    """A column of SQLite holds values of any type."""
    remind = foreign.remind(tmp_path)
    before = import_from(space, remind, preview=True).stored
    with foreign.database(remind) as db:
        for number in range(3):
            data = json.dumps({"content": f"The {number}. ferry leaves at noon"}).encode()
            db.execute("INSERT INTO episodes (id, data) VALUES (?, ?)", (b"id%d" % number, data))

    tally = both(space, remind)

    assert (tally.stored, tally.n_refused) == (before + 3, 0)


def test_an_entity_that_stands_twice_is_read_twice(tmp_path: Path, space: Memory) -> None:
    """Neither takes the other for its own earlier words."""
    one = {**foreign.GRAPH[0], "observations": ["Likes long walks by the sea"]}
    two = {**foreign.GRAPH[0], "observations": ["Likes long walks by the lake"]}
    path = foreign.mcp_memory(tmp_path, [one, two])

    assert both(space, path).stored == 2
    assert both(space, path).repeated == 2


def test_a_group_can_be_larger_than_is_compared(space: Memory) -> None:
    """What comes after is known by its words."""
    came = [Entry(str(n), Draft(f"Observation number {n}"), group="g") for n in range(9)]
    tallies = [Tally(), Tally()]

    for tally in tallies:
        list(Intake(space, "mcp-memory", tally, most_in_group=4).store_entries(came, {}))

    assert [(tally.stored, tally.repeated) for tally in tallies] == [(9, 0), (0, 9)]


def test_what_supersedes_in_circles_is_refused(tmp_path: Path, space: Memory) -> None:
    """Only where the circle would close."""
    path = foreign.remind(tmp_path)
    with foreign.database(path) as db:
        db.execute("INSERT INTO relations VALUES ('c2', 'c1', 'supersedes', 1, NULL)")
        db.execute("INSERT INTO relations VALUES ('c2', 'c2', 'supersedes', 1, NULL)")

    tally = both(space, path)

    assert tally.n_refused == 1
    assert "supersede each other" in tally.refused[0].error.message


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path, space: Memory) -> None:
    """And the ones around it are read."""
    path = tmp_path / "memory.jsonl"
    lines = [json.dumps(one) for one in foreign.GRAPH[:2]]
    path.write_text(f'{lines[0]}\n{{"x": "{"y" * (MAX_JSON_LINE_BYTES + 10)}"}}\n\n{lines[1]}\n')

    tally = both(space, path)

    assert tally.stored == 3
    assert tally.refused[0].where == "line 2"


def test_messages_that_are_hidden_or_empty_are_left_out(tmp_path: Path, space: Memory) -> None:
    """Or said to a tool, or of a kind that nobody speaks in."""
    (chat,) = foreign.chatgpt_conversations()
    nodes = chat["mapping"]
    nodes["q1"]["message"]["metadata"] = {"is_visually_hidden_from_conversation": True}
    nodes["a1"]["message"]["recipient"] = "browser"
    nodes["q2"]["message"]["content"] = {"content_type": "user_editable_context", "parts": ["x"]}
    nodes["a2"]["message"]["content"] = {"content_type": "code", "text": "print('hello there')"}

    tally = both(space, foreign.chatgpt(tmp_path, [chat]))

    assert (tally.stored, space.browse()[0].text) == (1, "print('hello there')")


def test_conversations_that_are_none_are_told(tmp_path: Path, space: Memory) -> None:
    """By their number, in either export."""
    chats: list[Any] = copy.deepcopy(foreign.claude_conversations())
    chats[0]["chat_messages"] += [
        7,
        {"sender": "tool", "text": "x"},
        {"sender": "human", "text": "Old"},
    ]
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([*chats, 5, {"uuid": "x"}]))

    tally = both(space, path)

    assert (tally.stored, [one.where for one in tally.refused]) == (
        3, ["conversation 2", "conversation 3"],
    )  # fmt: skip


def test_a_key_that_says_something_else_is_refused(tmp_path: Path, space: Memory) -> None:
    """Keys in JSON Lines are the writer's own; the preview knows it."""
    space.remember("The first words", key="k")
    path = foreign.jsonl(
        tmp_path / "keys.jsonl", {"text": "The first words", "key": "k"},
        {"text": "Other words", "key": "k"}, {"text": "New words", "key": "n"},
        {"text": "New words", "key": "n"}, {"text": "Newer words", "key": "n"},
    )  # fmt: skip

    tally = both(space, path)

    assert (tally.stored, tally.repeated, tally.n_refused) == (1, 2, 2)


def test_a_folder_of_very_many_notes(tmp_path: Path, space: Memory) -> None:
    """Is read file by file; most of them say nothing here."""
    for number in range(2000):
        (tmp_path / f"{number:05}.md").write_text(
            "\n" if number % 500 else f"# Note {number}\n\ntext"
        )

    assert both(space, tmp_path).stored == 4
