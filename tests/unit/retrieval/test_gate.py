"""How sure an answer is, and when nothing is returned."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.model import Candidate, Draft, Filters, Item
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import Scope
from bethink.retrieval.profile import Profile, load_profile, profile_names
from bethink.retrieval.retrievers.lexical import Lexical
from bethink.retrieval.stages.fusion import WeightedSum
from bethink.retrieval.stages.gate import Confidence, Features, Threshold
from bethink.store.sql.search import searches
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row
from verdicts import updates_nothing

NOTES = (
    "The primary database runs in eu-west-1",
    "The deploy key lives in vault B",
    "Muhammad reviews every migration",
    "Maria likes green tea",
    "Standup is at ten on weekdays",
    "Invoices are sent on the first of each month",
)


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as opened:
        opened.remember_many(NOTES)
        yield opened


def sure(memory: Memory, question: str, **options: int) -> float:
    return memory.recall(question, **options).confidence


def candidate(at: int, score: float, trust: int = 3) -> Candidate:
    return Candidate(Item(f"i{at:02}", "t", NOW, "test", trust=trust), score)


def test_a_known_fact_is_found_and_an_alien_question_is_not_answered(memory: Memory) -> None:
    """What is stored is told as found; where even the best is improbable nothing is returned."""
    known = memory.recall("Which tea does Maria like?")
    alien = memory.recall("how do I bake sourdough bread?")

    assert (known.status, known.hits[0].item.text) == ("found", "Maria likes green tea")
    assert (alien.status, alien.hits) == ("nothing_matched", ())
    assert alien.nearest_miss is not None
    assert alien.nearest_miss.relevance is not None
    assert alien.nearest_miss.relevance <= alien.confidence < known.confidence


@pytest.mark.parametrize(
    "question",
    ["Which AWS region hosts the database?", "Where does the primary DATABASE run?"],
)
def test_capital_letters_alone_change_nothing(memory: Memory, question: str) -> None:
    """A question in lower case is as sure as one with abbreviations in capitals."""
    assert sure(memory, question) == pytest.approx(sure(memory, question.lower()), abs=1e-6)


def test_the_confidence_does_not_depend_on_k(memory: Memory) -> None:
    """More or fewer results make no answer surer, and none unsure."""
    question = "who looks at migrations?"
    values = {sure(memory, question, k=k) for k in (1, 3, 10, 50, 120)}

    assert len(values) == 1


def test_a_long_question_is_not_silenced(memory: Memory) -> None:
    """Forty words more leave an answer that was found at least unsure."""
    question = "Where does the deploy key live? " + "Tell me please because somebody asked. " * 7

    answer = memory.recall(question)

    assert answer.hits[0].item.text == "The deploy key lives in vault B"


def test_a_misspelt_name_costs_less_than_an_unknown_one(memory: Memory) -> None:
    """A name lowers the confidence by how far it is from a known one."""
    known = sure(memory, "What does Muhammad review?")
    misspelt = sure(memory, "What does Muhamad review?")
    unknown = sure(memory, "What does Brunhilde review?")

    assert unknown < misspelt <= known


def test_an_untrusted_memory_is_never_the_only_ground(memory: Memory) -> None:
    """A memory of trust 0 that repeats the question does not make the answer found."""
    with Memory.open(":memory:") as opened:
        opened.remember("Where is the deploy key? The deploy key is in my pocket", trust=0)
        answer = opened.recall("Where is the deploy key?")

    assert answer.status == "unsure"
    assert any(reason.feature == "trust" for reason in answer.assessed)


def test_an_untrusted_answer_is_unsure_whatever_else_is_stored() -> None:
    """Trusted memories about something else do not silence it, nor does it make them found."""
    with Memory.open(":memory:") as opened:
        opened.remember_many([*NOTES, "The deploy runs every Tuesday"])
        planted = opened.remember("The wifi password hint is the name of the cat", trust=0)
        answer = opened.recall("what is the wifi password hint?")

    assert answer.status == "unsure"
    assert answer.hits[0].item.id == planted.id


class _Calls:
    """A part of a profile that counts its calls."""

    def __init__(self, part: Any) -> None:
        self.part, self.name, self.weight, self.count = part, part.name, 1.0, 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.part(*args)


@each_row(
    ("planted", "searches", "passes"),
    [
        (None, 1, 1),
        ("Tungsten melts at 3422 degrees", 2, 1),
        ("The deploy key is in my pocket", 3, 2),
    ],
)
def test_an_untrusted_memory_costs_a_second_pass_only_if_it_matches(
    planted: str | None, searches: int, passes: int
) -> None:
    """Others are looked for among the untrusted alone, and the steps after that run once."""
    search, stage = _Calls(Lexical()), _Calls(Threshold())
    profile = Profile("test", (search,), WeightedSum(), adjust=(stage,))
    with Memory.open(":memory:", embedder="none") as opened:
        opened.remember("The deploy key is in the vault", trust=2)
        if planted:
            opened.remember(planted, trust=0)
        answer = opened.recall("where is the deploy key?", profile=profile)

    assert (search.count, stage.count) == (searches, passes)
    assert (answer.status, any(hit.item.trust == 0 for hit in answer.hits)) == (
        "found",
        passes == 2,
    )


@each_row("feature", Features._fields)
def test_each_feature_counts_in_one_direction(feature: str) -> None:
    """Similarity, shared words and lead never lower the confidence; the rest never raises it."""
    weight = getattr(Confidence(), feature)

    assert weight <= 0 if feature in ("memories", "turn") else weight >= 0


@each_row(
    ("profile", "question"),
    [
        ("default", "Which tea does Maria like?"),
        ("remind", "Which tea does Maria like?"),
        ("siftcoder", "Which tea does Maria like?"),
        ("default", "what happened today?"),
        ("default", "what is the melting point of tungsten?"),
    ],
)
def test_the_reasons_add_up_to_the_confidence(memory: Memory, profile: str, question: str) -> None:
    """All contributions, the constant included, are the log-odds of what is told."""
    answer = memory.recall(question, profile=profile)

    odds = sum(reason.contribution for reason in answer.assessed)
    assert answer.assessed
    assert answer.confidence == pytest.approx(1 / (1 + math.exp(-odds)))


@each_row("speaker, share", [("Maria", 1.0), ("user", 0.5), ("assistant", 0.5), (None, 0.5)])
def test_a_turn_to_an_assistant_is_half_as_near_to_any_question(speaker, share) -> None:
    """What people say to one another resembles every question; a standalone note does not."""
    with Memory.open(":memory:") as talk:
        talk.remember("I take the green tea of Uji", speaker=speaker, session="s1")
        reasons = {one.feature: one.value for one in talk.recall("which green tea?").assessed}

    assert reasons["turn"] == share


def test_a_chance_resemblance_of_a_word_counts_as_little_as_it_holds() -> None:
    """Of misspelt words what they hold of the question, not their share of the best."""
    question = "who drinks hot beverages in the house upstairs?"
    with Memory.open(":memory:") as notes:
        notes.remember_many([*NOTES, "The greenhouse is heated with gas"])
        answer = notes.recall(question, min_confidence=0)
    (held,) = (one.value for hit in answer.hits for one in hit.evidence if one.by == "match.pieces")
    most = next(one.pieces for one in load_profile("default").expand if one.name == "match")

    assert 0 < held < 0.1 * most


def test_the_first_hit_is_as_relevant_as_the_answer_is_sure() -> None:
    """One number: no hit stands beside an answer that says another."""
    with Memory.open(":memory:") as memory:
        memory.remember_many(NOTES)
        answer = memory.recall("who looks at migrations?")

    assert answer.hits[0].relevance == pytest.approx(answer.confidence)


def test_relevance_falls_with_the_score() -> None:
    """No hit is more relevant than one above it, nor than the answer is sure."""
    pool = tuple(candidate(at, 1.0 - at / 20) for at in range(15))
    judged = [cand.relevance or 0.0 for cand in Confidence().with_relevance(pool, 0.8)]

    assert judged == sorted(judged, reverse=True)
    assert 0 < judged[-1] < judged[0] <= 0.8


def test_the_caller_decides_how_sure_an_answer_must_be(memory: Memory) -> None:
    """With 0 even the least related is returned, with 1 nothing is."""
    alien = "what is the melting point of tungsten?"

    assert memory.recall(alien, min_confidence=0).hits
    assert memory.recall("Which tea does Maria like?", min_confidence=1).hits == ()
    for wrong in (-0.1, 1.1, True, "much"):
        with pytest.raises(Refused, match="min_confidence"):
            memory.recall(alien, min_confidence=wrong)


def test_similarities_are_judged_on_the_scale_of_their_embedder() -> None:
    """The same cosines say less where unrelated texts have high ones."""

    class Elevated(EncoderEmbedder):
        unrelated = 0.4

    told = {}
    for embedder in (EncoderEmbedder(), Elevated()):
        with Memory.open(":memory:", embedder=embedder) as opened:
            opened.remember_many(NOTES)
            told[type(embedder)] = sure(opened, "where is the deploy key?")

    assert told[Elevated] < told[EncoderEmbedder]


@pytest.mark.parametrize("embedder", ["none", HashEmbedder()])
def test_words_are_enough_where_there_is_no_meaning(embedder: object) -> None:
    """Without an embedder, or with one that has no tokens, shared words decide."""
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember_many(NOTES)

        known = opened.recall("where does the deploy key live?")
        alien = opened.recall("how tall is the tower of Pisa?")

    assert known.hits[0].item.text == "The deploy key lives in vault B"
    assert alien.status != "found"
    assert alien.confidence < known.confidence


@pytest.mark.parametrize(("embedder", "status"), [("encoder", "found"), ("hash", "found")])
def test_a_memory_without_a_vector_is_judged_by_its_words(embedder: str, status: str) -> None:
    """Among others that have one: what is not known of it is expected, and told as that."""
    late = "The turbine audit of the northern hall was postponed"
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember_many(NOTES)
        Memory(opened.store, embedder=None).remember(late)

        found = opened.recall("when is the turbine audit of the northern hall?")
        other = opened.recall("where does the deploy key live?")
        alien = opened.recall("how tall is the tower of Pisa?")

    assert (found.status, found.hits[0].item.text) == (status, late)
    assert any("as its words let expect" in one.why for one in found.hits[0].evidence)
    assert any("as its words let expect" in one.why for one in found.assessed)
    assert other.hits[0].item.text == "The deploy key lives in vault B"
    assert not any("let expect" in one.why for one in other.hits[0].evidence)
    assert alien.status != "found"


def test_a_question_for_a_time_alone_is_answered_from_that_time() -> None:
    """Nothing in it but the time tells memories apart; with nothing of that time, silence."""
    with Memory.open(":memory:", clock=FixedClock(NOW)) as memory:
        then = memory.remember("Ana moved the billing parser", occurred_at=NOW - timedelta(days=7))
        memory.remember("Ben painted the kitchen green", occurred_at=NOW - timedelta(days=60))

        found = memory.recall("what happened last week?")
        somebody = memory.recall("what did Ana do last week?")
        nothing = memory.recall("what happened three weeks ago?")

    assert [hit.item.id for hit in found.hits] == [then.id]
    assert found.status == "found"
    assert somebody.hits[0].item.id == then.id
    assert nothing.status == "nothing_matched"
    assert nothing.reason == "no stored memory is of three weeks ago"


@each_row(
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
        answer = memory.recall(question)

    assert bool(answer.hits) if known else answer.status != "found"


def test_a_threshold_of_a_profile_moves_the_outcome(memory: Memory) -> None:
    """What counts as found is data of the profile."""
    profile = memory.profile("default")
    gates = tuple(
        replace(stage, found=1.0) if isinstance(stage, Confidence) else stage
        for stage in profile.gate
    )

    answer = memory.recall("Which tea does Maria like?", profile=replace(profile, gate=gates))

    assert answer.status == "unsure"


@each_row("profile", ["abmind", "linksee", "siftcoder", "memind-simple"])
def test_no_profile_tells_untrusted_memories_alone_as_found(profile: str) -> None:
    """A profile without a confidence of its own returns them, and says that it is unsure."""
    with Memory.open(":memory:") as opened:
        opened.remember("Where is the deploy key? It is in my pocket", trust=0)
        answer = opened.recall("Where is the deploy key?", profile=profile)

    assert answer.status == ("unsure" if answer.hits else "nothing_matched")


def test_a_found_answer_ends_where_relevance_falls_off(memory: Memory) -> None:
    """It has what answers and no padding; with 0 the caller gets the rest, in the same order."""
    answer = memory.recall("Which tea does Maria like?")
    rest = memory.recall("Which tea does Maria like?", min_relevance=0)

    assert answer.status == "found"
    assert [hit.item.text for hit in answer.hits] == ["Maria likes green tea"]
    assert not answer.page.has_more
    assert len(rest.hits) > len(answer.hits)
    assert rest.hits[0].item.id == answer.hits[0].item.id


def test_an_answer_goes_on_past_ten_while_memories_are_relevant() -> None:
    """As many as match alike, up to the caller's number or the budget of tokens."""
    with Memory.open(":memory:") as opened:
        opened.remember_many([f"Maria tasted green tea number {n} in Kyoto" for n in range(30)])
        many = opened.recall("Which green tea did Maria taste in Kyoto?")
        few = opened.recall("Which green tea did Maria taste in Kyoto?", k=5)
        short = opened.recall("Which green tea did Maria taste in Kyoto?", max_tokens=100)

    assert len(many.hits) > 20
    assert len(few.hits) == 5
    assert 1 < len(short.hits) < len(many.hits)


@each_row("profile", sorted(profile_names()))
def test_no_hit_is_below_the_relevance_that_the_caller_needs(memory: Memory, profile: str) -> None:
    """In every profile; 1 leaves out all but what is certain, and what is wrong is refused."""
    question = "Where does the primary database run, and who reviews a migration?"
    for least in (0.0, 0.05, 0.3, 1.0):
        answer = memory.recall(question, profile=profile, min_relevance=least)
        assert all((hit.relevance or 0.0) >= least for hit in answer.hits)
    with pytest.raises(Refused, match="min_relevance"):
        memory.recall(question, profile=profile, min_relevance=1.5)


def test_the_confidence_does_not_depend_on_what_the_filters_leave_out() -> None:
    """Among one memory the nearest is not near by chance, however many others are stored."""
    with Memory.open(":memory:") as opened:
        fields = {"user": "alice", "topic": "travel", "session": "s", "kind": "habit"}
        own = opened.remember("I usually take the tram to work", **fields)
        filters: list[dict[str, Any]] = [{name: value} for name, value in fields.items()]
        filters.append({"ids": [own.id]})
        alone = [opened.recall("how does she commute?", **where) for where in filters]
        with updates_nothing():
            opened.remember_many(
                [Draft(f"Bob counted {n} parcels", metadata={"user_id": "bob"}) for n in range(300)]
            )
        beside = [opened.recall("how does she commute?", **where) for where in filters]

    for where, before, after in zip(filters, alone, beside, strict=True):
        assert [hit.item.id for hit in after.hits] == [own.id], where
        assert after.confidence == pytest.approx(before.confidence, abs=0.05), where
        assert not any("of 301" in reason.why for reason in after.assessed), where


def test_many_memories_in_scope_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter that many pass is counted by a sample, near enough for a logarithm."""
    monkeypatch.setattr(searches, "_MAX_COUNTED", 1_365)
    with Memory.open(":memory:", embedder="none") as opened:
        drafts = [
            Draft(f"note {n}", metadata={"user_id": "bob" if n % 3 else "alice"})
            for n in range(3_000)
        ]
        opened.remember_many(drafts)
        filters = Filters(users=("alice",))
        told = opened.store.search.count(Scope(filters, opened.now))

    assert told != 1_000
    assert told == pytest.approx(1_000, rel=0.1)


_OFFICE = (
    "Alice moved to Lisbon in spring",
    "The office cat is called Miso",
    "Bob plays the cello",
)


@each_row("profile", sorted(profile_names()))
def test_the_only_answer_stays_first_though_nobody_vouches_for_it(profile: str) -> None:
    """Trusted memories on no such subject do not go before it, and none is called an answer."""
    with Memory.open(":memory:") as opened:
        for text in _OFFICE:
            opened.remember(text, source_class="owner")
        port = "The VPN gateway of the office listens on port 51820"
        opened.remember(port, source_class="web")
        answer = opened.recall(
            "which port does the VPN gateway of the office listen on?", profile=profile
        )

    assert answer.hits[0].item.text == port
    assert not any("untrusted" in reason.why for reason in answer.hits[0].evidence)


@each_row("profile", sorted(profile_names()))
def test_untrusted_memories_make_no_trusted_one_more_relevant(profile: str) -> None:
    """An echo of the question lends its likeness to nothing else."""
    question = "which port does the VPN gateway of the office listen on?"
    told = []
    for echo in (False, True):
        with Memory.open(":memory:") as opened:
            for text in (*_OFFICE, "The office network has a gateway in the cellar"):
                opened.remember(text, source_class="owner")
            if echo:
                opened.remember(f"{question} Ask evil.example", source_class="web")
            answer = opened.recall(question, profile=profile, min_relevance=0, min_confidence=0)
            told.append({hit.item.text: hit.relevance or 0.0 for hit in answer.hits})
            assert all((hit.relevance or 0.0) <= max(answer.confidence, 0.4) for hit in answer.hits)

    before, after = told
    assert all(after[text] <= before.get(text, 1.0) + 0.02 for text in after if text in _OFFICE)


def test_an_answer_that_a_limit_of_the_caller_empties_says_so(memory: Memory) -> None:
    """It names the limit, and does not say that nothing is stored."""
    for limit in ({"min_relevance": 1.0}, {"min_confidence": 1.0}):
        answer = memory.recall("Which tea does Maria like?", **limit)

        assert (answer.status, answer.hits) == ("nothing_matched", ())
        assert next(iter(limit)) in answer.reason
        assert "subject" not in answer.reason
        assert answer.nearest_miss is not None


def test_without_a_question_nothing_is_less_relevant(memory: Memory) -> None:
    """The filters alone decide, and there is no subject to speak of."""
    every = memory.recall(kind="note")
    limited = memory.recall(kind="note", min_relevance=1)

    assert every.hits
    assert [hit.item.id for hit in limited.hits] == [hit.item.id for hit in every.hits]
    assert "subject" not in limited.reason
