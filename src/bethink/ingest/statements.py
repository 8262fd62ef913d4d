"""Check the statements that a language model makes of turns: what is kept is said there.

A model invents, mixes up, translates and repeats its instructions. Whatever it is told, a
statement is kept only if the turns it names bear it out, word by word as far as can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from bethink.core.lazy import lazy_pattern
from bethink.core.named_tuple import NamedTuple
from bethink.core.sentences import sentences
from bethink.core.words import fold, word_set
from bethink.ingest.admission import TRUSTED_SOURCES
from bethink.ingest.content_checks import content_flags, detect_paste
from bethink.lang.words import load_words, negations, stop_words, word_set_of
from bethink.model import Item

Terms = Callable[[str], Sequence[str]]

MIN_CONFIDENCE = 0.6
_LEAST_SUPPORT = 0.75  # of the words that tell something
# What an agent says of its own work is short and of the moment.
_LEAST_WORDS = {True: 2, False: 4}
_WORD = lazy_pattern(r"\w+(?:[.:/'’-]\w+)*")
_QUESTION_MARKS = ("?", "？")
_CLAUSE_END = lazy_pattern(r"(?<=[,;:.!?])\s+|(?<=[。，、；！？])")
_POSSESSIVE = ("'s", "’s")
_LANGUAGES = ("en", "de", "fr", "es")


class Statement(NamedTuple):
    """A sentence that a model made of turns, and how sure it is."""

    text: str
    kind: str
    sources: tuple[Item, ...]
    confidence: float


class StatementCheck:
    """Says why a statement is not kept. ``terms`` are a store's search terms of a text."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def __call__(self, said: Statement) -> str | None:
        """Return why the statement is refused; None where its turns bear it out."""
        return next(self._faults(said), None)

    def _faults(self, said: Statement) -> Iterator[str]:
        text, heard = said.text, [item.text for item in said.sources]
        if said.confidence < MIN_CONFIDENCE:
            yield "the model is not sure of it"
        if content_flags(text) or detect_paste(text):
            yield "it gives instructions or is pasted output"
        if text.rstrip().endswith(_QUESTION_MARKS):
            yield "it is a question"
        least = _LEAST_WORDS[any(item.source_class in TRUSTED_SOURCES for item in said.sources)]
        if not _names_its_subject(text) or len(telling_terms(text, self._terms)) < least:
            yield "it says too little to be understood alone"
        if _details(text) - {_bare(word) for part in heard for word in _WORD.findall(part)}:
            yield "it has a name or number that its turns do not have"
        if support(text, heard, self._terms) < _LEAST_SUPPORT:
            yield "its turns do not say it in these words"
        yield from self._compare_clauses(text, heard)

    def _compare_clauses(self, text: str, heard: Sequence[str]) -> Iterator[str]:
        """Compare each clause with the one it was made of: denials, doubts and questions."""
        known = [
            (clause, sentence, telling_terms(clause, self._terms))
            for turn in heard
            for sentence in sentences(turn)
            for clause in clauses_of(sentence)
        ]
        for clause in clauses_of(text):
            words = telling_terms(clause, self._terms)
            if words and known:
                near, told, _ = max(known, key=lambda one: (len(one[2] & words), -len(one[2])))
                if denies(clause) != denies(near):
                    yield "it denies what its turns say, or says what they deny"
                if told.rstrip().endswith(_QUESTION_MARKS) or doubts(told):
                    yield "its turns ask or doubt it"


def telling_terms(text: str, terms: Terms) -> frozenset[str]:
    """Return the search terms that tell something: no stop words, not who speaks."""
    dull = stop_words(*_LANGUAGES) | word_set_of("en", "speakers", "words")
    words = (word for word in _WORD.findall(text) if _bare(word) not in dull)
    return frozenset(terms(" ".join(words)))


def support(text: str, sources: Iterable[str], terms: Terms) -> float:
    """Return how many of a text's telling terms its sources have, from 0 to 1."""
    words = telling_terms(text, terms)
    return len(words & telling_terms("\n".join(sources), terms)) / (len(words) or 1)


def is_worth_reading(turn: Item) -> bool:
    """Whether statements may be made of a turn: trusted, not flagged, not pasted."""
    return turn.trust > 0 and not turn.flags and detect_paste(turn.text) is None


def _names_its_subject(text: str) -> bool:
    """Whether a sentence does not begin with a pronoun, which nobody can resolve later."""
    first = _WORD.search(fold(text))
    return first is not None and first[0] not in word_set_of("en", "speakers", "pronouns")


def _details(text: str) -> frozenset[str]:
    """Return what must not be invented: numbers, names, paths."""
    return frozenset(
        _bare(word)
        for place, word in enumerate(_WORD.findall(text))
        if re.search(r"[\d./:]", word) or (place and word[0].isupper())
    )


def _bare(word: str) -> str:
    folded = fold(word)
    return folded[:-2] if folded.endswith(_POSSESSIVE) else folded


def clauses_of(text: str) -> list[str]:
    """Split a text at its punctuation."""
    return [clause for clause in _CLAUSE_END.split(text) if clause.strip()]


def denies(clause: str) -> bool:
    """Whether a clause has a word of denial."""
    return any(map(negations().deny, (*_WORD.findall(fold(clause)), *word_set(clause))))


def doubts(sentence: str) -> bool:
    """Whether a sentence only guesses or considers what it says."""
    folded = fold(sentence)
    signs = tuple(sign for sign in _doubt_words() if not sign.isascii())
    return not _doubt_words().isdisjoint(_WORD.findall(folded)) or any(
        sign in folded for sign in signs
    )


@cache
def _doubt_words() -> frozenset[str]:
    tables = load_words("doubts").values()
    return frozenset(word for words in tables for word in str(words).split())
