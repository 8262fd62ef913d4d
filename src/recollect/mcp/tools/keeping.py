"""`consolidate` and `undo`: tidying up, and taking changes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import Refused
from recollect.jsonable import Json
from recollect.mcp.fencing import NOTICE, Quote, one_line, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.pages import fitting, weight

if TYPE_CHECKING:
    from recollect.maintain.run import Report

_JOBS = ("duplicates", "consolidate")
_RUN = "run-"


def consolidate(call: Call) -> Reply:
    """Shows what would be merged or, with the token of that, merges it."""
    token, limits = call.told.get("token"), call.given("share")
    if token is None:
        report = call.memory.maintain(*_JOBS, preview=True, **limits)
        steps = [(step.job.name, step.proposal) for step in report.plan.steps]
        told = f"Nothing was changed; token: {report.plan.token}" if steps else "Nothing to do."
    else:
        report = call.memory.maintain(*_JOBS, token=token, progress=call.progress, **limits)
        steps = [(done.job, done.proposal) for done in report.done]
        told = f"done; undo with {report.run} takes it back" if report.run else "Nothing to do."
    proposals: list[Json] = [
        {
            "job": job,
            "why": proposal.why,
            "leaves": list(proposal.leaving),
            "text": proposal.text,
        }
        for job, proposal in steps
    ]
    count = fitting(call, (weight(call, one["why"], one["text"] or "") for one in proposals))
    if count < len(proposals):
        told += f"\n{len(proposals) - count} of {len(proposals)} proposals are not shown."
    shown = proposals[:count]
    quotes = [Quote(f"{one['job']} | {' '.join(one['leaves'])}", one["why"]) for one in shown]
    content = _content(report, shown, preview=token is None)
    content["left_out"] = len(proposals) - count
    return Reply(f"{told}\n{quoted(quotes, 'proposals')}".strip(), content)


def _content(report: Report, proposals: list[Json], *, preview: bool) -> Json:
    return {
        "done": not preview and bool(proposals),
        "token": report.plan.token if preview and proposals else None,
        "run": report.run,
        "notice": NOTICE,
        "proposals": proposals,
        "left": [one_line(f"{left.job}: {left.why} {left.hindrance}") for left in report.left],
    }


def undo(call: Call) -> Reply:
    """Takes the last change back, or a whole run."""
    item_id, preview = call.told.get("id"), call.told.get("preview", False)
    if item_id is not None and item_id.startswith(_RUN):
        would = call.memory.undo_run(item_id, preview=True)
        _refuse_revoked(call, [one for one, _ in would.judged])
        run = would if preview else call.memory.undo_run(item_id)
        doing = f"bring {len(run.restored)} back, take {len(run.ended)} away"
        return _undone(run.run, doing, restored=run.restored, taken_back=run.ended, preview=preview)
    if item_id is not None:
        item_id = seen(call.memory, item_id).id
    done = call.memory.undo(item_id, preview=True)
    if done.change.kind == "status":
        _refuse_revoked(call, [done.item])
    if not preview:
        done = call.memory.undo(item_id)
    return _undone(done.item, done.doing, preview=preview)


def _refuse_revoked(call: Call, ids: list[str]) -> None:
    """A revocation stands against what was planted here, so no agent lifts it."""
    for item in call.memory.store.get(ids).values():
        if item.status == "quarantined":
            raise Refused(
                f"{item.id} was revoked; only a command lets it back",
                remedy="ask the user, who can run: recollect undo",
            )


def _undone(
    item_id: str,
    doing: str,
    *,
    preview: bool,
    restored: tuple[str, ...] = (),
    taken_back: tuple[str, ...] = (),
) -> Reply:
    content = {
        "done": not preview,
        "id": item_id,
        "doing": doing,
        "restored": list(restored),
        "taken_back": list(taken_back),
    }
    return Reply(f"{'would' if preview else 'did'} {doing}: {item_id}", content)
