"""The systems that are measured, each given the same texts and the same vectors.

Each stores a conversation and answers with the keys of its turns, best first. What a
system would compute with a model of its own it computes with ours, through the hook it
has for that; apart from that it runs as it comes.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bethink import Memory
from bethink.eval.case import day_after
from bethink.model import Draft
from bethink.ports import Embedder


class Turn(NamedTuple):
    """``text`` is what systems that know no speakers and no dates are given."""

    key: str
    text: str
    draft: Draft


class System(Protocol):
    """One space of one system."""

    def store(self, turns: Sequence[Turn]) -> None: ...

    def ask(self, question: str, k: int) -> list[str]: ...

    def close(self) -> None: ...


class Bethink:
    """Ours, as it comes: any profile, the answer it would give with no further wishes."""

    def __init__(self, folder: Path, embedder: Embedder | None, profile: str = "default") -> None:
        self._profile = profile
        self._stack = ExitStack()
        self._memory = self._stack.enter_context(
            Memory.open(path=folder / "space.db", embedder=embedder or "none")
        )
        self._keys: dict[str, str] = {}
        self._now: datetime | None = None

    def store(self, turns: Sequence[Turn]) -> None:
        results = self._memory.remember_many([turn.draft for turn in turns])
        self._keys = {made.id: turn.key for made, turn in zip(results, turns, strict=True)}
        self._now = day_after(tuple(turn.draft for turn in turns))

    def ask(self, question: str, k: int) -> list[str]:
        answer = self._memory.recall(
            question, k=k, profile=self._profile, now=self._now, track=False
        )
        return [self._keys[hit.item.id] for hit in answer.hits]

    def close(self) -> None:
        self._stack.close()


class Bm25:
    """bm25s with a stemmer and its English stop words: plain BM25 at its best."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        import bm25s
        import Stemmer

        self._library, self._stemmer = bm25s, Stemmer.Stemmer("english")
        self._index_rows = bm25s.BM25()
        self._keys: list[str] = []

    def store(self, turns: Sequence[Turn]) -> None:
        self._keys = [turn.key for turn in turns]
        self._index_rows.index(self._split([turn.text for turn in turns]), show_progress=False)

    def ask(self, question: str, k: int) -> list[str]:
        words = self._split([question])
        found, scores = self._index_rows.retrieve(
            words, k=min(k, len(self._keys)), show_progress=False
        )
        return [
            self._keys[place] for place, score in zip(found[0], scores[0], strict=True) if score > 0
        ]

    def _split(self, texts: list[str]) -> Any:
        return self._library.tokenize(
            texts, stopwords="en", stemmer=self._stemmer, show_progress=False
        )

    def close(self) -> None:
        pass


class Chroma:
    """A persistent collection in the cosine space."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        import chromadb
        from chromadb.config import Settings

        self._embedder = _needed(embedder)
        self._client = chromadb.PersistentClient(
            str(folder), settings=Settings(anonymized_telemetry=False)
        )
        self._rows = self._client.create_collection(
            "turns", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def store(self, turns: Sequence[Turn]) -> None:
        texts = [turn.text for turn in turns]
        vectors = [one.vector for one in self._embedder.embed(texts)]
        self._rows.add(ids=[turn.key for turn in turns], documents=texts, embeddings=vectors)

    def ask(self, question: str, k: int) -> list[str]:
        vector = self._embedder.embed_query(question).vector
        return self._rows.query(query_embeddings=[vector], n_results=k)["ids"][0]

    def close(self) -> None:
        self._client.close()


class LanceHybrid:
    """A table with a full-text index (stemmed) and vectors, joined by its own reranker."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        import lancedb

        self._embedder = _needed(embedder)
        self._db = lancedb.connect(folder)
        self._rows: Any = None

    def store(self, turns: Sequence[Turn]) -> None:
        from lancedb.index import FTS

        vectors = self._embedder.embed([turn.text for turn in turns])
        self._rows = self._db.create_table(
            "turns",
            [
                {"key": turn.key, "text": turn.text, "vector": one.vector}
                for turn, one in zip(turns, vectors, strict=True)
            ],
        )
        self._rows.create_index("text", config=FTS(stem=True, remove_stop_words=True))

    def ask(self, question: str, k: int) -> list[str]:
        vector = self._embedder.embed_query(question).vector
        search = self._rows.search(query_type="hybrid").vector(vector).text(question)
        return [row["key"] for row in search.distance_type("cosine").limit(k).to_list()]

    def close(self) -> None:
        self._rows = None


class Mem0:
    """mem0 without its language model (``infer=False``), Qdrant in a local folder."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        from mem0 import Memory as Mem0Memory

        self._memory = Mem0Memory.from_config(
            {
                "vector_store": {
                    "provider": "qdrant",
                    "config": {
                        "collection_name": "turns",
                        "path": str(folder / "qdrant"),
                        "embedding_model_dims": _needed(embedder).dim,
                        "on_disk": True,
                    },
                },
                # Built but never asked: nothing is inferred, and vectors are ours.
                "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                "embedder": {"provider": "openai", "config": {"api_key": "unused"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self._memory.embedding_model = _Mem0Vectors(_needed(embedder))

    def store(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            self._memory.add(turn.text, user_id="u", infer=False, metadata={"key": turn.key})

    def ask(self, question: str, k: int) -> list[str]:
        found = self._memory.search(question, filters={"user_id": "u"}, top_k=k)
        return [row["metadata"]["key"] for row in found["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        self._memory.db.close()


class _Mem0Vectors:
    """Our embedder in the shape mem0 asks."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        asked = memory_action == "search"
        one = self._embedder.embed_query(text) if asked else self._embedder.embed([text])[0]
        return one.vector.tolist()

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text, memory_action) for text in texts]


class Remind:
    """remind-mcp: turns as episodes, recalled by its hybrid of vectors and keywords."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        from remind.interface import MemoryInterface
        from remind.storage import open_store

        self._loop = asyncio.new_event_loop()
        self._memory = MemoryInterface(
            _remind_vectors(_needed(embedder)),
            store=open_store(f"sqlite:///{folder / 'remind.db'}"),
            hybrid_keyword_weight=0.3,
        )
        self._keys: dict[str, str] = {}

    def store(self, turns: Sequence[Turn]) -> None:
        made = self._loop.run_until_complete(
            self._memory.remember_batch([{"content": turn.text} for turn in turns])
        )
        self._keys = {
            result.episode_id: turn.key for result, turn in zip(made.results, turns, strict=True)
        }

    def ask(self, question: str, k: int) -> list[str]:
        answer = self._loop.run_until_complete(self._memory.recall(question, k=k, episode_k=k))
        episodes = [getattr(one, "episode", one) for one in answer.episodes]
        return [self._keys[episode.id] for episode in episodes]

    def close(self) -> None:
        self._memory.store.engine.dispose()
        self._loop.close()


def _remind_vectors(embedder: Embedder) -> Any:
    from remind.providers.base import EmbeddingProvider

    class Vectors(EmbeddingProvider):
        dimensions = embedder.dim
        name = embedder.model

        async def embed(self, text: str) -> list[float]:
            return embedder.embed_query(text).vector.tolist()

        async def embed_batch(self, texts: list[str]) -> list[list[float]]:
            return [one.vector.tolist() for one in embedder.embed(texts)]

    return Vectors()


class Mnemosyne:
    """Its working memory: every turn remembered for itself, recalled by words and vectors."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        # Read once, when the module is imported: one embedder a process.
        os.environ["MNEMOSYNE_EMBEDDING_DIM"] = str(_needed(embedder).dim)
        from mnemosyne.core import embeddings
        from mnemosyne.core.memory import Mnemosyne as Bank

        # It has no hook but the place where it keeps its loaded model.
        embeddings._embedding_model = _Listed(_needed(embedder))  # noqa: SLF001
        self._bank = Bank(db_path=folder / "bank.db")
        self._keys: dict[str, str] = {}

    def store(self, turns: Sequence[Turn]) -> None:
        self._keys = {self._bank.remember(turn.text): turn.key for turn in turns}

    def ask(self, question: str, k: int) -> list[str]:
        rows = self._bank.recall(question, top_k=k)
        # What it derived stands for the turn it came from, once; else it takes its place.
        found = [row.get("source_memory_id") or row["id"] for row in rows]
        return list(dict.fromkeys(self._keys.get(one, one) for one in found))

    def close(self) -> None:
        self._bank.conn.close()


class _Listed:
    """Our embedder where a library expects fastembed's."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def embed(self, texts: Sequence[str]) -> list[Any]:
        return [one.vector for one in self._embedder.embed(list(texts))]


class TxtaiHybrid:
    """txtai's hybrid of its own BM25 and vectors, half and half, as it comes."""

    def __init__(self, folder: Path, embedder: Embedder | None) -> None:
        from txtai import Embeddings

        model = _needed(embedder)
        self._index_rows = Embeddings(
            method="external",
            transform=lambda texts: [one.vector for one in model.embed(list(texts))],
            hybrid=True,
        )

    def store(self, turns: Sequence[Turn]) -> None:
        self._index_rows.index((turn.key, turn.text, None) for turn in turns)

    def ask(self, question: str, k: int) -> list[str]:
        return [key for key, _ in self._index_rows.search(question, k)]

    def close(self) -> None:
        self._index_rows.close()


def _needed(embedder: Embedder | None) -> Embedder:
    if embedder is None:
        raise ValueError("this system needs vectors")
    return embedder


def fresh(folder: Path) -> Path:
    """An empty folder: a system's files are never those of another run."""
    path = folder / uuid.uuid4().hex
    path.mkdir(parents=True)
    return path


Build = Callable[[Path, "Embedder | None"], System]

# The name, the packages whose versions are told, whether it uses vectors, and how it is made.
SYSTEMS: dict[str, tuple[tuple[str, ...], bool, Build]] = {
    "bm25": (("bm25s", "PyStemmer"), False, Bm25),
    "chroma": (("chromadb",), True, Chroma),
    "lancedb hybrid": (("lancedb",), True, LanceHybrid),
    "mem0": (("mem0ai", "qdrant-client"), True, Mem0),
    "mnemosyne": (("mnemosyne-memory",), True, Mnemosyne),
    "remind": (("remind-mcp",), True, Remind),
    "txtai hybrid": (("txtai",), True, TxtaiHybrid),
    "bethink": ((), True, Bethink),
}
