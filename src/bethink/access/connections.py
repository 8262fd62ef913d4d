"""Connections: what hosts were allowed by consent, with tokens that are stored as hashes.

A sign-in code from the command line works once and allows one connection. Its access token
lives an hour. Each refresh begins a new generation of tokens; the one before is taken for a
minute more, because hosts refresh in parallel, and any older one ends the connection: somebody
else has it.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from bethink.access.identities import SCOPES
from bethink.access.policy import Principal, Right
from bethink.access.private_file import PrivateFile
from bethink.access.tokens import Token, hash_secret
from bethink.config.paths import config_folder
from bethink.core.json_values import Json

FILE = "connections.json"
ACCESS, REFRESH = "bta_", "btr_"
SIGN_IN_S, ACCESS_S, REFRESH_S, GRACE_S = 600, 3600, 30 * 86_400, 60
MAX_CLIENTS = 100  # registered ones
_MAX_TOKENS = 32  # of a generation, and access tokens of a connection


class Connections:
    """Sign-in codes, registered clients and connections in one private file."""

    def __init__(self, folder: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        path = (folder or config_folder()) / FILE
        self._file = PrivateFile[Json](path, "connections", dict, dict)
        self._clock = clock

    def make_code(self, right: Right, space: str) -> str:
        """Return a code with which a person allows one connection, within ten minutes."""
        code = secrets.token_urlsafe(24)
        row = {"type": "code", "hash": hash_secret(code), "right": right, "space": space}
        self._add(row | {"until": self._clock() + SIGN_IN_S})
        return code

    def take_code(self, code: str, space: str) -> Right | None:
        """Return what a sign-in code allows in a space, once."""
        with self._file.transaction() as kept:
            for row in kept:
                is_it = row["type"] == "code" and row["hash"] == hash_secret(code)
                if is_it and row["space"] == space and row["until"] > self._clock():
                    kept.remove(row)
                    return Right(row["right"])
        return None

    def register(self, client: Json) -> str:
        """Keep a client that registers itself; of too many the oldest is dropped."""
        client_id = secrets.token_urlsafe(24)
        self._add({"type": "client", "id": client_id, "until": float("1e12"), **client})
        with self._file.transaction() as kept:
            for row in [row for row in kept if row["type"] == "client"][:-MAX_CLIENTS]:
                kept.remove(row)
        return client_id

    def registered(self, client_id: str) -> Json | None:
        """Return a client that has registered itself."""
        found = (row for row in self._file.read() if row.get("id") == client_id)
        return next(found, None)

    def open(self, client: str, name: str, right: Right, space: str) -> tuple[str, Json]:
        """Open a connection and return its family and the first tokens."""
        family, now = secrets.token_urlsafe(16), self._clock()
        plain = re.sub(r"[^a-z0-9._-]+", "-", name.lower()).strip("-.")[:40] or "client"
        row = {"type": "connection", "family": hash_secret(family), "client": client,
               "name": f"{plain}-{secrets.token_hex(3)}", "right": right, "space": space,
               "created": now, "until": now + REFRESH_S, "generation": 0, "rotated": now,
               "refresh": {}, "access": {}}  # fmt: skip
        row, tokens = self._issue(row, family)
        self._add(row)
        return family, tokens

    def refresh(self, token: str, client: str) -> Json | None:
        """Return new tokens; None if the refresh token is not valid, or ends its connection."""
        parts = re.fullmatch(rf"{REFRESH}(.+)\.([0-9]{{1,9}})\.[^.]*", token)
        if parts is None:
            return None
        family, number, now = parts[1], int(parts[2]), self._clock()
        with self._file.transaction() as kept:
            row = next((row for row in kept if row.get("family") == hash_secret(family)), None)
            if row is None or row["client"] != client or row["until"] <= now:
                return None
            place, is_known = kept.index(row), hash_secret(token) in row["refresh"]
            age = row["generation"] - number
            if is_known and age == 0:
                # What is two generations old is not needed: that it is old tells enough.
                last = {key: value for key, value in row["refresh"].items() if value >= number}
                row = row | {"generation": number + 1, "rotated": now, "refresh": last}
            elif not (is_known and age == 1 and now - row["rotated"] <= GRACE_S):
                if age > 0:
                    kept.remove(row)
                return None
            kept[place], tokens = self._issue(row, family)
        return tokens

    def _issue(self, row: Json, family: str) -> tuple[Json, Json]:
        now, right = self._clock(), Right(row["right"])
        access = ACCESS + secrets.token_urlsafe(32)
        refresh = f"{REFRESH}{family}.{row['generation']}.{secrets.token_urlsafe(32)}"
        alive = [one for one in row["access"].items() if one[1] > now][1 - _MAX_TOKENS :]
        known = [*row["refresh"].items()][1 - _MAX_TOKENS :]
        made = row | {
            "until": now + REFRESH_S,
            "access": dict(alive) | {hash_secret(access): now + ACCESS_S},
            "refresh": dict(known) | {hash_secret(refresh): row["generation"]},
        }
        scopes = " ".join(scope for scope, needed in SCOPES.items() if needed <= right)
        return made, {"access_token": access, "token_type": "Bearer", "expires_in": ACCESS_S,
                      "refresh_token": refresh, "scope": scopes}  # fmt: skip

    def authenticate(self, token: str, space: str) -> Principal | None:
        """Return the principal of an access token; its key stays the same when it is renewed."""
        hashed, now = hash_secret(token), self._clock()
        for row in self._file.read():
            if row.get("access", {}).get(hashed, 0) > now and row["space"] == space:
                return Principal(
                    row["name"], Right(row["right"]), row["family"][:16], row["client"]
                )
        return None

    def revoke(self, token: str) -> None:
        """End the connection that a token of either kind belongs to, if any."""
        family = hash_secret(token.removeprefix(REFRESH).partition(".")[0])
        hashed = hash_secret(token)
        self._file.drop(lambda row: row.get("family") == family or hashed in row.get("access", {}))

    def revoke_named(self, name: str) -> bool:
        """End a connection by its name in lists; return whether there was one."""
        return self._file.drop(lambda row: row.get("name") == name) > 0

    def all(self) -> list[Token]:
        """Return the connections as lists show them: like tokens."""
        return [
            Token(
                row["name"], row["family"], Right(row["right"]), (row["space"],),
                datetime.fromtimestamp(row["created"], UTC),
                datetime.fromtimestamp(row["until"], UTC),
            )
            for row in self._file.read()
            if row["type"] == "connection"
        ]  # fmt: skip

    def _add(self, row: Json) -> None:
        with self._file.transaction() as kept:
            kept[:] = [one for one in kept if one["until"] > self._clock()] + [row]
