"""What a statement of fact is made of: the thing it is about, and the fact itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from recollect.ingest import fact_words as words_of
from recollect.ingest.entity_words import OPENERS as PLAIN_WORDS
from recollect.ingest.fact_clause import Word
from recollect.ingest.fact_values import Value

MOST_SUBJECT = 6  # words
_OF = frozenset({"of", "for", "in", "on", "at"})  # the log level of, for, in production

How = Literal["is", "became", "is not", "ended"]
Holds = Literal["one", "some", "many", "loose", "version", "status", "event"]


class Fact(NamedTuple):
    """What a statement says. ``value`` is in the form it is compared in.

    ``how``: it is so, became so, is not so, or ended. ``holds``: of ``one`` value at a
    time; of ``some``, where a second value is suspicious; of ``many``; ``loose``, where only
    an explicit change replaces and a second value is suspicious; of one ``version`` of each
    thing named; a ``status``; or an ``event``, which only an explicit change moves.
    ``before`` is the value it says it replaced. ``whole``: the text says nothing else.
    ``by`` is what is done then, where the slot does not say it: "cut" on Tuesdays.
    """

    subject: str
    attribute: str
    value: str
    how: How = "is"
    holds: Holds = "one"
    before: str = ""
    whole: bool = True
    by: str = ""


class Thing(NamedTuple):
    """What is spoken of: a property of an owner ("Ana", "phone number"), or one thing."""

    subject: str
    part: str = ""
    is_name: bool = False

    def slot(self, attribute: str) -> tuple[str, str]:
        """Subject and attribute; "value" goes without saying where a part is named."""
        if not self.part:
            return self.subject, attribute
        return self.subject, self.part if attribute == "value" else f"{self.part} {attribute}"

    @property
    def name(self) -> str:
        """All of it in one."""
        return f"{self.subject} {self.part}" if self.part else self.subject

    @property
    def head(self) -> str:
        """The word that says what kind of thing it is."""
        return (self.part or self.subject).split()[-1]


class Said(NamedTuple):
    """A clause taken apart at its verb."""

    subject: tuple[Word, ...]
    verb: str
    after: tuple[Word, ...]
    how: How
    whole: bool
    me: str | None

    @property
    def is_first_person(self) -> bool:
        """Whether it is "I" or "we" of whom it is said."""
        return len(self.subject) == 1 and self.subject[0].low in ("i", "we")

    @property
    def thing(self) -> Thing | None:
        """What the subject names."""
        return thing_of(self.subject, self.me)


def thing_of(words: Sequence[Word], me: str | None) -> Thing | None:
    """The one known thing that words name; None where they do not."""
    if not words or len(words) > MOST_SUBJECT or any(word.pause for word in words):
        return None
    low = [word.low for word in words]
    if low in (["i"], ["we"]):
        subject = me if low == ["i"] else "we"
        return Thing(subject, is_name=True) if subject else None
    if low[0] == "my":
        return _part_of(me, low[1:])
    definite = low[0] in words_of.DETERMINERS
    return _named(low[1:] if definite else low, words[0].raw, definite=definite)


def _named(low: Sequence[str], name: str, *, definite: bool) -> Thing | None:
    """The thing that words without their article name; ``name`` is how they begin."""
    for at, word in enumerate(low):
        if word.endswith(("'s", "s'")):
            owner = [*low[:at], word.removesuffix("'s").removesuffix("'")]
            return _part_of(_joined(owner), low[at + 1 :])
        if word in _OF and at and not words_of.TIMES.intersection(low[at:]):
            owner = [one for one in low[at + 1 :] if one not in words_of.DETERMINERS]
            return _part_of(_joined(owner), low[:at])
    is_name = not definite and len(low) == 1 and name[0].isupper() and name.isalpha()
    subject = _joined(low)
    return Thing(subject, is_name=is_name and low[0] not in PLAIN_WORDS) if subject else None


def _part_of(owner: str | None, part: Sequence[str]) -> Thing | None:
    named = _joined(part)
    return Thing(owner, named) if owner and named else None


def _joined(words: Sequence[str]) -> str | None:
    """Words as one name; None where they do not name one known thing."""
    kept = [word for word in words if word not in words_of.NEWER]
    if not kept or any(word in words_of.VAGUE or word in ("of", "for") for word in kept):
        return None
    if any(word.endswith(("'s", "s'")) for word in kept):
        return None
    return " ".join(kept)


def until_pause(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Words up to a pause, a reason or what else is told."""
    for at, word in enumerate(words):
        if word.low in words_of.REASONS or word.low in words_of.GOES_ON:
            return words[:at]
        if word.pause:
            return (*words[:at], word._replace(pause=False))
    return words


def without_adverbs(after: tuple[Word, ...], how: How) -> tuple[tuple[Word, ...], How]:
    """Words without adverbs in front, and what those say."""
    while after and after[0].low in words_of.ADVERBS:
        if after[0].low in words_of.NEW_NOW and how == "is":
            how = "became"
        after = after[1:]
    return after, how


def make_fact(said: Said, slot: tuple[str, str], value: Value, holds: Holds = "one") -> Fact:
    """The fact that a value in a slot makes, as the clause says it."""
    how: How = "became" if value.now and said.how == "is" else said.how
    before = value.instead if how in ("is", "became") else ""
    how = "became" if before else how
    return Fact(*slot, value.key, how, holds, before, said.whole and not value.more)
