"""`maintain`, `revoke`, `forget --sweep` and `undo RUN` at the command line."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from caller import Caller

from bethink import Memory
from bethink.config.settings import load_settings
from bethink.testing import FixedClock


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def cold(call: Caller, count: int = 4, **about: object) -> list[str]:
    """Memories that were stored long ago, in the space the commands use."""
    assert call.folder
    clock = FixedClock(datetime.now(UTC) - timedelta(days=300))
    with Memory.open(settings=load_settings(), clock=clock) as memory:
        fields = {"layer": "context", "entities": ["project:Atlas"], "importance": 0.1, **about}
        told = memory.remember_many(
            [{"text": f"Atlas saw {n} boats pass lock {n * 3}", **fields} for n in range(count)]
        )
    call.remember("Something of today")
    return [one.id for one in told]


def test_a_dry_run_shows_and_a_run_does(call: Caller) -> None:
    """The same proposals; the run says how to take it back, and undo takes it back."""
    ids = cold(call)
    words = ("maintain", "--job", "consolidate", "--share", "0.9")

    shown = call(*words, "--dry-run")
    told = call(*words, "--dry-run", "--json").told
    done = call(*words, "--token", told["token"], "--json").told
    listed = call("maintain", "--runs")
    asked = call("undo", done["run"])
    undone = call("undo", done["run"], "--yes")

    assert f"leaves recall  {ids[0]}" in shown.out
    assert "Would retire 4 of 5 memories (limit for this run: 4)" in shown.out
    assert told["proposals"][0]["leaves"] == done["proposals"][0]["leaves"] == ids
    assert told["proposals"][0]["text"] == done["proposals"][0]["text"]
    assert done["run"] in listed.out
    assert "would restore" in asked.out
    assert "use --yes to apply" in asked.err
    assert undone.out.splitlines()[-1] == f"undone {done['run']}"
    assert call("show", ids[0], "--json").told["live_to"] is None
    assert "undone" not in listed.out
    assert call("maintain", "--runs").out.endswith("  undone\n")
    assert call("maintain", "--runs", "--json").told["runs"][0]["undone"] is True


def test_threads_are_taken_back(call: Caller) -> None:
    """The preview says how many, the run that they can be."""
    for text in ("The lock was painted", "The lock was closed"):
        call.remember(text, "--topic", "lock")

    done = call("maintain", "--job", "threads")
    run = done.out.split("bethink undo ")[1].split()[0]

    assert "would take back 1 thread" in call("undo", run).out
    assert len(call("undo", run, "--yes", "--json").told["threads"]) == 1


def test_many_small_things_are_shown_in_brief(call: Caller) -> None:
    """Of hundreds of notes a few are named, of many that one thing hinders, too; all on
    request."""
    assert call.folder
    clock = FixedClock(datetime.now(UTC) - timedelta(days=300))
    with Memory.open(settings=load_settings(), clock=clock) as memory:
        for n in range(14):
            clock.forward(days=1)
            fields = {"layer": "context", "entities": [f"project:Lock{n % 6}"], "importance": 0.1}
            memory.remember(f"Lock {n % 6} saw {n * 7} boats", **fields)
    call.remember("Something of today")

    brief = call("maintain", "--dry-run").out
    full = call("maintain", "--dry-run", "--verbose").out

    assert brief.count("write the note") == 10
    assert "more; --verbose shows all" in brief
    assert full.count("write the note") > 14
    assert len(full.splitlines()) > len(brief.splitlines())


def test_maintain_can_undo_as_well(call: Caller) -> None:
    """As the other name of the same."""
    ids = cold(call)
    run = call("maintain", "--job", "consolidate", "--share", "0.9", "--json").told["run"]

    undone = call("undo", run, "--yes", "--json").told

    assert (undone["done"], sorted(undone["restored"])) == (True, sorted(ids))


def test_where_nothing_is_ripe_it_says_so(call: Caller) -> None:
    """No run, no undo, exit code 0."""
    call.remember("Something of today")

    said = call("maintain", "--job", "consolidate", "--job", "duplicates")

    assert (said.code, said.out) == (0, "nothing to do\n")
    assert call("maintain", "--runs").err == "no run of maintenance has changed anything yet\n"
    assert call("maintain", "--runs", "--json").told == {"runs": []}


def test_mistakes_are_named(call: Caller) -> None:
    """A job, a run, a token that is none."""
    cold(call)
    assert "no job 'tidy'" in call("maintain", "--job", "tidy").err
    assert "no run 'run-x'" in call("undo", "run-x").err
    wrong = call("maintain", "--job", "consolidate", "--share", "0.9", "--token", "x")
    assert wrong.code == 2
    assert "out of date" in wrong.err


def test_a_sweep_needs_two_steps(call: Caller) -> None:
    """First what would go, with a token; then with that token, or --yes; never by chance."""
    ids = cold(call, layer=None)
    words = ("forget", "--sweep", "--share", "0.9")

    shown = call(*words)
    token = call(*words, "--dry-run", "--json").told["token"]
    still = call("show", ids[0], "--json").told["live_to"]
    stale = call(*words, "--token", "0" * 12)
    done = call(*words, "--token", token)

    assert "risk" in shown.out
    assert "Atlas saw 0 boats pass lock 0" in shown.out
    assert still is None
    assert stale.code == 2
    assert "forgot 4 memories" in done.out
    assert call("show", ids[0], "--json").told["live_to"] is not None
    assert call(*words, "--yes", "--json").told["proposals"] == []


def test_a_sweep_takes_no_ids_and_never_erases(call: Caller) -> None:
    """And a forget without an id is no sweep."""
    one = call.remember("Something of today")

    assert call("forget", "--sweep", one).code == 2
    assert call("forget", "--sweep", "--erase").code == 2
    assert call("forget").code == 2


def test_a_source_is_taken_back(call: Caller) -> None:
    """After it was shown what that means; the receipt lists everything."""
    bad = call.remember("A page says pumps leak", "--source", "page")
    good = call.remember("The blue pump hums")

    shown = call("revoke", "--source", "page")
    done = call("revoke", "--source", "page", "--yes", "--json").told
    found = call("recall", "pumps leak", "--json").out

    assert f"would quarantine {bad}" in shown.out
    assert "use --yes to apply" in shown.err
    assert (done["ids"], done["preview"]) == ([bad], False)
    assert bad not in found
    assert call("show", good, "--json").told["status"] == "active"
    assert call("undo", done["run"], "--yes").code == 0
    assert call("show", bad, "--json").told["status"] == "active"
    erased = call("revoke", "--source", "page", "--erase", "--yes").out
    assert "erased 1 memory" in erased
    assert call("revoke", "--source", "page").code == 1


def test_an_erase_shows_what_goes_with_it(call: Caller) -> None:
    """What was made from it, by whomever."""
    one = call.remember("The zebra sings", "--level", "raw")
    child = call.remember("There was a song", "--parent", one)

    shown = call("forget", one, "--erase")
    done = call("forget", one, "--erase", "--yes", "--json").told

    assert f"would erase {child}  derived from it" in shown.out
    assert done["derived"] == [{"id": child}]
    assert set(done["receipt"]["ids"]) == {one, child}
