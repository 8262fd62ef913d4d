"""Nothing that is listed, drawn or previewed tells of memories above the ceiling."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bethink import Memory
from bethink.cli.maintenance import report_json
from bethink.config.settings import Settings
from bethink.errors import NotFound
from bethink.render.wire import dumps
from bethink.server.tools import TOOLS
from bethink.server.tools.tool import Call
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock

NOW = datetime(2026, 9, 5, tzinfo=UTC)
SECRET = "Halcyon"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with Memory(SqliteStore.open(None, space="test"), clock=clock, settings=Settings()) as opened:
        yield opened


def above(memory: Memory) -> Memory:
    """The same store for one who may see all of it."""
    return Memory(memory.store, clock=memory.session.clock, settings=Settings(max_classification=3))


def add_mergeable(memory: Memory, clock: FixedClock) -> None:
    """Cold memories of one secret matter, and many others."""
    for number, word in enumerate(("sang", "wept", "ran")):
        memory.remember(
            f"{SECRET} {word} at dawn in room {number}",
            layer="context",
            entities=["project:Halcyon"],
            importance=0.1,
            classification=3,
        )
    for number in range(160):
        memory.remember(f"filler {number} word{number} text{number * 3}")
    clock.forward(days=300)
    memory.remember("A word of today, so that the clock is believed")


def test_a_preview_of_maintenance_keeps_secrets(memory: Memory, clock: FixedClock) -> None:
    """A proposal about what may not be seen says its rule and ids; its token stays good."""
    add_mergeable(memory, clock)
    jobs = ("duplicates", "consolidate")

    preview = memory.maintain(*jobs, preview=True)
    open_preview = above(memory).maintain(*jobs, preview=True)
    reply = TOOLS["consolidate"](Call(memory, {}))

    assert preview.plan.steps
    assert SECRET not in dumps(report_json(preview, preview=True))
    assert SECRET not in reply.text + dumps(reply.content)
    assert preview.plan.steps[0].proposal.leaving[0] in dumps(reply.content)
    assert SECRET in dumps(report_json(open_preview, preview=True))
    done = memory.maintain(*jobs, token=preview.plan.token)
    assert done.done
    assert SECRET not in dumps(report_json(done, preview=False))


def test_what_is_left_alone_keeps_secrets(memory: Memory, clock: FixedClock) -> None:
    """Nor does a proposal that cannot happen tell what it was about."""
    for number, word in enumerate(("sold", "bought", "split")):
        memory.remember(
            f"Zephyr was {word} at noon in hall {number}",
            layer="context",
            entities=["project:Zephyr"],
            importance=0.1,
            classification=3,
        )
    add_mergeable(memory, clock)

    report = memory.maintain("consolidate", preview=True)
    told = dumps(report_json(report, preview=True))

    assert len(report.left) == len(report.plan.steps) == 1
    assert SECRET not in told
    assert "Zephyr" not in told


def add_edits(memory: Memory) -> None:
    secret = memory.remember(f"{SECRET} moves to the new ledger", classification=3)
    shown = memory.remember("The ledger is rounded to cents")
    edit = {"path": "src/ledger.py", "operation": "edit"}
    memory.note_edits(
        [
            {**edit, "intent": f"carry {SECRET} over to the new ledger", "item": secret.id,
             "session": "closed", "at": "2026-09-01"},
            {**edit, "intent": "round every amount to whole cents", "item": shown.id,
             "at": "2026-09-02"},
            {**edit, "path": f"src/{SECRET}.py", "item": secret.id, "at": "2026-09-03"},
            {**edit, "intent": "let the totals be read at once", "at": "2026-09-04"},
        ]
    )  # fmt: skip


def test_a_files_history_leaves_secret_edits_out(memory: Memory) -> None:
    """Neither counted nor named; whoever may see the memory sees its edits."""
    add_edits(memory)

    seen = memory.recall_file("src/")

    assert seen.edits == 2
    assert seen.paths == ("src/ledger.py",)
    assert SECRET not in repr(seen)
    assert "closed" not in repr(seen)
    assert memory.recall_file(SECRET).edits == 0
    assert above(memory).recall_file("src/").edits == 4


def test_entities_of_secrets_are_not_listed(memory: Memory) -> None:
    """One that only secrets mention is not there; others count what may be seen."""
    for number in range(3):
        memory.remember(
            f"{SECRET} step {number} with Oskar",
            entities=["project:Halcyon", "person:Oskar"],
            classification=3,
            pinned=True,
            layer="context",
        )
    memory.remember("Oskar waters the garden", entities=["person:Oskar"], layer="context")
    gone = memory.remember("Zephyr is over", entities=["project:Zephyr"], classification=3)
    memory.forget(gone.id)

    seen = {one.id: one for one in memory.entities(min_memories=0)}

    assert seen.keys() == {"person:oskar"}
    assert seen["person:oskar"].mentions == 1
    assert seen["person:oskar"].layers == (("context", 1),)
    assert seen["person:oskar"].pinned == 0
    assert memory.entities(min_memories=2) == []
    everything = {one.id: one.mentions for one in above(memory).entities()}
    assert everything == {"person:oskar": 4, "project:halcyon": 3}


def add_threads(memory: Memory) -> None:
    begun = datetime(2026, 1, 1, tzinfo=UTC)
    for day in range(4):
        memory.remember(
            f"{SECRET} clause {day} is agreed",
            topic=f"merger with {SECRET}",
            classification=3,
            occurred_at=begun + timedelta(days=day),
        )
        memory.remember(
            f"Garden bed {day} is planted",
            topic="garden",
            classification=3 if day == 3 else 1,
            occurred_at=begun + timedelta(days=day),
        )


def test_threads_of_secrets_are_not_listed(memory: Memory) -> None:
    """A thread without a member that may be seen is not there; of others those are left."""
    add_threads(memory)

    report = memory.maintain("threads")
    seen = memory.threads()

    assert SECRET not in dumps(report_json(report, preview=False))
    assert [one.headline for one in seen] == ["garden"]
    assert len(seen[0].members) == 3
    assert {event.item for event in seen[0].events} <= {one.item for one in seen[0].members}
    everything = {one.headline: one for one in above(memory).threads()}
    assert len(everything["garden"].members) == 4
    hidden = next(one for one in above(memory).threads() if one.id != seen[0].id)
    with pytest.raises(NotFound):
        memory.thread(hidden.id)
    assert memory.threads(limit=1, offset=1) == []


def test_a_headline_is_borne_out_by_what_may_be_seen(memory: Memory) -> None:
    """Where only a secret member bears the words, they are not shown."""
    secret = memory.remember(f"{SECRET} is bought", topic=SECRET)
    shown = memory.remember("The lawyers meet on Monday")
    memory.put_thread(SECRET, [secret.id, shown.id], anchor=f"topic:{SECRET}")
    memory.update(secret.id, classification=3)

    (seen,) = memory.threads()

    assert SECRET not in repr(seen)
    assert [one.item for one in seen.members] == [shown.id]
    assert above(memory).threads()[0].headline == SECRET


def test_a_thread_with_a_secret_is_not_told(memory: Memory) -> None:
    """It is there for those who may see all of it; others keep the one of its id they had."""
    secret = memory.remember(f"{SECRET} is bought", classification=3).id
    shown = memory.remember("The lawyers meet on Monday").id
    owner, low = above(memory), memory.below(1)
    owner.put_thread(SECRET, [secret, shown], id="plans")
    assert memory.threads() == low.threads() == []

    low.put_thread("Lawyers", [shown], id="plans")

    assert [one.headline for one in low.threads()] == ["Lawyers"]
    assert [one.item for one in owner.thread("plans").members] == sorted([secret, shown])
    low.store.activity.drop_thread("plans", actor="x", now=memory.session.clock())
    assert low.threads() == []
    assert owner.thread("plans").headline == SECRET
    owner.put_thread("Done", [shown], id="plans")
    assert [one.headline for one in low.threads()] == ["Done"]
    assert owner.stats()["threads"] == 1


def test_a_ticket_that_only_a_secret_names_is_not_told(memory: Memory) -> None:
    """Nor that the memory that may be seen belongs to its thread."""
    for text, ceiling in ((f"{SECRET.upper()}-42: the gate broke", 3), ("The crane came", 0)):
        memory.remember(text, entities=["project:lock", "place:gate"], classification=ceiling)
    memory.maintain("threads")

    assert above(memory).threads() == [] == memory.threads()


def test_files_are_forgotten_by_their_path(memory: Memory, tmp_path: Path) -> None:
    """Shown first; then edits and snapshots are gone and the journal has no word of it."""
    file = tmp_path / "ledger.py"
    file.write_text("def total(): ...\n")
    memory.read_smart(file, roots=[tmp_path])
    memory.note_edits([{"path": str(file), "operation": "edit", "intent": "round to whole cents"}])
    memory.note_edits([{"path": "kept.py", "operation": "edit"}])

    preview = memory.forget_file("ledger", preview=True)
    before = memory.recall_file("ledger").edits
    done = memory.forget_file("ledger")

    assert (preview.edits, preview.snapshots, preview.paths) == (1, 1, (str(file),))
    assert preview.preview
    assert before == 1
    assert (done.edits, done.snapshots, done.preview) == (1, 1, False)
    assert memory.recall_file("ledger").edits == 0
    assert memory.recall_file("kept.py").edits == 1
    assert memory.store.activity.file_snapshot(str(file)) is None
    assert "ledger" not in repr(memory.events())
    assert any(event.kind == "files forgotten" for event in memory.events())


def test_the_bytes_of_forgotten_files_are_gone(tmp_path: Path) -> None:
    """Neither the file nor its log holds the path any more."""
    path = tmp_path / "one.db"
    with Memory.open(path=path, embedder="none", settings=Settings()) as memory:
        memory.note_edits([{"path": f"src/{SECRET}.py", "operation": "edit", "intent": SECRET * 4}])
        memory.forget_file(SECRET)

        held = [file.read_bytes() for file in tmp_path.iterdir() if file.is_file()]

    assert all(SECRET.encode() not in one for one in held)


def names_below(memory: Memory) -> dict[str, tuple[str, ...]]:
    """The entities that one who may see up to 1 is told of, and their other names."""
    found = memory.below(1).store.graph.entities(limit=50)
    return {entity.name: entity.aliases for entity in found}


def test_a_merged_name_goes_with_its_last_visible_memory(memory: Memory) -> None:
    """Where only a secret still tells it, it is as secret; a split leaves it so."""
    memory.remember("Ylva owns the plan")
    told = memory.remember("Pip Bergqvist rests")
    memory.remember("Pip Bergqvist hid the gold", classification=3)
    memory.merge_entities("Ylva", "Pip Bergqvist")
    assert names_below(memory)["Ylva"] == ("pip bergqvist",)

    memory.forget(told.id, erase=True)

    assert names_below(memory) == {"Ylva": ()}
    assert "pip bergqvist" in memory.store.graph.entities(prefix="Ylva")[0].aliases
    memory.split_entities("Ylva", "pip bergqvist")
    assert names_below(memory) == {"Ylva": ()}


def test_a_merge_never_tells_the_name_of_a_secret(memory: Memory) -> None:
    """A name is as classified under the entity it goes to as under its own."""
    memory.remember("Ylva owns the plan")
    memory.remember("Pip Bergqvist hid the gold", classification=3)

    above(memory).merge_entities("Ylva", "Pip Bergqvist")

    assert names_below(memory) == {"Ylva": ()}
    memory.remember("Pip Bergqvist rests")
    assert names_below(memory) == {"Ylva": (), "Pip Bergqvist": ()}


@pytest.mark.parametrize("merged_first", [False, True])
def test_the_name_of_a_memory_that_becomes_secret_goes_with_it(
    memory: Memory, *, merged_first: bool
) -> None:
    """Whether its entity is merged into a visible one before that or after it."""
    memory.remember("Ylva owns the plan")
    told = memory.remember("Pip Bergqvist rests")

    if merged_first:
        memory.merge_entities("Ylva", "Pip Bergqvist")
    above(memory).update(told.id, classification=3)
    if not merged_first:
        above(memory).merge_entities("Ylva", "Pip Bergqvist")

    assert names_below(memory) == {"Ylva": ()}
    assert "pip bergqvist" in memory.store.graph.entities(prefix="Ylva")[0].aliases
