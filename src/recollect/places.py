"""Where things are: the project a folder belongs to, and the user's own folders."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

APP = "recollect"
PROJECT_FOLDER = ".recollect"
PROJECT_FILE = "recollect.toml"
CONFIG_VARIABLE = "RECOLLECT_CONFIG_DIR"


def find_project(start: Path, home: Path | None = None) -> Path | None:
    """The nearest folder from ``start`` upwards that is a project's root.

    A root holds ``.recollect/``, ``recollect.toml`` or ``.git``. The walk ends at the
    home folder and at the top of the file system, which are never projects: a home
    kept under version control must not swallow everything below it. Folders that
    cannot be read hold nothing.
    """
    top = None if home is None else Path(os.path.realpath(home))
    folder = Path(os.path.realpath(start))
    while folder not in (top, folder.parent):
        if _is_root(folder):
            return folder
        folder = folder.parent
    return None


def _is_root(folder: Path) -> bool:
    # Not Path's own tests: before Python 3.14 they raise where a parent is closed to us.
    return (
        os.path.isdir(folder / PROJECT_FOLDER)  # noqa: PTH112
        or is_file(folder / PROJECT_FILE)
        or os.path.exists(folder / ".git")  # noqa: PTH110
    )


def is_file(path: Path) -> bool:
    """Whether a file is there to be seen; what a closed folder holds is not."""
    return os.path.isfile(path)  # noqa: PTH113


def project_files(root: Path) -> list[Path]:
    """The project's setting files that are there; there should be at most one."""
    places = (root / PROJECT_FOLDER / "config.toml", root / PROJECT_FILE)
    return [path for path in places if is_file(path)]


def working_folder() -> Path | None:
    """The folder the process works in, if it still exists."""
    try:
        return Path.cwd()
    except OSError:
        return None


def home_folder(env: Mapping[str, str]) -> Path:
    """The user's home."""
    named = env.get("USERPROFILE" if os.name == "nt" else "HOME")
    return Path(named) if named else Path.home()


def config_folder(env: Mapping[str, str]) -> Path:
    """Where the user's ``config.toml`` and ``profiles/`` are: ``RECOLLECT_CONFIG_DIR``,
    else the platform's place for settings."""
    if named := env.get(CONFIG_VARIABLE):
        return Path(named).expanduser()
    from platformdirs import user_config_dir  # start-up time

    return Path(user_config_dir(APP, appauthor=False))


def data_folder() -> Path:
    """The platform's place for the user's data."""
    from platformdirs import user_data_dir  # start-up time

    return Path(user_data_dir(APP, appauthor=False))


def state_folder() -> Path:
    """The platform's place for what outlives a process but is no memory: logs, what is
    still to be done."""
    from platformdirs import user_state_dir  # start-up time

    return Path(user_state_dir(APP, appauthor=False))


def cache_folder() -> Path:
    """The platform's place for what can be made again."""
    from platformdirs import user_cache_dir  # start-up time

    return Path(user_cache_dir(APP, appauthor=False))


def hooks_log() -> Path:
    """Where hooks note what went wrong: their host is told nothing of it."""
    return state_folder() / "hooks.log"


def make_private_folder(path: Path) -> None:
    """Makes the folder and its missing parents, for the owner only; existing ones are
    left as they are."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
