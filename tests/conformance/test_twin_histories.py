"""Whatever happened above a ceiling, and in which order, leaves no trace below it.

Two memories live through the same history below the ceiling. In one of them other things
happen above it in between: facts are repeated, changed, forgotten, restored and erased. After
each step what is told of entities, links, threads and the whole store is the same in both.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.config.settings import Settings
from bethink.core import ids
from bethink.errors import BethinkError
from bethink.maintain.insights import Insights
from bethink.retrieval.provenance import InsightNode
from bethink.testing import FixedClock
from rows import each_row
from thorough import examples

CEILING = 1
START = datetime(2026, 5, 4, 8, tzinfo=UTC)
TEXTS = (
    "Ylva owns the Kestrel plan in Molde",
    "Ylva owns the Kestrel plan in Skien",
    "YLVA owns the KESTREL plan since May",
    "Hakon closed the cinema in Molde",
    "Hakon knows Ylva from the cinema",
    "Hakon knows Petra (also called Pip) from Skien",
    "Petra rests today",
    "The cinema is part of Kestrel",
)
ENTITIES = ("Ylva", "Kestrel", "Molde", "Skien", "Hakon", "Petra", "Pip")
BELOW = (
    *("remember", "remember", "update", "retag", "forget", "restore", "erase", "recall"),
    *("link", "unlink", "merge", "split", "thread", "undo", "maintain", "import"),
)
ABOVE = (
    *("remember", "remember", "update", "retag", "forget", "restore", "erase", "thread", "edit"),
    "tie",
)
EDIT = {"path": "src/roof.py", "operation": "edit", "intent": "mend the roof of the cinema"}
KEY = "the roof"


class Step(NamedTuple):
    """What is done, above the ceiling or below it, and to which of what there is."""

    above: bool
    what: str
    first: int
    second: int


class World:
    """A memory with its owner, and a caller who may see up to the ceiling."""

    def __init__(self, opened: Callable[..., Memory]) -> None:
        ids.make_id._last = 0
        self.clock = FixedClock(START)
        settings = replace(Settings(), max_classification=CEILING, actor="owner")
        self.owner = opened(clock=self.clock, settings=settings)
        self.low = self.owner.below(CEILING)
        self.known: dict[bool, list[str]] = {False: [], True: []}

    def do(self, step: Step) -> str:
        """Do a step; return what it answers."""
        ids.make_id._last = 0
        memory = self.owner if step.above else self.low
        try:
            return str(self._done(memory, step))
        except BethinkError as error:
            return f"{type(error).__name__}: {error.message}"

    def _done(self, memory: Memory, step: Step) -> Any:
        text = TEXTS[step.first % len(TEXTS)]
        one, other = (ENTITIES[n % len(ENTITIES)] for n in step[2:])
        known = self.known[step.above]
        if step.what == "remember":
            level = 3 if step.above else step.second % (CEILING + 1)
            key = KEY if step.above and step.second == 7 else None
            made = memory.remember(text, classification=level, key=key)
            if made.status == "stored":
                known.append(made.id)
            return made.status, made.id
        if step.what in ("link", "unlink", "merge", "split"):
            return self._relate(memory, step.what, one, other)
        if step.what == "undo":
            return memory.undo()
        if step.what == "recall":
            return [hit.score for hit in memory.recall(text, profile="linksee", track=True).hits]
        if step.what == "maintain":
            return len(memory.maintain(min_age_days=0).done)
        if step.what == "import":
            return memory.import_(_exported(aged=step.first % 2 == 1))
        if not known:
            return None
        if step.what == "thread":
            # Whoever may see more adds what is above to a thread that others have made.
            members = [known[step.first % len(known)], *self.known[False][-1:]]
            return memory.put_thread("Plans", tuple(dict.fromkeys(members)), id="plans").id
        if step.what == "tie":
            below = self.known[False]
            return below and memory.link(below[-1], "contradicts", known[step.first % len(known)])
        if step.what == "edit":
            return memory.note_edits([{**EDIT, "item": known[-1], "at": START.isoformat()}])
        return _change(memory, step, known[step.first % len(known)])

    @staticmethod
    def _relate(memory: Memory, what: str, one: str, other: str) -> Any:
        if what in ("link", "unlink"):
            known = memory.store.graph
            ends = [found.id for name in (one, other) for found in known.entities(prefix=name)[:1]]
            if len(ends) < 2:
                return None
            return getattr(memory, what)(ends[0], "owns", ends[1])
        if what == "merge":
            return memory.merge_entities(one, other)
        return memory.split_entities(one, other.lower())

    def told(self) -> Iterator[str]:
        """Tell all that a caller below the ceiling can learn of entities and sums."""
        yield repr(self.low.entities(limit=200, min_memories=0))
        yield repr(self.low.store.graph.entities(limit=200))
        for name in ENTITIES:
            for kind in ("person", "other"):
                yield repr(self.low.store.graph.links_of([f"{kind}:{name.lower()}"]))
        edges = self.low.store.graph.edges([f"person:{ENTITIES[0].lower()}"], 9, self.clock())
        yield repr(edges)
        yield repr(self.low.threads())
        yield repr(self.low.recall_file("src"))
        yield repr(self.low.stats())
        yield from map(repr, self.low.export())


@cache
def _exported(*, aged: bool) -> tuple[dict[str, Any], ...]:
    """What another space holds, as this or an earlier version exported it."""
    clock = FixedClock(START - timedelta(days=9))
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        made = memory.remember(TEXTS[0], key=KEY)
        memory.put_thread("Plans", (made.id,), id="plans")
        memory.note_edits([{**EDIT, "at": START.isoformat()}])
        memory.recall("who owns Kestrel?", profile="remind", track=True)
        memory.forget(memory.remember(TEXTS[3]).id)
        records = tuple(memory.export())
    for one in records:
        if aged and one["type"].startswith("thread"):
            del one["classification"]
    return records


def _change(memory: Memory, step: Step, item: str) -> Any:
    if step.what == "update":
        return memory.update(item, text=TEXTS[step.second % len(TEXTS)]).rev
    if step.what == "retag":
        return memory.update(item, tags=[f"t{step.second}"]).rev
    if step.what == "restore":
        return memory.restore(item)
    done = memory.forget(item, erase=step.what == "erase")
    # How long a server keeps freed rows depends on whoever else uses it.
    return replace(done, receipt=done.receipt and done.receipt._replace(out_of_reach=()))


def live_through(
    steps: list[Step], opened: Callable[..., Memory], *, compare_each: bool = True
) -> None:
    """Live through a history with and without what happens above; compare after each step."""
    plain, full = World(opened), World(opened)
    for number, step in enumerate(steps):
        for world in (plain, full):
            world.clock.now = START + timedelta(hours=number, minutes=30 if step.above else 0)
        answers = [world.do(step) for world in ((full,) if step.above else (plain, full))]
        assert len(set(answers)) == 1, steps[: number + 1]
        for world in (plain, full):
            world.clock.now = START + timedelta(hours=number, minutes=45)
        if compare_each or number == len(steps) - 1:
            for one, two in zip(plain.told(), full.told(), strict=True):
                assert one == two, (steps[: number + 1], one, two)
    for world in (plain, full):
        assert [one for one in world.owner.doctor() if not one.ok] == []
        world.owner.close()


@pytest.fixture(autouse=True, scope="module")
def _same_ids() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ids, "_random", lambda _: 1)
        yield


def _in_memory(**given: Any) -> Memory:
    return Memory.open(":memory:", embedder="none", **given)


def _steps(*told: str) -> list[Step]:
    """Name steps as ``what first second``; those above the ceiling begin with ``+``."""
    found = []
    for one in told:
        what, first, second = (*one.lstrip("+").split(), "0", "0")[:3]
        found.append(Step(one[0] == "+", what, int(first), int(second)))
    return found


REPEATED = _steps("remember 0", "+remember 1")
REPEATED_FIRST = _steps("+remember 1", "remember 0")
ERASED_ABOVE = _steps("remember 0", "+remember 3", "+erase")
ERASED_BELOW = _steps("remember 0", "+remember 1", "remember 3", "erase 0", "remember 0")
MENTIONED_AGAIN = _steps("remember 3", "update 0 6", "update 0 3", "+remember 0", "retag")
MERGED = _steps("remember 0", "remember 3", "merge 0 4", "+remember 4", "erase 1", "split 0 4")
NAMED = _steps("remember 5", "+remember 5", "+update 0 5", "erase 0", "remember 6")
THREADED = _steps("remember 3", "thread", "+remember 0", "+thread 0", "remember 0", "thread 1")
THREADED_FIRST = _steps("remember 3", "+remember 0", "+thread", "thread", "+erase", "erase")
IMPORTED = _steps("+remember 4", "+edit", "+thread", "import", "undo", "import")
IMPORTED_AGED = _steps("+remember 4", "+edit", "+thread", "import 1", "thread", "remember 6")
IMPORTED_NAMES = _steps("+remember", "import 1", "undo", "import")
EDITED_AFTER_AN_ERASE = _steps("+remember 4", "+erase 0", "+edit")
IMPORTED_ERASED = _steps("+remember 4 7", "+remember 7", "+erase 0", "import", "undo")
TIED_AND_ERASED = _steps("remember 0", "+remember 3", "+tie", "+erase 0")
UNLINKED = _steps("remember 0", "+remember 1", "unlink 0 1", "remember 1", "+forget 0")
HISTORIES = {
    "repeated": REPEATED,
    "repeated first": REPEATED_FIRST,
    "erased above": ERASED_ABOVE,
    "erased below": ERASED_BELOW,
    "mentioned again": MENTIONED_AGAIN,
    "merged": MERGED,
    "named": NAMED,
    "unlinked": UNLINKED,
    "tied and erased": TIED_AND_ERASED,
    "threaded": THREADED,
    "threaded first": THREADED_FIRST,
    "imported": IMPORTED,
    "imported aged": IMPORTED_AGED,
    "imported names": IMPORTED_NAMES,
    "imported after an erase": IMPORTED_ERASED,
    "edited after an erase": EDITED_AFTER_AN_ERASE,
}


@each_row("name", HISTORIES)
def test_a_history_above_leaves_no_trace_below(name: str) -> None:
    """The histories in which something once was left behind."""
    live_through(HISTORIES[name], _in_memory)


_STEP = st.booleans().flatmap(
    lambda above: st.builds(
        Step,
        st.just(above),
        st.sampled_from(ABOVE if above else BELOW),
        st.integers(0, 7),
        st.integers(0, 7),
    )
)


@hypothesis_settings(max_examples=examples(15, 40))
@given(st.lists(_STEP, max_size=12))
def test_any_history_above_leaves_no_trace_below(steps: list[Step]) -> None:
    """Whatever is done in whatever order."""
    live_through(steps, _in_memory)


def random_history(seed: int, length: int) -> list[Step]:
    """Make up a history."""
    chance = random.Random(seed)
    steps = []
    for _ in range(length):
        above = chance.random() < 0.45
        what = chance.choice(ABOVE if above else BELOW)
        steps.append(Step(above, what, chance.randrange(8), chance.randrange(8)))
    return steps


_PLACES = ("Molde", "Skien", "Bergen", "Hamar", "Lom", "Voss")


def _told(chance: random.Random, number: int) -> tuple[str, dict[str, Any]]:
    """Make up a memory that may belong to a thread, of any classification."""
    one, other = chance.sample(_PLACES, 2)
    fields: dict[str, Any] = {
        "entities": [f"place:{one.lower()}", f"place:{other.lower()}"],
        "classification": chance.choice((0, 1, 1, 2, 3)),
        "occurred_at": START - timedelta(days=40) + timedelta(days=number / 2),
    }
    if chance.random() < 0.2:
        fields["topic"] = chance.choice(("roof", "mill"))
    return f"Report {number} on {one} and {other} is fixed", fields


@each_row("seed", range(examples(2, 4)))
@each_row("ceiling", range(3))
def test_threads_below_a_ceiling_are_those_of_what_is_below_it(ceiling: int, seed: int) -> None:
    """Whoever looks for them, those who see all or those below, at once or in several runs."""
    plain, full = World(_in_memory), World(_in_memory)
    chance = random.Random(seed)
    for number in range(48):
        text, fields = _told(chance, number)
        for world in (plain, full):
            ids.make_id._last = number
            world.clock.now = START + timedelta(minutes=number)
            if world is full or fields["classification"] <= ceiling:
                world.owner.remember(text, **fields)
            if number % 12 == 11:
                world.owner.maintain("threads")
        low = [world.owner.below(ceiling) for world in (plain, full)]
        assert low[0].threads() == low[1].threads()
    everything = full.owner.store.activity.threads()
    assert len(everything) > 1
    for world in (plain, full):
        assert len(world.owner.below(ceiling).maintain("threads").done) == 0
    assert full.owner.store.activity.threads() == everything
    assert len(full.owner.maintain("threads").done) == 0
    for world in (plain, full):
        world.owner.close()


# Ids are counted within a moment; what an insight is made of has ids.
_MADE_OF_IDS: dict[str, Any] = {"id": "", "metadata": {}, "content_hash": ""}
_SMALL = Insights(min_loose=8, min_leaf=3, most_leaf=4, branch_after=2, root_after=2)


def _tree(nodes: Sequence[InsightNode]) -> list[Any]:
    return sorted(
        (repr(node.insight._replace(**_MADE_OF_IDS)), node.stale, _tree(node.below))
        for node in nodes
    )


@each_row("looks", ["owner", "caller"])
@each_row("ceiling", range(3))
def test_insights_below_a_ceiling_are_those_of_what_is_below_it(ceiling: int, looks: str) -> None:
    """Whoever has them made; they are of the class of their memories, and come to rest."""
    plain, full = World(_in_memory), World(_in_memory)
    chance = random.Random(7)
    for number in range(60):
        text, fields = _told(chance, number)
        for world in (plain, full):
            ids.make_id._last = number * 1000
            world.clock.now = START + timedelta(minutes=number)
            if world is full or fields["classification"] <= ceiling:
                world.owner.remember(text, **fields)
            if number % 20 == 19:
                memory = world.owner if looks == "owner" else world.owner.below(ceiling)
                runs = [memory.maintain(_SMALL).run for _ in range(8)]
                assert runs[-1] is None
        one, two = (_tree(world.owner.below(ceiling).insights()) for world in (plain, full))
        assert one == two
    assert one
    for world in (plain, full):
        world.owner.close()


_IDS = re.compile(r"\b6[0-9a-z]{15}\b|\b[0-9a-f]{64}\b")
_SAID = (
    "{0} runs the {1} from {2}",
    "The {1} begins in {2}",
    "{0} moved the {1} to {2} because the lease ended",
    "The owner of the {1} is {0}",
    "{0} met Petra at {2} about the {1}",
    "The {1} failed because the disk of {2} is full",
)


def _with_numbered_ids(text: str, known: dict[str, str]) -> str:
    """Ids are counted within a moment, and keys made of them: only their order is the same."""
    return _IDS.sub(lambda match: known.setdefault(match[0], f"id-{len(known)}"), text)


def _maintained(seed: int, ceiling: int, embedder: str, *, full: bool) -> Iterator[str]:
    """Tell what is seen below a ceiling after the owner's maintenance of everything."""
    chance = random.Random(seed)
    world = World(partial(Memory.open, ":memory:", embedder=embedder))
    low, known = world.owner.below(ceiling), dict[str, str]()
    for number in range(40):
        said = chance.choice(_SAID).format(
            *map(chance.choice, (ENTITIES, ("mill", "audit", "cinema", "roof"), _PLACES))
        )
        level, force = chance.choice((0, 1, 1, 2, 3)), chance.random() < 0.5
        topic, weight = chance.choice((None, None, "mill")), chance.choice((0.1, 0.5, 0.9))
        ids.make_id._last = number * 1000
        world.clock.now = START + timedelta(days=number)
        if full or level <= ceiling:
            world.owner.remember(
                said, classification=level, force=force, topic=topic, importance=weight
            )
        if number in (20, 39):
            world.clock.now += timedelta(days=0 if number == 20 else 90, hours=1)
            world.owner.maintain(clock_is_right=True, share=0.3 if seed % 2 else None)
            world.owner.maintain(_SMALL)
            world.owner.build_insights()
    for told in (low.browse(limit=99), low.events(limit=999), low.maintenance(), low.insights()):
        yield _with_numbered_ids(repr(told), known)
    world.low = low
    for one in world.told():
        if "'type': 'key'" not in one:  # these are in the order of their hashes
            yield _with_numbered_ids(one, known)
    yield _with_numbered_ids(repr(low.maintain(share=0.5).done), known)
    yield _with_numbered_ids(repr(low.events(limit=999)), known)
    world.owner.close()


@each_row("seed", range(examples(3, 200)))
def test_what_the_owner_maintains_leaves_no_trace_below(seed: int) -> None:
    """Each job looks at everything; its lines in the journal are of one classification each."""
    compare_maintained(seed)


def compare_maintained(seed: int) -> None:
    """Compare what is told below a ceiling with and without what is above it."""
    ceiling, embedder = seed % 3, ("hash", "none", "encoder")[seed // 3 % 3]
    plain, full = (_maintained(seed, ceiling, embedder, full=full) for full in (False, True))
    for one, two in zip(plain, full, strict=True):
        assert one == two
