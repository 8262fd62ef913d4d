"""Looking around: `list_entities`, `history`, `timeline`, `threads`, `insights`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from recollect.errors import NotFound
from recollect.facade.browsing import in_its_place
from recollect.jsonable import Json, iso
from recollect.mcp.fencing import NOTICE, Quote, labelled, memory_json, quoted
from recollect.mcp.sight import seen
from recollect.mcp.tool import Call, Reply
from recollect.mcp.tools.pages import fitting, newest, older, weight
from recollect.wire import entity_json, thread_json

if TYPE_CHECKING:
    from recollect.model import Item, Member, Thread

_ENTITY = ("id", "kind", "name", "aliases", "mentions", "pace", "last_seen_at")
_USUAL = {"entities": 30, "revisions": 10, "threads": 20, "members": 20}


def list_entities(call: Call) -> Reply:
    """Whom and what the memories speak of."""
    wanted = call.given("prefix", "kind", "min_memories", "offset")
    most = call.told.get("limit", _USUAL["entities"])
    listed = call.memory.entities(limit=most + 1, **wanted)
    found = [entity_json(entity) for entity in listed[:most]]
    content = {
        "notice": NOTICE,
        "entities": [{name: one[name] for name in _ENTITY} for one in found],
        "more": len(listed) > most,
    }
    lines = [f"{one['id']}: {one['mentions']} memories, {one['pace']}" for one in found]
    if not lines:
        return Reply("No entity is known.", content)
    text = quoted([Quote(f"{len(lines)} entities", "\n".join(lines))], "entities", longest=None)
    return Reply(text + _further(call, len(found), more=len(listed) > most), content)


def _further(call: Call, shown: int, *, more: bool) -> str:
    return f"\nThere are more: offset {call.told.get('offset', 0) + shown}." if more else ""


def history(call: Call) -> Reply:
    """The revisions of a memory, as far as each may be seen."""
    ceiling = call.memory.settings.max_classification
    found = call.memory.history(seen(call.memory, call.told["id"]).id)
    visible = [one for one in found if one.classification <= ceiling]
    revisions, left_out = newest(
        call, visible, lambda wanted: [one.text for one in wanted], usual=_USUAL["revisions"]
    )
    quotes = [Quote(f"revision {one.rev} | {iso(one.live_from)}", one.text) for one in revisions]
    told = [
        {"rev": one.rev, "text": one.text, "from": iso(one.live_from),
         "to": iso(one.live_to)}
        for one in revisions
    ]  # fmt: skip
    text = quoted(quotes, "revisions") or "There are no older revisions."
    return Reply(
        text + older(call, len(revisions), left_out),
        {"notice": NOTICE, "revisions": told, "left_out": left_out},
    )


def timeline(call: Call) -> Reply:
    """What came before and after a memory, and itself in between."""
    middle = seen(call.memory, call.told["id"])
    found = in_its_place(middle, call.memory.timeline(middle.id, **call.given("window")))
    items = _nearest(call, middle, found)
    left_out = len(found) - len(items)
    quotes = [labelled(item, *(["this one"] if item.id == middle.id else [])) for item in items]
    content = {
        "notice": NOTICE,
        "memories": [memory_json(item) for item in items],
        "left_out": left_out,
    }
    more = f"\n{left_out} further away left out: ask around the first or the last of these."
    return Reply(quoted(quotes) + (more if left_out else ""), content)


def _nearest(call: Call, middle: Item, items: Sequence[Item]) -> Sequence[Item]:
    """Those that fit, from the middle outwards."""
    at = next(place for place, item in enumerate(items) if item.id == middle.id)
    places = sorted(range(len(items)), key=lambda place: abs(place - at))
    count = fitting(call, (weight(call, items[place].text) for place in places))
    return [items[place] for place in sorted(places[:count])]


def threads(call: Call) -> Reply:
    """What goes on, or one of it with what its memories say."""
    if "id" in call.told:
        return _thread(call, call.told["id"])
    offset, most = call.told.get("offset", 0), call.told.get("limit", _USUAL["threads"])
    listed = call.memory.threads(limit=most + 1, offset=offset)
    found, more = listed[:most], len(listed) > most
    quotes = [
        Quote(
            f"{one.id} | {one.lifecycle}, {one.state} | {len(one.members)} memories", one.headline
        )
        for one in found
    ]
    text = quoted(quotes, "threads") or "No thread is known; consolidation finds them."
    told = [_thread_json(one, one.members[-_USUAL["members"] :]) for one in found]
    content = {"notice": NOTICE, "threads": told, "more": more, "left_out": 0}
    return Reply(text + _further(call, len(found), more=more), content)


def _thread(call: Call, thread_id: str) -> Reply:
    memory, items = call.memory, dict[str, "Item"]()
    try:
        thread = memory.thread(thread_id)
    except NotFound as error:
        raise NotFound(error.message, remedy="threads without an id lists them") from error

    def texts(wanted: Sequence[Member]) -> list[str]:
        ids = tuple(one.item for one in wanted)
        if ids:
            found = memory.browse(limit=len(ids), ids=ids, include_superseded=True)
            items.update({item.id: item for item in found})
        return [items[one].text if one in items else "" for one in ids]

    members, left_out = newest(call, thread.members, texts, usual=_USUAL["members"])
    quotes = [Quote(f"{thread.id} | {thread.lifecycle}, {thread.state}", thread.headline)]
    quotes += [labelled(items[one.item]) for one in members if one.item in items]
    content = {
        "notice": NOTICE,
        "threads": [_thread_json(thread, members, items)],
        "more": False,
        "left_out": left_out,
    }
    return Reply(quoted(quotes, "thread") + older(call, len(members), left_out), content)


def _thread_json(
    thread: Thread, members: Sequence[Member], items: dict[str, Item] | None = None
) -> Json:
    """A thread with these of its members, and what happened in the end."""
    last = thread.events[-max(len(members), 1) :]
    shown = thread._replace(members=tuple(members), events=last)
    return thread_json(shown, items or {}) | {"memories": len(thread.members)}
