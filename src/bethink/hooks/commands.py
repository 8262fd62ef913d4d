"""The commands `hook`, `install` and `uninstall`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from bethink.cli.app import App, confirm
from bethink.cli.options import command, option
from bethink.cli.output import bold, dim, green, printable, red, yellow
from bethink.config.paths import find_project, home_folder, working_folder
from bethink.core import plural
from bethink.core.json_values import Json
from bethink.errors import NotFound
from bethink.hooks.dispatch import EVENTS, main
from bethink.hooks.install import start
from bethink.hooks.install.hosts import HOSTS, Installation, InstallRequest, plan_host
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
        'echo \'{"cwd": ".", "prompt": "which port?"}\' | bethink hook user-prompt-submit',
        "bethink install claude-code",
    ],
)
@click.argument("event", type=click.Choice(list(EVENTS)), metavar="EVENT")
def hook(app: App, event: str) -> int:
    """Run a hook for a host; install sets hooks up.

    Reads the host's JSON from standard input and writes the reply as JSON. EVENT is
    session-start, user-prompt-submit, post-tool-use, stop, pre-compact or session-end.
    Ends within the event's deadline with exit code 0, with a complete reply or none;
    errors are logged to hooks.log in the state folder.
    """
    if app.space is not None:
        # The dispatcher usually runs without click and reads only the environment.
        os.environ["BETHINK_SPACE"] = app.space
    return main([event])


_EXIT_CONFLICT = 2
_host = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
_project = click.option("--project", is_flag=True, help="For this project only, not for the user.")
_dry_run = click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
_yes = click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")


@command(
    "install",
    examples=[
        "bethink install claude-code       # shows the changes, then asks",
        "bethink install claude-code --project --yes",
        "bethink install cursor --tools timeline,undo",
        "bethink install vscode --dry-run",
    ],
)
@_host
@_project
@_dry_run
@_yes
@option("--force", "Also replace files that are not ours or were changed.")
@option("--tools A,B,...", "Tools beyond the default ones, or all.", default="")
@option("--no-capture", "Claude Code: recall only, do not store sessions.")
@option("--command start TEXT", "Command that starts Bethink; default: its path.")
@option("--no-check", "Do not start the server once before anything is written.")
def install(app: App, /, host: str, **options: Any) -> int:
    """Install this memory in Claude Code, Cursor, Codex ...

    HOST is claude-code, codex, gemini, vscode, opencode, cursor, zed or claude-desktop.
    Shows every file it would write as a diff and asks. In a file of yours it changes one
    entry and keeps every other byte, comments included. `bethink uninstall` reverts exactly
    that. Running it again updates an older installation.

    For Claude Code and Gemini CLI it is a plugin with hooks, the MCP server and a skill; for
    the others the MCP server. The server is started once; if it fails, nothing is written.
    """  # fmt: skip
    installation = _requested_installation(app, host, options)
    manifest_file = manifest_path(host, installation.target, os.environ)
    plan = plan_install(installation, read_manifest(manifest_file), force=options["force"])

    def prepare() -> None:
        if not options["no_check"] and (plan.changes or not plan.kept):
            count = start.try_server(installation.server)
            app.note(dim(f"the server starts: {plural(count, 'tool')}"))

    question = "Write these changes?"
    done = _confirm_and_apply(app, plan, manifest_file, options, question=question, prepare=prepare)
    app.document(_plan_json(host, installation, plan, done=done))
    _print_result(app, plan, done=done, verb="installed in", host=host)
    for line in installation.after if done or not plan.changes else ():
        app.note(dim(line))
    return _EXIT_CONFLICT if plan.kept and not plan.changes else 0


@command(
    "uninstall",
    examples=["bethink uninstall claude-code", "bethink uninstall cursor --project --yes"],
)
@_host
@_project
@_dry_run
@_yes
@option("--force", "Also remove files that were changed since.")
def uninstall(app: App, /, host: str, **options: Any) -> int:
    """Remove what install wrote.

    Nothing else changes. Files that were changed since are shown and kept, unless --force.
    The memories stay.
    """
    installation = _requested_installation(app, host, options)
    manifest_file = manifest_path(host, installation.target, os.environ)
    known = read_manifest(manifest_file)
    if not known.files:
        raise NotFound(f"nothing is installed in {installation.target}")
    plan = plan_uninstall(known, installation.root, force=options["force"])
    done = _confirm_and_apply(app, plan, manifest_file, options, question="Remove this?")
    app.document(_plan_json(host, installation, plan, done=done))
    _print_result(app, plan, done=done, verb="removed from", host=host)
    return 0


def _requested_installation(app: App, host: str, options: Json) -> Installation:
    if options["project"] and not HOSTS[host].project:
        raise click.UsageError(f"{HOSTS[host].title} has no projects; omit --project")
    given = options.get("start")
    command_line = tuple(shlex.split(given)) if given else start.own_command()
    if not command_line:
        raise click.UsageError("--command is empty; give the command that starts Bethink")
    home = home_folder(os.environ)
    request = InstallRequest(
        _project_root(home) if options["project"] else None,
        home,
        os.environ,
        command_line,
        _validate_tools(options.get("tools", "")),
        app.space,
        captures=not options.get("no_capture", False),
    )
    return plan_host(host, request)


def _validate_tools(tools: str) -> str:
    """Validate the names of the tools here, where the error can be shown."""
    if tools:
        select_tools = import_module("bethink.server.tools").select_tools
        select_tools([name.strip() for name in tools.split(",") if name.strip()])
    return tools


def _project_root(home: Path) -> Path:
    folder = working_folder()
    if folder is None:
        raise click.UsageError("the working directory does not exist; change to another folder")
    return find_project(folder, home) or folder


def _confirm_and_apply(
    app: App,
    plan: Plan,
    manifest_file: Path,
    options: Json,
    *,
    question: str,
    prepare: Callable[[], None] = lambda: None,
) -> bool:
    """Show the plan, confirm, prepare and apply it; return whether anything was done."""
    for change in plan.changes:
        _print_diff(app, change)
    if options["dry_run"]:
        return False
    due = bool(plan.changes)
    if due and not (options["yes"] or confirm(app, question)):
        return False
    prepare()
    # Record it first, so that an interrupted installation can be undone.
    if plan.manifest.files:
        write_manifest(manifest_file, plan.manifest)
    apply_plan(plan)
    write_manifest(manifest_file, plan.manifest)
    return due


def _diff(change: Change) -> list[str]:
    texts = ((part or b"").decode("utf-8", "replace") for part in (change.before, change.after))
    before, after = (text.splitlines(keepends=True) for text in texts)
    name = str(change.path)
    old, new = (name if part is not None else os.devnull for part in (change.before, change.after))
    return [line.rstrip("\r\n") for line in unified_diff(before, after, old, new)]


def _print_diff(app: App, change: Change) -> None:
    styles = {"+": green, "-": red, "@": dim}
    for line in _diff(change):
        style = bold if line.startswith(("+++", "---")) else styles.get(line[:1])
        text = printable(line)
        app.out.block(style(text) if style is not None else text, stored=True)


def _print_result(app: App, plan: Plan, *, done: bool, verb: str, host: str) -> None:
    for file in plan.kept:
        app.out.line(yellow("kept"), f" {file.path}: {file.why}; --force overrides")
    if done:
        app.out.line(green(f"{verb} {HOSTS[host].title}"), f": {plural(len(plan.changes), 'file')}")
    elif plan.changes:
        app.note(dim("nothing was written; use --yes to apply"))
    elif not plan.kept:
        app.out.line("nothing to change")


def _plan_json(host: str, installation: Installation, plan: Plan, *, done: bool) -> Json:
    return {
        "host": host,
        "place": str(installation.target),
        "done": done,
        "changes": [
            {"path": str(change.path), "action": _action(change), "diff": _diff(change)}
            for change in plan.changes
        ],
        "kept": [{"path": str(file.path), "why": file.why} for file in plan.kept],
        "after": list(installation.after),
    }


def _action(change: Change) -> str:
    if change.before is None:
        return "create"
    return "remove" if change.after is None else "change"
