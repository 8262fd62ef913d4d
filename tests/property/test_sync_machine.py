"""Three machines share a space: whatever they do in whatever order, they come to agree.

A fourth one is told nothing above the classification 1, or only up to some moment. One may
become a copy of another.

``BETHINK_SYNC_MACHINE=500x60`` runs that many examples of that many steps.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from bethink.model import Link, Node
from bethink.ports import OpBatch, Store
from bethink.store.sqlite import SqliteStore
from bethink.sync import peer
from bethink.sync.session import Syncing
from records import at, mention, record
from thorough import examples

EXAMPLES, STEPS = (
    int(n) for n in os.environ.get("BETHINK_SYNC_MACHINE", f"{examples(15, 30)}x30").split("x")
)
NAMES = ("a", "b", "c", "low")
LOW = 3  # the replica with a ceiling
LOW_CEILING = 1
replicas = st.integers(0, 2)
numbers = st.integers(0, 99)
WORDS = ("Vault", "Berlin", "Tuesday", "release")


class BrokenOff(Exception):
    """The line is dead."""


def open_replica(path: Path, name: str) -> Store:
    """A space that is a machine of its own."""
    store = SqliteStore.open(path, space="together")
    store.sync.keep(device=name, name=name, private="", public="")
    return store


class SyncMachine(RuleBasedStateMachine):
    """Replicas, and a model: of each memory the texts, and which of them a writer knew."""

    @initialize(ceiling=st.integers(LOW_CEILING, 2))
    def begin(self, ceiling: int) -> None:
        self.ceiling = self.told = ceiling  # now, and before: of the fourth machine
        self.told_before: set[str] = set()  # ids and texts that it had when it was lowered
        self.folder = TemporaryDirectory()
        self.paths = [Path(self.folder.name) / f"{name}.db" for name in NAMES]
        self.stores = [open_replica(*one) for one in zip(self.paths, NAMES, strict=True)]
        self.clock = 0.0
        self.raised: dict[str, dict[str, tuple[int, frozenset[str]]]] = {}
        self.forgets: dict[str, list[frozenset[str]]] = {}
        self.ids: list[str] = []
        self.erased: set[str] = set()
        self.pinned: set[str] = set()  # pins can contradict each other, too
        self.restored: set[str] = set()
        self.levels: dict[str, int] = {}  # of each text
        self.texts: dict[str, dict[str, frozenset[str]]] = {}  # of each: text -> texts it knew
        self.sent: list[OpBatch] = []

    def teardown(self) -> None:
        if not hasattr(self, "stores"):
            return
        try:
            self.converge()
        finally:
            for store in self.stores:
                store.close()
            self.folder.cleanup()

    def now(self, skew: float = 0) -> Any:
        self.clock += 1
        return at(seconds=self.clock + skew)

    def pick(self, number: int) -> str | None:
        return self.ids[number % len(self.ids)] if self.ids else None

    def live(self, replica: int, item: str | None) -> Any:
        if item is None:
            return None
        found = self.stores[replica].items.get([item]).get(item)
        return found if found is not None and found.live_to is None else None

    def knows(self, replica: int, item: str) -> frozenset[str]:
        """The texts that the rows of a replica hold, and so its writer may know."""
        return frozenset(one.text for one in self.stores[replica].items.history(item))

    def write(self, replica: int, item: str, text: str, **fields: Any) -> None:
        knew = self.knows(replica, item)
        before = self.stores[replica].items.get([item]).get(item)
        if before is None or before.classification != fields["classification"]:
            self.raised.setdefault(item, {})[text] = (fields["classification"], knew)
        self.texts.setdefault(item, {})[text] = knew
        self.levels[text] = fields["classification"]
        made = record(item, text, skip_duplicate=False, **fields)
        self.stores[replica].items.put([made], actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, level=st.integers(0, 2))
    def remember(self, replica: int, level: int) -> None:
        item = f"m{len(self.ids)}"
        self.ids.append(item)
        word = WORDS[len(self.ids) % len(WORDS)]
        self.write(
            replica, item, f"{item} first {word}", mentions=(mention(word),),
            classification=level, tags=("new",), key=f"key {item}",
        )  # fmt: skip

    @rule(
        replica=st.integers(0, 3),
        number=numbers,
        level=st.integers(0, 2),
        tag=st.sampled_from("xyz"),
    )
    def edit(self, replica: int, number: int, level: int, tag: str) -> None:
        level = min(level, LOW_CEILING) if replica == LOW else level
        found = self.live(replica, self.pick(number))
        if found is not None:
            word = WORDS[number % len(WORDS)]
            self.write(
                replica, found.id, f"{found.id} edited {self.clock} {word}", rev=found.rev + 1,
                classification=level, tags=(*found.tags, tag), mentions=(mention(word),),
                status=found.status,
            )  # fmt: skip

    @rule(replica=replicas, number=numbers)
    def pin(self, replica: int, number: int) -> None:
        found = self.live(replica, self.pick(number))
        if found is not None:
            self.pinned.add(found.id)
            made = record(
                found.id, found.text, skip_duplicate=False, rev=found.rev + 1, status=found.status,
                pinned=not found.pinned, classification=found.classification, tags=found.tags,
                entities=found.entities,
            )  # fmt: skip
            self.stores[replica].items.put([made], actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, number=numbers)
    def forget(self, replica: int, number: int) -> None:
        item = self.pick(number)
        if self.live(replica, item):
            self.forgets.setdefault(str(item), []).append(self.knows(replica, str(item)))
            items = self.stores[replica].items
            items.end([str(item)], how="forgotten", actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, number=numbers)
    def restore(self, replica: int, number: int) -> None:
        item = self.pick(number)
        if item is not None:
            items = self.stores[replica].items
            if items.restore([item], actor=NAMES[replica], now=self.now()):
                self.restored.add(item)

    @rule(
        replica=replicas,
        number=numbers,
        status=st.sampled_from(("active", "superseded", "quarantined")),
    )
    def judge(self, replica: int, number: int, status: Any) -> None:
        item = self.pick(number)
        if item is not None:
            items = self.stores[replica].items
            items.set_status([item], status, actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, one=numbers, other=numbers, add=st.booleans())
    def link(self, replica: int, one: int, other: int, add: bool) -> None:
        graph = self.stores[replica].graph
        ends = [self.pick(one), self.pick(other)]
        if None in ends or not all(self.live(replica, end) for end in ends):
            return
        made = Link(Node("item", str(ends[0])), Node("item", str(ends[1])), "related")
        if add:
            graph.add_links([made], now=self.now())
        else:
            graph.remove_links([made], actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, one=numbers, other=numbers, add=st.booleans())
    def relate(self, replica: int, one: int, other: int, add: bool) -> None:
        """Entities are linked by nobody's word but that of who does it."""
        graph = self.stores[replica].graph
        known = [entity.id for entity in graph.entities(limit=9)]
        if len(known) < 2:
            return
        ends = [Node("entity", known[number % len(known)]) for number in (one, other)]
        made = Link(ends[0], ends[1], "near", weight=(1 + one % 9) / 10)
        act = graph.add_links if add else graph.remove_links
        act([made], actor=NAMES[replica], now=self.now())

    @rule(replica=replicas, number=numbers)
    def use(self, replica: int, number: int) -> None:
        item = self.pick(number)
        if self.live(replica, item):
            self.stores[replica].activity.note_use([str(item)], self.now())

    @rule(replica=replicas, number=numbers)
    def erase(self, replica: int, number: int) -> None:
        item = self.pick(number)
        if item is not None and number % 5 == 0:
            self.erase_item(replica, item)

    def erase_item(self, replica: int, item: str) -> None:
        store = self.stores[replica]
        if store.items.erase([item], actor=NAMES[replica], now=self.now()).ids:
            self.erased.add(item)

    @rule(replica=replicas, one=numbers, other=numbers, split=st.booleans())
    def merge(self, replica: int, one: int, other: int, split: bool) -> None:
        graph = self.stores[replica].graph
        known = graph.entities(limit=9)
        if len(known) < 2:
            return
        kept, gone = known[one % len(known)].id, known[other % len(known)].id
        act = graph.split_entities if split else graph.merge_entities
        try:
            act(kept, gone, actor=NAMES[replica], now=self.now())
        except Exception as error:  # noqa: BLE001 - of entities that are merged already
            assert type(error).__name__ in ("Refused", "NotFound")  # noqa: PT017

    @rule(replica=replicas, number=numbers)
    def settle(self, replica: int, number: int) -> None:
        store = self.stores[replica]
        waiting = sorted(store.sync.conflicts())
        if waiting:
            item = waiting[number % len(waiting)]
            store.sync.set_conflict(item, None, now=self.now())

    def meet(self, one: int, other: int, limit: int = 1000, most: int = 1000) -> None:
        """A sync over a line that may break off: only some operations come across."""
        asks = iter(range(most))
        syncing = [self.syncing(one), self.syncing(other)]
        ceiling = self.ceiling if LOW in (one, other) else 3
        most_there = self.told if other == LOW else ceiling

        def ask(request: dict[str, Any]) -> dict[str, Any]:
            if next(asks, None) is None:
                raise BrokenOff
            told = peer.answer(json.loads(json.dumps(request)), syncing[1], ceiling=most_there)
            self.sent += [OpBatch(it["ranges"], it["ops"]) for it in (request, told)]
            return dict(json.loads(json.dumps(told)))

        with pytest.MonkeyPatch.context() as patch, suppress(BrokenOff):
            patch.setattr(peer, "PEER_OPS", limit)
            peer.exchange(syncing[0], ask, ceiling=ceiling, told=most_there)

    def syncing(self, replica: int) -> Syncing:
        store = self.stores[replica]

        def erase(ids: Sequence[str]) -> None:
            store.items.erase(ids, actor=NAMES[replica], now=self.now())

        return Syncing(store, erase=erase, now=self.now)

    @rule(
        source=st.integers(0, 3), to=st.integers(0, 3), limit=st.integers(1, 9),
        most=st.integers(1, 5),
    )  # fmt: skip
    def sync(self, source: int, to: int, limit: int, most: int) -> None:
        if source != to:
            self.meet(source, to, limit, most)

    @rule(
        one=replicas, other=st.integers(0, 3), number=numbers,
        levels=st.tuples(st.integers(0, 2), st.integers(0, 2)), forgets=st.booleans(),
    )  # fmt: skip
    def part(
        self, one: int, other: int, number: int, levels: tuple[int, int], forgets: bool
    ) -> None:
        """Two machines that know the same change one memory, each on its own."""
        if one != other:
            self.meet(one, other)
            self.edit(one, number, levels[0], "x")
            if forgets and other != LOW:
                self.forget(other, number)
            else:
                self.edit(other, number, levels[1], "y")

    @rule(source=replicas, to=replicas)
    def copy(self, source: int, to: int) -> None:
        """A machine becomes a copy of another, which has all that it had, and of a third one."""
        if source == to:
            return
        item = len(self.ids)
        self.remember(3 - source - to, 1)
        self.meet(3 - source - to, source)
        self.meet(source, to)
        for replica in (source, to):
            self.stores[replica].close()
        shutil.copy(self.paths[source], self.paths[to])
        for replica in (source, to):
            self.stores[replica] = SqliteStore.open(self.paths[replica], space="together")
        self.remember(source, 1)  # now both go on
        self.forget(to, item)

    @rule()
    def lower(self) -> None:
        """From now on the fourth machine is told less; an erase still reaches what it has."""
        if self.ceiling == LOW_CEILING:
            return
        self.remember(0, 2)
        self.meet(0, LOW)
        self.ceiling = LOW_CEILING
        store = self.stores[LOW]
        self.told_before = set(store.items.get(self.ids))
        for item in list(self.told_before):
            self.told_before |= {one.text for one in store.items.history(item)}
        for item, found in store.items.get(self.ids).items():
            if found.classification > LOW_CEILING:
                self.erase_item(0, item)

    @rule(to=replicas, number=numbers)
    def come_again(self, to: int, number: int) -> None:
        """Operations come twice, or before others of their series."""
        if self.sent:
            batch = self.sent[number % len(self.sent)]
            self.stores[to].sync.apply(batch, actor="sync", now=self.now())

    def converge(self) -> None:
        for _ in range(2):  # a copy may find only at the second that it is one
            for source, to in ((0, 1), (1, 2), (2, 0), (0, 1), (2, 3), (0, 3)):
                self.meet(source, to)
        full = self.stores[:LOW]
        digests = {store.sync.digest() for store in full}
        assert len(digests) == 1
        for store in full:
            assert [
                one
                for one in store.admin.check()
                if not one.ok and one.name not in ("superseded", "journal")
            ] == []
            self.compare(store)
        self.compare_low()
        before = [store.sync.vector() for store in self.stores]
        for store in self.stores:
            store.sync.capture(self.now())
        assert [store.sync.vector() for store in self.stores] == before  # nothing new is said

    def compare(self, store: Store) -> None:
        found = store.items.get(self.ids)
        conflicts = store.sync.conflicts()
        for item, texts in self.texts.items():
            if item in self.erased:
                assert item not in found
                continue
            kept = {one.text for one in store.items.history(item)}
            assert kept >= texts.keys()  # nothing that was acknowledged is lost
            corrected = {text for knew in texts.values() for text in knew}
            latest = texts.keys() - corrected
            assert found[item].text in latest, (item, texts)
            raised = self.raised[item]
            later = {text for _, knew in raised.values() for text in knew}
            levels = {level for text, (level, _) in raised.items() if text not in later}
            assert found[item].classification == max(levels), (item, raised)
            forgets = self.forgets.get(item, [])
            if any(all(text not in knew for knew in forgets) for text in texts):
                assert found[item].live_to is None, (item, texts, forgets)
            elif item not in self.restored | self.pinned and texts.keys() in forgets:
                assert found[item].live_to is not None, (item, texts, forgets)
            if len(latest) == 1 and item not in self.pinned:
                edited = [one for one in conflicts.get(item, ()) if one.kind == "edited"]
                assert not [one for one in edited if _text(store, item, one.rev) in latest]

    def compare_low(self) -> None:
        """What is above the ceiling is not recalled below it, and its text is not known there."""
        here = self.stores[0].items.get(self.ids)
        low = self.stores[LOW].items.get(self.ids)
        assert not self.erased & low.keys()
        for item, found in here.items():
            if found.classification > self.ceiling and item not in self.told_before:
                assert item not in low or low[item].live_to is not None, item
        secret = {text for text, level in self.levels.items() if level > self.ceiling}
        for item in low:
            told = {one.text for one in self.stores[LOW].items.history(item)}
            assert not told & secret - self.told_before


def _text(store: Store, item: str, rev: int) -> str:
    rows: Sequence[Any] = store.items.history(item)
    return str(rows[rev - 1].text)


TestSync = SyncMachine.TestCase
TestSync.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
)


@pytest.mark.parametrize(
    ("ceiling", "steps"),
    [
        (1, (("copy", 0, 1), ("edit", 0, 0, 0, "x"), ("copy", 0, 2))),
        (2, (("lower",), ("copy", 2, 0), ("edit", 2, 74, 0, "x"), ("copy", 0, 2))),
        (1, (("copy", 0, 1), ("edit", 0, 0, 0, "x"), ("edit", 0, 0, 2, "y"), ("copy", 0, 2))),
    ],
)
def test_a_copy_that_goes_on_by_another_name_still_knows_what_it_knew(
    ceiling: int, steps: Sequence[Sequence[Any]]
) -> None:
    """A classification that was lowered before the name changed stays lowered everywhere."""
    machine = SyncMachine()
    machine.begin(ceiling)
    for name, *values in steps:
        getattr(machine, name)(*values)
    machine.teardown()
