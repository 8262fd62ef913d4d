"""The log of operations makes the same memories in every kind of store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bethink.model import Link, Node
from bethink.ports import OpBatch, Store, SyncResult
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


def agree(one: Store, other: Store) -> None:
    for store in (one, other):
        store.sync.capture(at(days=1))
    send(one, other)
    send(other, one)
    send(one, other)
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
    other.sync.settle("a", now=at(seconds=4))
    agree(one, other)
    assert one.sync.conflicts() == {}


def test_a_copy_of_a_machine_becomes_another(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    agree(one, other)
    other.sync.keep(device="one")  # as a copy of the first
    put(one, "b", "of the original", 2)
    put(other, "c", "of the copy", 3)
    for store in stores:
        store.sync.capture(at(days=1))
    batch = one.sync.read({"one.1": 1}, ceiling=3, limit=100)
    first = other.sync.forks(batch)
    assert first == 2
    other.sync.renew(first, device="copy", name="copy")
    other.sync.apply(batch, actor="sync", now=at(days=1))
    send(other, one)
    assert one.sync.digest() == other.sync.digest()
    assert one.items.get(["c"])["c"].text == "of the copy"


def test_what_cannot_be_stored_waits(stores: tuple[Store, Store]) -> None:
    one, other = stores
    put(one, "a", "first", 1)
    one.sync.capture(at(days=1))
    batch = one.sync.read({}, ceiling=3, limit=100)
    for change in ({"trust": 9}, {"text": 5}, {"text": "\0"}, {"tags": "no list"}, {"level": "x"}):
        op = json.loads(batch.ops[0])
        op[2], op[6] = f"mark {change}", f"bad {change}"
        op[8]["set"] |= change
        bad = OpBatch({}, [json.dumps(op)])
        assert other.sync.apply(bad, actor="sync", now=at(days=1)).waiting == [op[6]]
        assert other.items.get([op[6]]) == {}
    rubbish = ["no json", "5", "[]", "{}", json.dumps(["one.9", *json.loads(batch.ops[0])[1:]])]
    for kind in ("rev", "end", "status", "link", "key", "use", "seen", "merge", "split"):
        wrong: list[Any] = [{"set": 1}, {"add": [[1]]}, {"keys": 1}, {"kept": 2}, {"how": 3}]
        wrong.append({"recalls": "x", "days": {"y": 1}, "stamps": None})
        head = ["one.1", 1, "m", 1, 1, kind, "a", 0]
        rubbish += [json.dumps([*head, data]) for data in wrong]
    told = other.sync.apply(OpBatch({}, rubbish), actor="sync", now=at(days=1))
    assert told.changed == []
    assert other.items.get(["a"]) == {}
    later = json.loads(batch.ops[0])
    later[8]["set"] = {"pinned": 1}
    assert other.sync.apply(
        OpBatch({"one.1": (2, 2)}, [json.dumps([later[0], 2, "m", *later[3:]])]),
        actor="sync",
        now=at(days=1),
    ) == SyncResult([], [], ["a"], {"one.1": 1})
