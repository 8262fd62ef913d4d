"""Many texts are embedded ahead, in other processes: the same vectors, whatever happens to them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink import Memory
from bethink.errors import Refused
from bethink.importers import intake
from bethink.models.embed import processes
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.models.embed.processes import embedding_ahead
from bethink.ports import embed_ahead, is_judged
from importing import import_from

TEXTS = [
    f"Note {number}: the lamp of room {number * 7} is repaired on a Monday" for number in range(9)
]


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)


@pytest.fixture
def space(monkeypatch: pytest.MonkeyPatch, two_cores: None) -> Iterator[Memory]:
    """A memory with the default embedder, for which four entries are a batch."""
    monkeypatch.setattr(intake, "INTAKE_BATCH", 4)
    with Memory.open(":memory:", embedder=EncoderEmbedder()) as opened:
        yield opened


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("\n".join(TEXTS))
    return path


def test_embedded_ahead_is_embedded_alike(two_cores: None) -> None:
    """Also what was not told ahead, or told by another text."""
    plain = EncoderEmbedder()
    with embedding_ahead(plain) as bulk:
        embed_ahead(bulk, TEXTS[:3])
        embed_ahead(bulk, TEXTS[2:6])
        made = bulk.embed(TEXTS)
    for one, other in zip(made, plain.embed(TEXTS), strict=True):
        assert float(one.vector @ other.vector) > 0.99  # in int8, if ONNX Runtime is installed
        assert one.token_count == other.token_count


def test_a_process_that_is_killed_loses_nothing(two_cores: None) -> None:
    plain = EncoderEmbedder()
    with embedding_ahead(plain) as bulk:
        embed_ahead(bulk, TEXTS)
        for process in bulk._started:  # type: ignore[attr-defined]
            os.kill(process.pid, signal.SIGTERM)
        assert len(bulk.embed(TEXTS)) == len(TEXTS)


def test_no_process_outlives_its_work(two_cores: None) -> None:
    with embedding_ahead(EncoderEmbedder()) as bulk:
        embed_ahead(bulk, TEXTS)
    assert all(process.poll() is not None for process in bulk._started)  # type: ignore[attr-defined]


def test_a_machine_with_one_core_starts_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    plain = EncoderEmbedder()
    with embedding_ahead(plain) as same:
        assert same is plain


def test_a_large_import_is_whole_and_judged_afterwards(space: Memory, lines: Path) -> None:
    """Every memory has its vector; the job ``updates`` compares them."""
    told: list[tuple[int, int]] = []
    tally = import_from(space, lines, "lines", progress=lambda *amounts: told.append(amounts))

    assert (tally.stored, told[-1]) == (len(TEXTS), (len(TEXTS), len(TEXTS)))
    assert not space.store.vectors.unembedded(EncoderEmbedder.model, 1)
    waiting = [line for line in space.store.admin.events() if line.item and not is_judged(line)]
    assert len(waiting) == len(TEXTS)
    assert "bethink maintain" in tally.warnings[0]
    assert space.maintain("updates").done
    assert not space.maintain("updates").done


def test_an_interrupted_import_goes_on(space: Memory, lines: Path) -> None:
    """What was stored is not embedded again."""

    def stop(done: int, total: int) -> None:
        raise Refused("enough")

    with pytest.raises(Refused):
        import_from(space, lines, "lines", progress=stop)
    assert space.store.admin.count() == intake.INTAKE_BATCH
    tally = import_from(space, lines, "lines")
    assert (tally.duplicates, tally.stored) == (4, 5)


def test_a_reindex_in_several_processes_is_whole(
    two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bethink.api.maintenance.BATCH", 4)
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember_many(TEXTS)
        plain = EncoderEmbedder()
        assert memory.using(embedder=plain).reindex() == len(TEXTS)
        assert not memory.store.vectors.unembedded(plain.model, 1)


def test_the_program_ends_with_its_questions() -> None:
    """A killed import leaves no process behind: nothing more can be read."""
    program = [sys.executable, "-c", processes.PROGRAM, *sys.path]
    assert subprocess.run(program, input=b"", check=False, timeout=60).returncode == 0


def test_a_process_whose_answer_is_not_one_loses_nothing(
    two_cores: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the output of a module that every Python loads at its start."""
    talking = "import sys; sys.stdout.buffer.write(b'cos\\nx\\n'); sys.stdout.flush(); "
    monkeypatch.setattr(processes, "PROGRAM", talking + processes.PROGRAM)
    monkeypatch.setattr(processes, "_CHUNK_CHARACTERS", 1)
    with embedding_ahead(EncoderEmbedder()) as bulk:
        embed_ahead(bulk, TEXTS)
        assert len(bulk.embed(TEXTS)) == len(TEXTS)
