"""Mistakes that were once found; each stays a test."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bethink import Memory
from bethink.errors import BadProfile, Conflict, ModelError, NotFound, StoreBusy
from bethink.model import Filters, Link, Node
from bethink.ports import Embedder, Embedding
from bethink.retrieval.profile import load_profile, parse_profile
from bethink.testing import FixedClock
from corpus import NOW
from fallible import with_methods
from rows import each_row

DAY = timedelta(days=1)


class Silent:
    """An embedder that worked while memories were stored and fails when asked."""

    def __init__(self, inner: Embedder) -> None:
        self.inner, self.down = inner, False
        self.model, self.dim = inner.model, inner.dim

    def embed(self, texts: Sequence[str]) -> list[Embedding]:
        return self.inner.embed(texts)

    def embed_query(self, text: str) -> Embedding:
        if self.down:
            raise ModelError("the embedder is down")
        return self.inner.embed_query(text)

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)


def test_a_batch_that_repeats_itself_stores_its_memory(memory: Memory) -> None:
    """The same id and key twice are one memory, not none."""
    twice = {"text": "Backups run at two", "id": "backup-1", "key": "k1"}

    first, second = memory.remember_many([twice, twice])

    assert (first.status, second.status) == ("stored", "repeated")
    assert first.id == second.id == memory.get("backup-1").id


def test_a_repeated_draft_names_the_memory_that_is_there(memory: Memory) -> None:
    """Also when its first occurrence turned out to be a duplicate, and its key is taken."""
    there = memory.remember("Backups run at two").id

    first, second = memory.remember_many(
        [{"text": "Backups run at two.", "key": "k"}, {"text": "Backups run at two.", "key": "k"}]
    )

    assert (first.status, second.status) == ("duplicate", "repeated")
    assert first.id == second.id == there
    with pytest.raises(Conflict):
        memory.remember("Something else", key="k")


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ({"classification": 3}, {"classification": 0}),
        ({"source_class": "web"}, {"source_class": "owner"}),
        ({"valid_to": NOW - DAY}, {}),
    ],
    ids=["secret", "untrusted", "expired"],
)
def test_only_what_can_stand_in_makes_a_duplicate(
    memory: Memory, earlier: dict[str, object], later: dict[str, object]
) -> None:
    """A copy that the reader may not see, trust or recall any more hides nothing."""
    memory.remember("The rotation is on Mondays", **earlier)
    again = memory.remember("The rotation is on Mondays", **later)

    found = memory.recall("when is the rotation?", min_trust=2 if "source_class" in later else 0)

    assert again.status == "stored"
    assert [hit.item.id for hit in found.hits] == [again.id]


def test_a_superseded_copy_does_not_swallow_the_new_one(memory: Memory) -> None:
    """What was true, then not, then again is true again."""
    old = memory.remember("The office is in Oslo").id
    memory.store.items.set_status([old], "superseded", actor="t", now=NOW)

    assert memory.remember("The office is in Oslo").status == "stored"


def test_a_collision_does_not_tell_a_secret(memory: Memory) -> None:
    """Who writes nearly the same words does not get the secret's words back."""
    words = (
        "the board agreed on Thursday that the salary of the new head of the northern office "
        "will be ninety thousand a year, paid from the reserve until the budget of next spring"
    )
    memory.remember(words, classification=3)

    told = memory.remember(words.replace("ninety", "eighty"), classification=1)

    assert told.collisions
    assert all(collision.text == "" for collision in told.collisions)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("ключ хранится в сейфе у Ивана", "где лежит ключ от сейфа?"),
        ("Der Schlüssel liegt im Tresor der Verwaltung", "Wo liegt der Schlüssel zum Keller?"),
        ("la clé est dans l'état du nord, au coffre", "où est la clé, dans quel état?"),
    ],
)
def test_capitals_and_other_letters_are_no_strangers(
    memory: Memory, text: str, question: str
) -> None:
    """Small letters of other scripts and German nouns are not unknown names."""
    memory.remember(text)

    notes = " ".join(step.note for step in memory.recall(question).steps)

    assert "never heard of" not in notes


@each_row(
    ("one", "other"),
    [
        ({"text": "staging replicates to the backup site every night at two"}, {"text": "the backup site replicates to staging every night at two"}),
        ({"text": "the queue client is thread safe and may be shared by all workers"}, {"text": "the queue client is not thread safe and may be shared by all workers"}),
        ({"text": "I will bring the cake on Friday", "speaker": "Anna"}, {"text": "I will bring the cake on Friday", "speaker": "Ben"}),
        ({"text": "The nightly export failed again", "occurred_at": NOW - DAY, "kind": "event"}, {"text": "The nightly export failed again", "occurred_at": NOW, "kind": "event"}),
    ],
    ids=["order", "denial", "speaker", "moment"],
)  # fmt: skip
def test_different_facts_are_not_collapsed(
    memory: Memory, one: dict[str, object], other: dict[str, object]
) -> None:
    """Nearly the same words are shown both when they say different things."""
    memory.remember_many([one, other])

    assert len(memory.recall(str(one["text"])).hits) == 2


def test_a_gate_without_a_model_still_gates(embedder: Embedder) -> None:
    """An embedder that fails while a question is asked does not let everything through."""
    model = Silent(embedder)
    with Memory.open(":memory:", embedder=model, clock=FixedClock(NOW)) as memory:
        memory.remember_many(["Tests run with make test", "The deploy key lives in vault B"])
        model.down = True

        foreign = memory.recall("how do I bake sourdough bread?")
        own = memory.recall("where is the deploy key?")

        assert not foreign.hits
        assert own.hits[0].item.text.startswith("The deploy key")
        assert own.degraded


def test_a_busy_store_does_not_cost_the_answer(memory: Memory) -> None:
    """What cannot be noted is reported; the answer is given."""
    memory.remember("The deploy key lives in vault B")

    def note_use(ids: Sequence[str], now: object, *, fading: object) -> None:
        raise StoreBusy("others were writing")

    busy = with_methods(memory.store, "activity", note_use=note_use)
    asked = Memory(busy, embedder=memory.embedder, clock=FixedClock(NOW))

    answer = asked.recall("where is the deploy key?", track=True)

    assert answer.hits
    assert answer.degraded[-1].part == "track"


@each_row(
    "setting",
    [
        "[[adjust]]\nuse='decay'\nhalf_life_days=0",
        "[[adjust]]\nuse='length'\ntokens=0",
        "[[adjust]]\nuse='period'\nbefore_days=0",
        "[fuse]\nuse='rrf'\nk=-1",
        "[[adjust]]\nuse='decay'\n[adjust.per_tool]\nEdit='x'",
        "[[adjust]]\nuse='decay'\n[adjust.per_tool]\nEdit=nan",
    ],
)
def test_impossible_numbers_are_refused_on_loading(setting: str) -> None:
    """Not in the middle of a question."""
    with pytest.raises(BadProfile):
        parse_profile(f"[[channels]]\nuse='lexical'\n{setting}", "mine", "mine.toml")


def test_a_profile_without_a_part_has_a_name_of_its_own(filled: Memory) -> None:
    """So a comparison shows both."""
    default = load_profile("default")

    shown = filled.compare("deploy key", [default, default.without("dense")])

    assert list(shown) == ["default", "default without dense"]


def test_very_many_can_be_asked_for(memory: Memory) -> None:
    """k above the usual pool widens the pool."""
    memory.remember_many([f"note {n} about the harbour crane" for n in range(150)])

    bare = replace(load_profile("default"), diversify=(), gate=())

    assert len(memory.recall("harbour crane", profile=bare, k=120, max_tokens=10**6).hits) == 120


def test_the_ceiling_holds_for_browsing_and_timelines(memory: Memory) -> None:
    """Secrets are not listed beside what may be seen."""
    open_id = memory.remember("The lunch is at noon").id
    memory.remember("The merger is in May", classification=3)

    assert [item.id for item in memory.browse()] == [open_id]
    assert all(item.classification < 3 for item in memory.timeline(open_id))


def test_warnings_name_only_what_may_be_seen(memory: Memory) -> None:
    """A contradiction by a secret memory is not betrayed."""
    shown = memory.remember("The launch is in June").id
    secret = memory.remember("The launch is in July", classification=3).id
    link = Link(Node("item", secret), Node("item", shown), "contradicts", created_at=NOW)
    memory.store.graph.add_links([link])

    assert memory.recall("when is the launch?").warnings == ()
    told = memory.recall("when is the launch?", filters=Filters(max_classification=3))
    assert told.warnings == (f"{secret} contradicts {shown}",)


def test_a_revision_is_not_trusted_more_than_its_source(memory: Memory) -> None:
    """Neither by asking for it nor by another source class."""
    page = memory.remember("A page says the moon is cheese", source_class="web").id
    child = memory.remember("The moon is cheese", parent=page, source_class="user").id

    assert memory.update(child, trust=3).trust == 0
    with pytest.raises(Exception, match="source_class"):
        memory.update(page, source_class="owner")


def test_writers_to_one_session_never_share_a_number(tmp_path: Path) -> None:
    """Turns are numbered in the transaction that stores them."""
    path = tmp_path / "talk.db"
    with Memory.open(path=path, embedder="none"):
        pass

    def talk(who: str) -> None:
        with Memory.open(path=path, embedder="none") as memory:
            for number in range(25):
                memory.remember(f"{who} says {number}", session="s", speaker=who)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(talk, ("Ana", "Ben", "Cleo", "Dan")))

    with Memory.open(path=path, embedder="none") as memory:
        turns = memory.browse(limit=200)
        links = memory.store.graph.links_of(
            [turn.id for turn in turns], ("follows",), incoming=False
        )
    assert sorted(turn.seq or 0 for turn in turns) == list(range(100))
    assert len(links) == 99


def test_the_reason_of_a_forgetting_is_erased_with_its_memory() -> None:
    """The journal, which nobody can clean, never holds somebody's words."""
    with Memory.open(":memory:", embedder="none") as memory:
        one = memory.remember("The door code is on the blue card").id
        memory.forget(one, reason="Zora said the blue card is lost")
        told = memory.get(one).ended_by
        memory.forget(one, erase=True)
        details = [event.detail for event in memory.events(limit=100)]

    assert told == "Zora said the blue card is lost"
    assert not [detail for detail in details if "Zora" in detail]


def test_quarantine_holds_for_the_past_as_well() -> None:
    """What was revoked today must not come back by asking as of yesterday."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        one = memory.remember("Transfers go to account 4711", source="a page").id
        clock.forward(days=1)
        yesterday = NOW + timedelta(hours=1)
        before = memory.recall("where do transfers go", as_of=yesterday)
        memory.revoke("a page")
        after = memory.recall("where do transfers go", as_of=yesterday)

    assert [hit.item.id for hit in before.hits] == [one]
    assert not after.hits


def test_an_id_with_nul_is_nobodys(memory: Memory) -> None:
    """It names no thread and no memory, and is said to, as any other unknown id."""
    for look in (memory.thread, memory.get, memory.history, memory.links):
        with pytest.raises(NotFound):
            look("a\0b")
