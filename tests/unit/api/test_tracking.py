"""Use is recorded where the caller, the setting or the profile says so, in this order."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.access.policy import Principal, Right
from bethink.config.settings import Settings, load_settings
from bethink.core.once import count_once
from bethink.server.mcp.memory_loader import MemoryLoader
from bethink.server.tools import TOOLS
from bethink.server.tools.calls import ToolExecutor, ToolRequest
from bethink.server.tools.tool import Call
from rows import each_row

TRACKING = ("remind", "abmind", "linksee")
OTHERS = ("default", "siftcoder", "memind-simple")
QUESTION = "where is the deploy key?"


class OpenLoader(MemoryLoader):
    """Gives a memory that is open already."""

    def __init__(self, settings: Settings, opened: Memory) -> None:
        super().__init__(settings)
        self._opened = opened

    def memory(self, *, writing: bool = False) -> Memory:
        return self._opened


@pytest.fixture
def item(memory: Memory) -> str:
    return memory.remember("The deploy key lives in vault B", layer="context").id


def uses(memory: Memory, item: str) -> int:
    usage = memory.store.activity.usage([item], memory.now).get(item)
    return usage.recalls if usage else 0


@each_row("profile", [*TRACKING, *OTHERS])
def test_a_profile_decides_whether_use_is_recorded(memory: Memory, item: str, profile: str) -> None:
    """On where the page of the emulated system has it on; ``track=False`` turns it off."""
    assert memory.recall(QUESTION, profile=profile).hits
    by_default = uses(memory, item)
    memory.recall(QUESTION, profile=profile, track=False)
    off = uses(memory, item)
    memory.recall(QUESTION, profile=profile, track=True)

    assert by_default == (1 if profile in TRACKING else 0)
    assert (off - by_default, uses(memory, item) - off) == (0, 1)


@pytest.mark.parametrize("value", [True, False])
def test_a_setting_decides_before_the_profile(memory: Memory, item: str, value: bool) -> None:
    """``track`` in a settings file or the environment holds for every profile."""
    settings = load_settings(env={"BETHINK_TRACK": str(value).lower()}, overrides={})
    memory = memory.using(settings=settings)
    for profile in ("default", "remind"):
        memory.recall(QUESTION, profile=profile)

    assert uses(memory, item) == (2 if value else 0)


def test_explaining_and_comparing_record_nothing(memory: Memory, item: str) -> None:
    """Whatever the profile: they are no use of a memory."""
    memory.compare(QUESTION, [*TRACKING])
    memory.why_not(item, QUESTION, profile="remind")
    memory.explain(QUESTION, item, profile="remind")

    assert uses(memory, item) == 0


@pytest.mark.parametrize(
    ("arguments", "recorded"),
    [({}, 1), ({"mark_accessed": False}, 0), ({"mark_accessed": True}, 1)],
)
def test_a_tool_records_by_its_profile(
    memory: Memory, item: str, arguments: dict[str, bool], recorded: int
) -> None:
    """An agent may say that it is no use."""
    TOOLS["recall"](Call(memory, {"query": QUESTION, "profile": "remind", **arguments}))

    assert uses(memory, item) == recorded


@pytest.mark.parametrize(("right", "recorded"), [(Right.READ, 0), (Right.WRITE, 1)])
def test_who_may_only_read_writes_nothing(
    memory: Memory, item: str, right: Right, recorded: int
) -> None:
    """A read token changes nothing, whichever profile it names."""
    loader = OpenLoader(load_settings(env={}), memory)
    arguments = {"query": QUESTION, "profile": "remind"}
    principal = Principal("token", right)

    ToolExecutor(loader)(ToolRequest(TOOLS["recall"], arguments, principal))

    assert uses(memory, item) == recorded


def test_a_recall_is_counted_once_for_all_with_its_id(memory: Memory, item: str) -> None:
    """One that is repeated because its answer was lost; decay and counters as well."""
    for request in ("a", "b", "a", "a", "b"):
        with count_once(request):
            memory.recall(QUESTION, profile="remind")

    assert uses(memory, item) == 2


def test_the_default_of_the_setting_is_the_profile() -> None:
    """Not set explicitly, it decides nothing."""
    assert Settings().explicit("track") is None
