"""Encode frozen values and settings as JSON for the worker, and decode them with checks.

A value of a class is the list of its fields; the type hints drive decoding. Values
shared between the steps of a query (items, evidence, candidates) are written once and
referenced by index. Nothing received is ever executed, and only classes named by the
expected type are created.

Settings travel as the caller resolved them: the environment, the working directory
and the project are the caller's, and a worker knows none of them.
"""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from bethink.config.aliases import ForeignConfig
from bethink.config.settings import (
    SETTINGS,
    SETTINGS_BY_NAME,
    Origin,
    Setting,
    Settings,
    refuse_in_project,
    validate_value,
)
from bethink.config.spaces import data_dir, resolve_space
from bethink.core.dataclass import field_types
from bethink.core.json_values import Json
from bethink.errors import BadSetting
from bethink.models import embedder_provider
from bethink.models.rerank import reranker_provider

T = TypeVar("T")

_SCALARS = (str, int, bool)


@cache
def _shared_types() -> tuple[type, ...]:
    from bethink.model import Candidate, Evidence, Item  # start-up time: hooks carry texts only

    return Item, Evidence, Candidate


class DecodeError(Exception):
    """A received value does not have the expected type."""


def encode(value: Any) -> Json:
    """Encode a value as a JSON object that ``decode`` reads back."""
    encoder = _Encoder()
    return {"value": encoder(value), "shared": encoder.shared}


def decode(message: Any, expected: type[T]) -> T:
    """Decode a value of the expected type; raise DecodeError if it does not match."""
    if not isinstance(message, dict):
        raise DecodeError("not an object")
    shared, value = message.get("shared"), message.get("value")
    if not isinstance(shared, list):
        raise DecodeError("shared values are not a list")
    decoder = _Decoder()
    for entry in shared:
        name, fields = _decode_shared_entry(entry)
        kind = next((kind for kind in _shared_types() if kind.__name__ == name), None)
        if kind is None:
            raise DecodeError(f"{name!r:.40} is not a shared type")
        decoder.shared.append(_decode_object(kind, fields, decoder))
    decoded: T = decoder(value, expected)
    return decoded


def _decode_shared_entry(value: Any) -> tuple[Any, Any]:
    if not isinstance(value, list) or len(value) != 2:
        raise DecodeError("a shared value must be a name and its fields")
    return value[0], value[1]


class _Encoder:
    """Encoder that writes each shared value once."""

    def __init__(self) -> None:
        self.shared: list[list[Any]] = []
        # By identity; keeps the values alive, since an id may be reused after that.
        self._indexes: dict[int, tuple[Any, int]] = {}

    def __call__(self, value: Any) -> Any:
        if value is None or isinstance(value, str | int | float):
            return value
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, Mapping):
            return {str(name): self(element) for name, element in value.items()}
        if isinstance(value, _shared_types()):
            return self._reference(value)
        return [self(element) for element in _elements(value)]

    def _reference(self, value: Any) -> int:
        known = self._indexes.get(id(value))
        if known is not None:
            return known[1]
        fields = [self(field) for field in value]
        place = len(self.shared)
        self.shared.append([type(value).__name__, fields])
        self._indexes[id(value)] = (value, place)
        return place


def _elements(value: Any) -> Iterable[Any]:
    """The elements of a value, in a deterministic order."""
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, tuple | list):
        return value
    try:
        return [getattr(value, name) for name in field_types(type(value))]
    except TypeError as error:
        raise DecodeError(f"cannot encode a {type(value).__name__}") from error


class _Decoder:
    """Decoder driven by the expected types."""

    def __init__(self) -> None:
        self.shared: list[Any] = []

    def __call__(self, value: Any, expected: Any) -> Any:
        origin = get_origin(expected)
        if expected is Any:
            return value
        if origin in _DECODERS:
            return _DECODERS[origin](value, expected, self)
        if expected in _SCALARS or expected is float:
            return _decode_scalar(value, expected)
        if expected is datetime:
            return _decode_datetime(value)
        if expected in _shared_types():
            return self._dereference(value, expected)
        return _decode_object(expected, value, self)

    def _dereference(self, value: Any, expected: Any) -> Any:
        if type(value) is not int or not 0 <= value < len(self.shared):
            raise DecodeError(f"{value!r:.40} is not a valid reference")
        found = self.shared[value]
        if type(found) is not expected:
            raise DecodeError(f"{value} is not a {expected.__name__}")
        return found


def _decode_scalar(value: Any, expected: type) -> Any:
    # An int is a valid float, but a bool is not a number.
    accepted = (int, float) if expected is float else expected
    if not isinstance(value, accepted) or (isinstance(value, bool) and expected is not bool):
        raise DecodeError(f"{value!r:.40} is not a {expected.__name__}")
    return value


def _decode_datetime(value: Any) -> datetime:
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise DecodeError(f"{value!r:.40} is not a time") from error


def _decode_object(kind: Any, value: Any, decoder: _Decoder) -> Any:
    """Decode an instance of a class from the list of its fields."""
    hints = _field_types(kind)
    if not isinstance(value, list) or len(value) != len(hints):
        raise DecodeError(f"not the fields of {kind.__name__}")
    return kind(*(decoder(field, hint) for field, hint in zip(value, hints, strict=True)))


@cache
def _field_types(kind: Any) -> tuple[Any, ...]:
    """The types of a class's fields, in order."""
    try:
        names = kind._fields if hasattr(kind, "_fields") else field_types(kind)
    except (AttributeError, TypeError) as error:
        raise DecodeError(f"{kind!r:.40} cannot be decoded") from error
    hints = typing.get_type_hints(kind)
    return tuple(hints[name] for name in names)


def _decode_tuple(value: Any, expected: Any, decoder: _Decoder) -> tuple[Any, ...]:
    inner = get_args(expected)
    listed = _require_list(value)
    if len(inner) == 2 and inner[1] is Ellipsis:
        return tuple(decoder(element, inner[0]) for element in listed)
    if len(listed) != len(inner):
        raise DecodeError(f"{len(listed)} values, expected {len(inner)}")
    return tuple(decoder(element, hint) for element, hint in zip(listed, inner, strict=True))


def _decode_frozenset(value: Any, expected: Any, decoder: _Decoder) -> frozenset[Any]:
    (inner,) = get_args(expected)
    return frozenset(decoder(element, inner) for element in _require_list(value))


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise DecodeError(f"{value!r:.40} is not a list")
    return value


def _decode_optional(value: Any, expected: Any, decoder: _Decoder) -> Any:
    """Decode an optional value."""
    kinds = [kind for kind in get_args(expected) if kind is not types.NoneType]
    if value is None and len(kinds) < len(get_args(expected)):
        return None
    if len(kinds) != 1:
        raise DecodeError(f"{expected} is ambiguous")
    return decoder(value, kinds[0])


def _decode_literal(value: Any, expected: Any, _: _Decoder) -> Any:
    if value not in get_args(expected) or isinstance(value, bool):
        raise DecodeError(f"{value!r:.40} is not one of {get_args(expected)}")
    return value


def _decode_mapping(value: Any, _: Any, __: _Decoder) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DecodeError(f"{value!r:.40} is not an object")
    return value


_DECODERS: Mapping[Any, Callable[[Any, Any, _Decoder], Any]] = {
    tuple: _decode_tuple,
    frozenset: _decode_frozenset,
    Union: _decode_optional,
    types.UnionType: _decode_optional,
    Literal: _decode_literal,
    Mapping: _decode_mapping,
}

_ORIGIN_KINDS = ("argument", "environment", "project file", "user file", "default")
_SETTINGS_KEYS = ("values", "origins", "project", "config", "theirs")
_FOREIGN_PATH_KEYS = ("home", "project")


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
    """Decode a caller's settings; raise BadSetting if anything is invalid.

    Missing settings take their defaults: a queued job may be older than a setting.
    """
    parts = _require_object(data, "settings", _SETTINGS_KEYS)
    values = _require_object(parts["values"], "values")
    if unknown := set(values) - set(SETTINGS_BY_NAME):
        raise BadSetting(f"unknown settings from the caller: {sorted(unknown)!r:.80}")
    theirs = _require_object(parts["theirs"], "theirs", ("variables", *_FOREIGN_PATH_KEYS))
    origins = {
        name: _decode_origin(name, origin)
        for name, origin in _require_object(parts["origins"]).items()
    }
    settings = {
        name: _decode_setting(SETTINGS_BY_NAME[name], value) for name, value in values.items()
    }
    for name, origin in origins.items():
        if origin.kind == "project file" and name in values:
            refuse_in_project(name, values[name], origin.where)
    return Settings(
        **settings,
        project=_decode_path(parts["project"], "project"),
        config=_decode_path(parts["config"], "config"),
        theirs=ForeignConfig(
            {
                name: _require_text(value, name)
                for name, value in _require_object(theirs["variables"]).items()
            },
            *(_decode_path(theirs[name], name) for name in _FOREIGN_PATH_KEYS),
        ),
        origins=origins,
    )


def _resolve_model_folder(name: str, provider: Any) -> str:
    """Make the folder in a model's name absolute, as seen by the caller."""
    prefix, _, argument = name.partition(":")
    if provider is None or not argument or "FOLDER" not in provider.argument_hint:
        return name
    folder = Path(argument).expanduser()
    return f"{prefix}:{folder.absolute()}" if folder.is_dir() else name


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else Path(os.path.abspath(path))  # noqa: PTH100 - keeps links


def _path_to_str(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


def _decode_setting(setting: Setting, value: Any) -> Any:
    if value is None and setting.default is None:
        return None
    return validate_value(setting, value, f"the caller's {setting.name}")


def _decode_origin(name: str, value: Any) -> Origin:
    if name in SETTINGS_BY_NAME and isinstance(value, list) and len(value) == len(Origin._fields):
        kind, where = value
        if kind in _ORIGIN_KINDS and isinstance(where, str):
            return Origin(kind, where)
    raise BadSetting(f"the caller's origin of {name!r:.40} is invalid")


def _require_object(value: Any, name: str = "origins", keys: tuple[str, ...] | None = None) -> Json:
    if not isinstance(value, dict) or (keys is not None and set(value) != set(keys)):
        raise BadSetting(f"the caller's {name} are invalid")
    return value


def _decode_path(value: Any, name: str) -> Path | None:
    if value is None:
        return None
    path = Path(_require_text(value, name))
    if not path.is_absolute():
        raise BadSetting(f"the caller's {name} is not an absolute path")
    return path


def _require_text(value: Any, name: str) -> str:
    if isinstance(value, str) and "\x00" not in value:
        return value
    raise BadSetting(f"the caller's {name!r:.40} is not a text")
