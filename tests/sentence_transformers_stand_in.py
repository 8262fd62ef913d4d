"""A small library of the name and shape of sentence-transformers, which is seldom installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_LIBRARY = '''
import numpy as np

class _Model:
    """Notes how it was made; a folder or a name it does not know."""

    def __init__(self, place, **options):
        if place == "gone" or options.get("local_files_only"):
            raise OSError(f"{place} is no model\\nwith advice")
        if place == "code":
            raise ValueError("would run code")
        self.made = [place, options]

class SentenceTransformer(_Model):
    """Vectors by length and vowels."""

    def get_embedding_dimension(self):
        return 3

    def _vectors(self, texts, sign):
        if "explode" in texts:
            raise RuntimeError("out of memory")
        rows = [[len(text), sum(map(text.count, "aeiou")), sign] for text in texts]
        if "nan" in texts:
            rows = [[float("nan")] * 3 for _ in texts]
        return np.array(rows, dtype=np.float64)

    def encode_document(self, texts, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy and not show_progress_bar
        return self._vectors(texts, 1)

    def encode_query(self, texts, convert_to_numpy, show_progress_bar):
        assert convert_to_numpy and not show_progress_bar
        return self._vectors(texts, -1)

class CrossEncoder(_Model):
    """Logits by shared words; "two" has as many labels."""

    def predict(self, pairs, activation_fn=None, show_progress_bar=None):
        assert show_progress_bar is False
        logits = []
        for asked, text in pairs:
            if text == "explode":
                raise RuntimeError("out of memory")
            words = set(asked.lower().split()) & set(text.lower().split())
            logits.append(float("nan") if text == "nan" else len(words) - 1.5)
        made = np.array(logits, dtype=np.float32)
        made = 1 / (1 + np.exp(-made)) if activation_fn is None else activation_fn(made)
        return np.stack([made, made], axis=1) if self.made[0] == "two" else made
'''


@contextmanager
def stand_in_library(folder: Path, version: str = "6.2.0") -> Iterator[None]:
    """Install it in a folder, and that folder before all others."""
    (folder / "sentence_transformers.py").write_text(_LIBRARY)
    about = folder / f"sentence_transformers-{version}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Name: sentence-transformers\nVersion: {version}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "sentence_transformers", raising=False)
        patch.syspath_prepend(folder)
        yield
        sys.modules.pop("sentence_transformers", None)
