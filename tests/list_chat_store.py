"""The short-term part of a LlamaIndex memory, without a database of its own."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.storage.chat_store.base_db import AsyncDBChatStore, MessageStatus


class ListChatStore(AsyncDBChatStore):
    """Messages in a list: the short-term part, without a database of its own."""

    active: list[ChatMessage] = []  # noqa: RUF012 - a field of a model
    archived: list[ChatMessage] = []  # noqa: RUF012 - a field of a model

    async def get_messages(
        self,
        key: str,
        status: MessageStatus | None = MessageStatus.ACTIVE,
        **kwargs: Any,
    ) -> list[ChatMessage]:
        return [each.model_copy(deep=True) for each in self.active]

    async def count_messages(self, key: str, status: Any = None) -> int:
        return len(self.active)

    async def add_message(self, key: str, message: ChatMessage, status: Any = None) -> None:
        self.active.append(message)

    async def add_messages(self, key: str, messages: list[ChatMessage], status: Any = None) -> None:
        self.active.extend(messages)

    async def set_messages(self, key: str, messages: list[ChatMessage], status: Any = None) -> None:
        self.active[:] = messages

    async def delete_message(self, key: str, idx: int) -> ChatMessage | None:
        return self.active.pop(idx)

    async def delete_messages(self, key: str, status: Any = None) -> None:
        self.active.clear()

    async def delete_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        gone, self.active[:] = self.active[:n], self.active[n:]
        return gone

    async def archive_oldest_messages(self, key: str, n: int) -> list[ChatMessage]:
        gone = await self.delete_oldest_messages(key, n)
        self.archived.extend(gone)
        return gone

    async def get_keys(self) -> list[str]:
        return []
