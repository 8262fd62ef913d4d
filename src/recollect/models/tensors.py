"""Reads a model's tensors from a safetensors file, and tells such files apart."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.errors import ModelError

if TYPE_CHECKING:
    from recollect.ports import Matrix

# A header beyond this is none: the largest known ones have a few megabytes.
_LONGEST_HEADER = 1 << 24
_SIZES = {"F32": 4, "F16": 2, "BF16": 2}

_SAMPLES = 64
_SAMPLE_BYTES = 4096


def fingerprint(path: Path) -> str:
    """Sixteen hex digits over the size and 64 evenly spaced pages of a file.

    Training changes every number, so pages tell one set of weights from another, and
    reading them takes a thousandth of the time reading all would.
    """
    try:
        size = path.stat().st_size
        state = hashlib.blake2b(str(size).encode(), digest_size=8)
        with path.open("rb") as file:
            for place in range(_SAMPLES):
                file.seek(place * max(0, size - _SAMPLE_BYTES) // (_SAMPLES - 1))
                state.update(file.read(_SAMPLE_BYTES))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    return state.hexdigest()


def read_tensors(path: Path) -> dict[str, Matrix]:
    """Every tensor of real numbers as float32, by name; those of integers are left out."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _LONGEST_HEADER:
                raise ModelError(f"{path} is not a safetensors file")
            header = json.loads(file.read(length))
            content = file.read()
        return {
            name: _tensor(content, **tensor)
            for name, tensor in header.items()
            if tensor.get("dtype") in _SIZES
        }
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} is not a safetensors file: {error}") from error


def _tensor(content: bytes, dtype: str, shape: list[int], data_offsets: list[int]) -> Matrix:
    import numpy as np  # start-up time

    start, end = data_offsets
    if not 0 <= start <= end <= len(content) or end - start != math.prod(shape) * _SIZES[dtype]:
        raise ValueError("a tensor lies outside the file")
    part: Any = memoryview(content)[start:end]
    if dtype == "BF16":
        # The upper half of a float32.
        wide = np.frombuffer(part, "<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    return np.frombuffer(part, "<f4" if dtype == "F32" else "<f2").astype(np.float32).reshape(shape)
