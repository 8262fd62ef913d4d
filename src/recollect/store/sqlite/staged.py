"""What a search in stages asks of a store: pieces of words, signatures, edges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from recollect.model import Link
from recollect.ports import Found, PieceSearch, Scope
from recollect.store.sqlite import edges, pieces, signatures
from recollect.store.sqlite.connection import Connections
from recollect.store.sqlite.rows import Hydrate
from recollect.store.sqlite.scope import compile_scope


class Staged:
    """One part of a `Store`; what it works with is the whole one's."""

    _connections: Connections
    _hydrate: Hydrate
    _signatures: signatures.SignatureIndex

    def search_pieces(self, search: PieceSearch, scope: Scope) -> Found:
        with self._connections.reading() as db:
            return pieces.search_pieces(
                db, search, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def search_signature(self, text: str, depth: int, min_likeness: float, scope: Scope) -> Found:
        asked = signatures.Asked(text, depth, min_likeness)
        with self._connections.reading() as db:
            return self._signatures.search(
                db, asked, compile_scope(scope), self._hydrate.at(scope.as_of)
            )

    def make_signatures(self, limit: int) -> int:
        with self._connections.writing() as db:
            return signatures.make_missing(db, limit)

    def edges(self, entities: Sequence[str], each: int, until: datetime) -> dict[str, list[Link]]:
        with self._connections.reading() as db:
            return edges.edges(db, entities, each, until)
