"""The page on several machines is run as it stands, with two homes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from test_docs_tell_the_truth import ROOT, blocks, clean_room


def test_the_page_runs_with_two_homes(tmp_path: Path) -> None:
    """And ends with one hash on both machines, and nothing left of the erased memory."""
    ((_, code),) = [block for block in blocks("sh") if block[0].startswith("docs/sync.md")]
    ran = subprocess.run(
        ["bash", "-eu", "-c", code],
        cwd=tmp_path,
        env=clean_room(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert "changed in two places" in ran.stdout
    assert "edited on desktop" in ran.stdout
    assert "The deploy key is in vault A" in ran.stdout
    assert "older versions that are kept there" in " ".join(ran.stdout.split())
    hashes = re.findall(r"^hash (\w{32})$", ran.stdout, re.MULTILINE)
    assert hashes[-1] == hashes[-2]
    assert (ROOT / "docs" / "sync.md").exists()
