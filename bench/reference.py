"""What a careful engineer writes in an afternoon: words, all vectors, reciprocal rank fusion.

FTS5 in memory with a stemmer, any word of the question but stop words, by bm25; NumPy's
float32 cosine over all vectors; the two rankings fused. No filters, no history, no
explanation, nothing on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from bethink.ports import Embedder

WORD = re.compile(r"[A-Za-z0-9_]+")
# The usual English list (as of Snowball).
STOP = frozenset(
    "i me my myself we our ours ourselves you your yours yourself yourselves he him his himself "
    "she her hers herself it its itself they them their theirs themselves what which who whom "
    "this that these those am is are was were be been being have has had having do does did "
    "doing would should could ought a an the and but if or because as until while of at by for "
    "with about against between into through during before after above below to from up down in "
    "out on off over under again further then once here there when where why how all any both "
    "each few more most other some such no nor not only own same so than too very s t can will "
    "just don now d ll m o re ve y".split()
)


class Reference:
    """FTS5 ``ORDER BY bm25`` without stop words, float32 cosine over everything, RRF 60."""

    def __init__(
        self, texts: Iterable[str], vectors: NDArray[np.float32], embedder: Embedder
    ) -> None:
        self.embedder, self.vectors = embedder, vectors
        self.db = apsw.Connection(":memory:")
        self.db.execute("CREATE VIRTUAL TABLE t USING fts5(text, tokenize='porter unicode61')")
        with self.db:
            self.db.executemany("INSERT INTO t(text) VALUES (?)", ((text,) for text in texts))
        self.db.execute("INSERT INTO t(t) VALUES ('optimize')")

    def recall(self, question: str, k: int = 10, pool: int = 50) -> list[tuple[int, float, str]]:
        """The best turns: number, score, text."""
        return self.answer(question, self.embedder.embed_query(question).vector, k, pool)

    def answer(
        self, question: str, vector: NDArray[np.float32], k: int = 10, pool: int = 50
    ) -> list[tuple[int, float, str]]:
        """The same with the question's vector given."""
        scores: dict[int, float] = {}
        for ranking in (self.by_words(question, pool), self.by_vector(vector, pool)):
            for rank, rowid in enumerate(ranking, start=1):
                scores[rowid] = scores.get(rowid, 0.0) + 1.0 / (60 + rank)
        best = sorted(scores.items(), key=lambda pair: -pair[1])[:k]
        text = "SELECT text FROM t WHERE rowid = ?"
        return [(rowid - 1, score, self.db.execute(text, (rowid,)).get) for rowid, score in best]

    def by_words(self, question: str, pool: int) -> Sequence[int]:
        words = WORD.findall(question)
        telling = [word for word in words if word.lower() not in STOP] or words
        match = " OR ".join(f'"{word}"' for word in telling)
        sql = "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?"
        return [row[0] for row in self.db.execute(sql, (match, pool))]

    def by_vector(self, vector: NDArray[np.float32], pool: int) -> Sequence[int]:
        cosines = self.vectors @ vector
        near = np.argpartition(-cosines, min(pool, len(cosines) - 1))[:pool]
        found: list[int] = (near[np.argsort(-cosines[near])] + 1).tolist()
        return found
