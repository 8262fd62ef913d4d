"""A local server that speaks the rerank protocol in each of its dialects, well or badly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from embedding_server import FAULTS as EVERY_FAULT
from embedding_server import Answering, EmbeddingServer, serving

DIALECTS = ("scores", "results", "data", "list")


def score(query: str, text: str) -> float:
    """The share of the question's words that stand in the text, between 0.1 and 0.9."""
    words = query.lower().split()
    return 0.1 + 0.8 * sum(word in text.lower().split() for word in words) / len(words)


class Reranking(Answering):
    """Scores by shared words; while ``server.fault`` is set, that answers instead."""

    server: RerankServer

    def do_POST(self) -> None:  # noqa: N802 - the name the server asks for
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, dict(self.headers), asked))
        texts = asked.get(self.server.field)
        if texts is None:
            self.give({"error": f"missing field {self.server.field}"}, 422)
        elif len(texts) > self.server.most or max(map(len, texts)) > self.server.max_text:
            self.give({"error": "too much"}, 413)
        elif self.server.fault is not None:
            self.server.fault(self, [score(asked["query"], text) for text in texts])
        else:
            self.give(self.shape([score(asked["query"], text) for text in texts]))

    def shape(self, vectors: list[Any]) -> Any:
        """As the dialect puts it: best first, but for the one that has no places."""
        if self.server.protocol == "scores":
            return {"scores": vectors}
        name = "score" if self.server.protocol == "list" else "relevance_score"
        rows = [{"index": at, name: value} for at, value in enumerate(vectors)]
        rows.sort(key=lambda row: str(row[name]), reverse=True)
        return rows if self.server.protocol == "list" else {self.server.protocol: rows}


class RerankServer(EmbeddingServer):
    """How it speaks, and what it finds too much."""

    def __init__(self) -> None:
        super().__init__(Reranking)
        self.behave()

    def behave(self) -> None:
        """As at the beginning."""
        self.protocol = "results"
        self.field = "documents"
        self.most = self.max_text = 1_000_000
        self.fault = None
        self.asked.clear()


@contextmanager
def reranking() -> Iterator[RerankServer]:
    """A server in a thread, gone at the end together with those that still wait."""
    with serving(RerankServer()) as server:
        assert isinstance(server, RerankServer)
        yield server


def _changed(change: Callable[[list[Any]], list[Any]]) -> Callable[[Answering, list[Any]], None]:
    return lambda asked, scores: asked.give(asked.shape(change(scores)))


def _rows(*rows: Any) -> Callable[[Answering, list[Any]], None]:
    return lambda asked, _: asked.give({"results": list(rows)})


_OF_VECTORS = ("empty vectors", "no vectors", "too many vectors", "wrong dimension", "ragged",
               "NaN", "beyond floats", "zeros", "words", "truths")  # fmt: skip

FAULTS = {name: fault for name, fault in EVERY_FAULT.items() if name not in _OF_VECTORS} | {
    "no scores": _changed(lambda scores: []),
    "too many scores": _changed(lambda scores: [*scores, 0.5]),
    "words": _changed(lambda scores: ["0.5" for _ in scores]),
    "truths": _changed(lambda scores: [True for _ in scores]),
    "nothing": _changed(lambda scores: [None for _ in scores]),
    "lists": _changed(lambda scores: [[score] for score in scores]),
    "NaN": _changed(lambda scores: [float("nan") for _ in scores]),
    "infinity": _changed(lambda scores: [float("inf") for _ in scores]),
    "beyond floats": lambda asked, scores: asked.send(b'{"scores": [1e999, 0.5]}'),
    "beyond all floats": lambda asked, scores: asked.send(b'{"scores": [1' + b"0" * 400 + b"]}"),
    "a place that is none": _rows({"index": 7, "relevance_score": 0.5}),
    "a negative place": _rows({"index": -1, "relevance_score": 0.5}),
    "a place in words": _rows({"index": "0", "relevance_score": 0.5}),
    "a place between": _rows({"index": 0.0, "relevance_score": 0.5}),
    "a place that is true": _rows({"index": True, "relevance_score": 0.5}),
    "the same place twice": _rows(*[{"index": 0, "relevance_score": 0.5}] * 2),
    "no place": _rows({"relevance_score": 0.5}),
    "no score": _rows({"index": 0}),
    "rows that are none": _rows(0, 1),
}
