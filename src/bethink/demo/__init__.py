"""The command `demo` and its sample data: the notes of a small flood-warning team."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from bethink.cli.answers import print_answer, print_why_not
from bethink.cli.app import App
from bethink.cli.options import command, pass_app
from bethink.cli.output import Printer, bold, cyan, dim, plural, yellow
from bethink.cli.recall import print_comparison

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.model import Item, Recall, Remembered
    from bethink.ports import Clock
    from bethink.retrieval.explain import WhyNot


class Note(NamedTuple):
    """A memory of the demo, dated ``days`` ago."""

    text: str
    days: float
    kind: str | None = None
    topic: str | None = None
    about: dict[str, Any] = {}  # noqa: RUF012 - read only


# Not a real key; it only has to look like one to be redacted.
_FAKE_SECRET = "AKIA" + "Q3EXAMPL" + "7WZ2KD5N"

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
    Note(
        f"The bucket for gauge photos is opened with the key {_FAKE_SECRET}.", 9, "fact", "gauges"
    ),
    # A near-duplicate of an earlier note.
    Note("The nightly backup of the database runs at 02:30 UTC, on db-1.", 6, "fact", "database"),
    Note("Deploys go out on Tuesdays after the weather briefing.", 5, "fact", "release"),
)  # fmt: skip

CONVERSATION = (
    ("Ines", "The Marrow Bridge alarm came four minutes late last night. What happened?"),
    ("Tomas", "TextHarbour throttled us. We sent all villages at once and hit the limit."),
    ("Ines", "Then let us send upstream villages first, they have the least time."),
    ("Tomas", "Agreed, sorted by distance to the gauge. I will have it on Tuesday."),
)

DUPLICATES = (
    "The nightly backup of the database runs at 02:30 UTC on db-1.",
    "The nightly backup of the database runs at 02:30 UTC, on db-1.",
)
CORRECTION = (
    "The SMS worker retries a failed message 5 times.",
    "The SMS worker retries a failed message 3 times.",
)


def demo_drafts(now: datetime) -> Iterator[dict[str, Any]]:
    """Yield the drafts, oldest first: the notes, then the conversation."""
    for note in NOTES:
        when = now - timedelta(days=note.days)
        yield {
            "text": note.text,
            "source": "team notes",
            "occurred_at": when,
            "kind": note.kind,
            "topic": note.topic,
            **note.about,
        }
    start = now - timedelta(days=2)
    for number, (speaker, text) in enumerate(CONVERSATION):
        yield {
            "text": text,
            "level": "raw",
            "speaker": speaker,
            "session": "incident review",
            "seq": number,
            "source": "chat",
            "occurred_at": start + timedelta(minutes=number),
        }


SPACE, YEAR = "demo", "year"
DEFAULT_NAME = ""  # --keep without a name

QUESTION = "how many times is a failed text message retried?"
TALK_QUESTION = "why was the alarm late, and what will we do about it?"
WHY_NOT_QUESTION = "when does the nightly backup run?"
UNRELATED_QUESTION = "which wine goes with grilled sardines?"
COMPARE_QUESTION = "backup of the database"


@dataclass(frozen=True, slots=True)
class Scenes:
    """Results of every scene of the demo, in order."""

    remembered: tuple[Remembered, ...]
    corrected: Item
    explained: Recall
    conversation: Recall
    missed: WhyNot
    unrelated: Recall
    compared: Mapping[str, Recall]


@command(
    "demo",
    examples=["bethink demo", "bethink demo --keep", "bethink demo --year --keep ferries"],
)
@click.option(
    "--year", is_flag=True, help="Show a year of a team instead: 5,000 events, takes a minute."
)
@click.option(
    "--keep",
    is_flag=False,
    flag_value=DEFAULT_NAME,
    metavar="[NAME]",
    help=f"Keep the memories as a space; default name {SPACE} or {YEAR}.",
)
@pass_app
def demo(app: App, *, year: bool, keep: str | None) -> None:
    """Show all features on a small project's memory.

    Stores the notes of a small team in a separate space, corrects one, and asks
    questions: with score details, about a missing memory, about something unrelated, and
    with two profiles side by side. With --year it stores a whole year of another team,
    with maintenance every month, and shows the result. Your own memories are not touched.
    """
    name = (YEAR if year else SPACE) if keep in (None, DEFAULT_NAME) else str(keep)
    if year:
        _show_year(app, name, keep=keep is not None)
    else:
        _show_scenes(app, name, keep=keep is not None)
    if app.json:
        return
    if keep is not None:
        app.out.line(dim(f"Kept as a space. Try: bethink --space {name} recall '...'"))
    else:
        app.out.line(dim("Nothing was kept; --keep stores these memories as a space."))


def _show_scenes(app: App, name: str, *, keep: bool) -> None:
    with _open_demo_space(app, name, keep=keep) as memory:
        scenes = _run_scenes(memory)
    if app.json:
        app.out.json(_scenes_json(scenes))
    else:
        _print_scenes(app, scenes)


def _show_year(app: App, name: str, *, keep: bool) -> None:
    from bethink.demo.year import DemoClock, show_year, year_start  # large sample data

    start = year_start(datetime.now(UTC))
    calendar = DemoClock(start)
    with _open_demo_space(app, name, keep=keep, clock=calendar) as memory:
        show_year(app, memory, calendar, start)
    if not app.json:
        app.out.line()


@contextmanager
def _open_demo_space(
    app: App, name: str, *, keep: bool, clock: Clock | None = None
) -> Iterator[Memory]:
    """Open an empty memory: a space of that name, or a temporary one."""
    from bethink.api.session import utc_now
    from bethink.errors import Refused  # not needed for help
    from bethink.memory import Memory

    now = clock or utc_now
    if keep:
        with Memory.open(name, settings=app.settings, clock=now) as memory:
            if memory.store.admin.count():
                raise Refused(
                    f"the space {name} already exists",
                    remedy=f"use another name, or remove it: bethink spaces remove {name}",
                )
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder,
        Memory.open(path=Path(folder) / f"{name}.db", settings=app.settings, clock=now) as memory,
    ):
        yield memory


def _run_scenes(memory: Memory) -> Scenes:
    remembered = memory.remember_many(list(demo_drafts(datetime.now(UTC))))
    ids = {note.text: result.id for note, result in zip(NOTES, remembered, strict=False)}
    before, after = CORRECTION
    return Scenes(
        remembered=tuple(remembered),
        corrected=memory.update(ids[before], text=after),
        explained=memory.recall(QUESTION, k=2),
        conversation=memory.recall(TALK_QUESTION, k=3),
        missed=memory.why_not(
            _omitted_duplicate(memory, [ids[text] for text in DUPLICATES]), WHY_NOT_QUESTION
        ),
        unrelated=memory.recall(UNRELATED_QUESTION),
        compared=memory.compare(COMPARE_QUESTION, ["default", "siftcoder"], k=4),
    )


def _omitted_duplicate(memory: Memory, duplicates: list[str]) -> str:
    """Return the one of two duplicate memories that an answer omits."""
    returned = {hit.item.id for hit in memory.recall(WHY_NOT_QUESTION, track=False).hits}
    return next((item_id for item_id in duplicates if item_id not in returned), duplicates[0])


def _print_scenes(app: App, scenes: Scenes) -> None:
    _print_remembered(app, scenes)
    _print_heading(
        app, "Recall, with the score of each hit explained", f'recall "{QUESTION}" -k 2 --explain'
    )
    print_answer(app, scenes.explained, explain_scores=True)
    _print_heading(app, "Recall from a conversation", f'recall "{TALK_QUESTION}" -k 3')
    print_answer(app, scenes.conversation)
    _print_heading(
        app,
        "Explain why a memory is missing",
        f'why-not {scenes.missed.item.id} "{WHY_NOT_QUESTION}"',
    )
    print_why_not(app.out, scenes.missed)
    _print_heading(app, "Recall something that was never stored", f'recall "{UNRELATED_QUESTION}"')
    print_answer(app, scenes.unrelated)
    names = ",".join(scenes.compared)
    _print_heading(
        app, "Compare two profiles", f'compare "{COMPARE_QUESTION}" --profiles {names} -k 4'
    )
    print_comparison(app.out, scenes.compared)
    app.out.line()


def _print_heading(app: App, title: str, command_line: str) -> None:
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"bethink {command_line}")
    app.out.line()


def _print_remembered(app: App, scenes: Scenes) -> None:
    """Print what was stored, and notable outcomes."""
    out = app.out
    texts = [note.text for note in NOTES] + [text for _, text in CONVERSATION]
    out.line(bold("Remember"))
    out.block(
        f"Lantern is a small service that warns of floods. Its team stored {len(texts)} memories, "
        f"{len(CONVERSATION)} of them in a conversation. Notable results:"
    )
    out.line()
    for text, result in zip(texts, scenes.remembered, strict=True):
        if result.redacted:
            shown = text.replace(text.split()[-1], "…")
            _print_remark(out, "secret removed", shown)
        for collision in result.collisions:
            _print_remark(out, "duplicate", f"{text} ({collision.kind}; {collision.action})")
    _print_remark(out, "corrected", " → ".join(CORRECTION))
    entities = {name for result in scenes.remembered for name in result.entities}
    _print_remark(
        out, "detected by rules", f"{plural(len(entities), 'entity')}, times, the order of turns"
    )


def _print_remark(out: Printer, title: str, text: str) -> None:
    out.block(text, first=("  ", yellow(f"{title:<24}")), indent=26)


def _scenes_json(scenes: Scenes) -> dict[str, Any]:
    from bethink.render.wire import item_json, recall_json, remembered_json, why_not_json

    return {
        "remembered": [remembered_json(result) for result in scenes.remembered],
        "corrected": item_json(scenes.corrected),
        "asked": recall_json(scenes.explained, trace=True),
        "talk": recall_json(scenes.conversation),
        "missed": why_not_json(scenes.missed),
        "unrelated": recall_json(scenes.unrelated),
        "compared": {name: recall_json(answer) for name, answer in scenes.compared.items()},
    }
