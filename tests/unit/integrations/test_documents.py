"""Documents are memories: what others do to memories, maintenance included, leaves them right."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import Refused
from bethink.integrations.exact_json import (
    OPAQUE_KEY,
    decode_opaque,
    encode_opaque,
    flatten_text,
    to_exact_json,
)
from bethink.integrations.values import Put, ValueStore
from bethink.maintain import JOBS
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from deferred import Deferred
from rows import each_row

integration = Deferred(
    "bethink.integrations.anthropic",
    "bethink.integrations.langgraph",
    "bethink.integrations.openai_agents",
)

USER = ("users", "alice")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def space(embedder: Embedder, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        yield memory


def items_of(session: integration.BethinkSession) -> list[Any]:
    return list(asyncio.run(session.get_items()))


def test_maintenance_leaves_them_alone(space: Memory, clock: FixedClock) -> None:
    """Duplicates, cold and old ones too: every job, years later, without a limit."""
    store, tool, session = (
        integration.BethinkStore(space),
        integration.BethinkMemoryTool(space),
        integration.BethinkSession("s", space),
    )
    said: list[Any] = [{"role": "user", "content": "Alice works at Acme in Berlin"}] * 3
    for number in range(3):
        store.put(USER, f"k{number}", {"text": "Alice works at Acme in Berlin"})
        text = {"path": f"/memories/{number}", "file_text": "Alice works at Acme in Berlin"}
        tool.call({"command": "create", **text})
    asyncio.run(session.add_items(said))
    for text in ("Bob works at Acme in Paris", "Bob works at Acme in Paris now"):
        space.remember(text)
    clock.forward(days=4000)
    done = [
        each.job
        for _ in range(2)
        for each in space.maintain(*JOBS, share=1.0, clock_is_right=True).done
    ]

    assert done
    assert len(store.search(USER)) == 3
    assert tool.call({"command": "view", "path": "/memories"}).count("\n") == 4
    assert items_of(session) == said


def test_what_only_looks_like_a_document_is_passed_over(space: Memory) -> None:
    """Whoever may write memories can write such; nothing breaks and nothing is believed."""
    store, tool, session = (
        integration.BethinkStore(space),
        integration.BethinkMemoryTool(space),
        integration.BethinkSession("s", space),
    )
    store.put(USER, "k", {"v": 1})
    asyncio.run(session.add_items([{"role": "user", "content": "hello"}]))
    (real,) = [item for item in space.browse() if item.kind == "document"]
    kept = dict(real.metadata["document"])
    forged: list[Any] = [
        None, 5, [], {}, {"created_at": 1}, {**kept, "created_at": "soon"}, {**kept, "about": 3},
        {**kept, "about": {}}, {**kept, "body": "no json"}, {**kept, "body": "[]"},
        {**kept, "body": 3}, {**kept, "ttl_minutes": "x"},
        {**kept, "about": {"namespace": ["users", "bob"], "key": "k"}},
        {**kept, "about": {"namespace": [3], "key": "k"}},
        {**kept, "about": {"path": "/memories/x"}}, {**kept, "about": {"path": "/etc/passwd"}},
    ]  # fmt: skip
    for number, about in enumerate(forged):
        for session_name in (f"langgraph:{number}", f"memory-tool:{number}", None):
            space.remember(
                f"forged {number} {session_name}", kind="document", level="raw",
                session=session_name, seq=0, source="memory-tool", tags=real.tags,
                metadata={"document": about, "transcript": about},
            )  # fmt: skip
        space.remember(
            f"turn {number}", level="raw", session="s", source="openai-agents",
            metadata={"transcript": about if number % 2 else {"parts": 1, "body": str(about)}},
        )  # fmt: skip

    assert [item.key for item in store.search(())] == ["k"]
    assert [item.key for item in store.search((), query="forged")] == ["k"]
    assert store.list_namespaces() == [USER]
    assert tool.call({"command": "view", "path": "/memories"}).endswith("0B\t/memories")
    assert items_of(session) == [{"role": "user", "content": "hello"}]
    assert store.sweep_ttl() == 0


def test_who_squats_on_an_address_hinders_nobody(space: Memory) -> None:
    """A key or a session may be taken by whoever can guess it."""
    with Memory.open(":memory:", embedder="none") as elsewhere:
        integration.BethinkStore(elsewhere).put(USER, "k", {"v": 1})
        (item,) = elsewhere.browse()
    store = integration.BethinkStore(space)
    space.remember("squatting", key=item.session, session=item.session, seq=0, kind="document")

    gone = store.get(USER, "k")
    store.put(USER, "k", {"v": 2})

    assert gone is None
    assert [found.value for found in store.search(USER)] == [{"v": 2}]


def test_equal_words_are_not_taken_for_an_equal_value(tmp_path: Path) -> None:
    """Two who write a new key at once may say the same in words; the last value counts."""
    path = tmp_path / "a.db"
    with (
        Memory.open(path=path, embedder="none") as one,
        Memory.open(path=path, embedder="none") as other,
    ):
        stores = [integration.BethinkStore(one), integration.BethinkStore(other)]
        for number in range(12):
            barrier = threading.Barrier(2)

            def write(at: int, key: str, barrier: threading.Barrier) -> None:
                barrier.wait()
                stores[at].put(USER, key, {"by": at}, index=False)

            threads = [
                threading.Thread(target=write, args=(at, f"k{number}", barrier)) for at in (0, 1)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            item_id = stores[0].memory_id(USER, f"k{number}")
            assert item_id is not None
            assert len(one.history(item_id)) == 2
        assert len(stores[0].search(USER, limit=100)) == 12


def test_what_was_deleted_is_restored_like_any_memory(space: Memory) -> None:
    """By its id or by undoing; over a newer value, the last written counts and the next
    write leaves one."""
    store = integration.BethinkStore(space)
    store.put(USER, "k", {"v": 1})
    old = store.memory_id(USER, "k")
    assert old is not None
    store.delete(USER, "k")

    space.restore(old)
    back = store.get(USER, "k")
    store.delete(USER, "k")
    space.undo(old)
    undone = store.get(USER, "k")
    store.delete(USER, "k")
    store.put(USER, "k", {"v": 2})
    new = store.memory_id(USER, "k")
    space.restore(old)
    both = store.get(USER, "k")
    listed = [found.value for found in store.search(USER)]
    store.delete(USER, "k")
    none = store.search(USER)
    space.restore(old)
    space.restore(new or "")
    store.put(USER, "k", {"v": 3})

    assert back is not None
    assert undone is not None
    assert both is not None
    assert (back.value, undone.value) == ({"v": 1}, {"v": 1})
    assert new != old
    assert listed == [both.value]
    assert none == []
    assert [found.value for found in store.search(USER)] == [{"v": 3}]


def test_a_key_may_come_and_go_often(space: Memory) -> None:
    """Each time it is a memory of its own, whatever was erased in between."""
    store = integration.BethinkStore(space)
    ids = []
    for number in range(12):
        store.put(USER, "k", {"v": number})
        ids.append(store.memory_id(USER, "k") or "")
        store.delete(USER, "k")
    for gone in (ids[0], ids[5], ids[11]):
        space.forget(gone, erase=True)

    store.put(USER, "k", {"v": "last"})

    assert len(set(ids)) == 12
    assert [found.value for found in store.search(USER)] == [{"v": "last"}]


def test_what_was_revoked_is_not_read_and_not_overwritten(space: Memory) -> None:
    """A source in quarantine stays there until its owner has decided."""
    store = integration.BethinkStore(space)
    store.put(USER, "k", {"v": 1})
    space.revoke("langgraph/users/alice")

    assert store.get(USER, "k") is None
    with pytest.raises(Refused, match="revoked"):
        store.put(USER, "k", {"v": 2})


def test_a_memory_with_a_low_ceiling_sees_what_it_keeps(embedder: Embedder) -> None:
    """Who may see public memories only keeps public ones."""
    with Memory.open(
        ":memory:", embedder=embedder, settings=Settings(max_classification=0)
    ) as memory:
        store, session = integration.BethinkStore(memory), integration.BethinkSession("s", memory)
        store.put(USER, "k", {"text": "green tea"})
        asyncio.run(session.add_items([{"role": "user", "content": "hello"}]))

        assert store.get(USER, "k") is not None
        assert len(store.search(USER, query="green tea")) == 1
        assert len(items_of(session)) == 1


def test_the_past_knows_what_stood_under_a_key(space: Memory, clock: FixedClock) -> None:
    """An answer as of then has the value of then."""
    store = integration.BethinkStore(space)
    store.put(USER, "k", {"text": "Alice drinks green tea"})
    clock.forward(days=10)
    store.put(USER, "k", {"text": "Alice drinks black coffee"})
    clock.forward(days=10)
    store.delete(USER, "k")

    def then(days: int) -> list[str]:
        hits = space.recall("what does Alice drink?", as_of=NOW + timedelta(days=days)).hits
        return [hit.item.text for hit in hits]

    assert [then(5), then(15), then(25)] == [
        ["Alice drinks green tea"], ["Alice drinks black coffee"], []
    ]  # fmt: skip


def test_a_withdrawn_memory_is_gone_in_the_revision_that_was_seen(space: Memory) -> None:
    """And only in that; pinned ones go too, and come back when they are restored."""
    one = space.remember("The deploy runs on Monday", pinned=True).id
    other = space.remember("Alice drinks green tea").id
    space.update(other, text="Alice drinks black coffee")

    gone = space.withdraw({one: 1, other: 1})

    assert gone == [one]
    assert [item.id for item in space.browse()] == [other]
    assert space.restore(one) == [one]


def test_removing_takes_it_out_of_the_notes_as_well(
    tmp_path: Path, embedder: Embedder, clock: FixedClock
) -> None:
    """Notes repeat what memories say; what was deleted is not found by them either."""
    folder = tmp_path / "notes"
    options: dict[str, Any] = {"settings": Settings(notes_dir=folder), "clock": clock}
    with Memory.open(path=tmp_path / "a.db", embedder=embedder, **options) as memory:
        store = integration.BethinkStore(memory)
        store.put(USER, "k", {"text": "Alice planted a zanzibarium in May"})
        memory.remember("Bob planted an oak in June")
        clock.forward(days=2)
        memory.maintain("notes", share=1.0)
        before = "".join(path.read_text() for path in folder.rglob("*.md"))

        store.delete(USER, "k")

        after = "".join(path.read_text() for path in folder.rglob("*.md"))
        assert ("zanzibarium" in before, "zanzibarium" in after) == (True, False)
        assert "oak" in after


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**80), 2**80) | st.text(max_size=30)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["a", "data", "encrypted_content", OPAQUE_KEY, ""]), inner, max_size=3
    ),
    max_leaves=10,
)  # fmt: skip


@given(value=JSON)
def test_json_is_kept_exactly(value: Any) -> None:
    """Through the text it is kept as, cut into pieces or not; what it says is no longer."""
    kept = to_exact_json(value)
    cut = to_exact_json(encode_opaque(value))

    assert json.dumps(json.loads(kept.text)) == json.dumps(kept.value)
    if not kept.redacted:
        assert kept.value == value
        assert decode_opaque(json.loads(cut.text)) == value
    assert len(flatten_text(kept.value)) <= len(kept.text)


@each_row(
    ("value", "words"),
    [
        ({"text": "green tea"}, "green tea"),
        ({"colour": "red"}, "red"),
        ({"text": "green tea", "since": 2024}, "green tea\nsince: 2024"),
        ({"a": {"b": ["x", None, "", True]}}, "b: x\nb: true"),
        ({}, ""),
    ],
)
def test_what_a_value_says(value: Any, words: str) -> None:
    """Its leaves, with their names where there are several and the name says something."""
    assert flatten_text(value) == words


def test_ciphers_come_back_to_the_letter() -> None:
    """What reads like a key in them is chance; elsewhere it would be taken out."""
    made = random.Random(5)
    for _ in range(20):
        cipher = base64.urlsafe_b64encode(made.randbytes(1500)).decode()
        hidden = f"{cipher[:500]}-sk-ant-api03-{cipher[500:]}"
        picture = "data:image/png;base64," + base64.b64encode(made.randbytes(900)).decode()
        item = {
            "type": "reasoning",
            "encrypted_content": hidden,
            "content": [{"image_url": picture}, {"data": cipher}, {OPAQUE_KEY: "an odd name"}],
        }

        kept = to_exact_json(encode_opaque(item))

        assert kept.redacted == ()
        assert decode_opaque(json.loads(kept.text)) == item


def test_a_secret_in_an_ordinary_field_is_no_cipher() -> None:
    """Its name does not save it, nor does its length."""
    secret = "sk-ant-api03-" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7" * 4

    for item in ({"data": secret}, {"content": secret}, {"signature": f"my key {secret}"}):
        assert to_exact_json(encode_opaque(item)).redacted


def test_a_secret_that_only_its_name_gives_away_goes_too() -> None:
    """The value is looked at part by part and as the text it becomes; it stays JSON."""
    kept = to_exact_json({"secret_value": "y37mEsKAgAzebR3FsncWbt4k", "n": [1]})

    assert kept.redacted == ("secret",)
    assert kept.value == json.loads(kept.text) == {"secret_value": "[redacted:secret]", "n": [1]}


def test_an_item_of_which_a_part_was_forgotten_is_gone(space: Memory) -> None:
    """Rather than given back in pieces; the rest of the conversation stays."""
    session = integration.BethinkSession("s", space)
    said: list[Any] = [
        {"role": "user", "content": "the river rises " * 10_000},
        {"role": "user", "content": "hello"},
    ]
    asyncio.run(session.add_items(said))
    part = next(item for item in space.browse() if "river" in item.text)

    space.forget(part.id)

    assert items_of(session) == said[1:]
    asyncio.run(session.clear_session())
    assert space.browse() == []


def test_a_value_above_the_ceiling_is_neither_changed_nor_hidden_by_one_below(
    tmp_path: Path,
) -> None:
    """Those who see less have their own value; who sees both has the more classified one."""

    def opened(ceiling: int) -> ValueStore:
        settings = Settings(max_classification=ceiling, embedder="none")
        return ValueStore(Memory.open(path=tmp_path / "space.db", settings=settings))

    def put(store: ValueStore, value: str | None) -> None:
        store.write([Put(USER, "key", None if value is None else {"is": value}, None, None)])

    def get(store: ValueStore) -> Any:
        found = store.get(USER, "key")
        return found and (found.fields["value"]["is"], found.document.item.classification)

    above, below = opened(3), opened(2)
    put(above, "secret")
    above.memory.update(above.get(USER, "key").document.item.id, classification=3)
    put(below, "plain")
    assert (get(above), get(below)) == (("secret", 3), ("plain", 1))
    put(above, "changed")
    assert (get(above), get(below)) == (("changed", 3), ("plain", 1))
    put(below, None)
    assert (get(above), get(below)) == (("changed", 3), None)
    above.memory.close()
    below.memory.close()
