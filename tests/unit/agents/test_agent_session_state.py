"""The small state of a session, and whose memory it belongs to."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from recollect.agents.project import is_inside, session_settings
from recollect.agents.session import MOST_GIVEN, MOST_SESSIONS, Mark, Session
from recollect.errors import BadSetting
from recollect.spaces import resolve_space


def test_what_was_given_adds_up(tmp_path: Path) -> None:
    """Ids add up in the order they were given, once each, and are bounded."""
    session = Session(tmp_path / "s", "one")

    session.give(["a", "b"])
    session.give(["b", "c"])
    assert session.given == ("a", "b", "c")
    session.give(str(n) for n in range(2 * MOST_GIVEN))

    assert len(session.given) == MOST_GIVEN
    assert Session(tmp_path / "s", "two").given == ()


@pytest.mark.parametrize(
    "held", ["", "{", "7", '{"a": 1}', "[1, null, []]", "[7, [1]]", "[" * 100_000, "\x00"]
)
def test_a_damaged_state_is_an_empty_one(tmp_path: Path, held: str) -> None:
    """Whatever stands in its files, a session begins anew."""
    session = Session(tmp_path, "one")
    session.give(["a"])
    session.capture_up_to(Mark(7, ("u",)))
    for file in tmp_path.iterdir():
        file.write_text(held)

    assert session.given == ()
    assert session.captured == Mark()


def test_a_session_without_a_name_keeps_nothing(tmp_path: Path) -> None:
    """Who cannot be told apart has no state."""
    session = Session(tmp_path / "s", "")

    session.give(["a"])
    session.capture_up_to(Mark(7, ("u",)))

    assert (session.given, session.captured) == ((), Mark())
    assert not (tmp_path / "s").exists()


def test_old_sessions_are_swept_away(tmp_path: Path) -> None:
    """The folder does not grow without end; the newest stay."""
    long_ago = time.time() - 1000
    for n in range(2 * MOST_SESSIONS + 5):
        file = tmp_path / f"{n:032x}.given.json"
        file.write_text("[]")
        os.utime(file, (long_ago + n, long_ago + n))

    Session(tmp_path, "new").give(["a"])

    left = sorted(tmp_path.iterdir())
    assert len(left) == MOST_SESSIONS
    assert Session(tmp_path, "new").given == ("a",)


def test_a_name_cannot_lead_out(tmp_path: Path) -> None:
    """A session's name, whatever it is, names a file in the folder."""
    for name in ("../../etc/passwd", "a/b", "\ud800", "x" * 5000):
        Session(tmp_path / "s", name).give(["a"])

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
    chosen = session_settings({**env, "RECOLLECT_ACTOR": "ana"}, two, host="claude-code")
    assert chosen is not None
    assert chosen.actor == "ana"


def test_a_broken_setting_is_an_error(tmp_path: Path) -> None:
    """A setting that cannot be read is told, not passed over."""
    with pytest.raises(BadSetting):
        session_settings({"HOME": str(tmp_path), "RECOLLECT_K": "many"}, str(tmp_path), host="x")


def test_inside_is_inside(tmp_path: Path) -> None:
    """Only absolute paths, or those that become so, below the root count."""
    cwd, root = str(tmp_path / "p"), tmp_path / "p"

    assert is_inside("a.py", cwd, root) == root / "a.py"
    assert is_inside(f"{cwd}/b/../a.py", "", root) == root / "a.py"
    assert is_inside("a.py", "", root) is None
    assert is_inside("../p-evil/a.py", cwd, root) is None
    assert is_inside("a.py", cwd, None) is None
    assert is_inside("a\0.py", cwd, root) is None
    assert is_inside("x" * 9000, cwd, root) is not None
