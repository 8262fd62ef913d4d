"""Every snippet runs, and everything that exists is documented."""

from __future__ import annotations

import doctest
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

import bethink
import warm
from bethink import errors
from bethink.cli.commands import COMMANDS, root_context
from bethink.config.settings import SETTINGS, find_setting, load_settings
from bethink.core.json_schema import validate
from bethink.maintain import JOBS
from bethink.retrieval.profile import profile_names
from bethink.retrieval.retrievers import RETRIEVERS
from bethink.retrieval.stages import ASSEMBLERS, FUSIONS, STAGES
from bethink.server.mcp.manifest import PROMPTS
from bethink.server.tools import TOOLS
from rows import each_row

ROOT = Path(__file__).parents[2]
# Where the methods of `Memory` are.
MEMORY_MODULES = sorted(
    {base.__module__ for base in (*bethink.Memory.__mro__[:-1], bethink.AsyncMemory)}
)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TESTED_ELSEWHERE = ("docs/files.md", "docs/tutorial.md")  # as a whole, by tests of their own
# The same command, and less of it: all that it measures is measured by tests of its own.
FEWER = {"bethink eval": ("--strangers", "5", "--limit", "1")}
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[tuple[str, str]]:
    return [
        (
            f"{page.relative_to(ROOT)}:{page.read_text()[: match.start()].count(chr(10)) + 1}",
            match[2],
        )
        for page in PAGES
        for match in FENCE.finditer(page.read_text(encoding="utf-8"))
        if match[1] == language
    ]


def clean_room(tmp_path: Path) -> dict[str, str]:
    """An environment in which nothing of the machine's own memory is touched."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BETHINK_")}
    folder = str(Path(sys.executable).parent)
    return kept | {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "BETHINK_DATA_DIR": str(tmp_path / "data"),
        "BETHINK_WORKER_IDLE": "5",
        "PATH": folder + os.pathsep + os.environ["PATH"],
    }


@pytest.mark.parametrize(("where", "code"), blocks("python"), ids=lambda value: str(value)[:40])
def test_python_snippets_run(where: str, code: str, tmp_path: Path) -> None:
    """As a program of its own, in an empty folder."""
    ran = warm.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=clean_room(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, f"{where}\n{ran.stderr}"


@pytest.mark.timeout(600)  # one of them measures the sets that come with Bethink
@pytest.mark.parametrize(
    ("where", "code"),
    [one for one in blocks("console") if not one[0].startswith(TESTED_ELSEWHERE)],
    ids=lambda value: str(value)[:40],
)
def test_console_snippets_run(where: str, code: str, tmp_path: Path) -> None:
    """Every `$ bethink ...` line, one after the other, found or not found but never wrong."""
    (tmp_path / "notes.txt").write_text("The first note.\n\nThe second note.\n")
    ids: list[str] = []
    for line in code.splitlines():
        if not line.startswith("$ bethink"):
            continue
        words = [ids[-1] if word == "ID" and ids else word for word in shlex.split(line[2:])]
        ran = warm.run(
            [warm.SCRIPT, *words[1:], *FEWER.get(" ".join(words), ())],
            cwd=tmp_path,
            env=clean_room(tmp_path),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode in (0, 1), f"{where} {line}\n{ran.stderr}"
        ids += re.findall(r"\b[0-9a-hjkmnp-tv-z]{16}\b", ran.stdout)[:1]


@pytest.mark.parametrize(
    "module",
    [bethink, *(sys.modules[name] for name in MEMORY_MODULES)],
    ids=lambda module: module.__name__,
)
def test_docstring_examples_run(
    module: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a docstring shows is what happens."""
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path))

    names = {"Memory": bethink.Memory}

    assert doctest.testmod(module, extraglobs=names).failed == 0  # type: ignore[arg-type]


@each_row(
    ("page", "names"),
    [
        ("profiles.md", profile_names()),
        ("settings.md", [setting.name for setting in SETTINGS]),
        ("maintain.md", JOBS),
        ("mcp.md", [*TOOLS, *PROMPTS]),
    ],
    ids=["profiles", "settings", "jobs", "mcp"],
)
def test_everything_has_its_row(page: str, names: list[str]) -> None:
    """It exists when it is documented."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    missing = [name for name in names if f"| `{name}`" not in text]

    assert not missing


def test_the_example_of_a_setting_is_accepted() -> None:
    """Each row has a value that can be set, and that is not the default."""
    text = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    examples = dict(re.findall(r"^\| `(\w+)` \| .*? \| `([^`]+)` \|", text, re.MULTILINE))
    given = load_settings(env={find_setting(name).variable: examples[name] for name in examples})

    assert sorted(examples) == sorted(setting.name for setting in SETTINGS)
    assert [name for name in examples if given.explicit(name) is None] == []


@pytest.mark.parametrize("page", ["retrievers.md", "stages.md"])
def test_every_part_has_its_row(page: str) -> None:
    """On the page of its kind or, if only one emulated system uses it, on that system's page."""
    registries = [RETRIEVERS] if page == "retrievers.md" else [STAGES, FUSIONS, ASSEMBLERS]
    for name, part in ((name, one[name]) for one in registries for name in one):
        if not part.__module__.startswith("bethink."):
            continue  # an installed plug-in documents itself
        _, _, system = part.__module__.partition("bethink.systems.")
        where = f"systems/{system.split('.')[0]}.md" if system else page
        text = (ROOT / "docs" / where).read_text(encoding="utf-8")
        assert f"| `{name}` |" in text, f"{name} has no row in {where}"


@pytest.mark.parametrize("page", ["retrievers.md", "stages.md"])
def test_a_documented_default_is_the_codes_own(page: str) -> None:
    """A number after the name of a setting, in the row of a part, is what the part has."""
    registries = [RETRIEVERS] if page == "retrievers.md" else [STAGES, FUSIONS, ASSEMBLERS]
    parts = {name: one[name] for one in registries for name in one}
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name, row in re.findall(r"^\| `(\w+)` \|(.*)$", text, re.MULTILINE):
        if name not in parts:
            continue  # a row of what all parts have in common
        defaults = {field.name: field.default for field in fields(parts[name])}
        for setting, number in re.findall(r"`(\w+)` (-?\d+(?:\.\d+)?)", row):
            assert defaults[setting] == float(number), f"{setting} of {name}"


def test_every_error_is_in_the_tree() -> None:
    """The module's own words name each class."""
    classes = [
        name for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.BethinkError)
    ]  # fmt: skip

    assert [name for name in classes if name not in (errors.__doc__ or "")] == []


def test_generated_pages_are_up_to_date() -> None:
    """What the documentation takes from the code is what the code says: `make reference`."""
    ran = subprocess.run(
        [sys.executable, ROOT / "tools" / "docs.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr


def test_the_example_of_an_option_can_be_called() -> None:
    """Every option is in an example, of the command's help or of the table below it."""
    sys.path.insert(0, str(ROOT / "tools"))
    from option_examples import commands, rows, words_of

    for name, command in commands():
        own = name.split()
        for _, call in rows(name, command):
            command.make_context(own[-1], words_of(call)[len(own) :], parent=root_context())


def test_the_example_of_an_argument_is_allowed() -> None:
    """Every argument of every tool has one, and the tool's own schema takes it."""
    sys.path.insert(0, str(ROOT / "tools"))
    from tool_reference import example

    for name, tool in TOOLS.items():
        for argument, schema in tool.input_schema["properties"].items():
            value = example(argument, schema)
            assert value is not None, f"tools/tool_reference.py has no {argument} of {name}"
            validate(value, schema, f"{argument} of {name}")


_COMMANDS_OF_PAGES = sorted(
    {
        *re.findall(
            r"`(?:[^`]* )?bethink ([^`]+)` \|$", (ROOT / "docs/howto.md").read_text(), re.MULTILINE
        ),
        *(
            command
            for page in (ROOT / "ui" / "src").rglob("*.tsx")
            for command in re.findall(r"<code>bethink ([^<]*)</code>", page.read_text("utf-8"))
        ),
    }
)


@each_row("command", _COMMANDS_OF_PAGES)
def test_pages_name_commands_that_can_be_called(command: str) -> None:
    """The inspector and the list of tasks say what to type; the terminal must accept it."""
    name, *words = shlex.split(command)

    # Its options are made with the first context: those of the program.
    with COMMANDS[name].make_context(name, words, parent=root_context()) as context:
        assert context.info_name == name


def test_the_changelog_knows_this_version() -> None:
    """Its newest heading is the version in the code."""
    newest = re.search(r"^## \[?(\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert newest is not None
    assert newest[1] == bethink.__version__


def test_nothing_points_at_a_machine() -> None:
    """No absolute path of a developer's machine in anything that is shipped."""
    for path in [*PAGES, *(ROOT / "src").rglob("*.py")]:
        assert not re.search(r"/(home|root|Users)/\w", path.read_text(encoding="utf-8")), path
