"""Ports of models: embedders, rerankers, language models and their budgets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Protocol, Self, TypeVar, cast, runtime_checkable

from bethink.core.arrays import Matrix, Vector
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.registry import implements
from bethink.errors import ModelError

T = TypeVar("T")
_MAX_ROUNDS = 12  # of questions to remote models for one work


class PairVerdict(NamedTuple):
    """What a newer memory does to an older one; the four probabilities add up to 1.

    It ``updates`` it, says the ``same``, ``adds`` to it so that both stay true, or is about
    something ``other``.
    """

    updates: float
    same: float
    adds: float
    other: float


# Reads pairs of an older and a newer text.
JudgePairs = Callable[[Sequence[tuple[str, str]]], Sequence[PairVerdict]]


class FoundName(NamedTuple):
    """A name in a text: where it begins and ends, its kind, how probable it is one."""

    begin: int
    end: int
    kind: str
    probability: float


# Finds the names of a text, in order.
FindNames = Callable[[str], Sequence[FoundName]]
# Finds where the secrets of a text begin and end, in order.
FindSecrets = Callable[[str], Sequence[tuple[int, int]]]


class Embedding(NamedTuple):
    """A unit vector of the whole text and, for late interaction, its tokens.

    ``tokens`` is opaque to the store: only the embedder writes and reads it.
    ``token_count`` is the text's length in tokens, 0 where the embedder does not report it.
    ``passages`` are the embeddings of a long text's passages, in order; then ``tokens`` of
    the whole are empty.
    """

    vector: Vector
    tokens: bytes = b""
    token_count: int = 0
    passages: tuple[Embedding, ...] = ()


class Embedder(Protocol):
    """Turns texts into unit vectors. Equal texts give equal vectors."""

    @property
    def model(self) -> str:
        """Identifies the model and everything that changes its vectors."""

    @property
    def dim(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding per text. An empty text gives a zero vector."""

    def embed_query(self, text: str) -> Embedding: ...

    def count_tokens(self, text: str) -> int:
        """Approximate number of language-model tokens in the text."""


@runtime_checkable
class LateInteraction(Protocol):
    """An embedder that can also compare token by token."""

    def word_tokens(
        self, words: Sequence[str], question: str = ""
    ) -> tuple[tuple[str, ...], Matrix]:
        """The tokens of some words of a question: the word each belongs to, and its unit vector.

        A contextual embedder reads the words in the question.
        """

    def weighted(
        self, words: Sequence[str], weights: Sequence[float], question: str = ""
    ) -> Vector:
        """The unit vector of a question with weighted words."""

    def best_sentences(self, query: Vector, memories: Sequence[bytes]) -> Vector:
        """Per memory the best cosine of any of its sentences with the query.

        Zeros for a memory without tokens.
        """

    def best_matches(self, query: Matrix, memories: Sequence[bytes]) -> Matrix:
        """Per memory (rows) the best cosine each query token (columns) finds in its tokens.

        The input is each memory's ``Embedding.tokens``; zeros for a memory without tokens.
        """


@runtime_checkable
class JoiningEmbedder(Protocol):
    """An embedder that needs no model for a list of texts that it has embedded."""

    def join(self, parts: Sequence[Embedding]) -> Embedding:
        """The embedding of a list of short texts, made of theirs."""


@runtime_checkable
class CalibratedEmbedder(Protocol):
    """An embedder that knows the baseline of its cosines.

    Cosines of two models are not comparable; absolute thresholds need the baseline.
    """

    @property
    def unrelated(self) -> float:
        """The typical cosine of two unrelated texts."""


_DEFAULT_UNRELATED = 0.08


def unrelated_similarity(embedder: object) -> float:
    """The cosine of unrelated texts; the default where the embedder does not know it."""
    try:
        # As a `CalibratedEmbedder`, without the check for it: that takes longer than many a stage.
        known: float | None = getattr(embedder, "unrelated", None)
    except ModelError:
        known = None  # a server that is down: the default is near enough
    return _DEFAULT_UNRELATED if known is None else known


def is_slow(embedder: object) -> bool:
    """Whether embedding a question is slow enough to be worth starting early.

    An embedder that runs a network or calls a server has an attribute ``slow``.
    """
    return bool(getattr(embedder, "slow", False))


def late_interaction(embedder: object) -> LateInteraction | None:
    """The embedder as a LateInteraction, where it implements that."""
    return embedder if implements(embedder, LateInteraction) else None


def joining(embedder: object) -> JoiningEmbedder | None:
    """The embedder as a JoiningEmbedder, where it implements that."""
    return embedder if implements(embedder, JoiningEmbedder) else None


def embed_ahead(embedder: object, texts: Sequence[str]) -> None:
    """Tell an embedder that works ahead which texts come next; others embed when asked."""
    if (begin := getattr(embedder, "embed_ahead", None)) is not None:
        begin(texts)


def is_remote(model: object) -> bool:
    """Whether a model is asked over the network: never while a transaction is open.

    A model that calls a server has an attribute ``remote``.
    """
    return bool(getattr(model, "remote", False))


class Reranker(Protocol):
    """Scores texts against a query, each from 0 to 1, by reading both together."""

    def __call__(self, query: str, texts: Sequence[str], /) -> Sequence[float]:
        """One score per text; equal texts get equal scores, in whatever order they come."""


class Unusable(ModelError):
    """The model's answer does not match the schema. Another prompt may succeed."""


class BudgetSpent(ModelError):
    """The job's budget is exhausted. Nothing was sent."""


class Prompt(NamedTuple):
    """One completed prompt and the schema of its answer.

    ``user`` holds all text from memories, fenced as data; ``system`` never does.
    ``output_tokens`` is the maximum length of an answer.
    """

    name: str
    version: int
    system: str
    user: str
    schema: Json
    output_tokens: int


class LanguageModel(Protocol):
    """Answers prompts with JSON objects. Thread-safe."""

    @property
    def name(self) -> str:
        """Provider and model, as written in the setting ``llm``."""

    def complete(self, prompt: Prompt, *, budget: Budget) -> Json:
        """Return an object that matches the prompt's schema.

        Raises BudgetSpent before a request the budget does not cover, Unusable where the answer
        does not match the schema, ModelError where there was no answer. A server's own words
        are never part of the message.
        """


class BudgetUsage(NamedTuple):
    """What a job has used so far."""

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float


class Budget:
    """The budget of one job over all its requests; the clock starts on creation.

    A request is admitted only if its maximum cost is left. Tokens are the server's count or,
    without one, an estimate. Thread-safe.
    """

    def __init__(
        self,
        *,
        calls: int = 20,
        tokens_in: int = 100_000,
        tokens_out: int = 20_000,
        seconds: float = 120.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._most = BudgetUsage(calls, tokens_in, tokens_out, seconds)
        self._clock, self._start = clock, clock()
        self._lock = Lock()
        self._calls = self._tokens_in = self._tokens_out = 0

    @property
    def spent(self) -> BudgetUsage:
        """What has been used; running requests count with their full reservation."""
        with self._lock:
            seconds = self._clock() - self._start
            return BudgetUsage(self._calls, self._tokens_in, self._tokens_out, seconds)

    @property
    def seconds_left(self) -> float:
        return self._most.seconds - (self._clock() - self._start)

    def reserve(self, tokens_in: int, tokens_out: int) -> BudgetReservation:
        """Reserve the maximum cost of one request; raise BudgetSpent if it is not left."""
        with self._lock:
            for have, most, what in (
                (self._calls + 1, self._most.calls, "calls"),
                (self._tokens_in + tokens_in, self._most.tokens_in, "tokens to read"),
                (self._tokens_out + tokens_out, self._most.tokens_out, "tokens to write"),
            ):
                if have > most:
                    raise BudgetSpent(f"the job's budget of {most:,} {what} is spent")
            if self.seconds_left <= 0:
                raise BudgetSpent(f"the job's budget of {self._most.seconds:g} s is spent")
            self._add(1, tokens_in, tokens_out)
        return BudgetReservation(self, tokens_in, tokens_out)

    def adjust(self, calls: int, tokens_in: int, tokens_out: int) -> None:
        """Add to the amount used, or return an unused reservation."""
        with self._lock:
            self._add(calls, tokens_in, tokens_out)

    def _add(self, calls: int, tokens_in: int, tokens_out: int) -> None:
        self._calls += calls
        self._tokens_in += tokens_in
        self._tokens_out += tokens_out


class BudgetReservation:
    """The reservation for one request. It is returned on exit, unless the request was sent."""

    def __init__(self, budget: Budget, tokens_in: int, tokens_out: int) -> None:
        self._budget, self._set_aside = budget, (tokens_in, tokens_out)
        self._cost: tuple[int, int, int] = (0, 0, 0)
        self._is_open = True

    def commit(self, tokens_in: int, tokens_out: int) -> None:
        """Record the actual cost of a request that was sent."""
        self._cost = (1, tokens_in, tokens_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_open:
            self._is_open = False
            calls, tokens_in, tokens_out = self._cost
            aside_in, aside_out = self._set_aside
            self._budget.adjust(calls - 1, tokens_in - aside_in, tokens_out - aside_out)


class _Unanswered(BaseException):
    """A remote model is needed inside of a transaction: no step may go on without it."""


class RemoteCalls:
    """Asks models on other machines for a work on the store, while no transaction is open.

    Inside of a transaction they only give what was asked before: what is missing ends the
    attempt, is asked after the transaction, and the work is done again.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[object, ModelError | None]] = {}
        self._wanted: dict[Hashable, Callable[[], object]] = {}
        self._rounds = 0

    def run(self, work: Callable[[], T]) -> T:
        """Do a work, as often as it needs answers that are not known yet."""
        while True:
            try:
                return work()
            except _Unanswered:
                self._rounds += 1
                self._ask()

    def _ask(self) -> None:
        for question, call in self._wanted.items():
            try:
                self._known[question] = (call(), None)
            except ModelError as error:
                self._known[question] = (None, error)
        self._wanted.clear()

    def answer(self, question: Hashable, call: Callable[[], T]) -> T:
        """Return or raise what a call gave; unless it is known the work ends here."""
        if question not in self._known:
            if self._rounds >= _MAX_ROUNDS:
                raise ModelError("the space changed each time before the model had answered")
            self._wanted[question] = call
            raise _Unanswered
        value, error = self._known[question]
        if error is not None:
            raise error
        return cast("T", value)

    def embedder(self, embedder: Embedder | None) -> Embedder | None:
        """An embedder to use inside of a transaction."""
        return _AskedEmbedder(self, embedder) if is_remote(embedder) and embedder else embedder

    def reranker(self, reranker: Reranker | None) -> Reranker | None:
        """A reranker to use inside of a transaction."""
        if reranker is None or not is_remote(reranker):
            return reranker

        def score(query: str, texts: Sequence[str], /) -> Sequence[float]:
            asked = tuple(texts)
            return self.answer(("rerank", query, asked), lambda: reranker(query, asked))

        return score


class _AskedEmbedder:
    """A remote embedder inside of a transaction."""

    def __init__(self, calls: RemoteCalls, embedder: Embedder) -> None:
        self._calls, self._embedder = calls, embedder

    @property
    def model(self) -> str:
        """Identifies the model; a server may have to be asked for it."""
        return self._calls.answer("model", lambda: self._embedder.model)

    @property
    def dim(self) -> int:
        return self._calls.answer("dim", lambda: self._embedder.dim)

    @property
    def unrelated(self) -> float:
        """The typical cosine of two unrelated texts."""
        return self._calls.answer("unrelated", lambda: unrelated_similarity(self._embedder))

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        """One embedding per text."""
        asked = tuple(texts)
        return self._calls.answer(("embed", asked), lambda: self._embedder.embed(asked))

    def embed_query(self, text: str) -> Embedding:
        return self._calls.answer(("query", text), lambda: self._embedder.embed_query(text))

    def count_tokens(self, text: str) -> int:
        """Approximate number of language-model tokens in the text."""
        return self._embedder.count_tokens(text)
