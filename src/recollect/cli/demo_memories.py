"""What `recollect demo` remembers: the notes of a small team that warns of floods."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple


class Note(NamedTuple):
    """A memory of the demo, told so many days ago."""

    text: str
    days: float
    kind: str | None = None
    topic: str | None = None
    about: dict[str, Any] = {}  # noqa: RUF012 - read only


# The key is made up; it only has to look like one to be taken out.
_KEY = "AKIA" + "Q3EXAMPL" + "7WZ2KD5N"

NOTES = (
    Note("Lantern texts people along the river when the water rises.", 90, "fact", "product"),
    Note(
        "Goal: a warning reaches every phone within 90 seconds of a gauge alarm.",
        90, "goal", "product", {"layer": "goal", "importance": 0.9},
    ),
    Note(
        "We chose PostgreSQL over MongoDB because gauge readings need transactions.",
        84, "decision", "database", {"importance": 0.8},
    ),
    Note("Gauge readings arrive by MQTT every 5 minutes from 14 stations.", 80, "fact", "gauges"),
    Note("Station Marrow Bridge reports in feet, all others in metres.", 79, "caveat", "gauges"),
    Note("Tests run with `make test`; they need Docker for the database.", 75, "fact", "testing"),
    Note("The SMS worker retries a failed message 5 times.", 70, "fact", "sms"),
    Note("We pay 0.04 euro for a text message, so retries cost real money.", 70, "fact", "sms"),
    Note(
        "Never send test alarms to the production gateway: in March 2,100 people were woken.",
        62, "caveat", "sms", {"layer": "caveat", "pinned": True},
    ),
    Note("The nightly backup of the database runs at 02:30 UTC on db-1.", 58, "fact", "database"),
    Note("Restoring the backup was rehearsed and took 11 minutes.", 50, "event", "database"),
    Note("Ines owns the gauge parser in src/gauges/parse_reading.py.", 49, "fact", "gauges"),
    Note("parse_reading() raises StaleReading after 30 minutes of silence.", 48, "fact", "gauges"),
    Note("Tomas is on call in odd weeks, Ines in even weeks.", 40, "fact", "team"),
    Note(
        "We moved from ProviderOne to TextHarbour because messages arrived late.",
        33, "decision", "sms",
    ),
    Note("TextHarbour allows 80 messages a second; above that it answers 429.", 32, "fact", "sms"),
    Note(
        "The alarm threshold of Marrow Bridge was raised to 4.2 m after the spring flood.",
        21, "event", "gauges",
    ),
    Note(
        "Learned: send messages village by village, or the last ones come minutes late.",
        14, "learning", "sms",
    ),
    Note(f"The bucket for gauge photos is opened with the key {_KEY}.", 9, "fact", "gauges"),
    # Told before, almost in the same words.
    Note("The nightly backup of the database runs at 02:30 UTC, on db-1.", 6, "fact", "database"),
    Note("Deploys go out on Tuesdays after the weather briefing.", 5, "fact", "release"),
)  # fmt: skip

TALK = (
    ("Ines", "The Marrow Bridge alarm came four minutes late last night. What happened?"),
    ("Tomas", "TextHarbour throttled us. We sent all villages at once and hit the limit."),
    ("Ines", "Then let us send upstream villages first, they have the least time."),
    ("Tomas", "Agreed, sorted by distance to the gauge. I will have it on Tuesday."),
)

TOLD_TWICE = (
    "The nightly backup of the database runs at 02:30 UTC on db-1.",
    "The nightly backup of the database runs at 02:30 UTC, on db-1.",
)
CORRECTION = (
    "The SMS worker retries a failed message 5 times.",
    "The SMS worker retries a failed message 3 times.",
)


def told(now: datetime) -> Iterator[dict[str, Any]]:
    """Drafts, oldest first: the notes, then the talk."""
    for note in NOTES:
        named = {"kind": note.kind, "topic": note.topic}
        when = now - timedelta(days=note.days)
        yield {
            "text": note.text,
            "source": "team notes",
            "occurred_at": when,
            **named,
            **note.about,
        }
    start = now - timedelta(days=2)
    for number, (speaker, text) in enumerate(TALK):
        yield {
            "text": text,
            "level": "raw",
            "speaker": speaker,
            "session": "incident review",
            "seq": number,
            "source": "chat",
            "occurred_at": start + timedelta(minutes=number),
        }
