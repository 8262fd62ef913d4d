"""People on a server: who may do what, in which space, and what is recorded of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from bethink import Memory
from bethink.access.audit import ReadAudit
from bethink.access.policy import Principal, Right
from bethink.access.tokens import ANY_SPACE, TokenStore
from bethink.config.settings import Settings
from bethink.server.rest.spaces import SpacesApp, for_space
from server_app import HERE, bearer, make_guard, make_test_app, mcp, talk

SPACE = "memory"


class Served:
    """Two spaces on one server: Anna is in both, Ben in the first."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.tokens, self.verify = TokenStore(folder), None
        self.settings = Settings(
            data_dir=folder / "data", embedder="none", actor="http", space=SPACE, **settings
        )
        self.spaces = {name: Memory.open(name, settings=self.settings) for name in (SPACE, "ops")}
        people = self.tokens.people
        people.add("anna", SPACE, "owner")
        people.add("anna", "ops", "reader")
        people.add("ben", SPACE, "writer")
        self.headers = {
            name: bearer(
                self.tokens.create(name, Right.ADMIN, (ANY_SPACE,), person=people.find(name).id)
            )
            for name in ("anna", "ben")
        }

    def talk(self, conversation: Callable[[httpx.AsyncClient], Awaitable[Any]]) -> Any:
        config = replace(make_guard(self), verify=self.verify)  # type: ignore[arg-type]  # has tokens
        root = make_test_app(self.spaces[SPACE], config)
        ops = make_test_app(self.spaces["ops"], for_space(config, "ops"), with_page=False)
        try:
            return talk(SpacesApp(root, {SPACE: root, "ops": ops}, config), conversation)
        finally:
            for memory in self.spaces.values():
                memory.close()


def test_what_signs_in_by_oauth_reaches_the_first_space_only(tmp_path: Path) -> None:
    """A connection was allowed for one space; the others answer as if it were unknown."""
    served = Served(tmp_path)
    served.verify = lambda _: Principal("host", Right.ADMIN)
    headers = {"Authorization": "Bearer from-a-provider"}

    async def conversation(client: httpx.AsyncClient) -> list[int]:
        paths = ("", "/spaces/ops", "/spaces/none")
        return [
            (await client.get(f"{path}/v1/memories", headers=headers)).status_code for path in paths
        ]

    assert served.talk(conversation) == [200, 401, 401]


def test_people_share_and_keep_over_rest_and_mcp(tmp_path: Path) -> None:
    """What is private is so on every surface, and says so."""
    served = Served(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        ben, anna = served.headers["ben"], served.headers["anna"]
        for audience in ("private", "anna", "space"):
            body = {"text": f"The lantern is {audience}", "audience": audience}
            assert (await client.post("/v1/memories", json=body, headers=ben)).status_code == 200
        seen = {}
        for name, headers in served.headers.items():
            found = (await client.get("/v1/recall?q=lantern", headers=headers)).json()["memories"]
            seen[name] = {(one["text"], one.get("audience")) for one in found}
        assert seen["anna"] == {
            ("The lantern is anna", "anna, ben"), ("The lantern is space", None)
        }  # fmt: skip
        assert ("The lantern is private", "private") in seen["ben"]
        call = {"name": "remember", "arguments": {"text": "The violin", "audience": "private"}}
        told = (await mcp(client, "tools/call", call, anna)).text
        assert "stored" in told
        recalled = {"name": "recall", "arguments": {"query": "violin"}}
        assert "seen by: private" in (await mcp(client, "tools/call", recalled, anna)).text
        assert "The violin" not in (await mcp(client, "tools/call", recalled, ben)).text

    served.talk(conversation)


def test_what_becomes_private_is_erased_for_the_others(tmp_path: Path) -> None:
    """A pinned one as well, at a limit as well; nobody restores it, and the answer says so."""
    served = Served(tmp_path)
    served.tokens.people.set_limits("ben", SPACE, {"memories": 1})

    async def conversation(client: httpx.AsyncClient) -> None:
        ben, anna = served.headers["ben"], served.headers["anna"]
        body: dict[str, Any] = {"text": "The lantern is mine", "pinned": True}
        old = (await client.post("/v1/memories", json=body, headers=ben)).json()["id"]
        body = {"audience": "private"}
        moved = (await client.patch(f"/v1/memories/{old}", json=body, headers=ben)).json()
        assert (moved["changed"], moved["erased"]) == (["audience"], [old])
        found = await client.get("/v1/recall?q=lantern", headers=anna)
        assert "mine" not in found.text
        assert (await client.get(f"/v1/memories/{old}", headers=anna)).status_code == 404
        again = await client.post("/v1/restore", json={"ids": [old]}, headers=anna)
        assert again.status_code == 404
        told = (await client.get("/v1/recall?q=lantern", headers=ben)).json()["memories"]
        assert [one["id"] for one in told] == [moved["id"]]

    served.talk(conversation)


def test_limits_of_a_person_hold_over_rest_and_mcp(tmp_path: Path) -> None:
    """Memories are refused by name, requests with 429 and a time to wait; others go on."""
    served = Served(tmp_path)
    people = served.tokens.people
    people.set_limits("ben", SPACE, {"memories": 1, "requests": 4})

    async def conversation(client: httpx.AsyncClient) -> None:
        ben, anna = served.headers["ben"], served.headers["anna"]
        asked = {"json": {"text": "The lamp is blue", "audience": "private"}, "headers": ben}
        assert (await client.post("/v1/memories", **asked)).status_code == 200
        asked["json"] = {"text": "The chair is red"}
        refused = await client.post("/v1/memories", **asked)
        assert refused.status_code == 422
        assert "limit of ben" in refused.json()["error"]["message"]
        call = {"name": "remember", "arguments": {"text": "The desk is green"}}
        assert "limit of ben" in (await mcp(client, "tools/call", call, ben)).text
        assert (await client.get("/v1/memories", headers=ben)).status_code == 200
        often = await client.get("/v1/memories", headers=ben)
        assert (often.status_code, often.headers["retry-after"]) == (429, "15")
        assert (await mcp(client, "tools/call", call, ben)).status_code == 429
        assert (await client.get("/v1/memories", headers=anna)).status_code == 200

    served.talk(conversation)


def test_values_are_of_the_whole_space(tmp_path: Path) -> None:
    """One writes, the other reads, changes and removes; who may only read cannot write."""
    served = Served(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        place = {"namespace": ["graph"], "key": "k"}

        async def put(name: str, space: str = "", **value: Any) -> int:
            body, headers = {"values": [place | value]}, served.headers[name]
            return (await client.post(f"{space}/v1/values", json=body, headers=headers)).status_code

        async def get(name: str) -> Any:
            asked = {"json": {"get": [place]}, "headers": served.headers[name]}
            found = (await client.post("/v1/values/find", **asked)).json()["get"][0]
            return found and found["value"]

        assert await put("ben", value={"n": 1}) == 200
        assert await get("anna") == {"n": 1}
        assert await put("anna", value={"n": 2}) == 200
        assert await get("ben") == {"n": 2}
        assert await put("ben") == 200
        assert await get("anna") is None
        assert await put("anna", "/spaces/ops", value={"n": 3}) == 403

    served.talk(conversation)


def test_a_role_counts_at_each_request(tmp_path: Path) -> None:
    """Lowered between the two steps of a forget, taken away in the middle of a session."""
    served = Served(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        ben = served.headers["ben"]
        body = {"text": "The copper ledger", "audience": "private"}
        item = (await client.post("/v1/memories", json=body, headers=ben)).json()["id"]
        asked = {"ids": [item], "erase": True}
        shown = (await client.post("/v1/forget", json=asked, headers=ben)).json()
        login = await client.post("/v1/session", json={"token": ben["Authorization"][7:]})
        page = {"x-bethink-page": login.json()["page_key"], "origin": str(client.base_url)}
        people = served.tokens.people
        people.set_role("ben", SPACE, "reader")
        again = await client.post("/v1/forget", json=asked | {"token": shown["token"]}, headers=ben)
        assert again.status_code == 403
        assert (await client.get("/v1/session", headers=page)).json()["scope"] == "read"
        people.remove("ben", SPACE)
        for headers in (ben, page):
            assert (await client.get("/v1/recall?q=ledger", headers=headers)).status_code == 401

    served.talk(conversation)


def test_spaces_are_apart_and_unknown_ones_answer_as_foreign_ones(tmp_path: Path) -> None:
    """By the same bytes; a program on this machine is nobody among people."""
    served = Served(tmp_path)
    served.spaces["ops"].remember("The pager is in the drawer")

    async def conversation(client: httpx.AsyncClient) -> None:
        answers = {}
        for name in ("ops", "nowhere"):
            for headers in (served.headers["ben"], {}, bearer("bt_" + "A" * 43)):
                for path in ("v1/stats", "v1/health", "v1/session", "mcp", "openapi.json", ""):
                    got = await client.get(f"/spaces/{name}/{path}", headers=headers)
                    answers.setdefault(name, []).append((got.status_code, got.text))
            # The page itself holds no data.
            pages = [await client.get(f"/spaces/{name}/ui{more}") for more in ("", "/ask")]
            answers[f"{name} page"] = [(page.status_code, page.text) for page in pages]
        assert answers["ops"] == answers["nowhere"]
        assert answers["ops page"] == answers["nowhere page"]
        assert {status for status, _ in answers["ops"]} == {401}
        anna = served.headers["anna"]
        found = (await client.get("/spaces/ops/v1/memories", headers=anna)).json()["memories"]
        assert [one["text"] for one in found] == ["The pager is in the drawer"]
        body = {"text": "Anna only reads here"}
        refused = await client.post("/spaces/ops/v1/memories", json=body, headers=anna)
        assert refused.status_code == 403
        assert (await client.get("/v1/memories", headers=anna)).json()["memories"] == []
        assert (await client.get("/metrics", headers=anna)).status_code == 403

    served.talk(conversation)


def test_reads_are_recorded_before_they_are_answered(tmp_path: Path) -> None:
    """Who, what and which memories, no question; where it cannot be recorded nothing is shown."""
    served = Served(tmp_path, audit_reads=True)
    made = served.spaces[SPACE].remember("The orchard is old").id
    audit = ReadAudit(served.settings)

    async def conversation(client: httpx.AsyncClient) -> None:
        anna = served.headers["anna"]
        await client.get("/v1/recall?q=orchard", headers=anna)
        line = audit.lines()[-1]
        assert (line["operation"], line["ids"]) == ("recall", [made])
        assert line["who"] == served.tokens.people.find("anna").id
        assert "q" not in line
        assert "orchard" not in audit.path.read_text()
        await client.post("/v1/forget", headers=anna, json={"ids": [made]})
        assert audit.lines()[-1]["operation"] == "forget"
        audit.path.unlink()
        audit.path.mkdir()
        hidden = await client.get("/v1/recall?q=orchard", headers=anna)
        assert hidden.status_code >= 500
        assert "orchard" not in hidden.text

    served.talk(conversation)


@pytest.mark.parametrize("rate", [2])
def test_limits_are_of_a_person(tmp_path: Path, rate: int) -> None:
    """Two tokens of one person have one share; another person has their own."""
    served = Served(tmp_path)
    anna = served.tokens.people.find("anna").id
    second = bearer(served.tokens.create("second", Right.READ, (ANY_SPACE,), person=anna))

    async def conversation(client: httpx.AsyncClient) -> None:
        asking = (served.headers["anna"], second, second, served.headers["ben"])
        codes = [(await client.get("/v1/stats", headers=who)).status_code for who in asking]
        assert codes == [200, 200, 429, 200]

    config = make_guard(served, HERE, rate=rate)  # type: ignore[arg-type]
    talk(make_test_app(served.spaces[SPACE], config), conversation)


def test_only_people_are_offered_an_audience(tmp_path: Path) -> None:
    """Others are not told of what they cannot use."""
    served = Served(tmp_path)
    token = bearer(served.tokens.create("robot", Right.WRITE, (ANY_SPACE,)))

    async def conversation(client: httpx.AsyncClient) -> None:
        offered = {
            name: (await mcp(client, "tools/list", {}, headers)).text
            for name, headers in (("anna", served.headers["anna"]), ("robot", token))
        }
        told = "For people of a server"
        assert (told in offered["anna"], told in offered["robot"]) == (True, False)

    served.talk(conversation)
