"""Extract by rules the fact a text states: subject, attribute and value.

Precision over recall: a sentence that is not clearly one statement about one known thing
yields no fact, and is stored all the same.
"""

from __future__ import annotations

from collections.abc import Sequence

from bethink.ingest.facts import vocabulary
from bethink.ingest.facts.changes import AUXILIARY_READERS, CHANGE_READERS
from bethink.ingest.facts.clause import Clause, ClauseWord, parse_clause
from bethink.ingest.facts.comparison import Fact, FactMode, VerbClause
from bethink.ingest.facts.states import STATE_READERS

__all__ = ["Fact", "extract_fact"]


_MAX_VERB_POSITION = 9
_READERS_BY_VERB = {**STATE_READERS, **CHANGE_READERS, **AUXILIARY_READERS}
_VERBS = frozenset({*_READERS_BY_VERB, "do", "does", "don't", "doesn't", "isn't", "stopped"})
_CERTAIN_VERBS = frozenset({"is", "are", "am", *AUXILIARY_READERS, "do", "does", "stopped", "="})


def extract_fact(text: str, first_person: str | None = None) -> Fact | None:
    """Extract the fact a text clearly states; ``first_person`` is who "I" refers to."""
    clause = parse_clause(text, _VERBS)
    if clause is None:
        return None
    for at in _verb_positions(clause.words):
        fact = _read_fact_at(at, clause, first_person)
        if fact is not None:
            return fact
    return None


def _read_fact_at(at: int, clause: Clause, first_person: str | None) -> Fact | None:
    """Read the fact, if the word at this position is the clause's verb."""
    subject, how = _split_adverbs(clause.words[:at], corrects=clause.corrects)
    verb, after = clause.words[at].low, clause.words[at + 1 :]
    if verb in ("do", "does") and len(after) > 1 and after[0].low == "not":
        verb, after, how = after[1].low, after[2:], "is not"
    elif verb == "stopped" and after:
        verb, after, how = after[0].low, after[1:], "ended"
    read = _READERS_BY_VERB.get(verb)
    if read is None or not subject or not after:
        return None
    return read(VerbClause(subject, verb, after, how, clause.whole, first_person))


def _verb_positions(words: Sequence[ClauseWord]) -> list[int]:
    """Return the possible positions of the verb.

    A form of "be" or "have" is the verb, regardless of the other words; some other words are
    nouns as well: "the support hotline opens at eight".
    """
    positions = []
    for at, word in enumerate(words[1:_MAX_VERB_POSITION], 1):
        if word.low in _CERTAIN_VERBS:
            return [at]
        if word.low in _READERS_BY_VERB:
            positions.append(at)
    return positions


def _split_adverbs(
    subject: tuple[ClauseWord, ...], *, corrects: bool
) -> tuple[tuple[ClauseWord, ...], FactMode]:
    """Strip adverbs after the subject; return the subject and the mode they imply."""
    how: FactMode = "became" if corrects else "is"
    while subject:
        if subject[-1].low in vocabulary.ADVERBS:
            how = "became" if subject[-1].low in vocabulary.NEWNESS_ADVERBS else how
            subject = subject[:-1]
        elif [word.low for word in subject[-2:]] == ["no", "longer"]:
            subject, how = subject[:-2], "ended"
        else:
            break
    return subject, how
