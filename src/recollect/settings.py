"""Settings: argument > environment > project file > user file > default.

Each value remembers where it came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from recollect.aliases import Change, Theirs
from recollect.errors import BadSetting
from recollect.places import (
    CONFIG_VARIABLE,
    PROJECT_FOLDER,
    config_folder,
    find_project,
    home_folder,
    is_file,
    project_files,
    working_folder,
)
from recollect.settable import (
    BY_NAME,
    ENVIRONMENT,
    SETTINGS,
    SPACE_NAME,
    Origin,
    Setting,
    Settings,
    checked,
    parsed,
    provided,
    setting_named,
    similar_setting,
)

__all__ = [
    "SETTINGS", "SPACE_NAME", "Origin", "Setting", "Settings", "load_settings",
    "refuse_in_project", "set_project_setting", "set_user_setting",
]  # fmt: skip

NOT_A_PROJECTS = frozenset(
    {"data_dir", "max_classification", "actor", "allowed_roots", "notes_trust"}
)
# The personal space, that of the desktop app, and those that are named after other
# projects' folders.
_SOMEBODYS_SPACE = re.compile(r"personal|desktop|.*-[0-9a-f]{8}")


def load_settings(
    start: Path | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings that hold in the folder ``start`` (else the working directory).

    ``overrides`` are arguments; a None among them was not given. Every source is
    checked, those that are overruled too.
    """
    env = os.environ if env is None else env
    start = start or working_folder()
    home, config = home_folder(env), config_folder(env)
    project = start and find_project(start, home)
    theirs = Theirs.of(env, home, project)
    found: dict[str, tuple[Any, Origin]] = {}
    for name, value, origin, folder in (
        *_from_file(config / "config.toml", "user file", config),
        *_from_project(project),
        *_from_environment(env, start),
        *_from_arguments(overrides or {}, start),
    ):
        found[name] = (_resolved(value, folder), origin)
    profile = str(found["profile"][0]) if "profile" in found else Settings().profile
    for name, (value, origin) in _from_theirs(theirs.changes(profile), start).items():
        if name not in found or _RANK[origin.kind] > _RANK[found[name][1].kind]:
            found[name] = (value, origin)
    return Settings(
        **{name: value for name, (value, _) in found.items()},
        project=project,
        config=config,
        theirs=theirs,
        origins={name: origin for name, (_, origin) in found.items()},
    )


# A name, its checked value, where it came from, and what a relative path is relative to.
_Found = Iterator[tuple[str, Any, Origin, Path | None]]


# How much a source counts where one of theirs meets one of ours; at a draw, ours.
_RANK = {"user file": 0, "project file": 1, "environment": 2, "argument": 3}


def _from_theirs(changes: tuple[Change, ...], folder: Path | None) -> dict[str, tuple[Any, Origin]]:
    return {
        name: (_resolved(checked(BY_NAME[name], value, where), folder), Origin(kind, where))
        for verb, name, value, where, kind in changes
        if verb == "setting"
    }


def _from_file(path: Path, kind: Literal["user file", "project file"], folder: Path) -> _Found:
    if not is_file(path):
        return
    from recollect.config_file import read_table  # start-up time: most have no file

    origin = Origin(kind, str(path))
    for name, value in read_table(path).items():
        yield (
            name,
            checked(setting_named(name, str(path)), value, f"{path}: {name}"),
            origin,
            folder,
        )


def _from_project(root: Path | None) -> _Found:
    if root is None or (path := _project_file(root)) is None:
        return
    for found in _from_file(path, "project file", root):
        refuse_in_project(found[0], found[1], str(path))
        _refuse_outside(found[0], found[1], root, str(path))
        yield found


def refuse_in_project(name: str, value: Any, where: str) -> None:
    """A project may come from strangers: it does not decide over the user's own memory,
    nor to which server, or into which folder's model, its texts go."""
    sent_on = provided(setting_named(name), value)
    somebodys = name == "space" and _SOMEBODYS_SPACE.fullmatch(str(value))
    if name in NOT_A_PROJECTS or somebodys or sent_on:
        raise BadSetting(
            f"{where}: a project cannot set {name} = {str(value)!r}",
            remedy="set it for yourself: recollect config set",
        )


def _refuse_outside(name: str, value: Any, root: Path, where: str) -> None:
    """A project's notes are files of the project, wherever a link may seem to put them."""
    if name != "notes_dir" or value is None:
        return
    place, inside = os.path.realpath(root / Path(value).expanduser()), os.path.realpath(root)
    if not Path(place).is_relative_to(inside):
        raise BadSetting(
            f"{where}: a project's notes_dir must lie inside the project, not in {str(value)!r}",
            remedy="set it for yourself: recollect config set",
        )


def _from_environment(env: Mapping[str, str], folder: Path | None) -> _Found:
    for variable in sorted(name for name in env if name.startswith(ENVIRONMENT)):
        name = variable.removeprefix(ENVIRONMENT).lower()
        if name in BY_NAME and env[variable]:
            setting = BY_NAME[name]
            value = checked(setting, parsed(setting, env[variable], variable), variable)
            yield name, value, Origin("environment", variable), folder
        elif (
            name not in BY_NAME and variable != CONFIG_VARIABLE and (near := similar_setting(name))
        ):
            # Other parts have variables of their own; only a slip of the pen is refused.
            raise BadSetting(
                f"there is no setting {variable}", remedy=f"did you mean {BY_NAME[near].variable}?"
            )


def _from_arguments(overrides: Mapping[str, Any], folder: Path | None) -> _Found:
    for name, value in overrides.items():
        if value is not None:
            setting = setting_named(name)
            yield name, checked(setting, value, f"argument {name}"), Origin("argument"), folder


def set_user_setting(name: str, value: Any, env: Mapping[str, str] | None = None) -> Path:
    """Writes one setting to the user's file (None takes it out); gives the file."""
    path = config_folder(os.environ if env is None else env) / "config.toml"
    here = working_folder()
    if value is not None and setting_named(name).type is Path and here is not None:
        # Whoever types a relative path means one from here, not from the file's folder.
        value = here / Path(value).expanduser()
    return _write(path, name, value, keep_mode=False)


def set_project_setting(
    name: str, value: Any, start: Path | None = None, env: Mapping[str, str] | None = None
) -> Path:
    """Writes one setting to the file of the project that ``start`` is in."""
    start = start or working_folder()
    root = start and find_project(start, home_folder(os.environ if env is None else env))
    if root is None:
        raise BadSetting("this folder is in no project", remedy="mkdir .recollect makes it one")
    path = _project_file(root) or root / PROJECT_FOLDER / "config.toml"
    refuse_in_project(setting_named(name).name, value, str(path))
    _refuse_outside(name, value, root, str(path))
    return _write(path, name, value, keep_mode=True)


def _write(path: Path, name: str, value: Any, *, keep_mode: bool) -> Path:
    from recollect.config_file import write_key  # start-up time: rarely needed

    setting = setting_named(name)
    if isinstance(value, Path):
        value = str(value)
    if isinstance(value, str):
        value = parsed(setting, value, name)
    if value is not None:
        checked(setting, value, name)
    write_key(path, name, value, keep_mode=keep_mode)
    return path


def _project_file(root: Path) -> Path | None:
    files = project_files(root)
    if len(files) > 1:
        raise BadSetting(f"both {files[0]} and {files[1]} are there", remedy="keep one of them")
    return files[0] if files else None


def _resolved(value: Any, folder: Path | None) -> Any:
    if not isinstance(value, Path):
        return value
    path = value.expanduser()
    return path if folder is None else folder / path
