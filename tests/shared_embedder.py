"""The default embedder for tests: equal texts of different tests are encoded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from bethink.models.embed.contextual import ContextualTokens
from bethink.models.embed.encoder import ENCODER_DATA, EncoderEmbedder
from bethink.ports import Embedding

_LONG = 500  # characters of a question whose vectors are not worth their memory


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

    def _encode_text(self, text: str) -> ContextualTokens:
        if len(text) > _LONG:
            return super()._encode_text(text)
        if text not in self._asked:
            self._asked[text] = super()._encode_text(text)
        return self._asked[text]


SHARED = CachingEncoder()


@contextmanager
def encoded_once() -> Iterator[None]:
    """What a test opens by the name of the default embedder encodes by the shared one.

    The tests of the encoder itself are not inside of this.
    """

    plain_embed, plain_encode = EncoderEmbedder.embed, EncoderEmbedder._encode_text

    def is_default(embedder: EncoderEmbedder) -> bool:
        return type(embedder) is EncoderEmbedder and embedder._weights.parent == ENCODER_DATA

    def embed(self: EncoderEmbedder, texts: Sequence[str]) -> list[Embedding]:
        return SHARED.embed(texts) if is_default(self) else plain_embed(self, texts)

    def encode(self: EncoderEmbedder, text: str) -> ContextualTokens:
        return SHARED._encode_text(text) if is_default(self) else plain_encode(self, text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EncoderEmbedder, "embed", embed)
        patch.setattr(EncoderEmbedder, "_encode_text", encode)
        yield
