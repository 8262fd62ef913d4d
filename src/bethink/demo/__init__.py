"""The command `demo` and its sample data: the notes of a small flood-warning team."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from bethink.cli.answers import format_relevance
from bethink.cli.app import App
from bethink.cli.options import command
from bethink.cli.output import cyan, dim, yellow
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.memory import Memory
from bethink.model import Item, Recall, Remembered
from bethink.render.wire import item_json, recall_json, record_json

# Not a real key; it only has to look like one to be redacted.
_FAKE_SECRET = "AKIA" + "Q3EXAMPL" + "7WZ2KD5N"

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


SPACE = "demo"
DEFAULT_NAME = ""  # --keep without a name

# Each with the number of memories to show.
QUESTIONS = {
    "how many times is a failed text message retried?": 1,
    "what caused the late alarm last night?": 2,
    "which wine goes with grilled sardines?": 1,
}


@dataclass(frozen=True, slots=True)
class Scenes:
    """Results of every scene of the demo, in order."""

    remembered: tuple[Remembered, ...]
    corrected: Item
    answers: tuple[Recall, ...]


@command("demo", examples=["bethink demo", "bethink demo --keep", "bethink demo --keep floods"])
@click.option(
    "--keep",
    is_flag=False,
    flag_value=DEFAULT_NAME,
    metavar="[NAME]",
    help=f"Keep the memories as a space; default name {SPACE}.",
)
def demo(app: App, *, keep: str | None) -> None:
    """Show recall on the notes of a small team.

    Stores the notes of a small team in a separate space, corrects one, and asks three
    questions: about the corrected note, about a conversation, and about something that was
    never stored. Your own memories are not touched.
    """
    name = keep or SPACE
    if app.space is not None:
        raise click.UsageError(f"the demo has its own space; --keep {app.space} keeps it so named")
    if not (app.json or app.quiet):
        app.err.line(dim("storing the notes of a small team ..."))
    with _open_demo_space(app, name, keep=keep is not None) as memory:
        scenes = _run_scenes(memory)
    if app.json:
        app.out.json(_scenes_json(scenes))
    else:
        _print_scenes(app, scenes)
        _print_next_steps(app, name, keep=keep is not None)


def _print_next_steps(app: App, name: str, *, keep: bool) -> None:
    """Print commands to go on with, and how to call them where they are not on PATH."""
    steps = {
        f"bethink --space {name} recall '...'" if keep else "bethink demo --keep": (
            "ask these memories" if keep else "keep these memories and ask more"
        ),
        "bethink remember '...'": "store a memory of the project you are in",
        "bethink --help": "all commands",
    }
    app.out.line("Go on:" if keep else "Nothing was kept. Go on:")
    for line, purpose in steps.items():
        app.out.line(f"  {line:<36}", dim(purpose))
    if shutil.which("bethink") is None:
        folder = Path(sys.argv[0]).absolute().parent
        app.out.line(yellow("bethink is not on your PATH yet: "), f'export PATH="{folder}:$PATH"')


@contextmanager
def _open_demo_space(app: App, name: str, *, keep: bool) -> Iterator[Memory]:
    """Open an empty memory: a space of that name, or a temporary one."""
    if keep:
        with Memory.open(name, settings=app.settings) as memory:
            if memory.store.admin.count():
                raise Refused(
                    f"the space {name} already exists",
                    remedy=f"use another name, or remove it: bethink spaces remove {name}",
                )
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(prefix="bethink-demo-") as folder,
        Memory.open(path=Path(folder) / f"{name}.db", settings=app.settings) as memory,
    ):
        yield memory


def _run_scenes(memory: Memory) -> Scenes:
    drafts = tuple(demo_drafts(datetime.now(UTC)))
    remembered = memory.remember_many(drafts)
    ids = {draft["text"]: result.id for draft, result in zip(drafts, remembered, strict=True)}
    before, after = CORRECTION
    corrected = memory.update(ids[before], text=after)
    answers = tuple(memory.recall(question, k=k) for question, k in QUESTIONS.items())
    return Scenes(tuple(remembered), corrected, answers)


def _print_scenes(app: App, scenes: Scenes) -> None:
    """Print the three answers, short enough for one screen."""
    out = app.out
    secrets = sum(bool(result.redacted) for result in scenes.remembered)
    out.block(
        f"Lantern warns of floods. Its team stored {len(scenes.remembered)} memories: notes and a "
        f"conversation. {plural(secrets, 'secret')} removed, one note corrected: 5 retries, now 3."
    )
    for answer in scenes.answers:
        out.line()
        out.line(cyan("$ "), f'bethink recall "{answer.query.text}"')
        for hit in answer.hits:
            speaker = f"{hit.item.speaker}: " if hit.item.speaker else ""
            first = ("  ", cyan(f"{format_relevance(hit):>4}"), "  ")
            out.block(f"{speaker}{hit.item.text}", first=first, indent=8)
            if hit.item.id == scenes.corrected.id:
                out.line(" " * 8, yellow("corrected: bethink history shows both versions"))
        if not answer.hits:
            out.line("  ", "nothing is stored on this subject")
    out.line()


def _scenes_json(scenes: Scenes) -> Json:
    asked, talk, unrelated = scenes.answers
    return {
        "remembered": [record_json(result) for result in scenes.remembered],
        "corrected": item_json(scenes.corrected),
        "asked": recall_json(asked, trace=True),
        "talk": recall_json(talk),
        "unrelated": recall_json(unrelated),
    }
