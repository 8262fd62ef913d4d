"""The page about importing lists every source, with a command that works."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import foreign
from bethink import Memory
from bethink.cli import main
from bethink.importers import IMPORTERS, STREAMS
from needed import report_missing
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


JQ = re.findall(r"^jq -c '(.+)' (\S+) \| bethink (import) - (.+)$", PAGE, re.MULTILINE)
FACTS = [
    {"uuid": "e-1", "fact": "Alice runs the ferry", "valid_at": "2026-03-01T00:00:00Z",
     "invalid_at": None},
    {"uuid": "e-2", "fact": "The ferry leaves at eight", "valid_at": "2026-01-01T00:00:00Z",
     "invalid_at": "2026-03-01T00:00:00Z"},
]  # fmt: skip
BLOCKS = [
    {"label": "human", "value": "Chad sails"},
    {"label": "persona", "value": "I am Sam"},
    {"label": "notes", "value": ""},
]
OTHERS = {"graph.json": {"edges": FACTS, "nodes": []}, "agent.af": {"blocks": BLOCKS}}


@each_row("name", OTHERS)
def test_jq_makes_memories_of_other_json(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is empty is none, and a second import stores nothing, also of what is over."""
    jq = shutil.which("jq") or report_missing("jq")
    monkeypatch.setenv("BETHINK_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("BETHINK_EMBEDDER", "none")
    program, _, verb, options = next(one for one in JQ if one[1] == name)
    found = subprocess.run(
        [jq, "-c", program],
        input=json.dumps(OTHERS[name]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    (tmp_path / "made.jsonl").write_text(found.stdout)

    told = []
    for _ in range(2):
        assert main([verb, str(tmp_path / "made.jsonl"), *shlex.split(options), "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))

    assert [(one["stored"], one["refused"]) for one in told] == [(2, []), (0, [])]
