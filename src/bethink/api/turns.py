"""A limit of the threads that compute a recall at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Semaphore

from bethink.ports import LanguageModel, is_remote, is_slow
from bethink.retrieval.context import Context

_MAX_AT_ONCE, _MAX_WAIT_S = 2, 1.0
_TURNS = Semaphore(_MAX_AT_ONCE)


@contextmanager
def in_turn(ctx: Context, model: LanguageModel | None = None) -> Iterator[None]:
    """Let few threads at a time run a recall that only computes.

    With eight of them at work each waits for Python's lock over a thousand times, and a
    recall takes twice the CPU time. A step may wait for another recall: after a while it
    begins all the same.
    """
    waits = is_remote(ctx.store) or ctx.reranker is not None or model is not None
    if waits or is_slow(ctx.embedder) or not _TURNS.acquire(timeout=_MAX_WAIT_S):
        yield
        return
    try:
        yield
    finally:
        _TURNS.release()
