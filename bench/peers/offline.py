"""Nobody measured here may speak to anybody: connections elsewhere are refused."""

from __future__ import annotations

import os
import sys

# Libraries that report home by default are told not to before they are imported.
QUIET = {
    "ANONYMIZED_TELEMETRY": "False",
    "MEM0_TELEMETRY": "False",
    "POSTHOG_DISABLED": "1",
    "HF_HUB_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def go_offline(folder: str) -> None:
    """``folder`` is where libraries may put what they would put into a home."""
    os.environ.update(QUIET, MEM0_DIR=folder, HOME=folder)
    sys.addaudithook(_refuse)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise PermissionError(f"offline: {event} {arguments[-1]!r}")
