"""`AsyncMemory`: what `Memory` does, for asyncio; shared by tasks, cancelled cleanly."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from typing import Any

import pydantic
import pytest

from bethink import AsyncMemory, Entity, Item, Memory, Recall, Refused, Remembered, Thread
from bethink.access.people import Directory
from bethink.errors import BethinkError, NotFound, StoreError
from bethink.model import Draft
from bethink.render.wire import item_json, recall_json
from bethink.retrieval.answer_text import render_text
from bethink.testing import FixedClock
from corpus import NOTES, NOW
from rows import each_row

METHODS = [
    name
    for name, member in inspect.getmembers(Memory, inspect.isfunction)
    if not name.startswith("_")
]
NOT_AWAITED = {"using", "below", "seen_by", "export", "close"}
KEY = "The deploy key lives in vault B"
TENANT = ContextVar("TENANT", default="none")


def run(work: Callable[[AsyncMemory], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """The result of a coroutine with a memory of words alone."""

    async def main() -> Any:
        async with AsyncMemory.open(":memory:", embedder="none", **options) as memory:
            return await work(memory)

    return asyncio.run(main())


# How each method is called, with the ids of two memories.
CALLS: dict[str, Callable[[Any, str, str], Any]] = {
    "allowed_roots": lambda m, a, b: m.allowed_roots(),
    "answer_sync": lambda m, a, b: m.answer_sync({"vector": 1}),
    "boost": lambda m, a, b: m.boost(a, 2.0),
    "browse": lambda m, a, b: m.browse(limit=3, topic="keys"),
    "build_insights": lambda m, a, b: m.build_insights(),
    "accept": lambda m, a, b: m.accept(),
    "inbox": lambda m, a, b: m.inbox(),
    "merge": lambda m, a, b: m.merge(),
    "refuse": lambda m, a, b: m.refuse(),
    "propose": lambda m, a, b: m.propose(Draft(KEY), reason="why"),
    "carry_out": lambda m, a, b: m.carry_out("no plan"),
    "compare": lambda m, a, b: m.compare("deploy key", ["default", "remind"]),
    "conflicts": lambda m, a, b: m.conflicts(),
    "demote": lambda m, a, b: m.demote(a),
    "doctor": lambda m, a, b: m.doctor(),
    "anchored": lambda m, a, b: m.anchored("app.py"),
    "code_states": lambda m, a, b: m.code_states(),
    "drop_question": lambda m, a, b: m.drop_question("never asked"),
    "entities": lambda m, a, b: m.entities(),
    "events": lambda m, a, b: m.events(),
    "explain": lambda m, a, b: m.explain("deploy key", a),
    "extract": lambda m, a, b: m.extract(a),
    "file_memories": lambda m, a, b: m.file_memories("app.py"),
    "forget": lambda m, a, b: m.forget(a, b),
    "forget_file": lambda m, a, b: m.forget_file("app.py"),
    "get": lambda m, a, b: m.get(a),
    "history": lambda m, a, b: m.history(a),
    "import_": lambda m, a, b: m.import_([]),
    "insights": lambda m, a, b: m.insights(),
    "link": lambda m, a, b: m.link(a, "causes", b),
    "links": lambda m, a, b: m.links(a),
    "maintain": lambda m, a, b: m.maintain("no such job"),
    "maintain_due": lambda m, a, b: m.maintain_due(),
    "maintenance": lambda m, a, b: m.maintenance(),
    "make_missing": lambda m, a, b: m.make_missing(),
    "merge_entities": lambda m, a, b: m.merge_entities("person:ana", "person:ben"),
    "note_edits": lambda m, a, b: m.note_edits([{"path": "app.py", "operation": "edit"}]),
    "profile": lambda m, a, b: m.profile("remind"),
    "profiles": lambda m, a, b: m.profiles(),
    "put_thread": lambda m, a, b: m.put_thread("Keys", [a, b], id="t1"),
    "questions": lambda m, a, b: m.questions(),
    "read_smart": lambda m, a, b: m.read_smart("/nowhere/at/all"),
    "recall": lambda m, a, b: m.recall("deploy key", k=3, kind="fact"),
    "recall_file": lambda m, a, b: m.recall_file("app.py"),
    "recall_text": lambda m, a, b: m.recall_text("deploy key", profile="remind"),
    "reindex": lambda m, a, b: m.reindex(),
    "remember": lambda m, a, b: m.remember(KEY, user="ana"),
    "remember_each": lambda m, a, b: m.remember_each([KEY, {"text": KEY, "kind": 5}]),
    "remember_many": lambda m, a, b: m.remember_many([KEY, KEY]),
    "restore": lambda m, a, b: m.restore(a),
    "retire_machine": lambda m, a, b: m.retire_machine("/nowhere/at/all", "x"),
    "revoke": lambda m, a, b: m.revoke("nobody"),
    "save_question": lambda m, a, b: m.save_question("where?", relevant=[a], wrong=[b]),
    "settle": lambda m, a, b: m.settle(a),
    "split_entities": lambda m, a, b: m.split_entities("person:ana", "person:ben"),
    "stale": lambda m, a, b: m.stale(),
    "stats": lambda m, a, b: m.stats(),
    "stored": lambda m, a, b: m.stored("no such id"),
    "sync_status": lambda m, a, b: m.sync_status(),
    "sync_with": lambda m, a, b: m.sync_with("/nowhere/at/all"),
    "thread": lambda m, a, b: m.thread("no such thread"),
    "threads": lambda m, a, b: m.threads(),
    "timeline": lambda m, a, b: m.timeline(a),
    "undo": lambda m, a, b: m.undo(preview=True),
    "undo_run": lambda m, a, b: m.undo_run("no such run"),
    "unlink": lambda m, a, b: m.unlink(a, "causes", b),
    "update": lambda m, a, b: m.update(a, text="The deploy key lives in vault C"),
    "why": lambda m, a, b: m.why(a),
    "why_not": lambda m, a, b: m.why_not(b, "deploy key"),
    "withdraw": lambda m, a, b: m.withdraw({a: 1}),
}


def fill(memory: Memory) -> tuple[str, str]:
    """Two memories, linked to two people."""
    first = memory.remember(KEY, topic="keys", entities=("person:Ana",), key="1")
    second = memory.remember("Ben rotates keys", entities=("person:Ben",), key="2")
    return first.id, second.id


def shown(value: object) -> str:
    """A result as text, without what differs each time: durations, names and times of runs."""
    return re.sub(r"(?<=seconds=)[\d.e-]+|(?<='run-)\w+|\bRun\(.*?(?=cached)", "", repr(value))


def count_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give ids by counting, so that two memories have the same."""
    numbers = count(1)

    def make_id(*_: object) -> str:
        return f"{next(numbers):016}"

    for module in ("api.session", "api.browse", "maintain.job", "retrieval.trace"):
        monkeypatch.setattr(f"bethink.{module}.make_id", make_id)


def test_every_method_is_there_and_has_a_case() -> None:
    """With the signature and the docstring of `Memory`'s."""
    assert set(CALLS) == set(METHODS) - NOT_AWAITED
    for name in CALLS:
        own, known = getattr(AsyncMemory, name), getattr(Memory, name)
        assert inspect.iscoroutinefunction(own)
        assert inspect.signature(own) == inspect.signature(known)
        assert own.__doc__ == known.__doc__
    assert {name for name in METHODS if not hasattr(AsyncMemory, name)} == set()


@each_row("name", sorted(CALLS))
def test_a_method_does_what_the_sync_one_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same result or the same error."""
    count_ids(monkeypatch)
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        ids = fill(memory)
        try:
            known = shown(CALLS[name](memory, *ids))
        except (BethinkError, AttributeError) as error:
            known = repr(error)
    count_ids(monkeypatch)

    async def call(memory: AsyncMemory) -> str:
        ids = fill(memory.sync)
        try:
            return shown(await CALLS[name](memory, *ids))
        except (BethinkError, AttributeError) as error:
            return repr(error)

    assert run(call, clock=FixedClock(NOW)) == known


def test_an_export_is_read_with_async_for() -> None:
    """All records; one that is not read to its end holds nothing up."""

    async def export(memory: AsyncMemory) -> None:
        await memory.remember_many([f"{note} {number}" for number in range(5) for note in NOTES])
        records = [record async for record in memory.export()]
        known = [record for record in memory.sync.export() if record["type"] == "item"]
        assert [record for record in records if record["type"] == "item"] == known
        assert len(records) > 400
        assert records[-1]["type"] == "end"
        started = memory.export()
        assert (await anext(started))["type"] == records[0]["type"]
        await started.aclose()
        async with AsyncMemory.open(":memory:", embedder="none") as other:
            assert await other.import_(records) == len(await memory.browse(limit=1000))

    run(export)


def test_views_share_the_space() -> None:
    """`using` and `below` are not awaited; their methods are."""

    async def view(memory: AsyncMemory) -> None:
        kept = await memory.remember(KEY, classification=3)
        low = memory.below(1)
        with pytest.raises(NotFound):
            await low.get(kept.id)
        assert (await memory.using(judging=False).get(kept.id)).text == KEY

    run(view)


def test_a_person_keeps_what_is_theirs(tmp_path: Path) -> None:
    """Writes go where the person's memory puts them."""
    people = Directory(tmp_path)

    async def view(memory: AsyncMemory) -> None:
        for name in ("anna", "ben"):
            people.add(name, memory.sync.store.space, "owner")
        anna, ben = (memory.seen_by(name, people) for name in ("anna", "ben"))
        kept = await ben.remember(KEY, audience="private")  # type: ignore[call-arg]
        await ben.update(kept.id, text="The key is in vault D")
        assert await anna.browse() == await memory.browse() == []
        assert [item.rev for item in await ben.browse()] == [2]

    run(view)


@each_row("where", ["memory", "file"])
def test_fifty_tasks_share_a_memory(where: str, tmp_path: Path) -> None:
    """Every write is there once, every read is answered, the loop goes on meanwhile."""
    place = {} if where == "memory" else {"path": tmp_path / "space.db"}

    async def main() -> None:
        space = ":memory:" if where == "memory" else None
        async with AsyncMemory.open(space, embedder="none", **place) as memory:

            async def one(number: int) -> str:
                kept = await memory.remember(f"The code of door {number} is {number * 7919}")
                answer = await memory.recall(f"code of door {number}")
                assert answer.hits
                await memory.update(kept.id, importance=0.5)
                return kept.id

            ids = await asyncio.gather(*(one(number) for number in range(50)))
            assert len(set(ids)) == len(await memory.browse(limit=100)) == 50
            assert all(found.ok for found in await memory.doctor())

    asyncio.run(main())


class Gate:
    """Holds the work that passes it until it is opened."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, *_: object) -> None:
        self.reached.set()
        assert self.opened.wait(60)

    async def wait(self) -> None:
        """Wait until work has reached it."""
        assert await asyncio.to_thread(self.reached.wait, 60)


@asynccontextmanager
async def held_up(memory: AsyncMemory) -> AsyncIterator[None]:
    """A memory all of whose threads are busy."""
    gates = [Gate() for _ in range(8)]
    busy = [asyncio.create_task(memory.remember_many(["held up"], progress=gate)) for gate in gates]
    for gate in gates:
        await gate.wait()
    yield
    for gate in gates:
        gate.opened.set()
    await asyncio.gather(*busy)


def test_a_cancelled_write_that_has_begun_is_finished_first() -> None:
    """However often it is cancelled: once the caller goes on, it has happened."""

    async def cancel(memory: AsyncMemory) -> None:
        gate = Gate()
        task = asyncio.create_task(memory.remember_many([KEY], progress=gate))
        await gate.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0.01)
            assert not task.done()
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [item.text for item in await memory.browse()] == [KEY]
        assert (await memory.remember("Another")).status == "stored"

    run(cancel)


def test_a_cancelled_write_that_fails_changes_nothing() -> None:
    """Its caller is cancelled; nothing is logged, and the memory can be used."""

    async def cancel(memory: AsyncMemory) -> None:
        gate = Gate()
        fails = (gate() or number for number in (5, 6))
        task = asyncio.create_task(memory.note_edits(fails))  # type: ignore[arg-type]
        await gate.wait()
        task.cancel()
        await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await memory.browse() == []
        assert (await memory.remember(KEY)).status == "stored"

    run(cancel)


def test_a_cancelled_write_that_waits_its_turn_is_not_done() -> None:
    """Also not later."""

    async def cancel(memory: AsyncMemory) -> None:
        async with held_up(memory):
            task = asyncio.create_task(memory.remember(KEY))
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert [item.text for item in await memory.browse()] == ["held up"]

    run(cancel)


def test_a_cancelled_read_ends_at_once(tmp_path: Path) -> None:
    """While its thread still works; the memory is closed when that is done."""
    gate = Gate()

    def boost(item: Item) -> float:
        gate()
        return 1.0

    async def main() -> None:
        async with AsyncMemory.open(path=tmp_path / "space.db", embedder="none") as memory:
            await cancel(memory)

    async def cancel(memory: AsyncMemory) -> None:
        await memory.remember(KEY)
        task = asyncio.create_task(memory.recall("deploy key", boost=boost))
        await gate.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await memory.recall("deploy key")).hits
        asyncio.get_running_loop().call_later(0.05, gate.opened.set)

    asyncio.run(main())


def test_any_cancelled_write_happened_whole_or_not_at_all(tmp_path: Path) -> None:
    """Wherever the cancellation falls: all of its memories are there, or none."""

    async def main() -> None:
        async with AsyncMemory.open(path=tmp_path / "space.db", embedder="none") as memory:
            for number in range(40):
                texts = [f"Part {part} of change {number} by team {part}" for part in range(3)]
                task = asyncio.create_task(memory.remember_many(texts))
                await asyncio.sleep(number / 8000)
                task.cancel()
                await asyncio.wait([task])
                found = {item.text for item in await memory.browse(limit=1000)}
                assert len(found & set(texts)) in (0, 3)
            assert all(one.ok for one in await memory.doctor())

    asyncio.run(main())


def test_a_cancelled_opening_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was opened meanwhile is closed."""
    gate, opened = Gate(), []

    def settings() -> Any:
        gate()
        from bethink.config.settings import load_settings

        return load_settings()

    monkeypatch.setattr("bethink.memory.load_settings", settings)
    monkeypatch.setattr(Memory, "close", lambda self: opened.append(self.session.close()))

    async def main() -> None:
        async def enter() -> None:
            async with AsyncMemory.open(":memory:", embedder="none"):
                pytest.fail("it was cancelled")

        task = asyncio.create_task(enter())
        await gate.wait()
        task.cancel()
        await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert opened == [None]


def test_a_closed_memory_says_so() -> None:
    """It may be closed again."""

    async def main() -> None:
        async with AsyncMemory(Memory.open(":memory:", embedder="none")) as memory:
            await memory.remember(KEY)
        await memory.close()
        with pytest.raises(StoreError, match="closed"):
            await memory.recall(KEY)
        with pytest.raises(StoreError, match="closed"):
            memory.sync.recall(KEY)

    asyncio.run(main())


def test_an_opening_that_fails_says_why(tmp_path: Path) -> None:
    """With the error of `Memory.open`."""

    async def main() -> None:
        async with AsyncMemory.open(path=tmp_path):
            pytest.fail("a folder is no file")

    with pytest.raises(StoreError):
        asyncio.run(main())


def test_the_context_of_the_task_comes_along() -> None:
    """A context variable, such as a span of a trace, is seen on the thread."""
    seen: list[str] = []

    async def main(memory: AsyncMemory) -> None:
        TENANT.set("ana")
        await memory.remember_many([KEY], progress=lambda *_: seen.append(TENANT.get()))

    run(main)
    assert seen == ["ana"]


def test_the_text_of_an_answer_is_that_of_its_profile() -> None:
    """`recall_text` is `recall`, rendered; an empty answer says that it is."""
    with Memory.open(":memory:", embedder="none") as memory:
        memory.remember(KEY)
        for name in ("default", "remind"):
            answer = memory.recall("deploy key", profile=name)
            text = memory.recall_text("deploy key", profile=name)
            assert text == render_text(answer, memory.profile(name).text)
            assert KEY in text
        assert "nothing recalled" in memory.recall_text("who wrote Middlemarch?")


class Reply(pydantic.BaseModel):
    """A response as FastAPI makes one of an endpoint's annotation."""

    model_config = pydantic.ConfigDict(arbitrary_types_allowed=False)
    answer: Recall
    items: list[Item]


def test_pydantic_writes_answers_as_every_surface_does() -> None:
    """In the shapes of docs/wire.md; with a schema, which FastAPI publishes."""
    with Memory.open(":memory:", embedder="none") as memory:
        kept = memory.remember(KEY, entities=("person:Ana",), metadata={"user_id": "ana"})
        thread = memory.put_thread("Keys", [kept.id])
        answer = memory.recall("deploy key")
        reply = Reply(answer=answer, items=memory.browse())
        assert json.loads(reply.model_dump_json()) == {
            "answer": json.loads(json.dumps(recall_json(answer))),
            "items": [json.loads(json.dumps(item_json(memory.get(kept.id))))],
        }
        values: list[tuple[type, object]] = [
            (Remembered, kept),
            (Entity, memory.entities()[0]),
            (Thread, thread),
            *((type(one), one) for one in (memory.why(kept.id), memory.why_not(kept.id, "Ana?"))),
            *((type(one), one) for one in (memory.forget(kept.id), memory.undo(preview=True))),
        ]
        for kind, value in values:
            written = pydantic.TypeAdapter(kind).dump_json(value)
            assert isinstance(json.loads(written), dict | list)
    schema = Reply.model_json_schema(mode="serialization")
    assert schema["properties"]["answer"]["type"] == "object"


def test_a_path_is_imported_by_the_memory(tmp_path: Path) -> None:
    """Counted, previewed, with defaults; what is for paths is refused with records."""
    file = tmp_path / "mem0.json"
    file.write_text(json.dumps([{"id": "1", "memory": "Ines plays the cello"}]))

    async def load(memory: AsyncMemory) -> None:
        preview = await memory.import_(file, preview=True)
        done = await memory.import_(str(file), given={"topic": "music"})
        assert (preview.kind, preview.stored, done.stored) == ("mem0", 1, 1)
        assert (await memory.browse())[0].topic == "music"
        again = await memory.import_(file, kind="mem0", given={"topic": "music"})
        assert again.known == 1
        with pytest.raises(Refused, match="for the path"):
            await memory.import_([], kind="mem0")  # type: ignore[call-overload]

    run(load)
