"""Before the library is there, the first questions get the answers it would give."""

from __future__ import annotations

import json
import os
import threading
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
    EarlyCalls,
    EarlyHandshake,
    Pipe,
    StdioBridge,
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


@each_row("capabilities", [{}, DRAWS], ids=["plain", "draws"])
@each_row("version", HANDSHAKE_VERSIONS)
def test_the_front_says_what_the_library_says(version: str, capabilities: dict[str, Any]) -> None:
    """The greeting and every list, field for field; to a host that draws views as well."""
    asked = [
        greeting(version, **capabilities),
        *(line(method, number=method) for method in OFFER.lists),
    ]
    front = EarlyHandshake(OFFER)

    here = [front.reply(one) for one in asked]
    there = anyio.run(lambda: by_library(*asked))

    assert here == there


@pytest.mark.parametrize("capabilities", [{}, DRAWS], ids=["plain", "draws"])
def test_the_front_says_it_without_a_handshake(capabilities: dict[str, Any]) -> None:
    """Where every request speaks for itself, whichever of them comes first."""
    methods = ["server/discover", *OFFER.lists]
    for first in methods:
        asked = [
            line(method, alone(capabilities), number=method)
            for method in [first, *(one for one in methods if one != first)]
        ]
        front = EarlyHandshake(OFFER)

        here = [front.reply(one) for one in asked]
        there = anyio.run(lambda told=asked: by_library(*told))

        assert here == there
        assert front.first_request_id == first


@each_row(
    "changed",
    [
        {"io.modelcontextprotocol/protocolVersion": "2099-01-01"},
        {"io.modelcontextprotocol/clientInfo": "me"},
        {"io.modelcontextprotocol/clientInfo": None},
        {"io.modelcontextprotocol/clientCapabilities": []},
        {"io.modelcontextprotocol/clientCapabilities": {"roots": 5}},
        {"io.modelcontextprotocol/other": 1},
    ],
)
def test_an_unusual_request_is_the_librarys(changed: dict[str, Any]) -> None:
    """Whoever speaks for itself in another way than the usual one."""
    told = alone({})
    told["_meta"] |= changed

    assert EarlyHandshake(OFFER).reply(line("server/discover", told)) is None
    assert EarlyHandshake(OFFER).reply(line("tools/list", alone({}) | {"cursor": "x"})) is None
    assert EarlyHandshake(OFFER).reply(line("initialize", alone({}))) is None


def test_the_versions_are_ones_the_library_speaks() -> None:
    """Another version is left to the library."""
    assert set(HANDSHAKE_VERSIONS) < set(mcp_sdk.HANDSHAKE_PROTOCOL_VERSIONS)
    assert EarlyHandshake(OFFER).reply(greeting("2024-11-05")) is None
    assert EarlyHandshake(OFFER).reply(greeting("2099-01-01")) is None


@each_row(
    "asked",
    [
        b"",
        b"\n",
        b"not json",
        b"\xff\xfe",
        b"[]",
        b"7",
        b"{}",
        b"[" * 5000,
        line("initialize", {}),
        line("initialize", []),
        line("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}}),
        line("tools/list"),
        line("tools/call", {"name": "recall"}),
        line("server/discover", {"_meta": {}}),
        b'{"jsonrpc": "2.0", "method": "notifications/initialized"}',
        b'{"jsonrpc": "2.0", "id": null, "method": "initialize"}',
        b'{"jsonrpc": "2.0", "id": true, "method": "initialize"}',
    ],
)
def test_whatever_it_does_not_know_is_the_librarys(asked: bytes) -> None:
    """Malformed, early or other lines are passed on, never answered wrongly."""
    assert EarlyHandshake(OFFER).reply(asked) is None


def test_who_begins_otherwise_is_left_to_the_library() -> None:
    """A version without a greeting, or a page of a list."""
    other, early = EarlyHandshake(OFFER), EarlyHandshake(OFFER)
    early.reply(greeting(HANDSHAKE_VERSIONS[0]))

    assert other.reply(line("server/discover", {"_meta": {}})) is None
    assert other.reply(greeting(HANDSHAKE_VERSIONS[0])) is None
    assert early.reply(line("tools/list", {"cursor": "x"})) is None
    assert early.reply(line("tools/list", {"_meta": {"other": 1}})) is None
    assert early.reply(greeting(HANDSHAKE_VERSIONS[0])) is None
    assert early.reply(line("tools/list", {"_meta": {"progressToken": 1}})) is not None


def test_lines_are_answered_once_and_handed_on_once() -> None:
    """By the front before the library takes over; the library's own greeting is dropped."""
    come, to_us = os.pipe()
    from_us, go = os.pipe()
    left = []
    with (
        os.fdopen(come, "rb") as reading,
        os.fdopen(go, "wb") as writing,
        os.fdopen(to_us, "wb") as we,
        os.fdopen(from_us, "rb") as heard,
    ):
        lines = StdioBridge(Pipe(reading, writing), EarlyHandshake(OFFER), exit_process=left.append)
        lines.start()
        we.write(
            greeting(HANDSHAKE_VERSIONS[0]) + line("tools/list", number=2) + line("ping", number=3)
        )
        we.flush()
        first, second = json.loads(heard.readline()), json.loads(heard.readline())
        taken = [json.loads(lines.read()), json.loads(lines.read())]
        lines.write('{"jsonrpc": "2.0", "id": 1, "result": {"dropped": true}}\n')
        lines.write('{"jsonrpc": "2.0", "id": 3, "result": {}}\n')
        third = json.loads(heard.readline())
        we.write(line("tools/list", number=4))
        we.flush()
        after = json.loads(lines.read())
        lines.finish()
        we.close()
        assert lines.read() == ""

    assert [first["id"], second["id"], third["id"]] == [1, 2, 3]
    assert [one["method"] for one in taken] == ["initialize", "ping"]
    assert after["id"] == 4
    assert left == []


CALLS = (
    ("recall", {"query": "where is the key?"}),
    ("recall", {"query": "where is the key?", "nonsense": 1}),
    ("recall", {}),
    ("remember", {"text": ""}),
    ("timeline", {"id": "nothing-like-that"}),
)


@pytest.mark.parametrize("capabilities", [{}, DRAWS], ids=["plain", "draws"])
def test_calls_are_answered_as_the_library_answers_them(capabilities: dict[str, Any]) -> None:
    """Answers, refusals and failures, field for field; a ping as well."""
    with Memory.open(":memory:") as memory:
        memory.remember("The key lies under the mat")
        loader = OpenMemoryLoader(memory)
        asked = [greeting(HANDSHAKE_VERSIONS[0], **capabilities), line("ping", number="ping")]
        asked += [
            line("tools/call", {"name": name, "arguments": arguments}, number=place + 10)
            for place, (name, arguments) in enumerate(CALLS)
        ]
        front = EarlyHandshake(OFFER)
        here = [front.reply(asked[0])]
        calls = EarlyCalls(lambda: ToolExecutor(loader))
        for one in asked[1:]:
            assert calls.take(one, front, here.append)
            calls.wait(60)
        there = anyio.run(lambda: by_library(*asked, loader=loader))

    assert here == there


def test_what_is_unusual_is_not_answered_early() -> None:
    """Another method, an unknown tool, a task, or a client that has not shaken hands."""
    front, calls = EarlyHandshake(OFFER), EarlyCalls(lambda: pytest.fail("it was called"))
    said: list[Any] = []
    usual = {"name": "recall", "arguments": {}}
    assert not calls.take(line("tools/call", usual), front, said.append)
    front.reply(greeting(HANDSHAKE_VERSIONS[0]))
    for method, params in (
        ("prompts/get", {"name": "briefing"}),
        ("tools/call", {"name": "nothing", "arguments": {}}),
        ("tools/call", usual | {"task": {}}),
        ("tools/call", usual | {"arguments": [1]}),
        ("tools/call", usual | {"_meta": {"io.modelcontextprotocol/related-task": {}}}),
        ("tools/call", usual | {"_meta": {"progressToken": 1.5}}),
    ):
        assert not calls.take(line(method, params), front, said.append)
    assert said == []


def test_a_read_is_asked_of_the_worker_by_clients_that_wait_for_progress() -> None:
    """Many send a token with every call; a read reports none, and a write is never asked."""
    asked: list[str] = []

    def answer(call: dict[str, Any], _: float) -> dict[str, Any]:
        asked.append(call["name"])
        return {"reply": {"text": "there", "content": {}, "meta": None}}

    with Memory.open(":memory:") as memory:
        executor = ToolExecutor(OpenMemoryLoader(memory))
        front, calls = EarlyHandshake(OFFER), EarlyCalls(lambda: executor, ask_worker=answer)
        front.reply(greeting(HANDSHAKE_VERSIONS[0]))
        said: list[Any] = []
        for number, (name, arguments) in enumerate((CALLS[0], ("remember", {"text": "A"}))):
            params = {"name": name, "arguments": arguments, "_meta": {"progressToken": 7}}
            assert calls.take(line("tools/call", params, number), front, said.append)
            calls.wait(60)
    assert asked == [CALLS[0][0]]
    assert said[0]["result"]["content"] == [{"type": "text", "text": "there"}]


def test_a_call_is_answered_although_asking_the_worker_is_a_bug() -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    front = EarlyHandshake(OFFER)
    calls = EarlyCalls(lambda: pytest.fail("it was called"), ask_worker=fail)
    front.reply(greeting(HANDSHAKE_VERSIONS[0]))
    said: list[Any] = []
    assert calls.take(line("tools/call", {"name": "recall"}), front, said.append)
    calls.wait(10)
    assert said[0]["result"]["isError"]


def test_a_cancelled_call_is_not_answered() -> None:
    """It goes on, and its result is dropped; a cancellation of another is the library's."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: object, **__: object) -> Any:
        begun.set()
        go_on.wait(60)
        raise BadSetting("it ends")

    with Memory.open(":memory:") as memory:
        executor = ToolExecutor(OpenMemoryLoader(memory))
        executor.__class__ = type("Slow", (ToolExecutor,), {"__call__": slow})
        front, calls = EarlyHandshake(OFFER), EarlyCalls(lambda: executor)
        front.reply(greeting(HANDSHAKE_VERSIONS[0]))
        said: list[Any] = []
        assert calls.take(line("tools/call", {"name": "recall"}, 5), front, said.append)
        assert begun.wait(60)
        for number, known in ((6, False), (5, True), (5, False)):
            told = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            told |= {"params": {"requestId": number}}
            assert calls.take(json.dumps(told).encode(), front, said.append) is known
        go_on.set()
        calls.wait(60)
    assert said == []


def test_a_flood_of_calls_is_left_to_the_library() -> None:
    """A call has a thread of its own, and there are only so many; the library queues the rest."""
    go_on = threading.Event()

    def slow(*_: object, **__: object) -> Any:
        go_on.wait(60)
        raise BadSetting("it ends")

    with Memory.open(":memory:") as memory:
        executor = ToolExecutor(OpenMemoryLoader(memory))
        executor.__class__ = type("Slow", (ToolExecutor,), {"__call__": slow})
        front, calls = EarlyHandshake(OFFER), EarlyCalls(lambda: executor)
        front.reply(greeting(HANDSHAKE_VERSIONS[0]))
        said: list[Any] = []
        taken = [
            calls.take(line("tools/call", {"name": "recall"}, number), front, said.append)
            for number in range(100, 150)
        ]
        go_on.set()
        calls.wait(60)
    assert taken == [True] * 40 + [False] * 10
    assert len(said) == 40


@pytest.mark.parametrize("greeted", [True, False])
def test_an_opening_that_the_library_refuses(greeted: bool) -> None:
    """Ends the process where all else depends on it; a request that stands alone does not."""
    come, to_us = os.pipe()
    from_us, go = os.pipe()
    left: list[int] = []
    opening = greeting(HANDSHAKE_VERSIONS[0]) if greeted else line("tools/list", alone({}))
    with (
        os.fdopen(come, "rb") as reading,
        os.fdopen(go, "wb") as writing,
        os.fdopen(to_us, "wb") as we,
        os.fdopen(from_us, "rb") as heard,
    ):
        lines = StdioBridge(Pipe(reading, writing), EarlyHandshake(OFFER), exit_process=left.append)
        lines.start()
        we.write(opening)
        we.flush()
        assert "result" in json.loads(heard.readline())
        lines.write('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "no"}}\n')
        lines.write('{"jsonrpc": "2.0", "id": 2, "result": {}}\n')
        assert json.loads(heard.readline())["id"] == 2
        lines.finish()

    assert left == ([1] if greeted else [])


def test_calls_that_do_not_end_do_not_keep_the_process() -> None:
    """It leaves a moment after the end of input."""
    come, to_us = os.pipe()
    gone = threading.Event()
    out = os.open(os.devnull, os.O_WRONLY)
    with os.fdopen(come, "rb") as reading, os.fdopen(out, "wb") as writing:
        StdioBridge(
            Pipe(reading, writing), EarlyHandshake(OFFER), exit_process=lambda _: gone.set()
        ).start()
        os.close(to_us)

        assert gone.wait(60)


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
