"""What every store says of the past: standing, links, names, use and words as of then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import bethink
from bethink.model import FileEdit, Item, Link, Node
from bethink.ports import EntityListing, PriorUse, Store, TextSearch, Usage, UsageDecay
from bethink.store.sqlite import SqliteStore
from postgres_server import open_space
from records import MODEL, NOW, at, embedding, mention, mention_activity, record, scope


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = (
        SqliteStore.open(None, space="past") if request.param == "sqlite" else open_space(tmp_path)
    )
    yield opened
    opened.close()


def stood(store: Store, hours: float) -> str:
    return store.items.get(["a"], as_of=at(hours=hours))["a"].status


def found(store: Store, hours: float, **filters: object) -> list[Item]:
    past = scope(as_of=at(hours=hours), **filters)
    matches = store.search.text(TextSearch("alpha"), past).matches
    return [match.item for match in matches]


def test_a_status_holds_from_its_moment_on(store: Store) -> None:
    """In what is found, and in what is told of it; whatever it was judged since."""
    store.items.put([record("a", "alpha words")], actor="x", now=NOW)
    store.items.set_status(["a"], "superseded", actor="x", now=at(hours=1))
    store.items.put(
        [record("a", "alpha terms", rev=2, status="superseded")], actor="x", now=at(hours=2)
    )
    store.items.set_status(["a"], "quarantined", actor="x", now=at(hours=3))
    store.items.set_status(["a"], "active", actor="x", now=at(hours=4))

    statuses = [stood(store, hours) for hours in (0, 0.99, 1, 2, 3, 3.5, 4, 9)]
    assert statuses == ["active"] * 2 + ["superseded"] * 2 + ["quarantined"] * 2 + ["active"] * 2
    assert [one.text for one in found(store, 0.5)] == ["alpha words"]
    assert found(store, 1) == found(store, 3) == []
    (told,) = found(store, 1, include_superseded=True)
    assert (told.status, told.rev) == ("superseded", 1)
    assert store.items.browse(scope(as_of=at(hours=2)), limit=5) == []
    assert [one.rev for one in store.items.browse(scope(as_of=at(hours=4)), limit=5)] == [2]
    assert store.items.get(["a"])["a"].status == "active"


def test_what_was_stored_out_of_recall_was_so_from_the_start(store: Store) -> None:
    """And a restore brings it back as it stood."""
    store.items.put([record("a", "alpha", status="quarantined")], actor="x", now=NOW)
    store.items.end(["a"], how="test", actor="x", now=at(hours=1))
    store.items.restore(["a"], actor="x", now=at(hours=2))
    store.items.set_status(["a"], "active", actor="x", now=at(hours=3))

    assert [stood(store, hours) for hours in (0, 1, 2, 3)] == ["quarantined"] * 3 + ["active"]


def test_a_clock_that_goes_back_keeps_the_order_of_changes(store: Store) -> None:
    """The last that was said holds last."""
    store.items.put([record("a", "alpha")], actor="x", now=NOW)
    store.items.set_status(["a"], "superseded", actor="x", now=at(hours=2))
    store.items.set_status(["a"], "active", actor="x", now=at(hours=1))

    assert (stood(store, 1.5), stood(store, 2)) == ("active", "active")
    assert all(finding.ok for finding in store.admin.check())


def test_links_are_those_made_by_then(store: Store) -> None:
    """From either end; a link taken back is not brought back."""
    store.items.put([record("a"), record("b"), record("c")], actor="x", now=NOW)
    a, b, c = (Node("item", name) for name in "abc")
    store.graph.add_links([Link(a, b, "implies")], actor="x", now=at(hours=1))
    store.graph.add_links([Link(c, a, "causes")], actor="x", now=at(hours=2))

    def types(hours: float) -> list[str]:
        return [link.type for link in store.graph.links_of(["a"], as_of=at(hours=hours))]

    assert [types(0), types(1), types(2)] == [[], ["implies"], ["implies", "causes"]]
    assert store.graph.links_of(["a"], ("causes",), as_of=at(hours=1)) == []
    assert store.graph.links_of(["c"], incoming=False, as_of=at(hours=1)) == []
    store.graph.remove_links([Link(a, b, "implies")], actor="x", now=at(hours=3))
    assert types(1) == []


def test_entities_are_as_known_as_they_were(store: Store) -> None:
    """By name, by parts of it and by meaning: those spoken of by then, counted as then."""
    ana, ben = mention("Ana"), mention("Ben")
    store.items.put([record("a", "one", mentions=(ana,))], actor="x", now=NOW)
    store.items.put([record("b", "two", mentions=(ana, ben))], actor="x", now=at(hours=1))
    store.items.put([record("a", "changed", rev=2)], actor="x", now=at(hours=2))
    vectors = {"person:ana": embedding(1), "person:ben": embedding(2)}
    store.vectors.set_entity_embeddings(MODEL, vectors)

    def known(hours: float) -> dict[str, int]:
        then = at(hours=hours)
        named = store.graph.find_entities(("Ana and Ben",), as_of=then)[0]
        parts = store.graph.entities_with(["ana", "ben"], 9, as_of=then)
        near = store.graph.near_entities(embedding(1).vector, MODEL, 9, as_of=then)
        counts = {one.id: one.mentions for one in named}
        assert {one.entity.id: one.entity.mentions for one in parts} == counts
        assert {one.entity.id: one.entity.mentions for one in near} == counts
        return counts

    assert known(-1) == {}
    assert known(0) == {"person:ana": 1}
    assert known(1) == {"person:ana": 2, "person:ben": 1}
    assert known(2) == {"person:ana": 1, "person:ben": 1}


def test_siblings_are_those_of_then(store: Store) -> None:
    """A hub of today may have told memories apart, and who spoke of it then is there."""
    ana = mention("Ana")
    store.items.put(
        [record("a", mentions=(ana,)), record("b", mentions=(ana,))], actor="x", now=NOW
    )
    store.items.put(
        [record("c", mentions=(ana,)), record("d", mentions=(ana,))], actor="x", now=at(hours=1)
    )
    store.items.put([record("b", "no more", rev=2)], actor="x", now=at(hours=2))

    now = store.graph.siblings(["a"], most=2, min_confidence=0.5)
    then = store.graph.siblings(["a"], most=2, min_confidence=0.5, as_of=at(hours=0))
    assert (now.siblings, now.hubs) == ((), ("person:ana",))
    assert {one.item for one in then.siblings} >= {"b"}
    assert then.hubs == ()


def test_use_is_that_of_then(store: Store) -> None:
    """To the millisecond for the last twenty uses, before that by the day."""
    store.items.put([record("a", "alpha")], actor="x", now=NOW)
    for hour in range(1, 4):
        store.activity.note_use(["a"], at(hours=hour))

    def used(**after: float) -> tuple[int, object]:
        item = store.items.get(["a"], as_of=at(**after))["a"]
        usage = store.activity.usage(["a"], at(**after)).get("a")
        assert (usage.recalls if usage else 0) == item.recalls
        assert (usage.last_at if usage else None) == item.last_recalled_at
        assert (usage.in_30_days if usage else 0) == item.recalls
        return item.recalls, item.last_recalled_at

    assert [used(hours=0), used(hours=1), used(hours=2.5), used(days=9)] == [
        (0, None),
        (1, at(hours=1)),
        (2, at(hours=2)),
        (3, at(hours=3)),
    ]
    for day in range(1, 26):
        store.activity.note_use(["a"], at(days=day))
    assert used(hours=2.5)[0] == 3  # a day is all that is known of so long ago
    assert used(days=10) == (13, at(days=10))


def test_use_of_another_store_is_taken_over_once(store: Store) -> None:
    """Days, last moment and strength as they were there; use here is never overwritten."""
    store.items.put([record("a"), record("b")], actor="x", now=NOW)
    store.activity.note_use(["b"], at(hours=1))
    there = PriorUse(12, at(days=-2), (at(days=-40), at(days=-2)), 0.4)

    for _ in range(2):
        store.activity.take_over_use({"a": there, "b": there, "gone": there}, at(hours=2))

    now = at(hours=3)
    assert store.activity.usage(["a", "b", "gone"], now) == {
        "a": Usage(12, at(days=-2), (at(days=-40), at(days=-2)), 1, 12),
        "b": Usage(1, at(hours=1), (at(hours=1),), 1, 1),
    }
    assert store.items.get(["a"])["a"].decay == 0.4
    store.activity.note_use(["b"], at(hours=4), fading=UsageDecay(1, 0.1, 0.0, {}))
    assert store.items.get(["a"])["a"].decay == pytest.approx(0.3)


def test_edits_are_counted_before_they_are_added(store: Store) -> None:
    """A preview counts what would be new, each once, and adds nothing."""
    edits = [FileEdit("/w/a.py", "edit", at(hours=hour), "mend it", "s") for hour in (1, 1, 2)]

    def count(*, preview: bool) -> int:
        return store.activity.note_edits(edits, actor="x", now=NOW, preview=preview)

    assert [count(preview=True), count(preview=True), count(preview=False)] == [2, 2, 2]
    assert count(preview=True) == 0
    assert store.activity.file_history("a.py").edits == 2


def test_what_forgetting_has_left_is_that_of_then(store: Store) -> None:
    """Ticks count up to the moment, from when the memory was last recalled before it."""
    store.items.put([record("a"), record("b")], actor="x", now=NOW)
    for hour in range(1, 4):
        store.activity.note_use(["b"], at(hours=hour), fading=UsageDecay(1, 0.1, 0.0, {}))

    def left(hours: float) -> float:
        return store.items.get(["a"], as_of=at(hours=hours))["a"].decay

    assert [left(0), left(1), left(2.5), left(3)] == [1.0, 0.9, 0.8, 0.7]
    assert store.items.get(["a"])["a"].decay == 0.7
    store.activity.note_use(["a"], at(hours=4), fading=UsageDecay(0, 0.1, 60.0, {"a": 0.2}))
    assert left(4) == pytest.approx(0.9)
    store.activity.note_use(["b"], at(hours=5), fading=UsageDecay(1, 0.1, 0.0, {}))
    store.activity.note_use(["a"], at(hours=6), fading=UsageDecay(0, 0.1, 60.0, {"a": 0.1}))
    assert [left(hours) for hours in (3, 4, 5, 6)] == pytest.approx([0.7, 0.9, 0.8, 0.9])
    assert store.items.get(["b"], as_of=NOW)["b"].decay == 1.0


def test_words_are_as_common_as_they_were(store: Store) -> None:
    """Every revision that was there counts, as it does today."""
    store.items.put([record("a", "alpha beta")], actor="x", now=NOW)
    store.items.put([record("b", "alpha"), record("c", "gamma")], actor="x", now=at(hours=1))
    store.items.put([record("a", "delta", rev=2)], actor="x", now=at(hours=2))
    asked = store.search.terms("alpha gamma delta")

    assert store.search.statistics(asked, as_of=at(hours=-1)) == (0, 0.0, dict.fromkeys(asked, 0))
    then = store.search.statistics(asked, as_of=at(hours=1))
    assert (then.documents, list(then.frequencies.values())) == (3, [2, 1, 0])
    assert store.search.statistics(asked, as_of=at(hours=2)) == store.search.statistics(asked)


def test_words_are_counted_right_after_a_clock_went_back(store: Store) -> None:
    """And words that a stemmer would cut once more are those that were stored."""
    store.items.put([record("a", "alpha universities")], actor="x", now=at(hours=2))
    store.items.put([record("b", "alpha caresses")], actor="x", now=NOW)
    asked = store.search.terms("alpha universities caresses")

    then = store.search.statistics(asked, as_of=at(hours=1))
    assert (then.documents, list(then.frequencies.values())) == (1, [1, 0, 1])
    store.items.put([record("c", "alpha universities")], actor="x", now=at(hours=3))
    then = store.search.statistics(asked, as_of=at(hours=2))
    assert (then.documents, list(then.frequencies.values())) == (2, [2, 1, 1])


def test_what_goes_on_is_what_went_on(store: Store) -> None:
    """The momentum of then, whatever was stored, revised or forgotten since."""
    ana, ben = mention("Ana"), mention("Ben")
    store.items.put([record("a", mentions=(ana,), importance=0.9)], actor="x", now=NOW)
    store.items.put([record("b", mentions=(ana, ben))], actor="x", now=at(days=2))
    ids = ["person:ana", "person:ben"]
    then = store.activity.momenta(ids, at(days=3))
    seen = mention_activity(store, ids, at(days=3))
    assert store.graph.list_entities(EntityListing(), at(days=3))

    store.items.put([record("b", "changed", rev=2)], actor="x", now=at(days=4))
    store.items.end(["a"], how="test", actor="x", now=at(days=5))
    store.items.put([record("c", mentions=(ana, ben))], actor="x", now=at(days=20))

    assert mention_activity(store, ids, at(days=3)) == seen
    assert store.activity.momenta(ids, at(days=3)) == then


def test_every_step_asks_through_its_context() -> None:
    """Which knows whether the question is about the past; the store does not."""
    folder = Path(bethink.__file__).parent
    asking = re.compile(r"ctx\.store\.(links_of|find_entities|usage|statistics)\(")
    files = [*folder.glob("channels/*.py"), *folder.glob("stages/*.py"), *folder.glob("*.py")]
    files += [*folder.glob("deepening/*.py")]

    assert [file.name for file in files if asking.search(file.read_text("utf-8"))] == []
