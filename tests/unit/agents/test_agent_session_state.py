"""The small state of a session, and whose memory it belongs to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from bethink.agents.session import (
    MAX_GIVEN_IDS,
    MAX_SESSION_FILES,
    CaptureMark,
    SessionState,
    resolve_in_project,
    session_settings,
)
from bethink.config.spaces import resolve_space
from bethink.errors import BadSetting
from rows import each_row


def test_what_was_given_adds_up(tmp_path: Path) -> None:
    """Ids add up in the order they were given, once each, and are bounded."""
    session = SessionState(tmp_path / "s", "one")

    session.add_given(["a", "b"])
    session.add_given(["b", "c"])
    assert session.given == ("a", "b", "c")
    session.add_given(str(n) for n in range(2 * MAX_GIVEN_IDS))

    assert len(session.given) == MAX_GIVEN_IDS
    assert SessionState(tmp_path / "s", "two").given == ()


@each_row("held", ["", "{", "7", '{"a": 1}', "[1, null, []]", "[7, [1]]", "[" * 100_000, "\x00"])
def test_a_damaged_state_is_an_empty_one(tmp_path: Path, held: str) -> None:
    """Whatever stands in its files, a session begins anew."""
    session = SessionState(tmp_path, "one")
    session.add_given(["a"])
    session.set_captured(CaptureMark(7, ("u",)))
    for file in tmp_path.iterdir():
        file.write_text(held)

    assert session.given == ()
    assert session.captured == CaptureMark()


def test_a_session_without_a_name_keeps_nothing(tmp_path: Path) -> None:
    """Who cannot be told apart has no state."""
    session = SessionState(tmp_path / "s", "")

    session.add_given(["a"])
    session.set_captured(CaptureMark(7, ("u",)))

    assert (session.given, session.captured) == ((), CaptureMark())
    assert not (tmp_path / "s").exists()


def test_old_sessions_are_swept_away(tmp_path: Path) -> None:
    """The folder does not grow without end; the newest stay."""
    long_ago = time.time() - 1000
    for n in range(2 * MAX_SESSION_FILES + 5):
        file = tmp_path / f"{n:032x}.given.json"
        file.write_text("[]")
        os.utime(file, (long_ago + n, long_ago + n))

    SessionState(tmp_path, "new").add_given(["a"])

    left = sorted(tmp_path.iterdir())
    assert len(left) == MAX_SESSION_FILES
    assert SessionState(tmp_path, "new").given == ("a",)


def test_a_name_cannot_lead_out(tmp_path: Path) -> None:
    """A session's name, whatever it is, names a file in the folder."""
    for name in ("../../etc/passwd", "a/b", "\ud800", "x" * 5000):
        SessionState(tmp_path / "s", name).add_given(["a"])

    assert len(list((tmp_path / "s").iterdir())) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_the_project_is_the_hosts(tmp_path: Path) -> None:
    """The folder the host names decides, else the working directory; a wrong one is none."""
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
    env = {"HOME": str(tmp_path), "CLAUDE_PROJECT_DIR": str(tmp_path / "one")}
    two = str(tmp_path / "two")

    named = session_settings(env, two, host="claude-code")
    by_folder = session_settings({"HOME": str(tmp_path)}, two, host="claude-code")

    assert named is not None
    assert by_folder is not None
    assert resolve_space(None, named).name.startswith("one-")
    assert resolve_space(None, by_folder).name.startswith("two-")
    assert named.actor == "claude-code"
    assert session_settings({**env, "CLAUDE_PROJECT_DIR": "/nowhere"}, two, host="x") is None
    assert session_settings({**env, "CLAUDE_PROJECT_DIR": ""}, "", host="x") is None
    assert session_settings({"HOME": str(tmp_path)}, "a\0b", host="x") is None
    chosen = session_settings({**env, "BETHINK_ACTOR": "ana"}, two, host="claude-code")
    assert chosen is not None
    assert chosen.actor == "ana"


def test_a_broken_setting_is_an_error(tmp_path: Path) -> None:
    """A setting that cannot be read is told, not passed over."""
    with pytest.raises(BadSetting):
        session_settings({"HOME": str(tmp_path), "BETHINK_K": "many"}, str(tmp_path), host="x")


def test_inside_is_inside(tmp_path: Path) -> None:
    """Only absolute paths, or those that become so, below the root count."""
    cwd, root = str(tmp_path / "p"), tmp_path / "p"

    assert resolve_in_project("a.py", cwd, root) == root / "a.py"
    assert resolve_in_project(f"{cwd}/b/../a.py", "", root) == root / "a.py"
    assert resolve_in_project("a.py", "", root) is None
    assert resolve_in_project("../p-evil/a.py", cwd, root) is None
    assert resolve_in_project("a.py", cwd, None) is None
    assert resolve_in_project("a\0.py", cwd, root) is None
    assert resolve_in_project("x" * 9000, cwd, root) is not None
