"""The wheel in an empty environment, far from the checkout, with no network."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from email import message_from_string
from pathlib import Path
from typing import NamedTuple

import pytest

from bethink import __version__
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.retrieval.profile import profile_names

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "bethink"
WINDOWS = os.name == "nt"
NOTE = "The deploy key lives in vault B"
# Ends the process at the first socket, whoever makes it and whatever is caught.
NO_NETWORK = """
import os, sys

def watch(event, args):
    if event.startswith("socket."):
        os.write(2, f"network: {event} {args!r}".encode())
        os._exit(97)

sys.addaudithook(watch)
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed"),
]


class Installed(NamedTuple):
    """The wheel, and the environment it was installed into."""

    wheel: Path
    bin: Path

    @property
    def python(self) -> str:
        return str(self.bin / "python")

    @property
    def script(self) -> str:
        return str(self.bin / "bethink")


Run = Callable[..., subprocess.CompletedProcess[str]]


def pip(*words: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *words],
        capture_output=True, text=True, check=False, timeout=240,
    )  # fmt: skip
    if ran.returncode and "connection broken" in ran.stderr:
        pytest.skip("no package index can be reached: the wheel was not tested")
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Built and installed once, with what it needs and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    venv = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    bin_folder = venv / ("Scripts" if WINDOWS else "bin")
    pip("--python", str(bin_folder / "python"), "install", "--quiet", "--no-compile", str(wheel))
    return Installed(wheel, bin_folder)


@pytest.fixture
def run(installed: Installed, tmp_path: Path) -> Run:
    """A program of that environment in an empty folder; the network is cut."""
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(NO_NETWORK, encoding="utf-8")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BETHINK_", "PYTHON", "VIRTUAL_ENV", "XDG_"))
    }
    env = kept | {
        "PYTHONPATH": str(blocked),
        "HOME": str(tmp_path / "home"),
        "BETHINK_DATA_DIR": str(tmp_path / "data"),
    }
    here = tmp_path / "elsewhere"
    here.mkdir()

    def called(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        ran = subprocess.run(
            words, cwd=here, env=env, capture_output=True, text=True, encoding="utf-8",
            check=False, timeout=60,
        )  # fmt: skip
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == code, (ran.stdout, ran.stderr)
        return ran

    return called


# --- What is in it ------------------------------------------------------------------------


def test_every_file_of_the_package_is_in_the_wheel(installed: Installed) -> None:
    """Profiles, migrations, the built-in questions and the typing marker too; no tests."""
    inside = set(zipfile.ZipFile(installed.wheel).namelist())
    expected = {
        f"bethink/{path.relative_to(PACKAGE).as_posix()}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }

    assert {name for name in inside if name.startswith("bethink/")} == expected
    assert "bethink/py.typed" in inside
    for folder, ending in (
        ("bethink/profiles/", ".toml"),
        ("bethink/systems/", "/profile.toml"),
        ("bethink/systems/", "/aliases.toml"),
        ("bethink/store/sqlite/migrations/", ".sql"),
        ("bethink/lang/data/", ".toml"),
        ("bethink/demo/data/", ".jsonl"),
        ("bethink/eval/builtin/", ".jsonl"),
    ):
        assert any(name.startswith(folder) and name.endswith(ending) for name in inside), folder
    rest = {name for name in inside if not name.startswith("bethink/")}
    assert all(name.startswith(f"bethink-{__version__}.dist-info/") for name in rest)


def test_the_wheel_says_what_it_is(installed: Installed) -> None:
    """Version, Python, licence and command are those of the project; any platform will do."""
    archive = zipfile.ZipFile(installed.wheel)
    about = f"bethink-{__version__}.dist-info"
    told = message_from_string(archive.read(f"{about}/METADATA").decode())

    assert installed.wheel.name == f"bethink-{__version__}-py3-none-any.whl"
    assert (told["Name"], told["Version"]) == ("bethink", __version__)
    assert told["Requires-Python"] == ">=3.11"
    assert told["License-Expression"] == "Apache-2.0"
    assert told.get_payload()
    assert "bethink = bethink.cli:main" in archive.read(f"{about}/entry_points.txt").decode()
    assert f"{about}/licenses/LICENSE" in archive.namelist()


def test_the_installation_stays_small(installed: Installed) -> None:
    """At most 42 packages and 210 MB, itself and all it needs included."""
    (site,) = installed.bin.parent.rglob("site-packages")
    packages = list(site.glob("*.dist-info"))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())

    assert len(packages) <= 42
    assert size <= 210 * 10**6


# --- What it does -------------------------------------------------------------------------


def test_the_command_works_from_first_to_last(installed: Installed, run: Run) -> None:
    """Help, remember, recall, silence about the rest, and a clean bill of health."""
    overview = run(installed.script, "--help")
    stored = json.loads(run(installed.script, "remember", NOTE, "--json").stdout)
    found = json.loads(run(installed.script, "recall", "where is the deploy key?", "--json").stdout)
    foreign = run(installed.script, "recall", "how do I tune a violin?", code=1)
    health = json.loads(run(installed.script, "doctor", "--json").stdout)

    assert "remember" in overview.stdout
    assert found["order"] == [stored["id"]]
    assert found["items"][0]["text"] == NOTE
    assert found["degraded"] == []
    assert "dense" in found["items"][0]["channels"]
    assert NOTE not in foreign.stdout
    assert EncoderEmbedder.model in json.dumps(health)
    assert run(installed.script, "version").stdout.split()[-1] == __version__


def test_data_files_are_found_where_they_were_installed(installed: Installed, run: Run) -> None:
    """Profiles and the demonstration need nothing of the checkout."""
    profiles = json.loads(run(installed.script, "profiles", "--json").stdout)

    assert {entry["name"] for entry in profiles} == set(profile_names())
    assert "bethink" in run(installed.script, "demo").stdout
    assert run(installed.python, "-m", "bethink", "--help").stdout


def test_the_library_works(installed: Installed, run: Run) -> None:
    """From the installed package, not from the checkout."""
    program = f"""
import bethink
from bethink import Memory
with Memory.open("notes") as memory:
    memory.remember({NOTE!r})
with Memory.open("notes") as memory:
    print(memory.recall("where is the deploy key?").hits[0].item.text)
print(bethink.__file__)
"""
    text, place = run(installed.python, "-c", program).stdout.splitlines()

    assert text == NOTE
    assert Path(place).is_relative_to(installed.bin.parent)


def test_importing_is_light(installed: Installed, run: Run) -> None:
    """Neither the package nor its facade brings the heavy parts along."""
    program = """
import sys
import bethink
first = sorted(sys.modules)
from bethink import Memory
print(" ".join(first))
print(" ".join(sorted(sys.modules)))
"""
    package, facade = (
        set(line.split()) for line in run(installed.python, "-c", program).stdout.splitlines()
    )

    heavy = {"numpy", "click", "rich", "tokenizers", "wordllama", "re2", "socket", "ssl"}
    assert heavy.isdisjoint(package)
    assert "apsw" not in package
    assert heavy.isdisjoint(facade)


def test_the_watch_on_the_network_works(installed: Installed, run: Run) -> None:
    """Else the other tests would prove nothing."""
    ran = run(installed.python, "-c", "import socket; socket.socket()", code=97)

    assert ran.stderr.startswith("network: socket.__new__")
