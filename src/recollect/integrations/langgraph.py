"""A store of LangGraph that is a memory: its values are found by Recollect's own recall."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from recollect.asking import MAX_K, MAX_TOKENS
from recollect.errors import BadText, Refused
from recollect.ingest.redact import redact
from recollect.integrations.document import KIND, UNINDEXED, Document, Entry, readable
from recollect.integrations.documents import Documents
from recollect.integrations.exact import Exact, OnRedaction, Redaction, exactly, told
from recollect.integrations.matching import check_filter, passes
from recollect.integrations.opening import missing, open_memory
from recollect.integrations.quoting import askable, walk_of
from recollect.memory import Memory
from recollect.model import Candidate, Filters
from recollect.text import unkeepable

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
    )
except ModuleNotFoundError as error:
    raise missing(
        error, "LangGraph", extra="langgraph", modules="langgraph langchain_core"
    ) from error

__all__ = ["RecollectStore"]

_COLLECTION = "langgraph"
_WHOLE = "$"
_MOST_LABELS = 60  # each prefix of a namespace is a tag, and a memory has 64 at most
_LONGEST_SOURCE = 1000

Namespace = tuple[str, ...]


class RecollectStore(BaseStore):
    """A LangGraph store kept in a space of Recollect.

    Values are JSON, kept exactly, up to 64 KiB each; secrets in them are taken out as
    everywhere, a mark stands in their place, and ``on_redaction`` is told. A search with a
    query is a recall by ``profile``, best first; what it does not reach follows without a
    score, as in LangGraph's own stores. With ``abstain`` only what is relevant is given, and
    perhaps that is nothing. Without a query a search lists by the time of the last change,
    newest first. ``fields`` says what of a value is read where a put does not say so itself.
    One store may be shared by threads, and several may be open on one space.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: Memory | str | None = None,
        *,
        profile: str | None = None,
        abstain: bool = False,
        fields: Sequence[str] = (_WHOLE,),
        ttl: TTLConfig | None = None,
        on_redaction: OnRedaction | None = None,
    ) -> None:
        self.memory = open_memory(memory)
        self.profile = profile
        self.abstain = abstain
        self.fields = tuple(fields)
        self.ttl_config = ttl
        self._on_redaction = on_redaction
        self._documents = Documents(self.memory, _COLLECTION, _address_of)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carries operations out. All see what was there before; of several writes to one
        key the last counts."""
        results: list[Result] = []
        writes: dict[str, PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                writes[_address(op.namespace, op.key)] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(self._get(op))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list(op))
            else:
                raise Refused(f"there is no operation {type(op).__name__}")
        self._write(writes)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same beside the event loop, which goes on meanwhile."""
        return await asyncio.to_thread(self.batch, list(ops))

    def memory_id(self, namespace: Namespace, key: str) -> str | None:
        """The id of the memory that holds a value: for ``forget --erase``, ``history`` ..."""
        found = self._documents.find(_address(namespace, key))
        return None if found is None else found.item.id

    def sweep_ttl(self) -> int:
        """Forgets what has outlived its time; how many that were. Nobody sees it before
        either: sweeping only takes it out of other recalls of the same space."""
        return self._documents.sweep(tags=(_tag(()),))

    def _write(self, writes: Mapping[str, PutOp]) -> None:
        entries = [self._entry(at, op) for at, op in writes.items() if op.value is not None]
        self._documents.put_many(entries)
        for address, op in writes.items():
            if op.value is None:
                self._documents.remove(address)

    def _entry(self, address: str, op: PutOp) -> Entry:
        _check_place(op.namespace, op.key)
        place = "/".join((*op.namespace, op.key))
        if not isinstance(op.value, Mapping):
            raise Refused(f"a value is a JSON object, not a {type(op.value).__name__}")
        kept = exactly(op.value, f"the value of {place:.80}")
        if kept.redacted and self._on_redaction is not None:
            self._on_redaction(Redaction(place, kept.redacted))
        source = "/".join((_COLLECTION, *op.namespace))
        return Entry(
            address,
            self._text(op, kept),
            kept.text,
            kind=UNINDEXED if op.index is False else KIND,
            source=source if len(source) <= _LONGEST_SOURCE else _COLLECTION,
            tags=tuple(_tag(op.namespace[:end]) for end in range(len(op.namespace) + 1)),
            ttl_minutes=_minutes(op.ttl),
            about={"namespace": list(op.namespace), "key": op.key},
        )

    def _text(self, op: PutOp, kept: Exact) -> str:
        otherwise = f"LangGraph value {op.key}"
        if op.index is False:
            return readable(otherwise, "LangGraph value")
        paths = self.fields if op.index is None else op.index
        texts = [
            text
            for path in paths
            for text in (
                [told(kept.value)] if path == _WHOLE else get_text_at_path(kept.value, path)
            )
        ]
        return readable("\n".join(dict.fromkeys(texts)), readable(otherwise, "LangGraph value"))

    def _get(self, op: GetOp) -> Item | None:
        found = self._documents.find(_address(op.namespace, op.key))
        if found is None:
            return None
        if op.refresh_ttl:
            self._documents.touch([found])
        return Item(**_fields_of(found))

    def _search(self, op: SearchOp) -> list[SearchItem]:
        _check_search(op)
        found: list[tuple[Document, float | None]]
        if op.query and op.query.strip():
            found = self._recalled(op)
        else:
            listed = self._listed(op)[op.offset : op.offset + op.limit]
            found = [(one, None) for one in listed]
        if op.refresh_ttl:
            self._documents.touch(one for one, _ in found)
        return [SearchItem(**_fields_of(one), score=score) for one, score in found]

    def _listed(self, op: SearchOp) -> list[Document]:
        tag = _tag(op.namespace_prefix)
        found = [one for one in self._documents.each(tags=(tag,)) if passes(_value(one), op.filter)]
        found.sort(key=lambda one: (one.about["namespace"], one.about["key"]))
        return sorted(found, key=lambda one: one.updated_at, reverse=True)

    def _recalled(self, op: SearchOp) -> list[tuple[Document, float | None]]:
        filters = Filters(
            kinds=(KIND,),
            tags=(_tag(op.namespace_prefix),),
            include_superseded=True,
            max_classification=self.memory.settings.max_classification,
        )
        if op.filter:
            # Before the search, so that what it cuts off was allowed to be found.
            filters = replace(filters, ids=tuple(one.item.id for one in self._listed(op)))
            if not filters.ids:
                return []
        wanted = op.offset + op.limit
        found = list(islice(self._ranked(askable(op.query or ""), filters, wanted), wanted))
        if len(found) < wanted and not self.abstain:
            known = {one.item.id for one, _ in found}
            found += [(one, None) for one in self._listed(op) if one.item.id not in known]
        return found[op.offset : wanted]

    def _ranked(
        self, text: str, filters: Filters, wanted: int
    ) -> Iterator[tuple[Document, float | None]]:
        """What a query calls to mind, best first, a page after the other as they are needed."""
        walk = walk_of(self.memory, self.profile, abstain=self.abstain)
        known: set[str] = set()
        seen, has_more = 0, wanted > 0
        while has_more:
            answer = self.memory.recall(
                text,
                profile=walk,
                filters=filters,
                k=min(MAX_K, wanted),
                offset=seen,
                max_tokens=MAX_TOKENS,
            )
            for hit in answer.hits:
                same = [each for each in _with_twins(hit) if each not in known]
                known.update(same)
                for one in self._documents.among(self.memory.store.get(same).values()):
                    yield one, hit.score
            seen += answer.page.returned
            has_more = answer.page.has_more and answer.page.returned > 0

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        spaces = {tuple(one.about["namespace"]) for one in self._documents.each(tags=(_tag(()),))}
        conditions = op.match_conditions or ()
        matching = {space for space in spaces if all(_meets(space, one) for one in conditions)}
        cut = sorted({space[: op.max_depth] for space in matching})
        return cut[op.offset : op.offset + op.limit]


def _address(namespace: Namespace, key: str) -> str:
    _check_labels(namespace)
    if not isinstance(key, str):
        raise Refused(f"a key is a text, not a {type(key).__name__}")
    return _digest(["at", list(namespace), key])


def _tag(prefix: Namespace) -> str:
    """What all have in common whose namespace begins so. A digest: the labels themselves
    would be words to be found by, and every value of a user would match that user's name."""
    _check_labels(prefix)
    return f"in:{_digest(['in', list(prefix)])[:20]}"


def _digest(named: list[Any]) -> str:
    return hashlib.sha256(json.dumps(named).encode()).hexdigest()[:40]


def _check_labels(namespace: Sequence[str]) -> None:
    if isinstance(namespace, str) or not all(isinstance(label, str) for label in namespace):
        raise Refused(f"a namespace is a tuple of texts, not {namespace!r:.80}")
    if len(namespace) > _MOST_LABELS:
        raise Refused(f"a namespace has at most {_MOST_LABELS} labels, not {len(namespace)}")


def _check_place(namespace: Namespace, key: str) -> None:
    """Refuses names that would not be kept as they are."""
    for name in (*namespace, key):
        if bad := unkeepable(name):
            raise BadText(f"a key or a label of a namespace holds a {bad[1]}")
        if redact(name).kinds:
            raise Refused("a key or a label of a namespace holds a secret; name it otherwise")


def _check_search(op: SearchOp) -> None:
    check_filter(op.filter)
    if op.query is not None and not isinstance(op.query, str):
        raise Refused(f"a query is a text, not a {type(op.query).__name__}")
    for name, value in (("limit", op.limit), ("offset", op.offset)):
        if not isinstance(value, int) or value < 0:
            raise Refused(f"{name} is {value!r:.40}, but must be a whole number from 0 up")


def _minutes(ttl: float | None) -> float | None:
    if ttl is None:
        return None
    if not math.isfinite(ttl) or not 0 <= ttl <= 10**9:
        raise Refused(f"ttl is {ttl}, but must be a number of minutes from 0 to a billion")
    return float(ttl)


def _address_of(document: Document) -> str | None:
    namespace, key = document.about.get("namespace"), document.about.get("key")
    if not isinstance(namespace, list) or not isinstance(key, str):
        return None
    try:
        is_object = isinstance(json.loads(document.body), dict)
        return _address(tuple(namespace), key) if is_object else None
    except (ValueError, Refused):
        return None


def _value(document: Document) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(document.body))


def _fields_of(document: Document) -> dict[str, Any]:
    return {
        "value": _value(document),
        "key": document.about["key"],
        "namespace": tuple(document.about["namespace"]),
        "created_at": document.created_at,
        "updated_at": document.updated_at,
    }


def _with_twins(hit: Candidate) -> list[str]:
    """A hit and what says the same: an answer shows that once, but it has a key of its own."""
    twins = (reason.via for reason in hit.evidence if reason.op == "seen")
    return list(dict.fromkeys((hit.item.id, *(each for each in twins if each))))


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    if condition.match_type == "prefix":
        part = namespace[: len(path)]
    elif condition.match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    else:
        raise Refused(f"there is no way {condition.match_type!r} to match a namespace")
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
