"""Train the model of two memories: teachers, their answers, a small student.

    python training/train_pairs.py FOLDER --out updates-4.npz
    python training/train_pairs.py FOLDER --out updates-5.npz --answers answers.npz --first updates-4.npz
    python training/train_pairs.py FOLDER --leave-out chat

FOLDER has what ``run.py pairs`` made. A teacher is all-mpnet-base-v2 reading both texts at
once; two of them say what every pair is, labelled or not. The student starts as the six
layers of all-MiniLM-L6-v2 over the table of our encoder, which it shares in the package; it
learns these answers and is pruned on the way, as in ``train.py``. Then it reads a part of the
texts between other sentences, where the answers stay the same; the mean of its weights before
and after is the model. ``--first`` goes on with a student that is pruned already.
With ``--leave-out`` neither sees a kind of texts, and both are measured on it; nothing is
saved. PyTorch and a GPU are needed.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from train import (
    DEVICE,
    WIDTH,
    Encoder,
    describe,
    note_gates,
    prune,
    read_student,
    read_teacher,
    save,
)

# Labels as pairs.py writes them; a neighbour may be of class 2 or 3.
UPDATE, ADDS, NEIGHBOUR, UNLABELLED = 0, 2, 4, -1
CLASSES = 4
KINDS = {
    "code": ("code", "agent", "minutes", "c", "e"),
    "life": ("life", "diary", "lists", "notes", "a", "b", "k"),
    "chat": ("chat", "friends", "groups", "assistant", "assist", "d", "h", "l"),
    "lang": ("lang", "f", "g"),
    "documents": ("docs", "still"),
}
START_PIECE, END_PIECE, VOCABULARY, SHARED_ROWS = 101, 102, 30_522, 2_048
# The teacher's network (config.json of all-mpnet-base-v2).
T_WIDTH, T_HEADS, T_LAYERS, T_NORM = 768, 12, 12, 1e-5
# In an epoch a neighbour is seen once, a pair with a label of its own twice.
T_SEEDS, T_EPOCHS, T_REPEATS, T_RATE, T_BATCH, T_DROPOUT = (1, 2), 2, 2, 4.5e-5, 128, 0.1
# The student: two texts of 80 pieces and three ends have places.
PLACES, BUDGET = 192, 2_400_000
RATE, BATCH, WARM_UP = 6e-4, 512, 200
# Between other sentences: the share of such pairs, how often both sides get sentences that are
# neighbours of one another, and how far away other sentences of the same source are taken from.
SURROUNDED, SURROUNDED_ALIKE, SURROUNDED_RATE = 0.35, 0.4, 2.5e-4
AWAY, SHORT = (30, 200), (6, 30)
CHATS = ("chat", "assist", "assistant", "d", "h", "l", "lang", "f", "g", "life")
PRUNINGS, PRUNE_FROM, PRUNE_FOR = 12, 0.03, 0.47

Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


# -- pairs


class Texts:
    """The word pieces of all texts, joined two by two."""

    def __init__(self, pieces: np.ndarray, lengths: np.ndarray) -> None:
        self.pieces = torch.from_numpy(pieces.astype(np.int64)).to(DEVICE)
        self.sizes = torch.from_numpy(lengths.astype(np.int64)).to(DEVICE)
        self.lengths = lengths.astype(np.int64)

    def join(self, pairs: np.ndarray) -> Batch:
        """Ids, which side a piece is of, and where there is one: start, older, end, newer, end."""
        older, newer = torch.from_numpy(pairs.astype(np.int64)).to(DEVICE).T
        first, both = (
            self.sizes[older][:, None] + 1,
            (self.sizes[older] + self.sizes[newer])[:, None] + 2,
        )
        # Counted here, so that nothing waits for the GPU.
        width = int(self.lengths[pairs].sum(axis=1).max()) + 3
        at = torch.arange(width, device=DEVICE).expand(len(pairs), -1)
        last = self.pieces.shape[1] - 1
        left = self.pieces[older].gather(1, (at - 1).clamp(0, last))
        right = self.pieces[newer].gather(1, (at - first - 1).clamp(0, last))
        ids = torch.where(at < first, left, right)
        ids = ids.masked_fill(at == 0, START_PIECE)
        ids = ids.masked_fill((at == first) | (at == both), END_PIECE)
        mask = at <= both
        return ids.masked_fill(~mask, 0), ((at > first) & mask).long(), mask

    def plan(self, pairs: np.ndarray, draw: np.random.Generator, size: int) -> list[np.ndarray]:
        """Batches of rows with pairs of similar length, in random order."""
        order = draw.permutation(len(pairs))
        lengths = self.lengths[pairs].sum(axis=1)
        found: list[np.ndarray] = []
        for some in np.array_split(order, max(1, len(order) // (size * 30))):
            near = some[np.argsort(lengths[some])]
            found += [near[at : at + size] for at in range(0, len(near), size)]
        return [found[place] for place in draw.permutation(len(found))]


class Surrounded(Texts):
    """Texts of which some are read between other sentences of the same source.

    What surrounds a value does not change what becomes of it. Both sides of a pair get any
    sentences, or two that are neighbours; in chats often two wishes told to an assistant.
    """

    def __init__(
        self, pieces: np.ndarray, lengths: np.ndarray, sources: np.ndarray, neighbours: np.ndarray
    ) -> None:
        super().__init__(pieces, lengths)
        self.room, self.draw = pieces.shape[1], np.random.default_rng(9)
        names, self.source = np.unique(sources, return_inverse=True)
        self.still = names == "still"
        self.order = np.argsort(self.source, kind="stable")
        self.counts = np.bincount(self.source)
        self.starts = self.counts.cumsum() - self.counts
        self.places = np.empty_like(self.order)
        self.places[self.order] = np.arange(len(self.order)) - self.starts[self.source[self.order]]
        sizes = self.lengths[neighbours]
        alike = neighbours[((sizes >= SHORT[0]) & (sizes <= SHORT[1])).all(axis=1)].astype(np.int64)
        wishes = alike[sources[alike[:, 1]] == "request"]
        self.alike = []
        for place, name in enumerate(names):
            own = alike[self.source[alike[:, 1]] == place]
            if name in CHATS or not len(own):
                own = np.concatenate(
                    [own, wishes.repeat(max(1, len(own) // len(wishes) // 2), axis=0)]
                )
            self.alike.append(own)

    def away(self, texts: np.ndarray) -> np.ndarray:
        """Another text of each one's source, not among its neighbours in the file."""
        source = self.source[texts]
        steps = self.draw.integers(*AWAY, len(texts)) * self.draw.choice((-1, 1), len(texts))
        return self.order[self.starts[source] + (self.places[texts] + steps) % self.counts[source]]

    def join(self, pairs: np.ndarray) -> Batch:
        pairs, draw, count = pairs.astype(np.int64), self.draw, len(pairs)
        around = np.full((count, 2, 2), -1)  # of each side the text before and after it; -1: none
        source = self.source[pairs[:, 1]]
        chosen = (draw.random(count) < SURROUNDED) & ~self.still[source]
        alike = chosen & (draw.random(count) < SURROUNDED_ALIKE)
        for row in np.flatnonzero(alike):
            found = self.alike[source[row]]
            around[row, (0, 1), draw.integers(0, 2, 2)] = found[draw.integers(len(found))]
        for side in (0, 1):
            drawn, other = draw.random(count), chosen & ~alike
            before = other & ((drawn < 0.3) | ((drawn >= 0.6) & (drawn < 0.75)))
            after = other & (drawn >= 0.3) & (drawn < 0.75)
            around[before, side, 0] = self.away(pairs[before, side])
            around[after, side, 1] = self.away(pairs[after, side])
        sides = [self.surround(pairs[:, side], *around[:, side].T) for side in (0, 1)]
        # The texts of this batch are the rows of a table of their own.
        rows = np.arange(count)
        table = Texts.__new__(Texts)
        table.pieces = torch.cat([ids for ids, _ in sides])
        table.sizes = torch.cat([sizes for _, sizes in sides])
        table.lengths = table.sizes.cpu().numpy()
        return table.join(np.stack([rows, rows + count], axis=1))

    def surround(
        self, texts: np.ndarray, before: np.ndarray, after: np.ndarray
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The pieces of texts with others before and after them, as far as there is room."""
        parts, sizes, room = [], [], torch.full((len(texts),), self.room, device=DEVICE)
        own = torch.from_numpy(texts).to(DEVICE)
        room = room - self.sizes[own]
        for added in (before, after):
            place = torch.from_numpy(added).to(DEVICE)
            size = torch.where(place >= 0, self.sizes[place.clamp(min=0)], 0)
            size = torch.where(size <= room, size, 0)
            room = room - size
            parts.append(self.pieces[place.clamp(min=0)])
            sizes.append(size[:, None])
        (first, last), mine = sizes, self.sizes[own][:, None]
        at = torch.arange(self.room, device=DEVICE).expand(len(texts), -1)
        middle = self.pieces[own].gather(1, (at - first).clamp(0, self.room - 1))
        end = parts[1].gather(1, (at - first - mine).clamp(0, self.room - 1))
        ids = torch.where(at < first, parts[0], torch.where(at < first + mine, middle, end))
        total = first + mine + last
        return ids.masked_fill(at >= total, 0), total[:, 0]


def label_loss(scores: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
    """Cross entropy of each pair; of a neighbour, that it is of one of the last two classes."""
    exact = F.cross_entropy(
        scores, labels.clamp(0, CLASSES - 1), reduction="none", label_smoothing=smoothing
    )
    either = -F.log_softmax(scores, 1)[:, ADDS:].logsumexp(1)
    return torch.where(labels == NEIGHBOUR, either, exact)


def add_rows(table: torch.Tensor) -> torch.Tensor:
    """A table with rows for unknown pieces after it, drawn like its own."""
    draw = torch.Generator().manual_seed(5)
    rows = torch.randn(SHARED_ROWS, table.shape[1], generator=draw).to(table)
    return torch.cat([table, rows * table.std(0) + table.mean(0)])


def mean_states(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return (states.float() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


# -- teacher


class Teacher(nn.Module):
    """all-mpnet-base-v2 reading two texts at once, with four classes."""

    def __init__(self, weights: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.table = nn.Parameter(add_rows(weights["embeddings.word_embeddings.weight"]))
        self.weights = nn.ParameterDict(
            {
                name.replace(".", "/"): nn.Parameter(tensor.clone())
                for name, tensor in weights.items()
                if "word_embeddings" not in name
            }
        )
        self.types = nn.Parameter(torch.zeros(2, T_WIDTH))
        self.head = nn.Linear(T_WIDTH, CLASSES)

    def of(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        name = name.replace(".", "/")
        return self.weights[name + "/weight"], self.weights[name + "/bias"]

    def norm(self, states: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(states, (T_WIDTH,), *self.of(name), T_NORM)

    def drop(self, states: torch.Tensor) -> torch.Tensor:
        return F.dropout(states, T_DROPOUT, self.training)

    def forward(self, ids: torch.Tensor, side: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        places = self.weights["embeddings/position_embeddings/weight"][2 : 2 + ids.shape[1]]
        states = F.embedding(own_pieces(ids, mask), self.table) + places + self.types[side]
        states = self.drop(self.norm(states, "embeddings.LayerNorm"))
        at = torch.arange(ids.shape[1], device=DEVICE)
        distances = self.weights["encoder/relative_attention_bias/weight"]
        bias = distances[bucket_distances(at[None] - at[:, None])].permute(2, 0, 1)
        bias = bias + torch.where(mask, 0.0, -1e4)[:, None, None, :]
        for layer in range(T_LAYERS):
            states = self.run_layer(states, bias, f"encoder.layer.{layer}.")
        return self.head(mean_states(states, mask))

    def run_layer(self, states: torch.Tensor, bias: torch.Tensor, name: str) -> torch.Tensor:
        def split(part: str) -> torch.Tensor:
            made = F.linear(states, *self.of(f"{name}attention.attn.{part}"))
            return made.view(*states.shape[:2], T_HEADS, -1).transpose(1, 2)

        query = split("q")
        seen = F.scaled_dot_product_attention(
            query, split("k"), split("v"), attn_mask=bias.to(query.dtype)
        )
        seen = seen.transpose(1, 2).reshape(states.shape)
        seen = self.drop(F.linear(seen, *self.of(name + "attention.attn.o")))
        states = self.norm(states + seen, name + "attention.LayerNorm")
        inner = F.gelu(F.linear(states, *self.of(name + "intermediate.dense")))
        inner = self.drop(F.linear(inner, *self.of(name + "output.dense")))
        return self.norm(states + inner, name + "output.LayerNorm")


def own_pieces(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The teacher's numbers of pieces: four of its own before BERT's, one after them."""
    made = torch.where(ids >= VOCABULARY, ids + 5, ids + 4)
    made = made.masked_fill(ids == START_PIECE, 0).masked_fill(ids == END_PIECE, 2)
    return made.masked_fill(~mask, 1)


def bucket_distances(distances: torch.Tensor) -> torch.Tensor:
    """MPNet's 32 classes of distance: 16 each way, exact below 8, logarithmic up to 128."""
    far = distances.abs()
    wide = 8 + (torch.log(far.clamp(min=1) / 8) / math.log(128 / 8) * 8).long()
    return (distances > 0).long() * 16 + torch.where(far < 8, far, wide.clamp(max=15))


def fit_teacher(
    weights: dict[str, torch.Tensor],
    texts: Texts,
    pairs: np.ndarray,
    labels: np.ndarray,
    seed: int,
    size: int = T_BATCH,
    top: float = T_RATE,
) -> Teacher:
    torch.manual_seed(seed)
    draw = np.random.default_rng(seed)
    teacher = Teacher(weights).to(DEVICE).train()
    optimiser = torch.optim.AdamW(teacher.parameters(), top, weight_decay=0.01, fused=True)
    repeats = np.where(labels == NEIGHBOUR, 1, T_REPEATS)
    pairs, labels = pairs.repeat(repeats, axis=0), labels.repeat(repeats)
    plan = [rows for _ in range(T_EPOCHS) for rows in texts.plan(pairs, draw, size)]
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, top, total_steps=len(plan) + 1, pct_start=0.1
    )
    for rows in plan:
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = teacher(*texts.join(pairs[rows])).float()
        loss = label_loss(scores, torch.from_numpy(labels[rows]).to(DEVICE), 0.05).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return teacher.eval()


@torch.no_grad()
def answer(network: nn.Module, texts: Texts, pairs: np.ndarray) -> np.ndarray:
    """The shares of the four classes for each pair."""
    made = np.zeros((len(pairs), CLASSES), np.float32)
    order = np.argsort(texts.lengths[pairs].sum(axis=1))
    for start in range(0, len(order), 1024):
        rows = order[start : start + 1024]
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = network(*texts.join(pairs[rows]))
        made[rows] = scores.float().softmax(1).cpu().numpy()
    return made


# -- student


class Student(Encoder):
    """The encoder's network for two texts, with a vector for each side and four classes."""

    def __init__(self, weights: dict[str, torch.Tensor], encoder: Path) -> None:
        # Its own table is not read, and may be left out.
        super().__init__({"embeddings.word_embeddings.weight": torch.zeros(1, WIDTH), **weights})
        with np.load(encoder) as known:
            table = known["table"].astype(np.float32) * known["table_scale"][:, None]
            self.mix = nn.Parameter(torch.from_numpy(known["mix"].astype(np.float32)))
        del self.table
        # It is stored with the encoder and does not learn; the mix does.
        self.register_buffer("table", torch.from_numpy(table), persistent=False)
        self.places = nn.Parameter(self.places.detach()[:PLACES].clone())
        types = weights["embeddings.token_type_embeddings.weight"]
        self.types = nn.Parameter(types - types[0])  # the places have the first one in them
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids: torch.Tensor, side: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        states = F.embedding(ids, self.table) @ self.mix
        states = states + self.places[: ids.shape[1]] + self.types[side]
        states = F.layer_norm(states, (WIDTH,), self.ln_w, self.ln_b, 1e-12)
        for layer in self.layers:
            states = layer(states, mask[:, None, None, :], self.gated)
        return self.head(mean_states(states, mask))


def student_loss(scores: torch.Tensor, goals: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Distance to the teachers' answers; with a label, half of it and half to the label."""
    logs = F.log_softmax(scores, 1)
    apart = (goals * (goals.clamp(min=1e-6).log() - logs)).sum(1)
    both = 0.5 * apart + 0.5 * label_loss(scores, labels, 0.02)
    return torch.where(labels == UNLABELLED, apart, both).mean()


def fit_student(
    student: Student,
    texts: Texts,
    pairs: np.ndarray,
    labels: np.ndarray,
    goals: np.ndarray,
    seconds: float,
    top: float = RATE,
    prunings: int = PRUNINGS,
    size: int = BATCH,
    budget: int = BUDGET,
) -> Student:
    torch.manual_seed(0)
    draw = np.random.default_rng(0)
    student = student.to(DEVICE).train()
    optimiser = torch.optim.AdamW(student.parameters(), top, weight_decay=0.01, betas=(0.9, 0.98))
    goal, label = torch.from_numpy(goals).to(DEVICE), torch.from_numpy(labels).to(DEVICE)
    full, start, pruned, step = student.size(), time.time(), 0, 0
    plan: list[np.ndarray] = []
    while (progress := (time.time() - start) / seconds) < 1:
        rate = top * min(1, (step + 1) / WARM_UP) * (0.5 + 0.5 * math.cos(math.pi * progress))
        for group in optimiser.param_groups:
            group["lr"] = rate + 1e-6
        student.gated = pruned < prunings
        plan = plan or texts.plan(pairs, draw, size)
        rows = plan.pop()
        places = torch.from_numpy(rows).to(DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16):
            scores = student(*texts.join(pairs[rows])).float()
        optimiser.zero_grad(set_to_none=True)
        student_loss(scores, goal[places], label[places]).backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        step += 1
        if student.gated:
            note_gates(student)
            if (progress - PRUNE_FROM) / PRUNE_FOR * prunings >= pruned + 1:
                pruned += 1
                share = 1 - (1 - pruned / prunings) ** 2
                prune(student, optimiser, int(full - share * (full - budget)))
    student.gated = False
    print(f"student: {step} steps, {describe(student)}", flush=True)
    return student.eval()


def fit_surrounded(
    student: Student,
    texts: Surrounded,
    pairs: np.ndarray,
    labels: np.ndarray,
    goals: np.ndarray,
    seconds: float,
) -> Student:
    """Go on with texts between other sentences; return the mean of before and after."""
    before = {name: tensor.detach().clone() for name, tensor in student.named_parameters()}
    given = (pairs, labels, goals, seconds, SURROUNDED_RATE, 0)
    student = fit_student(student, texts, *given)
    with torch.no_grad():
        for name, tensor in student.named_parameters():
            tensor.copy_((tensor + before[name].to(tensor)) / 2)
    return student


def read_weights(folder: Path, name: str) -> dict[str, torch.Tensor]:
    """The weights of one file, or of several that are small enough to be sent."""
    paths = sorted(folder.glob(f"{name}-[0-9].npz")) or [folder / f"{name}.npz"]
    return {key: value for path in paths for key, value in read_teacher(path).items()}


# -- figures


def report(name: str, shares: np.ndarray, labels: np.ndarray, sources: np.ndarray) -> None:
    """How well updates are told from what stays true, for each source of texts."""
    for source in np.unique(sources):
        told = shares[sources == source, UPDATE]
        mine = labels[sources == source]
        updates, stay = told[mine == UPDATE], told[np.isin(mine, (ADDS, NEIGHBOUR))]
        ranks = np.concatenate([updates, stay]).argsort().argsort()[: len(updates)]
        area = (ranks.mean() - (len(updates) - 1) / 2) / len(stay)
        found = (updates > np.quantile(stay, 0.98)).mean()
        print(f"{name} {source}: {len(updates)} updates of {len(mine)}, AUC {area:.3f}, "
              f"recall at 2 % false {found:.2f}", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("updates-4.npz"))
    parser.add_argument("--first", type=Path, help="a student that is pruned already")
    parser.add_argument("--leave-out", choices=KINDS)
    parser.add_argument("--answers", type=Path, help="what the teachers said in an earlier run")
    parser.add_argument("--seconds", type=float, default=520, help="how long the student learns")
    given = parser.parse_args()
    data = np.load(given.folder / "pairs.npz")
    texts = Texts(data["pieces"], data["lengths"])
    left = np.isin(data["sources"], KINDS.get(given.leave_out, ("",)))
    unlabelled = np.concatenate(
        [data["unlabelled"], *([] if given.leave_out else [data["altered"]])]
    )
    unlabelled = unlabelled[~left[unlabelled].any(axis=1)]
    kept = ~left[data["labelled"]].any(axis=1)
    held = left[data["labelled"]].all(axis=1)
    taught, labels = data["labelled"][kept], data["labels"][kept].astype(np.int64)
    held_pairs, held_labels = data["labelled"][held], data["labels"][held]
    held_sources = data["sources"][held_pairs[:, 1]]

    pairs = np.concatenate([taught, unlabelled])
    goals = np.zeros((len(pairs), CLASSES), np.float32)
    if given.answers:
        goals = np.load(given.answers)["goals"].astype(np.float32)
    else:
        weights = read_weights(given.folder, "mpnet")
        for seed in T_SEEDS:
            teacher = fit_teacher(weights, texts, taught, labels, seed)
            goals += answer(teacher, texts, pairs) / len(T_SEEDS)
            report(f"teacher {seed}", answer(teacher, texts, held_pairs), held_labels, held_sources)
            del teacher
    given.out.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.out.with_name("answers.npz"), goals=goals.astype(np.float16))
    labels = np.concatenate([labels, np.full(len(unlabelled), UNLABELLED)])
    student = Student(read_weights(given.folder, "teacher"), given.folder / "encoder.npz")
    own = Texts(data["own_pieces"], data["own_lengths"])
    if given.first:
        read_student(student.to(DEVICE), given.first)
    learnt = (pairs, labels, goals, given.seconds)
    student = fit_student(student, own, *learnt, prunings=0 if given.first else PRUNINGS)
    neighbours = taught[labels[: len(taught)] == NEIGHBOUR]
    mixed = Surrounded(data["own_pieces"], data["own_lengths"], data["sources"], neighbours)
    student = fit_surrounded(student, mixed, *learnt)
    if given.leave_out:
        report("student", answer(student, own, held_pairs), held_labels, held_sources)
    else:
        save(student, given.out)


if __name__ == "__main__":
    main()
