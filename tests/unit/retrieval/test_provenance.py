"""Where a memory comes from."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import NotFound, Refused
from bethink.model import Link, Node
from bethink.retrieval.provenance import MAX_EDGES
from bethink.testing import FixedClock
from corpus import NOW


@pytest.fixture
def memory() -> Memory:
    return Memory.open(":memory:", embedder="none", clock=FixedClock(NOW))


def remember(memory: Memory, *texts: str, **about: object) -> list[str]:
    return [memory.remember(text, **about).id for text in texts]


def link(memory: Memory, src: str, kind: str, dst: str, dst_kind: str = "item") -> None:
    memory.store.graph.add_links(
        [Link(Node("item", src), Node(dst_kind, dst), kind, created_at=NOW)]
    )  # type: ignore[arg-type]


def told(memory: Memory, item_id: str, **how: object) -> list[tuple[int, str, str, bool]]:
    found = memory.why(item_id, **how)
    return [(edge.depth, edge.link.type, edge.link.dst.id, edge.again) for edge in found.edges]


def test_links_are_followed_outwards_nearest_first(memory: Memory) -> None:
    """To the depth that was asked for, and no further."""
    a, b, c, d = remember(memory, "alpha one", "bravo two", "charlie three", "delta four")
    link(memory, a, "derives_from", b)
    link(memory, b, "caused_by", c)
    link(memory, c, "references", d)

    assert told(memory, a) == [
        (1, "derives_from", b, False),
        (2, "caused_by", c, False),
        (3, "references", d, False),
    ]
    assert told(memory, a, depth=2) == told(memory, a)[:2]
    assert told(memory, a, types=("caused_by",)) == []
    assert told(memory, d) == []


def test_an_insight_that_was_made_anew_is_no_part_of_the_story(memory: Memory) -> None:
    """It may quote what somebody forgot; what a learning took up is told."""
    branch, leaf, member = remember(memory, "alpha one", "bravo two", "charlie three")
    link(memory, branch, "derives_from", leaf)
    link(memory, branch, "derives_from", member)
    for item, job in ((leaf, "insights"), (member, "consolidate")):
        how = f"{job}:run-6ftvfqj03mbdqmkm"
        memory.store.items.end([item], how=how, actor="maintain", now=memory.now)

    assert told(memory, branch) == [(1, "derives_from", member, False)]


def test_a_circle_ends(memory: Memory) -> None:
    """A memory that was met is named again, not followed again."""
    a, b = remember(memory, "alpha one", "bravo two")
    link(memory, a, "causes", b)
    link(memory, b, "causes", a)

    assert told(memory, a) == [(1, "causes", b, False), (2, "causes", a, True)]


def test_what_may_not_be_seen_is_left_out(memory: Memory) -> None:
    """Neither a secret nor what was forgotten, nor what lies behind them."""
    a, b = remember(memory, "alpha one", "bravo two")
    (secret,) = remember(memory, "charlie three", classification=3)
    (gone,) = remember(memory, "delta four")
    for other in (secret, gone):
        link(memory, a, "derives_from", other)
        link(memory, other, "derives_from", b)
    memory.forget(gone)

    assert told(memory, a) == []


def test_files_and_entities_are_ends_of_the_way(memory: Memory) -> None:
    """They have no text of their own."""
    (a,) = remember(memory, "alpha one")
    link(memory, a, "edits", "src/app.py", "file")

    (edge,) = memory.why(a).edges
    assert (edge.link.dst, edge.item) == (Node("file", "src/app.py"), None)


def test_a_large_answer_is_cut_and_says_so(memory: Memory) -> None:
    """Never more edges than anybody can read."""
    (a,) = remember(memory, "alpha one")
    links = [
        Link(Node("item", a), Node("file", f"f{n}"), "edits", created_at=NOW)
        for n in range(MAX_EDGES + 1)
    ]
    memory.store.graph.add_links(links)

    found = memory.why(a)
    assert (len(found.edges), found.cut) == (MAX_EDGES, True)


def test_bad_questions_are_refused(memory: Memory) -> None:
    """A depth out of range, a memory that is not there."""
    (a,) = remember(memory, "alpha one")

    for depth in (0, 17):
        with pytest.raises(Refused, match="depth"):
            memory.why(a, depth=depth)
    with pytest.raises(NotFound):
        memory.why("nobody")


def test_a_type_that_no_link_has_is_refused(memory: Memory) -> None:
    """By a sentence that names those there are; beyond entities any word may link."""
    item = memory.remember("The heron is back").id

    with pytest.raises(Refused, match="no type of link 'bogus'") as caught:
        memory.why(item, types=("derives_from", "bogus"))
    assert "derives_from, caused_by" in str(caught.value.remedy)
    assert memory.why(item, types=("mentions", "works_with")).edges == ()
