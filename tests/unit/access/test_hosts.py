"""Which names a server answers to, and which addresses are this machine's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.access.hosts import Address, host_policy_for, is_loopback
from bethink.errors import BadSetting
from rows import each_row


@each_row("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_addresses_of_this_machine_alone(host: str) -> None:
    """By number, and by the one name that is reserved for it."""
    assert is_loopback(host)


@each_row(
    "host", ["0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org", "", "127.1"]
)
def test_addresses_that_others_can_reach(host: str) -> None:
    """All others, and names, wherever they may lead today."""
    assert not is_loopback(host)


@each_row("host", ["a b", "a:80", "http://a", "a/b", "", "*", "ä.example", "[::1]:80"])
def test_an_allowed_host_is_a_name(host: str) -> None:
    """No wildcard, no port, no URL."""
    with pytest.raises(BadSetting):
        host_policy_for(Address("127.0.0.1", 1), (host,), ())


@each_row(
    "origin", ["*", "null", "example.org", "https://a/b", "https://a/", "ftp://a", "https://a?b",
               "https://u@a", "", "https://"]
)  # fmt: skip
def test_an_allowed_origin_is_one(origin: str) -> None:
    """Scheme, host and port: never all, never a path."""
    with pytest.raises(BadSetting):
        host_policy_for(Address("127.0.0.1", 1), (), (origin,))


@given(st.binary(max_size=60))
def test_no_host_but_ours_is_known(host: bytes) -> None:
    """Whatever bytes it is made of."""
    names = host_policy_for(Address("127.0.0.1", 1), (), ())
    ours = (b"127.0.0.1", b"localhost", b"[::1]", b"::1")
    known = names.allows_host([(b"host", host)])

    assert not known or host.lower().rpartition(b":")[0] in ours or host.lower() in ours


def test_two_hosts_are_none() -> None:
    """Which of them was meant is not ours to guess."""
    names = host_policy_for(Address("127.0.0.1", 1), (), ())

    assert not names.allows_host([(b"host", b"localhost"), (b"host", b"localhost")])
    assert not names.allows_host([])
    assert not names.allows_origin([(b"host", b"localhost"), (b"origin", b"http://localhost"),
                                   (b"origin", b"http://localhost")])  # fmt: skip
