"""A store that has answered before answers as one that was just opened."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink.ports import TextSearch
from bethink.store.sqlite import SqliteStore
from records import MODEL, NOW, at, embedding, mention, record, scope
from thorough import examples

WORDS = ("harbour", "crane", "yellow", "ferry", "odense", "invoice", "billing", "gate")
NAMES = ("Ana", "Ben", "Cleo")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("put", "put", "revise", "end", "erase", "hide", "use")),
        st.integers(0, 9),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=8,
)


def make(item: str, seed: int, *, rev: int = 1, classification: int = 1) -> Any:
    """A record with words, an entity and passages that follow from the seed."""
    dice = random.Random(seed)
    passages = tuple(embedding(1000 * seed + part) for part in range(seed % 3))
    return record(
        item,
        " ".join(dice.choices(WORDS, k=5)),
        rev=rev,
        classification=classification,
        topic=f"topic {seed % 2}",
        mentions=(mention(dice.choice(NAMES)),),
        embedding=embedding(seed)._replace(passages=passages),
    )


class Writer:
    """Another program that writes to the space."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore.open(path, space="laws")
        self.revisions: dict[str, int] = {}
        self.seed = 0

    def step(self, kind: str, place: int, classification: int) -> None:
        self.seed += 1
        item = f"i{place}"
        known = sorted(self.revisions)
        if kind == "put" or not known:
            item = f"{item}-{self.seed}"
            self.revisions[item] = 1
            self._put(make(item, self.seed, classification=classification))
            return
        item = known[place % len(known)]
        if kind in {"revise", "hide"}:
            self.revisions[item] += 1
            hidden = 3 if kind == "hide" else classification
            self._put(make(item, self.seed, rev=self.revisions[item], classification=hidden))
        elif kind == "use":
            self.store.activity.note_use([item], NOW)
        else:
            del self.revisions[item]
            if kind == "erase":
                self.store.items.erase([item], actor="x", now=NOW)
            else:
                self.store.items.end([item], how="forgotten", actor="x", now=NOW)

    def _put(self, made: Any) -> None:
        self.store.items.put([made], actor="x", now=NOW)


def answers(store: SqliteStore, ids: list[str]) -> list[Any]:
    """What a store says to every kind of question, as plain values."""
    found: list[Any] = []
    for view in (store, store.below(1)):
        for chosen in (scope(), scope(topics=("topic 1",)), scope(entities=("Ana",))):
            words = view.search.text(TextSearch("harbour crane ferry", 5), chosen)
            near = view.search.vector(embedding(3).vector, MODEL, 5, chosen)
            found += [words, near, view.search.substring("harbor", 5, chosen)]
            found.append(sorted(item.id for item in view.search.in_scope(ids, chosen)))
        made = view.vectors.embeddings(ids, MODEL)
        found.append({key: (one.vector.tolist(), len(one.passages)) for key, one in made.items()})
        found.append(view.graph.entities_with(("ana", "ben"), 5))
        past = scope(as_of=at(days=-1))
        found.append(view.search.text(TextSearch("harbour crane"), past).matches)
    return found


@settings(max_examples=examples(8, 15), deadline=None)
@given(steps=STEPS)
def test_a_warm_store_answers_as_a_fresh_one(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    """Whatever another program stores, revises, classifies, ends or erases in between."""
    path = tmp_path_factory.mktemp("warm") / "space.db"
    writer, warm = Writer(path), SqliteStore.open(path, space="laws")
    try:
        for step in steps:
            writer.step(*step)
            fresh = SqliteStore.open(path, space="laws")
            ids = [*writer.revisions, "nobody"]
            expected = answers(fresh, ids)
            fresh.close()
            assert answers(warm, ids) == expected
            assert answers(warm, ids) == expected
    finally:
        warm.close()
        writer.store.close()


def test_a_search_inside_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    """What was read of it would be taken for what the next write commits."""
    store = SqliteStore.open(tmp_path / "space.db", space="laws")
    store.items.put([make(f"a{n}", n) for n in range(4)], actor="x", now=NOW)
    ids = [f"a{n}" for n in range(4)] + ["b", "c"]
    before = answers(store, ids)
    with pytest.raises(ZeroDivisionError), store._connections.write_transaction() as db:  # noqa: PT012 - one write
        db.execute("UPDATE item SET status = 'superseded' WHERE id = 'a1'")
        db.execute("DELETE FROM vector WHERE rid = 2")
        db.execute("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
        store.search.text(TextSearch("harbour crane ferry", 5), scope())
        store.search.in_scope(ids, scope())
        store.vectors.embeddings(ids, MODEL)
        raise ZeroDivisionError
    assert answers(store, ids) == before
    store.activity.note_use(["a0"], NOW)
    fresh = SqliteStore.open(tmp_path / "space.db", space="laws")
    assert answers(store, ids) == answers(fresh, ids)
    fresh.close()
    store.close()
