"""Following the journal: every change once, in both stores and below a ceiling."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.access.webhooks import JournalReader
from postgres_server import initialised_url


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    place: dict[str, Any] = {"path": tmp_path / "space.db"}
    if request.param == "postgres":
        place = {"space": f"reader-{tmp_path.name}", "store": initialised_url()}
    with Memory.open(**place, embedder="none") as opened:
        yield opened


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.sampled_from(["low", "high", "forget", "read", "hide"]), max_size=25))
def test_every_change_is_told_once_or_a_reset_is(memory: Memory, steps: list[str]) -> None:
    """Whatever happens above the ceiling tells nothing; what leaves the view is a reset."""
    low = memory.below(2).store
    reader, made = JournalReader(), list[str]()
    told, visible = list[tuple[str, str | None]](), list[tuple[str, str | None]]()
    reader.go_to_end(low)
    for step in [*steps, "read"]:
        if step in ("low", "high"):
            level = 1 if step == "low" else 3
            item = memory.remember(secrets.token_hex(20), classification=level, force=True).id
            if step == "low":
                made.append(item)
                visible.append(("stored", item))
        elif step == "forget" and made:
            memory.forget(made[0])
            visible.append(("ended", made.pop(0)))
        elif step == "hide" and made:
            memory.update(made.pop(), classification=3)
            reader.go_to_end(low)  # what a reader does who is told of a reset
            told = visible.copy()
        elif step == "read":
            cursor = JournalReader(reader.cursor)  # as a client brings it back
            for event in cursor.read(low) or ():
                reader.advance(event)
                told.append((event.kind, event.item))
    assert told == visible
    assert reader.read(low) == []


def test_a_hidden_memory_resets_who_has_heard_of_it(memory: Memory) -> None:
    """Also where as many lines came as went."""
    low = memory.below(2).store
    first = memory.remember("The code of the safe is in the vault").id
    memory.remember("Releases are cut on Tuesdays")
    reader = JournalReader()
    reader.go_to_end(low)
    assert reader.read(low) == []
    memory.update(first, classification=3)
    memory.remember("The canteen opens at noon")
    assert reader.read(low) is None
