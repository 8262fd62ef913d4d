"""What the engine asks of a model: vectors, a reading of candidates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from recollect.parts import offers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]


class Embedding(NamedTuple):
    """A unit vector for the whole text and, for late interaction, its tokens.

    ``tokens`` is written and read by the embedder only; a store keeps it as it is.
    ``token_count`` is what the text costs in tokens, 0 where the embedder does not say.
    """

    vector: Vector
    tokens: bytes = b""
    token_count: int = 0


class Embedder(Protocol):
    """Turns texts into unit vectors. Equal texts give equal vectors."""

    @property
    def model(self) -> str:
        """Names the model and everything that changes its vectors."""
        ...

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding a text. An empty text gives a vector of zeros."""
        ...

    def embed_query(self, text: str) -> Embedding: ...

    def count_tokens(self, text: str) -> int:
        """How many tokens of a language model the text costs, about."""
        ...


@runtime_checkable
class LateInteraction(Protocol):
    """An embedder that can also compare token by token."""

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """The tokens of some words of a question: which word each belongs to, and its unit
        vector. An embedder that reads words in context reads them in the question."""
        ...

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """The unit vector of a question whose words count by their weights."""
        ...

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """For each memory the best cosine any of its sentences has with the query;
        zeros for a memory without tokens."""
        ...

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """For each memory's ``Embedding.tokens`` (rows), the best cosine each query
        token (columns) finds there; zeros for a memory without tokens."""
        ...


@runtime_checkable
class Scaled(Protocol):
    """An embedder that knows where its scale begins: cosines of two models mean
    different things, and who judges one by itself must know."""

    @property
    def unrelated(self) -> float:
        """The cosine of two texts that have nothing to do with each other, usually."""
        ...


def is_slow(embedder: object) -> bool:
    """Whether embedding a question takes so long that it is worth starting early: an
    embedder that runs a network or asks a server says so by an attribute ``slow``."""
    return bool(getattr(embedder, "slow", False))


def late_interaction(embedder: object) -> LateInteraction | None:
    """The embedder as one that compares token by token, where it can."""
    return embedder if offers(embedder, LateInteraction) else None


Reranker = Callable[[str, Sequence[str]], Sequence[float]]
