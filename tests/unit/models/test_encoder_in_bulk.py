"""The encoder by ONNX Runtime: in float32 the same vectors, in int8 nearly the same."""

from __future__ import annotations

import numpy as np
import pytest

from bethink.models.embed import encoder_graph
from bethink.models.embed.encoder import EncoderEmbedder
from rows import each_row

TEXTS = [
    "The deploy key lives in vault B",
    "We moved the invoices to Postgres 16 because the old server ran out of disk in March.",
    "Die Heizung im Keller wird am Donnerstag gewartet; Schlüssel beim Nachbarn. " * 6,
]


def _by_runtime(monkeypatch: pytest.MonkeyPatch, *, quantised: bool) -> EncoderEmbedder:
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    monkeypatch.setattr(encoder_graph, "_has_int8_products", lambda: quantised)
    embedder = EncoderEmbedder()
    assert embedder.use_runtime()
    return embedder


# The least cosine with the vector that NumPy gives.
@each_row("quantised, least", [(False, 1 - 1e-5), (True, 0.99)])
def test_its_vectors_can_be_mixed_with_others(
    quantised: bool, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = _by_runtime(monkeypatch, quantised=quantised).embed(TEXTS)
    for one, other in zip(made, EncoderEmbedder().embed(TEXTS), strict=True):
        assert float(one.vector @ other.vector) >= least
        assert len(one.tokens) == len(other.tokens)


@each_row("quantised", [True, False])
def test_a_text_gets_the_same_bits_in_any_company(
    quantised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = _by_runtime(monkeypatch, quantised=quantised)
    together = embedder.embed([*TEXTS, *TEXTS[::-1]])
    for text, made in zip(TEXTS, together, strict=False):
        (alone,) = embedder.embed([text])
        np.testing.assert_array_equal(alone.vector, made.vector)
        assert alone.tokens == made.tokens


def test_without_the_library_numpy_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder_graph, "find_spec", lambda _: None)
    embedder = EncoderEmbedder()
    assert not embedder.use_runtime()
    assert len(embedder.embed(TEXTS)) == len(TEXTS)
