"""Allowed Host names and Origins of a server (protection against DNS rebinding and CSRF).

A page in a browser can reach any address its user's machine can; what it cannot do is
choose the Host and the Origin that the browser sends. So a server answers to its own names
only, and to a page only if it is the server's own or its origin was allowed.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HOST = lazy_pattern(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})(?::([0-9]{1,5}))?")
# Prefixes of headers that proxies and tunnels add, for example x-forwarded-for.
_PROXY_HEADERS = (b"forwarded", b"x-real-ip", b"via", b"cf-connecting-ip", b"true-client-ip",
            b"x-client-ip", b"x-cluster-client-ip")  # fmt: skip
_READING_METHODS = ("GET", "HEAD")
# Headers with which browsers open a window; a visit has no Origin.
_VISIT_HEADERS = {b"sec-fetch-mode": b"navigate", b"sec-fetch-dest": b"document"}
_PROXY_HEADER_PREFIXES = (b"x-forwarded-", b"x-original-", b"x-envoy-")


class Address(NamedTuple):
    """A host and a port to listen on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        return is_loopback(self.host)

    @property
    def netloc(self) -> str:
        """The address as a URL spells it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Check whether a host name or IP address is a loopback one."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # a host name: it may resolve to any address


def is_port_free(address: Address) -> bool:
    """Check whether nothing listens on an address."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server(address, family=family).close()
    except OSError:
        return False
    return True


def parse_address(text: str) -> Address:
    """Parse HOST:PORT; without a host it is the loopback address."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK[0]
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65_536):
        raise BadSetting(f"{text!r:.80} has no port", remedy="for example 127.0.0.1:8765")
    return Address(host, int(port))


@dataclass(frozen=True)
class HostPolicy:
    """The Host names a server answers to, and the foreign origins that may call it."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()

    def allows_host(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether the Host header is one of the server's names."""
        return _host_name(headers) in self.hosts

    def is_local(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether a request was sent to a loopback name, without a proxy in between.

        A proxy on this machine makes remote callers look local.
        """
        return is_loopback(_host_name(headers) or "") and not _is_proxied(headers)

    def allows_origin(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether the calling page, if any, is same-origin or allowed."""
        origins = [value for name, value in headers if name == b"origin"]
        if not origins:
            # Browsers omit Origin in simple requests, but send Sec-Fetch-Site.
            site = _single_header(headers, b"sec-fetch-site")
            return site in (None, "same-origin", "none")
        if len(origins) > 1:
            return False
        origin = origins[0].decode("latin-1").lower()
        return origin in self.origins or self._is_same_origin(origin, headers)

    def is_own_page(self, method: str, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether a request may use a browser's session: it comes from our own page.

        A cookie is no proof of that: browsers send it along with requests of pages at other
        ports of the same host. A link that was typed or clicked may only read.
        """
        site, reads = _single_header(headers, b"sec-fetch-site"), method in _READING_METHODS
        if site is not None:
            return site == "same-origin" or (site == "none" and reads)
        origin = _single_header(headers, b"origin")
        return reads if origin is None else self._is_same_origin(origin.lower(), headers)

    def is_visit(self, method: str, headers: list[tuple[bytes, bytes]]) -> bool:
        """Check whether a browser opens an address in a window, from wherever the link was.

        The page that has the link can read nothing of what it opens. Frames are no windows.
        """
        sent = {name: value for name, value in headers if name in (*_VISIT_HEADERS, b"origin")}
        return method in _READING_METHODS and sent == _VISIT_HEADERS

    def _is_same_origin(self, origin: str, headers: list[tuple[bytes, bytes]]) -> bool:
        host = (_single_header(headers, b"host") or "").lower()
        return bool(host) and origin in (f"http://{host}", f"https://{host}")


def host_policy_for(
    address: Address, hosts: tuple[str, ...], origins: tuple[str, ...]
) -> HostPolicy:
    """Build the host policy of a server at an address, with further allowed names."""
    own = {*LOOPBACK}
    if not _is_unspecified(address.host):
        own.add(address.host.lower())
    own |= {_parse_host(host) for host in hosts}
    return HostPolicy(frozenset(own), frozenset(_parse_origin(origin) for origin in origins))


def _is_unspecified(host: str) -> bool:
    """Check whether a host means all addresses (0.0.0.0, ::) and so is no name."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def _parse_host(host: str) -> str:
    found = _HOST.fullmatch(f"[{host}]" if host.count(":") > 1 else host)
    if found is None or found[2] is not None:
        raise BadSetting(
            f"{host!r:.80} is not a host name", remedy="for example memory.example.org"
        )
    return found[1].strip("[]").lower()


def parse_public_url(text: str) -> str:
    """Parse the URL that others reach a server at: https and no path, http for loopback only."""
    origin = _parse_origin(text.removesuffix("/"))
    if origin.startswith("http:") and not is_loopback(urlsplit(origin).hostname or ""):
        raise BadSetting(f"{text!r:.80} is not an https URL", remedy="use --tls-cert, or a proxy")
    return origin


def _parse_origin(origin: str) -> str:
    parts = urlsplit(origin)
    plain = f"{parts.scheme}://{parts.netloc}".lower()
    if (
        parts.scheme not in ("http", "https")
        or not _HOST.fullmatch(parts.netloc)
        or plain != origin.lower()
    ):
        raise BadSetting(
            f"{origin!r:.80} is not an origin",
            remedy="use scheme, host and port, for example https://notes.example.org",
        )
    return plain


def _host_name(headers: list[tuple[bytes, bytes]]) -> str | None:
    found = _HOST.fullmatch(_single_header(headers, b"host") or "")
    return found[1].strip("[]").lower() if found else None


def _single_header(headers: list[tuple[bytes, bytes]], header: bytes) -> str | None:
    """Return a header's value if it occurs exactly once, else None."""
    values = [value for name, value in headers if name == header]
    return values[0].decode("latin-1") if len(values) == 1 else None


def _is_proxied(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(
        name in _PROXY_HEADERS or name.startswith(_PROXY_HEADER_PREFIXES) for name, _ in headers
    )
