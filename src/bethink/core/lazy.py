"""Deferred work: lazy values and patterns, calls in the background."""

from __future__ import annotations

import re
from collections.abc import Callable
from threading import Lock, Thread
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class BackgroundCall(Generic[T]):
    """A call running in a daemon thread, whose result may be collected or dropped.

    The thread is a daemon, so that a server that does not answer cannot keep the program
    from exiting.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="bethink-background", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised by result()
            self._error = error

    def result(self, timeout_s: float | None = None) -> T:
        """Wait for the call to finish; return its value or raise its error, or TimeoutError."""
        self._thread.join(timeout_s)
        if self._thread.is_alive():
            raise TimeoutError
        if self._error is not None:
            raise self._error
        return self._made[0]


class Lazy(Generic[T]):
    """A lazily created value: the first call creates it. A failed attempt is not cached."""

    def __init__(self, factory: Callable[[], T]) -> None:
        self._factory = factory
        self._lock = Lock()
        self._value: list[T] = []

    def __bool__(self) -> bool:
        """Whether the value has been created."""
        return bool(self._value)

    def __call__(self) -> T:
        if not self._value:
            with self._lock:
                if not self._value:
                    self._value.append(self._factory())
        return self._value[0]


class _LazyPattern:
    """Looks like a compiled regular expression, and becomes one when it is first used."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = (pattern, flags)
        self._compiled = Lazy(lambda: re.compile(pattern, flags))

    def __reduce__(self) -> tuple[Any, ...]:
        return _LazyPattern, self._source  # a copy that is half made has nothing to compile

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled(), name)
        setattr(self, name, found)  # from now on as quick as the pattern's own
        return found


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used: start-up time."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, flags))
