"""`worker`: the local process that keeps what is slow to start; looked at, started, ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import click

from recollect.cli.app import App
from recollect.cli.options import Group, command, pass_app
from recollect.cli.printing import Piece, bold, dim, green, moment, plural, yellow
from recollect.errors import StoreError

_NONE = 1


@click.group(
    "worker",
    cls=Group,
    examples=[
        "recollect worker",
        "recollect worker status --json",
        "recollect worker stop",
        "recollect config set worker on",
    ],
)
@click.pass_context
def worker(ctx: click.Context) -> int:
    """Look at, start and stop the worker, which keeps models loaded.

    A process of your own that keeps models loaded and works off what was handed over. It
    starts by itself where the setting worker wants it and ends when nothing was asked of
    it for as long as worker_idle says. Whatever it does not answer is done without it.
    """
    return _status(ctx.ensure_object(App)) if ctx.invoked_subcommand is None else 0


@command("status", examples=["recollect worker status", "recollect worker status --json"])
@pass_app
def status(app: App) -> int:
    """Say whether there is a worker, and what it does.

    Exit code 1 where there is none.
    """
    return _status(app)


def _status(app: App) -> int:
    from recollect.worker.client import control  # help does without

    found = control("status")
    if app.json:
        app.out.json(_told(found))
    elif found is None:
        app.out.line(yellow("no worker is running"), f"; the setting is {app.settings.worker}")
        _print_left(app)
    else:
        _print(app, found)
    return 0 if found is not None else _NONE


@command("start", examples=["recollect worker start"])
@pass_app
def start(app: App) -> int:
    """Start a worker, unless there is one."""
    from recollect.worker.client import begin  # help does without

    found = begin(app.settings)
    if found is None:
        raise StoreError("no worker could be started", remedy="recollect worker run shows why")
    if app.json:
        app.out.json(_told(found))
    else:
        _print(app, found)
    return 0


@command("stop", examples=["recollect worker stop"])
@pass_app
def stop(app: App) -> int:
    """End the worker, and wait until it has ended.

    What was handed over and is not done yet is kept for the next one. Exit code 1 where
    there was none.
    """
    from recollect.worker.ending import end  # help does without

    ended = end()
    if ended is False:
        raise StoreError("the worker has not ended", remedy="recollect worker status")
    if app.json:
        app.out.json({"stopped": bool(ended)})
    else:
        app.note(green("stopped") if ended else "no worker was running")
    return 0 if ended else _NONE


@command("run", examples=["recollect worker run"])
@pass_app
def run(app: App) -> int:
    """Be the worker, here, with its log on standard error.

    For looking at it; Ctrl-C ends it. Exit code 1 where there is one already.
    """
    from recollect.worker.client import control  # help does without
    from recollect.worker.place import find_place
    from recollect.worker.running import run_here

    found = control("ping")
    if found is not None:
        app.note(f"there is a worker already: process {found['pid']}")
        return _NONE
    return run_here(find_place(), app.settings.worker_idle)


def _told(found: dict[str, Any] | None) -> dict[str, Any]:
    """The status of a worker; of none, what is left for the next one."""
    from recollect.worker.place import find_place  # help does without
    from recollect.worker.spool import Spool

    place = find_place()
    spool = Spool(place.spool)
    left = {"queued": len(spool.waiting()), "given_up": len(spool.failed())}
    places = {"log": str(place.log), "socket": str(place.door)}
    if found is None:
        return {"running": False, "jobs": left, **places}
    return {"running": True, **found, **places}


def _print(app: App, found: dict[str, Any]) -> None:
    out, jobs = app.out, found["jobs"]
    out.line(green("running"), f": process {found['pid']}, version {found['version']}")
    for name, told in _facts(found):
        out.line("  ", dim(f"{name:<8}"), told)
    if jobs["given_up"]:
        out.line("  ", yellow(f"given up {plural(jobs['given_up'], 'hand-over')}"))


def _facts(found: dict[str, Any]) -> Iterator[tuple[str, Piece]]:
    jobs = found["jobs"]
    yield "since", moment(datetime.fromisoformat(found["since"]))
    yield "idle", f"{found['idle_s']:.0f} s; ends after {found['idle_limit_s']:,} s"
    names = ("done", "failed", "active", "queued")
    yield "jobs", ", ".join(f"{jobs[name]:,} {name}" for name in names)
    if found["memory_bytes"]:
        yield "memory", f"{found['memory_bytes'] / 1e6:,.0f} MB"
    for space in found["spaces"]:
        yield "space", bold(space)
    yield "log", str(_told(None)["log"])


def _print_left(app: App) -> None:
    left = _told(None)["jobs"]
    if left["queued"] or left["given_up"]:
        told = f"{left['queued']:,} handed over and not done yet, {left['given_up']:,} given up"
        app.out.line(dim(told))


for one in (status, start, stop, run):
    worker.add_command(one)
