"""Tokens: made once, shown once, kept as hashes in one private file."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from recollect.access.rights import GRANTED, Principal, Right
from recollect.errors import BadSetting, NotFound, Refused
from recollect.jsonable import Json, iso
from recollect.places import make_private_folder
from recollect.whole_file import replace_whole

FILE = "tokens.json"
PREFIX = "rc_"
ANY_SPACE = "*"
_VERSION = 1
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_LONGEST = 200  # characters of what may be a token at all
_SPAN = re.compile(r"([1-9][0-9]{0,4})([mhdwy])")
_UNITS = {
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
    "y": timedelta(days=365),
}
_ROLES = {right.word: right for right in GRANTED}


class Token(NamedTuple):
    """What is kept of a token: all but itself."""

    name: str
    hashed: str
    right: Right
    spaces: tuple[str, ...]
    created: datetime
    expires: datetime | None = None

    def is_for(self, space: str) -> bool:
        """Whether it opens that space."""
        return space in self.spaces or ANY_SPACE in self.spaces

    def has_expired(self, now: datetime) -> bool:
        return self.expires is not None and self.expires <= now

    def told(self) -> Json:
        """As lists show it; the hash is nobody's business."""
        return {
            "name": self.name,
            "scope": self.right.word,
            "spaces": list(self.spaces),
            "created": iso(self.created),
            "expires": iso(self.expires),
        }


class Tokens:
    """The tokens in one file. What is changed there is noticed at once."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._seen: tuple[int, int, int] | None = None
        self._kept: tuple[Token, ...] = ()

    def create(
        self, name: str, right: Right, spaces: tuple[str, ...], *, expires: datetime | None = None
    ) -> str:
        """Keeps a new token and gives it, this once."""
        if not _NAME.fullmatch(name):
            raise Refused(
                f"{name!r:.80} cannot be the name of a token",
                remedy="use 1 to 64 lower-case letters, digits, '.', '_' and '-'",
            )
        secret = PREFIX + secrets.token_urlsafe(32)
        now = datetime.now(UTC)
        with self._changing() as kept:
            if any(token.name == name for token in kept):
                raise Refused(
                    f"there is a token {name} already",
                    remedy=f"another name, or recollect token revoke {name}",
                )
            kept.append(Token(name, _hashed(secret), right, spaces, now, expires))
        return secret

    def revoke(self, name: str) -> Token:
        """Takes a token back, from this moment on."""
        with self._changing() as kept:
            for place, token in enumerate(kept):
                if token.name == name:
                    return kept.pop(place)
        raise NotFound(f"there is no token {name!r:.80}", remedy="recollect token list")

    def all(self) -> tuple[Token, ...]:
        """Every token, expired ones too, in the order they were made."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            self._seen, self._kept = None, ()
            return ()
        mark = (found.st_ino, found.st_mtime_ns, found.st_size)
        if mark != self._seen:
            self._kept = _read(self.path, found)
            self._seen = mark
        return self._kept

    def usable(self, space: str, now: datetime) -> bool:
        """Whether anybody could be let in to that space now."""
        return any(token.is_for(space) and not token.has_expired(now) for token in self.all())

    def find(self, secret: str, space: str, now: datetime) -> Principal | None:
        """Whose token this is, if it opens that space now.

        All are looked at, whichever fits, so that the time it takes tells nothing.
        """
        if not secret.isascii() or len(secret) > _LONGEST:
            return None
        hashed, found = _hashed(secret), None
        for token in self.all():
            if hmac.compare_digest(token.hashed, hashed):
                found = token
        if found is None or found.has_expired(now) or not found.is_for(space):
            return None
        return Principal(found.name, found.right, found.hashed[:16])

    @contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """The tokens to change, while nobody else does; written when all went well."""
        from recollect.store.sqlite.lock import FileLock, holding  # only changing needs it

        try:
            make_private_folder(self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        lock = FileLock(self.path.with_name(f"{FILE}.lock"))
        with holding(lock, str(self.path)):
            kept = list(self.all())
            yield kept
            _write(self.path, kept)


def _hashed(secret: str) -> str:
    # A plain hash is right here: a token is 256 random bits, so there is no dictionary to
    # try and nothing that salt or a slow function could add but time on every request.
    return hashlib.sha256(secret.encode()).hexdigest()


def expiry_of(span: str, now: datetime) -> datetime:
    """The moment that ``30d`` from now is: a number and m, h, d, w or y."""
    found = _SPAN.fullmatch(span)
    if found is None:
        raise Refused(f"{span!r:.40} is no span of time", remedy="for example 12h, 30d, 8w, 1y")
    try:
        return now + int(found[1]) * _UNITS[found[2]]
    except OverflowError as error:
        raise Refused(f"{span} from now is beyond any date", remedy="leave it out") from error


def _read(path: Path, found: os.stat_result) -> tuple[Token, ...]:
    if os.name == "posix" and found.st_mode & 0o022:
        # Whoever can write there can let themselves in.
        raise BadSetting(f"others than you can write to {path}", remedy=f"chmod 600 {path}")
    try:
        told = json.loads(path.read_bytes())
        if told["version"] != _VERSION:
            raise BadSetting(f"{path} was written by another version of Recollect")
        return tuple(_token(one) for one in told["tokens"])
    except OSError as error:
        raise BadSetting(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadSetting(f"{path} is not a file of tokens", remedy="remove it") from error


def _token(told: dict[str, Any]) -> Token:
    moment: Callable[[str], datetime] = datetime.fromisoformat
    spaces = told["spaces"]
    if not isinstance(spaces, list) or not all(isinstance(one, str) for one in spaces):
        raise TypeError("spaces must be a list of names")
    expires = None if told["expires"] is None else moment(told["expires"])
    return Token(
        str(told["name"]),
        str(told["hash"]),
        _ROLES[told["scope"]],
        tuple(spaces),
        moment(told["created"]),
        expires,
    )


def _write(path: Path, kept: list[Token]) -> None:
    tokens = [token.told() | {"hash": token.hashed} for token in kept]
    text = json.dumps({"version": _VERSION, "tokens": tokens}, indent=1) + "\n"
    # A linked file is a choice of the user's: the target changes, the link stays.
    real = Path(os.path.realpath(path))
    try:
        replace_whole(real, text.encode())
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> BadSetting:
    return BadSetting(f"{path} cannot be written: {error.strerror}")
