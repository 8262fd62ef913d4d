"""The command `as`: the tools of another system as commands of its own names."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from bethink.cli.app import App
from bethink.cli.options import Command, Group, read_text_argument
from bethink.core.json_values import Json
from bethink.server.systems import SYSTEMS
from bethink.server.systems.declarations import load_system, make_tool
from bethink.server.tools.tool import Call, validate_arguments

_TYPES = {"integer": int, "number": float, "boolean": bool}


class _SystemCommands(Group):
    """The commands of one system, which its page in docs/switching lists."""

    in_reference = False

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [_command_name(name, row) for name, row in load_system(str(self.name)).rows.items()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for name, row in load_system(str(self.name)).rows.items():
            if _command_name(name, row) == cmd_name:
                return _make_command(str(self.name), name, row)
        return None


def _command_name(name: str, row: Json) -> str:
    return str(row.get("command", name.replace("_", "-")))


def _make_command(system: str, name: str, row: Json) -> Command:
    params: list[click.Parameter] = []
    for argument, spec in row.get("arguments", {}).items():
        if spec.get("type") == "object":
            params += [
                _make_option(f"{argument}.{part}", one) for part, one in spec["parts"].items()
            ]
        elif spec.get("word"):
            required = argument in row.get("required", ())
            params.append(click.Argument([argument], required=required, default=None))
        else:
            params.append(_make_option(argument, spec))
    return Command(
        _command_name(name, row),
        callback=click.pass_obj(partial(_run, system, name)),
        params=params,
        help=row["about"],
        examples=row.get("examples", ()),
    )


def _make_option(argument: str, spec: Json) -> click.Option:
    kebab = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in argument)
    names = spec.get("flags") or [f"--{kebab.rpartition('.')[2].replace('_', '-')}"]
    kind: Any = int if "within" in spec else _TYPES.get(spec.get("type", ""))
    kind = click.Choice(spec["choices"]) if "choices" in spec else kind
    if kind is bool:
        names = [f"{names[0]}/--no-{names[0].removeprefix('--')}", *names[1:]]
    return click.Option(
        [*names, argument.replace(".", "__")],
        type=kind,
        help=spec["about"],
        multiple=spec.get("type") == "array" or spec.get("read") in ("list", "lines"),
        default=None,
        show_default=False,
    )


def _run(system: str, name: str, app: App, /, **given: object) -> int:
    theirs = load_system(system)
    app.profile, row = theirs.profile, theirs.rows[name]
    tool = make_tool(system, name, row)
    arguments: Json = {}
    for argument, value in given.items():
        if value is None or value == ():
            continue
        outer, _, inner = argument.partition("__")
        if inner:
            arguments.setdefault(outer, {})[inner] = value
        elif isinstance(value, tuple):
            is_array = row["arguments"][outer].get("type") == "array"
            arguments[outer] = list(value) if is_array else ",".join(value)
        else:
            arguments[outer] = read_text_argument(value) if value == "-" else value
    valid = validate_arguments(arguments, tool.input_schema)
    with app.open(create=row["does"] == "remember") as memory:
        reply = tool(Call(memory.below(memory.settings.max_classification), valid, via="cli"))
    if app.json or "text" not in row:
        app.out.json(reply.content)
    else:
        app.out.raw(reply.text)
    return 0


@click.group(
    "as",
    cls=Group,
    invoke_without_command=False,
    examples=[
        'bethink as remind recall "authentication approach" -k 10',
        'bethink as abmind recall --translated "project deadline" --topic work',
        "bethink as linksee list-entities",
    ],
)
def as_command() -> int:
    """Use the commands of another memory system.

    With its names, arguments, defaults and fields, on this project's memory and with its
    profile. bethink mcp --as NAME offers the same as tools.
    """
    return 0


for _name in SYSTEMS:
    _texts: Json = {"help": f"The commands of {_name}."}
    _texts["examples"] = [f"bethink as {_name} --help"]
    as_command.add_command(_SystemCommands(_name, no_args_is_help=True, **_texts))
