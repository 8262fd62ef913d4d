"""SimHash signatures: 256 bits of a text's words, for similarity without a model.

Charikar's random hyperplanes (STOC 2002): every index word has its own 256 random
numbers, drawn from a hash of the word; a text's are the sums over its words, and the
signature keeps their signs. Two texts agree in a bit with a probability of 1 - angle /
pi, so the share of equal bits estimates the cosine of their word sets: texts without a
common word agree in half of them, give or take a 32nd.

- Stop words are left out, and no two words share their numbers, so unrelated texts stay
  apart.
- Only the stored side is cut down to signs. The query keeps its sums, which gives a
  quarter more accuracy from the same bits.
- A short query is compared by its own length: if all its words occur in a long memory
  the angle is still wide, so the cosine is normalised by the best that so many words
  could reach there. That only counts where chance does not explain the agreement.
- A long text also has a signature for every window of twelve words: a query of three
  words drowns in sixty, not in twelve.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from bethink.core.arrays import NDArray, mix_bits
from bethink.core.named_tuple import NamedTuple

if TYPE_CHECKING:
    Bits = NDArray[np.uint8]
    StepSums = NDArray[np.int16]
    SumVector = NDArray[np.int32]


SIGNATURE_BITS = 256
SIGNATURE_BYTES = SIGNATURE_BITS // 8
STEP_WORDS = 6  # words; two steps are a window
MAX_WORDS_WITHOUT_WINDOWS = 24  # words; longer texts have windows
MAX_WINDOWS = 64
CHANCE_THRESHOLD_SIGMA = 4.5  # standard deviations; agreement below this may be chance
# Share of a sum's direction that its signs keep.
SIGN_QUANTISATION_FACTOR = float(np.sqrt(2.0 / np.pi))


class TextSignatures(NamedTuple):
    """The signatures of one text: bits of the whole and of each window, and word counts."""

    bits: Bits
    counts: tuple[int, ...]


def sign_texts(texts: Sequence[Sequence[str]]) -> list[TextSignatures]:
    """Return the signatures of several texts, each given by its distinct content terms.

    A text without any has none.
    """
    if not texts:
        return []
    sums, starts = _step_sums(texts)
    signed = np.packbits(_text_sums(sums, starts) > 0, axis=1)
    signatures = []
    row = 0
    for words, start in zip(texts, starts, strict=True):
        rows = signed[row : row + bool(words)]
        row += bool(words)
        steps = len(_split_steps(words))
        if len(words) <= MAX_WORDS_WITHOUT_WINDOWS:
            signatures.append(TextSignatures(rows, (len(words),) if words else ()))
            continue
        windows = min(steps - 1, MAX_WINDOWS)
        pairs = sums[start : start + windows] + sums[start + 1 : start + windows + 1]
        lengths = [min(2 * STEP_WORDS, len(words) - STEP_WORDS * at) for at in range(windows)]
        rows = np.concatenate([rows, np.packbits(pairs > 0, axis=1)])
        signatures.append(TextSignatures(rows, (len(words), *lengths)))
    return signatures


def query_sums(words: Sequence[str]) -> SumVector:
    """Return the summed hyperplane numbers of a query's words; there must be one."""
    sums: SumVector = _text_sums(*_step_sums([words]))[0]
    return sums


def _split_steps(words: Sequence[str]) -> list[Sequence[str]]:
    return [words[at : at + STEP_WORDS] for at in range(0, len(words), STEP_WORDS)]


def _step_sums(texts: Sequence[Sequence[str]]) -> tuple[StepSums, list[int]]:
    """Sum the words of each step of each text; return where each text's steps begin."""
    numbers_by_word: dict[str, int] = {}
    word_rows: list[list[int]] = []
    starts: list[int] = []
    for words in texts:
        starts.append(len(word_rows))
        for step in _split_steps(words):
            own = [numbers_by_word.setdefault(word, len(numbers_by_word)) for word in step]
            word_rows.append(own + [-1] * (STEP_WORDS - len(own)))
    numbers = _word_numbers(list(numbers_by_word))
    index = np.array(word_rows, dtype=np.int64).reshape(-1, STEP_WORDS)
    sums = np.zeros((len(word_rows), SIGNATURE_BITS), np.int16)
    for column in index.T:
        sums += np.take(numbers, column, axis=0)
    return sums, starts


def _text_sums(sums: StepSums, starts: Sequence[int]) -> SumVector:
    """Sum the steps of each text that has any."""
    ends = [*starts[1:], len(sums)]
    filled = [start for start, end in zip(starts, ends, strict=True) if end > start]
    if not filled:
        return np.empty((0, SIGNATURE_BITS), np.int32)
    wholes: SumVector = np.add.reduceat(sums, filled, axis=0, dtype=np.int32)
    return wholes


def _word_numbers(words: Sequence[str]) -> NDArray[np.int16]:
    """Return every word's own 256 random numbers, plus a row of zeros for padding.

    They are odd, from -255 to 255, so that no sum is biased.
    """
    seeds = b"".join(blake2b(word.encode(), digest_size=8).digest() for word in words)
    state = np.frombuffer(seeds, dtype="<u8")[:, None] + _SPLITMIX_STREAM
    drawn = mix_bits(state).astype("<u8", copy=False).view(np.int8).reshape(-1, SIGNATURE_BITS)
    numbers = np.zeros((len(words) + 1, SIGNATURE_BITS), np.int16)
    numbers[:-1] = 2 * drawn.astype(np.int16) + 1
    return numbers


_SPLITMIX_STREAM = np.arange(1, SIGNATURE_BITS // 8 + 1, dtype=np.uint64) * np.uint64(
    0x9E3779B97F4A7C15
)


def signature_similarity(
    agreement: NDArray[np.float64], counts: NDArray[np.int64], query_words: int
) -> NDArray[np.float64]:
    """Return the similarity of texts to a query of so many words, as a share of equal bits.

    ``agreement`` is the cosine of the query's sums with each row of signs.
    """
    cosines = np.clip(agreement / SIGN_QUANTISATION_FACTOR, -1.0, 1.0)
    scale = np.sqrt(np.maximum(counts / query_words, 1.0))
    significant = agreement * np.sqrt(SIGNATURE_BITS) >= CHANCE_THRESHOLD_SIGMA
    scaled = np.where(significant, np.minimum(cosines * scale, 1.0), cosines)
    return 1.0 - np.arccos(scaled) / np.pi
