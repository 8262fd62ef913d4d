"""Tokens: shown once, kept as hashes, in a file that is the owner's alone."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bethink.access.policy import Right
from bethink.access.tokens import ANY_SPACE, FILE, TokenStore, expiry_after
from bethink.errors import BadSetting, NotFound, Refused
from rows import each_row

NOW = datetime(2026, 5, 7, 12, tzinfo=UTC)


def test_a_token_is_256_random_bits_and_only_its_hash_is_kept(tmp_path: Path) -> None:
    """Nothing in the file helps who reads it."""
    tokens = TokenStore(tmp_path)
    made = [tokens.create(f"t{number}", Right.READ, ("work",)) for number in range(20)]

    assert len(set(made)) == 20
    assert all(one.startswith("bt_") and len(one) == 3 + 43 for one in made)
    kept = (tmp_path / FILE).read_text()
    assert not any(one in kept or one[3:] in kept for one in made)


def test_a_token_opens_its_spaces_with_its_right(tmp_path: Path) -> None:
    """And no other; one for any space opens all."""
    tokens = TokenStore(tmp_path)
    some = tokens.create("some", Right.WRITE, ("work", "home"))
    every = tokens.create("every", Right.READ, (ANY_SPACE,))

    for space in ("work", "home"):
        found = tokens.authenticate(some, space, NOW)
        assert found is not None
        assert (found.name, found.right) == ("some", Right.WRITE)
    assert tokens.authenticate(some, "another", NOW) is None
    assert tokens.authenticate(every, "another", NOW) is not None
    assert tokens.authenticate(every, "*", NOW) is not None
    assert tokens.authenticate(some, "*", NOW) is None


@each_row("shown", ["", "bt_", "bt_x", "x" * 10_000, "bt_ü", "\x00", " "])
def test_nonsense_opens_nothing(tmp_path: Path, shown: str) -> None:
    """Whatever it is made of."""
    tokens = TokenStore(tmp_path)
    real = tokens.create("real", Right.READ, (ANY_SPACE,))

    assert tokens.authenticate(shown, "work", NOW) is None
    assert tokens.authenticate(real + "x", "work", NOW) is None
    assert tokens.authenticate(real.lower(), "work", NOW) is None


def test_a_token_expires(tmp_path: Path) -> None:
    """At the very moment."""
    tokens = TokenStore(tmp_path)
    secret = tokens.create("brief", Right.READ, ("work",), expires=NOW)

    assert tokens.authenticate(secret, "work", NOW - timedelta(milliseconds=1)) is not None
    assert tokens.authenticate(secret, "work", NOW) is None
    assert not tokens.has_valid("work", NOW)


def test_a_revoked_token_is_noticed_by_who_is_running(tmp_path: Path) -> None:
    """Another process's change counts from the next look on."""
    running, other = TokenStore(tmp_path), TokenStore(tmp_path)
    secret = other.create("laptop", Right.READ, ("work",))
    assert running.authenticate(secret, "work", NOW) is not None

    assert other.revoke("laptop").name == "laptop"

    assert running.authenticate(secret, "work", NOW) is None
    with pytest.raises(NotFound):
        other.revoke("laptop")


def test_no_file_is_no_token(tmp_path: Path) -> None:
    """And looking makes none."""
    tokens = TokenStore(tmp_path / "nowhere")

    assert tokens.all() == ()
    assert not tokens.has_valid("work", NOW)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.skipif(os.name != "posix", reason="modes mean nothing there")
def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask says; and one that others can write to is refused."""
    tokens = TokenStore(tmp_path / "config")
    before = os.umask(0)
    try:
        tokens.create("laptop", Right.READ, ("work",))
    finally:
        os.umask(before)
    path = tmp_path / "config" / FILE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert not [one for one in path.parent.iterdir() if one.name.startswith(".tokens-")]

    path.chmod(0o622)
    os.utime(path, ns=(1, 1))

    with pytest.raises(BadSetting, match="other users can write"):
        tokens.all()


def kept(**changes: object) -> bytes:
    """A file with one token in it that is a little wrong."""
    token = {"name": "a", "hash": "b", "scope": "read", "spaces": ["*"], "expires": None,
             "created": "2026-01-01T00:00:00Z"}  # fmt: skip
    return json.dumps({"version": 1, "tokens": [token | changes]}).encode()


@each_row(
    "content",
    [
        b"", b"nonsense", b"[]", b"{}", b'{"version": 2, "tokens": []}', b"\xff",
        b'{"version": 1, "tokens": [{}]}', kept(scope="local"), kept(spaces="*"),
        kept(spaces=[1]), kept(expires="never"), kept(created=None),
    ],
)  # fmt: skip
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    """It is said to be damaged, and is not written over."""
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)

    with pytest.raises(BadSetting):
        TokenStore(tmp_path).all()
    with pytest.raises(BadSetting):
        TokenStore(tmp_path).create("new", Right.READ, ("work",))
    assert (tmp_path / FILE).read_bytes() == content


@each_row("name", ["", "A", "a b", "../x", "-a", "a" * 65, "ä", "a\n"])
def test_names_are_plain(tmp_path: Path, name: str) -> None:
    """So that they can stand in a journal and in a command."""
    with pytest.raises(Refused):
        TokenStore(tmp_path).create(name, Right.READ, ("work",))


def test_a_name_is_taken_once(tmp_path: Path) -> None:
    """The first token stays what it is."""
    tokens = TokenStore(tmp_path)
    first = tokens.create("laptop", Right.READ, ("work",))

    with pytest.raises(Refused, match="already"):
        tokens.create("laptop", Right.ADMIN, ("work",))
    found = tokens.authenticate(first, "work", NOW)
    assert found is not None
    assert found.right is Right.READ


@each_row(("span", "days"), [("30d", 30), ("12h", 0.5), ("2w", 14), ("1y", 365), ("90m", 1.5 / 24)])
def test_spans_are_read(span: str, days: float) -> None:
    """A number and a unit."""
    assert expiry_after(span, NOW) == NOW + timedelta(days=days)


@each_row("span", ["", "30", "d", "0d", "-1d", "1.5d", "30 d", "999999d", "3٣d"])
def test_other_spans_are_refused(span: str) -> None:
    """In a sentence."""
    with pytest.raises(Refused, match="not a duration"):
        expiry_after(span, NOW)


def test_the_calendar_ends_somewhere() -> None:
    """Beyond it there is a sentence, too."""
    with pytest.raises(Refused, match="out of range"):
        expiry_after("99999y", NOW)


MAKE = """
import sys
from pathlib import Path
from bethink.access.policy import Right
from bethink.access.tokens import TokenStore
tokens = TokenStore(Path(sys.argv[1]))
for number in range(10):
    print(tokens.create(f"{sys.argv[2]}-{number}", Right.READ, ("work",)))
"""


def test_processes_that_make_tokens_at_once_lose_none(tmp_path: Path) -> None:
    """Each change waits for the one before."""
    makers = [
        subprocess.Popen([sys.executable, "-c", MAKE, tmp_path, name], stdout=subprocess.PIPE)
        for name in ("one", "two", "three")
    ]
    made = [line for maker in makers for line in maker.communicate()[0].decode().split()]

    tokens = TokenStore(tmp_path)
    assert len(made) == len(tokens.all()) == 30
    assert all(tokens.authenticate(secret, "work", NOW) for secret in made)
    assert json.loads((tmp_path / FILE).read_text())["version"] == 1
