"""How alike two words are spelled: slips of the finger, swapped letters, parts."""

from __future__ import annotations

from collections.abc import Iterator
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
    ``most``. (Optimal string alignment, over a band of the table.)"""
    if abs(len(one) - len(other)) > most:
        return None
    before: list[int] = []
    above = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        current = [row] + [most + 1] * len(other)
        low, high = max(1, row - most), min(len(other), row + most)
        for column in range(low, high + 1):
            same = letter == other[column - 1]
            current[column] = min(
                above[column - 1] + (not same), above[column] + 1, current[column - 1] + 1
            )
            swapped = (
                row > 1
                and column > 1
                and letter == other[column - 2]
                and one[row - 2] == other[column - 1]
            )
            if swapped:
                current[column] = min(current[column], before[column - 2] + 1)
        if min(current) > most:
            return None
        before, above = above, current
    return above[-1] if above[-1] <= most else None


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
