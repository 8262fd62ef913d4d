"""A request's arguments: out of the path, the query string and the body, checked by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from recollect.errors import RecollectError, Refused
from recollect.ingest.strict_json import strict_json
from recollect.jsonable import Json
from recollect.serve.routes import Way

JSON_MEDIA = "application/json"
_MOST_FIELDS = 200


class Malformed(RecollectError):
    """What came is not what this route can read at all."""


class WrongMedia(RecollectError):
    """The body is of another media type than the route takes."""


async def arguments_of(request: Request, way: Way) -> Json:
    """What the tool is to be told, not yet checked against its schema."""
    placed = {name: request.path_params[name] for name in way.placed}
    given = _queried(request, way) if way.method == "GET" else await _posted(request)
    twice = placed.keys() & given.keys()
    if twice:
        raise Refused(f"{min(twice)} stands in the path already", remedy="leave it out")
    told = placed | given
    for name in way.needs:
        if not told.get(name):
            raise Refused(f"the argument {name} is missing")
    return told


def media_of(request: Request) -> str:
    """The media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _posted(request: Request) -> Json:
    if request.url.query:
        raise Malformed("arguments belong in the body", remedy="a JSON object")
    body = await request.body()
    if not body:
        return {}
    if media_of(request) != JSON_MEDIA:
        raise WrongMedia(f"the body must be {JSON_MEDIA}", remedy=f"Content-Type: {JSON_MEDIA}")
    try:
        told = strict_json(body.decode("utf-8-sig"))  # editors of Windows put a mark before it
    except UnicodeDecodeError as error:
        raise Malformed("the body is not UTF-8") from error
    except Refused as error:
        is_part = error.message.startswith("not ")
        raise Malformed(f"the body is {error.message}" if is_part else error.message) from error
    if not isinstance(told, dict):
        raise Malformed("the body must be a JSON object")
    return told


def _queried(request: Request, way: Way) -> Json:
    known = way.tool.takes["properties"]
    told: Json = {}
    for short, value in _pairs(request):
        name = way.short.get(short, short)
        schema = known.get(name)
        if schema is None or name in way.placed:
            allowed = sorted({*known, *way.short} - {*way.placed})
            raise Refused(
                f"there is no argument {short!r:.60}", remedy=f"allowed: {', '.join(allowed)}"
            )
        if schema["type"] == "array":
            told.setdefault(name, []).append(value)
        elif name in told:
            raise Refused(f"{name} is given twice")
        else:
            told[name] = _READ[schema["type"]](value, name)
    return told


def _pairs(request: Request) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise Malformed("the address is not UTF-8, or holds too many arguments") from error


def _whole(value: str, name: str) -> int:
    if not (value.isascii() and value.removeprefix("-").isdigit() and len(value) < 20):
        raise Refused(f"{name} is {value!r:.60}, but must be an integer")
    return int(value)


def _number(value: str, name: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise Refused(f"{name} is {value!r:.60}, but must be a number") from error


def _flag(value: str, name: str) -> bool:
    if value not in ("true", "false"):
        raise Refused(f"{name} is {value!r:.60}, but must be true or false")
    return value == "true"


_READ: dict[str, Callable[[str, str], Any]] = {
    "integer": _whole,
    "number": _number,
    "boolean": _flag,
    "string": lambda value, _: value,
}
