"""The HTTP client of model servers: deadline, retry with backoff, circuit breaker."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from math import inf
from socket import SHUT_RDWR
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import urlsplit

from bethink.core.lazy import BackgroundCall
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

    def __call__(self, call: Callable[[], T]) -> T:
        """Return the call's result; raise its ModelError, or the last one while open."""
        with self._lock:
            if self._failures and (self._is_probing or self._clock() < self._open_until):
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


class HttpRequest(NamedTuple):
    """JSON to post, how many seconds it may take, and how many bytes the answer may have."""

    payload: object
    limit: int
    timeout_s: float = 60.0
    connect_s: float = inf


class NoReply(ModelError):
    """No complete reply: refused, reset, cut short or too slow. A retry may help."""


class _HttpExchange:
    """One request and its reply; run in one thread, awaited and aborted from another."""

    def __init__(self, url: Url, request: HttpRequest, headers: Mapping[str, str]) -> None:
        self._url, self._request = url, request
        json_type = "application/json"
        self._headers = {"Content-Type": json_type, "Accept": json_type, **headers}
        self._connection = _make_connection(url, min(request.connect_s, request.timeout_s))

    def run(self) -> HttpReply:
        """Send the request and return the reply; raise NoReply without one."""
        from http.client import HTTPException, IncompleteRead  # start-up time

        host = self._url.host
        try:
            return self._send_request()
        except TimeoutError as error:
            raise NoReply(f"{host} did not answer in time") from error
        except IncompleteRead as error:
            raise NoReply(f"the answer of {host} is incomplete") from error
        except (HTTPException, UnicodeError) as error:
            raise NoReply(f"{host} does not speak HTTP ({type(error).__name__})") from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise NoReply(f"{self._url} cannot be reached: {reason}") from error
        finally:
            self._connection.close()

    def abort(self) -> None:
        """Shut down the socket of a request still under way, if there is one."""
        sock = self._connection.sock
        if sock is not None:
            with suppress(OSError):  # the server closed the connection meanwhile
                sock.shutdown(SHUT_RDWR)

    def _send_request(self) -> HttpReply:
        body, limit = json.dumps(self._request.payload).encode(), self._request.limit
        self._connection.connect()
        self._connection.sock.settimeout(self._request.timeout_s)
        self._connection.request("POST", self._url.path, body, self._headers)
        with self._connection.getresponse() as response:
            size = response.length or 0
            found = bytearray()
            while max(size, len(found)) <= limit and (piece := response.read1(_CHUNK_BYTES)):
                found += piece
            if max(size, len(found)) > limit:
                raise ModelError(f"the answer of {self._url.host} is larger than {limit:,} bytes")
            if response.length:
                raise NoReply(f"the answer of {self._url.host} is incomplete")
            waits = _retry_after_s(response.headers.get("Retry-After", "").strip())
            return HttpReply(response.status, bytes(found), waits)


def _retry_after_s(text: str) -> float:
    """Return the seconds that a server asks to wait: a number of them, or a date."""
    from email.utils import parsedate_to_datetime  # start-up time

    if text.isdecimal():
        return float(text)
    with suppress(ValueError, TypeError):
        return max(0.0, parsedate_to_datetime(text).timestamp() - time())
    return 0.0


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
# What reading an answer of another shape raises.
_UNREADABLE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


class Pace(Protocol):
    """How a client measures time, and waits."""

    @property
    def clock(self) -> Callable[[], float]: ...

    @property
    def sleep(self) -> Callable[[float], None]: ...


class ModelServer(NamedTuple):
    """A server that answers JSON with JSON, by its name in messages.

    ``headers`` is called for every request, so that a key is stored nowhere else. The
    remedies are for a model that it does not have (``missing``), and for a refused key.
    """

    name: str
    url: Url
    headers: Callable[[], Mapping[str, str]] = dict
    missing: str = ""
    missing_remedy: str = ""
    auth_remedy: str = ""

    def post(self, request: HttpRequest, pace: Pace, deadline: float) -> HttpReply:
        """Post with retry; the returned reply may be a refusal, but not a transient one."""
        return self.retry(
            lambda left_s: self.post_once(request._replace(timeout_s=left_s)), pace, deadline
        )

    def post_once(self, request: HttpRequest) -> HttpReply:
        """Post and return the reply; raise NoReply without one.

        Everything that can hang runs in a thread of its own, which is abandoned at the
        deadline: name lookup, TLS handshake, an answer that comes byte by byte. Redirects are
        not followed: the texts were meant for this host.
        """
        exchange = _HttpExchange(self.url, request, self.headers())
        try:
            return BackgroundCall(exchange.run).result(request.timeout_s)
        except TimeoutError as error:
            exchange.abort()
            late = f"{self.url.host} did not answer within {request.timeout_s:g} s"
            raise NoReply(late) from error

    def retry(self, send: Callable[[float], HttpReply], pace: Pace, deadline: float) -> HttpReply:
        """Call ``send`` with the seconds left, at most three times, with backoff."""
        failure: ModelError = NoReply(f"{self.name} did not answer in time")
        for number in range(_MAX_ATTEMPTS):
            # Exponential backoff with jitter.
            wait_s = _INITIAL_BACKOFF_S * 2**number * (0.5 + random.random())  # noqa: S311
            left_s = deadline - pace.clock()
            if left_s <= 0:
                break
            try:
                reply = send(left_s)
            except NoReply as error:
                failure = error
            else:
                is_failure = reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                if not is_failure and reply.status not in _TRANSIENT_STATUSES:
                    return reply
                failure = self.error(f"answered with status {reply.status}")
                wait_s = max(wait_s, reply.retry_after_s)
            if pace.clock() + wait_s >= deadline:
                break
            pace.sleep(wait_s)
        raise failure

    def check_status(self, status: int) -> None:
        """Raise a ModelError with a sentence and a remedy, unless the status is 200."""
        if status == HTTPStatus.OK:
            return
        if status in _AUTH_STATUSES:
            raise self.error(f"refused the credentials ({status})", self.auth_remedy)
        if status == HTTPStatus.NOT_FOUND:
            raise self.error(f"does not have {self.missing}", self.missing_remedy)
        if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
            raise self.error("redirects to another address; redirects are not followed")
        raise self.error(f"answered with status {status}")

    def parse(self, reply: HttpReply, read: Callable[[Any], T], problem: str) -> T:
        """Return what ``read`` finds in the reply; raise ModelError where it finds nothing."""
        try:
            return read(reply.json())
        except _UNREADABLE as error:
            raise self.error(problem) from error

    def error(self, problem: str, remedy: str = "") -> ModelError:
        """Return the error of this server."""
        return ModelError(f"{self.name} {problem}", remedy=remedy)


OLLAMA_HOST_VARIABLE = "OLLAMA_HOST"
OPENAI_BASE_VARIABLE = "OPENAI_BASE_URL"
OPENAI_KEY_VARIABLE = "OPENAI_API_KEY"
OPENAI_HOST = "api.openai.com"
_OLLAMA_PORT = 11_434


def ollama_server(path: str, model: str) -> ModelServer:
    """Return Ollama: on this machine unless the environment says otherwise."""
    given = os.environ.get(OLLAMA_HOST_VARIABLE, "").strip() or "127.0.0.1"
    if "://" in given:
        url = parse_base_url(given, variable=OLLAMA_HOST_VARIABLE)
    else:
        # The server uses the same variable as its listen address, without a scheme.
        url = parse_base_url(f"http://{given}", variable=OLLAMA_HOST_VARIABLE)
        has_port = given.partition("/")[0].rpartition("]")[2].rpartition(":")[1] == ":"
        url = url if has_port else url._replace(port=_OLLAMA_PORT)
    # A server that listens on all addresses is reached on loopback.
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(url.host, url.host)  # noqa: S104
    url = url._replace(host=host, path=f"{url.path}{path}")
    return ModelServer(
        f"ollama at {host}", url, missing=model, missing_remedy=f"ollama pull {model}"
    )


def openai_server(path: str, model: str) -> ModelServer:
    """Return OpenAI, unless the environment names another server of its protocol."""
    return keyed_server(
        *("openai", f"https://{OPENAI_HOST}/v1", path, model),
        variables=(OPENAI_BASE_VARIABLE, OPENAI_KEY_VARIABLE),
        header=lambda key: {"Authorization": f"Bearer {key}"} if key else {},
    )


def keyed_server(
    provider: str,
    home: str,
    path: str,
    model: str,
    *,
    variables: tuple[str, str],
    header: Callable[[str], Mapping[str, str]],
) -> ModelServer:
    """Return a server with a key; one that is hosted elsewhere than ``home`` may need none.

    ``variables`` name those of the environment that hold the address and the key.
    """
    base_variable, key_variable = variables
    base = parse_base_url(os.environ.get(base_variable, "").strip() or home, variable=base_variable)

    def headers() -> Mapping[str, str]:
        key = read_key(key_variable)
        if not key and base.host == urlsplit(home).hostname:
            # Before any text leaves this machine.
            raise ModelError(f"{key_variable} is not set", remedy=f"set it, or {base_variable}")
        return header(key)

    url, remedy = base._replace(path=f"{base.path}{path}"), f"check {key_variable}"
    name = f"{provider} at {base.host}"
    return ModelServer(name, url, headers, missing=model, auth_remedy=remedy)


def read_key(variable: str) -> str:
    """Read a key from the environment; empty where there is none."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        # Not shown, and not passed to a library whose error would show it.
        raise ModelError(f"{variable} contains characters that are not valid in a key")
    return key


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
