"""Registries of parts: classes by name, each imported on first use.

A profile uses a few of many parts, and a recall from the command line loads no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeGuard, TypeVar

P = TypeVar("P")


class Registry(Mapping[str, Any]):
    """A registry of classes by name that imports each one on first use.

    ``locations`` maps a name to "module:Class", relative to the package.
    """

    def __init__(self, locations: Mapping[str, str]) -> None:
        self._homes = dict(locations)
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, part = self._homes[name].partition(":")
            self._loaded[name] = getattr(import_module(module), part)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def implements(part: object, protocol: Callable[..., P]) -> TypeGuard[P]:
    """Whether a part's class implements a protocol.

    Cached per class: the check costs as much as a small stage, and a recall makes thirty.
    """
    kind: Any = type(part)
    return _class_implements(kind, protocol)


@cache
def _class_implements(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)
