"""The hosts Recollect can be installed into. A new one is a function and a line here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from recollect.errors import BadSetting
from recollect.plugin.install.claude_code import plugin_files
from recollect.plugin.install.wanted import Entry, Wanted

_NAME = "recollect"
_PROJECT = "CLAUDE_PROJECT_DIR"


class Asked(NamedTuple):
    """What somebody wants installed: for a project, or for the user where that is None.

    ``words`` start Recollect, ``tools`` are those its server offers beyond the usual,
    ``space`` is the memory it serves, where that is not the project's.
    """

    project: Path | None
    home: Path
    env: Mapping[str, str]
    words: tuple[str, ...]
    tools: str = ""
    space: str | None = None
    captures: bool = True


class Host(NamedTuple):
    """A host: its name for people, what it is to have, and whether a project can have it."""

    title: str
    wanted: Callable[[Asked], Wanted]
    has_projects: bool = True


def claude_code(asked: Asked) -> Wanted:
    """A plugin in the folder of skills, from where it is loaded without being registered."""
    if asked.space is not None:
        raise BadSetting(
            "the plugin uses the memory of the project it is in",
            remedy=f'space = "{asked.space}" in the project\'s recollect.toml names another',
        )
    if asked.project is not None:
        home = asked.project / ".claude"
        root = asked.project
    else:
        named = asked.env.get("CLAUDE_CONFIG_DIR")
        home = Path(named).expanduser() if named else asked.home / ".claude"
        root = home if named else asked.home
    place = home / "skills" / _NAME
    return Wanted(
        "claude-code",
        place,
        root,
        files=plugin_files(
            place, asked.words, mcp=_words_of_server(asked), captures=asked.captures
        ),
        after=(
            "Claude Code loads it with its next session, as recollect@skills-dir"
            + (", once the project's folder is trusted" if asked.project else ""),
            "claude plugin list shows it; claude plugin disable recollect@skills-dir rests it",
        ),
    )


def cursor(asked: Asked) -> Wanted:
    """An entry in Cursor's list of MCP servers."""
    # Cursor starts a user's servers in the home folder, and says in a variable where it is.
    server = _server(asked)
    if asked.space is None:
        server |= {"env": {_PROJECT: "${workspaceFolder}"}}
    path = (asked.project or asked.home) / ".cursor" / "mcp.json"
    after = ("restart Cursor, then look at Settings, MCP",)
    return _in_list("cursor", path, asked.project or asked.home, server, after)


def claude_desktop(asked: Asked) -> Wanted:
    """An entry in the desktop app's list of MCP servers; it has no project, so the memory
    is one of its own."""
    server = _server(asked._replace(space=asked.space or "desktop"))
    path = _desktop_folder(asked) / "claude_desktop_config.json"
    root = asked.home if path.is_relative_to(asked.home) else path.parent
    return _in_list("claude-desktop", path, root, server, ("restart Claude Desktop",))


def codex(asked: Asked) -> Wanted:
    """A table in Codex's settings."""
    named = asked.env.get("CODEX_HOME")
    if asked.project is not None:
        folder, root = asked.project / ".codex", asked.project
    elif named:
        folder = root = Path(named).expanduser()
    else:
        folder, root = asked.home / ".codex", asked.home
    path = folder / "config.toml"
    entry = Entry(path, ("mcp_servers", _NAME), _server(asked))
    after = ("Codex has it with its next session; /mcp shows it",)
    return Wanted("codex", path, root, entries=(entry,), after=after)


HOSTS = {
    "claude-code": Host("Claude Code", claude_code),
    "cursor": Host("Cursor", cursor),
    "claude-desktop": Host("Claude Desktop", claude_desktop, has_projects=False),
    "codex": Host("Codex", codex),
}


def own_command() -> tuple[str, ...]:
    """How a host, whose PATH is its own, can start this very installation."""
    if not sys.executable:
        raise BadSetting("nobody knows how to start Recollect here", remedy="--command COMMAND")
    script = Path(sys.executable).with_name("recollect.exe" if sys.platform == "win32" else _NAME)
    if script.is_file():
        return (str(script),)
    # -P: a folder that an agent works in must not be able to bring modules of its own.
    return (sys.executable, "-P", "-m", _NAME)


def _words_of_server(asked: Asked) -> tuple[str, ...]:
    space = ("--space", asked.space) if asked.space else ()
    tools = ("--tools", asked.tools) if asked.tools else ()
    return (*asked.words, "mcp", *space, *tools)


def _server(asked: Asked) -> dict[str, Any]:
    command, *args = _words_of_server(asked)
    return {"command": command, "args": args}


def _in_list(
    host: str, path: Path, root: Path, server: Mapping[str, Any], after: tuple[str, ...]
) -> Wanted:
    entry = Entry(path, ("mcpServers", _NAME), server)
    return Wanted(host, path, root, entries=(entry,), after=after)


def _desktop_folder(asked: Asked) -> Path:
    if sys.platform == "darwin":
        return asked.home / "Library" / "Application Support" / "Claude"
    if sys.platform == "win32":
        return Path(asked.env.get("APPDATA") or asked.home / "AppData" / "Roaming") / "Claude"
    return Path(asked.env.get("XDG_CONFIG_HOME") or asked.home / ".config") / "Claude"
