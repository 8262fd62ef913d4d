"""What single stages promise, at their boundaries and by their reference values."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from bethink import Memory
from bethink.core.blas import openblas_functions
from bethink.errors import ModelError
from bethink.model import Evidence, Item, replay
from bethink.retrieval.profile import load_profile
from bethink.retrieval.stages.adjust import CallerBoost, Importance, age_days
from bethink.retrieval.stages.assemble import Budget, page_of, token_cost
from bethink.retrieval.stages.conversation import Conversation
from bethink.retrieval.stages.diversify import Collapse
from bethink.retrieval.stages.fusion import WeightedSum
from bethink.retrieval.stages.gate import Threshold
from bethink.retrieval.stages.rerank import Rerank
from bethink.systems.siftcoder import Decay
from corpus import NOW
from rows import each_row
from stage_parts import Fixed, cand, ctx, fused


def test_a_weighted_sum_scales_by_the_best(memory: Memory) -> None:
    """The best of each channel counts its whole weight."""
    scores = fused(memory, WeightedSum(), Fixed("lexical", (1, 2), 0.6), Fixed("dense", (2,), 0.4))

    assert scores == {"i001": 0.6, "i002": 0.6 / 2 + 0.4}


@each_row("days", [-1e6, -1.0, 0.0, 1.0, 700_000.0])
def test_age_is_never_negative_and_always_finite(memory: Memory, days: float) -> None:
    """Clocks that are wrong by years do not break a score."""
    when = NOW - timedelta(days=max(-2_900_000, min(739_000.0, days)))
    stored = cand(1, occurred_at=when)

    assert age_days(stored.item, ctx(memory)) >= 0
    assert math.isfinite(Decay()((stored,), ctx(memory))[0].score)


def test_importance_is_neutral_in_the_middle(memory: Memory) -> None:
    """0.5 changes nothing; pinned counts as most important."""
    pool = (cand(1, importance=0.5), cand(2, importance=1.0), cand(3, importance=0.1, pinned=True))

    scores = {c.item.id: c.score for c in Importance(0.1)(pool, ctx(memory))}

    assert scores == {"i001": 1.0, "i002": pytest.approx(1.1), "i003": pytest.approx(1.1)}


@pytest.mark.parametrize("wish", [math.nan, math.inf, -1.0])
def test_an_unusable_boost_changes_nothing(memory: Memory, wish: float) -> None:
    """What a caller's function returns cannot poison a score."""
    context = replace(ctx(memory), boost=lambda _: wish)

    assert CallerBoost()((cand(1),), context)[0].score == 1.0


def test_collapse_keeps_different_numbers_apart(memory: Memory) -> None:
    """Same words are one memory; another number is another fact."""
    pool = (
        cand(1, 1.0, "logs are kept for 30 days in the big bucket of the ops team"),
        cand(2, 0.9, "Logs are kept for 30 days, in the big bucket of the ops team"),
        cand(3, 0.8, "logs are kept for 90 days in the big bucket of the ops team"),
    )

    out = Collapse()(pool, ctx(memory))

    assert [c.item.id for c in out] == ["i001", "i003"]
    assert out[0].evidence[-1].via == "i002"


def test_the_threshold_keeps_its_boundary(memory: Memory) -> None:
    """Exactly at the floor is enough."""
    pool = (cand(1, 1.0), cand(2, 0.5), cand(3, 0.49))

    assert [c.item.id for c in Threshold(min_score=0.5)(pool, ctx(memory))] == ["i001", "i002"]
    assert [c.item.id for c in Threshold(min_share=0.5)(pool, ctx(memory))] == ["i001", "i002"]


def test_one_memory_is_returned_whatever_it_costs(memory: Memory) -> None:
    """The budget is a limit, not a reason for silence."""
    pool = (cand(1, 1.0, tokens=5000), cand(2, 0.9, tokens=10))
    context = ctx(memory, max_tokens=100, k=5)

    kept = Budget()(pool, context)
    page = page_of(pool, kept, context.query)

    assert [c.item.id for c in kept] == ["i001"]
    assert (page.stopped_by, page.has_more, page.total) == ("tokens", True, 2)
    assert token_cost(pool[1]) == 18


def test_a_reader_blends_and_never_erases(memory: Memory) -> None:
    """0.4 of what came before stays, and a broken reader is an error with a name."""
    pool = (cand(1, 2.0), cand(2, 1.0))
    context = replace(ctx(memory), reranker=lambda _, texts: [0.0, math.nan])

    out = Rerank()(pool, context)

    assert [c.score for c in out] == [0.4, 0.2]
    with pytest.raises(ModelError):
        Rerank()(pool, replace(context, reranker=lambda _, texts: [1.0]))


def test_an_answer_gains_from_the_question_before_it(memory: Memory) -> None:
    """The turn after a matching question by somebody else rises above other turns."""
    memory.remember_many(
        [
            {"text": text, "speaker": who, "session": "s", "seq": n, "level": "raw"}
            for n, (who, text) in enumerate(
                [
                    ("Ana", "Which database should billing use?"),
                    ("Ben", "Probably the elephant one."),
                    ("Ana", "My cat is asleep."),
                    ("Ben", "Mine too."),
                ]
            )
        ]
    )

    answer = memory.recall("which database should billing use?", k=4)

    assert answer.hits[1].item.text == "Probably the elephant one."
    reasons = [r.why for r in answer.hits[1].evidence if r.by == Conversation().name]
    assert "answers" in reasons


@pytest.mark.parametrize("name", ["default", "siftcoder"])
def test_an_irrelevant_memory_of_today_does_not_win(memory: Memory, name: str) -> None:
    """A month-old exact match is not outranked by something unrelated and fresh."""
    memory.remember("auth token cache ttl is five minutes", occurred_at=NOW - timedelta(days=30))
    memory.remember("User prefers tabs over spaces", occurred_at=NOW)

    hits = memory.recall("auth token cache ttl", profile=load_profile(name)).hits

    assert hits[0].item.text.startswith("auth token")


def test_replay_is_the_score() -> None:
    """Every operation in order, from nothing."""
    chain = [
        Evidence("a", "seen", 9.0),
        Evidence("b", "add", 0.5),
        Evidence("c", "times", 3.0),
        Evidence("d", "set", 0.25),
        Evidence("e", "add", 0.5),
    ]

    assert replay(chain) == 0.75


@pytest.mark.parametrize("deep", [False, True])
def test_products_of_a_recall_run_on_one_thread(memory: Memory, deep: bool) -> None:
    """Idle threads of NumPy's BLAS cost a recall nothing; afterwards they are as before."""
    read, write = openblas_functions()
    before = read()
    write(2)
    asked, seen = read(), set()

    def watch(_: Item) -> float:
        seen.add(read())
        return 1.0

    try:
        memory.remember("The deploy key is in the vault.")
        memory.recall("Where is the deploy key?", boost=watch, deep=deep)
        assert seen == {1}
        assert read() == asked
    finally:
        write(before)
