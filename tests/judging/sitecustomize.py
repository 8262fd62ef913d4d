"""A judge by words for the processes that a test starts: its laws hold for any weights.

Two memories that share half of their words are a certain update. A process takes it where
this folder is on its PYTHONPATH.
"""

from __future__ import annotations

from collections.abc import Sequence

from bethink.models.update_model import UpdateModel
from bethink.ports import PairVerdict


def judge(_: UpdateModel, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
    words = [[set(text.lower().split()) for text in pair] for pair in pairs]
    alike = [2 * len(one & other) >= min(len(one), len(other)) for one, other in words]
    return [PairVerdict(0.97, 0.01, 0.01, 0.01) if so else PairVerdict(0, 0, 0, 1) for so in alike]


UpdateModel.judge = judge  # type: ignore[method-assign]
