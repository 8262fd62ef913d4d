"""What is asked of the past is answered as it was answered then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.model import Recall
from bethink.ports import Embedder, UsageDecay
from bethink.retrieval.profile import profile_names
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row
from thorough import examples

TEXTS = (
    "The deploy key is in vault A",
    "The deploy key is in vault B now",
    "Maria keeps the deploy key of Project Atlas",
    "Maria met Tom about Project Atlas",
    "Tom broke the nightly export last Friday",
    "2026-01-15: the export of Project Atlas moved to vault B",
    "Tea is served at four in the kitchen",
    "Maria likes tea, Tom likes coffee",
)
QUESTIONS = ("Where is the deploy key of Maria?", "export Atlas vualt tea")
WAITS = ({"seconds": 1}, {"hours": 2}, {"days": 1}, {"days": 9})
# What is in quarantine now is so for the past as well, so that it is not among these.
STATUSES = ("active", "superseded")
RELATIONS = ("contradicts", "supersedes", "implies", "related_to", "causes")

places = st.integers(0, 5)
steps = st.one_of(
    st.tuples(st.just("remember"), st.integers(0, len(TEXTS) - 1), st.sampled_from(("", "talk"))),
    st.tuples(st.just("update"), places, st.integers(0, len(TEXTS) - 1)),
    st.tuples(st.just("pin"), places, st.booleans()),
    st.tuples(st.just("forget"), places, st.none()),
    st.tuples(st.just("restore"), places, st.none()),
    st.tuples(st.just("judge"), places, st.sampled_from(STATUSES)),
    st.tuples(st.just("use"), places, st.none()),
    st.tuples(st.just("link"), places, st.tuples(places, st.sampled_from(RELATIONS))),
)
lives = st.lists(st.tuples(steps, st.sampled_from(WAITS)), min_size=2, max_size=8)


@dataclass
class Life:
    """A memory to which things happen, and what it answered after each."""

    memory: Memory
    clock: FixedClock
    ids: list[str] = field(default_factory=list)
    answered: list[tuple[datetime, str, Any]] = field(default_factory=list)

    def happen(self, step: tuple[str, int, Any]) -> None:
        name, place, more = step
        act: Callable[[int, Any], object] = getattr(self, f"_{name}")
        if name == "remember" or self.ids:
            act(place, more)

    def _id(self, place: int) -> str:
        return self.ids[place % len(self.ids)]

    def _is_live(self, place: int) -> bool:
        return self.memory.get(self._id(place)).live_to is None

    def _remember(self, text: int, session: str) -> None:
        kept = self.memory.remember(TEXTS[text], session=session or None)
        if kept.id not in self.ids:
            self.ids.append(kept.id)

    def _update(self, place: int, text: int) -> None:
        if self._is_live(place):
            self.memory.update(self._id(place), text=TEXTS[text])

    def _pin(self, place: int, pinned: bool) -> None:
        if self._is_live(place):
            self.memory.update(self._id(place), pinned=pinned)

    def _forget(self, place: int, _: None) -> None:
        self.memory.forget(self._id(place))

    def _restore(self, place: int, _: None) -> None:
        self.memory.restore(self._id(place))

    def _judge(self, place: int, status: Any) -> None:
        self.memory.store.items.set_status([self._id(place)], status, actor="x", now=self.clock.now)

    def _use(self, place: int, _: None) -> None:
        item = self._id(place)
        fading = UsageDecay(2, 0.1, 60.0, {item: 0.05})
        self.memory.store.activity.note_use([item], self.clock.now, fading=fading)

    def _link(self, place: int, other: tuple[int, str]) -> None:
        ends = (self._id(place), self._id(other[0]))
        said = {(link.src.id, link.type, link.dst.id) for link in self.memory.links(ends[0])}
        if (ends[0], other[1], ends[1]) in said:
            return  # said again, a link would have its new weight in the past, too
        if len(set(ends)) == 2 and self._is_live(place) and self._is_live(other[0]):
            self.memory.link(ends[0], other[1], ends[1])


def told(answer: Recall) -> list[tuple[object, ...]]:
    """What an answer says: which memories, in which words and standing, and how good."""
    return [
        (
            *(hit.item.id, hit.item.rev, hit.item.text, hit.item.status, hit.item.recalls),
            *(hit.item.last_recalled_at, round(hit.item.decay, 9), round(hit.score, 9)),
        )
        for hit in answer.hits
    ]


@each_row("profile", sorted(profile_names(())))
@settings(max_examples=examples(6, 10), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(happened=lives)
def test_the_past_answers_as_it_did(
    profile: str, embedder: Embedder, happened: list[tuple[tuple[str, int, Any], dict[str, float]]]
) -> None:
    """Whatever was stored, revised, forgotten, restored, judged, used or linked since: the
    same memories in the same order, by every profile."""
    clock = FixedClock(NOW)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        life = Life(memory, clock)
        for step, wait in happened:
            life.happen(step)
            for question in QUESTIONS:
                then = memory.recall(question, profile=profile, track=False)
                life.answered.append((clock.now, question, then))
            clock.forward(**wait)
        clock.forward(days=30)

        for when, question, then in life.answered:
            again = memory.recall(question, profile=profile, as_of=when, track=False)
            assert told(again) == told(then)
            # A link that was taken away since is not brought back.
        assert set(again.relations) <= set(then.relations)
