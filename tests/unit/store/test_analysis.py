"""Words of memories and of questions: however a name is written, both sides meet."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.store.analysis import extra_index_words, fold, query_units, unspaced_runs
from bethink.store.sql.search.lexical import index_terms, query_words_of
from bethink.store.sql.search.terms import tokenizer
from rows import each_row

any_text = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=40
)
tricky_text = st.text(
    "aAbZ09_-./\\ :@#+~'’éßøİıﬁＡ½⁵日本語คนกิहिन्दी한국άΣςёй\u0301\u0306\u00ad\u200b🥳()[]\"",
    max_size=30,
)


@pytest.fixture(scope="module")
def db() -> apsw.Connection:
    return apsw.Connection(":memory:")


@each_row(
    ("text", "extra"),
    [
        ("parseConfig", "parse config"),
        ("HTTPServer2", "http server 2"),
        ("parse_config", "parseconfig"),
        ("auth-middleware", "authmiddleware"),
        ("src/a/b.py", ""),
        ("src/parseConfig/b.py", "src parse config b py"),
        ("v2.3.1", "2 3 1 2dot3dot1"),
        ("2.3.1", "2dot3dot1"),
        ("2024-01-15", "20240115"),
        ("node.js", "nodejs"),
        ("U.S.A.", "usa"),
        ("C++", "cplusplus"),
        ("C#", "csharp"),
        (".env", "dotenv"),
        ("O'Brien", "obrien"),
        ("the user's", ""),
        ("IDs and URLs", ""),
        ("log4j", ""),
        ("straße", "strasse"),
        ("ＦＵＬＬ", "full"),
        ("ﬁne", "fine"),
        ("łódź", "lodz"),
        ("ёлка", "елка"),
        ("café naïve", ""),
        ("soft\u00adhyphen", "softhyphen"),
        ("done🥳", "done"),
        ("10⁵", "10 5"),
        ("日本語", "日本 本語 日 本 語"),
        ("API設計", "api 設計 設 計"),
        ("an ordinary Sentence WITHOUT names", ""),
    ],
)
def test_a_text_is_indexed_by_what_its_tokens_lack(text: str, extra: str) -> None:
    """Parts, joined and plain forms are added where the tokenizer does not make them."""
    assert extra_index_words(text) == extra


@each_row(
    ("text", "asked", "joined"),
    [
        ("parse_config", ("parse", "config"), "parseconfig"),
        ("parseConfig", ("parse", "config"), "parseconfig"),
        ("src/a/b.py", ("src", "a", "b", "py"), ""),
        ("v2.3.1", ("2", "3", "1"), "2dot3dot1"),
        ("v2", ("v", "2"), "v2"),
        ("to-do", ("todo",), ""),
        ("日本語", ("日本", "本語"), ""),
        ("本", ("本",), ""),
        ("กินข้าว", ("กน", "นข", "ขา", "าว"), ""),
        ("550e8400-e29b", ("550e8400", "e29b"), "550e8400e29b"),
    ],
)
def test_a_name_is_asked_for_by_its_parts_and_as_one_word(
    text: str, asked: tuple[str, ...], joined: str
) -> None:
    """Whichever way the memory writes it."""
    (unit,) = query_units(text)

    assert (unit.shown, unit.words, unit.joined) == (text, asked, joined)


@given(any_text | tricky_text)
def test_every_word_of_a_question_is_indexed_when_a_memory_says_the_same(text: str) -> None:
    """Both sides meet, whatever the text."""
    db = apsw.Connection(":memory:")
    tokens = tokenizer(db)

    indexed = set(index_terms(db, text))

    assert {term for word in query_words_of(db, text) for term in word.terms} <= indexed
    assert {term for unit in query_units(text) for term in tokens(unit.joined)} <= indexed


def test_common_words_are_marked_unless_there_are_no_others() -> None:
    """Something must be searched."""
    mixed = query_units("what is the plan")
    only_common = query_units("what is it")

    assert [unit.shown for unit in mixed if not unit.common] == ["plan"]
    assert not any(unit.common for unit in only_common)


@each_row(
    ("question", "telling"),
    [
        ("Was brauchen wir für Pakete in die Schweiz?", ["brauchen", "Pakete", "Schweiz"]),
        ("Wie hoch ist der Turm?", ["hoch", "Turm"]),
        ("¿dónde está el servidor de pruebas?", ["servidor", "pruebas"]),
        ("qu'est-ce que le client a demandé ?", ["client", "demandé"]),
        ("come si chiama il backup della base dati?", ["chiama", "backup", "base", "dati"]),
        ("wat is de naam van de nachtelijke backup", ["naam", "nachtelijke", "backup"]),
        ("o que é o backup da base de faturas", ["backup", "base", "faturas"]),
        ("docker bin dir", ["docker", "bin", "dir"]),
        ("war file location", ["war", "file", "location"]),
        ("how did the workers die in the war", ["workers", "die", "war"]),
        ("des cipher", ["des", "cipher"]),
        ("le deploy", ["le", "deploy"]),
    ],
)
def test_common_words_are_those_of_the_questions_language(
    question: str, telling: list[str]
) -> None:
    """A few words that are common elsewhere do not make a question one of that language."""
    assert [unit.shown for unit in query_units(question) if not unit.common] == telling


def test_a_capital_makes_a_common_word_a_name() -> None:
    """May and Will are not may and will; at the start, and in shouting, capitals say nothing."""
    named = {
        unit.shown
        for unit in query_units("Did we ask Will in May what I can do")
        if not unit.common
    }
    shouted = [unit.shown for unit in query_units("WHAT IS THE PLAN") if not unit.common]

    assert {"Will", "May"} <= named
    assert not {"Did", "I"} & named
    assert shouted == ["PLAN"]


def test_each_thing_is_asked_for_once_and_shown_as_it_was_typed() -> None:
    """In the order of the question, without the punctuation around it."""
    units = query_units("«Café», café or (naïve) CAFE?")

    assert [unit.shown for unit in units] == ["Café", "or", "naïve"]


def test_a_huge_question_is_read_up_to_a_limit() -> None:
    """Its cost is bounded by the number of words."""
    assert len(query_units(" ".join(f"word{n}x" for n in range(5_000)))) == 512


def test_a_blob_is_not_taken_apart() -> None:
    """A run of hundreds of characters is no name."""
    blob = "aB1-" * 100 + "z"

    assert extra_index_words(blob) == ""
    assert query_units(blob)[0].joined == ""


@each_row(
    ("one", "other"),
    [
        ("Straße", "STRASSE"),
        ("ＡＢＣ", "abc"),
        ("Ålesund", "alesund"),
        ("ΟΔΌΣ", "οδος"),
        ("мой", "МОЙ"),
    ],
)
def test_spellings_of_one_word_fold_to_the_same(one: str, other: str) -> None:
    """Case, width and accents do not count; й is a letter of its own."""
    assert fold(one) == fold(other)
    assert fold("мой") != fold("мои")


def test_unspaced_runs_are_those_of_scripts_without_spaces() -> None:
    """Where the end of a word cannot be seen."""
    assert unspaced_runs("mit 田中さん und 한국어") == ["田中さん", "한국어"]
    assert unspaced_runs("plain words") == []
