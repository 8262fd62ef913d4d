"""Words, trigrams and word queries: what SQLite's word indexes do, done in the client.

The words are those of SQLite's tokenizer, so that both stores know the same words, count
them alike and find the same memories.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apsw

from bethink.core.named_tuple import NamedTuple
from bethink.errors import StoreError
from bethink.store.sql.search.terms import tokenizer

_PART = re.compile(r'"((?:[^"]|"")*)"|[()]|\b(AND|OR)\b|(\S)')
_SEPARATOR = "\N{INFORMATION SEPARATOR ONE}"  # between text and original; no word has it
_TRIGRAMS = ("trigram", ["remove_diacritics", "1"])  # as in the schema of SQLite
_VOCABULARY_TRIGRAMS: tuple[str, list[str]] = ("trigram", [])


class _Analysers(threading.local):
    """A connection without a file in each thread, for its tokenizers."""

    def __init__(self) -> None:
        self.db = apsw.Connection(":memory:")


_analysers = _Analysers()


def fts5_tokenizer(name: str, arguments: Sequence[str]) -> Callable[..., Any]:
    """Return one of SQLite's tokenizers."""
    return _analysers.db.fts5_tokenizer(name, list(arguments))


class WordQuery(NamedTuple):
    """A query of an index of trigrams: any of the groups, of each all strings."""

    groups: tuple[tuple[str, ...], ...]
    table: str = "grams"


def parse_query(text: str, table: str) -> WordQuery:
    """Parse a query that our own modules made for FTS5: quoted strings, AND, OR."""
    groups: list[list[str]] = [[]]
    for quoted, operator, other in _PART.findall(text):
        if other:
            raise StoreError(f"the word query {text!r} is not known here")
        if operator == "OR":
            groups.append([])
        elif quoted:
            groups[-1].append(quoted.replace('""', '"'))
    return WordQuery(tuple(tuple(group) for group in groups if group), table)


def trigram_patterns(words: Iterable[str]) -> list[str]:
    """Return the patterns of LIKE that a folded text with all trigrams of the words matches."""
    found = dict.fromkeys(piece for word in words for piece in _pieces(word, _TRIGRAMS))
    return [f"%{_escape(piece)}%" for piece in found]


def vocabulary_trigrams(words: Iterable[str]) -> list[str]:
    """Return the trigrams of words of the vocabulary, each once."""
    return list(dict.fromkeys(piece for w in words for piece in _pieces(w, _VOCABULARY_TRIGRAMS)))


def folded_text(text: str, original: str | None) -> str:
    """Return a memory's texts in the form of their trigrams."""
    return _SEPARATOR.join(filter(None, (_folded(text), _folded(original or ""))))


def _folded(text: str) -> str:
    pieces = _pieces(text, _TRIGRAMS)
    return pieces[0] + "".join(piece[-1] for piece in pieces[1:]) if pieces else ""


def _pieces(text: str, arguments: tuple[str, list[str]]) -> list[str]:
    return tokenizer(_analysers.db, arguments)(text)


def _escape(piece: str) -> str:
    return piece.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
