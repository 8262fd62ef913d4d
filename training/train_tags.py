"""Train a model of words: teachers that read whole sentences, a small student that sees words.

    python training/train_tags.py names FOLDER --out names-3.npz
    python training/train_tags.py secrets FOLDER --out check.npz --check 5

FOLDER has ``names.npz`` of ``names.py`` or ``secrets.npz`` of ``secret_lines.py``, and
``mpnet.npz`` of ``run.py pairs``, whole or in parts (``mpnet-0.npz``). A teacher is all-mpnet-base-v2, which is also told how each
word is written; three of them say what every text names or hides. The student learns these
answers, and half from the labels where there are some. With ``--check N`` every N-th block of
lines is kept back and measured. PyTorch is needed, and a GPU for the teachers. Students that went
on from the same weights have a mean of their weights (``--mean A.npz B.npz``) that is calmer than
each.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from bethink.models.embed.encoder import ENCODER_DATA, ENCODER_WEIGHTS
from bethink.models.name_model import DISTANCES as NAME_DISTANCES
from bethink.models.secret_model import DISTANCES as SECRET_DISTANCES
from bethink.models.word_tagger import MAX_PIECES
from names import MADE, UNLABELLED
from secret_lines import HARMLESS_FILE
from train import DEVICE, read_teacher
from train_pairs import (
    SHARED_ROWS,
    T_LAYERS,
    T_WIDTH,
    VOCABULARY,
    Teacher,
    bucket_distances,
    own_pieces,
)

# The student's layers: one over each word, the others over a word and its neighbours.
DISTANCES = {"names": NAME_DISTANCES, "secrets": SECRET_DISTANCES}
WIDTHS = {"names": (192, 128, 96, 64), "secrets": (192, 96, 96, 96, 96, 64)}
T_EPOCHS, T_WORDS, T_RATE, T_HEAD_RATE = 4, 2_200, 4e-5, 1e-3
WORDS, RATE, WARM_UP, DROP = 16_000, 3e-3, 200, 0.15
# So many texts of names are seen as if they had no capitals; which of a word's signs tell them.
LOWERED, FIRST_UPPER, ALL_UPPER, LOWER, LETTERS, CAMEL = 0.06, 0, 1, 2, 4, 7


class Texts:
    """The packed texts, on the device."""

    def __init__(self, path: Path) -> None:
        packed = np.load(path)
        self.kind, self.classes = path.stem, int(packed["classes"])
        self.pieces = torch.from_numpy(packed["pieces"].astype(np.int64)).to(DEVICE)
        self.counts = torch.from_numpy(packed["counts"].astype(np.int64)).to(DEVICE)
        shapes = np.unpackbits(packed["shapes"], axis=1)[:, : int(packed["width"])]
        self.shapes = torch.from_numpy(shapes).to(DEVICE)
        self.tags = torch.from_numpy(packed["tags"].astype(np.int64)).to(DEVICE)
        self.sizes = packed["sizes"].astype(np.int64)
        self.starts = self.sizes.cumsum() - self.sizes
        self.sources, self.blocks = packed["sources"], packed["blocks"]

    def kept_back(self, each: int) -> np.ndarray:
        """Which texts are of every so many-th block of lines."""
        if not each:
            return np.zeros(len(self.sizes), bool)
        files = np.where(self.sources >= MADE, self.sources - MADE, self.sources)
        return (self.sources < UNLABELLED) & ((7 * self.blocks + files) % each == 0)

    def places(self, rows: np.ndarray) -> torch.Tensor:
        """The words of texts, one text a row; -1 after its end."""
        at = np.arange(self.sizes[rows].max())[None]
        inside = at < self.sizes[rows][:, None]
        return torch.from_numpy(np.where(inside, self.starts[rows][:, None] + at, -1)).to(DEVICE)

    def plan(self, rows: np.ndarray, draw: np.random.Generator, words: int) -> list[np.ndarray]:
        """Batches of texts of similar length, in random order."""
        found: list[np.ndarray] = []
        shuffled = rows[draw.permutation(len(rows))]
        for some in np.array_split(shuffled, max(1, len(rows) // 4_000)):
            ordered = some[np.argsort(self.sizes[some])]
            batch: list[int] = []
            for row in ordered:
                if batch and (len(batch) + 1) * self.sizes[row] > words:
                    found.append(np.array(batch))
                    batch = []
                batch.append(row)
            found.append(np.array(batch))
        return [found[place] for place in draw.permutation(len(found))]


class NameTeacher(Teacher):
    """all-mpnet-base-v2 with the shape of each word added to its pieces, and tags of words."""

    def __init__(self, weights: dict[str, torch.Tensor], texts: Texts) -> None:
        super().__init__(weights)
        self.texts, width = texts, texts.shapes.shape[1]
        self.shape_in = nn.Linear(width, T_WIDTH, bias=False)
        nn.init.zeros_(self.shape_in.weight)
        self.tag_inner = nn.Linear(2 * T_WIDTH + width, 256)
        self.tag_outer = nn.Linear(256, texts.classes)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        words = places.clamp(min=0)
        counts = torch.where(places >= 0, self.texts.counts[words], 0)
        ends = counts.cumsum(1)
        states = self.read(words, ends, counts)
        last = states.shape[1] - 1
        wide = (*words.shape, T_WIDTH)
        first = states.gather(1, (ends - counts).clamp(max=last)[..., None].expand(wide))
        final = states.gather(1, (ends - 1).clamp(0, last)[..., None].expand(wide))
        seen = torch.cat([first, final, self.texts.shapes[words].float()], 2)
        return self.tag_outer(self.drop(F.gelu(self.tag_inner(seen))))

    def read(self, words: torch.Tensor, ends: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        """The states of the pieces of each text."""
        at = torch.arange(int(ends[:, -1].max()), device=DEVICE).expand(len(words), -1)
        mask = at < ends[:, -1:]
        owner = torch.searchsorted(ends, at.contiguous(), right=True).clamp(max=words.shape[1] - 1)
        word = words.gather(1, owner)
        within = (at - (ends - counts).gather(1, owner)).clamp(0, MAX_PIECES - 1)
        ids = self.texts.pieces[word].gather(2, within[..., None])[..., 0]
        ids = torch.where(ids < VOCABULARY, ids, VOCABULARY + ids % SHARED_ROWS)
        states = F.embedding(own_pieces(ids, mask), self.table)
        states = states + self.shape_in(self.texts.shapes[word].float() - 0.2)
        bounds = self.table[[0, 2]].expand(len(words), 2, T_WIDTH)
        states = torch.cat([bounds[:, :1], states, bounds[:, 1:]], 1)
        places = self.weights["embeddings/position_embeddings/weight"][2 : 2 + states.shape[1]]
        states = self.drop(self.norm(states + places, "embeddings.LayerNorm"))
        distance = torch.arange(states.shape[1], device=DEVICE)
        distances = self.weights["encoder/relative_attention_bias/weight"]
        bias = distances[bucket_distances(distance[None] - distance[:, None])].permute(2, 0, 1)
        bias = bias + torch.where(F.pad(mask, (1, 1), value=True), 0.0, -1e4)[:, None, None, :]
        for layer in range(T_LAYERS):
            states = self.run_layer(states, bias, f"encoder.layer.{layer}.")
        return states[:, 1:-1].float()


def see_pieces(texts: Texts, table: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Of words the mean row of their pieces, and the row of their last piece."""
    rows, counts = table[texts.pieces[words]], texts.counts[words][..., None]
    known = torch.arange(MAX_PIECES, device=DEVICE) < counts
    mean = (rows * known[..., None]).sum(-2) / counts
    last = (counts - 1)[..., None].expand(*words.shape, 1, table.shape[1])
    return torch.cat([mean, rows.gather(-2, last)[..., 0, :]], -1)


class Student(nn.Module):
    """The network of ``bethink.models.word_tagger``; the encoder's table does not learn."""

    def __init__(self, texts: Texts, blind: float) -> None:
        super().__init__()
        self.texts, self.blind = texts, blind
        with np.load(ENCODER_DATA / ENCODER_WEIGHTS) as known:
            table = known["table"].astype(np.float32) * known["table_scale"][:, None]
        self.table = torch.from_numpy(table).to(DEVICE)
        first = 2 * table.shape[1] + texts.shapes.shape[1]
        self.distances, widths = DISTANCES[texts.kind], WIDTHS[texts.kind]
        inputs = (first, *(3 * width for width in widths[:-1]), widths[-1])
        self.layers = nn.ModuleList(
            nn.Linear(*sizes) for sizes in zip(inputs, (*widths, texts.classes), strict=True)
        )

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        inside, words = (places >= 0)[..., None], places.clamp(min=0)
        seen = see_pieces(self.texts, self.table, words)
        seen = F.dropout(seen, DROP, self.training)
        if self.training and self.blind:  # words that it has never seen come, too
            seen = seen * (torch.rand(*words.shape, 1, device=DEVICE) >= self.blind)
        states = torch.cat([seen, self.shapes(words)], 2)
        for layer, away in zip(self.layers[:-1], (*self.distances, 0), strict=True):
            states = torch.relu(layer(states)) * inside
            if away:
                states = F.dropout(states, DROP, self.training)
                padded = F.pad(states, (0, 0, away, away))
                near = (states, padded[:, : -2 * away], padded[:, 2 * away :])
                states = torch.cat(near, 2)
        return self.layers[-1](states)

    def shapes(self, words: torch.Tensor) -> torch.Tensor:
        """How the words are written; in training now and then as if without capitals."""
        shapes = self.texts.shapes[words].float()
        if not self.training or self.texts.kind != "names":
            return shapes
        lower = shapes.clone()
        lower[..., LOWER] = shapes[..., LETTERS]
        for sign in (FIRST_UPPER, ALL_UPPER, CAMEL, -1):
            lower[..., sign] = 0
        return torch.where(torch.rand(len(words), 1, 1, device=DEVICE) < LOWERED, lower, shapes)


def fit_teacher(
    weights: dict[str, torch.Tensor], texts: Texts, rows: np.ndarray, seed: int, seconds: float
) -> NameTeacher:
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    teacher = NameTeacher(weights, texts).to(DEVICE).train()
    new = [p for name, p in teacher.named_parameters() if name.startswith(("shape_in", "tag_"))]
    kept = {id(parameter) for parameter in new}
    old = [parameter for parameter in teacher.parameters() if id(parameter) not in kept]
    optimiser = torch.optim.AdamW([{"params": old}, {"params": new}], T_RATE, weight_decay=0.01)
    plan = [batch for _ in range(T_EPOCHS) for batch in texts.plan(rows, draw, T_WORDS)]
    start, step, losses = time.time(), 0, 0.0
    while (progress := max(step / len(plan), (time.time() - start) / seconds)) < 1:
        rate = min(1.0, step / WARM_UP) * (0.5 + 0.5 * math.cos(math.pi * progress))
        for group, full in zip(optimiser.param_groups, (T_RATE, T_HEAD_RATE), strict=True):
            group["lr"] = full * rate
        places = texts.places(plan[step])
        inside = places >= 0
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = teacher(places)
        goal = texts.tags[places[inside]]
        loss = F.cross_entropy(scores.float()[inside], goal, label_smoothing=0.03)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        optimiser.step()
        step, losses = step + 1, losses + loss.detach()
        if step % 500 == 0:
            print(f"teacher {seed}: {step} of {len(plan)} steps,", end=" ")
            print(f"{time.time() - start:.0f} s, loss {float(losses) / 500:.4f}", flush=True)
            losses = 0.0
    return teacher.eval()


def go_on(student: Student, path: Path) -> None:
    """Give the student the weights of an earlier one."""
    with np.load(path) as known, torch.no_grad():
        for place, layer in enumerate(student.layers):
            layer.weight.copy_(torch.from_numpy(known[f"layer{place}"].astype(np.float32).T))
            layer.bias.copy_(torch.from_numpy(known[f"layer{place}_bias"].astype(np.float32)))


def fit_student(
    student: Student, rows: np.ndarray, goals: torch.Tensor, options: argparse.Namespace
) -> Student:
    torch.manual_seed(options.seed)
    draw, texts = np.random.default_rng(options.seed + 1), student.texts
    student.train()
    optimiser = torch.optim.AdamW(student.parameters(), options.rate, weight_decay=options.decay)
    share = 0.5 if options.teachers else 1.0  # of what the labels say
    start, step, losses, plan = time.time(), 0, 0.0, []
    while (progress := (time.time() - start) / options.seconds) < 1:
        if not plan:
            left_out = (texts.sources[rows] == HARMLESS_FILE) & (
                draw.random(len(rows)) > options.harmless
            )
            plan = texts.plan(rows[~left_out], draw, options.words)
        rate = (
            options.rate * min(1, (step + 1) / WARM_UP) * (0.5 + 0.5 * math.cos(math.pi * progress))
        )
        for group in optimiser.param_groups:
            group["lr"] = rate + 1e-6
        places = texts.places(plan.pop())
        words = places[places >= 0]
        scores, tags = student(places)[places >= 0], texts.tags[words]
        answered = -(goals[words] * F.log_softmax(scores, 1)).sum(1)
        labelled = F.cross_entropy(
            scores, tags.clamp(min=0), reduction="none", label_smoothing=options.smoothing
        )
        loss = torch.where(tags >= 0, (1 - share) * answered + share * labelled, answered).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        step, losses = step + 1, losses + loss.detach()
        if step % 100 == 0:
            print(
                f"{step} steps, {time.time() - start:.0f} s, loss {float(losses) / 100:.4f}",
                flush=True,
            )
            losses = 0.0
    print(f"student: {step} steps, loss {loss.item():.4f}", flush=True)
    return student.eval()


@torch.no_grad()
def answer(network: nn.Module, texts: Texts) -> torch.Tensor:
    """The shares of the tags of every word."""
    made = torch.zeros(len(texts.tags), texts.classes, device=DEVICE)
    for rows in texts.plan(np.arange(len(texts.sizes)), np.random.default_rng(0), WORDS):
        places = texts.places(rows)
        with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE != "cpu"):
            scores = network(places)
        made[places[places >= 0]] = scores.float().softmax(-1)[places >= 0]
    return made


def read_spans(tags: np.ndarray) -> set[tuple[int, int, int]]:
    """First word, end and kind of each name."""
    found, at = set(), 0
    while at < len(tags):
        end = at + 1
        if tags[at]:
            kind = (tags[at] - 1) // 2
            further = 2 * kind + 2 if tags.max() > 1 else 1
            while end < len(tags) and tags[end] == further:
                end += 1
            found.add((at, end, int(kind)))
        at = end
    return found


def measure(shares: torch.Tensor, texts: Texts, rows: np.ndarray, title: str) -> None:
    """Print F1 of exact spans with and without the kind."""
    tags, true = shares.argmax(1).cpu().numpy(), texts.tags.cpu().numpy()
    counts = np.zeros((2, 3), int)
    for row in rows:
        part = slice(texts.starts[row], texts.starts[row] + texts.sizes[row])
        ours, theirs = read_spans(tags[part]), read_spans(true[part])
        for place, size in enumerate((3, 2)):
            a, b = ({name[:size] for name in names} for names in (ours, theirs))
            counts[place] += len(a & b), len(a), len(b)
    with_kind, without = (2 * both / max(1, a + b) for both, a, b in counts)
    print(f"{title:10} F1 {with_kind:.3f} without kind {without:.3f}", flush=True)


def write_mean(paths: Sequence[Path], out: Path) -> None:
    """Write the mean of the weights of students."""
    known = [np.load(path) for path in paths]
    np.savez(
        out,
        **{
            name: np.mean([one[name].astype(np.float32) for one in known], 0).astype(np.float16)
            for name in known[0].files
        },
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kind", choices=sorted(WIDTHS))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--check", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=170)
    parser.add_argument("--teachers", type=int, default=3, help="0: learn from the labels alone")
    parser.add_argument("--teacher-seconds", type=float, default=600, help="each, at most")
    parser.add_argument("--first", type=Path, help="go on with the weights of this student")
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--words", type=int, default=WORDS, help="in a batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--decay", type=float, default=0.01, help="of weights")
    parser.add_argument("--smoothing", type=float, default=0.0, help="of labels")
    parser.add_argument("--blind", type=float, default=0.0, help="share of words without pieces")
    parser.add_argument("--harmless", type=float, default=1.0, help="share that a pass has")
    parser.add_argument("--mean", type=Path, nargs="+", help="write the mean of these students")
    options = parser.parse_args()
    if options.mean:
        write_mean(options.mean, options.out)
        return
    texts = Texts(options.folder / f"{options.kind}.npz")
    back = texts.kept_back(options.check)
    written = np.flatnonzero(back & (texts.sources < MADE))
    weights: dict[str, torch.Tensor] = {}
    for path in sorted(options.folder.glob("mpnet*.npz")) if options.teachers else ():
        weights |= read_teacher(path)
    labelled = np.flatnonzero(~back & (texts.sources < UNLABELLED))
    goals = torch.zeros(len(texts.tags), texts.classes, device=DEVICE)
    for seed in range(options.teachers):
        goals += answer(fit_teacher(weights, texts, labelled, seed, options.teacher_seconds), texts)
        print(f"teacher {seed}", flush=True)
    goals /= max(1, options.teachers)
    taught = ~back & ((texts.sources < UNLABELLED) | (options.teachers > 0))
    student = Student(texts, options.blind).to(DEVICE)
    if options.first:
        go_on(student, options.first)
    student = fit_student(student, np.flatnonzero(taught), goals, options)
    if options.check and options.teachers:
        measure(goals, texts, written, "teachers")
        measure(answer(student, texts), texts, written, "student")
    arrays = {}
    for place, layer in enumerate(student.layers):
        arrays[f"layer{place}"] = layer.weight.T.contiguous()
        arrays[f"layer{place}_bias"] = layer.bias
    np.savez(
        options.out,
        **{name: value.detach().cpu().numpy().astype(np.float16) for name, value in arrays.items()},
    )


if __name__ == "__main__":
    main()
