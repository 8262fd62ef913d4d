"""Every retriever keeps the laws of `bethink.testing`. A new one is tested by being there."""

from __future__ import annotations

from bethink import Memory
from bethink.core.characters import find_unstorable
from bethink.model import Filters
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.testing import check_retriever
from corpus import QUESTIONS, days_ago
from naughty import NAUGHTY
from rows import each_row
from thorough import share

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


@each_row("name", NAMES)
def test_a_retriever_keeps_the_laws(filled: Memory, name: str) -> None:
    """Best first, unique, ranked from 1, each score its own evidence; filters before the cut."""
    check_retriever(RETRIEVERS[name](), filled, questions=ASKED, filters=FILTERS, texts=())


@each_row("name", NAMES)
def test_any_text_is_a_valid_question(filled: Memory, name: str) -> None:
    """Operators, quotes, emoji, other scripts: all just words to look for."""
    texts = [
        text
        for text in share(NAUGHTY, NAMES.index(name), of=3)
        if text.strip() and find_unstorable(text) is None and len(text.encode()) <= 8192
    ]

    check_retriever(RETRIEVERS[name](), filled, questions=(), texts=texts)
