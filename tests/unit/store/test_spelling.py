"""Likeness of spellings: slips, swaps and parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bethink.store.analysis import (
    PART_SIMILARITY,
    edit_distance,
    max_edits,
    one_edit_variants,
    spelling_similarity,
    trigrams,
)
from rows import each_row

small_words = st.text("abc", min_size=1, max_size=7)


def full_table(one: str, other: str) -> int:
    """Optimal string alignment without shortcuts."""
    table = {(i, -1): i + 1 for i in range(-1, len(one))}
    table |= {(-1, j): j + 1 for j in range(-1, len(other))}
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            steps = [table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (a != b)]
            if i and j and a == other[j - 1] and one[i - 1] == b:
                steps.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(steps)
    return table[len(one) - 1, len(other) - 1]


@given(small_words, small_words, st.integers(0, 3))
def test_slips_are_counted_exactly_up_to_the_limit(one: str, other: str, most: int) -> None:
    """A column in one number loses nothing."""
    true = full_table(one, other)

    assert edit_distance(one, other, most) == (true if true <= most else None)


@given(small_words)
def test_one_slip_away_is_all_that_is_one_slip_away(word: str) -> None:
    """And the word itself, which is none."""
    for other in one_edit_variants(word):
        assert full_table(word, other) <= 1


@each_row(
    ("word", "other"),
    [
        ("midlewar", "middlewar"),
        ("cahce", "cache"),
        ("tokne", "token"),
        ("databs", "databas"),
        ("teh", "the"),
        ("authentif", "authent"),
    ],
)
def test_misspelt_words_are_nearly_the_word(word: str, other: str) -> None:
    """Worth less than the word, more than any part."""
    assert PART_SIMILARITY < spelling_similarity(word, other) < 1.0


@each_row(
    ("word", "other"),
    [("are", "middlewar"), ("are", "art"), ("2023", "2024"), ("cat", "dog"), ("v2", "v3")],
)
def test_other_words_are_not(word: str, other: str) -> None:
    """Short parts say nothing, short words and figures are not bent."""
    assert spelling_similarity(word, other) == 0.0


def test_parts_are_worth_by_their_length() -> None:
    """The more of the word, the better; never as much as a misspelt word."""
    assert (
        0
        < spelling_similarity("ware", "middleware")
        < spelling_similarity("middle", "middleware")
        < PART_SIMILARITY
    )
    assert spelling_similarity("authmiddlewar", "middlewar") < PART_SIMILARITY
    assert spelling_similarity("same", "same") == 1.0


def test_short_words_and_figures_allow_no_slips() -> None:
    """Two letters could be anything."""
    assert [max_edits(w) for w in ("ab", "abc", "abcde", "abcdef", "abc1")] == [0, 1, 1, 2, 0]


def test_trigrams_are_given_once() -> None:
    """Words shorter than three letters have none."""
    assert trigrams("ababab") == ("aba", "bab")
    assert trigrams("ab") == ()
