"""Arguments and answers in the words of another system, translated as its rows declare.

An argument goes to the keyword in ``to``, which may be dotted. A field of an answer is a literal,
or the path of a value in the record of an operation with filters behind it: ``score | round 3``.
A text that begins with = is itself. ``each`` makes a list of the rows at a path. A field whose name
ends with ? is left out where there is no value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from bethink.core.characters import strip_hidden
from bethink.core.json_values import Json, parse_strict_json
from bethink.errors import Refused

_MILLISECONDS = 1000.0


def translate_arguments(row: Json, given: Mapping[str, object]) -> Json:
    """Return the keywords of an operation for the arguments of a tool."""
    keywords: Json = json.loads(json.dumps(row.get("always", {})))
    for name, spec in row.get("arguments", {}).items():
        value = given.get(name, spec.get("default"))
        if value is not None:
            _set_argument(keywords, name, spec, value)
    return keywords


def _set_argument(keywords: Json, name: str, spec: Json, value: Any) -> None:
    if spec.get("type") == "object":
        for part, inner in spec["parts"].items():
            if value.get(part) is not None:
                _set_argument(keywords, f"{name}.{part}", inner, value[part])
        return
    if "within" in spec:
        low, high = spec["within"]
        value = int(min(max(value, low), high))
    if "values" in spec:
        value = spec["values"].get(str(value), value)
    if "read" in spec:
        value = _READERS[spec["read"]](value, name)
    *folders, key = spec.get("to", name).split(".")
    if key == "-":
        return  # accepted, and without meaning here
    target = keywords
    for folder in folders:
        target = target.setdefault(folder, {})
    known = target.get(key)
    # Several wordings of one question are searched together.
    target[key] = f"{known}\n{value}" if key == "query" and known and known != value else value


def _read_list(value: Any, _: str) -> list[str]:
    entries = value if isinstance(value, list) else str(value).split(",")
    return [entry.strip() for entry in entries if entry.strip()]


def _read_object(value: Any, name: str) -> Json:
    parsed = parse_strict_json(value) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        raise Refused(f"{name} must be a JSON object")
    return parsed


def _read_moment(value: Any, name: str) -> str:
    """Read milliseconds since 1970; a text is left to what parses times."""
    if isinstance(value, str) and not value.strip().isdigit():
        return value
    try:
        return datetime.fromtimestamp(float(value) / _MILLISECONDS, UTC).isoformat()
    except (OverflowError, ValueError, OSError) as error:
        raise Refused(f"{name} is {value!r}, which is no time in milliseconds") from error


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "list": _read_list,
    "lines": lambda value, name: "\n".join(_read_list(value, name)),
    "object": _read_object,
    "context": lambda value, _: f"Context: {value}",
    "moment": _read_moment,
    # Their week begins on Sunday, with 0.
    "weekday": lambda value, _: (int(value) + 6) % 7,
}


def shape(template: Any, record: Any) -> Any:
    """Return an answer with the fields of a template, filled from a record."""
    if isinstance(template, str):
        return _value(template, record)
    if isinstance(template, list):
        return [shape(part, record) for part in template]
    if not isinstance(template, Mapping):
        return template
    if "each" in template:
        inner = {name: part for name, part in template.items() if name != "each"}
        rows = _value(template["each"], record) or []
        return [shape(inner.get("is", inner), one) for one in rows]
    shaped = {name: shape(part, record) for name, part in template.items()}
    return {
        name.removesuffix("?"): value
        for name, value in shaped.items()
        if value is not None or not name.endswith("?")
    }


def _value(text: str, record: Any) -> Any:
    if text.startswith("="):
        return text[1:]
    path, *filters = text.split(" | ")
    value = record
    for step in path.split(".") if path != "." else ():
        value = value.get(step) if isinstance(value, Mapping) else None
    for one in filters:
        name, _, argument = one.partition(" ")
        if value is not None or name == "or":
            value = _FILTERS[name](value, argument)
    return value


def _parse_json(value: str, _: str) -> Any:
    try:
        return parse_strict_json(value)
    except Refused:
        return value


def _replace(value: Any, pairs: str) -> Any:
    known = dict(pair.split("=") for pair in pairs.split())
    return known.get(str(value), value)


def _milliseconds(value: str, _: str) -> int:
    return round(datetime.fromisoformat(value).timestamp() * _MILLISECONDS)


_FILTERS: dict[str, Callable[[Any, str], Any]] = {
    "or": lambda value, argument: json.loads(argument) if value is None else value,
    "round": lambda value, digits: round(float(value), int(digits)),
    "json": _parse_json,
    "cut": lambda value, length: strip_hidden(value)[: int(length)],
    "ms": _milliseconds,
    "upper": lambda value, _: str(value).upper(),
    "count": lambda value, _: len(value),
    "swap": _replace,
}
