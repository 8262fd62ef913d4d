"""What no write has judged, maintenance judges: once, in parts, and wherever it was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import ModelError
from bethink.ingest.pipeline import remember
from bethink.maintain.updates import JudgeUpdates
from bethink.model import Draft
from bethink.ports import Embedder, PairVerdict, Store
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from corpus import NOW
from fallible import Down
from postgres_server import open_space

OLD, NEW = "The deploy key is in vault A", "The deploy key moved to vault B"
LIMITS = [f"The upload limit is {size} MB" for size in (5, 10, 20)]
PAIRS = [(f"The code of gate {n} is {n}{n}", f"The code of gate {n} is {n}{n + 1}") for n in "1357"
         for n in [int(n)]]  # fmt: skip
UPDATE_TYPES = ("supersedes", "updates", "contradicts")


@dataclass
class Judge:
    """Certain of some pairs; may be broken, or break after so many batches."""

    sure: set[tuple[str, str]] = field(default_factory=set)
    asked: list[tuple[str, str]] = field(default_factory=list)
    lasts: int | None = None

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        if pairs and self.lasts is not None:
            self.lasts -= 1
            if self.lasts < 0:
                raise ModelError("the weights are damaged")
        self.asked += pairs
        said = [1.0 if pair in self.sure else 0.0 for pair in pairs]
        return [PairVerdict(one, 0.0, 0.0, 1.0 - one) for one in said]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    told = Judge({(OLD, NEW), *PAIRS, *pairwise(LIMITS)})
    monkeypatch.setattr("bethink.models.update_model.update_model", told)
    return told


Open = Callable[..., Memory]


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened: Store = (
        SqliteStore.open(None, space="updates")
        if request.param == "sqlite"
        else open_space(tmp_path)
    )
    yield opened
    opened.close()


@pytest.fixture
def memory(store: Store, embedder: Embedder, judge: Judge) -> Memory:
    return Memory(store, embedder=embedder, clock=FixedClock(NOW), settings=Settings())


def without_judging(memory: Memory, judge: Judge, *texts: str | dict[str, Any]) -> list[str]:
    """Stored one after the other, as by a version that has no model."""
    ids = []
    for text in texts:
        memory.session.clock.forward(minutes=1)
        about = {"text": text} if isinstance(text, str) else text
        (one,) = remember([Draft(**about)], replace(memory.session.write_context(), judge=None))
        ids.append(one.id)
    assert judge.asked == []
    return ids


def links(memory: Memory) -> list[tuple[str, str, str]]:
    texts = {item.id: item.text for item in memory.browse(limit=500, max_classification=3)}
    found = memory.store.graph.links_of(sorted(texts), UPDATE_TYPES)
    return sorted({(texts[one.src.id], one.type, texts[one.dst.id]) for one in found})


def run(memory: Memory, **about: Any) -> list[str]:
    """A run of the job in small parts; what was done."""
    memory.session.clock.forward(minutes=1)
    report = memory.maintain(JudgeUpdates(**{"batch": 2, **about}))
    return [one.proposal.why for one in report.done]


def expected(*pairs: tuple[str, str]) -> list[tuple[str, str, str]]:
    return sorted((newer, "supersedes", older) for older, newer in pairs)


def test_what_was_stored_before_gets_its_links(memory: Memory, judge: Judge) -> None:
    """In a run without names, too; answers mark the older one then."""
    old, new = without_judging(memory, judge, OLD, NEW)
    assert links(memory) == []

    memory.maintain()

    assert links(memory) == expected((OLD, NEW))
    hits = memory.recall("where is the deploy key?").hits
    assert [(hit.item.id, hit.see_newer) for hit in hits] == [(new, None), (old, new)]


def test_what_a_write_has_judged_is_not_judged_again(memory: Memory, judge: Judge) -> None:
    """One or many, in the transaction that stores them: the journal says so. Nor is an insight."""
    memory.remember_many([OLD, NEW])
    memory.remember("All keys are in vaults", level="insight")
    asked = list(judge.asked)

    assert run(memory) == []
    assert judge.asked == asked


def test_a_second_run_finds_nothing(memory: Memory, judge: Judge) -> None:
    """And writes nothing."""
    without_judging(memory, judge, OLD, NEW, *PAIRS[0])
    assert run(memory) == ["2 memories not compared with others yet"] * 2
    lines = len(memory.events(limit=500))
    asked = list(judge.asked)

    assert run(memory) == []
    assert (judge.asked, len(memory.events(limit=500))) == (asked, lines)


@pytest.mark.parametrize("lasts", [0, 1, 3])
def test_an_interrupted_run_is_continued(memory: Memory, judge: Judge, lasts: int) -> None:
    """After any part: the next run begins where that one ended."""
    without_judging(memory, judge, *(text for pair in PAIRS for text in pair))
    judge.lasts = lasts
    run(memory)
    assert len(links(memory)) == lasts
    done, judge.lasts = len(judge.asked), None
    run(memory)

    assert links(memory) == expected(*PAIRS)
    later = judge.asked[done:]
    assert not any(set(pair) <= {*PAIRS[0]} for pair in later) or not lasts
    assert run(memory) == []


def test_a_run_is_bounded(memory: Memory, judge: Judge) -> None:
    """So many memories at most, the oldest first; the next run goes on."""
    without_judging(memory, judge, *(text for pair in PAIRS for text in pair))

    assert run(memory, most=3) == [
        "2 memories not compared with others yet",
        "1 memory not compared with others yet",
    ]
    assert len(links(memory)) == 2
    while run(memory, most=3):
        pass
    assert links(memory) == expected(*PAIRS)


def test_what_has_no_vector_is_waited_for(store: Store, judge: Judge, embedder: Embedder) -> None:
    """Nothing after it is passed over; once it has one, all are judged."""
    clock = FixedClock(NOW)
    with_model = Memory(store, embedder=embedder, clock=clock, settings=Settings())
    down = Memory(store, embedder=Down(), clock=clock, settings=Settings())
    without_judging(with_model, judge, PAIRS[0][0])
    without_judging(down, judge, OLD)
    without_judging(with_model, judge, PAIRS[0][1], NEW)

    run(with_model)
    assert links(with_model) == expected(PAIRS[0])
    with_model.maintain("entities")
    run(with_model)
    assert links(with_model) == expected(PAIRS[0], (OLD, NEW))


def test_without_an_embedder_nothing_is_proposed(store: Store, judge: Judge) -> None:
    """There are no neighbours."""
    memory = Memory(store, embedder=None, clock=FixedClock(NOW), settings=Settings())
    memory.remember_many([OLD, NEW])

    assert memory.maintain("updates", preview=True).plan.steps == ()


def test_what_was_imported_is_judged(memory: Memory, judge: Judge, embedder: Embedder) -> None:
    """An export holds no verdicts of memories that were never judged."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as other:
        other.remember_many([OLD, NEW])
        memory.import_(list(other.export()))

    run(memory)
    assert links(memory) == expected((OLD, NEW))


def test_the_place_comes_with_an_export(memory: Memory, judge: Judge, embedder: Embedder) -> None:
    """What was judged there keeps its links here; one that was removed stays removed."""
    _, _, old, new = without_judging(memory, judge, OLD, NEW, *PAIRS[0])
    run(memory)
    memory.unlink(new, "supersedes", old)
    with Memory.open(":memory:", embedder=embedder, clock=memory.session.clock) as other:
        other.import_(list(memory.export()))
        run(other)
        assert links(other) == expected((OLD, NEW))


def test_a_link_that_was_removed_stays_removed(memory: Memory, judge: Judge) -> None:
    """Also where the memory is judged again: it was restored."""
    old, new = without_judging(memory, judge, OLD, NEW)
    run(memory)
    memory.unlink(new, "supersedes", old)
    memory.forget(old)
    memory.restore(old)

    assert run(memory)
    assert links(memory) == []


def test_what_was_forgotten_is_judged_when_it_is_back(memory: Memory, judge: Judge) -> None:
    """Not before."""
    old, _ = without_judging(memory, judge, OLD, NEW)
    memory.forget(old)
    run(memory)
    assert (links(memory), judge.asked) == ([], [])

    memory.restore(old)
    run(memory)
    assert links(memory) == expected((OLD, NEW))


def test_words_that_were_changed_without_the_model_are_judged(memory: Memory, judge: Judge) -> None:
    """As new as the change, though the memory is older."""
    first, second = without_judging(memory, judge, "Bananas are yellow", OLD)
    run(memory)
    judge.lasts = 0
    memory.session.clock.forward(minutes=1)
    memory.update(first, text=NEW)
    judge.lasts = None
    assert links(memory) == []

    run(memory)
    assert links(memory) == expected((OLD, NEW))
    hits = memory.recall("where is the deploy key?").hits
    assert [(hit.item.id, hit.see_newer) for hit in hits] == [(first, None), (second, first)]


def test_a_change_of_other_fields_leaves_nothing_to_judge(memory: Memory, judge: Judge) -> None:
    """It keeps the links."""
    old, _ = (memory.remember(text).id for text in (OLD, NEW))
    memory.update(old, topic="keys")

    assert run(memory) == []


def test_what_one_was_made_from_it_does_not_update(memory: Memory, judge: Judge) -> None:
    """As when it is stored."""
    (old,) = without_judging(memory, judge, OLD)
    without_judging(memory, judge, {"text": NEW, "derives_from": (old,)})

    run(memory)
    assert (links(memory), judge.asked) == ([], [])


def test_a_memory_that_changed_since_the_run_began_is_left_alone(
    memory: Memory, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its change has judged the new words already."""
    old, _ = without_judging(memory, judge, OLD, NEW)
    ask = judge.judge

    def meanwhile(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        monkeypatch.setattr(judge, "judge", ask)
        memory.session.clock.forward(minutes=1)
        memory.update(old, text="Bananas are yellow")
        return ask(pairs)

    monkeypatch.setattr(judge, "judge", meanwhile)
    run(memory)

    assert links(memory) == []


def test_a_part_of_the_memories_is_not_judged(memory: Memory, judge: Judge) -> None:
    """Neither a topic nor what is below a ceiling: what was passed is not looked at again."""
    without_judging(memory, judge, OLD, NEW)

    assert memory.maintain("updates", preview=True, where={"topics": ("keys",)}).plan.steps == ()
    assert memory.below(2).maintain("updates", preview=True).plan.steps == ()


def test_what_is_above_changes_nothing_below(memory: Memory, judge: Judge) -> None:
    """Those that few may see take no place, and nobody below learns that they were judged."""
    hidden = [{"text": f"{NEW}, says note {n}", "classification": 3} for n in range(20)]
    without_judging(memory, judge, *hidden[:10], OLD, *hidden[10:], NEW)
    below = memory.below(2)
    lines = [line.kind for line in below.events(limit=500)]

    run(memory, batch=7)

    assert (NEW, "supersedes", OLD) in links(memory)
    assert all(set(pair) == {OLD, NEW} for pair in judge.asked if {OLD, NEW} & set(pair))
    told = [line.kind for line in below.events(limit=500)]
    assert [kind for kind in told if kind != "ran"] == lines


def test_long_stretches_of_the_journal_are_passed_once(
    memory: Memory, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing in them waits the place is kept as well."""
    monkeypatch.setattr("bethink.maintain.journal.LINES_AT_ONCE", 5)
    for number in range(8):
        memory.remember(f"Fact {number} of the eight")
    read: list[int] = []
    events = memory.store.admin.events
    monkeypatch.setattr(
        memory.store.admin, "events",
        lambda *, after=0, limit=100: read.append(after) or events(after=after, limit=limit),
    )  # fmt: skip

    run(memory)
    read.clear()
    run(memory)

    assert 0 not in read


def test_undoing_a_run_takes_its_links_back(memory: Memory, judge: Judge) -> None:
    """They stay removed: the memories are not judged again."""
    ids = without_judging(memory, judge, OLD, NEW)
    run = memory.maintain("updates").run
    assert run is not None

    undone = memory.undo_run(run)

    assert undone.unlinked == 1
    assert memory.store.graph.links_of(ids, UPDATE_TYPES) == []
    assert memory.maintain("updates").run is None
