"""The tutorial is run from beginning to end, in one home, and prints what it shows."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from test_docs_tell_the_truth import blocks, clean_room


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page, with the lines that it shows."""
    found: list[tuple[str, list[str]]] = []
    for where, code in blocks("console"):
        if not where.startswith("docs/tutorial.md"):
            continue
        for line in code.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def is_printed(shown: str, printed: str) -> bool:
    """Whether the shown words are printed, wrapped or not, anything in the place of `...`."""
    pattern = ".*".join(re.escape(" ".join(part.split())) for part in shown.split("..."))
    return re.search(pattern, " ".join(printed.split())) is not None


def test_the_tutorial_prints_what_it_shows(tmp_path: Path) -> None:
    """Every command, one after the other, as a newcomer types them."""
    env = clean_room(tmp_path) | {"BETHINK_WORKER": "off", "BETHINK_HOOK_TIMEOUT_S": "60"}
    project = tmp_path
    for command, shown in steps():
        ran = subprocess.run(
            ["bash", "-c", command], cwd=project, env=env, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        printed = ran.stdout + ran.stderr
        missing = [line for line in shown if not is_printed(line, printed)]
        assert ran.returncode in (0, 1), f"{command}\n{printed}"
        assert not missing, f"{command}\n{missing}\n{printed}"
        if command.endswith("cd lantern"):
            project = tmp_path / "lantern"
