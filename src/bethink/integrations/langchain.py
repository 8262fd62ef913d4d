"""LangChain retriever on a memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from bethink.integrations import hits
from bethink.memory import Memory

__all__ = ["BethinkRetriever", "as_data"]


try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import BeforeValidator, Field
except ModuleNotFoundError as error:
    raise hits.missing_extra_error(
        error, "LangChain", extra="langchain", modules="langchain_core pydantic"
    ) from error


class BethinkRetriever(BaseRetriever):
    """Retriever on a space of Bethink: best match first, nothing if nothing is relevant.

    ``filters`` are those of ``Memory.recall`` (``{"topic": "auth", "since": "2026-01-01"}``).
    A document's metadata holds its ``score``, the ``reasons`` it matched, the ``trust`` of its
    ``source`` (0 to 3) and ``when`` it happened. Without ``abstain`` the nearest memories are
    returned, however far they are. A long memory is its best passage, unless ``whole``.
    """

    memory: Annotated[Memory, BeforeValidator(hits.open_memory)] = Field(
        default=None, validate_default=True, exclude=True, repr=False
    )
    k: int | None = None
    profile: str | None = None
    max_tokens: int | None = None
    deep: bool = False
    filters: Mapping[str, Any] = Field(default_factory=dict)
    abstain: bool = True
    whole: bool = False

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._recall(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await asyncio.to_thread(self._recall, query)

    def _recall(self, query: str) -> list[Document]:
        asking = hits.RecallOptions(
            *(self.k, self.profile, self.max_tokens, self.deep, self.filters, self.abstain),
            whole=self.whole,
        )
        answer = asking.recall(self.memory, query)
        if answer is None:
            return []
        return [
            Document(hit.text, id=hit.item.id, metadata=hits.hit_metadata(hit, answer))
            for hit in answer.hits
        ]


def as_data(documents: Iterable[Document]) -> str:
    """Format documents for a prompt as quoted data, labelled with their source and trust.

    Use it between a retriever and a prompt: ``retriever | as_data``. Empty if there are none.
    """
    return hits.quote_hits((document.page_content, document.metadata) for document in documents)
