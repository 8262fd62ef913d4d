"""The plugin for Claude Code: manifest, hooks, MCP server, skill."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from recollect.plugin.events import EVENTS, Event
from recollect.plugin.install.wanted import WholeFile
from recollect.version import __version__

NAME = "recollect"
_DESCRIPTION = "A memory for this project: recalled with every prompt, kept from every session."


def plugin_files(
    place: Path, words: tuple[str, ...], *, mcp: tuple[str, ...], captures: bool
) -> tuple[WholeFile, ...]:
    """The plugin's files. ``words`` start Recollect, ``mcp`` its server; a plugin that does
    not capture only reads."""
    events = [event for event in EVENTS.values() if captures or not event.captures]
    manifest = {
        "name": NAME,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": {"name": "Recollect"},
        "license": "Apache-2.0",
    }
    server = {"command": mcp[0], "args": list(mcp[1:])}
    return (
        _json(place / ".claude-plugin" / "plugin.json", manifest),
        _json(place / "hooks" / "hooks.json", {"hooks": hooks(events, words)}),
        _json(place / ".mcp.json", {"mcpServers": {NAME: server}}),
        _text(place / "skills" / NAME / "SKILL.md", "skill.md"),
        _text(place / "README.md", "readme.md"),
    )


def hooks(events: list[Event], words: tuple[str, ...]) -> dict[str, list[dict[str, Any]]]:
    """The hooks, each called as a program with arguments: no shell reads the paths."""
    return {event.host_name: [_hook(event, words)] for event in events}


def _hook(event: Event, words: tuple[str, ...]) -> dict[str, Any]:
    called = {
        "type": "command",
        "command": words[0],
        "args": [*words[1:], "hook", event.name],
        "timeout": event.host_s,
    }
    return ({"matcher": event.tools} if event.tools else {}) | {"hooks": [called]}


def _json(path: Path, content: dict[str, Any]) -> WholeFile:
    return WholeFile(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def _text(path: Path, name: str) -> WholeFile:
    return WholeFile(path, files("recollect.plugin.install").joinpath(name).read_bytes())
