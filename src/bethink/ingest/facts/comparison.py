"""Facts and their subjects, and whether two statements concern the same thing.

A newer fact hides an older one, so a second true fact must never be taken for a new value
of the first. Only two shapes count: the same sentence with another value in its place, and
a sentence that itself says that something changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.ingest.entity_extraction import SENTENCE_OPENERS
from bethink.ingest.facts import vocabulary
from bethink.ingest.facts.clause import ClauseWord, Value, parse_value
from bethink.ingest.facts.vocabulary import (
    ADVERBS,
    CADENCES,
    CODE_LIKE_NAMES,
    NEGATION_WORDS,
    NEWNESS_ADJECTIVES,
    NUMBER_WORDS,
    PERIOD_WORDS,
    REASON_WORDS,
    RELATION_PREPOSITIONS,
    UNITS,
)
from bethink.lang.words import MONTHS, WEEKDAYS

MAX_SUBJECT_WORDS = 6  # words
_OWNER_PREPOSITIONS = frozenset(
    {"of", "for", "in", "on", "at"}
)  # the log level of, for, in production

FactMode = Literal["is", "became", "is not", "ended"]
Cardinality = Literal["one", "some", "many", "loose", "version", "status", "event"]


class Fact(NamedTuple):
    """A stated fact; ``value`` is in normalised form for comparison.

    ``how``: it is so, became so, is not so, or ended. ``holds`` is the cardinality: ``one``
    value at a time; ``some``, where a second value is suspicious; ``many``; ``loose``, where
    only an explicit change replaces and a second value is suspicious; one ``version`` of each
    thing named; a ``status``; or an ``event``, which only an explicit change moves.
    ``before`` is the value it says it replaced. ``whole``: the text says nothing else. ``by``
    is the routine verb, where the slot does not contain it: "cut" on Tuesdays.
    """

    subject: str
    attribute: str
    value: str
    how: FactMode = "is"
    holds: Cardinality = "one"
    before: str = ""
    whole: bool = True
    by: str = ""


class FactSubject(NamedTuple):
    """What a statement is about: one thing, or a part of an owner ("Ana", "phone number")."""

    subject: str
    part: str = ""
    is_name: bool = False

    def slot(self, attribute: str) -> tuple[str, str]:
        """Return subject and attribute; "value" is implied where a part is named."""
        if not self.part:
            return self.subject, attribute
        return self.subject, self.part if attribute == "value" else f"{self.part} {attribute}"

    @property
    def name(self) -> str:
        """The full name: subject and part."""
        return f"{self.subject} {self.part}" if self.part else self.subject

    @property
    def head(self) -> str:
        """The head noun: the kind of thing it is."""
        return (self.part or self.subject).split()[-1]


class VerbClause(NamedTuple):
    """A clause split at its verb."""

    subject: tuple[ClauseWord, ...]
    verb: str
    after: tuple[ClauseWord, ...]
    how: FactMode
    whole: bool
    me: str | None

    @property
    def is_first_person(self) -> bool:
        """Whether the subject is "I" or "we"."""
        return len(self.subject) == 1 and self.subject[0].low in ("i", "we")

    @property
    def fact_subject(self) -> FactSubject | None:
        """The parsed subject of the clause."""
        return parse_subject(self.subject, self.me)

    @property
    def holder(self) -> Value | None:
        """The one name before the verb; None where more precedes it: "Ana left, Ben"."""
        value = parse_value(self.subject)
        return value if value and value.kind == "name" and not value.rest else None


def parse_subject(words: Sequence[ClauseWord], first_person: str | None) -> FactSubject | None:
    """Parse the one known thing that the words name; None where they do not."""
    if not words or len(words) > MAX_SUBJECT_WORDS or any(word.pause for word in words):
        return None
    low = [word.low for word in words]
    if low in (["i"], ["we"]):
        subject = first_person if low == ["i"] else "we"
        return FactSubject(subject, is_name=True) if subject else None
    if low[0] == "my":
        return _owned_subject(first_person, low[1:])
    definite = low[0] in vocabulary.DETERMINERS
    return _parse_subject_words(low[1:] if definite else low, words[0].raw, definite=definite)


def _parse_subject_words(low: Sequence[str], name: str, *, definite: bool) -> FactSubject | None:
    """Parse a subject without its article; ``name`` is the first word as written."""
    for at, word in enumerate(low):
        if word.endswith(("'s", "s'")):
            owner = [*low[:at], word.removesuffix("'s").removesuffix("'")]
            return _owned_subject(_join_subject_words(owner), low[at + 1 :])
        if word in _OWNER_PREPOSITIONS and at and not vocabulary.TIME_WORDS.intersection(low[at:]):
            owner = [
                owner_word
                for owner_word in low[at + 1 :]
                if owner_word not in vocabulary.DETERMINERS
            ]
            return _owned_subject(_join_subject_words(owner), low[:at])
    is_name = not definite and len(low) == 1 and name[0].isupper() and name.isalpha()
    subject = _join_subject_words(low)
    return (
        FactSubject(subject, is_name=is_name and low[0] not in SENTENCE_OPENERS)
        if subject
        else None
    )


def _owned_subject(owner: str | None, part: Sequence[str]) -> FactSubject | None:
    part_name = _join_subject_words(part)
    return FactSubject(owner, part_name) if owner and part_name else None


def _join_subject_words(words: Sequence[str]) -> str | None:
    """Join words to one name; None where they do not name one known thing."""
    kept = [word for word in words if word not in vocabulary.NEWNESS_ADJECTIVES]
    if not kept or any(word in vocabulary.VAGUE_WORDS or word in ("of", "for") for word in kept):
        return None
    if any(word.endswith(("'s", "s'")) for word in kept):
        return None
    return " ".join(kept)


def words_until_pause(words: tuple[ClauseWord, ...]) -> tuple[ClauseWord, ...]:
    """Return the words up to a pause, a reason or a continuation."""
    for at, word in enumerate(words):
        if word.low in vocabulary.REASON_WORDS or word.low in vocabulary.CONTINUATION_WORDS:
            return words[:at]
        if word.pause:
            return (*words[:at], word._replace(pause=False))
    return words


def strip_leading_adverbs(
    after: tuple[ClauseWord, ...], how: FactMode
) -> tuple[tuple[ClauseWord, ...], FactMode]:
    """Strip leading adverbs; also return the mode they imply."""
    while after and after[0].low in vocabulary.ADVERBS:
        if after[0].low in vocabulary.NEWNESS_ADVERBS and how == "is":
            how = "became"
        after = after[1:]
    return after, how


def make_fact(
    clause: VerbClause, slot: tuple[str, str], value: Value, holds: Cardinality = "one"
) -> Fact:
    """Make the fact of a value in a slot, in the clause's mode."""
    how: FactMode = "became" if value.now and clause.how == "is" else clause.how
    before = value.instead if how in ("is", "became") else ""
    how = "became" if before else how
    return Fact(*slot, value.key, how, holds, before, clause.whole and not value.more)


_TOKEN = lazy_pattern(r"[^\W_]+(?:[@./:_'-]+[^\W_]+)*|[€$£%]")
_THOUSANDS = lazy_pattern(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBER_WITH_UNIT = lazy_pattern(r"(\d+(?:[.,]\d+)?)([a-z]{1,4}|[%€$£])")
_IGNORED_WORDS = frozenset({"the", "a", "an"}) | NEWNESS_ADJECTIVES | ADVERBS
_CLOCK = lazy_pattern(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm)")
_DATE = lazy_pattern(r"\d{4}-\d{2}(?:-\d{2})?")
_DIGIT = lazy_pattern(r"\d")
_NAMELIKE = lazy_pattern(r"\d+[a-z]{4,}")  # 1password
_NUMBER = lazy_pattern(r"\d+(?:[.,]\d+)*")
_WORD_SHAPES = (
    ("time", lazy_pattern(r"\d{1,2}:\d{2}|\d{1,2}(?:am|pm)")),
    ("date", _DATE),
    ("number", _NUMBER),
    ("label", lazy_pattern(r"[a-z]")),
    ("address", lazy_pattern(r".*@.*")),
    ("path", lazy_pattern(r".*[/\\\\].*")),
    ("code", lazy_pattern(r".*[\d.].*")),
)
_DIMENSIONS = {
    **dict.fromkeys(("ms", "s", "min", "h", "days", "weeks", "months", "years"), "duration"),
    **dict.fromkeys(("week", "month", "year"), "duration"),
    **dict.fromkeys(("kb", "mb", "gb", "tb"), "size"),
    **dict.fromkeys(("mg", "g", "kg", "tons"), "mass"),
    "%": "share",
}
_CURRENCIES = frozenset("€$£")
_DAILY_PHRASES = (["every", "days"], ["each", "days"], ["daily"])
_INSTEAD_PHRASES = (["over"], ["to"], ["instead", "of"], ["rather", "than"])
_LIMITING_PREPOSITIONS = RELATION_PREPOSITIONS | {
    "during",
    "under",
    "within",
    "between",
    "per",
    "across",
}
_DAY_SHAPES = frozenset({"weekday", "month", "date"})
_MAX_VALUE_TOKENS = 3  # words of a value that may be exchanged


def comparison_tokens(text: str) -> list[str]:
    """Tokenise a text without articles and words for "now"; split units from numbers.

    An "a" at the end, or a capital one within, is not an article: vault A.
    """
    words = _TOKEN.findall(_THOUSANDS.sub("", text) if "," in text else text)
    kept = []
    for at, word in enumerate(words):
        low = word.casefold()
        label = low == "a" and at > 0 and (word == "A" or at == len(words) - 1)
        if label or low not in _IGNORED_WORDS:
            kept += [UNITS.get(part, part) for part in _split_unit(low)]
    return kept


def _split_unit(word: str) -> tuple[str, ...]:
    match = None if _CLOCK.fullmatch(word) else _NUMBER_WITH_UNIT.fullmatch(word)
    return match.groups() if match else (word,)


def is_restated_value(newer: str, older: str, *, allow_names: bool) -> bool:
    """Check whether the texts differ only in one value of the same shape.

    With ``allow_names`` one plain word may replace another; otherwise only numbers, times,
    codes and labels may: two names of places may both be right.
    """
    one, other = comparison_tokens(newer), comparison_tokens(older)
    if one[:1] != other[:1] and one[1:2] == other[1:2]:
        one, other = one[1:], other[1:]  # two names of the same subject
    start = _common_prefix_length(one, other)
    end = _common_prefix_length(one[start:][::-1], other[start:][::-1])
    changed = (one[start : len(one) - end], other[start : len(other) - end])
    if (
        not all(changed)
        or len(changed[0]) != len(changed[1])
        or len(changed[0]) > _MAX_VALUE_TOKENS
    ):
        return False
    shapes = list(map(word_shape, changed[0]))
    if shapes != list(map(word_shape, changed[1])):
        return False
    if "word" not in shapes:
        return True
    both_names = is_written_as_name(newer, changed[0][0]) == is_written_as_name(
        older, changed[1][0]
    )
    return allow_names and len(shapes) == 1 and both_names


def is_negation(newer: str, older: str) -> bool:
    """Check whether one text is the other with a negation."""
    return _tokens_without_negation(newer) == _tokens_without_negation(older)


class Statement(NamedTuple):
    """A text with the value, subject and attribute of the fact it states."""

    text: str
    value: str
    subject: str
    attribute: str
    before: str = ""

    @property
    def names_tool(self) -> bool:
        """Whether the value is something used, which may come with its version."""
        return self.attribute.startswith("uses")


def is_explicit_replacement(newer: Statement, older: Statement, *, whole: bool) -> bool:
    """Check whether a statement of change replaces the value of another statement.

    The values must have the same form and relation and, where that is the ``whole`` of what
    the other says, the same conditions.
    """
    now, then = comparison_tokens(newer.value), comparison_tokens(older.value)
    if _value_form(now, tool=newer.names_tool) != _value_form(then, tool=older.names_tool):
        return False
    one, other = (
        _value_context(comparison_tokens(newer.text), now),
        _value_context(comparison_tokens(older.text), then),
    )
    if one is None or other is None or not same_scope(newer, older):
        return False
    plain = any(word_shape(word) == "word" and word not in RELATION_PREPOSITIONS for word in now)
    plain = plain and now[:1] != then[:1]
    if plain and is_written_as_name(newer.text, now[0]) != is_written_as_name(older.text, then[0]):
        return False
    if not _same_relation(one[0], other[0], plain):
        return False
    return not whole or _same_conditions(
        _conditions_after_value(one[1], newer), _conditions_after_value(other[1], older)
    )


def same_conditions(newer: Statement, older: Statement) -> bool:
    """Check whether both values are stated under the same visible conditions."""
    one = _value_context(comparison_tokens(newer.text), comparison_tokens(newer.value))
    other = _value_context(comparison_tokens(older.text), comparison_tokens(older.value))
    if one is None or other is None:
        return False
    return _same_conditions(
        _conditions_after_value(one[1], newer), _conditions_after_value(other[1], older)
    )


def differs_only_in_holder(newer: Statement, older: Statement) -> bool:
    """Check whether only the holder differs: "Ana owns billing", "Ben owns billing"."""
    now, then = comparison_tokens(newer.value), comparison_tokens(older.value)
    one, other = comparison_tokens(newer.text), comparison_tokens(older.text)
    at_start = one[: len(now)] == now and other[: len(then)] == then
    return at_start and one[len(now) :] == other[len(then) :]


def _conditions_after_value(following: Sequence[str], statement: Statement) -> list[str]:
    """Return the words after a value, without its purpose and what it replaced."""
    subject_phrase = ["for", *comparison_tokens(statement.subject)]
    if list(following[: len(subject_phrase)]) == subject_phrase:
        return list(following[len(subject_phrase) :])
    replaced = comparison_tokens(statement.before)
    for opening in _INSTEAD_PHRASES if replaced else ():
        if list(following) == [*opening, *replaced]:
            return []
    return list(following)


def is_cadence(words: Sequence[str]) -> bool:
    """Check whether the words are only a cadence: daily, every 6 hours."""
    if len(words) == 1:
        return words[0] in CADENCES
    spans = all(
        word_shape(word) in ("number", "duration") or word in PERIOD_WORDS for word in words[1:]
    )
    return bool(words) and words[0] in ("every", "each") and spans


def differs_only_in_cadence(newer: Statement, older: Statement) -> bool:
    """Check whether the texts differ only in their cadence."""
    now, then = comparison_tokens(newer.value), comparison_tokens(older.value)
    one, other = comparison_tokens(newer.text), comparison_tokens(older.text)
    both_cadences = is_cadence(now) and is_cadence(then)
    at_end = one[-len(now) :] == now and other[-len(then) :] == then
    return both_cadences and at_end and one[: -len(now)] == other[: -len(then)]


def _name_shape(word: str) -> str:
    """Return a word's shape; fly.io and flake8 count as names, not codes."""
    kind = word_shape(word)
    stem = word.rstrip("0123456789")
    is_name = word in CODE_LIKE_NAMES or (len(stem) > 2 and not _DIGIT.search(stem))
    is_name = is_name or _NAMELIKE.fullmatch(word) is not None
    return "word" if kind == "code" and is_name else kind


def same_scope(newer: Statement, older: Statement) -> bool:
    """Check whether two values have the same scope: "on staging" is one.

    The parts of a time belong to the value: "on Mondays at ten".
    """
    is_time = newer.attribute.endswith("time")
    return is_time or _scope_words(newer.value) == _scope_words(older.value)


def _scope_words(value: str) -> list[str]:
    words = _strip_path(comparison_tokens(value))
    at = next(
        (at for at, word in enumerate(words) if at and word in _LIMITING_PREPOSITIONS), len(words)
    )
    return [] if at + 1 < len(words) and word_shape(words[at + 1]) in _DAY_SHAPES else words[at:]


def _strip_path(words: Sequence[str]) -> list[str]:
    """Strip the path within a location: "in Vault at secret/deploy" is in Vault."""
    inside = len(words) > 2 and words[-2] in ("at", "under") and word_shape(words[-1]) == "path"
    return list(words[:-2] if inside else words)


def _value_form(words: Sequence[str], *, tool: bool) -> tuple[str, ...]:
    """Return the shapes of a value's words.

    Names of one word and of two are alike, and so are the ways of naming a day.
    """
    words = _strip_path(words)
    shapes = [_name_shape(word) for word in words]
    if is_cadence(words):
        return ("cadence",)
    if shapes[:1] == ["time"] and list(words[1:]) in _DAILY_PHRASES:
        return ("time",)
    if _DAY_SHAPES.intersection(shapes) and _DAY_SHAPES.issuperset(set(shapes) - {"number"}):
        return ("day",)
    kept = tuple(one for one, before in zip(shapes, ["", *shapes], strict=False)
                 if one != "word" or before != "word")  # fmt: skip
    versioned = (
        tool and len(kept) == 2 and kept[0] == "word" and kept[1] in ("number", "code", "time")
    )
    return kept[:1] if versioned else kept


def is_written_as_name(text: str, word: str) -> bool:
    """Check whether a text writes a word as a name: in Madrid, but in a flat."""
    found = (
        token.lstrip("0123456789") for token in _TOKEN.findall(text) if token.casefold() == word
    )
    return any(token[:1].isupper() for token in found)


def differs_in_words(one: str, other: str) -> bool:
    """Check whether plain words of two values differ, not only numbers or labels."""
    pairs = zip(comparison_tokens(one), comparison_tokens(other), strict=False)
    return any(first != second and word_shape(first) == "word" for first, second in pairs)


def word_shape(word: str) -> str:
    """Classify a word by shape: number, time, date, unit, code, label or word."""
    if word in _DIMENSIONS or word in _CURRENCIES:
        return _DIMENSIONS.get(word, word)
    if word.removesuffix("s") in WEEKDAYS:
        return "weekday"
    if word in MONTHS:
        return "month"
    if word in NUMBER_WORDS:
        return "number"
    return next((name for name, pattern in _WORD_SHAPES if pattern.fullmatch(word)), "word")


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the common prefix."""
    count = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        count += 1
    return count


def _tokens_without_negation(text: str) -> list[str]:
    return [
        word.removesuffix("s")
        for word in comparison_tokens(text)
        if word not in NEGATION_WORDS | ADVERBS
    ]


def _value_context(words: Sequence[str], value: Sequence[str]) -> tuple[str, list[str]] | None:
    """Return the preposition before a value and the words after it."""
    for at in range(len(words) - len(value), -1, -1):
        if list(words[at : at + len(value)]) == list(value):
            if at == 0:
                return "", []  # the value is the doer: "Ana owns the module"
            before = words[at - 1]
            return before if before in RELATION_PREPOSITIONS else "", list(words[at + len(value) :])
    return None


def _same_relation(now: str, then: str, plain: bool) -> bool:
    """Check for the same relation: "moved to" matches "in"; plain words exclude "on"."""
    prepositions = RELATION_PREPOSITIONS - {"on"} if plain else RELATION_PREPOSITIONS
    directions = {now, then} & {"to", "into"}
    return now == then or (bool(directions) and {now, then} <= prepositions | {""})


def _same_conditions(now: Sequence[str], then: Sequence[str]) -> bool:
    """Compare the words after the values; a change may add a reason or a date."""
    reason_words = (
        (REASON_WORDS - {"per"})
        | {"since", "from", "as", "this", "last", "today", "yesterday"}
        | ADVERBS
    )
    is_date = len(now) > 1 and now[0] in ("in", "on") and word_shape(now[1]) in _DAY_SHAPES
    kept = [] if now and (now[0] in reason_words or is_date) else list(now)
    return kept == list(then)


def status_excludes(newer: str, older: str, *, changed: bool) -> bool | None:
    """Check whether one status certainly replaces the other; None if both may hold."""
    if any({newer, older} <= pair for pair in vocabulary.STATUS_TOGGLES):
        return True
    if older in vocabulary.OPEN_STATUSES and newer in vocabulary.DONE_STATUSES:
        return True
    if older in vocabulary.DONE_STATUSES and newer in vocabulary.OPEN_STATUSES:
        return changed
    if changed and {newer, older} <= vocabulary.OPEN_STATUSES:
        return False
    return None


def are_exclusive_tools(one: str, other: str) -> bool:
    """Check whether only one of the two is used at a time: tabs or spaces."""
    pair = {one.replace(" ", "-"), other.replace(" ", "-")}
    return len(pair) == 2 and any(pair <= row for row in vocabulary.EXCLUSIVE_TOOLS)


def are_exclusive_technologies(one: str, other: str) -> bool:
    """Check whether a thing is made with only one of the two: Python or Go, npm or pnpm."""
    pair = {one.replace(" ", "-"), other.replace(" ", "-")}
    return any(
        pair <= row for row in (*vocabulary.EXCLUSIVE_TOOLS, *vocabulary.EXCLUSIVE_TECHNOLOGIES)
    )


def is_single_tool_purpose(purpose: str) -> bool:
    """Check whether one tool usually serves the purpose: CI, but not a dashboard."""
    last = purpose.rpartition(" ")[2]
    return last in vocabulary.SINGLE_TOOL_PURPOSES or (
        last.endswith("ing") and last not in vocabulary.NON_PURPOSES
    )
