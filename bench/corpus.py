"""Conversations of our own: sessions, dates, speakers, names, topics and planted facts.

A turn has about 27 words. Its sentences are filled from common English words by Zipf's
law, half of the nouns from the session's topic; names of people, firms and streets are an
open list, so the vocabulary grows with the corpus. Turn number n is the same text in every
corpus of the same seed, whatever its size; only the dates are spread over the same three
years. Up to a million turns are distinct.

    python bench/corpus.py --size 20            # print some turns and questions
"""

from __future__ import annotations

import argparse
import random
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

# The lengths of sessions repeat, so that the session of a turn is known without counting.
LENGTHS = (8, 14, 22, 10, 16, 12, 30, 6, 18, 10, 24, 14, 8, 20, 12, 16)
STARTS = (0, *accumulate(LENGTHS))
CYCLE = STARTS[-1]
BEGIN = datetime(2023, 1, 2, 8, tzinfo=UTC)
SPAN = timedelta(days=3 * 365)
TOPICS = 200
OWNER = "Nadia"
FRIENDS = (
    "Omar Lena Viktor Priya Tomas Ines Caleb Yuki Hanna Diego Marta Oscar Leila Bruno Alma Kofi "
    "Greta Pavel Noor Felix Ruth Anton Selma Jonas Mina Rafael Edith Tariq Clara Hugo Zoe Emil "
    "Wanda Idris Paula Stefan Amara Louis Nina Gustav"
).split()
PEOPLE = (
    "James Mary Robert Linda John Susan Michael Karen David Nancy William Lisa Richard Betty "
    "Joseph Sandra Thomas Ashley Charles Donna Daniel Carol Matthew Emily Anthony Amanda Mark "
    "Melissa Paul Deborah Steven Stephanie Andrew Rebecca Kenneth Laura Joshua Sharon Kevin "
    "Cynthia Brian Kathleen George Amy Edward Angela Ronald Anna Timothy Brenda Jason Emma "
    "Jeffrey Nicole Ryan Helen Jacob Samantha Gary Katherine Nicholas Christine Eric Debra"
).split()
CITIES = (
    "London Paris Berlin Madrid Rome Vienna Prague Lisbon Dublin Oslo Boston Chicago Denver "
    "Seattle Austin Portland Toronto Montreal Vancouver Sydney Melbourne Auckland Tokyo Osaka "
    "Seoul Mumbai Delhi Bangalore Lima Bogota Santiago Nairobi Cairo Athens Budapest Warsaw "
    "Zurich Geneva Lyon Milan Naples Porto Seville Leeds Bristol Glasgow Hamburg Munich"
).split()
MONTHS = (
    "January February March April May June July August September October November December"
).split()
DAYS = ("yesterday", "today", "last week", "last Friday", "on Monday", "next Thursday",
        "this morning", "two weeks ago", "over the weekend", "last month", "tomorrow")  # fmt: skip
START = ("b c d f g h j k l m n p r s t v w br cr dr fr gr kl pr st tr sh").split()
MIDDLE = "a e i o u ai ei ou".split()
ARTICLE = re.compile(r"\ba(?= [aeiou])")
CLOSE = "n r l s t m nd rt lk sk ll".split()

# Slots: n noun, N noun of the topic, s plural, a adjective, v verb, d past, g gerund, r adverb,
# p person, P person with surname, c city, w when, b firm, k number, m money.
SENTENCES = (
    "I {d} the {a} {N} with {p} {w}, and it was not what we had in mind.",
    "We should {v} the {N} before the {n} in {c}, because {p} wants to see it.",
    "My {n} told me that the {a} {s} in {c} are worth a visit.",
    "I have been {g} about the {N} since {p} {d} it {w}.",
    "The {N} cost {m}, which is more than I paid for the {n}.",
    "Can you {v} me some {a} {s} for the {N}?",
    "{p} and I went to {c} {w} to look at a {N} for the {n}.",
    "It took {k} minutes to {v} the {n}, but the {N} looks {r} better now.",
    "That sounds {a}; how did the {N} go with {p}?",
    "If you {v} the {n} first, the {N} will be much easier to {v}.",
    "For the {N} I would {v} a {a} {n} and keep the {s} simple.",
    "I am thinking of {g} the {n} at {b}, they have {k} {s} on offer.",
    "Our {N} {d} {r} during the {n}, so we had to {v} all of the {s}.",
    "There were {k} people at the {N}, most of them from {c}.",
    "The {a} {n} that {P} mentioned is {r} the best {N} I know.",
    "Do you remember the {N} that we {d} at the {n} {w}?",
    "You could also {v} with {p}, who knows a lot about {s} and {N}.",
    "In {h} I will start {g} at {b}, and the {n} there is {a}.",
    "What I like about the {N} is that the {s} never {v} the {n}.",
    "{P} from {b} {d} me about the {n} {w}.",
    "No, the {N} was {a}, but the {n} and the {s} were fine.",
    "To be honest, {g} the {N} every week is {r} hard for me.",
    "First {v} the {N}, then check the {s}, and finally ask {p} for the {n}.",
    "She said her {n} was {a} because of the {s} in the {N}.",
    "Let me know when the {N} is ready, I can {v} it {w}.",
    "We paid {m} for {k} {s} and a {a} {n} in {c}.",
    "He {d} his {N} to {c} and has not {d} since {h}.",
    "A {a} {N} needs a {n}, some {s}, and a lot of patience.",
    "The doctor asked whether the {n} had {d} {r} after the {N}.",
    "By the way, {p} will bring the {s} to the {N} {w}.",
    "I never thought that {g} a {N} could be so {a}.",
    "Here is what I found: {k} {s}, one {a} {n}, and a {N} from {h}.",
    "Maybe the {n} in {c} is closed, so call {b} about the {N} before you go.",
    "My brother keeps {g} the {s} although the {N} is {a}.",
    "Please remind me {w} that the {N} belongs to {P}.",
    "As far as I can tell, the {s} {d} the {N} more than any {n} did.",
    "The children love the {N}, especially the {a} {s} near the {n}.",
    "After the {n} we walked around {c} and talked about {s}.",
    "Someone at {b} said that {g} takes about {k} hours, {n} included.",
    "Have you ever tried to {v} a {N} without the {n}?",
    "The email from {P} says the {N} moves to {h}.",
    "I would rather {v} the {a} {n} than wait for {p} again.",
    "Both {p} and {p} {d} the same {N}, which surprised nobody.",
    "It rained all day in {c}, still the {N} {d} {r}.",
    "You are right about the {s}; the {N} only works with a {a} {n}.",
    "My plan for {h} is {g} the {N} and saving {m}.",
    "Nobody could {v} why the {n} had {k} {s}.",
    "The new {N} at {b} is smaller but {r} more {a}.",
    "Congratulations on the {N}, that is a {a} step for your {n}!",
    "Some {s} from {c} arrived {w}, together with the {n} for {p}.",
    "When I was young, every {N} had a {n} and at least {k} {s}.",
    "Try {g} the {n} slowly; most {s} {v} after a while.",
    "The meeting about the {N} was {a}, and {P} left early.",
    "Honestly the {s} were the part of the {N} that I enjoyed most.",
    "They promised to {v} the {n} for {m}, yet the {N} is still broken.",
    "Why not {v} {p} to the {N} and show them the {a} {s}?",
    "I wrote the {n} down so that the {N} would not get lost.",
    "Between {c} and {c} there is a {N} with wonderful {s}.",
)  # fmt: skip
ASKS = (
    "What did {p} say about the {N} and the {n}?",
    "When did we talk about the {N} in {c}?",
    "Who wanted to {v} the {N}?",
    "How much was the {a} {N}?",
    "Why was the {N} so {a} for {p}?",
    "Where did I see the {s} for the {N}?",
    "Which {s} did {p} recommend?",
    "What happened with the {N} {w}?",
)
OPENERS = ("", "Do you know ", "Remind me, ", "Tell me ", "I forgot: ", "Please look up ",
           "Could you check ", "We talked once: ", "Can you remember ")  # fmt: skip
SHORT = (
    "Thanks {p}, I will {v} the {N} number {u}.",
    "Yes, booking {u} is for the {a} {n}.",
    "The ticket for the {N} is {u}, I think.",
    "Good idea, note {u} about the {N} helped {p}.",
)


class Fact(NamedTuple):
    """A planted fact, and questions for it: with words of the statement, and without."""

    statement: str
    direct: str
    oblique: str


# Slots: P a person with a surname, x a value, f a firm or street, k a number, h a month.
FACTS: tuple[tuple[Fact, tuple[str, ...]], ...] = (
    (
        Fact("{P} adopted a {x} from the shelter on {f} Street and called it {b}.",
             "What did {P} call the {x}?", "which rescued pet has a new home?"),
        ("greyhound", "beagle", "tabby kitten", "parrot", "terrier"),
    ),
    (
        Fact("My cousin {P} started to learn the {x} with a teacher from {c} in {h}.",
             "Who teaches {P} the {x}?", "is anyone in the family taking music lessons?"),
        ("cello", "trombone", "accordion", "violin", "clarinet"),
    ),
    (
        Fact("{P} is allergic to {x}, so for the party I order from {b} instead.",
             "What is {P} allergic to?", "which guest cannot eat everything?"),
        ("peanuts", "shellfish", "strawberries", "sesame", "gluten"),
    ),
    (
        Fact("{P} broke the {x} while climbing near {c} and was in hospital for {k} days.",
             "Where did {P} break the {x}?", "who had an accident in the mountains?"),
        ("wrist", "ankle", "collarbone", "elbow", "left knee"),
    ),
    (
        Fact("I bought a used {x} from {P} for {m}, the mileage is {k} thousand.",
             "How much did the {x} from {P} cost?", "what did we pay for our car?"),
        ("Volvo", "Toyota", "Renault", "Skoda", "Subaru"),
    ),
    (
        Fact("{P} got a new position as {x} at {b} and moves to {c} in {h}.",
             "When does {P} begin as {x} at {b}?", "which friend changes jobs soon?"),
        ("a nurse", "an accountant", "a pastry chef", "a data analyst", "an editor"),
    ),
    (
        Fact("The landlord {P} raised the rent on {f} Street to {m} because of the {x}.",
             "How much is the rent for {f} Street?", "why did housing become more expensive?"),
        ("boiler", "new roof", "elevator", "insulation", "windows"),
    ),
    (
        Fact("{P} cooked {x} for us with a recipe that the grandmother wrote down in {c}.",
             "Whose recipe is the {x} of {P}?", "which dinner came from an old family note?"),
        ("goulash", "paella", "borscht", "ramen", "moussaka"),
    ),
    (
        Fact("{P} teaches {x} at the evening school on {f} Street every Tuesday at {k}.",
             "At what time does {P} teach {x}?", "which weekly course could I attend after work?"),
        ("Portuguese", "pottery", "bookkeeping", "watercolour", "Arabic"),
    ),
    (
        Fact("The {x} that {P} lent me has to be back at {b} before the end of {h}.",
             "When must the {x} from {P} be back?", "what borrowed thing do I still have here?"),
        ("projector", "tent", "sewing machine", "drill", "camera tripod"),
    ),
)  # fmt: skip


class Turn(NamedTuple):
    """One turn of a conversation; ``fact`` is the number of the planted one, or -1."""

    text: str
    session: str
    seq: int
    speaker: str
    topic: str
    occurred_at: datetime
    fact: int = -1

    def draft(self) -> dict[str, object]:
        """The fields that ``remember_many`` takes."""
        return {name: value for name, value in self._asdict().items() if name != "fact"}


class Question(NamedTuple):
    """A question made from a session.

    "direct" asks for its planted fact with words of it, "oblique" without any, "topical"
    asks in common words about what the session speaks of.
    """

    text: str
    kind: str
    session: int
    now: datetime | None = None


class Zipf:
    """Draws from a list by Zipf's law, the first the most often."""

    def __init__(self, words: Sequence[str], shift: float = 2.7) -> None:
        self.words = words
        self.ends = list(accumulate(1.0 / (rank + shift) for rank in range(len(words))))

    def draw(self, rng: random.Random) -> str:
        return self.words[bisect_left(self.ends, rng.random() * self.ends[-1])]


@cache
def words_of(kind: str) -> tuple[str, ...]:
    for line in (Path(__file__).parent / "words.txt").read_text(encoding="utf-8").splitlines():
        name, _, words = line.partition(": ")
        if name == kind:
            return tuple(words.split())
    raise KeyError(kind)


class Corpus:
    """So many turns of one seed; dates are spread evenly over three years."""

    def __init__(self, size: int, seed: int = 7) -> None:
        self.size, self.seed = size, seed
        classes = {"n": "noun", "s": "plural", "a": "adjective", "v": "verb", "d": "past",
                   "g": "gerund", "r": "adverb"}  # fmt: skip
        self._zipf = {slot: Zipf(words_of(kind)) for slot, kind in classes.items()}
        self._people, self._cities = Zipf(PEOPLE), Zipf(CITIES)
        rng = random.Random(f"{seed}:topics")
        nouns = words_of("noun")
        self._topics: list[tuple[str, Zipf]] = []
        for number in range(TOPICS):
            own = rng.sample(nouns, 60)
            self._topics.append((f"{own[0]} {own[1]} {number}", Zipf(own, 1.5)))

    def __len__(self) -> int:
        return self.size

    @property
    def sessions(self) -> int:
        return -(-self.size // CYCLE) * len(LENGTHS)

    def turns(self, start: int = 0, stop: int | None = None) -> Iterator[Turn]:
        """The turns from ``start`` on, in order."""
        stop = self.size if stop is None else min(stop, self.size)
        number = start
        while number < stop:
            round_, place = divmod(number, CYCLE)
            one = max(index for index in range(len(LENGTHS)) if STARTS[index] <= place)
            first = round_ * CYCLE + STARTS[one]
            for turn in self._session(round_ * len(LENGTHS) + one, first)[number - first :]:
                if number == stop:
                    return
                yield turn
                number += 1

    def texts(self, start: int = 0, stop: int | None = None) -> list[str]:
        return [turn.text for turn in self.turns(start, stop)]

    def questions(self, count: int) -> list[Question]:
        """Direct, oblique and topical ones in turn, all different."""
        if count > 240:
            raise ValueError("there are not so many oblique ones")
        rng = random.Random(f"{self.seed}:questions:{self.size}")
        made: dict[str, Question] = {}
        sessions = self.size // CYCLE * len(LENGTHS)
        while len(made) < count:
            kind = ("direct", "topical", "oblique")[len(made) % 3]
            session = rng.randrange(sessions)
            planted = self._planted(session)
            if kind == "topical":
                _, nouns = self._topic(random.Random(f"{self.seed}:{session}"))
                text = self._fill(rng, rng.choice(ASKS), nouns, 0)
            elif planted is None:
                continue
            elif kind == "direct":
                text = FACTS[planted[1]][0].direct.format(**planted[2])
            else:
                text = rng.choice(OPENERS) + FACTS[planted[1]][0].oblique
                text = text[0].upper() + text[1:]
            made.setdefault(text, Question(text, kind, session))
        return list(made.values())

    def answers(self, question: Question, session: str | None, seq: int | None) -> bool:
        """Whether the turn answers the question."""
        number = int((session or "s-1")[1:])
        if question.kind == "topical":
            return number == question.session
        wanted, found = self._planted(question.session), self._planted(number)
        if wanted is None or found is None or found[0] != seq:
            return False
        return number == question.session or (question.kind == "oblique" and found[1] == wanted[1])

    def _topic(self, rng: random.Random) -> tuple[str, Zipf]:
        return self._topics[int(TOPICS * rng.random() ** 1.6)]

    def _planted(self, session: int) -> tuple[int, int, dict[str, str]] | None:
        """Where a session has its fact, which, and with what in its slots."""
        rng = random.Random(f"{self.seed}:fact:{session}")
        if rng.random() < 0.4:
            return None
        kind = rng.randrange(len(FACTS))
        place = rng.randrange(LENGTHS[session % len(LENGTHS)])
        return place, kind, {
            "P": f"{rng.choice(PEOPLE)} {_made_up(rng, 3)}", "x": rng.choice(FACTS[kind][1]),
            "f": _made_up(rng, 2), "b": _made_up(rng, 2), "c": rng.choice(CITIES),
            "h": rng.choice(MONTHS), "k": str(rng.randint(2, 90)), "m": _money(rng),
        }  # fmt: skip

    def _session(self, session: int, first: int) -> list[Turn]:
        rng = random.Random(f"{self.seed}:{session}")
        topic, nouns = self._topic(rng)
        friend = FRIENDS[int(len(FRIENDS) * rng.random() ** 1.5)]
        begun = BEGIN + SPAN * (session / self.sessions)
        planted = self._planted(session)
        turns = []
        for seq in range(LENGTHS[session % len(LENGTHS)]):
            fact = planted[1] if planted is not None and planted[0] == seq else -1
            text = self._text(rng, nouns, first + seq)
            if planted is not None and fact >= 0:
                statement = FACTS[fact][0].statement.format(**planted[2])
                text = f"{statement} {text}" if len(text) < 120 else statement
            speaker = friend if (seq + session) % 2 else OWNER
            when = begun + timedelta(minutes=seq)
            turns.append(Turn(text, f"s{session:06d}", seq, speaker, topic, when, fact))
        return turns

    def _text(self, rng: random.Random, nouns: Zipf, number: int) -> str:
        wanted = int(rng.triangular(6, 50, 23))
        if wanted < 9:
            return self._fill(rng, rng.choice(SHORT), nouns, number)
        parts: list[str] = []
        have = 0
        while have < max(wanted - 6, 15):  # a single short sentence would come twice
            sentence = self._fill(rng, rng.choice(SENTENCES), nouns, number)
            parts.append(sentence)
            have += sentence.count(" ") + 1
        return " ".join(parts)

    def _fill(self, rng: random.Random, sentence: str, nouns: Zipf, number: int) -> str:
        pieces = sentence.split("{")
        made = [pieces[0]]
        for piece in pieces[1:]:
            made.append(self._slot(rng, piece[0], nouns, number))
            made.append(piece[2:])
        text = ARTICLE.sub("an", "".join(made))
        return text[0].upper() + text[1:]

    def _slot(self, rng: random.Random, slot: str, nouns: Zipf, number: int) -> str:
        if slot == "N":
            return nouns.draw(rng)
        zipf = self._zipf.get(slot)
        if zipf is not None:
            return zipf.draw(rng)
        if slot == "p":
            return self._people.draw(rng)
        if slot == "c":
            return self._cities.draw(rng)
        if slot == "w":
            return rng.choice(DAYS)
        if slot == "P":
            return f"{self._people.draw(rng)} {_made_up(rng, 2)}"
        if slot == "b":
            return _made_up(rng, 2)
        if slot == "h":
            return rng.choice(MONTHS)
        if slot == "k":
            return str(rng.randint(2, 200))
        return _money(rng) if slot == "m" else f"{number:06d}"


def _made_up(rng: random.Random, syllables: int) -> str:
    made = [rng.choice(START) + rng.choice(MIDDLE) for _ in range(syllables)]
    return "".join(made).capitalize() + rng.choice(CLOSE)


def _money(rng: random.Random) -> str:
    return f"{rng.randint(3, 2400)} dollars"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--size", type=int, default=20)
    options = parser.parse_args()
    corpus = Corpus(options.size)
    for turn in corpus.turns():
        print(f"{turn.occurred_at:%Y-%m-%d} {turn.session}/{turn.seq} {turn.speaker}: {turn.text}")
    for question in Corpus(max(options.size, CYCLE)).questions(10):
        print(f"{question.kind}: {question.text}")


if __name__ == "__main__":
    main()
