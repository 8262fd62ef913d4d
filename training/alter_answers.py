"""Write pairs of a question and a note again: what the model of answers learns to read from.

    python training/alter_answers.py ANSWERS OUT --altered 1000000

ANSWERS is what ``answers.py`` wrote; OUT gets the word pieces of the new pairs. Names, numbers and
words are replaced alike on both sides, in the question alone or in the note alone; another thing
is asked for; of a question a clause or its words alone are left; a note is cut to some of its
sentences, or stands among others of its source. What the new pair is, only the teachers say.
"""

from __future__ import annotations

import argparse
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

from alter import (
    BLOCK,
    CLAUSE,
    ENGLISH,
    WORD,
    Lexicon,
    Pair,
    alter_pairs,
    common_words,
    neighbours_of,
    read_lexicon,
    replacement,
)
from answers import ANSWERS, ANSWERS_NOT, NOTE_PIECES, OTHER_LINE, QUESTION_PIECES, unpack_texts
from pairs import student_ids, teacher_ids

ALTERED, MAX_CHARACTERS = 1_000_000, 400
# Of which pairs they are made: unlabelled ones have no kind.
UNLABELLED = -1
SHARES = {ANSWERS: 0.42, ANSWERS_NOT: 0.32, OTHER_LINE: 0.08, UNLABELLED: 0.18}
# How often words are replaced alike on both sides first, and how often a note is among others.
ALIKE, SURROUNDED = 0.7, 0.14
# So few characters are no sentence.
SHORT = 6
OWNER = re.compile(r"['’]s$")
SPEAKER = re.compile(r"\w[\w .-]{0,20}: ")
SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？])|\n+")
FOREIGN = re.compile(
    r"\b(?:der|die|das|den|und|ist|nicht|ich|im|wie|wo|le|la|les|des|est|une|el|los|que|con|por|il|che|"
    r"di|per|het|een|van|nie|jest|na|si|w|do|para|o|os|em)\b"
)
ASKED = re.compile(
    r"\b(?:what time|what|when|where|who|whose|why|which|how (?:many|much|long|often|old|far)|how)\b",
    re.IGNORECASE,
)
OTHERS_ASKED = [
    "what", "what time", "when", "where", "who", "whose", "why", "which", "how", "how many",
    "how much", "how long", "how often", "since when",
]  # fmt: skip

# A question, a note, and another text of the note's source or nothing.
Asked = tuple[str, str, str]


class Words(NamedTuple):
    """What may stand for a word in English, and in other languages."""

    english: Lexicon
    foreign: Lexicon
    names: frozenset[str]


def is_english(text: str) -> bool:
    low = text.lower()
    english, foreign = len(ENGLISH.findall(low)), len(FOREIGN.findall(low))
    return english > foreign or (english == foreign and text.isascii())


def read_words(texts: Sequence[str]) -> Words:
    english = read_lexicon(texts)
    english = english._replace(names=[name for name in english.names if name.isalnum()])
    others = Counter(
        word.lower() for text in texts if not is_english(text) for word in WORD.findall(text)
    )
    near = neighbours_of({word for word in others if len(word) > 3})
    foreign = Lexicon(english.names, near, common_words(others))
    return Words(english, foreign, frozenset(english.names))


class Exchange:
    """Replaces words in several texts, however they are written: Maya, maya, Maya's."""

    def __init__(self, texts: Sequence[str], count: int, known: Words, draw: random.Random) -> None:
        found: dict[str, str] = {}
        english = is_english("\n".join(texts))
        for text in texts:
            for match in WORD.finditer(text):
                word = OWNER.sub("", match.group())
                low, start = word.lower(), match.start()
                inside = english and start > 1 and text[start - 2] not in '.!?:"\n'
                if word[0].isupper() and word.isalnum() and (inside or word in known.names):
                    found[low] = word
                elif word.isalnum() or word[0].isdigit():
                    found.setdefault(low, low)
        # Values are numbers and names more often than not.
        order = sorted(found, key=lambda low: draw.random() - 0.35 * (not found[low][0].islower()))
        own = known.english if english else known.foreign
        chosen = ((low, replacement(found[low], own, draw)) for low in order)
        changed = ((low, other) for low, other in chosen if other and other.lower() != low)
        self.words = dict(islice(changed, count))

    def __call__(self, text: str) -> str:
        return WORD.sub(self.exchange, text)

    def exchange(self, found: re.Match[str]) -> str:
        word = found.group()
        bare = OWNER.sub("", word)
        other = self.words.get(bare.lower())
        if other is None:
            return word
        other = other.lower() if bare[0].islower() else other[0].upper() + other[1:]
        return other + word[len(bare) :]


def alter_asked(given: Asked, known: Words, draw: random.Random) -> Pair:
    """The question and the note once more; nothing where they came out as they were."""
    made = alter_once(given, known, draw)
    return made if made != given[:2] else ("", "")


def alter_once(given: Asked, known: Words, draw: random.Random) -> Pair:
    question, note, other = given
    way = draw.random()
    if way < 0.28 or draw.random() < ALIKE:
        words = {word.lower() for word in (*WORD.findall(question), *WORD.findall(note))}
        count = max(1, int(draw.uniform(0.1, 0.4) * len(words)))
        both = Exchange((question, note), count, known, draw)
        question, note = both(question), both(note)
    few = draw.choice((1, 1, 2, 3))
    if other:
        return question, surround(note, other, draw)
    if way < 0.28:
        return question, note
    if way < 0.53:
        return Exchange((question,), few, known, draw)(question), note
    if way < 0.67:
        return question, Exchange((note,), few, known, draw)(note)
    if way < 0.77:
        asked = draw.choice(OTHERS_ASKED)
        return ASKED.sub(lambda found: like(found.group(), asked), question, count=1), note
    if way < 0.90:
        return question, cut(note, draw)
    if way < 0.95:
        return draw.choice(CLAUSE.split(question)), note
    return keywords(question, known, draw), note


def like(old: str, new: str) -> str:
    return new.capitalize() if old[0].isupper() else new


def surround(note: str, other: str, draw: random.Random) -> str:
    """The note with sentences of another one before or after it, or both."""
    bare = SPEAKER.sub("", other, count=1)
    parts = [part for part in SENTENCE.split(bare) if part.strip()]
    if not parts:
        return note
    at = draw.randint(0, len(parts))
    first, last = parts[max(0, at - 2) : at], parts[at : at + 2]
    spoken = SPEAKER.match(note)
    start = spoken.end() if spoken else 0
    return note[:start] + " ".join((*first, note[start:], *last))


def cut(note: str, draw: random.Random) -> str:
    """One sentence of the note, all but one, or one clause; who says it stays."""
    spoken = SPEAKER.match(note)
    start = spoken.end() if spoken else 0
    parts = [part for part in SENTENCE.split(note[start:]) if len(part) > SHORT]
    if len(parts) < 2:
        parts = CLAUSE.split(note[start:])
    at = draw.randrange(len(parts))
    kept = parts[:at] + parts[at + 1 :] if len(parts) > 2 and draw.random() < 0.5 else [parts[at]]
    return note[:start] + " ".join(kept)


def keywords(question: str, known: Words, draw: random.Random) -> str:
    """The question as typed in a hurry: its words that are not common, some left out."""
    words = [word.lower() for word in WORD.findall(question)]
    telling = [word for word in words if word not in known.english.common and draw.random() < 0.85]
    return " ".join(telling[-6:]) or question


# -- all pairs


def draw_pairs(data: dict[str, np.ndarray], texts: Sequence[str], count: int) -> list[Asked]:
    """Pairs of each kind, drawn with repetition; to some notes another of the same source."""
    draw = np.random.default_rng(7)
    short = np.array([len(text) < MAX_CHARACTERS for text in texts])
    names, source = np.unique(data["sources"], return_inverse=True)
    is_note = np.ones(len(texts), bool)
    is_note[data["labelled"][:, 0]] = is_note[data["unlabelled"][:, 0]] = False
    same = [np.flatnonzero((source == place) & short & is_note) for place in range(len(names))]
    drawn: list[tuple[int, int]] = []
    for kind, share in SHARES.items():
        own = data["unlabelled"] if kind == UNLABELLED else data["labelled"][data["kinds"] == kind]
        own = own[short[own].all(axis=1)]
        drawn += own[draw.integers(len(own), size=int(count * share))].tolist()
    draw.shuffle(drawn)
    made = []
    for question, note in drawn:
        others = same[source[note]]
        chosen = len(others) and draw.random() < SURROUNDED
        other = texts[others[draw.integers(len(others))]] if chosen else ""
        made.append((texts[question], texts[note], other))
    return made


def split_block(pairs: Sequence[Pair]) -> list[np.ndarray]:
    """Of the pairs: the teacher's pieces and their numbers, then the student's."""
    texts = [text for pair in pairs for text in pair]
    most = [QUESTION_PIECES, NOTE_PIECES] * len(pairs)
    made = []
    for split in (teacher_ids, student_ids):
        rows = [ids[:size] for ids, size in zip(split(texts), most, strict=True)]
        made += [
            np.array([piece for row in rows for piece in row], np.uint16),
            np.array([len(row) for row in rows], np.uint8),
        ]
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("answers", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--altered", type=int, default=ALTERED)
    given = parser.parse_args()
    os.nice(5)
    with np.load(given.answers) as file:
        data = {
            name: file[name] for name in ("sources", "labelled", "kinds", "unlabelled", "texts")
        }
    texts = unpack_texts(data["texts"])
    altered = alter_pairs(draw_pairs(data, texts, given.altered), read_words(texts), alter_asked)
    blocks = [altered[start : start + BLOCK] for start in range(0, len(altered), BLOCK)]
    with Pool() as pool:
        parts = pool.map(split_block, blocks)
    pieces, lengths, own_pieces, own_lengths = (
        np.concatenate([part[place] for part in parts]) for place in range(4)
    )
    np.savez(
        given.out, pieces=pieces, lengths=lengths, own_pieces=own_pieces, own_lengths=own_lengths
    )
    print(f"{len(altered)} altered pairs, {pieces.size / max(1, len(altered)):.0f} pieces each",
          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
