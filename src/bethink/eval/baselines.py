"""Plain baselines over the same memories: BM25, cosine of the same embedder, RRF of both.

None of them knows speakers' sessions, times or filters, none is ever silent, and their
answers have no token budget: each returns its first k memories. A pipeline that is behind
one of them does not earn its cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import apsw
import numpy as np

from bethink.core.arrays import Matrix
from bethink.ports import Embedder

BM25 = "BM25"
COSINE = "cosine"
RRF = "RRF"
# What a set must not be behind; RRF is shown as well.
MEASURED_AGAINST = (BM25, COSINE)

_WORD = re.compile(r"[^\W_]+")
_RRF_CONSTANT = 60  # Cormack et al., SIGIR 2009
_RRF_DEPTH = 100
_BATCH = 500


class Baselines:
    """An index of the texts for each baseline. Only BM25 where there is no embedder."""

    def __init__(self, texts: Mapping[str, str], embedder: Embedder | None) -> None:
        """Index the texts, given by id."""
        self._ids = list(texts)
        self._embedder = embedder
        self._words = apsw.Connection(":memory:")
        self._words.execute(
            "CREATE VIRTUAL TABLE memory USING fts5(text, content='', tokenize='porter unicode61')"
        )
        with self._words:
            self._words.executemany(
                "INSERT INTO memory(rowid, text) VALUES (?, ?)", enumerate(texts.values())
            )
        self._vectors = _embed(list(texts.values()), embedder) if embedder else None

    def rank(self, question: str, k: int) -> dict[str, list[str]]:
        """The ids that each baseline returns, best first."""
        words = self._rank_by_words(question)
        ranked = {BM25: words}
        if self._embedder is not None and self._vectors is not None:
            vectors = self._rank_by_vectors(question, self._embedder, self._vectors)
            ranked |= {COSINE: vectors, RRF: _fuse((words, vectors))}
        return {name: [self._ids[row] for row in rows[:k]] for name, rows in ranked.items()}

    def _rank_by_words(self, question: str) -> list[int]:
        words = dict.fromkeys(word.casefold() for word in _WORD.findall(question))
        match = " OR ".join(f'"{word}"' for word in words)
        if not match:
            return []
        sql = "SELECT rowid FROM memory WHERE memory MATCH ? ORDER BY bm25(memory), rowid LIMIT ?"
        return [int(row) for (row,) in self._words.execute(sql, (match, _RRF_DEPTH))]

    def _rank_by_vectors(self, question: str, embedder: Embedder, vectors: Matrix) -> list[int]:
        cosines = vectors @ embedder.embed_query(question).vector
        return [int(row) for row in np.argsort(-cosines, kind="stable")[:_RRF_DEPTH]]


def _embed(texts: Sequence[str], embedder: Embedder) -> Matrix:
    rows = [
        one.vector
        for start in range(0, len(texts), _BATCH)
        for one in embedder.embed(texts[start : start + _BATCH])
    ]
    return np.asarray(rows, dtype=np.float32).reshape(len(texts), embedder.dim)


def _fuse(rankings: Sequence[Sequence[int]]) -> list[int]:
    """Reciprocal rank fusion."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, row in enumerate(ranking, start=1):
            scores[row] = scores.get(row, 0.0) + 1.0 / (_RRF_CONSTANT + rank)
    return sorted(scores, key=lambda row: (-scores[row], row))
