"""What a type checker accepts and refuses of the public keywords; it is checked, never run.

A line that must be refused says so by ``type: ignore``: one that is not needed is an error.
"""

from __future__ import annotations

from datetime import UTC, datetime

from bethink import AsyncMemory, Draft, Filters, Memory, Refused, Remembered
from bethink.importers.intake import Tally
from bethink.model import Recall


def accepted(memory: Memory) -> None:
    """Every keyword with the types it takes."""
    stored: Remembered = memory.remember(
        "We chose PostgreSQL", kind="decision", topic="db", tags=["a"], user="ana", importance=0.9
    )
    memory.remember("It rained", occurred_at="yesterday", metadata={"place": "Bern"}, force=True)
    each: list[Remembered | Refused] = memory.remember_each(
        ["plain", Draft("draft"), {"text": "fields", "user": "ana"}]
    )
    memory.remember_many(["plain", *(one.id for one in each if isinstance(one, Remembered))])
    memory.update(stored.id, text="We chose SQLite", pinned=True, revision=1)
    answer: Recall = memory.recall(
        "db?", k=3, kind=["decision"], since="2026-01-01", user="ana", now=datetime.now(UTC)
    )
    memory.recall("db?", filters=Filters(topics=("db",)), most={"raw": 5}, context={"hour": 9})
    memory.explain("db?", answer.hits[0].item.id, profile="default", k=5)
    memory.why_not(stored.id, "db?", topic="db", deep=True)
    memory.compare("db?", ["default"], min_trust=1)
    memory.browse(limit=10, ids=(stored.id,), include_superseded=True)
    memory.put_thread("Databases", [stored.id], kind="work")


def accepted_of_people(space: Memory) -> None:
    """A person says who sees a memory."""
    ben = space.seen_by("ben")
    stored: Remembered = ben.remember("Ben looks for a flat", audience="private", topic="home")
    ben.update(stored.id, audience="anna, carl", revision=1, pinned=True)
    ben.below(1).remember("Anna and Ben swap shifts", audience="anna")


def refused_of_people(space: Memory) -> None:
    """The space has no audience; who sees a memory is a text."""
    space.remember("text", audience="private")  # type: ignore[call-arg]
    space.seen_by("ben").remember("text", audience=["anna"])  # type: ignore[arg-type]
    space.seen_by("ben").remember("text", topik="db")  # type: ignore[call-arg]
    space.seen_by("ben").update("id", topik="db")  # type: ignore[call-arg]


async def awaited() -> None:
    """The same of `AsyncMemory`, with the types of the results."""
    async with AsyncMemory.open("work", embedder="none") as memory:
        stored: Remembered = await memory.remember("We chose PostgreSQL", kind="decision")
        await memory.remember_many(["plain", Draft("draft"), {"text": "fields"}])
        answer: Recall = await memory.recall("db?", k=3, kind=["decision"], user="ana")
        text: str = await memory.recall_text("db?", topic="db")
        counted: int = await memory.import_([record async for record in memory.export()])
        tally: Tally = await memory.import_("mem0.json", kind="mem0", preview=True)
        view: AsyncMemory = memory.using(judging=False).below(1)
        await view.forget(stored.id, answer.hits[0].item.id, text, str(counted), tally.kind)


async def refused_when_awaited(memory: AsyncMemory) -> None:
    """The same mistakes."""
    await memory.remember("text", topik="db")  # type: ignore[call-arg]
    await memory.recall("q", k="3")  # type: ignore[arg-type]
    await memory.recall_text("q", topik="db")  # type: ignore[call-arg]
    await memory.import_([], kind="mem0")  # type: ignore[call-overload]
    memory.below("1")  # type: ignore[arg-type]
    AsyncMemory.open(pth="work")  # type: ignore[call-arg]


def refused(memory: Memory) -> None:
    """A misspelt keyword, and a value of the wrong type."""
    memory.remember("text", topik="db")  # type: ignore[call-arg]
    memory.remember("text", importance="high")  # type: ignore[arg-type]
    memory.remember_each([5])  # type: ignore[list-item]
    memory.update("id", topik="db")  # type: ignore[call-arg]
    memory.update("id", session="other")  # type: ignore[call-arg]
    memory.recall("q", topik="db")  # type: ignore[call-arg]
    memory.recall("q", k="3")  # type: ignore[arg-type]
    memory.explain("q", "id", topik="db")  # type: ignore[call-arg]
    memory.why_not("id", "q", topik="db")  # type: ignore[call-arg]
    memory.compare("q", [], topik="db")  # type: ignore[call-arg]
    memory.browse(topik="db")  # type: ignore[call-arg]
    memory.put_thread("Databases", [], state="asleep")  # type: ignore[arg-type]
