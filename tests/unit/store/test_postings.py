"""Posting lists: kept in step in blocks of any size, and scores that equal those of the texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest
from bare_store import EVERYTHING, add, empty_database, hydrate, index_rows, within
from hypothesis import given, settings
from hypothesis import strategies as st
from old_schema import bring_back

from bethink.ports import TextSearch
from bethink.store.ranking import WeightedQuery, weight_query
from bethink.store.sql.search import postings, word_index
from bethink.store.sql.search.lexical import (
    SearchContext,
    parse_query,
    search_text,
    word_statistics,
)
from bethink.store.sql.search.postings import PostingLists
from bethink.store.sql.search.scope import Condition, find_few
from bethink.store.sql.search.terms import tokenizer
from bethink.store.sql.state_cache import StateCache
from bethink.store.sqlite import SqliteStore
from records import NOW, mention, record, scope
from rows import each_row

VOCABULARY = [f"k{letter}{other}k" for letter in "abdegiou" for other in "bdgtx"]


@pytest.fixture(autouse=True)
def small_blocks() -> Iterator[None]:
    """Blocks of 4 and 16 row ids, so that few memories fill them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postings, "SMALL_BLOCK", 4)
        patch.setattr(postings, "LARGE_BLOCK", 16)
        patch.setattr(word_index, "BLOCK_ROWS", 4)
        yield


def texts(rng: random.Random, count: int, words: int = 8) -> list[str]:
    weights = [1 / (rank + 1) for rank in range(len(VOCABULARY))]
    return [
        " ".join(rng.choices(VOCABULARY, weights, k=rng.randint(1, words))) for _ in range(count)
    ]


def found(db: apsw.Connection, search: TextSearch, cache: StateCache) -> list[tuple[str, float]]:
    result = search_text(search, SearchContext(db, EVERYTHING, hydrate, cache))
    return [(match.item.id, match.score) for match in result.matches]


def judged(db: apsw.Connection, search: TextSearch) -> list[tuple[str, float]]:
    """The best by reading every text."""
    reading = parse_query(db, search.text)
    query = weight_query(reading.terms, word_statistics(db, reading.index_terms), search)
    scores = [(f"m{row.rid}", score_text(db, query, row)) for row in index_rows(db)]
    best = sorted((-score, identity) for identity, score in scores if score > 0.0)
    return [(identity, -score) for score, identity in best[: search.depth]]


def score_text(db: apsw.Connection, query: WeightedQuery, row: word_index.IndexRow) -> float:
    text, about = tokenizer(db)(row.text), tokenizer(db)(row.about)
    if len(text) + len(about) > 120:
        return query.score_best_window(text, about).score
    return query.score(text, about, len(text) + len(about)).score


def remove(db: apsw.Connection, rids: set[int]) -> None:
    rows = [row for row in index_rows(db) if row.rid in rids]
    word_index.unindex_rows(db, rows)
    db.executemany("DELETE FROM item WHERE rid = ?", [(row.rid,) for row in rows])


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 25), st.integers(0, 12)), max_size=6), st.integers(0, 99))
def test_lists_match_the_texts_after_any_writes(steps: list[tuple[int, int]], seed: int) -> None:
    """Through blocks that fill, merge and lose rows, and row ids that are used again."""
    rng = random.Random(seed)
    db, cache = empty_database(), StateCache()
    for added, removed in steps:
        with db:
            add(db, texts(rng, added))
            there = [row.rid for row in index_rows(db)]
            # The last ones more often: their row ids are used again.
            remove(db, set(rng.sample(there[-20:], min(removed, len(there[-20:])))))
        assert word_index.verify_word_index(db) == []
        db.execute("UPDATE meta SET value = value + 1 WHERE name = 'generation'")
        search = TextSearch(" ".join(rng.sample(VOCABULARY[:12], 3)), depth=rng.choice((1, 5, 50)))
        assert found(db, search, cache) == judged(db, search)


@pytest.mark.parametrize("about_weight", [0.5, 1.0, 2.0])
def test_scores_are_exact_where_arrays_alone_cannot_tell(about_weight: float) -> None:
    """Names in full or in one word, long memories, words around the text, very many of one."""
    rng = random.Random(3)
    db = empty_database()
    long = [" ".join(texts(rng, 40)) for _ in range(12)]
    named = ["we call parse_config here", "parseconfig it is", "parse and then config", "config"]
    with db:
        add(db, [*texts(rng, 30), *long, *named, "kabk " * 400, *texts(rng, 9)])
    for asked in ("parse_config kabk", "parseconfig", "kabk kadk kegk", "config kabk parse"):
        search = TextSearch(asked, depth=12, about_weight=about_weight)
        assert found(db, search, StateCache()) == judged(db, search)


@each_row("last", [0, 3, 17, 40, 99])
def test_an_index_narrows_a_search_and_changes_nothing_else(last: int) -> None:
    """In blocks and beyond them, and whatever else is asked of the rows."""
    rng = random.Random(last)
    db = empty_database()
    with db:
        add(db, texts(rng, 50))
    few = Condition("SELECT i.rid FROM item AS i WHERE i.rid <= ?", (last,))
    for further in ("1", "i.rid % 3 = 0"):
        wide = within(f"i.rid <= ? AND {further}", last)
        narrow = find_few(db, StateCache(), wide._replace(indexed=(few,)))
        assert narrow.rows is not None
        for asked in ("kabk", "kadk kegk", "kabk kidk koxk kugk"):
            search = TextSearch(asked, depth=8)
            narrowed = search_text(search, SearchContext(db, narrow, hydrate))
            assert narrowed == search_text(search, SearchContext(db, wide, hydrate))


def test_a_rebuild_gives_what_writes_had_made() -> None:
    """Byte for byte, wherever the blocks end."""
    rng = random.Random(8)
    db = empty_database()
    with db:
        for count in (3, 14, 1, 30, 7):
            add(db, texts(rng, count))
    written = stored(db)

    word_index.rebuild_postings(db)

    assert stored(db) == written


def stored(db: apsw.Connection) -> list[object]:
    return [
        *db.execute("SELECT key, data FROM posting_block ORDER BY key"),
        *db.execute("SELECT rid, data FROM posting_new ORDER BY rid"),
    ]


@each_row(
    "damage",
    [
        "DELETE FROM posting_block WHERE key = (SELECT max(key) FROM posting_block)",
        "UPDATE posting_block SET data = CAST(data || X'010001' AS BLOB)",
        "DELETE FROM posting_new",
        "UPDATE posting_new SET data = substr(data, 6)",
        "INSERT INTO posting_new VALUES (9999, X'0000000001')",
        "INSERT INTO posting_block VALUES (1 << 60, X'000001')",
    ],
)
def test_wrong_lists_are_noticed_and_rebuilt(damage: str) -> None:
    """Missing, added or changed entries, in blocks and beyond them."""
    db = empty_database()
    with db:
        add(db, texts(random.Random(2), 25))
    assert word_index.verify_word_index(db) == []

    db.execute(damage)

    (problem,) = word_index.verify_word_index(db)
    assert "posting lists do not match the stored texts" in problem
    word_index.rebuild_word_index(db)
    assert word_index.verify_word_index(db) == []


def test_nothing_of_an_erased_memory_stays_in_the_lists() -> None:
    """Neither in a block nor beyond, and its terms are not known any more."""
    db = empty_database()
    with db:
        add(db, texts(random.Random(4), 9))
        before = stored(db)
        add(db, ["kabk zyxq zyxq", *texts(random.Random(5), 12)])
        remove(db, set(range(10, 30)))

    assert word_index.verify_word_index(db) == []
    assert not db.execute("SELECT 1 FROM term WHERE t = 'zyxq'").get
    held = {rid for rid, _ in db.execute("SELECT rid, data FROM posting_new")}
    for part, lists in PostingLists().read(db, [0]):
        held.update(part.rows(lists[0].positions).tolist())
    assert held == set(range(1, 10))
    assert before


def test_a_space_of_before_gets_its_lists_when_it_is_opened(tmp_path: Path) -> None:
    """All revisions of it, and writes go on from there."""
    path = tmp_path / "space.db"
    store = SqliteStore.open(path, space="test")
    made = [record(f"m{n}", text) for n, text in enumerate(texts(random.Random(6), 30))]
    store.items.put(made, actor="x", now=NOW)
    search = TextSearch("kabk kadk", depth=50)
    before = store.search.text(search, scope()).matches
    store.close()
    bring_back(path, 5)

    store = SqliteStore.open(path, space="test")

    assert store.search.text(search, scope()).matches == before
    store.items.put([record("late", "kabk once more")], actor="x", now=NOW)
    assert "late" in [match.item.id for match in store.search.text(search, scope()).matches]
    assert all(finding.ok for finding in store.admin.check())
    store.close()


@each_row(
    "filters",
    [
        {"speakers": ("Ana",)},
        {"topics": ("trips",)},
        {"sessions": ("s",)},
        {"entities": ("Zoe",)},
        {"since": NOW - timedelta(days=1)},
    ],
    ids=str,
)
def test_a_filter_asked_before_sees_what_was_written_since(filters: dict[str, Any]) -> None:
    """Stored, used, changed, ended, brought back, erased: whatever a search has cached."""
    store = SqliteStore.open(None, space="test")
    fields = {"speaker": "Ana", "topic": "trips", "session": "s", "mentions": (mention("Zoe"),)}

    def there() -> set[str]:
        by_words = store.search.text(TextSearch("kabk", depth=50), scope(**filters)).matches
        window = (NOW - timedelta(days=2), NOW + timedelta(days=2))
        by_time = store.search.time(*window, 50, scope(**filters)).matches
        assert {match.item.id for match in by_words} == {match.item.id for match in by_time}
        return {match.item.id for match in by_words}

    assert there() == set()
    for number in range(6):
        store.items.put([record(f"m{number}", f"kabk k{number}", **fields)], actor="x", now=NOW)
        store.activity.note_use([f"m{number}"], NOW)
        assert there() == {f"m{n}" for n in range(number + 1)}
    store.items.end(["m1"], how="forgotten", actor="x", now=NOW)
    assert "m1" not in there()
    store.items.restore(["m1"], actor="x", now=NOW)
    assert "m1" in there()
    store.items.put([record("m2", "kabk again", rev=2, **fields)], actor="x", now=NOW)
    assert len(there()) == 6
    store.items.erase(["m5", "m0"], actor="x", now=NOW)
    assert there() == {"m1", "m2", "m3", "m4"}
    store.items.put([record("m9", "kabk", **fields)], actor="x", now=NOW)
    assert there() == {"m1", "m2", "m3", "m4", "m9"}
    store.close()
