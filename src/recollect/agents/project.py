"""Which project's memory a session of an agent belongs to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recollect.settings import Settings, load_settings

PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


def session_settings(env: Mapping[str, str], cwd: str, *, host: str) -> Settings | None:
    """What holds for a session: the host's word for the project, else its working
    directory. None where that is no folder: another project's memory would be worse than
    none. What is written is written by the host, unless somebody set another name.
    """
    named = env.get(PROJECT_VARIABLE) or cwd
    if not named or "\0" in named or not Path(named).is_dir():
        return None
    settings = load_settings(Path(named), env)
    return settings if settings.given("actor") else replace(settings, actor=host)


def is_inside(path: str, cwd: str, root: Path | None) -> Path | None:
    """The file, if it is one of the project's: links count by where they lead."""
    if root is None or "\0" in path or "\0" in cwd:
        return None
    whole = Path(cwd) / path
    if not whole.is_absolute():
        return None
    # Not Path.resolve: before Python 3.13 it raises where links lead in a circle.
    real = Path(os.path.realpath(whole))
    return real if real.is_relative_to(os.path.realpath(root)) else None
