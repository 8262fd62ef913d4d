"""Work begun early, beside the caller's own; whoever needs it waits, or it is dropped."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """A call under way in a thread of its own.

    Nobody has to ask for its result. The thread is a daemon: a server that does not
    answer cannot keep the program from ending.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._made: list[T] = []
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="recollect-begun", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
            self._error = error

    def result(self) -> T:
        """What the call gave, or its error, as soon as it is over."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._made[0]
