"""What belongs beside the hits: how a subject went on, and which hits may contradict."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations

from recollect.context import Addition, Context
from recollect.model import Item, Pool, Timeline
from recollect.text import word_set

GENERAL = "general"
_AT = re.compile(r"(?<!\w)@(\w[\w.-]*)")
_CAPITALISED = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)*")


def primary_entity(item: Item) -> str | None:
    """Whom or what a memory is about first of all: the first @reference of its text, else
    the first entity it is known to mention, else its first capitalised words."""
    if mark := _AT.search(item.text):
        return mark[1].casefold()
    if item.entities:
        return item.entities[0].partition(":")[2]
    named = _CAPITALISED.search(item.text)
    return named[0].casefold() if named else None


@dataclass(frozen=True, slots=True)
class Timelines:
    """Hits of one topic about the same entity, from ``least`` on, in the order of time; and
    across topics, where an entity has ``least_across`` hits in two topics or more."""

    least: int = 2
    least_across: int = 3
    name: str = "timelines"

    def __call__(self, hits: Pool, ctx: Context) -> Addition:
        by_entity: dict[str, list[Item]] = {}
        for hit in hits:
            entity = primary_entity(hit.item)
            if entity is not None:
                by_entity.setdefault(entity, []).append(hit.item)
        lines: list[Timeline] = []
        for entity in sorted(by_entity):
            lines += self._of(entity, by_entity[entity])
        return Addition(timelines=tuple(lines))

    def _of(self, entity: str, items: list[Item]) -> list[Timeline]:
        topics: dict[str, list[Item]] = {}
        for item in items:
            topics.setdefault(item.topic or GENERAL, []).append(item)
        lines = [
            _line(f"{entity} in {topic}", together)
            for topic, together in sorted(topics.items())
            if len(together) >= self.least
        ]
        if len(topics) > 1 and len(items) >= self.least_across:
            lines.append(_line(f"{entity} across {', '.join(sorted(topics))}", items))
        return lines


def _line(subject: str, items: list[Item]) -> Timeline:
    ordered = sorted(items, key=lambda item: (item.when, item.id))
    felt = [item.emotion for item in ordered]
    arc = f" (emotion {' → '.join(f'{one:+g}' for one in felt)})" if any(felt) else ""
    return Timeline(subject + arc, tuple(item.id for item in ordered))


@dataclass(frozen=True, slots=True)
class Interference:
    """Warns of two hits of one topic that share more than ``share`` of the shorter one's
    words and yet differ: one may be an older state of the other."""

    share: float = 0.6
    shortest_word: int = 3
    name: str = "interference"

    def __call__(self, hits: Pool, ctx: Context) -> Addition:
        words = {hit.item.id: self._words(hit.item.text) for hit in hits}
        warnings = [
            f"{one.id} and {other.id} say nearly the same, but not quite;"
            f" both are about {one.topic or GENERAL}"
            for one, other in combinations((hit.item for hit in hits), 2)
            if (one.topic or GENERAL) == (other.topic or GENERAL)
            and one.text != other.text
            and self._interfere(words[one.id], words[other.id])
        ]
        return Addition(warnings=tuple(warnings))

    def _words(self, text: str) -> frozenset[str]:
        words = word_set(text)
        return frozenset(
            word for word in words if len(word) >= self.shortest_word or not word.isascii()
        )

    def _interfere(self, one: frozenset[str], other: frozenset[str]) -> bool:
        smaller = min(len(one), len(other))
        return smaller > 0 and len(one & other) / smaller > self.share
