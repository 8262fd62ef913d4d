"""`threads`, `thread`, `insights` and the year of the demo, on the command line."""

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


CASE = (
    "FW-12: the gate broke in the storm",
    "FW-12 is blocked by a missing crane",
    "FW-12 is fixed: the bolt is made of brass",
)


def tell_a_case(call: Caller) -> list[str]:
    ids = [call.remember(text) for text in CASE]
    assert call("maintain", "--job", "threads").code == 0
    return ids


def test_an_empty_memory_says_how_threads_are_found(call: Caller) -> None:
    """On stderr, with the code for nothing found."""
    said = call("threads")

    assert (said.code, said.out) == (1, "")
    assert "bethink maintain --job threads" in said.err


def test_threads_are_listed_and_filtered(call: Caller) -> None:
    """By how they stand; a strange state is answered with all that there are."""
    tell_a_case(call)

    (thread,) = call("threads", "--json").told

    assert thread["headline"] == "FW-12: the gate broke in the storm"
    assert (thread["state"], thread["lifecycle"]) == ("resolved", "active")
    shown = call("threads")
    assert "FW-12" in shown.out
    assert "active, resolved" in shown.out
    assert call("threads", "--state", "resolved").code == 0
    assert call("threads", "--state", "blocked").code == 1
    assert call("threads", "--lifecycle", "closed").code == 1
    assert "uncertain" in call("threads", "--state", "odd").err


def test_a_thread_is_a_timeline(call: Caller) -> None:
    """Oldest first, with roles and what was superseded marked as such."""
    ids = tell_a_case(call)
    (thread,) = call("threads", "--json").told

    lines = call("thread", thread["id"]).out.splitlines()
    told = call("thread", thread["id"], "--json").told

    assert lines[0].startswith("FW-12")
    assert ["setback" in lines[1], "blocker added" in lines[2]] == [True, True]
    assert "resolution declared" in lines[3]
    assert "trigger" in lines[1]
    assert "outcome" in lines[3]
    assert [event["item"] for event in told["events"]] == ids
    assert {member["text"] for member in told["members"]} == set(CASE)


def test_a_thread_shows_what_was_superseded_as_such(call: Caller) -> None:
    """It is how things went; recall knows what is so now."""
    old = call.remember("The deploy key is in vault A", "--topic", "keys")
    new = call.remember("The deploy key moved to vault B", "--topic", "keys")
    call("link", new, "supersedes", old)
    call("maintain", "--job", "threads")
    (thread,) = call("threads", "--json").told

    shown = call("thread", thread["id"]).out

    assert "vault A (superseded)" in shown
    assert "vault B" in shown


def test_a_thread_hides_what_may_not_be_seen(call: Caller) -> None:
    """A secret member is not counted, and has neither a line nor a text."""
    tell_a_case(call)
    call.remember("FW-12: the gate was bribed open", "--classification", "3")
    call("maintain", "--job", "threads")
    (thread,) = call("threads", "--json").told

    shown = call("thread", thread["id"]).out
    assert len(shown.splitlines()) == 1 + len(CASE)
    assert "bribed" not in shown
    assert "bribed" not in call("thread", thread["id"], "--json").out


def test_an_unknown_thread_is_not_found(call: Caller) -> None:
    """With its name in the message."""
    said = call("thread", "thread-0000")

    assert said.code == 1
    assert "thread-0000" in said.err


def fill(call: Caller) -> None:
    lines = [
        json.dumps({"text": f"{topic} number {n} has {n * 3} boxes", "topic": topic})
        for topic in ("lock", "weir")
        for n in range(35)
    ]
    said = call("import", "-", stdin="\n".join(lines).encode())
    assert said.code == 0, said


def test_insights_are_built_and_drawn(call: Caller) -> None:
    """Nothing at first; with --build up to the root, with lines from parent to child."""
    fill(call)
    before = call("insights")

    drawn = call("insights", "--build").out.splitlines()

    assert before.code == 1
    assert "--build" in before.err
    assert drawn[0].startswith("What is known here  root of")
    assert [line[:4] for line in drawn[1:] if line[:4] in ("├── ", "└── ")] == ["├── ", "└── "]
    assert sum("leaf of" in line for line in drawn) == 4
    assert not any("stale" in line for line in drawn)


def test_one_insight_shows_its_points_and_what_bears_them_out(call: Caller) -> None:
    """By its id or a part of it; as JSON with the same."""
    fill(call)
    call("insights", "--build")
    (root,) = call("insights", "--json").told
    leaf = root["below"][0]["below"][0]

    shown = call("insights", leaf["id"]).out
    (told,) = call("insights", leaf["id"], "--json").told

    assert shown.splitlines()[0].endswith("leaf, sentences chosen by rules")
    assert shown.count("• ") == len(told["points"]) == 5
    for point in told["points"]:
        assert point["text"] in " ".join(shown.split())
        assert point["sources"]


def test_an_insight_whose_memories_changed_is_stale(call: Caller) -> None:
    """The drawing says so until the next build."""
    fill(call)
    call("insights", "--build")
    item = call("list", "--level", "item", "--topic", "lock", "--json").told[0]
    assert call("update", item["id"], "lock number 99 is new").code == 0

    stale = call("insights").out
    fresh = call("insights", "--build").out

    assert stale.count("stale") == 1
    assert "stale" not in fresh


def test_a_memory_that_is_no_insight_has_no_tree(call: Caller) -> None:
    """Named instead of an insight, it is said to be none."""
    fill(call)
    item = call.remember("The heron is back")
    answer = call("insights", item)

    assert answer.code == 1
    assert f"{item} is not an insight" in answer.err


def test_the_kept_demo_has_its_own_name(call: Caller) -> None:
    """A space that is there already is left alone."""
    assert call("demo", "--keep", "harbour").code == 0

    again = call("demo", "--keep", "harbour")
    told = call("--space", "harbour", "list", "--json").told

    assert again.code == 2
    assert "harbour" in again.err
    assert told
