"""Claude.ai's data export: ``conversations.json``, in its zip or alone.

Taken are the words of both sides, and of files that were attached their names. Left out
are thoughts, tools at work and what attached files say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from recollect.errors import Refused
from recollect.sources.chats import Conversations, Said, Talk, turns_of
from recollect.sources.source import Entry, digest
from recollect.sources.values import line_of, list_of, mapping_of, text_of, time_of

_SENDERS: dict[str, Literal["user", "assistant"]] = {
    "human": "user",
    "user": "user",
    "assistant": "assistant",
}


class ClaudeAi(Conversations):
    """One export."""

    def _turns(self, found: Any, where: str) -> Iterator[Entry]:
        chat = mapping_of(found)
        if isinstance(found, Refused) or not isinstance(chat.get("chat_messages"), list):
            refused = found if isinstance(found, Refused) else Refused("it is no conversation")
            yield Entry(where, refused)
            return
        title = line_of(chat.get("name"))
        own = text_of(chat.get("uuid")) or digest(title, text_of(chat.get("created_at")))
        yield from turns_of(Talk("claude", own, title, where), _said(chat["chat_messages"]))


def _said(messages: list[Any]) -> Iterator[Said]:
    for one in messages:
        message = mapping_of(one)
        who = _SENDERS.get(text_of(message.get("sender")))
        text = _text(message)
        if who is not None and text:
            yield Said(text_of(message.get("uuid")), who, text, time_of(message.get("created_at")))


def _text(message: dict[str, Any]) -> str:
    """The blocks of text; older exports have the text alone."""
    blocks = [mapping_of(block) for block in list_of(message.get("content"))]
    spoken = [text_of(block.get("text")) for block in blocks if block.get("type") == "text"]
    words = "\n\n".join(filter(None, spoken)) or (
        text_of(message.get("text")) if not blocks else ""
    )
    files = [*list_of(message.get("attachments")), *list_of(message.get("files"))]
    names = filter(None, (line_of(mapping_of(file).get("file_name")) for file in files))
    return "\n\n".join(filter(None, (words, *(f"[file: {name}]" for name in dict.fromkeys(names)))))
