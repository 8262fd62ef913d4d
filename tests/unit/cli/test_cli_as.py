"""`bethink as NAME`: the commands of another system, as its pages show them."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest
from caller import Caller

from bethink.cli.app import App
from bethink.cli.options import Command
from bethink.server.systems import SYSTEMS
from bethink.server.systems.commands import as_command
from bethink.server.systems.declarations import load_system
from rows import each_row


@pytest.fixture
def bethink(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    caller = Caller(tmp_path, monkeypatch, capsys)
    caller("as", "remind", "remember", "We chose JWT for auth", "-t", "decision",
           "-e", "module:auth", "-e", "tool:jwt", "--topic", "architecture")  # fmt: skip
    caller.remember("The project deadline is in May", "--topic", "work")
    return caller


@each_row(
    "words",
    [
        ["authentication JWT"],
        ["auth", "--entity", "module:auth"],
        ["--entity", "module:auth"],
        ["auth", "-k", "10"],
        ["auth", "--episode-k", "10"],
        ["JWT auth", "--topic", "architecture"],
    ],
)
def test_remind_recalls_as_its_page_shows(bethink: Caller, words: list[str]) -> None:
    """The commands of the page find the episode and print its text."""
    said = bethink("as", "remind", "recall", *words)

    assert said.code == 0
    assert "RELEVANT EPISODES:\n" in said.out
    assert "We chose JWT for auth" in said.out
    assert bethink("as", "remind", "recall", *words, "--json").told["episodes"]


def test_remind_leaves_episodes_out(bethink: Caller) -> None:
    """With --episode-k 0 there are concepts only."""
    assert "RELEVANT EPISODES" not in bethink("as", "remind", "recall", "auth", "-ek", "0").out


def test_abmind_recalls_as_its_page_shows(bethink: Caller) -> None:
    """Keywords, a topic and a limit."""
    said = bethink(
        "as", "abmind", "recall", "--translated", "project deadline", "--topic", "work",
        "--limit", "5",
    )  # fmt: skip

    assert [hit["content"] for hit in said.told["results"]] == ["The project deadline is in May"]


def test_the_lists_of_remind(bethink: Caller) -> None:
    """Its other commands that only read."""
    assert bethink("as", "remind", "decisions").told["episodes"]
    assert bethink("as", "remind", "topics").told["topics"][0]["id"] == "architecture"
    assert bethink("as", "remind", "search", "deadline", "--json").code == 0
    assert bethink("as", "remind", "stats").told["episodes"] == 1


def test_the_memory_is_the_persons_own(bethink: Caller) -> None:
    """What a person stores at a terminal is not an agent's."""
    item = bethink("as", "siftcoder", "note", "Retry with jitter").told["id"]

    assert bethink("show", item, "--json").told["source_class"] == "user"


def test_parts_of_an_argument_are_options(bethink: Caller) -> None:
    """The situation of abmind by its hour, day and topic."""
    said = bethink(
        "as", "abmind", "recall", "deadline", "--hour", "9", "--day-of-week", "0",
        "--context-topic", "work", "--no-track-recalls",
    )  # fmt: skip

    assert said.told["results"]


@each_row("system", SYSTEMS)
def test_every_tool_is_a_command(bethink: Caller, system: str) -> None:
    """Its help can be read, and it is there by a name without underscores."""
    group = as_command.commands[system]
    names = group.list_commands(None)  # type: ignore[attr-defined]

    assert len(set(names)) == len(load_system(system).rows)
    for name in names:
        assert "_" not in name
        assert bethink("as", system, name, "--help").code == 0
    assert bethink("as", system, "nonsense").code == 2


def test_mistakes_are_told(bethink: Caller) -> None:
    """A missing argument, a wrong choice, and tools of ours besides theirs."""
    assert bethink("as", "linksee", "recall").code == 2
    assert bethink("as", "memind", "retrieve", "docs", "--strategy", "WILD").code == 2
    assert bethink("as", "linksee", "update-memory", "nothing", "--importance", "0.5").code == 1
    assert bethink("mcp", "--as", "linksee", "--tools", "all").code == 2
    assert bethink("mcp", "--as", "nobody").code == 2


@each_row("system", SYSTEMS)
def test_every_option_is_in_an_example(system: str) -> None:
    """Each command has examples that it accepts, and they use all of its options."""
    group = as_command.commands[system]
    assert isinstance(group, click.Group)
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert isinstance(command, Command)
        used: set[str] = set()
        for example in "\n".join(command.examples).replace("\\\n", " ").splitlines():
            head, words = shlex.split(example)[:4], shlex.split(example)[4:]
            assert head == ["bethink", "as", system, name]
            command.make_context(name, list(words), obj=App())
            used.update(words)
        own = [one for one in command.params if isinstance(one, click.Option) and one.expose_value]
        assert [one.name for one in own if not used & {*one.opts}] == [], name
