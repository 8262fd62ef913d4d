"""The supported hosts and what each gets installed.

A new host is a function and an entry in the table.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadSetting
from bethink.hooks.dispatch import EVENTS, HookEvent
from bethink.hooks.install import config_text
from bethink.version import __version__


class OwnedFile(NamedTuple):
    """A file that is entirely ours."""

    path: Path
    content: bytes


class ConfigEntry(NamedTuple):
    """One value under a path of keys, in a file with other content."""

    path: Path
    keys: tuple[str, ...]
    value: Mapping[str, object]


class Installation(NamedTuple):
    """Everything that is installed together.

    ``target`` identifies it, ``root`` is the folder that no path may leave, ``after`` are
    instructions for the user.
    """

    host: str
    target: Path
    root: Path
    files: tuple[OwnedFile, ...] = ()
    entries: tuple[ConfigEntry, ...] = ()
    after: tuple[str, ...] = ()


class FileFormat(NamedTuple):
    """Functions that edit a file format as text."""

    parse: Callable[[str], object]
    set_entry: Callable[[str, tuple[str, ...], Mapping[str, object]], str]
    remove_entry: Callable[[str, tuple[str, ...]], str]


_FILE_FORMATS = {
    ".json": FileFormat(config_text.parse_json, config_text.set_key, config_text.remove_key),
    ".toml": FileFormat(config_text.parse_toml, config_text.set_table, config_text.remove_table),
}


def file_format(path: Path) -> FileFormat:
    """The format of this file."""
    return _FILE_FORMATS[path.suffix]


def decode_file(path: Path, content: bytes) -> str:
    """Decode a file's text; raise BadSetting where it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise BadSetting(
            f"{path} is not UTF-8 text", remedy="convert it to UTF-8; nothing was changed"
        ) from error


PLUGIN_NAME = "bethink"
_DESCRIPTION = "Project memory: recalled with every prompt, captured from every session."


def plugin_files(
    place: Path, command: tuple[str, ...], *, mcp: tuple[str, ...], captures: bool
) -> tuple[OwnedFile, ...]:
    """Return the plugin's files.

    ``command`` starts Bethink, ``mcp`` its server; a plugin that does not capture only
    reads.
    """
    events = [event for event in EVENTS.values() if captures or not event.captures]
    manifest = {
        "name": PLUGIN_NAME,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": {"name": "Bethink"},
        "license": "Apache-2.0",
    }
    server = {"command": mcp[0], "args": list(mcp[1:])}
    return (
        _json_file(place / ".claude-plugin" / "plugin.json", manifest),
        _json_file(place / "hooks" / "hooks.json", {"hooks": hook_settings(events, command)}),
        _json_file(place / ".mcp.json", {"mcpServers": {PLUGIN_NAME: server}}),
        _resource_file(place / "skills" / PLUGIN_NAME / "SKILL.md", "skill.md"),
        _resource_file(place / "README.md", "readme.md"),
    )


def hook_settings(events: list[HookEvent], command: tuple[str, ...]) -> dict[str, list[Json]]:
    """Hook settings; each runs a program with arguments, so no shell parses paths."""
    return {event.host_name: [_hook_entry(event, command)] for event in events}


def _hook_entry(event: HookEvent, command: tuple[str, ...]) -> Json:
    hook = {
        "type": "command",
        "command": command[0],
        "args": [*command[1:], "hook", event.name],
        "timeout": event.host_s,
    }
    return ({"matcher": event.tools} if event.tools else {}) | {"hooks": [hook]}


def _json_file(path: Path, content: Json) -> OwnedFile:
    return OwnedFile(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def _resource_file(path: Path, name: str) -> OwnedFile:
    return OwnedFile(path, files("bethink.hooks.install").joinpath(name).read_bytes())


_NAME = "bethink"
_PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


class InstallRequest(NamedTuple):
    """A request to install: for a project, or for the user where that is None.

    ``command`` starts Bethink, ``tools`` are the server's additional tools, ``space``
    is the space it serves, where that is not the project's.
    """

    project: Path | None
    home: Path
    env: Mapping[str, str]
    command: tuple[str, ...]
    tools: str = ""
    space: str | None = None
    captures: bool = True


class Host(NamedTuple):
    """A host: its display name, its installation, and whether it supports projects."""

    title: str
    installation: Callable[[InstallRequest], Installation]
    has_projects: bool = True


def claude_code(request: InstallRequest) -> Installation:
    """A plugin in the skills folder, from where it is loaded without registration."""
    if request.space is not None:
        raise BadSetting(
            "the Claude Code plugin always uses the project's own space",
            remedy=f'set space = "{request.space}" in the project\'s bethink.toml instead',
        )
    if request.project is not None:
        home = request.project / ".claude"
        root = request.project
    else:
        named = request.env.get("CLAUDE_CONFIG_DIR")
        home = Path(named).expanduser() if named else request.home / ".claude"
        root = home if named else request.home
    place = home / "skills" / _NAME
    return Installation(
        "claude-code",
        place,
        root,
        files=plugin_files(
            place, request.command, mcp=_server_command(request), captures=request.captures
        ),
        after=(
            "Claude Code loads it in its next session, as bethink@skills-dir"
            + (", once the project's folder is trusted" if request.project else ""),
            "claude plugin list shows it; claude plugin disable bethink@skills-dir turns it off",
        ),
    )


def cursor(request: InstallRequest) -> Installation:
    """An entry in Cursor's list of MCP servers."""
    # Cursor starts user-level servers in the home folder; this variable names the project.
    server = _server_entry(request)
    if request.space is None:
        server |= {"env": {_PROJECT_VARIABLE: "${workspaceFolder}"}}
    path = (request.project or request.home) / ".cursor" / "mcp.json"
    after = ("restart Cursor, then check Settings, MCP",)
    return _mcp_list_installation("cursor", path, request.project or request.home, server, after)


def claude_desktop(request: InstallRequest) -> Installation:
    """An entry in the desktop app's list of MCP servers.

    The app has no project, so the memory is a space of its own.
    """
    server = _server_entry(request._replace(space=request.space or "desktop"))
    path = _desktop_folder(request) / "claude_desktop_config.json"
    root = request.home if path.is_relative_to(request.home) else path.parent
    return _mcp_list_installation("claude-desktop", path, root, server, ("restart Claude Desktop",))


def codex(request: InstallRequest) -> Installation:
    """A table in Codex's settings."""
    named = request.env.get("CODEX_HOME")
    if request.project is not None:
        folder, root = request.project / ".codex", request.project
    elif named:
        folder = root = Path(named).expanduser()
    else:
        folder, root = request.home / ".codex", request.home
    path = folder / "config.toml"
    entry = ConfigEntry(path, ("mcp_servers", _NAME), _server_entry(request))
    after = ("Codex loads it in its next session; /mcp shows it",)
    return Installation("codex", path, root, entries=(entry,), after=after)


HOSTS = {
    "claude-code": Host("Claude Code", claude_code),
    "cursor": Host("Cursor", cursor),
    "claude-desktop": Host("Claude Desktop", claude_desktop, has_projects=False),
    "codex": Host("Codex", codex),
}


def own_command() -> tuple[str, ...]:
    """The command by which a host, with its own PATH, starts this installation."""
    if not sys.executable:
        raise BadSetting(
            "cannot find the command that starts Bethink", remedy="give it with --command"
        )
    script = Path(sys.executable).with_name("bethink.exe" if sys.platform == "win32" else _NAME)
    if script.is_file():
        return (str(script),)
    # -P: modules in the agent's working folder must not be imported.
    return (sys.executable, "-P", "-m", _NAME)


def _server_command(request: InstallRequest) -> tuple[str, ...]:
    space = ("--space", request.space) if request.space else ()
    tools = ("--tools", request.tools) if request.tools else ()
    return (*request.command, "mcp", *space, *tools)


def _server_entry(request: InstallRequest) -> Json:
    command, *args = _server_command(request)
    return {"command": command, "args": args}


def _mcp_list_installation(
    host: str, path: Path, root: Path, server: Mapping[str, object], after: tuple[str, ...]
) -> Installation:
    entry = ConfigEntry(path, ("mcpServers", _NAME), server)
    return Installation(host, path, root, entries=(entry,), after=after)


def _desktop_folder(request: InstallRequest) -> Path:
    if sys.platform == "darwin":
        return request.home / "Library" / "Application Support" / "Claude"
    if sys.platform == "win32":
        return Path(request.env.get("APPDATA") or request.home / "AppData" / "Roaming") / "Claude"
    return Path(request.env.get("XDG_CONFIG_HOME") or request.home / ".config") / "Claude"
