"""The commands `forget`, `restore` and `undo`: preview first, then confirm and apply."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from bethink.cli.app import App, confirm
from bethink.cli.maintenance import print_report, report_json, undo_run
from bethink.cli.options import command, complete_ids, filter_options, filters_from_options, option
from bethink.cli.output import bold, dim, format_time, green, one_line, yellow
from bethink.core import plural
from bethink.core.json_values import iso
from bethink.errors import NotFound
from bethink.ingest.revision import last_run
from bethink.render.wire import fields_json, item_json

if TYPE_CHECKING:
    from bethink.api.write import Forgotten
    from bethink.core.json_values import Json
    from bethink.ingest.revision import Undo
    from bethink.model import Item


@command(
    "forget",
    examples=[
        "bethink forget 1abc            # shows a preview, then asks",
        "bethink forget 1abc 2def --yes",
        "bethink forget 1abc --erase --yes",
        "bethink forget --sweep --dry-run   # long unused and unimportant ones",
        "bethink forget --sweep --token 3f9a0c11d2e4",
    ],
)
@click.argument("ids", metavar="[ID...]", shell_complete=complete_ids, nargs=-1)
@option("--sweep", "Forget all long unused, unimportant memories.")
@option("-n --dry-run", "Only show what would happen.")
@option(
    "--share SHARE",
    "With --sweep: maximum share of memories to forget (default: 0.02, or 5 memories).",
    float,
)
@option("--min-age-days N", "With --sweep: leave younger memories alone.", float)
@option("--token TEXT", "With --sweep: apply only if the plan still has this token.")
@option("--clock-is-right", "With --sweep: trust a clock more than a day ahead of the last write.")
@option("--erase", "Erase it completely; cannot be undone.")
@option("-y --yes", "Do not ask for confirmation.")
@option("--reason TEXT", "Reason recorded in the journal.", default="forgotten")
@filter_options
def forget(
    app: App, /, ids: tuple[str, ...], *, erase: bool, yes: bool, reason: str, **options: Any
) -> int:
    """Exclude memories from recall, or erase them.

    Without --yes it shows the affected memories and, at a terminal, asks. A forgotten
    memory can be restored. An erased one is gone, with its history, its vector, every
    index entry, and everything derived from it. Pinned and protected memories can only be
    erased.

    --sweep takes no ID: it selects memories that are long unused and unimportant, shows
    them with a token, and forgets them with that token or --yes. `bethink undo`
    restores all of them.
    """  # fmt: skip
    if options["sweep"]:
        return _sweep(app, ids, erase=erase, yes=yes, options=options)
    if not ids:
        raise click.UsageError("give the ID of a memory, or --sweep")
    if filters_from_options(options):
        raise click.UsageError("filters go with --sweep, not with an ID")
    with app.open() as memory:
        preview = memory.forget(*dict.fromkeys(ids), erase=erase, preview=True)
        if yes:
            _print_kept(app, preview)
        else:
            _print_preview(app, preview, erase=erase)
        if not preview.items:
            return _report_result(app, preview, erase=erase)
        question = f"{'Erase' if erase else 'Forget'} {plural(len(preview.items), 'memory')}?"
        if options["dry_run"] or not (yes or confirm(app, question)):
            app.report(_forgotten_json(preview), done=False)
            return 0
        done = memory.forget(
            *(item.id for item in preview.items), erase=erase, preview=False, reason=reason
        )
    return _report_result(app, replace(done, kept=preview.kept), erase=erase)


def _sweep(app: App, ids: tuple[str, ...], *, erase: bool, yes: bool, options: Json) -> int:
    if ids or erase:
        raise click.UsageError("--sweep selects memories itself: it takes no ID and no --erase")
    limits: Json = {name: options[name] for name in ("share", "clock_is_right", "min_age_days")}
    limits["where"] = filters_from_options(options)
    with app.open() as memory:
        report = memory.maintain("forget", preview=True, **limits)
        preview = True
        print_report(app, report, preview=True)
        question = f"Forget {plural(report.plan.leaving, 'memory')}?"
        apply = not options["dry_run"] and bool(report.plan.steps)
        if apply and (options["token"] or yes or confirm(app, question)):
            token = options["token"] or report.plan.token
            report = memory.maintain("forget", token=token, **limits)
            preview = False
    app.document(report_json(report, preview=preview))
    if not preview:
        app.out.line(green(f"forgot {plural(len(report.done), 'memory')}"))
        app.out.line(dim(f"undo: bethink undo {report.run}"))
    return 0


def _print_preview(app: App, preview: Forgotten, *, erase: bool) -> None:
    label = "would erase" if erase else "would forget"
    for item in preview.items:
        app.out.line(yellow(label), " ", bold(item.id), f"  {one_line(item.text, 70)}")
    for item in preview.derived:
        app.out.line(yellow(label), " ", bold(item.id), dim("  derived from it"))
    for item_id in preview.quarantined:
        app.out.line(yellow("would quarantine "), bold(item_id), dim("  also derived from it"))
    for item_id in preview.restored:
        app.out.line(dim("would restore "), bold(item_id))
    _print_kept(app, preview)


def _print_kept(app: App, result: Forgotten) -> None:
    for item_id, why in result.kept:
        app.out.line(dim("kept"), " ", bold(item_id), dim(f"  {why}; only --erase removes it"))


def _report_result(app: App, result: Forgotten, *, erase: bool) -> int:
    """Print the result; return 1 if nothing could be forgotten."""
    app.document(_forgotten_json(result))
    if not result.preview:
        for item in (*result.items, *result.derived):
            app.out.line(green("erased" if erase else "forgot"), " ", bold(item.id))
        if result.receipt is not None:
            _print_receipt(app, result)
        elif not app.quiet:
            app.out.line(dim(f"undo: bethink restore {' '.join(i.id for i in result.items)}"))
    return 0 if result.items else 1


def _print_receipt(app: App, result: Forgotten) -> None:
    assert result.receipt is not None
    removed = ", ".join(f"{count:,} {what}" for what, count in result.receipt.removed.items())
    app.out.line(f"  removed: {removed or 'nothing'}")
    for place in result.receipt.out_of_reach:
        app.out.line(yellow("  cannot erase: "), place)


def _forgotten_json(result: Forgotten) -> Json:
    receipt = result.receipt
    return {
        "preview": result.preview,
        "items": [item_json(item) for item in result.items]
        if receipt is None
        else [{"id": item.id} for item in result.items],
        "kept": [{"id": item_id, "reason": why} for item_id, why in result.kept],
        "derived": [{"id": item.id} for item in result.derived],
        **fields_json(result, "quarantined restored notes"),
        "receipt": receipt
        and {**fields_json(receipt, "ids out_of_reach"), "removed": dict(receipt.removed)},
    }


@command("restore", examples=["bethink restore 0v3h2k9x4m7q1abc"])
@click.argument("ids", metavar="ID...", shell_complete=complete_ids, nargs=-1, required=True)
def restore(app: App, ids: tuple[str, ...]) -> int:
    """Restore forgotten memories.

    Erased memories cannot be restored.
    """
    with app.open() as memory:
        requested = [memory.stored(item_id).id for item_id in dict.fromkeys(ids)]
        restored = memory.restore(*requested)
    app.document({"restored": restored})
    for item_id in restored:
        app.out.line(green("restored"), " ", bold(item_id))
    for item_id in requested:
        if item_id not in restored:
            app.note(dim(f"{item_id} is not forgotten"))
    return 0 if restored else 1


@command(
    "undo",
    examples=[
        "bethink undo 1abc",
        "bethink undo --yes   # your last change",
        "bethink undo run-0v3h2k9x4m7q1abc   # an import, or a run of bethink maintain",
    ],
)
@click.argument("item_id", metavar="[ID]", shell_complete=complete_ids, required=False)
@option("-y --yes", "Do not ask for confirmation.")
def undo(app: App, item_id: str | None, *, yes: bool) -> int:
    """Undo a change, an import or a maintenance run.

    Without ID it undoes your last change. An update is reverted to the previous revision,
    a forgotten memory is restored, a stored one is forgotten. An undo can itself be
    undone; an erase cannot. A run of maintenance, of revoke or an import is undone as a
    whole: retired memories are restored, created ones are removed.
    """
    with app.open() as memory:
        run = last_run(memory.settings.actor, memory.store) if item_id is None else item_id
        if run is not None and run.startswith("run-"):
            return undo_run(app, run, yes=yes)
        try:
            preview = memory.undo(item_id, preview=True)
        except NotFound as error:
            remedy = "bethink events shows the ids of memories and runs"
            raise NotFound(f"there is no memory or run {item_id!r}", remedy=remedy) from error
        item = memory.get(preview.item)
        _print_undo_preview(app, preview, item)
        done = yes or confirm(app, "Undo this change?")
        if done:
            item = memory.get(memory.undo(item_id).item)
    shown = green("undone"), " ", bold(item.id), f"  {one_line(item.text, 70)}"
    app.report(_undo_json(preview, item, done=done), *shown, done=done)
    return 0


def _print_undo_preview(app: App, preview: Undo, item: Item) -> None:
    change = preview.change
    app.out.line(bold(item.id), f"  {one_line(item.text, 70)}")
    app.out.line(dim(f"  {change.kind} {format_time(change.at)} by {change.actor}"))
    app.out.line(yellow("  would: "), preview.doing)


def _undo_json(preview: Undo, item: Item, *, done: bool) -> Json:
    change = preview.change
    return {
        "done": done,
        "change": {"kind": change.kind, "at": iso(change.at), "actor": change.actor},
        "doing": preview.doing,
        "item": item_json(item),
    }
