"""The tools by name: seven that every server offers, and others for who asks for them."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.errors import BadSetting
from recollect.mcp.tool import Tool
from recollect.mcp.tools.others import OTHERS
from recollect.mcp.tools.usual import USUAL

TOOLS: dict[str, Tool] = {tool.name: tool for tool in (*USUAL, *OTHERS)}


def chosen(wanted: Sequence[str] = ()) -> dict[str, Tool]:
    """The usual tools and those named besides; "all" names every one."""
    for name in wanted:
        if name not in (*TOOLS, "all", "usual"):
            raise BadSetting(
                f"there is no tool {name!r}", remedy=f"one of {', '.join([*TOOLS, 'all'])}"
            )
    if "all" in wanted:
        return TOOLS
    usual = {tool.name for tool in USUAL}
    return {name: tool for name, tool in TOOLS.items() if name in usual or name in wanted}
