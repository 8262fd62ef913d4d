"""Finds paragraphs of the notes kept beside the memories: daily, weekly, quarterly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from recollect.asked import periods, telling_words
from recollect.channels.ranking import ranked
from recollect.context import Context
from recollect.errors import Refused
from recollect.model import Filters, Item, Pool
from recollect.ports import Found, Match, NoteFile, Word
from recollect.scope import rejects
from recollect.text import fold

MOST_READ = 2_000  # paragraphs
_DAY = timedelta(days=1)
# How a note that maintenance wrote names the memory a line tells of.
_NAMED = re.compile(r"\(([A-Za-z0-9_.:-]{1,64})\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NotesChannel:
    """Paragraphs of Markdown notes that hold a telling word of the question, the newest
    ``depth``, each ``score``, none twice.

    Of the time asked for: ``since`` and ``until``, else the times the question names,
    else any. A note is a file's word, not a memory's: it has an id (``note:...#3``) to be
    looked at, and every filter holds for it. A paragraph that repeats a memory is left out
    where that memory is no longer recalled.
    """

    depth: int = 10
    weight: float = 1.0
    score: float = 0.5
    name: str = "notes"

    def __call__(self, ctx: Context) -> Pool:
        if ctx.notes is None:
            ctx.remark("there is no folder of notes")
            return ()
        if ctx.query.filters.bands:
            ctx.remark("a note has no band: nobody counts its use")
            return ()
        words = [telling.word for telling in telling_words(ctx)]
        best: dict[str, Match] = {}
        for item in _paragraphs(ctx) if words else ():
            content = fold(item.text)
            held = _held(words, item, ctx) if content not in best else ()
            if held and rejects(item, ctx.scope) is None and not _tells_of_gone(item, ctx):
                best[content] = Match(item, self.score, f"holds {', '.join(held)}")
                if len(best) >= self.depth:
                    break
        # All score alike, and equal scores stand by id everywhere.
        matches = sorted(best.values(), key=lambda match: match.item.id)
        return ranked(self.name, Found(tuple(matches)), ctx)


def _tells_of_gone(item: Item, ctx: Context) -> bool:
    """Whether it repeats a memory that is not to be recalled: superseded, forgotten or ended
    since the note was written, or kept from whoever asks."""
    named = _NAMED.findall(item.text)
    if not named:
        return False
    asked, as_of = ctx.query.filters, ctx.scope.as_of
    filters = Filters(
        max_classification=asked.max_classification,
        min_trust=asked.min_trust,
        # What stood at that moment may have been superseded since.
        include_superseded=asked.include_superseded or as_of is not None,
        include_expired=asked.include_expired,
    )
    scope = ctx.scope._replace(filters=filters)
    sources = ctx.store.get(named).values()
    return any(rejects(one._replace(live_from=None), scope) is not None for one in sources)


class _Window(NamedTuple):
    start: datetime | None
    end: datetime | None


def _paragraphs(ctx: Context) -> Iterator[Item]:
    """Paragraphs of the time asked for, newest file first."""
    read = 0
    for file, window in _files(ctx):
        for item in _read(file, ctx):
            read += 1
            if read > MOST_READ:
                ctx.remark(f"the newest {MOST_READ:,} paragraphs were looked at")
                return
            if not _goes_beyond(item, file, window):
                yield _of_window(item, window)


def _files(ctx: Context) -> list[tuple[NoteFile, _Window]]:
    notes, query = ctx.notes, ctx.query
    if notes is None:
        return []
    found: dict[str, tuple[NoteFile, _Window]] = {}
    for window in _windows(ctx):
        for file in notes.files(*window):
            # What was written later than the moment asked about was not known then.
            late = query.as_of is not None and file.modified > query.as_of
            if not late and file.start <= query.moment:
                found.setdefault(file.name, (file, window))
    return sorted(found.values(), key=lambda one: (one[0].start, one[0].name), reverse=True)


def _windows(ctx: Context) -> list[_Window]:
    filters = ctx.query.filters
    if filters.since is not None or filters.until is not None:
        return [_Window(filters.since, filters.until)]
    named = [_Window(period.start, period.end) for period in periods(ctx)]
    return named or [_Window(None, None)]


def _read(file: NoteFile, ctx: Context) -> Sequence[Item]:
    assert ctx.notes is not None
    try:
        return ctx.notes.read(file)
    except Refused as error:
        ctx.remark(f"left out: {error.message}")
        return ()


def _goes_beyond(item: Item, file: NoteFile, window: _Window) -> bool:
    """Whether a paragraph with days of its own tells of one outside the window. One without
    may be of any day of its file."""
    if item.occurred_end is None or (item.when, item.occurred_end) == (file.start, file.end):
        return False
    starts_late = window.end is not None and item.occurred_end - _DAY >= window.end
    return starts_late or (window.start is not None and item.occurred_end <= window.start)


def _of_window(item: Item, window: _Window) -> Item:
    """A note of a week that began before the window belongs to the part inside of it."""
    if window.start is None or item.when >= window.start:
        return item
    return item._replace(occurred_at=window.start)


def _held(words: Sequence[Word], item: Item, ctx: Context) -> tuple[str, ...]:
    """The words of the question that a paragraph holds."""
    plain = item.text.casefold() if item.text.isascii() else ""
    if plain and not any(_may_hold(word, plain) for word in words):
        return ()
    there = set(ctx.store.terms(item.text))
    return tuple(word.shown for word in words if there.issuperset(word.terms))


def _may_hold(word: Word, plain: str) -> bool:
    """A quick look: a word and its inflections begin alike."""
    shown = word.shown.casefold()
    return not (shown.isascii() and shown.isalpha()) or shown[:3] in plain
