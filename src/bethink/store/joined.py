"""Several stores read as one: what a person sees of a space, and nothing else.

The first is the space's own, the last the person's; what others keep for themselves is in
stores that are not among these, so no answer depends on it. Every answer is put together
from the stores' own: lists are merged in their order, counts added, and words weighed by the
counts of all. It can only be read: who writes does so in one of the stores. Use is counted in
the person's own.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import Any, cast

from bethink.core.arrays import np
from bethink.core.json_values import Json
from bethink.errors import ModelError, NotFound, Refused
from bethink.model import Entity, Item
from bethink.model.item import AUDIENCE
from bethink.ports import Store
from bethink.ports.values import (
    Background,
    Calendar,
    EntityListing,
    Event,
    KindsOfDay,
    Match,
    Nearest,
    SearchResult,
    SessionSpan,
    SharedEntities,
    TextSearch,
    Usage,
    WordStatistics,
)

_NONE_OF_A_VIEW = ("generation", "bytes", "erased")
_OF_THE_FIRST = ("space", "path", "sqlite", "schema", "server")
_LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
_YEAR_S = 365.25 * 86_400

Ask = Callable[..., Any]


Seen = Sequence[tuple[str, Store]]  # stores, each with who sees it: "" for all of the space


class JoinedStore:
    """Some stores as one `Store` to read: those that ``find`` gives at the time, in its order."""

    def __init__(self, find: Callable[[], Seen], own: Callable[[], Store]) -> None:
        """Join stores; ``own`` opens the person's own, creating it."""
        self._find, self._own = find, own
        for name in _MERGES:
            setattr(self, name, _JoinedPart(name, find, own))

    @property
    def space(self) -> str:
        """The name of the space."""
        return self._find()[0][1].space

    def below(self, ceiling: int) -> Store:
        """Return the same without what is above a classification."""
        find = self._find
        below = JoinedStore(lambda: [(who, one.below(ceiling)) for who, one in find()], self._own)
        return cast("Store", below)

    def trusted(self) -> Store:
        """Return the same without memories of trust 0; itself where there are none."""
        before = self._find()
        found = [(who, store.trusted()) for who, store in before]
        same = all(one is other for (_, one), (_, other) in zip(found, before, strict=True))
        return cast("Store", self if same else JoinedStore(lambda: found, self._own))

    def has_conflicts(self) -> bool:
        """Whether anything was changed on two machines at once."""
        return any(store.has_conflicts() for _, store in self._find())

    def read_ahead(self, ids: Sequence[str], links: Sequence[tuple[Sequence[str], bool]]) -> None:
        """Tell that items and some of their links will be asked for."""
        for _, store in self._find():
            store.read_ahead(ids, links)

    @contextmanager
    def snapshot(self, *, at_once: bool = True) -> Iterator[None]:
        """While held, all reads of this thread see one moment of each store."""
        with ExitStack() as stack:
            for _, store in self._find():
                stack.enter_context(store.snapshot(at_once=at_once))
            yield

    def close(self) -> None:
        """Nothing: the stores are closed by those who opened them."""


class _JoinedPart:
    """One of the six parts of several stores; a method that would write is refused."""

    def __init__(self, part: str, find: Callable[[], Seen], own: Callable[[], Store]) -> None:
        self._part, self._find, self._own = part, find, own

    def __getattr__(self, name: str) -> Ask:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in _OWN[self._part]:
            return lambda *given, **named: getattr(getattr(self._own(), self._part), name)(
                *given, **named, **_OWN[self._part][name]
            )
        merge = _MERGES[self._part].get(name)
        if merge is None:
            raise Refused(f"{self._part}.{name} is not for a view of several stores")
        seen = self._find()
        asks = [partial(_ask, getattr(getattr(one, self._part), name), who) for who, one in seen]
        if merge is _search_text:
            return partial(_search_text, asks, [store.search for _, store in seen])
        if merge in _ASKING:
            return partial(merge, asks)
        return lambda *given, **named: merge(_each(asks, *given, **named))


def _ask(ask: Ask, audience: str, /, *given: Any, **named: Any) -> Any:
    """Ask a store; its memories say who sees them, and what one itself claims goes."""
    return _mark(ask(*given, **named), audience)


def _mark(found: Any, audience: str) -> Any:
    if isinstance(found, Item):
        if not audience and AUDIENCE not in found.metadata:
            return found
        rest = {name: value for name, value in found.metadata.items() if name != AUDIENCE}
        return found._replace(metadata={**rest, AUDIENCE: audience} if audience else rest)
    if isinstance(found, SearchResult):
        marked = tuple(one._replace(item=_mark(one.item, audience)) for one in found.matches)
        return found._replace(matches=marked)
    if isinstance(found, list):
        return [_mark(one, audience) for one in found]
    if isinstance(found, dict):
        return {name: _mark(value, audience) for name, value in found.items()}
    return found


def _each(asks: Sequence[Ask], *given: Any, **named: Any) -> list[Any]:
    return [ask(*given, **named) for ask in asks]


def _first(asks: Sequence[Ask], *given: Any, **named: Any) -> Any:
    return asks[0](*given, **named)


def _concatenated(answers: Sequence[Any]) -> list[Any]:
    return list(chain.from_iterable(answers))


def _distinct(answers: Sequence[Any]) -> list[Any]:
    return sorted(set(_concatenated(answers)))


def _united(answers: Sequence[Any]) -> Json:
    """Unite answers by id; a memory that several stores have is the live one that fewest see."""
    found: Json = {}
    for name, value in chain.from_iterable(one.items() for one in answers):
        known = found.get(name)
        is_live = isinstance(value, Item) and value.live_to is None
        if known is None or is_live or getattr(known, "live_to", None) is not None:
            found[name] = value
    return found


def _search(asks: Sequence[Ask], *given: Any, **named: Any) -> SearchResult:
    """Merge results whose scores are absolute."""
    # How many it asks for is its own number, or that of what is searched.
    numbers = (one if isinstance(one, int) else getattr(one, "depth", None) for one in given)
    depth = next((one for one in numbers if one is not None), 0)
    return _merge_results(_each(asks, *given, **named), depth)


def _search_text(
    asks: Sequence[Ask], searches: Sequence[Any], search: TextSearch, scope: Any
) -> SearchResult:
    """Rank by words; each store weighs them by the counts of all."""
    found = [
        ask(search._replace(beside=tuple(other for other in searches if other is not mine)), scope)
        for ask, mine in zip(asks, searches, strict=True)
    ]
    return _merge_results(found, search.depth)


def _search_vector(  # noqa: PLR0917 - the port's parameters
    asks: Sequence[Ask], vector: Any, model: str, depth: int, scope: Any, choose: Any = None
) -> SearchResult:
    """Merge the nearest; a store without vectors of the model counts where no other has any."""
    found: list[SearchResult] = []
    errors: list[ModelError] = []
    for ask in asks:
        try:
            found.append(ask(vector, model, depth, scope))
        except ModelError as error:
            errors.append(error)
    if errors and not any(one.matches for one in found):
        raise errors[0]
    merged = _merge_results(found, depth)
    if choose is None:
        return merged
    places = choose(_nearest(merged.matches))
    return merged._replace(matches=tuple(merged.matches[place] for place in places))


def _nearest(matches: Sequence[Match]) -> Nearest:
    def times(name: str) -> Any:
        moments = [getattr(match.item, name) for match in matches]
        return np.array([math.nan if at is None else at.timestamp() * 1e3 for at in moments])

    cosines = np.array([match.score for match in matches])
    return Nearest(cosines, times("occurred_at"), times("occurred_end"))


def _merge_results(found: Sequence[SearchResult], depth: int) -> SearchResult:
    merged = heapq.merge(*(one.matches for one in found), key=lambda match: -match.score)
    best: dict[str, Match] = {}
    for match in merged:
        best.setdefault(match.item.id, match)
    return SearchResult(
        tuple(best.values())[:depth],
        "; ".join(dict.fromkeys(one.note for one in found if one.note)),
        max((one.ceiling for one in found), default=0.0),
        _merge_backgrounds([one.background for one in found if one.background is not None]),
        next((one.damage for one in found if one.damage), ""),
    )


def _merge_backgrounds(found: Sequence[Background]) -> Background | None:
    memories = sum(one.memories for one in found)
    if len(found) < 2 or not memories:
        return found[0] if found else None
    mean = sum(one.mean * one.memories for one in found) / memories
    square = sum((one.spread**2 + one.mean**2) * one.memories for one in found) / memories
    return Background(mean, math.sqrt(max(0.0, square - mean * mean)), memories)


def _newest_of_each(
    asks: Sequence[Ask], entities: Sequence[str], each: int, *given: Any
) -> dict[str, list[Any]]:
    """Merge what each entity has in the stores, newest first."""
    answers = _each(asks, entities, each, *given)
    found: dict[str, list[Any]] = {}
    for entity in entities:
        every = [one for answer in answers for one in answer.get(entity, ())]
        every.sort(key=_age, reverse=True)
        found[entity] = every[:each]
    return found


def _age(one: Any) -> tuple[datetime, str]:
    if isinstance(one, Item):
        return one.stored_at, one.id
    return one.created_at or _LONG_AGO, one.src.id


def _calendar(asks: Sequence[Ask], scope: Any, *, sessions: int, days: bool = True) -> Calendar:
    found = _each(asks, scope, sessions=sessions, days=days)
    counts: Counter[tuple[Any, str]] = Counter()
    for day in chain.from_iterable(one.days for one in found):
        counts[day.day, day.kind] += day.items
    spans: dict[str, SessionSpan] = {}
    for span in chain.from_iterable(one.sessions for one in found):
        name, first, last, count = spans.get(span.session, span._replace(items=0))
        first, last = min(first, span.first), max(last, span.last)
        spans[name] = SessionSpan(name, first, last, count + span.items)
    latest = sorted(spans.values(), key=lambda span: (span.last, span.session), reverse=True)
    by_day = tuple(KindsOfDay(*key, counts[key]) for key in sorted(counts))
    return Calendar(by_day, tuple(latest[:sessions]))


def _statistics(asks: Sequence[Ask], *given: Any, **named: Any) -> WordStatistics:
    """Add the counts of words; terms that can be read only once are read once."""
    terms = tuple(given[0])
    found = _each(asks, terms, *given[1:], **named)
    return join_statistics(found[0], found[1:])


def join_statistics(own: WordStatistics, others: Sequence[WordStatistics]) -> WordStatistics:
    """Return the counts of words of several stores together."""
    every = (own, *others)
    documents = sum(one.documents for one in every)
    length = sum(one.documents * one.average_length for one in every)
    counts: Counter[str] = Counter()
    for one in every:
        counts.update(one.frequencies)
    frequencies = {term: counts[term] for term in own.frequencies}
    return WordStatistics(documents, length / documents if documents else 0.0, frequencies)


def _resolve(asks: Sequence[Ask], part: str) -> list[str]:
    found = _distinct(_each(asks, part))
    return [part] if part in found else found[:10]


def _browse(
    asks: Sequence[Ask], scope: Any, *, limit: int, after: str | None = None, offset: int = 0
) -> list[Item]:
    """List newest first. What comes after one is found by its place in the whole list."""
    number = limit + offset
    while True:
        pages = _each(asks, scope, limit=number)
        merged = list(heapq.merge(*pages, key=_age, reverse=True))
        start = 0
        if after is not None:
            places = (place + 1 for place, item in enumerate(merged) if item.id == after)
            start = next(places, 0)
        complete = all(len(page) < number for page in pages)
        if after is None or complete or (start and len(merged) >= start + offset + limit):
            if after is not None and not start:  # said as a store says it
                return cast("list[Item]", asks[0](scope, limit=limit, after=after, offset=offset))
            return merged[start + offset : start + offset + limit]
        number *= 4


def _around(asks: Sequence[Ask], item_id: str, *, window: int, scope: Any) -> list[Item]:
    """Return the neighbours in the store that has the memory."""
    for ask in asks[1:]:
        with suppress(NotFound):
            return cast("list[Item]", ask(item_id, window=window, scope=scope))
    return cast("list[Item]", asks[0](item_id, window=window, scope=scope))


def _history(answers: Sequence[list[Item]]) -> list[Item]:
    found = [one for one in answers if one]
    live = [one for one in found if one[-1].live_to is None]
    return live[-1] if live else found[0] if found else []


def _unite_entities(found: Sequence[Entity]) -> dict[str, Entity]:
    """Return entities by id: what the stores say of one, together."""
    united: dict[str, Entity] = {}
    for one in found:
        known = united.get(one.id)
        united[one.id] = one if known is None else _unite_two(known, one)
    return united


def _unite_two(one: Entity, other: Entity) -> Entity:
    names = dict.fromkeys((*one.aliases, *other.aliases))
    layers = Counter(dict(one.layers)) + Counter(dict(other.layers))
    seen = [at for at in (one.last_seen_at, other.last_seen_at) if at is not None]
    return one._replace(
        aliases=tuple(sorted(name for name in names if name != one.name.casefold())),
        mentions=one.mentions + other.mentions,
        momentum=max(one.momentum, other.momentum),
        last_seen_at=max(seen, default=None),
        layers=tuple(sorted(layers.items())),
        pinned=one.pinned + other.pinned,
    )


def _find_entities(
    asks: Sequence[Ask], texts: tuple[str, ...], limit: int = 8, **named: Any
) -> list[list[Entity]]:
    answers = _each(asks, texts, limit, **named)
    united = [
        _unite_entities(list(chain.from_iterable(each))) for each in zip(*answers, strict=True)
    ]
    return [list(found.values())[:limit] for found in united]


def _entities(
    asks: Sequence[Ask], *, prefix: str = "", limit: int = 100, offset: int = 0
) -> list[Entity]:
    found = _unite_entities(_concatenated(_each(asks, prefix=prefix, limit=limit + offset)))
    ranked = sorted(found.values(), key=lambda one: (-one.mentions, one.id))
    return ranked[offset : offset + limit]


def _list_entities(asks: Sequence[Ask], listing: EntityListing, now: datetime) -> list[Entity]:
    """List entities by the rule of a store, as far as its first pages show them."""
    every = listing._replace(limit=listing.limit + listing.offset, offset=0)
    found = _unite_entities(_concatenated(_each(asks, every, now)))

    def rank(one: Entity) -> tuple[float, str]:
        years = (now - (one.last_seen_at or datetime.fromtimestamp(0, UTC))).total_seconds()
        return -(10.0 * one.momentum + 0.5 * one.mentions - 2.0 * years / _YEAR_S), one.id

    return sorted(found.values(), key=rank)[listing.offset : listing.offset + listing.limit]


def _scored_entities(asks: Sequence[Ask], what: Any, *given: Any, **named: Any) -> list[Any]:
    """Merge entities by score, each once with its best."""
    limit = next(one for one in (*given, *named.values()) if isinstance(one, int))
    scored = _concatenated(_each(asks, what, *given, **named))
    entities = _unite_entities([one.entity for one in scored])
    best: Json = {}
    for one in scored:
        known = best.get(one.entity.id)
        if known is None or one.score > known.score:
            best[one.entity.id] = one._replace(entity=entities[one.entity.id])
    ranked = sorted(
        best.values(), key=lambda one: (-one.score, -one.entity.mentions, one.entity.id)
    )
    return ranked[:limit]


def _siblings(answers: Sequence[SharedEntities]) -> SharedEntities:
    hubs = dict.fromkeys(hub for one in answers for hub in one.hubs)
    rest = (one for each in answers for one in each.siblings if one.entity not in hubs)
    return SharedEntities(tuple(rest), tuple(hubs))


def _add_up(add: Ask, answers: Sequence[Mapping[str, object]]) -> Json:
    """Merge answers by name; what several have is added."""
    found: Json = {}
    for name, value in chain.from_iterable(answer.items() for answer in answers):
        found[name] = add(found[name], value) if name in found else value
    return found


def _add_usage(one: Usage, other: Usage) -> Usage:
    lasts = [at for at in (one.last_at, other.last_at) if at is not None]
    return Usage(
        one.recalls + other.recalls,
        max(lasts, default=None),
        tuple(sorted((*one.stamps, *other.stamps)))[-20:],
        one.in_30_days + other.in_30_days,
        one.in_90_days + other.in_90_days,
    )


def _threads(asks: Sequence[Ask], *, limit: int = 100, offset: int = 0) -> list[Any]:
    found = _concatenated(_each(asks, limit=limit + offset))
    found.sort(key=lambda one: (one.updated_at or _LONG_AGO, one.id), reverse=True)
    return found[offset : offset + limit]


def _file_history(answers: Sequence[Any]) -> Any:
    """Join the histories of files; the person's own seldom has any."""
    found = [one for one in answers if one.edits]
    if len(found) < 2:
        return found[0] if found else answers[0]
    joined = {
        name: tuple(dict.fromkeys(chain.from_iterable(getattr(one, name) for one in found)))
        for name in ("paths", "sessions", "days", "intents", "items")
    }
    firsts, lasts = ([getattr(one, name) for one in found] for name in ("first_at", "last_at"))
    return found[0]._replace(
        edits=sum(one.edits for one in found), first_at=min(firsts), last_at=max(lasts), **joined
    )


def _events(asks: Sequence[Ask], *, after: int = 0, limit: int = 100) -> list[Event]:
    """Return the journals as one, numbered as the person sees it."""
    every: list[list[Event]] = []
    for ask in asks:
        lines: list[Event] = []
        while page := ask(after=lines[-1].seq if lines else 0, limit=after + limit):
            lines += page
            if len(lines) >= after + limit:
                break
        every.append(lines)
    merged = list(heapq.merge(*every, key=lambda line: line.at))
    numbered = [line._replace(seq=number) for number, line in enumerate(merged, 1)]
    return numbered[after : after + limit]


def _changes(
    asks: Sequence[Ask], *, item: str | None, actor: str | None, limit: int
) -> list[Event]:
    """Return the newest lines; those of everything are numbered as `_events` does."""
    lists = _each(asks, item=item, actor=actor, limit=limit)
    oldest_first = heapq.merge(*(reversed(lines) for lines in lists), key=lambda line: line.at)
    found: list[Event] = list(oldest_first)[::-1][:limit]
    if item is not None or actor is not None:
        return found
    total = sum(lines[0].seq for lines in lists if lines)  # a journal has no gaps
    return [line._replace(seq=total - place) for place, line in enumerate(found)]


def _stats(answers: Sequence[Json]) -> Json:
    """Add up the counts of the stores, without those of a whole file."""
    first, *others = answers
    found = {name: value for name, value in first.items() if name not in _NONE_OF_A_VIEW}
    for other in others:
        for name in found.keys() & other.keys() - set(_OF_THE_FIRST):
            found[name] = _add(name, found[name], other[name])
    return found


def _add(name: str, one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        counts = Counter(dict(one)) + Counter(dict(other))
        return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
    if one is None or other is None:
        return other if one is None else one
    if name in {"oldest", "newest"}:
        return min(one, other) if name == "oldest" else max(one, other)
    return one + other if isinstance(one, int) else one


# How the answers of the stores become one, by part and method; others only write.
_MERGES: dict[str, dict[str, Ask]] = {
    "search": {
        "read_ahead": list, "text": _search_text, "substring": _search, "vector": _search_vector,
        "pieces": _search, "signature": _search, "time": _search, "entities": _search,
        "mentioning": _newest_of_each, "in_scope": _concatenated, "count": sum,
        "calendar": _calendar, "terms": _first, "words": _first, "statistics": _statistics,
    },
    "items": {
        "get": _united, "damaged": lambda answers: list(dict.fromkeys(chain(*answers))),
        "resolve": _resolve, "history": _history,
        "browse": _browse, "around": _around, "from_source": _distinct,
        "find_keys": _united, "slots": _concatenated,
    },
    "graph": {
        "find_entities": _find_entities, "entities": _entities, "list_entities": _list_entities,
        "near_entities": _scored_entities, "entities_with": _scored_entities,
        "links_of": _concatenated, "follows": _concatenated, "edges": _newest_of_each,
        "siblings": _siblings, "unlinked": lambda answers: set().union(*answers),
    },
    "vectors": {"embeddings": _united, "read_ahead": list},
    "activity": {
        "usage": partial(_add_up, _add_usage), "momenta": partial(_add_up, max),
        "thread": lambda answers: next(filter(None, answers), None),
        "threads": _threads, "threads_of": _concatenated,
        "file_history": _file_history,
    },
    "admin": {
        "events": _events, "changes": _changes, "count": sum,
        "stats": _stats, "generation": sum, "ended_as": _distinct,
        "stored_by": _distinct,
    },
    "sync": {"conflicts": _united},  # machines exchange a space, not what one person sees
}  # fmt: skip
# These merge by what is asked, or ask the stores for something else; others get the answers.
_ASKING = (
    _search, _search_vector, _newest_of_each, _calendar, _first, _statistics, _resolve, _browse,
    _around, _find_entities, _entities, _list_entities, _scored_entities, _threads, _events,
    _changes,
)  # fmt: skip
# What a person does to no memory in particular is kept in the person's own store.
_OWN: dict[str, dict[str, Json]] = {part: {} for part in _MERGES} | {
    "activity": {"note_use": {"of_others": True}, "file_snapshot": {}, "keep_file_snapshot": {}},
    "admin": {"log": {}, "questions": {}, "change_questions": {}},
}
