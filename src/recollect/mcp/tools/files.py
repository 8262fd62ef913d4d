"""Memory of files: `recall_file`, `read_smart`, `note_edit`."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import Refused
from recollect.mcp.fencing import NOTICE, Quote, quoted
from recollect.mcp.tool import Call, Reply
from recollect.wire import file_history_json, smart_read_json

_PREVIEW = 300  # characters of a linked memory


def recall_file(call: Call) -> Reply:
    """What was done to a file, and why."""
    history = call.memory.recall_file(call.told["path"], **call.given("intents"))
    linked = call.memory.browse(limit=20, ids=history.items) if history.items else []
    content = file_history_json(history, linked, _PREVIEW)
    if not history.edits:
        return Reply("Nothing is known of such a file.", content | {"notice": NOTICE})
    days = "\n".join(f"{one.day} {one.operation} × {one.times}" for one in history.days)
    quotes = [Quote(f"{history.edits} edits", "\n".join([*history.paths, days]))]
    quotes += [
        Quote(f"why | {one.last_at:%Y-%m-%d} | {one.times} times", one.text)
        for one in history.intents
    ]
    quotes += [Quote(f"memory {item.id}", item.text[:_PREVIEW]) for item in linked]
    return Reply(quoted(quotes, "file history"), content | {"notice": NOTICE})


def read_smart(call: Call) -> Reply:
    """A file of the project, or what changed in it."""
    root = call.memory.settings.project
    path = Path(call.told["path"])
    if "\0" in call.told["path"]:
        raise Refused("path holds a NUL character")
    # A relative path is one of the project, wherever the server was started.
    wanted = root / path if root is not None else path
    read = call.memory.read_smart(wanted, force=call.told.get("force", False))
    if read.text is not None:
        quotes = [Quote(f"{read.status} | {read.tokens} tokens", read.text)]
    else:
        changed = [chunk for chunk in read.chunks if chunk.text is not None]
        quotes = [
            Quote(f"{one.state} {one.id} | lines {one.first_line} to {one.last_line}",
                  one.text or "")
            for one in changed
        ]  # fmt: skip
    lines = [f"{read.status}: {read.tokens} of {read.whole_tokens} tokens", *read.notes]
    lines += [f"removed {name}" for name in read.removed]
    text = "\n".join([*lines, quoted(quotes, "file", longest=None)]).strip()
    return Reply(text, smart_read_json(read) | {"notice": NOTICE})


def note_edit(call: Call) -> Reply:
    """Keeps what was done to a file."""
    edit = {"operation": "edit", **call.given("path", "operation", "intent", "session", "at")}
    new = call.memory.note_edits([edit])
    told = "noted" if new else "known already"
    return Reply(told, {"new": new, "known": 1 - new})
