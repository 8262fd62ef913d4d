"""Memories to maintain: cold ones of one entity and layer, made a long time ago."""

from __future__ import annotations

from datetime import timedelta

from bethink import Memory
from bethink.ports import LanguageModel
from bethink.testing import FixedClock
from corpus import NOW

LONG_AGO = NOW - timedelta(days=200)

TOLD = (
    "Atlas reads its settings from atlas.toml since release 4",
    "The Atlas importer keeps 3 workers busy at night",
    "Atlas was moved to the host rhone-7 in spring",
    "Somebody restarted Atlas by hand after the power cut",
    "The Atlas logs rotate every 12 hours",
    "Atlas needs the port 8443 open towards the gauges",
)


def open_memory(
    clock: FixedClock, *, embedder: str = "none", llm: LanguageModel | None = None
) -> Memory:
    """An empty memory in memory."""
    return Memory.open(":memory:", embedder=embedder, llm=llm or "none", clock=clock)


def add_cold(memory: Memory, clock: FixedClock, count: int = 6, **about: object) -> list[str]:
    """Cold memories about Atlas, all of the layer context, stored long ago."""
    today = clock.now
    clock.now = LONG_AGO
    fields = {"layer": "context", "entities": ["project:Atlas"], "importance": 0.3, **about}
    texts = [TOLD[number % len(TOLD)] + f", as seen on day {number}" for number in range(count)]
    stored = memory.remember_many([{"text": text, **fields} for text in texts])
    clock.now = today
    return [one.id for one in stored]


def add_others(memory: Memory, count: int = 20) -> list[str]:
    """Memories that no job wants anything of, stored now."""
    stored = memory.remember_many(
        [f"Gauge {number} stands at bridge number {number * 7}" for number in range(count)]
    )
    return [one.id for one in stored]


def state(memory: Memory) -> dict[str, tuple[object, ...]]:
    """What every live memory says and how it stands, by id."""
    items = memory.browse(limit=10_000, include_superseded=True, max_classification=3)
    return {item.id: said(item) for item in items}


def said(item: object) -> tuple[object, ...]:
    """A memory without what tells its revisions apart."""
    fields = item._asdict()  # type: ignore[attr-defined]
    for name in ("rev", "live_from", "live_to", "ended_by", "content_hash"):
        fields.pop(name)
    return tuple(fields.items())
