"""`demo`: a small team's memory, and what can be asked of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.answers import print_answer, print_why_not
from recollect.cli.app import App
from recollect.cli.comparing import print_comparison
from recollect.cli.demo_memories import CORRECTION, NOTES, TALK, TOLD_TWICE, told
from recollect.cli.options import command, pass_app
from recollect.cli.printing import Printer, bold, cyan, dim, plural, yellow

if TYPE_CHECKING:
    from recollect.explain import WhyNot
    from recollect.memory import Memory
    from recollect.model import Item, Recall, Remembered
    from recollect.ports import Clock

SPACE, YEAR = "demo", "year"
USUAL_NAME = ""  # --keep without a name

QUESTION = "how many times is a failed text message retried?"
TALK_QUESTION = "why was the alarm late, and what will we do about it?"
MISSED = "when does the nightly backup run?"
UNRELATED = "which wine goes with grilled sardines?"
COMPARED = "backup of the database"


@dataclass(frozen=True, slots=True)
class Scenes:
    """Everything the demo shows, in order."""

    remembered: tuple[Remembered, ...]
    corrected: Item
    asked: Recall
    talk: Recall
    missed: WhyNot
    unrelated: Recall
    compared: Mapping[str, Recall]


@command(
    "demo",
    examples=["recollect demo", "recollect demo --keep", "recollect demo --year --keep ferries"],
)
@click.option("--year", is_flag=True, help="A year of a team instead: 5,000 events, a minute.")
@click.option(
    "--keep",
    is_flag=False,
    flag_value=USUAL_NAME,
    metavar="[NAME]",
    help=f"Keep it as a space, to go on asking: {SPACE} or {YEAR} unless named.",
)
@pass_app
def demo(app: App, *, year: bool, keep: str | None) -> None:
    """Show it all on a small project's memory.

    Stores the notes of a small team in a space of its own, corrects one, and asks:
    with the arithmetic, for a memory that is missing, for something unrelated, and
    two profiles side by side. With --year it is told a whole year of another team,
    matures month by month, and shows what came of it. Your own memories are not
    touched.
    """
    name = (YEAR if year else SPACE) if keep in (None, USUAL_NAME) else str(keep)
    if year:
        _show_year(app, name, keep=keep is not None)
    else:
        _show_scenes(app, name, keep=keep is not None)
    if app.json:
        return
    if keep is not None:
        app.out.line(dim(f"Kept. Go on with: recollect --space {name} recall '...'"))
    else:
        app.out.line(dim("Nothing of this was kept; --keep leaves it to go on asking."))


def _show_scenes(app: App, name: str, *, keep: bool) -> None:
    with _space(app, name, keep=keep) as memory:
        scenes = _play(memory)
    if app.json:
        app.out.json(_scenes_json(scenes))
    else:
        _print_scenes(app, scenes)


def _show_year(app: App, name: str, *, keep: bool) -> None:
    from recollect.cli.demo_year import Calendar, beginning, show_year  # a year of words

    start = beginning(datetime.now(UTC))
    calendar = Calendar(start)
    with _space(app, name, keep=keep, clock=calendar) as memory:
        show_year(app, memory, calendar, start)
    if not app.json:
        app.out.line()


@contextmanager
def _space(app: App, name: str, *, keep: bool, clock: Clock | None = None) -> Iterator[Memory]:
    """An empty memory: a space of that name, or one that is gone afterwards."""
    from recollect.errors import Refused  # help does without
    from recollect.facade.opened import utc_now
    from recollect.memory import Memory

    now = clock or utc_now
    if keep:
        with Memory.open(name, settings=app.settings, clock=now) as memory:
            if memory.store.count():
                raise Refused(
                    f"the space {name} is there already",
                    remedy=f"recollect --space {name} list, or recollect spaces remove {name}",
                )
            yield memory
        return
    with (
        tempfile.TemporaryDirectory(prefix="recollect-demo-") as folder,
        Memory.open(path=Path(folder) / f"{name}.db", settings=app.settings, clock=now) as memory,
    ):
        yield memory


def _play(memory: Memory) -> Scenes:
    remembered = memory.remember_many(list(told(datetime.now(UTC))))
    ids = {note.text: result.id for note, result in zip(NOTES, remembered, strict=False)}
    before, after = CORRECTION
    return Scenes(
        remembered=tuple(remembered),
        corrected=memory.update(ids[before], text=after),
        asked=memory.recall(QUESTION, k=2),
        talk=memory.recall(TALK_QUESTION, k=3),
        missed=memory.why_not(_left_out(memory, [ids[text] for text in TOLD_TWICE]), MISSED),
        unrelated=memory.recall(UNRELATED),
        compared=memory.compare(COMPARED, ["default", "siftcoder"], k=4),
    )


def _left_out(memory: Memory, twins: list[str]) -> str:
    """Of two memories that say the same, the one that an answer leaves out."""
    returned = {hit.item.id for hit in memory.recall(MISSED, track=False).hits}
    return next((item_id for item_id in twins if item_id not in returned), twins[0])


def _print_scenes(app: App, scenes: Scenes) -> None:
    _print_remembered(app, scenes)
    _heading(app, "Ask, and see the arithmetic", f'recall "{QUESTION}" -k 2 --explain')
    print_answer(app, scenes.asked, with_arithmetic=True)
    _heading(app, "Ask a conversation", f'recall "{TALK_QUESTION}" -k 3')
    print_answer(app, scenes.talk)
    _heading(app, "Ask why one is missing", f'why-not {scenes.missed.item.id} "{MISSED}"')
    print_why_not(app.out, scenes.missed)
    _heading(app, "Ask for what nobody told it", f'recall "{UNRELATED}"')
    print_answer(app, scenes.unrelated)
    names = ",".join(scenes.compared)
    _heading(app, "Ask two profiles", f'compare "{COMPARED}" --profiles {names} -k 4')
    print_comparison(app.out, scenes.compared)
    app.out.line()


def _heading(app: App, title: str, typed: str) -> None:
    app.out.line()
    app.out.line(bold(title))
    app.out.line(cyan("$ "), f"recollect {typed}")
    app.out.line()


def _print_remembered(app: App, scenes: Scenes) -> None:
    """What was told, and what became of it that is worth a word."""
    out = app.out
    told_now = [note.text for note in NOTES] + [text for _, text in TALK]
    out.line(bold("Remember"))
    out.block(
        f"Lantern is a small service that warns of floods. Its team told {len(told_now)} things, "
        f"{len(TALK)} of them in a conversation. What is worth a word:"
    )
    out.line()
    for text, result in zip(told_now, scenes.remembered, strict=True):
        if result.redacted:
            shown = text.replace(text.split()[-1], "…")
            _remark(out, "a secret was taken out", shown)
        for collision in result.collisions:
            _remark(out, "told before", f"{text} ({collision.kind}; {collision.action})")
    _remark(out, "corrected", " → ".join(CORRECTION))
    entities = {name for result in scenes.remembered for name in result.entities}
    _remark(out, "found by rules", f"{plural(len(entities), 'entity')}, times, the order of talk")


def _remark(out: Printer, title: str, text: str) -> None:
    out.block(text, first=("  ", yellow(f"{title:<24}")), indent=26)


def _scenes_json(scenes: Scenes) -> dict[str, Any]:
    from recollect.wire import item_json, recall_json, remembered_json, why_not_json

    return {
        "remembered": [remembered_json(result) for result in scenes.remembered],
        "corrected": item_json(scenes.corrected),
        "asked": recall_json(scenes.asked, trace=True),
        "talk": recall_json(scenes.talk),
        "missed": why_not_json(scenes.missed),
        "unrelated": recall_json(scenes.unrelated),
        "compared": {name: recall_json(answer) for name, answer in scenes.compared.items()},
    }
