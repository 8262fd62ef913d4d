"""Makes something when it is first asked for, once, whichever thread asks."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Calling it gives the value; the first call makes it. A failed try is not kept."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = Lock()
        self._made: list[T] = []

    def __bool__(self) -> bool:
        """Whether the value is there already."""
        return bool(self._made)

    def __call__(self) -> T:
        if not self._made:
            with self._lock:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]
