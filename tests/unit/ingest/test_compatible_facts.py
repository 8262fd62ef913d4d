"""Facts that may both be so never hide each other."""

from __future__ import annotations

import pytest

from bethink import Memory
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

BOTH_SO = [
    ("The meeting room is on floor 3", "The meeting room is on Zoom"),
    ("The API is on port 8080", "The API is on AWS"),
    ("The deploy is on Fridays", "The deploy is on Tuesdays at noon"),
    ("My son's birthday is 3 May", "My son's birthday is in 2015"),
    ("The limit is 5 per user", "The limit is 100 per company"),
    ("The password for wifi is hunter42", "The password for Netflix is hunter43"),
    ("The price of the basic plan is 10 euros", "The price of the pro plan is 20 euros"),
    ("The contact is Ana", "The contact is Ben for invoices"),
    ("The service runs in Kubernetes", "The service runs on eu-west-1"),
    ("Backups are stored in S3", "Backups are stored in Glacier"),
    ("The app is hosted on Heroku", "The app is hosted in Frankfurt"),
    ("The limit is 10 MB", "The limit is 5 files"),
    ("The gym opens at 6:00", "The gym opens on Sundays"),
    ("The course starts in October", "The course starts at 18:00"),
    ("The queue is Redis", "The queue is 500 long"),
    ("The database is PostgreSQL", "The database is 40 GB"),
    ("The invoice is 4711", "The invoice is 200 euros"),
    ("The train takes 2 hours", "The train takes 40 minutes to Leipzig"),
    ("The dose is 20 mg in the morning", "The dose is 10 mg in the evening"),
    ("The retry count is 3 in production", "The retry count is 0 in tests"),
    ("The timeout is 30 s on Linux", "The timeout is 60 s on Windows"),
    ("The timeout is 30 seconds", "The timeout is 5 seconds for uploads"),
    ("The hotel costs 100 euros per night", "The hotel costs 700 euros in total"),
    ("I like tea", "I no longer like tea in the evening"),
    ("We use Redis", "We do not use Redis for sessions"),
    ("We no longer use Jenkins for iOS", "We use Jenkins"),
    ("The event starts on Friday", "The event starts at 9 am"),
    ("Ana lives in Berlin", "Ana lives in Germany"),
    ("I live in Madrid", "I live in a flat"),
    ("The cat is called Milo", "The cat is called Luna"),
    ("The bug is in parser.py", "The bug is in lexer.py"),
    ("The ticket is ABC-123", "The ticket is ABC-124"),
    ("My brother is Tom", "My brother is Jerry"),
    ("The app runs on iOS", "The app runs on Android"),
    ("The price is 10 euros", "The price is 15 dollars"),
]
CORRECTED = [
    ("The deploy key is in vault A", "The deploy key moved to vault B"),
    ("The deploy key is in vault A", "The deploy key is in vault B"),
    ("The API timeout is 30 seconds", "The API timeout is 90 seconds"),
    ("The API timeout is 30 seconds", "The API timeout is now 2 minutes"),
    ("Production runs on eu-west-1", "Production moved to us-east-1"),
    ("Ana's phone number is 555-0142", "Ana's new phone number is 555-0199"),
    ("Billing uses PostgreSQL 16", "Billing now uses PostgreSQL 17"),
    ("The default branch is master", "The default branch is main"),
    ("Tilde owns the price-engine", "The owner of the price-engine is now Joonas"),
    (
        "The rate limit of the gateway is 60 requests per second",
        "The rate limit of the gateway was raised to 120 requests per second",
    ),
    ("My favourite colour is green", "My favourite colour is blue"),
]


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Memory:
    return Memory.open(":memory:", embedder="none", clock=clock)


@each_row(("first", "second"), BOTH_SO)
def test_both_stay(memory: Memory, clock: FixedClock, first: str, second: str) -> None:
    """Whichever of the two is told first."""
    for one, other in ((first, second), (second, first)):
        old = memory.remember(one, topic=one)
        clock.forward(minutes=1)
        new = memory.remember(other, topic=one)
        assert [memory.get(told.id).status for told in (old, new)] == ["active", "active"]


@each_row(("first", "second"), CORRECTED)
def test_a_correction_is_still_one(
    memory: Memory, clock: FixedClock, first: str, second: str
) -> None:
    """The same sentence with another value, or one that says that something changed."""
    old = memory.remember(first)
    clock.forward(minutes=1)
    memory.remember(second)

    assert memory.get(old.id).status == "superseded"


@pytest.mark.parametrize(
    "about",
    [{"valid_from": "2027-06-01"}, {"valid_to": "2026-12-01"}, {"topic": "other"}],
    ids=["later", "for a while", "elsewhere"],
)
def test_what_holds_later_or_elsewhere_hides_nothing(
    memory: Memory, clock: FixedClock, about: dict
) -> None:
    """The fact of today stays until it is not so any more."""
    old = memory.remember("The API timeout is 30 seconds", topic="api")
    clock.forward(minutes=1)
    memory.remember("The API timeout is 90 seconds", **{"topic": "api", **about})

    assert memory.get(old.id).status == "active"
