"""Search by likeness of words: how alike two texts are as sets of words, without a model.

The likeness is the angle between two sets of content words, as the share of bits that random
signatures of them would have in common (Charikar, STOC 2002): 1 for the same words, 0.5 for
none in common. It is computed, not estimated from bits: the posting lists know which memories
hold words of the question, and these are few enough to be compared as they are.

A short question is compared by its own length: all its words in a long memory still make a
wide angle, so the cosine is normalised by the best that so many words could reach there. That
only counts where they are more than what texts share by chance. A long text is also compared
by every window of twelve words: a question of three drowns in sixty, not in twelve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import apsw

from bethink.ports import SearchResult, TextSearch
from bethink.store.analysis import STOP_WORDS, extra_index_words
from bethink.store.sql.connection import Database
from bethink.store.sql.search.lexical import SearchContext, find_candidates, load_matches
from bethink.store.sql.search.terms import tokenizer

MIN_CANDIDATES = 200  # memories compared, those with the most telling words in common
STEP_WORDS = 6  # words; two steps are a window
MAX_WORDS_WITHOUT_WINDOWS = 24  # words; longer texts have windows
MAX_WINDOWS = 64
MIN_COSINE_TO_SCALE = 0.35  # texts of common words reach less by chance


def search_word_sets(
    text: str, depth: int, min_likeness: float, ctx: SearchContext
) -> SearchResult:
    """Return memories in scope with similar words, best first, ties by id."""
    asked = frozenset(content_terms(ctx.db, text))
    if not asked or depth < 1:
        return SearchResult((), "the question has no content term")
    search = TextSearch("", max(MIN_CANDIDATES, depth))
    rows = find_candidates(asked, search, ctx)
    alike = [(-_likeness(asked, content_terms(ctx.db, row.text)), row.id, row.rid) for row in rows]
    best = sorted(one for one in alike if -one[0] >= min_likeness)[:depth]
    found = [(rid, -low, f"words {-low:.0%} similar") for low, _, rid in best]
    note = f"{len(rows):,} memories with common words compared"
    return SearchResult(load_matches(found, ctx), note, 1.0)


def content_terms(db: Database, text: str) -> list[str]:
    """Return the content terms of a text, each once.

    Scripts without spaces add their bigrams, accented words their plain forms.
    """
    tokens = tokenizer(db)
    terms = tokens(text)
    if not text.isascii():
        terms += tokens(extra_index_words(text))
    stop_terms = _stop_terms()
    return [term for term in dict.fromkeys(terms) if term not in stop_terms]


@lru_cache(maxsize=1)
def _stop_terms() -> frozenset[str]:
    """Return the stop words as index terms."""
    db = apsw.Connection(":memory:")
    try:
        return STOP_WORDS.union(tokenizer(db)(" ".join(sorted(STOP_WORDS))))
    finally:
        db.close()


def _likeness(asked: frozenset[str], terms: Sequence[str]) -> float:
    """Return how alike a question is to a text, or to the likest window of a long one."""
    compared = [terms]
    if len(terms) > MAX_WORDS_WITHOUT_WINDOWS:
        starts = range(0, len(terms) - STEP_WORDS, STEP_WORDS)[:MAX_WINDOWS]
        compared += [terms[at : at + 2 * STEP_WORDS] for at in starts]
    return max(_word_likeness(asked, words) for words in compared)


def _word_likeness(asked: frozenset[str], words: Sequence[str]) -> float:
    shared = len(asked.intersection(words))
    cosine = shared / math.sqrt(len(asked) * max(len(words), 1))
    if cosine >= MIN_COSINE_TO_SCALE:
        cosine *= math.sqrt(max(len(words) / len(asked), 1.0))
    return 1.0 - math.acos(min(cosine, 1.0)) / math.pi
