"""Recalls that may run twice, because an answer was lost, and count as one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_request: ContextVar[str] = ContextVar("bethink_request", default="")


@contextmanager
def count_once(request: str) -> Iterator[None]:
    """Count the use that recalls make of items once for all recalls with the same id."""
    token = _request.set(request)
    try:
        yield
    finally:
        _request.reset(token)


def current_request() -> str:
    """Return the id of the recall that is running; empty where it has none."""
    return _request.get()
