"""Read statements of state: places, times, names, roles, routines, counts, tools."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from bethink.core.lazy import lazy_pattern
from bethink.ingest.facts import vocabulary
from bethink.ingest.facts.clause import (
    ClauseWord,
    Value,
    as_version_or_price,
    is_known_place,
    is_manner,
    is_place,
    may_be_name,
    parse_value,
    strip_now,
)
from bethink.ingest.facts.comparison import (
    Cardinality,
    Fact,
    FactMode,
    FactSubject,
    VerbClause,
    make_fact,
    parse_subject,
    strip_leading_adverbs,
    words_until_pause,
)

_VERSION_PATTERN = lazy_pattern(r"v?\d+(?:\.\w+)*")
# These run several versions of one thing in turn.
_MULTI_VERSION_SUBJECTS = frozenset(
    ("ci", "matrix", "test", "tests", "suite", "pipeline", "workflow", "tox", "nox", "we")
)
_MAX_NAME_WORDS = 3  # words of a name
_DIGIT = lazy_pattern(r"\d")


def read_role(clause: VerbClause) -> Fact | None:
    """Read "Alice is the on-call engineer": a fact about the role, held by one person."""
    holder = clause.holder
    if holder is None or len(holder.key.split()) > 2:
        return None
    words, now = strip_now(clause.after[1:])
    how: FactMode = "became" if now and clause.how == "is" else clause.how
    if not words or words[-1].low not in vocabulary.ROLE_NOUNS or any(word.pause for word in words):
        return None
    if words[-1].low not in vocabulary.UNIQUE_ROLES and len(words) == 1:
        return None  # one of several engineers
    if words[0].low == "new":
        if words[-1].low not in vocabulary.UNIQUE_ROLES:
            return None  # one more
        how = "became" if how == "is" else how
    thing = parse_subject(words, clause.me)
    return make_fact(clause._replace(how=how), thing.slot("value"), holder) if thing else None


def read_target(clause: VerbClause) -> Fact | None:
    """Read "logs go to Loki", "we deploy to Fly.io", "the service listens on port 8080"."""
    act, prepositions = vocabulary.TARGET_VERBS[clause.verb]
    after, how = strip_leading_adverbs(clause.after, clause.how)
    if len(after) < 2 or after[0].low not in prepositions:
        return None
    thing, value = clause.fact_subject, parse_value(after[1:])
    if thing is None or value is None or not _may_be_tool(value):
        return None
    if (clause.verb == "goes" and thing.is_name) or (act == "go" and clause.is_first_person):
        return None  # Ben goes to Berlin
    slot = thing.slot(f"{act} {after[0].low}")
    return make_fact(clause._replace(how=how), slot, value, "loose")


def read_made_with(clause: VerbClause) -> Fact | None:
    """Read "is built with Vite", "is written in Go"; ``verb`` is how it is made."""
    if len(clause.after) < 2 or clause.after[0].low not in vocabulary.MADE_PREPOSITIONS:
        return None
    thing, value = clause.fact_subject, parse_value(clause.after[1:])
    if thing is None or value is None or not _may_be_tool(value):
        return None
    return make_fact(clause, thing.slot(f"{clause.verb} {clause.after[0].low}"), value, "loose")


def read_version(clause: VerbClause) -> Fact | None:
    """Read "The staging server runs Ubuntu 22.04": one version of each thing it runs."""
    thing, value = clause.fact_subject, parse_value(clause.after)
    if thing is None or value is None or not is_versioned(value):
        return None
    mixed = thing.head.endswith("s") and clause.verb == "run"  # not all servers run the same
    single = not (thing.is_name or mixed) and _MULTI_VERSION_SUBJECTS.isdisjoint(thing.name.split())
    return make_fact(clause, thing.slot("uses"), value, "version" if single else "many")


def is_versioned(value: Value) -> bool:
    """Check for a name with its version: Ubuntu 22.04."""
    words = value.key.split()
    return value.kind == "name" and len(words) == 2 and bool(_VERSION_PATTERN.fullmatch(words[1]))


def read_status(clause: VerbClause) -> Fact | None:
    """Read "The migration is pending", "the flag is disabled"."""
    after, now = strip_now(clause.after)
    how: FactMode = "became" if now and clause.how == "is" else clause.how
    if not after:
        return None
    word = "in-progress" if [part.low for part in after] == ["in", "progress"] else after[0].low
    single_word = len(after) == 1 or word == "in-progress"
    thing = clause.fact_subject
    if thing is None or not single_word or word not in vocabulary.STATUS_WORDS or thing.is_name:
        return None
    ambiguous = (
        thing.head in vocabulary.AMBIGUOUS_STATUS_NOUNS or thing.head in vocabulary.ABSTRACT_NOUNS
    )
    if ambiguous and not _DIGIT.search(thing.name):
        return None
    value = Value(word, "plain")
    return make_fact(clause._replace(how=how), thing.slot("status"), value, "status")


def _may_be_tool(value: Value) -> bool:
    words = value.key.split()
    if len(words) > _MAX_NAME_WORDS or value.kind == "time":
        return False
    numbered = len(words) == 2 and bool(_VERSION_PATTERN.fullmatch(words[1]))  # port 8080
    return value.kind != "plain" or numbered or (len(words) == 1 and may_be_name(value))


_TIME_PREPOSITIONS = frozenset({"on", "at"})
_DURATION_PREPOSITIONS = frozenset({"for", "after", "within"})
_ROUTINE_CUES = _TIME_PREPOSITIONS | _DURATION_PREPOSITIONS | {"every", "each"}
_DURATION_PATTERN = lazy_pattern(
    r"(?:[\d.]+|[a-z]+(?=\s)) ?(?:ms|s|min|h|days?|nights?|weeks?|months?|quarters?|years?)"
)
_COUNT_PATTERN = lazy_pattern(r"(\d[\d.,]*)([a-z%]{1,4})?")
_CLOCK = lazy_pattern(r"\d{1,2}[:.]\d{2}|\d{1,2}(?:am|pm)")
_MULTI_TIME_VERBS = frozenset({"hold", "meet", "sync"})
_MAX_COUNTED = 6  # words
_COUNT_BREAKERS = (
    frozenset({"and", "or", "&", "/"}) | vocabulary.PAST_WORDS | vocabulary.CONTINUATION_WORDS
)


def read_routine(clause: VerbClause) -> Fact | None:
    """Read when, how often or for how long something is done; ``verb`` is the activity.

    "are cut on Tuesdays", "run every night", "are kept for 30 days".
    """
    thing = clause.fact_subject
    if thing is None or not clause.after or thing.head in vocabulary.ABSTRACT_NOUNS:
        return None
    act = vocabulary.ROUTINE_VERBS[clause.verb]
    if clause.after[0].low in _DURATION_PREPOSITIONS:
        return read_duration(clause, f"{act} {clause.after[0].low}")
    time = _parse_time(clause.after)
    if time is None:
        return None
    # A person may do something on Tuesdays and on Fridays.
    many_times = act in _MULTI_TIME_VERBS or _is_person(clause, thing)
    holds: Cardinality = "loose" if many_times else _time_cardinality(time)
    return make_fact(clause, thing.slot("time"), time, holds)._replace(by=act)


def read_duration(clause: VerbClause, attribute: str) -> Fact | None:
    """Read "are kept for 30 days", "expire after 30 minutes"."""
    thing, span = clause.fact_subject, parse_value(clause.after[1:])
    if (
        thing is None
        or span is None
        or span.kind != "number"
        or not _DURATION_PATTERN.fullmatch(span.key)
    ):
        return None  # "for 3 reasons", "for 30 days in staging"
    return make_fact(clause, thing.slot(attribute), span)


def read_going_out(clause: VerbClause) -> Fact | None:
    """Read "Releases go out on Fridays"."""
    if len(clause.after) < 2 or clause.after[0].low != "out":
        return None
    return read_routine(clause._replace(verb="ship", after=clause.after[1:]))


def read_own_routine(clause: VerbClause) -> Fact | None:
    """Read "We cut releases on Tuesdays" (about the releases), "we deploy on Fridays"."""
    after, how = strip_leading_adverbs(clause.after, clause.how)
    clause = clause._replace(after=after, how=how)
    at = next((at for at, word in enumerate(after[:5]) if word.low in _ROUTINE_CUES), None)
    if at is None or not clause.is_first_person:
        return None
    return read_routine(clause._replace(subject=after[:at] or clause.subject, after=after[at:]))


def read_count(clause: VerbClause) -> Fact | None:
    """Read "returns 100 items per page", "has 5 members": a count of things."""
    after, how = strip_leading_adverbs(clause.after, clause.how)
    bound = "up to " if [word.low for word in after[:2]] == ["up", "to"] else ""
    after = after[2:] if bound else after
    thing = clause.fact_subject
    number = _COUNT_PATTERN.fullmatch(after[0].low) if after else None
    if thing is None or not after or (_is_person(clause, thing) and thing.subject != "we"):
        return None
    if number is None and after[0].low not in vocabulary.NUMBER_WORDS:
        return None
    unit = (number[2],) if number and number[2] else ()
    counts = _counted_things(after[1:])
    if counts is None or not (unit or counts[0]) or after[0].pause:
        return None
    noun = (*unit, *counts[0])
    if noun[0] in vocabulary.NON_COUNT_NOUNS:
        return None
    # One member and two members are the same things.
    kind = " ".join((noun[0].removesuffix("s"), *noun[1:]))
    value = Value((number[1] if number else after[0].low).replace(",", ""), "number", now=counts[1])
    attribute = f"{vocabulary.COUNT_VERBS[clause.verb]} {bound}{kind}"
    return make_fact(clause._replace(how=how), thing.slot(attribute), value)


def _is_person(clause: VerbClause, fact_subject: FactSubject) -> bool:
    """Check whether a person does it: "James", but not "Backups run"."""
    plural = fact_subject.head.endswith("s") and not clause.verb.endswith("s")
    return fact_subject.is_name and not plural


def _counted_things(words: tuple[ClauseWord, ...]) -> tuple[tuple[str, ...], bool] | None:
    """Return the things counted with their conditions, and whether the count is new."""
    kept: list[str] = []
    now = False
    for word in words:
        if word.low in vocabulary.REASON_WORDS and word.low != "per":
            break
        if word.low in _COUNT_BREAKERS or word.pause or len(kept) == _MAX_COUNTED:
            return None
        if word.low in vocabulary.ADVERBS:
            now |= word.low in vocabulary.NEWNESS_ADVERBS
        else:
            kept.append(word.low)
    return tuple(kept), now


def _parse_time(after: tuple[ClauseWord, ...]) -> Value | None:
    value = parse_value(after[1:] if after[0].low in _TIME_PREPOSITIONS else after)
    return value if value is not None and value.kind == "time" else None


def _time_cardinality(time: Value) -> Cardinality:
    """Return "one" for a recurring time or a daily clock time, else "event"."""
    daily = _CLOCK.fullmatch(time.key.split()[0]) is not None and len(time.key.split()) == 1
    return "one" if time.recurring or daily else "event"


_MEASURE_UNITS = ("s", "min", "h", "days", "weeks", "months", "€", "$", "kg", "g", "tons")
ClauseReader = Callable[[VerbClause], Fact | None]


def _read_be(clause: VerbClause) -> Fact | None:
    """Read "is": in a place, at a time, with a name, or a value."""
    after, how = clause.after, clause.how
    if after[0].low == "not":
        after, how = after[1:], "is not"
    elif [word.low for word in after[:2]] == ["no", "longer"]:
        after, how = after[2:], "ended"
    after, how = strip_leading_adverbs(after, how)
    if len(after) < 1:
        return None
    clause = clause._replace(after=after, how=how)
    fact = _read_passive(clause) or read_status(clause)
    if fact is not None:
        return fact
    for cues, read in _READERS_AFTER_BE:
        if after[0].low in cues:
            return read(clause._replace(after=after[1:]))
    return _read_identity(clause)


def _read_passive(clause: VerbClause) -> Fact | None:
    """Read "are cut on Tuesdays", "is built with Vite"."""
    verb, passive = (
        clause.after[0].low,
        clause._replace(verb=clause.after[0].low, after=clause.after[1:]),
    )
    fact = read_routine(passive) if verb in vocabulary.ROUTINE_VERBS else None
    return fact or (read_made_with(passive) if verb in vocabulary.MADE_PARTICIPLES else None)


def _read_became(clause: VerbClause) -> Fact | None:
    return _read_identity(clause._replace(how="became"))


def _read_place(clause: VerbClause) -> Fact | None:
    """Read a place or, by the words, a time."""
    loose = bool(clause.after) and clause.after[0].raw in ("a", "an")
    thing, value = clause.fact_subject, parse_value(clause.after[1:] if loose else clause.after)
    if thing is None or value is None or not is_place(value) or is_manner(value):
        return None
    if value.kind == "time":
        return _make_time_fact(clause, thing, value)
    if clause.verb in ("is", "are", "am") and (loose or not is_known_place(value)):
        return None  # "in a meeting", "in the works"
    if thing.head in vocabulary.ABSTRACT_NOUNS:
        return None
    if value.kind == "number" or (thing.is_name and clause.verb in ("is", "am")):
        return None  # "Ben is in Berlin" holds for a day
    return make_fact(clause, thing.slot("location"), value)


def _make_time_fact(
    clause: VerbClause, subject: FactSubject, value: Value, attribute: str = "time"
) -> Fact | None:
    holds: Cardinality = "event"
    if (
        value.recurring
        or subject.head in vocabulary.DATED_NOUNS
        or _is_recurring_time(clause, subject)
    ):
        holds = "one"
    return make_fact(clause, subject.slot(attribute), value, holds)


def _is_recurring_time(clause: VerbClause, subject: FactSubject) -> bool:
    """Check for a time of day that recurs: "The daily stand-up is at ten"."""
    words = {*subject.subject.split(), *subject.part.split()}
    return clause.verb not in ("is", "are") or not words.isdisjoint(vocabulary.RECURRING_TIME_WORDS)


def _read_identity(clause: VerbClause) -> Fact | None:
    """Read "The port is 5432", "the vet is Dr Quist", "Ana is the owner of billing"."""
    if clause.after[0].low in ("the", "our"):
        role = _read_role_of(clause) or read_role(clause)
        if role is not None:
            return role
    thing, value = clause.fact_subject, parse_value(clause.after)
    if thing is None or value is None or value.more or thing.is_name or clause.verb == "are":
        return None
    if thing.head in vocabulary.ABSTRACT_NOUNS or "'s" in value.key:
        return None
    value = as_version_or_price(value)
    if value.kind == "time":
        return _make_time_fact(clause, thing, value)
    accepted = value.kind != "plain" or _may_be_named(thing, value)
    return make_fact(clause, thing.slot("value"), value) if accepted else None


def _may_be_named(thing: FactSubject, value: Value) -> bool:
    """Check for "the default branch is main", "my favourite colour is green"."""
    is_favourite = thing.part.startswith(("favourite ", "favorite ", "preferred "))
    return (is_favourite or thing.head in vocabulary.PLAIN_VALUED_NOUNS) and may_be_name(value)


def _read_role_of(clause: VerbClause) -> Fact | None:
    """Read "Ana is the owner of billing" as a fact about billing."""
    after, now = strip_now(clause.after)
    low = [word.low for word in after]
    of = next((at for at, word in enumerate(low[:5]) if word in ("of", "for") and at > 1), None)
    if of is None or not vocabulary.UNIQUE_ROLES.intersection(low[1:of]):
        return None
    thing, holder = parse_subject(after[of + 1 :], clause.me), clause.holder
    if thing is None or holder is None:
        return None
    holder = holder._replace(now=now)
    return make_fact(clause, (thing.slot("value")[0], low[of - 1]), holder)


def _read_name(clause: VerbClause) -> Fact | None:
    thing, value = clause.fact_subject, parse_value(clause.after)
    if thing is None or value is None or (value.kind == "plain" and not _is_single_name(value)):
        return None
    return make_fact(clause, thing.slot("name"), value)


def _is_single_name(value: Value) -> bool:
    return " " not in value.key and may_be_name(value)


def _read_setting(clause: VerbClause) -> Fact | None:
    if clause.after and clause.after[0].low in ("to", "at"):
        return _read_value(clause._replace(after=clause.after[1:]), "value")
    return None


def _read_value(clause: VerbClause, attribute: str) -> Fact | None:
    """Read a number, a name or a time after the verb."""
    thing, value = clause.fact_subject, parse_value(clause.after)
    if thing is None or value is None or value.kind == "plain":
        return None
    return make_fact(clause, thing.slot("time" if value.kind == "time" else attribute), value)


def _read_passive_role(clause: VerbClause, attribute: str = "owner") -> Fact | None:
    """Read "is owned by Ana"."""
    if not clause.after or clause.after[0].low != "by":
        return None
    thing, value = clause.fact_subject, parse_value(clause.after[1:])
    if thing is None or value is None or value.kind != "name":
        return None
    return make_fact(clause, thing.slot(attribute), value)


def _read_location(clause: VerbClause) -> Fact | None:
    """Read "lives in", "runs on", "is stored at"."""
    if clause.after and clause.after[0].low in vocabulary.PLACE_PREPOSITIONS:
        return _read_place(clause._replace(after=clause.after[1:], verb="lives"))
    return None


def _read_runs(clause: VerbClause) -> Fact | None:
    """Read "runs on eu-west-1", "run every night at 2am", "runs Ubuntu 22.04"."""
    return (
        _read_location(clause)
        or read_routine(clause)
        or read_own_routine(clause)
        or read_version(clause)
    )


def _read_ambiguous_verb(clause: VerbClause) -> Fact | None:
    """Try the mutually exclusive readings of an ambiguous verb, in order.

    "we deploy to Fly.io", "we deploy on Fridays", "the queue holds 500 jobs".
    """
    for verbs, read in _READERS_BY_VERB_GROUP:
        fact = read(clause) if clause.verb in verbs else None
        if fact is not None:
            return fact
    return None


def _read_own_storage(clause: VerbClause) -> Fact | None:
    """Read "We store sessions in Redis" as a fact about the sessions."""
    after, how = strip_leading_adverbs(clause.after, clause.how)
    at = next(
        (at for at, word in enumerate(after[:5]) if word.low in vocabulary.PLACE_PREPOSITIONS), None
    )
    if not at or not clause.is_first_person:
        return None
    return _read_location(clause._replace(subject=after[:at], after=after[at:], how=how))


def _read_schedule(clause: VerbClause) -> Fact | None:
    if clause.after and clause.after[0].low in ("for", "on", "at", "in", "by"):
        thing, value = clause.fact_subject, parse_value(clause.after[1:])
        if thing and value and value.kind == "time":
            return _make_time_fact(clause._replace(verb="is"), thing, value)
    return None


def _read_time_verb(clause: VerbClause) -> Fact | None:
    """Read "closes at 18:00", "expires after 30 minutes"."""
    if clause.after[0].low == "after":
        return read_duration(clause, f"{vocabulary.TIME_VERBS[clause.verb]} after")
    after = clause.after[1:] if clause.after[0].low in ("at", "on", "in") else clause.after
    thing, value = clause.fact_subject, parse_value(after)
    if thing is None or value is None or value.kind != "time":
        return None
    return _make_time_fact(clause, thing, value, vocabulary.TIME_VERBS[clause.verb])


def _read_measure(clause: VerbClause) -> Fact | None:
    thing, value = clause.fact_subject, parse_value(clause.after)
    if thing is None or value is None or value.kind != "number" or thing.is_name:
        return None
    if not value.key.endswith(_MEASURE_UNITS) and value.key[0] not in "€$£":
        return None
    return make_fact(clause, thing.slot(vocabulary.MEASURE_VERBS[clause.verb]), value)


def _read_role_holder(clause: VerbClause) -> Fact | None:
    """Read "Ana owns the billing module" as a fact about the module."""
    if clause.subject[-1].low in vocabulary.POSSESSIVES | {"our"}:
        return None  # for my own use
    target_words, now = strip_now(words_until_pause(clause.after))
    thing, holder = parse_subject(target_words, clause.me), clause.holder
    if thing is None or holder is None or thing.is_name:
        return None
    if clause.verb in vocabulary.MANAGE_VERBS and thing.head not in vocabulary.TEAM_NOUNS:
        return None  # a tool may manage what a person does, too
    holder = holder._replace(now=now)
    return make_fact(clause, thing.slot(vocabulary.ROLE_VERBS[clause.verb]), holder)


def _read_belongs_to(clause: VerbClause) -> Fact | None:
    if clause.after[0].low != "to":
        return None
    return _read_passive_role(clause._replace(after=(ClauseWord("by", "by"), *clause.after[1:])))


def _read_employer(clause: VerbClause) -> Fact | None:
    if clause.after[0].low not in ("at", "for"):
        return None
    thing, value = clause.fact_subject, parse_value(clause.after[1:])
    if thing is None or value is None or value.kind != "name" or not thing.is_name:
        return None
    return make_fact(clause, thing.slot("employer"), value)


def _read_multi_value(clause: VerbClause) -> Fact | None:
    """Read "We use Redis": may have many values; with a purpose a second is suspicious."""
    attribute = vocabulary.MULTI_VALUE_VERBS[clause.verb]
    if (
        clause.how in ("is", "became")
        and not clause.verb.endswith("s")
        and not clause.is_first_person
    ):
        return None  # "sounds like fun"
    after, _ = strip_leading_adverbs(clause.after, clause.how)
    if attribute == "prefers":
        after = _over_to_instead_of(after)
    at = next((at for at, word in enumerate(after) if word.low == "for" and at), None)
    purpose_words, now = (
        strip_now(words_until_pause(after[at + 1 :])) if at is not None else ((), False)
    )
    purpose = parse_subject(purpose_words, clause.me)
    own = clause.fact_subject
    value = parse_value(after if at is None or purpose is None else after[:at])
    if own is None or value is None or (at is not None and purpose is None):
        return None
    value = value._replace(now=value.now or now)
    if purpose is None:
        return make_fact(clause, (own.name, attribute), value, "many")
    # "We use X for CI" is about CI; "Ana uses X for CI" is about Ana.
    first_person = own.name == "we"
    slot = (
        (purpose.name, attribute) if first_person else (own.name, f"{attribute} for {purpose.name}")
    )
    return make_fact(clause, slot, value, "some")


def _over_to_instead_of(after: tuple[ClauseWord, ...]) -> tuple[ClauseWord, ...]:
    """Rewrite "tabs over spaces" and "tabs to spaces" as "instead of"."""
    low = [word.low for word in after]
    at = next((at for at in range(1, len(low)) if low[at] in ("over", "to")), None)
    if at is None:
        return after
    return (*after[:at], ClauseWord("instead", "instead"), ClauseWord("of", "of"), *after[at + 1 :])


# Readers by the word after "is"; the first match decides.
_READERS_AFTER_BE: tuple[tuple[frozenset[str], ClauseReader], ...] = (
    (vocabulary.PLACE_PREPOSITIONS, _read_place),
    (vocabulary.LOCATION_PARTICIPLES, _read_location),
    (vocabulary.SCHEDULING_PARTICIPLES, _read_schedule),
    (vocabulary.NAMING_PARTICIPLES, _read_name),
    (vocabulary.SETTING_PARTICIPLES, _read_setting),
    *(
        (frozenset({word}), partial(_read_passive_role, attribute=office))
        for word, office in vocabulary.PASSIVE_ROLE_VERBS.items()
    ),
)
_READERS_BY_VERB_GROUP: tuple[tuple[Collection[str], ClauseReader], ...] = (
    (vocabulary.MEASURE_VERBS, _read_measure),
    (vocabulary.TARGET_VERBS, read_target),
    (vocabulary.GO_VERBS, read_going_out),
    (vocabulary.PRESENT_ROUTINE_VERBS, read_own_routine),
    (vocabulary.COUNT_VERBS, read_count),
    (vocabulary.STORE_VERBS, _read_own_storage),
)

_AMBIGUOUS_VERBS = (
    *vocabulary.PRESENT_ROUTINE_VERBS,
    *vocabulary.TARGET_VERBS,
    *vocabulary.COUNT_VERBS,
    *vocabulary.STORE_VERBS,
)

STATE_READERS: dict[str, ClauseReader] = {
    **dict.fromkeys(("is", "are", "am"), _read_be),
    "became": _read_became,
    "=": _read_identity,
    **dict.fromkeys(_AMBIGUOUS_VERBS, _read_ambiguous_verb),
    **dict.fromkeys(vocabulary.LOCATION_VERBS, _read_location),
    **dict.fromkeys(vocabulary.RUN_VERBS, _read_runs),
    **dict.fromkeys(vocabulary.WORK_VERBS, _read_employer),
    **dict.fromkeys(vocabulary.TIME_VERBS, _read_time_verb),
    **dict.fromkeys(vocabulary.MEASURE_VERBS, _read_ambiguous_verb),
    **dict.fromkeys(vocabulary.ROLE_VERBS, _read_role_holder),
    **dict.fromkeys(vocabulary.MULTI_VALUE_VERBS, _read_multi_value),
    "belongs": _read_belongs_to,
    "equals": _read_identity,
}
