"""Registry of the tools: seven that every server offers, and optional ones."""

from __future__ import annotations

from collections.abc import Sequence

from bethink.core.registry import Registry
from bethink.errors import BadSetting
from bethink.server.tools.catalog import DEFAULT_TOOLS, OPTIONAL_TOOLS
from bethink.server.tools.tool import Tool

TOOLS: Registry[Tool] = Registry(
    "tool", {tool.name: tool for tool in (*DEFAULT_TOOLS, *OPTIONAL_TOOLS)}
)


def select_tools(names: Sequence[str] = ()) -> dict[str, Tool]:
    """Return the default tools and those named; "all" selects every tool."""
    for name in names:
        if name not in (*TOOLS, "all", "usual"):
            raise BadSetting(
                f"there is no tool {name!r}", remedy=f"use one of {', '.join([*TOOLS, 'all'])}"
            )
    if "all" in names:
        return dict(TOOLS)
    usual = {tool.name for tool in DEFAULT_TOOLS}
    return {name: tool for name, tool in TOOLS.items() if name in usual or name in names}
