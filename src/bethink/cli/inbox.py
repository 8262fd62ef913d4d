"""The commands `inbox` and `skills`: review what waits, and export procedures that worked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.app import App, confirm
from bethink.cli.options import complete_ids, group, option
from bethink.cli.output import bold, dim, green, one_line, yellow
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.render.wire import waiting_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bethink.memory import Memory
    from bethink.model import Waiting

_IDS = click.argument("ids", metavar="[ID...]", shell_complete=complete_ids, nargs=-1)
_SOURCE = option("--source TEXT", "Only of this source, or class of sources: web, tool ...")


@group(
    "inbox",
    examples=["bethink inbox --source web", "bethink inbox accept 1abc", "bethink undo 1abc"],
)
@_SOURCE
@option("--refused", "List those that were refused or left out, instead.")
def inbox(app: App, /, **filters: Any) -> int:
    """Review memories that wait outside of recall.

    Without a command it lists them. The settings review_agent, review_tool,
    review_web and review_import say which do; `bethink undo ID` takes a decision back.
    """
    with app.open() as memory:
        found = memory.inbox(**filters)
    documents = [waiting_json(one) for one in found]
    return app.listing(documents, lambda: _print_waiting(app, found), "the inbox is empty")


def _print_waiting(app: App, found: Sequence[Waiting]) -> None:
    for one in found:
        app.out.line(bold(one.id), "  ", one_line(one.text, max(20, app.out.width - 20)))
        worth = "" if one.worth is None else f"worth {one.worth:.2f}; "
        app.out.line(dim(f"    {worth}{one_line(one.reason)}; {one_line(one.draft.source)}"))
    app.note(dim(f"{plural(len(found), 'memory')} in the inbox"))


def _chosen(memory: Memory, app: App, ids: tuple[str, ...], given: Json) -> list[str]:
    """Return the ids to decide about: those given or, once confirmed, all of a source."""
    if bool(ids) == bool(given["all"] or given["source"]):
        raise click.UsageError("give the ids of memories, or --source or --all")
    if ids:
        return list(ids)
    found = memory.inbox(source=given["source"])
    _print_waiting(app, found)
    question = f"{plural(len(found), 'memory')}: go on?"
    if given["yes"] or confirm(app, question):
        return [one.id for one in found]
    app.note(dim("nothing was changed; use --yes to apply"))
    return []


def _report(app: App, label: str, ids: Sequence[str]) -> None:
    app.document({label: list(ids)})
    for item in ids:
        app.out.line(green(label), " ", bold(item))


def _bulk(function: Callable[..., Any]) -> Callable[..., Any]:
    yes, every = option("-y --yes", "Do not ask."), option("--all", "All that wait.")
    for decorate in (yes, every, _SOURCE, _IDS):
        function = decorate(function)
    return function


@inbox.subcommand(
    "accept", examples=["bethink inbox accept 1abc", "bethink inbox accept --source agent -y"]
)
@_bulk
def accept(app: App, /, ids: tuple[str, ...], **given: Any) -> None:
    """Let memories into recall, by ids or a filter; they keep the trust of their source."""
    with app.open() as memory:
        _report(
            app, "accepted", [one.id for one in memory.accept(*_chosen(memory, app, ids, given))]
        )


@inbox.subcommand(
    "refuse", examples=["bethink inbox refuse 1abc", "bethink inbox refuse --all --yes"]
)
@_bulk
def refuse(app: App, /, ids: tuple[str, ...], **given: Any) -> None:
    """Take memories out of the inbox; the same text does not come back when captured again."""
    with app.open() as memory:
        _report(app, "refused", memory.refuse(*_chosen(memory, app, ids, given)))


@inbox.subcommand("edit", examples=['bethink inbox edit 1abc "The API limit is 90 calls a minute"'])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@click.argument("text")
def edit(app: App, /, item_id: str, text: str) -> None:
    """Let a memory into recall with another text."""
    with app.open() as memory:
        _report(app, "accepted", [one.id for one in memory.accept(item_id, text=text)])


@inbox.subcommand(
    "merge", examples=["bethink inbox merge 1abc 2def", "bethink inbox merge 1abc --into 9xyz"]
)
@_IDS
@option("--into ID", "A stored memory to add them to.")
@option("--text TEXT", "The text of the one memory; default: all texts.")
def merge(app: App, /, ids: tuple[str, ...], *, into: str | None, text: str | None) -> None:
    """Make one memory of several, or add them to a stored one."""
    with app.open() as memory:
        _report(app, "merged", [memory.merge(*ids, into=into, text=text).id])


@group(
    "skills",
    examples=["bethink skills", "bethink skills export 1abc .claude/skills/make-protobufs"],
)
def skills(app: App) -> int:
    """List and export procedures that worked twice."""
    from bethink.agents.skills import list_skills  # help does without

    with app.open() as memory:
        rows = list_skills(memory)
    app.document([dict(zip(("id", "state", "text"), row, strict=True)) for row in rows])
    for own, state, text in rows:
        app.out.line(bold(own), "  ", yellow(state), "  ", one_line(text, app.out.width - 30))
    if not rows:
        app.note(dim("no procedure has worked in two captured sessions yet"))
    return 0 if rows else 1


@skills.subcommand("export", examples=["bethink skills export 1abc .claude/skills/make-protobufs"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@click.argument("folder", type=click.Path(path_type=Path))
def export(app: App, /, item_id: str, folder: Path) -> None:
    """Write an accepted procedure as FOLDER/SKILL.md, unless a command of it can lose data."""
    from bethink.agents.skills import export_skill  # help does without

    with app.open() as memory:
        _report(app, "wrote", [str(export_skill(memory.get(item_id), folder))])
