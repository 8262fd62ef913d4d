"""Threads in every store: whole, replaced whole, exported, and gone with their memories."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink.errors import NotFound
from bethink.model import Member, Thread, ThreadEvent
from bethink.ports import SharedEntities, Sibling, Store
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from records import NOW, at, mention, record, scope

OPENERS = {
    "sqlite": lambda folder: SqliteStore.open(folder / "space.db", space="laws"),
    "sqlite-memory": lambda _: SqliteStore.open(None, space="laws"),
    "postgres": open_space,
}


@pytest.fixture(params=OPENERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = OPENERS[request.param](tmp_path)
    opened.items.put([record(name) for name in "abcd"], actor="x", now=NOW)
    yield opened
    opened.close()


def thread(thread_id: str = "t1", members: str = "ab", **fields: object) -> Thread:
    made = {
        "headline": "Deploy keys",
        "members": tuple(Member(item, "core", 0.5, at(hours=1)) for item in members),
        "events": (
            ThreadEvent(1, "observation", at(hours=2), "a"),
            ThreadEvent(2, "decision_made", at(hours=3), None, meaningful=False),
        ),
        "created_at": NOW,
        "updated_at": at(hours=4),
    }
    return Thread(id=thread_id, **{**made, **fields})


def put(store: Store, *threads: Thread, now: float = 5) -> None:
    for one in threads:
        store.activity.put_thread(one, actor="tester", now=at(hours=now))


def test_a_thread_comes_back_as_it_was(store: Store) -> None:
    """Members and events included, by itself and through its memories."""
    kept = thread(kind="case", anchor="entity:tool:vault", lifecycle="dormant", state="blocked")
    put(store, kept)

    assert store.activity.thread("t1") == kept
    assert store.activity.threads() == [kept]
    assert store.activity.threads_of(["b", "c"]) == [kept]
    assert store.activity.threads_of(["c"]) == store.activity.threads_of([]) == []
    assert store.activity.thread("t2") is None


def test_a_thread_is_replaced_whole(store: Store) -> None:
    """Only when it was made, and when a member joined, stays."""
    put(store, thread(created_at=None, members="ab"))
    changed = thread(members="bc", headline="Keys", events=(), created_at=at(days=9))
    later = changed._replace(members=(Member("b", "outcome", 1.0), Member("c")), updated_at=None)
    put(store, later, now=6)

    found = store.activity.thread("t1")
    assert (found.headline, found.events, found.created_at) == ("Keys", (), at(hours=5))
    assert found.updated_at == at(hours=6)
    assert found.members == (
        Member("b", "outcome", 1.0, at(hours=1)),
        Member("c", "core", 1.0, at(hours=6)),
    )


def test_a_thread_of_unknown_memories_is_refused(store: Store) -> None:
    """Whole: nothing of it is stored."""
    for wrong in (thread(members="ax"), thread(events=(ThreadEvent(1, "update", NOW, "x"),))):
        with pytest.raises(NotFound):
            put(store, wrong)
    assert store.activity.threads() == []


def test_threads_are_listed_last_changed_first(store: Store) -> None:
    """A page at a time, ties by id."""
    put(store, *(thread(name, updated_at=at(hours=hour)) for name, hour in
                 (("t1", 1), ("t2", 3), ("t3", 3))))  # fmt: skip

    assert [one.id for one in store.activity.threads()] == ["t2", "t3", "t1"]
    assert [one.id for one in store.activity.threads(limit=1, offset=1)] == ["t3"]


def test_an_erased_memory_leaves_its_threads(store: Store) -> None:
    """A thread whose last member is erased goes, its words with it."""
    put(store, thread("t1", "ab"), thread("t2", "a"))

    receipt = store.items.erase(["a"], actor="x", now=NOW)

    assert [member.item for member in store.activity.thread("t1").members] == ["b"]
    assert [event.seq for event in store.activity.thread("t1").events] == [2]
    assert store.activity.thread("t2") is None
    assert "thread t1 keeps its headline" in receipt.out_of_reach
    assert all(finding.ok for finding in store.admin.check())


def test_threads_survive_an_export(store: Store) -> None:
    """Losslessly; a thread without any memory of it here does not come in."""
    put(store, thread("t1", "ab"), thread("t2", "c", events=()))
    lines = [json.loads(json.dumps(line)) for line in store.admin.dump()]

    other = SqliteStore.open(None, space="other")
    other.admin.load(lines, actor="x", now=NOW)
    assert other.activity.threads() == store.activity.threads()
    other.close()

    bare = SqliteStore.open(None, space="bare")
    del lines[0]["end"], lines[-1]  # they count the lines
    bare.admin.load([line for line in lines if line.get("id") != "c"], actor="x", now=NOW)
    assert [one.id for one in bare.activity.threads()] == ["t1"]
    assert all(finding.ok for finding in bare.admin.check())
    bare.close()


def test_a_thread_is_noted_in_the_journal(store: Store) -> None:
    """By its id, never by its words."""
    put(store, thread())

    last = store.admin.events(limit=1000)[-1]
    assert (last.kind, last.detail, last.actor) == ("thread", "t1", "tester")


def test_siblings_share_an_entity(store: Store) -> None:
    """Surely enough, hubs named and left out, never the item itself."""
    vault, ana = mention("Vault", "tool"), mention("Ana")
    records = [
        record("v1", mentions=(vault, ana)),
        record("v2", mentions=(vault, ana)),
        record("v3", mentions=(ana, vault._replace(confidence=0.6))),
        record("v4", mentions=(ana,)),
    ]
    store.items.put(records, actor="x", now=NOW)

    assert store.graph.siblings(["v1"], most=3, min_confidence=0.7) == SharedEntities(
        (Sibling("v1", "tool:vault", "v2", 1.0),), ("person:ana",)
    )
    sure = store.graph.siblings(["v1"], most=4, min_confidence=0.5).siblings
    assert {one.item for one in sure} == {"v2", "v3", "v4"}
    assert store.graph.siblings([], most=4, min_confidence=0.5) == SharedEntities()


def test_a_span_that_reaches_into_a_window_is_found(store: Store) -> None:
    """Behind those that began inside; only when asked for."""
    spans = {
        "before": (-9, -8),
        "into": (-9, 1),
        "over": (-5, 9),
        "inside": (0.5, 0.6),
        "edge": (-9, 0),
    }
    store.items.put(
        [
            record(name, occurred_at=at(days=100 + a), occurred_end=at(days=100 + b))
            for name, (a, b) in spans.items()
        ],
        actor="x",
        now=NOW,
    )
    window = (at(days=100), at(days=101))
    everything = scope(moment=at(days=200))

    found = store.search.time(*window, 10, everything, overlapping=True).matches
    assert [match.item.id for match in found] == ["inside", "over", "into"]
    assert [match.item.id for match in store.search.time(*window, 10, everything).matches] == [
        "inside"
    ]
    few = store.search.time(*window, 2, everything, overlapping=True).matches
    assert few == found[:2]
