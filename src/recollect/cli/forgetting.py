"""`forget` and `restore`: first what would go, then, if that is meant, the deed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from recollect.cli.app import App
from recollect.cli.confirming import confirmed
from recollect.cli.options import command, pass_app
from recollect.cli.printing import bold, dim, green, one_line, plural, yellow

if TYPE_CHECKING:
    from recollect.memory import Forgotten


@command(
    "forget",
    examples=[
        "recollect forget 1abc            # shows what would go, and asks",
        "recollect forget 1abc 2def --yes",
        "recollect forget 1abc --erase --yes",
        "recollect forget --sweep --dry-run   # what is ripe: long unused, unimportant",
        "recollect forget --sweep --token 3f9a0c11d2e4",
    ],
)
@click.argument("ids", metavar="[ID...]", nargs=-1)
@click.option("--sweep", is_flag=True, help="Instead: all that is ripe for forgetting, softly.")
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would go.")
@click.option(
    "--share",
    type=float,
    default=0.02,
    show_default=True,
    metavar="SHARE",
    help="With --sweep: the share of the memories that may go.",
)
@click.option("--token", metavar="TEXT", help="With --sweep: only if it is still as it was shown.")
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="With --sweep: believe a clock more than a day ahead of the last write.",
)
@click.option("--erase", is_flag=True, help="Leave no byte of it; cannot be undone.")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@click.option("--reason", metavar="TEXT", default="forgotten", help="What the journal says.")
@pass_app
def forget(
    app: App, /, ids: tuple[str, ...], *, erase: bool, yes: bool, reason: str, **how: Any
) -> int:
    """Take memories out of recall, or erase them.

    Without --yes it shows what would go; at a terminal it then asks. A forgotten
    memory can be restored. An erased one is gone, with its history, its vector and
    every index entry, and so is what was made from it. Pinned and protected memories are
    only let go by an erase.

    --sweep takes no ID: it finds what has long been unused and is unimportant, shows it
    with a token, and lets go of it with that token or --yes. `recollect undo` brings it
    all back.
    """  # fmt: skip
    if how["sweep"]:
        return _sweep(app, ids, erase=erase, yes=yes, how=how)
    if not ids:
        raise click.UsageError("which memory? Give an ID, or --sweep for what is ripe")
    with app.open() as memory:
        would = memory.forget(*dict.fromkeys(ids), erase=erase, preview=True)
        if not yes and not app.json:
            _print_preview(app, would, erase=erase)
        if yes and not app.json:
            _print_kept(app, would)
        if not would.items:
            return _report(app, would, erase=erase)
        question = f"{'Erase' if erase else 'Forget'} {plural(len(would.items), 'memory')}?"
        if how["dry_run"] or not (yes or confirmed(app, question)):
            return _left_alone(app, would)
        done = memory.forget(
            *(item.id for item in would.items), erase=erase, preview=False, reason=reason
        )
    from dataclasses import replace  # click has it loaded already

    return _report(app, replace(done, kept=would.kept), erase=erase)


def _sweep(app: App, ids: tuple[str, ...], *, erase: bool, yes: bool, how: dict[str, Any]) -> int:
    from recollect.cli.maintaining import print_report, report_json  # seldom asked for

    if ids or erase:
        raise click.UsageError("--sweep finds memories itself and never erases")
    limits = {"share": how["share"], "clock_is_right": how["clock_is_right"]}
    with app.open() as memory:
        report = memory.maintain("forget", preview=True, **limits)
        preview = True
        if not app.json:
            print_report(app, report, preview=True)
        question = f"Forget {plural(report.plan.leaving, 'memory')}?"
        meant = not how["dry_run"] and bool(report.plan.steps)
        if meant and (how["token"] or yes or confirmed(app, question)):
            token = how["token"] or report.plan.token
            report = memory.maintain("forget", token=token, **limits)
            preview = False
    if app.json:
        app.out.json(report_json(report, preview=preview))
    elif not preview:
        app.out.line(green(f"forgotten {plural(len(report.done), 'memory')}"))
        app.out.line(dim(f"undo: recollect undo {report.run}"))
    return 0


def _left_alone(app: App, would: Forgotten) -> int:
    if app.json:
        app.out.json(_forgotten_json(would))
    else:
        app.note(dim("nothing was changed; --yes does it"))
    return 0


def _print_preview(app: App, would: Forgotten, *, erase: bool) -> None:
    doing = "would be erased" if erase else "would be forgotten"
    for item in would.items:
        app.out.line(yellow(doing), " ", bold(item.id), f"  {one_line(item.text, 70)}")
    for item in would.derived:
        app.out.line(yellow(doing), " ", bold(item.id), dim("  made from it"))
    for item_id in would.quarantined:
        app.out.line(yellow("would be quarantined "), bold(item_id), dim("  made from it, too"))
    for item_id in would.restored:
        app.out.line(dim("would come back into recall "), bold(item_id))
    _print_kept(app, would)


def _print_kept(app: App, told: Forgotten) -> None:
    for item_id, why in told.kept:
        app.out.line(dim("stays"), " ", bold(item_id), dim(f"  {why}; only --erase lets go of it"))


def _report(app: App, done: Forgotten, *, erase: bool) -> int:
    """What happened; 1 where nothing could go."""
    if app.json:
        app.out.json(_forgotten_json(done))
    elif not done.preview:
        for item in (*done.items, *done.derived):
            app.out.line(green("erased" if erase else "forgotten"), " ", bold(item.id))
        if done.receipt is not None:
            _print_receipt(app, done)
        elif not app.quiet:
            app.out.line(dim(f"undo: recollect restore {' '.join(i.id for i in done.items)}"))
    return 0 if done.items else 1


def _print_receipt(app: App, done: Forgotten) -> None:
    assert done.receipt is not None
    removed = ", ".join(f"{count:,} {what}" for what, count in done.receipt.removed.items())
    app.out.line(f"  removed: {removed or 'nothing'}")
    for place in done.receipt.out_of_reach:
        app.out.line(yellow("  out of reach: "), place)


def _forgotten_json(done: Forgotten) -> dict[str, Any]:
    from recollect.wire import item_json  # plain output does without

    receipt = done.receipt
    return {
        "preview": done.preview,
        "items": [item_json(item) for item in done.items]
        if receipt is None
        else [{"id": item.id} for item in done.items],
        "kept": [{"id": item_id, "reason": why} for item_id, why in done.kept],
        "derived": [{"id": item.id} for item in done.derived],
        "quarantined": list(done.quarantined),
        "restored": list(done.restored),
        "notes": list(done.notes),
        "receipt": receipt
        and {
            "ids": list(receipt.ids),
            "removed": dict(receipt.removed),
            "out_of_reach": list(receipt.out_of_reach),
        },
    }


@command("restore", examples=["recollect restore 0v3h2k9x4m7q1abc"])
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@pass_app
def restore(app: App, ids: tuple[str, ...]) -> int:
    """Bring forgotten memories back.

    Erased ones are gone for good.
    """
    with app.open() as memory:
        wanted = [memory.stored(item_id).id for item_id in dict.fromkeys(ids)]
        restored = memory.restore(*wanted)
    if app.json:
        app.out.json({"restored": restored})
    else:
        for item_id in restored:
            app.out.line(green("restored"), " ", bold(item_id))
        for item_id in wanted:
            if item_id not in restored:
                app.note(dim(f"{item_id} was not forgotten"))
    return 0 if restored else 1
