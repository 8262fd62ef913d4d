"""Votes of sessions weigh a little, for a reason that is shown, and no loop feeds itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bethink import Memory
from bethink.agents.helped import helped
from bethink.agents.session import session_state
from bethink.api.recall import read_votes
from bethink.config.settings import Settings
from bethink.model import Recall
from bethink.model.evidence import replay
from bethink.models.embed.hashing import HashEmbedder
from bethink.ports import Store
from bethink.store.sqlite import SqliteStore
from bethink.testing import FixedClock
from postgres_server import open_space

START = datetime(2026, 5, 4, 8, tzinfo=UTC)
KINDS: dict[str, Callable[[Path], Store]] = {
    "sqlite": lambda folder: SqliteStore.open(folder / "space.db", space="laws"),
    "postgres": open_space,
}
QUESTION = "which port does the staging server use?"
TEXTS = (
    "The staging server uses port 8443",
    "The staging server uses the port of the load balancer",
    "The staging server of the bakery uses a port that nobody knows",
    "A port of the staging server is closed at night",
    "Bread is baked at five",
)


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    settings = Settings(feedback=True, data_dir=tmp_path / "data", project=tmp_path)
    store = KINDS[request.param](tmp_path)
    with Memory(
        store, embedder=HashEmbedder(), clock=FixedClock(START), settings=settings
    ) as opened:
        for text in TEXTS:
            opened.remember(text)
        yield opened


def ask(memory: Memory) -> Recall:
    return memory.recall(QUESTION, min_confidence=0, min_relevance=0)


def hold_session(memory: Memory, folder: Path, number: int, cited: str) -> None:
    """Show all hits in a session whose agent cites one of them, and judge it."""
    memory.session.clock.now += timedelta(days=1)
    at = memory.session.clock.now
    rows = [(hit.item.id, "UserPromptSubmit", 9, at.isoformat()) for hit in ask(memory).hits]
    said = {
        "type": "assistant",
        "timestamp": (at + timedelta(seconds=5)).isoformat(),
        "message": {"content": f"As {cited} says"},
    }
    transcript = folder / f"{number}.jsonl"
    transcript.write_text(json.dumps(said), encoding="utf-8")
    session_state(memory, f"session {number}").add_shown(rows, str(transcript), "on")
    for _ in range(2):  # judged twice it has one vote
        helped(memory, f"session {number}")


def factors(answer: Recall) -> dict[str, float]:
    return {
        hit.item.id: reason.value
        for hit in answer.hits
        for reason in hit.evidence
        if reason.by == "helped"
    }


def test_a_loop_of_shows_and_verdicts_converges_within_the_bound(
    memory: Memory, tmp_path: Path
) -> None:
    plain = ask(memory)
    favoured = plain.hits[2].item.id
    assert factors(plain) == {}
    assert [(h.item.id, h.score) for h in plain.hits] == [
        (h.item.id, h.score)
        for h in memory.using(settings=memory.settings.changed(feedback=False))
        .recall(QUESTION, min_confidence=0, min_relevance=0)
        .hits
    ]
    orders, seen = [], []
    for number in range(10):
        hold_session(memory, tmp_path, number, favoured)
        answer = ask(memory)
        orders.append([hit.item.id for hit in answer.hits])
        seen.append(factors(answer))
        for hit in answer.hits:
            assert replay(hit.evidence) == pytest.approx(hit.score)

    assert {hit.item.id for hit in answer.hits} == {hit.item.id for hit in plain.hits}
    assert all(0.95 < factor < 1.05 for found in seen for factor in found.values())
    assert seen[-1][favoured] > 1.02
    assert max(factor for item, factor in seen[-1].items() if item != favoured) < 1
    assert orders[-4:] == [orders[-1]] * 4
    assert abs(seen[-1][favoured] - seen[-2][favoured]) < abs(seen[1][favoured] - seen[0][favoured])
    # Who was clearly ahead still is.
    scores = {hit.item.id: hit.score for hit in plain.hits}
    place = {item: number for number, item in enumerate(orders[-1])}
    for one, high in scores.items():
        for other, low in scores.items():
            assert high < 1.11 * low or one == other or place[one] < place[other]
    # What nobody votes for any more is forgotten by and by.
    memory.session.clock.now += timedelta(days=300)
    assert all(abs(factor - 1) < 0.005 for factor in factors(ask(memory)).values())
    why = [reason.why for hit in ask(memory).hits for reason in hit.evidence]
    assert "used in 10 of 10 sessions that were given it" in why


def test_silence_and_the_own_session_have_no_vote(memory: Memory, tmp_path: Path) -> None:
    """Nothing is voted without a transcript, in the past, or by the session of the memory."""
    text = "Who asks the staging server for a port must be on the list of Ylva"
    own = memory.remember(text, session="session 1").id
    session_state(memory, "quiet").add_shown([(own, "Stop", 9, START.isoformat())], "", "on")
    helped(memory, "quiet")
    assert factors(ask(memory)) == {}

    hold_session(memory, tmp_path, 1, own)
    assert own not in read_votes(memory.settings, "laws")
    hold_session(memory, tmp_path, 2, own)
    ((value, at),) = read_votes(memory.settings, "laws")[own].values()
    assert (value, at) == (1.0, memory.now.timestamp())
    assert factors(memory.recall(QUESTION, as_of=memory.now)) == {}


def test_what_an_update_replaced_stays_below_it(memory: Memory, tmp_path: Path) -> None:
    memory.session.clock.now += timedelta(days=1)
    memory.remember("The staging server uses port 9000 now")
    older = next(hit.item.id for hit in ask(memory).hits if "8443" in hit.item.text)
    for number in range(4):
        hold_session(memory, tmp_path, number, older)

    texts = [hit.item.text for hit in ask(memory).hits]
    assert texts.index("The staging server uses port 9000 now") < texts.index(TEXTS[0])
