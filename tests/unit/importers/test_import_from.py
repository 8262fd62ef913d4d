"""An import can be previewed, repeated, interrupted and taken back."""

from __future__ import annotations

import copy
import gzip
import json
import os
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import foreign
from bethink import Memory
from bethink.agents.capture import capture
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.importers.intake import Tally
from bethink.model import Item
from importing import import_from
from rows import each_row


@pytest.fixture
def space() -> Iterator[Memory]:
    """A memory without vectors."""
    with Memory.open(":memory:", embedder="none") as opened:
        yield opened


def counts(tally: Tally) -> tuple[int, ...]:
    """Stored, updated, duplicates, repeated, links, redacted, refused."""
    return (
        *(tally.stored, tally.updated, tally.duplicates, tally.repeated, tally.links),
        *(tally.redacted, tally.n_refused),
    )


def texts(memory: Memory) -> list[str]:
    return sorted(item.text for item in memory.browse(limit=200))


def found(memory: Memory, words: str) -> Item:
    return next(item for item in memory.browse(limit=200) if words in item.text)


@each_row("kind", foreign.MAKERS)
def test_a_preview_tells_what_the_import_does(kind: str, tmp_path: Path, space: Memory) -> None:
    """The same counts, before it was imported and after; and it writes nothing."""
    path = foreign.MAKERS[kind](tmp_path)
    space.remember("Something else that is remembered")
    generation = space.store.admin.generation()

    first = import_from(space, path, preview=True)
    untouched = space.store.admin.generation() == generation
    done = import_from(space, path)
    second = import_from(space, path, preview=True)
    again = import_from(space, path)

    assert untouched
    assert first.stored > 0
    assert counts(first) == counts(done)
    assert first.kinds == done.kinds
    assert counts(second) == counts(again) == (0, 0, 0, done.stored, 0, 0, 0)


@each_row("kind", foreign.MAKERS)
def test_what_came_knows_where_from(kind: str, tmp_path: Path, space: Memory) -> None:
    """Its source, its class, a trust that is no more than an import's; and revoke takes
    all of it back, and nothing else."""
    path = foreign.MAKERS[kind](tmp_path)
    own = space.remember("My own words, which stay").id

    tally = import_from(space, path)
    items = space.browse(limit=200)

    assert tally.source == f"{kind}:{path.name}"
    assert {item.source for item in items if item.id != own} == {tally.source}
    assert {item.source_class for item in items if item.id != own} == {"import"}
    assert all(item.trust <= 1 for item in items if item.id != own)
    revoked = space.revoke(tally.source)
    assert len(revoked.ids) == tally.stored
    assert texts(space) == ["My own words, which stay"]
    assert counts(import_from(space, path))[:2] == (0, 0)


def test_a_source_that_has_grown_brings_what_is_new(tmp_path: Path, space: Memory) -> None:
    """Turns that came before keep their places."""
    (chat,) = foreign.chatgpt_conversations()
    import_from(space, foreign.chatgpt(tmp_path, [chat]))
    chat["mapping"]["q3"] = {**copy.deepcopy(chat["mapping"]["q2"]), "id": "q3", "parent": "a2"}
    chat["mapping"]["q3"]["message"] |= {"id": "q3"}
    chat["mapping"]["q3"]["message"]["content"] = {
        "content_type": "text",
        "parts": ["And a goose egg?"],
    }
    chat["current_node"] = "q3"

    tally = import_from(space, foreign.chatgpt(tmp_path, [chat]))

    assert counts(tally) == (1, 0, 0, 4, 0, 0, 0)
    assert found(space, "goose").seq == 5


def test_what_has_changed_is_a_new_revision(tmp_path: Path, space: Memory) -> None:
    """Under its id, with the old words in its history; nothing is stored twice."""
    (tmp_path / "a").mkdir()
    import_from(space, foreign.remind(tmp_path / "a"))
    before = found(space, "Tokens live for an hour")
    concepts = copy.deepcopy(foreign.CONCEPTS)
    concepts[0] |= {"summary": "Tokens live for ten minutes at most", "tags": ["security", "login"]}
    (tmp_path / "b").mkdir()
    path = foreign.remind(tmp_path / "b", concepts=concepts)

    preview, tally = import_from(space, path, preview=True), import_from(space, path)
    after = found(space, "ten minutes")

    assert counts(preview) == counts(tally) == (0, 1, 0, 4, 0, 0, 0)
    assert (after.id, after.rev, after.tags) == (before.id, 2, ("security", "login"))
    assert "an hour" in space.history(after.id)[0].text
    assert counts(import_from(space, path)) == (0, 0, 0, 5, 0, 0, 0)


def test_an_observation_that_was_reworded_is_the_same(tmp_path: Path, space: Memory) -> None:
    """Where a source names nothing, what says nearly the same has changed, and the rest is
    new or as it was, wherever it stands now."""
    graph = copy.deepcopy(foreign.GRAPH)
    path = foreign.mcp_memory(tmp_path, graph)
    import_from(space, path)
    before = found(space, "Prefers tea")
    graph[0]["observations"] = [
        "Was born in Kiel", "Leads the harbour project", "Prefers green tea to coffee",
    ]  # fmt: skip
    foreign.mcp_memory(tmp_path, graph)

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (1, 1, 0, 5, 0, 0, 0)
    assert found(space, "green tea").id == before.id
    assert counts(import_from(space, path)) == (0, 0, 0, 7, 0, 0, 0)


def test_what_was_corrected_here_stays(tmp_path: Path, space: Memory) -> None:
    """Read again, the source does not take it back; a later version stands beside it."""
    memories = copy.deepcopy(foreign.MEMORIES)
    path = foreign.mem0(tmp_path, memories)
    import_from(space, path)
    item = found(space, "walnuts")
    space.update(item.id, text="Is allergic to hazelnuts")

    assert counts(import_from(space, path))[:2] == (0, 0)
    memories[0]["memory"] = "Is allergic to walnuts and pecans"
    foreign.mem0(tmp_path, memories)
    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (1, 0, 0, 2, 0, 0, 0)
    assert space.get(item.id).text == "Is allergic to hazelnuts"
    assert counts(import_from(space, path))[:2] == (0, 0)


def test_what_was_forgotten_here_stays_forgotten(tmp_path: Path, space: Memory) -> None:
    """Whether the source has changed or not."""
    memories = copy.deepcopy(foreign.MEMORIES)
    path = foreign.mem0(tmp_path, memories)
    import_from(space, path)
    space.forget(found(space, "walnuts").id)
    memories[0]["memory"] = "Is allergic to all nuts"
    foreign.mem0(tmp_path, memories)

    tally = import_from(space, path)

    assert counts(tally)[:2] == (0, 0)
    assert not [text for text in texts(space) if "allergic" in text]


def test_what_was_erased_here_stays_away(tmp_path: Path, space: Memory) -> None:
    """It is known by a hash of its key, and counts as known."""
    path = foreign.mcp_memory(tmp_path)
    import_from(space, path)
    space.forget(found(space, "Prefers tea").id, erase=True)

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (0, 0, 0, 6, 0, 0, 0)


def test_what_stands_twice_may_change_twice_alike(tmp_path: Path, space: Memory) -> None:
    """It is one change."""
    memories = [copy.deepcopy(foreign.MEMORIES[0]), copy.deepcopy(foreign.MEMORIES[0])]
    path = foreign.mem0(tmp_path, memories)
    import_from(space, path)
    for memory in memories:
        memory["memory"] = "Is allergic to walnuts, hazelnuts and pecans"
    foreign.mem0(tmp_path, memories)

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (0, 1, 0, 2, 0, 0, 0)


def test_a_preview_knows_what_a_change_leads_to(tmp_path: Path, space: Memory) -> None:
    """What is new may repeat what another says by then, or what it said before."""
    path = tmp_path / "n.md"
    path.write_text("## A\nThe old words\n")
    import_from(space, path)
    path.write_text("## A\nThe new words\n## A\nThe new words\n## A\nThe old words\n")

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (1, 1, 1, 0, 0, 0, 0)


@pytest.mark.parametrize("first", ["capture", "import"])
def test_a_captured_session_is_not_imported_again(
    first: str, tmp_path: Path, space: Memory
) -> None:
    """Nor the other way round: the plugin and an import know turns by the same keys."""
    path = foreign.claude_code(tmp_path) / "-srv-gauge" / "ses-9.jsonl"

    if first == "capture":
        captured = capture(space, path, session="ses-9", host="claude-code")
        tally = import_from(space, path)
    else:
        tally = import_from(space, path)
        captured = capture(space, path, session="ses-9", host="claude-code")

    assert sorted([captured.stored, tally.stored]) == [0, 2]
    assert sorted([captured.known, tally.repeated]) == [0, 2]


def test_words_of_somebody_else_are_not_changed(tmp_path: Path, space: Memory) -> None:
    """A memory that was there before is no duplicate's to revise."""
    memories = copy.deepcopy(foreign.MEMORIES)
    user = {"user_id": memories[0]["user_id"]}
    own = space.remember("Is allergic to walnuts", source="me", metadata=user)
    memories[0]["created_at"] = None
    path = foreign.mem0(tmp_path, memories)

    preview, first = import_from(space, path, preview=True), import_from(space, path)
    memories[0]["memory"] = "Is allergic to nearly all nuts"
    foreign.mem0(tmp_path, memories)
    second, third = import_from(space, path), import_from(space, path)

    assert counts(preview) == counts(first) == (2, 0, 1, 0, 1, 0, 0)
    assert counts(second) == (1, 0, 0, 2, 0, 0, 0)
    assert counts(third) == (0, 0, 0, 3, 0, 0, 0)
    assert space.get(own.id).text == "Is allergic to walnuts"


def test_what_stands_twice_must_say_the_same(tmp_path: Path, space: Memory) -> None:
    """Else it would be changed back and forth with each reading."""
    memories = [*foreign.MEMORIES, {**foreign.MEMORIES[0], "memory": "Eats walnuts every day"}]
    memories.append(foreign.MEMORIES[1])
    path = foreign.mem0(tmp_path, memories)

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (3, 0, 0, 1, 1, 0, 1)
    assert tally.refused[0].where == "memory 3"
    assert counts(import_from(space, path)) == (0, 0, 0, 4, 0, 0, 1)


def test_an_import_that_was_stopped_goes_on(tmp_path: Path, space: Memory) -> None:
    """What was taken in is kept, and is not taken in again."""
    path = tmp_path / "notes.md"
    path.write_text("".join(f"# Part {n}\nNote number {n} of many\n" for n in range(620)))

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_from(space, path, progress=stop)
    half = space.store.admin.count()
    tally = import_from(space, path)

    assert half == 500
    assert (tally.stored, tally.repeated) == (120, 500)
    assert all(finding.ok for finding in space.doctor())


def test_imports_at_once_change_everything_once(tmp_path: Path) -> None:
    """What one of them was quicker with is known to the other, and refused by neither."""

    def memories(version: int) -> list[dict[str, Any]]:
        return [
            {"id": f"m{n}", "hash": "x", "memory": f"Kiln {n} is fired at {900 + version} degrees"}
            for n in range(200)
        ]

    def bring(tallies: list[Tally]) -> None:
        with Memory.open(path=tmp_path / "space.db", embedder="none") as own:
            start.wait(60)
            tallies.append(import_from(own, path))

    path = foreign.mem0(tmp_path, memories(1))
    for version in (1, 2):
        foreign.mem0(tmp_path, memories(version))
        start, tallies = threading.Barrier(2), list[Tally]()
        threads = [threading.Thread(target=bring, args=(tallies,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert [tally.n_refused for tally in tallies] == [0, 0]
        changed = (sum(tally.stored for tally in tallies), sum(tally.updated for tally in tallies))
        # A relation comes with them, and does not change.
        assert changed == ((201, 0) if version == 1 else (0, 200))
    with Memory.open(path=tmp_path / "space.db", embedder="none") as own:
        assert {len(own.history(item.id)) for item in own.browse(limit=300)} == {1, 2}


def test_what_was_said_for_all_holds_where_nothing_is_said(tmp_path: Path, space: Memory) -> None:
    """Tags, topic, source, trust."""
    path = foreign.mem0(tmp_path)

    tally = import_from(space, path, given={"tags": ("old",), "source": "Mem0", "trust": 0})

    assert tally.source == "Mem0"
    assert (found(space, "walnuts").tags, found(space, "cello").tags) == (("health",), ("old",))
    assert {item.trust for item in space.browse()} == {0}


def test_secrets_do_not_come_in(tmp_path: Path, space: Memory) -> None:
    """They are taken out, and it is counted."""
    secret = "AKIA" + "Q3EXAMPL7WZ2KD5N"
    path = foreign.mem0(tmp_path, [{"id": "1", "memory": f"The key is {secret}"}])

    tally = import_from(space, path)

    assert tally.redacted == 1
    assert all(secret not in json.dumps(list(map(str, item))) for item in space.browse())


def test_ties_become_links(tmp_path: Path, space: Memory) -> None:
    """What supersedes takes the other out of recall; what a memory derives from is known."""
    import_from(space, foreign.remind(tmp_path))

    short = found(space, "Short-lived")
    kinds = sorted(link.type for link in space.links(short.id))

    assert kinds == ["contradicts", "derives_from", "derives_from", "supersedes"]
    assert not [text for text in texts(space) if "Long-lived" in text]
    assert [link.type for link in space.links("person:alice")] == ["maintains"]


def test_hostile_texts_are_refused_by_name(tmp_path: Path, space: Memory) -> None:
    """NUL, a lone surrogate, nothing at all; what stands beside them is stored."""
    memories: list[Any] = [
        {"id": "1", "memory": "bad \x00 text"}, {"id": "2", "memory": "half \ud800 a character"},
        {"id": "3", "memory": "   "}, {"id": "4", "memory": 7}, 5, None,
        {"id": "6", "memory": "Good text", "metadata": {"deep": {"a": 1}, "n": float("1e308")},
         "categories": ["\x00"], "created_at": 10**18},
        {"id": "7", "memory": "Another good text", "categories": [None, 5, "fine"]},
    ]  # fmt: skip
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(memories))

    tally = import_from(space, path, "mem0")

    assert tally.stored == 2
    assert {refusal.where for refusal in tally.refused} == {
        f"memory {number}" for number in (1, 2, 3, 4, 5, 6)
    }
    assert found(space, "Another good").tags == ("fine",)


def test_turns_without_a_number_come_once(tmp_path: Path, space: Memory) -> None:
    """A conversation in JSON Lines can be imported again; what was said twice stays twice."""
    path = foreign.jsonl(
        tmp_path / "chat.jsonl",
        *({"text": text, "session": "s", "speaker": "Ana"} for text in ("Yes", "No", "Yes")),
    )

    preview, first = import_from(space, path, preview=True), import_from(space, path)
    again = import_from(space, path)

    assert counts(preview) == counts(first) == (3, 0, 0, 0, 0, 0, 0)
    assert counts(again) == (0, 0, 0, 3, 0, 0, 0)


def test_lines_that_derive_from_a_stranger_stop_no_other(tmp_path: Path, space: Memory) -> None:
    """They are refused by their number; from what is there, or came before, they may."""
    known = space.remember("Something to derive from").id
    path = foreign.jsonl(
        tmp_path / "lines.jsonl",
        {"text": "A first line", "id": "first-line"},
        {"text": "From nobody", "derives_from": ["nobody"]},
        {"text": "From a line", "derives_from": ["first-line"]},
        {"text": "From the memory", "derives_from": [known]},
    )

    preview, tally = import_from(space, path, preview=True), import_from(space, path)

    assert counts(preview) == counts(tally) == (3, 0, 0, 0, 0, 0, 1)
    assert tally.refused[0].where == "line 2"


def test_an_export_says_what_is_known_here(tmp_path: Path, space: Memory) -> None:
    """Its preview counts what this space has already."""
    with Memory.open(":memory:", embedder="none") as other:
        other.remember("One of the others")
        other.remember("Two of the others")
        path = foreign.jsonl(tmp_path / "export.jsonl", *other.export())
    before = import_from(space, path, preview=True)
    import_from(space, path)
    after = import_from(space, path, preview=True)

    assert (before.kind, before.stored, before.repeated) == ("bethink", 2, 0)
    assert (after.stored, after.repeated) == (0, 2)


def test_bad_use_is_told(tmp_path: Path, space: Memory) -> None:
    """A kind that there is not, a file that is not there, a source that cannot be piped in."""
    with pytest.raises(Refused, match="there is no importer 'word'"):
        import_from(space, tmp_path, "word")
    with pytest.raises(FileNotFoundError):
        import_from(space, tmp_path / "none", "remind")
    with pytest.raises(Refused, match="cannot be read from standard input"):
        import_from(space, "-", "mem0")


def test_a_packed_file_is_the_same(tmp_path: Path, space: Memory) -> None:
    """By gzip, and recognised all the same."""
    path = foreign.mcp_memory(tmp_path)
    graph = tmp_path / "mem0.json.gz"
    graph.write_bytes(gzip.compress(foreign.mem0(tmp_path).read_bytes()))
    path.write_bytes(gzip.compress(path.read_bytes()))

    assert import_from(space, path).stored == 6
    assert import_from(space, graph).kind == "mem0"


@pytest.mark.skipif(os.name != "posix", reason="needs such names")
def test_names_may_be_anything(tmp_path: Path, space: Memory) -> None:
    """Signs that an address would read otherwise, and bytes that are no text."""
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a?b#c%20 'x' \xe9.db"))
    foreign.remind(tmp_path).rename(strange)
    note = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.md"))
    note.write_text("A note in a file whose name is no UTF-8")

    tally, other = import_from(space, strange), import_from(space, note)

    assert (tally.stored, tally.n_refused) == (5, 0)
    assert (other.stored, other.source) == (1, "markdown:caf\ufffd.md")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_is_read_once(tmp_path: Path, space: Memory) -> None:
    """As standard input is: by lines, not as a file that can be looked into."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text('"One note"\n"Another note"\n'))
    writer.start()

    tally = import_from(space, pipe)

    writer.join(60)
    assert (tally.kind, tally.stored) == ("jsonl", 2)
    with pytest.raises(Refused, match="cannot be read from standard input"):
        import_from(space, pipe, "remind")


def test_what_can_be_read_of_a_broken_source_is_kept(tmp_path: Path, space: Memory) -> None:
    """An archive that is cut off in the middle: what came before is stored, the rest told."""
    (chat,) = foreign.chatgpt_conversations()
    path = tmp_path / "conversations.json.gz"
    noise = random.Random(7)
    whole = gzip.compress(
        json.dumps([chat, *({"x": noise.randbytes(9000).hex()} for _ in range(60))]).encode()
    )
    broken = bytearray(whole)
    broken[len(whole) * 3 // 4] ^= 0xFF
    path.write_bytes(broken)

    tally = import_from(space, path, "chatgpt")

    assert tally.stored == 4
    assert tally.n_refused > 0
    assert counts(import_from(space, path, "chatgpt"))[:4] == (0, 0, 0, 4)


@each_row(("setting", "stays"), [("captured", False), ("all", False), ("none", True)])
def test_the_setting_of_personal_numbers_holds_for_imports(
    setting: str, stays: bool, tmp_path: Path
) -> None:
    """A person who wants to keep the numbers keeps those of imported turns, too."""
    number, path = "DE89370400440532013000", tmp_path / "turns.jsonl"
    path.write_text(json.dumps({"text": f"Pay to {number}", "level": "raw", "session": "s"}))
    settings = Settings(embedder="none", personal_numbers=setting)
    with Memory.open(":memory:", settings=settings) as memory:
        import_from(memory, path, "jsonl")
        [turn] = memory.browse(levels=("raw",))
        assert (number in turn.text) is stays
