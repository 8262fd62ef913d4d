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
    from recollect.model import Item


@command("undo", examples=["recollect undo 1abc", "recollect undo --yes   # your last change"])
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@pass_app
def undo(app: App, item_id: str | None, *, yes: bool) -> int:
    """Undo the last change of a memory.

    Without ID the last change you made. An update gives way to the revision before
    it, a forgotten memory comes back, a stored one is forgotten. What was undone can
    be undone again; what was erased cannot.
    """
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
