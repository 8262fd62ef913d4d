"""Sets of words: alike for texts made of the same words, by chance for all others."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import apsw
import pytest

from bethink import Memory
from bethink.store.sql.search.word_sets import content_terms
from bethink.store.sqlite import SqliteStore
from corpus import NOTES, TALK
from records import NOW, at, record, scope

THRESHOLD = 0.65


def builtin_texts() -> list[str]:
    source = files("bethink.eval").joinpath("builtin/memories.jsonl").read_text("utf-8")
    return [json.loads(line)["text"] for line in source.splitlines()]


TEXTS = list(dict.fromkeys([*builtin_texts(), *(note["text"] for note in NOTES), *dict(TALK)]))


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="test")
    opened.items.put([record(f"t{n}", text) for n, text in enumerate(TEXTS)], actor="x", now=NOW)
    yield opened
    opened.close()


def likeness(store: SqliteStore, text: str) -> dict[str, float]:
    """How alike everything stored is to a text; what has no word in common is so by chance."""
    found = store.search.signature(text, 10_000, 0.0, scope())
    every = dict.fromkeys((item.text for item in store.items.browse(scope(), limit=10_000)), 0.5)
    return every | {match.item.text: match.score for match in found.matches}


def words_of(text: str) -> set[str]:
    db = apsw.Connection(":memory:")
    return set(content_terms(db, text))


def test_unrelated_texts_stay_below_the_threshold(store: SqliteStore) -> None:
    """Of some thirty thousand pairs fewer than one in a hundred, and none that shares no word."""
    own = {text: words_of(text) for text in TEXTS}
    above, pairs = [], 0
    for text in TEXTS:
        for other, alike in likeness(store, text).items():
            if other != text:
                pairs += 1
                if alike >= THRESHOLD:
                    above.append((text, other))

    assert pairs > 20_000
    assert len(above) < pairs / 100
    assert all(own[one] & own[other] for one, other in above)


def test_questions_pass_over_what_has_nothing_to_do_with_them(store: SqliteStore) -> None:
    """Short questions too: of pairs with nothing in common less than one in ten thousand."""
    asked = files("bethink.eval").joinpath("builtin/questions.jsonl").read_text("utf-8")
    questions = [json.loads(line)["query"] for line in asked.splitlines()]
    own = {text: words_of(text) for text in TEXTS}
    pairs = above = strangers = 0
    for question in questions:
        telling = words_of(question)
        for text, alike in likeness(store, question).items():
            pairs += 1
            above += alike >= THRESHOLD
            strangers += alike >= THRESHOLD and not telling & own[text]

    assert pairs > 10_000
    assert above < pairs / 100
    assert strangers < pairs / 10_000


def edited(text: str, rng: random.Random) -> str:
    """A word left out, two swapped, one misspelt."""
    words = text.split()
    words.pop(rng.randrange(len(words)))
    one, other = rng.sample(range(len(words)), 2)
    words[one], words[other] = words[other], words[one]
    longest = max(range(len(words)), key=lambda place: len(words[place]))
    words[longest] = words[longest][:2] + words[longest][3:]
    return " ".join(words)


def test_near_duplicates_are_found(store: SqliteStore) -> None:
    """After small edits, and in any order of the words, the text itself is the likest."""
    rng = random.Random(7)
    whole = [text for text in TEXTS if min(len(words_of(text)), len(text.split())) >= 6]
    found = 0
    for text in whole:
        shuffled = text.split()
        rng.shuffle(shuffled)
        assert likeness(store, " ".join(shuffled))[text] > 0.9
        alike = likeness(store, edited(text, rng))
        found += alike[text] >= THRESHOLD and max(alike, key=lambda other: alike[other]) == text

    assert len(whole) > 100
    assert found / len(whole) > 0.97


def test_the_originals_noise_is_gone() -> None:
    """Pairs that its 256 buckets threw together or apart."""
    store = SqliteStore.open(None, space="test")
    texts = (
        "the project uses PostgreSQL as database",
        "database migrations reviewed by Bob",
        "JWT auth middleware validates tokens",
    )
    store.items.put([record(f"t{n}", text) for n, text in enumerate(texts)], actor="x", now=NOW)

    banana = likeness(store, "banana")
    database = likeness(store, "what database does the project use")
    auth = likeness(store, "auth token")
    store.close()

    assert max(banana.values()) < THRESHOLD
    assert database[texts[0]] > 0.8
    assert auth[texts[2]] > 0.8
    assert max(auth[texts[0]], auth[texts[1]]) < THRESHOLD


def test_a_short_question_is_found_in_a_long_memory() -> None:
    """Three words inside a hundred, wherever they stand; others of as many words are not."""
    rng = random.Random(3)
    vocabulary = [f"word{n:04d}" for n in range(4000)]
    store = SqliteStore.open(None, space="test")
    long = [" ".join(rng.sample(vocabulary, 100)) for _ in range(20)]
    store.items.put([record(f"l{n}", text) for n, text in enumerate(long)], actor="x", now=NOW)
    found = wrong = asked = 0
    for text in long:
        words = text.split()
        for start in (0, 30, 60, 90):
            asked += 1
            alike = likeness(store, " ".join(words[start : start + 3]))
            found += alike[text] >= THRESHOLD
            wrong += sum(alike[other] >= THRESHOLD for other in long if other != text)
    store.close()

    assert found / asked > 0.7
    assert wrong / (asked * (len(long) - 1)) < 0.01


def test_scripts_without_spaces_are_compared_by_pairs() -> None:
    """A part of a Japanese sentence is like it."""
    store = SqliteStore.open(None, space="test")
    text = "支払いサービスは東京リージョンで動いている"
    store.items.put(
        [record("ja", text), record("de", "Rechnungen auf Deutsch")], actor="x", now=NOW
    )

    alike = likeness(store, "東京リージョンで動いている")
    store.close()

    assert alike[text] >= THRESHOLD
    assert alike["Rechnungen auf Deutsch"] < THRESHOLD


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "space.db"
    store = SqliteStore.open(path, space="test")
    store.items.put(
        [record(f"i{n}", f"lighthouse {n} keeps the quokka accounts") for n in range(5)],
        actor="x",
        now=NOW,
    )
    store.close()
    return path


def test_revisions_restores_and_imports_are_found(path: Path) -> None:
    """A search sees the live revision, then another one as of then."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("i1", "volcano telescope warranty", rev=2)], actor="x", now=at(hours=1))
    store.items.end(["i2"], how="forgotten", actor="x", now=at(hours=1))
    store.items.restore(["i2"], actor="x", now=at(hours=2))

    new = store.search.signature("volcano telescope warranty", 9, THRESHOLD, scope())
    then = store.search.signature("volcano telescope warranty", 9, THRESHOLD, scope(as_of=NOW))
    lines = list(store.admin.dump())
    other = SqliteStore.open(None, space="other")
    other.admin.load(lines, actor="x", now=NOW)
    loaded = other.search.signature("quokka lighthouse accounts", 9, THRESHOLD, scope())
    other.close()
    store.close()

    assert [match.item.id for match in new.matches] == ["i1"]
    assert not then.matches
    assert {match.item.id for match in loaded.matches} == {"i0", "i2", "i3", "i4"}


def test_an_erased_memory_is_not_found(path: Path) -> None:
    """Not in a search that had it in memory."""
    store = SqliteStore.open(path, space="test")
    store.items.put([record("gone", "marmalade zeppelin orchestra")], actor="x", now=NOW)
    held = store.search.signature("marmalade zeppelin orchestra", 9, THRESHOLD, scope())
    store.items.erase(["gone"], actor="x", now=NOW)
    after = store.search.signature("marmalade zeppelin orchestra", 9, THRESHOLD, scope())
    store.close()

    assert len(held.matches) == 1
    assert not after.matches


def test_a_recall_finds_what_was_just_stored_without_a_write(path: Path) -> None:
    """Nothing is made for it: the journal and the number of writes stay."""
    with Memory(SqliteStore.open(path, space="test")) as memory:
        memory.remember("The moraine is north of the glacier")
        before = memory.store.admin.generation()
        found = memory.recall("where is the moraine?", profile="abmind", track=False)

        assert memory.store.admin.generation() == before
        assert any(reason.by == "channel.ss" for reason in found.hits[0].evidence)


def test_a_search_that_waits_for_a_filter_finds_what_is_behind(store: SqliteStore) -> None:
    """The threshold cuts, never the number of better ones outside of the scope."""
    common = likeness(store, TEXTS[0])
    ids = [f"t{n}" for n, text in enumerate(TEXTS) if 0.5 < common[text] < 0.9][-2:]
    found = store.search.signature(TEXTS[0], 1, 0.0, scope(ids=tuple(ids)))

    assert len(found.matches) == 1
    assert found.matches[0].item.id in ids
