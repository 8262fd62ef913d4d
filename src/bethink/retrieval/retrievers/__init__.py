"""Registry of retrievers. A new one is a class, a line here and a row in the docs."""

from __future__ import annotations

from collections.abc import Callable

from bethink.core.registry import Registry
from bethink.retrieval.context import Retriever

RETRIEVERS: Registry[Callable[..., Retriever]] = Registry(
    "retriever",
    {
        "lexical": "bethink.retrieval.retrievers.lexical:Lexical",
        "substring": "bethink.retrieval.retrievers.lexical:Substring",
        "dense": "bethink.retrieval.retrievers.dense:Dense",
        "temporal": "bethink.retrieval.retrievers.temporal:Temporal",
        "newest": "bethink.retrieval.retrievers.temporal:Newest",
    },
    group="bethink.retrievers",
)
