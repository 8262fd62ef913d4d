"""The default embedder: a static table of token vectors that comes with wordllama.

No neural network runs: a text's vector is the mean of its tokens' vectors. Both
files are read from the installed package by our own loader, so nothing is ever
fetched and the package itself is not imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import ModelError
from recollect.models.bpe import Bpe, read_vocabulary
from recollect.models.lazy import Once
from recollect.models.readable import readable
from recollect.ports import Embedding

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.models.table import TokenTable
    from recollect.ports import Matrix, Vector

WEIGHTS = Path("weights/l2_supercat_256.safetensors")
TOKENIZER = Path("tokenizers/l2_supercat_tokenizer_config.json")

# Late interaction reads this many tokens of a text, the first ones.
MAX_TOKENS = 512
# Up to this many characters our own splitter is done before the tokenizer library
# would have started.
SHORT_TEXT = 2048

_REMEDY = "pip install 'wordllama>=0.4.0.post1,<0.5', or set embedder = \"none\""
# What TokenTable.fingerprint gives for the weights the name below stands for.
_FINGERPRINT = 0xB8AA_C99E
# The token of a space that no word took: before a character the vocabulary spells out.
_SPACE = 29_871


class StaticEmbedder:
    """Mean-pooled token vectors, and those of single tokens for late interaction.

    ``Embedding.tokens`` holds the first 512 tokens, by sentences. Making an embedder
    costs nothing; the files are opened when the first text comes. Safe to share
    between threads, and no thread of its own is ever started.
    """

    model = "wordllama-l2-supercat-256"
    dim = 256

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` holds wordllama's files; without it the installed package does."""
        self._folder = Once(lambda: folder or _installed_folder())
        self._table = Once(lambda: _load_table(self._file(WEIGHTS)))
        self._vocabulary = Once(lambda: read_vocabulary(self._file(TOKENIZER)))
        self._bpe = Once(lambda: Bpe(self._vocabulary()))
        self._marks = Once(lambda: _load_marks(self._vocabulary()))
        self._tokenizer = Once(lambda: _load_tokenizer(self._file(TOKENIZER)))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; a text without tokens gets zeros."""
        split = self._splitter(sum(map(len, texts)))
        return [self._embedding(split(readable(text))) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """The vector ``embed`` gives; a question's tokens come from ``word_tokens``."""
        return Embedding(self._table().pool(self._splitter(len(text))(readable(text))))

    def count_tokens(self, text: str) -> int:
        """Exactly this vocabulary's tokens, which is Llama 2's."""
        return len(self._splitter(len(text))(readable(text)))

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """For every token the word it belongs to and its unit vector; 512 at most.

        A table gives a word the same vectors wherever it stands: ``question`` is not read.
        """
        pieces = self._pieces(words)[:MAX_TOKENS]
        owners = tuple(words[place] for place, _ in pieces)
        return owners, self._table().unit_rows([number for _, number in pieces])

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """As ``embed_query``, with every token of a word counting by the word's weight."""
        pieces = self._pieces(words)
        shares = [weights[place] for place, _ in pieces]
        return self._table().weigh([number for _, number in pieces], shares)

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """For each memory's tokens the best cosine one of its sentences has."""
        return self._table().best_sentences(query, memories)

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory's tokens (rows) the best cosine for each query token (columns)."""
        return self._table().best_matches(query, memories)

    def _pieces(self, words: Sequence[str]) -> list[tuple[int, int]]:
        """The place of the word and the id of every token; a bare space is none."""
        # Our own splitter knows the words it met: quicker than the library, word by word.
        short = sum(map(len, words)) <= SHORT_TEXT
        split = self._bpe().encode if short else self._splitter(SHORT_TEXT + 1)
        return [
            (place, number)
            for place, word in enumerate(words)
            for number in split(readable(word))
            if number != _SPACE
        ]

    def _splitter(self, characters: int) -> Callable[[str], list[int]]:
        """The quicker of two ways to the same ids: the library's, once it is loaded."""
        if self._tokenizer or characters > SHORT_TEXT:
            return self._tokenizer()
        return self._bpe().encode

    def _embedding(self, ids: list[int]) -> Embedding:
        from recollect.models.tokens import pack, sentence_ends  # start-up time: NumPy

        kept = ids[:MAX_TOKENS]
        ends = sentence_ends(kept, self._marks())
        vector, lengths = self._table().pool_sentences(ids, ends)
        return Embedding(vector, pack(kept, ends, lengths), len(ids))

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
    from recollect.models.table import open_table  # start-up time: NumPy

    table = open_table(path)
    # Other weights under the same name would be mixed with stored vectors unnoticed.
    if table.dim != StaticEmbedder.dim or table.fingerprint() != _FINGERPRINT:
        raise ModelError(
            f"{path} is not the table that {StaticEmbedder.model} stands for", remedy=_REMEDY
        )
    return table


def _load_marks(vocabulary: Mapping[str, int]) -> NDArray[np.uint8]:
    from recollect.models.tokens import sentence_marks  # start-up time: NumPy

    return sentence_marks(vocabulary)


def _load_tokenizer(path: Path) -> Callable[[str], list[int]]:
    from tokenizers import Tokenizer  # start-up time: loads 75 ms of Rust tables

    tokenizer = Tokenizer.from_file(str(path))
    # "<s>" in somebody's text is text, not an instruction to the tokenizer.
    tokenizer.encode_special_tokens = True
    # Else it keeps the pieces of ten thousand texts that hardly ever come again: 75 MB.
    forget = getattr(tokenizer.model, "_resize_cache", None)
    if forget is not None:
        forget(0)

    def split(text: str) -> list[int]:
        # One text at a time: the batch calls start a pool of threads that does not
        # survive a fork and says so on stderr.
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return split
