"""The default embedder: a static table of token vectors that comes with wordllama.

No neural network runs: a text's vector is the mean of its tokens' vectors. Both
files are read from the installed package by our own loader, so nothing is ever
fetched and the package itself is not imported.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import BadText, ModelError
from recollect.models.bpe import Bpe, read_vocabulary
from recollect.models.lazy import Once
from recollect.ports import Embedding

if TYPE_CHECKING:
    from recollect.models.table import TokenTable
    from recollect.ports import Matrix

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


class StaticEmbedder:
    """Mean-pooled token vectors, and those of single tokens for late interaction.

    ``Embedding.tokens`` holds the ids of the first 512 tokens. Making one costs
    nothing; the files are opened when the first text comes. Safe to share between
    threads, and no thread of its own is ever started.
    """

    model = "wordllama-l2-supercat-256"
    dim = 256

    def __init__(self, folder: Path | None = None) -> None:
        """``folder`` holds wordllama's files; without it the installed package does."""
        self._folder = Once(lambda: folder or _installed_folder())
        self._table = Once(lambda: _load_table(self._file(WEIGHTS)))
        self._bpe = Once(lambda: Bpe(read_vocabulary(self._file(TOKENIZER))))
        self._tokenizer = Once(lambda: _load_tokenizer(self._file(TOKENIZER)))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; a text without tokens gets zeros."""
        split = self._splitter(sum(map(len, texts)))
        return [self._embedding(split(_readable(text))) for text in texts]

    def embed_query(self, text: str) -> Embedding:
        """What ``embed`` gives for the text: questions and memories are treated alike."""
        return self.embed([text])[0]

    def count_tokens(self, text: str) -> int:
        """Exactly this vocabulary's tokens, which is Llama 2's."""
        return len(self._splitter(len(text))(_readable(text)))

    def query_tokens(self, text: str) -> tuple[tuple[str, ...], Matrix]:
        """The word each token belongs to, and its unit vector.

        A word is a run of letters, marks and digits; a token without any belongs to
        none and has "". Of a long text the first 2,048 characters are read.
        """
        text = _readable(text)[:SHORT_TEXT]
        pieces = list(islice(self._bpe().pieces(text), MAX_TOKENS))
        word_at = _words(" " + text)
        words = tuple(
            next(filter(None, word_at[piece.start : piece.end]), "") for piece in pieces
        )
        return words, self._table().unit_rows([piece.id for piece in pieces])

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory's tokens (rows) the best cosine for each query token (columns)."""
        return self._table().best_matches(query, memories)

    def _splitter(self, characters: int) -> Callable[[str], list[int]]:
        """The quicker of two ways to the same ids: the library's, once it is loaded."""
        if self._tokenizer or characters > SHORT_TEXT:
            return self._tokenizer()
        return self._bpe().encode

    def _embedding(self, ids: list[int]) -> Embedding:
        from recollect.models.table import pack_tokens  # start-up time: NumPy

        return Embedding(self._table().pool(ids), pack_tokens(ids[:MAX_TOKENS]))

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


def _load_tokenizer(path: Path) -> Callable[[str], list[int]]:
    from tokenizers import Tokenizer  # start-up time: loads 75 ms of Rust tables

    tokenizer = Tokenizer.from_file(str(path))
    # "<s>" in somebody's text is text, not an instruction to the tokenizer.
    tokenizer.encode_special_tokens = True

    def split(text: str) -> list[int]:
        # One text at a time: the batch calls start a pool of threads that does not
        # survive a fork and says so on stderr.
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return split


def _readable(text: str) -> str:
    """The text, unless it holds half a character, which no tokenizer can read."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadText(
            f"the text holds a lone surrogate at position {error.start}", remedy="remove it"
        ) from error
    return text


def _words(text: str) -> list[str]:
    """For every character the word it stands in, "" between words."""
    words: list[str] = []
    for inside, run in groupby(text, _in_word):
        characters = list(run)
        words += ["".join(characters) if inside else ""] * len(characters)
    return words


def _in_word(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character).startswith("M")
