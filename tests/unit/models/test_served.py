"""Embedders behind a server, which may do anything."""

from __future__ import annotations

import socket

import numpy as np
import pytest

from bethink import Memory
from bethink.errors import BadSetting, BadText, ModelError
from bethink.models import open_embedder
from bethink.models.embed.hashing import HashEmbedder
from bethink.models.embed.served import (
    EmbedderTimeouts,
    ServedEmbedder,
    measure_baseline,
    open_ollama,
    open_openai,
    timeouts_from,
    unrelated_texts,
)
from bethink.models.http import CircuitBreaker
from bethink.ports import unrelated_similarity
from embedding_server import ENDLESS, FAULTS, serving
from rows import each_row

KEY = "sk-never-to-be-seen"
# Waits between tries are left out, so that a fault costs what the fault itself takes.
PATIENT = EmbedderTimeouts(query_s=60, batch_s=60, sleep=lambda _: None)
IMPATIENT = PATIENT._replace(query_s=0.5, batch_s=0.5)
OPEN = {"ollama": open_ollama, "openai": open_openai}


@pytest.fixture(scope="module")
def running():
    with serving() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch, tmp_path):
    running.fault = None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    running.asked.clear()
    monkeypatch.setenv("OLLAMA_HOST", running.url)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return running


@pytest.fixture(params=list(OPEN))
def provider(request):
    return request.param


@pytest.fixture
def embedder(server, provider):
    """Knows its dimensions already, and is asked every time."""
    opened = OPEN[provider]("hash", timeouts=PATIENT, breaker=CircuitBreaker(limit=99, pause_s=0))
    assert opened.dim == 384
    server.asked.clear()
    return opened


def test_the_name_says_provider_model_and_size(server, provider):
    """The first answer tells how many dimensions there are; it is asked for once."""
    embedder = open_embedder(f"{provider}:hash:latest")
    assert embedder is not None

    assert embedder.model == f"{provider}:hash:latest:384"
    assert embedder.dim == 384
    assert len(server.asked) == 1


def test_vectors_come_as_the_server_gives_them(embedder):
    """Of length 1, in the order of the texts, whatever order the answer has."""
    texts = ["the deploy key", "", "anna prefers tabs", "the deploy key"]

    made = embedder.embed(texts)

    for text, embedding in zip(texts, made, strict=True):
        assert embedding.vector == pytest.approx(HashEmbedder().embed_query(text).vector)
        assert embedding.vector.dtype == np.float32


def test_each_protocol_is_spoken(server, embedder, provider):
    """The path, the body and the key are what that server expects."""
    embedder.embed(["one", "two"])

    path, headers, asked = server.asked[-1]
    assert (path, headers.get("Authorization"), asked) == {
        "ollama": ("/api/embed", None, {"model": "hash", "input": ["one", "two"]}),
        "openai": (
            "/v1/embeddings",
            f"Bearer {KEY}",
            {"model": "hash", "input": ["one", "two"], "encoding_format": "float"},
        ),
    }[provider]


def test_many_texts_go_in_portions(server, embedder):
    """No request holds more than 64; empty texts are not sent."""
    made = embedder.embed([f"text {number}" if number % 10 else "" for number in range(200)])

    assert len(made) == 200
    assert [len(asked["input"]) for _, _, asked in server.asked] == [64, 64, 52]


@each_row("fault", FAULTS)
def test_every_fault_is_a_sentence(server, embedder, fault, monkeypatch):
    """ModelError, an endless one's too, without a word of the server's or of the key."""
    server.fault = FAULTS[fault]

    for ask in (
        lambda: embedder.embed_query("where is the key?"),
        lambda: embedder.embed(["a memory", "another"]),
    ):
        with monkeypatch.context() as patch:
            if fault in ENDLESS:
                patch.setattr(embedder, "_timeouts", IMPATIENT)
            with pytest.raises(ModelError) as caught:
                ask()
        assert caught.value.message
        for said in (caught.value.message, caught.value.remedy, repr(caught.value)):
            assert KEY not in said
            assert "previous instructions" not in said
            assert "\n" not in said

    server.fault = None
    assert embedder.embed_query("where is the key?").vector.any()


@each_row("fault", ["429", "500", "503", "reset", "cut short"])
def test_what_may_pass_is_tried_again(server, embedder, fault):
    """Twice, a little later each time; the third answer is as good as the first."""
    tries = iter([FAULTS[fault], FAULTS[fault]])

    def twice(asked, vectors):
        failing = next(tries, None)
        if failing is None:
            asked.give(asked.shape(vectors))
        else:
            failing(asked, vectors)

    server.fault = twice

    assert embedder.embed(["the key"])[0].vector.any()
    assert len(server.asked) == 3


@each_row("fault", ["401", "404", "redirect", "HTML", "NaN", "50 MB"])
def test_what_will_not_pass_is_not_tried_again(server, embedder, fault):
    """The same question would get the same answer."""
    server.fault = FAULTS[fault]

    with pytest.raises(ModelError):
        embedder.embed_query("the key")

    assert len(server.asked) == 1


def test_a_server_that_asks_for_patience_gets_it(server, provider):
    """Retry-After is kept where there is time for it."""
    slept: list[float] = []
    embedder = OPEN[provider]("hash", timeouts=EmbedderTimeouts(sleep=slept.append))
    answers = iter([429])

    def once(asked, vectors):
        if next(answers, None):
            asked.give({}, 429, Retry_After="1")
        else:
            asked.give(asked.shape(vectors))

    server.fault = once

    assert embedder.embed(["the key"])[0].vector.any()
    assert slept == [1.0]


def test_a_server_that_does_not_answer_is_left_alone(server, provider):
    """After three failures no time is lost any more, until half a minute has passed."""
    now = [0.0]
    breaker = CircuitBreaker(clock=lambda: now[0])
    embedder = OPEN[provider]("hash", timeouts=PATIENT, breaker=breaker)
    server.fault = FAULTS["401"]
    for _ in range(3):
        with pytest.raises(ModelError):
            embedder.embed_query("the key")
        now[0] += 1.0
    seen = len(server.asked)
    server.fault = None

    with pytest.raises(ModelError, match="refused the credentials"):
        embedder.embed_query("the key")
    assert len(server.asked) == seen == 3

    now[0] += 30.0
    assert embedder.embed_query("the key").vector.any()


def test_nobody_listening_is_said(monkeypatch, provider):
    """A refused connection names the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{port}")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}")
    embedder = OPEN[provider]("hash")

    with pytest.raises(ModelError, match=rf"127\.0\.0\.1:{port}.* cannot be reached"):
        embedder.embed_query("the key")


def test_a_name_nobody_has_is_said(monkeypatch):
    """A host that cannot be looked up is a failing model like any other."""
    monkeypatch.setenv("OLLAMA_HOST", "http://no-such-host.invalid:1")

    with pytest.raises(ModelError, match=r"no-such-host\.invalid"):
        open_ollama("hash", timeouts=PATIENT).embed_query("the key")


def test_a_server_without_tls_is_said(server, monkeypatch):
    """Shaking hands with a server that does not is a failing model too."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.replace("http:", "https:"))

    with pytest.raises(ModelError, match="cannot be reached"):
        open_openai("hash", timeouts=PATIENT).embed_query("the key")


def test_dimensions_do_not_change_under_way(server, embedder):
    """A server that was given another model is noticed; its vectors are never mixed in."""
    server.fault = FAULTS["wrong dimension"]

    with pytest.raises(ModelError, match="returned 7 dimensions, instead of 384") as caught:
        embedder.embed_query("the key")

    assert caught.value.remedy == "bethink reindex"


def test_texts_that_are_too_long_are_cut(server, embedder):
    """One too long for the model is embedded by its beginning; the others as they are."""

    def strict(asked, vectors):
        inputs = asked.server.asked[-1][2]["input"]
        if any(len(text) > 1200 for text in inputs):
            asked.give({"error": "too long"}, 400)
        else:
            asked.give(asked.shape(vectors))

    server.fault = strict
    long = "word " * 3000

    made = embedder.embed(["short", long, "also short"])

    assert made[0].vector == pytest.approx(HashEmbedder().embed_query("short").vector)
    assert made[1].vector.any()
    assert max(len(text) for _, _, asked in server.asked for text in asked["input"]) <= 8000


def test_a_key_is_needed_before_anything_is_sent(monkeypatch):
    """Without one nothing leaves this machine; one that cannot be a key is not shown."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        open_openai("text-embedding-3-small").embed_query("the key")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret\nX-Evil: yes")
    with pytest.raises(ModelError, match="characters that are not valid in a key") as caught:
        open_openai("text-embedding-3-small").embed_query("the key")
    assert "secret" not in caught.value.message


def test_half_a_character_is_refused(embedder):
    """Before anybody is asked."""
    for ask in (embedder.embed_query, lambda text: embedder.embed([text])):
        with pytest.raises(BadText):
            ask("abc\ud800def")


def address(embedder: ServedEmbedder) -> str:
    return str(embedder._service.server.url)


@each_row(
    ("given", "meant"),
    [
        ("", "http://127.0.0.1:11434/api/embed"),
        ("0.0.0.0", "http://127.0.0.1:11434/api/embed"),
        ("0.0.0.0:99", "http://127.0.0.1:99/api/embed"),
        ("box", "http://box:11434/api/embed"),
        ("box/ollama/", "http://box:11434/ollama/api/embed"),
        ("[::1]", "http://[::1]:11434/api/embed"),
        ("[::]:5", "http://[::1]:5/api/embed"),
        ("http://box", "http://box/api/embed"),
        ("https://box/ollama", "https://box/ollama/api/embed"),
        ("http://box:1234/", "http://box:1234/api/embed"),
    ],
)
def test_ollamas_address_is_read_as_ollama_does(monkeypatch, given, meant):
    """With and without scheme and port; listening everywhere is being found here."""
    monkeypatch.setenv("OLLAMA_HOST", given)

    assert address(open_ollama("hash")) == meant


@pytest.mark.parametrize("given", ["", "https://api.openai.com/v1/"])
def test_openais_address_is_the_usual_one(monkeypatch, given):
    """Unless the variable says otherwise."""
    monkeypatch.setenv("OPENAI_BASE_URL", given)

    assert address(open_openai("hash")) == "https://api.openai.com/v1/embeddings"


@each_row("given", ["ftp://box", "http://", "http://a:b@box", "http://box:99999", "x"])
def test_an_address_that_is_none_is_refused(monkeypatch, given):
    """When the embedder is opened, by the variable's name."""
    monkeypatch.setenv("OPENAI_BASE_URL", given)

    with pytest.raises(BadSetting, match="OPENAI_BASE_URL"):
        open_openai("hash")


def test_patience_can_be_set():
    """In seconds; anything else is refused by the variable's name."""
    assert timeouts_from({})[:2] == (2.0, 30.0)
    assert timeouts_from({"BETHINK_QUERY_TIMEOUT_S": "0.5"})[:2] == (0.5, 30.0)
    assert timeouts_from({"BETHINK_BATCH_TIMEOUT_S": "120"})[:2] == (2.0, 120.0)
    for wrong in ("soon", "0", "-1", "nan", "1e9"):
        with pytest.raises(BadSetting, match="BETHINK_BATCH_TIMEOUT_S"):
            timeouts_from({"BETHINK_BATCH_TIMEOUT_S": wrong})


def test_its_scale_is_asked_for_in_one_request(server, embedder, provider):
    """Questions and statements that have nothing to do with each other, once on a machine."""
    expected = pytest.approx(measure_baseline(HashEmbedder()), abs=1e-6)

    assert embedder.unrelated == expected
    asked = sum(map(len, unrelated_texts()))
    assert [len(body["input"]) for _, _, body in server.asked] == [asked]

    server.asked.clear()
    assert OPEN[provider]("hash", timeouts=PATIENT).unrelated == expected
    assert [body["input"] for _, _, body in server.asked] == [["dimensions"]]


def test_a_recall_goes_on_where_the_scale_cannot_be_had(server, provider):
    """The server answers questions and no more: judged as by the default embedder."""
    embedder = OPEN[provider]("hash", timeouts=PATIENT, breaker=CircuitBreaker(limit=99, pause_s=0))

    def only_questions(answering, vectors):
        if len(vectors) > 1:
            answering.give({}, 500)
        else:
            answering.give(answering.shape(vectors))

    server.fault = only_questions
    with Memory.open(":memory:", embedder=embedder) as memory:
        memory.remember("The deploy key lives in vault B")
        answer = memory.recall("who has the deploy key in a vault now?")
        assumed = unrelated_similarity(embedder)

    assert answer.hits
    assert answer.degraded == ()
    assert assumed == unrelated_similarity(object())
    (note,) = (step.note for step in answer.steps if step.name == "gate.confidence")
    assert note.startswith("confidence ")
