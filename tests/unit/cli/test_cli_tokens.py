"""`token`, and `serve` as far as it refuses: what they print and answer with."""

from __future__ import annotations

import json
import signal
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

import pytest
from caller import Caller

from bethink.access.policy import Right
from bethink.access.tokens import TokenStore
from rows import each_row


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Caller:
    made = Caller(tmp_path, monkeypatch, capsys)
    made.set("BETHINK_CONFIG_DIR", str(tmp_path / "config"))
    return made


def tokens(call: Caller) -> TokenStore:
    return TokenStore(call.folder / "config")


def test_a_token_is_printed_once(call: Caller) -> None:
    """Alone on standard output, so that it can be piped; lists never show it."""
    made = call("token", "create", "laptop", "--scope", "write", "--expires", "30d")
    secret = made.out.strip()

    assert made.code == 0
    assert secret.startswith("bt_")
    assert "not shown again" in made.err
    listed = call("token", "list")
    assert secret not in listed.out
    assert "laptop" in listed.out
    found = tokens(call).authenticate(secret, "personal", datetime.now(UTC))
    assert found is not None
    assert found.right is Right.WRITE


def test_a_token_is_for_the_space_in_use_or_those_named(call: Caller) -> None:
    """One by default, several by name, all only where that is said."""
    call("token", "create", "here", "--scope", "read")
    call("token", "create", "some", "--scope", "read", "--space", "work", "--space", "home")
    call("--space", "work", "token", "create", "before", "--scope", "read")
    call("token", "create", "every", "--scope", "read", "--any-space")

    spaces = {one.name: one.spaces for one in tokens(call).all()}
    assert spaces == {
        "here": ("personal",), "some": ("work", "home"), "before": ("work",), "every": ("*",)
    }  # fmt: skip


def test_a_space_that_is_not_there_is_named(call: Caller) -> None:
    """It may come; more often the name was mistyped, and nobody would be let in."""
    call("--space", "work", "remember", "The deploy key lives in vault B")

    slip = call("token", "create", "one", "--scope", "read", "--space", "wrok")
    right = call("token", "create", "two", "--scope", "read", "--space", "work")

    assert "there is no space wrok yet" in slip.err
    assert "there is no space" not in right.err


def test_everything_as_json(call: Caller) -> None:
    """For programs."""
    made = call("token", "create", "laptop", "--scope", "admin", "--json").told
    listed = call("token", "list", "--json").told
    bare = call("token", "--json").told
    revoked = call("token", "revoke", "laptop", "--json").told

    assert made["token"].startswith("bt_")
    assert (made["name"], made["scope"], made["spaces"]) == ("laptop", "admin", ["personal"])
    assert listed == bare
    assert listed[0]["expired"] is False
    assert "hash" not in json.dumps(listed)
    assert revoked == {"revoked": "laptop"}
    assert call("token", "list", "--json").told == []


@each_row(
    ("words", "code", "told"),
    [
        (("create", "laptop"), 2, "--scope"),
        (("create", "laptop", "--scope", "local"), 2, "--scope"),
        (("create", "Laptop", "--scope", "read"), 2, "not a valid token name"),
        (("create", "laptop", "--scope", "read", "--expires", "soon"), 2, "not a duration"),
        (("create", "laptop", "--scope", "read", "--space", "../x"), 2, "name of a space"),
        (
            ("create", "laptop", "--scope", "read", "--space", "a", "--any-space"),
            2,
            "cannot be combined",
        ),
        (("revoke", "nobody"), 1, "no token"),
        (("list",), 1, "there are no tokens"),
    ],
)
def test_mistakes_are_sentences(call: Caller, words: tuple[str, ...], code: int, told: str) -> None:
    """With their exit code, and nothing made."""
    said = call("token", *words)

    assert said.code == code
    assert told in said.err
    assert tokens(call).all() == ()


def test_an_expired_token_is_shown_as_such(call: Caller) -> None:
    """Until somebody takes it away."""
    tokens(call).create("old", Right.READ, ("personal",), expires=datetime(2026, 1, 1, tzinfo=UTC))

    assert "expired" in call("token", "list").out
    assert call("token", "list", "--json").told[0]["expired"] is True


@each_row(
    ("words", "told"),
    [
        (("--host", "0.0.0.0"), "reachable from other machines"),
        (("--host", "::"), "reachable from other machines"),
        (("--host", "example.org"), "reachable from other machines"),
        (("--require-token",), "no token for the space personal"),
        (("--rate", "fast"), "not a rate"),
        (("--allow-origin", "*"), "not an origin"),
        (("--allow-host", "*"), "not a host name"),
        (("--tools", "nonsense"), "no tool"),
        (("--port", "70000"), "--port"),
    ],
)
def test_a_server_that_must_not_start_does_not(
    call: Caller, words: tuple[str, ...], told: str
) -> None:
    """It says why and what to do, and ends with an error."""
    said = call("serve", *words)

    assert said.code != 0
    assert told in said.err


def test_a_signal_before_the_server_runs_ends_it_as_cleanly(
    call: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the line with its URL on, SIGTERM and SIGINT are a normal shutdown."""
    app, ignored = import_module("bethink.server.rest.app"), []
    for signum in (signal.SIGTERM, signal.SIGINT):
        monkeypatch.setattr(app, "make_app", lambda *_, end=signum, **__: signal.raise_signal(end))
        before = signal.signal(signum, lambda *_: ignored.append(1))
        try:
            said = call("serve", "--port", "0", "--space", "work")
        finally:
            signal.signal(signum, before)

        assert said.code == 0
        assert "serving the space work" in said.err
        assert not ignored
