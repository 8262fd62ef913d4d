"""Prepare what the model of answers learns from: questions and notes in word pieces.

    python training/answers.py OUT

Labelled are the questions of ``data/answers`` and ``data/questions``: with the note that
answers them, with the one that nearly does, and with their nearest notes of other lines, which
do not. Unlabelled are further near notes of all data, of which only the teachers say what they
are. The texts are there too: ``alter_answers.py`` writes the pairs again.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bethink.models.embed.encoder import EncoderEmbedder
from pairs import DATA, read_lines, student_ids, teacher_ids

# Classes of train_pairs.py: whether the note answers the question. Of those that do not, the
# nearest notes of other lines are a kind of their own.
ANSWERS, ANSWERS_NOT, OTHER_LINE = range(3)
# Of a question, and of a note, the first pieces are read.
QUESTION_PIECES, NOTE_PIECES = 48, 140
# Of other lines: the nearest notes, labelled; and unlabelled the next ones and some after them.
NEAREST, FURTHER, CLOSE, DRAWN = 1, 120, 9, 16


class Line(NamedTuple):
    """A note with the questions that it answers and does not; ``other`` answers none of them."""

    source: str
    note: str
    other: str | None
    answered: list[str]
    near: list[str]


def read_data() -> Iterator[Line]:
    for path in sorted((DATA / "answers").glob("*.jsonl")):
        for row in read_lines(path):
            yield Line(path.stem, row["note"], None, row["answered"], row["near"])
    for path in sorted((DATA / "questions").glob("*.jsonl")):
        for row in read_lines(path):
            asked = list(row["questions"].values())
            yield Line("q-" + path.stem, row["note"], row.get("near"), asked, [])


def other_texts() -> Iterator[tuple[str, str]]:
    """Further notes, each with its source."""
    for path in sorted((DATA / "stores").glob("*-*.jsonl")):
        for row in read_lines(path):
            speaker = row.get("speaker")
            yield path.stem, f"{speaker}: {row['text']}" if speaker else row["text"]
    for path in sorted((DATA / "pairs").glob("*.jsonl")):
        for row in read_lines(path):
            yield from ((f"p-{path.stem}", row[side]) for side in ("old", "new"))


def pack_texts(texts: Sequence[str]) -> np.ndarray:
    return np.frombuffer(lzma.compress(json.dumps(texts).encode()), np.uint8)


def unpack_texts(packed: np.ndarray) -> list[str]:
    found: list[str] = json.loads(lzma.decompress(packed.tobytes()))
    return found


def in_rows(texts: list[list[int]], most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = [text[:size] for text, size in zip(texts, most, strict=True)]
    made = np.zeros((len(rows), NOTE_PIECES), np.uint16)
    for place, row in enumerate(rows):
        made[place, : len(row)] = row
    return made, np.array([len(row) for row in rows], np.int16)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    lines = list(read_data())
    origins = {
        text: line.source for line in lines for text in (line.note, line.other) if text
    }  # fmt: skip
    for source, text in other_texts():
        origins.setdefault(text, source)
    notes = list(origins)
    questions = list(dict.fromkeys(one for line in lines for one in (*line.answered, *line.near)))
    place = {text: at for at, text in enumerate(notes)}
    asked = {text: at + len(notes) for at, text in enumerate(questions)}
    sources = [*origins.values(), *("" for _ in questions)]
    rows: dict[tuple[int, int], int] = {}
    own: dict[int, set[int]] = {}
    for line in lines:
        known = {place[text] for text in (line.note, line.other) if text}
        for one in (*line.answered, *line.near):
            sources[asked[one]] = line.source
            own.setdefault(asked[one], set()).update(known)
        for one in line.near:
            rows[asked[one], place[line.note]] = ANSWERS_NOT
        for one in line.answered:
            if line.other:
                rows[asked[one], place[line.other]] = ANSWERS_NOT
            rows[asked[one], place[line.note]] = ANSWERS
    embedder = EncoderEmbedder()
    vectors = np.stack([one.vector for one in embedder.embed(notes)])
    draw = np.random.default_rng(0)
    unlabelled: set[tuple[int, int]] = set()
    # Pairs of an update tell one fact twice: their questions are answered by many of them.
    doubtful = {place[line.note] for line in lines if line.source == "q-updates"}
    for start in range(0, len(questions), 1000):
        some = questions[start : start + 1000]
        near = np.stack([one.vector for one in embedder.embed(some)]) @ vectors.T
        for row, text in enumerate(some):
            one = asked[text]
            order = np.argpartition(-near[row], FURTHER)[:FURTHER]
            order = [at for at in order[np.argsort(-near[row, order])].tolist()
                     if at not in own[one]]  # fmt: skip
            sure = [at for at in order if at not in doubtful][:NEAREST]
            if sources[one] not in ("q-updates", "q-code"):
                rows.update(((one, at), OTHER_LINE) for at in sure if (one, at) not in rows)
            further = draw.choice(order[CLOSE:], DRAWN - CLOSE, replace=False)
            drawn = [*order[:CLOSE], *further.tolist()]
            unlabelled.update((one, at) for at in drawn if (one, at) not in rows)
    most = np.array([NOTE_PIECES] * len(notes) + [QUESTION_PIECES] * len(questions))
    texts = notes + questions
    pieces, lengths = in_rows(list(teacher_ids(texts)), most)
    own_pieces, own_lengths = in_rows(list(student_ids(texts)), most)
    labelled = np.array(list(rows), np.int32)
    kinds = np.array(list(rows.values()), np.int8)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        given.out, pieces=pieces, lengths=lengths, own_pieces=own_pieces,
        own_lengths=own_lengths, sources=np.array(sources), labelled=labelled, kinds=kinds,
        unlabelled=np.array(sorted(unlabelled), np.int32), texts=pack_texts(texts),
    )  # fmt: skip
    print(f"{len(notes)} notes, {len(questions)} questions, {len(unlabelled)} unlabelled pairs,",
          f"labelled {np.bincount(kinds).tolist()}")  # fmt: skip


if __name__ == "__main__":
    main()
