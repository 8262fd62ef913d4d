"""Anything may be sent to any route: nothing breaks, and every answer is as described."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.access.guard import MAX_BODY_BYTES
from bethink.server.rest.routes import TOOL_ROUTES, ToolRoute
from bethink.server.tools.catalog import record
from bethink.testing import FixedClock
from corpus import NOTES, NOW
from naughty import NAUGHTY
from rows import each_row
from server_app import URL, Callers, make_guard, make_test_app
from thorough import examples

ERROR = Draft202012Validator(record(error=record(kind=str, message=str, remedy=str)))
FINE = {200, 400, 403, 404, 409, 413, 415, 422}
GIVES = [Draft202012Validator(way.tool.output_schema) for way in TOOL_ROUTES]


class Server:
    """One application, asked again and again."""

    def __init__(self, memory: Memory, folder: Path, loop: asyncio.Runner) -> None:
        self._callers, self._loop = Callers(folder), loop
        self._app = make_test_app(memory, make_guard(self._callers))

    def make_request(
        self, method: str, target: str, content: bytes | None = None
    ) -> httpx.Response:
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, client=("127.0.0.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
                headers = self._callers.headers["admin"] | {"Content-Type": "application/json"}
                return await client.request(method, target, content=content, headers=headers)

        return self._loop.run(run())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # By words alone: what is tried here is the way to a memory and back, many times over.
    with (
        Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory,
        asyncio.Runner() as loop,
    ):
        memory.remember_many(NOTES)
        yield Server(memory, tmp_path_factory.mktemp("tokens"), loop)


# An address has 16 KiB; longer texts go into bodies, and are tried below.
SHORT = [text for text in NAUGHTY if len(text) <= 200]
TEXTS = st.one_of(st.sampled_from(SHORT), st.text(max_size=60))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)


def fitting(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values as a schema asks for them, and now and then one that it does not."""
    kind = schema["type"]
    if "enum" in schema:
        good: st.SearchStrategy[Any] = st.sampled_from(schema["enum"])
    elif kind == "string":
        good = TEXTS
    elif kind == "integer":
        good = st.integers(schema["minimum"], schema["maximum"])
    elif kind == "number":
        good = st.floats(schema["minimum"], schema["maximum"])
    elif kind == "boolean":
        good = st.booleans()
    elif kind == "array":
        good = st.lists(fitting(schema["items"]), max_size=3)
    elif "properties" not in schema:
        good = st.dictionaries(TEXTS, VALUES, max_size=3)
    else:
        good = told(schema)
    return st.one_of(good, good, good, VALUES)


def told(schema: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments for a tool: those it needs, some of the others, hardly ever a wrong one."""
    known = schema["properties"]
    needed = {name: fitting(known[name]) for name in schema.get("required", ())}
    others = {name: fitting(one) for name, one in known.items() if name not in needed}
    return st.fixed_dictionaries(needed, optional=others)


def sent(way: ToolRoute) -> st.SearchStrategy[tuple[str, bytes | None]]:
    """An address of the route, and a body where it takes one."""
    path = st.tuples(*(TEXTS for _ in way.path_params)).map(
        lambda values: (
            way.path.replace("{id}", quote(_utf8(values[0].lstrip(".")), safe="") or "x")
            if values
            else way.path
        )
    )
    arguments = told(way.tool.input_schema).map(
        lambda given: {name: one for name, one in given.items() if name not in way.path_params}
    )
    if way.method == "GET":
        return st.tuples(path, arguments).map(lambda pair: (pair[0] + _query(pair[1]), None))
    body = arguments.map(lambda given: json.dumps(given).encode())
    return st.tuples(path, st.one_of(body, body, st.binary(max_size=40)))


def _query(given: dict[str, Any]) -> str:
    pairs = [
        f"{quote(_utf8(name))}={quote(_utf8(_said(one)), safe='')}"
        for name, value in given.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    return "?" + "&".join(pairs) if pairs else ""


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


@settings(max_examples=examples(10, 25))
@each_row(
    "number",
    range(len(TOOL_ROUTES)),
    ids=lambda n: f"{TOOL_ROUTES[n].method} {TOOL_ROUTES[n].path}",
)
@given(data=st.data())
def test_no_request_breaks_a_route(server: Server, number: int, data: st.DataObject) -> None:
    """No 5xx ever; what is answered fits its schema, what is refused is a sentence."""
    way = TOOL_ROUTES[number]
    target, content = data.draw(sent(way))

    found = server.make_request(way.method, target, content)

    assert found.status_code in FINE, found.text
    if found.status_code == 200:
        GIVES[number].validate(found.json())
    else:
        ERROR.validate(found.json())
        assert "Traceback" not in found.text
        assert "bethink/" not in found.text


def test_no_hostile_string_breaks_a_question(server: Server) -> None:
    """Every one of them, stored with others and asked for by itself."""
    told: list[dict[str, Any]] = []
    for start in range(0, len(NAUGHTY), 50):
        memories = [{"text": text, "force": True} for text in NAUGHTY[start : start + 50]]
        body = json.dumps({"memories": memories}, ensure_ascii=True).encode()
        stored = server.make_request("POST", "/v1/memories/batch", body)
        assert stored.status_code == 200 or len(body) > MAX_BODY_BYTES, stored.text[:500]
        told += stored.json().get("results", [])

    assert {one["status"] for one in told} <= {"stored", "duplicate", "refused"}
    for text in NAUGHTY:
        asked = server.make_request("GET", "/v1/recall?k=3&q=" + quote(_utf8(text)[:300], safe=""))
        assert asked.status_code in (200, 422), asked.text
