"""The description of the API: valid, whole, and what the server really does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.access.policy import POLICY
from bethink.server.rest.routes import PLAIN_ROUTES, TOOL_ROUTES, openapi_document
from rows import each_row
from server_app import Callers, make_guard, make_test_app, talk

DOCUMENT = openapi_document()


def schemas() -> list[dict[str, Any]]:
    told = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]
    parts = [
        part
        for one in told
        for part in (
            *one["responses"]["200"]["content"].values(),
            *one.get("requestBody", {}).get("content", {}).values(),
            *one.get("parameters", ()),
        )
    ]
    named = DOCUMENT["components"]["schemas"].values()
    return [*named, *(part["schema"] for part in parts if "schema" in part)]


def without_names(node: Any) -> Any:
    """A part of the document with every named schema in its place."""
    if isinstance(node, list):
        return [without_names(one) for one in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return without_names(DOCUMENT["components"]["schemas"][node["$ref"].rpartition("/")[2]])
    return {key: without_names(one) for key, one in node.items()}


def test_every_schema_is_one() -> None:
    """By the draft that OpenAPI 3.1 builds on."""
    for schema in schemas():
        Draft202012Validator.check_schema(schema)
    assert DOCUMENT["openapi"] == "3.1.0"


def test_names_of_schemas_change_nothing() -> None:
    """With its names resolved, an answer is described as its tool declares it."""
    for way in TOOL_ROUTES:
        told = DOCUMENT["paths"][way.path][way.method.lower()]["responses"]["200"]
        schema = told["content"]["application/json"]["schema"]
        assert schema["$ref"].endswith("Answer")
        assert without_names(schema) == way.tool.output_schema


def test_every_route_is_described() -> None:
    """And nothing that is none; each by a name of its own, with the scope it needs."""
    described = {
        (method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods
    }
    told = [one for methods in DOCUMENT["paths"].values() for one in methods.values()]

    assert described == {(one.method, one.path) for one in (*TOOL_ROUTES, *PLAIN_ROUTES)}
    assert len({one["operationId"] for one in told}) == len(told)
    assert all("Scope: " in one["description"] for one in told)


@each_row("way", TOOL_ROUTES, ids=lambda way: f"{way.method} {way.path}")
def test_every_argument_is_described_once(way: Any) -> None:
    """In the path, in the address or in the body, as the tool declares it."""
    told = DOCUMENT["paths"][way.path][way.method.lower()]
    named = [one["name"] for one in told["parameters"]]
    body = told.get("requestBody", {}).get("content", {}).get("application/json", {})
    named += body.get("schema", {}).get("properties", {})
    meant = [way.aliases.get(name, name) for name in named]

    assert sorted(meant) == sorted(way.tool.input_schema["properties"])
    assert body.get("schema", {}).get("required", []) == [
        name
        for name in way.tool.input_schema.get("required", ())
        if body and name not in way.path_params
    ]
    assert way.tool.name in POLICY


def test_what_is_served_is_what_is_described(memory: Memory, tmp_path: Path) -> None:
    """The document itself, and the answers of every route by its schema."""
    item = memory.remember("The staging database is called heron, says Mara").id
    other = memory.remember("Heron is backed up at night").id
    memory.link(item, "implies", other)
    memory.put_thread("Databases", [item], id="thread-1")
    memory.note_edits([{"path": "app.py", "operation": "edit", "intent": "to fix it"}])
    callers = Callers(tmp_path)
    bodies: dict[str, dict[str, Any]] = {
        "recall": {"query": "heron"},
        "explain": {"query": "heron", "id": item},
        "inspect": {"query": "heron", "id": other},
        "remember": {"text": "Releases are cut on Tuesdays"},
        "remember_many": {"memories": [{"text": "Backups run at night"}, {}]},
        "put_values": {"values": [{"namespace": ["a"], "key": "k", "value": {"text": "tea"}}]},
        "find_values": {
            "get": [{"namespace": ["a"], "key": "k"}, {"namespace": ["a"], "key": "none"}],
            "search": [{"namespace": [], "query": "tea", "abstain": True}, {"namespace": ["a"]}],
            "namespaces": [{}],
        },
        "update_memory": {"topic": "databases"},
        "forget": {"ids": [other]},
        "restore": {"ids": [other]},
        "inbox": {},
        "review": {"ids": [], "decision": "refuse"},
        "undo": {"preview": True},
        "consolidate": {},
        "note_edit": {"path": "app.py"},
        "link": {"relation": "implies", "other": other},
        "save_question": {"query": "what is called heron?", "relevant": [item]},
    }
    asked = {"recall": {"q": "heron"}, "explain": {"q": "heron"}, "recall_file": {"path": "app"},
             "graph": {"node": item}}  # fmt: skip

    async def conversation(client: httpx.AsyncClient) -> None:
        assert (await client.get("/openapi.json")).json() == DOCUMENT
        for way in TOOL_ROUTES:
            if way.tool.name == "settle":
                continue  # needs two machines: test_sharing.py
            path = way.path.replace("{id}", "thread-1" if "threads" in way.path else item)
            told: dict[str, Any] = (
                {"params": asked.get(way.tool.name)}
                if way.method == "GET"
                else {"json": bodies[way.tool.name]}
            )
            answer = await client.request(
                way.method, path, headers=callers.headers["admin"], **told
            )
            assert answer.status_code == 200, answer.text
            Draft202012Validator(way.tool.output_schema).validate(answer.json())

    talk(make_test_app(memory, make_guard(callers)), conversation)
