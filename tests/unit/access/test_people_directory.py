"""The directory of people: who is in which space, with which role."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bethink.access.people import FILE, Directory
from bethink.access.policy import Principal, Right, permits
from bethink.access.tokens import ANY_SPACE, TokenStore
from bethink.errors import BadSetting, BethinkError, Forbidden, Refused
from rows import each_row


def test_roles_are_of_a_space_and_are_read_again(tmp_path: Path) -> None:
    """Two directories of one file agree; a role of one space is none of another."""
    one, other = Directory(tmp_path), Directory(tmp_path)
    anna = one.add("anna", "team", "owner")
    one.add("ben", "team", "reader")

    assert other.right("team", anna.id) is Right.ADMIN
    assert other.right("ops", anna.id) is None
    assert other.set_role("ben", "team", "writer") == "reader"
    assert one.right("team", one.find("ben").id) is Right.WRITE
    assert one.add("anna", "ops", "reader").id == anna.id
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_space_keeps_an_owner(tmp_path: Path) -> None:
    """The last one neither leaves nor steps down while others stay; alone anybody may go."""
    people = Directory(tmp_path)
    people.add("anna", "team", "owner")
    people.add("ben", "team", "writer")
    with pytest.raises(Refused):
        people.remove("anna", "team")
    with pytest.raises(Refused):
        people.set_role("anna", "team", "writer")
    assert set(people.roles("team").values()) == {"owner", "writer"}
    people.remove("ben", "team")
    people.remove("anna", "team")
    assert people.people() == ()
    assert people.roles("team") == {}


def test_shelves_are_of_those_who_are_named(tmp_path: Path) -> None:
    """A set of people has one; who leaves sees it no more, and a later set is another."""
    people = Directory(tmp_path)
    anna, ben, carl = (people.add(name, "team", "owner").id for name in ("anna", "ben", "carl"))
    key = people.shelf_for("team", [ben, anna])
    assert people.shelf_for("team", [anna, ben, anna]) == key
    assert people.shelf_for("team", [anna]) == people.own_shelf("team", anna)
    assert key in people.shelves("team", anna)
    assert key not in people.shelves("team", carl)
    people.remove("ben", "team")
    assert people.shelves("team", anna)[key] == (anna,)
    assert people.shelves("team", ben) == {}
    with pytest.raises(Forbidden):
        people.shelf_for("team", [anna, ben])


@each_row("name", ["", "Anna", "space", "private", "a b", "x" * 65, "../etc"])
def test_odd_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Refused):
        Directory(tmp_path).add(name, "team", "owner")


@each_row("content", [b"", b"[]", b"{}", b'{"version": 9}', b'{"version": 1, "people": [{}]}',
                      b'{"version": 1, "people": 3, "spaces": []}'])  # fmt: skip
def test_a_damaged_file_lets_nobody_in(tmp_path: Path, content: bytes) -> None:
    """Neither is it written over."""
    (tmp_path / FILE).write_bytes(content)
    (tmp_path / FILE).chmod(0o600)
    tokens = TokenStore(tmp_path)
    secret = tokens.create("t", Right.ADMIN, (ANY_SPACE,), person="p1")
    with pytest.raises(BadSetting):
        tokens.people.people()
    with suppress(BadSetting):
        assert tokens.authenticate(secret, "t", datetime.now(UTC)) is None
    with pytest.raises(BethinkError):
        Directory(tmp_path).add("anna", "team", "owner")
    assert (tmp_path / FILE).read_bytes() == content


def test_a_token_of_a_person_has_the_lower_right(tmp_path: Path) -> None:
    """Of its own scope and of the role of now; it ends with the membership."""
    tokens = TokenStore(tmp_path)
    now = datetime.now(UTC)
    anna = tokens.people.add("anna", "team", "owner")
    tokens.people.add("ben", "team", "owner")
    wide = tokens.create("wide", Right.ADMIN, (ANY_SPACE,), person=anna.id)
    narrow = tokens.create("narrow", Right.READ, ("team",), person=anna.id)

    def right(secret: str, space: str = "team") -> Right | None:
        found = tokens.authenticate(secret, space, now)
        return None if found is None else found.right

    assert (right(wide), right(narrow), right(wide, "ops")) == (Right.ADMIN, Right.READ, None)
    tokens.people.set_role("anna", "team", "writer")
    assert (right(wide), right(narrow)) == (Right.WRITE, Right.READ)
    scopes = [one["scope"] for one in json.loads(tokens.path.read_text())["tokens"]]
    assert scopes == ["person-admin", "person-read"]  # which an earlier version cannot read
    tokens.people.remove("anna", "team")
    assert (right(wide), right(narrow)) == (None, None)
    assert tokens.revoke_person(anna.id) == 2
    assert tokens.all() == ()


def test_people_may_erase_what_is_theirs_and_see_no_counts_of_others() -> None:
    """What the memory itself looks at, a writer may ask for; metrics tell of all."""
    anna = Principal("anna", Right.WRITE, "key", person="p1")
    assert permits(anna, "forget with erase")
    assert not permits(anna._replace(right=Right.READ), "forget with erase")
    assert not permits(anna._replace(right=Right.ADMIN), "metrics")
    assert not permits(anna._replace(person=""), "forget with erase")


def test_a_file_that_others_may_write_is_not_read(tmp_path: Path) -> None:
    people = Directory(tmp_path)
    people.add("anna", "team", "owner")
    people.path.chmod(0o622)
    os.utime(people.path, ns=(1, 1))
    with pytest.raises(BadSetting, match="other users can write"):
        people.people()
