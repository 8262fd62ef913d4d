"""`boost` and `demote`, and asking by tier and by what is going on."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_a_memory_is_judged_by_steps(call: Caller) -> None:
    """One at a time unless told, as text and as JSON, several at once."""
    one = call.remember("The pump in cellar nine leaks")
    other = call.remember("Boats are counted at noon")

    first = call("boost", one)
    both = call("demote", one, other, "--by", "3", "--json")
    quiet = call("boost", one, "-q")

    assert "relevance +1" in first.out
    assert [told["relevance"] for told in both.told] == [-2, -3]
    assert quiet.out.strip() == one
    assert call("show", one, "--json").told["relevance"] == -1


def test_nothing_else_can_be_judged(call: Caller) -> None:
    """Strangers, notes, and steps that are none."""
    assert call("boost", "nobodyknowsthis1").code == 1
    assert call("boost", "note:daily_2026-01-05#1").code == 1
    assert call("boost", "x", "--by", "0").code == 2
    assert call("demote").code == 2


def test_the_pool_is_the_tier(call: Caller) -> None:
    """--pool core asks for what was felt strongly or filed so."""
    call.remember("The pump burst and flooded the archive", "--emotion", "-5")
    call.remember("The pump is green")

    core = call("recall", "pump", "--profile", "abmind", "--pool", "core", "--json").told
    general = call("recall", "pump", "--profile", "abmind", "--tier", "general", "--json").told

    assert [hit["text"] for hit in core["items"]] == ["The pump burst and flooded the archive"]
    assert [hit["text"] for hit in general["items"]] == ["The pump is green"]


def test_timelines_and_interference_are_told(call: Caller) -> None:
    """Below the hits, by the memories' ids."""
    early = ("--topic", "ops", "--entity", "Mara", "--occurred-at", "2026-01-01")
    one = call.remember("Mara keeps the gateway logs for thirty days", *early)
    other = call.remember("Mara keeps the gateway logs for ninety days now", *early[:4])

    said = call("recall", "how long are gateway logs kept?", "--profile", "abmind").out

    assert f"timeline: mara in ops: {one} → {other}" in said
    assert "have similar but different texts" in said


def test_limit_and_context_are_options(call: Caller) -> None:
    """The limit is -k by another name; the context is a JSON object with known fields."""
    for number in range(4):
        call.remember(f"Pump {number} leaks", "--topic", "ops")
    asked = ("recall", "pump leaks", "--profile", "abmind", "--json")

    answer = call(*asked, "--limit", "2", "--context", '{"topic": "ops", "hour": 3}').told

    assert len(answer["items"]) == 2
    assert any(one["why"] == "topic ops" for one in answer["items"][0]["evidence"])
    assert call(*asked, "--context", '{"moon": 1}').code == 2
    assert call(*asked, "--context", "[]").code == 2
