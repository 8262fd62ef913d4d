"""The LangGraph store: keys, namespaces, searches and times to live on a real memory."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bethink import Memory
from bethink.errors import NotFound, Refused, TooLarge
from bethink.integrations.exact_json import Redaction
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from deferred import Deferred
from naughty import NAUGHTY
from rows import each_row
from verdicts import updates_nothing

langchain = Deferred("langchain_core.tools", "langchain_core.messages")
langgraph = Deferred(
    "langgraph.graph", "langgraph.prebuilt", "langgraph.runtime", "langgraph.store.base"
)
integration = Deferred("bethink.integrations.langgraph")

USER = ("users", "alice")
KEY = "AKIA" + "Q3EGLQ7XUVZ5T2MB"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def store(embedder: Embedder, clock: FixedClock) -> Iterator[integration.BethinkStore]:
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield integration.BethinkStore(memory, abstain=True)


def keys(found: list[Any]) -> list[str]:
    return [item.key for item in found]


def test_a_value_comes_back_as_it_was(store: integration.BethinkStore) -> None:
    """Any JSON object, whatever is in it."""
    value = {
        "text": 'Grüße \x00 from 東京 \U0001f600\n\t"quoted" \\ back',
        "numbers": [0, -1, 1.5, 1e300, 2**80, -0.0],
        "nested": {"a": {"b": [{"c": None}, [], {}, True, False, ""]}},
        "": "an empty name",
        "deep": [[[[[[[[[[["eleven"]]]]]]]]]]],
    }

    store.put(USER, "k", value)

    found = store.get(USER, "k")
    assert found is not None
    assert found.value == value
    assert json.dumps(found.value) == json.dumps(value)
    assert (found.namespace, found.key) == (USER, "k")


@each_row(
    ("value", "words"),
    [
        ({"a": float("nan")}, "not a JSON number"),
        ({"a": NOW}, "a datetime, which is not JSON"),
        ({1: "a"}, "not a string"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": 10**2000}, "4,096 bits"),
        (["a"], "a JSON object"),
    ],
)
def test_what_would_come_back_otherwise_is_refused(
    store: integration.BethinkStore, value: Any, words: str
) -> None:
    """With the reason, and nothing is stored."""
    with pytest.raises(Refused, match=words):
        store.put(USER, "k", value)

    assert store.get(USER, "k") is None


def test_a_large_value_is_kept_whole_or_refused(store: integration.BethinkStore) -> None:
    """Up to 64 KiB of JSON nothing is cut; above the error says the limit."""
    fits = {"text": "tea " * 15_000}

    store.put(USER, "k", fits)
    with pytest.raises(TooLarge) as refused:
        store.put(USER, "k", {"text": "tea " * 20_000})

    found = store.get(USER, "k")
    assert found is not None
    assert found.value == fits
    assert refused.value.limit == 64 * 1024


def test_depth_has_a_stated_limit(store: integration.BethinkStore) -> None:
    """A value nested without end is refused before it is walked to its end."""
    value: Any = "x"
    for _ in range(5_000):
        value = [value]

    with pytest.raises(TooLarge, match="levels deep"):
        store.put(USER, "k", {"v": value})


def test_a_put_over_another_keeps_when_it_was_created(
    store: integration.BethinkStore, clock: FixedClock
) -> None:
    """The value is the new one, and so is the time of the change."""
    store.put(USER, "k", {"v": 1})
    clock.forward(hours=1)

    store.put(USER, "k", {"v": 2})

    found = store.get(USER, "k")
    assert found is not None
    assert (found.value, found.created_at) == ({"v": 2}, NOW)
    assert found.updated_at == NOW + timedelta(hours=1)


def test_what_was_deleted_is_gone_and_may_come_again(
    store: integration.BethinkStore, clock: FixedClock
) -> None:
    """As a new value, created anew; the old one is in no search meanwhile."""
    store.put(USER, "k", {"text": "Alice drinks green tea"})
    clock.forward(hours=1)

    store.delete(USER, "k")
    store.delete(USER, "never there")
    gone = (store.get(USER, "k"), store.search(USER), store.search(USER, query="tea"))
    left = store.memory.recall("what does Alice drink?").hits
    store.put(USER, "k", {"text": "Alice drinks coffee"})

    assert gone == (None, [], [])
    assert left == ()
    found = store.get(USER, "k")
    assert found is not None
    assert (found.value["text"], found.created_at) == (
        "Alice drinks coffee",
        NOW + timedelta(hours=1),
    )
    assert [hit.item.text for hit in store.memory.recall("what does Alice drink?").hits] == [
        "Alice drinks coffee"
    ]


def test_what_was_forgotten_elsewhere_is_gone_here(store: integration.BethinkStore) -> None:
    """A value is a memory: who forgets that forgets it, and a new one may take its place."""
    store.put(USER, "k", {"v": 1})
    item_id = store.memory_id(USER, "k")
    assert item_id is not None

    store.memory.forget(item_id)
    gone = store.get(USER, "k")
    store.put(USER, "k", {"v": 2})

    assert gone is None
    found = store.get(USER, "k")
    assert found is not None
    assert found.value == {"v": 2}


def test_erasing_leaves_nothing_and_the_key_free(tmp_path: Path, embedder: Embedder) -> None:
    """No byte of the value stays in the file; afterwards the key holds a new value."""
    with Memory.open(path=tmp_path / "a.db", embedder=embedder) as memory:
        store = integration.BethinkStore(memory)
        store.put(USER, "k", {"text": "the zanzibarium is in the cellar"})
        store.put(USER, "k", {"text": "the zanzibarium is upstairs"})
        item_id = store.memory_id(USER, "k")
        assert item_id is not None

        memory.forget(item_id, erase=True)

        assert store.get(USER, "k") is None
        assert store.search(USER) == []
        store.put(USER, "k", {"text": "nothing of the kind"})
        assert store.get(USER, "k") is not None
    for file in tmp_path.iterdir():
        assert b"zanzibar" not in file.read_bytes().lower()


def test_every_value_a_key_had_is_in_its_history(store: integration.BethinkStore) -> None:
    """A change is a revision of one memory."""
    for number in range(3):
        store.put(USER, "k", {"text": f"version {number}"})

    item_id = store.memory_id(USER, "k")
    assert item_id is not None
    assert [item.text for item in store.memory.history(item_id)] == [
        "version 0", "version 1", "version 2"
    ]  # fmt: skip


def test_an_export_carries_the_values(store: integration.BethinkStore, embedder: Embedder) -> None:
    """Taken in elsewhere, every key is there with its value and its times."""
    store.put(USER, "k", {"text": "Alice drinks tea", "n": [1]})
    store.put(USER, "gone", {"v": 1})
    store.delete(USER, "gone")

    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as other:
        other.import_(json.loads(json.dumps(list(store.memory.export()))))
        copy = integration.BethinkStore(other)
        found, again = copy.get(USER, "k"), store.get(USER, "k")
        copy.put(USER, "k", {"v": 2})
        changed = copy.get(USER, "k")

        assert found == again
        assert copy.get(USER, "gone") is None
        assert changed is not None
        assert changed.value == {"v": 2}


def test_equal_values_under_two_keys_are_two(store: integration.BethinkStore) -> None:
    """Deduplication, near or exact, never makes one of them, not even in a search."""
    for name in ("a", "b", "c"):
        store.put(USER, name, {"text": "Bob drinks coffee with oat milk"})

    assert sorted(keys(store.search(USER))) == ["a", "b", "c"]
    assert sorted(keys(store.search(USER, query="who drinks coffee?"))) == ["a", "b", "c"]
    assert (
        keys(store.search(USER, query="who drinks coffee?", limit=2, offset=1))
        == keys(store.search(USER, query="who drinks coffee?"))[1:3]
    )


def test_namespaces_are_told_apart_label_by_label(store: integration.BethinkStore) -> None:
    """However the labels are written, none is the beginning of another by accident."""
    spaces = [("a", "b"), ("a/b",), ("a", "bc"), ("ab",), ('a","b',), ("a", "b", "c")]
    for number, space in enumerate(spaces):
        store.put(space, "k", {"n": number})

    assert [store.get(space, "k").value["n"] for space in spaces] == list(range(6))  # type: ignore[union-attr]
    assert sorted(item.value["n"] for item in store.search(("a", "b"))) == [0, 5]
    assert sorted(item.value["n"] for item in store.search(("a",))) == [0, 2, 5]
    assert len(store.search(())) == 6


def test_a_search_by_words_answers_best_first_or_not_at_all(
    store: integration.BethinkStore,
) -> None:
    """With scores, inside the prefix only, silent where nothing is relevant."""
    store.put(USER, "tea", {"text": "Alice drinks green tea in the morning"})
    store.put(USER, "bike", {"text": "Alice rides a red bicycle to work"})
    store.put(("users", "bob"), "tea", {"text": "Bob drinks green tea at night"})

    found = store.search(USER, query="who drinks green tea?")
    silent = store.search(USER, query="what is the capital of France?")

    assert keys(found)[0] == "tea"
    assert all(item.namespace == USER for item in found)
    scores = [item.score for item in found]
    assert None not in scores
    assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]
    assert silent == []


def test_usually_a_search_gives_as_many_as_there_are(embedder: Embedder) -> None:
    """As LangGraph's own stores do: the nearest first however far, the rest without a score."""
    with Memory.open(":memory:", embedder=embedder) as memory:
        store = integration.BethinkStore(memory)
        store.put(USER, "job", {"text": "I am a plumber"})
        store.put(USER, "food", {"text": "I love pizza and pasta"})
        store.put(USER, "unread", {"text": "never looked at"}, index=False)

        found = store.search(USER, query="tell me what food I love", limit=3)

        assert keys(found) == ["food", "job", "unread"]
        assert found[0].score is not None
        assert found[2].score is None
        assert keys(store.search(USER, query="tell me what food I love", limit=2, offset=1)) == [
            "job",
            "unread",
        ]


def test_without_a_query_the_last_changed_come_first(
    store: integration.BethinkStore, clock: FixedClock
) -> None:
    """Page by page, without a score."""
    for name in ("a", "b", "c", "d"):
        store.put(USER, name, {"n": name})
        clock.forward(minutes=1)
    store.put(USER, "a", {"n": "again"})

    pages = [store.search(USER, limit=2, offset=at) for at in (0, 2, 4)]

    assert [keys(page) for page in pages] == [["a", "d"], ["c", "b"], []]
    assert pages[0][0].score is None


def test_filters_come_before_the_cut(store: integration.BethinkStore) -> None:
    """What a filter leaves is found however much else would be better."""
    for number in range(60):
        store.put(USER, f"k{number}", {"text": "Alice drinks green tea", "n": number})
    store.put(USER, "late", {"text": "At work Alice drinks tea from a samovar", "n": 1000})
    question = "who drinks green tea, or tea from a samovar?"

    found = store.search(USER, query=question, filter={"n": {"$gte": 1000}}, limit=3)

    assert keys(found) == ["late"]


def test_many_results_are_fetched_page_by_page(store: integration.BethinkStore) -> None:
    """A limit above what one recall gives at most is still kept."""
    with updates_nothing():
        for number in range(230):
            store.put(USER, f"k{number}", {"text": f"tea number {number} is green"}, index=["text"])

    found = integration.BethinkStore(store.memory).search(USER, query="green tea", limit=1000)

    assert sorted(keys(found)) == sorted(f"k{number}" for number in range(230))


def test_an_index_says_what_is_read(store: integration.BethinkStore) -> None:
    """Fields by path, none at all, or the store's own; the value is whole in any case."""
    value = {
        "title": "Invoices",
        "body": {"lines": [{"t": "the Rhine floods in spring"}]},
        "x": "y",
    }
    store.put(USER, "fields", value, index=["body.lines[*].t"])
    store.put(USER, "title", value, index=["title"])
    store.put(USER, "none", value, index=False)

    found = store.search(USER, query="when does the Rhine flood?")

    assert keys(found)[0] == "fields"
    assert "none" not in keys(found)
    assert found[0].value == value
    assert sorted(keys(store.search(USER))) == ["fields", "none", "title"]
    assert store.get(USER, "none").value == value  # type: ignore[union-attr]


def test_the_stores_own_fields_hold_where_a_put_names_none(embedder: Embedder) -> None:
    """As an index configuration of other stores does."""
    with Memory.open(":memory:", embedder=embedder) as memory:
        store = integration.BethinkStore(memory, fields=["summary"], abstain=True)
        store.put(USER, "k", {"summary": "tea is green", "secretly": "the vault opens at noon"})

        assert keys(store.search(USER, query="is tea green?")) == ["k"]
        assert store.search(USER, query="when does the vault open?") == []


def test_what_was_put_is_recalled_beside_other_memories(store: integration.BethinkStore) -> None:
    """The values are memories of the space, by an agent and trusted so far."""
    store.memory.remember("Bob drinks coffee")
    store.put(USER, "k", {"text": "Alice drinks green tea"})

    hits = store.memory.recall("what does Alice drink?").hits

    assert hits[0].item.text == "Alice drinks green tea"
    assert (hits[0].item.source, hits[0].item.source_class) == ("langgraph/users/alice", "agent")


def test_secrets_are_taken_out_and_the_caller_is_told(embedder: Embedder) -> None:
    """A mark stands in the value, a callback says what it was, the rest is unchanged."""
    told: list[Redaction] = []
    with Memory.open(":memory:", embedder=embedder) as memory:
        store = integration.BethinkStore(memory, on_redaction=told.append)

        store.put(USER, "k", {"note": f"the key is {KEY}, mind it", "n": 1})
        store.put(USER, "clean", {"note": "nothing to hide"})

        found = store.get(USER, "k")
        assert found is not None
        assert found.value == {"note": "the key is [redacted:aws-access-key], mind it", "n": 1}
        assert told == [Redaction("users/alice/k", ("aws-access-key",))]
        assert KEY not in json.dumps(list(memory.export()))


def test_a_secret_in_a_name_is_refused(store: integration.BethinkStore) -> None:
    """A key that was changed could not be found again."""
    with pytest.raises(Refused, match="secret"):
        store.put(USER, KEY, {"v": 1})


def test_a_batch_sees_what_was_there_before(store: integration.BethinkStore) -> None:
    """Reads come before writes, of two writes to one key the last counts."""
    store.put(USER, "k", {"v": 0})

    results = store.batch(
        [
            langgraph.PutOp(USER, "k", {"v": 1}),
            langgraph.GetOp(USER, "k"),
            langgraph.PutOp(USER, "k", {"v": 2}),
            langgraph.PutOp(USER, "new", {"v": 3}),
            langgraph.PutOp(USER, "gone", {"v": 4}),
            langgraph.PutOp(USER, "gone", None),
            langgraph.SearchOp(USER),
            langgraph.ListNamespacesOp(),
        ]
    )

    assert results[1].value == {"v": 0}  # type: ignore[union-attr]
    assert [len(results[6]), results[7]] == [1, [USER]]  # type: ignore[arg-type]
    assert store.get(USER, "k").value == {"v": 2}  # type: ignore[union-attr]
    assert store.get(USER, "new") is not None
    assert store.get(USER, "gone") is None


def test_a_time_to_live_ends_it(store: integration.BethinkStore, clock: FixedClock) -> None:
    """In every way of looking; a sweep then takes it out of other recalls as well."""
    store.put(USER, "k", {"text": "the door code is four times seven"}, ttl=10)
    store.put(USER, "stays", {"text": "Alice drinks green tea"})
    clock.forward(minutes=10)

    seen = (
        store.get(USER, "k"),
        keys(store.search(USER)),
        "k" in keys(store.search(USER, query="what is the door code?")),
    )
    swept = store.sweep_ttl()

    assert seen == (None, ["stays"], False)
    assert (swept, store.sweep_ttl()) == (1, 0)
    answer = store.memory.recall("what is the door code?", min_confidence=0)
    assert not any("door code" in hit.item.text for hit in answer.hits)


def test_use_begins_the_time_anew_unless_told_otherwise(
    store: integration.BethinkStore, clock: FixedClock
) -> None:
    """Reading and searching refresh, with ``refresh_ttl=False`` they do not."""
    store.put(USER, "read", {"text": "green tea"}, ttl=10)
    store.put(USER, "looked", {"text": "black coffee"}, ttl=10)
    clock.forward(minutes=8)
    store.get(USER, "read")
    store.get(USER, "looked", refresh_ttl=False)
    clock.forward(minutes=8)

    assert store.get(USER, "looked") is None
    assert keys(store.search(USER)) == ["read"]
    clock.forward(minutes=8)
    assert keys(store.search(USER, query="green tea", refresh_ttl=False)) == ["read"]
    clock.forward(minutes=8)
    assert store.search(USER) == []


def test_a_put_after_its_time_is_a_new_value(
    store: integration.BethinkStore, clock: FixedClock
) -> None:
    """And the default of the store holds where a put names no time."""
    store.ttl_config = {"default_ttl": 5, "refresh_on_read": False}
    store.put(USER, "k", {"v": 1})
    clock.forward(minutes=6)
    gone = store.get(USER, "k")
    store.put(USER, "k", {"v": 2}, ttl=None)
    clock.forward(days=1)

    assert gone is None
    found = store.get(USER, "k")
    assert found is not None
    assert found.created_at == NOW + timedelta(minutes=6)


@pytest.mark.parametrize("ttl", [-1, float("inf"), float("nan")])
def test_a_time_that_is_none_is_refused(store: integration.BethinkStore, ttl: float) -> None:
    """Rather than kept for ever or never."""
    with pytest.raises(Refused, match="ttl"):
        store.put(USER, "k", {"v": 1}, ttl=ttl)


@each_row(
    "hostile",
    [
        *("x' OR '1'='1", "x') UNION SELECT * FROM item --", "$.x", "x\x00y", "a.b", "__class__"),
        *("{0.__class__}", "%s", "x]", "", "🜏" * 50, "'; DROP TABLE item; --"),
    ],
)
def test_the_key_of_a_filter_is_only_ever_a_name(
    store: integration.BethinkStore, hostile: str
) -> None:
    """Nothing matches by it that has no such field, and nothing breaks."""
    store.put(USER, "k", {"text": "green tea"})
    store.put(("other",), "k", {"text": "their secret plan"})

    for wanted in ("1", {"$ne": "x", "$gt": 0}, {f"x{hostile}": hostile}):
        assert store.search(USER, filter={hostile: wanted}) == []
        assert store.search(USER, query="tea", filter={hostile: wanted}) == []
    assert len(store.search(())) == 2


@each_row("text", NAUGHTY[::17], ids=lambda text: repr(text)[:30])
def test_naughty_strings_are_values_like_others(store: integration.BethinkStore, text: str) -> None:
    """As a value, a key and a query; or they are refused in our own words."""
    try:
        store.put(USER, text or "k", {"v": text, text or "k": 1})
    except Refused:
        assert store.search(USER) == []
        return
    found = store.get(USER, text or "k")
    assert found is not None
    assert found.value == {"v": text, text or "k": 1} or "[redacted:" in str(found.value)
    store.search(USER, query=text, filter={text or "k": 1})
    store.search(USER, query=text * 3 + "x" * 9000)


def test_names_that_langgraph_refuses_are_refused(store: integration.BethinkStore) -> None:
    """By its own checks, and by ours where an operation goes around them."""
    for bad in ((), ("langgraph",), ("a.b",), ("",)):
        with pytest.raises(langgraph.InvalidNamespaceError):
            store.put(bad, "k", {"v": 1})
    with pytest.raises(Refused):
        store.batch([langgraph.PutOp("users", "k", {"v": 1})])  # type: ignore[arg-type]
    with pytest.raises(Refused):
        store.batch([langgraph.PutOp(tuple("x" * 61), "k", {"v": 1})])
    with pytest.raises(Refused):
        store.batch([langgraph.GetOp(USER, 3)])  # type: ignore[arg-type]
    with pytest.raises(Refused):
        store.batch([object()])  # type: ignore[list-item]
    for odd in ({"limit": -1}, {"offset": -1}, {"limit": "all"}, {"query": 5}, {"filter": ["n"]}):
        with pytest.raises(Refused):
            store.search(USER, **odd)  # type: ignore[arg-type]


def test_other_spaces_see_nothing(tmp_path: Path, embedder: Embedder) -> None:
    """The same key in two spaces is two values."""
    with (
        Memory.open(path=tmp_path / "a.db", embedder=embedder) as one,
        Memory.open(path=tmp_path / "b.db", embedder=embedder) as other,
    ):
        integration.BethinkStore(one).put(USER, "k", {"v": "one"})

        assert integration.BethinkStore(other).get(USER, "k") is None
        assert integration.BethinkStore(other).list_namespaces() == []


def test_two_stores_on_one_space_lose_no_write(tmp_path: Path) -> None:
    """Both write the same keys from several threads; each key ends with a value somebody
    wrote, created once, and all revisions are there."""
    path = tmp_path / "a.db"
    with (
        Memory.open(path=path, embedder="none") as one,
        Memory.open(path=path, embedder="none") as other,
    ):
        stores = [integration.BethinkStore(one), integration.BethinkStore(other)]
        errors: list[BaseException] = []

        def write(number: int) -> None:
            try:
                for turn in range(8):
                    stores[number % 2].put(USER, f"k{turn % 2}", {"by": number, "turn": turn})
            except BaseException as error:  # noqa: BLE001 - handed to the test
                errors.append(error)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert errors == []
        assert sorted(keys(stores[0].search(USER))) == ["k0", "k1"]
        revisions = [len(one.history(stores[0].memory_id(USER, key) or "")) for key in ("k0", "k1")]
        assert revisions == [16, 16]


def test_the_event_loop_goes_on_while_a_batch_runs(store: integration.BethinkStore) -> None:
    """Async calls give what sync ones give, and others run beside them."""

    async def main() -> tuple[int, Any]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(store.aput(USER, f"k{n}", {"n": n}) for n in range(5)))
        found = await store.asearch(USER, limit=10)
        await store.adelete(USER, "k0")
        spaces = await store.alist_namespaces()
        ticking.cancel()
        return ticks, (len(found), spaces, await store.aget(USER, "k0"))

    ticks, seen = asyncio.run(main())

    assert ticks > 20
    assert seen == (5, [USER], None)


def test_a_space_can_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of an open memory; anything else is refused."""
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path))
    store = integration.BethinkStore("graphs")
    store.put(USER, "k", {"v": 1})
    store.memory.close()

    again = integration.BethinkStore("graphs")

    assert again.get(USER, "k") is not None
    again.memory.close()
    with pytest.raises(Refused, match="not a memory"):
        integration.BethinkStore(42)  # type: ignore[arg-type]


class _Asked(TypedDict):
    question: str
    answer: str


def test_nodes_of_a_graph_use_it(store: integration.BethinkStore) -> None:
    """Through the runtime and by injection, in one compiled graph, across two runs."""
    from langgraph.store.base import BaseStore  # a graph reads the annotation as it is written

    def learn(state: _Asked, runtime: langgraph.Runtime[None]) -> dict[str, str]:
        assert runtime.store is not None
        if "?" not in state["question"]:
            runtime.store.put(USER, "fact", {"text": state["question"]})
        return {}

    async def reply(state: _Asked, *, store: BaseStore) -> dict[str, str]:
        found = await store.asearch(USER, query=state["question"])
        return {"answer": found[0].value["text"] if found else "I do not know"}

    graph = langgraph.StateGraph(_Asked)
    graph.add_node("learn", learn)
    graph.add_node("reply", reply)
    graph.add_edge(langgraph.START, "learn")
    graph.add_edge("learn", "reply")
    graph.add_edge("reply", langgraph.END)
    app = graph.compile(store=store)

    async def main() -> list[str]:
        asked = ["My bicycle is turquoise", "what is my bicycle like?", "who won the election?"]
        return [(await app.ainvoke({"question": each, "answer": ""}))["answer"] for each in asked]

    assert asyncio.run(main()) == [
        "My bicycle is turquoise", "My bicycle is turquoise", "I do not know"
    ]  # fmt: skip


def test_a_prebuilt_tool_node_hands_it_to_tools(store: integration.BethinkStore) -> None:
    """LangGraph's own injection of a store into a tool."""

    @langchain.tool
    def save(text: str, store: Annotated[langgraph.BaseStore, langgraph.InjectedStore()]) -> str:
        """Saves a text."""
        store.put(USER, "saved", {"text": text})
        return "saved"

    call = langchain.AIMessage(
        "", tool_calls=[{"name": "save", "args": {"text": "tea is green"}, "id": "1"}]
    )
    graph = langgraph.StateGraph(langgraph.MessagesState)
    graph.add_node("tools", langgraph.ToolNode([save]))
    graph.add_edge(langgraph.START, "tools")
    app = graph.compile(store=store)

    messages: list[langchain.AnyMessage] = app.invoke({"messages": [call]})["messages"]

    assert messages[-1].content == "saved"
    assert store.get(USER, "saved").value == {"text": "tea is green"}  # type: ignore[union-attr]


def test_an_unsure_answer_is_marked(store: integration.BethinkStore) -> None:
    """With ``abstain`` every value says how sure the answer is; a list without a query does not."""
    store.put(("team",), "key", {"text": "The deploy key lives in vault B"})
    store.put(("team",), "tea", {"text": "Maria likes green tea in the morning"})
    asked = ("where does the deploy key live?", "who holds a key to the tea room?")
    outcomes = {}
    for question in asked:
        answer = store.memory.recall(question)
        for found in store.search(("team",), query=question):
            assert isinstance(found, integration.RecalledItem)
            assert (found.outcome, found.confidence) == (answer.status, answer.confidence)
            assert found.dict()["outcome"] == found.outcome
            outcomes[question] = found.outcome

    assert outcomes[asked[0]] == "found"
    assert not any(isinstance(found, integration.RecalledItem) for found in store.search(("team",)))


def test_a_store_sees_nothing_above_its_ceiling(embedder: Embedder, clock: FixedClock) -> None:
    """Not even by what it would change: the memory is the one below the ceiling."""
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        secret = memory.remember("The merger is called Heron", classification=3)
        store = integration.BethinkStore(memory)

        assert store.memory.settings.max_classification == 2
        with pytest.raises(NotFound):
            store.memory.stored(secret.id)
