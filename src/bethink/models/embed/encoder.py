"""Our own small encoder, run by NumPy alone.

It is all-MiniLM-L6-v2 cut down to a third of its weights; ``training/`` has the
recipe and the model card. The weights are data of this package.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path

from bethink.core.arrays import Matrix, Vector, normalise, np
from bethink.core.lazy import Lazy
from bethink.errors import ModelError
from bethink.models.embed import contextual
from bethink.models.embed.tokenizers import (
    BertTokenizer,
    TextPieces,
    require_encodable,
    split_windows,
)
from bethink.ports import Embedding

# Maximum number of windows of a text.
MAX_WINDOWS = 8
# One recall needs the tokens of the same query several times.
_MAX_CACHED_QUERIES = 8

ENCODER_DATA = Path(__file__).parent.parent / "data"
ENCODER_WEIGHTS = "encoder-2.npz"
ENCODER_VOCABULARY = "encoder-2-vocabulary.txt"


# Texts are encoded in groups of this many pieces: their vectors need 25 MB at 384 dimensions.
_MAX_GROUP_PIECES = 16_384


class EncoderEmbedder:
    """Our own encoder: mean-pooled vectors, and token vectors for late interaction.

    Nothing to install; the weights are read with the first text. A text longer than the
    network's window is encoded in several, cut between sentences. Thread-safe.
    """

    model = "bethink-encoder-2"
    dim = 384
    unrelated = 0.008
    best_sentences = staticmethod(contextual.best_contextual_sentences)
    best_matches = staticmethod(contextual.best_contextual_matches)

    def __init__(self, folder: Path = ENCODER_DATA) -> None:
        """Set the folder of the weights and the vocabulary; by default the package's own."""
        self._weights = folder / ENCODER_WEIGHTS
        self._network = Lazy(lambda: contextual.EncoderNetwork.load(self._weights))
        own = folder == ENCODER_DATA
        self._tokenizer = shared_tokenizer if own else Lazy(lambda: load_tokenizer(folder))
        self._encode_query = lru_cache(_MAX_CACHED_QUERIES)(self._encode_text)

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """Return one embedding per text; zeros for a text without tokens.

        Texts of similar length run together; the memory needed does not grow with their
        number.
        """
        split = self._tokenizer()
        pieces = [split(require_encodable(text)) for text in texts]
        made: dict[int, Embedding] = {}
        for group in _group_by_length([len(piece.ids) for piece in pieces]):
            for place, states in zip(
                group, self._encode_pieces([pieces[place] for place in group]), strict=True
            ):
                count = split.count(states.pieces)
                made[place] = Embedding(states.pooled(), states.packed(), count)
        return [made[place] for place in range(len(texts))]

    def embed_query(self, text: str) -> Embedding:
        """Return the vector that ``embed`` gives; tokens come from ``word_tokens``."""
        return Embedding(self._encode_query(text).pooled())

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """Return word and unit vector of each token, in context of the question or the words."""
        places, vectors = self._word_vectors(words, question)
        return tuple(words[place] for place in places), normalise(vectors)

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """Return the normalised mean of the words' tokens, weighted by word."""
        counted = [place for place, weight in enumerate(weights) if weight > 0]
        places, vectors = self._word_vectors([words[place] for place in counted], question)
        shares = [weights[counted[place]] for place in places]
        return normalise(np.asarray(shares, dtype=np.float32) @ vectors)

    def join(self, parts: Sequence[Embedding]) -> Embedding:
        """Return the embedding of a list of texts: the mean vector, and the tokens of all."""
        total: Vector = np.stack([part.vector for part in parts]).sum(axis=0, dtype=np.float32)
        tokens = contextual.join_contextual([part.tokens for part in parts], self.dim)
        return Embedding(normalise(total), tokens)

    def count_tokens(self, text: str) -> int:
        """Count the word pieces: close to a language model's tokens for English."""
        split = self._tokenizer()
        return split.count(split(require_encodable(text)))

    def use_runtime(self) -> bool:
        """Run the network by ONNX Runtime, if it is installed, in int8 where that is fast.

        For many texts: loading it takes longer than a few of them.
        """
        from bethink.models.embed.encoder_graph import open_layers  # start-up time

        if (layers := open_layers(self._weights)) is not None:
            self._network().run_layers_by(layers)
        return layers is not None

    def _word_vectors(self, words: Sequence[str], question: str) -> tuple[list[int], Matrix]:
        """Return the word position and the vector of each token of the words."""
        states = self._encode_query(question or " ".join(words))
        vectors = states.token_vectors()
        # Stored memories have no punctuation tokens either.
        spoken = {piece for piece in states.pieces.word_positions() if piece < len(vectors)}
        found = [(word, piece) for word, piece in states.pieces.locate(words) if piece in spoken]
        return [word for word, _ in found], vectors[[piece for _, piece in found]]

    def _encode_text(self, text: str) -> contextual.ContextualTokens:
        return self._encode_pieces([self._tokenizer()(require_encodable(text))])[0]

    def _encode_pieces(self, pieces: Sequence[TextPieces]) -> list[contextual.ContextualTokens]:
        split = self._tokenizer()
        network = self._network()
        size = network.window - 2
        ends = [piece.sentence_ends() for piece in pieces]
        cuts = [
            split_windows(len(piece.ids), end, size)[:MAX_WINDOWS]
            for piece, end in zip(pieces, ends, strict=True)
        ]
        vectors = iter(
            network.encode(
                [
                    [split.start_id, *piece.ids[start:stop], split.end_id]
                    for piece, cut in zip(pieces, cuts, strict=True)
                    for start, stop in cut
                ]
            )
        )
        return [
            contextual.ContextualTokens(piece, end, cut, list(islice(vectors, len(cut))), self.dim)
            for piece, end, cut in zip(pieces, ends, cuts, strict=True)
        ]


def _group_by_length(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the positions of all texts, the shortest first, in groups of bounded length."""
    group: list[int] = []
    total = 0
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and total + lengths[place] > _MAX_GROUP_PIECES:
            yield group
            group, total = [], 0
        group.append(place)
        total += lengths[place]
    if group:
        yield group


def load_tokenizer(folder: Path = ENCODER_DATA) -> BertTokenizer:
    """Read the encoder's vocabulary; raise ModelError where it cannot be read."""
    path = folder / ENCODER_VOCABULARY
    try:
        return BertTokenizer(path.read_bytes())
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error


# One for all embedders of a process: each counts tokens with it.
shared_tokenizer = Lazy(load_tokenizer)


def count_tokens(text: str) -> int:
    """Count the encoder's word pieces: close to a language model's tokens for English."""
    split = shared_tokenizer()
    return split.count(split(require_encodable(text)))
