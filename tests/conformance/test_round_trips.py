"""How often a recall and a write wait for a PostgreSQL server."""

from __future__ import annotations

import hashlib
import json
from importlib.resources import files
from pathlib import Path

import pytest

from bethink import Memory
from bethink.model import Recall
from postgres_server import CITUS, initialised_url

pytest.importorskip("psycopg")

from round_trips import round_trips

MOST_FOR_A_RECALL = 6
MOST_FOR_A_WRITE = 12
MOST_FOR_ANOTHER_PROFILE = {
    "siftcoder": 5,
    "memind-simple": 9,
    "memind-deep": 11,
    "linksee": 12,
    "remind": 15,
    "abmind": 15,
}
NOTES = files("bethink.eval") / "builtin" / "notes"


def lines(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (NOTES / name).read_text().splitlines()]


@pytest.mark.skipif(bool(CITUS), reason="a coordinator has round trips of its own")
def test_judging_turns_waits_for_nothing_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a caller said of them is read with what a recall reads anyway."""
    space = f"turns-{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}"
    turns = [
        {"text": text, "speaker": "user", "session": f"s{day}", "occurred_at": f"2026-09-0{day}"}
        for day, text in enumerate(
            [
                "I drink four coffees a day.",
                "My dentist is Dr Lang in the Berlin street.",
                "I drink two coffees a day now.",
                "My dentist is now Dr Weiss in the Berlin street.",
                "I drink three coffees a day today.",
                "My dentist is Dr Adam in the Berlin street these days.",
            ],
            start=1,
        )
    ]
    with (
        round_trips(monkeypatch) as trips,
        Memory.open(space, store=initialised_url()) as memory,
    ):
        plain = memory.using(judging=False)
        plain.remember_many(turns)
        for one in (plain, memory):
            one.recall("What has my dentist to do with coffees?")
        for asked in ("How many coffees a day do I drink?", "Who is my dentist?"):
            answers: list[Recall] = []
            waited = [
                trips.of(lambda by=one, to=answers, text=asked: to.append(by.recall(text)))
                for one in (plain, memory)
            ]
            judged = {hit.item.id for hit in answers[1].hits if hit.reason("newer_first")}
            assert judged, "no pair was judged an update"
            assert waited[1] <= waited[0] <= MOST_FOR_A_RECALL, (asked, waited)


@pytest.mark.skipif(bool(CITUS), reason="a coordinator has round trips of its own")
def test_a_recall_and_a_write_wait_seldom_for_the_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A recall waits at most six times, a write twelve times, whatever they find.

    Each of the other profiles waits as often as its own limit says. In a process that has opened
    the space before; what it keeps of it is read once.
    """
    space = f"trips-{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:16]}"
    notes, questions = lines("backend-team.jsonl"), lines("backend-team.questions.jsonl")
    with (
        round_trips(monkeypatch) as trips,
        Memory.open(space, store=initialised_url()) as memory,
    ):
        memory.remember_many([note["text"] for note in notes[:-12]])
        memory.remember("The first write and the first recall read what is kept")
        memory.recall("what is kept?")
        written = [
            trips.of(lambda text=note["text"]: memory.remember(text)) for note in notes[-12:]
        ]
        memory.recall("what is kept?")
        asked = [
            trips.of(lambda text=question["question"]: memory.recall(text))
            for question in questions[:40]
        ]
        of_others = {
            profile: [
                trips.of(lambda text=one["question"], by=profile: memory.recall(text, profile=by))
                for one in questions[:25]
            ][1:]  # the first reads what is kept
            for profile in MOST_FOR_ANOTHER_PROFILE
        }
    assert max(written) <= MOST_FOR_A_WRITE, written
    assert max(asked) <= MOST_FOR_A_RECALL, asked
    for profile, most in MOST_FOR_ANOTHER_PROFILE.items():
        assert max(of_others[profile]) <= most, (profile, of_others[profile])
