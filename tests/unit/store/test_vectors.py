"""The vector index: bits and rows never disagree, and the nearest are found, in scope."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from bare_store import EVERYTHING, add, empty_database, hydrate, within
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from bethink import Memory
from bethink.errors import ModelError
from bethink.model import Filters
from bethink.ports import Embedder, Embedding, Nearest, Scope, SearchResult
from bethink.store.sql.search import vector_index as bits
from bethink.store.sql.search import vector_index as chunks
from bethink.store.sql.search import vector_scan
from bethink.store.sql.search.lexical import SearchContext
from bethink.store.sql.search.scope import Condition, Predicate, find_few
from bethink.store.sql.search.vector_scan import ChunkCache, Float16Cache
from bethink.store.sql.search.vectors import VectorIndex, unembedded_rows
from bethink.store.sql.state_cache import StateCache
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

MODEL = "test/1"
Floats = NDArray[np.float32]


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    made = empty_database()
    yield made
    made.close()


@pytest.fixture
def index() -> VectorIndex:
    return VectorIndex()


def vectors(count: int, dim: int, seed: int = 1) -> Floats:
    made = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True))


def clustered(count: int, dim: int, seed: int = 1) -> Floats:
    """Vectors that gather around topics, as those of texts do."""
    rng = np.random.default_rng(seed)
    topics = rng.standard_normal((max(2, count // 60), dim))
    made = topics[rng.integers(0, len(topics), count)] + 0.7 * rng.standard_normal((count, dim))
    made += 0.5  # and all lean one way
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), dtype=np.float32)


def fill(db: apsw.Connection, index: VectorIndex, made: Floats, model: str = MODEL) -> None:
    rows = add(db, (f"memory {n}" for n in range(len(made))))
    pairs = zip(rows, made, strict=True)
    chunks.append_vectors(db, model, [(row.rid, Embedding(one, b"tokens")) for row, one in pairs])


def nearest(
    db: apsw.Connection,
    index: VectorIndex,
    query: Floats,
    depth: int = 10,
    predicate: Predicate = EVERYTHING,
) -> SearchResult:
    return index.search(query, MODEL, depth, None, SearchContext(db, predicate, hydrate))


def rids(found: SearchResult) -> list[int]:
    return [int(match.item.id[1:]) for match in found.matches]


def truth(made: Floats, query: Floats, depth: int, among: Sequence[int]) -> list[int]:
    cosines = made[np.array(among) - 1] @ query
    return [among[place] for place in np.argsort(-cosines, kind="stable")[:depth]]


# Kept in step


@each_row("dim", [1, 7, 8, 12, 64, 256])
def test_what_is_stored_comes_back(db: apsw.Connection, index: VectorIndex, dim: int) -> None:
    """For any number of dimensions, to the precision of half floats, tokens as they were."""
    made = vectors(20, dim)
    fill(db, index, made)

    found = index.embeddings(db, ["m3", "m20", "m999"], MODEL)

    assert set(found) == {"m3", "m20"}
    assert np.allclose(found["m3"].vector, made[2], atol=1e-3)
    assert found["m3"].vector.dtype == np.float32
    assert found["m3"].tokens == b"tokens"
    assert chunks.verify_chunks(db) == []
    assert rids(nearest(db, index, made[4], 1)) == [5] or dim == 1


@given(st.lists(st.tuples(st.sampled_from("ard"), st.integers(1, 12)), max_size=25))
def test_bits_and_rows_never_disagree(steps: list[tuple[str, int]]) -> None:
    """Whatever is added, replaced or removed, in whatever order."""
    db, index = empty_database(), VectorIndex()
    add(db, (f"memory {n}" for n in range(12)))
    there: dict[int, Floats] = {}
    for number, (step, rid) in enumerate(steps):
        if step == "d":
            chunks.remove_vectors(db, [rid])
            there.pop(rid, None)
        else:
            one = vectors(1, 9, seed=number)[0] if step == "a" else np.zeros(9, np.float32)
            chunks.append_vectors(db, MODEL, [(rid, Embedding(one))])
            there[rid] = one

    assert chunks.verify_chunks(db) == []
    visible = {rid for rid, one in there.items() if one.any()}
    assert set(rids(nearest(db, index, vectors(1, 9)[0]))) == visible if there else True


def test_many_chunks_are_filled_and_emptied(db: apsw.Connection, index: VectorIndex) -> None:
    """One more than two chunks hold, then all but a few taken out of the middle."""
    made = vectors(8_193, 8)
    fill(db, index, made)
    assert db.execute("SELECT count(*) FROM chunk").get == 3

    chunks.remove_vectors(db, range(5, 8_190))

    assert chunks.verify_chunks(db) == []
    assert db.execute("SELECT count(*) FROM chunk").get == 1
    assert sorted(rids(nearest(db, index, made[0]))) == [1, 2, 3, 4, 8190, 8191, 8192, 8193]


def test_one_more_vector_writes_few_pages(tmp_path: Path, index: VectorIndex) -> None:
    """The chunk is written in place, not as a whole."""
    db = empty_database(tmp_path / "space.db")
    db.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    with db:
        fill(db, index, vectors(50, 256))
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    (row,) = add(db, ["one more"])
    before = (tmp_path / "space.db-wal").stat().st_size

    with db:
        chunks.append_vectors(db, MODEL, [(row.rid, Embedding(vectors(1, 256, seed=9)[0]))])

    assert (tmp_path / "space.db-wal").stat().st_size - before < 12 * 4_200
    db.close()


def test_a_removed_vector_leaves_no_bit(tmp_path: Path, index: VectorIndex) -> None:
    """Neither its row nor its signs."""
    db = empty_database(tmp_path / "space.db")
    db.execute("PRAGMA secure_delete = ON")
    made = vectors(30, 256)
    with db:
        fill(db, index, made)
    with db:
        chunks.remove_vectors(db, [7, 30])
    db.execute("VACUUM")
    db.close()

    content = (tmp_path / "space.db").read_bytes()

    assert made[5].astype("<f2").tobytes() in content
    for gone in (made[6], made[29]):
        assert gone.astype("<f2").tobytes() not in content
        assert np.packbits(gone > 0).tobytes() not in content


@each_row(
    "damage",
    [
        "UPDATE chunk SET bits = zeroblob(length(bits))",
        "UPDATE chunk SET rids = zeroblob(length(rids))",
        "DELETE FROM chunk",
        "DELETE FROM vector WHERE rid = 3",
        "UPDATE vector SET slot = slot + 100 WHERE rid = 8",
        "UPDATE vector SET data = zeroblob(5) WHERE rid = 4",
        "UPDATE model SET slots = slots + 1",
    ],
)
def test_damage_is_noticed_and_rebuilt(
    db: apsw.Connection, index: VectorIndex, damage: str
) -> None:
    """What cannot be rebuilt is let go, to be embedded again."""
    fill(db, index, vectors(20, 16))
    db.execute(damage)
    assert chunks.verify_chunks(db)

    chunks.rebuild_chunks(db)

    assert chunks.verify_chunks(db) == []
    left = db.execute("SELECT count(*) FROM vector").get
    assert len(nearest(db, index, vectors(1, 16)[0], 50).matches) == left


def test_removing_from_a_damaged_index_mends_it(db: apsw.Connection, index: VectorIndex) -> None:
    """Slots that had come apart are put together again."""
    fill(db, index, vectors(20, 16))
    db.execute("DELETE FROM vector WHERE rid = 20")

    chunks.remove_vectors(db, [3])

    assert chunks.verify_chunks(db) == []


# Finding


def overlap(db: apsw.Connection, index: VectorIndex, made: Floats, queries: Floats) -> float:
    everyone = range(1, len(made) + 1)
    found = [
        len({*rids(nearest(db, index, query))} & {*truth(made, query, 10, everyone)})
        for query in queries
    ]
    return sum(found) / (10 * len(queries))


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_ten_nearest_are_the_true_ten(db: apsw.Connection, index: VectorIndex, count: int) -> None:
    """Against the exact cosines of all vectors: 99 of 100."""
    made = clustered(count + 60, 64)
    with db:
        fill(db, index, made[:count])

    assert overlap(db, index, made[:count], made[count:]) >= 0.99


def test_ten_nearest_texts_are_the_true_ten(
    db: apsw.Connection, index: VectorIndex, embedder: Embedder
) -> None:
    """The same with the default embedder and made-up sentences."""
    rng = random.Random(3)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    vocabulary = ["".join(rng.choices(syllables, k=3)) for _ in range(900)]
    weights = [1 / (n + 3) for n in range(900)]
    texts = [" ".join(rng.choices(vocabulary, weights, k=8)) for _ in range(1_040)]
    made = np.stack([one.vector for one in embedder.embed(texts)])
    with db:
        fill(db, index, made[:1_000])

    assert overlap(db, index, made[:1_000], made[1_000:]) >= 0.99


SCOPES = {
    "half": within("i.rid % 2 = 0"),
    "one in twenty": within("i.rid % 20 = 0"),
    "one in five hundred": within("i.rid % ? = 7", 500),
    "two": within("i.rid IN (11, 4000)"),
    "none": within("0"),
}


@pytest.fixture(scope="module")
def large() -> tuple[apsw.Connection, VectorIndex, Floats]:
    db, index, made = empty_database(), VectorIndex(), clustered(5_012, 32)
    with db:
        fill(db, index, made[:5_000])
    return db, index, made


def all_within(db: apsw.Connection, predicate: Predicate) -> list[int]:
    """The rids of everything in scope."""
    sql = f"SELECT i.rid FROM item AS i WHERE {predicate.sql}"
    return [rid for (rid,) in db.execute(sql, predicate.values)]


@each_row("scope", SCOPES)
def test_the_nearest_in_scope_are_found(
    large: tuple[apsw.Connection, VectorIndex, Floats], scope: str
) -> None:
    """As many as asked for, or all there are; and nearly always the true ones."""
    db, index, made = large
    predicate = SCOPES[scope]
    inside = all_within(db, predicate)
    right = wanted = 0
    for query in made[5_000:]:
        found = rids(nearest(db, index, query, 20, predicate))
        expected = truth(made[:5_000], query, 20, inside) if inside else []
        assert len(found) == min(20, len(inside))
        assert set(found) <= set(inside)
        right += len({*found[:10]} & {*expected[:10]})
        wanted += len(expected[:10])

    assert right >= 0.97 * wanted


@each_row("last", [40, 300, 1_500, 4_900])
@each_row("further", ["1", "i.rid % 3 = 0", "i.rid % 31 = 0"])
def test_an_index_narrows_a_search_and_changes_nothing_else(
    large: tuple[apsw.Connection, VectorIndex, Floats], last: int, further: str
) -> None:
    """However many it names, and whatever else is asked of them."""
    db, index, made = large
    among = Condition("SELECT i.rid FROM item AS i WHERE i.rid <= ?", (last,))
    scope = within(f"i.rid <= ? AND {further}", last)._replace(indexed=(among,))
    narrowed = find_few(db, StateCache(), scope)
    assert narrowed.rows is not None
    inside = all_within(db, narrowed)
    right = wanted = 0
    for query in made[5_000:]:
        found = rids(nearest(db, index, query, 20, narrowed))
        expected = truth(made[:5_000], query, 20, inside)
        assert len(found) == len(expected)
        assert set(found) <= set(inside)
        right += len({*found[:10]} & {*expected[:10]})
        wanted += len(expected[:10])

    assert right >= 0.97 * wanted


def test_a_question_asked_again_of_another_scope_sees_what_was_written(
    db: apsw.Connection, index: VectorIndex
) -> None:
    """The scan of a question is kept, but not beyond a write."""
    made = vectors(400, 16)
    fill(db, index, made[:399])
    query = made[399]
    assert 400 not in rids(nearest(db, index, query))

    (row,) = add(db, ["the very same"])
    chunks.append_vectors(db, MODEL, [(row.rid, Embedding(query))])

    assert rids(nearest(db, index, query))[0] == 400
    assert rids(nearest(db, index, query, 10, within("i.rid > 300")))[0] == 400
    assert rids(nearest(db, index, query, 10, within("i.rid = 400"))) == [400]


def test_what_is_usual_follows_the_moment_and_every_write(
    memory: Memory, embedder: Embedder
) -> None:
    """A question is compared with what holds when it is asked, however often it was before."""
    for n in range(3):
        memory.remember(f"The pump {n} is sound")
    gone = memory.remember("The pump 4 is sound").id

    def usual(days: int) -> int:
        scope = Scope(Filters(), NOW + timedelta(days=days))
        vector = embedder.embed_query("pump").vector
        background = memory.store.search.vector(vector, embedder.model, 2, scope).background
        assert background is not None
        return background.memories

    assert [usual(0), usual(0), usual(9)] == [4, 4, 4]
    memory.forget(gone)
    assert [usual(0), usual(9)] == [3, 3]
    memory.remember("The pump 5 is lent", valid_to=NOW + timedelta(days=5))
    assert [usual(0), usual(9), usual(0)] == [4, 3, 4]


def test_of_the_nearest_only_the_chosen_are_read(memory: Memory, embedder: Embedder) -> None:
    """A caller that weighs by time is shown all times, and is given only what it asks for."""
    day = NOW - timedelta(days=40)
    memory.remember("The pump is sound")
    lent = memory.remember("The pump is lent", occurred_at=day, occurred_end=NOW).id
    scope, vector = Scope(Filters(), NOW), embedder.embed_query("pump").vector
    shown: list[Nearest] = []

    def choose(near: Nearest) -> list[int]:
        shown.append(near)
        return np.flatnonzero(~np.isnan(near.begins)).tolist()

    plain = memory.store.search.vector(vector, embedder.model, 9, scope)
    found = memory.store.search.vector(vector, embedder.model, 9, scope, choose)
    (near,), (one,) = shown, found.matches
    place = near.begins.tolist().index(day.timestamp() * 1000)
    assert near.cosines.tolist() == [match.score for match in plain.matches]
    assert near.ends[place] == NOW.timestamp() * 1000
    assert np.isnan([near.begins[1 - place], near.ends[1 - place]]).all()
    assert (one.item.id, one.score) == (lent, near.cosines[place])
    assert (found.note, found.background) == (plain.note, plain.background)
    memory.forget(lent)
    assert memory.store.search.vector(vector, embedder.model, 9, scope, choose).matches == ()


def test_who_sees_less_searches_what_is_there_after_every_write(
    memory: Memory, embedder: Embedder
) -> None:
    """What a ceiling hides is neither found nor counted, whatever was written since."""
    view, vector = memory.store.below(1), embedder.embed_query("pump").vector

    def seen() -> tuple[set[str], str]:
        found = view.search.vector(vector, embedder.model, 9, Scope(Filters(), NOW))
        return {match.item.text for match in found.matches}, found.note

    memory.remember("The pump is sound", classification=0)
    secret = memory.remember("The pump is worn " * 90, classification=3).id
    assert seen() == ({"The pump is sound"}, "bits scan, 1 of 1 rescored")
    memory.remember("The pump is loud", classification=1)
    both = {"The pump is sound", "The pump is loud"}
    assert seen() == seen() == (both, "bits scan, 2 of 2 rescored")
    memory.forget(secret, erase=True)
    assert seen() == (both, "bits scan, 2 of 2 rescored")
    memory.remember("The pump is new", classification=2)
    assert seen() == (both, "bits scan, 2 of 2 rescored")


def test_cosines_are_exact_and_best_first(db: apsw.Connection, index: VectorIndex) -> None:
    """Of vectors of any length; the score is what it says."""
    made = vectors(30, 24) * np.linspace(0.5, 3, 30, dtype=np.float32)[:, None]
    fill(db, index, made)
    query = vectors(1, 24, seed=8)[0] * 5

    found = nearest(db, index, query)

    lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(query)
    expected = np.sort(made @ query / lengths)[::-1][:10]
    scores = [match.score for match in found.matches]
    assert np.allclose(scores, expected, atol=2e-3)
    assert scores == sorted(scores, reverse=True)
    assert found.matches[0].why == f"cosine {scores[0]:.2f}"


def test_equal_vectors_come_in_the_order_of_their_ids(
    db: apsw.Connection, index: VectorIndex
) -> None:
    """And the cut falls by id."""
    fill(db, index, np.repeat(vectors(1, 16), 50, axis=0))

    found = nearest(db, index, vectors(1, 16)[0], 5)

    assert [m.item.id for m in found.matches] == sorted(f"m{n}" for n in range(1, 51))[:5]


def test_a_vector_of_zeros_is_kept_but_never_found(db: apsw.Connection, index: VectorIndex) -> None:
    """An empty text resembles nothing."""
    made = vectors(5, 16)
    made[2] = 0
    fill(db, index, made)

    assert 3 not in rids(nearest(db, index, made[0]))
    assert not index.embeddings(db, ["m3"], MODEL)["m3"].vector.any()
    assert chunks.verify_chunks(db) == []
    assert nearest(db, index, made[2]).note == "the question has no vector"


def test_the_answer_says_how_it_was_found(db: apsw.Connection, index: VectorIndex) -> None:
    """And that some memories cannot be found so yet."""
    assert nearest(db, index, vectors(1, 8)[0]).note == "no vectors are stored"
    fill(db, index, vectors(10, 8))
    found = nearest(db, index, vectors(1, 8)[0])
    assert (found.note[:10], found.damage) == ("bits scan,", "")
    add(db, ["not embedded", "nor this"])

    found = nearest(db, index, vectors(1, 8)[0])
    assert found.damage == "2 memories without a vector: found by words alone (bethink reindex)"


# Models


def test_vectors_of_another_model_are_never_compared(
    db: apsw.Connection, index: VectorIndex
) -> None:
    """The error names both and the way out."""
    fill(db, index, vectors(5, 8), model="other/1")

    with pytest.raises(ModelError, match="made by other/1, the embedder in use is test/1") as error:
        nearest(db, index, vectors(1, 8)[0])

    assert error.value.remedy == "bethink reindex"
    assert index.embeddings(db, ["m1"], MODEL) == {}


def test_a_vector_of_the_wrong_length_is_refused(db: apsw.Connection, index: VectorIndex) -> None:
    """Stored or asked for."""
    fill(db, index, vectors(5, 8))

    with pytest.raises(ModelError):
        nearest(db, index, vectors(1, 9)[0])
    with pytest.raises(ModelError):
        chunks.append_vectors(db, MODEL, [(1, Embedding(vectors(1, 9)[0]))])
    with pytest.raises(ModelError):
        chunks.append_vectors(db, "new/1", [(1, Embedding(np.array([1, np.nan], np.float32)))])


def test_a_change_of_models_can_be_made_step_by_step(
    db: apsw.Connection, index: VectorIndex
) -> None:
    """Who is left is known at every step; what was embedded is found by the new one."""
    fill(db, index, vectors(9, 8), model="old/1")
    add(db, ["never embedded"])
    made = vectors(10, 12, seed=2)
    assert unembedded_rows(db, MODEL, 100) == list(range(1, 11))

    for batch in (range(1, 5), range(5, 11)):
        chunks.append_vectors(db, MODEL, [(rid, Embedding(made[rid - 1])) for rid in batch])
        assert chunks.verify_chunks(db) == []
        assert unembedded_rows(db, MODEL, 100) == list(range(batch[-1] + 1, 11))
    (old,) = (one for one in chunks.stored_models(db) if one.name != MODEL)
    chunks.drop_model(db, old)

    assert db.execute("SELECT group_concat(name) FROM model").get == MODEL
    assert rids(nearest(db, index, made[6], 1)) == [7]


def test_only_live_items_wait_for_a_vector(db: apsw.Connection, index: VectorIndex) -> None:
    """Ended revisions are history."""
    add(db, ["one", "two", "three"])
    db.execute("UPDATE item SET live_to = 1 WHERE rid = 2")

    assert unembedded_rows(db, MODEL, 100) == [1, 3]
    assert unembedded_rows(db, MODEL, 1) == [1]


# Reading while others write


def test_a_search_sees_what_others_wrote(tmp_path: Path, index: VectorIndex) -> None:
    """Chunks are read again when, and only when, they changed."""
    mine = empty_database(tmp_path / "space.db")
    theirs = apsw.Connection(str(tmp_path / "space.db"))
    made = vectors(30, 16)
    with mine:
        fill(mine, index, made)
    assert rids(nearest(mine, index, made[3], 1)) == [4]

    with theirs:
        chunks.append_vectors(theirs, MODEL, [(4, Embedding(-made[3]))])
        chunks.remove_vectors(theirs, [9])

    assert rids(nearest(mine, index, made[3], 30))[-1] == 4
    assert 9 not in rids(nearest(mine, index, made[8], 30))
    mine.close()
    theirs.close()


def test_what_was_undone_is_not_remembered(db: apsw.Connection, index: VectorIndex) -> None:
    """A search inside a transaction that fails leaves nothing in the cache."""
    made = vectors(10, 16)
    fill(db, index, made)
    db.execute("BEGIN IMMEDIATE")
    chunks.append_vectors(db, MODEL, [(1, Embedding(-made[0]))])
    assert rids(nearest(db, index, made[0], 10))[-1] == 1
    db.execute("ROLLBACK")
    with db:
        chunks.append_vectors(db, MODEL, [(2, Embedding(-made[1]))])

    assert rids(nearest(db, index, made[0], 1)) == [1]
    assert rids(nearest(db, index, made[1], 10))[-1] == 2


def test_many_threads_get_one_answer(tmp_path: Path, index: VectorIndex) -> None:
    """All of them share what was read."""
    path = tmp_path / "space.db"
    db = empty_database(path)
    made = clustered(3_000, 32)
    with db:
        fill(db, index, made)
    expected = [rids(nearest(db, index, query)) for query in made[:20]]
    answers: list[list[list[int]]] = []

    def ask() -> None:
        own = apsw.Connection(str(path))
        answers.append([rids(nearest(own, index, query)) for query in made[:20]])
        own.close()

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [expected] * 6
    db.close()


# Kept in memory


@given(
    st.lists(
        st.tuples(st.booleans(), st.sets(st.integers(0, 59), min_size=1)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([1, 7, 60, 1_000]),
)
def test_vectors_kept_in_memory_are_those_that_are_stored(
    steps: list[tuple[bool, set[int]]], most: int
) -> None:
    """Whatever was read before, written since, or is no longer kept for want of room."""
    db, cache = empty_database(), Float16Cache(most)
    made = vectors(60, 4)
    fill(db, VectorIndex(), made)
    for number, (writes, wanted) in enumerate(steps):
        if writes:
            rid = min(wanted) + 1
            made[rid - 1] = vectors(1, 4, seed=number)[0]
            chunks.append_vectors(db, MODEL, [(rid, Embedding(made[rid - 1]))])
        stored = ChunkCache().read(db, chunks.stored_models(db)[0])
        places = np.array(sorted(wanted, key=lambda place: (place * 7) % 60))

        read = cache.read(db, stored.chunks, stored.rids, places, 4)

        expected = made[stored.rids[places] - 1].astype(np.float16)
        assert (read == expected).all()


def test_vectors_kept_in_memory_take_no_more_room_than_the_store_has_use_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However often they are written and read again; nor is what has not changed read again."""
    monkeypatch.setattr(vector_scan, "_SPARE_VECTORS", 0)
    db, cache, read_rows = empty_database(), Float16Cache(), 0
    fill(db, VectorIndex(), vectors(60, 4))

    def counted(db: Any, keys: Any, dim: int) -> Any:
        nonlocal read_rows
        read_rows += len(keys)
        return read(db, keys, dim)

    read = vector_scan.read_vectors
    monkeypatch.setattr(vector_scan, "read_vectors", counted)
    for number in range(50):
        chunks.append_vectors(db, MODEL, [(1, Embedding(vectors(1, 4, seed=number)[0]))])
        stored = ChunkCache().read(db, chunks.stored_models(db)[0])
        for _ in range(3):
            cache.read(db, stored.chunks, stored.rids, np.arange(60), 4)
        assert cache._cached is not None
        assert len(cache._cached.arena.rows) <= 120

    assert read_rows <= 50 * 60


# Bits


@given(st.integers(1, 40), st.integers(0, 60), st.integers(0, 2**32 - 1))
def test_signs_that_differ_are_counted(width: int, count: int, seed: int) -> None:
    """To the bit, whatever the width."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, 256, width, dtype=np.uint8)
    rows = rng.integers(0, 256, (count + 1, width), dtype=np.uint8)

    counted = bits.hamming_distances(query, bits.to_bit_columns(rows))

    assert counted.tolist() == np.unpackbits(rows ^ query, axis=1).sum(axis=1).tolist()


def test_planes_weigh_up_to_the_dot_product_with_the_signs() -> None:
    """The order by planes is that of the coarse query with the signs."""
    query, rows = vectors(1, 64)[0], vectors(200, 64, seed=2)
    packed = bits.pack_signs(rows.astype(np.float16))
    estimates = sum(
        bits.hamming_distances(plane, bits.to_bit_columns(packed)).astype(int)
        * 2 ** (bits.BIT_PLANES - 1 - place)
        for place, plane in enumerate(bits.query_bit_planes(query))
    )
    dots = np.where(rows > 0, 1, -1) @ query

    assert np.corrcoef(np.asarray(estimates), dots)[0, 1] < -0.98


@given(st.lists(st.integers(0, 30), min_size=1, max_size=50), st.integers(1, 60))
def test_nearest_gives_the_smallest_and_all_that_tie(distances: list[int], count: int) -> None:
    """Never fewer than asked for, never one that is farther than one left out."""
    given_ = np.array(distances, dtype=np.uint16)

    chosen = set(vector_scan.smallest_distances(given_, count).tolist())

    left = [d for place, d in enumerate(distances) if place not in chosen]
    assert len(chosen) >= min(count, len(distances))
    assert not left or max(distances[place] for place in chosen) < min(left)


def test_importing_the_index_does_not_load_numpy() -> None:
    """Commands that need no vectors do not wait for it."""
    code = "import sys, bethink.store.sql.search.vectors; sys.exit('numpy' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_is_usual_does_not_depend_on_the_order_of_vectors(embedder: Embedder) -> None:
    """To the last bit: a vector that was erased leaves a slot, which another one takes."""
    texts = [f"The pump {n} of hall {n % 5} is {'sound' if n % 3 else 'worn'}" for n in range(60)]
    vectors = [embedder.embed_query(asked).vector for asked in ("which pump is worn?", "hall 3")]
    found = set()
    for step in (60, 1, 3, 7):
        with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
            memory.remember_many(
                [
                    one
                    for text in texts[:30]
                    for one in (text, {"text": f"Secret: {text}", "classification": 3})
                ]
            )
            secret = [item.id for item in memory.browse(limit=60, max_classification=3)]
            secret = [one for one in secret if memory.get(one).text.startswith("Secret")]
            assert len(secret) == 30
            memory.forget(*secret[::step], erase=True)
            memory.remember_many(texts[30:])
            memory.forget(*(set(secret) - set(secret[::step])), erase=True)
            scope = Scope(Filters(), NOW)
            search = memory.store.search
            found.add(tuple(search.vector(v, embedder.model, 2, scope).background for v in vectors))
    assert len(found) == 1
