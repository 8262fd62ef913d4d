"""Synthetic memories of 20 to 40 words and natural questions about them.

Word frequencies follow Zipf's law over a vocabulary that grows with the corpus, and
function words stand between content words as in English, so that postings lists have
realistic lengths. The same seed gives the same corpus.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

FUNCTION = (
    "the of and to in a is that it was for on with as at by this we they from be are have not "
    "or had but his her their has been when who will more if no out so what up into than them "
    "can only other new some could time these two may then do first any my now such like our "
    "decide responsible failed keep slow set change"
).split()
CONSONANTS = "b c d f g h k l m n p r s t v w z br cl dr fl gr pl pr sh sl st th tr".split()
VOWELS = "a e i o u ai ea ou".split()
ASKS = (
    "what did we decide about the {0} and the {1}?",
    "who was responsible for {0} when the {1} failed?",
    "where do we keep the {0} for {1}",
    "why is the {0} so slow with {1} and {2}",
    "how do I set up {0} on the {1} for our {2}?",
    "when did the {0} change to {1}",
)


@dataclass(frozen=True)
class Corpus:
    """A vocabulary with its weights, and the generator's state."""

    words: list[str]
    weights: list[float]  # each with those before it: `choices` need not add them up again
    seed: int

    @classmethod
    def of_size(cls, memories: int, seed: int = 7) -> Corpus:
        rng = random.Random(seed)
        wanted = int(2_000 * (memories / 1_000) ** 0.5) + 2_000
        words: dict[str, None] = {}
        while len(words) < wanted:
            syllables = rng.choice((2, 2, 3, 3, 4))
            word = "".join(rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(syllables))
            words[word + rng.choice(("", "n", "r", "s", "t"))] = None
        weights = list(accumulate(1.0 / (rank + 2.7) for rank in range(len(words))))
        return cls(list(words), weights, seed)

    def memories(self, count: int) -> Iterator[str]:
        rng = random.Random(self.seed + 1)
        for _ in range(count):
            length = rng.randint(20, 40)
            content = iter(rng.choices(self.words, cum_weights=self.weights, k=length))
            text = " ".join(
                rng.choice(FUNCTION) if rng.random() < 0.45 else next(content)
                for _ in range(length)
            )
            yield text.capitalize() + "."

    def questions(self, count: int) -> list[str]:
        rng = random.Random(self.seed + 2)
        return [
            rng.choice(ASKS).format(*rng.choices(self.words, cum_weights=self.weights, k=3))
            for _ in range(count)
        ]
