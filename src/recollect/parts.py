"""Tables of parts: classes by name, each imported when it is first asked for.

A profile uses a few of many, and a recall from the command line should load no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeGuard, TypeVar

P = TypeVar("P")


class Parts(Mapping[str, Any]):
    """``homes`` says for each name the module, below the package, and the class there."""

    def __init__(self, package: str, homes: Mapping[str, str]) -> None:
        self._package, self._homes = package, dict(homes)
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            module, _, part = self._homes[name].partition(":")
            self._loaded[name] = getattr(import_module(f"{self._package}.{module}"), part)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        return iter(self._homes)

    def __len__(self) -> int:
        return len(self._homes)


def offers(part: object, protocol: Callable[..., P]) -> TypeGuard[P]:
    """Whether a part's class has the methods of a protocol: asked once a class, since
    asking costs as much as a small stage and a walk would ask thirty times."""
    kind: Any = type(part)
    return _offered(kind, protocol)


@cache
def _offered(kind: Any, protocol: Any) -> bool:
    return issubclass(kind, protocol)
