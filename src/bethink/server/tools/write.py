"""Handlers of the tools remember, update_memory, link and forget."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from bethink.api.write import Forgotten
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import Refused
from bethink.ingest.admission import TRUST_CEILING
from bethink.ingest.updates import JUDGED
from bethink.memory import Memory
from bethink.model import Remembered, superseding_ids
from bethink.people import SPACE, PersonMemory
from bethink.render.quoting import Quote, fence_quotes, one_line, quote_item, removed_kinds
from bethink.render.wire import record_json
from bethink.server.tools.answers import (
    count_fitting,
    get_visible,
    in_tool_words,
    memory_json,
    text_cost,
)
from bethink.server.tools.catalog import RELATION_SCHEMA, SNIPPET_CHARS
from bethink.server.tools.tool import Call, Reply, validate_arguments

if TYPE_CHECKING:
    from bethink.maintain.runner import Report


_METADATA_FIELDS = (
    *("kind", "layer", "topic", "tags", "entities", "importance", "pinned", "occurred_at"),
    *("valid_to", "caption", "confidence", "anchors"),
)
_MAX_TRUST = TRUST_CEILING["agent"]

# What a model can do about a collision, by its kind.
_COLLISION_HINTS = {
    "near": "Similar to others: if it corrects one, forget it and call update_memory on that id.",
    "related": "May correct others; all are kept, the newer first. Forget what is wrong now.",
    "supersedes": "Outdates others; all are kept, the newer first. Forget what was never so.",
    "contradicts": "Contradicts others; all are kept. Correct the wrong ones.",
    "superseded": "A newer memory says otherwise and stays valid. Correct it if it is wrong.",
}


def remember(call: Call) -> Reply:
    """Handle `remember`: store one memory.

    The server sets its source class, which is never that of a user or the owner.
    """
    relations = read_relations(call)
    stored = call.memory.remember(**draft_fields(call), review=True)
    if stored.status not in {"waiting", "left_out"}:
        add_relations(call, stored.id, relations)
    content = record_json(stored)
    content["collisions"] = [
        {name: value for name, value in collision.items() if name != "resolve"}
        for collision in content["collisions"]
    ]
    return Reply(_format_stored(stored), content)


def draft_fields(call: Call) -> Json:
    """Return the fields of the memory that a call asks to store."""
    others = ("level", "session", "speaker", "user", "key", "force", "source")
    fields = call.given("text", *_METADATA_FIELDS, *others) | _audience(call)
    fields.setdefault("source", call.source)
    sources = [relation.other for relation in read_relations(call) if relation.type == _DERIVES]
    if sources:
        fields["derives_from"] = tuple(sources)  # no memory is trusted more than its sources
    return fields | {"source_class": call.arguments.get("origin", "agent")}


def _audience(call: Call) -> Json:
    """Return the audience of a memory, where a space has people."""
    given = call.given("audience")
    if given and not isinstance(call.memory, PersonMemory):
        if given["audience"] != SPACE:
            raise Refused(
                "an audience needs the token of a person", remedy="bethink people add NAME"
            )
        return {}
    return given


_DERIVES = "derives_from"


def read_relations(call: Call) -> list[Relation]:
    """Read the relations that a call gives a memory; each other memory must be visible."""
    given = call.arguments.get("relations", ())
    checked = [validate_arguments(relation, RELATION_SCHEMA) for relation in given]
    return [_relation_to(call, one) for one in checked]


class Relation(NamedTuple):
    """A relation to another memory, checked."""

    type: str
    other: str
    weight: float | None = None


def _relation_to(call: Call, arguments: Json) -> Relation:
    other = get_visible(call.memory, arguments["other"]).id
    return Relation(arguments["relation"], other, arguments.get("weight"))


def add_relations(call: Call, item_id: str, relations: Sequence[Relation]) -> None:
    """Link a memory as requested; a relation that it has already is left alone."""
    for relation in relations:
        _set_relation(call, item_id, relation, remove=False)


def _set_relation(call: Call, item_id: str, relation: Relation, *, remove: bool) -> str:
    """Make or remove a relation and return what was done."""
    memory, ends = call.memory, (item_id, relation.type, relation.other)
    known = memory.store.graph.links_of([item_id], (relation.type,), incoming=False)
    existing = next((one for one in known if one.dst.id == relation.other), None)
    if remove:
        if existing is None:
            return "unchanged"
        memory.unlink(*ends)
        return "removed"
    same = relation.weight is None or (existing and existing.weight == relation.weight)
    # A judged link only marks what a caller's takes out of recall.
    if existing is not None and same and existing.context != JUDGED:
        return "unchanged"
    if relation.weight is None:
        memory.link(*ends)
    else:
        memory.link(*ends, weight=relation.weight)
    return "linked"


def link(call: Call) -> Reply:
    item = get_visible(call.memory, call.arguments["id"])
    relation = _relation_to(call, call.arguments)
    status = _set_relation(call, item.id, relation, remove=call.arguments.get("remove", False))
    content = {"status": status, "id": item.id}
    content |= {"relation": relation.type, "other": relation.other}
    return Reply(f"{status}: {item.id} {relation.type} {relation.other}", content)


def _format_stored(stored: Remembered) -> str:
    lines = [f"{stored.status} {stored.id}"]
    if stored.status == "waiting":
        lines.append("it is not recalled until the user accepts it: bethink inbox")
    if stored.redacted:
        lines.append(f"removed secrets: {', '.join(stored.redacted)}")
    if "injection" in stored.flags:
        lines.append("flagged: it reads like instructions to a model")
    if stored.pending:
        lines.append(f"still pending: {', '.join(stored.pending)}")
    lines += [
        _COLLISION_HINTS[kind]
        for kind in _COLLISION_HINTS
        if any(collision.kind == kind for collision in stored.collisions)
    ]
    quotes = [
        Quote(f"{one.kind} {one.id} | {one.measure} | {one.action}", one.text)
        for one in stored.collisions
    ]
    return "\n".join([*lines, fence_quotes(quotes, "collisions")]).strip()


def update_memory(call: Call) -> Reply:
    item = get_visible(call.memory, call.arguments["id"])
    given = call.given("text", *_METADATA_FIELDS)
    audience = _audience(call)
    if not given and not audience:
        raise Refused("nothing to change", remedy="give the new text or another field")
    besides = audience | call.given("force", "revision")
    # New text comes from an agent, so its trust is an agent's at most.
    if given.get("text", item.text) != item.text and item.trust > _MAX_TRUST:
        besides["trust"] = _MAX_TRUST
    after = call.memory.update(item.id, **given, **besides)
    changed = [*(name for name in given if getattr(after, name) != getattr(item, name)), *audience]
    text = f"unchanged {item.id}, revision {item.rev}: it already has these values"
    if (after.id, after.rev) != (item.id, item.rev):
        text = f"corrected {after.id}, now revision {after.rev}: {one_line(', '.join(changed))}"
    content: Json = {"id": after.id, "rev": after.rev, "changed": changed}
    if item.id != after.id and not call.memory.store.items.get([item.id]):
        content["erased"] = [item.id]
        text += f"\nerased {item.id} with its history, for all who saw it"
    if removed := removed_kinds(given.get("text", after.text), after.text):
        text += f"\nremoved secrets: {', '.join(removed)}"
    if newer := superseding_ids(after, call.memory.links(after.id)):
        text += f"\nsuperseded by {', '.join(newer)}, so recall does not return it"
        text += "; correct that one"
    content["memory"] = memory_json(after)
    return Reply(f"{text}\n{fence_quotes([quote_item(after)])}", content)


_RETRY_REMEDY = "call forget again without a token, show the user the preview, and use its token"


def forget(call: Call) -> Reply:
    arguments, memory = call.arguments, call.memory
    if bool(arguments.get("ids")) == bool(arguments.get("sweep")):
        raise Refused("nothing to forget", remedy="give either ids or sweep: true")
    if arguments.get("sweep"):
        if arguments.get("erase"):
            raise Refused("a sweep cannot erase", remedy="omit erase, or give ids")
        return _sweep(call, arguments.get("token"))
    ids = list(dict.fromkeys(get_visible(memory, item_id).id for item_id in arguments["ids"]))
    erase = arguments.get("erase", False)
    forgotten = memory.forget(*ids, erase=erase, preview=True)
    token = _preview_token(memory, forgotten, erase=erase)
    if "token" not in arguments:
        return _preview_reply(forgotten, token, erase=erase)
    if arguments["token"] != token:
        raise Refused(
            "the token is unknown, or the memories changed since the preview", remedy=_RETRY_REMEDY
        )
    ids_to_forget = [item.id for item in forgotten.items]
    reason = arguments.get("reason") or "forgotten"
    if ids_to_forget:
        forgotten = memory.forget(*ids_to_forget, erase=erase, reason=reason)
    return _done_reply(forgotten, erase=erase)


def _preview_token(memory: Memory, forgotten: Forgotten, *, erase: bool) -> str:
    """Return a token for exactly this preview: these revisions and all that goes with them."""
    going = sorted((item.id, item.rev) for item in (*forgotten.items, *forgotten.derived))
    others = sorted(forgotten.quarantined), sorted(forgotten.restored)
    fingerprint = (memory.store.space, erase, going, *others)
    return hashlib.sha256(repr(fingerprint).encode()).hexdigest()[:12]


def _preview_reply(forgotten: Forgotten, token: str, *, erase: bool) -> Reply:
    doing = "erased permanently" if erase else "forgotten"
    count = len(forgotten.items) + len(forgotten.derived)
    confirm = f"To confirm, repeat the call, ids included, with token: {token}"
    lines = [f"Nothing changed yet. Would be {doing}: {count}. {confirm}"]
    lines += [f"kept: {item_id}, {why}" for item_id, why in forgotten.kept]
    quotes = [quote_item(item) for item in forgotten.items]
    quotes += [quote_item(item, "derived from it") for item in forgotten.derived]
    lines += [f"would be quarantined: {item_id}" for item_id in forgotten.quarantined]
    lines += [f"would be restored: {item_id}" for item_id in forgotten.restored]
    if not forgotten.items:
        lines[0] = "Nothing would be forgotten."
    return Reply(
        "\n".join([*lines, fence_quotes(quotes, max_chars=SNIPPET_CHARS)]).strip(),
        _forget_content(forgotten, done=False, token=token if forgotten.items else None),
    )


def _done_reply(forgotten: Forgotten, *, erase: bool) -> Reply:
    ids = " ".join(item.id for item in (*forgotten.items, *forgotten.derived))
    if not ids:
        return Reply("Nothing was forgotten.", _forget_content(forgotten, done=False))
    far = "".join(f"\ncopies may remain in: {place}" for place in _out_of_reach(forgotten))
    text = f"erased {ids}{far}" if erase else f"forgotten {ids}; undo restores it"
    return Reply(text, _forget_content(forgotten, done=True))


def _out_of_reach(forgotten: Forgotten) -> tuple[str, ...]:
    return forgotten.receipt.out_of_reach if forgotten.receipt else ()


def _forget_content(forgotten: Forgotten, *, done: bool, token: str | None = None) -> Json:
    erased = done and forgotten.receipt is not None
    return _reply_content(
        done=done,
        token=token,
        memories=[
            # The answer must not repeat what was erased.
            {"id": item.id, "text": None if erased else item.text}
            for item in forgotten.items
        ],
        kept=[{"id": item_id, "reason": why} for item_id, why in forgotten.kept],
        derived=[item.id for item in forgotten.derived],
        quarantined=list(forgotten.quarantined),
        restored=list(forgotten.restored),
        out_of_reach=list(_out_of_reach(forgotten)),
    )


def _reply_content(**fields: object) -> Json:
    lists: Json = {name: [] for name in ("memories", "kept", "derived", "quarantined", "restored")}
    usual: Json = {"token": None, "run": None, "left_out": 0, "left": [], "out_of_reach": []}
    return lists | usual | fields


def _sweep(call: Call, token: str | None) -> Reply:
    memory, limits = call.memory, tidy_limits(call)
    if token is None:
        return _sweep_preview(call, memory.maintain("forget", preview=True, **limits))
    report = memory.maintain("forget", token=token, **limits)
    gone = [item_id for done in report.done for item_id in done.ended]
    return Reply(
        f"forgotten: {len(gone)}. To restore them, call undo with id {report.run}.",
        _reply_content(
            done=bool(gone),
            run=report.run,
            memories=[{"id": gone_id, "text": None} for gone_id in gone],
            left=[in_tool_words(one_line(reason)) for reason in report.reasons()],
        ),
    )


def tidy_limits(call: Call) -> Json:
    """Return the limits of a call that tidies up, as arguments of `maintain`."""
    where = {"where": call.arguments["scope"]} if call.arguments.get("scope") else {}
    return call.given("share", "min_age_days", "similarity") | where


def _sweep_preview(call: Call, report: Report) -> Reply:
    ids = [item_id for step in report.plan.steps for item_id in step.proposal.leaving]
    items = call.memory.browse(limit=len(ids), ids=tuple(ids)) if ids else []
    items = items[
        : count_fitting(call, (text_cost(call, item.text[:SNIPPET_CHARS]) for item in items))
    ]
    summary = [_sweep_summary(call, report, ids)]
    if len(items) < len(ids):
        summary.append(f"{len(ids) - len(items)} of them not shown.")
    quotes = fence_quotes([quote_item(item) for item in items], max_chars=SNIPPET_CHARS)
    return Reply(
        "\n".join([*summary, *_sweep_reasons(report), quotes]).strip(),
        _reply_content(
            done=False,
            token=report.plan.token if ids else None,
            memories=[{"id": item.id, "text": item.text} for item in items],
            left_out=len(ids) - len(items),
            left=[in_tool_words(one_line(reason)) for reason in report.reasons()],
        ),
    )


def _sweep_summary(call: Call, report: Report, ids: list[str]) -> str:
    if ids:
        return (
            f"Nothing changed yet. Would be forgotten: {len(ids)}. "
            f"To confirm, repeat the call with token: {report.plan.token}"
        )
    if report.left:
        return "Nothing would be forgotten."
    return nothing_in_reach(call, "forget") or (
        "Nothing to forget: no memory is long unused and unimportant."
    )


def nothing_in_reach(call: Call, doing: str) -> str:
    """Say that the limits of a call leave no memory; empty where they leave one."""
    where, age = call.arguments.get("scope") or {}, call.arguments.get("min_age_days")
    if not call.memory.browse(limit=1, **where):
        what = "no memory is in that scope" if where else "nothing is stored"
        return f"Nothing to {doing}: {what}."
    if age is None:
        return ""
    then = call.memory.now - timedelta(days=age)
    if call.memory.browse(limit=1, **where, stored_by=then):
        return ""
    return f"Nothing to {doing}: no memory is {age:g} days old."


def _sweep_reasons(report: Report) -> list[str]:
    """Say which memories could be forgotten but are not, and what to do about it."""
    waiting = [skipped for skipped in report.left if skipped.why]
    lines = [
        in_tool_words(one_line(skipped.hindrance)) for skipped in report.left if not skipped.why
    ]
    for hindrance, count in Counter(skipped.hindrance for skipped in waiting).items():
        remedy = " Give a larger share, or repeat it." if hindrance.startswith("limit") else ""
        lines.append(
            in_tool_words(one_line(f"{count} more could be forgotten; {hindrance}.")) + remedy
        )
    return lines
