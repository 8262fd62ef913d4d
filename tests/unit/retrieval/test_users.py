"""Memories of several users in one space: whose they are, and who may see them."""

from __future__ import annotations

from typing import Any

import pytest

from bethink import Memory, Recall
from bethink.errors import Refused
from bethink.ports import Scope
from bethink.retrieval.query_builder import make_filters
from bethink.retrieval.scope import rejection_reason
from bethink.server.rest.operations import LIST_MEMORIES
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call, validate_arguments
from records import at, item
from rows import each_row
from verdicts import updates_nothing

ASKED = "where is the spare key of the pump house?"
PROFILES = ("default", "remind", "abmind", "memind-simple", "siftcoder", "linksee")


def ids(answer: Recall) -> list[str]:
    return [hit.item.id for hit in answer.hits]


def of(user: str, **fields: Any) -> dict[str, Any]:
    return {"metadata": {"user_id": user}, **fields}


def test_only_the_users_own_before_any_cut(memory: Memory) -> None:
    """One of three hundred is found, and no step of any profile lets another user's through."""
    drafts = [
        {"text": f"The spare key of pump house {n} is in box {n}", **of("ben", classification=2)}
        for n in range(300)
    ]
    with updates_nothing():
        memory.remember_many(drafts)
    own = memory.remember("The spare key of the pump house is at Ana's", **of("ana")).id

    for profile in PROFILES:
        answer = memory.recall(ASKED, profile=profile, user="ana", track=False)

        assert ids(answer) == [own], profile
        for step in answer.steps:
            assert {found.item.user for found in step.pool} <= {"ana", None}, profile
    assert [one.id for one in memory.browse(user="ana")] == [own]


def test_public_and_internal_memories_can_be_shared(memory: Memory) -> None:
    """Classes 0 and 1 are everybody's if shared, as in abmind always; 2 is its user's alone."""
    ours, hers, his, nobodys = (
        memory.remember(f"The spare key of the pump house: {n}", **fields).id
        for n, fields in enumerate(
            (
                of("ben", classification=1),
                of("ana", classification=2),
                of("ben", classification=2),
                {"classification": 2},
            )
        )
    )
    options: dict[str, Any] = {"user": "ana", "k": 10, "min_confidence": 0, "track": False}

    assert set(ids(memory.recall(ASKED, **options))) == {hers}
    for profile, extra in (("default", {"include_shared": True}), ("abmind", {})):
        found = ids(memory.recall(ASKED, profile=profile, **options, **extra))
        assert set(found) == {ours, hers}
    apart = memory.recall(ASKED, profile="abmind", **options, include_shared=False)
    assert set(ids(apart)) == {hers}
    assert {his, nobodys} <= {one.id for one in memory.browse()}


@each_row("value", [7, True, None, ["ana"], {"ana": 1}, '{"ana":1}'])
def test_a_user_is_a_text(memory: Memory, value: Any) -> None:
    """Other values of `user_id` are no user; SQL and Python say the same."""
    memory.remember("The key is in the box", metadata={"user_id": value})
    for asked in ("7", "1", "true", "ana", '["ana"]', '{"ana":1}'):
        scope = Scope(make_filters({"user": asked}, at()), at(days=900))
        found = memory.browse(user=asked)
        every = memory.browse()
        assert [one for one in every if rejection_reason(one, scope) is None] == found
        assert bool(found) == (value == asked)


def test_equal_words_of_two_users_are_two_memories(memory: Memory) -> None:
    """Neither is a duplicate, and neither corrects the other."""
    first = memory.remember("I live in Lisbon", **of("ana"))
    again = memory.remember("I live in Lisbon", **of("ana"))
    second = memory.remember("I live in Lisbon", **of("ben"))
    batch = memory.remember_many(
        [{"text": "My favourite tea is green", **of(user)} for user in ("ana", "ben")]
    )
    moved = memory.remember("I live in Porto", **of("ben"))

    assert (again.status, again.id) == ("duplicate", first.id)
    assert second.status == "stored"
    assert [one.status for one in batch] == ["stored", "stored"]
    assert memory.get(first.id).status == "active"
    assert [one.id for one in moved.collisions] == [second.id]
    assert moved.collisions[0].kind in ("supersedes", "related")


def test_an_unknown_user_is_named(memory: Memory) -> None:
    """An empty answer says which user has no memory, and the nearest that has one."""
    memory.remember("The spare key of the pump house is at Ana's", **of("ana"))

    answer = memory.recall(ASKED, user="anna")

    assert any("no memory has the user 'anna'; did you mean 'ana'?" in w for w in answer.warnings)
    reason = rejection_reason(
        item("a", metadata={"user_id": "ben"}), Scope(make_filters({"user": "ana"}, at()), at())
    )
    assert reason == "has user 'ben', not 'ana'"
    with pytest.raises(Refused):
        memory.recall(ASKED, user=3)


def test_agents_and_programs_give_and_ask_for_users(memory: Memory) -> None:
    """`remember`, `recall` and the list of memories take `user`."""

    def ask(name: str, **told: Any) -> dict[str, Any]:
        tool = LIST_MEMORIES if name == "list_memories" else TOOLS[name]
        return tool(Call(memory, validate_arguments(told, tool.input_schema))).content

    stored = [
        ask("remember", text=f"The spare key of the pump house is at {user}'s", user=user)["id"]
        for user in ("ana", "ben")
    ]

    assert [memory.get(one).user for one in stored] == ["ana", "ben"]
    for name, told in (("recall", {"query": ASKED}), ("list_memories", {})):
        found = ask(name, user="ben", **told)["memories"]
        assert [one["id"] for one in found] == stored[1:]


def test_a_relation_shows_nothing_of_another_user(memory: Memory) -> None:
    """Who asks for one user's memories is told of no other's, by no link either."""
    own = memory.remember("The spare key of the pump house is at Ana's", **of("ana"))
    other = memory.remember("The spare key of the pump house is under Ben's mat", **of("ben"))
    memory.link(own.id, "contradicts", other.id)

    asked = memory.recall(ASKED, user="ana", track=False)
    both = memory.recall(ASKED, track=False)

    assert ids(asked) == [own.id]
    assert (asked.relations, asked.warnings) == ((), ())
    assert {relation.other for relation in both.relations} == {own.id, other.id}
