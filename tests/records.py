"""Records for stores: makers with short names, and strategies for every field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import strategies as st

from bethink.core.words import fingerprint, fold
from bethink.model import LAYERS, LEVELS, Entity, Filters, Item
from bethink.ports import Embedding, Mention, Record, Scope
from bethink.store.sql.usage import Activity, read_activity

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MODEL = "test-model/8"
DIM = 8


def at(**after: float) -> datetime:
    """A moment after the start of a test, by ``days``, ``hours``, ``seconds``."""
    return NOW + timedelta(**after)


def scope(
    *, as_of: datetime | None = None, moment: datetime | None = None, **filters: Any
) -> Scope:
    """A scope as of now, unless told otherwise."""
    return Scope(Filters(**filters), moment or as_of or at(days=1), as_of)


def mention_activity(store: Any, entities: list[str], now: datetime) -> dict[str, Activity]:
    """How many memories are about entities at a moment: what their momenta are made of."""
    with store._connections.read_transaction() as db:
        return read_activity(db, entities, now)


def item(item_id: str, text: str | None = None, **fields: Any) -> Item:
    """An item with the fewest fields that make sense."""
    values = {"stored_at": NOW, "source": "test", **fields}
    return Item(item_id, text if text is not None else f"the memory {item_id}", **values)


def record(item_id: str, text: str | None = None, **fields: Any) -> Record:
    """A record of a new item; record fields are told apart by name."""
    given = {
        name: fields.pop(name) for name in tuple(fields) if name in Record.__dataclass_fields__
    }
    made = item(item_id, text, **fields)
    if given.get("embedding") is not None:
        given.setdefault("model", MODEL)
    if "fingerprint" not in given:
        given["fingerprint"] = fingerprint(made.text)
    return Record(made, **given)


def mention(name: str, kind: str = "person", *aliases: str) -> Mention:
    """A mention of an entity by its name."""
    return Mention(Entity(f"{kind}:{fold(name)}", kind, name, aliases))


def embedding(seed: int, tokens: bytes = b"") -> Embedding:
    """A unit vector that depends on the seed alone."""
    vector = np.random.default_rng(seed).standard_normal(DIM).astype(np.float32)
    return Embedding(vector / np.linalg.norm(vector), tokens)


# What a store must give back exactly: everything but NUL and lone surrogates.
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=60)
names = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), min_size=1, max_size=12
)
moments = st.one_of(
    st.integers(0, 2 * 10**12), st.integers(-62_135_596_800_000, 253_402_300_799_999)
).map(lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms))
maybe = lambda strategy: st.none() | strategy  # noqa: E731 - reads like the word it is
shares = st.floats(0, 1)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def items(draw: st.DrawFn, item_id: str = "item-1") -> Item:
    """An item with anything its fields may hold, as a caller would put it."""
    return Item(
        item_id,
        draw(texts),
        draw(moments),
        draw(names),
        source_class=draw(names),
        writer=draw(names),
        level=draw(st.sampled_from(LEVELS)),
        kind=draw(names),
        layer=draw(maybe(st.sampled_from(LAYERS))),
        topic=draw(maybe(texts)),
        tier=draw(names),
        tags=tuple(draw(st.lists(texts, max_size=3))),
        caption=draw(maybe(texts)),
        original=draw(maybe(texts)),
        language=draw(maybe(names)),
        speaker=draw(maybe(texts)),
        session=draw(maybe(names)),
        seq=draw(maybe(st.integers(-(2**63), 2**63 - 1))),
        parent=draw(maybe(names)),
        subject=draw(maybe(texts)),
        attribute=draw(maybe(texts)),
        trust=draw(st.integers(0, 3)),
        integrity=draw(st.integers(0, 4)),
        credibility=draw(st.integers(0, 6)),
        classification=draw(st.integers(0, 3)),
        emotion=draw(st.floats(-5, 5)),
        importance=draw(shares),
        confidence=draw(shares),
        relevance=draw(st.floats(allow_nan=False, allow_infinity=False)),
        pinned=draw(st.booleans()),
        protected=draw(st.booleans()),
        occurred_at=draw(maybe(moments)),
        occurred_end=draw(maybe(moments)),
        valid_from=draw(maybe(moments)),
        valid_to=draw(maybe(moments)),
        status=draw(st.sampled_from(("active", "superseded", "quarantined"))),
        tokens=draw(st.integers(0, 10**6)),
        flags=tuple(draw(st.lists(names, max_size=2))),
        metadata=draw(st.dictionaries(texts, json_values, max_size=3)),
        anchors=draw(st.lists(texts, max_size=2).map(tuple)),
    )
