"""Judges two facts of one slot: does one replace the other, do they contradict each other?"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, NamedTuple

from recollect.dates import find_times
from recollect.ingest.fact_shapes import denies, differs_in_words, replaces, restates
from recollect.ingest.fact_values import agree
from recollect.ingest.fact_words import PLAIN_VALUED
from recollect.ingest.facts import Fact
from recollect.model import Item

SURE = 0.9
DOUBTFUL = 0.4
_LEAST_CONFIDENCE = 0.5


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
    def is_positive(self) -> bool:
        return self.fact.how in ("is", "became")


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
    """Whether the newer one holds only later, or only for a while."""
    item = newer.item
    if newer.moment > item.stored_at or (item.valid_to is not None and not older.item.valid_to):
        return True
    if not _FROM_THEN.match(item.text):
        return False
    return any(span.start > item.stored_at for span in find_times(item.text, item.stored_at)[:1])


_FROM_THEN = re.compile(
    r"\s*(?:as of|as from|from|starting|effective|beginning|until|till|in|on|next|by)\b",
    re.IGNORECASE,
)


def _suspicion(newer: Fact, older: Fact) -> Literal["doubtful"] | None:
    alone = {newer.holds, older.holds} <= {"one", "some"}
    positive = {newer.how, older.how} <= {"is", "became"}
    return "doubtful" if alone and positive and not agree(newer.value, older.value) else None


def _verdict(one: Stated, other: Stated) -> Literal["replaces", "denies", "doubtful"] | None:
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


def _other_value(one: Stated, other: Stated) -> Literal["replaces", "denies", "doubtful"] | None:
    """Two values, both said to be so."""
    newer, older = one.fact, other.fact
    if newer.before:
        # It says what it replaced: that, or something else that may be another thing.
        named = agree(newer.before, older.value)
        alone = {newer.holds, older.holds} <= {"one", "some"}
        return "replaces" if named else "denies" if alone else None
    if newer.how == "became":
        texts = (one.item.text, newer.value, other.item.text, older.value)
        fits = replaces(*texts, whole=older.whole)
        other_thing = newer.holds == "many" and differs_in_words(newer.value, older.value)
        return "replaces" if fits and not other_thing else None
    if {"event", "many"} & {newer.holds, older.holds} or _is_passing(newer):
        return None
    if older.how == "became" and not differs_in_words(newer.value, older.value):
        texts = (one.item.text, newer.value, other.item.text, older.value)
        return "replaces" if replaces(*texts, whole=older.whole) else None
    if restates(one.item.text, other.item.text, names=_is_single(newer)):
        return "replaces"
    named_alike = restates(one.item.text, other.item.text, names=True)
    return "doubtful" if named_alike else None


def _is_passing(fact: Fact) -> bool:
    """Whether such things come and go, each another one: the bug, the ticket, the weather."""
    return fact.subject.split()[-1] in _PASSING


_PASSING = frozenset(
    ("bug", "error", "ticket", "issue", "invoice", "endpoint", "temperature", "weather", "score",
     "task", "order", "request", "incident", "alert", "exception", "commit",
     "build", "meeting", "call", "appointment", "flight", "train", "answer", "result", "problem",
     "question", "idea", "example", "page", "line", "file", "function", "customer", "author",
     "reviewer")
)  # fmt: skip


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
