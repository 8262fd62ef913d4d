"""Whatever happened since the last run: what is stored is what all memories form."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.errors import NotFound, Refused
from bethink.maintain.insights import Insights
from bethink.maintain.job import Job, Proposal
from bethink.maintain.threads import FindThreads, Seen, ThreadSearch, thread_views
from bethink.ports import Embedder
from bethink.testing import FixedClock
from corpus import NOW
from thorough import examples

ENTITIES = [f"project:{name}" for name in ("Alder", "Birch", "Cedar", "Dogwood", "Elm")]
ENTITIES += ["ticket:FW-1", "ticket:FW-2"]
TOPICS = (None, None, None, None, "weir", "lock")
WORDS = ("gate", "crane", "bolt", "storm", "heron", "paint", "boat", "plank", "cellar", "rain")
JOB = FindThreads()
INSIGHTS = Insights(min_loose=3, min_leaf=2, most_leaf=4, branch_after=1, root_after=1)


class History:
    """Random changes to a memory, of every kind that there is."""

    def __init__(self, memory: Memory, clock: FixedClock, seed: int) -> None:
        self.memory, self.clock, self.random = memory, clock, random.Random(seed)
        self.ids: list[str] = []

    def change(self) -> None:
        """Make one change."""
        if len(self.ids) < 4:
            self.remember()
            return
        kinds = (self.remember, self.update, self.forget, self.restore, self.erase, self.link,
                 self.unlink, self.judge, self.wait, self.merge, self.run_in_part)  # fmt: skip
        self.random.choices(kinds, (8, 4, 2, 2, 2, 2, 1, 2, 2, 0.3, 0.5))[0]()

    def fields(self) -> dict[str, Any]:
        rng = self.random
        return {
            "text": f"The {' '.join(rng.choices(WORDS, k=3))} was {rng.choice(WORDS)}ed"
            f" {rng.randrange(1000)}{rng.choice(('', '', ' and is fixed', ' but broke', '?'))}",
            "topic": rng.choice(TOPICS),
            "entities": rng.sample(ENTITIES, rng.choice((0, 1, 1, 1, 2, 2))),
            "occurred_at": self.clock.now - timedelta(days=rng.choice((0, 0, 1, 3, 9, 40, 90))),
            "classification": rng.choice((0, 1, 1, 2, 3)),
        }

    def remember(self) -> None:
        draft = self.fields()
        if self.random.random() < 0.1:
            draft["valid_to"] = self.clock.now + timedelta(days=self.random.randrange(1, 30))
        self.ids.append(self.memory.remember(**draft, force=True).id)

    def update(self) -> None:
        fields = self.fields()
        some = self.random.sample(sorted(fields), self.random.randrange(1, 4))
        with suppress(Refused):
            self.memory.update(self.one(), **{name: fields[name] for name in some})

    def forget(self) -> None:
        self.memory.forget(self.one())

    def restore(self) -> None:
        with suppress(Refused):
            self.memory.restore(self.one())

    def erase(self) -> None:
        gone = self.random.sample(self.ids, self.random.choice((1, 1, 1, 3)))
        self.memory.forget(*gone, erase=True)
        self.ids = [one for one in self.ids if one not in gone]

    def link(self) -> None:
        one, other = self.random.sample(self.ids, 2)
        with suppress(Refused):
            self.memory.link(one, "causes", other, weight=self.random.choice((0.4, 0.8, 1.0)))

    def unlink(self) -> None:
        for link in self.memory.store.graph.links_of(self.ids, ("causes",))[:1]:
            with suppress(Refused):
                self.memory.unlink(link.src.id, "causes", link.dst.id)

    def judge(self) -> None:
        status = self.random.choice(("active", "superseded", "quarantined"))
        store = self.memory.store
        store.items.set_status([self.one()], status, actor="tester", now=self.clock.now)

    def wait(self) -> None:
        self.clock.forward(days=self.random.choice((1, 10, 20, 50)))

    def merge(self) -> None:
        with suppress(Refused, NotFound):
            self.memory.merge_entities("project:alder", "project:birch")

    def run_in_part(self) -> None:
        """A run of each job that ends in the middle."""
        for job in (JOB, INSIGHTS):
            plan = self.memory.maintain(job, preview=True).plan
            some = plan.steps[: self.random.randrange(len(plan.steps) + 1)]
            self.memory.carry_out(plan._replace(steps=some, places=()))

    def one(self) -> str:
        return self.random.choice(self.ids)


def plain(threads: Seen) -> Seen:
    """Threads without when they were first made."""
    return {key: thread._replace(created_at=None) for key, thread in threads.items()}


def proposed(job: Job, memory: Memory) -> list[Proposal]:
    """What a job proposes to do."""
    work = memory.session.job_context()
    return [one for one in job.plan(work) if one.place is None]


def check_settled(job: Job, memory: Memory) -> None:
    """Run a job until nothing is left; then it finds nothing, and leaves no line."""
    while memory.maintain(job).run is not None:
        pass
    lines = last_lines(memory)
    memory.maintain(job)

    assert last_lines(memory) == lines
    assert proposed(job, memory) == []


def last_lines(memory: Memory) -> list[Any]:
    return memory.store.admin.changes(item=None, actor=None, limit=3)


def check_threads(memory: Memory) -> None:
    """Compare the stored threads with all found anew."""
    work = memory.session.job_context()
    memory.maintain(JOB)
    with work.store.snapshot():
        finding = ThreadSearch(JOB, thread_views(work), work)
        found, stored = finding.find_all(), finding.stored()
    assert plain(stored) == plain(found)
    assert memory.maintain(JOB, preview=True).plan.steps == ()


@pytest.mark.parametrize("seed", range(examples(6, 12)))
def test_stored_threads_are_the_threads_of_everything(seed: int, embedder: Embedder) -> None:
    """After every run of a history, the stored threads are those that all memories form."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder if seed % 2 else "none", clock=clock) as memory:
        history = History(memory, clock, seed)
        for number in range(16):
            for _ in range(history.random.randrange(1, 6)):
                history.change()
            check_threads(memory)
            if number % 4 == 3:
                check_settled(JOB, memory)


@pytest.mark.parametrize("seed", range(examples(6, 12)))
def test_insights_come_to_rest(seed: int, embedder: Embedder) -> None:
    """Whatever happened before: after runs until nothing is left, the next proposes nothing."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder if seed % 2 else "none", clock=clock) as memory:
        history = History(memory, clock, seed)
        for number in range(16):
            for _ in range(history.random.randrange(1, 6)):
                history.change()
            memory.maintain(INSIGHTS)
            if number % 5 == 4:
                check_settled(INSIGHTS, memory)
