"""The command `people`: who may see what of a space, and leaving it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from bethink.access.audit import ReadAudit
from bethink.access.people import ROLES, Directory
from bethink.access.policy import Right
from bethink.access.tokens import ANY_SPACE, TokenStore, expiry_after
from bethink.cli.app import App, confirm
from bethink.cli.options import group, option
from bethink.cli.output import bold, columns, dim, green, print_table, yellow
from bethink.core import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bethink.core.json_values import Json
    from bethink.people import PersonMemory


@group(
    "people",
    examples=[
        "bethink people add anna",
        "bethink people role anna maintainer",
        "bethink people remove anna --export anna.jsonl --erase",
    ],
)
def people(app: App) -> int:
    """Add, list and remove the people of a space.

    Each person signs in to bethink serve with a token of their own, sees what all of the
    space see, what is shared with them, and what is theirs alone. Roles: a reader recalls, a
    writer also stores and corrects, a maintainer also erases, exports and imports, an owner
    keeps the space. No role sees what is private to another.
    """
    return list_people(app)


@people.subcommand(
    "add", examples=["bethink people add anna", "bethink people add ben --role reader"]
)
@click.argument("name")
@option(
    "--role", "What they may do; default: owner for the first, then writer.", click.Choice([*ROLES])
)
@option("--expires SPAN", "Lifetime of the token, for example 90d; default: no expiry.")
def add(app: App, /, name: str, *, role: str | None, expires: str | None) -> None:
    """Add a person to a space, and print a token to sign in with.

    The token works in every space of which the person is a member, with the role they have
    there. A person who has a token gets no other one: bethink token create NAME --person
    PERSON makes more.
    """
    directory, space = Directory(), app.where().name
    until = None if expires is None else expiry_after(expires, datetime.now(UTC))
    chosen = role or ("writer" if directory.roles(space) else "owner")
    person = directory.add(name, space, chosen)
    tokens = TokenStore()
    secret = None
    if not any(token.person == person.id for token in tokens.all()):
        taken = {token.name for token in tokens.all()}
        label = name if name not in taken else person.id
        secret = tokens.create(label, Right.ADMIN, (ANY_SPACE,), expires=until, person=person.id)
    app.document({"name": name, "id": person.id, "role": chosen, "token": secret})
    if secret is not None:
        app.out.line(secret)
        app.note(dim("the token is not shown again"))
    app.note(green(f"{name}: {chosen} of {space}"))


@people.subcommand("role", examples=["bethink people role anna maintainer"])
@click.argument("name")
@click.argument("role", type=click.Choice([*ROLES]))
def set_role(app: App, /, name: str, role: str) -> None:
    """Change the role of a person in a space.

    Running servers notice at once. A space keeps an owner while it has members.
    """
    space = app.where().name
    before = Directory().set_role(name, space, role)
    shown = green(f"{name}: {role} of {space}"), dim(f", before {before}")
    app.remark({"name": name, "role": role, "before": before}, *shown)


@people.subcommand("list", examples=["bethink people list", "bethink people list --json"])
def list_people(app: App) -> int:
    """List the people of a space and their roles."""
    directory, space = Directory(), app.where().name
    roles = directory.roles(space)
    members = [one for one in directory.people() if one.id in roles]
    limits = {one.id: one.limits.get(space, {}) for one in members}
    shown = ((one, {"role": roles[one.id], "limits": limits[one.id]}) for one in members)
    documents = [
        {"name": one.name, "id": one.id, "created": one.created} | more for one, more in shown
    ]
    rows = [
        (bold(one.name), roles[one.id], _say_limits(limits[one.id]), dim(one.id)) for one in members
    ]
    heads = columns("name", "role", "limits", "*id")
    none = f"no people were added to {space}: everyone who can open it sees all of it"
    return app.listing(documents, lambda: print_table(app.out, heads, rows), none)


def _say_limits(limits: Mapping[str, int]) -> str:
    units = {"memories": "memories", "requests": "requests/min"}
    return ", ".join(f"{limits[what]:,} {unit}" for what, unit in units.items() if what in limits)


@people.subcommand("limit", examples=["bethink people limit ben --memories 5000 --requests 120"])
@click.argument("name")
@option("--memories N", "How many memories they may keep in the space; 0: any number.", int)
@option("--requests N", "How many requests they may send in a minute; 0: as the server.", int)
def limit(app: App, /, name: str, *, memories: int | None, requests: int | None) -> None:
    """Limit how much a person may keep in a space, and how often they may ask.

    Servers notice at once. All memories that a person stored count, forgotten ones until they
    are erased. Without options the limits are shown.
    """
    given = {"memories": memories, "requests": requests}
    wanted = {what: number for what, number in given.items() if number is not None}
    kept = Directory().set_limits(name, app.where().name, wanted)
    shown = green(f"{name}: {_say_limits(kept) or 'no limits'}")
    app.remark({"name": name, "limits": kept}, shown)


@people.subcommand(
    "remove",
    examples=[
        "bethink people remove anna",
        "bethink people remove anna --export anna.jsonl --erase --yes",
    ],
)
@click.argument("name")
@option("--export FILE", "First write what is theirs to a file, for bethink import.")
@option("--erase", "Erase what only they see, and what they wrote for some.")
@option("--also-space", "With --erase: also what they wrote for all of the space.")
@option("-y --yes", "Do not ask for confirmation.")
def remove(
    app: App, /, name: str, *, export: str | None, erase: bool, also_space: bool, yes: bool
) -> int:
    """Remove a person from a space; their access ends at once.

    Without --erase what only they saw stays in its file, which no server opens.
    What they wrote for all stays, with an id in the place of their name. Shows what would be
    erased and, at a terminal, asks for confirmation. An erase cannot be undone.
    """
    from bethink.people import seen_by  # help does without

    directory, space = Directory(), app.where().name
    person = directory.find(name)
    directory.require_removable(name, space)  # before anything is erased
    opened = app.open()
    with closing(opened):
        everything = opened.using(settings=replace(opened.settings, max_classification=3))
        memory = seen_by(everything, name, directory, Right.ADMIN)
        plan = memory.erase_own(also_space=also_space, preview=True) if erase else {}
        if not (yes or confirm(app, _question(name, space, plan))):
            _report(app, name, plan, removed=False)
            return 0
        if export is not None:
            _write_export(memory, export)
        gone = memory.erase_own(also_space=also_space) if erase else {}
    unseen = directory.remove(name, space, erase=erase)
    if person.id not in {one.id for one in directory.people()}:
        TokenStore().revoke_person(person.id)
    if erase:
        ReadAudit(app.settings).forget(person.id)
        for key in unseen:
            _remove_shelf(app, space, key)
    _report(app, name, gone, removed=True)
    return 0


def _question(name: str, space: str, plan: Json) -> str:
    what = ", ".join(f"{plural(count, 'memory')} {where}" for where, count in plan.items())
    return f"Remove {name} from {space}{f' and erase {what}' if what else ''}?"


def _report(app: App, name: str, counts: Json, *, removed: bool) -> None:
    for where, count in counts.items():
        verb = green("erased") if removed else yellow("would erase")
        app.out.line(verb, f" {plural(count, 'memory')} {where}")
    document = {"name": name, "removed": removed, "erased": counts}
    app.report(document, green("removed"), " ", bold(name), done=removed)


def _write_export(memory: PersonMemory, file: str) -> None:
    from bethink.cli.transfer import open_output  # only with --export
    from bethink.render.wire import dumps

    with open_output(file) as out:
        for record in memory.export_own():
            out.write(dumps(record) + "\n")


def _remove_shelf(app: App, space: str, key: str) -> None:
    """Remove a store that has no reader left."""
    from bethink.cli.config import remove_stored  # only with --erase
    from bethink.store import list_shelves, shelf_name

    store = app.settings.store
    for name, file in list_shelves(store, space, app.where().path):
        if name == shelf_name(space, key):
            remove_stored(store, name, file)


@people.subcommand("reads", examples=["bethink people reads", "bethink people reads anna --json"])
@click.argument("name", required=False)
def reads(app: App, /, name: str | None) -> int:
    """Show who was shown which memories.

    Servers record it where the setting audit_reads is on: bethink config set audit_reads true.
    """
    directory = Directory()
    wanted = None if name is None else directory.find(name).id
    found = [
        one | {"who": directory.name_of(one["who"])}
        for one in ReadAudit(app.settings).lines()
        if wanted in {None, one["who"]}
    ]
    rows = [
        (dim(one["at"][:19]), bold(one["who"]), one["operation"], dim(" ".join(one["ids"])))
        for one in found
    ]
    heads = columns("at", "who", "operation", "*memories")
    return app.listing(found, lambda: print_table(app.out, heads, rows), "no reads were recorded")
