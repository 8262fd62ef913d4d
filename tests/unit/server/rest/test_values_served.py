"""Values over HTTP: the same store that LangGraph has in Python, seen from both sides."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx

from bethink import Memory
from deferred import Deferred
from server_app import Callers, make_guard, make_test_app, talk

integration = Deferred("bethink.integrations.langgraph")

ALICE = ["users", "alice"]
KEY = "AKIA" + "Q3EGLQ7XUVZ5T2MB"


def test_both_sides_read_and_write_one_store(memory: Memory, tmp_path: Path) -> None:
    """Keys, namespaces, searches, filters, removals and times to live."""
    store = integration.BethinkStore(memory)
    store.put(tuple(ALICE), "tea", {"text": "She drinks green tea", "n": 1})
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        async def post(path: str, body: Any, status: int = 200) -> Any:
            answer = await client.post(path, json=body, headers=callers.headers["write"])
            assert answer.status_code == status, answer.text
            return answer.json()

        values = [
            {"namespace": ALICE, "key": "car", "value": {"text": "She drives a red car", "n": 2}},
            {"namespace": ["users", "bob"], "key": "k", "value": {"note": f"key {KEY}"}},
            {
                "namespace": ["users", "bob"],
                "key": "dark",
                "value": {"a": "moth"},
                "indexed": False,
            },
            {"namespace": ["users", "bob"], "key": "part", "value": {"a": "owl"}, "texts": ["jay"]},
        ]
        stored = await post("/v1/values", {"values": values})
        assert [one["place"] for one in stored["redacted"]] == ["users/bob/k"]
        found = await post(
            "/v1/values/find",
            {
                "get": [{"namespace": ALICE, "key": "tea"}, {"namespace": ALICE, "key": "gone"}],
                "search": [
                    {"namespace": ALICE, "filter": {"n": {"$gte": 2}}},
                    {"namespace": ["users"], "query": "what does she drink?", "limit": 1},
                    {"namespace": [], "query": "jay", "abstain": True, "limit": 1},
                ],
                "namespaces": [{"prefix": ["users"]}, {"suffix": ["bob"], "max_depth": 1}],
            },
        )
        assert found["get"][0]["value"] == {"text": "She drinks green tea", "n": 1}
        assert found["get"][0]["id"] == store.memory_id(tuple(ALICE), "tea")
        assert found["get"][1] is None
        keys = [[value["key"] for value in one["values"]] for one in found["search"]]
        assert keys == [["car"], ["tea"], ["part"]]
        assert found["search"][2]["values"][0]["status"] in {"found", "unsure"}
        assert found["namespaces"] == [[ALICE, ["users", "bob"]], [["users"]]]
        await post("/v1/values", {"values": [{"namespace": ALICE, "key": "tea"}]})
        wrong = [{"namespace": ALICE, "key": "new", "value": {}}, {"key": "k"}]
        refused = await post("/v1/values", {"values": wrong}, 422)
        assert "namespace is missing" in refused["error"]["message"]

    talk(make_test_app(memory, make_guard(callers)), conversation)

    assert store.get(tuple(ALICE), "tea") is None
    assert store.get(tuple(ALICE), "new") is None
    assert store.get(tuple(ALICE), "car").value == {"text": "She drives a red car", "n": 2}
    assert KEY not in str(store.get(("users", "bob"), "k").value)
    assert "dark" not in [one.key for one in store.search((), query="moth", limit=1)]


def test_what_does_not_fit_is_said(memory: Memory, tmp_path: Path) -> None:
    """A search of long values ends early, and goes on with an offset."""
    store = integration.BethinkStore(memory)
    for number in range(40):
        store.put(("long",), f"{number}", {"text": f"{number} " * 20_000}, index=False)
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        keys: list[str] = []
        more = True
        while more:
            search = {"namespace": ["long"], "limit": 40, "offset": len(keys)}
            asked = {"json": {"search": [search, search]}, "headers": callers.headers["read"]}
            said = await client.post("/v1/values/find", **asked)
            assert len(said.content) < 3 << 20  # whatever is asked at once
            answer, _ = said.json()["search"]
            keys += [value["key"] for value in answer["values"]]
            more = answer["more"]
        assert sorted(keys, key=int) == [f"{number}" for number in range(40)]

    talk(make_test_app(memory, make_guard(callers)), conversation)
