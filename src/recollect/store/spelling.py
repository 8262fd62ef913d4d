"""How alike two words are spelled: slips of the finger, swapped letters, parts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from string import ascii_lowercase

SHORTEST_PART = 4  # letters; shorter parts ("are" in "middleware") say nothing
PART_WORTH = 0.6  # a part is worth less than the worst slip of a whole word


def slips_allowed(word: str) -> int:
    """How many slips a word may have and still be read as another. Figures have none:
    2023 is not 2024."""
    if len(word) < 3 or not word.isalpha():
        return 0
    return 1 if len(word) <= 5 else 2


def slips(one: str, other: str, most: int) -> int | None:
    """Letters left out, added, changed or swapped with their neighbour; None above
    ``most``.

    Optimal string alignment, a column of the table at a time: its rows are bits (Hyyrö,
    "A bit-vector algorithm for computing Levenshtein and Damerau edit distances", 2003).
    """
    if abs(len(one) - len(other)) > most:
        return None
    places = _places(one)
    column, last = (1 << len(one)) - 1, (1 << len(one)) >> 1
    made = len(one)
    # In which rows the table rises or falls from the row above, and where it stays as it
    # was on the diagonal.
    rises, falls, stays, before = column, 0, 0, 0
    for letter in other:
        here = places.get(letter, 0)
        swapped = ((~stays & here) << 1) & before
        stays = (((here & rises) + rises) ^ rises) | here | falls | swapped
        # The same from the column to the left.
        up, down = falls | (column & ~(stays | rises)), stays & rises
        made += bool(up & last) - bool(down & last)
        up = (up << 1) | 1
        rises = ((down << 1) | ~(stays | up)) & column
        falls = up & stays & column
        before = here
    if not one:
        made = len(other)
    return made if made <= most else None


@lru_cache(maxsize=64)
def _places(word: str) -> dict[str, int]:
    """For each letter the places where it stands, as bits."""
    places: dict[str, int] = {}
    for at, letter in enumerate(word):
        places[letter] = places.get(letter, 0) | 1 << at
    return places


def likeness(word: str, other: str) -> float:
    """1 for the same word, less for each slip, at most `PART_WORTH` for a part of it,
    0 for words that have nothing to do with each other."""
    if word == other:
        return 1.0
    most = slips_allowed(word)
    made = slips(word, other, most) if most else None
    if made is not None and (len(word) > 3 or sorted(word) == sorted(other)):
        return 1.0 - made / max(len(word), len(other))
    short, long = sorted((word, other), key=len)
    if len(short) >= SHORTEST_PART and short in long:
        return PART_WORTH * len(short) / len(long)
    return 0.0


def one_slip_away(word: str) -> Iterator[str]:
    """Every spelling with one slip. Short words with swapped letters share no trigram
    with what was meant, so these are looked up one by one."""
    letters = sorted({*ascii_lowercase, *word})
    for at in range(len(word)):
        head, tail = word[:at], word[at + 1 :]
        yield head + tail
        if tail:
            yield head + tail[0] + word[at] + tail[1:]
        for letter in letters:
            yield head + letter + tail
            yield head + letter + word[at:]
    for letter in letters:
        yield word + letter


def trigrams(word: str) -> tuple[str, ...]:
    """All runs of three letters, each once."""
    return tuple(dict.fromkeys(word[at : at + 3] for at in range(len(word) - 2)))


def piece_in(piece: str, text: str) -> tuple[float, str] | None:
    """The best place of a piece in a text, both folded: what it is worth there, and the
    word around it. A piece of three letters counts as a word of its own only."""
    best: tuple[float, str] | None = None
    at = text.find(piece)
    while at >= 0:
        start, end = at, at + len(piece)
        while start > 0 and text[start - 1].isalnum():
            start -= 1
        while end < len(text) and text[end].isalnum():
            end += 1
        if end - start == len(piece):
            return 1.0, piece
        if len(piece) >= SHORTEST_PART:
            worth = PART_WORTH * len(piece) / (end - start)
            if best is None or worth > best[0]:
                best = worth, text[start:end]
        at = text.find(piece, end)
    return best
