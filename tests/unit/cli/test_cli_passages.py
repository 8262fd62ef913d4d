"""Long memories on the command line: a passage, and all of it on request."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller

FACT = "The spare key of the boathouse hangs behind the red fuse box."
LONG = " ".join([*(f"Invoice number {n} was paid after {n} days." for n in range(80)), FACT])


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    made = Caller(tmp_path, monkeypatch, capsys)
    made.remember(LONG)
    return made


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_hit_shows_the_passage_and_how_to_see_all(call: Caller) -> None:
    """With an ellipsis where something was left out."""
    part, whole = call("recall", "boathouse key"), call("recall", "boathouse key", "--whole")

    assert FACT in words(part.out)
    assert "… " in part.out
    assert "--whole shows all" in part.out
    assert "Invoice number 0 " not in words(part.out)
    assert LONG in words(whole.out)
    assert "--whole" not in whole.out


def test_json_and_text_for_a_model_show_the_passage(call: Caller) -> None:
    """JSON says where it stands; ``show`` gives the whole."""
    (hit,) = call("recall", "boathouse key", "--json").told["items"]
    text = call("recall", "boathouse key", "--text").out

    assert hit["text"] == LONG[hit["passage"]["start"] : hit["passage"]["end"]]
    assert hit["text"] in text
    assert "Invoice number 0 " not in text
    assert call("show", hit["id"], "--json").told["text"] == LONG
