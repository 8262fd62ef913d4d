"""`remember` and `update_memory`: storing, and correcting what is stored."""

from __future__ import annotations

from typing import Any

from recollect.errors import Refused
from recollect.ingest.admit import TRUST_CEILING
from recollect.jsonable import Json
from recollect.mcp.fencing import NOTICE, Quote, labelled, memory_json, one_line, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.model import Item, Remembered
from recollect.wire import remembered_json

_ABOUT = (
    *("kind", "layer", "topic", "tags", "entities", "importance", "pinned", "occurred_at"),
    "valid_to",
)
_MOST_TRUST = TRUST_CEILING["agent"]

# What a model can do about a memory that the new one has met.
_NEXT = {
    "near": "Near others: if it corrects one, forget this and call update_memory on that id.",
    "contradicts": "Contradicts others, all are kept: find out which holds and correct the rest.",
    "superseded": "A newer memory says otherwise and holds: correct that one if it is wrong.",
}


def remember(call: Call) -> Reply:
    """Stores one memory. Who wrote it is the server's to say: never a user or owner."""
    stored = call.memory.remember(**drafted(call))
    content = remembered_json(stored)
    content["collisions"] = [
        {name: one[name] for name in ("id", "kind", "similarity", "action")} | {"text": one["text"]}
        for one in content["collisions"]
    ]
    return Reply(_told(stored), content)


def drafted(call: Call) -> Json:
    """The fields of the memory that a call asks to store."""
    told = call.given("text", *_ABOUT, "key", "force", "source")
    told.setdefault("source", call.source)
    return told | {"source_class": call.told.get("origin", "agent")}


def _told(stored: Remembered) -> str:
    lines = [f"{stored.status} {stored.id}"]
    if stored.redacted:
        lines.append(f"secrets taken out: {', '.join(stored.redacted)}")
    if "injection" in stored.flags:
        lines.append("flagged: it reads like instructions to a model")
    if stored.pending:
        lines.append(f"still to be done: {', '.join(stored.pending)}")
    lines += [_NEXT[kind] for kind in _NEXT if any(one.kind == kind for one in stored.collisions)]
    quotes = [Quote(f"{one.kind} {one.id} | {one.action}", one.text) for one in stored.collisions]
    return "\n".join([*lines, quoted(quotes, "collisions")]).strip()


def _is_so(item: Item, name: str, told: Any) -> bool:
    """Whether a field plainly holds this already: a call repeated makes no new revision."""
    now = getattr(item, name)
    return bool(told == (list(now) if isinstance(now, tuple) else now))


def update_memory(call: Call) -> Reply:
    """A new revision of a memory; the id stays."""
    item = seen(call.memory, call.told["id"])
    given = call.given("text", *_ABOUT)
    if not given:
        raise Refused("nothing is to be changed", remedy="give the new text or another field")
    changes = {name: told for name, told in given.items() if not _is_so(item, name, told)}
    after, text = item, f"unchanged {item.id}, revision {item.rev}: it says so already"
    if changes:
        # New words are an agent's, whosever the old ones were.
        less = {"trust": _MOST_TRUST} if "text" in changes and item.trust > _MOST_TRUST else {}
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
    return Reply(f"{text}\n{quoted([labelled(after)])}", content)
