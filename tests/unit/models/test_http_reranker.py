"""A reranker behind a server, which may do anything."""

from __future__ import annotations

import socket

import pytest

from bethink.errors import BadSetting, ModelError, Refused
from bethink.models.embed.served import EmbedderTimeouts
from bethink.models.http import CircuitBreaker
from bethink.models.rerank.http import (
    RERANK_KEY_VARIABLE,
    RERANK_TIMEOUT_VARIABLE,
    HttpReranker,
    open_http,
    open_https,
)
from embedding_server import ENDLESS
from rerank_server import DIALECTS, FAULTS, reranking, score
from rows import each_row

KEY = "rk-never-to-be-seen"
ASKED = "where is the deploy key"
TEXTS = ["the deploy key is in vault b", "anna prefers tabs", "the key", "deploy on tuesday"]
# Waits between tries are left out, so that a fault costs what the fault itself takes.
PATIENT = EmbedderTimeouts(query_s=60, sleep=lambda _: None)
IMPATIENT = PATIENT._replace(query_s=0.5)


@pytest.fixture(scope="module")
def running():
    with reranking() as server:
        yield server


@pytest.fixture
def server(running, monkeypatch):
    running.behave()
    monkeypatch.setenv(RERANK_KEY_VARIABLE, KEY)
    return running


def opened(server, model="", patience=PATIENT):
    """One that is asked every time."""
    address = f"{server.url}/v1/rerank{model and '#' + model}"
    return HttpReranker(address, timeouts=patience, breaker=CircuitBreaker(limit=99, pause_s=0))


def expected(texts=TEXTS):
    return pytest.approx([score(ASKED, text) for text in texts])


@each_row("dialect", DIALECTS)
def test_every_shape_of_an_answer_is_understood(server, dialect):
    """Plain scores, rows best first, rows by themselves: each score goes to its text."""
    server.protocol = dialect

    assert opened(server)(ASKED, TEXTS) == expected()


def test_the_protocol_is_spoken(server):
    """The path, the key and the body are what such servers expect."""
    opened(server, "jina-reranker-v3")(ASKED, TEXTS)

    path, headers, asked = server.asked[-1]
    assert path == "/v1/rerank"
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert asked == {
        "model": "jina-reranker-v3",
        "query": ASKED,
        "documents": TEXTS,
        "top_n": len(TEXTS),
    }


def test_without_a_model_and_a_key_neither_is_sent(server, monkeypatch):
    """A server of one's own needs no more than question and texts."""
    monkeypatch.delenv(RERANK_KEY_VARIABLE)

    opened(server)(ASKED, TEXTS)

    _, headers, asked = server.asked[-1]
    assert "Authorization" not in headers
    assert "model" not in asked


def test_a_key_that_is_none_is_not_shown(server, monkeypatch):
    """What would break the header is refused, not printed."""
    monkeypatch.setenv(RERANK_KEY_VARIABLE, f"{KEY}\nX-Other: 1")

    with pytest.raises(ModelError, match=RERANK_KEY_VARIABLE) as caught:
        opened(server)(ASKED, TEXTS)

    assert KEY not in caught.value.message


def test_a_server_that_says_texts_is_understood_after_one_refusal(server):
    """It is asked in its own words from then on."""
    server.field, server.protocol = "texts", "list"
    reader = opened(server)

    assert reader(ASKED, TEXTS) == expected()
    assert reader(ASKED, TEXTS[:2]) == expected(TEXTS[:2])

    assert ["texts" in asked for _, _, asked in server.asked] == [False, True, True]
    assert server.asked[-1][2] == {"query": ASKED, "texts": TEXTS[:2], "truncate": True}


def test_too_many_texts_go_in_halves(server):
    """A server that takes two at once is asked as often as it needs."""
    server.most = 2
    texts = [f"{text} {number}" for number in range(3) for text in TEXTS]

    assert opened(server)(ASKED, texts) == expected(texts)


def test_a_text_that_is_too_long_is_cut(server):
    """First to what no model reads beyond, then to what every model has room for."""
    server.max_text = 2000
    long = "deploy key " + "x " * 8000

    scores = opened(server)(ASKED, [long, *TEXTS])

    assert scores == expected([long, *TEXTS])
    assert max(len(asked["documents"][0]) for _, _, asked in server.asked) <= 8000


def test_equal_texts_are_sent_once(server):
    """They get one score; empty ones are not sent and get none."""
    texts = [TEXTS[0], "", TEXTS[1], TEXTS[0], " \n"]

    scores = opened(server)(ASKED, texts)

    assert scores == pytest.approx([score(ASKED, TEXTS[0]), 0, 0.1, score(ASKED, TEXTS[0]), 0])
    assert server.asked[-1][2]["documents"] == TEXTS[:2]


def test_nothing_to_read_asks_nobody(server):
    """No texts, empty texts and an empty question cost no request."""
    reader = opened(server)

    assert reader(ASKED, []) == []
    assert reader(ASKED, ["", " "]) == [0.0, 0.0]
    assert reader("", TEXTS) == [0.0] * 4
    assert not server.asked


def test_a_text_that_is_not_mentioned_gets_nothing(server):
    """A server may name only the best."""
    server.fault = lambda asked, _: asked.give({"results": [{"index": 2, "relevance_score": 0.7}]})

    assert opened(server)(ASKED, TEXTS) == [0.0, 0.0, 0.7, 0.0]


@each_row(
    ("given", "read"),
    [
        ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0]),
        ([-0.001, 0.5, 1.001], [0.0, 0.5, 1.0]),
        ([-2.0, 0.5, 1.0], [0.1192, 0.6225, 0.7311]),
        ([0, 1, 0], [0.0, 1.0, 0.0]),
        ([-1e300, 0.0, 1e300], [0.0, 0.5, 1.0]),
        ([0.2, 0.3, 1.002], [0.5498, 0.5744, 0.7315]),
    ],
)
def test_scores_are_shares_or_logits(server, given, read):
    """Where one lies outside 0 to 1, all are logits: the order is never mixed up."""
    server.fault = lambda asked, _: asked.give({"scores": given})

    assert opened(server)(ASKED, TEXTS[:3]) == pytest.approx(read, abs=1e-4)


@each_row("fault", FAULTS)
def test_every_fault_is_a_sentence(server, fault):
    """ModelError, an endless one's too, without a word of the server's or of the key."""
    server.fault = FAULTS[fault]
    reader = opened(server, patience=IMPATIENT if fault in ENDLESS else PATIENT)

    with pytest.raises(ModelError) as caught:
        reader(ASKED, TEXTS)

    assert caught.value.message
    for said in (caught.value.message, caught.value.remedy, repr(caught.value)):
        assert KEY not in said
        assert "previous instructions" not in said
        assert "\n" not in said

    server.fault = None
    assert reader(ASKED, TEXTS) == expected()


def test_a_refusal_that_stays_is_not_asked_for_long(server):
    """A server that refuses every question is asked a handful of times, not once a text."""
    server.fault = lambda asked, _: asked.give({}, 400)

    with pytest.raises(ModelError, match="status 400"):
        opened(server)(ASKED, [f"text {number}" for number in range(50)])

    assert len(server.asked) < 10


def test_a_server_that_does_not_answer_is_left_alone(server):
    """After three failures no time is lost any more, until half a minute has passed."""
    now = [0.0]
    reader = HttpReranker(
        f"{server.url}/rerank", timeouts=PATIENT, breaker=CircuitBreaker(clock=lambda: now[0])
    )
    server.fault = FAULTS["401"]
    for _ in range(3):
        with pytest.raises(ModelError):
            reader(ASKED, TEXTS)
        now[0] += 1.0
    server.fault = None

    with pytest.raises(ModelError, match="refused the credentials") as caught:
        reader(ASKED, TEXTS)
    assert caught.value.remedy == f"check {RERANK_KEY_VARIABLE}"
    assert len(server.asked) == 3

    now[0] += 30.0
    assert reader(ASKED, TEXTS) == expected()


def test_nobody_listening_is_said():
    """A refused connection names the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(ModelError, match=f"127.0.0.1:{port}/rerank cannot be reached"):
        open_http(f"//127.0.0.1:{port}")(ASKED, TEXTS)


def test_an_address_is_read_as_it_is_written():
    """With one scheme or two, with and without a path; the model stands behind a hash."""
    assert str(open_http("//host:8080").url) == "http://host:8080/rerank"
    assert str(open_http("//host/v2/rerank/#m").url) == "http://host/v2/rerank"
    assert str(open_http("https://host/v2/rerank#m").url) == "https://host/v2/rerank"
    assert str(open_https("//host").url) == "https://host/rerank"


@each_row("address", ["host", "ftp://host", "//", "//u:p@host", "//host/?key=1"])
def test_what_is_no_address_is_refused(address):
    """Nor is one with a name, a password or a query in it."""
    with pytest.raises(BadSetting, match="the reranker's address"):
        open_http(address)


def test_patience_can_be_changed(monkeypatch):
    """In seconds; what is none is refused by name."""
    monkeypatch.setenv(RERANK_TIMEOUT_VARIABLE, "0.25")
    assert open_http("//host")._timeouts.query_s == 0.25

    monkeypatch.setenv(RERANK_TIMEOUT_VARIABLE, "soon")
    with pytest.raises(BadSetting, match=RERANK_TIMEOUT_VARIABLE):
        open_http("//host")


def test_five_seconds_are_the_limit(monkeypatch):
    """Unless somebody says otherwise."""
    monkeypatch.delenv(RERANK_TIMEOUT_VARIABLE, raising=False)

    assert open_http("//host")._timeouts.query_s == 5.0


def test_half_a_character_is_refused(server):
    """A lone surrogate never ends in a traceback from inside."""
    for ask in (("abc\ud800", TEXTS), (ASKED, ["abc\ud800"])):
        with pytest.raises(Refused):
            opened(server)(*ask)
