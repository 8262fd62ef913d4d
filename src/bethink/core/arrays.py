"""NumPy, imported when something of it is first used, and the types of its arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bethink.core.lazy import Lazy

__all__ = ["Matrix", "NDArray", "Vector", "mix_bits", "normalise", "np"]


class _LazyModule:
    """Looks like a module, and imports it when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._module = Lazy(lambda: import_module(name))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module(), name)
        setattr(self, name, found)  # from now on as quick as the module's own
        return found


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]
    Matrix = NDArray[np.float32]
else:
    np = _LazyModule("numpy")  # start-up time: many commands need no vectors
    NDArray = Vector = Matrix = Any  # for annotations, which nothing evaluates


def normalise(vectors: Matrix) -> Matrix:
    """Normalise vectors (the last axis) to length 1; zero vectors stay unchanged."""
    lengths = np.sqrt(np.vecdot(vectors, vectors))[..., np.newaxis]
    scaled: Matrix = np.divide(vectors, lengths, out=vectors, where=lengths > 0)
    return scaled


def mix_bits(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit of each value over all others (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
