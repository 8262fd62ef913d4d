"""Options that several commands share, and the command class that brings them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from recollect.cli.app import App
from recollect.cli.overview import GENERAL

F = TypeVar("F", bound=Callable[..., Any])

pass_app = click.make_pass_decorator(App)


def general_options(*, hide_rare: bool) -> list[click.Parameter]:
    """What every command takes, before its name or after it."""

    def into(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def keep(ctx: click.Context, _: click.Parameter, value: Any) -> None:
            if value and isinstance(ctx.obj, App):
                setattr(ctx.obj, name, value)

        return keep

    def option(*names: str, into_: str, rare: bool = False, **rest: Any) -> click.Option:
        return click.Option(
            names,
            expose_value=False,
            callback=into(into_),
            hidden=rare and hide_rare,
            help=GENERAL[into_],
            **rest,
        )

    return [
        option(
            "--space",
            into_="space",
            metavar="NAME",
        ),
        option("--json", into_="json", is_flag=True),
        option("--no-color", into_="no_color", rare=True, is_flag=True),
        option("-q", "--quiet", into_="quiet", rare=True, is_flag=True),
        option("-v", "--verbose", into_="verbose", rare=True, is_flag=True),
    ]


class Command(click.Command):
    """A command that also takes the general options and ends its help with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += general_options(hide_rare=True)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A command with subcommands that does something by itself, too."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **{"invoke_without_command": True, **kwargs})
        self.params += general_options(hide_rare=True)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Commands as they would be typed, never rewrapped."""
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def command(name: str, *, examples: Sequence[str]) -> Callable[[Callable[..., Any]], Command]:
    """Makes a function a command of ours."""
    return click.command(name, cls=Command, examples=examples)


def limit_option(usual: int) -> Callable[[F], F]:
    """How many lines of a list to show."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=usual,
        show_default=True,
        metavar="N",
        help="At most so many.",
    )


_MANY = (
    ("level", "raw, item or insight."),
    ("kind", "For example decision, fact, event."),
    ("layer", "goal, context, emotion, implementation, caveat, learning, or an alias."),
    ("topic", "The topic it was filed under."),
    ("tier", "The tier it was filed under: core or general, or one's own."),
    ("tag", "A tag; given twice, both must be there."),
    ("entity", "Whom or what it speaks of, by name or id."),
    ("source", "Where it came from."),
    ("session", "The conversation it belongs to."),
    ("speaker", "Who said it."),
    ("band", "How warm it is by use: hot, warm, cold or frozen."),
    ("id", "Only these memories."),
)


_ALSO = {"tier": ("--pool",)}


def filter_options(function: F) -> F:
    """Every filter of ``model.Filters``; they arrive as keyword arguments."""
    decorators = [
        click.option(
            f"--{name}",
            *_ALSO.get(name, ()),
            f"where_{name}",
            multiple=True,
            metavar="TEXT",
            help=told,
        )
        for name, told in _MANY
    ]
    decorators += [
        click.option("--since", "where_since", metavar="TIME", help="Happened then or later."),
        click.option("--until", "where_until", metavar="TIME", help="Happened before."),
        click.option("--min-trust", "where_min_trust", type=click.IntRange(0, 3), metavar="0-3",
                     help="From 0 unknown to 3 the owner."),
        click.option("--max-classification", "where_max_classification",
                     type=click.IntRange(0, 3), metavar="0-3",
                     help="From 0 public to 3 secret; 2 unless told."),
        click.option("--include-superseded", "where_include_superseded", is_flag=True,
                     help="Also what a newer memory has replaced."),
        click.option("--include-expired", "where_include_expired", is_flag=True,
                     help="Also what is no longer valid."),
        click.option("--include-untopiced", "where_include_untopiced", is_flag=True,
                     help="With --topic: also what has no topic."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def filters_of(given: dict[str, Any]) -> dict[str, Any]:
    """The filters among a command's arguments that restrict anything."""
    return {
        name.removeprefix("where_"): value
        for name, value in given.items()
        if name.startswith("where_") and value is not None and value is not False and value != ()
    }


def read_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """An option's value as a moment: ``2026-05-07``, ``2026-05-07T14:30``, ``yesterday``."""
    if value is None or ctx.resilient_parsing:
        return None
    from recollect.dates import moment_of  # loaded only where a time is given

    try:
        return moment_of(value, datetime.now(UTC))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def text_or_stdin(text: str) -> str:
    """The text itself or, where it is ``-``, what comes on standard input."""
    if text != "-":
        return text
    return decoded(sys.stdin.buffer.read(), "standard input")


def decoded(content: bytes, what: str) -> str:
    """UTF-8 text, a byte order mark taken off; refused by name where it is not UTF-8."""
    from recollect.errors import BadText  # most commands read nothing

    try:
        return content.decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadText(
            f"{what} is not UTF-8: byte 0x{content[error.start]:02x} at position {error.start}",
            remedy="convert it, for example with iconv",
        ) from error


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object; any other value is refused by name."""
    from recollect.errors import BadText, Refused  # most commands read none
    from recollect.ingest.strict_json import strict_json

    try:
        value = strict_json(text)
    except Refused as error:
        raise BadText(f"{what}: {error.message}") from error
    if not isinstance(value, dict):
        raise BadText(f"{what} must be a JSON object")
    return value
