"""What became of memories that hooks showed, as the transcript tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bethink import Memory
from bethink.agents.helped import Arm, Helped, helped
from bethink.agents.session import session_state
from bethink.config.settings import Settings

TEXTS = [
    "The deploy key is rotated by rotate-keys.sh",
    "Staging listens on port 8443",
    "Prices come in cents",
    "The cache lives in redis-7",
]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    settings = Settings(project=tmp_path, data_dir=tmp_path / "data")
    with Memory.open("h", path=tmp_path / "h.db", settings=settings, embedder="none") as opened:
        yield opened


def line(second: int, kind: str, *parts: object, **usage: int) -> str:
    at = f"2026-05-03T10:00:{second:02d}+00:00"
    return json.dumps(
        {"type": kind, "timestamp": at, "message": {"content": list(parts), "usage": usage}}
    )


def test_each_memory_has_a_verdict(memory: Memory, tmp_path: Path) -> None:
    """Cited, followed by a word that was new, or ignored; nothing is told of an erased one."""
    ids = [memory.remember(text).id for text in TEXTS]
    transcript = tmp_path / "t.jsonl"
    lines = [
        line(1, "user", {"type": "text", "text": "does the cache need redis-7?"}),
        line(5, "assistant", {"type": "text", "text": f"As {ids[1]} says"}, output_tokens=7),
        line(
            6, "assistant", {"type": "tool_use", "input": {"command": "sh rotate-keys.sh redis-7"}}
        ),
        line(7, "user", {"type": "tool_result", "is_error": True, "content": "no"}),
        "{broken",
        json.dumps({"type": "summary"}),
        "[]",
    ]
    transcript.write_text("\n".join(lines), encoding="utf-8")
    rows = [(item, "PreToolUse", 20, "2026-05-03T10:00:02+00:00") for item in ids]
    session_state(memory, "s").add_shown(rows, str(transcript), "on")

    found = helped(memory)
    verdicts = {one.item: one.verdict for one in found.shown}
    assert [verdicts[item] for item in ids] == ["followed", "cited", "ignored", "ignored"]
    assert found.arms == {"on": Arm(1, (1,), (7,))}
    assert found.by_event()["PreToolUse"].total() == 4
    assert list(found.by_item())[-1] in ids[2:]
    assert found.difference("failures") is None

    memory.forget(ids[0], erase=True)
    assert ids[0] not in {one.item for one in helped(memory).shown}


def test_without_a_transcript_nothing_is_claimed(memory: Memory) -> None:
    stored = memory.remember(TEXTS[0]).id
    row = (stored, "SessionStart", 20, "2026-05-03T10:00:02+00:00")
    session_state(memory, "s").add_shown([row], "/nowhere/t.jsonl", "on")
    session_state(memory, "off").add_shown([row], "", "off")

    (one,) = helped(memory).shown
    assert one.verdict == "unseen"


def test_the_two_halves_are_compared_from_thirty_sessions_on() -> None:
    """With an interval that contains nothing where nothing differs."""
    arms = {"on": Arm(30, (1,) * 30, (5,) * 30), "off": Arm(30, (3,) * 30, (5,) * 30)}
    assert Helped((), arms).difference("failures") == (-2.0, -2.0, -2.0)
    assert Helped((), arms).difference("tokens") == (0.0, 0.0, 0.0)
    assert Helped((), {"on": arms["on"]}).difference("failures") is None
