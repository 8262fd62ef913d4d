"""Tune the teacher (all-MiniLM-L6-v2), then cut it down to a small encoder of many languages.

    python train.py FOLDER --out OUT --seconds 500

does everything: the teacher learns from questions, notes and near misses, kept near itself; it
reads every English text once; the student starts as its own six layers and its table,
factorised and with the rows of new pieces. While the student learns the teacher's vectors, the
heads and feed-forward neurons that matter least are taken out, until a budget of weights is met
(first stage); then it goes on (second stage). What FOLDER already has is not made again.
FOLDER is what ``run.py pack`` wrote: token ids, no texts. Only PyTorch and NumPy are needed.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import shutil
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from measure import EvaluationSet, read_encoded, summarise, unrelated

WIDTH, HEAD, WINDOW = 384, 32, 256
TEMPERATURE = 0.05
BUCKETS = (12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Kinds of pairs below this are English.
FIRST_LANGUAGE = 3
# Files that come back from another machine are no larger.
PART_BYTES = 15_000_000


# -- texts


class Texts:
    """Many texts as token ids, one after another, on the device."""

    def __init__(self, ids: np.ndarray, sizes: np.ndarray) -> None:
        self.sizes = np.minimum(sizes.astype(np.int64), WINDOW)
        starts = np.concatenate([[0], sizes.astype(np.int64).cumsum()[:-1]])
        self.ids = torch.from_numpy(ids.astype(np.int32)).to(DEVICE)
        self.starts = torch.from_numpy(starts).to(DEVICE)
        self.device_sizes = torch.from_numpy(self.sizes).to(DEVICE)

    def __len__(self) -> int:
        return len(self.sizes)

    def rows(self, chosen: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Ids, mask and places of the tokens of some texts, in rows of one length."""
        width = int(-(-int(self.sizes[chosen].max()) // 8) * 8)
        places = torch.from_numpy(chosen).to(DEVICE)
        at = torch.arange(width, device=DEVICE)
        mask = at < self.device_sizes[places][:, None]
        index = (self.starts[places][:, None] + at).clamp_(max=len(self.ids) - 1)
        return torch.where(mask, self.ids[index], 0).long(), mask, index

    def groups(self, chosen: np.ndarray, tokens: int) -> Iterator[np.ndarray]:
        """All of some texts, those of similar length together."""
        order = chosen[np.argsort(self.sizes[chosen], kind="stable")]
        while len(order):
            count = max(1, tokens // max(8, int(self.sizes[order[min(len(order), 4096) - 1]])))
            yield order[: min(count, 4096)]
            order = order[min(count, 4096) :]


def read_texts(paths: list[Path], most: int = 0) -> tuple[Texts, dict[str, np.ndarray]]:
    """The texts and pairs of several files as one; of each file at most so many pairs."""
    ids, sizes, pairs, before = [], [], [], 0
    for path in paths:
        with np.load(BytesIO(lzma.decompress(path.read_bytes()))) as file:
            some = {name: file[name][: most or None] for name in ("left", "right", "kind")}
            # Texts are in the order of the pairs.
            count = int(max(some["left"].max(), some["right"].max())) + 1
            sizes.append(file["sizes"][:count].astype(np.int64))
            ids.append(file["ids"][: sizes[-1].sum()])
        for side in ("left", "right"):
            some[side] = some[side].astype(np.int64) + before
        pairs.append(some)
        before += count
    joined = {name: np.concatenate([one[name] for one in pairs]) for name in pairs[0]}
    return Texts(np.concatenate(ids), np.concatenate(sizes)), joined


class Batches:
    """Batches of pairs of one kind and similar length, in random order, without end."""

    def __init__(
        self, texts: Texts, pairs: dict[str, np.ndarray], given: argparse.Namespace, seed: int
    ) -> None:
        self.random = np.random.default_rng(seed)
        self.given, self.left, self.right = given, pairs["left"], pairs["right"]
        widest = np.maximum(texts.sizes[self.left], texts.sizes[self.right])
        self.pools: dict[bool, list[np.ndarray]] = {}
        for foreign in (False, True):
            mine = np.flatnonzero((pairs["kind"] >= FIRST_LANGUAGE) == foreign)
            slots = np.searchsorted(BUCKETS, widest[mine])
            self.pools[foreign] = [mine[slots == slot] for slot in range(len(BUCKETS))]

    def __iter__(self) -> Iterator[tuple[bool, np.ndarray, np.ndarray]]:
        plans: dict[bool, list[np.ndarray]] = {False: [], True: []}
        while True:
            foreign = bool(self.random.random() < self.given.foreign)
            if not plans[foreign]:
                plans[foreign] = self.plan(foreign)
            chosen = plans[foreign].pop()
            yield foreign, self.left[chosen], self.right[chosen]

    def plan(self, foreign: bool) -> list[np.ndarray]:
        least = min(256, self.given.batch)
        found = []
        for bucket, pool in zip(BUCKETS, self.pools[foreign], strict=True):
            size = max(least, min(self.given.batch, self.given.batch_tokens // bucket))
            order = self.random.permutation(pool)
            found += [order[at : at + size] for at in range(0, len(order) - least + 1, size)]
        assert found, "too few pairs for a batch"
        return [found[place] for place in self.random.permutation(len(found))]


class Triples:
    """Questions, the notes that answer them, and near misses; beside them pairs to be kept."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            self.texts = Texts(file["ids"], file["sizes"])
            self.question, self.note, self.near, self.english, self.tie = (
                file[name] for name in ("question", "note", "near", "english", "tie")
            )

    def read_by_teacher(self) -> np.ndarray:
        """The texts of which the teacher is asked: all that are English."""
        own = [side[self.english] for side in (self.question, self.note, self.near)]
        found = np.unique(np.concatenate([*own, self.tie.ravel()]))
        return found[found >= 0]

    def encode(self, model: Encoder, chosen: np.ndarray) -> tuple[torch.Tensor, ...]:
        """The vectors of questions, notes and near misses (of those rows that have one)."""
        near = self.near[chosen]
        sides = (self.question[chosen], self.note[chosen], near[near >= 0])
        return tuple(self.vectors(model, side) for side in sides)

    def vectors(self, model: Encoder, side: np.ndarray) -> torch.Tensor:
        if not len(side):
            return torch.zeros((0, WIDTH), device=DEVICE)
        ids, mask, _ = self.texts.rows(side)
        return model(ids, mask)[0]

    def contrast(
        self, found: tuple[torch.Tensor, ...], chosen: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Similarities of the questions to all notes and near misses, and the loss on them."""
        question, note, near = found
        similar = question @ torch.cat([note, near]).T / TEMPERATURE
        notes = torch.from_numpy(self.note[chosen]).to(DEVICE)
        # Another question of the same note is no negative.
        twin = (notes[:, None] == notes).fill_diagonal_(False)
        twin = F.pad(twin, (0, len(near)), value=False)
        similar = similar.masked_fill(twin, -1e4)
        return similar, F.cross_entropy(similar, torch.arange(len(question), device=DEVICE))


# -- networks


class Layer(nn.Module):
    """One layer of a BERT, with gates whose gradients tell how much a part matters."""

    def __init__(self, weights: dict[str, torch.Tensor], name: str) -> None:
        super().__init__()
        for mine, theirs in {
            "q": "attention.self.query", "k": "attention.self.key",
            "v": "attention.self.value", "o": "attention.output.dense",
            "ln1": "attention.output.LayerNorm", "fi": "intermediate.dense",
            "fo": "output.dense", "ln2": "output.LayerNorm",
        }.items():  # fmt: skip
            for part, short in (("weight", "w"), ("bias", "b")):
                tensor = weights[f"{name}{theirs}.{part}"].clone()
                self.register_parameter(f"{mine}_{short}", nn.Parameter(tensor))
        self.reset_gates()

    def reset_gates(self) -> None:
        self.head_gate = torch.ones(len(self.q_w) // HEAD, device=DEVICE, requires_grad=True)
        self.inner_gate = torch.ones(len(self.fi_w), device=DEVICE, requires_grad=True)
        self.head_score = torch.zeros_like(self.head_gate, requires_grad=False)
        self.inner_score = torch.zeros_like(self.inner_gate, requires_grad=False)

    def forward(
        self, states: torch.Tensor, mask: torch.Tensor, gated: bool, dropout: float = 0.0
    ) -> torch.Tensor:
        rows, length, _ = states.shape
        heads = len(self.q_w) // HEAD

        def split(weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            return F.linear(states, weight, bias).view(rows, length, heads, HEAD).transpose(1, 2)

        seen = F.scaled_dot_product_attention(
            split(self.q_w, self.q_b), split(self.k_w, self.k_b), split(self.v_w, self.v_b),
            attn_mask=mask, dropout_p=dropout,
        )  # fmt: skip
        if gated:
            seen = seen * self.head_gate[:, None, None].to(seen.dtype)
        seen = seen.transpose(1, 2).reshape(rows, length, heads * HEAD)
        states = states + F.dropout(F.linear(seen, self.o_w, self.o_b), dropout)
        states = F.layer_norm(states, (WIDTH,), self.ln1_w, self.ln1_b, 1e-12)
        inner = F.gelu(F.linear(states, self.fi_w, self.fi_b), approximate="tanh")
        if gated:
            inner = inner * self.inner_gate.to(inner.dtype)
        states = states + F.dropout(F.linear(inner, self.fo_w, self.fo_b), dropout)
        return F.layer_norm(states, (WIDTH,), self.ln2_w, self.ln2_b, 1e-12)

    def size(self) -> int:
        return sum(
            getattr(self, name).numel() for name in ("q_w", "k_w", "v_w", "o_w", "fi_w", "fo_w")
        )


class Encoder(nn.Module):
    """A BERT with mean pooling; ``factorise`` makes a student of it."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.table = nn.Parameter(weights["embeddings.word_embeddings.weight"].clone())
        self.mix: nn.Parameter | None = None
        places = weights["embeddings.position_embeddings.weight"][:WINDOW]
        self.places = nn.Parameter(places + weights["embeddings.token_type_embeddings.weight"][0])
        self.ln_w = nn.Parameter(weights["embeddings.LayerNorm.weight"].clone())
        self.ln_b = nn.Parameter(weights["embeddings.LayerNorm.bias"].clone())
        self.layers = nn.ModuleList(Layer(weights, f"encoder.layer.{layer}.") for layer in range(6))
        self.gated = False
        self.dropout = 0.0

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The pooled unit vector and the token states."""
        states = F.embedding(ids, self.table)
        if self.mix is not None:
            states = states @ self.mix
        states = states + self.places[: ids.shape[1]]
        states = F.layer_norm(states, (WIDTH,), self.ln_w, self.ln_b, 1e-12)
        states = F.dropout(states, self.dropout)
        seen = mask[:, None, None, :]
        for layer in self.layers:
            states = layer(states, seen, self.gated, self.dropout)
        total = (states.float() * mask[..., None]).sum(1)
        return F.normalize(total, dim=1), states

    def size(self) -> int:
        """Weights of the matrices that every token passes."""
        return sum(layer.size() for layer in self.layers)

    @torch.no_grad()
    def factorise(self, rank: int) -> None:
        """Make the table narrow, and a matrix that widens it again."""
        left, size, right = torch.linalg.svd(self.table.data.float(), full_matrices=False)
        self.table = nn.Parameter((left[:, :rank] * size[:rank].sqrt()).contiguous())
        self.mix = nn.Parameter((size[:rank].sqrt()[:, None] * right[:rank]).contiguous())

    @torch.no_grad()
    def add_pieces(self, hints: Path) -> None:
        """Add the rows of new pieces: the mean of their translations, or a random one."""
        with np.load(hints) as file:
            best = torch.from_numpy(file["best"].astype(np.int64)).to(DEVICE)
            shares = torch.from_numpy(file["shares"].astype(np.float32)).to(DEVICE)
        old = self.table.data
        new = (old[best] * shares[..., None]).sum(1)
        noise = torch.randn_like(new) * old.std(0)
        known = F.normalize(new, dim=1) * old.norm(dim=1).median() + 0.1 * noise
        new = torch.where(shares.sum(1, keepdim=True) > 0, known, 0.5 * noise)
        self.table = nn.Parameter(torch.cat([old, new]).contiguous())


def read_teacher(path: Path) -> dict[str, torch.Tensor]:
    """The teacher's weights, as pack.py packed them."""
    packed = np.load(path)
    weights = {}
    for name in packed.files:
        if not name.endswith("#scale"):
            tensor = packed[name].astype(np.float32)
            if name + "#scale" in packed.files:
                tensor *= packed[name + "#scale"].astype(np.float32)[:, None]
            weights[name] = torch.from_numpy(tensor).to(DEVICE)
    return weights


# -- pruning


def note_gates(student: Encoder) -> None:
    """Add this step's squared gradients of the gates to their scores."""
    for layer in student.layers:
        layer.head_score += layer.head_gate.grad.float() ** 2
        layer.inner_score += layer.inner_gate.grad.float() ** 2
        layer.head_gate.grad = layer.inner_gate.grad = None


def prune(student: Encoder, optimiser: torch.optim.Optimizer, budget: int) -> None:
    """Take out the heads and neurons that matter least for their cost, down to a budget."""
    units = []
    for place, layer in enumerate(student.layers):
        heads = layer.head_score / (4 * WIDTH * HEAD)
        inner = layer.inner_score / (2 * WIDTH)
        units += [(float(score), place, "head", at) for at, score in enumerate(heads.tolist())]
        units += [(float(score), place, "inner", at) for at, score in enumerate(inner.tolist())]
    left = {(place, "head"): len(one.head_score) for place, one in enumerate(student.layers)}
    left |= {(place, "inner"): len(one.inner_score) for place, one in enumerate(student.layers)}
    least = {"head": 2, "inner": 128}
    cost = {"head": 4 * WIDTH * HEAD, "inner": 2 * WIDTH}
    size, dropped = student.size(), set()
    for _, place, kind, at in sorted(units):
        if size <= budget:
            break
        if left[place, kind] > least[kind]:
            left[place, kind] -= 1
            size -= cost[kind]
            dropped.add((place, kind, at))
    for _, place, kind, at in sorted(units, reverse=True):  # whole blocks run faster
        if kind == "inner" and left[place, kind] % 16 and (place, kind, at) in dropped:
            dropped.remove((place, kind, at))
            left[place, kind] += 1
    for place, layer in enumerate(student.layers):
        heads = [at for at in range(len(layer.head_score)) if (place, "head", at) not in dropped]
        inner = [at for at in range(len(layer.inner_score)) if (place, "inner", at) not in dropped]
        rows = torch.tensor(
            [head * HEAD + at for head in heads for at in range(HEAD)], device=DEVICE
        )
        kept = torch.tensor(inner, device=DEVICE)
        for name, dim, index in (
            ("q_w", 0, rows), ("q_b", 0, rows), ("k_w", 0, rows), ("k_b", 0, rows),
            ("v_w", 0, rows), ("v_b", 0, rows), ("o_w", 1, rows),
            ("fi_w", 0, kept), ("fi_b", 0, kept), ("fo_w", 1, kept),
        ):  # fmt: skip
            cut(layer, name, dim, index, optimiser)
        layer.reset_gates()


def cut(
    module: nn.Module, name: str, dim: int, index: torch.Tensor, optimiser: torch.optim.Optimizer
) -> None:
    """Keep some rows or columns of a parameter and of what the optimiser knows of it."""
    old = getattr(module, name)
    new = nn.Parameter(old.data.index_select(dim, index).contiguous())
    setattr(module, name, new)
    state = optimiser.state.pop(old, None)
    if state:
        for key in ("exp_avg", "exp_avg_sq"):
            state[key] = state[key].index_select(dim, index).contiguous()
        optimiser.state[new] = state
    for group in optimiser.param_groups:
        group["params"] = [new if one is old else one for one in group["params"]]


# -- learning


def similarity_loss(
    mine: tuple[torch.Tensor, torch.Tensor], theirs: tuple[torch.Tensor, torch.Tensor]
) -> torch.Tensor:
    """KL between the similarity matrices: both ways, and each side with itself."""
    total = mine[0].new_zeros(())
    for left, right in ((0, 1), (1, 0), (0, 0), (1, 1)):
        ours = mine[left] @ mine[right].T / TEMPERATURE
        goal = theirs[left] @ theirs[right].T / TEMPERATURE
        if left == right:
            itself = torch.eye(len(ours), device=DEVICE, dtype=torch.bool)
            ours, goal = ours.masked_fill(itself, -1e4), goal.masked_fill(itself, -1e4)
        total = total + F.kl_div(
            F.log_softmax(ours, 1), F.log_softmax(goal, 1), log_target=True, reduction="batchmean"
        )
    return total


def token_loss(mine: torch.Tensor, theirs: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """1 - cosine of the token vectors, over all tokens."""
    cosines = F.cosine_similarity(mine.float(), theirs.float(), dim=2)
    return 1 - (cosines * mask).sum() / mask.sum()


def away(mine: torch.Tensor, theirs: torch.Tensor) -> torch.Tensor:
    """1 - cosine of the vectors."""
    return 1 - (mine * theirs).sum(1).mean()


def tune(teacher: Encoder, triples: Triples, given: argparse.Namespace) -> None:
    """Draw questions to their notes, push near misses away, and keep everything near itself.

    Code and paragraphs are kept nearer: their vectors and their similarities.
    """
    draw = np.random.default_rng(given.seed)
    fixed = vectors_of(teacher, triples.texts, triples.read_by_teacher())
    rows = np.flatnonzero(triples.english)
    count = -(-len(rows) // given.tune_batch) * given.tune_epochs
    count = min(count, given.steps) if given.steps else count
    optimiser = torch.optim.AdamW(teacher.parameters(), lr=given.tune_rate, weight_decay=0.01)
    order: list[np.ndarray] = []
    sums = np.zeros(3)
    for step in range(count):
        if not order:
            mixed = draw.permutation(rows)
            order = [mixed[at : at + given.tune_batch] for at in range(0, len(mixed), given.tune_batch)]  # fmt: skip
        chosen = order.pop()
        kept = triples.tie[draw.integers(len(triples.tie), size=given.tune_batch)]
        warm = max(1, count // 10)
        share = (
            (step + 1) / warm
            if step < warm
            else 0.5 + 0.5 * math.cos(math.pi * (step - warm) / max(1, count - warm))
        )
        for group in optimiser.param_groups:
            group["lr"] = given.tune_rate * min(1, share)
        teacher.dropout = 0.1
        with torch.autocast(DEVICE, torch.bfloat16):
            found = triples.encode(teacher, chosen)
            teacher.dropout = 0.0
            sides = [triples.vectors(teacher, side) for side in kept.T]
        _, contrast = triples.contrast(found, chosen)
        near = away(found[0], fixed[triples.question[chosen]])
        near = near + away(found[1], fixed[triples.note[chosen]])
        goal = [fixed[side] for side in kept.T]
        tied = similarity_loss((sides[0], sides[1]), (goal[0], goal[1]))
        tied = tied + 4 * (away(sides[0], goal[0]) + away(sides[1], goal[1]))
        loss = contrast + given.tie * 4 * near + given.tie_texts * tied
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        optimiser.step()
        sums += [float(one.detach()) for one in (contrast, near, tied)]
        if (step + 1) % 50 == 0 or step + 1 == count:
            print("tune", step + 1, count, np.round(sums / (step % 50 + 1), 3), flush=True)
            sums[:] = 0
    teacher.dropout = 0.0


@torch.no_grad()
def vectors_of(model: Encoder, texts: Texts, chosen: np.ndarray) -> torch.Tensor:
    """The vectors of some texts, at their places; zeros at the others."""
    made = torch.zeros((len(texts), WIDTH), device=DEVICE)
    for some in texts.groups(chosen, 60_000):
        ids, mask, _ = texts.rows(some)
        with torch.autocast(DEVICE, torch.bfloat16):
            made[torch.from_numpy(some).to(DEVICE)] = model(ids, mask)[0].float()
    return made


@torch.no_grad()
def teach(teacher: Encoder, texts: Texts, english: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
    """What the teacher says of every English text: its vectors, and those of its tokens."""
    vectors = torch.zeros((len(texts), WIDTH), device=DEVICE, dtype=torch.bfloat16)
    # Zeros where nothing is written: what follows a text in its row is read, too.
    tokens = torch.zeros((len(texts.ids), WIDTH), device=DEVICE, dtype=torch.bfloat16)
    for some in texts.groups(english, 110_000):
        ids, mask, index = texts.rows(some)
        with torch.autocast(DEVICE, torch.bfloat16):
            vector, states = teacher(ids, mask)
        vectors[torch.from_numpy(some).to(DEVICE)] = vector.bfloat16()
        tokens[index[mask]] = states[mask].bfloat16()
    return vectors, tokens


class Lesson:
    """Everything that the student learns from, with the teacher's answers."""

    def __init__(self, teacher: Encoder, triples: Triples, given: argparse.Namespace) -> None:
        paths = sorted(given.folder.glob("tokens-?.npz.xz"))
        self.texts, self.pairs = read_texts(paths, given.texts)
        foreign = self.pairs["kind"] >= FIRST_LANGUAGE
        english = np.unique(np.concatenate([self.pairs["left"][~foreign], self.pairs["right"]]))
        self.vectors, self.tokens = teach(teacher, self.texts, english)
        self.triples = triples
        self.answers = vectors_of(teacher, triples.texts, triples.read_by_teacher())

    def step(
        self, student: Encoder, foreign: bool, sides: tuple[np.ndarray, np.ndarray], given: argparse.Namespace
    ) -> list[torch.Tensor]:  # fmt: skip
        """The losses of one batch: all together, similarity, vectors, tokens."""
        mine, theirs, tokens = [], [], []
        for place, chosen in enumerate(sides):
            ids, mask, index = self.texts.rows(chosen)
            with torch.autocast(DEVICE, torch.bfloat16):
                vector, states = student(ids, mask)
            mine.append(vector)
            # A foreign text learns the vector of its original.
            original = sides[1] if foreign else chosen
            theirs.append(self.vectors[torch.from_numpy(original).to(DEVICE)].float())
            if given.tokens and not (foreign and place == 0):
                tokens.append(token_loss(states, self.tokens[index], mask))
        similar = similarity_loss((mine[0], mine[1]), (theirs[0], theirs[1]))
        if foreign:  # a foreign text has one original: being its own neighbour says nothing
            similar = similar * 0.5
        near = sum(away(one, goal) for one, goal in zip(mine, theirs, strict=True))
        token = sum(tokens) / max(1, len(tokens)) if tokens else similar.new_zeros(())
        total = similar + given.near * near + given.tokens * token
        return [total, similar.detach(), near.detach(), token.detach()]

    def questions(
        self, student: Encoder, chosen: np.ndarray, given: argparse.Namespace
    ) -> torch.Tensor:
        """The loss of some triples; of the English ones the teacher's answers are known."""
        with torch.autocast(DEVICE, torch.bfloat16):
            found = self.triples.encode(student, chosen)
        _, contrast = self.triples.contrast(found, chosen)
        own = np.flatnonzero(self.triples.english[chosen])
        loss = given.contrast * contrast
        if len(own) > 1:
            rows = torch.from_numpy(own).to(DEVICE)
            mine = (found[0][rows], found[1][rows])
            places = (self.triples.question[chosen[own]], self.triples.note[chosen[own]])
            goal = tuple(self.answers[torch.from_numpy(side).to(DEVICE)] for side in places)
            loss = loss + given.near * (away(mine[0], goal[0]) + away(mine[1], goal[1]))
            loss = loss + similarity_loss(mine, (goal[0], goal[1]))
        return loss


def train(
    student: Encoder, lesson: Lesson, sets: list[EvaluationSet], name: str, seconds: float,
    given: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """One stage: pruning to the budget, or going on with what was pruned."""
    pruning = name == "pruned"
    peak, seed = (given.rate, given.seed) if pruning else (given.next_rate, given.seed + 7)
    draw = np.random.default_rng(seed + 1)
    optimiser = torch.optim.AdamW(
        student.parameters(), lr=peak, weight_decay=0.01, betas=(0.9, 0.98), fused=DEVICE == "cuda"
    )
    batches = iter(Batches(lesson.texts, lesson.pairs, given, seed))
    full, budget = student.size(), int(given.budget * 1e6)
    steps_of_pruning = 10 if pruning else 0
    start, step, pruned, shown, sums = time.time(), 0, 0, 0.0, np.zeros(5)
    saved = start
    while True:
        progress = step / given.steps if given.steps else (time.time() - start) / seconds
        if progress >= 1:
            break
        rate = peak * min(1, (step + 1) / 100) * (0.5 + 0.5 * math.cos(math.pi * progress))
        for group in optimiser.param_groups:
            group["lr"] = rate + 1e-6
        student.gated = pruned < steps_of_pruning
        foreign, *sides = next(batches)
        losses = lesson.step(student, foreign, (sides[0], sides[1]), given)
        if step % given.triples_every == 0:
            chosen = draw.integers(len(lesson.triples.note), size=given.triples_batch)
            extra = lesson.questions(student, chosen, given)
            losses[0] = losses[0] + extra
            sums[4] = 0.95 * sums[4] + 0.05 * float(extra.detach())
        optimiser.zero_grad(set_to_none=True)
        losses[0].backward()
        if student.gated:
            note_gates(student)
        torch.nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        step += 1
        due = (progress - 0.04) / (given.prune_until - 0.04) * steps_of_pruning
        if student.gated and due >= pruned + 1:
            pruned += 1
            share = 1 - (1 - pruned / steps_of_pruning) ** 2
            prune(student, optimiser, int(full - share * (full - budget)))
        if step % 20 == 0:
            sums[:4] = 0.9 * sums[:4] + 0.1 * np.array([float(one.detach()) for one in losses])
            assert np.isfinite(sums).all(), f"step {step}: {sums}"
        if pruned == steps_of_pruning and time.time() - saved > given.save_every:
            save_parts(student, given.out, "encoder")
            saved = time.time()
        if progress - shown > 0.24:
            shown = progress
            known = np.round(sums / np.array([1 - 0.9 ** (step // 20 + 1e-9)] * 4 + [1]), 3)
            print(name, step, f"{time.time() - start:.0f}s", known, describe(student),
                  brief(student, sets), flush=True)  # fmt: skip
    while pruned < steps_of_pruning:  # a dry run of a few steps
        pruned += 1
        prune(student, optimiser, budget)
    return {"steps": step, "seconds": round(time.time() - start), "shape": describe(student)}


def describe(student: Encoder) -> str:
    shape = [f"{len(layer.q_w) // HEAD}h{len(layer.fi_w)}" for layer in student.layers]
    return f"{student.size() / 1e6:.2f}M {'+'.join(shape)}"


# -- files and figures


def stored(model: nn.Module) -> dict[str, np.ndarray]:
    """The weights by name: the table int8 by rows, everything else float16."""
    made: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        array = tensor.float().cpu().numpy()
        if name == "table":
            scale = np.abs(array).max(1, keepdims=True) / 127 + 1e-12
            made["table"] = np.rint(array / scale).astype(np.int8)
            made["table_scale"] = scale[:, 0].astype(np.float32)
        else:
            made[name] = array.astype(np.float16)
    return made


def save(model: nn.Module, path: Path) -> None:
    np.savez(path, **stored(model))


def save_parts(model: nn.Module, folder: Path, name: str) -> None:
    """Save the weights in files that are small enough to be sent."""
    parts: list[dict[str, np.ndarray]] = [{}]
    for key, array in stored(model).items():
        if sum(one.nbytes for one in parts[-1].values()) + array.nbytes > PART_BYTES:
            parts.append({})
        parts[-1][key] = array
    for place, part in enumerate(parts):
        kept = folder / f"{name}-{place}.npz"
        np.savez(kept.with_suffix(".part.npz"), **part)
        kept.with_suffix(".part.npz").replace(kept)


def load(model: Encoder, folder: Path, name: str) -> None:
    """Continue with saved weights, whatever their shapes."""
    packed: dict[str, np.ndarray] = {}
    for path in sorted(folder.glob(f"{name}-?.npz")):
        with np.load(path) as file:
            packed |= {key: file[key] for key in file.files}
    take_weights(model, packed)


def read_student(model: Encoder, path: Path) -> None:
    """Continue with the weights of one file."""
    with np.load(path) as file:
        take_weights(model, {key: file[key] for key in file.files})


def take_weights(model: Encoder, packed: dict[str, np.ndarray]) -> None:
    for key, values in packed.items():
        if key == "table_scale":
            continue
        array = values.astype(np.float32)
        if key == "table":
            array *= packed["table_scale"][:, None]
        owner: Any = model
        *folders, last = key.split(".")
        for one in folders:
            owner = getattr(owner, one) if not one.isdigit() else owner[int(one)]
        setattr(owner, last, nn.Parameter(torch.from_numpy(array).to(DEVICE)))
    for layer in model.layers:
        layer.reset_gates()


@torch.no_grad()
def embed(model: Encoder, rows: list[list[int]]) -> np.ndarray:
    sizes = np.array([len(row) for row in rows])
    texts = Texts(np.fromiter((one for row in rows for one in row), np.uint16), sizes)
    return vectors_of(model, texts, np.arange(len(rows))).cpu().numpy()


def measure(model: Encoder, sets: list[EvaluationSet]) -> dict[str, list[float]]:
    gated, model.gated = model.gated, False
    figures = summarise(sets, lambda rows: embed(model, rows))
    figures |= unrelated(sets, lambda rows: embed(model, rows))
    model.gated = gated
    return figures


def brief(model: Encoder, sets: list[EvaluationSet]) -> str:
    wanted = ("notes paraphrase", "xquad-en", "xquad-de-asks-en", "zh asks en", "ru sentence asks en",
              "zh sentence", "zh unrelated")  # fmt: skip
    some = [
        one
        for one in sets
        if one.name != "cosqa-dev" and not one.name.startswith(("real", "knowme"))
    ]
    figures = measure(model, some)
    return json.dumps({name: figures[name] for name in wanted if name in figures})


def note(given: argparse.Namespace, name: str, figures: dict[str, Any]) -> None:
    """Add figures to the file of all figures."""
    path = given.out / "figures.json"
    known = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(known | {name: figures}, indent=1))
    print("RESULT", name, json.dumps(figures), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", choices=("tuned", "pruned", "encoder"), default="encoder")
    parser.add_argument("--seconds", type=float, default=500, help="of both stages together")
    parser.add_argument("--first", type=float, default=0.55, help="share of the first stage")
    parser.add_argument("--steps", type=int, default=0, help="of each stage, instead of seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save-every", type=float, default=60)
    parser.add_argument("--texts", type=int, default=0, help="pairs of each file; 0: all")
    tuning = parser.add_argument_group("the teacher")
    tuning.add_argument("--tune-epochs", type=int, default=4)
    tuning.add_argument("--tune-batch", type=int, default=128)
    tuning.add_argument("--tune-rate", type=float, default=3e-5)
    tuning.add_argument(
        "--tie", type=float, default=0.1, help="of questions and notes to themselves"
    )
    tuning.add_argument("--tie-texts", type=float, default=1.0, help="of code and paragraphs")
    learning = parser.add_argument_group("the student")
    learning.add_argument("--rank", type=int, default=192)
    learning.add_argument("--budget", type=float, default=3.4, help="million weights in the layers")
    learning.add_argument("--rate", type=float, default=1e-3)
    learning.add_argument("--next-rate", type=float, default=6e-4)
    learning.add_argument("--tokens", type=float, default=1.0, help="weight of the token loss")
    learning.add_argument("--near", type=float, default=4.0, help="weight of 1 - cosine")
    learning.add_argument("--foreign", type=float, default=0.45, help="share of foreign batches")
    learning.add_argument("--prune-until", type=float, default=0.55)
    learning.add_argument("--batch", type=int, default=2048)
    learning.add_argument("--batch-tokens", type=int, default=110_000)
    learning.add_argument("--triples-every", type=int, default=6)
    learning.add_argument("--triples-batch", type=int, default=192)
    learning.add_argument("--contrast", type=float, default=0.5, help="weight of triples as such")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(given.seed)
    torch.backends.cuda.matmul.allow_tf32 = True
    began = time.time()

    def passed(what: str) -> None:
        print(f"[{time.time() - began:.0f}s] {what}", flush=True)

    triples = Triples(given.folder / "triples.npz")
    teacher = Encoder(read_teacher(given.folder / "teacher.npz")).to(DEVICE)
    old_sets = read_encoded(given.folder / "eval-old.json.gz")
    if (given.folder / "tuned-0.npz").is_file():
        load(teacher, given.folder, "tuned")
    else:
        note(given, "teacher", measure(teacher, old_sets))
        tune(teacher, triples, given)
        save_parts(teacher, given.folder, "tuned")
        for path in given.folder.glob("tuned-?.npz"):
            shutil.copy(path, given.out)
        note(given, "tuned", measure(teacher, old_sets))
    passed("the teacher is tuned")
    if given.until == "tuned":
        return
    teacher.requires_grad_(False)
    lesson = Lesson(teacher, triples, given)
    passed(
        f"{len(lesson.texts)} texts, {len(lesson.texts.ids)} tokens, {len(lesson.pairs['kind'])} pairs"
    )
    sets = read_encoded(given.folder / "eval-new.json.gz")
    student = teacher.requires_grad_(True)
    student.factorise(given.rank)
    student.add_pieces(given.folder / "hints.npz")
    shares = {"pruned": given.first, "encoder": 1 - given.first}
    if (given.folder / "pruned-0.npz").is_file():
        load(student, given.folder, "pruned")
        del shares["pruned"]
    for name, share in shares.items():
        about = train(student, lesson, sets, name, given.seconds * share, given)
        save_parts(student, given.out, "encoder")
        save_parts(student, given.folder, name)
        note(given, name, about | measure(student, sets))
        passed(f"{name} is made")
        if given.until == name:
            return


if __name__ == "__main__":
    main()
