"""Deferred work: values created on first use, and calls started in the background."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Generic, TypeVar

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

    def result(self) -> T:
        """Wait for the call to finish; return its value or raise its error."""
        self._thread.join()
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
