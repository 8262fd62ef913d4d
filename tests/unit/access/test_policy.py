"""The policy: rights in their order, and nothing without a row."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.access.policy import (
    ANONYMOUS,
    ARGUMENT_OPERATIONS,
    LOOPBACK,
    OWNER,
    POLICY,
    Principal,
    Right,
    attach_principal,
    operation_of,
    permits,
    principal_of,
    require,
)
from bethink.errors import Forbidden
from bethink.server.mcp.manifest import resource_operation
from bethink.server.tools import TOOLS
from rows import each_row

ADMIN = Principal("boss", Right.ADMIN)


@given(st.text().filter(lambda text: text not in POLICY))
def test_what_has_no_row_is_denied(operation: str) -> None:
    """To everybody who comes over a network, whatever their scope."""
    for principal in (ANONYMOUS, LOOPBACK, ADMIN):
        assert not permits(principal, operation)
        with pytest.raises(Forbidden, match="not available over a network"):
            require(principal, operation)
    require(OWNER, operation)


@each_row("operation", POLICY)
def test_who_has_more_may_do_more(operation: str) -> None:
    """And nobody over a network may do what is for this machine."""
    allowed = [permits(Principal("x", right), operation) for right in Right]

    assert all(less <= more for less, more in pairwise(allowed))
    assert allowed[Right.ADMIN] == (POLICY[operation] is not Right.LOCAL)


def test_a_refusal_says_which_scope_it_takes() -> None:
    """For people, and for programs."""
    with pytest.raises(Forbidden, match="remember needs the scope write") as refusal:
        require(Principal("reader", Right.READ), "remember")

    assert refusal.value.scope == "write"
    assert "--scope write" in refusal.value.remedy


def test_an_argument_makes_another_operation() -> None:
    """Where it is true, whatever true is written like; each is an argument that exists."""
    assert operation_of("forget", {"erase": True}) == "forget with erase"
    assert operation_of("forget", {"erase": "false"}) == "forget with erase"
    assert operation_of("forget", {"erase": False}) == "forget"
    assert operation_of("recall", {"erase": True}) == "recall"
    for tool, argument in ARGUMENT_OPERATIONS:
        assert argument in TOOLS[tool].input_schema["properties"]


def test_who_was_not_let_in_is_nobody() -> None:
    """A request that passed no guard has no rights; nor has one that claims them itself."""
    scope: dict[str, object] = {"type": "http", "headers": [(b"bethink.principal", b"owner")]}
    assert principal_of(scope) is ANONYMOUS
    scope["bethink.principal"] = "owner"
    assert principal_of(scope) is ANONYMOUS

    attach_principal(scope, ADMIN)

    assert principal_of(scope) is ADMIN


@each_row(
    ("uri", "row"),
    [
        ("memory://stats", "resource memory://stats"),
        ("memory://stats/", "resource memory://stats"),
        ("memory://stats/x", "resource memory://stats"),
        ("memory://item/x", "resource memory://item/{id}"),
        ("memory://item/a/b", "resource memory://item/{id}"),
        ("memory://entity/", "resource memory://entity/{name}"),
    ],
)
def test_every_address_falls_under_its_row(uri: str, row: str) -> None:
    """However it is written, as long as it is read."""
    assert resource_operation(uri) == row
    assert row in POLICY
