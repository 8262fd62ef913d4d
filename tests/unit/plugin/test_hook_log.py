"""The hooks' log, where there is no place for one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

NOTE = """
import pwd

def nobody(uid):
    raise KeyError(uid)

pwd.getpwuid = nobody
from recollect.plugin.hook import note
note("stop: something")
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
