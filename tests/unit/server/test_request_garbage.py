"""What a request leaves behind in a server that runs for months."""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

from bethink import Memory
from bethink.access.guard import Guard
from server_app import HERE, Callers, alive, make_guard, make_test_app

ROUNDS = 20
HEADERS = [(b"host", HERE.netloc.encode()), (b"content-type", b"application/json")]


async def post(app: Guard, path: str, body: dict[str, Any]) -> Any:
    """Send a request as the listener does; a client of a library leaves garbage of its own."""
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": "POST", "root_path": "", "path": path, "raw_path": path.encode(),
        "query_string": b"", "client": ("127.0.0.1", 50_000), "server": HERE, "headers": HEADERS,
    }  # fmt: skip
    given = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    told: list[Any] = []

    async def receive() -> Any:
        return given.pop()

    async def send(message: Any) -> None:
        told.append(message)

    await app(scope, receive, send)
    assert told[0]["status"] == 200, told
    return json.loads(b"".join(one.get("body", b"") for one in told))


async def work(app: Guard, number: int) -> None:
    stored = await post(app, "/v1/memories", {"text": f"The boat {number} lies in the harbour."})
    await post(app, "/v1/recall", {"query": f"Where is the boat {number}?"})
    shown = await post(app, "/v1/forget", {"ids": [stored["id"]]})
    assert (await post(app, "/v1/forget", {"ids": [stored["id"]], "token": shown["token"]}))["done"]


def test_a_request_leaves_nothing_for_the_garbage_collector(memory: Memory, tmp_path: Path) -> None:
    """A server collects rarely: what refers to itself would stay for thousands of requests."""
    app, was_enabled = make_test_app(memory, make_guard(Callers(tmp_path))), gc.isenabled()

    async def count_garbage() -> int:
        async with alive(app):
            for number in range(3):  # the first ones import, which leaves some
                await work(app, number)
            gc.collect()
            gc.disable()
            for number in range(ROUNDS):
                await work(app, number)
            return gc.collect()

    try:
        assert asyncio.run(count_garbage()) < ROUNDS
    finally:
        if was_enabled:
            gc.enable()
