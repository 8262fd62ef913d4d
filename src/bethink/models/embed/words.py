"""Static embedder: the encoder's input table alone, averaged over a text's word pieces.

No network runs: each piece has one vector in any context, weighted by how rare it is
(Arora et al., ICLR 2017). The vocabulary is ordered by frequency, so a piece's rank gives
its share of all text by Zipf's law.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bethink.core.arrays import Matrix, NDArray, Vector, np
from bethink.core.lazy import Lazy
from bethink.models.embed.contextual import read_arrays
from bethink.models.embed.encoder import (
    ENCODER_DATA,
    ENCODER_WEIGHTS,
    load_tokenizer,
    shared_tokenizer,
)
from bethink.models.embed.token_table import TokenTable, pack_tokens
from bethink.models.embed.tokenizers import TextPieces, require_encodable
from bethink.ports import Embedding

# Late interaction uses the first pieces of a text, at most this many.
MAX_STORED_TOKENS = 512

# The vocabulary has control tokens and single characters first, then words by frequency.
_FIRST_WORD = 1996
# Single characters and punctuation marks weigh as much as the word of this rank.
_CHARACTER_RANK = 10
# Sum of 1/rank over the vocabulary: by Zipf's law a word's share of all text is
# 1 / (rank × sum).
_ZIPF_SUM = 10.9
# A word of this share of all text weighs half of a rare one.
_HALF_WEIGHT_SHARE = 3e-4


class WordsEmbedder:
    """Mean-pooled vectors of word pieces, with the pieces for late interaction.

    Some thirty times faster than the encoder, and worse where words differ. Creating an
    embedder costs nothing; the files are opened with the first text. Thread-safe; starts no
    thread of its own.
    """

    model = "bethink-words-2"
    dim = 192
    unrelated = 0.0375

    def __init__(self, folder: Path = ENCODER_DATA) -> None:
        """Set the folder of the encoder's files; by default the package's own."""
        self._table = Lazy(lambda: _load_table(folder / ENCODER_WEIGHTS))
        own = folder == ENCODER_DATA
        self._tokenizer = shared_tokenizer if own else Lazy(lambda: load_tokenizer(folder))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for a text without pieces."""
        split = self._tokenizer()
        return [self._make_embedding(split(require_encodable(text))) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """Return the vector that ``embed`` gives; tokens come from ``word_tokens``."""
        return Embedding(self._table().pool(self._split(text).ids))

    def count_tokens(self, text: str) -> int:
        """Count the word pieces: close to a language model's tokens for English."""
        return self._tokenizer().count(self._split(text))

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """Return the word and the unit vector of every piece; 512 at most.

        A static table has one vector per piece in any context: ``question`` is not read.
        """
        pieces = self._word_pieces(words)[:MAX_STORED_TOKENS]
        owners = tuple(words[place] for place, _ in pieces)
        return owners, self._table().unit_rows([number for _, number in pieces])

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """Return the query vector with every piece weighted by its word."""
        pieces = self._word_pieces(words)
        shares = [weights[place] for place, _ in pieces]
        return self._table().weighted_pool([number for _, number in pieces], shares)

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """Return for each memory's pieces the best cosine of its sentences."""
        return self._table().best_sentences(query, memories)

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """Return for each memory (rows) the best cosine per query token (columns)."""
        return self._table().best_matches(query, memories)

    def _split(self, text: str) -> TextPieces:
        return self._tokenizer()(require_encodable(text))

    def _word_pieces(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return the word position and the id of every piece of the words."""
        return [
            (place, number) for place, word in enumerate(words) for number in self._split(word).ids
        ]

    def _make_embedding(self, pieces: TextPieces) -> Embedding:
        ids = pieces.ids
        ends = [end for end in pieces.sentence_ends() if end < MAX_STORED_TOKENS]
        kept = ids[:MAX_STORED_TOKENS]
        if kept and (not ends or ends[-1] < len(kept) - 1):
            ends.append(len(kept) - 1)
        vector, lengths = self._table().pool_sentences(ids, ends)
        return Embedding(vector, pack_tokens(kept, ends, lengths), self._tokenizer().count(pieces))


def _load_table(path: Path) -> TokenTable:
    arrays = read_arrays(path, ("table", "table_scale"))
    return TokenTable(arrays["table"], _rarity_weights(arrays["table_scale"]))


def _rarity_weights(scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the scale of each row times the weight of its piece, 0 to 1."""
    ranks = np.arange(len(scales)) - (_FIRST_WORD - 1)
    ranks[ranks < 1] = _CHARACTER_RANK
    shares = 1 / (ranks * _ZIPF_SUM)
    return (scales * (_HALF_WEIGHT_SHARE / (_HALF_WEIGHT_SHARE + shares))).astype(np.float32)
