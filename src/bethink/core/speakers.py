"""Texts with their speakers and captions, as they are shown and searched."""

from __future__ import annotations

from typing import Protocol

from bethink.core.words import word_set

# Names of the roles in a chat; no names of persons.
ROLES = frozenset(
    ("user", "assistant", "system", "human", "ai", "bot", "tool", "agent", "model", "function")
)


class Utterance(Protocol):
    """A text with its speaker, if known."""

    @property
    def text(self) -> str: ...

    @property
    def speaker(self) -> str | None: ...


def with_speaker(turn: Utterance) -> str:
    """The text prefixed with its speaker's name, as in a script."""
    if not turn.speaker or turn.speaker.casefold() in ROLES:
        return turn.text
    return f"{turn.speaker}: {turn.text}"


class Captioned(Utterance, Protocol):
    """An utterance that may have a caption."""

    @property
    def caption(self) -> str | None: ...


def own_caption(memory: Captioned) -> str:
    """The caption where it says more than the text does, else nothing."""
    if not memory.caption:
        return ""
    # A shortened caption may end within a word.
    line = memory.caption[:-1].rpartition(" ")[0] if memory.caption[-1] == "…" else memory.caption
    spoken = f"{memory.speaker}: {memory.text}" if memory.speaker else memory.text
    if line in spoken or word_set(line) <= word_set(spoken):
        return ""
    return memory.caption


def searched_text(memory: Captioned) -> str:
    """The text that is compared by meaning: a caption of its own, the speaker, the text."""
    own = own_caption(memory)
    return f"{own}\n{with_speaker(memory)}" if own else with_speaker(memory)
