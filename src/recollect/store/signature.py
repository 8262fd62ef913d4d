"""Signatures: 256 bits of a text's words, for likeness without a model.

Charikar's hyperplanes (STOC 2002): every index word has its own 256 random numbers,
drawn from a hash of the word; a text's are the sums over its words, and the signature
keeps their signs. Two texts agree in a bit with a chance of 1 - angle / pi, so the share
of equal bits tells the cosine of their word sets: texts without a common word agree in
half of them, give or take a 32nd.

- Words that say nothing are left out, and no two words share their numbers: texts that
  have nothing in common stay apart, however common their letters are.
- Only the stored side is cut down to signs. The question keeps its sums, which tells a
  quarter more from the same bits.
- A short question is compared with its own length: if all its words stand in a long
  memory the angle is still wide, so the cosine is set against the best that so many
  words could reach there. That only counts where chance does not explain the agreement.
- A long text has, beside its own, a signature for every stretch of twelve words: a
  question of three words drowns in sixty, not in twelve.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import shake_128
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bits = NDArray[np.uint8]
    Sums = NDArray[np.int32]

BITS = 256
BYTES = BITS // 8
STRETCH, STEP = 12, 6  # words
MOST_STRETCHES = 64
BY_CHANCE = 4.5  # standard deviations; agreement below this may be chance
# What the signs of a sum keep of its direction.
KEPT = float(np.sqrt(2.0 / np.pi))


class Signatures(NamedTuple):
    """What is kept of one text: a row of bits for the whole and for each stretch, and
    how many words each stands for."""

    bits: Bits
    counts: tuple[int, ...]


def sign_all(texts: Sequence[Sequence[str]]) -> list[Signatures]:
    """The signatures of several texts, each given by its telling words, each word once.
    A text without any has none."""
    pieces = [stretches(words) for words in texts]
    flat = [piece for parts in pieces for piece in parts]
    if not flat:
        return [Signatures(np.empty((0, BYTES), np.uint8), ()) for _ in texts]
    rows = np.packbits(sums(flat) > 0, axis=1)
    made = []
    at = 0
    for parts in pieces:
        made.append(Signatures(rows[at : at + len(parts)], tuple(map(len, parts))))
        at += len(parts)
    return made


def stretches(words: Sequence[str]) -> list[Sequence[str]]:
    """The whole and, of a long text, the stretches it is made of."""
    if not words:
        return []
    if len(words) <= STRETCH + STEP:
        return [words]
    starts = range(0, len(words) - STEP, STEP)[:MOST_STRETCHES]
    return [words, *(words[at : at + STRETCH] for at in starts)]


def sums(texts: Sequence[Sequence[str]]) -> Sums:
    """Each text's words added up; none may be empty."""
    drawn = b"".join(_numbers(word) for words in texts for word in words)
    numbers = np.frombuffer(drawn, dtype=np.int8).reshape(-1, BITS)
    counts = np.array([len(words) for words in texts])
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    added = np.add.reduceat(numbers, starts, axis=0, dtype=np.int32)
    # Twice and one more each: a signed byte's middle is -1/2, and a sum is never 0 alike.
    return 2 * added + counts[:, None].astype(np.int32)


@lru_cache(maxsize=8192)
def _numbers(word: str) -> bytes:
    """A word's own random numbers, a signed byte each."""
    return shake_128(word.encode()).digest(BITS)


def likeness(
    agreement: NDArray[np.float64], counts: NDArray[np.int64], asked: int
) -> NDArray[np.float64]:
    """How alike texts are to a question of ``asked`` words, on the scale of equal bits.

    ``agreement`` is the cosine of the question's sums with each row of signs.
    """
    cosines = np.clip(agreement / KEPT, -1.0, 1.0)
    reach = np.sqrt(np.maximum(counts / asked, 1.0))
    telling = agreement * np.sqrt(BITS) >= BY_CHANCE
    raised = np.where(telling, np.minimum(cosines * reach, 1.0), cosines)
    return 1.0 - np.arccos(raised) / np.pi
