"""Near-duplicates: a small sketch to find them by, and a measure to judge them with.

Min-hashes (Broder, 1997) of the words and word pairs of a text, in six bands of three:
two texts that share eight of ten shingles meet in a band with a chance of 0.99.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from recollect.text import word_set

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BANDS = 6
ROWS = 3
NEAR = 0.8
_SEED = 0x5EED_0F_5EED
_LONGEST = 2_000  # words; what comes later changes little
# Too common to find anything by; in a pair, and in the judging, they still count.
_COMMON = """
a an and are as at be but by for from had has have he her his i if in into is it its me my of on or
our she so that the their them then there they this to us was we were what when which who will with
you your
"""
_PLAIN = frozenset(_COMMON.split())
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_DENIALS = frozenset(
    {"not", "no", "never", "don't", "doesn't", "isn't", "aren't", "won't", "can't"}
)
_DENIALS |= {"cannot", "without", "didn't", "wasn't", "shouldn't", "mustn't", "do", "does", "did"}


def sketch(folded: str) -> tuple[int, ...]:
    """Band hashes that near-duplicates share; empty where there is too little to compare.

    Takes a folded text. Stable across processes and machines: they are stored.
    """
    import numpy as np  # writing pays for it, importing this module does not

    words = _words(folded)
    if len(words) < 3:
        return ()
    hashes = np.array([crc32(word.encode()) for word in words], dtype=np.uint64)
    telling = [i for i, word in enumerate(words) if word not in _PLAIN]
    pairs = (hashes[:-1] << np.uint64(32)) | hashes[1:]
    shingles = _mixed(np.concatenate((hashes[telling], pairs)))
    multipliers, offsets, folding, places = _constants()
    lowest = (multipliers * shingles + offsets).min(axis=1).reshape(BANDS, ROWS)
    bands = (lowest * folding).sum(axis=1, dtype=np.uint64) + places
    kept: list[int] = (bands >> np.uint64(1)).tolist()
    return tuple(kept)


def _words(folded: str) -> list[str]:
    words = folded.split()
    if len(words) < 3 and not folded.isascii():
        # A script without spaces: pairs of characters are its words.
        words = sorted(word_set(folded))
    return words[:_LONGEST]


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spreads every bit over all others (the finaliser of splitmix64)."""
    import numpy as np  # as above

    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@cache
def _constants() -> tuple[NDArray[np.uint64], ...]:
    """Multipliers and offsets of the permutations, and what folds a band into one number."""
    import numpy as np  # as above

    count = BANDS * ROWS
    numbers = _mixed(np.arange(_SEED, _SEED + 2 * count + ROWS + BANDS, dtype=np.uint64))
    multipliers = (numbers[:count] | np.uint64(1)).reshape(-1, 1)
    offsets = numbers[count : 2 * count].reshape(-1, 1)
    folding = numbers[2 * count : 2 * count + ROWS] | np.uint64(1)
    return multipliers, offsets, folding, numbers[2 * count + ROWS :]


def shingles_of(folded: str) -> frozenset[str]:
    """The words and word pairs of a folded text that are compared."""
    words = _words(folded)
    pairs = (f"{one} {other}" for one, other in pairwise(words))
    return frozenset(words).union(pairs)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of shingles two texts have in common (Jaccard)."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def skeleton(folded: str) -> list[str]:
    """The words without numbers and denials. Texts that share it are near, never equal."""
    return [_NUMBER.sub("0", word) for word in _words(folded) if word not in _DENIALS]
