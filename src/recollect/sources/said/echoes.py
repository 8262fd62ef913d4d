"""Tells what somebody said from what they only repeat of what Recollect had given them.

Compared is by runs of four words: a sentence whose words mostly lie in runs that were
given is an echo. Of an agent half is enough, for it is apt to put words of its own around
what it quotes; of a user every word must be, for one word more ("not") or another one
("5434") corrects the memory that it repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from recollect.text import fold, sentences

RUN = 4
ECHOED_BY = {"user": 1.0, "assistant": 0.5}
LEAST_LEFT = 3  # words; less is what led in to a quotation
# Scripts without spaces are compared by the character.
_WORD = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]|[^\W_]+(?:[-.'/:_]\w+)*"
)


class Given:
    """What was given in a session so far, as runs of words."""

    def __init__(self) -> None:
        self._runs: set[int] = set()

    def add(self, texts: Iterable[str]) -> None:
        """Adds texts that were given."""
        for text in texts:
            for part in sentences(text):
                self._runs.update(_runs(_words(part)))

    def own_words(self, text: str, who: str) -> str:
        """The text without its echoes; empty where too little is left to be worth keeping."""
        if not self._runs:
            return text
        lines = [self._own(line, ECHOED_BY[who]) for line in text.splitlines()]
        if all(kept == line for kept, line in zip(lines, text.splitlines(), strict=True)):
            return text
        own = "\n".join(line for line in lines if line is not None).strip()
        return own if len(_words(own)) >= LEAST_LEFT else ""

    def _own(self, line: str, echoed_by: float) -> str | None:
        parts = sentences(line)
        own = [part for part in parts if self._share(_words(part)) < echoed_by]
        if len(own) == len(parts):
            return line
        return " ".join(own) if own else None

    def _share(self, words: list[str]) -> float:
        """How much of a sentence lies in runs that were given."""
        covered = [False] * len(words)
        for at, run in enumerate(_runs(words)):
            if run in self._runs:
                covered[at : at + RUN] = [True] * RUN
        return sum(covered) / max(1, len(words))


def _words(text: str) -> list[str]:
    return _WORD.findall(fold(text))


def _runs(words: list[str]) -> list[int]:
    return [hash(tuple(words[at : at + RUN])) for at in range(len(words) - RUN + 1)]
