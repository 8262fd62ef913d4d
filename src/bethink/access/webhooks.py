"""Webhooks: where changes are posted, signed as Standard Webhooks has it, with retries."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bethink.access.outbound import Limits, Unreachable, check_url, fetch
from bethink.access.private_file import PrivateFile
from bethink.config.paths import config_folder
from bethink.core.json_values import Json, iso
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused
from bethink.ports import Store
from bethink.ports.values import Event

PAGE = 200
_CURSOR = lazy_pattern(r"([0-9]{1,15})-([0-9a-f]{16})")


class JournalReader:
    """A place in the journal of a view.

    The numbers of a view shift where a memory leaves it or enters it, so a cursor also has a
    code of its line: if the line with that number is another one, events were missed.
    """

    def __init__(self, cursor: str = "") -> None:
        found = _CURSOR.fullmatch(cursor)
        self._seq, self._code = (int(found[1]), found[2]) if found else (0, "")

    @property
    def cursor(self) -> str:
        """The place as text; it tells nothing of what the view hides."""
        return f"{self._seq}-{self._code}"

    def go_to_end(self, store: Store) -> None:
        """Go behind the newest line."""
        self.advance(next(iter(store.admin.changes(item=None, actor=None, limit=1)), None))

    def read(self, store: Store) -> list[Event] | None:
        """Return the lines that follow, a page of them; None if the place is lost."""
        found = store.admin.events(after=max(self._seq - 1, 0), limit=PAGE)
        here = found.pop(0) if self._seq and found else None
        return found if _code(here) == self._code else None

    def advance(self, event: Event | None) -> None:
        """Go behind a line that was read; None is the beginning."""
        self._seq, self._code = event.seq if event else 0, _code(event)


def event_json(event: Event) -> Json:
    """Return the public fields of a change."""
    return {"seq": event.seq, "at": iso(event.at), "kind": event.kind, "item": event.item}


def _code(event: Event | None) -> str:
    told = f"{event_json(event)}" if event else ""
    return hashlib.sha256(told.encode()).hexdigest()[:16]


FILE = "webhooks.json"
PREFIX = "whsec_"
OLD_SECRET = timedelta(hours=24)  # how long the secret before a rotation signs as well
_TIMEOUT_S, _MAX_ANSWER = 10.0, 1 << 16
_GONE = 410
# Seconds before the second, third ... attempt: somewhat more than three days in all.
BACKOFF_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
_SECRETS, _TIMES = ("secret", "old_secret", "cursor"), ("created", "rotated", "next_at")


class Webhook(NamedTuple):
    """A webhook, its place in the journal, and what failed since the last success."""

    name: str
    url: str
    space: str
    secret: str
    created: datetime
    cursor: str
    kinds: tuple[str, ...] = ()
    private: bool = False
    old_secret: str = ""
    rotated: datetime | None = None
    failures: int = 0
    next_at: datetime | None = None
    status: int = 0
    given_up: bool = False

    def is_due(self, now: datetime) -> bool:
        """Check whether it may be sent to now."""
        return not self.given_up and (self.next_at is None or self.next_at <= now)

    def wants(self, kind: str) -> bool:
        """Check whether it is for changes of a kind; every webhook gets a reset."""
        return not self.kinds or kind in (*self.kinds, "reset")

    def to_json(self) -> Json:
        """Return the webhook as JSON for listings, without its secrets."""
        return {name: value for name, value in _dump(self).items() if name not in _SECRETS}


class WebhookStore:
    """The webhooks in one private file."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = PrivateFile((folder or config_folder()) / FILE, "webhooks", _parse, _dump)

    def all(self) -> tuple[Webhook, ...]:
        """Return every webhook in order of creation."""
        return self._file.read()

    def add(
        self, name: str, url: str, space: str, cursor: str, *, kinds: tuple[str, ...], private: bool
    ) -> Webhook:
        """Store a new webhook; its secret is for the receiver."""
        try:
            check_url(url, public_only=not private)
        except Unreachable as error:
            raise Refused(error.message, remedy="--private allows http and local ones") from error
        hook = Webhook(name, url, space, _make_secret(), datetime.now(UTC), cursor, kinds, private)
        with self._file.transaction() as kept:
            if any(one.name == name for one in kept):
                raise Refused(f"the webhook {name} already exists", remedy="use another name")
            kept.append(hook)
        return hook

    def named(self, name: str) -> Webhook:
        """Return a webhook by its name."""
        for hook in self.all():
            if hook.name == name:
                return hook
        raise NotFound(f"there is no webhook {name!r:.80}", remedy="see: bethink webhook list")

    def remove(self, name: str) -> None:
        """Delete a webhook."""
        self.named(name)  # or it is told that there is none
        self._file.drop(lambda hook: hook.name == name)

    def rotate(self, name: str) -> Webhook:
        """Give a webhook a new secret and another chance; the old secret signs for a day."""
        hook = self.named(name)
        self.change(
            hook, secret=_make_secret(), old_secret=hook.secret, rotated=datetime.now(UTC),
            failures=0, next_at=None, given_up=False,
        )  # fmt: skip
        return self.named(name)

    def note_failure(self, hook: Webhook, status: int) -> None:
        """Keep when to try again; give up after three days, or where a 410 says so."""
        is_last = hook.failures >= len(BACKOFF_S) or status == _GONE
        wait = timedelta(seconds=0 if is_last else BACKOFF_S[hook.failures])
        new = {"failures": hook.failures + 1, "status": status, "given_up": is_last}
        self.change(hook, next_at=datetime.now(UTC) + wait, **new)

    def change(self, hook: Webhook, **new: Any) -> bool:
        """Change a webhook; False if it was removed, or made anew."""
        with self._file.transaction() as kept:
            for place, now in enumerate(kept):
                if (now.name, iso(now.created)) == (hook.name, iso(hook.created)):
                    kept[place] = now._replace(**new)
                    return True
        return False


def post_message(hook: Webhook, cursor: str, kind: str, data: Json) -> int:
    """Post a message and return the status; 0 without an answer."""
    message_id, body = message_of(hook, cursor, kind, data)
    headers = sign(hook, message_id, datetime.now(UTC), body)
    limits = Limits(_TIMEOUT_S, _MAX_ANSWER, public_only=not hook.private)
    try:
        return fetch(hook.url, limits, body, {"Content-Type": "application/json", **headers})[0]
    except Unreachable:
        return 0


def message_of(hook: Webhook, cursor: str, kind: str, data: Json) -> tuple[str, bytes]:
    """Return the id and the body of a message; each attempt has the same ones."""
    # A reset is known by the place that was lost: where it leads to may have been told before.
    place = f"lost {hook.cursor}" if kind == "reset" else cursor
    place = f"{hook.name}\n{hook.space}\n{iso(hook.created)}\n{place}"
    told = {"type": f"memory.{kind.replace(' ', '_')}", "timestamp": data.get("at"),
            "data": {"space": hook.space, "cursor": cursor, **data}}  # fmt: skip
    return f"msg_{hashlib.sha256(place.encode()).hexdigest()[:32]}", json.dumps(told).encode()


def sign(hook: Webhook, message_id: str, now: datetime, body: bytes) -> dict[str, str]:
    """Return the headers of Standard Webhooks; after a rotation both secrets sign."""
    at = str(int(now.timestamp()))
    valid = [hook.secret]
    if hook.rotated is not None and now < hook.rotated + OLD_SECRET:
        valid.append(hook.old_secret)
    keys = [base64.b64decode(secret.removeprefix(PREFIX)) for secret in valid]
    codes = [hmac.digest(key, f"{message_id}.{at}.".encode() + body, "sha256") for key in keys]
    signature = " ".join(f"v1,{base64.b64encode(code).decode()}" for code in codes)
    return {"webhook-id": message_id, "webhook-timestamp": at, "webhook-signature": signature}


def _make_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def _parse(record: Json) -> Webhook:
    times = {name: record[name] and datetime.fromisoformat(record[name]) for name in _TIMES}
    return Webhook(**{**record, **times, "kinds": tuple(record["kinds"])})


def _dump(hook: Webhook) -> Json:
    return hook._asdict() | {name: iso(getattr(hook, name)) for name in _TIMES}
