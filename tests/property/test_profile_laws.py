"""What holds for every profile that is shipped, whatever is stored and whatever is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bethink import Memory
from bethink.errors import Refused
from bethink.model import Recall, replay, sort_by_score
from bethink.ports import Embedder, Usage
from bethink.render.wire import dumps, recall_json, why_not_json
from bethink.retrieval.engine import update_indexes
from bethink.retrieval.profile import load_profile, profile_names
from bethink.testing import FixedClock
from corpus import NOW
from naughty import NAUGHTY
from rows import each_row
from shapes import WORDS

PROFILES = sorted(profile_names())
every_profile = pytest.mark.parametrize("profile", PROFILES)
sentences = st.lists(
    st.sampled_from((*WORDS, "Ana", "Redis", "yesterday", "vualt")), min_size=1, max_size=7
).map(" ".join)
days = st.integers(-30, 800)
# The classes of letters that texts are made of; half characters are refused at the door.
letters = st.characters(exclude_categories=("Cs",))


@st.composite
def drafts(draw: st.DrawFn, number: int) -> dict[str, Any]:
    """A memory with fields of every kind that one of the profiles looks at."""
    when = NOW - timedelta(days=draw(days), hours=draw(st.integers(0, 23)))
    return {
        "id": f"memory-{number:02d}",
        "text": f"{draw(sentences)} {number}",
        "level": draw(st.sampled_from(["item", "item", "raw", "insight"])),
        "kind": draw(st.sampled_from(["fact", "decision", "note"])),
        "layer": draw(st.sampled_from([None, "goal", "caveat", "learning"])),
        "topic": draw(st.sampled_from([None, "ops", "billing"])),
        "session": draw(st.sampled_from([None, "s1", "s2"])),
        "speaker": draw(st.sampled_from([None, "Ana"])),
        "original": draw(st.sampled_from([None, "kulcs a széfben"])),
        "entities": draw(st.sampled_from([(), ("tool:redis",), ("person:ana", "tool:redis")])),
        "classification": draw(st.integers(0, 3)),
        "trust": draw(st.integers(0, 3)),
        "credibility": draw(st.integers(0, 6)),
        "emotion": draw(st.floats(-5, 5)),
        "importance": draw(st.floats(0, 1)),
        "confidence": draw(st.floats(0, 1)),
        "occurred_at": draw(st.sampled_from([None, when])),
        "metadata": draw(st.sampled_from([{}, {"tool": "Bash"}, {"cited": 2, "rejected": 1}])),
    }


@st.composite
def memories(draw: st.DrawFn) -> dict[str, Any]:
    """Some memories, with relations between them, a thread, and earlier recalls."""
    size = draw(st.integers(0, 6))
    pair = st.tuples(
        st.integers(0, max(0, size - 1)),
        st.sampled_from(["implies", "contradicts", "part_of", "causes", "similar_to"]),
        st.integers(0, max(0, size - 1)),
        st.floats(0.1, 1),
    )
    return {
        "drafts": [draw(drafts(number)) for number in range(size)],
        "links": draw(st.lists(pair, max_size=6)) if size else [],
        "used": draw(st.lists(st.sampled_from(WORDS), max_size=3)),
    }


@contextmanager
def filled(content: dict[str, Any], embedder: Embedder) -> Iterator[Memory]:
    clock = FixedClock(NOW - timedelta(days=2))
    with Memory.open(":memory:", embedder=embedder, clock=clock) as memory:
        memory.remember_many(content["drafts"])
        there = [item.id for item in memory.browse(limit=50)]
        for src, relation, dst, weight in content["links"]:
            if src < len(there) and dst < len(there) and there[src] != there[dst]:
                memory.link(there[src], relation, there[dst], weight=weight)
        if len(there) > 2:
            memory.put_thread("What goes on", there[::2])
        for word in content["used"]:
            memory.recall(word, track=True)
        clock.forward(seconds=2 * 86_400)
        yield memory


def strict(value: Any) -> Any:
    """The value after a trip through JSON that knows neither NaN nor half characters."""

    def refuse(name: str) -> float:
        raise AssertionError(name)

    return json.loads(dumps(value).encode("utf-8"), parse_constant=refuse)


def lawful(answer: Recall) -> None:
    """Best first, unique, and every score the replay of its reasons; at every step."""
    for name, pool in [*((step.name, step.pool) for step in answer.steps), ("hits", answer.hits)]:
        ids = [cand.item.id for cand in pool]
        assert len(ids) == len(set(ids)), name
        assert pool == sort_by_score(pool), name
        assert all(replay(cand.evidence) == cand.score for cand in pool), name
    assert (answer.status in ("found", "unsure")) == bool(answer.hits)
    assert answer.hits or answer.reason


@every_profile
@given(content=memories(), question=sentences)
@settings(max_examples=7)
def test_an_answer_is_lawful_and_the_same_again(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str
) -> None:
    """Also from another store with the same content: equal inputs give equal output."""
    with filled(content, embedder) as memory:
        answer = memory.recall(question, profile=profile, track=False)
        lawful(answer)
        again = memory.recall(question, profile=profile, track=False)
    with filled(content, embedder) as twin:
        elsewhere = twin.recall(question, profile=profile, track=False)

    assert again.hits == answer.hits
    assert elsewhere.hits == answer.hits
    assert (elsewhere.captions, elsewhere.warnings) == (answer.captions, answer.warnings)


@every_profile
@given(
    content=memories(),
    question=sentences,
    kind=st.sampled_from(["fact", "decision"]),
    ceiling=st.integers(0, 2),
    trust=st.integers(0, 2),
)
@settings(max_examples=7)
def test_filters_hold_at_every_step(
    embedder: Embedder,
    profile: str,
    content: dict[str, Any],
    question: str,
    kind: str,
    ceiling: int,
    trust: int,
) -> None:
    """Kind, secrecy and trust: nothing else is looked at, expanded to, or returned."""
    with filled(content, embedder) as memory:
        answer = memory.recall(
            question, profile=profile, kind=kind, max_classification=ceiling, min_trust=trust, k=50
        )

    for step in answer.steps:
        for cand in step.pool:
            assert cand.item.kind == kind, step.name
            assert cand.item.classification <= ceiling, step.name
            assert cand.item.trust >= trust, step.name


@every_profile
@given(content=memories(), question=sentences, data=st.data())
@settings(max_examples=6)
def test_what_is_not_to_be_seen_is_not_seen(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str, data: st.DataObject
) -> None:
    """Secrets, and what was forgotten; in no pool, caption, relation or warning."""
    with filled(content, embedder) as memory:
        there = memory.browse(limit=50)
        gone = data.draw(st.sampled_from(there)) if there else None
        if gone is not None and not (gone.pinned or gone.protected):
            memory.forget(gone.id)
        answer = memory.recall(question, profile=profile, k=50, track=False)

    seen = dumps(recall_json(answer, trace=True, candidates=None))
    if gone is not None and not (gone.pinned or gone.protected):
        assert gone.id not in seen
    for draft in content["drafts"]:
        if draft["classification"] == 3:
            assert draft["id"] not in seen


@every_profile
@given(mine=memories(), theirs=memories(), question=sentences)
@settings(max_examples=4)
def test_nothing_comes_from_another_space(
    embedder: Embedder, profile: str, mine: dict[str, Any], theirs: dict[str, Any], question: str
) -> None:
    """Neither a memory, nor a change of one score: what others store is not felt."""
    with filled(mine, embedder) as memory:
        alone = memory.recall(question, profile=profile, track=False)
        with filled(theirs, embedder) as other:
            other.recall(question, profile=profile, track=False)
            beside = memory.recall(question, profile=profile, track=False)

    assert beside.hits == alone.hits


@every_profile
@given(content=memories(), question=sentences)
@settings(max_examples=6)
def test_tracking_notes_what_was_returned_and_nothing_else(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str
) -> None:
    """One use more of each hit; without tracking nothing changes at all.

    But for the index that a retriever has for itself, which it brings up to date.
    """
    with filled(content, embedder) as memory:
        update_indexes(memory.profile(profile), memory.store)
        ids = [item.id for item in memory.browse(limit=50)]
        generation = memory.store.admin.generation()
        before = memory.store.activity.usage(ids, NOW)
        memory.recall(question, profile=profile, track=False)
        assert memory.store.admin.generation() == generation
        assert memory.store.activity.usage(ids, NOW) == before

        answer = memory.recall(question, profile=profile, track=True)
        after = memory.store.activity.usage(ids, NOW)

    returned = {hit.item.id for hit in answer.hits}
    unused = Usage()
    counts = {one: after.get(one, unused).recalls - before.get(one, unused).recalls for one in ids}
    assert counts == {one: int(one in returned) for one in ids}


@every_profile
@given(content=memories(), question=sentences)
@settings(max_examples=6)
def test_why_not_has_an_answer_for_every_memory(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str
) -> None:
    """Returned or not, seen or hidden; and it agrees with the answer."""
    with filled(content, embedder) as memory:
        returned = {
            hit.item.id for hit in memory.recall(question, profile=profile, track=False).hits
        }
        for item in memory.browse(limit=50):
            told = memory.why_not(item.id, question, profile=profile)
            strict(why_not_json(told))
            assert told.stage
            assert told.reason
            assert (told.stage == "answer") == (item.id in returned)


@every_profile
@given(content=memories(), question=sentences)
@settings(max_examples=6)
def test_the_json_is_strict_and_replays(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str
) -> None:
    """With the whole trace; the hits stand there level by level, none lost."""
    with filled(content, embedder) as memory:
        answer = memory.recall(question, profile=profile, track=False)
        told = strict(recall_json(answer, trace=True, candidates=None))

    ids = [hit["id"] for part in ("insights", "items", "raw") for hit in told[part]]
    assert sorted(ids) == sorted(hit.item.id for hit in answer.hits)
    assert len(told["trace"]["steps"]) == len(answer.steps)


@every_profile
@given(
    texts=st.lists(st.sampled_from(NAUGHTY) | st.text(letters, max_size=40), max_size=4),
    question=st.sampled_from(NAUGHTY) | st.text(letters, max_size=60),
)
@settings(max_examples=12)
def test_hostile_text_is_text(
    embedder: Embedder, profile: str, texts: list[str], question: str
) -> None:
    """As a memory and as a question: answered lawfully, or refused with a reason."""
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as memory:
        memory.remember("The deploy key lives in vault B")
        for text in texts:
            with suppress(Refused):
                memory.remember(text, force=True)
        with suppress(Refused):
            answer = memory.recall(question, profile=profile, track=False)
            lawful(answer)
            strict(recall_json(answer, trace=True))


@every_profile
@given(content=memories(), question=sentences, back=st.floats(-1, 5))
@settings(max_examples=6)
def test_the_past_can_be_asked(
    embedder: Embedder, profile: str, content: dict[str, Any], question: str, back: float
) -> None:
    """As of any moment: only what had been stored by then, and lawfully."""
    moment = NOW - timedelta(days=back)
    with filled(content, embedder) as memory:
        answer = memory.recall(question, profile=profile, as_of=moment, track=False)
        lawful(answer)

    assert all(hit.item.stored_at <= moment for hit in answer.hits)


@every_profile
@each_row("question", ["deploy key", "what did we decide last week?", "?", "Redis"])
def test_an_empty_memory_answers(memory: Memory, profile: str, question: str) -> None:
    """With nothing and the reason."""
    answer = memory.recall(question, profile=profile, track=False)

    assert answer.hits == ()
    assert answer.status != "found"
    assert answer.reason
    strict(recall_json(answer, trace=True))


@every_profile
@given(content=memories(), question=sentences)
@settings(max_examples=4)
def test_without_a_model_the_words_answer(
    profile: str, content: dict[str, Any], question: str
) -> None:
    """Lawfully, and the answer says what it had to do without."""
    with Memory.open(":memory:", embedder="none", clock=FixedClock(NOW)) as memory:
        memory.remember_many(content["drafts"])
        answer = memory.recall(question, profile=profile, track=False)

    lawful(answer)
    strict(recall_json(answer, trace=True))


def test_every_profile_has_these_laws() -> None:
    """The five systems and our own; a new file in the folder is tested by itself."""
    assert set(PROFILES) >= {"default", "remind", "abmind", "memind-simple", "siftcoder", "linksee"}
    assert all(load_profile(name).name == name for name in PROFILES)
