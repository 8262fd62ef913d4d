"""The same history gives the same answers on every store, by every profile."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.model import Candidate, Recall
from bethink.ports import Record, Store, TextSearch, TrigramSearch
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from corpus import CONVERSATION, NOTES, NOW
from postgres_server import open_space
from records import MODEL, embedding, record, scope
from rows import each_row
from shared_embedder import SHARED
from thorough import examples

PROFILES = (
    "abmind",
    "default",
    "default-deep",
    "linksee",
    "memind-deep",
    "memind-simple",
    "remind",
    "siftcoder",
)
TOLERANCE = 1e-6
QUESTIONS = (
    "where is the deploy key",
    "what did we decide about PostgreSQL and billing",
    "who prefers short pull requests",
    "parse_config raises",
    "migrtions nightly exprt",  # misspelt
    "middleware",
    "what happened last week",
    "Maria",
    "nothing of this is stored anywhere",
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"kinds": ["fact"]},
    {"topics": ["ops", "auth"], "min_trust": 1},
    {"since": NOW - timedelta(days=30), "until": NOW},
    {"tags": ["blue"]},
)


class History:
    """A history of writes that is the same for every memory it is applied to."""

    def __init__(self, memory: Memory, clock: FixedClock, seed: int) -> None:
        self.memory, self.clock = memory, clock
        self.dice = random.Random(seed)
        self.live: list[str] = []
        self.gone: list[str] = []
        self.moments: list[datetime] = []

    def run(self, steps: int) -> None:
        """Store the corpus in pieces, and change, end and use what is there in between."""
        drafts = [
            {**draft, "id": f"m{number:03}", "tags": [self.dice.choice(("red", "blue"))]}
            for number, draft in enumerate([*NOTES, *CONVERSATION])
        ]
        self.dice.shuffle(drafts)
        actions = (self._update, self._forget, self._restore, self._correct, self._link, self._use)
        for step in range(steps):
            batch = [drafts.pop() for _ in range(min(len(drafts), 4))]
            self.live += [one.id for one in self.memory.remember_many(batch)] if batch else []
            self._advance()
            self.dice.choice(actions)(step)
            self._advance()
            self.moments.append(self.clock.now)

    def _advance(self) -> None:
        self.clock.now += timedelta(minutes=self.dice.randrange(1, 90))

    def _update(self, step: int) -> None:
        chosen = self.dice.choice(self.live)
        text = self.memory.get(chosen).text
        self.memory.update(chosen, text=f"{text}. Changed in step {step}", importance=0.7)

    def _forget(self, step: int) -> None:
        chosen = self.live.pop(self.dice.randrange(len(self.live)))
        self.memory.forget(chosen)
        self.gone.append(chosen)

    def _restore(self, step: int) -> None:
        if self.gone:
            chosen = self.gone.pop()
            self.memory.restore(chosen)
            self.live.append(chosen)

    def _correct(self, step: int) -> None:
        where = self.dice.choice(("Lisbon", "Porto", "Faro"))
        made = self.memory.remember(f"Maria lives in {where}", id=f"c{step:03}", kind="fact")
        if made.id not in self.live:
            self.live.append(made.id)

    def _link(self, step: int) -> None:
        first, second = self.dice.sample(self.live, 2)
        self.memory.link(first, "implies", second)

    def _use(self, step: int) -> None:
        self.memory.recall(self.dice.choice(QUESTIONS), track=True, profile="abmind")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[History, History]]:
    """The same history in SQLite and in PostgreSQL."""
    folder = tmp_path_factory.mktemp("twins")
    made = []
    for store in (None, open_space(folder)):
        clock = FixedClock(NOW)
        memory = (
            Memory.open("laws", path=folder / "space.db", embedder=SHARED, clock=clock)
            if store is None
            else Memory(store, embedder=SHARED, clock=clock)
        )
        made.append(History(memory, clock, seed=7))
        made[-1].run(steps=16)
    yield made[0], made[1]
    for one in made:
        one.memory.close()


def assert_same(one: Recall, other: Recall) -> None:
    """Two answers have the same hits in the same order, scores and evidence."""
    assert one.status == other.status
    assert [hit.item for hit in one.hits] == [hit.item for hit in other.hits]
    for first, second in zip(one.hits, other.hits, strict=True):
        _assert_same_hit(first, second)
    assert one.warnings == other.warnings
    assert [part.part for part in one.degraded] == [part.part for part in other.degraded]


def _assert_same_hit(one: Candidate, other: Candidate) -> None:
    assert one.score == pytest.approx(other.score, abs=TOLERANCE)
    reasons = [(e.by, e.op, e.why, e.via, e.rank) for e in one.evidence]
    assert reasons == [(e.by, e.op, e.why, e.via, e.rank) for e in other.evidence]
    values = [e.value for e in other.evidence]
    assert [e.value for e in one.evidence] == pytest.approx(values, abs=TOLERANCE)


@each_row("profile", PROFILES)
def test_every_profile_answers_alike(twins: tuple[History, History], profile: str) -> None:
    """Hits, order and evidence are equal; scores to a millionth."""
    for question in QUESTIONS:
        one, other = (twin.memory.recall(question, profile=profile, track=False) for twin in twins)
        assert_same(one, other)


@each_row("profile", PROFILES)
@each_row("where", FILTERS[1:], ids="-".join)
def test_filters_select_the_same(
    twins: tuple[History, History], profile: str, where: dict[str, Any]
) -> None:
    """A filter is one condition on both."""
    for question in QUESTIONS[:4]:
        one, other = (
            twin.memory.recall(question, profile=profile, track=False, **where) for twin in twins
        )
        assert_same(one, other)


@each_row("profile", PROFILES)
def test_the_past_is_the_same(twins: tuple[History, History], profile: str) -> None:
    """As of any moment of the history."""
    for moment in twins[0].moments[::4]:
        for question in QUESTIONS[:3]:
            one, other = (
                twin.memory.recall(question, profile=profile, track=False, as_of=moment)
                for twin in twins
            )
            assert_same(one, other)


@each_row("profile", PROFILES)
def test_readers_below_a_ceiling_see_the_same(twins: tuple[History, History], profile: str) -> None:
    """What is hidden is hidden alike."""
    for question in QUESTIONS[:4]:
        one, other = (
            twin.memory.below(1).recall(question, profile=profile, track=False) for twin in twins
        )
        assert_same(one, other)


def test_an_export_is_the_same(twins: tuple[History, History]) -> None:
    """All persistent data, in the same order."""
    one, other = (list(twin.memory.export()) for twin in twins)
    plain = [[{**line, "chain": ""} for line in lines] for lines in (one, other)]
    assert plain[0] == plain[1]


def test_nothing_is_left_to_mend(twins: tuple[History, History]) -> None:
    """A history leaves a store that every check finds sound."""
    found = [check for check in twins[1].memory.doctor() if not check.ok]
    assert found == []


@pytest.mark.parametrize("to_server", [True, False], ids=["to a server", "from a server"])
def test_an_export_moves_between_stores(
    twins: tuple[History, History], tmp_path: Path, *, to_server: bool
) -> None:
    """What one store exports the other takes, and answers alike; nothing is left to mend."""
    source = twins[0 if to_server else 1].memory
    # Both export, since both journals tell of it and are compared elsewhere.
    records = [list(twin.memory.export()) for twin in twins][0 if to_server else 1]
    clock = FixedClock(source.now)
    with (
        Memory(open_space(tmp_path), embedder=SHARED, clock=clock)
        if to_server
        else Memory.open("laws", path=tmp_path / "moved.db", embedder=SHARED, clock=clock)
    ) as moved:
        moved.import_(records)
        moved.reindex()
        for question in QUESTIONS[:5]:
            one, other = (
                memory.recall(question, track=False, profile="abmind") for memory in (source, moved)
            )
            assert_same(one, other)
        assert [check for check in moved.doctor() if not check.ok] == []


def crowded(seed: int) -> list[Record]:
    """Memories of few made-up words, many of them alike: ties in every search."""
    dice = random.Random(seed)
    letters = "abdeilnorstu"
    roots = ["".join(dice.choices(letters, k=dice.randint(4, 9))) for _ in range(60)]
    words = roots + [f"{dice.choice(letters)}{root}" for root in roots]
    words += [root[:2] + root[3:] for root in roots]
    texts = [" ".join(dice.choices(words, k=dice.randint(2, 6))) for _ in range(80)]
    made = []
    for number in range(400):
        text = dice.choice(texts) if number % 2 else " ".join(dice.choices(words, k=4))
        vector = embedding(dice.randrange(12))
        made.append(
            record(f"i{number:03}", text, embedding=vector, skip_duplicate=False, original=text[:9])
        )
    return made


@pytest.mark.parametrize("seed", range(examples(1, 3)))
def test_ties_and_misspelt_words_are_found_alike(tmp_path: Path, seed: int) -> None:
    """Of equal scores the same are kept, and similar words are the same, on every store."""
    records = crowded(seed)
    dice = random.Random(seed)
    one, other = SqliteStore.open(tmp_path / "one.db", space="laws"), open_space(tmp_path)
    with closing(one), closing(other):
        for store in (one, other):
            store.items.put(records, actor="tester", now=NOW)
        for _ in range(40):
            said = dice.choice(records).item.text
            text = "".join(sign for sign in said if sign == " " or dice.random() > 0.12)
            depth = dice.randrange(5, 30)

            assert _searched(one, text, depth) == _searched(other, text, depth), text


def _searched(store: Store, text: str, depth: int) -> list[list[tuple[str, float]]]:
    where, vector = scope(), embedding(len(text) % 12).vector
    results = (
        store.search.text(TextSearch(text, depth), where),
        store.search.substring(text, depth, where),
        store.search.pieces(TrigramSearch(text, depth), where),
        store.search.vector(vector, MODEL, depth, where),
        store.search.signature(text, depth, 0.5, where),
    )
    return [[(one.item.id, round(one.score, 6)) for one in found.matches] for found in results]
