"""Bethink: a recall engine that gives AI agents a memory they can trust.

>>> from bethink import Memory
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Releases are cut on Tuesdays")
...     print(memory.recall("when do we cut releases?").hits[0].item.text)
Releases are cut on Tuesdays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bethink.version import __version__

if TYPE_CHECKING:
    from bethink.memory import Forgotten, Memory
    from bethink.model import (
        Candidate,
        Draft,
        Entity,
        Evidence,
        Filters,
        Item,
        Link,
        Recall,
        Remembered,
    )

__all__ = [
    "Candidate",
    "Draft",
    "Entity",
    "Evidence",
    "Filters",
    "Forgotten",
    "Item",
    "Link",
    "Memory",
    "Recall",
    "Remembered",
    "__version__",
]


_LAZY_EXPORTS = {
    "Memory": "bethink.memory",
    "Forgotten": "bethink.memory",
    **dict.fromkeys(
        (
            "Candidate",
            "Draft",
            "Entity",
            "Evidence",
            "Filters",
            "Item",
            "Link",
            "Recall",
            "Remembered",
        ),
        "bethink.model",
    ),
}


def __getattr__(name: str) -> Any:
    """Import public names on first access, so that importing the package stays cheap."""
    if name in _LAZY_EXPORTS:
        import importlib

        return getattr(importlib.import_module(_LAZY_EXPORTS[name]), name)
    raise AttributeError(f"module 'bethink' has no attribute {name!r}")
