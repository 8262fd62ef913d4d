"""Frozen values as JSON and back."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bethink.model import Candidate, Evidence, Filters, Item, Query, Recall
from bethink.worker.codec import DecodeError, decode, encode
from bethink.worker.operations import QueryRequest, RecallReply
from rows import each_row

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
moments = st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)).map(  # noqa: DTZ001
    lambda at: at.replace(tzinfo=UTC)
)
# No number of a memory is NaN, which is not even equal to itself.
numbers = {
    name: st.floats(allow_nan=False) for name, kind in get_type_hints(Item).items() if kind is float
}
items = st.builds(
    Item,
    id=st.text(min_size=1, max_size=8),
    text=st.text(max_size=20),
    stored_at=moments,
    source=st.text(max_size=5),
    tags=st.lists(st.text(max_size=3), max_size=3).map(tuple),
    occurred_at=st.none() | moments,
    **numbers,
    seq=st.none() | st.integers(0, 9),
    pinned=st.booleans(),
    metadata=st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
reasons = st.builds(
    Evidence,
    by=st.text(max_size=5),
    op=st.sampled_from(("seen", "add", "times", "set")),
    value=st.floats(allow_nan=False),
    rank=st.none() | st.integers(1, 9),
)
candidates = st.builds(
    Candidate,
    item=items,
    score=st.floats(allow_nan=False),
    evidence=st.lists(reasons, max_size=3).map(tuple),
)


def there_and_back(value, wanted):
    return decode(json.loads(json.dumps(encode(value))), wanted)


@given(cand=candidates)
def test_a_candidate_comes_back_as_it_was(cand):
    """Every field, floats to the last bit."""
    assert there_and_back(cand, Candidate) == cand


def test_an_answer_comes_back_as_it_was(filled):
    """Hits, reasons, steps with their pools, filters, times: all of it."""
    answer = filled.recall("where is the deploy key?", k=5, kind="fact")

    back = there_and_back(RecallReply(answer, filled.profile("remind").text), RecallReply)

    assert back.answer == answer
    assert back.sections == filled.profile("remind").text


def test_why_not_comes_back_as_it_was(filled):
    """With how each channel saw the memory."""
    from bethink.retrieval.explain import WhyNot

    item = filled.browse(limit=1)[0]
    told = filled.why_not(item.id, "where is the deploy key?")

    assert there_and_back(told, WhyNot) == told


def test_what_steps_share_is_told_once(filled):
    """A trace names a memory in every step, and is not longer for it."""
    answer = filled.recall("where is the deploy key?")
    shared = encode(answer)["shared"]

    pooled = sum(len(step.pool) for step in answer.steps)
    ids = [fields[0] for name, fields in shared if name == "Item"]

    assert pooled > 2 * len(ids)
    assert len(ids) == len(set(ids))


@each_row(
    "change",
    [
        lambda told: told.pop("shared"),
        lambda told: told.pop("value"),
        lambda told: told.update(value=[]),
        lambda told: told.update(value=99),
        lambda told: told.update(value=True),
        lambda told: told.update(value=-1),
        lambda told: told["shared"].append(["Settings", []]),
        lambda told: told["shared"].append(["Item"]),
        lambda told: told["shared"][0][1].pop(),
        lambda told: told["shared"][0][1].__setitem__(1, 7),
        lambda told: told["shared"][0][1].__setitem__(2, "yesterday"),
        lambda told: told["shared"][0][1].__setitem__(7, "rumour"),
        lambda told: told["shared"][-1][1].__setitem__(1, "1.0"),
        lambda told: told["shared"][-1][1].__setitem__(2, "none"),
    ],
)
def test_what_is_not_of_the_type_is_refused(change):
    """A field too few, a text for a number, an unknown word, a pointer to nowhere."""
    cand = Candidate(Item("a", "text", NOW, "user"), 1.0, (Evidence("x", "add", 1.0),))
    told = json.loads(json.dumps(encode(cand)))
    change(told)

    with pytest.raises(DecodeError):
        decode(told, Candidate)


@given(told=st.dictionaries(st.sampled_from(["value", "shared"]), st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=5),
    max_leaves=9)))  # fmt: skip
def test_garbage_is_refused_by_name(told):
    """Whatever it is, it is a BadValue and nothing else."""
    with pytest.raises(DecodeError):
        decode(told, Recall)


def test_only_known_classes_are_made():
    """A type that is neither a value of ours nor plain is not even tried."""
    with pytest.raises(DecodeError):
        decode({"value": ["id"], "shared": []}, type(NotImplemented))
    with pytest.raises(DecodeError):
        encode(object())


def test_a_question_comes_back_as_it_was():
    """Its options are JSON; several values of one are a tuple again."""
    asked = QueryRequest("key?", "remind", {"kind": ("a", "b"), "k": 3}, NOW, steps=True)

    back = there_and_back(asked, QueryRequest)

    assert back.keywords == asked.keywords == {"kind": ("a", "b"), "k": 3, "now": NOW}
    assert (back.text, back.profile, back.steps) == ("key?", "remind", True)


def test_sets_and_nested_values_come_back():
    """A query's marks of earlier pages, and limits of single levels."""
    query = Query("x", NOW, filters=Filters(since=NOW), seen=frozenset({3, 1}), most=(("raw", 5),))

    assert there_and_back(query, Query) == query


def test_the_client_of_the_worker_is_light() -> None:
    """What the worker saves, its client does not pay for: no model, word list or data type."""
    heavy = {"numpy", "apsw", "click", "tomllib", "random", "bethink.model", "bethink.lang.words"}
    code = (
        "import sys, bethink.hooks.handlers, bethink.worker.client\n"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "[]", done.stderr
