"""Counting tokens without a model."""

from __future__ import annotations

import random
import string

from bethink.agents.briefing import estimate_max_tokens
from bethink.ports import Embedder
from corpus import NOTES
from rows import each_row

TEXTS = [
    *(str(note["text"]) for note in NOTES),
    "[0123456789abcdef 1] 01JC8Z4K7Q9W | decision | 2026-05-01 | trust 2: user or agent, claude-code",
    "def foo(x: int) -> str:\n    return json.dumps({'a': x})\n",
    "我们决定使用 PostgreSQL 作为数据库",
    "Приветствую вас, это тест",
    "HTTP_API_URL=https://example.org/a?b=c&d=%20e",
    "".join(random.Random(7).choices(string.hexdigits, k=400)),
    "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=400)),
]


@each_row("text", TEXTS)
def test_it_counts_rather_too_many(text: str, embedder: Embedder) -> None:
    """A budget kept by this count is kept by a tokenizer's, or nearly so."""
    assert estimate_max_tokens(text) >= 0.95 * embedder.count_tokens(text)


def test_plain_words_are_not_counted_twice(embedder: Embedder) -> None:
    """In ordinary text it is at most two times too many."""
    text = " ".join(str(note["text"]) for note in NOTES)

    assert estimate_max_tokens(text) <= 2 * embedder.count_tokens(text)
    assert estimate_max_tokens("") == 0
