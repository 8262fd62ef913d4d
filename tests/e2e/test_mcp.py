"""The server as hosts use it: a process of its own, the official client, both eras."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from bethink.server.systems.declarations import load_system
from bethink.server.tools import TOOLS
from bethink.server.tools.catalog import DEFAULT_TOOLS
from deferred import Deferred
from server_process import SCRIPT, clean_environment, stdio_server

mcp_sdk = Deferred("mcp.client.client", "mcp.client.stdio", "mcp.shared.exceptions")

# Most start several processes, each of which imports the protocol library.
pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def talk(
    folder: Path, conversation: Callable[[mcp_sdk.Client], Awaitable[Any]], *words: str,
    mode: str = "legacy", **env: str,
) -> Any:  # fmt: skip
    """One conversation with one server process; it is gone afterwards."""

    async def run() -> Any:
        told = mcp_sdk.StdioServerParameters(
            command=SCRIPT, args=["mcp", *words], env=clean_environment(folder, **env), cwd=folder
        )
        async with mcp_sdk.Client(mcp_sdk.stdio_client(told), mode=mode) as client:
            return await conversation(client)

    return anyio.run(run)


async def call(client: mcp_sdk.Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, which must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_finds_and_uses_everything(tmp_path: Path, mode: str) -> None:
    """Tools, resources and prompts, by the handshake and without it."""

    async def conversation(client: mcp_sdk.Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        stored = await call(client, "remember", text="The deploy key lives in vault B, says Mara")
        other = await call(client, "remember", text="Vault A was emptied in May")
        told = {
            "recall": {"query": "deploy key"},
            "update_memory": {"id": stored["id"], "topic": "keys"},
            "forget": {"ids": [stored["id"]]},
            "recall_file": {"path": "app.py"},
            "explain": {"query": "deploy key", "id": stored["id"]},
            "read_smart": {"path": "notes.txt"},
            "note_edit": {"path": "app.py"},
            "history": {"id": stored["id"]},
            "timeline": {"id": stored["id"]},
            "undo": {"id": stored["id"], "preview": True},
            "link": {"id": stored["id"], "relation": "causes", "other": other["id"]},
        }
        for tool in tools:
            if tool.name != "remember":
                await call(client, tool.name, **told.get(tool.name, {}))
        for resource in (await client.list_resources()).resources:
            assert (await client.read_resource(resource.uri)).contents
        templates = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates][-1] == "memory://item/{id}"
        item = await client.read_resource(f"memory://item/{stored['id']}")
        assert "vault B" in item.contents[0].text  # type: ignore[union-attr]
        with pytest.raises(mcp_sdk.MCPError, match="no such resource"):
            await client.read_resource("memory://nothing/at-all")
        for prompt in (await client.list_prompts()).prompts:
            given = {one.name: "deploy key" for one in prompt.arguments or []}
            assert (await client.get_prompt(prompt.name, given)).messages
        with pytest.raises(mcp_sdk.MCPError, match="no tool 'nonsense'"):
            await client.call_tool("nonsense", {})

    (tmp_path / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("a note\n")
    talk(tmp_path, conversation, "--tools", "all", mode=mode)


@pytest.mark.parametrize("worker", ["off", "auto"])
def test_a_client_of_another_system_finds_its_tools(tmp_path: Path, worker: str) -> None:
    """With its names, arguments and fields, in this process or by the worker."""

    async def linksee(client: mcp_sdk.Client) -> None:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        assert tools == list(load_system("linksee").tools)
        told = {"entity_name": "Atlas", "entity_kind": "project", "layer": "decisions"}
        stored = await call(client, "remember", content="Atlas ships on Mondays", **told)
        answer = await call(client, "recall", query="when does it ship?", entity_name="Atlas")
        [hit] = answer["memories"]
        assert (hit["id"], hit["layer"]) == (stored["memory_id"], "learning")
        result = await client.call_tool("recall", {"query": "Atlas", "k": 5})
        assert result.is_error

    async def siftcoder(client: mcp_sdk.Client) -> None:
        found = await call(client, "mem_search", query="when does Atlas ship?")
        around = await call(client, "mem_timeline", near_id=found["hits"][0]["id"])
        assert around["near"]["text"] == "Atlas ships on Mondays"

    async def others(client: mcp_sdk.Client) -> None:
        for tool in (await client.list_tools()).tools:
            if tool.name.endswith(("recall", "retrieve")):
                result = await client.call_tool(tool.name, {"query": "Atlas ships on Mondays"})
                assert "Atlas ships on Mondays" in result.content[0].text  # type: ignore[union-attr]

    env = {"BETHINK_WORKER": worker, "BETHINK_WORKER_IDLE": "10"}
    talk(tmp_path, linksee, "--as", "linksee", **env)
    talk(tmp_path, siftcoder, "--as", "siftcoder", **env)
    for system in ("abmind", "memind", "remind"):
        talk(tmp_path, others, "--as", system, **env)


def test_errors_are_sentences(tmp_path: Path) -> None:
    """With what to do about it, and nothing of what went on inside."""

    async def conversation(client: mcp_sdk.Client) -> None:
        assert len((await client.list_tools()).tools) == len(DEFAULT_TOOLS)
        for tool, arguments, told in (
            ("recall", {"query": "a", "k": 500}, "from 1 to 50"),
            ("recall", {"query": "a", "space": "other"}, "no argument 'space'. Try: allowed:"),
            ("recall", {}, "question is empty"),
            ("update_memory", {"id": "nothing", "text": "x"}, "Try: use recall to find"),
            ("remember", {"text": "   "}, "the text is empty"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            text = result.content[0].text  # type: ignore[union-attr]
            assert told in text
            assert "Traceback" not in text

    talk(tmp_path, conversation)


def test_the_space_is_the_projects(tmp_path: Path) -> None:
    """Of the folder the host names, else the working one; another project sees nothing."""
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)

    async def write(client: mcp_sdk.Client) -> None:
        await call(client, "remember", text="The staging database is called heron")

    async def ask(client: mcp_sdk.Client) -> str:
        return str((await call(client, "recall", query="staging database"))["status"])

    here, there = str(tmp_path / "one"), str(tmp_path / "two")
    talk(tmp_path, write, CLAUDE_PROJECT_DIR=here)

    assert talk(tmp_path, ask, CLAUDE_PROJECT_DIR=here) == "found"
    assert talk(tmp_path, ask, CLAUDE_PROJECT_DIR=there) == "nothing_stored"
    assert talk(tmp_path / "one", ask, BETHINK_DATA_DIR=str(tmp_path / "data")) == "found"
    assert talk(tmp_path, ask, "--space", "other", CLAUDE_PROJECT_DIR=here) == "nothing_stored"


def test_http_serves_this_machine_alone(tmp_path: Path) -> None:
    """The same by streamable HTTP; another host's name is turned away."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    refused = subprocess.run(
        [SCRIPT, "mcp", "--http", f"0.0.0.0:{port}"], cwd=tmp_path, env=clean_environment(tmp_path),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "reachable from other machines" in refused.stderr

    async def conversation() -> None:
        async with mcp_sdk.Client(f"http://127.0.0.1:{port}/mcp") as client:
            await call(client, "remember", text="Releases are cut on Tuesdays")
            answer = await call(client, "recall", query="when are releases cut?")
            assert answer["status"] == "found"

    with stdio_server(tmp_path, "--http", f"127.0.0.1:{port}"):
        give_up = time.monotonic() + 60
        while not _listening(port):
            assert time.monotonic() < give_up
            time.sleep(0.1)
        anyio.run(conversation)
        assert _asked_as(port, "evil.example") in (400, 403, 421)


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _asked_as(port: int, host: str) -> int:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    told = {"Host": host, "Accept": "application/json", "Content-Type": "application/json"}
    connection.request("POST", "/mcp", body=b"{}", headers=told)
    status = connection.getresponse().status
    connection.close()
    return status


def test_without_the_library_it_says_what_to_install(tmp_path: Path) -> None:
    """In a sentence, not a traceback."""
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text(
        "import sys\nsys.modules['mcp_types'] = None\n"
    )
    ran = subprocess.run(
        [SCRIPT, "mcp", "--http", "127.0.0.1:0"], cwd=tmp_path, env=clean_environment(tmp_path, PYTHONPATH=str(tmp_path / "hidden")),
        capture_output=True, text=True, check=False, input="",
    )  # fmt: skip

    assert ran.returncode == 2
    assert "pip install '.[mcp]'" in ran.stderr
    assert ran.stdout == ""
