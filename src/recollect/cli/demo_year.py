"""`demo --year`: a year of a team's memory, maintained month by month, and what it comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from recollect.cli.answers import print_answer
from recollect.cli.app import App
from recollect.cli.demo_year_history import EVENTS, MONTH, Happened, year
from recollect.cli.demo_year_questions import CASE, EARLIER, SHOWN, UNKNOWN
from recollect.cli.printing import bold, cyan, dim, one_line, plural, yellow
from recollect.cli.progress import progress

if TYPE_CHECKING:
    from recollect.insights import Branch
    from recollect.maintain.run import Plan
    from recollect.memory import Memory
    from recollect.model import Item, Recall, Thread
    from recollect.ports import Progress

MONTHS = 12
JOBS = ("duplicates", "consolidate", "entities", "threads")
_WEEK = timedelta(days=7)
_SHOWN_BELOW = 6


@dataclass(slots=True)
class Calendar:
    """The clock of the year that is told."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


@dataclass(frozen=True, slots=True)
class YearScenes:
    """Everything that is shown of the year, in order."""

    counted: Mapping[str, int]
    asked: tuple[Recall, ...]
    earlier: Recall
    unknown: Recall
    case: Thread | None
    told: Mapping[str, Item]
    tree: tuple[Branch, ...]
    fading: Plan


def beginning(now: datetime) -> datetime:
    """The morning a year ago on which the story begins."""
    start = now.astimezone(UTC) - timedelta(days=365)
    return start.replace(hour=6, minute=0, second=0, microsecond=0)


def live_through(
    memory: Memory,
    calendar: Calendar,
    start: datetime,
    *,
    count: int = EVENTS,
    advance: Progress | None = None,
) -> None:
    """Tells the memory a year, week by week, and lets it mature at the end of every month."""
    events = year(start, count)
    done = 0
    for until, batch in _weeks(events, start):
        calendar.now = until
        memory.remember_many([one.draft for one in batch if one.draft is not None])
        memory.note_edits([one.edit for one in batch if one.edit is not None])
        done += len(batch)
        if advance is not None:
            advance(done, len(events))
        if (until - start) % MONTH == timedelta(0):
            memory.maintain(*JOBS)
            memory.build_insights()


def _weeks(
    events: Sequence[Happened], start: datetime
) -> Iterator[tuple[datetime, list[Happened]]]:
    """The events in parts of a week; a month ends with a part of its own."""
    ends = [start + MONTH * (month + 1) for month in range(MONTHS)]
    ends += [start + MONTH * month + _WEEK * week for month in range(MONTHS) for week in (1, 2, 3)]
    left = list(events)
    for until in sorted(ends):
        last = until == max(ends)
        batch = [one for one in left if last or one.at < until]
        left = left[len(batch) :]
        yield until, batch


def play(memory: Memory, start: datetime) -> YearScenes:
    """Asks the memory of a year what there is to ask."""
    case = next((one for one in memory.threads(limit=10_000) if one.anchor == CASE), None)
    ids = tuple(member.item for member in case.members) if case is not None else ()
    told = memory.browse(limit=100, ids=ids, include_superseded=True) if ids else []
    return YearScenes(
        counted=_counted(memory),
        asked=tuple(memory.recall(one.text, k=2, track=False) for one in SHOWN),
        earlier=memory.recall(EARLIER.text, k=1, as_of=start + MONTH * 6, track=False),
        unknown=memory.recall(UNKNOWN[0], track=False),
        case=case,
        told={item.id: item for item in told},
        tree=tuple(memory.insights()),
        fading=memory.maintain("forget", preview=True).plan,
    )


def _counted(memory: Memory) -> dict[str, int]:
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


def show_year(app: App, memory: Memory, calendar: Calendar, start: datetime) -> None:
    """Lives through the year and shows what came of it."""
    with progress(app, "a year at Ferrywell", unit="events") as advance:
        live_through(memory, calendar, start, advance=advance)
    scenes = play(memory, start)
    if app.json:
        app.out.json(scenes_json(scenes))
    else:
        _print_scenes(app, scenes, start)


def _print_scenes(app: App, scenes: YearScenes, start: datetime) -> None:
    out = app.out
    out.line(bold("A year at Ferrywell"))
    out.block(
        f"{EVENTS:,} things happened to a team that sells ferry tickets: decisions, facts that "
        "were corrected, tickets, people who came and went, and much small talk. Maintenance ran "
        "at the end of every month, two per cent at a time. What is there now:"
    )
    for name, count in scenes.counted.items():
        out.line("  ", dim(f"{name:<12}"), f"{count:>8,}")
    _heading(app, "Ask; corrected facts come as they are now", "recall '...' -k 2")
    for answer in scenes.asked:
        out.line(cyan("? "), answer.query.text)
        print_answer(app, answer)
        out.line()
    middle = f"{start + MONTH * 6:%Y-%m-%d}"
    _heading(app, "Ask as things stood then", f'recall "{EARLIER.text}" --as-of {middle} -k 1')
    print_answer(app, scenes.earlier)
    _heading(app, "Ask for what nobody told it", f'recall "{UNKNOWN[0]}"')
    print_answer(app, scenes.unknown)
    _print_case(app, scenes)
    _print_tree(app, scenes.tree)
    _print_fading(app, scenes.fading)


def _heading(app: App, title: str, typed: str) -> None:
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"recollect {typed}")
    app.out.line()


def _print_case(app: App, scenes: YearScenes) -> None:
    if scenes.case is None:
        return
    _heading(app, "Follow a case from its first sight to its end", f"thread {scenes.case.id}")
    from recollect.cli.topics import print_thread  # what the command itself prints

    print_thread(app, scenes.case, scenes.told)


def _print_tree(app: App, tree: Sequence[Branch]) -> None:
    from recollect.cli.topics import memories_of  # what the command itself counts

    _heading(app, "See what it all comes to", "insights")
    for top in tree:
        if not top.below:
            continue
        app.out.line(bold(one_line(top.insight.caption or "", 60)), dim(f"  {top.insight.kind}"))
        for number, below in enumerate(top.below[:_SHOWN_BELOW], 1):
            last = number == min(len(top.below), _SHOWN_BELOW)
            size = f"  {below.insight.kind} of {plural(len(memories_of(below)), 'memory')}"
            lead = "└── " if last and len(top.below) <= _SHOWN_BELOW else "├── "
            app.out.line(lead, one_line(below.insight.caption or "", 60), dim(size))
        if len(top.below) > _SHOWN_BELOW:
            app.out.line("└── ", dim(f"{len(top.below) - _SHOWN_BELOW} more"))


def _print_fading(app: App, plan: Plan) -> None:
    _heading(app, "See what could be let go", "maintain --job forget --dry-run")
    for remark in plan.remarks:
        app.out.line(yellow("  note  "), remark.why)
    for step in plan.steps[:3]:
        app.out.line("  ", dim(step.proposal.ends[0]), "  ", step.proposal.why)
    told = f"{plural(plan.leaving, 'memory')} of {plan.live:,}; nothing of it happened"
    app.out.line(dim(f"  {told}, and all of it could be undone"))


def scenes_json(scenes: YearScenes) -> dict[str, Any]:
    """The scenes as one document."""
    from recollect.wire import insight_json, recall_json, thread_json

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
