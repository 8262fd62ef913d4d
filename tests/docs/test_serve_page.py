"""The page about serving tells of every operation, route and limit there is."""

from __future__ import annotations

import re
from pathlib import Path

from bethink.access.guard import (
    BODY_TIMEOUT_S,
    DEFAULT_RATE,
    MAX_BODY_BYTES,
    MAX_CONCURRENT,
    MAX_CONCURRENT_PER_CALLER,
    MAX_HEAD_BYTES,
)
from bethink.access.policy import POLICY, Right
from bethink.server.listener import HEAD_TIMEOUT_S
from bethink.server.mcp.requests import READ_TIMEOUT_S
from bethink.server.rest.routes import PLAIN_ROUTES, TOOL_ROUTES
from deferred import Deferred
from rows import each_row

mcp_http = Deferred("bethink.server.mcp.http")
handlers = Deferred("bethink.server.rest.handlers")

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
ROWS = {
    Right.ANYONE: "none",
    Right.READ: "read",
    Right.WRITE: "write",
    Right.ADMIN: "admin",
    Right.LOCAL: "on this machine alone, by command",
}


@each_row("right", Right)
def test_every_operation_stands_in_the_row_of_its_scope(right: Right) -> None:
    """And in no other; resources and prompts are named together."""
    row = re.search(rf"^\| {re.escape(ROWS[right])} \| (.*) \|$", PAGE, re.MULTILINE)
    assert row is not None
    named = set(re.findall(r"`([^`]+)`", row[1]))

    assert named == {
        one for one, needed in POLICY.items()
        if needed is right and not one.startswith(("resource ", "prompt "))
    }  # fmt: skip


def test_every_route_has_its_row() -> None:
    """With its operation beside it."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    routes = [(f"{way.method} {way.path}", way.tool.name) for way in TOOL_ROUTES]
    routes += [(f"{plain.method} {plain.path}", plain.operation) for plain in PLAIN_ROUTES]
    for route, operation in routes:
        assert any(
            re.search(rf"`{re.escape(route)}[`?]", row) and f"`{operation}`" in row for row in rows
        ), route


def test_the_limits_are_those_that_hold() -> None:
    """Number by number."""
    assert (MAX_BODY_BYTES, handlers.MAX_IMPORT_BYTES) == (1 << 20, 64 << 20)
    for said in (
        f"heads up to {MAX_HEAD_BYTES // 1024} KiB",
        f"{HEAD_TIMEOUT_S:.0f} s for a head",
        f"{BODY_TIMEOUT_S:.0f} s for a body",
        f"{READ_TIMEOUT_S:.0f} s for an answer",
        f"{MAX_CONCURRENT_PER_CALLER} requests at once of one caller and {MAX_CONCURRENT} of all",
        f"{DEFAULT_RATE:,} a minute",
        f"{mcp_http.MAX_SESSIONS} sessions of MCP and {mcp_http.MAX_SESSIONS_PER_CALLER} of one caller",
    ):
        assert said in PAGE
