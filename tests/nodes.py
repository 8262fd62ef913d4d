"""Node, a browser and packages from npm for tests, or the reason why there are none."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from needed import report_missing

PACKAGES = (
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.1.16",
    "@modelcontextprotocol/ext-apps@2.0.4",
    "@modelcontextprotocol/inspector-cli@0.15.0",
    "oidc-provider@9.13.3",
    "playwright-core@1.65.0",
)
SCRIPTS = Path(__file__).parent / "e2e" / "scripts"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_TRY_AGAIN_S = 900  # after an install that failed: once a run is enough


def node() -> str:
    """The Node that is installed, version 20 or newer."""
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node is not installed")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    if int(version.stdout.removeprefix("v").partition(".")[0]) < 20:
        pytest.skip(f"Node is {version.stdout.strip()}, older than 20")
    return found


def browser() -> str:
    """A Chromium."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        report_missing("Chromium")
    return found


def packages(config: pytest.Config) -> Path:
    """A folder with the packages in it; installed by the first test that asks."""
    node()
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = _folder(config)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _installed(npm, folder)


def _folder(config: pytest.Config) -> Path:
    cache = getattr(config, "cache", None)
    if cache is not None:
        return Path(cache.mkdir("bethink-npm"))
    made = Path(tempfile.gettempdir()) / f"bethink-npm-{os.getuid()}"
    made.mkdir(exist_ok=True, mode=0o700)
    return made


def _installed(npm: str, folder: Path) -> Path:
    done, failed = folder / "installed.json", folder / "failed.txt"
    if done.exists() and json.loads(done.read_text()) == list(PACKAGES):
        return folder
    if failed.exists() and time.time() - failed.stat().st_mtime < _TRY_AGAIN_S:
        pytest.skip(f"npm could not install the packages: {failed.read_text()}")
    (folder / "package.json").write_text('{"private": true}')
    asked = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock",
             "--fetch-retries=0", "--fetch-timeout=20000", "--prefer-offline"]  # fmt: skip
    try:
        ran = subprocess.run(
            [*asked, *PACKAGES], cwd=folder, capture_output=True, text=True, check=False,
            timeout=120,
        )  # fmt: skip
        told = "" if ran.returncode == 0 else _reason(ran.stderr)
    except subprocess.TimeoutExpired:
        told = "it took longer than two minutes"
    if told:
        failed.write_text(told)
        pytest.skip(f"npm could not install the packages: {told}")
    done.write_text(json.dumps(PACKAGES))
    return folder


def _reason(log: str) -> str:
    """The line of npm's that says what went wrong."""
    lines = [line.removeprefix("npm error").strip() for line in log.splitlines()]
    return next((line for line in lines if line.startswith(("code ", "network "))), "see npm's log")


def ran(script: str, told: Any = None, *, folder: Path | None = None, within_s: float = 300) -> Any:
    """What a script of ours prints as JSON; it finds the packages beside itself."""
    place = SCRIPTS / script
    if folder is not None:
        place = folder / f"{os.getpid()}-{script}"
        shutil.copyfile(SCRIPTS / script, place)
    done = subprocess.run(
        [node(), place], input=json.dumps(told), capture_output=True, text=True, check=False,
        timeout=within_s,
    )  # fmt: skip
    if folder is not None:
        place.unlink()
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)
