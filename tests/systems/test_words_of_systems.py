"""The five systems by their own words: every call, argument and field that their pages show."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from bethink import Memory
from bethink.access.policy import ANONYMOUS, POLICY, Right
from bethink.errors import BethinkError, Conflict, NotFound, Refused
from bethink.server.mcp.manifest import ServerManifest, render_prompt, system_manifest
from bethink.server.systems import SYSTEMS
from bethink.server.systems.declarations import load_system, make_tool
from bethink.server.systems.operations import shape
from bethink.server.tools import find_tool
from bethink.server.tools.calls import ToolExecutor
from bethink.server.tools.tool import Call, Reply, validate_arguments
from deferred import Deferred
from rows import each_row
from server_app import Callers, OpenMemoryLoader, make_guard, mcp, talk

mcp_server = Deferred("bethink.server.mcp.server")
mcp_http = Deferred("bethink.server.mcp.http")

Ask = Callable[..., Any]
# Every argument of every tool once; ID is a memory that is there, FILE a file of the project.
SAMPLES: dict[str, dict[str, dict[str, Any]]] = {
    "linksee": {
        "remember": {
            "entity_name": "Atlas", "entity_kind": "project", "entity_key": "atlas.example",
            "layer": "warnings", "content": "Never deploy Atlas on Fridays", "importance": 0.9,
            "force": True,
        },
        "recall": {
            "query": "deploy key", "entity_name": "Mara", "layer": "how", "band": "cold",
            "max_tokens": 3000, "limit": 200, "offset": 0, "mark_accessed": False,
        },
        "update_memory": {"memory_id": "ID", "content": "New", "layer": "why", "importance": 0.4},
        "list_entities": {"kind": "person", "min_memories": 1, "limit": 30, "offset": 0},
        "forget": {"memory_id": "ID", "dry_run": True},
        "consolidate": {"scope": "all", "min_age_days": 0, "dry_run": True},
        "recall_file": {"path_substring": "app.py", "max_intents": 10},
        "read_smart": {"path": "FILE", "force": True},
    },
    "remind": {
        "remember": {
            "content": "We use JWT", "metadata": '{"team": "core"}', "episode_type": "decision",
            "entities": "module:auth,tool:jwt", "topic": "architecture", "source_type": "agent",
        },
        "recall": {
            "query": "auth", "k": 10, "context": "a review", "entity": "module:auth",
            "episode_k": 10, "topic": "architecture",
        },
        "search": {"query": "deploy", "k": 5},
        "ingest": {"content": "Mara likes tea", "source": "chat", "topic": "t", "instructions": "i"},
        "flush_ingest": {"topic": "t", "instructions": "i"},
        "consolidate": {"force": True},
        "topic_overview": {"topic_id": "keys", "k": 5},
        "inspect": {
            "concept_id": "ID", "limit": 10, "start_date": "2020-01-01", "end_date": "2999-01-01",
        },
        "decisions": {"limit": 5},
        "questions": {"limit": 5},
        "entities": {"entity_type": "person", "limit": 50},
        "inspect_entity": {"entity_id": "person:mara"},
        "update_episode": {
            "episode_id": "ID", "content": "New", "episode_type": "fact", "entities": "tool:x",
            "topic": "t",
        },
        "update_concept": {
            "concept_id": "ID", "title": "T", "summary": "S", "confidence": 0.5, "tags": "a,b",
            "topic": "t",
        },
        "delete_episode": {"episode_id": "ID"},
        "delete_concept": {"concept_id": "ID"},
        "restore_episode": {"episode_id": "ID"},
        "restore_concept": {"concept_id": "ID"},
    },
    "abmind": {
        "memory_recall": {
            "query": "deploy key", "translated": ["deploy", "key"], "original": "Schlüssel",
            "userId": "u1", "limit": 50, "maxClassification": 2, "timeStart": 0,
            "timeEnd": 4_102_444_800_000, "stages": ["Sf", "Se", "Ss", "S6", "S8"],
            "topic": "keys", "tier": "general", "includeExpired": True, "resolution": "full",
            "trackRecalls": False,
            "currentContext": {"hour": 9, "dayOfWeek": 0, "topic": "keys"},
        },
        "memory_store": {
            "text": "The project uses SQLite", "memoryType": "fact", "userId": "u1",
            "contentOriginal": "Das Projekt nutzt SQLite", "topic": "work", "tier": "core",
            "emotionScore": 3, "emotionTags": ["joy"], "importanceFlags": ["technical"],
            "classification": 1,
        },
        "memory_edit": {"memoryId": "ID", "expectedRevision": 1, "action": "boost"},
        "memory_status": {"userId": "u1"},
        "memory_wakeup": {"limit": 5, "tier": "general"},
    },
    "memind": {
        "memind_retrieve": {
            "userId": "u", "agentId": "a", "query": "docs", "strategy": "DEEP",
            "history": ["we wrote docs"], "trace": True,
        },
        "memind_compile_context": {
            "userId": "u", "agentId": "a", "query": "docs", "strategy": "SIMPLE", "maxItems": 5,
            "tokenBudget": 500, "includeSources": True,
        },
        "memind_recent": {"userId": "u", "agentId": "a", "limit": 5},
        "memind_extract_text": {
            "userId": "u", "agentId": "a", "text": "Docs are short", "sourceClient": "notes",
        },
        "memind_add_message": {
            "userId": "u", "agentId": "a", "role": "user", "content": "Hello docs",
            "sourceClient": "chat",
        },
        "memind_commit": {"userId": "u", "agentId": "a"},
        "memind_items_get": {"userId": "u", "agentId": "a", "itemIds": ["ID"]},
        "memind_items_sources": {"userId": "u", "agentId": "a", "itemId": "ID"},
        "memind_forget": {
            "userId": "u", "agentId": "a", "ids": ["ID"], "reason": "wrong", "dryRun": True,
        },
    },
    "siftcoder": {
        "mem_search": {
            "query": "deploy key", "k": 5, "kind": "note", "focus": "keys", "rerank": True,
        },
        "focus": {"area": "keys", "k": 10},
        "investigate": {"question": "who rotates the deploy key", "k": 10},
        "mem_timeline": {"near_id": "ID", "window": 10},
        "mem_get": {"ids": ["ID"]},
        "mem_why": {"kind": "summary", "id": "ID", "depth": 4},
        "mem_note": {"text": "Retry with jitter", "kind": "pattern"},
    },
}  # fmt: skip
EVERY_ROW = [(system, name) for system in SYSTEMS for name in load_system(system).rows]


def with_profile(memory: Memory, system: str) -> Memory:
    return memory.using(settings=memory.settings.changed(profile=load_system(system).profile))


def asker(memory: Memory, system: str, **more: Any) -> Callable[..., Reply]:
    """Calls a tool as the server does, and holds its answer to its schema."""
    known = with_profile(memory, system)

    def ask(name: str, **given: Any) -> Reply:
        tool = make_tool(system, name, load_system(system).rows[name])
        Draft202012Validator.check_schema(tool.input_schema)
        Draft202012Validator(tool.input_schema).validate(given)
        reply = tool(Call(known, validate_arguments(given, tool.input_schema), **more))
        Draft202012Validator(tool.output_schema).validate(reply.content)
        return reply

    return ask


@pytest.fixture
def asks(memory: Memory) -> Callable[[str], Ask]:
    """The tools of a system, which give the content of their answers."""

    def of(system: str) -> Ask:
        ask = asker(memory, system, client="test")
        return lambda name, **given: ask(name, **given).content

    return of


def put_in(value: Any, item: str, file: Path) -> Any:
    if isinstance(value, list):
        return [put_in(one, item, file) for one in value]
    return {"ID": item, "FILE": str(file)}.get(value, value) if isinstance(value, str) else value


@pytest.mark.parametrize(("system", "name"), EVERY_ROW)
def test_every_tool_takes_every_argument(
    memory: Memory, tmp_path: Path, system: str, name: str
) -> None:
    """All of them together and the required ones alone; the text is that of the content."""
    file = tmp_path / "app.py"
    file.write_text("print(1)\n")
    memory = memory.using(settings=memory.settings.changed(allowed_roots=str(tmp_path)))
    item = memory.remember(
        "The deploy key is in vault B", entities=["person:Mara"], topic="keys"
    ).id
    row = load_system(system).rows[name]
    given = {key: put_in(one, item, file) for key, one in SAMPLES[system].get(name, {}).items()}

    assert given.keys() == row.get("arguments", {}).keys(), "SAMPLES has every argument once"
    ask = asker(memory, system)
    least = {key: value for key, value in given.items() if key in row.get("required", ())}
    if "query" in given:
        least["query"] = given["query"]
    for arguments in (given,) if row["does"] == "update" else (given, least):
        reply = ask(name, **arguments)
        if "text" not in row:
            assert json.loads(reply.text) == reply.content
        assert reply.content["notice"]


@each_row("system", SYSTEMS)
def test_every_argument_and_operation_is_known(system: str) -> None:
    """What a row says is understood: a policy row for each tool, a default in its bounds."""
    theirs = load_system(system)

    assert theirs.instructions
    assert theirs.tools
    for name, tool in theirs.tools.items():
        assert POLICY[tool.operation] <= Right.ADMIN
        assert tool.read_only or POLICY[tool.operation] >= Right.WRITE
        assert find_tool(system, name) == tool
        for argument, schema in tool.input_schema["properties"].items():
            if "default" in schema:
                Draft202012Validator(schema).validate(schema["default"])
            assert schema["description"].endswith("."), argument
    assert find_tool("nobody", "recall") is None


def test_linksee_recall_has_the_pages_fields(asks: Callable[[str], Ask]) -> None:
    """All that its handler returns, with the values of its formulas."""
    ask = asks("linksee")
    told = ask(
        "remember", entity_name="Atlas", entity_kind="project", layer="warnings",
        content='{"rule": "never deploy on Fridays"}', importance=0.9,
    )  # fmt: skip

    answer = ask("recall", query="deploy Fridays", layer="pitfalls")

    assert (told["ok"], told["pinned"], told["layer"]) == (True, True, "caveat")
    assert told["momentum"].keys() == {"score", "band"}
    assert answer.keys() >= {
        "ok", "count", "total_candidates", "offset", "has_more", "stopped_by", "search",
        "resolved_layer", "memories",
    }  # fmt: skip
    assert (answer["search"], answer["resolved_layer"]) == ("fts5", "caveat")
    [hit] = answer["memories"]
    assert hit.keys() == {
        "id", "entity", "layer", "content", "content_raw", "importance", "pinned", "heat", "band",
        "composite", "match_reasons", "score_breakdown",
    }  # fmt: skip
    assert hit["content"] == {"rule": "never deploy on Fridays"}
    assert hit["content_raw"] == '{"rule": "never deploy on Fridays"}'
    assert hit["entity"] == {
        "id": "project:atlas", "name": "Atlas", "kind": "project",
        "momentum": told["momentum"]["score"],
    }  # fmt: skip
    assert hit["match_reasons"] == [
        "content_match_fts", "entity_active", "pinned", "caveat_protected",
    ]  # fmt: skip
    parts, weights = hit["score_breakdown"], (0.45, 0.25, 0.15, 0.15)
    named = (parts["relevance"], parts["heat"], parts["momentum"], parts["importance"])
    assert hit["composite"] == pytest.approx(
        sum(part * weight for part, weight in zip(named, weights, strict=True)), abs=0.002
    )


def test_linksee_limits_are_the_pages(asks: Callable[[str], Ask]) -> None:
    """A number beyond a limit counts as the limit, and pages go on where they ended."""
    ask = asks("linksee")
    for number in range(60):
        ask(
            "remember", entity_name="Atlas", entity_kind="project", layer="context",
            content=f"Ship number {number} sails to port {number + 100}",
        )  # fmt: skip

    every = ask("recall", query="ship sails", limit=500, max_tokens=50_000)
    some = ask("recall", query="ship sails", limit=5)
    least = ask("recall", query="ship sails", max_tokens=1)

    assert (every["count"], every["has_more"], every["stopped_by"]) == (60, False, "end")
    assert (some["count"], some["has_more"], some["stopped_by"]) == (5, True, "limit")
    assert least["count"] >= 1
    assert least["stopped_by"] == "tokens"
    following = ask("recall", query="ship sails", limit=5, offset=5)
    seen = {hit["id"] for hit in (*some["memories"], *following["memories"])}
    assert len(seen) == 10


def test_linksee_pins_by_importance(asks: Callable[[str], Ask]) -> None:
    """From 0.9 on a memory stays, whoever stores it; a lower importance takes that back."""
    ask = asks("linksee")
    told = ask(
        "remember", entity_name="Atlas", entity_kind="project", layer="context",
        content="The harbour opens at six", importance=0.95,
    )  # fmt: skip
    item = told["memory_id"]

    kept = ask("forget", memory_id=item)
    lowered = ask("update_memory", memory_id=item, importance=0.5)
    gone = ask("forget", memory_id=item)

    assert (kept["ok"], kept["preserved"], kept["reason"]) == (False, True, "pinned")
    assert lowered == {
        "ok": True, "memory_id": item, "updated_fields": ["importance"], "pinned": False,
        "notice": lowered["notice"],
    }  # fmt: skip
    assert (gone["ok"], gone["deleted"]) == (True, 1)
    assert ask("recall", query="harbour opens")["memories"] == []


def test_linksee_recalls_what_an_entity_has(asks: Callable[[str], Ask]) -> None:
    """All of it where the query matches none; a part of the name is enough, as in the original."""
    ask = asks("linksee")
    for name, content in (("Atlas", "The harbour opens at six"), ("Boreas", "Ships dock twice")):
        ask("remember", entity_name=name, entity_kind="project", layer="context", content=content)

    for given in (
        {"query": "harbour", "entity_name": "Atlas"},
        {"query": "what is known", "entity_name": "Atlas"},
        {"query": "", "entity_name": "atl"},
        {"query": "atl"},
    ):
        answer = ask("recall", mark_accessed=False, **given)
        assert [hit["entity"]["name"] for hit in answer["memories"]] == ["Atlas"], given
        [hit] = answer["memories"]
        assert (answer["total_candidates"], hit["band"]) == (1, "cold"), given
        assert "entity_name_match" in hit["match_reasons"] or given["query"] == "atl"
    assert ask("recall", query="x", entity_name="Corvus")["memories"] == []
    ids = [ask("recall", query="atl")["memories"][0]["id"]]
    preview = ask("forget", memory_id=ids[0], dry_run=True)
    assert (preview["deleted"], preview["to_drop"], preview["sample_ids_to_drop"]) == (0, 1, ids)


def test_linksee_tells_a_files_history(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """With the memories that were linked to its edits."""
    ask = asks("linksee")
    item = memory.remember("The cache must survive a restart", entities=["project:Atlas"]).id
    intent = "so that the cache survives a restart"
    memory.note_edits([{"path": "src/app.py", "operation": "edit", "intent": intent, "item": item}])

    told = ask("recall_file", path_substring="app.py", max_intents=999)

    assert told["summary"].keys() == {
        "total_edits", "first_edit_at", "last_edit_at", "sessions_involved",
    }  # fmt: skip
    assert told["daily_breakdown"][0].keys() == {"day", "operation", "edits"}
    assert [one["intent"] for one in told["user_intents"]] == [intent]
    [linked] = told["linked_memories"]
    assert (linked["id"], linked["entity"]) == (item, "Atlas")


def test_remind_recalls_as_its_page_shows(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """The six calls of the page; episodes come first, and k and episode_k count apart."""
    ask = asks("remind")
    ask(
        "remember", content="We chose JWT for auth", episode_type="decision",
        entities="module:auth", topic="architecture",
    )  # fmt: skip
    memory.remember("Auth tokens expire after an hour", kind="fact", topic="architecture")

    for given in (
        {"query": "authentication approach"},
        {"query": "auth", "entity": "module:auth"},
        {"entity": "module:auth"},
        {"query": "auth", "episode_k": 10},
        {"query": "auth tokens", "topic": "architecture"},
    ):
        answer = ask("recall", **given)
        assert answer["status"] in ("found", "unsure"), given
        assert answer["text"].removeprefix("May be related:\n\n").startswith("RELEVANT EPISODES:")
    concepts = ask("recall", query="auth tokens", episode_k=0)
    assert concepts["episodes"] == []
    assert concepts["text"].startswith("RELEVANT MEMORY:")


def test_remind_shows_what_was_replaced(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """A superseded concept comes with the newer one, both ways."""
    old = memory.remember("The build server is called Heron").id
    new = memory.remember("The build machine was renamed to Osprey").id
    memory.link(new, "supersedes", old)

    answer = asks("remind")("recall", query="what is the build server called?", k=10)

    assert {hit["id"]: hit["status"] for hit in answer["concepts"]}[old] == "superseded"
    assert f"SUPERSEDED BY [{new}]" in answer["text"]
    assert {one["type"] for one in answer["relations"]} == {"supersedes"}


def test_abmind_answers_in_stages(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """Hits with their stage and metadata, the counts of every stage, and only those asked for."""
    ask = asks("abmind")
    stored = ask(
        "memory_store", text="The project uses SQLite as its database", memoryType="fact",
        topic="work", emotionTags=["joy"], importanceFlags=["technical"], emotionScore=3,
    )  # fmt: skip

    answer = ask("memory_recall", query="what database does the project use?")
    [hit] = answer["results"]
    only = ask("memory_recall", translated=["sqlite database"], stages=["Sf", "S8"])

    assert list(answer["stages"]) == ["Sf", "Se", "Ss", "S6", "S8"]
    assert (hit["id"], hit["stage"], hit["topic"]) == (stored["memoryId"], "Sf", "work")
    assert (hit["emotion_tags"], hit["importance_flags"]) == (["joy"], ["technical"])
    assert hit["createdAt"] == round(memory.now.timestamp() * 1000)
    assert [*only["stages"]] == ["Sf", "S8"]
    assert only["results"]
    with pytest.raises(Refused, match="no stage"):
        ask("memory_recall", query="sqlite", stages=["Sx"])
    with pytest.raises(Conflict):
        ask("memory_edit", memoryId=hit["id"], expectedRevision=7, action="boost")
    raised = ask("memory_edit", memoryId=hit["id"], expectedRevision=1, action="boost")
    assert raised["relevance_score"] == 10


def test_abmind_weekdays_begin_on_sunday(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """Its day 0 raises what was stored on a Sunday."""
    ask, day = asks("abmind"), memory.now.isoweekday() % 7
    ask("memory_store", text="Tea is in the blue tin", memoryType="fact")

    def score(weekday: int) -> float:
        given = {"dayOfWeek": weekday}
        answer = ask("memory_recall", query="blue tin", currentContext=given, trackRecalls=False)
        return answer["results"][0]["score"]

    assert score(day) > score((day + 3) % 7)


def test_memind_returns_what_its_page_lists(asks: Callable[[str], Ask]) -> None:
    """Both strategies of the page; the query is the one that was searched."""
    ask = asks("memind")
    own = {"userId": "u", "agentId": "writer"}
    ask("memind_extract_text", text="The user dislikes generic descriptions in docs", **own)
    ask("memind_add_message", role="user", content="The docs need implementation details", **own)

    simple = ask("memind_retrieve", query="What does this user prefer in docs?", **own)
    deep = ask(
        "memind_retrieve", query="What does this user prefer in docs?", strategy="DEEP", **own
    )
    short = ask(
        "memind_retrieve", query="and the docs?", history=["descriptions that users like"], **own
    )
    other = ask("memind_retrieve", query="descriptions in docs", userId="u", agentId="coder")
    whole = ask("memind_retrieve", query="descriptions in docs", userId="u")
    recent = [ask("memind_recent", userId="u", agentId=name)["entries"] for name in ("writer", "x")]

    for answer, strategy in ((simple, "SIMPLE"), (deep, "DEEP")):
        assert answer.keys() >= {"insights", "items", "rawData", "evidences", "strategy", "query"}
        assert (answer["status"], answer["strategy"]) == ("SUCCESS", strategy)
        assert answer["items"][0].keys() >= {"id", "text", "vectorScore", "finalScore"}
        assert "## Items" in answer["formatted"]
    assert simple["rawData"][0].keys() == {"rawDataId", "caption", "maxScore", "itemIds"}
    assert deep["evidences"]
    assert short["query"] == "descriptions that users like\nand the docs?"
    assert other["items"] == other["rawData"] == []
    assert len(whole["items"]) == 2
    assert [len(entries) for entries in recent] == [2, 0]


def test_siftcoder_hits_have_the_pages_fields(memory: Memory, asks: Callable[[str], Ask]) -> None:
    """From which the score can be computed by hand, as the page does."""
    ask = asks("siftcoder")
    bug = ask("mem_note", text="fixed null-deref when the JWT of the auth token was malformed")
    ask("mem_note", text="the deploy script of the harbour lives in ops")
    cause = memory.remember("a customer sent an empty header").id
    memory.link(bug["id"], "caused_by", cause)

    found = ask("mem_search", query="didn't we fix something around malformed auth tokens")
    [hit] = [one for one in found["hits"] if one["id"] == bug["id"]]
    around = ask("mem_timeline", near_id=bug["id"])
    led = ask("mem_why", id=bug["id"])

    assert hit.keys() >= {"id", "text", "ts", "bm25Rank", "vecRank", "cosine", "recency", "score"}
    assert hit["score"] == pytest.approx(
        (1 / (60 + hit["bm25Rank"]) + 1 / (60 + hit["vecRank"])) * hit["recency"], abs=1e-6
    )
    assert around["near"]["id"] == bug["id"]
    assert len(around["before"]) + len(around["after"]) == 2
    assert [(edge["edge_type"], edge["to_id"]) for edge in led["edges"]] == [("caused_by", cause)]
    focused = ask("mem_search", query="malformed auth token script", focus="harbour")["hits"]
    plain = ask("mem_search", query="malformed auth token script")["hits"]
    scores = [{one["id"]: one["score"] for one in hits} for hits in (focused, plain)]
    raised = {item for item in scores[0] if scores[0][item] > scores[1][item]}
    assert raised == {one["id"] for one in plain if "harbour" in one["text"]}


@each_row("system", SYSTEMS)
def test_mistakes_are_refused_with_a_remedy(memory: Memory, system: str) -> None:
    """An unknown argument, a wrong type, an id that is not there."""
    ask = asker(memory, system)
    for name, tool in load_system(system).tools.items():
        with pytest.raises(Refused, match="no argument") as refused:
            tool(Call(memory, validate_arguments({"nonsense": 1}, tool.input_schema)))
        assert refused.value.remedy
        wanted = [arg for arg in tool.input_schema["properties"] if arg in ("memory_id", "id")]
        if wanted and name != "remember":
            with pytest.raises(NotFound):
                ask(name, **{wanted[0]: "nothing-at-all", **_rest(tool.input_schema, wanted[0])})


def _rest(schema: dict[str, Any], known: str) -> dict[str, Any]:
    return {name: "x" for name in schema.get("required", ()) if name != known} | (
        {"content": "new"} if "content" in schema["properties"] else {}
    )


def test_no_reader_changes_anything(memory: Memory, tmp_path: Path) -> None:
    """Tools of other systems are operations of the one policy table, and lists show them so."""
    item = memory.remember("The staging database is called heron").id
    callers = Callers(tmp_path)

    async def conversation(client: httpx.AsyncClient) -> None:
        for caller, right in (("read", Right.READ), ("write", Right.WRITE)):
            headers = callers.headers[caller]
            listed = (await mcp(client, "tools/list", {}, headers)).json()["result"]["tools"]
            allowed = [name for name, tool in tools.items() if POLICY[tool.operation] <= right]
            assert [tool["name"] for tool in listed] == allowed
        told = {"name": "forget", "arguments": {"memory_id": item}}
        denied = await mcp(client, "tools/call", told, callers.headers["read"])
        assert "needs the scope write" in denied.text
        asked = {"name": "recall", "arguments": {"query": "heron"}}
        answer = await mcp(client, "tools/call", asked, callers.headers["read"])
        assert "staging" in answer.text

    tools = load_system("linksee").tools
    loader = OpenMemoryLoader(with_profile(memory, "linksee"))
    executor = ToolExecutor(loader, default_principal=ANONYMOUS)
    server = mcp_server.make_server(ServerManifest(tools), loader, executor=executor)
    talk(mcp_http.make_guarded_app(server, make_guard(callers)), conversation)

    assert memory.get(item).recalls == 0


def test_the_manifest_speaks_of_their_tools() -> None:
    """The instructions name tools that are there."""
    for system in SYSTEMS:
        theirs = load_system(system)
        told = system_manifest(theirs).initialize_result("2025-11-25")

        assert any(name in told["instructions"] for name in theirs.tools)


def test_a_field_without_a_value_is_left_out_where_the_row_says_so() -> None:
    """And every other one is null, so that a program finds it."""
    template = {"a?": "x", "b": "x", "c": "y | round 1", "d": "=x", "e": {"each": "z", "is": "."}}

    assert shape(template, {"y": 1.26, "z": [1, 2]}) == {"b": None, "c": 1.3, "d": "x", "e": [1, 2]}


def test_errors_are_ours(memory: Memory) -> None:
    """A time that is none and metadata that is no object are refused, not bugs."""
    with pytest.raises(BethinkError):
        asker(memory, "abmind")("memory_recall", query="x", timeStart=1e300)
    with pytest.raises(BethinkError):
        asker(memory, "remind")("remember", content="x", metadata="[1]")


@each_row("system", SYSTEMS)
def test_every_tool_has_its_row_on_the_page(system: str) -> None:
    """With its command and all of its arguments."""
    page = Path(__file__).parents[2] / "docs" / "switching" / f"{system}.md"
    lines = page.read_text(encoding="utf-8").splitlines()
    for name, row in load_system(system).rows.items():
        shown = row.get("command", name.replace("_", "-"))
        [line] = [one for one in lines if one.startswith("| ") and f"| `{shown}` |" in one]
        assert f"`{name}`" in line or not row.get("mcp", True)
        for argument in row.get("arguments", {}):
            assert f"`{argument}`" in line, (name, argument)


def test_siftcoders_slash_commands_are_tools(asks: Callable[[str], Ask]) -> None:
    """A focus weighs its area half as much again; an investigation reranks."""
    ask = asks("siftcoder")
    ask("mem_note", text="the harbour crane was repaired")
    ask("mem_note", text="the deploy script of the harbour lives in ops")
    plain, focused = (
        {one["id"]: one["score"] for one in found["hits"]}
        for found in (ask("mem_search", query="harbour", k=10), ask("focus", area="harbour"))
    )
    assert len(focused) == 2
    assert all(focused[one] == pytest.approx(1.5 * plain[one], rel=0.01) for one in focused)
    found = ask("investigate", question="where does the deploy script live")["hits"]
    assert found[0]["text"].startswith("the deploy script")
    assert (
        found
        == ask("mem_search", query="where does the deploy script live", k=10, rerank=True)["hits"]
    )


def test_an_empty_focus_raises_nothing(asks: Callable[[str], Ask]) -> None:
    """Also where a memory has the query word for word."""
    ask = asks("siftcoder")
    ask("mem_note", text="the harbour crane was repaired")
    scores = [
        [one["score"] for one in ask("mem_search", query="harbour", **given)["hits"]]
        for given in ({}, {"focus": ""}, {"focus": " "})
    ]

    assert scores[0] == scores[1] == scores[2] != []


def test_siftcoders_slash_commands_are_prompts(memory: Memory) -> None:
    """They quote memories as data; the area or the question is what the user said."""
    memory.remember("Auth tokens are checked in the middleware")
    prompts = system_manifest(load_system("siftcoder")).prompts
    known = with_profile(memory, "siftcoder")

    focus = render_prompt("focus", {"area": "auth"}, lambda: known, prompts)
    asked = {"question": "where are tokens checked?"}
    investigate = render_prompt("investigate", asked, lambda: known, prompts)

    for text, said in ((focus, "auth"), (investigate, asked["question"])):
        assert "Auth tokens are checked in the middleware" in text
        assert f": {said}\n" in text
        assert "{" not in text
    with pytest.raises(Refused, match="no such prompt"):
        render_prompt("begin", {}, lambda: known, prompts)


def test_nothing_is_put_into_a_quoted_memory(memory: Memory) -> None:
    """A memory that holds the name of a prompt's argument is quoted as it is."""
    memory.remember("Auth templates say {area} where the name goes")
    prompts = system_manifest(load_system("siftcoder")).prompts
    known = with_profile(memory, "siftcoder")

    focus = render_prompt("focus", {"area": "auth"}, lambda: known, prompts)

    assert "Auth templates say {area} where the name goes" in focus


def test_what_a_caller_may_not_read_is_stored_all_the_same(memory: Memory) -> None:
    """The answer says so: an error would have it stored again."""
    tool = load_system("abmind").tools["memory_store"]
    given = {"text": "The bonus is paid in May", "memoryType": "fact", "classification": 2,
             "topic": "pay"}  # fmt: skip
    told = tool(Call(with_profile(memory, "abmind").below(1), given)).content

    assert (told["ok"], told["status"], told["topic"]) == (True, "stored", "pay")
    assert memory.get(told["memoryId"]).classification == 2


def test_odd_values_are_refused(asks: Callable[[str], Ask]) -> None:
    """Numbers that are none, and an entity without a name."""
    ask = asks("linksee")
    for number in (float("nan"), float("inf")):
        with pytest.raises(Refused, match="finite"):
            ask("recall", query="deploy", limit=number)
    with pytest.raises(Refused, match="name of the entity"):
        ask("remember", entity_name=" ", entity_kind="person", layer="goal", content="A garden")
