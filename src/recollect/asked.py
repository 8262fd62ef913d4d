"""What a question asks: its telling words, the times it names, the kind of answer."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import MAXYEAR, datetime, timedelta
from typing import Literal, NamedTuple

from recollect.context import Context
from recollect.dates import EventPhrase, bounded, find_events, find_times
from recollect.dates.languages import fold, spoken
from recollect.model import Filters, Item
from recollect.ports import TextSearch, Word
from recollect.text import shorten
from recollect.whatever import CHINESE, ENGLISH, PLANS, only_asking, only_asks_unspaced, sorts

DAY_S = 86_400.0
_READ = 1_000  # characters of a memory in which a time is looked for

Wanted = Literal["a time", "a number", "a name"]

_WHEN = re.compile(
    r"\s*(?:when|since when|how long|what (?:date|year|month|day|time))\b", re.IGNORECASE
)
_NUMBER = re.compile(
    r"\bhow (?:many|much|old|long|often|far|big|tall)\b"
    r"|\bwhat (?:percentage|share|amount|number|total|time|price|size|version|port)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b(?:who|whom|whose|where|which|name)\b", re.IGNORECASE)
_ADVICE = re.compile(
    r"\b(?:can|could|would|will) you (?:please )?(?:suggest|recommend|advise|propose)\b"
    r"|\b(?:do|would) you (?:suggest|recommend)\b"
    r"|^\s*(?:please )?(?:suggest|recommend|advise)\b"
    r"|\bany (?:good )?(?:tips|advice|ideas?|suggestions?|recommendations?)\b"
    r"|\bshould (?:I|we)\b",
    re.IGNORECASE,
)
_SAYS_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|last|next|ago|weeks?|weekend|months?|years?|days?"
    r"|morning|evening|night|recently|since|monday|tuesday|wednesday|thursday|friday|saturday"
    r"|sunday|january|february|march|april|may|june|july|august|september|october|november"
    r"|december|spring|summer|autumn|fall|winter|\d{4}|\d{1,2}(?:st|nd|rd|th))\b",
    re.IGNORECASE,
)
_SAYS_NUMBER = re.compile(r"\d")
_SAYS_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+")
_ANSWERS = {"a time": _SAYS_TIME, "a number": _SAYS_NUMBER, "a name": _SAYS_NAME}


class Telling(NamedTuple):
    """A word of the question that says something, and how much: its rarity here."""

    word: Word
    weight: float


def telling_words(ctx: Context) -> tuple[Telling, ...]:
    """The question's words without those that are about nothing."""
    return ctx.once(
        "telling",
        lambda: tuple(Telling(word, ctx.rarity(word)) for word in ctx.words() if not word.common),
    )


def unknown_weight(ctx: Context, understood: frozenset[str] = frozenset()) -> float:
    """How telling the question's words are together that no memory here holds, without
    those that are ``understood`` all the same."""
    known = ctx.statistics().frequencies
    return sum(
        telling.weight
        for telling in telling_words(ctx)
        if not all(map(known.get, telling.word.terms))
        and not understood.issuperset(telling.word.terms)
    )


def unknown_share(ctx: Context) -> float:
    """The share of the question's telling words that no memory here holds."""
    total = sum(telling.weight for telling in telling_words(ctx))
    return unknown_weight(ctx) / total if total else 0.0


def reachable(ctx: Context, k1: float = 1.2) -> float:
    """The BM25 score of a memory that holds every telling word of the question at its best:
    what a lexical channel's share is a share of, names in full aside."""
    documents, _, frequencies = ctx.statistics()
    terms = {term for telling in telling_words(ctx) for term in telling.word.terms}
    held = (frequencies.get(term, 0) for term in sorted(terms))
    return (k1 + 1.0) * math.fsum(
        math.log(1.0 + (max(documents - df, 0) + 0.5) / (df + 0.5)) for df in held
    )


def wanted(text: str) -> tuple[Wanted, ...]:
    """What kind of answer a question asks for, if it lets on."""
    kinds: list[Wanted] = []
    if _WHEN.match(text):
        kinds.append("a time")
    if _NUMBER.search(text):
        kinds.append("a number")
    if _NAME.search(text):
        kinds.append("a name")
    return tuple(kinds)


def asks_advice(text: str) -> bool:
    """Whether somebody wants a suggestion, for which what is known of them may help."""
    return _ADVICE.search(text) is not None


def gives(text: str, kinds: tuple[Wanted, ...]) -> Wanted | None:
    """Which of the wanted kinds a memory could give; None where none of them."""
    return next((kind for kind in kinds if _ANSWERS[kind].search(text)), None)


class Period(NamedTuple):
    """A stretch of time the question names, in its words.

    ``confidence`` says how sure it is; ``event`` is the memory it was taken from where
    the question names no date but something that happened.
    """

    start: datetime
    end: datetime
    said: str
    confidence: float = 1.0
    event: Item | None = None

    def shown(self) -> str:
        """What the trace tells about it."""
        if self.event is None:
            return f"the question names {self.said}"
        memory = f"{self.event.id}, {self.event.when:%Y-%m-%d}: {shorten(self.event.text, 60)}"
        return f'"{self.said}" is counted from a memory ({memory})'


def periods(ctx: Context) -> tuple[Period, ...]:
    """The times the question speaks of, counted from its own clock."""
    return ctx.once("periods", lambda: _periods(ctx))


def time_terms(ctx: Context) -> frozenset[str]:
    """The index words by which the question names times; none where it names none."""
    named = [period.said for period in periods(ctx) if period.event is None]
    return ctx.once("time terms", lambda: frozenset(ctx.store.terms(" ".join(named))))


def of_named_time(item: Item, ctx: Context) -> bool:
    """Whether a memory is of a time that the question names."""
    return any(period.start <= item.when < period.end for period in periods(ctx))


def tells_of_named_time(item: Item, ctx: Context) -> bool:
    """Whether a memory names, in whatever words, a time within one that the question names."""
    told = [span.window() for span in find_times(item.text[:_READ], item.when)]
    return any(
        period.start <= start and end <= period.end
        for period in periods(ctx)
        for start, end in told
    )


def time_asked(ctx: Context) -> Filters | None:
    """The filters of a question that names a time and nothing else, narrowed to that time,
    from the beginning of the first to the end of the last; None of any other question, and
    of one that looks ahead."""
    if not asks_only_when(ctx) or looks_ahead(ctx):
        return None
    named = periods(ctx)
    return within(ctx.query.filters, min(one.start for one in named), max(one.end for one in named))


def within(filters: Filters, start: datetime, end: datetime) -> Filters:
    """The filters, narrowed to a time."""
    since = max(filter(None, (filters.since, start)))
    until = min(filter(None, (filters.until, end)))
    return replace(filters, since=since, until=until)


_LETTERS = re.compile(r"[^\W_]+")
_HAN = re.compile("[\u4e00-\u9fff]")


def asks_only_when(ctx: Context) -> bool:
    """Whether a question names a time and nothing else that a memory would have to say:
    "what happened last Tuesday?", "what did we decide in May?"."""
    named = [period.said for period in periods(ctx) if period.event is None]
    if not named:
        return False
    empty = ctx.once("only asking", lambda: _only_asking(ctx.query.text))
    said = empty.union(*(_LETTERS.findall(fold(time)) for time in named))
    return all(
        said.issuperset(_LETTERS.findall(fold(telling.word.shown)))
        or only_asks_unspaced(telling.word.shown, named)
        for telling in telling_words(ctx)
    )


def looks_ahead(ctx: Context) -> bool:
    """Whether a question names a time that is to come or, if it asks for plans, is not over:
    what is known of that was said before. "Since Monday" looks back."""
    planned = not set(PLANS).isdisjoint(kinds_asked(ctx.query.text))
    moment = ctx.query.moment
    return any(
        period.start > moment or (planned and period.end > moment and period.end.year < MAXYEAR)
        for period in periods(ctx)
    )


def kinds_asked(text: str) -> tuple[str, ...]:
    """The kinds of memories that a question asks for by a word: decisions by "decide"."""
    tongue = _tongue(text)
    found = (
        sort.kinds
        for sort in sorts(tongue.name)
        if not sort.words.isdisjoint(tongue.words)
        or (tongue.name == CHINESE and any(word in text for word in sort.words))
    )
    return tuple(dict.fromkeys(kind for kinds in found for kind in kinds))


def is_english(text: str) -> bool:
    """Whether a question is English, as far as one can tell."""
    return _tongue(text).name == ENGLISH


class _Tongue(NamedTuple):
    """The language of a question, its words in it, and those that say nothing there."""

    name: str
    words: frozenset[str]
    empty: frozenset[str]


def _tongue(text: str) -> _Tongue:
    """English, unless it is another one whose words are known."""
    words = frozenset(_LETTERS.findall(fold(text)))
    language = spoken(words, english=True)
    if language is not None:
        return _Tongue(language.name, words, language.common)
    return _Tongue(CHINESE if _HAN.search(text) else ENGLISH, words, frozenset())


def _only_asking(text: str) -> frozenset[str]:
    tongue = _tongue(text)
    return only_asking(tongue.name) | tongue.empty


def _periods(ctx: Context) -> tuple[Period, ...]:
    text = ctx.query.text
    spans = find_times(text, ctx.query.moment, lean="past", vague=True)
    # Beside a date "recently" says nothing more.
    surest = max((span.confidence for span in spans), default=1.0)
    sure = [span for span in spans if span.confidence == surest]
    named = [Period(*span.window(), span.text, span.confidence) for span in sure]
    events = [_since_event(phrase, ctx) for phrase in find_events(text, spans)]
    return (*named, *filter(None, events))


_EVENTS = frozenset({"event", "milestone", "release", "incident", "resolution"})
# What asks, plans or holds in general did not happen at a time, whenever it was told.
_NO_EVENTS = frozenset({"question", "task", "goal", "directive", "preference", "caveat", "fact"})
_EVENT_DEPTH = 12
_EVENT_POSTINGS = 2_000
_EVENT_CONFIDENCE = 0.8
_NEARLY_AS_GOOD = 0.7


def _since_event(phrase: EventPhrase, ctx: Context) -> Period | None:
    """The time of the stored event a phrase names; None where none fits."""
    event = _event(phrase, ctx)
    if event is None:
        return None
    start, end = _happened(event)
    if phrase.bound in ("since", "after"):
        end = start  # what followed it on the same day is meant as well
        if start > ctx.query.moment:
            return None
    window = bounded(start, end, phrase.bound)
    return Period(*window, phrase.said, _EVENT_CONFIDENCE, event)


def _event(phrase: EventPhrase, ctx: Context) -> Item | None:
    """The latest of the best memories that tell of an event and hold all its words."""
    # A turn of a conversation that speaks of an event is not the event.
    filters = replace(ctx.query.filters, levels=ctx.query.filters.levels or ("item",))
    scope = ctx.scope._replace(filters=filters)
    search = TextSearch(phrase.phrase, _EVENT_DEPTH, postings_budget=_EVENT_POSTINGS)
    matches = [
        match
        for match in ctx.store.search_text(search, scope).matches
        if match.item.level != "raw"
        and match.item.kind not in _NO_EVENTS
        and (match.item.kind in _EVENTS or match.item.occurred_at is not None)
    ]
    held = [set(ctx.store.terms(match.item.text)) for match in matches]
    for words in dict.fromkeys((phrase.phrase, phrase.core)):
        telling = {
            term for word in ctx.store.words(words) if not word.common for term in word.terms
        }
        fitting = [
            m for m, there in zip(matches, held, strict=True) if telling and telling <= there
        ]
        if fitting:
            events = [m for m in fitting if m.item.kind in _EVENTS] or fitting
            least = max(match.score for match in events) * _NEARLY_AS_GOOD
            best = [match.item for match in events if match.score >= least]
            return max(best, key=lambda item: (item.when, item.id))
    return None


def _happened(event: Item) -> tuple[datetime, datetime]:
    """When it happened: as it is kept or, where it is not, as its text tells."""
    if event.occurred_at is None:
        told = find_times(event.text, event.stored_at, lean="past")
        if len(told) == 1 and not told[0].bound:
            return told[0].start, told[0].end
    midnight = event.when.replace(hour=0, minute=0, second=0, microsecond=0)
    return event.when, event.occurred_end or midnight + timedelta(days=1)


def nearness(item: Item, when: Period, *, before_days: float, after_days: float) -> float:
    """1 inside the period, fading outside: what is told later still speaks of it."""
    moment = item.when
    late = max(0.0, (moment - when.end).total_seconds() / DAY_S) if moment >= when.end else 0.0
    early = max(0.0, (when.start - moment).total_seconds() / DAY_S) if moment < when.start else 0.0
    return math.exp(-late / after_days - early / before_days)
