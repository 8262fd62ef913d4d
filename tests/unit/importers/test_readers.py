"""Each source gives what it holds: words, times, kinds, entities, and how they are tied."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import foreign
from bethink.errors import Refused
from bethink.importers import IMPORTERS
from bethink.importers.entry import Entry, ReadProgress
from bethink.model import Draft
from rows import each_row


def entries(kind: str, path: Path) -> list[Entry]:
    return list(IMPORTERS[kind](path, ReadProgress()).entries())


def drafts(kind: str, path: Path) -> list[Draft]:
    return [one.found for one in entries(kind, path) if isinstance(one.found, Draft)]


def refusals(kind: str, path: Path) -> list[tuple[str, str]]:
    found = entries(kind, path)
    return [(one.where, one.found.message) for one in found if isinstance(one.found, Refused)]


def tied(kind: str, path: Path) -> list[tuple[str, str, str]]:
    """Ties with the words of what they tie, or the names of entities."""
    source = IMPORTERS[kind](path, ReadProgress())
    words = {one.id: one.found.text for one in source.entries() if isinstance(one.found, Draft)}
    return [
        (words.get(tie.src.name, tie.src.name), tie.type, words.get(tie.dst.name, tie.dst.name))
        for tie in source.links()
    ]


def test_every_source_is_looked_at_here() -> None:
    """A new one needs something to read."""
    assert list(foreign.MAKERS) == list(IMPORTERS)


@each_row("kind", foreign.MAKERS)
def test_reading_twice_gives_the_same(kind: str, tmp_path: Path) -> None:
    """In the same order, with the same ids: that is what an import is repeated by."""
    path = foreign.MAKERS[kind](tmp_path)

    first, second = entries(kind, path), entries(kind, path)

    assert first == second
    assert not [one for one in first if isinstance(one.found, Refused)]
    assert all(one.id or one.group or one.found.key for one in first)  # type: ignore[union-attr]


@each_row("kind", foreign.MAKERS)
def test_progress_reaches_its_end(kind: str, tmp_path: Path) -> None:
    """Of as much as there is; a single file may say nothing of it."""
    gauge = ReadProgress()
    source = IMPORTERS[kind](foreign.MAKERS[kind](tmp_path), gauge)

    list(source.entries())

    assert gauge.done == gauge.total


def test_observations_name_their_entity(tmp_path: Path) -> None:
    """A relation is said in words and tied; an entity that nothing is said of is named."""
    path = foreign.mcp_memory(tmp_path)

    found = {one.text: one for one in drafts("mcp-memory", path)}

    assert found["Mara_Lind: Prefers tea to coffee"].entities == ("person:Mara_Lind",)
    assert found["Tidewater GmbH (organization)"].entities == ("company:Tidewater GmbH",)
    assert found["Mara_Lind works at Tidewater GmbH"].kind == "fact"
    assert ("person:Mara_Lind", "leads", "project:Harbour") in tied("mcp-memory", path)


def test_the_graph_that_read_graph_gives(tmp_path: Path) -> None:
    """Is the same as the lines of the file, on one line or on many."""
    lines = [one.text for one in drafts("mcp-memory", foreign.mcp_memory(tmp_path))]
    graph: dict[str, list[Any]] = {"entities": [], "relations": []}
    for record in foreign.GRAPH:
        graph["entities" if record["type"] == "entity" else "relations"].append(record)
    for indent in (None, 2):
        path = tmp_path / f"graph{indent}.json"
        path.write_text(json.dumps(graph, indent=indent))
        assert [one.text for one in drafts("mcp-memory", path)] == lines


def test_a_relation_may_come_before_its_entities(tmp_path: Path) -> None:
    """It knows what they are."""
    path = foreign.mcp_memory(tmp_path, list(reversed(foreign.GRAPH)))

    assert drafts("mcp-memory", path)[1].entities == ("person:Mara_Lind", "project:Harbour")


def test_broken_lines_are_told(tmp_path: Path) -> None:
    """By number, and the others are read."""
    path = tmp_path / "memory.jsonl"
    path.write_bytes(
        b'{"type": "entity", "name": "A", "entityType": "x", "observations": ["one", 7]}\n'
        b'{broken\n[]\n{"type": "relation", "from": "A"}\n{"type": "entity", "name": " "}\n'
        b'{"type": "entity", "name": "\xff"}\n'
    )

    assert [one.text for one in drafts("mcp-memory", path)] == ["A: one"]
    assert [where for where, _ in refusals("mcp-memory", path)] == [
        "line 1, observation 2", "line 2", "line 3", "line 4", "line 5", "line 6",
    ]  # fmt: skip


def test_mem0_keeps_times_categories_and_scopes(tmp_path: Path) -> None:
    """In a list alone too."""
    path = foreign.mem0(tmp_path)

    allergy, cello, plays = drafts("mem0", path)

    assert (allergy.kind, allergy.tags, allergy.entities) == (
        "profile",
        ("health",),
        ("person:ines",),
    )
    assert allergy.occurred_at == datetime(2026, 2, 1, 17, tzinfo=UTC)
    assert cello.occurred_at == datetime(2026, 3, 6, 10, tzinfo=UTC)
    assert allergy.metadata["user_id"] == "ines"
    assert plays.text == "ines plays cello"
    alone = tmp_path / "list.json"
    alone.write_text(json.dumps(foreign.MEMORIES))
    assert drafts("mem0", alone) == [allergy, cello]


def test_mem0_history_comes_to_what_stands(tmp_path: Path) -> None:
    """What was changed says what it said last, what was deleted is not there."""
    path = foreign.mem0_history(tmp_path)

    (hives,) = drafts("mem0", path)

    assert hives.text == "Keeps two hives on the roof"
    assert hives.occurred_at == datetime(2026, 2, 1, 8, tzinfo=UTC)


def test_pickled_points_are_refused(tmp_path: Path) -> None:
    """With a way that is safe."""
    path = tmp_path / "storage.sqlite"
    with foreign.database(path) as db:
        db.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")

    with pytest.raises(Refused, match="not safe to load") as refused:
        entries("mem0", path)
    assert "get_all()" in refused.value.remedy


def test_remind_keeps_levels_topics_and_grounds(tmp_path: Path) -> None:
    """Episodes are raw, concepts are items; what was deleted is left out."""
    path = foreign.remind(tmp_path)

    jwt, stolen, short, long, edge = drafts("remind", path)

    assert (jwt.level, jwt.kind, jwt.topic, jwt.confidence) == (
        "raw",
        "decision",
        "Authentication",
        0.9,
    )
    assert (jwt.entities, jwt.metadata["ticket"]) == (("person:alice", "subject:login"), "AUTH-7")
    assert (short.level, short.kind, short.tags, short.confidence) == (
        "item",
        "pattern",
        ("security",),
        0.8,
    )
    assert "Applies when: for anything" in short.text
    assert "Except: service accounts" in short.text
    assert edge.text == "alice maintains login"
    ties = tied("remind", path)
    assert (short.text, "supersedes", long.text) in ties
    assert (short.text, "contradicts", long.text) in ties
    assert (short.text, "derives_from", stolen.text) in ties
    assert ("person:alice", "maintains", "subject:login") in ties


def test_remind_facts_with_their_validity(tmp_path: Path) -> None:
    """Later versions keep facts in a table; what replaced one supersedes it."""
    path = foreign.remind(tmp_path)
    with foreign.database(path) as db:
        db.execute("CREATE TABLE facts (id TEXT, statement TEXT, entity_ids TEXT, valid_from TEXT, "
                   "valid_to TEXT, superseded_by TEXT, asserted_by TEXT)")  # fmt: skip
        db.execute("INSERT INTO facts VALUES ('f1', 'The cache lives for 300 seconds', "
                   "'[\"subject:cache\"]', '2026-01-01', '2026-02-01', 'f2', 'bob')")  # fmt: skip
        db.execute(
            "INSERT INTO facts (id, statement) VALUES ('f2', 'The cache lives for 600 seconds')"
        )

    old = next(one for one in drafts("remind", path) if "300" in one.text)

    assert (old.kind, old.entities, old.metadata["asserted_by"]) == (
        "fact",
        ("subject:cache",),
        "bob",
    )
    assert old.valid_to == datetime(2026, 2, 1, tzinfo=UTC)
    assert ("The cache lives for 600 seconds", "supersedes", old.text) in tied("remind", path)


def test_claude_mem_keeps_sessions_files_and_projects(tmp_path: Path) -> None:
    """Observations with their facts, summaries that derive from them, prompts as turns."""
    path = foreign.claude_mem(tmp_path)

    bug, decision, summary, prompt = drafts("claude-mem", path)

    assert bug.text.startswith("Retry loop in the importer. It never gave up\n")
    assert bug.text.endswith("- Now it stops after five tries")
    assert (bug.kind, bug.topic, bug.tags) == ("resolution", "atlas", ("reliability",))
    assert (bug.entities, decision.entities) == (("file:src/importer.py",), ("file:docs/style.md",))
    assert bug.occurred_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert "Learned: Loops need limits" in summary.text
    assert (prompt.level, prompt.session, prompt.seq, prompt.topic) == (
        "raw", "claude-mem:ses-1", 1, "atlas",
    )  # fmt: skip
    assert (summary.text, "derives_from", bug.text) in tied("claude-mem", path)


def test_claude_mem_directives_and_merged_projects(tmp_path: Path) -> None:
    """Rules that hold, and not those that were withdrawn; a merged project is the other."""
    path = foreign.claude_mem(tmp_path)
    with foreign.database(path) as db:
        db.execute("CREATE TABLE directives (id INTEGER PRIMARY KEY, scope TEXT, project TEXT, "
                   "content TEXT, status TEXT, created_at_epoch INTEGER)")  # fmt: skip
        db.execute("INSERT INTO directives VALUES (1, 'global', NULL, 'Always run the linter', "
                   "'active', 1767225600000)")  # fmt: skip
        db.execute("INSERT INTO directives VALUES (2, 'global', NULL, 'Never mind', 'archived', 0)")
        db.execute("ALTER TABLE observations ADD COLUMN merged_into_project TEXT")
        db.execute("UPDATE observations SET merged_into_project = 'atlas-main' WHERE id = 1")

    found = drafts("claude-mem", path)

    assert (found[0].topic, found[1].topic) == ("atlas-main", "atlas")
    assert [(one.text, one.kind) for one in found[4:]] == [("Always run the linter", "directive")]


def test_claude_mem_of_older_versions(tmp_path: Path) -> None:
    """Columns had other names once, and tables may be missing."""
    path = tmp_path / "old.db"
    with foreign.database(path) as db:
        db.execute("CREATE TABLE observations (id INTEGER PRIMARY KEY, sdk_session_id TEXT, "
                   "project TEXT, text TEXT, type TEXT, created_at TEXT)")  # fmt: skip
        db.execute("INSERT INTO observations VALUES (1, 's', 'p', 'An old one', 'change', "
                   "'2025-10-01T00:00:00Z')")  # fmt: skip

    (old,) = drafts("claude-mem", path)

    assert (old.text, old.kind, old.occurred_at) == (
        "An old one", "change", datetime(2025, 10, 1, tzinfo=UTC),
    )  # fmt: skip


def test_basic_memory_keeps_observations_and_relations(tmp_path: Path) -> None:
    """With category, tags and context; a check box is no observation."""
    path = foreign.basic_memory(tmp_path)

    found = {one.text: one for one in drafts("basic-memory", path)}

    water = found["Pour Over: Water at 94 degrees keeps the cup sweet"]
    assert (water.kind, water.topic) == ("method", "brewing")
    assert water.tags == ("coffee", "brewing", "temperature")
    assert (water.metadata["context"], water.metadata["permalink"]) == (
        "light roasts",
        "brewing/pour-over",
    )
    assert water.occurred_at == datetime(2026, 1, 5, tzinfo=UTC)
    assert "Pour Over part of Morning Routine" in found
    assert "Pour Over > Observations\n- [ ] buy filters" in found
    assert "Pour Over\nA slow way to make two cups." in found
    assert ("other:Pour Over", "pairs_with", "other:Burr Grinder") in tied("basic-memory", path)


def test_relations_with_several_words_are_quoted(tmp_path: Path) -> None:
    """Prose with a link in it is prose."""
    path = tmp_path / "n.md"
    path.write_text('- "depends on" [[X]]\n- we use [[Y]] for this\n- uses [[Z]] and more\n')

    texts = [one.text for one in drafts("basic-memory", path)]

    assert texts == ["n depends on X", "n\n- we use [[Y]] for this\n- uses [[Z]] and more"]


def test_claude_code_turns_are_those_of_the_plugin(tmp_path: Path) -> None:
    """By the same keys; sub-agents are left out, the project is the topic."""
    path = foreign.claude_code(tmp_path)

    asked, answered = drafts("claude-code", path)

    assert (asked.key, asked.speaker, asked.session, asked.topic) == (
        "claude-code:u1", "user", "ses-9", "gauge",
    )  # fmt: skip
    assert answered.text == "The offset was applied twice; I removed one of them."
    assert asked.occurred_at == datetime(2026, 6, 1, 10, tzinfo=UTC)


def test_a_transcript_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    """And stops no other."""
    root = foreign.claude_code(tmp_path)
    (root / "gone.jsonl").mkdir()

    assert len(drafts("claude-code", root)) == 2
    assert refusals("claude-code", tmp_path / "none.jsonl")[0][0] == "none.jsonl"


def test_chatgpt_follows_the_branch_that_was_last(tmp_path: Path) -> None:
    """Edited and regenerated messages are left out, and what neither side said."""
    turns = drafts("chatgpt", foreign.chatgpt(tmp_path))

    assert [(one.speaker, one.seq) for one in turns] == [
        ("user", 1), ("assistant", 2), ("user", 3), ("assistant", 4),
    ]  # fmt: skip
    assert "Three minutes." not in [one.text for one in turns]
    assert turns[2].text == "[image]\n\nAnd this one?"
    assert {(one.topic, one.session) for one in turns} == {
        ("Eggs at altitude", "chatgpt:conv-eggs")
    }
    assert turns[0].occurred_at == datetime.fromtimestamp(1_770_000_000.5, UTC)


def test_chatgpt_is_read_without_marks_and_courtesies(tmp_path: Path) -> None:
    """Marks that stand for sources are left out, and so are a thank-you and its answer."""
    (chat,) = foreign.chatgpt_conversations()
    answer = chat["mapping"]["a1"]["message"]
    answer["content"]["parts"] = [
        "Two minutes longer. \ue200cite\ue202turn0search0\ue201 Try it【12†source】."
    ]
    chat["mapping"]["q2"]["message"]["content"]["parts"] = ["thanks!"]
    chat["mapping"]["a2"]["message"]["content"]["parts"] = ["You're welcome! Enjoy it."]

    turns = drafts("chatgpt", foreign.chatgpt(tmp_path, [chat]))

    assert [turn.text for turn in turns] == [
        "How long do I boil an egg at 2,000 metres?",
        "Two minutes longer. Try it.",
        "You're welcome! Enjoy it.",
    ]


@each_row("broken", ["circle", "no current", "stranger", "all wrong"])
def test_chatgpt_trees_may_be_broken(tmp_path: Path, broken: str) -> None:
    """A circle, a lost end, a node that is none: what can be read is read."""
    (chat,) = foreign.chatgpt_conversations()
    if broken == "circle":
        chat["mapping"]["root"]["parent"] = "a2"
    elif broken == "no current":
        del chat["current_node"]
    elif broken == "stranger":
        chat["current_node"] = "nobody"
    else:
        chat["mapping"] |= {"a2": 7, "q2": {"message": {"content": [], "author": "x"}}}
    path = foreign.chatgpt(tmp_path, [chat, {"mapping": {}}, 5, {"title": "x", "mapping": []}])  # type: ignore[list-item]

    found = entries("chatgpt", path)

    turns = [one for one in found if isinstance(one.found, Draft)]
    assert len(turns) == {"all wrong": 0}.get(broken, 4)
    assert [one.where for one in found if isinstance(one.found, Refused)] == [
        f"conversation {number}" for number in (2, 3, 4)
    ]


def test_a_message_that_is_too_long_comes_in_pieces(tmp_path: Path) -> None:
    """Each with its own place in the conversation; nothing is lost."""
    (chat,) = foreign.chatgpt_conversations()
    long = "\n\n".join(f"Paragraph {number} of a long answer." for number in range(6000))
    chat["mapping"]["a1"]["message"]["content"]["parts"] = [long]

    turns = drafts("chatgpt", foreign.chatgpt(tmp_path, [chat]))

    assert [one.seq for one in turns] == list(range(1, len(turns) + 1))
    assert "\n\n".join(one.text for one in turns if "Paragraph" in one.text) == long


def test_claude_takes_the_words_of_both_sides(tmp_path: Path) -> None:
    """And the names of attached files, neither thoughts nor what the files say."""
    asked, answered = drafts("claude", foreign.claude(tmp_path))

    assert asked.text == "Which book on rivers first?\n\n[file: shelf.txt]"
    assert (answered.text, answered.speaker, answered.seq) == (
        "The one about the Danube.",
        "assistant",
        2,
    )
    assert asked.occurred_at == datetime(2026, 5, 1, 8, 0, 0, 120000, tzinfo=UTC)
    assert asked.topic == "Reading list"


def test_markdown_sections_make_sense_alone(tmp_path: Path) -> None:
    """Under the note's title and headings, with its day, its tags, its folder; links tie."""
    path = foreign.markdown(tmp_path)

    pumps, access, walk, met = drafts("markdown", path)

    assert pumps.text == "Pump Station\nTwo pumps, one of them spare."
    assert access.text.startswith("Pump Station > Access\nThe key hangs in the office")
    assert (walk.occurred_at, walk.topic) == (datetime(2026, 3, 14, tzinfo=UTC), "journal")
    assert (pumps.tags, met.tags) == (("infrastructure",), ("field",))
    assert tied("markdown", path) == [
        (access.text, "references", walk.text), (met.text, "references", pumps.text),
    ]  # fmt: skip


def test_a_note_is_called_by_its_first_heading(tmp_path: Path) -> None:
    """Where its head does not name it; given another title its sections are the same."""
    path = tmp_path / "n.md"
    path.write_text("# Tides\n\nTwice a day.\n\n## Springs\n\nAt new moon.\n")
    before = entries("markdown", path)
    path.write_text("# High and low\n\nTwice a day.\n\n## Springs\n\nAt new moon.\n")
    after = entries("markdown", path)

    assert [one.found.text for one in before] == [  # type: ignore[union-attr]
        "Tides\nTwice a day.", "Tides > Springs\nAt new moon.",
    ]  # fmt: skip
    assert [one.id for one in before] == [one.id for one in after]
