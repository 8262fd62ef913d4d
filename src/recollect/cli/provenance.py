"""`why`: where a memory comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, day, dim, one_line

if TYPE_CHECKING:
    from recollect.provenance import Origin, Provenance


@command("why", examples=["recollect why 1abc", "recollect why 1abc --depth 2 --type derives_from"])
@click.argument("item_id", metavar="ID")
@click.option("--depth", type=click.IntRange(1, 16), default=4, show_default=True, metavar="N",
              help="How many links far.")  # fmt: skip
@click.option("--type", "types", multiple=True, metavar="NAME", help="Only links of these types.")
@pass_app
def why(app: App, item_id: str, depth: int, types: tuple[str, ...]) -> int:
    """Show where a memory comes from.

    What it was made of, what caused it, what it replaces and speaks about, link by
    link. Memories you may not see are left out.
    """
    with app.open() as memory:
        found = memory.why(item_id, depth=depth, types=types)
    if app.json:
        from recollect.wire import provenance_json  # plain output does without

        app.out.json(provenance_json(found))
    else:
        _print(app, found)
    return 0 if found.edges else 1


def _print(app: App, found: Provenance) -> None:
    out = app.out
    out.line(bold(found.item.id), "  ", one_line(found.item.text, out.width - 18))
    below: dict[str, list[Origin]] = {}
    for edge in found.edges:
        below.setdefault(edge.link.src.id, []).append(edge)
    _branches(app, found.item.id, below, "")
    if not found.edges:
        app.note("nothing is linked to it: it stands for itself")
    if found.cut:
        app.note(dim("there is more; a smaller --depth or a --type shows less at once"))


def _branches(app: App, node: str, below: dict[str, list[Origin]], indent: str) -> None:
    edges = below.pop(node, [])
    for number, edge in enumerate(edges, 1):
        last = number == len(edges)
        told = edge.link.dst.id
        if edge.item is not None:
            when = day(edge.item.when)
            told = f"{edge.item.id}  {when}  {one_line(edge.item.text, 200)}"
        taken_up = edge.item is not None and edge.item.live_to is not None
        again = dim("  (see above)") if edge.again else dim("  (taken up)") if taken_up else ""
        room = max(20, app.out.width - len(indent) - 4 - len(edge.link.type) - 2)
        line = one_line(told, room if app.out.terminal else 0)
        app.out.line(indent, "└── " if last else "├── ", dim(edge.link.type), "  ", line, again)
        if not edge.again:
            _branches(app, edge.link.dst.id, below, indent + ("    " if last else "│   "))
