"""`remember` and `update_memory`: storing, and correcting what is stored."""

from __future__ import annotations

from recollect.errors import Refused
from recollect.mcp.fencing import NOTICE, Quote, labelled, memory_json, one_line, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.model import Remembered
from recollect.wire import remembered_json

_ABOUT = (
    *("kind", "layer", "topic", "tags", "entities", "importance", "pinned", "occurred_at"),
    "valid_to",
)


def remember(call: Call) -> Reply:
    """Stores one memory. Who wrote it is the server's to say: never a user or owner."""
    told = call.given("text", *_ABOUT, "key", "force", "source")
    told.setdefault("source", f"mcp:{call.client}" if call.client else "mcp")
    told["source_class"] = call.told.get("origin", "agent")
    stored = call.memory.remember(**told)
    content = remembered_json(stored)
    content["collisions"] = [
        {name: one[name] for name in ("id", "kind", "similarity", "action")} | {"text": one["text"]}
        for one in content["collisions"]
    ]
    return Reply(_told(stored), content)


def _told(stored: Remembered) -> str:
    lines = [f"{stored.status} {stored.id}"]
    if stored.redacted:
        lines.append(f"secrets taken out: {', '.join(stored.redacted)}")
    if "injection" in stored.flags:
        lines.append("flagged: it reads like instructions to a model")
    if stored.pending:
        lines.append(f"still to be done: {', '.join(stored.pending)}")
    quotes = [Quote(f"{one.kind} {one.id} | {one.action}", one.text) for one in stored.collisions]
    return "\n".join([*lines, quoted(quotes, "collisions")]).strip()


def update_memory(call: Call) -> Reply:
    """A new revision of a memory; the id stays."""
    item = seen(call.memory, call.told["id"])
    changes = call.given("text", *_ABOUT)
    if not changes:
        raise Refused("nothing is to be changed", remedy="give the new text or another field")
    after = call.memory.update(item.id, **changes, **call.given("force"))
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
