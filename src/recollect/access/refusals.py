"""What a guard says to whom it does not let through: a status, a sentence, what to do."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from recollect.wire import error_json


class Refusal(NamedTuple):
    """An answer of the guard's own."""

    status: int
    kind: str
    message: str
    remedy: str = ""
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def answer(self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]]) -> None:
        """Sends it, and asks the client to close: it may still be sending."""
        body = json.dumps(error_json(self.message, self.remedy, self.kind)).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


_CHALLENGE = b'Bearer realm="recollect"'

WRONG_HOST = Refusal(
    421, "wrong_host", "this server does not answer to that name", "recollect serve --allow-host"
)
WRONG_ORIGIN = Refusal(
    403, "wrong_origin", "pages of that origin may not ask here", "recollect serve --allow-origin"
)
NO_TOKEN = Refusal(
    401,
    "no_token",
    "a token is needed",
    "Authorization: Bearer TOKEN; recollect token create makes one",
    ((b"www-authenticate", _CHALLENGE),),
)
BUSY = Refusal(503, "busy", "too many requests at once", "try again", ((b"retry-after", b"1"),))
NO_TOKENS = Refusal(503, "no_tokens", "the tokens cannot be read", "look at the server's log")
LONG_HEAD = Refusal(431, "too_large", "the address and the headers are too long", "send a body")
TWO_LENGTHS = Refusal(
    400, "malformed", "the request says twice how long it is", "Content-Length alone"
)
SLOW = Refusal(408, "too_slow", "the request took too long to arrive")


def bad_token() -> Refusal:
    """One sentence for all that can be wrong with a token: more would help who guesses."""
    return Refusal(
        401,
        "bad_token",
        "that token is unknown, has expired or is for another space",
        "recollect token list",
        ((b"www-authenticate", _CHALLENGE + b', error="invalid_token"'),),
    )


def too_often(wait_s: int) -> Refusal:
    """For who asks more often than the rate allows."""
    return Refusal(
        429,
        "too_often",
        f"too many requests; in {wait_s} seconds there is room again",
        "ask less often",
        ((b"retry-after", str(wait_s).encode()),),
    )


def too_large(most: int) -> Refusal:
    """For a body over its limit."""
    return Refusal(
        413, "too_large", f"the request is larger than {most:,} bytes", "send smaller parts"
    )
