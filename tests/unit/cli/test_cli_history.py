"""The past at the command line: `--as-of`, `history`, forgetting twice, coming back."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    return Caller(tmp_path, monkeypatch, capsys)


def test_as_of_answers_from_what_was_known(call: Caller) -> None:
    """Before it was stored nothing, and since then what it says."""
    one = call.remember("The deploy key is in vault A")

    before = call("recall", "deploy key", "--as-of", "2020-01-01", "--json")
    after = call("recall", "deploy key", "--as-of", "2999-01-01", "--json")

    assert (before.code, before.told["items"]) == (1, [])
    assert [hit["id"] for hit in after.told["items"]] == [one]
    assert before.told["query"]["as_of"] == "2020-01-01T00:00:00.000Z"


def test_forgetting_twice_is_told(call: Caller) -> None:
    """With --yes and without; exit code 1, for nothing was done."""
    one = call.remember("Tea at four")
    call("forget", one, "--yes")

    for more in ((), ("--yes",)):
        again = call("forget", one, *more)
        assert again.code == 1
        assert again.out == f"kept {one}  forgotten already; only --erase removes it\n"
    told = call("forget", one, "--yes", "--json").told
    assert (told["items"], told["kept"]) == ([], [{"id": one, "reason": "forgotten already"}])


def test_a_part_of_an_id_brings_a_memory_back(call: Caller) -> None:
    """And one that was not forgotten is named."""
    one = call.remember("Tea at four")
    call("forget", one, "--yes")

    assert call("restore", one[-6:]).out == f"restored {one}\n"
    again = call("restore", one)
    assert again.code == 1
    assert f"{one} is not forgotten" in again.err
