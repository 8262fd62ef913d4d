"""Fixtures of the tests of measuring."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import pytest

from bethink.eval import spaces
from bethink.models import DEFAULT_EMBEDDER, open_embedder
from bethink.ports import Embedder
from shared_embedder import SHARED


def _open(name: str | None = None) -> Embedder | None:
    # A copy: a cache of embeddings replaces a method of what it is given.
    return copy(SHARED) if name in (None, DEFAULT_EMBEDDER) else open_embedder(name)


@pytest.fixture(scope="session", autouse=True)
def encoded_once() -> Iterator[None]:
    """Several tests measure the same memories: their vectors are made once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spaces, "open_embedder", _open)
        yield
