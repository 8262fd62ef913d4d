"""The server as hosts use it: a process of its own, the official client, both eras."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError

from recollect.mcp.tools import TOOLS
from recollect.mcp.tools.usual import USUAL

SCRIPT = str(Path(sys.executable).with_name("recollect"))
# Most start several processes, each of which imports the protocol library.
pytestmark = [pytest.mark.timeout(180), pytest.mark.slow]


def room(folder: Path, **extra: str) -> dict[str, str]:
    """An environment that knows nothing of this machine's own memories."""
    own = {"HOME": str(folder / "home"), "RECOLLECT_DATA_DIR": str(folder / "data")}
    return {"PATH": os.environ["PATH"]} | own | extra


def talk(
    folder: Path, conversation: Callable[[Client], Awaitable[Any]], *words: str,
    mode: str = "legacy", **env: str,
) -> Any:  # fmt: skip
    """One conversation with one server process; it is gone afterwards."""

    async def run() -> Any:
        told = StdioServerParameters(
            command=SCRIPT, args=["mcp", *words], env=room(folder, **env), cwd=folder
        )
        async with Client(stdio_client(told), mode=mode) as client:
            return await conversation(client)

    return anyio.run(run)


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers, which must not be an error."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_finds_and_uses_everything(tmp_path: Path, mode: str) -> None:
    """Tools, resources and prompts, by the handshake and without it."""

    async def conversation(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == list(TOOLS)
        stored = await call(client, "remember", text="The deploy key lives in vault B, says Mara")
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
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("memory://nothing/at-all")
        for prompt in (await client.list_prompts()).prompts:
            given = {one.name: "deploy key" for one in prompt.arguments or []}
            assert (await client.get_prompt(prompt.name, given)).messages
        with pytest.raises(MCPError, match="no tool 'nonsense'"):
            await client.call_tool("nonsense", {})

    (tmp_path / ".git").mkdir()
    (tmp_path / "notes.txt").write_text("a note\n")
    talk(tmp_path, conversation, "--tools", "all", mode=mode)


def test_memory_lasts_from_one_conversation_to_the_next(tmp_path: Path) -> None:
    """Written in one process; recalled, corrected, explained and forgotten in the next."""

    async def first(client: Client) -> str:
        await call(client, "remember", text="The staging database is called heron")
        stored = await call(client, "remember", text="Releases are cut on Tuesdays at ten")
        return str(stored["id"])

    async def second(client: Client) -> None:
        [hit, *_] = (await call(client, "recall", query="when are releases cut?"))["memories"]
        assert hit["id"] == release
        await call(client, "update_memory", id=release, text="Releases are cut on Thursdays")
        why = await call(client, "explain", query="when are releases cut?", id=release)
        assert why["about"] == "why"

    async def third(client: Client) -> None:
        [hit, *_] = (await call(client, "recall", query="when are releases cut?"))["memories"]
        assert hit["text"] == "Releases are cut on Thursdays"
        shown = await call(client, "forget", ids=[release])
        done = await call(client, "forget", ids=[release], token=shown["token"])
        assert done["done"]

    async def fourth(client: Client) -> None:
        answer = await call(client, "recall", query="when are releases cut?")
        assert release not in [hit["id"] for hit in answer["memories"]]
        why = await call(client, "explain", query="when are releases cut?", id=release)
        assert why["about"] == "why_not"

    release = talk(tmp_path, first)
    for conversation in (second, third, fourth):
        talk(tmp_path, conversation)


def test_errors_are_sentences(tmp_path: Path) -> None:
    """With what to do about it, and nothing of what went on inside."""

    async def conversation(client: Client) -> None:
        assert len((await client.list_tools()).tools) == len(USUAL)
        for tool, arguments, told in (
            ("recall", {"query": "a", "k": 500}, "from 1 to 50"),
            ("recall", {"query": "a", "space": "other"}, "no argument 'space'. Try: allowed:"),
            ("recall", {}, "question is empty"),
            ("update_memory", {"id": "nothing", "text": "x"}, "Try: recall finds"),
            ("remember", {"text": "   "}, "nothing to remember"),
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

    async def write(client: Client) -> None:
        await call(client, "remember", text="The staging database is called heron")

    async def ask(client: Client) -> str:
        return str((await call(client, "recall", query="staging database"))["status"])

    here, there = str(tmp_path / "one"), str(tmp_path / "two")
    talk(tmp_path, write, CLAUDE_PROJECT_DIR=here)

    assert talk(tmp_path, ask, CLAUDE_PROJECT_DIR=here) == "found"
    assert talk(tmp_path, ask, CLAUDE_PROJECT_DIR=there) == "nothing_stored"
    assert talk(tmp_path / "one", ask, RECOLLECT_DATA_DIR=str(tmp_path / "data")) == "found"
    assert talk(tmp_path, ask, "--space", "other", CLAUDE_PROJECT_DIR=here) == "nothing_stored"


class Raw:
    """A server spoken to line by line."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [SCRIPT, "mcp", *words], cwd=folder, env=room(folder, **env), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def send(self, method: str, number: int | None = None, **params: Any) -> None:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        self.line(json.dumps(told if number is None else told | {"id": number}).encode())

    def line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        told: dict[str, Any] = json.loads(self.process.stdout.readline())
        return told

    def greet(self) -> None:
        client = {"name": "raw", "version": "1"}
        self.send("initialize", 1, protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
        assert self.hear()["id"] == 1
        self.send("notifications/initialized")

    def call(self, number: int, tool: str, **arguments: Any) -> dict[str, Any]:
        self.send("tools/call", number, name=tool, arguments=arguments)
        return self.hear()


@contextmanager
def raw(folder: Path, *words: str, **env: str) -> Iterator[Raw]:
    server = Raw(folder, *words, **env)
    with server.process:
        try:
            yield server
        finally:
            server.process.kill()


def plain_start() -> float:
    """How long Python and click need to start on this machine at this moment."""
    start = time.monotonic()
    subprocess.run([sys.executable, "-c", "import click"], check=True)
    return time.monotonic() - start


def test_the_first_list_comes_at_once(tmp_path: Path) -> None:
    """Within a second where nothing else runs; here, within few times an empty program."""
    took, plain = [], []
    for _ in range(5):
        plain.append(plain_start())
        with raw(tmp_path) as server:
            server.greet()
            server.send("tools/list", 2)
            assert server.hear()["id"] == 2
            took.append(time.monotonic() - server.started)

    assert min(took) < max(1.0, 8 * min(plain))


def test_it_ends_with_its_input(tmp_path: Path) -> None:
    """Soon after, in the middle of its start or of its work."""
    for busy in (False, True):
        with raw(tmp_path) as server:
            server.greet()
            if busy:
                server.call(2, "remember", text="The staging database is called heron")
            assert server.process.stdin is not None
            server.process.stdin.close()
            ended = time.monotonic()
            assert server.process.wait(10) == 0
            # Two seconds, and what a loaded machine adds to the start it was in.
            assert time.monotonic() - ended < 2 + 10 * plain_start()


def test_lines_that_are_no_messages_end_nothing(tmp_path: Path) -> None:
    """The next message is answered as if they had not been."""
    with raw(tmp_path) as server:
        for line in (b"", b"nonsense", b"\xff\xfe\x00", b"[" * 3000, b"{}", b'"\\ud800"'):
            server.line(line)
        server.greet()
        for line in (b"nonsense", b"\xff\xfe\x00", b"[" * 3000, b"{}", b'"\\ud800"'):
            server.line(line)
        server.send("ping", 7)
        while (heard := server.hear()).get("id") != 7:
            assert "error" in heard

        assert heard["result"] == {}


NOISE = """
import builtins, os, sys, threading, time

class Loud:
    def find_spec(self, name, path=None, target=None):
        if name in ("numpy", "apsw", "mcp", "anyio", "pydantic"):
            print("loading", name)
            os.write(1, b"raw noise from " + name.encode() + b"\\n")
            threading.Thread(target=chatter, daemon=True).start()

def chatter():
    while True:
        print("still here", flush=True)
        time.sleep(0.02)

sys.meta_path.insert(0, Loud())
"""


def test_nothing_but_messages_goes_out(tmp_path: Path) -> None:
    """Whatever a dependency prints, while it is imported or from a thread."""
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / "sitecustomize.py").write_text(NOISE)
    with raw(tmp_path, PYTHONPATH=str(tmp_path / "noise")) as server:
        server.greet()
        assert "result" in server.call(2, "remember", text="Releases are cut on Tuesdays")
        assert "result" in server.call(3, "recall", query="when are releases cut?")
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.stdout is not None
        rest = server.process.stdout.read().splitlines()
        assert server.process.stderr is not None
        noise = server.process.stderr.read()

    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    assert b"still here" in noise
    assert b"raw noise from apsw" in noise


def test_many_servers_share_a_space(tmp_path: Path) -> None:
    """What one has stored the others recall; none waits for another to end."""
    with ExitStack() as stack:
        servers = [stack.enter_context(raw(tmp_path)) for _ in range(4)]
        for number, server in enumerate(servers):
            server.greet()
            server.call(2, "remember", text=f"Project number {number} is called heron-{number}")
        for server in servers:
            answer = server.call(3, "recall", query="what are the projects called?", k=20)
            assert answer["result"]["structuredContent"]["returned"] == len(servers)


def test_killed_servers_leave_nothing(tmp_path: Path) -> None:
    """Twenty of them, at any moment: no process, no lock, nothing lost."""
    kept = []
    for number in range(20):
        with raw(tmp_path) as server:
            if number % 4:
                server.greet()
            if number % 4 == 3:
                told = server.call(2, "remember", text=f"Kept is memory {number} of the herons")
                kept.append(told["result"]["structuredContent"]["id"])
            server.process.send_signal((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)[number % 3])
            assert server.process.wait(10) is not None

    with raw(tmp_path) as server:
        server.greet()
        answer = server.call(2, "recall", query="memory of the herons", k=50)
        found = {hit["id"] for hit in answer["result"]["structuredContent"]["memories"]}
    assert found == set(kept)
    assert not running(tmp_path)


def running(folder: Path) -> list[str]:
    """Processes whose environment names the folder."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if place.name != str(os.getpid()) and bytes(folder) in (place / "environ").read_bytes():
                found.append(place.name)
        except OSError:
            continue  # it has ended since, or is somebody else's
    return found


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    """Even where somebody else holds the pipe open."""
    come, go = os.pipe()
    starter = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([{SCRIPT!r}, 'mcp'], stdin={come})\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", starter], cwd=tmp_path, env=room(tmp_path), pass_fds=[come],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        give_up = time.monotonic() + 30
        while len(running(tmp_path)) < 2:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        time.sleep(2)
        parent.kill()
        parent.wait()
        give_up = time.monotonic() + 10
        while running(tmp_path):
            assert time.monotonic() < give_up
            time.sleep(0.1)
    finally:
        parent.kill()
        os.close(come)
        os.close(go)


def test_http_serves_this_machine_alone(tmp_path: Path) -> None:
    """The same by streamable HTTP; another host's name is turned away."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    refused = subprocess.run(
        [SCRIPT, "mcp", "--http", f"0.0.0.0:{port}"], cwd=tmp_path, env=room(tmp_path),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert refused.returncode == 2
    assert "not this machine alone" in refused.stderr

    async def conversation() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            await call(client, "remember", text="Releases are cut on Tuesdays")
            answer = await call(client, "recall", query="when are releases cut?")
            assert answer["status"] == "found"

    with raw(tmp_path, "--http", f"127.0.0.1:{port}"):
        give_up = time.monotonic() + 30
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

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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
        [SCRIPT, "mcp"], cwd=tmp_path, env=room(tmp_path, PYTHONPATH=str(tmp_path / "hidden")),
        capture_output=True, text=True, check=False, input="",
    )  # fmt: skip

    assert ran.returncode == 2
    assert "recollect[mcp]" in ran.stderr
    assert ran.stdout == ""
