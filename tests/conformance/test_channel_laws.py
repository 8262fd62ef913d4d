"""Every channel keeps the same laws. A new one in CHANNELS is picked up by itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bethink import Memory
from bethink.core.text import find_unstorable
from bethink.model import Filters, Query, replay, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.scope import rejection_reason
from corpus import NOW, QUESTIONS, days_ago
from naughty import NAUGHTY

NAMES = sorted(RETRIEVERS)
ASKED = [text for text, _ in QUESTIONS] + ["Priya Maria Tomasz", "midleware tennant", "the"]
FILTERS = [
    Filters(),
    Filters(kinds=("fact",)),
    Filters(topics=("ops", "auth")),
    Filters(levels=("raw",)),
    Filters(since=days_ago(30), until=days_ago(5)),
    Filters(entities=("Priya",)),
    Filters(tags=("incident",)),
    Filters(max_classification=3, min_trust=1),
    Filters(speakers=("Ben",), sessions=("standup-7",)),
]


def ask(memory: Memory, text: str, filters: Filters | None = None) -> Context:
    return Context(Query(text, NOW, filters=filters or Filters()), memory.store, memory.embedder)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", ASKED)
def test_a_channel_answers_lawfully(filled: Memory, name: str, text: str) -> None:
    """Best first, unique, ranked from 1, each score its own single reason."""
    pool = RETRIEVERS[name]()(ask(filled, text))

    assert pool == sort_by_score(pool)
    assert len({cand.item.id for cand in pool}) == len(pool)
    assert [cand.evidence[-1].rank for cand in pool] == list(range(1, len(pool) + 1))
    assert all(replay(cand.evidence) == cand.score for cand in pool)
    assert pool == RETRIEVERS[name]()(ask(filled, text))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("filters", FILTERS)
@pytest.mark.parametrize("text", ASKED)
def test_filters_come_before_the_cut(
    filled: Memory, name: str, filters: Filters, text: str
) -> None:
    """A filtered search gives the best of those in scope, not what a cut left of them."""
    everything = RETRIEVERS[name](depth=1000)(ask(filled, text, replace(filters)))
    few = RETRIEVERS[name](depth=3)(ask(filled, text, filters))
    scope = ask(filled, text, filters).scope

    assert all(rejection_reason(cand.item, scope) is None for cand in few)
    assert [c.item.id for c in few] == [c.item.id for c in everything[:3]]


@pytest.mark.parametrize("name", NAMES)
def test_any_text_is_a_valid_question(filled: Memory, name: str) -> None:
    """Operators, quotes, emoji, other scripts: all just words to look for."""
    channel = RETRIEVERS[name]()
    for text in NAUGHTY:
        if text.strip() and find_unstorable(text) is None and len(text.encode()) <= 8192:
            channel(ask(filled, text))
