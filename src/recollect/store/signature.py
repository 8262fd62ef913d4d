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
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Bits = NDArray[np.uint8]
    Steps = NDArray[np.int16]
    Sums = NDArray[np.int32]

BITS = 256
BYTES = BITS // 8
STEP = 6  # words; two steps are a stretch
WHOLE_UP_TO = 24  # words; a text that is longer has stretches
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
    if not texts:
        return []
    added, starts = _added(texts)
    signed = np.packbits(_wholes(added, starts) > 0, axis=1)
    made = []
    place = 0
    for words, start in zip(texts, starts, strict=True):
        rows = signed[place : place + bool(words)]
        place += bool(words)
        steps = len(_steps(words))
        if len(words) <= WHOLE_UP_TO:
            made.append(Signatures(rows, (len(words),) if words else ()))
            continue
        stretches = min(steps - 1, MOST_STRETCHES)
        pairs = added[start : start + stretches] + added[start + 1 : start + stretches + 1]
        lengths = [min(2 * STEP, len(words) - STEP * at) for at in range(stretches)]
        rows = np.concatenate([rows, np.packbits(pairs > 0, axis=1)])
        made.append(Signatures(rows, (len(words), *lengths)))
    return made


def question_sums(words: Sequence[str]) -> Sums:
    """A question's words added up; there must be one."""
    added: Sums = _wholes(*_added([words]))[0]
    return added


def _steps(words: Sequence[str]) -> list[Sequence[str]]:
    return [words[at : at + STEP] for at in range(0, len(words), STEP)]


def _added(texts: Sequence[Sequence[str]]) -> tuple[Steps, list[int]]:
    """The words of each step of each text added up, and where each text's steps begin."""
    known: dict[str, int] = {}
    places: list[list[int]] = []
    starts: list[int] = []
    for words in texts:
        starts.append(len(places))
        for step in _steps(words):
            own = [known.setdefault(word, len(known)) for word in step]
            places.append(own + [-1] * (STEP - len(own)))
    numbers = _numbers(list(known))
    index = np.array(places, dtype=np.int64).reshape(-1, STEP)
    added = np.zeros((len(places), BITS), np.int16)
    for column in index.T:
        added += np.take(numbers, column, axis=0)
    return added, starts


def _wholes(added: Steps, starts: Sequence[int]) -> Sums:
    """The steps of each text that has any added up."""
    ends = [*starts[1:], len(added)]
    filled = [start for start, end in zip(starts, ends, strict=True) if end > start]
    if not filled:
        return np.empty((0, BITS), np.int32)
    wholes: Sums = np.add.reduceat(added, filled, axis=0, dtype=np.int32)
    return wholes


def _numbers(words: Sequence[str]) -> NDArray[np.int16]:
    """Every word's own 256 random numbers, odd ones from -255 to 255 so that no sum leans
    to a side; below them a row of zeros, for places without a word."""
    seeds = b"".join(blake2b(word.encode(), digest_size=8).digest() for word in words)
    state = np.frombuffer(seeds, dtype="<u8")[:, None] + _STREAM
    drawn = _mixed(state).astype("<u8", copy=False).view(np.int8).reshape(-1, BITS)
    numbers = np.zeros((len(words) + 1, BITS), np.int16)
    numbers[:-1] = 2 * drawn.astype(np.int16) + 1
    return numbers


_STREAM = np.arange(1, BITS // 8 + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads every bit over all others (the finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


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
