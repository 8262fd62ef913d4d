"""ChatGPT's data export: ``conversations.json``, in its zip or alone.

A conversation is a tree of messages, because they can be edited and answered anew; what
is taken is the branch that was last looked at. Left out is what neither side said:
instructions, tools at work, thoughts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal

from recollect.errors import Refused
from recollect.sources.chats import Conversations, Said, Talk, turns_of
from recollect.sources.source import Entry, digest
from recollect.sources.values import line_of, list_of, mapping_of, text_of, time_of

_ROLES: dict[str, Literal["user", "assistant"]] = {"user": "user", "assistant": "assistant"}
_SPOKEN = ("text", "multimodal_text", "code")
# Marks in an answer that stand for a source; where it leads is not in the text.
_CITED = re.compile(
    r"[ \t]*(?:\ue200[^\ue200\ue201\n]{0,500}\ue201|【\d{1,4}(?::\d{1,4})?†[^】\n]{0,200}】)"
)
_SEEN = {
    "image_asset_pointer": "[image]",
    "audio_asset_pointer": "",
    "real_time_user_audio_video_asset_pointer": "",
}


class ChatGpt(Conversations):
    """One export."""

    def _turns(self, found: Any, where: str) -> Iterator[Entry]:
        chat = mapping_of(found)
        mapping = mapping_of(chat.get("mapping"))
        if isinstance(found, Refused) or not mapping:
            refused = found if isinstance(found, Refused) else Refused("it is no conversation")
            yield Entry(where, refused)
            return
        title = line_of(chat.get("title"))
        own = text_of(chat.get("conversation_id")) or text_of(chat.get("id"))
        talk = Talk("chatgpt", own or digest(title, str(chat.get("create_time"))), title, where)
        yield from turns_of(talk, _said(mapping, text_of(chat.get("current_node"))))


def _said(mapping: dict[str, Any], current: str) -> Iterator[Said]:
    for name in reversed(_branch(mapping, current)):
        message = mapping_of(mapping_of(mapping[name]).get("message"))
        who = _ROLES.get(text_of(mapping_of(message.get("author")).get("role")))
        if who is None or not _is_visible(message):
            continue
        text = _text(mapping_of(message.get("content")))
        if text:
            own = text_of(message.get("id")) or name
            yield Said(own, who, text, time_of(message.get("create_time")))


def _branch(mapping: dict[str, Any], current: str) -> list[str]:
    """Names of the nodes from the last one up to the root; a circle is left where it closes."""
    name = current if current in mapping else _last_leaf(mapping)
    seen: dict[str, None] = {}
    while name in mapping and name not in seen:
        seen[name] = None
        name = text_of(mapping_of(mapping[name]).get("parent"))
    return list(seen)


def _last_leaf(mapping: dict[str, Any]) -> str:
    """Where the export does not say which branch was last: the last that has no answer."""
    leaves = [name for name, node in mapping.items() if not mapping_of(node).get("children")]
    return leaves[-1] if leaves else next(reversed(mapping))


def _is_visible(message: dict[str, Any]) -> bool:
    """Whether it was said to the other side: not hidden, and not addressed to a tool."""
    if mapping_of(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        return False
    return text_of(message.get("recipient")) in ("", "all")


def _text(content: dict[str, Any]) -> str:
    kind = text_of(content.get("content_type"))
    if kind not in _SPOKEN:
        return ""
    if kind == "code":
        return text_of(content.get("text"))
    return "\n\n".join(filter(None, map(_part, list_of(content.get("parts")))))


def _part(part: object) -> str:
    if isinstance(part, str):
        return _CITED.sub("", part).strip()
    told = mapping_of(part)
    return text_of(told.get("text")) or _SEEN.get(text_of(told.get("content_type")), "")
