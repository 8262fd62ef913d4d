"""Deferred and parallel work: lazy values, background calls, the threads of products."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from threading import Lock, Thread
from typing import Any, Generic, TypeVar

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


class OneBlasThread:
    """While entered, NumPy's OpenBLAS uses one thread per product; elsewhere it does nothing.

    Our products are too small to share: threads that have nothing to do wait for the next
    product by turning idly, which doubles the CPU time of a recall, and on a busy machine
    makes it ten times slower. Several batches still run at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entered = self._before = 0
        self._library: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if self._library is None:
                self._library = openblas_functions()
            read, write = self._library
            if not self._entered:
                self._before = read()
                write(1)
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered:
                self._library[1](self._before)


def openblas_functions() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return how to read and set the number of threads of NumPy's OpenBLAS."""
    import ctypes  # only this needs it

    try:
        module = import_module("numpy._core._multiarray_umath")
        library: Any = ctypes.CDLL(str(module.__file__))
    except (ImportError, OSError):
        library = None
    for prefix, suffix in (("scipy_openblas", "64_"), ("openblas", "64_"), ("openblas", "")):
        read = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
        write = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
        if read is not None and write is not None:
            return read, write
    return (lambda: 1), bool


ONE_BLAS_THREAD = OneBlasThread()
