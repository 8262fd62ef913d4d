"""What the server offers is an interface: a change to it is meant, and reviewed.

`BETHINK_GOLDEN=write pytest tests/golden` writes it anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from bethink.server.mcp.manifest import ServerManifest
from bethink.server.tools import TOOLS

FILE = Path(__file__).parent / "mcp-offer.json"


def test_tools_prompts_and_resources_stay() -> None:
    """Names, titles, descriptions, hints and schemas of all that is offered."""
    now = json.dumps(ServerManifest(TOOLS).lists_for({}), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("BETHINK_GOLDEN") == "write":
        FILE.write_text(now, encoding="utf-8")

    assert now == FILE.read_text(encoding="utf-8")
