"""A memory against a simple model of it: whatever is done in whatever order, they agree.

``BETHINK_MACHINE=5000x100`` runs that many examples of that many steps.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from bethink import Memory
from bethink.config.settings import Settings
from bethink.errors import NotFound, Refused
from bethink.maintain.cleanup import Duplicates, Expire, Forget
from bethink.maintain.consolidate import Concepts, Consolidate
from bethink.maintain.entities import RefreshEntities
from bethink.maintain.insights import Insights
from bethink.maintain.job import Job
from bethink.maintain.notes import WriteNotes
from bethink.maintain.runner import Report
from bethink.maintain.threads import FindThreads
from bethink.model import Item
from bethink.models.update_model import update_model
from bethink.ports import PairVerdict
from bethink.testing import FixedClock
from corpus import NOW
from fallible import Dying, Killed
from memory_model import TOKEN, Expected, ExpectedMemory, StoredText
from thorough import examples

EXAMPLES, STEPS = (
    int(n) for n in os.environ.get("BETHINK_MACHINE", f"{examples(20, 40)}x30").split("x")
)
# What is wrong stays wrong: the whole file is read after so many steps, and at the end.
CHECKED_EVERY = examples(4, 1)

# With thresholds so small that a handful of memories sets every one of them going.
JOBS: tuple[Job, ...] = (
    Duplicates(),
    Consolidate(min_age_days=0.0, max_heat=1e9, min_group=2, most_group=3),
    Concepts(kinds=("fact", "note"), min_facts=2),
    RefreshEntities(),
    FindThreads(),
    Insights(
        min_loose=2, min_leaf=2, most_leaf=3, min_leaves=2, branch_after=1,
        min_branches=1, root_after=1,
    ),
    WriteNotes(),
    Expire(),
    Forget(drop_from=0.5),
)  # fmt: skip
STANDS_IN = ("consolidate",)
TELLING = tuple(job for job in JOBS if job.name in ("duplicates", "consolidate", "insights"))


@pytest.fixture(autouse=True)
def _judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two limits the newer one holds; nothing else is an update."""

    def judge(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        return [
            PairVerdict(1.0 if all("limit" in text for text in pair) else 0.0, 0.0, 0.0, 1.0)
            for pair in pairs
        ]

    monkeypatch.setattr(update_model, "judge", judge)


places = st.integers(0, 1)
numbers = st.integers(0, 997)
shapes = st.integers(0, 6)


class MemoryMachine(RuleBasedStateMachine):
    """Two clients of one file, and what they should find there."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="bethink-machine-"))
        self.clock = FixedClock(NOW)
        self.model = Expected()
        self.files = 0
        self.words = 0
        self.looked = self.steps = 0
        self.exports: list[list[dict[str, Any]]] = []
        self.runs: list[str] = []
        self.abandoned: list[Memory] = []
        self.clients: list[Memory] = []

    @initialize(shapes=st.lists(shapes, max_size=8))
    def begin(self, shapes: list[int]) -> None:
        """Two clients, and a little for maintenance to work on."""
        self.clients = [self.opened(), self.opened()]
        self.remember_a_batch(0, [3, 4, *shapes])

    @property
    def path(self) -> Path:
        return self.folder / f"space-{self.files}.db"

    @property
    def memory(self) -> Memory:
        return self.clients[0]

    def opened(self) -> Memory:
        chosen = Settings(embedder="hash", notes_dir=self.folder / "notes")
        return Memory.open("machine", path=self.path, settings=chosen, clock=self.clock)

    def new_text(self, shape: int) -> str:
        self.words += 1
        word = f"zq{self.words:04}"
        return (
            f"The {word} gate opens towards the sea",
            f"Somebody painted the {word} shed, again with {word}",
            f"The limit of the gateway is {self.words} requests, says {word}",
            f"Atlas keeps {word} in the cellar",
            f"Atlas sent {word} to the harbour because Atlas was asked to",
            f"AT-{self.words % 3} is blocked by {word}",
            f"AT-{self.words % 3} was fixed after {word}",
        )[shape]

    def about(self, shape: int) -> dict[str, Any]:
        """What is said about a memory of that shape."""
        if shape in (3, 4):
            return {"entities": ["project:Atlas"], "layer": "context", "kind": "fact"}
        return {"topic": "gates", "kind": "fact"} if shape == 0 else {}

    def crashing(self, client: Memory, writes: int | None) -> Memory:
        """The same client in a process that dies before its so many-th write, if it does."""
        if writes is None:
            return client
        dying: Any = Dying(client.store, writes)
        return Memory(
            dying,
            embedder=client.embedder,
            settings=client.settings,
            clock=self.clock,
            notes_dir=self.folder / "notes",
        )

    # -- remembering ------------------------------------------------------

    @rule(at=places, shape=shapes, pinned=st.booleans())
    def remember(self, at: int, shape: int, *, pinned: bool) -> None:
        text = self.new_text(shape)
        stored = self.clients[at].remember(text, pinned=pinned, **self.about(shape))
        assert stored.status == "stored"
        self.model.known[stored.id] = ExpectedMemory([StoredText(text, pinned)])

    @rule(at=places, shapes=st.lists(shapes, min_size=2, max_size=4))
    def remember_a_batch(self, at: int, shapes: list[int]) -> None:
        texts = [self.new_text(shape) for shape in shapes]
        drafts = [
            {"text": text, **self.about(shape)} for text, shape in zip(texts, shapes, strict=True)
        ]
        # The last one again: once is enough.
        stored = self.clients[at].remember_many([*drafts, drafts[-1]])
        assert [one.status for one in stored] == ["stored"] * len(texts) + ["duplicate"]
        for one, text in zip(stored, texts, strict=False):
            self.model.known[one.id] = ExpectedMemory([StoredText(text, pinned=False)])

    @rule(at=places, number=numbers)
    def remember_again(self, at: int, number: int) -> None:
        """The words of one that is there store nothing; of one that is gone or outdated, they do."""
        chosen = self.model.pick(number, made=False)
        if not chosen:
            return
        text = self.model.known[chosen].text
        there = {
            key
            for key, one in self.model.known.items()
            if one.text == text and self.is_recalled(one) and not self.is_outdated(key)
        }
        stored = self.clients[at].remember(text)
        if there:
            assert stored.status == "duplicate"
            assert stored.id in there
        else:
            assert stored.status == "stored"
            self.model.known[stored.id] = ExpectedMemory([StoredText(text, pinned=False)])

    @rule(at=places, number=numbers)
    def remember_more(self, at: int, number: int) -> None:
        """The words of another and some more: the duplicates job will find them."""
        chosen = self.model.pick(number, live=True, made=False)
        if chosen and len(self.model.known[chosen].text) < 120:
            text = f"{self.model.known[chosen].text}, also in winter"
            stored = self.clients[at].remember(text)
            if stored.status == "stored":
                self.model.known[stored.id] = ExpectedMemory([StoredText(text, pinned=False)])

    @rule(at=places, shape=shapes, key=st.sampled_from("abc"))
    def remember_with_key(self, at: int, shape: int, key: str) -> None:
        """A retry stores nothing, wherever the first one went since."""
        client = self.clients[at]
        if key in self.model.keys:
            kept, text = self.model.keys[key]
            if kept in self.model.erased:
                with pytest.raises(Refused, match="was erased"):
                    client.remember(text, key=key)
                return
            again = client.remember(text, key=key)
            assert (again.status, again.id) == ("repeated", kept)
            return
        text = self.new_text(shape)
        stored = client.remember(text, key=key, **self.about(shape))
        assert stored.status == "stored"
        self.model.known[stored.id] = ExpectedMemory([StoredText(text, pinned=False)])
        self.model.keys[key] = (stored.id, text)

    @rule(at=places, first=numbers, second=numbers)
    def remember_what_follows(self, at: int, first: int, second: int) -> None:
        """Somebody's own words, made from one memory or two."""
        parents = {self.model.pick(first, live=True), self.model.pick(second, live=True)} - {""}
        if parents:
            text = self.new_text(1)
            stored = self.clients[at].remember(text, derives_from=sorted(parents))
            self.model.known[stored.id] = ExpectedMemory(
                [StoredText(text, pinned=False)], parents=parents
            )

    @rule(at=places, shape=shapes, days=st.integers(1, 3))
    def remember_for_a_while(self, at: int, shape: int, days: int) -> None:
        text, until = self.new_text(shape), self.clock.now + timedelta(days=days)
        stored = self.clients[at].remember(text, valid_to=until, **self.about(shape))
        self.model.known[stored.id] = ExpectedMemory(
            [StoredText(text, pinned=False)], valid_to=until
        )

    # -- changing ---------------------------------------------------------

    @rule(at=places, number=numbers, shape=shapes)
    def update(self, at: int, number: int, shape: int) -> None:
        chosen = self.model.pick(number, live=True, made=False)
        if chosen:
            one, text = self.model.known[chosen], self.new_text(shape)
            self.clients[at].update(chosen, text=text)
            one.revise(StoredText(text, one.pinned))

    @rule(at=places, number=numbers, pinned=st.booleans())
    def pin(self, at: int, number: int, *, pinned: bool) -> None:
        chosen = self.model.pick(number, live=True, made=False)
        if chosen:
            self.clients[at].update(chosen, pinned=pinned)
            one = self.model.known[chosen]
            if pinned != one.pinned:  # the same again is no revision
                one.revise(StoredText(one.text, pinned))

    @rule(at=places, number=numbers)
    def forget(self, at: int, number: int) -> None:
        chosen = self.model.pick(number, live=True)
        if not chosen:
            return
        done = self.clients[at].forget(chosen)
        if self.model.known[chosen].pinned or done.kept:
            assert [key for key, _ in done.kept] == [chosen]
        else:
            self.model.known[chosen].end("forgotten")

    @rule(at=places, number=numbers)
    def restore(self, at: int, number: int) -> None:
        """One that is gone comes back, all of a run's at once; what was erased does not."""
        chosen = self.model.pick(number, live=False)
        if chosen:
            how = self.model.known[chosen].ended_by
            back = [
                key for key, one in self.model.known.items() if not one.live and one.ended_by == how
            ]
            assert sorted(self.clients[at].restore(*back)) == sorted(back)
            for key in back:
                self.model.known[key].restore()
        gone = sorted(self.model.erased)
        if gone:
            with pytest.raises(NotFound):
                self.clients[at].restore(gone[number % len(gone)])

    @rule(at=places, number=numbers)
    def undo(self, at: int, number: int) -> None:
        chosen = self.model.pick(number)
        if not chosen or self.model.known[chosen].last == "status":
            return
        one = self.model.known[chosen]
        if one.last == "revised":
            one.revise(one.said[-2])
        elif one.last == "ended":
            one.restore()
        elif one.live:
            one.end("undone")
        self.clients[at].undo(chosen)

    @rule(at=places, number=numbers, writes=st.none() | st.integers(0, 4))
    def erase(self, at: int, number: int, writes: int | None) -> None:
        """Killed on the way and repeated, it comes to the same as in one go."""
        chosen = self.model.pick(number)
        if not chosen:
            return
        self.expect_erased(chosen)
        try:
            self.crashing(self.clients[at], writes).forget(chosen, erase=True)
        except Killed:
            self.memory.forget(chosen, erase=True)

    def expect_erased(self, chosen: str) -> None:
        going = self.model.reach_of(chosen)
        for orphan in self.model.orphans_of(going):
            self.model.known[orphan].restore()
        self.model.erase(going)

    # -- maintenance and time ---------------------------------------------

    @rule(days=st.sampled_from((0.1, 1.0, 40.0)))
    def time_passes(self, days: float) -> None:
        self.clock.forward(days=days)

    @rule(at=places, job=st.sampled_from(TELLING), share=st.sampled_from((0.7, 1.0)))
    def maintain_what_tells(self, at: int, job: Job, share: float) -> None:
        """The jobs that end memories and make new ones, more often than the others."""
        self.maintain(at, job, share)

    @rule(at=places, job=st.sampled_from(JOBS), share=st.sampled_from((0.3, 1.0)))
    def maintain(self, at: int, job: Job, share: float) -> None:
        report = self.clients[at].maintain(job, share=share, clock_is_right=True)
        before = {key: one.live for key, one in self.model.known.items()}
        if report.run is not None:
            self.runs.append(report.run)
        self.take_in(report)
        ended = {key for one in report.done for key in one.proposal.ends}
        assert {key for key, live in before.items() if live} - self.model.live() <= ended
        gone = sum(len(one.ended) for one in report.done if not one.proposal.renews)
        assert gone <= report.plan.limit

    def take_in(self, report: Report | None = None) -> None:
        """What a run did, whether it told or died: only what it may."""
        store = self.memory.store
        for key, item in store.items.get(sorted(self.model.known)).items():
            one = self.model.known[key]
            if item.live_to is None:
                assert one.live, "maintenance brought something back"
            elif one.live:
                assert not one.pinned, "a pinned memory was ended"
                job, _, run = str(item.ended_by).partition(":")
                assert run.startswith("run-")
                one.end(f"{job}:{run}")
        for item in self.everything():
            if item.id not in self.model.known:
                self.meet(item)
        for done in report.done if report else ():
            if done.successor is not None and done.proposal.ends:
                self.model.known[done.successor].stands_in.add(f"{done.job}:{report.run}")

    def meet(self, item: Item) -> None:
        """Something new that maintenance made: it says so, and from what."""
        assert item.id not in self.model.erased, "something erased came back"
        assert item.metadata.get("job"), f"{item.id} came from nowhere"
        links = self.memory.store.graph.links_of([item.id], ("derives_from",), incoming=False)
        job, run = str(item.metadata["job"]), str(item.metadata["run"])
        self.model.known[item.id] = ExpectedMemory(
            [StoredText(item.text, pinned=False)],
            job=job,
            run=run,
            parents={link.dst.id for link in links},
            stands_in={f"{job}:{run}"},
        )

    @rule(at=places, number=numbers)
    def undo_a_run(self, at: int, number: int) -> None:
        if not self.runs:
            return
        run = self.runs[number % len(self.runs)]
        back = {
            key
            for key, one in self.model.known.items()
            if not one.live and one.ended_by in (f"{job.name}:{run}" for job in JOBS)
        }
        try:
            undone = self.clients[at].undo_run(run)
        except Refused:
            assert not back
            return
        assert set(undone.restored) == back
        for key in back:
            self.model.known[key].restore()
        for key in undone.ended:
            assert self.model.known[key].job is not None
            self.model.known[key].end(f"undone:{run}")

    # -- files, processes, crashes ----------------------------------------

    @rule(
        at=places,
        number=numbers,
        doing=st.sampled_from(("export", "import", "move", "reopen", "abandon")),
    )
    def live_on(self, at: int, number: int, doing: str) -> None:
        """Something happens to a process or a file, and nothing to the memory."""
        if doing == "export":
            self.exports.append(list(self.clients[at].export()))
        elif doing == "import" and self.exports:
            # An older export of the same memory brings nothing back and changes nothing.
            records = self.exports[number % len(self.exports)]
            assert self.clients[at].import_(records) == 0
        elif doing == "move":
            self.move(at)
        elif doing == "reopen":
            self.clients[at].close()
            self.clients[at] = self.opened()
        elif doing == "abandon":
            # A process is gone without a word; its successor finds everything.
            self.abandoned.append(self.clients[at])
            self.clients[at] = self.opened()

    def move(self, at: int) -> None:
        """To another file by an export: everything goes along."""
        records = list(self.clients[at].export())
        for client in self.clients:
            client.close()
        self.files += 1
        self.clients = [self.opened(), self.opened()]
        assert self.memory.import_(records) == len(self.model.known)
        for one in self.model.known.values():
            one.last = "imported"

    @rule(at=places, writes=st.integers(0, 2), shape=shapes)
    def crash_while_remembering(self, at: int, writes: int, shape: int) -> None:
        """A retry with the same key comes to one memory, whether the first was in time."""
        text, key = self.new_text(shape), f"crash {self.words}"
        with suppress(Killed):
            self.crashing(self.clients[at], writes).remember(text, key=key, **self.about(shape))
        stored = self.memory.remember(text, key=key, **self.about(shape))
        assert stored.id not in self.model.known
        self.model.known[stored.id] = ExpectedMemory([StoredText(text, pinned=False)])

    @rule(at=places, writes=st.integers(0, 9), job=st.sampled_from((*TELLING, *JOBS)))
    def crash_while_maintaining(self, at: int, writes: int, job: Job) -> None:
        with suppress(Killed):
            self.crashing(self.clients[at], writes).maintain(job, share=1.0, clock_is_right=True)
        self.take_in()
        self.runs += [
            begun.run for begun in self.memory.maintenance(limit=1) if begun.run not in self.runs
        ]

    @rule(at=places, writes=st.integers(0, 4), number=numbers)
    def crash_while_undoing(self, at: int, writes: int, number: int) -> None:
        if not self.runs:
            return
        with suppress(Killed, Refused):
            self.crashing(self.clients[at], writes).undo_run(self.runs[number % len(self.runs)])
        self.undo_came_this_far(self.runs[number % len(self.runs)])
        self.undo_a_run(at, number)

    def undo_came_this_far(self, run: str) -> None:
        for key, item in self.memory.store.items.get(sorted(self.model.known)).items():
            one = self.model.known[key]
            if item.live_to is None and not one.live:
                assert str(one.ended_by).endswith(f":{run}")
                one.restore()
            elif item.live_to is not None and one.live:
                assert item.ended_by == f"undone:{run}"
                one.end(f"undone:{run}")

    # -- what must hold after every step ----------------------------------

    @invariant()
    def the_memory_is_as_the_model_says(self) -> None:
        self.statuses_are_taken_note_of()
        self.everything_acknowledged_is_there()
        self.nothing_else_is_there()
        self.nothing_erased_comes_back()
        self.what_was_consolidated_is_in_a_lineage()
        self.a_memory_is_found_by_its_words()
        self.steps += 1
        if self.steps % CHECKED_EVERY == 0:
            self.the_whole_file_is_right()

    def everything(self) -> list[Item]:
        """All that is live, but for what is quarantined."""
        return self.memory.browse(
            limit=1000, include_superseded=True, include_expired=True, max_classification=3
        )

    def is_recalled(self, one: ExpectedMemory) -> bool:
        """Whether an ordinary recall may return it."""
        valid = one.valid_to is None or one.valid_to > self.clock.now
        told = one.status == "active" or (one.status == "superseded" and one.pinned)
        return one.live and told and valid

    def is_outdated(self, key: str) -> bool:
        """Whether a memory that stands says otherwise since: its words said again are news."""
        links = self.memory.store.graph.links_of([key], ("supersedes",))
        newer = [self.model.known.get(link.src.id) for link in links if link.dst.id == key]
        return any(one is not None and one.live and one.status == "active" for one in newer)

    def everything_acknowledged_is_there(self) -> None:
        """Live where it should be, with the words it should have."""
        for client in self.clients:
            items = client.store.items.get(sorted(self.model.known))
            assert items.keys() == self.model.known.keys(), "a memory is lost"
            for key, item in items.items():
                one = self.model.known[key]
                assert (item.live_to is None) == one.live, f"{key}: {item.ended_by}"
                assert (item.text, item.pinned) == one.said[-1]

    def statuses_are_taken_note_of(self) -> None:
        """Whoever is superseded has somebody in its place."""
        graph = self.memory.store.graph
        for key, item in self.memory.store.items.get(sorted(self.model.known)).items():
            one = self.model.known[key]
            if item.status != one.status:
                one.status, one.last = item.status, "status"
            if item.live_to is None and item.status == "superseded":
                links = graph.links_of([item.id], ("supersedes",))
                assert any(link.dst.id == item.id for link in links), item.text

    def nothing_else_is_there(self) -> None:
        found = {item.id for item in self.everything()}
        assert found <= self.model.live()
        shown = {item.id for item in self.memory.browse(limit=1000, max_classification=3)}
        assert shown == {key for key, one in self.model.known.items() if self.is_recalled(one)}

    def nothing_erased_comes_back(self) -> None:
        assert not self.memory.store.items.get(sorted(self.model.erased))
        forbidden = self.model.forbidden()
        for note in (self.folder / "notes").rglob("*.md"):
            assert not forbidden & set(TOKEN.findall(note.read_text("utf-8")))
        for thread in self.memory.threads(limit=1000):
            assert not forbidden & set(TOKEN.findall(thread.headline))

    def what_was_consolidated_is_in_a_lineage(self) -> None:
        hidden = [
            key
            for key, one in self.model.known.items()
            if not one.live and str(one.ended_by).startswith(STANDS_IN)
        ]
        links = self.memory.store.graph.links_of(hidden, ("derives_from",)) if hidden else []
        assert {link.dst.id for link in links} >= set(hidden)

    def a_memory_is_found_by_its_words(self) -> None:
        """One at a step, another at each."""
        standing = sorted(key for key, one in self.model.known.items() if self.is_recalled(one))
        if not standing:
            return
        self.looked += 1
        chosen = standing[self.looked % len(standing)]
        text = self.model.known[chosen].text[:400]
        # Insights only fill up what other memories leave of an answer.
        k = min(200, max(25, len(standing)))
        client = self.clients[self.looked % 2]
        answer = client.recall(text, k=k, max_tokens=100_000, track=False)
        said = set(TOKEN.findall(text))
        assert any(
            hit.item.id == chosen or said <= set(TOKEN.findall(hit.item.text))
            for hit in answer.hits
        ), f"{text!r} does not find {chosen}"

    def the_whole_file_is_right(self) -> None:
        """Every revision has the words it had, and the doctor finds nothing."""
        for key, one in self.model.known.items():
            revisions = self.memory.store.items.history(key)
            assert [StoredText(rev.text, rev.pinned) for rev in revisions] == one.said
        wrong = [finding for finding in self.memory.doctor() if not finding.ok]
        assert not wrong

    def teardown(self) -> None:
        """Everything that was ever ended comes back word for word, and no word of what was
        erased is in any file."""
        if self.clients:
            self.the_whole_file_is_right()
        ended = sorted(key for key, one in self.model.known.items() if not one.live)
        if self.clients and ended:
            assert sorted(self.memory.restore(*ended)) == ended
            items = self.memory.store.items.get(ended)
            assert all(items[key].text == self.model.known[key].text for key in ended)
        for client in (*self.clients, *self.abandoned):
            client.close()
        forbidden = self.model.forbidden()
        bytes_of = self.path.read_bytes() if self.path.exists() else b""
        shutil.rmtree(self.folder)
        left = {word for word in forbidden if word.encode() in bytes_of}
        assert not left, f"erased words are in the file: {left}"


TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    report_multiple_bugs=False,
    phases=[phase for phase in Phase if phase is not Phase.explain],
    suppress_health_check=list(HealthCheck),
)
TestMemoryMachine = pytest.mark.slow(pytest.mark.timeout(0)(TestMemoryMachine))
