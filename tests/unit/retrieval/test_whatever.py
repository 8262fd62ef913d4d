"""Questions for whatever there was at a time: no word in them has to be in a memory."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from bethink import Memory
from bethink.retrieval.profile import parse_profile
from bethink.retrieval.query_analysis import (
    CHINESE,
    ENGLISH,
    generic_words,
    is_generic_unspaced,
    kind_requests,
    requested_kinds,
)
from bethink.testing import FixedClock
from rows import each_row

NOW = datetime(2026, 11, 15, 14, 30, tzinfo=UTC)  # a Sunday
LANGUAGES = (ENGLISH, "de", "es", "fr", CHINESE)


def at(month: int, day: int) -> datetime:
    return datetime(2026, month, day, 10, tzinfo=UTC)


NOTES = [
    {"text": "Money is stored as integer cents", "kind": "decision", "occurred_at": at(8, 3)},
    {"text": "We decided to log as JSON", "kind": "decision", "occurred_at": at(8, 20)},
    {"text": "GraphQL goes: two clients are not worth it", "kind": "decision", "occurred_at": at(9, 2)},
    {"text": "The mobile app is built with Flutter", "kind": "fact", "occurred_at": at(9, 3)},
    {"text": "Certificate expired, login down for 40 minutes", "kind": "event", "occurred_at": at(9, 28)},
    {"text": "Release branches are cut on Thursdays", "kind": "fact", "occurred_at": at(10, 1)},
    {"text": "Carrier quotes could be cached for ten minutes", "kind": "note", "occurred_at": at(11, 14)},
    {"text": "The on-call phone rotates at ten", "kind": "fact", "occurred_at": at(11, 5)},
]  # fmt: skip
SEPTEMBER = {note["text"] for note in NOTES if note["occurred_at"].month == 9}
YESTERDAY = ["Carrier quotes could be cached for ten minutes"]


@pytest.fixture(scope="module")
def kept(embedder):
    """A memory of a few months."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(NOTES)
        yield opened


def texts(answer) -> list[str]:
    return [hit.item.text for hit in answer.hits]


@each_row(
    "question",
    [
        "what happened in September?",
        "what did we work on in September?",
        "what changed in September?",
        "what did we talk about in September?",
        "give me an overview of September",
        "show me everything from September 2026",
        "what do you remember from September?",
        "what did I tell you in September?",
        "Was ist im September passiert?",
        "¿qué pasó en septiembre?",
        "que s'est-il passé en septembre ?",
        "九月发生了什么?",
    ],
)
def test_whatever_there_was_is_the_answer(kept, question):
    """Everything of that time and nothing else, in whatever words it is asked for."""
    assert set(texts(kept.recall(question))) == SEPTEMBER


@each_row(
    "question",
    [
        "what did we decide in September?",
        "which decisions did we make in September?",
        "decisions from September",
        "Was haben wir im September entschieden?",
        "¿qué decidimos en septiembre?",
        "qu'avons-nous décidé en septembre ?",
        "九月我们决定了什么?",
    ],
)
def test_what_was_decided_comes_first(kept, question):
    """A decision of that time before all else of it, and no decision of another time."""
    found = texts(kept.recall(question))

    assert found[0] == "GraphQL goes: two clients are not worth it"
    assert set(found) <= SEPTEMBER


@pytest.mark.parametrize(
    "question",
    ["what broke in September?", "what went wrong in September?", "any problems in September?"],
)
def test_what_went_wrong_comes_first(kept, question):
    """So does an event where trouble is asked for."""
    assert texts(kept.recall(question))[0] == "Certificate expired, login down for 40 minutes"


@pytest.mark.parametrize(
    "question", ["what's new since yesterday?", "what changed since Friday?", "昨天发生了什么?"]
)
def test_a_time_may_be_open(kept, question):
    """Words that lead to a time only ask, too."""
    assert texts(kept.recall(question)) == YESTERDAY


def test_what_somebody_is_up_to_is_no_limit(kept):
    """ "Been up to lately" asks for the last days, not for all that was before."""
    assert texts(kept.recall("what have we been up to lately?")) == YESTERDAY


def test_a_profile_without_a_channel_for_times_answers_too(kept):
    """What is of that time is told by the memory, not by who found it."""
    by_meaning = '[[channels]]\nuse = "dense"\nmin_cosine = -1\n[[gate]]\nuse = "named_time"'
    profile = parse_profile(by_meaning, "by meaning", "by_meaning.toml")

    assert set(texts(kept.recall("what happened in September?", profile=profile))) == SEPTEMBER


def test_whoever_names_something_wants_that(kept):
    """With a word that says what it is about, it is a question like any other."""
    answer = kept.recall("what did we decide about Kubernetes in September?")

    assert answer.status != "found"


def test_german_nouns_are_no_names(embedder):
    """Every noun has a capital there: one that no memory holds is no stranger."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember("Für den Zoll brauchen wir bei Sendungen in die Schweiz die Tarifnummer")
        opened.remember("The gateway times out after sixty seconds")

        answer = opened.recall("Was brauchen wir für Pakete in die Schweiz?")

    assert texts(answer) == [
        "Für den Zoll brauchen wir bei Sendungen in die Schweiz die Tarifnummer"
    ]


@pytest.fixture(scope="module")
def busy(embedder):
    """A year with a decision a day, three of them in the week before this one, and much else."""
    words = ("queue", "cache", "login", "labels", "index", "search", "docs", "metrics")
    drafts = [
        {
            "text": f"We decided to rewrite the {words[n % 8]} for the {words[n // 8 % 8]}",
            "kind": "decision",
            "occurred_at": NOW - timedelta(days=14 + n, hours=1),
        }
        for n in range(64)
    ] + [
        {
            "text": f"The {words[n % 8]} of customer {n} has {n} workers",
            "kind": "fact",
            "occurred_at": NOW - timedelta(days=n % 60, hours=2),
        }
        for n in range(240)
    ]
    drafts += [
        {"text": text, "kind": "decision", "occurred_at": at(11, day)}
        for day, text in ((3, "Rows go to Postgres"), (5, "Helm is dropped"), (7, "Reviews by two"))
    ]
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(drafts)
        yield opened


def test_what_is_meant_is_not_crowded_out(busy):
    """Decisions of other weeks sound more like the question: they take nobody's place."""
    answer = busy.recall("what did we decide last week?")

    assert {hit.item.text for hit in answer.hits[:3]} == {
        "Rows go to Postgres", "Helm is dropped", "Reviews by two",
    }  # fmt: skip
    assert all(at(11, 1) < hit.item.when < at(11, 9) for hit in answer.hits)


def test_the_steps_say_what_they_looked_for(busy):
    """The channel for times tells of the kind, the one for meaning asks that time alone."""
    steps = {step.name: step for step in busy.recall("what did we decide last week?").steps}
    best = steps["channel.temporal"].pool[0]

    assert best.evidence[-1].why == "within last week, requested kind: decision"
    assert {cand.item.when.month for cand in steps["channel.dense"].pool} == {11}


def test_a_kind_that_the_caller_names_is_the_callers(busy):
    """A filter is not widened by what the question asks for."""
    answer = busy.recall("what did we decide last week?", kind="fact")

    assert {hit.item.kind for hit in answer.hits} == {"fact"}


def test_nothing_of_that_time_is_no_answer(kept):
    """What is of other times is not told instead."""
    assert not kept.recall("what happened in 2019?").hits
    assert not kept.recall("what did we decide in 2019?").hits


def test_what_was_told_later_is_of_the_time_it_names(embedder):
    """Whoever asks says "yesterday", whoever tells says the date; a year is not yesterday."""
    told = "The checkout broke on November 14: the certificate had expired"
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember(told)
        opened.remember("The printer broke twice in 2026")

        assert texts(opened.recall("what broke yesterday?")) == [told]


def test_since_a_day_looks_back(embedder):
    """Tasks of these days before all else of them, and nothing that is older."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember("Our tasks are told every morning", occurred_at=at(10, 1))
        opened.remember("Paint the quay", kind="task", occurred_at=at(11, 14))

        steps = {step.name: step for step in opened.recall("which tasks since Friday?").steps}

    assert [cand.item.text for cand in steps["expand.named_time"].pool] == ["Paint the quay"]


@each_row(
    ("question", "plan"),
    [
        ("what are our goals for next year?", "Our goals for 2027: a second harbour and a tug"),
        ("what is the plan for next month?", "The plan for December is to paint the quay"),
        ("what are our goals for this year?", "Our goals for the year: no leaks, no delays"),
        ("what happens next week?", "Dentist"),
    ],
)
def test_what_is_to_come_was_spoken_of_before(embedder, question, plan):
    """Of a time that is not over a memory may tell that is older; what is of it comes, too."""
    notes = [
        {"text": "Our goals for 2027: a second harbour and a tug", "occurred_at": at(10, 20)},
        {"text": "The plan for December is to paint the quay", "occurred_at": at(11, 1)},
        {
            "text": "Our goals for the year: no leaks, no delays",
            "occurred_at": at(1, 1) - timedelta(days=9),
        },
        {"text": "The on-call phone rotates at ten", "occurred_at": at(11, 5)},
        {"text": "Dentist", "kind": "event", "occurred_at": at(11, 18)},
    ]
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(notes)

        assert plan in texts(opened.recall(question))


@each_row(
    ("text", "kinds"),
    [
        ("what did we decide about the queue?", ("decision",)),
        ("how was the login fixed?", ("resolution",)),
        ("Welche Entscheidungen gab es zur Datenbank?", ("decision",)),
        ("我们决定了什么?", ("decision",)),
        ("what did we learn?", ("learning",)),
        ("which port does the gateway use?", ()),
        ("Was ist gestern kaputt gegangen?", ("incident", "event", "resolution", "bug")),
        ("Wohin ist Anna gegangen?", ()),
        ("¿cuándo salió Ana de la oficina?", ()),
        ("quelle est la règle pour les congés ?", ()),
        ("quand tombe la fête de Jeanne ?", ()),
        ("我们什么时候出发?", ()),
    ],
)
def test_the_kind_that_a_question_asks_for(text, kinds):
    """By a word of its own language."""
    assert requested_kinds(text) == kinds


def test_a_question_leans_to_the_kind_it_asks_for(kept):
    """With the reason beside the number; of a decision it says that it was asked for."""
    (money,) = (
        hit
        for hit in kept.recall("what did we decide about money?").hits
        if hit.item.text == "Money is stored as integer cents"
    )

    assert [
        (reason.value, reason.why) for reason in money.evidence if reason.by == "answer_kind"
    ] == [(0.035, "requested kind: decision")]


@each_row("language", LANGUAGES)
def test_every_language_has_its_words(language):
    """Each sort can be asked for in each; words are written as they are compared."""
    words = generic_words(language)

    assert all(sort.words for sort in kind_requests(language))
    assert all(word == word.lower() for word in words)
    assert language == CHINESE or all(word.isascii() for word in words)


def test_chinese_is_read_without_spaces():
    """What is left of a stretch when times and asking are taken away."""
    assert is_generic_unspaced("昨天发生了什么", ["昨天"])
    assert is_generic_unspaced("昨天发生了什么？", ["昨天"])
    assert not is_generic_unspaced("昨天数据库发生了什么", ["昨天"])
    assert not is_generic_unspaced("yesterday", [])


def test_a_minute_is_of_its_time(embedder):
    """The end of a time is not part of it."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        midnight = datetime(2026, 11, 15, tzinfo=UTC)
        for text, moment in (
            ("The last build of the day was green", midnight - timedelta(minutes=1)),
            ("The first build of the day was red", midnight),
        ):
            opened.remember(text, occurred_at=moment)

        assert texts(opened.recall("what happened yesterday?")) == [
            "The last build of the day was green"
        ]
