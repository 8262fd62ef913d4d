"""Encode settings as JSON for the worker, and decode them with checks.

They travel as the caller resolved them: the environment, the working directory and the
project are the caller's, and a worker knows none of them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bethink.config.settings import (
    SETTINGS,
    SETTINGS_BY_NAME,
    ForeignConfig,
    Origin,
    Setting,
    Settings,
    SettingValue,
    refuse_in_project,
    validate_value,
)
from bethink.config.spaces import data_dir, resolve_space
from bethink.core.json_values import Json
from bethink.errors import BadSetting
from bethink.models import Provider, embedder_provider
from bethink.models.rerank import reranker_provider

if TYPE_CHECKING:
    from bethink.ports import Embedder, Reranker


def settings_to_json(settings: Settings) -> Json:
    """Encode the caller's effective settings, fully resolved."""
    ref = resolve_space(None, settings)
    resolved = settings.changed(
        space=ref.name,
        data_dir=_absolute(data_dir(settings)),
        notes_dir=_absolute(settings.notes_dir),
        embedder=_resolve_model_folder(settings.embedder, embedder_provider(settings.embedder)),
        reranker=resolve_reranker_folder(settings.reranker),
    )
    return {
        "values": {
            setting.name: _path_to_str(getattr(resolved, setting.name)) for setting in SETTINGS
        },
        "origins": {name: list(origin) for name, origin in settings.origins.items()},
        "project": _path_to_str(_absolute(settings.project)),
        "config": _path_to_str(_absolute(settings.config)),
        "theirs": {
            "variables": dict(settings.theirs.variables),
            "home": _path_to_str(settings.theirs.home),
            "project": _path_to_str(settings.theirs.project),
        },
    }


def resolve_reranker_folder(name: str) -> str:
    """Return the reranker's name with an absolute folder."""
    return _resolve_model_folder(name, reranker_provider(name))


def settings_from_json(data: Any) -> Settings:
    """Decode a caller's settings, checked like a file; raise BadSetting if they are invalid.

    Missing settings take their defaults: a queued job may be older than a setting.
    """
    try:
        values, theirs = data["values"], data["theirs"]
        origins = {name: Origin(*origin) for name, origin in data["origins"].items()}
        for name, origin in origins.items():
            if origin.kind == "project file" and name in values:
                refuse_in_project(name, values[name], origin.where)
        settings: Json = {
            name: _decode_setting(SETTINGS_BY_NAME[name], value) for name, value in values.items()
        }
        home, project = _decode_path(theirs["home"]), _decode_path(theirs["project"])
        return Settings(
            **settings,
            project=_decode_path(data["project"]),
            config=_decode_path(data["config"]),
            theirs=ForeignConfig(dict(theirs["variables"]), home, project),
            origins=origins,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSetting("the caller's settings are invalid") from error


def _resolve_model_folder(
    name: str, provider: Provider[Embedder] | Provider[Reranker] | None
) -> str:
    """Make the folder in a model's name absolute, as seen by the caller."""
    prefix, _, argument = name.partition(":")
    if provider is None or not argument or "FOLDER" not in provider.argument_hint:
        return name
    folder = Path(argument).expanduser()
    return f"{prefix}:{folder.absolute()}" if folder.is_dir() else name


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100 - keeps links


def _path_to_str(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _decode_setting(setting: Setting, value: object) -> SettingValue:
    if value is None and setting.default is None:
        return None
    return validate_value(setting, value, f"the caller's {setting.name}")


def _decode_path(value: str | None) -> Path | None:
    path = None if value is None else Path(value)
    if path is not None and not path.is_absolute():
        raise ValueError(f"{path} is relative, and would be another one here")
    return path
