"""The events a host tells of: how long each may take, and whether there is anything to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

_EDITING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


def _always(_: dict[str, Any]) -> bool:
    return True


def _asks(payload: dict[str, Any]) -> bool:
    """Whether a prompt asks something of a memory."""
    from recollect.agents.asides import is_aside  # start-up time: other events do without

    prompt = payload.get("prompt")
    return isinstance(prompt, str) and not is_aside(prompt)


def _edits(payload: dict[str, Any]) -> bool:
    tool = payload.get("tool_name")
    return isinstance(tool, str) and tool in _EDITING


class Event(NamedTuple):
    """One event. ``limit_s`` counts from the start of the process; ``host_s`` is what the
    host is asked to wait, in its own whole seconds; ``work`` is a function of ``doing``.

    ``tools`` are the host's tools it is about.
    """

    name: str
    host_name: str
    limit_s: float
    host_s: int
    work: str
    is_wanted: Callable[[dict[str, Any]], bool] = _always
    tools: str = ""
    captures: bool = False


EVENTS = {
    event.name: event
    for event in (
        Event("session-start", "SessionStart", 3.0, 5, "brief"),
        Event("user-prompt-submit", "UserPromptSubmit", 0.5, 5, "prompt", _asks),
        Event(
            "post-tool-use", "PostToolUse", 3.0, 5, "edited", _edits,
            tools="|".join(sorted(_EDITING)), captures=True,
        ),
        Event("stop", "Stop", 10.0, 15, "spoken", captures=True),
        Event("pre-compact", "PreCompact", 10.0, 15, "spoken", captures=True),
        Event("session-end", "SessionEnd", 1.4, 2, "ended", captures=True),
    )
}  # fmt: skip
