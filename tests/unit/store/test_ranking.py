"""Exact BM25: the formula, its bounds, and what names earn."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.core.words import bm25_idf
from bethink.ports import TextSearch, WordStatistics
from bethink.store.ranking import QueryTerm, WeightedQuery, weight_query

KNOWN = WordStatistics(
    documents=100,
    average_length=10.0,
    frequencies={"auth": 5, "token": 20, "the": 90, "pars": 10, "config": 10, "parseconfig": 3},
)
AUTH = QueryTerm("auth", ("auth",), ("auth",))
TOKEN = QueryTerm("tokens", ("tokens",), ("token",))
NAME = QueryTerm("parse_config", ("parse", "config"), ("pars", "config"), "parseconfig")


def question(*wanted: QueryTerm, **settings: float) -> WeightedQuery:
    return weight_query(wanted, KNOWN, TextSearch("", **settings))  # type: ignore[arg-type]


def test_the_score_is_the_sum_over_words_of_idf_times_saturation() -> None:
    """Worked by hand for one word once in a memory of average length."""
    expected = math.log(1 + 95.5 / 5.5) * 1 * 2.2 / (1 + 1.2)

    assert question(AUTH).score(["auth", "x"], [], 10).score == pytest.approx(expected)


def test_idf_is_never_negative() -> None:
    """Not even for a word in every memory, or in more than are counted."""
    assert bm25_idf(10, 10) > 0
    assert bm25_idf(10, 12) > 0
    assert bm25_idf(0, 0) > 0


def test_a_rarer_word_and_a_shorter_memory_score_higher() -> None:
    """The two directions of the formula."""
    both = question(AUTH, TOKEN)

    assert both.score(["auth"], [], 10).score > both.score(["token"], [], 10).score
    assert both.score(["auth"], [], 5).score > both.score(["auth"], [], 20).score


def test_words_around_a_memory_count_by_their_weight() -> None:
    """With weight 1 it makes no difference where a word stands, with 0 it does not count."""
    even, deaf = question(AUTH), question(AUTH, about_weight=0.0)

    assert even.score(["auth"], [], 10) == even.score([], ["auth"], 10)
    assert deaf.score([], ["auth"], 10).score == 0.0


def test_equal_words_in_another_order_score_exactly_the_same() -> None:
    """So that ties are ties, to the last bit."""
    both = question(AUTH, TOKEN, QueryTerm("the", ("the",), ("the",)))
    words = ["auth", "token", "the", "token"]

    assert both.score(words, [], 4).score == both.score(words[::-1], [], 4).score


def test_a_name_in_full_outranks_its_parts_apart() -> None:
    """Side by side, or as one word, earns the parts once more."""
    asked = question(NAME)
    apart = asked.score(["pars", "the", "config"], [], 3)
    together = asked.score(["the", "pars", "config"], [], 3)
    as_one = asked.score(["the", "parseconfig", "x"], [], 3)

    assert together.score == pytest.approx(apart.score + sum(asked.weights.values()))
    assert as_one.score == pytest.approx(together.score)


def test_parts_side_by_side_across_columns_are_no_name() -> None:
    """The end of the text and the beginning of what is around it are not neighbours."""
    asked = question(NAME)

    assert not asked.score(["pars"], ["config"], 2).names
    assert asked.score([], ["x", "pars", "config"], 3).names == (NAME,)


def test_a_sign_that_makes_a_name_counts_only_with_the_name() -> None:
    """C++ is more than the letter C."""
    sharp = QueryTerm("C#", ("c",), ("c",), "csharp")
    known = KNOWN._replace(frequencies={"c": 30, "csharp": 2})
    asked = weight_query([sharp], known, TextSearch(""))

    assert asked.score(["csharp"], [], 5).score > asked.score(["c"], [], 5).score > 0


@given(
    text=st.lists(st.sampled_from(["auth", "token", "pars", "config", "parseconfig", "x"])),
    about=st.lists(st.sampled_from(["auth", "token", "pars", "config", "x"])),
    weight=st.floats(0, 5),
)
def test_no_memory_scores_above_the_ceiling(
    text: list[str], about: list[str], weight: float
) -> None:
    """However often it repeats the question."""
    asked = question(AUTH, TOKEN, NAME, about_weight=weight)

    scored = asked.score(text, about, len(text) + len(about))

    assert 0.0 <= scored.score <= asked.ceiling


def test_why_names_the_words_of_the_question() -> None:
    """As they were written, not as they are indexed; of a name only the parts that are there."""
    asked = question(AUTH, TOKEN, NAME)

    assert asked.why(asked.score(["token", "auth"], [], 2)) == "matches auth, tokens"
    assert asked.why(asked.score(["parseconfig"], [], 1)) == "matches parse_config"
    assert asked.why(asked.score(["pars"], [], 1)) == "matches parse"
    assert asked.why(asked.score(["x"], [], 1)) == ""


def test_an_empty_store_can_be_asked() -> None:
    """No memories, no lengths, no division by zero."""
    nothing = WordStatistics(0, 0.0, {})

    assert weight_query([AUTH], nothing, TextSearch("")).score(["auth"], [], 1).score > 0
