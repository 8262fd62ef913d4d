"""The page about serving tells of every operation, route and limit there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recollect.access.guard import BODY_WITHIN_S, MOST_AT_ONCE, MOST_BODY, MOST_HEAD, MOST_OF_ONE
from recollect.access.policy import POLICY
from recollect.access.rate import USUAL
from recollect.access.rights import Right
from recollect.mcp import sessions
from recollect.mcp.http import MOST_SESSIONS
from recollect.mcp.listening import HEAD_WITHIN_S
from recollect.mcp.server import READ_WITHIN_S
from recollect.serve.moving import MOST_IMPORT
from recollect.serve.routes import PLAIN, WAYS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
ROWS = {
    Right.ANYONE: "none",
    Right.READ: "read",
    Right.WRITE: "write",
    Right.ADMIN: "admin",
    Right.LOCAL: "on this machine alone, by command",
}


@pytest.mark.parametrize("right", Right)
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
    routes = [(f"{way.method} {way.path}", way.tool.name) for way in WAYS]
    routes += [(f"{plain.method} {plain.path}", plain.operation) for plain in PLAIN]
    for route, operation in routes:
        assert any(
            re.search(rf"`{re.escape(route)}[`?]", row) and f"`{operation}`" in row for row in rows
        ), route


def test_the_limits_are_those_that_hold() -> None:
    """Number by number."""
    assert (MOST_BODY, MOST_IMPORT) == (1 << 20, 64 << 20)
    for said in (
        f"heads up to {MOST_HEAD // 1024} KiB",
        f"{HEAD_WITHIN_S:.0f} s for a head",
        f"{BODY_WITHIN_S:.0f} s for a body",
        f"{READ_WITHIN_S:.0f} s for an answer",
        f"{MOST_OF_ONE} requests at once of one caller and {MOST_AT_ONCE} of all",
        f"{USUAL:,} a minute",
        f"{MOST_SESSIONS} sessions of MCP and {sessions.MOST_OF_ONE} of one caller",
    ):
        assert said in PAGE
