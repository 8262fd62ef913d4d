"""The overview, the commands and the reference say the same."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from bethink.cli import reference
from bethink.cli.commands import COMMANDS, bethink, root_context
from bethink.cli.help import COMMAND_HELP, overview

CTX = root_context(80)


def commands() -> list[tuple[str, click.Command]]:
    found = []
    for name in COMMANDS:
        command = bethink.get_command(CTX, name)
        assert command is not None
        found.append((name, command))
        if isinstance(command, click.Group):
            found += [(f"{name} {inner}", sub) for inner, sub in command.commands.items()]
    return found


def test_the_overview_has_every_command() -> None:
    """In the same order as the table of homes would find them."""
    assert set(COMMAND_HELP) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_begins_its_help_with_its_line(name: str) -> None:
    """So that the overview can be printed without loading it."""
    command = bethink.get_command(CTX, name)

    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMAND_HELP[name]


@pytest.mark.parametrize(("name", "command"), commands(), ids=lambda value: str(value)[:20])
def test_every_command_has_examples_and_the_general_options(
    name: str, command: click.Command
) -> None:
    """Examples call the command itself; --json and --space work after its name, too."""
    text = command.get_help(click.Context(command, parent=CTX, info_name=name))

    assert f"bethink {name}" in text.split("Examples:")[1]
    assert "--json" in text
    assert "--space" in text


def test_every_option_is_explained() -> None:
    """No option without a word about it."""
    silent = [
        (name, param.opts[0])
        for name, command in commands()
        for param in command.params
        if isinstance(param, click.Option) and not param.help
    ]

    assert silent == []


def test_the_overview_fits_a_terminal() -> None:
    """Of eighty columns."""
    assert max(map(len, overview().splitlines())) <= 80


def test_the_reference_has_every_command() -> None:
    """And is the same whatever the terminal."""
    page = reference()

    assert all(f"\n## bethink {name}\n" in page for name, _ in commands())
    assert page == reference()


def test_help_loads_nothing() -> None:
    """Neither click nor rich nor the engine, so that it costs next to nothing."""
    code = (
        "import sys; from bethink.cli import main; main(['--help']);"
        "heavy = {'click', 'rich', 'numpy', 'apsw', 'bethink.memory'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr
