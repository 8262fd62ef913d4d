"""Prompts that ask nothing of a memory: commands, "yes", "go on", nothing at all."""

from __future__ import annotations

import re

from recollect.sources.said.assent import is_assent

# Commands and shell lines of the host.
_COMMAND = re.compile(r"/[\w:-]+(?:\s|$)|!")


def is_aside(prompt: str) -> bool:
    """Whether no memory could help with a prompt."""
    text = prompt.strip()
    return not text or _COMMAND.match(text) is not None or is_assent(text)
