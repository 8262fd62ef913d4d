"""Pieces of words: swapped keys, parts, inflections, other languages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.ports import SearchResult, TrigramSearch
from bethink.store.analysis import PART_SIMILARITY, best_substring_match
from bethink.store.sql.search.pieces import word_windows
from bethink.store.sqlite import SqliteStore
from records import NOW, record, scope
from rows import each_row

TEXTS = {
    "mid": "The auth-middleware drops requests without a tenant header",
    "day": "We met yesterday about the zypper cache",
    "cafe": "El equipo pidió un panel de métricas para el café",
    "ship": "Die Donaudampfschifffahrt wurde abgerechnet",
    "home": "A házainkban nincs fűtés",
    "auth": "Authentication happens at the gateway",
    "bill": "Billing runs at night",
    "tea": "Tea is at four",
}


@pytest.fixture(scope="module")
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore.open(None, space="test")
    records = [record(key, text) for key, text in TEXTS.items()]
    records.append(
        record("trans", "The customer wants invoices in German", original="Rechnungen auf Deutsch")
    )
    records.append(record("kept", "The river is high", about="Flutwarnung"))
    opened.items.put(records, actor="x", now=NOW)
    yield opened
    opened.close()


def pieces(
    store: SqliteStore, text: str, *, original: bool = False, share: float = 0.0
) -> SearchResult:
    return store.search.pieces(TrigramSearch(text, 10, original, share), scope())


def best(found: SearchResult) -> tuple[str, str]:
    first = found.matches[0]
    return first.item.id, first.why


@each_row(
    ("asked", "found", "told"),
    [
        ("middleware", "mid", "contains middleware"),
        ("zesterdaz", "day", "'zesterdaz' read as 'yesterday', z and y swapped"),
        ("yzpper", "day", "'yzpper' read as 'zypper', z and y swapped"),
        ("dampfschiff", "ship", "'dampfschiff' is part of 'donaudampfschifffahrt'"),
        ("CAFE metricas", "cafe", "contains cafe"),
        ("midleware", "mid", "'midleware' is similar to 'middleware'"),
        ("házaimban", "home", "'hazaimban' is similar to 'hazainkban'"),
        ("authentifizierung", "auth", "'authentifizierung' is similar to 'authentication'"),
        ("warnung", "kept", "'warnung' is part of 'flutwarnung'"),
    ],
)
def test_a_piece_finds_its_memory(store: SqliteStore, asked: str, found: str, told: str) -> None:
    """Parts, swapped keys, typos, inflections, accents and words kept beside the text."""
    item, why = best(pieces(store, asked))

    assert item == found
    assert told in why


def test_originals_are_searched_by_themselves(store: SqliteStore) -> None:
    """What was translated is found by its own language, and only there."""
    assert best(pieces(store, "rechnung", original=True))[0] == "trans"
    assert not pieces(store, "rechnung").matches
    assert not pieces(store, "customer", original=True).matches


def test_the_first_way_that_finds_is_enough(store: SqliteStore) -> None:
    """A word that is there as typed is not looked for in windows too."""
    assert [match.item.id for match in pieces(store, "billing").matches] == ["bill"]


def test_short_words_count_only_as_words(store: SqliteStore) -> None:
    """The word "tea" is a word of one memory and a part of none; "eus" is most of "Zeus"."""
    assert [match.item.id for match in pieces(store, "tea").matches] == ["tea"]
    assert best_substring_match("are", "middleware") is None
    assert best_substring_match("eus", "zeus is old") == (
        pytest.approx(0.75 * PART_SIMILARITY),
        "zeus",
    )


def test_the_score_is_the_share_that_was_found(store: SqliteStore) -> None:
    """Little of a long question is not enough where a share is asked for."""
    question = "billing xylophone quasar obelisk"

    assert best(pieces(store, question))[0] == "bill"
    assert pieces(store, question).matches[0].score < 0.3
    assert not pieces(store, question, share=0.3).matches


def test_windows_overlap_by_half() -> None:
    """Half the word's length, at least four letters, of words of seven or more."""
    assert word_windows("window") == []
    assert word_windows("windows") == ["wind", "ndow", "dows"]
    assert word_windows("lighthouse") == ["light", "ghtho", "thous", "house"]


@given(st.text(min_size=7, max_size=60))
def test_windows_cover_the_word(word: str) -> None:
    """Every letter stands in one, and each is at least four letters long."""
    cut = word_windows(word)

    assert cut[0] == word[: len(cut[0])]
    assert word.endswith(cut[-1])
    assert {len(part) for part in cut} == {max(len(word) // 2, 4)}
    assert all(part in word for part in cut)


@given(st.text(max_size=40))
def test_any_text_may_be_asked(store: SqliteStore, text: str) -> None:
    """Operators, quotes, emoji, other scripts: all just letters to look for."""
    for original in (False, True):
        found = pieces(store, text.replace("\0", ""), original=original)
        assert all(0 < match.score <= 1.0000001 for match in found.matches)
