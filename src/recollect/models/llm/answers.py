"""Reads the object a model was asked for out of what it said."""

from __future__ import annotations

import json
import re
from typing import Any

from recollect.prompts.schema import Misfit

# Some servers hand on what a model thought first.
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCE = "```"


def object_in(text: str) -> dict[str, Any]:
    """The one JSON object of a text, code fences around it taken off; else Misfit.

    By the letter: no NaN, no key twice. The message never repeats the text.
    """
    thought = _THOUGHT.match(text)
    text = text[thought.end() :] if thought else text
    try:
        made = json.loads(_unfenced(text), object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        raise Misfit(f"it is not JSON (line {error.lineno}, column {error.colno})") from error
    except Misfit:
        raise
    except (ValueError, RecursionError) as error:  # numbers too long, brackets too deep
        raise Misfit("it is JSON beyond all measure") from error
    if not isinstance(made, dict):
        raise Misfit("it is not one JSON object")
    return made


def _unfenced(text: str) -> str:
    """What the one code block of a text holds; the text, where there is not just one.

    Line by line: a pattern would take forever over many blocks that never end.
    """
    lines = text.split("\n")
    marks = [number for number, line in enumerate(lines) if line.startswith(_FENCE)]
    if len(marks) != 2 or lines[marks[1]].strip() != _FENCE:
        return text
    return "\n".join(lines[marks[0] + 1 : marks[1]])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Misfit("an object has the same key twice")
    return made


def _no_number(name: str) -> None:
    raise Misfit(f"{name} is not a number")
