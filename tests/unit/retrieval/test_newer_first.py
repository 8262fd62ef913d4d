"""Newer statements come directly before older ones of the same thing, and the older are marked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations

import pytest

from bethink import Memory
from bethink.core.words import differs_only_in_values
from bethink.ingest.updates import MIN_SUPERSESSION
from bethink.model import OLDER, PERHAPS_NEWER, Candidate, Link, Node, Query, replay, sort_by_score
from bethink.models.update_model import update_model
from bethink.ports import PairVerdict
from bethink.render.quoting import quote_hit
from bethink.render.wire import recall_json
from bethink.retrieval.answer_text import render_text
from bethink.retrieval.context import Context
from bethink.retrieval.stages.diversify import NewerFirst
from bethink.retrieval.stages.gate import Threshold
from bethink.testing import FixedClock
from rows import each_row

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
THEN, LATER = "2026-11-02T10:00:00Z", "2026-11-09T10:00:00Z"
PAIRS = [
    ("The CI takes 14 minutes", "CI is down to 6 minutes now", "how long does CI take?"),
    ("Jo is the designer", "Priya takes over the design from Jo", "who is the designer?"),
    (
        "Our staging server is in Frankfurt",
        "Correction: our staging server is in Dublin, not in Frankfurt",
        "where is the staging server?",
    ),
    (
        "We decided to use MongoDB",
        "We no longer use MongoDB, we use PostgreSQL",
        "which database do we use?",
    ),
    (
        "Let's use redis for the stock counters",
        "Drop the redis idea, we stay with Postgres advisory locks",
        "do we use redis for stock?",
    ),
    (
        "My favourite editor is vim",
        "Actually I now prefer Helix over vim",
        "which editor do I prefer?",
    ),
    (
        "Python 3.11 is the minimum version",
        "The minimum version is Python 3.12",
        "what is the minimum python version?",
    ),
    (
        "The release is on 1 December",
        "The release was postponed to 15 December",
        "when is the release?",
    ),
    (
        "Refunds need one approval",
        "Refunds need two approvals from now on",
        "how many approvals does a refund need?",
    ),
    (
        "Das Büro ist in der Hauptstraße 4",
        "Das Büro ist jetzt in der Gartenstraße 9",
        "wo ist das Büro?",
    ),
]


@pytest.fixture
def memory():
    with Memory.open(":memory:", embedder="encoder", clock=lambda: NOW) as opened:
        opened.remember("Lunch was soup on that day", occurred_at="2026-11-03T10:00:00Z")
        opened.remember("The office plants need water twice a week", occurred_at=THEN)
        yield opened


def _told(memory, older, newer, **about):
    first = memory.remember(older, occurred_at=THEN)
    second = memory.remember(newer, occurred_at=LATER, **about)
    return first.id, second.id


@each_row(("older", "newer", "question"), PAIRS)
def test_the_newer_statement_comes_first(memory, older, newer, question):
    """A statement that is judged a correction is above the older one, which stays, marked."""

    def judge(pairs):
        sure = [MIN_SUPERSESSION if pair == (older, newer) else 0.01 for pair in pairs]
        return [PairVerdict(one, 0.0, 1.0 - one, 0.0) for one in sure]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(update_model, "judge", judge)
        first, second = _told(memory, older, newer)
    answer = memory.recall(question)
    order = [hit.item.id for hit in answer.hits]
    assert order.index(second) < order.index(first)
    assert next(hit for hit in answer.hits if hit.item.id == first).see_newer == second


def test_of_most_corrections_the_model_is_certain():
    """Of some so much that the older one is marked."""
    verdicts = update_model.judge([(older, newer) for older, newer, _ in PAIRS])
    assert sum(verdict.updates >= 0.5 for verdict in verdicts) >= 6
    assert sum(verdict.updates >= MIN_SUPERSESSION for verdict in verdicts) >= 3


def test_the_mark_is_on_every_surface_and_the_score_can_be_replayed(memory, monkeypatch):
    """JSON, text and quotes name the newer memory; evidence still adds up to the score."""
    monkeypatch.setattr(update_model, "judge", lambda pairs: [PairVerdict(1, 0, 0, 0)] * len(pairs))
    first, second = _told(memory, *PAIRS[0][:2])
    answer = memory.recall(PAIRS[0][2])
    assert [hit.item.id for hit in answer.hits][:2] == [second, first]
    older = answer.hits[1]
    assert f"{OLDER} {second}" in render_text(answer)
    assert f"{OLDER} {second}" in quote_hit(older).head
    shown = {hit["id"]: hit["see_newer"] for hit in recall_json(answer)["items"]}
    assert (shown[first], shown[second]) == (second, None)
    for hit in answer.hits:
        assert replay(hit.evidence) == pytest.approx(hit.score)
    scores = [hit.score for hit in answer.hits]
    assert scores == sorted(scores, reverse=True)


def test_of_three_statements_the_newest_is_first(memory):
    """The newest statement comes above both of those before it."""
    texts = [
        "The worker pool limit is 4 threads",
        "The worker pool limit is now 8 threads, raised for the sale",
        "The worker pool limit is now 12 threads, raised again",
    ]
    ids = [
        memory.remember(text, occurred_at=f"2026-11-0{day}T10:00:00Z").id
        for day, text in enumerate(texts, start=2)
    ]
    answer = memory.recall("what is the worker pool limit?")
    order = [hit.item.id for hit in answer.hits if hit.item.id in ids]
    assert order[0] == ids[-1]


def test_a_less_trusted_memory_does_not_come_before_a_more_trusted_one(memory):
    """An untrusted source cannot place its statement above the owner's."""
    first, second = _told(memory, *PAIRS[0][:2], trust=0, source="web", source_class="web")
    answer = memory.recall(PAIRS[0][2])
    older = next(hit for hit in answer.hits if hit.item.id == first)
    assert older.see_newer is None
    assert [hit.item.id for hit in answer.hits].index(first) == 0
    assert second != first


def test_one_speaker_does_not_correct_another(memory):
    """What one person says of themselves does not replace what another said."""
    first = memory.remember("I live in Lisbon near the river", occurred_at=THEN, speaker="Ana").id
    memory.remember("I moved, I now live in Porto near the river", occurred_at=LATER, speaker="Ben")
    answer = memory.recall("who lives near the river?")
    assert all(hit.see_newer is None for hit in answer.hits if hit.item.id == first)


@each_row(
    "question",
    [
        "how long did CI originally take?",
        "how long did CI take before?",
        "previously, how long did CI take",
        "what was the former duration of the CI?",
        "wie lange dauerte die CI früher?",
    ],
)
def test_a_question_for_the_past_gets_the_earlier_value_first(memory, question):
    """Who asks how it was before is shown that, and no mark."""
    first, second = _told(memory, *PAIRS[0][:2])
    hits = memory.recall(question).hits
    order = [hit.item.id for hit in hits if hit.item.id in (first, second)]
    assert order[0] == first
    assert all(hit.see_newer is None for hit in hits)


def test_a_question_for_a_time_that_has_passed_keeps_the_order(memory):
    """What was so then is not outdated then."""
    _told(memory, *PAIRS[0][:2])
    answer = memory.recall("how long did CI take on 3 November 2026?")
    step = next(step for step in answer.steps if step.name == "diversify.newer_first")
    assert step.status == "skipped"


# --- The stage by itself, with links and scores that are given ---------------------------------

CHAIN = [
    "The worker pool limit is 4 threads since spring",
    "The worker pool limit is 8 threads since summer",
    "The worker pool limit is 12 threads since autumn",
]


@pytest.fixture
def chain(embedder, monkeypatch):
    """Three values of one thing, and no link between them yet."""
    monkeypatch.setattr(update_model, "judge", lambda pairs: [PairVerdict(0, 0, 0, 1)] * len(pairs))
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        for day, text in enumerate(CHAIN, start=2):
            opened.remember(text, id=f"value-{day}", occurred_at=f"2026-11-0{day}T10:00:00Z")
        yield opened


def _link(memory, newer, older, confidence=0.92):
    kind = "supersedes" if confidence >= 0.85 else "updates"
    ends = (Node("item", f"value-{newer}"), Node("item", f"value-{older}"))
    memory.store.graph.add_links([Link(*ends, kind, confidence=confidence)], now=NOW)


# The laws hold for any thresholds; those of the profile are measured elsewhere.
STAGE = NewerFirst(fit=3.9, even=0.35)


def _ordered(memory, scores, question="what is the worker pool limit?", stage=STAGE):
    """Ids in the order that the stage gives, each with its mark, and all of its evidence."""
    items = memory.store.items.get([f"value-{number}" for number in scores])
    pool = sort_by_score(
        Candidate(items[f"value-{number}"]).with_evidence("start", "add", score)
        for number, score in scores.items()
    )
    context = Context(Query(question, NOW), memory.store, memory.embedder)
    return list(pool if stage.skip(pool, context) else stage(pool, context))


def _marks(found):
    return [(cand.item.id, cand.see_newer) for cand in found]


def test_a_certain_link_lifts_directly_above_the_older(chain):
    """Not above what was before both; the score can be replayed."""
    _link(chain, 4, 2)
    found = _ordered(chain, {3: 2.0, 2: 1.0, 4: 0.8})
    assert _marks(found) == [("value-3", None), ("value-4", None), ("value-2", "value-4")]
    assert found[1].score == pytest.approx(1.0, abs=1e-5)
    assert all(replay(cand.evidence) == pytest.approx(cand.score) for cand in found)


@each_row(
    ("confidence", "newer", "lifted"),
    [
        (0.4, 0.95, True),
        (0.4, 0.1, False),
        (0.12, 0.95, True),
        (0.12, 0.5, False),
        (0.92, 0.1, True),
    ],
)
def test_a_link_counts_with_how_well_the_newer_one_fits(chain, confidence, newer, lifted):
    """An uncertain one does not lift what scores far lower; a certain one does."""
    _link(chain, 3, 2, confidence)
    found = _ordered(chain, {2: 1.0, 3: newer})
    assert [cand.item.id for cand in found] == (
        ["value-3", "value-2"] if lifted else ["value-2", "value-3"]
    )
    marked = lifted and confidence >= 0.85
    assert {cand.see_newer for cand in found} == ({None, "value-3"} if marked else {None})


@each_row(
    ("confidence", "newer", "asked", "kept"),
    [
        (0.4, 0.8, "what is the worker pool limit?", True),
        (0.4, 0.2, "what is the worker pool limit?", False),
        (0.12, 0.8, "what is the worker pool limit?", False),
        (None, 0.8, "what is the worker pool limit?", False),
        (0.4, 0.8, "what was the worker pool limit before?", True),
    ],
)
def test_what_may_be_newer_is_not_cut_off(chain, confidence, newer, asked, kept):
    """It stays where it is, with its score, and says what it may restate."""
    if confidence:
        _link(chain, 3, 2, confidence)
    found = tuple(_ordered(chain, {4: 2.0, 2: 1.9, 3: newer}, asked, NewerFirst()))
    context = Context(Query(asked, NOW), chain.store, chain.embedder)

    cut = Threshold(min_share=0.5)(found, context)

    assert [cand.item.id for cand in found] == ["value-4", "value-2", "value-3"]
    assert [cand.item.id for cand in cut] == ["value-4", "value-2", "value-3"][: 2 + kept]
    reasons = [(one.why, one.via) for one in found[2].evidence if one.by == "newer_first"]
    assert reasons == ([(PERHAPS_NEWER, "value-2")] if kept else [])
    assert found[2].score == newer


def test_what_may_be_newer_is_cut_off_with_the_older_one(chain):
    """It is kept for the sake of one that is in the answer."""
    _link(chain, 3, 2, 0.4)
    found = tuple(_ordered(chain, {4: 2.0, 2: 0.9, 3: 0.2}, stage=NewerFirst()))
    context = Context(Query("what is the worker pool limit?", NOW), chain.store, chain.embedder)

    assert [one.item.id for one in Threshold(min_share=0.5)(found, context)] == ["value-4"]


@each_row(("confidence", "first"), [(0.2, "value-3"), (0.92, "value-4")])
def test_a_doubtful_update_that_fits_better_anyway_stays_above(chain, confidence, first):
    """It may be about something else; a probable one is below what is newer still."""
    _link(chain, 3, 2, confidence)
    _link(chain, 4, 2)
    found = _ordered(chain, {3: 2.0, 2: 1.0, 4: 0.8})
    assert found[0].item.id == first


@each_row("scores", [dict(zip(order, (1.0, 0.9, 0.8), strict=True))
                     for order in permutations((2, 3, 4))], ids=str)  # fmt: skip
@each_row("links", [((3, 2), (4, 3)), ((3, 2), (4, 2), (4, 3))], ids=["steps", "all"])
def test_a_chain_of_three_ends_with_the_newest_first(chain, scores, links):
    """Whatever the scores; each that is outdated names a newer one."""
    for newer, older in links:
        _link(chain, newer, older)
    found = _ordered(chain, scores)
    assert [cand.item.id for cand in found] == ["value-4", "value-3", "value-2"]
    assert found[0].see_newer is None
    assert found[1].see_newer == "value-4"
    assert found[2].see_newer in ("value-3", "value-4")


@each_row(
    ("question", "first"),
    [
        ("what was the worker pool limit before it was 12 threads?", "value-3"),
        ("what was the worker pool limit before 8 threads?", "value-2"),
        ("what was the previous worker pool limit?", "value-3"),
        ("what was the worker pool limit before?", "value-3"),
    ],
)
@each_row("best", [2, 3, 4])
def test_a_past_question_lifts_the_value_before_the_named_one(chain, question, first, best):
    """Or before the newest where it names none; nothing is marked, whichever fits best."""
    _link(chain, 3, 2)
    _link(chain, 4, 3)
    found = _ordered(chain, {2: 0.8, 3: 0.8, 4: 0.8} | {best: 1.0}, question)
    assert found[0].item.id == first
    assert {cand.see_newer for cand in found} == {None}
    assert all(replay(cand.evidence) == pytest.approx(cand.score) for cand in found)


@each_row(("confidence", "doubted", "first"), [(0.92, 0.18, "value-3"), (0.18, 0.18, "value-4")])
def test_a_past_question_lifts_nothing_that_fits_it_far_worse(chain, confidence, doubted, first):
    """A doubtful link to a note on something else made that the value before."""
    _link(chain, 4, 3, confidence)
    _link(chain, 4, 2, doubted)
    scores = {4: 1.0, 3: 1.0 if confidence > 0.9 else 0.5, 2: 0.5}

    found = _ordered(chain, scores, "what was the worker pool limit before?", NewerFirst())

    assert found[0].item.id == first


@each_row(
    ("question", "confidence", "lifted"),
    [
        ("what is the worker pool limit?", 0.92, True),
        ("is the worker pool limit 4 threads?", 0.5, False),
        ("is the worker pool limit 8 threads?", 0.5, True),
        ("are the 16 worker pools limited?", 0.5, True),
        ("is the worker pool limit 4 threads?", 0.92, True),
    ],
)
def test_a_number_that_only_the_older_one_has_asks_for_it(chain, question, confidence, lifted):
    """Unless the link is certain and more than a value has changed."""
    _link(chain, 3, 2, confidence)
    found = _ordered(chain, {2: 1.0, 3: 0.9}, question)
    assert found[0].item.id == ("value-3" if lifted else "value-2")
    assert found[-1].see_newer == ("value-3" if lifted and confidence > 0.9 else None)


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        ("ADR {}: we use PostgreSQL for storage", "what does ADR {} say?"),
        ("Version 3.{} fixes the login bug", "what does version 3.{} fix?"),
        ("Employee number {} works in sales", "where does employee number {} work?"),
        ("Invoice INV-{} is paid", "is INV-{} paid?"),
    ],
)
def test_members_of_a_series_are_found_by_their_numbers(memory, told, asked):
    """Statements that are told alike, one of each, do not update one another."""
    texts = [told.format(number) for number in range(1, 13)]
    for text in texts:
        memory.remember(text)
    for number, text in enumerate(texts, start=1):
        first = memory.recall(asked.format(number)).hits[0]
        assert (first.item.text, first.see_newer) == (text, None)


def test_a_link_counts_only_between_two_of_the_first(chain):
    """What comes after those stays where it is, and marks nothing."""
    _link(chain, 3, 2)
    scores = {4: 1.0, 2: 0.9, 3: 0.8}
    found = _ordered(chain, scores, stage=replace(STAGE, top=2))
    assert _marks(found) == [("value-4", None), ("value-2", None), ("value-3", None)]
    found = _ordered(chain, scores, stage=replace(STAGE, top=3))
    assert _marks(found) == [("value-4", None), ("value-3", None), ("value-2", "value-3")]


def test_a_link_counts_without_vectors(chain):
    """The model judged the two when they were stored; no similarity is asked for."""
    with Memory.open(":memory:", embedder="none", clock=lambda: NOW) as bare:
        bare.import_(list(chain.export()))
        _link(bare, 3, 2)
        found = _ordered(bare, {2: 1.0, 3: 0.9})
    assert _marks(found) == [("value-3", None), ("value-2", "value-3")]


@each_row(
    ("about", "lifted"),
    [
        ({}, True),
        ({"speaker": "user", "level": "raw"}, True),
        ({"speaker": "Ana", "level": "raw"}, False),
        ({"speaker": "user", "level": "raw", "session": "s"}, False),
        ({"tags": ["long"]}, False),
    ],
    ids=str,
)
def test_where_updates_are_rare_a_link_must_be_surer(chain, about, lifted):
    """What a named speaker or the same session says later mostly tells of something else.

    Long texts speak of several things.
    """
    more = ". We talked of the weather" * 24 if "tags" in about else ""
    for number, text in ((7, "I drink my coffee black"), (8, "I drink my coffee with milk")):
        day = f"2026-11-0{number}T10:00:00Z"
        said = {"session": f"s{number}"} | about if "speaker" in about else about
        chain.remember(text + more, id=f"value-{number}",
                       occurred_at=day, **said)  # fmt: skip
    scores = {7: 1.0, 8: 0.9}
    stage = replace(STAGE, among_people=3.0, same_session=3.0, length=2.0)

    _link(chain, 8, 7, 0.5)
    found = [cand.item.id for cand in _ordered(chain, scores, stage=stage)]
    assert found == (["value-8", "value-7"] if lifted else ["value-7", "value-8"])

    _link(chain, 8, 7, 0.99)
    found = _ordered(chain, scores, stage=stage)
    assert _marks(found) == [("value-8", None), ("value-7", "value-8")]


@each_row("revised", [2, 3, 4])
def test_links_give_the_order_whatever_was_revised_since(chain, revised):
    """A memory that has another topic now is as old as its words."""
    for newer, older in ((3, 2), (4, 3)):
        _link(chain, newer, older)
    chain.session.clock = lambda: NOW + timedelta(days=1)
    chain.update(f"value-{revised}", topic="pools")
    found = _ordered(chain, {2: 1.0, 3: 0.9, 4: 0.8})
    assert _marks(found) == [("value-4", None), ("value-3", "value-4"), ("value-2", "value-3")]


def test_changed_words_are_as_new_as_the_change(chain):
    """The first memory has the newest words; what was newest before comes below."""
    chain.session.clock.forward(minutes=1)
    chain.update("value-2", text="The worker pool limit is 16 threads", occurred_at=None)
    for newer, older in ((4, 3), (2, 4)):
        _link(chain, newer, older)
    found = _ordered(chain, {3: 1.0, 4: 0.9, 2: 0.8})
    assert _marks(found) == [("value-2", None), ("value-4", "value-2"), ("value-3", "value-4")]


@each_row(
    "change",
    [
        {"metadata": {"user_id": "ben"}},
        {"speaker": "Ben"},
        {"trust": 0},
        {"text": "Is the worker pool limit 12 threads?"},
        {"occurred_at": "2026-10-01T10:00:00Z"},
    ],
    ids=str,
)
def test_a_link_counts_only_while_the_newer_may_replace_the_older(chain, change):
    """Whoever speaks now, however trusted and old the two are now."""
    chain.update("value-3", **change)
    _link(chain, 3, 2)
    found = _ordered(chain, {2: 1.0, 3: 0.9})
    assert _marks(found) == [("value-2", None), ("value-3", None)]


def test_links_to_what_is_not_found_do_nothing(chain):
    """A newer one that the question does not find neither lifts nor marks."""
    _link(chain, 4, 2)
    found = _ordered(chain, {2: 1.0, 3: 0.5})
    assert _marks(found) == [("value-2", None), ("value-3", None)]


@each_row(
    ("one", "other", "differ"),
    [
        ("The timeout is 30 s", "The timeout is 60 s", True),
        ("Ask Ana about it", "Ask Ben about it", True),
        ("We met in the park", "We met at the park", False),
        ("Kept 30 days", "Kept", False),
        ("Python 3.11 is the minimum", "The minimum is Python 3.12", True),
        ("The CEO is Maria Lopez", "The CEO is Tom Berg", True),
        ("Ana looked after billing on Monday", "Ana looked after search on Friday", False),
        ("Ana showed Ben the test", "Kim showed Lee the test", False),
    ],
)
def test_values_are_numbers_and_names(one, other, differ):
    """Another value is one number or name in the place of another, with nothing else changed."""
    assert differs_only_in_values(one, other) is differ
