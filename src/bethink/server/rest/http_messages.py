"""HTTP requests and responses: parsing of arguments, JSON and error responses, index page."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from bethink.core.characters import strip_hidden
from bethink.core.json_schema import find_violation, with_article
from bethink.core.json_values import Json, parse_strict_json
from bethink.errors import (
    BadProfile,
    BethinkError,
    Conflict,
    Forbidden,
    NotFound,
    Refused,
    StoreBusy,
)
from bethink.render.wire import dumps, error_json, error_kind
from bethink.server.rest.routes import ToolRoute
from bethink.server.tools.answers import in_tool_words
from bethink.server.tools.calls import log_bug
from bethink.version import __version__

INDEX_PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bethink</title></head>'
    f"<body><h1>Bethink {__version__}</h1><p>A memory over HTTP. Send your token as "
    "<code>Authorization: Bearer bt_...</code>. To look into it, open the "
    '<a href="/ui">inspector</a>. The whole API is described in '
    '<a href="/openapi.json">openapi.json</a>.</p></body></html>'
)
JSON_MEDIA = "application/json"
_MAX_QUERY_FIELDS = 200


class Malformed(BethinkError):
    """The request cannot be parsed."""


class WrongMedia(BethinkError):
    """The body has a media type that the route does not accept."""


async def read_arguments(request: Request, route: ToolRoute) -> Json:
    """Read a tool's arguments from path, query string and body, not yet validated."""
    from_path = {name: request.path_params[name] for name in route.path_params}
    from_request = (
        _read_query(request, route) if route.method == "GET" else await read_json_body(request)
    )
    twice = from_path.keys() & from_request.keys()
    if twice:
        raise Refused(f"{min(twice)} is already in the path", remedy="omit it")
    arguments = from_path | from_request
    for name in route.required:
        if not arguments.get(name):
            raise Refused(f"the argument {name} is missing")
    return arguments


def media_type(request: Request) -> str:
    """Return the media type of the body, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json_body(request: Request) -> Json:
    """Read the JSON object in a body; an empty body is an empty object."""
    if request.url.query:
        raise Malformed("arguments belong in the body", remedy="send a JSON object")
    body = await request.body()
    if not body:
        return {}
    if media_type(request) != JSON_MEDIA:
        raise WrongMedia(f"the body must be {JSON_MEDIA}", remedy=f"Content-Type: {JSON_MEDIA}")
    try:
        arguments = parse_strict_json(
            body.decode("utf-8-sig")
        )  # some editors write a byte order mark
    except UnicodeDecodeError as error:
        raise Malformed("the body is not UTF-8") from error
    except Refused as error:
        is_part = error.message.startswith("not ")
        raise Malformed(f"the body is {error.message}" if is_part else error.message) from error
    if not isinstance(arguments, dict):
        raise Malformed("the body must be a JSON object")
    return arguments


def _read_query(request: Request, route: ToolRoute) -> Json:
    known = route.tool.input_schema["properties"]
    arguments: Json = {}
    for short, value in _query_pairs(request):
        name = route.aliases.get(short, short)
        schema = known.get(name)
        if schema is None or name in route.path_params:
            allowed = sorted({*known, *route.aliases} - {*route.path_params})
            raise Refused(
                f"there is no argument {short!r:.60}", remedy=f"allowed: {', '.join(allowed)}"
            )
        if schema["type"] == "array":
            arguments.setdefault(name, []).append(value)
        elif name in arguments:
            raise Refused(f"{name} is given twice")
        else:
            arguments[name] = _read_value(value, name, schema["type"])
    return arguments


def _query_pairs(request: Request) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            strict_parsing=False,
            errors="strict",
            max_num_fields=_MAX_QUERY_FIELDS,
        )
    except ValueError as error:
        raise Malformed("the URL is not UTF-8, or has too many arguments") from error


def _read_value(text: str, name: str, kind: str) -> object:
    """Read a text, a number or a flag of a query."""
    if kind == "string":
        return text
    try:
        value = parse_strict_json(text)
    except Refused:
        value = None
    if find_violation(value, {"type": kind}, name) is not None:
        raise Refused(f"{name} is {text!r:.60}, but must be {with_article(kind)}")
    return value


# The first match counts; any other error is ours, not the caller's.
_STATUSES: tuple[tuple[type[BethinkError], int], ...] = (
    (Malformed, 400),
    (WrongMedia, 415),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Refused, 422),
    (BadProfile, 422),
)
_MAX_MESSAGE_CHARS = 500
_ROUTES_REMEDY = "GET /openapi.json describes the routes"
_ROUTING_ERRORS = {
    404: ("not_found", "there is no such route", _ROUTES_REMEDY),
    405: ("wrong_method", "this route does not allow that method", _ROUTES_REMEDY),
}


def json_response(
    content: Json, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Build a JSON response."""
    return Response(
        dumps(content).encode("utf-8", "replace"),
        status,
        headers=headers,
        media_type="application/json",
    )


def error_response(error: BethinkError) -> Response:
    """Build the response for an error: its status, message and remedy."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)
    headers = {"Retry-After": "1"} if isinstance(error, StoreBusy) else {}
    if isinstance(error, Forbidden) and error.scope:
        headers["WWW-Authenticate"] = (
            f'Bearer realm="bethink", error="insufficient_scope", scope="{error.scope}"'
        )
    message, remedy = map(in_tool_words, (_one_line(error.message), _one_line(error.remedy)))
    return json_response(error_json(message, remedy, error_kind(error)), status, headers)


def timeout_response(name: str, timeout_s: float) -> Response:
    """Build the response for a read that exceeded its timeout."""
    message = f"{name} took longer than {timeout_s:g} seconds"
    return json_response(
        error_json(message, "try again, or ask a narrower question", "too_slow"), 503
    )


def bug_response(where: str, error: Exception) -> Response:
    """Build the response for an unexpected error: its type, not its message."""
    return json_response(error_json(log_bug(where, error), "please report it", "bug"), 500)


async def routing_error_response(_: Request, error: Exception) -> Response:
    """Convert the router's own errors to our error format."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    kind, message, remedy = _ROUTING_ERRORS.get(
        status, ("refused", "the request cannot be answered", "")
    )
    headers: Any = error.headers if isinstance(error, HTTPException) else None
    return json_response(error_json(message, remedy, kind), status, headers)


def _one_line(text: str) -> str:
    line = " ".join(strip_hidden(text.encode("utf-8", "replace").decode()).split())
    return line if len(line) <= _MAX_MESSAGE_CHARS else line[: _MAX_MESSAGE_CHARS - 1] + "…"
