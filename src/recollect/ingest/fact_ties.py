"""Statements of who is what, where something leads, what it is made with and how far it is."""

from __future__ import annotations

import re

from recollect.ingest import fact_tools as tools
from recollect.ingest import fact_words as words_of
from recollect.ingest.fact_parts import Fact, How, Said, make_fact, thing_of, without_adverbs
from recollect.ingest.fact_values import Value, is_naming, value_of, without_now

_VERSION = re.compile(r"v?\d+(?:\.\w+)*")
# These run several versions of one thing in turn.
_SEVERAL_VERSIONS = frozenset(
    ("ci", "matrix", "test", "tests", "suite", "pipeline", "workflow", "tox", "nox", "we")
)
_MOST_NAMED = 3  # words of a name
_DIGIT = re.compile(r"\d")


def role(said: Said) -> Fact | None:
    """As in "Alice is the on-call engineer": about the role, of which there is one."""
    holder = value_of(said.subject)
    if holder is None or holder.kind != "name" or len(holder.key.split()) > 2 or holder.more:
        return None
    words, now = without_now(said.after[1:])
    how: How = "became" if now and said.how == "is" else said.how
    if not words or words[-1].low not in words_of.ROLES or any(word.pause for word in words):
        return None
    if words[-1].low not in words_of.ROLES_OF and len(words) == 1:
        return None  # one of several engineers
    if words[0].low == "new":
        if words[-1].low not in words_of.ROLES_OF:
            return None  # one more
        how = "became" if how == "is" else how
    thing = thing_of(words, said.me)
    return make_fact(said._replace(how=how), thing.slot("value"), holder) if thing else None


def leading(said: Said) -> Fact | None:
    """As in "logs go to Loki", "we deploy to Fly.io", "the service listens on port 8080"."""
    act, prepositions = words_of.LEADING[said.verb]
    after, how = without_adverbs(said.after, said.how)
    if len(after) < 2 or after[0].low not in prepositions:
        return None
    thing, value = said.thing, value_of(after[1:])
    if thing is None or value is None or not _is_tool(value):
        return None
    if (said.verb == "goes" and thing.is_name) or (act == "go" and said.is_first_person):
        return None  # Ben goes to Berlin
    slot = thing.slot(f"{act} {after[0].low}")
    return make_fact(said._replace(how=how), slot, value, "loose")


def made(said: Said) -> Fact | None:
    """As in "is built with Vite", "is written in Go". ``said.verb`` is how it is made."""
    if len(said.after) < 2 or said.after[0].low not in words_of.MADE_BY:
        return None
    thing, value = said.thing, value_of(said.after[1:])
    if thing is None or value is None or not _is_tool(value):
        return None
    return make_fact(said, thing.slot(f"{said.verb} {said.after[0].low}"), value, "loose")


def running(said: Said) -> Fact | None:
    """As in "The staging server runs Ubuntu 22.04": one version of each thing it runs."""
    thing, value = said.thing, value_of(said.after)
    if thing is None or value is None or not is_versioned(value):
        return None
    mixed = thing.head.endswith("s") and said.verb == "run"  # not all servers run the same
    single = not (thing.is_name or mixed) and _SEVERAL_VERSIONS.isdisjoint(thing.name.split())
    return make_fact(said, thing.slot("uses"), value, "version" if single else "many")


def is_versioned(value: Value) -> bool:
    """Whether it is a name and its version: Ubuntu 22.04."""
    words = value.key.split()
    return value.kind == "name" and len(words) == 2 and bool(_VERSION.fullmatch(words[1]))


def status(said: Said) -> Fact | None:
    """As in "The migration is pending", "the flag is disabled"."""
    after, now = without_now(said.after)
    how: How = "became" if now and said.how == "is" else said.how
    if not after:
        return None
    word = "in-progress" if [one.low for one in after] == ["in", "progress"] else after[0].low
    alone = len(after) == 1 or word == "in-progress"
    thing = said.thing
    if thing is None or not alone or word not in words_of.STATUSES or thing.is_name:
        return None
    unnamed = thing.head in words_of.UNNAMED or thing.head in words_of.ABSTRACT
    if unnamed and not _DIGIT.search(thing.name):
        return None
    value = Value(word, "plain")
    return make_fact(said._replace(how=how), thing.slot("status"), value, "status")


def excludes(newer: str, older: str, *, changed: bool) -> bool | None:
    """Whether a status takes the place of another for sure; None where both may be so."""
    if any({newer, older} <= pair for pair in words_of.TOGGLES):
        return True
    if older in words_of.UNDONE and newer in words_of.DONE:
        return True
    if older in words_of.DONE and newer in words_of.UNDONE:
        return changed
    if changed and {newer, older} <= words_of.UNDONE:
        return False
    return None


def are_rivals(one: str, other: str) -> bool:
    """Whether one has one of the two at a time: tabs or spaces."""
    pair = {one.replace(" ", "-"), other.replace(" ", "-")}
    return len(pair) == 2 and any(pair <= row for row in tools.RIVALS)


def are_alike(one: str, other: str) -> bool:
    """Whether one is made with one of the two: Python or Go, React or Vue, npm or pnpm."""
    pair = {one.replace(" ", "-"), other.replace(" ", "-")}
    return any(pair <= row for row in (*tools.RIVALS, *tools.MATERIALS))


def has_one_tool(purpose: str) -> bool:
    """Whether one does it with one tool, as a rule: formatting, CI, but not a dashboard."""
    last = purpose.rpartition(" ")[2]
    return last in tools.PURPOSES or (last.endswith("ing") and last not in tools.PRODUCTS)


def _is_tool(value: Value) -> bool:
    words = value.key.split()
    if len(words) > _MOST_NAMED or value.kind == "time":
        return False
    numbered = len(words) == 2 and bool(_VERSION.fullmatch(words[1]))  # port 8080
    return value.kind != "plain" or numbered or (len(words) == 1 and is_naming(value))
