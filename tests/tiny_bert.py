"""A BERT encoder small enough to be made in a test: random weights, a real tokenizer."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

WIDTH, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 4, 128, 48
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789ß"
MARKS = ".,!?:;'\"()[]{}<>_-+*/=@#$%^&|~`\\…。！？”’»"
WORDS = [
    "the",
    "deploy",
    "key",
    "lives",
    "in",
    "vault",
    "anna",
    "prefers",
    "tabs",
    "over",
    "spaces",
    "file",
    "release",
    "tuesday",
]


def tiny_weights(seed: int = 5) -> dict[str, np.ndarray]:
    """Tensors by their names, as a checkpoint has them."""
    random = np.random.default_rng(seed)

    def matrix(*shape: int) -> np.ndarray:
        return random.normal(0, 0.2, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": matrix(len(_vocabulary()), WIDTH),
        "embeddings.position_embeddings.weight": matrix(POSITIONS, WIDTH) * np.float32(0.2),
        "embeddings.token_type_embeddings.weight": matrix(2, WIDTH),
        **_norm("embeddings.LayerNorm", matrix),
    }
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        for part, shape in {
            "attention.self.query": (WIDTH, WIDTH),
            "attention.self.key": (WIDTH, WIDTH),
            "attention.self.value": (WIDTH, WIDTH),
            "attention.output.dense": (WIDTH, WIDTH),
            "intermediate.dense": (INNER, WIDTH),
            "output.dense": (WIDTH, INNER),
        }.items():
            weights[f"{name}{part}.weight"] = matrix(*shape)
            weights[f"{name}{part}.bias"] = matrix(shape[0])
        weights |= _norm(name + "attention.output.LayerNorm", matrix)
        weights |= _norm(name + "output.LayerNorm", matrix)
    return weights


def tiny_reader_weights(seed: int = 5) -> dict[str, np.ndarray]:
    """The same with a head that judges pairs, named as a classifier's checkpoint names them."""
    random = np.random.default_rng(seed + 1)
    return {f"bert.{name}": tensor for name, tensor in tiny_weights(seed).items()} | {
        "bert.pooler.dense.weight": random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32),
        "bert.pooler.dense.bias": random.normal(0, 0.2, WIDTH).astype(np.float32),
        "classifier.weight": random.normal(0, 0.4, (1, WIDTH)).astype(np.float32),
        "classifier.bias": random.normal(0, 0.2, 1).astype(np.float32),
    }


def make_tiny_reader(folder: Path, weights: dict[str, np.ndarray] | None = None) -> Path:
    """The folder, filled as a cross-encoder's is."""
    return make_tiny_bert(folder, weights or tiny_reader_weights())


def save_tensors(path: Path, tensors: dict[str, np.ndarray], kind: str = "F32") -> None:
    """A safetensors file; ``kind`` may be F32, F16 or BF16."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    for name, tensor in tensors.items():
        if kind == "BF16":
            part = (np.ascontiguousarray(tensor).view(np.uint32) >> 16).astype("<u2").tobytes()
        else:
            part = tensor.astype("<f4" if kind == "F32" else "<f2").tobytes()
        start = sum(map(len, parts))
        offsets = [start, start + len(part)]
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": offsets}
        parts.append(part)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def make_tiny_bert(folder: Path, weights: dict[str, np.ndarray] | None = None) -> Path:
    """The folder, filled as a sentence encoder's is."""
    folder.mkdir(parents=True, exist_ok=True)
    save_tensors(folder / "model.safetensors", weights or tiny_weights())
    (folder / "config.json").write_text(
        json.dumps(
            {
                "model_type": "bert",
                "hidden_act": "gelu",
                "hidden_size": WIDTH,
                "num_hidden_layers": LAYERS,
                "num_attention_heads": HEADS,
                "intermediate_size": INNER,
                "max_position_embeddings": POSITIONS,
                "vocab_size": len(_vocabulary()),
                "type_vocab_size": 2,
                "layer_norm_eps": 1e-12,
            }
        )
    )
    _tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def _norm(name: str, matrix: Any) -> dict[str, np.ndarray]:
    return {f"{name}.weight": 1 + matrix(WIDTH), f"{name}.bias": matrix(WIDTH)}


def _vocabulary() -> dict[str, int]:
    letters = [*LETTERS, *(f"##{letter}" for letter in LETTERS)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *MARKS, *letters, *WORDS]
    return {piece: number for number, piece in enumerate(pieces)}


def _tokenizer() -> Tokenizer:
    vocabulary = _vocabulary()
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=marks
    )
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    return tokenizer
