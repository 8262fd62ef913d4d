"""`link`, `unlink` and `links`: how memories belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from recollect.cli.app import App
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, dim, green, one_line, plural
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from recollect.jsonable import Json
    from recollect.model import Link


@command(
    "link",
    examples=[
        "recollect link 0v3h2k9x4m7q1abc supersedes 0v3h2k9x4m7q0xyz",
        'recollect link 1abc implies 0xyz --weight 0.9 --context "since the audit"',
        "recollect link person:alice works_with person:bob --context 1abc",
    ],
)
@click.argument("src", metavar="ID")
@click.argument("relation")
@click.argument("dst", metavar="OTHER")
@click.option("--weight", type=float, default=0.5, show_default=True, metavar="0-1",
              help="How strong it is.")  # fmt: skip
@click.option("--context", metavar="TEXT", help="When or why it holds.")
@pass_app
def link(app: App, /, src: str, relation: str, dst: str, **given: float | str | None) -> None:
    """Say how two memories belong together.

    RELATION is implies, contradicts, specializes, generalizes, causes, correlates,
    part_of, context_of, supersedes, related_to, or one of provenance: caused_by,
    derives_from, references, calls, imports ... Said again, it overwrites weight and
    context; recollect unlink takes it back. What is superseded leaves recall until it is
    unlinked, or recollect undo OTHER brings it back. Between two entities, written like
    person:alice, it may be any word, and the context the memory that says so.
    """
    with app.open() as memory:
        made = memory.link(src, relation, dst, **given)  # type: ignore[arg-type]
    _print_done(app, "linked", made)


@command("unlink", examples=["recollect unlink 0v3h2k9x4m7q1abc supersedes 0v3h2k9x4m7q0xyz"])
@click.argument("src", metavar="ID")
@click.argument("relation")
@click.argument("dst", metavar="OTHER")
@pass_app
def unlink(app: App, src: str, relation: str, dst: str) -> None:
    """Take a link back.

    What nothing else supersedes is recalled again.
    """
    with app.open() as memory:
        gone = memory.unlink(src, relation, dst)
    _print_done(app, "unlinked", gone)


@command("links", examples=["recollect links 0v3h2k9x4m7q1abc"])
@click.argument("item_id", metavar="ID")
@pass_app
def links(app: App, item_id: str) -> None:
    """Show how a memory is linked to others.

    Both ways: the links that leave it, and those that lead to it.
    """
    with app.open() as memory:
        found = memory.links(item_id)
        own = item_id if ":" in item_id else memory.stored(item_id).id
        ends = tuple(dict.fromkeys(_other(one, own) for one in found))
        shown = memory.browse(limit=len(ends), ids=ends, include_superseded=True) if ends else []
        others = {item.id: item for item in shown}
    if app.json:
        app.out.json({"id": own, "links": [_link_json(one) for one in found]})
        return
    heads = [Column(""), Column("relation"), Column("weight", right=True), Column("id"),
             Column("text", wide=True)]  # fmt: skip
    rows = [
        (
            "→" if one.src.id == own else "←",
            bold(one.type),
            f"{one.weight:.2f}",
            _other(one, own),
            one_line(others[_other(one, own)].text) if _other(one, own) in others else "",
        )
        for one in found
    ]
    if rows:
        print_table(app.out, heads, rows)
    app.out.line(dim(plural(len(rows), "link")))


def _other(one: Link, own: str) -> str:
    return one.dst.id if one.src.id == own else one.src.id


def _print_done(app: App, done: str, one: Link) -> None:
    if app.json:
        app.out.json({done: _link_json(one)})
    else:
        app.out.line(green(done), f" {one.src.id} {one.type} {one.dst.id}")


def _link_json(one: Link) -> Json:
    return {
        "from": one.src.id,
        "type": one.type,
        "to": one.dst.id,
        "weight": one.weight,
        "context": one.context,
    }
