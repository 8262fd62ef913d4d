"""`undo`: first what would be undone, then, if that is meant, the deed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.confirming import confirmed
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, dim, green, moment, one_line, yellow

if TYPE_CHECKING:
    from recollect.ingest.undo import Undo
    from recollect.maintain.undo import Undone
    from recollect.model import Item


@command(
    "undo",
    examples=[
        "recollect undo 1abc",
        "recollect undo --yes   # your last change",
        "recollect undo run-0v3h2k9x4m7q1abc   # a run of recollect maintain",
    ],
)
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@pass_app
def undo(app: App, item_id: str | None, *, yes: bool) -> int:
    """Undo the last change of a memory, or a maintenance run.

    Without ID the last change you made. An update gives way to the revision before
    it, a forgotten memory comes back, a stored one is forgotten. What was undone can
    be undone again; what was erased cannot. The run of a maintenance, or of a revoke,
    is undone whole: what it let go of comes back, what it made goes.
    """
    if item_id is not None and item_id.startswith("run-"):
        return undo_run(app, item_id, yes=yes)
    with app.open() as memory:
        would = memory.undo(item_id, preview=True)
        item = memory.get(would.item)
        if not app.json:
            _print(app, would, item)
        done = yes or confirmed(app, "Undo it?")
        if done:
            memory.undo(would.item)
            item = memory.get(would.item)
    if app.json:
        app.out.json(_undo_json(would, item, done=done))
    elif done:
        app.out.line(green("undone"), " ", bold(item.id), f"  {one_line(item.text, 70)}")
    else:
        app.note(dim("nothing was changed; --yes does it"))
    return 0


def undo_run(app: App, run: str, *, yes: bool) -> int:
    """Undoes a run of maintenance: first what that would be, then the deed."""
    with app.open() as memory:
        told = memory.undo_run(run, preview=True)
        if not app.json:
            _print_run(app, told)
        if yes or confirmed(app, "Undo it?"):
            told = memory.undo_run(run)
    if app.json:
        app.out.json({"done": not told.preview, **_run_json(told)})
    elif told.preview:
        app.note(dim("nothing was changed; --yes does it"))
    else:
        app.out.line(green("undone"), " ", bold(run))
    return 0


def _print_run(app: App, told: Undone) -> None:
    for item_id in told.restored:
        app.out.line(yellow("would come back "), bold(item_id))
    for item_id, status in told.judged:
        app.out.line(yellow(f"would be {status} again "), bold(item_id))
    for item_id in told.ended:
        app.out.line(yellow("would go "), bold(item_id))
    if told.unlinked:
        app.out.line(dim(f"{told.unlinked} links would go"))


def _run_json(told: Undone) -> dict[str, Any]:
    return {
        "run": told.run,
        "restored": list(told.restored),
        "ended": list(told.ended),
        "judged": [{"id": item_id, "status": status} for item_id, status in told.judged],
        "unlinked": told.unlinked,
    }


def _print(app: App, would: Undo, item: Item) -> None:
    change = would.change
    app.out.line(bold(item.id), f"  {one_line(item.text, 70)}")
    app.out.line(dim(f"  {change.kind} {moment(change.at)} by {change.actor}"))
    app.out.line(yellow("  would: "), would.doing)


def _undo_json(would: Undo, item: Item, *, done: bool) -> dict[str, Any]:
    from recollect.jsonable import iso  # plain output does without
    from recollect.wire import item_json

    change = would.change
    return {
        "done": done,
        "change": {"kind": change.kind, "at": iso(change.at), "actor": change.actor},
        "doing": would.doing,
        "item": item_json(item),
    }
