"""How well a text shares a question's words: by rarity, as a whole phrase, by length."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

_TOKEN = re.compile(r"[a-z0-9_-]{2,}")
_STOP = frozenset(
    ("an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it", "of", "on",
     "or", "the", "to")
)  # fmt: skip
# A shorter question stands in nearly any text.
_SHORTEST_PHRASE = 4


class Weights(NamedTuple):
    """What each distinct shared word, the question as a whole and length count for."""

    per_word: float = 0.1
    whole: float = 0.4
    length_penalty: float = 0.01


class Shared(NamedTuple):
    """The measure, and the words that made it."""

    value: float
    words: tuple[str, ...]


class Question:
    """A question's telling words, and itself as a phrase."""

    def __init__(self, text: str) -> None:
        self.words = telling(text)
        self._phrase = _one_line(text)

    def shared(self, text: str, rarity: Mapping[str, float], weights: Weights) -> Shared:
        """Σ (count ÷ length)·rarity over the question's words, plus what the weights say.

        Length is in telling words; the penalty grows with its logarithm.
        """
        counts = Counter(telling(text))
        length = counts.total()
        words = tuple(sorted({word for word in self.words if counts[word]}))
        value = sum(counts[word] / length * rarity[word] for word in self.words if counts[word])
        value += weights.per_word * len(words)
        if len(self._phrase) >= _SHORTEST_PHRASE and self._phrase in _one_line(text):
            value += weights.whole
        return Shared(value - weights.length_penalty * math.log1p(length), words)


def telling(text: str) -> list[str]:
    """The words of two letters and more that are not everywhere, in their order."""
    return [word for word in _TOKEN.findall(text.lower()) if word not in _STOP]


def rarity_of(documents: int, held: int) -> float:
    """How telling a word is that so many of the documents hold (BM25's idf)."""
    return math.log(1.0 + (documents - held + 0.5) / (held + 0.5))


def _one_line(text: str) -> str:
    return " ".join(text.lower().split())
