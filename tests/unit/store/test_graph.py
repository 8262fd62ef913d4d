"""Entities by name, links in both directions, and what happened when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock

import apsw
import pytest
from bare_store import EVERYTHING, START, add, empty_database, hydrate, within
from hypothesis import given
from hypothesis import strategies as st

from bethink.core.words import fold
from bethink.model import Entity, Link, Node
from bethink.ports import Mention, SearchResult
from bethink.store.sql import graph as relations
from bethink.store.sql import links as graph
from bethink.store.sql.connection import select
from bethink.store.sql.oplog.capture import SELECT_MERGES
from bethink.store.sql.oplog.part import Applying
from bethink.store.sql.search import searches as moments
from bethink.store.sql.search.lexical import SearchContext
from bethink.store.sql.search.searches import TimeWindow
from bethink.store.sql.state_cache import StateCache
from rows import each_row

NOW = START


def links_of(
    db: apsw.Connection, ids: Sequence[str], types: Sequence[str], *, incoming: bool
) -> list[Link]:
    """The links of nodes as a store with this one connection reads them."""
    connections = Mock(read_transaction=lambda: nullcontext(db))
    return relations.SqlGraph(connections, StateCache()).links_of(ids, types, incoming=incoming)


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    made = empty_database()
    yield made
    made.close()


def entity(name: str, kind: str = "person", *aliases: str) -> Entity:
    return Entity(f"{kind}:{fold(name)}", kind, name, aliases)


def add_mentions(db: apsw.Connection, item: str, mentions: Sequence[Mention]) -> None:
    writer = graph.MentionWriter(db, NOW)
    writer.add(item, 1, mentions)
    writer.finish()


def mention(db: apsw.Connection, item: str, *entities: Entity) -> None:
    add_mentions(db, item, [Mention(one) for one in entities])


def ids(found: SearchResult) -> list[str]:
    return [match.item.id for match in found.matches]


# Entities


@each_row(
    ("text", "found"),
    [
        ("Where is Anna?", ["Anna"]),
        ("anna's notes", ["Anna"]),
        ("ask ANNA, please", ["Anna"]),
        ("Anna/Bob decide", ["Anna", "Bob"]),
        ("the New York Times wrote", ["New York Times", "New York"]),
        ("in new  york", ["New York"]),
        ("we use parse_config and node.js.", ["parse_config", "node.js"]),
        ("edit src/a/b.py now", ["src/a/b.py"]),
        ("NYC is large", ["New York"]),
        ("会议和田中さん", ["田中"]),
        ("annabel and bobsled", []),
        ("", []),
    ],
)
def test_entities_are_found_by_name_or_alias(
    db: apsw.Connection, text: str, found: list[str]
) -> None:
    """Whole words, in any case, longest name first."""
    known = [
        *(entity("Anna"), entity("Bob"), entity("New York", "place", "NYC")),
        *(entity("New York Times", "org"), entity("parse_config", "function")),
        *(entity("node.js", "tool"), entity("src/a/b.py", "file"), entity("田中")),
    ]
    mention(db, "m1", *known)

    assert [one.name for one in graph.find_entities(db, (text,), 8)[0]] == found


def test_no_more_entities_than_asked_for(db: apsw.Connection) -> None:
    """The longest stay."""
    mention(db, "m1", entity("Al"), entity("Alexandra"), entity("Anna"))

    assert [one.name for one in graph.find_entities(db, ("Al Anna Alexandra",), 2)[0]] == [
        "Alexandra",
        "Anna",
    ]
    assert graph.find_entities(db, ("Al",), 0) == [[]]


@given(st.text(max_size=80))
def test_any_text_can_be_searched_for_names(text: str) -> None:
    """Whatever it holds; and a name is found in itself."""
    db = empty_database()
    clean = text.encode("utf-8", "ignore").decode().replace("\0", "")
    graph.find_entities(db, (clean,), 8)
    words = fold(clean).split()
    if 0 < len(words) <= 4:
        mention(db, "m1", entity(clean))

        assert [one.name for one in graph.find_entities(db, (clean,), 8)[0]] == [clean]


def test_an_entity_carries_all_that_is_known(db: apsw.Connection) -> None:
    """Names as first written, aliases in the form they are compared in."""
    mention(db, "m1", entity("New York", "place", "NYC", "Big  Apple"))
    mention(db, "m2", entity("NEW YORK", "place"))

    (found,) = graph.list_entities(db, "", 10, 0)

    assert found == Entity(
        "place:new york", "place", "New York", ("big apple", "nyc"), 2, last_seen_at=NOW
    )


def test_the_same_mention_again_counts_once(db: apsw.Connection) -> None:
    """Items are counted, not words; the surer judgement stays."""
    for confidence in (0.5, 0.9, 0.2):
        add_mentions(db, "m1", [Mention(entity("Anna"), confidence)])

    assert graph.list_entities(db, "", 10, 0)[0].mentions == 1
    assert [link.confidence for link in links_of(db, ["m1"], (), incoming=True)] == [0.9]


def test_entities_are_listed_by_mentions_a_page_at_a_time(db: apsw.Connection) -> None:
    """Ties by id; a prefix may be of any name."""
    mention(db, "m1", entity("Anna"), entity("Bob"), entity("Andrea", "person", "Bea"))
    mention(db, "m2", entity("Bob"))

    def names(prefix: str, limit: int = 10, offset: int = 0) -> list[str]:
        return [one.name for one in graph.list_entities(db, prefix, limit, offset)]

    assert names("") == ["Bob", "Andrea", "Anna"]
    assert names("", 1, 1) == ["Andrea"]
    assert names("AN") == ["Andrea", "Anna"]
    assert names("b") == ["Bob", "Andrea"]
    assert names("x") == []


# Links


def link(src: str, dst: str, kind: str = "follows", **fields: Any) -> Link:
    return Link(Node("item", src), Node("item", dst), kind, **fields)


def test_links_are_found_from_both_ends(db: apsw.Connection) -> None:
    """Each once, though both ends were asked for; types and direction narrow it."""
    relations.add_links(db, [link("a", "b"), link("b", "c", "similar_to"), link("x", "y")], NOW)

    def of(
        *asked: str, types: tuple[str, ...] = (), incoming: bool = True
    ) -> list[tuple[str, str]]:
        return [(one.src.id, one.dst.id) for one in links_of(db, asked, types, incoming=incoming)]

    assert of("b") == [("a", "b"), ("b", "c")]
    assert of("a", "b", "b") == [("a", "b"), ("b", "c")]
    assert of("b", incoming=False) == [("b", "c")]
    assert of("b", types=("similar_to",)) == [("b", "c")]
    assert of("b", types=("no such",)) == []
    assert of() == []


def test_a_link_comes_back_as_it_was(db: apsw.Connection) -> None:
    """With the time it was made, or the time it came in."""
    made = NOW - timedelta(days=3)
    given_link = Link(
        *(Node("item", "a"), Node("entity", "person:anna"), "about"),
        *(0.25, 0.5, "why not", "model"),
        created_at=made,
    )
    relations.add_links(db, [given_link, link("a", "b")], NOW)

    found = links_of(db, ["a"], (), incoming=False)

    assert found[0] == given_link
    assert found[1].created_at == NOW


def test_the_same_link_again_overwrites_its_weight(db: apsw.Connection) -> None:
    """But not when it was made."""
    relations.add_links(db, [link("a", "b", weight=0.1)], NOW)
    relations.add_links(db, [link("a", "b", weight=0.7)], NOW + timedelta(days=1))

    (found,) = links_of(db, ["a"], (), incoming=True)

    assert found.weight == 0.7
    assert found.created_at == NOW


# Searches


def test_items_are_found_by_the_share_of_entities_they_mention(db: apsw.Connection) -> None:
    """All of them first, ties by id; and the answer names them."""
    add(db, ["one", "two", "three", "four"])
    anna, bob = entity("Anna"), entity("Bob")
    mention(db, "m1", anna)
    mention(db, "m2", anna, bob)
    mention(db, "m3", bob)

    found = graph.search_entities(
        [anna.id, bob.id, anna.id], 10, SearchContext(db, EVERYTHING, hydrate)
    )

    assert [(m.item.id, m.score, m.why) for m in found.matches] == [
        ("m2", 1.0, "mentions Anna, Bob"),
        ("m1", 0.5, "mentions Anna"),
        ("m3", 0.5, "mentions Bob"),
    ]
    assert graph.search_entities([], 10, SearchContext(db, EVERYTHING, hydrate)).matches == ()
    assert (
        graph.search_entities(["person:nobody"], 10, SearchContext(db, EVERYTHING, hydrate)).matches
        == ()
    )


def test_entity_search_filters_before_it_cuts(db: apsw.Connection) -> None:
    """As many as asked for, as long as there are so many in scope."""
    add(db, [f"memory {n}" for n in range(60)])
    for n in range(1, 61):
        mention(db, f"m{n}", entity("Anna"))

    found = graph.search_entities(
        ["person:anna"], 5, SearchContext(db, within("i.rid > 50"), hydrate)
    )

    assert ids(found) == ["m51", "m52", "m53", "m54", "m55"]


def test_an_earlier_revision_is_found_by_its_own_entities(db: apsw.Connection) -> None:
    """Not by what only the live one mentions."""
    add(db, ["then"], entities='["person:anna"]', live_to=5)
    mention(db, "m1", entity("Anna"), entity("Bob"))
    past = EVERYTHING._replace(sql="1")

    assert ids(graph.search_entities(["person:anna"], 5, SearchContext(db, past, hydrate))) == [
        "m1"
    ]
    assert ids(graph.search_entities(["person:bob"], 5, SearchContext(db, past, hydrate))) == []


def moment(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def in_time(
    db: apsw.Connection, start: float, end: float, depth: int = 10, predicate: Any = EVERYTHING
) -> SearchResult:
    return moments.search_time(
        TimeWindow(moment(start), moment(end)), depth, SearchContext(db, predicate, hydrate)
    )


def test_the_middle_of_a_window_comes_first(db: apsw.Connection) -> None:
    """It scores 1, the edges half; the end is not in it."""
    add(db, [f"minute {n}" for n in range(1, 10)])

    found = in_time(db, 2, 6)

    assert ids(found) == ["m4", "m3", "m5", "m2"]
    assert [match.score for match in found.matches] == [1.0, 0.75, 0.75, 0.5]
    assert found.matches[0].why == "stored 2026-03-02"


def test_what_happened_counts_more_than_when_it_was_stored(db: apsw.Connection) -> None:
    """An old event told today is old."""
    long_ago = int(datetime(2020, 5, 1, 12, tzinfo=UTC).timestamp() * 1000)
    add(db, ["told today"], occurred_at=long_ago)
    start, end = datetime(2020, 5, 1, tzinfo=UTC), datetime(2020, 5, 2, tzinfo=UTC)

    assert ids(in_time(db, -60, 60)) == []
    assert ids(
        moments.search_time(TimeWindow(start, end), 5, SearchContext(db, EVERYTHING, hydrate))
    ) == ["m1"]


@given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=25),
    start=st.integers(-5, 45),
    length=st.integers(0, 40),
    depth=st.integers(0, 8),
)
def test_time_search_is_exact(times: list[int], start: int, length: int, depth: int) -> None:
    """The nearest to the middle in scope, ties by id, as if all had been sorted."""
    db = empty_database()
    base = int(START.timestamp() * 1000)
    for minute in times:
        add(db, ["x"], occurred_at=base + minute * 60_000)
    middle = start + length / 2
    expected = sorted(
        (abs(minute - middle), f"m{rid}")
        for rid, minute in enumerate(times, start=1)
        if start <= minute < start + length and rid % 3
    )

    found = in_time(db, start, start + length, depth, within("i.rid % 3 <> 0"))

    assert ids(found) == [identity for _, identity in expected[:depth]]


def test_a_window_without_end_is_searched_from_its_index(db: apsw.Connection) -> None:
    """No sort of everything in it: the plan walks the index from the middle."""
    seen: list[str] = []
    db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: seen.append(event["sql"] or ""))
    in_time(db, -(10**6), 10**6)
    db.trace_v2(0, None)
    sql = next(text for text in seen if "ORDER BY coalesce" in text)
    marks = sql.count("?")

    plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", [0] * marks)]

    assert any("item_occurred" in line for line in plan)
    assert not any("USE TEMP B-TREE FOR ORDER BY" in line for line in plan)


def test_merges_that_lead_back_to_each_other_end(db: apsw.Connection) -> None:
    """Damage, or an import, may merge two entities into each other: links of them still go."""
    ann, bea, sam = (Node("entity", f"person:{name}") for name in ("ann", "bea", "sam"))
    relations.add_links(db, [Link(ann, bea, "same_as"), Link(bea, ann, "same_as")], NOW)
    relations.add_links(db, [Link(bea, sam, "knows")], NOW)

    assert relations._remove_link(db, Link(ann, sam, "knows"), 3)
    assert links_of(db, [sam.id], ["knows"], incoming=True) == []
    Applying(db, {})._split(select(db, SELECT_MERGES))
    assert len(links_of(db, [ann.id], ["same_as"], incoming=True)) == 2
