"""What a worker can be asked to do, called here."""

from __future__ import annotations

import json
import re

import pytest

from asking import asked
from bethink.cli.app import BadUse
from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.memory import Memory
from bethink.models.embed.hashing import HashEmbedder
from bethink.worker.server import JOBS
from bethink.worker.spool import QUEUEABLE_JOBS
from rows import each_row
from sentence_transformers_stand_in import stand_in_library


def done(kind, memory, payload):
    """The job's answer as a caller gets it."""
    return json.loads(json.dumps(JOBS[kind](memory, payload)))


def test_a_question_is_answered(filled):
    """As it is printed: JSON with the steps where they are wanted, or text."""
    given = ("remind", {"k": 2, "track": False}, None, True)

    told = done("recall", filled, asked("where is the deploy key?", *given))
    shown = done("recall", filled, asked("where is the deploy key?", *given, as_text=True,
                 style={"json": False}))  # fmt: skip

    answer = json.loads(told["text"])
    assert told["code"] == 0
    assert "vault B" in answer["items"][0]["text"]
    assert answer["profile"] == "remind"
    assert answer["trace"]
    assert "vault B" in shown["text"]


def test_a_terminal_is_the_callers(filled):
    """Its width and whether it shows colours travel with the question."""
    style = {"json": False, "columns": 60, "color": True}
    told = done("recall", filled, asked("where is the deploy key?", style=style))

    plain = re.sub(r"\x1b\[[0-9;]*m", "", told["text"])
    assert plain != told["text"]
    assert max(map(len, plain.splitlines()[:4])) <= 60


def test_why_not_and_comparisons_are_answered(filled):
    """All profiles that come with us, where none is named."""
    item = filled.browse(limit=1)[0]
    text = "where is the deploy key?"

    why = json.loads(done("why-not", filled, asked(text, item_id=item.id))["text"])
    named = json.loads(done("compare", filled, asked(text, profiles=["remind"]))["text"])
    shipped = json.loads(done("compare", filled, asked(text, profiles=[]))["text"])
    assert why["id"] == item.id
    assert list(named) == ["remind"]
    assert set(shipped) >= {"default", "remind", "linksee"}


@each_row(
    ("kind", "payload", "error"),
    [
        ("recall", asked("x", "nonsense"), BadUse),
        ("recall", asked("x", None, {"k": 0}), Refused),
        ("recall", asked("x", None, {"reranker": "https://host/rerank"}), Refused),
        ("recall", asked("x" * 100_000), Refused),
        ("why-not", asked("x", item_id="ffff"), NotFound),
        ("compare", asked("x", profiles=["nonsense"]), BadUse),
    ],
)
def test_what_cannot_be_answered_is_refused(filled, kind, payload, error):
    """By an error that has a name: the caller does it itself, and says what is wrong."""
    with pytest.raises(error):
        JOBS[kind](filled, payload)


def test_a_reranker_is_used_where_the_environments_were_compared(tmp_path, embedder):
    """The caller's settings name it: then the worker reads what the caller would read."""
    settings = Settings(data_dir=tmp_path, space="here", reranker="cross-encoder:name")
    payload = asked("where is the deploy key?", None, {"reranker": "cross-encoder:name"})
    (tmp_path / "library").mkdir()
    with (
        stand_in_library(tmp_path / "library"),
        Memory.open(settings=settings, embedder=embedder) as memory,
    ):
        memory.remember("The deploy key lives in vault B")
        answer = json.loads(done("recall", memory, payload)["text"])

    assert answer["items"]
    assert answer["degraded"] == []


def test_hooks_get_their_texts(tmp_path, embedder):
    """A prompt's memories and a session's briefing, as text."""
    settings = Settings(data_dir=tmp_path, space="here")
    with Memory.open(settings=settings, embedder=embedder) as memory:
        memory.remember("The deploy key for production lives in vault B", kind="decision")
        prompt = {"prompt": "where is the deploy key for production?", "session_id": "s"}

        assert "vault B" in done("prompt", memory, prompt)
        assert isinstance(done("brief", memory, {"session_id": "s", "source": "startup"}), str)


def test_maintenance_is_a_small_share(memory):
    """Nothing is due in an empty memory."""
    assert done("maintain", memory, {}) == {"run": None}


def test_vectors_of_an_earlier_model_are_made_anew(tmp_path, embedder):
    """Some at a time, until memories are found by meaning again; a server is not asked unasked."""
    settings = Settings(data_dir=tmp_path, space="here")
    with Memory.open(settings=settings, embedder=HashEmbedder()) as memory:
        memory.remember("The deploy key for production lives in vault B")
        assert done("vectors", memory, {}) == {"vectors": 0}
    with Memory.open(settings=settings, embedder=embedder) as memory:
        assert memory.recall("deploy key").degraded
        assert done("vectors", memory, {}) == {"vectors": 1}
        assert done("vectors", memory, {}) == {"vectors": 0}
        assert not memory.recall("deploy key").degraded
    with Memory.open(settings=settings, embedder=_Served()) as memory:
        assert done("vectors", memory, {}) == {"vectors": 0}
        assert memory.store.vectors.unembedded(_Served.model, 2)


class _Served(HashEmbedder):
    """An embedder that asks a server."""

    model = "served"
    remote = True


def test_models_are_loaded_ahead(memory):
    """One that cannot be loaded is told of; trying again would not help."""
    assert done("warm", memory, {}) == {"loaded": True}
    memory.session.reranker = _broken
    assert done("warm", memory, {})["loaded"] is False


def _broken(question, texts):
    from bethink.errors import ModelError

    raise ModelError("no such weights")


def test_what_can_be_handed_over_is_a_job():
    """And does no harm when it is done again: nothing else is taken."""
    assert set(QUEUEABLE_JOBS) <= set(JOBS)
