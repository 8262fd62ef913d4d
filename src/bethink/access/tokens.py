"""Access tokens: created once, shown once, stored as hashes in one private file."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from bethink.access.people import Directory
from bethink.access.policy import GRANTABLE, Principal, Right
from bethink.access.private_file import PrivateFile
from bethink.config.paths import config_folder
from bethink.core.json_values import Json, iso
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.errors import NotFound, Refused

FILE = "tokens.json"
PREFIX = "bt_"
ANY_SPACE = "*"
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9._-]{0,63}")
_MAX_LENGTH = 200  # maximum length of a token
_KEY_LENGTH = 16  # characters of a hash that tell tokens apart
_DURATION = lazy_pattern(r"([1-9][0-9]{0,4})([mhdwy])")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
_OF_PERSON = "person-"  # of a scope: an earlier version would take it for one without a person
_RIGHTS = {right.scope_name: right for right in GRANTABLE}


class Token(NamedTuple):
    """The stored record of a token: everything but the secret."""

    name: str
    hashed: str
    right: Right
    spaces: tuple[str, ...]
    created: datetime
    expires: datetime | None = None
    person: str = ""

    def is_for(self, space: str) -> bool:
        """Check whether the token grants access to a space."""
        return space in self.spaces or ANY_SPACE in self.spaces

    def has_expired(self, now: datetime) -> bool:
        return self.expires is not None and self.expires <= now

    def to_json(self) -> Json:
        """Return the record as JSON for listings, without the hash."""
        return {
            "name": self.name,
            "scope": self.right.scope_name,
            "spaces": list(self.spaces),
            "created": iso(self.created),
            "expires": iso(self.expires),
            **({"person": self.person} if self.person else {}),
        }


class TokenStore:
    """The tokens in one file; changes made to the file are picked up at once."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or config_folder()) / FILE
        self.people = Directory(folder)
        self._file = PrivateFile(self.path, "tokens", _parse_token, _dump_token)

    def create(
        self,
        name: str,
        right: Right,
        spaces: tuple[str, ...],
        *,
        expires: datetime | None = None,
        person: str = "",
    ) -> str:
        """Store a new token and return its secret, which is never shown again.

        With ``person``, the id of one, it is for what that person may see.
        """
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name!r:.80} is not a valid token name",
                remedy="use 1 to 64 lower-case letters, digits, '.', '_' and '-'",
            )
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        with self._file.transaction() as kept:
            if any(token.name == name for token in kept):
                raise Refused(
                    f"the token {name} already exists",
                    remedy=f"use another name, or revoke it with: bethink token revoke {name}",
                )
            kept.append(Token(name, hash_secret(secret), right, spaces, now, expires, person))
        return secret

    def revoke_person(self, person: str) -> int:
        """Delete all tokens of a person (id); return how many there were."""
        return self._file.drop(lambda token: token.person == person)

    def revoke(self, name: str) -> Token:
        """Delete a token; it is invalid from now on."""
        with self._file.transaction() as kept:
            for place, token in enumerate(kept):
                if token.name == name:
                    return kept.pop(place)
        raise NotFound(
            f"there is no token {name!r:.80}", remedy="list tokens with: bethink token list"
        )

    def all(self) -> tuple[Token, ...]:
        """Return every token, expired ones too, in order of creation."""
        return self._file.read()

    def has_valid(self, space: str, now: datetime) -> bool:
        """Check whether any token is valid for a space now."""
        return any(token.is_for(space) and not token.has_expired(now) for token in self.all())

    def authenticate(self, secret: str, space: str, now: datetime) -> Principal | None:
        """Return the principal of a secret if it is valid for a space now, else None.

        Every token is compared, so that the time taken reveals nothing.
        """
        if not secret.isascii() or len(secret) > _MAX_LENGTH:
            return None
        hashed, found = hash_secret(secret), None
        for token in self.all():
            if hmac.compare_digest(token.hashed, hashed):
                found = token
        return None if found is None else self._principal(found, space, now)

    def find_principal(self, key: str, space: str, now: datetime) -> Principal | None:
        """Return who has the token of this key, with the rights of now; None if it is invalid."""
        found = (token for token in self.all() if token.hashed[:_KEY_LENGTH] == key)
        return next((self._principal(token, space, now) for token in found), None)

    def _principal(self, token: Token, space: str, now: datetime) -> Principal | None:
        """Return the principal of a token; a person has the right of the role at most."""
        if token.has_expired(now) or not token.is_for(space):
            return None
        right = token.right
        if token.person:
            role = self.people.right(space, token.person)
            if role is None:
                return None
            right = min(right, role)
        return Principal(token.name, right, token.hashed[:_KEY_LENGTH], person=token.person)


def hash_secret(secret: str) -> str:
    """Return the hash of a secret, which is what files keep of it."""
    # A plain hash is right here: a token is 256 random bits, so there is no dictionary to
    # try and nothing that salt or a slow function could add but time on every request.
    return hashlib.sha256(secret.encode()).hexdigest()


def expiry_after(duration: str, now: datetime) -> datetime:
    """Return the time ``30d`` from now: a number and m, h, d, w or y."""
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise Refused(f"{duration!r:.40} is not a duration", remedy="for example 12h, 30d, 8w, 1y")
    try:
        return now + int(found[1]) * _UNITS[found[2]]
    except OverflowError as error:
        raise Refused(f"{duration} from now is out of range", remedy="omit --expires") from error


def _parse_token(record: Json) -> Token:
    moment: Callable[[str], datetime] = datetime.fromisoformat
    spaces = record["spaces"]
    if not isinstance(spaces, list) or not all(isinstance(space, str) for space in spaces):
        raise TypeError("spaces must be a list of names")
    expires = None if record["expires"] is None else moment(record["expires"])
    return Token(
        str(record["name"]),
        str(record["hash"]),
        _RIGHTS[record["scope"].removeprefix(_OF_PERSON)],
        tuple(spaces),
        moment(record["created"]),
        expires,
        str(record["person"]) if record["scope"].startswith(_OF_PERSON) else "",
    )


def _dump_token(token: Token) -> Json:
    scope = (_OF_PERSON if token.person else "") + token.right.scope_name
    return token.to_json() | {"scope": scope, "hash": token.hashed}
