"""Telling files of weights apart."""

from __future__ import annotations

import numpy as np
import pytest

from bethink.core.small_files import file_fingerprint
from bethink.errors import ModelError


def test_a_missing_file_is_named(tmp_path):
    """It is a model that cannot be read."""
    with pytest.raises(ModelError, match="gone cannot be read"):
        file_fingerprint(tmp_path / "gone")


def test_a_fingerprint_tells_weights_apart(tmp_path):
    """Equal files have equal ones; other values or another length another."""
    random = np.random.default_rng(3)
    weights = random.bytes(1 << 20)
    first, same, other, longer = (tmp_path / name for name in "abcd")
    first.write_bytes(weights)
    same.write_bytes(weights)
    other.write_bytes(random.bytes(1 << 20))
    longer.write_bytes(weights + b"\0")

    marks = [file_fingerprint(path) for path in (first, same, other, longer)]

    assert marks[0] == marks[1]
    assert len(set(marks)) == 3
