"""Webhooks: signed as receivers check it, tried for three days, kept in a private file."""

from __future__ import annotations

import base64
import hashlib
import hmac
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bethink.access.webhooks import (
    BACKOFF_S,
    FILE,
    OLD_SECRET,
    Webhook,
    WebhookStore,
    message_of,
    sign,
)
from bethink.errors import NotFound, Refused
from rows import each_row

NOW = datetime(2026, 5, 7, 12, tzinfo=UTC)
URL = "https://hooks.example.org/memory"


def made(folder: Path, name: str = "one") -> tuple[WebhookStore, Webhook]:
    hooks = WebhookStore(folder)
    return hooks, hooks.add(name, URL, "work", "0-e3b0c44298fc1c14", kinds=(), private=False)


def is_genuine(secret: str, headers: dict[str, str], body: bytes, now: datetime) -> bool:
    """What a receiver checks, by the text of Standard Webhooks."""
    if abs(now.timestamp() - int(headers["webhook-timestamp"])) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    code = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(
        hmac.compare_digest(one, f"v1,{code}") for one in headers["webhook-signature"].split(" ")
    )


def test_a_receiver_can_tell_who_sent(tmp_path: Path) -> None:
    """Body, id and time are signed; a message of before is not one of now."""
    _, hook = made(tmp_path)
    message_id, body = message_of(hook, "1-aa", "stored", {"item": "x"})
    headers = sign(hook, message_id, NOW, body)

    assert is_genuine(hook.secret, headers, body, NOW)
    assert not is_genuine(hook.secret, headers, body + b" ", NOW)
    assert not is_genuine(hook.secret, headers | {"webhook-id": "msg_other"}, body, NOW)
    assert not is_genuine(hook.secret, headers, body, NOW + timedelta(minutes=6))
    assert not is_genuine(made(tmp_path, "two")[1].secret, headers, body, NOW)


def test_while_rotating_both_secrets_sign(tmp_path: Path) -> None:
    """For a day; then the new one alone."""
    hooks, old = made(tmp_path)
    new = hooks.rotate("one")
    message_id, body = message_of(new, "1-aa", "stored", {"item": "x"})
    assert new.rotated is not None

    for later, count in ((OLD_SECRET - timedelta(minutes=1), 2), (OLD_SECRET, 1)):
        now = new.rotated + later
        headers = sign(new, message_id, now, body)
        assert is_genuine(new.secret, headers, body, now)
        assert is_genuine(old.secret, headers, body, now) == (count == 2)
        assert len(headers["webhook-signature"].split()) == count


def test_each_attempt_has_the_same_id_and_each_message_another(tmp_path: Path) -> None:
    """Also in another process, and after a rotation."""
    hooks, hook = made(tmp_path)
    first = message_of(hook, "1-aa", "stored", {"item": "x"})

    assert message_of(WebhookStore(tmp_path).all()[0], "1-aa", "stored", {"item": "x"}) == first
    assert message_of(hooks.rotate("one"), "1-aa", "stored", {"item": "x"}) == first
    assert message_of(hook, "2-bb", "stored", {"item": "x"})[0] != first[0]
    reset = message_of(hook, "1-aa", "reset", {})[0]
    assert reset != first[0]
    assert (
        message_of(hook, "2-bb", "reset", {})[0] == reset
    )  # more has changed between two attempts
    other = made(tmp_path, "two")[1]
    assert message_of(other, "1-aa", "stored", {"item": "x"})[0] != first[0]


def test_it_is_tried_for_three_days(tmp_path: Path) -> None:
    """With growing pauses; then it is given up, until its secret is rotated."""
    hooks, _ = made(tmp_path)
    assert 3 <= sum(BACKOFF_S) / 86_400 <= 4
    for number in range(len(BACKOFF_S) + 1):
        hook = hooks.all()[0]
        assert (hook.failures, hook.given_up) == (number, False)
        hooks.note_failure(hook, 503)
        hook = hooks.all()[0]
        assert hook.next_at is not None
        assert not hook.is_due(datetime.now(UTC)) or hook.given_up
    assert hooks.all()[0].given_up
    assert not hooks.all()[0].is_due(datetime.now(UTC) + timedelta(days=99))
    assert hooks.rotate("one").is_due(datetime.now(UTC))


def test_a_receiver_that_is_gone_is_left_alone(tmp_path: Path) -> None:
    """A 410 says that it wants no more."""
    hooks, hook = made(tmp_path)
    hooks.note_failure(hook, 410)

    assert hooks.all()[0].given_up


def test_a_success_forgets_the_failures(tmp_path: Path) -> None:
    """And one that was removed, or made anew, is not written to."""
    hooks, hook = made(tmp_path)
    hooks.note_failure(hook, 500)
    assert hooks.change(hook, cursor="5-cc", failures=0, next_at=None)
    kept = hooks.all()[0]
    assert (kept.cursor, kept.failures, kept.next_at) == ("5-cc", 0, None)

    hooks.remove("one")
    assert not hooks.change(hook, cursor="6-dd")
    hooks.note_failure(hook, 500)
    assert hooks.all() == ()
    with pytest.raises(NotFound):
        hooks.remove("one")
    with pytest.raises(NotFound):
        hooks.rotate("one")


@each_row(
    "url",
    ["http://hooks.example.org/", "https://u:p@example.org/", "https://example.org/#x", "ftp://x/",
     "https://exa mple.org/", "https://example.org:99999/", "", "https:///x"],
)  # fmt: skip
def test_only_https_addresses_are_taken(tmp_path: Path, url: str) -> None:
    """Unless it is said that the receiver is our own."""
    with pytest.raises(Refused):
        WebhookStore(tmp_path).add("one", url, "work", "", kinds=(), private=False)


def test_the_file_is_private_and_lists_tell_no_secret(tmp_path: Path) -> None:
    """A name is used once."""
    _, hook = made(tmp_path)

    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert hook.secret not in str(hook.to_json())
    assert len(base64.b64decode(hook.secret.removeprefix("whsec_"))) == 32
    with pytest.raises(Refused, match="already exists"):
        made(tmp_path)
