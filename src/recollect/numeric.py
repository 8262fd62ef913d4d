"""Small arithmetic on scores and vectors; needs nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """The cosine of the angle between two vectors; 0 where one has no length."""
    lengths = math.sqrt(float(a @ a)) * math.sqrt(float(b @ b))
    return clamp(float(a @ b) / lengths, -1.0, 1.0) if lengths else 0.0


def clamp(value: float, low: float = 0.0, high: float = 1.0) -> float:
    """The value, or the limit it lies beyond."""
    return min(high, max(low, value))


def min_max(values: Iterable[float]) -> list[float]:
    """Stretched so that the lowest is 0 and the highest 1.

    Where all are equal there is nothing to stretch: each is 1 if it is above 0
    (all are the best), else 0 (none is any good).
    """
    given = list(values)
    low, high = min(given, default=0.0), max(given, default=0.0)
    if low == high:
        return [1.0 if value > 0 else 0.0 for value in given]
    return [(value - low) / (high - low) for value in given]


def max_normalise(values: Iterable[float]) -> list[float]:
    """Divided by the highest, so that the best is 1; zeros where none is above 0."""
    given = list(values)
    high = max(given, default=0.0)
    return [value / high if high > 0 else 0.0 for value in given]


def sigmoid(value: float) -> float:
    """Squeezes any number into 0 to 1; 0 becomes one half."""
    if value >= 0:
        return 1.0 / (1.0 + math.exp(-value))
    # For large negative numbers exp(-value) would overflow; this form cannot.
    grown = math.exp(value)
    return grown / (1.0 + grown)
