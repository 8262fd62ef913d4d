"""Nothing above a ceiling is seen, inferred or changed below it.

Two worlds differ only in what is above the ceiling. Every operation of every surface gives
the same bytes in both, and what is above stays as it was.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import httpx
import pytest

from bethink import Memory
from bethink.access.webhooks import JournalReader, event_json
from bethink.config.settings import Settings
from bethink.core import ids
from bethink.errors import BethinkError, Refused
from bethink.model import Draft
from bethink.models.update_model import update_model
from bethink.ports import PairVerdict
from bethink.render.wire import dumps
from bethink.server.mcp.manifest import PROMPTS, RESOURCES, TEMPLATES
from bethink.server.rest.routes import PLAIN_ROUTES, TOOL_ROUTES
from bethink.server.tools import TOOLS
from bethink.server.tools.functions import Functions
from bethink.testing import FixedClock
from server_app import Callers, make_guard, make_test_app, mcp, talk
from thorough import share

CEILING = 2
START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
PEOPLE = ("Alice Meyer", "Bob Tanaka", "Carol Okafor", "Dmitri Petrov")
THINGS = ("billing service", "Heron audit", "staging cluster", "Osprey release")
PLACES = ("dock nine", "room 12", "the Lisbon office", "vault B")
SECRET_WORDS = ("zebracanary", "quillfeather", "nightjar")
FORMS = (
    "{person} runs the {thing} from {place}",
    "The {thing} begins on {day} June 2026",
    "{person} prefers tea in {place}",
    "{person} moved the {thing} to {place} because the lease ended",
    "The owner of the {thing} is {person}",
    "{person} owns the {thing} in {place}",
)
QUERIES = (
    "Alice Meyer",
    "when does the Heron audit begin?",
    "who owns the staging cluster?",
    "zebracanary",
    "zebracanery nightjr",
    "quillf",
    "what happened in June 2026 at dock nine",
)
PROFILES = ("default", "abmind", "linksee", "memind-simple", "remind", "siftcoder")
HELD = "Carol Okafor may sell the nightjar"  # it waits above the ceiling
HIDDEN = "zebra-waits"  # how its id begins
_DURATION = re.compile(r'"(?:milliseconds|seconds)": ?[\d.]+|\d+\.\d+ ms')
# A digest of what is quoted, durations included: it may consist of digits only.
_FENCE_CODE = re.compile(r"<<end ([0-9a-f]{16})>>")


class World:
    """One store with an owner and a caller who may see up to the ceiling."""

    def __init__(
        self, *, secrets: bool, seed: int, data_dir: Path | None = None, neighbour: bool = False
    ) -> None:
        ids.make_id._last = 0
        self.has_secrets = secrets
        self.clock = FixedClock(START)
        settings = replace(Settings(), max_classification=CEILING, actor="owner")
        embedder = "hash" if seed % 2 else "none"
        if data_dir is None:
            self.owner = Memory.open(
                ":memory:", clock=self.clock, settings=settings, embedder=embedder
            )
        else:
            settings = replace(settings, data_dir=data_dir)
            if neighbour:
                _fill_another_space(settings, self.clock)
            self.owner = Memory.open(
                "memory", clock=self.clock, settings=settings, embedder=embedder
            )
        self.low = self.owner.below(CEILING)
        self.public: list[str] = []
        self.said: set[str] = set()
        self.secret: list[str] = []
        self.waiting: list[str] = []
        self._tell(random.Random(seed))

    def step(self) -> None:
        """Begin the next second; what is above the ceiling happens between two."""
        self.clock.now = self.clock.now.replace(microsecond=0) + timedelta(seconds=1)

    def _tell(self, chance: random.Random) -> None:
        for number in range(24):
            self.step()
            self.public.append(self._remember_public(chance, number).id)
            plan = [chance.random() for _ in range(6)]
            text = _sentence(chance)
            if self.has_secrets:
                self.clock.now += timedelta(milliseconds=500)
                if number % 4 == 1:  # what is above repeats what is known below
                    text = f"{self.owner.get(self.public[-1]).text} for good"
                self._keep_secret(plan, text, number)
        self.step()
        self.owner.forget(self.public[20], erase=True)
        left = self.owner.store.items.get(self.secret)  # what was derived from it went along
        self.secret = [one for one in self.secret if one in left]
        self.owner.forget(self.public[21])
        self.owner.link(self.public[0], "implies", self.public[1])
        self.owner.put_thread("Audits", self.public[:3], id="audits")
        self.owner.note_edits([_edit("src/app.py", "split the billing module in two")])
        self.owner.update(self.public[2], text="Carol Okafor prefers coffee in room 12")
        self.owner.forget(self.public[4])
        for number in range(5):
            self.step()
            draft = Draft(f"Bob Tanaka may lease room {number}", source_class="agent")
            self.waiting.append(self.owner.propose(draft, reason="unsure").id)
        self.low.recall("Heron audit", track=True)
        if self.has_secrets:
            self._tie_secrets()

    def _remember_public(self, chance: random.Random, number: int) -> Any:
        more: dict[str, Any] = {"classification": chance.choice((0, 1, 1, 2))}
        if number % 3 == 0:
            more |= {"session": "talk", "speaker": "Ana"}
        if number % 5 == 0:
            more |= {"key": f"key-{number}", "tags": ["shared"], "topic": "work"}
            more |= {"anchors": ["src/app.py::split"]}
        if number % 7 == 6:
            more |= {"derives_from": (self.public[0],)}
        text = _sentence(chance)
        while text in self.said:  # another one: the same would be the same memory
            text = _sentence(chance)
        self.said.add(text)
        return self.owner.remember(text, **more)

    def _keep_secret(self, plan: list[float], text: str, number: int) -> None:
        """Something above the ceiling that touches as much below it as it can."""
        word = SECRET_WORDS[number % 3]
        more: dict[str, Any] = {"classification": 3}
        if plan[0] < 0.4:
            more |= {"session": "talk", "speaker": f"Spy {word}"}
        if plan[1] < 0.4:
            more |= {"key": f"guess-{number}", "kind": f"{word}kind"}
        if plan[2] < 0.4:
            more |= {"derives_from": (self.public[-1],), "entities": [f"Operation {word}"]}
            more |= {"anchors": ["src/app.py::split", f"src/{word}.py"]}
        said = text if plan[3] < 0.5 else f"{text}, said the {word} informant"
        if plan[4] > 0.8:  # what is below is newer, and may update it
            more |= {"occurred_at": START - timedelta(days=1)}
        if plan[4] < 0.2:
            said = said.replace("Alice Meyer", "ALICE MEYER")
        made = self.owner.remember(said, **more)
        if made.status != "stored":
            return  # a public memory says the same
        self.secret.append(made.id)
        if plan[5] < 0.2:
            self.owner.update(made.id, text=f"{said} again")
        elif plan[5] < 0.3:
            self.owner.forget(made.id)
        elif plan[5] < 0.4:
            self.owner.forget(made.id, erase=True)
            self.secret.pop()

    def _tie_secrets(self) -> None:
        self.clock.now += timedelta(milliseconds=500)
        kept = [one for one in self.secret if self.owner.stored(one).live_to is None]
        first, second = kept[:2]
        self.owner.link(self.public[0], "implies", first)
        self.owner.link(second, "contradicts", self.public[1])
        self.owner.put_thread("Zebracanary plans", [first, second], id="secret-thread")
        edit = _edit("src/zebracanary.py", "hide the nightjar route for good")
        self.owner.note_edits([{**edit, "item": first}])
        again = _edit("src/app.py", "rename the billing module quietly")
        self.owner.note_edits([{**again, "item": first}])
        self.owner.recall("zebracanary", track=True, max_classification=3, ids=tuple(kept))
        high = replace(self.owner.settings, max_classification=3)
        self.owner.using(settings=high).save_question("where is the zebracanary?", wrong=[first])
        for text, waits in ((HELD, True), ("Bob Tanaka may lease the vault", False)):
            draft = Draft(text, id=f"{HIDDEN}-{waits}", classification=3, source_class="agent")
            self.secret.append(self.owner.propose(draft, reason="unsure", waits=waits).id)

    def above(self) -> str:
        """All that is above the ceiling, as the owner sees it."""
        items = self.owner.store.items.get(self.secret).values()
        told = [(item.id, item.rev, item.text, item.status, item.live_to) for item in items]
        return dumps(sorted([str(part) for part in one] for one in told))


def _fill_another_space(settings: Settings, clock: FixedClock) -> None:
    """A neighbour with the same names, the same keys and much else."""
    with Memory.open("another", clock=clock, settings=settings, embedder="none") as other:
        for number in range(12):
            text = f"Alice Meyer keeps quillfeather {number} in vault B"
            other.remember(text, key=f"key-{number}", session="talk", topic="nightjar")
        other.put_thread("Zebracanary", [other.browse(limit=1)[0].id], id="audits")
    ids.make_id._last = 0


def _sentence(chance: random.Random) -> str:
    return chance.choice(FORMS).format(
        person=chance.choice(PEOPLE),
        thing=chance.choice(THINGS),
        place=chance.choice(PLACES),
        day=chance.randrange(1, 29),
    )


def _edit(path: str, intent: str) -> dict[str, Any]:
    return {"path": path, "operation": "edit", "intent": intent, "at": START.isoformat()}


@pytest.fixture(autouse=True)
def _same_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "_random", lambda _: 1)


@pytest.fixture(autouse=True)
def _any_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two texts the same is judged in both worlds, and updates are as likely as not."""

    def judge(pairs: Sequence[tuple[str, str]]) -> list[PairVerdict]:
        sure = [crc32("\n".join(pair).encode()) % 1000 / 1000 for pair in pairs]
        return [PairVerdict(one, 0.0, 1.0 - one, 0.0) for one in sure]

    monkeypatch.setattr(update_model, "judge", judge)


Ask = Callable[[World], Any]


def transcript(world: World, ask: Ask) -> str:
    """What an operation gives, as text: its answer, or the error in its own words."""
    world.step()
    try:
        told = ask(world)
        if isinstance(told, Iterator):
            told = list(told)
    except BethinkError as error:
        told = f"{type(error).__name__}: {error.message} | {error.remedy}"
    return _without_timing(told if isinstance(told, str) else repr(told))


def _without_timing(told: str) -> str:
    """A transcript without durations and what depends on them."""
    for code in set(_FENCE_CODE.findall(told)):
        told = told.replace(code, "")
    return _DURATION.sub("", told)


def _without_times(answer: Any) -> Any:
    steps = tuple(step._replace(seconds=0.0) for step in answer.steps)
    return replace(answer, steps=steps, run=None)


def python_operations(one_of: int = 1) -> dict[str, list[Ask]]:
    """Each public method of a memory with the calls that are tried.

    Every query is asked by every profile, or, where that takes long, one of so many pairs.
    """

    def public(number: int) -> Callable[[World], str]:
        return lambda world: world.public[number]

    first, sixth = public(0), public(5)
    pairs = list(product(QUERIES, PROFILES))
    recalls: list[Ask] = [
        lambda w, q=query, p=profile: _without_times(w.low.recall(q, profile=p, k=30))
        for query, profile in share(pairs, 0, of=one_of)
    ]
    recalls += [
        lambda w: _without_times(w.low.recall("Heron", max_classification=3)),
        lambda w: _without_times(w.low.recall("Heron", as_of=START + timedelta(seconds=12))),
        lambda w: _without_times(w.low.recall("", entity="Alice Meyer")),
        lambda w: _without_times(w.low.recall("who owns it?", deep=True)),
        lambda w: _without_times(w.low.recall("audit", track=True)),
    ]
    texts = ("The Heron audit begins on 30 June 2026", "ALICE MEYER runs the vault")
    return {
        "recall": recalls,
        "recall_text": [lambda w: w.low.recall_text("Heron audit", profile="abmind")],
        "explain": [lambda w: w.low.explain("Heron audit", first(w))],
        "why_not": [
            lambda w, q=q: w.low.why_not(sixth(w), q) for q in share(QUERIES, 0, of=one_of)
        ],
        "compare": [
            lambda w: [
                _without_times(one)
                for one in w.low.compare("audit", ["default", "abmind"]).values()
            ]
        ],
        "get": [lambda w: w.low.get(first(w)), lambda w: w.low.get(first(w)[:5])],
        "stored": [lambda w: w.low.stored(first(w)), lambda w: w.low.stored("zzzz")],
        "browse": [lambda w: w.low.browse(limit=200), lambda w: w.low.browse(session="talk"),
                   lambda w: w.low.browse(max_classification=3, limit=200)],
        "entities": [lambda w: w.low.entities(limit=200, min_memories=0),
                     lambda w: w.low.entities(prefix="oper"), lambda w: w.low.entities(prefix="a")],
        "timeline": [lambda w, n=n: w.low.timeline(w.public[n], window=50) for n in range(6)],
        "why": [lambda w: w.low.why(w.public[6])],
        "history": [lambda w: w.low.history(w.public[2])],
        "events": [lambda w: w.low.events(limit=500), lambda w: w.low.events(after=3, limit=5)],
        "thread": [lambda w: w.low.thread("audits"), lambda w: w.low.thread("secret-thread")],
        "threads": [lambda w: w.low.threads()],
        "insights": [lambda w: w.low.insights()],
        "links": [lambda w: w.low.links(first(w)), lambda w: w.low.links("person:alice meyer"),
                  lambda w: w.low.links(w.public[1])],
        "recall_file": [lambda w: w.low.recall_file("src")],
        "anchored": [lambda w: w.low.anchored("src", symbol="split", limit=100),
                     lambda w: w.low.anchored("src/zebracanary.py")],
        "file_memories": [lambda w: w.low.file_memories("src", [*w.public[:2], *w.secret[:4]])],
        "code_states": [lambda w: w.low.code_states(*w.low.anchored("src"))],
        "stale": [lambda w: w.low.stale(changes=("changed", "gone", "unknown")),
                  lambda w: w.low.stale(at="zebracanary", changes=("unknown",))],
        "stats": [lambda w: w.low.stats()],
        "export": [lambda w: w.low.export()],
        "maintenance": [lambda w: w.low.maintenance()],
        "remember": [
            *(lambda w, t=t: w.low.remember(t) for t in texts),
            *(lambda w, n=n: w.low.remember(f"note {n}", key=f"guess-{n}") for n in range(6)),
            lambda w: w.low.remember("a turn of the talk", session="talk"),
            lambda w: w.low.remember("Bob Tanaka, said the zebracanary informant", classification=3),
        ],
        "remember_many": [lambda w: w.low.remember_many(list(texts))],
        "remember_each": [
            lambda w: w.low.remember_each([Draft("The Osprey release begins on 1 June")])
        ],
        "update": [lambda w: w.low.update(first(w), text="Alice Meyer runs the quillfeather desk")],
        "boost": [lambda w: w.low.boost(first(w))],
        "demote": [lambda w: w.low.demote(first(w))],
        "note_edits": [
            lambda w: w.low.note_edits([_edit("src/app.py", "rename the billing module quietly")]),
            lambda w: w.low.recall_file("src"),
        ],
        "put_thread": [lambda w: w.low.put_thread("New", [first(w)], id="new")],
        "link": [lambda w: w.low.link(w.public[7], "supersedes", w.public[8])],
        "unlink": [lambda w: w.low.unlink(w.public[7], "supersedes", w.public[8])],
        "merge_entities": [lambda w: w.low.merge_entities("Alice Meyer", "Bob Tanaka")],
        "split_entities": [lambda w: w.low.split_entities("person:alice meyer", "bob tanaka")],
        "save_question": [lambda w: w.low.save_question("who?", relevant=[first(w)])],
        "questions": [lambda w: w.low.questions()],
        "drop_question": [lambda w: w.low.drop_question("who?")],
        "inbox": [lambda w: w.low.inbox(), lambda w: w.low.inbox(refused=True),
                  lambda w: w.low.inbox(source="agent")],
        "propose": [lambda w: w.low.propose(Draft(HELD), reason="unsure")],
        "accept": [lambda w: w.low.accept(w.waiting[0], text="Bob Tanaka leases room 0"),
                   lambda w: w.low.accept(HIDDEN)],
        "merge": [lambda w: w.low.merge(*w.waiting[1:3])],
        "refuse": [lambda w: w.low.refuse(w.waiting[3]), lambda w: w.low.inbox(refused=True)],
        "maintain": [lambda w: _report(w.low.maintain(preview=True, share=0.5)),
                     lambda w: _report(w.low.maintain(share=0.5))],
        "build_insights": [lambda w: w.low.build_insights()],
        "maintain_due": [lambda w: w.low.maintain_due()],
        "extract": [lambda w: w.low.extract()],
        "undo": [lambda w: w.low.undo(first(w), preview=True), lambda w: w.low.undo()],
        "restore": [lambda w: w.low.restore(w.public[4])],
        "withdraw": [lambda w: w.low.withdraw(dict.fromkeys((*w.public[9:10], *w.secret), 1))],
        "forget": [lambda w: w.low.forget(w.public[10]),
                   lambda w: w.low.forget(first(w), erase=True, preview=True),
                   lambda w: w.low.forget(first(w), erase=True)],
        "reindex": [lambda w: w.low.reindex()],
        "make_missing": [lambda w: w.low.make_missing()],
        "import_": [lambda w: w.low.import_(_exported()), lambda w: w.low.threads(),
                    lambda w: w.low.recall_file("src"), lambda w: w.low.stats(),
                    lambda w: w.low.events(limit=500), lambda w: w.low.export()],
    }  # fmt: skip


@cache
def _exported() -> tuple[dict[str, Any], ...]:
    """What another space holds, under the keys and names that secrets have here."""
    clock = FixedClock(START - timedelta(days=1))
    with Memory.open(":memory:", clock=clock, embedder="none") as other:
        said = [other.remember(f"Alice Meyer, copy {n}", key=f"guess-{n}").id for n in range(6)]
        other.put_thread("Copies", said[:2], id="secret-thread")
        other.note_edits([_edit("src/zebracanary.py", "hide the nightjar route for good")])
        other.forget(said[5], erase=True)
        return tuple(other.export())


def _report(report: Any) -> Any:
    done = [(one.job, one.proposal.why, one.proposal.text) for one in report.done]
    left = [(one.job, one.why, one.hindrance) for one in report.left]
    steps = [(one.job.name, one.proposal.why, one.proposal.leaving) for one in report.plan.steps]
    return done, left, steps


# Not for a caller with a ceiling: what opens, what belongs to the owner, and plain values.
_OTHERS = frozenset({
    "open", "using", "below", "seen_by", "close", "store", "embedder", "reranker", "llm", "settings", "now",
    "profile", "profiles", "notes", "allowed_roots", "read_smart", "forget_file", "revoke",
    "undo_run", "doctor", "carry_out", "session",
    "conflicts", "sync_status", "sync_with", "answer_sync", "retire_machine", "settle",
})  # fmt: skip


def test_every_method_of_a_memory_is_compared() -> None:
    """A method that is added must be compared, or be named as one of the owner's."""
    methods = {name for name in dir(Memory) if not name.startswith("_")}
    assert methods == python_operations().keys() | (_OTHERS & methods)


@pytest.mark.parametrize("seed", range(2))
def test_twin_worlds_answer_alike_in_python(seed: int) -> None:
    """What is above the ceiling changes no answer below it, nor is it changed from there."""
    plain, full = World(secrets=False, seed=seed), World(secrets=True, seed=seed)
    before = full.above()
    assert full.secret
    for name, asked in python_operations().items():
        for number, ask in enumerate(asked):
            told = [_told_alike(world, ask) for world in (plain, full)]
            assert told[0] == told[1], (name, number, _difference(*told))
            assert not any(word in told[1] for word in full.secret), name
    assert full.above() == before


def test_a_check_below_the_ceiling_is_right_and_tells_nothing() -> None:
    """It is of the whole store; what is wrong with a secret is not said, nor repaired."""
    full = World(secrets=True, seed=1)
    assert all(one.ok for one in full.low.doctor())
    with full.owner.store.items._connections.write_transaction() as db:
        db.execute("UPDATE item SET text = 'rotten' WHERE id = ?", (full.secret[0],))
    told = [one for one in full.low.doctor() if not one.ok]

    assert "content" in {one.name for one in told}
    assert full.secret[0] not in str(told)
    with pytest.raises(Refused):
        full.low.doctor(repair=True)


def test_a_secret_whose_classification_is_damaged_is_not_exported_below() -> None:
    """Its bytes are for those who may see everything; others learn that a row is damaged."""
    full = World(secrets=True, seed=1)
    with full.owner.store.items._connections.write_transaction() as db:
        db.execute("UPDATE item SET classification = 1 WHERE id = ?", (full.secret[0],))
    records = full.owner.store.admin.dump()
    told = next(one for one in records if one["type"] == "damaged")["columns"]["text"]
    below = list(full.low.export())

    assert {"type": "damaged", "of": "item", "columns": {}} in below
    assert told not in dumps(below)


def _told_alike(world: World, ask: Ask) -> str:
    """Ask with ids that only the time decides."""
    ids.make_id._last = 0
    return transcript(world, ask)


def _difference(one: str, other: str) -> str:
    at = next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1),
        min(len(one), len(other)),
    )
    return f"...{one[max(0, at - 300) : at + 100]}\n\n...{other[max(0, at - 300) : at + 100]}"


# Calls of each tool; N stands for the id of the public memory with that number.
CALLS: dict[str, list[dict[str, Any]]] = {
    "recall": [{"query": query, "k": 30} for query in QUERIES]
    + [{"query": "audit", "mark_accessed": True}, {"query": "audit", "profile": "linksee"}],
    "explain": [{"query": query} for query in QUERIES]
    + [{"id": 0}, {"id": 6}, {"query": "Heron audit", "id": 5}, {"id": "6eav"}],
    "inspect": [{"query": query, "k": 30, "candidates": 200} for query in QUERIES]
    + [{"query": "Heron audit", "id": 5}],
    "usage": [{"id": 1}],
    "profiles": [{}],
    "graph": [{"node": 0, "depth": 4, "limit": 300}, {"node": "person:alice meyer"}],
    "times": [{}, {"session": "talk"}],
    "maintenance": [{}],
    "save_question": [{"query": "who owns the audit?", "relevant": [1], "wrong": [3]}],
    "questions": [{}],
    "conflicts": [{}],
    "settle": [{"id": 1, "keep": "current"}],
    "inbox": [{}, {"refused": True}, {"source": "agent", "offset": 1}],
    "review": [{"ids": [0], "decision": "accept"}, {"ids": [1, 2], "decision": "merge"},
               {"ids": [3], "decision": "refuse"}, {"ids": [HIDDEN], "decision": "accept"}],
    "sync_status": [{}],
    "list_entities": [{"limit": 200}, {"prefix": "oper"}, {"min_memories": 0}],
    "recall_file": [{"path": "src"}, {"path": "zebra"}],
    "history": [{"id": 2}],
    "timeline": [{"id": 3, "window": 50}],
    "threads": [{}, {"id": "audits"}, {"id": "secret-thread"}],
    "insights": [{}],
    "get_memory": [{"id": 1}],
    "list_memories": [{"limit": 500}, {"session": "talk"}, {"kind": "zebracanarykind"}],
    "links": [{"id": 0}, {"id": 1}],
    "stats": [{}],
    "events": [{"limit": 500}, {"after": 3}],
    "note_edit": [{"path": "src/app.py", "intent": "rename the billing module quietly",
                   "at": START.isoformat()}],
    "read_smart": [{"path": "missing.txt"}],
    "remember": [
        {"text": "The Heron audit begins on 30 June 2026"},
        {"text": "Bob Tanaka moved the Osprey release to vault B", "key": "guess-1"},
        {"text": "Something else", "key": "guess-2"},
        {"text": "The next turn", "session": "talk"},
    ],
    "remember_many": [{"memories": [{"text": "Dmitri Petrov prefers tea in dock nine"}]}],
    "put_values": [{"values": [{"namespace": ["a"], "key": "k", "value": {"text": "Tea in vault B"}}]}],
    "find_values": [
        {"get": [{"namespace": ["a"], "key": "k"}], "search": [{"namespace": [], "query": "tea"}],
         "namespaces": [{}]},
        {"search": [{"namespace": [], "query": "zebracanary", "limit": 50}]},
    ],
    "update_memory": [{"id": 0, "text": "Alice Meyer runs the nightjar desk"}],
    "link": [{"id": 7, "relation": "implies", "other": 8}],
    "consolidate": [{}],
    "undo": [{"id": 0, "preview": True}, {}],
    "restore": [{"ids": [4]}],
    "forget": [{"ids": [10]}, {"sweep": True}, {"ids": [0], "erase": True}],
}  # fmt: skip


def _with_ids(told: dict[str, Any], world: World) -> dict[str, Any]:
    def named(name: str, value: Any) -> Any:
        if name in ("id", "other", "node") and isinstance(value, int):
            return world.public[value]
        if name in ("ids", "relevant", "wrong"):
            known = world.waiting if "decision" in told else world.public
            return [known[one] if isinstance(one, int) else one for one in value]
        return value

    return {name: named(name, value) for name, value in told.items()}


def _by_routes(world: World) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every route with every call of its tool: method, path and what httpx is told."""
    for route in TOOL_ROUTES:
        for call in CALLS[route.tool.name]:
            told = _with_ids(call, world)
            path = route.path
            for name in route.path_params:
                path = path.replace(f"{{{name}}}", str(told.pop(name, "nothing")))
            short = {name: brief for brief, name in route.aliases.items()}
            told |= {name: "Heron" for name in route.required if name not in told}
            if route.method == "GET":
                yield "GET", path, {"params": {short.get(k, k): v for k, v in told.items()}}
            else:
                yield route.method, path, {"json": told}


def test_every_tool_is_compared() -> None:
    """A tool or route that is added must be compared as well."""
    assert {route.tool.name for route in TOOL_ROUTES} | set(TOOLS) == CALLS.keys()


def _in_both(conversation: Any, seed: int, folder: Path) -> tuple[list[str], list[str], World]:
    told: list[list[str]] = []
    for secrets in (False, True):
        world = World(secrets=secrets, seed=seed)
        before = world.above()
        callers = Callers(folder / f"{secrets}")
        heard: list[str] = []

        async def run(
            client: httpx.AsyncClient,
            world: World = world,
            heard: list[str] = heard,
            callers: Callers = callers,
        ) -> None:
            await conversation(client, world, heard, callers.headers["admin"])

        talk(make_test_app(world.owner, make_guard(callers)), run)
        assert world.above() == before
        told.append([_without_timing(one) for one in heard])
    return told[0], told[1], world


def _compare(plain: list[str], full: list[str], world: World) -> None:
    assert len(plain) == len(full)
    for one, other in zip(plain, full, strict=True):
        assert one == other, _difference(one, other)
        assert not any(secret in other for secret in world.secret)


async def talk_over_rest(
    client: httpx.AsyncClient, world: World, heard: list[str], headers: dict[str, str]
) -> None:
    """Ask by every route."""
    for method, path, told in _by_routes(world):
        world.step()
        ids.make_id._last = 0
        answer = await client.request(method, path, headers=headers, **told)
        assert answer.status_code < 500, answer.text
        heard.append(f"{method} {path} {answer.status_code} {answer.text}")
    for route in PLAIN_ROUTES:
        if route.method == "GET" and route.operation == "watch":
            reader = JournalReader("0-e3b0c44298fc1c14")  # a stream does not end
            heard += [str(event_json(one)) for one in reader.read(world.low.store) or ()]
        elif route.method == "GET" and route.operation != "metrics":
            answer = await client.get(route.path, headers=headers)
            heard.append(f"{route.path} {answer.status_code} {answer.text}")


@pytest.mark.parametrize("seed", [4, 5])
def test_twin_worlds_answer_alike_over_rest(seed: int, tmp_path: Path) -> None:
    """Every route gives the same bytes whatever is stored above the ceiling."""
    _compare(*_in_both(talk_over_rest, seed, tmp_path))


async def talk_over_mcp(
    client: httpx.AsyncClient, world: World, heard: list[str], headers: dict[str, str]
) -> None:
    """Ask by every tool, resource and prompt."""

    async def ask(method: str, params: dict[str, Any]) -> None:
        world.step()
        ids.make_id._last = 0
        answer = await mcp(client, method, params, headers)
        assert answer.status_code < 500, answer.text
        heard.append(f"{method} {params} {answer.status_code} {answer.text}")

    await ask("tools/list", {})
    for name in TOOLS:
        for call in CALLS[name]:
            await ask("tools/call", {"name": name, "arguments": _with_ids(call, world)})
    for resource in RESOURCES:
        await ask("resources/read", {"uri": resource["uri"]})
    for template in TEMPLATES:
        uri = template["uriTemplate"]
        for name in ("Alice%20Meyer", "Operation%20zebracanary"):
            await ask("resources/read", {"uri": uri.replace("{name}", name)})
        await ask("resources/read", {"uri": uri.replace("{id}", world.public[5])})
    for prompt in PROMPTS:
        await ask("prompts/get", {"name": prompt, "arguments": {}})


@pytest.mark.parametrize("seed", [7])
def test_twin_worlds_answer_alike_over_mcp(seed: int, tmp_path: Path) -> None:
    """Every tool, resource and prompt gives the same bytes whatever is above the ceiling."""
    _compare(*_in_both(talk_over_mcp, seed, tmp_path))


@pytest.mark.parametrize("seed", [8])
def test_twin_worlds_answer_alike_by_function_calls(seed: int) -> None:
    """A model that calls functions in the same process learns nothing from above either."""
    worlds = World(secrets=False, seed=seed), World(secrets=True, seed=seed)
    functions = [Functions(world.owner, tuple(TOOLS)) for world in worlds]
    for name in TOOLS:
        for call in CALLS[name]:
            told = [
                _told_alike(world, lambda w, f=f, n=name, c=call: f.call(n, _with_ids(c, w)))
                for world, f in zip(worlds, functions, strict=True)
            ]
            assert told[0] == told[1], (name, _difference(*told))


def test_a_space_tells_nothing_of_another(tmp_path: Path) -> None:
    """What other spaces of the same user hold changes no answer of this one."""
    worlds = [
        World(secrets=False, seed=3, data_dir=tmp_path / f"{neighbour}", neighbour=neighbour)
        for neighbour in (False, True)
    ]
    for name, asked in python_operations().items():
        for number, ask in enumerate(asked):
            told = [_told_alike(world, ask) for world in worlds]
            told = [one.replace(str(tmp_path / "True"), str(tmp_path / "False")) for one in told]
            assert told[0] == told[1], (name, number, _difference(*told))
    for world in worlds:
        world.owner.close()
