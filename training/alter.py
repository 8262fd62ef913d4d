"""Alter pairs of texts: other names, numbers and words, of which only teachers say what they are.

A small student learns the pairs of a data set by heart before it has learnt to read. So each pair
is written again in many ways: words replaced alike on both sides, or on one of them alone; a text
beside itself with another value; both in the other order; a part of each. What the new pair is,
the teachers say. ``alter_answers.py`` has the ways of questions and notes.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from multiprocessing import Pool
from typing import Any, NamedTuple

import numpy as np

from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_VOCABULARY, ENCODER_WEIGHTS

Pair = tuple[str, str]
WORD = re.compile(r"[^\W\d_][\w'’-]*|\d+(?:[.,:]\d+)*")
CLAUSE = re.compile(r"(?<=[.!?;,])\s+")
ENGLISH = re.compile(r"\b(?:the|is|and|of|to|we|my|on|for|in|at|a)\b")
DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
MONTHS = [
    "january",
    "february",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
# Neighbours of a word that may replace it, and words that are so common that none does.
NEIGHBOURS, COMMON = 12, 120
BLOCK = 4_000


class Lexicon(NamedTuple):
    """What may stand for a word: names, and for ordinary English words those of like meaning."""

    names: list[str]
    near: dict[str, list[str]]
    common: frozenset[str]


def read_lexicon(texts: Iterable[str]) -> Lexicon:
    """Words of English texts: capitals within a sentence are names, others have neighbours."""
    names, words = Counter[str](), Counter[str]()
    for text in texts:
        if not text.isascii() or len(ENGLISH.findall(text.lower())) < 2:
            continue
        for found in WORD.finditer(text):
            word, start = found.group(), found.start()
            if word[0].isupper() and start > 1 and text[start - 2] not in '.!?:"\n':
                names[word] += 1
            elif word.islower():
                words[word] += 1
    real = [
        name for name in names
        if len(name) > 2 and name.lower() not in words and name.lower() not in {*DAYS, *MONTHS}
    ]  # fmt: skip
    common = common_words(words)
    return Lexicon(real, neighbours_of({word for word in words if words[word] > 1}), common)


def common_words(words: Counter[str]) -> frozenset[str]:
    return frozenset(word for word, _ in words.most_common(COMMON))


def neighbours_of(words: set[str]) -> dict[str, list[str]]:
    """The nearest words of each in the table of the encoder, of those that are one piece."""
    pieces = (ENCODER_DATA / ENCODER_VOCABULARY).read_text(encoding="utf-8").split("\n")
    rows = [row for row, piece in enumerate(pieces) if len(piece) > 2 and piece in words]
    with np.load(ENCODER_DATA / ENCODER_WEIGHTS) as file:
        table = file["table"][rows].astype(np.float32) * file["table_scale"][rows, None]
        table = table @ file["mix"].astype(np.float32)
    table -= table.mean(axis=0)
    table /= np.linalg.norm(table, axis=1, keepdims=True) + 1e-9
    found = {}
    for start in range(0, len(rows), 2_000):
        near = table[start : start + 2_000] @ table.T
        best = np.argpartition(-near, NEIGHBOURS, axis=1)[:, : NEIGHBOURS + 1]
        for at, others in enumerate(best, start):
            found[pieces[rows[at]]] = [pieces[rows[one]] for one in others if one != at]
    return found


def replacement(word: str, known: Lexicon, draw: random.Random) -> str | None:
    """Another word of the same kind; None for one that stays."""
    lower = word.lower()
    if word[0].isdigit():
        return "".join(
            str(draw.randint(int(at == 0), 9))
            if one.isdigit() and (len(word) == 1 or draw.random() >= 0.35)
            else one
            for at, one in enumerate(word)
        )
    if lower in known.common:
        return None
    for several in (DAYS, MONTHS):
        if lower in several:
            return draw.choice(several).capitalize()
    if lower in known.near:
        other = draw.choice(known.near[lower])
        return other.capitalize() if word[0].isupper() else other
    return draw.choice(known.names) if word[0].isupper() and len(word) > 2 else None


class Alteration:
    """Replaces words of texts, the same word always by the same other one."""

    def __init__(
        self, texts: Sequence[str], count: int, known: Lexicon, draw: random.Random
    ) -> None:
        words = dict.fromkeys(word for text in texts for word in WORD.findall(text))
        # Values are numbers and names more often than not.
        order = sorted(words, key=lambda word: draw.random() - 0.35 * (not word[0].islower()))
        chosen = ((word, replacement(word, known, draw)) for word in order)
        changed = ((word, other) for word, other in chosen if other and other != word)
        self.words = dict(islice(changed, count))

    def __call__(self, text: str) -> str:
        return WORD.sub(lambda found: self.words.get(found.group(), found.group()), text)


def alter(pair: Pair, known: Lexicon, draw: random.Random) -> Pair:
    """The pair once more, in one of seven ways."""
    older, newer = pair
    few = draw.choice((1, 1, 2, 3))
    way = draw.random()
    if way < 0.40:
        share = draw.uniform(0.1, 0.4)
        words = len({*WORD.findall(older), *WORD.findall(newer)})
        both = Alteration(pair, max(1, int(share * words)), known, draw)
        return both(older), both(newer)
    if way < 0.62:
        return older, Alteration((newer,), few, known, draw)(newer)
    if way < 0.72:
        return Alteration((older,), few, known, draw)(older), newer
    if way < 0.80:
        return older, Alteration((older,), few, known, draw)(older)
    if way < 0.86:
        both = Alteration(pair, draw.randint(1, 4), known, draw)
        return both(older), Alteration((newer,), few, known, draw)(both(newer))
    if way < 0.93:
        return Alteration((newer,), draw.randint(0, 1), known, draw)(newer), older
    return draw.choice(CLAUSE.split(older)), draw.choice(CLAUSE.split(newer))


Way = Callable[[Any, Any, random.Random], Pair]


def alter_block(given: tuple[int, Sequence[Any]], known: Any, way: Way) -> list[Pair]:
    seed, pairs = given
    draw = random.Random(seed)
    return [way(pair, known, draw) for pair in pairs]


def alter_pairs(pairs: Sequence[Any], known: Any, way: Way = alter) -> list[Pair]:
    """Each pair altered once, without repetitions."""
    blocks = [(start, pairs[start : start + BLOCK]) for start in range(0, len(pairs), BLOCK)]
    with Pool() as pool:
        made = pool.map(partial(alter_block, known=known, way=way), blocks)
    return list(dict.fromkeys(pair for some in made for pair in some if all(pair)))
