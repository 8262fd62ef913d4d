"""A session of the OpenAI Agents SDK that is a memory: kept exactly, and to be asked about."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from recollect.errors import Refused
from recollect.integrations.exact import OnRedaction, Redaction, check_json, exactly
from recollect.integrations.opaque import in_pieces, whole
from recollect.integrations.opening import missing, open_memory
from recollect.integrations.transcript import MOST_BYTES, Transcript, Turn
from recollect.memory import Memory

try:
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
except ModuleNotFoundError as error:
    raise missing(
        error, "the OpenAI Agents SDK", extra="openai-agents", modules="agents openai"
    ) from error

__all__ = ["RecollectSession"]

_SOURCE = "openai-agents"
_LONGEST_WORD = 200  # longer ones are ids, pictures and ciphers: kept, but nothing to read
_T = TypeVar("_T")


class RecollectSession(SessionABC):
    """A conversation that an agent goes on with, kept in a space of Recollect.

    Items come back as they were added, in their order, also those of tools and of
    reasoning; secrets in them are taken out as everywhere, a mark stands in their place,
    and ``on_redaction`` is told. What was said can be recalled by questions, in this
    session and in others. ``pop_item`` and ``clear_session`` forget: what is gone from the
    conversation is gone from recall, and ``recollect restore`` would bring it back.
    """

    def __init__(
        self,
        session_id: str,
        memory: Memory | str | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        on_redaction: OnRedaction | None = None,
    ) -> None:
        self.session_id = session_id
        given = session_settings or {}
        self.session_settings = SessionSettings(**given) if isinstance(given, dict) else given
        self.memory = open_memory(memory)
        self._on_redaction = on_redaction
        self._transcript = Transcript(self.memory, session_id, _SOURCE, _is_item)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation, oldest first; with a limit its last so many items."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        bodies = await asyncio.to_thread(self._transcript.bodies, limit)
        return [_item(body) for body in bodies]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items at the end."""
        if items:
            await _finished(lambda: self._transcript.add([self._turn(item) for item in items]))

    async def pop_item(self) -> TResponseInputItem | None:
        """Takes the last item away and gives it; None where there is none."""
        body = await _finished(self._transcript.pop)
        return None if body is None else _item(body)

    async def clear_session(self) -> None:
        """Takes the whole conversation away."""
        await _finished(self._transcript.clear)

    def _turn(self, item: TResponseInputItem) -> Turn:
        if not isinstance(item, Mapping):
            raise Refused(f"an item is a JSON object, not a {type(item).__name__}")
        check_json(item, "the item")
        kept = exactly(in_pieces(item), "the item", most_bytes=MOST_BYTES)
        if kept.redacted and self._on_redaction is not None:
            self._on_redaction(Redaction(f"session {self.session_id}", kept.redacted))
        said = whole(kept.value)
        speaker = _speaker(said)
        return Turn(words(said), kept.text, speaker, _CLASSES.get(speaker, "agent"))


_CLASSES = {"user": "user", "tool": "tool"}


def _item(body: str) -> TResponseInputItem:
    return cast("TResponseInputItem", whole(json.loads(body)))


def _is_item(body: str) -> bool:
    try:
        return isinstance(whole(json.loads(body)), dict)
    except (ValueError, AttributeError):
        return False


def _speaker(item: Mapping[str, Any]) -> str:
    role = item.get("role")
    if isinstance(role, str) and role.strip():
        return role.strip()[:100]
    kind = item.get("type")
    return "tool" if isinstance(kind, str) and kind.endswith("_output") else "assistant"


def words(item: Mapping[str, Any]) -> str:
    """What an item says, for finding it: its texts, and what a tool was asked and answered."""
    if item.get("type") == "function_call":
        return f"{item.get('name')}({item.get('arguments')})"
    said = (item.get(name) for name in ("content", "output", "summary"))
    texts = [text for part in said for text in _texts(part)]
    if not texts:
        texts = [text for name, part in item.items() if name not in _NAMES for text in _texts(part)]
    return "\n".join(texts)


_NAMES = ("id", "call_id", "type", "role", "status")


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        wordy = len(value) <= _LONGEST_WORD or any(char.isspace() for char in value)
        return [value] if wordy and value else []
    if isinstance(value, Mapping):
        return [text for name, part in value.items() if name not in _NAMES for text in _texts(part)]
    if isinstance(value, Sequence):
        return [text for part in value for text in _texts(part)]
    return []


async def _finished(work: Callable[[], _T]) -> _T:
    """Does work beside the event loop and waits for its end, even where the caller is
    called off: nobody goes on while half a change is still to come."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    called_off: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            called_off = error
    if called_off is not None:
        task.exception()  # looked at, so that nobody warns of it
        raise called_off
    return task.result()
