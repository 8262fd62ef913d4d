"""The index words of a text, and how common they are in this space."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import apsw

from recollect.ports import Word, WordStatistics
from recollect.store.analysis import about_words, query_words
from recollect.store.ranking import Wanted

Tokens = Callable[[str], list[str]]

_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])  # as in the schema
LONGEST_TERM = 128  # longer ones are blobs: indexed, but nobody asks for them by name
LONGEST_QUERY = 16_384  # characters; a longer query is read no further


class Reading(NamedTuple):
    """A query as the index sees it.

    ``spelling`` gives for every index word a word that FTS5 makes it of: an index
    word itself would be stemmed once more.
    """

    wanted: tuple[Wanted, ...]
    spelling: dict[str, str]
    words: int


def as_table(values: Any) -> Any:
    """Strings (a tuple) or integers (an array), at least one, to be bound as the rows of
    ``carray(?)``: one statement serves for any number of them. A string with NUL, which
    cannot be bound, is no id and no word of ours: it stands as one that matches nothing."""
    if isinstance(values, tuple) and any("\0" in value for value in values):
        values = tuple("" if "\0" in value else value for value in values)
    return apsw.carray(values)


def tokenizer(db: apsw.Connection) -> Tokens:
    """Splits a text into index words, by FTS5's own code: counts agree with the index."""
    split: Callable[..., Any] = db.fts5_tokenizer(*_TOKENIZER)

    def tokens(text: str) -> list[str]:
        found: list[str] = split(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return found

    return tokens


def words_and_terms(db: apsw.Connection, text: str) -> Iterator[tuple[str, str]]:
    """Each word as it is written, with its index word."""
    split: Callable[..., Any] = db.fts5_tokenizer(*_TOKENIZER)
    encoded = text.encode("utf-8", "replace")
    for start, end, term in split(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        yield encoded[start:end].decode("utf-8", "replace"), term


def read_query(db: apsw.Connection, text: str) -> Reading:
    """What a query asks for; common words are left out unless there are no others."""
    tokens = tokenizer(db)
    wanted: list[Wanted] = []
    spelling: dict[str, str] = {}
    units = query_words(_searchable(text))
    for unit in units:
        if unit.common:
            continue
        pairs = [(word, term) for word in unit.words for term in tokens(word)]
        joined = tokens(unit.joined)[:1] if unit.joined else []
        if not pairs:
            continue
        for word, term in (*pairs, *((unit.joined, term) for term in joined)):
            spelling.setdefault(term, word)
        words, terms_ = zip(*pairs, strict=True)
        wanted.append(Wanted(unit.shown, words, terms_, "".join(joined)))
    return Reading(tuple(wanted), spelling, sum(len(unit.words) for unit in units))


def terms(db: apsw.Connection, text: str) -> tuple[str, ...]:
    """The words of a text as the index knows them when it is stored, each once."""
    tokens = tokenizer(db)
    text = _printable(text)
    return tuple(dict.fromkeys((*tokens(text), *tokens(about_words(text)))))


def words(db: apsw.Connection, text: str) -> tuple[Word, ...]:
    """The words and names of a question, in its order, each once."""
    tokens = tokenizer(db)
    found = (
        Word(unit.shown, tuple(term for word in unit.words for term in tokens(word)), unit.common)
        for unit in query_words(_searchable(text))
    )
    return tuple(word for word in found if word.terms)


def statistics(
    db: apsw.Connection, terms: Iterable[str], then: int | None = None
) -> WordStatistics:
    """How many memories this space has and how many of them hold each index word; with a
    moment how many it had."""
    if then is not None:
        from recollect.store.sqlite.past_words import statistics_then  # start-up time: seldom

        return statistics_then(db, tokenizer(db), frequencies(db, terms), then)
    counters = dict(
        db.execute("SELECT name, value FROM meta WHERE name IN ('documents', 'total_length')")
    )
    documents = int(counters.get("documents", "0"))
    total = int(counters.get("total_length", "0"))
    return WordStatistics(
        documents=documents,
        average_length=total / documents if documents else 0.0,
        frequencies=frequencies(db, terms),
    )


def frequencies(db: apsw.Connection, terms: Iterable[str]) -> dict[str, int]:
    """For each index word the number of memories that hold it, 0 for unknown ones."""
    found = dict.fromkeys(terms, 0)
    if found:
        found.update(
            db.execute(
                "SELECT t, df FROM carray(?) AS asked CROSS JOIN term ON t = asked.value",
                (as_table(tuple(found)),),
            )
        )
    return found


def _printable(text: str) -> str:
    """Without what SQLite cannot keep; callers refuse such text before."""
    return text.replace("\0", " ").encode("utf-8", "ignore").decode("utf-8")


def _searchable(text: str) -> str:
    return _printable(text[:LONGEST_QUERY])
