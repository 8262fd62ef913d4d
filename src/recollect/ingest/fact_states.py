"""Statements of what is so: in a place, at a time, called so, used for, owned by."""

from __future__ import annotations

from collections.abc import Callable

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
from recollect.ingest.fact_values import Value, is_known_place, is_naming, is_place, value_of

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
    for cues, read in _AFTER_BE:
        if after[0].low in cues:
            return read(said._replace(after=after[1:]))
    return _identity(said)


def _became(said: Said) -> Fact | None:
    return _identity(said._replace(how="became"))


def _placed(said: Said) -> Fact | None:
    """In a place or, by the words, at a time."""
    loose = bool(said.after) and said.after[0].raw in ("a", "an")
    thing, value = said.thing, value_of(said.after[1:] if loose else said.after)
    if thing is None or value is None or not is_place(value):
        return None
    if value.kind == "time":
        return _timed(said, thing, value)
    if said.verb in ("is", "are", "am") and (loose or not is_known_place(value)):
        return None  # "in a meeting", "in the works"
    if thing.head in words_of.ABSTRACT:
        return None
    if value.kind == "number" or (thing.is_name and said.verb in ("is", "are", "am")):
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
    if said.after[0].low in ("the", "our") and said.how in ("is", "became"):
        office = _office(said)
        if office is not None:
            return office
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or value.more or thing.is_name or said.verb == "are":
        return None
    if thing.head in words_of.ABSTRACT or "'s" in value.key:
        return None
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
    low = [word.low for word in said.after]
    of = next((at for at, word in enumerate(low[:5]) if word in ("of", "for") and at > 1), None)
    if of is None or not words_of.ROLES_OF.intersection(low[1:of]):
        return None
    thing, holder = thing_of(said.after[of + 1 :], said.me), value_of(said.subject)
    if thing is None or holder is None or holder.kind != "name":
        return None
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


def _held_by(said: Said) -> Fact | None:
    """As in "is owned by Ana"."""
    if not said.after or said.after[0].low != "by":
        return None
    thing, value = said.thing, value_of(said.after[1:])
    if thing is None or value is None or value.kind != "name":
        return None
    return make_fact(said, thing.slot("owner"), value)


def _located(said: Said) -> Fact | None:
    """As in "lives in", "runs on", "is stored at"."""
    if said.after and said.after[0].low in words_of.PLACES:
        return _placed(said._replace(after=said.after[1:], verb="lives"))
    return None


def _scheduled(said: Said) -> Fact | None:
    if said.after and said.after[0].low in ("for", "on", "at", "in", "by"):
        thing, value = said.thing, value_of(said.after[1:])
        if thing and value and value.kind == "time":
            return _timed(said._replace(verb="is"), thing, value)
    return None


def _starts(said: Said) -> Fact | None:
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
    thing, holder = thing_of(until_pause(said.after), said.me), value_of(said.subject)
    if thing is None or holder is None or holder.kind != "name" or thing.is_name:
        return None
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
    at = next((at for at, word in enumerate(after) if word.low == "for" and at), None)
    purpose = thing_of(until_pause(after[at + 1 :]), said.me) if at is not None else None
    thing = purpose or said.thing
    value = value_of(after if at is None or purpose is None else after[:at])
    if thing is None or value is None or (at is not None and purpose is None):
        return None
    return make_fact(said, (thing.name, attribute), value, "some" if purpose else "many")


# What may follow "is", and how it is read then; the first that fits.
_AFTER_BE: tuple[tuple[frozenset[str], Reader], ...] = (
    (words_of.PLACES, _placed),
    (words_of.KEPT_AT, _located),
    (words_of.TIMED, _scheduled),
    (words_of.NAMED, _named),
    (words_of.SET_TO, _set_to),
    (frozenset(words_of.PASSIVE_OFFICES), _held_by),
)

STATES: dict[str, Reader] = {
    **dict.fromkeys(("is", "are", "am"), _be),
    "became": _became,
    "=": _identity,
    **dict.fromkeys(words_of.LIVES | words_of.RUNS, _located),
    **dict.fromkeys(words_of.EMPLOYED, _employed),
    **dict.fromkeys(words_of.TIME_VERBS, _starts),
    **dict.fromkeys(words_of.MEASURED, _measured),
    **dict.fromkeys(words_of.OFFICES, _holds_office),
    **dict.fromkeys(words_of.MANY, _many),
    "belongs": _belongs,
    "equals": _identity,
}
