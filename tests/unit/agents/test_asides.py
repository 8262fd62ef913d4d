"""Prompts that ask nothing of a memory."""

from __future__ import annotations

import subprocess
import sys

from bethink.importers.turn_text import needs_no_memory
from rows import each_row


@each_row(
    "prompt",
    ["", "   ", "yes", "Yes.", "ok, go ahead", "go on", "continue", "thanks!", "/clear",
     "/plugin:cmd some words", "!ls -la", "Hi there!", "ja, weiter", "继续", "はい", "y", "👍", "..."],
)  # fmt: skip
def test_asides_are_not_asked(prompt: str) -> None:
    """Commands, assent and nothing at all are no questions to a memory."""
    assert needs_no_memory(prompt)


@each_row(
    "prompt",
    ["which port?", "fix the login", "why?", "and then what did we do about it?", "5433",
     "no, use tabs", "/etc/hosts is wrong, fix it", "ok but why is the build red", "继续修复登录的错误",
     "yes " * 30, "# Task\nMove the parser", "#1423 is red again"],
)  # fmt: skip
def test_everything_else_is(prompt: str) -> None:
    """A prompt that could mean something is asked."""
    assert not needs_no_memory(prompt)


def test_an_aside_ends_its_hook_before_anything_is_loaded() -> None:
    """The host waits for the hook of every prompt: no settings, no paths, no store."""
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from bethink.cli import main\n"
        "code = main(['hook', 'user-prompt-submit'])\n"
        "heavy = {'bethink.config.settings', 'bethink.memory', 'hashlib', 'inspect', 'pathlib'}\n"
        "sys.exit(f'{code} {sorted(heavy & set(sys.modules) - before)}')"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], input='{"prompt": "yes, thanks"}', capture_output=True,
        text=True, check=False,
    )  # fmt: skip

    assert (ran.stdout, ran.stderr.strip()) == ("", "0 []")
