"""Where the rules of a recall begin and end: the last token, the last candidate."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.api import recall as recall_api
from bethink.model import Item, Query, Recall
from bethink.ports import SearchResult
from bethink.retrieval import engine
from bethink.retrieval.context import Context
from bethink.retrieval.engine import recall
from bethink.retrieval.profile import load_profile
from bethink.testing import FixedClock
from corpus import NOW, days_ago
from fallible import with_methods
from rows import each_row

ASKED = "where is the production deploy key kept?"


def test_a_found_answer_has_no_nearest_miss(filled: Memory) -> None:
    """It is told only where nothing was relevant enough."""
    found = filled.recall(ASKED)
    missed = filled.recall("how do I tune a violin?")

    assert (found.status, found.nearest_miss) == ("found", None)
    assert missed.status == "nothing_matched"
    assert missed.nearest_miss is not None
    assert missed.nearest_miss.item.id in missed.reason


def test_a_page_beyond_the_end_has_no_nearest_miss(filled: Memory) -> None:
    """Something was found; it lies before."""
    beyond = filled.recall(ASKED, offset=1000)

    assert (beyond.status, beyond.hits, beyond.nearest_miss) == ("found", (), None)


@each_row(
    ("text", "k", "offset", "reach"),
    [
        ("question", 10, 0, 60),
        ("question", 40, 40, 60),
        ("question", 49, 0, 60),
        ("question", 51, 0, 102),
        ("question", 51, 102, 102),
        ("question", 200, 100, 400),
        ("", 10, 0, 60),
        ("", 30, 21, 102),
        ("", 25, 25, 100),
        ("", 200, 100, 600),
    ],
)
def test_who_asks_for_many_is_given_twice_as_many_to_choose_from(
    memory: Memory, text: str, k: int, offset: int, reach: int
) -> None:
    """Pages of fifty or more count double, whichever page; without a question all before it."""
    ctx = Context(Query(text, NOW, k=k, offset=offset), memory.store)

    assert ctx.candidate_limit(60) == reach
    assert ctx.candidate_limit(1000) == 1000


def test_what_was_seen_counts_as_asked_for(memory: Memory) -> None:
    """Without a question later pages reach as far as if all had been asked for at once."""
    query = Query("", NOW, k=10, seen=frozenset(range(50)))

    assert Context(query, memory.store).candidate_limit(60) == 120


def test_every_page_of_an_answer_tells_the_same_total(memory: Memory) -> None:
    """The pages are parts of one answer, with the default number of hits and others."""
    memory.remember_many([f"Ana tested the gateway number {n} of the shop" for n in range(130)])
    for k in (None, 10):
        first = memory.recall("who tested the gateway of the shop?", k=k, max_tokens=20_000)
        pages, seen = [first], len(first.hits)
        while pages[-1].page.has_more:
            pages.append(memory.recall(first.query.text, k=k, max_tokens=20_000, offset=seen))
            seen += len(pages[-1].hits)

        assert len(pages) > 1
        assert {one.page.total for one in pages} == {seen}


def test_what_fits_the_tokens_exactly_is_kept(filled: Memory) -> None:
    """The last one as well; with one token less it is left for the next page."""
    whole = filled.recall("deploy key, release train, webhook sender", k=4)
    assert len(whole.hits) > 1
    tokens = whole.page.tokens

    exact = filled.recall("deploy key, release train, webhook sender", k=4, max_tokens=tokens)
    less = filled.recall("deploy key, release train, webhook sender", k=4, max_tokens=tokens - 1)

    assert [hit.item.id for hit in exact.hits] == [hit.item.id for hit in whole.hits]
    assert [hit.item.id for hit in less.hits] == [hit.item.id for hit in whole.hits[:-1]]
    assert (less.page.stopped_by, less.page.has_more) == ("tokens", True)


@each_row(
    ("said", "meant"),
    [(-3.0, 0.0), (-0.001, 0.0), (-math.inf, 0.0), (math.nan, 0.0), (1.5, 1.0), (7.0, 1.0)],
)
def test_a_readers_score_counts_within_its_range(filled: Memory, said: float, meant: float) -> None:
    """Below nothing is nothing, above all is all: a reader cannot push a memory out."""

    def scores_by(score: float) -> dict[str, float]:
        def read(query: str, texts: Sequence[str]) -> list[float]:
            return [score if "vault" in text else 0.5 for text in texts]

        answer = filled.recall(ASKED, reranker=read, profile="abmind", track=False)
        return {hit.item.id: hit.score for hit in answer.hits}

    assert scores_by(said) == scores_by(meant)
    assert scores_by(said)


@each_row(
    ("event", "counts"),
    [
        ({"text": "The ledger outage was on 3 February 2026"}, True),
        ({"text": "The ledger outage lasted until 3 February 2026"}, False),
        ({"text": "The ledger outage"}, False),
        ({"text": "The ledger outage of 3 February 2026", "occurred_at": days_ago(5)}, False),
        ({"text": "The ledger outage of 1 March 2026", "occurred_at": days_ago(27)}, True),
    ],
)
def test_since_an_event_counts_from_when_it_happened(
    memory: Memory, event: dict[str, object], counts: bool
) -> None:
    """As it is kept; else as its one date tells, if that is no end; else when it was told."""
    memory.remember(**event, kind="incident")
    text = "We agreed on nightly ledger backups"
    memory.remember(text, occurred_at=days_ago(20), kind="decision")

    answer = memory.recall("which ledger backups did we agree on since the ledger outage?")

    (found,) = [hit for hit in answer.hits if hit.item.text == text]
    assert (found.reason("period") is not None) is counts


def test_the_plan_counts_a_name_by_its_rarest_part(memory: Memory) -> None:
    """A name of several words is as telling as the rarest of them."""
    memory.remember_many(["The tenant pays", "The tenant moved", "The tenant-header is checked"])

    (plan,) = [step for step in memory.recall("tenant-header").steps if step.name == "plan"]

    assert "tenant-header: 1" in plan.note


def test_a_page_of_the_past_goes_on_in_the_past() -> None:
    """The cursor alone says of which moment the first page was."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        texts = {f"The tenant pays rent {n}" for n in range(3)}
        kept = memory.remember_many(sorted(texts))
        clock.forward(days=1)
        first = memory.recall("tenant rent", k=1, as_of=clock.now)
        clock.forward(days=1)
        for one in kept:
            memory.update(one.id, text=f"The tenant rent is waived {one.id}")

        rest = memory.recall("tenant rent", k=5, cursor=first.page.cursor)

    assert {hit.item.text for hit in (*first.hits, *rest.hits)} == texts


def test_of_edges_alike_the_newest_is_told() -> None:
    """Where one memory tells several things about the same two: whatever order they came in."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        kept = memory.remember("A talk at the office", entities=["Ana Berg", "Nordwind"]).id
        for relation in ("owns", "works_for", "audits"):
            clock.forward(hours=1)
            memory.link("other:ana berg", relation, "other:nordwind", context=kept)

        answer = memory.recall("Ana Berg Nordwind", profile="abmind")

    (step,) = [step for step in answer.steps if step.name == "channel.s8"]
    assert [hit.evidence[-1].why for hit in step.pool] == ["Ana Berg —[audits]→ Nordwind"]


@pytest.mark.parametrize("then", [None, NOW])
def test_a_filter_by_name_knows_what_was_merged(then: datetime | None) -> None:
    """Memories that spoke of the other one before are inside, also when the question is
    about the time before."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        memory.remember("Ana Torres prefers tea")
        call = memory.remember("Call @atorres on Monday").id
        clock.forward(days=1)
        memory.merge_entities("Ana Torres", "person:atorres")
        clock.forward(days=1)

        found = memory.recall("whom to call on Monday?", entities=["Ana Torres"], as_of=then)

    assert call in [hit.item.id for hit in found.hits]


def test_a_recall_of_trusted_memories_reads_one_moment(tmp_path: Path) -> None:
    """What another program erases meanwhile is still in the answer, and nothing is damaged."""
    path = tmp_path / "space.db"
    with (
        Memory.open(path=path, embedder="hash") as memory,
        Memory.open(path=path, embedder="hash") as other,
    ):
        kept = memory.remember("The deploy key is kept in the vault").id
        memory.remember("The deploy key lies on the table", trust=0)

        def erasing(item: Item) -> float:
            if other.browse(ids=[kept]):
                other.forget(kept, erase=True)
            return 1.0

        answer = memory.recall(ASKED, min_trust=1, boost=erasing)

    assert ([hit.item.id for hit in answer.hits], answer.degraded) == ([kept], ())


@pytest.mark.parametrize(("search", "asked"), [("vector", ASKED), ("time", "what was in May?")])
def test_damage_that_one_search_meets_is_told(memory: Memory, search: str, asked: str) -> None:
    """Whichever way of finding meets memories that cannot be read, the answer says so."""
    memory.remember("The deploy key is kept in the vault", occurred_at=days_ago(20))
    found = SearchResult((), damage="some memories cannot be read")
    store = with_methods(memory.store, "search", **{search: lambda *_, **__: found})
    embedder = memory.embedder if search == "vector" else None
    ctx = Context(Query(asked, NOW, k=10), store, embedder)

    answer = recall(load_profile("default"), ctx)

    assert ("store", "some memories cannot be read") in answer.degraded


def test_few_threads_compute_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More would only keep one another from working; each gets its answer."""
    at_work, most, run = list[object](), list[int](), engine.run_pipeline

    def counted(*args: Any) -> Recall:
        at_work.append(args)
        most.append(len(at_work))
        time.sleep(0.01)  # so that others could come meanwhile
        try:
            return run(*args)
        finally:
            at_work.pop()

    monkeypatch.setattr(engine, "run_pipeline", counted)
    monkeypatch.setattr(recall_api, "_MAX_WAIT_S", 600.0)
    with Memory.open(path=tmp_path / "a.db", embedder="hash") as memory:
        memory.remember("The deploy key is kept in the vault")
        with ThreadPoolExecutor(6) as pool:
            asked = [f"{ASKED} {number}" for number in range(24)]  # each another question
            answers = list(pool.map(memory.recall, asked))

    assert all(answer.hits for answer in answers)
    assert 1 <= max(most) <= 2


def test_recalls_within_recalls_do_not_wait_for_ever(
    filled: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for the turn of its own caller begins all the same."""
    monkeypatch.setattr(recall_api, "_MAX_WAIT_S", 0.01)
    depths = iter(range(3))

    def asking(_: Item) -> float:
        if next(depths, None) is not None:
            assert filled.recall(ASKED, boost=asking).status == "found"
        return 1.0

    assert filled.recall(ASKED, boost=asking).status == "found"
    assert next(depths, None) is None
