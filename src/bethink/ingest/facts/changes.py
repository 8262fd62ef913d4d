"""Read statements of change: moved to, raised from 5 to 10, switched, renamed."""

from __future__ import annotations

from bethink.ingest.facts import vocabulary
from bethink.ingest.facts.clause import (
    ClauseWord,
    Value,
    as_version_or_price,
    is_manner,
    is_place,
    is_temporary_role,
    may_be_name,
    parse_value,
)
from bethink.ingest.facts.comparison import (
    Cardinality,
    Fact,
    FactSubject,
    VerbClause,
    make_fact,
    parse_subject,
    strip_leading_adverbs,
    words_until_pause,
)
from bethink.ingest.facts.states import (
    ClauseReader,
    is_versioned,
    read_count,
    read_made_with,
    read_own_routine,
    read_status,
)

_TO_PREPOSITIONS = frozenset({"to", "into", "onto", "as"})
_BY_PREPOSITIONS = frozenset({"by", "with"})
_REWRITTEN_PREPOSITIONS = frozenset({"in", "with"})
_PREPOSITIONS = _TO_PREPOSITIONS | _BY_PREPOSITIONS | {"from", "for", "in"}


def _strip_past_time(words: tuple[ClauseWord, ...]) -> tuple[ClauseWord, ...]:
    """Strip "last month" from the end, unless the words before are a time."""
    low = [word.low for word in words]
    cut = 2 if low[-2:-1] == ["last"] and low[-1] in vocabulary.PERIOD_WORDS else 0
    cut = 1 if low[-1:] == ["yesterday"] else cut
    kept = words[: len(words) - cut]
    timed = any(_is_time_value(word) for word in kept)
    return words if timed or not kept or kept[-1].low in _PREPOSITIONS else kept


def _is_time_value(word: ClauseWord) -> bool:
    value = parse_value((word,))
    return value is not None and value.kind == "time"


class _ChangePhrase:
    """The words before the prepositions of a change, and after each of them."""

    def __init__(self, words: tuple[ClauseWord, ...]) -> None:
        words = _strip_past_time(words)
        positions = [at for at, word in enumerate(words) if word.low in _PREPOSITIONS]
        self.moved = words[: positions[0]] if positions else words
        ends = [*positions[1:], len(words)] if positions else []
        self.behind: dict[str, tuple[ClauseWord, ...]] = {}
        for at, end in zip(positions, ends, strict=True):
            self.behind.setdefault(words[at].low, words[at + 1 : end])

    def to(self, prepositions: frozenset[str] = _TO_PREPOSITIONS) -> Value | None:
        """Return the new value."""
        if is_temporary_role(self.behind.get("as", ())):
            return None
        for preposition, words in self.behind.items():  # the first one in the text
            if preposition in prepositions:
                return parse_value(words)
        return None

    def left(self) -> str:
        """Return the old value, if it is named."""
        value = parse_value(words_until_pause(self.behind.get("from", ())))
        return value.key if value else ""

    def purpose(self, me: str | None) -> FactSubject | None:
        """Return what it is for."""
        return parse_subject(words_until_pause(self.behind.get("for", ())), me)


def _read_move(clause: VerbClause) -> Fact | None:
    """Read "The key moved to vault B", "we moved the meeting to Mondays"."""
    phrase = _ChangePhrase(clause.after)
    thing, value = _changed_subject(clause, phrase), phrase.to()
    if thing is None or value is None or not is_place(value) or is_manner(value):
        return None
    attribute = {"time": "time", "number": "value"}.get(value.kind, "location")
    return _make_change_fact(clause, thing.slot(attribute), value, phrase.left())


def _read_value_change(clause: VerbClause) -> Fact | None:
    """Read "The limit was raised from 5 to 10"."""
    phrase = _ChangePhrase(clause.after)
    thing, value = _changed_subject(clause, phrase), phrase.to()
    if clause.verb in ("upgraded", "downgraded") and clause.is_first_person and not phrase.moved:
        return _read_switch(clause)
    if thing is None or value is None or thing.is_name:
        return None
    value = as_version_or_price(value)
    if value.kind == "plain" and not may_be_name(value):
        return None
    versioned = (
        clause.verb in ("upgraded", "downgraded")
        and thing.head not in vocabulary.PLAIN_VALUED_NOUNS
    )
    if is_versioned(value) and (versioned or thing.head in vocabulary.RUNTIME_NOUNS):
        return _make_change_fact(clause, thing.slot("uses"), value, phrase.left(), "version")
    return _make_change_fact(
        clause, thing.slot("time" if value.kind == "time" else "value"), value, phrase.left()
    )


def _read_cut(clause: VerbClause) -> Fact | None:
    """Read "We cut the limit to 5", and "we cut releases on Tuesdays"."""
    return _read_value_change(clause) or read_own_routine(clause)


def _read_switch(clause: VerbClause) -> Fact | None:
    """Read "We switched from MySQL to CockroachDB for the ledger"."""
    phrase = _ChangePhrase(clause.after)
    value = phrase.to()
    own = parse_subject(phrase.moved, clause.me) if phrase.moved else None
    purpose = phrase.purpose(clause.me)
    target = purpose or own
    if ("for" in phrase.behind and target is None) or (phrase.moved and own is None):
        return None
    thing = target or clause.fact_subject
    if thing is None or value is None or value.kind not in ("name", "plain"):
        return None
    holds: Cardinality = "many" if thing.is_name and target is None else "some"
    if purpose and not clause.is_first_person:  # a fact about the doer, not about the purpose
        doer = clause.fact_subject
        slot = (doer.name, f"uses for {purpose.name}") if doer else None
        return _make_change_fact(clause, slot, value, phrase.left(), holds) if slot else None
    return _make_change_fact(clause, (thing.name, "uses"), value, phrase.left(), holds)


def _read_rename(clause: VerbClause) -> Fact | None:
    """Read "The service was renamed to Heron"."""
    phrase = _ChangePhrase(clause.after)
    thing, value = _changed_subject(clause, phrase), phrase.to()
    return _make_change_fact(clause, thing.slot("name"), value) if thing and value else None


def _read_replacement(clause: VerbClause) -> Fact | None:
    """Read "We replaced Jenkins with Buildkite": the old one is no longer used."""
    phrase = _ChangePhrase(clause.after)
    if phrase.moved and not clause.is_first_person:
        return None  # a fact about another subject
    old, value = parse_value(phrase.moved or clause.subject), phrase.to(_BY_PREPOSITIONS)
    if old is None or value is None or "for" in phrase.behind or "in" in phrase.behind:
        return None
    return _make_change_fact(clause, ("we", "uses"), value, old.key, "many")


def _read_takeover(clause: VerbClause) -> Fact | None:
    """Read "Ben took over billing from Ana"."""
    if clause.after[0].low != "over":
        return None
    phrase = _ChangePhrase(clause.after[1:])
    thing, holder = parse_subject(phrase.moved, clause.me), clause.holder
    if thing is None or holder is None:
        return None
    if not phrase.behind.keys() <= {"from"}:
        return None  # "for two weeks", "in the holidays"
    return _make_change_fact(clause, (thing.name, "owner"), holder, phrase.left())


def _read_auxiliary(clause: VerbClause) -> Fact | None:
    """Read "has moved", "was raised", "have been switched": only changes count."""
    after, _ = strip_leading_adverbs(clause.after, clause.how)
    if after and after[0].low == "been":
        after, _ = strip_leading_adverbs(after[1:], clause.how)
    if clause.verb in ("has", "have") and after and after[0].low not in CHANGE_READERS:
        count_fact = read_count(clause._replace(after=after))
        if count_fact is not None:
            return count_fact
    if len(after) > 1 and after[0].low == "rewritten" and after[1].low in _REWRITTEN_PREPOSITIONS:
        rewritten = read_made_with(clause._replace(verb="written", after=after[1:]))
        return rewritten._replace(how="became") if rewritten else None
    if after and after[0].low in vocabulary.DONE_STATUSES:
        return _read_completion(clause._replace(after=after))
    if len(after) < 2 or after[0].low not in CHANGE_READERS:
        return None
    return CHANGE_READERS[after[0].low](clause._replace(verb=after[0].low, after=after[1:]))


def _read_completion(clause: VerbClause) -> Fact | None:
    """Read "The migration was completed yesterday"."""
    time_words = clause.after[1:]
    if time_words and not all(word.low in ("today", "yesterday") for word in time_words):
        return None
    fact = read_status(clause._replace(after=clause.after[:1]))
    return fact._replace(how="became") if fact and clause.how in ("is", "became") else None


def _changed_subject(clause: VerbClause, phrase: _ChangePhrase) -> FactSubject | None:
    """Return what changed: the object of the verb, or else its subject.

    A change made by a customer, a patch or an unnamed party states nothing about us.
    """
    moved, _ = strip_leading_adverbs(phrase.moved, clause.how)
    doer = clause.fact_subject
    if not moved:
        return doer
    own_team = doer is not None and (doer.is_name or doer.head in vocabulary.TEAM_NOUNS)
    return parse_subject(moved, clause.me) if own_team else None


def _make_change_fact(
    clause: VerbClause,
    slot: tuple[str, str],
    value: Value,
    before: str = "",
    holds: Cardinality = "one",
) -> Fact | None:
    if clause.how not in ("is", "became"):
        return None
    return make_fact(clause, slot, value, holds)._replace(how="became", before=before)


CHANGE_READERS: dict[str, ClauseReader] = {
    **dict.fromkeys(vocabulary.MOVE_VERBS, _read_move),
    **dict.fromkeys(vocabulary.CHANGE_VALUE_VERBS, _read_value_change),
    **dict.fromkeys(vocabulary.SWITCH_VERBS, _read_switch),
    **dict.fromkeys(vocabulary.RENAME_VERBS, _read_rename),
    **dict.fromkeys(vocabulary.REPLACE_VERBS, _read_replacement),
    "took": _read_takeover,
    "cut": _read_cut,
}
AUXILIARY_READERS: dict[str, ClauseReader] = dict.fromkeys(
    ("was", "were", "has", "have"), _read_auxiliary
)
