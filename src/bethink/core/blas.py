"""NumPy in a process: when it is loaded, its memory, and the threads of its OpenBLAS."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any


def load_numpy(*, keep_memory: bool) -> None:
    """Import NumPy before the first search does, while few calls are open.

    CPython keeps the frames of calls in pieces of 16 KB, and takes a new piece from the system
    for every call that crosses the end of one. The import is many calls deep; begun inside a
    search it crosses that end a thousand times, which takes a tenth of a recall.

    ``keep_memory`` is for a process that ends with the answer.
    """
    if keep_memory:
        _keep_freed_memory()
    import_module("numpy")


def share_memory_between_threads() -> None:
    """Have glibc serve all threads from two heaps, not each from one of its own: for a server.

    Freed memory of one heap is of no use to another, so that each grows to the most it ever had.
    """
    _c_function("mallopt")(-8, 2)  # M_ARENA_MAX


def give_back_freed_memory() -> None:
    """Have glibc give the free pages of its heaps back to the system: for a server, now and then.

    By itself it gives back only the end of a heap, which one small block that stays keeps there.
    """
    _c_function("malloc_trim")(0)


def _keep_freed_memory() -> None:
    """Have glibc use freed memory again instead of giving it back: for a short process.

    Arrays of more than 128 KB would each be given by the system anew, page by page.
    """
    for option, bytes_ in ((-3, 2**26), (-1, 2**28)):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
        _c_function("mallopt")(option, bytes_)


@cache
def _c_function(name: str) -> Callable[..., object]:
    import ctypes  # which NumPy needs as well

    try:
        found: Callable[..., object] = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return lambda *_: None  # another C library
    return found


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
    if os.environ.get("OPENBLAS_NUM_THREADS") == "1":
        return (lambda: 1), bool  # as the command line does: start-up time
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
