"""Analyse a question: content terms, named times, expected answer type, requested kinds.

A generic request names only a time ("what happened last week?", "what did we decide in
May?"): the answer is everything of that time, decisions first where they are requested.
Its words are known in the languages with a ``[questions]`` section in ``lang/data``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import MAXYEAR, datetime, timedelta
from functools import cache
from typing import Literal

from bethink.core.dataclass import replace
from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import shorten
from bethink.core.speakers import own_caption
from bethink.core.words import bm25_idf
from bethink.lang.dates import DAY_S, EventPhrase, apply_bound, find_events, find_times
from bethink.lang.dates.languages import detect_language, fold
from bethink.lang.dates.sessions import find_sessions
from bethink.lang.words import MONTHS, WEEKDAYS, load_section, word_set_of
from bethink.model import Candidate, Filters, Item
from bethink.model.item import RULE_KINDS
from bethink.ports import TextSearch, Word
from bethink.retrieval.context import Context, PerRecall

_SEVERAL_ANSWERS = lazy_pattern(
    r"\b(?:both|all|each|every|list|together|in common|(?:types?|kinds?|sorts?) of"
    r"|how many|how often|who (?:all|else)|what else)\b"
    # "What activities does ...", "which of her books ...", "what are ...": expects a list.
    r"|\b(?:what|which)(?: \w+){0,2}? \w+[^s\W]s\b"
    r"|\b(?:what|which|who) (?:are|were|have|do)\b"
    r"|\b(?:what|which|where|who)\b.*\b(?:has|have)\b",
    re.IGNORECASE,
)
_MULTI_HOP = lazy_pattern(
    r"\b(?:who|whom|whose|which|that) \w+.*\b(?:who|whom|whose|which|that) \w+"
    r"|\w(?:'s|’s) \w+(?:'s|’s) \w|\b\w+(?:'s|’s) (?:\w+ )?(?:suggestion|recommendation|advice)\b",
    re.IGNORECASE,
)
_TIME_ORDER = lazy_pattern(
    r"\b(?:before|after|since|until|by the time|first|last|then)\b", re.IGNORECASE
)
_WHEN = r"when|what (?:date|day|month|year|time)|how long"
_TIME_QUESTION = lazy_pattern(rf"\b(?:{_WHEN})\b", re.IGNORECASE)
_QUESTION_SPLIT = lazy_pattern(
    r"\s*(?:[,;]?\s+and\s+(?=(?:what|who|when|where|which|why|how)\b)|[?;]\s+)", re.IGNORECASE
)


def expects_several_answers(text: str) -> bool:
    """Whether one memory will hardly be the whole answer."""
    return _SEVERAL_ANSWERS.search(text) is not None or len(split_question(text)) > 1


def is_multi_hop(text: str) -> bool:
    """Whether the question describes its subject through another one (multi-hop)."""
    return _MULTI_HOP.search(text) is not None


def is_temporal(text: str) -> bool:
    """Whether the question asks for a time, or for what came before or after something."""
    return _TIME_QUESTION.search(text) is not None or _TIME_ORDER.search(text) is not None


def split_question(text: str) -> tuple[str, ...]:
    """Split a compound question into its single questions."""
    found = [part.strip(" ?;,.") for part in _QUESTION_SPLIT.split(text)]
    return tuple(part for part in found if len(part.split()) > 1) or (text,)


CHINESE = "zh"
ENGLISH = "en"
_LETTERS = lazy_pattern(r"[^\W_]+")
PLAN_KINDS = ("task", "goal")


class KindRequest(NamedTuple):
    """A category of memories that a question may request: their kinds, and its words."""

    kinds: tuple[str, ...]
    words: frozenset[str]


@cache
def kind_requests(language: str) -> tuple[KindRequest, ...]:
    """The categories that can be requested in a language."""
    kinds: dict[str, str] = load_section(language, "questions")["kinds"]
    return tuple(
        KindRequest(tuple(names.split()), frozenset(map(fold, words.split())))
        for names, words in kinds.items()
    )


@cache
def generic_words(language: str) -> frozenset[str]:
    """Generic request words, which say nothing about a memory's content."""
    request_words = (word for request in kind_requests(language) for word in request.words)
    topic = _LETTERS.findall(fold(load_section(language, "questions").get("topic", "")))
    generic = map(fold, word_set_of(language, "questions", "generic"))
    return frozenset(generic).union(request_words, topic)


def is_generic_unspaced(chinese_run: str, times: Iterable[str]) -> bool:
    """Whether a run of Chinese text holds nothing but times and generic request words."""
    for phrase in (*times, *sorted(generic_words(CHINESE), key=len, reverse=True)):
        chinese_run = chinese_run.replace(phrase, "")
    return _LETTERS.search(chinese_run) is None


_TIME_SCAN_CHARS = 1_000  # characters of a memory in which a time is looked for

AnswerType = Literal["a time", "a number", "a name"]

_WHEN_QUESTION = lazy_pattern(rf"\s*(?:since when|{_WHEN})\b", re.IGNORECASE)
_NUMBER_QUESTION = lazy_pattern(
    r"\bhow (?:many|much|old|long|often|far|big|tall)\b"
    r"|\bwhat (?:percentage|share|amount|number|total|time|price|size|version|port)\b",
    re.IGNORECASE,
)
_NAME_QUESTION = lazy_pattern(r"\b(?:who|whom|whose|where|which|name)\b", re.IGNORECASE)
_TIME_ANSWERS = (
    "yesterday today tonight tomorrow last next ago week weeks weekend month months year years"
    " day days morning evening night recently since spring summer autumn fall winter"
)
_TIME_WORDS = frozenset(_TIME_ANSWERS.split()).union(WEEKDAYS, MONTHS)
_DATE_ANSWER = lazy_pattern(r"\d{4}|\d{1,2}(?:st|nd|rd|th)")
_WORDS = lazy_pattern(r"\w+")
_NUMBER_ANSWER = lazy_pattern(r"\d")
_NAME_ANSWER = lazy_pattern(r"(?<=[a-z,] )[A-Z][a-z]+")

_ANSWER_PATTERNS = {"a number": _NUMBER_ANSWER, "a name": _NAME_ANSWER}


class ContentTerm(NamedTuple):
    """A content word of the question with its weight: its inverse document frequency here."""

    word: Word
    weight: float


@PerRecall
def content_terms(ctx: Context) -> tuple[ContentTerm, ...]:
    """The content terms of the question: its words without the stop words."""
    return tuple(ContentTerm(word, ctx.idf(word)) for word in ctx.words() if not word.common)


def unknown_share(ctx: Context) -> float:
    """Share of the question's content-term weight that no memory here holds."""
    known, terms = ctx.statistics().frequencies, content_terms(ctx)
    total = sum(term.weight for term in terms)
    unknown = sum(term.weight for term in terms if not all(map(known.get, term.word.terms)))
    return unknown / total if total else 0.0


def max_bm25_score(ctx: Context, k1: float = 1.2) -> float:
    """The BM25 score of a memory that holds every content term of the question at its best.

    A lexical retriever's score is normalised by it; boosts for full names are not included.
    """
    documents, _, frequencies = ctx.statistics()
    terms = {term for content_term in content_terms(ctx) for term in content_term.word.terms}
    frequencies_of_terms = (frequencies.get(term, 0) for term in sorted(terms))
    return (k1 + 1.0) * math.fsum(bm25_idf(documents, df) for df in frequencies_of_terms)


def expected_answer_types(text: str) -> tuple[AnswerType, ...]:
    """The expected answer types of a question, if its wording shows them."""
    kinds: list[AnswerType] = []
    if _WHEN_QUESTION.match(text):
        kinds.append("a time")
    if _NUMBER_QUESTION.search(text):
        kinds.append("a number")
    if _NAME_QUESTION.search(text):
        kinds.append("a name")
    return tuple(kinds)


def answer_type_of(text: str, kinds: tuple[AnswerType, ...]) -> AnswerType | None:
    """Which of the expected answer types a memory's text could provide; None if none."""
    for kind in kinds:
        if _states_time(text) if kind == "a time" else _ANSWER_PATTERNS[kind].search(text):
            return kind
    return None


def _states_time(text: str) -> bool:
    """Whether a text has a word or a number that tells when."""
    # Words in a set: a third of the time of a pattern with all of them.
    words = _WORDS.findall(text.lower())
    return not _TIME_WORDS.isdisjoint(words) or any(
        _DATE_ANSWER.fullmatch(word) for word in words if word[0].isdigit()
    )


class Period(NamedTuple):
    """A period of time that the question names, with its words.

    ``confidence`` says how certain it is; ``event`` is the memory it was taken from where
    the question names an event instead of a date.
    """

    start: datetime
    end: datetime
    said: str
    confidence: float = 1.0
    event: Item | None = None

    def describe(self) -> str:
        """Description for the trace."""
        if self.event is None:
            return f"the question names {self.said}"
        memory = f"{self.event.id}, {self.event.when:%Y-%m-%d}: {shorten(self.event.text, 60)}"
        return f'"{self.said}" is dated by a memory ({memory})'


@PerRecall
def periods(ctx: Context) -> tuple[Period, ...]:
    """The periods of time the question names, relative to its own clock."""
    return _find_periods(ctx)


@PerRecall
def time_terms(ctx: Context) -> frozenset[str]:
    """The index terms by which the question names times; empty where it names none."""
    named = [period.said for period in periods(ctx) if period.event is None]
    return frozenset(ctx.store.search.terms(" ".join(named)) if named else ())


def asked_numbers(ctx: Context) -> frozenset[str]:
    """The index terms with a digit that the question has, but for those of a time."""
    terms = ctx.store.search.terms(ctx.query.text)
    return frozenset(term for term in terms if any(map(str.isdigit, term))) - time_terms(ctx)


def occurred_in_named_period(item: Item, ctx: Context) -> bool:
    """Whether a memory dates from a period that the question names."""
    return any(period.start <= item.when < period.end for period in periods(ctx))


def is_of_named_time(cand: Candidate, ctx: Context) -> bool:
    """Whether the temporal retriever found it, or would have."""
    found = any(reason.by == "channel.temporal" for reason in cand.evidence)
    return found or occurred_in_named_period(cand.item, ctx)


def coverage(cand: Candidate, ctx: Context) -> float:
    """Share of the question's content terms that a memory holds, weighted by idf.

    A memory of the time that the question names need not mention that time.
    """
    terms = content_terms(ctx)
    if is_of_named_time(cand, ctx):
        times = time_terms(ctx)
        terms = tuple(term for term in terms if not times.issuperset(term.word.terms))
    total = sum(term.weight for term in terms)
    spoken = f"{cand.item.speaker or ''} {own_caption(cand.item)} {cand.item.text}"
    present = set(ctx.store.search.terms(spoken))
    matched = [term for term in terms if present.issuperset(term.word.terms)]
    if len(matched) == len(terms):
        return 1.0 if terms else 0.0
    return sum(term.weight for term in matched) / total if total else 0.0


class ExpectedSimilarity(NamedTuple):
    """The similarity that a memory's words let expect: of the whole, and word by word."""

    whole: float
    tokens: float


def expected_similarity(cand: Candidate, ctx: Context) -> ExpectedSimilarity:
    """Return how similar to the question memories are on average that hold as much of its words.

    For a memory that has no vector yet. On the reference scale; measured over notes, chats
    and paragraphs, where both rise evenly with the coverage, with deviations of 0.1.
    """
    held = coverage(cand, ctx)
    return ExpectedSimilarity(0.18 + 0.39 * held, 0.24 + 0.58 * held)


def mentions_named_period(item: Item, ctx: Context) -> bool:
    """Whether a memory's text names a time within a period that the question names."""
    windows = [span.window() for span in find_times(item.text[:_TIME_SCAN_CHARS], item.when)]
    return any(
        period.start <= start and end <= period.end
        for period in periods(ctx)
        for start, end in windows
    )


def time_only_filters(ctx: Context) -> Filters | None:
    """Filters narrowed to the named time, for a question that names a time and nothing else.

    The range runs from the start of the first period to the end of the last. None for any
    other question, and for one about the future.
    """
    if not asks_only_for_time(ctx) or asks_about_future(ctx):
        return None
    named = periods(ctx)
    return narrow_to_period(
        ctx.query.filters,
        min(period.start for period in named),
        max(period.end for period in named),
    )


def narrow_to_period(filters: Filters, start: datetime, end: datetime) -> Filters:
    """Narrow the filters to a period of time."""
    since = max(filter(None, (filters.since, start)))
    until = min(filter(None, (filters.until, end)))
    return replace(filters, since=since, until=until)


@PerRecall
def asks_only_for_time(ctx: Context) -> bool:
    """Whether a question names a time and no other content that a memory would have to hold.

    Examples: "what happened last Tuesday?", "what did we decide in May?".
    """
    named = [period.said for period in periods(ctx)]
    return bool(named) and _names_only(named, ctx)


def _names_only(named: list[str], ctx: Context) -> bool:
    """Whether a question holds nothing but these names of times."""
    generic = _generic_words(ctx)
    known = generic.union(*(_LETTERS.findall(fold(phrase)) for phrase in named))
    others = [
        content_term.word
        for content_term in content_terms(ctx)
        if not known.issuperset(_LETTERS.findall(fold(content_term.word.shown)))
        and not is_generic_unspaced(content_term.word.shown, named)
    ]
    return len(others) <= 1 and all(_is_mere_verb(word, named, ctx) for word in others)


# The object of the verb is what is asked for: "what did we chat about", "what have they done".
_OBJECT_QUESTION = lazy_pattern(
    r"\bwhat(?: all| else)? (?:did|do|have|had|has|was|were|are|am|is)"
    r" (?:we|i|you|they|he|she|everyone|everybody)(?: all| both| ever| just| been| also)*"
    r" ([a-z]+)\b"
)


def _is_mere_verb(word: Word, named: list[str], ctx: Context) -> bool:
    """Whether a word is only the verb of a question for what was done or talked about.

    Any verb where the question asks for a topic; another verb if no memory holds it, so that
    the time is all there is to look for.
    """
    if _asks_for_topic(named, ctx):
        return word.shown.islower()
    asked = _OBJECT_QUESTION.search(ctx.query.text.lower())
    if asked is None or asked[1] != word.shown:
        return False
    known = ctx.statistics().frequencies
    return not all(map(known.get, word.terms))


def _asks_for_topic(named: list[str], ctx: Context) -> bool:
    """Whether a question asks for what was talked about: "chat about on Monday", "de quoi".

    In English nothing but the time may follow: "about bread on Monday" has a topic.
    """
    text, times = fold(ctx.query.text), list(map(fold, named))
    questions = load_section(_detect_question_language(ctx.query.text).name, "questions")
    leading = (phrase.strip() for phrase in questions.get("topic", "").split("|"))
    if any(phrase and re.search(rf"\b{fold(phrase)}\b", text) for phrase in leading):
        return True
    _, found, rest = text.partition(" about ")
    ends = [rest.index(said) for said in times if said in rest]
    between = _LETTERS.findall(rest[: min(ends)]) if ends else ["?"]
    return bool(found) and {"the", "on", "in", "at", "during", "over", "around"}.issuperset(between)


def asks_about_future(ctx: Context) -> bool:
    """Whether a question names a future time or, if it asks for plans, one that is not over.

    Knowledge of such a time was stored before it. "Since Monday" refers to the past.
    """
    planned = not set(PLAN_KINDS).isdisjoint(requested_kinds(ctx.query.text))
    moment = ctx.query.moment
    return any(
        period.start > moment or (planned and period.end > moment and period.end.year < MAXYEAR)
        for period in periods(ctx)
    )


def requested_kinds(text: str) -> tuple[str, ...]:
    """The kinds of memories that a question requests by a word: decisions by "decide"."""
    language = _detect_question_language(text)
    found = (
        request.kinds
        for request in kind_requests(language.name)
        if not request.words.isdisjoint(language.words)
        or (language.name == CHINESE and any(word in text for word in request.words))
    )
    return tuple(dict.fromkeys(kind for kinds in found for kind in kinds))


class _QuestionLanguage(NamedTuple):
    """The language of a question, its words, and the stop words of that language."""

    name: str
    words: frozenset[str]
    empty: frozenset[str]


def _detect_question_language(text: str) -> _QuestionLanguage:
    """Detect the language of a question; English unless it is another known one."""
    words = frozenset(_LETTERS.findall(fold(text)))
    language = detect_language(words, english=True)
    if language is not None:
        return _QuestionLanguage(language.code, words, language.common)
    # A pattern of so many signs takes long to compile: start-up time.
    has_han = not text.isascii() and any("\u4e00" <= sign <= "\u9fff" for sign in text)
    return _QuestionLanguage(CHINESE if has_han else ENGLISH, words, frozenset())


@PerRecall
def _generic_words(ctx: Context) -> frozenset[str]:
    language = _detect_question_language(ctx.query.text)
    return generic_words(language.name) | language.empty


def _find_periods(ctx: Context) -> tuple[Period, ...]:
    text = ctx.query.text
    spans = find_times(text, ctx.query.moment, lean="past", vague=True)
    # "recently" adds nothing to an explicit date.
    highest = max((span.confidence for span in spans), default=1.0)
    sure = [span for span in spans if span.confidence == highest]
    named = [Period(*span.window(), span.text, span.confidence) for span in sure]
    session = _session_period(ctx)
    # Of one that is not stored, the other words of the question are searched.
    if session and (session.start < session.end or _names_only([session.said], ctx)):
        return (*named, session)
    found = [_event_period(phrase, ctx) for phrase in find_events(text, spans)]
    events = [period for period in found if period is not None]
    # "The Monday after the release" is not the last Monday.
    named = [one for one in named if not any(one.said in event.said for event in events)]
    return (*named, *events)


def _session_period(ctx: Context) -> Period | None:
    """The time of the sessions that a question counts, never where there are not so many."""
    counted = find_sessions(ctx.query.text)
    if counted is None:
        return None
    spans = ctx.store.search.calendar(ctx.scope, sessions=_MAX_SESSIONS, days=False).sessions
    others = [span for span in spans if span.session != ctx.query.own_session]
    chosen = sorted(others, key=lambda span: (span.first, span.session))[counted.order]
    if not chosen:
        is_name = not spans or counted.said[-1].isdecimal()  # "session 401"
        return None if is_name else Period(ctx.query.moment, ctx.query.moment, counted.said)
    start, end = min(span.first for span in chosen), max(span.last for span in chosen)
    return Period(start, end + timedelta(milliseconds=1), counted.said)


_MAX_SESSIONS = 100_000
_EVENT_KINDS = frozenset({"event", "milestone", "release", "incident", "resolution"})
# Questions, plans and general statements did not happen at a time.
_NON_EVENT_KINDS = frozenset(
    {"question", "task", "goal", *RULE_KINDS, "preference", "caveat", "fact"}
)
_EVENT_DEPTH = 12
_EVENT_POSTINGS = 2_000
_EVENT_CONFIDENCE = 0.8
_MIN_EVENT_SCORE_SHARE = 0.7


def _event_period(phrase: EventPhrase, ctx: Context) -> Period | None:
    """The period of the stored event that a phrase names; None where none fits."""
    event = _find_event(phrase, ctx)
    if event is None:
        return None
    start, end = _event_interval(event)
    if phrase.bound in ("since", "after") and start > ctx.query.moment:
        return None
    if phrase.bound in ("since", "after"):
        end = start  # includes the rest of the same day
    window = phrase.window(start) or apply_bound(start, end, phrase.bound)
    return Period(*window, phrase.said, _EVENT_CONFIDENCE, event)


def _find_event(phrase: EventPhrase, ctx: Context) -> Item | None:
    """The latest of the best memories that describe an event and hold all words of the phrase."""
    # A turn of a conversation that mentions an event is not the event.
    filters = replace(ctx.query.filters, levels=ctx.query.filters.levels or ("item",))
    scope = ctx.scope._replace(filters=filters)
    search = TextSearch(phrase.phrase, _EVENT_DEPTH, postings_budget=_EVENT_POSTINGS)
    matches = ctx.store.search.text(search, scope).matches
    dated = [
        (match, set(ctx.store.search.terms(match.item.text)))
        for match in matches
        if _may_be_event(match.item)
    ]
    for words in dict.fromkeys((phrase.phrase, phrase.core)):
        required = _required_terms(words, ctx)
        fitting = [match for match, terms in dated if required and required <= terms]
        if fitting:
            events = [m for m in fitting if m.item.kind in _EVENT_KINDS] or fitting
            minimum = max(match.score for match in events) * _MIN_EVENT_SCORE_SHARE
            best = [match.item for match in events if match.score >= minimum]
            return max(best, key=lambda item: (item.when, item.id))
    return None


def _may_be_event(item: Item) -> bool:
    if item.level == "raw" or item.kind in _NON_EVENT_KINDS:
        return False
    return item.kind in _EVENT_KINDS or item.occurred_at is not None


def _required_terms(words: str, ctx: Context) -> set[str]:
    """The index terms of the words that a memory of an event must hold."""
    empty = {word.shown for word in ctx.words() if word.common}
    known = ctx.store.search.words(words)
    content = [word for word in known if not (word.common or word.shown in empty)]
    return {term for word in content for term in word.terms}


def _event_interval(event: Item) -> tuple[datetime, datetime]:
    """When an event happened: its stored time or, without one, the time its text names."""
    if event.occurred_at is None:
        times = find_times(event.text, event.stored_at, lean="past")
        if len(times) == 1 and not times[0].bound:
            return times[0].start, times[0].end
    midnight = event.when.replace(hour=0, minute=0, second=0, microsecond=0)
    return event.when, event.occurred_end or midnight + timedelta(days=1)


def time_proximity(item: Item, period: Period, *, before_days: float, after_days: float) -> float:
    """Proximity of a memory to a period: 1 inside, decaying outside.

    The decay is slower after the period, since later memories may still refer to it.
    """
    moment = item.when
    late = max(0.0, (moment - period.end).total_seconds() / DAY_S) if moment >= period.end else 0.0
    early = (
        max(0.0, (period.start - moment).total_seconds() / DAY_S) if moment < period.start else 0.0
    )
    return math.exp(-late / after_days - early / before_days)
