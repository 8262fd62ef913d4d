"""Over standard input and output every request gets the answer that the library would give."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from bethink import Memory
from bethink.access.hosts import parse_address
from bethink.config.settings import Settings
from bethink.errors import BadSetting
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.stdio import (
    HANDSHAKE_VERSIONS,
    STATELESS_VERSION,
    Pipe,
    StdioServer,
)
from bethink.server.mcp.view import EXTENSION, MIME
from bethink.server.parent import watch_parent
from bethink.server.tools import TOOLS
from bethink.server.tools.calls import ToolExecutor
from deferred import Deferred
from rows import each_row
from server_app import OpenMemoryLoader

mcp_server = Deferred("bethink.server.mcp.server")

mcp_sdk = Deferred("mcp.client._memory", "mcp.shared.message", "mcp_types", "mcp_types.version")

OFFER = ServerManifest(TOOLS)


def line(method: str, params: Any = None, number: int | str = 1) -> bytes:
    told = {"jsonrpc": "2.0", "id": number, "method": method}
    return json.dumps(told if params is None else told | {"params": params}).encode() + b"\n"


def greeting(version: str, **capabilities: Any) -> bytes:
    client = {"name": "test", "version": "1"}
    told = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}
    return line("initialize", told)


def alone(capabilities: dict[str, Any]) -> dict[str, Any]:
    """The fields in which a request says who asks, where there is no greeting."""
    client = {"name": "test", "version": "1"}
    own = {
        "protocolVersion": STATELESS_VERSION,
        "clientInfo": client,
        "clientCapabilities": capabilities,
    }
    return {"_meta": {f"io.modelcontextprotocol/{name}": told for name, told in own.items()}}


GREETING = greeting(HANDSHAKE_VERSIONS[-1])
DRAWS = {"extensions": {EXTENSION: {"mimeTypes": [MIME]}}}


async def by_library(*asked: bytes, loader: MemoryLoader | None = None) -> list[dict[str, Any]]:
    """What the library answers to the same lines."""
    server = mcp_server.make_server(OFFER, loader or MemoryLoader(Settings()))
    answers = []
    async with mcp_sdk.InMemoryTransport(server) as (reading, writing):
        for one in asked:
            await writing.send(
                mcp_sdk.SessionMessage(mcp_sdk.jsonrpc_message_adapter.validate_json(one))
            )
            got = await reading.receive()
            assert isinstance(got, mcp_sdk.SessionMessage)
            answers.append(
                json.loads(got.message.model_dump_json(by_alias=True, exclude_unset=True))
            )
    return answers


class Lines(io.BytesIO):
    """Input that is made line by line, as it is read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        super().__init__()
        self._lines = lines

    def readline(self, size: int | None = -1, /) -> bytes:
        return next(self._lines, b"")


def by_server(*asked: Any, executor: Any = None, **parts: Any) -> list[dict[str, Any]]:
    """What the server over standard input and output answers to these lines."""
    out = io.BytesIO()
    pipe = Pipe(asked[0] if isinstance(asked[0], Lines) else io.BytesIO(b"".join(asked)), out)
    make = (lambda: executor) if executor else (lambda: pytest.fail("it was called"))
    StdioServer(pipe, OFFER, make, exit_process=lambda _: None, **parts).run(lambda: None)
    return [json.loads(one) for one in out.getvalue().splitlines()]


@each_row("capabilities", [{}, DRAWS], ids=["plain", "draws"])
@each_row("version", HANDSHAKE_VERSIONS[-2:])
def test_it_says_what_the_library_says(version: str, capabilities: dict[str, Any]) -> None:
    """The greeting and every list, field for field; to a host that draws views as well."""
    asked = [
        greeting(version, **capabilities),
        *(line(method, number=method) for method in OFFER.lists_for({})),
        line("tools/list", {"cursor": "x"}, number="page"),
    ]

    assert by_server(*asked) == anyio.run(lambda: by_library(*asked))


@pytest.mark.parametrize("capabilities", [{}, DRAWS], ids=["plain", "draws"])
def test_it_says_it_without_a_handshake(capabilities: dict[str, Any]) -> None:
    """Where every request speaks for itself."""
    methods = ["server/discover", *OFFER.lists_for({})]
    asked = [line(method, alone(capabilities), number=method) for method in methods]

    assert by_server(*asked) == anyio.run(lambda: by_library(*asked))


@each_row(
    "changed",
    [
        {"io.modelcontextprotocol/protocolVersion": "2099-01-01"},
        {"io.modelcontextprotocol/clientInfo": "me"},
        {"io.modelcontextprotocol/clientCapabilities": []},
        {"io.modelcontextprotocol/clientCapabilities": {"roots": 5}},
    ],
)
def test_who_says_nothing_right_of_itself_is_refused(changed: dict[str, Any]) -> None:
    told = alone({})
    told["_meta"] |= changed

    (here,) = by_server(line("server/discover", told))
    (there,) = anyio.run(lambda: by_library(line("server/discover", told)))
    assert here["error"]["code"] == there["error"]["code"]


def test_versions_are_agreed_on_as_the_library_does() -> None:
    """An older one that it speaks is taken, another is answered with the newest."""
    assert set(HANDSHAKE_VERSIONS) == set(mcp_sdk.HANDSHAKE_PROTOCOL_VERSIONS)
    for version in (*HANDSHAKE_VERSIONS, "2099-01-01"):
        (here,) = by_server(greeting(version))
        (there,) = anyio.run(lambda told=version: by_library(greeting(told)))
        assert here == there, version


UNUSUAL = (
    ("initialize", {}),
    ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
    ("tools/list", {"cursor": 5}),
    ("tools/call", {}),
    ("tools/call", {"name": 5}),
    ("tools/call", {"name": "nothing"}),
    ("tools/call", {"name": "recall", "arguments": [1]}),
    ("tools/call", {"name": "recall", "_meta": 5}),
    ("server/discover", {}),
    ("no/such/method", {}),
    ("logging/setLevel", {"level": "info"}),
)


def test_mistakes_are_answered_as_the_library_answers_them() -> None:
    """With the same codes; before the handshake everything but a ping is one."""
    asked = [line(*one, number=place + 10) for place, one in enumerate(UNUSUAL)]
    greeted = [greeting(HANDSHAKE_VERSIONS[-1]), *asked]

    here, there = by_server(*greeted), anyio.run(lambda: by_library(*greeted))
    assert [one["error"]["code"] for one in here[1:]] == [one["error"]["code"] for one in there[1:]]
    assert [one["error"]["code"] for one in by_server(line("tools/list"))] == [-32602]
    assert by_server(line("ping")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


CALLS = (
    ("tools/call", {"name": "recall", "arguments": {"query": "where is the key?"}}),
    ("tools/call", {"name": "recall", "arguments": {"query": "where is it?", "nonsense": 1}}),
    ("tools/call", {"name": "recall"}),
    ("tools/call", {"name": "remember", "arguments": {"text": ""}}),
    ("tools/call", {"name": "timeline", "arguments": {"id": "nothing-like-that"}}),
    ("resources/read", {"uri": "memory://item/mat"}),
    ("resources/read", {"uri": "memory://nothing"}),
    ("resources/read", {"uri": "ui://bethink/recall"}),
    ("resources/read", {"uri": 5}),
    ("prompts/get", {"name": "keep"}),
    ("prompts/get", {"name": "begin", "arguments": {"task": "find the key"}}),
    ("prompts/get", {"name": "begin", "arguments": {"task": 5}}),
    ("prompts/get", {"name": "nothing"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "begin"},
                             "argument": {"name": "task", "value": "m"}}),
    ("completion/complete", {"ref": {"type": "x"}, "argument": {}}),
)  # fmt: skip


@pytest.mark.parametrize("era", ["plain", "draws", "alone"])
def test_requests_are_answered_as_the_library_answers_them(era: str) -> None:
    """Answers, refusals and failures, field for field."""
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember("The key lies under the mat", id="mat", entities=["person:mara"])
        loader = OpenMemoryLoader(memory)
        own = alone({}) if era == "alone" else {}
        asked = [
            line(method, params | own, number=place + 10)
            for place, (method, params) in enumerate(CALLS)
        ]
        if era != "alone":
            asked.insert(0, greeting(HANDSHAKE_VERSIONS[-1], **(DRAWS if era == "draws" else {})))
        here = by_server(*asked, executor=ToolExecutor(loader))
        there = anyio.run(lambda: by_library(*asked, loader=loader))

    assert sorted(here, key=lambda one: one["id"]) == there


def test_a_read_is_asked_of_the_worker_by_clients_that_wait_for_progress() -> None:
    """Many send a token with every call; a read reports none, and a write is never asked."""
    asked: list[str] = []

    def answer(call: dict[str, Any], _: float) -> dict[str, Any]:
        asked.append(call["name"])
        return {"reply": {"text": "there", "content": {}, "meta": None}}

    calls = [
        line("tools/call", {"name": name, "arguments": given, "_meta": {"progressToken": 7}}, name)
        for name, given in (("recall", {"query": "x"}), ("remember", {"text": "A"}))
    ]
    with Memory.open(":memory:", embedder="none") as memory:
        executor = ToolExecutor(OpenMemoryLoader(memory))
        said = by_server(GREETING, *calls, executor=executor, ask_worker=answer)
    assert asked == ["recall"]
    (told,) = (one for one in said if one.get("id") == "recall")
    assert told["result"]["content"] == [{"type": "text", "text": "there"}]


def test_a_call_is_answered_although_asking_the_worker_is_a_bug() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    said = by_server(GREETING, line("tools/call", {"name": "recall"}, 5), ask_worker=fail)
    assert said[1]["result"]["isError"]


class Slow:
    """Waits until it is told to go on; counts how many wait at the same time."""

    def __init__(self) -> None:
        self.go_on, self.begun, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self.running = self.most = 0

    def __call__(self, *_: object) -> dict[str, Any]:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.begun.set()
        self.go_on.wait(60)
        with self._lock:
            self.running -= 1
        return {"error": ["it ends", "", "Refused"]}


def test_a_cancelled_call_is_not_answered() -> None:
    """It goes on, and its result is dropped; a cancellation of another does nothing."""
    slow = Slow()

    def lines() -> Iterator[bytes]:
        yield GREETING
        yield from (line("tools/call", {"name": "recall"}, number) for number in (5, 7))
        assert slow.begun.wait(60)
        for number in (6, 5, 5):
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            yield json.dumps(told | {"params": {"requestId": number}}).encode() + b"\n"
        slow.go_on.set()

    assert [one["id"] for one in by_server(Lines(lines()), ask_worker=slow)] == [1, 7]


def test_a_flood_of_calls_waits() -> None:
    """A call has threads of its own, and there are only so many; all are answered."""
    slow = Slow()

    def lines() -> Iterator[bytes]:
        yield GREETING
        yield from (line("tools/call", {"name": "recall"}, number) for number in range(100, 150))
        yield line("ping", number="ping")
        slow.go_on.set()

    said = by_server(Lines(lines()), ask_worker=slow)
    assert slow.most <= 40
    assert len(said) == 52


def test_calls_that_do_not_end_do_not_keep_the_process() -> None:
    """It leaves a moment after the end of input."""
    slow, gone = Slow(), threading.Event()
    pipe = Pipe(io.BytesIO(GREETING + line("tools/call", {"name": "recall"})), io.BytesIO())
    server = StdioServer(
        pipe, OFFER, lambda: pytest.fail("it was called"), ask_worker=slow,
        exit_process=lambda _: gone.set(),
    )  # fmt: skip
    server.run(lambda: None)

    assert gone.wait(60)
    slow.go_on.set()


def test_the_process_leaves_with_its_parent() -> None:
    """As soon as it is another's child."""
    parents, left = [7, 7, 7, 1], []

    watch_parent(left.append, get_parent=lambda: parents.pop(0), interval_s=0).join(60)

    assert left == [0]


@each_row(
    ("written", "read"),
    [
        ("127.0.0.1:8765", ("127.0.0.1", 8765)),
        ("localhost:1", ("localhost", 1)),
        ("[::1]:80", ("::1", 80)),
        (":80", ("127.0.0.1", 80)),
    ],
)
def test_addresses_of_this_machine(written: str, read: tuple[str, int]) -> None:
    """Are taken as they are written."""
    assert parse_address(written) == read


@each_row("written", ["127.0.0.1:", "x", "", "127.0.0.1:70000", "127.0.0.1:٣", "127.0.0.1:-1"])
def test_an_address_names_a_port(written: str) -> None:
    """Whatever else it names; who may come in there is the guard's business."""
    with pytest.raises(BadSetting):
        parse_address(written)
