"""Statements of what is so: in a place, at a time, called so, used for, owned by."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from recollect.ingest import fact_words as words_of
from recollect.ingest.fact_clause import Word
from recollect.ingest.fact_parts import (
    Fact,
    Holds,
    Said,
    Thing,
    make_fact,
    thing_of,
    until_pause,
    without_adverbs,
)
from recollect.ingest.fact_routines import counted, doing, going_out, lasting, routine
from recollect.ingest.fact_ties import leading, made, role, running, status
from recollect.ingest.fact_values import (
    Value,
    is_known_place,
    is_manner,
    is_naming,
    is_place,
    not_clock,
    value_of,
    without_now,
)

_MEASURES = ("s", "min", "h", "days", "weeks", "months", "€", "$", "kg", "g", "tons")
Reader = Callable[[Said], Fact | None]


def _be(said: Said) -> Fact | None:
    """As in "is": in a place, at a time, called so, or simply something."""
    after, how = said.after, said.how
    if after[0].low == "not":
        after, how = after[1:], "is not"
    elif [word.low for word in after[:2]] == ["no", "longer"]:
        after, how = after[2:], "ended"
    after, how = without_adverbs(after, how)
    if len(after) < 1:
        return None
    said = said._replace(after=after, how=how)
    fact = _done(said) or status(said)
    if fact is not None:
        return fact
    for cues, read in _AFTER_BE:
        if after[0].low in cues:
            return read(said._replace(after=after[1:]))
    return _identity(said)


def _done(said: Said) -> Fact | None:
    """As in "are cut on Tuesdays", "is built with Vite"."""
    verb, doing_so = said.after[0].low, said._replace(verb=said.after[0].low, after=said.after[1:])
    fact = routine(doing_so) if verb in words_of.ACTS else None
    return fact or (made(doing_so) if verb in words_of.MADE else None)


def _became(said: Said) -> Fact | None:
    return _identity(said._replace(how="became"))


def _placed(said: Said) -> Fact | None:
    """In a place or, by the words, at a time."""
    loose = bool(said.after) and said.after[0].raw in ("a", "an")
    thing, value = said.thing, value_of(said.after[1:] if loose else said.after)
    if thing is None or value is None or not is_place(value) or is_manner(value):
        return None
    if value.kind == "time":
        return _timed(said, thing, value)
    if said.verb in ("is", "are", "am") and (loose or not is_known_place(value)):
        return None  # "in a meeting", "in the works"
    if thing.head in words_of.ABSTRACT:
        return None
    if value.kind == "number" or (thing.is_name and said.verb in ("is", "am")):
        return None  # "Ben is in Berlin" holds for a day
    return make_fact(said, thing.slot("location"), value)


def _timed(said: Said, thing: Thing, value: Value, attribute: str = "time") -> Fact | None:
    holds: Holds = "event"
    if value.recurring or thing.head in words_of.DATED or _is_clock(said, thing):
        holds = "one"
    return make_fact(said, thing.slot(attribute), value, holds)


def _is_clock(said: Said, thing: Thing) -> bool:
    """As in "The daily stand-up is at ten": a time of day that holds every time."""
    words = {*thing.subject.split(), *thing.part.split()}
    return said.verb not in ("is", "are") or not words.isdisjoint(words_of.RECURRING)


def _identity(said: Said) -> Fact | None:
    """As in "The port is 5432", "the vet is Dr Quist", "Ana is the owner of billing"."""
    if said.after[0].low in ("the", "our"):
        office = _office(said) or role(said)
        if office is not None:
            return office
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or value.more or thing.is_name or said.verb == "are":
        return None
    if thing.head in words_of.ABSTRACT or "'s" in value.key:
        return None
    value = not_clock(value)
    if value.kind == "time":
        return _timed(said, thing, value)
    named = value.kind != "plain" or _may_name(thing, value)
    return make_fact(said, thing.slot("value"), value) if named else None


def _may_name(thing: Thing, value: Value) -> bool:
    """As in "the default branch is main", "my favourite colour is green"."""
    personal = thing.part.startswith(("favourite ", "favorite ", "preferred "))
    return (personal or thing.head in words_of.PLAIN_VALUED) and is_naming(value)


def _office(said: Said) -> Fact | None:
    """As in "Ana is the owner of billing" is about billing."""
    after, now = without_now(said.after)
    low = [word.low for word in after]
    of = next((at for at, word in enumerate(low[:5]) if word in ("of", "for") and at > 1), None)
    if of is None or not words_of.ROLES_OF.intersection(low[1:of]):
        return None
    thing, holder = thing_of(after[of + 1 :], said.me), value_of(said.subject)
    if thing is None or holder is None or holder.kind != "name":
        return None
    holder = holder._replace(now=now)
    return make_fact(said, (thing.slot("value")[0], low[of - 1]), holder)


def _named(said: Said) -> Fact | None:
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or (value.kind == "plain" and not _is_one_name(value)):
        return None
    return make_fact(said, thing.slot("name"), value)


def _is_one_name(value: Value) -> bool:
    return " " not in value.key and is_naming(value)


def _set_to(said: Said) -> Fact | None:
    if said.after and said.after[0].low in ("to", "at"):
        return _valued(said._replace(after=said.after[1:]), "value")
    return None


def _valued(said: Said, attribute: str) -> Fact | None:
    """A number, a name or a time behind the verb."""
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or value.kind == "plain":
        return None
    return make_fact(said, thing.slot("time" if value.kind == "time" else attribute), value)


def _held_by(said: Said, attribute: str = "owner") -> Fact | None:
    """As in "is owned by Ana"."""
    if not said.after or said.after[0].low != "by":
        return None
    thing, value = said.thing, value_of(said.after[1:])
    if thing is None or value is None or value.kind != "name":
        return None
    return make_fact(said, thing.slot(attribute), value)


def _located(said: Said) -> Fact | None:
    """As in "lives in", "runs on", "is stored at"."""
    if said.after and said.after[0].low in words_of.PLACES:
        return _placed(said._replace(after=said.after[1:], verb="lives"))
    return None


def _runs(said: Said) -> Fact | None:
    """As in "runs on eu-west-1", "run every night at 2am", "runs Ubuntu 22.04"."""
    return _located(said) or routine(said) or doing(said) or running(said)


def _acting(said: Said) -> Fact | None:
    """Verbs with several readings, which exclude each other: "we deploy to Fly.io", "we
    deploy on Fridays", "the queue holds 500 jobs"."""
    for verbs, read in _READINGS:
        fact = read(said) if said.verb in verbs else None
        if fact is not None:
            return fact
    return None


def _kept_by_us(said: Said) -> Fact | None:
    """As in "We store sessions in Redis": about the sessions."""
    after, how = without_adverbs(said.after, said.how)
    at = next((at for at, word in enumerate(after[:5]) if word.low in words_of.PLACES), None)
    if not at or not said.is_first_person:
        return None
    return _located(said._replace(subject=after[:at], after=after[at:], how=how))


def _scheduled(said: Said) -> Fact | None:
    if said.after and said.after[0].low in ("for", "on", "at", "in", "by"):
        thing, value = said.thing, value_of(said.after[1:])
        if thing and value and value.kind == "time":
            return _timed(said._replace(verb="is"), thing, value)
    return None


def _starts(said: Said) -> Fact | None:
    """As in "closes at 18:00", "expires after 30 minutes"."""
    if said.after[0].low == "after":
        return lasting(said, f"{words_of.TIME_VERBS[said.verb]} after")
    after = said.after[1:] if said.after[0].low in ("at", "on", "in") else said.after
    thing, value = said.thing, value_of(after)
    if thing is None or value is None or value.kind != "time":
        return None
    return _timed(said, thing, value, words_of.TIME_VERBS[said.verb])


def _measured(said: Said) -> Fact | None:
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or value.kind != "number" or thing.is_name:
        return None
    if not value.key.endswith(_MEASURES) and value.key[0] not in "€$£":
        return None
    return make_fact(said, thing.slot(words_of.MEASURED[said.verb]), value)


def _holds_office(said: Said) -> Fact | None:
    """As in "Ana owns the billing module" is about the module."""
    if said.subject[-1].low in words_of.WHOSE | {"our"}:
        return None  # for my own use
    about, now = without_now(until_pause(said.after))
    thing, holder = thing_of(about, said.me), value_of(said.subject)
    if thing is None or holder is None or holder.kind != "name" or thing.is_name:
        return None
    if said.verb in words_of.MANAGING and thing.head not in words_of.TEAMS:
        return None  # a tool may manage what a person does, too
    holder = holder._replace(now=now)
    return make_fact(said, thing.slot(words_of.OFFICES[said.verb]), holder)


def _belongs(said: Said) -> Fact | None:
    if said.after[0].low != "to":
        return None
    return _held_by(said._replace(after=(Word("by", "by"), *said.after[1:])))


def _employed(said: Said) -> Fact | None:
    if said.after[0].low not in ("at", "for"):
        return None
    thing, value = said.thing, value_of(said.after[1:])
    if thing is None or value is None or value.kind != "name" or not thing.is_name:
        return None
    return make_fact(said, thing.slot("employer"), value)


def _many(said: Said) -> Fact | None:
    """As in "We use Redis": there may be more. With a purpose a second one is suspicious."""
    attribute = words_of.MANY[said.verb]
    if said.how in ("is", "became") and not said.verb.endswith("s") and not said.is_first_person:
        return None  # "sounds like fun"
    after, _ = without_adverbs(said.after, said.how)
    if attribute == "prefers":
        after = _without_over(after)
    at = next((at for at, word in enumerate(after) if word.low == "for" and at), None)
    about, now = without_now(until_pause(after[at + 1 :])) if at is not None else ((), False)
    purpose = thing_of(about, said.me)
    own = said.thing
    value = value_of(after if at is None or purpose is None else after[:at])
    if own is None or value is None or (at is not None and purpose is None):
        return None
    value = value._replace(now=value.now or now)
    if purpose is None:
        return make_fact(said, (own.name, attribute), value, "many")
    # What we use for CI is about CI; what others do for it is about them.
    ours = own.name == "we"
    slot = (purpose.name, attribute) if ours else (own.name, f"{attribute} for {purpose.name}")
    return make_fact(said, slot, value, "some")


def _without_over(after: tuple[Word, ...]) -> tuple[Word, ...]:
    """As in "tabs over spaces", "tabs to spaces": instead of them."""
    low = [word.low for word in after]
    at = next((at for at in range(1, len(low)) if low[at] in ("over", "to")), None)
    if at is None:
        return after
    return (*after[:at], Word("instead", "instead"), Word("of", "of"), *after[at + 1 :])


# What may follow "is", and how it is read then; the first that fits.
_AFTER_BE: tuple[tuple[frozenset[str], Reader], ...] = (
    (words_of.PLACES, _placed),
    (words_of.KEPT_AT, _located),
    (words_of.TIMED, _scheduled),
    (words_of.NAMED, _named),
    (words_of.SET_TO, _set_to),
    *(
        (frozenset({word}), partial(_held_by, attribute=office))
        for word, office in words_of.PASSIVE_OFFICES.items()
    ),
)
_READINGS: tuple[tuple[Collection[str], Reader], ...] = (
    (words_of.MEASURED, _measured),
    (words_of.LEADING, leading),
    (words_of.GOING, going_out),
    (words_of.DOING, doing),
    (words_of.COUNTING, counted),
    (words_of.KEEPING, _kept_by_us),
)

_SEVERAL_READINGS = (
    *words_of.DOING, *words_of.LEADING, *words_of.COUNTING, *words_of.KEEPING
)  # fmt: skip

STATES: dict[str, Reader] = {
    **dict.fromkeys(("is", "are", "am"), _be),
    "became": _became,
    "=": _identity,
    **dict.fromkeys(_SEVERAL_READINGS, _acting),
    **dict.fromkeys(words_of.LIVES, _located),
    **dict.fromkeys(words_of.RUNS, _runs),
    **dict.fromkeys(words_of.EMPLOYED, _employed),
    **dict.fromkeys(words_of.TIME_VERBS, _starts),
    **dict.fromkeys(words_of.MEASURED, _acting),
    **dict.fromkeys(words_of.OFFICES, _holds_office),
    **dict.fromkeys(words_of.MANY, _many),
    "belongs": _belongs,
    "equals": _identity,
}
