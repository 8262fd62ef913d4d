"""Agents and programs relate memories: by `link`, and by `remember` as they store one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.access.policy import POLICY, Right
from bethink.errors import NotFound, Refused
from bethink.model import RELATIONS
from bethink.models.update_model import update_model
from bethink.ports import PairVerdict
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call, Reply, validate_arguments
from rows import each_row
from server_app import Callers, make_guard, make_test_app, talk

TEXTS = ("Mara writes the release notes", "The office is in Leith", "Tea is at four")


def ask(memory: Memory, name: str, **told: Any) -> Reply:
    tool = TOOLS[name]
    reply = tool(Call(memory, validate_arguments(told, tool.input_schema)))
    Draft202012Validator(tool.output_schema).validate(reply.content)
    return reply


def edges(memory: Memory, item: str) -> list[tuple[str, str, str]]:
    return sorted((link.src.id, link.type, link.dst.id) for link in memory.links(item))


def test_a_correction_of_a_replaced_memory_names_what_replaced_it(memory: Memory) -> None:
    """So that an agent corrects the memory that recall returns."""
    older = memory.remember("The API timeout is 30 s", occurred_at="2026-01-05").id
    newer = memory.remember("The API timeout is 60 s", occurred_at="2026-01-06").id
    memory.link(newer, "supersedes", older)

    told = ask(memory, "update_memory", id=older, text="The API timeout is 90 s")

    assert f"superseded by {newer}, so recall does not return it" in told.text
    assert "superseded" not in ask(memory, "update_memory", id=newer, topic="api").text


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    return [memory.remember(text).id for text in TEXTS]


def test_a_caller_may_say_what_was_judged_already(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judged link marks the older memory; said by a caller, it leaves recall."""
    certain = PairVerdict(1.0, 0.0, 0.0, 0.0)
    monkeypatch.setattr(update_model, "judge", lambda pairs: [certain] * len(pairs))
    older, newer = (memory.remember(f"The API timeout is {n} s").id for n in (30, 60))
    assert (newer, "supersedes", older) in edges(memory, newer)
    told = {"id": newer, "relation": "supersedes", "other": older}

    said = [ask(memory, "link", **told).content["status"] for _ in range(2)]

    assert said == ["linked", "unchanged"]
    assert memory.get(older).status == "superseded"
    ask(memory, "link", **told, remove=True)
    assert memory.get(older).status == "active"


@each_row("relation", RELATIONS)
def test_every_relation_can_be_made_and_taken_back(
    memory: Memory, ids: list[str], relation: str
) -> None:
    """Said again it changes nothing and leaves no trace in the journal."""
    one, other, _ = ids
    told = {"id": one, "relation": relation, "other": other}

    made = ask(memory, "link", **told)
    journal = len(memory.events())
    again = ask(memory, "link", **told)

    assert (made.content["status"], again.content["status"]) == ("linked", "unchanged")
    assert len(memory.events()) == journal
    assert edges(memory, one) == [(one, relation, other)]
    gone = [ask(memory, "link", **told, remove=True).content["status"] for _ in range(2)]
    assert gone == ["removed", "unchanged"]
    assert edges(memory, one) == []
    assert memory.get(other).status == "active"


def test_an_undo_takes_a_relation_back(memory: Memory, ids: list[str]) -> None:
    """Made or removed, by its own tool."""
    one, other, _ = ids
    ask(memory, "link", id=one, relation="part_of", other=other)

    ask(memory, "undo")
    assert edges(memory, one) == []
    ask(memory, "undo")
    assert edges(memory, one) == [(one, "part_of", other)]


def test_what_may_not_be_seen_cannot_be_related(memory: Memory, ids: list[str]) -> None:
    """A memory above the ceiling does not exist for the caller, at either end."""
    secret = memory.remember("The vault code is in the safe", classification=3).id
    seen = memory.using(settings=replace(memory.settings, max_classification=1))
    unknown = "0123456789abcdef"

    for told in ({"id": ids[0], "other": secret}, {"id": secret, "other": ids[0]}):
        with pytest.raises(NotFound) as hidden:
            ask(seen, "link", relation="implies", **told)
        with pytest.raises(NotFound) as missing:
            ask(seen, "link", relation="implies", id=ids[0], other=unknown)
        assert hidden.value.message.replace(secret, "") == missing.value.message.replace(
            unknown, ""
        )
    with pytest.raises(NotFound):
        ask(seen, "remember", text="New", relations=[{"relation": "supersedes", "other": secret}])
    assert memory.get(secret).status == "active"
    assert [item.text for item in memory.browse()].count("New") == 0


@each_row(
    "wrong",
    [
        {"relation": "likes"},
        {"relation": "mentions"},
        {"weight": 0},
        {"weight": 2},
        {"other": "person:mara"},
        {"colour": "red"},
    ],
)
def test_a_wrong_relation_is_refused_before_anything_is_stored(
    memory: Memory, ids: list[str], wrong: dict[str, Any]
) -> None:
    """By `link` as by `remember`."""
    told = {"relation": "implies", "other": ids[1], **wrong}

    with pytest.raises((Refused, NotFound)):
        ask(memory, "link", id=ids[0], **told)
    with pytest.raises((Refused, NotFound)):
        ask(memory, "remember", text="Something new", relations=[told])
    assert len(memory.browse()) == len(TEXTS)
    assert edges(memory, ids[1]) == []


def test_remember_takes_episode_confidence_and_relations(memory: Memory, ids: list[str]) -> None:
    """What an agent knows of a memory is stored with it."""
    relations = [
        {"relation": "caused_by", "other": ids[0]},
        {"relation": "part_of", "other": ids[1]},
    ]
    stored = ask(
        memory, "remember", text="No notes this week, said Mara", level="raw", session="standup",
        speaker="Mara", confidence=0.4, caption="Standup", relations=relations,
    ).content["id"]  # fmt: skip

    item = memory.get(stored)
    assert (item.level, item.session, item.speaker) == ("raw", "standup", "Mara")
    assert (item.confidence, item.caption) == (0.4, "Standup")
    assert edges(memory, stored) == [
        (stored, "caused_by", ids[0]), (stored, "part_of", ids[1]),
    ]  # fmt: skip


def test_a_memory_is_trusted_no_more_than_what_it_derives_from(memory: Memory) -> None:
    """A relation told over MCP counts as the field does."""
    page = ask(memory, "remember", text="Violins are tuned in fifths", origin="web").content["id"]
    memory.accept(page)

    made = ask(
        memory, "remember", text="Our violins are tuned well",
        relations=[{"relation": "derives_from", "other": page}],
    ).content["id"]  # fmt: skip

    assert memory.get(made).trust == memory.get(page).trust == 0
    assert edges(memory, made) == [(made, "derives_from", page)]


def test_relations_over_rest(memory: Memory, tmp_path: Path) -> None:
    """One route for both directions, by who may write; batches take relations, too."""
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        first = (await client.post("/v1/memories", json={"text": TEXTS[0]})).json()["id"]
        batch = [
            {"text": TEXTS[1], "relations": [{"relation": "causes", "other": first}]},
            {"text": TEXTS[2], "relations": [{"relation": "causes", "other": "nobody-knows"}]},
        ]
        answer = (await client.post("/v1/memories/batch", json={"memories": batch})).json()
        assert (answer["stored"], answer["refused"]) == (1, 1)
        second = answer["results"][0]["id"]
        path = f"/v1/memories/{second}/links"
        body = {"relation": "implies", "other": first}
        denied = await client.post(path, json=body, headers=callers.headers["read"])
        assert denied.status_code == 403
        made = await client.post(path, json=body)
        assert made.json()["status"] == "linked"
        links = (await client.get(path)).json()["links"]
        assert sorted(link["type"] for link in links) == ["causes", "implies"]
        gone = await client.post(path, json={**body, "remove": True})
        assert gone.json()["status"] == "removed"

    talk(make_test_app(memory, make_guard(callers)), conversation)
    assert POLICY["link"] is Right.WRITE


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(RELATIONS), st.integers(0, 2), st.booleans()),
        max_size=8,
    )
)
def test_any_order_of_links_leaves_what_was_said_last(
    steps: list[tuple[int, str, int, bool]],
) -> None:
    """A set of relations: what is there was made and not removed, and is there once."""
    with Memory.open(":memory:", embedder="none") as memory:
        ids = [memory.remember(text).id for text in TEXTS]
        expected: set[tuple[str, str, str]] = set()
        for one, relation, other, remove in steps:
            edge = (ids[one], relation, ids[other])
            told = {"id": edge[0], "relation": relation, "other": edge[2], "remove": remove}
            try:
                ask(memory, "link", **told)
            except Refused:
                continue  # itself, or a circle of superseding
            (expected.discard if remove else expected.add)(edge)
        found = {edge for item in ids for edge in edges(memory, item)}
        assert found == expected
        superseded = {edge[2] for edge in expected if edge[1] == "supersedes"}
        assert {item for item in ids if memory.get(item).status == "superseded"} == superseded
