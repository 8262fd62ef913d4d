"""`threads`, `thread` and `insights`: what goes on, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from recollect.cli.app import App
from recollect.cli.options import command, limit_option, pass_app
from recollect.cli.printing import bold, day, dim, one_line, plural, yellow
from recollect.cli.tables import Column, print_table
from recollect.errors import NotFound
from recollect.model import LIFECYCLES, THREAD_STATES

if TYPE_CHECKING:
    from recollect.insights import Branch
    from recollect.model import Item, Thread, ThreadEvent


@command("threads", examples=["recollect threads", "recollect threads --state blocked --json"])
@click.option("--state", type=click.Choice(THREAD_STATES), help="Only those that stand so.")
@click.option("--lifecycle", type=click.Choice(LIFECYCLES), help="Only active, dormant or closed.")
@limit_option(50)
@pass_app
def threads(app: App, state: str | None, lifecycle: str | None, limit: int) -> int:
    """List what goes on.

    Topics, cases and work, the last changed first. They are found by
    `recollect maintain --job threads`.
    """
    with app.open() as memory:
        found = [
            thread
            for thread in memory.threads(limit=10_000)
            if state in (None, thread.state) and lifecycle in (None, thread.lifecycle)
        ][:limit]
    if app.json:
        from recollect.wire import thread_json  # plain output does without

        app.out.json([thread_json(thread) for thread in found])
    elif found:
        _print_threads(app, found)
    else:
        app.note("no thread was found; recollect maintain --job threads looks for them")
    return 0 if found else 1


def _print_threads(app: App, found: list[Thread]) -> None:
    heads = [
        Column("id"),
        Column("last"),
        Column("state"),
        Column("memories", right=True),
        Column("about", wide=True),
    ]
    rows = [
        (
            bold(thread.id),
            dim(day(thread.last_event_at)),
            f"{thread.lifecycle}, {thread.state}",
            str(len(thread.members)),
            thread.headline,
        )
        for thread in found
    ]
    print_table(app.out, heads, rows)


@command("thread", examples=["recollect thread thread-0f3a9c2b7d1e5a48"])
@click.argument("thread_id", metavar="ID")
@pass_app
def thread(app: App, thread_id: str) -> None:
    """Show one thread as a timeline."""
    with app.open() as memory:
        found = memory.thread(thread_id)
        ids = tuple(member.item for member in found.members)
        seen = memory.browse(limit=10_000, ids=ids, include_superseded=True) if ids else []
        items = {item.id: item for item in seen}
    if app.json:
        from recollect.wire import thread_json  # plain output does without

        app.out.json(thread_json(found, items))
        return
    print_thread(app, found, items)


def print_thread(app: App, found: Thread, items: Mapping[str, Item]) -> None:
    """Its headline, then what happened, oldest first; ``items`` are those that may be seen."""
    app.out.line(bold(found.headline), dim(f"  {found.kind}, {found.lifecycle}, {found.state}"))
    roles = {member.item: member.role for member in found.members}
    for event in found.events:
        item = items.get(event.item or "")
        if item is not None:  # else it may not be seen, or is there no more
            _print_event(app, event, item, roles.get(item.id, ""))


def _print_event(app: App, event: ThreadEvent, item: Item, role: str) -> None:
    label = event.kind.replace("_", " ")
    head = ("  ", dim(day(event.at)), "  ", f"{label:<20}", dim(f"{role:<8}"), " ")
    told = one_line(item.text) if item.status == "active" else f"{one_line(item.text)} (superseded)"
    app.out.block(told, indent=43, first=head)


@command(
    "insights",
    examples=["recollect insights", "recollect insights 1abc", "recollect insights --build"],
)
@click.argument("item_id", metavar="[ID]", required=False)
@click.option("--build", is_flag=True, help="First make what is due, up to the root.")
@pass_app
def insights(app: App, item_id: str | None, *, build: bool) -> int:
    """Draw the tree of what the memories come to.

    With ID one insight: its points, and the memories that bear each out. Insights
    are made by `recollect maintain --job insights`, or here with --build.
    """
    with app.open() as memory:
        if build:
            memory.build_insights()
        tree = memory.insights()
        wanted = None if item_id is None else memory.get(item_id).id
    if wanted is not None:
        tree = [one for one in _flat(tree) if one.insight.id == wanted][:1]
        if not tree:
            raise NotFound(f"{wanted} is not an insight", remedy="recollect insights draws them")
    if app.json:
        from recollect.wire import insight_json  # plain output does without

        app.out.json([insight_json(one) for one in tree])
    elif not tree:
        app.note("there are no insights yet; recollect insights --build makes what is due")
    elif wanted is not None:
        _print_insight(app, tree[0])
    else:
        for top in tree:
            _draw(app, top, "", "")
    return 0 if tree else 1


def _flat(tree: list[Branch] | tuple[Branch, ...]) -> list[Branch]:
    return [one for branch in tree for one in (branch, *_flat(branch.below))]


def memories_of(branch: Branch) -> set[str]:
    """The ids of what it rests on in the end: memories, not the insights in between."""
    if branch.below:
        return {one for below in branch.below for one in memories_of(below)}
    return {source.id for point in branch.points for source in point.sources}


def _draw(app: App, branch: Branch, lead: str, indent: str) -> None:
    item = branch.insight
    told = f"  {item.kind} of {plural(len(memories_of(branch)), 'memory')}  {item.id}"
    stale = yellow("  stale") if branch.stale else ""
    app.out.line(lead, bold(item.caption or one_line(item.text, 60)), dim(told), stale)
    for number, below in enumerate(branch.below, 1):
        last = number == len(branch.below)
        _draw(
            app, below, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   ")
        )


def _print_insight(app: App, branch: Branch) -> None:
    item = branch.insight
    made_by = item.metadata.get("made_by", "somebody")
    stale = yellow("  stale: something it rests on has changed") if branch.stale else ""
    app.out.line(bold(item.caption or item.kind), dim(f"  {item.kind}, by {made_by}"), stale)
    for point in branch.points:
        app.out.line()
        app.out.block(point.text, indent=2, first=("• ",))
        for source in point.sources:
            app.out.line("    ", dim(source.id), "  ", one_line(source.text, 100))
