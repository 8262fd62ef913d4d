"""The log of operations makes the same memories in every kind of store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from bethink.model import Link, Node
from bethink.ports import OpBatch, Store, SyncResult
from bethink.store.sql.oplog import capture, fold
from bethink.store.sql.oplog.part import Applying
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from records import at, mention, record

KINDS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: SqliteStore.open(folder / "space.db", space="laws"),
    "postgres": open_space,
}
pytestmark = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def stores(kind: str, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store of the kind, and one in memory, each a machine of its own."""
    one, other = KINDS[kind](tmp_path), SqliteStore.open(None, space="laws")
    for name, store in (("one", one), ("other", other)):
        store.sync.keep(device=name, name=name)
    yield one, other
    one.close()
    other.close()


def send(source: Store, target: Store) -> SyncResult:
    batch = source.sync.read(target.sync.vector(), ceiling=3, limit=10_000)
    return target.sync.apply(batch, actor="sync", now=at(days=1))


def exchange(one: Store, other: Store) -> None:
    for store in (one, other):
        store.sync.capture(at(days=1))
    send(one, other)
    send(other, one)
    send(one, other)


def agree(one: Store, other: Store) -> None:
    exchange(one, other)
    assert one.sync.digest() == other.sync.digest()
    for store in (one, other):
        assert [found for found in store.admin.check() if not found.ok] == []


def put(store: Store, item: str, text: str, second: float, **fields: Any) -> None:
    known = store.items.get([item]).get(item)
    rev = 1 if known is None else known.rev + 1
    made = record(item, text, rev=rev, skip_duplicate=False, **fields)
    store.items.put([made], actor="tester", now=at(seconds=second))


def test_whatever_is_done_in_one_is_done_in_the_other(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "Berlin is large", 1, mentions=(mention("Berlin", "place"),), tags=("x",))
    put(one, "b", "Anna lives there", 2, mentions=(mention("Anna"),), key="a key", session="s")
    put(one, "c", "Annie does, too", 3, mentions=(mention("Annie"),), session="s")
    one.graph.add_links([Link(Node("item", "a"), Node("item", "b"), "related")], now=at(seconds=4))
    agree(one, other)
    put(other, "a", "Berlin is very large", 5, mentions=(mention("Berlin", "place"),), tags=("y",))
    other.items.end(["b"], how="forgotten", actor="tester", now=at(seconds=6))
    other.items.set_status(["c"], "quarantined", actor="tester", now=at(seconds=7))
    one.activity.note_use(["a"], at(seconds=8))
    other.activity.note_use(["a"], at(seconds=8))
    other.graph.merge_entities("person:anna", "person:annie", actor="tester", now=at(seconds=9))
    agree(one, other)
    assert one.items.get(["a"])["a"].text == "Berlin is very large"
    assert one.items.get(["c"])["c"].status == "quarantined"
    assert one.activity.usage(["a"], at(days=1))["a"].recalls == 2
    assert [entity.id for entity in one.graph.find_entities(("annie",))[0]] == ["person:anna"]
    one.items.restore(["b"], actor="tester", now=at(seconds=10))
    one.graph.split_entities("person:anna", "person:annie", actor="tester", now=at(seconds=11))
    one.items.erase(["c"], actor="tester", now=at(seconds=12))
    agree(one, other)
    assert other.items.get(["c"]) == {}
    assert other.items.get(["b"])["b"].live_to is None


def test_concurrent_edits_are_a_conflict_until_settled(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    agree(one, other)
    put(one, "a", "second", 2)
    put(other, "a", "third", 3)
    agree(one, other)
    for store in stores:
        assert [item.text for item in store.items.history("a")] == ["first", "second", "third"]
        (found,) = store.sync.conflicts()["a"]
        assert (found.kind, found.rev) == ("edited", 2)
    other.sync.set_conflict("a", None, now=at(seconds=4))
    agree(one, other)
    assert one.sync.conflicts() == {}


def test_a_copy_of_a_machine_becomes_another(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    put(other, "m", "of the other", 1)
    agree(one, other)
    other.sync.keep(device="one")  # as a copy of the first
    put(one, "b", "of the original", 2)
    put(other, "c", "of the copy", 3)
    other.items.end(["m"], how="forgotten", actor="tester", now=at(seconds=4))
    for store in stores:
        store.sync.capture(at(days=1))
    samples = one.sync.samples()
    assert [number for number, _ in samples["one.1"]] == sorted(
        (number for number, _ in samples["one.1"]), reverse=True
    )
    (first,) = other.sync.forks(samples).values()
    assert first <= one.sync.vector()["one.1"]
    other.sync.renew({"one.1": first}, device="copy", name="copy")
    agree(one, other)
    assert one.items.get(["c"])["c"].text == "of the copy"
    assert one.items.get(["m"])["m"].live_to is not None  # what the copy had seen it has seen
    assert one.sync.conflicts() == {}
    assert one.sync.forks(other.sync.samples()) == other.sync.forks(one.sync.samples()) == {}


def lines(ops: Iterable[Sequence[Any]]) -> OpBatch:
    """Operations of one series, however odd, as they come from another machine."""
    told = [
        json.dumps([f"{kind}.1", n, f"m{n}", n, n, *op]) for n, (kind, *op) in enumerate(ops, 1)
    ]
    return OpBatch({"odd.1": (1, len(told))}, told)


ODD: Sequence[tuple[str, str, dict[str, Any]]] = (
    ("rows", "a", {}),
    ("take", "a", {}),
    ("rev", "a", {"set": 1}),
    ("rev", "a", {"delta": {"text": [["a"], []]}}),
    ("rev", "a", {"delta": {"tags": [["a"]]}}),
    ("rev", "a", {"delta": {"none": [["a"], []]}}),
    *(
        ("rev", "a", {"set": wrong})
        for wrong in (
            {"parent": []}, {"trust": 9}, {"text": 5}, {"tags": "no list"}, {"tags": "[[1]]"},
            {"entities": "[1]"}, {"classification": "x"}, {"level": "x"}, {"pinned": 2},
            {"occurred_at": 2**52}, {"occurred_at": 2**70}, {"of_a_later_version": 1},
            {"sketch": [1.5]}, {"importance": None},
        )
    ),
    ("rev", "a", {"set": {"pinned": 1}, "changed": ["text"]}),
    ("end", "a", {"how": None, "why": "of a later version"}),
    ("status", "a", {"status": "odd"}),
    ("link", "a", {"add": [[1]]}),
    ("link", "a", {"add": [["item", "a", "x", "item", "b", "", [1, 1, None, "x", 2**70]]]}),
    ("link", "a", {"add": [], "entities": {"person:x": ["person"]}}),
    ("key", "a", {"keys": 1}),
    ("use", "a", {"recalls": 2**70, "stamps": [], "days": {}}),
    ("use", "b", {"recalls": 1, "stamps": [], "days": {"--1": 1}}),
    ("seen", "", {"one.1": "x"}),
    ("merge", "a", {"kept": "person:x"}),
    ("split", "=person:y", {"kept": 2}),
)  # fmt: skip


def test_what_is_not_understood_is_held_and_the_rest_goes_on(stores: tuple[Store, Store]) -> None:
    for store in stores:
        put(store, "a", "first", 1)
        batch = lines([("odd", kind, item, 0, data) for kind, item, data in ODD])
        head = ["odd.1", 99, "m", 1, 1, "end", "a", 0]
        rubbish = [
            "no json", "5", "[]", "[" * 100_000, json.dumps([*head[:4], 2**60, *head[5:], {}]),
            json.dumps(["odd.9", *head[1:], {}]), json.dumps([*head, {"how": "\ud800"}]),
            json.dumps([*head, {"how": float("nan")}]),
        ]  # fmt: skip
        data = {"status": "quarantined"}
        good = json.dumps(["odd.1", len(ODD) + 1, "x", 10**13, 10**12, "status", "a", 0, data])
        span = {"odd.1": (1, len(ODD) + 1)}
        told = store.sync.apply(
            OpBatch(span, [*batch.ops, *rubbish, good]), actor="sync", now=at(days=1)
        )
        names = store.sync.held()
        assert sorted(told.waiting) == sorted(names)
        assert len([name for name in names if "no operation" in name]) == len(rubbish)
        assert len(names) == len(ODD) + len(rubbish), names
        assert told.changed == ["a"]
        assert store.items.get(["a"])["a"].status == "quarantined"
        again = store.sync.read({}, ceiling=3, limit=1000)
        sent = [json.loads(line) for line in again.ops]
        assert all(json.loads(line) in sent for line in batch.ops)  # passed on as they came


def test_what_was_held_is_taken_by_a_version_that_understands_it(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    agree(one, other)
    one.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=2))
    one.sync.capture(at(days=1))
    with monkeypatch.context() as patch:
        patch.delitem(fold._SHAPES, "end")
        send(one, other)
        assert len(other.sync.held()) == 1
        assert other.items.get(["a"])["a"].live_to is None
    send(one, other)
    assert other.sync.held() == []
    assert other.items.get(["a"])["a"].ended_by == "forgotten"


def test_what_comes_before_its_beginning_waits(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    one.sync.capture(at(days=1))
    put(one, "a", "second", 2)
    one.sync.capture(at(days=1))
    late = one.sync.read({"one.1": 1}, ceiling=3, limit=100)
    told = other.sync.apply(late, actor="sync", now=at(days=1))
    assert told == SyncResult([], [], [], {"one.1": 1})
    agree(one, other)
    assert other.items.get(["a"])["a"].text == "second"


def test_of_concurrent_classifications_the_highest_holds(stores: tuple[Store, Store]) -> None:
    one, other = stores
    for later, earlier in ((one, other), (other, one)):
        item = f"of {later.space} {later is one}"
        put(one, item, "first", 1, classification=1)
        agree(one, other)
        put(earlier, item, "first", 2, classification=3, tags=("x",))
        put(later, item, "first", 3, classification=2)
        agree(one, other)
        for store in stores:
            assert store.items.get([item])[item].classification == 3
            assert store.sync.conflicts() == {}
        assert one.items.get([item])[item].tags == ("x",)
        put(later, item, "first", 4, classification=1)  # who knows both may lower it
        agree(one, other)
        assert one.items.get([item])[item].classification == 1


def test_one_id_on_two_machines_mixes_no_fields(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "The offer ends", 1, topic="offers", tags=("x",))
    put(other, "a", "Vault nine", 2)
    agree(one, other)
    found = one.items.get(["a"])["a"]
    assert (found.text, found.topic, found.tags) == ("Vault nine", None, ())
    assert [one.kind for one in other.sync.conflicts()["a"]] == ["edited"]


def test_a_forget_does_not_win_over_an_edit_above_it(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    put(other, "b", "of two", 1, classification=2)
    agree(one, other)
    put(one, "a", "second", 2, classification=2)
    other.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=3))
    agree(one, other)
    for store in stores:
        assert store.items.get(["a"])["a"].live_to is None
        assert [found.kind for found in store.sync.conflicts()["a"]] == ["forgotten"]
    other.items.end(["a"], how="forgotten", actor="tester", now=at(seconds=4))
    agree(one, other)
    assert one.items.get(["a"])["a"].live_to is not None  # now it is known
    assert one.sync.conflicts() == {}


def test_counts_of_merged_entities_follow_what_was_forgotten(stores: tuple[Store, Store]) -> None:
    """The memory names one entity; the one that it was merged into counts it, too."""
    one, other = stores
    for item, name in (("a", "Anna"), ("b", "Annie"), ("c", "Ann"), ("d", "Ann")):
        put(one, item, f"{name} lives there", 1, mentions=(mention(name),))
    for kept, gone in (("person:annie", "person:ann"), ("person:anna", "person:annie")):
        one.graph.merge_entities(kept, gone, actor="tester", now=at(seconds=2))
    agree(one, other)
    other.items.end(["c"], how="forgotten", actor="tester", now=at(seconds=3))
    agree(one, other)
    assert one.graph.entities()[0].mentions == 3
    other.items.restore(["c"], actor="tester", now=at(seconds=4))
    one.items.end(["d"], how="forgotten", actor="tester", now=at(seconds=5))
    put(other, "b", "Nobody lives there", 6)
    agree(one, other)
    for store in stores:
        assert store.graph.entities()[0].mentions == 2


def test_relations_that_no_memory_states_travel(stores: tuple[Store, Store]) -> None:
    """Both ways, with what they say; an erase of an entity takes its relations everywhere."""
    one, other = stores
    for item, name in (("a", "Anna"), ("b", "Ben"), ("c", "Cleo")):
        put(one, item, f"{name} lives there", 1, mentions=(mention(name),))
    anna, ben, cleo = (Node("entity", f"person:{name}") for name in ("anna", "ben", "cleo"))
    made = [Link(anna, ben, "knows", weight=0.7, context="from school"), Link(cleo, anna, "likes")]
    one.graph.add_links(made, actor="tester", now=at(seconds=2))
    agree(one, other)

    def related(store: Store) -> set[tuple[str, str, str, float, str | None]]:
        found = store.graph.links_of(["person:anna"], ("knows", "likes"), incoming=True)
        return {(it.src.id, it.type, it.dst.id, it.weight, it.context) for it in found}

    assert related(other) == related(one)
    assert ("person:anna", "knows", "person:ben", 0.7, "from school") in related(other)
    other.graph.add_links([Link(anna, ben, "knows", weight=0.4)], actor="x", now=at(seconds=3))
    other.graph.remove_links([made[1]], actor="x", now=at(seconds=3))
    agree(one, other)
    assert related(one) == {("person:anna", "knows", "person:ben", 0.4, None)}
    one.items.erase(["b"], actor="tester", now=at(seconds=4))
    agree(one, other)
    assert related(one) == related(other) == set()


def test_relations_that_an_earlier_version_did_not_log_stay(
    stores: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are logged before anything comes, and travel then."""
    one, other = stores
    for item, name in (("a", "Anna"), ("b", "Ben")):
        put(one, item, f"{name} lives there", 1, mentions=(mention(name),))
    ends = [Node("entity", f"person:{name}") for name in ("anna", "ben")]
    one.graph.add_links([Link(ends[0], ends[1], "knows")], actor="x", now=at(seconds=2))
    with monkeypatch.context() as earlier:
        earlier.setattr(capture, "_capture_edges", lambda *_: None)
        earlier.setattr(Applying, "_relate_again", lambda _: [])
        earlier.setattr(capture, "_LOGS", None)
        exchange(one, other)
    other.items.end(["a"], how="forgotten", actor="x", now=at(seconds=3))
    agree(one, other)
    for store in stores:
        (found,) = store.graph.links_of(["person:anna"], ("knows",))
        assert found.dst.id == "person:ben"
