"""The word index: kept in step, searched by plan, forgiving in spelling, exact in scope."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from bare_store import EVERYTHING, add, empty_database, hydrate, index_rows, within
from hypothesis import given
from hypothesis import strategies as st

from bethink.ports import SearchResult, TextSearch
from bethink.store.ranking import weight_query
from bethink.store.sql.search import word_index as words
from bethink.store.sql.search.fuzzy import search_substring
from bethink.store.sql.search.lexical import (
    SearchContext,
    index_terms,
    make_plan,
    parse_query,
    query_words_of,
    search_text,
    word_statistics,
)
from bethink.store.sql.search.scope import Predicate
from bethink.store.sql.search.terms import tokenizer
from rows import each_row

any_text = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=60
)

MEMORIES = (
    "The auth middleware caches its token in Redis",
    "parseConfig reads src/a/b.py at start",
    "We parse the config file by hand, the old parser is gone",
    "parse_config moved in v2.3.1 of the library",
    "日本語のテストを書いた",
    "GitHub actions run node.js every night",
    "Der Zug nach Łódź fährt um acht, die Straße ist gesperrt",
    "한국어를 배우고 있다",
    "wir sind alle hier",
    "C++ is older than C#",
)


@pytest.fixture
def db() -> Iterator[apsw.Connection]:
    made = empty_database()
    yield made
    made.close()


@pytest.fixture
def filled(db: apsw.Connection) -> apsw.Connection:
    add(db, MEMORIES)
    return db


def search(
    db: apsw.Connection, text: str, depth: int = 10, predicate: Predicate = EVERYTHING
) -> SearchResult:
    return search_text(TextSearch(text, depth), SearchContext(db, predicate, hydrate))


def like(
    db: apsw.Connection, text: str, depth: int = 10, predicate: Predicate = EVERYTHING
) -> SearchResult:
    return search_substring(text, depth, SearchContext(db, predicate, hydrate))


def ids(found: SearchResult) -> list[str]:
    return [match.item.id for match in found.matches]


def everything_indexed(db: apsw.Connection) -> list[object]:
    """All that any part of the index still knows."""
    known: list[object] = [
        *db.execute("SELECT * FROM term"),
        *db.execute("SELECT * FROM posting_new"),
        *db.execute("SELECT * FROM posting_block"),
    ]
    for table in ("grams", "vocabulary"):
        db.execute(f"CREATE VIRTUAL TABLE temp.listed USING fts5vocab ('main', {table}, 'row')")
        known += db.execute("SELECT * FROM temp.listed").fetchall()
        db.execute("DROP TABLE temp.listed")
    return known


# Kept in step


@given(st.lists(any_text, min_size=1, max_size=4))
def test_taking_out_is_the_exact_reverse_of_putting_in(texts: list[str]) -> None:
    """Nothing of any text remains, in whatever order."""
    db = empty_database()
    rows = add(db, texts)
    assert words.verify_word_index(db) == []

    words.unindex_rows(db, rows)

    assert everything_indexed(db) == []
    assert word_statistics(db, ()).documents == 0


def test_what_stays_is_not_touched(filled: apsw.Connection) -> None:
    """Counts go down by what left, words of others remain."""
    before = word_statistics(filled, ["pars", "config", "redi"])
    row = index_rows(filled)[1]

    words.unindex_rows(filled, [row])
    filled.execute("DELETE FROM item WHERE rid = ?", (row.rid,))

    after = word_statistics(filled, ["pars", "config", "redi"])
    assert after.documents == before.documents - 1
    assert after.frequencies == {"pars": 2, "config": 2, "redi": 1}
    assert words.verify_word_index(filled) == []


def test_an_erased_word_leaves_no_byte_in_the_file(tmp_path: Path) -> None:
    """Neither the word nor its stem, in no table."""
    path = tmp_path / "erase.db"
    db = empty_database(path)
    db.execute("PRAGMA secure_delete = ON")
    add(db, ["nothing to see", "the xylocanaryphon sings", "still nothing"])
    row = index_rows(db)[1]
    with db:
        words.unindex_rows(db, [row])
        db.execute("DELETE FROM item WHERE rid = ?", (row.rid,))
    db.execute("VACUUM")
    db.close()

    content = path.read_bytes()

    assert b"xylocan" not in content
    assert b"ocanary" not in content


def test_a_broken_index_is_noticed_and_rebuilt(filled: apsw.Connection) -> None:
    """Missing entries, wrong counts, wrong lengths."""
    filled.execute("DELETE FROM posting_new")
    filled.execute("INSERT INTO vocabulary (vocabulary) VALUES ('delete-all')")
    filled.execute("UPDATE term SET df = df + 1 WHERE t = 'auth'")
    filled.execute("UPDATE item SET length = length + 5 WHERE rid = 1")
    filled.execute("UPDATE meta SET value = '77' WHERE name = 'documents'")
    assert len(words.verify_word_index(filled)) >= 3

    words.rebuild_word_index(filled)

    assert words.verify_word_index(filled) == []
    assert ids(search(filled, "auth token")) == ["m1"]
    assert ids(like(filled, "midleware")) == ["m1"]


def test_wrong_counts_alone_are_noticed(filled: apsw.Connection) -> None:
    """A term counted twice changes every score."""
    filled.execute("UPDATE term SET df = df + 1 WHERE t IN ('auth', 'token')")

    assert words.verify_word_index(filled) == ["2 words have a wrong count"]


def test_the_length_is_the_number_of_index_words(db: apsw.Connection) -> None:
    """Those of the text and those around it."""
    row = words.IndexRow(1, "parseConfig runs", "parse config", None)

    assert words.split_row(db, row).length == 4


# Finding


@each_row(
    ("query", "first"),
    [
        ("auth token cache", "m1"),
        ("parse_config", "m2"),
        ("parseConfig", "m2"),
        ("b.py", "m2"),
        ("src/a/b.py", "m2"),
        ("2.3.1", "m4"),
        ("v2.3.1", "m4"),
        ("本", "m5"),
        ("語の", "m5"),
        ("テスト", "m5"),
        ("한국어", "m8"),
        ("국", "m8"),
        ("github", "m6"),
        ("nodejs", "m6"),
        ("NODE.JS", "m6"),
        ("lodz", "m7"),
        ("Łódź", "m7"),
        ("strasse", "m7"),
        ("ＲＥＤＩＳ", "m1"),
        ("c++", "m10"),
    ],
)
def test_a_memory_is_found_however_the_name_is_written(
    filled: apsw.Connection, query: str, first: str
) -> None:
    """Identifiers, paths, versions, scripts without spaces, accents, widths, case."""
    assert ids(search(filled, query))[0] == first


def test_all_spellings_of_a_name_find_all_spellings(db: apsw.Connection) -> None:
    """Every one finds every other."""
    spellings = ["parse_config", "parseConfig", "parse-config", "ParseConfig", "parse config"]
    add(db, [f"we call {spelling} here" for spelling in spellings])

    for query in spellings:
        assert len(ids(search(db, query))) == len(spellings), query


def test_a_name_in_full_comes_before_its_parts(filled: apsw.Connection) -> None:
    """Though the memory with the parts holds them just as often."""
    found = search(filled, "parse_config")

    assert set(ids(found)[:2]) == {"m2", "m4"}
    assert ids(found)[2] == "m3"
    assert found.matches[0].why == "matches parse_config"
    assert found.matches[2].why == "matches parse, config"


@given(any_text)
def test_any_text_is_a_valid_question_and_finds_itself(text: str) -> None:
    """If it has a word at all."""
    db = empty_database()
    add(db, ["something else entirely", text])

    found = search(db, text)
    like(db, text)

    assert not query_words_of(db, text) or "m2" in ids(found)


@each_row(
    "query",
    [
        *("", "   ", '"', "'", "*", "AND", "OR NOT", "NEAR(a b)", "text:auth", "a\0b", "\ud800x"),
        *("{", "^auth", "- auth", '"auth', "auth*", "(", "))((", "%", "_", "\\", "--;", "\x1b[0m"),
    ],
)
def test_operators_are_only_words(filled: apsw.Connection, query: str) -> None:
    """Nothing in a question has power over the index."""
    search(filled, query)
    like(filled, query)


def test_a_huge_question_is_answered_in_time(filled: apsw.Connection) -> None:
    """A megabyte of words, and one of a single letter."""
    start = time.process_time()

    search(filled, "auth " + "lorem ipsum dolor " * 60_000)
    search(filled, "x" * 1_000_000)
    like(filled, "y" * 1_000_000)

    assert time.process_time() - start < 30


def test_common_words_of_the_question_do_not_count(filled: apsw.Connection) -> None:
    """The score and the ceiling are those of the words that say something."""
    short, long = search(filled, "token redis"), search(filled, "what is the token in the redis")

    assert [m.score for m in short.matches] == [m.score for m in long.matches]
    assert short.ceiling == long.ceiling
    assert long.note == "2 of 6 words searched, 2 postings"


def test_only_common_words_are_searched_after_all(filled: apsw.Connection) -> None:
    """When there are no others."""
    assert "m1" in ids(search(filled, "the"))


def test_the_score_is_bm25_by_our_own_formula(filled: apsw.Connection) -> None:
    """Recomputed from the rows alone."""
    query = TextSearch("parser of the config in Redis", 10, about_weight=0.7, k1=0.9, b=0.4)
    reading = parse_query(filled, query.text)
    question = weight_query(reading.terms, word_statistics(filled, reading.index_terms), query)
    tokens = tokenizer(filled)
    expected = {}
    for row in index_rows(filled):
        text, about = tokens(row.text), tokens(row.about)
        score = question.score(text, about, len(text) + len(about)).score
        if score > 0:
            expected[f"m{row.rid}"] = score

    found = search_text(query, SearchContext(filled, EVERYTHING, hydrate))

    assert {match.item.id: match.score for match in found.matches} == expected
    assert ids(found) == sorted(expected, key=lambda id_: (-expected[id_], id_))


def test_equal_memories_come_in_the_order_of_their_ids(db: apsw.Connection) -> None:
    """And the cut falls by id, not by chance."""
    add(db, ["the same words"] * 30)

    assert ids(search(db, "same words", depth=5)) == sorted(f"m{n}" for n in range(1, 31))[:5]


# Planning


def test_the_budget_goes_to_the_rarest_words() -> None:
    """As many as it allows, at least one."""
    plan = make_plan({"a": 5, "b": 900, "c": 30, "d": 0, "e": 80}, documents=5_000, budget=100)

    assert plan.first == ("a", "c")
    assert plan.rest == ("e", "b")
    assert plan.postings == 35
    assert make_plan({"b": 900}, documents=5_000, budget=100).first == ("b",)
    assert make_plan({"d": 0}, documents=5_000, budget=100).first == ()


def test_a_word_in_a_third_of_all_memories_waits_for_a_telling_one() -> None:
    """Whatever the budget; not for one that says little more, and not in a small store."""
    assert make_plan({"a": 5, "b": 900}, documents=2_000, budget=10**6).rest == ("b",)
    assert make_plan({"a": 700, "b": 900}, documents=2_000, budget=10**6).rest == ()
    assert make_plan({"a": 5, "b": 90}, documents=200, budget=10**6).rest == ()


def word(number: int) -> str:
    """The word of that rank: letters only, so that nothing is split or stemmed."""
    return "k" + "".join("aeioubdgtx"[int(digit)] for digit in f"{number:03d}") + "k"


@pytest.fixture(scope="module")
def zipf() -> apsw.Connection:
    """1,500 memories of words as unevenly spread as in language."""
    db = empty_database()
    rng = random.Random(5)
    vocabulary = [word(n) for n in range(800)]
    weights = [1 / (n + 2) for n in range(800)]
    with db:
        add(db, (" ".join(rng.choices(vocabulary, weights, k=25)) for _ in range(1_500)))
        # Ids rise with the rows, as those of the write walk do.
        db.execute("UPDATE item SET id = printf('m%05d', rid)")
    return db


def brute_force(db: apsw.Connection, search: TextSearch, predicate: Predicate) -> list[str]:
    """The best by judging every row in scope."""
    reading = parse_query(db, search.text)
    question = weight_query(reading.terms, word_statistics(db, reading.index_terms), search)
    tokens = tokenizer(db)
    judged = []
    for identity, text, length in db.execute(
        f"SELECT i.id, i.text, i.length FROM item AS i WHERE {predicate.sql}", predicate.values
    ):
        score = question.score(tokens(text), (), length).score
        if score > 0:
            judged.append((-score, identity))
    return [identity for _, identity in sorted(judged)[: search.depth]]


SCOPES = {
    "everything": EVERYTHING,
    "half": within("i.rid % 2 = 0"),
    "one in fifty": within("i.rid % ? = 0", 50),
    "three": within("i.rid IN (5, 77, 1400)"),
    "the last": within("i.rid > 1480"),
    "nothing": within("0"),
}


@each_row("scope", SCOPES)
def test_the_best_in_scope_are_found_exactly(zipf: apsw.Connection, scope: str) -> None:
    """A filter is applied before any cut."""
    rng = random.Random(scope)
    for _ in range(12):
        terms = " ".join(
            word(int(rng.paretovariate(0.4)) % 800) for _ in range(rng.choice((1, 3, 5)))
        )
        asked = TextSearch(terms, depth=rng.choice((1, 10, 40)))

        found = search_text(asked, SearchContext(zipf, SCOPES[scope], hydrate))

        assert ids(found) == brute_force(zipf, asked, SCOPES[scope]), terms


@each_row("scope", SCOPES)
def test_fewer_than_asked_for_means_there_are_no_more(zipf: apsw.Connection, scope: str) -> None:
    """Even when the budget left most words out."""
    ranks = ((700, 0), (0, 1), (400, 3, 0, 799))
    for some, budget in itertools.product(ranks, (50, 20_000)):
        query = " ".join(map(word, some))
        asked = TextSearch(query, depth=60, postings_budget=budget)
        possible = len(brute_force(zipf, asked._replace(depth=10**6), SCOPES[scope]))

        found = search_text(asked, SearchContext(zipf, SCOPES[scope], hydrate))

        assert len(found.matches) == min(60, possible)


def test_a_scope_that_hides_nearly_everything_is_searched_to_its_end() -> None:
    """Though nobody set a filter: most revisions may have ended."""
    db = empty_database()
    with db:
        rows = add(db, (f"{word(n % 3)} {word(n % 40 + 3)} and more" for n in range(1_200)))
        db.execute("UPDATE item SET live_to = 1 WHERE rid % 60 <> 0")
    living = {f"m{row.rid}" for row in rows if row.rid % 60 == 0}

    for budget in (20_000, 10):
        query = TextSearch(f"{word(0)} {word(1)} {word(2)}", 50, postings_budget=budget)
        found = search_text(query, SearchContext(db, EVERYTHING, hydrate))

        assert set(ids(found)) == living


def test_of_a_long_question_the_rarest_words_are_searched(db: apsw.Connection) -> None:
    """Sixty-four of them, those that nobody knows last."""
    with db:
        add(db, [" ".join(word(n) for n in range(100)), *(word(n) for n in range(100))])
        add(db, (word(n) for n in range(50) for _ in range(3)))
    question = " ".join([*(f"unheard{'x' * n}" for n in range(30)), *(word(n) for n in range(100))])

    found = search(db, question, depth=500)

    assert found.note.startswith("64 of 130 words searched")
    assert {f"m{n + 2}" for n in range(50, 100)} <= set(ids(found))


def test_ended_memories_are_invisible_but_counted(zipf: apsw.Connection) -> None:
    """Statistics are those of the index; visibility is the predicate's."""
    hidden = within("i.id <> ?", "m00001")
    query = f"{word(0)} {word(1)}"
    first = search(zipf, query, depth=2_000)
    second = search(zipf, query, depth=2_000, predicate=hidden)

    assert set(ids(first)) - set(ids(second)) <= {"m00001"}


def test_depth_zero_finds_nothing(filled: apsw.Connection) -> None:
    """And costs nothing."""
    assert search(filled, "auth", depth=0).matches == ()
    assert like(filled, "auth", depth=0).matches == ()


# Spelling


@each_row(
    ("query", "first", "why"),
    [
        ("midleware", "m1", "misspelt: 'midleware' read as 'middleware'"),
        ("tokne", "m1", "misspelt: 'tokne' read as 'token'"),
        ("Rdeis", "m1", "misspelt: 'rdeis' read as 'Redis'"),
        ("gihtub", "m6", "misspelt: 'gihtub' read as 'GitHub'"),
        ("ddlewa", "m1", "'ddlewa' is part of 'middleware'"),
        ("authmiddleware", "m1", "'middleware' is part of 'authmiddleware'"),
        ("library", "m4", "matches library"),
    ],
)
def test_a_misspelt_word_is_read_as_the_one_it_resembles(
    filled: apsw.Connection, query: str, first: str, why: str
) -> None:
    """Slips, swapped letters, parts; and the answer says how it was read."""
    found = like(filled, query)

    assert ids(found)[0] == first
    assert found.matches[0].why == why


def test_a_short_word_does_not_match_inside_of_others(db: apsw.Connection) -> None:
    """ "are" is not "middleware"."""
    add(db, ["the middleware is new", "they are here"])

    assert ids(like(db, "are")) == ["m2"]


def test_the_score_is_the_share_of_the_question_found(filled: apsw.Connection) -> None:
    """1 for all of it as written, less for what is missing or spelled otherwise."""
    whole = like(filled, "auth token").matches[0].score
    slipped = like(filled, "auth tokne").matches[0].score
    missing = like(filled, "auth zzzzzz").matches[0].score

    assert whole == 1.0
    assert 1.0 > slipped > missing > 0.0


def test_words_of_the_original_are_found(db: apsw.Connection) -> None:
    """A memory kept in translation can be asked for in its own language."""
    add(db, ["The train leaves at eight"], original="Der Zug fährt um acht Uhr ab")

    assert ids(search(db, "fährt")) == []
    assert ids(like(db, "fährt")) == ["m1"]
    assert like(db, "Uhr").matches[0].why == "matches uhr"


def test_signs_without_a_word_are_looked_for_as_they_stand(db: apsw.Connection) -> None:
    """Operators and emoji are text too."""
    add(db, ["use ==> for arrows", "nothing here"])

    assert ids(like(db, "==>")) == ["m1"]


def test_spelling_is_exact_in_scope(zipf: apsw.Connection) -> None:
    """Fewer than asked for means there are no more."""
    predicate = within("i.rid % 7 = 0")
    wanted = word(37)
    holding = [
        identity
        for identity, text in zipf.execute("SELECT id, text FROM item WHERE rid % 7 = 0")
        if wanted in text.split()
    ]

    found = like(zipf, f"{wanted[:3]}{wanted[4]}{wanted[3]}", depth=1_000, predicate=predicate)

    assert set(holding) <= set(ids(found))


# Words and statistics


def test_words_of_a_question_carry_their_terms(filled: apsw.Connection) -> None:
    """As they are written, with what the index knows them by."""
    found = query_words_of(filled, "the parseConfig caches")

    assert [(w.shown, w.terms, w.common) for w in found] == [
        ("the", ("the",), True),
        ("parseConfig", ("pars", "config"), False),
        ("caches", ("cach",), False),
    ]


def test_statistics_count_memories(filled: apsw.Connection) -> None:
    """Unknown words are in none."""
    known = word_statistics(filled, index_terms(filled, "auth unheard"))

    assert known.documents == len(MEMORIES)
    assert known.average_length > 0
    assert dict(known.frequencies) == {"auth": 1, "unheard": 0}


def test_the_note_names_the_words_that_were_expanded(filled: apsw.Connection) -> None:
    """A word that many hold is searched as it is."""
    add(filled, ["the parser of the day"] * 3)
    assert like(filled, "parser").note == "no word expanded"
    assert like(filled, "parser midleware").note == "words expanded: midleware"


def test_of_many_that_match_alike_those_are_compared_that_rank_best(db: apsw.Connection) -> None:
    """Half as many again as are wanted, by BM25: the shortest of those with the word."""
    add(db, ["harbour " + "pad " * (110 - number) for number in range(100)])

    found = like(db, "harbour", depth=40)

    shortest = {f"m{number}" for number in range(41, 101)}
    assert len(ids(found)) == 40
    assert set(ids(found)) <= shortest
