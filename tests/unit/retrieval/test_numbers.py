"""A number that a question names finds the memory that holds it, among others that are alike."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from bethink import Memory
from bethink.model import Candidate, Query, sort_by_score
from bethink.retrieval.context import Context
from bethink.retrieval.stages.adjust import NumberBoost
from rows import each_row

TEXTS = [
    "Ticket 881 is blocked by legal",
    "Ticket 882 waits for design",
    "Ticket 883 is done",
    "ADR 1: we use PostgreSQL for storage",
    "ADR 2: we use Redis for queues",
    "ADR 3: the frontend is written in Preact",
    "Release 3.1 fixed the login bug",
    "Release 3.2 broke the export to CSV",
    "Release 3.3 fixed the export to CSV",
]


@pytest.fixture(scope="module")
def series(embedder):
    with Memory.open(":memory:", embedder=embedder) as opened:
        opened.remember_many([{"text": text, "id": f"n{at}"} for at, text in enumerate(TEXTS)])
        yield opened


@each_row(
    ("question", "first"),
    [
        ("what about ticket 882?", 1),
        ("state of ticket 881", 0),
        ("what does ADR 2 say?", 4),
        ("what did release 3.1 fix?", 6),
        ("what did release 3.2 do?", 7),
    ],
)
def test_the_one_of_a_series_that_is_named_is_first(series, question, first):
    """To a model of meaning they are nearly the same."""
    assert series.recall(question).hits[0].item.text == TEXTS[first]


@each_row(
    ("question", "gains"),
    [
        ("what about tickets 881 and 882?", [0.05, 0.05, 0.0]),
        ("what about ticket 882?", [0.0, 0.1, 0.0]),
        ("what about ticket 999?", [0.0, 0.0, 0.0]),
        ("which tickets are open?", None),
        ("which tickets were open in 2026?", None),
    ],
)
def test_each_gains_by_the_share_of_the_telling_numbers(series, question, gains):
    """One that none holds tells nothing; those of a time are left to the time."""
    items = series.store.items.get(["n0", "n1", "n2"])
    pool = sort_by_score(Candidate(items[f"n{at}"]) for at in range(3))
    now = datetime(2026, 11, 19, tzinfo=UTC)
    ctx = Context(Query(question, now), series.store, series.embedder)
    stage = NumberBoost(weight=0.1)

    if gains is None:
        assert stage.skip(pool, ctx)
    else:
        found = {cand.item.id: cand.score for cand in stage(pool, ctx)}
        assert [found[f"n{at}"] for at in range(3)] == gains


def test_a_number_that_all_hold_tells_nothing(series):
    """What every candidate has moves none of them."""
    items = series.store.items.get(["n1"])
    pool = (Candidate(items["n1"]), Candidate(items["n1"]))
    now = datetime(2026, 11, 19, tzinfo=UTC)
    ctx = Context(Query("ticket 882?", now), series.store, series.embedder)

    assert NumberBoost()(pool, ctx) is pool
