"""No text that anybody can type ends in anything but an answer or a refusal by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from caller import Caller

from rows import each_row
from thorough import share

TEXTS = [
    '"', "'", "''", '""', "`", "\\", "\\\\", "%", "%s%n", "{}", "{0}", "$HOME", "$(id)", "`id`",
    "*", "(", ")", "NEAR(", "AND", "OR NOT", "a AND", "text:", "^a", "a*", "--", "---", "a -b",
    "'; DROP TABLE item; --", "1 OR 1=1", "\x00", "a\x00b", "\udcff", "\ud800", "a\udc80b",
    "\x1b[2J", "\x9b31m", "\r", "\r\n", "\t", "\x07", "\x7f", "\x85", "\u2028", "\u2029",
    "\u202e", "\u2066", "\u200b", "\u200d", "\ufeff", "\ufffe", "\U0010ffff", "\U000e0041",
    "é", "e\u0301", "漢字", "ไทย", "🦊", "👩\u200d👩\u200d👧", "Ω" * 300, "a" * 5000, " " * 10,
    "null", "NaN", "true", "[]", '{"a": 1}', "<script>", "&amp;", "../../etc/passwd", "[red]x[/red]",
    "[/]", "a\nb\n\nc", "-1", "1e999", "0x", "@file", "~", "#", "!", "?", "ﷺ" * 20, "z\u0335" * 200,
]  # fmt: skip

Call = Callable[..., tuple[int, str]]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Nothing that is called may end in trouble."""
    caller = Caller(tmp_path, monkeypatch, capsys)

    def called(*words: str) -> tuple[int, str]:
        said = caller(*words)
        assert said.code in (0, 1, 2), (words, said.err)
        return said.code, said.out

    return called


def test_memories_come_back_as_they_were(call: Call) -> None:
    """Or are refused by name; JSON tells which."""
    for text in TEXTS:
        code, said = call("remember", "--json", "--", text)
        told = json.loads(said)
        if code == 0 and told["status"] == "stored":
            _, shown = call("show", told["id"], "--json")
            assert json.loads(shown)["text"] == text
        elif code != 0:
            assert told["error"]["message"]


def test_questions_are_answered(call: Call) -> None:
    """Any text is a question, or is refused by name."""
    call("remember", "An ordinary memory of an ordinary day")
    for text in TEXTS:
        for form in ([], ["--json"]):
            call("recall", *form, "--", text)


TAKERS = [
    ["recall", "memory", "--kind"], ["recall", "memory", "--tag"],
    ["recall", "memory", "--entity"], ["recall", "memory", "--since"],
    ["recall", "memory", "--as-of"], ["recall", "memory", "--cursor"],
    ["recall", "memory", "--profile"], ["recall", "memory", "-k"], ["list", "--topic"],
    ["list", "--after"], ["entities", "--prefix"], ["show", "--"], ["history", "--"],
    ["timeline", "--"], ["restore", "--"], ["forget", "--yes", "--"], ["config", "get", "--"],
    ["config", "--"], ["spaces", "path", "--"], ["spaces", "remove", "--"],
    ["profiles", "show", "--"], ["import", "--dry-run", "--"], ["compare", "x", "--profiles"],
    ["remember", "a memory", "--tag"], ["remember", "a memory", "--metadata"],
    ["remember", "a memory", "--occurred-at"], ["remember", "a memory", "--source"],
    ["remember", "a memory", "--key"], ["remember", "a memory", "--id"],
    ["remember", "a memory", "--session"], ["--space"],
]  # fmt: skip


@each_row("words", TAKERS, ids=" ".join)
def test_options_and_ids_take_anything(call: Call, words: list[str]) -> None:
    """Found, not found, or bad use: never trouble, never a traceback."""
    call("remember", "An ordinary memory of an ordinary day")
    rest = ["list"] if words == ["--space"] else []
    for text in share(TEXTS, TAKERS.index(words), of=3):
        call(*words, text, *rest)
