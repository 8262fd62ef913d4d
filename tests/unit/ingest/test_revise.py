"""Changing a memory makes its next revision."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from bethink.core.ids import IdGenerator
from bethink.errors import BadText, LooksPasted, Refused
from bethink.ingest.admission import WriteContext
from bethink.ingest.pipeline import remember
from bethink.ingest.revision import revise
from bethink.model import Draft, Item
from bethink.models.embed.hashing import HashEmbedder
from bethink.models.name_model import name_model
from bethink.store.sqlite import SqliteStore
from fallible import Down
from rows import each_row

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture
def ctx() -> Iterator[WriteContext]:
    store = SqliteStore.open(None, space="t")
    yield WriteContext(store, None, NOW, "tester", IdGenerator(), find_names=name_model.find)
    store.close()


def made(
    ctx: WriteContext, text: str = "The key lives in vault B, says Maria", **about: object
) -> Item:
    (answer,) = remember([Draft(text, **about)], ctx)
    return ctx.store.items.get([answer.id])[answer.id]


def later(ctx: WriteContext) -> WriteContext:
    return WriteContext(
        ctx.store, ctx.embedder, LATER, "editor", ctx.make_id, find_names=name_model.find
    )


def test_the_id_stays_and_the_old_words_stay_in_history(ctx):
    """What was derived from the old words is read anew from the new ones."""
    item = made(ctx, topic="ops", tags=("a",))

    revised = revise(item, {"text": "The key lives in vault C, says Priya"}, later(ctx))

    assert (revised.id, revised.rev, revised.text) == (
        item.id,
        2,
        "The key lives in vault C, says Priya",
    )
    assert (revised.topic, revised.tags, revised.stored_at) == ("ops", ("a",), NOW)
    assert (item.entities, revised.entities) == (("person:maria",), ("person:priya",))
    assert [old.text for old in ctx.store.items.history(item.id)] == [item.text, revised.text]
    assert revised.writer == "editor"


def test_whom_somebody_named_stays_when_the_words_change(ctx):
    """Only what was read in the old words goes with them."""
    item = made(ctx, entities=("project:Atlas", "person:Maria"))

    revised = revise(item, {"text": "The key lives in vault C, says Priya"}, later(ctx))

    assert set(item.entities) == {"project:atlas", "person:maria"}
    assert set(revised.entities) == {"project:atlas", "person:priya"}


def test_other_fields_change_alone(ctx):
    """The text and what it speaks of stay."""
    item = made(ctx)

    revised = revise(item, {"importance": 0.7, "tags": ["x", "y"], "topic": "ops"}, later(ctx))

    assert (revised.text, revised.entities, revised.kind) == (item.text, item.entities, item.kind)
    assert (revised.importance, revised.tags, revised.topic) == (0.7, ("x", "y"), "ops")


@each_row("name", ["id", "key", "level", "session", "seq", "parent", "rev", "nonsense"])
def test_what_a_memory_is_cannot_change(ctx, name):
    """The answer names what can."""
    with pytest.raises(Refused) as caught:
        revise(made(ctx), {name: "x"}, ctx)

    assert "text" in caught.value.remedy


def test_the_rules_of_a_new_memory_hold(ctx):
    """Limits, characters, secrets, pasted output."""
    item = made(ctx)

    with pytest.raises(BadText):
        revise(item, {"text": "a\x00"}, ctx)
    with pytest.raises(LooksPasted):
        revise(item, {"text": "2023-05-08 12:00:01,123 ERROR [main] boom"}, ctx)
    with pytest.raises(Refused):
        revise(item, {"importance": 2}, ctx)
    assert "[redacted:" in revise(item, {"text": "password=hunter22x"}, ctx).text


def test_a_caveat_keeps_its_protection(ctx):
    """Whatever layer it is moved to."""
    item = made(ctx, layer="caveat")

    assert revise(item, {"layer": "context"}, later(ctx)).protected


def test_a_pin_can_be_undone(ctx):
    """By saying so, or by lowering the importance that made it."""
    by_hand, by_importance = (
        made(ctx, "one fact here", pinned=True),
        made(ctx, "two facts here", importance=0.95),
    )

    assert not revise(by_hand, {"pinned": False}, later(ctx)).pinned
    assert not revise(by_importance, {"pinned": False}, later(ctx)).pinned
    other = made(ctx, "three facts here", importance=0.95)
    assert not revise(other, {"importance": 0.4}, later(ctx)).pinned
    kept = made(ctx, "four facts here", pinned=True)
    assert revise(kept, {"importance": 0.4}, later(ctx)).pinned
    assert revise(made(ctx, "five facts here"), {"pinned": True}, later(ctx)).pinned


def test_an_episode_gets_a_new_caption_with_its_text(ctx):
    """The old one would tell what is no longer there."""
    item = made(ctx, "We went to the lake with Tom.", level="raw", speaker="Ana")

    revised = revise(item, {"text": "We went to the mountains with Tom."}, later(ctx))

    assert revised.caption == "Ana: We went to the mountains with Tom."


def test_new_words_get_a_new_vector(ctx):
    """Of the same model."""
    embedder = HashEmbedder()
    writing = WriteContext(
        ctx.store, embedder, NOW, "tester", IdGenerator(), find_names=name_model.find
    )
    item = made(writing)

    revise(item, {"text": "Quite another sentence about whales"}, later(writing))

    kept = ctx.store.vectors.embeddings([item.id], embedder.model)[item.id]
    fresh = embedder.embed(["Quite another sentence about whales"])[0]
    assert float(np.dot(kept.vector, fresh.vector)) > 0.99


def test_a_model_that_is_down_refuses_no_change(ctx):
    """The vector is made later."""
    item = made(ctx)

    revised = revise(
        item,
        {"text": "New words"},
        WriteContext(ctx.store, Down(), NOW, "t", IdGenerator(), find_names=name_model.find),
    )

    assert revised.text == "New words"
    assert ctx.store.vectors.embeddings([item.id], "down") == {}
