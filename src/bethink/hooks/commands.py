"""The commands `hook`, `install` and `uninstall`."""

from __future__ import annotations

import os
import shlex
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bethink.cli.app import App, confirm
from bethink.cli.options import command, pass_app
from bethink.cli.output import bold, dim, green, plural, printable, red, yellow
from bethink.config.paths import find_project, home_folder, working_folder
from bethink.errors import NotFound, install_command
from bethink.hooks.dispatch import EVENTS, main
from bethink.hooks.install.hosts import HOSTS, Installation, InstallRequest, own_command
from bethink.hooks.install.plan import (
    Change,
    Plan,
    apply_plan,
    manifest_path,
    plan_install,
    plan_uninstall,
    read_manifest,
    write_manifest,
)


@command(
    "hook",
    examples=[
        'echo \'{"session_id": "1", "prompt": "which port?"}\' | bethink hook user-prompt-submit',
        "bethink install claude-code",
    ],
)
@click.argument("event", type=click.Choice(list(EVENTS)), metavar="EVENT")
@pass_app
def hook(app: App, event: str) -> int:
    """Answer a host's hook; install sets them up.

    Reads the host's JSON from standard input and writes the reply as JSON. EVENT is
    session-start, user-prompt-submit, post-tool-use, stop, pre-compact or session-end.
    Ends within the event's deadline with exit code 0, with a complete reply or none;
    errors are logged to hooks.log in the state folder.
    """
    if app.space is not None:
        # The one way by which a hook learns what holds, called without click as it usually is.
        os.environ["BETHINK_SPACE"] = app.space
    return main([event])


_EXIT_CONFLICT = 2
_host = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
_project = click.option("--project", is_flag=True, help="For this project, not for the user.")
_dry_run = click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
_yes = click.option("-y", "--yes", is_flag=True, help="Do it without asking.")


@command(
    "install",
    examples=[
        "bethink install claude-code       # shows what it would write, and asks",
        "bethink install claude-code --project --yes",
        "bethink install cursor --tools timeline,undo",
        "bethink install codex --dry-run",
    ],
)
@_host
@_project
@_dry_run
@_yes
@click.option("--force", is_flag=True, help="Also replace what is not ours, or was changed.")
@click.option("--tools", default="", metavar="A,B,...", help="Tools beyond the usual, or all.")
@click.option("--no-capture", is_flag=True, help="Claude Code: recall only, keep no sessions.")
@click.option("--command", "start", metavar="TEXT", help="How to start Bethink; else its path.")
@pass_app
def install(app: App, /, host: str, **how: Any) -> int:
    """Install this memory into Claude Code, Cursor, Codex ...

    HOST is claude-code, cursor, claude-desktop or codex. Shows every file it would write
    as a diff and asks. In a file of yours it changes one entry and keeps every other
    byte. `bethink uninstall` reverts exactly that. Running it again updates an older
    installation.

    For Claude Code it is a plugin with hooks, the MCP server and a skill; for the others
    the MCP server (needs the extra mcp).
    """  # fmt: skip
    wanted = _requested_installation(app, host, how)
    kept_at = manifest_path(host, wanted.place, os.environ)
    plan = plan_install(wanted, read_manifest(kept_at), force=how["force"])
    done = _confirm_and_apply(app, plan, kept_at, how, "Write this?")
    if app.json:
        app.out.json(_plan_json(host, wanted, plan, done=done))
    else:
        _print_result(app, plan, done=done, verb="installed into", host=host)
        for line in wanted.after if done or not plan.changes else ():
            app.note(dim(line))
        _note_extra(app)
    return _EXIT_CONFLICT if plan.kept and not plan.changes else 0


@command(
    "uninstall",
    examples=["bethink uninstall claude-code", "bethink uninstall cursor --project --yes"],
)
@_host
@_project
@_dry_run
@_yes
@click.option("--force", is_flag=True, help="Also take away what was changed since.")
@pass_app
def uninstall(app: App, /, host: str, **how: Any) -> int:
    """Remove what install has written.

    And nothing else. Files that were changed since are shown and kept, unless --force.
    The memories stay.
    """
    wanted = _requested_installation(app, host, how)
    kept_at = manifest_path(host, wanted.place, os.environ)
    known = read_manifest(kept_at)
    if not known.files:
        raise NotFound(f"nothing was installed into {wanted.place}")
    plan = plan_uninstall(known, wanted.root, force=how["force"])
    done = _confirm_and_apply(app, plan, kept_at, how, "Take this back?")
    if app.json:
        app.out.json(_plan_json(host, wanted, plan, done=done))
    else:
        _print_result(app, plan, done=done, verb="removed from", host=host)
    return 0


def _requested_installation(app: App, host: str, how: dict[str, Any]) -> Installation:
    if how["project"] and not HOSTS[host].has_projects:
        raise click.UsageError(f"there are no projects in {HOSTS[host].title}")
    start = how.get("start")
    words = tuple(shlex.split(start)) if start else own_command()
    if not words:
        raise click.UsageError("--command names no command")
    home = home_folder(os.environ)
    asked = InstallRequest(
        _project_root(home) if how["project"] else None,
        home,
        os.environ,
        words,
        _validate_tools(how.get("tools", "")),
        app.space,
        captures=not how.get("no_capture", False),
    )
    return HOSTS[host].wanted(asked)


def _validate_tools(tools: str) -> str:
    """Validate the names of the tools here, where the error can be shown."""
    if tools:
        chosen = import_module("bethink.server.tools").chosen
        chosen([name.strip() for name in tools.split(",") if name.strip()])
    return tools


def _project_root(home: Path) -> Path:
    folder = working_folder()
    if folder is None:
        raise click.UsageError("the working directory is gone")
    return find_project(folder, home) or folder


def _confirm_and_apply(
    app: App, plan: Plan, manifest_file: Path, how: dict[str, Any], question: str
) -> bool:
    """Show the plan, confirm and apply it; return whether anything was done."""
    if not app.json:
        for change in plan.changes:
            _print_diff(app, change)
    if how["dry_run"]:
        return False
    if plan.changes and not (how["yes"] or confirm(app, question)):
        return False
    # Noted before it is done: what was begun can be taken back, whatever happens.
    if plan.manifest.files:
        write_manifest(manifest_file, plan.manifest)
    apply_plan(plan)
    write_manifest(manifest_file, plan.manifest)
    return bool(plan.changes)


def _diff(change: Change) -> list[str]:
    before, after = (_lines(part) for part in (change.before, change.after))
    name = str(change.path)
    old, new = (name if part is not None else os.devnull for part in (change.before, change.after))
    return [line.rstrip("\r\n") for line in unified_diff(before, after, old, new)]


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def _print_diff(app: App, change: Change) -> None:
    inks = {"+": green, "-": red, "@": dim}
    for line in _diff(change):
        ink = bold if line.startswith(("+++", "---")) else inks.get(line[:1])
        told = printable(line)
        app.out.line(ink(told) if ink is not None else told)


def _print_result(app: App, plan: Plan, *, done: bool, verb: str, host: str) -> None:
    for one in plan.kept:
        app.out.line(yellow("kept"), f" {one.path}: {one.why}; --force would not")
    if done:
        app.out.line(green(f"{verb} {HOSTS[host].title}"), f": {plural(len(plan.changes), 'file')}")
    elif plan.changes:
        app.note(dim("nothing was written; --yes does it"))
    elif not plan.kept:
        app.out.line("nothing to change")


def _note_extra(app: App) -> None:
    from importlib.util import find_spec  # only here

    if find_spec("mcp") is None:
        app.note(yellow("the server needs an extra: "), install_command("mcp"))


def _plan_json(host: str, wanted: Installation, plan: Plan, *, done: bool) -> dict[str, Any]:
    return {
        "host": host,
        "place": str(wanted.place),
        "done": done,
        "changes": [
            {"path": str(one.path), "action": _action(one), "diff": _diff(one)}
            for one in plan.changes
        ],
        "kept": [{"path": str(one.path), "why": one.why} for one in plan.kept],
        "after": list(wanted.after),
    }


def _action(change: Change) -> str:
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "change"
