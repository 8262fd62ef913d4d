"""Routes of the REST API, and the OpenAPI document made from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from bethink.access.policy import ARGUMENT_OPERATIONS, POLICY, Right
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.server.rest import operations
from bethink.server.tools import catalog
from bethink.server.tools.catalog import described, nullable, record
from bethink.server.tools.tool import Tool
from bethink.version import __version__

_QUERY_ALIASES: Mapping[str, str] = {"q": "query"}


class ToolRoute(NamedTuple):
    """A route that calls a tool.

    ``aliases`` are other names for arguments in a query string, ``required`` the arguments that
    only this route requires.
    """

    method: str
    path: str
    tool: Tool
    aliases: Mapping[str, str] = {}
    required: tuple[str, ...] = ()

    @property
    def path_params(self) -> tuple[str, ...]:
        """The arguments that are part of the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


TOOL_ROUTES = (
    ToolRoute("POST", "/v1/recall", catalog.RECALL),
    ToolRoute("GET", "/v1/recall", catalog.RECALL, _QUERY_ALIASES),
    ToolRoute("POST", "/v1/explain", catalog.EXPLAIN),
    ToolRoute("POST", "/v1/inspect", operations.INSPECT),
    ToolRoute("POST", "/v1/memories", catalog.REMEMBER),
    ToolRoute("GET", "/v1/memories", operations.LIST_MEMORIES),
    ToolRoute("POST", "/v1/memories/batch", operations.REMEMBER_MANY),
    ToolRoute("GET", "/v1/memories/{id}", operations.GET_MEMORY),
    ToolRoute("PATCH", "/v1/memories/{id}", catalog.UPDATE_MEMORY),
    ToolRoute("GET", "/v1/memories/{id}/history", catalog.HISTORY),
    ToolRoute("GET", "/v1/memories/{id}/timeline", catalog.TIMELINE),
    ToolRoute("GET", "/v1/memories/{id}/usage", operations.USAGE),
    ToolRoute("GET", "/v1/memories/{id}/links", operations.LINKS),
    ToolRoute("POST", "/v1/memories/{id}/links", catalog.LINK),
    ToolRoute("GET", "/v1/memories/{id}/why", catalog.EXPLAIN, _QUERY_ALIASES),
    ToolRoute("GET", "/v1/memories/{id}/why-not", catalog.EXPLAIN, _QUERY_ALIASES, ("query",)),
    ToolRoute("POST", "/v1/forget", catalog.FORGET),
    ToolRoute("POST", "/v1/restore", operations.RESTORE),
    ToolRoute("GET", "/v1/inbox", operations.INBOX),
    ToolRoute("POST", "/v1/inbox", operations.REVIEW),
    ToolRoute("POST", "/v1/undo", catalog.UNDO),
    ToolRoute("POST", "/v1/consolidate", catalog.CONSOLIDATE),
    ToolRoute("GET", "/v1/entities", catalog.LIST_ENTITIES),
    ToolRoute("GET", "/v1/threads", catalog.THREADS),
    ToolRoute("GET", "/v1/threads/{id}", catalog.THREADS),
    ToolRoute("GET", "/v1/insights", catalog.INSIGHTS),
    ToolRoute("GET", "/v1/files", catalog.RECALL_FILE),
    ToolRoute("POST", "/v1/files/edits", catalog.NOTE_EDIT),
    ToolRoute("GET", "/v1/profiles", operations.PROFILES),
    ToolRoute("GET", "/v1/graph", operations.GRAPH),
    ToolRoute("GET", "/v1/times", operations.TIMES),
    ToolRoute("GET", "/v1/maintenance", operations.MAINTENANCE),
    ToolRoute("GET", "/v1/stats", operations.STATS),
    ToolRoute("GET", "/v1/events", operations.EVENTS),
    ToolRoute("POST", "/v1/values", operations.PUT_VALUES),
    ToolRoute("POST", "/v1/values/find", operations.FIND_VALUES),
    ToolRoute("GET", "/v1/questions", operations.QUESTIONS),
    ToolRoute("POST", "/v1/questions", operations.SAVE_QUESTION),
    ToolRoute("GET", "/v1/conflicts", operations.CONFLICTS),
    ToolRoute("POST", "/v1/memories/{id}/settle", operations.SETTLE),
    ToolRoute("GET", "/v1/sync", operations.SYNC_STATUS),
)


class PlainRoute(NamedTuple):
    """A route without a tool: its policy row, its summary and its media type."""

    method: str
    path: str
    operation: str
    summary: str
    media: str = "application/json"


PLAIN_ROUTES = (
    PlainRoute("GET", "/v1/events/stream", "watch",
               "Follow changes as server-sent events: kinds and ids, never text. Last-Event-ID "
               "continues up to a day later; an event `reset` says that events were missed.",
               "text/event-stream"),
    PlainRoute("GET", "/v1/export", "export",
               "Export everything without loss, one record per line.", "application/x-ndjson"),
    PlainRoute("POST", "/v1/import", "import",
               "Import an export, all of it or nothing. Unless this installation has signed it, "
               "its memories get trust 1 at most, no pin, and lose their secrets."),
    PlainRoute("POST", "/v1/sync", "sync",
               "Exchange operations with another machine: takes what it sends, returns what it "
               "lacks. bethink sync asks it."),
    PlainRoute("GET", "/v1/checks", "checks",
               "Check the integrity of the store, as bethink doctor does, without repairing "
               "anything."),
    PlainRoute("GET", "/v1/members", "members", "List the people of the space and their roles."),
    PlainRoute("GET", "/v1/session", "session", "Show who is calling and what the caller may do."),
    PlainRoute("POST", "/v1/session", "login",
               "Start a browser's session with a one-time ticket or a token."),
    PlainRoute("DELETE", "/v1/session", "logout", "End a browser's session."),
    PlainRoute("GET", "/health", "health", "Check whether the server works."),
    PlainRoute("GET", "/ready", "ready", "Check whether the store and the model are loaded."),
    PlainRoute("GET", "/metrics", "metrics", "Metrics for Prometheus.", "text/plain"),
    PlainRoute("GET", "/openapi.json", "openapi", "This API as an OpenAPI 3.1 document."),
    PlainRoute("GET", "/", "page", "Links to the inspector and to this document.", "text/html"),
)  # fmt: skip


def _entry_of(tool: Tool, name: str) -> Json:
    """Return the schema of the entries of a list in a tool's answer."""
    entry: Json = tool.output_schema["properties"][name]["items"]
    return entry


# Schemas with a name of their own in the document, besides the arguments and answers of tools.
_NAMED: dict[str, Json] = {
    "Error": record(error=record(kind=str, message=str, remedy=str)),
    "Memory": catalog.MEMORY,
    "FullMemory": operations.GET_MEMORY.output_schema["properties"]["memory"],
    "Hit": catalog.HIT,
    "Degraded": catalog.DEGRADED["items"],
    "Collision": _entry_of(catalog.REMEMBER, "collisions"),
    "Entity": _entry_of(catalog.LIST_ENTITIES, "entities"),
    "Revision": _entry_of(catalog.HISTORY, "revisions"),
    "InspectedHit": _entry_of(operations.INSPECT, "hits"),
    "StoredOrRefused": _entry_of(operations.REMEMBER_MANY, "results"),
    "Link": _entry_of(operations.LINKS, "links"),
    "Profile": _entry_of(operations.PROFILES, "profiles"),
    "Event": _entry_of(operations.EVENTS, "events"),
    "Value": operations.VALUE,
    "NewValue": operations.PUT_VALUE,
    "ValueSearch": operations.SEARCH_VALUES,
}
_NAMED |= {
    f"{route.tool.name.title().replace('_', '')}Answer": route.tool.output_schema
    for route in TOOL_ROUTES
}
_ERROR_RESPONSES = {
    "400": "The request cannot be parsed.",
    "401": "The token is missing or not valid for this space.",
    "403": "The token's scope is insufficient, or the page's origin is not allowed.",
    "404": "There is no such memory.",
    "408": "The request took too long to arrive.",
    "409": "The key was used before with other content.",
    "413": "The request is too large.",
    "415": "The body has the wrong media type.",
    "421": "The Host header is not allowed.",
    "422": "An argument is invalid.",
    "429": "Too many requests; retry after the seconds in Retry-After.",
    "431": "The URL and the headers are too long.",
    "503": "The store is busy or cannot be used.",
}


def openapi_document() -> Json:
    """Build the OpenAPI 3.1 document of the whole API."""
    paths: Json = {}
    for route in TOOL_ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _tool_operation(route)
    for plain in PLAIN_ROUTES:
        paths.setdefault(plain.path, {})[plain.method.lower()] = _plain_operation(plain)
    names = {id(schema): name for name, schema in _NAMED.items()}
    schemas = {
        name: {key: _with_names(part, names) for key, part in schema.items()}
        for name, schema in sorted(_NAMED.items())
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bethink",
            "version": __version__,
            "description": "A memory for AI agents: remember, recall, explain, correct, forget.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": _with_names(paths, names),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
            "responses": {
                status: {
                    "description": description,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, description in _ERROR_RESPONSES.items()
            },
        },
    }


def _with_names(node: object, names: Mapping[int, str]) -> Any:
    """Return a part of the document with references in place of the schemas that have a name."""
    if isinstance(node, list):
        return [_with_names(part, names) for part in node]
    if not isinstance(node, dict):
        return node
    if id(node) in names:
        return {"$ref": f"#/components/schemas/{names[id(node)]}"}
    return {key: _with_names(part, names) for key, part in node.items()}


def _tool_operation(route: ToolRoute) -> Json:
    tool = route.tool
    made: Json = {
        "operationId": _operation_id(route.method, route.path),
        "summary": tool.title,
        "description": f"{tool.description}\n\n{_scope_note(tool.name)}",
        "parameters": _parameters(route),
        "responses": _responses("application/json", tool.output_schema),
    }
    if route.method != "GET":
        made["requestBody"] = {
            "required": bool(_required(route)),
            "content": {"application/json": {"schema": _body_schema(route)}},
        }
    return made


def _operation_id(method: str, path: str) -> str:
    """Return a route's operationId, usable as a function name: get_memories_id_history."""
    return "_".join(re.findall(r"\w+", f"{method} {path.removeprefix('/v1')}".lower()))


def _body_schema(route: ToolRoute) -> Json:
    """Return the schema of the body: the tool's arguments without the path parameters."""
    takes, needed = route.tool.input_schema, _required(route)
    known = {
        name: _not_empty(prop) if name in needed else _allow_null(prop)
        for name, prop in takes["properties"].items()
        if name not in route.path_params
    }
    if "memories" in known:
        # Each is stored or refused on its own: one that is wrong does not fail the request.
        known["memories"] = known["memories"] | {"items": _ENTRY_SCHEMA}
    made = {name: value for name, value in takes.items() if name != "required"}
    return made | {"properties": known} | ({"required": needed} if needed else {})


_ENTRY_SCHEMA: Json = {
    "type": "object",
    "description": "A memory with the fields of `POST /v1/memories`; stored or refused on its own.",
}


def _not_empty(schema: Json) -> Json:
    """Require a text that is not empty: one that is needed may not be."""
    return schema | {"minLength": 1} if schema["type"] == "string" else schema


def _allow_null(schema: Json) -> Json:
    """Allow null, which means that an argument was left out."""
    allowed = nullable(schema)
    return allowed | {"enum": [*allowed["enum"], None]} if "enum" in allowed else allowed


def _required(route: ToolRoute) -> list[str]:
    needed = [*route.tool.input_schema.get("required", ()), *route.required]
    return [name for name in needed if name not in route.path_params]


def _parameters(route: ToolRoute) -> list[Json]:
    known = route.tool.input_schema["properties"]
    placed = [
        {"name": name, "in": "path", "required": True, "schema": known[name]}
        for name in route.path_params
    ]
    if route.method != "GET":
        return placed
    short = {name: brief for brief, name in route.aliases.items()}
    needed = _required(route)
    return placed + [
        {
            "name": short.get(name, name),
            "in": "query",
            "required": name in needed,
            "description": prop["description"],
            "schema": _not_empty(prop) if name in needed else prop,
        }
        for name, prop in known.items()
        if name not in route.path_params
    ]


def _plain_operation(route: PlainRoute) -> Json:
    made: Json = {
        "operationId": route.operation,
        "summary": route.summary,
        "description": _scope_note(route.operation),
        "responses": _responses(route.media, _PLAIN_SCHEMAS.get(route.operation)),
    }
    if POLICY[route.operation] is Right.ANYONE:
        made["security"] = []
    body = _PLAIN_BODIES.get(route.operation)
    if body is not None:
        made["requestBody"] = {"required": True, "content": body}
    return made


_SYNC = {
    "device": described([str], "Id, name and public key of the machine."),
    "vector": described(dict, "Up to which number it has each series of operations."),
    "ranges": described(dict, "The first and last number of each series in ops."),
    "ops": described([str], "Operations, each as JSON."),
    "ceiling": described(int, "The highest classification to exchange."),
}
_PLAIN_BODIES: dict[str, Json] = {
    "import": {"application/x-ndjson": {"schema": {"type": "string"}}},
    "sync": {"application/json": {"schema": record(**_SYNC)}},
    "login": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {"ticket": {"type": "string"}, "token": {"type": "string"}},
                "additionalProperties": False,
                "minProperties": 1,
                "maxProperties": 1,
            }
        }
    },
}
_SESSION = record(
    "person",
    person=described(str, "The name of the person who calls, if it is one."),
    name=str,
    scope={"type": "string", "enum": [right.scope_name for right in Right]},
    may=described(list[str], "The operations that the caller may do."),
    space=nullable(str),
    version=str,
    max_classification=nullable(int),
    browser=described(bool, "Whether it is a browser's session."),
)
_PAGE_KEY = "Belongs to the cookie: send it as X-Bethink-Page with each request."
_CHECK = record(name=str, ok=bool, warning=bool, detail=str)
_PLAIN_SCHEMAS: dict[str, Json] = {
    "checks": record(ok=bool, checks=[_CHECK]),
    "session": record(
        "person",
        **_SESSION["properties"],
        spaces=described(list[str], "The spaces of this server that the caller may read."),
    ),
    "members": record(members=[record(id=str, name=str, role=str, you=bool)]),
    "login": record("person", **_SESSION["properties"], page_key=described(str, _PAGE_KEY)),
    "logout": record(ended=bool),
    "watch": {"type": "string"},
    "export": {"type": "string"},
    "health": record(status=str),
    "ready": record(status=str),
    "import": record(stored=int, signed=bool),
    "sync": record(**_SYNC, digest=str),
    "openapi": {"type": "object"},
}


def _responses(media: str, schema: Json | None) -> Json:
    content: Json = {media: {"schema": schema} if schema else {}}
    responses: Json = {"200": {"description": "Done.", "content": content}}
    return responses | {
        status: {"$ref": f"#/components/responses/{status}"} for status in _ERROR_RESPONSES
    }


def _scope_note(operation: str) -> str:
    note = f"Scope: {POLICY[operation].scope_name}"
    more = [
        f"{argument}: {POLICY[f'{name} with {argument}'].scope_name}"
        for name, argument in sorted(ARGUMENT_OPERATIONS)
        if name == operation
    ]
    return note + (f" (with {', '.join(more)})" if more else "") + "."
