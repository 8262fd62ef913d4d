"""The server on the official library, without a process: what becomes of calls that fail."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client.client import Client

from corpus import NOW
from maintained import add_cold, add_others, open_memory
from recollect import Memory
from recollect.mcp.offer import Offer
from recollect.mcp.opening import Opening
from recollect.mcp.schema import answer, arguments
from recollect.mcp.server import make_server
from recollect.mcp.tool import Call, Reply, Tool
from recollect.mcp.tools import TOOLS
from recollect.settings import Settings
from recollect.testing import FixedClock


class Broken(Tool):
    """A tool with a bug, whose words could hold anything."""

    def __call__(self, call: Call) -> Reply:
        raise KeyError("what somebody stored")


class Endless(Tool):
    """A tool that takes too long."""

    def __call__(self, call: Call) -> Reply:
        time.sleep(1)
        return Reply("late", {})


class Given(Opening):
    """A memory that is open already."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.settings)
        self._given = memory
        self._load()

    def _open(self) -> Memory:
        return self._given


BARE: Any = (arguments({}), answer({}), "")
OWN = {
    "broken": Broken("broken", "Broken", "Fails.", *BARE, reads=True),
    "endless": Endless("endless", "Endless", "Waits.", *BARE, reads=True),
}


def talk(memory: Memory, conversation: Callable[[Client], Awaitable[None]]) -> None:
    """A conversation with a server in this process."""

    async def run() -> None:
        server = make_server(Offer(TOOLS | OWN), Given(memory), within_s=0.2)
        async with Client(server) as client:
            await conversation(client)

    anyio.run(run)


@pytest.mark.parametrize(
    ("tool", "told"),
    [("broken", "a bug in Recollect: KeyError"), ("endless", "took longer than 0.2 seconds")],
)
def test_a_failure_is_a_sentence(memory: Memory, tool: str, told: str) -> None:
    """Without a word of what was stored, and soon."""

    async def conversation(client: Client) -> None:
        result = await client.call_tool(tool, {})
        assert result.is_error
        assert told in result.content[0].text  # type: ignore[union-attr]
        assert "somebody" not in str(result)

    talk(memory, conversation)


def test_long_calls_tell_their_progress() -> None:
    """To a client that asks for it."""
    clock, steps = FixedClock(NOW), []

    async def watch(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total))

    async def conversation(client: Client) -> None:
        shown = await client.call_tool("consolidate", {"share": 0.5})
        token = (shown.structured_content or {})["token"]
        done = await client.call_tool(
            "consolidate", {"share": 0.5, "token": token}, progress_callback=watch
        )
        assert (done.structured_content or {})["done"]

    with open_memory(clock) as memory:
        add_cold(memory, clock)
        add_others(memory, 300)
        talk(memory, conversation)

    assert steps
    assert steps == sorted(steps)


def test_a_store_that_cannot_be_opened_is_told_to_who_asks(tmp_path: Path) -> None:
    """The server itself stays up."""
    (tmp_path / "spaces").mkdir()
    (tmp_path / "spaces" / "broken.db").write_text("not a database, whatever its name says " * 50)
    opening = Opening(Settings(space="broken", data_dir=tmp_path), patience_s=5)
    opening.begin()

    async def run() -> None:
        async with Client(make_server(Offer(TOOLS), opening)) as client:
            result = await client.call_tool("recall", {"query": "anything"})
            assert result.is_error
            assert "database" in result.content[0].text  # type: ignore[union-attr]
            assert len((await client.list_tools()).tools) == len(TOOLS)

    anyio.run(run)
