"""The trace answers each question that Memind's page asks of one, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bethink.cli import main
from rows import each_row

MEMORIES = [
    ("The deploy key for production lives in vault B", "--occurred-at", "2026-03-20"),
    ("The staging deploy key is on the team laptop", "--occurred-at", "2026-03-25"),
    ("Nordwind asked for the invoices in German", "--entity", "Nordwind"),
    ("The visit of Nordwind is on the twelfth", "--entity", "Nordwind"),
    ("Lunch is at noon",),
]


class Terminal:
    """Commands in an empty folder, with a memory of a few notes."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capsys: Any) -> None:
        patch.chdir(folder)
        for name in ("HOME", "XDG_CONFIG_HOME", "BETHINK_DATA_DIR"):
            patch.setenv(name, str(folder / name.lower()))
        self._capsys = capsys
        for words in MEMORIES:
            self("remember", *words)

    def __call__(self, *words: str) -> Any:
        main((*words, "--json"))
        return json.loads(self._capsys.readouterr().out)

    def recall(self, text: str, *words: str) -> dict[str, Any]:
        now = ("--now", "2026-04-01T09:00:00Z")
        answer: dict[str, Any] = self(
            "recall", text, "--profile", "memind-simple", "--trace", *now, *words
        )
        return answer


@pytest.fixture
def terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Terminal:
    return Terminal(tmp_path, monkeypatch, capsys)


def steps(answer: dict[str, Any]) -> dict[str, Any]:
    return {step["step"]: step for step in answer["trace"]["steps"]}


def test_was_simple_or_deep_used(terminal: Terminal) -> None:
    """The strategy, and the profile by name."""
    answer = terminal.recall("where is the deploy key?")

    assert answer["strategy"] == answer["trace"]["strategy"] == "simple"
    assert answer["trace"]["profile"] == "memind-simple"


def test_which_channels_ran_and_what_did_keyword_search_return(terminal: Terminal) -> None:
    """Each is a step with its status, its candidates and how long it took."""
    told = steps(terminal.recall("where is the deploy key?"))

    assert [name for name in told if name.startswith("channel.")] == [
        "channel.insight", "channel.vector", "channel.keyword", "channel.temporal"
    ]  # fmt: skip
    keyword = told["channel.keyword"]
    assert (keyword["status"], keyword["left"]) == ("ok", 2)
    assert [one["text"][:10] for one in keyword["candidates"]] == ["The deploy", "The stagin"]
    assert keyword["milliseconds"] >= 0


def test_did_temporal_retrieval_activate(terminal: Terminal) -> None:
    """Skipped with the reason, or with the time it understood."""
    without = steps(terminal.recall("where is the deploy key?"))["channel.temporal"]
    within = steps(terminal.recall("what happened last week?"))["channel.temporal"]

    assert (without["status"], without["note"]) == ("skipped", "the question names no time")
    assert within["status"] == "ok"
    assert "last week: from 2026-03-23" in within["note"]
    assert within["left"] == 1


def test_did_graph_or_thread_assist_change_the_result(terminal: Terminal) -> None:
    """How many each admitted and displaced; an assist that is off says so."""
    told = steps(terminal.recall("in which language does Nordwind want invoices?"))

    assert "admitted" in told["expand.graph_assist"]["note"]
    assert told["expand.thread_assist"]["status"] == "skipped"
    assert told["expand.thread_assist"]["note"] == "disabled in this profile"
    assert told["expand.graph_assist"]["came_in"] <= told["expand.graph_assist"]["left"]


def test_did_deep_expand_the_query_and_was_reranking_applied(terminal: Terminal) -> None:
    """There is no such step, unless somebody reads."""
    plain = steps(terminal.recall("where is the deploy key?"))
    read = steps(terminal.recall("where is the deploy key?", "--reranker", "overlap"))

    assert not any("rerank" in name for name in plain)
    assert any("rerank" in name for name in read)


def test_why_did_an_item_appear(terminal: Terminal) -> None:
    """Its evidence replays its score, and every step that held it shows its place."""
    answer = terminal.recall("where is the deploy key?", "--trace-candidates", "all")

    hit = answer["items"][0]
    score = 0.0
    for reason in hit["evidence"]:
        score = {
            "add": score + reason["value"],
            "times": score * reason["value"],
            "set": reason["value"],
            "seen": score,
        }[reason["op"]]
    assert score == hit["score"]
    held = [
        step["step"]
        for step in answer["trace"]["steps"]
        if any(one["id"] == hit["id"] for one in step["candidates"])
    ]
    assert {"channel.vector", "channel.keyword", "fuse", "gate.elbow", "budget"} <= set(held)
    assert hit["channels"].keys() == {"vector", "keyword"}


def test_the_trace_sums_up(terminal: Terminal) -> None:
    """When it ran, what was merged, what came of it, and that nothing is missing."""
    trace = terminal.recall("where is the deploy key?")["trace"]

    assert trace["id"]
    assert trace["started_at"] <= trace["completed_at"]
    assert trace["merge"]["channels"] == 2
    assert trace["merge"]["came_in"] - trace["merge"]["duplicates"] == trace["merge"]["left"]
    assert trace["final"]["status"] == "found"
    assert trace["final"]["items"] >= 1
    assert (trace["truncated"], trace["cached"]) == (False, False)


def test_the_number_of_candidates_is_the_callers(terminal: Terminal) -> None:
    """And what is left out is said."""
    trace = terminal.recall("where is the deploy key?", "--trace-candidates", "1")["trace"]

    assert trace["truncated"]
    assert max(len(step["candidates"]) for step in trace["steps"]) == 1


@each_row("wrong", ["-1", "many", "1.5", ""])
def test_a_wrong_number_is_bad_use(
    terminal: Terminal, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a message that says what is allowed."""
    assert main(("recall", "deploy key", "--trace-candidates", wrong)) == 2
    assert "neither a number nor all" in " ".join(capsys.readouterr().err.split())
