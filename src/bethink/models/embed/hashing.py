"""Embedder without a model: words are hashed into buckets, deterministically.

It finds shared words and nothing else; paraphrases get unrelated vectors. For tests and for
machines where no model may be installed.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from bethink.core.arrays import np
from bethink.core.characters import estimate_tokens
from bethink.core.lazy import lazy_pattern
from bethink.ports import Embedding

_WORD = lazy_pattern(r"[a-z0-9_]+")


class HashEmbedder:
    """Feature hashing: each word adds ±1 at the position given by its SHA-256.

    The first four bytes, big-endian, modulo 384 are the position; an even fifth byte adds, an
    odd one subtracts. The vector is then normalised.
    """

    model = "hash-384 (not a learned model)"
    dim = 384

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for a text without words."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """Return the same vector as ``embed``: queries and memories are treated alike."""
        vector = np.zeros(self.dim, dtype=np.float32)
        for word, count in Counter(_WORD.findall(text.lower())).items():
            digest = hashlib.sha256(word.encode()).digest()
            place = int.from_bytes(digest[:4], "big") % self.dim
            vector[place] += -count if digest[4] & 1 else count
        length = float(np.sqrt(vector @ vector))
        return Embedding(vector / np.float32(length) if length else vector)

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens by the script: there is no vocabulary."""
        return estimate_tokens(text)
