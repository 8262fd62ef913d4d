"""The default embedder for tests: equal texts of different tests are encoded once."""

from __future__ import annotations

from collections.abc import Sequence

from bethink.models.embed.contextual import ContextualTokens
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import Embedding


class CachingEncoder(EncoderEmbedder):
    """The default embedder, with everything it has embedded."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Embedding] = {}
        self._asked: dict[str, ContextualTokens] = {}

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= zip(new, super().embed(new), strict=True)
        known = [self._known[text] for text in texts]
        return [made._replace(vector=made.vector.copy()) for made in known]

    def _encode_query(self, text: str) -> ContextualTokens:
        if text not in self._asked:
            self._asked[text] = super()._encode_query(text)
        return self._asked[text]


SHARED = CachingEncoder()
