"""The hooks' log, where there is no place for one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTE = """
import pwd

def nobody(uid):
    raise KeyError(uid)

pwd.getpwuid = nobody
from bethink.hooks.dispatch import log_message
log_message("stop: something")
"""


@pytest.mark.skipif(os.name == "nt", reason="a user without a home is one of POSIX")
def test_without_a_home_there_is_silence() -> None:
    """A user without a home, as in some containers, has no log; the host hears nothing of it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    env.pop("HOME", None)

    ran = subprocess.run(
        [sys.executable, "-c", NOTE], env=env, capture_output=True, check=False, timeout=60
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


def test_a_log_that_cannot_be_written_is_silence(tmp_path: Path) -> None:
    """On a full disk, or where something else stands in its place, the host hears nothing."""
    (tmp_path / "bethink" / "hooks.log").mkdir(parents=True)
    told = "from bethink.hooks.dispatch import log_message; log_message('stop: something')"

    ran = subprocess.run(
        [sys.executable, "-c", told],
        env=os.environ | {"XDG_STATE_HOME": str(tmp_path)}, capture_output=True, check=False,
        timeout=60,
    )  # fmt: skip

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
