"""What somebody said, without what the host wrapped around it or put beside it."""

from __future__ import annotations

import re

from recollect.sources.said.fences import without_fences

# What a host writes into a message in its own name, tags and all.
_HOST_TAGS = (
    *("system-reminder", "local-command-caveat", "local-command-stdout", "local-command-stderr"),
    *("command-name", "command-message", "command-args", "command-contents"),
    *("bash-input", "bash-stdout", "bash-stderr", "user-memory-input", "task-notification"),
    *("persisted-output", "user-prompt-submit-hook", "session-start-hook", "teammate-message"),
    *("ide_opened_file", "ide_selection", "ide_diagnostics", "post-tool-use-hook"),
)
_OPENING = re.compile(rf"<({'|'.join(_HOST_TAGS)})(?:\s[^<>\n]{{0,200}})?>")
_NOTES = re.compile(
    r"\[Request interrupted by user[^\]\n]{0,40}\]|\[Image #\d+\]|\[Pasted text #\d+[^\]\n]{0,40}\]"
    r"|\A\s*(?:Caveat: The messages below were generated|This session is being continued from a"
    r" previous|Stop hook feedback:|(?:UserPromptSubmit|SessionStart|PostToolUse)(?::\w+)? hook)"
    r"[\s\S]*"
)
_BLANK = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_SURROGATE = re.compile("[\ud800-\udfff]")


def keepable(text: str) -> str:
    """A text without what no store can keep: NUL is left out, lone surrogates are replaced."""
    if text.isascii():
        return text.replace("\x00", "")
    return _SURROGATE.sub("\ufffd", text.replace("\x00", ""))


def spoken(text: str) -> str:
    """What was said in a message; empty where all of it comes from the host or from us."""
    said = keepable(text)
    if "<" in said:
        said = without_fences(_without_tags(said))
    said = _NOTES.sub("", without_fences(said))
    return _BLANK.sub("\n\n", said).strip()


def _without_tags(text: str) -> str:
    """Without what stands in a host's tags; one that is not closed reaches to the end."""
    kept, place = [], 0
    while opening := _OPENING.search(text, place):
        kept.append(text[place : opening.start()])
        closing = f"</{opening[1]}>"
        end = text.find(closing, opening.end())
        place = len(text) if end < 0 else end + len(closing)
    kept.append(text[place:])
    return "".join(kept)
