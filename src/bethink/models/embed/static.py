"""Default embedder: the static token vectors that come with wordllama.

No neural network runs: a text's vector is the mean of its tokens' vectors. Both files are
read from the installed package by our own loader, so nothing is ever downloaded and the
package itself is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed.tokenizers import BpeTokenizer, read_vocabulary, require_encodable
from bethink.ports import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bethink.models.embed.token_table import TokenTable
    from bethink.ports import Matrix, Vector


WORDLLAMA_WEIGHTS = Path("weights/l2_supercat_256.safetensors")
WORDLLAMA_TOKENIZER = Path("tokenizers/l2_supercat_tokenizer_config.json")

# Late interaction uses the first tokens of a text, at most this many.
MAX_STORED_TOKENS = 512
# Up to this many characters, our own tokenizer is faster than loading the library.
SHORT_TEXT_CHARACTERS = 2048

_REMEDY = "pip install 'wordllama>=0.4.0.post1,<0.5', or set embedder = \"none\""
# TokenTable.fingerprint of the weights of the model name below.
_FINGERPRINT = 0xB8AA_C99E
# The token of a lone space, before a character that is encoded as bytes.
_SPACE_TOKEN = 29_871


class StaticEmbedder:
    """Mean-pooled token vectors, with single-token vectors for late interaction.

    ``Embedding.tokens`` holds the first 512 tokens, by sentences. Creating an embedder costs
    nothing; the files are opened with the first text. Thread-safe; starts no thread of its
    own.
    """

    model = "wordllama-l2-supercat-256"
    dim = 256

    def __init__(self, folder: Path | None = None) -> None:
        """Set the folder of wordllama's files; by default the installed package."""
        self._folder = Lazy(lambda: folder or _installed_folder())
        self._table = Lazy(lambda: _load_table(self._file(WORDLLAMA_WEIGHTS)))
        self._vocabulary = Lazy(lambda: read_vocabulary(self._file(WORDLLAMA_TOKENIZER)))
        self._bpe = Lazy(lambda: BpeTokenizer(self._vocabulary()))
        self._sentence_flags = Lazy(lambda: _load_sentence_flags(self._vocabulary()))
        self._tokenizer = Lazy(lambda: _load_tokenizer(self._file(WORDLLAMA_TOKENIZER)))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for a text without tokens."""
        split = self._choose_tokenizer(sum(map(len, texts)))
        return [self._make_embedding(split(require_encodable(text))) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """Return the vector that ``embed`` gives; tokens come from ``word_tokens``."""
        return Embedding(
            self._table().pool(self._choose_tokenizer(len(text))(require_encodable(text)))
        )

    def count_tokens(self, text: str) -> int:
        """Count the tokens of this vocabulary, which is Llama 2's."""
        return len(self._choose_tokenizer(len(text))(require_encodable(text)))

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """Return the word and the unit vector of every token; 512 at most.

        A static table has one vector per token in any context: ``question`` is not read.
        """
        pieces = self._word_token_ids(words)[:MAX_STORED_TOKENS]
        owners = tuple(words[place] for place, _ in pieces)
        return owners, self._table().unit_rows([number for _, number in pieces])

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """Return the query vector with every token weighted by its word."""
        pieces = self._word_token_ids(words)
        shares = [weights[place] for place, _ in pieces]
        return self._table().weighted_pool([number for _, number in pieces], shares)

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """Return for each memory's tokens the best cosine of its sentences."""
        return self._table().best_sentences(query, memories)

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """Return for each memory (rows) the best cosine per query token (columns)."""
        return self._table().best_matches(query, memories)

    def _word_token_ids(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """Return the word position and token id of every token but bare spaces."""
        # Our own tokenizer caches words: faster than the library, word by word.
        short = sum(map(len, words)) <= SHORT_TEXT_CHARACTERS
        split = self._bpe().encode if short else self._choose_tokenizer(SHORT_TEXT_CHARACTERS + 1)
        return [
            (place, number)
            for place, word in enumerate(words)
            for number in split(require_encodable(word))
            if number != _SPACE_TOKEN
        ]

    def _choose_tokenizer(self, characters: int) -> Callable[[str], list[int]]:
        """Choose the faster of two equivalent tokenizers: the library's, once loaded."""
        if self._tokenizer or characters > SHORT_TEXT_CHARACTERS:
            return self._tokenizer()
        return self._bpe().encode

    def _make_embedding(self, ids: list[int]) -> Embedding:
        from bethink.models.embed.token_table import (  # start-up time: NumPy
            pack_tokens,
            sentence_ends,
        )

        kept = ids[:MAX_STORED_TOKENS]
        ends = sentence_ends(kept, self._sentence_flags())
        vector, lengths = self._table().pool_sentences(ids, ends)
        return Embedding(vector, pack_tokens(kept, ends, lengths), len(ids))

    def _file(self, name: Path) -> Path:
        path = self._folder() / name
        if not path.is_file():
            raise ModelError(f"the embedder's file {path} is missing", remedy=_REMEDY)
        return path


def _installed_folder() -> Path:
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise ModelError("the embedder's package wordllama is not installed", remedy=_REMEDY)
    return Path(spec.submodule_search_locations[0])


def _load_table(path: Path) -> TokenTable:
    from bethink.models.embed.token_table import open_table  # start-up time: NumPy

    table = open_table(path)
    # Other weights under the same name would silently mix with stored vectors.
    if table.dim != StaticEmbedder.dim or table.fingerprint() != _FINGERPRINT:
        raise ModelError(f"{path} is not the table of {StaticEmbedder.model}", remedy=_REMEDY)
    return table


def _load_sentence_flags(vocabulary: Mapping[str, int]) -> NDArray[np.uint8]:
    from bethink.models.embed.token_table import sentence_flags  # start-up time: NumPy

    return sentence_flags(vocabulary)


def _load_tokenizer(path: Path) -> Callable[[str], list[int]]:
    from tokenizers import Tokenizer  # start-up time: loads 75 ms of Rust tables

    tokenizer = Tokenizer.from_file(str(path))
    # "<s>" in a text is text, not a control token.
    tokenizer.encode_special_tokens = True
    # Otherwise it caches ten thousand texts that are rarely repeated: 75 MB.
    forget = getattr(tokenizer.model, "_resize_cache", None)
    if forget is not None:
        forget(0)

    def split(text: str) -> list[int]:
        # One text at a time: the batch calls start a pool of threads that does not
        # survive a fork and says so on stderr.
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return split
