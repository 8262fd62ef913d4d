"""What a memory means to the thread it belongs to: by rules over its kind and words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from recollect.model import Item, ThreadEvent
from recollect.model.thread import Happening, Lifecycle, Role, ThreadKind, ThreadState

DORMANT_AFTER = timedelta(days=14)
CLOSED_AFTER = timedelta(days=45)

_BY_KIND: dict[str, Happening] = {
    "decision": "decision_made",
    "question": "question_opened",
    "milestone": "milestone_reached",
    "resolution": "resolution_declared",
    "outcome": "resolution_declared",
}
# The first that fits counts: what clears a blocker or solves a problem also names it.
_WORDS: dict[Happening, str] = {
    "blocker_cleared": r"\b(?:unblocked|no longer (?:blocked|waiting|stuck))\b",
    "question_closed": (
        r"\b(?:answered|turns out|it turned out|the answer is|root cause (?:was|is)|caused by)\b"
    ),
    "resolution_declared": r"\b(?:resolved|fixed|solved|closed the (?:issue|ticket|case))\b",
    "blocker_added": r"\b(?:blocked (?:by|on)|wait(?:ing|s) (?:for|on)|stuck (?:on|with|at))\b",
    "milestone_reached": (
        r"\b(?:shipped|released|launched|went live|merged|completed|finished|migrated)\b"
    ),
    "setback": (
        r"\b(?:failed|failing|outage|rolled back|regression|broke|broken|crash(?:ed|es)?"
        r"|timed out)\b"
    ),
    "decision_made": r"\b(?:decided|we chose|agreed (?:to|on)|settled on|going with)\b",
    "question_opened": r"\?\s*$",
    "state_change": r"\b(?:moved to|switched (?:to|from)|is now|changed (?:to|from))\b",
}
_BY_WORDS = {kind: re.compile(words, re.IGNORECASE) for kind, words in _WORDS.items()}
# "Not yet fixed" tells of no resolution, "never shipped" of no milestone.
_DENIED = re.compile(
    r"(?:\b(?:not|never|cannot|nor)|n['\u2019]t)\s+(?:(?:yet|been|be|fully|really|all)\s+)*$",
    re.IGNORECASE,
)
_OUTCOMES = frozenset(("resolution_declared", "milestone_reached", "question_closed"))


def happening(item: Item, *, first: bool) -> Happening:
    """What a memory tells of: from its kind, else from its words."""
    if item.kind in _BY_KIND:
        return _BY_KIND[item.kind]
    for kind, pattern in _BY_WORDS.items():
        if any(not _DENIED.search(item.text[: one.start()]) for one in pattern.finditer(item.text)):
            return kind
    return "observation" if first else "update"


def role(item: Item, score: float, *, first: bool, match: float) -> Role:
    """The first one began it; outcomes end it; what fits well is its core."""
    if first:
        return "trigger"
    if happening(item, first=False) in _OUTCOMES:
        return "outcome"
    return "core" if score >= match else "context"


def events_of(items: Sequence[Item]) -> tuple[ThreadEvent, ...]:
    """What happened, in the order of time."""
    told = []
    for number, item in enumerate(items):
        kind = happening(item, first=number == 0)
        meaningful = kind not in {"observation", "update"}
        told.append(ThreadEvent(number, kind, item.when, item.id, meaningful=meaningful))
    return tuple(told)


def state_of(events: Sequence[ThreadEvent], now: datetime, *, anchored: bool) -> ThreadState:
    """How things stand: the last word on blockers and resolutions counts."""
    for event in reversed(events):
        if event.kind == "blocker_added":
            return "blocked"
        if event.kind == "resolution_declared":
            return "resolved"
        if event.kind in {"blocker_cleared", "setback", "question_opened"}:
            break
    if len(events) < 3 and not anchored:
        return "uncertain"
    return "stable" if now - events[-1].at >= DORMANT_AFTER else "ongoing"


def lifecycle_of(events: Sequence[ThreadEvent], state: ThreadState, now: datetime) -> Lifecycle:
    """Quiet for two weeks is dormant, for six and a half closed; what is resolved closes
    when it has gone quiet."""
    quiet = now - max(event.at for event in events)
    if quiet >= CLOSED_AFTER or (state == "resolved" and quiet >= DORMANT_AFTER):
        return "closed"
    return "dormant" if quiet >= DORMANT_AFTER else "active"


def kind_of(anchor: str | None, events: Sequence[ThreadEvent]) -> ThreadKind:
    """A case has a setback or a blocker, work a ticket or project; people relate."""
    if anchor is not None and anchor.startswith("person:"):
        return "relationship"
    if any(event.kind in {"setback", "blocker_added"} for event in events):
        return "case"
    works = ("ticket:", "project:", "file:", "tool:")
    return "work" if anchor is not None and anchor.startswith(works) else "topic"
