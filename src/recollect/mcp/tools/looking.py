"""Looking around: `list_entities`, `history`, `timeline`, `threads`, `insights`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from recollect.jsonable import iso
from recollect.mcp.fencing import NOTICE, Quote, labelled, memory_json, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.wire import entity_json, insight_json, thread_json

if TYPE_CHECKING:
    from recollect.insights import Branch

_ENTITY = ("id", "kind", "name", "aliases", "mentions", "pace", "last_seen_at")


def list_entities(call: Call) -> Reply:
    """Whom and what the memories speak of."""
    wanted = call.given("prefix", "kind", "min_memories", "limit", "offset")
    found = [entity_json(entity) for entity in call.memory.entities(**wanted)]
    told = [{name: one[name] for name in _ENTITY} for one in found]
    lines = [f"{one['id']}: {one['mentions']} memories, {one['pace']}" for one in found]
    if not lines:
        return Reply("No entity is known.", {"notice": NOTICE, "entities": []})
    listed = quoted([Quote(f"{len(lines)} entities", "\n".join(lines))], "entities")
    return Reply(listed, {"notice": NOTICE, "entities": told})


def history(call: Call) -> Reply:
    """All revisions of a memory."""
    revisions = call.memory.history(seen(call.memory, call.told["id"]).id)
    quotes = [Quote(f"revision {one.rev} | {iso(one.live_from)}", one.text) for one in revisions]
    told = [
        {"rev": one.rev, "text": one.text, "from": iso(one.live_from),
         "to": iso(one.live_to)}
        for one in revisions
    ]  # fmt: skip
    return Reply(quoted(quotes, "revisions"), {"notice": NOTICE, "revisions": told})


def timeline(call: Call) -> Reply:
    """What came before and after a memory."""
    around = seen(call.memory, call.told["id"]).id
    items = call.memory.timeline(around, **call.given("window"))
    quotes = [labelled(item, *(["this one"] if item.id == around else [])) for item in items]
    memories = [memory_json(item) for item in items]
    return Reply(quoted(quotes), {"notice": NOTICE, "memories": memories})


def threads(call: Call) -> Reply:
    """What goes on, or one of it with what its memories say."""
    memory = call.memory
    if "id" in call.told:
        thread = memory.thread(call.told["id"])
        ids = tuple(member.item for member in thread.members)
        items = {one.id: one for one in memory.browse(limit=len(ids), ids=ids)} if ids else {}
        quotes = [labelled(items[one]) for one in ids if one in items]
        told = [thread_json(thread, items)]
        heads = [Quote(f"{thread.id} | {thread.lifecycle}, {thread.state}", thread.headline)]
        return Reply(quoted([*heads, *quotes], "thread"), {"notice": NOTICE, "threads": told})
    found = memory.threads(limit=call.told.get("limit", 20), offset=call.told.get("offset", 0))
    quotes = [
        Quote(
            f"{one.id} | {one.lifecycle}, {one.state} | {len(one.members)} memories", one.headline
        )
        for one in found
    ]
    text = quoted(quotes, "threads") or "No thread is known; consolidation finds them."
    return Reply(text, {"notice": NOTICE, "threads": [thread_json(one) for one in found]})


def insights(call: Call) -> Reply:
    """The insight tree."""
    tree = call.memory.insights()
    text = quoted(list(_drawn(tree)), "insights") or "There are no insights yet."
    return Reply(text, {"notice": NOTICE, "insights": [insight_json(one) for one in tree]})


def _drawn(tree: Sequence[Branch], depth: int = 0) -> Iterator[Quote]:
    for branch in tree:
        item = branch.insight
        stale = " | stale" if branch.stale else ""
        yield Quote(f"{item.id} | {item.kind} at depth {depth}{stale}", item.text)
        yield from _drawn(branch.below, depth + 1)
