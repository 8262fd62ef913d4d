"""Reading tensors, and telling files of them apart."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.errors import ModelError
from bethink.models.onnx_network import file_fingerprint, read_tensors
from rows import each_row
from tiny_bert import save_tensors

TENSORS = {
    "one": np.array([[1.5, -2.0], [0.25, 1024.0]], dtype=np.float32),
    "two": np.zeros((3, 0, 2), dtype=np.float32),
    "three": np.array(7.0, dtype=np.float32),
}


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16"])
def test_tensors_come_back_as_float32(tmp_path, kind):
    """Whichever way they are kept; these numbers are exact in all three."""
    path = tmp_path / "some.safetensors"
    save_tensors(path, TENSORS, kind)

    read = read_tensors(path)

    assert list(read) == list(TENSORS)
    for name, tensor in TENSORS.items():
        assert read[name].dtype == np.float32
        assert read[name].shape == tensor.shape
        assert np.array_equal(read[name], tensor)


def test_whole_numbers_are_left_out(tmp_path):
    """A checkpoint's table of positions is no weight."""
    header = {"ids": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}
    text = json.dumps(header).encode()
    path = tmp_path / "some.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))

    assert read_tensors(path) == {}


@each_row(
    "header",
    [
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]}},
        {"x": {"dtype": "F32", "shape": [-2], "data_offsets": [8, 0]}},
        {"x": {"dtype": "F32", "shape": [2]}},
        {"x": {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]}},
        {"x": "F32"},
        ["x"],
        None,
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, header):
    """Sizes, places and shapes must agree with the file."""
    text = json.dumps(header).encode()
    path = tmp_path / "some.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8))

    with pytest.raises(ModelError, match="not a safetensors file"):
        read_tensors(path)


@given(content=st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    """Nothing but ModelError comes out of a file that is something else."""
    path = tmp_path_factory.mktemp("any") / "some.safetensors"
    path.write_bytes(content)

    with pytest.raises(ModelError):
        read_tensors(path)


def test_a_missing_file_is_named(tmp_path):
    """For reading and for telling apart alike."""
    for read in (read_tensors, file_fingerprint):
        with pytest.raises(ModelError, match="gone cannot be read"):
            read(tmp_path / "gone")


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
