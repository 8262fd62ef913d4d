"""A retriever and a memory block of LlamaIndex on a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from recollect.integrations.document import readable
from recollect.integrations.opening import missing, open_memory
from recollect.integrations.quoting import Asking, known_of, quoted
from recollect.integrations.transcript import in_parts, session_name
from recollect.memory import Memory
from recollect.model import Draft
from recollect.text import has_substance

try:
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.bridge.pydantic import BeforeValidator, Field
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as error:
    raise missing(error, "LlamaIndex", extra="llama-index", modules="llama_index") from error

__all__ = ["RecollectMemoryBlock", "RecollectRetriever"]

_SOURCE = "llama-index"
# What a model reads beside the words; the rest is for programs.
_TOLD = ("when", "trust", "source")
_CLASSES = {MessageRole.USER: "user", MessageRole.TOOL: "tool", MessageRole.FUNCTION: "tool"}


class RecollectRetriever(BaseRetriever):
    """Recalls from a space of Recollect; best first, and nothing where nothing is relevant.

    ``filters`` are those of ``Memory.recall``. A node's id is the memory's, its metadata
    says the reasons it came for, how far its source is trusted and when it happened.
    Without ``abstain`` the nearest are given however far they are.
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
        callback_manager: CallbackManager | None = None,
    ) -> None:
        super().__init__(callback_manager=callback_manager)
        self.memory = open_memory(memory)
        self._asking = Asking(k, profile, max_tokens, deep, filters, abstain)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        answer = self._asking.recall(self.memory, query_bundle.query_str)
        if answer is None:
            return []
        return [
            NodeWithScore(
                node=_node(hit.item.id, hit.item.text, known_of(hit, answer)), score=hit.score
            )
            for hit in answer.hits
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


class RecollectMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of a conversation: what leaves its short-term memory is remembered
    turn by turn, and what the last question calls to mind is given back, quoted as data.
    """

    name: str = "recollect"
    memory: Annotated[Memory, BeforeValidator(open_memory)] = Field(
        default=None, validate_default=True, exclude=True, repr=False
    )
    k: int | None = None
    profile: str | None = None
    max_tokens: int | None = None
    filters: dict[str, Any] = Field(default_factory=dict)
    abstain: bool = True

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        return await asyncio.to_thread(self._recalled, _question(messages or ()))

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._remember, messages)

    def _recalled(self, question: str) -> str:
        asking = Asking(
            self.k, self.profile, self.max_tokens, filters=self.filters, abstain=self.abstain
        )
        answer = asking.recall(self.memory, question) if question.strip() else None
        if answer is None:
            return ""
        return quoted((hit.item.text, known_of(hit, answer)) for hit in answer.hits)

    def _remember(self, messages: Sequence[ChatMessage]) -> None:
        self.memory.remember_many([draft for each in messages for draft in _drafts(each)])


def _node(item_id: str, text: str, known: dict[str, Any]) -> TextNode:
    quiet = [name for name in known if name not in _TOLD]
    return TextNode(
        id_=item_id,
        text=text,
        metadata=known,
        excluded_llm_metadata_keys=quiet,
        excluded_embed_metadata_keys=list(known),
    )


def _question(messages: Sequence[ChatMessage]) -> str:
    asked = (each for each in reversed(messages) if each.role == MessageRole.USER)
    return next((each.content for each in asked if each.content), "")


def _drafts(message: ChatMessage) -> list[Draft]:
    """A message as turns of its session; one without words is not remembered."""
    session = message.additional_kwargs.get("session_id")
    speaker = str(message.role.value)
    return [
        Draft(
            part,
            level="raw",
            speaker=speaker,
            session=session_name(session) if session else None,
            source=_SOURCE,
            source_class=_CLASSES.get(message.role, "agent"),
            force=True,
        )
        for part in in_parts(readable(message.content or "", ""))
        if has_substance(part)
    ]
