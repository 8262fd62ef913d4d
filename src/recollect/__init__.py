"""Recollect: a recall engine that gives AI agents a memory they can trust.

>>> from recollect import Memory
>>> with Memory.open(":memory:") as memory:
...     _ = memory.remember("Releases are cut on Tuesdays")
...     print(memory.recall("when do we cut releases?").hits[0].item.text)
Releases are cut on Tuesdays
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from recollect.version import __version__

if TYPE_CHECKING:
    from recollect.memory import Forgotten, Memory
    from recollect.model import (
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

_HOMES = {
    "Memory": "recollect.memory",
    "Forgotten": "recollect.memory",
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
        "recollect.model",
    ),
}

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


def __getattr__(name: str) -> Any:
    """Public names are loaded when first asked for, so that importing stays cheap."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'recollect' has no attribute {name!r}")
