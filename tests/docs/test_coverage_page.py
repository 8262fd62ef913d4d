"""The page of promises: every command runs and prints what its row says."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import foreign
import foreign_systems
from bethink.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "switching" / "coverage.md").read_text(encoding="utf-8")
SETUP, *PARTS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
SECTIONS = {part.partition("\n")[0]: part for part in PARTS}
ROW = re.compile(r"^\| (?!its document|what \|)(.+?) \| (.+?) \| (.*?) ?\|$", re.MULTILINE)
COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )*(?:bethink|python) .+?)`")
TEST = re.compile(r"`(tests/\S+)`")
PRINTED = re.compile(r"(no )?`((?!tests/).+?)`")
STORES = {
    "project/.remind": foreign.remind,
    "project": foreign_systems.memind,
    ".abmind/memory": foreign_systems.abmind,
    ".siftcoder": foreign_systems.siftcoder,
    ".linksee-memory": foreign_systems.linksee,
}


def put_stores(home: Path) -> None:
    """Put a store of each system where that system keeps its own, and a note of abmind."""
    for place, make in STORES.items():
        (home / place).mkdir(parents=True, exist_ok=True)
        make(home / place)
    notes = home / ".abmind" / "memory" / "consolidation" / "weekly"
    notes.mkdir(parents=True)
    (notes / "weekly_2026-W20.md").write_text("# Week 20\n\nThe warehouse was migrated by Ines.\n")


def run(line: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a line of a shell prints: variables, then bethink or python -c."""
    words = [re.sub("^~", str(Path.home()), word) for word in shlex.split(line)]
    with monkeypatch.context() as patch, io.StringIO() as out:
        while "=" in words[0]:
            patch.setenv(*words.pop(0).split("=", 1))
        with redirect_stdout(out), redirect_stderr(out):
            if words[0] == "python":
                exec(words[2], {})
            else:
                assert words[0] == "bethink", line
                main(words[1:])
        return " ".join(out.getvalue().split())


def set_up(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    monkeypatch.setenv("BETHINK_DATA_DIR", str(folder / "data"))
    monkeypatch.setenv("BETHINK_WORKER", "off")
    monkeypatch.setenv("BETHINK_SPACE", "promises")
    project = folder / "project"
    (project / ".git").mkdir(parents=True, exist_ok=True)
    (project / "README.md").write_text("# Atlas\n")
    monkeypatch.chdir(project)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The space that the page fills, once for all sections."""
    folder = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch:
        set_up(folder, patch)
        [block] = re.findall(r"^```sh\n(.*?)^```", SETUP, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()[1:]:
            assert re.match("stored|linked", run(line, patch)), line
    return folder


@pytest.mark.parametrize("section", SECTIONS)
def test_every_command_prints_what_its_row_says(
    section: str, filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a copy of the space; what the page quotes as printed is in the output."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    set_up(tmp_path, monkeypatch)
    put_stores(tmp_path)
    rows = ROW.findall(SECTIONS[section])
    assert rows
    for promise, shown, prints in rows:
        assert all((ROOT / test).is_file() for test in TEST.findall(shown + prints)), promise
        commands = COMMAND.findall(shown)
        printed = "\n".join(run(command, monkeypatch) for command in commands)
        for no, fragment in PRINTED.findall(prints):
            assert (fragment in printed) is not bool(no), (promise, commands, fragment, printed)
