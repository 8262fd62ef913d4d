"""Retrievers of the abmind profile: signatures, trigrams, entity edges and notes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from typing import Literal

from bethink.core.characters import estimate_tokens
from bethink.core.dataclass import dataclass
from bethink.core.named_tuple import NamedTuple
from bethink.core.words import fold
from bethink.errors import Refused
from bethink.model import Entity, Filters, Item, Link, Node, Pool
from bethink.ports import Match, NoteFile, SearchResult, TrigramSearch, Word
from bethink.retrieval.context import Context, Retriever
from bethink.retrieval.query_analysis import content_terms, periods
from bethink.retrieval.retrievers.ranking import ranked_pool, skip_if_filled
from bethink.retrieval.scope import rejection_reason


@dataclass(frozen=True, slots=True)
class Signature:
    """Memories made of the question's words; needs no model.

    The score is the share of bits in which signatures of the words would agree, adjusted for
    the question's length: 0.5 is chance, and nothing below ``min_likeness`` is returned.
    Skipped when the retrievers in ``after`` found ``enough`` (0: as many as requested).
    """

    depth: int = 5
    weight: float = 1.0
    min_likeness: float = 0.65
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "signature"

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        return skip_if_filled(found, self.after, self.enough, ctx)

    def __call__(self, ctx: Context) -> Pool:
        found = ctx.store.search.signature(ctx.query.text, self.depth, self.min_likeness, ctx.scope)
        return ranked_pool(self.name, found, ctx)


@dataclass(frozen=True, slots=True)
class Trigram:
    """Trigrams of the question's words, ignoring accents.

    Words are matched as typed, with z and y swapped, or by overlapping windows of long
    words. ``within`` selects the text and its keywords, or the original it was translated
    from. Memories that hold less than ``min_share`` of the question are left out. Skipped
    when the retrievers in ``after`` found ``enough`` (0: as many as requested).
    """

    depth: int = 30
    weight: float = 1.0
    within: Literal["text", "original"] = "text"
    min_share: float = 0.3
    after: tuple[str, ...] = ()
    enough: int = 0
    name: str = "trigram"
    matches = "pieces"

    def skip(self, found: Mapping[Retriever, Pool], ctx: Context) -> str:
        return skip_if_filled(found, self.after, self.enough, ctx)

    def read_ahead(self, ctx: Context) -> None:
        ctx.store.search.read_ahead(ctx.scope, pieces=self._search(ctx))

    def __call__(self, ctx: Context) -> Pool:
        return ranked_pool(self.name, ctx.store.search.pieces(self._search(ctx), ctx.scope), ctx)

    def _search(self, ctx: Context) -> TrigramSearch:
        limit, is_original = ctx.candidate_limit(self.depth), self.within == "original"
        return TrigramSearch(ctx.query.text, limit, is_original, self.min_share)


EDGE_ID_PREFIX = "edge:"
MAX_EDGES_READ = 200  # edges of an entity on the way to another
CO_MENTION = "mentioned with"

Path = tuple[Link, ...]


class _ScoredPath(NamedTuple):
    """A path between entities: the edges in order, and its score."""

    path: Path
    score: float


@dataclass(frozen=True, slots=True)
class Edges:
    """Edges between the entities a question names, and paths of one or two edges.

    With two or more entities, paths between them score ``one_hop`` or ``two_hops``,
    ``depth`` at most. With one entity, or none connected, the ``each`` newest edges of up
    to ``limit`` entities.

    A hit is the memory that an edge came from. An edge whose memory is not visible is
    dropped; one without a memory is shown as text, ``alice —[knows]→ bob``. Two entities
    without an edge that one memory mentions together are connected by that memory.
    """

    depth: int = 20
    weight: float = 1.0
    limit: int = 3
    each: int = 10
    one_hop: float = 0.6
    two_hops: float = 0.5
    name: str = "edges"
    matches = "names"

    def __call__(self, ctx: Context) -> Pool:
        known = ctx.find_entities()
        if not known:
            ctx.add_step_note("the question names no entity")
            return ()
        ctx.add_step_note(f"entities named: {', '.join(entity.name for entity in known)}")
        if ctx.query.filters.bands:
            ctx.add_step_note("the filter on heat bands excludes edges")
            return ()
        names = {entity.id: entity.name for entity in known}
        paths = self._paths_between(known, ctx) if len(known) > 1 else []
        paths = paths or self._newest_edges(known[: self.limit], ctx)
        best: dict[str, Match] = {}
        for match in _path_matches(paths, names, ctx):
            known_match = best.get(match.item.id)
            if known_match is None or match.score > known_match.score:
                best[match.item.id] = match
        matches = sorted(best.values(), key=lambda match: (-match.score, match.item.id))
        return ranked_pool(self.name, SearchResult(tuple(matches[: self.depth])), ctx)

    def _paths_between(self, known: Sequence[Entity], ctx: Context) -> list[_ScoredPath]:
        """Find paths of one or two edges between every two of the entities."""
        ids = [entity.id for entity in known]
        edges = ctx.store.graph.edges(ids, MAX_EDGES_READ, ctx.query.moment)
        paths: list[_ScoredPath] = []
        for one, other in combinations(ids, 2):
            direct = [link for link in edges[one] if other in _link_ends(link)]
            found = [_ScoredPath((link,), self.one_hop) for link in direct]
            found = found or self._co_mentions((one, other), ctx)
            beyond = {_other_end(link, other): link for link in reversed(edges[other])}
            found += [
                _ScoredPath((link, beyond[middle]), self.two_hops)
                for link in edges[one]
                if (middle := _other_end(link, one)) in beyond and middle not in (one, other)
            ]
            paths += found
        return paths

    def _co_mentions(self, ids: Sequence[str], ctx: Context) -> list[_ScoredPath]:
        """Return memories that mention all of these, as edges between the first two."""
        found = ctx.store.search.entities(ids, self.depth, ctx.scope)
        one, other = (Node("entity", entity) for entity in ids[:2])
        return [
            _ScoredPath((Link(one, other, CO_MENTION, context=match.item.id),), self.one_hop)
            for match in found.matches
            if match.score == 1.0
        ]

    def _newest_edges(self, known: Sequence[Entity], ctx: Context) -> list[_ScoredPath]:
        """Return each entity's newest edges; without any, edges from co-mentioning memories."""
        ids = [entity.id for entity in known]
        edges = ctx.store.graph.edges(ids, self.each, ctx.query.moment)
        paths = [_ScoredPath((link,), self.one_hop) for entity in ids for link in edges[entity]]
        for entity, items in ctx.store.search.mentioning(ids, self.each, ctx.scope).items():
            for item in items if not edges[entity] else ():
                others = [other for other in item.entities if other != entity]
                if others:
                    ends = (Node("entity", entity), Node("entity", others[0]))
                    link = Link(*ends, CO_MENTION, context=item.id)
                    paths.append(_ScoredPath((link,), self.one_hop))
        return paths


def _path_matches(
    paths: Sequence[_ScoredPath], names: Mapping[str, str], ctx: Context
) -> Iterable[Match]:
    """Yield the hits of the paths: the memories behind them, or the paths as text."""
    links = [link for scored in paths for link in scored.path]
    memories = ctx.get(_origin_ids(links))
    # Memories of today that did not exist at the requested moment: an edge that was stored
    # again only keeps the latest memory it came from.
    today = _origin_ids(links) - memories.keys() if ctx.query.as_of is not None else ()
    later = set(ctx.store.items.get(sorted(today)))
    for path, score in paths:
        if any(later & {link.context, link.source} for link in path):
            continue
        origins = [memories.get(link.context or "") or memories.get(link.source) for link in path]
        if any(item is not None and rejection_reason(item, ctx.scope) for item in origins):
            continue
        description = describe_path(path, names)
        items = [item for item in origins if item is not None]
        if not items:
            path_only = path_item(path, names)
            items = [path_only] if rejection_reason(path_only, ctx.scope) is None else []
        for item in items:
            yield Match(item, score, description)


def _origin_ids(links: Iterable[Link]) -> set[str]:
    """Return the possible ids of the memories that the links came from."""
    return {name for link in links for name in (link.context, link.source) if name}


def _link_ends(link: Link) -> tuple[str, str]:
    return link.src.id, link.dst.id


def _other_end(link: Link, end: str) -> str:
    return link.dst.id if link.src.id == end else link.src.id


def describe_path(path: Path, names: Mapping[str, str]) -> str:
    """Format a path: ``alice —[works_with]→ bob``; a second edge continues the first."""

    def name(entity: str) -> str:
        return names.get(entity) or entity.partition(":")[2] or entity

    first = path[0]
    if len(path) == 1:
        return f"{name(first.src.id)} —[{first.type}]→ {name(first.dst.id)}"
    second = path[1]
    middle = next(iter(set(_link_ends(first)) & set(_link_ends(second))))
    start, target = _other_end(first, middle), _other_end(second, middle)
    steps = (
        _describe_step(first, start, name(middle)),
        _describe_step(second, middle, name(target)),
    )
    return " ".join((name(start), *steps))


def _describe_step(link: Link, start: str, target: str) -> str:
    """Format one edge from the given start, in either direction."""
    if link.src.id == start:
        return f"—[{link.type}]→ {target}"
    return f"←[{link.type}]— {target}"


def path_item(path: Path, names: Mapping[str, str]) -> Item:
    """Build a synthetic item for a path that has no memory, so that it can be shown."""
    newest = max(link.created_at for link in path if link.created_at is not None)
    ends = dict.fromkeys(end for link in path for end in _link_ends(link))
    text = describe_path(path, names)
    return Item(
        id=path_id(path), text=text, stored_at=newest, source=path[0].source, source_class="tool",
        writer="links", kind="relation", entities=tuple(ends), trust=1,
        confidence=min(link.confidence for link in path), tokens=estimate_tokens(text),
    )  # fmt: skip


def path_id(path: Path) -> str:
    """Build an id by which a path can be looked up again."""
    return EDGE_ID_PREFIX + ";".join(f"{link.src.id}|{link.type}|{link.dst.id}" for link in path)


MAX_PARAGRAPHS = 2_000  # paragraphs
_DAY = timedelta(days=1)
# How a note written by maintenance cites the memory of a line.
_ITEM_ID = re.compile(r"\(([A-Za-z0-9_.:-]{1,64})\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class NotesRetriever:
    """Paragraphs of Markdown notes that hold a content term of the question.

    The newest ``depth``, each scored ``score``, without duplicates. Restricted to
    ``since`` and ``until``, else to the times the question names, else unrestricted. A
    note is a file, not a memory: it has an id (``note:...#3``) to look it up by, and every
    filter applies to it. A paragraph that repeats a memory is left out once that memory is
    no longer recalled.
    """

    depth: int = 10
    weight: float = 1.0
    score: float = 0.5
    name: str = "notes"
    matches = "words"

    def __call__(self, ctx: Context) -> Pool:
        if ctx.notes is None:
            ctx.add_step_note("there is no notes folder")
            return ()
        if ctx.query.filters.bands:
            ctx.add_step_note("the filter on heat bands excludes notes")
            return ()
        words = [content_term.word for content_term in content_terms(ctx)]
        best: dict[str, Match] = {}
        for item in _iter_paragraphs(ctx) if words else ():
            content = fold(item.text)
            matched = _matching_words(words, item, ctx) if content not in best else ()
            if (
                matched
                and rejection_reason(item, ctx.scope) is None
                and not _cites_hidden_memory(item, ctx)
            ):
                best[content] = Match(item, self.score, f"contains {', '.join(matched)}")
                if len(best) >= self.depth:
                    break
        # All have the same score, and equal scores are ordered by id.
        matches = sorted(best.values(), key=lambda match: match.item.id)
        return ranked_pool(self.name, SearchResult(tuple(matches)), ctx)


def _cites_hidden_memory(item: Item, ctx: Context) -> bool:
    """Whether a paragraph repeats a memory that must not be recalled.

    It may have been superseded, forgotten or ended since the note was written, or be
    hidden from the caller.
    """
    cited = _ITEM_ID.findall(item.text)
    if not cited:
        return False
    requested, as_of = ctx.query.filters, ctx.scope.as_of
    filters = Filters(
        max_classification=requested.max_classification,
        min_trust=requested.min_trust,
        # A memory active at that moment may have been superseded since.
        include_superseded=requested.include_superseded or as_of is not None,
        include_expired=requested.include_expired,
    )
    scope = ctx.scope._replace(filters=filters)
    sources = ctx.store.items.get(cited).values()
    return any(
        rejection_reason(source._replace(live_from=None), scope) is not None for source in sources
    )


class _Window(NamedTuple):
    start: datetime | None
    end: datetime | None


def _iter_paragraphs(ctx: Context) -> Iterator[Item]:
    """Yield paragraphs of the requested time, newest file first."""
    read = 0
    for file, window in _note_files(ctx):
        for item in _read_paragraphs(file, ctx):
            read += 1
            if read > MAX_PARAGRAPHS:
                ctx.add_step_note(f"the newest {MAX_PARAGRAPHS:,} paragraphs were searched")
                return
            if not _is_outside_window(item, file, window):
                yield _clip_to_window(item, window)


def _note_files(ctx: Context) -> list[tuple[NoteFile, _Window]]:
    notes, query = ctx.notes, ctx.query
    if notes is None:
        return []
    found: dict[str, tuple[NoteFile, _Window]] = {}
    for window in _time_windows(ctx):
        for file in notes.files(*window):
            # A note written after `as_of` was not known then.
            late = query.as_of is not None and file.modified > query.as_of
            if not late and file.start <= query.moment:
                found.setdefault(file.name, (file, window))
    return sorted(found.values(), key=lambda entry: (entry[0].start, entry[0].name), reverse=True)


def _time_windows(ctx: Context) -> list[_Window]:
    filters = ctx.query.filters
    if filters.since is not None or filters.until is not None:
        return [_Window(filters.since, filters.until)]
    named = [_Window(period.start, period.end) for period in periods(ctx)]
    return named or [_Window(None, None)]


def _read_paragraphs(file: NoteFile, ctx: Context) -> Sequence[Item]:
    assert ctx.notes is not None
    try:
        return ctx.notes.read(file)
    except Refused as error:
        ctx.add_step_note(f"skipped: {error.message}")
        return ()


def _is_outside_window(item: Item, file: NoteFile, window: _Window) -> bool:
    """Whether a paragraph lies outside the window by its own dates; without any it does not."""
    if item.occurred_end is None or (item.when, item.occurred_end) == (file.start, file.end):
        return False
    starts_late = window.end is not None and item.occurred_end - _DAY >= window.end
    return starts_late or (window.start is not None and item.occurred_end <= window.start)


def _clip_to_window(item: Item, window: _Window) -> Item:
    """Move a note of a week that began before the window to the window's start."""
    if window.start is None or item.when >= window.start:
        return item
    return item._replace(occurred_at=window.start)


def _matching_words(words: Sequence[Word], item: Item, ctx: Context) -> tuple[str, ...]:
    """Return the words of the question that a paragraph holds."""
    plain = item.text.casefold() if item.text.isascii() else ""
    if plain and not any(_may_match(word, plain) for word in words):
        return ()
    present = set(ctx.store.search.terms(item.text))
    return tuple(word.shown for word in words if present.issuperset(word.terms))


def _may_match(word: Word, plain: str) -> bool:
    """Cheap pre-check: a word and its inflections share their first letters."""
    shown = word.shown.casefold()
    return not (shown.isascii() and shown.isalpha()) or shown[:3] in plain
