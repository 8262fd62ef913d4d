"""Who said it counts: as an answer to "what did I say?", and as a word of the question."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.retrieval.query_analysis import coverage
from bethink.retrieval.stages.adjust import LengthPenalty, SpeakerBoost
from stage_parts import cand, ctx


@pytest.mark.parametrize(
    ("question", "boosted"),
    [
        ("what did I plan for the garden?", "i001"),
        ("what did you suggest for the garden?", "i002"),
        ("what about the garden?", None),
        ("can you give me a summary of how my garden has changed?", None),
        ("fasse zusammen, was du mir zum Garten geraten hast: eine Zusammenfassung", None),
    ],
)
def test_a_question_in_the_first_person_is_about_the_user(
    question: str, boosted: str | None
) -> None:
    """ "I" means the user's turns, "you" the assistant's; else, and in a summary, nobody gains."""
    with Memory.open(":memory:", embedder="none") as memory:
        pool = (cand(1, speaker="user"), cand(2, speaker="assistant"))

        judged = SpeakerBoost()(pool, ctx(memory, question))

    assert {one.item.id for one in judged if one.score > 1.0} == ({boosted} - {None})


def test_the_speaker_of_a_turn_is_one_of_its_words() -> None:
    """A question that names the speaker is covered by a turn that does not repeat the name."""
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember_many(
            [{"text": "The pump is broken", "speaker": "Mara"}, {"text": "The pump is new"}]
        )
        context = ctx(memory, "Mara pump")
        text = "The pump is broken"

        assert coverage(cand(1, text=text, speaker="Mara"), context) == pytest.approx(1.0)
        assert coverage(cand(2, text=text), context) < 1.0


def test_a_summary_is_of_long_turns_as_well() -> None:
    """A long turn loses for any question but one for a summary."""
    with Memory.open(":memory:") as memory:
        asked, summed = (
            LengthPenalty().skip((), ctx(memory, text))
            for text in ("How is the garden?", "Summarize how the garden has changed")
        )

    assert not asked
    assert summed
