"""Running an encoder: its graph kept in a file, texts in any company."""

from __future__ import annotations

import stat
import subprocess
import sys

import numpy as np
import pytest

from bethink.errors import ModelError
from bethink.models.onnx_network import read_encoder_sizes
from bethink.models.onnx_runtime import OnnxEncoder
from needed import skip_without_extra
from tiny_bert import make_tiny_bert, tiny_weights

skip_without_extra("transformer", "onnx", "onnxruntime")


@pytest.fixture
def folder(tmp_path):
    return make_tiny_bert(tmp_path / "tiny")


@pytest.fixture
def open_encoder(folder, tmp_path):
    return lambda: OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path / "cache" / "models")


def rows(count: int, seed: int = 1) -> list[list[int]]:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 30, count)
    return [[2, *random.integers(4, 100, length).tolist(), 3] for length in lengths]


def test_the_graph_is_written_once(open_encoder, tmp_path):
    """For its owner only; the next encoder reads it and gives the same bits."""
    first = open_encoder().encode(rows(3))
    (kept,) = (tmp_path / "cache" / "models").iterdir()
    written = kept.stat()

    again = open_encoder().encode(rows(3))

    assert stat.S_IMODE(written.st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert kept.stat().st_mtime_ns == written.st_mtime_ns
    assert all(map(np.array_equal, first, again))


def test_other_weights_get_another_graph(open_encoder, folder, tmp_path):
    """A model changed in place is never run by the old graph."""
    first = open_encoder().encode(rows(1))[0]
    make_tiny_bert(folder, tiny_weights(seed=6))

    second = open_encoder().encode(rows(1))[0]

    assert len(list((tmp_path / "cache" / "models").iterdir())) == 2
    assert not np.array_equal(first, second)


def test_a_damaged_graph_is_written_anew(open_encoder, tmp_path):
    """What the cache holds is never needed."""
    first = open_encoder().encode(rows(1))[0]
    (kept,) = (tmp_path / "cache" / "models").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 3])

    second = open_encoder().encode(rows(1))[0]

    assert np.array_equal(first, second)
    assert kept.read_bytes() == whole


def test_without_a_place_for_the_graph_it_runs_all_the_same(folder, tmp_path):
    """A cache folder that cannot be made costs time, not the answer."""
    (tmp_path / "cache").write_text("a file where a folder should be")

    states = OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path / "cache").encode(rows(2))

    assert len(states) == 2


def test_many_threads_and_batches_give_the_same_bits(open_encoder):
    """A row's states do not depend on how many are encoded with it."""
    encoder = open_encoder()
    many = rows(300)

    together = encoder.encode(many)

    for row, states in list(zip(many, together, strict=True))[::29]:
        assert np.array_equal(states, encoder.encode([row])[0])
    assert encoder.encode([]) == []


def test_weights_that_are_no_safetensors_are_refused(folder, tmp_path):
    """The error names the file."""
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)

    with pytest.raises(ModelError, match=r"model\.safetensors is not a safetensors file"):
        OnnxEncoder(folder, read_encoder_sizes(folder), tmp_path).encode(rows(1))


@pytest.mark.parametrize("library", ["onnxruntime", "onnx"])
def test_a_missing_library_is_named_with_its_extra(folder, tmp_path, library):
    """What is not installed is said, and how to install it."""
    code = (
        "import sys\n"
        f"sys.modules[{library!r}] = None\n"
        "from pathlib import Path\n"
        "from bethink.errors import MissingExtra\n"
        "from bethink.models.embed.transformer import TransformerEmbedder\n"
        "try:\n"
        f"    TransformerEmbedder({str(folder)!r}, cache=Path({str(tmp_path)!r})).embed(['x'])\n"
        "except MissingExtra as error:\n"
        "    print(error.message, '|', error.remedy)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "is not installed | pip install '.[transformer]'" in done.stdout, done.stderr
