"""Stops asking a service that does not answer, and tries again after a rest."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import TypeVar

from recollect.errors import ModelError

T = TypeVar("T")


class Breaker:
    """Passes calls on until they fail.

    After a failure it answers with that failure for a moment (``pause_s``), so that
    one recall, which asks several times, waits once. After ``limit`` failures in a
    row it does so for ``rest_s``; then a single call is let through, and decides.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        pause_s: float = 1.0,
        rest_s: float = 30.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limit, self._pause_s, self._rest_s, self._clock = limit, pause_s, rest_s, clock
        self._lock = Lock()
        self._failures = 0
        self._until = 0.0
        self._trying = False
        self._last = ModelError("")

    @property
    def is_open(self) -> bool:
        """Whether a call now would be answered without being passed on."""
        with self._lock:
            return self._blocked()

    def __call__(self, ask: Callable[[], T]) -> T:
        """What ``ask`` gives, or ModelError: its own, or the last one while resting."""
        with self._lock:
            if self._blocked():
                raise ModelError(self._last.message, remedy=self._last.remedy)
            self._trying = self._failures >= self._limit
        try:
            answer = ask()
        except ModelError as error:
            self._failed(error)
            raise
        finally:
            with self._lock:
                self._trying = False
        with self._lock:
            self._failures = 0
        return answer

    def _blocked(self) -> bool:
        return self._failures > 0 and (self._trying or self._clock() < self._until)

    def _failed(self, error: ModelError) -> None:
        with self._lock:
            self._failures += 1
            self._last = error
            rest_s = self._rest_s if self._failures >= self._limit else self._pause_s
            self._until = self._clock() + rest_s
