"""How close a memory is to the question, word by word and as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from recollect.asked import telling_words
from recollect.context import Context
from recollect.errors import ModelError
from recollect.model import Candidate, Item
from recollect.ports import Embedding, late_interaction

if TYPE_CHECKING:
    from recollect.ports import Matrix, Vector


class Close(NamedTuple):
    """What was read in one memory; nothing where there is no vector of it yet.

    ``matches`` is the best likeness each of the question's tokens finds in it,
    ``vector`` the memory's own.
    """

    cosine: float = 0.0
    interaction: float = 0.0
    sentence: float = 0.0
    matches: tuple[float, ...] = ()
    vector: Vector | None = None


NOT_READ = Close()


def read_closely(pool: Iterable[Candidate], ctx: Context) -> dict[str, Close]:
    """Reads the memories that no earlier step has read, and gives all that was read."""
    known: dict[str, Close] = ctx.once("closeness", dict)
    fresh = [cand.item for cand in pool if cand.item.id not in known]
    if fresh:
        known.update(_read(fresh, ctx))
    return known


class Tokens(NamedTuple):
    """The tokens of the question's telling words, and the share each carries."""

    weights: tuple[float, ...]
    matrix: Matrix | None


def question_tokens(ctx: Context) -> Tokens:
    """Weights that add up to 1; none where the embedder knows no tokens."""
    return ctx.once("question tokens", lambda: _tokens(ctx))


def peaks_of(close: Iterable[Close]) -> Close:
    """The best of each kind of likeness, to measure the others by."""
    read = list(close) or [NOT_READ]
    return Close(
        max(one.cosine for one in read),
        max(one.interaction for one in read),
        max(one.sentence for one in read),
    )


def share(value: float, peak: float) -> float:
    """A likeness as a share of the best; what is unlike counts as nothing."""
    return value / peak if value > 0 and peak > 0 else 0.0


def _read(items: Sequence[Item], ctx: Context) -> dict[str, Close]:
    close = dict.fromkeys((item.id for item in items), NOT_READ)
    if ctx.embedder is None:
        return close
    try:
        # A server that is down may fail as soon as it is asked for its model.
        stored = ctx.store.embeddings(list(close), ctx.embedder.model, as_of=ctx.query.as_of)
        vector = ctx.weighted_vector() if stored else None
    except ModelError as error:
        # Without a vector of the question nothing can be read, and words must do.
        ctx.remark(f"not read closely: {error.message}")
        return close
    if vector is not None:
        cosines = [float(one.vector @ vector) for one in stored.values()]
        close.update(_interact(stored, cosines, ctx))
    return close


def _interact(
    stored: Mapping[str, Embedding], cosines: Sequence[float], ctx: Context
) -> dict[str, Close]:
    """Late interaction and the best sentence too, where the embedder knows tokens."""
    embedder, (weights, matrix) = late_interaction(ctx.embedder), question_tokens(ctx)
    if embedder is None or matrix is None:
        return {
            key: Close(cosine, vector=stored[key].vector)
            for key, cosine in zip(stored, cosines, strict=True)
        }
    payloads = [embedding.tokens for embedding in stored.values()]
    sentences = embedder.best_sentences(ctx.weighted_vector(), payloads).tolist()
    matches = embedder.best_matches(matrix, payloads)
    read, rows = (matches @ weights).tolist(), matches.tolist()
    return {
        key: Close(cosines[at], read[at], sentences[at], tuple(rows[at]), one.vector)
        for at, (key, one) in enumerate(stored.items())
    }


def _tokens(ctx: Context) -> Tokens:
    embedder = late_interaction(ctx.embedder)
    if embedder is None:
        return Tokens((), None)
    asked = {telling.word.shown: telling.weight for telling in telling_words(ctx)}
    owners, matrix = embedder.word_tokens(list(asked), ctx.query.text)
    if not owners:
        return Tokens((), None)
    total = sum(asked[owner] for owner in owners) or 1.0
    return Tokens(tuple(asked[owner] / total for owner in owners), matrix)
