"""A retriever of LangChain that is a memory: what a question calls to mind, as documents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from recollect.integrations.opening import missing, open_memory
from recollect.integrations.quoting import Asking, known_of, quoted
from recollect.memory import Memory

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from pydantic import BeforeValidator, Field
except ModuleNotFoundError as error:
    raise missing(
        error, "LangChain", extra="langchain", modules="langchain_core pydantic"
    ) from error

__all__ = ["RecollectRetriever", "as_data"]


class RecollectRetriever(BaseRetriever):
    """Recalls from a space of Recollect; best first, and nothing where nothing is relevant.

    ``filters`` are those of ``Memory.recall`` (``{"topic": "auth", "since": "2026-01-01"}``).
    A document's metadata says its ``score``, the ``reasons`` it came for, how far its
    ``source`` is trusted (``trust``, 0 to 3) and ``when`` it happened. Without ``abstain``
    the nearest are given however far they are.
    """

    memory: Annotated[Memory, BeforeValidator(open_memory)] = Field(
        default=None, validate_default=True, exclude=True, repr=False
    )
    k: int | None = None
    profile: str | None = None
    max_tokens: int | None = None
    deep: bool = False
    filters: Mapping[str, Any] = Field(default_factory=dict)
    abstain: bool = True

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return self._recalled(query)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        return await asyncio.to_thread(self._recalled, query)

    def _recalled(self, query: str) -> list[Document]:
        asking = Asking(
            self.k, self.profile, self.max_tokens, self.deep, self.filters, self.abstain
        )
        answer = asking.recall(self.memory, query)
        if answer is None:
            return []
        return [
            Document(hit.item.text, id=hit.item.id, metadata=known_of(hit, answer))
            for hit in answer.hits
        ]


def as_data(documents: Iterable[Document]) -> str:
    """Documents for a prompt: quoted behind a code, labelled by whom to trust. Stands between
    a retriever and a prompt: ``retriever | as_data``. Empty where nothing was recalled."""
    return quoted((document.page_content, document.metadata) for document in documents)
