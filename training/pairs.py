"""Prepare what the model of two memories learns from: pairs of memories in word pieces.

    python training/pairs.py OUT [--still FILE] [--altered N]

Labelled are the pairs of ``data/pairs``, and of each store of ``data/stores`` the pairs that
its notes name, and each note with its nearest earlier ones. Texts that ask are read whole, and
without what they ask. ``--still`` is what
``still_texts.py`` wrote: texts of which none updates another, labelled so with their nearest
of the same source. Unlabelled are further neighbours among all texts, those of ``data/answers``
and ``data/questions`` too, and pairs of all kinds that ``alter.py`` writes again: of these only
the teachers say what they are.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from alter import alter_pairs, read_lexicon
from bethink.core.sentences import without_questions
from bethink.models.embed.encoder import (
    ENCODER_DATA,
    ENCODER_VOCABULARY,
    EncoderEmbedder,
    shared_tokenizer,
)
from bethink.models.embed.tokenizers import BertTokenizer

DATA = Path(__file__).resolve().parent / "data"
UPDATE, SAME, ADDS, OTHER = range(4)
# A neighbour that is neither an update nor the same: whether it adds or is another subject is
# not known. A doubtful pair is not learnt from.
NEIGHBOUR, DOUBTFUL = 4, 5
LABELS = {"update": UPDATE, "same": SAME, "adds": ADDS, "other": OTHER}
# Of a turn and four later ones: which of two updates the other, says the same, or leaves it true.
TURNS = {
    "update": (("old", "update"), ("same", "update")),
    "same": (("old", "same"),),
    "adds": (
        ("old", "ask"),
        ("old", "adds"),
        ("same", "ask"),
        ("ask", "update"),
        ("adds", "update"),
    ),
}
# What a second reading makes of a pair whose first label it does not confirm.
VERDICTS = {"U": UPDATE, "S": SAME, "N": DOUBTFUL, "?": DOUBTFUL}
# Of a text the first pieces are read.
MAX_PIECES = 80
# The teacher knows the first pieces of the encoder's vocabulary; those that it lacks (most
# Chinese characters) share rows after them.
UNKNOWN, VOCABULARY, SHARED_ROWS = 100, 30_522, 2_048
# A note's nearest earlier ones in its store.
STORE_NEIGHBOURS = 10
# A text's nearest of the same source, where none updates another.
STILL_NEIGHBOURS = 2
# Wishes told to an assistant, of which none updates another: the nearest, and others.
REQUEST, REQUEST_NEIGHBOURS, REQUESTS_DRAWN = "request", 12, 6
# Unlabelled: a text's nearest, and some of those that follow.
NEAREST, FURTHER, DRAWN = 9, 24, 3
# Altered: how many, of texts of at most so many characters, and of which pairs (unlabelled: -1).
ALTERED, MAX_CHARACTERS, UNLABELLED = 1_200_000, 360, -1
SHARES = {
    (UPDATE,): 0.34,
    (SAME,): 0.08,
    (ADDS, OTHER): 0.22,
    (NEIGHBOUR,): 0.16,
    (UNLABELLED,): 0.2,
}

Row = tuple[int, int, int]


class Texts:
    """All texts, each once, with the place where it was read first."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.sources: list[str] = []

    def add(self, text: str, source: str, is_whole: bool = False) -> int:
        text = text if is_whole else without_questions(text) or text
        if text not in self.places:
            self.places[text] = len(self.sources)
            self.sources.append(source)
        return self.places[text]


def read_lines(path: Path) -> list[dict[str, Any]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def read_pairs(path: Path) -> Iterator[tuple[str, str, str]]:
    """Older text, newer text and label: as written, or of a turn and later ones."""
    for row in read_lines(path):
        if "label" in row:
            yield row["old"], row["new"], row["label"]
            continue
        for label, pairs in TURNS.items():
            for older, newer in pairs:
                yield row[older], row[newer], label


# -- labels of a store


def label_store(notes: list[dict[str, Any]]) -> Iterator[tuple[int, int, int]]:
    """Place of the older note, place of the newer one, label: of every pair of a store.

    Notes that restate one another are one statement; in a chain of values the last one
    updates all before it.
    """
    statement = {note["id"]: note["id"] for note in notes}

    def find(one: int) -> int:
        while statement[one] != one:
            one = statement[one]
        return one

    for note in notes:
        for other in note.get("restates", ()):
            statement[find(note["id"])] = find(other)
    replaced: dict[int, set[int]] = {}
    for note in notes:
        for other in note.get("replaces", ()):
            replaced.setdefault(find(note["id"]), set()).add(find(other))
    outdated = {one: reach(one, replaced) for one in set(map(find, statement))}
    for newer, note in enumerate(notes):
        mine = find(note["id"])
        for older in range(newer):
            theirs = find(notes[older]["id"])
            label = NEIGHBOUR if theirs not in outdated[mine] else UPDATE
            yield older, newer, SAME if mine == theirs else label


def reach(start: int, replaced: dict[int, set[int]]) -> set[int]:
    """Every statement that this one replaces, directly or by what it replaces."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        fresh = replaced.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found


def pair_store(
    name: str, notes: list[dict[str, Any]], places: list[int], vectors: np.ndarray
) -> Iterator[Row]:
    """The labelled pairs of a store: those that its notes name, and near ones."""
    reviewed = {
        (row["older"], row["newer"]): VERDICTS[row["verdict"]]
        for row in read_lines(DATA / "stores" / "reviewed.jsonl")
        if row["store"] == name
    }
    near = vectors[places] @ vectors[places].T
    nearest = [
        set(np.argsort(-near[at, :at])[:STORE_NEIGHBOURS].tolist()) for at in range(len(notes))
    ]
    for older, newer, label in label_store(notes):
        if label != NEIGHBOUR or older in nearest[newer]:
            ids = notes[older]["id"], notes[newer]["id"]
            yield places[older], places[newer], reviewed.get(ids, label)


# -- neighbours


def pair_still(places: list[int], vectors: np.ndarray) -> Iterator[Row]:
    """Each text of a source with its nearest before it: none updates another."""
    near = vectors[places] @ vectors[places].T
    for newer in range(len(places)):
        for older in np.argsort(-near[newer, :newer])[:STILL_NEIGHBOURS].tolist():
            yield places[older], places[newer], NEIGHBOUR


def pair_requests(places: list[int], vectors: np.ndarray) -> Iterator[Row]:
    """Each wish that somebody tells an assistant with the nearest and some others: none updates."""
    draw = np.random.default_rng(3)
    near = vectors[places] @ vectors[places].T
    np.fill_diagonal(near, -1)
    for older in range(len(places)):
        others = np.argsort(-near[older])[:REQUEST_NEIGHBOURS].tolist()
        drawn = draw.integers(0, len(places), REQUESTS_DRAWN).tolist()
        for newer in {*others, *drawn} - {older}:
            yield places[older], places[newer], NEIGHBOUR


def pair_neighbours(vectors: np.ndarray, known: set[tuple[int, int]]) -> np.ndarray:
    """Unlabelled pairs: near texts, whichever of the two is taken for the older one."""
    draw = np.random.default_rng(0)
    found: set[tuple[int, int]] = set()
    for start in range(0, len(vectors), 1000):
        near = vectors[start : start + 1000] @ vectors.T
        rows = np.arange(len(near))
        near[rows, start + rows] = -1
        for row in rows:
            some = np.argpartition(-near[row], FURTHER)[:FURTHER]
            some = some[np.argsort(-near[row, some])]
            drawn = draw.choice(some[NEAREST:], DRAWN, replace=False)
            for other in [*some[:NEAREST].tolist(), *drawn.tolist()]:
                pair = (start + int(row), other)
                if draw.random() >= 0.5:
                    pair = pair[::-1]
                if found.isdisjoint((pair, pair[::-1])) and known.isdisjoint((pair, pair[::-1])):
                    found.add(pair)
    return np.array(sorted(found), np.int32)


def draw_altered(
    texts: Texts, labelled: np.ndarray, unlabelled: np.ndarray, count: int
) -> list[tuple[str, str]]:
    """Pairs of short texts of each kind, drawn with repetition and altered."""
    draw, known = np.random.default_rng(5), list(texts.places)
    rows = np.concatenate(
        [labelled, np.pad(unlabelled, ((0, 0), (0, 1)), constant_values=UNLABELLED)]
    )
    short = np.array([len(text) < MAX_CHARACTERS for text in known])
    rows = rows[short[rows[:, :2]].all(axis=1)]
    drawn = []
    for labels, share in SHARES.items():
        own = rows[np.isin(rows[:, 2], labels)]
        drawn += own[draw.integers(len(own), size=int(count * share)), :2].tolist()
    draw.shuffle(drawn)
    pairs = [(known[older], known[newer]) for older, newer in drawn]
    return alter_pairs(pairs, read_lexicon(known))


# -- word pieces


def teacher_ids(texts: Iterable[str]) -> Iterator[list[int]]:
    known = (ENCODER_DATA / ENCODER_VOCABULARY).read_bytes().split(b"\n")[:VOCABULARY]
    split = BertTokenizer(b"\n".join(known))
    for text in texts:
        pieces = split(text)
        yield [
            VOCABULARY + crc32(pieces.text[begin:end].encode()) % SHARED_ROWS
            if piece == UNKNOWN
            else piece
            for piece, (begin, end) in zip(pieces.ids, pieces.spans, strict=True)
        ]


def student_ids(texts: Iterable[str]) -> Iterator[list[int]]:
    split = shared_tokenizer()
    return (list(split(text).ids) for text in texts)


def in_rows(texts: Iterable[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The first pieces of each text in a row of their own, and how many there are."""
    rows = [text[:MAX_PIECES] for text in texts]
    made = np.zeros((len(rows), MAX_PIECES), np.uint16)
    for place, row in enumerate(rows):
        made[place, : len(row)] = row
    return made, np.array([len(row) for row in rows], np.int16)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--still", type=Path)
    parser.add_argument("--altered", type=int, default=ALTERED, help="pairs that are altered")
    given = parser.parse_args()
    texts = Texts()
    stores = {}
    for path in sorted((DATA / "stores").glob("*-*.jsonl")):
        notes = read_lines(path)
        kind = path.stem.split("-")[0]
        for is_whole in (False, True):
            places = [texts.add(note["text"], kind, is_whole) for note in notes]
            stores[path.stem, is_whole] = notes, places
    written: list[Row] = list(dict.fromkeys(
        (texts.add(older, path.stem, is_whole), texts.add(newer, path.stem, is_whole), LABELS[label])
        for path in sorted((DATA / "pairs").glob("*.jsonl"))
        for older, newer, label in read_pairs(path)
        for is_whole in (False, True)
    ))  # fmt: skip
    still: dict[str, list[int]] = {}
    for row in read_lines(given.still) if given.still else ():
        still.setdefault(row["source"], []).append(texts.add(row["text"], "still"))
    asked = (DATA / "requests.txt").read_text(encoding="utf-8").splitlines()
    requests = [texts.add(line, REQUEST) for line in asked]
    for kind in ("answers", "questions"):
        for path in sorted((DATA / kind).glob("*.jsonl")):
            for row in read_lines(path) if path.stem != "updates" else ():
                for side in ("note", "near"):
                    if isinstance(row.get(side), str):
                        texts.add(row[side], f"{kind}-{path.stem}")
    vectors = np.stack([one.vector for one in EncoderEmbedder().embed(list(texts.places))])
    told = (
        row
        for (name, _), (notes, places) in stores.items()
        for row in pair_store(name, notes, places, vectors)
    )
    rows = [*dict.fromkeys(told), *written]
    rows += [row for places in still.values() for row in pair_still(places, vectors)]
    rows += pair_requests(requests, vectors)
    unlabelled = pair_neighbours(vectors, {(older, newer) for older, newer, _ in rows})
    labelled = np.array([row for row in rows if row[2] != DOUBTFUL], np.int32)
    altered = [
        [texts.add(text, "altered", is_whole=True) for text in pair]
        for pair in draw_altered(texts, labelled, unlabelled, given.altered)
    ]
    pieces, lengths = in_rows(teacher_ids(texts.places))
    own_pieces, own_lengths = in_rows(student_ids(texts.places))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        given.out, pieces=pieces, lengths=lengths, own_pieces=own_pieces,
        own_lengths=own_lengths, sources=np.array(texts.sources),
        labelled=labelled[:, :2], labels=labelled[:, 2], unlabelled=unlabelled,
        altered=np.array(altered, np.int32),
    )  # fmt: skip
    print(f"{len(pieces)} texts, {len(unlabelled)} unlabelled pairs, {len(altered)} altered, labelled:",
          np.bincount(labelled[:, 2]).tolist())  # fmt: skip


if __name__ == "__main__":
    main()
