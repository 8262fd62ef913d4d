"""The examples run as a reader would run them, and the plug-in is used by its name."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BETHINK = str(Path(sys.executable).parent / "bethink")
PROFILE = """
title = "hashtags first, then words"

[[channels]]
use = "hashtags"
weight = 2.0

[[channels]]
use = "lexical"
"""

pytestmark = pytest.mark.timeout(600)


def run(*words: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BETHINK_", "PYTHON", "XDG_"))
    }
    given = {
        "HOME": str(cwd),
        "BETHINK_CONFIG_DIR": str(cwd / "config"),
        "BETHINK_DATA_DIR": str(cwd / "data"),
        "BETHINK_WORKER": "off",
    }
    return subprocess.run(
        [str(word) for word in words], cwd=cwd, env=kept | given | env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def ok(*words: str | Path, cwd: Path, **env: str) -> str:
    ran = run(*words, cwd=cwd, **env)
    assert ran.returncode == 0, ran.stderr or ran.stdout
    return ran.stdout


PROGRAMS = {
    "notes.py": ["Releases are cut on Fridays at noon", "nothing about that"],
    "chat_memory.py": ["- user: We fly to Lisbon on 12 May", "Mia is allergic to peanuts"],
    "explain.py": ["The deploy key lives in vault B", "fuse.lexical", "not returned"],
}


def test_every_program_is_run_here() -> None:
    """A new example needs its line in this test."""
    assert sorted(path.name for path in EXAMPLES.glob("*.py")) == sorted(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    """In an empty folder, with nothing typed; it leaves no file."""
    printed = ok(sys.executable, EXAMPLES / name, cwd=tmp_path)

    for part in PROGRAMS[name]:
        assert part in printed
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the plug-in is installed into by pip, apart from this environment."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("pip is not installed")
    folder = tmp_path_factory.mktemp("plugin")
    source = shutil.copytree(EXAMPLES / "bethink-plugin", folder / "source")
    # Where the build tool is there, no package index is needed.
    offline = importlib.util.find_spec("setuptools") is not None
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--target", str(folder / "site")),
            *(["--no-index", "--no-build-isolation"] if offline else []),
            str(source),
        ],
        capture_output=True, text=True, check=False, timeout=150,
    )  # fmt: skip
    if ran.returncode and "connection broken" in ran.stderr:
        pytest.skip("no package index can be reached: the plug-in was not installed")
    assert ran.returncode == 0, ran.stderr
    return folder / "site"


def test_the_installed_plugin_is_used_by_name(site: Path, tmp_path: Path) -> None:
    """Its retriever from a profile, its embedder by a setting; doctor lists both."""
    env = {"PYTHONPATH": str(site), "BETHINK_EMBEDDER": "trigrams"}
    profiles = tmp_path / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "tagged.toml").write_text(PROFILE)
    ok(BETHINK, "remember", "The pager rotates on Mondays", "--tag", "ops", cwd=tmp_path, **env)
    ok(BETHINK, "remember", "Lunch is at noon", cwd=tmp_path, **env)

    found = ok(
        BETHINK, "recall", "what is new in #ops?", "--profile", "tagged", "--json",
        cwd=tmp_path, **env,
    )  # fmt: skip
    healthy = ok(BETHINK, "doctor", cwd=tmp_path, **env)
    shown = ok(BETHINK, "profiles", "show", "tagged", cwd=tmp_path, **env)

    assert "The pager rotates on Mondays" in found
    assert "tagged #ops" in found
    assert "Lunch" not in found
    assert "bethink-example-trigrams-1" in healthy
    assert "retriever hashtags" in healthy
    assert "embedder trigrams" in healthy
    assert "hashtags" in shown


def test_without_the_plugin_its_names_are_unknown(tmp_path: Path) -> None:
    """A sentence with the names that there are."""
    profiles = tmp_path / "config" / "profiles"
    profiles.mkdir(parents=True)
    (profiles / "tagged.toml").write_text(PROFILE)

    ran = run(BETHINK, "recall", "x", "--profile", "tagged", cwd=tmp_path)

    assert ran.returncode == 2
    assert "channels[0].use is 'hashtags'" in ran.stderr
    assert "lexical" in ran.stderr


def test_the_plugin_passes_its_own_tests(site: Path, tmp_path: Path) -> None:
    """They use bethink.testing, as an outsider would."""
    test = EXAMPLES / "bethink-plugin" / "tests" / "test_parts.py"

    assert "keep the laws" in ok(sys.executable, test, cwd=tmp_path, PYTHONPATH=str(site))
