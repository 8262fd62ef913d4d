"""The first minute: paraphrased questions over one, three and ten memories."""

from __future__ import annotations

import pytest

from bethink import Memory

ASKED = {
    "Our CI runs on self-hosted runners in Frankfurt": "where are builds executed?",
    "The cat must take her pill with breakfast": "when does the pet get her medicine?",
    "Salaries are paid on the 25th of every month": "what day do employees get their money?",
    "We chose Rust for the new ingest service": "what language is the importer written in?",
    "The spare key is with our neighbour Mrs Lindqvist": "who can let me in if I lock myself out?",
    "Customer refunds above 200 euros need approval by Dana": "who signs off on large repayments?",
    "Backups are copied to Glacier every Sunday night": "how often is data archived?",
    "My daughter is allergic to peanuts": "is there any food my kid cannot eat?",
    "Error 4312 means that the licence has expired": "what does code 4312 tell me?",
    "Meetings with the auditors are in room Cedar": "where do we meet the people who check our books?",
}
MEMORIES = tuple(ASKED)


@pytest.mark.parametrize(("size", "right"), [(1, 9), (3, 9), (10, 7)])
def test_paraphrases_are_answered_plainly(size: int, right: int) -> None:
    """Nine of ten have the right memory first, seven among ten; seven are told as found."""
    first, plain = [], []
    for place, (text, question) in enumerate(ASKED.items()):
        stored = [MEMORIES[(place + step) % len(MEMORIES)] for step in range(size)]
        with Memory.open(":memory:") as memory:
            memory.remember_many(stored)
            answer = memory.recall(question)
        first += [question] if answer.hits and answer.hits[0].item.text == text else []
        plain += [question] if answer.status == "found" else []

    assert len(first) >= right, first
    assert len(plain) >= 7, plain


def test_the_questions_of_the_readme() -> None:
    """Two memories: each is found by its question, and nothing is said of a third subject."""
    with Memory.open(":memory:") as memory:
        memory.remember("We decided to use PostgreSQL for billing: row-level security")
        memory.remember("The deploy key lives in vault B, rotated every quarter")
        database = memory.recall("which database did we choose?")
        key = memory.recall("where is the deploy key?")
        violin = memory.recall("how do I tune a violin?")

    assert (database.status, database.hits[0].item.text[:10]) == ("found", "We decided")
    assert (key.status, key.hits[0].item.text[:10]) == ("found", "The deploy")
    assert violin.status == "nothing_matched"
