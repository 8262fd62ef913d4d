"""The command `demo` and its sample data: the notes of a small flood-warning team."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bethink.cli.answers import print_answer, print_why_not
from bethink.cli.app import App
from bethink.cli.options import command, pass_app
from bethink.cli.output import Printer, bold, dim, yellow
from bethink.cli.recall import print_comparison
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.demo.heading import print_heading

if TYPE_CHECKING:
    from bethink.memory import Memory
    from bethink.model import Item, Recall, Remembered
    from bethink.ports import Clock
    from bethink.retrieval.explain import WhyNot


# Not a real key; it only has to look like one to be redacted.
_FAKE_SECRET = "AKIA" + "Q3EXAMPL" + "7WZ2KD5N"

MISSED = "Restoring the backup was rehearsed and took 11 minutes."
CORRECTION = (
    "The SMS worker retries a failed message 5 times.",
    "The SMS worker retries a failed message 3 times.",
)


def demo_drafts(now: datetime) -> Iterator[Json]:
    """Yield the drafts of ``data/team.jsonl``, oldest first: the notes, then a conversation."""
    for line in (Path(__file__).parent / "data" / "team.jsonl").read_text("utf-8").splitlines():
        fields = json.loads(line.replace("{secret}", _FAKE_SECRET))
        ago = timedelta(days=fields.pop("days")) - timedelta(minutes=fields.pop("minutes", 0))
        yield {**fields, "occurred_at": now - ago}


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

    drafts: tuple[Mapping[str, object], ...]
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
    drafts = tuple(demo_drafts(datetime.now(UTC)))
    remembered = memory.remember_many(drafts)
    ids = {draft["text"]: result.id for draft, result in zip(drafts, remembered, strict=True)}
    before, after = CORRECTION
    return Scenes(
        drafts=drafts,
        remembered=tuple(remembered),
        corrected=memory.update(ids[before], text=after),
        explained=memory.recall(QUESTION, k=2),
        conversation=memory.recall(TALK_QUESTION, k=3),
        missed=memory.why_not(ids[MISSED], WHY_NOT_QUESTION, k=1),
        unrelated=memory.recall(UNRELATED_QUESTION),
        compared=memory.compare(COMPARE_QUESTION, ["default", "siftcoder"], k=4),
    )


def _print_scenes(app: App, scenes: Scenes) -> None:
    _print_remembered(app, scenes)
    print_heading(
        app, "Recall, with the score of each hit explained", f'recall "{QUESTION}" -k 2 --explain'
    )
    print_answer(app, scenes.explained, explain_scores=True)
    print_heading(app, "Recall from a conversation", f'recall "{TALK_QUESTION}" -k 3')
    print_answer(app, scenes.conversation)
    print_heading(
        app,
        "Explain why a memory is missing",
        f'why-not {scenes.missed.item.id} "{WHY_NOT_QUESTION}" -k 1',
    )
    print_why_not(app.out, scenes.missed)
    print_heading(app, "Recall something that was never stored", f'recall "{UNRELATED_QUESTION}"')
    print_answer(app, scenes.unrelated)
    names = ",".join(scenes.compared)
    print_heading(
        app, "Compare two profiles", f'compare "{COMPARE_QUESTION}" --profiles {names} -k 4'
    )
    print_comparison(app.out, scenes.compared)
    app.out.line()


def _print_remembered(app: App, scenes: Scenes) -> None:
    """Print what was stored, and notable outcomes."""
    out = app.out
    texts = [str(draft["text"]) for draft in scenes.drafts]
    turns = sum("session" in draft for draft in scenes.drafts)
    out.line(bold("Remember"))
    out.block(
        f"Lantern is a small service that warns of floods. Its team stored {len(texts)} memories, "
        f"{turns} of them in a conversation. Notable results:"
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


def _scenes_json(scenes: Scenes) -> Json:
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
