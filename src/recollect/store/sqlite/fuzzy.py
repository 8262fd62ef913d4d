"""Finding memories by words that are misspelt, or parts of words.

A word that the index hardly knows is read as the words it resembles (by the
vocabulary's trigrams) and looked for as a piece of text (by the memories' trigrams).
A memory scores the share of the query that it holds, each word weighed by its idf
and by how alike it is spelled.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

import apsw

from recollect.ports import Found, Match, WordStatistics
from recollect.store.analysis import fold
from recollect.store.ranking import idf
from recollect.store.spelling import (
    PART_WORTH,
    SHORTEST_PART,
    likeness,
    one_slip_away,
    piece_in,
    slips_allowed,
    trigrams,
)
from recollect.store.sqlite.lexical import (
    MOST_TERMS,
    Gathering,
    Hydrate,
    Row,
    gather,
    make_plan,
)
from recollect.store.sqlite.scope import Predicate
from recollect.store.sqlite.terms import (
    Reading,
    frequencies,
    read_query,
    statistics,
    tokenizer,
    words_and_terms,
)

POSTINGS_BUDGET = 20_000
HARDLY_KNOWN = 2  # memories; a word in so few may itself be a slip
MOST_READINGS = 8
MOST_ALIKE = 300  # terms that share trigrams, looked at for each word
LONGEST_SLIP_SEARCH = 8  # letters; longer words keep a trigram whatever the slip
LONGEST_WORD = 40
Near = tuple[str, float, int]  # a term, how alike it is, and how many memories hold it
MOST_READ = 2_000  # memories read for a word too short to tell by its trigrams


@dataclass(frozen=True, slots=True)
class Asked:
    """One word of the query: the terms it may stand for with their likeness, and its weight."""

    word: str
    term: str
    weight: float
    readings: Mapping[str, float]
    hardly_known: bool


@dataclass(frozen=True, slots=True)
class Held:
    """How a memory holds a word: how alike, and as what (a term, or a piece of text)."""

    likeness: float
    term: str = ""
    inside: str = ""


def search_substring(
    db: apsw.Connection, text: str, depth: int, predicate: Predicate, hydrate: Hydrate
) -> Found:
    """Memories that hold the query's words, words spelled almost so, or parts of them."""
    reading = read_query(db, text)
    then = predicate.then
    asked = _read_otherwise(db, reading, then) if reading.wanted else _as_piece(text)
    rows = {row.rid: row for row in _by_terms(db, asked, depth, predicate)}
    pieces: dict[int, dict[str, Held]] = {}
    for word in asked:
        for row, held in _holding_piece(db, word, max(200, 2 * depth), predicate):
            rows.setdefault(row.rid, row)
            pieces.setdefault(row.rid, {})[word.word] = held
    judged = _judge(db, asked, rows.values(), pieces)[: max(depth, 0)]
    items = hydrate(db, [row.rid for row, _, _ in judged])
    matches = tuple(
        Match(items[row.rid], score, _why(db, row, held))
        for row, score, held in judged
        if row.rid in items
    )
    otherwise = [word.word for word in asked if word.hardly_known]
    note = f"read otherwise: {', '.join(otherwise)}" if otherwise else "all words are known"
    return Found(matches, note, 1.0 if asked else 0.0)


def _as_piece(text: str) -> list[Asked]:
    """A query without a word, like ``=>`` or an emoji, is looked for as it stands."""
    piece = "".join(text.split()).replace("\0", "")[:LONGEST_WORD]
    return [Asked(piece, "", 1.0, {}, hardly_known=True)] if piece else []


def _read_otherwise(db: apsw.Connection, reading: Reading, then: int | None) -> list[Asked]:
    known = statistics(db, reading.spelling, then)
    asked: dict[str, Asked] = {}
    for unit in reading.wanted:
        for word, term in zip(unit.words, unit.terms, strict=True):
            if term not in asked and len(asked) < MOST_TERMS:
                alike = partial(_alike, db, term, then)
                asked[term] = _asked(word, term, unit.joined, known, alike)
    return list(asked.values())


def _asked(
    word: str, term: str, joined: str, known: WordStatistics, find_alike: Callable[[], list[Near]]
) -> Asked:
    """A word with its readings. Its weight is the idf of the word most likely meant."""
    readings = {term: 1.0} if known.frequencies[term] else {}
    if joined and known.frequencies[joined]:
        readings[joined] = 1.0
    hardly_known = known.frequencies[term] <= HARDLY_KNOWN and len(word) >= 3
    frequency = known.frequencies[term]
    if hardly_known and len(term) <= LONGEST_WORD:
        alike = find_alike()
        readings = {**{other: near for other, near, _ in alike}, **readings}
        if not frequency and alike:
            frequency = alike[0][2]
    return Asked(word, term, idf(known.documents, frequency), readings, hardly_known)


def _alike(db: apsw.Connection, term: str, then: int | None) -> list[Near]:
    """The terms a word may stand for."""
    parts = {
        term[start:end]
        for start in range(len(term))
        for end in range(start + SHORTEST_PART, len(term) + 1)
    }
    slips = one_slip_away(term) if slips_allowed(term) and len(term) <= LONGEST_SLIP_SEARCH else ()
    found = {t: df for t, df in frequencies(db, {*parts, *slips}).items() if df}
    found.update(_sharing_trigrams(db, term))
    if then is not None:
        known = statistics(db, found, then).frequencies
        found = {t: df for t, df in known.items() if df}
    judged = ((other, likeness(term, other), df) for other, df in found.items())
    # A term that holds the word as a part is left to the memories' own trigrams.
    alike = [
        (other, near, df)
        for other, near, df in judged
        if other != term and (near > PART_WORTH or (near > 0.0 and other in parts))
    ]
    alike.sort(key=lambda found: (-found[1], -found[2], found[0]))
    return alike[:MOST_READINGS]


def _sharing_trigrams(db: apsw.Connection, term: str) -> dict[str, int]:
    shared = trigrams(term)
    if not shared or not slips_allowed(term):
        return {}
    lookups = " UNION ALL ".join(
        ["SELECT rowid AS tid FROM vocabulary WHERE vocabulary MATCH ?"] * len(shared)
    )
    return dict(
        db.execute(
            f"""
            SELECT t, df FROM (
                SELECT tid, count(*) AS shared FROM ({lookups})
                GROUP BY tid ORDER BY shared DESC, tid LIMIT {MOST_ALIKE}
            ) JOIN term USING (tid)""",
            [_quoted(trigram) for trigram in shared],
        )
    )


def _by_terms(
    db: apsw.Connection, asked: Sequence[Asked], depth: int, predicate: Predicate
) -> list[Row]:
    """Candidates by the index words, the likeliest readings among them."""
    tokens = tokenizer(db)
    spelling: dict[str, str] = {}
    for word in asked:
        for term in word.readings:
            # An e brings the stemmer back to stems that it would cut once more.
            spelled = next((s for s in (term, f"{term}e") if tokens(s) == [term]), None)
            if spelled is not None:
                spelling[term] = spelled
    known = statistics(db, spelling, predicate.then)
    plan = make_plan(known.frequencies, documents=known.documents, budget=POSTINGS_BUDGET)
    return gather(db, Gathering(plan, spelling, 1.0, depth, predicate))


def _holding_piece(
    db: apsw.Connection, asked: Asked, wanted: int, predicate: Predicate
) -> Iterator[tuple[Row, Held]]:
    """Memories whose text or original holds the word as a piece, newest first."""
    piece = unicodedata.normalize("NFC", asked.word)[:LONGEST_WORD]
    shared = trigrams(piece)
    if not asked.hardly_known or not shared:
        return
    cursor = db.execute(
        f"""
        SELECT i.original, i.rid, i.id, i.text, i.about, i.length
        FROM grams AS g CROSS JOIN item AS i ON i.rid = g.rowid
        WHERE grams MATCH ? AND ({predicate.sql}) ORDER BY g.rowid DESC""",
        (" AND ".join(map(_quoted, shared)), *predicate.values),
    )
    # Three letters are a single trigram: most of what it finds is inside other words.
    looked_at = islice(cursor, MOST_READ) if len(piece) < SHORTEST_PART else cursor
    for original, *columns in looked_at:
        row = Row(*columns)
        held = piece_in(fold(asked.word), fold(f"{row.text}\n{original or ''}"))
        if held is None:
            continue
        worth, inside = held
        yield row, Held(worth, inside=inside)
        wanted -= 1
        if not wanted:
            return


def _judge(
    db: apsw.Connection,
    asked: Sequence[Asked],
    rows: Iterable[Row],
    pieces: Mapping[int, Mapping[str, Held]],
) -> list[tuple[Row, float, list[tuple[Asked, Held]]]]:
    """Each memory with the share of the query it holds, and how; best first."""
    tokens = tokenizer(db)
    total = sum(word.weight for word in asked)
    judged = []
    for row in rows:
        present = {*tokens(row.text), *tokens(row.about)}
        held = [
            (word, found)
            for word in asked
            if (found := _best(word, present, pieces.get(row.rid, {}).get(word.word)))
        ]
        score = sum(word.weight * found.likeness for word, found in held) / total if held else 0.0
        if score > 0.0:
            judged.append((row, score, held))
    judged.sort(key=lambda found: (-found[1], found[0].id))
    return judged


def _best(asked: Asked, present: set[str], piece: Held | None) -> Held | None:
    found = [Held(near, term) for term, near in asked.readings.items() if term in present]
    if piece is not None:
        found.append(piece)
    return max(found, key=lambda held: held.likeness, default=None)


def _why(db: apsw.Connection, row: Row, held: Sequence[tuple[Asked, Held]]) -> str:
    as_written = [word.word for word, found in held if found.likeness == 1.0]
    reasons = [f"matches {', '.join(as_written)}"] if as_written else []
    for word, found in held:
        if found.likeness == 1.0:
            continue
        other = found.inside or _as_written(db, row, found.term)
        if found.likeness > PART_WORTH:
            reasons.append(f"misspelt: '{word.word}' read as '{other}'")
        elif found.inside:
            reasons.append(f"'{word.word}' is part of '{other}'")
        else:
            reasons.append(f"'{other}' is part of '{word.word}'")
    return "; ".join(reasons)


def _as_written(db: apsw.Connection, row: Row, term: str) -> str:
    """The word of a memory that the index knows as this term."""
    for text in (row.text, row.about):
        for word, found in words_and_terms(db, text):
            if found == term:
                return word
    return term


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
