"""LlamaIndex retriever and memory block on a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from bethink.core.characters import has_substance
from bethink.core.json_values import Json
from bethink.integrations import hits
from bethink.integrations.documents import indexable_text
from bethink.integrations.transcript import session_name, split_text
from bethink.memory import Memory
from bethink.model import Draft

__all__ = ["BethinkMemoryBlock", "BethinkRetriever"]


try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import BeforeValidator, Field
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise hits.missing_extra_error(
        error, "LlamaIndex", extra="llama-index", modules="llama_index"
    ) from error

_SOURCE = "llama-index"
# Metadata for a model; the rest is for programs.
_LLM_METADATA = ("when", "trust", "source")
_SOURCE_CLASSES = {MessageRole.USER: "user", MessageRole.TOOL: "tool", MessageRole.FUNCTION: "tool"}


class BethinkRetriever(BaseRetriever):
    """Retriever on a space of Bethink: best match first, nothing if nothing is relevant.

    ``filters`` are those of ``Memory.recall``. A node's id is the memory's; its metadata holds
    the reasons it matched, the trust of its source and when it happened. Without ``abstain`` the
    nearest memories are returned, however far they are. A long memory is its best passage,
    unless ``whole``.
    """

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        k: int | None = None,
        profile: str | None = None,
        max_tokens: int | None = None,
        deep: bool = False,
        filters: Mapping[str, Any] | None = None,
        abstain: bool = True,
        whole: bool = False,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.memory = hits.open_memory(memory)
        self._options = hits.RecallOptions(k, profile, max_tokens, deep, filters, abstain, whole)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self._options.recall(self.memory, query_bundle.query_str)
        if answer is None:
            return []
        return [
            NodeWithScore(
                node=_make_node(hit.item.id, hit.text, hits.hit_metadata(hit, answer)),
                score=hit.score,
            )
            for hit in answer.hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class BethinkMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of a conversation.

    Messages that leave the short-term memory are stored turn by turn; memories related to the
    last question are returned, quoted as data.
    """

    name: str = "bethink"
    memory: Annotated[Memory, BeforeValidator(hits.open_memory)] = Field(
        default=None, validate_default=True, exclude=True, repr=False
    )
    k: int | None = None
    profile: str | None = None
    max_tokens: int | None = None
    filters: Json = Field(default_factory=dict)
    abstain: bool = True

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: object) -> str:
        return await asyncio.to_thread(self._recall, _last_question(messages or ()))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._remember, messages)

    def _recall(self, question: str) -> str:
        asking = hits.RecallOptions(
            self.k, self.profile, self.max_tokens, filters=self.filters, abstain=self.abstain
        )
        answer = asking.recall(self.memory, question) if question.strip() else None
        if answer is None:
            return ""
        return hits.quote_hits((hit.text, hits.hit_metadata(hit, answer)) for hit in answer.hits)

    def _remember(self, messages: Sequence[ChatMessage]) -> None:
        self.memory.remember_many([draft for each in messages for draft in _drafts(each)])


def _make_node(item_id: str, text: str, metadata: Json) -> TextNode:
    quiet = [name for name in metadata if name not in _LLM_METADATA]
    return TextNode(
        id_=item_id,
        text=text,
        metadata=metadata,
        excluded_llm_metadata_keys=quiet,
        excluded_embed_metadata_keys=list(metadata),
    )


def _last_question(messages: Sequence[ChatMessage]) -> str:
    user_messages = (message for message in reversed(messages) if message.role == MessageRole.USER)
    return next((message.content for message in user_messages if message.content), "")


def _drafts(message: ChatMessage) -> list[Draft]:
    """Convert a message to turns of its session; a message without text is not stored."""
    session = message.additional_kwargs.get("session_id")
    speaker = str(message.role.value)
    return [
        Draft(
            part,
            level="raw",
            speaker=speaker,
            session=session_name(session) if session else None,
            source=_SOURCE,
            source_class=_SOURCE_CLASSES.get(message.role, "agent"),
            force=True,
        )
        for part in split_text(indexable_text(message.content or "", ""))
        if has_substance(part)
    ]
