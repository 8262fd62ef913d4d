"""Which names a server may be called by, and which pages may call it.

A page in a browser can reach any address its user's machine can; what it cannot do is
choose the Host and the Origin that the browser sends. So a server answers to its own names
alone, and a page only where it is the server's own or was named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from recollect.errors import BadSetting

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})(?::([0-9]{1,5}))?")
# What proxies and tunnels add; x-forwarded-for, -host, -proto ... among them.
_PROXIED = (b"forwarded", b"x-real-ip", b"via", b"cf-connecting-ip", b"true-client-ip",
            b"x-client-ip", b"x-cluster-client-ip")  # fmt: skip
_PROXIED_SO = (b"x-forwarded-", b"x-original-", b"x-envoy-")


class Address(NamedTuple):
    """Where to listen."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host)

    @property
    def shown(self) -> str:
        """As it is written in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own inner one."""
    if host in LOOPBACK:
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False  # a name: where it leads is not ours to say


def read_address(written: str) -> Address:
    """HOST:PORT as one word."""
    host, _, port = written.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") or LOOPBACK[0]
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 65_536):
        raise BadSetting(f"{written!r:.80} names no port", remedy="for example 127.0.0.1:8765")
    return Address(host, int(port))


@dataclass(frozen=True)
class Names:
    """The hosts a server answers to, and the origins besides its own that may ask."""

    hosts: frozenset[str]
    origins: frozenset[str] = frozenset()

    def knows_host(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the request was sent to one of our names."""
        told = _only(headers, b"host")
        name = _name_of(told) if told is not None else None
        return name is not None and name in self.hosts

    def is_local(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether it was sent to this machine's own name and nobody passed it on.

        A proxy on this machine makes strangers look like neighbours.
        """
        name = _name_of(_only(headers, b"host") or "")
        return bool(name) and is_loopback(name or "") and not _passed_on(headers)

    def knows_origin(self, headers: list[tuple[bytes, bytes]]) -> bool:
        """Whether the page that asks, if one does, is our own or one that was named."""
        origins = [value for name, value in headers if name == b"origin"]
        if not origins:
            # Browsers leave it out where they only fetch, but say that another site asks.
            site = _only(headers, b"sec-fetch-site")
            return site in (None, "same-origin", "none")
        if len(origins) > 1:
            return False
        origin = origins[0].decode("latin-1").lower()
        return origin in self.origins or self._is_own(origin, headers)

    def _is_own(self, origin: str, headers: list[tuple[bytes, bytes]]) -> bool:
        host = (_only(headers, b"host") or "").lower()
        return bool(host) and origin in (f"http://{host}", f"https://{host}")


def names_for(address: Address, hosts: tuple[str, ...], origins: tuple[str, ...]) -> Names:
    """What a server at that address may be called, and what was allowed besides."""
    own = {*LOOPBACK}
    if not _is_every(address.host):
        own.add(address.host.lower())
    own |= {_checked_host(host) for host in hosts}
    return Names(frozenset(own), frozenset(_checked_origin(one) for one in origins))


def _is_every(host: str) -> bool:
    """Whether it stands for all addresses, and so is nobody's name."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return not host


def _checked_host(host: str) -> str:
    found = _HOST.fullmatch(f"[{host}]" if host.count(":") > 1 else host)
    if found is None or found[2] is not None:
        raise BadSetting(f"{host!r:.80} is no host's name", remedy="for example memory.example.org")
    return found[1].strip("[]").lower()


def _checked_origin(origin: str) -> str:
    parts = urlsplit(origin)
    plain = f"{parts.scheme}://{parts.netloc}".lower()
    if (
        parts.scheme not in ("http", "https")
        or not _HOST.fullmatch(parts.netloc)
        or plain != origin.lower()
    ):
        raise BadSetting(
            f"{origin!r:.80} is no origin",
            remedy="scheme, host and port, for example https://notes.example.org",
        )
    return plain


def _name_of(host: str) -> str | None:
    found = _HOST.fullmatch(host)
    return found[1].strip("[]").lower() if found else None


def _only(headers: list[tuple[bytes, bytes]], wanted: bytes) -> str | None:
    """A header's value, if it stands there exactly once."""
    values = [value for name, value in headers if name == wanted]
    return values[0].decode("latin-1") if len(values) == 1 else None


def _passed_on(headers: list[tuple[bytes, bytes]]) -> bool:
    return any(name in _PROXIED or name.startswith(_PROXIED_SO) for name, _ in headers)
