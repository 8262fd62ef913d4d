"""The supported hosts and what each gets installed: a new host is a table in hosts.toml."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.toml import parse_toml
from bethink.errors import BadSetting
from bethink.hooks.dispatch import EVENTS, HookEvent
from bethink.hooks.install import config_text
from bethink.version import __version__


class OwnedFile(NamedTuple):
    """A file that is entirely ours."""

    path: Path
    content: bytes


class ConfigEntry(NamedTuple):
    """One value under a path of keys, in a file with other content.

    ``comments`` tells that the host reads JSON with comments and trailing commas.
    """

    path: Path
    keys: tuple[str, ...]
    value: Mapping[str, object]
    comments: bool = False


class Installation(NamedTuple):
    """Everything that is installed together.

    ``target`` identifies it, ``root`` is the folder that no path may leave, ``after`` are
    instructions for the user, ``server`` is the command that the host starts.
    """

    host: str
    target: Path
    root: Path
    files: tuple[OwnedFile, ...] = ()
    entries: tuple[ConfigEntry, ...] = ()
    after: tuple[str, ...] = ()
    server: tuple[str, ...] = ()


class FileFormat(NamedTuple):
    """Functions that edit a file format as text."""

    parse: Callable[[str], object]
    set_entry: Callable[[str, tuple[str, ...], Mapping[str, object]], str]
    remove_entry: Callable[[str, tuple[str, ...]], str]


_JSON = FileFormat(config_text.parse_json, config_text.set_key, config_text.remove_key)
_FILE_FORMATS = {
    ".json": _JSON,
    ".jsonc": _JSON,
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


_NAME = "bethink"
_DESCRIPTION = "Project memory: recalled with every prompt, captured from every session."
_PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
# Gemini's names of the events that only read; its transcripts are not captured.
_GEMINI_EVENTS = {"session-start": "SessionStart", "user-prompt-submit": "BeforeAgent"}
_CODEX_EVENTS = {"session-start": "SessionStart", "user-prompt-submit": "UserPromptSubmit"}


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

    def server(self) -> tuple[str, ...]:
        """The command that starts the MCP server."""
        space = ("--space", self.space) if self.space else ()
        tools = ("--tools", self.tools) if self.tools else ()
        return (*self.command, "mcp", *space, *tools)


def claude_code_files(place: Path, request: InstallRequest) -> tuple[OwnedFile, ...]:
    """Return the files of the plugin for Claude Code; without capture it only reads."""
    events = [event for event in EVENTS.values() if request.captures or not event.captures]
    return (
        _json_file(place / ".claude-plugin" / "plugin.json", _plugin_manifest()),
        _json_file(
            place / "hooks" / "hooks.json",
            {"hooks": {event.host_name: [_hook_entry(event, request.command)] for event in events}},
        ),
        _json_file(place / ".mcp.json", {"mcpServers": {_NAME: _server_entry(request)}}),
        _resource_file(place / "skills" / _NAME / "SKILL.md", "skill.md"),
        _resource_file(place / "README.md", "readme.md"),
    )


def shared_plugin_files(place: Path, command: tuple[str, ...]) -> tuple[OwnedFile, ...]:
    """Return the files of the plugin that marketplaces of Claude Code and Codex offer."""
    request = InstallRequest(None, place, {}, command)
    manifest = _plugin_manifest() | {
        "hooks": "./hooks/codex.json", "mcpServers": "./.mcp.json", "skills": "./skills/"
    }  # fmt: skip
    return (
        *claude_code_files(place, request),
        _json_file(place / ".codex-plugin" / "plugin.json", manifest),
        _json_file(place / "hooks" / "codex.json", _shell_hooks(_CODEX_EVENTS, command)),
    )


def gemini_files(place: Path, request: InstallRequest) -> tuple[OwnedFile, ...]:
    """Return the files of the extension for Gemini CLI."""
    hooks = _shell_hooks(_GEMINI_EVENTS, request.command, units_in_second=1000)
    return (
        _json_file(place / "gemini-extension.json", gemini_manifest(request)),
        _json_file(place / "hooks" / "hooks.json", hooks),
        _resource_file(place / "skills" / _NAME / "SKILL.md", "skill.md"),
    )


def gemini_manifest(request: InstallRequest) -> Json:
    """Return the manifest of the extension."""
    about = {"name": _NAME, "version": __version__, "description": _DESCRIPTION}
    return about | {"mcpServers": {_NAME: _server_entry(request)}}


def _plugin_manifest() -> Json:
    return {
        "name": _NAME,
        "version": __version__,
        "description": _DESCRIPTION,
        "author": {"name": "Bethink"},
        "license": "Apache-2.0",
    }


def _hook_entry(event: HookEvent, command: tuple[str, ...]) -> Json:
    """A program with arguments, so that no shell parses paths."""
    hook = {
        "type": "command",
        "command": command[0],
        "args": [*command[1:], "hook", event.name],
        "timeout": event.host_s,
    }
    return ({"matcher": event.tools} if event.tools else {}) | {"hooks": [hook]}


def _shell_hooks(
    events: Mapping[str, str], command: tuple[str, ...], *, units_in_second: int = 1
) -> Json:
    """Hooks of a host that runs one line in a shell."""
    hooks = {}
    for name, host_name in events.items():
        line = _shell_line([*command, "hook", name])
        timeout = EVENTS[name].host_s * units_in_second
        hooks[host_name] = [{"hooks": [{"type": "command", "command": line, "timeout": timeout}]}]
    return {"hooks": hooks}


def _shell_line(words: list[str]) -> str:
    line = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
    # Every shell reads double quotes, unless there is something to expand between them.
    return line if set(line) & set('"$`\\') else line.replace("'", '"')


def _json_file(path: Path, content: Json) -> OwnedFile:
    return OwnedFile(path, json.dumps(content, indent=2, ensure_ascii=False).encode() + b"\n")


def _resource_file(path: Path, name: str) -> OwnedFile:
    return OwnedFile(path, files("bethink.hooks.install").joinpath(name).read_bytes())


class Host(NamedTuple):
    """A host, where it is told of servers, and in which form: a table of `hosts.toml`.

    ``user`` is a file with a list of servers, or a folder for ``files``, below the home
    folder; ``{app}`` is the platform's folder for applications. ``variable`` may name another
    folder instead of its first part. ``project`` is the same below a project, empty where the
    host has none. ``servers`` is the key of the list, ``kind`` the type of the entry where
    the host asks for one. ``workspace`` is the host's variable of its open folder, where it
    starts servers elsewhere. ``space`` is served where there is no project.
    """

    title: str
    user: str
    project: str
    after: tuple[str, ...]
    servers: str = "mcpServers"
    kind: str = ""
    variable: str = ""
    workspace: str = ""
    space: str | None = None
    comments: bool = False
    files: Callable[[Path, InstallRequest], tuple[OwnedFile, ...]] | None = None


_FILES = {"claude-code": claude_code_files, "gemini": gemini_files}


def _read_host(name: str, row: Json) -> Host:
    on_windows = row.pop("on_windows", row["user"])
    row["user"] = on_windows if sys.platform == "win32" else row["user"]
    return Host(**row | {"after": tuple(row["after"])}, files=_FILES.get(name))


_TABLE = files("bethink.hooks.install").joinpath("hosts.toml").read_text("utf-8")
HOSTS = {name: _read_host(name, row) for name, row in parse_toml(_TABLE).items()}


def plan_host(name: str, request: InstallRequest) -> Installation:
    """Return what is installed in this host: files of ours, or an entry in its list."""
    host = HOSTS[name]
    target, root = _locate(host, request)
    if host.files is None or target.suffix:
        served = request._replace(space=request.space or host.space)
        value = _host_entry(host, served)
        entry = ConfigEntry(target, (host.servers, _NAME), value, host.comments)
        return Installation(
            name, target, root, entries=(entry,), after=host.after, server=served.server()
        )
    if request.space is not None:
        raise BadSetting(
            f"the {host.title} plugin always uses the project's own space",
            remedy=f'set space = "{request.space}" in the project\'s bethink.toml instead',
        )
    owned = host.files(target, request)
    return Installation(name, target, root, files=owned, after=host.after, server=request.server())


def _locate(host: Host, request: InstallRequest) -> tuple[Path, Path]:
    """Return the file or folder to write, and the folder that no path may leave."""
    if request.project is not None:
        target, root = request.project / host.project, request.project
    else:
        first, _, rest = host.user.partition("/")
        named = request.env.get(host.variable) if host.variable else None
        base = _app_folder(request) if first == "{app}" else request.home / first
        base = Path(named).expanduser() if named else base
        target = base / rest
        root = request.home if not named and base.is_relative_to(request.home) else base
    commented = target.with_suffix(".jsonc")
    return (commented if host.comments and commented.is_file() else target), root


def _app_folder(request: InstallRequest) -> Path:
    if sys.platform == "darwin":
        return request.home / "Library" / "Application Support"
    if sys.platform == "win32":
        return Path(request.env.get("APPDATA") or request.home / "AppData" / "Roaming")
    return Path(request.env.get("XDG_CONFIG_HOME") or request.home / ".config")


def _host_entry(host: Host, request: InstallRequest) -> Json:
    if host.kind == "local":
        return {"type": host.kind, "command": list(request.server()), "enabled": True}
    entry = ({"type": host.kind} if host.kind else {}) | _server_entry(request)
    # It starts the user's servers in the home folder; this variable names the project.
    named = {_PROJECT_VARIABLE: host.workspace}
    return entry | ({"env": named} if host.workspace and request.space is None else {})


def _server_entry(request: InstallRequest) -> Json:
    command, *args = request.server()
    return {"command": command, "args": args}
