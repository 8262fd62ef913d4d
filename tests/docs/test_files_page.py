"""The page about files is what one runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_line_runs_in_the_order_of_the_page(tmp_path: Path) -> None:
    """In one folder, with a shell; only watching is left out, which has no end."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("BETHINK_")}
    folder = str(Path(sys.executable).parent)
    env = kept | {
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "BETHINK_DATA_DIR": str(tmp_path / "data"),
        "BETHINK_WORKER": "off",
        "PATH": folder + os.pathsep + os.environ["PATH"],
    }
    printed = ""
    for line in "".join(BLOCKS).splitlines():
        if not line.startswith("$ ") or "--watch" in line:
            continue
        ran = subprocess.run(
            ["bash", "-c", line[2:]], cwd=tmp_path, env=env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
        printed += ran.stdout

    assert "updated" in printed
    assert (
        "The pot is red."
        in subprocess.run(
            ["bethink", "list"], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
        ).stdout
    )
    shown = (tmp_path / "copy/topics/deployment.md").read_text(encoding="utf-8")
    assert "- [decision] Deploy on Fridays #release ^" in shown
    assert "The deploy key is in [[Vault B]] #keys ^" in shown
