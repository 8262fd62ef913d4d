"""Requests to addresses that others name: to one pinned address, with limits.

A name is resolved once, its addresses are checked, and the connection is made to the address
that was checked: a name that resolves to another address later gains nothing.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from ipaddress import IPv6Address, IPv6Network, ip_address
from threading import Timer
from time import monotonic
from urllib.parse import SplitResult, urlsplit

from bethink.core.named_tuple import NamedTuple
from bethink.errors import BethinkError

_IPV6_UNICAST = IPv6Network("2000::/3")
_CHUNK_BYTES = 1 << 14


class Unreachable(BethinkError):
    """An address may not be asked, or has not answered as it should."""


class Limits(NamedTuple):
    """What a request may reach, in how many seconds, and how many bytes of answer it takes."""

    timeout_s: float
    max_bytes: int
    public_only: bool = True  # https and addresses of the public Internet


def is_public(address: str) -> bool:
    """Check whether an IP address is one of the public Internet, and wraps no other one."""
    found = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        wraps = found.ipv4_mapped or found.sixtofour or found.teredo
        return found.is_global and found in _IPV6_UNICAST and not wraps
    return found.is_global and not found.is_multicast


def check_url(url: str, *, public_only: bool = True) -> SplitResult:
    """Parse a URL that may be asked; raise Unreachable."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises
    except ValueError as error:
        raise Unreachable(f"{url!r:.200} is not a URL") from error
    schemes = ("https",) if public_only else ("https", "http")
    is_plain = url.isascii() and url.isprintable() and not {*" #@\\"} & {*url}
    if not is_plain or parts.scheme not in schemes or not parts.hostname:
        raise Unreachable(f"{url!r:.200} is not a plain {' or '.join(schemes)} URL")
    return parts


def fetch(
    url: str, limits: Limits, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[int, bytes]:
    """Send a GET, or a POST with a body; return status and answer. Redirects are not followed."""
    parts = check_url(url, public_only=limits.public_only)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    deadline = monotonic() + limits.timeout_s
    connection = HTTPConnection(host, port)
    try:
        connection.sock = _connect(host, port, limits, deadline)
        if parts.scheme == "https":
            connection.sock = ssl.create_default_context().wrap_socket(
                connection.sock, server_hostname=host, do_handshake_on_connect=False
            )
        with _shut_down_at(deadline, connection.sock):
            if isinstance(connection.sock, ssl.SSLSocket):
                connection.sock.do_handshake()
            target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            told = {"Host": parts.netloc, **(headers or {})}
            connection.request("GET" if body is None else "POST", target, body, told)
            with connection.getresponse() as response:
                found = bytearray()
                while piece := response.read1(_CHUNK_BYTES):
                    found += piece
                    if len(found) > limits.max_bytes:
                        raise Unreachable(f"{host} answers more than {limits.max_bytes:,} bytes")
                return response.status, bytes(found)
    except (OSError, HTTPException, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise Unreachable(f"{host} cannot be reached: {reason}") from error
    finally:
        connection.close()


def _connect(host: str, port: int, limits: Limits, deadline: float) -> socket.socket:
    found = [entry[4][0] for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    addresses = [str(address) for address in dict.fromkeys(found)]
    if limits.public_only and not all(map(is_public, addresses)):
        raise Unreachable(f"{host} is not on the public Internet")
    for address in addresses[:3]:
        with suppress(OSError):
            return socket.create_connection((address, port), timeout=_left(deadline))
    raise ConnectionRefusedError


@contextmanager
def _shut_down_at(deadline: float, sock: socket.socket) -> Iterator[None]:
    """End what is done with a socket in time: a handshake or a head may come byte by byte."""

    def shut_down() -> None:
        with suppress(OSError):  # it was closed meanwhile
            socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = Timer(_left(deadline), shut_down)
    timer.daemon = True
    timer.start()
    try:
        yield
        _left(deadline)  # what was cut off is no answer
    finally:
        timer.cancel()


def _left(deadline: float) -> float:
    left = deadline - monotonic()
    if left <= 0:
        raise TimeoutError
    return left
