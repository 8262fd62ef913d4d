"""Looking at what is stored: one memory, lists, timelines, revisions, the journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.details import print_item, print_items, print_revisions
from recollect.cli.options import command, filter_options, filters_of, limit_option, pass_app
from recollect.cli.printing import bold, dim, moment
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from recollect.model import Item


@command("show", examples=["recollect show 0v3h2k9x4m7q1abc", "recollect show 1abc --history"])
@click.argument("item_id", metavar="ID")
@click.option("--history", "with_history", is_flag=True, help="With all its revisions.")
@pass_app
def show(app: App, item_id: str, *, with_history: bool) -> None:
    """Show one memory with all that is known of it.

    ID is the memory's id or a part of it that no other has.
    """
    with app.open() as memory:
        item = memory.get(item_id)
        revisions = memory.history(item.id) if with_history else []
    if app.json:
        from recollect.wire import item_json  # plain output does without

        told = item_json(item)
        if with_history:
            told["history"] = [item_json(revision) for revision in revisions]
        app.out.json(told)
        return
    print_item(app.out, item)
    if with_history:
        app.out.line()
        print_revisions(app.out, revisions)


@command(
    "list",
    examples=[
        "recollect list --limit 20",
        "recollect list --kind decision --since 2026-01-01",
        "recollect list --after 0v3h2k9x4m7q1abc   # the next page",
    ],
)
@filter_options
@limit_option(50)
@click.option("--after", metavar="ID", help="Continue behind this memory.")
@pass_app
def list_memories(app: App, /, limit: int, after: str | None, **where: Any) -> int:
    """List memories, newest first."""
    with app.open() as memory:
        items = memory.browse(limit=limit, after=after, **filters_of(where))
    _show_all(app, items)
    if items and len(items) == limit:
        app.note(dim(f"more: --after {items[-1].id}"))
    return 0 if items else 1


@command(
    "timeline",
    examples=["recollect timeline 1abc --window 3", "recollect timeline --around 1abc"],
)
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("--around", metavar="ID", help="The memory, where it is not named first.")
@click.option("--window", type=click.IntRange(1, 1000), default=5, show_default=True,
              metavar="N", help="How many before and how many after.")  # fmt: skip
@pass_app
def timeline(app: App, item_id: str | None, around: str | None, window: int) -> None:
    """Show what came before and after a memory.

    Its neighbours in the conversation it belongs to, else those stored around it,
    oldest first.
    """
    from recollect.facade.browsing import in_its_place  # help does without

    wanted = {one for one in (item_id, around) if one is not None}
    if len(wanted) != 1:
        raise click.UsageError("one memory is needed: recollect timeline ID")
    with app.open() as memory:
        middle = memory.get(wanted.pop())
        items = memory.timeline(middle.id, window=window)
    _show_all(app, in_its_place(middle, items), middle=middle.id)


def _show_all(app: App, items: Sequence[Item], *, middle: str | None = None) -> None:
    if app.json:
        from recollect.wire import item_json  # plain output does without

        app.out.json([item_json(item) for item in items])
    elif items:
        print_items(app.out, items, middle=middle)
    else:
        app.note("nothing found")


@command("history", examples=["recollect history 1abc"])
@click.argument("item_id", metavar="ID")
@pass_app
def history(app: App, item_id: str) -> None:
    """Show the revisions of a memory.

    Oldest first, each with what changed.
    """
    with app.open() as memory:
        revisions = memory.history(item_id)
    if app.json:
        from recollect.wire import item_json  # plain output does without

        app.out.json([item_json(revision) for revision in revisions])
    else:
        print_revisions(app.out, revisions)


@command("events", examples=["recollect events --limit 20", "recollect events --after 120"])
@click.option("--after", type=click.IntRange(0), default=0, metavar="N", help="Behind this number.")
@limit_option(100)
@pass_app
def events(app: App, after: int, limit: int) -> int:
    """Show the journal: who did what, and when.

    It never holds what a memory says.
    """
    with app.open() as memory:
        found = memory.events(after=after, limit=limit)
    if app.json:
        from recollect.wire import mapping_json  # plain output does without

        app.out.json([mapping_json(event._asdict()) for event in found])
    elif found:
        heads = [Column("n", right=True), Column("at"), Column("what"), Column("memory"),
                 Column("by"), Column("detail", wide=True)]  # fmt: skip
        rows = [
            (f"{event.seq}", dim(moment(event.at)), bold(event.kind), event.item or "",
             event.actor, event.detail)
            for event in found
        ]  # fmt: skip
        print_table(app.out, heads, rows)
        if len(found) == limit:
            app.note(dim(f"more: --after {found[-1].seq}"))
    else:
        app.note("nothing found")
    return 0 if found else 1
