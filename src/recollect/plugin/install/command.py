"""`install` and `uninstall`: first what would be written, then, if that is meant, the deed."""

from __future__ import annotations

import os
import shlex
from difflib import unified_diff
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from recollect.cli.app import App
from recollect.cli.confirming import confirmed
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, dim, green, plural, red, shown, yellow
from recollect.errors import NotFound
from recollect.places import find_project, home_folder, working_folder
from recollect.plugin.install.hosts import HOSTS, Asked, own_command
from recollect.plugin.install.manifest import manifest_path, read_manifest, write_manifest
from recollect.plugin.install.planning import Change, Plan, carry_out, plan_install, plan_uninstall
from recollect.plugin.install.wanted import Wanted

_IN_THE_WAY = 2
_host = click.argument("host", type=click.Choice(list(HOSTS)), metavar="HOST")
_project = click.option("--project", is_flag=True, help="For this project, not for the user.")
_dry_run = click.option("-n", "--dry-run", is_flag=True, help="Only show what would change.")
_yes = click.option("-y", "--yes", is_flag=True, help="Do it without asking.")


@command(
    "install",
    examples=[
        "recollect install claude-code       # shows what it would write, and asks",
        "recollect install claude-code --project --yes",
        "recollect install cursor --tools timeline,undo",
        "recollect install codex --dry-run",
    ],
)
@_host
@_project
@_dry_run
@_yes
@click.option("--force", is_flag=True, help="Also replace what is not ours, or was changed.")
@click.option("--tools", default="", metavar="A,B,...", help="Tools beyond the usual, or all.")
@click.option("--no-capture", is_flag=True, help="Claude Code: recall only, keep no sessions.")
@click.option("--command", "start", metavar="TEXT", help="How to start Recollect; else its path.")
@pass_app
def install(app: App, /, host: str, **how: Any) -> int:
    """Put this memory into Claude Code, Cursor, Codex ...

    HOST is claude-code, cursor, claude-desktop or codex. Shows every file it would write as
    a diff and asks. Changes nothing else: in a file of yours one entry, the rest to the byte
    as it was. `recollect uninstall` takes exactly that back. Run again it brings an older
    installation up to date.

    For Claude Code it is a plugin with hooks, the MCP server and a skill; for the others the
    MCP server (needs the extra mcp).
    """  # fmt: skip
    wanted = _wanted(app, host, how)
    kept_at = manifest_path(host, wanted.place, os.environ)
    plan = plan_install(wanted, read_manifest(kept_at), force=how["force"])
    done = _carried_out(app, plan, kept_at, how, "Write this?")
    if app.json:
        app.out.json(_json(host, wanted, plan, done=done))
    else:
        _report(app, plan, done=done, said="installed into", host=host)
        for line in wanted.after if done or not plan.changes else ():
            app.note(dim(line))
        _note_extra(app)
    return _IN_THE_WAY if plan.kept and not plan.changes else 0


@command(
    "uninstall",
    examples=["recollect uninstall claude-code", "recollect uninstall cursor --project --yes"],
)
@_host
@_project
@_dry_run
@_yes
@click.option("--force", is_flag=True, help="Also take away what was changed since.")
@pass_app
def uninstall(app: App, /, host: str, **how: Any) -> int:
    """Take back what install has written.

    And nothing else. Files that were changed since are shown and kept, unless --force. The
    memories stay.
    """
    wanted = _wanted(app, host, how)
    kept_at = manifest_path(host, wanted.place, os.environ)
    known = read_manifest(kept_at)
    if not known.files:
        raise NotFound(f"nothing was installed into {wanted.place}")
    plan = plan_uninstall(known, wanted.root, force=how["force"])
    done = _carried_out(app, plan, kept_at, how, "Take this back?")
    if app.json:
        app.out.json(_json(host, wanted, plan, done=done))
    else:
        _report(app, plan, done=done, said="removed from", host=host)
    return 0


def _wanted(app: App, host: str, how: dict[str, Any]) -> Wanted:
    if how["project"] and not HOSTS[host].has_projects:
        raise click.UsageError(f"there are no projects in {HOSTS[host].title}")
    start = how.get("start")
    words = tuple(shlex.split(start)) if start else own_command()
    if not words:
        raise click.UsageError("--command names no command")
    home = home_folder(os.environ)
    asked = Asked(
        _root(home) if how["project"] else None,
        home,
        os.environ,
        words,
        _known_tools(how.get("tools", "")),
        app.space,
        captures=not how.get("no_capture", False),
    )
    return HOSTS[host].wanted(asked)


def _known_tools(named: str) -> str:
    """The tools as a server takes them; one that it does not have is refused here, where
    somebody can be told."""
    if named:
        chosen = import_module("recollect.mcp.tools").chosen
        chosen([name.strip() for name in named.split(",") if name.strip()])
    return named


def _root(home: Path) -> Path:
    folder = working_folder()
    if folder is None:
        raise click.UsageError("the working directory is gone")
    return find_project(folder, home) or folder


def _carried_out(app: App, plan: Plan, kept_at: Path, how: dict[str, Any], asked: str) -> bool:
    """Shows the plan and does it, if that is meant; whether it was done."""
    if not app.json:
        for change in plan.changes:
            _print_diff(app, change)
    if how["dry_run"]:
        return False
    if plan.changes and not (how["yes"] or confirmed(app, asked)):
        return False
    # Noted before it is done: what was begun can be taken back, whatever happens.
    if plan.manifest.files:
        write_manifest(kept_at, plan.manifest)
    carry_out(plan)
    write_manifest(kept_at, plan.manifest)
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
        told = shown(line)
        app.out.line(ink(told) if ink is not None else told)


def _report(app: App, plan: Plan, *, done: bool, said: str, host: str) -> None:
    for one in plan.kept:
        app.out.line(yellow("kept"), f" {one.path}: {one.why}; --force would not")
    if done:
        app.out.line(green(f"{said} {HOSTS[host].title}"), f": {plural(len(plan.changes), 'file')}")
    elif plan.changes:
        app.note(dim("nothing was written; --yes does it"))
    elif not plan.kept:
        app.out.line("nothing to change")


def _note_extra(app: App) -> None:
    from importlib.util import find_spec  # only here

    if find_spec("mcp") is None:
        app.note(yellow("the server needs an extra: "), "pip install 'recollect[mcp]'")


def _json(host: str, wanted: Wanted, plan: Plan, *, done: bool) -> dict[str, Any]:
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
