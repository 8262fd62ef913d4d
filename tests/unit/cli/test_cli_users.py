"""The options for memories of several users."""

from __future__ import annotations

from pathlib import Path

import pytest
from caller import Caller


def test_a_user_is_given_and_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`remember --user`, beside other metadata; the filters `--user` and `--include-shared`."""
    call = Caller(tmp_path, monkeypatch, capsys)
    text = "The spare key of the pump house is at"
    own = call.remember(f"{text} Ana's", "--user", "ana", "--metadata", '{"box": 1}')
    his = call.remember(f"{text} Ben's", "--user", "ben")

    def found(*words: str) -> list[str]:
        answer = call("recall", "spare key pump house", *words, "--json").told
        return sorted(hit["id"] for hit in answer["items"])

    assert found("--user", "ana") == [own]
    assert found("--user", "ana", "--user", "ben") == sorted((own, his))
    assert found("--user", "ana", "--include-shared") == sorted((own, his))
    abmind = ("--profile", "abmind", "--user", "ana")
    assert found(*abmind) == sorted((own, his))
    assert found(*abmind, "--no-shared") == [own]
    assert call("show", own, "--json").told["metadata"] == {"box": 1, "user_id": "ana"}
