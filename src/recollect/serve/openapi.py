"""The API as OpenAPI 3.1, made from the tables that serve and check it."""

from __future__ import annotations

import re

from recollect.access.policy import POLICY, WITH
from recollect.access.rights import Right
from recollect.jsonable import Json
from recollect.mcp.schema import STRING, answer, maybe
from recollect.serve.routes import PLAIN, WAYS, Plain, Way
from recollect.version import __version__

_ERROR = answer({"error": answer({"kind": STRING, "message": STRING, "remedy": STRING})})
_REFUSALS = {
    "400": "The request cannot be read.",
    "401": "No token, or none that opens this space.",
    "403": "The token's scope is too small, or the page's origin is not allowed.",
    "404": "There is no such memory.",
    "408": "The request took too long to arrive.",
    "409": "The key was used before for something else.",
    "413": "Too large.",
    "415": "The body is of another media type.",
    "421": "The server does not answer to that name.",
    "422": "An argument breaks a rule.",
    "429": "Too many requests; Retry-After says when there is room again.",
    "431": "The address and the headers are too long.",
    "503": "The store is busy or cannot be used.",
}


def document() -> Json:
    """The whole description."""
    paths: Json = {}
    for way in WAYS:
        paths.setdefault(way.path, {})[way.method.lower()] = _operation(way)
    for plain in PLAIN:
        paths.setdefault(plain.path, {})[plain.method.lower()] = _plain(plain)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Recollect",
            "version": __version__,
            "description": "A memory that lasts: remember, recall, explain, correct, forget.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR},
            "responses": {
                status: {
                    "description": told,
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
                    },
                }
                for status, told in _REFUSALS.items()
            },
        },
    }


def _operation(way: Way) -> Json:
    tool = way.tool
    made: Json = {
        "operationId": _name(way.method, way.path),
        "summary": tool.title,
        "description": f"{tool.description}\n\n{_scope(tool.name)}",
        "parameters": _parameters(way),
        "responses": _responses("application/json", tool.gives),
    }
    if way.method != "GET":
        made["requestBody"] = {
            "required": bool(_needed(way)),
            "content": {"application/json": {"schema": _body(way)}},
        }
    return made


def _name(method: str, path: str) -> str:
    """A route as a word, for programs that make a function of it: get_memories_id_history."""
    return "_".join(re.findall(r"\w+", f"{method} {path.removeprefix('/v1')}".lower()))


def _body(way: Way) -> Json:
    """What the tool takes, without what stands in the path already."""
    takes, needed = way.tool.takes, _needed(way)
    known = {
        name: one if name in needed else _or_null(one)
        for name, one in takes["properties"].items()
        if name not in way.placed
    }
    made = {name: value for name, value in takes.items() if name != "required"}
    return made | {"properties": known} | ({"required": needed} if needed else {})


def _or_null(schema: Json) -> Json:
    """Null stands for an argument that was left out."""
    told = maybe(schema)
    return told | {"enum": [*told["enum"], None]} if "enum" in told else told


def _needed(way: Way) -> list[str]:
    needed = [*way.tool.takes.get("required", ()), *way.needs]
    return [name for name in needed if name not in way.placed]


def _parameters(way: Way) -> list[Json]:
    known = way.tool.takes["properties"]
    placed = [
        {"name": name, "in": "path", "required": True, "schema": known[name]} for name in way.placed
    ]
    if way.method != "GET":
        return placed
    short = {name: brief for brief, name in way.short.items()}
    needed = _needed(way)
    return placed + [
        {
            "name": short.get(name, name),
            "in": "query",
            "required": name in needed,
            "description": one["description"],
            "schema": one,
        }
        for name, one in known.items()
        if name not in way.placed
    ]


def _plain(plain: Plain) -> Json:
    made: Json = {
        "operationId": plain.operation,
        "summary": plain.told,
        "description": _scope(plain.operation),
        "responses": _responses(plain.media, _PLAIN_SCHEMAS.get(plain.operation)),
    }
    if POLICY[plain.operation] is Right.ANYONE:
        made["security"] = []
    if plain.operation == "import":
        content = {"application/x-ndjson": {"schema": {"type": "string"}}}
        made["requestBody"] = {"required": True, "content": content}
    return made


_PLAIN_SCHEMAS: dict[str, Json] = {
    "export": {"type": "string"},
    "health": answer({"status": STRING}),
    "ready": answer({"status": STRING}),
    "import": answer({"stored": {"type": "integer"}}),
    "openapi": {"type": "object"},
}


def _responses(media: str, schema: Json | None) -> Json:
    content: Json = {media: {"schema": schema} if schema else {}}
    told: Json = {"200": {"description": "Done.", "content": content}}
    return told | {status: {"$ref": f"#/components/responses/{status}"} for status in _REFUSALS}


def _scope(operation: str) -> str:
    told = f"Scope: {POLICY[operation].word}"
    more = [
        f"{argument}: {POLICY[f'{name} with {argument}'].word}"
        for name, argument in sorted(WITH)
        if name == operation
    ]
    return told + (f" (with {', '.join(more)})" if more else "") + "."
