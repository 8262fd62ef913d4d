"""Finding memories by pieces of words: as typed, with z and y swapped, in windows.

Each word of the question is looked for as it is typed, inside other words too, accents
aside. Where that finds nothing, with z and y swapped, which change places between
keyboards. Where that finds nothing either, a long word is cut into overlapping windows
of half its length: words that share a stem, a compound's part or most of a misspelling
share one. The memories' trigrams find the candidates, their texts decide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import apsw

from recollect.ports import Found, Match, PieceSearch
from recollect.store.analysis import fold, query_words
from recollect.store.ranking import idf
from recollect.store.spelling import PART_WORTH, piece_in, trigrams
from recollect.store.sqlite.lexical import Hydrate
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import LONGEST_QUERY, statistics, tokenizer

MOST_WORDS = 8
SHORTEST_WORD = 3
LONGEST_WORD = 40
CUT_FROM = 7  # letters; shorter words have no window that says anything
MOST_READ = 500  # memories read for one word, the newest
MOST_TERMS = 32  # index words that hold a piece
SWAP_WORTH = 0.9
MORE_THAN_AN_ENDING = 0.5
_SWAPPED = str.maketrans("zyZY", "yzYZ")


class _Word(NamedTuple):
    piece: str
    weight: float


class _Row(NamedTuple):
    rid: int
    id: str
    text: str


class _Held(NamedTuple):
    worth: float
    why: str


def search_pieces(
    db: apsw.Connection, search: PieceSearch, predicate: Predicate, hydrate: Hydrate
) -> Found:
    """Memories that hold pieces of the question; the score is the share found, 0 to 1."""
    asked = _words(db, search.text, predicate.then)
    total = sum(word.weight for word in asked)
    scores: dict[int, float] = {}
    reasons: dict[int, list[str]] = {}
    ids: dict[int, str] = {}
    for word in asked:
        for row, held in _holding(db, word.piece, search, predicate):
            ids[row.rid] = row.id
            scores[row.rid] = scores.get(row.rid, 0.0) + word.weight * held.worth / total
            reasons.setdefault(row.rid, []).append(held.why)
    good = (rid for rid, score in scores.items() if score >= search.min_share)
    best = sorted(good, key=lambda rid: (-scores[rid], ids[rid]))[: max(search.depth, 0)]
    items = hydrate(db, best)
    matches = tuple(
        Match(items[rid], scores[rid], "; ".join(reasons[rid])) for rid in best if rid in items
    )
    where = "originals" if search.original else "texts"
    return Found(matches, f"{len(asked)} words looked for in the {where}", 1.0 if asked else 0.0)


def _words(db: apsw.Connection, text: str, then: int | None) -> list[_Word]:
    """What is looked for, the first few, each as telling as its rarest part is rare."""
    tokens = tokenizer(db)
    clean = text[:LONGEST_QUERY].replace("\0", " ").encode("utf-8", "ignore").decode()
    units = [unit for unit in query_words(clean) if not unit.common]
    terms = {term for unit in units for word in unit.words for term in tokens(word)}
    known = statistics(db, terms, then)
    found: dict[str, _Word] = {}
    for unit in units:
        piece = fold(unit.shown)[:LONGEST_WORD]
        if len(piece) >= SHORTEST_WORD and len(found) < MOST_WORDS:
            counts = [known.frequencies[term] for word in unit.words for term in tokens(word)]
            found.setdefault(piece, _Word(piece, idf(known.documents, min(counts, default=0))))
    return list(found.values())


def _holding(
    db: apsw.Connection, piece: str, search: PieceSearch, predicate: Predicate
) -> list[tuple[_Row, _Held]]:
    """The memories that hold a word, by the first way that finds any."""
    whole = [
        (row, _Held(worth, _told(piece, inside)))
        for row, worth, inside in _in_texts(db, piece, search, predicate)
    ]
    swapped = piece.translate(_SWAPPED)
    if whole or swapped == piece:
        return whole or _by_windows(db, piece, search, predicate)
    other = [
        (row, _Held(SWAP_WORTH * worth, f"'{piece}' read as '{inside}', z and y swapped"))
        for row, worth, inside in _in_texts(db, swapped, search, predicate)
    ]
    return other or _by_windows(db, piece, search, predicate)


def _told(piece: str, inside: str) -> str:
    return f"holds {piece}" if inside == piece else f"'{piece}' is part of '{inside}'"


def _in_texts(
    db: apsw.Connection, piece: str, search: PieceSearch, predicate: Predicate
) -> Iterator[tuple[_Row, float, str]]:
    for row in _rows(db, [piece], search, predicate):
        held = piece_in(piece, fold(row.text))
        if held is not None:
            yield (row, *held)


def _by_windows(
    db: apsw.Connection, piece: str, search: PieceSearch, predicate: Predicate
) -> list[tuple[_Row, _Held]]:
    cut = windows(piece)
    found = []
    for row in _rows(db, cut, search, predicate) if cut else ():
        # Of words that hold as much the shortest: it has the least besides.
        covered, _, word = max(
            ((_covered(piece, cut, word), -len(word), word) for word in _split(row.text)),
            default=(0.0, 0, ""),
        )
        if covered:
            found.append((row, _Held(PART_WORTH * covered, f"'{piece}' is much like '{word}'")))
    return found


def windows(word: str) -> list[str]:
    """Overlapping stretches of half the word's length, at least four letters, in steps of
    half a stretch; none of a short word."""
    if len(word) < CUT_FROM:
        return []
    length = max(len(word) // 2, 4)
    last = len(word) - length
    starts = [*range(0, last, max(length // 2, 1)), last]
    return [word[at : at + length] for at in starts]


def _split(text: str) -> set[str]:
    words = "".join(char if char.isalnum() else " " for char in fold(text)).split()
    return set(words)


def _covered(asked: str, cut: Sequence[str], word: str) -> float:
    """The share of the asked word that a word of a memory has: by how far both begin alike
    or, where they do not, by the windows it holds. An ending alone says little, so it takes
    more than half without a common beginning."""
    letters: set[int] = set()
    for window in cut:
        if window in word:
            at = asked.find(window)
            letters.update(range(at, at + len(window)))
    if not letters:
        return 0.0
    alike = next(
        (at for at, (one, other) in enumerate(zip(asked, word, strict=False)) if one != other),
        min(len(asked), len(word)),
    )
    if alike >= len(cut[0]):
        return max(len(letters), alike) / max(len(asked), len(word))
    share = len(letters) / len(asked)
    return share if share > MORE_THAN_AN_ENDING else 0.0


def _rows(
    db: apsw.Connection, pieces: Sequence[str], search: PieceSearch, predicate: Predicate
) -> Iterator[_Row]:
    """Memories in scope that may hold one of the pieces, newest first."""
    wanted = " OR ".join(f"({' AND '.join(map(_quoted, trigrams(piece)))})" for piece in pieces)
    columns = "i.original" if search.original else "i.text || char(10) || i.about"
    there = "AND i.original IS NOT NULL" if search.original else ""
    sources = ["SELECT rowid FROM grams WHERE grams MATCH ?"]
    values = [wanted]
    beside = "" if search.original else _kept_beside(db, pieces)
    if beside:
        sources.append("SELECT rowid FROM words WHERE words MATCH ?")
        values.append(beside)
    cursor = db.execute(
        f"""
        SELECT i.rid, i.id, {columns} FROM ({" UNION ".join(sources)}) AS g
        CROSS JOIN item AS i ON i.rid = g.rowid
        WHERE ({predicate.sql}) {there} ORDER BY i.rid DESC LIMIT {MOST_READ}""",
        (*values, *predicate.values),
    )
    return map(_Row._make, cursor)


def _kept_beside(db: apsw.Connection, pieces: Iterable[str]) -> str:
    """An FTS5 query for the words kept beside a text (tags, topic, names) that hold one of
    the pieces. The trigram index has only texts, but the vocabulary has its own."""
    tokens = tokenizer(db)
    terms: dict[str, None] = {}
    for piece in pieces:
        matching = db.execute(
            "SELECT t FROM term WHERE tid IN"
            f" (SELECT rowid FROM vocabulary WHERE vocabulary MATCH ? LIMIT {MOST_TERMS})",
            (" AND ".join(map(_quoted, trigrams(piece))),),
        )
        terms.update((term, None) for (term,) in matching if piece in term)
    # An e brings the stemmer back to stems that it would cut once more.
    spelled = (next((s for s in (t, f"{t}e") if tokens(s) == [t]), None) for t in terms)
    known = [_quoted(word) for word in islice(filter(None, spelled), MOST_TERMS)]
    return f"about : ({' OR '.join(known)})" if known else ""


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
