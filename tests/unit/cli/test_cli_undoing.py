"""`undo` and `why` at the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_undo_shows_first_and_does_it_when_told(call: Caller) -> None:
    """Where nobody can answer, nothing happens without --yes."""
    one = call.remember("The limit is five")
    call("update", one, "The limit is ten")

    shown = call("undo")
    text = call("show", one, "--json").told["text"]
    done = call("undo", "--yes")

    assert "would: restore the previous revision" in shown.out
    assert "use --yes to apply" in shown.err
    assert text == "The limit is ten"
    assert done.out.splitlines()[-1] == f"undone {one}  The limit is five"
    assert call("undo", one, "--yes", "--json").told["done"] is True
    assert call("show", one, "--json").told["text"] == "The limit is ten"


def test_undo_after_an_undone_import_takes_back_what_was_before_it(
    call: Caller, tmp_path: Path
) -> None:
    """It does not bring back a part of the import, and does what it announces."""
    before = call.remember("The limit is five")
    notes = tmp_path / "notes.txt"
    notes.write_text("The office is in Porto.\n\nAna runs the night shift.\n")
    call("import", str(notes))

    assert "undone run-" in call("undo", "--yes").out
    done = call("undo", "--yes")

    assert "would: forget it" in done.out
    assert done.out.splitlines()[-1] == f"undone {before}  The limit is five"
    assert call("list", "--json").told == []


def test_nothing_to_undo(call: Caller) -> None:
    """A sentence and exit code 2."""
    refused = call("undo")

    assert (refused.code, refused.out) == (2, "")
    assert "no change by" in refused.err


def test_why_draws_where_a_memory_comes_from(call: Caller) -> None:
    """As a tree for people, as edges for programs."""
    source = call.remember("The interview notes of Monday", "--level", "raw")
    child = call.remember("Customers want dark mode", "--parent", source)

    drawn = call("why", child)
    told = call("why", child, "--json").told

    assert drawn.code == 0
    assert f"└── derives_from  {source}" in drawn.out
    assert [(edge["type"], edge["to"]["id"]) for edge in told["edges"]] == [
        ("derives_from", source)
    ]
    alone = call("why", source)
    assert alone.code == 1
    assert "no sources are recorded for this memory" in alone.err


def test_why_says_which_sources_left_recall(call: Caller) -> None:
    """A memory that a newer one replaced is marked in the tree."""
    older, newer = call.remember("The limit is 5"), call.remember("The limit is 7")
    call("link", newer, "supersedes", older)

    drawn = call("why", newer).out

    assert f"supersedes  {older}" in drawn
    assert "The limit is 5  (superseded)" in drawn


def test_an_import_is_undone_as_a_whole_and_may_be_repeated(call: Caller, tmp_path: Path) -> None:
    """Only what it stored goes; importing again brings it back with its ids."""
    kept = call.remember("Two boats lie in the harbour")
    (tmp_path / "notes.md").write_text("# Tools\n\n- a saw\n- a plane\n", encoding="utf-8")
    source = str(tmp_path / "notes.md")

    first = call("import", source, "--json").told
    shown = call("undo")
    call("undo", "--yes")
    left = [one["id"] for one in call("list", "--json").told]
    again = call("import", source, "--json").told
    back = {one["id"] for one in call("list", "--json").told}

    assert f"would remove {first['ids'][0]}  " in shown.out
    assert "a saw" in shown.out
    assert left == [kept]
    assert (again["stored"], again["repeated"]) == (first["stored"], 0)
    assert back == {kept, *first["ids"]}
    assert call("import", source, "--json").told["run"] is None
    assert call("undo", again["run"], "--yes").code == 0
    assert [one["id"] for one in call("list", "--json").told] == [kept]


def test_an_import_of_an_export_is_undone_as_a_whole(call: Caller) -> None:
    """What the space had before stays; a back-up that is restored is no import."""
    shared, *more = (
        call.remember(text) for text in ("Boats are in", "A saw hangs", "A plane lies")
    )
    call("export", "all.jsonl")
    call("--space", "other", "import", "all.jsonl")
    call("--space", "other", "forget", *more, "--erase", "--yes")
    call("--space", "third", "import", "all.jsonl", "--restore")
    call("forget", *more, "--yes")
    call("remember", "The harbour is closed", "--id", "6gy4k2m7xq0v0001")
    call("export", "some.jsonl")

    done = call("--space", "other", "import", "some.jsonl")
    again = call("--space", "other", "import", "some.jsonl")
    shown = call("--space", "other", "undo", "--yes")

    assert "undo: bethink undo run-" in done.err
    assert "run-" not in again.err
    assert "already known" in again.out
    assert "The harbour is closed" in shown.out
    assert [one["id"] for one in call("--space", "other", "list", "--json").told] == [shared]
    assert call("--space", "third", "undo").code == 0


def test_an_import_into_the_inbox_is_undone_as_a_whole(call: Caller, tmp_path: Path) -> None:
    """What waits leaves the inbox, what was refused stays refused; it may be imported again."""
    text = "# Saws\n\nA saw hangs in the shed.\n\n# Planes\n\nA plane lies on the bench.\n"
    (tmp_path / "notes.md").write_text(text, encoding="utf-8")
    call("config", "set", "review_import", "wait")
    source = str(tmp_path / "notes.md")

    first = call("import", source, "--json").told
    waits = {one["id"] for one in call("inbox", "--json").told}
    refused = min(waits)
    call("inbox", "refuse", refused)
    shown = call("undo", first["run"])
    call("undo", first["run"], "--yes")
    left = call("inbox", "--json").told
    gone = call("inbox", "accept", *(waits - {refused}))
    call("import", source)
    back = {one["id"] for one in call("inbox", "--json").told}

    assert len(waits) == first["waiting"] >= 2
    assert all(one in shown.out for one in waits - {refused})
    assert refused not in shown.out
    assert "A plane" in shown.out or "A saw" in shown.out
    assert (left, gone.code) == ([], 2)
    assert "is not in the inbox" in gone.err
    assert back == waits - {refused}
    assert [one["id"] for one in call("inbox", "--refused", "--json").told] == [refused]
    assert call("undo", back.pop(), "--yes").code == 0
