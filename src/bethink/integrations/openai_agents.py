"""OpenAI Agents SDK session on a memory: items are stored exactly and can be recalled."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar, cast

from bethink.async_memory import finish
from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.integrations import exact_json
from bethink.integrations.hits import missing_extra_error, open_memory
from bethink.integrations.transcript import MAX_TURN_BYTES, Transcript, Turn
from bethink.memory import Memory

__all__ = ["BethinkSession"]


try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
except ModuleNotFoundError as error:
    raise missing_extra_error(
        error, "the OpenAI Agents SDK", extra="openai-agents", modules="agents openai"
    ) from error

_SOURCE = "openai-agents"
_MAX_WORD_CHARS = 200  # longer ones are ids, images or ciphertext: stored, but not indexed
_T = TypeVar("_T")


class BethinkSession(SessionABC):
    """A session of an agent, stored in a space of Bethink.

    Items come back as they were added, in order, including tool and reasoning items; secrets in
    them are redacted and replaced by a mark, and ``on_redaction`` is called. What was said can
    be recalled by questions, in this session and in others. ``pop_item`` and ``clear_session``
    forget: removed items are gone from recall, and ``bethink restore`` would restore them.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | str | None = None,
        *,
        session_settings: SessionSettings | Json | None = None,
        on_redaction: exact_json.OnRedaction | None = None,
    ) -> None:
        self.session_id = session_id
        given = session_settings or {}
        self.session_settings = SessionSettings(**given) if isinstance(given, dict) else given
        self.memory = open_memory(memory)
        self._on_redaction = on_redaction
        self._thread = ThreadPoolExecutor(1, "bethink")
        self._transcript = Transcript(self.memory, session_id, _SOURCE, _is_item)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the conversation, oldest first; with a limit its last items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        bodies = await asyncio.to_thread(self._transcript.bodies, limit)
        return [_decode_item(body) for body in bodies]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items."""
        if items:
            await self._change(
                lambda: self._transcript.add([self._make_turn(item) for item in items])
            )

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the last item; None if there is none."""
        body = await self._change(self._transcript.pop)
        return None if body is None else _decode_item(body)

    async def clear_session(self) -> None:
        """Remove the whole conversation."""
        await self._change(self._transcript.clear)

    async def _change(self, work: Callable[[], _T]) -> _T:
        """Run work on a thread and wait for its end, even if the caller is cancelled."""
        return await finish(self._thread.submit(copy_context().run, work), always=True)

    def _make_turn(self, item: TResponseInputItem) -> Turn:
        if not isinstance(item, Mapping):
            raise Refused(f"an item must be a JSON object, not a {type(item).__name__}")
        exact_json.check_json(item, "the item")
        opaque = exact_json.encode_opaque(item)
        kept = exact_json.to_exact_json(opaque, "the item", max_bytes=MAX_TURN_BYTES)
        if kept.redacted and self._on_redaction is not None:
            self._on_redaction(exact_json.Redaction(f"session {self.session_id}", kept.redacted))
        said = exact_json.decode_opaque(kept.value)
        speaker = _speaker(said)
        return Turn(item_text(said), kept.text, speaker, _SOURCE_CLASSES.get(speaker, "agent"))


_SOURCE_CLASSES = {"user": "user", "tool": "tool"}


def _decode_item(body: str) -> TResponseInputItem:
    return cast("TResponseInputItem", exact_json.decode_opaque(json.loads(body)))


def _is_item(body: str) -> bool:
    try:
        return isinstance(exact_json.decode_opaque(json.loads(body)), dict)
    except (ValueError, AttributeError):
        return False


def _speaker(item: Mapping[str, object]) -> str:
    role = item.get("role")
    if isinstance(role, str) and role.strip():
        return role.strip()[:100]
    kind = item.get("type")
    return "tool" if isinstance(kind, str) and kind.endswith("_output") else "assistant"


def item_text(item: Mapping[str, object]) -> str:
    """Return an item's text for search: its texts, and a tool's arguments and output."""
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"
    said = (item.get(name) for name in ("content", "output", "summary"))
    return "\n".join([text for part in said for text in _texts(part)] or _texts(item))


_NON_TEXT_FIELDS = ("id", "call_id", "type", "role", "status")


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        wordy = len(value) <= _MAX_WORD_CHARS or any(char.isspace() for char in value)
        return [value] if wordy and value else []
    if isinstance(value, Mapping):
        return [
            text
            for name, part in value.items()
            if name not in _NON_TEXT_FIELDS
            for text in _texts(part)
        ]
    if isinstance(value, Sequence):
        return [text for part in value for text in _texts(part)]
    return []
