"""siftcoder's deterministic reranker, each term of its formula at its boundaries.

score = Σ over the question's tokens (tf / length)·idf + 0.1 for each distinct token
that is there + 0.4 if the whole question of at least 4 characters is there
− 0.01·ln(1 + length) + 0.5 × the score so far.

Ours differs in two things, on purpose: idf is taken over the whole space instead of
its newest 2,000 summaries, from an index that counts words by their stems; and white
space does not keep a phrase from being found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from math import log

import pytest

from bethink import Memory
from bethink.core.words import bm25_idf
from bethink.model import Candidate, Item, Query
from bethink.retrieval.context import Context
from bethink.retrieval.overlap import OverlapScorer, OverlapWeights, content_tokens
from bethink.systems.siftcoder import OverlapRerank
from rows import each_row

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
STOP = "an and are as at be by for from in is it of on or the to"


@pytest.fixture
def memory() -> Iterator[Memory]:
    """Four memories: cache stands in two of them, token in one, deploy in none."""
    with Memory.open(":memory:", embedder="none") as opened:
        opened.remember_many(
            ["cache entries expire", "a cache of sorts", "token rotation", "something else"]
        )
        yield opened


def read(memory: Memory, question: str, text: str, score: float = 0.0) -> float:
    """What the reranker makes of one memory that so far had this score."""
    return judged(memory, question, [Candidate(Item("i", text, NOW, "user"), score)])[0].score


def judged(memory: Memory, question: str, pool: list[Candidate]) -> tuple[Candidate, ...]:
    seen = [replace_evidence(cand) for cand in pool]
    return OverlapRerank()(tuple(seen), Context(Query(question, NOW), memory.store))


def replace_evidence(cand: Candidate) -> Candidate:
    return Candidate(cand.item).with_evidence("fuse", "add", cand.score)


def idf(held: int, documents: int = 4) -> float:
    return log(1 + (documents - held + 0.5) / (held + 0.5))


def test_tokens_are_of_two_letters_and_more() -> None:
    """Letters, digits, underscores and hyphens, in lower case; single ones do not count."""
    assert content_tokens("Fix AUTH_token v2 re-use x 7 ß d'or né") == [
        "fix", "auth_token", "v2", "re-use",
    ]  # fmt: skip


def test_seventeen_words_say_nothing() -> None:
    """Those, and no others."""
    assert len(STOP.split()) == 17
    assert content_tokens(STOP) == []
    assert content_tokens("with this that was not if") == [
        "with",
        "this",
        "that",
        "was",
        "not",
        "if",
    ]


def test_rarity_is_as_written() -> None:
    """ln(1 + (N − df + 0.5) ÷ (df + 0.5)), from a word nobody has to one that all have."""
    assert bm25_idf(4, 0) == pytest.approx(log(1 + 4.5 / 0.5))
    assert bm25_idf(4, 4) == pytest.approx(log(1 + 0.5 / 4.5))
    assert bm25_idf(0, 0) == pytest.approx(log(2))


def test_a_shared_word_counts_by_rarity_and_share(memory: Memory) -> None:
    """tf/len·idf, 0.1 for the word, less the length: nothing else for a question of two words
    that are not there as a phrase."""
    expected = 2 / 3 * idf(2) + 0.1 - 0.01 * log(4)

    assert read(memory, "cache deploy", "cache is cache and vault") == pytest.approx(expected)


def test_rarity_is_that_of_the_whole_space(memory: Memory) -> None:
    """A word of no memory tells most, one of several less."""
    for word, held in (("deploy", 0), ("token", 1), ("cache", 2)):
        assert read(memory, f"{word} elephant", f"{word} vault") == pytest.approx(
            idf(held) / 2 + 0.1 - 0.01 * log(3)
        )


def test_a_word_asked_twice_counts_twice_but_is_one_word(memory: Memory) -> None:
    """The sum runs over the question's tokens, the tenth over distinct ones."""
    assert read(memory, "cache x cache", "cache vault") == pytest.approx(
        2 * idf(2) / 2 + 0.1 - 0.01 * log(3)
    )


@each_row(
    ("question", "text", "whole"),
    [
        ("cache", "cache", True),
        ("Cache Token", "the cache token", True),
        ("cache token", "precache tokens", True),
        ("cache\n token", "the cache\ttoken", True),
        ("cache token", "token cache", False),
        ("k8s!", "on k8s!", True),
        ("k8s", "on k8s", False),
    ],
)
def test_the_whole_question_counts_from_four_characters_on(
    question: str, text: str, whole: bool
) -> None:
    """As a part of the text, in any case of letters, 0.4."""
    words = OverlapScorer(question)
    nothing = dict.fromkeys(words.words, 0.0)

    with_phrase = words.score(text, nothing, OverlapWeights()).value
    without = words.score(text, nothing, OverlapWeights(whole=0.0)).value

    assert with_phrase - without == pytest.approx(0.4 if whole else 0.0)


def test_length_costs_by_its_logarithm(memory: Memory) -> None:
    """0.01·ln(1 + tokens); a text without tokens costs nothing."""
    assert read(memory, "deploy", "vault " * 99) == pytest.approx(-0.01 * log(100))
    assert read(memory, "deploy", "the of a") == 0.0
    assert read(memory, "deploy", "") == 0.0


def test_half_of_the_score_so_far_stays(memory: Memory) -> None:
    """0.5 × it, of those that are not read too."""
    assert read(memory, "deploy", "", score=0.0328) == pytest.approx(0.0164)

    pool = [Candidate(Item(f"i{n:02}", "", NOW, "user"), 1 - n / 100) for n in range(60)]
    out = judged(memory, "deploy", pool)

    assert [cand.score for cand in out] == pytest.approx([cand.score / 2 for cand in pool])


def test_all_terms_together(memory: Memory) -> None:
    """The formula on one memory, worked out by hand."""
    text = "Fix: the auth token cache kept a stale token"
    tokens = ["fix", "auth", "token", "cache", "kept", "stale", "token"]
    expected = (
        (1 / 7) * idf(0) + (2 / 7) * idf(1) + (1 / 7) * idf(2)
        + 3 * 0.1
        + 0.4
        - 0.01 * log(1 + 7)
        + 0.5 * 0.03
    )  # fmt: skip

    assert content_tokens(text) == tokens
    assert read(memory, "auth token cache", text, 0.03) == pytest.approx(expected)


def test_every_part_can_be_weighed(memory: Memory) -> None:
    """Its numbers are settings of the stage."""
    ctx = Context(Query("cache", NOW), memory.store)
    plain = OverlapRerank(prior=1.0, per_word=0.0, whole=0.0, length_penalty=0.0)
    cand = Candidate(Item("i", "cache vault", NOW, "user")).with_evidence("fuse", "add", 0.25)

    assert plain((cand,), ctx)[0].score == pytest.approx(0.25 + idf(2) / 2)
    assert replace(plain, top=0)((cand,), ctx)[0].score == 0.25


def test_a_question_without_words_changes_no_order(memory: Memory) -> None:
    """Where there is nothing to share, only length and what came before count."""
    pool = [Candidate(Item(f"i{n}", "vault", NOW, "user"), score) for n, score in enumerate((3, 2))]

    out = judged(memory, "of the", pool)

    assert [cand.item.id for cand in out] == ["i0", "i1"]
    assert out[0].score == pytest.approx(1.5 - 0.01 * log(2))
