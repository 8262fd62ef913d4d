"""Everybody who might knock at every door there is, against the one policy table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from bethink import Memory
from bethink.access.policy import ANONYMOUS, ARGUMENT_OPERATIONS, GRANTABLE, POLICY, Right
from bethink.server.mcp.manifest import PROMPTS, RESOURCES, TEMPLATES, ServerManifest
from bethink.server.mcp.view import VIEW_RESOURCE
from bethink.server.rest.routes import PLAIN_ROUTES, TOOL_ROUTES
from bethink.server.tools import TOOLS
from bethink.server.tools.calls import ToolExecutor
from deferred import Deferred
from rows import each_row
from server_app import Callers, OpenMemoryLoader, make_guard, make_test_app, mcp, talk

mcp_server = Deferred("bethink.server.mcp.server")

mcp_http = Deferred("bethink.server.mcp.http")
mcp_sdk = Deferred("mcp.client.client")

THREAD, OTHER = "thread-1", "other-1"
STORED = "The staging database is called heron"
# What makes a call of each complete; ID stands for a memory that is there.
TOLD: dict[str, dict[str, Any]] = {
    "recall": {"query": "heron"},
    "recall with mark_accessed": {"query": "heron", "mark_accessed": True},
    "explain": {"query": "heron"},
    "inspect": {"query": "heron"},
    "usage": {"id": "ID"},
    "graph": {"node": "ID"},
    "remember": {"text": "Releases are cut on Tuesdays"},
    "remember_many": {"memories": [{"text": "Backups run at night"}]},
    "put_values": {"values": [{"namespace": ["a"], "key": "k", "value": {"a": 1}}]},
    "find_values": {"search": [{"namespace": []}]},
    "update_memory": {"id": "ID", "topic": "databases"},
    "forget": {"ids": ["ID"]},
    "forget with erase": {"ids": ["ID"], "erase": True},
    "restore": {"ids": ["ID"]},
    "review": {"ids": [], "decision": "refuse"},
    "undo": {"id": "ID", "preview": True},
    "history": {"id": "ID"},
    "timeline": {"id": "ID"},
    "links": {"id": "ID"},
    "link": {"id": "ID", "relation": "implies", "other": OTHER},
    "get_memory": {"id": "ID"},
    "recall_file": {"path": "app.py"},
    "note_edit": {"path": "app.py"},
    "save_question": {"query": "what is called heron?"},
    "settle": {"id": "ID", "keep": "current"},
    "read_smart": {"path": "notes.txt"},
}
MORE = [f"{operation} with {argument}" for operation, argument in sorted(ARGUMENT_OPERATIONS)]


def told_for(operation: str, item: str) -> dict[str, Any]:
    told = TOLD.get(operation, {})
    return {
        name: item if value == "ID" else [item] if value == ["ID"] else value
        for name, value in told.items()
    }


async def call_rest(
    client: httpx.AsyncClient, operation: str, headers: dict[str, str], item: str
) -> dict[str, int]:
    """The statuses that every route of an operation answers with."""
    found = {}
    for way in TOOL_ROUTES:
        if way.tool.name != operation.partition(" ")[0]:
            continue
        told = told_for(operation, item)
        path = way.path.replace("{id}", THREAD if operation == "threads" else item)
        told = {name: value for name, value in told.items() if name not in way.path_params}
        if way.required and "query" not in told:
            told["query"] = "heron"
        if way.method == "GET":
            short = {name: brief for brief, name in way.aliases.items()}
            asked: dict[str, Any] = {"params": {short.get(k, k): _said(v) for k, v in told.items()}}
        else:
            asked = {"json": told}
        answer = await client.request(way.method, path, headers=headers, **asked)
        found[f"{way.method} {way.path}"] = answer.status_code
    return found


def _said(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


@pytest.mark.parametrize("neighbours", [True, False], ids=["open to neighbours", "by token"])
def test_no_route_deviates_from_the_table(
    memory: Memory, tmp_path: Path, *, neighbours: bool
) -> None:
    """Each answers 401 to whom it does not know, 403 to who may not, and all others well."""
    item = memory.remember(STORED).id
    memory.remember("The canteen opens at noon", id=OTHER)
    memory.put_thread("Databases", [item], id=THREAD)
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers, require_token=not neighbours))
    deviations = []

    async def conversation(client: httpx.AsyncClient) -> None:
        for caller, headers in callers.headers.items():
            right = callers.right(caller, neighbours=neighbours)
            found: dict[str, tuple[str, int]] = {}
            for operation in [*{way.tool.name: None for way in TOOL_ROUTES}, *MORE]:
                for route, status in (await call_rest(client, operation, headers, item)).items():
                    found[f"{route} {operation}"] = (operation, status)
            for plain in PLAIN_ROUTES:
                # A stream does not end; what HEAD answers is how it would begin.
                method = "HEAD" if plain.operation == "watch" else plain.method
                answer = await client.request(method, plain.path, headers=headers)
                found[f"{plain.method} {plain.path}"] = (plain.operation, answer.status_code)
            for route, (operation, status) in found.items():
                if not fits(operation, right, caller, status):
                    deviations.append((caller, route, status))

    talk(app, conversation)

    assert deviations == []


def fits(operation: str, right: Right, caller: str, status: int) -> bool:
    """Whether an answer is the one that the table asks for."""
    needed = POLICY[operation]
    known = right is not Right.ANYONE
    if not known and not (needed is Right.ANYONE and caller == "none"):
        return status == 401
    if right < needed:
        return status == 403
    # Without a body these are allowed, but have nothing to do; there is no conflict to settle.
    idle = (("import", 415), ("login", 422), ("sync", 422), ("settle", 404))
    return status < 400 or (operation, status) in idle


@pytest.mark.parametrize("neighbours", [True, False], ids=["open to neighbours", "by token"])
def test_no_tool_deviates_from_the_table(
    memory: Memory, tmp_path: Path, *, neighbours: bool
) -> None:
    """Over HTTP each does what it is asked or says which scope it needs, and lists show
    what may be used."""
    item = memory.remember(STORED).id
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers, require_token=not neighbours))
    deviations = []

    async def conversation(client: httpx.AsyncClient) -> None:
        for caller, headers in callers.headers.items():
            right = callers.right(caller, neighbours=neighbours)
            listed = await mcp(client, "tools/list", {}, headers)
            if right is Right.ANYONE:
                assert listed.status_code == 401
            else:
                names = [tool["name"] for tool in listed.json()["result"]["tools"]]
                assert names == [name for name in TOOLS if POLICY[name] <= right]
            for operation in [*TOOLS, *(one for one in MORE if one.split()[0] in TOOLS)]:
                told = {"name": operation.split()[0], "arguments": told_for(operation, item)}
                answer = await mcp(client, "tools/call", told, headers)
                if not fits_mcp(answer, POLICY[operation], right):
                    deviations.append((caller, operation, answer.text[:200]))

    talk(app, conversation)

    assert deviations == []


def fits_mcp(answer: httpx.Response, needed: Right, right: Right) -> bool:
    if right is Right.ANYONE:
        return answer.status_code == 401
    denied = f"needs the scope {needed.scope_name}" in answer.text
    return answer.status_code == 200 and denied == (right < needed)


@each_row("caller", ["none", "unknown", "expired", "elsewhere", "read", "admin"])
def test_no_resource_or_prompt_deviates_from_the_table(
    memory: Memory, tmp_path: Path, caller: str
) -> None:
    """They are all for reading, to who is let in at all."""
    item = memory.remember(f"{STORED}, says Mara").id
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers, require_token=True))
    uris = [one["uri"] for one in (*RESOURCES, VIEW_RESOURCE)]
    uris += ["memory://entity/mara", f"memory://item/{item}"]
    right = callers.right(caller, neighbours=False)

    async def conversation(client: httpx.AsyncClient) -> None:
        headers = callers.headers[caller]
        for uri in uris:
            answer = await mcp(client, "resources/read", {"uri": uri}, headers)
            assert ("result" in answer.json()) == (right >= Right.READ), uri
        for name, prompt in PROMPTS.items():
            told = {"name": name, "arguments": dict.fromkeys(prompt.arguments, "heron")}
            answer = await mcp(client, "prompts/get", told, headers)
            assert ("result" in answer.json()) == (right >= Right.READ), name

    talk(app, conversation)


def test_the_running_application_has_no_other_routes(memory: Memory, tmp_path: Path) -> None:
    """Every path and method that it answers is in the tables that have rows."""
    app: Any = make_test_app(memory, make_guard(Callers(tmp_path))).app
    known: dict[str, set[str]] = {}
    for one in (*TOOL_ROUTES, *PLAIN_ROUTES):
        known.setdefault(one.path, set()).add(one.method)
    there = {route.path: {*(route.methods or ())} - {"HEAD"} for route in app.routes}

    # The files of the inspector's page hold no data.
    page = {path: {"GET"} for path in ("/ui", "/ui/{path:path}", "/login")}

    assert there == known | {"/mcp": set()} | page


def test_everything_there_is_has_a_row() -> None:
    """Each tool, route, resource and prompt; and each row belongs to something."""
    there = {
        *TOOLS,
        *(way.tool.name for way in TOOL_ROUTES),
        *(plain.operation for plain in PLAIN_ROUTES),
    }
    there |= {f"resource {one['uri']}" for one in (*RESOURCES, VIEW_RESOURCE)}
    there |= {f"resource {one['uriTemplate']}" for one in TEMPLATES}
    there |= {f"prompt {name}" for name in PROMPTS} | {*MORE, "mcp"}

    assert there <= POLICY.keys()
    assert {row for row in POLICY if POLICY[row] is not Right.LOCAL} == there


def test_what_cannot_be_taken_back_is_for_admins() -> None:
    """Whatever else may change in the table."""
    assert all(POLICY[one] is Right.ADMIN for one in ("forget with erase", "export", "import"))
    assert all(POLICY[one] is Right.LOCAL for one in ("config", "token", "spaces", "revoke"))
    assert not {one for one in POLICY if POLICY[one] is Right.LOCAL} & {
        *TOOLS, *(way.tool.name for way in TOOL_ROUTES), *(plain.operation for plain in PLAIN_ROUTES)
    }  # fmt: skip
    changing = {name for name, tool in TOOLS.items() if not tool.read_only}
    assert all(POLICY[name] >= Right.WRITE for name in changing)
    assert Right.LOCAL not in GRANTABLE


GREETING = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {},
               "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_a_session_is_its_owners_alone(memory: Memory, tmp_path: Path) -> None:
    """Who knows another's session id, and has a token of their own, finds no session."""
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers))

    async def conversation(client: httpx.AsyncClient) -> None:
        begun = await client.post("/mcp", json=GREETING, headers=ACCEPT | callers.headers["admin"])
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"]}
        asked = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        for caller, status in (("admin", 200), ("write", 404), ("none", 404), ("unknown", 401)):
            headers = ACCEPT | session | callers.headers[caller]
            answer = await client.post("/mcp", json=asked, headers=headers)
            assert answer.status_code == status, caller

    talk(app, conversation)


def test_nobody_has_all_the_sessions(memory: Memory, tmp_path: Path) -> None:
    """Who never says goodbye loses the sessions not used for longest; others lose none."""
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers))

    async def conversation(client: httpx.AsyncClient) -> None:
        async def begin(caller: str) -> dict[str, str]:
            headers = ACCEPT | callers.headers[caller]
            begun = await client.post("/mcp", json=GREETING, headers=headers)
            assert begun.status_code == 200
            return headers | {"Mcp-Session-Id": begun.headers["mcp-session-id"]}

        async def is_open(session: dict[str, str]) -> bool:
            asked = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
            return (await client.post("/mcp", json=asked, headers=session)).status_code == 200

        other = await begin("admin")
        greedy = [await begin("read") for _ in range(3)]
        for wrong in ({"Mcp-Protocol-Version": "2020-01-01"}, {}):
            await client.delete("/mcp", headers=greedy[1] | wrong)
        assert await is_open(greedy[0])
        greedy += [await begin("read") for _ in range(mcp_http.MAX_SESSIONS)]

        assert await is_open(await begin("admin"))
        assert await is_open(other)
        assert not await is_open(greedy[0])
        assert [await is_open(one) for one in greedy[-mcp_http.MAX_SESSIONS_PER_CALLER - 1 :]] == [
            False, *[True] * mcp_http.MAX_SESSIONS_PER_CALLER
        ]  # fmt: skip

    talk(app, conversation)


@pytest.mark.parametrize("caller", ["read", "write", "admin"])
def test_sessions_of_the_older_protocol_mind_the_table(
    memory: Memory, tmp_path: Path, caller: str
) -> None:
    """The handshake makes nobody the owner: lists and calls are by the token's scope."""
    callers = Callers(tmp_path)
    app = make_test_app(memory, make_guard(callers))
    right = callers.right(caller, neighbours=True)

    async def conversation(client: httpx.AsyncClient) -> None:
        headers = ACCEPT | callers.headers[caller]
        begun = await client.post("/mcp", json=GREETING, headers=headers)
        headers["Mcp-Session-Id"] = begun.headers["mcp-session-id"]

        async def ask(method: str, params: dict[str, Any]) -> Any:
            told = {"jsonrpc": "2.0", "id": 2, "method": method, "params": params}
            answer = await client.post("/mcp", json=told, headers=headers)
            [line] = [one for one in answer.text.splitlines() if one.startswith("data: {")]
            return json.loads(line.removeprefix("data: "))["result"]

        names = [tool["name"] for tool in (await ask("tools/list", {}))["tools"]]
        assert names == [name for name in TOOLS if POLICY[name] <= right]
        told = {"name": "remember", "arguments": TOLD["remember"]}
        assert (await ask("tools/call", told))["isError"] == (right < Right.WRITE)

    talk(app, conversation)


def test_a_server_for_the_network_trusts_nobody_unseen(memory: Memory) -> None:
    """A message that no request of HTTP brought has no rights there."""

    async def conversation() -> None:
        opening = OpenMemoryLoader(memory)
        server = mcp_server.make_server(
            ServerManifest(TOOLS),
            opening,
            executor=ToolExecutor(opening, default_principal=ANONYMOUS),
        )
        async with mcp_sdk.Client(server) as client:
            assert (await client.list_tools()).tools == []
            assert (await client.call_tool("recall", {"query": "heron"})).is_error

    anyio.run(conversation)
