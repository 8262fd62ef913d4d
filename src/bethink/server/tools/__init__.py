"""Registry of the tools: seven that every server offers, and optional ones."""

from __future__ import annotations

from collections.abc import Sequence

from bethink.core.registry import Registry
from bethink.errors import BadSetting
from bethink.server.systems import SYSTEMS
from bethink.server.tools.catalog import DEFAULT_TOOLS, OPTIONAL_TOOLS
from bethink.server.tools.tool import Tool

TOOLS: Registry[Tool] = Registry(
    "tool", {tool.name: tool for tool in (*DEFAULT_TOOLS, *OPTIONAL_TOOLS)}
)


def find_tool(system: str, name: str) -> Tool | None:
    """Return a tool of another system or, without one, of our own; None if there is none."""
    if not system:
        return TOOLS.get(name)
    from bethink.server.systems.declarations import load_system

    return load_system(system).tools.get(name) if system in SYSTEMS else None


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
