"""Handlers of the tools remember, update_memory and forget."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.ingest.admission import TRUST_CEILING
from bethink.memory import Forgotten, Memory
from bethink.model import Item, Remembered
from bethink.render.wire import remembered_json
from bethink.server.tools.answers import (
    NOTICE,
    Quote,
    count_fitting,
    fence_quotes,
    get_visible,
    memory_json,
    one_line,
    quote_item,
    text_cost,
)
from bethink.server.tools.catalog import SNIPPET_CHARS
from bethink.server.tools.tool import Call, Reply

if TYPE_CHECKING:
    from bethink.maintain.runner import Report


_METADATA_FIELDS = (
    *("kind", "layer", "topic", "tags", "entities", "importance", "pinned", "occurred_at"),
    "valid_to",
)
_MAX_TRUST = TRUST_CEILING["agent"]

# What a model can do about a memory that the new one has met.
_COLLISION_HINTS = {
    "near": "Near others: if it corrects one, forget this and call update_memory on that id.",
    "contradicts": "Contradicts others, all are kept: find out which holds and correct the rest.",
    "superseded": "A newer memory says otherwise and holds: correct that one if it is wrong.",
}


def remember(call: Call) -> Reply:
    """Handle `remember`: store one memory.

    The server sets its source class, which is never that of a user or the owner.
    """
    stored = call.memory.remember(**draft_fields(call))
    content = remembered_json(stored)
    content["collisions"] = [
        {name: one[name] for name in ("id", "kind", "similarity", "action")} | {"text": one["text"]}
        for one in content["collisions"]
    ]
    return Reply(_format_stored(stored), content)


def draft_fields(call: Call) -> Json:
    """Return the fields of the memory that a call asks to store."""
    told = call.given("text", *_METADATA_FIELDS, "key", "force", "source")
    told.setdefault("source", call.source)
    return told | {"source_class": call.told.get("origin", "agent")}


def _format_stored(stored: Remembered) -> str:
    lines = [f"{stored.status} {stored.id}"]
    if stored.redacted:
        lines.append(f"secrets taken out: {', '.join(stored.redacted)}")
    if "injection" in stored.flags:
        lines.append("flagged: it reads like instructions to a model")
    if stored.pending:
        lines.append(f"still to be done: {', '.join(stored.pending)}")
    lines += [
        _COLLISION_HINTS[kind]
        for kind in _COLLISION_HINTS
        if any(one.kind == kind for one in stored.collisions)
    ]
    quotes = [Quote(f"{one.kind} {one.id} | {one.action}", one.text) for one in stored.collisions]
    return "\n".join([*lines, fence_quotes(quotes, "collisions")]).strip()


def _is_unchanged(item: Item, name: str, value: Any) -> bool:
    """Check whether a field has this value already: a repeated call makes no new revision."""
    now = getattr(item, name)
    return bool(value == (list(now) if isinstance(now, tuple) else now))


def update_memory(call: Call) -> Reply:
    """Handle `update_memory`: store a new revision of a memory under the same id."""
    item = get_visible(call.memory, call.told["id"])
    given = call.given("text", *_METADATA_FIELDS)
    if not given:
        raise Refused("nothing is to be changed", remedy="give the new text or another field")
    changes = {name: told for name, told in given.items() if not _is_unchanged(item, name, told)}
    after, text = item, f"unchanged {item.id}, revision {item.rev}: it says so already"
    if changes:
        # New words are an agent's, whosever the old ones were.
        less = {"trust": _MAX_TRUST} if "text" in changes and item.trust > _MAX_TRUST else {}
        after = call.memory.update(item.id, **changes, **less, **call.given("force"))
        names = ", ".join(changes)
        text = f"corrected {after.id}, now revision {after.rev}: {one_line(names)}"
    content = {
        "id": after.id,
        "rev": after.rev,
        "changed": list(changes),
        "notice": NOTICE,
        "memory": memory_json(after),
    }
    return Reply(f"{text}\n{fence_quotes([quote_item(after)])}", content)


_RETRY_REMEDY = "call forget again without a token, show the user what would go, and use its token"


def forget(call: Call) -> Reply:
    """Handle `forget`: preview what would go or, with the preview's token, forget it."""
    told, memory = call.told, call.memory
    if bool(told.get("ids")) == bool(told.get("sweep")):
        raise Refused("name what to forget", remedy="give ids, or sweep: true, not both")
    if told.get("sweep"):
        if told.get("erase"):
            raise Refused("a sweep never erases", remedy="leave out erase, or give ids")
        return _sweep(call, told.get("token"))
    ids = list(dict.fromkeys(get_visible(memory, item_id).id for item_id in told["ids"]))
    erase = told.get("erase", False)
    would = memory.forget(*ids, erase=erase, preview=True)
    token = _preview_token(memory, would, erase=erase)
    if "token" not in told:
        return _preview_reply(would, token, erase=erase)
    if told["token"] != token:
        raise Refused("things are not as they were shown with that token", remedy=_RETRY_REMEDY)
    going = [item.id for item in would.items]
    reason = told.get("reason") or "forgotten"
    if going:
        would = memory.forget(*going, erase=erase, reason=reason)
    return _done_reply(would, erase=erase)


def _preview_token(memory: Memory, forgotten: Forgotten, *, erase: bool) -> str:
    """Return a token for exactly this preview: these revisions and all that goes with them."""
    going = sorted((item.id, item.rev) for item in (*forgotten.items, *forgotten.derived))
    told = (
        memory.store.space,
        erase,
        going,
        sorted(forgotten.quarantined),
        sorted(forgotten.restored),
    )
    return hashlib.sha256(repr(told).encode()).hexdigest()[:12]


def _preview_reply(forgotten: Forgotten, token: str, *, erase: bool) -> Reply:
    doing = "erased for good" if erase else "forgotten"
    count = len(forgotten.items) + len(forgotten.derived)
    lines = [f"Nothing was changed. {count} would be {doing}; token: {token}"]
    lines += [f"stays: {item_id}, {why}" for item_id, why in forgotten.kept]
    quotes = [quote_item(item) for item in forgotten.items]
    quotes += [quote_item(item, "made from it") for item in forgotten.derived]
    lines += [f"would be quarantined: {item_id}" for item_id in forgotten.quarantined]
    lines += [f"would come back: {item_id}" for item_id in forgotten.restored]
    if not forgotten.items:
        lines[0] = "Nothing would go."
    return Reply(
        "\n".join([*lines, fence_quotes(quotes, max_chars=SNIPPET_CHARS)]).strip(),
        _forget_content(forgotten, done=False, token=token if forgotten.items else None),
    )


def _done_reply(forgotten: Forgotten, *, erase: bool) -> Reply:
    ids = " ".join(item.id for item in (*forgotten.items, *forgotten.derived))
    if not ids:
        return Reply("Nothing went.", _forget_content(forgotten, done=False))
    far = "".join(f"\nout of reach: {place}" for place in _out_of_reach(forgotten))
    told = f"erased {ids}{far}" if erase else f"forgotten {ids}; it can be brought back"
    return Reply(told, _forget_content(forgotten, done=True))


def _out_of_reach(forgotten: Forgotten) -> tuple[str, ...]:
    return forgotten.receipt.out_of_reach if forgotten.receipt else ()


def _forget_content(forgotten: Forgotten, *, done: bool, token: str | None = None) -> Json:
    erased = done and forgotten.receipt is not None
    return _reply_content(
        done=done,
        token=token,
        memories=[
            # What was erased is not repeated by the answer that says so.
            {"id": item.id, "text": None if erased else item.text}
            for item in forgotten.items
        ],
        kept=[{"id": item_id, "reason": why} for item_id, why in forgotten.kept],
        derived=[item.id for item in forgotten.derived],
        quarantined=list(forgotten.quarantined),
        restored=list(forgotten.restored),
        out_of_reach=list(_out_of_reach(forgotten)),
    )


def _reply_content(**told: Any) -> Json:
    lists: Json = {name: [] for name in ("memories", "kept", "derived", "quarantined", "restored")}
    usual: Json = {"token": None, "run": None, "left_out": 0, "out_of_reach": []}
    return lists | {"notice": NOTICE} | usual | told


def _sweep(call: Call, token: str | None) -> Reply:
    memory = call.memory
    if token is None:
        report = memory.maintain("forget", preview=True)
        ids = _leaving_ids(report)
        items = memory.browse(limit=len(ids), ids=tuple(ids)) if ids else []
        items = items[
            : count_fitting(call, (text_cost(call, item.text[:SNIPPET_CHARS]) for item in items))
        ]
        shown = [{"id": item.id, "text": item.text} for item in items]
        left_out = len(ids) - len(items)
        told = f"Nothing was changed. {len(ids)} would be forgotten; token: {report.plan.token}"
        if not ids:
            told = "Nothing is ripe for forgetting."
        if left_out:
            told += f"\n{left_out} of them are not shown."
        return Reply(
            f"{told}\n{fence_quotes([quote_item(item) for item in items], max_chars=SNIPPET_CHARS)}".strip(),
            _reply_content(
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
        _reply_content(
            done=bool(gone), run=report.run, memories=[{"id": one, "text": None} for one in gone]
        ),
    )


def _leaving_ids(report: Report) -> list[str]:
    return [item_id for step in report.plan.steps for item_id in step.proposal.leaving]
