"""A server in this process, with everybody who might knock: for tests of what is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx

from bethink import Memory
from bethink.access.guard import Guard, GuardConfig, make_guard_config
from bethink.access.hosts import Address
from bethink.access.policy import Right
from bethink.access.tokens import ANY_SPACE, TokenStore
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Tool

SPACE = "memory"
HERE = Address("127.0.0.1", 8765)
URL = "http://127.0.0.1:8765"
CODES = {"read": Right.READ, "write": Right.WRITE, "admin": Right.ADMIN}


class OpenMemoryLoader(MemoryLoader):
    """A memory that is open already."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.settings)
        self._given = memory
        self._load_model()

    def _open(self) -> Memory:
        return self._given


class Callers:
    """Everybody who might knock, and the header each shows."""

    def __init__(self, folder: Path) -> None:
        self.tokens = TokenStore(folder)
        past = datetime.now(UTC) - timedelta(seconds=1)
        secrets = {name: self.tokens.create(name, right, (SPACE,)) for name, right in CODES.items()}
        secrets["expired"] = self.tokens.create("old", Right.ADMIN, (ANY_SPACE,), expires=past)
        secrets["elsewhere"] = self.tokens.create("other", Right.ADMIN, ("another",))
        gone = self.tokens.create("gone", Right.ADMIN, (ANY_SPACE,))
        self.tokens.revoke("gone")
        self.secrets = secrets | {"revoked": gone, "unknown": "bt_" + "A" * 43}
        self.headers: dict[str, dict[str, str]] = {
            "none": {},
            "no scheme": {"Authorization": secrets["admin"]},
            "basic": {"Authorization": f"Basic {secrets['admin']}"},
            "empty": {"Authorization": "Bearer "},
            "hash": {"Authorization": f"Bearer {self.tokens.all()[2].hashed}"},
            "cut": {"Authorization": f"Bearer {secrets['admin'][:-1]}"},
            **{name: bearer(secret) for name, secret in self.secrets.items()},
        }

    def right(self, caller: str, *, neighbours: bool) -> Right:
        """What somebody may do, by what the test says and not by what the guard finds."""
        if caller in CODES:
            return CODES[caller]
        return Right.WRITE if caller == "none" and neighbours else Right.ANYONE


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def make_guard(callers: Callers, address: Address = HERE, **more: Any) -> GuardConfig:
    rate = more.pop("rate", 0)
    return replace(make_guard_config(address, SPACE, callers.tokens, **more), rate=rate)


def make_test_app(
    memory: Memory, door: GuardConfig, tools: dict[str, Tool] | None = None, **more: Any
) -> Guard:
    from bethink.server.rest.app import make_app  # the MCP SDK: a second of every collection

    return make_app(
        ServerManifest(TOOLS if tools is None else tools), OpenMemoryLoader(memory), door, **more
    )


@asynccontextmanager
async def alive(app: Any) -> AsyncIterator[None]:
    """The application between its start and its end, as a server would run it."""
    come: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    went: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan", "asgi": {}}, come.get, went.put))
    await come.put({"type": "lifespan.startup"})
    assert (await went.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await come.put({"type": "lifespan.shutdown"})
        assert (await went.get())["type"] == "lifespan.shutdown.complete"
        await task


def talk(app: Any, conversation: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
    """A conversation with the application by plain HTTP, without a socket."""

    async def run() -> Any:
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
        async with alive(app), httpx.AsyncClient(transport=transport, base_url=URL) as client:
            return await conversation(client)

    return asyncio.run(run())


async def mcp(
    client: httpx.AsyncClient, method: str, params: dict[str, Any], headers: dict[str, str]
) -> httpx.Response:
    """One message of the protocol's newest version, which needs no handshake."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    name = params.get("name", params.get("uri"))
    told = {
        "MCP-Protocol-Version": "2026-07-28",
        "Accept": "application/json, text/event-stream",
        "Mcp-Method": method,
        **({"Mcp-Name": name} if name else {}),
        **headers,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
    return await client.post("/mcp", json=body, headers=told)


class EventStream:
    """A request whose answer does not end: what has come of it so far."""

    def __init__(self) -> None:
        self.status = 0
        self.heads: dict[str, str] = {}
        self._chunks: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._buffer = ""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.heads = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        await self._chunks.put(message.get("body", b""))
        if not message.get("more_body", False):
            await self._chunks.put(None)

    async def next(self) -> dict[str, str] | None:
        """The next event; None where the stream has ended."""
        while "\n\n" not in self._buffer:
            chunk = await asyncio.wait_for(self._chunks.get(), 60)
            if chunk is None:
                return None
            self._buffer += chunk.decode().replace("\r\n", "\n")
        block, _, self._buffer = self._buffer.partition("\n\n")
        fields = [line.partition(": ") for line in block.splitlines()]
        return {name: value for name, _, value in fields if name}


@asynccontextmanager
async def open_stream(
    app: Any, path: str, headers: dict[str, str] | None = None
) -> AsyncIterator[EventStream]:
    """An open stream of the application, which the client closes at the end."""
    gone, stream = asyncio.Event(), EventStream()
    told = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if told:
            return told.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    named = {"host": "127.0.0.1:8765", **(headers or {})}
    scope = {
        "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
        "query_string": b"", "client": ("127.0.0.1", 50_000), "scheme": "http",
        "http_version": "1.1", "root_path": "", "server": ("127.0.0.1", 8765),
        "headers": [(name.lower().encode(), value.encode()) for name, value in named.items()],
    }  # fmt: skip
    task = asyncio.create_task(app(scope, receive, stream.send))
    try:
        yield stream
    finally:
        gone.set()
        await asyncio.wait_for(task, 60)
