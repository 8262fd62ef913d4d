"""Cold memories of one entity and layer become one learning; everything else stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.maintain.consolidate import (
    Consolidate,
    central_sentence,
    condense_by_rules,
    unsupported_numbers,
)
from bethink.model import Item
from bethink.ports import Prompt
from bethink.testing import FixedClock, ScriptedModel
from cold_memories import TOLD, add_cold, add_others, open_memory, state
from corpus import NOW
from rows import each_row


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with open_memory(clock) as opened:
        yield opened


def learning(memory: Memory, **options: Any) -> Item | None:
    """What a run made, if it made anything."""
    report = memory.maintain(Consolidate(**options), share=1.0, clock_is_right=True)
    return memory.get(report.done[0].successor or "") if report.done else None


def test_the_learning_tells_what_it_stands_for(memory: Memory, clock: FixedClock) -> None:
    """Count, period, what is typical, three of them in full, and the details of the rest."""
    ids = add_cold(memory, clock)
    made = learning(memory)

    assert made is not None
    assert (made.layer, made.kind, made.protected) == ("learning", "learning", True)
    assert "6 memories about Atlas (context)" in made.text
    assert made.text.count("\n- ") == 3
    for detail in ("atlas.toml", "rhone-7", "8443"):
        assert detail in made.text
    assert made.metadata["count"] == 6
    assert len(made.metadata["exemplars"]) == 3
    assert made.importance == pytest.approx(0.55)
    assert all((memory.get(one).ended_by or "").startswith("consolidate:run-") for one in ids)


def test_why_shows_what_a_learning_was_made_of(memory: Memory, clock: FixedClock) -> None:
    """Though they have left recall; not those that somebody forgot since."""
    ids = add_cold(memory, clock)
    made = learning(memory)
    assert made is not None
    memory.restore(ids[0])
    memory.forget(ids[0])

    origins = memory.why(made.id).edges

    assert {edge.item.id for edge in origins if edge.item} == set(ids[1:])
    assert {edge.link.type for edge in origins} == {"derives_from"}


def test_it_is_found_where_the_originals_were(memory: Memory, clock: FixedClock) -> None:
    """A question that one of them answered is answered by the learning."""
    add_cold(memory, clock)
    learning(memory)

    answer = memory.recall("which port does Atlas need?")

    assert "8443" in answer.hits[0].item.text


@each_row(
    "about",
    [
        {"layer": "goal"},
        {"layer": "learning"},
        {"layer": None},
        {"level": "raw"},
        {"pinned": True},
        {"entities": []},
    ],
)
def test_others_are_left_alone(memory: Memory, clock: FixedClock, about: dict[str, Any]) -> None:
    """Other layers, episodes, pinned ones, and what is about nobody in particular."""
    if "entities" in about:
        fields = {"layer": "context", "importance": 0.3}
        clock.forward(days=-200)
        memory.remember_many([{"text": f"it rained for {n} hours", **fields} for n in range(9)])
        clock.forward(days=200)
    else:
        add_cold(memory, clock, **about)
    before = state(memory)

    assert learning(memory) is None
    assert state(memory) == before


def test_a_kind_without_a_layer_joins_by_option(memory: Memory, clock: FixedClock) -> None:
    """Notes and observations, for instance, where somebody asks for that."""
    add_cold(memory, clock, layer=None, kind="observation")

    assert learning(memory) is None
    assert learning(memory, loose_kinds=("observation",)) is not None


def test_age_and_heat_have_their_bounds(memory: Memory, clock: FixedClock) -> None:
    """A week old to the second, and cooler than 30; what was used lately stays."""
    ids = add_cold(memory, clock)

    assert learning(memory, min_age_days=200.001) is None
    assert learning(memory, max_heat=-1) is None
    for _ in range(10):
        memory.store.activity.note_use(ids, NOW)
    assert learning(memory) is None


def test_secrecy_and_trust_are_not_mixed(memory: Memory, clock: FixedClock) -> None:
    """A poisoned or a secret memory does not drag the others with it."""
    mine = add_cold(memory, clock, 4)
    clock.forward(days=-200)
    theirs = memory.remember(
        "Atlas is broken, says a page", layer="context", entities=["project:Atlas"],
        source_class="web", importance=0.1,
    ).id  # fmt: skip
    secret = memory.remember(
        "Atlas has a back door", layer="context", entities=["project:Atlas"], classification=3,
        importance=0.1,
    ).id  # fmt: skip
    clock.forward(days=200)

    made = learning(memory)

    assert made is not None
    assert (made.trust, made.classification) == (2, 1)
    links = memory.store.graph.links_of([made.id], ("derives_from",), incoming=False)
    assert {link.dst.id for link in links} == set(mine)
    assert memory.get(theirs).live_to is None
    assert memory.get(secret).live_to is None


def test_filters_say_what_it_is_about(memory: Memory, clock: FixedClock) -> None:
    """A run about one topic leaves the others alone."""
    add_cold(memory, clock, 4, topic="atlas")
    other = add_cold(memory, clock, 6, topic="other")[4:]
    add_others(memory)

    report = memory.maintain(
        "consolidate", share=1.0, clock_is_right=True, where={"topic": "atlas"}
    )

    assert len(report.done) == 1
    assert all(memory.get(one).live_to is None for one in other)


# --- With a model -------------------------------------------------------------------------


def answering(**answer: Any) -> ScriptedModel:
    usual = {"title": "Atlas", "learning": "Atlas is well", "left_out": [], "conflicts": []}
    return ScriptedModel(lambda _: {**usual, "sources": [1, 2, 3], **answer})


def made_by(model: ScriptedModel, clock: FixedClock) -> tuple[Memory, list[str], Item | None]:
    memory = open_memory(clock, llm=model)
    ids = add_cold(memory, clock)
    return memory, ids, learning(memory)


def test_a_model_may_write_it_and_leave_some_out(clock: FixedClock) -> None:
    """Only what it says its text holds leaves recall."""
    memory, ids, made = made_by(answering(left_out=[3, 4, 5, 6]), clock)

    assert made is not None
    assert made.metadata["made_by"] == "scripted:model"
    assert [memory.get(one).live_to is None for one in ids] == [False, False, *[True] * 4]


@each_row(
    "answer",
    [
        {"learning": "Atlas needs the port 9999"},
        {"learning": ""},
        {"sources": [7]},
        {"sources": ["all"]},
        {"delete": "all"},
    ],
)
def test_a_model_that_makes_things_up_is_not_believed(
    clock: FixedClock, answer: dict[str, Any]
) -> None:
    """Numbers nobody said, answers of another shape: rules do the work and say so."""
    _, _, made = made_by(answering(**answer), clock)

    assert made is not None
    assert made.metadata["made_by"] == "rules"
    assert "9999" not in made.text


def test_secrets_are_not_shown_to_a_model(clock: FixedClock) -> None:
    """A group of secret memories is condensed by rules, and nobody is asked."""
    model = answering()
    memory = open_memory(clock, llm=model)
    add_cold(memory, clock, classification=3)

    made = learning(memory)

    assert model.prompts == []
    assert made is not None
    assert made.classification == 3


def test_the_store_can_be_written_to_while_a_model_thinks(clock: FixedClock) -> None:
    """No lock is held: what is stored meanwhile is there, and what was changed stays."""
    memory: Memory

    def think(_: Prompt) -> dict[str, Any]:
        memory.remember("Written while the model was thinking")
        memory.update(ids[0], text="Atlas reads its settings from a new place")
        return {
            "title": "Atlas", "learning": "Atlas is well", "sources": [1, 2, 3, 4, 5, 6],
            "left_out": [], "conflicts": [],
        }  # fmt: skip

    memory = open_memory(clock, llm=ScriptedModel(think))
    ids = add_cold(memory, clock)

    report = memory.maintain("consolidate", share=1.0, clock_is_right=True)

    assert report.done == ()
    assert "changed meanwhile" in report.left[0].hindrance
    assert memory.recall("model was thinking").hits
    assert memory.get(ids[0]).live_to is None


# --- The rules ----------------------------------------------------------------------------


def items(*texts: str) -> list[Item]:
    return [Item(str(number), text, NOW, "test") for number, text in enumerate(texts)]


def test_the_typical_sentence_is_one_of_theirs() -> None:
    """The one that shares most with the others; none where nothing is shared."""
    told = items(*TOLD, "Atlas reads its settings from atlas.toml")

    assert any(central_sentence(told) in item.text for item in told)
    assert central_sentence(items("one two three", "four five six")) == ""


def test_a_text_by_rules_is_the_same_every_time() -> None:
    """Whatever the order of the memories."""
    told = items(*TOLD)

    assert condense_by_rules("Atlas", told).text == condense_by_rules("Atlas", told[::-1]).text


def test_numbers_that_nobody_said_are_noticed() -> None:
    """Dates and parts of what was said are not made up."""
    told = items("The port is 8443 since 2026-05-07")

    assert list(unsupported_numbers("In 2026 the port 8443 was opened", told)) == []
    assert list(unsupported_numbers("The port is 8444", told)) == ["8444"]


def test_a_learning_keeps_every_outcome_in_full_or_by_reference(
    memory: Memory, clock: FixedClock
) -> None:
    """What is cut carries the id of its memory, which shows the rest."""
    fields = {"layer": "context", "entities": ["project:Atlas"], "importance": 0.3}
    today = clock.now
    clock.now = today - timedelta(days=200)
    texts = [
        f"Attempt {n} at the Atlas importer: {'it was tried with another reader and ' * 6}"
        f"ended with outcome number {n * 17}"
        for n in range(30)
    ]
    stored = memory.remember_many([{"text": text, **fields} for text in texts])
    clock.now = today
    memory.remember("Something of today")

    memory.maintain("consolidate", share=1.0)

    [learning] = memory.browse(layer="learning", limit=5)
    for one, text in zip(stored, texts, strict=True):
        assert text in learning.text or f"[{one.id}]" in learning.text
        assert memory.history(one.id)[-1].text == text


def test_a_learning_belongs_to_the_user_of_its_sources(memory: Memory, clock: FixedClock) -> None:
    """Of two users each keeps theirs: no learning mixes them, and each is found by its user."""
    by_user = {
        name: set(add_cold(memory, clock, metadata={"user_id": name}, source=name))
        for name in ("ines", "lund")
    }
    report = memory.maintain(Consolidate(), share=1.0, clock_is_right=True)
    made = [memory.get(done.successor or "") for done in report.done]

    assert {one.user for one in made} <= {"ines", "lund"}
    assert made
    for one in made:
        links = memory.store.graph.links_of([one.id], ("derives_from",), incoming=False)
        assert {link.dst.id for link in links} <= by_user[one.user or ""]
        assert one.id in {item.id for item in memory.browse(user=one.user)}
