"""Memind's SIMPLE: the document's order, its numbers, each formula at its boundaries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bethink import Memory
from bethink.model import Candidate, Evidence, Item, Link, Node, Pool, Query, replay, sort_by_score
from bethink.ports import Embedder, Nearest
from bethink.retrieval.answer_text import render_text
from bethink.retrieval.context import Context
from bethink.retrieval.profile import load_profile
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import FUSIONS, STAGES
from bethink.systems.memind.retrievers import Timed, _time_factors, time_factor
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW, days_ago
from rows import each_row

PROFILE = load_profile("memind-simple")


def item(item_id: str, **fields: object) -> Item:
    return Item(item_id, f"memory {item_id}", NOW, "test", **fields)


def found(channel: str, *ids: str) -> Pool:
    """A channel's ranking of these, best first."""
    return tuple(
        Candidate(item(one), score, (Evidence(f"channel.{channel}", "add", score, "", None, rank),))
        for rank, (one, score) in enumerate(
            ((one, 0.9 - 0.1 * place) for place, one in enumerate(ids)), start=1
        )
    )


def scored(*scores: float, level: str = "item") -> Pool:
    return sort_by_score(
        Candidate(item(f"i{at}", level=level), score, (Evidence("fuse.x", "add", score),))
        for at, score in enumerate(scores)
    )


@pytest.fixture(scope="module")
def bare() -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as opened:
        yield opened


def ask(memory: Memory, text: str = "anything", **fields: object) -> Context:
    return Context(Query(text, NOW, **fields), memory.store, memory.embedder)


# --- The document's order and numbers -----------------------------------------------------


def test_the_walk_is_in_the_documents_order() -> None:
    """Four channels, fusion, threads, graph, captions and truncation."""
    assert [channel.name for channel in PROFILE.channels] == [
        "insight", "vector", "keyword", "temporal"
    ]  # fmt: skip
    assert [stage.name for stage in PROFILE.expand] == [
        "time_factor", "thread_assist", "graph_assist", "ancestors"
    ]  # fmt: skip
    assert [stage.name for stage in PROFILE.gate] == ["elbow"]
    assert [add.name for add in PROFILE.assemble] == ["captions"]


def test_the_numbers_are_the_documents() -> None:
    """Tiers, weights, limits and which assist is on."""
    insight, vector, keyword, temporal = PROFILE.channels
    threads, graph = PROFILE.expand[1:3]

    assert (insight.depth, insight.min_cosine, insight.levels) == (5, 0.3, ("insight",))
    assert (vector.depth, vector.candidates, vector.min_score, vector.weight) == (15, 2, 0.1, 1.5)
    assert (keyword.depth, keyword.weight) == (15, 1.0)
    assert (temporal.depth, temporal.weight) == (100, 1.1)
    assert (PROFILE.fuse.k, PROFILE.fuse.first, PROFILE.fuse.second) == (60, 0.05, 0.02)
    assert (threads.enabled, threads.seeds, threads.threads, threads.members) == (False, 3, 2, 3)
    assert (graph.enabled, graph.mode, graph.seeds, graph.expanded) == (True, "assist", 6, 12)
    assert (graph.weight, graph.protect, graph.hub, graph.damping) == (0.35, 3, 8, 0.5)
    assert (graph.min_strength, graph.min_confidence) == (0.55, 0.7)
    assert (PROFILE.gate[0].gap, PROFILE.gate[0].ratio) == (0.35, 0.65)
    assert (PROFILE.budget.k, PROFILE.budget.most) == (15, (("insight", 5),))
    assert PROFILE.assemble[0].most == 5


# --- Fusion -------------------------------------------------------------------------------


def fuse(bare: Memory, **pools: tuple[str, ...]) -> Pool:
    channels = {channel.name: channel for channel in PROFILE.channels}
    given = {channels[name]: found(name, *ids) for name, ids in pools.items()}
    return PROFILE.fuse(given, ask(bare))


def test_fusion_gives_the_reference_values(bare: Memory) -> None:
    """Vector order 1, 2, 3 and keyword order 3, 4."""
    pool = fuse(bare, vector=("1", "2", "3"), keyword=("3", "4"))

    assert [(cand.item.id, round(cand.score, 6)) for cand in pool] == [
        ("3", 1.05), ("1", 0.63165), ("2", 0.621785), ("4", 0.40119)
    ]  # fmt: skip
    assert all(replay(cand.evidence) == cand.score for cand in pool)


def test_a_single_channel_passes_as_it_is(bare: Memory) -> None:
    """No scale, no bonus, whichever it is."""
    for name in ("vector", "keyword", "temporal"):
        assert fuse(bare, **{name: ("1", "2")}) == found(name, "1", "2")
    assert fuse(bare, vector=(), keyword=("1",)) == found("keyword", "1")


def test_insights_are_never_fused(bare: Memory) -> None:
    """They keep their cosine and change nobody's place."""
    pool = fuse(bare, insight=("x",), vector=("1", "2", "3"), keyword=("3", "4"))

    assert {cand.item.id: round(cand.score, 6) for cand in pool} == {
        "3": 1.05, "x": 0.9, "1": 0.63165, "2": 0.621785, "4": 0.40119
    }  # fmt: skip


def test_time_weighs_more_than_keywords(bare: Memory) -> None:
    """1.1 against 1.0, at equal ranks."""
    pool = fuse(bare, keyword=("k",), temporal=("t",))

    assert [cand.item.id for cand in pool] == ["t", "k"]
    assert pool[1].score == pytest.approx(1.0 / 1.1 + 0.02)


def test_the_bonus_ends_after_the_third(bare: Memory) -> None:
    """0.05, 0.02, 0.02 and nothing."""
    pool = fuse(bare, vector=("1", "2", "3", "4"), keyword=("1", "2", "3", "4"))

    given = [cand.reason("fuse.bonus") for cand in pool]
    assert [reason.value if reason else 0 for reason in given] == [0.05, 0.02, 0.02, 0]


# --- Time factor --------------------------------------------------------------------------


@pytest.mark.parametrize("asked", ["anything", "what was in May 2025?", "since 3 March 2026?"])
def test_the_time_factors_of_many_are_those_of_each(bare: Memory, asked: str) -> None:
    """Weighed in columns, a memory gets the same factor as alone, whatever it knows of its time."""
    ctx, decay = ask(bare, asked), Timed()
    times = [(None, None), (None, days_ago(3))]
    times += [(days_ago(day), None) for day in (-5, 0, 0.5, 30, 200, 400, 4000)]
    times += [(days_ago(day), days_ago(day - 60)) for day in (30, 250, 400)]

    def column(place: int) -> np.ndarray:
        return np.array([t[place].timestamp() * 1000 if t[place] else np.nan for t in times])

    items = (item("x", occurred_at=begin, occurred_end=end) for begin, end in times)
    alone = [time_factor(one, ctx, decay)[0] for one in items]
    near = Nearest(np.zeros(len(times)), column(0), column(1))
    assert _time_factors(near, ctx, decay).tolist() == pytest.approx(alone, abs=1e-12)


@each_row(
    ("text", "fields", "factor"),
    [
        ("no time", {}, 1.0),
        ("no time", {"occurred_at": NOW}, 1.0),
        ("no time", {"occurred_at": days_ago(100)}, math.exp(-0.19)),
        ("no time", {"occurred_at": days_ago(187)}, math.exp(-0.0019 * 187)),
        ("no time", {"occurred_at": days_ago(188)}, 0.7),
        ("no time", {"occurred_at": days_ago(9000)}, 0.7),
        ("no time", {"occurred_at": days_ago(-30)}, 1.0),
        ("last week", {}, 1.0),
        ("last week", {"occurred_at": datetime(2026, 2, 23, tzinfo=UTC)}, 1.0),
        ("last week", {"occurred_at": datetime(2026, 3, 1, 23, tzinfo=UTC)}, 1.0),
        ("last week", {"occurred_at": datetime(2026, 3, 12, tzinfo=UTC)}, math.exp(-0.23)),
        ("last week", {"occurred_at": datetime(2026, 2, 13, tzinfo=UTC)}, math.exp(-0.23)),
        ("last week", {"occurred_at": datetime(2025, 12, 1, tzinfo=UTC)}, 0.3),
        (
            "last week",
            {
                "occurred_at": datetime(2026, 1, 1, tzinfo=UTC),
                "occurred_end": datetime(2026, 2, 24, tzinfo=UTC),
            },
            1.0,
        ),
    ],
)
def test_the_time_factor_at_its_boundaries(
    bare: Memory, text: str, fields: dict[str, datetime], factor: float
) -> None:
    """Gentle by age with a floor of 0.7, firm outside a named time with one of 0.3."""
    value, _ = time_factor(item("a", **fields), ask(bare, text), Timed())

    assert value == pytest.approx(factor)


def test_the_time_factor_is_applied_once(bare: Memory) -> None:
    """What the vector channel found has it already."""
    old = item("a", occurred_at=days_ago(1000))
    for name, factor in (("vector", 1.0), ("keyword", 0.7), ("temporal", 0.7)):
        seen = Evidence(f"channel.{name}", "seen", 0.5, "", None, 1)
        pool = (Candidate(old, 1.0, (seen, Evidence("fuse.x", "add", 1.0))),)

        assert PROFILE.expand[0](pool, ask(bare))[0].score == pytest.approx(factor)


# --- Channels -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told(embedder: Embedder) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many([*NOTES, *CONVERSATION])
        yield opened


def test_the_vector_channel_is_exact(told: Memory) -> None:
    """Cosine × time factor over all there is, not only over the first thirty cosines."""
    ctx = ask(told, "where do the keys and tokens live?")
    everything = told.browse(limit=500)
    vectors = told.store.vectors.embeddings([one.id for one in everything], told.embedder.model)
    question = ctx.embedding().vector
    best = {
        one.id: float(vectors[one.id].vector @ question) * time_factor(one, ctx, Timed())[0]
        for one in everything
    }
    expected = sorted((one for one in best if best[one] >= 0.1), key=lambda one: -best[one])[:15]

    pool = PROFILE.channels[1](ctx)

    assert [cand.item.id for cand in pool] == expected
    assert [cand.score for cand in pool] == pytest.approx([best[one] for one in expected], abs=2e-3)


def test_keywords_are_squeezed(told: Memory) -> None:
    """BM25 s becomes s / (1 + s), so every score is below 1."""
    ctx = ask(told, "deploy key vault")
    raw = RETRIEVERS["lexical"]()(ctx)
    ceiling = raw[0].score and RETRIEVERS["keyword"]()(ctx)[0].score / (
        1 - RETRIEVERS["keyword"]()(ctx)[0].score
    )

    pool = RETRIEVERS["keyword"](depth=50)(ctx)

    assert [cand.item.id for cand in pool] == [cand.item.id for cand in raw]
    assert all(0 < cand.score < 1 for cand in pool)
    scale = ceiling / raw[0].score
    for squeezed, share in zip(pool, raw, strict=True):
        bm25 = share.score * scale
        assert squeezed.score == pytest.approx(bm25 / (1 + bm25))


def test_the_temporal_channel_needs_a_time(told: Memory) -> None:
    """Skipped, with the reason, where the question names none."""
    temporal = PROFILE.channels[3]

    assert temporal.skip({}, ask(told, "deploy key")) == "the question names no time"
    assert temporal.skip({}, ask(told, "what happened last week?")) == ""


def test_the_middle_of_the_window_scores_most(embedder: Embedder) -> None:
    """1 in the middle, 0 at the edges, clipped for what began before."""
    start = datetime(2026, 2, 23, tzinfo=UTC)
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        for name, at, end in (
            ("start", 0.0, None), ("middle", 3.5, None), ("late", 5.25, None), ("after", 7.0, None),
            ("into", -2.0, 1.0), ("before", -2.0, -1.0),
        ):  # fmt: skip
            memory.remember(
                f"Memory {name}",
                id=name,
                occurred_at=start + timedelta(days=at),
                occurred_end=None if end is None else start + timedelta(days=end),
            )
        pool = PROFILE.channels[3](ask(memory, "what happened last week?"))

    scores = {cand.item.id: cand.score for cand in pool}
    assert scores == pytest.approx({"middle": 1.0, "late": 0.5, "start": 0.0, "into": 0.0})


@each_row(
    "said", ["two weeks ago", "last Friday", "in March", "over the last few weeks", "yesterday"]
)
def test_times_the_original_does_not_know_activate_it(told: Memory, said: str) -> None:
    """A grammar far beyond "last week"."""
    assert PROFILE.channels[3].skip({}, ask(told, f"what did we decide {said}?")) == ""


def test_last_week_is_the_week_before_this_one() -> None:
    """From Monday to Monday, asked on a Sunday."""
    from bethink.retrieval.query_analysis import periods

    ctx = Context(Query("last week", datetime(2026, 11, 15, 12, tzinfo=UTC)), None)
    assert [(period.start, period.end) for period in periods(ctx)] == [
        (datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 9, tzinfo=UTC))
    ]


# --- Adaptive truncation ------------------------------------------------------------------


@each_row(
    ("scores", "kept"),
    [
        ((1.05, 0.63165, 0.621785, 0.40119), 1),
        ((1.0, 0.9), 2),
        ((1.0, 0.1), 2),
        ((1.0, 0.9, 0.8), 3),
        ((1.0, 0.65, 0.65), 1),
        ((0.5, 0.4, 0.325), 3),
        ((0.5, 0.4, 0.3249), 2),
        ((1.05, 0.7, 0.7), 1),
        ((1.04, 0.7, 0.7), 3),
        ((0.0, 0.0, 0.0), 3),
        ((1.0, 0.64, 0.2), 1),
    ],
)
def test_truncation_at_its_boundaries(bare: Memory, scores: tuple[float, ...], kept: int) -> None:
    """At the widest gap from 0.35 on, or below 0.65 of the best; never of fewer than three."""
    assert len(PROFILE.gate[0](scored(*scores), ask(bare))) == kept


def test_truncation_leaves_insights_alone(bare: Memory) -> None:
    """They are neither counted nor cut."""
    insights = tuple(
        Candidate(item(f"x{at}", level="insight"), 0.3, (Evidence("fuse.x", "add", 0.3),))
        for at in range(3)
    )
    pool = sort_by_score((*scored(1.0, 0.9), *insights))

    assert PROFILE.gate[0](pool, ask(bare)) == pool


# --- The whole ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def layered(embedder: Embedder) -> Iterator[Memory]:
    """Episodes, facts taken from them, and a small tree of insights."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember("Ana writes technical docs for developers", level="insight", kind="root",
                        id="root")  # fmt: skip
        memory.remember("Ana cares for precise wording in technical docs", level="insight",
                        kind="branch", parent="root", id="branch")  # fmt: skip
        memory.remember("Ana prefers implementation-grounded technical writing", level="insight",
                        kind="leaf", parent="branch", id="leaf")  # fmt: skip
        memory.remember(
            "Long planning session about the docs. Ana said the overview must not sound generic.",
            level="raw", caption="Documentation planning session", id="session-1",
        )  # fmt: skip
        facts = [
            "Ana said the docs overview should not sound generic",
            "Ana asked to explain captions as source-level context in the docs",
            "Ana wants simple and deep retrieval told apart in the docs by latency",
        ]
        for at, text in enumerate(facts):
            memory.remember(text, id=f"fact-{at}", parent="session-1", occurred_at=days_ago(at))
        memory.remember("Talk about the network of the building", level="raw", id="session-2")
        memory.remember("The printer is on the second floor", parent="session-2", id="printer")
        memory.store.graph.add_links(
            [Link(Node("item", "fact-0"), Node("item", "printer"), "similar_to", weight=0.9)]
        )
        yield memory


QUESTION = "what does Ana prefer when writing technical docs?"


def test_insights_bring_the_tree_above_them(layered: Memory) -> None:
    """The branch of a leaf and its root, each for a share of the score below."""
    answer = layered.recall(QUESTION, profile="memind-simple")

    assert [hit.item.kind for hit in answer.insights].count("leaf") == 1
    assert {hit.item.id for hit in answer.insights} == {"leaf", "branch", "root"}
    ancestors = STAGES["ancestors"](share=0.9)
    leaf = Candidate(layered.get("leaf"), 0.8, (Evidence("fuse.x", "add", 0.8),))
    above = {one.item.id: one for one in ancestors((leaf,), ask(layered))}
    assert above["branch"].score == pytest.approx(0.72)
    assert above["root"].score == pytest.approx(0.648)
    assert above["root"].evidence[-1].via == "branch"


def test_captions_name_the_source_of_items(layered: Memory) -> None:
    """One for each source, worth its best item, with all its items."""
    answer = layered.recall(QUESTION, profile="memind-simple")

    first = answer.captions[0]
    assert (first.source, first.text) == ("session-1", "Documentation planning session")
    assert first.score == max(hit.score for hit in answer.items)
    assert set(first.items) >= {hit.item.id for hit in answer.items}


def test_a_source_has_one_caption(layered: Memory) -> None:
    """Also an episode of a conversation that was found beside what was made from it."""
    episode = layered.remember("We tuned the violins and the cellos of the orchestra", level="raw",
                               session="rehearsal", caption="Tuning evening").id  # fmt: skip
    layered.remember("The violins of the orchestra are tuned in fifths", parent=episode)

    answer = layered.recall("violins of the orchestra", profile="memind-simple")

    assert [one.text for one in answer.captions].count("Tuning evening") == 1


def test_captions_speak_of_what_was_cut_off(layered: Memory) -> None:
    """They are gathered before the truncation, as in the document."""
    answer = layered.recall(QUESTION, profile="memind-simple")
    gate = next(step for step in answer.steps if step.name == "gate.elbow")

    assert gate.came_in > len(gate.pool)
    assert {one for caption in answer.captions for one in caption.items} > {
        hit.item.id for hit in answer.items
    }


def test_a_secret_source_is_not_captioned(embedder: Embedder) -> None:
    """What the asker may not see is not named either."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember("The merger talks in Oslo", level="raw", classification=3, id="secret")
        memory.remember("Oslo is cold in winter", parent="secret", id="fact")

        answer = memory.recall("how is Oslo in winter?", profile="memind-simple")

    assert [hit.item.id for hit in answer.hits] == ["fact"]
    assert "merger" not in str(answer.captions)


def test_insights_come_first_in_the_text(layered: Memory) -> None:
    """Insights, dated items, captions; the hits themselves stay best first."""
    answer = layered.recall(QUESTION, profile="memind-simple")
    text = render_text(answer, layered.profile("memind-simple").text)

    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Insights", "## Items", "## Captions"]
    assert "- [2026-03-0" in text
    assert "- Documentation planning session" in text
    assert answer.hits == sort_by_score(answer.hits)


def test_limits_are_counted_apart(layered: Memory) -> None:
    """Five insights beside fifteen items; a caller may want none."""
    answer = layered.recall(QUESTION, profile="memind-simple", most={"insight": 0})

    assert not answer.insights
    assert answer.items


@pytest.mark.parametrize("text", ["...", "?!", "– —"])
def test_a_question_without_words_is_answered_with_a_reason(layered: Memory, text: str) -> None:
    """Empty, not an error."""
    answer = layered.recall(text, profile="memind-simple")

    assert (answer.status, answer.hits) == ("nothing_matched", ())
    assert "no letter" in answer.reason


def test_without_an_embedder_the_words_still_answer() -> None:
    """A failing channel is told, and the others go on."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        answer = memory.recall("where is the deploy key?", profile="memind-simple")

    assert len(answer.hits) == 1
    assert {part.part for part in answer.degraded} == {"channel.insight", "channel.vector"}


def test_filters_hold_for_everything_that_is_brought_in(layered: Memory) -> None:
    """Assists and ancestors too."""
    answer = layered.recall(QUESTION, profile="memind-simple", level="item")

    assert {hit.item.level for hit in answer.hits} == {"item"}


def test_the_fusion_is_in_the_table() -> None:
    """So that any profile can use it."""
    assert FUSIONS["rrf_bonus"]().name == "rrf_bonus"


def test_one_caption_is_shown_once(memory: Memory) -> None:
    """An episode and the conversation it belongs to may have the same caption."""
    fields = {"session": "s1", "caption": "Ferry times"}
    first = memory.remember("The ferry to Porto leaves at nine", level="raw", **fields).id
    memory.remember("The ferry to Porto takes an hour", parent=first)
    last = memory.remember("The ferry to Porto costs six euro", level="raw", **fields).id

    answer = memory.recall("ferry to Porto", profile="memind-simple")

    assert [caption.text for caption in answer.captions] == ["Ferry times"]
    assert {first, last} <= set(answer.captions[0].items)
