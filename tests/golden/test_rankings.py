"""Rankings and explanations do not drift unnoticed: they are kept in files and reviewed.

`BETHINK_GOLDEN=write pytest tests/golden` writes them anew.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from snapshot_taking import same_text

from bethink import Memory
from bethink.ports import Embedder
from bethink.retrieval.explain import explain
from bethink.retrieval.profile import profile_names
from bethink.testing import FixedClock
from corpus import CONVERSATION, FOREIGN, NOTES, NOW, QUESTIONS
from rows import each_row

HERE = Path(__file__).parent
ASKED = [text for text, _ in QUESTIONS] + FOREIGN


@pytest.fixture(scope="module")
def named(embedder: Embedder) -> Iterator[Memory]:
    """The shared corpus under ids that stay the same."""
    drafts = [{**draft, "id": f"memory-{n:02d}"} for n, draft in enumerate([*NOTES, *CONVERSATION])]
    with Memory.open(":memory:", embedder=embedder, clock=FixedClock(NOW)) as opened:
        opened.remember_many(drafts)
        yield opened


def rendered(memory: Memory, profile: str) -> str:
    """Every question's best five, and how the first came by its score."""
    pages = []
    for question in ASKED:
        answer = memory.recall(question, profile=profile, k=5, track=False)
        lines = [f"? {question}", f"  {answer.status}: {answer.reason}"]
        lines += [f"  {hit.score:.4f} {hit.item.id} {hit.item.text}" for hit in answer.hits]
        if answer.hits:
            lines.append(explain(answer.hits[0]))
        pages.append("\n".join(lines))
    return "\n\n".join(pages) + "\n"


@each_row("profile", sorted(profile_names()))
def test_rankings_and_explanations_stay(named: Memory, profile: str) -> None:
    """A change here is either meant, and reviewed, or a mistake."""
    file = HERE / f"{profile}.txt"
    now = rendered(named, profile)
    if os.environ.get("BETHINK_GOLDEN") == "write":
        file.write_text(now, encoding="utf-8")

    kept = file.read_text(encoding="utf-8")
    assert same_text(kept, now) or now == kept


def test_the_right_memory_comes_first(named: Memory) -> None:
    """Of every question of the corpus, by the default profile, among the best two."""
    for question, begins in QUESTIONS:
        best = [hit.item.text for hit in named.recall(question, track=False).hits[:2]]
        assert any(text.startswith(begins) for text in best), question


def test_foreign_questions_are_not_told_as_found(named: Memory) -> None:
    """What nobody told is not answered, or marked as unsure."""
    for question in FOREIGN:
        assert named.recall(question).status in ("unsure", "nothing_matched"), question


def test_the_wire_replays(named: Memory) -> None:
    """The JSON of an answer holds all that is needed to compute its scores again."""
    from bethink.render.wire import dumps, recall_json

    shown = json.loads(dumps(recall_json(named.recall(ASKED[0]), trace=True)))
    for hit in [*shown["insights"], *shown["items"], *shown["raw"]]:
        score = 0.0
        for reason in hit["evidence"]:
            if reason["op"] == "add":
                score += reason["value"]
            elif reason["op"] == "times":
                score *= reason["value"]
            elif reason["op"] == "set":
                score = reason["value"]
        assert score == hit["score"]
