"""No model on another machine is asked while a transaction of the store is open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import ModelError
from bethink.models import open_embedder
from bethink.ports import Budget, Embedding, Prompt
from bethink.store.postgres.connections import PgCeiling, PgConnections
from bethink.store.sqlite.connection import SqliteConnections
from bethink.testing import FixedClock
from corpus import NOW
from language_server import sample
from postgres_server import initialised_url

PROFILES = (
    *("abmind", "default", "default-deep", "linksee", "memind-deep", "memind-simple"),
    *("remind", "siftcoder"),
)
NOTES = [
    *(f"The {place} gauge was calibrated by Priya on day {n}" for n, place in
      enumerate(("north", "south", "east", "west", "harbour", "bridge"))),
    "We decided to keep the nightly export in PostgreSQL because the disk was full",
    "Maria prefers short pull requests",
]  # fmt: skip


class Watch:
    """Counts the transactions that are open, of all stores."""

    def __init__(self) -> None:
        self.open = 0
        self.asked = 0
        self.inside: list[str] = []

    def see(self, what: str) -> None:
        """Note that a model was asked."""
        self.asked += 1
        if self.open:
            self.inside.append(what)

    def around(self, opener: Callable[..., Any]) -> Callable[..., Any]:
        """The same opener of transactions, counted."""

        @contextmanager
        def counted(*given: Any, **named: Any) -> Iterator[Any]:
            with opener(*given, **named) as opened:
                self.open += 1
                try:
                    yield opened
                finally:
                    self.open -= 1

        return counted


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Every transaction of every store is counted."""
    made = Watch()
    for kind, name in (
        (SqliteConnections, "_snapshot"),
        (SqliteConnections, "write_transaction"),
        (PgConnections, "_transaction"),
        (PgCeiling, "_transaction"),
    ):
        monkeypatch.setattr(kind, name, made.around(getattr(kind, name)))
    return made


class RemoteEmbedder:
    """An embedder that is asked over a network; what it has told of itself it knows."""

    slow = True
    remote = True

    def __init__(self, watch: Watch) -> None:
        inner = open_embedder("hash")
        assert inner is not None
        self._watch, self._inner = watch, inner
        self.fails = False
        self._told: set[str] = set()

    def _tell(self, what: str) -> None:
        if what not in self._told:
            self._watch.see(what)
            self._told.add(what)

    @property
    def model(self) -> str:
        self._tell("dim")
        return self._inner.model

    @property
    def dim(self) -> int:
        self._tell("dim")
        return self._inner.dim

    @property
    def unrelated(self) -> float:
        self._tell("unrelated")
        return 0.1

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        self._watch.see(f"embed {texts}")
        self._told.add("dim")
        return [Embedding(one.vector) for one in self._inner.embed(texts)]

    def embed_query(self, text: str) -> Embedding:
        self._watch.see(f"embed_query {text}")
        if self.fails:
            raise ModelError("the server is down")
        self._told.add("dim")
        return Embedding(self._inner.embed_query(text).vector)

    def count_tokens(self, text: str) -> int:
        return self._inner.count_tokens(text)


class RemoteReranker:
    """A reranker that is asked over a network, or passes for one."""

    remote = True

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.calls = 0

    def __call__(self, query: str, texts: Sequence[str]) -> list[float]:
        self._watch.see(f"rerank {len(texts)}")
        self.calls += 1
        return [len(text) / 1000 for text in texts]


class WatchedModel:
    """A language model that gives some answer of the form that was asked for."""

    name = "watched"

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.calls = 0

    def complete(self, prompt: Prompt, *, budget: Budget) -> dict[str, Any]:
        self._watch.see(f"complete {prompt.system[:40]}")
        self.calls += 1
        answer: dict[str, Any] = sample(prompt.schema)
        return answer


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """Where the memory is opened."""
    if request.param == "sqlite":
        return {"path": tmp_path / "space.db"}
    return {"space": f"remote-{tmp_path.name}", "store": initialised_url()}


def test_a_recall_asks_no_remote_model_inside_of_its_snapshot(
    watch: Watch, place: dict[str, Any]
) -> None:
    """Neither to embed nor to rerank, also where untrusted memories are judged apart."""
    with Memory.open(**place, embedder=RemoteEmbedder(watch)) as memory:
        memory.remember_many(NOTES)
        memory.remember("The south gauge was replaced", trust=0)
    for profile in PROFILES:
        watch.asked = 0
        models: dict[str, Any] = {
            "embedder": RemoteEmbedder(watch),
            "reranker": RemoteReranker(watch),
            "llm": WatchedModel(watch),
        }
        with Memory.open(**place, **models) as memory:
            for options in ({}, {"deep": True}, {"min_trust": 1}):
                memory.recall("which gauge did Priya calibrate", profile=profile, **options)

        assert watch.inside == [], profile
        assert watch.asked > 0, profile
        assert watch.open == 0, profile


def test_answers_by_remote_models_are_those_of_local_ones(
    watch: Watch, place: dict[str, Any]
) -> None:
    """The same hits, scores and steps; the reranker reads a list once."""
    embedder, reranker = RemoteEmbedder(watch), RemoteReranker(watch)
    with Memory.open(**place, embedder=embedder, reranker=reranker) as memory:
        memory.remember_many(NOTES)
        remote = memory.recall("which gauge did Priya calibrate", track=False)
        assert (reranker.calls, watch.inside) == (1, [])
        for model in (embedder, reranker):
            model.remote = False  # type: ignore[attr-defined]  # of the instance
        local = memory.recall("which gauge did Priya calibrate", track=False)
        assert watch.inside  # what may be asked anywhere is

    assert [(hit.item.id, hit.score) for hit in remote.hits] == [
        (hit.item.id, hit.score) for hit in local.hits
    ]
    assert [step.name for step in remote.steps] == [step.name for step in local.steps]


def test_a_remote_model_that_fails_degrades_the_answer(watch: Watch, place: dict[str, Any]) -> None:
    """As any that fails; the memory is found by its words."""
    embedder = RemoteEmbedder(watch)
    with Memory.open(**place, embedder=embedder) as memory:
        memory.remember_many(NOTES)
        embedder.fails = True

        answer = memory.recall("who prefers short pull requests")

    assert answer.hits[0].item.text == NOTES[-1]
    assert any("the server is down" in one.reason for one in answer.degraded)
    assert watch.inside == []


def test_writing_and_maintenance_ask_no_model_inside_of_a_transaction(
    watch: Watch, place: dict[str, Any]
) -> None:
    """Storing, revising, reindexing, insights, consolidation and reading by a model."""
    clock = FixedClock(NOW - timedelta(days=200))
    embedder, model = RemoteEmbedder(watch), WatchedModel(watch)
    with Memory.open(**place, embedder=embedder, llm=model, clock=clock) as memory:
        stored = memory.remember_many(
            [{"text": text, "entities": ["place:Harbour"], "layer": "context"} for text in NOTES]
        )
        memory.remember("Priya calibrated the harbour gauge because its cable was torn apart")
        memory.remember("Priya calibrated the harbour gauge again and replaced its cable")
        memory.update(stored[0].id, text="The north gauge was calibrated by Ana")
        clock.now = NOW
        memory.maintain()
        memory.reindex()

    assert watch.inside == []
    assert model.calls > 0
