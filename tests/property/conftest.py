"""Fixtures of the property tests."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest

from bethink.core.arrays import Matrix, Vector, normalise
from bethink.models.embed.contextual import (
    best_contextual_matches,
    best_contextual_sentences,
    pack_contextual,
)
from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import Embedder, Embedding


class HashedTokens(HashEmbedder):
    """Hashed words, which compare token by token as well."""

    model = "hashed tokens"
    best_matches = staticmethod(best_contextual_matches)
    best_sentences = staticmethod(best_contextual_sentences)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return [self._with_tokens(text) for text in texts]

    def _with_tokens(self, text: str) -> Embedding:
        whole = self.embed_query(text)
        _, rows = self.word_tokens(re.findall(r"\w+", text)[:64])
        if not len(rows):
            return whole
        return whole._replace(tokens=pack_contextual(rows, whole.vector[np.newaxis]))

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        rows = {word: self.embed_query(word).vector for word in words}
        owners = tuple(word for word in words if rows[word].any())
        empty = np.zeros((0, self.dim), dtype=np.float32)
        return owners, np.stack([rows[word] for word in owners]) if owners else empty

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        total = np.zeros(self.dim, dtype=np.float32)
        for word, weight in zip(words, weights, strict=True):
            total += np.float32(weight) * self.embed_query(word).vector
        return normalise(total)


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """One that is fast and compares token by token: these laws hold for every one."""
    return HashedTokens()
