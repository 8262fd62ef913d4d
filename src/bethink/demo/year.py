"""The scenario of `demo --year`: a year of memories with monthly maintenance.

Includes the questions, the text each answer must contain, and the outdated texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from bethink.cli.answers import print_answer
from bethink.cli.app import App, progress
from bethink.cli.output import bold, cyan, dim, one_line, plural, yellow
from bethink.demo.year_history import EVENT_COUNT, MONTH, DemoEvent, year_events

if TYPE_CHECKING:
    from bethink.maintain.runner import Plan
    from bethink.memory import Memory
    from bethink.model import Item, Recall, Thread
    from bethink.ports import Progress
    from bethink.retrieval.provenance import InsightNode


class DemoQuestion(NamedTuple):
    """A question, text of the answering memory, and text of the outdated ones."""

    text: str
    says: str
    once: tuple[str, ...] = ()


CORRECTED_QUESTIONS = (
    DemoQuestion("where is the deploy key kept?", "vault F", ("vault A", "vault C")),
    DemoQuestion("what is the rate limit of the gateway?", "200 requests", ("60 req", "120 req")),
    DemoQuestion("how long does a seat hold last?", "12 minutes", ("20 minutes",)),
    DemoQuestion("when does the nightly backup run?", "04:10 UTC", ("02:30 UTC",)),
    DemoQuestion("what is the seat-map service called?", "saloon", ("deckplan",)),
    DemoQuestion("who is the owner of the price-engine?", "now Joonas", ("Tilde owns",)),
    DemoQuestion("which payment provider do we use?", "to Tollbridge", ("provider is Quaymint",)),
    DemoQuestion("which host is staging?", "pier-9", ("pier-2",)),
    DemoQuestion("how long is the log retention?", "45 days", ("30 days", "90 days")),
    DemoQuestion("at what time is the standup?", "09:45", ("09:15",)),
    DemoQuestion("what is the minimum app version?", "4.0", ("3.2",)),
    DemoQuestion("cache lifetime of the timetable", "60 seconds", ("300 seconds",)),
    DemoQuestion(
        "which PostgreSQL does the main database have?", "PostgreSQL 17", ("PostgreSQL 15",)
    ),
    DemoQuestion("in which room is the team?", "Anemone", ("Kelp",)),
    DemoQuestion("in which region is the ledger?", "eu-west", ("eu-north",)),
    DemoQuestion("what is the on-call phone number?", "0550-7642", ("0550-1188",)),
)

STABLE_QUESTIONS = (
    DemoQuestion("why did we choose NATS?", "NATS over Kafka"),
    DemoQuestion("why do we not use Kubernetes?", "systemd do for 31 harbours"),
    DemoQuestion("which locking do seats use?", "optimistic locking"),
    DemoQuestion("how much may support refund without asking?", "up to 60 euro"),
    DemoQuestion("which font is on the pier screens?", "Fira Sans"),
    DemoQuestion("why were families charged for four adults?", "ages that were compared as text"),
    DemoQuestion("what was the root cause of FW-203?", "ends its day at 23:00 UTC"),
    DemoQuestion("how was FW-281 fixed?", "carries a key and is sent once"),
    DemoQuestion("why was no notice sent during the gale?", "full of old traces"),
    DemoQuestion("what did we learn from FW-262?", "nothing that matters lives in memory alone"),
    DemoQuestion("may I replay the payment queue by hand?", "214 people paid twice"),
    DemoQuestion("what became of the plan to announce delays by voice?", "neighbours complained"),
    DemoQuestion("did we get maps of the piers?", "port authority has none"),
    DemoQuestion("how does Oskar want to be told that a host is down?", "prefers to be called"),
    DemoQuestion("when did Mireille join?", "Mireille joined"),
    DemoQuestion("what should the refunds be like by the end of the year?", "paid within two days"),
)

UNANSWERABLE_QUESTIONS = (
    "which orchid needs the least light?",
    "who won the chess olympiad in 1972?",
    "how do I knead sourdough?",
    "what does a veterinarian charge for a hamster?",
    "lyrics of the second verse of the anthem",
)

# What the demo shows of them.
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

    counted: Mapping[str, int]
    asked: tuple[Recall, ...]
    earlier: Recall
    unknown: Recall
    case: Thread | None
    told: Mapping[str, Item]
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
        memory.remember_many([one.draft for one in batch if one.draft is not None])
        memory.note_edits([one.edit for one in batch if one.edit is not None])
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
        batch = [one for one in left if last or one.at < until]
        left = left[len(batch) :]
        yield until, batch


def run_year_scenes(memory: Memory, start: datetime) -> YearScenes:
    """Run every query of the year's scenes."""
    case = next((one for one in memory.threads(limit=10_000) if one.anchor == THREAD_ANCHOR), None)
    ids = tuple(member.item for member in case.members) if case is not None else ()
    told = memory.browse(limit=100, ids=ids, include_superseded=True) if ids else []
    return YearScenes(
        counted=_count_memories(memory),
        asked=tuple(memory.recall(one.text, k=2, track=False) for one in SHOWN_QUESTIONS),
        earlier=memory.recall(AS_OF_QUESTION.text, k=1, as_of=start + MONTH * 6, track=False),
        unknown=memory.recall(UNANSWERABLE_QUESTIONS[0], track=False),
        case=case,
        told={item.id: item for item in told},
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
    with progress(app, "a year at Ferrywell", unit="events") as advance:
        fill_year(memory, calendar, start, advance=advance)
    scenes = run_year_scenes(memory, start)
    if app.json:
        app.out.json(scenes_json(scenes))
    else:
        _print_scenes(app, scenes, start)


def _print_scenes(app: App, scenes: YearScenes, start: datetime) -> None:
    out = app.out
    out.line(bold("A year at Ferrywell"))
    out.block(
        f"{EVENT_COUNT:,} things happened to a team that sells ferry tickets: decisions, facts that "
        "were corrected, tickets, people who came and went, and much small talk. Maintenance ran "
        "at the end of every month, two per cent at a time. What is there now:"
    )
    for name, count in scenes.counted.items():
        out.line("  ", dim(f"{name:<12}"), f"{count:>8,}")
    _print_heading(app, "Ask; corrected facts come as they are now", "recall '...' -k 2")
    for answer in scenes.asked:
        out.line(cyan("? "), answer.query.text)
        print_answer(app, answer)
        out.line()
    middle = f"{start + MONTH * 6:%Y-%m-%d}"
    _print_heading(
        app, "Ask as things stood then", f'recall "{AS_OF_QUESTION.text}" --as-of {middle} -k 1'
    )
    print_answer(app, scenes.earlier)
    _print_heading(app, "Ask for what nobody told it", f'recall "{UNANSWERABLE_QUESTIONS[0]}"')
    print_answer(app, scenes.unknown)
    _print_case(app, scenes)
    _print_tree(app, scenes.tree)
    _print_fading(app, scenes.fading)


def _print_heading(app: App, title: str, command_line: str) -> None:
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"bethink {command_line}")
    app.out.line()


def _print_case(app: App, scenes: YearScenes) -> None:
    if scenes.case is None:
        return
    _print_heading(app, "Follow a case from its first sight to its end", f"thread {scenes.case.id}")
    from bethink.cli.browse import print_thread  # what the command itself prints

    print_thread(app, scenes.case, scenes.told)


def _print_tree(app: App, tree: Sequence[InsightNode]) -> None:
    from bethink.cli.browse import leaf_memory_ids  # what the command itself counts

    _print_heading(app, "See what it all comes to", "insights")
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
    _print_heading(app, "See what could be let go", "maintain --job forget --dry-run")
    for remark in plan.remarks:
        app.out.line(yellow("  note  "), remark.why)
    for step in plan.steps[:3]:
        app.out.line("  ", dim(step.proposal.ends[0]), "  ", step.proposal.why)
    told = f"{plural(plan.leaving, 'memory')} of {plan.live:,}; nothing of it happened"
    app.out.line(dim(f"  {told}, and all of it could be undone"))


def scenes_json(scenes: YearScenes) -> dict[str, Any]:
    """The scenes as one JSON document."""
    from bethink.render.wire import insight_json, recall_json, thread_json

    return {
        "counted": dict(scenes.counted),
        "asked": [recall_json(answer) for answer in scenes.asked],
        "earlier": recall_json(scenes.earlier),
        "unknown": recall_json(scenes.unknown),
        "case": thread_json(scenes.case, scenes.told) if scenes.case is not None else None,
        "insights": [insight_json(one) for one in scenes.tree],
        "fading": [
            {"why": step.proposal.why, "ends": list(step.proposal.ends)}
            for step in scenes.fading.steps
        ],
    }
