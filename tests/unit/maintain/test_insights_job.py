"""The insight tree: built by thresholds, renewed when its memories change, never believed blindly."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from bethink import Memory
from bethink.core.speakers import searched_text
from bethink.errors import Refused
from bethink.ingest.admission import WriteContext
from bethink.maintain import insights, succession
from bethink.maintain.entities import join_insights
from bethink.maintain.insights import (
    MAX_POINTS,
    Insights,
    LooseMemory,
    group_by_subject,
    leading_sentence,
    points_of,
    similarity_matrix,
    split_by_meaning,
)
from bethink.maintain.insights import point_text as told_of
from bethink.maintain.journal import record_links
from bethink.maintain.runner import Report
from bethink.model import Candidate, Draft, Evidence, Item, Link, Node, Query, Remembered
from bethink.models import open_embedder
from bethink.models.embed.contextual import join_contextual
from bethink.models.embed.encoder import EncoderEmbedder
from bethink.ports import Embedding, Prompt
from bethink.retrieval import provenance
from bethink.retrieval.context import Context
from bethink.retrieval.provenance import InsightNode, recorded_sources
from bethink.retrieval.stages import STAGES
from bethink.testing import FixedClock, ScriptedModel
from cold_memories import open_memory
from corpus import NOW
from rows import each_row

SMALL = Insights(min_loose=4, min_leaf=3, most_leaf=4, branch_after=2, root_after=2)
SMALL_LEAVES = Insights(min_loose=3, min_leaf=3, most_leaf=4)


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


def tell(memory: Memory, topic: str, count: int, first: int = 0, **about: Any) -> list[str]:
    """Memories of one topic, a day apart."""
    texts = [f"{topic} number {n} has {n * 3} boxes of kind {n % 3}" for n in range(count + first)]
    stored = memory.remember_many(
        [
            {"text": text, "topic": topic, "occurred_at": NOW - timedelta(days=90 - n), **about}
            for n, text in enumerate(texts)
        ][first:]
    )
    return [one.id for one in stored]


def grow(memory: Memory, job: Insights = SMALL) -> list[Report]:
    """Runs until nothing is due."""
    reports = []
    while (report := memory.maintain(job)).run is not None:
        reports.append(report)
        assert len(reports) < 10, "it never comes to rest"
    return reports


def shapes(memory: Memory) -> list[tuple[str, str]]:
    """Every insight of the tree, top down."""

    def flat(tree: list[InsightNode] | tuple[InsightNode, ...]) -> list[InsightNode]:
        return [one for branch in tree for one in (branch, *flat(branch.below))]

    return [(str(one.insight.kind), str(one.insight.caption)) for one in flat(memory.insights())]


def leaf_of(memory: Memory) -> Item:
    (leaf,) = memory.browse(levels=["insight"], kind="leaf", max_classification=3)
    return leaf


@pytest.mark.parametrize(("count", "leaves"), [(3, 0), (4, 1), (5, 2)])
def test_leaves_come_by_thresholds(memory: Memory, count: int, leaves: int) -> None:
    """None below so many loose memories; no leaf is larger than it may be."""
    tell(memory, "lock", count)

    memory.maintain(SMALL)

    made = memory.browse(levels=["insight"])
    assert [item.kind for item in made] == ["leaf"] * leaves
    assert all(len(item.metadata["seen"]) <= SMALL.most_leaf for item in made)


def test_few_of_a_subject_wait(memory: Memory) -> None:
    """Enough loose memories in all, but two of this subject are no leaf."""
    tell(memory, "lock", 4)
    tell(memory, "weir", 2)

    memory.maintain(SMALL)

    assert [item.topic for item in memory.browse(levels=["insight"])] == ["lock"]


def test_a_tree_grows_to_its_root_in_three_runs(memory: Memory) -> None:
    """Leaves, then branches over two of a subject, then the root over all."""
    tell(memory, "lock", 8)
    tell(memory, "weir", 8)

    reports = grow(memory)

    made = [sorted(one.proposal.successor.kind for one in r.done) for r in reports]  # type: ignore[union-attr]
    assert made[0] == ["leaf"] * len(made[0])
    assert made[1] == ["branch", "branch"]
    assert made[2] == ["root"]
    (top,) = memory.insights()
    assert top.insight.kind == "root"
    assert sorted(str(below.insight.caption) for below in top.below) == ["lock", "weir"]
    assert not top.stale


def test_what_is_built_above_the_leaves_reads_no_memory_again(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After leaves, branches and a root were made, no run looks at the memories below them."""
    told = {one for topic in ("lake", "mill") for one in tell(memory, topic, 8)}
    look, seen = insights.visible_items, list[set[str]]()

    def watch(ids: Any, *rest: Any) -> Any:
        seen[-1].update(wanted := list(ids))
        return look(wanted, *rest)

    monkeypatch.setattr(insights, "visible_items", watch)
    for _ in range(4):
        seen.append(set())
        memory.maintain(SMALL)

    assert seen[0] == told
    assert not any(ids & told for ids in seen[1:])
    assert [kind for kind, _ in shapes(memory)].count("root") == 1


def test_build_does_it_in_one_go(memory: Memory) -> None:
    """For whoever does not want to wait for three nights."""
    tell(memory, "lock", 35)
    tell(memory, "weir", 35)

    memory.build_insights()

    assert [branch.insight.kind for branch in memory.insights()] == ["root"]


def test_a_memory_that_is_unchanged_proposes_nothing(memory: Memory, clock: FixedClock) -> None:
    """Also not a month later, and not because something was pinned or came back."""
    ids = tell(memory, "lock", 8)
    grow(memory)
    clock.forward(days=30)
    memory.update(ids[0], pinned=True)
    memory.forget(ids[1])
    memory.restore(ids[1])

    plan = memory.maintain(SMALL, preview=True).plan

    assert (plan.steps, plan.left) == ((), ())
    assert not any(branch.stale for branch in memory.insights())


def test_what_changed_makes_its_leaf_stale_and_then_new(memory: Memory) -> None:
    """The tree says so at once; the next run tells what is so now, and lets the old one go."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    old = leaf_of(memory)
    memory.update(ids[2], text="lock number 2 was filled with sand")

    (stale,) = memory.insights()
    grow(memory)

    new = leaf_of(memory)
    assert stale.stale
    assert new.id != old.id
    assert "filled with sand" in new.text
    assert memory.get(old.id).live_to is not None
    assert not memory.insights()[0].stale


def test_the_root_is_made_anew_though_it_says_the_same(memory: Memory) -> None:
    """It rests on another branch than before; nothing stays stale."""
    ids = tell(memory, "lock", 8)
    tell(memory, "weir", 8)
    grow(memory)
    before = memory.insights()[0].insight
    memory.update(ids[-1], text="lock number 7 is painted")

    grow(memory)

    (top,) = memory.insights()
    assert top.insight.id != before.id
    assert not top.stale
    assert len(top.below) == 2


def test_words_that_come_back_make_it_new_once_more(memory: Memory) -> None:
    """Changed and changed back: the tree follows both times."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    before = leaf_of(memory).text
    was = memory.get(ids[2]).text
    memory.update(ids[2], text="lock number 2 was filled with sand")
    grow(memory)

    memory.update(ids[2], text=was)
    grow(memory)

    assert leaf_of(memory).text == before
    assert not memory.insights()[0].stale


def test_forgotten_ones_leave_their_leaf(memory: Memory) -> None:
    """It is made anew of the others; of a single one nothing is left to say."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    memory.forget(ids[0])

    grow(memory)
    three = recorded_sources(leaf_of(memory))
    memory.forget(*ids[1:3])
    grow(memory)

    assert sorted(three) == sorted(ids[1:])
    assert memory.browse(levels=["insight"]) == []


def test_a_leaf_is_not_named_by_what_was_forgotten(memory: Memory) -> None:
    """Words that only forgotten memories held do not stay in a title."""
    said = [f"the quartz lamps and ropes of the lock, {n}" for n in ("one", "two")]
    said += [f"the lamps and ropes of the lock, {n}" for n in ("three", "four")]
    said += [f"the keeper sleeps at home on {n}" for n in ("Monday", "Friday", "Sunday", "May 2")]
    days = [{"text": one, "topic": "lock"} for one in said]
    ids = [one.id for one in memory.remember_many(days)]
    grow(memory, Insights(min_loose=4, min_leaf=3, most_leaf=4))
    assert any("quartz" in caption for _, caption in shapes(memory))

    memory.forget(*ids[:2])
    grow(memory, Insights(min_loose=4, min_leaf=3, most_leaf=4))

    assert not any("quartz" in one.text for one in memory.browse(levels=["insight"]))


def test_what_became_secret_leaves_its_leaf(memory: Memory) -> None:
    """Who may read the leaf may not read that memory any more."""
    ids = tell(memory, "lock", 5)
    grow(memory, Insights(min_loose=4, min_leaf=3, most_leaf=9))
    memory.update(ids[0], classification=3)

    grow(memory, Insights(min_loose=4, min_leaf=3, most_leaf=9))

    leaf = leaf_of(memory)
    assert leaf.classification == 1
    assert ids[0] not in recorded_sources(leaf)
    assert "number 0 " not in leaf.text


def test_an_erase_takes_every_insight_above_along(memory: Memory) -> None:
    """Leaf, branch and root may repeat what was erased; what is left makes new ones."""
    ids = tell(memory, "lock", 8)
    tell(memory, "weir", 8)
    grow(memory)
    above = {item.id for item in memory.browse(levels=["insight"]) if "lock" in item.text}

    done = memory.forget(ids[0], erase=True)

    derived = {item.id for item in done.derived}
    assert {item.kind for item in done.derived} == {"leaf", "branch", "root"}
    assert derived <= above
    grow(memory)
    kept = memory.browse(levels=["insight"], limit=100)
    assert all("lock number 0 " not in item.text for item in kept)
    assert {item.kind for item in kept} == {"leaf", "branch", "root"}


def test_a_run_is_undone_and_not_repeated(memory: Memory) -> None:
    """The insight goes, the memories never went; the next run respects that."""
    ids = tell(memory, "lock", 4)
    (report,) = grow(memory)
    assert report.run is not None

    memory.undo_run(report.run)

    assert memory.browse(levels=["insight"]) == []
    assert all(memory.get(one).live_to is None for one in ids)
    again = memory.maintain(SMALL)
    assert again.run is None
    assert [one.hindrance for one in again.left] == ["it was done before and then undone"]


def test_a_renewal_is_undone_to_the_one_before(memory: Memory) -> None:
    """Stale as it is: whoever undoes knows why."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    old = leaf_of(memory)
    memory.update(ids[0], text="lock number 0 is gone")
    report = grow(memory)[0]
    assert report.run is not None

    memory.undo_run(report.run)

    assert leaf_of(memory).id == old.id


def test_what_the_job_took_away_comes_back_with_its_memories(memory: Memory) -> None:
    """A leaf that ended because its memories did was not undone: it is made again."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    for _ in range(2):
        memory.forget(*ids[1:])
        grow(memory)
        assert memory.browse(levels=["insight"]) == []
        memory.restore(*ids[1:])

        grow(memory)

        assert recorded_sources(leaf_of(memory)).keys() == set(ids)


def test_a_part_of_the_memory_is_no_reason_for_a_tree(memory: Memory) -> None:
    """A run over a filter says so and touches nothing, least of all the leaves of others."""
    tell(memory, "lock", 4)
    grow(memory)
    memory.update(memory.browse(topic="lock", levels=["item"])[0].id, text="all is new")

    plan = memory.maintain(SMALL, preview=True, where={"topics": ("weir",)}).plan

    assert plan.steps == ()
    assert "all memories" in plan.remarks[0].why


def test_the_order_of_storing_changes_nothing(clock: FixedClock) -> None:
    """The same memories of the same days make the same leaves, word for word."""
    drafts = [
        {"text": f"{topic} holds {n} boats", "topic": topic, "occurred_at": NOW}
        for topic in ("lock", "weir")
        for n in range(6)
    ]
    told = []
    for seed in (1, 2, 3):
        random.Random(seed).shuffle(drafts)
        with open_memory(clock) as memory:
            memory.remember_many(drafts)
            grow(memory)
            told.append(sorted(item.text for item in memory.browse(levels=["insight"], limit=99)))

    assert told[0] == told[1] == told[2]


def test_every_point_is_borne_out_by_its_memories(memory: Memory) -> None:
    """Each statement names them; up to five memories are all told."""
    ids = tell(memory, "lock", 4)
    grow(memory)

    (branch,) = memory.insights()

    assert len(branch.points) <= MAX_POINTS
    assert all(point.sources for point in branch.points)
    assert {source.id for point in branch.points for source in point.sources} == set(ids)
    first = branch.points[0]
    assert first.sources[0].text in first.text


def test_a_leaf_that_is_found_brings_what_stands_above_it(memory: Memory) -> None:
    """By the links that maintenance made: its branch, its root, each for a share."""
    tell(memory, "lock", 8)
    tell(memory, "weir", 8)
    grow(memory)
    leaf = memory.browse(levels=["insight"], kind="leaf")[0]
    ctx = Context(Query("locks", NOW), memory.store, None)
    found = Candidate(leaf, 0.8, (Evidence("fuse.x", "add", 0.8),))

    above = {cand.item.kind: cand for cand in STAGES["ancestors"](share=0.5)((found,), ctx)}

    assert above.keys() == {"leaf", "branch", "root"}
    assert above["branch"].item.caption == leaf.topic
    assert above["branch"].score == pytest.approx(0.4)
    assert above["root"].score == pytest.approx(0.2)
    assert above["root"].evidence[-1].via == above["branch"].item.id


def test_an_old_insight_is_not_brought_back_by_what_is_below(memory: Memory) -> None:
    """What was ended when the tree was made anew stays where it is."""
    ids = tell(memory, "lock", 8)
    tell(memory, "weir", 8)
    grow(memory)
    memory.update(ids[0], text="lock number 0 is gone")
    grow(memory)
    leaves = memory.browse(levels=["insight"], kind="leaf", topic="lock")
    ctx = Context(Query("locks", NOW), memory.store, None)
    pool = tuple(Candidate(one, 0.8, (Evidence("fuse.x", "add", 0.8),)) for one in leaves)

    above = [cand.item for cand in STAGES["ancestors"]()(pool, ctx) if cand.item.kind != "leaf"]

    assert [item.kind for item in above] == ["branch", "root"]
    assert all(item.live_to is None for item in above)


# -- a model ---------------------------------------------------------------


def insight(name: str, *points: tuple[str, list[int]]) -> Callable[[Prompt], Any]:
    said = [{"kind": "SUMMARY", "text": text, "sources": sources} for text, sources in points]
    return lambda _: {"name": name, "summary": "what it comes to", "points": said}


def made_by(clock: FixedClock, answer: Callable[[Prompt], Any], **about: Any) -> tuple[Item, int]:
    model = ScriptedModel(answer)
    with open_memory(clock, llm=model) as memory:
        tell(memory, "lock", 4, **about)
        memory.maintain(SMALL)
        return leaf_of(memory), len(model.prompts)


def test_a_model_may_say_it_in_its_own_words(clock: FixedClock) -> None:
    """With every point resting on what it was shown; the leaf says who wrote it."""
    leaf, asked = made_by(
        clock, insight("Locks and boxes", ("Lock 2 has 6 boxes", [3]), ("All are locks", [1, 2]))
    )

    assert asked == 1
    assert leaf.caption == "Locks and boxes"
    assert leaf.metadata["made_by"] == "scripted:model"
    assert [len(point["sources"]) for point in leaf.metadata["points"]] == [1, 2]


def test_a_point_with_a_number_nobody_told_is_left_out(clock: FixedClock) -> None:
    """The others stay."""
    leaf, _ = made_by(
        clock, insight("Locks", ("Lock 2 has 977 boxes", [3]), ("Lock 1 has 3 boxes", [2]))
    )

    assert "977" not in leaf.text
    assert "Lock 1 has 3 boxes" in leaf.text
    assert leaf.metadata["made_by"] == "scripted:model"


@each_row(
    "answer",
    [
        insight("Locks", ("Lock 2 has 977 boxes", [3])),
        insight("Locks of 1377", ("Lock 1 has 3 boxes", [2])),
        insight("Locks", ("Lock 1 has 3 boxes", [])),
        insight("Locks", ("Lock 1 has 3 boxes", [99])),
        insight("Locks"),
        lambda _: {"delete": "all"},
        lambda _: None,
    ],
    ids=["numbers", "name", "cites nothing", "cites nobody", "no points", "orders", "nothing"],
)
def test_a_model_that_makes_things_up_is_not_believed(
    clock: FixedClock, answer: Callable[[Prompt], Any]
) -> None:
    """Then rules write it, from the memories' own words, and the leaf says so."""
    leaf, asked = made_by(clock, answer)

    assert asked == 1
    assert leaf.metadata["made_by"] == "rules"
    assert "977" not in leaf.text
    assert [line[:2] for line in leaf.text.splitlines()] == ["- "] * 4


def test_secrets_are_not_shown_to_a_model(clock: FixedClock) -> None:
    """Rules do for those."""
    leaf, asked = made_by(clock, insight("Locks", ("All are locks", [1])), classification=3)

    assert asked == 0
    assert leaf.classification == 3


# -- grouping, splitting, points -------------------------------------------


def item(text: str, **about: Any) -> Item:
    return Item(id=about.pop("id", text), text=text, stored_at=NOW, source="user", **about)


def test_a_subject_is_a_topic_else_an_entity_else_a_kind() -> None:
    """Of entities the one that most share; one that nearly all share tells nothing."""
    items = [
        item("a", topic="locks", entities=("x:1",)),
        item("b", entities=("x:1", "x:2", "hub:all")),
        item("c", entities=("x:1", "hub:all")),
        item("d", entities=("x:3", "hub:all"), kind="fact"),
        item("e", entities=("hub:all",), kind="fact"),
    ]

    found = {
        group.subject: some
        for group, some in group_by_subject(list(map(LooseMemory.of, items))).items()
    }

    assert found == {"topic:locks": ["a"], "x:1": ["b", "c"], "kind:fact": ["d", "e"]}


def test_secrecy_and_trust_are_not_mixed() -> None:
    """Nothing becomes more or less secret or trusted by standing beside others."""
    items = [
        item("a", topic="t"),
        item("b", topic="t", trust=0),
        item("c", topic="t", classification=3),
    ]

    assert [len(some) for some in group_by_subject(list(map(LooseMemory.of, items))).values()] == [
        1,
        1,
        1,
    ]


@each_row("count", [1, 4, 5, 9, 31])
def test_parts_are_whole_and_small_enough(count: int) -> None:
    """Every memory in one of them, with vectors and without, even if all are alike."""
    import numpy as np

    items = [item(f"t{n:02}") for n in range(count)]
    rows = np.random.default_rng(7).normal(size=(count, 8)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    same = np.ones((count, 8), dtype=np.float32)

    for vectors in (None, rows, same):
        parts = split_by_meaning(items, vectors, 4)
        assert sorted(at for part in parts for at in part) == list(range(count))
        assert max(map(len, parts)) <= 4


def test_points_are_at_most_five_and_in_the_order_of_time() -> None:
    """Each names its own memory first, and no memory that says something else."""
    items = [
        item(f"day {n} brought box {n}", occurred_at=NOW + timedelta(days=n)) for n in range(9)
    ]

    points = points_of(items, similarity_matrix(items, None))

    assert len(points) == MAX_POINTS
    assert [point.text for point in points] == sorted(point.text for point in points)
    said = {f"{one.when:%Y-%m-%d}: {one.text}": (one.id,) for one in items}
    assert all(point.sources == said[point.text] for point in points)


def test_a_point_cites_only_what_says_it() -> None:
    """The same with more words supports it; another number or a denial does not."""
    texts = ["Lock 1 has three gates"] * 6
    texts += ["Lock 1 has three old gates", "Lock 1 has not three gates", "Lock 2 has three gates"]
    items = [item(text, id=f"i{number}") for number, text in enumerate(texts)]
    likeness = [[1.0 if at < 6 else 0.9] * len(items) for at in range(len(items))]

    points = points_of(items, likeness)

    cited = {one for point in points for one in point.sources}
    assert "i6" in cited
    assert cited.isdisjoint({"i7", "i8"})


def test_a_title_is_a_sentence_of_the_most_central_memory() -> None:
    """Not a list of words; of a learning its typical sentence, not how it is laid out."""
    items = [
        item("The lock gates rust in the rain"),
        item("The lock gates rust. The keeper sings"),
        item("Soup on Friday"),
    ]
    assert leading_sentence(items, similarity_matrix(items, None)) == "The lock gates rust."

    made = item("4 memories about locks (context).\nTypical: Saskia oils the gates\nIn brief: x")
    made = made._replace(source_class="derived")
    assert leading_sentence([made], [[1.0]]) == "Saskia oils the gates"


def test_by_rules_an_insight_has_no_word_of_its_own(memory: Memory) -> None:
    """Every line of a leaf is a day and a sentence of one of its memories."""
    tell(memory, "lock", 4)
    memory.maintain(SMALL)
    leaf = leaf_of(memory)
    texts = {one.text for one in memory.browse(levels=["item"])}

    said = [line.partition(": ")[2] for line in leaf.text.splitlines()]
    assert said
    assert set(said) <= texts
    assert leaf.caption in texts


def test_a_learning_is_told_by_what_is_typical_of_it() -> None:
    """Not by how many memories it was made of."""
    made = item("4 memories about locks (context).\nTypical: Saskia oils the gates\n- more")

    assert told_of(made._replace(source_class="derived")).endswith(": Saskia oils the gates")
    assert told_of(made).endswith("4 memories about locks (context).")


@pytest.mark.parametrize(
    "about",
    [
        {"seen": [5, ["a"], ["a", 5]], "group": "x"},
        {"seen": 7, "points": [{"sources": 3}, {"text": 5, "sources": [[1]]}, "x"], "group": 9},
        {"seen": {"a": "b"}, "points": {}, "group": "a|b|c", "job": "insights"},
    ],
)
def test_an_insight_of_strange_making_does_no_harm(memory: Memory, about: dict[str, Any]) -> None:
    """Anybody may have written it, with whatever metadata: it is drawn, and runs go on."""
    memory.remember("All is well", level="insight", kind="leaf", metadata=about)
    tell(memory, "lock", 4)

    grow(memory)

    assert len(memory.insights()) == 2


def test_an_id_that_looks_like_a_password_field_does_no_harm(memory: Memory) -> None:
    """What an insight notes of it is not taken out as a secret."""
    memory.remember_many(
        [
            {"text": f"lock number {n} has {n} boxes", "topic": "lock", "id": f"{n}-pwd-{n}xpwd"}
            for n in range(4)
        ]
    )

    grow(memory)

    assert not memory.insights()[0].stale


def test_a_digest_that_looks_like_a_card_number_does_no_harm(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sixteen digits with the right checksum are no secret here: the leaf is not stale."""
    monkeypatch.setattr(provenance, "content_digest", lambda _: "4111111111111111")
    monkeypatch.setattr(insights, "content_digest", lambda _: "4111111111111111")
    ids = tell(memory, "lock", 4)
    memory.maintain(SMALL)

    assert set(recorded_sources(leaf_of(memory)).values()) == {"4111111111111111"}
    assert recorded_sources(leaf_of(memory)).keys() == set(ids)
    assert memory.maintain(SMALL, preview=True).plan.steps == ()


def test_a_branch_of_very_many_leaves_can_be_stored(memory: Memory) -> None:
    """It is made of the newest, and says as much as fits."""
    job = Insights(min_loose=2, min_leaf=2, most_leaf=2, branch_after=9_999)
    long = " ".join(["embankment"] * 16)
    tell(memory, "lock", 300, caption=f"About the {long}")
    grow(memory, job)

    (branch,) = memory.browse(levels=["insight"], kind="branch")
    lines = branch.text.split("\n")
    assert len(branch.metadata["seen"]) > 100
    assert 5 < len(lines) < 150
    assert len(branch.metadata["points"]) == len(lines)


def test_undo_of_nothing_is_refused(memory: Memory) -> None:
    """Twice undone is once too often."""
    tell(memory, "lock", 4)
    run = memory.maintain(SMALL).run
    assert run is not None
    memory.undo_run(run)

    with pytest.raises(Refused, match="already undone"):
        memory.undo_run(run)


def test_leaves_are_stored_together_and_fail_alone(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is refused keeps none of the others, and undoing takes all of them back."""
    for topic in ("lock", "weir", "gate"):
        tell(memory, topic, 4)
    batches: list[int] = []
    store = succession.remember_each

    def refuse_first(drafts: list[Draft], ctx: WriteContext) -> list[Remembered | Refused]:
        batches.append(len(drafts))
        return [Refused("not this one"), *store(drafts[1:], ctx)]

    monkeypatch.setattr(succession, "remember_each", refuse_first)

    report = memory.maintain(SMALL)

    assert batches == [3]
    assert [skipped.hindrance for skipped in report.left] == ["its text was refused: not this one"]
    made = {item.id for item in memory.browse(levels=["insight"])}
    assert made == {one.successor for one in report.done}
    assert len(made) == 2
    assert report.run is not None
    assert set(memory.undo_run(report.run).ended) == made
    assert memory.browse(levels=["insight"]) == []


def test_a_leaf_of_what_was_erased_meanwhile_is_erased(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may repeat erased text; the others of its batch stay."""
    gone = tell(memory, "lock", 4)[0]
    tell(memory, "weir", 4)
    store = succession.remember_each

    def erase_one(drafts: list[Draft], ctx: WriteContext) -> list[Remembered | Refused]:
        stored = store(drafts, ctx)
        ctx.store.items.erase([gone], actor="x", now=ctx.now)
        return stored

    monkeypatch.setattr(succession, "remember_each", erase_one)

    report = memory.maintain(SMALL)

    assert [skipped.hindrance for skipped in report.left] == [
        "one of its memories was erased meanwhile"
    ]
    assert [item.topic for item in memory.browse(levels=["insight"])] == ["weir"]


def test_a_leaf_of_an_erased_memory_that_was_once_secret_is_erased(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a run below a ceiling, which the journal does not tell of that erase."""
    gone = memory.remember("lock number 0 has a key below the stone", classification=3).id
    tell(memory, "lock", 3, first=1)
    tell(memory, "weir", 4)
    memory.update(gone, text="lock number 0 has 0 boxes", topic="lock", classification=1)
    store = succession.remember_each

    def erase_one(drafts: list[Draft], ctx: WriteContext) -> list[Remembered | Refused]:
        stored = store(drafts, ctx)
        memory.store.items.erase([gone], actor="x", now=ctx.now)
        return stored

    monkeypatch.setattr(succession, "remember_each", erase_one)

    memory.below(1).maintain(SMALL)

    assert [item.topic for item in memory.browse(levels=["insight"])] == ["weir"]


def test_a_leaf_of_a_run_that_overlapped_another_is_looked_at(memory: Memory) -> None:
    """The other run knew what changed meanwhile, but not the leaf."""
    ids = tell(memory, "lock", 4)
    earlier = memory.maintain(SMALL, preview=True).plan
    memory.store.items.set_status(ids[1:], "quarantined", actor="tester", now=NOW)
    later = memory.maintain(SMALL, preview=True).plan
    memory.carry_out(earlier)
    memory.carry_out(later)
    memory.maintain(SMALL)

    assert len(earlier.steps) == 1
    assert later.steps == ()
    assert memory.browse(levels=["insight"], kind="leaf") == []


@pytest.fixture
def joining(clock: FixedClock) -> Iterator[Memory]:
    """A memory whose embedder joins the vectors of texts."""
    with Memory.open(":memory:", embedder="encoder", clock=clock) as opened:
        yield opened


def vector_of(memory: Memory, item_id: str) -> Embedding:
    embedder = open_embedder("encoder")
    return memory.store.vectors.embeddings([item_id], embedder.model)[item_id]


def test_the_vector_of_a_leaf_is_made_of_those_of_its_memories(
    joining: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mean of the memories that its lines come from: no model is asked for a new leaf."""
    tell(joining, "lock", 4)
    monkeypatch.setattr(EncoderEmbedder, "embed", lambda *_: pytest.fail("the model was asked"))
    joining.maintain(SMALL)
    leaf = leaf_of(joining)
    made, parts = (
        vector_of(joining, leaf.id),
        [vector_of(joining, point["sources"][0]) for point in leaf.metadata["points"]],
    )

    mean = np.mean([part.vector for part in parts], axis=0, dtype=np.float32)
    assert made.vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-3)
    assert made.tokens == join_contextual([part.tokens for part in parts], len(mean))
    assert leaf.tokens == open_embedder("encoder").count_tokens(leaf.text)


def test_a_leaf_over_damaged_tokens_is_embedded_by_its_text(joining: Memory) -> None:
    """One rotten vector stops no insight, neither its own nor another of the run."""
    ids = [*tell(joining, "lock", 4), *tell(joining, "weir", 4)]
    rot = "UPDATE vector SET tokens = x'07' WHERE rid = (SELECT rid FROM item WHERE id = ?)"
    with joining.store._connections.write_transaction() as db:
        db.execute(rot, (ids[0],))

    report = joining.maintain(SMALL)

    assert report.left == ()
    embedder = open_embedder("encoder")
    leaves = {leaf.topic: leaf for leaf in joining.browse(levels=["insight"], kind="leaf")}
    assert leaves.keys() == {"lock", "weir"}
    by_text = embedder.embed([searched_text(leaves["lock"])])[0]
    assert vector_of(joining, leaves["lock"].id).tokens == by_text.tokens


def test_a_leaf_has_the_same_vector_after_an_import(joining: Memory, clock: FixedClock) -> None:
    """It is made of its memories' vectors again, though all of them are embedded at once."""
    tell(joining, "lock", 4)
    joining.maintain(SMALL)
    leaf = leaf_of(joining)
    with Memory.open(":memory:", embedder="encoder", clock=clock) as other:
        other.import_(list(joining.export()))

        found = vector_of(other, leaf.id)
    assert found.tokens == vector_of(joining, leaf.id).tokens
    assert found.vector.tolist() == vector_of(joining, leaf.id).vector.tolist()


@pytest.mark.parametrize(
    "change",
    [{"text": "lock number 1 leaks"}, {"classification": 3}],
    ids=["other words", "secret now"],
)
def test_no_vector_is_made_of_a_memory_that_was_changed(
    joining: Memory, change: dict[str, Any]
) -> None:
    """The leaf still says what it read: its vector is that of its text, until it is renewed."""
    ids = tell(joining, "lock", 3)
    joining.maintain(SMALL_LEAVES)
    leaf = leaf_of(joining)
    embedder = open_embedder("encoder")
    assert join_insights({"leaf": leaf}, joining.store, embedder).keys() == {"leaf"}

    joining.update(ids[1], **change)

    assert join_insights({"leaf": leaf}, joining.store, embedder) == {}


@pytest.mark.parametrize(
    "change",
    [
        {"text": "- another text"},
        {"source_class": "user"},
        {"metadata": {"points": [{"text": 1, "sources": [2]}]}},
    ],
    ids=["edited", "not made by maintenance", "strange"],
)
def test_no_vector_is_made_of_memories_for_another_text(
    joining: Memory, change: dict[str, Any]
) -> None:
    """Only lines that maintenance took from memories have their vectors."""
    tell(joining, "lock", 3)
    joining.maintain(SMALL_LEAVES)
    leaf = leaf_of(joining)._replace(**change)

    assert join_insights({"leaf": leaf}, joining.store, open_embedder("encoder")) == {}


def test_a_branch_is_embedded_by_its_text(joining: Memory) -> None:
    """Its lines are headings of leaves, not sentences of memories."""
    tell(joining, "lock", 8)
    joining.maintain(SMALL)
    joining.maintain(SMALL)
    (branch,) = joining.browse(levels=["insight"], kind="branch")
    embedder = open_embedder("encoder")

    assert join_insights({"branch": branch}, joining.store, embedder) == {}
    assert vector_of(joining, branch.id).tokens == embedder.embed([searched_text(branch)])[0].tokens


def test_a_small_space_gets_insights(memory: Memory) -> None:
    """Four of a subject are enough where there are fewer than a hundred memories."""
    tell(memory, "cranes", 4)
    tell(memory, "beans", 3)
    memory.maintain("insights")
    assert memory.insights() == []

    tell(memory, "boats", 1)
    memory.maintain("insights")

    (node,) = memory.insights()
    assert node.insight.topic == "cranes"


def test_how_many_memories_make_an_insight_can_be_said(memory: Memory) -> None:
    """Two at the least."""
    tell(memory, "cranes", 3)

    with pytest.raises(Refused, match="two memories or more"):
        memory.build_insights(min_memories=1)
    memory.build_insights(min_memories=3)

    assert len(memory.insights()) == 1


def test_the_text_of_an_insight_is_one_line_without_escapes(clock: FixedClock) -> None:
    """Its points one after the other; the escape of a line break is nothing to read."""
    with open_memory(clock, embedder="encoder") as memory:
        tell(memory, "cranes", 12)
        memory.build_insights(min_memories=4)

        text = memory.recall_text("cranes", profile="memind-simple")

    line = next(line for line in text.splitlines() if line.count("; ") >= 3)
    assert "\\n" not in text
    assert line.startswith("- 20")


def test_what_is_outdated_is_not_quoted(memory: Memory) -> None:
    """A newer statement leaves the leaf stale, and the next run makes it without the older."""
    ids = tell(memory, "lock", 4)
    memory.maintain(SMALL)
    assert "lock number 0" in leaf_of(memory).text
    (new,) = tell(memory, "lock", 1, first=9)

    ends = Node("item", new), Node("item", ids[0])
    memory.store.graph.add_links([Link(*ends, "supersedes", confidence=0.95)], now=NOW)

    assert memory.get(ids[0]).status == "active"
    assert [leaf.stale for leaf in memory.insights()] == [True]
    grow(memory)
    assert "lock number 0" not in leaf_of(memory).text
    assert [leaf.stale for leaf in memory.insights()] == [False]

    memory.forget(new)
    grow(memory)
    assert ids[0] not in dict(leaf_of(memory).metadata["seen"])  # it waits for another leaf
    assert memory.get(ids[0]).status == "active"


def test_links_that_a_run_adds_let_the_next_one_look_again(memory: Memory) -> None:
    """Though no memory was changed since."""
    ids = tell(memory, "lock", 4)
    grow(memory)
    (new,) = tell(memory, "weir", 1, first=9)
    memory.maintain(SMALL)

    record_links(
        [Link(Node("item", new), Node("item", ids[0]), "supersedes")], memory.session.job_context()
    )
    memory.store.graph.add_links(
        [Link(Node("item", new), Node("item", ids[0]), "supersedes")], now=NOW
    )

    assert memory.maintain(SMALL).run is not None
