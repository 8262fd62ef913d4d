"""An embedder that makes vectors of letter trigrams."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from bethink import Embedding


class TrigramEmbedder:
    """Counts the letter triples of a text in 1,024 places, and scales the vector to length 1.

    Creating one loads nothing: heavy imports wait for the first text. ``model`` changes
    whenever the vectors would.
    """

    model = "bethink-example-trigrams-1"
    dim = 1024

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; an empty text gives zeros."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """Return the embedding of a question, made like that of a memory."""
        import numpy as np  # not before it is needed

        vector = np.zeros(self.dim, dtype=np.float32)
        letters = f"  {' '.join(text.casefold().split())}  "
        if letters.strip():
            for start in range(len(letters) - 2):
                triple = letters[start : start + 3].encode("utf-8", "replace")
                vector[zlib.crc32(triple) % self.dim] += 1.0
            vector /= np.float32(np.sqrt(vector @ vector))
        return Embedding(vector)

    def count_tokens(self, text: str) -> int:
        """Estimate the tokens of a language model: one for four bytes."""
        return -(-len(text.encode("utf-8", "replace")) // 4)
