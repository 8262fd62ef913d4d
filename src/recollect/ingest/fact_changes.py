"""Statements of change: moved to, raised from 5 to 10, switched from A to B, renamed."""

from __future__ import annotations

from recollect.ingest import fact_words as words_of
from recollect.ingest.fact_clause import Word
from recollect.ingest.fact_parts import (
    Fact,
    Holds,
    Said,
    Thing,
    make_fact,
    thing_of,
    until_pause,
    without_adverbs,
)
from recollect.ingest.fact_routines import counted, doing
from recollect.ingest.fact_states import Reader
from recollect.ingest.fact_ties import is_versioned, made, status
from recollect.ingest.fact_values import (
    Value,
    is_guise,
    is_manner,
    is_naming,
    is_place,
    not_clock,
    value_of,
)

_TO = frozenset({"to", "into", "onto", "as"})
_BY = frozenset({"by", "with"})
_REWRITTEN = frozenset({"in", "with"})
_PREPOSITIONS = _TO | _BY | {"from", "for", "in"}


def _without_when(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Without "last month" at the end; a time that was so once is left as it is."""
    low = [word.low for word in words]
    cut = 2 if low[-2:-1] == ["last"] and low[-1] in words_of.PERIODS else 0
    cut = 1 if low[-1:] == ["yesterday"] else cut
    kept = words[: len(words) - cut]
    timed = any(_is_time(word) for word in kept)
    return words if timed or not kept or kept[-1].low in _PREPOSITIONS else kept


def _is_time(word: Word) -> bool:
    value = value_of((word,))
    return value is not None and value.kind == "time"


class _Way:
    """From where to where: what stands behind each preposition, and what before them all."""

    def __init__(self, words: tuple[Word, ...]) -> None:
        words = _without_when(words)
        places = [at for at, word in enumerate(words) if word.low in _PREPOSITIONS]
        self.moved = words[: places[0]] if places else words
        ends = [*places[1:], len(words)] if places else []
        self.behind: dict[str, tuple[Word, ...]] = {}
        for at, end in zip(places, ends, strict=True):
            self.behind.setdefault(words[at].low, words[at + 1 : end])

    def to(self, prepositions: frozenset[str] = _TO) -> Value | None:
        """The value arrived at."""
        if is_guise(self.behind.get("as", ())):
            return None
        for preposition, words in self.behind.items():  # the first one said
            if preposition in prepositions:
                return value_of(words)
        return None

    def left(self) -> str:
        """The value left behind, if it is named."""
        value = value_of(until_pause(self.behind.get("from", ())))
        return value.key if value else ""

    def purpose(self, me: str | None) -> Thing | None:
        """What it is for."""
        return thing_of(until_pause(self.behind.get("for", ())), me)


def _moved(said: Said) -> Fact | None:
    """As in "The key moved to vault B", "we moved the meeting to Mondays"."""
    way = _Way(said.after)
    thing, value = _subject(said, way), way.to()
    if thing is None or value is None or not is_place(value) or is_manner(value):
        return None
    attribute = {"time": "time", "number": "value"}.get(value.kind, "location")
    return _new(said, thing.slot(attribute), value, way.left())


def _turned(said: Said) -> Fact | None:
    """As in "The limit was raised from 5 to 10"."""
    way = _Way(said.after)
    thing, value = _subject(said, way), way.to()
    if said.verb in ("upgraded", "downgraded") and said.is_first_person and not way.moved:
        return _switched(said)
    if thing is None or value is None or thing.is_name:
        return None
    value = not_clock(value)
    if value.kind == "plain" and not is_naming(value):
        return None
    raised = said.verb in ("upgraded", "downgraded") and thing.head not in words_of.PLAIN_VALUED
    if is_versioned(value) and (raised or thing.head in words_of.RUNNERS):
        return _new(said, thing.slot("uses"), value, way.left(), "version")
    return _new(said, thing.slot("time" if value.kind == "time" else "value"), value, way.left())


def _cut(said: Said) -> Fact | None:
    """As in "We cut the limit to 5", and as in "we cut releases on Tuesdays"."""
    return _turned(said) or doing(said)


def _switched(said: Said) -> Fact | None:
    """As in "We switched from MySQL to CockroachDB for the ledger"."""
    way = _Way(said.after)
    value = way.to()
    own = thing_of(way.moved, said.me) if way.moved else None
    purpose = way.purpose(said.me)
    about = purpose or own
    if ("for" in way.behind and about is None) or (way.moved and own is None):
        return None
    thing = about or said.thing
    if thing is None or value is None or value.kind not in ("name", "plain"):
        return None
    holds: Holds = "many" if thing.is_name and about is None else "some"
    if purpose and not said.is_first_person:  # what others do for it is about them
        doer = said.thing
        slot = (doer.name, f"uses for {purpose.name}") if doer else None
        return _new(said, slot, value, way.left(), holds) if slot else None
    return _new(said, (thing.name, "uses"), value, way.left(), holds)


def _renamed(said: Said) -> Fact | None:
    """As in "The service was renamed to Heron"."""
    way = _Way(said.after)
    thing, value = _subject(said, way), way.to()
    return _new(said, thing.slot("name"), value) if thing and value else None


def _replaced(said: Said) -> Fact | None:
    """As in "We replaced Jenkins with Buildkite": what was used is not any more."""
    way = _Way(said.after)
    if way.moved and not said.is_first_person:
        return None  # what others replaced is theirs
    old, value = value_of(way.moved or said.subject), way.to(_BY)
    if old is None or value is None or "for" in way.behind or "in" in way.behind:
        return None
    return _new(said, ("we", "uses"), value, old.key, "many")


def _took_over(said: Said) -> Fact | None:
    """As in "Ben took over billing from Ana"."""
    if said.after[0].low != "over":
        return None
    way = _Way(said.after[1:])
    thing, holder = thing_of(way.moved, said.me), value_of(said.subject)
    if thing is None or holder is None or holder.kind != "name":
        return None
    if not way.behind.keys() <= {"from"}:
        return None  # "for two weeks", "in the holidays"
    return _new(said, (thing.name, "owner"), holder, way.left())


def _was(said: Said) -> Fact | None:
    """As in "has moved", "was raised", "have been switched": a change or, else, nothing."""
    after, _ = without_adverbs(said.after, said.how)
    if after and after[0].low == "been":
        after, _ = without_adverbs(after[1:], said.how)
    if said.verb in ("has", "have") and after and after[0].low not in CHANGES:
        counts = counted(said._replace(after=after))
        if counts is not None:
            return counts
    if len(after) > 1 and after[0].low == "rewritten" and after[1].low in _REWRITTEN:
        rewritten = made(said._replace(verb="written", after=after[1:]))
        return rewritten._replace(how="became") if rewritten else None
    if after and after[0].low in words_of.DONE:
        return _finished(said._replace(after=after))
    if len(after) < 2 or after[0].low not in CHANGES:
        return None
    return CHANGES[after[0].low](said._replace(verb=after[0].low, after=after[1:]))


def _finished(said: Said) -> Fact | None:
    """As in "The migration was completed yesterday"."""
    when = said.after[1:]
    if when and not all(word.low in ("today", "yesterday") for word in when):
        return None
    fact = status(said._replace(after=said.after[:1]))
    return fact._replace(how="became") if fact and said.how in ("is", "became") else None


def _subject(said: Said, way: _Way) -> Thing | None:
    """What changed: what stands behind the verb, or else what does before it.

    What a customer, a patch or nobody changed says nothing of what is so with us.
    """
    moved, _ = without_adverbs(way.moved, said.how)
    doer = said.thing
    if not moved:
        return doer
    ours = doer is not None and (doer.is_name or doer.head in words_of.TEAMS)
    return thing_of(moved, said.me) if ours else None


def _new(
    said: Said, slot: tuple[str, str], value: Value, before: str = "", holds: Holds = "one"
) -> Fact | None:
    if said.how not in ("is", "became"):
        return None
    return make_fact(said, slot, value, holds)._replace(how="became", before=before)


CHANGES: dict[str, Reader] = {
    **dict.fromkeys(words_of.MOVES, _moved),
    **dict.fromkeys(words_of.TURNS, _turned),
    **dict.fromkeys(words_of.SWITCHES, _switched),
    **dict.fromkeys(words_of.RENAMES, _renamed),
    **dict.fromkeys(words_of.REPLACES, _replaced),
    "took": _took_over,
    "cut": _cut,
}
PASSIVES: dict[str, Reader] = dict.fromkeys(("was", "were", "has", "have"), _was)
