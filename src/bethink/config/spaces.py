"""Spaces: which memory to use, and the file it is stored in.

A space is one SQLite file, ``<data folder>/spaces/<name>.db``. Without a name the
project decides: its root folder's name and a hash of its path, so that two projects
of the same name stay separate. ``space = "name"`` in the project's file selects another,
once the user has allowed it: the project may be a stranger's.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG

from bethink.config.paths import data_folder
from bethink.config.settings import SPACE_NAME, Settings
from bethink.core.atomic_write import atomic_replace
from bethink.core.named_tuple import NamedTuple
from bethink.core.small_files import read_small_file
from bethink.errors import BadSetting, StoreError, UntrustedSpace

PERSONAL = "personal"
SUFFIX = ".db"

# Reserved for devices on Windows, with any suffix.
_WINDOWS_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))]
)
_SLUG_LENGTH = 40
_MAX_GIT_FILE_BYTES = 4096


class SpaceRef(NamedTuple):
    """A space, its file (created on opening), and why it was chosen."""

    name: str
    path: Path
    why: str


class SpaceInfo(NamedTuple):
    """An existing space; ``size`` in bytes includes the write-ahead log."""

    name: str
    path: Path
    size: int
    modified: datetime


def resolve_space(space: str | None = None, settings: Settings | None = None) -> SpaceRef:
    """Resolve the space: the one named, the one configured, the project's, the personal one."""
    settings = settings or Settings()
    if space is not None:
        name, why = space, "named by the caller"
    elif settings.space is not None:
        name, why = settings.space, f"set by {settings.origin('space')}"
        if settings.origin("space").kind == "project file":
            _require_trust(settings)
    elif settings.project is not None:
        name, why = project_space(settings.project), f"the project in {settings.project}"
    else:
        name, why = PERSONAL, "outside any project"
    return SpaceRef(name, space_path(name, data_dir(settings)), why)


def _require_trust(settings: Settings) -> None:
    """Raise UntrustedSpace where the project may not use the space that its file names."""
    assert settings.space is not None
    if settings.project is None or is_own_space(settings.space, settings.project):
        return
    project = os.path.realpath(settings.project)
    if (project, settings.space) in trusted_spaces(settings.config):
        return
    raise UntrustedSpace(
        f"{settings.origin('space').where} wants to use your space {settings.space!r},"
        " which this project may not use yet",
        remedy=f"allow it: bethink trust {settings.space}; or name a space: --space NAME",
        project=project,
        space=settings.space,
    )


def is_own_space(name: str, project: Path) -> bool:
    """Whether a space belongs to a project by its name, or by one derived from it."""
    own = project_space(project)
    return name == own or name.startswith(f"{own}.")


class TrustedSpace(NamedTuple):
    """A project that may use a space which its file names."""

    project: str
    space: str


_TRUST_FILE = "trusted-spaces.json"


def trusted_spaces(config: Path | None) -> list[TrustedSpace]:
    """List what the user has allowed, by project."""
    if config is None:
        return []
    path = config / _TRUST_FILE
    try:
        parsed = json.loads(path.read_text("utf-8"))
        return sorted(TrustedSpace(str(project), str(space)) for project, space in parsed)
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise BadSetting(
            f"{path} cannot be read: {error}", remedy=f"remove {path}; projects will ask again"
        ) from error


def set_trust(config: Path, entries: Iterable[TrustedSpace]) -> None:
    """Write what the user allows, in place of what was allowed before."""
    config.mkdir(parents=True, exist_ok=True)
    text = json.dumps(sorted(set(entries)), indent=2, ensure_ascii=False)
    atomic_replace(config / _TRUST_FILE, f"{text}\n".encode())


def data_dir(settings: Settings) -> Path:
    """The data folder: the one configured, else the platform's."""
    return settings.data_dir or data_folder()


def files_folder(settings: Settings, space: str) -> Path:
    """The folder with the state of the files that show a space (`bethink files`)."""
    return data_dir(settings) / space / "files"


def space_path(name: str, folder: Path) -> Path:
    """The file of a space in the data folder; a name can never lead out of it."""
    if not SPACE_NAME.fullmatch(name) or name.partition(".")[0] in _WINDOWS_DEVICES:
        raise BadSetting(
            f"{name!r} cannot be the name of a space",
            remedy="use 1 to 64 lower-case letters, digits, '.', '_' and '-', "
            "a letter or digit first, and no device name of Windows",
        )
    return folder / "spaces" / (name + SUFFIX)


def project_space(root: Path) -> str:
    """The name of a project's space: a slug of its folder, a hash of its path.

    All working trees of one git repository share the space of the main one.
    """
    import hashlib  # start-up time: a space that is named needs none

    home = _main_worktree(Path(os.path.realpath(root)))
    # The bytes of the path do not depend on the encoding of the locale.
    path = os.fsencode(os.path.normcase(home))
    folder_name = os.fsencode(home.name).decode("utf-8", "replace")
    letters = unicodedata.normalize("NFKD", folder_name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", letters)[:_SLUG_LENGTH].strip("-") or "project"
    return f"{slug}-{hashlib.sha256(path).hexdigest()[:8]}"


def list_spaces(folder: Path) -> list[SpaceInfo]:
    """The spaces under a data folder, by name."""
    home = folder / "spaces"
    try:
        files = sorted(path.name for path in home.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"the folder {home} cannot be read: {error.strerror}") from error
    names = [file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX)]
    infos = [
        _space_info(name, home / (name + SUFFIX)) for name in names if SPACE_NAME.fullmatch(name)
    ]
    return [space for space in infos if space is not None]


def _space_info(name: str, path: Path) -> SpaceInfo | None:
    """The space of a file; None where it vanished since it was listed, or is no regular file."""
    stat = _stat_or_none(path)
    if stat is None or not S_ISREG(stat.st_mode):
        return None
    log = _stat_or_none(path.with_name(path.name + "-wal")) or stat
    size = stat.st_size + (log.st_size if log is not stat else 0)
    modified = datetime.fromtimestamp(max(stat.st_mtime, log.st_mtime), UTC)
    return SpaceInfo(name, path, size, modified)


def _stat_or_none(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None  # the log exists only while a process uses the space


def _main_worktree(root: Path) -> Path:
    """The main working tree of a linked git worktree; any other root unchanged.

    A linked tree's ``.git`` is a file that names ``<main>/.git/worktrees/<tree>``. That
    folder must point back, or a forged file could open another project's memory.
    """
    try:
        named = _read_git_file(root / ".git").removeprefix("gitdir:").strip()
        git_folder = (root / named).resolve()
        linked_file = (git_folder / _read_git_file(git_folder / "gitdir").strip()).resolve()
    except (OSError, ValueError):
        return root  # not a linked worktree
    common = git_folder.parent.parent
    linked = git_folder.parent.name == "worktrees" and common.name == ".git"
    return common.parent if linked and linked_file == (root / ".git").resolve() else root


def _read_git_file(path: Path) -> str:
    return os.fsdecode(read_small_file(path, _MAX_GIT_FILE_BYTES))
