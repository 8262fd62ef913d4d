"""Commands that read: show, list, timeline, history, events, why, threads, insights."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from bethink.api.browse import merge_timeline
from bethink.cli.answers import print_item, print_items, print_revisions, shown_actor
from bethink.cli.app import App
from bethink.cli.options import (
    command,
    complete_ids,
    filter_options,
    filters_from_options,
    limit_option,
    option,
)
from bethink.cli.output import (
    bold,
    columns,
    dim,
    format_date,
    format_time,
    one_line,
    print_table,
    yellow,
)
from bethink.core import plural
from bethink.errors import NotFound
from bethink.model import LIFECYCLES, THREAD_STATES, Query
from bethink.model.item import REFUSED, WAITING
from bethink.render.wire import insight_json, item_json, mapping_json, provenance_json, thread_json
from bethink.retrieval.provenance import mark_outdated, recorded_sources
from bethink.retrieval.query_builder import describe_unmatched, make_filters

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.memory import Memory
    from bethink.model import Item, Thread, ThreadEvent
    from bethink.ports import Event
    from bethink.retrieval.provenance import InsightNode, Provenance, ProvenanceEdge


@command("show", examples=["bethink show 0v3h2k9x4m7q1abc", "bethink show 1abc --history"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@option("--history with_history", "Include all its revisions.")
def show(app: App, item_id: str, *, with_history: bool) -> None:
    """Show one memory with all its fields.

    ID is the memory's id or a unique part of it.
    """
    with app.open() as memory:
        item = memory.get(item_id)
        revisions = memory.history(item.id) if with_history else []
    past = {"history": [item_json(revision) for revision in revisions]} if with_history else {}
    app.document(item_json(item) | past)
    if item.ended_by in (WAITING, REFUSED):
        _print_waiting(app, item)
    else:
        print_item(app.out, item)
    if with_history:
        app.out.line()
        print_revisions(app.out, revisions)


def _print_waiting(app: App, item: Item) -> None:
    """Print a memory of the inbox with the text and the reason that it has there."""
    from bethink.ingest.inbox import SEALED, unseal  # start-up time: seldom needed

    waits = unseal(item)
    fields = {name: value for name, value in item.metadata.items() if name != SEALED}
    print_item(app.out, item._replace(text=waits.text, metadata=fields))
    app.note(f"in the inbox: {waits.reason}")


@command(
    "list",
    examples=[
        "bethink list --limit 20",
        "bethink list --kind decision --since 2026-01-01",
        "bethink list --after 0v3h2k9x4m7q1abc   # the next page",
    ],
)
@filter_options
@limit_option(50)
@option("--after ID", "Continue after this memory.", shell_complete=complete_ids)
def list_memories(app: App, /, limit: int, after: str | None, **where: object) -> int:
    """List memories, newest first.

    By when they were stored; [2026-03-01] before a text is the day it happened, if another.
    """
    with app.open() as memory:
        filters = filters_from_options(where)
        items = memory.browse(limit=limit + 1, after=after, **filters)
        unmatched = _unmatched_filters(memory, filters) if filters and not items else ()
    documents = [item_json(item) for item in items[:limit]]
    code = app.listing(documents, lambda: print_items(app.out, items[:limit]), "nothing found")
    for line in unmatched:
        app.note(yellow(line))
    if len(items) > limit:
        app.note(dim(f"more: --after {items[limit - 1].id}"))
    return code


def _unmatched_filters(memory: Memory, filters: Json) -> tuple[str, ...]:
    ceiling = {"max_classification": memory.settings.max_classification}
    query = Query("", memory.now, filters=make_filters({**ceiling, **filters}, memory.now))
    return describe_unmatched(query, memory.store)


@command("timeline", examples=["bethink timeline 1abc --window 3"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@option("--window N", "Number of memories before and after it.", click.IntRange(1, 1000), shown=5)
def timeline(app: App, item_id: str, window: int) -> None:
    """Show the memories before and after a memory.

    Its neighbours in the same conversation, each with when it was said, else those stored
    around it, each with when it was stored. Oldest first.
    """
    with app.open() as memory:
        middle = memory.get(item_id)
        items = memory.timeline(middle.id, window=window)
    items, by = merge_timeline(middle, items), "when" if middle.seq is not None else "stored"
    show = partial(print_items, app.out, items, by=by, highlighted=middle.id)
    app.listing([item_json(item) for item in items], show, "nothing found")


@command("history", examples=["bethink history 1abc"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
def history(app: App, item_id: str) -> None:
    """Show the revisions of a memory.

    Oldest first, each with its changes.
    """
    with app.open() as memory:
        revisions = memory.history(item_id)
    documents = [item_json(revision) for revision in revisions]
    app.listing(documents, lambda: print_revisions(app.out, revisions), "nothing found")


@command("events", examples=["bethink events --limit 20", "bethink events --after 120"])
@option("--after N", "Only events after number N, the oldest first.", click.IntRange(0))
@limit_option(100)
def events(app: App, after: int | None, limit: int) -> int:
    """Show the journal: who did what, and when.

    The newest first. It never contains the text of a memory.
    """
    with app.open() as memory:
        if after is None:
            found = memory.store.admin.changes(item=None, actor=None, limit=limit)
        else:
            found = memory.events(after=after, limit=limit + 1)
    has_more, found = len(found) > limit, found[:limit]
    rows = [
        (f"{one.seq}", dim(format_time(one.at)), bold(one.kind), shown_actor(one.actor),
         _about_event(one))
        for one in found if one.kind != _BOOKKEEPING
    ]  # fmt: skip
    show = partial(print_table, app.out, columns(">n", "at", "what", "by", "*about"), rows)
    code = app.listing([mapping_json(one._asdict()) for one in found], show, "nothing found")
    if has_more:
        app.note(dim(f"more: --after {found[-1].seq}"))
    return code


_BOOKKEEPING = "place"  # how far a job has come; only --json shows it


def _about_event(event: Event) -> str:
    """Return the memory or run of a journal entry, and its detail without internal fields."""
    about, detail = (event.item or "").removesuffix(":asked"), event.detail
    if detail.startswith("{"):
        fields = json.loads(detail)
        about = fields.get("run", about)
        jobs = ", ".join(f"{job} {count}" for job, count in fields.get("jobs", {}).items())
        detail = ": ".join(fields[name] for name in ("job", "why") if name in fields) or jobs
    detail = detail.removesuffix(", not judged").removesuffix("judged")
    return f"{about} {detail}".strip() if detail != about else about


@command("why", examples=["bethink why 1abc", "bethink why 1abc --depth 2 --type derives_from"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@option("--depth N", "Maximum number of links to follow.", click.IntRange(1, 16), shown=4)
@option("--type types NAME", "Only links of these types.", multiple=True)
def why(app: App, item_id: str, depth: int, types: tuple[str, ...]) -> int:
    """Show where a memory comes from.

    Its sources, causes, predecessors and references, link by link. Memories you may not
    see are omitted.
    """
    with app.open() as memory:
        found = memory.why(item_id, depth=depth, types=types)
    app.document(provenance_json(found))
    _print_provenance(app, found)
    return 0 if found.edges else 1


def _print_provenance(app: App, found: Provenance) -> None:
    out = app.out
    out.line(bold(found.item.id), "  ", one_line(found.item.text, out.width - 18))
    below: dict[str, list[ProvenanceEdge]] = {}
    for edge in found.edges:
        below.setdefault(edge.link.src.id, []).append(edge)
    _print_branches(app, found.item.id, below, "")
    if not found.edges:
        app.note("no sources are recorded for this memory; bethink links shows its links")
    if found.cut:
        app.note(dim("cut off; use a smaller --depth or --type to see less at once"))


def _print_branches(
    app: App, node: str, edges_by_source: dict[str, list[ProvenanceEdge]], indent: str
) -> None:
    edges = edges_by_source.pop(node, [])
    for number, edge in enumerate(edges, 1):
        last = number == len(edges)
        text = edge.link.dst.id
        if edge.item is not None:
            when = format_date(edge.item.when)
            text = f"{edge.item.id}  {when}  {one_line(edge.item.text, 200)}"
        retired = edge.item is not None and edge.item.status == "superseded"
        again = dim("  (see above)") if edge.again else dim("  (superseded)") if retired else ""
        room = max(20, app.out.width - len(indent) - 4 - len(edge.link.type) - 2)
        line = one_line(text, room if app.out.terminal else 0)
        app.out.line(indent, "└── " if last else "├── ", dim(edge.link.type), "  ", line, again)
        if not edge.again:
            _print_branches(
                app, edge.link.dst.id, edges_by_source, indent + ("    " if last else "│   ")
            )


@command("threads", examples=["bethink threads", "bethink threads --state blocked --json"])
@option("--state", "Only threads in this state.", click.Choice(THREAD_STATES))
@option("--lifecycle", "Only threads in this phase.", click.Choice(LIFECYCLES))
@limit_option(50)
def threads(app: App, state: str | None, lifecycle: str | None, limit: int) -> int:
    """List ongoing topics.

    Topics, cases and work, the most recently changed first. They are detected by
    `bethink maintain --job threads`.
    """
    with app.open() as memory:
        found = [
            thread
            for thread in memory.threads(limit=10_000)
            if state in (None, thread.state) and lifecycle in (None, thread.lifecycle)
        ][:limit]
    none = "no threads found; bethink maintain --job threads detects them"
    documents = [thread_json(thread) for thread in found]
    return app.listing(documents, lambda: _print_threads(app, found), none)


def _print_threads(app: App, found: list[Thread]) -> None:
    heads = columns("id", "last", "state", ">memories", "*about")
    rows = [
        (
            bold(thread.id),
            dim(format_date(thread.last_event_at)),
            f"{thread.lifecycle}, {thread.state}",
            str(len(thread.members)),
            thread.headline,
        )
        for thread in found
    ]
    print_table(app.out, heads, rows)


@command("thread", examples=["bethink thread thread-0f3a9c2b7d1e5a48"])
@click.argument("thread_id", metavar="ID")
def thread(app: App, thread_id: str) -> None:
    """Show one thread as a timeline."""
    with app.open() as memory:
        found = memory.thread(thread_id)
        ids = tuple(member.item for member in found.members)
        seen = memory.browse(limit=10_000, ids=ids, include_superseded=True) if ids else []
        items = {item.id: item for item in mark_outdated(seen, memory.store)}
    app.document(thread_json(found, items))
    print_thread(app, found, items)


def print_thread(app: App, found: Thread, items: Mapping[str, Item]) -> None:
    """Print the headline, then the events, oldest first; ``items`` are the visible ones."""
    app.out.line(bold(found.headline), dim(f"  {found.kind}, {found.lifecycle}, {found.state}"))
    roles = {member.item: member.role for member in found.members}
    for event in found.events:
        item = items.get(event.item or "")
        if item is not None:  # otherwise not visible, or erased
            _print_event(app, event, item, roles.get(item.id, ""))


def _print_event(app: App, event: ThreadEvent, item: Item, role: str) -> None:
    label = event.kind.replace("_", " ")
    head = ("  ", dim(format_date(event.at)), "  ", f"{label:<20}", dim(f"{role:<8}"), " ")
    text = one_line(item.text) if item.status == "active" else f"{one_line(item.text)} (superseded)"
    app.out.block(text, indent=43, first=head)


@command(
    "insights", examples=["bethink insights", "bethink insights 1abc", "bethink insights --build"]
)
@click.argument("item_id", metavar="[ID]", shell_complete=complete_ids, required=False)
@option("--build", "First create the insights that are due.")
@option("--min-memories N", "With --build: memories of one subject that make one.", int)
def insights(app: App, item_id: str | None, *, build: bool, min_memories: int | None) -> int:
    """Show the insight tree.

    With ID one insight: its points, and the memories that support each. Insights are made
    by `bethink maintain --job insights`, or here with --build.
    """
    with app.open() as memory:
        reports = memory.build_insights(min_memories=min_memories) if build else []
        tree = memory.insights()
        insight_id = None if item_id is None else memory.get(item_id).id
    for line in dict.fromkeys(line for report in reports for line in report.reasons()):
        app.note(yellow(line))
    if insight_id is not None:
        tree = [node for node in _flatten(tree) if node.insight.id == insight_id][:1]
        if not tree:
            raise NotFound(f"{insight_id} is not an insight", remedy="bethink insights lists them")
    app.document([insight_json(node) for node in tree])
    if not tree:
        app.note("no insights yet; bethink insights --build creates them")
    elif insight_id is not None:
        _print_insight(app, tree[0])
    else:
        for top in tree:
            _print_branch(app, top, "", "")
    return 0 if tree else 1


def _flatten(tree: list[InsightNode] | tuple[InsightNode, ...]) -> list[InsightNode]:
    return [node for branch in tree for node in (branch, *_flatten(branch.below))]


def leaf_memory_ids(branch: InsightNode) -> set[str]:
    """Collect the ids of the leaf memories below an insight, without insights between."""
    if branch.below:
        return {leaf for below in branch.below for leaf in leaf_memory_ids(below)}
    return set(recorded_sources(branch.insight))


def _print_branch(app: App, branch: InsightNode, lead: str, indent: str) -> None:
    item = branch.insight
    count = plural(len(leaf_memory_ids(branch)), "memory")
    details = f"  {item.kind} of {count}, {_written_by(item)}  {item.id}"
    stale = yellow("  stale") if branch.stale else ""
    app.out.line(lead, bold(item.caption or one_line(item.text, 60)), dim(details), stale)
    for number, below in enumerate(branch.below, 1):
        last = number == len(branch.below)
        _print_branch(
            app, below, indent + ("└── " if last else "├── "), indent + ("    " if last else "│   ")
        )


def _written_by(insight: Item) -> str:
    """Say what an insight consists of: sentences of its memories, or those of a model."""
    made_by = insight.metadata.get("made_by", "unknown")
    return "sentences chosen by rules" if made_by == "rules" else f"written by {made_by}"


def _print_insight(app: App, branch: InsightNode) -> None:
    item = branch.insight
    stale = yellow("  stale: a source has changed") if branch.stale else ""
    app.out.line(bold(item.caption or item.kind), dim(f"  {item.kind}, {_written_by(item)}"), stale)
    for point in branch.points:
        app.out.line()
        app.out.block(point.text, indent=2, first=("• ",))
        for source in point.sources:
            app.out.line("    ", dim(source.id), "  ", one_line(source.text, 100))
