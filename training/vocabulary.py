"""The encoder's vocabulary: that of the teacher, and pieces of the other languages after it.

The teacher's ids stay as they are. Latin and Cyrillic words and kana are learnt as word pieces
on the foreign texts; Chinese characters are words of their own. Each new piece also gets the
English pieces that it is translated by most often: its row of the table starts as theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np

from bethink.models.embed.tokenizers import BertTokenizer

VOICE_MARKS = "\u3099\u309a"
# The old vocabulary has control tokens and single characters first, then words by frequency.
FIRST_WORD = 1996
# New pieces of each script; characters of everyday use are there even if no text has them.
LATIN, CYRILLIC, KANA, CHARACTERS = 12_500, 5_200, 2_200, 5_600
# Everyday words of a language that are pieces as a whole.
EVERYDAY = {"ru": 2_400, "ja": 0}
EACH_EVERYDAY = 900
MAX_ENGLISH = 2
MIN_USES = 6
# A new piece that English texts would use this often as often as foreign ones is left out.
ENGLISH_SHARE, LAST_ENGLISH_SHARE = 0.15, 0.04
HINTS, HINT_PIECES = 6, 40
_KANA = re.compile("[\u3040-\u30ff]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_CHARACTER = re.compile("[\u3400-\u9fff\uf900-\ufaff]")


def make_tokenizer(pieces: Sequence[str]):
    """The library's tokenizer of a vocabulary; it gives the ids that the package's own gives."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    kept = VOICE_MARKS if "##" + VOICE_MARKS[0] in ids else ""
    marks = rf"(?![{kept}])\p{{Mn}}" if kept else r"\p{Mn}"
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.BertNormalizer(
                clean_text=True, handle_chinese_chars=True, strip_accents=False, lowercase=False
            ),
            normalizers.NFD(),
            normalizers.Replace(Regex(marks), ""),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    tokenizer.encode_special_tokens = True
    return tokenizer


@cache
def _plain_tokenizer():
    return make_tokenizer(["[UNK]", "[CLS]", "[SEP]", "##" + VOICE_MARKS[0]])


def count_words(texts: Iterable[str]) -> Counter[str]:
    """How often each word occurs, as the vocabulary spells it."""
    split = _plain_tokenizer()
    words: Counter[str] = Counter()
    for text in texts:
        plain = split.normalizer.normalize_str(text)
        words.update(word for word, _ in split.pre_tokenizer.pre_tokenize_str(plain))
    return words


def learn_pieces(words: Counter[str], size: int) -> list[str]:
    """Word pieces of some words, the most useful first."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=4, special_tokens=["[UNK]"], show_progress=False
    )

    def lines() -> Iterator[str]:
        for word, count in words.items():
            if len(word) <= 30:
                times = min(count, 2000)
                for at in range(0, times, 100):
                    yield " ".join([word] * min(100, times - at))

    tokenizer.train_from_iterator(lines(), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)[1:]


def everyday_words(pairs: Iterable[tuple[str, str, str]], old: Sequence[str]) -> dict[str, list]:
    """Of each language the words whose translation is one English word, frequent ones first.

    The old vocabulary is ordered by frequency. A word comes with its English one.
    """
    ranks = {piece: place for place, piece in enumerate(old) if place >= FIRST_WORD}
    found: dict[str, dict[str, tuple[int, str]]] = {}
    for language, left, right in pairs:
        english = right.lower().removeprefix("to ")
        if english in ranks and ((left.isalpha() and len(left) > 2) or _CHARACTER.search(left)):
            known = found.setdefault(language, {})
            known[left] = min(known.get(left, (len(old), "")), (ranks[english], right))
    return {
        language: [(left, right) for left, (_, right) in sorted(words.items(), key=lambda x: x[1])]
        for language, words in found.items()
    }


def learn_vocabulary(
    old: Sequence[str],
    foreign: dict[str, Counter[str]],
    english: Counter[str],
    everyday: dict[str, list],
) -> list[str]:
    """The old pieces and the new ones after them. Words are counted by language."""
    groups: dict[str, Counter[str]] = {"latin": Counter(), "cyrillic": Counter(), "kana": Counter()}
    characters: Counter[str] = Counter()
    most = max(sum(words.values()) for words in foreign.values())
    for words in foreign.values():
        weight = min(4.0, (most / max(1, sum(words.values()))) ** 0.5)
        for word, count in words.items():
            if _CHARACTER.match(word):
                characters[word] += count
            elif count > 1:
                script = "kana" if _KANA.search(word) else "latin"
                script = "cyrillic" if _CYRILLIC.search(word) else script
                groups[script][word] += int(count * weight) + 1
    known = set(old)
    limits = {"latin": LATIN, "cyrillic": CYRILLIC, "kana": KANA}
    learnt: dict[str, list[str]] = {}
    for script, words in groups.items():
        found = learn_pieces(words, int(2.2 * limits[script]) + 8000 * (script == "latin"))
        learnt[script] = [piece for piece in found if piece not in known and piece.strip("#")]
    banned: set[str] = set()
    chosen: list[str] = []
    for _ in range(4):
        chosen = [
            piece
            for script, pieces in learnt.items()
            for piece in [one for one in pieces if one not in banned][: limits[script]]
        ]
        uses, inside = count_uses(known, chosen, groups.values(), english)
        banned |= {
            piece
            for piece in chosen
            if len(piece.strip("#")) > 1
            and (uses[piece] < MIN_USES or inside[piece] > ENGLISH_SHARE * uses[piece])
        }
    chosen = [piece for piece in chosen if piece not in banned]
    for language, words in everyday.items():
        # One word for each English one: the shortest, which is likely to be the usual one.
        usual: dict[str, str] = {}
        for left, right in words[:30_000]:
            usual[right.lower()] = min(usual.get(right.lower(), left), left, key=len)
        plain = [next(iter(count_words([left])), "") for left in usual.values()]
        fresh = [
            word
            for word in dict.fromkeys(plain)
            if word not in known and not _CHARACTER.search(word) and not _KANA.search(word)
            and english[word] <= MAX_ENGLISH
        ]  # fmt: skip
        chosen += fresh[: EVERYDAY.get(language, EACH_EVERYDAY)]
    for _ in range(4):  # without one piece a word may begin with another
        uses, inside = count_uses(known, chosen, groups.values(), english)
        chosen = [
            piece
            for piece in chosen
            if inside[piece] <= max(MAX_ENGLISH, LAST_ENGLISH_SHARE * uses[piece])
            or len(piece.strip("#")) == 1
        ]
    marks = ["##" + mark for mark in VOICE_MARKS]
    return list(dict.fromkeys([*old, *marks, *chosen, *choose_characters(characters, known)]))


def count_uses(
    known: set[str], chosen: list[str], foreign: Iterable[Counter[str]], english: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    """How often each new piece is used in foreign and in English texts."""
    names = ["[UNK]", "[CLS]", "[SEP]", *sorted(known - {"[UNK]", "[CLS]", "[SEP]"}), *chosen]
    split = BertTokenizer("\n".join(names).encode())
    counted = (Counter[str](), Counter[str]())
    for uses, words in ((counted[0], foreign), (counted[1], [english])):
        for some in words:
            for word, count in some.items():
                for number, _ in split._pieces(word):  # noqa: SLF001
                    uses[names[number]] += count
    return counted


def choose_characters(seen: Counter[str], known: set[str]) -> list[str]:
    """Chinese characters: those of the texts, then those of the first levels of GB 2312 and JIS."""
    found = dict.fromkeys(one for one, count in seen.most_common() if count > 1)
    for codec, rows in (("gb2312", range(0xB0, 0xD8)), ("euc_jp", range(0xB0, 0xD0))):
        for row in rows:
            for cell in range(0xA1, 0xFF):
                found.update(dict.fromkeys(bytes([row, cell]).decode(codec, "ignore")))
    return [one for one in found if len(one) == 1 and one not in known][:CHARACTERS]


def translation_hints(
    pairs: Iterable[tuple[Sequence[int], Sequence[int]]], first: int, size: int, english: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each new piece the English pieces it is translated by, and their shares.

    Each piece of the original gets an equal part of a pair, so a short one says more; what
    goes with a piece no oftener than with any other says nothing.
    """
    here, there, count = np.zeros(size), np.zeros(english), 0
    buffer: list[tuple[np.ndarray, np.ndarray]] = []
    counted: list[tuple[np.ndarray, np.ndarray]] = []

    def flush(rows: list[tuple[np.ndarray, np.ndarray]]) -> None:
        codes, places = np.unique(np.concatenate([one for one, _ in rows]), return_inverse=True)
        counted.append((codes, np.bincount(places, np.concatenate([one for _, one in rows]))))

    for left, right in pairs:
        new = np.unique(np.asarray(left, np.int64))
        new = new[new >= first]
        theirs = np.unique(np.asarray(right, np.int64))
        if 0 < len(theirs) <= HINT_PIECES:
            count += 1
            there[theirs] += 1 / len(theirs)
            here[new] += 1
            codes = (new[:, None] * english + theirs).ravel()
            buffer.append((codes, np.full(len(codes), 1 / len(theirs), np.float32)))
        if len(buffer) == 100_000:
            flush(buffer)
            buffer.clear()
    flush(buffer)
    merged = counted[:]
    counted.clear()
    flush(merged)
    codes, together = counted[0]
    pieces, words = np.divmod(codes, english)
    share = together / (here[pieces] + 0.5)
    scores = np.maximum(0, share * np.log(share * count / there[words])) ** 1.5
    order = np.lexsort((-scores, pieces))
    pieces, words, scores = pieces[order], words[order], scores[order]
    rank = np.arange(len(pieces)) - np.searchsorted(pieces, pieces)
    top = rank < HINTS
    best = np.zeros((size - first, HINTS), np.uint16)
    shares = np.zeros((size - first, HINTS))
    best[pieces[top] - first, rank[top]] = words[top]
    shares[pieces[top] - first, rank[top]] = scores[top]
    total = shares.sum(1, keepdims=True)
    return best, (shares / np.where(total > 0, total, 1)).astype(np.float16)
