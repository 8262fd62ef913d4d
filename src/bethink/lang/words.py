"""Words of each language from ``lang/data``: calendar, stop words, negations, questions.

A file is parsed when its language is first needed, and once. Sets of words are written as one
text, separated by spaces, which is the quickest form for the parser. Languages that are seldom
needed have their words for times and questions in a file of their own (``it.times.toml``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from bethink.core.json_values import Json
from bethink.core.named_tuple import NamedTuple
from bethink.core.toml import parse_toml
from bethink.core.words import fold

_DATA = Path(__file__).parent / "data"


@cache
def load_words(name: str) -> Json:
    """The parsed file of a language, or another word list of ``lang/data``."""
    return parse_toml((_DATA / f"{name}.toml").read_text("utf-8"))


@cache
def load_section(language: str, section: str) -> Json:
    """A section of a language's file, or of its file of times and questions; else empty."""
    words = load_words(language)
    further = f"{language}.times"
    if section not in words and (_DATA / f"{further}.toml").exists():
        words = load_words(further)
    found: Json = words.get(section, {})
    return found


def word_set_of(language: str, section: str, name: str) -> frozenset[str]:
    """A set of words of a language; empty where its file has none of that name."""
    return frozenset(load_section(language, section).get(name, "").split())


@cache
def stop_words(*languages: str) -> frozenset[str]:
    """The words of these languages that say little in a search."""
    return frozenset().union(*(word_set_of(code, "stop_words", "search") for code in languages))


def parse_mapping(lines: str, separator: str | None = None) -> dict[str, str]:
    """Parse lines like ``starts start begins = time``: each word with its meaning."""
    found: dict[str, str] = {}
    for line in lines.strip().splitlines():
        words, _, meaning = line.partition(" = ")
        found |= dict.fromkeys(map(str.strip, words.split(separator)), meaning)
    return found


def parse_rules(lines: str) -> dict[str, str]:
    """Parse lines like ``christmas | xmas = 12-24 3``: each name with its rule, as one word."""
    return {name: rule.replace(" ", "/") for name, rule in parse_mapping(lines, "|").items()}


@lru_cache(maxsize=4_096)
def is_ordinary(word: str) -> bool:
    """Whether a word is written in lower case where it is no name: "Wow", but not "Redis"."""
    lower, table = word.lower().replace("’", "'"), _ordinary_words()
    if lower in table or len(lower) < 2 or not table.isdisjoint(stems(lower)):
        return True
    return "-" in lower and all(map(is_ordinary, lower.split("-")))


def stems(word: str) -> Iterator[str]:
    """What a word may be a form of: "moved" of "move", "planning" of "plan"."""
    for ending in ("'s", "s", "es", "d", "ed", "ing", "ly"):
        stem = word.removesuffix(ending)
        if 2 < len(stem) < len(word):
            yield from (stem, f"{stem}e", stem[:-1] if stem[-1] == stem[-2] else stem)


@cache
def _ordinary_words() -> frozenset[str]:
    """The table that ``training/words.py`` counts; without forms of its words."""
    return frozenset((_DATA / "ordinary.txt").read_text("utf-8").split())


class Negations(NamedTuple):
    """What denies a statement, in all languages: words, and signs within unspaced text."""

    words: frozenset[str]
    inside: tuple[str, ...]

    def deny(self, word: str) -> bool:
        """Check whether a word, or a pair of signs of an unspaced script, is a denial."""
        if word in self.words or word.endswith(("n't", "n’t")):
            return True
        return not word.isascii() and any(sign in word for sign in self.inside)


@cache
def negations() -> Negations:
    """The negations of every language with a file.

    A text does not say in which language it is; a word that denies nothing in its language
    only makes two texts differ that are nearly the same.
    """
    tables = [load_words(file.stem).get("negations", {}) for file in sorted(_DATA.glob("??.toml"))]
    words = " ".join(
        f"{table.get('words', '')} {table.get('contractions', '')}" for table in tables
    )
    inside = " ".join(table.get("inside", "") for table in tables)
    return Negations(frozenset(words.split()), tuple(dict.fromkeys(inside.split())))


_WORD = re.compile(r"\w+")


def asks_for_past(question: str) -> bool:
    """Whether a question asks how something was before: "previously", "originally"."""
    tables = load_words("past").values()
    folded = fold(question)
    signs = _joined(tables, "inside") if not folded.isascii() else ()
    return bool(_joined(tables, "words").intersection(_WORD.findall(folded))) or any(
        sign in folded for sign in signs
    )


def _joined(tables: Iterable[dict[str, str]], name: str) -> frozenset[str]:
    return frozenset(word for table in tables for word in table.get(name, "").split())


_CALENDAR: dict[str, str] = load_words("en")["calendar"]
MONTHS = tuple(_CALENDAR["months"].split())
WEEKDAYS = tuple(_CALENDAR["weekdays"].split())
