"""`forget`, in two steps: first what would go and a token for it, then, with that, the deed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from recollect.errors import Refused
from recollect.jsonable import Json
from recollect.mcp.fencing import NOTICE, labelled, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.pages import fitting, weight
from recollect.mcp.tools.usual import GLIMPSE
from recollect.memory import Forgotten, Memory

if TYPE_CHECKING:
    from recollect.maintain.run import Report

_AGAIN = "call forget again without a token, show the user what would go, and use its token"


def forget(call: Call) -> Reply:
    """Shows what would go or, with the token of exactly that, lets go of it."""
    told, memory = call.told, call.memory
    if bool(told.get("ids")) == bool(told.get("sweep")):
        raise Refused("name what to forget", remedy="give ids, or sweep: true, not both")
    if told.get("sweep"):
        if told.get("erase"):
            raise Refused("a sweep never erases", remedy="leave out erase, or give ids")
        return _sweep(call, told.get("token"))
    ids = list(dict.fromkeys(seen(memory, item_id).id for item_id in told["ids"]))
    erase = told.get("erase", False)
    would = memory.forget(*ids, erase=erase, preview=True)
    token = _token(memory, would, erase=erase)
    if "token" not in told:
        return _preview(would, token, erase=erase)
    if told["token"] != token:
        raise Refused("things are not as they were shown with that token", remedy=_AGAIN)
    going = [item.id for item in would.items]
    reason = told.get("reason") or "forgotten"
    if going:
        would = memory.forget(*going, erase=erase, reason=reason)
    return _done(would, erase=erase)


def _token(memory: Memory, would: Forgotten, *, erase: bool) -> str:
    """Stands for exactly this: these revisions, and whatever would go with them."""
    going = sorted((item.id, item.rev) for item in (*would.items, *would.derived))
    told = (memory.store.space, erase, going, sorted(would.quarantined), sorted(would.restored))
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _preview(would: Forgotten, token: str, *, erase: bool) -> Reply:
    doing = "erased for good" if erase else "forgotten"
    count = len(would.items) + len(would.derived)
    lines = [f"Nothing was changed. {count} would be {doing}; token: {token}"]
    lines += [f"stays: {item_id}, {why}" for item_id, why in would.kept]
    quotes = [labelled(item) for item in would.items]
    quotes += [labelled(item, "made from it") for item in would.derived]
    lines += [f"would be quarantined: {item_id}" for item_id in would.quarantined]
    lines += [f"would come back: {item_id}" for item_id in would.restored]
    if not would.items:
        lines[0] = "Nothing would go."
    return Reply(
        "\n".join([*lines, quoted(quotes, longest=GLIMPSE)]).strip(),
        _content(would, done=False, token=token if would.items else None),
    )


def _done(done: Forgotten, *, erase: bool) -> Reply:
    ids = " ".join(item.id for item in (*done.items, *done.derived))
    if not ids:
        return Reply("Nothing went.", _content(done, done=False))
    far = "".join(f"\nout of reach: {place}" for place in _out_of_reach(done))
    told = f"erased {ids}{far}" if erase else f"forgotten {ids}; it can be brought back"
    return Reply(told, _content(done, done=True))


def _out_of_reach(done: Forgotten) -> tuple[str, ...]:
    return done.receipt.out_of_reach if done.receipt else ()


def _content(told: Forgotten, *, done: bool, token: str | None = None) -> Json:
    erased = done and told.receipt is not None
    return _shape(
        done=done,
        token=token,
        memories=[
            # What was erased is not repeated by the answer that says so.
            {"id": item.id, "text": None if erased else item.text}
            for item in told.items
        ],
        kept=[{"id": item_id, "reason": why} for item_id, why in told.kept],
        derived=[item.id for item in told.derived],
        quarantined=list(told.quarantined),
        restored=list(told.restored),
        out_of_reach=list(_out_of_reach(told)),
    )


def _shape(**told: Any) -> Json:
    lists: Json = {name: [] for name in ("memories", "kept", "derived", "quarantined", "restored")}
    usual: Json = {"token": None, "run": None, "left_out": 0, "out_of_reach": []}
    return lists | {"notice": NOTICE} | usual | told


def _sweep(call: Call, token: str | None) -> Reply:
    memory = call.memory
    if token is None:
        report = memory.maintain("forget", preview=True)
        ids = _leaving(report)
        items = memory.browse(limit=len(ids), ids=tuple(ids)) if ids else []
        items = items[: fitting(call, (weight(call, item.text[:GLIMPSE]) for item in items))]
        shown = [{"id": item.id, "text": item.text} for item in items]
        left_out = len(ids) - len(items)
        told = f"Nothing was changed. {len(ids)} would be forgotten; token: {report.plan.token}"
        if not ids:
            told = "Nothing is ripe for forgetting."
        if left_out:
            told += f"\n{left_out} of them are not shown."
        return Reply(
            f"{told}\n{quoted([labelled(item) for item in items], longest=GLIMPSE)}".strip(),
            _shape(
                done=False,
                token=report.plan.token if ids else None,
                memories=shown,
                left_out=left_out,
            ),
        )
    report = memory.maintain("forget", token=token)
    gone = [item_id for done in report.done for item_id in done.ended]
    return Reply(
        f"forgotten {len(gone)}; undo with {report.run} brings them back",
        _shape(
            done=bool(gone), run=report.run, memories=[{"id": one, "text": None} for one in gone]
        ),
    )


def _leaving(report: Report) -> list[str]:
    return [item_id for step in report.plan.steps for item_id in step.proposal.leaving]
