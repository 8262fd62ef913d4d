"""JWTs of outside providers: every way in which one may be wrong, and who may do what."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from bethink.access import identities
from bethink.access.identities import Grant, Identities, Issuer, load_identities
from bethink.access.outbound import Unreachable
from bethink.access.people import Directory
from bethink.access.policy import Right
from bethink.errors import BadSetting
from rows import each_row

ISSUER = "https://login.example.org"
RESOURCE = "https://memory.example.org/mcp"
RSA = rsa.generate_private_key(65_537, 2048)
OTHER = rsa.generate_private_key(65_537, 2048)
EC = ec.generate_private_key(ec.SECP256R1())
TABLE = [
    Grant(ISSUER, "anna-1", "write", ["work"], "anna"),
    Grant(ISSUER, "ben-2", "read", ["*"], "ben"),
    Grant(ISSUER, "admins", "admin", ["work"], "admin", "groups"),
]


def jwk(key: Any, kid: str, **more: str) -> dict[str, Any]:
    made = jwt.get_algorithm_by_name("ES256" if key is EC else "RS256").to_jwk(key.public_key())
    return {**json.loads(made), "kid": kid, **more}


class Provider:
    """A provider's keys, and how often they were asked for."""

    def __init__(self) -> None:
        self.keys = [jwk(RSA, "one", alg="RS256"), jwk(EC, "two"), jwk(RSA, "secret", use="enc")]
        self.asked = 0
        self.is_down = False

    def fetch(self, url: str, limits: object) -> tuple[int, bytes]:
        self.asked += 1
        if self.is_down:
            raise Unreachable("it is away")
        return 200, json.dumps({"keys": self.keys}).encode()


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Provider:
    made = Provider()
    monkeypatch.setattr(identities, "fetch", made.fetch)
    return made


def trusting(space: str = "work") -> Identities:
    issuers = [Issuer(ISSUER, f"{ISSUER}/jwks")]
    return Identities(issuers, TABLE, RESOURCE, space, Directory(Path("missing")))


def claims(**changed: Any) -> dict[str, Any]:
    now = int(time.time())
    made = {"iss": ISSUER, "aud": RESOURCE, "sub": "anna-1", "iat": now, "exp": now + 300,
            "scope": "memory:read memory:write", "client_id": "host"}  # fmt: skip
    return {name: value for name, value in (made | changed).items() if value is not None}


def token(told: dict[str, Any], key: Any = RSA, alg: str = "RS256", **head: Any) -> str:
    named = {"kid": "two" if key is EC else "one", "typ": "at+jwt"} | head
    return jwt.encode(told, key, algorithm=alg, headers=named)


def test_a_good_token_is_its_person(provider: Provider) -> None:
    """With the key of either kind; the same person through another host is another caller."""
    found = trusting().authenticate(token(claims()))
    assert found is not None
    assert (found.name, found.right, found.client) == ("anna", Right.WRITE, "host")
    assert trusting().authenticate(token(claims(), EC, "ES256")) == found
    assert trusting().authenticate(token(claims(aud=[RESOURCE]), typ="JWT")) == found
    other = trusting().authenticate(token(claims(client_id="another")))
    assert other is not None
    assert other.key != found.key


def unsigned(told: dict[str, Any]) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"one"}').rstrip(b"=").decode()
    body = base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()
    return f"{head}.{body}."


def by_public_key(told: dict[str, Any]) -> str:
    """HS256 with the provider's public key, which everybody has, as the secret."""
    pem = RSA.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"one","typ":"at+jwt"}').rstrip(b"=")
    body = base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")
    algorithm = jwt.get_algorithm_by_name("HS256")
    code = algorithm.sign(head + b"." + body, pem)
    return (head + b"." + body + b"." + base64.urlsafe_b64encode(code).rstrip(b"=")).decode()


NOW = int(time.time())
WRONG: dict[str, Callable[[], str]] = {
    "another audience": lambda: token(claims(aud="https://other.example.org/mcp")),
    "two audiences": lambda: token(claims(aud=[RESOURCE, "https://other.example.org"])),
    "a prefix of the audience": lambda: token(claims(aud="https://memory.example.org")),
    "no audience": lambda: token(claims(aud=None)),
    "another issuer": lambda: token(claims(iss="https://evil.example.org")),
    "the issuer with a slash": lambda: token(claims(iss=f"{ISSUER}/")),
    "no issuer": lambda: token(claims(iss=None)),
    "expired": lambda: token(claims(exp=NOW - 120)),
    "no expiry": lambda: token(claims(exp=None)),
    "not yet": lambda: token(claims(nbf=NOW + 86_400)),
    "no subject": lambda: token(claims(sub=None)),
    "an unknown subject": lambda: token(claims(sub="eve-9")),
    "another key": lambda: token(claims(), OTHER),
    "an unknown key id": lambda: token(claims(), kid="three"),
    "no key id": lambda: token(claims(), kid=""),
    "a key for encryption": lambda: token(claims(), kid="secret"),
    "another algorithm of the key": lambda: token(claims(), RSA, "RS512"),
    "a key of another kind": lambda: token(claims(), EC, "ES256", kid="one"),
    "not signed": lambda: unsigned(claims()),
    "HS256 with the public key": lambda: by_public_key(claims()),
    "a critical extension": lambda: token(claims(), crit=["b64"], b64=True),
    "an ID token by its type": lambda: token(claims(typ="ID")),
    "an ID token by its use": lambda: token(claims(token_use="id")),
    "an ID token by its nonce": lambda: token(claims(nonce="x")),
    "an ID token by its hash": lambda: token(claims(at_hash="x")),
    "an ID token without a scope": lambda: token(claims(scope=None)),
    "a logout token": lambda: token(claims(), typ="logout+jwt"),
    "too long": lambda: token(claims(more="x" * 9000)),
    "cut": lambda: token(claims())[:-3],
    "nothing": lambda: "",
    "no JWT": lambda: "a.b.c",
    "a list": lambda: "W10.W10.W10",
    "a deep one": lambda: f"{base64.urlsafe_b64encode(b'[' * 5000).decode().rstrip('=')}.W10.W10",
}


@each_row("why", WRONG)
def test_what_is_wrong_with_a_token(provider: Provider, why: str) -> None:
    """Each of these is refused, and no sentence says why."""
    assert trusting().authenticate(WRONG[why]()) is None


def test_clocks_may_differ_by_a_minute(provider: Provider) -> None:
    """And no more."""
    now = int(time.time())
    assert trusting().authenticate(token(claims(exp=now - 30)))
    assert trusting().authenticate(token(claims(nbf=now + 30, iat=now + 30)))


@each_row(
    "told",
    [
        ({"scope": "memory:write"}, Right.WRITE),  # write implies read
        ({"scope": "memory:read"}, Right.READ),
        ({"scope": "memory:admin"}, Right.WRITE),  # the table allows no more
        ({"scope": "openid profile"}, Right.ANYONE),
        ({"scope": None, "scp": ["memory:read"]}, Right.READ),
        ({"sub": "ben-2", "scope": "memory:admin"}, Right.READ),
        ({"sub": "x", "groups": ["staff", "admins"], "scope": "memory:admin"}, Right.ADMIN),
        ({"sub": "x", "groups": "admins", "scope": "memory:write"}, Right.WRITE),
        ({"groups": ["admins"], "scope": "memory:admin"}, Right.ADMIN),
    ],
)
def test_a_right_is_the_lesser_of_table_and_token(
    provider: Provider, told: tuple[dict[str, Any], Right]
) -> None:
    """By the person, or by any other claim."""
    found = trusting().authenticate(token(claims(**told[0])))
    assert found is not None
    assert found.right == told[1]


def test_a_person_is_known_in_the_spaces_of_the_row(provider: Provider) -> None:
    """And nowhere else."""
    assert trusting("home").authenticate(token(claims())) is None
    assert trusting("home").authenticate(token(claims(sub="ben-2")))


def test_a_thousand_unknown_keys_are_one_request(provider: Provider) -> None:
    """Nobody makes the server ask its provider over and over."""
    known = trusting()
    for number in range(1000):
        assert known.authenticate(token(claims(), EC, "ES256", kid=f"k{number}")) is None
    assert provider.asked == 1
    assert known.authenticate(token(claims())) is not None
    assert provider.asked == 1


def test_keys_are_exchanged_while_it_runs(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one is found, one that was taken away ends, and a provider may be away for a while."""
    now = [1000.0]
    monkeypatch.setattr(identities, "monotonic", lambda: now[0])
    known = trusting()
    assert known.authenticate(token(claims()))
    provider.keys = [jwk(OTHER, "new")]
    new = token(claims(), OTHER, kid="new")
    assert known.authenticate(new) is None  # it has just been asked
    now[0] += 61
    assert known.authenticate(new)
    assert known.authenticate(token(claims())) is None
    provider.is_down = True
    now[0] += 3600
    assert known.authenticate(new)
    provider.is_down, provider.keys = False, []
    now[0] += 61
    assert known.authenticate(new) is None


def test_known_keys_do_not_wait_for_the_provider(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While somebody with an unknown key makes the server ask, the others are let in."""
    now, asked, ended = [1000.0], threading.Event(), threading.Event()
    monkeypatch.setattr(identities, "monotonic", lambda: now[0])
    known, unknown = trusting(), token(claims(), kid="unknown")
    assert known.authenticate(token(claims()))
    now[0] += 61
    monkeypatch.setattr(
        identities, "fetch", lambda *_: (asked.set(), ended.wait(60), (200, b"{}"))[2]
    )
    slow = threading.Thread(target=known.authenticate, args=(unknown,))
    slow.start()
    assert asked.wait(60)
    quick = threading.Thread(target=known.authenticate, args=(token(claims()),))
    quick.start()
    quick.join(30)
    is_waiting = quick.is_alive()
    ended.set()
    slow.join()
    assert not is_waiting


@each_row(
    "text",
    ["[[issuer]]\nurl = 'x'", "[[issuer]]\nurl = 'https://a.example'\njwks = 'http://a.example/k'",
     "[[grant]]\nissuer = 'x'\nvalue = 'y'\nscope = 'owner'\nspaces = ['*']\nname = 'z'",
     "[[grant]]\nissuer = 'x'\nvalue = 'y'\nscope = 'read'\nspaces = '*'\nname = 'z'",
     "[[grant]]\nissuer = 'x'", "[[issuer]", "[[issuer]]\nurl = 'https://a.example'\nextra = 1"],
)  # fmt: skip
def test_a_file_that_is_wrong_is_told(tmp_path: Path, text: str) -> None:
    """When the server starts; nobody gets a right by a mistake."""
    (tmp_path / "oauth.toml").write_text(text)
    with pytest.raises(BadSetting, match=r"oauth\.toml"):
        load_identities(tmp_path, RESOURCE, "work")


def test_without_a_file_there_is_nobody(tmp_path: Path, provider: Provider) -> None:
    """And no key is asked for."""
    known = load_identities(tmp_path, RESOURCE, "work")
    assert not known.issuers
    assert known.authenticate(token(claims())) is None
    assert provider.asked == 0


def test_an_identity_may_be_a_person_of_the_space(provider: Provider, tmp_path: Path) -> None:
    """The role limits the row; who has left, or has an unverified address, is refused."""
    people = Directory(tmp_path)
    people.add("owner", "work", "owner")
    anna = people.add("anna", "work", "reader").id
    row = Grant(ISSUER, "anna@example.org", "write", ["work"], "anna", "email", "anna")
    issuers = [Issuer(ISSUER, f"{ISSUER}/jwks")]
    found = Identities(issuers, [*TABLE, row], RESOURCE, "work", people)

    def caller(is_verified: bool = True) -> tuple[str, Right] | None:
        mail = {"sub": "other", "email": "anna@example.org", "email_verified": is_verified}
        principal = found.authenticate(token(claims(**mail)))
        return principal and (principal.person, principal.right)

    reading = caller()
    people.set_role("anna", "work", "maintainer")

    assert reading == (anna, Right.READ)
    assert caller() == (anna, Right.WRITE)
    assert caller(is_verified=False) is None
    people.remove("anna", "work")
    assert caller() is None
