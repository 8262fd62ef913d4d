"""What a newer memory updates is judged as it is stored, and kept as a link; nothing is hidden.

The judge of these laws is told what to say, so that they hold whatever a model has learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import permutations
from typing import Any

import pytest

from bethink import Memory
from bethink.core.ids import IdGenerator
from bethink.errors import ModelError
from bethink.ingest.admission import WriteContext, prepare
from bethink.ingest.deduplication import ComparedDraft
from bethink.ingest.pipeline import remember
from bethink.ingest.record_builder import BatchContext, build_record
from bethink.ingest.updates import (
    CONTRADICTS,
    JUDGED,
    MAY_UPDATE,
    MIN_SUPERSESSION,
    MIN_UPDATE,
    OUTDATED,
    link_updates,
)
from bethink.model import Draft, Item, Remembered
from bethink.ports import Embedder, PairVerdict, is_judged
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

OLD, NEW = "The deploy key is in vault A", "The deploy key moved to vault B"
ASKED = "where is the deploy key?"
# Between the thresholds, wherever these are.
CERTAIN = round((1 + MIN_SUPERSESSION) / 2, 3)
UNCERTAIN = round((MIN_UPDATE + MIN_SUPERSESSION) / 2, 3)


@dataclass
class Judge:
    """Says of each pair what it was told to, of others that the newer one only adds."""

    said: dict[tuple[str, str], float] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        assert pairs, "for nothing the model is not loaded"
        self.asked += pairs
        sure = [self.said.get(pair, 0.01) for pair in pairs]
        return [PairVerdict(one, 0.0, 1.0 - one, 0.0) for one in sure]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Judge:
    told = Judge({(OLD, NEW): CERTAIN})
    monkeypatch.setattr("bethink.models.update_model.update_model", told)
    return told


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(embedder: Embedder, judge: Judge, clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder=embedder, clock=clock) as opened:
        yield opened


def after(memory: Memory, text: str, **about: Any) -> Remembered:
    """Remembers a minute later."""
    memory.session.clock.forward(minutes=1)
    return memory.remember(text, **about)


def met(answer: Remembered) -> list[tuple[str, str]]:
    return [(one.kind, one.id) for one in answer.collisions if one.kind not in ("near", "exact")]


def made(memory: Memory, *answers: Remembered) -> list[tuple[str, str, str]]:
    """The judged links of memories, as texts."""
    ids = [answer.id for answer in answers]
    links = memory.store.graph.links_of(ids, ("supersedes", "updates", "contradicts"))
    texts = {one: item.text for one, item in memory.store.items.get(ids).items()}
    return sorted({(texts[link.src.id], link.type, texts[link.dst.id]) for link in links})


def shown(memory: Memory, question: str = ASKED, **about: Any) -> list[tuple[str, str | None]]:
    """What is recalled, each with the newer one that it is marked with."""
    return [(hit.item.id, hit.see_newer) for hit in memory.recall(question, **about).hits]


def statuses(memory: Memory, *answers: Remembered) -> set[str]:
    return {memory.get(answer.id).status for answer in answers}


def test_a_certain_update_comes_first_and_the_older_is_marked(memory: Memory) -> None:
    """Both stay; the link holds the probability, the writer learns of it and of a remedy."""
    old, new = memory.remember(OLD), after(memory, NEW)

    (told,) = new.collisions
    assert (told.kind, told.id, told.text) == ("supersedes", old.id, OLD)
    assert (told.action, told.resolve) == (OUTDATED, f"bethink forget {old.id}")
    (link,) = memory.links(new.id)
    assert (link.src.id, link.type, link.dst.id) == (new.id, "supersedes", old.id)
    assert (link.confidence, link.context) == (CERTAIN, JUDGED)
    assert statuses(memory, old, new) == {"active"}
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


def test_an_uncertain_update_comes_first_without_a_mark(memory: Memory, judge: Judge) -> None:
    """Two values of one thing fit the question about equally well: that much is enough."""
    judge.said[OLD, NEW] = UNCERTAIN
    old, new = memory.remember(OLD), after(memory, NEW)

    (told,) = new.collisions
    assert (told.kind, told.id, told.action) == ("related", old.id, MAY_UPDATE)
    assert made(memory, old, new) == [(NEW, "updates", OLD)]
    assert statuses(memory, old, new) == {"active"}
    assert shown(memory) == [(new.id, None), (old.id, None)]


def test_the_writer_does_not_hear_of_what_is_improbable(memory: Memory, judge: Judge) -> None:
    """A doubtful link orders answers; told, it would have an agent forget what holds."""
    judge.said[OLD, NEW] = 0.29
    old, new = memory.remember(OLD), after(memory, NEW)

    assert new.collisions == ()
    assert made(memory, old, new) == [(NEW, "updates", OLD)]


@each_row(("sure", "is_offered"), [(0.3, False), (0.49, False), (0.5, True)])
def test_forgetting_is_offered_where_an_update_is_probable(
    memory: Memory, judge: Judge, sure: float, is_offered: bool
) -> None:
    """Below, the writer is told, and no command is put before it."""
    judge.said[OLD, NEW] = sure
    memory.remember(OLD)

    (told,) = after(memory, NEW).collisions
    assert (told.kind, bool(told.resolve)) == ("related", is_offered)


@each_row(
    ("sure", "link"),
    [
        (MIN_SUPERSESSION, "supersedes"),
        (MIN_SUPERSESSION - 0.001, "updates"),
        (MIN_UPDATE, "updates"),
        (MIN_UPDATE - 0.001, None),
    ],
)
def test_a_probability_makes_a_link_from_its_threshold_on(
    memory: Memory, judge: Judge, sure: float, link: str | None
) -> None:
    """What is less likely than that leaves no trace."""
    judge.said[OLD, NEW] = sure
    old, new = memory.remember(OLD), after(memory, NEW)

    assert made(memory, old, new) == ([] if link is None else [(NEW, link, OLD)])
    assert bool(met(new)) is (sure >= 0.3)


def test_an_older_memory_that_comes_late_is_linked_the_same_way(memory: Memory) -> None:
    """What happened first is the older one, whichever is stored first."""
    new = memory.remember(NEW, occurred_at=NOW)
    old = after(memory, OLD, occurred_at=NOW - timedelta(days=3))

    assert met(old) == [("superseded", new.id)]
    assert made(memory, old, new) == [(NEW, "supersedes", OLD)]
    assert statuses(memory, old, new) == {"active"}
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


@each_row(
    ("one", "other"),
    [
        ({}, {"occurred_at": NOW - timedelta(days=3)}),
        ({"occurred_at": NOW + timedelta(days=3)}, {}),
        ({"occurred_at": NOW - timedelta(days=3)}, {}),
    ],
    ids=str,
)
def test_a_correction_may_tell_of_an_earlier_time(
    memory: Memory, one: dict[str, Any], other: dict[str, Any]
) -> None:
    """An event time counts only beside another one; the hint names what is out of date."""
    old, new = memory.remember(OLD, **one), after(memory, NEW, **other)

    assert made(memory, old, new) == [(NEW, "supersedes", OLD)]
    assert met(new) == [("supersedes", old.id)]
    assert new.collisions[0].resolve == f"bethink forget {old.id}"
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


@each_row("given", [{"level": "raw"}, {"source_class": "import"}], ids=str)
def test_a_record_of_the_past_corrects_no_later_note(memory: Memory, given: dict[str, Any]) -> None:
    """A turn and an imported memory were stated when they happened, not when they arrived."""
    note = memory.remember(NEW, **given)
    past = after(memory, OLD, occurred_at=NOW - timedelta(days=300), **given)

    assert made(memory, note, past) == [(NEW, "supersedes", OLD)]
    assert past.collisions[0].resolve == f"bethink forget {past.id}"


@each_row(
    ("one", "other"),
    [
        ({"speaker": "Ana"}, {"speaker": "Ben"}),
        ({"speaker": "Ana"}, {}),
        ({}, {"speaker": "Ben"}),
        ({"user": "ana"}, {"user": "ben"}),
        ({"user": "ana"}, {}),
    ],
    ids=str,
)
def test_nobodys_word_replaces_another_persons(
    memory: Memory, judge: Judge, one: dict[str, str], other: dict[str, str]
) -> None:
    """Of two voices both are kept as they are; the model is not even asked."""
    old, new = memory.remember(OLD, **one), after(memory, NEW, **other)

    assert judge.asked == []
    assert (met(new), made(memory, old, new)) == ([], [])
    assert {mark for _, mark in shown(memory)} == {None}


@each_row(
    ("one", "other"),
    [
        ({"speaker": "Ana"}, {"speaker": "ana"}),
        ({"speaker": "user"}, {}),
        ({"user": "ana"}, {"user": "ana"}),
        ({"session": "monday"}, {"session": "tuesday"}),
        ({"level": "raw", "session": "a"}, {"level": "raw", "session": "b"}),
    ],
    ids=str,
)
def test_one_voice_updates_what_it_said(
    memory: Memory, one: dict[str, str], other: dict[str, str]
) -> None:
    """The user of a chat is whoever writes without a name; a later session corrects another."""
    old, new = memory.remember(OLD, **one), after(memory, NEW, **other)

    assert met(new) == [("supersedes", old.id)]


def test_a_less_trusted_memory_contradicts(memory: Memory) -> None:
    """It is linked as that, neither lifted nor marked; to forget the doubtful one is offered."""
    old = memory.remember(OLD)
    new = after(memory, NEW, source="a page", source_class="web")

    (told,) = new.collisions
    assert (told.kind, told.id, told.action) == ("contradicts", old.id, CONTRADICTS)
    assert told.resolve == f"bethink forget {new.id}"
    assert made(memory, old, new) == [(NEW, "contradicts", OLD)]
    assert shown(memory) == [(old.id, None), (new.id, None)]


def test_an_uncertain_one_of_less_trust_says_nothing(memory: Memory, judge: Judge) -> None:
    """A contradiction is only told where it is certain."""
    judge.said[OLD, NEW] = UNCERTAIN
    old, new = memory.remember(OLD), after(memory, NEW, source="a page", source_class="web")

    assert (met(new), made(memory, old, new)) == ([], [])


@each_row(("first", "second"), [(0, 1), (0, 3), (1, 2), (2, 1), (3, 0)])
def test_what_few_may_see_updates_nothing_that_more_may_see(
    memory: Memory, judge: Judge, first: int, second: int
) -> None:
    """Nor does whoever stores a memory learn of one above its class."""
    old = memory.remember(OLD, classification=first)
    new = after(memory, NEW, classification=second)

    assert judge.asked == []
    assert (met(new), made(memory, old, new)) == ([], [])


@each_row(
    ("older", "newer"),
    [
        (OLD, f"{NEW}?"),
        (f"{OLD}?", NEW),
        (OLD, f"{NEW}? "),
        (OLD, f"Thanks, {NEW}?"),
        (OLD, f"Is it so that {NEW}, or not?"),
    ],
)
def test_a_question_updates_nothing(memory: Memory, judge: Judge, older: str, newer: str) -> None:
    """And nothing updates it: who asks states nothing."""
    old, new = memory.remember(older), after(memory, newer)

    assert judge.asked == []
    assert (met(new), made(memory, old, new)) == ([], [])


@each_row(
    ("older", "newer"),
    [
        (OLD, f"{NEW}\nIs that fine?"),
        (f"Well? {OLD}", f"Fine？ {NEW}"),
        (OLD, f"{NEW}, is that fine, or too much?"),
        (f"{OLD}: what do you think?", NEW),
        (OLD, "The deploy key moved to vault B. Is that fine?"),
    ],
)
def test_what_is_told_beside_a_question_is_judged_with_it(
    memory: Memory, judge: Judge, older: str, newer: str
) -> None:
    """The whole text tells what is stated in passing; it marks nothing as outdated."""
    judge.said[older, newer] = CERTAIN
    old, new = memory.remember(older), after(memory, newer)

    assert judge.asked == [(older, newer)]
    marked = None if newer.endswith("?") or older.endswith("?") else new.id
    assert shown(memory) == [(new.id, None), (old.id, marked)]


def test_the_same_words_on_another_day_are_no_update(memory: Memory, judge: Judge) -> None:
    """They are two memories, and there is nothing to judge."""
    judge.said[OLD, OLD] = CERTAIN
    old, new = (memory.remember(OLD, occurred_at=NOW - timedelta(days=day)) for day in (9, 2))

    assert (judge.asked, made(memory, old, new)) == ([], [])


def test_without_an_embedder_nothing_is_judged(judge: Judge, clock: FixedClock) -> None:
    """There are no neighbours to judge."""
    with Memory.open(":memory:", embedder="none", clock=clock) as memory:
        old, new = memory.remember(OLD), after(memory, NEW)

        assert judge.asked == []
        assert (met(new), made(memory, old, new)) == ([], [])
        assert {mark for _, mark in shown(memory)} == {None}


def test_what_is_about_something_else_is_not_read(memory: Memory, judge: Judge) -> None:
    """Only the nearest in meaning are."""
    memory.remember_many(["The cat sleeps on the sofa", "Soup was served for lunch", OLD])
    judge.asked.clear()
    after(memory, NEW)

    assert judge.asked == [(OLD, NEW)]


def test_links_go_with_the_words_that_made_them(memory: Memory) -> None:
    """And come back with them: undo judges the words again."""
    old, new = memory.remember(OLD), after(memory, NEW)
    memory.session.clock.forward(minutes=1)
    memory.update(new.id, text="Bananas are yellow")
    assert made(memory, old, new) == []
    assert (old.id, None) in shown(memory)

    memory.session.clock.forward(minutes=1)
    memory.undo(new.id)
    assert made(memory, old, new) == [(NEW, "supersedes", OLD)]
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


def test_links_go_with_the_older_ones_words(memory: Memory) -> None:
    """It no longer says what was updated."""
    old, new = memory.remember(OLD), after(memory, NEW)
    memory.update(old.id, text="Bananas are yellow")

    assert made(memory, old, new) == []


def test_a_callers_link_stays_whatever_the_words(memory: Memory) -> None:
    """Only what was judged from them goes."""
    old, new = memory.remember(OLD), after(memory, NEW)
    memory.link(new.id, "supersedes", old.id)
    memory.update(new.id, text="Bananas are yellow")

    assert made(memory, old, new) == [("Bananas are yellow", "supersedes", OLD)]
    assert memory.get(old.id).status == "superseded"


def test_a_change_that_is_not_of_the_words_keeps_the_links(memory: Memory) -> None:
    """Tags, topics, importance."""
    old, new = memory.remember(OLD), after(memory, NEW)
    memory.update(new.id, topic="keys", importance=0.7)
    memory.update(old.id, tags=["key"])

    assert made(memory, old, new) == [(NEW, "supersedes", OLD)]


def test_an_update_into_another_value_is_judged(memory: Memory) -> None:
    """Said now, it is newer than what was said before, though its memory is older."""
    first = memory.remember("Bananas are yellow")
    second = after(memory, OLD)
    memory.session.clock.forward(minutes=1)
    memory.update(first.id, text=NEW)

    assert made(memory, first, second) == [(NEW, "supersedes", OLD)]
    assert shown(memory) == [(first.id, None), (second.id, first.id)]


LIMITS = ["The upload limit is 5 MB", "The upload limit is 10 MB", "The upload limit is 20 MB"]


@each_row("order", permutations(range(3)), ids=str)
def test_the_order_of_a_batch_does_not_matter(
    memory: Memory, judge: Judge, order: tuple[int, ...]
) -> None:
    """Where dates are given: the newest stands, and the others name it or the one between."""
    judge.said = {(LIMITS[one], LIMITS[other]): CERTAIN for one, other in ((0, 1), (0, 2), (1, 2))}
    drafts = [{"text": LIMITS[at], "occurred_at": NOW - timedelta(days=9 - at)} for at in order]

    stored = dict(zip(order, memory.remember_many(drafts), strict=True))

    assert made(memory, *stored.values()) == sorted(
        (newer, "supersedes", older) for older, newer in judge.said
    )
    assert shown(memory, "what is the upload limit?") == [
        (stored[2].id, None),
        (stored[1].id, stored[2].id),
        (stored[0].id, stored[2].id),
    ]


def test_in_a_batch_of_one_moment_the_later_line_is_the_newer(memory: Memory) -> None:
    """Lines of a file are told in their order."""
    old, new = memory.remember_many([OLD, NEW])

    assert made(memory, old, new) == [(NEW, "supersedes", OLD)]


def test_forgetting_the_newer_lets_the_older_stand_unmarked(memory: Memory) -> None:
    """And restoring it marks it again."""
    old, new = memory.remember(OLD), after(memory, NEW)

    memory.forget(new.id)
    assert shown(memory) == [(old.id, None)]
    memory.restore(new.id)
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


def test_erasing_the_newer_lets_the_older_stand_unmarked(memory: Memory) -> None:
    """No link is left of it."""
    old, new = memory.remember(OLD), after(memory, NEW)

    memory.forget(new.id, erase=True)

    assert memory.links(old.id) == []
    assert shown(memory) == [(old.id, None)]


def test_undoing_the_remembering_lets_the_older_stand_unmarked(memory: Memory) -> None:
    """The last change of whoever remembered is the remembering."""
    old, new = memory.remember(OLD), after(memory, NEW)
    memory.session.clock.forward(minutes=1)

    assert memory.undo().item == new.id
    assert shown(memory) == [(old.id, None)]


def test_unlinking_takes_the_mark_away(memory: Memory) -> None:
    """Whoever knows better says so; the model is not asked again."""
    old, new = memory.remember(OLD), after(memory, NEW)

    memory.unlink(new.id, "supersedes", old.id)

    assert {mark for _, mark in shown(memory)} == {None}
    assert statuses(memory, old, new) == {"active"}


def test_an_update_is_not_known_before_it_was_made(memory: Memory) -> None:
    """At a moment before it, the older one stands alone."""
    old = memory.remember(OLD)
    then = memory.now
    memory.session.clock.forward(days=1)
    new = after(memory, NEW)

    assert shown(memory, as_of=then) == [(old.id, None)]
    assert shown(memory) == [(new.id, None), (old.id, new.id)]


def test_the_work_for_a_memory_is_bounded(memory: Memory, judge: Judge) -> None:
    """However many are alike, a few pairs are read for each."""
    texts = [f"The upload limit of plan {letter} is 5 MB" for letter in "abcdefghijklmnopqrst"]
    memory.remember_many(texts)
    assert 0 < len(judge.asked) <= 4 * len(texts)
    assert len(set(judge.asked)) == len(judge.asked)

    judge.asked.clear()
    after(memory, "The upload limit of plan z is 5 MB")
    assert 0 < len(judge.asked) <= 8


def test_what_maintenance_makes_updates_nothing(
    memory: Memory, embedder: Embedder, judge: Judge
) -> None:
    """A summary is newer than what it was made from, but no news; an insight neither."""
    old = memory.remember(OLD)
    ctx = WriteContext(
        memory.store, embedder, NOW + timedelta(hours=1), "tester", IdGenerator(), judge=judge.judge
    )

    remember([Draft(NEW, level="insight")], ctx)
    remember([Draft(NEW, source_class="derived")], replace(ctx, deriving=True))

    assert judge.asked == []
    assert memory.links(old.id) == []


def test_a_memory_does_not_update_what_it_was_made_from(memory: Memory, judge: Judge) -> None:
    """A summary or a conclusion is newer than its source, and no news."""
    old = memory.remember(OLD)
    new = after(memory, NEW, derives_from=(old.id,))

    assert (met(new), made(memory, old, new)) == ([], [])


def test_a_value_that_is_said_again_is_the_newest(memory: Memory, judge: Judge) -> None:
    """A, then B, then A: the last word counts, though it was said before."""
    judge.said[NEW, OLD] = CERTAIN
    memory.remember(OLD)
    after(memory, NEW)
    last = after(memory, OLD)

    assert last.status == "stored"
    (first, mark), *_ = shown(memory)
    assert (memory.get(first).text, mark) == (OLD, None)


def test_a_chain_names_the_newest(memory: Memory, judge: Judge) -> None:
    """Each is above the one before it; after the newest is forgotten, the one before it is."""
    pairs = ((0, 1), (0, 2), (1, 2))
    judge.said = {(LIMITS[one], LIMITS[other]): CERTAIN for one, other in pairs}
    first, second, third = (after(memory, text) for text in LIMITS)
    asked = "what is the upload limit?"

    assert shown(memory, asked) == [
        (third.id, None),
        (second.id, third.id),
        (first.id, third.id),
    ]
    memory.forget(third.id)
    assert shown(memory, asked) == [(second.id, None), (first.id, second.id)]


def test_slots_are_for_a_language_model(memory: Memory) -> None:
    """No rule reads subject and attribute from the words."""
    item: Item = memory.get(memory.remember(OLD).id)

    assert (item.subject, item.attribute) == (None, None)


# --- What others store decides nothing ----------------------------------------------------------

MANY = 40  # more than are ever read together
NEARER = [f"The deploy key moved to vault B, says note {n}" for n in range(MANY)]


def judged_links(memory: Memory, *, most: int = 2) -> list[tuple[str, str, str]]:
    """The judged links of what is visible up to a class, as texts."""
    items = {item.id: item for item in memory.browse(limit=500, max_classification=most)}
    links = memory.store.graph.links_of(list(items), ("supersedes", "updates", "contradicts"))
    return sorted(
        {
            (items[link.src.id].text, link.type, items[link.dst.id].text)
            for link in links
            if {link.src.id, link.dst.id} <= items.keys()
        }
    )


OTHERS_ABOUT: dict[str, dict[str, Any]] = {
    "hidden": {"classification": 3},
    "another user": {"user": "ben"},
    "another speaker": {"speaker": "Ben"},
    "untrusted": {"source": "a page", "source_class": "web", "trust": 0},
    "another level": {"level": "raw"},
    "another topic": {"topic": "lunch"},
    "of a plan": {"layer": "goal"},
}


@each_row("batch", [False, True])
@each_row("about", OTHERS_ABOUT.values(), ids=OTHERS_ABOUT)
def test_what_is_not_comparable_takes_no_place(
    memory: Memory, judge: Judge, about: dict[str, Any], batch: bool
) -> None:
    """However many are nearer: the one that is updated is found, as if they were not there."""
    own = {"user": "ana", "topic": "keys"}
    drafts: list[dict[str, Any]] = [{"text": OLD, **own}]
    drafts += [{"text": text, **own, **about} for text in NEARER]
    if batch:
        *_, new = memory.remember_many([*drafts, {"text": NEW, **own}])
    else:
        memory.remember_many(drafts)
        new = after(memory, NEW, **own)

    assert (OLD, NEW) in judge.asked
    assert [kind for kind, _ in met(new)] == ["supersedes"]
    assert (NEW, "supersedes", OLD) in judged_links(memory)


@each_row(("first", "second"), [(0, 1), (0, 3), (1, 2), (2, 1), (3, 0)])
def test_in_a_batch_too_what_few_may_see_updates_nothing_that_more_may_see(
    memory: Memory, judge: Judge, first: int, second: int
) -> None:
    """Nor is the one told of the other."""
    old, new = memory.remember_many(
        [{"text": OLD, "classification": first}, {"text": NEW, "classification": second}]
    )

    assert judge.asked == []
    assert (met(old), met(new), made(memory, old, new)) == ([], [], [])


@each_row("places", [(), (0,), (1,), (0, 1, 2)], ids=str)
def test_a_batch_is_judged_as_without_what_is_hidden_in_it(
    embedder: Embedder, judge: Judge, places: tuple[int, ...]
) -> None:
    """How many neighbours are read depends on those that all may see who see the memory."""
    judge.said = dict.fromkeys(permutations(LIMITS, 2), CERTAIN)
    for held in ([], LIMITS[:2]):
        told = []
        for hidden in ((), places):
            with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
                memory.remember_many(held)
                memory.session.clock.forward(minutes=1)
                judge.asked.clear()
                drafts = [{"text": LIMITS[2], "classification": 1}]
                for at in hidden:
                    drafts.insert(at, {"text": f"{LIMITS[2]} or {at}", "classification": 3})
                memory.remember_many(drafts)
                asked = [pair for pair in judge.asked if not any(" or " in text for text in pair)]
                told.append((asked, judged_links(memory)))
        assert told[0] == told[1]


def test_a_memory_without_a_vector_stops_no_other_of_its_batch(
    memory: Memory, embedder: Embedder, judge: Judge
) -> None:
    """Those that have one are compared with each other."""
    ctx = memory.session.write_context()
    texts = ["Soup was served for lunch", OLD, NEW]
    drafts = [prepare(Draft(text), ctx) for text in texts]
    vectors = [None, *embedder.embed(texts[1:])]
    compared = [ComparedDraft(draft) for draft in drafts]
    records = [
        build_record(one, vector, (), BatchContext(), ctx)
        for one, vector in zip(compared, vectors, strict=True)
    ]

    linked, _ = link_updates(records, [()] * 3, ctx)

    assert judge.asked == [(OLD, NEW)]
    assert [record.judged for record in linked] == [False, True, True]


def test_a_forgotten_memory_is_not_compared(memory: Memory, judge: Judge) -> None:
    """Neither what was updated nor what updates."""
    memory.forget(memory.remember(OLD).id)
    new = after(memory, NEW)

    assert (judge.asked, met(new)) == ([], [])


@each_row("gone", ["forgotten", "hidden"])
def test_what_nobody_sees_any_more_outdates_nothing(memory: Memory, gone: str) -> None:
    """Said again, the older one is the same memory."""
    old, new = memory.remember(OLD), after(memory, NEW)
    if gone == "forgotten":
        memory.forget(new.id)
    else:
        memory.update(new.id, classification=3)

    again = after(memory, OLD)

    assert (again.status, again.id) == ("duplicate", old.id)


def test_another_space_is_not_compared(
    memory: Memory, embedder: Embedder, judge: Judge, clock: FixedClock
) -> None:
    """Each has its own memories."""
    memory.remember(OLD)
    with Memory.open(":memory:", embedder=embedder, clock=clock) as other:
        new = after(other, NEW)

    assert (judge.asked, met(new)) == ([], [])


def test_a_model_that_fails_stops_no_write(
    memory: Memory, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The memories are stored, and waiting to be judged."""

    def fails(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        raise ModelError("the weights are damaged")

    memory.remember(OLD)
    monkeypatch.setattr(judge, "judge", fails)
    new = after(memory, NEW)

    assert (new.status, met(new)) == ("stored", [])
    lines = {line.item: line for line in memory.events() if line.kind == "stored"}
    assert [is_judged(line) for line in lines.values()] == [True, False]


def test_an_uncertain_link_can_be_removed(memory: Memory, judge: Judge) -> None:
    """By whoever knows better, as any other."""
    judge.said[OLD, NEW] = UNCERTAIN
    old, new = memory.remember(OLD), after(memory, NEW)

    memory.unlink(new.id, "updates", old.id)

    assert made(memory, old, new) == []
