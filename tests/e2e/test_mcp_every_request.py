"""MCP over standard input and output: every request is answered, whatever it holds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from bethink.server.mcp.stdio import MAX_LINE_BYTES, find_fault
from server_process import StdioServer, stdio_server

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
HALF = "The build is green \ud83d"
DEEP = 150


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def request(number: int | str, method: str = "tools/call", **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def call(number: int | str, tool: str, **arguments: Any) -> bytes:
    return request(number, name=tool, arguments=arguments)


def hostile_lines() -> dict[int, bytes]:
    """Requests that were never answered, or might not be, by their id."""
    huge = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"recall","arguments":'
    lines = [
        lambda n: call(n, "remember", text=HALF),
        lambda n: call(n, "recall", query="x", **{"\udc00": 1}),
        lambda n: request(n, "tools/\ud83d"),
        lambda n: huge % n + b'{"query":"x","k":' + b"9" * 5000 + b"}}}\n",
        lambda n: huge % n + b'{"query":"x","k":1e999}}}\n',
        lambda n: huge % n + b'{"query":"x","k":NaN}}}\n',
        lambda n: huge % n + b'{"query":"\xff\xfe"}}}\n',
        lambda n: huge % n + b'{"query":"x"}}\n',
        lambda n: huge % n + b"[" * 100_000 + b"]" * 100_000 + b"}}\n",
        lambda n: call(n, "remember", text="x", metadata=nested(DEEP)),
        lambda n: call(n, "remember", text="x", tags=nested(DEEP)),
        lambda n: call(n, "no such tool"),
        lambda n: call(n, "recall", query="\u2028 \x85 \ufeff"),
        lambda n: call(n, "recall", query="x" * 100_000),
        lambda n: call(n, "recall"),
        lambda n: request(n, "no/such/method"),
        lambda n: request(n, "tools/call"),
        lambda n: request(n, "tools/call", name=5),
        lambda n: request(n, "tools/call", name="recall", arguments=[]),
        lambda n: request(n, "tools/call", name="recall", arguments={}, _meta=5),
        lambda n: request(n, "resources/read", uri="memory://\ud83d"),
        lambda n: request(n, "resources/read", uri=5),
        lambda n: request(n, "completion/complete", ref={"type": "x"}, argument={}),
        lambda n: request(n, "initialize", protocolVersion="no"),
        lambda n: b'{"jsonrpc":"1.0","id":%d,"method":"ping"}\n' % n,
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":7}\n' % n,
        lambda n: b'{"jsonrpc":"2.0","id":%d,"method":"ping","params":[]}\n' % n,
        lambda n: b'{"jsonrpc":"2.0","id":%d}\n' % n,
        lambda n: b'{"method":"ping","params":{"x":"\\ud800"},"jsonrpc":"2.0","id":%d}\n' % n,
        lambda n: b'{"method":"ping","params":{"x":' + b"[" * 9999 + b'},"jsonrpc":"2.0","id":%d}\n' % n,
        lambda n: huge % n + b'"' + b"x" * MAX_LINE_BYTES + b'"}}\n',
        lambda n: b'{"method":"ping","params":{"x":"' + b"x" * (MAX_LINE_BYTES + 7)
        + b'"},"jsonrpc":"2.0","id":%d}\n' % n,
        lambda n: request(n, "ping"),
    ]  # fmt: skip
    return {number: make(number) for number, make in enumerate(lines, start=100)}


@pytest.fixture
def server(tmp_path: Path) -> Any:
    with stdio_server(tmp_path) as running:
        running.greet()
        yield running


def answers_to(server: StdioServer, expected: set[int | str]) -> dict[int | str, Any]:
    """The answers to these requests, in whatever order they come."""
    found: dict[int | str, Any] = {}
    while expected - found.keys():
        message = server.hear()
        if message.get("id") in expected:
            assert message["id"] not in found, message
            found[message["id"]] = message
    return found


def test_every_request_is_answered(server: StdioServer) -> None:
    """Half characters, numbers of thousands of digits, deep, long and broken ones."""
    lines = hostile_lines()
    for line in lines.values():
        server.line(line.rstrip(b"\n"))
    found = answers_to(server, set(lines))

    for number, message in found.items():
        assert ("result" in message) != ("error" in message), number
        assert "Traceback" not in json.dumps(message)
    assert found[100]["error"]["code"] == -32602
    assert found[max(lines)]["result"] == {}


@pytest.mark.parametrize("params", [[1], 7, "no", None])
def test_no_notification_silences_the_server(server: StdioServer, params: object) -> None:
    """Whatever its params are; a cancellation of ``true`` is not one of request 1."""
    for method in ("notifications/cancelled", "notifications/other"):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        server.line(json.dumps(message).encode())
    server.line(call(1, "remember", text="The harbour crane is yellow").strip())
    cancel = {"method": "notifications/cancelled", "params": {"requestId": True}}
    server.line(json.dumps({"jsonrpc": "2.0"} | cancel).encode())

    assert not answers_to(server, {1})[1]["result"]["isError"]


def test_what_is_no_request_is_answered_without_an_id(server: StdioServer) -> None:
    """Garbage is a parse error, a list or a bare value an invalid request."""
    lines = {b"garbage\n": -32700, b'{"a":\n': -32700, b"\xff\xfe\n": -32700, b"[]\n": -32600,
             b"5\n": -32600, b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n': -32600,
             b'{"jsonrpc":"2.0","id":[1],"method":"ping"}\n': -32600}  # fmt: skip
    for line, code in lines.items():
        server.line(line.rstrip(b"\n"))
        message = server.hear()
        assert (message["id"], message["error"]["code"]) == (None, code), line
    server.line(b"   ")
    server.line(request("after", "ping").rstrip())
    assert server.hear()["id"] == "after"


def test_broken_requests_of_any_kind_are_answered(server: StdioServer) -> None:
    """A call with one byte changed, cut or doubled: its id is answered, or the line is named."""
    chance = random.Random(20261116)
    good = call(7, "recall", query="where is the deploy key? ☕ \U0001f600", k=3).rstrip(b"\n")
    for _ in range(150):
        at = chance.randrange(len(good))
        broken = chance.choice(
            (
                good[:at] + bytes([chance.randrange(256)]) + good[at + 1 :],
                good[:at] + good[at + 1 :],
                good[:at],
                good[:at] + good[at:] * 2,
            )
        ).replace(b"\n", b" ")
        server.line(broken)
    server.line(request("last", "ping").rstrip())
    heard: list[Any] = []
    while not heard or heard[-1].get("id") != "last":
        heard.append(server.hear())

    assert all(("result" in one) != ("error" in one) for one in heard)


def test_a_good_message_has_no_fault() -> None:
    """Requests, notifications and answers of a client pass as they are."""
    good = [
        call("a", "remember", text="fine \U0001f600 ☕", metadata={"deep": nested(8)}),
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
        b'{"jsonrpc":"2.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}',
    ]
    assert [find_fault(line) for line in good] == [None] * len(good)
