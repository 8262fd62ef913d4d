"""The session of the OpenAI Agents SDK: what was said stays as it was, and can be asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.errors import Refused, TooLarge
from bethink.integrations.exact_json import Redaction
from bethink.integrations.transcript import MAX_TURN_BYTES
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from deferred import Deferred
from rows import each_row

agents = Deferred(
    "agents", "agents.items", "agents.memory", "agents.models.interface", "scripted_model"
)
openai = Deferred("openai.types.responses", "openai.types.responses.response_reasoning_item")
integration = Deferred("bethink.integrations.openai_agents")

KEY = "AKIA" + "Q3EGLQ7XUVZ5T2MB"
ITEMS: list[Any] = [
    {"role": "user", "content": "What is the weather in Kyoto?"},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "The user asks for the weather."}],
        "encrypted_content": "gAAAA" + "Zm9v" * 200,
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Kyoto", "days": [1, 2]}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "sunny\n\x00 21°C"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [
            {
                "type": "output_text",
                "text": "In Kyoto it is sunny.",
                "annotations": [{"type": "url_citation", "start_index": 0, "url": "https://w"}],
                "logprobs": [{"token": "In", "logprob": -0.1, "top_logprobs": [{"bytes": [1]}]}],
            }
        ],
    },
    {"role": "user", "content": [{"type": "input_image", "image_url": "data:image/png;base64,AA"}]},
]


@pytest.fixture
def space(embedder: Embedder) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        yield memory


def test_it_is_a_session(space: Memory) -> None:
    """By the SDK's own protocol."""
    assert isinstance(integration.BethinkSession("s", space), agents.Session)


def test_items_come_back_as_they_were(space: Memory) -> None:
    """Messages, reasoning, tool calls, outputs and pictures, in their order."""

    async def main() -> list[Any]:
        session = integration.BethinkSession("s", space)
        await session.add_items(ITEMS[:2])
        await session.add_items([])
        await session.add_items(ITEMS[2:])
        return await integration.BethinkSession("s", space).get_items()

    got = asyncio.run(main())

    assert json.dumps(got) == json.dumps(ITEMS)


def test_a_limit_gives_the_last_ones(space: Memory) -> None:
    """In their order; the session's own setting holds where a call names none."""

    async def main() -> list[list[Any]]:
        session = integration.BethinkSession(
            "s", space, session_settings=agents.SessionSettings(limit=2)
        )
        await session.add_items(ITEMS)
        short = integration.BethinkSession("s", space, session_settings={"limit": 1})
        last = await short.get_items()
        return [last, *[await session.get_items(limit) for limit in (None, 1, 100, 0)]]

    assert asyncio.run(main()) == [ITEMS[-1:], ITEMS[-2:], ITEMS[-1:], ITEMS, []]


def test_popping_takes_the_last_away(space: Memory) -> None:
    """One after the other, until there is none."""

    async def main() -> list[Any]:
        session = integration.BethinkSession("s", space)
        await session.add_items(ITEMS[:2])
        popped = [await session.pop_item() for _ in range(3)]
        await session.add_items(ITEMS[4:5])
        return [*popped, await session.get_items()]

    assert asyncio.run(main()) == [ITEMS[1], ITEMS[0], None, ITEMS[4:5]]


def test_clearing_takes_only_this_session_away(space: Memory) -> None:
    """From the conversation and from recall."""

    async def main() -> tuple[Any, Any]:
        one, other = (
            integration.BethinkSession("one", space),
            integration.BethinkSession("other", space),
        )
        await one.add_items([{"role": "user", "content": "My dog is called Biscuit"}])
        await other.add_items([{"role": "user", "content": "My cat is called Waffle"}])
        await one.clear_session()
        return await one.get_items(), await other.get_items()

    cleared, kept = asyncio.run(main())

    assert (cleared, len(kept)) == ([], 1)
    for question in ("what is my dog called?", "who is Biscuit?"):
        assert all("Biscuit" not in hit.text for hit in space.recall(question).hits)
    assert space.recall("what is my cat called?").hits


@each_row("name", [" s", "s ", "s\n", "S", "s\x00", "sha256:s", "x" * 1001, "\ud800"])
def test_sessions_never_become_one(space: Memory, name: str) -> None:
    """However alike their ids are."""

    async def main() -> tuple[Any, Any]:
        await integration.BethinkSession("s", space).add_items(ITEMS[:1])
        odd = integration.BethinkSession(name, space)
        before = await odd.get_items()
        await odd.add_items(ITEMS[4:5])
        return before, (
            await odd.get_items(),
            await integration.BethinkSession("s", space).get_items(),
        )

    assert asyncio.run(main()) == ([], (ITEMS[4:5], ITEMS[:1]))


def test_a_session_needs_an_id(space: Memory) -> None:
    """An empty one would be everybody's."""
    with pytest.raises(Refused):
        integration.BethinkSession("", space)


def test_memories_of_the_same_session_by_others_are_not_items(space: Memory) -> None:
    """A hook may capture under the same id; the conversation stays the agent's own."""
    space.remember("captured elsewhere", level="raw", session="s")

    async def main() -> Any:
        session = integration.BethinkSession("s", space)
        await session.add_items(ITEMS[:1])
        return await session.get_items()

    assert asyncio.run(main()) == ITEMS[:1]


def test_what_was_said_can_be_asked_for(space: Memory) -> None:
    """In other sessions, too; who said it is known, and a tool is trusted less than a user."""

    async def main() -> None:
        session = integration.BethinkSession("s", space)
        await session.add_items([{"role": "user", "content": "My dog is called Biscuit"}, *ITEMS])

    asyncio.run(main())
    dog = space.recall("what is my dog called?").hits[0].item
    weather = next(item for item in space.browse() if "21°C" in item.text)

    assert (dog.text, dog.speaker, dog.session) == ("My dog is called Biscuit", "user", "s")
    assert (weather.speaker, weather.source_class, weather.trust) == ("tool", "tool", 1)


def test_a_large_item_goes_into_several_memories_and_comes_back_as_one() -> None:
    """Nothing is cut; popped, it goes as a whole."""
    page = "".join(f"line {number}: the river rises, 水位 é\n" for number in range(9_000))
    large: list[Any] = [
        {"type": "function_call_output", "call_id": "c", "output": page},
        {"role": "user", "content": "and now?"},
    ]

    async def main(space: Memory) -> tuple[Any, Any, Any]:
        session = integration.BethinkSession("s", space)
        await session.add_items(large)
        got = await session.get_items()
        last = [await session.pop_item(), await session.pop_item()]
        return got, last, await session.get_items()

    with Memory.open(":memory:", embedder="none") as space:
        got, last, left = asyncio.run(main(space))
        remaining = space.browse()

    assert got == large
    assert last == large[::-1]
    assert left == []
    assert remaining == []


def test_too_large_is_refused_with_the_limit(space: Memory) -> None:
    """And nothing of the call is stored."""

    async def main() -> Any:
        session = integration.BethinkSession("s", space)
        with pytest.raises(TooLarge, match="the item"):
            await session.add_items([*ITEMS, {"role": "user", "content": "x" * MAX_TURN_BYTES}])
        return await session.get_items()

    assert asyncio.run(main()) == []


def test_secrets_are_taken_out_and_the_caller_is_told(space: Memory) -> None:
    """The mark is in the item that comes back; what is told knows the request it is of."""
    told: list[Redaction] = []
    request = ContextVar("request", default="")

    def tell(found: Redaction) -> None:
        assert request.get() == "the request"
        told.append(found)

    async def main() -> Any:
        request.set("the request")
        session = integration.BethinkSession("s", space, on_redaction=tell)
        await session.add_items([{"role": "user", "content": f"use {KEY} please"}])
        return await session.get_items()

    assert asyncio.run(main()) == [
        {"role": "user", "content": "use [redacted:aws-access-key] please"}
    ]
    assert told == [Redaction("session s", ("aws-access-key",))]


@pytest.mark.parametrize("item", ["text", {"role": "user", "content": NOW}, {"a": float("inf")}])
def test_what_is_no_json_is_refused(space: Memory, item: Any) -> None:
    """Rather than changed."""
    with pytest.raises(Refused):
        asyncio.run(integration.BethinkSession("s", space).add_items([item]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=30)
@given(items=st.lists(st.dictionaries(st.text(max_size=8), JSON, max_size=4), max_size=4))
def test_any_json_object_is_an_item(items: list[Any]) -> None:
    """As the SDK's own session in SQLite has it: the same comes back, in the same order."""

    async def main() -> tuple[Any, Any]:
        with Memory.open(":memory:", embedder="none") as memory:
            ours, theirs = integration.BethinkSession("s", memory), agents.SQLiteSession("s")
            await ours.add_items(items)
            await theirs.add_items(items)
            both = await ours.get_items(), await theirs.get_items()
            assert await ours.pop_item() == await theirs.pop_item()
            assert await ours.get_items(2) == await theirs.get_items(2)
            theirs.close()
            return both

    ours, theirs = asyncio.run(main())

    assert ours == theirs


def test_many_writers_keep_every_item_once_and_calls_together(tmp_path: Path) -> None:
    """From several memories on one file at once; what one call adds stays side by side."""
    path = tmp_path / "a.db"

    async def main() -> tuple[list[Any], list[Any]]:
        memories = [Memory.open(path=path, embedder="none") for _ in range(2)]
        sessions = [integration.BethinkSession("s", memory) for memory in memories]

        async def add(number: int) -> None:
            for turn in range(5):
                pair: list[Any] = [{"n": number, "turn": turn, "half": half} for half in (0, 1)]
                await sessions[number % 2].add_items(pair)

        await asyncio.gather(*(add(number) for number in range(4)))
        got = await sessions[0].get_items()
        popped = await asyncio.gather(*(sessions[at % 2].pop_item() for at in range(40)))
        for memory in memories:
            memory.close()
        return got, list(popped)

    got, popped = asyncio.run(main())

    assert len(got) == 40
    for first, second in zip(got[::2], got[1::2], strict=True):
        assert (first["n"], first["turn"]) == (second["n"], second["turn"])
        assert (first["half"], second["half"]) == (0, 1)
    assert sorted(map(str, popped)) == sorted(map(str, got))


def test_who_is_called_off_leaves_a_whole_change(space: Memory) -> None:
    """The item is there once the cancelled call has returned, not some time later."""

    async def main() -> Any:
        session = integration.BethinkSession("s", space)
        adding = asyncio.create_task(session.add_items(ITEMS[:1]))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        return await session.get_items()

    assert asyncio.run(main()) == ITEMS[:1]


def _says(text: str) -> openai.ResponseOutputMessage:
    part = openai.ResponseOutputText(text=text, type="output_text", annotations=[])
    return openai.ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[part]
    )


def test_an_agent_goes_on_where_it_was(space: Memory) -> None:
    """The runner of the SDK: a tool is called, and the next run sees all of it."""

    @agents.function_tool
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"It rains in {city}"

    call = openai.ResponseFunctionToolCall(
        id="fc", call_id="c1", name="weather", arguments='{"city": "Bergen"}', type="function_call"
    )
    thought = openai.ResponseReasoningItem(
        id="rs", type="reasoning", summary=[openai.Summary(text="look it up", type="summary_text")]
    )
    model = agents.ScriptedModel(
        [thought, call], [_says("It rains in Bergen.")], [_says("Bergen, as I said.")]
    )
    agent = agents.Agent(name="guide", model=model, tools=[weather])
    config = agents.RunConfig(tracing_disabled=True)

    async def main() -> list[str]:
        first = await agents.Runner.run(
            agent,
            "How is Bergen?",
            session=integration.BethinkSession("s", space),
            run_config=config,
        )
        again = await agents.Runner.run(
            agent,
            "Where does it rain?",
            session=integration.BethinkSession("s", space),
            run_config=config,
        )
        return [first.final_output, again.final_output]

    assert asyncio.run(main()) == ["It rains in Bergen.", "Bergen, as I said."]
    kinds = [item.get("type") or item.get("role") for item in model.inputs[-1]]
    assert kinds == [
        "user", "reasoning", "function_call", "function_call_output", "message", "user"
    ]  # fmt: skip
    assert space.recall("does it rain in Bergen?").hits
