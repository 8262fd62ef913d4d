"""`token`: who may come in from elsewhere, with which scope, for how long."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.options import Command, Group, command, pass_app
from recollect.cli.printing import bold, dim, green, moment, yellow
from recollect.cli.tables import Column, print_table

if TYPE_CHECKING:
    from recollect.access.tokens import Token, Tokens

_SCOPES = ("read", "write", "admin")


class SpacesCommand(Command):
    """A command whose own --space can be given several times."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [one for one in self.params if one.name != "space"]


@click.group(
    "token",
    cls=Group,
    examples=[
        "recollect token create laptop --scope write --expires 90d",
        "recollect token list",
        "recollect token revoke laptop",
    ],
)
@click.pass_context
def token(ctx: click.Context) -> int:
    """Create, list and revoke tokens.

    A token lets a program in to recollect serve and recollect mcp --http: with a scope
    (read, write or admin), to the spaces it was made for, until it expires. Only its
    hash is kept.
    """
    return _list(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


def _tokens() -> Tokens:
    from recollect.access.tokens import Tokens  # help does without
    from recollect.places import config_folder

    return Tokens(config_folder(os.environ))


@click.command(
    "create",
    cls=SpacesCommand,
    examples=[
        "recollect token create laptop --scope write",
        "recollect token create dashboard --scope read --expires 30d --space work --space home",
    ],
)
@click.argument("name")
@click.option("--scope", type=click.Choice(_SCOPES), required=True, help="What it allows.")
@click.option("--space", "spaces", multiple=True, metavar="NAME",
              help="For which space; else the one in use here.")  # fmt: skip
@click.option("--any-space", is_flag=True, help="For every space.")
@click.option("--expires", metavar="SPAN", help="For example 12h, 30d, 1y; else never.")
@pass_app
def create(
    app: App, /, name: str, scope: str, spaces: tuple[str, ...], *, any_space: bool,
    expires: str | None,
) -> None:  # fmt: skip
    """Make a token and print it, this once.

    read asks; write also stores, corrects and forgets what can be brought back; admin also
    erases, exports and imports. Settings and tokens are changed on this machine alone.
    """
    from recollect.access.rights import Right  # help does without
    from recollect.access.tokens import ANY_SPACE, expiry_of
    from recollect.errors import Refused

    if any_space and spaces:
        raise Refused("--any-space and --space exclude each other")
    until = None if expires is None else expiry_of(expires, datetime.now(UTC))
    meant = (ANY_SPACE,) if any_space else _named(app, spaces)
    made = _tokens().create(name, Right[scope.upper()], meant, expires=until)
    if app.json:
        told = next(one for one in _tokens().all() if one.name == name).told()
        app.out.json({"token": made, **told})
        return
    app.out.line(made)
    where = "every space" if any_space else ", ".join(meant)
    app.note(green(f"{name}: {scope}, for {where}"), dim("; it is not shown again"))


def _named(app: App, spaces: tuple[str, ...]) -> tuple[str, ...]:
    from recollect.spaces import data_dir, space_path  # help does without

    for space in spaces:
        if not space_path(space, data_dir(app.settings)).exists():
            # It may be made later; more often it is a slip of the pen.
            app.note(yellow(f"there is no space {space} yet; recollect spaces lists them"))
    return spaces or (app.where().name,)


@command("list", examples=["recollect token list", "recollect token list --json"])
@pass_app
def list_tokens(app: App) -> int:
    """List the tokens, without showing them."""
    return _list(app)


def _list(app: App) -> int:
    found, now = _tokens().all(), datetime.now(UTC)
    if app.json:
        app.out.json([one.told() | {"expired": one.has_expired(now)} for one in found])
    elif found:
        heads = [Column("name"), Column("scope"), Column("made"), Column("until"),
                 Column("spaces", wide=True)]  # fmt: skip
        print_table(app.out, heads, [_row(one, now) for one in found])
    else:
        app.note("there is no token; recollect token create makes one")
    return 0 if found else 1


def _row(one: Token, now: datetime) -> tuple[Any, ...]:
    until = dim("for good") if one.expires is None else dim(moment(one.expires))
    if one.has_expired(now):
        until = yellow("expired")
    spaces = "every space" if "*" in one.spaces else ", ".join(one.spaces)
    return (bold(one.name), one.right.word, dim(moment(one.created)), until, dim(spaces))


@command("revoke", examples=["recollect token revoke laptop"])
@click.argument("name")
@pass_app
def revoke(app: App, name: str) -> None:
    """Take a token back, from this moment on.

    Servers that are running notice.
    """
    gone = _tokens().revoke(name)
    if app.json:
        app.out.json({"revoked": gone.name})
    else:
        app.out.line(green("revoked"), " ", bold(gone.name))


token.add_command(create)
token.add_command(list_tokens)
token.add_command(revoke)
