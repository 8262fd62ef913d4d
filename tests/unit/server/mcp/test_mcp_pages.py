"""No answer is larger than its reader can take in, and what was left out can be had."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.errors import NotFound
from bethink.render.wire import dumps
from bethink.server.rest.operations import LINKS
from bethink.server.tools import TOOLS
from bethink.server.tools.answers import (
    MODEL_BUDGET_CHARS,
    PROGRAM_BUDGET_BYTES,
    count_fitting,
    text_cost,
)
from bethink.server.tools.tool import Call, Reply, validate_arguments
from bethink.testing import FixedClock
from corpus import NOW


@pytest.fixture
def memory() -> Iterator[Memory]:
    """By words alone: how much of an answer is shown is no matter of meaning."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        yield opened


LONG = "A long story about the deploy key, told at length. " * 60


def ask(memory: Memory, name: str, *, whole: bool = False, **told: Any) -> Reply:
    """A tool's answer as a model gets it or, ``whole``, as a program does."""
    tool = TOOLS.get(name, LINKS)
    call = Call(memory, validate_arguments(told, tool.input_schema), for_program=whole)
    reply = tool.run_untruncated(call) if whole else tool(call)
    Draft202012Validator(tool.output_schema).validate(reply.content)
    return reply


def revised(memory: Memory, times: int, text: str = "The key lives in vault {}") -> str:
    """A memory with so many revisions."""
    item = memory.remember(text.format(1), force=True).id
    for number in range(2, times + 1):
        memory.update(item, text=text.format(number), force=True)
    return item


def test_a_history_comes_from_its_end(memory: Memory) -> None:
    """The newest ten, oldest first; offset goes back, and the text says how."""
    item = revised(memory, 25)

    last = ask(memory, "history", id=item)
    before = ask(memory, "history", id=item, offset=10, limit=12)
    first = ask(memory, "history", id=item, offset=22)
    none = ask(memory, "history", id=item, offset=99)

    numbers = [[one["rev"] for one in page.content["revisions"]] for page in (last, before, first)]
    assert numbers == [list(range(16, 26)), list(range(4, 16)), [1, 2, 3]]
    assert [page.content["left_out"] for page in (last, before, first, none)] == [15, 3, 0, 0]
    assert "15 older entries not shown; get them with offset 10" in last.text
    assert "3 older entries not shown; get them with offset 22" in before.text
    assert "left out" not in first.text
    assert none.content["revisions"] == []


def test_a_history_of_long_texts_ends_early(memory: Memory) -> None:
    """A model is given less than a program, and neither without bounds."""
    item = revised(memory, 40, "{} " + "word " * 12_000)

    model = ask(memory, "history", id=item, limit=200)
    program = ask(memory, "history", id=item, limit=200, whole=True)

    assert len(model.content["revisions"]) == MODEL_BUDGET_CHARS // 2000
    assert len(model.text) < MODEL_BUDGET_CHARS * 1.1
    assert len(program.content["revisions"]) == PROGRAM_BUDGET_BYTES // 60_002
    for page in (model, program):
        assert page.content["revisions"][-1]["rev"] == 40
        assert page.content["left_out"] + len(page.content["revisions"]) == 40


def test_a_revision_above_the_ceiling_stays_hidden(memory: Memory) -> None:
    """What a memory said while it was secret is not told once it says something else."""
    item = memory.remember("The launch code is 0000", classification=3).id
    memory.update(item, text="There is a launch code", classification=1)

    told = ask(memory, "history", id=item)

    assert "0000" not in told.text + dumps(told.content)
    assert [one["rev"] for one in told.content["revisions"]] == [2]


def test_a_timeline_has_the_memory_in_its_middle(memory: Memory) -> None:
    """And says which it is, in a conversation and outside of one."""
    notes = [memory.remember(f"Note {number} of the day").id for number in range(5)]
    turns = [memory.remember(f"Turn {number}", session="talk").id for number in range(5)]

    for ids in (notes, turns):
        told = ask(memory, "timeline", id=ids[2], window=1)

        assert [one["id"] for one in told.content["memories"]] == ids[1:4]
        assert f"{ids[2]} |" in next(line for line in told.text.split("\n") if "this one" in line)


def test_a_timeline_is_cut_from_its_ends(memory: Memory) -> None:
    """What stands nearest to the memory stays."""
    ids = [memory.remember(f"{number} {LONG}", force=True).id for number in range(41)]

    told = ask(memory, "timeline", id=ids[20], window=50)
    program = ask(memory, "timeline", id=ids[20], window=50, whole=True)

    shown = [one["id"] for one in told.content["memories"]]
    assert shown == ids[10:30]
    assert told.content["left_out"] == 21
    assert "21 not shown; call timeline" in told.text
    assert len(program.content["memories"]) == 41


def test_a_thread_comes_from_its_end(memory: Memory) -> None:
    """With what its newest memories say; the list of threads gives counts, not everything."""
    ids = [memory.remember(f"Key {number} was rotated").id for number in range(45)]
    thread = memory.put_thread("Rotating keys", ids).id

    last = ask(memory, "threads", id=thread)
    before = ask(memory, "threads", id=thread, offset=20, limit=30)
    listed = ask(memory, "threads").content

    pages = [page.content["threads"][0] for page in (last, before)]
    assert [[one["item"] for one in page["members"]] for page in pages] == [ids[25:], ids[:25]]
    assert [page.content["left_out"] for page in (last, before)] == [25, 0]
    assert "25 older entries not shown; get them with offset 20" in last.text
    assert "Key 44 was rotated" in last.text
    assert (listed["more"], listed["threads"][0]["memories"]) == (False, 45)
    assert len(listed["threads"][0]["members"]) == 20


def test_more_threads_are_announced(memory: Memory) -> None:
    """So are more entities: a list that is cut says so."""
    for number in range(4):
        item = memory.remember(f"Somebody{number} asked", entities=[f"Somebody{number}"]).id
        memory.put_thread(f"Thread {number}", [item])

    for tool, under in (("threads", "threads"), ("list_entities", "entities")):
        some, last = ask(memory, tool, limit=3), ask(memory, tool, limit=3, offset=3)

        assert (len(some.content[under]), some.content["more"]) == (3, True)
        assert "There are more; get them with offset 3" in some.text
        assert (len(last.content[under]), last.content["more"]) == (1, False)
    with pytest.raises(NotFound) as caught:
        ask(memory, "threads", id="thread-nowhere")
    assert "to list them" in caught.value.remedy


def test_a_tree_of_insights_is_cut_from_below(memory: Memory) -> None:
    """And each of them can be asked for with what bears it out."""
    root = memory.remember("It all comes to keys", level="insight", kind="root").id
    leaves = []
    for number in range(30):
        fact = memory.remember(f"Fact {number}. {LONG}", force=True).id
        leaf = memory.remember(f"Leaf {number}. {LONG}", level="insight", kind="leaf", force=True)
        leaves.append(leaf.id)
        memory.link(leaf.id, "derives_from", fact)
        memory.link(root, "derives_from", leaf.id)

    tree = ask(memory, "insights")
    program = ask(memory, "insights", whole=True).content
    one = ask(memory, "insights", id=leaves[-1])

    assert tree.content["insights"][0]["id"] == root
    shown = tree.content["insights"][0]["below"]
    assert 5 < len(shown) < 25
    assert tree.content["left_out"] == 30 - len(shown)
    assert (
        f"{30 - len(shown)} lower ones not shown; get them with offset {len(shown) + 1}"
        in tree.text
    )
    assert len(dumps(tree.content)) < 2.5 * MODEL_BUDGET_CHARS
    assert (len(program["insights"][0]["below"]), program["left_out"]) == (30, 0)
    assert [branch["id"] for branch in one.content["insights"]] == [leaves[-1]]
    with pytest.raises(NotFound, match="is not an insight"):
        ask(memory, "insights", id=memory.remember("No insight at all").id)


def _ids(tree: list[dict[str, Any]]) -> list[str]:
    return [one for branch in tree for one in (branch["id"], *_ids(branch["below"]))]


def _from_page_to_page(memory: Memory, offset: int) -> list[str]:
    met: list[str] = []
    while True:
        page = ask(memory, "insights", offset=offset + len(met)).content
        met += _ids(page["insights"])
        if not page["left_out"]:
            return met
        assert page["insights"]


def test_every_insight_can_be_had(memory: Memory) -> None:
    """Whoever goes on from page to page meets each of them once, those higher up first."""
    of = {"level": "insight", "kind": "leaf", "force": True}
    leaves = [memory.remember(f"Leaf {number} {LONG}", **of).id for number in range(45)]
    tops = [memory.remember(f"Top {number}", **of).id for number in range(3)]
    for place, leaf in enumerate(leaves):
        memory.link(tops[place % 3], "derives_from", leaf)

    met = _from_page_to_page(memory, 0)

    assert sorted(met) == sorted(tops + leaves)
    for offset in (1, 2, 3, 7, 47):
        assert sorted(_from_page_to_page(memory, offset)) == sorted(_by_level(memory)[offset:])
    assert ask(memory, "insights", offset=99).content["insights"] == []


def _by_level(memory: Memory) -> list[str]:
    level, ids = ask(memory, "insights", whole=True).content["insights"], list[str]()
    while level:
        ids += [one["id"] for one in level]
        level = [below for one in level for below in one["below"]]
    return ids


def test_what_would_be_forgotten_is_only_glimpsed(memory: Memory) -> None:
    """Enough of each to be recognised, however many are named."""
    ids = [memory.remember(f"{number} {LONG}", force=True).id for number in range(50)]

    told = ask(memory, "forget", ids=ids)

    assert len(told.content["memories"]) == 50
    assert len(told.text) < 50 * 500
    assert all("more characters]" in one["text"] for one in told.content["memories"])


def test_links_come_in_pages(memory: Memory) -> None:
    """A memory may be linked to thousands."""
    hub = memory.remember("The hub of it all").id
    for number in range(5):
        memory.link(hub, "implies", memory.remember(f"Spoke {number}").id)

    first = ask(memory, "links", id=hub, limit=3, whole=True).content
    rest = ask(memory, "links", id=hub, limit=3, offset=3, whole=True).content

    assert (len(first["links"]), first["left_out"]) == (3, 2)
    assert (len(rest["links"]), rest["left_out"]) == (2, 0)


@pytest.mark.parametrize("whole", [True, False])
def test_one_always_fits(memory: Memory, *, whole: bool) -> None:
    """However large it is; and of none there is none."""
    call = Call(memory, {}, for_program=whole)

    assert count_fitting(call, [1 << 40, 1]) == 1
    assert count_fitting(call, []) == 0
    assert count_fitting(call, [1, 1 << 40, 1]) == 1
    assert text_cost(call, "ä" * 3000, "b") == (6001 if whole else 2001)
