"""What holds for every walk, whatever is stored and whatever is asked."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.model import Filters, Recall, replay, sort_by_score
from bethink.ports import Embedder
from bethink.retrieval.profile import load_profile, profile_names
from bethink.retrieval.stages.assemble import token_cost
from bethink.retrieval.stages.gate import Threshold
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row
from shapes import WORDS
from thorough import examples

PROFILES = sorted(profile_names())
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=7).map(" ".join)
drafts = st.lists(
    st.fixed_dictionaries(
        {
            "text": sentences,
            "kind": st.sampled_from(["fact", "decision", "note"]),
            "importance": st.floats(0, 1),
            "topic": st.sampled_from([None, "ops", "billing"]),
        },
        optional={"session": st.sampled_from(["s1", "s2"]), "speaker": st.just("Ana")},
    ),
    min_size=1,
    max_size=12,
)


@pytest.fixture(scope="module")
def shared(embedder: Embedder) -> Embedder:
    return embedder


def memory_of(entries: list[dict[str, object]], embedder: Embedder) -> Memory:
    opened = Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW))
    opened.remember_many(entries)
    return opened


def lawful(answer: Recall) -> None:
    for step in answer.steps:
        ids = [cand.item.id for cand in step.pool]
        assert len(ids) == len(set(ids)), step.name
        assert step.pool == sort_by_score(step.pool), step.name
        for cand in step.pool:
            assert replay(cand.evidence) == cand.score, step.name


@each_row("profile", PROFILES)
@given(entries=drafts, question=sentences)
@settings(max_examples=examples(10, 25))
def test_every_step_of_every_profile_is_lawful(
    shared: Embedder, profile: str, entries: list[dict[str, object]], question: str
) -> None:
    """Scores are the replay of their reasons, best first, unique, and repeatable."""
    with memory_of(entries, shared) as memory:
        answer = memory.recall(question, profile=profile, track=False)

        lawful(answer)
        again = memory.recall(question, profile=profile, track=False)
        assert again.hits == answer.hits
        assert (answer.status in ("found", "unsure")) == bool(answer.hits)


@given(entries=drafts, question=sentences, k=st.integers(1, 5), tokens=st.integers(1, 60))
@settings(max_examples=examples(10, 25))
def test_the_budget_is_never_exceeded(
    shared: Embedder, entries: list[dict[str, object]], question: str, k: int, tokens: int
) -> None:
    """At most k and at most the tokens asked for, but one if anything was relevant."""
    with memory_of(entries, shared) as memory:
        answer = memory.recall(question, k=k, max_tokens=tokens)

        assert len(answer.hits) <= k
        spent = sum(map(token_cost, answer.hits))
        assert spent <= tokens or len(answer.hits) == 1
        assert bool(answer.hits) == (answer.page.total > 0)


@given(entries=drafts, question=sentences)
@settings(max_examples=examples(8, 15))
def test_pages_make_up_the_whole(
    shared: Embedder, entries: list[dict[str, object]], question: str
) -> None:
    """Following the cursors gives every relevant memory once, in the order of the whole."""
    with memory_of(entries, shared) as memory:
        whole = [hit.item.id for hit in memory.recall(question, k=50, max_tokens=10**6).hits]
        page = memory.recall(question, k=2, max_tokens=10**6)
        seen = [hit.item.id for hit in page.hits]
        while page.page.cursor is not None:
            page = memory.recall(question, k=2, max_tokens=10**6, cursor=page.page.cursor)
            seen += [hit.item.id for hit in page.hits]

        assert seen == whole


@given(entries=drafts, question=sentences)
@settings(max_examples=examples(8, 15))
def test_pages_are_of_one_moment(
    shared: Embedder, entries: list[dict[str, object]], question: str
) -> None:
    """Whatever is written between the pages is not on them, and nothing comes twice.

    How telling a word is may change with what is written, and so who passes the gate.
    """
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=shared, clock=clock) as memory:
        there = {result.id for result in memory.remember_many(entries)}
        seen: list[str] = []
        cursor = None
        while True:
            page = memory.recall(question, k=2, max_tokens=10**6, cursor=cursor)
            seen += [hit.item.id for hit in page.hits]
            clock.forward(seconds=1)
            memory.remember(f"written between the pages {len(seen)} {question}")
            cursor = page.page.cursor
            if cursor is None:
                break

        assert len(seen) == len(set(seen))
        assert set(seen) <= there


@given(entries=drafts, question=sentences, low=st.floats(0, 1), more=st.floats(0, 1))
@settings(max_examples=examples(8, 20))
def test_a_higher_gate_never_lets_more_through(
    shared: Embedder, entries: list[dict[str, object]], question: str, low: float, more: float
) -> None:
    """What passes a strict gate passes a mild one."""
    with memory_of(entries, shared) as memory:
        bare = replace(load_profile("default"), gate=())
        mild = replace(bare, gate=(Threshold(min_score=low),))
        strict = replace(bare, gate=(Threshold(min_score=low + more),))

        loose = {hit.item.id for hit in memory.recall(question, profile=mild, k=200).hits}
        tight = {hit.item.id for hit in memory.recall(question, profile=strict, k=200).hits}

        assert tight <= loose


@given(entries=drafts, question=sentences)
@settings(max_examples=examples(8, 20))
def test_explaining_and_asking_change_nothing(
    shared: Embedder, entries: list[dict[str, object]], question: str
) -> None:
    """Recall, explain, why-not and compare leave the store and the ranking as they were."""
    with memory_of(entries, shared) as memory:
        before = memory.recall(question)
        generation = memory.store.admin.generation()

        stored = memory.browse(limit=100)
        for item in stored:
            memory.why_not(item.id, question)
            memory.explain(question, item.id)
        memory.compare(question, ["default", "siftcoder"])

        assert memory.store.admin.generation() == generation
        assert memory.recall(question).hits == before.hits


@given(entries=drafts, question=sentences, kind=st.sampled_from(["fact", "decision"]))
@settings(max_examples=examples(8, 20))
def test_only_what_a_filter_allows_is_returned(
    shared: Embedder, entries: list[dict[str, object]], question: str, kind: str
) -> None:
    """Expansion and neighbours keep to the filters too."""
    with memory_of(entries, shared) as memory:
        answer = memory.recall(question, filters=Filters(kinds=(kind,)), k=200)

        for step in answer.steps:
            assert all(cand.item.kind == kind for cand in step.pool), step.name
