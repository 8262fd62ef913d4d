"""Verdicts on pairs of memories for tests in which no memory updates another.

Hundreds of like memories are thousands of pairs: the model takes longer to judge them than
all else that happens to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from bethink.models.update_model import update_model
from bethink.ports import PairVerdict


def _none(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
    return [PairVerdict(0.0, 0.0, 1.0, 0.0) for _ in pairs]


@contextmanager
def updates_nothing() -> Iterator[None]:
    """Meanwhile the model is not asked: no memory updates another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_model, "judge", _none)
        yield
