"""The scenario of `demo --year`: a year of memories with monthly maintenance.

``data/year.json`` has the story, and the questions with the text each answer must contain;
``data/everyday.json`` the templates of everyday noise. The year is the same for a given seed.
Months are counted from its first day; 0.5 is the middle of the first month.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from bethink.cli.answers import print_answer
from bethink.cli.app import App, progress
from bethink.cli.output import bold, cyan, dim, one_line, yellow
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.model import FileEdit

if TYPE_CHECKING:
    from bethink.maintain.runner import Plan
    from bethink.memory import Memory
    from bethink.model import Item, Recall, Thread
    from bethink.ports import Progress
    from bethink.retrieval.provenance import InsightNode


class DemoQuestion(NamedTuple):
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
    data: Json = json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text("utf-8"))
    return data


_YEAR, _EVERYDAY = _load("year"), _load("everyday")
TEAM = tuple(Person(**one) for one in _YEAR["team"])
SERVICES: list[str] = _YEAR["services"]
FACTS = tuple(FactHistory(**one) for one in _YEAR["facts"])
PLANS = tuple(PlanOutcome(**one) for one in _YEAR["plans"])
INCIDENTS = tuple(Incident(**one) for one in _YEAR["incidents"])
DECISIONS: list[tuple[float, str, str]] = _YEAR["decisions"]
CORRECTED_QUESTIONS = tuple(DemoQuestion(**one) for one in _YEAR["questions"]["corrected"])
STABLE_QUESTIONS = tuple(DemoQuestion(**one) for one in _YEAR["questions"]["stable"])
UNANSWERABLE_QUESTIONS: list[str] = _YEAR["questions"]["unanswerable"]

EVENT_COUNT = 5_000
MONTH = timedelta(days=365 / 12)
SEED = 31
# Composition of the everyday events: kind and weight.
_EVENT_SHARES = {"turn": 40, "observation": 20, "note": 18, "edit": 14, "question": 4, "again": 4}


class DemoEvent(NamedTuple):
    """One event: a memory, as the fields of a draft, or an edit of a file."""

    at: datetime
    draft: Mapping[str, object] | None = None
    edit: FileEdit | None = None


def year_events(start: datetime, count: int = EVENT_COUNT, seed: int = SEED) -> list[DemoEvent]:
    """Generate ``count`` events from ``start`` on, oldest first."""
    events = [*_story_events(start), *_team_events(start)]
    events += (one for incident in INCIDENTS for one in _incident_events(incident, start))
    everyday = _EverydayEvents(start, random.Random(seed))  # noqa: S311 - the same year every time
    events += everyday.events(max(0, count - len(events)))
    return sorted(events, key=lambda event: (event.at, _event_key(event)))


def _event_key(event: DemoEvent) -> str:
    if event.draft is not None:
        return str(event.draft["id"])
    return event.edit.path if event.edit is not None else ""


# Lists of the story, each a month and a text, and what their memories have in common.
_TOLD_LISTS: dict[str, Json] = {
    "goal": {"layer": "goal", "importance": 0.85},
    "caveat": {"layer": "caveat"},
    "preference": {"topic": "team"},
}


def _story_events(start: datetime) -> Iterator[DemoEvent]:
    """Events of the main story, which the questions refer to."""

    def tell(month: float, key: str, text: str, **about: object) -> DemoEvent:
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


def _team_events(start: datetime) -> Iterator[DemoEvent]:
    for person in TEAM:
        name = person.name
        about = {"kind": "event", "topic": "team", "entities": [f"person:{name}"]}
        if person.joins:
            text = f"{name} joined the team for {person.work}."
            yield _draft_event(start + person.joins * MONTH, f"joined-{name}", text, **about)
        if person.leaves is not None:
            text = f"{name} left the team; the farewell was at the harbour of Skarholm."
            yield _draft_event(start + person.leaves * MONTH, f"left-{name}", text, **about)


def _draft_event(at: datetime, key: str, text: str, **about: object) -> DemoEvent:
    fields = {"id": key, "text": text, "occurred_at": at, "source": "team notes", **about}
    return DemoEvent(at, draft=fields)


def _incident_events(incident: Incident, start: datetime) -> Iterator[DemoEvent]:
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

    def _conversation(self) -> list[DemoEvent]:
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

    def _observation(self, at: datetime) -> DemoEvent:
        layer, words = self._rng.choice(_EVERYDAY["observations"])
        about = {"layer": layer, "kind": "observation", "source": "watch"}
        weight = round(self._rng.uniform(0.1, 0.4), 2)
        return _draft_event(
            at, self._key("seen"), self._fill_template(words, at), importance=weight, **about
        )

    def _note(self, at: datetime) -> DemoEvent:
        text = self._fill_template(self._rng.choice(_EVERYDAY["notes"]), at)
        return _draft_event(at, self._key("note"), text, kind="event", importance=0.3)

    def _question(self, at: datetime) -> DemoEvent:
        text = self._fill_template(self._rng.choice(_EVERYDAY["questions"]), at)
        return _draft_event(at, self._key("question"), text, kind="question", importance=0.3)

    def _edit(self, at: datetime) -> DemoEvent:
        service, module = self._rng.choice(SERVICES), self._rng.choice(_EVERYDAY["modules"])
        intent = self._fill_template(self._rng.choice(_EVERYDAY["intents"]), at)
        edit = FileEdit(f"src/{service}/{module}", self._rng.choice(("edit", "read")), at, intent)
        return DemoEvent(at, edit=edit)

    def _again(self, at: datetime) -> DemoEvent:
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
        return DemoEvent(at, draft=fields)


# The questions that the demo shows.
SHOWN_QUESTIONS = (
    CORRECTED_QUESTIONS[0],
    CORRECTED_QUESTIONS[1],
    CORRECTED_QUESTIONS[5],
    STABLE_QUESTIONS[5],
    STABLE_QUESTIONS[11],
)
AS_OF_QUESTION = CORRECTED_QUESTIONS[0]
THREAD_ANCHOR = "ticket:fw-390"

MONTHS = 12
JOBS = ("duplicates", "consolidate", "entities", "threads")
_WEEK = timedelta(days=7)
_MAX_CHILDREN_SHOWN = 6


@dataclass(slots=True)
class DemoClock:
    """A settable clock for the demo year."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class YearScenes:
    """Results of every scene of the year, in order."""

    counts: Mapping[str, int]
    answers: tuple[Recall, ...]
    earlier: Recall
    unknown: Recall
    case: Thread | None
    case_items: Mapping[str, Item]
    tree: tuple[InsightNode, ...]
    fading: Plan


def year_start(now: datetime) -> datetime:
    """Return the morning a year ago on which the story begins."""
    start = now.astimezone(UTC) - timedelta(days=365)
    return start.replace(hour=6, minute=0, second=0, microsecond=0)


def fill_year(
    memory: Memory,
    calendar: DemoClock,
    start: datetime,
    *,
    count: int = EVENT_COUNT,
    advance: Progress | None = None,
) -> None:
    """Store the year week by week, with maintenance at the end of every month."""
    events = year_events(start, count)
    done = 0
    for until, batch in _weekly_batches(events, start):
        calendar.now = until
        memory.remember_many([event.draft for event in batch if event.draft is not None])
        memory.note_edits([event.edit for event in batch if event.edit is not None])
        done += len(batch)
        if advance is not None:
            advance(done, len(events))
        if (until - start) % MONTH == timedelta(0):
            memory.maintain(*JOBS)
            memory.build_insights()


def _weekly_batches(
    events: Sequence[DemoEvent], start: datetime
) -> Iterator[tuple[datetime, list[DemoEvent]]]:
    """Split the events into weekly batches; a month ends with a batch of its own."""
    ends = [start + MONTH * (month + 1) for month in range(MONTHS)]
    ends += [start + MONTH * month + _WEEK * week for month in range(MONTHS) for week in (1, 2, 3)]
    left = list(events)
    for until in sorted(ends):
        last = until == max(ends)
        batch = [event for event in left if last or event.at < until]
        left = left[len(batch) :]
        yield until, batch


def run_year_scenes(memory: Memory, start: datetime) -> YearScenes:
    """Run every query of the year's scenes."""
    threads = memory.threads(limit=10_000)
    case = next((thread for thread in threads if thread.anchor == THREAD_ANCHOR), None)
    ids = tuple(member.item for member in case.members) if case is not None else ()
    items = memory.browse(limit=100, ids=ids, include_superseded=True) if ids else []
    return YearScenes(
        counts=_count_memories(memory),
        answers=tuple(memory.recall(shown.text, k=2, track=False) for shown in SHOWN_QUESTIONS),
        earlier=memory.recall(AS_OF_QUESTION.text, k=1, as_of=start + MONTH * 6, track=False),
        unknown=memory.recall(UNANSWERABLE_QUESTIONS[1], track=False),
        case=case,
        case_items={item.id: item for item in items},
        tree=tuple(memory.insights()),
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


def show_year(app: App, memory: Memory, calendar: DemoClock, start: datetime) -> None:
    """Fill the year and print the scenes."""
    with progress(app, "storing a year", unit="events") as advance:
        fill_year(memory, calendar, start, advance=advance)
    scenes = run_year_scenes(memory, start)
    if app.json:
        app.out.json(scenes_json(scenes))
    else:
        _print_scenes(app, scenes, start)


def _print_heading(app: App, title: str, command_line: str) -> None:
    """Print what a scene shows, and the command for it."""
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"bethink {command_line}")
    app.out.line()


def _print_scenes(app: App, scenes: YearScenes, start: datetime) -> None:
    out = app.out
    out.line(bold("A year at Ferrywell"))
    out.block(
        f"{EVENT_COUNT:,} events of a team that sells ferry tickets: decisions, corrected facts, "
        "tickets, people who joined and left, and much small talk. Maintenance ran at the end "
        "of every month and retired at most two per cent. The result:"
    )
    for name, count in scenes.counts.items():
        out.line("  ", dim(f"{name:<12}"), f"{count:>8,}")
    _print_heading(app, "Recall; corrected facts come in their current form", "recall '...' -k 2")
    for answer in scenes.answers:
        out.line(cyan("? "), answer.query.text)
        print_answer(app, answer)
        out.line()
    middle = f"{start + MONTH * 6:%Y-%m-%d}"
    _print_heading(
        app,
        "Recall what was known half a year ago",
        f'recall "{AS_OF_QUESTION.text}" --as-of {middle} -k 1',
    )
    print_answer(app, scenes.earlier)
    _print_heading(
        app, "Recall something that was never stored", f'recall "{UNANSWERABLE_QUESTIONS[1]}"'
    )
    print_answer(app, scenes.unknown)
    _print_case(app, scenes)
    _print_tree(app, scenes.tree)
    _print_fading(app, scenes.fading)


def _print_case(app: App, scenes: YearScenes) -> None:
    if scenes.case is None:
        return
    _print_heading(app, "Follow a case from start to end", f"thread {scenes.case.id}")
    from bethink.cli.browse import print_thread  # same output as the command

    print_thread(app, scenes.case, scenes.case_items)


def _print_tree(app: App, tree: Sequence[InsightNode]) -> None:
    from bethink.cli.browse import leaf_memory_ids  # same count as the command

    _print_heading(app, "Show the insight tree", "insights")
    for top in tree:
        if not top.below:
            continue
        app.out.line(bold(one_line(top.insight.caption or "", 60)), dim(f"  {top.insight.kind}"))
        for number, below in enumerate(top.below[:_MAX_CHILDREN_SHOWN], 1):
            last = number == min(len(top.below), _MAX_CHILDREN_SHOWN)
            size = f"  {below.insight.kind} of {plural(len(leaf_memory_ids(below)), 'memory')}"
            lead = "└── " if last and len(top.below) <= _MAX_CHILDREN_SHOWN else "├── "
            app.out.line(lead, one_line(below.insight.caption or "", 60), dim(size))
        if len(top.below) > _MAX_CHILDREN_SHOWN:
            app.out.line("└── ", dim(f"{len(top.below) - _MAX_CHILDREN_SHOWN} more"))


def _print_fading(app: App, plan: Plan) -> None:
    _print_heading(app, "Show what could be forgotten", "maintain --job forget --dry-run")
    for remark in plan.remarks:
        app.out.line(yellow("  note  "), remark.why)
    for step in plan.steps[:3]:
        app.out.line("  ", dim(step.proposal.ends[0]), "  ", step.proposal.why)
    counts = f"would forget {plan.leaving:,} of {plural(plan.live, 'memory')}"
    app.out.line(dim(f"  {counts}; this is a preview, and a real run can be undone"))


def scenes_json(scenes: YearScenes) -> Json:
    """The scenes as one JSON document."""
    from bethink.render.wire import insight_json, recall_json, thread_json

    return {
        "counted": dict(scenes.counts),
        "asked": [recall_json(answer) for answer in scenes.answers],
        "earlier": recall_json(scenes.earlier),
        "unknown": recall_json(scenes.unknown),
        "case": thread_json(scenes.case, scenes.case_items) if scenes.case is not None else None,
        "insights": [insight_json(node) for node in scenes.tree],
        "fading": [
            {"why": step.proposal.why, "ends": list(step.proposal.ends)}
            for step in scenes.fading.steps
        ],
    }
