"""What a note says: a day in full, a week and a quarter by what mattered most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from recollect.model import Item
from recollect.text import caption, shorten, visible

MOST_SECRET = 1
_CHARACTERS = 300
_MOST = {"daily": 500, "weekly": 20, "quarterly": 40}
_WEIGHTY = {"decision": 0.3, "milestone": 0.3, "event": 0.1, "learning": 0.2, "preference": 0.1}


class Composed(NamedTuple):
    """The text of a note, and the memories it tells of."""

    text: str
    sources: tuple[str, ...]


def compose(name: str, items: Sequence[Item]) -> Composed:
    """A paragraph a memory, each with its id; conversations by what they opened with."""
    kind = name.partition("_")[0]
    told = [item for item in items if item.level != "raw" or item.session is None]
    chosen = sorted(told, key=lambda item: (-_weight(item), item.when, item.id))[: _MOST[kind]]
    grouped: defaultdict[str, list[Item]] = defaultdict(list)
    for item in sorted(chosen, key=lambda one: (one.when, one.id)):
        grouped[item.topic or ""].append(item)
    blocks = [f"# {name.partition('_')[2]}"]
    for topic in sorted(grouped):
        if topic:
            blocks.append(f"## {_line(topic)}")
        blocks += [_entry(item, with_day=kind != "daily") for item in grouped[topic]]
    talks = _conversations([item for item in items if item.level == "raw" and item.session])
    blocks += [_talk(said, with_day=kind != "daily") for said in talks]
    if kind != "daily" and len(told) > len(chosen):
        blocks.append(_rest(told, chosen))
    sources = (*(item.id for item in chosen), *(said[0].id for said in talks))
    return Composed("\n\n".join(blocks) + "\n", sources)


def _weight(item: Item) -> float:
    return item.importance + _WEIGHTY.get(item.kind, 0.0) + (1.0 if item.pinned else 0.0)


def _entry(item: Item, *, with_day: bool) -> str:
    when = f"{item.when:%Y-%m-%d}" if with_day else f"{item.when:%H:%M}"
    return f"- {when} {item.kind}: {shorten(_line(item.text), _CHARACTERS)} ({item.id})"


def _talk(said: Sequence[Item], *, with_day: bool) -> str:
    first = said[0]
    when = f"{first.when:%Y-%m-%d} " if with_day else ""
    opening = caption(first.text, first.speaker)
    return f"- {when}conversation of {len(said)} turns: {opening} ({first.id})"


def _conversations(turns: Sequence[Item]) -> list[list[Item]]:
    """The turns of each conversation, in their order."""
    sessions: defaultdict[str, list[Item]] = defaultdict(list)
    for item in sorted(turns, key=lambda one: (one.when, one.seq or 0, one.id)):
        sessions[str(item.session)].append(item)
    return list(sessions.values())


def _rest(told: Sequence[Item], chosen: Sequence[Item]) -> str:
    kinds = Counter(item.kind for item in told)
    counted = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return f"In all {len(told)} memories, {len(chosen)} of them above: {counted}."


def _line(text: str) -> str:
    return " ".join(visible(text).split())
