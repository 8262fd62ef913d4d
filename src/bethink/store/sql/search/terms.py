"""Index terms: texts as the tokenizer of the word index splits them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import apsw

from bethink.store.sql.connection import Database

Tokens = Callable[[str], list[str]]
_TOKENIZER_ARGS = ("porter", ["unicode61", "remove_diacritics", "2"])  # as in the schema
# Of vectors: here, where importing them loads no NumPy.
SELECT_MODELS = "SELECT mid, name, dim, slots, passages FROM model"
FIND_MODEL = f"{SELECT_MODELS} WHERE name = ?"
SLOTS_OF_ROWS = (
    "SELECT v.mid, v.slot, v.key <> v.rid"
    " FROM carray(?) AS w CROSS JOIN vector AS v ON v.rid = w.value"
)
MAX_TERM_LENGTH = 128  # longer ones are blobs: indexed, but not searched
BLOCK_ROWS = 1_024  # row ids whose postings become blocks together


def tokenizer(db: Database, arguments: tuple[str, list[str]] = _TOKENIZER_ARGS) -> Tokens:
    """Return FTS5's own tokenizer, so that counts agree with the index."""
    split: Callable[..., Any] = db.fts5_tokenizer(*arguments)

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


def words_and_terms(db: Database, text: str) -> Iterator[tuple[str, str]]:
    """Yield each word as written, with its index term."""
    split: Callable[..., Any] = db.fts5_tokenizer(*_TOKENIZER_ARGS)
    encoded = text.encode("utf-8", "replace")
    for start, end, term in split(encoded, apsw.FTS5_TOKENIZE_DOCUMENT, None):
        yield encoded[start:end].decode("utf-8", "replace"), term


def quote_fts5(text: str) -> str:
    """Return a text as a phrase in a query of FTS5."""
    return '"' + text.replace('"', '""') + '"'
