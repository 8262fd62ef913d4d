"""`entities`: whom and what the memories speak of, and which of them are one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.details import print_entities
from recollect.cli.options import Command, Group, limit_option, pass_app
from recollect.cli.printing import bold, dim, green

if TYPE_CHECKING:
    from recollect.model import Entity


@click.group(
    "entities",
    cls=Group,
    examples=[
        "recollect entities",
        "recollect entities --kind person",
        'recollect entities merge "Ana Torres" person:atorres',
    ],
)
@click.option("--prefix", metavar="TEXT", default="", help="Only names that begin so.")
@click.option("--kind", multiple=True, metavar="TEXT", help="person, project, tool, file, ...")
@click.option("--min-memories", type=click.IntRange(0), default=1, show_default=True, metavar="N",
              help="Only those with so many memories.")  # fmt: skip
@limit_option(30)
@click.option("--offset", type=click.IntRange(0), default=0, metavar="N", help="Leave out so many.")
@click.pass_context
def entities(ctx: click.Context, /, limit: int, **wanted: Any) -> int:
    """List whom and what the memories speak of.

    Where most is going on first: by momentum, then by how many memories there are and
    how lately it came up.
    """
    return _list(ctx.ensure_object(App), limit, wanted) if ctx.invoked_subcommand is None else 0


def _list(app: App, limit: int, wanted: dict[str, Any]) -> int:
    with app.open() as memory:
        found = memory.entities(limit=limit, **wanted)
    if app.json:
        from recollect.wire import entity_json  # plain output does without

        app.out.json([entity_json(entity) for entity in found])
    elif found:
        print_entities(app.out, found)
        if len(found) == limit:
            app.note(dim(f"more: --offset {wanted['offset'] + limit}"))
    else:
        app.note("nothing found")
    return 0 if found else 1


@entities.command(
    "merge",
    cls=Command,
    examples=['recollect entities merge "Ana Torres" person:atorres'],
)
@click.argument("kept", metavar="KEPT")
@click.argument("gone", metavar="OTHER")
@pass_app
def merge(app: App, kept: str, gone: str) -> None:
    """Let one entity stand for two.

    KEPT and OTHER are ids like person:ana, or names that only one has. All memories of
    OTHER become KEPT's, and its names lead to KEPT. `recollect entities split` takes it
    back.
    """
    with app.open() as memory:
        merged = memory.merge_entities(kept, gone)
    _show(app, "merged", merged)


@entities.command(
    "split",
    cls=Command,
    examples=['recollect entities split "Ana Torres" person:atorres'],
)
@click.argument("kept", metavar="KEPT")
@click.argument("gone", metavar="OTHER")
@pass_app
def split(app: App, kept: str, gone: str) -> None:
    """Take a merging back.

    OTHER is an entity of its own again, with the names and memories it had. What was
    remembered since stays with KEPT.
    """
    with app.open() as memory:
        alone = memory.split_entities(kept, gone)
    _show(app, "split off", alone)


def _show(app: App, done: str, entity: Entity) -> None:
    if app.json:
        from recollect.wire import entity_json  # plain output does without

        app.out.json(entity_json(entity))
    else:
        names = ", ".join((entity.name, *entity.aliases))
        told = dim(f"  {names}; {entity.mentions:,} memories")
        app.out.line(green(done), " ", bold(entity.id), told)
