"""Registry of retrievers. A new one is a class, a line here and a row in the docs."""

from __future__ import annotations

from typing import Any

from bethink.core.registry import Registry

__all__ = ["MATCH_KINDS", "RETRIEVERS"]


RETRIEVERS: Registry[Any] = Registry(
    "retriever",
    {
        "lexical": "bethink.retrieval.retrievers.lexical:Lexical",
        "substring": "bethink.retrieval.retrievers.lexical:Substring",
        "dense": "bethink.retrieval.retrievers.dense:Dense",
        "entity": "bethink.systems.linksee:Entities",
        "temporal": "bethink.retrieval.retrievers.temporal:Temporal",
        "newest": "bethink.retrieval.retrievers.temporal:Newest",
        "trigram": "bethink.systems.abmind.retrievers:Trigram",
        "signature": "bethink.systems.abmind.retrievers:Signature",
        "notes": "bethink.systems.abmind.retrievers:NotesRetriever",
        "edges": "bethink.systems.abmind.retrievers:Edges",
        "keyword": "bethink.systems.memind.retrievers:Keyword",
        "timed": "bethink.systems.memind.retrievers:Timed",
        "window": "bethink.systems.memind.retrievers:Window",
    },
    group="bethink.retrievers",
)

# What a retriever class matches by, independent of its name in a profile.
MATCH_KINDS = {
    "Lexical": "words",
    "Keyword": "words",
    "NotesRetriever": "words",
    "Substring": "pieces",
    "Trigram": "pieces",
    "Dense": "meaning",
    "Timed": "meaning",
    "Entities": "names",
    "Edges": "names",
    "Temporal": "time",
    "Window": "time",
}
