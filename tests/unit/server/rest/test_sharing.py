"""What the inspector tells of other spaces, people and machines, and to whom."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.access.policy import Principal, Right
from bethink.access.tokens import ANY_SPACE
from bethink.config.settings import Settings
from bethink.server.rest.browser import BrowserSessions
from bethink.server.rest.operations import CONFLICTS, SETTLE, SYNC_STATUS
from bethink.server.rest.spaces import SpacesApp, for_space
from server_app import SPACE, Callers, make_guard, make_test_app, talk

OWN_PAGE = {"sec-fetch-site": "same-origin"}
Conversation = Callable[[httpx.AsyncClient], Awaitable[Any]]


class Server:
    """Two spaces at one address, with people, tokens and sessions of browsers."""

    def __init__(self, folder: Path) -> None:
        self.callers = Callers(folder)
        self.people = self.callers.tokens.people
        self.settings = Settings(data_dir=folder / "data", embedder="none", actor="http")
        self.spaces = {
            name: Memory.open(name, settings=replace(self.settings, space=name))
            for name in (SPACE, "ops")
        }
        self.sessions = BrowserSessions(self.callers.tokens, SPACE, others=("ops",))

    def token_of(self, name: str, space: str, role: str) -> str:
        self.people.add(name, space, role)
        person = self.people.find(name).id
        return self.callers.tokens.create(name, Right.ADMIN, (ANY_SPACE,), person=person)

    def talk(self, conversation: Conversation) -> Any:
        config = make_guard(self.callers, require_token=True)
        root = make_test_app(self.spaces[SPACE], config, sessions=self.sessions)
        of_ops: Any = {"sessions": self.sessions, "with_page": False}
        ops = make_test_app(self.spaces["ops"], for_space(config, "ops"), **of_ops)
        try:
            return talk(SpacesApp(root, {SPACE: root, "ops": ops}, config), conversation)
        finally:
            for memory in self.spaces.values():
                memory.close()


async def _sign_in(client: httpx.AsyncClient, **how: str) -> dict[str, str]:
    """What the page sends with each request from then on."""
    answer = await client.post("/v1/session", json=how, headers=OWN_PAGE)
    client.cookies.clear()
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return OWN_PAGE | {"cookie": cookie, "x-bethink-page": answer.json()["page_key"]}


def test_a_session_is_told_the_spaces_that_it_may_read_and_no_others(tmp_path: Path) -> None:
    """A link opens all; a person those of a role, each with its right; a stranger none."""
    server = Server(tmp_path)
    ben, anna = (
        server.token_of(*one) for one in (("ben", SPACE, "writer"), ("anna", "ops", "reader"))
    )
    link = server.sessions.issue_ticket(Principal("inspector", Right.ADMIN))

    async def conversation(client: httpx.AsyncClient) -> None:
        async def seen(headers: dict[str, str]) -> list[Any]:
            found = []
            for place in ("", "/spaces/ops", "/spaces/nowhere"):
                answer = await client.get(f"{place}/v1/session", headers=headers)
                told = answer.json() if answer.status_code == 200 else {}
                found.append((told.get("scope"), told.get("space"), told.get("spaces")))
            return found

        both = [SPACE, "ops"]
        unknown = (None, None, None)
        assert await seen(await _sign_in(client, ticket=link)) == [
            ("admin", SPACE, both), ("admin", "ops", both), unknown
        ]  # fmt: skip
        assert await seen(await _sign_in(client, token=ben)) == [
            ("write", SPACE, [SPACE]), unknown, unknown
        ]  # fmt: skip
        page = await _sign_in(client, token=anna)
        assert await seen(page) == [("anyone", None, ["ops"]), ("read", "ops", ["ops"]), unknown]
        assert (await client.get("/v1/memories", headers=page)).status_code == 401
        assert (await client.get("/spaces/ops/v1/memories", headers=page)).status_code == 200
        told = {"text": "Anna only reads"}
        refused = await client.post("/spaces/ops/v1/memories", json=told, headers=page)
        assert refused.status_code == 403
        assert await seen({}) == [("anyone", None, []), unknown, unknown]
        server.people.remove("anna", "ops")
        assert await seen(page) == [("anyone", None, []), unknown, unknown]

    server.talk(conversation)


def test_members_are_told_with_their_roles_of_this_space_alone(tmp_path: Path) -> None:
    """Names and roles of the space; somebody of another space is not in the list."""
    server = Server(tmp_path)
    ben = server.token_of("ben", SPACE, "owner")
    server.token_of("anna", "ops", "owner")

    async def conversation(client: httpx.AsyncClient) -> None:
        page = await _sign_in(client, token=ben)
        answer = await client.get("/v1/members", headers=page)
        (member,) = answer.json()["members"]
        assert member.pop("id").startswith("p")  # which the journal has
        assert member == {"name": "ben", "role": "owner", "you": True}

    server.talk(conversation)


def _in_conflict(folder: Path) -> tuple[Memory, list[str]]:
    """A memory whose items were changed on two machines at once; the last one is secret."""
    here, there = (Memory.open(path=folder / name / "notes.db", embedder="none") for name in "ab")
    ids = [here.remember(f"The key number {at} is in vault A").id for at in range(2)]
    ids.append(here.remember("The code is 1", classification=2).id)
    drive = folder / "drive"
    drive.mkdir()
    here.sync_with(drive, name="here")
    there.sync_with(drive, accept=["here"], name="there")
    here.sync_with(drive, accept=["there"])
    for item in ids:
        there.update(item, text=f"{there.get(item).text}, says B")
        here.update(item, text=f"{here.get(item).text}, says C")
    there.sync_with(drive)
    here.sync_with(drive)
    there.close()
    return here, ids


def test_a_conflict_is_shown_and_settled_below_the_ceiling(tmp_path: Path) -> None:
    """Both versions; a decision holds; what is above the ceiling is neither told nor counted."""
    memory, (first, second, secret) = _in_conflict(tmp_path)
    memory = memory.using(settings=replace(memory.settings, max_classification=1))
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        async def ask(method: str, path: str, **told: Any) -> Any:
            headers = callers.headers["admin"]
            return await client.request(method, path, headers=headers, **told)

        found = (await ask("GET", "/v1/conflicts")).json()
        Draft202012Validator(CONFLICTS.output_schema).validate(found)
        texts = {
            one["memory"]["id"]: {one["memory"]["text"], *(o["text"] for o in one["others"])}
            for one in found["conflicts"]
        }
        said = {f"The key number 0 is in vault A, says {who}" for who in "BC"}
        assert (texts.keys(), texts[first]) == ({first, second}, said)
        state = (await ask("GET", "/v1/sync")).json()
        Draft202012Validator(SYNC_STATUS.output_schema).validate(state)
        assert (state["name"], state["conflicts"], len(state["targets"])) == ("here", 2, 1)
        hidden = await ask("POST", f"/v1/memories/{secret}/settle", json={"keep": "other"})
        assert hidden.status_code == 404
        other = found["conflicts"][0]["others"][-1]["text"]
        settled = await ask("POST", f"/v1/memories/{first}/settle", json={"keep": "other"})
        Draft202012Validator(SETTLE.output_schema).validate(settled.json())
        assert settled.json() == {"id": first, "text": other}
        left = (await ask("GET", "/v1/conflicts")).json()["conflicts"]
        assert [one["memory"]["id"] for one in left] == [second]

    talk(make_test_app(memory, make_guard(callers)), conversation)
    memory.close()
