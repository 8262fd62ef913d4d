"""Remind's reading by its reference values: activation, spreading, entities, topics, episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest

from bethink import Memory
from bethink.model import Candidate, Evidence, Item, Link, Node, Query, Recall
from bethink.retrieval.context import Context
from bethink.retrieval.profile import load_profile
from bethink.systems.remind import (
    RELATION_WEIGHTS,
    Blend,
    EntityMeaning,
    EntityName,
    Spread,
    question_words,
    word_overlap,
)
from bethink.testing import FixedClock
from compass import Compass
from corpus import NOW
from rows import each_row

REMIND = load_profile("remind")
# Without the gate that is ours, so that single numbers can be looked at.
OPEN = replace(REMIND, gate=())
Opening = Callable[..., Memory]


@pytest.fixture
def opened() -> Iterator[Opening]:
    """Opens memories whose likenesses to every question are given."""
    with ExitStack() as stack:
        yield lambda cosines=None: stack.enter_context(
            Memory.open(":memory:", embedder=Compass(cosines or {}), clock=FixedClock(NOW))
        )


def keep(memory: Memory, name: str, text: str, **about: Any) -> str:
    memory.remember(text, id=name, **about)
    return name


def relate(memory: Memory, src: str, kind: str, dst: str, weight: float = 1.0) -> None:
    memory.store.graph.add_links([Link(Node("item", src), Node("item", dst), kind, weight)])


def context(memory: Memory, text: str = "question", **about: Any) -> Context:
    return Context(Query(text, NOW, **about), memory.store, memory.embedder)


def starting(memory: Memory, scores: Mapping[str, float]) -> tuple[Candidate, ...]:
    items = memory.store.items.get(list(scores))
    return tuple(
        Candidate(items[key]).with_evidence("start", "add", score) for key, score in scores.items()
    )


def scores(answer: Recall) -> dict[str, float]:
    return {hit.item.id: hit.score for hit in answer.hits}


def spread(memory: Memory, start: Mapping[str, float], **settings: Any) -> dict[str, float]:
    stage = Spread(**settings)
    pool = stage(starting(memory, start), context(memory))
    return {cand.item.id: cand.score for cand in pool}


# Initial activation


def test_every_number_of_the_page_is_in_the_profile() -> None:
    """k 3, episode_k 5, candidates 10 fetched twice, floor 0.15, weight 0.3, decay 0.5, 2 hops."""
    concepts, episodes, _ = REMIND.channels
    stages = {stage.name: stage for stage in (*REMIND.expand, *REMIND.rerank, *REMIND.gate)}

    assert (REMIND.budget.k, dict(REMIND.budget.most)) == (3, {"raw": 5})
    assert (concepts.depth, concepts.oversample, episodes.depth) == (10, 2, 5)
    assert REMIND.fuse == Blend(keyword_weight=0.3, threshold=0.1)
    assert (stages["spread"].hops, stages["spread"].decay) == (2, 0.5)
    assert dict(stages["spread"].relations) == dict(RELATION_WEIGHTS)
    assert (stages["read"].keep, stages["read"].scale) == (0.4, "own")
    assert stages["min_activation"].min_score == 0.15
    track = REMIND.track
    assert (track.decay_interval, track.decay_rate) == (20, 0.1)
    assert (track.grace_s, track.regain) == (60.0, 0.3)


@pytest.mark.parametrize(
    ("weight", "expected"),
    [(0.3, 0.7 * 0.8 + 0.3 * 0.5), (0.0, 0.8), (1.0, 0.5)],
)
def test_meaning_and_words_are_blended(opened: Opening, weight: float, expected: float) -> None:
    """(1 − w) × cosine + w × share of the words; 0 and 1 are the pure cases."""
    memory = opened({"redis holds sessions": 0.8})
    keep(memory, "a", "redis holds sessions")
    profile = replace(OPEN, fuse=Blend(keyword_weight=weight))

    answer = memory.recall("redis cluster", profile=profile)

    assert scores(answer)["a"] == pytest.approx(expected, abs=1e-3)


def test_words_count_from_two_letters_and_inside_others() -> None:
    """As parts of words, in title and text, each once."""
    item = Item("a", "Configuration of PostgreSQL", NOW, "x", caption="Pool size")

    assert question_words("A config-key, a CONFIG of it?") == ("config", "key", "of", "it")
    assert word_overlap(("config", "postgres", "pool", "redis"), item) == (0.75, 3)
    assert word_overlap((), item) == (0.0, 0)


def test_initial_activation_weighs_confidence_and_forgetting(memory: Memory) -> None:
    """Fused × confidence × decay for concepts; an episode keeps the fused score."""
    found = Item("a", "nothing shared", NOW, "x", confidence=0.5, decay=0.4)
    blended = {
        level: blend_one(memory, found._replace(level=level), 0.9)
        for level in ("item", "insight", "raw")
    }

    assert blended["item"] == pytest.approx(0.7 * 0.9 * 0.5 * 0.4)
    assert blended["insight"] == blended["item"]
    assert blended["raw"] == pytest.approx(0.7 * 0.9)


def test_the_initial_threshold_is_strict_and_not_for_episodes(memory: Memory) -> None:
    """Exactly 0.1 is not above it; an episode has no such threshold."""
    at_threshold = Item("a", "x", NOW, "x", confidence=0.5)

    assert blend_one(memory, at_threshold, 0.2, weight=0.0) is None
    assert blend_one(memory, at_threshold, 0.201, weight=0.0) == pytest.approx(0.1005)
    assert blend_one(memory, at_threshold._replace(level="raw"), 0.05, weight=0.0) == 0.05


def blend_one(memory: Memory, item: Item, cosine: float, weight: float = 0.3) -> float | None:
    channel = REMIND.channels[0]
    seen = Evidence(f"channel.{channel.name}", "add", cosine, "", None, 1)
    pool = Blend(keyword_weight=weight)(
        {channel: (Candidate(item, cosine, (seen,)),)}, context(memory, "zzz")
    )
    return pool[0].score if pool else None


# Spreading


def test_one_hop_gives_the_reference_value_and_two_are_too_weak(opened: Opening) -> None:
    """0.8593 × 0.9 × implies × 0.5 × 0.8 = 0.2784; from there 0.030 does not reach 0.1."""
    memory = opened()
    keep(memory, "a", "source")
    keep(memory, "b", "implied", confidence=0.8)
    keep(memory, "c", "whole", confidence=0.9)
    relate(memory, "a", "implies", "b", 0.9)
    relate(memory, "b", "part_of", "c", 1.0)
    with memory.store._connections.write_transaction() as db:
        db.execute("INSERT INTO usage (id, decay) VALUES ('c', 0.6)")

    found = spread(memory, {"a": 0.8593})
    faint = spread(memory, {"a": 0.8593}, threshold=0.01)

    assert found == {"a": 0.8593, "b": pytest.approx(0.2784, abs=5e-5)}
    assert faint["c"] == pytest.approx(0.2784 * 0.8 * 0.25 * 0.9 * 0.6, abs=5e-5)
    assert faint["c"] == pytest.approx(0.030, abs=5e-4)


@each_row(("kind", "weight"), [*RELATION_WEIGHTS, ("related_to", 0.5)])
def test_every_relation_has_its_weight(opened: Opening, kind: str, weight: float) -> None:
    """Of the reference's table; one that is not in it has 0.5."""
    memory = opened()
    keep(memory, "a", "source")
    keep(memory, "b", "other")
    relate(memory, "a", kind, "b")

    found = spread(memory, {"a": 1.0}, threshold=0.0, hops=1)

    assert found["b"] == pytest.approx(weight * 0.5)


def test_paths_do_not_add_up(opened: Opening) -> None:
    """The strongest of several counts, and a stronger direct hit stays as it is."""
    memory = opened()
    for name in "abc":
        keep(memory, name, f"concept {name}")
    relate(memory, "a", "implies", "c")
    relate(memory, "b", "implies", "c", 0.5)

    assert spread(memory, {"a": 1.0, "b": 0.9})["c"] == pytest.approx(0.45)
    assert spread(memory, {"a": 1.0, "b": 0.9, "c": 0.46})["c"] == 0.46
    assert spread(memory, {"a": 1.0, "b": 0.9, "c": 0.2})["c"] == pytest.approx(0.45)


def test_the_second_hop_starts_from_everything_active(opened: Opening) -> None:
    """Initial ones again with 0.25, woken ones with 0.25 of what already holds 0.5."""
    memory = opened()
    for name in "abc":
        keep(memory, name, f"concept {name}")
    relate(memory, "a", "implies", "b")
    relate(memory, "b", "implies", "c")

    found = spread(memory, {"a": 1.0})

    assert found["b"] == pytest.approx(0.45)
    assert found["c"] == pytest.approx(0.45 * 0.9 * 0.25)


def test_only_outgoing_relations_of_concepts_are_followed(opened: Opening) -> None:
    """Not backwards, not along the order of a conversation, not into other levels."""
    memory = opened()
    keep(memory, "a", "source")
    keep(memory, "b", "points at a")
    keep(memory, "c", "said before")
    keep(memory, "d", "an episode", level="raw")
    relate(memory, "b", "implies", "a")
    relate(memory, "a", "follows", "c")
    relate(memory, "a", "implies", "d")

    assert spread(memory, {"a": 1.0}, levels=("item",)) == {"a": 1.0}


def test_what_may_not_be_seen_is_not_woken(opened: Opening) -> None:
    """Neither what was forgotten nor what is classified above the asker."""
    memory = opened()
    keep(memory, "a", "source")
    keep(memory, "b", "secret", classification=3)
    keep(memory, "c", "gone")
    relate(memory, "a", "implies", "b")
    relate(memory, "a", "implies", "c")
    memory.forget("c")

    assert spread(memory, {"a": 1.0}) == {"a": 1.0}


# Topics


@pytest.fixture
def topics(opened: Opening) -> Memory:
    """One concept of the topic, one of none, one of another, the last linked to the first."""
    memory = opened({"inside": 0.9, "general": 0.8, "outside": 0.95, "linked": 0.0})
    keep(memory, "in", "inside", topic="architecture")
    keep(memory, "none", "general")
    keep(memory, "out", "outside", topic="cooking")
    keep(memory, "far", "linked", topic="cooking")
    relate(memory, "in", "implies", "far", 1.0)
    relate(memory, "in", "implies", "out", 1.0)
    return memory


def test_a_topic_is_where_recall_starts_not_where_it_ends(topics: Memory) -> None:
    """Same topic or none at the start; another is only reached by spreading, × 0.4."""
    answer = topics.recall("zzz", profile=OPEN, topic="architecture", k=10)

    start = 0.7 * 0.9
    assert scores(answer) == {
        "in": pytest.approx(start, abs=1e-3),
        "none": pytest.approx(0.7 * 0.8, abs=1e-3),
        "out": pytest.approx(start * 0.9 * 0.5 * 0.4, abs=1e-3),
        "far": pytest.approx(start * 0.9 * 0.5 * 0.4, abs=1e-3),
    }


def test_other_profiles_keep_to_the_topic(topics: Memory) -> None:
    """Leaving it is this profile's setting, not the filter's meaning."""
    answer = topics.recall("inside", profile="siftcoder", topic="architecture")
    with_general = topics.recall(
        "inside", profile="siftcoder", topic="architecture", include_untopiced=True
    )

    assert set(scores(answer)) == {"in"}
    assert set(scores(with_general)) == {"in", "none"}


# Entities


def test_a_near_entity_lifts_its_memories(opened: Opening) -> None:
    """Cosine × 0.8 × confidence, from cosine 0.3 on, without decay."""
    memory = opened({"tool: redis": 0.6, "tool: kafka": 0.29})
    keep(memory, "a", "alpha", entities=["tool:redis"], confidence=0.5)
    keep(memory, "b", "beta", entities=["tool:kafka"])

    pool = EntityMeaning()((), context(memory))

    assert {c.item.id: c.score for c in pool} == {"a": pytest.approx(0.6 * 0.8 * 0.5, abs=1e-3)}
    assert pool[0].evidence[-1].via == "tool:redis"


@pytest.mark.parametrize(("direct", "expected"), [(0.2, 0.48), (0.7, 0.7)])
def test_a_weaker_direct_hit_does_not_overwrite_the_entity(
    opened: Opening, direct: float, expected: float
) -> None:
    """The original let the later, weaker value win; the stronger one counts."""
    memory = opened({"tool: redis": 0.6})
    keep(memory, "a", "alpha", entities=["tool:redis"])

    pool = EntityMeaning()(starting(memory, {"a": direct}), context(memory))

    assert pool[0].score == pytest.approx(expected, abs=1e-3)
    assert any(reason.via == "tool:redis" for reason in pool[0].evidence)


def test_a_named_entity_lifts_by_the_formula(opened: Opening) -> None:
    """0.30 · word ratio + 0.15 · overlap + 0.15 · ln(1 + mentions) / ln 51, × confidence."""
    memory = opened()
    keep(memory, "e1", "first episode", level="raw", entities=["tool:redis"])
    keep(memory, "e2", "second episode", level="raw", entities=["tool:redis"])
    keep(memory, "e3", "third episode", level="raw")
    keep(memory, "c", "made of three", confidence=0.8)
    for source in ("e1", "e2", "e3"):
        relate(memory, "c", "derives_from", source)

    pool = EntityName(levels=("item",))((), context(memory, "does redis cluster?"))

    mentions = math.log(3) / math.log(51)
    expected = (0.30 * 1 / 3 + 0.15 * 2 / 3 + 0.15 * mentions) * 0.8
    assert {c.item.id: c.score for c in pool} == {"c": pytest.approx(expected)}


def test_a_named_entity_that_says_too_little_is_left_out(opened: Opening) -> None:
    """Nothing below 0.05; words of fewer than three letters name nobody."""
    memory = opened()
    keep(memory, "a", "alpha", entities=["tool:redis"], confidence=0.1)

    assert EntityName()((), context(memory, "redis")) == ()
    assert EntityName(floor=0.0)((), context(memory, "is re ok")) == ()
    assert len(EntityName(floor=0.0)((), context(memory, "redis"))) == 1


def test_a_name_wakes_at_most_as_many_as_are_asked_for(opened: Opening) -> None:
    """The strongest k."""
    memory = opened()
    for number in range(5):
        keep(memory, f"c{number}", f"text {number}", entities=["tool:redis"],
             confidence=0.5 + number / 10)  # fmt: skip

    pool = EntityName()((), context(memory, "redis", k=2))

    assert [cand.item.id for cand in pool] == ["c4", "c3"]


def test_a_woken_name_does_not_spread() -> None:
    """Names come after spreading, as in the original."""
    stages = [stage.name for stage in REMIND.expand]

    assert stages == ["entity_meaning", "spread", "entity_name"]


# Episodes, floors, reading


@pytest.fixture
def episodes(opened: Opening) -> Memory:
    """Eight episodes and five concepts, each a little less like the question."""
    memory = opened(
        {f"episode {n}": 0.9 - n / 100 for n in range(8)}
        | {f"concept {n}": 0.8 - n / 100 for n in range(5)}
    )
    for number in range(8):
        keep(memory, f"e{number}", f"episode {number}", level="raw")
    for number in range(5):
        keep(memory, f"c{number}", f"concept {number}")
    return memory


@each_row(("asked", "expected"), [(None, 5), (0, 0), (2, 2), (8, 8)])
def test_episodes_are_counted_apart(episodes: Memory, asked: int | None, expected: int) -> None:
    """episode_k of them, 5 unless told; 0 asks for none; k counts the concepts alone."""
    answer = episodes.recall("zzz", profile=OPEN, episode_k=asked)

    assert [hit.item.id for hit in answer.raw] == [f"e{n}" for n in range(expected)]
    assert [hit.item.id for hit in answer.items] == ["c0", "c1", "c2"]
    assert {step.name: step.status for step in answer.steps}["channel.episodes"] == (
        "ok" if expected else "skipped"
    )


def test_what_was_not_asked_for_is_the_reason_of_an_empty_answer() -> None:
    """Where only episodes match and none are asked for."""
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember("the vault key is rotated", level="raw")
        answer = memory.recall("vault key", profile="remind", episode_k=0)

    assert (answer.hits, answer.reason) == (
        (), "all 1 on this subject are of level raw; none was asked for",
    )  # fmt: skip


def test_the_trace_shows_twice_the_candidates(opened: Opening) -> None:
    """recall_initial_candidates 10 fetches 20."""
    texts = {f"concept {n}": 0.9 - n / 100 for n in range(30)}
    memory = opened(texts)
    memory.remember_many(list(texts))

    answer = memory.recall("zzz", profile=OPEN)

    assert len(next(s.pool for s in answer.steps if s.name == "channel.concepts")) == 20


def test_the_floor_is_the_one_of_the_page(opened: Opening) -> None:
    """0.15 for concepts; the original's effective 0.2 is not inherited."""
    memory = opened({"above": 0.16 / 0.7, "below": 0.14 / 0.7})
    keep(memory, "a", "above")
    keep(memory, "b", "below")
    floor_only = replace(REMIND, gate=REMIND.gate[1:])

    assert set(scores(memory.recall("zzz", profile=floor_only))) == {"a"}


def test_a_reader_takes_three_fifths(episodes: Memory) -> None:
    """0.4 × activation + 0.6 × what it read, of concepts and of episodes alike."""
    answer = episodes.recall(
        "zzz", profile=OPEN, reranker=lambda _, texts: [float("4" in text) for text in texts]
    )

    assert scores(answer)["c4"] == pytest.approx(0.4 * 0.7 * 0.76 + 0.6, abs=1e-3)
    assert scores(answer)["e4"] == pytest.approx(0.4 * 0.7 * 0.86 + 0.6, abs=1e-3)
    assert scores(answer)["e0"] == pytest.approx(0.4 * 0.7 * 0.9, abs=1e-3)


def test_without_a_reader_the_slot_is_left_out_with_a_reason(episodes: Memory) -> None:
    """Skipped, not degraded."""
    answer = episodes.recall("zzz", profile=OPEN)
    read = next(step for step in answer.steps if step.name == "rerank.read")

    assert (read.status, read.note) == ("skipped", "no reranker is configured")
    assert answer.degraded == ()


def test_without_a_model_shared_words_answer() -> None:
    """The original fails; here meaning is reported missing and words still find."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        answer = memory.recall("deploy key vault", profile="remind")

    assert [hit.item.text for hit in answer.hits] == ["The deploy key lives in vault B"]
    assert {part.part for part in answer.degraded} >= {"channel.concepts", "channel.episodes"}


def test_irrelevant_questions_get_silence(filled: Memory) -> None:
    """The original answers every question with something."""
    for question in ("how do I bake sourdough bread?", "how deep is the Mariana Trench?"):
        answer = filled.recall(question, profile="remind")
        assert (answer.hits, answer.status) == ((), "nothing_matched"), question


def test_why_not_names_the_threshold_and_the_level_without_a_place() -> None:
    """What fell below the blend's threshold, and an episode where none is asked for."""
    with Memory.open(":memory:", embedder="hash") as memory:
        memory.remember("The deploy key of the vault is rotated on Tuesday")
        far = memory.remember("Anna bakes bread").id
        raw = memory.remember("we talked about the vault key", level="raw", session="s").id
        asked = "when is the vault key rotated"
        low = memory.explain(asked, far, profile="remind")
        none = memory.explain(asked, raw, profile="remind", episode_k=0)
        known = memory.remember("Vault key rotation", topic="keys").id
        memory.link(known, "implies", far, weight=0.7)
        memory.update(far, topic="food")
        spread = memory.explain("vault key rotation", far, profile="remind", topic="keys")
        unlinked = memory.remember("Vault of the church", topic="sights").id
        outside = memory.explain("vault key rotation", unlinked, profile="remind", topic="keys")

    assert (low, none, spread.split(":")[0], outside) == (
        "fuse: its score is too low: 1 at or below the threshold 0.1",
        "budget: the answer takes none of level raw",
        "gate.min_activation",
        "filters: has topic 'sights', not 'keys'",
    )  # fmt: skip
