"""Read a BERT model folder: sizes, weights (safetensors) and the checks on both.

Devlin et al., NAACL 2019; as sentence encoder Reimers & Gurevych, EMNLP 2019; as
cross-encoder Nogueira & Cho, 2019.
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from bethink.core.arrays import Matrix, np
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import ModelError

# Maximum size of a header: the largest known ones have a few megabytes.
_MAX_HEADER_BYTES = 1 << 24
_DTYPE_BYTES = {"F32": 4, "F16": 2, "BF16": 2}

_SAMPLES = 64
_SAMPLE_BYTES = 4096


def file_fingerprint(path: Path) -> str:
    """Return 16 hex digits over a file's size and 64 evenly spaced pages.

    Training changes every number, so pages distinguish sets of weights, and reading them
    takes a thousandth of the time of reading all.
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
    """Read every floating-point tensor as float32, by name; skip integer tensors."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER_BYTES:
                raise ModelError(f"{path} is not a safetensors file")
            header = json.loads(file.read(length))
            content = file.read()
        return {
            name: _read_tensor(content, **tensor)
            for name, tensor in header.items()
            if tensor.get("dtype") in _DTYPE_BYTES
        }
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ModelError(f"{path} is not a safetensors file: {error}") from error


def _read_tensor(content: bytes, dtype: str, shape: list[int], data_offsets: list[int]) -> Matrix:
    start, end = data_offsets
    if (
        not 0 <= start <= end <= len(content)
        or end - start != math.prod(shape) * _DTYPE_BYTES[dtype]
    ):
        raise ValueError("a tensor lies outside the file")
    part: Any = memoryview(content)[start:end]
    if dtype == "BF16":
        # The upper half of a float32.
        wide = np.frombuffer(part, "<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(shape)
    return np.frombuffer(part, "<f4" if dtype == "F32" else "<f2").astype(np.float32).reshape(shape)


CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"

_SUPPORTED_MODULES = {"Transformer", "Pooling", "Normalize"}
_OTHER_EMBEDDER_REMEDY = 'embedder = "sentence-transformers:FOLDER" runs models of every kind'


class BertSizes(NamedTuple):
    """The dimensions that distinguish one BERT from another."""

    layers: int
    heads: int
    width: int
    epsilon: float
    window: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def read_encoder_sizes(folder: Path) -> BertSizes:
    """Read the sizes of a mean-pooled sentence encoder; ModelError for anything else."""
    sizes = read_network_sizes(folder, _OTHER_EMBEDDER_REMEDY)
    _check_pooling(folder)
    return sizes


def read_network_sizes(folder: Path, remedy: str = "") -> BertSizes:
    """Read the sizes of a model folder; ``window`` is in tokens. ModelError if it is no BERT."""
    config = _read_object(folder / CONFIG_FILE)
    if (config.get("model_type"), config.get("hidden_act")) != ("bert", "gelu") or config.get(
        "position_embedding_type", "absolute"
    ) != "absolute":
        raise ModelError(f"{folder} does not contain a BERT encoder", remedy=remedy)
    optional = folder / "sentence_bert_config.json"
    trained = _read_object(optional).get("max_seq_length") if optional.is_file() else None
    try:
        positions = int(config["max_position_embeddings"])
        sizes = BertSizes(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            width=int(config["hidden_size"]),
            epsilon=float(config["layer_norm_eps"]),
            window=min(positions, int(trained or positions)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG_FILE} lacks {error}") from error
    if min(sizes.layers, sizes.heads, sizes.width) < 1 or sizes.width % sizes.heads:
        raise ModelError(f"{folder / CONFIG_FILE} has inconsistent sizes")
    return sizes


def read_weights(folder: Path) -> dict[str, Matrix]:
    """Read the tensors by their BERT names, without a prefix."""
    return {
        name.removeprefix("bert."): tensor
        for name, tensor in read_tensors(folder / WEIGHTS_FILE).items()
    }


def _check_pooling(folder: Path) -> None:
    """Check for mean pooling: other poolings need other token vectors."""
    modules = folder / "modules.json"
    if modules.is_file():
        listed = _parse_json_file(modules)
        if not isinstance(listed, list) or not all(isinstance(row, dict) for row in listed):
            raise ModelError(f"{modules} is not a list of modules")
        kinds = {str(module.get("type", "")).rpartition(".")[2] for module in listed}
        if not kinds <= _SUPPORTED_MODULES:
            others = ", ".join(sorted(kinds - _SUPPORTED_MODULES))
            problem = f"{folder} has unsupported modules: {others}"
            raise ModelError(problem, remedy=_OTHER_EMBEDDER_REMEDY)
    pooling = folder / "1_Pooling" / CONFIG_FILE
    if pooling.is_file():
        modes = {name for name, on in _read_object(pooling).items() if "_mode" in name and on}
        named = _read_object(pooling).get("pooling_mode")
        if modes != {"pooling_mode_mean_tokens"} and named not in ("mean", ["mean"]):
            raise ModelError(f"{folder} does not use mean pooling", remedy=_OTHER_EMBEDDER_REMEDY)


def _read_object(path: Path) -> Json:
    content = _parse_json_file(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} is not a JSON object")
    return content


def _parse_json_file(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
