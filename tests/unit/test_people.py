"""What people of one space see, keep, share, move, forget and take with them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.access.people import Directory
from bethink.access.policy import Right
from bethink.config.settings import Settings
from bethink.errors import BethinkError, Conflict, Forbidden, NotFound, Refused
from bethink.model import Draft
from bethink.model.item import AUDIENCE
from bethink.people import PersonMemory, seen_by
from bethink.store.sqlite.lock import FileLock, hold_lock
from bethink.testing import FixedClock

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


class Team:
    """A space with three people."""

    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock(START)
        settings = Settings(data_dir=folder / "data", embedder="hash", actor="http")
        self.space = Memory.open("team", settings=settings, clock=self.clock)
        self.directory = Directory(folder)
        for name, role in (("anna", "owner"), ("ben", "writer"), ("carl", "reader")):
            self.directory.add(name, "team", role)
        self.anna, self.ben, self.carl = map(self.of, ("anna", "ben", "carl"))

    def of(self, name: str, right: Right = Right.ADMIN) -> PersonMemory:
        return seen_by(self.space, name, self.directory, right)

    def step(self) -> None:
        self.clock.now += timedelta(seconds=1)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    made = Team(tmp_path)
    yield made
    made.space.close()


def texts(memory: Memory, **where: Any) -> set[str]:
    return {item.text for item in memory.browse(**where)}


def test_a_merge_of_the_inbox_stays_with_its_audience(team: Team) -> None:
    """What waits for one audience is not merged into what others see; within one it is."""
    page = {"source_class": "web", "review": True}
    kept = team.anna.remember("The mill is sold").id
    own, also = (
        team.anna.remember(f"Anna buys the {what}", audience="private", **page).id
        for what in ("mill", "dam")
    )
    shared = team.anna.remember("Ben buys the mill", **page).id

    for ids, into in (((own,), kept), ((shared, own), None), ((own, shared), None)):
        with pytest.raises(Refused, match="different audiences"):
            team.anna.merge(*ids, into=into)
    assert texts(team.carl) == {"The mill is sold"}
    assert len(team.anna.inbox()) == 3
    assert team.anna.merge(own, also).text == "Anna buys the mill\nAnna buys the dam"
    assert texts(team.carl) == {"The mill is sold"}


def test_each_sees_what_is_theirs_to_see(team: Team) -> None:
    """The space's, one's own, and what is shared with one; also who has it open already."""
    team.ben.remember("The office closes at six")
    team.ben.remember("Ben looks for another job", audience="private")
    shared = team.ben.remember("Anna and Ben swap shifts", audience="anna")

    assert texts(team.anna) == {"The office closes at six", "Anna and Ben swap shifts"}
    assert len(texts(team.ben)) == 3
    assert texts(team.carl) == texts(team.space) == {"The office closes at six"}
    assert team.anna.get(shared.id).metadata[AUDIENCE] == "anna, ben"
    assert [hit.item.id for hit in team.anna.recall("swap shifts").hits][:1] == [shared.id]
    assert not [hit for hit in team.carl.recall("swap shifts").hits if hit.item.id == shared.id]


def test_the_same_words_key_and_session_are_apart(team: Team) -> None:
    """Neither a duplicate, a used key, a turn's number nor an id's part tells of another's."""
    same = {"key": "k1", "session": "talk"}
    private = team.ben.remember("The launch is on Friday", audience="private", **same)
    own = team.anna.remember("The launch is on Friday", audience="private", **same)
    all_ = team.anna.remember("The launch is on Friday", **same)

    assert {private.status, own.status, all_.status} == {"stored"}
    assert [team.anna.get(one.id).seq for one in (own, all_)] == [0, 0]
    assert not own.collisions
    assert not all_.collisions
    with pytest.raises(NotFound):
        team.anna.get(private.id)
    with pytest.raises(NotFound):
        team.anna.get(private.id[-6:])
    team.ben.forget(private.id, erase=True)
    assert texts(team.anna) == {"The launch is on Friday"}


def test_a_private_correction_stays_private_and_is_undone(team: Team) -> None:
    """It neither supersedes what all see nor can be seen in its links."""
    fact = team.anna.remember("The deploy runs on Mondays")
    team.step()
    team.ben.remember("The deploy runs on Tuesdays, not on Mondays", audience="private")

    assert team.anna.get(fact.id).status == "active"
    assert team.anna.links(fact.id) == []
    team.ben.undo()
    assert len(texts(team.ben)) == 1


def test_use_is_counted_for_each_person(team: Team) -> None:
    """What Ben recalls changes nothing for Anna, not even the momentum of an entity."""
    made = team.anna.remember("Dmitri Petrov runs the harbour")
    before = repr((team.anna.get(made.id), team.anna.entities()))
    for _ in range(3):
        team.ben.recall("harbour", track=True)
        team.ben.recall("harbour", track=True, profile="remind")

    assert repr((team.anna.get(made.id), team.anna.entities())) == before
    assert team.anna.store.activity.usage([made.id], team.clock.now) == {}
    assert team.ben.store.activity.usage([made.id], team.clock.now)[made.id].recalls >= 3


def test_only_who_wrote_it_decides_who_sees_it(team: Team) -> None:
    """Shared, taken back and shared again; nobody finds what was said before."""
    made = team.ben.remember("Ben is paid too little", audience="private")
    team.ben.update(made.id, text="Ben is paid enough")
    public = team.ben.update(made.id, audience="space")

    assert [item.text for item in team.anna.history(public.id)] == ["Ben is paid enough"]
    with pytest.raises(NotFound):
        team.anna.get(made.id)
    with pytest.raises(Forbidden):
        team.anna.update(public.id, audience="private")
    again = team.ben.update(public.id, audience="carl")
    assert texts(team.anna) == set()
    assert texts(team.carl) == {"Ben is paid enough"}
    assert team.carl.get(again.id).writer.endswith(team.ben.person.id)


def test_new_words_for_fewer_are_never_seen_by_more(team: Team) -> None:
    """Neither before the memory moves, nor where the move is refused."""
    made = team.ben.remember("Ben works at Acme")
    with pytest.raises(Forbidden):
        team.ben.update(made.id, text="Ben has a hearing", audience="nobody")
    with pytest.raises(Forbidden):
        team.anna.update(made.id, text="Ben was fired", audience="private")
    with pytest.raises(Conflict):
        team.ben.update(made.id, text="Ben has a hearing", audience="private", revision=7)
    assert [item.text for item in team.anna.history(made.id)] == ["Ben works at Acme"]

    moved = team.ben.update(made.id, text="Ben interviews at Globex", audience="private")

    assert moved.text == "Ben interviews at Globex"
    assert "Globex" not in repr((team.anna.events(limit=500), list(team.anna.export())))
    assert texts(team.anna) == set()


@pytest.mark.parametrize("fields", [{}, {"pinned": True}, {"layer": "caveat"}])
def test_who_makes_a_memory_private_leaves_no_copy(team: Team, fields: dict[str, Any]) -> None:
    """Whatever its pin or layer: others find neither it nor its history, nor bring it back."""
    made = team.ben.remember("Ben is ill", **fields)
    team.ben.update(made.id, text="Ben has the flu")
    team.step()
    moved = team.ben.update(made.id, audience="private")
    team.step()

    assert team.ben.get(moved.id).metadata[AUDIENCE] == "private"
    for who in (team.anna, team.space, team.ben):
        for act in (who.get, who.history, who.restore, who.undo):
            with pytest.raises(NotFound):
                act(made.id)
    assert [hit.item.id for hit in team.carl.recall("Ben flu").hits] == []
    assert "Ben" not in repr(list(team.anna.export()))
    for one in (team.anna, team.ben):
        with pytest.raises(BethinkError):
            one.undo()
    assert texts(team.ben) == {"Ben has the flu"}
    assert texts(team.space) == set()
    team.ben.erase_own()
    assert texts(team.space) == set()


def test_fewer_readers_leave_no_copy_and_more_leave_one_forgotten(team: Team) -> None:
    """Who loses sight keeps nothing; who shares with more keeps what was said before."""
    shared = team.ben.remember("Ben sells his boat", audience="anna", pinned=True)
    other = team.ben.update(shared.id, audience="carl")
    assert texts(team.anna) == set()
    with pytest.raises(NotFound):
        team.anna.get(shared.id)
    all_ = team.ben.update(other.id, audience="anna, carl")
    assert texts(team.anna) == texts(team.carl) == {"Ben sells his boat"}
    assert [item.id for item in team.carl.browse()] == [all_.id]
    assert team.carl.history(other.id)[-1].live_to is not None
    with pytest.raises(NotFound):
        team.anna.get(other.id)


def test_no_limit_keeps_a_memory_public(team: Team) -> None:
    """What becomes private is not one more, however often."""
    team.directory.set_limits("ben", "team", {"memories": 2})
    for what in ("tea", "milk"):
        team.ben.remember(f"Ben likes {what}")
    for item in team.ben.browse():
        shared = team.ben.update(item.id, audience="anna")
        team.ben.update(shared.id, audience="private")
    assert texts(team.space) == texts(team.anna) == set()
    assert len(texts(team.ben)) == 2
    with pytest.raises(Refused, match="2 of 2"):
        team.ben.remember("One more")


def test_a_role_counts_as_it_is_now(team: Team) -> None:
    """Also for a view that was opened before the role was changed, or taken."""
    team.ben.remember("Ben likes tea")
    team.directory.set_role("ben", "team", "reader")
    with pytest.raises(Forbidden):
        team.ben.remember("Ben likes milk")
    assert texts(team.ben) == {"Ben likes tea"}
    team.directory.set_role("ben", "team", "maintainer")
    assert list(team.ben.export())
    team.directory.remove("ben", "team")
    for act in (team.ben.browse, lambda: team.ben.recall("tea"), team.ben.undo):
        with pytest.raises(Forbidden, match="no member"):
            act()


def test_a_correction_of_what_some_share_stays_with_them(team: Team) -> None:
    """Also where an import gave the space a memory of the same id."""
    shared = team.ben.remember("We plan a party", audience="carl")
    with Memory.open(":memory:", embedder="none") as forged:
        forged.remember("We plan nothing", id=shared.id)
        team.anna.import_(list(forged.export()))

    team.ben.update(shared.id, text="We plan to leave the firm")

    assert "leave the firm" not in repr(list(team.anna.export()))


def test_the_author_is_who_signed_in(team: Team) -> None:
    """Neither an argument, a speaker, a user nor an import makes another the author."""
    forged: Any = {"speaker": "anna", "user": "anna", "source": team.anna.person.id}
    made = team.ben.remember("Anna said it", **forged)
    assert team.ben.get(made.id).writer == f"http:{team.ben.person.id}"
    with pytest.raises(BethinkError):
        team.ben.remember("Anna wrote it", writer=f"http:{team.anna.person.id}")
    with pytest.raises(Forbidden):
        team.anna.update(made.id, audience="private")
    records = list(team.anna.export())
    items = [one for one in records if one["type"] == "item"]
    items[0]["writer"] = f"http:{team.ben.person.id}"
    items[0]["id"] = "forged"
    del items[0]["content_hash"]
    header = {name: value for name, value in records[0].items() if name != "end"}
    forgery = [header, items[0]]
    with pytest.raises(Forbidden):
        team.anna.import_(forgery, restore=True)
    team.anna.import_(forgery)
    assert team.anna.get("forged").writer == f"http:{team.anna.person.id}"


def test_roles_and_tokens_limit_what_is_done(team: Team) -> None:
    """The lower of the two counts, and a role is read at each opening."""
    made = team.anna.remember("The safe is in room 12")
    for act in (
        lambda who: who.remember("x y z"),
        lambda who: who.remember("x y z", audience="private"),
        lambda who: who.remember_each(["x y z"]),
        lambda who: who.update(made.id, text="another"),
        lambda who: who.forget(made.id),
        lambda who: who.maintain(),
        lambda who: who.link(made.id, "implies", made.id),
        lambda who: list(who.export()),
    ):
        with pytest.raises(Forbidden):
            act(team.carl)
        with pytest.raises(Forbidden):
            act(team.of("anna", Right.READ))
    with pytest.raises(Forbidden):
        team.ben.forget(made.id, erase=True)
    own = team.ben.remember("The safe is open")
    assert team.ben.forget(own.id, erase=True).receipt is not None
    with pytest.raises(Forbidden):
        team.ben.seen_by("anna")
    team.directory.remove("carl", "team")
    with pytest.raises(NotFound):
        team.of("carl")


def test_a_maintainer_erases_nothing_of_others_shelves(team: Team) -> None:
    """Who may erase what all see may still not erase what another shares with them."""
    shared = team.ben.remember("Ben lends Anna the key", audience="anna")
    public = team.ben.remember("Ben has a bicycle")
    with pytest.raises(Forbidden):
        team.anna.forget(shared.id, erase=True)
    assert team.anna.forget(public.id, erase=True).receipt is not None


def test_memories_of_different_audiences_are_not_tied(team: Team) -> None:
    """Neither by a link nor by a thread; nor is what waits merged into what others see."""
    waiting = team.ben.propose(Draft("The pond may be frozen"), reason="unsure").id
    one = team.ben.remember("The meadow is wet")
    other = team.ben.remember("The orchard is dry", audience="private")
    with pytest.raises(Refused):
        team.ben.link(one.id, "implies", other.id)
    with pytest.raises(Refused):
        team.ben.put_thread("Land", [one.id, other.id])
    with pytest.raises(Refused, match="different audiences"):
        team.ben.merge(waiting, into=other.id)
    assert "frozen" in team.ben.merge(waiting, into=one.id).text


def test_many_memories_go_where_each_says(team: Team) -> None:
    """In the order given, refusals in their places; several are forgotten together."""
    drafts = [
        {"text": "one for all"},
        {"text": "two for me", "audience": "private"},
        {"text": ""},
        {"text": "three for Anna", "audience": "anna"},
    ]
    found = team.ben.remember_each(drafts)
    assert [isinstance(one, Refused) for one in found] == [False, False, True, False]
    ids = [one.id for one in found if not isinstance(one, Refused)]
    done = team.ben.forget(*ids)
    assert {item.id for item in done.items} == set(ids)
    assert set(team.ben.restore(*ids)) == set(ids)
    with pytest.raises(BethinkError):
        team.ben.remember("four", audience="nobody")


def test_jobs_work_on_what_all_see(team: Team) -> None:
    """Whoever runs them; they make nothing of what is private."""
    for number in range(12):
        team.step()
        team.ben.remember(f"Zebra project note {number} by Ben", audience="private")
        team.ben.remember(f"Heron project note {number} by Ben")
    for who in (team.ben, team.anna):
        who.maintain(share=0.5)
    told = repr((team.anna.threads(), team.anna.insights(), team.anna.events(limit=500)))
    assert "ebra" not in told
    assert "Heron" in repr(team.anna.browse())


def test_leaving_takes_and_erases_what_is_ones_own(team: Team) -> None:
    """What only Ben saw, what he shared and, if asked, what he wrote for all."""
    team.ben.remember("Ben keeps a diary", audience="private")
    team.ben.remember("Ben and Anna carpool", audience="anna")
    team.ben.remember("The printer is broken")
    team.anna.remember("Anna waters the plants")
    with Memory.open(":memory:", embedder="none") as elsewhere:
        elsewhere.import_(team.ben.export_own(), restore=True)
        assert texts(elsewhere) == {
            "Ben keeps a diary", "Ben and Anna carpool", "The printer is broken"
        }  # fmt: skip
    counts = team.ben.erase_own(preview=True)
    assert counts == {"of their own": 1, "shared with some": 1}
    assert team.ben.erase_own() == counts
    assert texts(team.anna) == {"The printer is broken", "Anna waters the plants"}
    assert team.ben.erase_own(also_space=True) == {"of the space": 1}
    assert texts(team.anna) == {"Anna waters the plants"}


def test_who_comes_back_finds_nothing_that_was_erased(team: Team) -> None:
    """A new shelf is another store; without an erase one who stayed elsewhere finds theirs."""
    team.directory.add("ben", "other", "owner")
    team.ben.remember("Ben keeps a diary", audience="private")
    team.directory.remove("ben", "team")
    team.directory.add("ben", "team", "writer")
    assert texts(team.of("ben")) == {"Ben keeps a diary"}
    gone = team.directory.remove("ben", "team", erase=True)
    assert len(gone) == 1
    team.directory.add("ben", "team", "writer")
    assert texts(team.of("ben")) == set()


def test_a_space_of_one_is_as_it_was(tmp_path: Path) -> None:
    """Without people there is no shelf, and nobody is told of any."""
    settings = Settings(data_dir=tmp_path, embedder="none")
    with Memory.open("alone", settings=settings) as memory:
        memory.remember("The garden is green")
        with pytest.raises(Refused):
            memory.remember("The garden is mine", audience="private")  # type: ignore[call-arg]
        with pytest.raises(NotFound):
            memory.seen_by("anna", Directory(tmp_path))
    assert not [one for one in (tmp_path / "spaces").iterdir() if one.is_dir()]


def test_who_is_in_another_space_is_refused_as_a_stranger(team: Team) -> None:
    """The words of a refusal tell of nobody."""
    team.directory.add("zoe", "other", "owner")

    told = []
    for name in ("zoe", "nobody"):
        with pytest.raises(Forbidden) as refused:
            team.anna.remember("Zoe comes to the meeting", audience=name)
        told.append(refused.value.message)

    assert told[0] == told[1]


def test_an_import_hides_no_shared_memory(team: Team) -> None:
    """A memory of the space with the id of a shared one is not shown in its place."""
    shared = team.ben.remember("Anna and Ben meet at noon", audience="anna")
    team.space.remember("Anna and Ben meet at five", id=shared.id)

    assert team.anna.get(shared.id).text == "Anna and Ben meet at noon"
    assert team.anna.history(shared.id)[-1].text == "Anna and Ben meet at noon"
    assert team.carl.get(shared.id).text == "Anna and Ben meet at five"


def test_a_person_keeps_no_more_than_the_limit(team: Team) -> None:
    """Of all audiences together; forgotten ones count until they are erased, known ones never."""
    team.directory.set_limits("ben", "team", {"memories": 3})
    mine = team.ben.remember("Ben likes tea", audience="private").id
    team.ben.remember("Ben and Anna share a desk", audience="anna")
    assert team.ben.remember("The door code changed").status == "stored"
    team.ben.forget(mine)
    for write in (
        lambda: team.ben.remember("Too many"),
        lambda: team.ben.remember("Too many", audience="private"),
        lambda: team.ben.propose(Draft("Too many"), reason="said"),
        lambda: team.ben.update(mine, text="Moved", audience="space"),
    ):
        with pytest.raises(Refused, match="3 of 3"):
            write()
    assert team.ben.remember("The door code changed").status == "duplicate"
    assert team.ben.restore(mine) == [mine]
    assert team.anna.remember("Anna has no limit").status == "stored"
    team.ben.forget(mine, erase=True)
    assert team.ben.remember("There is room again").status == "stored"
    team.directory.set_limits("ben", "team", {"memories": 0})
    assert team.ben.remember("And now any number").status == "stored"


_WRITER = """
import sys
from pathlib import Path
from bethink import Memory
from bethink.access.people import Directory
from bethink.config.settings import Settings
from bethink.errors import Refused

folder, who = Path(sys.argv[1]), sys.argv[2]
settings = Settings(data_dir=folder / "data", embedder="none", actor="http")
with Memory.open("team", settings=settings) as space:
    ben = space.seen_by("ben", Directory(folder))
    for number in range(6):
        try:
            ben.remember(f"Note {number} of {who}", audience=("space", "private")[number % 2])
        except Refused:
            break
"""


def test_processes_share_the_limit_of_a_person(team: Team, tmp_path: Path) -> None:
    """Two servers over one store count together, whichever shelf a memory is for."""
    team.directory.set_limits("ben", "team", {"memories": 6})
    ben = team.ben.person.id
    with team.directory.counting(ben), team.directory.counting(ben):
        assert not FileLock(tmp_path / f"people-{ben}.lock").acquire(0)

    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), who]) for who in "ab"
    ]

    assert [one.wait() for one in writers] == [0, 0]
    assert sum(len(ids) for _, ids in team.ben.own_memories()) == 6


def test_a_look_at_limits_takes_no_lock(team: Team, tmp_path: Path) -> None:
    """They can be read while somebody changes people, and where nothing can be written."""
    team.directory.set_limits("ben", "team", {"memories": 6})
    with hold_lock(FileLock(tmp_path / "people.json.lock"), "people"):
        assert team.directory.set_limits("ben", "team", {}) == {"memories": 6}
    with pytest.raises(NotFound):
        team.directory.set_limits("ben", "other", {})


def test_of_many_those_that_fit_are_stored(team: Team) -> None:
    """An import, which is all or nothing, is refused as a whole."""
    team.directory.set_limits("anna", "team", {"memories": 2})
    told = team.anna.remember_each([f"Fact number {n} of the house" for n in range(4)])
    assert [isinstance(one, Refused) for one in told] == [False, False, True, True]
    with Memory.open(":memory:", embedder="none") as other:
        other.remember("From elsewhere")
        records = list(other.export())
    with pytest.raises(Refused, match="2 of 2"):
        team.anna.import_(records)
    team.directory.set_limits("anna", "team", {"memories": 3})
    assert team.anna.import_(records) == 1
    with pytest.raises(Refused, match="3 of 3"):
        team.anna.remember("One more")


def test_what_an_import_brings_counts_and_what_is_known_does_not(team: Team) -> None:
    """Forgotten ones count, as everywhere; the same export may come again."""
    team.directory.set_limits("anna", "team", {"memories": 2})
    with Memory.open(":memory:", embedder="none") as other:
        for text in ("The mill is old", "The dam leaks", "Bees sleep in winter"):
            other.forget(other.remember(text).id)
        with pytest.raises(Refused, match="0 of 2"):
            team.anna.import_(other.export())
    with Memory.open(":memory:", embedder="none") as other:
        other.remember_many(["The mill is old", "The dam leaks"])
        records = list(other.export())
    assert [team.anna.import_(records) for _ in range(2)] == [2, 0]


def test_what_is_too_classified_to_be_seen_counts(team: Team) -> None:
    team.directory.set_limits("ben", "team", {"memories": 3})
    for ben, audience in ((team.ben, "private"), (team.ben, "space"), (team.ben.below(0), "space")):
        ben.remember(f"Known to few in {audience} {id(ben)}", audience=audience, classification=3)
    for ben in (team.ben, team.ben.below(0), team.of("ben")):
        with pytest.raises(Refused, match="3 of 3"):
            ben.remember("One more", classification=3)


def test_two_calls_do_not_both_take_the_last_place(team: Team, tmp_path: Path) -> None:
    """However the server knows the person: each way has a directory of its own."""
    from concurrent.futures import ThreadPoolExecutor

    def store(number: int) -> list[Any]:
        ben = seen_by(team.space, "ben", Directory(tmp_path), Right.ADMIN)
        return list(ben.remember_each([f"Fact {number}"]))

    team.directory.set_limits("ben", "team", {"memories": 5})
    with ThreadPoolExecutor(4) as pool:
        told = list(pool.map(store, range(12)))
    assert sum(not isinstance(one, Refused) for [one] in told) == 5
