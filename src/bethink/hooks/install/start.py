"""What starts Bethink for a host: the command, and one trial start."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which

from bethink.errors import BadSetting, requirement
from bethink.version import __version__

_TRIAL_S = 180  # uvx may have to fetch what the server needs
_UV_CACHES = ("archive-v", "builds-v", "environments-v")
_HELLO = (
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "bethink install", "version": __version__},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def own_command() -> tuple[str, ...]:
    """The command by which a host, with its own PATH, starts this installation."""
    if not sys.executable:
        raise BadSetting(
            "cannot find the command that starts Bethink", remedy="give it with --command"
        )
    named, uvx = requirement(), which("uvx")
    if _is_temporary() and named is not None and uvx is not None:
        return (uvx, "--from", named, "bethink")
    script = Path(sys.executable).with_name("bethink.exe" if sys.platform == "win32" else "bethink")
    if script.is_file():
        return (str(script),)
    # -P: modules in the agent's working folder must not be imported.
    return (sys.executable, "-P", "-m", "bethink")


def _is_temporary() -> bool:
    """Whether uvx made this environment, which it may remove again."""
    return any(part.startswith(_UV_CACHES) for part in Path(sys.prefix).parts)


def try_server(command: Sequence[str]) -> int:
    """Start the server once and return how many tools it lists; refuse where it does not."""
    messages = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in _HELLO)
    ran = _run(command, messages)
    try:
        answers = [json.loads(line) for line in (ran.stdout if ran else "").splitlines()]
        return next(len(one["result"]["tools"]) for one in answers if one.get("id") == 2)
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration) as error:
        raise BadSetting(
            f"the server does not start: {_last_line(ran)}; nothing was written",
            remedy=f"run it by hand: {' '.join(command)}; --no-check installs it all the same",
        ) from error


def _run(command: Sequence[str], text: str) -> subprocess.CompletedProcess[str] | None:
    """Run a command of ours; None where it cannot be run or takes too long."""
    try:
        return subprocess.run(  # noqa: S603 - the command that was shown
            command, input=text, capture_output=True, encoding="utf-8", errors="replace",
            timeout=_TRIAL_S, check=False,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _last_line(ran: subprocess.CompletedProcess[str] | None) -> str:
    lines = ran.stderr.strip().splitlines() if ran else []
    return lines[-1] if lines else "no such command, or no answer"
