"""Small memories can be tidied, and a run that does nothing says why."""

from __future__ import annotations

from typing import Any

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call, Reply, validate_arguments
from bethink.testing import FixedClock
from cold_memories import add_cold, add_others, open_memory
from corpus import NOW
from rows import each_row

pytestmark = pytest.mark.usefixtures("clock")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


def ask(memory: Memory, name: str, **arguments: Any) -> Reply:
    """Call a tool as the server does."""
    tool = TOOLS[name]
    return tool(Call(memory, validate_arguments(arguments, tool.input_schema)))


def test_a_few_memories_may_leave_a_small_store(clock: FixedClock) -> None:
    """Beside the share there is a floor: five memories, but never more than half."""
    limits = {}
    for count in (1, 2, 7, 36, 250, 1_000):
        with open_memory(clock) as memory:
            add_others(memory, count)
            limits[count] = memory.maintain("forget", preview=True).plan.limit

    assert limits == {1: 0, 2: 1, 7: 3, 36: 5, 250: 5, 1_000: 20}


def test_a_share_that_was_given_is_kept_to(clock: FixedClock) -> None:
    """The floor is for the default only."""
    with open_memory(clock) as memory:
        add_others(memory, 36)

        assert memory.maintain("forget", preview=True, share=0.01).plan.limit == 0
        assert memory.maintain("forget", preview=True, share=0.5).plan.limit == 18


def test_a_sweep_of_a_small_store_forgets_and_says_what_is_left(clock: FixedClock) -> None:
    """Some of the ripe memories go; the answer counts the others and names the limit."""
    with open_memory(clock) as memory:
        cold = add_cold(memory, clock, 31, importance=0.0)
        add_others(memory, 5)

        shown = ask(memory, "forget", sweep=True)
        done = ask(memory, "forget", sweep=True, token=shown.content["token"]).content

    assert len(shown.content["memories"]) == 5
    assert {entry["id"] for entry in done["memories"]} < set(cold)
    assert "26 more" in shown.text
    assert "at most 5 memories" in shown.text
    assert any("at most 5 memories" in reason for reason in shown.content["left"])


def test_a_sweep_that_may_not_forget_says_the_reason(clock: FixedClock) -> None:
    """ "Nothing is long unused" is said only where it is true."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 31, importance=0.0)
        add_others(memory, 5)
        refused = ask(memory, "forget", sweep=True, share=0.01)
    with open_memory(clock) as memory:
        add_others(memory, 5)
        empty = ask(memory, "forget", sweep=True)

    assert refused.content["token"] is None
    assert "31" in refused.text
    assert "larger share" in refused.text
    assert "no memory is long unused" not in refused.text
    assert "no memory is long unused" in empty.text
    assert empty.content["left"] == []


def test_consolidate_that_may_not_do_anything_says_the_reason(clock: FixedClock) -> None:
    """Over MCP as at the command line: what waits, and which limit holds it back."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 6)
        add_others(memory, 30)
        held = ask(memory, "consolidate", share=0.03)
        free = ask(memory, "consolidate")
    with open_memory(clock) as memory:
        add_others(memory, 5)
        idle = ask(memory, "consolidate")

    assert held.content["token"] is None
    assert "at most 1 memory" in held.text
    assert held.content["left"]
    assert free.content["token"]
    assert "no memory repeats another" in idle.text
    assert idle.content["left"] == []


def test_a_clock_that_jumped_is_the_reason(clock: FixedClock) -> None:
    """The caller is told that jobs by age wait."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 6, importance=0.0)

        text = ask(memory, "forget", sweep=True).text

    assert "ahead of the last write" in text


@pytest.mark.parametrize("surface", ["tool", "python"])
def test_the_minimum_age_can_be_given(clock: FixedClock, surface: str) -> None:
    """``min_age_days`` replaces the job's own: younger and older memories are taken."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 6)
        add_others(memory, 30)

        def steps(days: float) -> int:
            if surface == "tool":
                reply = ask(memory, "consolidate", min_age_days=days, share=0.5)
                return len(reply.content["proposals"])
            report = memory.maintain("consolidate", preview=True, min_age_days=days, share=0.5)
            return len(report.plan.steps)

        assert (steps(199), steps(201)) == (1, 0)


def test_a_sweep_leaves_younger_memories_alone(clock: FixedClock) -> None:
    """With ``min_age_days`` nothing that was stored later is forgotten."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 6, importance=0.0)
        add_others(memory, 30)

        old = ask(memory, "forget", sweep=True, min_age_days=199).content
        none = ask(memory, "forget", sweep=True, min_age_days=201).content

    assert old["memories"]
    assert none["memories"] == []


@each_row("days", [-1, float("nan"), float("inf"), "7", True])
def test_a_minimum_age_must_be_a_number_of_days(clock: FixedClock, days: Any) -> None:
    """Anything else is refused by name."""
    with open_memory(clock) as memory, pytest.raises(Refused, match="min_age_days"):
        memory.maintain("consolidate", min_age_days=days)


def test_a_scope_narrows_a_tool_as_filters_narrow_the_command(clock: FixedClock) -> None:
    """Only memories within the scope are consolidated or forgotten."""
    with open_memory(clock) as memory:
        add_cold(memory, clock, 4, topic="billing", importance=0.0)
        add_others(memory, 30)
        for tool, more in (("consolidate", {}), ("forget", {"sweep": True})):
            inside = ask(memory, tool, scope={"topic": "billing"}, **more).content
            outside = ask(memory, tool, scope={"topic": "travel"}, **more).content
            assert inside["token"], tool
            assert outside["token"] is None, tool
            assert outside["left"] == [], tool

        with pytest.raises(Refused, match="scope"):
            ask(memory, "consolidate", scope={"colour": "red"})
