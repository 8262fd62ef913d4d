"""Finds by rules which memory another names as its cause or its effect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from recollect.ingest.writing import WriteContext
from recollect.model import Filters, Item, Link, Node
from recollect.ports import Scope, TextSearch
from recollect.text import word_set

MOST_CAUSES = 2
_LEAST_SHARED = 0.7  # of a clause's telling words, in the memory it is taken to mean
_LEAST_WORDS = 3
_CUE = re.compile(
    r"\b(?:because|caused|causes|cause|led to|leads to|due to|resulted in|triggered|therefore"
    r"|as a result|that is why|that's why|consequently|so that's)\b"
)
_HINTS = ("caus", "led to", "leads to", "due to", "result", "trigger", "that's why", "that is why",
          "therefore", "consequently")  # fmt: skip
_ID = re.compile(r"\b(?:[0-9a-hjkmnp-tv-z]{16})\b")
_FORWARD = re.compile(r"\b(?:caused|causes|led to|leads to|resulted in|triggered)\s+(?!by\b)")
_BACKWARD = re.compile(r"\b(?:because(?: of)?|due to|caused by|triggered by)\s+")
_OPENING = (
    *("because of that", "because of this", "therefore", "as a result", "that is why"),
    *("that's why", "consequently", "this caused", "that caused", "this led to", "so that's why"),
)
_PLAIN = word_set("the a an of in on at to was were is are by that this it and or our we had has")


class Before(NamedTuple):
    """What came before in the same batch: the last turn of each session."""

    turns: Mapping[str, str]


def causes_of(item: Item, before: Before, ctx: WriteContext, *, searching: bool) -> list[Link]:
    """Links to what a memory says caused it, or that it caused; two at most.

    By an id in the text, to the turn before where a turn begins with "that is why", or,
    where there is time for ``searching``, to an earlier memory that says the clause
    behind "because".
    """
    text = item.text.lower()
    if not any(hint in text for hint in _HINTS):
        return []  # most texts end here, much faster than the pattern could tell
    if _CUE.search(text) is None or text.rstrip().endswith("?"):
        return []
    links: dict[str, Link] = {}
    for other, kind, sure in _named(item, text, before, ctx, searching=searching):
        if other != item.id and len(links) < MOST_CAUSES:
            ends = Node("item", item.id), Node("item", other)
            link = Link(*ends, kind, confidence=sure, created_at=ctx.now)
            links.setdefault(other, link)
    return list(links.values())


def _named(
    item: Item, text: str, before: Before, ctx: WriteContext, *, searching: bool
) -> Iterator[tuple[str, str, float]]:
    ids = list(dict.fromkeys(_ID.findall(text)))[:MOST_CAUSES]
    for known in ctx.store.get(ids) if ids else ():
        at = text.find(known)
        forward = _FORWARD.search(text[:at])
        yield known, "causes" if forward else "caused_by", 0.9
    if item.session is not None and text.startswith(_OPENING):
        turn = before.turns.get(item.session) or _last_turn(item, ctx)
        if turn is not None:
            yield turn, "caused_by", 0.6
    if searching and not ids:
        for pattern, kind in ((_BACKWARD, "caused_by"), (_FORWARD, "causes")):
            found = pattern.search(text)
            meant = _meant(text[found.end() :], item, ctx) if found else None
            if meant is not None:
                yield meant, kind, 0.6


def _last_turn(item: Item, ctx: WriteContext) -> str | None:
    filters = Filters(sessions=(item.session or "",), max_classification=3)
    found = ctx.store.browse(Scope(filters, ctx.now), limit=1)
    return found[0].id if found else None


def _meant(clause: str, item: Item, ctx: WriteContext) -> str | None:
    """The earlier memory that says nearly all of a clause, if there is one."""
    clause = re.split(r"[.;,!?\n]", clause, maxsplit=1)[0]
    wanted = word_set(clause) - _PLAIN
    if len(wanted) < _LEAST_WORDS:
        return None
    scope = Scope(Filters(max_classification=item.classification), ctx.now)
    for match in ctx.store.search_text(TextSearch(clause, depth=3), scope).matches:
        shared = wanted & word_set(match.item.text)
        if match.item.id != item.id and len(shared) >= _LEAST_SHARED * len(wanted):
            return match.item.id
    return None
