"""What the systems before us do: one OR-query, all vectors, reciprocal rank fusion."""

from __future__ import annotations

import re
from collections.abc import Sequence

import apsw
import numpy as np

from bethink.ports import Embedder

WORD = re.compile(r"[A-Za-z0-9_]+")


class Reference:
    """FTS5 `ORDER BY bm25` over any word, float32 cosine over everything, RRF 60."""

    def __init__(self, texts: Sequence[str], embedder: Embedder) -> None:
        self.embedder = embedder
        self.db = apsw.Connection(":memory:")
        self.db.execute("CREATE VIRTUAL TABLE t USING fts5(text)")
        with self.db:
            self.db.executemany("INSERT INTO t(text) VALUES (?)", ((text,) for text in texts))
        rows = [
            one.vector
            for start in range(0, len(texts), 1000)
            for one in embedder.embed(texts[start : start + 1000])
        ]
        self.vectors = np.array(rows, dtype=np.float32)

    def recall(self, question: str, k: int = 10, pool: int = 50) -> list[tuple[int, float, str]]:
        match = " OR ".join(f'"{word}"' for word in WORD.findall(question))
        words = [
            row[0]
            for row in self.db.execute(
                "SELECT rowid FROM t WHERE t MATCH ? ORDER BY bm25(t) LIMIT ?", (match, pool)
            )
        ]
        cosines = self.vectors @ self.embedder.embed_query(question).vector
        near = np.argpartition(-cosines, min(pool, len(cosines) - 1))[:pool]
        near = near[np.argsort(-cosines[near])] + 1
        scores: dict[int, float] = {}
        for ranking in (words, near.tolist()):
            for rank, rowid in enumerate(ranking, start=1):
                scores[rowid] = scores.get(rowid, 0.0) + 1.0 / (60 + rank)
        best = sorted(scores.items(), key=lambda pair: -pair[1])[:k]
        text = "SELECT text FROM t WHERE rowid = ?"
        return [(rowid, score, self.db.execute(text, (rowid,)).get) for rowid, score in best]
