"""When the memory says that it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.model import Candidate, Item
from bethink.models.embed.hashing import HashEmbedder
from bethink.models.embed.words import WordsEmbedder
from bethink.retrieval.query_analysis import is_advice_request
from bethink.retrieval.stages.gate import Abstain
from bethink.testing import FixedClock
from corpus import NOW

HOTELS = (
    "I love hotels with a rooftop pool and a view of the water",
    "For the trip to the coast I want a hotel with a great view",
    "The deploy key lives in vault B",
    "Maria likes green tea",
)


PARTS = re.compile(
    r"confidence (?P<sum>\S+) \(similarity (?P<alike>\S+), shared words (?P<shared>\S+), "
    r"lead (?P<ahead>\S+), minus (?P<doubt>\S+) for unknown words\)"
)


class FarFromNought(WordsEmbedder):
    """As the static one, but saying that strangers get 0.4 from it already."""

    unrelated = 0.4


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as opened:
        opened.remember_many(HOTELS)
        yield opened


def confidence(memory: Memory, question: str) -> float:
    """What the gate said about its own sureness."""
    steps = memory.recall(question).steps
    remarks = " ".join(step.note for step in steps if step.name == "gate.abstain")
    found = re.search(r"confidence (-?\d+\.\d+)", remarks)
    assert found is not None, remarks
    return float(found.group(1))


def parts(memory: Memory, question: str) -> dict[str, float]:
    """What the gate said its sureness is made of."""
    remarks = " ".join(
        step.note for step in memory.recall(question).steps if step.name == "gate.abstain"
    )
    found = PARTS.search(remarks)
    assert found is not None, remarks
    return {name: float(value) for name, value in found.groupdict().items()}


def candidate(at: int, score: float) -> Candidate:
    return Candidate(Item(f"i{at:02}", "t", NOW, "test"), score)


def test_a_strange_name_silences_a_question_about_what_was(memory: Memory) -> None:
    """Nobody here has heard of Miami, so nothing is known about a hotel there."""
    assert memory.recall("Which hotel with a pool did I take in Miami?").hits == ()


def test_a_strange_name_beside_a_known_one_does_not_silence_what_is_sure(memory: Memory) -> None:
    """Maria is known and likes her tea whatever else the question names."""
    hits = memory.recall("Which green tea does Maria like in Japan?").hits

    assert hits[0].item.text == "Maria likes green tea"


def test_a_word_that_begins_a_sentence_is_no_name(memory: Memory) -> None:
    """Of a prompt of several sentences, as of a question, each begins with a capital."""
    prompt = "Hello! Refactor the parser, please.\n- Rename it\nWhich green tea does Maria like?"
    steps = memory.recall(prompt).steps

    assert not any("never heard" in step.note for step in steps)


@pytest.mark.parametrize("month", ["August", "Aug", "Sept", "Dec"])
def test_a_month_is_no_strange_name_however_it_is_written(memory: Memory, month: str) -> None:
    """Nobody need have spoken of it: the calendar is known."""
    steps = memory.recall(f"Which tea did Maria drink on {month} 15th?").steps

    assert not any("never heard" in step.note for step in steps)


def test_a_word_that_nobody_here_knows_says_more_in_a_larger_memory() -> None:
    """Of the few words of a young memory most of a question is unknown: no reason to doubt."""
    doubt = {}
    for size in (1, 60):
        with Memory.open(":memory:") as opened:
            opened.remember_many(
                f"The deploy key number {at} is in vault {at}" for at in range(size)
            )
            doubt[size] = parts(opened, "who moved the deploy key to the attic?")["doubt"]

    assert 0 < 2 * doubt[1] < doubt[60]


def test_a_time_is_not_strange(memory: Memory) -> None:
    """It is understood, though no memory says "yesterday"; "hastily" none says either."""
    then = parts(memory, "what did Maria drink yesterday?")["doubt"]
    how = parts(memory, "what did Maria drink hastily?")["doubt"]

    assert 0 < then < how


def test_a_long_prompt_is_not_silenced_for_its_words(memory: Memory) -> None:
    """However many of them nobody here knows, together they count for a few."""
    prompt = (
        "who has the deploy key in a vault? Refactor parser, tokenizer, scheduler, dashboard, "
        "webhook, invoice, migration, telemetry and pagination meanwhile"
    )

    assert parts(memory, prompt)["doubt"] == Abstain().most_strange


def test_the_best_is_told_from_all_that_was_considered() -> None:
    """Ten equally good memories are ahead of thirty others; ten alone are ahead of nobody."""
    crowd = tuple(candidate(at, 1.0 if at < 10 else 0.2) for at in range(40))

    assert Abstain()._mean_lead(crowd) == pytest.approx(0.6)
    assert Abstain()._mean_lead(crowd[:10]) == 0.0
    assert Abstain(usual_lead=0.5)._mean_lead(crowd[:1]) == pytest.approx(0.45)


def test_the_parts_of_the_confidence_add_up_to_it(memory: Memory) -> None:
    """Who reads the trace sees what spoke for an answer and what against."""
    told = parts(memory, "Which tea did Maria and Ben drink at the station?")

    expected = told["alike"] + told["shared"] + told["ahead"] - told["doubt"]
    assert told["sum"] == pytest.approx(expected, abs=0.03)


def test_a_strange_name_does_not_silence_a_wish_for_advice(memory: Memory) -> None:
    """What is known of somebody's taste helps, wherever the journey goes."""
    hits = memory.recall("Can you suggest a hotel with a view for my trip to Miami?").hits

    assert {hit.item.text for hit in hits} >= set(HOTELS[:2])


def test_a_wish_for_advice_is_no_stranger_to_words_alone() -> None:
    """Without an embedder, too, it may name a place that nobody has spoken of yet."""
    with Memory.open(":memory:", embedder="none") as opened:
        opened.remember_many(HOTELS)

        subject = "a great view of the coast for the trip to Miami"
        wish = opened.recall(f"Can you suggest a hotel with {subject}?")
        past = opened.recall(f"Which hotel did I want with {subject}?")

    assert wish.hits
    assert past.hits == ()


@pytest.mark.parametrize(
    ("question", "is_wish"),
    [
        ("Can you recommend some books on Rust?", True),
        ("could you please suggest a restaurant", True),
        ("Recommend a film for tonight", True),
        ("Any tips for my stay in Oslo?", True),
        ("What should I cook for Anna?", True),
        ("What do you recommend for the flight?", True),
        ("What did Anna recommend?", False),
        ("Which film did Ben suggest to Carla?", False),
        ("When should the release be out?", False),
        ("Who gave a suggestion for the name?", False),
    ],
)
def test_a_wish_for_advice_is_told_from_a_question_about_one(question: str, is_wish: bool) -> None:
    """Who asks for a suggestion is not asking who made one."""
    assert is_advice_request(question) is is_wish


def test_cosines_are_judged_on_the_scale_of_their_model() -> None:
    """The same cosines say less where strangers are given much of them already."""
    question = "where is the deploy key?"
    sure = {}
    for embedder in (WordsEmbedder(), FarFromNought()):
        with Memory.open(":memory:", embedder=embedder) as opened:
            opened.remember_many(HOTELS)
            sure[type(embedder)] = confidence(opened, question)

    assert sure[FarFromNought] < sure[WordsEmbedder] - 0.2


def test_an_embedder_without_sentences_is_not_at_a_disadvantage() -> None:
    """A memory that is found by its whole alone counts as one sentence."""
    with Memory.open(":memory:", embedder=HashEmbedder()) as opened:
        opened.remember_many(HOTELS)

        assert opened.recall("who has the deploy key in a vault now?").hits


def test_a_question_for_a_time_alone_is_answered_from_that_time() -> None:
    """Nothing in it but the time tells memories apart; with nothing of that time, silence."""
    with Memory.open(":memory:", clock=FixedClock(NOW)) as memory:
        then = memory.remember("Ana moved the billing parser", occurred_at=NOW - timedelta(days=7))
        memory.remember("Ben painted the kitchen green", occurred_at=NOW - timedelta(days=60))

        found = memory.recall("what happened last week?")
        somebody = memory.recall("what did Ana do last week?")
        nothing = memory.recall("what happened three weeks ago?")

    assert [hit.item.id for hit in found.hits] == [then.id]
    assert somebody.hits[0].item.id == then.id
    assert nothing.status == "nothing_matched"
    assert nothing.reason == "no stored memory is of three weeks ago"


@pytest.mark.parametrize(
    ("stored", "question", "known"),
    [
        ("My bicycle is turquoise", "What is my bicycle like?", True),
        ("My bicycle is turquoise", "tell me about my bicycle", True),
        ("My bicycle is turquoise", "What colour is my bicycle?", True),
        ("My bicycle is turquoise", "which colour is my bike?", True),
        ("My bicycle is turquoise", "how do I tune a violin?", False),
        ("My bicycle is turquoise", "What is my dog's name?", False),
        ("Tests run with make test", "How do I run the tests?", True),
        ("Tests run with make test", "Where is the deploy key?", False),
        ("We chose PostgreSQL for billing", "what did we choose for billing?", True),
        ("We chose PostgreSQL for billing", "when is the next holiday?", False),
    ],
)
def test_a_memory_of_one_knows_it_and_nothing_else(stored: str, question: str, known: bool) -> None:
    """It has nothing to stand out from, which speaks neither for it nor against it."""
    with Memory.open(":memory:") as memory:
        memory.remember(stored)
        assert bool(memory.recall(question).hits) is known
