"""Options shared by several commands, and the command classes that carry them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import click

from bethink.cli.app import App
from bethink.cli.help import OPTION_HELP
from bethink.cli.output import one_line
from bethink.core.json_values import parse_strict_json
from bethink.core.lazy import lazy_pattern
from bethink.errors import BadText, BethinkError, Refused

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from bethink.core.json_values import Json
    from bethink.model import Item

F = TypeVar("F", bound=Callable[..., object])


def general_options(*, hide_rare: bool) -> list[click.Parameter]:
    """Options that every command accepts, before or after its name."""

    def setter(name: str) -> Callable[[click.Context, click.Parameter, object], None]:
        def set_attribute(ctx: click.Context, _: click.Parameter, value: object) -> None:
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
        option("--space", attribute="space", metavar="NAME", shell_complete=complete_spaces),
        option("--store", attribute="store", rare=True, metavar="URL"),
        option("--json", attribute="json", is_flag=True),
        option("--no-color", attribute="no_color", rare=True, is_flag=True),
        option("-q", "--quiet", attribute="quiet", rare=True, is_flag=True),
        option("-v", "--verbose", attribute="verbose", rare=True, is_flag=True),
    ]


class Command(click.Command):
    """A command with the general options that it does not have itself, and examples in its help."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own = {name for param in self.params for name in param.opts}
        self.params += [one for one in general_options(hide_rare=True) if not own & {*one.opts}]
        self.examples = tuple(examples)

    def get_short_help_str(self, limit: int = 1000) -> str:
        """Return the whole summary; click's groups would cut it."""
        return super().get_short_help_str(max(limit, 1000))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, without rewrapping them."""
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Group(Command, click.Group):
    """A command with subcommands that also runs without one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"invoke_without_command": True, **kwargs})

    def subcommand(self, name: str, *, examples: Sequence[str]) -> Callable[[F], F]:
        """Decorator that makes a function of the app a command of this group."""

        def decorate(function: F) -> F:
            self.add_command(command(name, examples=examples)(function))
            return function

        return decorate


def command(name: str, *, examples: Sequence[str]) -> Callable[[Callable[..., object]], Command]:
    """Decorator that turns a function, whose first argument is the app, into a `Command`."""
    made = click.command(name, cls=Command, examples=examples)
    return lambda function: made(click.make_pass_decorator(App)(function))


def group(
    name: str, *, examples: Sequence[str], cls: type[Group] = Group
) -> Callable[[Callable[..., object]], Group]:
    """Decorator that turns a function of the app into a `Group`; it runs without a subcommand."""

    def decorate(function: Callable[..., object]) -> Group:
        @click.pass_context
        def run(ctx: click.Context, /, **options: Any) -> object:
            return 0 if ctx.invoked_subcommand else function(ctx.ensure_object(App), **options)

        return click.group(name, cls=cls, examples=examples)(update_wrapper(run, function))

    return decorate


def option(
    spec: str,
    help: str,
    kind: click.ParamType[Any] | type | None = None,
    *,
    shown: object = None,
    **details: Any,
) -> Callable[[F], F]:
    """Decorator that adds an option: its names, where needed its parameter, and its metavar.

    One that has neither a metavar nor a type is a flag: ``-n --dry-run``, ``--tag tags TEXT``.
    ``shown`` is a default that the help shows.
    """
    words = spec.split()
    names = [word for word in words if word[0] == "-" or (word.isidentifier() and word.islower())]
    metavar = next((word for word in words if word not in names), None)
    if metavar is None and kind is None:
        details = {"is_flag": True, **details}
    if shown is not None:
        details |= {"default": shown, "show_default": True}
    return click.option(*names, metavar=metavar, type=kind, help=help, **details)


_MAX_COMPLETIONS = 500  # newest memories whose ids and values are completed
_Completer = Callable[[click.Context, click.Parameter, str], "list[CompletionItem]"]


def _complete(values: Callable[[App], Iterable[tuple[str, str]]]) -> _Completer:
    """Make a completer of values with their descriptions; one that fails completes nothing."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # only needed by shells

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


def _jobs(_: App) -> Iterable[tuple[str, str]]:
    from bethink.maintain import JOBS  # only needed by shells

    return ((name, "") for name in JOBS)


complete_ids = _complete(
    lambda app: ((item.id, one_line(item.text, 60)) for item in _newest_items(app))
)
complete_profiles = _complete(_profiles)
complete_spaces = _complete(lambda app: dict.fromkeys(app.space_names(), "").items())
complete_jobs = _complete(_jobs)
_COMPLETERS: dict[str, _Completer] = {
    "id": complete_ids,
    "profile": complete_profiles,
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


def recall_options(*names: str) -> Callable[[F], F]:
    """Add options of a recall, in this order, passed as keyword arguments."""

    def decorate(function: F) -> F:
        for name in reversed(names):
            function = _declared_option(name)(function)
        return function

    return decorate


_SWITCHED = frozenset({"include_untopiced", "include_shared"})  # on or off over the profile


def _declared_option(name: str) -> Callable[[F], F]:
    """Make the option of a keyword of recall from its declaration."""
    from bethink.api.options import Option, RecallOptions, Texts  # few commands have them

    kind, *notes = get_args(RecallOptions.__annotations__[name])
    option = next(note for note in notes if isinstance(note, Option))
    kinds = get_args(kind) or (kind,)
    details: Json = {"help": option.help}
    if bool in kinds:
        switched = type(None) in kinds or name in _SWITCHED
        details |= {"default": None} if switched else {"is_flag": True}
    else:
        completer = _COMPLETERS.get(name) or (
            option.choices and _complete(lambda _: dict.fromkeys(option.choices, "").items())
        )
        details |= {"metavar": option.metavar, "callback": _CALLBACKS.get(name)}
        details |= {"multiple": kind == Texts, "shell_complete": completer or None}
        if kinds[0] in (int, float):
            details["type"] = click.IntRange(*option.bounds) if option.bounds else kinds[0]
    return click.option(*(option.names or (f"--{name.replace('_', '-')}",)), name, **details)


@cache
def _filter_names() -> tuple[str, ...]:
    from bethink.api.options import FilterOptions, Option  # few commands have them

    hints = FilterOptions.__annotations__.items()
    return tuple(
        name for name, hint in hints if any(isinstance(one, Option) for one in get_args(hint))
    )


def filter_options(function: F) -> F:
    """Add every filter as an option, passed as keyword arguments."""
    return recall_options(*_filter_names())(function)


def filters_from_options(options: Json) -> Json:
    """Collect the filters that were set among a command's options."""
    return {
        name: value
        for name, value in options.items()
        if name in _filter_names()
        and value not in (None, ())
        and (value is not False or name in _SWITCHED)
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


def _parse_context_option(_: click.Context, __: click.Parameter, value: str | None) -> Json | None:
    return None if value is None else parse_json_object(value, "--context")


_CALLBACKS = {"now": parse_time_option, "context": _parse_context_option}


_RAW_BYTE = lazy_pattern("[\udc80-\udcff]")


def read_text_argument(text: str) -> str:
    """Return the text itself or, for ``-``, the content of standard input."""
    if text != "-":
        # What a shell passed that is not UTF-8 is told as the bytes that it was.
        return decode_utf8(os.fsencode(text), "the text") if _RAW_BYTE.search(text) else text
    return decode_utf8(sys.stdin.buffer.read(), "standard input")


def decode_utf8(content: bytes, source_name: str) -> str:
    """Decode UTF-8 of any system, with plain line ends and no mark; else raise BadText."""
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise BadText(
            f"{source_name} is not UTF-8: "
            f"byte 0x{content[error.start]:02x} at position {error.start}",
            remedy="convert it to UTF-8, for example with iconv",
        ) from error


def parse_json_object(text: str, source_name: str) -> Json:
    """Parse a JSON object; raise BadText for any other value."""
    try:
        value = parse_strict_json(text)
    except Refused as error:
        raise BadText(f"{source_name}: {error.message}") from error
    if not isinstance(value, dict):
        raise BadText(f"{source_name} must be a JSON object")
    return value
