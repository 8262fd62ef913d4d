"""Bands, layers, entities, the drawing of a profile: what the command line makes of them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from caller import Caller

from bethink.cli.output import Printer, display_width
from bethink.cli.profiles import print_pipeline
from bethink.retrieval.profile import load_profile, profile_names
from rows import each_row


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_a_band_filters_recall_and_lists(call: Caller) -> None:
    """What is much recalled is hot; another band finds it no more, and a stranger is refused."""
    call("remember", "The deploy key lives in vault B")
    for _ in range(12):
        call("recall", "deploy key", "--track")

    assert call("recall", "deploy key", "--band", "hot").code == 0
    assert call("recall", "deploy key", "--band", "frozen").code == 1
    assert call("list", "--band", "hot").code == 0
    assert call("list", "--band", "cold", "--band", "warm").code == 1
    assert "allowed: hot, warm, cold, frozen" in call("recall", "x", "--band", "tepid").err


def test_layers_go_by_aliases(call: Caller) -> None:
    """Stored under one, found under another; a stranger is answered with all of them."""
    call("remember", "We chose PostgreSQL for billing", "--layer", "decisions")

    (found,) = call("recall", "PostgreSQL", "--layer", "insight", "--json").told["items"]
    assert found["layer"] == "learning"
    for words in (("remember", "something"), ("recall", "PostgreSQL")):
        refused = call(*words, "--layer", "vibes")
        assert refused.code == 2
        assert "learning (or decision, decisions" in refused.err


def test_reasons_are_told(call: Caller) -> None:
    """What speaks for a memory stands beside it, all reasons under --explain."""
    call("remember", "Never restart the importer by hand", "--layer", "caveat", "--pin")

    assert "pinned, caveat_protected" in call("recall", "restart the importer").out
    explained = call("recall", "restart the importer", "--explain", "--profile", "linksee").out
    assert "match reasons: content_match_dual, content_substring, pinned" in explained
    assert "composite.importance 0.90 × 0.15" in explained


def test_entities_are_listed_with_what_is_known(call: Caller) -> None:
    """Momentum and pace, memories by layer, pins; by kind, by number, by page."""
    call("remember", "Priya leads the review", "--layer", "goal", "--pin")
    call("remember", "Priya met Tomasz")

    shown = call("entities", "--kind", "person")
    assert "goal 1, pinned 1" in shown.out
    (priya,) = call("entities", "--min-memories", "2", "--json").told
    assert (priya["name"], priya["mentions"], priya["pace"]) == ("Priya", 2, "active")
    assert (priya["layers"], priya["pinned"]) == ({"goal": 1}, 1)
    assert (
        "more: --offset 1"
        in call("entities", "--limit", "1").out + call("entities", "--limit", "1").err
    )
    assert call("entities", "--kind", "file").code == 1


@each_row("name", sorted(profile_names()))
def test_every_profile_is_drawn_within_eighty_columns(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All slots in the order of the walk, every part with its settings, without colour too."""
    monkeypatch.setenv("COLUMNS", "80")
    stream = io.StringIO()
    print_pipeline(Printer(stream, terminal=True), load_profile(name))
    drawn = stream.getvalue()

    lines = drawn.splitlines()
    assert max(map(display_width, lines)) <= 80
    slots = [line.split()[1] for line in lines if line.startswith("     ├─ ")]
    assert slots == [
        "channels", "fuse", "expand", "adjust", "rerank", "diversify", "gate", "budget",
        "assemble", "track", "text",
    ]  # fmt: skip
    assert "\x1b" not in drawn
    assert all(channel.name in drawn for channel in load_profile(name).channels)


def test_a_part_under_another_name_says_what_it_is(call: Caller) -> None:
    """In the picture and in JSON."""
    folder = call.folder / ".bethink" / "profiles"
    folder.mkdir(parents=True)
    (folder / "own.toml").write_text("[[channels]]\nuse = 'lexical'\nname = 'words'\n")

    assert "words        use=lexical  depth=50" in call("profiles", "show", "own").out
    walk = call("profiles", "show", "own", "--json").told["walk"]
    assert walk[0]["parts"][0]["use"] == "lexical"
    assert [part["slot"] for part in walk][-3:] == ["assemble", "track", "text"]
