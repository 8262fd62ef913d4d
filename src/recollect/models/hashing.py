"""An embedder without a model: words are hashed into buckets, the same on every machine.

It finds shared words and nothing else; two texts that say the same in other words
are strangers to it. For tests and for machines where no model may be installed.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

from recollect.ports import Embedding

_WORD = re.compile(r"[a-z0-9_]+")


class HashEmbedder:
    """Each word adds or takes 1 at the place its SHA-256 names; then length 1.

    The first four bytes, big-endian, modulo 384 name the place; an even fifth byte
    adds and an odd one takes.
    """

    model = "hash-384 (not a learned model)"
    dim = 384

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; a text without words gets zeros."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """The same as ``embed`` gives: questions and memories are treated alike."""
        import numpy as np  # start-up time

        vector = np.zeros(self.dim, dtype=np.float32)
        for word, count in Counter(_WORD.findall(text.lower())).items():
            digest = hashlib.sha256(word.encode()).digest()
            place = int.from_bytes(digest[:4], "big") % self.dim
            vector[place] += -count if digest[4] & 1 else count
        length = float(np.sqrt(vector @ vector))
        return Embedding(vector / np.float32(length) if length else vector)

    def count_tokens(self, text: str) -> int:
        """A quarter of the text's bytes, rounded up: an estimate, there is no vocabulary."""
        return -(-len(text.encode("utf-8", "surrogatepass")) // 4)
