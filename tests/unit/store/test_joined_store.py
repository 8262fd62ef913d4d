"""Several stores read as one give what one store with everything would give."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.model import Filters
from bethink.model.item import AUDIENCE
from bethink.ports import Scope, Store, TextSearch
from bethink.ports import store as ports
from bethink.store import joined
from bethink.store.joined import JoinedStore
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
WORDS = [
    "harbour",
    "ledger",
    "violin",
    "copper",
    "lantern",
    "meadow",
    "engine",
    "velvet",
    "orchard",
    "signal",
]
PARTS = {
    "search": ports.ItemSearch, "items": ports.ItemStore, "graph": ports.GraphStore,
    "vectors": ports.VectorStore, "activity": ports.ActivityStore, "admin": ports.StoreAdmin,
}  # fmt: skip
# What changes a store, or is asked only by what does.
WRITES = {
    "put", "find_duplicates", "end", "restore", "set_status", "erase", "merge_entities",
    "split_entities", "add_links", "remove_links", "set_embeddings", "unembedded",
    "set_entity_embeddings", "unembedded_entities", "entities_ahead", "lacking_vectors",
    "remove_damaged", "take_over_use", "put_thread", "drop_thread", "note_edits",
    "forget_files", "dump", "load", "check", "refile",
}  # fmt: skip


def test_every_method_is_merged_or_refused() -> None:
    """A method that is added to a port must be decided on."""
    for part, protocol in PARTS.items():
        methods = {name for name in vars(protocol) if not name.startswith("_")}
        merged = joined._MERGES[part].keys() | joined._OWN[part].keys()
        assert methods - merged == methods & WRITES, part
        assert not merged & WRITES, part
    assert list(joined._MERGES["sync"]) == ["conflicts"]  # all else of it is refused


def _filled(seed: int) -> tuple[Store, Store, list[str]]:
    """One store with everything, and the same in three that are joined."""
    chance = random.Random(seed)
    texts = [
        " ".join(chance.choices(WORDS, k=chance.randrange(3, 9))) + f" {number}"
        for number in range(60)
    ]
    whole = _memory()
    parts = [_memory() for _ in range(3)]
    for number, text in enumerate(texts):
        for memory in (whole, parts[number % 7 % 3]):
            memory.session.clock.now = START + timedelta(minutes=number)  # type: ignore[attr-defined]
            given: Any = {"id": f"m{number:03}", "force": True, "tags": [f"t{number % 3}"]}
            memory.remember(text, **given)
    seen = [("", parts[0].store), ("ben", parts[1].store), ("private", parts[2].store)]
    view: Any = JoinedStore(lambda: seen, lambda: parts[2].store)
    return whole.store, view, texts


def _memory() -> Memory:
    clock = FixedClock(START)
    return Memory(SqliteStore.open(None, space="s"), embedder=_hash(), clock=clock)


def _hash() -> Any:
    from bethink.models import open_embedder

    return open_embedder("hash")


@pytest.mark.parametrize("seed", range(3))
def test_searches_find_and_rank_as_in_one_store(seed: int) -> None:
    """BM25, too: words are weighed by the counts of all stores."""
    whole, view, texts = _filled(seed)
    scope = Scope(Filters(max_classification=3), START + timedelta(days=1))
    vector = _hash().embed_query("copper lantern").vector
    day = (START, START + timedelta(days=1))
    for query in ("copper lantern", "violin 17", "meadow engine velvet", "nothing"):
        asks: list[Any] = [
            lambda store, q=query: store.search.text(TextSearch(q, 20), scope),
            lambda store: store.search.vector(vector, _hash().model, 20, scope),
            lambda store: store.search.time(*day, 20, scope),
        ]
        for ask in asks:
            one, other = (
                sorted((-round(match.score, 9), match.item.id) for match in ask(store).matches)
                for store in (whole, view)
            )
            assert [score for score, _ in one] == [score for score, _ in other]
            worst = one[-1][0] if one else 0.0  # of those that tie with the last any may be left
            assert {x for x in one if x[0] < worst} == {x for x in other if x[0] < worst}
    terms = whole.search.terms(" ".join(texts))
    assert view.search.statistics(iter(terms)) == whole.search.statistics(terms)
    assert view.search.count(scope) == whole.search.count(scope) == view.admin.count()


def test_lists_are_those_of_one_store() -> None:
    """Pages by place and after a memory, ids by a part, journals in the order of time."""
    whole, view, _ = _filled(0)
    scope = Scope(Filters(max_classification=3), START + timedelta(days=1))
    pages = {"limit": 10}, {"limit": 7, "offset": 20}, {"limit": 9, "after": "m040"}
    for page in pages:
        one, other = (
            [item.id for item in store.items.browse(scope, **page)] for store in (whole, view)
        )
        assert one == other
    assert view.items.resolve("m01") == sorted(whole.items.resolve("m01"))
    lines = view.admin.events(limit=100)
    assert [line.item for line in lines] == [line.item for line in whole.admin.events(limit=100)]
    assert [line.seq for line in lines] == list(range(1, 61))
    assert view.admin.events(after=50, limit=5) == lines[50:55]


def test_what_was_unlinked_in_any_store_stays_unlinked() -> None:
    """A recall by persons judges turns, too, and asks what somebody said of them."""
    stores = [_memory() for _ in range(2)]
    for place, memory in enumerate(stores):
        for number in range(2):
            turn: Any = {"id": f"{place}-{number}", "session": f"s{number}", "level": "raw"}
            memory.remember(f"I drink {number + 2} coffees a day", **turn)
        memory.unlink(f"{place}-1", "updates", f"{place}-0")
    view: Any = JoinedStore(
        lambda: [("", stores[0].store), ("ben", stores[1].store)], lambda: stores[1].store
    )

    assert view.graph.unlinked(["0-1", "1-1", "1-0"]) == {("0-1", "0-0"), ("1-1", "1-0")}


def test_a_memory_says_who_sees_it_and_cannot_claim_it() -> None:
    """What is for all carries no mark, whatever its metadata says."""
    _, view, _ = _filled(0)
    found = view.items.get([f"m{number:03}" for number in range(60)])
    assert {item.metadata.get(AUDIENCE) for item in found.values()} == {None, "ben", "private"}

    memory = _memory()
    forged: Any = {AUDIENCE: "private", "colour": "red"}
    made = memory.remember("The harbour is closed", metadata=forged)
    alone: Any = JoinedStore(lambda: [("", memory.store)], lambda: memory.store)
    assert alone.items.get([made.id])[made.id].metadata == {"colour": "red"}


def test_what_would_write_is_refused() -> None:
    """A view of several stores can only be read."""
    _, view, _ = _filled(0)
    for part, protocol in PARTS.items():
        for name in WRITES & set(vars(protocol)):
            with pytest.raises(Refused):
                getattr(getattr(view, part), name)()


def test_the_newest_lines_have_the_numbers_of_the_journal() -> None:
    """So that a place in it can be found again."""
    _, view, _ = _filled(0)
    every = view.admin.events(limit=100)
    assert view.admin.changes(item=None, actor=None, limit=10) == every[::-1][:10]
