"""The remedy that why-not prints is tried here, and it brings the memory in."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from bethink import Memory
from bethink.testing import FixedClock
from corpus import NOW
from rows import each_row

PROFILES = ("abmind", "default", "linksee", "memind-deep", "memind-simple", "remind", "siftcoder")
QUESTION = "where does the zebra herd graze?"


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOW)


@pytest.fixture
def memory(clock: FixedClock) -> Iterator[Memory]:
    with Memory.open(":memory:", embedder="none", clock=clock) as opened:
        yield opened


def store_herds(memory: Memory, count: int = 8, **fields: Any) -> list[str]:
    places = ("Mara", "Etosha", "Kruger", "Chobe", "Hwange", "Luangwa", "Serengeti", "Samburu")
    texts = [
        f"The zebra herd number {n} does graze near {places[n % len(places)]} in the valley {n}"
        for n in range(count)
    ]
    return [one.id for one in memory.remember_many([{"text": text, **fields} for text in texts])]


def follow(remedy: str, options: dict[str, Any], question: str) -> tuple[str, dict[str, Any]]:
    """Apply what a remedy says to a recall, as a person would."""
    options = dict(options)
    for quoted in re.findall(r"own words: ('.*'|\".*\")", remedy):
        question = ast.literal_eval(quoted)
        remedy = remedy.replace(quoted, "")
    for verb, option, value in re.findall(
        r"(with|without) -{1,2}([a-z-]+)(?: (\S+?))?(?:,|$)", remedy
    ):
        name = option.replace("-", "_")
        if verb == "without":
            options.pop(name)
        else:
            options[name] = True if not value else int(value) if value.isdigit() else value
    return question, options


def assert_remedy_works(
    memory: Memory, item: str, question: str, profile: str, **options: Any
) -> str:
    told = memory.why_not(item, question, profile=profile, **options)
    if told.returned:
        return ""
    assert told.remedy.startswith("ask again "), (told.stage, told.reason, told.remedy)
    text, changed = follow(told.remedy, options, question)
    answer = memory.recall(text, profile=profile, track=False, **changed)
    assert item in {hit.item.id for hit in answer.hits}, (told.stage, told.remedy)
    return told.remedy


@each_row("profile", PROFILES)
def test_a_larger_limit_brings_it_in(memory: Memory, profile: str) -> None:
    """Whether k, the tokens or both are short; the rank is told truly in every profile."""
    items = store_herds(memory)
    whole = [
        hit.item.id for hit in memory.recall(QUESTION, profile=profile, k=20, track=False).hits
    ]
    for options in (
        {"k": 2},
        {"max_tokens": 60},
        {"k": 2, "max_tokens": 60},
        {"k": 1, "offset": 1},
    ):
        for item in items:
            assert_remedy_works(memory, item, QUESTION, profile, **options)
    last = [item for item in whole if item in items][-1]
    told = memory.why_not(last, QUESTION, profile=profile, k=2)
    if told.stage == "budget":
        assert f"rank {1 + whole.index(last)}" in told.reason


@pytest.mark.parametrize("profile", ["default", "siftcoder", "remind"])
def test_a_deep_recall_names_the_step_that_dropped_it(memory: Memory, profile: str) -> None:
    """Not the judgement between the passes, which only looks."""
    items = store_herds(memory)

    for item in items:
        told = memory.why_not(item, QUESTION, profile=profile, deep=True, k=2)
        assert not told.stage.startswith(("deep.", "assemble.")), told
        assert_remedy_works(memory, item, QUESTION, profile, deep=True, k=2)


@each_row(
    ("fields", "options"),
    [
        ({"topic": "zoo"}, {"topic": "travel"}),
        ({"kind": "fact"}, {"kind": "decision", "topic": "travel"}),
        ({"valid_to": NOW - timedelta(days=1)}, {}),
        ({"classification": 3}, {"max_classification": 1}),
        ({"occurred_at": NOW - timedelta(days=400)}, {"since": "2026-01-01", "tag": "old"}),
        ({"trust": 1}, {"min_trust": 3, "k": 1}),
    ],
)
def test_filters_that_keep_it_out_are_all_named(
    memory: Memory, fields: dict[str, Any], options: dict[str, Any]
) -> None:
    """Several of them together, and with a limit on top."""
    items = store_herds(memory, 3, **fields)
    for item in items:
        assert assert_remedy_works(memory, item, QUESTION, "siftcoder", **options)


def test_a_superseded_memory_is_included_on_request(memory: Memory) -> None:
    """By the option for it."""
    old, new = store_herds(memory, 2)
    memory.link(new, "supersedes", old)

    remedy = assert_remedy_works(memory, old, QUESTION, "siftcoder")

    assert "--include-superseded" in remedy


def test_a_forgotten_memory_is_restored(memory: Memory) -> None:
    """No filter keeps it out, so none is blamed."""
    items = store_herds(memory, 3)
    memory.forget(items[0])

    told = memory.why_not(items[0], QUESTION, profile="siftcoder")
    assert told.remedy == f"bethink restore {items[0]}"
    memory.restore(items[0])

    assert memory.why_not(items[0], QUESTION, profile="siftcoder").returned


def assert_restoring_works(
    memory: Memory, item: str, question: str, profile: str, **options: Any
) -> str:
    """Do what the remedy of a forgotten memory says: restore it, then ask again as it says."""
    told = memory.why_not(item, question, profile=profile, **options)
    first, _, rest = told.remedy.partition(", then ask again ")
    assert first == f"bethink restore {item}", (told.stage, told.reason, told.remedy)
    memory.restore(item)
    text, changed = follow(rest, options, question)
    answer = memory.recall(text, profile=profile, track=False, **changed)
    assert item in {hit.item.id for hit in answer.hits}, (told.remedy, told.reason)
    return told.remedy


@each_row("profile", PROFILES)
@each_row(
    "options",
    [
        {"topic": "travel"},
        {"tag": "old", "kind": "decision", "min_trust": 3},
        {"k": 1},
        {"k": 2, "max_tokens": 40},
        {"k": 1, "offset": 2, "speaker": "nobody"},
        {"topic": "travel", "k": 1},
    ],
)
def test_what_else_keeps_a_forgotten_memory_out_is_named(
    memory: Memory, clock: FixedClock, profile: str, options: dict[str, Any]
) -> None:
    """Restored and asked for as told it is in the answer, whatever stands against it."""
    items = store_herds(memory, trust=1)
    for item in items[:3]:
        clock.forward(minutes=1)
        memory.forget(item)
        clock.forward(minutes=1)
        assert_restoring_works(memory, item, QUESTION, profile, **options)


def test_a_forgotten_memory_is_in_no_answer_of_an_earlier_time(
    memory: Memory, clock: FixedClock
) -> None:
    """Asked for a moment before it was stored, restoring it is not enough."""
    clock.forward(hours=1)
    items = store_herds(memory, 3)
    clock.forward(minutes=1)
    memory.forget(items[0])
    clock.forward(minutes=1)
    early = (NOW + timedelta(minutes=1)).isoformat()

    remedy = assert_remedy_of_any_kind(memory, items[0], "siftcoder", as_of=early, topic="travel")

    assert "without --as-of" in remedy


def assert_remedy_of_any_kind(memory: Memory, item: str, profile: str, **options: Any) -> str:
    told = memory.why_not(item, QUESTION, profile=profile, **options)
    if told.remedy.startswith("bethink restore "):
        return assert_restoring_works(memory, item, QUESTION, profile, **options)
    return assert_remedy_works(memory, item, QUESTION, profile, **options)


def test_newer_memories_do_not_push_a_restored_one_out(memory: Memory, clock: FixedClock) -> None:
    """The limits that are named hold now, not at the time it was forgotten."""
    old = store_herds(memory, 1)[0]
    clock.forward(minutes=1)
    memory.forget(old)
    clock.forward(minutes=1)
    for n in range(6):
        memory.remember(f"Where does the zebra herd graze? In field {n}, the zebra herd does graze")

    assert_restoring_works(memory, old, QUESTION, "siftcoder", k=2)


@pytest.mark.parametrize(
    "options",
    [
        {"topic": "travel"},
        {"topic": "travel", "tag": "old", "kind": "decision", "speaker": "nobody", "user": "eve"},
        {"k": 1, "max_tokens": 30, "topic": "travel"},
    ],
)
def test_a_superseded_memory_behind_filters(memory: Memory, options: dict[str, Any]) -> None:
    """The option for it and every filter are named, and the limits."""
    old, new = store_herds(memory, 2)
    memory.link(new, "supersedes", old)

    remedy = assert_remedy_works(memory, old, QUESTION, "siftcoder", **options)

    assert "--include-superseded" in remedy


@each_row("seed", range(4))
def test_remedies_of_random_recalls_of_what_was_forgotten(
    memory: Memory, clock: FixedClock, seed: int
) -> None:
    """Any profile, limits and filters; forgotten, superseded or both."""
    dice = random.Random(f"forgotten {seed}")
    items = store_herds(memory, 12, topic="zoo", tags=["wild"], trust=1)
    memory.link(items[0], "supersedes", items[1])
    for _ in range(8):
        options: dict[str, Any] = {"k": dice.randint(1, 4)}
        if dice.random() < 0.4:
            options["max_tokens"] = dice.randint(30, 120)
        if dice.random() < 0.3:
            options["offset"] = dice.randint(1, 5)
        for name in ("topic", "tag", "kind", "speaker"):
            if dice.random() < 0.3:
                options[name] = "other"
        clock.forward(minutes=1)
        item = dice.choice(items)
        memory.forget(item)
        clock.forward(minutes=1)
        assert_restoring_works(memory, item, QUESTION, dice.choice(PROFILES), **options)


@each_row("profile", PROFILES)
def test_other_words_bring_it_in(memory: Memory, profile: str) -> None:
    """What has nothing to do with the question is found by its own words, or alone."""
    items = store_herds(memory, 4)
    memory.remember("Violins are tuned in fifths, from the low string to the high one")

    for item in items:
        told = memory.why_not(item, "how do I tune a violin?", profile=profile)
        if not told.returned:
            text, options = follow(told.remedy, {}, "how do I tune a violin?")
            found = memory.recall(text, profile=profile, track=False, **options)
            assert item in {hit.item.id for hit in found.hits}, told


@each_row("seed", range(6))
def test_remedies_of_random_recalls_work(memory: Memory, seed: int) -> None:
    """Any profile, any limits, any filters."""
    dice = random.Random(seed)
    items = store_herds(memory, 12, topic="zoo", tags=["wild"])
    for _ in range(10):
        options: dict[str, Any] = {"k": dice.randint(1, 4)}
        if dice.random() < 0.6:
            options["max_tokens"] = dice.randint(30, 120)
        if dice.random() < 0.3:
            options["offset"] = dice.randint(1, 5)
        if dice.random() < 0.4:
            options[dice.choice(["topic", "tag", "kind", "speaker"])] = "other"
        profile, item = dice.choice(PROFILES), dice.choice(items)
        assert_remedy_works(memory, item, QUESTION, profile, **options)
