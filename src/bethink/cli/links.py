"""The commands `link`, `unlink`, `links`, `boost`, `demote` and `entities`."""

from __future__ import annotations

from typing import Any

import click

from bethink.cli.answers import print_entities
from bethink.cli.app import App
from bethink.cli.options import command, complete_ids, group, limit_option, option
from bethink.cli.output import bold, columns, dim, green, one_line, print_table
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.model import Entity, Link
from bethink.render.wire import entity_json, item_json


@command(
    "link",
    examples=[
        "bethink link 0v3h2k9x4m7q1abc supersedes 0v3h2k9x4m7q0xyz",
        'bethink link 1abc implies 0xyz --weight 0.9 --context "since the audit"',
        "bethink link person:alice works_with person:bob --context 1abc",
    ],
)
@click.argument("src", metavar="ID", shell_complete=complete_ids)
@click.argument("relation")
@click.argument("dst", metavar="OTHER", shell_complete=complete_ids)
@option("--weight 0-1", "Strength of the link.", float, shown=0.5)
@option("--context TEXT", "When or why it holds.")
def link(app: App, /, src: str, relation: str, dst: str, **options: float | str | None) -> None:
    """Link two memories.

    RELATION is implies, contradicts, specializes, generalizes, causes, correlates,
    part_of, context_of, supersedes, related_to, or one of provenance: caused_by,
    derives_from, references, calls, imports ... Linking again overwrites weight and
    context; bethink unlink removes the link. A superseded memory leaves recall until it
    is unlinked or bethink undo OTHER restores it. Between two entities, written like
    person:alice, RELATION may be any word, and the context the memory that states it.
    """
    with app.open() as memory:
        created = memory.link(src, relation, dst, **options)  # type: ignore[arg-type]
    _print_link_result(app, "linked", created)


@command("unlink", examples=["bethink unlink 0v3h2k9x4m7q1abc supersedes 0v3h2k9x4m7q0xyz"])
@click.argument("src", metavar="ID", shell_complete=complete_ids)
@click.argument("relation")
@click.argument("dst", metavar="OTHER", shell_complete=complete_ids)
def unlink(app: App, src: str, relation: str, dst: str) -> None:
    """Remove a link.

    A memory that nothing else supersedes is recalled again. Of two turns of a chat that no
    link joins, RELATION updates says that neither updates the other.
    """
    with app.open() as memory:
        removed = memory.unlink(src, relation, dst)
    _print_link_result(app, "unlinked", removed)


@command("links", examples=["bethink links 0v3h2k9x4m7q1abc"])
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
def links(app: App, item_id: str) -> int:
    """Show the links of a memory.

    In both directions: outgoing and incoming.
    """
    with app.open() as memory:
        found = memory.links(item_id)
        own = item_id if ":" in item_id else memory.stored(item_id).id
        ends = tuple(dict.fromkeys(_other_end(link_, own) for link_ in found))
        shown = memory.browse(limit=len(ends), ids=ends, include_superseded=True) if ends else []
        texts = {item.id: one_line(item.text) for item in shown}
    app.document({"id": own, "links": [_link_json(link_) for link_ in found]})
    heads = columns("", "relation", ">weight", "id", "*text")
    rows = [
        (
            "→" if one.src.id == own else "←",
            bold(one.type),
            f"{one.weight:.2f}",
            end,
            texts.get(end, ""),
        )
        for one in found
        for end in [_other_end(one, own)]
    ]
    if rows:
        print_table(app.out, heads, rows)
    app.out.line(dim(plural(len(rows), "link")))
    return 0 if found else 1


def _other_end(link_: Link, own: str) -> str:
    return link_.dst.id if link_.src.id == own else link_.src.id


def _print_link_result(app: App, action: str, link_: Link) -> None:
    ends = f" {link_.src.id} {link_.type} {link_.dst.id}"
    app.report({action: _link_json(link_)}, green(action), ends)


def _link_json(link_: Link) -> Json:
    return {
        "from": link_.src.id,
        "type": link_.type,
        "to": link_.dst.id,
        "weight": link_.weight,
        "context": link_.context,
    }


_MAX_ADJUSTMENT = 20.0


@command("boost", examples=["bethink boost 0v3h2k9x4m7q1abc", "bethink boost 1abc --by 3"])
@click.argument("ids", metavar="ID", shell_complete=complete_ids, nargs=-1, required=True)
@option("--by N", "Amount to add.", click.FloatRange(0, _MAX_ADJUSTMENT, min_open=True), shown=1.0)
def boost(app: App, /, ids: tuple[str, ...], by: float) -> None:
    """Mark a memory as relevant.

    Each boost adds one, up to ten either way, and raises the scores of later answers by 2 %
    (profile default). A boost is a revision, so it can be looked up and undone.
    """
    _adjust_relevance(app, ids, by)


@command("demote", examples=["bethink demote 0v3h2k9x4m7q1abc"])
@click.argument("ids", metavar="ID", shell_complete=complete_ids, nargs=-1, required=True)
@option(
    "--by N", "Amount to subtract.", click.FloatRange(0, _MAX_ADJUSTMENT, min_open=True), shown=1.0
)
def demote(app: App, /, ids: tuple[str, ...], by: float) -> None:
    """Mark a memory as less relevant.

    The opposite of boost.
    """
    _adjust_relevance(app, ids, -by)


def _adjust_relevance(app: App, ids: tuple[str, ...], by: float) -> None:
    with app.open() as memory:
        items = [memory.boost(item_id, by) for item_id in ids]
    documents = [item_json(item) for item in items]
    app.document(documents[0] if len(documents) == 1 else documents)
    for item in items:
        if app.quiet:
            app.out.line(item.id)
        else:
            app.out.line(
                green("marked"), " ", bold(item.id), dim(f" relevance {item.relevance:+g}")
            )


@group(
    "entities",
    examples=[
        "bethink entities",
        "bethink entities --kind person",
        'bethink entities merge "Ana Torres" person:atorres',
    ],
)
@option("--prefix TEXT", "Only names with this prefix.", default="")
@option("--kind TEXT", "Kind: person, project, tool, file, ...", multiple=True)
@option("--min-memories N", "Minimum number of memories.", click.IntRange(0), shown=1)
@limit_option(30)
@option("--offset N", "Skip the first N results.", click.IntRange(0), default=0)
def entities(app: App, /, limit: int, offset: int, **filters: Any) -> int:
    """List the entities that memories mention.

    Sorted by momentum, then by number of memories and by recency.
    """
    with app.open() as memory:
        found = memory.entities(limit=limit, offset=offset, **filters)
    documents = [entity_json(entity) for entity in found]
    code = app.listing(documents, lambda: print_entities(app.out, found), "nothing found")
    if len(found) == limit:
        app.note(dim(f"more: --offset {offset + limit}"))
    return code


@entities.subcommand("merge", examples=['bethink entities merge "Ana Torres" person:atorres'])
@click.argument("kept", metavar="KEPT")
@click.argument("gone", metavar="OTHER")
def merge(app: App, kept: str, gone: str) -> None:
    """Merge two entities into one.

    KEPT and OTHER are ids like person:ana, or unambiguous names. All memories of OTHER
    become KEPT's, and its names resolve to KEPT. `bethink entities split` reverts it.
    """
    with app.open() as memory:
        merged = memory.merge_entities(kept, gone)
    _print_entity_result(app, "merged", merged)


@entities.subcommand("split", examples=['bethink entities split "Ana Torres" person:atorres'])
@click.argument("kept", metavar="KEPT")
@click.argument("gone", metavar="OTHER")
def split(app: App, kept: str, gone: str) -> None:
    """Revert a merge of two entities.

    OTHER becomes an entity again, with its former names and memories. Memories stored
    since stay with KEPT.
    """
    with app.open() as memory:
        separated = memory.split_entities(kept, gone)
    _print_entity_result(app, "split off", separated)


def _print_entity_result(app: App, action: str, entity: Entity) -> None:
    names = ", ".join((entity.name, *entity.aliases))
    details = dim(f"  {names}; {plural(entity.mentions, 'memory')}")
    app.report(entity_json(entity), green(action), " ", bold(entity.id), details)
