"""Answers: JSON by the letter, and every error as a status, a sentence and a remedy."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from recollect.errors import (
    BadProfile,
    Conflict,
    Forbidden,
    NotFound,
    RecollectError,
    Refused,
    StoreBusy,
)
from recollect.jsonable import Json
from recollect.mcp.bugs import log_bug
from recollect.serve.asking import Malformed, WrongMedia
from recollect.text import visible
from recollect.wire import dumps, error_json

# The first that fits; what is none of these is trouble of ours, not the caller's.
_STATUSES: tuple[tuple[type[RecollectError], int], ...] = (
    (Malformed, 400),
    (WrongMedia, 415),
    (Forbidden, 403),
    (NotFound, 404),
    (Conflict, 409),
    (Refused, 422),
    (BadProfile, 422),
)
_LONGEST = 500
_ROUTES = "GET / lists the routes"
_PLAIN = {
    404: ("not_found", "there is nothing here", _ROUTES),
    405: ("wrong_method", "this route takes another method", _ROUTES),
}


def answered(content: Json, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A JSON answer."""
    return Response(
        dumps(content).encode("utf-8", "replace"),
        status,
        headers=headers,
        media_type="application/json",
    )


def refused(error: RecollectError) -> Response:
    """The answer to a request that cannot be met."""
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 503)
    headers = {"Retry-After": "1"} if isinstance(error, StoreBusy) else {}
    if isinstance(error, Forbidden) and error.scope:
        headers["WWW-Authenticate"] = (
            f'Bearer realm="recollect", error="insufficient_scope", scope="{error.scope}"'
        )
    told = error_json(_line(error.message), _line(error.remedy), kind_of(error))
    return answered(told, status, headers)


def kind_of(error: RecollectError) -> str:
    """An error's name as programs read it."""
    if isinstance(error, Refused):
        return error.rule
    name = type(error).__name__
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)[1:]


def too_slow(name: str, within_s: float) -> Response:
    """For a question that was given up."""
    told = f"{name} took longer than {within_s:g} seconds"
    return answered(error_json(told, "ask again, or a narrower question", "too_slow"), 503)


def bug(where: str, error: Exception) -> Response:
    """For what should not have happened: its kind and nothing of its words."""
    return answered(error_json(log_bug(where, error), "please report it", "bug"), 500)


async def no_route(_: Request, error: Exception) -> Response:
    """The router's own refusals, in our shape."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    kind, message, remedy = _PLAIN.get(status, ("refused", "that cannot be answered", ""))
    headers: Any = error.headers if isinstance(error, HTTPException) else None
    return answered(error_json(message, remedy, kind), status, headers)


def _line(text: str) -> str:
    told = " ".join(visible(text.encode("utf-8", "replace").decode()).split())
    return told if len(told) <= _LONGEST else told[: _LONGEST - 1] + "…"
