"""`maintain` and `revoke`: tidying up, and taking back what a source has brought."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeVar

import click

from recollect.cli.app import App
from recollect.cli.confirming import confirmed
from recollect.cli.options import command, filter_options, filters_of, pass_app
from recollect.cli.printing import bold, dim, green, moment, plural, yellow
from recollect.cli.progress import progress

if TYPE_CHECKING:
    from recollect.maintain.journal import Begun
    from recollect.maintain.remove import Revoked
    from recollect.maintain.run import Done, Left, Plan, Report, Step

_MOST_LIGHT = 10
_MOST_LEFT = 3
_Told = TypeVar("_Told", "Step", "Done")


@command(
    "maintain",
    examples=[
        "recollect maintain --dry-run        # what would happen, and why",
        "recollect maintain",
        "recollect maintain --job duplicates --job consolidate --share 0.05",
        "recollect maintain --runs",
        "recollect undo run-0v3h2k9x4m7q1abc",
    ],
)
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="NAME",
    help="Only this one; given again, that one too. docs/maintain.md lists them.",
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would happen.")
@click.option(
    "--share",
    type=float,
    default=0.02,
    show_default=True,
    metavar="SHARE",
    help="The share of the memories that may leave recall in this run.",
)
@click.option(
    "--clock-is-right",
    is_flag=True,
    help="Believe a clock that is more than a day ahead of the last write.",
)
@click.option("--token", metavar="TEXT", help="Only if the plan is still the one shown with it.")
@click.option("--undo", metavar="RUN", help="Undo a run; the same as recollect undo RUN.")
@click.option("--runs", is_flag=True, help="List the last runs.")
@filter_options
@pass_app
def maintain(app: App, /, jobs: tuple[str, ...], **given: Any) -> int:
    """Tidy up: duplicates, cold memories, notes; can be undone.

    Nothing is deleted: what leaves recall stays in the history and comes back by
    `recollect undo RUN`. It has a successor that can be recalled, except what --job
    forget lets go, which is never done unasked. At most 2 % of the memories leave in one
    run; pinned and protected ones, goals and caveats never.
    """  # fmt: skip
    if given["undo"]:
        from recollect.cli.undoing import undo_run  # seldom asked for here

        return undo_run(app, given["undo"], yes=True)
    with app.open() as memory:
        if given["runs"]:
            return _print_runs(app, memory.maintenance())
        with progress(app, "maintaining") as advance:
            report = memory.maintain(
                *jobs,
                preview=given["dry_run"],
                share=given["share"],
                clock_is_right=given["clock_is_right"],
                token=given["token"],
                where=filters_of(given),
                progress=advance,
            )
    if app.json:
        app.out.json(report_json(report, preview=given["dry_run"]))
    else:
        print_report(app, report, preview=given["dry_run"])
    return 0


def print_report(app: App, report: Report, *, preview: bool) -> None:
    """What a run did or would do, what was left, and how to take it back."""
    if preview:
        _print_plan(app, report.plan)
    for job, several in groupby(report.done, key=lambda one: one.job):
        for done in _shown(app, job, list(several)):
            made = f" -> {done.successor}" if done.successor else ""
            app.out.line(green(done.job), f"  {done.proposal.why}", bold(made))
    _print_left(app, report.left)
    for remark in report.plan.remarks:
        app.out.line(dim(f"{remark.job}  {remark.why}"))
    if report.run is not None and any(done.ended or done.successor for done in report.done):
        app.out.line(dim(f"undo: recollect undo {report.run}"))
    elif not report.plan.steps:
        app.out.line("nothing to do")


def _print_left(app: App, left: tuple[Left, ...]) -> None:
    """What was left alone, by what hindered it: of many with one hindrance the first few."""
    for (job, hindrance), several in groupby(left, key=lambda one: (one.job, one.hindrance)):
        whys = [one.why for one in several if one.why]
        shown = whys if app.verbose else whys[:_MOST_LEFT]
        for why in shown:
            app.out.line(dim(f"{job}  left alone: {why}: {hindrance}"))
        if not whys:
            app.out.line(dim(f"{job}  left alone: {hindrance}"))
        elif len(shown) < len(whys):
            more = f"{len(whys) - len(shown):,} more"
            app.out.line(dim(f"{job}  left alone: {more}: {hindrance}"))


def _print_plan(app: App, plan: Plan) -> None:
    for job, several in groupby(plan.steps, key=lambda one: one.job.name):
        for step in _shown(app, job, list(several)):
            _print_step(app, step)
    left = f"{plan.leaving:,} of {plan.live:,} memories would leave recall, {plan.limit:,} may"
    app.out.line(left)
    if plan.steps:
        app.out.line(dim(f"token: {plan.token}"))


def _print_step(app: App, step: Step) -> None:
    app.out.line(yellow(step.job.name), f"  {step.proposal.why}")
    for item_id in step.proposal.leaving:
        app.out.line(dim(f"    leaves recall  {item_id}"))
    for doing in step.proposal.doings:
        app.out.line(dim(f"    {doing}"))
    for line in (step.proposal.text or "").splitlines():
        app.out.line(dim("    | "), line)


def _weighs(one: Step | Done) -> bool:
    """Whether something leaves recall or is made; threads and notes only tell of memories."""
    return bool(one.proposal.leaving or one.proposal.successor)


def _shown(app: App, job: str, several: list[_Told]) -> Iterator[_Told]:
    """All that weighs and, of the rest of a job, a few: a first run writes hundreds of notes."""
    light = 0
    for one in several:
        light += not _weighs(one)
        if _weighs(one) or light <= _MOST_LIGHT or app.verbose:
            yield one
    if light > _MOST_LIGHT and not app.verbose:
        app.out.line(dim(f"{job}  and {light - _MOST_LIGHT:,} more; --verbose shows them all"))


def _print_runs(app: App, runs: list[Begun]) -> int:
    if app.json:
        from recollect.jsonable import iso  # plain output does without

        told = [{"run": one.run, "at": iso(one.at), "jobs": dict(one.jobs)} for one in runs]
        app.out.json({"runs": told})
        return 0
    for one in runs:
        jobs = ", ".join(f"{job} {count}" for job, count in one.jobs.items())
        app.out.line(bold(one.run), f"  {moment(one.at)}  {jobs}")
    if not runs:
        app.out.line("there was no run yet")
    return 0


def report_json(report: Report, *, preview: bool) -> dict[str, Any]:
    """A report for programs."""
    plan = report.plan
    steps = [(step.job.name, step.proposal, None) for step in plan.steps]
    done = [(one.job, one.proposal, one.successor) for one in report.done]
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
                "deeds": list(proposal.doings),
            }
            for job, proposal, successor in (steps if preview else done)
        ],
        "left": [left._asdict() for left in report.left],
        "remarks": [{"job": one.job, "text": one.why} for one in plan.remarks],
    }


@command(
    "revoke",
    examples=[
        "recollect revoke --source https://example.org/notes --dry-run",
        "recollect revoke --source slack --yes",
        "recollect revoke --source slack --erase --yes",
    ],
)
@click.option("--source", required=True, metavar="TEXT", help="Where the memories came from.")
@click.option("--quarantine", is_flag=True, help="Keep it out of every recall; the default.")
@click.option("--erase", is_flag=True, help="Leave no byte of it; cannot be undone.")
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would happen.")
@click.option("-y", "--yes", is_flag=True, help="Do it without asking.")
@pass_app
def revoke(
    app: App, *, source: str, quarantine: bool, erase: bool, dry_run: bool, yes: bool
) -> int:
    """Take back all that a source has brought.

    And all that was made from it. It is quarantined: in no recall, but there for
    whoever looks, and `recollect undo` brings it back. What left recall in favour of
    something revoked comes back.
    """
    if quarantine and erase:
        raise click.UsageError("--quarantine and --erase are different things; choose one")
    with app.open() as memory:
        told = memory.revoke(source, erase=erase, preview=True)
        doing = "erased" if erase else "quarantined"
        if not app.json:
            _print_revoked(app, told, f"would be {doing}")
        question = f"Take back {plural(len(told.ids) + len(told.descendants), 'memory')}?"
        if not dry_run and (yes or confirmed(app, question)):
            told = memory.revoke(source, erase=erase)
    if app.json:
        app.out.json(revoked_json(told))
    elif told.preview:
        app.note(dim("nothing was changed; --yes does it"))
    else:
        app.out.line(green(f"{doing} {plural(len(told.ids) + len(told.descendants), 'memory')}"))
        if told.run:
            app.out.line(dim(f"undo: recollect undo {told.run}"))
    return 0


def _print_revoked(app: App, told: Revoked, doing: str) -> None:
    for item_id in told.ids:
        app.out.line(yellow(doing), " ", bold(item_id))
    for item_id in told.descendants:
        app.out.line(yellow(doing), " ", bold(item_id), dim("  made from it"))
    for item_id in told.restored:
        app.out.line(dim("comes back into recall "), bold(item_id))


def revoked_json(told: Revoked) -> dict[str, Any]:
    """A revocation for programs."""
    receipt = told.erased.receipt if told.erased else None
    return {
        "source": told.source,
        "preview": told.preview,
        "run": told.run,
        "ids": list(told.ids),
        "descendants": list(told.descendants),
        "restored": list(told.restored),
        "notes": list(told.notes),
        "removed": dict(receipt.removed) if receipt else None,
        "out_of_reach": list(receipt.out_of_reach) if receipt else [],
    }
