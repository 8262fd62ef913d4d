"""`bethink import` brings in what other tools keep, and says so."""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path

import pytest
from caller import Caller

import foreign
from bethink.cli import transfer
from rows import each_row


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


@each_row("kind", foreign.MAKERS)
def test_every_source_can_be_imported(call: Caller, kind: str) -> None:
    """Recognised or named, previewed first, then stored, then known."""
    path = str(foreign.MAKERS[kind](call.folder).relative_to(call.folder))

    dry = call("import", path, "--dry-run", "--json")
    assert call("list").code == 1
    done = call("import", path, "--from", kind, "--json")
    again = call("import", path)

    told = dict(done.told)
    assert (dry.code, done.code, again.code) == (0, 0, 0)
    assert told["format"] == kind
    assert told["ids"]
    assert {**dry.told, "dry_run": False, "ids": told["ids"], "run": told["run"]} == told
    assert f"stored 0 memories, {told['stored']:,} already known" in again.out
    assert f"detected format: {kind}" in again.err
    assert len(call("list", "--source", told["source"], "--json", "-n", "50").told) > 0


def test_a_preview_shows_kinds_and_the_first_few(call: Caller) -> None:
    """And what is refused, with what to do about it."""
    graph = [*foreign.GRAPH, {"type": "relation"}]
    foreign.mcp_memory(call.folder, graph)

    said = call("import", "memory.jsonl", "-n")

    assert said.code == 2
    assert "would store 6 memories, 1 refused" in said.out
    assert "3 note, 2 fact, 1 preference" in said.out
    assert "line 1, observation 1  Mara_Lind: Prefers tea to coffee" in said.out
    assert "line 6: the relation lacks from, to or relationType" in said.out


def test_what_changed_and_how_to_take_it_back(call: Caller) -> None:
    """Are said after an import, and the way back works as it is told."""
    memories = copy.deepcopy(foreign.MEMORIES)
    path = foreign.mem0(call.folder, memories)

    first = call("import", path.name)
    memories[0]["memory"] = "Is allergic to walnuts and to dust"
    foreign.mem0(call.folder, memories)
    second = call("import", path.name)

    assert "stored 3 memories, 1 link" in first.out
    way_back = re.search(r"undo: bethink (undo run-\S+)", first.err)
    assert way_back is not None
    assert "stored 0 memories, 1 changed, 2 already known" in second.out
    assert call(*way_back[1].split(), "--yes").code == 0
    assert call("recall", "walnuts").code == 1


def test_other_words_for_it(call: Caller) -> None:
    """--format is --from, and a source of one's own name is kept."""
    path = foreign.mem0(call.folder)

    assert call("import", path.name, "--format", "mem0", "--source", "Old mem0").code == 0
    assert len(call("list", "--source", "Old mem0", "--json").told) == 3


def test_what_cannot_be_imported_is_told(call: Caller) -> None:
    """In a sentence, with an exit code that says whose fault it is."""
    (call.folder / "empty").mkdir()
    (call.folder / "x.db").write_bytes(b"SQLite format 3\x00" + b"\x01" * 200)

    assert "directory without any known format" in call("import", "empty").err
    assert call("import", "empty").code == 2
    assert call("import", "x.db").code == 2
    assert call("import", "x.db", "--from", "remind", "--json").told["error"]["message"]
    assert call("import", "-", "--from", "chatgpt").code == 2
    assert call("import", "x.db", "--from", "word").code == 2
    assert call("import", "none.md").code == 2


def test_a_preview_makes_no_space(call: Caller) -> None:
    """Where there is none yet, there is none afterwards."""
    path = str(foreign.MAKERS["mcp-memory"](call.folder).relative_to(call.folder))
    before = sorted(call.folder.rglob("*"))

    assert call("import", path, "--dry-run").code == 0
    assert sorted(call.folder.rglob("*")) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_an_export_to_a_pipe_needs_a_reader(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for ever for a program that was never started."""
    monkeypatch.setattr(transfer, "_READER_TIMEOUT_S", 0.05)
    call("remember", "The deploy key lives in vault B")
    os.mkfifo(call.folder / "pipe")

    said = call("export", "pipe")

    assert said.code == 2
    assert "no program reads from" in said.err
