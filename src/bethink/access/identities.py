"""Identities of outside providers: JWTs are checked, and a table says what they may do.

The table is `oauth.toml` in the config folder; `right_of` turns an identity into a right.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import monotonic

from bethink.access.hosts import is_loopback
from bethink.access.outbound import Limits, Unreachable, check_url, fetch
from bethink.access.people import Directory
from bethink.access.policy import GRANTABLE, Principal, Right
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.small_files import read_small_file
from bethink.errors import BadSetting, MissingExtra

FILE = "oauth.toml"
SCOPES = {f"memory:{right.scope_name}": right for right in GRANTABLE}
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
              "EdDSA")  # fmt: skip
MAX_TOKEN = 8192  # characters
SKEW_S = 60
COOLDOWN_S = 60.0  # between two requests for a provider's keys
_FRESH_S = 600.0
_LIMITS = Limits(5.0, 1 << 18, public_only=False)
_TYPES = ("jwt", "at+jwt", "application/at+jwt")
# What only ID tokens have: they tell a client who signed in, and are for no server.
_OF_ID_TOKENS = {"nonce", "at_hash", "c_hash", "s_hash"}


class Grant(NamedTuple):
    """A row of the table: identities of an issuer with this value of a claim have this right.

    ``person`` is who they are here, by the name in the directory; the role limits the right.
    """

    issuer: str
    value: str
    scope: str
    spaces: list[str]
    name: str
    claim: str = "sub"
    person: str = ""


def right_of(claims: Json, table: list[Grant], space: str) -> tuple[Grant, Right] | None:
    """Return the row and the right of an identity in a space; None if it is not known there."""
    found = [
        (row, SCOPES[f"memory:{row.scope}"])
        for row in table
        if row.issuer == claims["iss"]
        and {space, "*"} & {*row.spaces}
        and row.value in _words(claims.get(row.claim), None)
        and (row.claim != "email" or claims.get("email_verified") is True)
    ]
    return max(found, key=lambda one: (bool(one[0].person), one[1]), default=None)


def scope_right(scopes: list[str]) -> Right:
    """Return the right that the scopes of a token allow; each includes the lesser ones."""
    return max((SCOPES[scope] for scope in scopes if scope in SCOPES), default=Right.ANYONE)


class Issuer:
    """A provider and its keys, which are fetched when needed and not more often."""

    def __init__(self, url: str, jwks: str) -> None:
        self.url, self._jwks, self._lock = url, jwks, Lock()
        self._keys: dict[str, Json] = {}
        self._read_at = self._tried_at = -float("inf")
        parts = check_url(jwks, public_only=False)
        if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ValueError(f"{jwks} is not an https URL")

    def key(self, kid: object) -> Json | None:
        """Return a key by its id; unknown ids are looked for once in a while."""
        # A request with a known key does not wait while another one fetches keys.
        if self._lock.acquire(blocking=kid not in self._keys):
            try:
                self._read(kid, monotonic())
            finally:
                self._lock.release()
        return self._keys.get(kid) if isinstance(kid, str) else None

    def _read(self, kid: object, now: float) -> None:
        is_known = kid in self._keys and now - self._read_at < _FRESH_S
        if not is_known and now - self._tried_at >= COOLDOWN_S:
            self._tried_at = now
            # If that fails, the keys of before stay.
            with suppress(Unreachable, ValueError, KeyError, TypeError, RecursionError):
                keys = json.loads(fetch(self._jwks, _LIMITS)[1])["keys"]
                self._keys = {key["kid"]: key for key in keys if "kid" in key}
                self._read_at = now


class Identities:
    """The providers that a server trusts, for one resource and one space."""

    def __init__(
        self,
        issuers: list[Issuer],
        table: list[Grant],
        resource: str,
        space: str,
        people: Directory,
    ) -> None:
        self.issuers = {issuer.url: issuer for issuer in issuers}
        self._table, self._resource, self._space, self._people = table, resource, space, people

    def authenticate(self, token: str) -> Principal | None:
        """Return the principal of a JWT; None if anything about it is not in order."""
        import jwt  # only servers with providers need it

        if len(token) > MAX_TOKEN or not self.issuers:
            return None
        try:
            head = jwt.get_unverified_header(token)
            told = jwt.decode(token, options={"verify_signature": False})
            issuer = self.issuers[told["iss"]]
            is_plain = "crit" not in head and str(head.get("typ", "jwt")).lower() in _TYPES
            if not is_plain or head["alg"] not in ALGORITHMS:
                return None
            key = issuer.key(head.get("kid")) or {"alg": ""}
            if (key.get("alg", head["alg"]), key.get("use", "sig")) != (head["alg"], "sig"):
                return None
            claims = jwt.decode(
                token, jwt.PyJWK(key, head["alg"]), algorithms=[head["alg"]], issuer=issuer.url,
                audience=self._resource, leeway=SKEW_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )  # fmt: skip
        except (jwt.PyJWTError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        is_ours = claims["aud"] in (self._resource, [self._resource])
        return self._principal(claims) if is_ours and not _is_id_token(claims) else None

    def _principal(self, claims: Json) -> Principal | None:
        found = right_of(claims, self._table, self._space)
        if found is None:
            return None
        right = min(found[1], scope_right(_words(claims.get("scope", claims.get("scp")), " ")))
        client = str(claims.get("client_id") or claims.get("azp") or "-")
        key = hashlib.sha256(f"{claims['iss']}\n{claims['sub']}\n{client}".encode()).hexdigest()
        row, person = found[0], ""
        if row.person:  # who has left, or is no member, has no right
            known = [one for one in self._people.people() if one.name == row.person]
            role = self._people.right(self._space, known[0].id) if known else None
            if role is None:
                return None
            person, right = known[0].id, min(right, role)
        return Principal(row.name, right, key[:16], client, person)


def load_identities(folder: Path, resource: str, space: str) -> Identities:
    """Read the table of providers and identities; without the file there are none."""
    path = folder / FILE
    try:
        data = tomllib.loads(read_small_file(path).decode()) if path.exists() else {}
        issuers = [Issuer(**row) for row in data.get("issuer", [])]
        table = [_parse_grant(row) for row in data.get("grant", [])]
        if issuers and find_spec("jwt") is None:
            raise MissingExtra("the check of JWTs", extra="serve")
    except (OSError, ValueError, TypeError, KeyError, Unreachable) as error:
        raise BadSetting(f"{path} cannot be used: {error}", remedy="see docs/remote.md") from error
    return Identities(issuers, table, resource, space, Directory(folder))


def _parse_grant(row: Json) -> Grant:
    made = Grant(**row)
    if f"memory:{made.scope}" not in SCOPES or not isinstance(made.spaces, list):
        raise TypeError("a scope is read, write or admin, and spaces are a list")
    return made


def _is_id_token(claims: Json) -> bool:
    named = {str(claims.get("typ")), str(claims.get("token_use"))} & {"ID", "id"}
    return bool(named or _OF_ID_TOKENS & claims.keys()) or not {"scope", "scp"} & claims.keys()


def _words(value: object, between: str | None) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in value]
    return [] if value is None else str(value).split(between) if between else [str(value)]
