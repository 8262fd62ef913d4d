"""Asks a server again while that may help and there is time, and reads its refusals."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus
from time import monotonic, sleep

from recollect.errors import BadSetting, ModelError
from recollect.models.exchange import Reply, Unanswered

_TRIES = 3
_FIRST_WAIT_S = 0.1
_PASSING = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
)
_NO_ENTRY = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

Sleep = Callable[[float], None]
Seconds = Callable[[], float]


def ask_patiently(
    ask: Callable[[float], Reply],
    deadline: float,
    *,
    who: str,
    clock: Seconds = monotonic,
    sleep: Sleep = sleep,
) -> Reply:
    """What ``ask`` gives, which is told how many seconds are left; up to three tries.

    The reply may still be a refusal, but none that passes by itself.
    """
    failure: ModelError = Unanswered(f"{who} did not answer in time")
    for wait_s in _waits():
        left_s = deadline - clock()
        if left_s <= 0:
            break
        try:
            reply = ask(left_s)
        except Unanswered as error:
            failure = error
        else:
            if not _may_pass(reply.status):
                return reply
            failure = ModelError(f"{who} answers {reply.status}")
            wait_s = max(wait_s, reply.retry_after_s)  # noqa: PLW2901 - the server's wish
        if clock() + wait_s >= deadline:
            break
        sleep(wait_s)
    raise failure


def check_status(
    status: int, who: str, *, unknown: str, unknown_remedy: str = "", no_entry: str = ""
) -> None:
    """ModelError with a sentence and a remedy, unless the server answered at all."""
    if status == HTTPStatus.OK:
        return
    if status in _NO_ENTRY:
        raise ModelError(f"{who} refuses us ({status})", remedy=no_entry)
    if status == HTTPStatus.NOT_FOUND:
        raise ModelError(f"{who} does not know {unknown}", remedy=unknown_remedy)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise ModelError(f"{who} points to another address, which is not followed")
    raise ModelError(f"{who} answers {status}")


def read_seconds(env: Mapping[str, str], variable: str, otherwise: float) -> float:
    """A time limit as the environment says it."""
    given = env.get(variable, "")
    try:
        seconds = float(given or otherwise)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 600:
        raise BadSetting(f"{variable} is {given!r}, but must be seconds, above 0 and up to 600")
    return seconds


def cut(text: str, most: int) -> str:
    """The beginning that has at most so many bytes."""
    encoded = text.encode()
    return text if len(encoded) <= most else encoded[:most].decode(errors="ignore")


def bearer(env: Mapping[str, str], variable: str) -> dict[str, str]:
    """The header that opens the door, if the variable holds a key."""
    key = env.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not handed on to a library whose error would show it.
        raise ModelError(f"{variable} holds characters that no key has")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _waits() -> Iterator[float]:
    """How long to wait after each try: twice as long each time, and never in step."""
    for number in range(_TRIES):
        yield _FIRST_WAIT_S * 2**number * (0.5 + random.random())  # noqa: S311 - no secret


def _may_pass(status: int) -> bool:
    return status in _PASSING or status >= HTTPStatus.INTERNAL_SERVER_ERROR
