"""What a host may read without calling a tool: counts, what is new, an entity, a memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from recollect.errors import NotFound
from recollect.jsonable import Json

if TYPE_CHECKING:
    from recollect.memory import Memory

_SCHEME = "memory://"
_JSON, _TEXT = "application/json", "text/plain"
_NEWEST = 20


class Content(NamedTuple):
    """What was read, and its media type."""

    text: str
    mime: str


RESOURCES: list[Json] = [
    {
        "name": "stats",
        "title": "Counts and sizes",
        "uri": f"{_SCHEME}stats",
        "description": "How many memories there are, and what is in use.",
        "mimeType": _JSON,
    },
    {
        "name": "recent",
        "title": "What is new",
        "uri": f"{_SCHEME}recent",
        "description": f"The {_NEWEST} newest memories.",
        "mimeType": _TEXT,
    },
]
TEMPLATES: list[Json] = [
    {
        "name": "entity",
        "title": "What is known of somebody or something",
        "uriTemplate": f"{_SCHEME}entity/{{name}}",
        "description": "The newest memories that mention this person, project, tool ...",
        "mimeType": _TEXT,
    },
    {
        "name": "item",
        "title": "One memory",
        "uriTemplate": f"{_SCHEME}item/{{id}}",
        "description": "One memory with all that is known of it.",
        "mimeType": _JSON,
    },
]


def read(uri: str, memory: Memory) -> Content:
    """The resource with this address, or NotFound."""
    kind, _, name = uri.removeprefix(_SCHEME).partition("/")
    if uri.startswith(_SCHEME) and kind in _READ:
        return _READ[kind](memory, unquote(name))
    known = [one["uri"] for one in RESOURCES] + [one["uriTemplate"] for one in TEMPLATES]
    raise NotFound("there is no such resource", remedy=f"one of {', '.join(known)}")


def _stats(memory: Memory, _: str) -> Content:
    from recollect.wire import dumps, mapping_json  # heavy: not before the server answers

    counted = {key: value for key, value in memory.stats().items() if key != "path"}
    return Content(dumps(mapping_json(counted), indent=1), _JSON)


def _recent(memory: Memory, _: str) -> Content:
    from recollect.mcp.fencing import labelled, quoted  # heavy

    items = memory.browse(limit=_NEWEST)
    return Content(quoted([labelled(item) for item in items]) or "Nothing is stored yet.", _TEXT)


def _entity(memory: Memory, name: str) -> Content:
    from recollect.mcp.fencing import labelled, quoted  # heavy

    answer = memory.recall(entity=name, k=_NEWEST, track=False)
    if not answer.hits:
        raise NotFound("no memory mentions it", remedy="list_entities shows who is known")
    return Content(quoted([labelled(hit.item) for hit in answer.hits]), _TEXT)


def _item(memory: Memory, item_id: str) -> Content:
    from recollect.mcp.fencing import NOTICE, cleaned  # heavy
    from recollect.mcp.sight import seen
    from recollect.wire import dumps, item_json

    told = {"notice": NOTICE, **item_json(seen(memory, item_id))}
    return Content(dumps(cleaned(told, None), indent=1), _JSON)


_READ: dict[str, Callable[[Memory, str], Content]] = {
    "stats": _stats,
    "recent": _recent,
    "entity": _entity,
    "item": _item,
}
