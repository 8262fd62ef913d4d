"""Settings as their caller resolved them, as JSON and back.

The environment, the working directory and the project are the caller's: a worker knows
none of them and takes what it is told, as strictly as from a file.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from recollect.aliases import Theirs
from recollect.errors import BadSetting
from recollect.jsonable import Json
from recollect.models import provider_of
from recollect.models.rerankers import reranker_provider
from recollect.settable import BY_NAME, SETTINGS, Origin, Setting, Settings, checked
from recollect.settings import refuse_in_project
from recollect.spaces import data_dir, resolve_space

_KINDS = ("argument", "environment", "project file", "user file", "default")
_PARTS = ("values", "origins", "project", "config", "theirs")
_FOUND = ("home", "project")


def settled(settings: Settings) -> Json:
    """Everything that holds for the caller, with nothing left to be found out."""
    ref = resolve_space(None, settings)
    whole = replace(
        settings,
        space=ref.name,
        data_dir=_absolute(data_dir(settings)),
        notes_dir=_absolute(settings.notes_dir),
        embedder=_in_its_folder(settings.embedder, provider_of(settings.embedder)),
        reranker=placed_reranker(settings.reranker),
    )
    return {
        "values": {setting.name: _plain(getattr(whole, setting.name)) for setting in SETTINGS},
        "origins": {name: list(origin) for name, origin in settings.origins.items()},
        "project": _plain(_absolute(settings.project)),
        "config": _plain(_absolute(settings.config)),
        "theirs": {
            "variables": dict(settings.theirs.variables),
            "home": _plain(settings.theirs.home),
            "project": _plain(settings.theirs.project),
        },
    }


def placed_reranker(name: str) -> str:
    """The reranker's name, the folder in it as seen from anywhere."""
    return _in_its_folder(name, reranker_provider(name))


def read_settings(told: Any) -> Settings:
    """The settings a caller has told of; anything amiss is a BadSetting. What is not told
    is as usual: a hand-over may be older than a setting."""
    parts = _object(told, "settings", _PARTS)
    values = _object(parts["values"], "values")
    if unknown := set(values) - set(BY_NAME):
        raise BadSetting(f"a caller says there are settings {sorted(unknown)!r:.80}")
    theirs = _object(parts["theirs"], "theirs", ("variables", *_FOUND))
    origins = {name: _origin(name, one) for name, one in _object(parts["origins"]).items()}
    taken = {name: _value(BY_NAME[name], value) for name, value in values.items()}
    for name, origin in origins.items():
        if origin.kind == "project file" and name in values:
            refuse_in_project(name, values[name], origin.where)
    return Settings(
        **taken,
        project=_path(parts["project"], "project"),
        config=_path(parts["config"], "config"),
        theirs=Theirs(
            {name: _text(value, name) for name, value in _object(theirs["variables"]).items()},
            *(_path(theirs[name], name) for name in _FOUND),
        ),
        origins=origins,
    )


def _in_its_folder(name: str, provider: Any) -> str:
    """A model named by a folder is where the caller sees it, not where the worker is."""
    prefix, _, argument = name.partition(":")
    if provider is None or not argument or "FOLDER" not in provider.takes:
        return name
    folder = Path(argument).expanduser()
    return f"{prefix}:{folder.absolute()}" if folder.is_dir() else name


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100 - links stay


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _value(setting: Setting, value: Any) -> Any:
    if value is None and setting.default is None:
        return None
    return checked(setting, value, f"what a caller says is {setting.name}")


def _origin(name: str, value: Any) -> Origin:
    if name in BY_NAME and isinstance(value, list) and len(value) == len(Origin._fields):
        kind, where = value
        if kind in _KINDS and isinstance(where, str):
            return Origin(kind, where)
    raise BadSetting(f"what a caller says of {name!r:.40} is no origin")


def _object(told: Any, name: str = "origins", keys: tuple[str, ...] | None = None) -> Json:
    if not isinstance(told, dict) or (keys is not None and set(told) != set(keys)):
        raise BadSetting(f"what a caller says are its {name} are none")
    return told


def _path(value: Any, name: str) -> Path | None:
    if value is None:
        return None
    path = Path(_text(value, name))
    if not path.is_absolute():
        raise BadSetting(f"what a caller says is its {name} is no whole path")
    return path


def _text(value: Any, name: str) -> str:
    if isinstance(value, str) and "\x00" not in value:
        return value
    raise BadSetting(f"what a caller says of {name!r:.40} is no text")
