"""Files in a project of a stranger: whatever they hold, a command ends soon and says which one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from server_process import SCRIPT, clean_environment
from thorough import share

MOST_MEMORY_KB = 50 * 1024  # above what the command needs anyway
PROFILE = 'profile = "theirs"\n'
CHANNEL = '[[channels]]\nuse = "lexical"\nname = "c{}"\n'


def _zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(3 << 30)


def _text(text: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(text)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "an endless device": _zero,
    "3 GB of zeros": _sparse,
    "a dotted key": _text(".".join("a" * 40_000) + " = 1\n"),
    "dotted keys of one file": _text("\n".join(f"k{n}{'.a' * 99} = 1" for n in range(300))),
    "a dotted table": _text(f"[{'.'.join('a' * 30_000)}]\nb = 1\n"),
    "a dotted key in a table": _text("x = {" + ".".join("a" * 30_000) + " = 1}\n"),
    "a quoted dotted key": _text(".".join(['"="'] * 15_000) + " = 1\n"),
    "nested lists": _text("a = " + "[" * 100_000 + "\n"),
    "nested lists of a small file": _text("a = " + "[" * 20_000 + "]" * 20_000 + "\n"),
    "nested tables": _text("a = " + "{b=" * 15_000 + "\n"),
    "a long number": _text("k = " + "9" * 60_000 + "\n"),
    "a long number of another base": _text("k = 0x" + "f" * 60_000 + "\n"),
    "a long name": _text("k" * 60_000 + " = 1\n"),
    "a long value": _text('space = "' + "x" * 60_000 + '"\n'),
    "half a text": _text('space = """' + '"" ' * 20_000),
    "many tables": _text("[[a]]\n" * 10_000),
    "many parts": _text("".join(map(CHANNEL.format, range(1200)))),
    "no text": lambda path: path.write_bytes(b"\xff" * 60_000),
    "nested JSON": _text("[" * 60_000),
    "a folder": Path.mkdir,
}
PLACES = (".bethink/config.toml", "bethink.toml", ".bethink/profiles/theirs.toml", ".git", "json")


# A process begins with the peak of the one that started it, so a small one starts the command.
MEASURE = """
import json, resource, subprocess, sys
from pathlib import Path
resource.setrlimit(resource.RLIMIT_AS, (3 << 30,) * 2)  # a fault of ours shall not take the machine
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
status = subprocess.run(sys.argv[2:], stdin=subprocess.DEVNULL, timeout=60).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
Path(sys.argv[1]).write_text(json.dumps([status, used.ru_maxrss]))
"""


def asked(folder: Path) -> tuple[int, str, int]:
    """The exit status of a recall in a folder, what it wrote, and its memory in kB."""
    measured = folder.parent / "measured"
    measured.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", MEASURE, measured, SCRIPT, "recall", "heron"], cwd=folder,
        env=clean_environment(folder.parent), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, check=False,
    )  # fmt: skip
    status, memory = json.loads(measured.read_text())
    return status, done.stdout, memory


@pytest.fixture(scope="session")
def usual_memory(tmp_path_factory: pytest.TempPathFactory) -> int:
    folder = tmp_path_factory.mktemp("usual") / "project"
    (folder / ".bethink").mkdir(parents=True)
    (folder / ".bethink" / "config.toml").write_text("k = 5  # read by the library\n")
    return asked(folder)[2]


@pytest.mark.parametrize(
    ("what", "place"),
    [(what, place) for number, what in enumerate(HOSTILE) for place in share(PLACES, number, of=2)],
)
def test_a_hostile_file_is_refused_by_name(
    tmp_path: Path, usual_memory: int, place: str, what: str
) -> None:
    if place == "json":
        place = ".siftcoder/config.json"
        settings = 'profile = "siftcoder"\n'
    else:
        settings = PROFILE if "profiles" in place else ""
    project = tmp_path / "project"
    path = project / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if settings:
        (project / "bethink.toml").write_text(settings)
    HOSTILE[what](path)
    if what == "a pipe":
        # A writer that waits, so that opening it for reading does not block: it must not be read.
        held = os.open(path, os.O_RDWR)
    code, written, memory = asked(project)
    if what == "a pipe":
        os.close(held)

    assert code in (0, 1, 2, 3), (code, written[-2000:])
    assert "bug" not in written, written[-2000:]
    assert "Traceback" not in written, written[-2000:]
    assert len(written) < 2_000
    assert memory < usual_memory + MOST_MEMORY_KB, (memory, usual_memory)
