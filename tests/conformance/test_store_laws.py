"""The laws every store keeps. A new store is one line in STORES."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink.core.words import fingerprint
from bethink.errors import BadText, Conflict, NotFound, Refused, StoreError
from bethink.model import Item, Link, Node
from bethink.ports import Embedding, Record, Scope, SearchResult, Store, TextSearch, TrigramSearch
from bethink.ports.values import erased_mark
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from records import (
    MODEL,
    NOW,
    at,
    embedding,
    item,
    items,
    mention,
    record,
    scope,
    texts,
)
from rows import each_row
from thorough import examples


class Kind(NamedTuple):
    """A kind of store: how to open one in a folder, and whether it outlives that."""

    name: str
    open: Callable[[Path], Store]
    lasting: bool


STORES = [
    Kind("sqlite", lambda folder: SqliteStore.open(folder / "space.db", space="laws"), True),
    Kind("sqlite-memory", lambda _: SqliteStore.open(None, space="laws"), False),
    Kind("postgres", open_space, True),
]

pytestmark = pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.name)


@pytest.fixture
def store(kind: Kind, tmp_path: Path) -> Iterator[Store]:
    opened = kind.open(tmp_path)
    yield opened
    opened.close()


def put(store: Store, *records: Record, after: float = 0) -> list[str]:
    kept = store.items.put(records, actor="tester", now=at(seconds=after))
    return [one.outcome for one in kept]


def ids(found: SearchResult | list[Item]) -> list[str]:
    return (
        [match.item.id for match in found.matches]
        if isinstance(found, SearchResult)
        else [one.id for one in found]
    )


# What goes in comes out


PUT_BY_THE_STORE = {"live_from", "content_hash"}


@settings(
    max_examples=examples(20, 60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(given_item=items())
def test_every_field_comes_back_as_it_was(store: Store, given_item: Item) -> None:
    """Whatever text, number, time or JSON it holds."""
    fresh = given_item._replace(id=f"item-{store.admin.generation()}")
    put(store, Record(fresh, "print", skip_duplicate=False))

    back = store.items.get([fresh.id])[fresh.id]

    numbered = fresh.session is not None and fresh.seq is None
    for name in Item._fields:
        if name not in PUT_BY_THE_STORE and not (name == "seq" and numbered):
            assert getattr(back, name) == getattr(fresh, name), name
    assert back.live_from == NOW
    assert len(back.content_hash) == 64


def test_a_turn_without_a_number_comes_last(store: Store) -> None:
    """The store numbers it, in the transaction that stores it."""
    put(store, record("first", session="s"), record("tenth", session="s", seq=10))
    put(store, record("next", session="s"), record("elsewhere", session="x"), record("loose"))

    found = store.items.get(["first", "tenth", "next", "elsewhere", "loose"])

    assert [item.seq for item in found.values()] == [0, 10, 11, 0, None]


def test_a_turn_that_comes_late_is_put_in_its_place(store: Store) -> None:
    """Each turn follows the one before it, whenever it was stored."""
    put(store, *(record(f"t{n}", session="s", seq=n) for n in (0, 4, 6)))
    put(store, *(record(f"t{n}", session="s", seq=n) for n in (3, 2)))

    links = store.graph.links_of([f"t{n}" for n in range(7)], ("follows",), incoming=False)

    assert {(link.src.id, link.dst.id) for link in links} == {
        ("t2", "t0"),
        ("t3", "t2"),
        ("t4", "t3"),
        ("t6", "t4"),
    }
    pairs = store.graph.follows(["t3", "t6", "nobody", "t3"])
    assert sorted(pairs) == [("t3", "t2"), ("t4", "t3"), ("t6", "t4")]
    assert store.graph.follows(["t3"], as_of=at(days=-1)) == []


def test_get_keeps_the_order_and_leaves_unknown_ids_out(store: Store) -> None:
    """A caller can zip what it asked for with what it got."""
    put(store, record("a"), record("b"), record("c"))

    assert list(store.items.get(["c", "nobody", "a", "c"])) == ["c", "a"]


def test_an_empty_store_answers_everything_with_nothing(store: Store) -> None:
    """No search needs a first memory."""
    every = scope()

    assert store.admin.count() == 0
    assert store.items.get(["a"]) == {}
    assert store.items.browse(every, limit=5) == []
    assert store.search.text(TextSearch("anything"), every).matches == ()
    assert store.search.substring("anything", 5, every).matches == ()
    assert store.search.pieces(TrigramSearch("anything", 5), every).matches == ()
    assert store.search.signature("anything", 5, 0.0, every).matches == ()
    assert store.graph.edges(["person:ana"], 5, NOW) == {"person:ana": []}
    assert store.search.vector(embedding(1).vector, MODEL, 5, every).matches == ()
    assert store.search.time(at(days=-9), at(days=9), 5, every).matches == ()
    assert store.search.entities(["person:ana"], 5, every).matches == ()
    assert store.search.in_scope(["a"], every) == []
    assert store.graph.follows(["a"]) == []
    assert store.graph.find_entities(("Ana",)) == [[]]
    assert store.graph.entities() == []
    assert store.admin.events() == []
    assert store.items.resolve("a") == []
    assert store.items.find_keys(("k",)).get("k") is None


@settings(
    max_examples=examples(20, 60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(query=texts | st.text(max_size=20))
def test_any_text_is_a_valid_query(store: Store, query: str) -> None:
    """Operators, quotes, emoji, half characters: all of it is words or nothing."""
    if store.admin.count() == 0:
        put(store, record("a", "NEAR the AND gate of \"quotes\" 'single' col:umn café"))

    assert len(store.search.text(TextSearch(query), scope()).matches) <= 1
    assert len(store.search.substring(query, 5, scope()).matches) <= 1
    assert len(store.search.pieces(TrigramSearch(query, 5), scope()).matches) <= 1
    assert len(store.search.signature(query, 5, 0.0, scope()).matches) <= 1


def test_nothing_is_stored_when_one_record_is_refused(store: Store) -> None:
    """A batch is one transaction."""
    with pytest.raises(Refused):
        put(store, record("a"), record("b", trust=9))

    assert store.admin.count() == 0
    assert store.admin.events() == []


def test_half_a_character_is_refused_by_name(store: Store) -> None:
    """A lone surrogate cannot be stored by anybody."""
    with pytest.raises(BadText):
        put(store, record("a", "broken \ud800 text", fingerprint="x"))

    assert store.admin.count() == 0


def test_a_time_without_a_zone_is_refused(store: Store) -> None:
    """It could mean twenty-four different moments."""
    with pytest.raises(Refused, match="time zone"):
        put(store, record("a", stored_at=NOW.replace(tzinfo=None)))


# Revisions


def test_an_update_adds_a_revision_and_keeps_the_old_one(store: Store) -> None:
    """Now it says the new thing; then it said the old one."""
    put(store, record("a", "the key is in vault A"))
    put(store, record("a", "the key is in vault B", rev=2), after=60)

    old, new = store.items.history("a")
    assert (old.text, old.live_from, old.live_to) == ("the key is in vault A", NOW, at(seconds=60))
    assert old.ended_by == "revised"
    assert (new.text, new.rev, new.live_to) == ("the key is in vault B", 2, None)
    assert store.items.get(["a"])["a"] == new
    assert store.admin.count() == 1


@each_row(
    ("seconds", "seen"), [(-1, []), (0, [1]), (59.999, [1]), (60, [2]), (100, []), (200, [3])]
)
def test_as_of_shows_what_was_live_at_that_moment(
    store: Store, seconds: float, seen: list[int]
) -> None:
    """From the moment a revision was written up to, not including, the one it ended."""
    put(store, record("a", "alpha words", embedding=embedding(1), mentions=(mention("Ana"),)))
    put(store, record("a", "alpha terms", rev=2, embedding=embedding(1)), after=60)
    store.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=100))
    store.items.restore(["a"], actor="tester", now=at(seconds=200))
    then = at(seconds=seconds)
    past = scope(as_of=then)

    stood = store.items.get(["a"], as_of=then).values()
    assert [one.rev for one in stood if one.live_to is None or one.live_to > then] == seen
    assert [one.rev for one in store.items.browse(past, limit=5)] == seen
    found = store.search.text(TextSearch("alpha"), past)
    assert [match.item.rev for match in found.matches] == seen
    found = store.search.substring("alph", 5, past)
    assert [match.item.rev for match in found.matches] == seen
    found = store.search.vector(embedding(1).vector, MODEL, 5, past)
    assert [match.item.rev for match in found.matches] == seen
    found = store.search.time(at(days=-1), at(days=1), 5, past)
    assert [match.item.rev for match in found.matches] == seen
    by_name = scope(as_of=then, entities=("Ana",))
    speaking_of_ana = [rev for rev in seen if rev == 1]
    assert [one.rev for one in store.items.browse(by_name, limit=5)] == speaking_of_ana
    found = store.search.entities(["person:ana"], 5, past)
    assert [match.item.rev for match in found.matches] == speaking_of_ana


@each_row("rev", [1, 2, 4])
def test_a_stale_revision_is_a_conflict(store: Store, rev: int) -> None:
    """Who read revision 2 may only write revision 3."""
    put(store, record("a"))
    put(store, record("a", "second", rev=2))

    with pytest.raises(Conflict):
        put(store, record("a", "third", rev=rev))
    assert store.items.get(["a"])["a"].text == "second"


def test_a_first_revision_is_not_a_second(store: Store) -> None:
    """An update of nothing is a conflict, and so is one of something forgotten."""
    with pytest.raises(Conflict):
        put(store, record("a", rev=2))
    put(store, record("a"))
    store.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=1))
    with pytest.raises(Conflict):
        put(store, record("a", "second", rev=2))


def test_a_clock_that_goes_back_does_not_mix_revisions_up(store: Store) -> None:
    """No moment ever shows two revisions of one memory."""
    put(store, record("a", "first"), after=100)
    put(store, record("a", "second", rev=2), after=0)

    first, second = store.items.history("a")
    assert first.live_to == second.live_from == at(seconds=100)
    assert store.items.get(["a"])["a"].text == "second"


def test_several_revisions_of_one_memory_may_come_in_one_batch(store: Store) -> None:
    """Records see those before them."""
    put(store, record("a", "first"), record("a", "second", rev=2), record("b", "first"))

    assert [one.text for one in store.items.history("a")] == ["first", "second"]
    assert store.admin.count() == 2


# Duplicates and keys


def test_the_same_words_are_kept_once(store: Store) -> None:
    """In one batch or in two; at another level it is another thing."""
    assert put(store, record("a", "same words"), record("b", "same words")) == [
        "stored",
        "duplicate",
    ]
    kept = store.items.put([record("c", "same words")], actor="tester", now=NOW)
    assert kept[0] == ("a", "duplicate")
    assert put(store, record("d", "same words", level="raw")) == ["stored"]
    assert put(store, record("e", "same words", skip_duplicate=False)) == ["stored"]
    assert store.admin.count() == 3


def test_what_was_forgotten_or_changed_is_no_duplicate(store: Store) -> None:
    """Only live words count."""
    put(store, record("a", "alpha"), record("b", "beta"))
    store.items.end(["a"], how="forgotten", actor="tester", now=NOW)
    put(store, record("b", "gamma", rev=2))

    assert put(store, record("c", "alpha"), record("d", "beta")) == ["stored", "stored"]


def test_near_duplicates_share_a_band(store: Store) -> None:
    """The same fingerprint first, then by the number of shared bands."""
    put(
        store,
        record("a", "one", sketch=(1, 2, 3)),
        record("b", "two", sketch=(3, 4, 5)),
        record("c", "three", sketch=(7, 8)),
        record("d", "four", fingerprint="same", sketch=(9,)),
    )

    assert ids(store.items.find_duplicates([("same", (1, 2, 3))], scope())[0]) == ["d", "a", "b"]
    assert ids(store.items.find_duplicates([("same", (1, 2, 3))], scope(ids=("b",)))[0]) == ["b"]
    store.items.end(["a"], how="forgotten", actor="tester", now=NOW)
    assert ids(store.items.find_duplicates([("none", (1, 2))], scope())[0]) == []


def test_a_key_makes_a_retry_harmless(store: Store) -> None:
    """The same key and words again store nothing; other words are a conflict."""
    first = record("a", "alpha", key="k1")

    assert put(store, first) == ["stored"]
    assert store.items.put([record("b", "alpha", key="k1")], actor="x", now=NOW)[0] == (
        "a",
        "repeated",
    )
    assert store.items.find_keys(("k1",)).get("k1") == ("a", first.fingerprint)
    with pytest.raises(Conflict, match="k1"):
        put(store, record("c", "beta", key="k1"))
    assert store.admin.count() == 1


def test_a_key_given_to_a_duplicate_stands_for_the_one_that_was_kept(store: Store) -> None:
    """So that its retry is answered alike."""
    put(store, record("a", "alpha"))

    assert put(store, record("b", "alpha", key="k")) == ["duplicate"]
    assert store.items.put([record("c", "alpha", key="k")], actor="x", now=NOW)[0] == (
        "a",
        "repeated",
    )


# Ending and coming back


def test_forgetting_hides_but_keeps(store: Store) -> None:
    """Gone from every search, there in the history."""
    put(store, record("a", "alpha", mentions=(mention("Ana"),)), record("b", "beta"))

    assert store.items.end(["a", "a", "nobody"], how="boring", actor="tester", now=at(hours=1)) == [
        "a"
    ]
    assert store.items.end(["a"], how="again", actor="tester", now=at(hours=2)) == []
    assert store.admin.count() == 1
    assert ids(store.items.browse(scope(), limit=9)) == ["b"]
    assert store.search.text(TextSearch("alpha"), scope()).matches == ()
    assert store.search.entities(["person:ana"], 5, scope()).matches == ()
    gone = store.items.get(["a"])["a"]
    assert (gone.live_to, gone.ended_by) == (at(hours=1), "boring")
    assert [entity.mentions for entity in store.graph.entities()] == [0]


def test_restoring_adds_a_revision_like_the_last(store: Store) -> None:
    """History stays true: it was away in between."""
    put(
        store,
        record(
            "a", "alpha", embedding=embedding(3, b"tok"), sketch=(5,), mentions=(mention("Ana"),)
        ),
    )
    store.items.end(["a"], how="forgotten", actor="tester", now=at(hours=1))

    assert store.items.restore(["a", "a", "nobody"], actor="tester", now=at(hours=2)) == ["a"]
    assert store.items.restore(["a"], actor="tester", now=at(hours=3)) == []
    first, second = store.items.history("a")
    assert (first.live_to, first.ended_by) == (at(hours=1), "forgotten")
    assert (second.rev, second.live_from, second.live_to) == (2, at(hours=2), None)
    assert (second.text, second.entities) == ("alpha", ("person:ana",))
    assert ids(store.search.text(TextSearch("alpha"), scope())) == ["a"]
    assert ids(store.search.vector(embedding(3).vector, MODEL, 5, scope())) == ["a"]
    assert store.vectors.embeddings(["a"], MODEL)["a"].tokens == b"tok"
    assert ids(store.items.find_duplicates([("", (5,))], scope())[0]) == ["a"]
    assert ids(store.search.entities(["person:ana"], 5, scope())) == ["a"]
    assert [entity.mentions for entity in store.graph.entities()] == [1]
    assert put(store, record("a", "beta", rev=3)) == ["stored"]


def test_only_the_revision_that_was_seen_is_ended_or_judged(store: Store) -> None:
    """Who names revisions leaves alone what has changed since, and strangers."""
    put(store, record("a"), record("b"), record("c"))
    put(store, record("b", "changed", rev=2))
    seen = {"a": 1, "b": 1}

    store.items.set_status(["a", "b", "c"], "superseded", actor="x", now=NOW, only=seen)
    judged = [store.items.get([one])[one].status for one in "abc"]
    ended = store.items.end(["a", "b", "c", "d"], how="test", actor="x", now=NOW, only=seen)

    assert judged == ["superseded", "active", "active"]
    assert ended == ["a"]


def test_a_forgotten_item_can_be_judged(store: Store) -> None:
    """It comes back as it was judged, so that a restore brings nothing quarantined back."""
    put(store, record("a"))
    store.items.end(["a"], how="test", actor="x", now=NOW)
    store.items.set_status(["a"], "quarantined", actor="x", now=NOW)
    store.items.restore(["a"], actor="x", now=NOW)

    assert store.items.get(["a"])["a"].status == "quarantined"
    assert ids(store.items.browse(scope(), limit=9)) == []


def test_all_of_a_source_is_found(store: Store) -> None:
    """Forgotten, quarantined and superseded ones too, by id."""
    put(store, record("b", source="page"), record("a", source="page"), record("c"))
    put(store, record("d", source="page"), record("e", source="pages"))
    store.items.end(["a"], how="test", actor="x", now=NOW)
    store.items.set_status(["b"], "quarantined", actor="x", now=NOW)

    assert store.items.from_source("page") == ["a", "b", "d"]
    assert store.items.from_source("nowhere") == []


def test_all_that_a_person_stored_is_found(store: Store) -> None:
    """By whatever program, forgotten ones too; neither what another changed nor what is erased."""
    for name, actor in (("b", "http:p1"), ("a", "mcp:p1"), ("c", "http:p2"), ("d", "p1")):
        store.items.put([record(name)], actor=actor, now=NOW)
    store.items.put([record("e", source="http:p1")], actor="http:p1", now=NOW)
    store.items.end(["a", "c"], how="test", actor="http:p1", now=NOW)
    store.items.erase(["e"], actor="x", now=NOW)

    assert store.admin.stored_by("p1") == ["a", "b"]
    assert store.admin.stored_by("p3") == []


def test_an_erase_takes_along_what_it_told_of_entities(store: Store) -> None:
    """Edges that came from the erased one; those of others stay."""
    both = (mention("Ana"), mention("Ben"))
    put(store, record("a", mentions=both), record("b"))
    ana, ben = Node("entity", "person:ana"), Node("entity", "person:ben")
    put(store, record("c", mentions=both))
    told = [Link(ana, ben, "works_with", context="a"), Link(ben, ana, "knows", context="c")]
    store.graph.add_links(told, now=NOW)

    store.items.erase(["a"], actor="x", now=NOW)

    left = store.graph.links_of(["person:ana"], ("works_with", "knows"))
    assert [link.type for link in left] == ["knows"]


def test_status_decides_about_recall(store: Store) -> None:
    """Superseded is for those who ask; quarantined is for nobody."""
    put(store, record("a"), record("b"), record("c"))
    store.items.set_status(["a"], "superseded", actor="tester", now=NOW)
    store.items.set_status(["b"], "quarantined", actor="tester", now=NOW)

    assert ids(store.items.browse(scope(), limit=9)) == ["c"]
    assert sorted(ids(store.items.browse(scope(include_superseded=True), limit=9))) == ["a", "c"]
    store.items.set_status(["a", "b"], "active", actor="tester", now=NOW)
    assert len(store.items.browse(scope(), limit=9)) == 3


def test_entities_are_as_old_as_their_memories_whatever_the_clock_says(store: Store) -> None:
    """A change begins no earlier than what it changes, and so does what it speaks of."""
    told = record("a", "Ana", mentions=(mention("Ana"),))
    put(store, told, after=100)
    both = (mention("Ana"), mention("Ben"))
    put(store, record("a", "Ana and Ben", rev=2, mentions=both), after=40)

    assert [one.detail for one in store.admin.check() if not one.ok] == []
    seen = {one.id: one.last_seen_at for one in store.graph.entities()}
    assert seen == {"person:ana": at(seconds=100), "person:ben": at(seconds=100)}


def test_use_is_counted_apart_from_content(store: Store) -> None:
    """How often, when last; unknown ids are ignored; the content's hash stays."""
    put(store, record("a"), record("b"))
    before = store.items.get(["a"])["a"]
    for hour in range(25):
        store.activity.note_use(["a", "nobody"], at(hours=hour))

    after = store.items.get(["a"])["a"]
    assert (after.recalls, after.last_recalled_at) == (25, at(hours=24))
    assert after.content_hash == before.content_hash
    assert store.items.get(["b"])["b"].recalls == 0
    usage = next(line for line in store.admin.dump() if line["type"] == "usage")
    assert len(usage["stamps"]) == 20
    days = [line["recalls"] for line in store.admin.dump() if line["type"] == "usage_day"]
    assert sum(days) == 25
    assert len(days) == 2


# Looking around


def test_browsing_is_newest_first_and_pages_join(store: Store) -> None:
    """Page after page gives each item once, in one order."""
    put(store, *(record(f"i{n:02d}", stored_at=at(hours=n // 3)) for n in range(20)))

    pages: list[str] = []
    while page := store.items.browse(scope(), limit=6, after=pages[-1] if pages else None):
        pages += ids(page)
    assert pages == [f"i{n:02d}" for n in reversed(range(20))]
    with pytest.raises(NotFound):
        store.items.browse(scope(), limit=6, after="nobody")
    for offset in (0, 1, 7, 19, 20, 500):
        assert ids(store.items.browse(scope(), limit=6, offset=offset)) == pages[offset:][:6]
        further = store.items.browse(scope(), limit=6, after=pages[4], offset=offset)
        assert ids(further) == pages[5 + offset :][:6]


def test_around_a_turn_is_its_conversation(store: Store) -> None:
    """Before and after by their place in the session, the scope's items only."""
    turns = [
        record(f"t{n}", session="s", seq=n, speaker="Ana" if n % 2 else "Ben") for n in range(9)
    ]
    put(store, *turns, record("other", session="x", seq=4), record("loose"))

    assert ids(store.items.around("t4", window=2, scope=scope())) == ["t2", "t3", "t5", "t6"]
    ana = scope(speakers=("Ana",))
    assert ids(store.items.around("t4", window=2, scope=ana)) == ["t1", "t3", "t5", "t7"]
    assert ids(store.items.around("t0", window=1, scope=scope())) == ["t1"]


def test_around_a_note_is_what_was_stored_near_it(store: Store) -> None:
    """Outside a conversation the time of storing decides."""
    put(store, *(record(f"n{n}", stored_at=at(minutes=n)) for n in range(7)))

    assert ids(store.items.around("n3", window=2, scope=scope())) == ["n1", "n2", "n4", "n5"]
    with pytest.raises(NotFound):
        store.items.around("nobody", window=2, scope=scope())


def test_ids_are_found_by_their_ends(store: Store) -> None:
    """A whole id means itself alone; wildcards mean nothing."""
    put(store, record("abc-1"), record("abc-12"), record("xyz-12"), record("a%c-9"))

    assert store.items.resolve("abc-1") == ["abc-1"]
    assert store.items.resolve("abc") == ["abc-1", "abc-12"]
    assert store.items.resolve("-12") == ["abc-12", "xyz-12"]
    assert store.items.resolve("%") == []
    assert store.items.resolve("") == []


# Searches under a scope


SEARCHES: dict[str, Callable[[Store, int, Scope], SearchResult]] = {
    "text": lambda store, depth, where: store.search.text(TextSearch("common", depth), where),
    "substring": lambda store, depth, where: store.search.substring("commo", depth, where),
    "vector": lambda store, depth, where: store.search.vector(
        embedding(0).vector, MODEL, depth, where
    ),
    "time": lambda store, depth, where: store.search.time(
        at(days=-400), at(days=400), depth, where
    ),
    "entities": lambda store, depth, where: store.search.entities(["topic:all"], depth, where),
    "pieces": lambda store, depth, where: store.search.pieces(TrigramSearch("commo", depth), where),
    "signature": lambda store, depth, where: store.search.signature("common", depth, 0.0, where),
}


Filled = Callable[[Kind, Callable[[Store], object]], Store]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Stores for tests that only read: each kind is filled once in each way."""
    with ExitStack() as opened:

        @cache
        def fill(kind: Kind, how: Callable[[Store], object]) -> Store:
            store = kind.open(tmp_path_factory.mktemp("filled"))
            opened.callback(store.close)
            how(store)
            return store

        yield fill


@pytest.fixture
def crowd(kind: Kind, filled: Filled) -> Store:
    """Two hundred items of which few pass any one filter; to be read only."""
    return filled(kind, _put_crowd)


def _put_crowd(store: Store) -> None:
    put(
        store,
        *(
            record(
                f"i{n:03d}",
                f"common words and number {n}",
                kind="rare" if n % 50 == 7 else "note",
                tags=("x", "y") if n % 40 == 3 else ("x",),
                classification=3 if n % 10 == 0 else 1,
                trust=3 if n % 60 == 1 else 1,
                occurred_at=at(days=-n),
                embedding=embedding(n),
                mentions=(
                    mention("all", "topic"),
                    *((mention("Ana Lee", "person", "Annie"),) if n % 45 == 2 else ()),
                ),
            )
            for n in range(200)
        ),
    )


FILTERS = {
    "kind": {"kinds": ("rare",)},
    "tags": {"tags": ("y", "x")},
    "trust": {"min_trust": 3},
    "time": {"since": at(days=-12), "until": at(days=-8)},
    "entity by name": {"entities": ("Ana Lee",)},
    "entity by another case": {"entities": ("ANA LEE",)},
    "entity by alias": {"entities": ("annie",)},
    "entity by id": {"entities": ("person:ana lee",)},
    "ids": {"ids": ("i005", "i010", "nobody")},
    "several": {"kinds": ("rare",), "since": at(days=-60)},
}


@each_row("search", SEARCHES)
@each_row("name", FILTERS)
def test_a_filter_comes_before_every_cut(crowd: Store, search: str, name: str) -> None:
    """Each search finds all that pass, however deep they would rank without."""
    where = scope(**FILTERS[name])
    expected = {one.id for one in crowd.items.browse(where, limit=500)}

    assert expected
    assert set(ids(SEARCHES[search](crowd, 20, where))) == expected


@each_row("name", FILTERS)
def test_items_in_scope_are_those_that_browsing_shows(crowd: Store, name: str) -> None:
    """Ids outside the scope, and unknown ones, are left out."""
    where = scope(**FILTERS[name])
    expected = sorted(crowd.items.browse(where, limit=500), key=lambda item: item.id)

    found = crowd.search.in_scope(["nobody", *(f"i{n:03d}" for n in range(200))], where)

    assert sorted(found, key=lambda item: item.id) == expected
    assert crowd.search.in_scope([], where) == []


def _put_days(store: Store) -> None:
    _put_crowd(store)
    put(
        store,
        record("old", kind="rare", occurred_at=datetime(1969, 12, 31, 23, 59, tzinfo=UTC)),
        record("older", session="s", occurred_at=datetime(1931, 1, 1, tzinfo=UTC)),
        *(record(f"turn {n}", session=f"s{n % 3}", occurred_at=at(days=-n)) for n in range(9)),
        after=60,
    )
    store.items.end(["i007", "turn 8"], how="forgotten", actor="tester", now=at(hours=2))


@each_row("name", ["nothing", *FILTERS])
def test_days_and_conversations_are_those_of_what_browsing_shows(
    kind: Kind, filled: Filled, name: str
) -> None:
    """Counts by day and kind, and spans of conversations: filters, ceiling and moment hold."""
    days_told = filled(kind, _put_days)
    filters = FILTERS.get(name, {})
    for view, where in (
        (days_told, scope(**filters)),
        (days_told.below(2), scope(**filters)),
        (days_told, scope(as_of=at(hours=1), **filters)),
        (days_told, scope(as_of=at(seconds=30), **filters)),
    ):
        shown = view.items.browse(where, limit=500)
        days = Counter((one.when.date(), one.kind) for one in shown)
        spans = {one.session: [] for one in shown if one.session}
        for one in shown:
            if one.session:
                spans[one.session].append(one.when)

        counted, found = view.search.calendar(where, sessions=9)

        assert counted == tuple((*day, days[day]) for day in sorted(days))
        assert {one.session: one for one in found} == {
            name: (name, min(at_), max(at_), len(at_)) for name, at_ in spans.items()
        }
        assert [one.last for one in found] == sorted((one.last for one in found), reverse=True)
        assert view.search.calendar(where, sessions=2) == (counted, found[:2])


@each_row("search", SEARCHES)
def test_searches_are_best_first_and_no_deeper_than_asked(crowd: Store, search: str) -> None:
    """Each item once, scores falling, equal ones by id."""
    found = SEARCHES[search](crowd, 15, scope())

    assert len(found.matches) == 15
    keys = [(-match.score, match.item.id) for match in found.matches]
    assert keys == sorted(keys)
    assert len(set(ids(found))) == 15


@each_row("search", SEARCHES)
def test_secrets_are_above_the_usual_ceiling(crowd: Store, search: str) -> None:
    """Classification 3 is only seen by those who raise the ceiling."""
    usual = SEARCHES[search](crowd, 500, scope())
    raised = SEARCHES[search](crowd, 500, scope(max_classification=3))

    assert (len(usual.matches), len(raised.matches)) == (180, 200)


def test_many_threads_get_one_answer(crowd: Store) -> None:
    """The same question at the same time gives the same rows to everybody."""
    expected = {name: SEARCHES[name](crowd, 30, scope()) for name in SEARCHES}
    wrong: list[str] = []

    def ask() -> None:
        for _ in range(5):
            for name, search in SEARCHES.items():
                if search(crowd, 30, scope()) != expected[name]:
                    wrong.append(name)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert wrong == []


def test_threads_may_write_at_once(store: Store) -> None:
    """None of the writes is lost."""
    threads = [
        threading.Thread(target=lambda n=n: [put(store, record(f"{n}-{m}")) for m in range(10)])
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert store.admin.count() == 80


def test_an_error_shows_nothing_that_has_become_hidden(store: Store) -> None:
    """What a view has found to be hidden stays so when the transaction ends by an error."""
    put(store, record("a", classification=1))
    view = store.below(2)
    assert len(view.items.history("a")) == 1
    put(store, record("a", "Another text", classification=3, rev=2), after=1)

    with pytest.raises(NotFound), view.snapshot():
        view.items.around("none", window=1, scope=scope())

    assert view.items.history("a") == []


def test_a_snapshot_shows_one_moment(store: Store) -> None:
    """Until it is let go of, another thread's writes are not seen; own ones are refused."""
    put(store, record("a"))
    writer = threading.Thread(target=put, args=(store, record("b")))
    with store.snapshot():
        before = store.admin.count()
        writer.start()
        # In memory the writer waits; in a file it is done at once.
        writer.join(0.2)
        assert (before, store.admin.count(), len(store.items.browse(scope(), limit=9))) == (1, 1, 1)
        with pytest.raises(StoreError, match="snapshot"):
            put(store, record("c"))
    writer.join()

    assert store.admin.count() == 2


# Entities, links, vectors


def test_mentions_follow_the_live_revision(store: Store) -> None:
    """What the new revision no longer speaks of, it is no longer found by."""
    put(store, record("a", "Ana and Ben", mentions=(mention("Ana"), mention("Ben"))))
    put(store, record("a", "only Ben", rev=2, mentions=(mention("Ben"),)))

    assert {entity.id: entity.mentions for entity in store.graph.entities()} == {
        "person:ben": 1,
        "person:ana": 0,
    }
    assert store.search.entities(["person:ana"], 5, scope()).matches == ()
    assert ids(store.search.entities(["person:ben"], 5, scope())) == ["a"]
    assert store.items.get(["a"])["a"].entities == ("person:ben",)


def test_links_lead_both_ways(store: Store) -> None:
    """The same ends and type again overwrite the weight."""
    link = Link(Node("item", "a"), Node("item", "b"), "implies", weight=0.5, created_at=NOW)
    put(store, record("a", links=(link,)), record("b"))
    store.graph.add_links([dataclasses.replace(link, weight=0.9)])

    assert [one.weight for one in store.graph.links_of(["a"])] == [0.9]
    assert [one.weight for one in store.graph.links_of(["b"])] == [0.9]
    assert store.graph.links_of(["b"], incoming=False) == []
    assert store.graph.links_of(["a"], ["causes"]) == []


def test_a_vector_is_never_given_to_another_text(store: Store) -> None:
    """One that was made of a revision that is no longer the live one is dropped."""
    put(store, record("a"))
    (waiting,) = store.vectors.unembedded(MODEL, 9)
    put(store, record("a", "said anew", rev=2, embedding=embedding(1), model=MODEL))
    store.vectors.set_embeddings(MODEL, {"a": embedding(2)}, only={"a": waiting.rev})

    kept = store.vectors.embeddings(["a"], MODEL)["a"]
    assert kept.vector.tolist() == pytest.approx(embedding(1).vector.tolist(), abs=0.01)


def test_vectors_of_a_new_model_replace_the_old_when_all_are_there(store: Store) -> None:
    """Until then the old ones stay, and what lacks a new one is told."""
    put(store, *(record(f"i{n}", embedding=embedding(n), model="old") for n in range(3)))
    put(store, record("none"))

    assert ids(store.vectors.unembedded("old", 9)) == ["none"]
    waiting = store.vectors.unembedded("new", 9)
    assert ids(waiting) == ["i0", "i1", "i2", "none"]
    first = {item.id: item.rev for item in waiting}
    store.vectors.set_embeddings("new", {"i0": embedding(10), "i1": embedding(11)}, only=first)
    assert list(store.vectors.embeddings(["i2"], "old")) == ["i2"]
    store.vectors.set_embeddings("new", {"i2": embedding(12), "none": embedding(13)}, only=first)
    assert store.vectors.embeddings(["i2"], "old") == {}
    assert store.vectors.unembedded("new", 9) == []
    assert ids(store.search.vector(embedding(12).vector, "new", 1, scope())) == ["i2"]


def test_a_vector_belongs_to_its_revision(store: Store) -> None:
    """As of a moment it is the one of the words that stood then, also when they ended."""
    put(
        store,
        record("a", "tea", embedding=embedding(1)),
        record("b", "milk", embedding=embedding(2)),
    )
    put(store, record("a", "coffee", rev=2, embedding=embedding(3)), after=10)
    store.items.end(["a", "b"], how="forgotten", actor="tester", now=at(seconds=20))

    def vectors(seconds: float | None) -> dict[str, list[float]]:
        then = None if seconds is None else at(seconds=seconds)
        found = store.vectors.embeddings(["a", "b"], MODEL, as_of=then)
        return {item: pytest.approx(list(one.vector), abs=1e-3) for item, one in found.items()}

    first, second, third = (list(embedding(n).vector) for n in (1, 2, 3))
    assert vectors(-1) == vectors(20) == vectors(None) == {}
    assert vectors(5) == {"a": first, "b": second}
    assert vectors(15) == {"a": third, "b": second}


def in_passages(whole: int, *passages: int) -> Embedding:
    """The embedding of a long memory: its own vector and those of its passages."""
    parts = tuple(embedding(number, f"p{number}".encode()) for number in passages)
    return embedding(whole)._replace(passages=parts)


def test_a_long_memory_is_as_near_as_its_nearest_passage(store: Store) -> None:
    """It is found once, and ``depth`` counts memories, however many passages are nearer."""
    put(store, record("long", embedding=in_passages(1, 2, 3, 4)))
    put(store, *(record(f"i{n}", embedding=embedding(n)) for n in (20, 21, 22)))

    for number in (1, 2, 3, 4):
        found = store.search.vector(embedding(number).vector, MODEL, 9, scope())
        assert sorted(ids(found)) == ["i20", "i21", "i22", "long"]
        assert found.matches[0].item.id == "long"
        assert found.matches[0].score == pytest.approx(1, abs=1e-3)
    assert len(store.search.vector(embedding(3).vector, MODEL, 2, scope()).matches) == 2


@settings(
    max_examples=examples(10, 25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(counts=st.lists(st.integers(0, 40), min_size=1, max_size=8), depth=st.integers(1, 9))
def test_fewer_than_asked_means_there_are_no_more_with_passages(
    store: Store, counts: list[int], depth: int
) -> None:
    """Even where one memory has all the nearest passages."""
    session = f"s{store.admin.generation()}"
    put(
        store,
        *(
            record(
                f"{session}-{n}", session=session, embedding=in_passages(n, *range(9, 9 + count))
            )
            for n, count in enumerate(counts)
        ),
    )

    found = store.search.vector(embedding(9).vector, MODEL, depth, scope(sessions=(session,)))

    assert len(found.matches) == min(depth, len(counts))
    assert len(set(ids(found))) == len(found.matches)


def test_passages_belong_to_their_revision(store: Store) -> None:
    """They come back in order, now and as of then, after a restore, and leave with an erase."""
    put(store, record("a", "tea", embedding=in_passages(1, 2, 3)))
    put(store, record("a", "coffee", rev=2, embedding=in_passages(4, 5)), after=10)

    def passages(seconds: float | None = None) -> list[bytes]:
        then = None if seconds is None else at(seconds=seconds)
        found = store.vectors.embeddings(["a"], MODEL, as_of=then)
        return [part.tokens for one in found.values() for part in one.passages]

    assert (passages(5), passages()) == ([b"p2", b"p3"], [b"p5"])
    store.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=20))
    assert (passages(15), passages()) == ([b"p5"], [])
    store.items.restore(["a"], actor="tester", now=at(seconds=30))
    assert passages() == [b"p5"]
    revisions = {"a": store.items.get(["a"])["a"].rev}
    store.vectors.set_embeddings(MODEL, {"a": in_passages(6, 7, 8, 9)}, only=revisions)
    assert (passages(), passages(5)) == ([b"p7", b"p8", b"p9"], [b"p2", b"p3"])
    assert all(check.ok for check in store.admin.check())
    receipt = store.items.erase(["a"], actor="tester", now=at(seconds=40))
    assert receipt.removed["vectors"] == 3 + 2 + 4
    assert store.vectors.embeddings(["a"], MODEL, as_of=at(seconds=5)) == {}
    assert store.search.vector(embedding(7).vector, MODEL, 5, scope()).matches == ()


def test_a_memory_without_passages_does_not_hide_one_without_a_vector(store: Store) -> None:
    """Many passages are still one memory, and vectors of the forgotten are none of the living."""
    put(store, record("long", embedding=in_passages(1, *range(2, 9))))
    put(store, record("gone", embedding=embedding(30)), record("none"))
    store.items.end(["gone"], how="forgotten", actor="tester", now=at(seconds=20))

    assert ids(store.vectors.unembedded(MODEL, 9)) == ["none"]
    damage = store.search.vector(embedding(1).vector, MODEL, 5, scope()).damage
    assert damage.startswith("1 memory without a vector")


def test_a_vector_must_say_its_model(store: Store) -> None:
    """Two models are never compared, so a vector without one is worth nothing."""
    with pytest.raises(Refused, match="model"):
        put(store, record("a", embedding=embedding(1), model=""))


# Journal and generation


def test_every_change_leaves_a_line(store: Store) -> None:
    """Who did what to which id, in order; never the content."""
    put(store, record("a", "canary words"))
    put(store, record("a", "canary terms", rev=2), after=1)
    store.items.set_status(["a"], "superseded", actor="judge", now=at(seconds=2))
    store.items.end(["a"], how="forgotten", actor="owner", now=at(seconds=3))
    store.items.restore(["a"], actor="owner", now=at(seconds=4))
    store.admin.log("exported", item=None, actor="owner", detail="all", now=at(seconds=5))
    store.items.erase(["a"], actor="owner", now=at(seconds=6))

    events = store.admin.events()
    assert [(event.kind, event.item, event.actor) for event in events] == [
        ("stored", "a", "tester"),
        ("revised", "a", "tester"),
        ("status", "a", "judge"),
        ("ended", "a", "owner"),
        ("restored", "a", "owner"),
        ("exported", None, "owner"),
        ("erased", "a", "owner"),
    ]
    assert [event.at for event in events] == [at(seconds=n) for n in range(7)]
    assert store.admin.events(after=events[4].seq, limit=1) == events[5:6]
    assert not any("canary" in event.detail for event in events)


def test_the_generation_changes_with_every_write_and_no_read(store: Store) -> None:
    """Equal numbers mean equal content."""
    writes: list[Callable[[], object]] = [
        lambda: put(store, record("a")),
        lambda: put(store, record("a", "second", rev=2)),
        lambda: store.activity.note_use(["a"], NOW),
        lambda: store.items.set_status(["a"], "superseded", actor="x", now=NOW),
        lambda: store.items.end(["a"], how="forgotten", actor="x", now=NOW),
        lambda: store.items.restore(["a"], actor="x", now=NOW),
        lambda: store.admin.log("x", item=None, actor="x", detail="", now=NOW),
        lambda: store.items.erase(["a"], actor="x", now=NOW),
    ]
    seen = [store.admin.generation()]
    for write in writes:
        write()
        assert store.admin.generation() > seen[-1]
        seen.append(store.admin.generation())

    store.search.text(TextSearch("a"), scope())
    store.items.browse(scope(), limit=3)
    list(store.admin.dump())
    assert store.admin.generation() == seen[-1]


# Erasing


def test_an_erased_memory_is_gone_for_good(store: Store) -> None:
    """With its history, its name and everything that only it brought along."""
    put(
        store,
        record("a", "canary one", mentions=(mention("Ana"), mention("Ben")), key="k", sketch=(1,)),
        record("b", "other words", mentions=(mention("Ben"),), parent="a"),
        record("c", "third", links=(Link(Node("item", "c"), Node("item", "a"), "implies"),)),
    )
    put(store, record("a", "canary two", rev=2, mentions=(mention("Ana"),)))
    store.activity.note_use(["a"], NOW)

    receipt = store.items.erase(["a", "nobody"], actor="owner", now=NOW)

    assert receipt.ids == ("a",)
    assert receipt.removed["revisions"] == 2
    assert any("b" in line for line in receipt.out_of_reach)
    assert store.items.get(["a"]) == {}
    assert store.items.history("a") == []
    assert store.items.get(["b"])["b"].parent is None
    assert store.graph.links_of(["a"]) == []
    assert store.items.find_keys(("k",)).get("k") == (
        "a",
        erased_mark("k", fingerprint("canary one")),
    )
    assert [entity.id for entity in store.graph.entities()] == ["person:ben"]
    assert store.search.text(TextSearch("canary"), scope()).matches == ()
    assert store.search.statistics(store.search.terms("canary")).frequencies == {"canari": 0}
    assert store.items.find_duplicates([("", (1,))], scope()) == [[]]
    assert all(finding.ok for finding in store.admin.check())
    with pytest.raises(Refused, match="erased"):
        put(store, record("a", "back again"))
    with pytest.raises(Refused, match="erased"):
        put(store, record("z", "canary one", key="k"))


def test_what_was_just_stored_is_not_damaged(store: Store) -> None:
    """Now and at a moment, of every revision; an unknown id is not damaged either."""
    put(store, record("a", "tea"), record("b", "coffee"))
    put(store, record("a", "more tea", rev=2))

    assert store.items.damaged(["a", "b", "nobody"]) == []
    assert store.items.damaged(["a", "b"], as_of=NOW) == []
    assert store.items.damaged([]) == []


def test_an_erased_id_does_not_come_back_by_an_import(
    store: Store, kind: Kind, tmp_path: Path
) -> None:
    """Nor does the name of somebody only it spoke of."""
    put(store, record("a", "canary", mentions=(mention("Ana"),)), record("b", "stays"))
    export = list(store.admin.dump())
    store.items.erase(["a"], actor="owner", now=NOW)

    assert store.admin.load(export, actor="x", now=NOW) == 0
    assert store.items.get(["a"]) == {}
    assert store.graph.entities() == []


# Export and import


def fill(store: Store) -> None:
    """Something of everything that an export holds."""
    put(
        store,
        record(
            "a",
            "Ana likes tea",
            mentions=(mention("Ana", "person", "Annie"),),
            key="k1",
            sketch=(4, 2),
        ),
        record("b", "Ben likes coffee", mentions=(mention("Ben"),), metadata={"n": [1, 2.5, None]}),
        record("c", "to be forgotten", tags=("x",), occurred_at=NOW),
        record("d", "to be erased"),
    )
    put(store, record("a", "Ana likes green tea", rev=2, mentions=(mention("Ana"),)), after=5)
    store.graph.add_links(
        [Link(Node("item", "a"), Node("item", "b"), "contradicts", created_at=NOW)]
    )
    store.items.end(["c"], how="forgotten", actor="x", now=at(seconds=9))
    store.activity.note_use(["a", "b"], at(seconds=10))
    corrects = Link(Node("item", "a"), Node("item", "b"), "supersedes", created_at=NOW)
    store.graph.add_links([corrects], now=NOW)
    store.items.set_status(["b"], "superseded", actor="x", now=at(seconds=11))
    store.items.erase(["d"], actor="x", now=at(seconds=12))


def test_an_export_comes_back_whole(store: Store, kind: Kind, tmp_path: Path) -> None:
    """Export, import, export: the same, but for the journal's new lines."""
    fill(store)
    first = [json.loads(json.dumps(line, allow_nan=False)) for line in store.admin.dump()]
    (tmp_path / "other").mkdir()
    other = kind.open(tmp_path / "other")
    try:
        assert other.admin.load(first, actor="importer", now=at(days=1)) == 3
        second = list(other.admin.dump())

        assert first[0] == {"type": "bethink", "version": 1, "space": "laws", "end": True}
        told = len(first) - 1  # the last line counts the others
        assert second[:told] == first[:told]
        added = second[told:-1]
        assert [(line["type"], line["kind"]) for line in added] == [("event", "imported")] * 3
        assert all(finding.ok for finding in other.admin.check())
        assert ids(other.search.text(TextSearch("green"), scope())) == ["a"]
        assert {entity.id: entity.mentions for entity in other.graph.entities()} == {
            entity.id: entity.mentions for entity in store.graph.entities()
        }
        assert ids(other.vectors.unembedded(MODEL, 9)) == ["a", "b"]
    finally:
        other.close()


def test_what_proves_no_origin_comes_as_an_import(store: Store, kind: Kind, tmp_path: Path) -> None:
    """Revisions and links stay; trust, pins, journal and erasures are not taken over."""
    fill(store)
    put(store, record("e", "pinned", trust=3, source_class="owner", pinned=True))
    (tmp_path / "other").mkdir()
    other = kind.open(tmp_path / "other")
    try:
        assert other.admin.load(store.admin.dump(), actor="m", now=NOW, trusted=False) == 4
        lines = list(other.admin.dump())
        items = [line for line in lines if line["type"] == "item"]

        assert [line["text"] for line in items] == [
            line["text"] for line in store.admin.dump() if line["type"] == "item"
        ]
        assert {line["trust"] for line in items} <= {0, 1}
        assert {(i["source_class"], i["pinned"], i["writer"]) for i in items} == {
            ("import", False, "m")
        }
        assert {line["type"] for line in lines} - {"bethink", "end"} == {
            "entity",
            "alias",
            "item",
            "link",
            "status_change",
            "event",
        }
        assert {line["kind"] for line in lines if line["type"] == "event"} == {"imported"}
        assert all(finding.ok for finding in other.admin.check())
    finally:
        other.close()


def test_what_is_known_is_left_as_it_is(store: Store) -> None:
    """An import twice is an import once."""
    fill(store)
    export = list(store.admin.dump())
    before = store.admin.events(limit=1000)

    assert store.admin.load(export, actor="importer", now=at(days=1)) == 0
    assert list(store.admin.dump()) == export
    assert store.admin.events(limit=1000) == before


def test_an_export_may_be_read_while_others_write(store: Store) -> None:
    """It shows the moment it was begun."""
    put(store, record("a"), record("b"))

    lines = store.admin.dump()
    head = next(lines)
    put(store, record("c"))
    stored = [line["id"] for line in lines if line["type"] == "item"]

    assert head["type"] == "bethink"
    assert stored == ["a", "b"]
    assert store.admin.count() == 3


BROKEN: dict[str, tuple[Callable[[list[dict[str, object]]], object], str]] = {
    "no header": (lambda lines: lines.pop(0), "line 1: an export begins"),
    "newer": (lambda lines: lines[0].update(version=2), "line 1: .*version 1"),
    "not an object": (lambda lines: lines.insert(1, ["x"]), "line 2: .*not an object"),  # type: ignore[arg-type]
    "unknown type": (lambda lines: lines.insert(1, {"type": "x"}), "line 2: type must be"),
    "missing": (lambda lines: lines[1].pop("text"), "line 2: item.text is missing"),
    "wrong type": (lambda lines: lines[1].update(text=3), "line 2: item.text must be a text"),
    "out of range": (lambda lines: lines[1].update(trust=4), "line 2: item.trust must be"),
    "no zone": (
        lambda lines: lines[1].update(stored_at="2026-01-01T00:00:00"),
        "line 2: item.stored_at must be a time",
    ),
    "unknown field": (lambda lines: lines[1].update(colour="red"), "line 2: item.colour"),
    "changed text": (lambda lines: lines[1].update(text="other"), "line 2: item.content_hash"),
    "half a character": (
        lambda lines: lines[1].update(text="\ud800"),
        "line 2: item.text must be a text",
    ),
    "infinite": (
        lambda lines: lines[1].update(importance=float("inf")),
        "line 2: item.importance must be a number",
    ),
    "two live": (
        lambda lines: lines.insert(2, {**lines[1], "rev": 2, "content_hash": None}),
        "line 3: item.rev",
    ),
    "journal": (lambda lines: lines[-2].update(actor="somebody else"), "line 4: event.chain"),
    "journal cut": (lambda lines: lines[-2].update(seq=2), "line 4: event.seq"),
}


@each_row("how", BROKEN)
def test_a_broken_export_is_refused_by_line_and_field(
    store: Store, kind: Kind, tmp_path: Path, how: str
) -> None:
    """And nothing of it stays."""
    breaks, message = BROKEN[how]
    put(store, record("a", "one"))
    lines = list(store.admin.dump())
    lines.insert(2, {**lines[1], "id": "b", "content_hash": None})
    breaks(lines)
    (tmp_path / "other").mkdir()
    other = kind.open(tmp_path / "other")
    try:
        with pytest.raises(Refused, match=message):
            other.admin.load(lines, actor="x", now=NOW)
        assert other.admin.count() == 0
        assert other.admin.events() == []
    finally:
        other.close()


# Keeping


def test_a_store_outlives_its_closing(kind: Kind, tmp_path: Path) -> None:
    """What was acknowledged is there when it is opened again."""
    if not kind.lasting:
        pytest.skip("a space in memory ends with its last user, as it says")
    store = kind.open(tmp_path)
    fill(store)
    before = list(store.admin.dump())
    store.close()
    store.close()

    again = kind.open(tmp_path)

    assert list(again.admin.dump()) == before
    assert again.space == "laws"
    again.close()


def test_a_healthy_store_has_nothing_to_mend(store: Store) -> None:
    """Every finding is good, and repairing changes nothing."""
    fill(store)
    put(store, record("v", embedding=embedding(4)))
    before = list(store.admin.dump())

    assert all(finding.ok and not finding.repaired for finding in store.admin.check())
    assert all(finding.ok for finding in store.admin.check(repair=True))
    assert list(store.admin.dump()) == before


def test_statistics_tell_what_is_there(store: Store) -> None:
    """In numbers that agree with the rest."""
    fill(store)

    told = store.admin.stats()
    assert told["memories"] == store.admin.count() == 2
    assert (told["forgotten"], told["erased"], told["entities"]) == (1, 1, 2)
    assert told["by_level"] == {"item": 2}


def test_item_is_the_only_shape_that_leaves(store: Store) -> None:
    """A fresh item has no end, no use, and the hash of its content."""
    put(store, record("a", "same"), record("b", "same", level="raw"))

    first, second = store.items.get(["a", "b"]).values()
    assert (first.live_to, first.ended_by, first.recalls) == (None, None, 0)
    assert first.content_hash != second.content_hash
    assert first == item("a", "same")._replace(live_from=NOW, content_hash=first.content_hash)
