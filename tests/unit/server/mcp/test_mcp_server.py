"""The server on the official library, without a process: what becomes of calls that fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import StoreError
from bethink.server.mcp.manifest import ServerManifest
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.mcp.requests import ERROR_KIND_KEY
from bethink.server.tools import TOOLS
from bethink.server.tools.catalog import arguments, record
from bethink.server.tools.tool import Call, Reply, Tool
from bethink.testing import FixedClock
from cold_memories import add_cold, add_others, open_memory
from corpus import NOW
from deferred import Deferred

mcp_server = Deferred("bethink.server.mcp.server")

mcp_sdk = Deferred("mcp.client.client", "mcp.shared.exceptions", "mcp_types")


class Broken(Tool):
    """A tool with a bug, whose words could hold anything."""

    def __call__(self, call: Call) -> Reply:
        raise KeyError("what somebody stored")


class Endless(Tool):
    """A tool that takes too long."""

    def __call__(self, call: Call) -> Reply:
        BEGUN.set()
        GIVEN_UP.wait(60)
        return Reply("late", {})


class Careful(Tool):
    """A write that is not done before somebody has given it up; the finished ones count."""

    def __call__(self, call: Call) -> Reply:
        BEGUN.set()
        GIVEN_UP.wait(60)
        FINISHED.append("written")
        return Reply("written", {})


class Given(MemoryLoader):
    """A memory that is open already."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.settings)
        self._given = memory
        self._load_model()

    def _open(self) -> Memory:
        return self._given


BEGUN, GIVEN_UP = Event(), Event()
FINISHED: list[str] = []
BARE: Any = (arguments(), record(), "")
OWN = {
    "broken": Broken("broken", "Broken", "Fails.", *BARE, read_only=True),
    "endless": Endless("endless", "Endless", "Waits.", *BARE, read_only=True),
    "careful": Careful("careful", "Careful", "Writes.", *BARE),
}


def talk(
    memory: Memory,
    conversation: Callable[[mcp_sdk.Client], Awaitable[None]],
    *,
    mode: str = "auto",
    within_s: float = 30,
) -> None:
    """A conversation with a server in this process."""

    async def run() -> None:
        server = mcp_server.make_server(
            ServerManifest({**TOOLS, **OWN}), Given(memory), timeout_s=within_s
        )
        async with mcp_sdk.Client(server, mode=mode) as client:
            await conversation(client)

    anyio.run(run)


@pytest.mark.parametrize(
    ("tool", "told"),
    [("broken", "a bug in Bethink: KeyError"), ("endless", "took longer than 0.2 seconds")],
)
def test_a_failure_is_a_sentence(memory: Memory, tool: str, told: str) -> None:
    """Without a word of what was stored, and soon."""
    GIVEN_UP.clear()

    async def conversation(client: mcp_sdk.Client) -> None:
        result = await client.call_tool(tool, {})
        GIVEN_UP.set()
        assert result.is_error
        assert told in result.content[0].text  # type: ignore[union-attr]
        assert "somebody" not in str(result)

    talk(memory, conversation, within_s=0.2 if tool == "endless" else 30)


def test_long_calls_tell_their_progress() -> None:
    """To a client that asks for it."""
    clock, steps = FixedClock(NOW), []

    async def watch(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total))

    async def conversation(client: mcp_sdk.Client) -> None:
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
    opening = MemoryLoader(Settings(space="broken", data_dir=tmp_path), read_wait_s=5)
    opening.start()

    async def run() -> None:
        async with mcp_sdk.Client(mcp_server.make_server(ServerManifest(TOOLS), opening)) as client:
            result = await client.call_tool("recall", {"query": "anything"})
            assert result.is_error
            assert "database" in result.content[0].text  # type: ignore[union-attr]
            assert len((await client.list_tools()).tools) == len(TOOLS)

    anyio.run(run)


@pytest.mark.parametrize("tool", ["endless", "careful"])
def test_a_call_can_be_given_up(memory: Memory, tool: str) -> None:
    """Who cancels waits no longer, and the server goes on; a write is still finished."""
    FINISHED.clear()
    BEGUN.clear()
    GIVEN_UP.clear()

    async def conversation(client: mcp_sdk.Client) -> None:
        with anyio.CancelScope() as waiting:
            async with anyio.create_task_group() as calls:
                calls.start_soon(client.call_tool, tool, {})
                await anyio.to_thread.run_sync(BEGUN.wait, 20)
                waiting.cancel()
        assert waiting.cancelled_caught
        GIVEN_UP.set()
        assert (await client.list_tools()).tools

    # With the handshake there is a line between the two, as there is in earnest.
    talk(memory, conversation, mode="legacy", within_s=30)

    assert (["written"] if tool == "careful" else []) == FINISHED


def test_a_failure_has_a_name_for_programs(memory: Memory) -> None:
    """The one that the command line gives it; of a resource and a prompt as well."""

    async def conversation(client: mcp_sdk.Client) -> None:
        for told, kind in (
            ({"query": "a", "k": 500}, "Refused"),
            ({"query": "a" * 9000}, "TooLarge"),
            ({"query": "a", "profile": "nobody's"}, "NotFound"),
        ):
            result = await client.call_tool("recall", told)
            assert (result.meta or {})[ERROR_KIND_KEY] == kind
        with pytest.raises(mcp_sdk.MCPError) as refused:
            await client.read_resource("memory://item/none")
        assert refused.value.data == {"kind": "NotFound"}

    talk(memory, conversation, within_s=30)


def test_names_are_completed(memory: Memory) -> None:
    """Of whom the memories speak, in an address and in a prompt; of nothing else."""
    memory.remember("Priya keeps the deploy key", entities=["Priya", "Prague"])

    async def conversation(client: mcp_sdk.Client) -> None:
        entity = mcp_sdk.ResourceTemplateReference(
            type="ref/resource", uri="memory://entity/{name}"
        )
        review = mcp_sdk.PromptReference(type="ref/prompt", name="review")
        found = await client.complete(entity, {"name": "name", "value": "Pr"})
        assert {*found.completion.values} == {"Priya", "Prague"}
        assert not found.completion.has_more
        one = await client.complete(review, {"name": "subject", "value": "priy"})
        assert one.completion.values == ["Priya"]
        item = mcp_sdk.ResourceTemplateReference(type="ref/resource", uri="memory://item/{id}")
        assert (await client.complete(item, {"name": "id", "value": "a"})).completion.values == []
        for name, value, kind in (("other", "a", "NotFound"), ("name", "a" * 300, "TooLarge")):
            with pytest.raises(mcp_sdk.MCPError) as refused:
                await client.complete(entity, {"name": name, "value": value})
            assert refused.value.data == {"kind": kind}

    talk(memory, conversation, within_s=30)


class Used:
    """What can be closed at the third try: others are in the middle of it."""

    def __init__(self, until: int) -> None:
        self.until, self.tries = until, 0

    def close(self) -> None:
        self.tries += 1
        if self.tries < self.until:
            raise StoreError("still in use")


class Using(MemoryLoader):
    """An opening of that."""

    def __init__(self, used: Used) -> None:
        super().__init__(Settings())
        self.used = used
        self._load_model()

    def _open(self) -> Any:
        return self.used

    def _load_model(self) -> None:
        self._memory()


def test_a_store_in_use_is_closed_when_it_is_free() -> None:
    """A question that nobody waits for any more delays the end a little; not for ever."""
    used, never = Used(until=3), Used(until=10_000)

    Using(used).close()

    assert used.tries == 3
    with pytest.raises(StoreError):
        Using(never).close()
