"""Routes of the REST API, its own operations, and the OpenAPI document made from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bethink.access.policy import ARGUMENT_OPERATIONS, POLICY, Right
from bethink.core.json_values import Json
from bethink.server.tools.catalog import (
    CONSOLIDATE,
    EXPLAIN,
    FORGET,
    HISTORY,
    INSIGHTS,
    LINK,
    LIST_ENTITIES,
    NOTE_EDIT,
    RECALL,
    RECALL_FILE,
    REMEMBER,
    THREADS,
    TIMELINE,
    UNDO,
    UPDATE_MEMORY,
)
from bethink.server.tools.tool import (
    INTEGER,
    MEMORY_SCHEMA,
    NOTICE_SCHEMA,
    NUMBER,
    OBJECT,
    STRING,
    Tool,
    arguments_schema,
    array_schema,
    integer_schema,
    nullable,
    object_schema,
    string_list_schema,
    string_schema,
)
from bethink.version import __version__

MAX_BATCH = 500
_ID = string_schema("The memory's id, or a unique part of it.", max_length=200)
_BATCH_SCHEMA: Json = {
    "type": "array",
    "description": "The memories, each with the fields of `remember`.",
    "items": REMEMBER.input_schema,
    "maxItems": MAX_BATCH,
}
_NODE_SCHEMA = object_schema({"kind": STRING, "id": STRING})

GET_MEMORY = Tool(
    "get_memory",
    "Get a memory",
    "Get one memory with all its fields, by its id.",
    arguments_schema({"id": _ID}, "id"),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "memory": object_schema({"id": STRING, "text": STRING, "rev": INTEGER}),
        }
    ),
    "bethink.server.rest.handlers:get_memory",
    read_only=True,
    idempotent=True,
)

LIST_MEMORIES = Tool(
    "list_memories",
    "List memories",
    "List stored memories, newest first, in pages; a page of long texts ends early.",
    arguments_schema(
        {
            "kind": string_schema("Only this kind."),
            "topic": string_schema("Only this topic."),
            "tag": string_schema("Only with this tag."),
            "entity": string_schema("Only memories that mention it."),
            "source": string_schema("Only from this source."),
            "session": string_schema("Only from this conversation."),
            "user": string_schema("Only this user's."),
            "since": string_schema("Happened at or after this time.", max_length=100),
            "until": string_schema("Happened before this time.", max_length=100),
            "limit": integer_schema("Maximum number of results; default 50.", 1, 500),
            "after": string_schema(
                "The cursor of an earlier answer; returns its next page.", max_length=200
            ),
        }
    ),
    object_schema(
        {
            "notice": NOTICE_SCHEMA,
            "memories": array_schema(object_schema(MEMORY_SCHEMA)),
            "cursor": nullable(STRING),
        }
    ),
    "bethink.server.rest.handlers:list_memories",
    read_only=True,
    idempotent=True,
)

REMEMBER_MANY = Tool(
    "remember_many",
    "Remember several memories",
    "Store up to 500 memories. Each is stored or refused on its own; the answer says which.",
    arguments_schema({"memories": _BATCH_SCHEMA}, "memories"),
    object_schema(
        {
            "stored": INTEGER,
            "refused": INTEGER,
            "results": array_schema(
                object_schema(
                    {
                        "id": STRING,
                        "status": STRING,
                        "error": object_schema(
                            {"kind": STRING, "message": STRING, "remedy": STRING}
                        ),
                    },
                    "id",
                    "error",
                ),
                "In the order of the memories.",
            ),
        }
    ),
    "bethink.server.rest.handlers:remember_many",
    idempotent=True,
)

RESTORE = Tool(
    "restore",
    "Restore memories",
    "Restore forgotten memories. Erased memories cannot be restored.",
    arguments_schema({"ids": string_list_schema("Ids of the memories.", max_items=100)}, "ids"),
    object_schema({"restored": array_schema(STRING)}),
    "bethink.server.rest.handlers:restore",
    idempotent=True,
)

LINKS = Tool(
    "links",
    "A memory's links",
    "List a memory's links to others: implies, contradicts, supersedes ...",
    arguments_schema(
        {
            "id": _ID,
            "limit": integer_schema("Maximum number of results; default 100.", 1, 1000),
            "offset": integer_schema("Skip the first N results.", 0, 100_000),
        },
        "id",
    ),
    object_schema(
        {
            "left_out": {"type": "integer", "description": "Number of further links."},
            "links": array_schema(
                object_schema(
                    {
                        "from": _NODE_SCHEMA,
                        "type": STRING,
                        "to": _NODE_SCHEMA,
                        "weight": NUMBER,
                        "confidence": NUMBER,
                        "source": STRING,
                    }
                )
            ),
        }
    ),
    "bethink.server.rest.handlers:links",
    read_only=True,
    idempotent=True,
)

STATS = Tool(
    "stats",
    "Counts and sizes",
    "Show the number of memories by kind, and the models in use.",
    arguments_schema({}),
    object_schema({"space": STRING, "memories": INTEGER, "entities": INTEGER, "by_kind": OBJECT}),
    "bethink.server.rest.handlers:stats",
    read_only=True,
    idempotent=True,
)

EVENTS = Tool(
    "events",
    "The journal",
    "List the journal: who changed which memory, and when. It never contains a memory's text.",
    arguments_schema(
        {
            "after": integer_schema("Only events after this number.", 0, 2**53),
            "limit": integer_schema("Maximum number of results; default 100.", 1, 1000),
        }
    ),
    object_schema(
        {
            "events": array_schema(
                object_schema(
                    {
                        "seq": INTEGER,
                        "at": STRING,
                        "kind": STRING,
                        "item": nullable(STRING),
                        "actor": STRING,
                        "detail": STRING,
                    }
                )
            )
        }
    ),
    "bethink.server.rest.handlers:events",
    read_only=True,
    idempotent=True,
)

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
    ToolRoute("POST", "/v1/recall", RECALL),
    ToolRoute("GET", "/v1/recall", RECALL, _QUERY_ALIASES),
    ToolRoute("POST", "/v1/explain", EXPLAIN),
    ToolRoute("POST", "/v1/memories", REMEMBER),
    ToolRoute("GET", "/v1/memories", LIST_MEMORIES),
    ToolRoute("POST", "/v1/memories/batch", REMEMBER_MANY),
    ToolRoute("GET", "/v1/memories/{id}", GET_MEMORY),
    ToolRoute("PATCH", "/v1/memories/{id}", UPDATE_MEMORY),
    ToolRoute("GET", "/v1/memories/{id}/history", HISTORY),
    ToolRoute("GET", "/v1/memories/{id}/timeline", TIMELINE),
    ToolRoute("GET", "/v1/memories/{id}/links", LINKS),
    ToolRoute("POST", "/v1/memories/{id}/links", LINK),
    ToolRoute("GET", "/v1/memories/{id}/why", EXPLAIN, _QUERY_ALIASES),
    ToolRoute("GET", "/v1/memories/{id}/why-not", EXPLAIN, _QUERY_ALIASES, ("query",)),
    ToolRoute("POST", "/v1/forget", FORGET),
    ToolRoute("POST", "/v1/restore", RESTORE),
    ToolRoute("POST", "/v1/undo", UNDO),
    ToolRoute("POST", "/v1/consolidate", CONSOLIDATE),
    ToolRoute("GET", "/v1/entities", LIST_ENTITIES),
    ToolRoute("GET", "/v1/threads", THREADS),
    ToolRoute("GET", "/v1/threads/{id}", THREADS),
    ToolRoute("GET", "/v1/insights", INSIGHTS),
    ToolRoute("GET", "/v1/files", RECALL_FILE),
    ToolRoute("POST", "/v1/files/edits", NOTE_EDIT),
    ToolRoute("GET", "/v1/stats", STATS),
    ToolRoute("GET", "/v1/events", EVENTS),
)


class PlainRoute(NamedTuple):
    """A route without a tool: its policy row, its summary and its media type."""

    method: str
    path: str
    operation: str
    summary: str
    media: str


PLAIN_ROUTES = (
    PlainRoute(
        "GET",
        "/v1/export",
        "export",
        "Export everything without loss, one record per line.",
        "application/x-ndjson",
    ),
    PlainRoute(
        "POST",
        "/v1/import",
        "import",
        "Import an export, all of it or nothing.",
        "application/json",
    ),
    PlainRoute("GET", "/health", "health", "Check whether the server works.", "application/json"),
    PlainRoute(
        "GET",
        "/ready",
        "ready",
        "Check whether the store and the model are loaded.",
        "application/json",
    ),
    PlainRoute("GET", "/metrics", "metrics", "Metrics for Prometheus.", "text/plain"),
    PlainRoute(
        "GET",
        "/openapi.json",
        "openapi",
        "This API as an OpenAPI 3.1 document.",
        "application/json",
    ),
    PlainRoute("GET", "/", "page", "This API as a web page.", "text/html"),
)

_ERROR_SCHEMA = object_schema(
    {"error": object_schema({"kind": STRING, "message": STRING, "remedy": STRING})}
)
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
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Bethink",
            "version": __version__,
            "description": "A memory for AI agents: remember, recall, explain, correct, forget.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR_SCHEMA},
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
    if route.operation == "import":
        content = {"application/x-ndjson": {"schema": {"type": "string"}}}
        made["requestBody"] = {"required": True, "content": content}
    return made


_PLAIN_SCHEMAS: dict[str, Json] = {
    "export": {"type": "string"},
    "health": object_schema({"status": STRING}),
    "ready": object_schema({"status": STRING}),
    "import": object_schema({"stored": {"type": "integer"}}),
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
