"""One JSON question to a server, answered by a deadline or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from socket import SHUT_RDWR
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from recollect.errors import BadSetting, ModelError

if TYPE_CHECKING:
    from http.client import HTTPConnection

_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 16


class Url(NamedTuple):
    """Where a service listens; the path has no slash at its end."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.port == _PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{shown}{self.path}"


def read_url(text: str, *, variable: str) -> Url:
    """A base address, as an environment variable holds it."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadSetting(f"{variable} is not an address: {error}") from error
    if parts.scheme not in _PORTS or not parts.hostname or parts.query or parts.username:
        raise BadSetting(f"{variable} must look like https://host:port/path")
    return Url(parts.scheme, parts.hostname, port or _PORTS[parts.scheme], parts.path.rstrip("/"))


class Reply(NamedTuple):
    """What came back. ``retry_after_s`` is how long the server asks us to wait."""

    status: int
    body: bytes
    retry_after_s: float = 0.0

    def json(self) -> Any:
        """The body, which must be strict JSON: no NaN, no infinity."""
        return json.loads(self.body, parse_constant=_no_number)


class Unanswered(ModelError):
    """No whole answer came: refused, reset, cut short, too slow. Asking again may help."""


def post(
    url: Url,
    question: Any,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    limit: int,
    connect_s: float | None = None,
) -> Reply:
    """Asks, and gives the answer of at most ``limit`` bytes; Unanswered without one.

    ``connect_s`` is what part of the time being let in may take; else all of it.
    Everything that can hang does so in a thread of its own, which is left behind when
    the time is up: looking up the name, shaking hands, an answer that comes byte by
    byte. Redirects are not followed: the texts were meant for this host.
    """
    times = (timeout_s if connect_s is None else min(connect_s, timeout_s), timeout_s)
    exchange = _Exchange(url, json.dumps(question).encode(), headers, times, limit)
    thread = Thread(target=exchange.run, name=f"ask {url.host}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        exchange.abort()
        raise Unanswered(f"{url.host} did not answer within {timeout_s:g} s")
    if isinstance(exchange.outcome, Reply):
        return exchange.outcome
    raise exchange.outcome


class _Exchange:
    """One request and its answer; run in one thread, awaited and aborted from another."""

    def __init__(
        self,
        url: Url,
        body: bytes,
        headers: Mapping[str, str],
        times: tuple[float, float],
        limit: int,
    ) -> None:
        self._url, self._body, self._limit = url, body, limit
        self._headers = {"Content-Type": "application/json", "Accept": "application/json"}
        self._headers.update(headers)
        connect_s, self._answer_s = times
        self._connection = _connection(url, connect_s)
        self.outcome: Reply | ModelError = Unanswered(f"{url.host} was not asked")

    def run(self) -> None:
        """Leaves the reply, or why there is none, in ``outcome``."""
        from http.client import HTTPException, IncompleteRead  # start-up time

        host = self._url.host
        try:
            self.outcome = self._ask()
        except TimeoutError:
            self.outcome = Unanswered(f"{host} did not answer in time")
        except IncompleteRead:
            self.outcome = Unanswered(f"the answer of {host} was cut short")
        except (HTTPException, UnicodeError) as error:
            self.outcome = Unanswered(f"{host} does not speak HTTP ({type(error).__name__})")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self.outcome = Unanswered(f"{self._url} cannot be reached: {reason}")
        finally:
            self._connection.close()

    def abort(self) -> None:
        """Ends what is still under way, as far as it can be reached."""
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):  # it was closed in the meantime
                sock.shutdown(SHUT_RDWR)

    def _ask(self) -> Reply | ModelError:
        self._connection.connect()
        self._connection.sock.settimeout(self._answer_s)
        self._connection.request("POST", self._url.path, self._body, self._headers)
        with self._connection.getresponse() as response:
            announced = response.length or 0
            body = bytearray()
            while announced <= self._limit and (piece := response.read1(_PIECE)):
                body += piece
                if len(body) > self._limit:
                    break
            if max(announced, len(body)) > self._limit:
                return ModelError(f"the answer of {self._url.host} is over {self._limit:,} bytes")
            if response.length:
                return Unanswered(f"the answer of {self._url.host} was cut short")
            waits = response.headers.get("Retry-After", "")
            return Reply(response.status, bytes(body), float(waits) if waits.isdecimal() else 0.0)


def _connection(url: Url, timeout_s: float) -> HTTPConnection:
    import http.client  # start-up time
    import ssl

    if url.scheme == "http":
        return http.client.HTTPConnection(url.host, url.port, timeout=timeout_s)
    return http.client.HTTPSConnection(
        url.host, url.port, timeout=timeout_s, context=ssl.create_default_context()
    )


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number")
