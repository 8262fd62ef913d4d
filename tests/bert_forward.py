"""A BERT's forward pass written out in NumPy, to hold graphs against."""

from __future__ import annotations

from math import erf

import numpy as np

from bethink.models.onnx_network import BertSizes


class Reference:
    """The states of a row of tokens, in float32 or with the roundings of the graph."""

    def __init__(self, weights: dict[str, np.ndarray], sizes: BertSizes, *, rounded: bool) -> None:
        self.weights, self.sizes, self.rounded = weights, sizes, rounded

    def __call__(self, ids: list[int], kinds: list[int] | None = None) -> np.ndarray:
        """``kinds`` says of every token whether it is of the first text or the second."""
        words = self.weights["embeddings.word_embeddings.weight"]
        states = self._round(words, 127)[ids]
        states = states + self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        types = self.weights["embeddings.token_type_embeddings.weight"]
        states = states + types[kinds or [0] * len(ids)]
        states = self._norm(states, "embeddings.LayerNorm")
        for layer in range(self.sizes.layers):
            states = self._layer(states, f"encoder.layer.{layer}.")
        return states

    def logit(self, ids: list[int], kinds: list[int]) -> float:
        """What a classifier of one label says of a pair, from its first token."""
        first = self(ids, kinds)[0]
        weights = self.weights
        pooled = np.tanh(weights["pooler.dense.weight"] @ first + weights["pooler.dense.bias"])
        return float((weights["classifier.weight"] @ pooled + weights["classifier.bias"])[0])

    def _layer(self, states: np.ndarray, name: str) -> np.ndarray:
        heads = []
        scale = np.float32(self.sizes.head_width**-0.5)
        query = self._linear(states, name + "attention.self.query", scale)
        key = self._linear(states, name + "attention.self.key")
        value = self._linear(states, name + "attention.self.value")
        for head in range(self.sizes.heads):
            part = slice(head * self.sizes.head_width, (head + 1) * self.sizes.head_width)
            scores = np.exp(query[:, part] @ key[:, part].T)
            heads.append(scores / scores.sum(axis=1, keepdims=True) @ value[:, part])
        seen = self._linear(np.concatenate(heads, axis=1), name + "attention.output.dense")
        states = self._norm(states + seen, name + "attention.output.LayerNorm")
        inner = self._linear(states, name + "intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / np.sqrt(2))) / 2
        seen = self._linear(inner, name + "output.dense")
        return self._norm(states + seen, name + "output.LayerNorm")

    def _linear(self, states: np.ndarray, name: str, factor: float = 1.0) -> np.ndarray:
        weight = self._round(self.weights[name + ".weight"] * np.float32(factor), 63)
        return self._round(states, 127) @ weight.T + self.weights[name + ".bias"] * factor

    def _round(self, rows: np.ndarray, levels: int) -> np.ndarray:
        if not self.rounded:
            return rows
        scales = np.abs(rows).max(axis=1, keepdims=True) / levels
        return np.rint(rows / scales) * scales

    def _norm(self, states: np.ndarray, name: str) -> np.ndarray:
        states = states - states.mean(axis=1, keepdims=True)
        states = states / np.sqrt((states**2).mean(axis=1, keepdims=True) + self.sizes.epsilon)
        return states * self.weights[name + ".weight"] + self.weights[name + ".bias"]
