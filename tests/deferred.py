"""Modules that are imported where they are first used: collecting tests needs no framework.

The frameworks whose integrations are tested take seconds to import, in every worker.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Deferred:
    """Stands for modules of a framework, which are imported when one of their names is used."""

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # pytest looks for these on whatever a module holds
            raise AttributeError(name)
        for module in map(import_module, self._modules):
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"{name} is in none of {', '.join(self._modules)}")
