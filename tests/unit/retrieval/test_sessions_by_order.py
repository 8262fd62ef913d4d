"""Questions that count sessions: "our second session", "two sessions ago"."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from bethink import Memory
from bethink.lang.dates.sessions import find_sessions
from rows import each_row

TOPICS = ("tomatoes and basil", "a leaking gutter", "the violin exam", "a ferry to Crete", "tax")
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@each_row(
    ("text", "place"),
    [
        ("what did we discuss in our second session?", 1),
        ("two sessions ago we spoke of what?", 3),
        ("what did I say last session?", 4),
        ("in the 4th conversation", 3),
        ("what happened in session 3?", 2),
        ("the session before last", 3),
        ("the second to last session", 3),
        ("our first chat", 0),
        ("was haben wir in unserer zweiten Sitzung besprochen?", 1),
        ("vor zwei Sitzungen", 3),
        ("in der letzten Sitzung", 4),
        ("de quoi avons-nous parlé dans la deuxième séance ?", 1),
        ("il y a deux séances", 3),
        ("la dernière séance", 4),
        ("¿de qué hablamos en la segunda sesión?", 1),
        ("hace dos sesiones", 3),
        ("la última sesión", 4),
        ("我们第二次会话讨论了什么？", 1),
        ("上次对话说了什么", 4),
        ("两次会话之前", 3),
    ],
)
def test_sessions_are_counted(text: str, place: int) -> None:
    """From the first on, or back from the last, in five languages."""
    found = find_sessions(text)

    assert found is not None
    assert list(range(5))[found.order] == [place]
    assert found.said in text


def test_several_sessions_are_counted() -> None:
    """The last so many together."""
    found = find_sessions("what came up in the last two sessions?")

    assert found is not None
    assert list(range(5))[found.order] == [3, 4]


@each_row(
    "text",
    ["how long is a session?", "which session tokens expire?", "a chat about tea",
     "the blast session", "a ballast chat", "Santiago 2 sessions", "session 0", "0 sessions ago",
     "the last 0 sessions", "第0次会话", "session 30 minutes", "the chat 12:30 was long",
     "une séance 30 minutes", "session 99.5%", "session " + "9" * 5000,
     "9" * 5000 + " sessions ago", "9" * 5000 + "次会话之前", "第" + "9" * 5000 + "次会话"],
)  # fmt: skip
def test_a_session_that_is_not_counted_is_a_word(text: str) -> None:
    """Nothing is read into the word alone."""
    assert find_sessions(text) is None


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as opened:
        for number, topic in enumerate(TOPICS):
            for turn in range(4):
                opened.remember(
                    f"Turn {turn}: I would like to hear about {topic}",
                    level="raw", speaker="user", session=f"s{number}", seq=turn,
                    occurred_at=NOW - timedelta(days=50 - 7 * number, minutes=-turn),
                )  # fmt: skip
        yield opened


@each_row(
    ("question", "topic"),
    [
        ("what did we talk about in our second session?", 1),
        ("what did we talk about two sessions ago?", 3),
        ("what did we discuss in the last session?", 4),
        ("was haben wir in der dritten Sitzung besprochen?", 2),
    ],
)
def test_the_session_answers(memory: Memory, question: str, topic: int) -> None:
    """What was said in that session comes first, though the question names no subject."""
    hits = memory.recall(question, now=NOW).hits

    assert {hit.item.session for hit in hits[:4]} == {f"s{topic}"}


def test_a_session_that_there_is_not_has_no_answer(memory: Memory) -> None:
    """A question for it alone says so; a name such as "session 401" is searched for."""
    for question in ("our ninth session", "what did we talk about twelve sessions ago?"):
        answer = memory.recall(question, now=NOW)
        assert (answer.status, answer.hits) == ("nothing_matched", ())
        assert "session" in answer.reason
    note = memory.remember("Session 401 is an error of the proxy")
    assert memory.recall("session 401", now=NOW).hits[0].item.id == note.id


@each_row(("own", "topic"), [("s4", 3), ("s3", 4), ("s9", 4), (None, 4)])
def test_the_last_session_is_not_the_own_one(memory: Memory, own: str | None, topic: int) -> None:
    """Who asks within a session means another one."""
    asked = "what did we discuss in our last session?"
    hits = memory.recall(asked, now=NOW, own_session=own).hits

    assert {hit.item.session for hit in hits[:4]} == {f"s{topic}"}


def test_a_session_that_there_is_not_names_no_time(memory: Memory) -> None:
    """The question is searched by its other words."""
    answer = memory.recall("what about the violin exam in our ninth session?", now=NOW)

    assert "violin" in answer.hits[0].item.text
