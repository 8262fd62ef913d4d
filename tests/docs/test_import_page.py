"""The page about importing lists every source, with a command that works."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

import foreign
from bethink import Memory
from bethink.cli import main
from bethink.importers import IMPORTERS, STREAMS
from rows import each_row

PAGE = (Path(__file__).parents[2] / "docs" / "import.md").read_text(encoding="utf-8")
ROWS = dict(re.findall(r"^\| `([\w-]+)` \| .+? \| `(bethink import .+?)` \|$", PAGE, re.MULTILINE))


def _lines(folder: Path) -> Path:
    return foreign.jsonl(folder / "memories.jsonl", {"text": "One of two"}, "Two of two")


def _prose(folder: Path) -> Path:
    path = folder / "prose.txt"
    path.write_text("One of two\n\nTwo of two\n")
    return path


def _export(folder: Path) -> Path:
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember("Something that was exported")
        return foreign.jsonl(folder / "export.jsonl", *memory.export())


MAKERS: dict[str, Callable[[Path], Path]] = {
    **foreign.MAKERS, "jsonl": _lines, "text": _prose, "lines": _prose, "bethink": _export,
}  # fmt: skip


def test_every_source_has_its_row() -> None:
    """And no row is of one that there is not."""
    assert list(ROWS) == [*IMPORTERS, *STREAMS]


@each_row("kind", ROWS)
def test_the_command_of_each_works(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On what such a tool keeps, wherever that lies; it is recognised for what it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_EMBEDDER", "none")
    monkeypatch.chdir(tmp_path)
    _, verb, _, *options = shlex.split(ROWS[kind])

    code = main([verb, str(MAKERS[kind](tmp_path)), *options, "--json"])

    told = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (told["format"], told["stored"] > 0) == (kind, True)
