"""A memory whose embedder is behind a server that fails: written, queued, found by words."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.errors import ModelError
from bethink.models.embed.served import EmbedderTimeouts, open_ollama, open_openai
from bethink.models.http import CircuitBreaker
from embedding_server import ENDLESS, FAULTS, serving
from rows import each_row

PATIENT = EmbedderTimeouts(query_s=60, batch_s=60, sleep=lambda _: None)
IMPATIENT = PATIENT._replace(query_s=0.3, batch_s=0.3)
OPEN = {"ollama": open_ollama, "openai": open_openai}


@pytest.fixture(scope="module")
def running():
    with serving() as server:
        yield server


@pytest.fixture
def now():
    return [0.0]


@pytest.fixture(params=list(OPEN))
def embedder(request, running, now, monkeypatch, tmp_path):
    running.fault = None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("OLLAMA_HOST", running.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
    breaker = CircuitBreaker(clock=lambda: now[0])
    return OPEN[request.param]("hash", timeouts=PATIENT, breaker=breaker)


@pytest.fixture
def memory(embedder):
    with Memory.open(":memory:", embedder=embedder) as opened:
        yield opened


@each_row("fault", [*FAULTS])
def test_a_failing_embedder_costs_the_vectors_only(
    memory, embedder, running, now, fault, monkeypatch
):
    """Stored and queued, recalled by words with the reason, complete after the fault lifts."""
    before = memory.remember("Anna prefers tabs over spaces")
    running.fault = FAULTS[fault]
    if fault in ENDLESS:
        monkeypatch.setattr(embedder, "_timeouts", IMPATIENT)
    queued = memory.remember("The deploy key lives in vault B")
    now[0] += 2.0
    answer = memory.recall("where is the deploy key?")

    assert before.pending == ()
    assert (queued.status, queued.pending) == ("stored", ("embedding",))
    assert [hit.item.id for hit in answer.hits] == [queued.id]
    assert "channel.dense" in {part.part for part in answer.degraded}
    assert all(part.reason for part in answer.degraded)

    running.fault = None
    monkeypatch.setattr(embedder, "_timeouts", PATIENT)
    now[0] += 31.0
    assert memory.reindex() == 1
    whole = memory.recall("where is the deploy key?")
    assert whole.degraded == ()
    assert whole.hits[0].item.id == queued.id
    assert "channel.dense" in {reason.by for reason in whole.hits[0].evidence}


def test_a_server_that_never_answered_refuses_nothing(memory, running, now):
    """Not even the dimensions are known: memories are kept, changed and found all the same."""
    running.fault = FAULTS["500"]

    kept = memory.remember("The deploy key lives in vault B")
    changed = memory.update(kept.id, text="The deploy key lives in vault C")
    answer = memory.recall("deploy key")

    assert kept.pending == ("embedding",)
    assert changed.text.endswith("vault C")
    assert [hit.item.id for hit in answer.hits] == [kept.id]
    with pytest.raises(ModelError, match="answered with status 500"):
        memory.reindex()

    running.fault = None
    now[0] += 31.0
    assert memory.reindex() == 1
    assert memory.recall("deploy key").degraded == ()


def test_one_recall_waits_once(memory, embedder, running, monkeypatch):
    """However many steps ask the embedder, a dead server costs one time-out."""
    memory.remember_many([{"text": f"The key number {n} is in vault {n}"} for n in range(5)])
    running.fault = FAULTS["hang"]
    monkeypatch.setattr(embedder, "_timeouts", IMPATIENT)
    running.asked.clear()

    answer = memory.recall("which vault has key number 3?")

    assert answer.degraded
    assert len(running.asked) == 1
