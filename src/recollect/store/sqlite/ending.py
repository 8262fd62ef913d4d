"""How memories leave a store and come back: ended, restored, judged, erased."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from recollect.model import Status
from recollect.ports import Receipt
from recollect.store.sqlite import erase, lifecycle, look
from recollect.store.sqlite.clock import to_ms
from recollect.store.sqlite.connection import Connections
from recollect.store.sqlite.vectors import VectorIndex


class Ending:
    """One part of a `Store`; what it works with is the whole one's."""

    _connections: Connections
    _vectors: VectorIndex

    def end(
        self,
        ids: Sequence[str],
        *,
        how: str,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> list[str]:
        with self._connections.writing() as db:
            unchanged = ids if only is None else lifecycle.unchanged(db, ids, only)
            return lifecycle.end(db, unchanged, how=how, actor=actor, now=to_ms(now))

    def restore(self, ids: Sequence[str], *, actor: str, now: datetime) -> list[str]:
        with self._connections.writing() as db:
            return lifecycle.restore(db, self._vectors, ids, actor=actor, now=to_ms(now))

    def set_status(
        self,
        ids: Sequence[str],
        status: Status,
        *,
        actor: str,
        now: datetime,
        only: Mapping[str, int] | None = None,
    ) -> None:
        with self._connections.writing() as db:
            unchanged = ids if only is None else lifecycle.unchanged(db, ids, only)
            lifecycle.set_status(db, unchanged, status, actor=actor, now=to_ms(now))

    def erase(self, ids: Sequence[str], *, actor: str, now: datetime) -> Receipt:
        with self._connections.writing() as db:
            receipt = erase.erase(db, self._vectors, ids, actor=actor, now=to_ms(now))
        if not receipt.ids:
            return receipt
        left = erase.scrub(self._connections)
        return receipt._replace(out_of_reach=(*receipt.out_of_reach, *left))

    def from_source(self, source: str) -> list[str]:
        with self._connections.reading() as db:
            return look.from_source(db, source)
