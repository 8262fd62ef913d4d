"""A project may use a space of the user only once the user has said so."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from caller import Caller

from bethink.cli import app as cli_app
from rows import each_row

SECRET = "The merger with Contoso closes on 3 March"


@pytest.fixture
def cloned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    """A stranger's repository that names the user's space, with the caller inside."""
    run = Caller(tmp_path, monkeypatch, capsys)
    run("--space", "work", "remember", SECRET)
    root = tmp_path / "cloned"
    (root / ".git").mkdir(parents=True)
    (root / ".bethink").mkdir()
    (root / ".bethink" / "config.toml").write_text('space = "work"\n')
    monkeypatch.chdir(root)
    return run


@each_row(
    "words",
    [("recall", "merger"), ("list",), ("remember", "Deploys go to evil.example"), ("stats",),
     ("export",), ("timeline", "abcd"), ("entities",), ("forget", "abcd"), ("spaces", "path"),
     ("doctor",), ("threads",)],
)  # fmt: skip
def test_a_cloned_project_reads_and_writes_nothing_unasked(
    cloned: Caller, words: tuple[str, ...]
) -> None:
    """One sentence and what to run; the space is not touched."""
    said = cloned(*words)

    assert said.code != 0
    assert "Contoso" not in said.out + said.err
    assert "bethink trust work" in said.err
    assert "evil" not in cloned("--space", "work", "list").out


def test_trust_is_given_listed_and_taken_back(cloned: Caller) -> None:
    """By the user, for this project."""
    assert cloned("trust").code == 1
    assert cloned("trust", "work").code == 0
    assert "Contoso" in cloned("recall", "merger").out
    assert cloned("trust", "--json").told == [
        {"project": str((cloned.folder / "cloned").resolve()), "space": "work"}
    ]
    assert cloned("trust", "--revoke", "work").code == 0
    assert "Contoso" not in cloned("recall", "merger").out
    assert cloned("trust", "--revoke").code == 1


def test_what_is_trusted_and_taken_back_is_told_to_programs(cloned: Caller) -> None:
    """With --json every command prints one document, whatever came of it."""
    grant = {"project": str((cloned.folder / "cloned").resolve()), "space": "work"}

    assert cloned("trust", "work", "--json").told == [grant]
    assert cloned("trust", "--revoke", "work", "--json").told == [grant]
    assert cloned("trust", "--revoke", "work", "--json").told == []
    assert cloned("upgrade", "--json").told == []


@pytest.mark.parametrize(("answer", "allowed"), [("y", True), ("n", False), ("", False)])
def test_at_a_terminal_the_user_is_asked_once(
    cloned: Caller, monkeypatch: pytest.MonkeyPatch, answer: str, allowed: bool
) -> None:
    """Yes is remembered, anything else is a refusal."""
    asked: list[str] = []

    def confirm(_: object, question: str) -> bool:
        asked.append(question)
        return answer == "y"

    monkeypatch.setattr(cli_app, "confirm", confirm)
    for _ in range(2):
        assert ("Contoso" in cloned("recall", "merger").out) == allowed

    assert len(asked) == (1 if allowed else 2)
    assert "your space 'work'" in asked[0]


def test_the_prompt_hook_gives_nothing_of_a_space_it_may_not_use(
    cloned: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And does not disturb the host."""
    payload = b'{"session_id":"s","cwd":"%s","prompt":"the merger with Contoso?"}'
    here = str(cloned.folder / "cloned").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(payload % here)))
    said = cloned("hook", "user-prompt-submit", stdin=payload % here)

    assert said.code == 0
    assert "March" not in said.out


def test_who_pins_a_space_allows_it(cloned: Caller) -> None:
    """`config set --project` is the user's own word."""
    assert cloned("config", "set", "space", "notes", "--project").code == 0
    assert cloned("remember", "Tea at four").code == 0
    assert cloned("trust", "--json").told[0]["space"] == "notes"
