"""Programs on one space at once: no edit, value or item of a framework is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from bethink import Memory
from bethink.integrations.memory_files import MemoryFiles
from bethink.integrations.transcript import Transcript

PROGRAMS = 3
EDITS = 6

# Only what needs no framework: their imports take longer than the work.
PROGRAM = """
import sys
from bethink import Memory
from bethink.integrations.documents import Entry
from bethink.integrations.documents import DocumentCollection
from bethink.integrations.memory_files import MemoryFiles
from bethink.integrations.transcript import Transcript, Turn

path, number, edits = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with Memory.open(path=path, embedder="none") as memory:
    files = MemoryFiles(memory)
    values = DocumentCollection(memory, "values", lambda document: document.about["name"])
    talk = Transcript(memory, "talk", "test", lambda body: True)
    for turn in range(edits):
        files.insert("/memories/log", 0, f"{number}-{turn}")
        name = f"name {turn % 2}"
        values.put(Entry(name, f"{number}-{turn}", about={"name": name}))
        if turn % 3 == 2:
            values.remove(name)
        talk.add([Turn("said", f"[{number}, {turn}, {part}]", "user", "user") for part in (0, 1)])
"""


def test_what_several_programs_write_is_all_there(tmp_path: Path) -> None:
    """Every line of a file, every item of a conversation in the order of its call; a value
    is one that somebody wrote, or gone."""
    path = tmp_path / "a.db"
    with Memory.open(path=path, embedder="none") as memory:
        files = MemoryFiles(memory)
        files.create("/memories/log", "")

        running = [
            subprocess.Popen([sys.executable, "-c", PROGRAM, path, str(number), str(EDITS)])
            for number in range(PROGRAMS)
        ]
        codes = [program.wait(timeout=60) for program in running]

        assert codes == [0] * PROGRAMS
        wanted = {f"{number}-{turn}" for number in range(PROGRAMS) for turn in range(EDITS)}
        lines = files.view("/memories/log").split("\n")[1:]
        assert {line.partition("\t")[2] for line in lines} - {""} == wanted
        said = [json.loads(body) for body in Transcript(memory, "talk", "test", bool).bodies()]
        assert len(said) == 2 * len(wanted)
        for first, second in zip(said[::2], said[1::2], strict=True):
            assert (first[:2], first[2], second[2]) == (second[:2], 0, 1)
        assert all(finding.ok for finding in memory.doctor())
