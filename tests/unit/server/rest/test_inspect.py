"""What the inspector reads: answers with everything that led to them, neighbours, times, checks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from bethink import Memory
from bethink.model import Draft
from server_app import Callers, make_guard, make_test_app, talk

TEXTS = (
    "The staging database is called heron, says Mara",
    "Heron is backed up at night",
    "Releases are cut on Tuesdays",
)


@pytest.fixture
def ids(memory: Memory) -> list[str]:
    return [memory.remember(text).id for text in TEXTS]


def _asked(memory: Memory, folder: Path, *calls: tuple[str, str, dict[str, Any]]) -> list[Any]:
    """The answers of several requests, with the rights of an administrator."""
    callers = Callers(folder)

    async def conversation(client: httpx.AsyncClient) -> list[Any]:
        client.headers.update(callers.headers["admin"])
        made = []
        for method, path, told in calls:
            given: Any = {"params": told} if method == "GET" else {"json": told}
            answer = await client.request(method, path, **given)
            assert answer.status_code == 200, answer.text
            made.append(answer.json())
        return made

    return list(talk(make_test_app(memory, make_guard(callers)), conversation))


def test_the_evidence_of_every_hit_adds_up_to_its_score(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """Replaying it gives the score, in every hit."""
    (answer,) = _asked(memory, tmp_path, ("POST", "/v1/inspect", {"query": "staging heron"}))

    assert {hit["id"] for hit in answer["hits"]} >= {ids[0]}
    for hit in answer["hits"]:
        score = 0.0
        for reason in hit["evidence"]:
            if reason["op"] == "add":
                score += reason["value"]
            elif reason["op"] == "times":
                score *= reason["value"]
            elif reason["op"] == "set":
                score = reason["value"]
        assert score == pytest.approx(hit["score"])


def test_the_context_is_what_an_agent_gets(memory: Memory, ids: list[str], tmp_path: Path) -> None:
    """The same memories in the same order and as many tokens as `recall` answers with."""
    asked = {"query": "heron", "max_tokens": 100}
    inspected, recalled = _asked(
        memory, tmp_path, ("POST", "/v1/inspect", asked), ("POST", "/v1/recall", asked)
    )

    shown = [hit["id"] for hit in inspected["hits"] if hit["in_context"]]
    assert shown == [entry["id"] for entry in recalled["memories"]]
    assert inspected["context"]["tokens"] == recalled["tokens"]
    assert all(entry["text"] in inspected["context"]["text"] for entry in recalled["memories"])


def test_matching_words_are_those_of_the_index(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """As they are written in the memory, also in another form, and no stop words."""
    (answer,) = _asked(memory, tmp_path, ("POST", "/v1/inspect", {"query": "is a release cut?"}))

    assert next(hit["words"] for hit in answer["hits"] if hit["id"] == ids[2]) == [
        "Releases",
        "cut",
    ]


def test_a_memory_that_is_not_in_the_answer_has_its_reason(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """With the same limits as the answer itself."""
    found, missed = _asked(
        memory,
        tmp_path,
        ("POST", "/v1/inspect", {"query": "staging database", "k": 1, "id": ids[0]}),
        ("POST", "/v1/inspect", {"query": "staging database", "k": 1, "id": ids[1]}),
    )

    assert found["why_not"]["returned"]
    assert not missed["why_not"]["returned"]
    assert missed["why_not"]["remedy"]


def test_inspecting_records_no_use(memory: Memory, ids: list[str], tmp_path: Path) -> None:
    """Looking is not using."""
    before, _, after = _asked(
        memory,
        tmp_path,
        ("GET", f"/v1/memories/{ids[0]}/usage", {}),
        ("POST", "/v1/inspect", {"query": "staging heron"}),
        ("GET", f"/v1/memories/{ids[0]}/usage", {}),
    )

    assert before == after
    assert after["recalls"] == 0


def test_profiles_are_listed_with_their_parts(memory: Memory, tmp_path: Path) -> None:
    """One of them is the default."""
    (answer,) = _asked(memory, tmp_path, ("GET", "/v1/profiles", {}))

    assert [one["name"] for one in answer["profiles"] if one["default"]] == ["default"]
    assert all(one["parts"] for one in answer["profiles"])


def test_a_neighbourhood_has_links_and_mentions(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """From a memory and from an entity, and no more nodes than asked for."""
    memory.link(ids[0], "implies", ids[1])
    around, of_mara, small = _asked(
        memory,
        tmp_path,
        ("GET", "/v1/graph", {"node": ids[0]}),
        ("GET", "/v1/graph", {"node": "person:mara"}),
        ("GET", "/v1/graph", {"node": ids[0], "limit": 2}),
    )

    types = {(edge["from"], edge["to"]): edge["type"] for edge in around["edges"]}
    assert types[ids[0], ids[1]] == "implies"
    assert types[ids[0], "person:mara"] == "mentions"
    assert ids[0] in {node["id"] for node in of_mara["nodes"]}
    assert (len(small["nodes"]), small["more"]) == (2, True)


def test_a_frequent_entity_has_as_many_neighbours_as_are_asked_for(
    memory: Memory, tmp_path: Path
) -> None:
    """A quarter of all nodes may be neighbours of the start; what is left out is said."""
    memory.remember_each(
        [Draft(f"Crate {n} is aboard", entities=("other:heron",), force=True) for n in range(60)]
    )
    asked = {"node": "other:heron", "depth": 1}
    some, everything = _asked(
        memory,
        tmp_path,
        ("GET", "/v1/graph", {**asked, "limit": 80}),
        ("GET", "/v1/graph", {**asked, "limit": 300}),
    )

    assert (len(some["nodes"]), some["more"]) == (21, True)
    assert (len(everything["nodes"]), everything["more"]) == (61, False)


def test_no_neighbour_is_above_the_ceiling(memory: Memory, ids: list[str], tmp_path: Path) -> None:
    """Neither as a node nor as an edge."""
    secret = memory.remember("Mara keeps the vault code of heron", classification=3).id
    memory.link(ids[0], "implies", secret)
    (answer,) = _asked(memory, tmp_path, ("GET", "/v1/graph", {"node": ids[0], "depth": 4}))

    assert secret not in str(answer)


def test_memories_are_counted_by_day_and_conversation(memory: Memory, tmp_path: Path) -> None:
    """With the first and the last moment of a conversation."""
    start = datetime(2026, 5, 1, 12, tzinfo=UTC)
    for place in range(3):
        memory.remember(
            f"Turn {place} about the ferry",
            session="talk",
            level="raw",
            occurred_at=start + timedelta(days=place // 2),
        )
    (answer,) = _asked(memory, tmp_path, ("GET", "/v1/times", {}))

    assert [(day["day"], day["count"]) for day in answer["days"]] == [
        ("2026-05-01", 2),
        ("2026-05-02", 1),
    ]
    assert [(one["session"], one["count"]) for one in answer["sessions"]] == [("talk", 3)]
    assert answer["counted"] == 3


def test_a_page_begins_anywhere_and_says_how_many_there_are(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """With an offset, without the pages before it; the total is that of the filters."""
    secret = memory.remember("The fourth one is secret", classification=3).id
    memory.update(ids[1], kind="decision")
    whole, last, none, some = _asked(
        memory,
        tmp_path,
        ("GET", "/v1/memories", {"with_total": True}),
        ("GET", "/v1/memories", {"offset": 2, "limit": 2}),
        ("GET", "/v1/memories", {"offset": 10**6, "with_total": True}),
        ("GET", "/v1/memories", {"kind": "decision", "with_total": True}),
    )

    shown = [one["id"] for one in whole["memories"]]
    assert secret not in shown
    assert (whole["total"], len(shown)) == (3, 3)
    assert [one["id"] for one in last["memories"]] == shown[2:]
    assert (last["total"], last["cursor"]) == (None, None)
    assert (none["memories"], none["total"], some["total"]) == ([], 3, 1)


def test_a_check_that_fails_names_nothing(
    memory: Memory, ids: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding may hold what the caller must not know of: it is told on the server."""
    from bethink.ports.values import CheckResult

    told = [
        CheckResult("file", ok=True, detail="fine"),
        CheckResult("words", ok=False, detail="x9"),
    ]
    monkeypatch.setattr(type(memory), "doctor", lambda _: told)
    (answer,) = _asked(memory, tmp_path, ("GET", "/v1/checks", {}))

    assert not answer["ok"]
    assert "x9" not in str(answer)
    assert answer["checks"][0]["detail"] == "fine"


def test_a_listing_cuts_texts_on_request(memory: Memory, ids: list[str], tmp_path: Path) -> None:
    """For tables of many rows."""
    (answer,) = _asked(memory, tmp_path, ("GET", "/v1/memories", {"preview": 20}))

    assert len(answer["memories"]) == 3
    assert all(len(entry["text"]) <= 20 for entry in answer["memories"])


def test_a_review_merges_into_a_stored_memory_and_is_taken_back(
    memory: Memory, ids: list[str], tmp_path: Path
) -> None:
    """Undone memory by memory: what was merged waits again, the stored one is as it was."""
    drafts = [Draft(f"Heron has {n} disks", source_class="web") for n in (2, 3)]
    waits = [one.id for one in memory.remember_many(drafts, review=True)]
    merge = {"ids": waits, "decision": "merge", "into": ids[1]}
    undo = {"ids": [*waits, ids[1]], "decision": "undo"}

    merged, empty, undone, inbox = _asked(
        memory, tmp_path, ("POST", "/v1/inbox", merge), ("GET", "/v1/inbox", {}),
        ("POST", "/v1/inbox", undo), ("GET", "/v1/inbox", {"source": "web"}),
    )  # fmt: skip

    assert (merged["ids"], undone["ids"]) == ([ids[1]], undo["ids"])
    assert (empty["total"], [one["id"] for one in inbox["waiting"]]) == (0, waits)
    assert memory.get(ids[1]).text == TEXTS[1]
