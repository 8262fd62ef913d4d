"""Judges two facts of one slot: does one replace the other, do they contradict each other?"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.dates import find_times
from recollect.ingest.fact_shapes import (
    Telling,
    denies,
    differs_in_words,
    replaces,
    restates,
    same_but_who,
    same_frame,
    same_limits,
    same_terms,
)
from recollect.ingest.fact_ties import are_alike, are_rivals, excludes, has_one_tool
from recollect.ingest.fact_tools import LAYERED
from recollect.ingest.fact_values import agree
from recollect.ingest.fact_words import PASSING, PLAIN_VALUED, TROUBLES
from recollect.ingest.facts import Fact
from recollect.model import Item

SURE = 0.9
DOUBTFUL = 0.4
_LEAST_CONFIDENCE = 0.5
_DIGIT = re.compile(r"\d")
Verdict = Literal["replaces", "denies", "doubtful"]


class Stated(NamedTuple):
    """An item and the fact it states."""

    item: Item
    fact: Fact

    @property
    def moment(self) -> datetime:
        """From when on it is so, as far as anybody said."""
        return self.item.valid_from or self.item.when

    @property
    def is_change(self) -> bool:
        """Whether it says that something is no longer as it was."""
        return self.fact.how in ("became", "ended")

    @property
    def telling(self) -> Telling:
        """Its words, as far as they are compared."""
        fact = self.fact
        return Telling(self.item.text, fact.value, fact.subject, fact.attribute, fact.before)


class Judgement(NamedTuple):
    """``first`` supersedes or contradicts ``second``. ``why`` is for people."""

    kind: Literal["supersedes", "contradicts"]
    first: Stated
    second: Stated
    confidence: float
    why: str


def judge(one: Stated, other: Stated, *, by_rules: bool = True) -> Judgement | None:
    """What is to be said of two facts of the same subject and attribute, in any order.

    Facts that were not read ``by_rules`` have no words to compare: they can only be
    suspicious of each other.
    """
    newer, older = _in_order(one, other)
    if _elsewhere(newer, older) or _not_for_good(newer, older):
        return None
    verdict = _verdict(newer, older) if by_rules else _suspicion(newer.fact, older.fact)
    if verdict is None:
        return None
    hindrance = _hindrance(newer, older) if verdict == "replaces" else "they cannot both be so"
    if not hindrance:
        return Judgement("supersedes", newer, older, SURE, "newer and says otherwise")
    if "event" in (newer.fact.holds, older.fact.holds):
        return None  # two meetings at two times
    doubtful = verdict == "doubtful"
    why = "usually there is one" if doubtful else hindrance
    return Judgement("contradicts", newer, older, DOUBTFUL if doubtful else 0.8, why)


def _in_order(one: Stated, other: Stated) -> tuple[Stated, Stated]:
    """The newer first; at the same time a change comes after what it changes, else by id."""
    keys = [(each.moment, each.is_change, each.item.id) for each in (one, other)]
    return (one, other) if keys[0] > keys[1] else (other, one)


def _elsewhere(newer: Stated, older: Stated) -> bool:
    """Whether they speak of different things of one name: "the timeout is 30 s" means
    another one in another topic or project."""
    here, there = newer.item.topic, older.item.topic
    if here != there and ((here and there) or not newer.is_change):
        return True
    projects = [
        {entity for entity in each.item.entities if entity.startswith("project:")}
        for each in (newer, older)
    ]
    return all(projects) and projects[0].isdisjoint(projects[1])


def _not_for_good(newer: Stated, older: Stated) -> bool:
    """Whether the newer one holds only for a while, or one of the two only later."""
    item = newer.item
    if newer.moment > item.stored_at or (item.valid_to is not None and not older.item.valid_to):
        return True
    return any(_begins_after(each.item, item.stored_at) for each in (newer, older))


def _begins_after(item: Item, moment: datetime) -> bool:
    """Whether its words say that it is so only from a later time on."""
    since = _SINCE_THEN.search(item.text)
    told = item.text if _FROM_THEN.match(item.text) else item.text[since.end() :] if since else ""
    spans = find_times(told, item.stored_at)[:1] if told else []
    return any(span.start > moment for span in spans)


_SINCE_THEN = re.compile(r"\b(?:as of|as from|starting|effective|beginning)\b", re.IGNORECASE)
_FROM_THEN = re.compile(
    r"\s*(?:as of|as from|from|starting|effective|beginning|until|till|in|on|next|by)\b",
    re.IGNORECASE,
)


def _suspicion(newer: Fact, older: Fact) -> Literal["doubtful"] | None:
    alone = {newer.holds, older.holds} <= {"one", "some"}
    positive = {newer.how, older.how} <= {"is", "became"}
    return "doubtful" if alone and positive and not agree(newer.value, older.value) else None


def _verdict(one: Stated, other: Stated) -> Verdict | None:
    """What two statements are to each other by their words alone."""
    newer, older = one.fact, other.fact
    same = agree(newer.value, older.value)
    was, now_is = older.how in ("is", "became"), newer.how in ("is", "became")
    if was and now_is:
        return None if same else _other_value(one, other)
    if was == now_is or not same or not denies(one.item.text, other.item.text):
        return None  # "not in A" and "in B" are both so
    explicit = newer.how in ("ended", "became") or older.how == "ended"
    return "replaces" if explicit else "denies"


def _other_value(one: Stated, other: Stated) -> Verdict | None:
    """Two values, both said to be so."""
    newer, older = one.fact, other.fact
    if newer.by and older.by and newer.by != older.by:
        return None  # cut on Tuesdays, announced on Fridays
    if "status" in (newer.holds, older.holds):
        return _other_status(newer, older)
    if newer.before:
        return _instead(one, other)
    if newer.how == "became":
        return _changed(one, other)
    if {"event", "many", "version"} & {newer.holds, older.holds}:
        return _other_version(one, other)
    return None if _is_passing(newer) else _said_otherwise(one, other)


def _said_otherwise(one: Stated, other: Stated) -> Verdict | None:
    """The newer one does not say that something changed."""
    newer, older = one.fact, other.fact
    loose = "loose" in (newer.holds, older.holds)
    if older.how == "became" and not differs_in_words(newer.value, older.value):
        fits = replaces(one.telling, other.telling, whole=older.whole)
    else:
        fits = restates(one.item.text, other.item.text, names=_is_single(newer))
    if fits:
        return "doubtful" if loose else "replaces"
    if restates(one.item.text, other.item.text, names=True):
        return "doubtful" if same_limits(one.telling, other.telling) else None
    alike = same_but_who(one.telling, other.telling) or same_frame(one.telling, other.telling)
    return "doubtful" if alike else None


def _other_status(newer: Fact, older: Fact) -> Verdict | None:
    """Pending, then done; enabled, then disabled."""
    if newer.holds != older.holds:
        return None
    excluded = excludes(newer.value, older.value, changed=newer.how == "became")
    return None if excluded is None else "replaces" if excluded else "doubtful"


def _instead(one: Stated, other: Stated) -> Verdict | None:
    """It says what it replaced: that, or something else that may be another thing."""
    newer, older = one.fact, other.fact
    if agree(newer.before, older.value):
        if not same_limits(one.telling, other.telling):
            return None
        return "replaces" if not older.whole or same_terms(one.telling, other.telling) else None
    return "denies" if {newer.holds, older.holds} <= {"one", "some"} else None


def _changed(one: Stated, other: Stated) -> Verdict | None:
    """It says that it was not so before."""
    newer, older = one.fact, other.fact
    another = newer.subject.split()[-1] in TROUBLES  # the bug of today
    if another or not replaces(one.telling, other.telling, whole=older.whole):
        return None
    holds = {newer.holds, older.holds}
    if not holds & {"many", "version"}:
        return "doubtful" if _are_apart(newer, older) else "replaces"
    if not _is_chosen(newer):
        return None  # what supports 3.13 now may support 3.12 as well
    exchanged = not differs_in_words(newer.value, older.value)
    if exchanged or are_rivals(newer.value, older.value):
        return "replaces"
    likely = "version" in holds or newer.attribute == "prefers"
    return "doubtful" if likely else None


def _are_apart(newer: Fact, older: Fact) -> bool:
    """Whether two tools may be used side by side: Jest and Node 20, for the frontend; written
    in React and in TypeScript."""
    if not differs_in_words(newer.value, older.value):
        return False
    if not LAYERED.isdisjoint(newer.attribute.split()):
        return not are_alike(newer.value, older.value)
    does, _, purpose = newer.attribute.partition(" for ")
    if does != "uses":
        return False
    numbered = {bool(_DIGIT.search(fact.value.partition(" ")[2])) for fact in (newer, older)}
    return len(numbered) == 2 or not has_one_tool(purpose or newer.subject)


def _other_version(one: Stated, other: Stated) -> Verdict | None:
    """Of what there may be many: another version of one of them, or its rival."""
    newer, older = one.fact, other.fact
    if "event" in (newer.holds, older.holds) or not _is_chosen(newer):
        return None
    if are_rivals(newer.value, older.value):
        return "doubtful" if restates(one.item.text, other.item.text, names=True) else None
    # What has another name is another thing; only then the texts are worth a look.
    if newer.value.split()[0] != older.value.split()[0]:
        return None
    fits = restates(one.item.text, other.item.text, names=False)
    if older.how == "became" and not differs_in_words(newer.value, older.value):
        fits = fits or replaces(one.telling, other.telling, whole=older.whole)
    if not fits:
        return None
    return "replaces" if newer.holds == older.holds == "version" else "doubtful"


def _is_chosen(fact: Fact) -> bool:
    """Whether one takes one of a kind, as a rule: one uses one Python, and likes many teas."""
    return fact.attribute.split()[0] in ("uses", "prefers", "requires", "needs", "targets")


def _is_passing(fact: Fact) -> bool:
    """Whether such things come and go, each another one: the bug, the ticket, the weather."""
    return fact.subject.split()[-1] in PASSING


def _is_single(fact: Fact) -> bool:
    """Whether the property has one value at a time by what it is called."""
    words = (fact.subject if fact.attribute == "value" else fact.attribute).split()
    return words[0] in _ONE_AT_A_TIME or words[-1] in (PLAIN_VALUED | {"employer"}) - {"name"}


_ONE_AT_A_TIME = frozenset({"favourite", "favorite", "preferred", "default", "current"})


def _hindrance(newer: Stated, older: Stated) -> str:
    """Why the newer may not replace the older, if it may not."""
    if newer.moment == older.moment and newer.is_change == older.is_change:
        return "both of the same time"
    if newer.item.trust < older.item.trust:
        return "the newer one is less trusted"
    if newer.item.classification > older.item.classification:
        return "the newer one is more secret"
    if newer.item.confidence < _LEAST_CONFIDENCE or "injection" in newer.item.flags:
        return "the newer one is doubtful"
    return ""
