"""Options shared by several commands, and the command classes that carry them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bethink.cli.app import App
from bethink.cli.help import OPTION_HELP

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bethink.model import Item

F = TypeVar("F", bound=Callable[..., Any])

pass_app = click.make_pass_decorator(App)


def general_options(*, hide_rare: bool) -> list[click.Parameter]:
    """Options that every command accepts, before or after its name."""

    def setter(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def set_attribute(ctx: click.Context, _: click.Parameter, value: Any) -> None:
            if value and isinstance(ctx.obj, App):
                setattr(ctx.obj, name, value)

        return set_attribute

    def option(*names: str, attribute: str, rare: bool = False, **rest: Any) -> click.Option:
        return click.Option(
            names,
            expose_value=False,
            callback=setter(attribute),
            hidden=rare and hide_rare,
            help=OPTION_HELP[attribute],
            **rest,
        )

    return [
        option(
            "--space",
            attribute="space",
            metavar="NAME",
            shell_complete=complete_spaces,
        ),
        option("--store", attribute="store", rare=True, metavar="URL"),
        option("--json", attribute="json", is_flag=True),
        option("--no-color", attribute="no_color", rare=True, is_flag=True),
        option("-q", "--quiet", attribute="quiet", rare=True, is_flag=True),
        option("-v", "--verbose", attribute="verbose", rare=True, is_flag=True),
    ]


class Command(click.Command):
    """A command that accepts the general options and ends its help with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += general_options(hide_rare=True)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


class Group(click.Group):
    """A command with subcommands that also runs without one."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **{"invoke_without_command": True, **kwargs})
        self.params += general_options(hide_rare=True)
        self.examples = tuple(examples)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_examples(self.examples, formatter)


def write_examples(examples: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write example command lines without rewrapping them."""
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


def command(name: str, *, examples: Sequence[str]) -> Callable[[Callable[..., Any]], Command]:
    """Decorator that turns a function into a `Command`."""
    return click.command(name, cls=Command, examples=examples)


_MAX_COMPLETIONS = 500  # newest memories whose ids and values are completed
_Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _complete(values: Callable[[App], Iterable[tuple[str, str]]]) -> _Completer:
    """Make a completer of values with their descriptions; one that fails completes nothing."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only needed by shells

        from bethink.errors import BethinkError

        app = ctx.find_object(App) or App()
        try:
            known = dict(values(app))
        except (BethinkError, OSError):
            return []
        return [
            CompletionItem(value, help=text)
            for value, text in known.items()
            if value.startswith(incomplete) or value.endswith(incomplete)
        ]

    return complete


def _newest_items(app: App) -> list[Item]:
    with app.open() as memory:
        return memory.browse(limit=_MAX_COMPLETIONS)


def _ids(app: App) -> Iterable[tuple[str, str]]:
    from bethink.cli.output import one_line  # only needed by shells

    return ((item.id, one_line(item.text, 60)) for item in _newest_items(app))


def _item_values(name: str) -> Callable[[App], Iterable[tuple[str, str]]]:
    def values(app: App) -> Iterable[tuple[str, str]]:
        for item in _newest_items(app):
            value = getattr(item, name)
            for entry in value if isinstance(value, tuple) else (value,):
                if entry:
                    yield entry, ""

    return values


def _profiles(app: App) -> Iterable[tuple[str, str]]:
    from bethink.retrieval.profile import profile_names  # only needed by shells

    names = profile_names(app.settings.profile_folders())
    return ((name, "" if file is None else str(file)) for name, file in names.items())


def _spaces(app: App) -> Iterable[tuple[str, str]]:
    return ((name, "") for name in app.space_names())


def _jobs(_: App) -> Iterable[tuple[str, str]]:
    from bethink.maintain import JOBS  # only needed by shells

    return ((name, "") for name in JOBS)


def _fixed(*values: str) -> Callable[[App], Iterable[tuple[str, str]]]:
    return lambda _: ((value, "") for value in values)


complete_ids = _complete(_ids)
complete_profiles = _complete(_profiles)
complete_spaces = _complete(_spaces)
complete_jobs = _complete(_jobs)
_FILTER_COMPLETERS = {
    "id": complete_ids,
    "level": _complete(_fixed("raw", "item", "insight")),
    "layer": _complete(
        _fixed("goal", "context", "emotion", "implementation", "caveat", "learning")
    ),
    "band": _complete(_fixed("hot", "warm", "cold", "frozen")),
    "tag": _complete(_item_values("tags")),
    "entity": _complete(_item_values("entities")),
    **{
        name: _complete(_item_values(name))
        for name in ("kind", "topic", "tier", "source", "session", "speaker", "user")
    },
}


def limit_option(default: int) -> Callable[[F], F]:
    """Option for the maximum number of rows to list."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 10_000),
        default=default,
        show_default=True,
        metavar="N",
        help="Maximum number of results.",
    )


_REPEATABLE_FILTERS = (
    ("level", "Level: raw, item or insight."),
    ("kind", "Kind, such as decision, fact, event."),
    ("layer", "Layer: goal, context, emotion, implementation, caveat, learning, or an alias."),
    ("topic", "Topic."),
    ("tier", "Tier: core, general or your own."),
    ("tag", "Tag; if repeated, all must match."),
    ("entity", "Entity that it mentions, by name or id."),
    ("source", "Source that it came from."),
    ("session", "Session (conversation) that it belongs to."),
    ("speaker", "Who said it."),
    ("user", "Whose memory it is (user_id of its metadata)."),
    ("band", "Heat band, from use: hot, warm, cold or frozen."),
    ("id", "Only these memories."),
)


_FILTER_ALIASES = {"tier": ("--pool",)}


def filter_options(function: F) -> F:
    """Add every filter of ``model.Filters`` as options, passed as keyword arguments."""
    decorators = [
        click.option(
            f"--{name}",
            *_FILTER_ALIASES.get(name, ()),
            f"where_{name}",
            multiple=True,
            metavar="TEXT",
            shell_complete=_FILTER_COMPLETERS[name],
            help=text,
        )
        for name, text in _REPEATABLE_FILTERS
    ]
    decorators += [
        click.option("--since", "where_since", metavar="TIME", help="Happened at TIME or later."),
        click.option("--until", "where_until", metavar="TIME", help="Happened before TIME."),
        click.option("--min-trust", "where_min_trust", type=click.IntRange(0, 3), metavar="0-3",
                     help="Minimum trust, from 0 (unknown) to 3 (owner)."),
        click.option("--max-classification", "where_max_classification",
                     type=click.IntRange(0, 3), metavar="0-3",
                     help="From 0 (public) to 3 (secret); default 2."),
        click.option("--include-superseded", "where_include_superseded", is_flag=True,
                     help="Include memories that a newer one replaced."),
        click.option("--include-expired", "where_include_expired", is_flag=True,
                     help="Include memories that are no longer valid."),
        click.option("--include-untopiced", "where_include_untopiced", is_flag=True,
                     help="With --topic: include memories without a topic."),
        click.option("--include-shared", "where_include_shared", is_flag=True,
                     help="With --user: include public and internal memories of others."),
    ]  # fmt: skip
    for decorate in reversed(decorators):
        function = decorate(function)
    return function


def filters_from_options(options: dict[str, Any]) -> dict[str, Any]:
    """Collect the filters that were set among a command's options."""
    return {
        name.removeprefix("where_"): value
        for name, value in options.items()
        if name.startswith("where_") and value is not None and value is not False and value != ()
    }


def parse_time_option(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> datetime | None:
    """Parse an option as a time: ``2026-05-07``, ``2026-05-07T14:30``, ``yesterday``."""
    if value is None or ctx.resilient_parsing:
        return None
    from bethink.lang.dates import parse_moment  # only needed for time options

    try:
        return parse_moment(value, datetime.now(UTC))
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def read_text_argument(text: str) -> str:
    """Return the text itself or, for ``-``, the content of standard input."""
    if text != "-":
        return text
    return decode_utf8(sys.stdin.buffer.read(), "standard input")


def decode_utf8(content: bytes, source_name: str) -> str:
    """Decode UTF-8 of any system, with plain line ends and no mark; else raise BadText."""
    from bethink.errors import BadText  # most commands read nothing

    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadText(
            f"{source_name} is not UTF-8: "
            f"byte 0x{content[error.start]:02x} at position {error.start}",
            remedy="convert it to UTF-8, for example with iconv",
        ) from error


def parse_json_object(text: str, source_name: str) -> dict[str, Any]:
    """Parse a JSON object; raise BadText for any other value."""
    from bethink.core.json_values import parse_strict_json
    from bethink.errors import BadText, Refused  # most commands read none

    try:
        value = parse_strict_json(text)
    except Refused as error:
        raise BadText(f"{source_name}: {error.message}") from error
    if not isinstance(value, dict):
        raise BadText(f"{source_name} must be a JSON object")
    return value
