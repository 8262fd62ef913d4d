"""A correction replaces what it corrects; what cannot be settled is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from bethink.config.settings import Settings
from bethink.core.ids import IdGenerator
from bethink.errors import Refused
from bethink.ingest.pipeline import WriteContext, remember
from bethink.memory import Memory
from bethink.model import Collision, Draft, Remembered
from bethink.testing import FixedClock
from fallible import overtaken
from rows import each_row

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OLD, NEW = "The deploy key is in vault A", "The deploy key moved to vault B"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", settings=Settings(), clock=clock) as opened:
        yield opened


def after(clock: FixedClock, memory: Memory, text: str, **about: object) -> Remembered:
    """Remembers a minute later."""
    clock.forward(minutes=1)
    return memory.remember(text, **about)


def met(answer: Remembered) -> list[tuple[str, str]]:
    return [(collision.kind, collision.id) for collision in answer.collisions]


def recalled(memory: Memory, question: str) -> list[str]:
    return [hit.item.text for hit in memory.recall(question).hits]


def statuses(memory: Memory, *answers: Remembered) -> list[str]:
    return [memory.get(answer.id).status for answer in answers]


def links(memory: Memory, answer: Remembered, kind: str) -> list[str]:
    found = memory.store.graph.links_of([answer.id], [kind], incoming=False)
    return [link.dst.id for link in found]


def test_a_correction_beats_what_it_corrects(memory, clock):
    """The old one is superseded, linked and named; the new one alone is recalled."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)

    assert met(new) == [("supersedes", old.id)]
    assert new.collisions[0].resolve == f"bethink undo {old.id}"
    assert statuses(memory, old, new) == ["superseded", "active"]
    assert links(memory, new, "supersedes") == [old.id]
    assert recalled(memory, "where is the deploy key") == [NEW]
    told = memory.recall("where is the deploy key").relations
    assert [(relation.type, relation.other) for relation in told] == [("supersedes", old.id)]


PAIRS = """
The API timeout is 30 s | The API timeout is 45 s
The API timeout is 30 s | The API timeout was raised from 30 s to 45 s
The API timeout is 30 s | We lowered the API timeout to 10 s
Ben works at Acme | Ben works at Globex
Ben works at Acme | Ben no longer works at Acme
My favourite colour is green | My favourite colour is blue
Production runs on eu-west-1 | Production moved to us-east-1
The daily stand-up is at 9:30 | Since January the daily stand-up is at 10:15
Releases are on Fridays | Releases are now on Mondays
The meeting is on Friday | The meeting moved to Monday
We use PostgreSQL 16 for billing | We use PostgreSQL 17 for billing
We use MySQL for billing | We switched from MySQL to CockroachDB for billing
We use Jenkins | We replaced Jenkins with Buildkite
We use Redis | We no longer use Redis
We no longer use Redis | We use Redis
The base branch is develop | The base branch was changed to main
Ana owns the billing module | Ben took over the billing module from Ana
The service is called ferry | The service was renamed to heron-api
Ana's phone number is 555-0142 | Ana's new phone number is 555-0199
The limit for uploads is 5 MB | The limit for uploads is 20 MB
"""
CONTRADICTIONS = """
We use Redis | We do not use Redis
The parser supports YAML | The parser does not support YAML
The deploy key is in vault A | The deploy key is not in vault A
We use pytest for tests | We use nose for tests
The limit is 7 | The limit was raised from 5 to 10
"""
BOTH = """
The deploy key is in vault A | The signing key is in vault B
The API timeout is 30 s | The database timeout is 60 s
Ana's phone number is 555-0142 | Ben's phone number is 555-0199
We use Redis | We use PostgreSQL
We use Redis | We also use Memcached
The meeting is on Friday | The meeting is on Monday
The deploy key is in vault A | The deploy key is in vault A in the safe
The deploy key is in vault A | The deploy key is not in vault B
The deploy key is in vault A | The deploy key may be in vault B
The deploy key is in vault A | We plan to move the deploy key to vault B
The deploy key is in vault A | Is the deploy key in vault B?
The deploy key is in vault A | The deploy key was in vault B
The deploy key is in vault A | The deploy key expires in June
The limit is 5 | The limit was reached
Ben moved to Berlin | Ben is in Hamburg
"""


def pairs(table: str) -> list[tuple[str, str]]:
    rows = (line.split("|") for line in table.strip().splitlines())
    return [(old.strip(), new.strip()) for old, new in rows]


@each_row(("first", "second"), pairs(PAIRS))
def test_the_newer_fact_stands(memory, clock, first, second):
    """Whatever the words, the old value leaves recall."""
    old, new = memory.remember(first), after(clock, memory, second)

    assert met(new) == [("supersedes", old.id)]
    assert statuses(memory, old, new) == ["superseded", "active"]


@each_row(("first", "second"), pairs(PAIRS))
def test_an_older_fact_that_comes_late_changes_nothing(memory, clock, first, second):
    """It is stored as superseded at once, and linked the same way round."""
    new = memory.remember(second, occurred_at=NOW)

    old = after(clock, memory, first, occurred_at=NOW - timedelta(days=3))

    assert ("superseded", new.id) in met(old)
    assert statuses(memory, old, new) == ["superseded", "active"]
    assert links(memory, new, "supersedes") == [old.id]


@each_row(("first", "second"), pairs(CONTRADICTIONS))
def test_a_contradiction_is_flagged_and_both_stay(memory, clock, first, second):
    """Where nothing says which of them holds."""
    old, new = memory.remember(first), after(clock, memory, second)

    assert met(new) == [("contradicts", old.id)]
    assert statuses(memory, old, new) == ["active", "active"]
    told = memory.recall(first, min_relevance=0).relations
    assert {(r.item, r.type, r.other) for r in told} >= {(new.id, "contradicts", old.id)}


@each_row(("first", "second"), pairs(BOTH))
def test_what_may_both_be_so_is_left_alone(memory, clock, first, second):
    """Other things, more of the same, guesses, plans, the past."""
    old, new = memory.remember(first), after(clock, memory, second)

    assert [kind for kind, _ in met(new) if kind not in ("near", "related")] == []
    assert statuses(memory, old, new) == ["active", "active"]


def test_a_less_trusted_source_corrects_nobody(memory, clock):
    """Both stay, flagged; what is offered is to forget the doubtful one."""
    old = memory.remember(OLD)

    new = after(clock, memory, NEW, source="a page", source_class="web")

    assert met(new) == [("contradicts", old.id)]
    assert new.collisions[0].resolve == f"bethink forget {new.id}"
    assert statuses(memory, old, new) == ["active", "active"]


def test_a_more_secret_fact_does_not_hide_a_public_one(memory, clock):
    """Whoever may not see the new one would be left with nothing."""
    old = memory.remember(OLD)
    new = after(clock, memory, NEW, classification=3)
    third = after(clock, memory, "The deploy key is in vault C")

    assert met(new) == [("contradicts", old.id)]
    assert [c.text for c in third.collisions if c.id == new.id] == [""]


def test_the_same_moment_settles_nothing_but_a_change_does(memory):
    """Two plain statements of one batch contradict each other; "moved" comes after "is"."""
    first, second, third = memory.remember_many(
        ["The limit is 5", "The limit is 10", "The limit was raised from 10 to 20"]
    )

    assert met(second)[0] == ("contradicts", first.id)
    assert ("supersedes", second.id) in met(third)
    assert statuses(memory, first, second, third) == ["active", "superseded", "active"]


def test_a_batch_is_settled_by_time_not_by_place(memory):
    """The newest of a batch stands wherever it is in it."""
    drafts = [
        {"text": f"The limit is {value}", "occurred_at": NOW - timedelta(days=value)}
        for value in (5, 2, 9, 1, 7)
    ]

    answers = memory.remember_many(drafts)

    active = [answer for answer in answers if memory.get(answer.id).status == "active"]
    assert [memory.get(answer.id).text for answer in active] == ["The limit is 1"]


def test_other_topics_are_other_things(memory, clock):
    """As "the timeout" of the database is not that of the API."""
    old = memory.remember("The timeout is 30 s", topic="api")
    new = after(clock, memory, "The timeout is 60 s", topic="database")

    assert met(new) == []
    assert statuses(memory, old, new) == ["active", "active"]


def test_verbatim_turns_state_no_facts(memory, clock):
    """What somebody said once is kept as it was said."""
    old = memory.remember(OLD, level="raw", session="s", speaker="Ana")
    new = after(clock, memory, NEW, level="raw", session="s", speaker="Ana")

    assert statuses(memory, old, new) == ["active", "active"]
    assert memory.get(new.id).subject is None


def test_a_text_that_says_more_is_superseded_in_part(memory, clock):
    """It stays, linked; to forget it is offered."""
    old = memory.remember("The deploy key is in vault A, rotated every quarter")
    new = after(clock, memory, NEW)

    assert met(new) == [("supersedes", old.id)]
    assert new.collisions[0].resolve == f"bethink forget {old.id}"
    assert statuses(memory, old, new) == ["active", "active"]
    assert links(memory, new, "supersedes") == [old.id]


def test_forgetting_the_correction_brings_the_old_one_back(memory, clock):
    """And restoring it lets the old one go again."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)

    memory.forget(new.id)
    assert memory.get(old.id).status == "active"
    memory.restore(new.id)
    assert statuses(memory, old, new) == ["superseded", "active"]


def test_erasing_the_correction_brings_the_old_one_back(memory, clock):
    """Nothing is left of the new one, and the old one is recalled."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)

    memory.forget(new.id, erase=True)

    assert memory.get(old.id).status == "active"


def test_a_chain_of_corrections_comes_back_one_by_one(memory, clock):
    """Only what the forgotten one had replaced; through those already forgotten."""
    first, second, third = (after(clock, memory, f"The limit is {value}") for value in (5, 10, 20))
    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]

    memory.forget(second.id)
    assert statuses(memory, first, third) == ["superseded", "active"]
    memory.forget(third.id)
    assert memory.get(first.id).status == "active"


def test_undoing_the_remembering_undoes_the_superseding(memory, clock):
    """The last change of whoever remembered is the remembering."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)
    clock.forward(minutes=1)

    undone = memory.undo()

    assert undone.item == new.id
    assert memory.get(old.id).status == "active"
    assert recalled(memory, "where is the deploy key") == [OLD]


def test_undoing_the_superseding_keeps_both(memory, clock):
    """Whoever knows better says so by the command that was offered."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)
    before = memory.get(old.id)._replace(status="active")

    memory.undo(old.id)

    assert memory.get(old.id) == before
    assert statuses(memory, old, new) == ["active", "active"]


def test_a_fact_said_again_stands_again(memory, clock):
    """A, then B, then A: the last one, as a memory of its own."""
    first, second = memory.remember(OLD), after(clock, memory, NEW)
    third = after(clock, memory, OLD)

    assert third.status == "stored"
    assert ("supersedes", second.id) in met(third)
    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]


def test_an_update_changes_what_a_fact_is_about(memory, clock):
    """The slot follows the words."""
    item = memory.update(memory.remember(OLD).id, text="The signing key is in vault A")

    assert (item.subject, item.attribute) == ("signing key", "location")
    assert memory.update(item.id, text="Coffee first").subject is None


def test_what_maintenance_makes_replaces_nothing(memory, clock):
    """A summary is newer than the facts it was made from, but not as a fact."""
    first = memory.remember("The limit is 5")
    second = after(clock, memory, "The limit is 10")
    child = after(clock, memory, "The limit is 5 MB", derives_from=(first.id,))

    assert memory.get(child.id).subject is None
    assert statuses(memory, second) == ["active"]


def test_what_somebody_changed_in_between_is_not_overruled(memory, clock):
    """It no longer says what was judged."""
    old = memory.remember(OLD)
    clock.forward(minutes=1)
    changing = overtaken(memory.store, lambda: memory.update(old.id, text="Coffee first"))
    ctx = WriteContext(changing, None, clock.now, "tester", IdGenerator())

    remember([Draft(NEW)], ctx)

    assert memory.get(old.id).status == "active"


def test_a_collision_names_its_remedy():
    """Without one the field is empty."""
    assert Collision("a", "exact", 1.0, "x", "y").resolve == ""


def test_names_of_one_entity_hold_one_slot(memory, clock):
    """Whichever name a fact is stated by, once the two are merged."""
    old = memory.remember("Roberta works at Acme", entities=("person:Roberta",))
    memory.remember("Call Bobbie", entities=("person:Bobbie",))
    memory.merge_entities("Roberta", "Bobbie")

    new = after(clock, memory, "Bobbie works at Globex")

    assert met(new) == [("supersedes", old.id)]


def test_erasing_the_middle_of_a_chain_joins_its_ends(memory, clock):
    """What the last one holds down comes back when that is forgotten or erased."""
    for erase in (False, True):
        name = "limit" if erase else "quota"
        chain = [after(clock, memory, f"The {name} is {value}") for value in (5, 10, 20, 40)]
        memory.forget(chain[1].id, chain[2].id, erase=True)

        assert statuses(memory, chain[0], chain[3]) == ["superseded", "active"]
        assert links(memory, chain[3], "supersedes") == [chain[0].id]
        memory.forget(chain[3].id, erase=erase)
        assert memory.get(chain[0].id).status == "active"


def test_unlinking_brings_back_what_nothing_else_supersedes(memory, clock):
    """Not what another one still replaces, directly or further up."""
    first, second, third = (after(clock, memory, f"The limit is {value}") for value in (5, 10, 20))
    other = after(clock, memory, "Nobody counts any more")
    memory.link(other.id, "supersedes", first.id)

    memory.unlink(other.id, "supersedes", first.id)
    assert statuses(memory, first, second, third) == ["superseded", "superseded", "active"]
    memory.unlink(second.id, "supersedes", first.id)
    assert statuses(memory, first, second, third) == ["active", "superseded", "active"]


def test_what_somebody_says_is_superseded_leaves_recall(memory, clock):
    """As by the rules: an undo, an unlink or forgetting the newer brings it back."""
    old, new = memory.remember("Mara brews the tea"), after(clock, memory, "Tea comes in bags")
    memory.link(new.id, "supersedes", old.id, context="from the audit on")
    assert statuses(memory, old, new) == ["superseded", "active"]
    assert recalled(memory, "who brews the tea") != ["Mara brews the tea"]

    memory.undo(old.id)
    assert memory.get(old.id).status == "active"
    memory.link(new.id, "supersedes", old.id)
    memory.forget(new.id)
    assert memory.get(old.id).status == "active"
    memory.restore(new.id)
    assert statuses(memory, old, new) == ["superseded", "active"]
    with pytest.raises(Refused, match="directly or through others"):
        memory.link(old.id, "supersedes", new.id)


def test_an_update_away_from_a_fact_brings_the_old_one_back(memory, clock):
    """And the update back to it lets that go again."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)
    clock.forward(minutes=1)
    memory.update(new.id, text="Bananas are yellow")
    assert statuses(memory, old, new) == ["active", "active"]
    clock.forward(minutes=1)
    memory.undo(new.id)
    assert statuses(memory, old, new) == ["superseded", "active"]


def test_an_update_into_a_fact_supersedes(memory, clock):
    """Said now, it is newer than what was said before, though its memory is older."""
    first = memory.remember("Bananas are yellow")
    second = after(clock, memory, OLD)
    clock.forward(minutes=1)
    memory.update(first.id, text=NEW)

    assert statuses(memory, first, second) == ["active", "superseded"]


def test_an_update_of_the_same_fact_keeps_what_it_replaced(memory, clock):
    """Another value for the same slot is no reason to bring an older one back."""
    old, new = memory.remember(OLD), after(clock, memory, NEW)
    memory.update(new.id, text="The deploy key moved to vault C")

    assert statuses(memory, old, new) == ["superseded", "active"]


def test_an_update_of_what_was_superseded_lets_it_stand_for_the_new(memory, clock):
    """In the middle of a chain, its ends are joined."""
    first, second, third = (after(clock, memory, f"The limit is {value}") for value in (5, 10, 20))
    memory.update(second.id, text="Bananas are yellow")

    assert statuses(memory, first, second, third) == ["superseded", "active", "active"]
    assert set(links(memory, third, "supersedes")) == {first.id}
