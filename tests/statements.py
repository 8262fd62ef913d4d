"""Turns, and what a careless model makes of them: training/data/statements."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent.parent / "training" / "data" / "statements"


class Proposed(NamedTuple):
    """A statement that a model may make of turns; empty ``fault`` where it is worth keeping."""

    turns: tuple[tuple[str, str], ...]
    text: str
    fault: str


def read_statements(name: str) -> list[Proposed]:
    """Read a file: turns, then a line for each statement made of them."""
    found: list[Proposed] = []
    for block in (FOLDER / f"{name}.txt").read_text("utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        turns = tuple(
            (who, text)
            for who, _, text in (line.partition(": ") for line in lines)
            if who in {"user", "agent"}
        )
        for line in lines[len(turns) :]:
            mark, body = line[:2], line[2:]
            assert mark in {"+ ", "- "}, line
            fault, _, text = ("", "", body) if mark == "+ " else body.partition(": ")
            found.append(Proposed(turns, text, fault))
    return found
