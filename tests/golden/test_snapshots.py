"""Moving code changes no answer: recalls, help, OpenAPI and JSON shapes are kept in files.

`python tools/snapshots.py` writes them anew and says what has changed.
"""

from __future__ import annotations

import pytest
from snapshot_questions import QUESTIONS
from snapshot_shapes import merged, shape
from snapshot_taking import (
    OPENAPI,
    PROFILES,
    SHAPES,
    difference,
    help_differences,
    help_texts,
    kept_recalls,
    openapi,
    read_help,
    read_json,
    read_recalls,
    recall_differences,
    take,
    wire_shapes,
)

from rows import each_row

AGAIN = "if that is meant: python tools/snapshots.py"


def report(told: list[str]) -> str:
    """A few of the differences, and how many there are."""
    more = [f"... and {len(told) - 5} more"] if len(told) > 5 else []
    return "\n".join([f"{len(told)} differ", *told[:5], *more, AGAIN])


@each_row("profile", PROFILES)
@pytest.mark.parametrize("store", sorted(QUESTIONS))  # each is filled by one worker only
def test_recalls_stay(store: str, profile: str) -> None:
    """Every question gets the hits, scores, evidence, warnings and steps it always got."""
    told = recall_differences(kept_recalls(store, profile), take(store, profile))

    assert not told, report(told)


def test_every_profile_is_kept() -> None:
    """The files hold the eight shipped profiles, two hundred questions each, no more."""
    kept = [(store, one["profile"]) for store in QUESTIONS for one in read_recalls(store)]

    assert len(PROFILES) == 8
    assert sum(len(asked) for asked in QUESTIONS.values()) == 200
    assert set(kept) == {(store, profile) for store in QUESTIONS for profile in PROFILES}
    assert len(kept) == 8 * 200


def test_help_stays() -> None:
    """Every command and subcommand is there and says the same words about itself."""
    told = help_differences(read_help(), help_texts())

    assert not told, report(told)


def test_the_openapi_document_stays() -> None:
    """Routes, parameters, bodies and answers of the HTTP interface are an interface."""
    told = difference(read_json(OPENAPI), openapi())

    assert told is None, f"{told}\n{AGAIN}"


def test_wire_shapes_stay() -> None:
    """What is handed out as JSON keeps its keys and the types of their values."""
    told = difference(read_json(SHAPES), wire_shapes())

    assert told is None, f"{told}\n{AGAIN}"


def test_a_difference_is_told_by_its_path() -> None:
    """Numbers agree within the tolerance; all else must be the same, and is named."""
    kept = {"hits": [{"id": "a", "score": 1.0}, {"id": "b", "score": 0.5}], "status": "found"}

    assert difference(kept, kept) is None
    assert difference({"score": 1.0}, {"score": 1.0 + 5e-5}) is None
    assert difference({"score": 1.0}, {"score": 1.001}) == ".score: kept 1.0, now 1.001"
    assert difference({"why": "cosine 0.35"}, {"why": "cosine 0.36"}) is None
    assert difference({"why": "cosine 0.35"}, {"why": "cosine 0.37"}) is not None
    assert difference({"why": "cosine 0.35"}, {"why": "a cosine 0.35"}) is not None
    assert difference({"returned": True}, {"returned": 1}) == ".returned: kept true, now 1"
    assert difference({"vector_rank": 38}, {"vector_rank": 37}) is None
    assert difference({"vector_rank": 38}, {"vector_rank": 36}) is not None
    assert difference({"a": 1}, {}) == ".a: kept 1, now not there"
    assert difference({}, {"a": 1}) == ".a: not kept, now 1"
    changed = {**kept, "hits": [kept["hits"][0], {"id": "c", "score": 0.5}]}
    assert difference(kept, changed) == '.hits[1].id: kept "b", now "c"'
    shorter = {**kept, "hits": kept["hits"][:1]}
    assert "2 entries were kept, 1 are there now" in str(difference(kept, shorter))


def test_help_is_compared_by_its_words() -> None:
    """A line may break elsewhere, as a longer name makes it; a word may not change."""
    kept = {"ask": "Find what a\nquestion calls to mind."}

    assert not help_differences(kept, {"ask": "Find what a question\ncalls to mind."})
    assert help_differences(kept, {"ask": "Find what a question calls up."})
    assert help_differences(kept, {}) == ["ask: no longer there"]


def test_a_shape_is_keys_and_types() -> None:
    """A key that only some values have is marked, and so is every type that was met."""
    told = merged(shape(one) for one in ({"a": 1, "b": [None, "x"]}, {"a": 0.5, "c": {}}))

    assert told == {"a": "integer or number", "b?": ["null or string"], "c?": {}}
    assert merged([told, told]) == told
    assert merged([["string"], "null", {"any of": ["integer", []]}]) == {
        "any of": ["integer or null", ["string"]]
    }
