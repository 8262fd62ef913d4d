"""Fixtures of the property tests."""

from __future__ import annotations

import pytest

from bethink.models import open_embedder
from bethink.ports import Embedder


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The fastest embedder that compares token by token: these laws hold for every one."""
    opened = open_embedder("words")
    assert opened is not None
    return opened
