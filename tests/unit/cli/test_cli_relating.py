"""`link`, `unlink`, `links`, and what `recall` shows of them, of episodes and as text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


@pytest.fixture
def pair(call: Caller) -> tuple[str, str]:
    """Two memories that cannot both be right."""
    told = ("Mara writes the release notes", "The release train leaves from main")
    new, old = (call("remember", text, "-q", "--entity", "module:ci").out.strip() for text in told)
    return new, old


def test_links_are_made_shown_and_taken_back(call: Caller, pair: tuple[str, str]) -> None:
    """For people and as JSON."""
    new, old = pair
    made = call("link", new, "contradicts", old, "--weight", "0.9")
    shown, from_other = call("links", new), call("links", old)
    data = json.loads(call("links", old, "--json").out)
    gone = json.loads(call("unlink", new, "contradicts", old, "--json").out)

    assert made.out == f"linked {new} contradicts {old}\n"
    assert f"→  contradicts    0.90  {old}  The release train leaves from main" in shown.out
    assert f"←  contradicts    0.90  {new}" in from_other.out
    link = {"from": new, "type": "contradicts", "to": old, "weight": 0.9, "context": None}
    assert data == {"id": old, "links": [link]}
    assert gone["unlinked"]["from"] == new
    assert call("links", new).out == "0 links\n"
    assert call("unlink", new, "contradicts", old).code == 1


def test_a_wrong_link_is_bad_use(call: Caller, pair: tuple[str, str]) -> None:
    """With the relations there are."""
    said = call("link", pair[0], "likes", pair[1])

    assert said.code == 2
    assert "there is no relation 'likes'" in said.err
    assert "contradicts" in said.err


def test_relations_stand_under_a_hit(call: Caller, pair: tuple[str, str]) -> None:
    """From both sides, and as data."""
    new, old = pair
    call("link", new, "supersedes", old)
    asked = ("recall", "release notes and release train", "--include-superseded")
    said = call(*asked)
    data = json.loads(call(*asked, "--json").out)

    assert f"→ supersedes [{old}]: The release train leaves from main" in said.out
    assert f"→ SUPERSEDED BY [{new}]: Mara writes the release notes" in said.out
    assert {"item": new, "type": "supersedes", "other": old,
            "text": "The release train leaves from main", "inbound": False} in data["relations"]  # fmt: skip


def test_recall_as_text_has_the_profiles_sections(call: Caller, pair: tuple[str, str]) -> None:
    """The profile's own headings."""
    call("remember", "Ana asked about the release train", "--level", "raw")
    said = call("recall", "release notes and release train", "--profile", "remind", "--text")
    without = call("recall", "release notes and release train", "--profile", "remind", "--text",
                   "--episode-k", "0")  # fmt: skip

    assert said.out.startswith("RELEVANT EPISODES:\n• [")
    assert "\n\nRELEVANT MEMORY:\n[" in said.out
    assert f"\n[{pair[1]}] The release train leaves from main (" in said.out
    assert "Contradictions: (none)" in said.out
    assert "EPISODES" not in without.out


def test_an_entity_alone_is_a_question(call: Caller, pair: tuple[str, str]) -> None:
    """Newest first; nothing at all is bad use."""
    new, old = pair
    said = call("recall", "--entity", "module:ci", "--json")
    nothing = call("recall")

    assert json.loads(said.out)["order"] == [old, new]
    assert (nothing.code, nothing.out) == (2, "")
    assert "the question is empty" in nothing.err


def test_the_trace_says_which_index_answered(call: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """And so does the doctor."""
    monkeypatch.setenv("BETHINK_EMBEDDER", "encoder")
    call("remember", "The release train leaves from main")
    said = call("recall", "release notes and release train", "--profile", "remind", "--trace")
    doctor = json.loads(call("doctor", "--json").out)

    assert "bits scan, " in said.out
    assert doctor["in_use"]["vector_path"] == "bits scan"
    assert doctor["ok"] is True


def test_links_keep_the_words_of_secrets(call: Caller) -> None:
    """A neighbour above the ceiling is there by its id, not by its text."""
    secret = call.remember("Halcyon is bought in May", "--classification", "3")
    shown = call.remember("The lawyers meet on Monday")
    call("link", shown, "implies", secret)

    said = call("links", shown)
    call.set("BETHINK_MAX_CLASSIFICATION", "3")
    cleared = call("links", shown)

    assert secret in said.out
    assert "Halcyon" not in said.out
    assert "Halcyon" in cleared.out
