"""Finds by rules the fact a text states: about what, which property of it, and its value.

Precision over recall: a sentence that is not clearly one statement about one known thing
states no fact, and is remembered all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from recollect.ingest import fact_words as words_of
from recollect.ingest.fact_changes import CHANGES, PASSIVES
from recollect.ingest.fact_clause import Clause, Word, read_clause
from recollect.ingest.fact_parts import Fact, How, Said
from recollect.ingest.fact_states import STATES

__all__ = ["Fact", "fact_of"]

_VERB_WITHIN = 9
_READERS = {**STATES, **CHANGES, **PASSIVES}
_VERBS = frozenset({*_READERS, "do", "does", "don't", "doesn't", "isn't", "stopped"})
_FIRST = frozenset({"is", "are", "am", *PASSIVES, "do", "does", "stopped", "="})


def fact_of(text: str, me: str | None = None) -> Fact | None:
    """The fact a text states, if it clearly states one; ``me`` is whom "I" stands for."""
    clause = read_clause(text, _VERBS)
    if clause is None:
        return None
    for at in _verbs_at(clause.words):
        fact = _read_at(at, clause, me)
        if fact is not None:
            return fact
    return None


def _read_at(at: int, clause: Clause, me: str | None) -> Fact | None:
    """The fact, if the word at a place is the clause's verb."""
    subject, how = _stance(clause.words[:at], corrects=clause.corrects)
    verb, after = clause.words[at].low, clause.words[at + 1 :]
    if verb in ("do", "does") and len(after) > 1 and after[0].low == "not":
        verb, after, how = after[1].low, after[2:], "is not"
    elif verb == "stopped" and after:
        verb, after, how = after[0].low, after[1:], "ended"
    read = _READERS.get(verb)
    if read is None or not subject or not after:
        return None
    return read(Said(subject, verb, after, how, clause.whole, me))


def _verbs_at(words: Sequence[Word]) -> list[int]:
    """Where the verb may stand. A form of "be" or "have" is it, whatever else there is;
    of other words some are nouns as well: "the support hotline opens at eight"."""
    places = []
    for at, word in enumerate(words[1:_VERB_WITHIN], 1):
        if word.low in _FIRST:
            return [at]
        if word.low in _READERS:
            places.append(at)
    return places


def _stance(subject: tuple[Word, ...], *, corrects: bool) -> tuple[tuple[Word, ...], How]:
    """The subject without adverbs behind it, and what they say."""
    how: How = "became" if corrects else "is"
    while subject:
        if subject[-1].low in words_of.ADVERBS:
            how = "became" if subject[-1].low in words_of.NEW_NOW else how
            subject = subject[:-1]
        elif [word.low for word in subject[-2:]] == ["no", "longer"]:
            subject, how = subject[:-2], "ended"
        else:
            break
    return subject, how
