"""What a worker can be asked to do, called here."""

from __future__ import annotations

import json

import pytest

from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.memory import Memory
from bethink.retrieval.explain import WhyNot
from bethink.worker.codec import DecodeError, decode, encode
from bethink.worker.operations import JOBS, CompareReply, QueryRequest, RecallReply
from bethink.worker.spool import QUEUEABLE_JOBS
from rows import each_row


def done(kind, memory, payload):
    """The job's answer as a caller gets it."""
    return json.loads(json.dumps(JOBS[kind](memory, payload)))


def test_a_question_is_answered(filled):
    """With the sections of its profile, and the steps where they are wanted."""
    options = {"k": 2, "track": False}
    asked = QueryRequest("where is the deploy key?", "remind", options, steps=True)

    told = decode(done("recall", filled, encode(asked)), RecallReply)

    assert "vault B" in told.answer.hits[0].item.text
    assert told.answer.profile == "remind"
    assert told.answer.steps
    assert told.sections == filled.profile("remind").text


def test_why_not_and_comparisons_are_answered(filled):
    """All profiles that come with us, where none is named."""
    item = filled.browse(limit=1)[0]
    asked = encode(QueryRequest("where is the deploy key?"))

    assert decode(done("why-not", filled, {**asked, "id": item.id}), WhyNot).item.id == item.id
    named = decode(done("compare", filled, {**asked, "profiles": ["remind"]}), CompareReply)
    shipped = decode(done("compare", filled, {**asked, "profiles": []}), CompareReply)
    assert [one.profile for one in named.answers] == ["remind"]
    assert {one.profile for one in shipped.answers} >= {"default", "remind", "linksee"}


@each_row(
    ("kind", "payload", "error"),
    [
        ("recall", {}, DecodeError),
        ("recall", encode(QueryRequest("x", "nonsense")), NotFound),
        ("recall", encode(QueryRequest("x", options={"track": True})), Refused),
        ("recall", encode(QueryRequest("x", options={"k": 0})), Refused),
        ("recall", encode(QueryRequest("x", options={"reranker": "https://host/rerank"})), Refused),
        ("recall", encode(QueryRequest("x" * 100_000)), Refused),
        ("why-not", encode(QueryRequest("x")), Refused),
        ("why-not", {**encode(QueryRequest("x")), "id": 7}, Refused),
        ("why-not", {**encode(QueryRequest("x")), "id": "ffff"}, NotFound),
        ("compare", encode(QueryRequest("x")), Refused),
        ("compare", {**encode(QueryRequest("x")), "profiles": [7]}, Refused),
        ("capture", {}, Refused),
        ("capture", {"transcript": "x", "session": "s"}, Refused),
        ("edits", {"transcript": "x"}, Refused),
    ],
)
def test_what_cannot_be_answered_is_refused(filled, kind, payload, error):
    """By an error that has a name: the caller does it itself, and says what is wrong."""
    with pytest.raises(error):
        JOBS[kind](filled, payload)


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
