"""`people`: who is in a space, and what is left of those who leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from caller import Caller

from bethink import Memory
from bethink.access.people import Directory
from bethink.access.policy import Right
from bethink.access.tokens import TokenStore
from bethink.config.settings import load_settings
from bethink.people import PersonMemory, seen_by


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    made = Caller(tmp_path, monkeypatch, capsys)
    made.set("BETHINK_CONFIG_DIR", str(tmp_path / "config"))
    made.set("BETHINK_SPACE", "team")
    assert made("remember", "The team meets on Mondays").code == 0
    return made


def _seen_by(call: Caller, name: str) -> tuple[Memory, PersonMemory]:
    space = Memory.open("team", settings=load_settings(), embedder="none")
    return space, seen_by(space, name, Directory(call.folder / "config"), Right.ADMIN)


def test_people_are_added_with_a_token_each(call: Caller) -> None:
    """The first owns the space; the token alone is printed on standard output."""
    made = call("people", "add", "anna")
    assert made.code == 0
    assert made.out.strip().startswith("bt_")
    assert json.loads(call("--json", "people", "add", "ben").out)["role"] == "writer"
    assert call("people", "add", "ben").code == 2
    rows = json.loads(call("--json", "people").out)
    assert [(one["name"], one["role"]) for one in rows] == [("anna", "owner"), ("ben", "writer")]
    again = json.loads(call("--json", "--space", "other", "people", "add", "ben").out)
    assert again["token"] is None
    assert call("people", "role", "ben", "reader").code == 0
    assert call("people", "role", "anna", "reader").code == 2
    assert call("token", "create", "phone", "--scope", "read", "--person", "ben").code == 0
    assert "ben" in call("token", "list").out
    assert call("token", "create", "tv", "--scope", "read", "--person", "eve").code != 0


def test_limits_are_set_shown_and_removed(call: Caller) -> None:
    """Each for itself, of one space; `people` shows them."""
    call("people", "add", "anna")
    assert call("people", "limit", "anna", "--memories", "5000", "--requests", "60").code == 0
    assert "5,000 memories, 60 requests/min" in " ".join(call("people").out.split())
    assert json.loads(call("--json", "people").out)[0]["limits"] == {
        "memories": 5000, "requests": 60
    }  # fmt: skip
    done = call("--json", "people", "limit", "anna", "--requests", "0")
    assert json.loads(done.out) == {"name": "anna", "limits": {"memories": 5000}}
    assert json.loads(call("--json", "people", "limit", "anna").out)["limits"] == {"memories": 5000}
    assert call("people", "limit", "anna", "--memories", "-1").code == 2
    assert call("people", "limit", "eve", "--memories", "1").code == 1
    assert call("--space", "other", "people", "limit", "anna", "--memories", "1").code == 1


def test_leaving_exports_erases_and_ends_access(call: Caller) -> None:
    """After a preview that changes nothing; no byte of what was private is left."""
    for name in ("anna", "ben"):
        call("people", "add", name)
    space, ben = _seen_by(call, "ben")
    ben.remember("Ben collects zebracanary stamps", audience="private")
    ben.remember("Ben and Anna share a desk", audience="anna")
    ben.remember("The printer is in room 9")
    space.close()
    shown = call("people", "remove", "ben", "--erase")
    assert "would erase 1 memory of their own" in shown.out
    assert "ben" in call("people").out
    done = call("people", "remove", "ben", "--export", "ben.jsonl", "--erase", "--yes")
    assert done.code == 0, done.err
    told = Path("ben.jsonl").read_text(encoding="utf-8")
    assert all(word in told for word in ("zebracanary", "share a desk", "room 9"))
    Path("ben.jsonl").unlink()
    left = [one for one in call.folder.rglob("*") if one.is_file()]
    assert not [one for one in left if b"zebracanary" in one.read_bytes()]
    assert "room 9" in call("list").out
    assert not [one for one in TokenStore(call.folder / "config").all() if one.name == "ben"]
    assert call("people", "remove", "ben", "--yes").code == 1


def test_a_space_goes_with_all_its_shelves(call: Caller) -> None:
    """`spaces` lists none of them, and `spaces remove` leaves none."""
    call("people", "add", "anna")
    space, anna = _seen_by(call, "anna")
    anna.remember("Anna keeps nightjar eggs", audience="private")
    space.close()
    assert [one["name"] for one in json.loads(call("--json", "spaces").out)] == ["team"]
    assert call("spaces", "remove", "team", "--yes").code == 0
    left = [one for one in call.folder.rglob("*") if one.is_file()]
    assert not [one for one in left if b"nightjar" in one.read_bytes()]
    assert Directory(call.folder / "config").roles("team") == {}


def test_reads_are_shown_where_they_were_recorded(call: Caller) -> None:
    """Nothing by default, which is said."""
    assert call("people", "reads").code == 1
