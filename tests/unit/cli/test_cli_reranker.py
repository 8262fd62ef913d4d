"""`--reranker` on the command line: heard, explained, refused, and missed without harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller

ASKED = "who rotates the deploy key?"


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    caller = Caller(tmp_path, monkeypatch, capsys)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home" / "data"))
    caller.remember("The deploy key lives in vault B")
    caller.remember("Mara rotates the deploy key every quarter")
    return caller


def test_a_named_reranker_reads(call: Caller) -> None:
    """Its view is part of the arithmetic, for every command that asks."""
    said = call("recall", ASKED, "--reranker", "overlap", "--explain", "--min-relevance", "0")
    compared = call("compare", ASKED, "--reranker", "overlap", "--json").told

    assert said.code == 0
    assert "weight of the earlier score" in said.out
    assert said.out.index("Mara rotates") < said.out.index("lives in vault")
    for answer in compared.values():
        assert any(why["by"] == "read" for why in answer["items"][0]["evidence"])


def test_a_configured_reranker_reads(call: Caller) -> None:
    """Set once, for all questions; `none` turns it off for one."""
    assert call("config", "set", "reranker", "overlap").code == 0

    assert "weight of the earlier score" in call("recall", ASKED, "--explain").out
    assert "share of" not in call("recall", ASKED, "--explain", "--reranker", "none").out

    call.set("BETHINK_RERANKER", "none")
    assert "share of" not in call("recall", ASKED, "--explain").out


def test_an_unknown_reranker_is_bad_use(call: Caller) -> None:
    """With the names there are."""
    said = call("recall", ASKED, "--reranker", "bm25")

    assert said.code == 2
    assert "there is no reranker 'bm25'" in said.err
    assert "cross-encoder" in said.err


def test_a_reranker_that_is_not_there_costs_nothing_but_its_view(call: Caller) -> None:
    """The answer comes, and says what to do for the rest of it."""
    said = call("recall", ASKED, "--reranker", "cross-encoder", "--json")

    without = call("recall", ASKED, "--reranker", "none", "--json").told

    assert said.code == 0
    assert said.told["order"] == without["order"] != []
    reasons = {row["part"]: row["reason"] for row in said.told["degraded"]}
    assert "sentence-transformers" in reasons["rerank.read"]


def test_why_not_asks_the_reader_too(call: Caller) -> None:
    """The walk that is followed is the one that was taken."""
    other = call.remember("The canteen serves soup on Fridays")

    said = call("why-not", other, ASKED, "--reranker", "overlap")

    assert said.code == 0


def test_a_project_cannot_send_memories_away(call: Caller) -> None:
    """A repository's own file names no server."""
    (call.folder / "bethink.toml").write_text('reranker = "http://elsewhere.invalid/"\n')

    said = call("recall", ASKED)

    assert said.code == 2
    assert "a project cannot set reranker" in said.err


def test_the_remedy_for_no_embedder_changes_it(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an answer without vectors says to do gives the next one vectors."""
    monkeypatch.delenv("BETHINK_EMBEDDER", raising=False)
    assert call("config", "set", "embedder", "none").code == 0
    (degraded,) = call("recall", ASKED, "--json").told["degraded"]
    _, _, remedy = degraded["reason"].partition("(bethink ")

    for step in remedy.removesuffix(")").split(" && bethink "):
        assert call(*step.split()).code == 0

    assert "config set embedder" in remedy
    assert call("recall", ASKED, "--json").told["degraded"] == []
