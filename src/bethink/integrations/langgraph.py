"""LangGraph store on a memory: values are stored exactly and searched by recall."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from bethink.core.json_values import Json
from bethink.errors import Refused
from bethink.integrations.exact_json import OnRedaction
from bethink.integrations.hits import missing_extra_error, open_memory
from bethink.integrations.values import Found, Namespace, Put, Search, ValueStore, whole_text
from bethink.memory import Memory

__all__ = ["BethinkStore", "RecalledItem"]

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ModuleNotFoundError as error:
    raise missing_extra_error(
        error, "LangGraph", extra="langgraph", modules="langgraph langchain_core"
    ) from error

_WHOLE_VALUE = "$"
_T = TypeVar("_T", Put, Search)


class RecalledItem(SearchItem):
    """A value that a query found, with how sure the answer is that holds it.

    ``outcome`` is "found" or "unsure", ``confidence`` the probability behind it.
    """

    __slots__ = ("confidence", "outcome")

    def __init__(self, *, outcome: str, confidence: float, **known: Any) -> None:
        super().__init__(**known)
        self.outcome = outcome
        self.confidence = confidence

    def dict(self) -> Json:
        """Return the item as JSON, marked like the answer."""
        return {**super().dict(), "outcome": self.outcome, "confidence": self.confidence}


class BethinkStore(BaseStore):
    """A LangGraph store in a space of Bethink.

    Values are JSON, stored exactly, up to 64 KiB each; secrets in them are redacted and replaced
    by a mark, and ``on_redaction`` is called. A search with a query is a recall by ``profile``,
    best match first; values it does not reach follow without a score, as in LangGraph's own
    stores. With ``abstain`` only relevant values are returned, possibly none, each a
    `RecalledItem` that says whether the answer is "found" or "unsure". A search without a query
    lists values by the time of their last change, newest first. ``fields`` are the paths of a
    value that are indexed unless a put names its own. A store may be shared by threads, and
    several may be open on one space.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        profile: str | None = None,
        abstain: bool = False,
        fields: Sequence[str] = (_WHOLE_VALUE,),
        ttl: TTLConfig | None = None,
        on_redaction: OnRedaction | None = None,
    ) -> None:
        self.memory, self.fields, self.ttl_config = open_memory(memory), tuple(fields), ttl
        self._values = ValueStore(
            self.memory,
            profile=profile,
            abstain=abstain,
            on_redaction=on_redaction,
            texts_of=self._texts_of,
        )

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations. All read the state before the batch; the last write to a key wins."""
        results: list[Result] = []
        writes: list[Put] = []
        for op in ops:
            if isinstance(op, PutOp):
                writes.append(_same(Put, op))
                results.append(None)
            elif isinstance(op, GetOp):
                found = self._values.get(op.namespace, op.key, refresh_ttl=op.refresh_ttl)
                results.append(None if found is None else Item(**found.fields))
            elif isinstance(op, SearchOp):
                results.append([_to_item(one) for one in self._values.search(_same(Search, op))])
            elif isinstance(op, ListNamespacesOp):
                matches = [(one.match_type, one.path) for one in op.match_conditions or ()]
                known = self._values.list_namespaces(matches, op.max_depth)
                results.append(known[op.offset : op.offset + op.limit])
            else:
                raise Refused(f"there is no operation {type(op).__name__}")
        self._values.write(writes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations on a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def memory_id(self, namespace: Namespace, key: str) -> str | None:
        """Return the id of the memory that holds a value, for ``forget --erase`` and the like."""
        found = self._values.find(namespace, key)
        return None if found is None else found.item.id

    def sweep_ttl(self) -> int:
        """Forget expired values; return how many there were.

        They are invisible here before as well: sweeping also removes them from other recalls of the
        space.
        """
        return self._values.sweep()

    def _texts_of(self, value: Any, put: Put) -> Iterable[str]:
        for path in self.fields if put.index is None else put.index or ():
            if path == _WHOLE_VALUE:
                yield from whole_text(value, put._replace(index=None))
            else:
                yield from get_text_at_path(value, path)


def _same(kind: type[_T], op: Op) -> _T:
    """Return an operation of LangGraph as ours, which has fields of the same names."""
    return kind(**{name: getattr(op, name) for name in kind._fields})


def _to_item(found: Found) -> SearchItem:
    fields = {**found.fields, "score": found.score}
    if found.answer is None:
        return SearchItem(**fields)
    outcome, confidence = found.answer.status, found.answer.confidence
    return RecalledItem(outcome=outcome, confidence=confidence, **fields)
