"""What a job asks of a language model: a prompt, an answer of one shape, a price at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Lock
from time import monotonic
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

from recollect.errors import ModelError


class Unusable(ModelError):
    """The model answered, but not with what was asked for. Another prompt may fare better."""


class BudgetSpent(ModelError):
    """The job has used up what it may cost. Nothing was sent."""


class Prompt(NamedTuple):
    """One filled-in prompt and the shape of its answer.

    ``user`` holds whatever comes from a memory, fenced as data; ``system`` never does.
    ``output_tokens`` is the most an answer may take.
    """

    name: str
    version: int
    system: str
    user: str
    schema: Mapping[str, Any]
    output_tokens: int


class LanguageModel(Protocol):
    """Answers prompts with JSON objects. Safe to use from several threads at once."""

    @property
    def name(self) -> str:
        """Provider and model, as the setting ``llm`` spells them."""
        ...

    def complete(self, prompt: Prompt, *, budget: Budget) -> dict[str, Any]:
        """An object that keeps the prompt's schema.

        Raises BudgetSpent before a request the budget does not cover, Unusable where
        the model did not answer in that shape, ModelError where it did not answer.
        What a server says is never part of the message.
        """
        ...


class Spent(NamedTuple):
    """What a job has cost so far."""

    calls: int
    tokens_in: int
    tokens_out: int
    seconds: float


class Budget:
    """What one job may cost, all its requests together; the clock starts at once.

    A request is let through only if all it may cost is left. Tokens are what the server
    counted or, where it did not say, an estimate. Safe to share between threads.
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
        self._most = Spent(calls, tokens_in, tokens_out, seconds)
        self._clock, self._start = clock, clock()
        self._lock = Lock()
        self._calls = self._tokens_in = self._tokens_out = 0

    @property
    def spent(self) -> Spent:
        """What has been used, requests under way counted in full."""
        with self._lock:
            seconds = self._clock() - self._start
            return Spent(self._calls, self._tokens_in, self._tokens_out, seconds)

    @property
    def seconds_left(self) -> float:
        return self._most.seconds - (self._clock() - self._start)

    def reserve(self, tokens_in: int, tokens_out: int) -> Charge:
        """Sets aside what one request may cost; BudgetSpent if that is not left."""
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
        return Charge(self, tokens_in, tokens_out)

    def correct(self, calls: int, tokens_in: int, tokens_out: int) -> None:
        """Adds to what is spent, or takes back what was set aside and not needed."""
        with self._lock:
            self._add(calls, tokens_in, tokens_out)

    def _add(self, calls: int, tokens_in: int, tokens_out: int) -> None:
        self._calls += calls
        self._tokens_in += tokens_in
        self._tokens_out += tokens_out


class Charge:
    """What was set aside for one request. Given back at the end, unless it was sent."""

    def __init__(self, budget: Budget, tokens_in: int, tokens_out: int) -> None:
        self._budget, self._set_aside = budget, (tokens_in, tokens_out)
        self._cost: tuple[int, int, int] = (0, 0, 0)
        self._is_open = True

    def cost(self, tokens_in: int, tokens_out: int) -> None:
        """The request was sent, and this is what it took."""
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
            self._budget.correct(calls - 1, tokens_in - aside_in, tokens_out - aside_out)
