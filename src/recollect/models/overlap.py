"""A reranker without a model: shared words, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.overlap import Question, Weights, rarity_of, telling


class OverlapReranker:
    """Reads by shared words. How rare a word is, it learns from the texts it is given.

    The measure has no upper end; v ÷ (1 + v) brings it into 0 to 1 in the same order.
    """

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        question, weights = Question(query), Weights()
        held = [set(telling(text)) for text in texts]
        rarity = {
            word: rarity_of(len(texts), sum(word in words for words in held))
            for word in set(question.words)
        }
        values = [max(0.0, question.shared(text, rarity, weights).value) for text in texts]
        return [value / (1.0 + value) for value in values]
