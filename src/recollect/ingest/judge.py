"""Judges two facts of one slot: does one replace the other, do they contradict each other?"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple

from recollect.ingest.fact_values import agree, same_head
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


def judge(one: Stated, other: Stated) -> Judgement | None:
    """What is to be said of two facts of the same subject and attribute, in any order."""
    if one.item.topic and other.item.topic and one.item.topic != other.item.topic:
        return None  # "the timeout is 30 s" means another one in another topic
    newer, older = _in_order(one, other)
    verdict = _verdict(newer.fact, older.fact)
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


def _verdict(newer: Fact, older: Fact) -> Literal["replaces", "denies", "doubtful"] | None:
    """What two statements are to each other by their words alone."""
    same = agree(newer.value, older.value)
    was, now_is = older.how in ("is", "became"), newer.how in ("is", "became")
    if was and now_is:
        return None if same else _other_value(newer, older)
    if was == now_is or not same:
        return None  # "not in A" and "in B" are both so
    explicit = newer.how in ("ended", "became") or older.how == "ended"
    return "replaces" if explicit else "denies"


def _other_value(newer: Fact, older: Fact) -> Literal["replaces", "denies", "doubtful"] | None:
    """Two values, both said to be so."""
    named = bool(newer.before) and agree(newer.before, older.value)
    if newer.holds == "many" or older.holds == "many":
        return "replaces" if named else None
    if newer.holds == "event" or older.holds == "event":
        return "replaces" if newer.how == "became" else None
    if newer.before and not named:
        return "denies"  # it replaced something else, so this may be another thing
    if "some" in (newer.holds, older.holds):
        clear = named or newer.how == "became" or same_head(newer.value, older.value)
        return "replaces" if clear else "doubtful"
    return "replaces"


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
