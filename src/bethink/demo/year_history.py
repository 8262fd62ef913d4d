"""The events of the demo year in time order; deterministic for a given seed.

Includes the templates for everyday noise: chat, observations, edits, open questions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from bethink.demo.year_words import (
    CAVEATS,
    DECISIONS,
    FACTS,
    GOALS,
    INCIDENTS,
    PLANS,
    PREFERENCES,
    PRODUCT,
    SERVICES,
    TEAM,
    Incident,
    Person,
)
from bethink.model import FileEdit

# What two people say to each other, turn by turn; {a} and {b} are their names.
TALKS = (
    (
        "Did you see the fog over {harbour} this morning?",
        "Yes, the {time} sailing waited for twenty minutes.",
        "I will look whether the notice went out.",
        "It did, {n} people got it. Coffee?",
    ),
    (
        "Can you review my branch for {service}? It is {n} lines.",
        "After lunch. Is it the one with the {thing}?",
        "That one. Nothing urgent.",
        "Looks good, two remarks about names.",
        "Thanks, I will take both.",
    ),
    (
        "The build of {service} is red again.",
        "The same test as on {day}?",
        "No, this time it is the {thing}.",
        "I have run it {n} times and it passes here.",
        "Then let us leave it and look tomorrow.",
    ),
    (
        "Who brings cake on {day}?",
        "I do, with {fruit}.",
        "Lovely. We are {n} this time.",
    ),
    (
        "A passenger from {harbour} wrote that the {thing} is confusing.",
        "What did they try to do?",
        "Change the date of a ticket on a phone.",
        "That is three clicks too many, I agree.",
        "I have put it on the list for {day}.",
        "Good. I answer them in the meantime.",
    ),
    (
        "How was your weekend?",
        "We sailed to {harbour}, wind force {n}.",
        "Brave. We stayed in and made jam of {fruit}.",
    ),
    (
        "The meeting about the {thing} is moved to {day}.",
        "Same room?",
        "Same room, {time}.",
        "I will be ten minutes late.",
    ),
    (
        "I am looking at the numbers of {service} for {harbour}.",
        "Anything odd?",
        "A little more traffic on {day}, around {time}.",
        "That is the market. It is so every month.",
        "Right, I had forgotten.",
    ),
    (
        "Is somebody else in the office on {day}?",
        "Me, until {time}.",
        "Then I bring the cable for the {thing}.",
    ),
    (
        "The demo for {harbour} went well.",
        "Did the {thing} hold?",
        "It did, {n} people watched and nobody noticed the rain.",
        "Great. Write down what they asked.",
    ),
)

# Small things somebody or something noted about a service: (layer, words).
OBSERVATIONS = (
    ("context", "{service} answered {n} requests in the hour before {time}"),
    ("context", "{harbour} had {n} passengers more than last {day}"),
    ("context", "{person} looked after {service} on {day}, nothing to report"),
    ("context", "A visitor from {harbour} asked {person} about {service}"),
    ("implementation", "{service} uses the {thing} in module {module} line {n}"),
    ("implementation", "{module} of {service} has {n} tests since {day}"),
    ("implementation", "The {thing} of {service} is read from {module}"),
    ("implementation", "{person} moved the {thing} of {service} into {module}"),
    ("emotion", "{person} was glad about the quiet {day} with {service}"),
    ("emotion", "{person} was tired after the {thing} of {service}"),
)

NOTES = (
    "{person} paired with {other} on {service} for the {thing}",
    "Reviewed {n} lines of {service} with {other}",
    "{person} answered {n} mails from {harbour}",
    "{person} wrote the minutes of the talk about the {thing}",
    "Sorted {n} old tickets of {service}",
    "{harbour} sent a photo of the {thing} at the pier",
    "{person} tried the {thing} on a slow phone, {n} seconds",
    "Small release of {service}, {n} changes, nobody noticed",
    "{person} showed {other} how {module} works",
    "Cleaned up the {thing} in {module}",
)

QUESTIONS = (
    "Should the {thing} of {service} get a separate page?",
    "Why does {harbour} print twice as many tickets on {day}?",
    "Could {module} be shared between {service} and {second}?",
    "Who wants to try the {thing} in {harbour}?",
)

INTENTS = (
    "name the {thing} better",
    "make the {thing} faster by a cache",
    "test the {thing} with {n} passengers",
    "fix a typing error in the {thing}",
    "log less in the {thing}",
    "prepare the {thing} for {harbour}",
)

HARBOURS = (
    "Skarholm", "Ostervik", "Hvaler", "Lindesund", "Brattnes", "Kirkeby", "Tangvall",
    "Fiskaa", "Solvaer", "Granvik", "Marstein", "Eikoy",
)  # fmt: skip
THINGS = (
    "receipt form", "seat legend", "delay banner", "fare table", "login page", "printer queue",
    "status light", "search box", "voucher field", "language menu", "calendar", "weather panel",
    "queue monitor", "export button", "group discount", "luggage rule",
)  # fmt: skip
MODULES = (
    "fares.py", "holds.py", "boards.ts", "Pass.kt", "feeds.py", "notices.py", "refunds.py",
    "decks.ts", "queue.py", "labels.ts", "Scan.kt", "books.py",
)  # fmt: skip
FRUITS = ("plums", "apples", "cloudberries", "rhubarb", "cherries", "blueberries")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")

EVENT_COUNT = 5_000
MONTH = timedelta(days=365 / 12)
SEED = 31
# How the everyday part is made up: of so many parts, what.
_EVENT_SHARES = {"turn": 40, "observation": 20, "note": 18, "edit": 14, "question": 4, "again": 4}


class DemoEvent(NamedTuple):
    """One event: a memory, as the fields of a draft, or an edit of a file."""

    at: datetime
    draft: Mapping[str, Any] | None = None
    edit: FileEdit | None = None


def year_events(start: datetime, count: int = EVENT_COUNT, seed: int = SEED) -> list[DemoEvent]:
    """Generate ``count`` events from ``start`` on, oldest first."""
    told = [*_story_events(start), *_fact_events(start)]
    everyday = _EverydayEvents(start, random.Random(seed))  # noqa: S311 - the same year every time
    told += everyday.events(max(0, count - len(told)))
    return sorted(told, key=lambda one: (one.at, _event_key(one)))


def _event_key(event: DemoEvent) -> str:
    if event.draft is not None:
        return str(event.draft["id"])
    return event.edit.path if event.edit is not None else ""


def _story_events(start: datetime) -> Iterator[DemoEvent]:
    """Events of the main story, which the questions refer to."""

    def at(month: float) -> datetime:
        return start + month * MONTH

    for number, (topic, text) in enumerate(PRODUCT):
        yield _draft_event(
            at(0.02 + 0.01 * number), f"product-{number}", text, kind="fact", topic=topic
        )
    for number, (month, text) in enumerate(GOALS):
        yield _draft_event(
            at(month), f"goal-{number}", text, kind="goal", layer="goal", importance=0.85
        )
    for number, (month, text) in enumerate(CAVEATS):
        yield _draft_event(at(month), f"caveat-{number}", text, kind="caveat", layer="caveat")
    for person in TEAM:
        yield from _team_events(person, start)
    for incident in INCIDENTS:
        yield from _incident_events(incident, at(incident.month))
    for plan in PLANS:
        about = {"topic": plan.key}
        yield _draft_event(at(plan.month), f"plan-{plan.key}", plan.intention, kind="plan", **about)
        yield _draft_event(
            at(plan.after), f"outcome-{plan.key}", plan.outcome, kind="outcome", **about
        )


def _fact_events(start: datetime) -> Iterator[DemoEvent]:
    """Events that state facts, decisions and preferences."""

    def at(month: float) -> datetime:
        return start + month * MONTH

    for chain in FACTS:
        for number, (month, text) in enumerate(chain.told):
            about = {"kind": "fact", "topic": chain.topic, "importance": 0.7}
            yield _draft_event(at(month), f"{chain.key}-{number}", text, **about)
    for number, (month, topic, text) in enumerate(DECISIONS):
        about = {"kind": "decision", "topic": topic, "importance": 0.75}
        yield _draft_event(at(month), f"decision-{number}", text, **about)
    for number, (month, text) in enumerate(PREFERENCES):
        yield _draft_event(at(month), f"preference-{number}", text, kind="preference", topic="team")


def _draft_event(at: datetime, key: str, text: str, **about: Any) -> DemoEvent:
    fields = {"id": key, "text": text, "occurred_at": at, "source": "team notes", **about}
    return DemoEvent(at, draft=fields)


def _team_events(person: Person, start: datetime) -> Iterator[DemoEvent]:
    about = {"kind": "event", "topic": "team", "entities": [f"person:{person.name}"]}
    if person.joins:
        text = f"{person.name} joined the team for {person.work}."
        yield _draft_event(start + person.joins * MONTH, f"joined-{person.name}", text, **about)
    if person.leaves is not None:
        text = f"{person.name} left the team; the farewell was at the harbour of Skarholm."
        yield _draft_event(start + person.leaves * MONTH, f"left-{person.name}", text, **about)


def _incident_events(incident: Incident, at: datetime) -> Iterator[DemoEvent]:
    """Events of one ticket from the first symptom to the lesson, over two or three days."""
    ticket, about = (
        incident.ticket,
        {"entities": [f"project:{incident.service}"], "tags": ["incident"]},
    )
    steps = (
        (0, "seen", "event", f"{ticket}: {incident.seen} ({incident.service})"),
        (2, "doubt", "question", f"{ticket}: {incident.doubt}"),
        (5, "blocker", "event", f"{ticket} is blocked on {incident.blocker}"),
        (28, "cause", "event", f"{ticket}: the root cause was {incident.cause}"),
        (31, "fix", "resolution", f"{ticket} is fixed: {incident.fix}"),
        (50, "lesson", "learning", f"Learned from {ticket}: {incident.lesson}"),
    )
    for hours, part, kind, text in steps:
        weight = 0.7 if part in ("cause", "fix", "lesson") else 0.5
        moment = at + timedelta(hours=hours)
        yield _draft_event(moment, f"{ticket}-{part}", text, kind=kind, importance=weight, **about)


class _EverydayEvents:
    """Generator of everyday noise between the main events."""

    def __init__(self, start: datetime, rng: random.Random) -> None:
        self._start = start
        self._rng = rng
        self._made = 0

    def events(self, count: int) -> Iterator[DemoEvent]:
        whole = sum(_EVENT_SHARES.values())
        left = {kind: count * share // whole for kind, share in _EVENT_SHARES.items()}
        left["note"] += count - sum(left.values())
        while left["turn"] > 0:
            turns = self._conversation()[: left["turn"]]
            left["turn"] -= len(turns)
            yield from turns
        for kind in ("observation", "note", "edit", "question", "again"):
            for _ in range(left[kind]):
                yield getattr(self, f"_{kind}")(self._random_work_time())

    def _random_work_time(self) -> datetime:
        """A random working hour of a random working day."""
        while True:
            day = self._start + timedelta(days=self._rng.randrange(365))
            if day.weekday() < 5:
                minutes = self._rng.randrange(8 * 60, 18 * 60)
                return day.replace(hour=0, minute=0, second=0) + timedelta(minutes=minutes)

    def _team_at(self, at: datetime) -> list[str]:
        month = (at - self._start) / MONTH
        return [one.name for one in TEAM if one.joins <= month < (one.leaves or 99)]

    def _fill_template(self, template: str, at: datetime) -> str:
        rng = self._rng
        person, other = rng.sample(self._team_at(at), 2)
        service, second = rng.sample(SERVICES, 2)
        return template.format(
            person=person, other=other, service=service, second=second,
            harbour=rng.choice(HARBOURS), thing=rng.choice(THINGS),
            module=rng.choice(MODULES), fruit=rng.choice(FRUITS),
            day=rng.choice(DAYS), n=rng.randrange(3, 400),
            time=f"{rng.randrange(6, 22):02}:{rng.randrange(0, 60, 5):02}",
        )  # fmt: skip

    def _key(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made:04}"

    def _conversation(self) -> list[DemoEvent]:
        at = self._random_work_time()
        first, second = self._rng.sample(self._team_at(at), 2)
        session, turns = self._key("talk"), []
        for number, words in enumerate(self._rng.choice(TALKS)):
            moment = at + timedelta(minutes=number)
            about = {
                "level": "raw", "source": "chat", "session": session, "seq": number,
                "speaker": (first, second)[number % 2],
            }  # fmt: skip
            text = self._fill_template(words, at)
            turns.append(_draft_event(moment, f"{session}-{number}", text, **about))
        return turns

    def _observation(self, at: datetime) -> DemoEvent:
        layer, words = self._rng.choice(OBSERVATIONS)
        about = {"layer": layer, "kind": "observation", "source": "watch"}
        weight = round(self._rng.uniform(0.1, 0.4), 2)
        return _draft_event(
            at, self._key("seen"), self._fill_template(words, at), importance=weight, **about
        )

    def _note(self, at: datetime) -> DemoEvent:
        text = self._fill_template(self._rng.choice(NOTES), at)
        return _draft_event(at, self._key("note"), text, kind="event", importance=0.3)

    def _question(self, at: datetime) -> DemoEvent:
        text = self._fill_template(self._rng.choice(QUESTIONS), at)
        return _draft_event(at, self._key("question"), text, kind="question", importance=0.3)

    def _edit(self, at: datetime) -> DemoEvent:
        service, module = self._rng.choice(SERVICES), self._rng.choice(MODULES)
        intent = self._fill_template(self._rng.choice(INTENTS), at)
        edit = FileEdit(f"src/{service}/{module}", self._rng.choice(("edit", "read")), at, intent)
        return DemoEvent(at, edit=edit)

    def _again(self, at: datetime) -> DemoEvent:
        """Repeat an earlier decision in slightly other words, without its date."""
        said = [one for one in DECISIONS[:4] if self._start + one[0] * MONTH < at]
        if not said:
            return self._note(at)
        _, topic, text = self._rng.choice(said)
        fields = {
            "id": self._key("again"), "source": "team notes", "kind": "decision", "topic": topic,
            "text": f"{text.rstrip('.')}, {self._rng.choice(self._team_at(at))} said.",
        }  # fmt: skip
        return DemoEvent(at, draft=fields)
