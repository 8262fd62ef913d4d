"""HTTP client for model servers: deadline, retry with backoff, circuit breaker."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http import HTTPStatus
from socket import SHUT_RDWR
from threading import Lock, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting, ModelError

if TYPE_CHECKING:
    from http.client import HTTPConnection


T = TypeVar("T")


class CircuitBreaker:
    """Circuit breaker: passes calls on until they fail.

    After a failure it repeats that failure for a moment (``pause_s``), so that one recall,
    which calls several times, waits once. After ``limit`` failures in a row it does so for
    ``rest_s``; then a single probe call is let through, and decides.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        pause_s: float = 1.0,
        rest_s: float = 30.0,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._limit, self._pause_s, self._rest_s, self._clock = limit, pause_s, rest_s, clock
        self._lock = Lock()
        self._failures = 0
        self._open_until = 0.0
        self._is_probing = False
        self._last_error = ModelError("")

    @property
    def is_open(self) -> bool:
        """Whether a call now would fail without being passed on."""
        with self._lock:
            return self._is_blocked()

    def __call__(self, call: Callable[[], T]) -> T:
        """Return the call's result; raise its ModelError, or the last one while open."""
        with self._lock:
            if self._is_blocked():
                raise ModelError(self._last_error.message, remedy=self._last_error.remedy)
            self._is_probing = self._failures >= self._limit
        try:
            answer = call()
        except ModelError as error:
            self._record_failure(error)
            raise
        finally:
            with self._lock:
                self._is_probing = False
        with self._lock:
            self._failures = 0
        return answer

    def _is_blocked(self) -> bool:
        return self._failures > 0 and (self._is_probing or self._clock() < self._open_until)

    def _record_failure(self, error: ModelError) -> None:
        with self._lock:
            self._failures += 1
            self._last_error = error
            rest_s = self._rest_s if self._failures >= self._limit else self._pause_s
            self._open_until = self._clock() + rest_s


_DEFAULT_PORTS = {"http": 80, "https": 443}
_CHUNK_BYTES = 1 << 16


class Url(NamedTuple):
    """A service's base URL; the path has no trailing slash."""

    scheme: str
    host: str
    port: int
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = "" if self.port == _DEFAULT_PORTS[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{shown}{self.path}"


def parse_base_url(text: str, *, variable: str) -> Url:
    """Parse a base URL from an environment variable or setting."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise BadSetting(f"{variable} is not a URL: {error}") from error
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname or parts.query or parts.username:
        raise BadSetting(f"{variable} must look like https://host:port/path")
    return Url(
        parts.scheme, parts.hostname, port or _DEFAULT_PORTS[parts.scheme], parts.path.rstrip("/")
    )


class HttpReply(NamedTuple):
    """An HTTP reply; ``retry_after_s`` is the delay that the server requests."""

    status: int
    body: bytes
    retry_after_s: float = 0.0

    def json(self) -> Any:
        """Parse the body as strict JSON: no NaN, no infinity."""
        return json.loads(self.body, parse_constant=_refuse_constant)


class NoReply(ModelError):
    """No complete reply: refused, reset, cut short or too slow. A retry may help."""


def post_json(
    url: Url,
    payload: Any,
    headers: Mapping[str, str],
    *,
    timeout_s: float,
    limit: int,
    connect_s: float | None = None,
) -> HttpReply:
    """Post JSON and return the reply of at most ``limit`` bytes; raise NoReply without one.

    ``connect_s`` limits the time to connect; by default it is all of ``timeout_s``.
    Everything that can hang runs in a thread of its own, which is abandoned at the deadline:
    name lookup, TLS handshake, an answer that comes byte by byte. Redirects are not followed:
    the texts were meant for this host.
    """
    times = (timeout_s if connect_s is None else min(connect_s, timeout_s), timeout_s)
    exchange = _HttpExchange(url, json.dumps(payload).encode(), headers, times, limit)
    thread = Thread(target=exchange.run, name=f"ask {url.host}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        exchange.abort()
        raise NoReply(f"{url.host} did not answer within {timeout_s:g} s")
    if isinstance(exchange.outcome, HttpReply):
        return exchange.outcome
    raise exchange.outcome


class _HttpExchange:
    """One request and its reply; run in one thread, awaited and aborted from another."""

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
        connect_s, self._read_timeout_s = times
        self._connection = _make_connection(url, connect_s)
        self.outcome: HttpReply | ModelError = NoReply(f"no request was sent to {url.host}")

    def run(self) -> None:
        """Run the request and store the reply, or the error, in ``outcome``."""
        from http.client import HTTPException, IncompleteRead  # start-up time

        host = self._url.host
        try:
            self.outcome = self._send_request()
        except TimeoutError:
            self.outcome = NoReply(f"{host} did not answer in time")
        except IncompleteRead:
            self.outcome = NoReply(f"the answer of {host} is incomplete")
        except (HTTPException, UnicodeError) as error:
            self.outcome = NoReply(f"{host} does not speak HTTP ({type(error).__name__})")
        except OSError as error:
            reason = error.strerror or type(error).__name__
            self.outcome = NoReply(f"{self._url} cannot be reached: {reason}")
        finally:
            self._connection.close()

    def abort(self) -> None:
        """Shut down the socket of a request still under way, if there is one."""
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):  # the server closed the connection meanwhile
                sock.shutdown(SHUT_RDWR)

    def _send_request(self) -> HttpReply | ModelError:
        self._connection.connect()
        self._connection.sock.settimeout(self._read_timeout_s)
        self._connection.request("POST", self._url.path, self._body, self._headers)
        with self._connection.getresponse() as response:
            announced = response.length or 0
            body = bytearray()
            while announced <= self._limit and (piece := response.read1(_CHUNK_BYTES)):
                body += piece
                if len(body) > self._limit:
                    break
            if max(announced, len(body)) > self._limit:
                return ModelError(
                    f"the answer of {self._url.host} is larger than {self._limit:,} bytes"
                )
            if response.length:
                return NoReply(f"the answer of {self._url.host} is incomplete")
            waits = response.headers.get("Retry-After", "")
            return HttpReply(
                response.status, bytes(body), float(waits) if waits.isdecimal() else 0.0
            )


def _make_connection(url: Url, timeout_s: float) -> HTTPConnection:
    import http.client  # start-up time
    import ssl

    if url.scheme == "http":
        return http.client.HTTPConnection(url.host, url.port, timeout=timeout_s)
    return http.client.HTTPSConnection(
        url.host, url.port, timeout=timeout_s, context=ssl.create_default_context()
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


_MAX_ATTEMPTS = 3
_INITIAL_BACKOFF_S = 0.1
_TRANSIENT_STATUSES = (
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
)
_AUTH_STATUSES = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)

Sleep = Callable[[float], None]
MonotonicClock = Callable[[], float]


def post_with_retry(
    send: Callable[[float], HttpReply],
    deadline: float,
    *,
    server: str,
    clock: MonotonicClock = monotonic,
    sleep: Sleep = sleep,
) -> HttpReply:
    """Call ``send`` with the seconds left; retry with backoff up to the deadline.

    At most three attempts. The returned reply may still be a refusal, but not a transient
    one.
    """
    failure: ModelError = NoReply(f"{server} did not answer in time")
    for wait_s in _backoff_delays():
        left_s = deadline - clock()
        if left_s <= 0:
            break
        try:
            reply = send(left_s)
        except NoReply as error:
            failure = error
        else:
            if not _is_transient(reply.status):
                return reply
            failure = ModelError(f"{server} answered with status {reply.status}")
            wait_s = max(wait_s, reply.retry_after_s)  # noqa: PLW2901 - the server's Retry-After
        if clock() + wait_s >= deadline:
            break
        sleep(wait_s)
    raise failure


def check_status(
    status: int, server: str, *, missing: str, missing_remedy: str = "", auth_remedy: str = ""
) -> None:
    """Raise a ModelError with a sentence and a remedy, unless the status is 200."""
    if status == HTTPStatus.OK:
        return
    if status in _AUTH_STATUSES:
        raise ModelError(f"{server} refused the credentials ({status})", remedy=auth_remedy)
    if status == HTTPStatus.NOT_FOUND:
        raise ModelError(f"{server} does not have {missing}", remedy=missing_remedy)
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise ModelError(f"{server} redirects to another address; redirects are not followed")
    raise ModelError(f"{server} answered with status {status}")


def read_timeout(env: Mapping[str, str], variable: str, default: float) -> float:
    """Read a time limit in seconds from the environment."""
    given = env.get(variable, "")
    try:
        seconds = float(given or default)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 600:
        raise BadSetting(
            f"{variable} is {given!r}, but must be seconds, greater than 0 and at most 600"
        )
    return seconds


def truncate_bytes(text: str, max_bytes: int) -> str:
    """Truncate a text to at most so many UTF-8 bytes."""
    encoded = text.encode()
    return text if len(encoded) <= max_bytes else encoded[:max_bytes].decode(errors="ignore")


def bearer_header(env: Mapping[str, str], variable: str) -> dict[str, str]:
    """Return the Authorization header, if the variable holds a key."""
    key = env.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not passed to a library whose error would show it.
        raise ModelError(f"{variable} contains characters that are not valid in a key")
    return {"Authorization": f"Bearer {key}"} if key else {}


def _backoff_delays() -> Iterator[float]:
    """Yield the delays between attempts: exponential backoff with jitter."""
    for number in range(_MAX_ATTEMPTS):
        yield _INITIAL_BACKOFF_S * 2**number * (0.5 + random.random())  # noqa: S311 - no secret


def _is_transient(status: int) -> bool:
    return status in _TRANSIENT_STATUSES or status >= HTTPStatus.INTERNAL_SERVER_ERROR
