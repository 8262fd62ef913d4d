"""A worker's answer is that of the process that asks: for every profile, to the last byte."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import warm
from asking import answered_here, asked
from bethink import Memory
from bethink.config.settings import Settings
from bethink.retrieval.profile import profile_names
from bethink.worker.client import request_worker
from corpus import CONVERSATION, NOTES, NOW
from rows import each_row
from worker_desk import Desk

QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("where is the deploy key?", {}),
    ("what did we decide about the database?", {"kind": ("decision",), "k": 3}),
    ("who said what in the standup last week?", {"max_tokens": 60, "episode_k": 2}),
    ("how do I bake bread?", {}),
    ("", {"entity": ("Anna",)}),
    ("keys", {"as_of": "2026-02-20", "include_superseded": True, "offset": 1}),
    ("parse_config", {"context": {"hour": 9, "topic": "ops"}, "reranker": "overlap"}),
]


@pytest.fixture(scope="module")
def asked_here(tmp_path_factory):
    """A worker, and a memory of the same space in this process."""
    desk = Desk(tmp_path_factory.mktemp("equality"))
    desk.settings = Settings(
        space="here", data_dir=desk.settings.data_dir, worker="on", worker_idle=60
    )
    with Memory.open(settings=desk.settings) as memory:
        memory.remember_many([*NOTES, *CONVERSATION])
        yield desk, memory
    desk.close()


@each_row("profile", sorted(profile_names()))
def test_the_json_is_the_same_to_the_last_byte(asked_here, profile):
    """Ids, scores, order, evidence, relations, sections, cursor; found or not found."""
    desk, memory = asked_here
    for text, options in QUESTIONS:
        payload = asked(text, profile, {**options, "track": False}, NOW)

        assert desk.make_request("recall", payload) == answered_here(memory, "recall", payload), (
            text
        )


def test_the_steps_are_the_same_but_for_the_time_they_took(asked_here):
    """Names, pools and remarks."""
    desk, memory = asked_here
    payload = asked("where is the deploy key?", None, {}, NOW, True, candidates=None)

    theirs = json.loads(desk.make_request("recall", payload)["text"])["trace"]["steps"]
    own = json.loads(answered_here(memory, "recall", payload)["text"])["trace"]["steps"]

    assert own
    assert [step | {"milliseconds": 0} for step in theirs] == [
        step | {"milliseconds": 0} for step in own
    ]


def test_why_not_and_comparisons_are_the_same(asked_here):
    """By the same functions, in the worker or here."""
    desk, memory = asked_here
    given = ("where is the deploy key?", None, {}, NOW)
    payloads = [("why-not", asked(*given, item_id=item.id)) for item in memory.browse(limit=5)]
    payloads.append(("compare", asked(*given, profiles=["default", "remind"])))
    for kind, payload in payloads:
        assert desk.make_request(kind, payload) == answered_here(memory, kind, payload)


def test_a_use_is_counted_once_where_the_answer_was_lost(asked_here):
    """Asked again with the same id, of the worker or here; another id is another use."""
    desk, memory = asked_here
    item = memory.recall("where is the deploy key?", now=NOW, k=1, track=False).hits[0].item.id

    def uses() -> int:
        found = memory.store.activity.usage([item], memory.now).get(item)
        return found.recalls if found else 0

    def payload(request: str) -> dict[str, Any]:
        return asked("where is the deploy key?", None, {"track": True}, None, False, request)

    before = uses()
    first = desk.make_request("recall", payload("a"))
    assert uses() == before + 1
    again = desk.make_request("recall", payload("a"))
    answered_here(memory, "recall", payload("a"))
    assert uses() == before + 1
    assert json.loads(first["text"])["order"] == json.loads(again["text"])["order"]
    desk.make_request("recall", payload("b"))
    assert uses() == before + 2


SCRIPT = str(Path(sys.executable).with_name("bethink"))
COMMANDS = [
    ["recall", "where is the deploy key?", "--now", "2026-03-02T09:00", "--json"],
    ["recall", "where is the deploy key?", "--now", "2026-03-02T09:00", "--explain"],
    ["recall", "deploy key", "--profile", "remind", "--no-track", "--text", "--now", "2026-03-02"],
    ["recall", "how do I bake bread?", "--now", "2026-03-02T09:00"],
    ["recall", "x", "--profile", "nonsense"],
    ["why-not", "ffff", "deploy key"],
    ["compare", "deploy key", "--profiles", "default,siftcoder", "--now", "2026-03-02T09:00"],
]


def test_the_command_line_says_the_same_with_and_without_a_worker(asked_here, tmp_path):
    """Every byte of it, and the same exit code; mistakes are told in the same words."""
    desk, _ = asked_here
    env = {name: value for name, value in os.environ.items() if not name.startswith("BETHINK_")}
    env |= {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_RUNTIME_DIR": str(desk.runtime),
        "BETHINK_DATA_DIR": str(desk.settings.data_dir),
        "BETHINK_SPACE": "here",
    }

    def run(words: list[str], worker: str) -> tuple[int, str, str]:
        ran = warm.run(
            [SCRIPT, *words], env=env | {"BETHINK_WORKER": worker}, cwd=tmp_path,
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return ran.returncode, ran.stdout, ran.stderr

    try:
        for words in COMMANDS:
            assert run(words, "on") == run(words, "off"), words
        code, out, _ = run(["worker", "status", "--json"], "auto")
        told = json.loads(out)
    finally:
        run(["worker", "stop"], "auto")
    assert code == 0
    assert told["running"] is True
    assert told["jobs"]["done"] == 5  # the others are mistakes


def test_an_answer_by_a_network_is_the_same(asked_here):
    """A network, loaded once by the worker."""
    desk, _ = asked_here
    settings = replace(desk.settings, embedder="encoder", space="heavy")
    payload = asked("where is the deploy key?", None, {}, NOW)
    with Memory.open(settings=settings) as memory:
        memory.remember_many(NOTES[:8])

        told = request_worker("recall", payload, settings=settings, place=desk.place)

        assert told == answered_here(memory, "recall", payload)
