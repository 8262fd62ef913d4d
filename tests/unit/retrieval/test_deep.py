"""The second story: what is enough, what else is asked, and what comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.model import replay
from bethink.ports import Embedder, Prompt
from bethink.render.wire import recall_json
from bethink.retrieval.deep import DeepSettings
from bethink.retrieval.deep.engine import Verdict, covering_hits, judge_by_rules
from bethink.retrieval.deep.expansion import (
    Expansion,
    ExpansionRetriever,
    expand_by_rules,
    expansion_retrievers,
    remove_names,
)
from bethink.retrieval.profile import load_profile
from bethink.retrieval.query_analysis import (
    expects_several_answers,
    is_multi_hop,
    is_temporal,
    split_question,
)
from bethink.retrieval.query_builder import RecallRequest
from bethink.testing import FixedClock, ScriptedModel
from corpus import CONVERSATION, NOTES, NOW, days_ago
from rows import each_row

DEEP = load_profile("default-deep")
KEY = "where does the deploy key live?"
LIST = "what books has Ann read?"


def turn(text: str, speaker: str, seq: int, day: float) -> dict[str, Any]:
    return {
        "text": text,
        "level": "raw",
        "speaker": speaker,
        "session": f"day-{day:g}",
        "seq": seq,
        "occurred_at": days_ago(day) + timedelta(minutes=seq),
    }


READING = [
    turn("I finished a novel about a lighthouse keeper, the best I read this year", "Ann", 0, 30),
    turn("Ann, that sounds lovely, you read so much", "Ben", 1, 30),
    turn("My sister Clara lent me a book about bees and I read it in a day", "Ann", 0, 20),
    turn("I never read anything, Ann, I only watch films", "Ben", 1, 20),
    turn("Clara moved to Lisbon in May", "Ben", 0, 10),
    turn("Tonight I start reading the biography of a mountaineer", "Ann", 1, 10),
]


@pytest.fixture(scope="module")
def talked(embedder: Embedder) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many([*NOTES, *CONVERSATION, *READING])
        yield opened


def context(memory: Memory, text: str, **where: Any) -> Any:
    return memory._build_context(RecallRequest(text), DEEP, None, where, NOW)


def hits(memory: Memory, text: str, k: int = 10) -> Any:
    return memory.recall(text, k=k, track=False).hits


def step(answer: Any, name: str) -> Any:
    return next(one for one in answer.steps if one.name == name)


@pytest.mark.parametrize(
    ("text", "several"),
    [
        ("what books has Ann read?", True),
        ("what do both of them like?", True),
        ("how many cats are there?", True),
        ("which cities did she visit?", True),
        ("where is the key and who rotates it?", True),
        ("when did Ann move?", False),
        ("who rotates the key?", False),
        ("why is the build slow?", False),
    ],
)
def test_lists_are_told_from_single_things(text, several):
    """A question for several things is never answered enough by one memory."""
    assert expects_several_answers(text) is several


def test_times_and_detours_are_seen():
    """Questions for an order of events, and those that describe instead of naming."""
    assert is_temporal("what happened after the release?")
    assert not is_temporal("who owns the key?")
    assert is_multi_hop("which book did she read from Ben's recommendation?")
    assert not is_multi_hop("who owns the key?")


def test_a_question_falls_into_its_parts():
    """One that asks twice is two."""
    assert split_question("where is the key and who rotates it?") == (
        "where is the key",
        "who rotates it",
    )
    assert split_question("salt and pepper") == ("salt and pepper",)


def test_one_memory_that_says_it_all_is_enough(talked):
    """Every telling word held by the best hit, and it tells such a thing as is asked for."""
    answer = talked.recall(KEY, deep=True)

    assert answer.strategy == "deep"
    assert step(answer, "deep.sufficiency").note.startswith(("enough", "not enough"))
    verdict = judge_by_rules(
        hits(talked, "deploy key production vault"), context(talked, "deploy key"), DeepSettings()
    )
    assert verdict.enough, verdict.why
    assert verdict.evidences


def test_both_passes_search_a_channel_once(talked, monkeypatch):
    """What the first pass found the wider one takes over, with its notes and its scores."""
    asked = []
    search = type(talked.store.search).vector

    def counted(self, vector, model, depth, scope, choose=None):
        asked.append((vector.tobytes(), depth, scope))
        return search(self, vector, model, depth, scope, choose)

    monkeypatch.setattr(type(talked.store.search), "vector", counted)
    answer = talked.recall(LIST, profile="memind-deep", track=False)
    first = step(answer, "deep.first")
    assert "vector" in first.note
    assert len(asked) == len(set(asked))
    assert step(answer, "channel.vector").note.startswith("bits scan")


def test_what_no_hit_holds_is_a_gap(talked):
    """It is named, the rarest first, and then it is not enough."""
    verdict = judge_by_rules(
        hits(talked, KEY), context(talked, "who painted the deploy key?"), DeepSettings()
    )

    assert not verdict.enough
    assert "painted" in verdict.gaps


def test_a_list_is_never_enough(talked):
    """However good the best hit is."""
    one = "Ann read the novel about a lighthouse keeper"
    assert judge_by_rules(hits(talked, one), context(talked, one), DeepSettings()).enough

    listed = judge_by_rules(hits(talked, one), context(talked, f"all of: {one}"), DeepSettings())
    assert listed == Verdict(False, "the question asks for several things", (), listed.evidences)


def test_nothing_found_is_not_gone_on_from(talked):
    """Silence stays silence, with the reason."""
    answer = talked.recall("how do I tune a violin?", deep=True)

    assert answer.strategy == "deep"
    assert not answer.hits
    assert "no hits to expand from" in step(answer, "deep.sufficiency").note


def test_evidences_add_to_each_other(talked):
    """Each quoted hit holds a word of the question that those before it lack."""
    found = hits(talked, LIST)
    chosen = covering_hits(found, context(talked, LIST))

    assert chosen[0] == found[0]
    assert len(chosen) <= 5
    answer = talked.recall(LIST, deep=True)
    assert answer.evidences
    texts = {hit.item.id: hit.item.text for hit in answer.hits}
    for told in answer.evidences:
        key, _, quote = told.partition(": ")
        assert texts[key].startswith(quote.rstrip("…")[:40])


def test_rules_ask_in_several_ways(talked):
    """Without the speaker's name of the speaker, like the best hits, with their rare words."""
    asked = expand_by_rules(hits(talked, LIST), context(talked, LIST), DeepSettings(most=9))
    kinds = {one.kind for one in asked}

    assert kinds == {"LEX", "VEC", "HYDE"}
    own = next(one for one in asked if one.speakers)
    assert own.speakers == ("Ann",)
    assert "Ann" not in own.text
    assert (
        len(expand_by_rules(hits(talked, LIST), context(talked, LIST), DeepSettings(most=2))) == 2
    )


def test_a_name_the_best_hit_gives_is_asked_for(talked):
    """The sister of Ann leads to Clara, and Clara to where she lives."""
    text = "where does the sister of Ann live?"
    asked = expand_by_rules(
        hits(talked, "Ann's sister"), context(talked, text), DeepSettings(most=9)
    )

    assert any(one.kind == "LEX" and "Clara" in one.text for one in asked)


def test_questions_of_time_look_around_the_best_hit(talked):
    """A window of days on both sides."""
    text = "when did Ann read about bees?"
    found = hits(talked, text)
    asked = expand_by_rules(found, context(talked, text), DeepSettings(most=9, days=3))
    window = next(one for one in asked if one.since)

    assert window.until - window.since == timedelta(days=6)


def test_names_are_taken_out_whole():
    """With what belongs to them, in any case, and never parts of words."""
    assert remove_names("What does Ann's cat do, ann?", ("Ann",)) == "What does cat do, ?"
    assert remove_names("the annual plan", ("Ann",)) == "the annual plan"


def test_expansions_go_to_their_channels():
    """LEX to words, VEC and HYDE to meaning, for half of what the question counts."""
    asked = [
        Expansion("LEX", "bees", "x"),
        Expansion("VEC", "bees", "x"),
        Expansion("HYDE", "b", "x"),
    ]
    made = expansion_retrievers(asked, DEEP.channels, DeepSettings(share=0.5))

    assert [channel.name for channel in made] == ["lex.1", "vec.2", "hyde.3"]
    by = [channel.retriever.name for channel in made if isinstance(channel, ExpansionRetriever)]
    assert by == ["lexical", "dense", "dense"]
    assert all(
        one.weight == one.retriever.weight * 0.5
        for one in made
        if isinstance(one, ExpansionRetriever)
    )


def test_an_expansion_never_widens_the_filters(talked):
    """A speaker the caller left out stays out; so does a time."""
    asked = Expansion("VEC", "reading", "x", speakers=("Ann",))
    dense = next(channel for channel in DEEP.channels if channel.name == "dense")
    also = ExpansionRetriever(asked, dense, 1.0, "vec.1")

    assert {one.item.speaker for one in also(context(talked, LIST))} == {"Ann"}
    assert also(context(talked, LIST, speaker="Ben")) == ()
    narrow = Expansion("VEC", "reading", "x", until=days_ago(25))
    within = ExpansionRetriever(narrow, dense, 1.0, "vec.1")(
        context(talked, LIST, since=days_ago(35))
    )
    assert within
    assert all(days_ago(35) <= one.item.when < days_ago(25) for one in within)


def test_the_trace_tells_the_second_story(talked):
    """Whether it was enough, what was asked, and what each brought."""
    answer = talked.recall(LIST, deep=True)
    names = [one.name for one in answer.steps]

    assert names[:3] == ["deep.first", "deep.sufficiency", "deep.expansion"]
    assert any(name.startswith("channel.vec.") for name in names)
    assert "VEC" in step(answer, "deep.expansion").note
    shown = recall_json(answer, trace=True)
    assert shown["strategy"] == shown["trace"]["strategy"] == "deep"
    assert shown["trace"]["final"]["evidences"] == len(answer.evidences) > 0


def test_scores_replay_and_best_comes_first(talked):
    """The laws of the walk hold for the wider one, too."""
    answer = talked.recall(LIST, deep=True)
    scores = [hit.score for hit in answer.hits]

    assert scores == sorted(scores, reverse=True)
    assert all(abs(replay(hit.evidence) - hit.score) < 1e-9 for hit in answer.hits)


def test_the_wider_walk_brings_what_was_asked_for(talked):
    """The first answer's best stay in front, and say why; all three books are among the rest."""
    best = talked.recall(LIST, deep=True, k=6).hits
    simple = talked.recall(LIST, k=4).hits

    assert [hit.item.id for hit in best[:4]] == [hit.item.id for hit in simple]
    assert any(reason.by == "protect" for reason in best[0].evidence)
    told = " ".join(hit.item.text for hit in best)
    assert all(book in told for book in ("lighthouse", "bees", "mountaineer"))


def test_what_is_unrelated_is_cut_from_the_wider_walk():
    """The first hits keep the distance from it that their scores have."""
    with Memory.open(":memory:") as memory:
        memory.remember_many(
            [
                f"{name} {did}"
                for name in ("Alice", "Bob", "Carla", "Deniz", "Emil", "Farah", "Goran", "Hana")
                for did in ("prefers green tea", "moved to Lisbon in spring", "plays the cello")
            ]
        )
        memory.remember("The deploy of the shop runs on Fridays with make deploy")
        memory.remember("Rollbacks of the shop deploy are done by Bob")
        answer = memory.recall("which books did the shop deploy team read?", deep=True)

    assert "deep.expansion" in [one.name for one in answer.steps]
    assert len(answer.hits) == 2
    assert all("deploy" in hit.item.text for hit in answer.hits)


@each_row("profile", ["default", "memind-simple", "siftcoder", "remind", "abmind"])
def test_any_profile_can_look_deeper(talked, profile):
    """Its own deep one where it names one, else twice as far."""
    answer = talked.recall(LIST, profile=profile, deep=True)

    assert answer.strategy == "deep"
    assert answer.profile != profile
    assert talked.recall(LIST, profile=profile).strategy == "simple"


def test_pages_follow_each_other(talked):
    """The second page goes on where the first ended."""
    whole = [hit.item.id for hit in talked.recall(LIST, deep=True, k=6).hits]
    first = talked.recall(LIST, deep=True, k=3)
    second = talked.recall(LIST, deep=True, k=3, cursor=first.page.cursor)

    assert [hit.item.id for hit in (*first.hits, *second.hits)] == whole


def test_a_deep_answer_is_marked_as_used_once(embedder):
    """Whatever the two walks looked at."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many(READING)
        best = memory.recall(LIST, deep=True, track=True).hits[0].item.id
        assert memory.get(best).recalls == 1


def test_without_words_there_is_one_walk(talked):
    """Filters alone find the newest."""
    assert talked.recall("", speaker="Ann", deep=True).hits


def test_why_not_follows_the_wider_walk(talked):
    """The step of the wider walk, or that it was returned."""
    ben = next(hit for hit in hits(talked, "who only watches films?") if hit.item.speaker == "Ben")

    assert talked.why_not(ben.item.id, LIST, deep=True).stage


def scripted(sufficiency: Any, queries: Any = ()) -> ScriptedModel:
    def answer(prompt: Prompt) -> Any:
        return sufficiency if prompt.name == "sufficiency" else {"queries": list(queries)}

    return ScriptedModel(answer)


def said(*, sufficient: bool, gaps: Any = (), evidences: Any = ()) -> dict[str, Any]:
    return {
        "sufficient": sufficient,
        "reasoning": "because",
        "gaps": list(gaps),
        "key_information": [],
        "evidences": list(evidences),
    }


def asked_with(embedder: Embedder, model: ScriptedModel, text: str = LIST) -> Any:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW), llm=model) as memory:
        memory.remember_many([*NOTES, *READING])
        return memory.recall(text, deep=True)


def test_a_model_may_say_it_is_enough(embedder):
    """Then its evidences are quoted from the memories, not from the model."""
    model = scripted(said(sufficient=True, evidences=[2, 1]))
    answer = asked_with(embedder, model)

    assert [prompt.name for prompt in model.prompts] == ["sufficiency"]
    assert len(answer.evidences) == 2
    texts = [hit.item.text for hit in answer.hits]
    assert all(any(told.partition(": ")[2] == text for text in texts) for told in answer.evidences)
    assert not answer.degraded


@pytest.mark.parametrize(
    "verdict",
    [
        said(sufficient=True),
        said(sufficient=True, gaps=["where"], evidences=[1]),
        said(sufficient=False, gaps=["where"]),
    ],
)
def test_a_model_is_believed_with_care(embedder, verdict):
    """Enough without a memory that says so, or with something missing, is not enough."""
    model = scripted(verdict, [{"type": "LEX", "text": "novel bees"}])
    answer = asked_with(embedder, model)

    assert [prompt.name for prompt in model.prompts] == ["sufficiency", "expand"]
    assert any(one.name == "channel.lex.1" for one in answer.steps)


def test_a_models_searches_go_where_they_belong(embedder):
    """Typed, in its order, three at most."""
    queries = [
        {"type": "LEX", "text": "lighthouse novel"},
        {"type": "VEC", "text": "what did Ann start to read?"},
        {"type": "HYDE", "text": "I read a book about bees."},
    ]
    answer = asked_with(embedder, scripted(said(sufficient=False), queries))
    further = [one.name for one in answer.steps if one.name.startswith("channel.")][-3:]

    assert further == ["channel.lex.1", "channel.vec.2", "channel.hyde.3"]
    assert not answer.degraded


def test_a_model_that_fails_leaves_it_to_the_rules(embedder):
    """The answer is the one without a model, and says why."""
    broken = ScriptedModel(lambda prompt: {"drop": "table"})
    answer = asked_with(embedder, broken)
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember_many([*NOTES, *READING])
        plain = memory.recall(LIST, deep=True)

    assert [hit.item.text for hit in answer.hits] == [hit.item.text for hit in plain.hits]
    assert {part.part for part in answer.degraded} == {"deep.sufficiency", "deep.expansion"}
    assert all("decided by rules" in part.reason for part in answer.degraded)


def test_nothing_new_from_a_model_is_no_answer(embedder):
    """The question again, or marks alone, are discarded with a reason."""
    queries = [{"type": "VEC", "text": LIST}, {"type": "LEX", "text": "?!"}]
    answer = asked_with(embedder, scripted(said(sufficient=False), queries))

    assert [part.part for part in answer.degraded] == ["deep.expansion"]
