"""The year at Ferrywell as events in the order of time: always the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from recollect.cli import demo_year_talk as talk
from recollect.cli.demo_year_cases import INCIDENTS
from recollect.cli.demo_year_words import (
    CAVEATS,
    DECISIONS,
    FACTS,
    GOALS,
    PLANS,
    PREFERENCES,
    PRODUCT,
    SERVICES,
    TEAM,
    Incident,
    Person,
)
from recollect.model import FileEdit

EVENTS = 5_000
MONTH = timedelta(days=365 / 12)
SEED = 31
# How the everyday part is made up: of so many parts, what.
_SHARES = {"turn": 40, "observation": 20, "note": 18, "edit": 14, "question": 4, "again": 4}


class Happened(NamedTuple):
    """One event: something told, as the fields of a draft, or an edit of a file."""

    at: datetime
    draft: Mapping[str, Any] | None = None
    edit: FileEdit | None = None


def year(start: datetime, count: int = EVENTS, seed: int = SEED) -> list[Happened]:
    """``count`` events from ``start`` on, oldest first."""
    told = [*_told(start), *_facts(start)]
    everyday = _Everyday(start, random.Random(seed))  # noqa: S311 - the same year every time
    told += everyday.events(max(0, count - len(told)))
    return sorted(told, key=lambda one: (one.at, _name(one)))


def _name(event: Happened) -> str:
    if event.draft is not None:
        return str(event.draft["id"])
    return event.edit.path if event.edit is not None else ""


def _told(start: datetime) -> Iterator[Happened]:
    """What the year is about, and what questions can be asked of."""

    def at(month: float) -> datetime:
        return start + month * MONTH

    for number, (topic, text) in enumerate(PRODUCT):
        yield _draft(at(0.02 + 0.01 * number), f"product-{number}", text, kind="fact", topic=topic)
    for number, (month, text) in enumerate(GOALS):
        yield _draft(at(month), f"goal-{number}", text, kind="goal", layer="goal", importance=0.85)
    for number, (month, text) in enumerate(CAVEATS):
        yield _draft(at(month), f"caveat-{number}", text, kind="caveat", layer="caveat")
    for person in TEAM:
        yield from _came_and_went(person, start)
    for incident in INCIDENTS:
        yield from _broke(incident, at(incident.month))
    for plan in PLANS:
        about = {"topic": plan.key}
        yield _draft(at(plan.month), f"plan-{plan.key}", plan.meant, kind="plan", **about)
        yield _draft(at(plan.after), f"outcome-{plan.key}", plan.became, kind="outcome", **about)


def _facts(start: datetime) -> Iterator[Happened]:
    """What is so, what was decided, and what people like."""

    def at(month: float) -> datetime:
        return start + month * MONTH

    for chain in FACTS:
        for number, (month, text) in enumerate(chain.told):
            about = {"kind": "fact", "topic": chain.topic, "importance": 0.7}
            yield _draft(at(month), f"{chain.key}-{number}", text, **about)
    for number, (month, topic, text) in enumerate(DECISIONS):
        about = {"kind": "decision", "topic": topic, "importance": 0.75}
        yield _draft(at(month), f"decision-{number}", text, **about)
    for number, (month, text) in enumerate(PREFERENCES):
        yield _draft(at(month), f"preference-{number}", text, kind="preference", topic="team")


def _draft(at: datetime, key: str, text: str, **about: Any) -> Happened:
    fields = {"id": key, "text": text, "occurred_at": at, "source": "team notes", **about}
    return Happened(at, draft=fields)


def _came_and_went(person: Person, start: datetime) -> Iterator[Happened]:
    about = {"kind": "event", "topic": "team", "entities": [f"person:{person.name}"]}
    if person.joins:
        text = f"{person.name} joined the team for {person.work}."
        yield _draft(start + person.joins * MONTH, f"joined-{person.name}", text, **about)
    if person.leaves is not None:
        text = f"{person.name} left the team; the farewell was at the harbour of Skarholm."
        yield _draft(start + person.leaves * MONTH, f"left-{person.name}", text, **about)


def _broke(one: Incident, at: datetime) -> Iterator[Happened]:
    """A ticket from the first sight to the lesson, over two or three days."""
    ticket, about = one.ticket, {"entities": [f"project:{one.service}"], "tags": ["incident"]}
    steps = (
        (0, "seen", "event", f"{ticket}: {one.seen} ({one.service})"),
        (2, "doubt", "question", f"{ticket}: {one.doubt}"),
        (5, "blocker", "event", f"{ticket} is blocked on {one.blocker}"),
        (28, "cause", "event", f"{ticket}: the root cause was {one.cause}"),
        (31, "fix", "resolution", f"{ticket} is fixed: {one.fix}"),
        (50, "lesson", "learning", f"Learned from {ticket}: {one.lesson}"),
    )
    for hours, part, kind, text in steps:
        weight = 0.7 if part in ("cause", "fix", "lesson") else 0.5
        moment = at + timedelta(hours=hours)
        yield _draft(moment, f"{ticket}-{part}", text, kind=kind, importance=weight, **about)


class _Everyday:
    """What fills the days between."""

    def __init__(self, start: datetime, rng: random.Random) -> None:
        self._start = start
        self._rng = rng
        self._made = 0

    def events(self, count: int) -> Iterator[Happened]:
        whole = sum(_SHARES.values())
        left = {kind: count * share // whole for kind, share in _SHARES.items()}
        left["note"] += count - sum(left.values())
        while left["turn"] > 0:
            turns = self._talk()[: left["turn"]]
            left["turn"] -= len(turns)
            yield from turns
        for kind in ("observation", "note", "edit", "question", "again"):
            for _ in range(left[kind]):
                yield getattr(self, f"_{kind}")(self._moment())

    def _moment(self) -> datetime:
        """Some working hour of some working day."""
        while True:
            day = self._start + timedelta(days=self._rng.randrange(365))
            if day.weekday() < 5:
                minutes = self._rng.randrange(8 * 60, 18 * 60)
                return day.replace(hour=0, minute=0, second=0) + timedelta(minutes=minutes)

    def _there(self, at: datetime) -> list[str]:
        month = (at - self._start) / MONTH
        return [one.name for one in TEAM if one.joins <= month < (one.leaves or 99)]

    def _filled(self, words: str, at: datetime) -> str:
        rng = self._rng
        person, other = rng.sample(self._there(at), 2)
        service, second = rng.sample(SERVICES, 2)
        return words.format(
            person=person, other=other, service=service, second=second,
            harbour=rng.choice(talk.HARBOURS), thing=rng.choice(talk.THINGS),
            module=rng.choice(talk.MODULES), fruit=rng.choice(talk.FRUITS),
            day=rng.choice(talk.DAYS), n=rng.randrange(3, 400),
            time=f"{rng.randrange(6, 22):02}:{rng.randrange(0, 60, 5):02}",
        )  # fmt: skip

    def _key(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made:04}"

    def _talk(self) -> list[Happened]:
        at = self._moment()
        first, second = self._rng.sample(self._there(at), 2)
        session, turns = self._key("talk"), []
        for number, words in enumerate(self._rng.choice(talk.TALKS)):
            moment = at + timedelta(minutes=number)
            about = {
                "level": "raw", "source": "chat", "session": session, "seq": number,
                "speaker": (first, second)[number % 2],
            }  # fmt: skip
            text = self._filled(words, at)
            turns.append(_draft(moment, f"{session}-{number}", text, **about))
        return turns

    def _observation(self, at: datetime) -> Happened:
        layer, words = self._rng.choice(talk.OBSERVATIONS)
        about = {"layer": layer, "kind": "observation", "source": "watch"}
        weight = round(self._rng.uniform(0.1, 0.4), 2)
        return _draft(at, self._key("seen"), self._filled(words, at), importance=weight, **about)

    def _note(self, at: datetime) -> Happened:
        text = self._filled(self._rng.choice(talk.NOTES), at)
        return _draft(at, self._key("note"), text, kind="event", importance=0.3)

    def _question(self, at: datetime) -> Happened:
        text = self._filled(self._rng.choice(talk.QUESTIONS), at)
        return _draft(at, self._key("question"), text, kind="question", importance=0.3)

    def _edit(self, at: datetime) -> Happened:
        service, module = self._rng.choice(SERVICES), self._rng.choice(talk.MODULES)
        intent = self._filled(self._rng.choice(talk.INTENTS), at)
        edit = FileEdit(f"src/{service}/{module}", self._rng.choice(("edit", "read")), at, intent)
        return Happened(at, edit=edit)

    def _again(self, at: datetime) -> Happened:
        """Somebody tells again what was decided, in a few words more, and not of which day."""
        said = [one for one in DECISIONS[:4] if self._start + one[0] * MONTH < at]
        if not said:
            return self._note(at)
        _, topic, text = self._rng.choice(said)
        fields = {
            "id": self._key("again"), "source": "team notes", "kind": "decision", "topic": topic,
            "text": f"{text.rstrip('.')}, {self._rng.choice(self._there(at))} said.",
        }  # fmt: skip
        return Happened(at, draft=fields)
