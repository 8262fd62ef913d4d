"""Claude's memory tool: its files are memories, its answers are those it is specified with."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from deferred import Deferred
from messages_server import messages_server, says, uses
from naughty import NAUGHTY
from rows import each_row

anthropic = Deferred("anthropic", "anthropic.lib.tools", "anthropic.types.beta")
integration = Deferred("bethink.integrations.anthropic")

KEY = "AKIA" + "Q3EGLQ7XUVZ5T2MB"
TEA = "/memories/prefs/tea.md"


@pytest.fixture
def tool(embedder: Embedder) -> Iterator[integration.BethinkMemoryTool]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        yield integration.BethinkMemoryTool(memory)


def do(tool: Any, command: str, **fields: Any) -> str:
    """What the model reads: an answer, or an error after a mark."""
    try:
        return tool.call({"command": command, **fields})
    except anthropic.ToolError as error:
        return f"! {error}"


def create(tool: Any, path: str, text: str) -> str:
    return do(tool, "create", path=path, file_text=text)


def view(tool: Any, path: str, **more: Any) -> str:
    return do(tool, "view", path=path, **more)


def content(tool: Any, path: str) -> str:
    """The file as it is, without line numbers."""
    lines = view(tool, path).split("\n")[1:]
    return "\n".join(line.partition("\t")[2] for line in lines)


def test_a_file_is_made_seen_and_changed(tool: integration.BethinkMemoryTool) -> None:
    """In the words that the tool is specified with."""
    assert view(tool, "/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, "
        "excluding hidden items:\n0B\t/memories"
    )
    assert create(tool, TEA, "# Tea\nSam drinks green tea.\nNo sugar.\n") == (
        f"File created successfully at: {TEA}"
    )
    assert view(tool, TEA) == (
        f"Here's the content of {TEA} with line numbers:\n"
        "     1\t# Tea\n     2\tSam drinks green tea.\n     3\tNo sugar.\n     4\t"
    )
    assert view(tool, TEA, view_range=[2, 2]).endswith(":\n     2\tSam drinks green tea.")
    assert do(tool, "str_replace", path=TEA, old_str="green", new_str="black") == (
        "The memory file has been edited. "
        "Here is the snippet showing the change (with line numbers):\n"
        "     1\t# Tea\n     2\tSam drinks black tea.\n     3\tNo sugar.\n     4\t"
    )
    assert do(tool, "insert", path=TEA, insert_line=1, insert_text="Since May:\n") == (
        f"The file {TEA} has been edited."
    )
    assert content(tool, TEA) == "# Tea\nSince May:\nSam drinks black tea.\nNo sugar.\n"


def test_folders_are_listed_moved_and_deleted(tool: integration.BethinkMemoryTool) -> None:
    """Two levels deep, without what is hidden; a folder is there as long as a file is in it."""
    for path in ("a.md", "deep/er/est/x.md", "deep/y.md", ".hidden/z.md", "deep/.env"):
        create(tool, f"/memories/{path}", "1234")

    assert view(tool, "/memories").split("\n")[1:] == [
        "20B\t/memories",
        "4B\t/memories/a.md",
        "12B\t/memories/deep/",
        "4B\t/memories/deep/er/",
        "4B\t/memories/deep/y.md",
    ]
    assert do(tool, "rename", old_path="/memories/deep", new_path="/memories/new/place") == (
        "Successfully renamed /memories/deep to /memories/new/place"
    )
    assert content(tool, "/memories/new/place/er/est/x.md") == "1234"
    assert view(tool, "/memories/deep").startswith("! The path /memories/deep does not exist")
    assert do(tool, "delete", path="/memories/new") == "Successfully deleted /memories/new"
    assert view(tool, "/memories/new/place/y.md").startswith("! The path")
    assert content(tool, "/memories/.hidden/z.md") == "1234"


@each_row(
    ("command", "fields", "told"),
    [
        ("view", {"path": "/memories/no"}, "The path /memories/no does not exist. Please provide a valid path."),
        ("create", {"path": "/memories/f", "file_text": "x"}, "File /memories/f already exists"),
        ("create", {"path": "/memories/d", "file_text": "x"}, "File /memories/d already exists"),
        ("create", {"path": "/memories", "file_text": "x"}, "File /memories already exists"),
        ("create", {"path": "/memories/f/g", "file_text": "x"}, "The path /memories/f is a file, not a directory"),
        ("str_replace", {"path": "/memories/no", "old_str": "a", "new_str": "b"}, "The path /memories/no does not exist. Please provide a valid path."),
        ("str_replace", {"path": "/memories/d", "old_str": "a", "new_str": "b"}, "The path /memories/d is not a file."),
        ("str_replace", {"path": "/memories/f", "old_str": "zebra", "new_str": "b"}, "No replacement was performed, old_str `zebra` did not appear verbatim in /memories/f."),
        ("str_replace", {"path": "/memories/f", "old_str": "o", "new_str": "b"}, "No replacement was performed. Multiple occurrences of old_str `o` in lines: 1, 1, 2. Please ensure it is unique"),
        ("str_replace", {"path": "/memories/f", "old_str": "", "new_str": "b"}, "`old_str` must be a non-empty string"),
        ("insert", {"path": "/memories/no", "insert_line": 0, "insert_text": "x"}, "The path /memories/no does not exist. Please provide a valid path."),
        ("insert", {"path": "/memories/f", "insert_line": 3, "insert_text": "x"}, "Invalid `insert_line` parameter: 3. It should be within the range [0, 2]."),
        ("insert", {"path": "/memories/f", "insert_line": -1, "insert_text": "x"}, "Invalid `insert_line` parameter: -1. It should be within the range [0, 2]."),
        ("insert", {"path": "/memories/f", "insert_line": "one", "insert_text": "x"}, "Invalid `insert_line` parameter: one. It should be within the range [0, 2]."),
        ("delete", {"path": "/memories/no"}, "The path /memories/no does not exist"),
        ("delete", {"path": "/memories"}, "Cannot delete the /memories directory itself"),
        ("rename", {"old_path": "/memories/no", "new_path": "/memories/x"}, "The path /memories/no does not exist"),
        ("rename", {"old_path": "/memories/f", "new_path": "/memories/d"}, "The destination /memories/d already exists"),
        ("rename", {"old_path": "/memories", "new_path": "/memories/x"}, "Cannot rename the /memories directory itself"),
        ("rename", {"old_path": "/memories/d", "new_path": "/memories/d/e"}, "The destination /memories/d/e is inside /memories/d"),
        ("view", {"path": "/memories/f", "view_range": [1]}, "Invalid `view_range` parameter: [1]. It must be two line numbers."),
        ("view", {}, "`path` must be a string, not None"),
        ("create", {"path": "/memories/new", "file_text": 5}, "`file_text` must be a string, not 5"),
    ],
)  # fmt: skip
def test_every_refusal_says_why(
    tool: integration.BethinkMemoryTool, command: str, fields: dict[str, Any], told: str
) -> None:
    """In the tool's own words, and nothing has changed."""
    create(tool, "/memories/f", "one two\nfour")
    create(tool, "/memories/d/file", "x")
    before = [view(tool, path) for path in ("/memories", "/memories/f")]

    assert do(tool, command, **fields) == f"! {told}"
    assert [view(tool, path) for path in ("/memories", "/memories/f")] == before


def test_a_command_that_is_none_is_refused(tool: integration.BethinkMemoryTool) -> None:
    """Whatever a model makes up."""
    for made_up in ({"command": "format"}, {}, [], "view", {"command": ["view"]}):
        with pytest.raises(anthropic.ToolError):
            tool.call(made_up)


@each_row("text", ["", "\n", "   ", "\n\n\n", "—", "a\x00b", "\r\n\r\n", "é\u0301", "x" * 60_000])
def test_any_text_is_kept_exactly(tool: integration.BethinkMemoryTool, text: str) -> None:
    """Also one that says nothing, or holds what the text of a memory may not."""
    create(tool, "/memories/f", text)

    assert content(tool, "/memories/f") == text


@each_row("text", NAUGHTY[3::29], ids=lambda text: repr(text)[:30])
def test_naughty_texts_are_files_or_refused(tool: integration.BethinkMemoryTool, text: str) -> None:
    """Nothing else happens, whether as content, as a path or as a text to replace."""
    made = create(tool, "/memories/f", text)
    if not made.startswith("!") and "Note:" not in made:
        assert content(tool, "/memories/f") == text
    for command, fields in (
        ("view", {"path": f"/memories/{text}"}),
        ("create", {"path": f"/memories/{text}", "file_text": "x"}),
        ("str_replace", {"path": "/memories/f", "old_str": text, "new_str": text}),
        ("insert", {"path": "/memories/f", "insert_line": 0, "insert_text": text}),
    ):
        assert isinstance(do(tool, command, **fields), str)
    assert view(tool, "/memories").startswith("Here're")


def test_too_large_is_refused_with_the_limit(tool: integration.BethinkMemoryTool) -> None:
    """At once and by growing; the file stays as it was."""
    create(tool, "/memories/f", "x" * 60_000)

    assert "the limit is 65,536" in create(tool, "/memories/g", "x" * 70_000)
    assert "the limit is 65,536" in do(
        tool, "insert", path="/memories/f", insert_line=0, insert_text="y" * 10_000
    )
    assert content(tool, "/memories/f") == "x" * 60_000


def test_every_state_of_a_file_is_in_its_history(tool: integration.BethinkMemoryTool) -> None:
    """A change is a revision; a deleted file is forgotten and could come back."""
    create(tool, TEA, "green tea")
    do(tool, "str_replace", path=TEA, old_str="green", new_str="black")
    (item,) = tool.memory.browse()
    do(tool, "delete", path=TEA)

    told = [(one.rev, one.text) for one in tool.memory.history(item.id)]
    assert told == [(1, "green tea"), (2, "black tea")]
    assert tool.memory.browse() == []
    create(tool, TEA, "no tea at all")
    assert content(tool, TEA) == "no tea at all"


def test_what_the_files_say_is_recalled(tool: integration.BethinkMemoryTool) -> None:
    """As it is now, by words of the text and of the path, as written by an agent."""
    create(tool, "/memories/people/sam.md", "Sam drinks green tea in the morning.")
    do(tool, "str_replace", path="/memories/people/sam.md", old_str="green", new_str="black")

    hits = tool.memory.recall("what does Sam drink in the morning?").hits

    assert [hit.item.text for hit in hits] == ["Sam drinks black tea in the morning."]
    assert (hits[0].item.topic, hits[0].item.source) == ("people/sam.md", "memory-tool")
    assert hits[0].item.source_class == "agent"


def test_secrets_are_not_stored_and_the_model_is_told(tool: integration.BethinkMemoryTool) -> None:
    """When a file is made and when it is edited."""
    made = create(tool, "/memories/f", f"the key is {KEY}\n")
    edited = do(tool, "insert", path="/memories/f", insert_line=1, insert_text=f"again {KEY}")

    assert made.endswith("placeholders replace them (aws-access-key).")
    assert "placeholders replace them" in edited
    assert content(tool, "/memories/f").count("[redacted:aws-access-key]") == 2
    assert KEY not in json.dumps(list(tool.memory.export()))


def test_files_are_in_the_export_and_gone_when_erased(
    tool: integration.BethinkMemoryTool, embedder: Embedder
) -> None:
    """They are memories like others."""
    create(tool, TEA, "Sam drinks tea")
    create(tool, "/memories/empty", "")
    with Memory.open(":memory:", embedder=embedder) as other:
        other.import_(json.loads(json.dumps(list(tool.memory.export()))))
        copy = integration.BethinkMemoryTool(other)

        assert [content(copy, TEA), content(copy, "/memories/empty")] == ["Sam drinks tea", ""]
        assert create(copy, TEA, "x") == f"! File {TEA} already exists"

    tool.memory.forget(*(item.id for item in tool.memory.browse()), erase=True)
    assert view(tool, "/memories").endswith("0B\t/memories")
    assert create(tool, TEA, "anew").startswith("File created")


def test_clearing_forgets_every_file_and_nothing_else(tool: integration.BethinkMemoryTool) -> None:
    """Other memories of the space are not its business."""
    tool.memory.remember("Bob drinks coffee")
    create(tool, TEA, "Sam drinks tea")

    assert tool.clear_all_memory() == "All memory cleared"
    assert [item.text for item in tool.memory.browse()] == ["Bob drinks coffee"]


def test_edits_from_many_sides_are_all_there(tmp_path: Path) -> None:
    """Two tools on one space insert into one file at once: no line is lost."""
    path = tmp_path / "a.db"
    with (
        Memory.open(path=path, embedder="none") as one,
        Memory.open(path=path, embedder="none") as two,
    ):
        tools = [integration.BethinkMemoryTool(one), integration.BethinkMemoryTool(two)]
        create(tools[0], "/memories/log", "start\n")
        told: list[str] = []

        def insert(number: int) -> None:
            for turn in range(4):
                line = f"{number}-{turn}"
                told.append(
                    do(
                        tools[number % 2],
                        "insert",
                        path="/memories/log",
                        insert_line=1,
                        insert_text=line,
                    )
                )

        threads = [threading.Thread(target=insert, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert set(told) == {"The file /memories/log has been edited."}
        lines = content(tools[0], "/memories/log").split()
        assert sorted(lines) == sorted(["start", *(f"{n}-{t}" for n in range(4) for t in range(4))])


def test_only_one_of_many_makes_a_file(tmp_path: Path) -> None:
    """The others are told that it is there."""
    path = tmp_path / "a.db"
    with (
        Memory.open(path=path, embedder="none") as one,
        Memory.open(path=path, embedder="none") as two,
    ):
        tools = [integration.BethinkMemoryTool(one), integration.BethinkMemoryTool(two)]
        told: list[str] = []
        threads = [
            threading.Thread(
                target=lambda at: told.append(create(tools[at % 2], "/memories/f", f"by {at}")),
                args=(at,),
            )
            for at in range(6)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert min(told) == "! File /memories/f already exists"
        assert [each for each in told if not each.startswith("!")] == [
            "File created successfully at: /memories/f"
        ]


def test_a_model_uses_it_through_the_sdks_runner(tool: integration.BethinkMemoryTool) -> None:
    """Against a server that speaks the protocol: answers and errors reach the model."""
    with messages_server(
        uses(1, command="view", path="/memories"),
        uses(2, command="create", path=TEA, file_text="Sam drinks green tea."),
        uses(3, command="create", path=TEA, file_text="again"),
        uses(4, command="view", path="/memories/../etc/passwd"),
        says("Noted."),
    ) as script:
        client = anthropic.Anthropic(api_key="none", base_url=script.url, max_retries=0)
        runner = client.beta.messages.tool_runner(
            model="scripted",
            max_tokens=100,
            messages=[{"role": "user", "content": "Remember that Sam drinks green tea"}],
            tools=[tool],
        )
        last = runner.until_done()
        client.close()

    assert last.content[0].text == "Noted."  # type: ignore[union-attr]
    assert script.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert [is_error for _, is_error in script.results()] == [False, False, True, True]
    assert script.results()[1][0] == f"File created successfully at: {TEA}"
    assert "would escape /memories" in script.results()[3][0]
    assert tool.memory.recall("what does Sam drink?").hits


def test_the_asynchronous_client_has_its_own(tool: integration.BethinkMemoryTool) -> None:
    """The same files, beside the event loop."""

    async def main() -> tuple[list[tuple[str, bool]], str]:
        both = integration.BethinkAsyncMemoryTool(tool.memory)
        with messages_server(
            uses(1, command="create", path=TEA, file_text="Sam drinks tea.\n"),
            uses(2, command="insert", path=TEA, insert_line=1, insert_text="No sugar."),
            uses(3, command="str_replace", path=TEA, old_str="tea", new_str="coffee"),
            uses(4, command="rename", old_path=TEA, new_path="/memories/sam.md"),
            uses(5, command="view", path="/memories/sam.md"),
            uses(6, command="delete", path="/memories/sam.md"),
            says("Done."),
        ) as script:
            async with anthropic.AsyncAnthropic(
                api_key="none", base_url=script.url, max_retries=0
            ) as client:
                runner = client.beta.messages.tool_runner(
                    model="scripted",
                    max_tokens=100,
                    messages=[{"role": "user", "content": "go"}],
                    tools=[both],
                )
                await runner.until_done()
        await both.clear_all_memory()
        return script.results(), both.memory.store.space

    results, _ = asyncio.run(main())

    assert [is_error for _, is_error in results] == [False] * 6
    assert "     1\tSam drinks coffee.\n     2\tNo sugar." in results[4][0]


def test_caching_is_asked_for_where_wanted(embedder: Embedder) -> None:
    """Both tools hand the setting on."""
    with Memory.open(":memory:", embedder=embedder) as memory:
        for kind in (integration.BethinkMemoryTool, integration.BethinkAsyncMemoryTool):
            made = kind(memory, cache_control={"type": "ephemeral"})
            assert made.to_dict()["cache_control"] == {"type": "ephemeral"}


def test_the_asynchronous_tool_has_every_command(tool: integration.BethinkMemoryTool) -> None:
    """Called one by one, as the SDK's dispatch does where it is used alone."""
    other = integration.BethinkAsyncMemoryTool(tool.memory)
    commands: list[Any] = [
        anthropic.BetaMemoryTool20250818CreateCommand(
            command="create", path=TEA, file_text="green tea\n"
        ),
        anthropic.BetaMemoryTool20250818InsertCommand(
            command="insert", path=TEA, insert_line=0, insert_text="top"
        ),
        anthropic.BetaMemoryTool20250818StrReplaceCommand(
            command="str_replace", path=TEA, old_str="green", new_str="black"
        ),
        anthropic.BetaMemoryTool20250818RenameCommand(
            command="rename", old_path=TEA, new_path="/memories/sam"
        ),
        anthropic.BetaMemoryTool20250818ViewCommand(command="view", path="/memories/sam"),
        anthropic.BetaMemoryTool20250818DeleteCommand(command="delete", path="/memories/sam"),
    ]

    async def main() -> list[Any]:
        return [await other.execute(command) for command in commands]

    told = asyncio.run(main())

    assert told[4].endswith("     1\ttop\n     2\tblack tea\n     3\t")
    assert told[5] == "Successfully deleted /memories/sam"
