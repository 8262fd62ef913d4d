"""The commands `sync`, `conflicts` and `settle`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.app import App
from bethink.cli.options import command, complete_ids, option
from bethink.cli.output import bold, dim, format_time, green, one_line, yellow
from bethink.core import plural
from bethink.core.json_values import iso
from bethink.errors import BethinkError
from bethink.render.wire import item_json
from bethink.sync.peer import serve_lines

if TYPE_CHECKING:
    from bethink.api.sync import Conflicted
    from bethink.core.json_values import Json
    from bethink.memory import Memory
    from bethink.sync.session import SyncReport

_STATUS = "status"


@command(
    "sync",
    examples=[
        "bethink sync ~/Dropbox/memory",
        "bethink sync ~/Dropbox/memory --accept desktop",
        "bethink sync /mnt/share/memory --key ~/.bethink-key --ceiling 1",
        "bethink sync ssh://desktop",
        "bethink sync https://memory.example.org",
        "bethink sync --spaces work,home --watch",
        "bethink sync status",
    ],
)
@click.argument("target", metavar="[TARGET]", default="")
@option("--accept NAME", "Take the changes of this machine from now on; repeatable.", multiple=True)
@option("--ceiling 0-3", "Nothing above it goes there (default: 2).", click.IntRange(0, 3))
@option("--key FILE", "Encrypt the folder with the contents of this file.")
@option("--name TEXT", "What this machine is called, the first time.", default="")
@option("--retire ID", "Remove the files of a machine that is gone.")
@option("--spaces NAMES", "Sync several spaces: names with commas, or all.", default="")
@option("--watch", "Go on, and sync every --every seconds.")
@option("--every SECONDS", "How often --watch looks.", click.FloatRange(min=1), shown=30)
@option("--stdio", "Answer another machine on standard input; ssh runs it.")
def sync(
    app: App, /, target: str, *, spaces: str, watch: bool, every: float, stdio: bool, **options: Any
) -> int:
    """Keep a space the same on several machines.

    TARGET is a folder (a network drive, Syncthing, Dropbox, a git repository), a machine
    (ssh://HOST) or a server (the URL of bethink serve, with its token in
    BETHINK_SYNC_TOKEN); without one, those it was synchronised with before. A new machine
    in a folder is accepted by name once, or by the passphrase (BETHINK_SYNC_PASSPHRASE)
    or key that encrypts the folder. status shows this machine, the others and a hash that
    is equal where the memories are.
    """
    names = app.space_names() if spaces == "all" else [one for one in spaces.split(",") if one]
    while True:
        failed = False
        for name in names or [""]:
            if name:
                app.use_space(name)
            given = dict(options, stdio=stdio, is_one_of_all=spaces == "all")
            failed |= _sync_space(app, target, given, goes_on=watch)
        if not watch:
            return int(failed)
        time.sleep(every)


def _sync_space(app: App, target: str, options: Json, *, goes_on: bool) -> bool:
    retired, stdio, is_one_of_all = (
        options.pop(one) for one in ("retire", "stdio", "is_one_of_all")
    )
    with app.open(create=stdio or (target not in ("", _STATUS) and retired is None)) as memory:
        if stdio:
            _answer(memory)
            return False
        if target == _STATUS:
            _print_status(app, memory.sync_status())
            return False
        if retired is not None:
            if not target:
                raise click.UsageError("give the TARGET of which --retire removes files")
            memory.retire_machine(target, retired)
        targets = [target] if target else [one["target"] for one in memory.sync_status()["targets"]]
        if not targets and not is_one_of_all:
            raise click.UsageError("give a TARGET the first time: a folder, ssh://HOST, a URL")
        return _sync_all(app, memory, targets, options, goes_on=goes_on)


def _sync_all(
    app: App, memory: Memory, targets: list[str], options: Json, *, goes_on: bool
) -> bool:
    failed = False
    for place in targets:
        try:
            report = memory.sync_with(place, **options)
        except BethinkError as error:
            if not goes_on:
                raise
            app.note(yellow(f"{place}: {error.message}"))
            continue
        failed |= bool(report.problems)
        if not goes_on or report.changed or report.erased or report.sent or report.problems:
            _print_report(app, report, memory.sync_status()["name"])
    return failed


def _answer(memory: Memory) -> None:
    serve_lines(sys.stdin, sys.stdout, memory.answer_sync)


def _print_report(app: App, report: SyncReport, own: str) -> None:
    told = {name: value for name, value in asdict(report).items() if name != "unknown"}
    app.document(told | {"unknown": [{"id": one.id, "name": one.name} for one in report.unknown]})
    parts = [f"{plural(len(report.changed), 'memory')} changed here"]
    parts += [f"{len(report.erased)} erased"] if report.erased else []
    parts += [f"{plural(report.sent, 'operation')} sent"]
    app.out.line(green("synchronised"), f" with {report.target}: {', '.join(parts)}")
    names = [own, *(one.name for one in report.unknown)]
    for one in report.unknown:
        waits = dim(f"  {one.id}: nothing is taken from it yet")
        app.out.line(yellow("new machine "), bold(one.name), waits)
        code = one.name if names.count(one.name) == 1 else one.id
        app.out.line(dim(f"  accept it: bethink sync {report.target} --accept {code}"))
    for problem in report.problems:
        app.out.line(yellow("not applied "), problem)
    for name in report.held:
        app.out.line(
            yellow("held "), f"{name}: a change before it is missing, or needs a newer version"
        )
    for name in report.waiting:
        app.out.line(dim(f"{name} has not read all changes yet"))
    if report.conflicts:
        count = plural(report.conflicts, "memory")
        app.out.line(yellow(f"{count} changed in two places; see bethink conflicts"))
    app.out.line(dim(f"hash {report.digest}"))


def _print_status(app: App, status: Json) -> None:
    app.document(status)
    if not status["device"]:
        app.out.line(dim("never synchronised; bethink sync TARGET"))
        return
    app.out.line("this machine ", bold(status["name"]), dim(f"  {status['device']}"))
    for one in status["devices"]:
        app.out.line("machine ", bold(one["name"]), dim(f"  {one['id']}"))
    for one in status["targets"]:
        last = format_time(datetime.fromisoformat(one["last"]))
        details = f"  classification at most {one['ceiling']}, last on {last}"
        app.out.line(f"target {one['target']}", dim(details))
    for one in status["held"]:
        app.out.line(yellow("held "), one)
    app.out.line(f"{plural(status['conflicts'], 'conflict')}")
    app.out.line(f"hash {status['hash']}")


@command("conflicts", examples=["bethink conflicts", "bethink conflicts --json"])
def conflicts(app: App) -> int:
    """List memories that were changed on two machines at once.

    All that was written is kept: the later text is current, and the other in the history
    until bethink settle decides.
    """
    with app.open() as memory:
        found = memory.conflicts()
    documents = [
        {
            "item": item_json(one.item),
            "others": [{**other._asdict(), "at": iso(other.at)} for other in one.others],
        }
        for one in found
    ]
    return app.listing(documents, lambda: _print_conflicts(app, found), "no conflicts")


def _print_conflicts(app: App, found: Sequence[Conflicted]) -> None:
    for one in found:
        app.out.line(bold(one.item.id), f"  {one_line(one.item.text, 90)}")
        for other in one.others:
            said = f": {one_line(other.text, 90)}" if other.text else ""
            shown = f" on {other.device}, {format_time(other.at)}{said}"
            app.out.line(yellow(f"  {other.kind}"), shown)


@command("settle", examples=["bethink settle 1abc", "bethink settle 1abc --keep other"])
@click.argument("item", metavar="ID", shell_complete=complete_ids)
@option(
    "--keep", "What holds from now on.", click.Choice(["current", "other", "both"]), shown="current"
)
def settle(app: App, item: str, keep: Any) -> None:
    """Decide what a memory says that two machines changed.

    current keeps it as it is, other takes the other version (or forgets it, where it was
    forgotten there), both stores the other text as a memory of its own. The decision goes
    to all machines.
    """
    with app.open() as memory:
        settled = memory.settle(item, keep)
    done, text = "forgot " if settled.live_to else "settled ", one_line(settled.text, 90)
    app.report(item_json(settled), green(done), bold(settled.id), f"  {text}")
