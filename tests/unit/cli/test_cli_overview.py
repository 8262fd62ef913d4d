"""The overview, the commands and the reference say the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from bethink.cli import main, reference
from bethink.cli.commands import COMMANDS, bethink, root_context
from bethink.cli.help import COMMAND_HELP, EVERYDAY_EXAMPLES, overview
from rows import each_row

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
    """Every registered command has a line in the overview."""
    assert set(COMMAND_HELP) == set(COMMANDS)


@each_row("name", COMMANDS)
def test_a_command_begins_its_help_with_its_line(name: str) -> None:
    """So that the overview can be printed without loading it."""
    command = bethink.get_command(CTX, name)

    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMAND_HELP[name]


@each_row(("name", "command"), commands(), ids=lambda value: str(value)[:20])
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


@pytest.mark.parametrize("every_command", [False, True])
def test_the_overview_fits_a_terminal(every_command: bool) -> None:
    """Of eighty columns."""
    assert max(map(len, overview(every_command=every_command).splitlines())) <= 80


def test_help_shows_the_everyday_commands_with_an_example_each(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """About a dozen, and how to see the others."""
    assert main(["--help"]) == 0
    page = capsys.readouterr().out

    assert len(EVERYDAY_EXAMPLES) == 12
    for name, example in EVERYDAY_EXAMPLES.items():
        assert f"  {name} " in page
        assert example in page
        assert example.startswith(f"bethink {name}")
    assert "bethink --help --all" in page
    assert "entities" not in page


@pytest.mark.parametrize("args", [["--help", "--all"], ["--all", "--help"], ["-h", "--all"]])
def test_help_all_shows_every_command(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By section, in whatever order the two options come."""
    assert main(args) == 0
    page = capsys.readouterr().out

    assert page == overview(every_command=True) + "\n"
    for name, line in COMMAND_HELP.items():
        assert f"  {name:<15}{line}" in page


def test_the_reference_has_every_command() -> None:
    """And is the same whatever the terminal."""
    page = reference()

    assert all(f"\n## bethink {name}\n" in page for name, _ in commands())
    assert page == reference()


def test_a_program_may_import_main_again_after_a_call() -> None:
    """It is still the function, whatever modules a command has loaded."""
    code = (
        "import bethink.cli; called = bethink.cli.main; called(['--help']);"
        "from bethink.cli import main; assert main is called"
    )

    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


@pytest.mark.parametrize("args", [["--help"], ["--help", "--all"]])
def test_help_loads_nothing(args: list[str]) -> None:
    """Neither click nor rich nor the engine, so that it costs next to nothing."""
    code = (
        f"import sys; from bethink.cli import main; main({args});"
        "heavy = {'click', 'rich', 'numpy', 'apsw', 'bethink.memory'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 0, ran.stderr


def test_a_plain_recall_loads_no_click(tmp_path: Path) -> None:
    """Scripts and agents wait for it."""
    code = (
        "import sys; from bethink.cli import main; main(['recall', 'tests', '--json']);"
        "sys.exit('click' in sys.modules)"
    )
    env = os.environ | {"BETHINK_DATA_DIR": str(tmp_path), "BETHINK_WORKER": "off"}

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=False)

    assert ran.returncode == 0, ran.stderr
