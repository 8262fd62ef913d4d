"""Connections: tokens that are rotated, used once, and ended when somebody else has them."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bethink.access.connections import (
    ACCESS_S,
    FILE,
    GRACE_S,
    MAX_CLIENTS,
    REFRESH_S,
    SIGN_IN_S,
    Connections,
)
from bethink.access.policy import Right


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(tmp_path: Path, clock: Clock) -> Connections:
    return Connections(tmp_path, clock)


def opened(kept: Connections, right: Right = Right.WRITE) -> Any:
    return kept.open("https://host.example/id", "A Host", right, "work")[1]


def is_live(kept: Connections, tokens: Any) -> bool:
    return kept.authenticate(tokens["access_token"], "work") is not None


def test_a_sign_in_code_works_once_in_its_space(kept: Connections, clock: Clock) -> None:
    """Within ten minutes, and only as it was printed."""
    code = kept.make_code(Right.WRITE, "work")
    assert kept.take_code(code, "home") is None
    assert kept.take_code(code + "x", "work") is None
    assert kept.take_code("", "work") is None
    assert kept.take_code(code, "work") is Right.WRITE
    assert kept.take_code(code, "work") is None
    late = kept.make_code(Right.READ, "work")
    clock.now += SIGN_IN_S
    assert kept.take_code(late, "work") is None


def test_only_one_of_many_takes_a_code(tmp_path: Path) -> None:
    """In whatever process they are."""
    code = Connections(tmp_path).make_code(Right.WRITE, "work")
    with ThreadPoolExecutor(8) as pool:
        taken = list(pool.map(lambda _: Connections(tmp_path).take_code(code, "work"), range(8)))
    assert taken.count(Right.WRITE) == 1


def test_an_access_token_lives_an_hour_in_its_space(kept: Connections, clock: Clock) -> None:
    """With the right it was given."""
    tokens = opened(kept)
    found = kept.authenticate(tokens["access_token"], "work")
    assert found is not None
    assert (found.right, found.client) == (Right.WRITE, "https://host.example/id")
    assert tokens["scope"] == "memory:read memory:write"
    assert kept.authenticate(tokens["access_token"], "home") is None
    assert kept.authenticate(tokens["refresh_token"], "work") is None
    clock.now += ACCESS_S
    assert not is_live(kept, tokens)


def test_only_hashes_are_kept_in_a_private_file(tmp_path: Path, kept: Connections) -> None:
    """Nothing in the file helps who reads it."""
    tokens, code = opened(kept), kept.make_code(Right.READ, "work")
    renewed = kept.refresh(tokens["refresh_token"], "https://host.example/id")
    assert renewed is not None
    text = (tmp_path / FILE).read_text()
    for secret in (code, *tokens.values(), *renewed.values()):
        assert str(secret) not in text or secret in ("Bearer", ACCESS_S, "memory:read memory:write")
    family = tokens["refresh_token"].partition("_")[2].partition(".")[0]
    assert family not in text
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_a_refresh_token_is_exchanged_for_a_new_one(kept: Connections, clock: Clock) -> None:
    """Its caller stays the same one, so that its sessions go on; 30 days from the last time."""
    tokens = opened(kept)
    before = kept.authenticate(tokens["access_token"], "work")
    for _ in range(5):
        clock.now += REFRESH_S - 1
        tokens = kept.refresh(tokens["refresh_token"], "https://host.example/id")
        assert tokens is not None
        assert kept.authenticate(tokens["access_token"], "work") == before
    clock.now += REFRESH_S
    assert kept.refresh(tokens["refresh_token"], "https://host.example/id") is None


def test_hosts_that_refresh_in_parallel_all_go_on(tmp_path: Path) -> None:
    """Each gets tokens that are alive."""
    first = opened(Connections(tmp_path))

    def refresh(_: int) -> Any:
        own = Connections(tmp_path)
        return own.refresh(first["refresh_token"], "https://host.example/id")

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(refresh, range(6)))
    assert all(is_live(Connections(tmp_path), tokens) for tokens in found)
    assert len({tokens["refresh_token"] for tokens in found}) == 6
    # One of them stays: the host has kept the last it got.
    again = Connections(tmp_path).refresh(found[3]["refresh_token"], "https://host.example/id")
    assert again is not None


def test_a_late_replay_ends_the_connection(kept: Connections, clock: Clock) -> None:
    """Somebody has a copy: nobody's tokens count any more."""
    first = opened(kept)
    second = kept.refresh(first["refresh_token"], "https://host.example/id")
    clock.now += GRACE_S + 1
    assert kept.refresh(first["refresh_token"], "https://host.example/id") is None
    assert not is_live(kept, second)
    assert kept.refresh(second["refresh_token"], "https://host.example/id") is None  # type: ignore[index]


def test_a_thief_and_an_owner_do_not_go_on_side_by_side(kept: Connections, clock: Clock) -> None:
    """Both refreshed within the minute; the second who comes later ends it for both."""
    first = opened(kept)
    owner: Any = kept.refresh(first["refresh_token"], "https://host.example/id")
    thief: Any = kept.refresh(first["refresh_token"], "https://host.example/id")
    clock.now += ACCESS_S
    owner = kept.refresh(owner["refresh_token"], "https://host.example/id")
    clock.now += ACCESS_S - 1
    assert kept.refresh(thief["refresh_token"], "https://host.example/id") is None
    assert not is_live(kept, owner)


def test_a_forged_token_ends_nothing(kept: Connections) -> None:
    """Only who has had a token of the family can end it."""
    tokens = opened(kept)
    family = tokens["refresh_token"].split(".")[0]
    for forged in ("", "btr_", "btr_x.0.y", "btr_.0.", f"{family}.0.{'A' * 43}", f"{family}.9.A",
                   f"{family}.{'9' * 5000}.A", f"{family}.x.A", family):  # fmt: skip
        assert kept.refresh(forged, "https://host.example/id") is None
    assert kept.refresh(tokens["refresh_token"], "https://other.example/id") is None
    kept.revoke("")
    kept.revoke("btr_x.0.y")
    assert is_live(kept, tokens)


@pytest.mark.parametrize("kind", ["access_token", "refresh_token"])
def test_a_host_can_end_its_connection(kept: Connections, kind: str) -> None:
    """By either token; others stay."""
    tokens, other = opened(kept), opened(kept)
    kept.revoke(tokens[kind])
    assert not is_live(kept, tokens)
    assert kept.refresh(tokens["refresh_token"], "https://host.example/id") is None
    assert is_live(kept, other)


def test_connections_are_listed_and_ended_by_name(kept: Connections) -> None:
    """Like tokens, and their names are told apart."""
    tokens, _ = opened(kept), opened(kept, Right.READ)
    names = [one.name for one in kept.all()]
    assert len({*names}) == 2
    assert all(name.startswith("a-host-") for name in names)
    assert kept.revoke_named(names[0])
    assert not kept.revoke_named(names[0])
    assert not is_live(kept, tokens)
    assert [one.name for one in kept.all()] == names[1:]


def test_registered_clients_are_limited(kept: Connections) -> None:
    """The oldest make way; connections stay."""
    tokens = opened(kept)
    told = {"client_name": "x", "redirect_uris": ["https://host.example/cb"]}
    made = [kept.register(told) for _ in range(MAX_CLIENTS + 5)]
    assert kept.registered(made[0]) is None
    assert kept.registered(made[-1]) is not None
    assert kept.registered("") is None
    assert is_live(kept, tokens)
