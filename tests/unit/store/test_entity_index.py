"""Entities by meaning and by name: exact, of one model only, gone when nobody speaks of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bethink import Memory
from bethink.model import Entity
from bethink.ports import Embedding, Mention
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from compass import Compass
from corpus import NOW
from records import DIM, MODEL, at, embedding, mention, record, scope


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="test")
    yield opened
    opened.close()


def named(store: SqliteStore, *words: str, limit: int = 5) -> list[tuple[str, float]]:
    return [(near.entity.id, near.score) for near in store.graph.entities_with(words, limit)]


def test_the_nearest_come_first_by_their_true_cosine(store: SqliteStore) -> None:
    """All are looked at, and equal ones stand in the order of their ids."""
    names = [f"N{number:03d}" for number in range(300)]
    store.items.put([record("a", mentions=tuple(map(mention, names)))], actor="x", now=NOW)
    made = {f"person:n{n:03d}": embedding(n % 299) for n in range(300)}
    store.vectors.set_entity_embeddings(MODEL, made)
    query = embedding(7).vector

    found = store.graph.near_entities(query, MODEL, 10)

    rows = {key: one.vector.astype(np.float16).astype(np.float32) for key, one in made.items()}
    truth = {key: float(row @ query / np.linalg.norm(row)) for key, row in rows.items()}
    expected = sorted(truth, key=lambda key: (-truth[key], key))[:10]
    assert [near.entity.id for near in found] == expected
    assert [near.score for near in found] == pytest.approx([truth[key] for key in expected])


def test_models_are_never_compared(store: SqliteStore) -> None:
    """Nor vectors of another length."""
    store.items.put([record("a", mentions=(mention("Ana"),))], actor="x", now=NOW)
    store.vectors.set_entity_embeddings("other", {"person:ana": embedding(1)})

    assert store.graph.near_entities(embedding(1).vector, MODEL, 5) == []
    assert [e.id for e in store.vectors.unembedded_entities(MODEL, 5)] == ["person:ana"]
    store.vectors.set_entity_embeddings(MODEL, {"person:ana": embedding(1)})
    assert len(store.graph.near_entities(embedding(1).vector, MODEL, 5)) == 1
    assert store.graph.near_entities(np.ones(2 * DIM, np.float32), MODEL, 5) == []
    assert store.graph.near_entities(np.zeros(DIM, np.float32), MODEL, 5) == []
    assert store.graph.near_entities(embedding(1).vector, "other", 5) == []


def test_an_entity_without_direction_counts_as_done(store: SqliteStore) -> None:
    """A name of which the model knows nothing is near to nothing, and not tried for ever."""
    store.items.put([record("a", mentions=(mention("Zzq"),))], actor="x", now=NOW)
    store.vectors.set_entity_embeddings(MODEL, {"person:zzq": Embedding(np.zeros(DIM, np.float32))})

    assert store.vectors.unembedded_entities(MODEL, 5) == []
    assert [near.score for near in store.graph.near_entities(embedding(1).vector, MODEL, 5)] == [
        0.0
    ]


def test_a_vector_comes_with_its_memory(store: SqliteStore) -> None:
    """In the transaction that stores it; strangers get none."""
    came = mention("Ana")._replace(embedding=embedding(3))
    store.items.put([record("a", mentions=(came,), embedding=embedding(1))], actor="x", now=NOW)
    store.vectors.set_entity_embeddings(MODEL, {"person:nobody": embedding(4)})

    assert store.vectors.lacking_vectors(["person:ana", "person:new"], MODEL) == ["person:new"]
    near = store.graph.near_entities(embedding(3).vector, MODEL, 5)
    assert [(one.entity.id, round(one.score, 3)) for one in near] == [("person:ana", 1.0)]


def test_names_are_found_by_their_parts(store: SqliteStore) -> None:
    """Those that hold most of the words first, then the more mentioned, each word once."""
    redis, cluster = mention("Redis", "tool"), mention("Redis Cluster", "tool")
    store.items.put(
        [
            record("a", mentions=(redis, cluster, mention("Kafka", "tool"))),
            record("b", mentions=(redis,)),
        ],
        actor="x",
        now=NOW,
    )

    assert named(store, "redis", "cluster", "redis") == [
        ("tool:redis cluster", 2.0),
        ("tool:redis", 1.0),
    ]
    assert named(store, "redis") == [("tool:redis", 1.0), ("tool:redis cluster", 1.0)]
    assert named(store, "edi", limit=1) == [("tool:redis", 1.0)]
    assert named(store, "tool", limit=2)[0] == ("tool:redis", 1.0)
    assert named(store, "zebra") == named(store) == named(store, "redis", limit=0) == []


def test_a_new_spelling_of_a_name_is_noticed(store: SqliteStore) -> None:
    """A memory that more may see gives the entity its name, which replaces the one kept."""
    secret = Mention(Entity("tool:apollo", "tool", "Apollo Nightjar"))
    store.items.put([record("a", mentions=(secret,), classification=3)], actor="x", now=NOW)
    assert named(store, "nightjar") == [("tool:apollo", 1.0)]

    store.items.put([record("b", mentions=(mention("Apollo", "tool"),))], actor="x", now=NOW)

    assert named(store, "nightjar") == []
    assert named(store, "apollo") == [("tool:apollo", 1.0)]


def test_what_is_new_is_noticed(store: SqliteStore) -> None:
    """And what is gone; what was kept in memory is not believed for longer than it is true."""
    store.items.put([record("a", mentions=(mention("Ana"),))], actor="x", now=NOW)
    assert named(store, "ana", "ben") == [("person:ana", 1.0)]

    store.items.put([record("b", mentions=(mention("Ben"),))], actor="x", now=NOW)
    assert named(store, "ana", "ben") == [("person:ana", 1.0), ("person:ben", 1.0)]

    store.items.erase(["a"], actor="x", now=NOW)
    assert named(store, "ana", "ben") == [("person:ben", 1.0)]


def test_mentions_are_told_by_entity(store: SqliteStore) -> None:
    """The latest first, at most so many of each, all in scope; also those of the past."""
    ana, ben = mention("Ana"), mention("Ben")
    for number in range(4):
        both = (ana, ben) if number == 0 else (ana,)
        level = "raw" if number == 3 else "item"
        one = record(f"m{number}", mentions=both, level=level)
        store.items.put([one], actor="x", now=at(hours=number))
    store.items.put([record("m1", "changed", rev=2)], actor="x", now=at(hours=5))
    asked = ["person:ana", "person:ben", "person:nobody"]

    def told(each: int, **filters: object) -> dict[str, list[str]]:
        found = store.search.mentioning(asked, each, scope(**filters))  # type: ignore[arg-type]
        return {entity: [item.id for item in items] for entity, items in found.items()}

    assert told(9) == {
        "person:ana": ["m3", "m2", "m0"],
        "person:ben": ["m0"],
        "person:nobody": [],
    }
    assert told(1, levels=("item",))["person:ana"] == ["m2"]
    assert told(9, as_of=at(hours=2.5))["person:ana"] == ["m2", "m1", "m0"]


def test_an_erased_name_leaves_no_byte(tmp_path: Path) -> None:
    """Nor does what a model made of it; the check finds nothing wrong."""
    path = tmp_path / "space.db"
    store = SqliteStore.open(path, space="test")
    vector = embedding(5)
    came = mention("Quetzalcoatl")._replace(embedding=vector)
    store.items.put([record("a", mentions=(came,), embedding=embedding(1))], actor="x", now=NOW)
    stored = vector.vector.astype(np.float16).tobytes()
    receipt = store.items.erase(["a"], actor="x", now=NOW)
    findings = store.admin.check()
    store.close()

    assert receipt.removed["entity vectors"] == 1
    assert all(finding.ok for finding in findings)
    for file in tmp_path.iterdir():
        assert stored not in file.read_bytes()


def test_a_damaged_vector_is_found_and_made_anew(store: SqliteStore) -> None:
    """The repair drops it; the next reindex makes it."""
    came = mention("Ana")._replace(embedding=embedding(5))
    store.items.put([record("a", mentions=(came,), embedding=embedding(1))], actor="x", now=NOW)
    with store._connections.write_transaction() as db:
        db.execute("UPDATE entity_vector SET data = x'00ff00'")

    assert store.graph.near_entities(embedding(5).vector, MODEL, 5) == []
    assert [f.name for f in store.admin.check() if not f.ok] == ["entity vectors"]
    assert [f.name for f in store.admin.check(repair=True) if f.repaired] == ["entity vectors"]
    assert [e.id for e in store.vectors.unembedded_entities(MODEL, 5)] == ["person:ana"]


def test_the_write_walk_embeds_what_is_new_and_a_reindex_the_rest() -> None:
    """By "kind: name"; another model replaces the vectors of the one before."""
    first, second = Compass({"tool: Redis": 0.9}), Compass({"tool: Redis": 0.4}, model="second")
    with Memory.open(":memory:", embedder=first, clock=FixedClock(NOW)) as memory:
        kept = memory.remember("alpha", entities=["tool:Redis"]).id
        memory.update(kept, text="beta", entities=["tool:Redis", "tool:Kafka"])
        north = first.embed_query("").vector

        near = memory.store.graph.near_entities(north, "compass", 5)
        assert {n.entity.id: round(n.score, 2) for n in near} == {
            "tool:redis": 0.9,
            "tool:kafka": 0.0,
        }

        memory.session.embedder = second
        memory.reindex()
        assert memory.store.graph.near_entities(north, "compass", 5) == []
        near = memory.store.graph.near_entities(north, "second", 1)
        assert round(near[0].score, 2) == 0.4
