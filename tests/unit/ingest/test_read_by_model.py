"""What a language model reads in a memory, as far as the memory bears it out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from bethink.config.settings import Settings
from bethink.errors import ModelError
from bethink.memory import Memory
from bethink.ports import Prompt
from bethink.testing import FixedClock, ScriptedModel
from rows import each_row

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
TEXT = "everybody agrees that harbour control sits in Skagen, says granny"


def answer(**parts: Any) -> dict[str, Any]:
    return {"entities": [], "facts": [], "relations": [], **parts}


def fact(subject: str, attribute: str, value: str, confidence: float = 0.9) -> dict[str, Any]:
    told = {"subject": subject, "attribute": attribute, "value": value, "confidence": confidence}
    return {"statement": f"{subject} {attribute} {value}", **told}


GOOD = answer(
    entities=[{"name": "Skagen", "kind": "other"}, {"name": "granny", "kind": "person"}],
    facts=[fact("harbour control", "location", "Skagen")],
    relations=[
        {"source": "granny", "type": "works_on", "target": "Skagen", "confidence": 0.8},
        {"source": "granny", "type": "owns", "target": "Berlin", "confidence": 0.9},
    ],
)


@pytest.fixture
def opened() -> Iterator[Callable[[Callable[[Prompt], Any]], Memory]]:
    memories: list[Memory] = []

    def open_with(said: Callable[[Prompt], Any]) -> Memory:
        model = ScriptedModel(said)
        clock = FixedClock(NOW)
        memory = Memory.open(
            ":memory:", embedder="none", llm=model, settings=Settings(), clock=clock
        )
        memories.append(memory)
        return memory

    yield open_with
    for memory in memories:
        memory.close()


def test_what_is_borne_out_becomes_entities_a_slot_and_edges(opened):
    """With the model as the source, its confidence, and the memory as the context."""
    memory = opened(lambda _: GOOD)
    item_id = memory.remember(TEXT).id

    (item,) = memory.extract(item_id)

    assert {"person:granny", "place:skagen"} <= set(item.entities)
    assert (item.subject, item.attribute) == ("harbour control", "location")
    assert item.metadata["fact"]["value"] == "skagen"
    edges = memory.store.graph.links_of(["person:granny"], ["works_on"], incoming=False)
    assert [(e.dst.id, e.source, e.context, e.confidence) for e in edges] == [
        ("place:skagen", "model", item_id, 0.8)
    ]
    mentions = memory.store.graph.links_of([item_id], ["mentions"], incoming=False)
    assert ("person:granny", "model") in {(link.dst.id, link.source) for link in mentions}
    assert memory.store.graph.links_of(["person:granny"], ["owns"]) == []


@each_row(
    "told",
    [
        answer(entities=[{"name": "Berlin", "kind": "other"}]),
        answer(facts=[fact("harbour control", "location", "Berlin")]),
        answer(facts=[fact("harbour control", "location", "Skagen", confidence=0.3)]),
        answer(facts=[fact("harbour control", "", "")]),
        answer(),
    ],
)
def test_what_the_memory_does_not_say_is_left_out(opened, told):
    """Other names, other values, guesses, nothing: no new revision."""
    memory = opened(lambda _: told)
    item_id = memory.remember(TEXT).id

    (item,) = memory.extract(item_id)

    assert (item.rev, item.subject) == (1, None)


def test_a_model_never_takes_anything_out_of_recall(opened):
    """What it read of two can be flagged as a contradiction, less surely than it was read."""
    told = {"Bergen": answer(facts=[fact("harbour control", "location", "Bergen")])}
    memory = opened(lambda prompt: told["Bergen"] if "Bergen" in str(prompt) else GOOD)
    old = memory.remember("Harbour control is in Bergen").id
    memory.session.clock.forward(days=1)
    new = memory.remember(TEXT).id

    memory.extract(old, new)

    assert memory.get(old).status == memory.get(new).status == "active"
    links = memory.store.graph.links_of([new], ["contradicts", "supersedes"])
    assert [(link.type, link.source) for link in links] == [("contradicts", "model")]
    assert links[0].confidence < 0.8


def test_a_memory_is_read_once(opened):
    """Also by maintenance, which reads what nobody has read."""
    memory = opened(lambda _: answer())
    memory.remember(TEXT)
    other = memory.remember("Nothing to see here at all").id
    memory.extract(other)

    memory.maintain("extract")
    memory.maintain("extract")

    assert len(memory.llm.prompts) == 2


@pytest.mark.parametrize("said", [{"entities": "all of them"}, "delete everything", None])
def test_an_unusable_answer_changes_nothing(opened, said):
    """No slot is set, and the memory can be read another time."""
    memory = opened(lambda _: said)
    item_id = memory.remember("The deploy key is in vault A").id

    with pytest.raises(ModelError):
        memory.extract(item_id)

    item = memory.get(item_id)
    assert (item.rev, item.subject, item.attribute) == (1, None, None)


def test_the_same_value_read_twice_contradicts_nothing(opened):
    """Nor does another slot."""
    told = {
        "Skagen": answer(facts=[fact("harbour control", "location", "Skagen")]),
        "Marit": answer(facts=[fact("harbour control", "head", "Marit")]),
    }
    memory = opened(lambda prompt: next(v for k, v in told.items() if k in str(prompt)))
    texts = (
        "harbour control sits in Skagen",
        "Skagen has harbour control",
        "Marit runs harbour control",
    )
    ids = [memory.remember(text).id for text in texts]

    memory.extract(*ids)

    assert memory.get(ids[2]).attribute == "head"
    assert memory.store.graph.links_of(ids, ["contradicts"]) == []


def test_a_slot_goes_with_the_words_that_it_was_read_from(opened):
    """A change of something else keeps it."""
    memory = opened(lambda _: GOOD)
    item_id = memory.remember(TEXT).id
    memory.extract(item_id)

    assert memory.update(item_id, topic="harbour").subject == "harbour control"
    assert memory.update(item_id, text="Coffee first").subject is None
