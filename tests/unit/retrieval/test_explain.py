"""Why a memory was returned and why another was not: every place where it can fall out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import NotFound
from bethink.model import Candidate, Item, replay
from bethink.retrieval.context import Retriever
from bethink.retrieval.explain import explain, item_reasons, running_scores
from bethink.retrieval.profile import Profile, load_profile
from bethink.retrieval.retrievers.dense import Dense
from bethink.retrieval.retrievers.lexical import Lexical, Substring
from bethink.retrieval.retrievers.temporal import Temporal
from bethink.retrieval.stages.assemble import Budget, token_cost
from bethink.retrieval.stages.diversify import Collapse
from bethink.retrieval.stages.fusion import WeightedSum
from bethink.retrieval.stages.gate import Confidence, Threshold
from bethink.retrieval.stages.rerank import Rerank
from bethink.testing import FixedClock
from corpus import NOW, days_ago
from rows import each_row

ASKED = "deploy key"
KEY = "The deploy key lives in vault B"  # both words close together: the best match
ROTATE = "Rotate every deploy key of the whole company once a quarter and tell the auditors so"
TEA = "Maria likes green tea"


def walk(*channels: Retriever, **slots: Any) -> Profile:
    """A profile of these channels and otherwise only what a test is about."""
    fuse = slots.pop("fuse", WeightedSum())
    return Profile("test", channels or (Lexical(),), fuse, **slots)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    """Three notes, by words alone: two match the question, one does not."""
    with Memory.open(":memory:", embedder="none", clock=clock) as opened:
        opened.remember(KEY, id="key-note", topic="ops")
        opened.remember(ROTATE, id="rotate-note", topic="calendar", occurred_at=days_ago(3))
        opened.remember(TEA, id="tea-note", classification=3)
        yield opened


# --- Falling out --------------------------------------------------------------------------


def test_what_was_returned_is_told_so(memory: Memory) -> None:
    """With its rank and its score."""
    told = memory.why_not("rotate-note", ASKED, profile=walk())
    hits = memory.recall(ASKED, profile=walk()).hits

    assert (told.returned, told.stage) == (True, "answer")
    assert told.reason == "it was returned, at rank 2"
    assert told.score == hits[1].score
    assert told.item == hits[1].item


@each_row(
    ("item", "where", "reason"),
    [
        ("key-note", {"topic": "calendar"}, "has topic 'ops', not 'calendar'"),
        ("key-note", {"layer": "goal"}, "has no layer, not 'goal'"),
        ("key-note", {"tag": "x"}, "lacks the tag 'x'"),
        ("key-note", {"entity": "Zoe"}, "does not mention 'Zoe'"),
        ("rotate-note", {"since": days_ago(2)}, "happened on 2026-02-27, before 2026-02-28"),
        ("rotate-note", {"until": days_ago(5)}, "happened on 2026-02-27, not before 2026-02-25"),
        ("key-note", {"min_trust": 3}, "trust 2 is below the required 3"),
        ("tea-note", {}, "classification 3 is above the ceiling 2"),
        ("key-note", {"as_of": days_ago(1)}, "stored on 2026-03-02, after 2026-03-01"),
    ],
)
def test_filters_keep_a_memory_out(
    memory: Memory, item: str, where: dict[str, Any], reason: str
) -> None:
    """The one that does is named."""
    told = memory.why_not(item, ASKED, **where)

    assert (told.returned, told.stage, told.reason) == (False, "filters", reason)
    assert told.remedy
    assert told.looks == ()


def test_a_forgotten_memory_is_told_so(memory: Memory, clock: FixedClock) -> None:
    """With the day and the reason; an expired one with the day it ended."""
    memory.update("rotate-note", valid_to=days_ago(1))
    clock.forward(days=1)
    memory.forget("key-note", reason="outdated")

    gone, expired = (memory.why_not(item, ASKED) for item in ("key-note", "rotate-note"))

    assert (gone.reason, gone.remedy) == (
        "ended on 2026-03-03 (outdated)",
        "bethink restore key-note",
    )
    assert expired.reason == "expired on 2026-03-01"


def test_the_past_is_explained_by_the_past(memory: Memory, clock: FixedClock) -> None:
    """As of before an update it is the old revision that is followed."""
    clock.forward(days=2)
    memory.update("key-note", text="The deploy key lives in safe C", topic="safes")
    before = clock.now - timedelta(days=1)

    then = memory.why_not("key-note", "zebra crossing", as_of=before)
    filtered = memory.why_not("key-note", ASKED, as_of=before, topic="safes")
    found = memory.why_not("key-note", "vault", as_of=before)

    assert then.stage == "channels"
    assert then.item.text == KEY
    assert filtered.reason == "has topic 'ops', not 'safes'"
    assert found.returned


def test_nothing_in_common_is_told_so(memory: Memory) -> None:
    """No channel finds anything of the question in it."""
    told = memory.why_not("key-note", "green tea", profile=walk(), max_classification=3)

    assert (told.returned, told.stage) == (False, "channels")
    assert told.score is told.needed is None
    assert told.remedy.startswith("ask again with its own words: ")
    assert [(look.channel, look.score, look.why) for look in told.looks] == [
        ("lexical", None, "no match")
    ]
    assert told.looks[0].needed is not None  # the tea's score: what it took to get in


def test_others_may_match_better_in_a_channel(memory: Memory) -> None:
    """A channel passes on only its best; the score it had and the score it took are told."""
    told = memory.why_not("rotate-note", ASKED, profile=walk(Lexical(depth=1)))

    assert (told.returned, told.stage) == (False, "channel.lexical")
    assert told.score is not None
    assert told.needed is not None
    assert 0 < told.score < told.needed
    assert told.remedy.startswith("ask again with")
    assert told.looks[0].score == told.score


def test_the_nearest_channel_is_the_one_blamed(memory: Memory) -> None:
    """Where several did not pass it on, the one where least was missing."""
    profile = walk(Lexical(depth=1), Temporal(depth=1), Substring(depth=1))
    noon = days_ago(3) + timedelta(hours=3)
    memory.remember("The deploy key was lost on 27 February 2026", occurred_at=noon)

    told = memory.why_not("rotate-note", "deploy key on 27 February 2026", profile=profile)
    missing = {
        look.channel: (look.needed or 0.0) - look.score
        for look in told.looks
        if look.score is not None
    }

    assert missing.keys() == {"lexical", "temporal"}
    assert told.stage == f"channel.{min(missing, key=missing.__getitem__)}"


def test_a_fusion_may_cut(memory: Memory) -> None:
    """Then other memories scored higher."""
    told = memory.why_not("rotate-note", ASKED, profile=walk(fuse=WeightedSum(pool=1)))

    assert (told.stage, told.reason) == ("fuse", "other memories scored higher")
    assert told.score is not None
    assert told.needed is not None
    assert told.score < told.needed


def test_a_near_duplicate_is_collapsed(memory: Memory) -> None:
    """Another memory in the answer says the same; alone it is returned."""
    words = "the staging cluster is torn down at weekends by the night shift to save some"
    memory.remember(f"{words} money", id="first-note")
    memory.remember(f"{words} cash", id="second-note")
    profile = walk(diversify=(Collapse(threshold=0.8),))

    told = [memory.why_not(item, words, profile=profile) for item in ("first-note", "second-note")]
    returned, fallen = sorted(told, key=lambda one: not one.returned)

    assert returned.returned
    assert (fallen.returned, fallen.stage) == (False, "diversify.collapse")
    assert fallen.reason == "another memory in the answer says the same"
    assert fallen.remedy == f"ask again with --id {fallen.item.id}"


def test_the_gate_may_close(memory: Memory) -> None:
    """A threshold tells what was needed; where everything was dropped nothing can be."""
    some = walk(gate=(Threshold(min_share=0.9),))
    nothing = walk(gate=(Confidence(unsure=1.0),))

    dropped = memory.why_not("rotate-note", ASKED, profile=some)
    silent = memory.why_not("key-note", "which key has the sonata by Schubert?", profile=nothing)

    assert dropped.stage == "gate.threshold"
    assert dropped.reason.startswith("not relevant enough: 1 scored below ")
    assert dropped.score is not None
    assert dropped.needed is not None
    assert dropped.score < dropped.needed
    assert (silent.stage, silent.needed) == ("gate.confidence", None)
    assert silent.score is not None
    assert silent.reason.startswith("not relevant enough: ")
    assert "needed" in silent.reason


def test_a_memory_of_another_time_is_told_so(memory: Memory) -> None:
    """Its score may be the best: it is the time that the question names which it lacks."""
    memory.remember("The pump was replaced", id="pump-note", occurred_at="2019-05-03")
    memory.remember("What happened with the valve is known", id="valve-note")

    told = memory.why_not("valve-note", "what happened in May 2019?")

    assert told.stage == "expand.named_time"
    assert told.reason.endswith(": the question names a time and nothing else")


def test_the_budget_may_be_spent(memory: Memory) -> None:
    """By number, by tokens, or because the page begins behind it."""
    profile = walk()
    price = token_cost(Candidate(memory.get("key-note")))

    by_number = memory.why_not("rotate-note", ASKED, profile=profile, k=1)
    by_tokens = memory.why_not("rotate-note", ASKED, profile=profile, max_tokens=price)
    before = memory.why_not("key-note", ASKED, profile=profile, offset=1)

    assert {by_number.stage, by_tokens.stage, before.stage} == {"budget"}
    assert by_number.reason == "rank 2 of 2; the answer takes the best 1"
    assert by_number.remedy == "ask again with -k 2"
    assert by_tokens.reason == "rank 2; the token budget was used up before it"
    assert by_tokens.remedy.startswith("ask again with --max-tokens ")
    assert (before.reason, before.remedy) == (
        "rank 1 is before the offset 1",
        "ask again with --offset 0",
    )


def test_an_earlier_page_had_it(memory: Memory) -> None:
    """Following a cursor, what was returned before is not returned again."""
    first = memory.recall(ASKED, profile=walk(), k=1)

    told = memory.why_not("key-note", ASKED, profile=walk(), cursor=first.page.cursor)

    assert (told.returned, told.stage) == (False, "budget")
    assert (told.reason, told.remedy) == (
        "an earlier page returned it",
        "ask again without --cursor",
    )


def test_an_unknown_memory_cannot_be_followed(memory: Memory) -> None:
    """It is not found, whatever is asked."""
    with pytest.raises(NotFound):
        memory.why_not("no-such-note", ASKED)
    with pytest.raises(NotFound):
        memory.explain(ASKED, "no-such-note")


# --- How the channels see it --------------------------------------------------------------


def test_every_channel_says_how_it_sees_a_memory(memory: Memory) -> None:
    """Its score by itself and what it took; or why the channel was not asked."""
    profile = walk(
        Lexical(), Dense(), Substring(), Temporal(), budget=Budget(k=1), gate=(Threshold(),)
    )

    looks = {
        look.channel: look for look in memory.why_not("rotate-note", ASKED, profile=profile).looks
    }

    assert list(looks) == ["lexical", "dense", "substring", "temporal"]
    assert looks["lexical"].score == looks["lexical"].needed
    assert "deploy" in looks["lexical"].why
    assert (looks["dense"].score, looks["dense"].needed) == (None, None)
    assert "no embedder" in looks["dense"].why
    assert looks["substring"].why == "every word of the question is known"
    assert (looks["temporal"].score, looks["temporal"].why) == (None, "the question names no time")


def test_alone_a_memory_scores_as_among_others(memory: Memory) -> None:
    """What a look tells is what the channel gave it in the walk."""
    answer = memory.recall(ASKED, profile=walk())
    among = {cand.item.id: cand.score for step in answer.steps for cand in step.pool[:2]}

    told = memory.why_not("rotate-note", ASKED, profile=walk(budget=Budget(k=1)))

    given = answer.hits[1].reason("channel.lexical")
    assert given is not None
    assert told.looks[0].score == given.value
    assert told.score == among["rotate-note"]


# --- In words -----------------------------------------------------------------------------


def test_the_arithmetic_adds_up() -> None:
    """A line a reason; the score as it stood after each, and the last is the score."""
    cand = Candidate(Item("i1", "x", NOW, "test"))
    cand = cand.with_evidence("channel.lexical", "seen", 0.7, "matches deploy")
    cand = cand.with_evidence("fuse.lexical", "add", 0.5)
    cand = cand.with_evidence("importance", "times", 1.5, "importance 0.9")
    cand = cand.with_evidence("spread", "add", 0.25, "linked from", via="i2")
    cand = cand.with_evidence("read", "set", 2.0)

    lines = explain(cand).splitlines()

    assert [score for _, score in running_scores(cand)] == [0.0, 0.5, 0.75, 1.0, 2.0]
    assert [line.split() for line in lines] == [
        ["·", "0.7000", "channel.lexical", "matches", "deploy"],
        ["0.5000", "+", "0.5000", "fuse.lexical"],
        ["0.7500", "×", "1.5000", "importance", "importance", "0.9"],
        ["1.0000", "+", "0.2500", "spread", "linked", "from", "i2"],
        ["2.0000", "=", "2.0000", "read"],
    ]
    assert explain(Candidate(cand.item)) == ""


@pytest.mark.parametrize(("momentum", "active"), [(4.999, False), (5.0, True), (5.001, True)])
def test_an_entity_is_active_from_a_momentum_of_five(momentum: float, active: bool) -> None:
    """The bound itself counts."""
    cand = Candidate(Item("a", "t", NOW, "test")).with_evidence("momentum", "seen", momentum)

    assert ("entity_active" in item_reasons(cand)) is active


def test_an_explanation_is_the_hits_own(filled: Memory) -> None:
    """One line for each piece of evidence; replaying them gives exactly the score."""
    question = "where is the production deploy key kept?"
    answer = filled.recall(question)

    for hit in answer.hits:
        said = filled.explain(question, hit.item.id).splitlines()
        assert len(said) == len(hit.evidence)
        assert replay(hit.evidence) == hit.score
        assert float(next(line for line in reversed(said) if line[0:8].strip()).split()[0]) == (
            pytest.approx(hit.score, abs=1e-4)
        )
        for reason, line in zip(hit.evidence, said, strict=True):
            assert reason.by in line
            assert reason.why in line


def test_what_was_not_returned_is_explained_too(memory: Memory) -> None:
    """By the stage and the reason, under the very options of the question."""
    profile = load_profile("default")
    reading = walk(rerank=(Rerank(keep=0.0),), gate=(Threshold(min_score=0.5),))

    assert memory.explain(ASKED, "tea-note").startswith("filters: classification 3")
    second = memory.explain(ASKED, "rotate-note", k=1, profile=profile, min_relevance=0)
    assert second.startswith("budget: rank 2")
    weak = memory.explain(ASKED, "rotate-note", profile=profile, min_relevance=0.99)
    assert weak.startswith("gate.min_relevance: not relevant enough")
    boosted = memory.explain(
        ASKED, "key-note", profile=walk(adjust=profile.adjust), k=1,
        boost=lambda item: 9.0 if item.id == "rotate-note" else 1.0,
    )  # fmt: skip
    assert boosted.startswith("budget: rank 2")
    unread = memory.explain(
        ASKED, "key-note", profile=reading, reranker=lambda _, given: [0.0] * len(given)
    )
    assert unread.startswith("gate.threshold: ")


def test_explaining_changes_no_ranking(filled: Memory) -> None:
    """Before and after, with tracking of the walk or without: the same answer."""
    question = "when does the release train leave?"
    before = filled.recall(question)
    for item in filled.browse(limit=8):
        filled.why_not(item.id, question)
        filled.explain(question, item.id)

    assert filled.recall(question).hits == before.hits
