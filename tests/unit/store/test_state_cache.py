"""The cache of a store: what it gives is what a fresh read would give."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.store.sql.state_cache import CachePart, StateCache
from bethink.store.sqlite import SqliteStore

TEXTS: CachePart[list[str]] = CachePart(limit=3)
BUMP = "UPDATE meta SET value = value + 1 WHERE name = 'generation'"


def counters(path: Path | str) -> apsw.Connection:
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value)")
    db.execute("INSERT OR IGNORE INTO meta VALUES ('generation', '1'), ('text', '')")
    return db


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    with closing(counters(tmp_path / "space.db")) as db:
        yield db


@pytest.fixture
def cache() -> StateCache:
    return StateCache()


def text_of(db: apsw.Connection) -> list[str]:
    return [db.execute("SELECT value FROM meta WHERE name = 'text'").get]


def write(db: apsw.Connection, text: str) -> None:
    db.execute("UPDATE meta SET value = ? WHERE name = 'text'", (text,))
    db.execute(BUMP)


def read(db: apsw.Connection, cache: StateCache, key: str = "") -> list[str]:
    return cache.get(db, TEXTS, lambda: text_of(db), key=key)


def test_in_one_state_a_value_is_made_once(db: apsw.Connection, cache: StateCache) -> None:
    """The same object, for its key and its part alone."""
    first = read(db, cache)
    assert read(db, cache) is first
    assert read(db, cache, "other") is not first
    assert cache.get(db, CachePart[list[str]](), lambda: text_of(db)) is not first
    assert read(db, cache) is first


def test_a_write_makes_it_anew(db: apsw.Connection, cache: StateCache) -> None:
    """Whichever connection wrote."""
    assert read(db, cache) == [""]
    write(db, "tea")
    assert read(db, cache) == ["tea"]


def test_nothing_is_given_or_kept_inside_a_write(db: apsw.Connection, cache: StateCache) -> None:
    """A generation that was rolled back is used again, by another write."""
    before = read(db, cache)
    db.execute("BEGIN IMMEDIATE")
    assert read(db, cache) is not before
    write(db, "undone")
    assert read(db, cache) == ["undone"]
    assert cache.latest(db, TEXTS) is None
    db.execute("ROLLBACK")
    assert cache.latest(db, TEXTS) is before
    write(db, "kept")
    assert read(db, cache) == ["kept"]


def test_a_part_keeps_no_more_keys_than_its_limit(db: apsw.Connection, cache: StateCache) -> None:
    """One key too many begins anew."""
    first, second, third = (read(db, cache, key) for key in "abc")
    assert [read(db, cache, key) for key in "abc"] == [first, second, third]
    assert read(db, cache, "a") is first
    read(db, cache, "d")
    assert read(db, cache, "a") is not first


def test_a_value_that_has_grown_too_large_is_made_anew(
    db: apsw.Connection, cache: StateCache
) -> None:
    """The other keys stay."""
    part: CachePart[list[int]] = CachePart(limit=2, is_full=lambda found: len(found) > 2)
    large, small = (cache.get(db, part, list, key=key) for key in ("large", "small"))
    large += [1, 2]
    assert cache.get(db, part, list, key="large") is large
    large += [3]
    assert cache.get(db, part, list, key="large") == []
    assert cache.get(db, part, list, key="small") is small


def test_a_part_may_have_a_version_of_its_own(db: apsw.Connection, cache: StateCache) -> None:
    """Then other writes leave it; and the last one made can be the start of the next."""
    first = cache.get(db, TEXTS, lambda: ["one"], state="v1")
    write(db, "tea")
    assert cache.get(db, TEXTS, lambda: ["two"], state="v1") is first
    assert cache.latest(db, TEXTS) is first
    second = cache.get(db, TEXTS, lambda: ["two"], state="v2")
    assert second == ["two"]
    assert cache.latest(db, TEXTS) is second
    assert cache.latest(db, CachePart[list[str]]()) is None


def test_without_a_generation_nothing_is_kept(db: apsw.Connection, cache: StateCache) -> None:
    """Where rot has taken the count, no change would be noticed."""
    db.execute("UPDATE meta SET value = 'x' WHERE name = 'generation'")
    assert read(db, cache) == [""]
    db.execute("UPDATE meta SET value = 'tea' WHERE name = 'text'")
    assert read(db, cache) == ["tea"]


def test_nothing_is_a_value_too(db: apsw.Connection, cache: StateCache) -> None:
    """It is not looked for again."""
    part: CachePart[None] = CachePart()
    made: list[None] = []
    for _ in range(3):
        cache.get(db, part, lambda: made.append(None))
    assert len(made) == 1


def test_a_reader_of_an_older_state_fills_its_own(
    db: apsw.Connection, cache: StateCache, tmp_path: Path
) -> None:
    """What it adds to a value that it holds is never given to a reader of the new state."""
    with closing(counters(tmp_path / "space.db")) as old:
        old.execute("BEGIN")
        seen = read(old, cache)
        write(db, "tea")
        assert read(db, cache) == ["tea"]
        seen.append("of the old state")
        assert read(old, cache) == [""]
        assert read(db, cache) == ["tea"]
        old.execute("COMMIT")
        assert read(old, cache) == ["tea"]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("read", "begin", "write", "commit", "rollback")),
        st.integers(0, 1),
        st.sampled_from("abcd"),
    ),
    max_size=40,
)


@given(steps=STEPS)
def test_what_is_given_is_what_the_transaction_reads(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]]
) -> None:
    """Whatever two connections read, write, commit and take back."""
    path, cache = tmp_path_factory.mktemp("cache") / "space.db", StateCache()
    with closing(counters(path)) as one, closing(counters(path)) as two:
        one.set_busy_timeout(0), two.set_busy_timeout(0)
        for number, (step, place, key) in enumerate(steps):
            db = (one, two)[place]
            is_open = not db.get_autocommit()
            try:
                if step == "read":
                    assert read(db, cache, key) == text_of(db)
                elif step == "begin" and not is_open:
                    db.execute("BEGIN")
                elif step == "write" and is_open:
                    write(db, f"{number}")
                elif step in {"commit", "rollback"} and is_open:
                    db.execute(step)
            except apsw.BusyError:
                continue
        for db in (one, two):
            if not db.get_autocommit():
                db.execute("ROLLBACK")
            assert all(read(db, cache, key) == text_of(db) for key in "abcd")


def test_many_threads_get_what_they_read(tmp_path: Path) -> None:
    """While one of them writes."""
    path, cache, wrong = tmp_path / "space.db", StateCache(), []

    def compare() -> None:
        with closing(apsw.Connection(str(path))) as db:
            for turn in range(200):
                db.execute("BEGIN")
                found = read(db, cache, "abcd"[turn % 4])
                if found != text_of(db):
                    wrong.append(found)
                db.execute("COMMIT")

    with closing(counters(path)) as db:
        threads = [threading.Thread(target=compare) for _ in range(4)]
        for thread in threads:
            thread.start()
        for number in range(100):
            with db:
                write(db, f"{number}")
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_view_below_a_ceiling_has_its_own() -> None:
    """All parts of one store share theirs."""
    store = SqliteStore.open(None, space="test")
    below = store.below(0)
    caches = {id(one.search._cache): one for one in (store, below)}
    assert len(caches) == 2
    for one in (store, below):
        of_vectors, of_graph = one.search._vectors._cache, one.graph._cache
        assert of_vectors is of_graph is one.search._cache
    store.close()
