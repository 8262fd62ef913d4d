"""The commands `maintain`, `revoke` and `worker`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

from bethink.cli.app import App, confirm, progress
from bethink.cli.options import (
    command,
    complete_jobs,
    filter_options,
    filters_from_options,
    group,
    option,
)
from bethink.cli.output import Piece, bold, dim, format_time, green, one_line, yellow
from bethink.core import plural
from bethink.core.json_values import iso
from bethink.errors import StoreError
from bethink.ingest.inbox import unseal
from bethink.render.wire import fields_json
from bethink.worker.client import control_worker, ensure_worker, stop_worker
from bethink.worker.files import lock_holder, worker_paths
from bethink.worker.process import run_in_foreground
from bethink.worker.spool import Spool

if TYPE_CHECKING:
    from bethink.core.json_values import Json
    from bethink.maintain.journal import RunRecord
    from bethink.maintain.runner import (
        AppliedProposal,
        Plan,
        Report,
        SkippedProposal,
        Step,
        UndoResult,
    )
    from bethink.maintain.succession import RevokeResult
    from bethink.memory import Memory


_MAX_CHANGES_SHOWN = 20  # by the undo of a run
_MAX_MINOR_SHOWN = 10
_MAX_SKIPPED_SHOWN = 3
_StepOrDone = TypeVar("_StepOrDone", "Step", "AppliedProposal")


@command(
    "maintain",
    examples=[
        "bethink maintain --dry-run        # what would happen, and why",
        "bethink maintain",
        "bethink maintain --job duplicates --job consolidate --share 0.05",
        "bethink maintain --runs",
        "bethink undo run-0v3h2k9x4m7q1abc",
    ],
)
@option(
    "--job jobs NAME",
    "Run only this job; may be repeated. docs/maintain.md lists the jobs.",
    multiple=True,
    shell_complete=complete_jobs,
)
@option("-n --dry-run", "Only show what would happen.")
@option(
    "--share SHARE",
    "Maximum share of memories that may leave recall (default: 0.02, or 5 memories).",
    float,
)
@option(
    "--min-age-days N", "Minimum age of what is consolidated (default: 7 days) or forgotten.", float
)
@option(
    "--similarity 0.5-1",
    "Cosine from which other wordings are duplicates, too; siftcoder's is 0.95.",
    float,
)
@option("--clock-is-right", "Trust a clock that is more than a day ahead of the last write.")
@option("--token TEXT", "Apply only if the plan still has this token.")
@option("--runs", "List the last runs.")
@filter_options
def maintain(app: App, /, jobs: tuple[str, ...], **options: Any) -> int:
    """Tidy up: duplicates, cold memories, notes; can be undone.

    Nothing is deleted: memories that leave recall stay in the history and are restored by
    `bethink undo RUN`. Each has a successor that can be recalled, except with --job
    forget, which never runs by default. At most 2 % of the memories leave in one run, in
    a small memory at most 5; pinned and protected ones, goals and caveats never.
    """  # fmt: skip
    with app.open() as memory:
        if options["runs"]:
            return _print_runs(app, memory.maintenance())
        with progress(app, "maintaining") as advance:
            names = ("share", "clock_is_right", "token", "min_age_days", "similarity")
            report = memory.maintain(
                *jobs,
                preview=options["dry_run"],
                where=filters_from_options(options),
                progress=advance,
                **{name: options[name] for name in names},
            )
    app.document(report_json(report, preview=options["dry_run"]))
    print_report(app, report, preview=options["dry_run"])
    return 0


def print_report(app: App, report: Report, *, preview: bool) -> None:
    """Print what a run did or would do, what it skipped, and how to undo it."""
    if preview:
        _print_plan(app, report.plan)
    for job, steps in groupby(report.done, key=lambda applied: applied.job):
        for done in _limit_minor(app, job, list(steps)):
            successor = f" -> {done.successor}" if done.successor else ""
            shown = "; done: ".join([done.proposal.why, *done.proposal.action_texts])
            app.out.line(green(done.job), f"  {shown}", bold(successor))
    _print_skipped(app, report.left)
    for remark in report.plan.remarks:
        app.out.line(dim(f"{remark.job}  {remark.why}"))
    if any(done.ended or done.successor or done.proposal.thread for done in report.done):
        app.out.line(dim(f"undo: bethink undo {report.run} --yes"))
    elif not report.plan.steps:
        app.out.line("nothing to do")


def _print_skipped(app: App, left: tuple[SkippedProposal, ...]) -> None:
    """Print skipped proposals by reason, only the first few of each."""
    for (job, hindrance), found in groupby(
        left, key=lambda skipped: (skipped.job, skipped.hindrance)
    ):
        whys = [skipped.why for skipped in found if skipped.why]
        shown = whys if app.verbose else whys[:_MAX_SKIPPED_SHOWN]
        for why in shown:
            app.out.line(dim(f"{job}  skipped: {why}: {hindrance}"))
        if not whys:
            app.out.line(dim(f"{job}  skipped: {hindrance}"))
        elif len(shown) < len(whys):
            more = f"{len(whys) - len(shown):,} more"
            app.out.line(dim(f"{job}  skipped: {more}: {hindrance}"))


def _print_plan(app: App, plan: Plan) -> None:
    for job, steps in groupby(plan.steps, key=lambda step: step.job.name):
        for step in _limit_minor(app, job, list(steps)):
            _print_step(app, step)
    live = plural(plan.live, "memory")
    app.out.line(f"Would retire {plan.leaving:,} of {live} (limit for this run: {plan.limit:,})")
    if plan.steps:
        app.out.line(dim(f"token: {plan.token}"))


def _print_step(app: App, step: Step) -> None:
    app.out.line(yellow(step.job.name), f"  {step.proposal.why}")
    for item_id in step.proposal.leaving:
        app.out.line(dim(f"    leaves recall  {item_id}"))
    for action in step.proposal.action_texts:
        app.out.line(dim(f"    {action}"))
    for line in (step.proposal.text or "").splitlines():
        app.out.line(dim("    | "), line)


def _is_major(step: Step | AppliedProposal) -> bool:
    """Whether a step retires or creates a memory; threads and notes do neither."""
    return bool(step.proposal.leaving or step.proposal.successor)


def _limit_minor(app: App, job: str, steps: list[_StepOrDone]) -> Iterator[_StepOrDone]:
    """Yield all major steps and a few minor ones: a first run writes hundreds of notes."""
    minor = 0
    for step in steps:
        minor += not _is_major(step)
        if _is_major(step) or minor <= _MAX_MINOR_SHOWN or app.verbose:
            yield step
    if minor > _MAX_MINOR_SHOWN and not app.verbose:
        app.out.line(dim(f"{job}  and {minor - _MAX_MINOR_SHOWN:,} more; --verbose shows all"))


def _print_runs(app: App, runs: list[RunRecord]) -> int:
    app.document({"runs": [{**run._asdict(), "at": iso(run.at)} for run in runs]})
    for run in runs:
        jobs = ", ".join(f"{job} {count}" for job, count in run.jobs.items())
        undone = yellow("  undone") if run.undone else ""
        app.out.line(bold(run.run), f"  {format_time(run.at)}  {jobs}", undone)
    if not runs:
        app.note("no run of maintenance has changed anything yet")
    return 0 if runs else 1


def report_json(report: Report, *, preview: bool) -> Json:
    """A maintenance report as JSON."""
    plan = report.plan
    steps = [(step.job.name, step.proposal, None) for step in plan.steps]
    done = [(entry.job, entry.proposal, entry.successor) for entry in report.done]
    return {
        "run": report.run,
        "preview": preview,
        "live": plan.live,
        "limit": plan.limit,
        "token": plan.token if preview and plan.steps else None,
        "proposals": [
            {
                "job": job,
                "why": proposal.why,
                "leaves": list(proposal.leaving),
                "successor": successor,
                "text": proposal.text,
                "deeds": list(proposal.action_texts),
            }
            for job, proposal, successor in (steps if preview else done)
        ],
        "left": [left._asdict() for left in report.left],
        "remarks": [{"job": entry.job, "text": entry.why} for entry in plan.remarks],
    }


def undo_run(app: App, run: str, *, yes: bool) -> int:
    """Undo a maintenance run: show a preview, confirm, apply."""
    with app.open() as memory:
        result = memory.undo_run(run, preview=True)
        _print_run(app, result, memory)
        if yes or confirm(app, "Undo this change?"):
            result = memory.undo_run(run)
    document, done = {"done": not result.preview, **_run_json(result)}, not result.preview
    app.report(document, green("undone"), " ", bold(run), done=done)
    return 0


def _print_run(app: App, preview: UndoResult, memory: Memory) -> None:
    changes = [("would restore", item_id) for item_id in preview.restored]
    changes += [(f"would mark as {status}", item_id) for item_id, status in preview.judged]
    changes += [("would remove", item_id) for item_id in preview.ended]
    shown = changes[:_MAX_CHANGES_SHOWN]
    items = memory.store.items.get([item_id for _, item_id in shown])
    for doing, item_id in shown:
        text = unseal(items[item_id]).text if item_id in items else ""
        room = max(20, app.out.width - len(doing) - len(item_id) - 3)
        app.out.line(yellow(f"{doing} "), bold(item_id), f"  {one_line(text, room)}")
    if more := len(changes) - len(shown):
        app.out.line(dim(f"and {more:,} more; --json lists them"))
    if preview.unlinked:
        app.out.line(dim(f"would remove {plural(preview.unlinked, 'link')}"))
    if preview.threads:
        app.out.line(dim(f"would take back {plural(len(preview.threads), 'thread')}"))


def _run_json(result: UndoResult) -> Json:
    judged = [{"id": item_id, "status": status} for item_id, status in result.judged]
    return fields_json(result, "run restored ended unlinked threads") | {"judged": judged}


@command(
    "revoke",
    examples=[
        "bethink revoke --source https://example.org/notes --dry-run",
        "bethink revoke --source slack --yes",
        "bethink revoke --source slack --erase --yes",
    ],
)
@option("--source TEXT", "Source of the memories.", required=True)
@option("--erase", "Erase it completely instead; cannot be undone.")
@option("-n --dry-run", "Only show what would happen.")
@option("-y --yes", "Do not ask for confirmation.")
def revoke(app: App, *, source: str, erase: bool, dry_run: bool, yes: bool) -> int:
    """Remove everything that came from a source.

    Including everything derived from it. It is quarantined: excluded from every recall,
    but still readable, and `bethink undo` restores it. Memories that were superseded by
    revoked ones are restored.
    """
    with app.open() as memory:
        result = memory.revoke(source, erase=erase, preview=True)
        action = "erase" if erase else "quarantine"
        _print_revoked(app, result, f"would {action}")
        question = f"Revoke {plural(len(result.ids) + len(result.descendants), 'memory')}?"
        if not dry_run and (yes or confirm(app, question)):
            result = memory.revoke(source, erase=erase)
    count = plural(len(result.ids) + len(result.descendants), "memory")
    app.report(revoked_json(result), green(f"{action}d {count}"), done=not result.preview)
    if result.run:
        app.out.line(dim(f"undo: bethink undo {result.run} --yes"))
    return 0


def _print_revoked(app: App, result: RevokeResult, label: str) -> None:
    for item_id in result.ids:
        app.out.line(yellow(label), " ", bold(item_id))
    for item_id in result.descendants:
        app.out.line(yellow(label), " ", bold(item_id), dim("  derived from it"))
    for item_id in result.restored:
        app.out.line(dim("would restore "), bold(item_id))


def revoked_json(result: RevokeResult) -> Json:
    """A revocation as JSON."""
    receipt = result.erased.receipt if result.erased else None
    return {
        **fields_json(result, "source preview run ids descendants restored notes"),
        "removed": dict(receipt.removed) if receipt else None,
        "out_of_reach": list(receipt.out_of_reach) if receipt else [],
    }


_EXIT_NO_WORKER = 1


@group(
    "worker",
    examples=[
        "bethink worker",
        "bethink worker status --json",
        "bethink worker stop",
        "bethink config set worker on",
    ],
)
def worker(app: App) -> int:
    """Show, start and stop the worker, which keeps models loaded.

    A background process of yours that keeps models loaded and runs queued jobs. It starts
    automatically if the setting worker allows it, and ends after worker_idle seconds
    without a request. Without it, everything runs in the calling process.
    """
    return status(app)


@worker.subcommand("status", examples=["bethink worker status", "bethink worker status --json"])
def status(app: App) -> int:
    """Show whether a worker is running, and its activity.

    Exit code 1 if none is running.
    """
    found = control_worker("status")
    app.document(_status_json(found))
    if found is None:
        pid = lock_holder(worker_paths().lock)
        state = "no worker is running" if pid is None else f"process {pid} does not answer"
        app.out.line(yellow(state), f" (setting worker: {app.settings.worker})")
        _print_queued(app)
    else:
        _print_running(app, found)
    return 0 if found is not None else _EXIT_NO_WORKER


@worker.subcommand("start", examples=["bethink worker start"])
def start(app: App) -> int:
    """Start a worker unless one is running."""
    found = ensure_worker(app.settings)
    if found is None:
        raise StoreError("could not start a worker", remedy="bethink worker run shows why")
    app.document(_status_json(found))
    _print_running(app, found)
    return 0


@worker.subcommand("stop", examples=["bethink worker stop"])
def stop(app: App) -> int:
    """Stop the worker and wait until it has ended.

    Queued jobs are kept for the next worker. Exit code 1 if none was running.
    """
    ended = stop_worker()
    if ended is False:
        raise StoreError("the worker is still running", remedy="bethink worker status")
    app.remark({"stopped": bool(ended)}, green("stopped") if ended else "no worker was running")
    return 0 if ended else _EXIT_NO_WORKER


@worker.subcommand("run", examples=["bethink worker run"])
def run(app: App) -> int:
    """Run the worker in the foreground, with its log on standard error.

    For debugging; Ctrl-C ends it. Exit code 1 if one is already running.
    """
    found = control_worker("ping")
    if found is not None:
        app.note(f"a worker is already running: process {found['pid']}")
        return _EXIT_NO_WORKER
    return run_in_foreground(worker_paths(), app.settings.worker_idle)


def _status_json(status_reply: Json | None) -> Json:
    """Status of a worker as JSON; without a worker, the number of queued jobs."""
    place = worker_paths()
    spool = Spool(place.spool)
    left = {"queued": len(spool.waiting()), "given_up": len(spool.failed())}
    places = {"log": str(place.log), "socket": str(place.socket_path)}
    if status_reply is None:
        return {"running": False, "jobs": left, **places}
    return {"running": True, **status_reply, **places}


def _print_running(app: App, status_reply: Json) -> None:
    out, jobs = app.out, status_reply["jobs"]
    out.line(
        green("running"), f": process {status_reply['pid']}, version {status_reply['version']}"
    )
    for name, text in _status_lines(status_reply):
        out.line("  ", dim(f"{name:<8}"), text)
    if jobs["given_up"]:
        out.line("  ", yellow(f"gave up on {plural(jobs['given_up'], 'job')}"))


def _status_lines(status_reply: Json) -> Iterator[tuple[str, Piece]]:
    jobs = status_reply["jobs"]
    yield "since", format_time(datetime.fromisoformat(status_reply["since"]))
    yield "idle", f"{status_reply['idle_s']:.0f} s; ends after {status_reply['idle_limit_s']:,} s"
    names = ("done", "failed", "active", "queued")
    yield "jobs", ", ".join(f"{jobs[name]:,} {name}" for name in names)
    if status_reply["memory_bytes"]:
        yield "memory", f"{status_reply['memory_bytes'] / 1e6:,.0f} MB"
    for space in status_reply["spaces"]:
        yield "space", bold(space)
    yield "log", str(_status_json(None)["log"])


def _print_queued(app: App) -> None:
    left = _status_json(None)["jobs"]
    if left["queued"] or left["given_up"]:
        app.out.line(dim(f"jobs: {left['queued']:,} queued, {left['given_up']:,} given up"))
