"""A year of a team that sells ferry tickets, with monthly maintenance.

``year.json`` has the story, and the questions with the text each answer must contain;
``everyday.json`` the templates of everyday noise. The year is the same for a given seed.
Months are counted from its first day; 0.5 is the middle of the first month.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.model import FileEdit

if TYPE_CHECKING:
    from bethink.maintain.runner import Plan
    from bethink.memory import Memory
    from bethink.model import Thread


class YearQuestion(NamedTuple):
    """A question, text of the answering memory, and text of the outdated ones."""

    text: str
    expected: str
    outdated: tuple[str, ...] = ()


class Person(NamedTuple):
    """A member of the team; ``leaves`` is None for those who stayed."""

    name: str
    work: str
    joins: float = 0.0
    leaves: float | None = None


class FactHistory(NamedTuple):
    """A fact that was corrected: month and text of each version, oldest first."""

    key: str
    topic: str
    statements: tuple[tuple[float, str], ...]


class Incident(NamedTuple):
    """An incident: symptom, open question, blocker, cause, fix and lesson."""

    ticket: str
    month: float
    service: str
    seen: str
    doubt: str
    blocker: str
    cause: str
    fix: str
    lesson: str


class PlanOutcome(NamedTuple):
    """An intention, and its later outcome."""

    key: str
    month: float
    intention: str
    after: float
    outcome: str


def _load(name: str) -> Json:
    data: Json = json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8"))
    return data


_YEAR, _EVERYDAY = _load("year"), _load("everyday")
TEAM = tuple(Person(**one) for one in _YEAR["team"])
SERVICES: list[str] = _YEAR["services"]
FACTS = tuple(FactHistory(**one) for one in _YEAR["facts"])
PLANS = tuple(PlanOutcome(**one) for one in _YEAR["plans"])
INCIDENTS = tuple(Incident(**one) for one in _YEAR["incidents"])
DECISIONS: list[tuple[float, str, str]] = _YEAR["decisions"]
CORRECTED_QUESTIONS = tuple(YearQuestion(**one) for one in _YEAR["questions"]["corrected"])
STABLE_QUESTIONS = tuple(YearQuestion(**one) for one in _YEAR["questions"]["stable"])
UNANSWERABLE_QUESTIONS: list[str] = _YEAR["questions"]["unanswerable"]

EVENT_COUNT = 5_000
MONTH = timedelta(days=365 / 12)
SEED = 31
# Composition of the everyday events: kind and weight.
_EVENT_SHARES = {"turn": 40, "observation": 20, "note": 18, "edit": 14, "question": 4, "again": 4}


class YearEvent(NamedTuple):
    """One event: a memory, as the fields of a draft, or an edit of a file."""

    at: datetime
    draft: Mapping[str, object] | None = None
    edit: FileEdit | None = None


def year_events(start: datetime, count: int = EVENT_COUNT, seed: int = SEED) -> list[YearEvent]:
    """Generate ``count`` events from ``start`` on, oldest first."""
    events = [*_story_events(start), *_team_events(start)]
    events += (one for incident in INCIDENTS for one in _incident_events(incident, start))
    everyday = _EverydayEvents(start, random.Random(seed))
    events += everyday.events(max(0, count - len(events)))
    return sorted(events, key=lambda event: (event.at, _event_key(event)))


def _event_key(event: YearEvent) -> str:
    if event.draft is not None:
        return str(event.draft["id"])
    return event.edit.path if event.edit is not None else ""


# Lists of the story, each a month and a text, and what their memories have in common.
_TOLD_LISTS: dict[str, Json] = {
    "goal": {"layer": "goal", "importance": 0.85},
    "caveat": {"layer": "caveat"},
    "preference": {"topic": "team"},
}


def _story_events(start: datetime) -> Iterator[YearEvent]:
    """Events of the main story, which the questions refer to."""

    def tell(month: float, key: str, text: str, **about: object) -> YearEvent:
        return _draft_event(start + month * MONTH, key, text, **about)

    for number, (topic, text) in enumerate(_YEAR["product"]):
        month = 0.02 + 0.01 * number
        yield tell(month, f"product-{number}", text, kind="fact", topic=topic)
    for kind, about in _TOLD_LISTS.items():
        for number, (month, text) in enumerate(_YEAR[f"{kind}s"]):
            yield tell(month, f"{kind}-{number}", text, kind=kind, **about)
    for plan in PLANS:
        yield tell(plan.month, f"plan-{plan.key}", plan.intention, kind="plan", topic=plan.key)
        yield tell(plan.after, f"outcome-{plan.key}", plan.outcome, kind="outcome", topic=plan.key)
    for chain in FACTS:
        facts = {"kind": "fact", "topic": chain.topic, "importance": 0.7}
        for number, (month, text) in enumerate(chain.statements):
            yield tell(month, f"{chain.key}-{number}", text, **facts)
    for number, (month, topic, text) in enumerate(DECISIONS):
        decided = {"kind": "decision", "topic": topic, "importance": 0.75}
        yield tell(month, f"decision-{number}", text, **decided)


def _team_events(start: datetime) -> Iterator[YearEvent]:
    for person in TEAM:
        name = person.name
        about = {"kind": "event", "topic": "team", "entities": [f"person:{name}"]}
        if person.joins:
            text = f"{name} joined the team for {person.work}."
            yield _draft_event(start + person.joins * MONTH, f"joined-{name}", text, **about)
        if person.leaves is not None:
            text = f"{name} left the team; the farewell was at the harbour of Skarholm."
            yield _draft_event(start + person.leaves * MONTH, f"left-{name}", text, **about)


def _draft_event(at: datetime, key: str, text: str, **about: object) -> YearEvent:
    fields = {"id": key, "text": text, "occurred_at": at, "source": "team notes", **about}
    return YearEvent(at, draft=fields)


def _incident_events(incident: Incident, start: datetime) -> Iterator[YearEvent]:
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
        moment = start + incident.month * MONTH + timedelta(hours=hours)
        yield _draft_event(moment, f"{ticket}-{part}", text, kind=kind, importance=weight, **about)


class _EverydayEvents:
    """Generator of everyday noise between the main events."""

    def __init__(self, start: datetime, rng: random.Random) -> None:
        self._start = start
        self._rng = rng
        self._made = 0

    def events(self, count: int) -> Iterator[YearEvent]:
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
        return [person.name for person in TEAM if person.joins <= month < (person.leaves or 99)]

    def _fill_template(self, template: str, at: datetime) -> str:
        rng = self._rng
        person, other = rng.sample(self._team_at(at), 2)
        service, second = rng.sample(SERVICES, 2)
        return template.format(
            person=person, other=other, service=service, second=second,
            harbour=rng.choice(_EVERYDAY["harbours"]), thing=rng.choice(_EVERYDAY["things"]),
            module=rng.choice(_EVERYDAY["modules"]), fruit=rng.choice(_EVERYDAY["fruits"]),
            day=rng.choice(_EVERYDAY["days"]), n=rng.randrange(3, 400),
            time=f"{rng.randrange(6, 22):02}:{rng.randrange(0, 60, 5):02}",
        )  # fmt: skip

    def _key(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made:04}"

    def _conversation(self) -> list[YearEvent]:
        at = self._random_work_time()
        first, second = self._rng.sample(self._team_at(at), 2)
        session, turns = self._key("talk"), []
        for number, words in enumerate(self._rng.choice(_EVERYDAY["talks"])):
            moment = at + timedelta(minutes=number)
            about = {
                "level": "raw", "source": "chat", "session": session, "seq": number,
                "speaker": (first, second)[number % 2],
            }  # fmt: skip
            text = self._fill_template(words, at)
            turns.append(_draft_event(moment, f"{session}-{number}", text, **about))
        return turns

    def _observation(self, at: datetime) -> YearEvent:
        layer, words = self._rng.choice(_EVERYDAY["observations"])
        about = {"layer": layer, "kind": "observation", "source": "watch"}
        weight = round(self._rng.uniform(0.1, 0.4), 2)
        return _draft_event(
            at, self._key("seen"), self._fill_template(words, at), importance=weight, **about
        )

    def _note(self, at: datetime) -> YearEvent:
        text = self._fill_template(self._rng.choice(_EVERYDAY["notes"]), at)
        return _draft_event(at, self._key("note"), text, kind="event", importance=0.3)

    def _question(self, at: datetime) -> YearEvent:
        text = self._fill_template(self._rng.choice(_EVERYDAY["questions"]), at)
        return _draft_event(at, self._key("question"), text, kind="question", importance=0.3)

    def _edit(self, at: datetime) -> YearEvent:
        service, module = self._rng.choice(SERVICES), self._rng.choice(_EVERYDAY["modules"])
        intent = self._fill_template(self._rng.choice(_EVERYDAY["intents"]), at)
        edit = FileEdit(f"src/{service}/{module}", self._rng.choice(("edit", "read")), at, intent)
        return YearEvent(at, edit=edit)

    def _again(self, at: datetime) -> YearEvent:
        """Repeat an earlier decision in slightly other words, without its date."""
        decisions = [
            decision for decision in DECISIONS[:4] if self._start + decision[0] * MONTH < at
        ]
        if not decisions:
            return self._note(at)
        _, topic, text = self._rng.choice(decisions)
        fields = {
            "id": self._key("again"), "source": "team notes", "kind": "decision", "topic": topic,
            "text": f"{text.rstrip('.')}, {self._rng.choice(self._team_at(at))} said.",
        }  # fmt: skip
        return YearEvent(at, draft=fields)


THREAD_ANCHOR = "ticket:fw-390"

MONTHS = 12
JOBS = ("duplicates", "consolidate", "entities", "threads")
_WEEK = timedelta(days=7)


@dataclass(slots=True)
class YearClock:
    """A settable clock."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class YearScenes:
    """What the year came to."""

    counts: Mapping[str, int]
    case: Thread | None
    fading: Plan


def fill_year(
    memory: Memory,
    calendar: YearClock,
    start: datetime,
    *,
    count: int = EVENT_COUNT,
) -> None:
    """Store the year week by week, with maintenance at the end of every month."""
    events = year_events(start, count)
    for until, batch in _weekly_batches(events, start):
        calendar.now = until
        memory.remember_many([event.draft for event in batch if event.draft is not None])
        memory.note_edits([event.edit for event in batch if event.edit is not None])
        if (until - start) % MONTH == timedelta(0):
            memory.maintain(*JOBS)
            memory.build_insights()


def _weekly_batches(
    events: Sequence[YearEvent], start: datetime
) -> Iterator[tuple[datetime, list[YearEvent]]]:
    """Split the events into weekly batches; a month ends with a batch of its own."""
    ends = [start + MONTH * (month + 1) for month in range(MONTHS)]
    ends += [start + MONTH * month + _WEEK * week for month in range(MONTHS) for week in (1, 2, 3)]
    left = list(events)
    for until in sorted(ends):
        last = until == max(ends)
        batch = [event for event in left if last or event.at < until]
        left = left[len(batch) :]
        yield until, batch


def run_year_scenes(memory: Memory) -> YearScenes:
    """Count the year, find its case, and ask what could be forgotten."""
    threads = memory.threads(limit=10_000)
    case = next((thread for thread in threads if thread.anchor == THREAD_ANCHOR), None)
    return YearScenes(
        counts=_count_memories(memory),
        case=case,
        fading=memory.maintain("forget", preview=True).plan,
    )


def _count_memories(memory: Memory) -> dict[str, int]:
    stats = memory.stats()
    every = memory.browse(limit=100_000, include_superseded=True, include_expired=True)
    return {
        "memories": len(every),
        "superseded": sum(item.status == "superseded" for item in every),
        "ended": int(stats["forgotten"]),
        "learnings": sum(item.kind == "learning" and item.source != "team notes" for item in every),
        "insights": sum(item.level == "insight" for item in every),
        "threads": int(stats["threads"]),
        "entities": int(stats["entities"]),
    }
