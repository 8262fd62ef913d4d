"""Word overlap of a text with a question: by idf, whole phrase and length."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.lang.words import word_set_of

_TOKEN = lazy_pattern(r"[a-z0-9_-]{2,}")
_STOP_WORDS = word_set_of("en", "stop_words", "overlap")
# A shorter question occurs in nearly any text.
_MIN_PHRASE_CHARS = 4


class OverlapWeights(NamedTuple):
    """Weights of each distinct shared word, of the whole phrase and of length."""

    per_word: float = 0.1
    whole: float = 0.4
    length_penalty: float = 0.01


class OverlapScore(NamedTuple):
    """The overlap score and the shared words."""

    value: float
    words: tuple[str, ...]


class OverlapScorer:
    """Scores texts by their word overlap with a question."""

    def __init__(self, text: str) -> None:
        self.words = content_tokens(text)
        self._phrase = _normalized(text)

    def score(
        self, text: str, rarity: Mapping[str, float], weights: OverlapWeights
    ) -> OverlapScore:
        """Score: Σ (count ÷ length)·idf over the question's words, plus the weights' bonuses.

        Length is in content tokens; the penalty grows with its logarithm.
        """
        counts = Counter(content_tokens(text))
        length = counts.total()
        words = tuple(sorted({word for word in self.words if counts[word]}))
        value = sum(counts[word] / length * rarity[word] for word in self.words if counts[word])
        value += weights.per_word * len(words)
        if len(self._phrase) >= _MIN_PHRASE_CHARS and self._phrase in _normalized(text):
            value += weights.whole
        return OverlapScore(value - weights.length_penalty * math.log1p(length), words)


def content_tokens(text: str) -> list[str]:
    """The tokens of two and more characters that are not stop words, in order."""
    return [word for word in _TOKEN.findall(text.lower()) if word not in _STOP_WORDS]


def _normalized(text: str) -> str:
    return " ".join(text.lower().split())
