"""The commands `remember` and `update`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from bethink.cli.app import App
from bethink.cli.errors import EXIT_USAGE
from bethink.cli.files import note_unchecked_code
from bethink.cli.options import command, complete_ids, option, parse_json_object, read_text_argument
from bethink.cli.output import bold, dim, green, one_line, yellow
from bethink.errors import ModelError, Refused, SomeRefused
from bethink.model import superseding_ids
from bethink.model.fields import ITEM_FIELDS, ItemField, input_order
from bethink.render.quoting import removed_kinds
from bethink.render.wire import item_json, outcome_json

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.memory import Memory
    from bethink.model import Remembered


F = TypeVar("F", bound=Callable[..., object])


_COLLISION_LABELS = {
    "exact": "same as",
    "near": "similar to",
    "related": "may correct",
    "supersedes": "supersedes",
    "superseded": "superseded by",
    "contradicts": "contradicts",
}


def detail_options(function: F) -> F:
    """Add options for a memory's fields, passed as keyword arguments."""
    fields = input_order(field for field in ITEM_FIELDS if field.option)
    decorators = [_field_option(field) for field in fields]
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def _field_option(field: ItemField) -> Callable[[F], F]:
    """Make the option that sets a field of a memory."""
    name = f"--{(field.flag or field.name).replace('_', '-')}"
    if field.kind == "words":
        metavar = "NAME" if field.name == "entities" else "TEXT"
        return click.option(name, field.name, multiple=True, metavar=metavar, help=field.option)
    if field.kind in ("number", "scale"):
        whole = field.kind == "scale"
        low, high = field.low, field.high
        kind = click.IntRange(int(low), int(high)) if whole else click.FloatRange(low, high)
        return click.option(name, type=kind, metavar=f"{low:g}-{high:g}", help=field.option)
    metavar = {"time": "TIME", "object": "JSON"}.get(field.kind, "TEXT")
    return click.option(name, metavar=metavar, help=field.option)


def _drop_unset(app: App, details: Json) -> Json:
    """Keep only the options that were set; the write pipeline fills in the rest."""
    fields = {name: value for name, value in details.items() if value not in (None, ())}
    if "metadata" in fields:
        fields["metadata"] = parse_json_object(fields["metadata"], "--metadata")
    if "anchors" in fields:
        note_unchecked_code(app)
        fields["anchors"] = [_from_here(anchor) for anchor in fields["anchors"]]
    return fields


def _from_here(anchor: str) -> str:
    """Return the path::symbol of a file of the working directory as its repository has it."""
    from bethink.code.anchors import path_in_repository  # start-up time: seldom needed

    path, mark, symbol = anchor.partition("::")
    here = Path.cwd()
    found = path_in_repository(str(here / path), here) if (here / path).is_file() else ""
    return anchor if not found or Path(found).is_absolute() else f"{found}{mark}{symbol}"


@command(
    "remember",
    examples=[
        'bethink remember "Tests run with make test"',
        'bethink remember "We chose PostgreSQL 16" --kind decision --topic database',
        "git log -1 --format=%B | bethink remember - --source git",
    ],
)
@click.argument("texts", metavar="TEXT", nargs=-1)
@detail_options
@option("--pin pinned", "Exempt it from automatic forgetting.", default=None)
@option(
    "--level", "raw is a verbatim episode; default item.", click.Choice(["raw", "item", "insight"])
)
@option("--session NAME", "Session (conversation) that it belongs to.")
@option("--user NAME", "Whose memory it is (user_id of its metadata).")
@option("--seq N", "Position in the session.", int)
@option("--parent ID", "Memory that it was derived from.", shell_complete=complete_ids)
@option("--source TEXT", "Source that it comes from; default user.")
@option("--source-class TEXT", "owner, user, agent, tool, import, web or unknown.")
@option("--id TEXT", "Id to assign.")
@option("--key TEXT", "Idempotency key: a second call with it stores nothing.")
@option("--force", "Store it even if it looks like a log.", default=None)
@option("--extract", "Also extract details with the language model.")
def remember(app: App, /, texts: tuple[str, ...], *, extract: bool, **details: object) -> None:
    """Store a memory.

    TEXT is the memory; without one, or for -, it is read from standard input. Several
    TEXTs are several memories. Secrets are removed, and duplicates are not stored again.
    """
    if not texts and sys.stdin.isatty():
        raise click.UsageError("missing argument 'TEXT'")
    if len(texts) > 1 and any(" " not in text.strip() for text in texts):
        raise click.UsageError(
            "each of these words would become its own memory; put the text in quotes"
        )
    fields = _drop_unset(app, details)
    drafts = [{"text": read_text_argument(text), **fields} for text in texts or ("-",)]
    with app.open(create=True) as memory:
        results, failure = _remember_all(memory, drafts)
        if extract:
            results = [_extract_with_llm(memory, result) for result in results]
    documents = [outcome_json(result) for result in results]
    app.document(documents[0] if len(documents) == 1 else documents)
    if failure is not None and app.json:
        raise click.exceptions.Exit(EXIT_USAGE)
    for result in results:
        if not isinstance(result, Refused):
            print_remembered(app, result)
    if failure is not None:
        raise failure


def _remember_all(
    memory: Memory, drafts: list[Json]
) -> tuple[Sequence[Remembered | Refused], SomeRefused | None]:
    """Store memories; return the outcome of each, and the error that names refused ones."""
    try:
        return memory.remember_many(drafts, relate=True), None
    except SomeRefused as error:
        return cast("tuple[Remembered | Refused, ...]", error.results), error


def _extract_with_llm(memory: Memory, result: Remembered | Refused) -> Remembered | Refused:
    """Add what the language model extracts; if the model is down, mark it as pending."""
    if isinstance(result, Refused) or result.status != "stored":
        return result
    try:
        (item,) = memory.extract(result.id)
    except ModelError:
        return result._replace(pending=(*result.pending, "extraction"))
    names = (entity.partition(":")[2] for entity in item.entities)
    known = {name.casefold() for name in result.entities}
    found = tuple(name for name in names if name not in known)
    return result._replace(entities=(*result.entities, *found))


def print_remembered(app: App, result: Remembered) -> None:
    """Print the outcome of storing a draft: its id, then collisions and flags."""
    if app.quiet:
        app.out.line(result.id)
        return
    style = green if result.status == "stored" else yellow
    app.out.line(style(result.status), " ", bold(result.id))
    for collision in result.collisions:
        label = f"{_COLLISION_LABELS[collision.kind]} {collision.id}"
        app.out.line(dim(f"  {label}: {one_line(collision.text, 60)}"))
        app.out.line(dim(f"    {collision.measure}, {collision.action}"))
        if collision.resolve:
            app.out.line(dim("    resolve: "), collision.resolve)
    for title, entries in (
        ("redacted", result.redacted),
        ("mentions", result.entities),
        ("flagged", result.flags),
        ("pending", result.pending),
    ):
        if entries:
            app.out.line(dim(f"  {title}: {', '.join(entries)}"))


@command(
    "update",
    examples=[
        'bethink update 0v3h2k9x4m7q1abc "We chose PostgreSQL 17"',
        "bethink update 1abc --importance 0.9 --pin",
    ],
)
@click.argument("item_id", metavar="ID", shell_complete=complete_ids)
@click.argument("text", required=False)
@option("--text text_option TEXT", "New text; - reads standard input.")
@detail_options
@option("--pin/--no-pin pinned", "Exempt it from automatic forgetting, or not.", default=None)
def update(
    app: App, /, item_id: str, text: str | None, text_option: str | None, **details: Any
) -> None:
    """Correct a memory; its history keeps the old text.

    ID is the memory's id or a unique part of it. TEXT is the new text; - reads it from
    standard input.
    """
    if text is not None and text_option is not None:
        raise click.UsageError("the new text is given twice; use either TEXT or --text")
    changes = _drop_unset(app, details)
    new_text = text if text is not None else text_option
    if new_text is not None:
        changes["text"] = read_text_argument(new_text)
    if not changes:
        raise click.UsageError("nothing to change; give a new text or an option")
    with app.open() as memory:
        before = memory.stored(item_id).rev
        item = memory.update(item_id, **changes)
        newer = superseding_ids(item, memory.links(item.id))
    app.document(item_json(item))
    if app.quiet:
        app.out.line(item.id)
    else:
        done = green("updated") if item.rev > before else "unchanged"
        app.out.line(done, " ", bold(item.id), dim(f" revision {item.rev}"))
        if removed := removed_kinds(changes.get("text", item.text), item.text):
            app.out.line(dim(f"  redacted: {', '.join(removed)}"))
        for other in newer:
            app.out.line("  superseded by ", bold(other), ", so recall does not return it")
            app.out.line(dim(f'    correct that one: bethink update {other} "..."'))
