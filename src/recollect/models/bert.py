"""What a BERT network is made of: its sizes, its weights, and the checks on both.

Devlin et al., NAACL 2019; as sentence encoder Reimers & Gurevych, EMNLP 2019; as
reader of pairs Nogueira & Cho, 2019.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect.errors import ModelError
from recollect.models.tensors import read_tensors

if TYPE_CHECKING:
    from recollect.ports import Matrix

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"

_MODULES = {"Transformer", "Pooling", "Normalize"}
_ELSEWHERE = 'embedder = "sentence-transformers:FOLDER" runs models of every kind'


class Sizes(NamedTuple):
    """The numbers that make one BERT differ from another."""

    layers: int
    heads: int
    width: int
    epsilon: float
    window: int

    @property
    def head_width(self) -> int:
        return self.width // self.heads


def read_sizes(folder: Path) -> Sizes:
    """Those of a sentence encoder; ModelError where the folder holds none that is pooled
    by the mean."""
    sizes = network_sizes(folder, _ELSEWHERE)
    _check_pooling(folder)
    return sizes


def network_sizes(folder: Path, remedy: str = "") -> Sizes:
    """From a model folder's settings; ModelError where it holds no BERT.

    ``window`` is how many tokens it was made to read at once.
    """
    config = _read(folder / CONFIG)
    if (config.get("model_type"), config.get("hidden_act")) != ("bert", "gelu") or config.get(
        "position_embedding_type", "absolute"
    ) != "absolute":
        raise ModelError(f"{folder} holds no BERT encoder", remedy=remedy)
    optional = folder / "sentence_bert_config.json"
    trained = _read(optional).get("max_seq_length") if optional.is_file() else None
    try:
        positions = int(config["max_position_embeddings"])
        sizes = Sizes(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            width=int(config["hidden_size"]),
            epsilon=float(config["layer_norm_eps"]),
            window=min(positions, int(trained or positions)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{folder / CONFIG} lacks {error}") from error
    if min(sizes.layers, sizes.heads, sizes.width) < 1 or sizes.width % sizes.heads:
        raise ModelError(f"{folder / CONFIG} holds sizes that do not fit together")
    return sizes


def read_weights(folder: Path) -> dict[str, Matrix]:
    """The tensors by the names BERT has for them, without a prefix."""
    return {
        name.removeprefix("bert."): tensor
        for name, tensor in read_tensors(folder / WEIGHTS).items()
    }


def _check_pooling(folder: Path) -> None:
    """Only the mean of the tokens: anything else would need the words' vectors elsewhere."""
    modules = folder / "modules.json"
    if modules.is_file():
        kinds = {str(module.get("type", "")).rpartition(".")[2] for module in _rows(modules)}
        if not kinds <= _MODULES:
            raise ModelError(
                f"{folder} has a step {', '.join(sorted(kinds - _MODULES))}", remedy=_ELSEWHERE
            )
    pooling = folder / "1_Pooling" / CONFIG
    if pooling.is_file():
        modes = {name for name, on in _read(pooling).items() if "_mode" in name and on}
        named = _read(pooling).get("pooling_mode")
        if modes != {"pooling_mode_mean_tokens"} and named not in ("mean", ["mean"]):
            raise ModelError(f"{folder} does not pool by the mean", remedy=_ELSEWHERE)


def _read(path: Path) -> dict[str, Any]:
    content = _parsed(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path} holds no settings")
    return content


def _rows(path: Path) -> list[dict[str, Any]]:
    content = _parsed(path)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ModelError(f"{path} holds no list of steps")
    return content


def _parsed(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ModelError(f"{path} is not JSON: {error}") from error
