"""Corrections through the command line, from end to end."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import warm
from server_process import SCRIPT
from warm import JUDGING


class Shell:
    """Runs `bethink` in a space of its own."""

    def __init__(self, home: Path) -> None:
        self._env = {
            **{key: value for key, value in os.environ.items() if "BETHINK" not in key},
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "PYTHONPATH": JUDGING,
        }
        self._home = home

    def __call__(self, *words: str) -> str:
        done = warm.run(
            [SCRIPT, "--space", "facts", *words],
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
    """Remember, correct, recall, replace, undo: the remedy that is printed is one that works."""
    asked = ("recall", "where is the deploy key")
    old = shell.told("remember", "the deploy key is in vault A")["id"]
    new = shell.told("remember", "the deploy key moved to vault B")

    (met,) = new["collisions"]
    assert (met["kind"], met["id"]) == ("supersedes", old)
    assert met["resolve"] == f"bethink forget {old}"
    found = shell.told(*asked)["items"]
    assert [(hit["id"], hit["see_newer"]) for hit in found] == [(new["id"], None), (old, new["id"])]
    printed = shell(*asked)
    assert "vault B" in printed.splitlines()[0]
    assert f"older, see {new['id']}" in printed

    shell("link", new["id"], "supersedes", old)
    assert [hit["id"] for hit in shell.told(*asked)["items"]] == [new["id"]]
    shell("undo", old, "--yes")
    assert {hit["id"] for hit in shell.told(*asked)["items"]} == {old, new["id"]}

    shell(*met["resolve"].split()[1:], "--yes")
    assert [hit["id"] for hit in shell.told(*asked)["items"]] == [new["id"]]
    shell("restore", old)
    shell("forget", new["id"], "--yes")
    left = shell.told(*asked)["items"]
    assert [(hit["id"], hit["see_newer"]) for hit in left] == [(old, None)]


@pytest.mark.slow
def test_what_is_printed_names_the_remedy(shell: Shell) -> None:
    """In words for people, and a command to copy."""
    old = shell.told("remember", "The deploy key is in vault A")["id"]

    printed = shell("remember", "The deploy key moved to vault B", "--source-class", "web")

    assert f"contradicts {old}: " in printed
    assert "kept both, linked as contradicting" in printed
    assert "resolve: bethink forget " in printed


@pytest.mark.slow
def test_entities_are_merged_and_split(shell: Shell) -> None:
    """And listed as one in between."""
    shell("remember", "Ana Torres prefers tea", "Call @atorres on Monday")

    merged = shell.told("entities", "merge", "Ana Torres", "atorres")
    listed = shell.told("entities")
    shell("entities", "split", "Ana Torres", "atorres")

    assert (merged["aliases"], [one["id"] for one in listed]) == (["atorres"], [merged["id"]])
    assert len(shell.told("entities")) == 2
