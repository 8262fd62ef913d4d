"""Values under namespaces and keys: JSON objects, stored exactly and searched by recall.

LangGraph's stores have this shape, in Python and over HTTP. Filters are evaluated on values in
memory: a key of a filter is looked up and never becomes part of an SQL statement.
"""

from __future__ import annotations

import hashlib
import json
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, cast

from bethink.core.characters import find_unstorable
from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.errors import BadText, Refused, TooLarge
from bethink.ingest.redaction import redact
from bethink.integrations import documents, exact_json
from bethink.integrations.hits import clean_question, resolve_profile
from bethink.memory import Memory
from bethink.model import Candidate, Filters, Recall
from bethink.retrieval.query_builder import MAX_K, MAX_TOKENS

_COLLECTION = "langgraph"
_MAX_LABELS = 60  # each prefix of a namespace is a tag, and a memory has 64 at most
_MAX_SOURCE_CHARS = 1000

Namespace = tuple[str, ...]


class Put(NamedTuple):
    """A value to store; without one it is a removal. ``index`` says what is searched of it."""

    namespace: Namespace
    key: str
    value: Any = None
    index: Literal[False] | Sequence[str] | None = None  # type: ignore[assignment]
    ttl: float | None = None


class Search(NamedTuple):
    """A search below a namespace; without a query it lists."""

    namespace_prefix: Namespace
    filter: Any = None
    limit: int = 10
    offset: int = 0
    query: str | None = None
    refresh_ttl: bool = True


class Found(NamedTuple):
    """A value with its score and the answer it is part of; neither for one that is only listed."""

    document: documents.Document
    score: float | None = None
    answer: Recall | None = None

    @property
    def fields(self) -> Json:
        """The fields of a value that every framework has."""
        return {
            "value": _value(self.document),
            "key": self.document.about["key"],
            "namespace": tuple(self.document.about["namespace"]),
            "created_at": self.document.created_at,
            "updated_at": self.document.updated_at,
        }


def whole_text(value: Any, put: Put) -> Sequence[str]:
    """Return what is searched of a value: all of it, or the texts that came with it."""
    return (exact_json.flatten_text(value),) if put.index is None else put.index or ()


_ORDER_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDER_OPERATORS)


def matches_filter(value: Mapping[str, object], conditions: Mapping[str, object] | None) -> bool:
    """Check whether a value meets every condition of a filter."""
    return all(_matches_value(value.get(key), each) for key, each in (conditions or {}).items())


def check_filter(conditions: object) -> None:
    """Refuse an invalid filter or operator, whether or not anything would be compared."""
    if conditions is None:
        return
    if not isinstance(conditions, Mapping):
        raise Refused(f"a filter must be a JSON object, not a {type(conditions).__name__}")
    for each in conditions.values():
        _check_operand(each, 1)


def _check_operand(operand: object, depth: int) -> None:
    if depth > exact_json.MAX_DEPTH:
        raise TooLarge("the filter", limit=exact_json.MAX_DEPTH, actual=depth, unit="levels deep")
    if isinstance(operand, Mapping):
        unknown = [key for key in operand if key not in OPERATORS]
        if unknown and any(_is_operator(key) for key in operand):
            raise Refused(
                f"there is no filter operator {unknown[0]!r:.40}",
                remedy=f"use one of {', '.join(OPERATORS)}",
            )
        operand = tuple(operand.values())
    if isinstance(operand, list | tuple):
        for each in operand:
            _check_operand(each, depth + 1)


def _is_operator(key: object) -> bool:
    return isinstance(key, str) and key.startswith("$")


def _matches_value(value: object, expected: object) -> bool:
    if isinstance(expected, Mapping):
        if any(_is_operator(key) for key in expected):
            return all(_compare(value, name, other) for name, other in expected.items())
        return isinstance(value, Mapping) and matches_filter(value, expected)
    if isinstance(expected, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(_matches_value(*pair) for pair in zip(value, expected, strict=True))
        )
    return bool(value == expected)


def _compare(value: object, name: str, other: object) -> bool:
    if name == "$eq":
        return bool(value == other)
    if name == "$ne":
        return bool(value != other)
    compared = _comparable_pair(value, other)
    return compared is not None and _ORDER_OPERATORS[name](*compared)


def _comparable_pair(value: Any, other: Any) -> tuple[Any, Any] | None:
    """Return both as numbers, or both as texts; None if they have no order."""
    if isinstance(value, int) and isinstance(other, int):
        return value, other
    try:
        return float(value), float(other)
    except (TypeError, ValueError, OverflowError):
        both_texts = isinstance(value, str) and isinstance(other, str)
        return (value, other) if both_texts else None


class ValueStore:
    """Values in a space of Bethink; see `integrations.langgraph.BethinkStore` for its rules.

    ``texts_of`` returns the texts to search of a value that is put.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        profile: str | None = None,
        abstain: bool = False,
        on_redaction: exact_json.OnRedaction | None = None,
        texts_of: Callable[[Any, Put], Iterable[str]] = whole_text,
    ) -> None:
        self.memory, self.profile, self.abstain = memory, profile, abstain
        self._on_redaction, self._texts_of = on_redaction, texts_of
        self._documents = documents.DocumentCollection(self.memory, _COLLECTION, _address_of)

    def find(self, namespace: Namespace, key: str) -> documents.Document | None:
        """Return the document of a value."""
        return self._documents.find(_address(namespace, key))

    def sweep(self) -> int:
        """Forget expired values; return how many there were."""
        return self._documents.sweep(tags=(_namespace_tag(()),))

    def write(self, puts: Iterable[Put]) -> None:
        """Store and remove values; the last write to a key wins."""
        writes = {_address(put.namespace, put.key): put for put in puts}
        entries = [self._entry(at, put) for at, put in writes.items() if put.value is not None]
        self._documents.put_many(entries)
        for address, put in writes.items():
            if put.value is None:
                self._documents.remove(address)

    def _entry(self, address: str, put: Put) -> documents.Entry:
        _check_names(put.namespace, put.key)
        place = "/".join((*put.namespace, put.key))
        if not isinstance(put.value, Mapping):
            raise Refused(f"a value must be a JSON object, not a {type(put.value).__name__}")
        kept = exact_json.to_exact_json(put.value, f"the value of {place:.80}")
        if kept.redacted and self._on_redaction is not None:
            self._on_redaction(exact_json.Redaction(place, kept.redacted))
        source = "/".join((_COLLECTION, *put.namespace))
        return documents.Entry(
            address,
            self._indexed_text(put, kept.value),
            kept.text,
            kind=documents.UNINDEXED_KIND if put.index is False else documents.DOCUMENT_KIND,
            source=source if len(source) <= _MAX_SOURCE_CHARS else _COLLECTION,
            tags=tuple(
                _namespace_tag(put.namespace[:end]) for end in range(len(put.namespace) + 1)
            ),
            ttl_minutes=_check_ttl(put.ttl),
            about={"namespace": list(put.namespace), "key": put.key},
        )

    def _indexed_text(self, put: Put, value: Any) -> str:
        otherwise = documents.indexable_text(f"LangGraph value {put.key}", "LangGraph value")
        if put.index is False:
            return otherwise
        return documents.indexable_text(
            "\n".join(dict.fromkeys(self._texts_of(value, put))), otherwise
        )

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool = True) -> Found | None:
        """Return a value, or None."""
        found = self.find(namespace, key)
        if found is not None and refresh_ttl:
            self._documents.touch([found])
        return None if found is None else Found(found)

    def search(self, op: Search) -> list[Found]:
        """Return the values that a search finds, the best or the newest first."""
        _check_search(op)
        if op.query and op.query.strip():
            found = self._recall(op)
        else:
            listed = self._list_documents(op)[op.offset : op.offset + op.limit]
            found = list(map(Found, listed))
        if op.refresh_ttl:
            self._documents.touch(one.document for one in found)
        return found

    def _list_documents(self, op: Search) -> list[documents.Document]:
        tag = _namespace_tag(op.namespace_prefix)
        found = [
            document
            for document in self._documents.list_live(tags=(tag,))
            if matches_filter(_value(document), op.filter)
        ]
        found.sort(key=lambda document: (document.about["namespace"], document.about["key"]))
        return sorted(found, key=lambda document: document.updated_at, reverse=True)

    def _recall(self, op: Search) -> list[Found]:
        # Before the search, so that its limit counts only visible results.
        ids = tuple(one.item.id for one in self._list_documents(op)) if op.filter else ()
        if op.filter and not ids:
            return []
        filters = Filters(
            kinds=(documents.DOCUMENT_KIND,),
            tags=(_namespace_tag(op.namespace_prefix),),
            ids=ids,
            include_superseded=True,
            max_classification=self.memory.settings.max_classification,
        )
        count = op.offset + op.limit
        ranked = self._iter_ranked(clean_question(op.query or ""), filters, count)
        found = list(islice(ranked, count))
        if len(found) < count and not self.abstain:
            known = {one.document.item.id for one in found}
            others = (one for one in self._list_documents(op) if one.item.id not in known)
            found += map(Found, others)
        return found[op.offset : count]

    def _iter_ranked(self, text: str, filters: Filters, count: int) -> Iterator[Found]:
        """Yield the hits of a query, best first, page by page as needed."""
        walk = resolve_profile(self.memory, self.profile, abstain=self.abstain)
        known: set[str] = set()
        seen, has_more = 0, count > 0
        while has_more:
            answer = self.memory.recall(
                text,
                profile=walk,
                filters=filters,
                k=min(MAX_K, count),
                offset=seen,
                max_tokens=MAX_TOKENS,
            )
            for hit in answer.hits:
                same = [each for each in _duplicate_ids(hit) if each not in known]
                known.update(same)
                items = self.memory.store.items.get(same).values()
                for document in self._documents.from_items(items):
                    # Without a gate nothing is judged: every value counts as found.
                    yield Found(document, hit.score, answer if self.abstain else None)
            seen += answer.page.returned
            has_more = answer.page.has_more and answer.page.returned > 0

    def list_namespaces(
        self, conditions: Sequence[tuple[str, Sequence[str]]], max_depth: int | None = None
    ) -> list[Namespace]:
        """Return the namespaces that hold a value and match all conditions, sorted."""
        spaces = {
            tuple(one.about["namespace"])
            for one in self._documents.list_live(tags=(_namespace_tag(()),))
        }
        return sorted(
            {
                space[:max_depth]
                for space in spaces
                if all(_matches_condition(space, one) for one in conditions)
            }
        )


def _address(namespace: Namespace, key: str) -> str:
    _check_labels(namespace)
    if not isinstance(key, str):
        raise Refused(f"a key must be a string, not a {type(key).__name__}")
    return _digest(["at", list(namespace), key])


def _namespace_tag(prefix: Namespace) -> str:
    """Return the tag that all values below a namespace prefix share.

    It is a digest: the labels themselves would be searchable words, and every value of a user
    would match that user's name.
    """
    _check_labels(prefix)
    return f"in:{_digest(['in', list(prefix)])[:20]}"


def _digest(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def _check_labels(namespace: Sequence[str]) -> None:
    if isinstance(namespace, str) or not all(isinstance(label, str) for label in namespace):
        raise Refused(f"a namespace must be a tuple of strings, not {namespace!r:.80}")
    if len(namespace) > _MAX_LABELS:
        raise Refused(f"a namespace can have at most {_MAX_LABELS} labels, not {len(namespace)}")


def _check_names(namespace: Namespace, key: str) -> None:
    """Refuse names that cannot be stored unchanged."""
    for name in (*namespace, key):
        if bad := find_unstorable(name):
            raise BadText(f"a key or namespace label contains a {bad[1]}")
        if redact(name).kinds:
            raise Refused("a key or namespace label contains a secret; use another name")


def _check_search(op: Search) -> None:
    check_filter(op.filter)
    if op.query is not None and not isinstance(op.query, str):
        raise Refused(f"a query must be a string, not a {type(op.query).__name__}")
    for name, value in (("limit", op.limit), ("offset", op.offset)):
        if not isinstance(value, int) or value < 0:
            raise Refused(f"{name} is {value!r:.40}, but must be an integer of 0 or more")


def _check_ttl(ttl: float | None) -> float | None:
    if ttl is None:
        return None
    if not math.isfinite(ttl) or not 0 <= ttl <= 10**9:
        raise Refused(f"ttl is {ttl}, but must be a number of minutes from 0 to 1,000,000,000")
    return float(ttl)


def _address_of(document: documents.Document) -> str | None:
    namespace, key = document.about.get("namespace"), document.about.get("key")
    if not isinstance(namespace, list) or not isinstance(key, str):
        return None
    try:
        is_object = isinstance(json.loads(document.body), dict)
        return _address(tuple(namespace), key) if is_object else None
    except (ValueError, Refused):
        return None


def _value(document: documents.Document) -> Json:
    return cast("Json", json.loads(document.body))


def _duplicate_ids(hit: Candidate) -> list[str]:
    """Return the ids of a hit and of its duplicates, which an answer shows once."""
    twins = (reason.via for reason in hit.evidence if reason.op == "seen")
    return list(dict.fromkeys((hit.item.id, *(each for each in twins if each))))


def _matches_condition(namespace: Namespace, condition: tuple[str, Sequence[str]]) -> bool:
    match_type, path = condition
    if len(path) > len(namespace):
        return False
    if match_type == "prefix":
        part = namespace[: len(path)]
    elif match_type == "suffix":
        part = namespace[len(namespace) - len(path) :]
    else:
        raise Refused(f"there is no match type {match_type!r} for a namespace")
    return all(pattern in ("*", label) for label, pattern in zip(part, path, strict=True))
