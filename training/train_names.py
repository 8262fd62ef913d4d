"""Train the network that finds names on the encoder's token vectors.

    python training/train_names.py --out names-1.npz
    python training/train_names.py --check 5
    python training/train_names.py --out names-1.npz --judge other.txt

The lines of ``data/names`` are encoded by the package's own encoder: each alone, some together as
a paragraph, and each with other names of the same kinds, of other lines or of ``known.toml``.
``--check N`` keeps back every N-th block of ten lines and measures on them; ``--judge`` measures
the network in the file ``--out`` on other lines. PyTorch is needed, and some minutes of a CPU.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bethink.core.speakers import ROLES
from bethink.models.embed.encoder import EncoderEmbedder
from names import KINDS, TAGS, NameHead, find_runs, name_breaks, word_features

DATA = Path(__file__).parent / "data/names"
FILES = ("chats", "work", "langs")
TAGGED = re.compile(r"\[([^\[\]|]+)\|(\w+)\]")
CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
BLOCK = 10  # neighbouring lines share their names and are kept back together
VARIANTS = 2
UNKNOWN = -100  # the tag of a word that may be a name or not
HIDDEN, EPOCHS, RATE, DECAY, BATCH = 128, 5, 3e-3, 0.05, 512
INPUT_DROP, HIDDEN_DROP, LOWER = 0.25, 0.4, 0.25

Name = tuple[int, int, str]


class Line(NamedTuple):
    """A text with its names, and the file and block that it is of."""

    text: str
    names: list[Name]
    file: str
    block: int
    made: bool = False
    is_open: bool = False  # it may have names that are not listed


# -- lines


def read_line(written: str, file: str, block: int) -> Line:
    """Read a line with names in brackets."""
    text, names, at = "", [], 0
    for tag in TAGGED.finditer(written):
        text += written[at : tag.start()]
        names.append((len(text), len(text) + len(tag[1]), tag[2]))
        text, at = text + tag[1], tag.end()
    return Line(text + written[at:], names, file, block)


def read_lines(path: Path) -> list[Line]:
    written = path.read_text().splitlines()
    return [read_line(one, path.stem, n // BLOCK) for n, one in enumerate(written) if one.strip()]


def paragraphs(lines: Sequence[Line], draw: random.Random) -> Iterator[Line]:
    """Join lines of a block, in another order, as sentences or lines of one text."""
    blocks: dict[tuple[str, int], list[Line]] = {}
    for line in lines:
        blocks.setdefault((line.file, line.block), []).append(line)
    for (file, block), some in blocks.items():
        draw.shuffle(some)
        size = draw.choice((2, 3, 5))
        for start in range(0, len(some), size):
            text, names = "", []
            for line in some[start : start + size]:
                text += draw.choice((" ", " ", "\n")) if text else ""
                names += [(a + len(text), b + len(text), kind) for a, b, kind in line.names]
                text += line.text
            yield Line(text, names, file, block, made=True)


class OtherNames:
    """Draws a name of a kind: of the lines or of the list of known names."""

    def __init__(self, lines: Sequence[Line], draw: random.Random) -> None:
        self._draw = draw
        known = tomllib.loads((DATA / "known.toml").read_text())
        self._known = {
            kind: [name.strip() for name in text.replace("\n", " ").split(",")]
            for kind, text in known.items()
        }
        self._seen: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for line in lines:
            for begin, end, kind in line.names:
                self._seen[kind].append(line.text[begin:end])

    def __call__(self, kind: str, old: str) -> str:
        for _ in range(20):
            new = self._person() if kind == "person" else self._other(kind)
            if bool(CJK.search(new)) == bool(CJK.search(old)):
                return new.lower() if old.islower() and kind != "symbol" else new
        return old

    def _person(self) -> str:
        if self._draw.random() < 0.3:
            return self._draw.choice(self._seen["person"])
        given = self._draw.choice(self._known["given"])
        full = self._draw.random() < 0.3 and not CJK.search(given)
        return f"{given} {self._draw.choice(self._known['family'])}" if full else given

    def _other(self, kind: str) -> str:
        listed = self._known.get(kind, [])
        return self._draw.choice(
            listed if listed and self._draw.random() < 0.6 else self._seen[kind]
        )


def vary(line: Line, other: OtherNames, draw: random.Random) -> Line:
    """Put other names of the same kinds in the place of most names of a line."""
    text, names, at = "", [], 0
    for begin, end, kind in line.names:
        old = line.text[begin:end]
        new = other(kind, old) if draw.random() < 0.75 else old
        text += line.text[at:begin]
        names.append((len(text), len(text) + len(new), kind))
        text, at = text + new, end
    return line._replace(text=text + line.text[at:], names=names, made=True)


def store_lines(lines: Sequence[Line]) -> tuple[list[Line], frozenset[str]]:
    """Read the texts of ``data/stores`` with the names of their speakers, and words that are none.

    A word is no name if it is written in lower case inside of sentences, often enough and in
    no name of the lines.
    """
    texts: list[Line] = []
    counts: Counter[str] = Counter()
    for path in sorted(DATA.parent.glob("stores/*-*.jsonl")):
        turns = [json.loads(line) for line in path.read_text().splitlines()]
        speakers = {turn.get("speaker") or "" for turn in turns} - ROLES - {""}
        spoken = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(speakers))) or '(?!)'})\b")
        for turn in turns:
            text = f"{turn['speaker']}: {turn['text']}" if turn.get("speaker") else turn["text"]
            names = [(*found.span(), "person") for found in spoken.finditer(text)]
            texts.append(Line(text, names, path.stem, 0, made=True, is_open=True))
            counts.update(re.findall(r"(?<=[\w,] )[^\W\d_A-Z][^\W\d_]*", text))
    named = {
        word for line in lines for a, b, _ in line.names for word in line.text[a:b].lower().split()
    }
    listed = (DATA / "known.toml").read_text().lower()
    named |= {word.strip("',") for word in listed.split()}
    return texts, frozenset(word for word, count in counts.items() if count > 2) - named


# -- words


class Words:
    """All words of some lines: features, the same of the text in lower case, tags, neighbours."""

    def __init__(self, lines: Sequence[Line], no_names: frozenset[str]) -> None:
        self.lines = lines
        rows = list(encode(lines))
        self.sizes = [len(spans) for spans, _, _ in rows]
        kept = [n for n, size in enumerate(self.sizes) if size]
        self.features = stack([rows[n][1] for n in kept])
        self.lower = stack([rows[n][2] for n in kept])
        self.tags = torch.cat([read_tags(rows[n][0], lines[n], no_names) for n in kept])
        self.line_of = torch.from_numpy(np.repeat(np.arange(len(lines)), self.sizes))
        last = len(self.tags)
        place = torch.arange(last)
        same = self.line_of[1:] == self.line_of[:-1]
        self.before, self.after = torch.full((last,), last), torch.full((last,), last)
        self.before[1:][same] = place[:-1][same]
        self.after[:-1][same] = place[1:][same]


def stack(parts: Sequence[np.ndarray]) -> torch.Tensor:
    """Join rows, and one of zeros for the neighbour that the first and last words lack."""
    whole = torch.from_numpy(np.concatenate(parts).astype(np.float16))
    return torch.cat([whole, torch.zeros(1, whole.shape[1], dtype=torch.float16)])


def encode(lines: Sequence[Line]) -> Iterator[tuple[list, np.ndarray, np.ndarray]]:
    """Yield the spans of the words of each line, their features, and those in lower case."""
    embedder = EncoderEmbedder()
    split = embedder._tokenizer()  # noqa: SLF001 - only here
    for start in range(0, len(lines), 256):
        pieces = [split(line.text) for line in lines[start : start + 256]]
        for states in embedder._encode_pieces(pieces):  # noqa: SLF001
            piece = states.pieces
            vectors = states.token_vectors()
            spans, features = word_features(piece, vectors)
            low = piece.text.lower()
            lowered = piece._replace(text=low) if len(low) == len(piece.text) else piece
            spans_too, lower = word_features(lowered, vectors)
            yield spans, features, lower if spans_too == spans else features


def read_tags(
    spans: Sequence[tuple[int, int]], line: Line, no_names: frozenset[str]
) -> torch.Tensor:
    """Return the tag of each word; ``UNKNOWN`` where it is not known."""
    tags = torch.zeros(len(spans), dtype=torch.long)
    if line.is_open:
        words = [line.text[begin:end].lower() for begin, end in spans]
        tags = torch.tensor([0 if word in no_names else UNKNOWN for word in words])
    for begin, end, kind in line.names:
        inside = [n for n, (first, last) in enumerate(spans) if first < end and last > begin]
        for n in inside:
            tags[n] = 1 + 2 * KINDS.index(kind) + (n > inside[0])
    return tags


# -- network


class Head(nn.Module):
    """The network of `NameHead`, with one product for a word and each of its neighbours."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.ModuleList(nn.Linear(width, HIDDEN, bias=n == 0) for n in range(3))
        self.outer = nn.Linear(HIDDEN, TAGS)
        self.drop, self.drop_hidden = nn.Dropout(INPUT_DROP), nn.Dropout(HIDDEN_DROP)

    def forward(self, rows: Sequence[torch.Tensor]) -> torch.Tensor:
        sums = sum(part(self.drop(row)) for part, row in zip(self.inner, rows, strict=True))
        return self.outer(self.drop_hidden(torch.relu(sums)))

    def arrays(self) -> dict[str, np.ndarray]:
        """The weights as the package reads them."""
        made = {
            "inner": torch.cat([part.weight.T for part in self.inner], dim=1),
            "inner_bias": self.inner[0].bias,
            "outer": self.outer.weight.T,
            "outer_bias": self.outer.bias,
        }
        return {
            name: np.ascontiguousarray(value.detach().numpy()).astype(np.float16)
            for name, value in made.items()
        }


def fit(words: Words, seed: int = 0) -> Head:
    """Train the network on all words; a quarter of the lines is seen in lower case."""
    torch.manual_seed(seed)
    head = Head(words.features.shape[1])
    step = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=DECAY)
    count = len(words.tags)
    total, done = EPOCHS * -(-count // BATCH), 0
    for _ in range(EPOCHS):
        lower = (torch.rand(len(words.lines)) < LOWER)[words.line_of]
        lower = torch.cat([lower, torch.zeros(1, dtype=torch.bool)])[:, None]
        for some in torch.randperm(count).split(BATCH):
            for group in step.param_groups:
                group["lr"] = RATE * (1 - done / total) + 1e-5
            places = (some, words.before[some], words.after[some])
            rows = [
                torch.where(lower[at], words.lower[at], words.features[at]).float() for at in places
            ]
            loss = F.cross_entropy(head(rows), words.tags[some], ignore_index=UNKNOWN)
            step.zero_grad()
            loss.backward()
            step.step()
            done += 1
    return head.eval()


# -- figures


def measure(head: NameHead, lines: Sequence[Line], title: str) -> None:
    """Print F1 of exact spans: in all, without the kind, and of each kind."""
    counts = {kind: [0, 0, 0] for kind in (*KINDS, "all", "span")}
    for line, (spans, features, _) in zip(lines, encode(lines), strict=True):
        runs = find_runs(head.tag_shares(features), name_breaks(line.text, spans)) if spans else []
        found = {(spans[a][0], spans[b - 1][1], KINDS[kind]) for a, b, kind, _ in runs}
        true = set(line.names)
        for kind, count in counts.items():
            if kind == "span":
                ours, theirs = {name[:2] for name in found}, {name[:2] for name in true}
            else:
                ours, theirs = (
                    {name for name in some if kind in ("all", name[2])} for some in (found, true)
                )
            for n, some in enumerate((ours & theirs, ours - theirs, theirs - ours)):
                count[n] += len(some)
    figures = {
        kind: 2 * right / max(1, 2 * right + wrong + missed)
        for kind, (right, wrong, missed) in counts.items()
    }
    right, wrong, missed = counts["all"]
    print(
        f"{title:8} F1 {figures['all']:.3f} precision {right / max(1, right + wrong):.3f}",
        f"recall {right / max(1, right + missed):.3f} without kind {figures['span']:.3f} |",
        *(f"{kind} {figures[kind]:.2f}" for kind in KINDS),
        flush=True,
    )


def train(lines: Sequence[Line], path: Path) -> None:
    """Train on lines, their paragraphs and variants, and save the weights."""
    draw = random.Random(1)
    other = OtherNames(lines, draw)
    named = [line for line in lines if line.names]
    made = [vary(line, other, draw) for _ in range(VARIANTS) for line in named]
    joined = list(paragraphs(lines, draw))
    stored, no_names = store_lines(lines)
    head = fit(Words([*lines, *made, *joined, *stored[::2]], no_names))
    with path.open("wb") as file:
        np.savez(file, **head.arrays())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("names-1.npz"))
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--judge", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)  # small products: threads would wait for each other
    if options.judge:
        measure(NameHead(options.out), read_lines(options.judge), options.judge.stem)
        return
    lines = [line for name in FILES for line in read_lines(DATA / f"{name}.txt")]
    kept = [
        line
        for line in lines
        if options.check and (7 * line.block + FILES.index(line.file)) % options.check == 0
    ]
    known = {id(line) for line in kept}
    train([line for line in lines if id(line) not in known], options.out)
    head = NameHead(options.out)
    for title in ("all", *FILES) if kept else ():
        measure(head, [line for line in kept if title in ("all", line.file)], title)


if __name__ == "__main__":
    main()
