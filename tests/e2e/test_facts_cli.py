"""Corrections through the command line, from end to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest


class Shell:
    """Runs `bethink` in a space of its own."""

    def __init__(self, home: Path) -> None:
        self._env = {
            **{key: value for key, value in os.environ.items() if "BETHINK" not in key},
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }
        self._home = home

    def __call__(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "bethink", "--space", "facts", *words],
            env=self._env, cwd=self._home, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stderr
        return done.stdout

    def told(self, *words: str) -> Any:
        return json.loads(self(*words, "--json"))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.slow
def test_a_correction_by_hand(shell: Shell) -> None:
    """Remember, correct, recall, undo: the remedy that is printed is one that works."""
    old = shell.told("remember", "the deploy key is in vault A")["id"]
    new = shell.told("remember", "the deploy key moved to vault B")

    (met,) = new["collisions"]
    assert (met["kind"], met["id"]) == ("supersedes", old)
    assert met["resolve"] == f"bethink undo {old}"
    found = shell.told("recall", "where is the deploy key")
    assert [hit["id"] for hit in found["items"]] == [new["id"]]
    assert "vault B" in shell("recall", "where is the deploy key").splitlines()[0]

    shell(*met["resolve"].split()[1:], "--yes")
    both = shell.told("recall", "where is the deploy key")
    assert {hit["id"] for hit in both["items"]} == {old, new["id"]}

    shell("forget", new["id"], "--yes")
    left = shell.told("recall", "where is the deploy key")
    assert [hit["id"] for hit in left["items"]] == [old]


@pytest.mark.slow
def test_what_is_printed_names_the_remedy(shell: Shell) -> None:
    """In words for people, and a command to copy."""
    old = shell.told("remember", "We use Redis")["id"]

    printed = shell("remember", "We do not use Redis")

    assert f"contradicts {old} (0.80, kept both, linked as contradicting" in printed
    assert f"resolve: bethink forget {old}" in printed


@pytest.mark.slow
def test_entities_are_merged_and_split(shell: Shell) -> None:
    """And listed as one in between."""
    shell("remember", "Ana Torres prefers tea", "Call @atorres on Monday")

    merged = shell.told("entities", "merge", "Ana Torres", "atorres")
    listed = shell.told("entities")
    shell("entities", "split", "Ana Torres", "atorres")

    assert (merged["aliases"], [one["id"] for one in listed]) == (["atorres"], [merged["id"]])
    assert len(shell.told("entities")) == 2
