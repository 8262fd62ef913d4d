"""A short reply in a chat is searched with the turns before it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bethink import Memory, Recall, Refused
from corpus import NOTES
from rows import each_row

ROOF = "The roof above the nursery leaked in January; Koster repaired it for 640 euros"
LESSON = "Noor's cello lesson moved to Fridays at 16:00"
TALK = ["The roof above the nursery leaked in January.", "Koster repaired it."]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as opened:
        opened.remember_many([*NOTES, ROOF, LESSON])
        yield opened


@each_row("reply", ["what did it cost?", "and how much?", "and the sum?", "was that all?"])
def test_a_short_reply_is_searched_with_the_turns_before(memory: Memory, reply: str) -> None:
    """Its own words name no subject; those of the turns do."""
    answer = memory.recall(reply, turns_before=TALK)

    assert answer.hits[0].item.text == ROOF
    assert answer.query.text == "\n".join([*TALK, reply])


def test_turns_in_a_script_without_spaces(memory: Memory) -> None:
    """There, too, a short reply is told from a question with a subject of its own."""
    memory.remember("育儿室的屋顶一月份漏水，科斯特修理花了640欧元")
    turns = ["育儿室的屋顶漏水了。"]

    assert "640" in memory.recall("多少钱？", turns_before=turns).hits[0].item.text
    asked = "诺尔的大提琴课改到星期几了？"
    assert memory.recall(asked, turns_before=turns).query.text == asked


@each_row("question", ["when is the cello lesson of Noor?", "cello lesson Noor"])
def test_a_question_with_a_subject_is_searched_alone(memory: Memory, question: str) -> None:
    """Whatever was spoken of before: nothing of its answer changes."""
    alone, after = memory.recall(question), memory.recall(question, turns_before=TALK)

    assert after.query.text == question
    assert [hit.item.text for hit in after.hits] == [hit.item.text for hit in alone.hits]
    assert after.hits[0].item.text == LESSON


def test_pages_go_on(memory: Memory) -> None:
    """The cursor of an answer with turns belongs to the same reply with the same turns."""

    def page(cursor: str | None = None) -> Recall:
        return memory.recall(
            "what did it cost?", turns_before=TALK, k=1, min_confidence=0, min_relevance=0,
            cursor=cursor,
        )  # fmt: skip

    first = page()
    second = page(first.page.cursor)

    assert first.page.cursor
    assert first.hits[0].item.id != second.hits[0].item.id


def test_turns_of_any_length_are_taken(memory: Memory) -> None:
    """Of long ones the end; one text is one turn; what is no text is refused."""
    told = "We talked about the weather. " * 2000 + TALK[0]

    assert memory.recall("what did it cost?", turns_before=told).hits[0].item.text == ROOF
    with pytest.raises(Refused, match="must be a text or a list of texts"):
        memory.recall("what did it cost?", turns_before=[3])  # type: ignore[list-item]


def test_turns_that_are_read_once_are_asked_with_each_time(memory: Memory) -> None:
    """An iterator gives its turns to every profile, and to what explains an answer."""
    asked = "what did it cost?"

    answers = memory.compare(asked, ["default", "remind"], turns_before=iter(TALK))
    other = memory.remember("Bread is baked with rye")
    missing = memory.why_not(other.id, asked, turns_before=iter(TALK))
    roof = answers["default"].hits[0].item

    assert {answer.query.text for answer in answers.values()} == {"\n".join([*TALK, asked])}
    assert missing == memory.why_not(other.id, asked, turns_before=TALK)
    assert memory.explain(asked, other.id, turns_before=iter(TALK)) == (
        f"{missing.stage}: {missing.reason}"
    )
    assert "channel." in memory.explain(asked, roof.id, turns_before=iter(TALK))
