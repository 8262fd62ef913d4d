"""File system locations: the project of a folder, and the user's own folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

APP_NAME = "bethink"
EARLIER_NAME = "recollect"  # up to 0.2.0
CARRIED_OVER = "carried-over"  # in the data folder, once nothing of that name is to be offered
PROJECT_FOLDER = ".bethink"
PROJECT_FILE = "bethink.toml"
CONFIG_VARIABLE = "BETHINK_CONFIG_DIR"


def find_project(start: Path, home: Path | None = None) -> Path | None:
    """The nearest folder from ``start`` upwards that is a project's root.

    A root holds the project folder, the project file or ``.git``. The search ends at the
    home folder and at the top of the file system, which are never projects: a home under
    version control must not claim everything below it. Unreadable folders count as empty.
    """
    top = None if home is None else Path(os.path.realpath(home))
    folder = Path(os.path.realpath(start))
    while folder not in (top, folder.parent):
        if _is_root(folder):
            return folder
        folder = folder.parent
    return None


def _is_root(folder: Path) -> bool:
    # Not Path's own tests: before Python 3.14 they raise if a parent is not accessible.
    return (
        os.path.isdir(folder / PROJECT_FOLDER)  # noqa: PTH112
        or is_file(folder / PROJECT_FILE)
        or os.path.exists(folder / ".git")  # noqa: PTH110
    )


def is_file(path: Path) -> bool:
    """Whether a file exists and can be seen; files in inaccessible folders do not count."""
    return os.path.isfile(path)  # noqa: PTH113


def project_files(root: Path) -> list[Path]:
    """The project's existing configuration files; there should be at most one."""
    candidates = (root / PROJECT_FOLDER / "config.toml", root / PROJECT_FILE)
    return [path for path in candidates if is_file(path)]


def working_folder() -> Path | None:
    """The working directory of the process, if it still exists."""
    try:
        return Path.cwd()
    except OSError:
        return None


def home_folder(env: Mapping[str, str]) -> Path:
    """The user's home folder."""
    value = env.get("USERPROFILE" if os.name == "nt" else "HOME")
    return Path(value) if value else Path.home()


def config_folder(env: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's ``config.toml`` and ``profiles/``.

    The environment variable ``CONFIG_VARIABLE`` names it, else it is the platform's.
    """
    if value := env.get(CONFIG_VARIABLE):
        return Path(value).expanduser()
    return _user_folder("config")


def data_folder() -> Path:
    """The platform's folder for user data."""
    return _user_folder("data")


def state_folder() -> Path:
    """The platform's folder for state that is not memory: logs, pending work."""
    return _user_folder("state")


def cache_folder() -> Path:
    """The platform's folder for data that can be recreated."""
    return _user_folder("cache")


def earlier_folder(kind: str) -> Path:
    """The folder of a kind ("data", "config") of the time of the earlier name."""
    given = os.environ.get(f"{EARLIER_NAME.upper()}_{kind.upper()}_DIR")
    return Path(given).expanduser() if given else _user_folder(kind, EARLIER_NAME)


_LINUX_FOLDERS = {
    "config": ".config", "data": ".local/share", "state": ".local/state", "cache": ".cache"
}  # fmt: skip


def _user_folder(kind: str, app: str = APP_NAME) -> Path:
    """The user's folder of a kind: on Linux as the XDG directories are specified."""
    home = os.environ.get("HOME", "")
    if sys.platform == "linux" and home.startswith("/") and "ANDROID_DATA" not in os.environ:
        # What platformdirs would say, without the time that loading it takes.
        given = os.environ.get(f"XDG_{kind.upper()}_HOME", "")
        if given.startswith("/"):  # the specification ignores relative ones
            return Path(given, app)
        return Path(home, _LINUX_FOLDERS[kind], app)
    import platformdirs  # start-up time

    folder: str = getattr(platformdirs, f"user_{kind}_dir")(app, appauthor=False)
    return Path(folder)


def hooks_log() -> Path:
    """The log file for hook errors, which are not reported to the host."""
    return state_folder() / "hooks.log"


def make_private_folder(path: Path) -> None:
    """Create a folder and its missing parents with mode 0700; existing ones are unchanged."""
    if not path.is_dir():
        make_private_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o700)  # the umask may have removed the owner's own bits
