"""Imports as a program runs them: through the memory that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bethink import Memory
from bethink.importers.intake import Tally


def import_from(memory: Memory, path: str | Path, kind: str = "auto", **options: Any) -> Tally:
    """What became of the entries at a path."""
    return memory.import_(path, kind=kind, **options)
