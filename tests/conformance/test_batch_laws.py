"""Many texts are looked up and written at once, as each alone would be, on every store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from bethink import Memory
from bethink.ports import Record, Store
from bethink.store.postgres import session
from bethink.store.sqlite import SqliteStore
from postgres_server import initialised_url, open_space
from records import at, mention, record, scope


class Kind(NamedTuple):
    """A kind of store, and how to open one in a folder."""

    name: str
    open: Callable[[Path], Store]


STORES = [
    Kind("sqlite", lambda folder: SqliteStore.open(folder / "space.db", space="laws")),
    Kind("postgres", open_space),
]


@pytest.fixture(params=STORES, ids=lambda kind: kind.name)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = request.param.open(tmp_path)
    yield opened
    opened.close()


def put(store: Store, *records: Record, seconds: float = 0) -> None:
    store.items.put(records, actor="tester", now=at(seconds=seconds))


def test_duplicates_of_many_texts_are_those_of_each(store: Store) -> None:
    """With the same words first; of more than fit, and of some that are out of scope, too."""
    put(
        store,
        *(
            record(
                f"i{n:03d}",
                fingerprint=f"print {n % 3}",
                sketch=(n % 5, 100 + n % 7),
                topic="other" if n % 2 else None,
                skip_duplicate=False,
            )
            for n in range(200)
        ),
    )
    store.items.end(["i003", "i006"], how="forgotten", actor="tester", now=at(hours=1))
    asked = [(f"print {n}", (n, 100 + n)) for n in range(6)]
    asked += [("none", ()), ("none", (100,)), ("none", (99,)), ("print 1", ())]

    for where in (scope(), scope(topics=("other",)), scope(topics=("nothing",))):
        together = store.items.find_duplicates(asked, where)

        assert together == [store.items.find_duplicates([one], where)[0] for one in asked]
        first = [[int(item.id[1:]) for item in found] for found in together]
        assert all(len(found) <= 64 for found in first)
        for number, found in enumerate(first[:3]):
            same = [place for place, n in enumerate(found) if n % 3 == number]
            assert same[: len(same)] == list(range(len(same)))
    assert len(store.items.find_duplicates([("print 0", ())], scope())[0]) == 64
    assert store.items.find_duplicates([], scope()) == []


def test_names_in_many_texts_are_those_of_each(store: Store) -> None:
    """Longest first and no more than asked for, whichever other texts are looked up."""
    names = [mention(name) for name in ("Ana", "Ana Berg", "Ben", "New York", "田中")]
    put(store, record("a", mentions=tuple(names), classification=0))
    put(store, record("b", mentions=(mention("Secret Project"),), classification=3))
    texts = ("Ana Berg met Ben", "", "Ben", "nobody", "田中さん in New York", "Secret Project")

    for limit, level in ((8, 3), (1, 3), (8, 0), (0, 3)):
        together = store.graph.find_entities(texts, limit, max_classification=level)

        alone = [
            store.graph.find_entities((text,), limit, max_classification=level)[0] for text in texts
        ]
        assert together == alone
        assert [len(found) for found in together] == [
            min(limit, count) for count in (3, 0, 1, 0, 2, int(level == 3))
        ]
    assert store.graph.find_entities(()) == []


def test_mentions_of_a_batch_are_those_of_its_memories_in_turn(store: Store) -> None:
    """Counts, names and the level from which a name is known do not depend on the batch."""
    given = [
        ("a", 3, (mention("ACME", "org", "Acme Corp"),)),
        ("b", 1, (mention("Acme", "org"), mention("Ben"))),
        ("c", 0, (mention("acme", "org"), mention("acme", "org"))),
        ("d", 2, (mention("Acme!", "org", "Acme Corp"),)),
    ]
    records = [record(key, mentions=who, classification=level) for key, level, who in given]
    put(store, *records)
    again = [record(f"{one.item.id}2", mentions=one.mentions) for one in records[:1]]
    put(store, *again, seconds=1)

    (acme,) = store.graph.find_entities(("acme",))[0]

    assert (acme.name, acme.mentions) == ("acme", 5)
    assert [
        [one.name for one in found]
        for found in store.graph.find_entities(("acme corp", "ben"), max_classification=0)
    ] == [["acme"], []]


def test_turns_of_many_sessions_follow_each_other(store: Store) -> None:
    """Numbered in their session and linked to the turn before, in a batch as one by one."""
    for start in (0, 30):
        put(
            store,
            *(
                record(f"t{n:02d}", session=f"s {n % 4}", classification=int(n % 8 == 0))
                for n in range(start, start + 30)
            ),
            seconds=start,
        )

    for number in range(4):
        turns = [f"t{n:02d}" for n in range(60) if n % 4 == number]
        found = store.items.get(turns)
        links = store.graph.follows(turns)
        public = [one for one in turns if found[one].classification == 0]

        assert {(later, before) for before, later in pairwise(public)} <= set(links)
        assert [found[one].seq for one in public] == sorted(found[one].seq for one in public)
        assert len({later for later, _ in links}) == len(links)


def test_a_batch_on_a_server_needs_as_many_statements_as_a_memory() -> None:
    """Round trips and statements do not grow with what is written at once."""
    sent: list[str] = []
    make = session.Session._sent

    def count(self: session.Session, asked: Any, *rest: Any) -> session.Sent:
        sent.append(asked.statement.sql)
        return make(self, asked, *rest)

    def drafts(start: int, count: int) -> list[dict[str, object]]:
        return [
            {
                "text": f"Priya told Team{n % 9} that plan {n} of {start} was signed in Lisbon",
                "session": f"talk {n % 6}" if n % 2 else None,
                "key": f"key {start} {n}",
            }
            for n in range(count)
        ]

    with Memory.open("batch", store=initialised_url(), embedder="hash") as memory:
        memory.remember_many(drafts(0, 40))
        with patch.object(session.Session, "_sent", count):
            memory.remember_many(drafts(100, 10))
            few = len(sent)
            sent.clear()
            memory.remember_many(drafts(1000, 200))

    assert len(sent) <= few + 20, [sql for sql in sent if sent.count(sql) > 20][:1]
